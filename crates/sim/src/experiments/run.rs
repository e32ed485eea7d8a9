//! The figures of a run with one setting, and the steps common to all kinds of traffic.
//!
//! Purpose: a network whose motes have joined, the end of its transfers, and the check that what
//! was sent has arrived, byte for byte.
//! Left out: the traffic; see `traffic`. Figures derived from a run; see `metric`.

use std::fmt;

use motet::tcp::RetransmissionCause;
use motet::time::{Duration, Instant};

use crate::Arena;
use crate::air::medium::Fate;
use crate::apps::{App, Receiver};
use crate::net::network::{Network, NetworkOptions};
use crate::net::run::{self, Next};
use crate::stats::{jain, mean};

use super::header_tally::HeaderTally;
use super::spent::Spent;

/// The figures of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The figures of each flow.
    pub flows: Vec<Flow>,
    /// Frames on the air but ACKs, each attempt counted.
    pub frames: u64,
    /// Attempts after the first of a frame.
    pub retries: u64,
    /// Data bytes that arrived, over the same time as `frames`.
    pub bytes: u64,
    /// The fates of the frames, by [`Fate::index`].
    pub fates: [u64; Fate::COUNT],
    /// The energy and work that the chain's nodes spent over the same time.
    pub spent: Spent,
    /// Segments that TCP sent again.
    pub retransmissions: u64,
    /// Headers, where these were looked at.
    pub headers: HeaderTally,
    /// Figures of one experiment alone, by name.
    pub figures: Vec<(&'static str, f64)>,
}

/// The figures of one flow of a run.
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
    /// Not every mote of a mesh that forms itself was reached in time.
    NotFormed,
    /// A file of measurements is missing, or is none.
    NoTrace(String),
    /// Packets are lost at the lowest rate.
    PacketsLost,
    /// The packets that left the border router's fairness are not those that entered it.
    PacketsDiffer,
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
            Self::NotFormed => write!(
                f,
                "the mesh has not formed after {} s",
                FORM_LIMIT.as_millis() / 1_000
            ),
            Self::NoTrace(reason) => f.write_str(reason),
            Self::PacketsDiffer => {
                f.write_str("the packets out of the border router are not those that went in")
            }
            Self::PacketsLost => f.write_str("packets are lost at every rate"),
            Self::BytesDiffer { at } => write!(f, "byte {at} is not the one that was sent"),
            Self::Unfinished { sent, arrived } => {
                write!(f, "{arrived} of {sent} bytes sent have arrived")
            }
        }
    }
}

impl Run {
    /// A figure of one experiment alone; no number where the run has none of that name.
    pub fn figure(&self, name: &str) -> f64 {
        let found = self.figures.iter().find(|(own, _)| *own == name);
        found.map_or(f64::NAN, |(_, value)| *value)
    }

    /// All values of a figure that a run has several times, in their order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = f64> {
        let own = self.figures.iter().filter(move |(own, _)| *own == name);
        own.map(|(_, value)| *value)
    }

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

/// The network of a run, once every mote of it has an address.
///
/// # Errors
/// [`Failure`]: it cannot be built, or a mote gets no address in time.
pub(super) fn joined(options: NetworkOptions, arena: &Arena) -> Result<Network<'_>, Failure> {
    let mut network =
        Network::new(options, arena).map_err(|error| Failure::Topology(error.to_string()))?;
    if network.join(JOIN_LIMIT) {
        Ok(network)
    } else {
        Err(Failure::NotJoined)
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
    run::run(network, limit, |network| match is_done(network) {
        true => Next::Over,
        false => Next::Event,
    });
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
pub(super) fn received(network: &Network<'_>, [_, receiver]: &[usize; 2]) -> u64 {
    match network.world.app(*receiver) {
        App::Receiver(receiver) => receiver.received,
        _ => 0,
    }
}

/// The number of frames so far, and of each fate.
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

/// The first flow's TCP port.
pub(super) const PORT: u16 = 4_242;

/// Slow start and the first RTT samples are over by then.
pub(super) const WARM_UP: Duration = Duration::from_secs(5);

/// Long enough for the farthest mote to ask thrice.
pub(super) const JOIN_LIMIT: Duration = Duration::from_secs(60);

/// Five times what the largest mesh may take.
pub(super) const FORM_LIMIT: Duration = Duration::from_secs(600);

/// Long enough for many timeouts in a row: of 60 s each, in the end.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_secs(600);
