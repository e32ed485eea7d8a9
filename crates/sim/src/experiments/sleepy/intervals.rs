//! Bulk transfers of a mote that sleeps, one hop (`TCPlp` appendix C).

use motet::mac::Policy;
use motet::time::Duration;

use super::downward::RoundTrips;
use super::polls::Idle;
use super::{IDLE, figure, of};
use crate::experiments::flows::Flows;
use crate::experiments::metric::{GOODPUT, Metric, RTT};
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::Setup;
use crate::experiments::{Case, Results};

const DIRECTIONS: [(&str, Flows); 2] = [("up", Flows::Up), ("down", Flows::Down)];

fn point(direction: &'static str, interval_ms: u64) -> Point {
    Point::default()
        .with("direction", direction)
        .with("interval_ms", interval_ms)
}

pub(super) fn fixed_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (direction, flows) in DIRECTIONS {
        for interval_ms in INTERVALS_MS {
            let policy = Policy::Fixed(Duration::from_millis(interval_ms));
            let setup = asleep(4, Some(policy));
            cases.push(Case::new(point(direction, interval_ms), setup).traffic(flows));
        }
    }
    let interval = Duration::from_millis(TIMED_MS);
    let setup = asleep(4, Some(Policy::Fixed(interval)));
    cases.push(Case::new(timed(), setup).traffic(RoundTrips { interval }));
    cases
}

/// The point of round trips that are timed one by one.
fn timed() -> Point {
    point("down", TIMED_MS).with("flow", "timed")
}

pub(super) fn fixed_rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let goodput = |direction, interval_ms| results.mean(&point(direction, interval_ms), GOODPUT);
    let always_on = goodput("up", INTERVALS_MS[0]);
    for interval_ms in INTERVALS_MS {
        let (up, down) = (point("up", interval_ms), point("down", interval_ms));
        if interval_ms >= 300 {
            let part = results.mean(&up, RTT) / interval_ms as f64;
            let row = results.derived(up.clone(), ("rtt_over_interval", "1"), part);
            rows.push(row.between(0.9, 1.2));
            let window_bits = 4.0 * results.segment(&up).payload_len as f64 * 8.0;
            let model = always_on.min(window_bits / interval_ms as f64);
            let part = goodput("up", interval_ms) / model;
            let row = results.derived(up.clone(), ("goodput_over_model", "1"), part);
            // That the window is full at all times is a claim of its own.
            rows.push(row.between(0.8, 1.2));
        }
        let share = goodput("down", interval_ms) / goodput("up", interval_ms);
        let row = results.derived(down.clone(), ("goodput_over_up", "1"), share);
        rows.push(row.at_most(1.0));
        for at in [up, down] {
            rows.push(results.goodput(&at));
            rows.push(results.row(&at, RTT));
        }
    }
    // TCPlp Fig 13.
    rows.push(results.row(&timed(), AT_MULTIPLES).at_least(70.0));
    rows
}

const AT_MULTIPLES: Metric = figure("rtt_at_multiples", "%", |run| {
    run.figure("rtt_at_multiples")
});

fn adaptive(direction: &'static str, policy: &'static str) -> Point {
    Point::default()
        .with("direction", direction)
        .with("policy", policy)
}

pub(super) fn adaptive_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (direction, flows) in DIRECTIONS {
        for (name, policy) in [(ADAPTIVE, Some(Policy::Adaptive)), (ALWAYS_ON, None)] {
            let case = Case::new(adaptive(direction, name), asleep(6, policy));
            cases.push(case.traffic(flows));
        }
    }
    let idle = Case::new(of("tcp", ADAPTIVE), Setup::hops(1));
    let policy = Policy::Adaptive;
    cases.push(idle.traffic(Idle { policy }));
    cases
}

pub(super) fn adaptive_rows(results: &Results<'_>) -> Vec<Row> {
    let (up, down) = (adaptive("up", ADAPTIVE), adaptive("down", ADAPTIVE));
    let always_on = adaptive("up", ALWAYS_ON);
    let goodput = |at: &Point| results.mean(at, GOODPUT);
    let row = |at: &Point, paper: f64| results.goodput(at).paper(paper);
    let share = |name, part: f64, of: &Point| results.derived(of.clone(), (name, "1"), part);
    vec![
        row(&up, 68.6).near_paper(0.12).moonshot(68.6),
        row(&down, 55.6).near_paper(0.15).moonshot(62.0),
        results.row(&up, RTT).below(200.0),
        share(
            "rtt_over_up",
            results.mean(&down, RTT) / results.mean(&up, RTT),
            &down,
        )
        .at_least(1.0),
        share("goodput_over_up", goodput(&down) / goodput(&up), &down).below(1.0),
        share(
            "goodput_over_always_on",
            goodput(&up) / goodput(&always_on),
            &up,
        )
        .at_least(1.0),
        results.row(&of("tcp", ADAPTIVE), IDLE).paper(0.1),
        results.goodput(&always_on),
        results.row(&always_on, RTT),
        results.row(&down, RTT),
        results.goodput(&adaptive("down", ALWAYS_ON)),
    ]
}

/// One hop, buffers of so many segments; the mote sleeps so. "In the same setup used in Section 6",
/// where link retries had no delay yet.
fn asleep(segments: usize, policy: Option<Policy>) -> Setup {
    let setup = Setup::hops(1).window_segments(segments).retry_delay_ms(0);
    match policy {
        Some(policy) => setup.asleep(policy),
        None => setup,
    }
}

const ADAPTIVE: &str = "adaptive";
const ALWAYS_ON: &str = "always-on";

/// The interval of TCPlp Fig 13, ms.
const TIMED_MS: u64 = 2_000;

const INTERVALS_MS: [u64; 7] = [20, 50, 100, 300, 500, 1_000, 2_000];
