//! Events in, actions out.

use core::mem::MaybeUninit;

use motet::ip::InterfaceId;
use motet::link::{Action, Event};
use motet::mac::{self, AttemptOutcome, RxMeta};
use motet::time::Instant;
#[cfg(feature = "relay")]
use motet::wire::LinkAddr;

use crate::errno::{Errno, MOTET_EINVAL, MOTET_ENOENT, code};
use crate::memory::{bytes, place};
use crate::node::{motet_node, with, with_clock};

/// Copy this frame into the radio; answer by motet_on_preloaded.
pub const MOTET_PRELOAD: u8 = 0;
/// Assess the channel once, 128 us; answer by motet_on_assessed. Does not occur where `assesses` is
/// set.
pub const MOTET_ASSESS: u8 = 1;
/// Transmit what is preloaded, 192 us from now; answer by motet_on_transmitted. Of a radio with
/// `assesses` or `takes_acks`: make one attempt, with no retries of its own; answer by
/// motet_on_sent, unless another frame was preloaded meanwhile.
pub const MOTET_FIRE: u8 = 2;
/// Transmit this frame, an ACK, without assessing the channel: its first symbol at `at_us`. Answer
/// by motet_on_transmitted.
pub const MOTET_TRANSMIT: u8 = 3;
/// Receive from now on.
pub const MOTET_LISTEN: u8 = 4;
/// Switch the receiver off.
pub const MOTET_SLEEP: u8 = 5;
/// Tune to `channel`.
pub const MOTET_CHANGE_CHANNEL: u8 = 6;
/// From now on the ACKs that the radio sends by itself say that something waits (frame pending bit)
/// for the neighbour whose address is `bytes`: `len` is 8 (EUI-64) or 2 (short address), most
/// significant byte first, or 0 (all data requests). Occurs where `pending` and `children` are set.
pub const MOTET_SET_PENDING: u8 = 7;
/// The same, but nothing waits any more.
pub const MOTET_CLEAR_PENDING: u8 = 8;

/// The frame was sent and acknowledged.
pub const MOTET_ACKED: u8 = 0;
/// The frame was sent. It asks for no ACK, or its ACK comes by motet_on_frame (`takes_acks` is 0).
pub const MOTET_DONE: u8 = 1;
/// The frame was sent, asks for an ACK, and none came.
pub const MOTET_NO_ACK: u8 = 2;
/// The channel was not found clear: the frame was not sent.
pub const MOTET_BUSY: u8 = 3;
/// The radio refused the frame, or does not know what became of it. It is tuned and switched on
/// again.
pub const MOTET_FAILED: u8 = 4;
/// The frame was sent, asks for an ACK, and the radio does not tell whether one came. It says
/// nothing of the link, and shows nobody to be there; a node that sleeps cannot use such a radio.
pub const MOTET_UNKNOWN: u8 = 5;

/// What the radio shall do next.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_action {
    /// When, for MOTET_TRANSMIT.
    pub at_us: u64,
    /// The frame, for MOTET_PRELOAD and MOTET_TRANSMIT, or an address; the node's until the next call
    /// of it.
    pub bytes: *const u8,
    /// Its length.
    pub len: u16,
    /// MOTET_PRELOAD or one of the others.
    pub kind: u8,
    /// 11 to 26, for MOTET_CHANGE_CHANNEL.
    pub channel: u8,
}

/// A frame was received; its last symbol was on the air at `at_us`. Returns 0, or -MOTET_EFAULT,
/// EBADF, EINVAL (longer than 127 bytes).
///
/// # Safety
/// As motet_poll; unless it is null, `psdu` points to `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_on_frame(
    node: *mut motet_node,
    psdu: *const u8,
    len: usize,
    rssi_dbm: i8,
    lqi: u8,
    channel: u8,
    at_us: u64,
    now_us: u64,
) -> i32 {
    if len > motet::limits::PSDU_LEN_MAX {
        return Errno(MOTET_EINVAL).code();
    }
    let meta = RxMeta {
        rssi_dbm,
        lqi,
        channel,
        at: Instant::from_micros(at_us),
    };
    // SAFETY: the caller's promise.
    let event = unsafe { bytes(psdu, len) }.map(|psdu| mac::Event::FrameReceived { psdu, meta });
    match event {
        // SAFETY: the caller's promise.
        Ok(event) => unsafe { on_event(node, event, now_us) },
        Err(error) => error.code(),
    }
}

/// The frame of the last MOTET_PRELOAD is in the radio. Returns 0, or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_on_preloaded(node: *mut motet_node, now_us: u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { on_event(node, mac::Event::Preloaded, now_us) }
}

/// The answer to MOTET_ASSESS. Returns 0, or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_on_assessed(node: *mut motet_node, clear: bool, now_us: u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { on_event(node, mac::Event::ChannelAssessed { clear }, now_us) }
}

/// What MOTET_FIRE or MOTET_TRANSMIT asked for was sent; its last symbol left at `at_us`. Returns 0,
/// or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_on_transmitted(
    node: *mut motet_node,
    at_us: u64,
    now_us: u64,
) -> i32 {
    let at = Instant::from_micros(at_us);
    // SAFETY: the caller's promise.
    unsafe { on_event(node, mac::Event::TransmitDone { at }, now_us) }
}

/// How the attempt ended that MOTET_FIRE asked for, where the radio has `assesses` or `takes_acks`:
/// MOTET_ACKED or one of the others. `pending`: whether the ACK said that something waits for this
/// node (frame pending bit); `at_us`: when the frame's last symbol left, or the time of the radio's
/// answer. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (no such outcome).
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_on_sent(
    node: *mut motet_node,
    outcome: u8,
    pending: bool,
    at_us: u64,
    now_us: u64,
) -> i32 {
    let outcome = match outcome {
        MOTET_ACKED => AttemptOutcome::Acked { pending },
        MOTET_DONE => AttemptOutcome::Done,
        MOTET_NO_ACK => AttemptOutcome::NoAck,
        MOTET_BUSY => AttemptOutcome::Busy,
        MOTET_FAILED => AttemptOutcome::Failed,
        MOTET_UNKNOWN => AttemptOutcome::Unknown,
        _ => return Errno(MOTET_EINVAL).code(),
    };
    let at = Instant::from_micros(at_us);
    // SAFETY: the caller's promise.
    unsafe { on_event(node, mac::Event::Sent { outcome, at }, now_us) }
}

/// Writes what the radio shall do next to `action`; call until it returns 0. Returns 1, 0 (nothing),
/// or -MOTET_EFAULT, EBADF.
///
/// # Safety
/// `node` is null, or what motet_node_init gave, or memory that may be read; no other call of this
/// node is under way. Unless it is null or misaligned, `action` points to room for an action.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_poll(
    node: *mut motet_node,
    now_us: u64,
    action: *mut motet_action,
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with_clock(
            node,
            now_us,
            |motet_node {
                 node,
                 sockets,
                 joining,
                 out,
                 ..
             },
             now| {
                let place = place(action)?;
                loop {
                    match node.poll_action(now, out) {
                        Some((_, Action::Mesh(action))) => {
                            write(place, action, out);
                            return Ok(1);
                        }
                        Some(_) => {}
                        None if joining.poll(node, now) => {}
                        None => break,
                    }
                }
                // Resets are out: what closed in the background may end.
                sockets.sweep(node);
                Ok(0)
            },
        )
    })
}

fn write(place: &mut MaybeUninit<motet_action>, action: mac::Action, out: &mut [u8]) {
    let (kind, len, at, channel) = match action {
        mac::Action::Preload { len } => (MOTET_PRELOAD, len, Instant::ORIGIN, 0),
        mac::Action::AssessChannel => (MOTET_ASSESS, 0, Instant::ORIGIN, 0),
        mac::Action::Fire => (MOTET_FIRE, 0, Instant::ORIGIN, 0),
        mac::Action::Transmit { len, at } => (MOTET_TRANSMIT, len, at, 0),
        #[cfg(feature = "relay")]
        mac::Action::SetPending { of, pending } => {
            let kind = match pending {
                true => MOTET_SET_PENDING,
                false => MOTET_CLEAR_PENDING,
            };
            (kind, write_address(of, out), Instant::ORIGIN, 0)
        }
        mac::Action::Listen => (MOTET_LISTEN, 0, Instant::ORIGIN, 0),
        // A leaf is nobody's parent, and says nothing of packets that wait.
        #[cfg(not(feature = "relay"))]
        mac::Action::SetPending { .. } => (MOTET_LISTEN, 0, Instant::ORIGIN, 0),
        mac::Action::Sleep => (MOTET_SLEEP, 0, Instant::ORIGIN, 0),
        mac::Action::ChangeChannel { channel } => {
            (MOTET_CHANGE_CHANNEL, 0, Instant::ORIGIN, channel)
        }
    };
    place.write(motet_action {
        at_us: at.as_micros(),
        bytes: out.as_ptr(),
        // A PSDU's length, at the most.
        len: len as u16,
        kind,
        channel,
    });
}

/// Writes a neighbour's address to the begin of `out`; returns its length, 0 for all neighbours.
#[cfg(feature = "relay")]
fn write_address(of: Option<LinkAddr>, out: &mut [u8]) -> usize {
    let (short, extended);
    let bytes: &[u8] = match of {
        Some(LinkAddr::Short(addr)) => {
            short = addr.to_be_bytes();
            &short
        }
        Some(LinkAddr::Extended(addr)) => {
            extended = addr;
            &extended
        }
        _ => &[],
    };
    let Some(place) = out.get_mut(..bytes.len()) else {
        return 0;
    };
    place.copy_from_slice(bytes);
    bytes.len()
}

/// Writes when to call motet_poll again though nothing happened to `at_us`. Returns 1, 0 (never), or
/// -MOTET_EFAULT, EBADF.
///
/// # Safety
/// As motet_poll; unless it is null or misaligned, `at_us` points to room for a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_next_deadline(node: *mut motet_node, at_us: *mut u64) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with(node, |node| {
            let place = place(at_us)?;
            let at = node.joining.or_deadline(node.node.next_deadline());
            Ok(at.map_or(0, |at| {
                place.write(at.as_micros());
                1
            }))
        })
    })
}

/// Writes the node's address number `index`, from 0 on, to the 16 bytes at `address`: the first is
/// that on the link, then those of the mesh's prefix. Returns 0, or -MOTET_EFAULT, EBADF, ENOENT.
///
/// # Safety
/// As motet_poll; unless it is null, `address` points to room for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_address(
    node: *mut motet_node,
    index: usize,
    address: *mut [u8; 16],
) -> i32 {
    // SAFETY: the caller's promises.
    code(unsafe {
        with(node, |node| {
            let place = place(address)?;
            let found = node.node.ip().addresses().nth(index);
            place.write(found.ok_or(Errno(MOTET_ENOENT))?.addr.octets());
            Ok(0)
        })
    })
}

/// # Safety
/// As [`motet_poll`].
unsafe fn on_event(node: *mut motet_node, event: mac::Event<'_>, now_us: u64) -> i32 {
    // SAFETY: the caller's promise.
    code(unsafe {
        with_clock(node, now_us, |node, now| {
            node.node.on_event(InterfaceId(0), Event::Mesh(event), now);
            Ok(0)
        })
    })
}
