//! Onwards: packets and fragments of other nodes, and the errors that their sources get.

use super::header_compression::{Mark, Onward, quotable};
use super::interface::{Forwarding, Interface, Radio, Relaying, link_addr};
use super::{Drop, Node};
use crate::ip::queue::Verdict;
use crate::ip::{self, Disposition, InterfaceId, NextHop, icmp, icmp::ErrorKind};
use crate::limits::PSDU_LEN_MAX;
use crate::lowpan::datagram::Role;
use crate::lowpan::{LinkPair, TcpForm, fragment};
use crate::mac::{self, Class, Condition, Frame, Protocol, Received};
use crate::storage::packet_queue::PacketQueue;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{Ecn, HEADER_LEN, Header, TrafficClass};
use crate::wire::{ieee802154, lowpan_frag};

/// The traffic class lies across the first two bytes; its low bits, which are ECN's, have
/// four bits of the flow label below them.
const ECN_SHIFT: u32 = 4;

/// Offset of the hop limit in an IPv6 header.
const HOP_LIMIT_AT: usize = 7;

/// How long a fragment waits in the radio for the next one, which its sender has promised:
/// some six frame times, and more than a chain of one channel leaves between two frames.
const FLUSH_AFTER: Duration = Duration::from_millis(30);

/// What a relay knows of the frame that a fragment came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    from: LinkAddr,
    more_follow: bool,
    at: Instant,
}

impl Came {
    pub(super) const fn new(frame: &Received<'_>, now: Instant) -> Self {
        Self {
            from: frame.src,
            more_follow: frame.pending,
            at: now,
        }
    }
}

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
        match (
            self.interfaces.get(usize::from(id.0)),
            link_addr(hop.neighbour),
        ) {
            (Some(Interface::Radio(radio)), Some(next_hop))
                if hop.interface == id && radio.config.relaying == Relaying::Fragments =>
            {
                Role::Forward { next_hop }
            }
            _ => Role::Reassemble,
        }
    }

    /// Writes a first fragment as it goes on, all but its tag: its header changes at each hop.
    /// Returns its length, and `None` where its packet has to be reassembled here, because a
    /// fragment would find no room in a frame to `next_hop`: the header has grown and its
    /// sender left no slack, or addresses are longer on that link.
    ///
    /// `piece`: the fragment decompressed, with its TCP header in the form `tcp`; left as it is.
    pub(super) fn rewrite_first(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        datagram_size: u16,
        frame: &Received<'_>,
        (piece, tcp): (&mut [u8], TcpForm),
        out: &mut [u8],
    ) -> Option<usize> {
        let radio = self.radio(id).ok()?;
        let link = LinkPair {
            src: radio.mac.source(),
            dst: next_hop,
        };
        let len_max = radio.mac.payload_len_max(next_hop);
        if ieee802154::Header::data(0, frame.dst, frame.src, 0).payload_len_max() > len_max {
            return None;
        }
        let header = lowpan_frag::Header {
            datagram_size,
            datagram_tag: 0,
            datagram_offset: None,
        };
        let hop_limit = *piece.get(HOP_LIMIT_AT)?;
        count_down(piece);
        let start = (&*piece, tcp);
        let len = fragment::forward_first(start, header, link, &radio.contexts, len_max, out);
        copy(
            piece.get_mut(HOP_LIMIT_AT..).unwrap_or_default(),
            &[hop_limit],
        );
        len.ok()
    }

    /// Passes on a first fragment that [`Self::rewrite_first`] has written.
    pub(super) fn relay_first(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        datagram_tag: u16,
        fragment: &mut [u8],
        came: Came,
    ) -> Result<(), Drop> {
        let tag = fragment.get_mut(lowpan_frag::TAG_AT..).unwrap_or_default();
        copy(tag, &datagram_tag.to_be_bytes());
        self.ip.counters.forwarded = self.ip.counters.forwarded.wrapping_add(1);
        self.relay(id, next_hop, datagram_tag, fragment, came)
    }

    /// Passes on a later fragment: only its tag changes.
    pub(super) fn relay_later(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        header: lowpan_frag::Header,
        piece: &[u8],
        came: Came,
    ) -> Result<(), Drop> {
        let mut out = [0; PSDU_LEN_MAX];
        let len = header.emit(&mut out).map_err(|_| Drop::FragmentTooLong)?;
        let len = len + copy(out.get_mut(len..).unwrap_or_default(), piece);
        self.relay(
            id,
            next_hop,
            header.datagram_tag,
            out.get(..len).unwrap_or_default(),
            came,
        )
    }

    /// Queues a fragment that came in. Where it finds no room its packet is lost, and the
    /// packet's other fragments would only cost air.
    ///
    /// It may wait for the next one only where its sender has said that more follow (the frame
    /// pending bit): the end of a window, a FIN or a pure ACK goes on at once.
    fn relay(
        &mut self,
        id: InterfaceId,
        next_hop: LinkAddr,
        tag: u16,
        payload: &[u8],
        came: Came,
    ) -> Result<(), Drop> {
        let radio = self.radio(id)?;
        let mac = &mut radio.mac;
        let may_wait = mac.can_preload() && radio.config.forwarding == Forwarding::Immediate;
        let frame = Frame {
            to: next_hop,
            token: tag,
            payload,
            class: Class::Forward,
            since: came.at,
        };
        let queued = if may_wait && came.more_follow {
            let condition = Condition {
                from: came.from,
                protocol: Protocol::FRAGMENTS,
            };
            let until = came.at + FLUSH_AFTER;
            mac.enqueue_conditional(&frame, condition, until)
        } else {
            mac.enqueue(&frame)
        };
        if let Err(reason) = queued {
            radio.datagrams.fragment_lost(tag);
            radio.mac.cancel(tag);
            return Err(match reason {
                mac::Drop::BadLength => Drop::FragmentTooLong,
                _ => Drop::RelayQueueFull,
            });
        }
        self.counters.fragments_relayed = self.counters.fragments_relayed.wrapping_add(1);
        Ok(())
    }

    /// Passes on a whole packet.
    pub(super) fn forward(
        &mut self,
        hop: NextHop,
        packet: &[u8],
        onward: Onward,
        now: Instant,
    ) -> Result<(), Disposition> {
        let Some((head, rest)) = packet.split_first_chunk::<{ HOP_LIMIT_AT + 1 }>() else {
            return Err(Disposition::Drop(ip::Drop::Malformed));
        };
        let mut head = *head;
        count_down(&mut head);
        let waiting = match self.interfaces.get(usize::from(hop.interface.0)) {
            Some(Interface::Radio(radio)) => radio.queue.len(),
            _ => 0,
        };
        self.avoid_congestion(hop.interface, waiting, &mut head)?;
        let queue = self.queue_for(hop, packet.len())?;
        let mark = Mark::new(Class::Own, onward, now);
        if !queue.push_parts([&head, rest], mark.to_bits()) {
            return Err(Disposition::Drop(ip::Drop::QueueFull));
        }
        self.ip.counters.forwarded = self.ip.counters.forwarded.wrapping_add(1);
        Ok(())
    }

    /// As [`Self::avoid_congestion`], of a packet passed on in fragments, which wait in the
    /// MAC: the packets before it are counted by the frames of a full one.
    pub(super) fn avoid_congestion_of_fragments(
        &mut self,
        id: InterfaceId,
        piece: &mut [u8],
    ) -> Result<(), Disposition> {
        let waiting = match self.interfaces.get(usize::from(id.0)) {
            Some(Interface::Radio(radio)) => {
                let frames = usize::from(radio.config.mss_frames);
                radio.mac.queue_len().checked_div(frames).unwrap_or(0)
            }
            _ => 0,
        };
        self.avoid_congestion(id, waiting, piece)
    }

    /// Asks the queue's discipline about a packet that begins with `head` and has `waiting`
    /// others before it, and marks it.
    fn avoid_congestion(
        &mut self,
        id: InterfaceId,
        waiting: usize,
        head: &mut [u8],
    ) -> Result<(), Disposition> {
        let interface = self.interfaces.get_mut(usize::from(id.0));
        let (Some(Interface::Radio(radio)), Some(traffic_class)) = (interface, head.get_mut(1))
        else {
            return Ok(());
        };
        let ecn = TrafficClass(*traffic_class >> ECN_SHIFT).ecn();
        let discipline = &mut radio.config.discipline;
        match discipline.judge(waiting, ecn, &mut self.rng) {
            Verdict::Enqueue => Ok(()),
            Verdict::Mark => {
                *traffic_class |= (Ecn::Ce as u8) << ECN_SHIFT;
                self.ip.counters.marked = self.ip.counters.marked.wrapping_add(1);
                Ok(())
            }
            Verdict::Drop => Err(Disposition::Drop(ip::Drop::Congestion)),
        }
    }

    /// Where a packet of `len` bytes for `hop` waits; refused when that link cannot carry it.
    pub(super) fn queue_for(
        &mut self,
        hop: NextHop,
        len: usize,
    ) -> Result<&mut PacketQueue<'m>, Disposition> {
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
        if kind == ErrorKind::SentBack {
            self.ip.counters.count(ip::Drop::SentBack);
        }
        if !icmp::may_answer(header, packet, kind) || !self.ip.may_send_error(now) {
            return;
        }
        let Some(hop) = self.next_hop(&header.src, id) else {
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

    /// Tells the source of a packet that its last hop did not answer. Returns whether a packet
    /// was given up at all; of a packet that another node fragmented there is nothing to quote.
    pub(super) fn report_undelivered(&mut self, id: InterfaceId, now: Instant) -> bool {
        let Ok(radio) = self.radio(id) else {
            return false;
        };
        let Some(tag) = radio.undelivered.take() else {
            return false;
        };
        let last_hop = radio.outgoing.link().dst.iid();
        let tcp = radio.outgoing.tcp_form();
        let Some(buffer) = radio.outgoing.lend(tag) else {
            return true;
        };
        if let Ok((header, payload)) = Header::parse(buffer)
            && ip::iid_of(&header.dst) == last_hop
            && !self.ip.owns(&header.src, id)
        {
            let packet = buffer.get(..HEADER_LEN + payload.len()).unwrap_or_default();
            let packet = quotable(packet, tcp);
            self.refuse(id, ErrorKind::AddressUnreachable, &header, packet, now);
            // The interface that the answer leaves by may have been polled before this one.
            self.must_poll_again = true;
        }
        if let Ok(radio) = self.radio(id) {
            radio.outgoing.give_back(buffer);
        }
        true
    }

    /// Queues a packet of this node's own, in two pieces, before data in the MAC's queue.
    pub(super) fn enqueue_control(
        &mut self,
        hop: NextHop,
        head: &[u8],
        body: &[u8],
    ) -> Result<(), Disposition> {
        let queue = self.queue_for(hop, head.len() + body.len())?;
        match queue.push_parts([head, body], Mark::own(Class::Control).to_bits()) {
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
