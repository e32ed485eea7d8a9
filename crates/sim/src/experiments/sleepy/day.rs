//! A day, three frames a packet (`TCPlp` §9.5 and §9.6). Every third hour stands for three.

use super::anemometers::{Anemometers, Transport};
use super::{COAP, CPU, RADIO, RELIABILITY, TCP, UNRELIABLE, case, of};
use crate::experiments::metric::Metric;
use crate::experiments::row::{Point, Row};
use crate::experiments::{Case, Results};

/// Transport, its name, and readings in a batch; then from Table 8 the reliability and the duty
/// cycles of radio and processor, %.
const VARIANTS: [((&str, Transport), usize, [f64; 3]); 4] = [
    (TCP, 64, [99.3, 2.29, 0.973]),
    (COAP, 64, [99.5, 1.84, 0.834]),
    (UNRELIABLE, 1, [93.4, 1.13, 0.52]),
    (UNRELIABLE, 64, [95.3, 0.734, 0.30]),
];

fn point(name: &'static str, batch: usize) -> Point {
    of(name, "paper").with("batch", batch as u64)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ((name, transport), batch, _) in VARIANTS {
        for hour in HOURS {
            let traffic = Anemometers {
                transport,
                batch,
                frames: 3,
                hour: Some(hour),
                ..Anemometers::NIGHT
            };
            cases.push(case(point(name, batch).with("hour", hour), traffic));
        }
    }
    cases
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mean = |at: &Point, hours: &[u64], metric: Metric| -> f64 {
        let hours = hours.iter();
        let all = hours.map(|hour| results.mean(&at.clone().with("hour", *hour), metric));
        crate::stats::mean(&all.collect::<Vec<_>>())
    };
    let mut duties = Vec::new();
    for ((name, transport), batch, [reliability, radio, cpu]) in VARIANTS {
        let at = point(name, batch);
        let is_unreliable = transport == Transport::Unreliable;
        let (points, part) = if is_unreliable {
            (3.0, 0.15)
        } else {
            (1.0, 0.3)
        };
        let of_day = |metric: Metric| {
            let value = mean(&at, &HOURS, metric);
            results.derived(at.clone(), (metric.name, metric.unit), value)
        };
        let row = of_day(RELIABILITY).paper(reliability);
        rows.push(row.between(reliability - points, reliability + points));
        rows.push(of_day(RADIO).paper(radio).near_paper(part));
        rows.push(of_day(CPU).paper(cpu));
        duties.push(mean(&at, &HOURS, RADIO));
    }
    let ratios = [
        ("radio_tcp_over_coap", duties[0] / duties[1]),
        ("radio_coap_over_unrel", duties[1] / duties[2]),
        ("radio_single_over_batch", duties[2] / duties[3]),
        ("cost_of_reliability", duties[0] / duties[3]),
    ];
    for (name, value) in ratios {
        let row = results.derived(Point::default(), (name, "1"), value);
        rows.push(match name {
            "cost_of_reliability" => row.between(2.2, 3.5),
            _ => row.at_least(1.0),
        });
    }
    let share = |hours: &[u64]| {
        let [tcp, coap] = [TCP.0, COAP.0].map(|name| mean(&point(name, 64), hours, RADIO));
        tcp / coap - 1.0
    };
    let (quiet, busy) = (share(&QUIET), share(&BUSY));
    let apart = match quiet > 0.0 && busy < 0.0 {
        true => 0.0,
        false => quiet.abs().max(busy.abs()),
    };
    // A lead that changes hands, or a small one.
    let name = ("radio_apart", "1");
    rows.push(results.derived(Point::default(), name, apart).at_most(0.15));
    for case in results.cases() {
        rows.push(results.row(&case.point, RADIO));
        rows.push(results.row(&case.point, RELIABILITY));
    }
    rows
}

const HOURS: [u64; 8] = [1, 4, 7, 10, 13, 16, 19, 22];
const QUIET: [u64; 5] = [1, 4, 7, 19, 22];
const BUSY: [u64; 3] = [10, 13, 16];
