//! Any mesh behind a border router, and the hosts beyond it.
//!
//! ```text
//! host 0 ==\                           /~~ mote 2
//! host 1 ===== border router 0 ~~~ relay 1 ~~~ mote 3
//! ```
//!
//! Purpose: builds a [`World`] from who hears whom and what each node is like. The mesh is a
//! tree: each mote's parent is given, or found by [`crate::topology`]. Host routes downwards
//! are static; addresses, contexts and default routes come by router advertisement, or are
//! there from the start.
//! Left out: several border routers, routing protocols, motes that come and go.

use std::net::Ipv6Addr;

use motet::ip::queue::Discipline;
use motet::ip::{self, Address, InterfaceId, Ip, NextHop, Prefix, Route};
use motet::limits::IPV6_MTU_MIN;
use motet::lowpan::datagram::{Datagrams, Record};
use motet::lowpan::tcphc::{self, Tcphc};
use motet::mac::{self, Channels, FrameSlot, Mac, Neighbor};
use motet::node::{
    Advertised, Forwarding, Hold, Interface, Node, Radio, RadioConfig, RadioMemory, Relaying,
};
use motet::random::Rng;
use motet::storage::packet_queue::PacketQueue;
use motet::tcp::{self, HalfOpen, Listener, Slot, Tcp};
use motet::time::{Duration, Instant};

use crate::Arena;
use crate::app::{App, Ends};
use crate::filter::Filter;
use crate::gains::{Gains, Later};
use crate::noise::Noise;
use crate::plan;
use crate::profile::Profile;
use crate::streams::{Purpose, stream};
use crate::topology::{self, Station, TopologyError, Tree};
use crate::wire::{End, Wire, WireHost};
use crate::world::{Conditions, RadioPort, Resident, World};

/// What a network is like.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Every random choice follows from it.
    pub seed: u64,
    /// The mesh's nodes; the first is the border router.
    pub nodes: Vec<NodeOptions>,
    /// Who hears whom among [`Self::nodes`], in their order.
    pub gains: Gains,
    /// How they change while a run goes on; the tree stays.
    pub later: Vec<Later>,
    /// What other systems do on the channel.
    pub interference: Option<Interference>,
    /// What is beyond the wire; the first gets packets for addresses that none has.
    pub hosts: Vec<HostOptions>,
    /// Chance that a frame received without error is lost nevertheless, ACKs included.
    pub frame_loss: f64,
    /// Chance that a packet is lost at the border router's wired side, either way.
    pub packet_loss: f64,
    /// How motes get their addresses.
    pub joining: Joining,
}

/// Noise that was recorded, and who hears it.
#[derive(Clone, PartialEq, Debug)]
pub struct Interference {
    /// The recording; runs begin anywhere in it.
    pub noise: Noise,
    /// The nodes that hear it; none: all.
    pub nodes: Vec<usize>,
    /// Whether all hear the same moment of it.
    pub together: bool,
}

impl Interference {
    /// What `node` hears in the run seeded with `seed`.
    fn at(&self, node: usize, seed: u64) -> Option<Noise> {
        let hears = self.nodes.is_empty() || self.nodes.contains(&node);
        // Lossless: nodes have 16-bit numbers.
        let place = if self.together { 0 } else { node as u32 };
        let mut rng = stream(seed, place, Purpose::Interference);
        let shift = rng.next_u64() % self.noise.len().as_micros();
        hears.then(|| self.noise.shifted(Duration::from_micros(shift)))
    }
}

/// One node of the mesh.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// What errors and reports call it.
    pub name: String,
    /// Its next hop towards the border router, which itself has none.
    pub parent: Parent,
    /// Radio and driver; its transmit power is here too.
    pub profile: Profile,
    /// 11 to 26; a mesh that shall hold together is on one.
    pub channel: u8,
    /// Settings of the MAC; identity and channel are set from the node's place in the mesh.
    pub mac: mac::Config,
    /// How packets of several fragments are passed on.
    pub relaying: Relaying,
    /// How a fragment to be passed on gets from one frame into the next.
    pub forwarding: Forwarding,
    /// Frames that a full segment may fill, each way.
    pub mss_frames: u8,
    /// How TCP headers are compressed, where this node is an end of their path; `None`: not.
    pub compression: Option<tcphc::Mode>,
    /// Whether it has to learn which peers understand compression.
    pub learns_compression: bool,
    /// How long the next frame to a neighbour waits, per hop that the last one still has to
    /// go; zero: not at all. How far it has to go, the tree says.
    pub hold_step: Duration,
    /// How its queue of whole packets is kept short.
    pub discipline: Discipline,
    /// Buffers of a TCP end on this node, in full segments.
    pub window_segments: usize,
    /// Its datagram tags begin where they soon wrap; otherwise anywhere.
    pub tags_wrap: bool,
    /// Who speaks at its address: this stack, or the caller, by [`World::inject_at`] and
    /// [`World::take_at`] (needs [`Joining::Static`]). Its packets count one hop to the node.
    pub transport: Host,
    /// The memory of its tables.
    pub tables: Tables,
}

/// Where a mote's packets go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parent {
    /// Along the path of fewest expected transmissions.
    #[default]
    Shortest,
    /// To this node.
    Node(usize),
}

/// How large a node's tables are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables {
    /// Frames that its MAC queues.
    pub queue_frames: usize,
    /// Bytes of whole packets that wait for the air.
    pub packet_queue_len: usize,
    /// Packets under way through it in fragments.
    pub records: usize,
    /// Packets being gathered in it.
    pub bodies: usize,
    /// TCP connections.
    pub connections: usize,
    /// TCP listeners.
    pub listeners: usize,
    /// TCP handshakes that nobody has accepted yet.
    pub half_open: usize,
}

/// What is beyond the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct HostOptions {
    /// What errors and reports call it.
    pub name: String,
    /// One-way delay between it and the border router.
    pub delay: Duration,
    /// A node of this world, or the caller's.
    pub kind: Host,
    /// TCP connections it has room for.
    pub connections: usize,
}

/// Who a host is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A node with this stack.
    Virtual,
    /// The caller, with packets: a kernel.
    Outside,
}

/// How motes get addresses, contexts and default routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Joining {
    /// By router advertisement, hop by hop: [`Network::join`] waits for it.
    #[default]
    Advertised,
    /// They have them from the start: large meshes need minutes otherwise.
    Static,
}

/// A network ready to run.
#[derive(Debug)]
pub struct Network<'m> {
    /// The world it is in: the mesh's nodes, then its virtual hosts, in their order.
    pub world: World<'m>,
    tree: Tree,
    /// What it was built from, but for the gains.
    options: NetworkOptions,
    hosts: Vec<Option<usize>>,
}

/// The interface of every mesh node to the air.
pub const RADIO: InterfaceId = InterfaceId(0);

/// The border router's interface to the wire.
pub const WIRED: InterfaceId = InterfaceId(1);

/// A simulated host's only interface.
pub const HOST_WIRED: InterfaceId = InterfaceId(0);

/// One way: decides at how many segments a larger window stops to help (`TCPlp` Fig 5).
pub const HOST_DELAY: Duration = Duration::from_millis(20);

/// As many as the link addresses of [`plan`] tell apart.
pub const NODES_MAX: usize = 1 << 16;

impl NodeOptions {
    /// A node with `TCPlp`'s hardware and settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            parent: Parent::Shortest,
            profile: Profile::HAMILTON,
            channel: plan::CHANNEL,
            mac: mac::Config::new(plan::PAN, [0; 8]),
            relaying: Relaying::Fragments,
            forwarding: Forwarding::Copy,
            mss_frames: 5,
            compression: None,
            learns_compression: false,
            hold_step: Duration::ZERO,
            discipline: Discipline::DropTail,
            window_segments: 4,
            tags_wrap: false,
            transport: Host::Virtual,
            tables: Tables::RELAY,
        }
    }
}

impl Tables {
    /// A relay of `TCPlp`'s testbed, whose 32 buffers of 128 bytes served everything.
    pub const RELAY: Self = Self {
        queue_frames: 16,
        packet_queue_len: 8 * IPV6_MTU_MIN,
        records: 16,
        bodies: 4,
        connections: 8,
        listeners: 4,
        half_open: 4,
    };

    /// A mote of a large mesh: one connection of its own, and little to pass on at a time.
    pub const SMALL: Self = Self {
        queue_frames: 12,
        packet_queue_len: 2 * IPV6_MTU_MIN,
        records: 8,
        bodies: 1,
        connections: 1,
        listeners: 1,
        half_open: 1,
    };
}

impl HostOptions {
    /// A simulated host 20 ms away.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            delay: HOST_DELAY,
            kind: Host::Virtual,
            connections: 8,
        }
    }
}

impl NetworkOptions {
    /// A mesh of such nodes with one simulated host.
    pub fn new(nodes: Vec<NodeOptions>, gains: Gains) -> Self {
        Self {
            seed: 1,
            nodes,
            gains,
            later: Vec::new(),
            interference: None,
            hosts: vec![HostOptions::new("host")],
            frame_loss: 0.0,
            packet_loss: 0.0,
            joining: Joining::Advertised,
        }
    }

    /// The tree that [`Network::new`] would build.
    ///
    /// # Errors
    /// [`TopologyError`], naming the node.
    pub fn tree(&self) -> Result<Tree, TopologyError> {
        let stations: Vec<Station<'_>> = self.nodes.iter().map(station).collect();
        topology::tree(&stations, &self.gains)
    }
}

fn station(node: &NodeOptions) -> Station<'_> {
    Station {
        name: &node.name,
        parent: match node.parent {
            Parent::Shortest => None,
            Parent::Node(parent) => Some(parent),
        },
        transmit_dbm: node.profile.transmit_dbm,
        noise_dbm: node.profile.noise_dbm(),
        channel: node.channel,
    }
}

impl<'m> Network<'m> {
    /// Builds a network; all its nodes' memory comes from `arena`.
    ///
    /// # Errors
    /// [`TopologyError`]: no mesh can be built of these nodes.
    pub fn new(options: NetworkOptions, arena: &'m Arena) -> Result<Self, TopologyError> {
        let tree = options.tree()?;
        let builder = Builder {
            options: &options,
            tree: &tree,
            arena,
        };
        let mut residents: Vec<Resident<'m>> = (0..options.nodes.len())
            .map(|n| builder.mesh_node(n))
            .collect();
        let (mut hosts, mut ends) = (Vec::new(), Vec::new());
        for (number, host) in options.hosts.iter().enumerate() {
            let at = residents.len();
            let end = match host.kind {
                Host::Outside => End::Outside,
                Host::Virtual => {
                    residents.push(builder.host(number, at));
                    End::Mote(at)
                }
            };
            hosts.push((host.kind == Host::Virtual).then_some(at));
            ends.push(WireHost {
                end,
                addr: plan::host_addr(number),
                delay: host.delay,
            });
        }
        let loss = stream(options.seed, 0, Purpose::PacketLoss);
        let wire = (!ends.is_empty()).then(|| Wire::new(0, ends, options.packet_loss, loss));
        let silent = residents.len() - options.nodes.len();
        let mut options = options;
        let gains = std::mem::take(&mut options.gains).with_silent(silent);
        let conditions = Conditions {
            seed: options.seed,
            frame_loss: options.frame_loss,
        };
        let mut world = World::new(residents, &gains, wire, conditions);
        world.change_later(std::mem::take(&mut options.later));
        for node in 0..options.nodes.len() {
            let interference = options.interference.as_ref();
            let noise = interference.and_then(|all| all.at(node, options.seed));
            world.set_noise(node, noise);
        }
        Ok(Self {
            world,
            tree,
            options,
            hosts,
        })
    }

    /// Lets a node of the world start anew, with all its tables empty; says whether that was
    /// possible right now ([`World::may_reboot`]).
    pub fn reboot(&mut self, node: usize, arena: &'m Arena) -> bool {
        if !self.world.may_reboot(node) {
            return false;
        }
        // A device's random numbers are not those of before.
        self.options.seed = self.options.seed.wrapping_add(REBOOT_STEP);
        let builder = Builder {
            options: &self.options,
            tree: &self.tree,
            arena,
        };
        let resident = match self.hosts.iter().position(|at| *at == Some(node)) {
            Some(number) => builder.host(number, node),
            None => builder.mesh_node(node),
        };
        self.world.reboot(node, resident.node);
        true
    }

    /// How many nodes the mesh has, the border router included.
    pub fn mesh_nodes(&self) -> usize {
        self.options.nodes.len()
    }

    /// Who is whose parent.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What a mesh node is called.
    pub fn name(&self, node: usize) -> &str {
        let node = self.options.nodes.get(node);
        node.map_or("", |node| node.name.as_str())
    }

    /// The mesh node of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        let mut nodes = self.options.nodes.iter();
        nodes.position(|node| node.name == name)
    }

    /// The place of a virtual host in the world.
    pub fn host(&self, number: usize) -> Option<usize> {
        *self.hosts.get(number)?
    }

    /// The address of a node of the world, mesh node or virtual host, in the plan.
    pub fn addr(&self, node: usize) -> Ipv6Addr {
        match self.hosts.iter().position(|at| *at == Some(node)) {
            Some(number) => plan::host_addr(number),
            // Lossless: there are at most 2^16 nodes.
            None => plan::mesh_addr(node as u16),
        }
    }

    /// Connections and half-open connections that a mesh node has room for.
    pub fn places(&self, node: usize) -> [usize; 2] {
        let tables = self.options.nodes.get(node).map(|node| node.tables);
        tables.map_or([0; 2], |tables| [tables.connections, tables.half_open])
    }

    /// Settings and memory for the TCP ends of a node that speaks to `peer`: a mote's
    /// buffers hold its window, a host's any.
    pub fn ends(&self, node: usize, peer: Ipv6Addr, arena: &'m Arena) -> Ends<'m> {
        match self.options.nodes.get(node) {
            Some(options) => Ends::mote(arena, peer, options.window_segments),
            None => Ends::host(arena),
        }
    }

    /// Runs until every mote has an address and a route, or `limit` has passed; says
    /// whether they have.
    pub fn join(&mut self, limit: Duration) -> bool {
        let nodes = self.mesh_nodes();
        join(&mut self.world, nodes, limit)
    }

    /// Whether every mote has an address and a route.
    pub fn has_joined(&self) -> bool {
        has_joined(&self.world, self.mesh_nodes())
    }

    /// The MACs of the border router and all motes, in order.
    pub fn macs(&self) -> impl Iterator<Item = &Mac<'m>> {
        (0..self.mesh_nodes()).filter_map(|n| self.mac(n))
    }

    /// The MAC of a mesh node.
    pub fn mac(&self, node: usize) -> Option<&Mac<'m>> {
        mac(&self.world, node)
    }
}

/// As [`Network::join`], for the first `nodes` nodes of `world`.
pub(crate) fn join(world: &mut World<'_>, nodes: usize, limit: Duration) -> bool {
    let until = world.now() + limit;
    while !has_joined(world, nodes) {
        if !world.step(until) {
            return false;
        }
    }
    true
}

/// As [`Network::has_joined`], for the first `nodes` nodes of `world`.
pub(crate) fn has_joined(world: &World<'_>, nodes: usize) -> bool {
    // The farthest first: they are the last to join.
    (1..nodes).rev().all(|mote| {
        let node = world.node(mote);
        node.global_address().is_some() && node.ip().default_route().is_some()
    })
}

/// The MAC of a node of `world`, if it has a radio.
pub(crate) fn mac<'w, 'm>(world: &'w World<'m>, node: usize) -> Option<&'w Mac<'m>> {
    match world.node(node).interface(RADIO) {
        Some(Interface::Radio(radio)) => Some(radio.mac()),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Builder<'a, 'm> {
    options: &'a NetworkOptions,
    tree: &'a Tree,
    arena: &'m Arena,
}

impl<'m> Builder<'_, 'm> {
    /// Mesh node `n`: the border router (0), a relay, or a leaf.
    fn mesh_node(self, n: usize) -> Resident<'m> {
        let options = &self.options.nodes[n];
        // Lossless: `topology::tree` has refused more nodes.
        let number = n as u16;
        let mut rng = stream(self.options.seed, u32::from(number), Purpose::Stack);
        let is_router = n == 0;
        let is_tapped = options.transport == Host::Outside;
        let radio = Interface::Radio(self.radio(n, &mut rng));
        let is_wired = is_router || is_tapped;
        let wire = is_wired.then(|| Interface::Wire(wire(self.arena)));
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
                neighbour: None,
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
        Resident {
            node: Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN),
            radio: Some(RadioPort {
                interface: RADIO,
                profile: options.profile,
                filter,
                channel: options.channel,
            }),
            wired: is_wired.then_some(WIRED),
            is_tapped,
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
                    neighbour: Some(plan::link_addr(*child as u16)),
                },
            })
        });
        let addr = plan::mesh_addr(n as u16);
        let is_tapped = self.options.nodes[n].transport == Host::Outside;
        let tap = is_tapped.then_some(Some(Route {
            prefix: Prefix::host(addr),
            next_hop: NextHop {
                interface: WIRED,
                neighbour: None,
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
                neighbour: Some(plan::link_addr(parent as u16)),
            }));
        }
        ip
    }

    /// Host `number` beyond the wire, node `at` of the world.
    fn host(self, number: usize, at: usize) -> Resident<'m> {
        let connections = self.options.hosts[number].connections;
        // Lossless: there are few more hosts than nodes.
        let rng = stream(self.options.seed, at as u32, Purpose::Stack);
        Resident {
            node: wired_node(plan::host_addr(number), connections, rng, self.arena),
            radio: None,
            wired: Some(HOST_WIRED),
            is_tapped: false,
            app: App::None,
        }
    }

    fn radio(self, n: usize, rng: &mut Rng) -> Radio<'m> {
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
        let slots = arena.alloc_slice_fill_with(queue_frames, |_| FrameSlot::EMPTY);
        let neighbors = self.tree.children(n) + NEIGHBORS_SPARE;
        let neighbors = arena.alloc_slice_fill_with(neighbors, |_| Neighbor::EMPTY);
        let capabilities = options.profile.capabilities;
        let mac = Mac::new(mac_config, capabilities, slots, neighbors, rng);
        let records = arena.alloc_slice_fill_with(records, |_| Record::EMPTY);
        let memory = RadioMemory {
            outgoing: arena.alloc_slice_fill_copy(IPV6_MTU_MIN, 0),
            datagrams: Datagrams::new(
                records,
                arena.alloc_slice_fill_copy(bodies * IPV6_MTU_MIN, 0),
                IPV6_MTU_MIN,
                false,
                &mut tags(rng, options.tags_wrap),
            ),
            queue: PacketQueue::new(arena.alloc_slice_fill_copy(packet_queue_len, 0)),
        };
        let parent = self.tree.parent(n);
        // On a channel of its own a frame disturbs only the hop before it: its relay is away.
        let reach = match options.mac.channels {
            Channels::SINGLE => usize::MAX,
            _ => 2,
        };
        let is_advertised = self.options.joining == Joining::Advertised;
        let config = RadioConfig {
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
        let mut radio = Radio::new(config, mac, memory);
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
        let own = self.options.nodes[n].tables.connections;
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
            .alloc_slice_fill_with(contexts, |_| tcphc::Context::EMPTY);
        self.arena
            .alloc(Tcphc::new(contexts, config, Instant::ORIGIN, rng))
    }
}

/// A node with a wire and nothing else.
pub(crate) fn wired_node<'m>(
    addr: Ipv6Addr,
    connections: usize,
    mut rng: Rng,
    arena: &'m Arena,
) -> Node<'m> {
    let interfaces = arena.alloc_slice_fill_iter([Interface::Wire(wire(arena))]);
    let mut ip = Ip::new(ip::Config::default(), &mut []);
    ip.add_address(Address {
        addr,
        interface: HOST_WIRED,
    });
    ip.set_default_route(Some(NextHop {
        interface: HOST_WIRED,
        neighbour: None,
    }));
    let Tables {
        listeners,
        half_open,
        ..
    } = Tables::RELAY;
    let tcp = tcp(arena, [connections, listeners, half_open], &mut rng);
    Node::new(interfaces, ip, tcp, rng, Instant::ORIGIN)
}

/// Hops as the stack counts them: beyond three they make no difference.
fn saturated(hops: usize) -> u8 {
    u8::try_from(hops).unwrap_or(u8::MAX)
}

/// The generator from which a table of datagrams draws where its tags begin.
fn tags(rng: &mut Rng, wrap: bool) -> Rng {
    let mut tags = rng.clone();
    // What is drawn from `rng` itself stays the same for all that comes after.
    let mut others = rng.clone();
    let _one_tag = rng.next_u32();
    while wrap && (tags.clone().next_u32() as u16) < TAGS_LAST {
        tags = others.derive();
    }
    tags
}

fn wire(arena: &Arena) -> motet::node::Wire<'_> {
    let queue = PacketQueue::new(arena.alloc_slice_fill_copy(WIRE_QUEUE_LEN, 0));
    motet::node::Wire::new(queue, WIRED_MTU)
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

/// Between the seeds of a network and of the same after a reboot; odd, so that none repeats.
const REBOOT_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Tags from here on wrap soon enough for a run to see it.
const TAGS_LAST: u16 = u16::MAX - 64;

/// Neighbours that a node knows besides its children: its parent, and those it only hears.
const NEIGHBORS_SPARE: usize = 3;

/// Bytes of packets that wait for the wire; they never do for long.
const WIRE_QUEUE_LEN: usize = 8 * 1_500;

/// Ethernet's; the mesh's own MTU bounds what comes from the motes.
const WIRED_MTU: u16 = 1_280;

#[cfg(test)]
#[path = "tests/network.rs"]
mod tests;
