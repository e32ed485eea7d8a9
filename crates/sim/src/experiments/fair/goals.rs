//! The rows of a comparison of policies.

use crate::experiments::Results;
use crate::experiments::row::{Point, Row};
use crate::experiments::run::Run;
use crate::stats::mean;

/// The mean of a figure over the runs at a point.
pub(super) fn figure(results: &Results<'_>, point: &Point, name: &str) -> f64 {
    let values: Vec<f64> = results.runs(point).map(|run| run.figure(name)).collect();
    mean(&values)
}

/// A figure of one policy over that of another, seed by seed.
pub(super) fn ratios(
    results: &Results<'_>,
    [over, under]: [&Point; 2],
    of: impl Fn(&Run) -> f64,
) -> Vec<f64> {
    let pairs = results.runs(over).zip(results.runs(under));
    pairs.map(|(over, under)| of(over) / of(under)).collect()
}

/// The row of a figure.
pub(super) fn row(results: &Results<'_>, point: &Point, name: &'static str) -> Row {
    let value = figure(results, point, name);
    results.derived(point.clone(), (name, unit(name)), value)
}

/// How much sooner the same work was done than without a policy: the median, and the worst.
pub(super) fn makespans(results: &Results<'_>, point: &Point, none: &Point) -> [Row; 2] {
    let all = ratios(results, [none, point], |run| run.figure("makespan_s"));
    let worst = all.iter().copied().fold(f64::INFINITY, f64::min);
    let row = |name, value| results.derived(point.clone(), (name, "1"), value);
    [
        row("makespan_ratio", f64::NAN).median_of(all),
        row("makespan_ratio_worst", worst).without_interval(),
    ]
}

/// Over time (TAiM, figure 11): the part of the minutes that are fairer than without a policy, the
/// first aside, and how much later the first mote is done. The paper leaves out ten of its ninety
/// minutes; all of these runs may last nine.
pub(super) fn over_time(results: &Results<'_>, point: &Point, none: &Point) -> [Row; 2] {
    let pairs = results.runs(point).zip(results.runs(none));
    let better = pairs.flat_map(|(with, without)| {
        let minutes = with.all("jain_minute").zip(without.all("jain_minute"));
        let later = minutes.skip(1);
        later.map(|(with, without)| f64::from(u8::from(with > without)))
    });
    let better: Vec<f64> = better.collect();
    let first = ratios(results, [point, none], |run| run.figure("first_finish_s"));
    let row = |name, value| results.derived(point.clone(), (name, "1"), value);
    [
        row("fairer_minutes", mean(&better)),
        row("first_finish_ratio", mean(&first)),
    ]
}

/// Goodput times hops over that without a policy.
pub(super) fn hop_weighted(results: &Results<'_>, point: &Point, none: &Point) -> Row {
    let all = ratios(results, [point, none], |run| run.figure("hop_weighted"));
    results.derived(point.clone(), ("hop_weighted_rate", "1"), mean(&all))
}

/// Timeouts while a packet was held, and in all over those without a policy.
pub(super) fn timeouts(results: &Results<'_>, point: &Point, none: &Point) -> [Row; 2] {
    let total = figure(results, point, "total_rto");
    let without = figure(results, none, "total_rto");
    let total = results.derived(point.clone(), ("total_rto_ratio", "1"), total / without);
    [
        row(results, point, "held_rto")
            .at_most(0.01)
            .moonshot(0.004),
        total.at_most(1.0),
    ]
}

fn unit(name: &str) -> &'static str {
    match name {
        "makespan_s" => "s",
        "goodput" | "hop_weighted" => "kb/s",
        _ => "1",
    }
}
