//! Full windows on generated floors: the unfairness that users meet, and what cures it.

use std::sync::Arc;

use motet::tcp::Config;
use motet::time::Duration;

use super::goals::{figure, hop_weighted, ratios, row, timeouts};
use super::trial::{Trial, hosts};
use super::{ADMISSION, Declared, FLOOR_SEEDS, MOTES, NONE, declared};
use crate::experiments::mesh::measure::floor;
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup, as_it_is};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Budget, Case, Experiment, Results};
use crate::net::network::{Joining, NetworkOptions};
use crate::stats::mean;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "combined-fairness",
    title: "Thirty motes with full windows behind one border router",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 4,
            seconds: 1_200,
        },
        Budget {
            runs: 10,
            seconds: 1_200,
        },
    ],
};

/// `TCPlp`'s settings, and Motet's: the hold rule, and a receiver that acknowledges every second
/// segment.
const DESIGNS: [&str; 2] = ["TCPlp", "Motet"];

/// Spacings between two packets of TAiM and fair queueing, which release one packet at a time.
const SPACINGS_MS: [u64; 3] = [50, 100, 200];

/// Flows of the runs in which nothing is to be held.
const FEW: [(&str, usize); 2] = [("one", 1), ("two", 2)];

#[derive(Clone, Copy, Debug)]
struct FullWindows {
    policy: Declared,
    design: &'static str,
    flows: usize,
}

fn policies() -> Vec<Declared> {
    let mut all = vec![NONE, ADMISSION];
    all.extend(SPACINGS_MS.map(|ms| declared("taim", Some(ms))));
    all.push(declared("taim-literal", None));
    all.push(declared("fq", Some(SPACINGS_MS[1])));
    all
}

fn few(policy: Declared, flow: &'static str) -> Point {
    policy.point(DESIGNS[0]).with("flow", flow)
}

fn case(point: Point, traffic: FullWindows) -> Case {
    Case {
        point,
        setup: Setup::hops(1),
        traffic: Arc::new(traffic),
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for design in DESIGNS {
        cases.extend(policies().into_iter().map(|policy| {
            let flows = MOTES;
            let traffic = FullWindows {
                policy,
                design,
                flows,
            };
            case(policy.point(design), traffic)
        }));
    }
    for (flow, flows) in FEW {
        for policy in [NONE, ADMISSION] {
            let design = DESIGNS[0];
            let traffic = FullWindows {
                policy,
                design,
                flows,
            };
            cases.push(case(few(policy, flow), traffic));
        }
    }
    cases
}

impl Traffic for FullWindows {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let missing = || Failure::Topology(format!("no floor of {MOTES} motes was found"));
        let mesh = floor(MOTES, seed.wrapping_add(FLOOR_SEEDS)).ok_or_else(missing)?;
        let mut mesh = NetworkOptions {
            joining: Joining::Static,
            hosts: hosts(self.flows),
            ..mesh
        };
        let mut receiver: fn(&mut Config) = as_it_is;
        if self.design == DESIGNS[1] {
            receiver = patient;
            for node in &mut mesh.nodes {
                node.pacing_step = Duration::from_millis(8);
                node.mac.retry_delay_max = Duration::from_millis(20);
            }
        }
        let trial = Trial {
            mesh,
            // The last: as good as any other.
            senders: (1..=MOTES).rev().take(self.flows).collect(),
            bytes: None,
            limit: Duration::from_secs(seconds),
            tunes: [as_it_is, receiver],
        };
        Ok(trial.run(self.policy.policy())?.into_run())
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The settings of a mote as in `combined-pacing`.
fn patient(config: &mut Config) {
    config.ack_every = 2;
    config.ack_delay_ms = 500;
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for design in DESIGNS {
        let (none, admission) = (NONE.point(design), ADMISSION.point(design));
        rows.push(
            row(results, &admission, "jain")
                .at_least(0.99)
                .moonshot(0.997),
        );
        rows.push(
            row(results, &admission, "max_min")
                .at_most(1.4)
                .moonshot(1.1),
        );
        let weighted = hop_weighted(results, &admission, &none);
        rows.push(weighted.at_least(0.8).moonshot(0.95));
        rows.extend(timeouts(results, &admission, &none));
        // The moonshot is to hold from the first two minutes on.
        rows.push(row(results, &admission, "jain_first"));
        rows.push(row(results, &admission, "max_min_first"));
    }
    for (flow, _) in FEW {
        let points = [few(ADMISSION, flow), few(NONE, flow)];
        let part = ratios(results, points.each_ref(), |run| run.figure("goodput"));
        let [point, _] = points;
        let row = results.derived(point, ("goodput_ratio", "1"), mean(&part));
        rows.push(row.at_least(0.98).moonshot(1.0));
    }
    for design in DESIGNS {
        let none = NONE.point(design);
        for name in ["jain", "max_min", "total_rto", "goodput"] {
            rows.push(row(results, &none, name));
        }
        for policy in policies().into_iter().skip(2) {
            let point = policy.point(design);
            for name in ["jain", "max_min", "held_rto", "total_rto"] {
                rows.push(row(results, &point, name));
            }
            rows.push(hop_weighted(results, &point, &none));
        }
        rows.extend(best_taim(results, design));
        rows.push(row(results, &ADMISSION.point(design), "goodput"));
        rows.push(row(results, &ADMISSION.point(design), "total_rto"));
    }
    rows
}

/// TAiM with the spacing of the sweep that is fairest.
fn best_taim(results: &Results<'_>, design: &'static str) -> Vec<Row> {
    let points = SPACINGS_MS.map(|ms| declared("taim", Some(ms)).point(design));
    let best = points.iter().max_by(|a, b| {
        let of = |point| figure(results, point, "jain");
        of(a).total_cmp(&of(b))
    });
    let Some(best) = best else {
        return Vec::new();
    };
    let mut rows = vec![
        row(results, best, "jain"),
        row(results, best, "max_min"),
        hop_weighted(results, best, &NONE.point(design)),
    ];
    for row in &mut rows {
        row.point = best.without("spacing_ms");
    }
    rows
}
