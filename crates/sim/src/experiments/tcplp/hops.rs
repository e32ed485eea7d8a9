//! Goodput by hops (7.2).

use crate::experiments::metric::GOODPUT;
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::Setup;
use crate::experiments::{Case, Results};

use super::at;

fn hops_point(hops: u64, window: u64) -> Point {
    Point::default()
        .with("hops", hops)
        .with("window_segments", window)
}

/// Hops, window, and the published goodput.
const HOPS: [(u64, u64, Option<f64>); 6] = [
    (1, 4, Some(64.1)),
    (2, 4, Some(28.3)),
    (3, 4, Some(19.5)),
    (4, 7, Some(17.5)),
    (3, 7, None),
    (4, 4, None),
];

pub(super) fn cases() -> Vec<Case> {
    let case = |(hops, window, _)| {
        Case::new(
            hops_point(hops, window),
            Setup::hops(hops as u16).window_segments(window as usize),
        )
    };
    HOPS.map(case).to_vec()
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (hops, window, paper) in HOPS {
        let row = results.goodput(&hops_point(hops, window));
        rows.push(match paper {
            None => row,
            // The copies into and out of the radio were fitted on one hop and on two.
            Some(paper) if hops <= 2 => row.paper(paper).near_paper(0.15).fit(),
            Some(paper) => row.paper(paper).near_paper(0.15),
        });
    }
    let goodput = |hops, window| results.mean(&hops_point(hops, window), GOODPUT);
    for (hops, window, paper) in HOPS {
        let Some(paper) = paper else { continue };
        let point = hops_point(hops, window);
        let segment = results.segment(&point);
        let (name, radio) = match segment.estimate {
            Some(estimate) => ("goodput_over_estimate", estimate),
            None => ("goodput_over_bound", segment.bound.unwrap_or(f64::NAN)),
        };
        // The paper's own: 82 kb/s over one hop, and its parts.
        let of_paper = paper / (82.0 / hops.min(3) as f64);
        let row = results
            .derived(point, (name, "1"), goodput(hops, window) / radio)
            .paper((of_paper * 1e3).round() / 1e3);
        // One and two hops carry the fit.
        rows.push(if hops < 3 { row.fit() } else { row.identity() });
    }
    let ratio = |hops, name, value| results.derived(at("hops", hops), (name, "1"), value);
    rows.push(
        ratio(4, "goodput_over_3_hops", goodput(4, 7) / goodput(3, 4))
            .paper(0.897)
            .between(0.8, 1.0)
            // Both are judged above.
            .identity(),
    );
    rows.push(
        ratio(
            3,
            "goodput_7_over_4_segments",
            goodput(3, 7) / goodput(3, 4),
        )
        .between(0.9, 1.1),
    );
    rows.push(
        ratio(
            4,
            "goodput_7_over_4_segments",
            goodput(4, 7) / goodput(4, 4),
        )
        .at_least(1.0),
    );
    rows
}
