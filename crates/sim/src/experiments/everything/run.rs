//! A run of that network, and its figures.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::network::{DIES_AT_S, Part, Roles, WORSE_AT_S, scenario};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::scenario::{Captures, FlowEnd, FlowResult, Overrides, Plan, RunResult, Watch};
use crate::stats::{jain, mean};

/// All traffic of the network, with these parts left out.
#[derive(Debug)]
pub(super) struct Everything(pub(super) Vec<Part>);

impl Traffic for Everything {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let unfit = || Failure::Topology("no floor of this seed has a mote for each role".into());
        let (text, roles) = scenario(seed, &self.0, seconds).ok_or_else(unfit)?;
        let plan = Plan::parse(&text, Path::new(""), Overrides::default())
            .map_err(|error| Failure::Topology(error.to_string()))?;
        let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        let watch = Watch {
            stop: &stop,
            done_ms: &done_ms,
        };
        let result = plan.run(&watch, Captures::default()).into_iter().next();
        let result = result.ok_or_else(unfit)?;
        if let Some(why) = &result.failure {
            return Err(Failure::Topology(why.clone()));
        }
        Ok(Run {
            figures: figures(&result, &roles),
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

fn figures(result: &RunResult, roles: &Roles) -> Vec<(&'static str, f64)> {
    let of = |end: FlowEnd, motes: &[usize]| match end {
        FlowEnd::Node(n) => motes.contains(&n),
        FlowEnd::Host => false,
    };
    let flows = |motes: &[usize]| -> Vec<&FlowResult> {
        let is_theirs = |flow: &&FlowResult| of(flow.from, motes) || of(flow.to, motes);
        result.flows.iter().filter(is_theirs).collect()
    };
    let far: Vec<usize> = roles.up.iter().chain(&roles.down).copied().collect();
    let bulk = flows(&far);
    let kbps: Vec<f64> = bulk.iter().map(|flow| flow.goodput_kbps).collect();
    let bytes: u64 = bulk.iter().map(|flow| flow.counted_bytes).sum();
    let spent_mj: f64 = bulk.iter().map(|flow| flow.energy_mj).sum();
    let messages = |motes: &[usize]| {
        let counts = flows(motes).into_iter().filter_map(|flow| flow.messages);
        let [due, came] = counts.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        came as f64 / due.max(1) as f64
    };
    let duties: Vec<f64> = roles
        .asleep
        .iter()
        .filter_map(|n| Some(result.nodes.get(*n)?.counts.radio_duty() * 100.0))
        .collect();
    let lost: u32 = result
        .flows
        .iter()
        .filter_map(|flow| flow.connections_lost)
        .sum();
    let asked: Vec<f64> = flows(&roles.asked)
        .iter()
        .filter_map(|flow| flow.latency_p95_ms)
        .collect();
    vec![
        ("goodput", kbps.iter().sum()),
        ("jain", jain(&kbps)),
        ("delivery", messages(&roles.asleep)),
        ("radio_duty_cycle", mean(&duties)),
        ("repair_s", repair_s(result, &bulk)),
        ("connections_lost", f64::from(lost)),
        ("energy_per_byte", spent_mj * 1e3 / bytes.max(1) as f64),
        ("request_p95", mean(&asked)),
    ]
}

/// The longest time without a byte of a bulk flow, after the relay has died and before a link gets
/// worse, s.
fn repair_s(result: &RunResult, bulk: &[&FlowResult]) -> f64 {
    let during = DIES_AT_S as f64..WORSE_AT_S as f64;
    let silence = |flow: &&FlowResult| {
        let samples = result.samples.iter().filter(|it| it.flow == flow.flow);
        let samples = samples.filter(|it| during.contains(&it.at_s));
        let (mut longest, mut last) = (0.0f64, during.start);
        for sample in samples {
            if sample.goodput_kbps > 0.0 {
                longest = longest.max(sample.at_s - last);
                last = sample.at_s;
            }
        }
        longest.max(during.end - last)
    };
    bulk.iter().map(silence).fold(0.0, f64::max)
}
