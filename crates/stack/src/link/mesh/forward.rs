//! Onwards: fragments of other nodes' packets, and their whole packets' way into the queue.

use super::pace::ExchangeTimes;
use super::packet_meta::{PacketMeta, RplDirection};
use super::routing;
use super::{Forwarding, Mesh, Relaying, link_addr};
use crate::ip::queue::AqmDecision;
use crate::ip::{Ip, NextHop};
use crate::limits::{IPV6_MTU_MIN, PSDU_LEN_MAX};
use crate::link::LinkDrop;
use crate::link::arrival::{Hop, Refusal};
use crate::lowpan::datagram::FragmentHandling;
use crate::lowpan::{Decompressed, LinkPair, fragment};
use crate::mac::{self, Class, Condition, Frame, Protocol, Received};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{Ecn, ecn_of, mark_congestion};
use crate::wire::rpl_option::Rpi;
use crate::wire::{LinkAddr, ieee802154, ipv6, lowpan_frag, route_form};

/// The frame that a fragment came in, as far as a relay needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentOrigin {
    from: LinkAddr,
    more_follow: bool,
    /// When the frame's last symbol was on the air.
    end: Instant,
    at: Instant,
}

impl FragmentOrigin {
    pub(super) const fn new(frame: &Received<'_>, now: Instant) -> Self {
        Self {
            from: frame.src,
            more_follow: frame.pending,
            end: frame.meta.at,
            at: now,
        }
    }

    /// When the fragment stops waiting for the next one of its sender.
    fn waits_until(&self) -> Instant {
        self.at + mac::FLUSH_AFTER
    }
}

impl Mesh<'_> {
    /// How a fragmented packet for `hop` is forwarded: by fragments if it leaves by the link by
    /// which it came and nothing needs the whole packet. A packet for a sleeping neighbour is
    /// reassembled, and waits whole.
    pub(super) fn handling_for(&self, hop: NextHop) -> FragmentHandling {
        match link_addr(hop.neighbour) {
            Some(next_hop)
                if hop.interface == self.discovery.id
                    && self.settings.relaying == Relaying::Fragments
                    && !self.sleeps(next_hop) =>
            {
                FragmentHandling::Forward { next_hop }
            }
            _ => FragmentHandling::Reassemble,
        }
    }

    /// How a fragmented packet is forwarded over `hop`, and with which RPL option. It is
    /// reassembled first if it gets a new header or a UDP checksum here.
    pub(super) fn way_forward(
        &self,
        ip: &Ip<'_>,
        header: &ipv6::Header,
        hop: NextHop,
        headers: &Decompressed,
    ) -> (FragmentHandling, Option<Rpi>) {
        let way = RplDirection::with(ip.forwarded_option(headers.rpi));
        let meta = PacketMeta::own(Class::Own).on_way(way);
        let inserted = routing::InsertedHeaders::of(ip, header, hop, &meta);
        match inserted.is_long() || headers.udp_checksum_elided {
            true => (FragmentHandling::Reassemble, None),
            false => (self.handling_for(hop), inserted.option()),
        }
    }

    /// Writes a first fragment for the next hop, except its tag; its compressed header changes at
    /// each hop. Returns its length. `None`: the packet has to be reassembled here, because a
    /// fragment does not fit a frame to `next_hop`: the header has grown and its sender left no
    /// slack, or addresses are longer on that link.
    ///
    /// `piece`: the decompressed fragment, not changed in the end; `headers`: the result of its
    /// decompression.
    pub(super) fn rewrite_first(
        &mut self,
        next_hop: LinkAddr,
        datagram_size: u16,
        frame: &Received<'_>,
        (piece, headers): (&mut [u8], &Decompressed),
        (option, is_routed): (Option<Rpi>, bool),
        out: &mut [u8],
    ) -> Option<usize> {
        let link = LinkPair {
            src: self.mac.source(),
            dst: next_hop,
        };
        let len_max = self.mac.payload_len_max(next_hop);
        let came = ieee802154::Header::data(0, frame.dst, frame.src, 0);
        if self.mac.sealed_len_max(&came) > len_max {
            return None;
        }
        let header = lowpan_frag::Header {
            datagram_size,
            datagram_tag: 0,
            datagram_offset: None,
        };
        let hop_limit = *piece.get(ipv6::HOP_LIMIT_AT)?;
        if is_routed {
            route_form::advance(piece)?;
        }
        ipv6::count_down(piece);
        let mut first = headers.first(piece);
        first.forms.rpi = option;
        let len =
            fragment::forward_first(first, header, link, &self.discovery.contexts, len_max, out);
        copy(
            piece.get_mut(ipv6::HOP_LIMIT_AT..).unwrap_or_default(),
            &[hop_limit],
        );
        if is_routed {
            route_form::retreat(piece);
        }
        len.ok()
    }

    /// Notes of a fragment whether its sender had promised it, and promises another one. What fires
    /// a waiting fragment is the next one of its sender, wherever either goes.
    pub(super) fn note_promise(&mut self, came: FragmentOrigin) {
        if self.settings.pacing.is_measured() {
            let until = came.more_follow.then(|| came.waits_until());
            self.mac.note_promise(came.from, came.end, until);
        }
    }

    /// Passes on a first fragment that [`Self::rewrite_first`] has written.
    pub(super) fn relay_first(
        &mut self,
        next_hop: LinkAddr,
        datagram_tag: u16,
        fragment: &mut [u8],
        came: FragmentOrigin,
    ) -> Result<(), LinkDrop> {
        let tag = fragment.get_mut(lowpan_frag::TAG_AT..).unwrap_or_default();
        copy(tag, &datagram_tag.to_be_bytes());
        self.relay(next_hop, datagram_tag, fragment, came)
    }

    /// Passes on a later fragment: only its tag changes.
    pub(super) fn relay_later(
        &mut self,
        next_hop: LinkAddr,
        header: lowpan_frag::Header,
        piece: &[u8],
        came: FragmentOrigin,
    ) -> Result<(), LinkDrop> {
        let mut out = [0; PSDU_LEN_MAX];
        let len = header
            .emit(&mut out)
            .map_err(|_| LinkDrop::FragmentTooLong)?;
        let len = len + copy(out.get_mut(len..).unwrap_or_default(), piece);
        self.relay(
            next_hop,
            header.datagram_tag,
            out.get(..len).unwrap_or_default(),
            came,
        )
    }

    /// Queues a received fragment for the next hop. If there is no room, its packet is lost, and
    /// its other fragments are cancelled.
    ///
    /// It waits in the radio for the next frame only if its sender has announced more (the frame
    /// pending bit); the end of a window, a FIN or a pure ACK leaves at once. If the pace is
    /// measured, a relay that copies frames delays the fragment likewise.
    fn relay(
        &mut self,
        next_hop: LinkAddr,
        tag: u16,
        payload: &[u8],
        came: FragmentOrigin,
    ) -> Result<(), LinkDrop> {
        let mac = &mut self.mac;
        let may_wait = mac.can_preload() && self.settings.forwarding == Forwarding::Immediate;
        let frame = Frame {
            to: next_hop,
            token: tag,
            payload,
            class: Class::Forward,
            since: came.at,
        };
        if self.settings.pacing.is_measured() {
            let apart = mac.note_arrival(next_hop, came.from, came.end);
            if let Some(exchange) = mac.exchange(next_hop)
                && self
                    .settings
                    .follows(mac.flow(next_hop), tag, came.at, exchange)
            {
                let copy = came.at.since(came.end);
                let lag = self
                    .settings
                    .lag(ExchangeTimes { exchange, copy }, apart, mac);
                mac.pause(next_hop, came.at + lag, came.at);
            }
        }
        let queued = if may_wait && came.more_follow && mac.keeps_promises(came.from) {
            let condition = Condition {
                from: came.from,
                protocol: Protocol::FRAGMENTS,
            };
            mac.enqueue_conditional(&frame, condition, came.waits_until())
        } else {
            mac.enqueue(&frame)
        };
        if let Err(reason) = queued {
            self.datagrams.fragment_lost(tag);
            self.mac.cancel(tag);
            return Err(match reason {
                mac::FrameDrop::BadLength => LinkDrop::FragmentTooLong,
                _ => LinkDrop::RelayQueueFull,
            });
        }
        self.counters.fragments_relayed = self.counters.fragments_relayed.wrapping_add(1);
        Ok(())
    }

    /// Queues a whole packet of this node's own, in two pieces.
    pub(in crate::link) fn queue(
        &mut self,
        parts: [&[u8]; 2],
        class: Class,
    ) -> Result<(), Refusal> {
        self.push(parts, PacketMeta::own(class))
    }

    /// Queues a whole packet that is passed on.
    pub(in crate::link) fn forward(
        &mut self,
        (head, rest): (&mut [u8], &[u8]),
        hop: &Hop,
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), Refusal> {
        let waiting = self.waiting_before([head, rest], hop.egress);
        self.avoid_congestion(waiting, head, ip, rng)?;
        let option = ip.forwarded_option(hop.ingress.option);
        let way = match hop.is_routed {
            true => RplDirection::Routed,
            false => RplDirection::with(option),
        };
        let meta = PacketMeta::new(Class::Own, hop.egress, now).on_way(way);
        if self.keeps_back([head, rest], meta, ip, now) {
            return Ok(());
        }
        self.push_forwarded([head, rest], meta, ip, now)
    }

    pub(super) fn push(&mut self, parts: [&[u8]; 2], meta: PacketMeta) -> Result<(), Refusal> {
        self.check_len(parts, meta)?;
        let queued = self.queue.push_parts(parts, meta.to_bits());
        queued.then_some(()).ok_or(Refusal::Full)
    }

    /// Whether the link carries a packet as long as this one in two pieces.
    pub(super) fn check_len(&self, parts: [&[u8]; 2], meta: PacketMeta) -> Result<(), Refusal> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let len_max = match meta.way {
            RplDirection::Begins => IPV6_MTU_MIN,
            // On its way it may have a header more.
            RplDirection::Up { .. } | RplDirection::Routed => {
                self.datagrams.packet_len_max(FragmentHandling::Reassemble)
            }
        };
        if len > len_max {
            let mtu = IPV6_MTU_MIN as u32;
            return Err(Refusal::TooBig { mtu });
        }
        Ok(())
    }

    /// As [`Self::avoid_congestion`], of a packet passed on to `next_hop` in fragments, which wait
    /// in the MAC: the packets before it are counted by the frames of a full one.
    ///
    /// Where the pace is measured, this node also marks packets of several senders, whatever the
    /// discipline, once its queue is as full as the MAC allows. Each sender measures the path of a
    /// lone flow, and a radio that acknowledges by itself takes frames that find no room.
    pub(super) fn judge_first(
        &mut self,
        next_hop: LinkAddr,
        piece: &mut [u8],
        ip: &mut Ip<'_>,
        rng: &mut Rng,
    ) -> Result<(), Refusal> {
        let frames = usize::from(self.settings.mss_frames);
        let waiting = self.mac.queue_len().checked_div(frames).unwrap_or(0);
        self.avoid_congestion(waiting, piece, ip, rng)?;
        if self.is_crowded(next_hop) {
            mark(piece, ip);
        }
        Ok(())
    }

    /// Counts a segment of this node's own, `len` bytes before compression in the fragmenter's
    /// buffer, and marks it as [`Self::judge_first`] does: this node is one of the senders to
    /// `next_hop`, and yields as they do. Packets that waited in the queue are not judged.
    pub(super) fn judge_own(&mut self, next_hop: LinkAddr, len: usize, ip: &mut Ip<'_>) {
        let frame = self.mac.payload_len_max(next_hop);
        if !self.settings.pacing.is_measured() || len <= frame {
            return;
        }
        self.mac.note_own(next_hop, len.div_ceil(frame.max(1)));
        if self.is_crowded(next_hop) {
            mark(self.outgoing.buffer(), ip);
        }
    }

    /// Whether the nodes that send over this one to `next_hop` had better send less.
    fn is_crowded(&self, next_hop: LinkAddr) -> bool {
        let frame = self.mac.payload_len_max(next_hop).max(1);
        let segment = match self.settings.mss_frames {
            0 => IPV6_MTU_MIN.div_ceil(frame),
            frames => usize::from(frames),
        };
        self.settings.pacing.is_measured() && self.mac.is_crowded(next_hop, segment)
    }

    /// Asks the queue's discipline about a packet that begins with `head` and has `waiting`
    /// others before it, and marks it.
    fn avoid_congestion(
        &mut self,
        waiting: usize,
        head: &mut [u8],
        ip: &mut Ip<'_>,
        rng: &mut Rng,
    ) -> Result<(), Refusal> {
        let Some(ecn) = ecn_of(head) else {
            return Ok(());
        };
        match self.settings.discipline.judge(waiting, ecn, rng) {
            AqmDecision::Enqueue => Ok(()),
            AqmDecision::Mark => {
                mark(head, ip);
                Ok(())
            }
            AqmDecision::Drop => Err(Refusal::Congestion),
        }
    }
}

/// Marks and counts a packet that begins with `head`, if it may be marked and is not.
fn mark(head: &mut [u8], ip: &mut Ip<'_>) {
    if ecn_of(head) != Some(Ecn::Ce) && mark_congestion(head) {
        ip.counters.marked = ip.counters.marked.wrapping_add(1);
    }
}
