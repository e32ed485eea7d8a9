//! What outsiders have brought upon the stack: floors and neighbours that nobody here chose.
//!
//! Purpose: Motet's own experiment of what once broke it. Each kind of trouble has a file, and a case
//! of its own; `GOALS` says what of its figures is judged.
//! Place: runs draw their floors from the seed. Left out: foreign stacks, which `peers` has.

pub mod beside;
pub mod floors;
pub mod joined;
pub mod siblings;
pub mod strangers;

use std::sync::Arc;

use self::floors::Shape;
use self::joined::Join;
use super::row::{Point, Row};
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-outsiders",
    title: "What outsiders have brought upon the stack: dense floors",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 3,
            seconds: JOIN_S,
        },
        Budget {
            runs: 10,
            seconds: JOIN_S,
        },
    ],
}];

fn cases() -> Vec<Case> {
    let join = |shape: Shape| Case {
        point: Point::default().with("design", shape.name()),
        // A floor is no chain: of this, runs take nothing.
        setup: Setup::hops(1),
        traffic: Arc::new(Join(shape)),
    };
    Shape::ALL.into_iter().map(join).collect()
}

/// A row for each goal and each point whose runs have its figure; then what is shown besides.
fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for goal in &GOALS {
        for point in points_of(results, goal.metric) {
            let value = results.mean_of(point, |run| run.figure(goal.metric));
            let row = results.derived(point.clone(), (goal.metric, goal.unit), value);
            rows.push(match goal.at_least {
                true => row.at_least(goal.must),
                false => row.at_most(goal.must),
            });
        }
    }
    for (metric, unit) in SHOWN {
        for point in points_of(results, metric) {
            let slowest = results.runs(point).map(|run| run.figure(metric));
            let slowest = slowest.fold(f64::NAN, f64::max);
            rows.push(results.derived(point.clone(), (metric, unit), slowest));
        }
    }
    rows
}

/// The points whose runs have this figure.
fn points_of<'a>(results: &Results<'a>, metric: &'static str) -> impl Iterator<Item = &'a Point> {
    let results = *results;
    let points = results.cases().map(|case| &case.point);
    points.filter(move |point| {
        let mut runs = results.runs(point);
        runs.any(|run| run.figures.iter().any(|(own, _)| *own == metric))
    })
}

/// What a figure is to be.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Goal {
    metric: &'static str,
    unit: &'static str,
    at_least: bool,
    must: f64,
}

const GOALS: [Goal; 1] = [Goal {
    metric: "joined",
    unit: "1",
    at_least: true,
    must: 1.0,
}];

/// What is shown besides, of all runs the greatest, and not judged.
const SHOWN: [(&str, &str); 1] = [("joined_s", "s")];

/// Within this every mote answers, s.
const JOIN_S: u64 = 120;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
