//! Nodes that are on a wire: hosts, and border routers with theirs.

use std::net::Ipv6Addr;

use motet::ip::{self, Address, Ip, Neighbour, NextHop};
use motet::link::Link;
use motet::node::Node;
use motet::random::Rng;
use motet::time::Instant;

use super::memory::{NodeMemory, give_fragments, new_tcp, wire};
use super::{HOST_WIRED, WIRED};
use crate::Arena;
use crate::net::plan;

/// Gives a border router its address on the wire, and the way there.
pub(crate) fn join_wire(ip: &mut Ip<'_>) {
    ip.add_address(Address {
        addr: plan::ROUTER_WIRED,
        interface: WIRED,
    });
    ip.set_default_route(Some(NextHop {
        interface: WIRED,
        neighbour: Neighbour::Only,
    }));
}

/// A wire of a node that stands alone.
pub(crate) fn new_wire<'m>(arena: &'m Arena) -> Link<'m> {
    Link::Cable(wire(&mut NodeMemory::default(), arena))
}

/// A node with a wire and nothing else; `sockets`: its connections, listeners and handshakes.
pub(crate) fn wired_node<'m>(
    addr: Ipv6Addr,
    sockets: [usize; 3],
    mut rng: Rng,
    arena: &'m Arena,
) -> Node<'m> {
    let interfaces = arena.alloc_slice_fill_iter([new_wire(arena)]);
    let mut ip = Ip::new(ip::Config::default(), &mut []);
    ip.add_address(Address {
        addr,
        interface: HOST_WIRED,
    });
    ip.set_default_route(Some(NextHop {
        interface: HOST_WIRED,
        neighbour: Neighbour::Only,
    }));
    let tcp = new_tcp(sockets, &mut rng, arena);
    let mut node = Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN);
    give_fragments(&mut node, &mut NodeMemory::default(), arena);
    node
}
