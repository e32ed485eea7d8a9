//! A router and the packets that it holds, for callers whose packets come as bytes.
//!
//! Left out: packets that the kernel keeps. Their numbers are enough for a [`Router`].

use std::collections::BTreeMap;

use motet::time::Instant;

use crate::config::{Config, Policy};
use crate::router::{Decision, Packet, PacketId, Router};
use crate::segment::Direction;
use crate::status::Status;

/// A router with the packets that it holds.
///
/// Memory: the gate keeps whole the packets that the router holds, and no others. These are at most
/// [`Config::held_max`] and [`Config::strangers_max`] together, and the one that was offered last,
/// if the caller calls [`Self::poll`] and [`Self::poll_dropped`] until they give nothing after each
/// [`Self::offer`]. Each takes its own length. The router's flows and the copies of the policy
/// `relay` have their own limits.
#[derive(Debug)]
pub struct Gate {
    router: Router,
    kept: BTreeMap<PacketId, (Direction, Box<[u8]>)>,
    packets: u64,
}

/// A packet that was held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptPacket {
    /// Its number, in the order in which packets came.
    pub id: PacketId,
    /// Its direction.
    pub direction: Direction,
    /// All of its bytes.
    pub bytes: Box<[u8]>,
}

impl Gate {
    /// A gate that has seen nothing.
    pub fn new(config: Config) -> Self {
        Self {
            router: Router::new(config),
            kept: BTreeMap::new(),
            packets: 0,
        }
    }

    /// The router that decides.
    pub const fn router(&self) -> &Router {
        &self.router
    }

    /// All that is known of flows and motes: see [`Router::status`].
    pub fn status(&mut self, now: Instant) -> Status {
        self.router.status(now)
    }

    /// Another policy from now on: see [`Router::set_policy`].
    pub fn set_policy(&mut self, policy: Policy, now: Instant) {
        self.router.set_policy(policy, now);
    }

    /// Lets all kept packets go with the next calls of [`Self::poll`], and keeps none from now on:
    /// see [`Router::release_all`].
    pub fn release_all(&mut self) {
        self.router.release_all();
    }

    /// A packet has come: whether it goes on now, or is kept; and its number.
    pub fn offer(
        &mut self,
        direction: Direction,
        packet: &[u8],
        now: Instant,
    ) -> (PacketId, Decision) {
        let id = PacketId(self.packets);
        self.packets += 1;
        let shown = Packet {
            id,
            direction,
            headers: packet,
            len: packet.len(),
        };
        let decision = self.router.on_packet(&shown, now);
        if decision == Decision::Hold {
            self.kept.insert(id, (direction, packet.into()));
        }
        (id, decision)
    }

    /// The next copy that goes into the mesh, before what [`Self::poll`] gives.
    pub fn poll_copy(&mut self, now: Instant) -> Option<&[u8]> {
        self.router.poll_copy(now)
    }

    /// The next kept packet that goes on now.
    pub fn poll(&mut self, now: Instant) -> Option<KeptPacket> {
        while let Some(id) = self.router.poll(now) {
            if let Some(packet) = self.take(id) {
                return Some(packet);
            }
        }
        None
    }

    /// The next kept packet that goes nowhere.
    pub fn poll_dropped(&mut self) -> Option<KeptPacket> {
        while let Some(id) = self.router.poll_dropped() {
            if let Some(packet) = self.take(id) {
                return Some(packet);
            }
        }
        None
    }

    /// The packets that are kept, in the order in which they came.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.kept.values().map(|(_, bytes)| &**bytes)
    }

    fn take(&mut self, id: PacketId) -> Option<KeptPacket> {
        let (direction, bytes) = self.kept.remove(&id)?;
        Some(KeptPacket {
            id,
            direction,
            bytes,
        })
    }
}
