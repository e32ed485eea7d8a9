//! One run: a point of a scenario with one seed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use motet::ip;
use motet::link::{self, Link};
use motet::lowpan::datagram;
use motet::mac;
use motet::time::{Duration, Instant};

use super::bound::RunBound;
use super::flow::{self, Flow};
use super::hours::Hours;
use super::model::{Scenario, seconds};
use super::shares;
use crate::Arena;
use crate::air::LinkTally;
use crate::air::radio::{State, Usage};
use crate::ble;
use crate::capture::Capture;
use crate::net::moves::{self, Moves};
use crate::net::network::{Joining, Network, NetworkOptions, RADIO};
use crate::net::outages::Outages;
use crate::net::topology::TopologyError;
use crate::net::world::World;
use crate::scenario::{FlowResult, LinkResult, NodeCounts, NodeResult, RunResult, Sample};

/// Captures of one run.
#[derive(Debug, Default)]
pub struct Captures {
    /// The capture of the air.
    pub air: Option<Capture>,
    /// The capture of the wire.
    pub wire: Option<Capture>,
    /// Receives the errors of captures that could not be completed.
    pub failed: Option<std::sync::mpsc::Sender<(Captured, std::io::Error)>>,
}

/// The place of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Captured {
    /// The frames on the air.
    Air,
    /// The packets on the border router's wire.
    Wire,
}

/// How far all runs are, and whether they shall stop.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// Becomes true when the run is to stop.
    pub stop: &'a AtomicBool,
    /// Milliseconds of virtual time done, in all runs.
    pub done_ms: &'a AtomicU64,
}

impl Watch<'_> {
    /// Whether it is time to stop.
    pub fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The result of a run that counts for nothing.
pub(super) fn failed(seed: u64, why: String) -> RunResult {
    RunResult {
        point: 0,
        seed,
        complete: false,
        failure: Some(why),
        joined_s: 0.0,
        seconds: 0.0,
        bound_kbps: None,
        reachable_kbps: None,
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

/// One point with one seed: its network, and what is known of how it does.
pub(super) struct Run<'m> {
    pub(super) scenario: &'m Scenario,
    pub(super) network: Network<'m>,
    pub(super) arena: &'m Arena,
    pub(super) seed: u64,
    pub(super) flows: Vec<Flow<'m>>,
    pub(super) bound: Option<RunBound>,
    pub(super) samples: Vec<Sample>,
    pub(super) outages: Outages,
    /// When the last node was switched on first.
    pub(super) switched_on: Instant,
    pub(super) moves: Moves,
    pub(super) hours: Hours,
    /// For each mesh node the counters of its stack before it was switched off.
    lost_counts: Vec<NodeCounts>,
}

impl<'m> AsMut<World<'m>> for Run<'m> {
    fn as_mut(&mut self) -> &mut World<'m> {
        &mut self.network.world
    }
}

/// The counters, at one moment.
pub(super) struct Counts {
    bytes: Vec<u64>,
    nodes: Vec<NodeCounts>,
    links: BTreeMap<(usize, usize), LinkTally>,
    packets_lost: u64,
    acks_thinned: u64,
}

impl<'m> Run<'m> {
    /// A run before its first event. Once `stops` is set the network is left incomplete, because
    /// the run is not wanted any more.
    pub(super) fn new(
        scenario: &'m Scenario,
        arena: &'m Arena,
        seed: u64,
        stops: impl Fn() -> bool,
    ) -> Result<Self, TopologyError> {
        let options = NetworkOptions {
            seed,
            ..scenario.network.clone()
        };
        let mut network = Network::new_unless(options, arena, stops)?;
        network.world.take_census();
        let nodes = scenario.network.nodes.len();
        let mut run = Self {
            scenario,
            network,
            arena,
            seed,
            flows: Vec::new(),
            bound: None,
            samples: Vec::new(),
            outages: Outages::default(),
            switched_on: Instant::ORIGIN,
            moves: Moves::of(nodes),
            hours: Hours::default(),
            lost_counts: vec![NodeCounts::default(); nodes],
        };
        let within = scenario.switched_on_within;
        if within > Duration::ZERO {
            (run.outages, run.switched_on) = Outages::staggered(&mut run.network, within);
        }
        Ok(run)
    }

    /// All motes have joined: the flows, and what happens to nodes and links.
    pub(super) fn begin(&mut self) {
        let joined = self.network.world.now();
        self.flows = flow::all(self.scenario, &mut self.network, self.arena, self.seed);
        self.bound = RunBound::new(self.scenario, &self.network, &self.flows);
        self.outages = self.scenario.outages(joined);
        let changes = self.scenario.link_faults(joined);
        self.network.world.change_later(changes);
    }

    pub(super) fn sample_interval(&self) -> Duration {
        let timing = &self.scenario.timing;
        if timing.sample_s > 0.0 {
            seconds(timing.sample_s)
        } else {
            seconds((timing.duration_s / 200.0).max(0.5))
        }
    }

    /// Switches nodes off and on whose time has come.
    pub(super) fn switch(&mut self) {
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

    /// Starts the flows that are due.
    pub(super) fn start_flows(&mut self) {
        for flow in &mut self.flows {
            flow.start(self.scenario, &mut self.network, self.arena);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let mut flows = self.flows.iter();
        flows.all(|flow| flow.is_over(&self.network.world, |node| self.is_gone(node)))
    }

    pub(super) fn sample(&mut self, at: Instant, joined: Instant, every: Duration, is_warm: bool) {
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
    pub(super) fn look_at_hour(&mut self, joined: Instant) {
        let now = self.network.world.now();
        if self.hours.has_begun() && now < self.hours.next_at(joined) {
            return;
        }
        let nodes = self.scenario.network.nodes.iter().enumerate();
        let sleepers = nodes.filter(|(_, node)| node.sleep.is_some());
        let counts = sleepers.map(|(node, _)| (node, self.count_node(node)));
        self.hours.note(counts.collect());
    }

    pub(super) fn nothing(&self) -> Counts {
        Counts {
            bytes: vec![0; self.flows.len()],
            nodes: vec![NodeCounts::default(); self.network.mesh_nodes() + 1],
            links: BTreeMap::new(),
            packets_lost: 0,
            acks_thinned: 0,
        }
    }

    pub(super) fn count(&self) -> Counts {
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

    /// The sum of the counters of all stacks of the host.
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
        // Of a border router with two radios those of its mesh.
        let is_alone = matches!(world.node(number).link(RADIO), Some(Link::Ble(_)));
        let device = world.device(number).filter(|_| is_alone);
        if let Some((device, ble)) = device.zip(world.ble()) {
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

    pub(super) fn result(&self, joined: Instant, from: Instant, before: &Counts) -> RunResult {
        let now = self.count();
        let seconds = self.network.world.now().since(from).as_micros() as f64 / 1e6;
        let paths: Vec<Vec<usize>> = self.flows.iter().map(|flow| self.path(flow)).collect();
        let flows = self.flows.iter().zip(&paths).enumerate();
        let mut flows: Vec<FlowResult> = flows
            .map(|(number, (flow, path))| {
                let bytes = now.bytes[number] - before.bytes[number];
                let hops = path.len().saturating_sub(1);
                let is_gone = |node| self.is_gone(node);
                flow.result(&self.network.world, hops, (bytes, seconds), is_gone)
            })
            .collect();
        let nodes = self.node_results(&now, before, from);
        let carried = paths.iter().zip(&flows);
        let carried = carried.map(|(path, result)| (path.as_slice(), result.counted_bytes));
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
            seed: self.seed,
            complete: false,
            failure: broken
                .map(|flow| format!("{} delivered other bytes than were sent", flow.name())),
            joined_s: joined.since(self.switched_on).as_micros() as f64 / 1e6,
            seconds,
            bound_kbps,
            reachable_kbps: None,
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

    /// The mesh nodes that a flow's packets pass, in their order.
    fn path(&self, flow: &Flow<'_>) -> Vec<usize> {
        match self.scenario.network.joining {
            Joining::Rpl => flow.path_of(&self.moves),
            Joining::Advertised | Joining::Static | Joining::Thread => flow.path().to_vec(),
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

    /// How long the battery of a mote would last, days, if the scenario has one.
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

/// The counters of a node's stack since it started.
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
            fragments.dropped(datagram::FragmentDrop::NoBody),
            mac.dropped(mac::FrameDrop::Unsecured),
            mac.dropped(mac::FrameDrop::LowLevel),
            mac.dropped(mac::FrameDrop::UnknownKey),
            mac.dropped(mac::FrameDrop::Replayed),
            mac.dropped(mac::FrameDrop::LastCounter),
            mac.dropped(mac::FrameDrop::Forged),
            mac.dropped(mac::FrameDrop::Unproven),
            mac.dropped(mac::FrameDrop::Rationed),
            mac.dropped(mac::FrameDrop::NoCounter),
        ];
        counts.drops = drops.map(u64::from);
    }
    counts
}

/// Adds the counters of a Bluetooth LE controller.
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

fn spans(usage: &Usage) -> [u64; State::COUNT] {
    State::ALL.map(|state| usage.span(state).as_micros())
}

/// Where in [`NodeCounts::drops`] those of IP begin.
const IP_DROPS: usize = 5;
