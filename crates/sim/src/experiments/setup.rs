//! The setting of a run: a chain, and what is changed of TCP.
//!
//! Purpose: a published figure names a topology and a window; a [`Setup`] is that, and says what a
//! full segment is there and what the radio allows. Left out: constants of the air, which every
//! setting shares, and who sends to whom; see `traffic`.

use std::net::Ipv6Addr;

use motet::ip::queue::Discipline;
use motet::tcp::Config;
use motet::time::Duration;

use crate::Arena;
use crate::air::gains::{ChainAir, Gains};
use crate::net::chain::{Chain, ChainOptions};
use crate::net::network::{NetworkOptions, NodeOptions, Parent};
use crate::net::plan;

use super::run::JOIN_LIMIT;

/// A setting of the stack on a chain. The air is the calibrated one, always.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Hops, window, MSS, relaying, retry delay.
    pub chain: ChainOptions,
    /// Whether radios sleep in the CSMA backoff.
    pub deaf_backoff: bool,
    /// How queues of whole packets are kept short.
    pub discipline: Discipline,
    /// Buffers of a receiving mote, in segments, where they are not those of the sender.
    pub receiver_segments: Option<usize>,
    /// Changes to the TCP of the senders.
    pub sender: Tune,
    /// Changes to the TCP of the receivers.
    pub receiver: Tune,
}

/// What a full segment is in a setting, and what the radio allows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Segment {
    /// Application bytes; of bulk packets, the frame.
    pub payload_len: usize,
    /// What no run can exceed, kb/s, where that is known.
    pub bound: Option<f64>,
    /// What the papers' arithmetic gives, kb/s, where that is no bound.
    pub estimate: Option<f64>,
}

impl Segment {
    /// Of no setting.
    pub const NONE: Self = Self {
        payload_len: 0,
        bound: None,
        estimate: None,
    };
}

/// A change of TCP's settings.
pub type Tune = fn(&mut Config);

impl Setup {
    /// `TCPlp`'s: `hops` hops upwards, MSS of five frames, window of four segments.
    pub fn hops(hops: u16) -> Self {
        Self {
            chain: ChainOptions {
                hops,
                ..ChainOptions::default()
            },
            deaf_backoff: false,
            discipline: Discipline::DropTail,
            receiver_segments: None,
            sender: as_it_is,
            receiver: as_it_is,
        }
    }

    /// With this longest delay of link retries.
    #[must_use]
    pub fn retry_delay_ms(mut self, ms: u64) -> Self {
        self.chain.retry_delay = Duration::from_millis(ms);
        self
    }

    /// With buffers of so many segments.
    #[must_use]
    pub fn window_segments(mut self, segments: usize) -> Self {
        self.chain.window_segments = segments;
        self
    }

    /// A full segment of the flow between mote and host, and what the radio allows of it in a run
    /// that measures for `seconds`, from the lab's own frame times.
    pub fn segment(&self, seconds: u64) -> Segment {
        self.segment_to(plan::HOST, seconds)
    }

    /// The same of the flow between mote and `peer`: host, or the chain's other end.
    ///
    /// The papers' arithmetic takes mean backoffs, and over more hops adds up the times of three,
    /// although backoffs and copies of one overlap with frames of another: an estimate, which good
    /// settings exceed.
    pub(super) fn segment_to(&self, peer: Ipv6Addr, seconds: u64) -> Segment {
        let arena = Arena::new();
        let mut chain = Chain::new(self.chain, &arena);
        chain.join(JOIN_LIMIT);
        let [sender, receiver] = [self.sender, self.receiver].map(|tune| {
            let mut config = Config::default();
            tune(&mut config);
            config
        });
        let timestamps = sender.timestamps && receiver.timestamps;
        let every = receiver.ack_every.max(self.chain.ack_every);
        let path = chain.path_to(peer, timestamps, Some(every));
        let bound = path.map(|path| {
            let segments = self.chain.window_segments as u64;
            path.of_seconds_kbps(seconds, segments * path.segment.payload_len as u64)
        });
        Segment {
            payload_len: chain.segment_payload_len(),
            bound,
            estimate: Some(chain.estimate_kbps()),
        }
    }
}

/// Adds a mote beside node `of` of a chain, with the same parent.
///
/// Two motes at the same depth sense each other, and are as far from all others as the
/// other is.
pub(super) fn add_sibling(options: &mut NetworkOptions, of: usize) {
    let sibling = options.nodes.len();
    options.nodes.push(NodeOptions {
        name: "sibling".into(),
        parent: Parent::Node(of - 1),
        ..options.nodes[of].clone()
    });
    let place = |node| if node == sibling { of } else { node };
    options.gains = Gains::along(sibling + 1, place, ChainAir::CALIBRATED);
}

/// Changes nothing.
pub fn as_it_is(_: &mut Config) {}
