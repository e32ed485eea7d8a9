//! One run of one setting: saturated flows over a chain, measured and verified.
//!
//! Purpose: senders always have more to send until the time is over; then what they sent
//! must have arrived, byte for byte. Goodput is counted within the time; losses over whole
//! connections, so that nothing is still under way when they are counted.
//! Left out: what is measured on top of that; see `metric`.

use std::fmt;

use motet::tcp::RetransmissionCause;
use motet::time::{Duration, Instant};

use crate::Arena;
use crate::air::medium::Fate;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::experiments::bulk::{Bulk, Measure};
use crate::net::chain::ChainOptions;
use crate::net::network::Network;

use super::ask;
use super::headers::HeaderTally;
use super::setup::{Setup, Traffic};
use super::spent::Spent;
use crate::stats::{jain, mean, median};

/// What a run gave.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// One for each flow.
    pub flows: Vec<Flow>,
    /// Frames on the air but ACKs, each attempt counted.
    pub frames: u64,
    /// Attempts after the first of a frame.
    pub retries: u64,
    /// Data bytes that arrived, over the same time as `frames`.
    pub bytes: u64,
    /// What became of the frames, by [`Fate::index`].
    pub fates: [u64; Fate::COUNT],
    /// What the chain's nodes spent over the same time.
    pub spent: Spent,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
    /// Headers, where these were looked at.
    pub headers: HeaderTally,
}

/// What a run gave one flow.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Flow {
    /// Application bytes delivered in the measured time, kb/s.
    pub goodput_kbps: f64,
    /// Part of the sender's segments that never reached the receiver's TCP.
    pub loss: f64,
    /// Median of the smoothed RTT, ms.
    pub rtt_ms: f64,
    /// Mean congestion window as a part of the window.
    pub cwnd: f64,
    /// Retransmission timeouts, in 100 s.
    pub timeouts: f64,
    /// Retransmissions by duplicate ACKs, SACK or RACK, in 100 s.
    pub fast_retransmissions: f64,
    /// Time since the first byte, s, and the congestion window then, bytes.
    pub cwnd_trace: Vec<(f64, f64)>,
}

/// Why a run does not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The mesh cannot be built.
    Topology(String),
    /// Not every mote had an address in time.
    NotJoined,
    /// Packets are lost at the lowest rate.
    PacketsLost,
    /// The bytes that arrived are not those that were sent.
    BytesDiffer {
        /// The first place where they differ.
        at: u64,
    },
    /// Not all that was sent arrived.
    Unfinished {
        /// Bytes sent.
        sent: u64,
        /// Bytes that arrived.
        arrived: u64,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topology(reason) => f.write_str(reason),
            Self::NotJoined => write!(f, "no address after {} s", JOIN_LIMIT.as_millis() / 1_000),
            Self::PacketsLost => f.write_str("packets are lost at every rate"),
            Self::BytesDiffer { at } => write!(f, "byte {at} is not the one that was sent"),
            Self::Unfinished { sent, arrived } => {
                write!(f, "{arrived} of {sent} bytes sent have arrived")
            }
        }
    }
}

/// Runs a setting for so many measured seconds.
///
/// # Errors
/// [`Failure`], which makes the run void.
pub fn run(setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
    match &setup.traffic {
        Traffic::Bulk(bulk) => return run_bulk(bulk, &setup.chain, seed),
        Traffic::Transfer(transfer) => return transfer.run(setup, seed),
        Traffic::Headers(headers) => return headers.run(setup, seed),
        Traffic::Ask(shape) => return ask::run(*shape, setup, seed, seconds),
        Traffic::Up | Traffic::Down | Traffic::Motes | Traffic::TwoUp => {}
    }
    let arena = Arena::new();
    let mut network = Network::new(setup.network(seed), &arena)
        .map_err(|error| Failure::Topology(error.to_string()))?;
    if !network.join(JOIN_LIMIT) {
        return Err(Failure::NotJoined);
    }
    let began = network.world.now();
    let from = began + WARM_UP;
    let to = from + Duration::from_secs(seconds);
    let pairs = setup.pairs(&network);
    for (number, [sender, receiver]) in pairs.iter().copied().enumerate() {
        let port = PORT + number as u16;
        let ends = |node, peer: usize| network.ends(node, network.addr(peer), &arena);
        let content = Content::endless([seed, number as u64]);
        let receiving = ends(receiver, sender).with(setup.receiver);
        let receiving = Receiver::checking(port, receiving, content.clone());
        let peer = (network.addr(receiver), port);
        let sending = ends(sender, receiver).with(setup.sender);
        let sending = Sender::new(content, peer, sending).until(to);
        network.world.set_app(receiver, App::Receiver(receiving));
        network.world.set_app(sender, App::Sender(sending));
    }
    let mut watched = Watch::new(&network, &pairs, setup);
    network.world.run_until(from);
    let before: Vec<u64> = pairs.iter().map(|pair| received(&network, pair)).collect();
    watched.observe(&mut network, &pairs, to);
    let after: Vec<u64> = pairs.iter().map(|pair| received(&network, pair)).collect();
    drain(&mut network, &pairs, to + DRAIN_LIMIT);
    for pair in &pairs {
        verify(&network, pair)?;
    }
    let elapsed = network.world.now().since(began);
    let flows = pairs.iter().enumerate().map(|(number, pair)| {
        let bytes = after[number] - before[number];
        watched.flow(
            number,
            &network,
            pair,
            bytes as f64 * 8.0 / seconds as f64,
            elapsed,
        )
    });
    let flows = flows.collect();
    Ok(watched.run(&network, &pairs, flows, setup))
}

/// The throughput of bulk packets, or the latency of one.
fn run_bulk(bulk: &Bulk, chain: &ChainOptions, seed: u64) -> Result<Run, Failure> {
    let mut flow = Flow::default();
    match bulk.measure {
        Measure::Throughput => {
            let throughput = bulk.throughput_kbps(chain, seed);
            flow.goodput_kbps = throughput.ok_or(Failure::PacketsLost)?;
        }
        Measure::Latency => {
            let latency = bulk.latency_ms(chain, seed);
            flow.rtt_ms = latency.ok_or(Failure::PacketsLost)?;
        }
    }
    Ok(Run {
        flows: vec![flow],
        ..Run::default()
    })
}

/// What is noted while a run goes on.
struct Watch {
    window_segments: usize,
    /// By flow.
    samples: Vec<Vec<Sample>>,
    frames: u64,
    retries: u64,
    fates: [u64; Fate::COUNT],
    spent: Spent,
}

#[derive(Clone, Copy)]
struct Sample {
    at_s: f64,
    srtt_ms: u32,
    cwnd_bytes: u16,
    window_bytes: usize,
}

impl Watch {
    fn new(network: &Network<'_>, pairs: &[[usize; 2]], setup: &Setup) -> Self {
        let (frames, fates) = frames(network);
        Self {
            window_segments: setup.chain.window_segments,
            samples: vec![Vec::new(); pairs.len()],
            frames,
            retries: retries(network),
            fates,
            spent: Spent::of(network, &setup.chain),
        }
    }

    /// Runs to `to`, looking at the senders now and then.
    fn observe(&mut self, network: &mut Network<'_>, pairs: &[[usize; 2]], to: Instant) {
        let from = network.world.now();
        while network.world.now() < to {
            let next = (network.world.now() + SAMPLE_EVERY).min(to);
            network.world.run_until(next);
            for (samples, [sender, _]) in self.samples.iter_mut().zip(pairs) {
                let Some(progress) = network.world.app(*sender).progress() else {
                    continue;
                };
                let telemetry = progress.telemetry;
                samples.push(Sample {
                    at_s: next.since(from).as_micros() as f64 / 1e6,
                    srtt_ms: telemetry.srtt_ms,
                    cwnd_bytes: telemetry.cwnd_bytes,
                    window_bytes: self.window_segments * usize::from(telemetry.smss_bytes),
                });
            }
        }
    }

    fn flow(
        &self,
        number: usize,
        network: &Network<'_>,
        [sender, receiver]: &[usize; 2],
        bits_per_second: f64,
        elapsed: Duration,
    ) -> Flow {
        let samples = &self.samples[number];
        let sent = network.world.node(*sender).tcp().counters();
        let received = network.world.node(*receiver).tcp().counters();
        let hundreds = elapsed.as_micros() as f64 / 1e8;
        let count = |causes: &[RetransmissionCause]| {
            let count = causes
                .iter()
                .map(|cause| u32::from(sent.retransmitted(*cause)));
            f64::from(count.sum::<u32>()) / hundreds
        };
        let mut rtts: Vec<f64> = samples.iter().map(|s| f64::from(s.srtt_ms)).collect();
        let parts: Vec<f64> = samples.iter().map(Sample::cwnd_part).collect();
        let trace = samples
            .iter()
            .map(|s| (s.at_s, f64::from(s.cwnd_bytes).min(s.window_bytes as f64)));
        Flow {
            goodput_kbps: bits_per_second / 1_000.0,
            loss: 1.0 - f64::from(received.received) / f64::from(sent.sent),
            rtt_ms: median(&mut rtts),
            cwnd: mean(&parts),
            timeouts: count(&[RetransmissionCause::Timeout]),
            fast_retransmissions: count(&[
                RetransmissionCause::DuplicateAcks,
                RetransmissionCause::PartialAck,
                RetransmissionCause::Sack,
                RetransmissionCause::Rack,
            ]),
            cwnd_trace: trace.collect(),
        }
    }

    fn run(
        &self,
        network: &Network<'_>,
        pairs: &[[usize; 2]],
        flows: Vec<Flow>,
        setup: &Setup,
    ) -> Run {
        let (frames, mut fates) = frames(network);
        for (count, before) in fates.iter_mut().zip(self.fates) {
            *count -= before;
        }
        let bytes = pairs.iter().map(|pair| received(network, pair));
        Run {
            flows,
            frames: frames - self.frames,
            retries: retries(network) - self.retries,
            bytes: bytes.sum(),
            fates,
            spent: Spent::of(network, &setup.chain).since(&self.spent),
            retransmissions: pairs
                .iter()
                .map(|[sender, _]| retransmissions(network, *sender))
                .sum(),
            headers: HeaderTally::default(),
        }
    }
}

impl Sample {
    /// The congestion window as a part of the buffers; more helps nobody.
    fn cwnd_part(&self) -> f64 {
        (f64::from(self.cwnd_bytes) / self.window_bytes.max(1) as f64).min(1.0)
    }
}

impl Run {
    /// Goodput of all flows, kb/s.
    pub fn goodput_kbps(&self) -> f64 {
        self.flows.iter().map(|flow| flow.goodput_kbps).sum()
    }

    /// Mean of a figure of each flow.
    pub fn mean_of(&self, of: impl Fn(&Flow) -> f64) -> f64 {
        mean(&self.flows.iter().map(of).collect::<Vec<_>>())
    }

    /// Jain's index of the flows' goodputs.
    pub fn jain(&self) -> f64 {
        jain(
            &self
                .flows
                .iter()
                .map(|flow| flow.goodput_kbps)
                .collect::<Vec<_>>(),
        )
    }

    /// Frames on the air for each 1,000 bytes that arrived.
    pub fn frames_per_kb(&self) -> f64 {
        self.frames as f64 * 1_000.0 / self.bytes as f64
    }

    /// Part of attempts that were retries.
    pub fn retry_part(&self) -> f64 {
        self.retries as f64 / self.frames as f64
    }
}

/// Lets what was sent arrive.
pub(super) fn drain(network: &mut Network<'_>, pairs: &[[usize; 2]], limit: Instant) {
    let is_done = |network: &Network<'_>| {
        pairs.iter().all(|[_, receiver]| {
            let progress = network.world.app(*receiver).progress();
            progress.is_some_and(|progress| progress.finished.is_some())
        })
    };
    while !is_done(network) && network.world.step(limit) {}
}

pub(super) fn verify(
    network: &Network<'_>,
    pair @ [sender, receiver]: &[usize; 2],
) -> Result<(), Failure> {
    let arrived = received(network, pair);
    let sent = match network.world.app(*sender) {
        App::Sender(sender) => sender.taken(),
        _ => 0,
    };
    if let App::Receiver(Receiver {
        differs_at: Some(at),
        ..
    }) = network.world.app(*receiver)
    {
        return Err(Failure::BytesDiffer { at: *at });
    }
    let progress = network.world.app(*receiver).progress();
    if arrived != sent || progress.is_none_or(|progress| progress.finished.is_none()) {
        return Err(Failure::Unfinished { sent, arrived });
    }
    Ok(())
}

/// How much a flow's receiver has read.
fn received(network: &Network<'_>, [_, receiver]: &[usize; 2]) -> u64 {
    match network.world.app(*receiver) {
        App::Receiver(receiver) => receiver.received,
        _ => 0,
    }
}

/// Frames so far, and what became of them.
pub(super) fn frames(network: &Network<'_>) -> (u64, [u64; Fate::COUNT]) {
    let (mut frames, mut fates) = (0, [0; Fate::COUNT]);
    for (_, tally) in network.world.links() {
        frames += tally.frames;
        for (sum, count) in fates.iter_mut().zip(tally.frame_fates) {
            *sum += count;
        }
    }
    (frames, fates)
}

pub(super) fn retries(network: &Network<'_>) -> u64 {
    network
        .macs()
        .map(|mac| u64::from(mac.counters().retries))
        .sum()
}

/// Segments that a node's TCP sent again, whatever the cause.
pub(super) fn retransmissions(network: &Network<'_>, node: usize) -> u64 {
    let counters = network.world.node(node).tcp().counters();
    let causes = RetransmissionCause::ALL.iter();
    causes
        .map(|cause| u64::from(counters.retransmitted(*cause)))
        .sum()
}

/// The first flow's port.
pub(super) const PORT: u16 = 4_242;

/// Slow start and the first RTT samples are over by then.
pub(super) const WARM_UP: Duration = Duration::from_secs(5);

/// Long enough for the farthest mote to ask thrice.
pub(super) const JOIN_LIMIT: Duration = Duration::from_secs(60);

/// Long enough for many timeouts in a row: of 60 s each, in the end.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_secs(600);

/// Well below a round trip over one hop.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
#[path = "tests/bounds.rs"]
mod tests;
