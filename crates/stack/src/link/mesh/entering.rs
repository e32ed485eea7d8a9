//! Packets that enter the mesh from outside: putting them into the queue of their flow, and taking
//! them out.
//!
//! Place: beside the queue of whole packets, for packets that come over another link of a border
//! router, if it was lent [`FlowQueues`]. A router's own packets, and packets that it forwards
//! within the mesh, do not pass here. [`super::flow_queues`] chooses the next flow.

use super::flow_queues::{FlowQueues, air};
use super::{Mesh, PacketMeta};
use crate::ip::queue::Discipline;
use crate::ip::{Ip, PacketDrop};
use crate::link::arrival::{Refusal, TcpEgress};
use crate::mac::Class;
use crate::tcphc::Origin;
use crate::time::{Deadlines, Instant};
#[cfg(feature = "sleepy")]
use crate::wire::ipv6::Header;

impl<'m> Mesh<'m> {
    /// Gives flows that enter the mesh here queues of their own from now on. Of use at a border
    /// router.
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

    pub(super) fn has_entering(&self) -> bool {
        self.flows
            .as_deref()
            .is_some_and(|flows| flows.waiting() > 0)
    }

    /// Packets before one that comes over another link, in two pieces.
    pub(super) fn waiting_before(&self, parts: [&[u8]; 2], egress: TcpEgress) -> usize {
        match self.flows.as_deref() {
            // Only random early detection uses this number.
            Some(_) if self.settings.discipline == Discipline::DropTail => 0,
            Some(flows) if egress == ENTERING => flows.waiting_before(parts),
            _ => self.queue.len(),
        }
    }

    /// Queues a packet in two pieces that is passed on: one that enters the mesh with its flow.
    pub(super) fn push_forwarded(
        &mut self,
        parts: [&[u8]; 2],
        meta: PacketMeta,
        ip: &mut Ip<'_>,
        now: Instant,
    ) -> Result<(), Refusal> {
        if meta.egress != ENTERING || self.flows.is_none() {
            return self.push(parts, meta);
        }
        self.check_len(parts, meta)?;
        let Some(flows) = self.flows.as_deref_mut() else {
            return Err(Refusal::Full);
        };
        flows.push(parts, meta.to_bits(), &mut ip.counters, now)
    }

    /// Puts the next packet, by the flows' turns, into the fragmenter; returns whether there was
    /// one.
    ///
    /// Only few frames of this node may wait in the MAC before: these leave in the order in which
    /// they came. Frames that it passes on do not count: those of one stream between two motes, at
    /// their pace, had kept requests to others here for seconds.
    pub(super) fn next_entering(&mut self, ip: &mut Ip<'_>, now: Instant) -> bool {
        if self.mac.room(Class::Own) == 0 || !self.has_few_ahead() {
            return false;
        }
        let Self {
            flows,
            outgoing,
            discovery,
            ..
        } = self;
        let Some(flows) = flows.as_deref_mut() else {
            return false;
        };
        flows.is_entering_turn = false;
        let on_link = discovery.id;
        #[cfg(feature = "sleepy")]
        let indirect = self.indirect.as_deref();
        let is_ready = |packet: &[u8]| {
            #[cfg(feature = "sleepy")]
            if let Some(indirect) = indirect {
                let header = Header::parse_start(packet).ok();
                let hop = header.and_then(|(header, _)| ip.next_hop(&header.dst, on_link));
                return hop.is_none_or(|hop| indirect.has_room(hop.neighbour));
            }
            let _ = (packet, on_link);
            true
        };
        let dropped_before = flows.counters().dropped;
        let next = flows.pop(outgoing.buffer(), is_ready, now);
        let dropped = flows.counters().dropped.wrapping_sub(dropped_before);
        for _ in 0..dropped {
            ip.counters.count(PacketDrop::QueueFull);
        }
        let Some(next) = next else {
            return false;
        };
        flows.is_own_turn = true;
        let len = next.len.min(outgoing.buffer().len());
        let meta = PacketMeta::from_bits(next.meta);
        let hop = self.hop_of_packet(ip, len, meta);
        let hop = hop.filter(|_| len == next.len);
        self.set_off(ip, len, hop, meta, now);
        // One that waits for a child that sleeps, or goes nowhere, is no frame yet.
        if self.outgoing.is_idle() {
            let hops = self.hops_on_air();
            if let Some(flows) = self.flows.as_deref_mut() {
                flows.charge_packet(air(len), hops);
                flows.end_service();
            }
        }
        true
    }

    /// Whether this node's own TCP is to be asked before the flows are: they were served last.
    pub(super) fn takes_own_turn(&mut self) -> bool {
        let flows = self.flows.as_deref_mut();
        flows.is_some_and(|flows| {
            flows.end_service();
            core::mem::take(&mut flows.is_own_turn)
        })
    }

    /// Whether packets that enter go before the next one that this node passes on within the mesh:
    /// the two go by turns. A stream between two motes over the root once kept out, for minutes,
    /// whatever came from outside.
    pub(super) fn is_entering_turn(&self) -> bool {
        let flows = self.flows.as_deref();
        flows.is_some_and(|flows| flows.is_entering_turn && flows.waiting() > 0)
    }

    /// A packet that this node passes on within the mesh leaves: those that enter are next.
    pub(super) const fn give_entering_turn(&mut self) {
        if let Some(flows) = &mut self.flows {
            flows.is_entering_turn = true;
        }
    }

    /// Whether so few frames wait in the MAC that the next packet that enters may be chosen.
    pub(super) fn has_few_ahead(&self) -> bool {
        self.mac.own_len() <= FRAMES_AHEAD
    }

    /// Charges a frame to the flow of its packet.
    pub(super) fn charge_frame(&mut self, len: usize) {
        let hops = self.hops_on_air();
        if let Some(flows) = self.flows.as_deref_mut() {
            flows.charge_frame(len, hops);
        }
    }

    /// Notes a packet that leaves the mesh here for another link, its headers restored.
    pub(super) fn note_leaving(&mut self, packet: &[u8], now: Instant) {
        let hops = self.hops_on_air();
        if let Some(flows) = self.flows.as_deref_mut() {
            flows.on_leaving(packet, air(packet.len()), hops, now);
        }
    }

    pub(super) fn end_entering_deadline(&mut self) {
        if let Some(flows) = self.flows.as_deref_mut() {
            flows.end_deadline();
        }
    }

    pub(super) fn add_entering_deadlines(&self, deadlines: &mut Deadlines) {
        if let Some(flows) = self.flows.as_deref() {
            deadlines.add(flows.next_deadline());
        }
    }

    /// How often a frame down is on the air before the next one may follow: hops beyond the third
    /// are out of earshot.
    fn hops_on_air(&self) -> u8 {
        self.settings.pacing.hops(false).clamp(1, 3)
    }
}

/// The treatment of the TCP header of a packet that comes from outside.
const ENTERING: TcpEgress = TcpEgress::Begins(Origin::Outside);

/// How many frames may wait in the MAC when the next packet is chosen: enough for the air never to
/// wait for this node.
const FRAMES_AHEAD: usize = 2;
