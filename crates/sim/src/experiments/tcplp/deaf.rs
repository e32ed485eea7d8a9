//! Radios that sleep in the backoff (section 4).

use crate::experiments::flows::Flows;
use crate::experiments::metric::{GOODPUT, Metric, RETRIES};
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::Setup;
use crate::experiments::{Case, Results};

fn deaf_point(direction: &'static str, design: &'static str) -> Point {
    Point::default()
        .with("hops", 1)
        .with("direction", direction)
        .with("design", design)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (direction, traffic) in [("up", Flows::Up), ("down", Flows::Down)] {
        for (design, deaf_backoff) in [("listening backoff", false), ("deaf backoff", true)] {
            let setup = Setup::hops(1)
                .retry_delay_ms(0)
                .with("stack.deaf_backoff", deaf_backoff);
            cases.push(Case::new(deaf_point(direction, design), setup).traffic(traffic));
        }
    }
    cases
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for direction in ["up", "down"] {
        let ratio = |metric: Metric, name| {
            let mean = |design| results.mean(&deaf_point(direction, design), metric);
            let value = mean("deaf backoff") / mean("listening backoff");
            let point = Point::default()
                .with("hops", 1)
                .with("direction", direction);
            results.derived(point, (name, "1"), value)
        };
        rows.push(ratio(GOODPUT, "goodput_deaf_over_listening").below(1.0));
        let retries = ratio(RETRIES, "link_retries_listening_over_deaf");
        // As a share below one: more retries when deaf.
        let value = 1.0 / retries.value;
        rows.push(
            results
                .derived(retries.point, (retries.metric, "1"), value)
                .below(1.0),
        );
    }
    for case in results.cases() {
        rows.push(results.goodput(&case.point));
        rows.push(results.row(&case.point, RETRIES));
    }
    rows
}
