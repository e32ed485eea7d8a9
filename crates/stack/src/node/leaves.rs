//! Leaves below this node: neighbours without RPL that have registered, and for which it speaks.
//!
//! Place: between the link's table of registrations and RPL (RFC 9010). A router has a route to
//! each of its leaves and tells the root of it; a root enters the step itself. Left out: duplicates
//! beyond this router, since identifiers derive from link addresses. Sources: RFC 9010 §9.2, RFC
//! 9008 §7.

use core::net::Ipv6Addr;

use super::routing::State;
use super::{Node, mesh_mut};
use crate::ip::neighbor_cache::{Change, NeighborCache};
use crate::ip::{self, Ingress, Neighbour, NextHop, PacketDrop, Prefix, Route};
#[cfg(feature = "root")]
use crate::ip::{InterfaceId, Step, StepError};
#[cfg(feature = "root")]
use crate::link::Link;
use crate::rpl::{Leaf, LeafOutcome};
use crate::time::{Duration, Instant};
use crate::wire::ipv6::Header;

impl<'m> Node<'m> {
    /// Reads the changes of registered leaves, and advertises the next one to the root.
    pub(super) fn poll_leaves(&mut self, now: Instant) {
        while let Some(change) = self
            .neighbor_cache_mut()
            .and_then(NeighborCache::poll_change)
        {
            if change.is_routed {
                self.on_leaf(&change, now);
            }
        }
        let Some(routing) = self.routing.as_ref() else {
            return;
        };
        let is_due = routing.leaves_at.is_some_and(|at| now >= at);
        if !is_due || routing.is_root() || !routing.rpl.can_advertise_leaf() {
            return;
        }
        let due = self.neighbor_cache_mut().and_then(NeighborCache::next_due);
        let Some(routing) = self.routing.as_mut() else {
            return;
        };
        routing.leaves_at = None;
        // Only a registration with a transaction ID is advertised in RPL.
        if let Some((change, sequence)) = due.and_then(|change| Some((change, change.tid?))) {
            let leaf = Leaf {
                iid: change.iid,
                sequence,
                lifetime_min: change.lifetime_min,
            };
            routing.rpl.advertise_leaf(leaf, now);
        }
    }

    /// A leaf has come, was renewed or has gone.
    fn on_leaf(&mut self, change: &Change, now: Instant) {
        let Self { routing, ip, .. } = self;
        let Some(routing) = routing.as_mut() else {
            return;
        };
        let dodag = routing.rpl.dodag().map(|dodag| dodag.instance);
        if change.instance.is_some() && change.instance != dodag {
            return;
        }
        #[cfg(feature = "root")]
        if routing.is_root() {
            let minutes = u64::from(change.lifetime_min);
            let step = Step {
                child: change.iid,
                parent: ip.iid_on(routing.interface),
                sequence: change.tid.unwrap_or_default(),
                is_leaf: true,
                is_lost: false,
                losses: 0,
                via: ip.iid_on(routing.interface),
                until: now + Duration::from_secs(60 * minutes),
            };
            let mesh = mesh_mut(self.links, routing.interface);
            match (ip.rpl_mut().set_step(step, now), mesh) {
                (Err(StepError::Full), _) => ip.counters.count(PacketDrop::NoRoute),
                (Err(StepError::Old), Some(mesh)) => mesh.end_registration(change.iid, ip),
                _ => {}
            }
            return;
        }
        let Some(addr) = routing.leaf_address(change.iid) else {
            return;
        };
        let prefix = Prefix::host(addr);
        let next_hop = NextHop {
            interface: routing.interface,
            neighbour: Neighbour::One(change.iid),
        };
        match change.lifetime_min {
            0 => ip.remove_route(prefix),
            _ if ip.add_route(Route { prefix, next_hop }) => {}
            // A packet for the leaf would be sent back up, and is dropped there as a loop.
            _ => ip.counters.count(PacketDrop::NoRoute),
        }
        routing.leaves_at.get_or_insert(now);
    }

    /// A packet was passed on. Where its sender takes no part in RPL and has not registered, it
    /// hears of this router: its answers find no way back otherwise.
    pub(super) fn remind_leaf(&mut self, header: &Header, ingress: &Ingress, now: Instant) {
        let Self {
            routing, ip, links, ..
        } = self;
        let Some(routing) = routing.as_ref() else {
            return;
        };
        let from = ip::iid_of(&header.src);
        let is_leafs = routing.interface == ingress.interface
            && ingress.option.is_none()
            && ingress.from == Neighbour::One(from)
            && routing.rpl.parent() != Some(from);
        if let Some(mesh) = mesh_mut(links, ingress.interface)
            && is_leafs
        {
            mesh.remind(from, ip, now);
        }
    }

    /// The root has answered about a leaf, or has not.
    pub(super) fn on_leaf_told(&mut self, leaf: &Leaf, outcome: LeafOutcome, now: Instant) {
        if let Some(neighbor_cache) = self.neighbor_cache_mut() {
            match outcome {
                LeafOutcome::Failed => {}
                LeafOutcome::Entered | LeafOutcome::Moved => {
                    neighbor_cache.settle(leaf.iid, (leaf.sequence, leaf.lifetime_min));
                }
            }
        }
        let Self {
            routing, ip, links, ..
        } = self;
        let Some(routing) = routing.as_mut() else {
            return;
        };
        let pause = match outcome {
            LeafOutcome::Entered | LeafOutcome::Moved => PAUSE,
            LeafOutcome::Failed => PAUSE_FAILED,
        };
        routing.leaves_at = Some(now + pause);
        if outcome != LeafOutcome::Moved || leaf.lifetime_min == 0 {
            return;
        }
        if let Some(addr) = routing.leaf_address(leaf.iid) {
            ip.remove_route(Prefix::host(addr));
        }
        if let Some(mesh) = mesh_mut(links, routing.interface) {
            mesh.end_registration(leaf.iid, ip);
        }
    }

    /// The root is to hear of all leaves again.
    pub(super) fn tell_all_leaves(&mut self, now: Instant) {
        if let Some(neighbor_cache) = self.neighbor_cache_mut() {
            neighbor_cache.tell_all();
        }
        if let Some(routing) = self.routing.as_mut() {
            routing.leaves_at = Some(now);
        }
    }

    /// The registrations on the link that RPL has.
    fn neighbor_cache_mut(&mut self) -> Option<&mut NeighborCache<'m>> {
        let interface = self.routing.as_ref()?.interface;
        Some(mesh_mut(self.links, interface)?.neighbor_cache_mut())
    }
}

/// Ends the registration of a leaf here if another router has told the root of a later one.
#[cfg(feature = "root")]
pub(super) fn forget(links: &mut [Link<'_>], interface: InterfaceId, leaf: &Step) {
    if let Some(mesh) = mesh_mut(links, interface) {
        let neighbor_cache = mesh.neighbor_cache_mut();
        neighbor_cache.forget_before(leaf.child, leaf.sequence);
    }
}

impl State<'_> {
    /// The address of a leaf, in the prefix of the DODAG.
    fn leaf_address(&self, iid: ip::Iid) -> Option<Ipv6Addr> {
        let own = self.rpl.address()?;
        Some(ip::with_iid(&own, iid))
    }
}

/// Time between two leaves that the root hears of. A leaf may register several times a second, and
/// each time costs a message and its answer on every hop of the way.
const PAUSE: Duration = Duration::from_millis(500);

/// After one that it did not hear of, or has no room for.
const PAUSE_FAILED: Duration = Duration::from_secs(30);
