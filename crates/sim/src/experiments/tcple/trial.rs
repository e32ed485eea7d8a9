//! One run: messages from motes to hosts, or down to a mote, and what became of them.

use motet::ble::Phy;
use motet::link::Link;
use motet::tcp::Config;
use motet::time::Duration;

use super::{Design, INTERVAL};
use crate::Arena;
use crate::apps::messages::{Client, Server, Shape};
use crate::apps::{App, Ends};
use crate::ble::estimate::SduTimes;
use crate::experiments::run::{Failure, Flow, PORT, Run, frames, joined, retransmissions};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::net::network::{BleOptions, HostOptions, Network, NetworkOptions, RADIO};
use crate::net::run::{Next, run};
use crate::streams::{Purpose, stream};

/// The messages of a run. Times between messages are no multiples of an interval, as clocks drift:
/// messages meet every part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Workload {
    /// Up, so much a second, as messages of 1,000 bytes.
    Offered { kbps: u64 },
    /// Up, this many bytes each second: all have arrived before the next are sent.
    Once { size: u64 },
    /// Up, this many bytes each 100 ms.
    Each100Ms { size: u64 },
    /// Up, 56 bytes a second, each answered by the host.
    Readings,
    /// Down, this many bytes every two seconds.
    Update { size: u64 },
}

/// Messages of one mote or several.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) design: Design,
    pub(super) what: Workload,
    /// Designs of motes that join after a third of the time and after two.
    pub(super) others: Vec<Design>,
    /// The chance that the central drops a packet.
    pub(super) error: f64,
    /// Where `TCPlE` does not set it, in units of 1.25 ms.
    pub(super) interval: u16,
    pub(super) latency: u16,
}

impl Load {
    pub(super) const fn of(design: Design, what: Workload) -> Self {
        Self {
            design,
            what,
            others: Vec::new(),
            error: 0.0,
            interval: INTERVAL,
            latency: 0,
        }
    }

    fn motes(&self) -> usize {
        1 + self.others.len()
    }

    fn design_of(&self, mote: usize) -> Design {
        let other = mote.checked_sub(2).and_then(|at| self.others.get(at));
        other.copied().unwrap_or(self.design)
    }

    fn shape(&self) -> Shape {
        let (len, answer_len, interval) = match self.what {
            Workload::Offered { kbps } => (
                MESSAGE_LEN,
                0,
                Duration::from_micros(MESSAGE_LEN as u64 * 8_000 / kbps),
            ),
            Workload::Once { size } => (size as usize, 0, Duration::from_millis(1_013)),
            Workload::Each100Ms { size } => (size as usize, 0, Duration::from_millis(101)),
            Workload::Readings => (READING_LEN, ANSWER_LEN, Duration::from_millis(1_013)),
            Workload::Update { size } => (size as usize, 0, Duration::from_millis(2_013)),
        };
        Shape {
            message_len: len,
            answer_len,
            interval,
        }
    }

    const fn is_down(&self) -> bool {
        matches!(self.what, Workload::Update { .. })
    }

    fn network(&self, seed: u64) -> NetworkOptions {
        let designs = (1..=self.motes()).map(|mote| self.design_of(mote));
        let options = NetworkOptions::over_ble(
            self.motes(),
            BleOptions {
                phy: Phy::Le1M,
                interval: self.interval,
                is_adaptive: false,
                latency: self.latency,
                tcple_motes: designs.take_while(|design| design.has_tcple).count(),
                profile: self.design.profile,
                ..BleOptions::DEFAULT
            },
        );
        let host = |n: usize| HostOptions {
            delay: Duration::ZERO,
            ..HostOptions::new(format!("host {n}"))
        };
        NetworkOptions {
            seed,
            hosts: (0..self.motes()).map(host).collect(),
            ..options
        }
    }

    /// The end of a mote, and that of its host.
    fn ends<'m>(
        &self,
        network: &Network<'m>,
        (mote, host): (usize, usize),
        arena: &'m Arena,
    ) -> [Ends<'m>; 2] {
        let design = self.design_of(mote);
        let common = |config: &mut Config| {
            config.timestamps = design.timestamps;
            config.initial_window = 2;
            config.nagle = false;
            // Delayed ACKs are off.
            config.ack_every = 1;
            if let Some(smss) = design.smss {
                config.smss = smss;
                config.rmss = config.rmss.min(smss);
            }
        };
        let own = Ends::mote(arena, network.addr(host), design.segments).with(common);
        let hosts = network.ends(host, network.addr(mote), arena).with(common);
        // A host that sends has no more in flight than the mote's window.
        [own, hosts]
    }
}

impl Traffic for Load {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let mut network = joined(self.network(seed), &arena)?;
        // As the paper injects losses: at the master, whose link layer asks for the packet again.
        network.world.set_dropped_by_central(self.error);
        let start = network.world.now();
        let from = start + WARM_UP;
        let to = from + Duration::from_secs(seconds);
        let mut rng = stream(seed, 0, Purpose::Stack);
        let pairs: Vec<(usize, usize)> = (0..self.motes())
            .map(|n| (n + 1, network.host(n).unwrap_or_default()))
            .collect();
        for (number, (mote, host)) in pairs.iter().copied().enumerate() {
            let port = PORT + number as u16;
            let [own, hosts] = self.ends(&network, (mote, host), &arena);
            let (client_at, server_at) = if self.is_down() {
                (host, mote)
            } else {
                (mote, host)
            };
            let (client_ends, server_ends) = if self.is_down() {
                (hosts, own)
            } else {
                (own, hosts)
            };
            let shape = self.shape();
            let server = Server::new(port, server_ends, shape);
            let joins = match number {
                0 => start,
                _ => from + Duration::from_micros(seconds * 1_000_000 / 3 * number as u64),
            };
            let peer = (network.addr(server_at), port);
            let client = Client::new(peer, client_ends, shape, joins, &mut rng).until(to);
            network.world.set_app(server_at, App::Server(server));
            network.world.set_app(client_at, App::Client(client));
        }
        self.measure(&mut network, &pairs, (from, to))
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        let times = SduTimes {
            phy: Phy::Le1M,
            has_mic: false,
            ack_every: u8::MAX,
        };
        let payload = PAYLOAD_LEN_MAX;
        let bound = times.goodput_kbps(payload, payload + HEADERS_LEN_MIN, HEADERS_LEN_MIN);
        Segment {
            payload_len: payload,
            // There is no bound for several flows.
            bound: (self.motes() == 1).then_some(bound),
            estimate: None,
        }
    }
}

impl Load {
    fn measure(
        &self,
        network: &mut Network<'_>,
        pairs: &[(usize, usize)],
        (from, to): (motet::time::Instant, motet::time::Instant),
    ) -> Result<Run, Failure> {
        network.world.run_until(from);
        let before = Counts::of(network, pairs, self.is_down());
        // The figures shared by several motes are taken in the last sixth of the time, when all
        // motes are connected.
        let last = to.as_micros() - (to.as_micros() - from.as_micros()) / 6;
        let last = motet::time::Instant::from_micros(last);
        let settled = match self.motes() {
            1 => None,
            _ => {
                network.world.run_until(last);
                Some(Counts::of(network, pairs, self.is_down()))
            }
        };
        let mut intervals = Vec::new();
        run(network, to, |network| {
            intervals.extend(interval_ms(network));
            Next::At(network.world.now() + SAMPLE_EVERY)
        });
        let after = Counts::of(network, pairs, self.is_down());
        if after.is_broken {
            return Err(Failure::BytesDiffer { at: 0 });
        }
        let begun = settled.as_ref().map_or(from, |_| last);
        let before = settled.unwrap_or(before);
        let time_s = to.since(begun).as_micros() as f64 / 1e6;
        let bytes = after.bytes.iter().zip(&before.bytes);
        let bytes: Vec<u64> = bytes.map(|(after, before)| after - before).collect();
        let flow = |bytes: &u64| Flow {
            goodput_kbps: *bytes as f64 * 8.0 / 1_000.0 / time_s,
            rtt_ms: after.rtt_ms,
            ..Flow::default()
        };
        let (frames, fates) = frames(network);
        let messages = after.messages.saturating_sub(before.messages).max(1) as f64;
        Ok(Run {
            flows: bytes.iter().map(flow).collect(),
            bytes: bytes.iter().sum(),
            frames,
            fates,
            retransmissions: retransmissions(network, 1),
            figures: vec![
                ("age", after.age_ms),
                ("age_mean", after.age_mean_ms),
                ("age_p90", after.age_p90_ms),
                ("interval", crate::stats::mean(&intervals)),
                ("energy", (after.energy_uj - before.energy_uj) / messages),
            ],
            ..Run::default()
        })
    }
}

/// The counters at one moment; times are those of the first mote, since its start.
struct Counts {
    bytes: Vec<u64>,
    messages: u64,
    energy_uj: f64,
    /// Time from when a message was made until all of it had arrived, ms: the median, and the 90th
    /// percentile.
    age_ms: f64,
    age_mean_ms: f64,
    age_p90_ms: f64,
    /// Time from when a message was made until its answer came, ms.
    rtt_ms: f64,
    is_broken: bool,
}

impl Counts {
    fn of(network: &Network<'_>, pairs: &[(usize, usize)], is_down: bool) -> Self {
        let world = &network.world;
        let mut counts = Self {
            bytes: Vec::new(),
            messages: 0,
            energy_uj: 0.0,
            age_ms: f64::NAN,
            age_mean_ms: f64::NAN,
            age_p90_ms: f64::NAN,
            rtt_ms: f64::NAN,
            is_broken: false,
        };
        for (number, &(mote, host)) in pairs.iter().enumerate() {
            let (client, server) = if is_down { (host, mote) } else { (mote, host) };
            if let App::Server(server) = world.app(server) {
                counts.bytes.push(server.tally.bytes);
                counts.is_broken |= server.is_broken;
                if number == 0 {
                    counts.messages = server.tally.received;
                    counts.age_mean_ms = millis(server.tally.mean_age());
                    counts.age_ms = millis(server.tally.ages.quantile(0.5));
                    counts.age_p90_ms = millis(server.tally.ages.quantile(0.9));
                }
            }
            if let App::Client(client) = world.app(client) {
                counts.is_broken |= client.is_broken;
                if number == 0 {
                    counts.rtt_ms = millis(client.tally.ages.quantile(0.5));
                }
            }
            if number == 0
                && let Some(usage) = world
                    .device(mote)
                    .and_then(|at| Some(world.ble()?.usage(at)))
            {
                counts.energy_uj = usage.energy_uj();
            }
        }
        counts
    }
}

fn millis(time: Option<Duration>) -> f64 {
    time.map_or(f64::NAN, |time| time.as_micros() as f64 / 1_000.0)
}

/// The interval of the first connection, ms.
fn interval_ms(network: &Network<'_>) -> Option<f64> {
    let Some(Link::Ble(ble)) = network.world.node(0).link(RADIO) else {
        return None;
    };
    let first = ble.host().connections().next()?;
    Some(f64::from(first.timing().interval) * 1.25)
}

const MESSAGE_LEN: usize = 1_000;
/// A reading of a noise sensor (§VI.D), and the shortest answer that the lab's messages have.
const READING_LEN: usize = 56;
const ANSWER_LEN: usize = 12;

/// The largest segment in an SDU of the MTU, and its shortest headers: both addresses elided.
const PAYLOAD_LEN_MAX: usize = 1280 - 40 - 20;
const HEADERS_LEN_MIN: usize = 3 + 20;

/// Until windows have grown and an interval was chosen.
const WARM_UP: Duration = Duration::from_secs(2);

const SAMPLE_EVERY: Duration = Duration::from_millis(100);
