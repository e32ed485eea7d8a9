//! Nodes over the memory of a run, from what their network is to be like.

use std::net::Ipv6Addr;

use motet::ip::{self, Address, Ip, Neighbour, NextHop, Prefix, Registration, Route};
use motet::join::Configuration;
use motet::limits::MESH_PACKET_LEN_MAX;
use motet::link::{Advertised, Child, Indirect, Link, Mesh, MeshConfig, MeshMemory, Pacing};
use motet::lowpan::datagram::Record;
use motet::mac::security::{Engine, Peer, Reservation, Security, SecurityConfig};
use motet::mac::{self, Channels, FrameSlot, Mac, Neighbor, Pending, RadioCapabilities, Sleep};
use motet::node::{JoinProxy, JoinRole, Node};
use motet::random::Rng;
use motet::rpl::{self, Candidate, RplRole};
use motet::tcphc::{self, Tcphc};
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;

use super::memory::{NodeMemory, give_fragments, reuse_or_alloc, reuse_or_fill, tcp, wire};
use super::wired::{join_wire, wired_node};
use super::{HOST_WIRED, Host, Joining, NetworkOptions, RADIO, WIRED};
use crate::Arena;
use crate::air::filter::Filter;
use crate::apps::App;
use crate::net::counter_store::CounterStore;
use crate::net::plan;
use crate::net::topology::Tree;
use crate::net::world::{Port, RadioPort, Resident};
use crate::streams::{Purpose, stream};

#[derive(Clone, Copy)]
pub(super) struct Builder<'a, 'm> {
    pub(super) options: &'a NetworkOptions,
    pub(super) tree: &'a Tree,
    /// The mesh's, of 64 bits.
    pub(super) prefix: Ipv6Addr,
    pub(super) arena: &'m Arena,
    /// Every random choice of the node follows from it.
    pub(super) seed: u64,
    /// When the node starts.
    pub(super) now: Instant,
    /// How long its header compression stays quiet, for peers may know it from an earlier life.
    pub(super) quiet: Duration,
    /// The reservation of frame counters that the node stored in its earlier lives.
    pub(super) stored: Option<Reservation>,
    /// The key that it has got in its lives before, where that is not from the start.
    pub(super) given: Option<Configuration>,
}

impl<'a, 'm> Builder<'a, 'm> {
    /// What builds nodes that start for the first time.
    pub(in crate::net) const fn new(
        options: &'a NetworkOptions,
        tree: &'a Tree,
        prefix: Ipv6Addr,
        arena: &'m Arena,
    ) -> Self {
        Self {
            options,
            tree,
            prefix,
            arena,
            seed: options.seed,
            now: Instant::ORIGIN,
            quiet: Duration::ZERO,
            stored: None,
            given: None,
        }
    }
}

impl<'m> Builder<'_, 'm> {
    /// All mesh nodes, in order.
    pub(super) fn mesh_nodes(self) -> Vec<Resident<'m>> {
        let buffers = self.buffers().enumerate();
        buffers
            .map(|(n, buffers)| self.mesh_node(n, buffers))
            .collect()
    }

    /// Mesh node `n`: the border router (0), a relay, or a leaf, in memory that came back as far as
    /// it is there.
    pub(super) fn mesh_node(self, n: usize, mut returned: NodeMemory<'m>) -> Resident<'m> {
        let options = &self.options.nodes[n];
        let mut rng = stream(self.seed, self.place(n), Purpose::Stack);
        let is_router = n == 0;
        if is_router && self.options.joining == Joining::Thread {
            return self.thread_router(rng);
        }
        let is_tapped = options.transport == Host::Outside;
        let ble = self.options.ble.as_ref();
        let ble_alone = ble.filter(|_| self.options.is_ble(n));
        let beside = ble.filter(|_| is_router && self.options.is_mixed());
        let radio = match ble_alone {
            Some(ble) => Link::Ble(self.ble(n, ble, &mut returned)),
            None => Link::Mesh(self.radio(n, &mut returned, &mut rng)),
        };
        let is_wired = is_router || is_tapped;
        let wire = is_wired.then(|| Link::Cable(wire(&mut returned, self.arena)));
        let second = beside.map(|ble| Link::Ble(self.ble(n, ble, &mut returned)));
        let interfaces: Vec<_> = std::iter::once(radio).chain(wire).chain(second).collect();
        let interfaces = reuse_or_alloc(&mut returned.links, self.arena, interfaces);
        let mut ip = self.ip(n, &mut returned);
        if is_router {
            join_wire(&mut ip);
        }
        let tables = &options.tables;
        let sockets = [tables.connections, tables.listeners, tables.half_open];
        let tcp = tcp(&mut returned, self.arena, sockets, &mut rng);
        let radio_port = match ble_alone {
            Some(ble) => Port::Ble(self.ble_port(n, ble)),
            None => Port::Air(self.radio_port(n)),
        };
        let second_port = beside.map(|ble| Port::Ble(self.ble_port(n, ble)));
        let wire_port = if is_tapped {
            Some(Port::Tap(WIRED))
        } else {
            is_router.then_some(Port::Wire(WIRED))
        };
        let join_proxy = self.join_proxy(n, returned.join_proxy.take(), &mut rng);
        let mut node = Node::new(interfaces, ip, tcp, rng, self.now);
        if let Some(join_proxy) = join_proxy {
            node.set_join_proxy(join_proxy);
        }
        give_fragments(&mut node, &mut returned, self.arena);
        if self.speaks_rpl(n) {
            self.start_rpl(n, &mut returned, &mut node);
        }
        Resident {
            node,
            ports: std::iter::once(radio_port)
                .chain(wire_port)
                .chain(second_port)
                .collect(),
            app: App::None,
        }
    }

    /// Whose random stream node `at` of the world draws from: as if motes that come later were not
    /// there yet, so that they change nothing before; their own are behind those of all hosts.
    fn place(self, at: usize) -> u32 {
        let absent = &self.options.absent;
        // Lossless: `topology::tree` has refused more nodes, and there are few more hosts.
        match absent.contains(&at) {
            true => ABSENT_FROM + at as u32,
            false => (at - absent.range(..at).count()) as u32,
        }
    }

    /// How mesh node `n` is attached to the air.
    pub(super) fn radio_port(self, n: usize) -> RadioPort {
        let options = &self.options.nodes[n];
        RadioPort {
            interface: RADIO,
            profile: self.profile_in_thread(n).unwrap_or(options.profile),
            filter: Filter {
                pan: plan::PAN,
                // Lossless: nodes have 16-bit numbers.
                extended: plan::eui64(n as u16),
                short: self.short_of_router(n).or(options.mac.short),
            },
            channel: options.channel,
        }
    }

    /// Whether mesh node `n` takes part in RPL.
    fn speaks_rpl(self, n: usize) -> bool {
        let node = &self.options.nodes[n];
        let is_router = !node.is_leaf && !node.is_ble && node.sleep.is_none();
        self.options.joining == Joining::Rpl && is_router
    }

    /// Makes mesh node `n` the root of a DODAG, or a mote that looks for one.
    fn start_rpl(self, n: usize, returned: &mut NodeMemory<'m>, node: &mut Node<'m>) {
        let (role, candidates, steps) = match n {
            0 => {
                let root = rpl::Root::new(self.prefix);
                (RplRole::Root(root), 0, self.options.nodes.len())
            }
            _ => (RplRole::Router, CANDIDATES, 0),
        };
        let arena = self.arena;
        let empty = || Candidate::EMPTY;
        let candidates = reuse_or_fill(&mut returned.candidates, arena, candidates, empty);
        let steps = reuse_or_fill(&mut returned.steps, arena, steps, || None);
        node.start_rpl(RADIO, role, candidates, steps, self.now);
    }

    /// The address of mesh node `n`.
    fn addr(self, n: usize) -> Ipv6Addr {
        self.options.addr(self.prefix, n)
    }

    /// Addresses and routes of mesh node `n`.
    fn ip(self, n: usize, returned: &mut NodeMemory<'m>) -> Ip<'m> {
        let is_rpl = self.options.joining == Joining::Rpl;
        let below = self.tree.below(n).iter();
        // RPL finds the ways of its own nodes.
        let below = below.filter(|(node, _)| !is_rpl || self.options.nodes[*node].is_ble);
        let routes = below.clone().map(|(node, child)| {
            Some(Route {
                prefix: Prefix::host(self.addr(*node)),
                next_hop: NextHop {
                    interface: match self.options.nodes[*node].is_ble {
                        true => self.ble_interface(n),
                        false => RADIO,
                    },
                    neighbour: Neighbour::One(self.options.link_addr(*child).iid()),
                },
            })
        });
        let addr = self.addr(n);
        let is_tapped = self.options.nodes[n].transport == Host::Outside;
        let tap = is_tapped.then_some(Some(Route {
            prefix: Prefix::host(addr),
            next_hop: NextHop {
                interface: WIRED,
                neighbour: Neighbour::Only,
            },
        }));
        // A router has one to each leaf that may register with it.
        let leaves = match self.speaks_rpl(n) && n > 0 {
            true => NEIGHBORS_OF_ROUTER,
            false => 0,
        };
        let leaves = std::iter::repeat_n(None, leaves);
        let routes: Vec<_> = routes.chain(tap).chain(leaves).collect();
        let config = ip::Config {
            forwards: n == 0 || is_tapped || self.speaks_rpl(n) || below.count() > 0,
            ..ip::Config::default()
        };
        let mut ip = Ip::new(
            config,
            reuse_or_alloc(&mut returned.routes, self.arena, routes),
        );
        if let (Joining::Static, Some(parent)) = (self.options.joining, self.tree.parent(n)) {
            if !is_tapped {
                ip.add_address(Address {
                    addr,
                    interface: RADIO,
                });
            }
            let router = match self.options.is_ble(n) {
                true => LinkAddr::Device(plan::device_addr(0).bytes),
                false => self.options.link_addr(parent),
            };
            ip.set_default_route(Some(NextHop {
                interface: RADIO,
                neighbour: Neighbour::One(router.iid()),
            }));
        }
        ip
    }

    /// Host `number` beyond the wire, node `at` of the world.
    pub(super) fn host(self, number: usize, at: usize) -> Resident<'m> {
        let host = &self.options.hosts[number];
        let sockets = [host.connections, host.listeners, host.half_open];
        let rng = stream(self.seed, self.place(at), Purpose::Stack);
        Resident {
            node: wired_node(self.options.host_addr(number), sockets, rng, self.arena),
            ports: vec![Port::Wire(HOST_WIRED)],
            app: App::None,
        }
    }

    fn radio(self, n: usize, returned: &mut NodeMemory<'m>, rng: &mut Rng) -> Mesh<'m> {
        let options = &self.options.nodes[n];
        let mac_config = mac::Config {
            pan: plan::PAN,
            extended: plan::eui64(n as u16),
            channel: options.channel,
            ..options.mac.clone()
        };
        let memory = self.mesh_memory(n, returned);
        let is_rpl = self.options.joining == Joining::Rpl;
        let capabilities = options.profile.capabilities;
        let (joining, is_rpl_node) = (self.options.joining, self.speaks_rpl(n));
        let is_thread = joining == Joining::Thread;
        let parent = self.tree.parent(n).filter(|_| !is_rpl && !is_thread);
        let config = MeshConfig {
            relaying: options.relaying,
            forwarding: options.forwarding,
            mss_frames: options.mss_frames,
            pacing: self.pacing(n),
            discipline: options.discipline,
            parent: parent.map(|parent| plan::link_addr(parent as u16)),
            // RPL leads the others to whom to ask.
            solicits: joining != Joining::Static && !is_thread && n > 0 && !is_rpl_node,
            registers: joining != Joining::Static && !is_thread,
            advertised: (n == 0).then_some(Advertised {
                prefix: self.prefix,
                lifetime: Advertised::LIFETIME,
            }),
        };
        let mut late = options
            .tags_wrap
            .then(|| late_tags(&mac_config, capabilities, rng));
        let radio = Mesh::new(config, (mac_config, capabilities), memory, rng);
        let mut radio = radio.expect("profiles of the lab fit all settings");
        if let Some(late) = &mut late {
            radio.renew_tags(late);
        }
        if n == 0 || joining == Joining::Static {
            *radio.contexts_mut() = plan::contexts_under(self.prefix);
        }
        radio.set_sleep(options.sleep.map(|sleep| Sleep {
            rides: sleep.rides && self.parents_answer_data(),
            ..sleep
        }));
        if options.sleep.is_none() && self.options.has_sleepers() && !is_thread {
            radio.serve_sleepers(self.indirect(n, returned.indirect.take()));
        }
        if n == 0 && self.options.thins_acks {
            radio.set_thinning(self.thinning(returned.thinning.take()));
        }
        if n == 0 && self.options.queues_flows {
            radio.set_flow_queues(self.flow_queues(returned.flows.take()));
        }
        if let Some(security) = self.security(n, returned.security.take()) {
            radio.set_security(security);
        }
        self.join_thread(n, &mut radio);
        if let Some(mode) = options.compression.filter(|_| !is_thread) {
            radio.set_tcphc(self.tcphc(n, mode, returned.tcphc.take(), rng));
        }
        // Where nobody advertises, the setup says what the border router would.
        if n > 0 && joining == Joining::Static && self.options.nodes[0].compression.is_some() {
            radio.set_tcphc_offer(plan::link_addr(0));
        }
        radio
    }

    /// Whether every node that may be a parent says in the ACK of any frame that something waits:
    /// one flag for all is in the ACKs of data requests alone.
    fn parents_answer_data(self) -> bool {
        let awake = self
            .options
            .nodes
            .iter()
            .filter(|node| node.sleep.is_none());
        awake
            .map(|node| node.profile.capabilities)
            .all(|radio| !radio.auto_ack || radio.pending == Pending::PerNeighbour)
    }

    /// How mesh node `n` leaves neighbours alone: how far packets go the tree says, or RPL finds
    /// out.
    fn pacing(self, n: usize) -> Pacing {
        let options = &self.options.nodes[n];
        // On a channel of its own a frame disturbs only the hop before it: its relay is away.
        let reach = match options.mac.channels {
            Channels::SINGLE => usize::MAX,
            _ => 2,
        };
        let known = |hops: usize| match self.options.joining {
            Joining::Rpl => 0,
            _ => saturated(hops.min(reach)),
        };
        Pacing {
            pace_percent: options.pace_percent,
            step: options.pacing_step,
            hops_up: known(self.tree.depth(n)),
            hops_down: known(self.tree.height(n)),
        }
    }

    /// Link security of mesh node `n`, in memory that came back if there is some.
    fn security(
        self,
        n: usize,
        memory: Option<&'m mut Security<'m>>,
    ) -> Option<&'m mut Security<'m>> {
        let options = &self.options.link_security()?;
        let config = SecurityConfig {
            level: options.level,
            engine: Engine::Software,
            rotates_after: options.rotates_after.filter(|_| n == 0),
            ..match self.given {
                Some(given) => SecurityConfig::new(given.network, given.sequence),
                None => {
                    SecurityConfig::new(options.key_of(&self.options.nodes[n]), options.sequence)
                }
            }
        };
        // Lossless: nodes have 16-bit numbers.
        let before =
            |counter_store: &CounterStore| counter_store.reservation(plan::eui64(n as u16));
        let stored = self
            .stored
            .or_else(|| self.options.counter_store.as_ref().map(before));
        let config = match stored {
            Some(stored) => config.resume(stored),
            None => config,
        };
        let peers = match n {
            0 => self.options.nodes.len().max(PEERS),
            _ => PEERS,
        };
        let mut table = None;
        let place = match memory {
            Some(place) => {
                let before = std::mem::replace(place, Security::new(&config, &mut []));
                table = Some(before.into_memory());
                place
            }
            None => self.arena.alloc(Security::new(&config, &mut [])),
        };
        let table = reuse_or_fill(&mut table, self.arena, peers, || Peer::EMPTY);
        *place = match self.asks_for_key(n) {
            true => Security::locked(&config, table),
            false => Security::new(&config, table),
        };
        Some(place)
    }

    /// Whether mesh node `n` has to join before it has the key.
    fn asks_for_key(self, n: usize) -> bool {
        let security = self.options.security.as_ref();
        n > 0
            && !self.options.is_ble(n)
            && self.given.is_none()
            && security.is_some_and(|it| it.join_secret.is_some())
    }

    /// The part of mesh node `n` in joining, in memory that came back if there is some.
    fn join_proxy(
        self,
        n: usize,
        memory: Option<&'m mut JoinProxy>,
        rng: &mut Rng,
    ) -> Option<&'m mut JoinProxy> {
        self.options.security.as_ref()?.join_secret?;
        let role = match n {
            0 => JoinRole::Jrc,
            _ if self.asks_for_key(n) => JoinRole::Pledge,
            _ => JoinRole::Proxy(self.addr(0)),
        };
        let join_proxy = JoinProxy::new(role, rng);
        match memory {
            Some(place) => {
                *place = join_proxy;
                Some(place)
            }
            None => Some(self.arena.alloc(join_proxy)),
        }
    }

    /// The memory for packets to sleeping nodes, reused from an earlier start if possible.
    fn indirect(self, n: usize, memory: Option<&'m mut Indirect<'m>>) -> &'m mut Indirect<'m> {
        let options = &self.options.nodes[n];
        let arena = self.arena;
        let none = || Indirect::new(options.indirect, &mut [], &mut [], &mut []);
        let Some(place) = memory else {
            let count = self
                .tree
                .children(n)
                .clamp(CHILDREN_MIN, usize::from(u8::MAX));
            let children = arena.alloc_slice_fill_iter((0..count).map(|_| Child::EMPTY));
            let packets = arena.alloc_slice_fill_copy(options.indirect_len, 0);
            let outgoing = arena.alloc_slice_fill_copy(MESH_PACKET_LEN_MAX, 0);
            return arena.alloc(Indirect::new(options.indirect, children, packets, outgoing));
        };
        let (children, packets, outgoing) = std::mem::replace(place, none()).into_memory();
        *place = Indirect::new(options.indirect, children, packets, outgoing);
        place
    }

    fn mesh_memory(self, n: usize, returned: &mut NodeMemory<'m>) -> MeshMemory<'m> {
        let is_rpl = self.options.joining == Joining::Rpl;
        // In a mesh that forms itself the number of a mote's children is not known in advance.
        let neighbors = match is_rpl {
            true => NEIGHBORS_OF_ROUTER,
            false => self.tree.children(n) + NEIGHBORS_SPARE,
        };
        let packet_len_max = self.packet_len_max();
        let [bodies_len, queue_len] = self.buffer_lens(n);
        let NodeMemory {
            frames,
            neighbors: known,
            records,
            bodies,
            outgoing,
            queue,
            registrations,
            ..
        } = returned;
        let (arena, tables) = (self.arena, &self.options.nodes[n].tables);
        MeshMemory {
            frames: reuse_or_fill(frames, arena, tables.queue_frames, || FrameSlot::EMPTY),
            neighbors: reuse_or_fill(known, arena, neighbors, || Neighbor::EMPTY),
            records: reuse_or_fill(records, arena, tables.records, || Record::EMPTY),
            bodies: reuse_or_fill(bodies, arena, bodies_len, || 0),
            body_len: packet_len_max,
            outgoing: reuse_or_fill(outgoing, arena, packet_len_max, || 0),
            queue: reuse_or_fill(queue, arena, queue_len, || 0),
            registrations: reuse_or_fill(registrations, arena, neighbors, || Registration::EMPTY),
        }
    }

    /// The compressor of node `n`: the border router's has room for two connections of every
    /// mote.
    fn tcphc(
        self,
        n: usize,
        mode: tcphc::Mode,
        memory: Option<&'m mut Tcphc<'m>>,
        rng: &mut Rng,
    ) -> &'m mut Tcphc<'m> {
        let tables = &self.options.nodes[n].tables;
        let own = tables.connections;
        let (end, contexts) = match n {
            0 => (tcphc::End::Router, own + 2 * self.options.nodes.len()),
            _ => (tcphc::End::Mote, own),
        };
        let config = tcphc::Config {
            mode,
            end,
            quiet: self.quiet,
            learned: self.options.nodes[n].agrees_on_compression,
            frames_expire: self.options.frames_expire(),
            ..tcphc::Config::default()
        };
        let contexts = vec![tcphc::Context::EMPTY; contexts.max(tables.compressed)];
        let Some(memory) = memory else {
            let contexts = self.arena.alloc_slice_fill_iter(contexts);
            return self
                .arena
                .alloc(Tcphc::new(contexts, config, self.now, rng));
        };
        let before = std::mem::replace(memory, Tcphc::new(&mut [], config, self.now, rng));
        let contexts = reuse_or_alloc(&mut Some(before.into_memory()), self.arena, contexts);
        *memory = Tcphc::new(contexts, config, self.now, rng);
        memory
    }
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
    let mac = Mac::new(mac.clone(), radio, &mut [], &mut [], &mut rng);
    debug_assert!(mac.is_ok(), "it is the link's");
    let mut tags = rng.derive();
    while (tags.clone().next_u32() as u16) < TAGS_LAST {
        tags = tags.derive();
    }
    tags
}

/// The first random stream of motes that come later: no world has as many nodes and hosts.
const ABSENT_FROM: u32 = 1 << 24;

/// Tags from here on wrap soon enough for a run to see it.
const TAGS_LAST: u16 = u16::MAX - 64;

/// Neighbours that a node knows besides its children: its parent, and those it only hears.
const NEIGHBORS_SPARE: usize = 3;

/// Neighbours that a node of a mesh knows which forms itself.
const NEIGHBORS_OF_ROUTER: usize = 16;

/// Neighbours with the key that a mote knows; the border router knows all motes.
const PEERS: usize = 16;

/// Neighbours that sleep, of one node: more where more are its children from the start.
const CHILDREN_MIN: usize = 16;

/// Neighbours that a mote thinks of as its parent.
const CANDIDATES: usize = 8;

#[cfg(test)]
#[path = "../tests/ports.rs"]
mod tests;
