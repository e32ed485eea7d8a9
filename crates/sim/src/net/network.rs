//! Any mesh behind a border router, and the hosts beyond it.
//!
//! ```text
//! host 0 ==\                           /~~ mote 2
//! host 1 ===== border router 0 ~~~ relay 1 ~~~ mote 3
//! ```
//!
//! Purpose: builds a [`World`] from path gains and the settings of each node. The mesh is a tree:
//! each mote's parent is given, or found by [`crate::net::topology`]. Host routes downwards are
//! static; addresses, contexts and default routes come by router advertisement, or are there from
//! the start.
//! Left out: several border routers, routing protocols. The times at which nodes are switched off
//! and on, which are [`crate::net::outages`]'s.

mod attackers;
mod bluetooth;
mod build;
mod compression;
mod memory;
mod options;
mod tables;
mod thread;
mod wired;

use std::collections::{BTreeSet, HashSet};
use std::net::Ipv6Addr;

use motet::ip::InterfaceId;
use motet::link::{Link, Thinning};
use motet::mac::Mac;
use motet::mac::security::NetworkKey;
use motet::node::Node;
use motet::rpl::Rpl;
use motet::tcphc;
use motet::time::{Duration, Instant};

use self::build::Builder;
use self::memory::NodeMemory;
use crate::Arena;
use crate::air::End;
use crate::air::gains::Gains;
use crate::air::profile::Profile;
use crate::apps::Ends;
use crate::net::fairness::Fairness;
use crate::net::lacks;
use crate::net::plan;
use crate::net::run::{Next, run};
use crate::net::topology::{TopologyError, Tree};
use crate::net::wire::{Wire, WireHost};
use crate::net::world::{Conditions, Joiner, PledgeState, RegistrarState, World};
use crate::streams::{Purpose, stream};

pub(crate) use self::bluetooth::tcple_memory;
pub(crate) use self::memory::{give_new_fragments, new_tcp};
pub use self::options::{
    BleOptions, Cipher, HOST_DELAY, Host, HostOptions, Interference, Joining, NetworkOptions,
    NodeOptions, Parent, Part, SecurityOptions, ThreadOptions, star,
};
pub use self::tables::Tables;
pub(crate) use self::wired::{join_wire, new_wire, wired_node};

/// A network ready to run.
#[derive(Debug)]
pub struct Network<'m> {
    /// The world it is in: the mesh's nodes, then its virtual hosts, in their order.
    pub world: World<'m>,
    tree: Tree,
    prefix: Ipv6Addr,
    /// The options that the network was built from, without the gains.
    options: NetworkOptions,
    hosts: Vec<Option<usize>>,
    /// How often each mesh node has run and been switched off.
    lives: Vec<u64>,
    /// The memory that the stack of each mesh node was lent, while the node is off.
    returned: Vec<Option<NodeMemory<'m>>>,
}

/// The interface of every mesh node to the air.
pub const RADIO: InterfaceId = InterfaceId(0);

/// The border router's interface to its motes over Bluetooth LE, where it has a mesh too.
pub const BESIDE: InterfaceId = InterfaceId(2);

/// The border router's interface to the wire.
pub const WIRED: InterfaceId = InterfaceId(1);

/// A simulated host's only interface.
pub const HOST_WIRED: InterfaceId = InterfaceId(0);

/// As many as the link addresses of [`plan`] tell apart.
pub const NODES_MAX: usize = 1 << 16;

impl<'m> Network<'m> {
    /// Builds a network; all its nodes' memory comes from `arena`.
    ///
    /// # Errors
    /// [`TopologyError`]: no mesh can be built of these nodes.
    pub fn new(options: NetworkOptions, arena: &'m Arena) -> Result<Self, TopologyError> {
        Self::new_unless(options, arena, || false)
    }

    /// As [`Self::new`], which takes seconds for a large and dense mesh. Once `stops` is set, the
    /// remaining nodes get no neighbours, because the run is not wanted any more.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn new_unless(
        options: NetworkOptions,
        arena: &'m Arena,
        stops: impl Fn() -> bool,
    ) -> Result<Self, TopologyError> {
        Self::under(plan::MESH_PREFIX, options, arena, stops)
    }

    /// As [`Self::new_unless`], under another prefix of 64 bits than the plan's: of a mesh that
    /// outsiders are to reach beside others.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn under(
        prefix: Ipv6Addr,
        options: NetworkOptions,
        arena: &'m Arena,
        stops: impl Fn() -> bool,
    ) -> Result<Self, TopologyError> {
        let tree = options.tree()?;
        let builder = Builder::new(&options, &tree, prefix, arena);
        let mut residents = builder.mesh_nodes();
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
                addr: options.host_addr(number),
                delay: host.delay,
                ports: host.part.map(|part| part.ports),
                labels: host.labels,
            });
        }
        let loss = stream(options.seed, 0, Purpose::PacketLoss);
        let inner = stream(options.seed, 1, Purpose::PacketLoss);
        let wire = (!ends.is_empty()).then(|| {
            let mut wire = Wire::new(0, ends, options.packet_loss, loss);
            wire.set_inner_loss(options.inner_loss, inner);
            wire
        });
        let mut options = options;
        let gains = std::mem::take(&mut options.gains);
        let conditions = Conditions {
            seed: options.seed,
            frame_loss: options.frame_loss,
        };
        let mut world = World::new(residents, &Gains::default(), wire, conditions);
        let nodes = (0..gains.nodes()).take_while(|_| !stops());
        nodes.for_each(|node| world.connect(node, gains.listeners(node)));
        if let (Some(air), Some(ble)) = (world.ble_mut(), &options.ble) {
            bluetooth::furnish(air, ble, (options.ble_motes() + 1, options.seed));
        }
        options.set_fairness(&mut world, prefix);
        world.change_later(std::mem::take(&mut options.later));
        options.set_noise(&mut world);
        options.set_ciphers(&mut world);
        options.set_counter_store(&mut world);
        options.set_joiners(&mut world, prefix);
        options.set_thread(&mut world, prefix);
        options.set_attackers(&mut world, &gains, &tree);
        let nodes = options.nodes.len();
        let network = Self {
            world,
            tree,
            prefix,
            options,
            hosts,
            lives: vec![0; nodes],
            returned: std::iter::repeat_with(|| None).take(nodes).collect(),
        };
        Ok(network.leaving_out())
    }

    /// Switches off the nodes that never run, and those that are not there yet.
    fn leaving_out(mut self) -> Self {
        let left_out = self.options.left_out.clone();
        for node in left_out.union(&self.options.absent.clone()) {
            self.switch_off(*node);
        }
        self.world.leave_out(left_out);
        self
    }

    /// Lets a node of the world start anew, with all its tables empty; returns whether that was
    /// possible right now ([`World::may_reboot`]).
    pub fn reboot(&mut self, node: usize, arena: &'m Arena) -> bool {
        if !self.world.may_reboot(node) {
            return false;
        }
        // A device's random numbers are not those of before.
        self.options.seed = self.options.seed.wrapping_add(REBOOT_STEP);
        let builder = Builder {
            stored: self.world.stored(node),
            given: self.world.given(node),
            ..Builder::new(&self.options, &self.tree, self.prefix, arena)
        };
        let resident = match self.hosts.iter().position(|at| *at == Some(node)) {
            Some(number) => builder.host(number, node),
            None => builder.mesh_node(node, NodeMemory::default()),
        };
        self.world.reboot(node, resident.node);
        true
    }

    /// Switches a mesh node off, unless it is: its radio is silent and deaf, what its stack
    /// knew is lost, and what runs on it waits.
    pub fn switch_off(&mut self, node: usize) {
        if self.world.is_on(node) {
            self.lives[node] += u64::from(self.world.now() > Instant::ORIGIN);
            let stack = self.world.switch_off(node);
            self.returned[node] = Some(NodeMemory::of(stack));
        }
    }

    /// Switches a mesh node on, if it is off: a cold start with the same identity and settings and
    /// new random numbers; its applications begin anew. If it was switched off at the origin of
    /// time, this is its first start. It must have been off for
    /// [`OFF_MIN`](crate::air::radio::OFF_MIN). One that is left out stays off.
    pub fn switch_on(&mut self, node: usize, arena: &'m Arena) {
        if self.options.left_out.contains(&node) {
            return;
        }
        let Some(returned) = self.returned[node].take() else {
            return;
        };
        let lives = self.lives[node];
        let builder = Builder {
            seed: seed_of_life(self.options.seed, lives),
            now: self.world.now(),
            quiet: match lives {
                0 => Duration::ZERO,
                _ => tcphc::Config::DEFAULT.quiet,
            },
            stored: self.world.stored(node),
            given: self.world.given(node),
            ..Builder::new(&self.options, &self.tree, self.prefix, arena)
        };
        let resident = builder.mesh_node(node, returned);
        let channel = self.options.nodes[node].channel;
        self.world.switch_on(node, resident.node, channel);
    }

    /// Lets the border router take the link key of this sequence, if it is later than its own; the
    /// motes follow by what they then hear.
    pub fn rotate_key(&mut self, sequence: u32) {
        self.world.with_node(0, |node, now| {
            if let Some(Link::Mesh(mesh)) = node.link_mut(RADIO) {
                mesh.rotate_key(sequence, now);
            }
        });
        self.world
            .with_thread_router(0, |router, _| router.rotate_key(sequence));
    }

    /// The network key that the mesh began with, if it has one.
    pub fn network_key(&self) -> Option<NetworkKey> {
        self.options.security.map(|security| security.network)
    }

    /// Lets the border router announce another network key to all motes that have joined by `CoJP`
    /// and are not revoked, and then change to that key. Its link keys begin with the given
    /// sequence, or later. Returns `false` if there is no registrar: motes that have their key from
    /// the start cannot get another one.
    pub fn replace_key(
        &mut self,
        key: (NetworkKey, u32),
        is_revoked: impl Fn([u8; 8]) -> bool,
    ) -> bool {
        // Lossless: nodes have 16-bit numbers.
        let all = (1..self.mesh_nodes()).map(|n| plan::eui64(n as u16));
        self.world
            .replace_key(key, all.filter(|eui64| is_revoked(*eui64)))
    }

    /// Whether a mote is off from the beginning, until somebody switches it on.
    pub fn is_absent(&self, node: usize) -> bool {
        self.options.absent.contains(&node)
    }

    /// How many nodes the mesh has, the border router included.
    pub fn mesh_nodes(&self) -> usize {
        self.options.nodes.len()
    }

    /// The seed of every random choice.
    pub fn seed(&self) -> u64 {
        self.options.seed
    }

    /// The parent of each node.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The name of a mesh node.
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
            Some(number) => self.options.host_addr(number),
            None => self.options.addr(self.prefix, node),
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

    /// Radio and driver of a mesh node.
    pub fn profile(&self, node: usize) -> Option<&Profile> {
        Some(&self.options.nodes.get(node)?.profile)
    }

    /// How many hosts are beyond the wire.
    pub const fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Whether every mote has an address and a route.
    pub fn has_joined(&self) -> bool {
        has_joined(&self.world, self.mesh_nodes())
    }

    /// The MACs of the border router and all motes, in order.
    pub fn macs(&self) -> impl Iterator<Item = &Mac<'m>> {
        (0..self.mesh_nodes()).filter_map(|n| self.mac(n))
    }

    /// ACKs whose place a newer one has taken at the border router since it was switched on.
    pub fn acks_thinned(&self) -> u64 {
        match self.world.node(0).link(RADIO) {
            Some(Link::Mesh(mesh)) => mesh.thinning().map_or(0, Thinning::replaced).into(),
            _ => 0,
        }
    }

    /// The MAC of a mesh node.
    pub fn mac(&self, node: usize) -> Option<&Mac<'m>> {
        mac(&self.world, node)
    }
}

impl NetworkOptions {
    /// Puts the policy for packets of the mesh's motes into the border router.
    fn set_fairness(&self, world: &mut World<'_>, prefix: Ipv6Addr) {
        let beside = self.is_mixed().then(|| plan::prefix_over_ble(prefix));
        world.set_fairness(self.fairness.map(|it| Fairness::new(it, beside)));
    }

    /// Lets nodes hear what other systems do.
    fn set_noise(&self, world: &mut World<'_>) {
        for node in 0..self.nodes.len() {
            let interference = self.interference.as_ref();
            let noise = interference.and_then(|all| all.at(node, self.seed));
            world.set_noise(node, noise);
        }
    }

    /// Lets ciphers take their time.
    fn set_ciphers(&self, world: &mut World<'_>) {
        let Some(security) = self.link_security() else {
            return;
        };
        for (n, node) in self.nodes.iter().enumerate() {
            world.set_cipher(n, security.cipher.call(&node.profile));
        }
    }

    /// Lets the counters of mesh nodes outlive the run, where something keeps them.
    fn set_counter_store(&self, world: &mut World<'_>) {
        let counter_store = self
            .counter_store
            .iter()
            .filter(|_| self.security.is_some());
        for counter_store in counter_store {
            // Lossless: nodes have 16-bit numbers.
            for (n, eui64) in (0..self.nodes.len()).map(|n| (n, plan::eui64(n as u16))) {
                world.set_counter_store(n, counter_store.clone(), eui64);
            }
        }
    }

    /// Lets motes join, and the border router let them in.
    fn set_joiners(&self, world: &mut World<'_>, prefix: Ipv6Addr) {
        let Some((security, secret)) = self.security.and_then(|it| Some((it, it.join_secret?)))
        else {
            return;
        };
        // Lossless: nodes have 16-bit numbers.
        let eui64 = |n: usize| plan::eui64(n as u16);
        let revoked = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.is_revoked);
        let revoked = revoked.map(|(n, _)| eui64(n)).collect();
        let counter_store = self.counter_store.as_ref();
        let state = RegistrarState::new(
            secret,
            (security.network, security.sequence),
            prefix,
            revoked,
        );
        let devices = (1..self.nodes.len()).map(eui64);
        let state = state.with_counter_store(counter_store, eui64(0), devices);
        world.set_joiner(0, Joiner::Registrar(Box::new(state)));
        let registrar = plan::addr_of(prefix, self.link_addr(0));
        for n in (1..self.nodes.len()).filter(|n| !self.is_ble(*n)) {
            let key = secret.key(eui64(n));
            let rng = stream(self.seed, n as u32, Purpose::Joining);
            let place = (eui64(n), plan::PAN);
            let state = PledgeState::new(key, place, Some(registrar), counter_store, rng);
            world.set_joiner(n, Joiner::Pledge(Box::new(state)));
        }
    }
}

/// As [`Network::join`], for the first `nodes` nodes of `world`.
pub fn join(world: &mut World<'_>, nodes: usize, limit: Duration) -> bool {
    let until = world.now() + limit;
    run(world, until, |world| match has_joined(world, nodes) {
        true => Next::Over,
        false => Next::Event,
    })
}

/// Runs until every mote among the first `nodes` nodes of `world` has joined at least once, or
/// until `limit`; returns whether all have. It can be called again to continue.
pub fn arrive(
    world: &mut World<'_>,
    arrivals: &mut Arrivals,
    nodes: usize,
    limit: Duration,
) -> bool {
    let until = world.now() + limit;
    run(world, until, |world| match arrivals.look(world, nodes) {
        true => Next::Over,
        false => Next::Event,
    })
}

/// As [`Network::has_joined`], for the first `nodes` nodes of `world`.
pub(crate) fn has_joined(world: &World<'_>, nodes: usize) -> bool {
    // The farthest first: they are the last to join.
    (1..nodes).rev().all(|mote| is_in(world, mote))
}

/// Whether a mote has an address and a route, and where it routes by RPL, a way to it; or is left
/// out, and nobody waits for it.
fn is_in(world: &World<'_>, mote: usize) -> bool {
    if world.is_left_out(mote) {
        return true;
    }
    let node = world.node(mote);
    let is_reachable = node.rpl().is_none_or(Rpl::is_reachable);
    is_reachable && node.global_address().is_some() && node.ip().default_route().is_some()
}

/// Whether the border router of a mesh that routes by RPL has a way down to each of the first
/// `nodes` nodes of `world` with an IEEE 802.15.4 radio, left-out ones aside. A leaf without RPL
/// has its address before its parent has told the root of it.
pub fn has_ways_down(world: &World<'_>, nodes: usize) -> bool {
    let root = world.node(0);
    let is_known = |mote: usize| {
        // Lossless: nodes have 16-bit numbers.
        let iid = plan::link_addr(mote as u16).iid();
        root.routes_down().any(|step| step.child == iid)
    };
    let is_aside = |mote: usize| world.is_left_out(mote) || mac(world, mote).is_none();
    root.rpl().is_none() || (1..nodes).all(|mote| is_aside(mote) || is_known(mote))
}

/// Which motes have ever joined. Without this memory a large mesh would hardly ever count as
/// complete: at most moments some mote is changing its parent.
#[derive(Debug, Default)]
pub struct Arrivals(HashSet<usize>);

impl Arrivals {
    /// As if these motes had joined: nobody waits for them.
    pub fn without(absent: &BTreeSet<usize>) -> Self {
        Self(absent.iter().copied().collect())
    }

    /// Notes which of the first `nodes` nodes of a world have joined. Returns whether every mote
    /// has joined at some time.
    pub fn look(&mut self, world: &World<'_>, nodes: usize) -> bool {
        let all = nodes.saturating_sub(1);
        if self.0.len() < all {
            let new = self.missing(nodes).filter(|mote| is_in(world, *mote));
            let new: Vec<usize> = new.collect();
            self.0.extend(new);
        }
        self.0.len() == all
    }

    /// The motes among the first `nodes` nodes that have not joined.
    pub fn missing(&self, nodes: usize) -> impl Iterator<Item = usize> {
        (1..nodes).filter(|mote| !self.0.contains(mote))
    }

    /// Motes that have not joined, and what each one lacks at this moment.
    pub fn describe_missing(&self, world: &World<'_>, nodes: usize) -> String {
        lacks::describe(world, self.missing(nodes))
    }
}

/// The MAC of a node of `world`, if it has a radio.
pub(crate) fn mac<'w, 'm>(world: &'w World<'m>, node: usize) -> Option<&'w Mac<'m>> {
    mac_of(world.node(node))
}

/// Whether a node can compress headers of TCP, of whatever connections.
pub(crate) fn compresses(world: &World<'_>, node: usize) -> bool {
    match world.node(node).link(RADIO) {
        Some(Link::Mesh(mesh)) => mesh.tcphc().is_some(),
        _ => false,
    }
}

/// The MAC of a stack, if it has a radio.
pub(crate) fn mac_of<'n, 'm>(node: &'n Node<'m>) -> Option<&'n Mac<'m>> {
    match node.link(RADIO) {
        Some(Link::Mesh(radio)) => Some(radio.mac()),
        _ => None,
    }
}

/// The seed of the randomness of a node that has run `lives` times before.
fn seed_of_life(seed: u64, lives: u64) -> u64 {
    seed.wrapping_add(lives.wrapping_mul(REBOOT_STEP))
}

/// The difference between the seed of a network and the one after a reboot; odd, so that none
/// repeats.
const REBOOT_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
#[path = "tests/network.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/bluetooth.rs"]
mod ble_tests;

#[cfg(test)]
#[path = "tests/sleep.rs"]
mod sleep_tests;

#[cfg(test)]
#[path = "tests/transfer.rs"]
mod transfer;

#[cfg(test)]
#[path = "tests/contention.rs"]
mod contention_tests;

#[cfg(test)]
#[path = "tests/disturbed.rs"]
mod disturbed_tests;

#[cfg(test)]
#[path = "tests/neighbours.rs"]
mod neighbour_tests;
