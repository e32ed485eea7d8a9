//! A run of that network, and its figures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet::time::Duration;

use super::few;
use super::interplay::{self, Checks, Interplay, Judged};
use super::network::{
    DIES_AT_S, Part, Place, READS_EACH_S, REBOOTS_AT_S, Roles, WARMUP_S, alone, scenario, unfit,
};
use super::troubles::Troubles;
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::testbed;
use crate::experiments::traffic::Traffic;
use crate::experiments::written;
use crate::scenario::{
    Captures, FlowEnd, FlowResult, NodeResult, Overrides, Plan, RunResult, Session, Watch,
};
use crate::stats::{jain, mean};

/// All traffic of the network at a place, with these parts left out.
#[derive(Debug)]
pub(super) struct Everything(pub(super) Place, pub(super) Vec<Part>);

/// A run that is over.
struct Played {
    result: RunResult,
    /// Bulk flows of the mesh that the relay which died had carried, and the link that got worse.
    carried: [usize; 2],
    /// The checks of requirements, where everything was on.
    checks: Option<Checks>,
}

impl Traffic for Everything {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let Self(place, without) = self;
        if *place == Place::Testbed {
            testbed::trace()?;
        }
        let (text, roles) = scenario(seed, (*place, without), seconds).ok_or_else(unfit)?;
        let judged = without.is_empty().then_some(Judged::All);
        let played = play(&text, &roles, judged)?;
        let mut figures = figures(&played, &roles);
        if let Some(mut checks) = played.checks {
            // The checks that have networks of their own: the same at every place.
            if *place == Place::Floor {
                beside(seed, &mut checks)?;
            }
            figures.extend(checks.figures());
        }
        Ok(Run {
            figures,
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The bulk flows of that network one at a time, with nobody else.
#[derive(Debug)]
pub(super) struct InTurns;

impl Traffic for InTurns {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let texts = alone(seed, ALONE_S).ok_or_else(unfit)?;
        let stop = AtomicBool::new(false);
        let kbps = texts.iter().map(|text| {
            let seed = seed & i64::MAX as u64;
            let result = written::finish(text, seed, &stop)?;
            Ok(result.goodput_kbps())
        });
        let kbps: Vec<f64> = kbps.collect::<Result<_, Failure>>()?;
        // Each has as much as the others when each has its share of the time.
        let time: f64 = kbps.iter().map(|kbps| 1.0 / kbps).sum();
        Ok(Run {
            figures: vec![("goodput", kbps.len() as f64 / time)],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The checks of requirements that did not hold in a run of `seconds`, in words; of a seed, with
/// everything on.
///
/// # Errors
/// Why the run does not count.
pub(super) fn broken(seed: u64, seconds: u64) -> Result<Vec<String>, Failure> {
    let mut checks = checks_of(seed, &[], (Judged::All, seconds))?;
    beside(seed, &mut checks)?;
    Ok(checks.broken().collect())
}

/// The checks that have networks of their own.
fn beside(seed: u64, checks: &mut Checks) -> Result<(), Failure> {
    checks.add(marks(seed)?);
    few::check(seed, checks)?;
    interplay::forged(seed, checks)?;
    interplay::predicted(seed, checks)
}

/// The checks of congestion marks. A floor on which hardly anything is marked shows nothing of
/// them: then another one is looked at.
fn marks(seed: u64) -> Result<Checks, Failure> {
    let marks_of = |seed| checks_of(seed, &[Part::Admission], (Judged::Marks, MARKED_S));
    let mut checks = marks_of(seed)?;
    for floor in 1..MARKED_FLOORS {
        if !checks.are_open() {
            break;
        }
        if let Ok(others) = marks_of(seed.wrapping_add(floor << 32)) {
            checks = others;
        }
    }
    Ok(checks)
}

/// What a run of so many seconds on the floor of a seed shows, with these parts left out.
fn checks_of(
    seed: u64,
    without: &[Part],
    (judged, seconds): (Judged, u64),
) -> Result<Checks, Failure> {
    let (text, roles) = scenario(seed, (Place::Floor, without), seconds).ok_or_else(unfit)?;
    let played = play(&text, &roles, Some(judged))?;
    Ok(played.checks.unwrap_or_default())
}

/// Runs a scenario whose nodes have these roles; `judged`: and checks requirements.
fn play(text: &str, roles: &Roles, judged: Option<Judged>) -> Result<Played, Failure> {
    let plan = Plan::parse(text, Path::new(""), Overrides::default());
    let plan = plan.map_err(|error| Failure::Topology(error.to_string()))?;
    let point = plan.points.into_iter().next().zip(plan.seeds.first());
    let (point, seed) = point.ok_or_else(unfit)?;
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let opened = Session::open(
        Arc::clone(&point.scenario),
        *seed,
        Captures::default(),
        || false,
    );
    let mut session = opened.map_err(|error| Failure::Topology(error.to_string()))?;
    let mut interplay = match judged {
        Some(_) => Interplay::begin(&mut session),
        None => None,
    };
    let mut troubles = Troubles::default();
    loop {
        let is_over = match &mut interplay {
            Some(interplay) => interplay.advance(&mut session, &watch),
            None => session.advance(session.now() + STEP, &watch),
        };
        troubles.pass(&mut session, &point.scenario, roles)?;
        if is_over {
            break;
        }
    }
    let result = session.finish();
    if let Some(why) = &result.failure {
        return Err(Failure::Topology(why.clone()));
    }
    let conclude = |(interplay, judged): (Interplay, Judged)| {
        interplay.conclude(&point.scenario, roles, &troubles, &result, judged)
    };
    Ok(Played {
        checks: interplay.zip(judged).map(conclude),
        carried: [troubles.died, troubles.worse].map(|it| it.map_or(0, |(_, flows)| flows)),
        result,
    })
}

fn figures(played: &Played, roles: &Roles) -> Vec<(&'static str, f64)> {
    let result = &played.result;
    let flows = |motes: &[usize]| flows(result, motes);
    let (bulk, over_ble) = (flows(&roles.far()), flows(&roles.on_ble));
    let kbps = |flows: &[&FlowResult]| -> Vec<f64> {
        let endless = flows.iter().filter(|flow| flow.messages.is_none());
        endless.map(|flow| flow.goodput_kbps).collect()
    };
    let asleep = flows(&roles.asleep);
    let messages = asleep.iter().chain(&over_ble);
    let [due, came] = messages
        .filter_map(|flow| flow.messages)
        .fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    let nodes = |motes: &[usize]| -> Vec<&NodeResult> {
        motes.iter().filter_map(|n| result.nodes.get(*n)).collect()
    };
    let duties = nodes(&roles.asleep);
    let duties = duties.iter().map(|node| node.counts.radio_duty() * 100.0);
    let lost = result.flows.iter().filter_map(|flow| flow.connections_lost);
    let asked = flows(&roles.asked);
    let asked = asked.iter().filter_map(|flow| flow.latency_p95_ms);
    let in_mesh: Vec<usize> = (1..result.nodes.len() - 1)
        .filter(|node| !roles.on_ble.contains(node))
        .collect();
    let energy = |motes: &[usize], flows: &[&FlowResult]| {
        let spent = nodes(motes).into_iter().map(|node| node.counts);
        let spent_mj: f64 = spent.map(|it| it.radio_mj + it.cpu_mj).sum();
        let bytes: u64 = flows.iter().map(|flow| flow.counted_bytes).sum();
        spent_mj * 1e3 / bytes.max(1) as f64
    };
    let repair = |flows: &[&FlowResult], windows: &[[f64; 2]]| {
        let silence = |flow: &&FlowResult| {
            let all = windows
                .iter()
                .map(|window| silence_s(result, flow, *window));
            all.fold(0.0, f64::max)
        };
        flows.iter().map(silence).fold(0.0, f64::max)
    };
    let windows = [
        // A relay dies, and later a link gets worse.
        [DIES_AT_S as f64, REBOOTS_AT_S as f64],
        [REBOOTS_AT_S as f64, result.seconds + WARMUP_S as f64],
    ];
    let endless: Vec<&FlowResult> = over_ble
        .iter()
        .copied()
        .filter(|it| it.messages.is_none())
        .collect();
    vec![
        ("goodput", kbps(&bulk).iter().sum()),
        (
            "goodput_least",
            kbps(&bulk).into_iter().fold(f64::INFINITY, f64::min),
        ),
        ("goodput_ble", kbps(&over_ble).iter().sum()),
        ("jain", jain(&kbps(&bulk))),
        ("delivery", came as f64 / f64::max(due as f64, 1.0)),
        ("radio_duty_cycle", mean(&duties.collect::<Vec<_>>())),
        ("repair_s", repair(&bulk, &windows[..1])),
        ("repair_restart_s", repair(&bulk, &windows[1..])),
        ("repair_ble_s", repair(&endless, &windows)),
        ("repair_asleep_s", repair(&asleep, &windows)),
        ("relay_carried", played.carried[0] as f64),
        ("link_carried", played.carried[1] as f64),
        ("connections_lost", f64::from(lost.sum::<u32>())),
        ("energy_per_byte", energy(&in_mesh, &bulk)),
        ("energy_per_byte_ble", energy(&roles.on_ble, &over_ble)),
        ("request_p95", mean(&asked.collect::<Vec<_>>())),
    ]
}

/// The flows that begin or end at one of these motes.
fn flows<'r>(result: &'r RunResult, motes: &[usize]) -> Vec<&'r FlowResult> {
    let of = |end: FlowEnd| match end {
        FlowEnd::Node(n) => motes.contains(&n),
        FlowEnd::Host => false,
    };
    let flows = result.flows.iter();
    flows.filter(|flow| of(flow.from) || of(flow.to)).collect()
}

/// The longest time without a byte of a flow in a stretch of the run, beyond the time between two
/// of its messages, s.
fn silence_s(result: &RunResult, flow: &FlowResult, [from, to]: [f64; 2]) -> f64 {
    let silence = result.silence_s(flow.flow, [from, to]).unwrap_or(to - from);
    let pause = match flow.messages {
        Some(_) => READS_EACH_S as f64,
        None => 0.0,
    };
    (silence - pause).max(0.0)
}

/// How long the run is in which congestion marks are looked for, s.
const MARKED_S: u64 = 240;

/// Floors of a seed that are looked at for marks, at most.
const MARKED_FLOORS: u64 = 4;

/// How long each bulk flow has the mesh for itself, s.
const ALONE_S: u64 = 120;

/// Between two looks at the run.
const STEP: Duration = Duration::from_secs(1);
