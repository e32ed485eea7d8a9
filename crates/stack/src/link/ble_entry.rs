//! Packets from outside the link: they wait flow by flow, at a central that is a border router.
//!
//! Place: before the queue of each peer, beside `distribute`, which brings them there.

use super::Ble;
use super::distribute::bring;
use crate::ble::MTU;
use crate::ip::{Ip, Neighbour};
use crate::link::FlowQueues;
use crate::link::arrival::{Hop, Refusal};
use crate::time::{Deadlines, Instant};
use crate::wire::LinkAddr;
use crate::wire::ipv6::Header;

impl<'m> Ble<'m> {
    /// Gives flows from outside queues of their own from now on. Of use at a border router.
    pub fn set_flow_queues(&mut self, flows: &'m mut FlowQueues<'m>) {
        self.flows = Some(flows);
    }

    /// Gives back the queues of flows; packets that wait in them are lost.
    pub fn take_flow_queues(&mut self) -> Option<&'m mut FlowQueues<'m>> {
        self.flows.take()
    }

    /// The queues of flows, where there are any.
    pub fn flow_queues(&self) -> Option<&FlowQueues<'m>> {
        self.flows.as_deref()
    }

    /// Queues a packet that is passed on, in two pieces.
    pub(in crate::link) fn forward(
        &mut self,
        parts: [&[u8]; 2],
        hop: &Hop,
        ip: &mut Ip<'_>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let comes_from_outside = hop.ingress.interface != self.id;
        match self.flows.as_deref_mut() {
            Some(flows) if comes_from_outside && len <= usize::from(MTU) => {
                flows.push(parts, 0, &mut ip.counters, now)
            }
            _ => self.queue(parts),
        }
    }

    /// Notes a packet that leaves the link here for another one.
    pub(in crate::link) fn note_leaving(&mut self, packet: &[u8], now: Instant) {
        if let Some(flows) = self.flows.as_deref_mut() {
            flows.on_leaving(packet, air(packet.len()), 1, now);
        }
    }

    pub(super) fn add_entry_deadlines(&self, deadlines: &mut Deadlines) {
        deadlines.add(self.flows.as_deref().and_then(FlowQueues::next_deadline));
    }

    /// Brings the packets of flows to their peers, as long as these have little waiting.
    pub(super) fn distribute_flows(&mut self, ip: &mut Ip<'_>, now: Instant, out: &mut [u8]) {
        loop {
            let Self {
                flows, host, id, ..
            } = self;
            let Some(flows) = flows.as_deref_mut() else {
                return;
            };
            flows.end_deadline();
            let is_ready = |packet: &[u8]| {
                let header = Header::parse_start(packet).ok();
                let hop = header.and_then(|(header, _)| ip.next_hop(&header.dst, *id));
                let Some(Neighbour::One(iid)) = hop.map(|hop| hop.neighbour) else {
                    return true;
                };
                let at = host.find(|addr| LinkAddr::Device(addr.bytes).iid() == iid);
                let peer = at.and_then(|at| host.peers.get(at));
                peer.is_none_or(|peer| peer.waiting.len() < PACKETS_AHEAD)
            };
            let Some(next) = flows.pop(out, is_ready, now) else {
                return;
            };
            flows.charge_packet(air(next.len), 1);
            flows.end_service();
            let packet = out.get(..next.len).unwrap_or_default();
            let to = self.neighbour_of(packet, ip);
            bring(&mut self.host, to, [packet, &[]], ip, now);
        }
    }
}

/// How long a packet of `len` bytes is on the air, in bytes of 32 µs: at 1 Mb/s, with gaps and
/// empty packets, a byte takes 10 µs in data PDUs of 251 bytes, and 25 in those of 27.
const fn air(len: usize) -> usize {
    len.div_ceil(2)
}

/// How many packets may wait at a peer when the next one is chosen for it.
const PACKETS_AHEAD: usize = 2;
