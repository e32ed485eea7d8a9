//! Means with their confidence, parts of wholes, and Jain's index.

/// A mean over independent runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stat {
    /// The mean of the values.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` with fewer than two runs.
    pub ci95: Option<f64>,
    /// The number of runs.
    pub runs: usize,
}

impl Stat {
    /// A value without variation.
    pub const fn single(value: f64) -> Self {
        Self {
            mean: value,
            ci95: None,
            runs: 1,
        }
    }

    /// The mean of independent values; no number if there are none.
    pub fn of(values: &[f64]) -> Self {
        let runs = values.len();
        let mean = mean(values);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let ci95 = (runs > 1).then(|| {
            let deviation = (squares / (runs - 1) as f64).sqrt();
            student_t(runs - 1) * deviation / (runs as f64).sqrt()
        });
        Self { mean, ci95, runs }
    }
}

/// A value and half the width of its interval in figures: the half with two digits, or as a whole
/// number where it has more, and the value with as many decimals.
pub fn measured(value: f64, half: f64) -> (String, String) {
    let mut decimals: usize = 0;
    let mut scaled = half.abs();
    // Below 9.95 one more digit is needed for two.
    while scaled > 0.0 && scaled < 9.95 && decimals < DECIMALS_MAX {
        scaled *= 10.0;
        decimals += 1;
    }
    if scaled == 0.0 {
        decimals = 1;
    }
    (format!("{value:.decimals$}"), format!("{half:.decimals$}"))
}

/// More are noise in any table.
const DECIMALS_MAX: usize = 6;

/// A 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A figure over independent runs, and the interval in which its true value lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The figure over all runs.
    pub value: f64,
    /// Its interval; `None` where the runs bound it on no side.
    pub interval: Option<Interval>,
    /// The number of runs.
    pub runs: usize,
}

impl Interval {
    /// The interval that reaches `half` to either side of `value`.
    pub fn around(value: f64, half: f64) -> Self {
        Self {
            low: value - half,
            high: value + half,
        }
    }

    /// Half its width.
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The interval of the median of the distribution that `values` were drawn from, whatever
    /// its shape: between two of the values, as far from either end.
    ///
    /// `None` with fewer than five values, for even the least and the greatest of four hold the
    /// median in 87.5 % of samples alone. Five hold it in 93.75 %. Of six and more, the ends lie
    /// between two neighbouring values, so that 95 % are met (Hettmansperger and Sheather,
    /// *Confidence intervals based on interpolated order statistics*, 1986).
    pub fn of_median(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let len = sorted.len();
        let coverage = |place: usize| 1.0 - 2.0 * fewer_than(place, len);
        if len < MEDIAN_RUNS_MIN {
            return None;
        }
        // The innermost pair of values, counted from either end, that covers enough.
        let place = (1..=len / 2).rev().find(|place| coverage(*place) >= 0.95);
        let Some(place) = place else {
            return Some(Self {
                low: sorted[0],
                high: sorted[len - 1],
            });
        };
        let inner = place + 1;
        let spare = (coverage(place) - 0.95) / (coverage(place) - coverage(inner));
        let weight =
            (len - place) as f64 * spare / (place as f64 + (len - 2 * place) as f64 * spare);
        let between = |outer: f64, inner: f64| outer + weight * (inner - outer);
        Some(Self {
            low: between(sorted[place - 1], sorted[inner - 1]),
            high: between(sorted[len - place], sorted[len - inner]),
        })
    }
}

impl Estimate {
    /// A figure of `runs` independent runs, `value`, that changes smoothly with each of them: a
    /// mean, or what follows from several. Its interval follows from `without`, the same figure
    /// with each run left out in turn (the jackknife; Efron and Stein 1981). A figure that is no
    /// number with some run left out has an interval that is no number either.
    pub fn jackknife(value: f64, without: &[f64], runs: usize) -> Self {
        let half = jackknife_error(without).map(|error| t_of_runs(without.len()) * error);
        Self {
            value,
            interval: half.map(|half| Interval::around(value, half)),
            runs,
        }
    }

    /// The least of several smooth figures of the same `runs`: each figure, and the same with
    /// each run left out in turn.
    ///
    /// Where several figures are nearly equal, the jackknife of their least is inconsistent. The
    /// interval reaches from the least lower end to the least upper end of theirs. The lower one
    /// lies too high only where that of the least figure does. The upper one lies too low where
    /// that of any figure does: so upper ends are those of 98 %, and with five equal figures 94 %
    /// are met.
    pub fn least(figures: &[(f64, Vec<f64>)], runs: usize) -> Self {
        let end = |of: &dyn Fn(f64, f64, usize) -> f64| {
            let ends = figures.iter().map(|(value, without)| {
                let error = jackknife_error(without)?;
                Some(of(*value, error, without.len() - 1))
            });
            ends.collect::<Option<Vec<f64>>>().map(|ends| least(&ends))
        };
        let low = end(&|value, error, degrees| value - student_t(degrees) * error);
        let high = end(&|value, error, degrees| value + student_t_98(degrees) * error);
        let values: Vec<f64> = figures.iter().map(|(value, _)| *value).collect();
        Self {
            value: least(&values),
            interval: low.zip(high).map(|(low, high)| Interval { low, high }),
            runs,
        }
    }

    /// The greatest of several smooth figures; see [`least`](Self::least).
    pub fn greatest(figures: &[(f64, Vec<f64>)], runs: usize) -> Self {
        let negated = figures.iter().map(|(value, without)| {
            let without = without.iter().map(|value| -value).collect();
            (-value, without)
        });
        let Self {
            value, interval, ..
        } = Self::least(&negated.collect::<Vec<_>>(), runs);
        Self {
            value: -value,
            interval: interval.map(|Interval { low, high }| Interval {
                low: -high,
                high: -low,
            }),
            runs,
        }
    }

    /// The median of `values`, one of each independent run.
    pub fn of_median(values: &[f64]) -> Self {
        Self {
            value: median(&mut values.to_vec()),
            interval: Interval::of_median(values),
            runs: values.len(),
        }
    }

    /// Half the width of the interval; `None` where there is none.
    pub fn ci95(&self) -> Option<f64> {
        self.interval.map(|interval| interval.half())
    }

    /// A figure that no number of runs bounds on both sides, such as the greatest of them.
    pub const fn unbounded(value: f64, runs: usize) -> Self {
        Self {
            value,
            interval: None,
            runs,
        }
    }
}

/// The jackknife's standard error of a figure by its values with each run left out in turn;
/// `None` with fewer than two.
fn jackknife_error(without: &[f64]) -> Option<f64> {
    let spread = mean(without);
    let squares: f64 = without.iter().map(|value| (value - spread).powi(2)).sum();
    let count = without.len();
    (count > 1).then(|| (squares * (count - 1) as f64 / count as f64).sqrt())
}

/// The least of `values`; no number if one of them is none.
pub(crate) fn least(values: &[f64]) -> f64 {
    let or_nan = |least: f64, value: &f64| match least.is_nan() || value.is_nan() {
        true => f64::NAN,
        false => least.min(*value),
    };
    values.iter().fold(f64::INFINITY, or_nan)
}

/// Fewer runs bound no median.
const MEDIAN_RUNS_MIN: usize = 5;

/// The probability that fewer than `count` of `len` values lie below their distribution's median.
fn fewer_than(count: usize, len: usize) -> f64 {
    let mut term = 0.5f64.powi(len as i32);
    let mut sum = 0.0;
    for below in 0..count {
        sum += term;
        term *= (len - below) as f64 / (below + 1) as f64;
    }
    sum
}

/// The mean; no number if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value with as many below as above it; no number if there are none.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[len / 2],
        len => f64::midpoint(values[len / 2 - 1], values[len / 2]),
    }
}

/// Jain's fairness index: 1 when all get the same, 1/n when one gets everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// Student's t for a two-sided 95 % interval by degrees of freedom, from the usual tables.
/// Beyond 30 it stays at the last entry, at most 4 % above the true one.
fn student_t(degrees: usize) -> f64 {
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    of_degrees(&T, degrees)
}

/// The factor by which an error over so many runs is multiplied. Of up to four runs it is that of
/// 96 %: Student's own holds the mean of values that are spread evenly in 92.5 % of samples.
fn t_of_runs(runs: usize) -> f64 {
    match runs {
        2 => 15.895,
        3 => 4.849,
        4 => 3.482,
        _ => student_t(runs - 1),
    }
}

/// Student's t for an interval of 98 %.
fn student_t_98(degrees: usize) -> f64 {
    const T: [f64; 30] = [
        31.821, 6.965, 4.541, 3.747, 3.365, 3.143, 2.998, 2.896, 2.821, 2.764, 2.7181, 2.681,
        2.650, 2.624, 2.602, 2.583, 2.567, 2.552, 2.539, 2.528, 2.518, 2.508, 2.500, 2.492, 2.485,
        2.479, 2.473, 2.467, 2.462, 2.457,
    ];
    of_degrees(&T, degrees)
}

fn of_degrees(table: &[f64; 30], degrees: usize) -> f64 {
    table[degrees.saturating_sub(1).min(table.len() - 1)]
}

/// A part of a whole; of nothing, none.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_two_digits_and_its_value_as_many_decimals() {
        for (value, half, shown) in [
            (26.617, 0.954, ("26.62", "0.95")),
            (453.2, 17.4, ("453", "17")),
            (453.2, 172.4, ("453", "172")),
            (1.43, 0.016, ("1.430", "0.016")),
            (9.7, 9.96, ("10", "10")),
            (9.7, 0.0, ("9.7", "0.0")),
            (0.5, f64::INFINITY, ("0", "inf")),
        ] {
            let (own, error) = measured(value, half);
            assert_eq!((own.as_str(), error.as_str()), shown);
        }
    }

    #[test]
    fn intervals_follow_student() {
        let stat = Stat::of(&[1.0, 2.0, 3.0]);
        assert_eq!((stat.mean, stat.runs), (2.0, 3));
        assert!((stat.ci95.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-9);
        assert_eq!(Stat::of(&[5.0]).ci95, None);
        assert!(Stat::of(&[]).mean.is_nan());
    }

    #[test]
    fn shares_and_middles() {
        assert_eq!(jain(&[3.0, 3.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0]), 0.5);
        assert!((jain(&[41.7, 35.2]) - 0.993).abs() < 5e-4, "TCPlp Table 9");
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }
}
