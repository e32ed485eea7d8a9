//! The transmitting side: from an assessment to the air, and whole attempts.
//!
//! Purpose: some radios are told each step by the MAC. Others
//! ([`RadioCapabilities::assesses`](motet::mac::RadioCapabilities::assesses)) are told to fire, and
//! back off, assess, send and wait for the ACK by themselves, as a co-processor does. Left out:
//! their own retries, which the MAC makes. Source: IEEE 802.15.4-2006 §7.5.1.4 and §7.5.6.4.

use motet::mac::AttemptOutcome;
use motet::time::{Duration, Instant};
use motet::wire::ieee802154::{FrameType, Header};

use super::{Activity, Command, Due, Output, Radio};
use crate::air::profile::Profile;
use crate::air::{Air, Event, phy};

/// An attempt that the radio makes by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// The next backoff's exponent, and how often the channel was busy.
    exponent: u8,
    busy: u8,
    /// When its step under way is over.
    step_at: Instant,
    /// When the frame's last symbol left, by the driver's stamp.
    sent_at: Option<Instant>,
    /// The MAC waits no longer for its outcome.
    is_given_up: bool,
}

impl Radio {
    /// A busy channel is reported at once. After a clear one the driver needs time to start the
    /// frame. The radio still listens in that time, and a frame that it hears also holds the
    /// transmission back.
    pub(super) fn judge_channel(&mut self, busy: bool, air: &mut Air, now: Instant) {
        if busy {
            self.activity = Activity::Idle;
            self.on_assessed(false, air, now);
            return;
        }
        self.activity = Activity::Preparing;
        let prepare = self.prepare();
        let ready_at = self.occupy(prepare, now);
        air.calendar.schedule(
            ready_at,
            Event::Radio {
                place: self.place,
                due: Due::Prepared,
            },
        );
    }

    /// The driver's time before a turnaround, varied.
    pub(super) fn prepare(&mut self) -> Duration {
        let Profile {
            prepare, jitter, ..
        } = *self.profile;
        if jitter == Duration::ZERO {
            return prepare;
        }
        prepare + self.jitter.uniform(jitter + jitter) - jitter
    }

    /// Leaves reception for the frame's turnaround, unless a frame is coming in or an ACK
    /// of ours is due: then after that.
    pub(super) fn turn_around(&mut self, air: &mut Air, now: Instant) {
        let receiving = !self.profile.deaf && air.medium.is_receiving(self.place);
        if receiving || self.is_answering() {
            self.activity = Activity::Holding;
            return;
        }
        self.activity = Activity::Turning;
        self.prepared = false;
        air.calendar.schedule(
            now + phy::TURNAROUND,
            Event::Radio {
                place: self.place,
                due: Due::Turned,
            },
        );
    }

    /// Resumes a held transmission after `pause`: then the exchange that it waited for is over, ACK
    /// included.
    pub(super) fn resume_fire(&mut self, pause: Duration, air: &mut Air, now: Instant) {
        if !matches!(self.activity, Activity::Holding) || self.is_answering() {
            return;
        }
        self.activity = Activity::Turning;
        self.prepared = false;
        air.calendar.schedule(
            now + pause,
            Event::Radio {
                place: self.place,
                due: Due::Turned,
            },
        );
    }

    /// The driver has done what follows an assessment.
    pub(super) fn on_assessed(&mut self, clear: bool, air: &mut Air, now: Instant) {
        match (self.attempt, clear) {
            (None, clear) => self.outputs.push(Output::Assessed { clear }),
            (Some(_), true) => self.turn_around(air, now),
            (Some(attempt), false) => self.was_busy(attempt, air, now),
        }
    }

    /// Begins an attempt at the frame that is loaded, with its first backoff.
    pub(super) fn begin_attempt(&mut self, air: &mut Air, now: Instant) {
        let attempt = Attempt {
            exponent: BE_MIN,
            busy: 0,
            step_at: now,
            sent_at: None,
            is_given_up: false,
        };
        let wake = match self.asleep {
            true => self.profile.wake,
            false => Duration::ZERO,
        };
        self.back_off(attempt, wake, air, now);
    }

    fn back_off(&mut self, attempt: Attempt, wake: Duration, air: &mut Air, now: Instant) {
        let slots = self.jitter.below(1 << attempt.exponent);
        let span = wake + phy::UNIT_BACKOFF.saturating_mul(slots.into());
        self.wait(attempt, span, air, now);
    }

    fn wait(&mut self, attempt: Attempt, span: Duration, air: &mut Air, now: Instant) {
        let step_at = now + span;
        self.attempt = Some(Attempt { step_at, ..attempt });
        self.activity = Activity::Attempting;
        let (place, due) = (self.place, Due::Step);
        air.calendar.schedule(step_at, Event::Radio { place, due });
    }

    /// A step of an attempt is over, unless it is that of one before.
    pub(super) fn on_step(&mut self, air: &mut Air, now: Instant) {
        let is_waiting = matches!(self.activity, Activity::Attempting);
        let due = self.attempt.filter(|it| is_waiting && it.step_at == now);
        match due {
            None => {}
            Some(Attempt {
                sent_at: Some(at), ..
            }) => self.end_attempt(AttemptOutcome::NoAck, at, air, now),
            // Its receiver is off while it sends an ACK.
            Some(attempt) if self.is_answering() => self.was_busy(attempt, air, now),
            Some(_) => self.begin(Command::Assess, air, now),
        }
    }

    fn was_busy(&mut self, attempt: Attempt, air: &mut Air, now: Instant) {
        if attempt.busy == BACKOFFS_MAX {
            return self.end_attempt(AttemptOutcome::Busy, now, air, now);
        }
        let attempt = Attempt {
            exponent: (attempt.exponent + 1).min(BE_MAX),
            busy: attempt.busy + 1,
            ..attempt
        };
        self.back_off(attempt, Duration::ZERO, air, now);
    }

    /// The frame of an attempt is sent; its last symbol left `at`, by the driver's stamp.
    pub(super) fn await_ack(&mut self, at: Instant, air: &mut Air, now: Instant) {
        let Some(mut attempt) = self.attempt else {
            return;
        };
        if self.sent.is_none() {
            return self.end_attempt(AttemptOutcome::Done, at, air, now);
        }
        attempt.sent_at = Some(at);
        self.wait(attempt, ACK_WAIT, air, now);
    }

    /// Takes an ACK that it waits for; returns whether a frame with this header is the radio's own
    /// business.
    pub(super) fn takes_ack(&mut self, header: &Header, air: &mut Air, now: Instant) -> bool {
        if !self.profile.capabilities.takes_acks || header.frame_type != FrameType::Ack {
            return false;
        }
        if let Some(Attempt {
            sent_at: Some(at), ..
        }) = self.attempt
        {
            let pending = header.frame_pending;
            self.end_attempt(AttemptOutcome::Acked { pending }, at, air, now);
        }
        true
    }

    fn end_attempt(&mut self, outcome: AttemptOutcome, at: Instant, air: &mut Air, now: Instant) {
        self.activity = Activity::Idle;
        self.sent = None;
        let attempt = self.attempt.take();
        if attempt.is_some_and(|attempt| !attempt.is_given_up) {
            self.report(Output::Sent(outcome, at), phy::ACK_LEN, air, now);
        }
    }

    /// The MAC has another frame: nobody waits for the outcome of the attempt under way.
    pub(super) fn give_up(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.is_given_up = true;
        }
    }
}

/// The exponents of backoffs, and how often the channel may be busy (the standard's defaults).
const BE_MIN: u8 = 3;
const BE_MAX: u8 = 5;
const BACKOFFS_MAX: u8 = 4;

/// macAckWaitDuration at 2.4 GHz: 54 symbols.
const ACK_WAIT: Duration = Duration::from_micros(54 * 16);
