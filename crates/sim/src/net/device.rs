//! One mote over a controller of Bluetooth LE that is not the lab's: a world of one node.
//!
//! Place: the caller has the controller. It carries out what [`World::take_command`] gives and
//! reports by [`World::report`]; the mote is node 0, and its time the caller's. A mote that is a
//! central is its peers' router, which advertises the plan's prefix. Where the caller has a kernel,
//! the central has a wire to it, by [`World::inject_at`] and [`World::take_at`]; packets to
//! [`plan::HOST`], and packets for which it has no other route, go there.

use std::net::Ipv6Addr;

use motet::ble::{Config, GapRole, INWARD_LEN, Peer, PeerMemory};
use motet::ip::{self, Ip, Neighbour, NextHop, Prefix, Registration, Route};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Advertised, Ble, BleConfig, BleMemory, Link};
use motet::node::Node;
use motet::time::Instant;
use motet::wire::LinkAddr;

use super::network::{
    RADIO, Tables, WIRED, give_new_fragments, join_wire, new_tcp, new_wire, tcple_memory,
};
use super::plan;
use super::world::{Conditions, Port, Resident, World};
use crate::Arena;
use crate::air::gains::Gains;
use crate::apps::App;
use crate::streams::{Purpose, stream};

/// The parts that such a mote has besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// Whether peers are offered `TCPlE`.
    pub has_tcple: bool,
    /// Whether there is a wire to the caller, of a central.
    pub has_wire: bool,
}

/// The address of a device under the plan's prefix.
pub fn address_of(peer: [u8; 6]) -> Ipv6Addr {
    plan::addr_of(plan::MESH_PREFIX, LinkAddr::Device(peer))
}

/// Lets what is for [`address_of`] a peer go to it from now on, or, where it is not there, nowhere:
/// some peers do not register their addresses.
pub fn lead_to(world: &mut World<'_>, peer: [u8; 6], is_there: bool) {
    let prefix = Prefix::host(address_of(peer));
    let next_hop = NextHop {
        interface: RADIO,
        neighbour: Neighbour::One(LinkAddr::Device(peer).iid()),
    };
    world.with_node(0, |node, _| match is_there {
        // There are as many places as peers.
        true => _ = node.ip_mut().add_route(Route { prefix, next_hop }),
        false => node.ip_mut().remove_route(prefix),
    });
}

/// A world whose only node is a mote over a controller outside.
///
/// `host`: its address is the controller's. `sockets`: connections, listeners and handshakes.
/// `seed`: every random choice follows from it.
pub fn device<'m>(
    host: Config,
    sockets: [usize; 3],
    parts: Parts,
    seed: u64,
    arena: &'m Arena,
) -> World<'m> {
    let is_central = host.role == GapRole::Central;
    let places = if is_central { PERIPHERALS } else { 1 };
    let config = BleConfig {
        host,
        solicits: !is_central,
        registers: true,
        advertised: is_central.then_some(Advertised {
            prefix: plan::MESH_PREFIX,
            lifetime: Advertised::LIFETIME,
        }),
    };
    let mut link = Ble::new(config, memory(places, is_central, arena));
    if parts.has_tcple {
        link = link.with_tcple(tcple_memory(places, arena));
    }
    if is_central {
        *link.contexts_mut() = plan::contexts_under(plan::MESH_PREFIX);
    }
    let wire = parts.has_wire.then(|| new_wire(arena));
    let links = std::iter::once(Link::Ble(link)).chain(wire);
    let links = arena.alloc_slice_fill_iter(links.collect::<Vec<_>>());
    let routes = arena.alloc_slice_fill_with(places, |_| None);
    let mut ip = Ip::new(
        ip::Config {
            forwards: is_central,
            ..ip::Config::default()
        },
        routes,
    );
    if parts.has_wire {
        join_wire(&mut ip);
    }
    let mut rng = stream(seed, 0, Purpose::Stack);
    let tcp = new_tcp(sockets, &mut rng, arena);
    let tap = parts.has_wire.then_some(Port::Tap(WIRED));
    let mut node = Node::new(links, ip, tcp, rng, Instant::ORIGIN);
    give_new_fragments(&mut node, arena);
    let resident = Resident {
        node,
        ports: std::iter::once(Port::Controller(RADIO))
            .chain(tap)
            .collect(),
        app: App::None,
    };
    let conditions = Conditions {
        seed,
        frame_loss: 0.0,
    };
    World::new(vec![resident], &Gains::default(), None, conditions)
}

fn memory<'m>(places: usize, is_central: bool, arena: &'m Arena) -> BleMemory<'m> {
    let queue_len = Tables::RELAY.packet_queue_len;
    let bytes = |len: usize| arena.alloc_slice_fill_copy(len, 0);
    BleMemory {
        peers: arena.alloc_slice_fill_with(places, |_| {
            Peer::new(PeerMemory {
                inward: bytes(INWARD_LEN),
                outward: bytes(IPV6_MTU_MIN),
                queue: bytes(queue_len / 2),
            })
        }),
        queue: bytes(queue_len),
        registrations: arena
            .alloc_slice_fill_with(if is_central { places } else { 0 }, |_| Registration::EMPTY),
    }
}

/// Peripherals of a central.
const PERIPHERALS: usize = 6;

#[cfg(test)]
#[path = "tests/device.rs"]
mod tests;
