//! The deadlines of a connection: one of each kind.
//!
//! Deadlines are 32nds of a millisecond of the driver's clock modulo 2^32, compared as sequence
//! numbers are: none lies further ahead than 18.6 hours, which is more than a keepalive waits.
//! They are always even. The present is rounded down to an even number, and its lowest bit says
//! whether anything was cut off: so a deadline counts from the next even number on, and never
//! comes early, while a comparison needs no rounding.

/// The deadlines that a connection can have.
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

/// The purpose of the [`Timer::Transmit`] deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The retransmission timeout, RTO (RFC 6298 §5).
    Retransmit,
    /// Zero-window probe (RFC 9293 §3.8.6.1), or data held back by silly-window avoidance.
    Persist,
    /// Tail loss probe (RFC 8985 §7).
    TailLossProbe,
    /// The end of RACK's reordering window (RFC 8985 §6.2).
    Reordering,
}

/// Which deadlines of a connection are armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timers {
    /// One bit per [`Timer`]; above those the [`Purpose`].
    bits: u8,
}

impl Timers {
    pub(super) const NEW: Self = Self { bits: 0 };

    pub(super) fn note_armed(&mut self, timer: Timer) {
        self.bits |= 1 << timer as u8;
    }

    /// Notes the purpose for which [`Timer::Transmit`] is armed next.
    pub(super) fn note_purpose(&mut self, purpose: Purpose) {
        self.bits = self.bits & ARMED | (purpose as u8) << PURPOSE_AT;
    }

    /// Bits 0 to 2: which [`Timer`]s are armed; the bits above them are to be ignored.
    pub(super) const fn armed(&self) -> u8 {
        self.bits
    }

    pub(super) fn disarm(&mut self, timer: Timer) {
        self.bits &= !(1 << timer as u8);
    }

    pub(super) fn disarm_all(&mut self) {
        self.bits = 0;
    }

    pub(super) const fn is_armed(&self, timer: Timer) -> bool {
        self.bits & 1 << timer as u8 != 0
    }

    /// The purpose for which [`Timer::Transmit`] is armed, if it is.
    pub(super) fn purpose(&self) -> Option<Purpose> {
        let purpose = match self.bits >> PURPOSE_AT & 3 {
            0 => Purpose::Retransmit,
            1 => Purpose::Persist,
            2 => Purpose::TailLossProbe,
            _ => Purpose::Reordering,
        };
        self.is_armed(Timer::Transmit).then_some(purpose)
    }
}

/// The bits of the three [`Timer`]s.
const ARMED: u8 = (1 << PURPOSE_AT) - 1;
const PURPOSE_AT: u32 = 3;

/// Stands for no deadline: none is so far away.
pub(super) const NEVER: u32 = u32::MAX;

/// How far ahead a deadline may lie, ms; a keepalive waits 65,535 s at most. Comparisons of times
/// are right within 2^26 ms (18.6 h) of the present, both ways.
pub(super) const WAIT_MAX_MS: u32 = 66_000_000;

/// The present of a millisecond and the part of it that has passed, as deadlines count it.
pub(super) const fn present(now_ms: u32, part: u8) -> u32 {
    now_ms << 5 | part as u32
}

/// The deadline `wait_ms` after `now`.
pub(super) const fn deadline(now: u32, wait_ms: u32) -> u32 {
    (now.wrapping_add(1) & !1).wrapping_add(wait_ms << 5)
}

/// The time from `now` until `at`; 0: it is now or past.
pub(super) fn wait_until(at: u32, now: u32) -> u32 {
    (at.wrapping_sub(now) as i32).max(0) as u32
}

/// Whether `at` is now or past.
pub(super) const fn has_come(at: u32, now: u32) -> bool {
    now.wrapping_sub(at) as i32 >= 0
}
