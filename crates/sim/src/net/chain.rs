//! A chain of motes behind a border router, and a host beyond it.
//!
//! ```text
//! host ===== border router 0 ~~~ relay 1 ~~~ ... ~~~ mote n
//! ```
//!
//! Purpose: the setting of `TCPlp`'s study, and of `motet send` and `motet up`. Routes are
//! static; addresses, contexts and default routes come by router advertisement, from the
//! border router and on from each relay.
//! Left out: every other topology: [`crate::net::network`] has them, and builds this one.

use std::net::Ipv6Addr;

use motet::limits::{IPV6_MTU_MIN, PSDU_LEN_MAX};
use motet::link::{Forwarding, Relaying};
use motet::lowpan::fragment::{FIRST_SLACK, Outgoing};
use motet::lowpan::{LinkPair, TcpForm};
use motet::mac::Channels;
use motet::mac::Mac;
use motet::mac::config::BE_MIN;
use motet::tcphc;
use motet::time::Duration;
use motet::wire::{self, cursor::Writer, tcphc::Field};

use crate::Arena;
use crate::air::gains::{ChainAir, Gains};
use crate::air::profile::Profile;
use crate::apps::Ends;
use crate::net::bound::{Link, Route, SegmentFrames};
use crate::net::network::{
    self, HOST_DELAY, HostOptions, Joining, Network, NetworkOptions, NodeOptions, Parent, Tables,
};
use crate::net::plan;
use crate::net::world::World;

pub use crate::net::network::{HOST_WIRED, Host, RADIO, WIRED};

/// What a chain is like. `ChainOptions::default()` is `TCPlp`'s three hops.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ChainOptions {
    /// Radio hops from the mote to the border router, 1 to [`HOPS_MAX`].
    pub hops: u16,
    /// Every random choice follows from it.
    pub seed: u64,
    /// Chance that a frame received without error is lost nevertheless, ACKs included.
    pub frame_loss: f64,
    /// Chance that a packet is lost at the border router's wired side, either way.
    pub packet_loss: f64,
    /// Whether nodes two hops apart are hidden from each other.
    pub hidden: bool,
    /// Whether radios hear nothing while frames are copied.
    pub deaf: bool,
    /// d: the longest random wait before a link retry.
    pub retry_delay: Duration,
    /// The hold rule's time per hop; zero: off.
    pub hold_step: Duration,
    /// Frames of a full segment.
    pub mss_frames: u8,
    /// How TCP headers are compressed; `None`: not.
    pub compression: Option<tcphc::Mode>,
    /// Buffers of the mote's TCP, in full segments.
    pub window_segments: usize,
    /// How relays pass on packets of several fragments.
    pub relaying: Relaying,
    /// Frames that a node's MAC queues.
    pub queue_frames: usize,
    /// One-way delay between border router and host.
    pub host_delay: Duration,
    /// What is beyond the wire.
    pub host: Host,
    /// Who speaks at the far mote's address; if the caller does, nobody has to join.
    pub mote: Host,
    /// Radio and driver of every mote and of the border router.
    pub profile: Profile,
    /// How relays get a fragment from one frame into the next.
    pub forwarding: Forwarding,
    /// The channels that the mesh spreads over.
    pub channels: Channels,
    /// Segments for each ACK of a receiver that does as it is told; the estimate counts on it.
    pub ack_every: u8,
}

/// A chain ready to run.
#[derive(Debug)]
pub struct Chain<'m> {
    /// The world it is in.
    pub world: World<'m>,
    options: ChainOptions,
}

/// More hops than any mesh has; a packet's hop limit of 64 suffices.
pub const HOPS_MAX: u16 = 32;

impl Default for ChainOptions {
    fn default() -> Self {
        Self {
            hops: 3,
            seed: 1,
            frame_loss: 0.0,
            packet_loss: 0.0,
            hidden: true,
            deaf: true,
            retry_delay: Duration::from_millis(40),
            hold_step: Duration::ZERO,
            mss_frames: 5,
            compression: None,
            window_segments: 4,
            relaying: Relaying::Fragments,
            queue_frames: QUEUE_FRAMES,
            host_delay: HOST_DELAY,
            host: Host::Virtual,
            mote: Host::Virtual,
            profile: Profile::HAMILTON,
            forwarding: Forwarding::Copy,
            channels: Channels::SINGLE,
            ack_every: 2,
        }
    }
}

impl ChainOptions {
    /// The network that such a chain is.
    pub fn network(&self) -> NetworkOptions {
        let profile = if self.deaf {
            self.profile
        } else {
            self.profile.hearing()
        };
        let nodes = (0..=self.hops).map(|n| {
            let mut node = NodeOptions::new(n.to_string());
            node.parent = n
                .checked_sub(1)
                .map_or(Parent::Shortest, |parent| Parent::Node(parent.into()));
            node.profile = profile;
            node.mac.retry_delay_max = self.retry_delay;
            node.mac.channels = self.channels;
            node.forwarding = self.forwarding;
            node.relaying = self.relaying;
            node.hold_step = self.hold_step;
            node.mss_frames = self.mss_frames;
            node.compression = self.compression;
            node.window_segments = self.window_segments;
            node.tables.queue_frames = self.queue_frames;
            if n == self.hops {
                node.transport = self.mote;
            }
            node
        });
        let air = if self.hidden {
            ChainAir::CALIBRATED
        } else {
            ChainAir::NO_HIDDEN
        };
        let gains = Gains::chain(usize::from(self.hops) + 1, air);
        let host = HostOptions {
            delay: self.host_delay,
            kind: self.host,
            ..HostOptions::new("host")
        };
        NetworkOptions {
            seed: self.seed,
            joining: match self.mote {
                Host::Virtual => Joining::Advertised,
                Host::Outside => Joining::Static,
            },
            hosts: vec![host],
            frame_loss: self.frame_loss,
            packet_loss: self.packet_loss,
            ..NetworkOptions::new(nodes.collect(), gains)
        }
    }
}

impl<'m> Chain<'m> {
    /// Builds a chain; all its nodes' memory comes from `arena`.
    pub fn new(options: ChainOptions, arena: &'m Arena) -> Self {
        let options = ChainOptions {
            hops: options.hops.clamp(1, HOPS_MAX),
            ..options
        };
        let network = Network::new(options.network(), arena)
            .expect("neighbours in a chain hear each other, whatever its options");
        let world = network.world;
        Self { world, options }
    }

    /// What it was built from.
    pub fn options(&self) -> &ChainOptions {
        &self.options
    }

    /// The mote at the far end.
    pub fn mote(&self) -> usize {
        usize::from(self.options.hops)
    }

    /// The simulated host.
    pub fn host(&self) -> Option<usize> {
        (self.options.host == Host::Virtual).then_some(usize::from(self.options.hops) + 1)
    }

    /// The mote's address.
    pub fn mote_addr(&self) -> Ipv6Addr {
        plan::mesh_addr(self.options.hops)
    }

    /// Settings and memory for the TCP ends of a mote towards the host.
    pub fn mote_ends(&self, arena: &'m Arena) -> Ends<'m> {
        Ends::mote(arena, plan::HOST, self.options.window_segments)
    }

    /// Settings and memory for the TCP ends of the simulated host.
    pub fn host_ends(&self, arena: &'m Arena) -> Ends<'m> {
        Ends::host(arena)
    }

    /// Runs until every mote has an address and a route, or `limit` has passed; says
    /// whether they have.
    pub fn join(&mut self, limit: Duration) -> bool {
        let nodes = self.mote() + 1;
        network::join(&mut self.world, nodes, limit)
    }

    /// Whether every mote has an address and a route.
    pub fn has_joined(&self) -> bool {
        network::has_joined(&self.world, self.mote() + 1)
    }

    /// The MACs of the border router and all motes, in order.
    pub fn macs(&self) -> impl Iterator<Item = &Mac<'m>> {
        (0..=self.mote()).filter_map(|n| network::mac(&self.world, n))
    }

    /// Retries of links: frames sent less frames that were new.
    pub fn link_retries(&self) -> u64 {
        self.macs()
            .map(|mac| u64::from(mac.counters().retries))
            .sum()
    }

    /// Frames on the air but ACKs, by hop, the mote's hop first.
    pub fn frames_by_hop(&self) -> Vec<u64> {
        let mut frames = vec![0; self.mote()];
        for ((from, to), tally) in self.world.links() {
            if let Some(hop) = frames.get_mut(self.mote() - from.max(to)) {
                *hop += tally.frames;
            }
        }
        frames
    }

    /// What a full segment and its ACK are on the mote's first hop.
    ///
    /// From the stack's own MSS, headers and fragmenter; `acks_per_segment` is the one
    /// assumption: every second segment, as RFC 9293 §3.8.6.3 has it, or what the options say.
    pub fn segment_frames(&self) -> SegmentFrames {
        let payload_len = self.segment_payload_len();
        SegmentFrames {
            payload_len,
            frames: self.frame_lens(payload_len),
            ack_frames: self.frame_lens(0),
            acks_per_segment: 1.0 / f64::from(self.options.ack_every.max(1)),
        }
    }

    /// The goodput that no run of one flow can exceed, kb/s: [`Link::bound_kbps`].
    pub fn bound_kbps(&self) -> f64 {
        let [router, mote] = [0, self.mote()].map(|node| network::mac(&self.world, node));
        let ends = [(router, 1), (mote, self.options.hops - 1)];
        let lens = ends.into_iter().filter_map(|(mac, peer)| {
            let peer = plan::link_addr(peer);
            mac.map(|mac| mac.payload_len_max(peer))
        });
        let link = Link {
            profile: self.options.profile,
            deaf: self.options.deaf,
            frame_payload_len: lens.max().unwrap_or_default(),
            segment_frames: self.options.mss_frames.into(),
            is_compressed: self.options.compression.is_some(),
            hops: self.mote(),
        };
        link.bound_kbps()
    }

    /// The goodput that this chain's frame times allow by the papers' arithmetic, kb/s: nothing
    /// lost, nobody waiting. An estimate: times that overlap are added up.
    pub fn estimate_kbps(&self) -> f64 {
        let mut profile = self.options.profile;
        let frames = self.segment_frames();
        if profile.capabilities.shared_buffer {
            if !self.options.deaf {
                // Such a radio takes the next frame while the last one is on the air.
                profile.transmit_copy_ns = 0;
            }
            return frames.estimate_kbps(&profile, BE_MIN, self.mote());
        }
        let route = Route {
            hops: self.mote(),
            is_immediate: self.options.forwarding == Forwarding::Immediate,
            is_multi_channel: self.options.channels != Channels::SINGLE,
        };
        frames.routed_estimate_kbps(&profile, BE_MIN, route)
    }

    /// Application bytes of a full segment from the mote; 0 before it has joined.
    pub fn segment_payload_len(&self) -> usize {
        let mss = self.world.node(self.mote()).mss((plan::HOST, 0), true);
        usize::from(mss).saturating_sub(TIMESTAMPS_LEN)
    }

    /// PSDU bytes of the frames of a segment with so many bytes of data.
    fn frame_lens(&self, payload_len: usize) -> Vec<usize> {
        let [from, to] = [self.options.hops, self.options.hops - 1];
        let link = LinkPair {
            src: plan::link_addr(from),
            dst: plan::link_addr(to),
        };
        let Some(mac) = self.macs().last() else {
            return Vec::new();
        };
        let frame_payload_len_max = mac.payload_len_max(link.dst);
        let overhead = PSDU_LEN_MAX - frame_payload_len_max;
        let packet = sample_packet(self.mote_addr(), plan::HOST, TIMESTAMPS_LEN + payload_len);
        let mut memory = [0; IPV6_MTU_MIN];
        memory[..packet.len()].copy_from_slice(&packet);
        let tcp = match self.options.compression {
            Some(_) => compress_sample(&mut memory[IPV6_HEADER_LEN..packet.len()]),
            None => TcpForm::Plain,
        };
        let mut outgoing = Outgoing::new(&mut memory);
        let len = packet.len();
        let started = outgoing.start(len, tcp.into(), link, 0, frame_payload_len_max, FIRST_SLACK);
        debug_assert!(started.is_ok(), "the MSS fits the packet's buffer");
        let mut out = [0; PSDU_LEN_MAX];
        let contexts = plan::contexts();
        std::iter::from_fn(|| outgoing.next(&contexts, &mut out).ok().flatten())
            .map(|len| len + overhead)
            .collect()
    }
}

/// Gives `segment` the header that most segments with timestamps have where every form may
/// be elided that the default mode lets: sequence number and timestamps in 16 bits each.
fn compress_sample(segment: &mut [u8]) -> TcpForm {
    let half = Field::Low16(0);
    let header = wire::tcphc::Header::Compressed(wire::tcphc::Compressed {
        seq: half,
        timestamps: Some((half, half)),
        ..wire::tcphc::Compressed::default()
    });
    let mut bytes = [0; wire::tcphc::HEADER_LEN_MAX];
    let mut w = Writer::new(&mut bytes);
    let emitted = header.emit(&mut w);
    debug_assert!(emitted.is_ok(), "the longest header fits");
    let len = w.written();
    TcpForm::put(&bytes[..len], header.uncompressed_len(), segment)
}

/// A TCP segment's packet as far as its length and compression go: ECN-capable, no flow
/// label, hop limit 64.
fn sample_packet(src: Ipv6Addr, dst: Ipv6Addr, tcp_payload_len: usize) -> Vec<u8> {
    const TCP: u8 = 6;
    const HOP_LIMIT: u8 = 64;
    const ECT_0: u8 = 2;
    let payload_len = (TCP_HEADER_LEN + tcp_payload_len) as u16;
    let [high, low] = payload_len.to_be_bytes();
    let mut packet = vec![0x60, ECT_0 << 4, 0, 0, high, low, TCP, HOP_LIMIT];
    packet.extend(src.octets());
    packet.extend(dst.octets());
    packet.resize(packet.len() + usize::from(payload_len), 0);
    packet
}

const IPV6_HEADER_LEN: usize = 40;

/// Without options.
const TCP_HEADER_LEN: usize = 20;

/// Bytes of each segment that the timestamps option takes (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 12;

/// A relay's share of the testbed's 32 buffers of 128 bytes, which served everything.
const QUEUE_FRAMES: usize = Tables::RELAY.queue_frames;

#[cfg(test)]
#[path = "tests/chain.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/bound.rs"]
mod bound_tests;

#[cfg(test)]
#[path = "tests/tcphc.rs"]
mod tcphc_tests;
