//! The Trickle timer: DIOs are rare while neighbours agree, and quick when they do not.
//!
//! An interval lasts from `Imin` up to `Imin` doubled as often as configured. In its second half
//! falls one moment at which the owner transmits, unless it has heard at least `k` consistent
//! messages in this interval by then; the first half only listens. An owner with news of its own
//! may insist on the next moment.
//! Source: RFC 6206 §4.

use crate::random::Rng;
use crate::time::{Duration, Instant};

/// The timer of one node.
#[derive(Debug)]
pub(super) struct Trickle {
    /// Binary logarithm of `Imin`, milliseconds.
    interval_min: u8,
    doublings_max: u8,
    /// `k`; 0: nothing is suppressed (RFC 6550 §8.3.1).
    redundancy: u8,
    doublings: u8,
    /// Consistent messages heard in this interval: RFC 6206's `c`.
    heard: u8,
    /// The moment of this interval at which to transmit: RFC 6206's `t`, while it lies ahead.
    transmits: bool,
    /// The next transmission is news for the nodes below, and is not suppressed.
    insists: bool,
    /// The next event: that moment, then the interval's end. `None`: stopped.
    at: Option<Instant>,
    ends: Instant,
}

impl Trickle {
    pub(super) const STOPPED: Self = Self {
        interval_min: 0,
        doublings_max: 0,
        redundancy: 0,
        doublings: 0,
        heard: 0,
        transmits: false,
        insists: false,
        at: None,
        ends: Instant::ORIGIN,
    };

    /// Starts with the shortest interval (RFC 6206 §4.2 allows any), whatever went on before.
    /// `interval_min`: binary logarithm of `Imin` in milliseconds; an interval of more than 2^31
    /// milliseconds is cut to that.
    pub(super) fn start(
        &mut self,
        (interval_min, doublings_max, redundancy): (u8, u8, u8),
        now: Instant,
        rng: &mut Rng,
    ) {
        let interval_min = interval_min.min(INTERVAL_LOG2_MAX);
        *self = Self {
            interval_min,
            doublings_max: doublings_max.min(INTERVAL_LOG2_MAX - interval_min),
            redundancy,
            ..Self::STOPPED
        };
        self.begin(now, rng);
    }

    pub(super) fn stop(&mut self) {
        self.at = None;
    }

    pub(super) const fn is_running(&self) -> bool {
        self.at.is_some()
    }

    /// Whether a reset would change anything.
    pub(super) const fn is_slow(&self) -> bool {
        self.at.is_some() && self.doublings > 0
    }

    /// An inconsistency was heard: the shortest interval begins, unless it runs already.
    pub(super) fn reset(&mut self, now: Instant, rng: &mut Rng) {
        if self.is_slow() {
            self.doublings = 0;
            self.begin(now, rng);
        }
    }

    /// A consistent message was heard.
    pub(super) fn on_consistent(&mut self) {
        self.heard = self.heard.saturating_add(1);
    }

    /// The next transmission has news of this node alone: it is not suppressed.
    pub(super) const fn insist(&mut self) {
        self.insists = self.at.is_some();
    }

    pub(super) const fn next_deadline(&self) -> Option<Instant> {
        self.at
    }

    /// Whether to transmit now. Where an interval ends, the next begins.
    pub(super) fn poll(&mut self, now: Instant, rng: &mut Rng) -> bool {
        if self.at.is_none_or(|at| now < at) {
            return false;
        }
        if core::mem::take(&mut self.transmits) {
            self.at = Some(self.ends);
            let insists = core::mem::take(&mut self.insists);
            return insists || self.redundancy == 0 || self.heard < self.redundancy;
        }
        self.doublings = (self.doublings + 1).min(self.doublings_max);
        self.begin(now, rng);
        false
    }

    fn begin(&mut self, now: Instant, rng: &mut Rng) {
        let interval_ms = 1u32 << (self.interval_min + self.doublings).min(INTERVAL_LOG2_MAX);
        let half_ms = interval_ms / 2;
        let listens_ms = half_ms + rng.below(interval_ms - half_ms);
        self.heard = 0;
        self.transmits = true;
        self.at = Some(now + Duration::from_millis(u64::from(listens_ms)));
        self.ends = now + Duration::from_millis(u64::from(interval_ms));
    }
}

/// Milliseconds of the longest interval, as a binary logarithm: 25 days.
const INTERVAL_LOG2_MAX: u8 = 31;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};
    use std::vec::Vec;

    /// Transmissions of a timer that hears `hears(interval)` consistent messages an interval,
    /// in the first `intervals` of them: interval, start, and when it transmitted, milliseconds.
    fn run(
        trickle: &mut Trickle,
        intervals: usize,
        hears: impl Fn(usize) -> u8,
        rng: &mut Rng,
    ) -> Vec<(usize, u64, Option<u64>)> {
        let mut rows = Vec::new();
        for interval in 0..intervals {
            let ends = trickle.ends;
            for _ in 0..hears(interval) {
                trickle.on_consistent();
            }
            let at = trickle.next_deadline().unwrap();
            let transmits = trickle.poll(at, rng).then_some(at.as_micros() / 1000);
            assert_eq!(trickle.next_deadline(), Some(ends));
            rows.push((interval, ends.as_micros() / 1000, transmits));
            assert!(!trickle.poll(ends, rng));
        }
        rows
    }

    #[test]
    fn intervals_double_up_to_the_longest_and_transmit_in_their_second_half() {
        let mut rng = Rng::from_seed([1, 2]);
        let mut trickle = Trickle::STOPPED;
        trickle.start((3, 2, 1), Instant::ORIGIN, &mut rng);
        let rows = run(&mut trickle, 5, |_| 0, &mut rng);
        let ends: Vec<u64> = rows.iter().map(|(_, ends, _)| *ends).collect();
        assert_eq!(ends, [8, 24, 56, 88, 120]);
        for ((_, ends, at), len) in rows.iter().zip([8, 16, 32, 32, 32]) {
            let at = at.expect("nothing suppressed it");
            assert!((ends - len / 2..*ends).contains(&at), "{at} of {ends}");
        }
    }

    #[test]
    fn as_many_as_the_redundancy_suppress() {
        let mut rng = Rng::from_seed([1, 2]);
        for (redundancy, hears, transmits) in
            [(2, 1, true), (2, 2, false), (2, 3, false), (0, 200, true)]
        {
            let mut trickle = Trickle::STOPPED;
            trickle.start((3, 2, redundancy), Instant::ORIGIN, &mut rng);
            // What was heard in an interval counts in that interval alone.
            let rows = run(
                &mut trickle,
                2,
                |i| if i == 0 { hears } else { 0 },
                &mut rng,
            );
            let did = rows.iter().map(|(_, _, at)| at.is_some());
            assert_eq!(did.collect::<Vec<_>>(), [transmits, true]);
        }
    }

    #[test]
    fn news_of_ones_own_is_not_suppressed_once() {
        let mut rng = Rng::from_seed([1, 2]);
        let mut trickle = Trickle::STOPPED;
        trickle.insist();
        trickle.start((3, 2, 2), Instant::ORIGIN, &mut rng);
        trickle.insist();
        let rows = run(&mut trickle, 2, |_| 5, &mut rng);
        let did = rows.iter().map(|(_, _, at)| at.is_some());
        assert_eq!(did.collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_reset_begins_anew_only_where_the_interval_is_longer() {
        let mut rng = Rng::from_seed([1, 2]);
        let mut trickle = Trickle::STOPPED;
        trickle.reset(Instant::ORIGIN, &mut rng);
        assert!(!trickle.is_running());
        trickle.start((3, 2, 1), Instant::ORIGIN, &mut rng);
        let before = (trickle.at, trickle.ends);
        trickle.reset(Instant::from_micros(1_000), &mut rng);
        assert_eq!((trickle.at, trickle.ends), before);
        run(&mut trickle, 2, |_| 0, &mut rng);
        let now = Instant::from_micros(30_000);
        trickle.reset(now, &mut rng);
        assert_eq!(trickle.ends, now + Duration::from_millis(8));
        trickle.stop();
        assert_eq!(trickle.next_deadline(), None);
        assert!(!trickle.poll(now + Duration::from_secs(9), &mut rng));
    }

    proptest! {
        #[test]
        fn any_configuration_goes_on(min: u8, doublings: u8, redundancy: u8, seed: [u64; 2]) {
            let mut rng = Rng::from_seed(seed);
            let mut trickle = Trickle::STOPPED;
            trickle.start((min, doublings, redundancy), Instant::ORIGIN, &mut rng);
            let mut last = Instant::ORIGIN;
            for _ in 0..80 {
                let at = trickle.next_deadline().unwrap();
                prop_assert!(at >= last);
                last = at;
                trickle.poll(at, &mut rng);
            }
            prop_assert!(trickle.ends > last || trickle.transmits);
        }
    }
}
