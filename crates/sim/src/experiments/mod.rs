//! The published experiments, with this stack in this air, held against the papers.
//!
//! Purpose: an experiment is a list of settings, each run with two disjoint sets of seeds, and the
//! rows that follow from the runs: a measured value with its interval, the published one, the
//! bound, and a criterion that the interval of either set decides.
//! Place: `motet reproduce` lists, runs and prints them.
//! Left out: constants of the air. All experiments share one calibration (`CALIBRATION.md`); what
//! was fitted on a figure is marked there and in its row.
//! Sources: `TCPlp` (NSDI 2020) for settings and figures; the criteria are the project's.

pub mod ask;
pub mod ble;
pub mod bulk;
pub mod chart;
pub mod cit;
pub mod cit_multihop;
pub mod combined;
#[cfg(all(feature = "captures", feature = "firmware"))]
pub mod everything;
pub mod fair;
pub mod fairness;
pub mod features;
pub mod flows;
pub mod header_tally;
pub mod headers;
mod judging;
pub mod mesh;
pub mod metric;
pub mod model;
pub mod outsiders;
mod pacing;
pub mod row;
pub mod run;
pub mod security;
pub mod setup;
mod sheet;
pub mod sleepy;
pub mod spent;
pub mod tcphc;
pub mod tcple;
pub mod tcplp;
mod testbed;
pub mod traffic;
pub mod transfer;
mod unjudged;
#[cfg(feature = "firmware")]
pub mod update;
#[cfg(feature = "firmware")]
mod written;

use std::fmt;
use std::sync::Arc;

use self::chart::Chart;
use self::flows::Flows;
use self::metric::Metric;
use self::row::{Point, Row};
use self::run::{Failure, Run};
use self::setup::{Segment, Setup};
use self::traffic::Traffic;
use crate::parallel;

/// A published experiment, or one of Motet's own.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// The experiment's name on the command line.
    pub id: &'static str,
    /// The question that the experiment answers, and where the answer was published.
    pub title: &'static str,
    /// The settings, the paper's own first.
    cases: fn() -> Vec<Case>,
    /// Makes the rows from the runs.
    rows: fn(&Results<'_>) -> Vec<Row>,
    /// The key along the horizontal axis.
    axis: Option<&'static str>,
    /// How long and how often each setting runs, by [`Effort`].
    budget: [Budget; 2],
}

/// One setting of an experiment.
#[derive(Clone, Debug)]
pub struct Case {
    /// The keys by which the setting differs from the others.
    pub point: Point,
    /// The air it runs in, and its TCP.
    pub setup: Setup,
    /// The traffic of the setting, and its measurement.
    pub traffic: Arc<dyn Traffic>,
}

/// How many runs, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Effort {
    /// Few runs: within a minute on two cores.
    #[default]
    Quick,
    /// As much as the criteria need.
    Full,
}

/// How much is run for each setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Seeds in each of the two sets.
    pub runs: u64,
    /// Measured time of each, s of virtual time.
    pub seconds: u64,
}

/// All runs of an experiment.
#[derive(Debug)]
struct Measured {
    experiment: &'static str,
    cases: Vec<Case>,
    /// The size of a segment, and the bounds, of each case.
    segments: Vec<Segment>,
    /// The runs, by case, then by seed.
    runs: Vec<Vec<Run>>,
    /// Whether the budget is no less than that of `--full`.
    is_full: bool,
}

/// The runs of a sample of seeds.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    measured: &'a Measured,
    /// The seeds to run, numbered from 0.
    seeds: &'a [usize],
}

/// The results of an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The paper's own setting first.
    pub rows: Vec<Row>,
    /// The rows as lines and points.
    pub charts: Vec<Chart>,
    /// How much was run for each setting.
    pub budget: Budget,
}

/// An observer of an experiment that runs.
pub trait Watch: Sync {
    /// Notes that a run is over.
    fn on_run(&self);

    /// Whether runs that have not begun shall not begin.
    fn stops(&self) -> bool;
}

/// Why an experiment has no rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfinished {
    /// A run does not count.
    Void(Box<VoidRun>),
    /// The observer stopped it.
    Stopped,
}

/// A run that does not count, and how to repeat it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VoidRun {
    /// The experiment's ID.
    pub experiment: &'static str,
    /// The setting.
    pub point: Point,
    /// The seed.
    pub seed: u64,
    /// The cause of the failure.
    pub failure: Failure,
}

impl fmt::Display for VoidRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            experiment,
            point,
            seed,
            failure,
        } = self;
        write!(f, "{experiment} ({point}) with seed {seed}: {failure}")
    }
}

/// Every experiment, in the order of the papers.
pub fn all() -> Vec<Experiment> {
    let mut all = tcplp::EXPERIMENTS.to_vec();
    all.extend(fairness::EXPERIMENTS);
    all.extend(fair::EXPERIMENTS);
    all.extend(tcphc::EXPERIMENTS);
    all.extend(cit::EXPERIMENTS);
    all.extend(combined::EXPERIMENTS);
    all.extend(cit_multihop::EXPERIMENTS);
    all.extend(features::EXPERIMENTS);
    all.push(tcphc::COMBINED);
    all.extend(ble::EXPERIMENTS);
    all.extend(tcple::EXPERIMENTS);
    all.extend(mesh::EXPERIMENTS);
    all.extend(sleepy::EXPERIMENTS);
    all.extend(security::EXPERIMENTS);
    all.extend(outsiders::EXPERIMENTS);
    #[cfg(feature = "firmware")]
    all.extend(update::EXPERIMENTS);
    #[cfg(all(feature = "captures", feature = "firmware"))]
    all.extend(everything::EXPERIMENTS);
    all
}

impl Case {
    /// A setting with one saturated flow up the chain.
    fn new(point: Point, setup: Setup) -> Self {
        Self {
            point,
            setup,
            traffic: Arc::new(Flows::Up),
        }
    }

    /// This case with other traffic.
    fn traffic(self, traffic: impl Traffic + 'static) -> Self {
        Self {
            traffic: Arc::new(traffic),
            ..self
        }
    }

    /// The full segment of this setting, and the radio's bound in a run that measures for
    /// `seconds`.
    fn segment(&self, seconds: u64) -> Segment {
        self.traffic.segment(&self.setup, seconds)
    }
}

impl Experiment {
    /// How much `effort` means here.
    pub const fn budget(&self, effort: Effort) -> Budget {
        self.budget[effort as usize]
    }

    /// How many runs that is, over all settings and both sets of seeds.
    pub fn runs(&self, effort: Effort) -> u64 {
        (self.cases)().len() as u64 * 2 * self.budget(effort).runs
    }

    /// Runs every setting with two disjoint sets of seeds, the first from `seed` on, the second
    /// right behind it, on all cores. `watch` hears of each run that is over and may stop those
    /// that have not begun. The result does not depend on how many cores there are.
    ///
    /// # Errors
    /// The first run that does not count, wherever it stands; else that the experiment was
    /// stopped.
    pub fn run(&self, budget: Budget, seed: u64, watch: &impl Watch) -> Result<Report, Unfinished> {
        let cases = (self.cases)();
        let per_case = 2 * budget.runs;
        let jobs: Vec<(usize, u64)> = (0..cases.len())
            .flat_map(|case| (0..per_case).map(move |n| (case, seed.wrapping_add(n))))
            .collect();
        let done: Vec<Result<Run, Unfinished>> = parallel::map(jobs, |(case, seed)| {
            if watch.stops() {
                return Err(Unfinished::Stopped);
            }
            let Case {
                point,
                setup,
                traffic,
            } = &cases[case];
            let done = traffic
                .run(setup, seed, budget.seconds)
                .map_err(|failure| VoidRun {
                    experiment: self.id,
                    point: point.clone(),
                    seed,
                    failure,
                });
            watch.on_run();
            done.map_err(|void| Unfinished::Void(Box::new(void)))
        });
        let mut done = all_or_first_void(done)?.into_iter();
        let of_case = |_: &Case| done.by_ref().take(per_case as usize).collect();
        let runs = cases.iter().map(of_case).collect();
        let full = self.budget(Effort::Full);
        let measured = Measured {
            is_full: budget.runs >= full.runs && budget.seconds >= full.seconds,
            ..Measured::new(self.id, cases, runs, budget.seconds)
        };
        let rows = judging::judge(budget.runs as usize, measured.is_full, |seeds| {
            let measured = &measured;
            let rows = (self.rows)(&Results { measured, seeds });
            rows.into_iter().map(unjudged::apply).collect()
        });
        let mut charts = self
            .axis
            .map_or_else(Vec::new, |axis| chart::of_rows(self.title, axis, &rows));
        charts.extend(measured.trace());
        Ok(Report {
            rows,
            charts,
            budget,
        })
    }
}

/// Returns all runs, or an error: that of a void run, if there is one, before those of stopped
/// runs.
fn all_or_first_void<T>(done: Vec<Result<T, Unfinished>>) -> Result<Vec<T>, Unfinished> {
    let is_void = |run: &Result<T, Unfinished>| matches!(run, Err(Unfinished::Void(_)));
    let void = done.iter().position(is_void);
    done.into_iter().skip(void.unwrap_or(0)).collect()
}

impl Measured {
    fn new(experiment: &'static str, cases: Vec<Case>, runs: Vec<Vec<Run>>, seconds: u64) -> Self {
        let segments = cases.iter().map(|case| case.segment(seconds)).collect();
        Self {
            experiment,
            cases,
            segments,
            runs,
            is_full: true,
        }
    }

    fn place(&self, point: &Point) -> Option<usize> {
        let place = self.cases.iter().position(|case| case.point == *point);
        debug_assert!(
            place.is_some(),
            "rows ask for points that were run: {point}"
        );
        place
    }

    /// The congestion window over time, where a paper shows it.
    fn trace(&self) -> Option<Chart> {
        let run = self.runs.first()?.first()?;
        (self.experiment == "tcplp-cwnd").then(|| chart::of_trace(&run.flows[0].cwnd_trace))
    }
}

impl<'a> Results<'a> {
    /// The settings, in order.
    pub fn cases(&self) -> impl Iterator<Item = &'a Case> + use<'a> {
        self.measured.cases.iter()
    }

    /// The runs at a point; none if there is no such point.
    pub fn runs(&self, point: &Point) -> impl Iterator<Item = &'a Run> + use<'a> {
        let place = self.measured.place(point);
        self.sampled(place.map_or(&[], |place| &self.measured.runs[place]))
    }

    /// The runs of a setting that are in the sample.
    fn sampled(&self, runs: &'a [Run]) -> impl Iterator<Item = &'a Run> + use<'a> {
        self.seeds.iter().filter_map(|seed| runs.get(*seed))
    }

    /// The mean over the runs at a point; no number if there is no such point.
    pub fn mean_of(&self, point: &Point, of: impl Fn(&Run) -> f64) -> f64 {
        crate::stats::mean(&self.runs(point).map(of).collect::<Vec<_>>())
    }

    /// The mean of a metric at a point.
    pub fn mean(&self, point: &Point, metric: Metric) -> f64 {
        self.mean_of(point, metric.of)
    }

    /// The means of a metric, by setting.
    pub fn means(&self, metric: Metric) -> Vec<f64> {
        let of_case = |runs: &'a Vec<Run>| {
            let values = self.sampled(runs).map(metric.of);
            crate::stats::mean(&values.collect::<Vec<_>>())
        };
        self.measured.runs.iter().map(of_case).collect()
    }

    /// The row of a metric at a point.
    pub fn row(&self, point: &Point, metric: Metric) -> Row {
        let value = self.mean(point, metric);
        self.derived(point.clone(), (metric.name, metric.unit), value)
    }

    /// A row with a value that follows from one point or from several.
    pub fn derived(&self, point: Point, name: (&'static str, &'static str), value: f64) -> Row {
        Row::new(self.measured.experiment, point, name, value)
    }

    /// The row of the least of several figures, one for each of several settings.
    pub fn least(&self, point: Point, name: (&'static str, &'static str), of: Vec<f64>) -> Row {
        self.derived(point, name, f64::NAN).least_of(of)
    }

    /// The row of the greatest of several figures.
    pub fn greatest(&self, point: Point, name: (&'static str, &'static str), of: Vec<f64>) -> Row {
        self.derived(point, name, f64::NAN).greatest_of(of)
    }

    /// A row whose criterion only the full form of the experiment judges: the quick form runs too
    /// little for a verdict.
    pub fn judged_in_full(&self, row: Row) -> Row {
        match self.measured.is_full {
            true => row,
            false => row.deferred(),
        }
    }

    /// The same of all rows of an experiment.
    pub fn all_judged_in_full(&self, rows: Vec<Row>) -> Vec<Row> {
        let judged = |row| self.judged_in_full(row);
        rows.into_iter().map(judged).collect()
    }

    /// The full segment of a point's setting, and the radio's bound.
    pub fn segment(&self, point: &Point) -> Segment {
        let place = self.measured.place(point);
        place.map_or(Segment::NONE, |place| self.measured.segments[place])
    }

    /// The row of goodput at a point, with the bound or the paper's estimate.
    pub fn goodput(&self, point: &Point) -> Row {
        self.of_radio(point, metric::GOODPUT)
    }

    /// The row of a rate at a point, with the bound or the paper's estimate.
    fn of_radio(&self, point: &Point, metric: Metric) -> Row {
        let Segment {
            bound, estimate, ..
        } = self.segment(point);
        self.row(point, metric).bound(bound).estimate(estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::row::Value;
    use super::*;

    #[test]
    fn settings_say_what_they_are_in_the_words_of_all() {
        let words: [(&str, &[&str]); 6] = [
            ("direction", &["up", "down"]),
            ("forwarding", &["copy", "cit"]),
            ("relaying", &["fragments", "reassembly"]),
            ("queue", &["droptail", "red"]),
            ("compression", &["none", "tcphc", "auto"]),
            ("channels", &["single", "multi"]),
        ];
        for experiment in all() {
            let cases = (experiment.cases)();
            assert!(!cases.is_empty(), "{}", experiment.id);
            for Case { point, .. } in cases {
                for (key, value) in point.iter() {
                    let at = format!("{}: {key}={value}", experiment.id);
                    assert!(row::KEYS.contains(&key), "{at}");
                    let allowed = words.iter().find(|(name, _)| *name == key);
                    match (allowed, value) {
                        (Some((_, allowed)), Value::Name(name)) => {
                            assert!(allowed.contains(name), "{at}");
                        }
                        (Some(_), _) => panic!("{at}"),
                        (None, Value::Hundredths(part)) => {
                            assert!(key == "loss" && *part <= 100, "{at}");
                        }
                        (None, _) => assert_ne!(key, "loss", "{at}: a fraction"),
                    }
                }
                let others = experiment.axis.map(|axis| point.without(axis));
                assert_ne!(others, Some(point), "{} has no such axis", experiment.id);
            }
        }
    }

    #[test]
    fn a_void_run_is_told_before_one_that_was_stopped() {
        let void = |seed| {
            Unfinished::Void(Box::new(VoidRun {
                experiment: "id",
                point: Point::default(),
                seed,
                failure: Failure::NotJoined,
            }))
        };
        let stopped = || Err(Unfinished::Stopped);
        let cases = [
            (vec![Ok(1), Ok(2)], Ok(vec![1, 2])),
            (
                vec![Ok(1), stopped(), Err(void(7)), stopped()],
                Err(void(7)),
            ),
            (vec![Err(void(3)), stopped(), Err(void(7))], Err(void(3))),
            (vec![Ok(1), stopped()], Err(Unfinished::Stopped)),
            (vec![], Ok(vec![])),
        ];
        for (done, expected) in cases {
            assert_eq!(all_or_first_void(done), expected);
        }
    }

    #[test]
    fn a_fraction_is_shown_as_one() {
        let point = Point::default().with("loss", Value::Hundredths(3));
        assert_eq!(point.to_string(), "loss=0.03");
        assert_eq!(point.get("loss").and_then(Value::number), Some(0.03));
    }
}
