//! The study of `TCPlp`, sections 4 to 8 and appendix A.
//!
//! Sections 4 and 6 were measured before link retries had a delay: d = 0 there, 40 ms
//! wherever the paper does not vary it afterwards.

mod baselines;
mod cwnd;
mod deaf;
mod delay;
mod hops;
mod model;
mod mss;
mod onehop;
mod window;

use super::row::Point;
use super::sheet;
use super::{Budget, Experiment};

/// Where means over a few minutes decide.
const MEANS: [Budget; 2] = [
    Budget {
        runs: 6,
        seconds: 60,
    },
    Budget {
        runs: 10,
        seconds: 120,
    },
];

/// Where rare events are counted: timeouts vary twofold between seeds of 100 s.
const COUNTS: [Budget; 2] = [
    Budget {
        runs: 8,
        seconds: 100,
    },
    Budget {
        runs: 10,
        seconds: 300,
    },
];

/// The experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 9] = [
    Experiment {
        id: "tcplp-mss",
        title: "Goodput by segment size, one hop (TCPlp Fig 4)",
        cases: mss::cases,
        rows: mss::rows,
        axis: Some("mss_frames"),
        budget: MEANS,
    },
    Experiment {
        id: "tcplp-window",
        title: "Goodput and RTT by window, one hop down (TCPlp Fig 5)",
        cases: || sheet::cases(WINDOW),
        rows: window::rows,
        axis: Some("window_segments"),
        budget: MEANS,
    },
    Experiment {
        id: "tcplp-onehop",
        title: "What one hop gives, and could give (TCPlp 6.3, 6.4)",
        cases: onehop::cases,
        rows: onehop::rows,
        axis: None,
        budget: MEANS,
    },
    Experiment {
        id: "tcplp-retrydelay",
        title: "What a delay of link retries does (TCPlp Fig 6)",
        cases: || sheet::cases(RETRY_DELAY),
        rows: delay::rows,
        axis: Some("retry_delay_ms"),
        budget: COUNTS,
    },
    Experiment {
        id: "tcplp-hops",
        title: "Goodput by hops, d = 40 ms (TCPlp 7.2)",
        cases: hops::cases,
        rows: hops::rows,
        axis: Some("hops"),
        budget: MEANS,
    },
    Experiment {
        id: "tcplp-cwnd",
        title: "Congestion window and retransmissions, three hops (TCPlp Fig 7)",
        cases: || sheet::cases(CWND),
        rows: cwnd::rows,
        axis: Some("retry_delay_ms"),
        budget: COUNTS,
    },
    Experiment {
        id: "tcplp-model",
        title: "Two models of goodput against measured goodput (TCPlp 8)",
        cases: || sheet::cases(RETRY_DELAY),
        rows: model::rows,
        axis: Some("retry_delay_ms"),
        budget: COUNTS,
    },
    Experiment {
        id: "tcplp-deaf",
        title: "Radios that sleep in the CSMA backoff, one hop (TCPlp 4)",
        cases: deaf::cases,
        rows: deaf::rows,
        axis: None,
        budget: MEANS,
    },
    Experiment {
        id: "tcplp-baselines",
        title: "Full TCP against stop-and-wait stacks (TCPlp Table 7)",
        cases: baselines::cases,
        rows: baselines::rows,
        axis: None,
        budget: MEANS,
    },
];

/// The scenarios of the experiments that have a file.
const RETRY_DELAY: &str = include_str!("retrydelay.toml");
const CWND: &str = include_str!("cwnd.toml");
const WINDOW: &str = include_str!("window.toml");

#[cfg(test)]
pub(super) const FILES: [&str; 3] = [RETRY_DELAY, CWND, WINDOW];

fn at(key: &'static str, value: u64) -> Point {
    Point::default().with(key, value)
}
