//! A flow in the world of one run: its applications at both ends, and how it does.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};

use super::hosts;
#[cfg(feature = "firmware")]
use super::model::PushSettings;
use super::model::{FlowEnd, FlowKind, FlowSettings, Scenario, seconds};
use super::pushes;
#[cfg(feature = "firmware")]
use super::pushing;
use super::readings;
use super::session::FlowView;
use crate::Arena;
use crate::apps::ages::Ages;
use crate::apps::backlog::Backlog;
use crate::apps::content::Content;
use crate::apps::messages::{Client, Server, Shape};
use crate::apps::readings::{Readings, Sink, Tally};
use crate::apps::reporter::Reporter;
use crate::apps::{App, Ends, Progress, Receiver, Sender};
use crate::net::moves::Moves;
use crate::net::network::Network;
use crate::net::world::World;
use crate::scenario::{FlowResult, Likeness, Outcome, Sample};
use crate::streams::{Purpose, stream};

/// One flow of a run.
pub(super) struct Flow<'a> {
    number: usize,
    settings: &'a FlowSettings,
    /// Sender and receiver, as places in the world.
    nodes: [usize; 2],
    /// The mesh nodes that its packets pass, both ends included.
    path: Vec<usize>,
    /// Places of the flow's applications at both ends, once it began.
    apps: Option<[usize; 2]>,
    /// The inbox of the receiver's node, which all flows of datagrams to it share.
    sink: Option<usize>,
    began_at: Instant,
    ends_at: Instant,
    /// A fault switches one of its ends off: what it loses begins anew.
    begins_anew: bool,
    seed: u64,
    sampled_bytes: u64,
    means: SampleSums,
}

/// Sums over the samples after the warm-up.
#[derive(Default)]
struct SampleSums {
    rtt_ms: f64,
    cwnd_segments: f64,
    samples: u32,
}

/// Every flow of a scenario, with the inboxes that datagrams need.
pub(super) fn all<'a, 'm>(
    scenario: &'a Scenario,
    network: &mut Network<'m>,
    arena: &'m Arena,
    seed: u64,
) -> Vec<Flow<'a>> {
    let joined = network.world.now();
    let place = |end, stack| match end {
        FlowEnd::Host => network.host(stack).unwrap_or_default(),
        FlowEnd::Node(node) => node,
    };
    // Beyond the border router there are no hops.
    let mesh = |end| match end {
        FlowEnd::Host => 0,
        FlowEnd::Node(node) => node,
    };
    let flows = scenario.flows.iter().enumerate();
    let mut flows: Vec<Flow<'a>> = flows
        .zip(hosts::stack_numbers(&scenario.flows))
        .map(|((number, settings), stack)| Flow {
            number,
            settings,
            nodes: [place(settings.from, stack), place(settings.to, stack)],
            path: scenario.tree.path(mesh(settings.from), mesh(settings.to)),
            apps: None,
            sink: None,
            began_at: joined + seconds(settings.start_s),
            ends_at: joined + seconds(scenario.timing.duration_s),
            begins_anew: settings.begins_anew(&scenario.faults),
            seed,
            sampled_bytes: 0,
            means: SampleSums::default(),
        })
        .collect();
    let mut ports: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| flow.is_udp()) {
        ports.entry(flow.nodes[1]).or_default().push(flow.port());
    }
    for (node, ports) in ports {
        let sink = App::Sink(Sink::new(&ports, arena));
        let sink = network.world.add_app(node, sink);
        let to_it = |flow: &&mut Flow<'_>| flow.is_udp() && flow.nodes[1] == node;
        for flow in flows.iter_mut().filter(to_it) {
            flow.sink = Some(sink);
        }
    }
    flows
}

impl Flow<'_> {
    /// When the flow begins, unless it has.
    pub(super) fn starts_at(&self) -> Option<Instant> {
        self.apps.is_none().then_some(self.began_at)
    }

    /// Starts it if it is due.
    pub(super) fn start<'m>(
        &mut self,
        scenario: &Scenario,
        network: &mut Network<'m>,
        arena: &'m Arena,
    ) {
        let now = network.world.now();
        if self.starts_at().is_none_or(|due| now < due) {
            return;
        }
        let [from, to] = self.nodes;
        let [from_addr, to_addr] = self.nodes.map(|node| network.addr(node));
        let remote = (to_addr, self.port());
        let ends = |node, peer| {
            let ends = network.ends(node, peer, arena);
            match scenario.stacks.get(node) {
                Some(stack) => ends.with(|config| stack.apply(config)),
                None => ends.with(|config| scenario.wire.apply(config)),
            }
        };
        let ends: [Ends<'m>; 2] = [ends(from, to_addr), ends(to, from_addr)];
        #[cfg(feature = "firmware")]
        if let Some(push) = &self.settings.push {
            self.apps = Some(self.push(push, arena).run(scenario, network, ends));
            return;
        }
        let mut rng = stream(self.seed, self.number as u32, Purpose::Application);
        let world = &mut network.world;
        self.apps = Some(match self.settings.kind {
            FlowKind::Bulk => {
                let [sending, receiving] = ends;
                let mut receiver = Receiver::checking(remote.1, receiving, self.content());
                let mut sender = Sender::new(self.content(), remote, sending);
                if self.begins_anew {
                    (receiver, sender) = (receiver.beginning_anew(), sender.beginning_anew());
                }
                let read = world.add_app(to, App::Receiver(receiver));
                [world.add_app(from, App::Sender(sender)), read]
            }
            FlowKind::Periodic | FlowKind::Request => {
                let [sending, receiving] = ends;
                let mut server = Server::new(remote.1, receiving, self.shape());
                let client = Client::new(remote, sending, self.shape(), now, &mut rng);
                let mut client = client.until(self.ends_at);
                if self.begins_anew {
                    (server, client) = (server.beginning_anew(), client.beginning_anew());
                }
                let read = world.add_app(to, App::Server(server));
                [world.add_app(from, App::Client(client)), read]
            }
            FlowKind::Readings => {
                let [sending, receiving] = ends;
                let backlog = Backlog::new(readings::sensor(self.settings), now, &mut rng);
                let reporter = Reporter::new(remote, sending, backlog.until(self.ends_at));
                let server = Server::new(remote.1, receiving, self.shape()).beginning_anew();
                let read = world.add_app(to, App::Server(server.skipping()));
                [world.add_app(from, App::Reporter(reporter)), read]
            }
            FlowKind::Udp => {
                let Shape {
                    message_len,
                    interval,
                    ..
                } = self.shape();
                let readings = Readings::new(remote, message_len, interval, now, &mut rng);
                let readings = App::Readings(readings.until(self.ends_at));
                [world.add_app(from, readings), self.sink.unwrap_or_default()]
            }
            FlowKind::Push => return,
        });
    }

    /// The begin of its part of a push.
    #[cfg(feature = "firmware")]
    fn push<'f, 'm>(&self, push: &'f PushSettings, arena: &'m Arena) -> pushing::Start<'f, 'm> {
        let seed = [self.seed, push.first as u64];
        pushing::Start {
            is_first: self.number == push.first,
            image: crate::apps::push::image(seed, self.settings.bytes as usize),
            nodes: self.nodes,
            push,
            rng: stream(self.seed, self.number as u32, Purpose::Application),
            arena,
        }
    }

    /// Whether the flow is complete. `is_gone`: whether a node is switched off for good.
    pub(super) fn is_over(&self, world: &World<'_>, is_gone: impl Fn(usize) -> bool) -> bool {
        let is_over = |progress: &Progress| {
            progress.finished.is_some() || (progress.closed && !self.begins_anew)
        };
        if let Some(pushed) = self.pushed(world) {
            return pushed.is_over || self.nodes.into_iter().any(is_gone);
        }
        let has_end = self.settings.kind == FlowKind::Bulk && self.settings.bytes > 0;
        has_end
            && (self.progress(world).is_some_and(is_over) || self.nodes.into_iter().any(is_gone))
    }

    /// Application bytes that the flow has delivered.
    pub(super) fn delivered(&self, world: &World<'_>) -> u64 {
        if let Some(pushed) = self.pushed(world) {
            return pushed.stored.bytes;
        }
        match self.ends(world) {
            Some([_, App::Receiver(receiver)]) => receiver.received,
            Some([App::Client(client), App::Server(server)]) => {
                client.tally.bytes + server.tally.bytes
            }
            _ => self.arrived(world).map_or(0, |tally| tally.bytes),
        }
    }

    /// A sample of the flow at this moment, `interval_s` after the last sample; none when it has
    /// not begun, or had ended by `last`.
    pub(super) fn sample(
        &mut self,
        world: &World<'_>,
        at_s: f64,
        interval_s: f64,
        last: Instant,
        stack_window: Option<usize>,
        is_warm: bool,
    ) -> Option<Sample> {
        self.apps?;
        let progress = self.progress(world).copied().unwrap_or_default();
        if progress.closed || progress.finished.is_some_and(|finished| finished <= last) {
            return None;
        }
        let telemetry = progress.telemetry;
        let smss = usize::from(telemetry.smss_bytes);
        let buffer = stack_window.map_or(usize::MAX, |segments| segments * smss);
        let window_bytes = telemetry
            .cwnd_bytes
            .min(telemetry.snd_wnd_bytes)
            .min(u16::try_from(buffer).unwrap_or(u16::MAX));
        let bytes = self.delivered(world);
        let new = bytes - std::mem::replace(&mut self.sampled_bytes, bytes);
        if is_warm && telemetry.srtt_ms > 0 {
            self.means.samples += 1;
            self.means.rtt_ms += f64::from(telemetry.srtt_ms);
            self.means.cwnd_segments += f64::from(window_bytes) / smss.max(1) as f64;
        }
        Some(Sample {
            flow: self.number,
            at_s,
            goodput_kbps: new as f64 / 125.0 / interval_s,
            rtt_ms: telemetry.srtt_ms,
            cwnd_bytes: telemetry.cwnd_bytes,
            ssthresh_bytes: telemetry.ssthresh_bytes,
            window_bytes,
            inflight_bytes: telemetry.inflight_bytes,
        })
    }

    /// The flow's progress so far.
    pub(super) fn view(&self, world: &World<'_>) -> FlowView {
        let telemetry = self.progress(world).copied().unwrap_or_default().telemetry;
        FlowView {
            bytes: self.delivered(world),
            rtt_ms: telemetry.srtt_ms,
            cwnd_bytes: telemetry.cwnd_bytes,
            ssthresh_bytes: telemetry.ssthresh_bytes,
            peer_window_bytes: telemetry.snd_wnd_bytes,
            inflight_bytes: telemetry.inflight_bytes,
        }
    }

    /// The place in the world that the flow is sent from.
    pub(super) fn sender(&self) -> usize {
        self.nodes[0]
    }

    /// The mesh nodes that its packets pass, as the scenario has them.
    pub(super) fn path(&self) -> &[usize] {
        &self.path
    }

    /// The mesh nodes that its packets passed last, where the mesh forms itself.
    pub(super) fn path_of(&self, moves: &Moves) -> Vec<usize> {
        let ends = self.path.first().zip(self.path.last());
        let formed = ends.and_then(|(from, to)| moves.path(*from, *to));
        formed.unwrap_or_else(|| self.path.clone())
    }

    /// The addresses of its sender and its receiver.
    pub(super) fn addrs(&self, network: &Network<'_>) -> [Ipv6Addr; 2] {
        self.nodes.map(|node| network.addr(node))
    }

    /// Whether the flow began before `at`.
    pub(super) fn began_before(&self, at: Instant) -> bool {
        self.began_at < at
    }

    /// The flow's result over `hops` radio hops; `counted_bytes`: the bytes delivered in the
    /// `seconds` since the warm-up; `is_gone`: whether a node is switched off for good.
    pub(super) fn result(
        &self,
        world: &World<'_>,
        hops: usize,
        (counted_bytes, seconds): (u64, f64),
        is_gone: impl Fn(usize) -> bool,
    ) -> FlowResult {
        let outcome = match self.outcome(world) {
            Outcome::Complete => Outcome::Complete,
            _ if self.nodes.into_iter().any(is_gone) => Outcome::SwitchedOff,
            outcome => outcome,
        };
        // One that is lost, and nothing follows.
        let is_lost = outcome == Outcome::SwitchedOff || outcome.is_failure();
        let lost = |progress: &Progress| progress.lost + u32::from(is_lost && progress.is_open);
        let progress = self.progress(world).copied().unwrap_or_default();
        let took = progress.began.zip(progress.finished);
        let took_s = took.map(|(began, finished)| finished.since(began).as_micros() as f64 / 1e6);
        let pushed = self.pushed(world);
        let pending = pushed.and_then(|pushed| pushed.stored.pending_since);
        let took_s = took_s.or(pushes::took_s(self.began_at, pending));
        let samples = f64::from(self.means.samples);
        let mean = |sum: f64| (samples > 0.0).then(|| sum / samples);
        let bytes = self.delivered(world);
        let kbps = |bytes: u64, s: f64| {
            if s > 0.0 {
                bytes as f64 / 125.0 / s
            } else {
                0.0
            }
        };
        let ages = self.arrived(world).map(|tally| &tally.ages);
        let ms = |age: Option<Duration>| age.map(|age| age.as_micros() as f64 / 1e3);
        FlowResult {
            flow: self.number,
            from: self.settings.from,
            to: self.settings.to,
            likeness: Likeness::new(self.settings, hops),
            outcome,
            resent_bytes: pushed.map(|pushed| pushed.resent),
            connections_lost: self.progress(world).map(lost),
            bytes,
            counted_bytes,
            goodput_kbps: match took_s {
                // What was sent over connections that were lost does not count twice.
                Some(took_s) if took_s > 0.0 => kbps(bytes.min(self.settings.bytes), took_s),
                _ => kbps(counted_bytes, seconds),
            },
            rtt_ms: mean(self.means.rtt_ms),
            cwnd_segments: mean(self.means.cwnd_segments),
            finished_s: took_s,
            messages: self
                .made(world)
                .zip(self.arrived(world))
                .map(|(made, tally)| [made, tally.received]),
            ages: ages.cloned().unwrap_or_default(),
            latency_ms: ms(ages.and_then(Ages::mean)),
            latency_p50_ms: ms(ages.and_then(|ages| ages.quantile(0.5))),
            latency_p95_ms: ms(ages.and_then(|ages| ages.quantile(0.95))),
            latency_max_ms: ms(ages.and_then(Ages::max)),
            energy_mj: 0.0,
            intact: self.is_intact(world),
        }
    }

    /// The outcome of the flow. Datagrams cannot fail, and messages have no end.
    fn outcome(&self, world: &World<'_>) -> Outcome {
        if let Some(pushed) = self.pushed(world) {
            return pushed.outcome();
        }
        let ends = self.ends(world);
        let mut progresses = ends.into_iter().flatten().filter_map(App::progress);
        let sender = progresses.next();
        if sender.is_some_and(|sender| sender.finished.is_some()) {
            return Outcome::Complete;
        }
        let error = |progress: &Progress| match progress.error {
            Some(error) => Some(Outcome::of(error)),
            // It has never had a connection and wants none any more.
            None if progress.closed && progress.began.is_none() => Some(Outcome::Refused),
            None => None,
        };
        let failed = sender.into_iter().chain(progresses).find_map(error);
        let failed = failed.filter(|_| !self.begins_anew);
        failed.unwrap_or(Outcome::Running)
    }

    /// How the mote of a push does.
    fn pushed(&self, world: &World<'_>) -> Option<pushes::Pushed> {
        let push = self.settings.push.as_ref()?;
        pushes::Pushed::of(self.ends(world)?, self.number - push.first)
    }

    fn is_intact(&self, world: &World<'_>) -> bool {
        if let Some(pushed) = self.pushed(world) {
            return pushed.outcome() != Outcome::Complete || pushed.stored.is_intact;
        }
        match self.ends(world) {
            Some([_, App::Receiver(receiver)]) => {
                let is_short = self.outcome(world) == Outcome::Complete
                    && receiver.received < self.settings.bytes;
                receiver.differs_at.is_none() && !is_short
            }
            Some([App::Client(client), App::Server(server)]) => {
                !client.is_broken && !server.is_broken
            }
            Some([_, App::Server(server)]) => !server.is_broken,
            _ => true,
        }
    }

    /// Messages or datagrams that were due.
    fn made(&self, world: &World<'_>) -> Option<u64> {
        match self.ends(world)? {
            [App::Readings(readings), _] => Some(readings.made.into()),
            [App::Client(client), _] => Some(client.due),
            [App::Reporter(reporter), App::Server(server)] => {
                // What waits, or is under way, may arrive yet.
                let waiting = reporter.backlog.waiting() as u64;
                let under_way = reporter.handed.saturating_sub(server.current);
                Some(u64::from(reporter.backlog.made).saturating_sub(waiting + under_way))
            }
            _ => None,
        }
    }

    /// Messages, datagrams or answers that came whole.
    fn arrived<'w>(&self, world: &'w World<'_>) -> Option<&'w Tally> {
        match self.ends(world)? {
            [_, App::Sink(sink)] => sink.tally(self.port()),
            [App::Client(client), _] if self.settings.kind == FlowKind::Request => {
                Some(&client.tally)
            }
            [_, App::Server(server)] => Some(&server.tally),
            _ => None,
        }
    }

    /// How its connection does, as its sender sees it.
    fn progress<'w>(&self, world: &'w World<'_>) -> Option<&'w Progress> {
        self.ends(world)?[0].progress()
    }

    fn ends<'w, 'm>(&self, world: &'w World<'m>) -> Option<[&'w App<'m>; 2]> {
        let [sent, read] = self.apps?;
        let [from, to] = self.nodes;
        Some([world.apps(from).get(sent)?, world.apps(to).get(read)?])
    }

    fn content(&self) -> Content {
        let seed = [self.seed, self.number as u64];
        match self.settings.bytes {
            0 => Content::endless(seed),
            bytes => Content::made(seed, bytes),
        }
    }

    fn shape(&self) -> Shape {
        let is_answered = self.settings.kind == FlowKind::Request;
        Shape {
            message_len: self.settings.message_bytes,
            answer_len: if is_answered {
                self.settings.answer_bytes
            } else {
                0
            },
            interval: seconds(self.settings.interval_s),
        }
    }

    fn is_udp(&self) -> bool {
        self.settings.kind == FlowKind::Udp
    }

    fn port(&self) -> u16 {
        hosts::port(self.settings.kind, self.number)
    }
}
