//! Packets from links: delivery to their protocol, or forwarding.
//!
//! Each packet is parsed once, and IP decides once about it.

use core::net::Ipv6Addr;

use super::forward::of_own;
use super::{Classified, Node, TICK, routing};
use crate::ip::{self, Disposition, Ingress, InterfaceId, icmp, ndp};
use crate::limits::IS_RELAY;
use crate::link::{Arrival, Class, Event, Hop, Link, Scratch};
use crate::time::Instant;
use crate::wire::icmpv6::{self, MessageView, kind};
use crate::wire::ipv6::{self, Header, next_header};
use crate::wire::{route_form, tcp, udp};

impl<'m> Node<'m> {
    /// Deals with what waited for its acknowledgement to leave.
    pub(super) fn poll_arrivals(&mut self, now: Instant) {
        for id in self.interface_ids() {
            let _is_dealt_with = self.poll_arrival(id, now);
            // TCPlE may let several segments go on at once; a mesh has one at most.
            #[cfg(feature = "tcple")]
            for _ in 0..ARRIVALS_MAX {
                if !self.poll_arrival(id, now) {
                    break;
                }
            }
        }
    }

    /// Deals with what waited on one link; returns whether there was something.
    fn poll_arrival(&mut self, id: InterfaceId, now: Instant) -> bool {
        let waits = self.link(id).is_some_and(Link::has_arrival);
        if waits {
            let delivered = self.ip.counters.delivered;
            let _ = self.on_link(id, None, now);
            if self.ip.counters.delivered != delivered {
                self.news_at = Some(now + TICK);
            }
        }
        waits
    }

    /// Passes an event to link `id`, or without an event polls it for a waiting packet, and handles
    /// the resulting packet. Returns the rest of the event.
    // Not inlined: its scratch memory should be on the stack only while a packet is processed.
    #[inline(never)]
    pub(super) fn on_link<'e>(
        &mut self,
        id: InterfaceId,
        event: Option<Event<'e>>,
        now: Instant,
    ) -> Option<Event<'e>> {
        let mut scratch = Scratch::new();
        let Self { links, ip, rng, .. } = self;
        let link = links.get_mut(usize::from(id.0))?;
        let (arrival, rest) = match event {
            Some(event) => link.on_event(event, ip, &mut scratch, now, rng),
            None => (link.poll_arrival(ip, &mut scratch, now, rng), None),
        };
        #[cfg(feature = "rpl")]
        if let Some(routing) = self.routing.as_mut() {
            routing.note_heard(id, link, now);
        }
        self.on_arrival(id, arrival, now);
        rest
    }

    /// Handles the result of an event on link `id`.
    pub(super) fn on_arrival(&mut self, id: InterfaceId, arrival: Arrival<'m, '_>, now: Instant) {
        match arrival {
            Arrival::Nothing => {}
            Arrival::Given(packet, hop) => {
                if let Some(classified) = self.classify(packet, &hop) {
                    self.carry_out(&classified, packet, &hop, now);
                }
            }
            Arrival::Packet(packet, hop) => self.on_packet(id, packet, hop, now),
            Arrival::Gathered(mut whole, hop) => {
                self.on_packet(id, whole.packet(), hop, now);
                if let Some(link) = self.link_mut(id) {
                    link.give_back(whole);
                }
            }
            Arrival::Refuse { kind, quote } => {
                if let Ok((header, _)) = Header::parse_start(quote) {
                    self.refuse(id, kind, &header, quote, now);
                }
            }
        }
    }

    /// A whole packet: it may lie within another one, which ends here.
    fn on_packet(&mut self, id: InterfaceId, packet: &mut [u8], hop: Hop, now: Instant) {
        let Some(classified) = self.classify(packet, &hop) else {
            return;
        };
        match routing::inner_at(&self.ip, &classified.header, classified.disposition, packet) {
            None => self.on_classified(id, classified, packet, hop, now),
            Some(at) => {
                let opened = self.open_tunnel(&classified, packet, at, hop);
                if let Some((classified, packet, hop)) = opened {
                    self.on_classified(id, classified, packet, hop, now);
                }
            }
        }
    }

    /// A whole packet, whose header may have to be restored where its path over the link ends.
    pub(super) fn on_classified(
        &mut self,
        id: InterfaceId,
        mut classified: Classified,
        packet: &mut [u8],
        mut hop: Hop,
        now: Instant,
    ) {
        if IS_RELAY && let Disposition::Route(next) = classified.disposition {
            hop.is_routed = true;
            classified.disposition = match route_form::advance(packet) {
                Some(_) => Disposition::Forward(next),
                None => Disposition::Drop(ip::PacketDrop::ExtensionHeader),
            };
        }
        let leaves = match classified.disposition {
            Disposition::Forward(next) if IS_RELAY => next.interface != id,
            _ => false,
        };
        if (leaves || classified.disposition == Disposition::Local)
            && let Some(link) = self.link_mut(id)
            && link
                .end_path(&classified.header, packet, &mut hop, leaves, now)
                .is_err()
        {
            return;
        }
        self.carry_out(&classified, packet, &hop, now);
    }

    /// Parses a packet and decides its way; `None`: the bytes are no IPv6 packet.
    pub(super) fn classify(&mut self, packet: &[u8], hop: &Hop) -> Option<Classified> {
        let Ok((header, payload)) = Header::parse(packet) else {
            self.ip.counters.count(ip::PacketDrop::Malformed);
            return None;
        };
        Some(Classified {
            header,
            len: ipv6::HEADER_LEN + payload.len(),
            disposition: self.ip.disposition((&header, payload), &hop.ingress),
        })
    }

    fn carry_out(&mut self, classified: &Classified, packet: &[u8], hop: &Hop, now: Instant) {
        let Classified {
            header,
            len,
            disposition,
        } = classified;
        // Padding of the link below is no part of the packet.
        let packet = packet.get(..*len).unwrap_or_default();
        self.note_source(header, &hop.ingress, now);
        let outcome = match *disposition {
            Disposition::Local => self.on_local((header, false), packet, &hop.ingress, now),
            Disposition::Forward(next) if IS_RELAY => {
                self.remind_leaf(header, &hop.ingress, now);
                self.forward(next, packet, hop, now)
            }
            disposition => Err(disposition),
        };
        match outcome {
            Err(Disposition::Drop(ip::PacketDrop::Fragment)) => {
                self.on_fragment(header, packet, hop, now);
            }
            outcome => self.conclude(outcome, (header, packet), hop, now),
        }
    }

    /// Counts a dropped packet, or sends an ICMPv6 error to its source.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn conclude(
        &mut self,
        outcome: Result<(), Disposition>,
        (header, packet): (&Header, &[u8]),
        hop: &Hop,
        now: Instant,
    ) {
        let id = hop.ingress.interface;
        match outcome {
            Err(Disposition::Drop(reason)) => self.ip.counters.count(reason),
            Err(Disposition::Refuse(kind)) => {
                let quote = hop.quotable(packet);
                if !self.refuse(id, kind, header, quote, now)
                    && let Some(reason) = kind.in_silence()
                {
                    self.ip.counters.count(reason);
                }
            }
            _ => {}
        }
    }

    /// A packet for this node, to its protocol. `was_cut`: it came in fragments.
    pub(super) fn on_local(
        &mut self,
        (header, was_cut): (&Header, bool),
        packet: &[u8],
        ingress: &Ingress,
        now: Instant,
    ) -> Result<(), Disposition> {
        let payload = packet.get(ipv6::HEADER_LEN..).unwrap_or_default();
        let (protocol, upper) = self.ip.upper_layer((header, was_cut), payload)?;
        // A packet from the unspecified address is accepted only if it is neighbour discovery,
        // which a node may send before it has an address.
        let asks_for_one = cfg!(feature = "mesh")
            && protocol == icmpv6::NEXT_HEADER
            && header.hop_limit == ndp::HOP_LIMIT;
        if header.src == Ipv6Addr::UNSPECIFIED && !asks_for_one {
            return Err(Disposition::Drop(ip::PacketDrop::BadAddress));
        }
        self.ip.counters.delivered = self.ip.counters.delivered.wrapping_add(1);
        let id = ingress.interface;
        match protocol {
            tcp::NEXT_HEADER if !header.dst.is_multicast() => {
                self.on_segment(id, header, upper, now)
            }
            icmpv6::NEXT_HEADER => self.on_icmp(header, upper, ingress, now),
            udp::NEXT_HEADER => self.on_datagram(id, header, upper, now),
            next_header::NONE => Err(Disposition::Drop(ip::PacketDrop::UnknownProtocol)),
            _ if header.dst.is_multicast() => {
                Err(Disposition::Drop(ip::PacketDrop::UnknownProtocol))
            }
            _ => Err(ip::UNKNOWN_PROTOCOL),
        }
    }

    /// An ICMPv6 message for this node.
    // Not inlined: what neighbour discovery needs of the stack should not lie below a segment's
    // work.
    #[inline(never)]
    fn on_icmp(
        &mut self,
        header: &Header,
        bytes: &[u8],
        ingress: &Ingress,
        now: Instant,
    ) -> Result<(), Disposition> {
        let drop = |reason| Err(Disposition::Drop(reason));
        if !icmpv6::is_checksum_valid(&header.src, &header.dst, bytes) {
            return drop(ip::PacketDrop::BadIcmp);
        }
        let Ok(message) = MessageView::parse(bytes) else {
            return drop(ip::PacketDrop::BadIcmp);
        };
        let id = ingress.interface;
        match message.kind {
            kind::ECHO_REQUEST if !cfg!(feature = "icmp") => drop(ip::PacketDrop::IgnoredIcmp),
            kind::ECHO_REQUEST => match self.ip.may_answer_echo(now) {
                true => self.answer_echo(id, header, &message),
                false => drop(ip::PacketDrop::TooMany),
            },
            kind::ROUTER_SOLICITATION..=kind::NEIGHBOR_ADVERTISEMENT => {
                let Self { links, ip, rng, .. } = self;
                let link = links.get_mut(usize::from(id.0));
                link.map_or(Err(ip::PacketDrop::IgnoredIcmp), |link| {
                    link.on_discovery((header, &message), ingress, ip, now, rng)
                })
                .map_err(Disposition::Drop)
            }
            #[cfg(feature = "rpl")]
            kind::RPL => self.on_routing(header, (message.code, message.rest), ingress, now),
            #[cfg(feature = "rpl")]
            kind::UNREACHABLE if message.code == icmpv6::unreachable::SOURCE_ROUTE => {
                self.on_broken_route(header, message.rest, ingress, now);
                Ok(())
            }
            _ => self.on_icmp_error(id, &message, now),
        }
    }

    fn answer_echo(
        &mut self,
        id: InterfaceId,
        header: &Header,
        request: &MessageView<'_>,
    ) -> Result<(), Disposition> {
        let no_route = Err(Disposition::Drop(ip::PacketDrop::NoRoute));
        let Some(hop) = self.next_hop(&header.src, id) else {
            return no_route;
        };
        let Some(src) = self.answer_from(header, id, hop) else {
            return no_route;
        };
        let reply = icmp::echo_reply(
            (request.first_word(), request.rest),
            header.src,
            src,
            self.ip.hop_limit(),
        );
        let Some(head) = reply else {
            return Err(Disposition::Drop(ip::PacketDrop::BadIcmp));
        };
        let queued = self.queue_or_cut(hop, &head, request.rest, Class::Control);
        queued.map_err(of_own)
    }
}

/// Segments that TCPlE lets go on at a time: as many as places of one link can be told apart.
#[cfg(feature = "tcple")]
const ARRIVALS_MAX: usize = 128;
