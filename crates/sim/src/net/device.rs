//! One mote over a controller of Bluetooth LE that is not the lab's: a world of one node.
//!
//! Place: the caller has the controller. It carries out what [`World::take_command`] gives and reports
//! by [`World::report`]; the mote is node 0, and its time the caller's.
//! Left out: everything beyond the connection. A mote that is a central is its peers' router, which
//! advertises the plan's prefix, and there is nothing behind it.

use motet::ble::{Config, INWARD_LEN, Peer, PeerMemory, Role};
use motet::ip::{self, Ip, Registration};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Advertised, Ble, BleConfig, BleMemory, Link};
use motet::node::Node;
use motet::time::Instant;

use super::network::{RADIO, Tables, new_tcp, tcple_memory};
use super::plan;
use super::world::{Conditions, Port, Resident, World};
use crate::Arena;
use crate::air::gains::Gains;
use crate::apps::App;
use crate::streams::{Purpose, stream};

/// A world whose only node is a mote over a controller outside.
///
/// `host`: its address is the controller's. `sockets`: connections, listeners and handshakes. `seed`:
/// every random choice follows from it. `has_tcple`: whether peers are offered `TCPlE`.
pub fn device<'m>(
    host: Config,
    sockets: [usize; 3],
    has_tcple: bool,
    seed: u64,
    arena: &'m Arena,
) -> World<'m> {
    let is_central = host.role == Role::Central;
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
    if has_tcple {
        link = link.with_tcple(tcple_memory(places, arena));
    }
    if is_central {
        *link.contexts_mut() = plan::contexts_under(plan::MESH_PREFIX);
    }
    let links = arena.alloc_slice_fill_iter([Link::Ble(link)]);
    let routes = arena.alloc_slice_fill_with(places, |_| None);
    let ip = Ip::new(
        ip::Config {
            forwards: is_central,
            ..ip::Config::default()
        },
        routes,
    );
    let mut rng = stream(seed, 0, Purpose::Stack);
    let tcp = new_tcp(sockets, &mut rng, arena);
    let resident = Resident {
        node: Node::new(links, ip, tcp, rng, Instant::ORIGIN),
        ports: vec![Port::Controller(RADIO)],
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
