//! Two flows at once: `TCPlp` Table 9 and appendix A.

use super::flows::Flows;
use super::metric::{FLOWS, GOODPUT, JAIN, LOSS, Metric, RTT};
use super::model::Path;
use super::row::{Point, Row};
use super::run::Run;
use super::setup::Setup;
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
            runs: 20,
            seconds: 120,
        },
        Budget {
            runs: 40,
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

/// A queue of appendix A, with seven segments.
#[derive(Clone, Copy)]
struct Queue {
    name: &'static str,
    relaying: &'static str,
    /// RED's verdict on a packet, if RED is there: mark or drop.
    design: Option<&'static str>,
    /// The discipline of a queue of whole packets, before it is full.
    discipline: &'static str,
}

/// The paper's default, what RED needs without it, and RED, which marks or drops.
const QUEUES: [Queue; 4] = [
    Queue {
        name: "droptail",
        relaying: "fragments",
        design: None,
        discipline: "droptail",
    },
    Queue {
        name: "droptail",
        relaying: "reassembly",
        design: None,
        discipline: "droptail",
    },
    Queue {
        name: "red",
        relaying: "reassembly",
        design: Some("marks"),
        discipline: "red",
    },
    Queue {
        name: "red",
        relaying: "reassembly",
        design: Some("drops"),
        discipline: "red-drop",
    },
];

const DROPTAIL: Queue = QUEUES[0];

const RED: Queue = QUEUES[2];

fn alone(hops: u64) -> Point {
    Point::default().with("hops", hops).with("flow", "alone")
}

fn both(hops: u64) -> Point {
    Point::default().with("hops", hops).with("flow", "two")
}

fn queued(queue: &Queue) -> Point {
    let point = both(3)
        .with("window_segments", 7)
        .with("queue", queue.name)
        .with("relaying", queue.relaying);
    match queue.design {
        Some(design) => point.with("design", design),
        None => point,
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (hops, ..) in TABLE_9 {
        let setup = Setup::hops(hops as u16);
        cases.push(Case::new(alone(hops), setup.clone()));
        cases.push(Case::new(both(hops), setup).traffic(Flows::TwoUp));
    }
    for queue in &QUEUES {
        let setup = Setup::hops(3)
            .window_segments(7)
            .with("stack.relaying", queue.relaying)
            .with("stack.queue", queue.discipline);
        cases.push(Case::new(queued(queue), setup).traffic(Flows::TwoUp));
    }
    cases
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (hops, ..) in TABLE_9 {
        rows.push(results.row(&both(hops), JAIN).at_least(0.97));
        let part = results.mean(&both(hops), GOODPUT) / results.mean(&alone(hops), GOODPUT);
        let row = results.derived(both(hops), ("goodput_over_one_flow", "1"), part);
        // Each flow is judged below, and one flow alone in `tcplp-hops`.
        rows.push(row.at_least(0.9).identity());
    }
    for (hops, single, pair) in TABLE_9 {
        let mean = f64::midpoint(single[0][0], single[1][0]);
        let row = results.goodput(&alone(hops)).paper(mean);
        // The copy into the radio was fitted on one hop; three are judged in `tcplp-hops`.
        rows.push(match hops {
            1 => row.near_paper(0.2).about("mean of A and B").fit(),
            _ => row.repeat(),
        });
        for ((flow, metrics), paper) in ["A", "B"].into_iter().zip(FLOWS).zip(pair) {
            rows.extend(flow_rows(results, hops, flow, metrics, paper));
        }
    }
    rows.extend(queue_rows(results));
    rows
}

/// Appendix A: RED with ECN against a full queue that drops its tail.
///
/// That RED is fairer than drop-tail is not judged: here drop-tail is nearly as fair, and with
/// some seeds as fair.
fn queue_rows(results: &Results<'_>) -> Vec<Row> {
    let of = |queue, metric| results.mean(&queued(queue), metric);
    let worst = |queue| {
        let runs = results.runs(&queued(queue));
        runs.map(Run::jain).fold(1.0, f64::min)
    };
    let derived = |name, value| results.derived(queued(&RED), (name, "1"), value);
    let mut rows = vec![
        results.row(&queued(&RED), JAIN).at_least(0.97),
        derived(
            "jain_of_droptail_over_this",
            of(&DROPTAIL, JAIN) / of(&RED, JAIN),
        ),
        derived(
            "jain_worst_of_droptail_over_this",
            worst(&DROPTAIL) / worst(&RED),
        )
        .without_interval(),
        results
            .row(&queued(&RED), RTT)
            .paper(1_000.0)
            .at_most(1_500.0),
    ];
    for queue in &QUEUES {
        let point = queued(queue);
        let worst = results.derived(point.clone(), ("jain_worst", "1"), worst(queue));
        rows.push(worst.without_interval());
        let is_judged = queued(&RED) == point;
        let shown = [JAIN, RTT].iter().filter(|_| !is_judged);
        let shown = shown.chain(&[GOODPUT, LOSS]);
        rows.extend(shown.map(|metric| results.row(&point, *metric)));
    }
    rows
}

/// One of two flows against Table 9 and against equation 2.
fn flow_rows(
    results: &Results<'_>,
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
        mss_bytes: results.segment(&both(hops)).payload_len as f64,
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
            .between(0.8, 1.2)
            // The window over the round-trip time, but for the losses.
            .identity(),
        of(loss, paper[1]),
        of(rtt, paper[2]),
    ]
}
