//! Stop-and-wait stacks (table 7).

use crate::experiments::flows::Flows;
use crate::experiments::metric::GOODPUT;
use crate::experiments::row::{Point, Row};
use crate::experiments::setup::{Setup, Tune};
use crate::experiments::{Case, Results};

/// A stack of Table 7.
struct Baseline {
    design: &'static str,
    mss_frames: u8,
    /// The paper's figures for one hop and for several, kb/s.
    paper: Option<[f64; 2]>,
    receiver: Tune,
}

/// One segment at a time, without options; the peer acknowledges at once or later.
const BASELINES: [Baseline; 6] = [
    Baseline {
        design: "1 frame, ACK at once",
        mss_frames: 1,
        paper: None,
        receiver: |config| config.ack_every = 1,
    },
    Baseline {
        design: "1 frame, ACK after 40 ms",
        mss_frames: 1,
        paper: None,
        receiver: |config| config.ack_delay_ms = 40,
    },
    Baseline {
        design: "1 frame, ACK after 100 ms (BLIP)",
        mss_frames: 1,
        paper: Some([4.8, 2.4]),
        receiver: |config| config.ack_delay_ms = 100,
    },
    Baseline {
        design: "1 frame, ACK after 200 ms (uIP)",
        mss_frames: 1,
        paper: Some([1.5, 0.55]),
        receiver: |config| config.ack_delay_ms = 200,
    },
    Baseline {
        design: "4 frames, ACK after 200 ms (uIP)",
        mss_frames: 4,
        paper: Some([12.0, 12.0]),
        receiver: |config| config.ack_delay_ms = 200,
    },
    Baseline {
        design: "10 frames, ACK after 200 ms (Arch Rock)",
        mss_frames: 10,
        paper: Some([15.0, 9.6]),
        receiver: |config| config.ack_delay_ms = 200,
    },
];

const TCPLP: &str = "TCPlp";

fn baseline_point(hops: u64, design: &'static str) -> Point {
    Point::default().with("hops", hops).with("design", design)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (hops, delay) in [(1, 0), (3, 40)] {
        let setup = Setup::hops(hops).retry_delay_ms(delay);
        let traffic = if hops == 1 { Flows::Motes } else { Flows::Up };
        cases.push(Case::new(baseline_point(hops.into(), TCPLP), setup.clone()).traffic(traffic));
        for baseline in &BASELINES {
            let frames = i64::from(baseline.mss_frames);
            let mut setup = setup
                .clone()
                .window_segments(1)
                .with("stack.mss_frames", frames);
            // A larger window at the peer: reading would otherwise move the window's edge so
            // far that an update goes out at once, whatever the ACK's delay.
            setup.receiver_segments = Some(4);
            setup.sender = without_options;
            setup.receiver = baseline.receiver;
            let point = baseline_point(hops.into(), baseline.design);
            cases.push(Case::new(point, setup).traffic(Flows::Motes));
        }
    }
    cases
}

fn without_options(config: &mut motet::tcp::Config) {
    config.timestamps = false;
    config.sack = false;
    config.nagle = false;
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let goodput = |hops, design| results.mean(&baseline_point(hops, design), GOODPUT);
    let mut rows = vec![
        results
            .goodput(&baseline_point(1, TCPLP))
            .paper(75.0)
            .near_paper(0.1)
            .fit(),
        // Judged in `tcplp-hops`.
        results
            .goodput(&baseline_point(3, TCPLP))
            .paper(20.0)
            .repeat(),
    ];
    for (baseline, least) in BASELINES.iter().zip([1.3, 5.0]) {
        let value = goodput(1, TCPLP) / goodput(1, baseline.design);
        rows.push(
            results
                .derived(
                    baseline_point(1, baseline.design),
                    ("tcplp_goodput_over_this", "1"),
                    value,
                )
                .at_least(least),
        );
    }
    for (place, hops) in [1, 3].into_iter().enumerate() {
        for baseline in &BASELINES {
            let row = results.row(&baseline_point(hops, baseline.design), GOODPUT);
            rows.push(match baseline.paper {
                // Other people's platforms and drivers: quoted, not judged.
                Some(paper) => row.paper(paper[place]),
                None => row,
            });
        }
    }
    rows
}
