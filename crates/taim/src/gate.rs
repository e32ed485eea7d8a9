//! A router and the packets that it holds, for callers whose packets come as bytes.
//!
//! Left out: whose packets the kernel keeps needs a [`Router`] alone.

use std::collections::BTreeMap;

use motet::time::Instant;

use crate::config::Config;
use crate::router::{Decision, Packet, PacketId, Router};
use crate::segment::Direction;

/// A router with the packets that it holds.
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

    /// The same, to ask for its status or to let all go.
    pub const fn router_mut(&mut self) -> &mut Router {
        &mut self.router
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
