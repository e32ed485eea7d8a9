//! Readings one by one, and in batches of 64 (`TCPlp` §9.3).

use super::anemometers::Anemometers;
use super::{COAP, COCOA, CPU, RADIO, RELIABILITY, TCP, case, of};
use crate::experiments::row::{Point, Row};
use crate::experiments::{Case, Results};

fn point(transport: &'static str, batch: usize) -> Point {
    of(transport, "paper").with("batch", batch as u64)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, transport) in [TCP, COAP, COCOA] {
        for batch in BATCHES {
            let traffic = Anemometers {
                transport,
                batch,
                ..Anemometers::NIGHT
            };
            cases.push(case(point(name, batch), traffic));
        }
    }
    cases
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let names = [TCP, COAP, COCOA].map(|(name, _)| name);
    for batch in BATCHES {
        for metric in [RADIO, CPU] {
            let all = names.map(|name| results.mean(&point(name, batch), metric));
            let over = |most: f64| all.into_iter().map(move |least| most / least);
            let parts = all.into_iter().flat_map(over).collect();
            let name = match metric.name {
                "radio_duty_cycle" => ("radio_max_over_min", "1"),
                _ => ("cpu_max_over_min", "1"),
            };
            let at = Point::default().with("batch", batch as u64);
            rows.push(results.greatest(at, name, parts).at_most(1.5));
        }
    }
    let saved = names.map(|name| {
        let duty = |batch| results.mean(&point(name, batch), RADIO);
        1.0 - duty(BATCHES[1]) / duty(BATCHES[0])
    });
    let name = ("radio_saved_least", "1");
    let row = results.least(Point::default(), name, saved.into());
    rows.push(row.at_least(0.3));
    for (name, saved) in names.into_iter().zip(saved) {
        let at = of(name, "paper");
        rows.push(results.derived(at, ("radio_saved", "1"), saved));
    }
    for case in results.cases() {
        rows.push(results.row(&case.point, RELIABILITY).at_least(99.9));
        rows.push(results.row(&case.point, RADIO));
        rows.push(results.row(&case.point, CPU));
    }
    rows
}

const BATCHES: [usize; 2] = [1, 64];
