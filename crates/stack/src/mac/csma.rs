//! One attempt: backoff, copy, channel assessment, frame, wait for the ACK.
//!
//! Source: IEEE 802.15.4-2006 §7.5.1.4, figure 69 (unslotted branch). Differs: with a
//! shared buffer the copy stands between backoff and assessment, since reception would
//! overwrite a frame copied before.

use super::config::{CCA, SIFS_PSDU_LEN_MAX, TURNAROUND, UNIT_BACKOFF_US};
use super::queue::{FrameSlot, NIL, Wait};
use super::state::State;
use super::{Action, FrameDrop, Mac};
use crate::limits::PSDU_LEN_MAX;
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::append_fcs;

/// The variables of the algorithm; NB is `busy`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Csma {
    be: u8,
    busy: u8,
}

impl Mac<'_> {
    /// Begins an attempt at the next frame, if there is one.
    pub(super) fn start_attempt(&mut self, now: Instant, rng: &mut Rng) {
        if self.state != State::Idle || self.outcome.is_some() {
            return;
        }
        let Some((at, index)) = self.next_start(now) else {
            return;
        };
        if at > now {
            return;
        }
        if let Some(reason) = self.obstacle(index, now) {
            self.current = index;
            return self.finish(Some(reason));
        }
        let Some(attempts) = self.take_up(index) else {
            return;
        };
        if attempts > 0 {
            self.counters.retries = self.counters.retries.wrapping_add(1);
        }
        self.begin_attempt(now);
        self.back_off(now, rng);
    }

    /// Why an attempt at this frame is not worth making.
    fn obstacle(&mut self, index: u8, now: Instant) -> Option<FrameDrop> {
        let slot = self.queue.get(index)?;
        if slot.is_older_than(self.config.frame_age_max, now) {
            return Some(FrameDrop::TooOld);
        }
        let is_new = slot.attempts == 0;
        // One for a child goes out once for each request in the child's name, whoever made that:
        // the attempt costs no more than the request did.
        let is_doubted = is_new && !slot.is_for_child();
        (is_doubted && !self.neighbors.is_worth_trying(slot.to, now)).then_some(FrameDrop::Silent)
    }

    /// Makes a frame the one under way, with a sequence number; returns its failed attempts.
    fn take_up(&mut self, index: u8) -> Option<u8> {
        let slot = self.queue.get_mut(index)?;
        if slot.dsn.is_none() {
            slot.dsn = Some(self.dsn);
            self.dsn = self.dsn.wrapping_add(1);
        }
        self.current = index;
        Some(slot.attempts)
    }

    /// Copies the frame that waits for its condition into the radio.
    pub(super) fn arm(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        self.take_up(self.waiting.slot)?;
        let until = now + self.config.answer_timeout;
        self.copy(State::Arming { until }, now, out)
    }

    /// The next step of the attempt, where it is ours to make.
    pub(super) fn poll_attempt(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        match self.state {
            State::Backoff { until } if self.is_ready() => {
                (now >= self.may_assess_at(until)).then(|| self.assess_or_fire(now))
            }
            State::Backoff { until } if now >= until || self.may_preload_early() => {
                self.preload(until, now, out)
            }
            State::Clear => Some(self.fire(now)),
            State::Triggered => {
                self.counters.immediate = self.counters.immediate.wrapping_add(1);
                self.is_immediate = true;
                self.started = now;
                Some(self.fire(now))
            }
            _ => None,
        }
    }

    /// Whether the copy may overlap the backoff, and is still to be made.
    pub(super) fn may_preload_early(&self) -> bool {
        !self.radio.shared_buffer && !self.is_ready()
    }

    /// Whether the frame under way is in the radio, and what it says there still holds: none
    /// may promise another one that is not there.
    pub(super) fn is_ready(&self) -> bool {
        self.loaded == self.current && (!self.promises || self.is_followed(self.current))
    }

    pub(super) fn on_preloaded(&mut self, now: Instant) {
        self.copied = now.since(self.copy_began);
        // A late answer to a copy that an ACK overtook is of no use.
        match self.state {
            State::Preloading { backoff_until, .. } => {
                self.loaded = self.current;
                self.state = State::Backoff {
                    until: backoff_until,
                };
            }
            State::Arming { .. } => {
                self.state = State::Idle;
                let copied = core::mem::replace(&mut self.current, NIL);
                // No longer waiting: it promises another frame, perhaps wrongly.
                if copied == self.waiting.slot {
                    self.loaded = copied;
                }
            }
            _ => {}
        }
    }

    pub(super) fn on_channel_assessed(&mut self, clear: bool, now: Instant, rng: &mut Rng) {
        if !matches!(self.state, State::Assessing { .. }) {
            return;
        }
        if clear {
            self.state = State::Clear;
            return;
        }
        self.note_busy();
        self.csma.busy = self.csma.busy.saturating_add(1);
        if self.csma.busy > self.config.csma_backoffs_max {
            self.channel_stayed_busy(now, rng);
        } else {
            self.csma.be = self.csma.be.saturating_add(1).min(self.config.be_max);
            self.back_off(now, rng);
        }
    }

    /// The channel was assessed for the frame under way, and not clear.
    pub(super) fn note_busy(&mut self) {
        self.counters.channel_busy = self.counters.channel_busy.wrapping_add(1);
        if let Some(slot) = self.queue.get(self.current) {
            self.neighbors.note_busy(slot.to);
        }
    }

    /// The attempt is over without a frame on the air.
    pub(super) fn channel_stayed_busy(&mut self, now: Instant, rng: &mut Rng) {
        self.counters.csma_failures = self.counters.csma_failures.wrapping_add(1);
        self.attempt_failed(FrameDrop::ChannelBusy, now, rng);
    }

    /// The frame left the antenna `at`; a driver may say so when its ACK is on the air already.
    pub(super) fn on_transmit_done(&mut self, at: Instant, now: Instant, rng: &mut Rng) {
        if self.acknowledgment_sent() || !self.state.is_firing() {
            return;
        }
        self.counters.transmissions = self.counters.transmissions.wrapping_add(1);
        self.space_after(at);
        let to_all = self.is_for_all();
        if to_all && let Some(next) = self.config.channels.after(self.sweep) {
            self.sweep = Some(next);
            self.restart_csma(now);
            self.back_off(now, rng);
        } else if to_all || !self.config.acknowledged {
            self.finish(None);
        } else {
            self.state = State::AwaitingAck {
                sent_at: at,
                until: now + self.config.ack_wait + self.radio.stamp_delay_max.saturating_mul(2),
            };
        }
    }

    /// Whether the frame under way goes to all nodes in reach.
    pub(super) fn is_for_all(&self) -> bool {
        let slot = self.queue.get(self.current);
        slot.is_none_or(|slot| slot.to.is_broadcast())
    }

    /// Gives the radio to an ACK: whatever it has disturbed is done again afterwards.
    pub(super) fn interrupt_attempt(&mut self, now: Instant) {
        if self.radio.shared_buffer {
            if self.loaded != NIL {
                self.counters.reloads = self.counters.reloads.wrapping_add(1);
            }
            self.loaded = NIL;
            if let State::Preloading { backoff_until, .. } = self.state {
                self.state = State::Backoff {
                    until: backoff_until,
                };
            }
        }
        if matches!(self.state, State::Assessing { .. } | State::Clear) {
            self.assess_again(now);
        }
    }

    /// Assesses the channel anew: the last assessment, or the frame in the radio, is out of date.
    pub(super) const fn assess_again(&mut self, now: Instant) {
        self.state = State::Backoff { until: now };
    }

    /// An attempt begins; one at a frame for all goes round the channels from the first.
    pub(super) fn begin_attempt(&mut self, now: Instant) {
        self.is_immediate = false;
        self.restart_csma(now);
        self.sweep = self.config.channels.after(None);
    }

    /// Leaves the spacing after the frame under way, whose exchange ended at `end`
    /// (IEEE 802.15.4-2015 §6.2.4). This node's own ACKs need none: they are shorter than
    /// [`SIFS_PSDU_LEN_MAX`], and a turnaround passes anyway before what follows them.
    pub(super) fn space_after(&mut self, end: Instant) {
        let Some(slot) = self.queue.get(self.current) else {
            return;
        };
        let header_len = PSDU_LEN_MAX.saturating_sub(self.payload_len_max(slot.to));
        let spacing = match header_len + slot.payload().len() > SIFS_PSDU_LEN_MAX {
            true => self.config.lifs,
            false => self.config.sifs,
        };
        self.spaced_until = end + (spacing - TURNAROUND);
    }

    /// When a frame whose backoff ends at `until` may assess the channel, or be fired where
    /// nothing is assessed: the backoff runs within the spacing, not after it.
    pub(super) fn may_assess_at(&self, until: Instant) -> Instant {
        let ahead = match self.config.assessed {
            true => CCA,
            false => Duration::ZERO,
        };
        let spaced_us = self.spaced_until.as_micros();
        until.max(Instant::from_micros(
            spaced_us.saturating_sub(ahead.as_micros()),
        ))
    }

    /// Whether a frame fired now leaves enough space behind the last one.
    pub(super) fn is_spaced(&self, now: Instant) -> bool {
        now >= self.spaced_until
    }

    /// Appends the FCS to the frame of `mpdu_len` bytes in `out`, unless the radio does; returns
    /// the bytes that go to the radio.
    pub(super) fn checked(&self, mpdu_len: usize, out: &mut [u8]) -> Option<usize> {
        match self.radio.fcs_by_radio {
            true => Some(mpdu_len),
            false => append_fcs(mpdu_len, out).ok(),
        }
    }

    /// Whether the radio takes a frame during the backoff before it; else it does after that.
    pub(crate) const fn copies_beside_backoff(&self) -> bool {
        !self.radio.shared_buffer
    }

    /// The mean of the first random backoff (IEEE 802.15.4-2006 §7.5.1.4).
    pub(crate) fn backoff(&self) -> Duration {
        let periods = 1u32 << self.config.be_min.min(BE_LIMIT);
        Duration::from_micros(u64::from((periods - 1) * UNIT_BACKOFF_US / 2))
    }

    /// Each channel of a sweep is contended for afresh.
    fn restart_csma(&mut self, now: Instant) {
        let to = self.queue.get(self.current).map(|slot| slot.to);
        self.csma = Csma {
            be: to.map_or(self.config.be_min, |to| self.first_exponent(to, now)),
            busy: 0,
        };
    }

    /// The exponent of the first backoff of an attempt at a frame for `to`: `macMinBE`, and where
    /// the link measures its pace no more than the neighbour's frames need.
    fn first_exponent(&self, to: LinkAddr, now: Instant) -> u8 {
        let be_min = self.config.be_min;
        // A link that measures its pace has retries double, too.
        let needed = match self.config.retry_doubles {
            true => self.neighbors.exponent(to, now),
            false => None,
        };
        needed.map_or(be_min, |needed| needed.min(be_min))
    }

    fn back_off(&mut self, now: Instant, rng: &mut Rng) {
        if self.radio.shared_buffer {
            // The radio listens meanwhile and may receive into the buffer.
            self.loaded = NIL;
        }
        if self.radio.backs_off() {
            self.state = State::Backoff { until: now };
            return;
        }
        let periods = 1u32 << self.csma.be.min(BE_LIMIT);
        let wait = rng.below(periods).wrapping_mul(UNIT_BACKOFF_US);
        self.state = State::Backoff {
            until: now + Duration::from_micros(u64::from(wait)),
        };
    }

    fn preload(&mut self, backoff_until: Instant, now: Instant, out: &mut [u8]) -> Option<Action> {
        let until = now + self.config.answer_timeout;
        let state = State::Preloading {
            until,
            backoff_until,
        };
        self.copy(state, now, out)
    }

    /// Has the frame under way copied into the radio, instead of what was there.
    fn copy(&mut self, state: State, now: Instant, out: &mut [u8]) -> Option<Action> {
        self.copy_began = now;
        let Some((len, promises)) = self.emit_current(out) else {
            let reason = self.guard.refusal();
            debug_assert!(
                reason != FrameDrop::BadLength,
                "`out` holds a whole PSDU, and enqueue() checked the payload"
            );
            self.finish(Some(reason));
            return None;
        };
        if self
            .queue
            .get(self.loaded)
            .is_some_and(|slot| slot.wait != Wait::No)
        {
            self.counters.reloads = self.counters.reloads.wrapping_add(1);
        }
        self.loaded = NIL;
        self.promises = promises;
        self.state = state;
        Some(Action::Preload { len })
    }

    /// Writes the frame under way; returns the bytes for the radio, and whether the frame says that
    /// more follow. Each copy of a frame that is sealed has a counter of its own.
    fn emit_current(&mut self, out: &mut [u8]) -> Option<(usize, bool)> {
        let slot = self.queue.get(self.current)?;
        let mut header = self.header_of(slot)?;
        header.ack_request &= self.config.acknowledged;
        header.frame_pending = header.ack_request && self.is_followed(self.current);
        let own = self.config.extended;
        let len = match slot.is_in_clear() {
            true => {
                #[cfg(feature = "thread")]
                if self.guard.is_child() {
                    self.dress(&mut header);
                }
                header.emit_mpdu(slot.payload(), out).ok()?
            }
            false => self.guard.emit(&header, slot.payload(), own, out)?,
        };
        Some((self.checked(len, out)?, header.frame_pending))
    }

    /// Whether another frame goes to the same neighbour after this one: it is queued, or will
    /// have fired this one.
    fn is_followed(&self, index: u8) -> bool {
        let Some(slot) = self.queue.get(index) else {
            return false;
        };
        let is_alike = |other: &FrameSlot| other.to.is(&slot.to) && other.wait != Wait::Notice;
        slot.wait == Wait::Next || self.queue.count(is_alike) > 1 || self.serving.has_more(&slot.to)
    }

    fn assess_or_fire(&mut self, now: Instant) -> Action {
        self.started = now;
        if !self.config.assessed || self.radio.backs_off() {
            return self.fire(now);
        }
        self.state = State::Assessing {
            until: now + self.config.answer_timeout,
        };
        Action::AssessChannel
    }

    fn fire(&mut self, now: Instant) -> Action {
        self.state = State::Firing {
            until: now + self.config.answer_timeout,
        };
        Action::Fire
    }
}

/// The standard allows `macMaxBE` up to 8 (IEEE 802.15.4-2006 table 86).
const BE_LIMIT: u8 = 8;
