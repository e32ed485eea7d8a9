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
//!    \________________/ \__ `until`, or a frame behind it: the normal path
//! ```
//!
//! One frame waits at a time, the newest; it never overtakes one to the same neighbour. Other
//! frames use the radio meanwhile, and the waiting one is copied again after them.
//!
//! Place: [`Mac::enqueue_conditional`] in place of [`Mac::enqueue`]. A radio with one buffer
//! cannot keep a frame while it receives: there the two calls do the same.
//!
//! Source: Conditional immediate transmission, §4 and figure 2. Differs: the paper's packet
//! waits for ever; here `until` bounds the wait.

use super::csma::State;
use super::queue::NIL;
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

/// The frame that waits, if `slot` is one.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) slot: u8,
    condition: Condition,
    until: Instant,
}

impl Waiting {
    pub(super) const NONE: Self = Self {
        slot: NIL,
        condition: Condition {
            from: LinkAddr::Short(0),
            protocol: Protocol::byte(0),
        },
        until: Instant::ORIGIN,
    };
}

impl Mac<'_> {
    /// Whether frames can wait in this radio for their condition.
    pub const fn can_preload(&self) -> bool {
        !self.radio.shared_buffer
    }

    /// As [`Self::enqueue`], but the frame waits for `condition`, until `until` at the latest.
    ///
    /// A frame that waits already, or one to the same neighbour that comes later, ends the
    /// wait: then the normal path serves it.
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
        let slot = self.push(to, token, payload, class)?;
        if self.can_preload() {
            self.counters.conditional = self.counters.conditional.wrapping_add(1);
            self.waiting = Waiting {
                slot,
                condition,
                until,
            };
        }
        Ok(())
    }

    /// The first bytes of a frame for this node that has come without error: may fire the
    /// waiting one. Where software acknowledges, [`Self::trigger`] waits for the whole frame.
    pub(super) fn on_head(&mut self, head: &[u8], now: Instant) {
        // Nearly always nobody waits: nothing is parsed then.
        if self.waiting.slot == NIL {
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

    /// Fires the waiting frame if a new frame from `src` is the one it waits for.
    pub(super) fn trigger(&mut self, src: LinkAddr, payload: &[u8]) {
        let Waiting {
            slot, condition, ..
        } = self.waiting;
        let met = src == condition.from
            && payload
                .first()
                .is_some_and(|first| condition.protocol.begins(*first));
        let armed = slot != NIL && self.state == State::Idle && self.loaded == slot;
        // The frame that was under way when it was copied may have to be repeated before it.
        if met && armed && self.outcome.is_none() && !self.waits_behind(slot) {
            self.waiting.slot = NIL;
            self.current = slot;
            self.state = State::Triggered;
            self.counters.immediate = self.counters.immediate.wrapping_add(1);
        }
    }

    /// Ends the wait of a frame before another one to the same neighbour.
    pub(super) fn release_before(&mut self, to: LinkAddr) {
        let waiting = self.queue.get(self.waiting.slot);
        if waiting.is_some_and(|slot| slot.to == to) {
            self.waiting.slot = NIL;
        }
    }

    /// Ends a wait that has been long enough. What is in the radio promises another frame,
    /// which did not come: it is written anew.
    pub(super) fn expire_waiting(&mut self, now: Instant) {
        let slot = self.waiting.slot;
        if slot == NIL || now < self.waiting.until {
            return;
        }
        if self.loaded == slot {
            self.loaded = NIL;
        }
        self.waiting.slot = NIL;
        self.counters.flushed = self.counters.flushed.wrapping_add(1);
    }

    /// Whether the waiting frame is to be copied into the radio, which nobody else needs now.
    pub(super) fn may_arm(&self) -> bool {
        let slot = self.waiting.slot;
        slot != NIL
            && self.state == State::Idle
            && self.outcome.is_none()
            && self.loaded != slot
            && !self.waits_behind(slot)
    }

    /// When a waiting frame next needs the MAC, in [`State::Idle`].
    pub(super) fn waiting_deadline(&self) -> Option<Instant> {
        match self.waiting.slot {
            NIL => None,
            _ if self.may_arm() => Some(Instant::ORIGIN),
            _ => Some(self.waiting.until),
        }
    }
}
