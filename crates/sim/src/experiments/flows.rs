//! Saturated flows over a chain, measured and verified.
//!
//! Purpose: senders always have more to send until the time is over; then what they sent
//! must have arrived, byte for byte. Goodput is counted within the time; losses over whole
//! connections, so that nothing is still under way when they are counted.

use motet::tcp::RetransmissionCause;
use motet::time::{Duration, Instant};

use crate::Arena;
use crate::air::medium::Fate;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::net::network::{HostOptions, Network, NetworkOptions};
use crate::net::plan;
use crate::net::run::{Next, run};
use crate::stats::{mean, median};

use super::header_tally::HeaderTally;
use super::run::{
    DRAIN_LIMIT, Failure, Flow, PORT, Run, WARM_UP, drain, frames, joined, received,
    retransmissions, retries, verify,
};
use super::setup::{Segment, Setup, add_sibling};
use super::spent::Spent;
use super::traffic::Traffic;

/// Which node sends to which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flows {
    /// The mote at the end of the chain to the host.
    Up,
    /// The host to the mote at the end of the chain.
    Down,
    /// The mote at the end of the chain to the chain's other end, itself a mote.
    Motes,
    /// Two motes at the end of the chain, each to a host of its own.
    TwoUp,
}

impl Traffic for Flows {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let options = self.network(setup, seed)?;
        self.run_in(options, setup, (seed, seconds), |_| Vec::new())
    }

    /// Two senders' frames overlap: the arithmetic of one is no bound of both.
    fn segment(&self, setup: &Setup, seconds: u64) -> Segment {
        match self {
            Self::Up | Self::Down => setup.segment(seconds),
            Self::Motes => setup.segment_to(plan::mesh_addr(0), seconds),
            Self::TwoUp => Segment {
                bound: None,
                ..setup.segment(seconds)
            },
        }
    }
}

impl Flows {
    /// A run in a network that is that of `setup` but for what `options` add to it; `figures` are
    /// read off it in the end.
    pub(super) fn run_in(
        self,
        options: NetworkOptions,
        setup: &Setup,
        (seed, seconds): (u64, u64),
        figures: impl FnOnce(&Network<'_>) -> Vec<(&'static str, f64)>,
    ) -> Result<Run, Failure> {
        let arena = Arena::new();
        let mut network = joined(options, &arena)?;
        let began = network.world.now();
        let from = began + WARM_UP;
        let to = from + Duration::from_secs(seconds);
        let pairs = self.pairs(setup, &network);
        let scenario = setup.scenario()?;
        for (number, [sender, receiver]) in pairs.iter().copied().enumerate() {
            let port = PORT + number as u16;
            let ends = |node: usize, peer: usize| {
                let ends = network.ends(node, network.addr(peer), &arena);
                // A mote beside the chain is as its last one.
                ends.with(|config| match node < network.mesh_nodes() {
                    true => scenario.stacks[node.min(setup.mote())].apply(config),
                    false => scenario.wire.apply(config),
                })
            };
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
        Ok(Run {
            figures: figures(&network),
            ..watched.run(&network, &pairs, flows, setup)
        })
    }

    /// The network of a setting.
    fn network(self, setup: &Setup, seed: u64) -> Result<NetworkOptions, Failure> {
        let mut options = setup.network(seed)?;
        if self == Self::TwoUp {
            add_sibling(&mut options, setup.mote());
            options.hosts.push(HostOptions {
                name: "second host".into(),
                ..options.hosts[0].clone()
            });
        }
        if let (Self::Motes, Some(segments)) = (self, setup.receiver_segments) {
            options.nodes[0].window_segments = segments;
        }
        Ok(options)
    }

    /// Sender and receiver of each flow, as places in the world.
    fn pairs(self, setup: &Setup, network: &Network<'_>) -> Vec<[usize; 2]> {
        let mote = setup.mote();
        let host = |number| network.host(number).unwrap_or_default();
        match self {
            Self::Up => vec![[mote, host(0)]],
            Self::Down => vec![[host(0), mote]],
            Self::Motes => vec![[mote, 0]],
            Self::TwoUp => vec![[mote, host(0)], [mote + 1, host(1)]],
        }
    }
}

/// The notes of a run that goes on.
struct Watch {
    window_segments: usize,
    /// The samples of each flow.
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
            window_segments: setup.window(),
            samples: vec![Vec::new(); pairs.len()],
            frames,
            retries: retries(network),
            fates,
            spent: Spent::of(network, setup.mote()),
        }
    }

    /// Runs to `to`, looking at the senders now and then.
    fn observe(&mut self, network: &mut Network<'_>, pairs: &[[usize; 2]], to: Instant) {
        let from = network.world.now();
        run(network, to, |network| {
            let now = network.world.now();
            for (samples, [sender, _]) in self.samples.iter_mut().zip(pairs) {
                let progress = network.world.app(*sender).progress();
                let Some(progress) = progress.filter(|_| now > from) else {
                    continue;
                };
                let telemetry = progress.telemetry;
                samples.push(Sample {
                    at_s: now.since(from).as_micros() as f64 / 1e6,
                    srtt_ms: telemetry.srtt_ms,
                    cwnd_bytes: telemetry.cwnd_bytes,
                    window_bytes: self.window_segments * usize::from(telemetry.smss_bytes),
                });
            }
            Next::At(now + SAMPLE_EVERY)
        });
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
            spent: Spent::of(network, setup.mote()).since(&self.spent),
            retransmissions: pairs
                .iter()
                .map(|[sender, _]| retransmissions(network, *sender))
                .sum(),
            headers: HeaderTally::default(),
            figures: Vec::new(),
        }
    }
}

impl Sample {
    /// The congestion window as a part of the buffers; more helps nobody.
    fn cwnd_part(&self) -> f64 {
        (f64::from(self.cwnd_bytes) / self.window_bytes.max(1) as f64).min(1.0)
    }
}

/// Well below a round trip over one hop.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);
