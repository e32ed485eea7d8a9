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
//! copied again after them.
//!
//! Place: [`Mac::enqueue_conditional`] in place of [`Mac::enqueue`]. A radio with one buffer
//! cannot keep a frame while it receives: there the two calls do the same.
//!
//! Source: Conditional immediate transmission, §4 and figure 2. Differs: the paper's packet
//! waits for ever; here `until` bounds the wait.

use super::csma::State;
use super::queue::{FrameSlot, NIL};
use super::{Class, Drop, Mac};
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ieee802154::{FrameType, Header};

/// Which incoming frame fires a waiting one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Who must have sent it: the previous hop.
    pub from: LinkAddr,
    /// What it must begin with.
    pub protocol: Protocol,
}

/// A protocol, by the first byte of its frames' payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protocol {
    /// The bits that tell it.
    pub mask: u8,
    /// Their value.
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

    const fn begins(self, first: u8) -> bool {
        first & self.mask == self.value
    }
}

/// The frames that wait: all for one neighbour, and for the same condition.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The oldest, or [`NIL`].
    pub(super) slot: u8,
    condition: Condition,
}

impl Waiting {
    pub(super) const NONE: Self = Self {
        slot: NIL,
        condition: Condition {
            from: LinkAddr::Short(0),
            protocol: Protocol::byte(0),
        },
    };
}

/// Whether there is any of this; a node without it pays nothing for it.
const ENABLED: bool = cfg!(feature = "cit");

/// Frames that wait at one time: an arrival that fires none, because the radio was busy with
/// a frame the other way, makes one more.
const WAITING_MAX: usize = 3;

impl Mac<'_> {
    /// Whether frames can wait in this radio for their condition; never without the feature
    /// `cit`.
    pub const fn can_preload(&self) -> bool {
        ENABLED && !self.radio.shared_buffer
    }

    /// As [`Self::enqueue`], but the frame waits for `condition`, until `until`. One that comes
    /// later and waits for the same lets it wait as long as itself: what moves on may wait.
    ///
    /// A frame for another neighbour or condition that waits already, or one without a
    /// condition that comes later, ends the wait: then the normal path serves it.
    ///
    /// # Errors
    /// As [`Self::enqueue`].
    pub fn enqueue_conditional(
        &mut self,
        to: LinkAddr,
        token: u16,
        payload: &[u8],
        class: Class,
        condition: Condition,
        until: Instant,
    ) -> Result<(), Drop> {
        let index = self.push(to, token, payload, class)?;
        if !self.can_preload() {
            return Ok(());
        }
        if self.oldest().is_some_and(|slot| slot.to != to) || self.waiting.condition != condition {
            self.release_all();
        }
        self.waiting.condition = condition;
        if let Some(slot) = self.queue.get_mut(index) {
            slot.is_conditional = true;
            slot.waits = true;
        }
        // As long as frames come, those before them move on.
        self.queue.for_each(|slot| {
            if slot.waits {
                slot.not_before = until;
            }
        });
        self.counters.conditional = self.counters.conditional.wrapping_add(1);
        if self.queue.iter().filter(|(_, slot)| slot.waits).count() > WAITING_MAX {
            self.release(self.waiting.slot);
        }
        self.find_oldest();
        Ok(())
    }

    /// The first bytes of a frame for this node that has come without error: may fire the
    /// waiting one. Where software acknowledges, [`Self::trigger`] waits for the whole frame.
    pub(super) fn on_head(&mut self, head: &[u8], now: Instant) {
        // Mostly there is nothing to fire: then nothing is parsed.
        if !ENABLED || self.loaded == NIL {
            return;
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
            self.trigger(src, payload);
        }
    }

    /// Fires the frame in the radio if a new frame from `src` is what it waits for, or waited
    /// for until a backoff took its place.
    pub(super) fn trigger(&mut self, src: LinkAddr, payload: &[u8]) {
        if !ENABLED {
            return;
        }
        let Condition { from, protocol } = self.waiting.condition;
        let begins = payload.first().is_some_and(|first| protocol.begins(*first));
        let index = self.loaded;
        let is_free = match self.state {
            State::Idle => self.outcome.is_none(),
            State::Backoff { .. } => self.current == index,
            _ => false,
        };
        let first_attempt = |slot: &FrameSlot| slot.is_conditional && slot.attempts == 0;
        let may_go = self.queue.get(index).is_some_and(first_attempt);
        // The frame that was under way when it was copied may have to be repeated before it.
        if src == from && begins && is_free && may_go && !self.waits_behind(index) {
            self.release(index);
            self.current = index;
            self.begin_attempt();
            self.state = State::Triggered;
            self.counters.immediate = self.counters.immediate.wrapping_add(1);
        }
    }

    /// Ends the wait of all frames to `to`.
    pub(super) fn release_to(&mut self, to: LinkAddr) {
        let waiting = self.oldest();
        if waiting.is_some_and(|slot| slot.to == to) {
            self.release_all();
        }
    }

    fn release_all(&mut self) {
        self.queue.for_each(|slot| {
            slot.is_conditional = false;
            slot.waits = false;
        });
        self.waiting.slot = NIL;
    }

    /// Ends the wait of one frame.
    pub(super) fn release(&mut self, index: u8) {
        if !ENABLED {
            return;
        }
        if let Some(slot) = self.queue.get_mut(index) {
            slot.waits = false;
        }
        self.find_oldest();
    }

    /// Ends the waits that have been long enough. What is in the radio promises another frame,
    /// which did not come: it is written anew.
    pub(super) fn expire_waiting(&mut self, now: Instant) {
        while let Some(slot) = self.oldest()
            && now >= slot.not_before
        {
            if self.loaded == self.waiting.slot {
                self.loaded = NIL;
            }
            self.release(self.waiting.slot);
            self.counters.flushed = self.counters.flushed.wrapping_add(1);
        }
    }

    /// The frame that has waited longest.
    fn oldest(&self) -> Option<&FrameSlot> {
        match ENABLED {
            true => self.queue.get(self.waiting.slot),
            false => None,
        }
    }

    /// Notes which one that is.
    pub(super) fn find_oldest(&mut self) {
        if !ENABLED {
            return;
        }
        let oldest = self.queue.iter().find(|(_, slot)| slot.waits);
        self.waiting.slot = oldest.map_or(NIL, |(index, _)| index);
    }

    /// Whether the waiting frame is to be copied into the radio, which nobody else needs now.
    pub(super) fn may_arm(&self) -> bool {
        let slot = self.waiting.slot;
        ENABLED
            && slot != NIL
            && self.state == State::Idle
            && self.outcome.is_none()
            && self.loaded != slot
            && !self.waits_behind(slot)
    }

    /// When a waiting frame next needs the MAC, in [`State::Idle`].
    pub(super) fn waiting_deadline(&self) -> Option<Instant> {
        if self.may_arm() {
            return Some(Instant::ORIGIN);
        }
        Some(self.oldest()?.not_before)
    }
}
