//! TCP over copy-free forwarding: `combined-multihop`.
//!
//! `TelosB`'s radio with link ACKs on the chain of the calibrated air, no injected loss. Copy
//! forwarding is the baseline; conditional immediate transmission comes with the hold rule, by
//! which senders leave their relays the time that these need. Both acknowledge every second
//! segment and retry after up to 10 ms. The bound counts a frame on the air at each hop that
//! may not be used at the same time: with backoff and assessment where frames are copied,
//! without where each fires the next.

use motet::lowpan::tcphc;
use motet::mac::Channels;
use motet::node::Forwarding;
use motet::tcp::Config;
use motet::time::Duration;

use super::metric::{LOSS, RETRIES, RTT};
use super::row::{Point, Row};
use super::run::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::profile::Profile;

/// TCP over each way of forwarding.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-multihop",
    title: "TCP over copy and copy-free forwarding, one channel and several",
    cases,
    rows,
    axis: Some("hops"),
    budget: [
        Budget {
            runs: 2,
            seconds: 30,
        },
        Budget {
            runs: 10,
            seconds: 120,
        },
    ],
}];

const HOPS: [u64; 5] = [1, 2, 3, 4, 6];
const CHANNELS: [&str; 2] = ["single", "multi"];
const FORWARDING: [&str; 2] = ["copy", "cit"];
const COMPRESSION: [&str; 2] = ["none", "tcphc"];

/// Time for one full frame and its ACK to go one hop on without copies: 4.99 ms.
const HOLD_STEP: Duration = Duration::from_micros(5_000);

/// d, ms: a neighbour that is away, or a hidden one's frame, is over sooner.
const RETRY_DELAY_MS: u64 = 10;

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
    let case = |(hops, channels, forwarding, compression)| Case {
        point: point(hops, channels, forwarding, compression),
        setup: setup(hops, channels, forwarding, compression),
    };
    points().map(case).collect()
}

fn setup(hops: u64, channels: &str, forwarding: &str, compression: &str) -> Setup {
    // Four segments fill three hops; frames that wait in relays ask for more beyond.
    let segments = if hops > 3 { 7 } else { 4 };
    let mut setup = Setup::hops(hops as u16)
        .window_segments(segments)
        .retry_delay_ms(RETRY_DELAY_MS);
    setup.chain.profile = Profile::TELOSB;
    setup.receiver = patient;
    if channels == "multi" {
        setup.chain.channels = Channels::ALL;
    }
    if compression == "tcphc" {
        setup.chain.compression = Some(tcphc::Mode::default());
    }
    if forwarding == "cit" {
        setup.chain.forwarding = Forwarding::Immediate;
        setup.chain.hold_step = HOLD_STEP;
    }
    setup
}

/// Every second segment, and the longest wait that RFC 9293 §3.8.6.3 allows.
fn patient(config: &mut Config) {
    config.ack_every = 2;
    config.ack_delay_ms = 500;
}

/// Where a least goodput is asked for, kb/s.
const ASKED: [(u64, &str, f64); 2] = [(3, "single", 30.0), (6, "multi", 45.0)];

fn rows(results: &Results) -> Vec<Row> {
    let best = COMPRESSION[COMPRESSION.len() - 1];
    let mut rows = Vec::new();
    for (hops, channels, least) in ASKED {
        let point = point(hops, channels, "cit", best);
        let row = results.goodput(&point);
        let part = row.value / results.bound(&point);
        rows.push(row.at_least(least));
        rows.push(
            results
                .derived(point, ("goodput_over_bound", "1"), part)
                .at_least(0.9)
                .about("aspiration"),
        );
    }
    for (hops, channels, forwarding, compression) in points() {
        let is_asked = |(h, c, _): &(u64, &str, f64)| (*h, *c) == (hops, channels);
        let is_judged = forwarding == "cit" && compression == best;
        if !(is_judged && ASKED.iter().any(is_asked)) {
            rows.push(results.goodput(&point(hops, channels, forwarding, compression)));
        }
    }
    for metric in [RTT, LOSS, RETRIES] {
        rows.extend(results.cases().map(|case| results.row(&case.point, metric)));
    }
    rows
}
