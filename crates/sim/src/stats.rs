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

    /// A figure of `runs` independent runs, `value`, with the interval that follows from
    /// `without`: the same figure with each run left out in turn. A figure that is no number
    /// with some run left out has an interval that is no number either.
    pub fn jackknife(value: f64, without: &[f64], runs: usize) -> Self {
        let spread = mean(without);
        let squares: f64 = without.iter().map(|value| (value - spread).powi(2)).sum();
        let count = without.len();
        let ci95 = (count > 1)
            .then(|| student_t(count - 1) * (squares * (count - 1) as f64 / count as f64).sqrt());
        Self {
            mean: value,
            ci95,
            runs,
        }
    }
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
    let place = degrees.saturating_sub(1).min(T.len() - 1);
    T[place]
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
