//! TCP over copy-free forwarding: `combined-multihop`.
//!
//! `TelosB`'s radio with link ACKs on the chain of the calibrated air, no injected loss. Copy
//! forwarding is the baseline; each way of forwarding has its best settings from one search
//! ([`crate::net::pacing`]). The estimate adds up the frame times of the hops that exclude each
//! other: with backoff and channel assessment if frames are copied, without them if each frame
//! fires the next. It adds the ACKs that the receiver sends. The times may overlap, so the estimate
//! is no bound.
//!
//! The host acknowledges each sixth segment, which no host does unless it is told to: the last
//! goodputs are those with the ACKs of Linux.
//!
//! Latency is that of requests over TCP on an idle path: of one frame, and of several.

use motet::link::Forwarding;
use motet::mac::Channels;
use motet::tcp::Config;
use motet::time::Duration;

use super::ask::Ask;
use super::metric::{LATENCY, LOSS, RETRIES, RTT};
use super::row::{Point, Row};
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::apps::messages::Shape;
use crate::net::pacing::{self, Pacing};

/// TCP over each way of forwarding.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-multihop",
    title: "TCP over copy and copy-free forwarding, one channel and several",
    cases,
    rows,
    axis: Some("hops"),
    budget: [
        Budget {
            runs: 8,
            seconds: 30,
        },
        Budget {
            runs: 20,
            seconds: 120,
        },
    ],
}];

const HOPS: [u64; 5] = [1, 2, 3, 4, 6];
const CHANNELS: [&str; 2] = ["single", "multi"];
const FORWARDING: [&str; 2] = ["copy", "cit"];
const COMPRESSION: [&str; 2] = ["none", "tcphc"];

/// The requests at light load, and their bytes: one of a frame, and one of four fragments.
const REQUESTS: [Request; 2] = [("request of 40 B", 40), ("request of 300 B", 300)];

/// Once a second; one frame answers.
const fn request(message_len: usize) -> Shape {
    Shape {
        message_len,
        answer_len: 20,
        interval: Duration::from_secs(1),
    }
}

/// The largest ratio of the latency to that of copy forwarding that counts as equal: random
/// backoffs leave such a difference between means.
const NOT_WORSE: f64 = 1.02;

fn point(
    hops: u64,
    channels: &'static str,
    forwarding: &'static str,
    compression: &'static str,
) -> Point {
    Point::default()
        .with("hops", hops)
        .with("channels", channels)
        .with("forwarding", forwarding)
        .with("compression", compression)
}

fn points() -> impl Iterator<Item = (u64, &'static str, &'static str, &'static str)> {
    COMPRESSION.into_iter().flat_map(|compression| {
        CHANNELS.into_iter().flat_map(move |channels| {
            FORWARDING.into_iter().flat_map(move |forwarding| {
                HOPS.map(|hops| (hops, channels, forwarding, compression))
            })
        })
    })
}

fn cases() -> Vec<Case> {
    let case = |(hops, channels, forwarding, compression)| {
        Case::new(
            point(hops, channels, forwarding, compression),
            setup(hops, channels, forwarding, compression),
        )
    };
    let asked = asking().map(|((flow, len), hops, channels, forwarding)| {
        Case::new(
            asking_point(flow, hops, channels, forwarding),
            setup(hops, channels, forwarding, "tcphc"),
        )
        .traffic(Ask(request(len)))
    });
    let with_linux = linux_points().map(|(hops, channels, forwarding)| {
        let mut setup = setup(hops, channels, forwarding, "tcphc");
        setup.receiver = linux_receiver;
        Case::new(linux_point(hops, channels, forwarding), setup)
    });
    points().map(case).chain(asked).chain(with_linux).collect()
}

/// The settings with compressed headers, of which the host's ACKs are Linux's.
fn linux_points() -> impl Iterator<Item = (u64, &'static str, &'static str)> {
    points()
        .filter(|(.., compression)| *compression == "tcphc")
        .map(|(hops, channels, forwarding, _)| (hops, channels, forwarding))
}

fn linux_point(hops: u64, channels: &'static str, forwarding: &'static str) -> Point {
    point(hops, channels, forwarding, "tcphc").with("design", "Linux's ACKs")
}

/// The host that people have: no setting of a mote reaches it.
fn linux_receiver(config: &mut Config) {
    config.linux_acks = true;
}

/// A request: its name and its bytes.
type Request = (&'static str, usize);

/// Where which requests are made.
fn asking() -> impl Iterator<Item = (Request, u64, &'static str, &'static str)> {
    REQUESTS.into_iter().flat_map(|request| {
        ASKED.into_iter().flat_map(move |(hops, channels, _)| {
            FORWARDING.map(|forwarding| (request, hops, channels, forwarding))
        })
    })
}

fn asking_point(
    flow: &'static str,
    hops: u64,
    channels: &'static str,
    forwarding: &'static str,
) -> Point {
    point(hops, channels, forwarding, "tcphc").with("flow", flow)
}

fn setup(hops: u64, channels: &str, forwarding: &str, compression: &str) -> Setup {
    let way = match forwarding {
        "cit" => Forwarding::Immediate,
        _ => Forwarding::Copy,
    };
    let plan = match channels {
        "multi" => Channels::ALL,
        _ => Channels::SINGLE,
    };
    let mut setup = Setup::hops(hops as u16)
        .with("radio.profile", "telosb")
        .with("radio.channels", channels)
        .with("stack.compression", compression)
        .with("stack.forwarding", forwarding)
        .paced(&Pacing::best(hops as u16, way, plan));
    setup.receiver = pacing::receiver;
    setup.sender = pacing::sender;
    setup
}

/// The settings with a criterion of least goodput, kb/s.
const ASKED: [(u64, &str, f64); 2] = [(3, "single", 30.0), (6, "multi", 45.0)];

fn rows(results: &Results<'_>) -> Vec<Row> {
    let best = COMPRESSION[COMPRESSION.len() - 1];
    let mut rows = Vec::new();
    for (hops, channels, least) in ASKED {
        let point = point(hops, channels, "cit", best);
        let row = results.goodput(&point);
        let part = row.value / row.estimate.unwrap_or(f64::NAN);
        rows.push(row.at_least(least));
        let part = results.derived(point, ("goodput_over_estimate", "1"), part);
        rows.push(part.identity());
    }
    for ((flow, _), hops, channels, forwarding) in asking() {
        let [copy, cit] = FORWARDING.map(|way| asking_point(flow, hops, channels, way));
        if forwarding == "cit" {
            let part = results.mean(&cit, LATENCY) / results.mean(&copy, LATENCY);
            let part = results.derived(cit.clone(), ("latency_over_copy", "1"), part);
            rows.push(part.at_most(NOT_WORSE));
        }
        let point = if forwarding == "cit" { cit } else { copy };
        rows.push(results.row(&point, LATENCY));
    }
    for (hops, channels, forwarding, compression) in points() {
        let is_asked = |(h, c, _): &(u64, &str, f64)| (*h, *c) == (hops, channels);
        let is_judged = forwarding == "cit" && compression == best;
        if !(is_judged && ASKED.iter().any(is_asked)) {
            rows.push(results.goodput(&point(hops, channels, forwarding, compression)));
        }
    }
    for (hops, channels, forwarding) in linux_points() {
        rows.push(results.goodput(&linux_point(hops, channels, forwarding)));
    }
    for metric in [RTT, LOSS, RETRIES] {
        let loaded = points().map(|(hops, channels, forwarding, compression)| {
            results.row(&point(hops, channels, forwarding, compression), metric)
        });
        rows.extend(loaded);
    }
    rows
}
