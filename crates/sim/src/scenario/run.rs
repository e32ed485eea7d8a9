//! One run: a point of a scenario with one seed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use motet::ip;
use motet::link::{self, Link};
use motet::lowpan::datagram;
use motet::mac;
use motet::tcp::CongestionAlgorithm;
use motet::time::{Duration, Instant};

use super::bound::RunBound;
use super::flow::{self, Flow, seconds};
use super::hours::Hours;
use super::model::{Scenario, StackSettings};
use super::shares;
use crate::Arena;
use crate::air::LinkTally;
use crate::air::radio::{State, Usage};
use crate::ble;
use crate::capture::Capture;
use crate::net::moves::{self, Moves};
use crate::net::network::{Arrivals, Network, NetworkOptions, RADIO};
use crate::net::outages::Outages;
use crate::net::run::{self, Next};
use crate::net::world::World;
use crate::scenario::{FlowResult, LinkResult, NodeCounts, NodeResult, RunResult, Sample};

/// Captures of one run.
#[derive(Debug, Default)]
pub struct Captures {
    /// Of the air.
    pub air: Option<Capture>,
    /// Of the wire.
    pub wire: Option<Capture>,
    /// Failures to finish one, told to whoever holds the other end.
    pub failed: Option<std::sync::mpsc::Sender<(Captured, std::io::Error)>>,
}

/// What a capture is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Captured {
    /// The air.
    Air,
    /// The border router's wire.
    Wire,
}

/// How far all runs are, and whether they shall stop.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// Set to stop.
    pub stop: &'a AtomicBool,
    /// Milliseconds of virtual time done, in all runs.
    pub done_ms: &'a AtomicU64,
}

impl Watch<'_> {
    /// Whether it is time to stop.
    pub(crate) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs one point with one seed.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    sampled: bool,
    watch: &Watch<'_>,
    captures: Captures,
) -> RunResult {
    let arena = Arena::new();
    let options = NetworkOptions {
        seed,
        ..scenario.network.clone()
    };
    let network = match Network::new_unless(options, &arena, || watch.stops()) {
        Ok(network) => network,
        Err(error) => return failed(seed, error.to_string()),
    };
    let mut run = Run {
        scenario,
        network,
        arena: &arena,
        flows: Vec::new(),
        bound: None,
        samples: Vec::new(),
        outages: Outages::default(),
        switched_on: Instant::ORIGIN,
        moves: Moves::of(scenario.network.nodes.len()),
        hours: Hours::default(),
        lost_counts: vec![NodeCounts::default(); scenario.network.nodes.len()],
    };
    let Captures {
        air,
        wire,
        failed: tell,
    } = captures;
    run.network.world.set_capture(air);
    run.network.world.take_census();
    if let (Some(wire), Some(capture)) = (run.network.world.wire_mut(), wire) {
        wire.set_capture(capture);
    }
    let mut result = run.go(seed, watch);
    if !sampled {
        result.samples = Vec::new();
    }
    let world = &mut run.network.world;
    let air = world.take_capture().map(Capture::finish);
    let wire = world.wire_mut().map(crate::net::wire::Wire::finish_capture);
    for (which, finished) in [(Captured::Air, air), (Captured::Wire, wire)] {
        if let (Some(Err(error)), Some(tell)) = (finished, &tell) {
            // Nobody listens: nobody asked for a capture.
            let _ = tell.send((which, error));
        }
    }
    result
}

fn failed(seed: u64, why: String) -> RunResult {
    RunResult {
        point: 0,
        seed,
        complete: false,
        failure: Some(why),
        joined_s: 0.0,
        seconds: 0.0,
        bound_kbps: None,
        flows: Vec::new(),
        nodes: Vec::new(),
        links: Vec::new(),
        packets_injected_lost: 0,
        acks_thinned: 0,
        samples: Vec::new(),
        moves: Vec::new(),
        hours: Vec::new(),
    }
}

struct Run<'a, 'm> {
    scenario: &'a Scenario,
    network: Network<'m>,
    arena: &'m Arena,
    flows: Vec<Flow<'a>>,
    bound: Option<RunBound>,
    samples: Vec<Sample>,
    outages: Outages,
    /// When the last node was switched on first.
    switched_on: Instant,
    moves: Moves,
    hours: Hours,
    /// By mesh node: what its stack counted before it was switched off.
    lost_counts: Vec<NodeCounts>,
}

impl<'m> AsMut<World<'m>> for Run<'_, 'm> {
    fn as_mut(&mut self) -> &mut World<'m> {
        &mut self.network.world
    }
}

/// What is counted, at one moment.
struct Counts {
    bytes: Vec<u64>,
    nodes: Vec<NodeCounts>,
    links: BTreeMap<(usize, usize), LinkTally>,
    packets_lost: u64,
    acks_thinned: u64,
}

impl<'m> Run<'_, 'm> {
    fn go(&mut self, seed: u64, watch: &Watch<'_>) -> RunResult {
        let timing = &self.scenario.timing;
        if !self.join(watch) {
            let why = format!(
                "not all motes had an address and a route after {} s: raise join_s, or set topology.joining to \"static\"",
                timing.join_s
            );
            return failed(seed, why);
        }
        let joined = self.network.world.now();
        self.flows = flow::all(self.scenario, &mut self.network, self.arena, seed);
        self.bound = RunBound::new(self.scenario, &self.network, &self.flows);
        self.outages = self.scenario.outages(joined);
        let changes = self.scenario.link_faults(joined);
        self.network.world.change_later(changes);
        let warm = joined + seconds(timing.warmup_s);
        let end = joined + seconds(timing.duration_s);
        let every = self.sample_interval();
        let mut before = None;
        let mut sample_at = joined + every;
        let mut last = joined;
        let is_over = run::run(self, end, |run| {
            run.switch();
            run.moves.look(&run.network);
            run.start_flows();
            let now = run.network.world.now();
            let passed = now.since(last).as_millis();
            watch.done_ms.fetch_add(passed, Ordering::Relaxed);
            last = now;
            if before.is_none() && now >= warm {
                before = Some(run.count());
            }
            if now >= sample_at {
                run.sample(sample_at, joined, every, before.is_some());
                sample_at += every;
            }
            run.look_at_hour(joined);
            if now >= end || run.is_over() || watch.stops() {
                return Next::Over;
            }
            let pause = [sample_at, now + PAUSE, run.hours.next_at(joined)]
                .into_iter()
                .chain((before.is_none()).then_some(warm))
                .chain(run.next_start())
                .chain(run.outages.next_at())
                .min();
            Next::At(pause.unwrap_or(end))
        });
        let is_whole = self.network.world.now() >= end || self.is_over();
        let complete = is_over && is_whole;
        let fairness = self.network.world.fairness();
        if fairness.is_some_and(|fairness| !fairness.is_balanced()) {
            let why = "the packets out of the border router are not those that went in";
            return failed(seed, why.to_owned());
        }
        let from = if before.is_some() { warm } else { joined };
        let before = before.unwrap_or_else(|| self.nothing());
        let mut result = self.result(seed, joined, from, &before);
        result.complete = complete && result.failed_flows().next().is_none();
        // What was promised and not needed, so that the bar comes to its end.
        let rest = end.since(self.network.world.now());
        watch.done_ms.fetch_add(rest.as_millis(), Ordering::Relaxed);
        result
    }

    /// Switches all nodes on, and waits for them; says whether all have joined.
    fn join(&mut self, watch: &Watch<'_>) -> bool {
        let within = self.scenario.switched_on_within;
        if within > Duration::ZERO {
            let (outages, last) = Outages::staggered(&mut self.network, within);
            (self.outages, self.switched_on) = (outages, last);
        }
        let until = self.switched_on + seconds(self.scenario.timing.join_s);
        let mut arrivals = Arrivals::default();
        run::run(self, until, |run| {
            run.switch();
            let has_joined = arrivals.look(&run.network) && run.outages.next_at().is_none();
            let now = run.network.world.now();
            let looked_at = run.moves.looked_at();
            if has_joined || looked_at.is_none_or(|at| now >= at + LOOK_EVERY) {
                run.moves.look(&run.network);
            }
            match run.outages.next_at() {
                _ if has_joined || watch.stops() => Next::Over,
                Some(at) => Next::At(at),
                None => Next::Event,
            }
        });
        arrivals.look(&self.network)
    }

    fn sample_interval(&self) -> Duration {
        let timing = &self.scenario.timing;
        if timing.sample_s > 0.0 {
            seconds(timing.sample_s)
        } else {
            seconds((timing.duration_s / 200.0).max(0.5))
        }
    }

    fn next_start(&self) -> Option<Instant> {
        self.flows.iter().filter_map(Flow::starts_at).min()
    }

    /// Switches nodes off and on whose time has come.
    fn switch(&mut self) {
        let lost = &mut self.lost_counts;
        let note = |network: &Network<'_>, node: usize, _| {
            lost[node].add_stack(&count_stack(&network.world, node));
        };
        self.outages.pass(&mut self.network, self.arena, note);
    }

    /// Whether a node of the world is off, and stays so.
    fn is_gone(&self, node: usize) -> bool {
        !self.network.world.is_on(node) && self.outages.is_last_of(node)
    }

    /// Starts what is due.
    fn start_flows(&mut self) {
        for flow in &mut self.flows {
            flow.start(self.scenario, &mut self.network, self.arena);
        }
    }

    fn is_over(&self) -> bool {
        let mut flows = self.flows.iter();
        flows.all(|flow| flow.is_over(&self.network.world, |node| self.is_gone(node)))
    }

    fn sample(&mut self, at: Instant, joined: Instant, every: Duration, is_warm: bool) {
        let interval_s = every.as_micros() as f64 / 1e6;
        let at_s = at.since(joined).as_micros() as f64 / 1e6;
        let last = joined + at.since(joined + every);
        for flow in &mut self.flows {
            let stack = self.scenario.stacks.get(flow.sender());
            let window = stack.map(|stack| stack.window_segments);
            let world = &self.network.world;
            let sample = flow.sample(world, at_s, interval_s, last, window, is_warm);
            self.samples.extend(sample);
        }
    }

    /// Notes what motes that sleep have used, once an hour is over.
    fn look_at_hour(&mut self, joined: Instant) {
        let now = self.network.world.now();
        if self.hours.has_begun() && now < self.hours.next_at(joined) {
            return;
        }
        let nodes = self.scenario.network.nodes.iter().enumerate();
        let sleepers = nodes.filter(|(_, node)| node.sleep.is_some());
        let counts = sleepers.map(|(node, _)| (node, self.count_node(node)));
        self.hours.note(counts.collect());
    }

    fn nothing(&self) -> Counts {
        Counts {
            bytes: vec![0; self.flows.len()],
            nodes: vec![NodeCounts::default(); self.network.mesh_nodes() + 1],
            links: BTreeMap::new(),
            packets_lost: 0,
            acks_thinned: 0,
        }
    }

    fn count(&self) -> Counts {
        let world = &self.network.world;
        let bytes = self.flows.iter().map(|flow| flow.delivered(world));
        Counts {
            bytes: bytes.collect(),
            nodes: (0..self.network.mesh_nodes())
                .map(|node| self.count_node(node))
                .chain([self.count_host()])
                .collect(),
            links: world.links().collect(),
            packets_lost: world.wire().map_or(0, |wire| wire.tally.lost),
            acks_thinned: self.network.acks_thinned(),
        }
    }

    /// What all stacks of the host did.
    fn count_host(&self) -> NodeCounts {
        let mut counts = NodeCounts::default();
        for stack in self.network.mesh_nodes()..self.network.world.nodes() {
            let own = self.count_node(stack);
            counts.segments += own.segments;
            for (sum, count) in counts.retransmissions.iter_mut().zip(own.retransmissions) {
                *sum += count;
            }
        }
        counts
    }

    fn count_node(&self, number: usize) -> NodeCounts {
        let world = &self.network.world;
        let mut counts = count_stack(world, number);
        if let Some(lost) = self.lost_counts.get(number) {
            counts.add_stack(lost);
        }
        if let Some((device, ble)) = world.device(number).zip(world.ble()) {
            count_device(&mut counts, device, ble, world.now());
            return counts;
        }
        let sent = world.sent(number);
        counts.control_frames = sent.control_frames;
        counts.control_us = sent.control_time.as_micros();
        if let Some(usage) = world.usage(number) {
            counts.states_us = spans(&usage);
            counts.cpu_us = usage.cpu().as_micros();
        }
        if let Some(energy) = world.energy(number) {
            counts.radio_mj = energy.radio_mj;
            counts.cpu_mj = energy.cpu_mj;
        }
        counts
    }

    fn result(&self, seed: u64, joined: Instant, from: Instant, before: &Counts) -> RunResult {
        let now = self.count();
        let seconds = self.network.world.now().since(from).as_micros() as f64 / 1e6;
        let flows = self.flows.iter().enumerate();
        let mut flows: Vec<FlowResult> = flows
            .map(|(number, flow)| {
                let bytes = now.bytes[number] - before.bytes[number];
                let is_gone = |node| self.is_gone(node);
                flow.result(&self.network.world, (bytes, seconds), is_gone)
            })
            .collect();
        let nodes = self.node_results(&now, before, from);
        let carried = self.flows.iter().zip(&flows);
        let carried = carried.map(|(flow, result)| (flow.path(), result.counted_bytes));
        let shares = shares::energy_mj(&carried.collect::<Vec<_>>(), &nodes);
        for (flow, energy_mj) in flows.iter_mut().zip(shares) {
            flow.energy_mj = energy_mj;
        }
        let broken = flows.iter().find(|flow| !flow.intact);
        let first = self.flows.first().zip(flows.first());
        let bound_kbps = first.zip(self.bound.as_ref());
        let bound_kbps = bound_kbps.map(|((flow, result), bound)| {
            bound.kbps(seconds, result.counted_bytes, flow.began_before(from))
        });
        RunResult {
            point: 0,
            seed,
            complete: false,
            failure: broken
                .map(|flow| format!("{} delivered other bytes than were sent", flow.name())),
            joined_s: joined.since(self.switched_on).as_micros() as f64 / 1e6,
            seconds,
            bound_kbps,
            nodes,
            links: link_results(&now, before),
            packets_injected_lost: now.packets_lost - before.packets_lost,
            acks_thinned: now.acks_thinned.saturating_sub(before.acks_thinned),
            samples: self.samples.clone(),
            moves: self.moves.log(joined),
            hours: self.hours.results(),
            flows,
        }
    }

    fn node_results(&self, now: &Counts, before: &Counts, from: Instant) -> Vec<NodeResult> {
        let mesh_nodes = self.network.mesh_nodes();
        let nodes = now.nodes.iter().zip(&before.nodes).enumerate();
        nodes
            .map(|(node, (now, before))| {
                let counts = now.since(before);
                match node < mesh_nodes {
                    true => self.node_result(node, counts, from),
                    false => NodeResult {
                        name: "host".to_owned(),
                        counts,
                        ..NodeResult::default()
                    },
                }
            })
            .collect()
    }

    fn node_result(&self, node: usize, counts: NodeCounts, from: Instant) -> NodeResult {
        let parent = self.moves.parent(node);
        let hops = self.moves.hops(node);
        NodeResult {
            name: self.network.name(node).to_owned(),
            parent,
            hops: hops.unwrap_or_else(|| self.network.tree().depth(node)),
            rank: moves::rank(&self.network, node),
            etx: parent.and_then(|parent| moves::etx(&self.network, node, parent)),
            joined_s: self.moves.joined_s(node, self.switched_on),
            parent_changes: self.moves.changes(node, from),
            battery_days: self.battery_days(node, &counts),
            counts,
        }
    }

    /// For how long the battery of a mote would last, if the scenario has one.
    fn battery_days(&self, node: usize, counts: &NodeCounts) -> Option<f64> {
        let battery = self.scenario.battery.filter(|_| node > 0)?;
        let volts = self
            .scenario
            .network
            .nodes
            .get(node)?
            .profile
            .currents
            .volts;
        battery.days(counts.power_mw().iter().sum(), volts)
    }
}

/// What the stack of a node has counted since it started.
fn count_stack(world: &World<'_>, number: usize) -> NodeCounts {
    let node = world.node(number);
    let tcp = node.tcp().counters();
    let mut counts = NodeCounts {
        segments: tcp.sent.into(),
        retransmissions: tcp.retransmissions.map(u64::from),
        ..NodeCounts::default()
    };
    if let Some(Link::Ble(_)) = node.link(RADIO) {
        let drops = [
            ip::PacketDrop::QueueFull,
            ip::PacketDrop::TooOld,
            ip::PacketDrop::NoRoute,
            ip::PacketDrop::SentBack,
        ];
        for (place, reason) in (IP_DROPS..).zip(drops) {
            counts.drops[place] = node.ip().counters.dropped(reason).into();
        }
    }
    if let Some(Link::Mesh(radio)) = node.link(RADIO) {
        let mac = radio.mac().counters();
        counts.transmissions = mac.transmissions.into();
        counts.retries = mac.retries.into();
        counts.channel_busy = mac.channel_busy.into();
        let fragments = radio.datagrams().counters();
        let drops = [
            mac.dropped(mac::FrameDrop::NoAck),
            mac.dropped(mac::FrameDrop::ChannelBusy),
            mac.dropped(mac::FrameDrop::TooOld),
            mac.dropped(mac::FrameDrop::QueueFull),
            radio.counters().dropped(link::LinkDrop::RelayQueueFull),
            node.ip().counters.dropped(ip::PacketDrop::QueueFull),
            node.ip().counters.dropped(ip::PacketDrop::TooOld),
            node.ip().counters.dropped(ip::PacketDrop::NoRoute),
            node.ip().counters.dropped(ip::PacketDrop::SentBack),
            node.ip().counters.dropped(ip::PacketDrop::Loop),
            node.ip().counters.dropped(ip::PacketDrop::Instance),
            node.ip().counters.dropped(ip::PacketDrop::Tunnel),
            fragments.dropped(datagram::FragmentDrop::NoRecord),
            fragments.dropped(datagram::FragmentDrop::SiblingLost),
            fragments.dropped(datagram::FragmentDrop::Timeout),
            fragments.dropped(datagram::FragmentDrop::Evicted),
            fragments.dropped(datagram::FragmentDrop::TableFull),
        ];
        counts.drops = drops.map(u64::from);
    }
    counts
}

/// What a controller of Bluetooth LE has done.
fn count_device(counts: &mut NodeCounts, device: usize, ble: &ble::Air, now: Instant) {
    for ((from, _), tally) in ble.tallies() {
        if from == device {
            counts.transmissions += tally.packets;
            counts.retries += tally.repeated;
            counts.control_frames += tally.controls;
            counts.control_us += tally.controls_us;
        }
    }
    let usage = ble.usage(device);
    let on_us = usage.sending_us + usage.receiving_us() + usage.preparing_us();
    counts.states_us[State::Transmit as usize] = usage.sending_us;
    counts.states_us[State::Listen as usize] = usage.receiving_us();
    counts.states_us[State::Prepare as usize] = usage.preparing_us();
    counts.states_us[State::Sleep as usize] = now.as_micros().saturating_sub(on_us);
    counts.cpu_us = usage.processor_us();
    counts.radio_mj = usage.radio_uj() / 1e3;
    counts.cpu_mj = (usage.energy_uj() - usage.radio_uj()) / 1e3;
}

fn link_results(now: &Counts, before: &Counts) -> Vec<LinkResult> {
    let results = now.links.iter().map(|(link, tally)| {
        let before = before.links.get(link).copied().unwrap_or_default();
        LinkResult {
            from: link.0,
            to: link.1,
            frames: tally.frames - before.frames,
            fates: std::array::from_fn(|fate| tally.frame_fates[fate] - before.frame_fates[fate]),
        }
    });
    results.filter(|link| link.frames > 0).collect()
}

impl StackSettings {
    /// Gives them to the TCP of a node, as far as they are TCP's.
    pub fn apply(&self, config: &mut motet::tcp::Config) {
        config.ack_every = self.ack_every;
        config.ack_delay_ms = self.ack_delay_ms;
        config.initial_window = self.initial_window;
        config.rto_min_ms = self.rto_min_ms;
        config.nagle = self.nagle;
        config.timestamps = self.timestamps;
        config.sack = self.sack;
        config.rack = self.rack;
        config.tail_loss_probe = self.tail_loss_probe;
        config.limited_transmit = self.limited_transmit;
        config.ecn = self.ecn;
        if let Some(algorithm) = CongestionAlgorithm::named(&self.congestion) {
            config.congestion_algorithm = algorithm;
        }
        config.congestion_control = self.congestion_control;
    }
}

fn spans(usage: &Usage) -> [u64; State::COUNT] {
    State::ALL.map(|state| usage.span(state).as_micros())
}

/// Where in [`NodeCounts::drops`] those of IP begin.
const IP_DROPS: usize = 5;

/// How often it is looked who has joined, in virtual time.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often a run looks whether it shall stop, in virtual time.
const PAUSE: Duration = Duration::from_secs(1);
