//! The radio's clock and the host's.
//!
//! A reading of the radio's clock counts as taken in the middle between request and answer. Its
//! error is half the difference between the delays of both directions. Two readings some time apart
//! give the rate of one clock against the other: crystals differ by 20 to 40 ppm, 2.4 ms a minute.
//!
//! The field has 64 bits, and some firmware counts only 32 of them, which wrap after 72 minutes.
//! All times are within minutes of the latest reading, so their lower 32 bits are enough.

use std::collections::VecDeque;

use motet::time::{Duration, Instant};

/// One reading of the radio's clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The host's clock, between request and answer.
    host_us: i128,
    /// The radio's clock; counts on where that wraps.
    radio_us: i128,
    round_trip: Duration,
}

/// The radio's clock as the host knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The oldest first.
    readings: VecDeque<Reading>,
    /// The best of the readings since the clock became due.
    best: Option<Reading>,
    tries: u8,
    due: Option<Instant>,
}

impl Clock {
    /// When the next reading is due; `None`: never.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes a reading, `None` where the radio has no clock. Returns whether the clock has jumped.
    pub(super) fn on_answer(&mut self, radio_us: Option<u64>, sent: Instant, now: Instant) -> bool {
        let next = now + INTERVAL;
        self.due = Some(next);
        let Some(radio_us) = radio_us else {
            return false;
        };
        let round_trip = now.since(sent);
        let (sent, now_us) = (i128::from(sent.as_micros()), i128::from(now.as_micros()));
        let reading = Reading {
            host_us: (sent + now_us) / 2,
            radio_us: self.unwrapped(radio_us),
            round_trip,
        };
        self.tries += 1;
        let best = match self.best {
            Some(best) if best.round_trip <= round_trip => best,
            _ => reading,
        };
        let shortest = self.readings.iter().map(|reading| reading.round_trip).min();
        let wanted = shortest.map(|shortest| shortest.saturating_mul(2) + SLACK);
        if wanted.is_some_and(|wanted| best.round_trip > wanted) && self.tries < TRIES_MAX {
            self.best = Some(best);
            self.due = Some(now);
            return false;
        }
        (self.best, self.tries) = (None, 0);
        let has_jumped = self.host_us(best.radio_us).is_some_and(|host_us| {
            let off = (host_us - best.host_us).unsigned_abs();
            off > JUMP_US + u128::from(best.round_trip.as_micros())
        });
        if has_jumped {
            self.readings.clear();
        }
        if self.readings.len() == READINGS_MAX {
            self.readings.pop_front();
        }
        self.readings.push_back(best);
        has_jumped
    }

    /// When the radio's clock showed `radio_us`, all of it or its lower 32 bits.
    pub(super) fn to_host(&self, radio_us: u64) -> Option<Instant> {
        let host_us = self.host_us(self.unwrapped(radio_us))?;
        // Before the host's clock began: no time of this session.
        u64::try_from(host_us).ok().map(Instant::from_micros)
    }

    /// The lower 32 bits of what the radio's clock shows at `at`.
    pub(super) fn to_radio(&self, at: Instant) -> Option<u32> {
        let last = self.readings.back()?;
        let (host, radio) = self.rate();
        let passed = i128::from(at.as_micros()) - last.host_us;
        Some((last.radio_us + passed * radio / host) as u32)
    }

    fn host_us(&self, radio_us: i128) -> Option<i128> {
        let last = self.readings.back()?;
        let (host, radio) = self.rate();
        Some(last.host_us + (radio_us - last.radio_us) * host / radio)
    }

    /// Spans of equal length on the host's and on the radio's clock, µs.
    fn rate(&self) -> (i128, i128) {
        let (Some(first), Some(last)) = (self.readings.front(), self.readings.back()) else {
            return (1, 1);
        };
        let host = last.host_us - first.host_us;
        let radio = last.radio_us - first.radio_us;
        let is_sound = host >= BASE_US && (host - radio).abs() <= host / DRIFT_SHARE_MAX;
        if is_sound { (host, radio) } else { (1, 1) }
    }

    /// The time nearest to the latest reading that has the same lower 32 bits.
    fn unwrapped(&self, radio_us: u64) -> i128 {
        let Some(last) = self.readings.back() else {
            return radio_us.into();
        };
        let passed = (radio_us as u32).wrapping_sub(last.radio_us as u32);
        last.radio_us + i128::from(passed as i32)
    }
}

/// Time between readings, as in OpenThread's own host.
const INTERVAL: Duration = Duration::from_secs(60);

/// Readings kept: the rate is taken over the longest span of them, eight minutes. Temperature
/// changes a crystal over longer times.
const READINGS_MAX: usize = 9;

/// A reading whose round trip is longer than twice the shortest one and this is repeated.
const SLACK: Duration = Duration::from_micros(500);
/// Requests for one reading.
const TRIES_MAX: u8 = 3;

/// Shortest span for a rate, µs: below it the line's delays weigh more than a crystal's drift.
const BASE_US: i128 = 50_000_000;
/// A rate that differs by more than this share, 200 ppm, is none of a crystal's.
const DRIFT_SHARE_MAX: i128 = 5_000;
/// A clock that is off by so much has jumped.
const JUMP_US: u128 = 500_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    /// A radio whose clock shows `start` at the host's zero, and goes `ppm` faster.
    fn shows(start: u64, ppm: i64, host_us: u64) -> u64 {
        let gained = i128::from(host_us) * i128::from(ppm) / 1_000_000;
        start.wrapping_add((i128::from(host_us) + gained) as u64)
    }

    /// Asks once a minute; each way of the line takes `way_us`.
    fn after_minutes(minutes: u64, way_us: u64, radio: impl Fn(u64) -> u64) -> Clock {
        let mut clock = Clock::default();
        for minute in 0..=minutes {
            let asked = minute * 60_000_000;
            let read = radio(asked + way_us);
            let has_jumped = clock.on_answer(Some(read), at(asked), at(asked + 2 * way_us));
            assert!(!has_jumped);
            assert_eq!(clock.due(), Some(at(asked + 2 * way_us) + INTERVAL));
        }
        clock
    }

    #[test]
    fn a_drifting_clock_is_followed_within_microseconds() {
        for ppm in [-40, 0, 40] {
            let radio = |us| shows(1 << 40, ppm, us);
            let clock = after_minutes(20, 2_000, radio);
            let later = 20 * 60_000_000 + 59_000_000;
            let mapped = clock.to_host(radio(later)).unwrap().as_micros();
            assert!(mapped.abs_diff(later) < 10, "{ppm} ppm: {mapped}");
            let back = clock.to_radio(at(later)).unwrap();
            assert!(back.abs_diff(radio(later) as u32) < 10, "{ppm} ppm");
        }
    }

    #[test]
    fn a_clock_of_32_bits_may_wrap() {
        // It wraps after ten minutes, between two readings, and again 72 minutes later.
        let start = u64::from(u32::MAX) - 630_000_000;
        let radio = |us| shows(start, 20, us) & 0xffff_ffff;
        for minutes in [5, 10, 11, 90] {
            let clock = after_minutes(minutes, 500, radio);
            for later in [0, 25_000_000, 59_000_000] {
                let later = minutes * 60_000_000 + later;
                let mapped = clock.to_host(radio(later)).unwrap().as_micros();
                let allowed = 10 + later / 100_000;
                assert!(mapped.abs_diff(later) < allowed, "{minutes}: {mapped}");
            }
        }
    }

    #[test]
    fn a_slow_answer_is_asked_again() {
        let mut clock = after_minutes(1, 500, |us| us);
        let asked = 120_000_000;
        assert!(!clock.on_answer(Some(asked + 500), at(asked), at(asked + 90_000)));
        assert_eq!(clock.due(), Some(at(asked + 90_000)));
        let asked = asked + 90_000;
        assert!(!clock.on_answer(Some(asked + 600), at(asked), at(asked + 1_200)));
        assert_eq!(clock.due(), Some(at(asked + 1_200) + INTERVAL));
        let mapped = clock.to_host(asked).unwrap().as_micros();
        assert!(mapped.abs_diff(asked) < 2, "{mapped}");
        // All are slow: the least slow one counts, after three.
        let mut clock = after_minutes(1, 500, |us| us);
        for (n, way) in [30_000, 20_000, 40_000].into_iter().enumerate() {
            let asked = 120_000_000 + n as u64 * 100_000;
            clock.on_answer(Some(asked + way), at(asked), at(asked + 2 * way));
        }
        assert_eq!(clock.readings.len(), 3);
        assert_eq!(clock.readings[2].round_trip, Duration::from_millis(40));
    }

    #[test]
    fn a_clock_that_jumps_is_read_afresh() {
        let mut clock = after_minutes(3, 500, |us| us);
        let asked = 240_000_000;
        assert!(clock.on_answer(Some(7_000), at(asked), at(asked + 1_000)));
        assert_eq!(clock.to_host(7_500), Some(at(asked + 1_000)));
    }

    #[test]
    fn a_radio_without_a_clock_is_asked_again_later() {
        let mut clock = Clock::default();
        assert!(!clock.on_answer(None, at(0), at(100)));
        assert_eq!(clock.due(), Some(at(100) + INTERVAL));
        assert_eq!((clock.to_host(7), clock.to_radio(at(7))), (None, None));
    }

    proptest! {
        #[test]
        fn whatever_a_radio_says_is_survived(
            readings in prop::collection::vec(any::<(u64, u32, u32)>(), 1..40),
            asked in any::<u64>(),
        ) {
            let mut clock = Clock::default();
            let mut now = 0_u64;
            for (radio_us, wait, round_trip) in readings {
                let sent = now + u64::from(wait);
                now = sent + u64::from(round_trip);
                clock.on_answer(Some(radio_us), at(sent), at(now));
                prop_assert!(clock.readings.len() <= READINGS_MAX);
                let _ = (clock.to_host(asked), clock.to_radio(at(asked)));
            }
        }
    }
}
