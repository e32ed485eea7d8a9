//! The actions of a connection at its deadlines: retransmission timeout, probes, keepalive, the
//! user timeout, the end of a closed connection, of FIN-WAIT-2 and of TIME-WAIT.
//!
//! Deadlines are armed here, too, by means of [`super::timers`].
//!
//! Place: `departure` calls this before it polls for segments. Segments to be sent are marked due
//! here, and written by `output`; the effects of a loss are in `reduction`.
//! Sources: RFC 6298 §5, RFC 9293 §3.8.3, §3.8.4, §3.8.6.1, §3.4.2.

use super::config::HAS_RECOVERY;
use super::connection::Connection;
use super::facts::Facts;
use super::state::State;
use super::timers::{NEVER, Purpose, Timer, WAIT_MAX_MS, deadline, has_come, present, wait_until};
use super::types::Error;

impl Connection<'_> {
    /// Handles whatever is due. What must be sent is marked due and left to output.
    // Out of line: inside its one caller, the two fight for a Cortex-M0+'s eight registers.
    #[inline(never)]
    pub(super) fn on_deadline(&mut self) {
        if self.take_due(Timer::Ack) {
            self.facts.set(Facts::ACK_DUE);
            #[cfg(feature = "linux-acks")]
            self.linux_acks.on_delay_over(self.rtt.rto_ms(self.config));
        }
        if let Some(purpose) = self.timers.purpose()
            && self.take_due(Timer::Transmit)
        {
            if self.user_timeout_over() {
                return self.end_with_reset(Error::UserTimeout);
            }
            match purpose {
                Purpose::TailLossProbe if HAS_RECOVERY => {
                    self.facts.set(Facts::TAIL_PROBE_DUE);
                    self.arm_timeout(Purpose::Retransmit);
                }
                Purpose::Reordering if HAS_RECOVERY => {
                    let outcome = self.loss.on_reordering_timer(&self.sender());
                    self.apply_loss_outcome(outcome);
                    self.rearm();
                }
                _ => self.on_timeout(purpose),
            }
        }
        if self.take_due(Timer::Lifetime) {
            match self.ending() {
                Ending::Delivers => self.end_with_reset(self.timeout_error()),
                Ending::Waits => self.end(None),
                Ending::Lives => self.on_keepalive(),
            }
        }
    }

    /// Sets the clock. Must be called more often than times wrap, even without segments.
    ///
    /// `part`: 32nds of the millisecond that have passed, the lowest bit as `timers` has it.
    pub(super) fn set_now(&mut self, now_ms: u32, part: u8) {
        (self.now_ms, self.now_part) = (now_ms, part);
        // TS.Recent is too old for PAWS (RFC 7323 §5.5).
        let age_ms = now_ms.wrapping_sub(self.ts_recent_at);
        if age_ms >= TS_RECENT_MAX_MS {
            self.facts.set(Facts::TS_OUTDATED);
        }
    }

    /// Called before the clock moves, by [`LONG_STEP`] or more, to `now_ms` and `part` of the next
    /// millisecond. The driver was suspended, or its clock was set: it does not wait that long
    /// while data are in flight. In that time no segment of the peer could be processed. So a leap
    /// counts against each time limit of the connection with at most a sixteenth of that limit: one
    /// leap never ends a healthy connection, and a driver that always wakes so late does not keep a
    /// dead one for ever.
    ///
    /// `step`: by how much the clock moves, in 1,024 µs, rounded down.
    #[inline(never)]
    pub(super) fn leap(&mut self, step: u32, now_ms: u32, part: u8) {
        let moved = now_ms.wrapping_sub(self.now_ms);
        let counted = |limit_ms: u32| moved.min(limit_ms.min(WAIT_MAX_MS) >> 4);
        let end = counted(self.config.close_timeout_ms);
        self.keep_deadlines(step, present(now_ms, part), end);
        if self.timers.purpose().is_some() {
            let progress = counted(self.config.user_timeout_ms);
            self.forgive(moved - progress);
        }
        // Our timestamps stand still: to a peer that has seen no time pass, they would lie in the
        // past from 2^31 ms on (RFC 7323 §5.2).
        self.ts_offset = self.ts_offset.wrapping_sub(moved);
        if step >= TS_RECENT_STEPS_MAX {
            self.facts.set(Facts::TS_OUTDATED);
        }
    }

    /// Handles the expiry of the retransmission timer (RFC 6298 §5.4 to §5.6) or of the persist
    /// timer, which sends a window probe (RFC 9293 §3.8.6.1). Probing goes on as long as the peer
    /// answers (MUST-37): only probes without an answer are counted. If nothing is in flight, a
    /// route was missing, and nothing counts as lost.
    fn on_timeout(&mut self, purpose: Purpose) {
        let most = match self.is_connecting() {
            true => self.config.syn_retransmissions_max,
            false => self.config.retransmissions_max,
        };
        if self.retries >= most && self.has_waited_long(most) {
            return self.end_with_reset(self.timeout_error());
        }
        if purpose == Purpose::Persist {
            self.facts.set(Facts::PERSIST_DUE);
        } else if self.is_connecting() {
            self.facts.set(Facts::SYN_DUE);
        } else if self.flight() > 0 {
            let outcome = self.loss.on_timeout(self.retries == 0, &self.sender());
            self.apply_loss_outcome(outcome);
        }
        self.retries = self.retries.saturating_add(1);
        self.rtt.back_off();
        self.arm_timeout(purpose);
    }

    /// Whether as much time has passed as `most` retransmissions and the wait behind the last one
    /// take. Where doublings were taken back, more retransmissions fit into that time (RFC 6069).
    fn has_waited_long(&self, most: u8) -> bool {
        self.is_connecting()
            || self.rtt.has_doubled(most)
            || self.since_progress_ms() >= self.rtt.doubled_ms(self.config, most)
    }

    fn on_keepalive(&mut self) {
        if self.config.keepalive_idle_s == 0 {
            return;
        }
        // Data on the way have their own timer and their own limit.
        if self.flight() == 0 {
            if self.retries >= self.config.keepalive_probes {
                return self.end_with_reset(Error::KeepaliveTimedOut);
            }
            self.retries += 1;
            self.facts.set(Facts::KEEPALIVE_DUE);
        }
        let wait = u32::from(self.config.keepalive_interval_s.max(1)) * 1000;
        self.arm(Timer::Lifetime, wait);
    }

    fn user_timeout_over(&self) -> bool {
        let limit = self.config.user_timeout_ms;
        limit != 0 && self.since_progress_ms() >= limit
    }

    /// The transmission failed for good; the peer, should it live, learns it.
    pub(super) fn end_with_reset(&mut self, error: Error) {
        let reset = self.state().is_synchronized();
        self.end(Some(error));
        self.facts.put(Facts::RESET_DUE, reset);
    }

    fn timeout_error(&self) -> Error {
        match self.facts.has(Facts::SOFT_ERROR) {
            true => Error::Unreachable,
            false => Error::TimedOut,
        }
    }

    /// Any sign of life of the peer puts the keepalive off.
    pub(super) fn put_off_keepalive(&mut self) {
        let idle_s = self.config.keepalive_idle_s;
        if idle_s != 0 && self.state().is_synchronized() && self.ending() == Ending::Lives {
            self.arm(Timer::Lifetime, u32::from(idle_s) * 1000);
        }
    }

    /// The phase that [`Timer::Lifetime`] bounds in the present state of the connection.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn ending(&self) -> Ending {
        let is_closed = self.facts.has(Facts::READ_CLOSED);
        match self.state() {
            State::TimeWait => Ending::Waits,
            State::FinWait2 if is_closed => Ending::Waits,
            State::FinWait1 if is_closed => Ending::Delivers,
            State::Closing | State::LastAck => Ending::Delivers,
            _ => Ending::Lives,
        }
    }

    /// Bounds how long a connection that is closed waits for progress, from now on.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn bound_end(&mut self) {
        let wait = match self.ending() {
            Ending::Delivers => self.config.close_timeout_ms,
            Ending::Waits if self.state() == State::FinWait2 => self.config.fin_wait_2_ms,
            _ => return,
        };
        match wait {
            0 => self.timers.disarm(Timer::Lifetime),
            wait => self.arm(Timer::Lifetime, wait),
        }
    }

    pub(super) fn enter_time_wait(&mut self) {
        self.set_state(State::TimeWait);
        self.timers.disarm(Timer::Transmit);
        self.arm(Timer::Lifetime, self.config.time_wait_ms);
    }

    // ---- deadlines ----

    /// Arms `timer` for `wait_ms` from now, [`WAIT_MAX_MS`] at most, replacing an earlier
    /// setting.
    pub(super) fn arm(&mut self, timer: Timer, wait_ms: u32) {
        let deadline = deadline(self.now(), wait_ms.min(WAIT_MAX_MS));
        if let Some(at) = self.deadlines.get_mut(timer as usize) {
            *at = deadline;
        }
        self.timers.note_armed(timer);
    }

    /// Arms [`Timer::Transmit`], no later than the user timeout.
    pub(super) fn arm_transmit(&mut self, purpose: Purpose, wait_ms: u32) {
        let mut wait = wait_ms;
        if self.config.user_timeout_ms != 0 {
            let elapsed = self.since_progress_ms();
            wait = wait.min(self.config.user_timeout_ms.saturating_sub(elapsed));
        }
        self.timers.note_purpose(purpose);
        self.arm(Timer::Transmit, wait);
    }

    /// Disarms `timer` and returns true if it is due.
    pub(super) fn take_due(&mut self, timer: Timer) -> bool {
        let at = self.deadlines.get(timer as usize);
        let due = self.timers.is_armed(timer) && at.is_some_and(|at| has_come(*at, self.now()));
        if due {
            self.timers.disarm(timer);
        }
        due
    }

    /// Milliseconds until `timer` is due, rounded up; `None`: it is not armed.
    pub(super) fn left_ms(&self, timer: Timer) -> Option<u32> {
        let at = self.deadlines.get(timer as usize);
        let at = at.filter(|_| self.timers.is_armed(timer))?;
        Some(wait_until(*at, self.now()).div_ceil(32))
    }

    /// 32nds of a millisecond from `since` to the earliest deadline, or [`NEVER`].
    pub(super) fn wait(&self, since: u32) -> u32 {
        let mut wait = NEVER;
        for (index, at) in self.deadlines.iter().enumerate() {
            if self.timers.armed() >> index & 1 != 0 {
                wait = wait.min(wait_until(*at, since));
            }
        }
        wait
    }

    /// The present, as deadlines count it.
    fn now(&self) -> u32 {
        present(self.now_ms, self.now_part)
    }

    /// Before the clock leaps by `step` (1,024 µs, rounded down) to the present `then`: deadlines
    /// within the leap expire at its end, however late that is. The exception is the time limit of
    /// a connection that only delivers its last bytes: it comes nearer by `counted` ms only.
    pub(super) fn keep_deadlines(&mut self, step: u32, then: u32, counted: u32) {
        let [_, _, lifetime] = self.deadlines;
        let moved = then.wrapping_sub(self.now()).wrapping_sub(counted << 5);
        if step >= WAIT_MAX_STEPS {
            self.deadlines = [then; 3];
        }
        if self.ending() == Ending::Delivers {
            let [_, _, end] = &mut self.deadlines;
            *end = lifetime.wrapping_add(moved);
        }
    }
}

/// How far the end of a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// Data may still be sent or received.
    Lives,
    /// The application neither reads nor writes any more; the last bytes and the FIN are still to
    /// be delivered.
    Delivers,
    /// All is delivered; the peer's FIN, or the end of TIME-WAIT, is awaited.
    Waits,
}

/// [`WAIT_MAX_MS`] in steps of 1,024 µs: after one so long, every deadline is past.
const WAIT_MAX_STEPS: u32 = WAIT_MAX_MS / 128 * 125;

/// Longer than an RTO and a handshake's timeouts, and as SYN cookies are good for, in 1,024 µs. A
/// driver that wakes later than this may also wake so late that deadlines wrap.
pub(super) const LONG_STEP: u32 = 1 << 17;

/// TS.Recent is worth nothing when it is older than this: 24 days (RFC 7323 §5.5).
const TS_RECENT_MAX_MS: u32 = 24 * 24 * 3600 * 1000;
/// [`TS_RECENT_MAX_MS`] in steps of 1,024 µs.
const TS_RECENT_STEPS_MAX: u32 = TS_RECENT_MAX_MS / 128 * 125;
