//! The gain of each TCP feature on a lossy path: all features on, compared with one off at a time.
//!
//! Three hops of the calibrated air, `TCPlp`'s settings, the mote sends. Packets are lost at random
//! on the border router's wire, either way: after all link retries, so that TCP alone can repair
//! it. Every setting runs with the same seeds, and a feature's gain is the mean of the differences
//! seed by seed; its confidence interval is that of these differences. A feature that RACK or SACK
//! makes superfluous is also measured with RACK or SACK off.
//! Left out: Nagle's algorithm, which has no effect while the send buffer is full; queues that mark
//! (RED), hence ECN; reordering, which does not happen on this air.

use motet::tcp::Config;

use super::metric::{GOODPUT, TIMEOUTS};
use super::row::{Point, Row, Value};
use super::setup::{Setup, Tune, as_it_is};
use super::{Budget, Case, Experiment, Results};
use crate::stats::mean;

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: ID,
    title: "Goodput with every feature of TCP, and without each, by packet loss",
    cases,
    rows,
    axis: Some("loss"),
    budget: [
        Budget {
            runs: 5,
            seconds: 20,
        },
        Budget {
            runs: 10,
            seconds: 120,
        },
    ],
}];

const ID: &str = "combined-features";

/// Loss of packets each way, %.
const LOSS_PERCENT: [u64; 7] = [0, 1, 3, 6, 10, 15, 20];

const WINDOWS: [u64; 2] = [4, 8];

/// The feature that is left out, and how, at the sender and at the receiver.
const WITHOUT: [(&str, Tune, Tune); 16] = [
    (NOTHING, as_it_is, as_it_is),
    (NO_SACK, no_sack, no_sack),
    (NO_RACK, no_rack, as_it_is),
    (
        "no tail-loss-probe",
        |config| config.tail_loss_probe = false,
        as_it_is,
    ),
    ("no prr", |config| config.prr = false, as_it_is),
    (
        "no limited-transmit",
        |config| config.limited_transmit = false,
        as_it_is,
    ),
    (
        "no dsack",
        |config| config.dsack = false,
        |config| config.dsack = false,
    ),
    ("no undo", |config| config.undo = false, as_it_is),
    (
        "no ecn",
        |config| config.ecn = false,
        |config| config.ecn = false,
    ),
    (
        "no timestamps",
        |config| config.timestamps = false,
        |config| config.timestamps = false,
    ),
    ("no delayed-ack", as_it_is, |config| config.ack_every = 1),
    (
        "no rack, no prr",
        |config| {
            no_rack(config);
            config.prr = false;
        },
        as_it_is,
    ),
    (
        "no rack, no limited-transmit",
        |config| {
            no_rack(config);
            config.limited_transmit = false;
        },
        as_it_is,
    ),
    (
        "no sack, no prr",
        |config| {
            no_sack(config);
            config.prr = false;
        },
        no_sack,
    ),
    (
        "no sack, no limited-transmit",
        |config| {
            no_sack(config);
            config.limited_transmit = false;
        },
        no_sack,
    ),
    (
        "no congestion-control",
        |config| config.congestion_control = false,
        as_it_is,
    ),
];

/// The name of the setting in which nothing is switched off.
const NOTHING: &str = "everything";

/// These two hide what other features are worth.
const NO_SACK: &str = "no sack";
const NO_RACK: &str = "no rack";

/// The setting over which a feature's gain is counted: the same, with the feature.
fn with_it(without: &str) -> &'static str {
    match without.split_once(", ") {
        Some((NO_SACK, _)) => NO_SACK,
        Some(_) => NO_RACK,
        None => NOTHING,
    }
}

/// Without RACK, losses are found by counting SACKed segments (RFC 6675).
fn no_rack(config: &mut Config) {
    config.rack = false;
}

/// Without SACK there is no RACK either: three duplicate ACKs then indicate a loss.
fn no_sack(config: &mut Config) {
    config.sack = false;
}

fn point(window: u64, loss_percent: u64, design: &'static str) -> Point {
    Point::default()
        .with("window_segments", window)
        .with("design", design)
        .with("loss", Value::Hundredths(loss_percent))
}

fn settings() -> impl Iterator<Item = (u64, u64)> {
    let of_window = |window| LOSS_PERCENT.map(|loss| (window, loss));
    WINDOWS.into_iter().flat_map(of_window)
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (window, loss_percent) in settings() {
        for (without, sender, receiver) in WITHOUT {
            let mut setup = Setup::hops(3)
                .window_segments(window as usize)
                .with("wire.loss", loss_percent as f64 / 100.0);
            setup.sender = sender;
            setup.receiver = receiver;
            cases.push(Case::new(point(window, loss_percent, without), setup));
        }
    }
    cases
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = settings()
        .map(|(window, loss)| results.goodput(&point(window, loss, NOTHING)))
        .collect();
    for (without, ..) in &WITHOUT[1..] {
        rows.extend(settings().map(|(window, loss)| gain(results, window, loss, without)));
    }
    for (without, ..) in WITHOUT {
        rows.extend(
            settings().map(|(window, loss)| results.row(&point(window, loss, without), TIMEOUTS)),
        );
    }
    rows
}

/// Goodput with a feature less goodput without it, seed by seed.
fn gain(results: &Results<'_>, window: u64, loss: u64, without: &'static str) -> Row {
    let with = results.runs(&point(window, loss, with_it(without)));
    let point = point(window, loss, without);
    let gains: Vec<f64> = with
        .zip(results.runs(&point))
        .map(|(with, without)| (GOODPUT.of)(with) - (GOODPUT.of)(without))
        .collect();
    results.derived(point, ("goodput_gain", GOODPUT.unit), mean(&gains))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_leaves_out_what_it_says() {
        for (without, sender, receiver) in WITHOUT {
            let changed = [sender, receiver].map(|tune| {
                let mut config = Config::DEFAULT;
                tune(&mut config);
                config != Config::DEFAULT
            });
            assert_eq!(changed != [false; 2], without != NOTHING, "{without}");
            assert!(WITHOUT.iter().any(|(name, ..)| *name == with_it(without)));
        }
        assert_eq!(
            cases().len(),
            WINDOWS.len() * LOSS_PERCENT.len() * WITHOUT.len()
        );
    }
}
