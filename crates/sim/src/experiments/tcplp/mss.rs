//! Segment size over one hop, both ways (figure 4).

use crate::experiments::flows::Flows;
use crate::experiments::metric::GOODPUT;
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::Setup;
use crate::experiments::{Case, Results};

const MSS_FRAMES: [u64; 7] = [2, 3, 4, 5, 6, 7, 8];

fn mss_point(direction: &'static str, frames: u64) -> Point {
    Point::default()
        .with("direction", direction)
        .with("mss_frames", frames)
}

pub(super) fn cases() -> Vec<Case> {
    let directions = [("down", Flows::Down), ("up", Flows::Up)];
    let of_direction = |(direction, traffic)| {
        MSS_FRAMES.map(|frames| {
            let setup = Setup::hops(1)
                .retry_delay_ms(0)
                .with("stack.mss_frames", frames as i64);
            // The paper's buffer of 1,848 bytes, but never fewer than its four segments.
            let payload_len = setup.segment(0).payload_len.max(1);
            let segments = BUFFER_LEN.div_ceil(payload_len).max(4);
            Case::new(
                mss_point(direction, frames),
                setup.window_segments(segments),
            )
            .traffic(traffic)
        })
    };
    directions.into_iter().flat_map(of_direction).collect()
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = results
        .cases()
        .map(|case| results.goodput(&case.point))
        .collect();
    let goodput = |direction, frames| results.mean(&mss_point(direction, frames), GOODPUT);
    let ratio = |direction, a, b, name| {
        let value = goodput(direction, a) / goodput(direction, b);
        let point = Point::default().with("direction", direction);
        results.derived(point, (name, "1"), value)
    };
    let steps = [3, 4, 5].map(|frames| goodput("down", frames) / goodput("down", frames - 1));
    let down = Point::default().with("direction", "down");
    rows.push(
        results
            .least(down, ("goodput_least_step_to_5", "1"), steps.into())
            .at_least(1.0)
            .about("goodput rises with each frame up to 5"),
    );
    rows.push(ratio("down", 5, 2, "goodput_5_over_2").at_least(1.15));
    rows.push(ratio("down", 8, 5, "goodput_8_over_5").below(1.1));
    // A segment of five frames outlasts the host's 40 ms delayed-ACK timer, so that each is
    // acknowledged alone.
    rows.push(ratio("up", 5, 4, "goodput_5_over_4").at_least(0.95));
    rows.push(ratio("up", 5, 2, "goodput_5_over_2").at_least(1.15));
    rows.push(ratio("up", 8, 5, "goodput_8_over_5").at_most(1.13));
    rows.extend(headers(results));
    rows
}

/// Octets of headers in a segment's first frame and in each other one (Table 6): what segments of
/// eight frames carry more than those of two, in six frames, and what is left of two frames.
fn headers(results: &Results<'_>) -> [Row; 2] {
    let payload = |frames| results.segment(&mss_point("up", frames)).payload_len as f64;
    let frame = motet::limits::PSDU_LEN_MAX as f64;
    let [few, many] = [2, 8];
    let other = frame - (payload(many) - payload(few)) / (many - few) as f64;
    let first = few as f64 * frame - payload(few) - other;
    let row = |name, value| results.derived(Point::default(), (name, "B"), value);
    [
        row("first_frame_headers", first)
            .between(50.0, 107.0)
            .about("TCPlp Table 6")
            .identity(),
        row("other_frame_headers", other)
            .between(28.0, 35.0)
            .about("TCPlp Table 6")
            .identity(),
    ]
}

/// The buffers that TCPlp usually has, bytes.
const BUFFER_LEN: usize = 1_848;
