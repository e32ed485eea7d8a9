//! The CIT paper's measurements: copies as the bottleneck, and forwarding without them.
//!
//! A batch of a thousand full packets over a chain whose nodes all hear each other, on `TelosB`'s
//! radio, as fast as every packet arrives ([`crate::experiments::bulk`]). The ablations leave out
//! one cost each: the copies, the channel assessment, the driver's and the system's time. Figures
//! of one hop (Fig 3) were used to fit copy and driver, figures of forwarding (Fig 4) to fit the
//! time from a frame's last byte to the stack's call; twice that time contradicts them. So the rows
//! of both figures are fits; `cit-throughput` and `cit-latency` are predictions.
//!
//! The cost of copying is judged from two hops on, as in the paper. There copies at both ends
//! overlap with the frames of the other hop, so that two and three hops lose less than half.

use motet::time::Duration;

use super::metric::{LATENCY, THROUGHPUT};
use super::row::{Point, Row};
use super::setup::Setup;
use super::{Budget, Case, Experiment, Results};
use crate::air::profile::Profile;
use crate::experiments::bulk::{Bulk, Measure, OVERHEAD};

/// In the order of the paper's figures.
pub const EXPERIMENTS: [Experiment; 4] = [
    Experiment {
        id: "cit-onehop",
        title: "One hop, with and without copies (CIT Fig 3)",
        cases: onehop_cases,
        rows: onehop_rows,
        axis: None,
        budget: BUDGET,
    },
    Experiment {
        id: "cit-copying",
        title: "Forwarding with and without copies (CIT Fig 4)",
        cases: copying_cases,
        rows: copying_rows,
        axis: Some("hops"),
        budget: BUDGET,
    },
    Experiment {
        id: "cit-throughput",
        title: "Conditional immediate transmission (CIT Fig 5)",
        cases: throughput_cases,
        rows: throughput_rows,
        axis: Some("hops"),
        budget: BUDGET,
    },
    Experiment {
        id: "cit-latency",
        title: "One packet over six hops (CIT Fig 6)",
        cases: latency_cases,
        rows: latency_rows,
        axis: None,
        budget: BUDGET,
    },
];

/// A thousand packets take some ten seconds, whatever is asked for.
const BUDGET: [Budget; 2] = [
    Budget {
        runs: 3,
        seconds: 10,
    },
    Budget {
        // One run of ten may be a fifth slower than others; among five it spoils the interval.
        runs: 12,
        seconds: 10,
    },
];

const SINGLE: &str = "single";
const MULTI: &str = "multi";

/// The ablations: nothing left out, or one cost.
const NOTHING: &str = "whole";
const COPIES: &str = "no copies";
const CCA: &str = "no CCA";
const SYSTEM: &str = "no system time";

fn point(
    hops: u64,
    channels: &'static str,
    forwarding: &'static str,
    without: &'static str,
) -> Point {
    Point::default()
        .with("hops", hops)
        .with("channels", channels)
        .with("forwarding", forwarding)
        .with("design", without)
}

fn copy(hops: u64, channels: &'static str, without: &'static str) -> Case {
    case(hops, channels, "copy", without, Bulk::FULL)
}

fn cit(hops: u64, channels: &'static str) -> Case {
    case(hops, channels, "cit", NOTHING, Bulk::FULL)
}

fn case(
    hops: u64,
    channels: &'static str,
    forwarding: &'static str,
    without: &'static str,
    bulk: Bulk,
) -> Case {
    let mut setup = Setup::hops(hops as u16);
    let mut profile = Profile::TELOSB;
    let mut bulk = bulk;
    match without {
        COPIES => (profile.transmit_copy_ns, profile.receive_copy_ns) = (0, 0),
        CCA => bulk.assessed = false,
        SYSTEM => {
            profile.prepare = Duration::ZERO;
            profile.jitter = Duration::ZERO;
            profile.handle = Duration::ZERO;
        }
        _ => {}
    }
    setup = setup.with("radio.profile", "telosb");
    setup = setup
        .with("radio.channels", channels)
        .with("stack.forwarding", forwarding);
    setup.beyond.profile = Some(profile);
    Case::new(point(hops, channels, forwarding, without), setup).traffic(bulk)
}

fn throughput(results: &Results<'_>, point: &Point) -> Row {
    results.of_radio(point, THROUGHPUT)
}

/// So much of a bound, in hundredths, upwards.
fn part(share: f64, bound: f64) -> f64 {
    (share * bound * 100.0).ceil() / 100.0
}

/// One point's throughput as a part of another's, as a row of the first.
fn ratio(results: &Results<'_>, of: &Point, to: &Point, name: &'static str) -> Row {
    let value = results.mean(of, THROUGHPUT) / results.mean(to, THROUGHPUT);
    results.derived(of.clone(), (name, "1"), value)
}

fn onehop_cases() -> Vec<Case> {
    [NOTHING, COPIES, CCA, SYSTEM]
        .map(|without| copy(1, SINGLE, without))
        .into()
}

fn onehop_rows(results: &Results<'_>) -> Vec<Row> {
    let at = |without| point(1, SINGLE, "copy", without);
    let mut rows = vec![
        throughput(results, &at(NOTHING))
            .paper(148.0)
            .near_paper(0.05)
            .fit(),
        throughput(results, &at(COPIES))
            .paper(220.0)
            .near_paper(0.04)
            .fit(),
    ];
    for without in [CCA, SYSTEM] {
        rows.push(throughput(results, &at(without)));
        rows.push(ratio(results, &at(without), &at(NOTHING), "gain").between(0.9, 1.1));
    }
    rows
}

fn copying_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for channels in [SINGLE, MULTI] {
        for hops in 1..=6 {
            cases.push(copy(hops, channels, NOTHING));
            cases.push(copy(hops, channels, COPIES));
        }
        cases.push(copy(6, channels, CCA));
    }
    cases
}

fn copying_rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (channels, least, most) in [(SINGLE, 0.45, 0.6), (MULTI, 0.5, 0.7)] {
        for hops in 1..=6 {
            let with = point(hops, channels, "copy", NOTHING);
            let without = point(hops, channels, "copy", COPIES);
            rows.push(throughput(results, &with));
            let row = throughput(results, &without);
            if hops == 1 {
                rows.push(row);
                continue;
            }
            let bound = results.segment(&without).bound.unwrap_or(f64::NAN);
            let row = row.at_least(part(0.93, bound)).about("93 % of the bound");
            rows.push(row.fit());
            let left = ratio(results, &with, &without, "throughput_over_no_copies");
            rows.push(left.between(least, most).fit());
        }
        let six = point(6, channels, "copy", NOTHING);
        let no_cca = point(6, channels, "copy", CCA);
        rows.push(ratio(results, &no_cca, &six, "gain").between(0.9, 1.1));
    }
    rows
}

fn throughput_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for channels in [MULTI, SINGLE] {
        cases.extend((1..=6).map(|hops| cit(hops, channels)));
        cases.extend((2..=6).map(|hops| copy(hops, channels, NOTHING)));
    }
    cases
}

fn throughput_rows(results: &Results<'_>) -> Vec<Row> {
    let at = |hops, channels| point(hops, channels, "cit", NOTHING);
    let six = at(6, MULTI);
    let mut rows = vec![throughput(results, &six).paper(109.0).between(106.0, 112.0)];
    // The same packets with eight bytes less.
    let payload = (Bulk::FULL.psdu_len - OVERHEAD + 1) as f64 * 8.0 / Bulk::FULL.bits() as f64;
    let with_header = results.mean(&six, THROUGHPUT) * payload;
    rows.push(
        results
            .derived(
                six.clone(),
                ("throughput_after_header", "kb/s"),
                with_header,
            )
            .paper(104.0)
            .between(100.0, 105.0)
            .identity(),
    );
    let over_single = ratio(results, &six, &at(6, SINGLE), "throughput_over_single");
    rows.push(over_single.between(2.5, 3.1).identity());
    for (channels, least) in [(SINGLE, 1.8), (MULTI, 1.4)] {
        for hops in 1..=6 {
            let row = throughput(results, &at(hops, channels));
            let bound = results.segment(&at(hops, channels)).bound;
            let bound = bound.unwrap_or(f64::NAN);
            rows.push(match (hops, channels) {
                // The source's copy is serial.
                (1, _) => row,
                // Judged above, by the paper's figure.
                (6, MULTI) => continue,
                _ => row.at_least(part(0.95, bound)).about("95 % of the bound"),
            });
        }
        for hops in (2..=6).rev() {
            let copy = point(hops, channels, "copy", NOTHING);
            let gain = ratio(results, &at(hops, channels), &copy, "throughput_over_copy");
            // The one is judged above, the other belongs to the figure of a fit.
            rows.push(if hops == 6 {
                gain.at_least(least).identity()
            } else {
                gain.identity()
            });
        }
    }
    rows
}

/// Bytes of the paper's packets, and of our frames: small ones carry as much besides a header.
const PACKETS: [(&str, usize); 2] = [("127 B", 127), ("5 B", 5 + OVERHEAD)];

fn latency_point(packets: &'static str, forwarding: &'static str) -> Point {
    Point::default()
        .with("hops", 6)
        .with("design", packets)
        .with("forwarding", forwarding)
}

fn latency_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (packets, psdu_len) in PACKETS {
        for forwarding in ["copy", "cit"] {
            let bulk = Bulk {
                psdu_len,
                measure: Measure::Latency,
                ..Bulk::FULL
            };
            cases.push(Case {
                point: latency_point(packets, forwarding),
                ..case(6, SINGLE, forwarding, NOTHING, bulk)
            });
        }
    }
    cases
}

fn latency_rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((packets, _), paper, least, most) in
        [(PACKETS[0], 0.5, 0.38, 0.55), (PACKETS[1], 0.4, 0.25, 0.5)]
    {
        let [copy, cit] = ["copy", "cit"].map(|forwarding| latency_point(packets, forwarding));
        let saved = 1.0 - results.mean(&cit, LATENCY) / results.mean(&copy, LATENCY);
        rows.push(
            results
                .derived(cit.clone(), ("latency_saved", "1"), saved)
                .paper(paper)
                .between(least, most),
        );
        rows.push(results.row(&copy, LATENCY));
        rows.push(results.row(&cit, LATENCY));
    }
    rows
}
