//! The frames waiting to be sent: a first-in first-out list over borrowed slots.
//!
//! Lives here rather than in `storage` because a slot knows which neighbour it is for.
//! A slot holds the MAC payload only; the header is written anew for each attempt.

use crate::limits::FRAME_PAYLOAD_LEN_MAX;
use crate::time::{Duration, Instant};
use crate::wire::{LinkAddr, cursor};

/// The class of a frame that asks for room in the queue; each class leaves some to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Neighbour discovery, errors, routing: may take the last slot.
    Control,
    /// A frame that came in and goes on: dropped when it finds no room.
    Forward,
    /// This node's own data, which can wait for room.
    Own,
    /// A frame for a child that listens: takes the last slot, and stands before all others.
    #[cfg(feature = "sleepy")]
    Indirect,
}

/// The event that a queued frame waits for before an attempt at it begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// The frame waits only for its turn.
    No,
    /// The frame waits for the next frame from the previous hop, up to a time limit.
    Next,
    /// The frame waits for a notification, without a time limit.
    Notice,
}

/// What a frame is in a network with a key. One byte, for a slot has little to spare.
#[cfg(feature = "security")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Secret {
    /// A part of a packet of the link, sealed where there is a key.
    Packet,
    /// A challenge or an answer to one, of which the link above knows nothing.
    Proof,
    /// In clear: a datagram of a node that has no key yet, or for one; or one of MLE, which is
    /// sealed itself.
    #[cfg(any(feature = "join", feature = "thread"))]
    Clear,
}

/// A frame to be queued.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The neighbour that the frame is for, or [`LinkAddr::BROADCAST`].
    pub to: LinkAddr,
    /// Comes back in the [`Outcome`](super::Outcome); frames of one datagram share it, so that
    /// [`Mac::cancel`](super::Mac::cancel) finds them.
    pub token: u16,
    /// MAC payload: what stands between MAC header and FCS.
    pub payload: &'a [u8],
    /// Which class of sender asks for room.
    pub class: Class,
    /// Since when it has been at this node: when it came, or when its packet was taken up to
    /// be sent. [`Config::frame_age_max`](super::Config::frame_age_max) counts from here.
    pub since: Instant,
}

/// Room for one frame, borrowed from the caller; [`FrameSlot::EMPTY`] to begin with.
///
/// The small fields come first, and the frame last, because a Cortex-M0+ reaches a byte with one
/// instruction only up to 31 bytes from the start. In the compiler's order a mote is 120 B larger.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct FrameSlot {
    len: u8,
    /// The slot behind this one in the queue.
    next: u8,
    used: bool,
    /// Attempts at this frame that have failed.
    pub(super) attempts: u8,
    /// Those of them in which the frame did not go out.
    pub(super) unsent: u8,
    /// Sequence number, given at the first attempt and kept for every retry.
    pub(super) dsn: Option<u8>,
    /// Whether the frame is a data request.
    #[cfg(feature = "sleepy")]
    pub(super) is_request: bool,
    /// Whether the frame is for a child that listens.
    #[cfg(feature = "sleepy")]
    pub(super) is_indirect: bool,
    /// What the frame is, beside a part of a packet of the link.
    #[cfg(feature = "security")]
    pub(super) secret: Secret,
    /// Whether the frame came in and goes on.
    #[cfg(feature = "entry")]
    pub(super) is_passed_on: bool,
    /// Whether the condition in [`super::immediate`] is this frame's.
    pub(super) is_conditional: bool,
    /// The event that the frame waits for before it is sent.
    pub(super) wait: Wait,
    pub(super) token: u16,
    /// Low bits of [`Frame::since`], in units of [`TICK_SHIFT`]; none for a frame that is to wait
    /// for longer than frames may.
    since: Option<u16>,
    pub(super) to: LinkAddr,
    /// End of the wait that `wait` names, or of the retry delay.
    pub(super) not_before: Instant,
    bytes: [u8; FRAME_PAYLOAD_LEN_MAX],
}

impl FrameSlot {
    /// A slot with nothing in it: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        bytes: [0; FRAME_PAYLOAD_LEN_MAX],
        len: 0,
        next: 0,
        used: false,
        attempts: 0,
        unsent: 0,
        dsn: None,
        token: 0,
        since: None,
        to: LinkAddr::Short(0),
        #[cfg(feature = "sleepy")]
        is_request: false,
        #[cfg(feature = "sleepy")]
        is_indirect: false,
        #[cfg(feature = "security")]
        secret: Secret::Packet,
        #[cfg(feature = "entry")]
        is_passed_on: false,
        is_conditional: false,
        wait: Wait::No,
        not_before: Instant::ORIGIN,
    };

    /// Whether the frame has been here for longer than `age_max`. Frames leave the queue, at the
    /// latest, when it is their turn after that, long before the ticks come round.
    pub(super) fn is_older_than(&self, age_max: Duration, now: Instant) -> bool {
        let age = |since: u16| ticks(now).wrapping_sub(since);
        let age_max = age_max.as_micros() >> TICK_SHIFT;
        self.since
            .is_some_and(|since| u64::from(age(since)) > age_max)
    }

    /// Lets the frame wait for as long as it takes.
    pub(super) const fn never_expires(&mut self) {
        self.since = None;
    }

    /// Whether the frame is for a child that listens.
    #[inline(always)]
    pub(super) const fn is_for_child(&self) -> bool {
        #[cfg(feature = "sleepy")]
        return self.is_indirect;
        #[cfg(not(feature = "sleepy"))]
        return false;
    }

    /// Whether the frame goes out in clear though the node may have a key.
    #[inline(always)]
    pub(super) const fn is_in_clear(&self) -> bool {
        #[cfg(any(feature = "join", feature = "thread"))]
        return matches!(self.secret, Secret::Clear);
        #[cfg(not(any(feature = "join", feature = "thread")))]
        return false;
    }

    /// The frame's MAC payload: what a link handed down.
    pub(super) fn payload(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// First-in first-out, except that any frame may be taken out of the middle.
#[derive(Debug)]
pub(super) struct FrameQueue<'m> {
    slots: &'m mut [FrameSlot],
    head: u8,
    tail: u8,
    len: u8,
}

impl<'m> FrameQueue<'m> {
    /// An empty queue over `slots`, of which the first 255 are used.
    pub(super) fn new(slots: &'m mut [FrameSlot]) -> Self {
        for slot in slots.iter_mut() {
            slot.used = false;
        }
        Self {
            slots,
            head: NIL,
            tail: NIL,
            len: 0,
        }
    }

    /// The slots it was lent.
    pub(super) fn into_memory(self) -> &'m mut [FrameSlot] {
        self.slots
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.len().min(usize::from(NIL))
    }

    /// Appends a frame; returns its slot, or `None` when every slot is taken or the payload
    /// does not fit one.
    pub(super) fn push(&mut self, frame: &Frame<'_>) -> Option<u8> {
        let payload = frame.payload;
        let len = u8::try_from(payload.len()).ok()?;
        if payload.len() > FRAME_PAYLOAD_LEN_MAX {
            return None;
        }
        let (index, slot) = (0..NIL)
            .zip(self.slots.iter_mut())
            .find(|(_, slot)| !slot.used)?;
        cursor::copy(&mut slot.bytes, payload);
        slot.len = len;
        slot.next = NIL;
        slot.used = true;
        slot.attempts = 0;
        slot.unsent = 0;
        slot.dsn = None;
        slot.token = frame.token;
        slot.since = Some(ticks(frame.since));
        slot.to = frame.to;
        #[cfg(feature = "security")]
        {
            slot.secret = Secret::Packet;
        }
        #[cfg(feature = "entry")]
        {
            slot.is_passed_on = frame.class == Class::Forward;
        }
        slot.is_conditional = false;
        slot.wait = Wait::No;
        slot.not_before = Instant::ORIGIN;
        self.insert(index, frame.class);
        self.len = self.len.wrapping_add(1);
        Some(index)
    }

    /// Puts a new frame, in slot `index`, behind all others; one for a child that listens behind
    /// others of that kind.
    #[cfg(feature = "sleepy")]
    fn insert(&mut self, index: u8, class: Class) {
        let is_indirect = class == Class::Indirect;
        let previous = match is_indirect {
            true => {
                let before = self.iter().take_while(|(_, slot)| slot.is_indirect);
                before.last().map_or(NIL, |(index, _)| index)
            }
            false => self.tail,
        };
        let next = match previous {
            NIL => self.head,
            _ => self.get(previous).map_or(NIL, |slot| slot.next),
        };
        self.link(previous, index);
        if let Some(slot) = self.get_mut(index) {
            (slot.is_request, slot.is_indirect) = (false, is_indirect);
            slot.next = next;
        }
        if next == NIL {
            self.tail = index;
        }
    }

    /// Puts a new frame, in slot `index`, behind all others.
    #[cfg(not(feature = "sleepy"))]
    fn insert(&mut self, index: u8, _: Class) {
        self.link(self.tail, index);
        self.tail = index;
    }

    /// Takes the frame out, wherever it stands; false when the slot is empty.
    pub(super) fn remove(&mut self, index: u8) -> bool {
        let mut previous = NIL;
        let mut at = self.head;
        while at != index {
            let Some(slot) = self.get(at) else {
                return false;
            };
            (previous, at) = (at, slot.next);
        }
        let Some(slot) = self.get_mut(index) else {
            return false;
        };
        slot.used = false;
        let next = slot.next;
        self.link(previous, next);
        if self.tail == index {
            self.tail = previous;
        }
        self.len = self.len.wrapping_sub(1);
        true
    }

    // Not inlined: one copy for its many callers spares a mote 130 B, and one of the next function
    // 40 B.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn get(&self, index: u8) -> Option<&FrameSlot> {
        self.slots.get(usize::from(index)).filter(|slot| slot.used)
    }

    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(super) fn get_mut(&mut self, index: u8) -> Option<&mut FrameSlot> {
        self.slots
            .get_mut(usize::from(index))
            .filter(|slot| slot.used)
    }

    /// Does something to every frame, in no order.
    pub(super) fn for_each(&mut self, act: impl FnMut(&mut FrameSlot)) {
        self.slots.iter_mut().filter(|slot| slot.used).for_each(act);
    }

    /// The frames with their slots, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &FrameSlot)> {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let index = at;
            let slot = self.get(index)?;
            at = slot.next;
            Some((index, slot))
        })
    }

    /// The slot of the oldest frame of which that is true, or [`NIL`].
    pub(super) fn find(&self, is: impl Fn(&FrameSlot) -> bool) -> u8 {
        let found = self.iter().find(|(_, slot)| is(slot));
        found.map_or(NIL, |(index, _)| index)
    }

    /// How many frames that is true of.
    pub(super) fn count(&self, is: impl Fn(&FrameSlot) -> bool) -> usize {
        self.iter().filter(|(_, slot)| is(slot)).count()
    }

    fn link(&mut self, previous: u8, index: u8) {
        match self.get_mut(previous) {
            Some(slot) => slot.next = index,
            None => self.head = index,
        }
    }
}

const fn ticks(at: Instant) -> u16 {
    (at.as_micros() >> TICK_SHIFT) as u16
}

/// 2^10 µs: sixteen bits come round after 67 s.
const TICK_SHIFT: u32 = 10;
/// An index that names no slot.
pub(super) const NIL: u8 = u8::MAX;
