//! A run, one point of a scenario with one seed, that a caller opens, advances, inspects and ends.
//!
//! Purpose: for callers that show a run while it advances, or end it early. `Plan::run` uses the
//! same code, so the results do not depend on how often a run was interrupted or inspected.
//! Place: it owns the memory of its nodes, so that its type has no lifetime parameter.
//! A caller may change it while it goes on, by a [`Change`]: the same changes at the same times
//! give the same run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use motet::link::{Link, Mesh};
use motet::time::{Duration, Instant};
use self_cell::self_cell;

use super::flow::Flow;
use super::model::{Scenario, seconds};
use super::run::{Captured, Captures, Counts, Run, Watch, failed};
use crate::Arena;
use crate::air::gains::{Gains, Later};
use crate::air::log::Seen;
use crate::air::radio::{OFF_MIN, State};
use crate::capture::Capture;
use crate::net::moves;
use crate::net::network::{Arrivals, RADIO};
use crate::net::outages::Switch;
use crate::net::run::{Ended, Next, Stretch};
use crate::net::topology::TopologyError;
use crate::net::wire::Wire;
use crate::scenario::{RunResult, Sample};

/// A run of a scenario with one seed, in virtual time.
///
/// It begins with the nodes switched off or alone; [`Self::advance`] lets time pass. Its results do
/// not depend on how often it was interrupted, observed or inspected.
pub struct Session {
    cell: Cell,
    tell: Option<std::sync::mpsc::Sender<(Captured, std::io::Error)>>,
    /// Samples that [`Self::take_samples`] has given.
    samples_taken: usize,
}

/// The values that a run's borrowers refer to.
struct Owner {
    scenario: Arc<Scenario>,
    arena: Arena,
}

self_cell!(
    struct Cell {
        owner: Owner,
        #[not_covariant]
        dependent: RunUnderWay,
    }
);

/// A run and how far it is.
struct RunUnderWay<'m> {
    run: Run<'m>,
    phase: Phase,
}

/// How far a run is.
enum Phase {
    /// Motes look for a parent and an address.
    Joining(Stretch, Arrivals),
    /// The flows are under way.
    Measuring(Course),
    /// The run is over. `Ok`: whether all is done; `Err`: why the run counts for nothing.
    Over(Option<Course>, Result<bool, String>),
}

/// The measurement: its times, and the counters at its beginning.
struct Course {
    stretch: Stretch,
    joined: Instant,
    warm: Instant,
    end: Instant,
    every: Duration,
    /// The counters when the warm-up ended.
    before: Option<Counts>,
    sample_at: Instant,
    /// Up to when it has told how far it is.
    told: Instant,
}

/// A run at a moment.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// Virtual time, s since the nodes were switched on.
    pub now_s: f64,
    /// When all motes had joined, on the same clock; none before.
    pub joined_s: Option<f64>,
    /// A view of each flow, in the scenario's order; empty before all motes have joined.
    pub flows: Vec<FlowView>,
    /// A view of each mesh node, the border router first.
    pub nodes: Vec<NodeView>,
}

/// A flow at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowView {
    /// Application bytes that the flow has delivered.
    pub bytes: u64,
    /// Smoothed round-trip time, ms; 0 before the first one.
    pub rtt_ms: u32,
    /// Congestion window, bytes; 0 without a connection.
    pub cwnd_bytes: u16,
    /// Slow-start threshold, bytes.
    pub ssthresh_bytes: u16,
    /// The window that the other end gives the sender, bytes.
    pub peer_window_bytes: u16,
    /// Bytes sent and not acknowledged.
    pub inflight_bytes: u16,
}

/// A node at a moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NodeView {
    /// Whether the node is switched on.
    pub is_on: bool,
    /// The mote's parent, if it has one.
    pub parent: Option<usize>,
    /// Frames that wait in its MAC or are under way; none over Bluetooth LE.
    pub queue_frames: Option<usize>,
    /// Whether a whole packet waits for room in that queue.
    pub packet_waits: bool,
    /// The radio's state; none over Bluetooth LE.
    pub radio: Option<State>,
    /// The node's rank, where RPL gives it one.
    pub rank: Option<u16>,
    /// Transmissions for each frame that its parent acknowledged; none before the first one.
    pub etx: Option<f64>,
    /// What its radio and its processor have used since the node was switched on first, mJ; none
    /// over Bluetooth LE.
    pub energy_mj: Option<f64>,
}

/// What a caller does to a run while it goes on.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A mesh node is switched off. Its connections are lost.
    Off(usize),
    /// A mesh node that is off is switched on, 100 ms later: a cold start.
    On(usize),
    /// All mesh nodes hear one another by these gains.
    Gains(Gains),
    /// So many frames are lost besides, as `radio.frame_loss`: a share, 0 to 1.
    FrameLoss(f64),
}

impl Session {
    /// Opens a run. Once `stops` says so, while a large network is built, the rest of it is left
    /// out: it is not to be advanced.
    ///
    /// # Errors
    /// [`TopologyError`]: no mesh can be built of these nodes, which [`super::Plan`] has ruled out.
    pub fn open(
        scenario: Arc<Scenario>,
        seed: u64,
        captures: Captures,
        stops: impl Fn() -> bool,
    ) -> Result<Self, TopologyError> {
        let owner = Owner {
            scenario,
            arena: Arena::new(),
        };
        let Captures { air, wire, failed } = captures;
        let cell = Cell::try_new(owner, |owner| {
            let mut run = Run::new(&owner.scenario, &owner.arena, seed, stops)?;
            let world = &mut run.network.world;
            world.set_capture(air);
            if let (Some(wire), Some(capture)) = (world.wire_mut(), wire) {
                wire.set_capture(capture);
            }
            let until = run.switched_on + run.scenario.join_max();
            let phase = Phase::Joining(
                Stretch::new(until),
                Arrivals::without(&run.scenario.network.absent),
            );
            Ok(RunUnderWay { run, phase })
        })?;
        Ok(Self {
            cell,
            tell: failed,
            samples_taken: 0,
        })
    }

    /// Advances virtual time to `to`, or until the run is over; returns whether it is. `watch` can
    /// end it early.
    pub fn advance(&mut self, to: Instant, watch: &Watch<'_>) -> bool {
        self.cell
            .with_dependent_mut(|_, going| going.advance(to, watch))
    }

    /// Changes the run from now on.
    ///
    /// # Errors
    /// A sentence: there is no such node, or the share is none.
    pub fn change(&mut self, change: &Change) -> Result<(), String> {
        self.cell
            .with_dependent_mut(|_, going| going.change(change))
    }

    /// Virtual time since the nodes were switched on.
    pub fn now(&self) -> Instant {
        self.cell
            .with_dependent(|_, going| going.run.network.world.now())
    }

    /// Whether nothing is left to happen.
    pub fn is_over(&self) -> bool {
        self.cell
            .with_dependent(|_, going| matches!(going.phase, Phase::Over(..)))
    }

    /// The network at this moment.
    #[cfg(all(feature = "captures", feature = "firmware"))]
    pub(crate) fn inspect<T>(
        &self,
        look: impl FnOnce(&crate::net::network::Network<'_>) -> T,
    ) -> T {
        self.cell
            .with_dependent(|_, going| look(&going.run.network))
    }

    /// Writes each packet of the wire, each frame of the mesh and each packet of Bluetooth LE's air
    /// to a capture of its own from now on, where there are such.
    #[cfg(all(feature = "captures", feature = "firmware"))]
    pub(crate) fn record(&mut self, [wire, mesh, over_ble]: [Capture; 3]) {
        self.cell.with_dependent_mut(|_, going| {
            let world = &mut going.run.network.world;
            if let Some(own) = world.wire_mut() {
                own.set_capture(wire);
            }
            world.set_mesh_capture(mesh);
            if let Some(air) = world.ble_mut() {
                air.set_capture(Some(over_ble));
            }
        });
    }

    /// Begins to log frames and radio states, at most `limit` happenings between two calls of
    /// [`Self::take_seen`].
    pub fn observe(&mut self, limit: usize) {
        self.cell
            .with_dependent_mut(|_, going| going.run.network.world.observe(Some(limit)));
    }

    /// Takes the events seen since the last time; nothing unless somebody observes.
    pub fn take_seen(&mut self) -> Seen {
        self.cell
            .with_dependent_mut(|_, going| going.run.network.world.take_seen())
    }

    /// Takes the samples of the flows since the last time, at the scenario's interval: windows,
    /// round-trip times, goodput.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        let from = self.samples_taken;
        let new = self.cell.with_dependent(|_, going| {
            let samples = going.run.samples.get(from..);
            samples.unwrap_or_default().to_vec()
        });
        self.samples_taken += new.len();
        new
    }

    /// The run as it is at this moment.
    pub fn view(&self) -> View {
        self.cell.with_dependent(|_, going| going.view())
    }

    /// What the run has given up to now. One that is not over is incomplete.
    pub fn result(&self) -> RunResult {
        self.cell.with_dependent(|_, going| going.result())
    }

    /// Ends the run at its present time, with its captures; returns the results.
    ///
    /// One that was not over is incomplete. Samples are kept in every run; a caller that does not
    /// need them removes them.
    pub fn finish(mut self) -> RunResult {
        let tell = self.tell.take();
        self.cell.with_dependent_mut(|_, going| {
            let result = going.result();
            let world = &mut going.run.network.world;
            let air = world.take_capture().map(Capture::finish);
            let wire = world.wire_mut().map(Wire::finish_capture);
            for (which, finished) in [(Captured::Air, air), (Captured::Wire, wire)] {
                if let (Some(Err(error)), Some(tell)) = (finished, &tell) {
                    // The receiver is gone if the caller has not requested a capture.
                    let _ = tell.send((which, error));
                }
            }
            result
        })
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let now = self.now();
        f.debug_struct("Session").field("now", &now).finish()
    }
}

impl RunUnderWay<'_> {
    fn change(&mut self, change: &Change) -> Result<(), String> {
        self.run.change(change)?;
        // What is due next may have become another.
        match &mut self.phase {
            Phase::Joining(stretch, _) => stretch.look_anew(),
            Phase::Measuring(course) => course.stretch.look_anew(),
            Phase::Over(..) => {}
        }
        Ok(())
    }

    fn advance(&mut self, to: Instant, watch: &Watch<'_>) -> bool {
        loop {
            let run = &mut self.run;
            self.phase = match &mut self.phase {
                Phase::Over(..) => return true,
                Phase::Joining(stretch, arrivals) => {
                    let look = |run: &mut Run<'_>| run.look_for_arrivals(arrivals, watch);
                    if stretch.go(run, to, look).is_none() {
                        return false;
                    }
                    let network = &run.network;
                    match arrivals.look(&network.world, network.mesh_nodes()) {
                        true => Phase::Measuring(Course::begin(run)),
                        false => Phase::Over(None, Err(unjoined(run, arrivals))),
                    }
                }
                Phase::Measuring(course) => {
                    let mut stretch = course.stretch;
                    let ended = stretch.go(run, to, |run| course.look(run, watch));
                    course.stretch = stretch;
                    let Some(ended) = ended else { return false };
                    let ends_well = course.conclude(run, ended, watch);
                    let Phase::Measuring(course) = std::mem::replace(&mut self.phase, NOTHING)
                    else {
                        return true;
                    };
                    Phase::Over(Some(course), ends_well)
                }
            };
        }
    }

    fn result(&self) -> RunResult {
        let run = &self.run;
        let (course, is_whole) = match &self.phase {
            Phase::Joining(..) => {
                let why = "it was ended before all motes had an address and a route";
                return failed(run.seed, why.to_owned());
            }
            Phase::Measuring(course) => (course, false),
            Phase::Over(_, Err(why)) => return failed(run.seed, why.clone()),
            Phase::Over(None, Ok(_)) => return failed(run.seed, String::new()),
            Phase::Over(Some(course), Ok(is_whole)) => (course, *is_whole),
        };
        let nothing = run.nothing();
        let (from, before) = match &course.before {
            Some(before) => (course.warm, before),
            None => (course.joined, &nothing),
        };
        let mut result = run.result(course.joined, from, before);
        result.complete = is_whole && result.failed_flows().next().is_none();
        result
    }

    fn view(&self) -> View {
        let run = &self.run;
        let world = &run.network.world;
        let s = |at: Instant| at.as_micros() as f64 / 1e6;
        let joined = match &self.phase {
            Phase::Joining(..) | Phase::Over(None, _) => None,
            Phase::Measuring(course) | Phase::Over(Some(course), _) => Some(course.joined),
        };
        let node = |node: usize| {
            let mesh = match world.node(node).link(RADIO) {
                Some(Link::Mesh(mesh)) => Some(mesh),
                _ => None,
            };
            let parent = moves::parent(&run.network, node);
            let energy = world.energy(node);
            NodeView {
                is_on: world.is_on(node),
                parent,
                queue_frames: mesh.map(|mesh| mesh.mac().queue_len()),
                packet_waits: mesh.is_some_and(Mesh::has_packet_waiting),
                radio: world.state(node),
                rank: moves::rank(&run.network, node),
                etx: parent.and_then(|parent| moves::etx(&run.network, node, parent)),
                energy_mj: energy.map(|energy| energy.radio_mj + energy.cpu_mj),
            }
        };
        View {
            now_s: s(world.now()),
            joined_s: joined.map(s),
            flows: run.flows.iter().map(|flow| flow.view(world)).collect(),
            nodes: (0..run.network.mesh_nodes()).map(node).collect(),
        }
    }
}

impl Course {
    fn begin(run: &mut Run<'_>) -> Self {
        run.begin();
        let timing = &run.scenario.timing;
        let joined = run.network.world.now();
        let end = joined + seconds(timing.duration_s);
        let every = run.sample_interval();
        Self {
            stretch: Stretch::new(end),
            joined,
            warm: joined + seconds(timing.warmup_s),
            end,
            every,
            before: None,
            sample_at: joined + every,
            told: joined,
        }
    }

    /// Does what is due, and returns the time up to which nothing else is.
    fn look(&mut self, run: &mut Run<'_>, watch: &Watch<'_>) -> Next {
        let joined = self.joined;
        run.switch();
        run.moves.look(&run.network);
        run.start_flows();
        let now = run.network.world.now();
        watch.tell(now.since(self.told));
        self.told = now;
        if self.before.is_none() && now >= self.warm {
            self.before = Some(run.count());
        }
        if now >= self.sample_at {
            run.sample(self.sample_at, joined, self.every, self.before.is_some());
            self.sample_at += self.every;
        }
        run.look_at_hour(joined);
        if now >= self.end || run.is_over() || watch.stops() {
            return Next::Over;
        }
        let starts_at = run.flows.iter().filter_map(Flow::starts_at).min();
        let pause = [self.sample_at, now + PAUSE, run.hours.next_at(joined)]
            .into_iter()
            .chain((self.before.is_none()).then_some(self.warm))
            .chain(starts_at)
            .chain(run.outages.next_at())
            .min();
        Next::At(pause.unwrap_or(self.end))
    }

    /// Whether the run went to its end, or why it counts for nothing.
    fn conclude(&self, run: &Run<'_>, ended: Ended, watch: &Watch<'_>) -> Result<bool, String> {
        let now = run.network.world.now();
        let fairness = run.network.world.fairness();
        if fairness.is_some_and(|fairness| !fairness.is_balanced()) {
            let why = "the packets out of the border router are not those that went in";
            return Err(why.to_owned());
        }
        // Reports the remaining time as done, so that the progress bar reaches its end.
        watch.tell(self.end.since(now));
        Ok(ended == Ended::Over && (now >= self.end || run.is_over()))
    }
}

impl Run<'_> {
    fn change(&mut self, change: &Change) -> Result<(), String> {
        let (nodes, now) = (self.network.mesh_nodes(), self.network.world.now());
        match change {
            Change::Off(node) | Change::On(node) if *node >= nodes => {
                return Err(format!(
                    "there is no node {node}, but 0 to {}",
                    nodes.saturating_sub(1)
                ));
            }
            Change::Off(node) => self.outages.add(now, *node, Switch::Off),
            Change::On(node) => self.outages.add(now + OFF_MIN, *node, Switch::On),
            Change::Gains(gains) if gains.nodes() != nodes => {
                return Err(format!("gains of {} nodes, but {nodes}", gains.nodes()));
            }
            Change::Gains(gains) => {
                let of = |from| (0..nodes).map(move |to| (from, to));
                let pairs = (0..nodes).flat_map(of).filter(|(from, to)| from != to);
                let later = pairs.map(|(from, to)| Later {
                    at: now,
                    from,
                    to,
                    db: gains.get(from, to).unwrap_or(f64::NEG_INFINITY),
                });
                self.network.world.change_later(later.collect());
            }
            Change::FrameLoss(loss) if !(0.0..=1.0).contains(loss) => {
                return Err(format!("a share of frames is 0 to 1, not {loss}"));
            }
            Change::FrameLoss(loss) => self.network.world.set_frame_loss(*loss),
        }
        self.switch();
        Ok(())
    }

    /// Switches nodes on, and notes which motes have joined.
    fn look_for_arrivals(&mut self, arrivals: &mut Arrivals, watch: &Watch<'_>) -> Next {
        self.switch();
        let network = &self.network;
        let has_joined =
            arrivals.look(&network.world, network.mesh_nodes()) && self.outages.next_at().is_none();
        let now = self.network.world.now();
        let looked_at = self.moves.looked_at();
        if has_joined || looked_at.is_none_or(|at| now >= at + LOOK_EVERY) {
            self.moves.look(&self.network);
        }
        match self.outages.next_at() {
            _ if has_joined || watch.stops() => Next::Over,
            Some(at) => Next::At(at),
            None => Next::Event,
        }
    }
}

impl Watch<'_> {
    /// Adds `passed`, virtual time, to what the watcher reads.
    fn tell(&self, passed: Duration) {
        self.done_ms
            .fetch_add(passed.as_millis(), Ordering::Relaxed);
    }
}

fn unjoined(run: &Run<'_>, arrivals: &Arrivals) -> String {
    let network = &run.network;
    format!(
        "not all motes had an address and a route after {} s: {}",
        run.scenario.timing.join_s,
        arrivals.describe_missing(&network.world, network.mesh_nodes())
    )
}

/// Takes the place of a phase that is just being left.
const NOTHING: Phase = Phase::Over(None, Ok(false));

/// The interval at which motes are checked for having joined, in virtual time.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often a run looks whether it shall stop, in virtual time.
const PAUSE: Duration = Duration::from_secs(1);
