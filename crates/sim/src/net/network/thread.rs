//! A network of Thread: one router, in the place of the border router, and motes that are its
//! children.
//!
//! The mesh-local prefix is that of all meshes of the lab, and the interface identifiers of motes
//! are the usual ones, so that a mote's address is known beforehand; real networks draw them. The
//! router passes packets to and from that prefix, which border routers of Thread do not. Each child
//! has an address in the prefix that the network data offers besides.

use std::net::Ipv6Addr;

use motet::link::Mesh;
use motet::mac::{Pending, RadioCapabilities, Sleep};
use motet::random::Rng;
use motet::thread::{Child, ChildConfig, Dataset, Identity};

use super::build::Builder;
use super::wired::wired_node;
use super::{Network, NetworkOptions, SecurityOptions, ThreadOptions, WIRED};
use crate::air::profile::Profile;
use crate::apps::App;
use crate::net::plan;
use crate::net::world::{Port, Resident, World};
use crate::streams::{Purpose, stream};
use crate::thread::{Router, RouterOptions};

/// The radio of a Thread router: one that acknowledges by itself, and looks up for whom something
/// waits, as OpenThread asks of every radio.
const fn router_profile(profile: Profile) -> Profile {
    Profile {
        capabilities: RadioCapabilities {
            auto_ack: true,
            pending: Pending::PerNeighbour,
            ..profile.capabilities
        },
        ..profile
    }
}

impl NetworkOptions {
    /// Link security of the mesh: that of its Thread network, or of its key.
    pub(super) fn link_security(&self) -> Option<SecurityOptions> {
        let thread = self
            .thread
            .map(|it| SecurityOptions::new(it.network, it.sequence));
        thread.or(self.security)
    }

    /// The dataset of the network, where it is one of Thread.
    fn dataset(&self, prefix: Ipv6Addr) -> Option<Dataset> {
        let channel = self.nodes.first().map_or(26, |router| router.channel);
        Some(Dataset {
            channel,
            pan: plan::PAN,
            network: self.thread?.network,
            mesh_local_prefix: upper_half(prefix),
            timestamp: TIMESTAMP,
        })
    }

    /// Puts the router in the place of node 0, where the network is one of Thread.
    pub(super) fn set_thread(&self, world: &mut World<'_>, prefix: Ipv6Addr) {
        let (Some(thread), Some(node)) = (self.thread, self.nodes.first()) else {
            return;
        };
        let options = RouterOptions {
            network: thread.network,
            sequence: thread.sequence,
            pan: plan::PAN,
            extended: plan::eui64(0),
            mesh_local: upper_half(prefix),
            prefix: offered(prefix),
            timestamp: TIMESTAMP,
            children_max: thread.children_max,
            radio: router_profile(node.profile).capabilities,
        };
        let rng = stream(self.seed, 0, Purpose::Thread);
        let now = world.now();
        world.set_thread_router(0, Router::new(options, rng, now));
    }
}

impl<'m> Builder<'_, 'm> {
    /// The place of a Thread router: a radio and a wire, and no stack of its own between them.
    pub(super) fn thread_router(self, rng: Rng) -> Resident<'m> {
        Resident {
            node: wired_node(plan::ROUTER_WIRED, [0; 3], rng, self.arena),
            ports: vec![Port::Air(self.radio_port(0)), Port::Wire(WIRED)],
            app: App::None,
        }
    }

    /// The radio of mesh node `n`, if it is a Thread router.
    pub(super) fn profile_in_thread(self, n: usize) -> Option<Profile> {
        let is_router = n == 0 && self.options.thread.is_some();
        let router = self.options.nodes.get(n).filter(|_| is_router)?;
        Some(router_profile(router.profile))
    }

    /// The short address of mesh node `n`, if it is a Thread router.
    pub(super) fn short_of_router(self, n: usize) -> Option<u16> {
        let is_router = n == 0 && self.options.thread.is_some();
        is_router.then_some(crate::thread::OWN_SHORT)
    }

    /// Makes a mote a child, if the network is one of Thread.
    pub(super) fn join_thread(self, n: usize, radio: &mut Mesh<'m>) {
        let dataset = self.options.dataset(self.prefix).filter(|_| n > 0);
        let (Some(dataset), Some(thread)) = (dataset, self.options.thread) else {
            return;
        };
        let config = ChildConfig {
            dataset,
            identity: Identity {
                // Lossless: nodes have 16-bit numbers.
                extended: plan::eui64(n as u16),
                iid: self.options.link_addr(n).iid(),
            },
            timeout: thread.child_timeout,
            former: None,
        };
        let placed = radio.set_thread(self.arena.alloc(Child::new(&config)));
        debug_assert!(placed.is_ok(), "it has a key, and room for its neighbours");
        let sleep = self.options.nodes[n].sleep;
        radio.set_sleep(sleep.map(|sleep| Sleep {
            answer_timeout: sleep.answer_timeout,
            ..Sleep::thread(sleep.policy)
        }));
    }
}

impl Network<'_> {
    /// The dataset of the network in hexadecimal digits, as OpenThread prints one; none: it is not
    /// one of Thread.
    pub fn dataset_hex(&self) -> Option<String> {
        let dataset = self.options.dataset(self.prefix)?;
        let ThreadOptions { network, .. } = self.options.thread?;
        let mut bytes = vec![TIMESTAMP_TYPE, 8];
        bytes.extend(dataset.timestamp);
        bytes.extend([CHANNEL_TYPE, 3, 0, 0, dataset.channel]);
        bytes.extend([PREFIX_TYPE, 8]);
        bytes.extend(dataset.mesh_local_prefix);
        bytes.extend([KEY_TYPE, 16]);
        bytes.extend(network.as_bytes());
        bytes.extend([PAN_TYPE, 2]);
        bytes.extend(dataset.pan.to_be_bytes());
        Some(crate::keys::hex(&bytes))
    }
}

/// The first 64 bits of an address.
fn upper_half(prefix: Ipv6Addr) -> [u8; 8] {
    ((prefix.to_bits() >> 64) as u64).to_be_bytes()
}

/// The prefix in which motes make addresses: the one behind the mesh's own.
fn offered(prefix: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(prefix.to_bits() ^ (0x100 << 64))
}

/// A dataset of the first version: one second.
const TIMESTAMP: [u8; 8] = [0, 0, 0, 0, 0, 1, 0, 0];

/// Types of a dataset's TLVs (Thread 1.1 §8.10.1).
const CHANNEL_TYPE: u8 = 0;
const PAN_TYPE: u8 = 1;
const KEY_TYPE: u8 = 5;
const PREFIX_TYPE: u8 = 7;
const TIMESTAMP_TYPE: u8 = 14;
