//! A point-to-point link that carries whole IPv6 packets.

use super::Ask;
use super::arrival::{Arrival, Hop, Pulled, Refusal, TcpEgress};
use crate::ip::{self, Ingress, InterfaceId, Ip, Neighbour};
use crate::limits::IPV6_MTU_MIN;
use crate::storage::packet_queue::PacketQueue;
use crate::tcphc;

/// A cable: a link that carries whole packets. The driver decides on the medium (TUN, Ethernet, a
/// serial line with its own framing).
#[derive(Debug)]
pub struct Cable<'m> {
    id: InterfaceId,
    queue: PacketQueue<'m>,
    mtu: u16,
    is_full: bool,
}

impl<'m> Cable<'m> {
    /// A cable that carries packets of up to `mtu` bytes, at least [`IPV6_MTU_MIN`].
    /// `queue`: where packets wait, TCP's aside; each takes six bytes beside its own.
    pub fn new(queue: &'m mut [u8], mtu: u16) -> Self {
        Self {
            id: InterfaceId(0),
            queue: PacketQueue::new(queue),
            mtu: mtu.max(IPV6_MTU_MIN as u16),
            is_full: false,
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> &'m mut [u8] {
        self.queue.into_memory()
    }

    /// Says whether the driver has no room for a packet. Until it has, packets and segments wait
    /// here, where segments are not made yet; TCP's deadlines are met all the same, so that a
    /// driver which never has room again ends connections by their time limits.
    pub const fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// The longest packet it carries, bytes.
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }
}

impl<'m> Cable<'m> {
    pub(super) fn start(&mut self, id: InterfaceId) {
        self.id = id;
    }

    pub(super) fn on_packet<'s>(&self, packet: &'s [u8]) -> Arrival<'m, 's> {
        Arrival::Given(packet, self.hop())
    }

    /// The hop that every packet comes over.
    pub(crate) const fn hop(&self) -> Hop {
        Hop {
            ingress: Ingress::whole(self.id, Neighbour::Only),
            egress: TcpEgress::Begins(tcphc::Origin::Outside),
            is_routed: false,
        }
    }

    /// The queue of whole packets for the cable.
    pub(super) const fn waiting(&self) -> &PacketQueue<'m> {
        &self.queue
    }

    pub(super) fn queue(&mut self, parts: [&[u8]; 2]) -> Result<(), Refusal> {
        let mtu = u32::from(self.mtu);
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if len > mtu as usize {
            return Err(Refusal::TooBig { mtu });
        }
        let queued = self.queue.push_parts(parts, 0);
        queued.then_some(()).ok_or(Refusal::Full)
    }

    /// Writes the next packet: one that waits, else one of this node's TCP. Returns its length.
    pub(super) fn poll_packet(
        &mut self,
        ip: &mut Ip<'_>,
        mut pull: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        out: &mut [u8],
    ) -> Option<usize> {
        if self.is_full {
            return pull(ip, Ask::Nothing, out).map(|pulled| pulled.len);
        }
        while let Some(front) = self.queue.front() {
            let len = self.queue.peek(out);
            self.queue.pop();
            if len == front.len {
                return Some(len);
            }
            // Rather none than half a packet, where `out` is shorter than the link's MTU.
            ip.counters.count(ip::PacketDrop::QueueFull);
        }
        pull(ip, Ask::Any, out).map(|pulled| pulled.len)
    }
}
