//! Bytes over the last minutes.

use motet::time::{Duration, Instant};

/// Counts bytes by steps of [`STEP`], for as long as the longest window.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// Bytes of each step, modulo the length.
    steps: Box<[u64; STEPS]>,
    /// The latest step that was counted in, since the origin of time.
    latest: u64,
    /// When the meter began to count.
    began: Instant,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            steps: Box::new([0; STEPS]),
            latest: step(now),
            began: now,
        }
    }

    /// Counts bytes that passed now.
    pub(crate) fn add(&mut self, bytes: u64, now: Instant) {
        self.turn(now);
        let place = place(self.latest);
        self.steps[place] += bytes;
    }

    /// Bits a second over the last `window`, at most ten minutes; over less where it has not
    /// counted for so long.
    pub(crate) fn rate_bps(&self, window: Duration, now: Instant) -> f64 {
        let now_step = step(now);
        let whole = (window.as_micros() / STEP.as_micros()).clamp(1, STEPS as u64 - 1);
        // The step that has just begun counts with the whole ones before it.
        let first = now_step.saturating_sub(whole);
        let kept = (self.latest + 1).saturating_sub(STEPS as u64);
        let bytes: u64 = (first.max(kept)..=self.latest.min(now_step))
            .map(|step| self.steps[place(step)])
            .sum();
        let from = Instant::from_micros(first * STEP.as_micros()).max(self.began);
        let span_us = now.since(from).max(SPAN_MIN).as_micros();
        bytes as f64 * 8e6 / span_us as f64
    }

    /// Takes over what another one has counted.
    pub(crate) fn absorb(&mut self, other: &Self, now: Instant) {
        self.turn(now);
        let kept = (self.latest + 1).saturating_sub(STEPS as u64);
        let others = (other.latest + 1).saturating_sub(STEPS as u64);
        for step in kept.max(others)..=self.latest.min(other.latest) {
            self.steps[place(step)] += other.steps[place(step)];
        }
        self.began = self.began.min(other.began);
    }

    /// Empties the steps between the latest and that of now.
    fn turn(&mut self, now: Instant) {
        let now_step = step(now);
        let passed = now_step.saturating_sub(self.latest).min(STEPS as u64);
        for step in now_step + 1 - passed..=now_step {
            self.steps[place(step)] = 0;
        }
        self.latest = self.latest.max(now_step);
    }
}

fn step(now: Instant) -> u64 {
    now.as_micros() / STEP.as_micros()
}

fn place(step: u64) -> usize {
    (step % STEPS as u64) as usize
}

/// The time resolution of windows.
const STEP: Duration = Duration::from_secs(10);

/// Ten minutes, the longest window.
const STEPS: usize = 60;

/// The shortest time over which a rate is meaningful.
const SPAN_MIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(seconds)
    }

    #[test]
    fn a_steady_rate_is_the_same_in_every_window() {
        let mut meter = Meter::new(at(1_000));
        for second in 1_000..3_000 {
            meter.add(125, at(second));
        }
        for window in [10, 60, 600] {
            let rate = meter.rate_bps(Duration::from_secs(window), at(3_000));
            assert!((rate - 1_000.0).abs() < 1.0, "{rate} over {window} s");
        }
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut meter = Meter::new(at(0));
        meter.add(1_000_000, at(0));
        let minute = Duration::from_secs(60);
        assert!(meter.rate_bps(minute, at(30)) > 0.0);
        assert_eq!(meter.rate_bps(minute, at(120)), 0.0);
        assert!(meter.rate_bps(Duration::from_secs(600), at(500)) > 0.0);
        for later in [620, 100_000, u64::MAX / 2_000_000] {
            assert_eq!(meter.rate_bps(Duration::from_secs(600), at(later)), 0.0);
            meter.add(0, at(later));
            assert_eq!(meter.rate_bps(Duration::from_secs(600), at(later)), 0.0);
        }
    }
}
