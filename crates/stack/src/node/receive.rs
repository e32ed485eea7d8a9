//! Inwards: frames into packets, packets to their protocol.

use super::forward::Came;
use super::header_compression::{self, Onward, quotable};
use super::interface::{Interface, Kept, Radio};
use super::{Drop, Node, TICK, discovery};
use crate::ip::{self, Disposition, InterfaceId, Neighbour, NextHop, icmp, icmp::ErrorKind};
use crate::limits::{IPV6_MTU_MIN, PSDU_LEN_MAX};
use crate::lowpan::datagram::{self, Key, RecordId, Role, Verdict};
use crate::lowpan::{Decompressed, LinkPair, TcpForm, complete_udp_checksum, decompress};
use crate::mac::Received;
use crate::tcphc;
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::icmpv6::{self, Message};
use crate::wire::ipv6::{self, Header, next_header};
use crate::wire::lowpan_dispatch::{Dispatch, classify};
use crate::wire::lowpan_frag;
use crate::wire::{tcp, tcphc as wire_tcphc, udp};

/// A frame's payload with its headers restored: two bytes of IPHC may stand for 40 of IPv6,
/// a few for 60 of TCP, and extension headers and UDP grow a little besides.
const RESTORED_LEN_MAX: usize = PSDU_LEN_MAX + 100;

impl<'m> Node<'m> {
    /// Keeps a frame until its ACK has left, or deals with it now where none is owed.
    pub(super) fn keep_or_handle(
        &mut self,
        id: InterfaceId,
        frame: &Received<'_>,
        owes_ack: bool,
        now: Instant,
    ) {
        if !(owes_ack && self.keep(id, frame)) {
            self.on_frame(id, frame, now);
        }
    }

    // Out of line: its copy is not to lie on the stack below the packet's work.
    #[inline(never)]
    fn keep(&mut self, id: InterfaceId, frame: &Received<'_>) -> bool {
        let Ok(radio) = self.radio(id) else {
            return false;
        };
        radio.kept = Kept::of(frame);
        radio.kept.is_some()
    }

    /// Deals with the frame that was kept.
    pub(super) fn handle_kept(&mut self, id: InterfaceId, now: Instant) {
        let Ok(radio) = self.radio(id) else {
            return;
        };
        if let Some(kept) = radio.kept.take() {
            let delivered = self.ip.counters.delivered;
            self.on_frame(id, &kept.frame(), now);
            if self.ip.counters.delivered != delivered {
                self.news_at = Some(now + TICK);
            }
        }
    }

    /// A frame for this node: a packet, or a part of one.
    pub(super) fn on_frame(&mut self, id: InterfaceId, frame: &Received<'_>, now: Instant) {
        let outcome = match classify(frame.payload) {
            Ok(Dispatch::Fragment) => self.on_fragment(id, frame, now),
            Ok(Dispatch::Ipv6 | Dispatch::Iphc) => self.on_whole(id, frame, now),
            Err(_) => Err(Drop::Dispatch),
        };
        if let Err(reason) = outcome {
            self.counters.count(reason);
        }
    }

    /// A packet in one frame.
    fn on_whole(
        &mut self,
        id: InterfaceId,
        frame: &Received<'_>,
        now: Instant,
    ) -> Result<(), Drop> {
        let mut bytes = [0; RESTORED_LEN_MAX];
        let radio = self.radio(id)?;
        let (len, headers) = restore(radio, frame.payload, frame, None, &mut bytes)?;
        let packet = bytes.get_mut(..len).unwrap_or_default();
        self.on_radio_packet(id, packet, headers.tcp, link_of(frame), now)
    }

    /// A whole packet that came by radio, with its TCP header in the form `tcp`.
    fn on_radio_packet(
        &mut self,
        id: InterfaceId,
        packet: &mut [u8],
        tcp: TcpForm,
        link: LinkPair,
        now: Instant,
    ) -> Result<(), Drop> {
        let onward = match wire_tcphc::IS_SUPPORTED {
            true => self.end_compressed_path(id, packet, tcp, link, now)?,
            false => Onward::As(TcpForm::Plain),
        };
        self.on_packet(id, packet, onward, Some(link), now);
        Ok(())
    }

    /// Restores the TCP header of a packet that is for this node, or leaves by another link.
    fn end_compressed_path(
        &mut self,
        id: InterfaceId,
        packet: &mut [u8],
        tcp: TcpForm,
        link: LinkPair,
        now: Instant,
    ) -> Result<Onward, Drop> {
        let (header, _) = Header::parse_start(packet).map_err(|_| Drop::MalformedPacket)?;
        let ends_here = match self.disposition(&header, id, Some(link)) {
            Disposition::Local => true,
            Disposition::Forward(hop) => hop.interface != id,
            Disposition::Refuse(_) | Disposition::Drop(_) => false,
        };
        if !ends_here {
            return Ok(Onward::As(tcp));
        }
        let tcphc = self.radio(id)?.tcphc.as_deref_mut();
        header_compression::restore(tcphc, packet, tcp, now)?;
        Ok(Onward::Begins(tcphc::Origin::Outside))
    }

    /// One fragment: kept until its packet is whole, or passed on.
    fn on_fragment(
        &mut self,
        id: InterfaceId,
        frame: &Received<'_>,
        now: Instant,
    ) -> Result<(), Drop> {
        let parsed = lowpan_frag::Header::parse(frame.payload);
        let (header, piece) = parsed.map_err(|_| Drop::MalformedFragment)?;
        let key = Key {
            from: frame.src,
            tag: header.datagram_tag,
            size: header.datagram_size,
        };
        if header.datagram_offset.is_none() {
            return self.on_first_fragment(id, key, piece, frame, now);
        }
        let radio = self.radio(id)?;
        let verdict = radio
            .datagrams
            .on_next(key, header.offset_bytes(), piece, now);
        match verdict {
            Verdict::Forward { next_hop, tag } => self.relay_later(
                id,
                next_hop,
                lowpan_frag::Header {
                    datagram_tag: tag,
                    ..header
                },
                piece,
                Came::new(frame, now),
            ),
            Verdict::Complete(record) => self.on_reassembled(id, record, frame, now),
            // A drop is counted in the table, by its own reasons.
            Verdict::Stored | Verdict::Drop(_) => Ok(()),
        }
    }

    /// The fragment with the headers: it decides where its packet goes.
    fn on_first_fragment(
        &mut self,
        id: InterfaceId,
        key: Key,
        rest: &[u8],
        frame: &Received<'_>,
        now: Instant,
    ) -> Result<(), Drop> {
        let mut bytes = [0; RESTORED_LEN_MAX];
        let radio = self.radio(id)?;
        let (len, headers) = restore(radio, rest, frame, Some(key.size), &mut bytes)?;
        let piece = bytes.get_mut(..len).unwrap_or_default();
        let (header, _) = Header::parse_start(piece).map_err(|_| Drop::MalformedPacket)?;
        let role = match self.disposition(&header, id, Some(link_of(frame))) {
            Disposition::Local => Role::Reassemble,
            // A relay of a datagram without a checksum has to compute the checksum.
            Disposition::Forward(_) if headers.udp_checksum_elided => Role::Reassemble,
            Disposition::Forward(hop) => self.role_for(id, hop),
            Disposition::Refuse(kind) => {
                self.refuse(id, kind, &header, quotable(piece, headers.tcp), now);
                return Err(Drop::Refused);
            }
            Disposition::Drop(reason) => {
                self.ip.counters.count(reason);
                return Ok(());
            }
        };
        let mut onward = [0; PSDU_LEN_MAX];
        let mut onward_len = 0;
        let mut role = role;
        if let Role::Forward { next_hop } = role {
            // A packet that is dropped here opens no record: its other fragments go nowhere.
            if let Err(Disposition::Drop(reason)) = self.avoid_congestion_of_fragments(id, piece) {
                self.ip.counters.count(reason);
                return Ok(());
            }
            let start = (&mut *piece, headers.tcp);
            match self.rewrite_first(id, next_hop, key.size, frame, start, &mut onward) {
                Some(len) => onward_len = len,
                None => role = Role::Reassemble,
            }
        }
        let radio = self.radio(id)?;
        let len_max = radio.datagrams.packet_len_max(role);
        let is_known = radio.mac.is_trusted(frame.src);
        match radio
            .datagrams
            .on_first(key, piece, headers.tcp, role, is_known, now)
        {
            Verdict::Forward { next_hop, tag } => {
                let onward = onward.get_mut(..onward_len).unwrap_or_default();
                self.relay_first(id, next_hop, tag, onward, Came::new(frame, now))
            }
            Verdict::Complete(record) => self.on_reassembled(id, record, frame, now),
            Verdict::Drop(datagram::Drop::TooLarge) => {
                let kind = ErrorKind::PacketTooBig {
                    mtu: len_max as u32,
                };
                self.refuse(id, kind, &header, quotable(piece, headers.tcp), now);
                Ok(())
            }
            Verdict::Stored | Verdict::Drop(_) => Ok(()),
        }
    }

    /// A packet whose fragments have all come: worked on where it was gathered.
    fn on_reassembled(
        &mut self,
        id: InterfaceId,
        record: RecordId,
        frame: &Received<'_>,
        now: Instant,
    ) -> Result<(), Drop> {
        let Some(mut whole) = self.radio(id)?.datagrams.lend(record) else {
            return Ok(());
        };
        // UDP over IPv6 has no zero checksum: one that is zero was elided by compression.
        complete_udp_checksum(whole.packet());
        let tcp = whole.tcp_form();
        let taken = self.on_radio_packet(id, whole.packet(), tcp, link_of(frame), now);
        self.radio(id)?.datagrams.give_back(whole);
        taken
    }

    /// IP's verdict, and two rules of the link below. What is for one node is not taken from a
    /// frame for all, since every neighbour would pass on or answer a copy (RFC 1122 §3.3.6).
    /// And no packet goes back to the neighbour that it came from: its route here and the one
    /// there would turn one frame into as many as the hop limit allows.
    fn disposition(&self, header: &Header, id: InterfaceId, link: Option<LinkPair>) -> Disposition {
        if link.is_some_and(|link| link.dst.is_broadcast()) && !header.dst.is_multicast() {
            return Disposition::Drop(ip::Drop::LinkBroadcast);
        }
        let came_by = link.map(|link| NextHop {
            interface: id,
            neighbour: Neighbour::One(link.src.iid()),
        });
        match self.ip.disposition(header, id) {
            Disposition::Forward(hop) if Some(hop) == came_by => {
                Disposition::Refuse(ErrorKind::SentBack)
            }
            disposition => disposition,
        }
    }

    /// A whole packet: for this node, or on its way. `onward`: what becomes of its TCP header
    /// in the latter case. `link`: the hop it came over, by radio.
    pub(super) fn on_packet(
        &mut self,
        id: InterfaceId,
        packet: &[u8],
        onward: Onward,
        link: Option<LinkPair>,
        now: Instant,
    ) {
        let Ok((header, payload)) = Header::parse(packet) else {
            return self.ip.counters.count(ip::Drop::Malformed);
        };
        // Padding of the link below is no part of the packet.
        let packet = packet
            .get(..ipv6::HEADER_LEN + payload.len())
            .unwrap_or_default();
        let verdict = match self.disposition(&header, id, link) {
            Disposition::Local => self.on_local(id, &header, payload, link, now),
            Disposition::Forward(hop) => self.forward(hop, packet, onward, now),
            verdict => Err(verdict),
        };
        match verdict {
            Err(Disposition::Drop(reason)) => {
                self.ip.counters.count(reason);
                // Its source can send less at a time.
                if reason == ip::Drop::Fragment {
                    let mtu = IPV6_MTU_MIN as u32;
                    let kind = ErrorKind::PacketTooBig { mtu };
                    self.refuse(id, kind, &header, packet, now);
                }
            }
            Err(Disposition::Refuse(kind)) => {
                let packet = match onward {
                    Onward::As(form) => quotable(packet, form),
                    Onward::Begins(_) => packet,
                };
                self.refuse(id, kind, &header, packet, now);
            }
            _ => {}
        }
    }

    /// A packet for this node, to its protocol.
    fn on_local(
        &mut self,
        id: InterfaceId,
        header: &Header,
        payload: &[u8],
        link: Option<LinkPair>,
        now: Instant,
    ) -> Result<(), Disposition> {
        let (protocol, upper) = self.ip.upper_layer(header, payload)?;
        // A packet from the unspecified address is accepted only if it is neighbour discovery,
        // which a node may send before it has an address.
        let asks_for_one =
            protocol == icmpv6::NEXT_HEADER && header.hop_limit == discovery::HOP_LIMIT;
        if header.src.is_unspecified() && !asks_for_one {
            return Err(Disposition::Drop(ip::Drop::BadAddress));
        }
        self.ip.counters.delivered = self.ip.counters.delivered.wrapping_add(1);
        match protocol {
            tcp::NEXT_HEADER if !header.dst.is_multicast() => {
                self.on_segment(id, header, upper, now)
            }
            icmpv6::NEXT_HEADER => self.on_icmp(id, header, upper, link, now),
            udp::NEXT_HEADER => self.on_datagram(id, header, upper),
            next_header::NONE => Err(Disposition::Drop(ip::Drop::UnknownProtocol)),
            _ if header.dst.is_multicast() => Err(Disposition::Drop(ip::Drop::UnknownProtocol)),
            _ => Err(UNKNOWN_PROTOCOL),
        }
    }

    /// An ICMPv6 message for this node.
    fn on_icmp(
        &mut self,
        id: InterfaceId,
        header: &Header,
        bytes: &[u8],
        link: Option<LinkPair>,
        now: Instant,
    ) -> Result<(), Disposition> {
        let drop = |reason| Err(Disposition::Drop(reason));
        if !icmpv6::is_checksum_valid(&header.src, &header.dst, bytes) {
            return drop(ip::Drop::BadIcmp);
        }
        let Ok(message) = Message::parse(bytes) else {
            return drop(ip::Drop::BadIcmp);
        };
        match message {
            Message::EchoRequest(request) => match self.ip.may_answer_echo(now) {
                true => self.answer_echo(id, header, &request),
                false => drop(ip::Drop::TooMany),
            },
            Message::RouterSolicitation { .. }
            | Message::RouterAdvertisement(_)
            | Message::NeighborSolicitation { .. } => {
                self.on_discovery(id, header, &message, link, now)
            }
            _ => self.on_icmp_error(id, &message, now),
        }
    }

    fn answer_echo(
        &mut self,
        id: InterfaceId,
        header: &Header,
        request: &icmpv6::Echo<'_>,
    ) -> Result<(), Disposition> {
        let no_route = Disposition::Drop(ip::Drop::NoRoute);
        let hop = self.next_hop(&header.src, id).ok_or(no_route)?;
        let src = match header.dst.is_multicast() {
            true => self
                .ip
                .source_for(&header.src, hop.interface)
                .ok_or(no_route)?,
            false => header.dst,
        };
        let head = icmp::echo_reply(request, header.src, src, self.ip.hop_limit());
        let head = head.ok_or(Disposition::Drop(ip::Drop::BadIcmp))?;
        self.enqueue_control(hop, &head, request.data)
    }

    /// Neighbour discovery.
    fn on_discovery(
        &mut self,
        id: InterfaceId,
        header: &Header,
        message: &Message<'_>,
        link: Option<LinkPair>,
        now: Instant,
    ) -> Result<(), Disposition> {
        let bad = Disposition::Drop(ip::Drop::BadNdp);
        let Self {
            interfaces,
            ip,
            rng,
            ..
        } = self;
        let Some(Interface::Radio(radio)) = interfaces.get_mut(usize::from(id.0)) else {
            return Err(Disposition::Drop(ip::Drop::IgnoredIcmp));
        };
        let from = discovery::sender(ip, id, header, link).ok_or(bad)?;
        let is_from_nobody = header.src.is_unspecified();
        let too_many = Disposition::Drop(ip::Drop::TooMany);
        match message {
            // Answers go to one node (RFC 6775 §6.3), and not to where they were learnt.
            Message::RouterSolicitation { .. } if is_from_nobody => return Err(bad),
            Message::RouterSolicitation { .. } => {
                if radio.solicitor.router() != Some(header.src) {
                    radio.may_answer(from, now).ok_or(too_many)?;
                    discovery::advertise(radio, ip, id, header.src, now);
                }
            }
            Message::RouterAdvertisement(advertisement) => {
                if !header.src.is_unicast_link_local() {
                    return Err(bad);
                }
                let router = (header.src, from);
                let said = (advertisement, !header.dst.is_multicast());
                discovery::on_advertisement(radio, ip, id, router, said, now, rng);
            }
            // Detection of duplicates asks the group of the address alone (RFC 4861 §7.1.1).
            Message::NeighborSolicitation { target, .. }
                if is_from_nobody && header.dst != ip::solicited_node(target) =>
            {
                return Err(bad);
            }
            Message::NeighborSolicitation { target, .. } if ip.owns(target, id) => {
                radio.may_answer(from, now).ok_or(too_many)?;
                discovery::own_up(radio, ip, id, header.src, *target);
            }
            _ => return Err(Disposition::Drop(ip::Drop::IgnoredIcmp)),
        }
        Ok(())
    }
}

/// The answer to a packet of an unknown protocol. The field that names it stands at offset 6
/// unless an extension header does.
pub(super) const UNKNOWN_PROTOCOL: Disposition = Disposition::Refuse(ErrorKind::ParameterProblem {
    code: 1,
    pointer: 6,
});

/// The hop that a frame came over.
const fn link_of(frame: &Received<'_>) -> LinkPair {
    LinkPair {
        src: frame.src,
        dst: frame.dst,
    }
}

/// Decompresses a frame's headers and lays its payload behind them; returns the length, and
/// what was restored.
fn restore(
    radio: &Radio<'_>,
    bytes: &[u8],
    frame: &Received<'_>,
    datagram_size: Option<u16>,
    out: &mut [u8],
) -> Result<(usize, Decompressed), Drop> {
    let headers = decompress(bytes, link_of(frame), &radio.contexts, datagram_size, out)
        .map_err(|_| Drop::Compression)?;
    let payload = bytes.get(headers.compressed_len..).unwrap_or_default();
    let room = out.get_mut(headers.uncompressed_len..).unwrap_or_default();
    if payload.len() > room.len() {
        return Err(Drop::Compression);
    }
    let len = headers.uncompressed_len + copy(room, payload);
    // In a fragment the packet is not whole yet: see `on_reassembled`.
    if headers.udp_checksum_elided && datagram_size.is_none() {
        complete_udp_checksum(out.get_mut(..len).unwrap_or_default());
    }
    debug_assert!(len >= ipv6::HEADER_LEN, "headers were restored");
    Ok((len, headers))
}
