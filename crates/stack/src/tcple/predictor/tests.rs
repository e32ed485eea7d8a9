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

/// Packets of ten that have errors at a signal of `rssi` dBm: from half of them at the sensitivity
/// to none 8 dB above it.
fn bad_of_ten(rssi: i8, rng: &mut Rng) -> u16 {
    let margin = f64::from(i32::from(rssi) - SENSITIVITY);
    let error = 1.0 / (1.0 + libm::exp(margin));
    (0..10).filter(|_| part(rng) < error).count() as u16
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
            let bad = bad_of_ten(rssi, &mut rng);
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
    for round in 0..500_u16 {
        let bad = if round / 7 % 2 == 0 { 9 } else { 0 };
        predictor.on_event((10 - bad, bad), (round % 120) as i8 - 100);
        let rate = u64::from(predictor.learning);
        assert!((LEARNING_MIN..=LEARNING_MAX).contains(&rate), "{rate}");
    }
}

#[test]
fn the_chance_is_the_logistic_function() {
    for step in -2_000..=2_000 {
        let score = step * (ONE / 100);
        let exact = 1.0 / (1.0 + libm::exp(-real(score)));
        let given = real(chance(score));
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
        self.rate = 0.6 * self.rate + 0.4 * f64::from(bad) / f64::from(good + bad);
        self.inputs.rotate_right(EACH);
        let rssi = f64::from(rssi);
        let newest = [self.rate, (rssi + 70.0) / 20.0, (rssi + 95.0) / 40.0];
        self.inputs[..EACH].copy_from_slice(&newest);
        let (events, all_bad, all) = &mut self.count;
        (*events, *all_bad, *all) = (*events + 1, *all_bad + bad, *all + good + bad);
        if *events == PERIOD {
            let label = f64::from(u8::from(all_bad.saturating_mul(40) > all.saturating_mul(9)));
            let error = label - 1.0 / (1.0 + libm::exp(-self.score(&self.asked)));
            self.learn(error);
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

/// Links that come and go, of all strengths: where floating point is sure of what it predicts, so
/// is the predictor of the same.
#[test]
fn predictions_are_those_of_floating_point() {
    let (mut sure, mut unsure) = ([0; 2], 0);
    for seed in 0..20 {
        let mut rng = Rng::from_seed([seed, 1]);
        let (mut predictor, mut exact) = (Predictor::NEW, Exact::new());
        for _ in 0..50 {
            let middle = -98.0 + 48.0 * part(&mut rng);
            for _ in 0..40 {
                let rssi = (middle + 4.0 * part(&mut rng)) as i8;
                let bad = bad_of_ten(rssi, &mut rng);
                predictor.on_event((10 - bad, bad), rssi);
                exact.on_event((10 - bad, bad), rssi);
                let (given, score) = (predictor.errors(), exact.score(&exact.inputs));
                if score.abs() < 0.02 {
                    unsure += 1;
                    continue;
                }
                sure[usize::from(score > 0.0)] += 1;
                assert_eq!(given > 0, score > 0.0, "{score}");
                let rate = exact.rate.clamp(0.225, 0.75);
                assert!(given == 0 || (real(given) - rate).abs() < 1e-6, "{rate}");
            }
        }
    }
    let [good, bad] = sure;
    assert!(
        good > 10_000 && bad > 1_000 && unsure < 100,
        "{good}, {bad}, {unsure}"
    );
}
