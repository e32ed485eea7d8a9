//! Nodes over the memory of a run, from what their network is to be like.

use std::net::Ipv6Addr;

use motet::ip::{self, Address, Ip, Neighbour, NextHop, Prefix, Route};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Advertised, Hold, Link, Mesh, MeshConfig, MeshMemory};
use motet::lowpan::datagram::Record;
use motet::mac::{self, Channels, FrameSlot, Mac, Neighbor, RadioCapabilities};
use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{self, HalfOpen, Listener, Slot, Tcp};
use motet::tcphc::{self, Tcphc};
use motet::time::{Duration, Instant};

use super::{HOST_WIRED, Host, Joining, NetworkOptions, RADIO, Tables, WIRED};
use crate::Arena;
use crate::air::filter::Filter;
use crate::apps::App;
use crate::net::plan;
use crate::net::topology::Tree;
use crate::net::world::{Port, RadioPort, Resident};
use crate::streams::{Purpose, stream};

#[derive(Clone, Copy)]
pub(super) struct Builder<'a, 'm> {
    pub(super) options: &'a NetworkOptions,
    pub(super) tree: &'a Tree,
    pub(super) arena: &'m Arena,
}

impl<'m> Builder<'_, 'm> {
    /// Mesh node `n`: the border router (0), a relay, or a leaf.
    pub(super) fn mesh_node(self, n: usize) -> Resident<'m> {
        let options = &self.options.nodes[n];
        // Lossless: `topology::tree` has refused more nodes.
        let number = n as u16;
        let mut rng = stream(self.options.seed, u32::from(number), Purpose::Stack);
        let is_router = n == 0;
        let is_tapped = options.transport == Host::Outside;
        let radio = Link::Mesh(self.radio(n, &mut rng));
        let is_wired = is_router || is_tapped;
        let wire = is_wired.then(|| Link::Cable(wire(self.arena)));
        let interfaces = std::iter::once(radio).chain(wire).collect::<Vec<_>>();
        let interfaces = self.arena.alloc_slice_fill_iter(interfaces);
        let mut ip = self.ip(n);
        if is_router {
            ip.add_address(Address {
                addr: plan::ROUTER_WIRED,
                interface: WIRED,
            });
            ip.set_default_route(Some(NextHop {
                interface: WIRED,
                neighbour: Neighbour::Only,
            }));
        }
        let tables = &options.tables;
        let sockets = [tables.connections, tables.listeners, tables.half_open];
        let tcp = tcp(self.arena, sockets, &mut rng);
        let filter = Filter {
            pan: plan::PAN,
            extended: plan::eui64(number),
            short: options.mac.short,
        };
        let radio_port = Port::Air(RadioPort {
            interface: RADIO,
            profile: options.profile,
            filter,
            channel: options.channel,
        });
        let wire_port = if is_tapped {
            Some(Port::Tap(WIRED))
        } else {
            is_router.then_some(Port::Wire(WIRED))
        };
        Resident {
            node: Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN),
            ports: std::iter::once(radio_port).chain(wire_port).collect(),
            app: App::None,
        }
    }

    /// Addresses and routes of mesh node `n`.
    fn ip(self, n: usize) -> Ip<'m> {
        let below = self.tree.below(n);
        let routes = below.iter().map(|(node, child)| {
            Some(Route {
                prefix: Prefix::host(plan::mesh_addr(*node as u16)),
                next_hop: NextHop {
                    interface: RADIO,
                    neighbour: Neighbour::One(plan::link_addr(*child as u16).iid()),
                },
            })
        });
        let addr = plan::mesh_addr(n as u16);
        let is_tapped = self.options.nodes[n].transport == Host::Outside;
        let tap = is_tapped.then_some(Some(Route {
            prefix: Prefix::host(addr),
            next_hop: NextHop {
                interface: WIRED,
                neighbour: Neighbour::Only,
            },
        }));
        let routes: Vec<_> = routes.chain(tap).collect();
        let config = ip::Config {
            forwards: n == 0 || is_tapped || !below.is_empty(),
            ..ip::Config::default()
        };
        let mut ip = Ip::new(config, self.arena.alloc_slice_fill_iter(routes));
        if let (Joining::Static, Some(parent)) = (self.options.joining, self.tree.parent(n)) {
            if !is_tapped {
                ip.add_address(Address {
                    addr,
                    interface: RADIO,
                });
            }
            ip.set_default_route(Some(NextHop {
                interface: RADIO,
                neighbour: Neighbour::One(plan::link_addr(parent as u16).iid()),
            }));
        }
        ip
    }

    /// Host `number` beyond the wire, node `at` of the world.
    pub(super) fn host(self, number: usize, at: usize) -> Resident<'m> {
        let host = &self.options.hosts[number];
        let sockets = [host.connections, host.listeners, host.half_open];
        // Lossless: there are few more hosts than nodes.
        let rng = stream(self.options.seed, at as u32, Purpose::Stack);
        Resident {
            node: wired_node(self.options.host_addr(number), sockets, rng, self.arena),
            ports: vec![Port::Wire(HOST_WIRED)],
            app: App::None,
        }
    }

    fn radio(self, n: usize, rng: &mut Rng) -> Mesh<'m> {
        let (arena, options) = (self.arena, &self.options.nodes[n]);
        let mac_config = mac::Config {
            pan: plan::PAN,
            extended: plan::eui64(n as u16),
            channel: options.channel,
            ..options.mac.clone()
        };
        let Tables {
            queue_frames,
            packet_queue_len,
            records,
            bodies,
            ..
        } = options.tables;
        let neighbors = self.tree.children(n) + NEIGHBORS_SPARE;
        let memory = MeshMemory {
            frames: arena.alloc_slice_fill_with(queue_frames, |_| FrameSlot::EMPTY),
            neighbors: arena.alloc_slice_fill_with(neighbors, |_| Neighbor::EMPTY),
            records: arena.alloc_slice_fill_with(records, |_| Record::EMPTY),
            bodies: arena.alloc_slice_fill_copy(bodies * IPV6_MTU_MIN, 0),
            outgoing: arena.alloc_slice_fill_copy(IPV6_MTU_MIN, 0),
            queue: arena.alloc_slice_fill_copy(packet_queue_len, 0),
        };
        let capabilities = options.profile.capabilities;
        let parent = self.tree.parent(n);
        // On a channel of its own a frame disturbs only the hop before it: its relay is away.
        let reach = match options.mac.channels {
            Channels::SINGLE => usize::MAX,
            _ => 2,
        };
        let is_advertised = self.options.joining == Joining::Advertised;
        let config = MeshConfig {
            relaying: options.relaying,
            forwarding: options.forwarding,
            mss_frames: options.mss_frames,
            hold: Hold {
                step: options.hold_step,
                hops_up: saturated(self.tree.depth(n).min(reach)),
                hops_down: saturated(self.tree.height(n).min(reach)),
            },
            discipline: options.discipline,
            parent: parent.map(|parent| plan::link_addr(parent as u16)),
            solicits: is_advertised && parent.is_some(),
            advertised: parent.is_none().then_some(Advertised {
                prefix: plan::MESH_PREFIX,
                lifetime: Advertised::LIFETIME,
            }),
        };
        let mut late = options
            .tags_wrap
            .then(|| late_tags(&mac_config, capabilities, rng));
        let mut radio = Mesh::new(config, (mac_config, capabilities), memory, rng);
        if let Some(late) = &mut late {
            radio.renew_tags(late);
        }
        if parent.is_none() || !is_advertised {
            *radio.contexts_mut() = plan::contexts();
        }
        if let Some(mode) = options.compression {
            radio.set_tcphc(self.tcphc(n, mode, rng));
        }
        radio
    }

    /// The compressor of node `n`: the border router's has room for two connections of every
    /// mote.
    fn tcphc(self, n: usize, mode: tcphc::Mode, rng: &mut Rng) -> &'m mut Tcphc<'m> {
        let tables = &self.options.nodes[n].tables;
        let own = tables.connections;
        let (end, contexts) = match n {
            0 => (tcphc::End::Router, own + 2 * self.options.nodes.len()),
            _ => (tcphc::End::Mote, own),
        };
        let config = tcphc::Config {
            mode,
            end,
            // Every node starts with the world.
            quiet: Duration::ZERO,
            learned: self.options.nodes[n].learns_compression,
            ..tcphc::Config::default()
        };
        let contexts = self
            .arena
            .alloc_slice_fill_with(contexts.max(tables.compressed), |_| tcphc::Context::EMPTY);
        self.arena
            .alloc(Tcphc::new(contexts, config, Instant::ORIGIN, rng))
    }
}

/// A node with a wire and nothing else; `sockets`: its connections, listeners and handshakes.
pub(crate) fn wired_node<'m>(
    addr: Ipv6Addr,
    sockets: [usize; 3],
    mut rng: Rng,
    arena: &'m Arena,
) -> Node<'m> {
    let interfaces = arena.alloc_slice_fill_iter([Link::Cable(wire(arena))]);
    let mut ip = Ip::new(ip::Config::default(), &mut []);
    ip.add_address(Address {
        addr,
        interface: HOST_WIRED,
    });
    ip.set_default_route(Some(NextHop {
        interface: HOST_WIRED,
        neighbour: Neighbour::Only,
    }));
    let tcp = tcp(arena, sockets, &mut rng);
    Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN)
}

/// Hops as the stack counts them: beyond three they make no difference.
fn saturated(hops: usize) -> u8 {
    u8::try_from(hops).unwrap_or(u8::MAX)
}

/// A generator from which the tags of a mesh link begin so late that they soon start again, where
/// `rng` is what the link would be made from.
fn late_tags(mac: &mac::Config, radio: RadioCapabilities, rng: &Rng) -> Rng {
    let mut rng = rng.clone();
    // A link draws for its MAC first.
    let _mac = Mac::new(mac.clone(), radio, &mut [], &mut [], &mut rng);
    let mut tags = rng.derive();
    while (tags.clone().next_u32() as u16) < TAGS_LAST {
        tags = tags.derive();
    }
    tags
}

fn wire(arena: &Arena) -> motet::link::Cable<'_> {
    let queue = arena.alloc_slice_fill_copy(WIRE_QUEUE_LEN, 0);
    motet::link::Cable::new(queue, WIRED_MTU)
}

fn tcp<'m>(
    arena: &'m Arena,
    [connections, listeners, half_open]: [usize; 3],
    rng: &mut Rng,
) -> Tcp<'m> {
    let memory = tcp::Memory {
        connections: arena.alloc_slice_fill_with(connections, |_| Slot::EMPTY),
        listeners: arena.alloc_slice_fill_with(listeners, |_| Listener::EMPTY),
        half_open: arena.alloc_slice_fill_with(half_open, |_| HalfOpen::EMPTY),
    };
    Tcp::new(memory, rng)
}

/// Tags from here on wrap soon enough for a run to see it.
const TAGS_LAST: u16 = u16::MAX - 64;

/// Neighbours that a node knows besides its children: its parent, and those it only hears.
const NEIGHBORS_SPARE: usize = 3;

/// Bytes of packets that wait for the wire; they never do for long.
const WIRE_QUEUE_LEN: usize = 8 * 1_500;

/// Ethernet's; the mesh's own MTU bounds what comes from the motes.
const WIRED_MTU: u16 = 1_280;

#[cfg(test)]
#[path = "../tests/ports.rs"]
mod tests;
