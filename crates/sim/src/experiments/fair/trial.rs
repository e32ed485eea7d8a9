//! A mesh whose motes all send to one host, with a policy at its border router.
//!
//! Purpose: one run, and what it gave each flow.

use motet::limits::TCP_LISTENERS_MAX;
use motet::tcp::RetransmissionCause;
use motet::time::{Duration, Instant};
use motet_taim::{Config, Policy};

use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::Tune;
use crate::net::network::{HostOptions, Network, NetworkOptions, Part};
use crate::stats::{jain, mean};
use crate::streams::{Purpose, stream};

/// The setting of a run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The mesh, its routes given; its hosts are [`hosts`].
    pub mesh: NetworkOptions,
    /// The motes that send.
    pub senders: Vec<usize>,
    /// Bytes that each sends; none: without an end.
    pub bytes: Option<u64>,
    /// For how long at most, from the start signal.
    pub limit: Duration,
    /// Changes to the TCP of motes, and of the host.
    pub tunes: [Tune; 2],
}

/// The figures of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By flow: bytes that had arrived at each `STEP` since the start signal.
    pub arrived: Vec<Vec<u64>>,
    /// By flow: when all had arrived, s since the start signal.
    pub finished_s: Vec<Option<f64>>,
    /// By flow: hops from mote to border router.
    pub hops: Vec<usize>,
    /// Retransmission timeouts of all motes since the start signal.
    pub timeouts: u64,
    /// Those, from the beginning, that came while a packet of the mote was held.
    pub timeouts_held: u64,
    /// Segments that the motes sent since the start signal.
    pub segments: u64,
}

impl Trial {
    /// Runs it under a policy.
    ///
    /// # Errors
    /// [`Failure`]: the mesh cannot be built, bytes differ from those sent, or the packets out
    /// of the router are not those that went in.
    pub fn run(&self, policy: Policy) -> Result<Outcome, Failure> {
        let arena = Arena::new();
        let mesh = NetworkOptions {
            fairness: Some(Config::new(policy)),
            ..self.mesh.clone()
        };
        let mut network =
            Network::new(mesh, &arena).map_err(|error| Failure::Topology(error.to_string()))?;
        let start = Instant::ORIGIN + CONNECTED_WITHIN;
        for (flow, mote) in self.senders.iter().enumerate() {
            self.open(&mut network, (flow, *mote), start, &arena);
        }
        network.world.run_until(start);
        let before = self.sent(&network);
        let mut outcome = self.nothing_yet(&network);
        let mut now = start;
        let mut is_over = false;
        while now < start + self.limit && !is_over {
            now += STEP;
            network.world.run_until(now);
            is_over = outcome.note(&network, start)?;
        }
        let after = self.sent(&network);
        [outcome.segments, outcome.timeouts] = [after[0] - before[0], after[1] - before[1]];
        network.world.end_fairness();
        if let Some(fairness) = network.world.fairness() {
            outcome.timeouts_held = fairness.timeouts_held();
            if !fairness.is_balanced() || fairness.router().held() > 0 {
                return Err(Failure::PacketsDiffer);
            }
        }
        Ok(outcome)
    }

    fn open<'m>(
        &self,
        network: &mut Network<'m>,
        (flow, mote): (usize, usize),
        start: Instant,
        arena: &'m Arena,
    ) {
        let (seed, number) = (network.seed(), flow as u16);
        let (host, _) = place(network, flow);
        let port = PORT + number;
        let [at_mote, at_host] = self.tunes;
        let content = || match self.bytes {
            Some(bytes) => Content::made([seed, number.into()], bytes),
            None => Content::endless([seed, number.into()]),
        };
        let receiving = network.ends(host, network.addr(mote), arena).with(at_host);
        let receiver = Receiver::checking(port, receiving, content());
        network.world.add_app(host, App::Receiver(receiver));
        let sending = network.ends(mote, network.addr(host), arena).with(at_mote);
        // The command to start takes a while to reach all.
        let mut rng = stream(seed, number.into(), Purpose::Application);
        let at = start + rng.uniform(SIGNAL_WITHIN);
        let sender = Sender::new(content(), (network.addr(host), port), sending).from(at);
        network.world.add_app(mote, App::Sender(sender));
    }

    fn nothing_yet(&self, network: &Network<'_>) -> Outcome {
        let flows = self.senders.len();
        let hops = self.senders.iter();
        Outcome {
            arrived: vec![Vec::new(); flows],
            finished_s: vec![None; flows],
            hops: hops.map(|mote| network.tree().depth(*mote)).collect(),
            timeouts: 0,
            timeouts_held: 0,
            segments: 0,
        }
    }

    /// Segments and timeouts of all senders so far.
    fn sent(&self, network: &Network<'_>) -> [u64; 2] {
        let mut sums = [0, 0];
        for mote in &self.senders {
            let counters = network.world.node(*mote).tcp().counters();
            sums[0] += u64::from(counters.sent);
            sums[1] += u64::from(counters.retransmitted(RetransmissionCause::Timeout));
        }
        sums
    }
}

impl Outcome {
    /// Notes the bytes that have arrived; returns whether all have.
    fn note(&mut self, network: &Network<'_>, start: Instant) -> Result<bool, Failure> {
        let mut is_over = true;
        for (flow, arrived) in self.arrived.iter_mut().enumerate() {
            let (host, app) = place(network, flow);
            let Some(App::Receiver(receiver)) = network.world.apps(host).get(app) else {
                continue;
            };
            if let Some(at) = receiver.differs_at {
                return Err(Failure::BytesDiffer { at });
            }
            arrived.push(receiver.received);
            let finished = receiver.progress.finished;
            is_over &= finished.is_some();
            self.finished_s[flow] = finished.map(|at| seconds(at.since(start)));
        }
        Ok(is_over)
    }

    /// The outcome as figures of a run.
    pub fn into_run(self) -> Run {
        let steps = self.arrived.first().map_or(0, Vec::len);
        // Windows in which every flow was active.
        let first_end = self
            .finished_s
            .iter()
            .flatten()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let active = (first_end / seconds(STEP)).min(steps as f64) as usize;
        let windows: Vec<[f64; 2]> = (0..active / WINDOW)
            .map(|window| self.even(window * WINDOW, (window + 1) * WINDOW))
            .collect();
        let minutes = (0..active / MINUTE).map(|minute| {
            (
                "jain_minute",
                self.even(minute * MINUTE, (minute + 1) * MINUTE)[0],
            )
        });
        let of = |place: usize| windows.iter().map(|even| even[place]).collect::<Vec<_>>();
        let first = windows.first().copied().unwrap_or([f64::NAN; 2]);
        let all = self.even(0, active.max(1));
        let finished = self.finished_s.iter().map(|at| at.unwrap_or(f64::INFINITY));
        let hops = self.hops.iter().map(|hops| *hops as f64);
        // Over the time in which every flow was active: then cheap flows do not stand out.
        let rates: Vec<f64> = self.rates_kbps(0, active.max(1));
        let weighted: f64 = hops.zip(&rates).map(|(hops, rate)| hops * rate).sum();
        let segments = self.segments as f64;
        let mut figures = vec![
            ("jain", all[0]),
            ("max_min", all[1]),
            ("jain_first", first[0]),
            ("max_min_first", first[1]),
            ("jain_windows", mean(&of(0))),
            ("max_min_windows", mean(&of(1))),
            ("makespan_s", finished.fold(0.0, f64::max)),
            ("hop_weighted", weighted),
            ("goodput", rates.iter().sum()),
            ("held_rto", self.timeouts_held as f64 / segments),
            ("total_rto", self.timeouts as f64 / segments),
            ("first_finish_s", first_end),
            (
                "deepest_hops",
                self.hops.iter().copied().max().unwrap_or(0) as f64,
            ),
        ];
        figures.extend(minutes);
        Run {
            figures,
            ..Run::default()
        }
    }

    /// The goodput of each flow from one step to another, kb/s.
    fn rates_kbps(&self, from: usize, to: usize) -> Vec<f64> {
        let span_s = (to - from) as f64 * seconds(STEP);
        let at = |arrived: &[u64], step: usize| match step.checked_sub(1) {
            Some(before) => arrived.get(before).copied().unwrap_or_default(),
            None => 0,
        };
        let rate = |arrived: &Vec<u64>| {
            let bytes = at(arrived, to) - at(arrived, from);
            bytes as f64 * 8.0 / 1_000.0 / span_s
        };
        self.arrived.iter().map(rate).collect()
    }

    /// Jain's index, and the greatest over the least; a flow that got nothing counts as one that
    /// got a byte, so that means stay numbers.
    fn even(&self, from: usize, to: usize) -> [f64; 2] {
        let rates = self.rates_kbps(from, to);
        let byte_kbps = 0.008 / ((to - from) as f64 * seconds(STEP));
        let most = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        [jain(&rates), most / least.max(byte_kbps)]
    }
}

/// One host with room for so many flows: several stacks behind its address, since a stack listens
/// on so many ports only.
pub fn hosts(flows: usize) -> Vec<HostOptions> {
    let stacks = flows.div_ceil(TCP_LISTENERS_MAX).max(1);
    let host = |stack: usize| {
        let first = PORT + (stack * TCP_LISTENERS_MAX) as u16;
        let last = first + (TCP_LISTENERS_MAX - 1) as u16;
        HostOptions {
            connections: TCP_LISTENERS_MAX,
            listeners: TCP_LISTENERS_MAX,
            half_open: TCP_LISTENERS_MAX,
            part: (stack > 0).then_some(Part {
                host: 0,
                ports: [first, last],
            }),
            ..HostOptions::new("host")
        }
    };
    (0..stacks).map(host).collect()
}

/// The node and the place among its applications that receive a flow.
fn place(network: &Network<'_>, flow: usize) -> (usize, usize) {
    let host = network.host(flow / TCP_LISTENERS_MAX);
    (host.unwrap_or_default(), flow % TCP_LISTENERS_MAX)
}

fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

/// How finely progress is noted.
const STEP: Duration = Duration::from_secs(10);

/// Steps of a window: two minutes.
const WINDOW: usize = 12;

/// How many steps a minute has.
const MINUTE: usize = 6;

/// By then all motes have connected.
const CONNECTED_WITHIN: Duration = Duration::from_secs(60);

const SIGNAL_WITHIN: Duration = Duration::from_secs(1);

/// The port of the first flow.
const PORT: u16 = 5_000;
