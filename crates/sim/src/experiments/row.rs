//! What an experiment says: one row for each figure, judged by its own value.
//!
//! Purpose: a row holds a measured value beside the published one and the physical bound,
//! and a criterion that the value alone decides.
//! Left out: how rows are shown.

use std::fmt;

use super::stats::Stat;

/// The setting of a row, by key, in the order given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Point(Vec<(&'static str, Value)>);

/// What settings differ by, in every experiment.
pub const KEYS: [&str; 18] = [
    "hops",
    "direction",
    "retry_delay_ms",
    "mss_frames",
    "window_segments",
    "loss",
    "forwarding",
    "relaying",
    "queue",
    "compression",
    "channels",
    "phy",
    "design",
    "policy",
    "transport",
    "flow",
    "node",
    "seed",
];

/// One key's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A count, or a time in the key's unit.
    Whole(u64),
    /// A fraction, as so many hundredths: a setting is exact.
    Hundredths(u64),
    /// A name.
    Name(&'static str),
}

/// Whether a row is held against the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// No constant was fitted on this figure.
    Prediction,
    /// A constant of the air was fitted on this very figure: it proves nothing.
    Fit,
}

/// One figure of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The experiment's ID.
    pub experiment: &'static str,
    /// The setting.
    pub point: Point,
    /// What was measured.
    pub metric: &'static str,
    /// Its unit; "1" for ratios and fractions.
    pub unit: &'static str,
    /// The mean over the runs, to four significant digits; it decides `pass`.
    pub value: f64,
    /// Half the width of the mean's 95 % confidence interval, where runs differ.
    pub ci95: Option<f64>,
    /// Independent runs.
    pub runs: usize,
    /// The published value.
    pub paper: Option<f64>,
    /// What no stack can exceed on this radio.
    pub bound: Option<f64>,
    /// Whether it is held against the paper.
    pub role: Role,
    /// What the value must be, if anything.
    pub criterion: Option<Criterion>,
}

/// A range in words and numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Criterion {
    /// For the reader.
    pub text: String,
    min: f64,
    max: f64,
    /// Whether `max` itself is too much.
    is_open: bool,
}

impl Point {
    /// The same point with one key more, one of [`KEYS`].
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        debug_assert!(KEYS.contains(&key), "{key} is no key of a point");
        self.0.push((key, value.into()));
        self
    }

    /// Keys and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.iter().find(|(own, _)| *own == key).map(|(_, v)| v)
    }

    /// The same point without `key`.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let others = self.0.iter().filter(|(own, _)| *own != key);
        Self(others.cloned().collect())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (key, value)) in self.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{key}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => write!(f, "{number}"),
            Self::Hundredths(_) => write!(f, "{}", self.number().unwrap_or_default()),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Value {
    /// As a number, unless it is a name.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(*number as f64),
            Self::Hundredths(number) => Some(*number as f64 / 100.0),
            Self::Name(_) => None,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<&'static str> for Value {
    fn from(name: &'static str) -> Self {
        Self::Name(name)
    }
}

impl Role {
    /// As written in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prediction => "prediction",
            Self::Fit => "fit",
        }
    }
}

impl Row {
    /// A row that nothing is asked of yet.
    pub fn new(
        experiment: &'static str,
        point: Point,
        (metric, unit): (&'static str, &'static str),
        stat: Stat,
    ) -> Self {
        Self {
            experiment,
            point,
            metric,
            unit,
            value: four_digits(stat.mean),
            ci95: stat.ci95.map(four_digits),
            runs: stat.runs,
            paper: None,
            bound: None,
            role: Role::Prediction,
            criterion: None,
        }
    }

    /// With the published value.
    #[must_use]
    pub fn paper(mut self, value: f64) -> Self {
        self.paper = Some(value);
        self
    }

    /// With the physical bound.
    #[must_use]
    pub fn bound(mut self, value: f64) -> Self {
        self.bound = Some(four_digits(value));
        self
    }

    /// As a fit.
    #[must_use]
    pub fn fit(mut self) -> Self {
        self.role = Role::Fit;
        self
    }

    /// Judged by the distance to the published value: at most `part` of it.
    #[must_use]
    pub fn near_paper(self, part: f64) -> Self {
        let paper = self.paper.unwrap_or(f64::NAN);
        let text = format!("within {:.0} % of the paper", part * 100.0);
        self.judged(text, paper * (1.0 - part), paper * (1.0 + part))
    }

    /// Judged by a range, both ends allowed.
    #[must_use]
    pub fn between(self, min: f64, max: f64) -> Self {
        self.judged(format!("{min} to {max}"), min, max)
    }

    /// Judged by a least value.
    #[must_use]
    pub fn at_least(self, min: f64) -> Self {
        self.judged(format!("at least {min}"), min, f64::INFINITY)
    }

    /// Judged by a greatest value.
    #[must_use]
    pub fn at_most(self, max: f64) -> Self {
        self.judged(format!("at most {max}"), f64::NEG_INFINITY, max)
    }

    /// Judged by a value that must not be reached.
    #[must_use]
    pub fn below(mut self, max: f64) -> Self {
        self = self.judged(format!("below {max}"), f64::NEG_INFINITY, max);
        if let Some(criterion) = &mut self.criterion {
            criterion.is_open = true;
        }
        self
    }

    /// What the criterion is about, before the range.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        if let Some(criterion) = &mut self.criterion {
            criterion.text = format!("{what}: {}", criterion.text);
        }
        self
    }

    /// Whether the value meets the criterion; `None` where nothing is judged.
    pub fn pass(&self) -> Option<bool> {
        match self.role {
            Role::Fit => None,
            Role::Prediction => self.criterion.as_ref().map(|c| c.holds(self.value)),
        }
    }

    fn judged(mut self, text: String, min: f64, max: f64) -> Self {
        self.criterion = Some(Criterion {
            text,
            min,
            max,
            is_open: false,
        });
        self
    }
}

impl Criterion {
    /// Whether `value` meets it; what is no number never does.
    pub fn holds(&self, value: f64) -> bool {
        let is_below = if self.is_open {
            value < self.max
        } else {
            value <= self.max
        };
        value >= self.min && is_below
    }
}

/// `value` as it is printed, so that what is judged is what is read.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::run::{Flow, Run};
    use super::super::{Results, all};
    use super::*;

    fn row(value: f64) -> Row {
        let stat = Stat::single(value);
        Row::new("id", Point::default(), ("goodput", "kb/s"), stat)
    }

    #[test]
    fn the_value_alone_decides() {
        let near = |value| row(value).paper(20.0).near_paper(0.15).pass();
        assert_eq!(near(17.0), Some(true));
        assert_eq!(near(23.1), Some(false));
        assert_eq!(near(f64::NAN), Some(false));
        assert_eq!(row(1.0).pass(), None);
        assert_eq!(row(1.0).at_most(1.0).pass(), Some(true));
        assert_eq!(row(1.0).below(1.0).pass(), Some(false));
        assert_eq!(row(0.9).at_least(1.0).pass(), Some(false));
        assert_eq!(row(2.0).between(1.0, 2.0).pass(), Some(true));
    }

    #[test]
    fn a_fit_never_counts() {
        let fit = row(20.0).paper(20.0).near_paper(0.15).fit();
        assert_eq!(fit.pass(), None);
        assert!(
            fit.criterion.is_some(),
            "what was aimed at remains to be read"
        );
    }

    /// The rows of every experiment, as if all its runs had given the same.
    fn all_rows() -> Vec<Row> {
        let flow = Flow {
            goodput_kbps: 20.0,
            loss: 0.01,
            rtt_ms: 500.0,
            cwnd: 0.9,
            ..Flow::default()
        };
        let run = Run {
            flows: vec![flow.clone(), flow],
            frames: 1_000,
            retries: 100,
            bytes: 10_000,
            ..Run::default()
        };
        let rows = all().into_iter().flat_map(|experiment| {
            let cases = (experiment.cases)();
            (experiment.rows)(&Results {
                experiment: experiment.id,
                runs: vec![vec![run.clone(); 2]; cases.len()],
                cases,
            })
        });
        rows.collect()
    }

    #[test]
    fn every_row_has_a_unit_and_is_judged_in_it() {
        let units = [
            "1", "kb/s", "ms", "s", "B", "mJ", "mJ/kB", "segments", "1/kB", "1/100 s",
        ];
        let mut unit_of = std::collections::BTreeMap::new();
        let rows = all_rows();
        assert!(rows.len() > 300, "{} rows", rows.len());
        for row in rows {
            let at = format!(
                "{} ({}) {}, {}",
                row.experiment, row.point, row.metric, row.unit
            );
            assert!(units.contains(&row.unit), "{at}: no such unit");
            // What is spent is told of a transfer, and elsewhere for what it carried.
            let kind = (row.metric, row.unit.ends_with("/kB"));
            let known = *unit_of.entry(kind).or_insert(row.unit);
            assert_eq!(row.unit, known, "{at}: one name, one unit");
            let Some(criterion) = row.criterion else {
                continue;
            };
            let text = &criterion.text;
            assert!(
                !text.contains("paper") || row.paper.is_some(),
                "{at}: {text}"
            );
            assert!(
                !text.contains("bound") || row.bound.is_some(),
                "{at}: {text}"
            );
            let words: Vec<&str> = text.split(' ').collect();
            let is_number = |word: &str| word.parse::<f64>().is_ok();
            for pair in words.windows(2).filter(|pair| is_number(pair[0])) {
                let is_other = units[1..].contains(&pair[1]) && pair[1] != row.unit;
                assert!(!is_other, "{at}: {text}");
            }
            let ends = [criterion.min, criterion.max];
            let ends = ends.into_iter().filter(|end| end.is_finite());
            // A share in percent, or milliseconds for seconds, would be further off.
            for (end, paper) in ends.zip(row.paper.into_iter().cycle()) {
                let is_far = end > 0.0 && !(0.1..=10.0).contains(&(end / paper));
                assert!(!is_far, "{at}: {text}, and the paper says {paper}");
            }
            let is_share = ["loss", "link_retries", "cwnd", "jain"].contains(&row.metric);
            let is_above = |value: f64| value.is_finite() && value > 1.0;
            let said = [row.paper.unwrap_or(0.0), criterion.min, criterion.max];
            assert!(
                !(is_share && said.into_iter().any(is_above)),
                "{at}: {text}"
            );
        }
    }

    #[test]
    fn what_is_judged_is_what_is_printed() {
        assert_eq!(row(19.123_49).value, 19.12);
        assert_eq!(row(0.000_123_456).value, 0.000_123_5);
        assert_eq!(row(0.0).value, 0.0);
    }
}
