//! The goodput of one hop, and what limits it (6.3, 6.4).

use crate::air::profile::Profile;
use crate::experiments::flows::Flows;
use crate::experiments::metric::GOODPUT;
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::{Case, Results};

use super::at;

pub(super) fn cases() -> Vec<Case> {
    let case = |transport, traffic| {
        Case::new(
            Point::default().with("hops", 1).with("design", transport),
            Setup::hops(1).retry_delay_ms(0),
        )
        .traffic(traffic)
    };
    vec![
        case("mote to mote", Flows::Motes),
        case("mote to host", Flows::Up),
        case("host to mote", Flows::Down),
    ]
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let points: Vec<Point> = results.cases().map(|case| case.point.clone()).collect();
    let Some(motes) = points.first() else {
        return Vec::new();
    };
    let profile = Profile::HAMILTON;
    let full_frame = |psdu_len| {
        profile
            .cycle(psdu_len, motet::mac::config::BE_MIN)
            .as_micros()
    };
    let frame_ms = full_frame(motet::limits::PSDU_LEN_MAX) as f64 / 1e3;
    let Segment {
        payload_len,
        estimate,
        ..
    } = results.segment(motes);
    let arithmetic = payload_len as f64 * 8.0 / (5.5 * frame_ms);
    let one = || at("hops", 1);
    let mut rows = vec![
        // That the 8.2 ms include the mean backoff was decided by this figure.
        results.goodput(motes).paper(75.0).near_paper(0.1).fit(),
        results
            .derived(one(), ("full_frame_time", "ms"), frame_ms)
            .paper(8.2)
            .near_paper(0.02)
            .without_interval()
            .fit(),
        results
            .derived(one(), ("segment_payload", "B"), payload_len as f64)
            .paper(462.0)
            .without_interval(),
        results
            .derived(one(), ("bound_with_full_length_ack", "kb/s"), arithmetic)
            .paper(82.0)
            .without_interval(),
        results
            .derived(
                motes.clone(),
                ("goodput_over_estimate", "1"),
                results.mean(motes, GOODPUT) / estimate.unwrap_or(f64::NAN),
            )
            .paper(0.915)
            // Its numerator is one.
            .fit(),
    ];
    rows.extend(points.iter().skip(1).map(|point| results.goodput(point)));
    rows
}
