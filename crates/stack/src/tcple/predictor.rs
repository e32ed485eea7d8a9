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
//! links of all strengths teach. Numbers have 24 binary places: arithmetic of floating point would
//! take 2.5 KB of a processor that has none. Sources: Performant TCP over BLE, §IV.B; Almeida, Langlois,
//! Plakhov 1998 (the rate's rule).

/// A number with 24 binary places, between -128 and 128.
pub(super) type Fixed = i32;

/// 1 as such a number.
pub(super) const ONE: Fixed = 1 << PLACES;
pub(super) const PLACES: u32 = 24;

/// The weights, and the connection events seen last.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    /// Weights of the inputs in their order, then the bias.
    weights: [Fixed; INPUTS + 1],
    /// The frame error rate after each of the last events, the newest first: averaged over windows
    /// and those over time.
    rates: [Fixed; SEEN],
    /// The signal strength at each of them, dBm.
    rssi: [i8; SEEN],
    /// The learning rate, with 30 binary places: it changes by small factors.
    learning: u32,
    last_gradient: [Fixed; INPUTS + 1],
    /// With 40 binary places.
    gradient_square: u64,
    /// Events since the last prediction, and packets with and without errors in them.
    events: u8,
    bad: u16,
    all: u16,
}

impl Predictor {
    /// Memory for it.
    pub(super) const EMPTY: Self = Self {
        weights: [0; INPUTS + 1],
        rssi: [0; SEEN],
        learning: 0,
        ..Self::NEW
    };

    pub(super) const NEW: Self = Self {
        weights: PRETRAINED,
        // No errors at -60 dBm stand for events before the first report.
        rates: [0; SEEN],
        rssi: [-60; SEEN],
        learning: LEARNING_FIRST,
        last_gradient: [0; INPUTS + 1],
        gradient_square: 0,
        events: 0,
        bad: 0,
        all: 0,
    };

    /// Notes a connection event: packets received with a good CRC and with a bad one, and the
    /// signal strength, dBm. Returns whether a prediction is due: every two events.
    pub(super) fn on_event(&mut self, (good, bad): (u16, u16), rssi: i8) -> bool {
        let all = good.saturating_add(bad);
        let mut rate = self.rate();
        if let Some(share) = (u64::from(bad) << PLACES).checked_div(all.into()) {
            rate = times(FADING, rate) + times(ONE - FADING, share as Fixed);
        }
        self.rates.rotate_right(1);
        self.rssi.rotate_right(1);
        let ([newest, ..], [strength, ..]) = (&mut self.rates, &mut self.rssi);
        (*newest, *strength) = (rate, rssi);
        self.bad = self.bad.saturating_add(bad);
        self.all = self.all.saturating_add(all);
        self.events += 1;
        if self.events < PERIOD {
            return false;
        }
        if self.all > 0 {
            let is_bad = u32::from(self.bad) * THETA_PARTS.1 > u32::from(self.all) * THETA_PARTS.0;
            self.learn(is_bad);
        }
        (self.events, self.bad, self.all) = (0, 0, 0);
        true
    }

    /// The share of packets that are expected to have errors in the next two events.
    ///
    /// The classifier predicts only whether the share is above [`THETA`]: a chance of one half or
    /// more. If so, the share is taken as [`THETA`] or, if higher, the average; otherwise as zero,
    /// because the interval has slack for a few errors.
    pub(super) fn errors(&self) -> Fixed {
        match self.score(&self.inputs(0)) >= 0 {
            true => self.rate().clamp(THETA, ERRORS_MAX),
            false => 0,
        }
    }

    const fn rate(&self) -> Fixed {
        let [rate, ..] = self.rates;
        rate
    }

    /// What was known before the last `since` events, the newest event first.
    fn inputs(&self, since: usize) -> Inputs {
        let mut inputs = [[0; EACH]; LOOKBACK];
        let seen = self.rates.iter().zip(&self.rssi).skip(since);
        for (inputs, (rate, rssi)) in inputs.iter_mut().zip(seen) {
            *inputs = inputs_of(*rate, *rssi);
        }
        inputs
    }

    /// The sum of the weighted inputs: above zero, the next two events are rather bad.
    fn score(&self, inputs: &Inputs) -> Fixed {
        let bias = self.weights.last().copied().unwrap_or(0);
        let score = (dot(&self.weights, inputs.as_flattened()) >> 16) + i64::from(bias);
        score.clamp(-SCORE_MAX, SCORE_MAX) as Fixed
    }

    /// Updates the weights by one sample: what the last prediction was made from, and whether the
    /// events after it were bad.
    fn learn(&mut self, is_bad: bool) {
        let inputs = self.inputs(PERIOD.into());
        let label = if is_bad { ONE } else { 0 };
        let error = label - chance(self.score(&inputs));
        let mut gradient = [error; INPUTS + 1];
        for (part, input) in gradient.iter_mut().zip(inputs.as_flattened()) {
            *part = times(*part, *input);
        }
        let square = dot(&gradient, &gradient).unsigned_abs();
        self.gradient_square = (self.gradient_square * AVERAGING.0 + square) / AVERAGING.1;
        let along = dot(&gradient, &self.last_gradient);
        // With 16 binary places; at most some 5, since both gradients are in the average.
        let change = (along.unsigned_abs() << 8).checked_div(self.gradient_square >> 8);
        if let Some(change) = change {
            let change = change.min(CHANGE_MAX) * META.0 / META.1;
            let factor = match along < 0 {
                true => FACTOR_ONE.saturating_sub(change).max(FACTOR_ONE / 2),
                false => FACTOR_ONE + change,
            };
            let learning = u64::from(self.learning) * factor / FACTOR_ONE;
            self.learning = learning.clamp(LEARNING_MIN, LEARNING_MAX) as u32;
        }
        let learning = (self.learning >> (LEARNING_PLACES - PLACES)) as Fixed;
        for (weight, part) in self.weights.iter_mut().zip(&gradient) {
            *weight = weight.saturating_add(times(learning, *part));
        }
        self.last_gradient = gradient;
    }
}

/// The inputs that an event gives: the average error rate, and the signal strength over two levels.
const fn inputs_of(rate: Fixed, rssi: i8) -> [Fixed; EACH] {
    let rssi = rssi as Fixed;
    [
        rate,
        (rssi - RSSI_MIDDLE) * RSSI_UNIT,
        (rssi - SENSITIVITY) * SNR_UNIT,
    ]
}

/// The product of two numbers.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
const fn times(a: Fixed, b: Fixed) -> Fixed {
    let product = a as i64 * b as i64;
    ((product + (1 << (PLACES - 1))) >> PLACES) as Fixed
}

/// The sum of the products, with 40 binary places.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
fn dot(a: &[Fixed], b: &[Fixed]) -> i64 {
    let products = a.iter().zip(b).map(|(a, b)| i64::from(*a) * i64::from(*b));
    products.map(|product| product >> 8).sum()
}

/// The chance that events are bad: the logistic function of their score.
fn chance(score: Fixed) -> Fixed {
    let binary = times(score.abs(), LOG2_E);
    let fraction = binary & (ONE - 1);
    let power = POWER
        .iter()
        .rev()
        .fold(0, |sum, term| times(sum, fraction) + term);
    let small = power >> (binary >> PLACES);
    let inverse = (ONE + small).unsigned_abs();
    let rather = (1_u64 << (2 * PLACES)).checked_div(inverse.into());
    let rather = rather.unwrap_or_default() as Fixed;
    match score < 0 {
        true => ONE - rather,
        false => rather,
    }
}

/// A constant as a number with 24 binary places.
const fn fixed(value: f64) -> Fixed {
    (value * ONE as f64) as Fixed
}

/// Events that are looked back at (M), and inputs of each.
const LOOKBACK: usize = 10;
const EACH: usize = 3;
const INPUTS: usize = LOOKBACK * EACH;
type Inputs = [[Fixed; EACH]; LOOKBACK];

/// Events that are remembered: those before the last prediction, and those since.
const SEEN: usize = LOOKBACK + PERIOD as usize;

/// The share of errors from which a link is bad: nine tenths of a tolerance of 25 %. Also as a
/// fraction.
const THETA: Fixed = fixed(0.225);
const THETA_PARTS: (u32, u32) = (9, 40);

/// Beyond it hardly anything passes, and no interval would be long enough.
const ERRORS_MAX: Fixed = fixed(0.75);

/// Events from one prediction to the next.
const PERIOD: u8 = 2;

/// The weight that the average error rate keeps at each event (WMEWMA).
const FADING: Fixed = fixed(0.6);

/// The learning rate at first, and its bounds: 0.05, 0.0001 and 1.
const LEARNING_PLACES: u32 = 30;
const LEARNING_FIRST: u32 = (1 << LEARNING_PLACES) / 20;
const LEARNING_MIN: u64 = (1 << LEARNING_PLACES) / 10_000;
const LEARNING_MAX: u64 = 1 << LEARNING_PLACES;

/// An average of gradients keeps nine tenths.
const AVERAGING: (u64, u64) = (9, 10);

/// The learning rate of the learning rate: 0.8.
const META: (u64, u64) = (4, 5);

/// A factor of 1 for the learning rate, and the most by which one sample changes it.
const FACTOR_ONE: u64 = 1 << 16;
const CHANGE_MAX: u64 = 16 * FACTOR_ONE;

/// Beyond such a score the chance is 0 or 1.
const SCORE_MAX: i64 = 20 * ONE as i64;

/// The binary logarithm of e; and the polynomial for 2^-x from 0 to 1, which is right to 6e-8.
const LOG2_E: Fixed = fixed(core::f64::consts::LOG2_E);
const POWER: [Fixed; 6] = [
    fixed(0.999_999_94),
    fixed(-0.693_143_13),
    fixed(0.240_178_96),
    fixed(-0.055_298_12),
    fixed(0.009_209_18),
    fixed(-0.000_946_88),
];

/// Scales of inputs: the middle of strengths at which receivers work, and a receiver's sensitivity
/// (nRF52840 at 1 Mb/s, product specification §6.20.15), dBm; and how much one dB is.
const RSSI_MIDDLE: Fixed = -70;
const RSSI_UNIT: Fixed = ONE / 20;
const SENSITIVITY: Fixed = -95;
const SNR_UNIT: Fixed = ONE / 40;

/// Weights after a training of a thousand samples; the test `weights_are_what_training_gives`
/// computes them.
#[rustfmt::skip]
const PRETRAINED: [Fixed; INPUTS + 1] = [
    fixed(2.962), fixed(0.395), fixed(-1.133),
    fixed(2.550), fixed(0.395), fixed(-1.133),
    fixed(2.146), fixed(0.830), fixed(-0.916),
    fixed(1.884), fixed(0.830), fixed(-0.916),
    fixed(1.734), fixed(0.713), fixed(-0.975),
    fixed(1.464), fixed(0.713), fixed(-0.975),
    fixed(1.194), fixed(0.201), fixed(-1.230),
    fixed(1.003), fixed(0.201), fixed(-1.230),
    fixed(0.588), fixed(-0.526), fixed(-1.594),
    fixed(0.350), fixed(-0.526), fixed(-1.594),
    fixed(-2.130),
];

#[cfg(test)]
mod tests;
