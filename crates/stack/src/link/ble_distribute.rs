//! Packets on their way to the peer that they are for.
//!
//! Place: between the queue of the link, or the queues of flows at a central that is a border
//! router, and the queue of each peer. A packet from outside the mesh waits in the queue of its
//! flow, and moves on when its peer's queue is short, because that queue is first in, first out.

use super::{Ble, find};
use crate::ble::Host;
use crate::ip::{Ip, Neighbour, PacketDrop};
use crate::time::Instant;
use crate::wire::ipv6::{HEADER_LEN, Header};

impl Ble<'_> {
    /// Brings the packets of the link's queue to the peers that they are for.
    pub(super) fn distribute(&mut self, ip: &mut Ip<'_>, now: Instant) {
        while !self.queue.is_empty() {
            let mut header = [0; HEADER_LEN];
            self.queue.peek(&mut header);
            let to = self.neighbour_of(&header, ip);
            bring(&mut self.host, to, self.queue.front_parts(), ip, now);
            self.queue.pop();
        }
    }

    /// The neighbour that a packet is for.
    pub(super) fn neighbour_of(&self, packet: &[u8], ip: &Ip<'_>) -> Option<Neighbour> {
        let (header, _) = Header::parse_start(packet).ok()?;
        let hop = ip.next_hop(&header.dst, self.id)?;
        (hop.interface == self.id).then_some(hop.neighbour)
    }
}

/// Brings a packet, in two pieces, to the peer that is this neighbour, or to all.
pub(super) fn bring(
    host: &mut Host<'_>,
    to: Option<Neighbour>,
    packet: [&[u8]; 2],
    ip: &mut Ip<'_>,
    now: Instant,
) {
    if to == Some(Neighbour::All) {
        for at in 0..host.peers.len() {
            wait(host, at, packet, ip, now);
        }
        return;
    }
    match to.and_then(|to| find(host, to)) {
        Some(at) => wait(host, at, packet, ip, now),
        None => ip.counters.count(PacketDrop::NoRoute),
    }
}

/// Lets a packet wait for the channel at `at`, if that is open.
pub(super) fn wait(
    host: &mut Host<'_>,
    at: usize,
    packet: [&[u8]; 2],
    ip: &mut Ip<'_>,
    now: Instant,
) {
    let is_stalled = host.is_stalled(at, now);
    let peer = host.peers.get_mut(at);
    let Some(peer) = peer.filter(|peer| peer.open().is_some()) else {
        return;
    };
    if is_stalled || !peer.waiting.push_parts(packet, 0) {
        ip.counters.count(PacketDrop::QueueFull);
    }
}
