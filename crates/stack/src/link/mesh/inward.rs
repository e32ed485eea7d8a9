//! Turns the frames that come in into packets.

use super::forward::FragmentOrigin;
use super::{DeferredFrame, Mesh, routing, tcp_headers};
use crate::ip::icmp::ErrorKind;
use crate::ip::{Disposition, Ingress, Ip, Neighbour};
use crate::limits::{IPV6_MTU_MIN, IS_RELAY, PSDU_LEN_MAX};
use crate::link::LinkDrop;
use crate::link::arrival::{Arrival, Hop, Scratch, TcpEgress, quotable};
use crate::lowpan::datagram::{self, FragmentHandling, FragmentOutcome, Key, RecordId};
use crate::lowpan::{
    Contexts, Decompressed, HeaderForms, LinkPair, TcpForm, complete_udp_checksum, decompress,
};
use crate::mac::{self, Received};
use crate::random::Rng;
use crate::tcphc;
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{self, Header};
use crate::wire::lowpan_dispatch::{Dispatch, classify};
use crate::wire::rpl_option::Rpi;
#[cfg(feature = "rpl")]
use crate::wire::source_route::is_foreign;
use crate::wire::{lowpan_frag, tcphc as wire};

impl<'m> Mesh<'m> {
    /// Takes what the radio reports.
    ///
    /// Where software acknowledges a frame, this only finds that out: the frame is kept, and
    /// [`Self::poll_arrival`] processes it when the ACK has left.
    // Out of line, as the next two are: no copy of a frame is to lie below the packet's work.
    #[inline(never)]
    pub(in crate::link) fn on_event<'s>(
        &mut self,
        event: mac::Event<'_>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        #[cfg(feature = "security")]
        let earlier = match self.mac.has_sealed() {
            true => self.open(now, rng),
            false => None,
        };
        let received = self.mac.on_event(event, now, rng);
        self.note_asked(now);
        #[cfg(feature = "join")]
        let received = self.without_clear(received);
        #[cfg(feature = "security")]
        if let Some(earlier) = earlier {
            #[cfg(feature = "thread")]
            if let Some(frame) = received {
                self.exchange_deferred(&frame, &mut None);
            }
            return self.on_frame(&earlier.frame(), ip, scratch, now, rng);
        }
        let Some(frame) = received else {
            #[cfg(feature = "security")]
            if self.mac.may_open() {
                return self.on_sealed(ip, scratch, now, rng);
            }
            return Arrival::Nothing;
        };
        // Frames are dealt with in the order in which they came.
        if self.deferred.is_none() && !self.mac.owes_acknowledgment() {
            return self.on_heard(&frame, ip, scratch, now, rng);
        }
        let mut earlier = None;
        self.exchange_deferred(&frame, &mut earlier);
        match &earlier {
            Some(earlier) => self.on_heard(&earlier.frame(), ip, scratch, now, rng),
            None => Arrival::Nothing,
        }
    }

    /// As [`Self::on_event`], of an event that brings no frame.
    pub(in crate::link) fn note(&mut self, event: mac::Event<'_>, now: Instant, rng: &mut Rng) {
        let frame = self.mac.on_event(event, now, rng);
        debug_assert!(frame.is_none(), "such an event brings a frame");
    }

    /// Keeps a frame. `earlier` is the one that was kept before, in its caller's memory: a frame
    /// that is returned lies on the call stack twice.
    #[inline(never)]
    fn exchange_deferred(&mut self, frame: &Received<'_>, earlier: &mut Option<DeferredFrame>) {
        *earlier = self.deferred.take();
        DeferredFrame::keep(&mut self.deferred, frame);
    }

    /// Whether a frame was kept.
    pub(in crate::link) fn has_arrival(&self) -> bool {
        self.deferred.is_some() || self.mac.has_sealed()
    }

    /// Deals with the frame that was kept.
    #[inline(never)]
    pub(in crate::link) fn poll_arrival<'s>(
        &mut self,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        match self.deferred.take() {
            Some(deferred) => self.on_heard(&deferred.frame(), ip, scratch, now, rng),
            #[cfg(feature = "security")]
            None => self.on_sealed(ip, scratch, now, rng),
            #[cfg(not(feature = "security"))]
            None => Arrival::Nothing,
        }
    }

    /// Deals with a frame that was sealed.
    #[cfg(feature = "security")]
    fn on_sealed<'s>(
        &mut self,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        match self.open(now, rng) {
            Some(opened) => self.on_frame(&opened.frame(), ip, scratch, now, rng),
            None => Arrival::Nothing,
        }
    }

    /// Opens the frame that was sealed, and does what follows from its being authentic.
    #[cfg(feature = "security")]
    fn open(&mut self, now: Instant, rng: &mut Rng) -> Option<mac::Opened> {
        let opened = self.mac.open_sealed(now, rng);
        self.note_asked(now);
        if self.mac.take_news() {
            self.discovery.ask_again(now, rng);
        }
        #[cfg(feature = "thread")]
        if opened.is_some() {
            self.note_heard(now);
        }
        opened
    }

    /// A frame that the MAC has handed up at once: in a Thread network one in clear.
    #[inline(always)]
    fn on_heard<'s>(
        &mut self,
        frame: &Received<'_>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        #[cfg(feature = "thread")]
        if self.thread.is_some() {
            self.on_clear(frame, scratch, now);
            return Arrival::Nothing;
        }
        self.on_frame(frame, ip, scratch, now, rng)
    }

    /// A frame for this node: a packet, or a part of one.
    fn on_frame<'s>(
        &mut self,
        frame: &Received<'_>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Arrival<'m, 's> {
        self.routing.note_heard(frame.src);
        let outcome = match classify(frame.payload) {
            Ok(Dispatch::Fragment) => self.on_fragment(frame, ip, scratch, now, rng),
            Ok(_) => self.on_whole(frame, scratch),
            Err(_) => Err(LinkDrop::Dispatch),
        };
        outcome.unwrap_or_else(|reason| {
            if reason == LinkDrop::Compression {
                self.discovery.on_unknown_context(now);
            }
            self.count(reason);
            Arrival::Nothing
        })
    }

    /// A packet in one frame.
    fn on_whole<'s>(
        &self,
        frame: &Received<'_>,
        scratch: &'s mut Scratch,
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let Scratch(bytes) = scratch;
        let link = hop_of(frame);
        let (len, headers) = restore(&self.discovery.contexts, frame.payload, link, None, bytes)?;
        let packet = bytes.get_mut(..len).unwrap_or_default();
        Ok(Arrival::Packet(packet, self.hop(frame, headers.forms())))
    }

    /// The hop of a packet that came with this beside its bytes.
    fn hop(&self, frame: &Received<'_>, forms: HeaderForms) -> Hop {
        let form = match wire::IS_SUPPORTED {
            true => forms.tcp,
            false => TcpForm::Plain,
        };
        Hop {
            ingress: self.ingress(frame, forms.rpi),
            egress: TcpEgress::As(form),
            is_routed: false,
        }
    }

    /// The hop that a frame came over, as IP sees it. `option`: its packet's.
    fn ingress(&self, frame: &Received<'_>, option: Option<Rpi>) -> Ingress {
        Ingress {
            interface: self.discovery.id,
            from: Neighbour::One(frame.src.iid()),
            to_all: frame.dst.is_broadcast(),
            option,
            #[cfg(feature = "rpl")]
            signal_dbm: frame.meta.rssi_dbm,
        }
    }

    /// Restores the TCP header of a packet whose path ends here, be it that the packet leaves by
    /// another link (`leaves`).
    pub(in crate::link) fn end_path(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        hop: &mut Hop,
        leaves: bool,
        now: Instant,
    ) -> Result<(), LinkDrop> {
        self.restore_headers(header, packet, hop, now)?;
        if leaves {
            self.note_leaving(packet, now);
        }
        Ok(())
    }

    fn restore_headers(
        &mut self,
        header: &Header,
        packet: &mut [u8],
        hop: &mut Hop,
        now: Instant,
    ) -> Result<(), LinkDrop> {
        let TcpEgress::As(form) = hop.egress else {
            return Ok(());
        };
        if !wire::IS_SUPPORTED {
            return Ok(());
        }
        let tcphc = self.tcphc.as_deref_mut();
        tcp_headers::restore(tcphc, (header, packet), form, now)
            .inspect_err(|reason| self.counters.count(*reason))?;
        hop.egress = TcpEgress::Begins(tcphc::Origin::Outside);
        Ok(())
    }

    /// One fragment: kept until its packet is whole, or passed on.
    fn on_fragment<'s>(
        &mut self,
        frame: &Received<'_>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let parsed = lowpan_frag::Header::parse(frame.payload);
        let (header, piece) = parsed.map_err(|_| LinkDrop::MalformedFragment)?;
        self.note_fragment(frame.src, now);
        self.mac.note_fragment(frame.src, now);
        if IS_RELAY {
            self.note_promise(FragmentOrigin::new(frame, now));
        }
        let key = Key {
            from: frame.src,
            tag: header.datagram_tag,
            size: header.datagram_size,
        };
        if header.datagram_offset.is_none() {
            return self.on_first_fragment((key, piece), frame, ip, scratch, now, rng);
        }
        let offset = header.offset_bytes();
        match self.datagrams.on_next(key, offset, piece, now) {
            FragmentOutcome::Forward { next_hop, tag } if IS_RELAY => {
                let header = lowpan_frag::Header {
                    datagram_tag: tag,
                    ..header
                };
                self.relay_later(next_hop, header, piece, FragmentOrigin::new(frame, now))?;
                Ok(Arrival::Nothing)
            }
            FragmentOutcome::Complete(record) => Ok(self.on_gathered(record, frame)),
            // A drop is counted in the table, by its own reasons.
            FragmentOutcome::Stored
            | FragmentOutcome::Drop(_)
            | FragmentOutcome::Forward { .. } => Ok(Arrival::Nothing),
        }
    }

    /// The fragment with the headers: it decides where its packet goes.
    fn on_first_fragment<'s>(
        &mut self,
        (key, rest): (Key, &[u8]),
        frame: &Received<'_>,
        ip: &mut Ip<'_>,
        scratch: &'s mut Scratch,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let Scratch(bytes) = scratch;
        let link = hop_of(frame);
        let contexts = &self.discovery.contexts;
        let (len, headers) = restore(contexts, rest, link, Some(key.size), bytes)?;
        let piece = bytes.get_mut(..len).unwrap_or_default();
        let (header, rest) = Header::parse_start(piece).map_err(|_| LinkDrop::MalformedPacket)?;
        let ingress = self.ingress(frame, headers.rpi);
        let disposition = ip.disposition((&header, rest), &ingress);
        let is_far = !crate::ip::has_iid(&header.src, &frame.src.iid());
        self.note_first_fragment(frame.src, is_far, now);
        let (mut handling, option) = match disposition {
            Disposition::Local => (FragmentHandling::Reassemble, None),
            Disposition::Forward(hop) if IS_RELAY => self.way_forward(ip, &header, hop, &headers),
            Disposition::Route(hop) if IS_RELAY => {
                let hops_left = routing::hops_left(piece);
                self.settings.pacing.note_down(Some(hops_left));
                (self.handling_for(hop), ip.forwarded_option(headers.rpi))
            }
            Disposition::Refuse(kind) => {
                self.count(LinkDrop::Refused);
                let quote = quotable(piece, headers.tcp);
                return Ok(Arrival::Refuse { kind, quote });
            }
            Disposition::Forward(_) | Disposition::Route(_) => return Ok(Arrival::Nothing),
            Disposition::Drop(reason) => {
                ip.counters.count(reason);
                return Ok(Arrival::Nothing);
            }
        };
        let (mut onward, mut onward_len) = ([0; PSDU_LEN_MAX], 0);
        if IS_RELAY && let FragmentHandling::Forward { next_hop } = handling {
            // A packet that is dropped here opens no record: its other fragments go nowhere.
            if self.judge_first(next_hop, piece, ip, rng).is_err() {
                ip.counters.count(crate::ip::PacketDrop::Congestion);
                return Ok(Arrival::Nothing);
            }
            let start = (&mut *piece, &headers);
            let routing = (option, matches!(disposition, Disposition::Route(_)));
            match self.rewrite_first(next_hop, key.size, frame, start, routing, &mut onward) {
                Some(len) => onward_len = len,
                None => handling = FragmentHandling::Reassemble,
            }
        }
        let len_max = self.datagrams.packet_len_max(handling);
        let is_known = self.mac.is_trusted(frame.src);
        let datagrams = &mut self.datagrams;
        match datagrams.on_first(key, headers.first(piece), handling, is_known, now) {
            FragmentOutcome::Forward { next_hop, tag } if IS_RELAY => {
                let onward = onward.get_mut(..onward_len).unwrap_or_default();
                self.relay_first(next_hop, tag, onward, FragmentOrigin::new(frame, now))?;
                ip.counters.forwarded = ip.counters.forwarded.wrapping_add(1);
                Ok(Arrival::Nothing)
            }
            FragmentOutcome::Complete(record) => Ok(self.on_gathered(record, frame)),
            // Only a router sends this error, about a packet that it would forward (RFC 4443 §3.2).
            FragmentOutcome::Drop(datagram::FragmentDrop::TooLarge) if !disposition.is_local() => {
                Ok(too_big(piece, headers.tcp, len_max))
            }
            FragmentOutcome::Stored
            | FragmentOutcome::Drop(_)
            | FragmentOutcome::Forward { .. } => Ok(Arrival::Nothing),
        }
    }

    /// All fragments of a packet have come: processes it where it was reassembled.
    fn on_gathered<'s>(&mut self, record: RecordId, frame: &Received<'_>) -> Arrival<'m, 's> {
        let Some((mut whole, forms)) = self.datagrams.lend(record) else {
            return Arrival::Nothing;
        };
        // UDP over IPv6 has no zero checksum: one that is zero was elided by compression.
        complete_udp_checksum(whole.packet());
        let hop = self.hop(frame, forms);
        Arrival::Gathered(whole, hop)
    }
}

/// The error about a packet that begins with `piece` and is longer than this node can keep.
fn too_big<'m, 's>(piece: &'s [u8], form: TcpForm, len_max: usize) -> Arrival<'m, 's> {
    let mtu = len_max.min(IPV6_MTU_MIN) as u32;
    let kind = ErrorKind::PacketTooBig { mtu };
    let quote = quotable(piece, form);
    Arrival::Refuse { kind, quote }
}

const fn hop_of(frame: &Received<'_>) -> LinkPair {
    LinkPair {
        src: frame.src,
        dst: frame.dst,
    }
}

/// Decompresses a frame's headers and lays its payload behind them; returns the length, and
/// what was restored.
pub(super) fn restore(
    contexts: &Contexts,
    bytes: &[u8],
    link: LinkPair,
    datagram_size: Option<u16>,
    out: &mut [u8],
) -> Result<(usize, Decompressed), LinkDrop> {
    let headers = decompress(bytes, link, contexts, datagram_size, out);
    let headers = headers.map_err(|_| LinkDrop::Compression)?;
    let payload = bytes.get(headers.compressed_len..).unwrap_or_default();
    let room = out.get_mut(headers.uncompressed_len..).unwrap_or_default();
    if payload.len() > room.len() {
        return Err(LinkDrop::Compression);
    }
    let len = headers.uncompressed_len + copy(room, payload);
    #[cfg(feature = "rpl")]
    if (cfg!(feature = "plain-rpl") || headers.unnumbered == 0)
        && is_foreign(out.get(..len).unwrap_or_default())
    {
        return Err(LinkDrop::MalformedPacket);
    }
    // In a fragment the packet is not whole yet: see `on_gathered`.
    if headers.udp_checksum_elided && datagram_size.is_none() {
        complete_udp_checksum(out.get_mut(..len).unwrap_or_default());
    }
    debug_assert!(len >= ipv6::HEADER_LEN, "headers were restored");
    Ok((len, headers))
}
