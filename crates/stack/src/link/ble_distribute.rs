//! Packets on their way to the peer that they are for.
//!
//! Place: between the queue of the link, or the queues of flows at a central that is a border
//! router, and the queue of each peer. A packet from outside the mesh waits in the queue of its
//! flow, and moves on when its peer's queue is short, because that queue is first in, first out.

use super::Ble;
use crate::ip::{Ip, Neighbour, PacketDrop};
use crate::time::Instant;
use crate::wire::ipv6::Header;

impl Ble<'_> {
    /// Brings packets to the peers that they are for; `out`: memory for one of them.
    pub(super) fn distribute(&mut self, ip: &mut Ip<'_>, now: Instant, out: &mut [u8]) {
        while let Some(front) = self.queue.front() {
            let len = self.queue.peek(out);
            self.queue.pop();
            let packet = out.get(..len).filter(|_| len == front.len);
            self.bring(packet.unwrap_or_default(), ip, now);
        }
        self.distribute_flows(ip, now, out);
    }

    /// Brings a packet to the peer that it is for, or to all.
    pub(super) fn bring(&mut self, packet: &[u8], ip: &mut Ip<'_>, now: Instant) {
        let header = Header::parse_start(packet).ok();
        let hop = header.and_then(|(header, _)| ip.next_hop(&header.dst, self.id));
        let to = hop.filter(|hop| hop.interface == self.id);
        match to.map(|hop| hop.neighbour) {
            Some(Neighbour::All) => {
                for at in 0..self.host.peers.len() {
                    self.wait(at, packet, ip, now);
                }
            }
            Some(to) => match self.find(to) {
                Some(at) => self.wait(at, packet, ip, now),
                None => ip.counters.count(PacketDrop::NoRoute),
            },
            None => ip.counters.count(PacketDrop::NoRoute),
        }
    }

    /// Lets a packet wait for the channel at `at`, if that is open.
    pub(super) fn wait(&mut self, at: usize, packet: &[u8], ip: &mut Ip<'_>, now: Instant) {
        let is_stalled = self.host.is_stalled(at, now);
        let peer = self.host.peers.get_mut(at);
        let Some(peer) = peer.filter(|peer| peer.open().is_some()) else {
            return;
        };
        if is_stalled || !peer.waiting.push(packet, 0) {
            ip.counters.count(PacketDrop::QueueFull);
        }
    }
}
