//! The predictor beside the same rules with numbers of floating point.

use super::*;
use crate::random::Rng;

fn real(value: Fixed) -> f64 {
    f64::from(value) / f64::from(ONE)
}

/// A number from 0 to 1.
fn part(rng: &mut Rng) -> f64 {
    f64::from(rng.next_u32()) / f64::from(u32::MAX)
}

/// The share of packets that have errors at a signal of `rssi` dBm: from half of them at the
/// sensitivity to none 8 dB above it.
fn errors_at(rssi: i8) -> f64 {
    let margin = f64::from(i32::from(rssi) - SENSITIVITY);
    1.0 / (1.0 + libm::exp(margin))
}

/// Packets of `all` that have errors, where that share has.
fn bad_of(all: u16, errors: f64, rng: &mut Rng) -> u16 {
    (0..all).filter(|_| part(rng) < errors).count() as u16
}

/// Weights that a thousand events teach: twenty each of links whose strengths are anything from
/// -98 to -50 dBm, each event of ten packets.
fn trained() -> Predictor {
    let mut predictor = Predictor {
        weights: [0; INPUTS + 1],
        ..Predictor::NEW
    };
    let mut rng = Rng::from_seed([1, 1]);
    for _ in 0..1_000 / (2 * LOOKBACK) {
        (predictor.rates, predictor.rssi) = (Predictor::NEW.rates, Predictor::NEW.rssi);
        (predictor.all, predictor.events) = (0, 0);
        let rssi = (-98.0 + 48.0 * part(&mut rng)) as i8;
        for _ in 0..2 * LOOKBACK {
            let bad = bad_of(10, errors_at(rssi), &mut rng);
            predictor.on_event((10 - bad, bad), rssi);
        }
    }
    predictor
}

#[test]
fn weights_are_what_training_gives() {
    let trained = trained();
    for (given, learnt) in PRETRAINED.iter().zip(&trained.weights) {
        let weights = trained.weights.map(real);
        assert!(real((given - learnt).abs()) < 0.005, "{weights:?}");
    }
}

#[test]
fn a_bad_link_is_told_from_a_good_one_at_once_and_learnt_when_it_changes() {
    let mut fresh = Predictor::NEW;
    for _ in 0..4 {
        fresh.on_event((10, 0), -60);
    }
    assert_eq!(fresh.errors(), 0);
    // Strong, and yet bad: no sample of the training was like that.
    let mut errors = 0.0;
    for _ in 0..60 {
        fresh.on_event((5, 5), -60);
        errors = real(fresh.errors());
    }
    assert!((errors - 0.5).abs() < 0.05, "{errors}");
    for _ in 0..60 {
        fresh.on_event((10, 0), -60);
    }
    assert_eq!(fresh.errors(), 0);
}

#[test]
fn the_learning_rate_stays_within_its_bounds() {
    let mut predictor = Predictor::NEW;
    let mut note = |(good, bad), rssi| {
        predictor.on_event((good, bad), rssi);
        let rate = u64::from(predictor.learning);
        assert!((LEARNING_MIN..=LEARNING_MAX).contains(&rate), "{rate}");
    };
    for round in 0..500_u16 {
        let bad = if round / 7 % 2 == 0 { 9 } else { 0 };
        note((10 - bad, bad), (round % 120) as i8 - 100);
    }
    // Numbers that no controller gives: nothing overflows.
    for round in 0..500_u16 {
        let packets = if round / 2 % 2 == 0 {
            (0, u16::MAX)
        } else {
            (u16::MAX, 0)
        };
        note(packets, if round < 400 { i8::MAX } else { i8::MIN });
    }
}

#[test]
fn the_chance_is_the_logistic_function() {
    for step in -2_000..=2_000 {
        let score = step * (ONE / 100);
        let exact = 1.0 / (1.0 + libm::exp(-real(score)));
        let given = f64::from(chance(score)) / f64::from(CERTAIN);
        assert!((given - exact).abs() < 3e-7, "{step}: {given}, not {exact}");
    }
}

/// The same rules with numbers of floating point.
struct Exact {
    weights: [f64; INPUTS + 1],
    inputs: [f64; INPUTS],
    asked: [f64; INPUTS],
    rate: f64,
    learning: f64,
    last_gradient: [f64; INPUTS + 1],
    gradient_square: f64,
    count: (u8, u16, u16),
}

impl Exact {
    fn new() -> Self {
        let mut inputs = [0.0; INPUTS];
        for (to, from) in inputs
            .iter_mut()
            .zip(Predictor::NEW.inputs(0).as_flattened())
        {
            *to = real(*from);
        }
        Self {
            weights: PRETRAINED.map(real),
            inputs,
            asked: inputs,
            rate: 0.0,
            learning: 0.05,
            last_gradient: [0.0; INPUTS + 1],
            gradient_square: 0.0,
            count: (0, 0, 0),
        }
    }

    fn score(&self, inputs: &[f64]) -> f64 {
        dot(&self.weights, inputs) + self.weights[INPUTS]
    }

    fn on_event(&mut self, (good, bad): (u16, u16), rssi: i8) {
        if good + bad > 0 {
            self.rate = 0.6 * self.rate + 0.4 * f64::from(bad) / f64::from(good + bad);
        }
        self.inputs.rotate_right(EACH);
        let rssi = f64::from(rssi);
        let newest = [self.rate, (rssi + 70.0) / 20.0, (rssi + 95.0) / 40.0];
        self.inputs[..EACH].copy_from_slice(&newest);
        let (events, all_bad, all) = &mut self.count;
        (*events, *all_bad, *all) = (*events + 1, *all_bad + bad, *all + good + bad);
        if *events == PERIOD {
            if *all > 0 {
                let label = f64::from(u8::from(u32::from(*all_bad) * 40 > u32::from(*all) * 9));
                let error = label - 1.0 / (1.0 + libm::exp(-self.score(&self.asked)));
                self.learn(error);
            }
            self.asked = self.inputs;
            self.count = (0, 0, 0);
        }
    }

    fn learn(&mut self, error: f64) {
        let mut gradient = [error; INPUTS + 1];
        for (part, input) in gradient.iter_mut().zip(&self.asked) {
            *part *= input;
        }
        self.gradient_square = 0.9 * self.gradient_square + 0.1 * dot(&gradient, &gradient);
        let along = dot(&gradient, &self.last_gradient) / self.gradient_square;
        let factor = (1.0 + 0.8 * along).max(0.5);
        self.learning = (self.learning * factor).clamp(1e-4, 1.0);
        for (weight, part) in self.weights.iter_mut().zip(&gradient) {
            *weight += self.learning * part;
        }
        self.last_gradient = gradient;
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// How the predictor decided where floating point was sure.
#[derive(Clone, Copy, Default, Debug)]
struct Decisions {
    good: u32,
    bad: u32,
    /// Decisions that were not those of floating point.
    different: u32,
    unsure: u32,
}

/// Decisions about links that come and go, of strengths from `weakest` dBm on over `span` dB, with
/// as many packets in an event as one of `packets`. One link in four is disturbed, too.
fn decisions(weakest: f64, span: f64, packets: &[u16]) -> Decisions {
    let mut decisions = Decisions::default();
    for seed in 0..20 {
        let mut rng = Rng::from_seed([seed, 1]);
        let (mut predictor, mut exact) = (Predictor::NEW, Exact::new());
        for _ in 0..50 {
            let middle = weakest + span * part(&mut rng);
            let disturbed = (2.0 * part(&mut rng) - 1.5).max(0.0);
            for _ in 0..40 {
                let rssi = (middle + 4.0 * part(&mut rng)) as i8;
                let all = packets[rng.next_u32() as usize % packets.len()];
                let bad = bad_of(all, errors_at(rssi).max(disturbed), &mut rng);
                predictor.on_event((all - bad, bad), rssi);
                exact.on_event((all - bad, bad), rssi);
                decisions.note(predictor.errors(), &exact);
            }
        }
    }
    decisions
}

impl Decisions {
    fn note(&mut self, given: Fixed, exact: &Exact) {
        let score = exact.score(&exact.inputs);
        if score.abs() < 0.02 {
            self.unsure += 1;
            return;
        }
        *(if score > 0.0 {
            &mut self.bad
        } else {
            &mut self.good
        }) += 1;
        self.different += u32::from((given > 0) != (score > 0.0));
        let rate = exact.rate.clamp(0.225, 0.75);
        assert!(given == 0 || (real(given) - rate).abs() < 1e-6, "{rate}");
    }
}

/// Where floating point is sure of what it predicts, so is the predictor of the same, however few
/// packets come and however strong the signal is. The tolerance is one decision in twenty thousand:
/// where labels come at random, a difference of a rounding grows.
#[test]
fn predictions_are_those_of_floating_point() {
    let cases: [(f64, f64, &[u16]); 5] = [
        (-98.0, 48.0, &[10]),
        (-98.0, 48.0, &[1, 2, 3]),
        (-90.0, 50.0, &[0, 1, 3, 10]),
        (-40.0, 10.0, &[0, 1, 3, 10]),
        (-98.0, 78.0, &[0, 0, 0, 1]),
    ];
    for case in cases {
        let (weakest, span, packets) = case;
        let decisions = decisions(weakest, span, packets);
        let Decisions { good, bad, .. } = decisions;
        assert!(good > 10_000 && bad > 1_000, "{case:?}: {decisions:?}");
        assert!(decisions.unsure < 100, "{case:?}: {decisions:?}");
        let tolerance = (good + bad) / 20_000;
        assert!(decisions.different <= tolerance, "{case:?}: {decisions:?}");
    }
}
