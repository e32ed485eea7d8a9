//! The five systems and the rest of Motet in one network: whether each brings more than it costs
//! where all others are on.
//!
//! Purpose: thirty motes in an RPL mesh with a key, six of them asleep, and three motes on
//! Bluetooth LE, behind one border router; bulk both ways, readings, questions, datagrams. A relay
//! dies, a link gets worse, the key rotates, the border router starts again. Each part is left out
//! in turn. Left out: what `spec/requirements.md` asks of single packets.

mod network;
mod run;

use self::network::Part;
use self::run::Everything;
use super::row::{Point, Row};
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::experiments::metric::Metric;

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [ALL];

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
            runs: 8,
            seconds: 600,
        },
    ],
};

/// The point with everything.
fn everything() -> Point {
    Point::default().with("design", "everything")
}

/// The point of plain TCP: of the parts only those without which motes do not sleep.
fn plain() -> Point {
    Point::default().with("design", "plain TCP")
}

fn without(name: &'static str) -> Point {
    everything().with("without", name)
}

fn cases() -> Vec<Case> {
    let case = |point: Point, left_out: &[Part]| {
        let traffic = Everything(left_out.to_vec());
        Case::new(point, Setup::hops(1)).traffic(traffic)
    };
    let mut cases = vec![case(everything(), &[])];
    let all: Vec<Part> = Part::ALL.iter().map(|(part, _)| *part).collect();
    cases.push(case(plain(), &all));
    let each = Part::ALL.iter();
    cases.extend(each.map(|(part, name)| case(without(name), &[*part])));
    cases
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
const JAIN: Metric = figure!("jain", "1");
const DELIVERY: Metric = figure!("delivery", "1");
const DUTY: Metric = figure!("radio_duty_cycle", "%");
const REPAIR: Metric = figure!("repair_s", "s");
const LOST: Metric = figure!("connections_lost", "1");
const ENERGY: Metric = figure!("energy_per_byte", "µJ/B");
const LATENCY: Metric = figure!("request_p95", "ms");
const SHOWN: [Metric; 8] = [GOODPUT, JAIN, DELIVERY, DUTY, REPAIR, LOST, ENERGY, LATENCY];

/// What a part has to be good for, the name of what the network gains in it without the part, and
/// whether more is better.
const WORTH: [(Metric, &str, bool); 5] = [
    (GOODPUT, "gain_goodput", true),
    (JAIN, "gain_jain", true),
    (DELIVERY, "gain_delivery", true),
    (DUTY, "gain_radio_duty", false),
    (REPAIR, "gain_repair", false),
];

fn rows(results: &Results<'_>) -> Vec<Row> {
    let row = |metric| results.row(&everything(), metric);
    let mut rows = vec![
        row(GOODPUT),
        row(JAIN).at_least(0.98).moonshot(0.995),
        row(DELIVERY).at_least(0.99).moonshot(0.999),
        row(DUTY).at_most(1.65).moonshot(1.2),
        row(REPAIR).at_most(33.0).moonshot(10.0),
        row(LOST).at_most(0.0),
        row(ENERGY),
        row(LATENCY),
    ];
    let beside = |name: (&'static str, &'static str), metric| {
        let [with, without] = [everything(), plain()].map(|at| results.mean(&at, metric));
        results.derived(everything(), name, with / without)
    };
    rows.push(
        beside(("goodput_over_plain", "1"), GOODPUT)
            .at_least(1.4)
            .moonshot(1.8),
    );
    rows.push(
        beside(("energy_over_plain", "1"), ENERGY)
            .at_most(0.75)
            .moonshot(0.6),
    );
    rows.extend(SHOWN.map(|metric| results.row(&plain(), metric)));
    for (part, name) in Part::ALL {
        let at = without(name);
        for (metric, gain_name, is_more) in WORTH {
            let is_judged = match part {
                // A key costs bytes and time; it is not there for speed.
                Part::Security => false,
                // They are there for shares, not for sums.
                Part::Admission | Part::Queues => {
                    metric.name != GOODPUT.name && metric.name != DUTY.name
                }
                _ => true,
            };
            let value = results.mean(&at, metric);
            let with = results.mean(&everything(), metric);
            // How much better the network is without it.
            let gain = match is_more {
                true => value / with,
                false => with / value,
            };
            let row = results.derived(at.clone(), (gain_name, "1"), gain);
            rows.push(match is_judged {
                true => row.at_most(1.05),
                false => row.shown("the part is not there for this"),
            });
        }
    }
    results.all_judged_in_full(rows)
}
