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
//! links of all strengths teach. Numbers have 24 binary places, or more where small ones count:
//! arithmetic of floating point would take 2.5 KB of a processor that has none. Sources: Performant
//! TCP over BLE, §IV.B; Almeida, Langlois, Plakhov 1998 (the rate's rule).

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
    /// The learning rate, with [`LEARNING_PLACES`]: it changes by small factors.
    learning: u32,
    /// With [`CHANCE_PLACES`].
    last_gradient: [i32; INPUTS + 1],
    /// The average of the gradients' squares, as [`dot`] gives them.
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
        let bad_parts = (u64::from(bad) << PLACES) + u64::from(all / 2);
        if let Some(share) = bad_parts.checked_div(all.into()) {
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

    /// The sum of the weighted inputs: above zero, the next two events are more likely bad than
    /// good.
    fn score(&self, inputs: &Inputs) -> Fixed {
        let bias = self.weights.last().copied().unwrap_or(0);
        let sum = dot(&self.weights, inputs.as_flattened());
        let score = rounded(sum, PLACES - DOT_LOSS) + i64::from(bias);
        score.clamp(-SCORE_MAX, SCORE_MAX) as Fixed
    }

    /// Updates the weights by one sample: what the last prediction was made from, and whether the
    /// events after it were bad.
    fn learn(&mut self, is_bad: bool) {
        let inputs = self.inputs(PERIOD.into());
        let score = self.score(&inputs);
        let error = match is_bad {
            true => chance(-score),
            false => -chance(score),
        };
        let mut gradient = [error; INPUTS + 1];
        for (part, input) in gradient.iter_mut().zip(inputs.as_flattened()) {
            *part = times(*part, *input);
        }
        let square = dot(&gradient, &gradient).unsigned_abs();
        self.gradient_square = (self.gradient_square * AVERAGING.0 + square) / AVERAGING.1;
        self.adapt(dot(&gradient, &self.last_gradient));
        for (weight, part) in self.weights.iter_mut().zip(&gradient) {
            let step = i64::from(self.learning) * i64::from(*part);
            let step = rounded(step, LEARNING_PLACES + CHANCE_PLACES - PLACES);
            *weight = weight.saturating_add(step as Fixed);
        }
        self.last_gradient = gradient;
    }

    /// Updates the learning rate; `along`: the product of this gradient and the last one.
    fn adapt(&mut self, along: i64) {
        let mut square = self.gradient_square;
        // At most some 5 times the square, since both gradients are in the average.
        let mut amount = along.unsigned_abs().min(square * 8);
        // Links without errors have gradients of a millionth: their quotient is as exact as any.
        while square > 0 && square < SQUARE_LEAST {
            (square, amount) = (square << 4, amount << 4);
        }
        let Some(change) = amount.checked_div(square >> FACTOR_PLACES) else {
            return;
        };
        let change = change * META.0 / META.1;
        let factor = match along < 0 {
            true => FACTOR_ONE.saturating_sub(change).max(FACTOR_ONE / 2),
            false => FACTOR_ONE + change,
        };
        let learning = (u64::from(self.learning) * factor + FACTOR_ONE / 2) >> FACTOR_PLACES;
        self.learning = learning.clamp(LEARNING_MIN, LEARNING_MAX) as u32;
    }
}

/// The inputs that an event gives: the average error rate, and the signal strength over two levels.
const fn inputs_of(rate: Fixed, rssi: i8) -> [Fixed; EACH] {
    let rssi = if rssi < RSSI_MAX { rssi } else { RSSI_MAX } as Fixed;
    [
        rate,
        times((rssi - RSSI_MIDDLE) << (PLACES - 4), RSSI_UNIT),
        times((rssi - SENSITIVITY) << (PLACES - 5), SNR_UNIT),
    ]
}

/// The product of two numbers, of which the second has 24 binary places: as many as the first has.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
const fn times(a: i32, b: Fixed) -> i32 {
    rounded(a as i64 * b as i64, PLACES) as i32
}

/// A number with `places` fewer.
const fn rounded(value: i64, places: u32) -> i64 {
    (value + (1 << (places - 1))) >> places
}

/// The sum of the products, with [`DOT_LOSS`] fewer places than both numbers have together.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
fn dot(a: &[i32], b: &[i32]) -> i64 {
    let products = a.iter().zip(b).map(|(a, b)| i64::from(*a) * i64::from(*b));
    products.map(|product| rounded(product, DOT_LOSS)).sum()
}

/// The chance that events are bad, with [`CHANCE_PLACES`]: the logistic function of their score.
fn chance(score: Fixed) -> i32 {
    let binary = times(score.abs(), LOG2_E);
    let fraction = binary & (ONE - 1);
    let power = POWER
        .iter()
        .rev()
        .fold(0, |sum, term| times(sum, fraction) + term);
    let small = (power << (CHANCE_PLACES - PLACES)) >> (binary >> PLACES);
    let inverse = u64::from((CERTAIN + small).unsigned_abs());
    let larger = ((1 << (2 * CHANCE_PLACES)) + inverse / 2).checked_div(inverse);
    let larger = larger.unwrap_or_default() as i32;
    match score < 0 {
        true => CERTAIN - larger,
        false => larger,
    }
}

/// A constant as a number with 24 binary places.
const fn fixed(value: f64) -> Fixed {
    let half = if value < 0.0 { -0.5 } else { 0.5 };
    (value * ONE as f64 + half) as Fixed
}

/// Binary places of chances and gradients, more than those of other numbers: on a link without
/// errors a chance is a millionth. Gradients are below 5, since no input is above that.
const CHANCE_PLACES: u32 = 28;
const CERTAIN: i32 = 1 << CHANCE_PLACES;

/// Places that a product loses in a sum, so that 64 bits hold ten times the sum of the squares of a
/// gradient, at most 300.
const DOT_LOSS: u32 = 4;

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
const LEARNING_PLACES: u32 = 31;
const LEARNING_FIRST: u32 = (1 << LEARNING_PLACES) / 20;
const LEARNING_MIN: u64 = (1 << LEARNING_PLACES) / 10_000;
const LEARNING_MAX: u64 = 1 << LEARNING_PLACES;

/// An average of gradients keeps nine tenths.
const AVERAGING: (u64, u64) = (9, 10);

/// The learning rate of the learning rate: 0.8.
const META: (u64, u64) = (4, 5);

/// A factor of 1 for the learning rate.
const FACTOR_ONE: u64 = 1 << FACTOR_PLACES;
const FACTOR_PLACES: u32 = 28;

/// A square is made at least this before it divides, so that its quotient is exact to 28 bits;
/// eight times as much still fits 64 bits.
const SQUARE_LEAST: u64 = 1 << (2 * FACTOR_PLACES);

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
/// (nRF52840 at 1 Mb/s, product specification §6.20.15), dBm; and how much 16 dB and 32 dB are.
const RSSI_MIDDLE: Fixed = -70;
const RSSI_UNIT: Fixed = fixed(16.0 / 20.0);
const SENSITIVITY: Fixed = -95;
const SNR_UNIT: Fixed = fixed(32.0 / 40.0);

/// The strongest signal that a controller may report, dBm (Core Specification, Vol 4 Part E,
/// §7.5.4).
const RSSI_MAX: i8 = 20;

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
