//! Nodes over Bluetooth LE: a central and its peripherals.

use std::net::Ipv6Addr;

use motet::ble::{Config, GapRole, INWARD_LEN, Peer, PeerMemory, Timing};
use motet::ip::{InterfaceId, Registration};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Advertised, Ble, BleConfig, BleMemory, TcpleMemory};
use motet::tcple::{HELD_LEN, HeldSlot, TcpleConnection};

use super::build::Builder;
use super::memory::{NodeMemory, reuse_or_fill};
use super::{BESIDE, BleOptions, Joining, NetworkOptions, NodeOptions, Parent, RADIO, star};
use crate::Arena;
use crate::ble::{Air, Profile};
use crate::capture::Records;
use crate::net::plan;
use crate::net::world::BlePort;
use crate::streams::{Purpose, stream};

impl NetworkOptions {
    /// A network over Bluetooth LE of a border router and `motes` motes, with one simulated host.
    pub fn over_ble(motes: usize, ble: BleOptions) -> Self {
        let nodes = (0..=motes).map(|n| {
            let mut node = NodeOptions::new(n.to_string());
            node.parent = match n {
                0 => Parent::Shortest,
                _ => Parent::Node(0),
            };
            node.is_ble = n > 0;
            node
        });
        Self {
            ble: Some(ble),
            ..Self::new(nodes.collect(), star(motes))
        }
    }

    /// What a capture of its air has: the mesh's frames, where there is a mesh; else the packets of
    /// Bluetooth LE.
    pub fn air_records(&self) -> Records {
        match self.has_mesh() {
            true => Records::TappedFrames,
            false => Records::Bluetooth,
        }
    }
}

impl<'m> Builder<'_, 'm> {
    /// How node `n` is attached to the air.
    pub(super) fn ble_port(self, n: usize, ble: &BleOptions) -> BlePort {
        let motes = self.motes();
        let profile = match n {
            0 => Profile {
                connections: motes,
                packets: u8::try_from(motes * usize::from(ble.profile.packets)).unwrap_or(u8::MAX),
                ..ble.profile
            },
            _ => ble.profile,
        };
        BlePort {
            interface: self.ble_interface(n),
            // Lossless: nodes have 16-bit numbers.
            address: plan::device_addr(n as u16),
            profile,
        }
    }

    /// The link of node `n`, the central's with a place for each mote.
    pub(super) fn ble(self, n: usize, ble: &BleOptions, returned: &mut NodeMemory<'m>) -> Ble<'m> {
        let is_central = n == 0;
        let (role, places) = match is_central {
            true => (GapRole::Central, self.motes()),
            false => (GapRole::Peripheral, 1),
        };
        let host = Config {
            phy: ble.phy,
            timing: Timing {
                interval: ble.interval,
                latency: ble.latency,
                timeout: timeout(ble),
            },
            is_adaptive: ble.is_adaptive,
            ..Config::new(plan::device_addr(n as u16), role)
        };
        let joining = self.options.joining;
        let config = BleConfig {
            host,
            solicits: !is_central && joining != Joining::Static,
            registers: joining != Joining::Static,
            advertised: is_central.then_some(Advertised {
                prefix: self.ble_prefix(),
                lifetime: Advertised::LIFETIME,
            }),
        };
        let mut link = Ble::new(config, self.ble_memory(n, places, returned));
        let has_tcple = ble.tcple_motes > 0 && n <= ble.tcple_motes;
        if has_tcple && !self.options.nodes[n].lacks_tcple {
            let memory = returned.tcple.take();
            let memory = memory.filter(|memory| memory.sides.len() == places);
            let memory = memory.unwrap_or_else(|| tcple_memory(places, self.arena));
            link = link.with_tcple(memory);
        }
        if is_central && self.options.queues_flows {
            link.set_flow_queues(self.flow_queues(returned.ble_flows.take()));
        }
        if is_central || joining == Joining::Static {
            *link.contexts_mut() = plan::contexts_under(self.ble_prefix());
        }
        link
    }

    /// The interface of node `n` to the air of Bluetooth LE.
    pub(super) fn ble_interface(self, n: usize) -> InterfaceId {
        match n == 0 && self.options.is_mixed() {
            true => BESIDE,
            false => RADIO,
        }
    }

    /// The prefix of motes over Bluetooth LE.
    fn ble_prefix(self) -> Ipv6Addr {
        match self.options.is_mixed() {
            true => plan::prefix_over_ble(self.prefix),
            false => self.prefix,
        }
    }

    fn ble_memory(self, n: usize, places: usize, returned: &mut NodeMemory<'m>) -> BleMemory<'m> {
        let arena = self.arena;
        let queue_len = self.options.nodes[n].tables.packet_queue_len;
        let bytes = |len: usize| arena.alloc_slice_fill_copy(len, 0);
        let peers = returned.peers.take();
        let peers = peers.filter(|peers| peers.len() == places);
        let peers = peers.unwrap_or_else(|| {
            arena.alloc_slice_fill_with(places, |_| {
                Peer::new(PeerMemory {
                    inward: bytes(INWARD_LEN),
                    outward: bytes(IPV6_MTU_MIN),
                    queue: bytes(queue_len / 2),
                })
            })
        });
        let registrations = if n == 0 { places } else { 0 };
        BleMemory {
            peers,
            queue: reuse_or_fill(&mut returned.ble_queue, arena, queue_len, || 0),
            registrations: reuse_or_fill(
                &mut returned.ble_registrations,
                arena,
                registrations,
                || Registration::EMPTY,
            ),
        }
    }

    fn motes(self) -> usize {
        self.options.ble_motes()
    }
}

/// Makes the air what the network is to have.
pub(super) fn furnish(air: &mut Air, ble: &BleOptions, (nodes, seed): (usize, u64)) {
    air.set_mic(ble.has_mic);
    let signal = stream(seed, 1, Purpose::Bluetooth);
    air.set_signal(ble.rssi_dbm, ble.rssi_sigma_db, signal);
    let mut clocks = stream(seed, 2, Purpose::Bluetooth);
    for device in 0..nodes {
        let [low, high] = [-1, 1].map(|sign| sign * i64::from(ble.drift_ppm));
        let off = clocks.next_u64() % (high - low + 1).unsigned_abs();
        air.set_drift(device, (low + off.cast_signed()) as i32);
    }
}

/// Memory of `TCPlE` for `places` connections, each with two places for prefetched segments.
pub(crate) fn tcple_memory(places: usize, arena: &Arena) -> TcpleMemory<'_> {
    let bytes = || arena.alloc_slice_fill_copy(HELD_LEN, 0);
    TcpleMemory {
        sides: arena.alloc_slice_fill_with(places, |_| TcpleConnection::NEW),
        held: arena.alloc_slice_fill_with(HELD_EACH * places, |_| HeldSlot::new(bytes())),
    }
}

/// The supervision timeout, in units of 10 ms: 4 s, and longer than three times what a mote may
/// leave out.
fn timeout(ble: &BleOptions) -> u16 {
    let events = u32::from(ble.latency) + 1;
    let silence_ms = u32::from(ble.interval) * 5 / 4 * events;
    u16::try_from(silence_ms * 3 / 10 + 1)
        .unwrap_or(TIMEOUT_MAX)
        .clamp(TIMEOUT, TIMEOUT_MAX)
}

/// Segments that are held for each peer: what the upper bound of the next round is, where a round
/// is one segment.
const HELD_EACH: usize = 2;

const TIMEOUT: u16 = 400;
/// The longest there is (Core 5.4 Vol 4 Part E §7.8.12).
const TIMEOUT_MAX: u16 = 3_200;
