//! The rows of an experiment, one for each figure.
//!
//! Purpose: a row holds a measured value beside the published one and the physical bound, and a
//! criterion. The criterion is met when the whole 95 % interval of the value meets it, on each of
//! two disjoint sets of seeds.
//! Left out: how intervals are found (`judging`), and how rows are shown.

use std::fmt;

use crate::stats::{Estimate, Interval, least, median};

/// The setting of a row, by key, in the order given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Point(Vec<(&'static str, Value)>);

/// The keys by which settings differ, in every experiment.
pub const KEYS: [&str; 36] = [
    "hops",
    "direction",
    "retry_delay_ms",
    "mss_frames",
    "ack_every",
    "window_segments",
    "loss",
    "forwarding",
    "relaying",
    "queue",
    "compression",
    "channels",
    "phy",
    "radio",
    "design",
    "policy",
    "transport",
    "flow",
    "node",
    "nodes",
    "without",
    "place",
    "requirement",
    "sources",
    "peripherals",
    "hour",
    "offered_kbps",
    "spacing_ms",
    "interval_ms",
    "size",
    "batch",
    "rate",
    "seed",
    "key",
    "attack",
    "aim",
];

/// The value of one key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A count, or a time in the key's unit.
    Whole(u64),
    /// A fraction in hundredths: a setting is exact.
    Hundredths(u64),
    /// A name.
    Name(&'static str),
}

/// The worth of a row as evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// No constant was fitted on this figure.
    Prediction,
    /// A constant of the air was fitted on this very figure: it proves nothing.
    Fit,
    /// The figure follows from others by arithmetic, such as a round-trip time from the window
    /// and the goodput: it proves nothing beyond them.
    Identity,
    /// The same measurement is a criterion of another row, here or in another experiment.
    Repeat,
}

/// One figure of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The experiment's ID.
    pub experiment: &'static str,
    /// The setting.
    pub point: Point,
    /// The name of the measured figure.
    pub metric: &'static str,
    /// The metric's unit; "1" for ratios and fractions.
    pub unit: &'static str,
    /// The figure over all runs; once measured, to four significant digits.
    pub value: f64,
    /// Its 95 % confidence interval; `None` where it has none.
    pub interval: Option<Interval>,
    /// Independent runs for each setting, of both sets of seeds.
    pub runs: usize,
    /// The figure over the first and over the second set of seeds: they decide `pass`.
    pub sets: [Estimate; 2],
    /// The published value.
    pub paper: Option<f64>,
    /// The value that no stack can exceed on this radio.
    pub bound: Option<f64>,
    /// The paper's estimate of what the radio gives. Better settings exceed it: no bound.
    pub estimate: Option<f64>,
    /// The row's worth as evidence.
    pub evidence: Evidence,
    /// The criterion that the value must meet, if there is one.
    pub criterion: Option<Criterion>,
    /// What the value is of the runs.
    statistic: Statistic,
}

/// What a value is of the runs. It says which interval the value has.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Statistic {
    /// A mean, or a figure that follows smoothly from means.
    Smooth,
    /// The median of one figure of each run.
    Median(Vec<f64>),
    /// The least of several smooth figures, such as one for each setting.
    Least(Vec<f64>),
    /// The greatest of several smooth figures.
    Greatest(Vec<f64>),
    /// A constant, or the least or greatest of all runs: their spread is no measure of its
    /// certainty.
    Unbounded,
}

/// Whether a criterion is judged on these runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judged {
    Yes,
    /// The runs are too few or too short for a verdict; those of `--full` are enough.
    InFull,
    /// No number of runs bears a verdict.
    Never,
    /// It was asked once, and is no more.
    Withdrawn,
}

/// What stands before a criterion that only the full form judges.
const IN_FULL: &str = "judged with --full: ";

/// A range in words and numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Criterion {
    /// The criterion in words.
    pub text: String,
    min: f64,
    max: f64,
    /// Whether `max` itself is too much.
    is_open: bool,
    judged: Judged,
}

impl Point {
    /// The point with one key more, one of [`KEYS`].
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

    /// The point without `key`.
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

impl Evidence {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Prediction => "prediction",
            Self::Fit => "fit",
            Self::Identity => "identity",
            Self::Repeat => "repeat",
        }
    }
}

impl Row {
    /// A row that nothing is asked of yet.
    pub fn new(
        experiment: &'static str,
        point: Point,
        (metric, unit): (&'static str, &'static str),
        value: f64,
    ) -> Self {
        let nothing = Estimate::unbounded(f64::NAN, 0);
        Self {
            experiment,
            point,
            metric,
            unit,
            value,
            interval: None,
            runs: 0,
            sets: [nothing; 2],
            paper: None,
            bound: None,
            estimate: None,
            evidence: Evidence::Prediction,
            criterion: None,
            statistic: Statistic::Smooth,
        }
    }

    /// With what was measured: over all runs, and over either set of seeds.
    #[must_use]
    pub(super) fn measured(mut self, all: Estimate, sets: [Estimate; 2]) -> Self {
        let printed = |estimate: Estimate| Estimate {
            value: four_digits(estimate.value),
            interval: estimate.interval.map(|interval| Interval {
                low: four_digits(interval.low),
                high: four_digits(interval.high),
            }),
            runs: estimate.runs,
        };
        let all = printed(all);
        self.sets = sets.map(printed);
        (self.value, self.interval, self.runs) = (all.value, all.interval, all.runs);
        self
    }

    /// Half the width of the interval; `None` where there is none.
    pub fn ci95(&self) -> Option<f64> {
        self.interval.map(|interval| four_digits(interval.half()))
    }

    pub(super) fn statistic(&self) -> &Statistic {
        &self.statistic
    }

    /// The row with the published value.
    #[must_use]
    pub fn paper(mut self, value: f64) -> Self {
        self.paper = Some(value);
        self
    }

    /// With the physical bound, where one is known; rounded up, so that it stays one.
    #[must_use]
    pub fn bound(mut self, value: Option<f64>) -> Self {
        self.bound = value.map(four_digits_up);
        self
    }

    /// With what the paper estimates that the radio gives.
    #[must_use]
    pub fn estimate(mut self, value: Option<f64>) -> Self {
        self.estimate = value.map(four_digits);
        self
    }

    /// The row as a fit.
    #[must_use]
    pub fn fit(mut self) -> Self {
        self.evidence = Evidence::Fit;
        self
    }

    /// As one that follows from other rows.
    #[must_use]
    pub fn identity(mut self) -> Self {
        self.evidence = Evidence::Identity;
        self
    }

    /// As a measurement that is judged elsewhere.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.evidence = Evidence::Repeat;
        self
    }

    /// As a figure whose spread over runs is no measure of its certainty: a constant.
    #[must_use]
    pub fn without_interval(mut self) -> Self {
        self.statistic = Statistic::Unbounded;
        self
    }

    /// As the median of `values`, one of each run.
    #[must_use]
    pub(super) fn median_of(mut self, values: Vec<f64>) -> Self {
        self.value = median(&mut values.clone());
        self.statistic = Statistic::Median(values);
        self
    }

    /// As the least of several smooth figures.
    #[must_use]
    pub(super) fn least_of(mut self, figures: Vec<f64>) -> Self {
        self.value = least(&figures);
        self.statistic = Statistic::Least(figures);
        self
    }

    /// As the greatest of several smooth figures.
    #[must_use]
    pub(super) fn greatest_of(mut self, figures: Vec<f64>) -> Self {
        let negated: Vec<f64> = figures.iter().map(|figure| -figure).collect();
        self.value = -least(&negated);
        self.statistic = Statistic::Greatest(figures);
        self
    }

    /// As the least or the greatest of all runs: shown beside what a good one would be, and never
    /// judged, for more runs go farther.
    #[must_use]
    pub fn extreme(mut self) -> Self {
        self.statistic = Statistic::Unbounded;
        if let Some(criterion) = &mut self.criterion {
            criterion.text = format!("shown, the worst of all runs: {}", criterion.text);
            criterion.judged = Judged::Never;
        }
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

    /// Sets the subject of the criterion, which stands before the range.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        if let Some(criterion) = &mut self.criterion {
            criterion.text = format!("{what}: {}", criterion.text);
        }
        self
    }

    /// With what would be better than anyone expects, behind the criterion.
    #[must_use]
    pub fn moonshot(mut self, value: f64) -> Self {
        if let Some(criterion) = &mut self.criterion {
            criterion.text = format!("{} (moonshot {value})", criterion.text);
        }
        self
    }

    /// Shown and not judged, and why.
    #[must_use]
    pub fn shown(mut self, why: &str) -> Self {
        self = self.judged(String::new(), f64::NEG_INFINITY, f64::INFINITY);
        if let Some(criterion) = &mut self.criterion {
            criterion.text = format!("shown, {why}");
            criterion.judged = Judged::Never;
        }
        self
    }

    /// With a criterion that was asked once and is no more, and why.
    #[must_use]
    pub(super) fn withdrawn(mut self, why: &str) -> Self {
        if let Some(criterion) = &mut self.criterion {
            let asked = &criterion.text;
            let asked = asked.strip_prefix(IN_FULL).unwrap_or(asked);
            criterion.text = format!("withdrawn, {why}: {asked}");
            criterion.judged = Judged::Withdrawn;
        }
        self
    }

    /// Without a verdict: what was run is too little for one, and `--full` runs enough.
    #[must_use]
    pub(super) fn deferred(mut self) -> Self {
        if let Some(criterion) = &mut self.criterion
            && criterion.judged == Judged::Yes
        {
            criterion.text = format!("{IN_FULL}{}", criterion.text);
            criterion.judged = Judged::InFull;
        }
        self
    }

    /// Without a verdict where few runs leave it open: where they bound the value too loosely to
    /// say on which side of the criterion it lies.
    #[must_use]
    pub(super) fn deferred_where_open(self) -> Self {
        let is_open = |criterion: &Criterion| {
            let outcomes = self.sets.map(|set| criterion.outcome(&set));
            outcomes.contains(&None) && !outcomes.contains(&Some(false))
        };
        match self.criterion.as_ref().is_some_and(is_open) {
            true => self.deferred(),
            false => self,
        }
    }

    /// Whether the whole interval meets the criterion on both sets of seeds; `None` where
    /// nothing is judged. A set without an interval shows nothing.
    pub fn pass(&self) -> Option<bool> {
        match self.evidence {
            Evidence::Prediction => {
                let holds =
                    |c: &Criterion| self.sets.iter().all(|set| c.outcome(set) == Some(true));
                self.judging().map(holds)
            }
            Evidence::Fit | Evidence::Identity | Evidence::Repeat => None,
        }
    }

    /// Whether the value over all runs meets the criterion, wherever its interval ends; `None`
    /// where too little was run for a verdict.
    pub fn meets(&self) -> Option<bool> {
        self.judging().map(|c| c.holds(self.value))
    }

    /// Whether a criterion was asked once, and is no more.
    pub fn is_withdrawn(&self) -> bool {
        let judged = self.criterion.as_ref().map(|criterion| criterion.judged);
        judged == Some(Judged::Withdrawn)
    }

    /// The criterion, where these runs judge it.
    fn judging(&self) -> Option<&Criterion> {
        self.criterion.as_ref().filter(|c| c.judged == Judged::Yes)
    }

    fn judged(mut self, text: String, min: f64, max: f64) -> Self {
        self.criterion = Some(Criterion {
            text,
            min,
            max,
            is_open: false,
            judged: Judged::Yes,
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

    /// Whether the whole interval of a figure meets it, or the whole of it misses; `None` where it
    /// lies on both sides of a limit, or there is none.
    fn outcome(&self, figure: &Estimate) -> Option<bool> {
        let Interval { low, high } = figure.interval?;
        let is_outside = high < self.min || low > self.max || (self.is_open && low >= self.max);
        match self.holds(low) && self.holds(high) {
            true => Some(true),
            false if is_outside || low.is_nan() || high.is_nan() => Some(false),
            false => None,
        }
    }
}

/// `value` as it is printed, so that what is judged is what is read.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The same, never below `value`.
fn four_digits_up(value: f64) -> f64 {
    let near = four_digits(value);
    if near >= value {
        return near;
    }
    four_digits(value * 1.000_5).max(near)
}

#[cfg(test)]
#[path = "tests/rows.rs"]
mod tests;
