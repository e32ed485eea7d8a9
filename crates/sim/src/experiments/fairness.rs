//! Two flows at once: `TCPlp` Table 9 and appendix A.

use motet::node::Relaying;

use super::metric::{FLOWS, GOODPUT, JAIN, LOSS, Metric, RTT};
use super::model::Path;
use super::row::{Point, Row};
use super::run::{Setup, Traffic};
use super::{Budget, Case, Experiment, Results};

/// In the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "tcplp-fairness",
    title: "Two flows at once (TCPlp Table 9, appendix A)",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 8,
            seconds: 60,
        },
        Budget {
            runs: 20,
            seconds: 120,
        },
    ],
}];

/// A line of Table 9: goodput, kb/s; loss; median RTT, ms.
type Published = [f64; 3];

/// Hops; one flow alone, two flows at once, each A and B.
const TABLE_9: [(u64, [Published; 2], [Published; 2]); 2] = [
    (
        1,
        [[69.6, 0.0, 213.0], [55.4, 0.000_439, 284.0]],
        [[41.7, 0.000_437, 356.0], [35.2, 0.002_19, 416.0]],
    ),
    (
        3,
        [[19.3, 0.004_41, 772.0], [19.8, 0.004_36, 755.0]],
        [[10.9, 0.0195, 995.0], [9.43, 0.03, 1_075.0]],
    ),
];

/// Queues and relaying of appendix A, with seven segments.
const QUEUES: [(&str, &str); 2] = [("droptail", "fragments"), ("droptail", "reassembly")];

fn alone(hops: u64) -> Point {
    Point::default().with("hops", hops).with("flow", "alone")
}

fn both(hops: u64) -> Point {
    Point::default().with("hops", hops).with("flow", "two")
}

fn queued((queue, relaying): (&'static str, &'static str)) -> Point {
    both(3)
        .with("window_segments", 7)
        .with("queue", queue)
        .with("relaying", relaying)
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (hops, ..) in TABLE_9 {
        let setup = Setup::hops(hops as u16);
        cases.push(Case {
            point: alone(hops),
            setup,
        });
        cases.push(Case {
            point: both(hops),
            setup: setup.traffic(Traffic::TwoUp),
        });
    }
    for queue @ (_, relaying) in QUEUES {
        let mut setup = Setup::hops(3).window_segments(7).traffic(Traffic::TwoUp);
        if relaying == "reassembly" {
            setup.chain.relaying = Relaying::Reassembly;
        }
        cases.push(Case {
            point: queued(queue),
            setup,
        });
    }
    cases
}

fn rows(results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    for (hops, ..) in TABLE_9 {
        rows.push(results.row(&both(hops), JAIN).at_least(0.97));
        let part = results.mean(&both(hops), GOODPUT) / results.mean(&alone(hops), GOODPUT);
        rows.push(
            results
                .derived(both(hops), ("goodput_over_one_flow", "1"), part)
                .at_least(0.9),
        );
    }
    for (hops, single, pair) in TABLE_9 {
        let mean = f64::midpoint(single[0][0], single[1][0]);
        let row = results.goodput(&alone(hops)).paper(mean).near_paper(0.2);
        let row = row.about("mean of A and B");
        // The very setting on which the copy into the radio was fitted.
        rows.push(if hops == 1 { row.fit() } else { row });
        for ((flow, metrics), paper) in ["A", "B"].into_iter().zip(FLOWS).zip(pair) {
            rows.extend(flow_rows(results, hops, flow, metrics, paper));
        }
    }
    for queue in QUEUES {
        let point = queued(queue);
        rows.push(results.row(&point, JAIN));
        let worst = results.runs(&point).iter().map(super::run::Run::jain);
        let worst = worst.fold(1.0, f64::min);
        rows.push(results.derived(point.clone(), ("jain_worst", "1"), worst));
        rows.extend([GOODPUT, LOSS, RTT].map(|metric| results.row(&point, metric)));
    }
    rows
}

/// One of two flows against Table 9 and against equation 2.
fn flow_rows(
    results: &Results,
    hops: u64,
    flow: &'static str,
    [goodput, loss, rtt]: [Metric; 3],
    paper: Published,
) -> Vec<Row> {
    let of = |metric, paper: f64| {
        let mut row = results.row(&both(hops), metric).paper(paper);
        row.point = both(hops).without("flow").with("flow", flow);
        row
    };
    let path = Path {
        mss_bytes: Setup::hops(hops as u16).segment().0 as f64,
        rtt_s: results.mean(&both(hops), rtt) / 1e3,
        loss: results.mean(&both(hops), loss),
        window: 4.0,
    };
    let model = path.buffer_limited_kbps() / results.mean(&both(hops), goodput);
    let point = both(hops).without("flow").with("flow", flow);
    vec![
        of(goodput, paper[0]).near_paper(0.2),
        results
            .derived(point, ("eq2_over_measured", "1"), model)
            .between(0.8, 1.2),
        of(loss, paper[1]),
        of(rtt, paper[2]),
    ]
}
