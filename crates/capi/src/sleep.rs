//! A node that sleeps, and asks its parent for what waits there.

use core::ffi::{CStr, c_char};
use core::ptr;

use motet::ip::InterfaceId;
use motet::link::Link;
use motet::mac::{Policy, Sleep};
use motet::time::Duration;

use crate::errno::{Errno, MOTET_EINVAL, code};
use crate::memory::{place, value};
use crate::node::{instant, motet_node, with};

/// The receiver is always on.
pub const MOTET_AWAKE: u8 = 0;
/// Asks the parent each `interval_ms` (TCPlp appendix C.1).
pub const MOTET_SLEEP_FIXED: u8 = 1;
/// Asks each 240 s, and each 100 ms while an answer is due (TCPlp section 9.2).
pub const MOTET_SLEEP_PAPER: u8 = 2;
/// Asks 20 ms after a packet, then after ever longer times, up to 5 s (TCPlp appendix C.2).
pub const MOTET_SLEEP_ADAPTIVE: u8 = 3;
/// Asks each `interval_ms`, and when TCP or motet_expect_answer expect an answer.
pub const MOTET_SLEEP_HINTED: u8 = 4;

/// How a node sleeps. motet_sleep_init fills it for a parent that runs Motet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_sleep {
    /// Time between requests at rest, ms, for MOTET_SLEEP_FIXED and MOTET_SLEEP_HINTED: what a peer
    /// sends unasked, such as a SYN, waits so long. 60,000 for a node that listens on a port.
    pub interval_ms: u32,
    /// How long the node listens for a packet that its parent has promised, ms; 250 where the parent's
    /// radio is behind a line.
    pub answer_timeout_ms: u16,
    /// MOTET_AWAKE or one of the others.
    pub policy: u8,
    /// Not 0: the parent sends all that waits upon one request; else one frame (OpenThread).
    pub drained: u8,
    /// Not 0: the parent says in the ACK of any frame that something waits, not only of a request.
    /// Not every radio does: 0 where the parent is `motet router` or `motet mote` on a dongle.
    pub rides: u8,
    /// Not 0: the node's own frames wait while it listens for those that were promised.
    pub alternates: u8,
}

/// Fills the settings of sleep with values for a parent that runs Motet: MOTET_SLEEP_HINTED, 60 s. Of
/// an archive with the feature `sleepy`, as all functions of sleep. Returns 0 or -MOTET_EFAULT.
///
/// # Safety
/// Unless it is null or misaligned, `sleep` points to room for settings of sleep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_sleep_init(sleep: *mut motet_sleep) -> i32 {
    let default = motet_sleep {
        interval_ms: 60_000,
        answer_timeout_ms: 50,
        policy: MOTET_SLEEP_HINTED,
        drained: 1,
        rides: 1,
        alternates: 1,
    };
    // SAFETY: the caller's promise.
    code(unsafe { place(sleep) }.map(|sleep| {
        sleep.write(default);
        0
    }))
}

/// What is wrong with settings of sleep that cannot be, in words; null: nothing.
///
/// # Safety
/// Unless it is null or misaligned, `sleep` points to settings of sleep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_sleep_fault(sleep: *const motet_sleep) -> *const c_char {
    // SAFETY: the caller's promise.
    let Ok(sleep) = (unsafe { value(sleep) }) else {
        return c"the pointer is null or misaligned".as_ptr();
    };
    fault(&sleep).map_or(ptr::null(), CStr::as_ptr)
}

/// Makes a node sleep, or with MOTET_AWAKE stay awake, from now on; call motet_poll then. Its receiver
/// stays on until a router has answered and become its parent. It asks that one at the times of the
/// policy, by frames of its own: the program asks nothing. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL
/// (motet_sleep_fault says what is wrong, or the node is a router of the mesh).
///
/// # Safety
/// As motet_poll; unless it is null or misaligned, `sleep` points to settings of sleep.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_set_sleep(node: *mut motet_node, sleep: *const motet_sleep) -> i32 {
    let set = |node: &mut motet_node| {
        // SAFETY: the caller's promise.
        let sleep = unsafe { value(sleep) }?;
        if fault(&sleep).is_some() || is_router(node) {
            return Err(Errno(MOTET_EINVAL));
        }
        let Some(Link::Mesh(mesh)) = node.node.link_mut(InterfaceId(0)) else {
            return Err(Errno(MOTET_EINVAL));
        };
        mesh.set_sleep(policy(&sleep).map(|policy| Sleep {
            policy,
            drained: sleep.drained != 0,
            rides: sleep.rides != 0,
            alternates: sleep.alternates != 0,
            answer_timeout: Duration::from_millis(sleep.answer_timeout_ms.into()),
        }));
        Ok(0)
    };
    // SAFETY: the caller's promise.
    code(unsafe { with(node, set) })
}

/// Says that the answer to a datagram comes by `until_us` or not at all: until then a node that sleeps
/// asks its parent ten times a second, unless its policy is MOTET_SLEEP_FIXED or
/// MOTET_SLEEP_ADAPTIVE. 0: no answer is expected any more. Call it after motet_udp_send, and
/// motet_poll then; what TCP expects the node knows. Returns 0, or -MOTET_EFAULT, EBADF, EINVAL (the
/// clock).
///
/// # Safety
/// As motet_poll.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_expect_answer(node: *mut motet_node, until_us: u64) -> i32 {
    let expect = |node: &mut motet_node| {
        let until = instant(until_us)?;
        node.node
            .expect_answer(Some(until).filter(|_| until_us > 0));
        Ok(0)
    };
    // SAFETY: the caller's promise.
    code(unsafe { with(node, expect) })
}

/// What is wrong with settings of sleep.
// Inlined, so that the words are only where they are asked for.
#[inline(always)]
fn fault(sleep: &motet_sleep) -> Option<&'static CStr> {
    let has_interval = matches!(sleep.policy, MOTET_SLEEP_FIXED | MOTET_SLEEP_HINTED);
    if sleep.policy > MOTET_SLEEP_HINTED {
        return Some(c"policy is none of MOTET_AWAKE, MOTET_SLEEP_FIXED and the others");
    }
    if has_interval && sleep.interval_ms == 0 {
        return Some(c"interval_ms is 0");
    }
    if sleep.policy != MOTET_AWAKE && sleep.answer_timeout_ms == 0 {
        return Some(c"answer_timeout_ms is 0");
    }
    None
}

/// When the parent is asked; `None`: never, the node is awake.
fn policy(sleep: &motet_sleep) -> Option<Policy> {
    let interval = Duration::from_millis(sleep.interval_ms.into());
    match sleep.policy {
        MOTET_SLEEP_FIXED => Some(Policy::Fixed(interval)),
        MOTET_SLEEP_PAPER => Some(Policy::Paper),
        MOTET_SLEEP_ADAPTIVE => Some(Policy::Adaptive),
        MOTET_SLEEP_HINTED => Some(Policy::Hinted(interval)),
        _ => None,
    }
}

#[cfg(feature = "relay")]
fn is_router(node: &motet_node) -> bool {
    node.node.rpl().is_some()
}

#[cfg(not(feature = "relay"))]
const fn is_router(_: &motet_node) -> bool {
    false
}
