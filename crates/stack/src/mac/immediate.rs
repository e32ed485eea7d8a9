//! Conditional immediate transmission: a frame waits in the radio and is fired by the next
//! one from the previous hop, before that has been copied.
//!
//! A relay's copies between radio and processor are then off the critical path: frame n - 1
//! is preloaded while the air is another's, and leaves a turnaround after frame n has come.
//! The air is known to be free: the previous hop has just used it, and our ACK, if there is
//! one, has been heard by all its neighbours. Hence neither backoff nor assessment. Only the
//! first attempt goes that way: retries take the normal path with its random delay.
//!
//! ```text
//! waiting --copied--> armed --condition--> triggered --> firing (csma.rs)
//!    \________________/ \__ `until`, or too many behind it: the normal path
//! ```
//!
//! The oldest waits in the radio, a few more in the queue, each for one arrival; none overtakes
//! another to the same neighbour. Other frames use the radio meanwhile, and the waiting one is
//! copied again after them. An alarm waits in the same way, but for a notification alone: it
//! neither goes out without one nor holds up others, and has the radio when none of them waits.
//!
//! Place: [`Mac::enqueue_conditional`] in place of [`Mac::enqueue`]. A radio with one buffer
//! cannot keep a frame while it receives, and one that assesses the channel or takes ACKs by itself
//! sends none at once: there the two calls do the same, and an alarm takes the normal path once it
//! has been asked for.
//!
//! Source: Conditional immediate transmission, §4 and figure 2. Differs: the paper's packet
//! waits for ever; here `until` bounds the wait.

use super::queue::{Frame, FrameSlot, NIL, Wait};
use super::state::State;
use super::{FrameDrop, Mac};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::{FrameType, Header};

/// Which incoming frame fires a waiting one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The neighbour that must have sent the frame: the previous hop.
    pub from: LinkAddr,
    /// The protocol by which that frame must begin.
    pub protocol: Protocol,
}

impl Condition {
    const NONE: Self = Self {
        from: LinkAddr::Short(0),
        protocol: Protocol::byte(0),
    };

    fn is_met(self, src: LinkAddr, payload: &[u8]) -> bool {
        let Protocol { mask, value } = self.protocol;
        src == self.from && payload.first().is_some_and(|first| first & mask == value)
    }
}

/// A protocol, by the first byte of its frames' payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocol {
    /// The bits that tell it.
    pub mask: u8,
    /// The value of these bits: `first & mask == value`.
    pub value: u8,
}

impl Protocol {
    /// FRAG1 and FRAGN (RFC 4944 §5.3), which differ in the bit left out.
    pub const FRAGMENTS: Self = Self {
        mask: 0b1101_1000,
        value: 0b1100_0000,
    };

    /// Frames that begin with this very byte.
    pub const fn byte(value: u8) -> Self {
        Self { mask: 0xff, value }
    }
}

/// The frames that wait for another frame to fire them: conditional immediate transmission (CIT
/// §4).
#[derive(Debug)]
pub(super) struct Waiting {
    /// The frame that is kept in the radio, or [`NIL`]: none waits.
    pub(super) slot: u8,
    /// Whether the last new frame went unanswered: then its repetition fires, if it is answered.
    pub(super) is_owed: bool,
    /// The condition of the frames that [`Wait::Next`] marks, all for one neighbour.
    next: Condition,
    /// The condition of the frame that [`Wait::Notice`] marks.
    notice: Condition,
}

impl Waiting {
    pub(super) const NONE: Self = Self {
        slot: NIL,
        is_owed: false,
        next: Condition::NONE,
        notice: Condition::NONE,
    };

    /// The neighbour whose next frame fires one of the waiting frames.
    #[cfg(feature = "security")]
    pub(super) const fn fired_by(&self) -> LinkAddr {
        self.next.from
    }
}

/// How long a fragment waits in the radio for the next one that its sender has promised: some six
/// frame times, and longer than the time between two frames on a chain of one channel.
pub(crate) const FLUSH_AFTER: Duration = Duration::from_millis(30);

/// Whether this build has conditional transmission; a node without it pays nothing for it.
pub(super) const ENABLED: bool = cfg!(feature = "cit");

/// Frames that wait at one time: an arrival that fires none, because the radio was busy with
/// a frame the other way, makes one more.
const WAITING_MAX: usize = 3;

impl Mac<'_> {
    /// Whether frames can wait in this radio for their condition; never without the feature
    /// `cit`.
    pub(crate) const fn can_preload(&self) -> bool {
        ENABLED && !self.radio.shared_buffer && !self.radio.is_offloading()
    }

    /// As [`Self::enqueue`], but the frame waits for `condition`, until `until` at most. Told to
    /// wait for longer than frames may grow old, it does not grow old.
    ///
    /// A frame to a neighbour that has not taken the last ones is not made to wait.
    /// A frame for another neighbour or condition that waits already, or one without a
    /// condition that comes later, ends the wait: then the normal path serves it.
    ///
    /// # Errors
    /// As [`Self::enqueue`].
    pub fn enqueue_conditional(
        &mut self,
        frame: &Frame<'_>,
        condition: Condition,
        until: Instant,
    ) -> Result<(), FrameDrop> {
        let index = self.push(frame)?;
        let to = frame.to;
        if !self.can_preload() || self.neighbors.is_silent(to) {
            return Ok(());
        }
        let is_other = |slot: &FrameSlot| slot.wait == Wait::Next && slot.to != to;
        if self.queue.count(is_other) > 0 || self.waiting.next != condition {
            self.release_all();
        }
        self.waiting.next = condition;
        if let Some(slot) = self.queue.get_mut(index) {
            slot.is_conditional = true;
            slot.wait = Wait::Next;
            slot.not_before = until;
            if until.since(frame.since) > self.config.frame_age_max {
                slot.never_expires();
            }
        }
        self.counters.conditional = self.counters.conditional.wrapping_add(1);
        if self.count(Wait::Next) > WAITING_MAX {
            self.release(self.waiting.slot);
        }
        self.choose();
        Ok(())
    }

    /// Queues a frame that nothing but a notification sends: an alarm, say. It may wait for
    /// ever, and holds up no other frame; [`Self::cancel`] takes it back. A radio that can
    /// keep a frame fires it at once, any other sends it the normal path.
    ///
    /// # Errors
    /// As [`Self::enqueue`]; [`FrameDrop::QueueFull`] as well while another one waits.
    #[cfg(feature = "cit")]
    pub fn enqueue_alarm(&mut self, frame: &Frame<'_>, notice: Condition) -> Result<(), FrameDrop> {
        if self.count(Wait::Notice) > 0 {
            self.counters.drop(FrameDrop::QueueFull);
            return Err(FrameDrop::QueueFull);
        }
        let index = self.push(frame)?;
        if let Some(slot) = self.queue.get_mut(index) {
            slot.wait = Wait::Notice;
            slot.never_expires();
        }
        self.waiting.notice = notice;
        self.counters.conditional = self.counters.conditional.wrapping_add(1);
        self.choose();
        Ok(())
    }

    /// The first bytes of a frame for this node that has come without error: may fire the
    /// waiting one. Where software acknowledges, [`Self::trigger`] waits for the whole frame.
    pub(super) fn on_head(&mut self, head: &[u8], now: Instant) {
        // Mostly there is nothing to fire: then nothing is parsed.
        if !ENABLED || self.loaded == NIL {
            return;
        }
        if self.guard.is_on() {
            return self.hear_head(head, now);
        }
        let Ok((header, payload)) = Header::parse(head) else {
            return;
        };
        if header.frame_type != FrameType::Data || (header.ack_request && !self.radio.auto_ack) {
            return;
        }
        let Ok((src, _)) = self.filter(&header) else {
            return;
        };
        let lifetime = self.config.duplicate_lifetime;
        let repeats = self.neighbors.repeats(src, header.sequence, now, lifetime);
        if !(header.ack_request && repeats) {
            self.trigger(src, payload, now);
        }
    }

    /// A whole frame from `src`. One that gets no ACK comes again: what it would fire now must
    /// not cost it that answer.
    pub(super) fn on_new_frame(
        &mut self,
        src: LinkAddr,
        payload: &[u8],
        is_answered: bool,
        now: Instant,
    ) {
        if !ENABLED {
            return;
        }
        self.waiting.is_owed = !is_answered;
        if is_answered {
            self.trigger(src, payload, now);
        }
    }

    /// The last whole frame, again: fires what it did not fire for want of an ACK.
    pub(super) fn on_repetition(
        &mut self,
        src: LinkAddr,
        payload: &[u8],
        is_answered: bool,
        now: Instant,
    ) {
        if ENABLED && self.waiting.is_owed {
            self.on_new_frame(src, payload, is_answered, now);
        }
    }

    /// A new frame from `src`: fires the frame in the radio if that waits for it, or waited
    /// for it until a backoff took its place.
    pub(super) fn trigger(&mut self, src: LinkAddr, payload: &[u8], now: Instant) {
        if !ENABLED {
            return;
        }
        if self.waiting.notice.is_met(src, payload) {
            self.notify(now);
        }
        let index = self.loaded;
        let is_free = match self.state {
            State::Idle => self.outcome.is_none(),
            State::Backoff { .. } => self.current == index,
            _ => false,
        };
        let Some(slot) = self.queue.get(index).filter(|_| is_free) else {
            return;
        };
        let is_met = slot.is_conditional && self.waiting.next.is_met(src, payload);
        // The frame that was under way when it was copied may have to be repeated before it.
        if is_met && slot.attempts == 0 && !self.waits_behind(index) {
            self.release(index);
            self.fire_waiting(index, now);
        }
    }

    /// The notification has come: what waited for it goes at once, or as soon as it can.
    fn notify(&mut self, now: Instant) {
        let index = self.queue.find(|slot| slot.wait == Wait::Notice);
        self.release(index);
        let is_free = self.state == State::Idle && self.outcome.is_none();
        if is_free && index != NIL && self.loaded == index {
            self.fire_waiting(index, now);
        }
    }

    /// The frame in the radio goes at once, without a backoff: it follows at least one whole frame
    /// of another node, so that the interframe spacing has passed. Where late stamps hide that, it
    /// is assessed and sent as soon as they allow.
    fn fire_waiting(&mut self, index: u8, now: Instant) {
        self.current = index;
        self.begin_attempt(now);
        match self.is_spaced(now) {
            true => self.state = State::Triggered,
            false => self.assess_again(now),
        }
    }

    /// Whether a frame from `src` may fire anything.
    #[cfg(feature = "security")]
    pub(super) fn is_awaited(&self, src: LinkAddr) -> bool {
        self.waiting.next.from == src || self.waiting.notice.from == src
    }

    /// Ends the waits for the next frame, if they are of frames to `to`: no other overtakes them.
    pub(super) fn release_to(&mut self, to: LinkAddr) {
        let waits = |slot: &FrameSlot| slot.wait == Wait::Next && slot.to.is(&to);
        if self.queue.count(waits) > 0 {
            self.release_all();
        }
    }

    fn release_all(&mut self) {
        self.queue.for_each(|slot| {
            if slot.wait == Wait::Next {
                slot.is_conditional = false;
                slot.wait = Wait::No;
            }
        });
        self.choose();
    }

    /// Ends the wait of one frame.
    pub(super) fn release(&mut self, index: u8) {
        if !ENABLED {
            return;
        }
        if let Some(slot) = self.queue.get_mut(index) {
            slot.wait = Wait::No;
        }
        self.choose();
    }

    /// Ends the waits that have been long enough.
    pub(super) fn expire_waiting(&mut self, now: Instant) {
        if !ENABLED || self.waiting.slot == NIL {
            return;
        }
        let is_over = |slot: &FrameSlot| slot.wait == Wait::Next && now >= slot.not_before;
        while let index = self.queue.find(is_over)
            && index != NIL
        {
            self.counters.flushed = self.counters.flushed.wrapping_add(1);
            self.release(index);
        }
    }

    /// An attempt is over; counted if a condition had fired it.
    pub(super) fn end_immediate(&mut self, delivered: bool) {
        if core::mem::take(&mut self.is_immediate) {
            let counters = &mut self.counters;
            let count = match delivered {
                true => &mut counters.immediate_delivered,
                false => &mut counters.immediate_failed,
            };
            *count = count.wrapping_add(1);
        }
    }

    /// How many frames wait for such a thing.
    fn count(&self, wait: Wait) -> usize {
        self.queue.count(|slot| slot.wait == wait)
    }

    /// Notes which waiting frame is kept in the radio: the oldest that moves on with the next
    /// one, else an alarm.
    pub(super) fn choose(&mut self) {
        if !ENABLED {
            return;
        }
        let mut chosen = self.queue.find(|slot| slot.wait == Wait::Next);
        if chosen == NIL && self.can_preload() {
            chosen = self.queue.find(|slot| slot.wait == Wait::Notice);
        }
        self.waiting.slot = chosen;
    }

    /// Whether the waiting frame is to be copied into the radio, which no other frame needs now.
    pub(super) fn may_arm(&self) -> bool {
        let slot = self.waiting.slot;
        ENABLED
            && !self.guard.is_waiting()
            && slot != NIL
            && self.state == State::Idle
            && self.outcome.is_none()
            && self.loaded != slot
            && !self.waits_behind(slot)
    }

    /// When a waiting frame next needs the MAC, in [`State::Idle`].
    pub(super) fn waiting_deadline(&self) -> Option<Instant> {
        if !ENABLED || self.waiting.slot == NIL {
            return None;
        }
        if self.may_arm() {
            return Some(Instant::ORIGIN);
        }
        self.waits_until()
    }

    /// When the first of the frames that wait for a condition has waited long enough; `None`
    /// where none does, or only an alarm.
    pub fn waits_until(&self) -> Option<Instant> {
        let waits = |slot: &FrameSlot| slot.wait == Wait::Next;
        let waiting = self.queue.iter().filter(|(_, slot)| waits(slot));
        waiting.map(|(_, slot)| slot.not_before).min()
    }
}
