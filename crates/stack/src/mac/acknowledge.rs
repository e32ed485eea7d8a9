//! Immediate ACKs: those this node owes, and those it waits for.
//!
//! Source: IEEE 802.15.4-2006 §7.5.6.4.

use super::config::{ACK_AIR_TIME, TURNAROUND};
use super::state::State;
use super::{Action, FrameDrop, Mac};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::Header;

/// The ACK this node owes; at most one, since the next frame cannot begin before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Acknowledgment {
    None,
    /// The ACK has to be on the air from `at`.
    Due {
        dsn: u8,
        at: Instant,
    },
    /// Handed to the radio, which shall answer by `until`.
    OnAir {
        until: Instant,
    },
}

impl Acknowledgment {
    pub(super) const fn is_on_air(self) -> bool {
        matches!(self, Self::OnAir { .. })
    }
}

impl Mac<'_> {
    /// Schedules an ACK for the frame with `dsn`, which ended at `frame_end`. Returns whether it
    /// can be sent.
    pub(super) fn owe_acknowledgment(&mut self, dsn: u8, frame_end: Instant) -> bool {
        if self.radio.auto_ack {
            return true;
        }
        if self.acknowledgment.is_on_air() {
            self.counters.drop(FrameDrop::AckTooLate);
            return false;
        }
        if matches!(self.acknowledgment, Acknowledgment::Due { .. }) {
            self.counters.drop(FrameDrop::AckTooLate);
        }
        self.acknowledgment = Acknowledgment::Due {
            dsn,
            at: frame_end + TURNAROUND,
        };
        true
    }

    /// Whether an ACK is to be handed to the radio: [`Self::poll_acknowledgment`] has it.
    pub(crate) const fn owes_acknowledgment(&self) -> bool {
        matches!(self.acknowledgment, Acknowledgment::Due { .. })
    }

    /// The ACK that is due, unless its sender has stopped waiting for it.
    /// [`Mac::poll_action`] yields it too, before anything else; this call does nothing besides.
    pub(crate) fn poll_acknowledgment(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        let Acknowledgment::Due { dsn, at } = self.acknowledgment else {
            return None;
        };
        if self.state.is_firing() {
            return None;
        }
        let slack = self.config.ack_wait - TURNAROUND - ACK_AIR_TIME;
        let late = now.since(at);
        if late > slack {
            self.acknowledgment = Acknowledgment::None;
            self.counters.drop(FrameDrop::AckTooLate);
            // A frame that was to follow the ACK at once: no ACK has silenced the others in reach.
            if self.state == State::Triggered {
                self.assess_again(now);
            }
            return None;
        }
        // Its sender waits where it has found us.
        if let Some(action) = self.tune(self.home()) {
            self.interrupt_attempt(now);
            return Some(action);
        }
        self.acknowledgment = Acknowledgment::None;
        let len = Header::ack(dsn, self.serving.take_pending())
            .emit_mpdu(&[], out)
            .ok()?;
        let len = self.checked(len, out)?;
        if late > self.config.ack_slack {
            self.counters.acks_late = self.counters.acks_late.wrapping_add(1);
        }
        self.interrupt_attempt(now);
        self.acknowledgment = Acknowledgment::OnAir {
            until: now + self.config.answer_timeout,
        };
        Some(Action::Transmit {
            len,
            at: at.max(now),
        })
    }

    /// Whether the frame that the radio has just transmitted was our ACK.
    pub(super) fn acknowledgment_sent(&mut self) -> bool {
        let sent = self.acknowledgment.is_on_air();
        if sent {
            self.acknowledgment = Acknowledgment::None;
            self.counters.acks_sent = self.counters.acks_sent.wrapping_add(1);
        }
        sent
    }

    /// Gives up waiting for the radio to finish our ACK; whether that was due.
    pub(super) fn acknowledgment_expired(&mut self, now: Instant) -> bool {
        let expired =
            matches!(self.acknowledgment, Acknowledgment::OnAir { until } if now >= until);
        if expired {
            self.acknowledgment = Acknowledgment::None;
        }
        expired
    }

    /// An ACK came in, and ended `at`. It bears no address: the sequence number and the
    /// moment are all there is to go by.
    ///
    /// The number alone does not suffice: relays of one path send in step, so that numbers
    /// once equal stay so, and when their frames collide the ACK of one answers the other too.
    pub(super) fn on_acknowledgment(
        &mut self,
        (dsn, pending): (u8, bool),
        at: Instant,
        now: Instant,
    ) -> Result<(), FrameDrop> {
        let slot = self.queue.get(self.current).ok_or(FrameDrop::StrayAck)?;
        let State::AwaitingAck { sent_at, .. } = self.state else {
            return Err(FrameDrop::StrayAck);
        };
        let to = slot.to;
        if slot.dsn != Some(dsn) {
            return Err(FrameDrop::StrayAck);
        }
        self.credit(to, now)?;
        let on_time = sent_at + TURNAROUND + ACK_AIR_TIME;
        let (early, late) = (on_time.since(at), at.since(on_time));
        let stamps = self.radio.stamp_delay_max;
        let early_max = self.config.ack_slack + stamps;
        if early > early_max || late > early_max + stamps {
            let us = |span: Duration| i32::try_from(span.as_micros()).unwrap_or(i32::MAX);
            self.counters.mistimed_by_us = us(late).wrapping_sub(us(early));
            return Err(FrameDrop::MistimedAck);
        }
        self.was_acknowledged(to, pending, at, now);
        Ok(())
    }

    /// Whether an ACK in the name of `to` counts.
    ///
    /// # Errors
    /// [`FrameDrop::StrayAck`]: it may come from another node.
    pub(super) fn credit(&mut self, to: LinkAddr, now: Instant) -> Result<(), FrameDrop> {
        if !self.disbelieves(to) {
            return Ok(());
        }
        // The parent may be there all the same, and answer a frame under a key that this node
        // should have left by one under the key in force.
        self.await_answer(now);
        Err(FrameDrop::StrayAck)
    }

    /// The frame under way was acknowledged by `to`; its ACK ended `at`.
    pub(super) fn was_acknowledged(
        &mut self,
        to: LinkAddr,
        pending: bool,
        at: Instant,
        now: Instant,
    ) {
        let exchange = now.since(self.started);
        self.neighbors.record(to, Some(exchange), now);
        #[cfg(feature = "security")]
        self.note_acknowledged(to);
        self.space_after(at);
        self.on_poll_answer(pending, now);
        self.is_acknowledged = true;
        self.finish(None);
    }
}
