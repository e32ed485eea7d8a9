//! Four anemometers that sleep, three to five hops from the border router.
//!
//! A reading of 82 bytes a second each, 64 at a time, to a host behind the border router, over TCP
//! or by CoAP; with recorded noise of day and night. All transports have the same MAC, the same
//! parents and as many bytes to queue readings in. Where motes take hints (`Policy::Hinted`) TCP is
//! Motet's as a whole: its headers are compressed, and its connections prefer energy to latency.
//! `paced` makes the MAC Motet's, for CoAP too. Left out: that TCP and CoAP run at the same time,
//! as in the paper; they run apart with the same seeds. Source: `TCPlp` §9.2.

use std::path::PathBuf;
use std::sync::OnceLock;

use motet::link::IndirectConfig;
use motet::mac::{Policy, Sleep};
use motet::tcp::RetransmissionCause;
use motet::tcphc;
use motet::time::Duration;

use crate::Arena;
use crate::air::gains::{ChainAir, Gains};
use crate::air::noise::{Hours, Noise};
use crate::air::radio::{State, Usage};
use crate::apps::App;
use crate::apps::backlog::{Backlog, Sensor};
use crate::apps::coap::{CoapCollector, CoapReporter};
use crate::apps::messages::{Server, Shape};
use crate::apps::reporter::Reporter;
use crate::coap::timing::{Algorithm, Parameters, Timing};
use crate::experiments::run::{Failure, PORT, Run, frames, joined, retries};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::net::network::{
    Interference, Joining, Network, NetworkOptions, NodeOptions, Parent, Tables,
};
use crate::streams::{Purpose, stream};

/// The transport that carries the readings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transport {
    Tcp,
    /// Confirmable CoAP, with this algorithm.
    Coap(Algorithm),
    /// CoAP that nobody confirms.
    Unreliable,
}

/// A setting of the four.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anemometers {
    pub(super) transport: Transport,
    pub(super) policy: Policy,
    /// Readings in a batch.
    pub(super) batch: usize,
    /// Frames of a full packet.
    pub(super) frames: u8,
    /// Packets lost at the border router, in hundredths.
    pub(super) loss: u64,
    /// The hour of the day whose noise is heard; none: none is.
    pub(super) hour: Option<u64>,
    /// Whether nodes measure their pace, and the border router thins ACKs, as Motet does; or retry
    /// within 40 ms, as `TCPlp` does.
    pub(super) paced: bool,
}

impl Anemometers {
    /// `TCPlp` §9.4: batches of 64, packets of five frames, by night.
    pub(super) const NIGHT: Self = Self {
        transport: Transport::Tcp,
        policy: Policy::Paper,
        batch: 64,
        frames: 5,
        loss: 0,
        hour: None,
        paced: false,
    };
}

impl Traffic for Anemometers {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        // Each hour is a sample of its own, the same for all transports.
        let seed = seed.wrapping_add(self.hour.map_or(0, |hour| HOUR_SEEDS * (hour + 1)));
        let mut network = joined(self.network(seed)?, &arena)?;
        let now = network.world.now();
        let mut apps = Vec::new();
        let host = network.host(0).unwrap_or_default();
        for (number, leaf) in LEAVES.into_iter().enumerate() {
            // Motes are not in step: batches are whole at different times.
            let mut rng = stream(seed, leaf as u32, Purpose::Application);
            let begins = now + rng.uniform(BATCH_TIME);
            let backlog = Backlog::new(self.sensor(), begins, &mut rng);
            apps.push(self.start(&mut network, (leaf, host, number), (backlog, seed), &arena));
        }
        if self.transport != Transport::Tcp {
            let clients = LEAVES.map(|leaf| network.addr(leaf));
            let len = Sensor::ANEMOMETER.reading_len;
            let collector = CoapCollector::new(&clients, len, self.block_len(), &arena);
            network.world.set_app(host, App::CoapCollector(collector));
        }
        let warm = now + BATCH_TIME + BATCH_TIME;
        network.world.run_until(warm);
        let before = LEAVES.map(|leaf| network.world.usage(leaf));
        network.world.run_until(warm + Duration::from_secs(seconds));
        let after = LEAVES.map(|leaf| network.world.usage(leaf));
        let used = |of: fn(&Usage) -> Duration| -> f64 {
            let spans = before.iter().flatten().zip(after.iter().flatten());
            let spans = spans.map(|(before, after)| of(after).as_micros() - of(before).as_micros());
            spans.sum::<u64>() as f64
        };
        let total = used(Usage::total);
        let tally = Tally::of(self, &network, &apps, host);
        let (frames, fates) = frames(&network);
        Ok(Run {
            frames,
            fates,
            retries: retries(&network),
            bytes: tally.delivered * Sensor::ANEMOMETER.reading_len as u64,
            retransmissions: tally.retransmissions,
            figures: vec![
                (
                    "radio_duty_cycle",
                    100.0 * (1.0 - used(|usage| usage.span(State::Sleep)) / total),
                ),
                ("cpu_duty_cycle", 100.0 * used(Usage::cpu) / total),
                (
                    "reliability",
                    100.0 * tally.delivered as f64 / tally.made as f64,
                ),
                ("other_retransmissions", tally.others()),
            ],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Anemometers {
    fn sensor(&self) -> Sensor {
        let len = Sensor::ANEMOMETER.reading_len;
        // What TCP's send buffer holds, CoAP's queue has room for.
        let queue = match self.transport {
            Transport::Tcp => QUEUE_COAP - WINDOW * (self.block_len() + self.saved()) / len,
            Transport::Coap(_) | Transport::Unreliable => QUEUE_COAP,
        };
        Sensor {
            queue,
            batch: self.batch,
            ..Sensor::ANEMOMETER
        }
    }

    /// Bytes of readings in a packet that fills its frames.
    fn block_len(&self) -> usize {
        match self.frames {
            3 => 254,
            _ => 454,
        }
    }

    /// Whether TCP headers are compressed.
    fn is_compressed(&self) -> bool {
        self.transport == Transport::Tcp && matches!(self.policy, Policy::Hinted(_))
    }

    /// Bytes by which that makes a segment longer.
    fn saved(&self) -> usize {
        if self.is_compressed() { 36 } else { 0 }
    }

    fn network(&self, seed: u64) -> Result<NetworkOptions, Failure> {
        let nodes = (0..NODES).map(|n| {
            let mut node = NodeOptions::new(n.to_string());
            if let Some(parent) = parent(n) {
                node.parent = Parent::Node(parent);
            }
            node.mac.retry_delay_max = Duration::from_millis(40);
            node.pace_percent = if self.paced { 100 } else { 0 };
            node.mss_frames = self.frames;
            node.compression = self.is_compressed().then(tcphc::Mode::default);
            node.window_segments = WINDOW;
            node.sleep = LEAVES.contains(&n).then(|| Sleep::new(self.policy));
            node.indirect = IndirectConfig::DEFAULT;
            node.tables = Tables::RELAY;
            node
        });
        let gains = Gains::along(NODES, place, ChainAir::CALIBRATED);
        Ok(NetworkOptions {
            seed,
            joining: Joining::Static,
            thins_acks: self.paced,
            packet_loss: self.loss as f64 / 100.0,
            interference: self.hour.map(interference).transpose()?,
            ..NetworkOptions::new(nodes.collect(), gains)
        })
    }

    /// Lets a mote send what `backlog` makes; returns its application's place and its server's.
    fn start<'m>(
        &self,
        network: &mut Network<'m>,
        (leaf, host, number): (usize, usize, usize),
        (backlog, seed): (Backlog, u64),
        arena: &'m Arena,
    ) -> [usize; 2] {
        let [leaf_addr, host_addr] = [leaf, host].map(|node| network.addr(node));
        let timing = match self.transport {
            Transport::Tcp => {
                let port = PORT + number as u16;
                let receiving = network.ends(host, leaf_addr, arena);
                let shape = Shape {
                    message_len: backlog.sensor().reading_len,
                    answer_len: 0,
                    interval: backlog.sensor().interval,
                };
                let server = Server::new(port, receiving, shape);
                let server = App::Server(server.beginning_anew().skipping());
                let sending = network.ends(leaf, host_addr, arena);
                let sending = match self.policy {
                    Policy::Hinted(_) => sending.with(|config| config.economy = ECONOMY),
                    _ => sending,
                };
                let reporter = Reporter::new((host_addr, port), sending, backlog);
                let read = network.world.add_app(host, server);
                return [network.world.add_app(leaf, App::Reporter(reporter)), read];
            }
            Transport::Coap(algorithm) => Some(Timing::new(algorithm, Parameters::CONTIKI)),
            Transport::Unreliable => None,
        };
        let rng = stream(seed, (leaf + NODES) as u32, Purpose::Application);
        let to = (host_addr, crate::coap::PORT);
        let reporter = CoapReporter::new(to, backlog, self.block_len(), timing, rng, arena);
        [network.world.add_app(leaf, App::CoapReporter(reporter)), 0]
    }
}

/// The readings of all four anemometers, by outcome.
#[derive(Default)]
struct Tally {
    /// Readings made that neither wait nor are under way.
    made: u64,
    delivered: u64,
    retransmissions: u64,
    timeouts: u64,
}

impl Tally {
    fn of(setting: &Anemometers, network: &Network<'_>, apps: &[[usize; 2]], host: usize) -> Self {
        let mut all = Self::default();
        for (leaf, [sent, read]) in LEAVES.into_iter().zip(apps) {
            let sending = network.world.apps(leaf).get(*sent);
            let receiving = network.world.apps(host).get(*read);
            match (setting.transport, sending, receiving) {
                (Transport::Tcp, Some(App::Reporter(reporter)), Some(App::Server(server))) => {
                    let under_way = reporter.handed.saturating_sub(server.current);
                    all.count(&reporter.backlog, under_way, server.tally.received);
                    let counters = network.world.node(leaf).tcp().counters();
                    for cause in RetransmissionCause::ALL {
                        let again = u64::from(counters.retransmitted(cause));
                        all.retransmissions += again;
                        if cause == RetransmissionCause::Timeout {
                            all.timeouts += again;
                        }
                    }
                }
                (_, Some(App::CoapReporter(reporter)), Some(App::CoapCollector(collector))) => {
                    let tally = collector.tally(network.addr(leaf));
                    let received = tally.map_or(0, |(tally, _)| tally.received);
                    all.count(&reporter.backlog, reporter.under_way(), received);
                    all.retransmissions += reporter.sender.retransmissions;
                    all.timeouts += reporter.sender.retransmissions;
                }
                _ => {}
            }
        }
        all
    }

    fn count(&mut self, backlog: &Backlog, under_way: u64, received: u64) {
        let waiting = backlog.waiting() as u64 + under_way;
        let settled = u64::from(backlog.made).saturating_sub(waiting);
        // Readings in a block under way may have arrived before the block's answer has.
        self.made += settled.max(received);
        self.delivered += received;
    }

    /// The share of retransmissions that no timeout caused, %.
    fn others(&self) -> f64 {
        match self.retransmissions {
            0 => 0.0,
            all => 100.0 * (all - self.timeouts) as f64 / all as f64,
        }
    }
}

/// The noise of an hour: a library with much Wi-Fi while people work, a quiet room otherwise.
fn interference(hour: u64) -> Result<Interference, Failure> {
    let hours = Hours {
        from: 8.0,
        to: 18.0,
        now: hour as f64,
    };
    // Read once, not in every run.
    static TRACES: OnceLock<Result<[Noise; 2], String>> = OnceLock::new();
    let traces = TRACES.get_or_init(|| Ok([recording(DAY)?, recording(NIGHT)?]));
    let [day, night] = traces.clone().map_err(Failure::NoTrace)?;
    Ok(Interference {
        noise: day.by_day(night, hours),
        nodes: Vec::new(),
        together: true,
    })
}

fn recording(name: &str) -> Result<Noise, String> {
    let beside = || concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into();
    let shared = std::env::var_os("MOTET_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("data").join("traces").join(name);
    let failed = |why: String| {
        let path = path.display();
        format!("{path}: {why}; set MOTET_SHARED to the folder that has data/traces/{name}")
    };
    let bytes = std::fs::read(&path).map_err(|error| failed(error.to_string()))?;
    Noise::read(&bytes, 0.0).map_err(|error| failed(error.to_string()))
}

/// The next hop of a node, where it has one. Named for relays, too: in silence a frame also crosses
/// two walls, and by day none does.
fn parent(node: usize) -> Option<usize> {
    let of_leaf = PARENTS.iter().find(|(own, _)| *own == node);
    of_leaf.map_or(node.checked_sub(1), |(_, parent)| Some(*parent))
}

/// How far along the chain a node is.
fn place(node: usize) -> usize {
    parent(node).map_or(node, |parent| parent + 1)
}

/// The border router, four relays in a row, and the anemometers.
const NODES: usize = 9;

/// The anemometers.
pub(super) const LEAVES: [usize; 4] = [5, 6, 7, 8];

/// Their parents: three, four, four and five hops from the border router.
const PARENTS: [(usize, usize); 4] = [(5, 2), (6, 3), (7, 3), (8, 4)];

/// Segments of TCP's buffers.
const WINDOW: usize = 4;

/// Readings that a CoAP node has room for (`TCPlp` §9.2).
const QUEUE_COAP: usize = 104;

/// The time in which 64 readings are made.
const BATCH_TIME: Duration = Duration::from_secs(64);

/// The difference between the seeds of an hour and those of the next.
const HOUR_SEEDS: u64 = 1_000_003;

const DAY: &str = "tossim_meyer-heavy.txt.gz";
const NIGHT: &str = "tossim_casino-lab.txt.gz";

const ECONOMY: motet::tcp::Economy = motet::tcp::Economy::LowestEnergy;

#[cfg(test)]
mod tests {
    use super::*;

    /// The topology of `TCPlp` §9.2; a link over two walls would make it another one.
    #[test]
    fn anemometers_are_three_to_five_hops_away() {
        let options = Anemometers::NIGHT.network(1).expect("no recording");
        let tree = options.tree().expect("a chain");
        let up = |node: &usize| tree.parent(*node);
        let hops = LEAVES.map(|leaf| std::iter::successors(Some(leaf), up).count() - 1);
        assert_eq!(hops, [3, 4, 4, 5]);
    }
}
