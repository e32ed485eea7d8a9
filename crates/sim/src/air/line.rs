//! A serial line, and how long a message takes on it.

use motet::time::{Duration, Instant};

/// A serial line, or what is as slow as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// The time of a byte, with start and stop bit where there are some, ns.
    pub byte_ns: u64,
    /// The time besides, of each message: drivers, USB's polls.
    pub delay: Duration,
}

impl Line {
    /// A line on which a byte takes ten bits.
    pub const fn of(bits_per_s: u64, delay: Duration) -> Self {
        Self {
            byte_ns: 10_000_000_000 / bits_per_s,
            delay,
        }
    }

    /// When a message of `len` bytes is at the other end, and when the line is free again.
    pub(super) fn cross(self, free_at: Instant, len: usize, now: Instant) -> (Instant, Instant) {
        let us = (len as u64 * self.byte_ns).div_ceil(1_000);
        let free_at = free_at.max(now) + Duration::from_micros(us);
        (free_at + self.delay, free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_each_other() {
        let line = Line::of(115_200, Duration::from_millis(1));
        let (there_at, free_at) = line.cross(Instant::ORIGIN, 100, Instant::ORIGIN);
        assert_eq!((there_at.as_micros(), free_at.as_micros()), (9_681, 8_681));
        let (there_at, _) = line.cross(free_at, 100, Instant::ORIGIN);
        assert_eq!(there_at.as_micros(), 18_362);
    }
}
