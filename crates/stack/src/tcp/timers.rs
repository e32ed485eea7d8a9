//! One deadline per kind; the earliest of them.
//!
//! Times are milliseconds of the driver's clock modulo 2^32, compared as sequence numbers
//! are: no deadline lies further ahead than 24 days.

use super::connection::Connection;

/// Which deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timer {
    /// Retransmission, persist, tail loss probe or RACK's reordering window: never two of
    /// them at once ([`Purpose`] says which).
    Transmit,
    /// A delayed ACK falls due.
    Ack,
    /// Keepalive, FIN-WAIT-2 or TIME-WAIT, by state.
    Lifetime,
}

/// What the [`Timer::Transmit`] deadline is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// Retransmission timeout (RFC 6298).
    Retransmit,
    /// Zero-window probe (RFC 9293 §3.8.6.1), or data held back by silly-window avoidance.
    Persist,
    /// Tail loss probe (RFC 8985 §7).
    TailLossProbe,
    /// The end of RACK's reordering window (RFC 8985 §6.2).
    Reordering,
}

/// Which deadlines are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timers {
    /// One bit per [`Timer`].
    armed: u8,
    purpose: Purpose,
}

impl Timers {
    pub(super) const NEW: Self = Self {
        armed: 0,
        purpose: Purpose::Retransmit,
    };

    pub(super) fn disarm(&mut self, timer: Timer) {
        self.armed &= !(1 << timer as u8);
    }

    pub(super) fn disarm_all(&mut self) {
        self.armed = 0;
    }

    pub(super) const fn is_armed(&self, timer: Timer) -> bool {
        self.armed & 1 << timer as u8 != 0
    }

    /// What [`Timer::Transmit`] is armed for, if it is.
    pub(super) fn purpose(&self) -> Option<Purpose> {
        self.is_armed(Timer::Transmit).then_some(self.purpose)
    }
}

impl Connection<'_> {
    /// Arms `timer` for `wait_ms` from now, replacing an earlier setting.
    pub(super) fn arm(&mut self, timer: Timer, wait_ms: u32) {
        if let Some(at) = self.deadlines_ms.get_mut(timer as usize) {
            *at = self.now_ms.wrapping_add(wait_ms);
        }
        self.timers.armed |= 1 << timer as u8;
    }

    /// Arms [`Timer::Transmit`], no later than the user timeout.
    pub(super) fn arm_transmit(&mut self, purpose: Purpose, wait_ms: u32) {
        let mut wait = wait_ms;
        if self.config.user_timeout_ms != 0 {
            let elapsed = self.now_ms.wrapping_sub(self.progress_at);
            wait = wait.min(self.config.user_timeout_ms.saturating_sub(elapsed));
        }
        self.timers.purpose = purpose;
        self.arm(Timer::Transmit, wait);
    }

    /// Disarms `timer` and says true if it is due.
    pub(super) fn take_due(&mut self, timer: Timer) -> bool {
        let at = self.deadlines_ms.get(timer as usize);
        let due = self.timers.is_armed(timer) && at.is_some_and(|at| has_come(*at, self.now_ms));
        if due {
            self.timers.disarm(timer);
        }
        due
    }

    /// Whether any deadline has come.
    pub(super) fn is_any_due(&self) -> bool {
        self.wait_ms() == 0
    }

    /// Milliseconds until the earliest deadline, or [`NEVER`].
    pub(super) fn wait_ms(&self) -> u32 {
        let mut wait = NEVER;
        for (index, at) in self.deadlines_ms.iter().enumerate() {
            if self.timers.armed & 1 << index != 0 {
                wait = wait.min(wait_until(*at, self.now_ms));
            }
        }
        wait
    }
}

/// No deadline is that far away.
pub(super) const NEVER: u32 = u32::MAX;

/// Milliseconds until `at_ms`; 0: it is now or past.
pub(super) fn wait_until(at_ms: u32, now_ms: u32) -> u32 {
    (at_ms.wrapping_sub(now_ms) as i32).max(0) as u32
}

/// Whether `at_ms` is now or past.
pub(super) const fn has_come(at_ms: u32, now_ms: u32) -> bool {
    now_ms.wrapping_sub(at_ms) as i32 >= 0
}
