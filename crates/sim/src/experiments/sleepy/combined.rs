//! TCP on motes that poll when they expect an answer, compared with CoAP as in the `TCPlp` study
//! (§9.2), both over Motet's MAC with its measured pace.

use motet::mac::Policy;

use super::anemometers::{Anemometers, Transport};
use super::downward::Image;
use super::polls::{Idle, Polls};
use super::{
    COAP, COCOA, HINTED, IDLE, Named, RADIO, RELIABILITY, TCP, UNRELIABLE, case, figure, lossy, of,
};
use crate::experiments::metric::Metric;
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::Setup;
use crate::experiments::{Case, Results};
use crate::stats::mean;

/// Transports, and how their motes sleep.
const VARIANTS: [(Named<Transport>, Named<Policy>); 4] = [
    (TCP, HINTED),
    (COAP, PAPER),
    (COCOA, PAPER),
    (UNRELIABLE, PAPER),
];

const PAPER: Named<Policy> = ("paper", Policy::Paper);

/// The policies by which motes sleep while their connection is idle.
const IDLES: [Named<Policy>; 2] = [HINTED, ("adaptive", Policy::Adaptive)];

fn hourly(name: &'static str, policy: &'static str, hour: u64) -> Point {
    lossy(name, policy, 0).with("hour", hour)
}

fn awake(policy: &'static str) -> Point {
    of("udp", policy)
}

/// An image of firmware for a mote that sleeps, three hops away.
fn image(loss: u64) -> Point {
    lossy(TCP.0, HINTED.0, loss).with("flow", "image")
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ((name, transport), (word, policy)) in VARIANTS {
        let traffic = Anemometers {
            transport,
            policy,
            frames: 3,
            paced: true,
            ..Anemometers::NIGHT
        };
        for loss in LOSSES {
            let traffic = Anemometers { loss, ..traffic };
            cases.push(case(lossy(name, word, loss), traffic));
        }
        for hour in (0..24).filter(|_| [TCP.0, COAP.0].contains(&name)) {
            let hour = Anemometers {
                hour: Some(hour),
                ..traffic
            };
            cases.push(case(hourly(name, word, hour.hour.unwrap_or(0)), hour));
        }
    }
    for (word, policy) in IDLES {
        let idle = Case::new(of(TCP.0, word), Setup::hops(1));
        cases.push(idle.traffic(Idle { policy }));
    }
    for loss in IMAGE_LOSSES {
        let setup = Setup::hops(3).asleep(HINTED.1);
        let setup = setup.with("wire.loss", loss as f64 / 100.0);
        let bytes = IMAGE_LEN;
        cases.push(Case::new(image(loss), setup).traffic(Image { bytes }));
    }
    for (word, drained) in [("drained", true), ("one-frame", false)] {
        let polls = Case::new(awake(word), Setup::hops(1));
        cases.push(polls.traffic(Polls { drained }));
    }
    cases
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let hours = |name, policy, metric: Metric| -> Vec<f64> {
        let all = (0..24).map(|hour| results.mean(&hourly(name, policy, hour), metric));
        all.collect()
    };
    let of_day = |name, policy, metric: Metric| {
        let value = mean(&hours(name, policy, metric));
        let at = lossy(name, policy, 0).with("flow", "day");
        results.derived(at, (metric.name, metric.unit), value)
    };
    let (tcp, coap) = (TCP.0, COAP.0);
    let (hinted, paper) = (HINTED.0, PAPER.0);
    rows.push(of_day(tcp, hinted, RADIO).at_most(1.5).moonshot(1.0));
    rows.push(
        of_day(tcp, hinted, RELIABILITY)
            .at_least(99.3)
            .moonshot(99.9),
    );
    rows.push(of_day(coap, paper, RADIO));
    rows.push(of_day(coap, paper, RELIABILITY));
    for hour in 0..24 {
        let [own, other] = [(tcp, hinted), (coap, paper)]
            .map(|(name, policy)| results.mean(&hourly(name, policy, hour), RADIO));
        let at = hourly(tcp, hinted, hour);
        rows.push(results.derived(at.clone(), HOURLY, own));
        rows.push(
            results
                .derived(at, ("radio_over_coap", "1"), own / other)
                .at_most(1.0),
        );
        let at = hourly(coap, paper, hour);
        rows.push(results.derived(at, HOURLY, other));
    }
    for loss in LOSSES {
        for ((name, _), (policy, _)) in VARIANTS {
            rows.push(results.row(&lossy(name, policy, loss), RADIO));
            rows.push(results.row(&lossy(name, policy, loss), RELIABILITY));
        }
        let [own, other] = [(tcp, hinted), (coap, paper)]
            .map(|(name, policy)| results.mean(&lossy(name, policy, loss), RELIABILITY));
        let at = lossy(tcp, hinted, loss);
        let row = results.derived(at, ("reliability_over_coap", "1"), own / other);
        rows.push(if loss <= 21 { row.at_least(1.0) } else { row });
    }
    rows.push(results.row(&of(tcp, "hinted"), IDLE).at_most(0.01));
    rows.push(results.row(&of(tcp, "adaptive"), IDLE).between(0.08, 0.15));
    rows.push(results.row(&awake("drained"), AWAKE).at_most(57.0));
    rows.push(results.row(&awake("one-frame"), AWAKE).paper(297.0));
    rows.push(
        results
            .row(&awake("drained"), CURRENT)
            .paper(18.9)
            .near_paper(0.25),
    );
    for (loss, limit_s) in IMAGE_LOSSES.into_iter().zip([180.0, 360.0]) {
        rows.push(results.row(&image(loss), IMAGE).at_most(limit_s));
    }
    let memory = results.row(&image(0), PARENT_MEMORY);
    rows.push(memory.at_most(8_192.0));
    rows
}

const IMAGE: Metric = figure("image", "s", |run| run.figure("image"));
const PARENT_MEMORY: Metric = figure("parent_memory", "B", |run| run.figure("parent_memory"));

const AWAKE: Metric = figure("awake", "ms", |run| run.figure("awake"));
const CURRENT: Metric = figure("current", "µA", |run| run.figure("current"));

const HOURLY: (&str, &str) = ("radio_duty_cycle_hour", "%");

/// Packets lost at the border router, in hundredths.
const LOSSES: [u64; 9] = [0, 3, 6, 9, 12, 15, 18, 21, 30];

/// Packets lost while the image is sent, in hundredths, and the image's length in bytes.
const IMAGE_LOSSES: [u64; 2] = [0, 10];
const IMAGE_LEN: u64 = 250_000;
