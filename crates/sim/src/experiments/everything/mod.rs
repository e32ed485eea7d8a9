//! The five systems and the rest of Motet in one network: whether each brings more than it costs
//! where all others are on.
//!
//! Purpose: thirty motes in an RPL mesh with a key, six of them asleep, and three motes on
//! Bluetooth LE, behind one border router; bulk both ways, readings, questions, datagrams, an image
//! over CoAP. A relay dies, a link gets worse, the key rotates, the border router starts again.
//! Each part is left out in turn. Fifteen requirements of how parts meet are checked where
//! everything is on.

mod few;
mod interplay;
mod network;
mod run;
mod troubles;

use self::interplay::{APART, MARKS, REQUIREMENTS};
use self::network::{Part, Place};
use self::run::{Everything, InTurns};
use super::row::{Point, Row};
use super::run::Failure;
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::experiments::metric::Metric;

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 2] = [ALL, PLACES];

const ALL: Experiment = Experiment {
    id: "combined-all",
    title: "All of Motet at once, and each part left out in turn",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 3,
            seconds: 600,
        },
        Budget {
            runs: 16,
            seconds: 600,
        },
    ],
};

const PLACES: Experiment = Experiment {
    id: "combined-places",
    title: "All of Motet at once, on several channels and over a testbed's links",
    cases: places_cases,
    rows: places_rows,
    axis: None,
    budget: ALL.budget,
};

/// The point with everything.
fn everything() -> Point {
    Point::default().with("design", "everything")
}

/// The point of plain TCP: of the parts only those without which motes do not sleep.
fn plain() -> Point {
    Point::default().with("design", "plain TCP")
}

/// The point of bulk flows that take turns of a minute, alone in the mesh, with everything.
fn in_turns() -> Point {
    Point::default().with("design", "one flow at a time")
}

fn without(name: &'static str) -> Point {
    everything().with("without", name)
}

fn cases() -> Vec<Case> {
    let case = |point: Point, left_out: &[Part]| {
        let traffic = Everything(Place::Floor, left_out.to_vec());
        Case::new(point, Setup::hops(1)).traffic(traffic)
    };
    let mut cases = vec![case(everything(), &[])];
    cases.push(Case::new(in_turns(), Setup::hops(1)).traffic(InTurns));
    let all: Vec<Part> = Part::ALL.iter().map(|(part, _)| *part).collect();
    cases.push(case(plain(), &all));
    let each = Part::ALL.iter();
    cases.extend(each.map(|(part, name)| case(without(name), &[*part])));
    cases
}

/// The same network elsewhere, and the name of its point.
const ELSEWHERE: [(Place, &str); 2] = [
    (Place::Channels, "several channels"),
    (Place::Testbed, "grenoble"),
];

fn at(place: &'static str) -> Point {
    everything().with("place", place)
}

fn places_cases() -> Vec<Case> {
    let case =
        |(place, name)| Case::new(at(name), Setup::hops(1)).traffic(Everything(place, Vec::new()));
    ELSEWHERE.into_iter().map(case).collect()
}

/// A figure of a run.
macro_rules! figure {
    ($name:literal, $unit:literal) => {
        Metric {
            name: $name,
            unit: $unit,
            of: |run| run.figure($name),
        }
    };
}

const GOODPUT: Metric = figure!("goodput", "kb/s");
const GOODPUT_LEAST: Metric = figure!("goodput_least", "kb/s");
const GOODPUT_BLE: Metric = figure!("goodput_ble", "kb/s");
const JAIN: Metric = figure!("jain", "1");
const DELIVERY: Metric = figure!("delivery", "1");
const DUTY: Metric = figure!("radio_duty_cycle", "%");
const REPAIR: Metric = figure!("repair_s", "s");
const REPAIR_RESTART: Metric = figure!("repair_restart_s", "s");
const REPAIR_BLE: Metric = figure!("repair_ble_s", "s");
const REPAIR_ASLEEP: Metric = figure!("repair_asleep_s", "s");
const CARRIED: Metric = figure!("relay_carried", "1");
const LINK_CARRIED: Metric = figure!("link_carried", "1");
const LOST: Metric = figure!("connections_lost", "1");
const ENERGY: Metric = figure!("energy_per_byte", "µJ/B");
const ENERGY_BLE: Metric = figure!("energy_per_byte_ble", "µJ/B");
const LATENCY: Metric = figure!("request_p95", "ms");
const SHOWN: [Metric; 16] = [
    GOODPUT,
    GOODPUT_LEAST,
    GOODPUT_BLE,
    JAIN,
    DELIVERY,
    DUTY,
    REPAIR,
    REPAIR_RESTART,
    REPAIR_BLE,
    REPAIR_ASLEEP,
    CARRIED,
    LINK_CARRIED,
    LOST,
    ENERGY,
    ENERGY_BLE,
    LATENCY,
];

/// What a gain without a part is of a figure.
#[derive(Clone, Copy)]
enum Gain {
    /// How much more there is.
    More,
    /// How much less there is, where more than this is there, which is what may be.
    Less(f64),
    /// How much less is missing of a share of 1, where more is missing than this, which is what may
    /// be.
    Missing(f64),
}

/// What a part has to be good for, and the name of what the network gains in it without the part.
const WORTH: [(Metric, &str, Gain); 7] = [
    (GOODPUT, "gain_goodput", Gain::More),
    (GOODPUT_BLE, "gain_goodput_ble", Gain::More),
    (JAIN, "gain_jain", Gain::Missing(1.0 - JAIN_MIN)),
    (DELIVERY, "gain_delivery", Gain::Missing(1.0 - DELIVERY_MIN)),
    (DUTY, "gain_radio_duty", Gain::Less(DUTY_MAX)),
    (REPAIR, "gain_repair", Gain::Less(REPAIR_MAX_S)),
    (
        REPAIR_RESTART,
        "gain_repair_restart",
        Gain::Less(REPAIR_MAX_S),
    ),
];

const JAIN_MIN: f64 = 0.98;
const DELIVERY_MIN: f64 = 0.99;
const DUTY_MAX: f64 = 1.65;
const REPAIR_MAX_S: f64 = 33.0;

impl Gain {
    /// Whether a figure is no worse than it may be, with a part and without it.
    fn is_within(self, with: f64, without: f64) -> bool {
        match self {
            Self::More => false,
            Self::Less(most) => with.max(without) <= most,
            Self::Missing(least) => with.min(without) >= 1.0 - least,
        }
    }

    /// How much better the network is `without` a part than `with` it; 1: the same.
    fn of(self, with: f64, without: f64) -> f64 {
        match self {
            Self::More => without / with,
            Self::Less(most) => with.max(most) / without.max(most),
            Self::Missing(least) => {
                let missing = |share: f64| (1.0 - share).max(least);
                missing(with) / missing(without)
            }
        }
    }
}

/// Whether a part has to be worth something in a figure.
fn is_judged(part: Part, metric: Metric) -> bool {
    let is_sum = [GOODPUT, GOODPUT_BLE, DUTY]
        .iter()
        .any(|sum| sum.name == metric.name);
    match part {
        // A key costs bytes and time; it is not there for speed.
        Part::Security => false,
        // They are there for shares, not for sums.
        Part::Admission | Part::Queues => !is_sum,
        _ => true,
    }
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = figures(results, &everything());
    rows.extend(beside_plain(results));
    rows.extend(REQUIREMENTS.iter().map(|(number, name)| {
        let at = match MARKS.contains(number) {
            true => without("admission"),
            false => everything(),
        };
        interplay(results, (&everything(), at), (*number, name))
    }));
    rows.extend(SHOWN.map(|metric| results.row(&plain(), metric)));
    for (part, name) in Part::ALL {
        rows.extend(worth(results, part, name));
    }
    results.all_judged_in_full(rows)
}

fn places_rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (_, name) in ELSEWHERE {
        rows.extend(figures(results, &at(name)));
        let made = REQUIREMENTS
            .iter()
            .filter(|(number, _)| !APART.contains(number));
        rows.extend(
            made.map(|requirement| interplay(results, (&at(name), at(name)), *requirement)),
        );
    }
    results.all_judged_in_full(rows)
}

/// What everything at once brings, beside what it has to.
fn figures(results: &Results<'_>, at: &Point) -> Vec<Row> {
    let row = |metric| results.row(at, metric);
    let repair = |metric| row(metric).at_most(REPAIR_MAX_S).moonshot(10.0);
    vec![
        row(GOODPUT),
        row(GOODPUT_LEAST),
        row(GOODPUT_BLE),
        row(JAIN).at_least(JAIN_MIN).moonshot(0.995),
        row(DELIVERY).at_least(DELIVERY_MIN).moonshot(0.999),
        row(DUTY).at_most(DUTY_MAX).moonshot(1.2),
        repair(REPAIR),
        repair(REPAIR_RESTART),
        repair(REPAIR_BLE),
        repair(REPAIR_ASLEEP),
        row(CARRIED).at_least(1.0),
        row(LINK_CARRIED),
        row(LOST).at_most(0.0),
        row(ENERGY),
        row(ENERGY_BLE),
        row(LATENCY),
    ]
}

/// The share of a requirement's checks that held where everything was on, in a row of its own.
fn interplay(
    results: &Results<'_>,
    (ran, at): (&Point, Point),
    (number, name): (usize, &'static str),
) -> Row {
    let share = results.mean_of(ran, |run| run.figure(name));
    let at = at.with("requirement", number as u64);
    results.derived(at, ("interplay", "1"), share).at_least(1.0)
}

/// Everything beside plain TCP.
fn beside_plain(results: &Results<'_>) -> [Row; 4] {
    let beside = |name: (&'static str, &'static str), metric| {
        let [with, without] = [everything(), plain()].map(|at| results.mean(&at, metric));
        results.derived(everything(), name, with / without)
    };
    let goodput = beside(("goodput_over_plain", "1"), GOODPUT);
    let energy = beside(("energy_over_plain", "1"), ENERGY);
    let least = beside(("least_over_plain", "1"), GOODPUT_LEAST);
    let turns = results.mean(&in_turns(), GOODPUT);
    let turns = results.mean(&everything(), GOODPUT) / turns;
    let turns = results.derived(everything(), ("goodput_over_turns", "1"), turns);
    [
        goodput.at_least(1.4).moonshot(1.8),
        energy.at_most(0.75).moonshot(0.6),
        least.shown("the flow that has least, beside that of plain TCP"),
        turns.shown("beside the same flows one at a time, with nobody else on the air"),
    ]
}

/// What the network gains without a part, in each figure; and what the part is worth where it is
/// worth most.
fn worth(results: &Results<'_>, part: Part, name: &'static str) -> Vec<Row> {
    let at = without(name);
    let mut most = f64::NEG_INFINITY;
    let mut rows: Vec<Row> = Vec::new();
    for (metric, gain_name, gain) in WORTH {
        let [with, without] = [&everything(), &at].map(|at| results.mean(at, metric));
        let gained = gain.of(with, without);
        most = most.max(1.0 / gained);
        let row = results.derived(at.clone(), (gain_name, "1"), gained);
        rows.push(
            match (is_judged(part, metric), gain.is_within(with, without)) {
                (true, false) => row.at_most(1.05),
                (true, true) => row.shown("with the part and without it within what it may be"),
                (false, _) => row.shown("the part is not there for this"),
            },
        );
    }
    let row = results.derived(at, ("worth", "1"), most);
    rows.push(row.shown("where the part is worth most (moonshot 1.05)"));
    rows
}

/// The checks of requirements that did not hold in a run of a seed with everything on, in words,
/// each behind the number of its requirement (`requirement 7: …`).
///
/// # Errors
/// Why the run does not count.
pub fn broken_requirements(seed: u64, seconds: u64) -> Result<Vec<String>, Failure> {
    run::broken(seed, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_of_a_share_is_of_what_is_missing() {
        let jain = Gain::Missing(0.02);
        for (with, without, gain) in [
            (0.79, 0.83, 1.235),
            (0.83, 0.79, 0.8095),
            (0.96, 0.995, 2.0),
            // What may be missing is no loss.
            (0.985, 1.0, 1.0),
        ] {
            let found = jain.of(with, without);
            assert!((found - gain).abs() < 0.001, "{with}, {without}: {found}");
        }
        assert_eq!(Gain::More.of(2.0, 3.0), 1.5);
        assert_eq!(Gain::Less(1.0).of(3.0, 2.0), 1.5);
        assert_eq!(Gain::Less(2.5).of(3.0, 2.0), 1.2);
        assert_eq!(Gain::Less(33.0).of(30.0, 20.0), 1.0);
    }

    /// The network without faults of the stack: every check can be made, and holds.
    #[test]
    fn requirements_hold() {
        let broken = broken_requirements(1, 520).unwrap();
        assert_eq!(broken, Vec::<String>::new());
    }
}
