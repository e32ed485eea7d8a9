//! Time as the stack sees it: microseconds since an origin the driver chooses.
//!
//! Place: every `on_*` and `poll_*` call takes `now`; deadlines come back as [`Instant`].
//! Left out: clocks. Nothing in the stack reads one.

use core::ops::{Add, AddAssign, Sub};

/// A point in time: microseconds since the driver's origin (usually boot).
// Aligned as a processor of 32 bits loads it, word by word: an optional one takes 12 bytes instead
// of 16, and structs with one end in less padding. It spares a mote with all parts 550 B of RAM.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(Rust, packed(4))]
pub struct Instant(u64);

/// A span of time in microseconds.
// Aligned as [`Instant`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(Rust, packed(4))]
pub struct Duration(u64);

impl Instant {
    /// Zero microseconds: where the driver's clock starts.
    pub const ORIGIN: Self = Self(0);

    /// An instant that never comes: stands for no deadline.
    #[cfg(feature = "leaves")]
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// This instant; `None` for the origin, which stands for none in state that is to be short.
    #[cfg(any(feature = "security", feature = "sleepy"))]
    pub(crate) fn if_any(self) -> Option<Self> {
        (self != Self::ORIGIN).then_some(self)
    }

    /// The instant `us` microseconds after the origin.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Microseconds from [`Self::ORIGIN`] to this instant.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin, modulo 2^32: TCP's timestamp clock.
    pub const fn as_millis_wrapping(self) -> u32 {
        (self.0 / 1_000) as u32
    }

    /// A number to compare entries of a table by where one has to go: the lower class first, and
    /// within a class the one used longest ago. Comparing tuples instead costs a mote 100 B a
    /// table.
    pub(crate) const fn rank(self, class: u8) -> u64 {
        const AGES: u64 = 1 << 56;
        let at = if self.0 < AGES { self.0 } else { AGES - 1 };
        (class as u64) * AGES + at
    }

    /// Time since `earlier`; zero when `earlier` lies in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(difference(self.0, earlier.0))
    }
}

impl Duration {
    /// A span of zero microseconds.
    pub const ZERO: Self = Self(0);

    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000))
    }

    /// The span in microseconds, the unit in which it is kept.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in whole seconds, rounded down; at most 274,877 (76 hours).
    pub const fn as_secs(self) -> u32 {
        // 64 · 15,625 µs: a shift spares small devices the routine for 64-bit division.
        let units = self.0 >> 6;
        let most = u32::MAX as u64;
        (if units < most { units } else { most }) as u32 / 15_625
    }

    /// `self` times `factor`; the longest span where the product overflows.
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(product(self.0, factor))
    }
}

/// A bound on how often something is done: a burst, then a steady rate.
///
/// A token bucket. Work and memory are bounded whatever the clock does.
#[derive(Clone, Debug)]
pub struct Allowance {
    left: u8,
    burst: u8,
    interval_ms: u16,
    refilled: Instant,
}

impl Allowance {
    /// `burst` times at once, and once more every `interval_ms` milliseconds.
    pub const fn new(burst: u8, interval_ms: u16) -> Self {
        Self {
            left: burst,
            burst,
            interval_ms,
            refilled: Instant::ORIGIN,
        }
    }

    /// Whether the action is allowed now.
    pub fn allows(&mut self, now: Instant) -> bool {
        let interval = Duration::from_millis(u64::from(self.interval_ms));
        while self.left < self.burst && now >= self.refilled + interval {
            self.left += 1;
            self.refilled += interval;
        }
        // A full bucket takes no more: what flowed over is lost.
        if self.left == self.burst {
            self.refilled = now;
        }
        self.left > 0
    }

    /// Whether the whole burst is left.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.allows(now) && self.left == self.burst
    }

    /// Whether the action is allowed now for one that leaves `reserve` times to others.
    #[cfg(feature = "security")]
    pub(crate) fn allows_beyond(&mut self, reserve: u8, now: Instant) -> bool {
        self.allows(now) && self.left > reserve
    }

    /// Uses up the permission, if the action is permitted now; returns whether it was.
    pub fn take(&mut self, now: Instant) -> bool {
        let allowed = self.allows(now);
        self.left = self.left.saturating_sub(1);
        allowed
    }

    /// Gives back a time that was taken, up to the burst: it was well used.
    pub fn give_back(&mut self) {
        self.left = self.left.saturating_add(1).min(self.burst);
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(sum(self.0, span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(sum(self.0, other.0))
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(difference(self.0, other.0))
    }
}

/// Microseconds added up, at most 2^64 - 1.
// Not inlined, as the difference below. On numbers, because a processor returns them in registers,
// and an instant or a span, which are structs, in memory.
#[cfg_attr(target_pointer_width = "32", inline(never))]
const fn sum(a: u64, b: u64) -> u64 {
    a.saturating_add(b)
}

/// Microseconds times a factor, at most 2^64 - 1.
#[cfg_attr(target_pointer_width = "32", inline(never))]
const fn product(a: u64, factor: u64) -> u64 {
    a.saturating_mul(factor)
}

/// Microseconds from `b` to `a`; 0 where `b` is greater.
#[cfg_attr(target_pointer_width = "32", inline(never))]
const fn difference(a: u64, b: u64) -> u64 {
    a.saturating_sub(b)
}

/// The earlier of two optional deadlines; `None` never comes.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// The earliest of several deadlines. A deadline that had come when the node was last polled does
/// not count: if its work is still due then, it waits for an event.
///
/// Each deadline is judged alone, so that one that has passed hides none that comes later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// When the node was last polled: deadlines up to this instant are left out.
    from: Instant,
    first: Option<Instant>,
}

impl Deadlines {
    /// No deadlines yet. `polled_at`: when the last poll found nothing more to do; `None`: there
    /// was an event since.
    pub(crate) fn after(polled_at: Option<Instant>) -> Self {
        let tick = Duration::from_micros(1);
        Self {
            from: polled_at.map_or(Instant::ORIGIN, |polled_at| polled_at + tick),
            first: None,
        }
    }

    /// Adds a deadline, where there is one.
    pub(crate) fn add(&mut self, deadline: Option<Instant>) {
        self.first = earliest(self.first, deadline.filter(|at| *at >= self.from));
    }

    /// The earliest deadline so far; `None` where every one offered had come already.
    pub(crate) const fn first(self) -> Option<Instant> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_waits_hides_none_that_comes_later() {
        let at = |us| Some(Instant::from_micros(us));
        for (polled_at, deadlines, first) in [
            (None, [None, at(5), at(3)], at(3)),
            (at(4), [None, at(5), at(3)], at(5)),
            (at(5), [at(5), at(0), at(7)], at(7)),
            (at(9), [at(5), None, at(9)], None),
        ] {
            let mut all = Deadlines::after(polled_at);
            for deadline in deadlines {
                all.add(deadline);
            }
            assert_eq!(all.first(), first, "{polled_at:?} {deadlines:?}");
        }
    }

    #[test]
    fn the_lower_class_goes_first_and_then_the_older() {
        let at = Instant::from_micros;
        let ranks = [
            at(0).rank(0),
            at(9).rank(0),
            at(u64::MAX).rank(0),
            at(0).rank(1),
            at(3).rank(7),
            at(u64::MAX).rank(255),
        ];
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    }

    #[test]
    fn nothing_wraps() {
        let end = Instant::from_micros(u64::MAX);
        assert_eq!(end + Duration::from_secs(1), end);
        assert_eq!(Duration::from_secs(u64::MAX).as_micros(), u64::MAX);
        assert_eq!(Instant::ORIGIN.since(end), Duration::ZERO);
        assert_eq!(Duration::ZERO - Duration::from_millis(1), Duration::ZERO);
    }

    #[test]
    fn seconds_round_down() {
        for (us, seconds) in [
            (0, 0),
            (999_999, 0),
            (1_000_000, 1),
            (65_535_999_999, 65_535),
            (u64::MAX, 274_877),
        ] {
            assert_eq!(Duration::from_micros(us).as_secs(), seconds, "{us}");
        }
    }

    #[test]
    fn never_is_later_than_any_time() {
        let (soon, late) = (Instant::from_micros(1), Instant::from_micros(2));
        assert_eq!(earliest(Some(late), Some(soon)), Some(soon));
        assert_eq!(earliest(None, Some(late)), Some(late));
        assert_eq!(earliest(None, None), None);
    }
}
