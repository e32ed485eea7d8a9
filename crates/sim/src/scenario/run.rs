//! One run: a point of a scenario with one seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use motet::ip;
use motet::lowpan::datagram;
use motet::mac;
use motet::node::{self, Interface};
use motet::time::{Duration, Instant};

use super::model::{FlowEnd, FlowSettings, Scenario, StackSettings};
use crate::Arena;
use crate::air::LinkTally;
use crate::app::{App, Ends, Progress, Receiver, Sender};
use crate::capture::Capture;
use crate::network::{Network, NetworkOptions, RADIO};
use crate::radio::{State, Usage};
use crate::report::{FlowResult, LinkResult, NodeCounts, NodeResult, RunResult, Sample};
use crate::streams::{Purpose, stream};
use crate::traffic::{Readings, Sink};

/// Captures of one run.
#[derive(Debug, Default)]
pub struct Captures {
    /// Of the air.
    pub air: Option<Capture>,
    /// Of the wire.
    pub wire: Option<Capture>,
    /// Whether finished ones replace existing files.
    pub replace: bool,
    /// The first failure to finish one, told to whoever holds the other end.
    pub failed: Option<std::sync::mpsc::Sender<std::io::Error>>,
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
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs one point with one seed.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    sampled: bool,
    endless: &Arc<[u8]>,
    watch: &Watch<'_>,
    captures: Captures,
) -> RunResult {
    let arena = Arena::new();
    let options = NetworkOptions {
        seed,
        ..scenario.network.clone()
    };
    let network = match Network::new(options, &arena) {
        Ok(network) => network,
        Err(error) => return failed(seed, error.to_string()),
    };
    let mut run = Run {
        scenario,
        network,
        arena: &arena,
        flows: Vec::new(),
        samples: Vec::new(),
    };
    let Captures {
        air,
        wire,
        replace,
        failed: tell,
    } = captures;
    run.network.world.set_capture(air);
    if let (Some(wire), Some(capture)) = (run.network.world.wire_mut(), wire) {
        wire.set_capture(capture);
    }
    let mut result = run.go(seed, endless, watch);
    if !sampled {
        result.samples = Vec::new();
    }
    let finished = [
        run.network
            .world
            .take_capture()
            .map(|air| air.finish(replace)),
        run.network
            .world
            .wire_mut()
            .map(|wire| wire.finish_capture(replace)),
    ];
    for error in finished.into_iter().flatten().filter_map(Result::err) {
        // Nobody listens: nobody asked for a capture.
        let _ = tell.as_ref().map(|tell| tell.send(error));
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
        flows: Vec::new(),
        nodes: Vec::new(),
        links: Vec::new(),
        packets_injected_lost: 0,
        samples: Vec::new(),
    }
}

struct Run<'a, 'm> {
    scenario: &'a Scenario,
    network: Network<'m>,
    arena: &'m Arena,
    flows: Vec<Flow>,
    samples: Vec<Sample>,
}

/// A flow in the world: the nodes of both ends, and its applications there once it began.
struct Flow {
    content: Arc<[u8]>,
    nodes: [usize; 2],
    apps: Option<[usize; 2]>,
    began_at: Instant,
    ends_at: Instant,
    seed: u64,
    /// Sampled after the warm-up.
    rtt_sum: f64,
    cwnd_sum: f64,
    rtt_samples: u32,
    sampled_bytes: u64,
}

/// What is counted, at one moment.
struct Counts {
    bytes: Vec<u64>,
    nodes: Vec<NodeCounts>,
    links: BTreeMap<(usize, usize), LinkTally>,
    packets_lost: u64,
}

impl<'m> Run<'_, 'm> {
    fn go(&mut self, seed: u64, endless: &Arc<[u8]>, watch: &Watch<'_>) -> RunResult {
        let timing = &self.scenario.timing;
        if !self.join(watch) {
            let why = format!(
                "not all motes had an address and a route after {} s: raise join_s, or set topology.joining to \"static\"",
                timing.join_s
            );
            return RunResult {
                complete: !watch.stops(),
                ..failed(seed, why)
            };
        }
        let joined = self.network.world.now();
        self.prepare(seed, joined, endless);
        let warm = joined + seconds(timing.warmup_s);
        let end = joined + seconds(timing.duration_s);
        let every = self.sample_interval();
        let mut before = None;
        let mut sample_at = joined + every;
        let mut complete = false;
        loop {
            self.start_flows();
            let now = self.network.world.now();
            if before.is_none() && now >= warm {
                before = Some(self.count());
            }
            if now >= sample_at {
                self.sample(sample_at, joined, every, before.is_some());
                sample_at += every;
            }
            if now >= end || self.is_over() {
                complete = true;
                break;
            }
            if watch.stops() {
                break;
            }
            let pause = [end, sample_at, now + PAUSE]
                .into_iter()
                .chain((before.is_none()).then_some(warm))
                .chain(self.next_start())
                .min();
            self.network.world.run_until(pause.unwrap_or(end));
            let passed = self.network.world.now().since(now);
            watch
                .done_ms
                .fetch_add(passed.as_millis(), Ordering::Relaxed);
        }
        let from = if before.is_some() { warm } else { joined };
        let before = before.unwrap_or_else(|| self.nothing());
        let mut result = self.result(seed, joined, from, &before);
        result.complete = complete;
        // What was promised and not needed, so that the bar comes to its end.
        let rest = end.since(self.network.world.now());
        watch.done_ms.fetch_add(rest.as_millis(), Ordering::Relaxed);
        result
    }

    fn join(&mut self, watch: &Watch<'_>) -> bool {
        let until = self.network.world.now() + seconds(self.scenario.timing.join_s);
        while !self.network.has_joined() {
            let now = self.network.world.now();
            if now >= until || watch.stops() {
                return false;
            }
            let rest = until.since(now);
            if self.network.join(rest.min(Duration::from_secs(1))) {
                return true;
            }
            if self.network.world.now() == now {
                self.network.world.run_until(now + rest.min(PAUSE));
            }
        }
        true
    }

    fn sample_interval(&self) -> Duration {
        let timing = &self.scenario.timing;
        if timing.sample_s > 0.0 {
            seconds(timing.sample_s)
        } else {
            seconds((timing.duration_s / 200.0).max(0.5))
        }
    }

    /// Where each flow is, and what it will send.
    fn prepare(&mut self, seed: u64, joined: Instant, endless: &Arc<[u8]>) {
        let mut hosts = 0;
        let end = joined + seconds(self.scenario.timing.duration_s);
        for (number, flow) in self.scenario.flows.iter().enumerate() {
            let mut host = self.network.host(0).unwrap_or(0);
            if flow.is_udp() && flow.to == FlowEnd::Host {
                host = self.network.host(hosts).unwrap_or(host);
                hosts += 1;
            }
            let place = |end| match end {
                FlowEnd::Host => host,
                FlowEnd::Node(node) => node,
            };
            self.flows.push(Flow {
                content: match flow.bytes {
                    _ if flow.is_udp() => Arc::from([]),
                    0 => Arc::clone(endless),
                    bytes => content(seed, number, bytes as usize),
                },
                nodes: [place(flow.from), place(flow.to)],
                apps: None,
                began_at: joined + seconds(flow.start_s),
                ends_at: end,
                seed,
                rtt_sum: 0.0,
                cwnd_sum: 0.0,
                rtt_samples: 0,
                sampled_bytes: 0,
            });
        }
    }

    fn next_start(&self) -> Option<Instant> {
        let waiting = self.flows.iter().filter(|flow| flow.apps.is_none());
        waiting.map(|flow| flow.began_at).min()
    }

    /// Starts what is due.
    fn start_flows(&mut self) {
        let now = self.network.world.now();
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if flow.apps.is_some() || now < flow.began_at {
                continue;
            }
            // Lossless: more flows than ports are refused by their nodes' tables long before.
            let port = FIRST_PORT + number as u16;
            let [from, to] = flow.nodes;
            let (from_addr, to_addr) = (self.network.addr(from), self.network.addr(to));
            let settings = &self.scenario.flows[number];
            if settings.is_udp() {
                let mut rng = stream(flow.seed, number as u32, Purpose::Application);
                let readings = Readings::new(
                    (to_addr, UDP_PORT),
                    settings.datagram_bytes,
                    seconds(settings.interval_s),
                    now,
                    &mut rng,
                );
                let readings = App::Readings(readings.until(flow.ends_at));
                let world = &mut self.network.world;
                let read = world.add_app(to, App::Sink(Sink::new(UDP_PORT, self.arena)));
                flow.apps = Some([world.add_app(from, readings), read]);
                continue;
            }
            let ends = |node, peer| {
                let ends = self.network.ends(node, peer, self.arena);
                match self.scenario.stacks.get(node) {
                    Some(stack) => ends.with(|config| stack.apply(config)),
                    None => ends.with(|config| {
                        config.ack_delay_ms = self.scenario.wire.host_ack_delay_ms;
                    }),
                }
            };
            let receiver: Ends<'m> = ends(to, from_addr);
            let sender = ends(from, to_addr);
            let world = &mut self.network.world;
            let read = world.add_app(to, App::Receiver(Receiver::new(port, receiver)));
            let content = Arc::clone(&flow.content);
            let sender = Sender::new(content, (to_addr, port), sender);
            let sent = world.add_app(from, App::Sender(sender));
            flow.apps = Some([sent, read]);
        }
    }

    fn is_over(&self) -> bool {
        let mut flows = self.scenario.flows.iter().zip(&self.flows);
        flows.all(|(settings, flow)| {
            settings.bytes > 0
                && !settings.is_udp()
                && self
                    .progress(flow)
                    .is_some_and(|progress| progress.finished.is_some() || progress.closed)
        })
    }

    /// How the sender of a flow does.
    fn progress(&self, flow: &Flow) -> Option<&Progress> {
        let [sent, _] = flow.apps?;
        self.network.world.apps(flow.nodes[0]).get(sent)?.progress()
    }

    /// What the receiver of a flow has read.
    fn read(&self, flow: &Flow) -> &[u8] {
        let app = flow
            .apps
            .and_then(|[_, read]| self.network.world.apps(flow.nodes[1]).get(read));
        match app {
            Some(App::Receiver(receiver)) => &receiver.content,
            _ => &[],
        }
    }

    /// Application bytes that have come out of a flow.
    fn delivered(&self, flow: &Flow) -> u64 {
        match self.sink(flow) {
            Some(sink) => sink.bytes,
            None => self.read(flow).len() as u64,
        }
    }

    fn sink(&self, flow: &Flow) -> Option<&Sink<'m>> {
        let [_, read] = flow.apps?;
        match self.network.world.apps(flow.nodes[1]).get(read)? {
            App::Sink(sink) => Some(sink),
            _ => None,
        }
    }

    /// Datagrams that a flow has made.
    fn made(&self, flow: &Flow) -> Option<u64> {
        let [sent, _] = flow.apps?;
        match self.network.world.apps(flow.nodes[0]).get(sent)? {
            App::Readings(readings) => Some(readings.made.into()),
            _ => None,
        }
    }

    fn sample(&mut self, at: Instant, joined: Instant, every: Duration, is_warm: bool) {
        let interval_s = every.as_micros() as f64 / 1e6;
        let last = joined + at.since(joined + every);
        for number in 0..self.flows.len() {
            let flow = &self.flows[number];
            let bytes = self.delivered(flow);
            let is_udp = self.sink(flow).is_some();
            let Some(progress) = self
                .progress(flow)
                .copied()
                .or(is_udp.then(Progress::default))
            else {
                continue;
            };
            if progress.closed || progress.finished.is_some_and(|finished| finished <= last) {
                continue;
            }
            let telemetry = progress.telemetry;
            let buffer = self
                .scenario
                .stacks
                .get(flow.nodes[0])
                .map_or(usize::MAX, |stack| {
                    stack.window_segments * usize::from(telemetry.smss_bytes)
                });
            let window_bytes = telemetry
                .cwnd_bytes
                .min(telemetry.snd_wnd_bytes)
                .min(u16::try_from(buffer).unwrap_or(u16::MAX));
            self.samples.push(Sample {
                flow: number,
                at_s: at.since(joined).as_micros() as f64 / 1e6,
                goodput_kbps: (bytes - flow.sampled_bytes) as f64 / 125.0 / interval_s,
                rtt_ms: telemetry.srtt_ms,
                cwnd_bytes: telemetry.cwnd_bytes,
                ssthresh_bytes: telemetry.ssthresh_bytes,
                window_bytes,
                inflight_bytes: telemetry.inflight_bytes,
            });
            let flow = &mut self.flows[number];
            flow.sampled_bytes = bytes;
            if is_warm && telemetry.srtt_ms > 0 {
                flow.rtt_samples += 1;
                flow.rtt_sum += f64::from(telemetry.srtt_ms);
                flow.cwnd_sum += f64::from(window_bytes) / f64::from(telemetry.smss_bytes.max(1));
            }
        }
    }

    fn nothing(&self) -> Counts {
        Counts {
            bytes: vec![0; self.flows.len()],
            nodes: vec![NodeCounts::default(); self.network.world.nodes()],
            links: BTreeMap::new(),
            packets_lost: 0,
        }
    }

    fn count(&self) -> Counts {
        let world = &self.network.world;
        let bytes = self.flows.iter().map(|flow| self.delivered(flow));
        Counts {
            bytes: bytes.collect(),
            nodes: (0..world.nodes())
                .map(|node| self.count_node(node))
                .collect(),
            links: world.links().map(|(link, tally)| (link, *tally)).collect(),
            packets_lost: world.wire().map_or(0, |wire| wire.tally.lost),
        }
    }

    fn count_node(&self, number: usize) -> NodeCounts {
        let world = &self.network.world;
        let node = world.node(number);
        let tcp = node.tcp().counters();
        let mut counts = NodeCounts {
            segments: tcp.sent.into(),
            retransmissions: tcp.retransmissions.map(u64::from),
            ..NodeCounts::default()
        };
        if let Some(usage) = world.usage(number) {
            counts.states_us = spans(&usage);
            counts.cpu_us = usage.cpu().as_micros();
        }
        if let Some(energy) = world.energy(number) {
            counts.radio_mj = energy.radio_mj;
            counts.cpu_mj = energy.cpu_mj;
        }
        if let Some(Interface::Radio(radio)) = node.interface(RADIO) {
            let mac = radio.mac().counters();
            counts.transmissions = mac.transmissions.into();
            counts.retries = mac.retries.into();
            counts.channel_busy = mac.channel_busy.into();
            let fragments = radio.datagrams().counters();
            let drops = [
                mac.dropped(mac::Drop::NoAck),
                mac.dropped(mac::Drop::ChannelBusy),
                mac.dropped(mac::Drop::QueueFull),
                node.counters().dropped(node::Drop::RelayQueueFull),
                node.ip().counters.dropped(ip::Drop::QueueFull),
                fragments.dropped(datagram::Drop::NoRecord),
                fragments.dropped(datagram::Drop::SiblingLost),
                fragments.dropped(datagram::Drop::Timeout),
                fragments.dropped(datagram::Drop::Evicted),
                fragments.dropped(datagram::Drop::TableFull),
            ];
            counts.drops = drops.map(u64::from);
        }
        counts
    }

    fn result(&self, seed: u64, joined: Instant, from: Instant, before: &Counts) -> RunResult {
        let now = self.count();
        let seconds = self.network.world.now().since(from).as_micros() as f64 / 1e6;
        let flows = self.scenario.flows.iter().zip(&self.flows).enumerate();
        let flows: Vec<FlowResult> = flows
            .map(|(number, (settings, flow))| {
                let bytes = now.bytes[number] - before.bytes[number];
                self.flow_result(number, settings, flow, bytes as f64 / 125.0 / seconds)
            })
            .collect();
        let broken = flows.iter().find(|flow| !flow.intact);
        RunResult {
            point: 0,
            seed,
            complete: false,
            failure: broken
                .map(|flow| format!("flow {} delivered other bytes than were sent", flow.flow)),
            joined_s: joined.as_micros() as f64 / 1e6,
            seconds,
            nodes: self.node_results(&now, before),
            links: link_results(&now, before),
            packets_injected_lost: now.packets_lost - before.packets_lost,
            samples: self.samples.clone(),
            flows,
        }
    }

    fn flow_result(
        &self,
        number: usize,
        settings: &FlowSettings,
        flow: &Flow,
        measured_kbps: f64,
    ) -> FlowResult {
        let read = self.read(flow);
        let progress = self.progress(flow).copied().unwrap_or_default();
        let took = progress.began.zip(progress.finished);
        let took_s = took.map(|(began, finished)| finished.since(began).as_micros() as f64 / 1e6);
        let mean = |sum: f64| (flow.rtt_samples > 0).then(|| sum / f64::from(flow.rtt_samples));
        FlowResult {
            flow: number,
            from: settings.from,
            to: settings.to,
            bytes: self.delivered(flow),
            goodput_kbps: match took_s {
                Some(took_s) if took_s > 0.0 => read.len() as f64 / 125.0 / took_s,
                _ => measured_kbps,
            },
            rtt_ms: mean(flow.rtt_sum),
            cwnd_segments: mean(flow.cwnd_sum),
            finished_s: took_s,
            datagrams: self
                .sink(flow)
                .and_then(|sink| Some([self.made(flow)?, sink.received])),
            latency_ms: self
                .sink(flow)
                .and_then(Sink::mean_age)
                .map(|age| age.as_micros() as f64 / 1e3),
            error: progress.error.map(|error| format!("{error:?}")),
            intact: flow.content.starts_with(read),
        }
    }

    fn node_results(&self, now: &Counts, before: &Counts) -> Vec<NodeResult> {
        let mesh_nodes = self.network.mesh_nodes();
        let nodes = now.nodes.iter().zip(&before.nodes).enumerate();
        // Further hosts only have inboxes.
        nodes
            .take(mesh_nodes + 1)
            .map(|(node, (now, before))| NodeResult {
                name: if node < mesh_nodes {
                    self.network.name(node).to_owned()
                } else {
                    "host".to_owned()
                },
                parent: self.network.tree().parent(node),
                hops: self.network.tree().depth(node),
                counts: now.since(before),
            })
            .collect()
    }
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
    fn apply(&self, config: &mut motet::tcp::Config) {
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
        config.congestion_control = self.congestion_control;
    }
}

fn spans(usage: &Usage) -> [u64; State::COUNT] {
    State::ALL.map(|state| usage.span(state).as_micros())
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}

/// What endless flows send in runs of this length: more than the air carries.
pub(super) fn endless_content(duration_s: f64) -> Arc<[u8]> {
    content(0, 0, (duration_s * BYTES_PER_S_MAX) as usize)
}

/// Bytes without repetition, so that any slip shows.
fn content(seed: u64, flow: usize, len: usize) -> Arc<[u8]> {
    let mut rng = stream(seed, flow as u32, Purpose::Application);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes.into()
}

/// More than goodput can be: full frames follow each other every 6.2 ms at best.
const BYTES_PER_S_MAX: f64 = 20_000.0;

/// The longest run with an endless flow, s: what it may send is in memory.
pub(super) const ENDLESS_S_MAX: f64 = 12_000.0;

/// How often a run looks whether it shall stop, in virtual time.
const PAUSE: Duration = Duration::from_secs(1);

const FIRST_PORT: u16 = 4_242;

/// Of those that 6LoWPAN compresses to four bits (RFC 6282 §4.3.1).
const UDP_PORT: u16 = 0xf0b2;
