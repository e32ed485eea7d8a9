//! CUBIC beside RFC 9438 in floating point: random runs of acknowledgments, losses, timeouts,
//! pauses and reductions undone.

use super::super::control::cubic::{Cubic, Epoch, Stage};
use super::super::control::{Algorithm, Control, Growth};
use super::super::prr::Prr;
use super::super::{CongestionAlgorithm, Loss};
use proptest::prelude::*;
use std::num::NonZeroU16;

/// RFC 9438 §4, in segments and seconds.
struct Reference {
    smss: f64,
    cwnd: f64,
    ssthresh: f64,
    w_max: f64,
    cwnd_prior: f64,
    w_est: f64,
    k: f64,
    t: f64,
    /// The epoch begins with the next acknowledgment; `Some(true)`: behind a timeout.
    is_new: Option<bool>,
}

impl Reference {
    fn w_cubic(&self, t: f64) -> f64 {
        0.4 * (t - self.k).powi(3) + self.w_max
    }

    fn reduce(&mut self) {
        self.cwnd_prior = self.cwnd;
        // In bytes the least of it is 2 SMSS, and parts of a byte do not count.
        self.ssthresh = ((self.cwnd * self.smss).floor() * 0.7 / self.smss).max(2.0);
        self.is_new = Some(false);
    }

    /// `found`: cwnd of what is tested, and whether it held W_est for below cwnd_prior; where two
    /// numbers are so near one another that rounding decides between them, either choice is right.
    fn acknowledge(&mut self, segments: f64, (elapsed, rtt): (f64, f64), found: (f64, bool)) {
        let segments = segments.min(self.cwnd);
        match self.is_new.take() {
            Some(is_behind_timeout) => {
                if is_behind_timeout {
                    self.w_max = self.cwnd;
                } else if self.cwnd_prior < self.w_max {
                    // Parts of a byte do not count, or they would decide about the next loss.
                    let bytes = self.cwnd_prior * self.smss * (1.0 + 0.7) / 2.0;
                    self.w_max = (bytes + 1e-6).floor() / self.smss;
                } else {
                    self.w_max = self.cwnd_prior;
                }
                self.w_max = self.w_max.max(self.cwnd);
                self.k = ((self.w_max - self.cwnd) / 0.4).cbrt();
                self.t = 0.0;
                self.w_est = self.cwnd;
            }
            None => self.t += elapsed,
        }
        let (found, was_below) = found;
        let below = match (self.w_est - self.cwnd_prior).abs() < self.w_est * 0.02 {
            true => was_below,
            false => self.w_est < self.cwnd_prior,
        };
        let alpha = match below {
            true => 3.0 * (1.0 - 0.7) / (1.0 + 0.7),
            false => 1.0,
        };
        self.w_est += alpha * segments / self.cwnd;
        let target = self.w_cubic(self.t + rtt);
        let target = target.clamp(self.cwnd, 1.5 * self.cwnd);
        let as_reno = self.cwnd.max(self.w_est);
        let by_curve = self.cwnd + (target - self.cwnd) / self.cwnd * segments;
        let ahead = self.w_cubic(self.t) - self.w_est;
        let is_close = ahead.abs() < self.w_est * 0.02;
        let is_reno = match is_close {
            true => (found - as_reno).abs() < (found - by_curve).abs(),
            false => ahead < 0.0,
        };
        self.cwnd = if is_reno { as_reno } else { by_curve };
    }
}

/// Loss recovery in congestion avoidance, as a connection drives it, and what should come of it.
struct Run {
    loss: Loss,
    reference: Reference,
    smss: u32,
}

impl Run {
    fn new(smss: u32, segments: u32) -> Self {
        let mut loss = Loss::new(CongestionAlgorithm::Cubic);
        loss.begin(smss, 0);
        loss.congestion.cwnd = (smss * segments).min(65_535) as u16;
        let cwnd = f64::from(loss.congestion.cwnd) / f64::from(smss);
        let reference = Reference {
            smss: smss.into(),
            cwnd,
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            cwnd_prior: 0.0,
            w_est: 0.0,
            k: 0.0,
            t: 0.0,
            is_new: None,
        };
        Self {
            loss,
            reference,
            smss,
        }
    }

    /// A loss with the whole window in flight, up to the end of its recovery.
    fn lose(&mut self) {
        let congestion = &mut self.loss.congestion;
        self.loss.cwnd_prior = congestion.cwnd;
        self.loss.ssthresh_prior = congestion.ssthresh;
        let left = self.loss.control.reduced(congestion.cwnd.into());
        congestion.reduce(left, self.smss);
        congestion.cwnd = congestion.ssthresh;
        self.loss.control.begin_recovery(Prr::new(7));
        self.loss.control.end_recovery();
        self.reference.reduce();
        self.reference.cwnd = self.reference.ssthresh;
    }

    /// A timeout, and the slow start behind it.
    fn time_out(&mut self) {
        self.lose();
        self.loss.control.on_timeout();
        self.reference.is_new = Some(true);
    }

    fn acknowledge(&mut self, acked: u32, elapsed_ms: u32, srtt_ms: u32) {
        let growth = Growth {
            acked,
            smss: self.smss,
            elapsed_ms,
            srtt_ms,
            flight: self.loss.cwnd().into(),
            cwnd_prior: self.loss.cwnd_prior,
            is_final: self.loss.undo_left == 0,
        };
        let was_below = match self.cubic().stage {
            Stage::Epoch(epoch) => epoch.w_est < epoch.cwnd_prior,
            // Behind the first acknowledgment of an epoch, W_est is cwnd.
            _ => self.loss.cwnd() < self.loss.cwnd_prior,
        };
        self.avoid(&growth);
        let seconds = |ms| f64::from(ms) / 1000.0;
        let segments = f64::from(acked) / f64::from(self.smss);
        let times = (seconds(elapsed_ms), seconds(srtt_ms));
        let found = f64::from(self.loss.cwnd()) / f64::from(self.smss);
        self.reference
            .acknowledge(segments, times, (found, was_below));
        self.reference.cwnd = self.reference.cwnd.min(65_535.0 / f64::from(self.smss));
    }

    fn avoid(&mut self, growth: &Growth) {
        let Loss {
            control,
            congestion,
            ..
        } = &mut self.loss;
        control.avoid(congestion, growth);
    }

    fn cubic(&self) -> Cubic {
        let Control::Cubic(cubic) = self.loss.control else {
            panic!("another algorithm");
        };
        cubic
    }

    /// W_max of RFC 9438, in bytes.
    fn w_max(&self) -> Option<u16> {
        self.cubic().w_max.map(NonZeroU16::get)
    }

    fn epoch(&self) -> Epoch {
        match self.cubic().stage {
            Stage::Epoch(epoch) => epoch,
            stage => panic!("no epoch: {stage:?}"),
        }
    }

    /// cwnd, and what it should be, bytes.
    fn windows(&self) -> (f64, f64) {
        let cwnd = f64::from(self.loss.congestion.cwnd);
        (cwnd, self.reference.cwnd * f64::from(self.smss))
    }

    /// Takes the windows that were found for the reference's own, so that the next step is judged
    /// by itself: what one rounds off does not add up over hundreds of losses.
    fn agree(&mut self) {
        let segments = |bytes: u16| f64::from(bytes) / f64::from(self.smss);
        self.reference.cwnd = segments(self.loss.congestion.cwnd);
        if let Stage::Epoch(epoch) = self.cubic().stage
            && self.reference.is_new.is_none()
        {
            self.reference.w_est = segments(epoch.w_est);
        }
    }

    fn is_near(&self) -> bool {
        let (cwnd, expected) = self.windows();
        (cwnd - expected).abs() <= expected * 0.02 + 16.0
    }
}

proptest! {
    /// Whatever the segments, round trips and losses: each step leaves cwnd within 2% and 16 bytes
    /// of what RFC 9438 computes from the same state.
    #[test]
    fn cwnd_follows_rfc_9438(
        smss in 200u32..1440,
        segments in 2u32..40,
        rtt in 20u32..2000,
        steps in prop::collection::vec((0u8..40, 1u32..3, 50u32..150), 1..400),
    ) {
        let mut run = Run::new(smss, segments);
        run.lose();
        for (index, (kind, acked, jitter)) in steps.into_iter().enumerate() {
            match kind {
                0 => run.lose(),
                1 => run.time_out(),
                _ => {
                    // Two segments an ACK at most, spread over the round trip.
                    let (acked, cwnd) = (acked * smss, run.loss.cwnd().into());
                    let elapsed = rtt * acked.min(cwnd) / cwnd * jitter / 100;
                    run.acknowledge(acked, elapsed, rtt);
                }
            }
            prop_assert!(run.is_near(), "{index}: {:?}", run.windows());
            run.agree();
        }
    }
}

/// §4.2: K = (ΔW/C)^⅓, and at K the curve is at W_max: 10 segments lost leave 7, and it takes
/// 1.957 s to be back.
#[test]
fn the_curve_is_back_after_k() {
    let mut run = Run::new(1000, 10);
    run.lose();
    run.acknowledge(1000, 0, 0);
    assert_eq!(run.epoch().since_ms, -1959, "1957.4 by the formula");
    // So few at a time that Reno would grow less.
    for _ in 0..89 {
        // A window of 8,500 in 42 of these.
        run.acknowledge(200, 22, 935);
    }
    assert_eq!(run.epoch().since_ms, -1);
    assert_eq!(run.cubic().w_cubic(-1, 1000), 10_000);
    assert!(run.is_near(), "{:?}", run.windows());
    assert!(run.loss.cwnd() > 9_500, "{}", run.loss.cwnd());
}

/// §4.7: of two losses in a row the second leaves room to others: the plateau is at 85%.
#[test]
fn a_lower_window_converges_fast() {
    let mut run = Run::new(1000, 20);
    run.lose();
    run.acknowledge(1000, 0, 100);
    assert_eq!(run.w_max(), Some(20_000));
    let before = run.loss.cwnd();
    run.lose();
    run.acknowledge(1000, 0, 100);
    assert_eq!(run.w_max(), Some((u32::from(before) * 17 / 20) as u16));
}

/// §4.8: behind a timeout, the curve starts at its plateau.
#[test]
fn behind_a_timeout_k_is_0() {
    let mut run = Run::new(1000, 20);
    run.time_out();
    let cwnd = run.loss.cwnd();
    run.acknowledge(1000, 0, 1);
    assert_eq!(run.w_max(), Some(cwnd));
    assert_eq!(run.epoch().since_ms, 0);
}

/// §4.9: a reduction that was undone leaves W_max as it was, and the curve where cwnd is.
#[test]
fn an_undone_reduction_changes_no_curve() {
    for steps in [20, 60, 200] {
        let mut run = Run::new(1000, 20);
        run.lose();
        run.acknowledge(1000, 0, 0);
        for _ in 0..steps {
            run.acknowledge(200, 25, 0);
        }
        let (cwnd, ssthresh) = run.loss.windows(0, 0);
        run.lose();
        run.loss.congestion.cwnd = cwnd;
        run.loss.congestion.ssthresh = ssthresh;
        assert!(run.loss.control.on_undone());
        run.acknowledge(1, 0, 0);
        assert_eq!(run.w_max(), Some(20_000));
        let now = run.epoch().since_ms;
        let there = run.cubic().w_cubic(now.into(), 1000);
        assert!(there.abs_diff(cwnd.into()) <= 20, "{now}: {there} {cwnd}");
        assert!(run.loss.cwnd().abs_diff(cwnd) <= 10);
    }
}

/// While a report may take the reduction back, W_max stays the old one.
#[test]
fn no_epoch_begins_before_the_reduction_is_final() {
    let mut run = Run::new(1000, 20);
    run.lose();
    run.loss.undo_left = 1000;
    run.acknowledge(1000, 0, 100);
    assert_eq!(run.w_max(), None);
    assert_eq!(run.loss.cwnd(), 14_000);
}

/// Once an epoch has begun, its reduction is final; and a report that is awaited stops its clock.
#[test]
fn an_epoch_is_not_undone_and_waits_for_reports() {
    let mut run = Run::new(1000, 20);
    run.lose();
    run.acknowledge(1000, 0, 100);
    let epoch = run.epoch();
    run.loss.undo_left = 1000;
    run.acknowledge(1000, 50, 100);
    assert_eq!(run.epoch(), epoch);
    assert!(!run.loss.control.on_undone());
}

/// Settings that change during fast recovery: PRR goes on, and nothing was learnt of the path.
#[test]
fn another_algorithm_goes_on_with_a_recovery() {
    let mut loss = Loss::new(CongestionAlgorithm::NewReno);
    let prr = Prr::new(5000);
    loss.begin_recovery(prr);
    loss.choose(CongestionAlgorithm::NewReno);
    loss.choose(CongestionAlgorithm::Cubic);
    assert_eq!(loss.control.prr(), Some(&prr));
    let Control::Cubic(cubic) = loss.control else {
        panic!("{:?}", loss.control);
    };
    assert_eq!(cubic.w_max, None);
}

/// Days without a loss, at round trips of up to a minute: t stops where the curve has long left
/// 16 bits behind, and cwnd never falls.
#[test]
fn an_epoch_of_days_does_not_wrap() {
    for (smss, elapsed_ms) in [(24, 10), (24, 60_000), (1440, 300), (1440, 60_000)] {
        let mut run = Run::new(smss, 4);
        run.lose();
        for _ in 0..3 * 24 * 3600 * 1000 / elapsed_ms {
            let before = run.loss.cwnd();
            run.acknowledge(before.into(), elapsed_ms, 60_000);
            assert!(run.loss.cwnd() >= before);
        }
        assert_eq!(run.loss.cwnd(), u16::MAX);
        assert_eq!(run.epoch().since_ms, i16::MAX);
    }
}

/// A window that is not even half used neither grows nor lets time pass (§5.8).
#[test]
fn an_unused_window_stands_still() {
    let mut run = Run::new(1000, 20);
    run.lose();
    run.acknowledge(1000, 0, 100);
    let before = run.loss;
    for flight in [1000, 6900] {
        let growth = Growth {
            acked: 1000,
            smss: 1000,
            elapsed_ms: 10_000,
            srtt_ms: 100,
            flight,
            cwnd_prior: before.cwnd_prior,
            is_final: true,
        };
        run.avoid(&growth);
        assert_eq!(run.loss, before, "{flight} of 14,000");
    }
}

/// States from which an acknowledgment is taken in, with numbers at their ends.
const EXTREMES: [Stage; 6] = [
    Stage::Undisturbed { waits: false },
    Stage::Undisturbed { waits: true },
    Stage::Reduced {
        by_timeout: false,
        waits: true,
    },
    Stage::Reduced {
        by_timeout: true,
        waits: true,
    },
    Stage::Epoch(Epoch {
        since_ms: i16::MIN,
        w_est: u16::MAX,
        w_est_part: u16::MAX,
        cwnd_prior: u16::MAX,
    }),
    Stage::Epoch(Epoch {
        since_ms: i16::MAX,
        w_est: 0,
        w_est_part: 0,
        cwnd_prior: 1,
    }),
];

/// No numbers, however wrong, make it overflow or shrink cwnd.
#[test]
fn extremes_stay_within_16_bits() {
    for smss in [1, 24, 1440, 65_535] {
        for stage in EXTREMES {
            let mut run = Run::new(smss, 3);
            let w_max = NonZeroU16::new(u16::MAX);
            run.loss.control = Control::Cubic(Cubic { w_max, stage });
            let before = run.loss.cwnd();
            for _ in 0..3 {
                let growth = Growth {
                    acked: u32::MAX >> 1,
                    smss,
                    elapsed_ms: u32::MAX,
                    srtt_ms: 60_000,
                    flight: u32::MAX,
                    cwnd_prior: u16::MAX,
                    is_final: true,
                };
                run.avoid(&growth);
            }
            assert!(run.loss.cwnd() >= before);
        }
    }
}
