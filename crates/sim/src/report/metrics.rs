//! Figures over many runs: means, percentiles, and flows that are alike.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ordered;
use crate::scenario::Likeness;
use crate::scenario::{FlowResult, RunResult};
use crate::stats::Stat;

/// A figure over the seeds of one point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The mean of the values.
    pub value: f64,
    /// Half-width of the interval that holds the true mean with 95 %; none of one run.
    pub ci95: Option<f64>,
    /// How many runs the summary is of.
    pub runs: usize,
}

impl Summary {
    /// The summary of `values`; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Stat { mean, ci95, runs } = Stat::of(values);
        (runs > 0).then_some(Self {
            value: mean,
            ci95,
            runs,
        })
    }
}

/// A figure of a run that is shown for every point.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The metric's name in JSON.
    pub name: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    of: Of,
    /// Whether more of it is better.
    more: bool,
    /// Whether the greatest of several runs stands for all, not their mean.
    greatest: bool,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    Run(fn(&RunResult) -> Option<f64>),
    Flow(fn(&FlowResult) -> Option<f64>),
}

/// All of them: first those of flows, then those of runs.
pub const METRICS: [Metric; 20] = [
    Metric::flow("goodput", "kb/s", |flow| Some(flow.goodput_kbps)).more(),
    Metric::flow("finished", "s", |flow| flow.finished_s),
    Metric::flow("rtt", "ms", |flow| flow.rtt_ms),
    Metric::flow("cwnd", "segments", |flow| flow.cwnd_segments).more(),
    Metric::flow("delivered", "fraction", FlowResult::delivered).more(),
    Metric::flow("latency", "ms", |flow| flow.latency_ms),
    Metric::flow("latency_p50", "ms", |flow| flow.latency_p50_ms),
    Metric::flow("latency_p95", "ms", |flow| flow.latency_p95_ms),
    Metric::flow("latency_max", "ms", |flow| flow.latency_max_ms).greatest(),
    Metric::flow("flow_energy", "mJ", |flow| Some(flow.energy_mj)),
    Metric::flow(
        "flow_energy_per_byte",
        "µJ/B",
        FlowResult::energy_uj_per_byte,
    ),
    Metric::run("total_goodput", "kb/s", |run| Some(run.goodput_kbps())),
    Metric::run("fairness", "Jain", RunResult::fairness),
    Metric::run("retransmitted", "fraction", |run| Some(run.retransmitted())),
    Metric::run("timeouts", "count", |run| Some(run.timeouts() as f64)),
    Metric::run("frames", "count", |run| Some(run.frames() as f64)),
    Metric::run("frame_loss", "fraction", |run| Some(run.frame_loss())),
    Metric::run("link_retries", "fraction", |run| Some(run.retried())),
    Metric::run("energy", "mJ", |run| Some(run.energy_mj())),
    Metric::run("energy_per_byte", "µJ/B", RunResult::energy_uj_per_byte),
];

impl Metric {
    const fn run(
        name: &'static str,
        unit: &'static str,
        of: fn(&RunResult) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            unit,
            of: Of::Run(of),
            more: false,
            greatest: false,
        }
    }

    const fn flow(
        name: &'static str,
        unit: &'static str,
        of: fn(&FlowResult) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            unit,
            of: Of::Flow(of),
            more: false,
            greatest: false,
        }
    }

    const fn more(self) -> Self {
        Self { more: true, ..self }
    }

    const fn greatest(self) -> Self {
        Self {
            greatest: true,
            ..self
        }
    }

    /// Whether the metric belongs to a run as a whole and to none of its flows.
    pub fn is_of_run(&self) -> bool {
        matches!(self.of, Of::Run(_))
    }

    /// The metric of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// The metric's summary over the runs of one point: one for all flows, or one by flow. A flow
    /// that failed in a run has no value there.
    pub fn summaries(&self, runs: &[&RunResult]) -> Vec<(Option<usize>, Summary)> {
        let usable = || runs.iter().filter(|run| run.failure.is_none());
        match self.of {
            Of::Run(of) => {
                let values: Vec<f64> = usable().filter_map(|run| of(run)).collect();
                Summary::of(&values)
                    .map(|summary| (None, summary))
                    .into_iter()
                    .collect()
            }
            Of::Flow(of) => {
                let flows = runs.iter().map(|run| run.flows.len()).max().unwrap_or(0);
                (0..flows)
                    .filter_map(|flow| {
                        let flow_of = |run: &&&RunResult| {
                            let mine = run.flows.get(flow)?;
                            of(mine).filter(|_| !mine.outcome.is_failure())
                        };
                        let values: Vec<f64> = usable().filter_map(|run| flow_of(&run)).collect();
                        Some((Some(flow), self.fold(&values)?))
                    })
                    .collect()
            }
        }
    }
}

impl Metric {
    /// Several runs' values as one.
    fn fold(&self, values: &[f64]) -> Option<Summary> {
        let summary = Summary::of(values)?;
        Some(match self.greatest {
            false => summary,
            true => Summary {
                value: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ci95: None,
                ..summary
            },
        })
    }

    /// The metric of one flow of one run, if it is a figure of flows.
    pub fn of_flow(&self, flow: &FlowResult) -> Option<f64> {
        match self.of {
            Of::Flow(of) => of(flow),
            Of::Run(_) => None,
        }
    }

    /// How the flows of a group did in those runs of one point in which they are of the group; none
    /// where no flow has a value, or it is a figure of runs.
    pub fn spread(&self, group: &Group, runs: &[&RunResult]) -> Option<Spread> {
        let Of::Flow(of) = self.of else {
            return None;
        };
        let (mut sums, mut means) = (vec![(0.0, 0_u32); group.flows.len()], Vec::new());
        for run in runs.iter().filter(|run| run.failure.is_none()) {
            let (mut sum, mut count) = (0.0, 0_u32);
            for (place, flow) in group.flows.iter().enumerate() {
                let flow = run
                    .flows
                    .get(*flow)
                    .filter(|flow| flow.likeness == group.likeness && !flow.outcome.is_failure());
                if let Some(value) = flow.and_then(of) {
                    let before = &mut sums[place];
                    *before = (before.0 + value, before.1 + 1);
                    (sum, count) = (sum + value, count + 1);
                }
            }
            if count > 0 {
                means.push(sum / f64::from(count));
            }
        }
        let sums = sums.into_iter().filter(|(_, count)| *count > 0);
        let mut values: Vec<f64> = sums.map(|(sum, count)| sum / f64::from(count)).collect();
        values.sort_by(f64::total_cmp);
        if self.more {
            values.reverse();
        }
        let mean = Summary::of(&means)?;
        // The first value that so many do not miss; there is one, or there were no mean.
        let rank = |share: f64| values[((share * values.len() as f64).ceil() as usize).max(1) - 1];
        Some(Spread {
            flows: values.len(),
            mean,
            best: rank(0.0),
            p50: rank(0.5),
            p95: rank(0.95),
            worst: rank(1.0),
        })
    }
}

/// A figure over flows that are alike: means over the seeds of each, from the best flow to
/// the worst.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// How many flows have the metric.
    pub flows: usize,
    /// The mean over flows, then over seeds.
    pub mean: Summary,
    /// The value of the best flow.
    pub best: f64,
    /// Half of the flows do at least as well.
    pub p50: f64,
    /// Nineteen of twenty do at least as well.
    pub p95: f64,
    /// The value of the worst flow.
    pub worst: f64,
}

/// Flows that are alike, by their places in the scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The name that the flows share.
    pub name: String,
    /// The likeness that the flows share, for programs.
    pub likeness: Likeness,
    /// The flows' places, in order: of those that have this likeness in a run or more.
    pub flows: Vec<usize>,
}

/// The flows of one point by what they have in common; the largest group first. Where the mesh
/// forms itself, a flow may have more hops with one seed than another: it is in both groups then.
pub fn groups(runs: &[&RunResult]) -> Vec<Group> {
    let mut alike: BTreeMap<Likeness, BTreeSet<usize>> = BTreeMap::new();
    for flow in runs.iter().flat_map(|run| &run.flows) {
        alike.entry(flow.likeness).or_default().insert(flow.flow);
    }
    let mut short: BTreeMap<String, usize> = BTreeMap::new();
    for likeness in alike.keys() {
        *short.entry(likeness.short()).or_default() += 1;
    }
    let named = alike.into_iter().map(|(likeness, flows)| Group {
        name: match short.get(&likeness.short()) {
            Some(1) => likeness.short(),
            _ => likeness.to_string(),
        },
        likeness,
        flows: flows.into_iter().collect(),
    });
    let mut groups: Vec<Group> = named.collect();
    ordered::sort_by_key(&mut groups, |group| std::cmp::Reverse(group.flows.len()));
    groups
}

#[cfg(test)]
#[path = "tests/results.rs"]
mod tests;
