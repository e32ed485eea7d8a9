//! A chain of motes behind a border router, and a host beyond it.
//!
//! ```text
//! host ===== border router 0 ~~~ relay 1 ~~~ ... ~~~ mote n
//! ```
//!
//! Purpose: the setting of `TCPlp`'s study, and of `motet send` and `motet up`. Routes are
//! static; addresses, contexts and default routes come by router advertisement, from the
//! border router and on from each relay.
//! Left out: every other topology. Scenarios will have them.

use std::net::Ipv6Addr;

use motet::ip::{self, Address, InterfaceId, Ip, NextHop, Prefix, Route};
use motet::limits::{IPV6_MTU_MIN, PSDU_LEN_MAX};
use motet::lowpan::LinkPair;
use motet::lowpan::datagram::{Datagrams, Record};
use motet::lowpan::fragment::{FIRST_SLACK, Outgoing};
use motet::mac::config::BE_MIN;
use motet::mac::{self, FrameSlot, Mac, Neighbor};
use motet::node::{Advertised, Interface, Node, Radio, RadioConfig, RadioMemory, Relaying};
use motet::random::Rng;
use motet::storage::packet_queue::PacketQueue;
use motet::tcp::{self, HalfOpen, Listener, Slot, Tcp};
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;

use crate::Arena;
use crate::app::{App, Ends};
use crate::bound::SegmentFrames;
use crate::filter::Filter;
use crate::gains::{ChainAir, Gains};
use crate::plan;
use crate::profile::Profile;
use crate::streams::{Purpose, stream};
use crate::wire::{End, Wire};
use crate::world::{Conditions, RadioPort, Resident, World};

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
    /// Frames of a full segment.
    pub mss_frames: u8,
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
    /// Radio and driver of every mote and of the border router.
    pub profile: Profile,
}

/// What is beyond the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A node with this stack.
    Virtual,
    /// The caller, with packets: a kernel.
    Outside,
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
            mss_frames: 5,
            window_segments: 4,
            relaying: Relaying::Fragments,
            queue_frames: QUEUE_FRAMES,
            host_delay: HOST_DELAY,
            host: Host::Virtual,
            profile: Profile::HAMILTON,
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
        let builder = Builder { options, arena };
        let mut residents: Vec<Resident<'m>> =
            (0..=options.hops).map(|n| builder.mesh_node(n)).collect();
        let far = match options.host {
            Host::Outside => End::Outside,
            Host::Virtual => {
                residents.push(builder.host());
                End::Mote(usize::from(options.hops) + 1)
            }
        };
        let loss = stream(options.seed, 0, Purpose::PacketLoss);
        let wire = Wire::new(0, far, options.host_delay, options.packet_loss, loss);
        let air = if options.hidden {
            ChainAir::CALIBRATED
        } else {
            ChainAir::NO_HIDDEN
        };
        let radios = usize::from(options.hops) + 1;
        let gains = Gains::chain(radios, air).with_silent(residents.len() - radios);
        let conditions = Conditions {
            seed: options.seed,
            frame_loss: options.frame_loss,
        };
        Self {
            world: World::new(residents, &gains, Some(wire), conditions),
            options,
        }
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
        let until = self.world.now() + limit;
        while !self.has_joined() {
            if !self.world.step(until) {
                return false;
            }
        }
        true
    }

    /// Whether every mote has an address and a route.
    pub fn has_joined(&self) -> bool {
        (1..=self.mote()).all(|mote| {
            let node = self.world.node(mote);
            node.global_address().is_some() && node.ip().default_route().is_some()
        })
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
    /// assumption: every second segment, as RFC 9293 §3.8.6.3 has it.
    pub fn segment_frames(&self) -> SegmentFrames {
        let payload_len = self.segment_payload_len();
        SegmentFrames {
            payload_len,
            frames: self.frame_lens(payload_len),
            ack_frames: self.frame_lens(0),
            acks_per_segment: 0.5,
        }
    }

    /// The goodput that this chain's frame times allow, kb/s.
    pub fn bound_kbps(&self) -> f64 {
        let profile = &self.options.profile;
        self.segment_frames()
            .goodput_kbps(profile, BE_MIN, self.mote())
    }

    /// Application bytes of a full segment from the mote; 0 before it has joined.
    pub fn segment_payload_len(&self) -> usize {
        let mss = self.world.node(self.mote()).mss(&plan::HOST);
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
        let mut outgoing = Outgoing::new(&mut memory);
        let started = outgoing.start(packet.len(), link, 0, frame_payload_len_max, FIRST_SLACK);
        debug_assert!(started.is_ok(), "the MSS fits the packet's buffer");
        let mut out = [0; PSDU_LEN_MAX];
        let contexts = plan::contexts();
        std::iter::from_fn(|| outgoing.next(&contexts, &mut out).ok().flatten())
            .map(|len| len + overhead)
            .collect()
    }

    /// The MACs of the border router and all motes, in order.
    pub fn macs(&self) -> impl Iterator<Item = &Mac<'m>> {
        (0..=self.mote()).filter_map(|n| match self.world.node(n).interface(RADIO) {
            Some(Interface::Radio(radio)) => Some(radio.mac()),
            _ => None,
        })
    }
}

/// The interface of every mesh node to the air.
pub const RADIO: InterfaceId = InterfaceId(0);

/// The border router's interface to the wire.
pub const WIRED: InterfaceId = InterfaceId(1);

/// The simulated host's only interface.
pub const HOST_WIRED: InterfaceId = InterfaceId(0);

#[derive(Clone, Copy)]
struct Builder<'m> {
    options: ChainOptions,
    arena: &'m Arena,
}

impl<'m> Builder<'m> {
    /// Mesh node `n`: the border router (0), a relay, or the mote.
    fn mesh_node(self, n: u16) -> Resident<'m> {
        let Self { options, arena } = self;
        let mut rng = stream(options.seed, u32::from(n), Purpose::Stack);
        let is_router = n == 0;
        let radio = Interface::Radio(self.radio(n, &mut rng));
        let wire = is_router.then(|| Interface::Wire(self.wire()));
        let interfaces =
            arena.alloc_slice_fill_iter(std::iter::once(radio).chain(wire).collect::<Vec<_>>());
        let config = ip::Config {
            forwards: n < options.hops,
            ..ip::Config::default()
        };
        let mut ip = Ip::new(config, self.routes(usize::from(options.hops)));
        for mote in n + 1..=options.hops {
            ip.add_route(Route {
                prefix: Prefix::host(plan::mesh_addr(mote)),
                next_hop: NextHop {
                    interface: RADIO,
                    neighbour: Some(plan::link_addr(n + 1)),
                },
            });
        }
        if is_router {
            ip.add_address(Address {
                addr: plan::ROUTER_WIRED,
                interface: WIRED,
            });
            ip.set_default_route(Some(NextHop {
                interface: WIRED,
                neighbour: None,
            }));
        }
        let tcp = self.tcp(&mut rng);
        let filter = Filter {
            pan: plan::PAN,
            extended: plan::eui64(n),
            short: None,
        };
        Resident {
            node: Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN),
            radio: Some(RadioPort {
                interface: RADIO,
                profile: self.profile(),
                filter,
                channel: plan::CHANNEL,
            }),
            wired: is_router.then_some(WIRED),
            app: App::None,
        }
    }

    /// The host beyond the wire.
    fn host(self) -> Resident<'m> {
        let number = u32::from(self.options.hops) + 1;
        let mut rng = stream(self.options.seed, number, Purpose::Stack);
        let interfaces = self
            .arena
            .alloc_slice_fill_iter([Interface::Wire(self.wire())]);
        let mut ip = Ip::new(ip::Config::default(), self.routes(1));
        ip.add_address(Address {
            addr: plan::HOST,
            interface: HOST_WIRED,
        });
        ip.set_default_route(Some(NextHop {
            interface: HOST_WIRED,
            neighbour: None,
        }));
        let tcp = self.tcp(&mut rng);
        Resident {
            node: Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN),
            radio: None,
            wired: Some(HOST_WIRED),
            app: App::None,
        }
    }

    fn profile(self) -> Profile {
        let Self { options, .. } = self;
        if options.deaf {
            options.profile
        } else {
            options.profile.hearing()
        }
    }

    fn radio(self, n: u16, rng: &mut Rng) -> Radio<'m> {
        let Self { options, arena } = self;
        let mac_config = mac::Config {
            retry_delay_max: options.retry_delay,
            channel: plan::CHANNEL,
            ..mac::Config::new(plan::PAN, plan::eui64(n))
        };
        let slots = arena.alloc_slice_fill_with(options.queue_frames, |_| FrameSlot::EMPTY);
        let neighbors = arena.alloc_slice_fill_with(NEIGHBORS, |_| Neighbor::EMPTY);
        let mac = Mac::new(
            mac_config,
            self.profile().capabilities,
            slots,
            neighbors,
            rng,
        );
        let records = arena.alloc_slice_fill_with(RECORDS, |_| Record::EMPTY);
        let memory = RadioMemory {
            outgoing: arena.alloc_slice_fill_copy(IPV6_MTU_MIN, 0),
            datagrams: Datagrams::new(
                records,
                arena.alloc_slice_fill_copy(BODIES * IPV6_MTU_MIN, 0),
                IPV6_MTU_MIN,
                false,
                rng,
            ),
            queue: PacketQueue::new(arena.alloc_slice_fill_copy(PACKET_QUEUE_LEN, 0)),
        };
        let parent: Option<LinkAddr> = n.checked_sub(1).map(plan::link_addr);
        let config = RadioConfig {
            relaying: options.relaying,
            mss_frames: options.mss_frames,
            parent,
            solicits: parent.is_some(),
            advertised: parent.is_none().then_some(Advertised {
                prefix: plan::MESH_PREFIX,
                lifetime: Advertised::LIFETIME,
            }),
        };
        let mut radio = Radio::new(config, mac, memory);
        if parent.is_none() {
            *radio.contexts_mut() = plan::contexts();
        }
        radio
    }

    fn wire(self) -> motet::node::Wire<'m> {
        let queue = PacketQueue::new(self.arena.alloc_slice_fill_copy(WIRE_QUEUE_LEN, 0));
        motet::node::Wire::new(queue, WIRED_MTU)
    }

    fn routes(self, count: usize) -> &'m mut [Option<Route>] {
        self.arena.alloc_slice_fill_with(count, |_| None)
    }

    fn tcp(self, rng: &mut Rng) -> Tcp<'m> {
        let memory = tcp::Memory {
            connections: self
                .arena
                .alloc_slice_fill_with(CONNECTIONS, |_| Slot::EMPTY),
            listeners: self
                .arena
                .alloc_slice_fill_with(LISTENERS, |_| Listener::EMPTY),
            half_open: self
                .arena
                .alloc_slice_fill_with(HALF_OPEN, |_| HalfOpen::EMPTY),
        };
        Tcp::new(memory, rng)
    }
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

/// Without options.
const TCP_HEADER_LEN: usize = 20;

/// Bytes of each segment that the timestamps option takes (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 12;

/// One way: decides at how many segments a larger window stops to help (`TCPlp` Fig 5).
const HOST_DELAY: Duration = Duration::from_millis(20);

/// A relay's share of the testbed's 32 buffers of 128 bytes, which served everything.
const QUEUE_FRAMES: usize = 16;

/// Two in a chain, and one to spare.
const NEIGHBORS: usize = 4;

/// Packets under way through a relay: a window of five-frame segments and their ACKs.
const RECORDS: usize = 16;

/// Packets being gathered at their destination.
const BODIES: usize = 4;

/// Bytes of packets that wait for the air.
const PACKET_QUEUE_LEN: usize = 8 * IPV6_MTU_MIN;

/// Bytes of packets that wait for the wire; they never do for long.
const WIRE_QUEUE_LEN: usize = 8 * 1_500;

/// Ethernet's; the mesh's own MTU bounds what comes from the motes.
const WIRED_MTU: u16 = 1_280;

/// Connections of each node; services of `motet up` are shared by a few clients.
const CONNECTIONS: usize = 8;
const LISTENERS: usize = 4;
const HALF_OPEN: usize = 4;

#[cfg(test)]
#[path = "tests/chain.rs"]
mod tests;
