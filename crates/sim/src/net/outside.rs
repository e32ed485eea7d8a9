//! One node over a radio of IEEE 802.15.4 that is not the lab's: a world of one node.
//!
//! Place: the caller has the radio. It carries out what [`World::take_order`] gives and reports by
//! [`World::hear`]; the node is node 0, and its time the caller's. A border router is the root of a
//! DODAG and has a wire to the caller besides, by [`World::inject_at`] and [`World::take_at`]; a
//! mote looks for one, and passes on the packets of others. A host knows no RPL: it registers with
//! the router that answers it. A mote that sleeps does the same, and the router keeps its packets.
//! A mote without the network's key asks a registrar for it by CoJP, the border router; one that
//! got its key so passes the requests of others on.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use motet::ip::{self, Ip};
use motet::join::JoinKey;
use motet::limits::{IPV6_MTU_MIN, MESH_PACKET_LEN_MAX};
use motet::link::{
    Advertised, Child, FlowEntry, FlowQueues, Indirect, IndirectConfig, Link, Mesh, MeshConfig,
    MeshMemory, MeshStorage, Pacing, Thinning,
};
use motet::lowpan::datagram::Record;
use motet::mac::security::{Engine, KEY_LEN, NetworkKey, Peer, Security, SecurityConfig};
use motet::mac::{self, Pending, Policy, RadioCapabilities, Sleep, Unfit};
use motet::node::{JoinProxy, JoinRole, Node};
use motet::random::Rng;
use motet::rpl::{self, Candidate, RplRole};
use motet::tcphc::{self, Tcphc};
use motet::thread::{Child as ThreadChild, ChildConfig};
use motet::time::{Duration, Instant};

use super::counter_store::CounterStore;
use super::network::{RADIO, Tables, WIRED, give_new_fragments, join_wire, new_tcp, new_wire};
use super::plan;
use super::world::{Conditions, Joiner, PledgeState, Port, RegistrarState, Resident, World};
use crate::Arena;
use crate::air::gains::Gains;
use crate::apps::App;
use crate::keys::JoinSecret;
use crate::streams::{Purpose, stream};

/// The settings of such a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the radio does by itself.
    pub radio: RadioCapabilities,
    /// PAN, EUI-64, channel, and what else the radio asks for.
    pub mac: mac::Config,
    /// What the node is.
    pub role: Role,
    /// The node's key, and where its frame counters are kept; none: frames are neither encrypted
    /// nor authenticated.
    pub key: Option<(Key, CounterStore)>,
    /// The Thread network of which the node is to be a child, a host or one that sleeps; its key is
    /// then the network's.
    pub thread: Option<ChildConfig>,
    /// Connections, listeners and handshakes.
    pub sockets: [usize; 3],
    /// Every random choice follows from it: another one at each start.
    pub seed: u64,
}

/// The key that a node begins with.
#[derive(Clone, Debug)]
pub enum Key {
    /// The network's, and the link key to begin with.
    Network(NetworkKey, u32),
    /// Its own, with which it asks for the network's.
    Join(JoinKey),
    /// The network's, as in [`Self::Network`], which the node gives to others, a border router's:
    /// their own keys follow from a secret, and these are left out.
    Registrar(NetworkKey, u32, JoinSecret, BTreeSet<[u8; 8]>),
}

impl Key {
    /// The key of the network and the link key to begin with, as far as they are known.
    const fn network(&self) -> Option<(NetworkKey, u32)> {
        match self {
            Self::Network(network, sequence) | Self::Registrar(network, sequence, ..) => {
                Some((*network, *sequence))
            }
            Self::Join(_) => None,
        }
    }
}

/// What such a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A mote, which takes part in RPL, passes on the packets of others, and keeps those for
    /// neighbours that sleep.
    Mote,
    /// A mote below a router without RPL: it registers with the first one that answers, and passes
    /// nothing on.
    Host,
    /// A mote that sleeps, and asks its parent for packets by this policy.
    Sleeper(Policy),
    /// The border router of a mesh.
    Router {
        /// The mesh's prefix, of 64 bits.
        prefix: Ipv6Addr,
        /// Motes that it has room for.
        motes: usize,
        /// Whether it offers motes to compress their TCP headers.
        offers_compression: bool,
    },
}

impl Role {
    const fn prefix(self) -> Option<Ipv6Addr> {
        match self {
            Self::Router { prefix, .. } => Some(prefix),
            Self::Mote | Self::Host | Self::Sleeper(_) => None,
        }
    }

    /// Whether the node compresses TCP headers where the other end agrees.
    const fn compresses(self) -> bool {
        !matches!(
            self,
            Self::Router {
                offers_compression: false,
                ..
            }
        )
    }

    const fn is_router(self) -> bool {
        matches!(self, Self::Router { .. })
    }

    /// Whether such a node sleeps.
    pub const fn sleeps(self) -> bool {
        matches!(self, Self::Sleeper(_))
    }
}

/// A world whose only node is one over a radio outside.
///
/// # Errors
/// The radio cannot do what the settings of its MAC ask for.
pub fn node<'m>(settings: &Settings, arena: &'m Arena) -> Result<World<'m>, Unfit> {
    let mut rng = stream(settings.seed, 0, Purpose::Stack);
    let (is_router, sleeps) = (settings.role.is_router(), settings.role.sleeps());
    let radio = Link::Mesh(mesh(settings, &mut rng, arena)?);
    let wire = is_router.then(|| new_wire(arena));
    let links: Vec<_> = std::iter::once(radio).chain(wire).collect();
    let links = arena.alloc_slice_fill_iter(links);
    let is_leaf = sleeps || settings.role == Role::Host;
    let leaves = if is_router || is_leaf { 0 } else { NEIGHBORS };
    let config = ip::Config {
        forwards: !is_leaf,
        ..ip::Config::default()
    };
    let mut ip = Ip::new(config, arena.alloc_slice_fill_with(leaves, |_| None));
    if is_router {
        join_wire(&mut ip);
    }
    let tcp = new_tcp(settings.sockets, &mut rng, arena);
    let role = settings.key.as_ref().and_then(|(key, _)| match key {
        Key::Network(..) => None,
        Key::Join(_) => Some(JoinRole::Pledge),
        Key::Registrar(..) => Some(JoinRole::Jrc),
    });
    let join_proxy = role.map(|role| arena.alloc(JoinProxy::new(role, &mut rng)));
    let mut node = Node::new(links, ip, tcp, rng, Instant::ORIGIN);
    if let Some(join_proxy) = join_proxy {
        node.set_join_proxy(join_proxy);
    }
    give_new_fragments(&mut node, arena);
    start_rpl(&mut node, settings.role, arena);
    let tap = is_router.then_some(Port::Tap(WIRED));
    let resident = Resident {
        node,
        ports: std::iter::once(Port::Outside(RADIO)).chain(tap).collect(),
        app: App::None,
    };
    let conditions = Conditions {
        seed: settings.seed,
        frame_loss: 0.0,
    };
    let mut world = World::new(vec![resident], &Gains::default(), None, conditions);
    if let Some((key, store)) = &settings.key {
        world.set_counter_store(0, store.clone(), settings.mac.extended);
        if let Some(joiner) = joiner(settings, key, store) {
            world.set_joiner(0, joiner);
        }
    }
    Ok(world)
}

/// The node's part in joining, if it has one.
fn joiner(settings: &Settings, key: &Key, store: &CounterStore) -> Option<Joiner> {
    let place = (settings.mac.extended, settings.mac.pan);
    match key {
        Key::Network(..) => None,
        Key::Join(key) => {
            let rng = stream(settings.seed, 0, Purpose::Joining);
            let pledge = PledgeState::new(*key, place, None, Some(store), rng);
            Some(Joiner::Pledge(Box::new(pledge)))
        }
        Key::Registrar(network, sequence, secret, revoked) => {
            let prefix = settings.role.prefix()?;
            let key = (*network, *sequence);
            let registrar = RegistrarState::new(*secret, key, prefix, revoked.clone());
            let registrar = registrar.keeping(store, place);
            Some(Joiner::Registrar(Box::new(registrar)))
        }
    }
}

/// Starts RPL, unless the node is without.
fn start_rpl<'m>(node: &mut Node<'m>, role: Role, arena: &'m Arena) {
    let (role, candidates, steps) = match role {
        Role::Host | Role::Sleeper(_) => return,
        Role::Mote => (RplRole::Router, CANDIDATES, 0),
        Role::Router { prefix, motes, .. } => (RplRole::Root(rpl::Root::new(prefix)), 0, motes),
    };
    let candidates = arena.alloc_slice_fill_with(candidates, |_| Candidate::EMPTY);
    let steps = arena.alloc_slice_fill_with(steps, |_| None);
    node.start_rpl(RADIO, role, candidates, steps, Instant::ORIGIN);
}

fn mesh<'m>(settings: &Settings, rng: &mut Rng, arena: &'m Arena) -> Result<Mesh<'m>, Unfit> {
    let (role, prefix) = (settings.role, settings.role.prefix());
    let config = MeshConfig {
        // RPL leads the others to whom to ask, and MLE those of Thread.
        solicits: settings.thread.is_none() && (role.sleeps() || role == Role::Host),
        registers: settings.thread.is_none(),
        advertised: prefix.map(|prefix| Advertised {
            prefix,
            lifetime: Advertised::LIFETIME,
        }),
        pacing: Pacing::MEASURED,
        ..MeshConfig::default()
    };
    let radio = (settings.mac.clone(), settings.radio);
    let mut mesh = Mesh::new(config, radio, memory(role, arena), rng)?;
    match role {
        Role::Sleeper(policy) => mesh.set_sleep(Some(Sleep {
            // Not every radio says so in the ACK of a data frame.
            rides: false,
            answer_timeout: ANSWER_TIMEOUT,
            ..match settings.thread {
                Some(_) => Sleep::thread(policy),
                None => Sleep::new(policy),
            }
        })),
        Role::Host => {}
        // Without a frame pending bit a neighbour that sleeps would not know when to listen.
        Role::Mote | Role::Router { .. } if settings.radio.pending == Pending::None => {}
        Role::Mote | Role::Router { .. } => mesh.serve_sleepers(indirect(arena)),
    }
    if let Some(prefix) = prefix {
        *mesh.contexts_mut() = plan::contexts_under(prefix);
        mesh.set_thinning(arena.alloc(Thinning::new()));
        let packets = arena.alloc_slice_fill_copy(QUEUE, 0);
        let flows = arena.alloc_slice_fill_with(FLOWS, |_| FlowEntry::EMPTY);
        mesh.set_flow_queues(arena.alloc(FlowQueues::new(packets, flows)));
    }
    if settings.thread.is_none() && role.compresses() {
        let connections = settings.sockets[0];
        mesh.set_tcphc(tcphc(role, connections, rng, arena));
    }
    if let Some((key, store)) = &settings.key {
        let known = key.network();
        let (network, sequence) = known.unwrap_or((NetworkKey::new([0; KEY_LEN]), 0));
        let config = SecurityConfig {
            engine: Engine::Software,
            ..SecurityConfig::new(network, sequence)
        };
        let config = config.resume(store.reservation(settings.mac.extended));
        let peers = match role {
            Role::Mote | Role::Host | Role::Sleeper(_) => NEIGHBORS,
            Role::Router { motes, .. } => motes.max(NEIGHBORS),
        };
        let peers = arena.alloc_slice_fill_with(peers, |_| Peer::EMPTY);
        let security = match known {
            Some(_) => Security::new(&config, peers),
            None => Security::locked(&config, peers),
        };
        mesh.set_security(arena.alloc(security));
    }
    if let Some(config) = &settings.thread {
        let placed = mesh.set_thread(arena.alloc(ThreadChild::new(config)));
        debug_assert!(placed.is_ok(), "it has a key, and room for its neighbours");
    }
    Ok(mesh)
}

/// The compressor of the node's headers: with room for each of its connections, and for two of
/// every mote of a border router's.
fn tcphc<'m>(role: Role, connections: usize, rng: &mut Rng, arena: &'m Arena) -> &'m mut Tcphc<'m> {
    let (end, contexts) = match role {
        Role::Router { motes, .. } => (tcphc::End::Router, connections + 2 * motes),
        Role::Mote | Role::Host | Role::Sleeper(_) => (tcphc::End::Mote, connections),
    };
    let config = tcphc::Config {
        end,
        // The router's packets wait for motes that sleep; a mote's do not.
        frames_expire: !role.is_router(),
        ..tcphc::Config::AGREED
    };
    let contexts = arena.alloc_slice_fill_with(contexts, |_| tcphc::Context::EMPTY);
    arena.alloc(Tcphc::new(contexts, config, Instant::ORIGIN, rng))
}

/// The memory of the node's link. A border router, which has this machine's, puts a packet of each
/// mote together at a time.
fn memory(role: Role, arena: &Arena) -> MeshMemory<'_> {
    let memory = arena.alloc(Storage::EMPTY).lend();
    let Role::Router { motes, .. } = role else {
        return memory;
    };
    let tables = Tables::border_router(motes);
    MeshMemory {
        records: arena.alloc_slice_fill_with(tables.records, |_| Record::EMPTY),
        bodies: arena.alloc_slice_fill_copy(tables.bodies * memory.body_len, 0),
        ..memory
    }
}

/// The place for packets to neighbours that sleep.
fn indirect<'m>(arena: &'m Arena) -> &'m mut Indirect<'m> {
    let children = arena.alloc_slice_fill_with(NEIGHBORS, |_| Child::EMPTY);
    let packets = arena.alloc_slice_fill_copy(INDIRECT, 0);
    let outgoing = arena.alloc_slice_fill_copy(MESH_PACKET_LEN_MAX, 0);
    let config = IndirectConfig::DEFAULT;
    arena.alloc(Indirect::new(config, children, packets, outgoing))
}

type Storage = MeshStorage<FRAMES, NEIGHBORS, RECORDS, BODIES, QUEUE, NEIGHBORS>;

const FRAMES: usize = 32;
/// Neighbours that the node knows, and those that register with it.
const NEIGHBORS: usize = 32;
/// Packets under way through it in fragments, and those being gathered.
const RECORDS: usize = 32;
const BODIES: usize = 8;
/// Bytes of whole packets that wait.
const QUEUE: usize = 16 * IPV6_MTU_MIN;
/// Flows with a queue of their own.
const FLOWS: usize = 64;
/// Bytes of packets that wait for neighbours that sleep.
const INDIRECT: usize = 16 * IPV6_MTU_MIN;
/// How long a mote that sleeps listens for a frame that its parent has promised: a request and its
/// answer cross the lines of two radios.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(250);
/// Neighbours that a mote thinks of as its parent.
const CANDIDATES: usize = 8;

#[cfg(test)]
#[path = "tests/outside.rs"]
mod tests;
