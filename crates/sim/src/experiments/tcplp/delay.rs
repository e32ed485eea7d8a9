//! Delay of link retries (figure 6): `retrydelay.toml`.

use crate::experiments::Results;
use crate::experiments::metric::{FRAMES, GOODPUT, LOSS, RTT};
use crate::experiments::row::{Point, Row};

use super::at;

pub(super) const DELAYS: [u64; 9] = [0, 5, 10, 20, 30, 40, 60, 80, 100];

pub(super) fn delay_point(hops: u64, delay: u64) -> Point {
    Point::default()
        .with("hops", hops)
        .with("retry_delay_ms", delay)
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let point = |delay| delay_point(3, delay);
    let mean = |delay, metric| results.mean(&point(delay), metric);
    let three = || at("hops", 3);
    let derived = |name, value| results.derived(three(), (name, "1"), value);
    let mut rows = vec![
        // The number of attempts and the chain's gains were fitted on this figure.
        results
            .row(&point(0), LOSS)
            .paper(0.06)
            .between(0.03, 0.1)
            .fit(),
        results.row(&point(30), LOSS).below(0.01),
        results.row(&point(40), LOSS).below(0.01),
        derived(
            "goodput_0_from_30",
            (mean(0, GOODPUT) / mean(30, GOODPUT) - 1.0).abs(),
        )
        .at_most(0.15)
        .about("part by which goodput at d = 0 differs from that at 30"),
        derived(
            "goodput_100_over_40",
            mean(100, GOODPUT) / mean(40, GOODPUT),
        )
        .below(1.0),
        // The window is in flight all the time: RTT is the window over the goodput.
        results
            .least(three(), ("rtt_least_step", "1"), rtt_steps(results))
            .at_least(1.0)
            .about("RTT rises from d = 0 to 5, 30, 40, 100")
            .identity(),
        derived("rtt_0_over_30", mean(0, RTT) / mean(30, RTT))
            .between(0.6, 0.9)
            .identity(),
        derived("frames_5_over_0", mean(5, FRAMES) / mean(0, FRAMES)).below(1.0),
        derived("frames_40_over_5", mean(40, FRAMES) / mean(5, FRAMES)).below(1.0),
        derived("goodput_40_over_5", mean(40, GOODPUT) / mean(5, GOODPUT)).between(0.9, 1.1),
        results
            .goodput(&delay_point(1, 40))
            .paper(64.1)
            .near_paper(0.12)
            .fit(),
        results
            .derived(
                at("hops", 1),
                ("goodput_40_over_0", "1"),
                results.mean(&delay_point(1, 40), GOODPUT)
                    / results.mean(&delay_point(1, 0), GOODPUT),
            )
            .between(0.8, 1.0),
    ];
    for case in results
        .cases()
        .filter(|case| case.point != delay_point(1, 40))
    {
        rows.push(results.goodput(&case.point));
    }
    for metric in [LOSS, RTT, FRAMES] {
        let judged = |point: &Point| {
            metric.name == LOSS.name && [0, 30, 40].iter().any(|d| *point == delay_point(3, *d))
        };
        let cases = results.cases().filter(|case| !judged(&case.point));
        rows.extend(cases.map(|case| results.row(&case.point, metric)));
    }
    rows
}

fn rtt_steps(results: &Results<'_>) -> Vec<f64> {
    let rtt = |delay| results.mean(&delay_point(3, delay), RTT);
    let steps = [0, 5, 30, 40, 100].windows(2);
    steps.map(|pair| rtt(pair[1]) / rtt(pair[0])).collect()
}
