//! The driver's clock, in the time of the node.

use motet::time::Instant;

/// How far the node's clock is ahead of the driver's.
///
/// Both count the chip's low-frequency crystal, so that the distance is constant. A frame's stamp
/// is read late, by what an interrupt and a task take: the smallest distance seen is the best.
#[derive(Debug)]
pub(crate) struct Clock {
    ahead_us: Option<u64>,
}

impl Clock {
    pub(crate) const fn new() -> Self {
        Self { ahead_us: None }
    }

    /// The node's time at which the driver's clock was at `stamp_us`, and never later than `now`,
    /// when it was read. `None`: the driver took no time.
    pub(crate) fn map(&mut self, stamp_us: Option<u64>, now: Instant) -> Instant {
        let Some(stamp_us) = stamp_us else {
            return now;
        };
        // Modulo 2^64, since either may be ahead.
        let distance = now.as_micros().wrapping_sub(stamp_us);
        let best = match self.ahead_us {
            Some(known) if known.wrapping_sub(distance).cast_signed() <= 0 => known,
            _ => distance,
        };
        self.ahead_us = Some(best);
        Instant::from_micros(stamp_us.wrapping_add(best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_all(reads: &[(u64, u64)]) -> Vec<u64> {
        let mut clock = Clock::new();
        let map = |&(stamp, now): &(u64, u64)| {
            let at = clock.map(Some(stamp), Instant::from_micros(now));
            at.as_micros()
        };
        reads.iter().map(map).collect()
    }

    #[test]
    fn the_smallest_distance_seen_is_taken() {
        // The node's clock is 1,000 µs ahead; the stamps are read 300, 50, 900 and 51 µs late.
        let reads = [
            (5_000, 6_300),
            (6_000, 7_050),
            (7_000, 8_900),
            (8_000, 9_051),
        ];
        assert_eq!(map_all(&reads), [6_300, 7_050, 8_050, 9_050]);
    }

    #[test]
    fn the_driver_may_be_ahead() {
        let reads = [(900_000, 100), (900_500, 560), (901_000, 2_000)];
        assert_eq!(map_all(&reads), [100, 560, 1_060]);
    }

    #[test]
    fn a_frame_without_a_stamp_has_the_time_of_its_read() {
        let mut clock = Clock::new();
        let now = Instant::from_micros(77);
        assert_eq!(clock.map(None, now), now);
    }
}
