//! The rows for the runs, and the paper's figures.

use super::*;
use crate::experiments::Results;
use crate::experiments::metric::{GOODPUT, JAIN, Metric, RTT};
use crate::experiments::row::Row;
use crate::experiments::run::Run;

const fn figure(name: &'static str, unit: &'static str, of: fn(&Run) -> f64) -> Metric {
    Metric { name, unit, of }
}

/// The median age at which the bytes of a message arrive.
const AGE: Metric = figure("arrival_time", "ms", |run| run.figure("age"));
const AGE_P90: Metric = figure("arrival_time_p90", "ms", |run| run.figure("age_p90"));
const INTERVAL_MS: Metric = figure("interval", "ms", |run| run.figure("interval"));
const ENERGY: Metric = figure("energy_per_reading", "µJ", |run| run.figure("energy"));

/// Goodput of transfers of `size` bytes, kb/s, by the mean of how long one takes.
fn of_transfer(results: &Results<'_>, point: &Point, size: u64) -> f64 {
    results.mean_of(point, |run| size as f64 * 8.0 / run.figure("age_mean"))
}

const TRANSFER: (&str, &str) = ("transfer_goodput", "kb/s");

/// Table I: seconds for each Mb of headers of three layers, ACKs, the radio's times and the link
/// itself.
const TABLE1: [f64; 6] = [0.064, 0.040, 0.028, 0.776, 0.375, 1.0];

pub(super) fn table4(results: &Results<'_>) -> Vec<Row> {
    let sum: f64 = TABLE1.iter().sum();
    let bound = results.derived(Point::default(), ("bound_of_table1", "kb/s"), 1000.0 / sum);
    let naive = offered(NAIVE, 600);
    let mut rows = vec![
        bound.paper(438.0).identity(),
        results.goodput(&naive).paper(151.0).near_paper(0.2),
        results.goodput(&of(TCPLP)).paper(180.2).near_paper(0.15),
    ];
    // Falls as the interval grows, and is higher with longer segments.
    for design in [NAIVE, TCPLP] {
        let at = |ms| of_transfer(results, &every(design, ms), 600);
        let [first, second, third] = INTERVALS.map(at);
        let steps = vec![second / first, third / second];
        let point = of(design).with("size", 600);
        let row = results.greatest(point, ("goodput_over_shorter_interval", "1"), steps);
        rows.push(row.below(1.0));
    }
    for ms in INTERVALS {
        let of = |design| of_transfer(results, &every(design, ms), 600);
        let part = of(TCPLP) / of(NAIVE);
        let row = results.derived(every(TCPLP, ms), ("goodput_over_naive", "1"), part);
        // Where the steps above are judged between two intervals, one of these follows from the
        // other.
        rows.push(match ms == INTERVALS[0] {
            true => row.at_least(1.0),
            false => row,
        });
    }
    for size in SIZES {
        let of = |design| of_transfer(results, &sized(design, size), size);
        rows.push(results.derived(sized(NAIVE, size), TRANSFER, of(NAIVE)));
        rows.push(results.derived(sized(TCPLP, size), TRANSFER, of(TCPLP)));
        if size > 189 {
            let part = of(TCPLP) / of(NAIVE);
            let name = ("goodput_over_naive", "1");
            let row = results.derived(sized(TCPLP, size), name, part);
            rows.push(row.at_least(1.0));
        }
    }
    // Four events: the last ACK comes three intervals and what it takes after the first. Here until
    // the last byte is there, from any moment of an interval on.
    rows.push(results.row(&sized(NAIVE, 1000), AGE).paper(152.0));
    rows
}

pub(super) fn goodput(results: &Results<'_>) -> Vec<Row> {
    let all = |design| results.mean(&of(design), GOODPUT);
    let mut rows = vec![
        results.goodput(&of(TCPLE)).paper(363.0),
        results.goodput(&of(TCPLP)).paper(180.2).repeat(),
        results.goodput(&of(CHIP)).paper(158.0),
        results.goodput(&of(NAIVE)),
        results.goodput(&of(BLEACH)).paper(25.0),
    ];
    for (other, paper, least) in [(TCPLP, 2.0, 1.8), (CHIP, 2.3, 2.0), (BLEACH, 14.5, 10.0)] {
        let part = all(TCPLE) / all(other);
        let row = results.derived(of(other), ("tcple_over_this", "1"), part);
        rows.push(row.paper(paper).at_least(least));
    }
    for design in DESIGNS {
        for kbps in OFFERED {
            let point = offered(design, kbps);
            let part = results.mean(&point, GOODPUT) / (kbps as f64).min(all(design));
            rows.push(results.goodput(&point));
            let row = results.derived(point, ("goodput_over_offered_or_most", "1"), part);
            // Linear, then flat.
            rows.push(row.between(0.9, 1.1));
        }
    }
    rows.push(results.row(&of(TCPLE), INTERVAL_MS));
    rows
}

pub(super) fn loss(results: &Results<'_>) -> Vec<Row> {
    let designs = [(TCPLE, 20.5), (TCPLP, 5.1), (CHIP, 4.5), (BLEACH, 0.4)];
    let at = |design, loss| of_transfer(results, &lossy(design, loss), 1000);
    let drops = |design| -> Vec<f64> {
        let lossy = LOSSES[1..].iter();
        let rest = lossy.map(|loss| at(design, *loss) / at(design, 0));
        rest.map(|part| 100.0 * (1.0 - part)).collect()
    };
    let mut rows = Vec::new();
    for (design, paper) in designs {
        let row = results.greatest(of(design), ("goodput_lost_at_most", "%"), drops(design));
        rows.push(match design == TCPLE {
            true => row.paper(paper).between(10.0, 35.0),
            false => row.paper(paper),
        });
    }
    let drop = |design| drops(design).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let more = [TCPLP, CHIP, BLEACH].map(|other| drop(TCPLE) - drop(other));
    let row = results.least(of(TCPLE), ("lost_more_than_others", "%"), more.into());
    rows.push(row.at_least(0.0));
    for loss in LOSSES {
        let parts = [TCPLP, CHIP, BLEACH].map(|other| at(TCPLE, loss) / at(other, loss));
        let name = ("goodput_over_others", "1");
        let row = results.least(lossy(TCPLE, loss), name, parts.into());
        rows.push(row.at_least(1.0));
        for (design, _) in designs {
            let point = lossy(design, loss);
            rows.push(results.derived(point.clone(), TRANSFER, at(design, loss)));
            rows.push(results.row(&point, INTERVAL_MS));
        }
    }
    rows
}

pub(super) fn fairness(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for ((name, _), (paper, least)) in TOGETHER.into_iter().zip([(0.99, 0.97), (0.98, 0.95)]) {
        let point = together(name);
        rows.push(results.row(&point, JAIN).paper(paper).at_least(least));
        rows.push(results.row(&point, GOODPUT));
        rows.push(results.row(&point, INTERVAL_MS));
    }
    rows
}

/// Table VII as a fit of two numbers: the energy of a reading, µJ, and the energy of the empty
/// connection events counted with it, µJ·ms, which is divided by the interval. The two intervals,
/// 7.5 and 50 ms, differ by 30.4 µJ.
const READING_UJ: f64 = 204.85;
const EVENTS_UJ_MS: f64 = 268.2;

fn fitted(interval_ms: f64) -> f64 {
    READING_UJ + EVENTS_UJ_MS / interval_ms
}

pub(super) fn energy(results: &Results<'_>) -> Vec<Row> {
    let designs = [
        (TCPLE, 240.62),
        (TCPLP, 210.22),
        (CHIP, 210.12),
        (BLEACH, 200.65),
    ];
    let fit = |point: &Point| results.mean_of(point, |run| fitted(run.figure("interval")));
    let name = ("energy_fitted", "µJ");
    let mut rows = Vec::new();
    for (design, paper) in designs {
        let point = of(design);
        rows.push(results.row(&point, ENERGY));
        rows.push(results.row(&point, INTERVAL_MS));
        let row = results.derived(point.clone(), name, fit(&point));
        rows.push(row.paper(paper).near_paper(0.05).fit());
    }
    for (design, _) in &designs[1..] {
        let more = 100.0 * (fit(&of(TCPLE)) / fit(&of(*design)) - 1.0);
        let row = results.derived(of(*design), ("tcple_takes_more_fitted", "%"), more);
        rows.push(row.between(10.0, 25.0).fit());
    }
    // The interval against goodput and energy.
    let rate = |interval| results.mean(&saturated_at(interval), GOODPUT);
    let row = results.derived(
        at_interval(LONG),
        ("goodput_over_shortest_interval", "1"),
        rate(LONG) / rate(SHORT),
    );
    rows.push(row.paper(0.143).between(0.1, 0.25));
    let costs = 100.0 * (fit(&at_interval(SHORT)) / fit(&at_interval(LONG)) - 1.0);
    let row = results.derived(at_interval(SHORT), ("energy_more_fitted", "%"), costs);
    rows.push(row.paper(12.3).between(5.0, 25.0).fit());
    for interval in [SHORT, LONG] {
        rows.push(results.goodput(&saturated_at(interval)));
        rows.push(results.row(&at_interval(interval), ENERGY));
    }
    // Events left out.
    let lazy = with_latency(LATENCY);
    let saved = 100.0 * (1.0 - results.mean(&lazy, ENERGY) / results.mean(&of(TCPLE), ENERGY));
    let row = results.derived(lazy.clone(), ("energy_saved_by_latency", "%"), saved);
    rows.push(row.paper(14.3));
    let slower = 100.0 * (results.mean(&lazy, RTT) / results.mean(&of(TCPLE), RTT) - 1.0);
    let row = results.derived(lazy, ("rtt_longer_by_latency", "%"), slower);
    rows.push(row.at_most(10.0));
    rows
}

pub(super) fn rtt(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for design in DESIGNS {
        rows.push(results.row(&of(design), RTT));
        rows.push(results.row(&of(design), AGE));
        if design != TCPLE {
            let less = results.mean(&of(design), RTT) - results.mean(&of(TCPLE), RTT);
            let row = results.derived(of(design), ("tcple_is_faster_by", "ms"), less);
            // 20 ms each way.
            rows.push(row.at_least(40.0));
        }
    }
    let own = of(MOTET).with("interval_ms", SHORT.0);
    rows.extend([RTT, AGE].map(|metric| results.row(&own, metric)));
    let part = results.mean(&own, RTT) / results.mean(&of(TCPLE), RTT);
    let row = results.derived(own, ("rtt_over_tcple", "1"), part);
    rows.push(row.at_most(1.0));
    rows
}

pub(super) fn ota(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for metric in [AGE, AGE_P90] {
        let at = |design| results.mean(&of(design), metric);
        for (design, less) in [(TCPLP, TCPLE), (BLEACH, TCPLP)] {
            let name = match metric.name == AGE.name {
                true => "time_over_next_faster",
                false => "time_p90_over_next_faster",
            };
            let part = at(design) / at(less);
            rows.push(results.derived(of(design), (name, "1"), part).at_least(1.0));
        }
        rows.extend([TCPLE, TCPLP, BLEACH].map(|design| results.row(&of(design), metric)));
    }
    rows
}
