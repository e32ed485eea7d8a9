//! Onwards: packets and fragments of others, and what their sources are told.

use super::interface::{Interface, Radio, Relaying};
use super::{Drop, Node};
use crate::ip::{self, Disposition, InterfaceId, NextHop, icmp, icmp::ErrorKind};
use crate::limits::PSDU_LEN_MAX;
use crate::lowpan::datagram::Role;
use crate::lowpan::{LinkPair, fragment};
use crate::mac::Class;
use crate::storage::packet_queue::PacketQueue;
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::cursor::copy;
use crate::wire::ipv6::Header;
use crate::wire::lowpan_frag;

/// Offset of the hop limit in an IPv6 header.
const HOP_LIMIT_AT: usize = 7;

impl<'m> Node<'m> {
    /// The radio behind `id`.
    pub(super) fn radio(&mut self, id: InterfaceId) -> Result<&mut Radio<'m>, Drop> {
        match self.interfaces.get_mut(usize::from(id.0)) {
            Some(Interface::Radio(radio)) => Ok(radio),
            _ => Err(Drop::Dispatch),
        }
    }

    /// How a fragmented packet for `hop` gets there: by fragments where it leaves by the
    /// radio it came by and nothing needs the whole packet.
    pub(super) fn role_for(&self, id: InterfaceId, hop: NextHop) -> Role {
        match (self.interfaces.get(usize::from(id.0)), hop.neighbour) {
            (Some(Interface::Radio(radio)), Some(next_hop))
                if hop.interface == id && radio.config.relaying == Relaying::Fragments =>
            {
                Role::Forward { next_hop }
            }
            _ => Role::Reassemble,
        }
    }

    /// Passes on a first fragment, `piece` decompressed: its header changes at each hop.
    pub(super) fn relay_first(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        datagram_size: u16,
        datagram_tag: u16,
        piece: &mut [u8],
    ) -> Result<(), Drop> {
        count_down(piece);
        self.ip.counters.forwarded = self.ip.counters.forwarded.wrapping_add(1);
        let radio = self.radio(id)?;
        let header = lowpan_frag::Header {
            datagram_size,
            datagram_tag,
            datagram_offset: None,
        };
        let link = LinkPair {
            src: radio.mac.source(),
            dst: next_hop,
        };
        let len_max = radio.mac.payload_len_max(next_hop);
        let mut out = [0; PSDU_LEN_MAX];
        let len = fragment::forward_first(piece, header, link, &radio.contexts, len_max, &mut out);
        match len {
            Ok(len) => self.relay(
                id,
                next_hop,
                datagram_tag,
                out.get(..len).unwrap_or_default(),
            ),
            Err(_) => {
                radio.datagrams.fragment_lost(datagram_tag);
                Err(Drop::FragmentTooLong)
            }
        }
    }

    /// Passes on a later fragment: only its tag changes.
    pub(super) fn relay_later(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        header: lowpan_frag::Header,
        piece: &[u8],
    ) -> Result<(), Drop> {
        let mut out = [0; PSDU_LEN_MAX];
        let len = header.emit(&mut out).map_err(|_| Drop::FragmentTooLong)?;
        let len = len + copy(out.get_mut(len..).unwrap_or_default(), piece);
        self.relay(
            id,
            next_hop,
            header.datagram_tag,
            out.get(..len).unwrap_or_default(),
        )
    }

    /// Queues a fragment that came in. Where it finds no room its packet is lost, and the
    /// packet's other fragments would only cost air.
    fn relay(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        tag: u16,
        payload: &[u8],
    ) -> Result<(), Drop> {
        let radio = self.radio(id)?;
        if radio
            .mac
            .enqueue(next_hop, tag, payload, Class::Forward)
            .is_err()
        {
            radio.datagrams.fragment_lost(tag);
            radio.mac.cancel(tag);
            return Err(Drop::RelayQueueFull);
        }
        self.counters.fragments_relayed = self.counters.fragments_relayed.wrapping_add(1);
        Ok(())
    }

    /// Passes on a whole packet.
    pub(super) fn forward(&mut self, hop: NextHop, packet: &[u8]) -> Result<(), Disposition> {
        let queue = self.queue_for(hop, packet.len())?;
        let Some((head, rest)) = packet.split_first_chunk::<{ HOP_LIMIT_AT + 1 }>() else {
            return Err(Disposition::Drop(ip::Drop::Malformed));
        };
        let mut head = *head;
        count_down(&mut head);
        if !queue.push_parts([&head, rest], Class::Own as u32) {
            return Err(Disposition::Drop(ip::Drop::QueueFull));
        }
        self.ip.counters.forwarded = self.ip.counters.forwarded.wrapping_add(1);
        Ok(())
    }

    /// Where a packet of `len` bytes for `hop` waits; refused when that link cannot carry it.
    fn queue_for(&mut self, hop: NextHop, len: usize) -> Result<&mut PacketQueue<'m>, Disposition> {
        let interface = self.interfaces.get_mut(usize::from(hop.interface.0));
        let interface = interface.ok_or(Disposition::Drop(ip::Drop::NoRoute))?;
        let mtu = interface.mtu();
        if len > mtu as usize {
            return Err(Disposition::Refuse(ErrorKind::PacketTooBig { mtu }));
        }
        Ok(match interface {
            Interface::Radio(radio) => &mut radio.queue,
            Interface::Wire(wire) => &mut wire.queue,
        })
    }

    /// Tells the source of a packet why it went no further, where that is allowed.
    ///
    /// `packet`: IPv6 header first; a first fragment's part of it will do.
    pub(super) fn refuse(
        &mut self,
        id: InterfaceId,
        kind: ErrorKind,
        header: &Header,
        packet: &[u8],
        now: Instant,
    ) {
        if !icmp::may_answer(header, packet, kind) || !self.ip.may_send_error(now) {
            return;
        }
        let Some(hop) = self.ip.next_hop(&header.src, id) else {
            return self.ip.counters.count(ip::Drop::NoRoute);
        };
        let src = match self.ip.owns(&header.dst, id) {
            true => Some(header.dst),
            false => self.ip.source_for(&header.src, hop.interface),
        };
        let hop_limit = self.ip.hop_limit();
        let error = src.and_then(|src| icmp::error(kind, packet, header.src, src, hop_limit));
        if let Some((head, quoted)) = error
            && self.enqueue_control(hop, &head, quoted).is_err()
        {
            self.ip.counters.count(ip::Drop::QueueFull);
        }
    }

    /// Queues a packet of this node's own, in two pieces, before data in the MAC's queue.
    pub(super) fn enqueue_control(
        &mut self,
        hop: NextHop,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), Disposition> {
        let queue = self.queue_for(hop, head.len() + body.len())?;
        match queue.push_parts([head, body], Class::Control as u32) {
            true => Ok(()),
            false => Err(Disposition::Drop(ip::Drop::QueueFull)),
        }
    }
}

/// Takes one off the hop limit; dispositions have made sure that it is above one.
fn count_down(packet: &mut [u8]) {
    if let Some(hop_limit) = packet.get_mut(HOP_LIMIT_AT) {
        *hop_limit = hop_limit.saturating_sub(1);
    }
}
