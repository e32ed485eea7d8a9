//! A chain of motes behind a border router, and a host beyond it.
//!
//! ```text
//! host ===== border router 0 ~~~ relay 1 ~~~ ... ~~~ mote n
//! ```
//!
//! Purpose: the setting of `TCPlp`'s study, and of `motet send`. Routes are static; addresses,
//! contexts and default routes come by router advertisement, from the border router and on from
//! each relay.
//! Left out: every other topology, which [`crate::net::network`] has; it also builds this one. The
//! translation of a scenario's keys and of a command line's options into a chain, which is
//! [`crate::scenario`]'s.

use std::net::Ipv6Addr;

use motet::link::{Forwarding, Relaying};
use motet::mac::Channels;
use motet::mac::Mac;
use motet::mac::config::BE_MIN;
use motet::tcphc;
use motet::time::Duration;

use crate::Arena;
use crate::air::gains::{ChainAir, Gains};
use crate::air::profile::Profile;
use crate::apps::Ends;
use crate::ble;
use crate::ble::estimate::SduTimes;
use crate::net::bound::Path;
use crate::net::bounded::{BoundedFlow, ble_kbps};
use crate::net::estimate::{Route, SegmentFrames};
use crate::net::network::{
    self, BleOptions, HostOptions, Joining, Network, NetworkOptions, NodeOptions, Parent,
    SecurityOptions, Tables,
};
use crate::net::plan;
use crate::net::segments::Segments;
use crate::net::topology::TopologyError;
use crate::net::world::World;

pub use crate::net::network::{HOST_WIRED, Host, RADIO, WIRED};

/// The settings of a chain that is put together by hand, as tests and benchmarks do: commands and
/// experiments say it in a scenario's keys. `ChainOptions::default()` is `TCPlp`'s three hops,
/// where no node measures its pace.
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
    /// Part of the pace that the stack measures, %; 0: it measures none.
    pub pace_percent: u8,
    /// Whether the border router thins the ACKs that enter the mesh.
    pub thins_acks: bool,
    /// The hold rule's time per hop; zero: off.
    pub pacing_step: Duration,
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
    /// The host beyond the wire.
    pub host: Host,
    /// The host at the far mote's address; if that is the caller, no node has to join.
    pub mote: Host,
    /// Radio and driver of every mote and of the border router.
    pub profile: Profile,
    /// How relays get a fragment from one frame into the next.
    pub forwarding: Forwarding,
    /// The channels that the mesh spreads over.
    pub channels: Channels,
    /// Segments for each ACK of a receiver that does as it is told; the estimate counts on it.
    pub ack_every: u8,
    /// Bluetooth LE in the place of IEEE 802.15.4: then there is one hop.
    pub ble: Option<BleOptions>,
    /// Link security, where the mesh has a key.
    pub security: Option<SecurityOptions>,
}

/// A chain ready to run.
#[derive(Debug)]
pub struct Chain<'m> {
    /// The world it is in.
    pub world: World<'m>,
    /// The options that the chain was built from.
    options: NetworkOptions,
    /// Segments for each ACK of a receiver that does as it is told.
    ack_every: u8,
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
            pace_percent: 0,
            thins_acks: false,
            pacing_step: Duration::ZERO,
            mss_frames: 5,
            compression: None,
            window_segments: 4,
            relaying: Relaying::Fragments,
            queue_frames: QUEUE_FRAMES,
            host: Host::Virtual,
            mote: Host::Virtual,
            profile: Profile::HAMILTON,
            forwarding: Forwarding::Copy,
            channels: Channels::SINGLE,
            ack_every: 2,
            ble: None,
            security: None,
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
            node.pace_percent = self.pace_percent;
            node.pacing_step = self.pacing_step;
            node.mss_frames = self.mss_frames;
            node.compression = self.compression;
            node.window_segments = self.window_segments;
            node.tables.queue_frames = self.queue_frames;
            if n == self.hops {
                node.transport = self.mote;
            }
            node
        });
        let air = match self.hidden {
            true => ChainAir::CALIBRATED,
            false => ChainAir::NO_HIDDEN,
        };
        let gains = Gains::chain(usize::from(self.hops) + 1, air);
        let host = HostOptions {
            kind: self.host,
            ..HostOptions::new("host")
        };
        let nodes = nodes.enumerate().map(|(n, node)| NodeOptions {
            is_ble: n > 0 && self.ble.is_some(),
            ..node
        });
        NetworkOptions {
            seed: self.seed,
            joining: match self.mote {
                Host::Virtual => Joining::Advertised,
                Host::Outside => Joining::Static,
            },
            hosts: vec![host],
            frame_loss: self.frame_loss,
            packet_loss: self.packet_loss,
            ble: self.ble,
            security: self.security,
            thins_acks: self.thins_acks,
            ..NetworkOptions::new(nodes.collect(), gains)
        }
    }
}

impl<'m> Chain<'m> {
    /// Builds a chain; all its nodes' memory comes from `arena`.
    pub fn new(options: ChainOptions, arena: &'m Arena) -> Self {
        let options = ChainOptions {
            hops: match options.ble {
                Some(_) => 1,
                None => options.hops.clamp(1, HOPS_MAX),
            },
            ..options
        };
        Self::of(options.network(), options.ack_every, arena)
            .expect("neighbours in a chain hear each other, whatever its options")
    }

    /// Builds a network whose nodes are a chain. `ack_every`: segments for each ACK of a receiver
    /// that follows its settings, for the estimate.
    ///
    /// # Errors
    /// A mote hears no other.
    pub fn of(
        options: NetworkOptions,
        ack_every: u8,
        arena: &'m Arena,
    ) -> Result<Self, TopologyError> {
        let network = Network::new(options.clone(), arena)?;
        Ok(Self {
            world: network.world,
            options,
            ack_every,
        })
    }

    /// The options that the chain was built from.
    pub const fn options(&self) -> &NetworkOptions {
        &self.options
    }

    /// The mote at the far end: as many hops away as its number says.
    pub fn mote(&self) -> usize {
        self.options.nodes.len().saturating_sub(1)
    }

    /// The simulated host.
    pub fn host(&self) -> Option<usize> {
        let host = self.options.hosts.first();
        let is_virtual = host.is_some_and(|host| host.kind == Host::Virtual);
        is_virtual.then_some(self.options.nodes.len())
    }

    /// The mote's address.
    pub fn mote_addr(&self) -> Ipv6Addr {
        plan::addr_of(plan::MESH_PREFIX, self.options.link_addr(self.mote()))
    }

    /// The far mote's options.
    fn far(&self) -> &NodeOptions {
        &self.options.nodes[self.mote()]
    }

    /// Buffers of the mote's TCP, in full segments.
    pub fn window_segments(&self) -> usize {
        self.far().window_segments
    }

    /// Settings and memory for the TCP ends of a mote towards the host.
    pub fn mote_ends(&self, arena: &'m Arena) -> Ends<'m> {
        Ends::mote(arena, plan::HOST, self.window_segments())
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
        let macs = self.macs().map(|mac| u64::from(mac.counters().retries));
        let ble = self.world.ble().into_iter().flat_map(ble::Air::tallies);
        macs.sum::<u64>() + ble.map(|(_, tally)| tally.repeated).sum::<u64>()
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

    /// The frames of a full segment and its ACK on the mote's first hop.
    ///
    /// From the stack's own MSS, headers and fragmenter; The one assumption is the number of ACKs
    /// per segment: one for every second segment (RFC 9293 §3.8.6.3), or the value in the options.
    pub fn segment_frames(&self) -> SegmentFrames {
        let every = f64::from(self.ack_every.max(1));
        self.to_host().frames(&self.world, 1.0 / every)
    }

    /// The path that bounds the goodput of one flow between mote and host, `up` to the host or down
    /// from there; `None` over Bluetooth LE.
    pub fn path(&self, up: bool) -> Option<Path> {
        if self.options.ble.is_some() {
            return None;
        }
        let every = self.ack_every;
        let ack_every = (!up || !self.options.thins_acks).then_some(every);
        self.path_between(plan::HOST, true, ack_every)
    }

    /// The path that bounds the goodput of one flow between mote and `peer`, which is the host or
    /// the chain's other end. `ack_every`: as [`BoundedFlow`] has it; none where the border router
    /// thins ACKs.
    pub fn path_to(&self, peer: Ipv6Addr, timestamps: bool, ack_every: Option<u8>) -> Option<Path> {
        let ack_every = ack_every.filter(|_| !self.options.thins_acks);
        self.path_between(peer, timestamps, ack_every)
    }

    fn path_between(
        &self,
        peer: Ipv6Addr,
        timestamps: bool,
        ack_every: Option<u8>,
    ) -> Option<Path> {
        let nodes: Vec<usize> = (0..=self.mote()).rev().collect();
        let flow = BoundedFlow {
            nodes: &nodes,
            addrs: [self.mote_addr(), peer],
            timestamps,
            ack_every,
        };
        flow.path(&self.world, &self.options)
    }

    /// The goodput that this chain's frame times allow by the papers' arithmetic, kb/s: nothing
    /// lost, nobody waiting. An estimate: times that overlap are added up.
    pub fn estimate_kbps(&self) -> f64 {
        if let Some(options) = &self.options.ble {
            return self.ble_estimate_kbps(options);
        }
        let NodeOptions {
            mut profile,
            forwarding,
            ..
        } = *self.far();
        let frames = self.segment_frames();
        if profile.overlaps {
            // Such a radio takes the next frame while the last one is on the air.
            profile.transmit_copy_ns = 0;
        }
        if profile.overlaps || profile.capabilities.shared_buffer {
            return frames.estimate_kbps(&profile, BE_MIN, self.mote());
        }
        let route = Route {
            hops: self.mote(),
            is_immediate: forwarding == Forwarding::Immediate,
            is_multi_channel: self.far().mac.channels != Channels::SINGLE,
        };
        frames.routed_estimate_kbps(&profile, BE_MIN, route)
    }

    /// The goodput that no run exceeds over Bluetooth LE, kb/s: full segments in events without an
    /// end, and ACKs that take no time.
    pub fn ble_bound_kbps(&self) -> Option<f64> {
        let options = self.options.ble?;
        Some(ble_kbps(&options, self.segment_payload_len()))
    }

    /// The estimate over Bluetooth LE: full segments and their ACKs in events without an end.
    fn ble_estimate_kbps(&self, options: &BleOptions) -> f64 {
        let sdu = SduTimes {
            phy: options.phy,
            has_mic: options.has_mic,
            ack_every: self.ack_every,
        };
        let payload = self.segment_payload_len();
        sdu.goodput_kbps(payload, payload + BLE_HEADERS_LEN, BLE_HEADERS_LEN)
    }

    /// Application bytes of a full segment from the mote; 0 before it has joined.
    pub fn segment_payload_len(&self) -> usize {
        self.to_host().payload_len(&self.world)
    }

    /// The connection from the mote to the host.
    fn to_host(&self) -> Segments {
        Segments {
            from: self.mote(),
            next: self.mote() - 1,
            peer: plan::HOST,
            timestamps: true,
            is_compressed: self.far().compression.is_some(),
        }
    }
}

/// Headers of a segment in its SDU: those of IPv6, whose other end is beyond the border router, in
/// 18 bytes with a context for each address (RFC 6282 §3.1), and TCP's with timestamps.
const BLE_HEADERS_LEN: usize = 18 + 32;

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
