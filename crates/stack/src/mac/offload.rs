//! Radios that make a whole attempt, or its end, by themselves: CSMA-CA, the ACK, or both.
//!
//! Co-processors behind a line and most operating systems' radio interfaces end in *send this
//! frame* → acknowledged, not acknowledged, channel busy. Such a radio answers [`Action::Fire`] by
//! [`Event::Sent`]; backoff and assessment are left out of the attempt where they are the radio's
//! ([`RadioCapabilities::assesses`]), and the wait for the ACK where that is
//! ([`RadioCapabilities::takes_acks`]). Queue, retries with their random delay, duplicates, and
//! what is known of neighbours are the same as with any radio.
//!
//! Until the answer the attempt stands in `State::Firing`, whose deadline is that of every answer
//! that a radio owes. Left out: the radio's own retries, which it has to be told not to make, and
//! its security; conditional transmission, which needs an order to send at once.
//!
//! [`Action::Fire`]: super::Action::Fire
//! [`Event::Sent`]: super::Event::Sent
//! [`RadioCapabilities::assesses`]: super::RadioCapabilities::assesses
//! [`RadioCapabilities::takes_acks`]: super::RadioCapabilities::takes_acks

use super::config::{ACK_AIR_TIME, TURNAROUND};
use super::radio::OFFLOADS;
use super::{AttemptOutcome, Mac};
use crate::random::Rng;
use crate::time::Instant;

impl Mac<'_> {
    /// The radio's attempt at the frame under way is over; the frame's last symbol left `at`.
    pub(super) fn on_sent(
        &mut self,
        outcome: AttemptOutcome,
        at: Instant,
        now: Instant,
        rng: &mut Rng,
    ) {
        // In a build without such radios the constructor has refused them.
        if !OFFLOADS || !self.state.is_firing() {
            return;
        }
        match outcome {
            AttemptOutcome::Busy => {
                self.note_busy();
                return self.channel_stayed_busy(now, rng);
            }
            AttemptOutcome::Failed => return self.radio_failed(now, rng),
            AttemptOutcome::Acked { .. }
            | AttemptOutcome::Done
            | AttemptOutcome::NoAck
            | AttemptOutcome::Unknown => {}
        }
        // By the radio's own clock it may have left in the future.
        let at = at.min(now);
        let asks = self.config.acknowledged && !self.is_for_all();
        if !asks || !self.radio.takes_acks {
            return self.on_transmit_done(at, now, rng);
        }
        self.counters.transmissions = self.counters.transmissions.wrapping_add(1);
        let to = self.queue.get(self.current).map(|slot| slot.to);
        match (outcome, to) {
            (AttemptOutcome::Acked { pending }, Some(to)) => match self.credit(to, now) {
                Ok(()) => self.was_acknowledged(to, pending, at + TURNAROUND + ACK_AIR_TIME, now),
                Err(reason) => {
                    self.counters.drop(reason);
                    self.went_unacknowledged(now, rng);
                }
            },
            (AttemptOutcome::Unknown, _) => {
                self.neighbors.see_nothing();
                self.space_after(at);
                self.finish(None);
            }
            _ => {
                self.space_after(at);
                self.went_unacknowledged(now, rng);
            }
        }
    }
}
