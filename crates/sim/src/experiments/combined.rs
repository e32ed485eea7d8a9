//! Motet's own settings on the papers' radio, which no paper has.
//!
//! **Pacing.** The baseline is `TCPlp`'s: retries after up to 40 ms, a host that delays ACKs
//! by at most 40 ms, four segments (seven beyond three hops). Against it, one after the
//! other: the hold rule with retries after up to 20 ms; a receiver that acknowledges every
//! second segment and waits up to 500 ms for it, as RFC 9293 allows; segments of eight
//! frames. The values were chosen on three hops with one flow and with two; the air is the
//! calibrated one, untouched. And against times set by hand stands the pace that nodes find for
//! themselves (`pacing`).

use motet::tcp::Config;

use super::flows::Flows;
use super::metric::{GOODPUT, JAIN, LOSS, RTT};
use super::pacing;
use super::row::{Point, Row, Value};
use super::setup::{Setup, as_it_is};
use super::{Budget, Case, Experiment, Results};

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 2] = [PACING, pacing::search::EXPERIMENT];

const PACING: Experiment = Experiment {
    id: "combined-pacing",
    title: "Hold rule, ACK rule, segment size and a measured pace against settings by hand",
    cases: pacing_cases,
    rows: pacing_rows,
    axis: Some("hops"),
    budget: [
        Budget {
            runs: 12,
            seconds: 60,
        },
        Budget {
            runs: 40,
            seconds: 120,
        },
    ],
};

const DESIGNS: [&str; 4] = ["TCPlp", "hold", "hold, ACKs", "hold, ACKs, 8 frames"];

/// The design that keeps TCPlp's segments and buffers.
const PACED: &str = DESIGNS[2];

const HOPS: [u64; 4] = [3, 2, 4, 6];

/// Time for one frame to go one hop on, ms: 7 leave 1 % of goodput, 9 leave 3 %.
const HOLD_STEP_MS: u64 = 8;

/// d with the hold rule, ms: 10 give 1 % more to one flow alone, but double the losses of
/// two.
const RETRY_DELAY_MS: u64 = 20;

fn point(hops: u64, flows: &'static str, design: &'static str) -> Point {
    Point::default()
        .with("hops", hops)
        .with("flow", flows)
        .with("design", design)
}

fn setup(hops: u64, design: &str) -> Setup {
    let mut setup = Setup::hops(hops as u16);
    let rank = DESIGNS.iter().position(|known| *known == design);
    let rank = rank.unwrap_or_default();
    if rank == 0 {
        return setup.window_segments(if hops > 3 { 7 } else { 4 });
    }
    setup = setup.retry_delay_ms(RETRY_DELAY_MS);
    setup = setup.with("stack.hold_ms", HOLD_STEP_MS as i64);
    setup.receiver = if rank >= 2 { patient } else { as_it_is };
    if rank >= 3 {
        setup = setup.with("stack.mss_frames", 8);
    }
    setup
}

/// The longest wait that RFC 9293 §3.8.6.3 allows.
fn patient(config: &mut Config) {
    config.ack_every = 2;
    config.ack_delay_ms = 500;
}

fn pacing_cases() -> Vec<Case> {
    let one = HOPS
        .into_iter()
        .flat_map(|hops| DESIGNS.map(|design| (hops, "one", design, Flows::Up)));
    let two = DESIGNS.map(|design| (3, "two", design, Flows::TwoUp));
    let case = |(hops, flows, design, traffic)| {
        Case::new(point(hops, flows, design), setup(hops, design)).traffic(traffic)
    };
    one.chain(two).map(case).chain(pacing::cases()).collect()
}

fn pacing_rows(results: &Results<'_>) -> Vec<Row> {
    let mean = |hops, flows, design, metric| results.mean(&point(hops, flows, design), metric);
    let mut rows = vec![
        results.goodput(&point(3, "one", PACED)).at_least(24.0),
        results.row(&point(3, "two", PACED), JAIN).at_least(0.97),
        results
            .derived(
                point(3, "two", PACED),
                ("goodput_over_one_flow", "1"),
                mean(3, "two", PACED, GOODPUT) / mean(3, "one", PACED, GOODPUT),
            )
            .at_least(0.9),
    ];
    for design in &DESIGNS[2..] {
        let point = point(3, "one", design);
        let estimate = results.segment(&point).estimate.unwrap_or(f64::NAN);
        let part = mean(3, "one", design, GOODPUT) / estimate;
        let row = results.derived(point, ("goodput_over_estimate", "1"), part);
        rows.push(row.identity());
    }
    for hops in HOPS {
        let gain = mean(hops, "one", PACED, GOODPUT) / mean(hops, "one", DESIGNS[0], GOODPUT);
        let row = results.derived(point(hops, "one", PACED), ("goodput_over_tcplp", "1"), gain);
        rows.push(match hops {
            // Both are judged: the one above, the other in `tcplp-hops`.
            3 => row.identity(),
            _ => row.at_least(1.0),
        });
    }
    // Those of a measured pace have rows of their own.
    let of_designs = || results.cases().filter(|case| is_of_design(&case.point));
    for case in of_designs() {
        if case.point != point(3, "one", PACED) {
            rows.push(results.goodput(&case.point));
        }
    }
    rows.extend(of_designs().map(|case| results.row(&case.point, LOSS)));
    rows.extend(of_designs().map(|case| results.row(&case.point, RTT)));
    for design in DESIGNS.iter().filter(|design| **design != PACED) {
        rows.push(results.row(&point(3, "two", design), JAIN));
    }
    rows.extend(pacing::rows(results));
    rows
}

/// Whether the point is a setting of one of [`DESIGNS`].
fn is_of_design(point: &Point) -> bool {
    let is_design = |design| matches!(design, &Value::Name(name) if DESIGNS.contains(&name));
    point.get("design").is_some_and(is_design)
}
