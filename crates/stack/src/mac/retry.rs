//! The step behind an attempt: the next frame, a retry after a random delay, or giving up.

use super::queue::{FrameSlot, NIL, Wait};
use super::state::State;
use super::{FrameDrop, Mac, Outcome};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

impl Mac<'_> {
    /// The frame to send next and the earliest time for it, `now` at the earliest.
    ///
    /// The oldest that may start now, else the one that may start first. A frame never
    /// overtakes another to the same neighbour. While no counters are stored, only frames in clear
    /// start; while a node that sleeps listens, none does. Cost: quadratic in the queue only while
    /// frames are held back, linear otherwise.
    pub(super) fn next_start(&self, now: Instant) -> Option<(Instant, u8)> {
        // A challenge or its answer goes at once: the parent waits for it.
        let has_proof = || self.queue.iter().any(|(index, _)| self.is_proof(index));
        if self.poll.holds_back(now) && !has_proof() {
            return None;
        }
        let mut first = None;
        let is_waiting = self.guard.is_waiting();
        for (index, slot) in self.queue.iter() {
            if is_waiting && !slot.is_in_clear() {
                continue;
            }
            if slot.wait != Wait::No || (first.is_some() && self.waits_behind(index)) {
                continue;
            }
            let begun = slot.attempts > 0;
            let at = match begun {
                true => slot.not_before,
                false => self.neighbors.held_until(slot.to),
            };
            let at = at.max(now);
            let blocks = begun && self.config.retry_blocks_queue;
            if at == now || (blocks && !self.neighbors.is_doubtful(slot.to)) {
                return Some((at, index));
            }
            if first.is_none_or(|(earliest, _)| at < earliest) {
                first = Some((at, index));
            }
        }
        first
    }

    /// Whether an older frame to the same neighbour is still queued.
    pub(super) fn waits_behind(&self, index: u8) -> bool {
        let Some(to) = self.queue.get(index).map(|slot| slot.to) else {
            return false;
        };
        self.queue
            .iter()
            .take_while(|&(other, _)| other != index)
            .any(|(_, slot)| slot.to.is(&to) && slot.wait != Wait::Notice)
    }

    /// Ends the waits whose time is over.
    pub(super) fn expire(&mut self, now: Instant, rng: &mut Rng) {
        if self.acknowledgment_expired(now) {
            self.reset_radio(now);
        }
        self.expire_waiting(now);
        if self.state.answer_until().is_none_or(|until| now < until) {
            return;
        }
        if matches!(self.state, State::AwaitingAck { .. }) {
            self.went_unacknowledged(now, rng);
        } else {
            self.radio_failed(now, rng);
        }
    }

    /// Counts an attempt at a frame for `to`, and how long it took if it was acknowledged.
    #[cfg(test)]
    pub(crate) fn note_attempt(&mut self, to: LinkAddr, exchange: Option<Duration>, now: Instant) {
        self.neighbors.record(to, exchange, now);
    }

    /// Counts an assessment before a frame for `to` that found the channel busy.
    #[cfg(test)]
    pub(crate) fn note_busy_for(&mut self, to: LinkAddr) {
        self.neighbors.note_busy(to);
    }

    /// The frame under way was sent, and not acknowledged.
    pub(super) fn went_unacknowledged(&mut self, now: Instant, rng: &mut Rng) {
        self.counters.ack_timeouts = self.counters.ack_timeouts.wrapping_add(1);
        if let Some(slot) = self.queue.get(self.current) {
            self.neighbors.record(slot.to, None, now);
        }
        self.attempt_failed(FrameDrop::NoAck, now, rng);
    }

    /// The radio has not done what was asked of it.
    pub(super) fn radio_failed(&mut self, now: Instant, rng: &mut Rng) {
        self.reset_radio(now);
        self.attempt_failed(FrameDrop::RadioSilent, now, rng);
    }

    /// Counts the attempt; the frame waits for its next one, or is given up.
    pub(super) fn attempt_failed(&mut self, reason: FrameDrop, now: Instant, rng: &mut Rng) {
        let not_before = now + self.retry_wait(reason, now, rng);
        self.end_immediate(false);
        let is_alarm = |slot: &FrameSlot| slot.wait == Wait::Notice;
        if self.queue.get(self.current).is_some_and(is_alarm) {
            // The radio did not take it; that is no notification.
            self.current = NIL;
            self.state = State::Idle;
            return;
        }
        self.release(self.current);
        let attempts_max = self
            .queue
            .get(self.current)
            .map(|slot| self.attempts_max(slot));
        let Some(slot) = self.queue.get_mut(self.current) else {
            self.state = State::Idle;
            return;
        };
        let to = slot.to;
        if reason != FrameDrop::NoAck {
            slot.unsent = slot.unsent.saturating_add(1);
        }
        let is_last = attempts_max.is_none_or(|most| slot.attempts.saturating_add(1) >= most);
        let neighbors = &mut self.neighbors;
        let is_over = is_last
            || to.is_broadcast()
            || match slot.is_for_child() {
                true => !neighbors.is_worth_insisting(to, now),
                false => !neighbors.is_worth_trying(to, now),
            };
        if is_over {
            if slot.is_for_child() {
                self.neighbors.missed(to, now);
            } else if is_last && reason == FrameDrop::NoAck {
                // One that had not all of its attempts says little of its neighbour.
                self.neighbors.gave_up(to, now);
            }
            self.finish(Some(reason));
            return;
        }
        slot.attempts = slot.attempts.saturating_add(1);
        slot.not_before = not_before;
        self.current = NIL;
        self.state = State::Idle;
    }

    /// The wait before the frame under way is tried again. Of two sources that do not hear each
    /// other one once sent train behind train, while each attempt of the other fell into one. So a
    /// source that has won the air, and then sees a frame fail, leaves the others time for a train
    /// of their own. A source that nobody has disturbed for long leaves them time for one frame:
    /// else a node that begins beside it loses each attempt at its first SYN, and TCP doubles its
    /// timeout. Every other source tries again soon.
    fn retry_wait(&self, reason: FrameDrop, now: Instant, rng: &mut Rng) -> Duration {
        let slot = self.queue.get(self.current);
        let is_first = |slot: &&FrameSlot| slot.attempts == 0 && reason == FrameDrop::NoAck;
        let slot = slot.filter(|_| self.config.retry_doubles).filter(is_first);
        match slot.and_then(|slot| self.neighbors.left_to_others(slot.to, now)) {
            Some(left) => left + rng.uniform(Duration::from_micros(left.as_micros() / 2)),
            None => rng.uniform(self.retry_delay(now)),
        }
    }

    /// Attempts in all at a frame for `to`, where retries double: twice as many once frames for it
    /// need more than two on average. That many others want to send to it, too, so that one frame
    /// in forty fails eight times, and a packet of five frames is lost over two such links in one
    /// case of five. A neighbour that is gone has not needed as many before.
    pub(super) fn patient_attempts(&self, to: LinkAddr) -> u8 {
        let attempts_max = self.config.attempts_max;
        let is_crowded = || self.neighbors.etx(to).is_some_and(|etx| etx > ETX_CROWDED);
        match self.config.retry_doubles && is_crowded() {
            true => attempts_max.saturating_mul(2),
            false => attempts_max,
        }
    }

    /// The longest wait before the frame under way is tried again.
    fn retry_delay(&self, now: Instant) -> Duration {
        let longest = self.retry_delay_max(self.current);
        let Some(slot) = self
            .queue
            .get(self.current)
            .filter(|_| self.config.retry_doubles)
        else {
            return longest;
        };
        let exchange = self.neighbors.exchange(slot.to);
        let exchange = exchange.unwrap_or(LONGEST_EXCHANGE);
        let doubled = |first: Duration| first.saturating_mul(1 << slot.attempts.min(DOUBLINGS_MAX));
        let longest_doubled = match self.neighbors.contends(slot.to, now) {
            true if longest == self.config.retry_delay_max => longest.saturating_mul(2),
            _ => longest,
        };
        doubled(exchange).min(longest_doubled)
    }

    /// Ends the frame under way, delivered when there is no `reason` against it.
    pub(super) fn finish(&mut self, reason: Option<FrameDrop>) {
        self.end_immediate(reason.is_none());
        self.state = State::Idle;
        let index = core::mem::replace(&mut self.current, NIL);
        let acknowledged = core::mem::take(&mut self.is_acknowledged);
        let is_own = self.end_request(index, acknowledged) || self.is_proof(index);
        let Some(slot) = self.queue.get(index) else {
            return;
        };
        let outcome = Outcome {
            token: slot.token,
            to: slot.to,
            delivered: reason.is_none(),
            acknowledged,
            reason,
            // What ends a frame for another reason ends it instead of an attempt.
            attempts: slot.attempts.saturating_add(u8::from(matches!(
                reason,
                None | Some(FrameDrop::NoAck | FrameDrop::ChannelBusy | FrameDrop::RadioSilent)
            ))),
            unsent: slot.unsent,
            started: self.started,
            copied: self.copied,
        };
        self.serving.on_end(slot.dsn, reason.is_none());
        // The link above knows nothing of requests and proofs.
        if !is_own {
            self.outcome = Some(outcome);
        }
        self.forget(index);
        match reason {
            Some(reason) => self.counters.drop(reason),
            None => self.counters.delivered = self.counters.delivered.wrapping_add(1),
        }
    }

    /// The radio owed an answer: assume nothing of it any more.
    fn reset_radio(&mut self, now: Instant) {
        // Neither the frame that was to go out at once is in it, nor is the air known.
        if matches!(self.state, State::Clear | State::Triggered) {
            self.assess_again(now);
        }
        self.counters.radio_resets = self.counters.radio_resets.wrapping_add(1);
        self.loaded = NIL;
        self.tuned = None;
        self.listening = None;
    }
}

/// Attempts for each acknowledged frame, in units of 1/128 (RFC 6551 §4.3.2). Of 1.5, 1.75 and 2
/// attempts, two lost least on floors of thirty flows.
const ETX_CROWDED: u16 = 2 * 128;

/// The exchange of a longest frame, where none is known yet: 133 bytes at 32 µs, a turnaround and
/// an ACK, 4.8 ms (IEEE 802.15.4-2015 §12.1.3), and an assessment.
const LONGEST_EXCHANGE: Duration = Duration::from_millis(5);

/// The shortest frame takes 1 ms: six doublings exceed any longest wait that suits a frame's age.
const DOUBLINGS_MAX: u8 = 6;
