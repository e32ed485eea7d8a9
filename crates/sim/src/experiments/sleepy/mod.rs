//! Motes that sleep: `TCPlp`'s study of them, section 9 and appendix C, and Motet's hints against
//! CoAP.

mod anemometers;
mod batching;
mod combined;
mod day;
mod downward;
mod intervals;
mod loss;
mod polls;

use motet::mac::Policy;
use motet::mac::poll::REST;

use super::metric::Metric;
use super::row::{Point, Value};
use super::run::Run;
use super::setup::Setup;
use super::{Budget, Case, Experiment};
use crate::coap::timing::Algorithm;

use self::anemometers::{Anemometers, Transport};

/// Where each seed shows many batches. Losses build up over minutes, and short runs flatter all
/// transports: only long ones are judged.
const BATCHES: [Budget; 2] = [
    Budget {
        runs: 3,
        seconds: 320,
    },
    Budget {
        runs: 5,
        seconds: 1_800,
    },
];

/// Where there are many settings.
const HOURS: [Budget; 2] = [
    Budget {
        runs: 3,
        seconds: 128,
    },
    Budget {
        runs: 5,
        seconds: 1_800,
    },
];

/// Where each hour is judged by itself, and what grows in minutes has to show.
const EACH_HOUR: [Budget; 2] = [
    Budget {
        runs: 6,
        seconds: 320,
    },
    Budget {
        runs: 6,
        seconds: 1_800,
    },
];

const TRANSFERS: [Budget; 2] = [
    Budget {
        runs: 3,
        seconds: 60,
    },
    Budget {
        runs: 6,
        seconds: 120,
    },
];

/// The experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 6] = [
    Experiment {
        id: "tcplp-batching",
        title: "Batches of readings by TCP and CoAP (TCPlp Fig 8)",
        cases: batching::cases,
        rows: |results| results.all_judged_in_full(batching::rows(results)),
        axis: None,
        budget: BATCHES,
    },
    Experiment {
        id: "tcplp-loss",
        title: "TCP and CoAP by packet loss (TCPlp Fig 9)",
        cases: loss::cases,
        rows: |results| results.all_judged_in_full(loss::rows(results)),
        axis: Some("loss"),
        budget: BATCHES,
    },
    Experiment {
        id: "tcplp-day",
        title: "A day of interference (TCPlp Fig 10, Table 8)",
        cases: day::cases,
        rows: |results| results.all_judged_in_full(day::rows(results)),
        axis: Some("hour"),
        budget: HOURS,
    },
    Experiment {
        id: "tcplp-sleep",
        title: "Fixed sleep intervals (TCPlp Figs 12, 13)",
        cases: intervals::fixed_cases,
        rows: intervals::fixed_rows,
        axis: Some("interval_ms"),
        budget: TRANSFERS,
    },
    Experiment {
        id: "tcplp-adaptive",
        title: "Adaptive sleep intervals (TCPlp Fig 14)",
        cases: intervals::adaptive_cases,
        rows: intervals::adaptive_rows,
        axis: None,
        budget: TRANSFERS,
    },
    Experiment {
        id: "combined-sleepy",
        title: "Readings of motes that sleep: TCP with hints against CoAP",
        cases: combined::cases,
        rows: |results| results.all_judged_in_full(combined::rows(results)),
        axis: None,
        budget: EACH_HOUR,
    },
];

/// A value, and its name in a row's point.
type Named<T> = (&'static str, T);

/// Transports by their names in points.
const TCP: Named<Transport> = ("tcp", Transport::Tcp);
const COAP: Named<Transport> = ("coap", Transport::Coap(Algorithm::Fixed));
const COCOA: Named<Transport> = ("cocoa", Transport::Coap(Algorithm::CocoaContiki));
const COCOA_DRAFT: Named<Transport> = ("cocoa-draft", Transport::Coap(Algorithm::Cocoa));
const UNRELIABLE: Named<Transport> = ("coap-unrel", Transport::Unreliable);

/// The point of a transport whose motes sleep so.
fn of(transport: &'static str, policy: &'static str) -> Point {
    Point::default()
        .with("transport", transport)
        .with("policy", policy)
}

/// The point at a loss in hundredths.
fn lossy(transport: &'static str, policy: &'static str, loss: u64) -> Point {
    of(transport, policy).with("loss", Value::Hundredths(loss))
}

/// The anemometers at a point.
fn case(point: Point, traffic: Anemometers) -> Case {
    Case::new(point, Setup::hops(4)).traffic(traffic)
}

const fn figure(name: &'static str, unit: &'static str, of: fn(&Run) -> f64) -> Metric {
    Metric { name, unit, of }
}

const RADIO: Metric = figure("radio_duty_cycle", "%", |run| {
    run.figure("radio_duty_cycle")
});
const CPU: Metric = figure("cpu_duty_cycle", "%", |run| run.figure("cpu_duty_cycle"));
const RELIABILITY: Metric = figure("reliability", "%", |run| run.figure("reliability"));
const OTHERS: Metric = figure("other_retransmissions", "%", |run| {
    run.figure("other_retransmissions")
});
const IDLE: Metric = figure("idle_duty", "%", |run| run.figure("idle_duty"));

/// At rest it asks as rarely as TCPlp's motes do (§9.2): it only sends.
const HINTED: Named<Policy> = ("hinted", Policy::Hinted(REST));
