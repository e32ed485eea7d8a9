//! Meshes that form themselves: time to form, time to repair, and cost.
//!
//! Purpose: Motet's own experiments of RPL, on floors drawn by the seed and on a testbed's trace.
//! Each seed is another floor, so that an interval covers floors and chances alike. All motes are
//! switched on within five seconds, and time counts from the last of them.
//! Place: `measure` takes the figures; `runs`, `stable` and `forged` make the runs.
//! Left out: several flows at a time, which `combined-*` and scenarios have.

mod forged;
pub mod measure;
#[cfg(test)]
mod returning;
mod runs;
mod stable;

use std::sync::Arc;

pub(super) use self::runs::join_with_key;
use self::runs::{Direction, Kind};
use super::row::{Point, Row};
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::stats::mean;

/// The experiments, in the order of the command's list.
pub const EXPERIMENTS: [Experiment; 7] = [
    experiment(
        "mesh-join",
        "How long motes take to join",
        || sizes(Kind::Join),
        [FLOORS, 0, 0],
    ),
    experiment(
        "mesh-repair",
        "How long a path takes to mend",
        repairs,
        [FLOORS, 0, 0],
    ),
    experiment(
        "mesh-path",
        "How good the chosen paths are",
        || sizes(Kind::Path),
        [FLOORS, 600, 600],
    ),
    experiment(
        "mesh-idle",
        "What an idle mesh sends",
        || sizes(Kind::Idle),
        [FLOORS, 600, 1_800],
    ),
    experiment(
        "mesh-cost",
        "What routing costs a transfer",
        costs,
        [FLOORS, 60, 120],
    ),
    experiment(
        "mesh-stable",
        "Readings over a day of a testbed's trace, and how often paths change",
        || vec![stable::case()],
        [stable::HOURS / 2, 2 * 3_600, 24 * 3_600],
    ),
    Experiment {
        rows: forged::rows,
        ..experiment(
            "mesh-forged",
            "What forged messages take from a mesh, with a key and without one",
            forged::cases,
            [FLOORS, 30, 300],
        )
    },
];

const fn experiment(
    id: &'static str,
    title: &'static str,
    cases: fn() -> Vec<Case>,
    [runs, quick, full]: [u64; 3],
) -> Experiment {
    Experiment {
        id,
        title,
        cases,
        rows,
        axis: None,
        budget: [
            Budget {
                runs,
                seconds: quick,
            },
            Budget {
                runs: 2 * runs,
                seconds: full,
            },
        ],
    }
}

fn point(nodes: u64) -> Point {
    Point::default().with("nodes", nodes)
}

fn case(point: Point, kind: Kind) -> Case {
    Case {
        point,
        // A floor is no chain: of this, runs take the settings of TCP.
        setup: Setup::hops(1),
        traffic: Arc::new(kind),
    }
}

/// On floors of both sizes.
fn sizes(kind: fn(u64) -> Kind) -> Vec<Case> {
    let of = |nodes| case(point(nodes), kind(nodes));
    vec![of(FEW), of(MANY)]
}

fn repairs() -> Vec<Case> {
    vec![case(point(FEW), Kind::Repair)]
}

fn costs() -> Vec<Case> {
    let of = |way: Direction| {
        let point = point(FEW).with("hops", 3).with("direction", way.name());
        case(point, Kind::Cost(way))
    };
    vec![of(Direction::Up), of(Direction::Down)]
}

/// A row for each criterion of the experiment and each point that it is of; then what they are
/// made of.
fn rows(results: &Results<'_>) -> Vec<Row> {
    let id = results.measured.experiment;
    let mut rows = Vec::new();
    for goal in GOALS.iter().filter(|goal| goal.experiment == id) {
        let points = results.cases().map(|case| &case.point);
        for point in points.filter(|point| goal.is_of(point)) {
            rows.push(goal.judge(row(results, point, (goal.metric, goal.unit))));
        }
    }
    for (experiment, metric, unit) in SHOWN {
        let points = results.cases().map(|case| &case.point);
        for point in points.filter(|_| experiment == id) {
            rows.push(row(results, point, (metric, unit)));
        }
    }
    rows
}

/// The row of a figure over the runs at a point.
fn row(results: &Results<'_>, point: &Point, name: (&'static str, &'static str)) -> Row {
    let of = |name: &str| -> Vec<f64> { results.runs(point).map(|run| run.figure(name)).collect() };
    let of_value = |value| results.derived(point.clone(), name, value);
    match name.0 {
        WORST => of_value(of("repair_s").into_iter().fold(f64::NAN, f64::max)),
        metric @ "connections_lost" => of_value(of(metric).iter().sum()),
        "goodput_ratio" => of_value(mean(&of("goodput")) / mean(&of("goodput_static"))),
        metric @ ("joined_s" | "repair_s" | "reboot_s") => of_value(f64::NAN).median_of(of(metric)),
        metric => of_value(mean(&of(metric))),
    }
}

/// The longest repair of all runs.
const WORST: &str = "repair_worst_s";

impl Goal {
    fn is_of(&self, point: &Point) -> bool {
        self.point
            .is_none_or(|(key, value)| point.get(key).is_some_and(|own| own.to_string() == value))
    }

    fn judge(&self, row: Row) -> Row {
        let row = match self.at_least {
            true => row.at_least(self.must),
            false => row.at_most(self.must),
        };
        let row = row.moonshot(self.moonshot);
        match self.metric {
            WORST => row.extreme(),
            _ => row,
        }
    }
}

/// The goal for a figure of a mesh.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Goal {
    /// The experiment that measures the figure.
    pub experiment: &'static str,
    /// The name of the measured figure.
    pub metric: &'static str,
    /// The metric's unit.
    pub unit: &'static str,
    /// Key and value of the point, where there are several.
    pub point: Option<(&'static str, &'static str)>,
    /// Whether a greater value is better.
    pub at_least: bool,
    /// The criterion.
    pub must: f64,
    /// A value better than anyone expects.
    pub moonshot: f64,
}

const fn at_most(
    [experiment, metric, unit]: [&'static str; 3],
    point: Option<(&'static str, &'static str)>,
    [must, moonshot]: [f64; 2],
) -> Goal {
    Goal {
        experiment,
        metric,
        unit,
        point,
        at_least: false,
        must,
        moonshot,
    }
}

const fn at_least(names: [&'static str; 3], values: [f64; 2]) -> Goal {
    Goal {
        at_least: true,
        ..at_most(names, None, values)
    }
}

/// Every criterion of the experiments `mesh-*`.
pub const GOALS: [Goal; 13] = [
    at_most(
        ["mesh-join", "joined_s", "s"],
        Some(("nodes", "30")),
        [30.0, 15.0],
    ),
    at_most(
        ["mesh-join", "joined_s", "s"],
        Some(("nodes", "100")),
        [120.0, 45.0],
    ),
    at_most(["mesh-repair", "repair_s", "s"], None, [30.0, 5.0]),
    at_most(["mesh-repair", WORST, "s"], None, [60.0, 15.0]),
    at_most(["mesh-repair", "connections_lost", "1"], None, [0.0, 0.0]),
    at_most(["mesh-repair", "reboot_s", "s"], None, [120.0, 45.0]),
    at_most(["mesh-path", "etx_ratio", "1"], None, [1.15, 1.05]),
    at_most(["mesh-idle", "control_airtime", "1"], None, [0.01, 0.002]),
    at_least(["mesh-cost", "goodput_ratio", "1"], [0.97, 0.985]),
    at_most(
        ["mesh-cost", "routing_bytes", "B"],
        Some(("direction", "up")),
        [4.0, 4.0],
    ),
    at_most(
        ["mesh-cost", "routing_bytes", "B"],
        Some(("direction", "down")),
        [12.0, 9.0],
    ),
    at_least(["mesh-stable", "delivery", "1"], [0.995, 0.999]),
    at_most(
        ["mesh-stable", "parent_changes_per_h", "1/h"],
        None,
        [1.0, 0.3],
    ),
];

/// Figures that are shown besides, and not judged.
const SHOWN: [(&str, &str, &str); 5] = [
    ("mesh-join", "deepest_hops", "1"),
    ("mesh-repair", "hops", "1"),
    ("mesh-cost", "goodput", "kb/s"),
    ("mesh-cost", "goodput_static", "kb/s"),
    ("mesh-stable", "joined_s", "s"),
];

/// Motes of a small floor.
const FEW: u64 = 30;
const MANY: u64 = 100;

/// Floors of each of the two sets.
const FLOORS: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_is_of_an_experiment_and_no_worse_than_its_moonshot() {
        for goal in GOALS {
            let [must, moonshot] = [goal.must, goal.moonshot];
            let ambitious = if goal.at_least {
                must <= moonshot
            } else {
                must >= moonshot
            };
            assert!(ambitious, "{goal:?}");
            let own = EXPERIMENTS.iter().find(|own| own.id == goal.experiment);
            let cases = (own.expect("its experiment").cases)();
            assert!(cases.iter().any(|case| goal.is_of(&case.point)), "{goal:?}");
        }
    }

    #[test]
    fn as_many_floors_are_run_as_the_criteria_need() {
        for experiment in EXPERIMENTS {
            for budget in experiment.budget {
                assert!(2 * budget.runs >= 10, "{}", experiment.id);
            }
        }
    }
}
