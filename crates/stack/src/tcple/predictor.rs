//! Whether a link is about to be bad: a logistic regression that learns as it goes.
//!
//! Inputs are frame error rate, signal strength and ratio of signal to noise of the last ten
//! connection events that a controller reported, since HCI reports events and not packets; each is
//! scaled to about one. The output is the chance that more than [`THETA`] of the packets of the
//! next two events have errors. Weights follow the gradient of each sample, and the learning rate
//! follows the gradients (s-ALAP).
//!
//! Differs: the paper leaves open the first learning rate, its bounds and how an average of
//! gradients fades; here 0.05, 0.0001 to 1, and 0.9. Weights start from what a thousand samples of
//! links of all strengths teach. Sources: Performant TCP over BLE, §IV.B; Almeida, Langlois,
//! Plakhov 1998 (the rate's rule).

/// The weights, and the connection events seen last.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    /// Weights of the inputs in their order, then the bias.
    weights: [f32; INPUTS + 1],
    /// Inputs of the last events, the newest first.
    inputs: Inputs,
    /// The inputs from which the pending prediction was made.
    asked: Inputs,
    /// The frame error rate, averaged over windows and those over time.
    rate: f32,
    learning: f32,
    last_gradient: [f32; INPUTS + 1],
    gradient_square: f32,
    /// Events since the last prediction, and packets with and without errors in them.
    events: u8,
    bad: u16,
    all: u16,
}

impl Predictor {
    /// Memory for it.
    pub(super) const EMPTY: Self = Self {
        weights: [0.0; INPUTS + 1],
        inputs: [[0.0; EACH]; LOOKBACK],
        asked: [[0.0; EACH]; LOOKBACK],
        learning: 0.0,
        ..Self::NEW
    };

    pub(super) const NEW: Self = Self {
        weights: PRETRAINED,
        inputs: [GOOD; LOOKBACK],
        asked: [GOOD; LOOKBACK],
        rate: 0.0,
        learning: LEARNING_FIRST,
        last_gradient: [0.0; INPUTS + 1],
        gradient_square: 0.0,
        events: 0,
        bad: 0,
        all: 0,
    };

    /// Notes a connection event: packets received with a good CRC and with a bad one, and the
    /// signal strength, dBm. Returns whether a prediction is due: every two events.
    pub(super) fn on_event(&mut self, (good, bad): (u16, u16), rssi: i8) -> bool {
        let all = good.saturating_add(bad);
        if all > 0 {
            let fer = f32::from(bad) / f32::from(all);
            self.rate = FADING * self.rate + (1.0 - FADING) * fer;
        }
        self.inputs.rotate_right(1);
        let [newest, ..] = &mut self.inputs;
        *newest = [
            self.rate,
            (f32::from(rssi) - RSSI_MIDDLE) / RSSI_SCALE,
            (f32::from(rssi) - SENSITIVITY) / SNR_SCALE,
        ];
        self.bad = self.bad.saturating_add(bad);
        self.all = self.all.saturating_add(all);
        self.events += 1;
        if self.events < PERIOD {
            return false;
        }
        if self.all > 0 {
            let is_bad = f32::from(self.bad) > THETA * f32::from(self.all);
            let asked = self.asked;
            self.learn(&asked, is_bad);
        }
        self.asked = self.inputs;
        (self.events, self.bad, self.all) = (0, 0, 0);
        true
    }

    /// The chance that the next two events are bad.
    pub(super) fn chance(&self) -> f32 {
        self.chance_of(&self.inputs)
    }

    /// The share of packets that are expected to have errors in the next two events.
    ///
    /// The classifier predicts only whether the share is above [`THETA`]. If so, the share is taken
    /// as [`THETA`] or, if higher, the average; otherwise as zero, because the interval has slack
    /// for a few errors.
    pub(super) fn errors(&self) -> f32 {
        match self.chance() >= 0.5 {
            true => self.rate.clamp(THETA, ERRORS_MAX),
            false => 0.0,
        }
    }

    fn chance_of(&self, inputs: &Inputs) -> f32 {
        let products = self.weights.iter().zip(inputs.as_flattened());
        let sum: f32 = products.map(|(weight, input)| weight * input).sum();
        let bias = self.weights.last().copied().unwrap_or(0.0);
        1.0 / (1.0 + libm::expf(-(sum + bias)))
    }

    /// Updates the weights by one sample: the inputs, and whether the events after them were bad.
    fn learn(&mut self, inputs: &Inputs, is_bad: bool) {
        let label = if is_bad { 1.0 } else { 0.0 };
        let error = label - self.chance_of(inputs);
        let mut gradient = [error; INPUTS + 1];
        for (part, input) in gradient.iter_mut().zip(inputs.as_flattened()) {
            *part *= input;
        }
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let square = dot(&gradient, &gradient);
        self.gradient_square = AVERAGING * self.gradient_square + (1.0 - AVERAGING) * square;
        if self.gradient_square > 0.0 {
            let along = dot(&gradient, &self.last_gradient) / self.gradient_square;
            let factor = (1.0 + META * along).max(0.5);
            self.learning = (self.learning * factor).clamp(LEARNING_MIN, LEARNING_MAX);
        }
        for (weight, part) in self.weights.iter_mut().zip(&gradient) {
            *weight += self.learning * part;
        }
        self.last_gradient = gradient;
    }
}

/// Inputs of an event without errors at -60 dBm; they stand for events before the first report.
const GOOD: [f32; EACH] = [
    0.0,
    (-60.0 - RSSI_MIDDLE) / RSSI_SCALE,
    (-60.0 - SENSITIVITY) / SNR_SCALE,
];

/// Events that are looked back at (M), and inputs of each.
const LOOKBACK: usize = 10;
const EACH: usize = 3;
const INPUTS: usize = LOOKBACK * EACH;
type Inputs = [[f32; EACH]; LOOKBACK];

/// The share of errors from which a link is bad: nine tenths of a tolerance of 25 %.
const THETA: f32 = 0.225;

/// Beyond it hardly anything passes, and no interval would be long enough.
const ERRORS_MAX: f32 = 0.75;

/// Events from one prediction to the next.
const PERIOD: u8 = 2;

/// The weight that the average error rate keeps at each event (WMEWMA).
const FADING: f32 = 0.6;

const LEARNING_FIRST: f32 = 0.05;
const LEARNING_MIN: f32 = 1e-4;
const LEARNING_MAX: f32 = 1.0;
const AVERAGING: f32 = 0.9;
/// The learning rate of the learning rate.
const META: f32 = 0.8;

/// Scales of inputs: the middle of strengths at which receivers work, and a receiver's sensitivity
/// (nRF52840 at 1 Mb/s, product specification §6.20.15), dBm.
const RSSI_MIDDLE: f32 = -70.0;
const RSSI_SCALE: f32 = 20.0;
const SENSITIVITY: f32 = -95.0;
const SNR_SCALE: f32 = 40.0;

/// Weights after a training of a thousand samples; the test `weights_are_what_training_gives`
/// computes them.
#[rustfmt::skip]
const PRETRAINED: [f32; INPUTS + 1] = [
    2.962, 0.395, -1.133,
    2.550, 0.395, -1.133,
    2.146, 0.830, -0.916,
    1.884, 0.830, -0.916,
    1.734, 0.713, -0.975,
    1.464, 0.713, -0.975,
    1.194, 0.201, -1.230,
    1.003, 0.201, -1.230,
    0.588, -0.526, -1.594,
    0.350, -0.526, -1.594,
    -2.130,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    /// Weights that a thousand events teach: twenty each of links whose strengths are anything from
    /// -98 to -50 dBm, each event of ten packets, whose error rate falls from one half at the
    /// sensitivity to nothing 8 dB above it.
    fn trained() -> Predictor {
        let mut predictor = Predictor {
            weights: [0.0; INPUTS + 1],
            ..Predictor::NEW
        };
        let mut rng = Rng::from_seed([1, 1]);
        let mut part = || (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
        for _ in 0..1_000 / (2 * LOOKBACK) {
            predictor.inputs = Predictor::NEW.inputs;
            predictor.asked = Predictor::NEW.inputs;
            (predictor.rate, predictor.all, predictor.events) = (0.0, 0, 0);
            let rssi = (-98.0 + 48.0 * part()) as i8;
            let margin = f32::from(rssi) - SENSITIVITY;
            let error = 1.0 / (1.0 + libm::expf(margin));
            for _ in 0..2 * LOOKBACK {
                let bad = (0..10).filter(|_| part() < error).count() as u16;
                predictor.on_event((10 - bad, bad), rssi);
            }
        }
        predictor
    }

    #[test]
    fn weights_are_what_training_gives() {
        let trained = trained();
        for (given, learnt) in PRETRAINED.iter().zip(&trained.weights) {
            assert!((given - learnt).abs() < 0.005, "{:?}", trained.weights);
        }
    }

    #[test]
    fn a_bad_link_is_told_from_a_good_one_at_once_and_learnt_when_it_changes() {
        let mut fresh = Predictor::NEW;
        for _ in 0..4 {
            fresh.on_event((10, 0), -60);
        }
        assert!(fresh.errors() <= 0.0, "{}", fresh.chance());
        // Strong, and yet bad: no sample of the training was like that.
        let mut errors = 0.0;
        for _ in 0..60 {
            fresh.on_event((5, 5), -60);
            errors = fresh.errors();
        }
        assert!((errors - 0.5).abs() < 0.05, "{errors}");
        for _ in 0..60 {
            fresh.on_event((10, 0), -60);
        }
        assert!(fresh.errors() <= 0.0);
    }

    #[test]
    fn the_learning_rate_stays_within_its_bounds() {
        let mut predictor = Predictor::NEW;
        for round in 0..500_u16 {
            let bad = if round / 7 % 2 == 0 { 9 } else { 0 };
            predictor.on_event((10 - bad, bad), (round % 120) as i8 - 100);
            let rate = predictor.learning;
            assert!((LEARNING_MIN..=LEARNING_MAX).contains(&rate), "{rate}");
            assert!(predictor.chance().is_finite());
        }
    }
}
