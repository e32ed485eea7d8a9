//! One deadline per kind; the earliest of them.
//!
//! Times are milliseconds of the driver's clock modulo 2^32, compared as sequence numbers
//! are: no deadline lies further ahead than 24 days.

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

/// The deadlines of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timers {
    at_ms: [u32; 3],
    /// One bit per [`Timer`].
    armed: u8,
    purpose: Purpose,
}

impl Timers {
    pub(super) const NEW: Self = Self {
        at_ms: [0; 3],
        armed: 0,
        purpose: Purpose::Retransmit,
    };

    /// Arms `timer` for `at_ms`, replacing an earlier setting.
    pub(super) fn arm(&mut self, timer: Timer, at_ms: u32) {
        if let Some(at) = self.at_ms.get_mut(timer as usize) {
            *at = at_ms;
        }
        self.armed |= 1 << timer as u8;
    }

    /// Arms [`Timer::Transmit`] for `purpose`.
    pub(super) fn arm_transmit(&mut self, purpose: Purpose, at_ms: u32) {
        self.purpose = purpose;
        self.arm(Timer::Transmit, at_ms);
    }

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

    /// Disarms `timer` and says true if it is due.
    pub(super) fn take_due(&mut self, timer: Timer, now_ms: u32) -> bool {
        let due = self.is_armed(timer)
            && self
                .at_ms
                .get(timer as usize)
                .is_some_and(|at| has_come(*at, now_ms));
        if due {
            self.disarm(timer);
        }
        due
    }

    /// Whether any deadline has come.
    pub(super) fn is_any_due(&self, now_ms: u32) -> bool {
        let mut timers = self.at_ms.iter().enumerate();
        timers.any(|(index, at)| self.armed & 1 << index != 0 && has_come(*at, now_ms))
    }

    /// Milliseconds until the earliest deadline; `None`: none is armed.
    pub(super) fn wait_ms(&self, now_ms: u32) -> Option<u32> {
        let mut wait: Option<u32> = None;
        for (index, at) in self.at_ms.iter().enumerate() {
            if self.armed & 1 << index != 0 {
                let this = if has_come(*at, now_ms) {
                    0
                } else {
                    at.wrapping_sub(now_ms)
                };
                wait = Some(wait.map_or(this, |wait| wait.min(this)));
            }
        }
        wait
    }
}

/// Whether `at_ms` is now or past.
pub(super) const fn has_come(at_ms: u32, now_ms: u32) -> bool {
    now_ms.wrapping_sub(at_ms) as i32 >= 0
}
