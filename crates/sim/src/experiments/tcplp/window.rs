//! Window over one hop down (figure 5): `window.toml`.

use crate::experiments::Results;
use crate::experiments::metric::{GOODPUT, RTT};
use crate::experiments::row::{Point, Row};

use super::at;

const WINDOWS: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = WINDOWS
        .iter()
        .map(|segments| results.goodput(&at("window_segments", *segments)))
        .collect();
    rows.extend(WINDOWS.map(|segments| results.row(&at("window_segments", segments), RTT)));
    let mean = |segments, metric| results.mean(&at("window_segments", segments), metric);
    let plateau = WINDOWS[4..]
        .iter()
        .map(|segments| mean(*segments, GOODPUT))
        .fold(0.0, f64::max);
    // Two segments do better than three, here as in the paper: not what a knee is.
    let short = WINDOWS
        .into_iter()
        .rfind(|segments| mean(*segments, GOODPUT) < 0.9 * plateau);
    let knee = short.map_or(1.0, |segments| segments as f64 + 1.0);
    let all = Point::default;
    // The wire's 20 ms were fitted on this very knee.
    rows.push(
        results
            .derived(all(), ("knee", "segments"), knee)
            .between(3.0, 5.0)
            .about("window from which on goodput has 90 % of the plateau")
            .fit(),
    );
    let parts = WINDOWS[4..]
        .iter()
        .map(|segments| mean(4, GOODPUT) / mean(*segments, GOODPUT));
    rows.push(
        results
            .least(all(), ("goodput_at_4_over_plateau", "1"), parts.collect())
            .at_least(0.9)
            .fit(),
    );
    // Beyond the knee each further segment in the window adds the time of one segment to the RTT.
    // The slope is that of the straight line through four points: if every second segment is
    // acknowledged, the RTT grows in steps of two segments, and the two end points alone would
    // depend on the number of steps between them.
    let payload_len = results.segment(&at("window_segments", 4)).payload_len as f64;
    let segment_ms = payload_len * 8.0 / plateau;
    let slope = 0.3 * (mean(8, RTT) - mean(5, RTT)) + 0.1 * (mean(7, RTT) - mean(6, RTT));
    let growth = slope / segment_ms;
    rows.push(
        results
            .derived(all(), ("rtt_growth", "1"), growth)
            .between(0.7, 1.3)
            .about("RTT for each segment beyond the knee over the time of one")
            // Where goodput stays, RTT is the window over it.
            .identity(),
    );
    rows
}
