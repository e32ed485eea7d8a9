//! Onwards: packets of other nodes, and the errors that their sources get.

use core::net::Ipv6Addr;

use super::{Node, mesh_mut};
use crate::ip::{self, Disposition, InterfaceId, NextHop, icmp, icmp::ErrorKind};
use crate::link::{Class, Hop, Link, Refusal, Report};
use crate::time::Instant;
use crate::wire::ipv6::{self, HOP_LIMIT_AT, Header};

impl<'m> Node<'m> {
    /// Passes on a whole packet.
    pub(super) fn forward(
        &mut self,
        next: NextHop,
        packet: &[u8],
        hop: &Hop,
        now: Instant,
    ) -> Result<(), Disposition> {
        let Some((head, rest)) = packet.split_first_chunk::<{ HOP_LIMIT_AT + 1 }>() else {
            return Err(Disposition::Drop(ip::PacketDrop::Malformed));
        };
        let mut head = *head;
        ipv6::count_down(&mut head);
        let Self { links, ip, rng, .. } = self;
        let link = links.get_mut(usize::from(next.interface.0));
        let link = link.ok_or(Disposition::Drop(ip::PacketDrop::NoRoute))?;
        if link.misses(next.neighbour) {
            return Err(Disposition::Refuse(ErrorKind::AddressUnreachable));
        }
        link.forward((&mut head, rest), hop, ip, now, rng)?;
        self.ip.counters.forwarded = self.ip.counters.forwarded.wrapping_add(1);
        Ok(())
    }

    /// Queues a packet of this node's own, in two pieces, before data.
    pub(super) fn enqueue_control(
        &mut self,
        next: NextHop,
        parts: [&[u8]; 2],
    ) -> Result<(), Disposition> {
        let link = self.link_towards(next)?;
        link.queue(parts, Class::Control).map_err(of_own)
    }

    /// The link that `next` leads over.
    pub(super) fn link_towards(&mut self, next: NextHop) -> Result<&mut Link<'m>, Disposition> {
        let link = self.link_mut(next.interface);
        link.ok_or(Disposition::Drop(ip::PacketDrop::NoRoute))
    }

    /// Tells the source of a packet why it went no further. Returns whether that is allowed.
    ///
    /// `packet`: IPv6 header first; a first fragment's part of it will do.
    pub(super) fn refuse(
        &mut self,
        id: InterfaceId,
        kind: ErrorKind,
        header: &Header,
        packet: &[u8],
        now: Instant,
    ) -> bool {
        if !cfg!(feature = "icmp") {
            return false;
        }
        if kind == ErrorKind::SentBack {
            self.ip.counters.count(ip::PacketDrop::SentBack);
        }
        if !icmp::may_answer(header, packet, kind) {
            return false;
        }
        if !self.ip.may_send_error(now) {
            return true;
        }
        let Some(hop) = self.next_hop(&header.src, id) else {
            self.ip.counters.count(ip::PacketDrop::NoRoute);
            return true;
        };
        let src = self.answer_from(header, id, hop);
        let hop_limit = self.ip.hop_limit();
        let error = src.and_then(|src| icmp::error(kind, packet, header.src, src, hop_limit));
        if let Some((head, quoted)) = error
            && self.enqueue_control(hop, [&head, quoted]).is_err()
        {
            self.ip.counters.count(ip::PacketDrop::QueueFull);
        }
        true
    }

    /// The source address for an answer over `hop` to a packet with this `header` from link `id`:
    /// the packet's destination, if that is an address of this node that is also valid on the link
    /// of `hop` (RFC 4443 §2.2, RFC 4007 §9).
    pub(super) fn answer_from(
        &self,
        header: &Header,
        id: InterfaceId,
        hop: NextHop,
    ) -> Option<Ipv6Addr> {
        let holds = hop.interface == id || !header.dst.is_unicast_link_local();
        match holds && self.ip.owns(&header.dst, id) {
            true => Some(header.dst),
            false => self.ip.source_for(&header.src, hop.interface),
        }
    }

    /// Handles a report of a link: if the last hop of a packet does not answer, the packet's source
    /// gets an ICMPv6 error, and this node's own TCP learns that its segment was given up; if the
    /// router of a link is gone, the router of another link replaces it.
    pub(super) fn on_report(&mut self, id: InterfaceId, report: Report<'m>, now: Instant) {
        match &report {
            Report::Undelivered(packet) => match packet.parts() {
                Some((header, segment)) if self.ip.owns(&header.src, id) => {
                    self.on_own_undelivered(id, &header, segment, now);
                }
                _ => {
                    if let Some((header, quote, kind)) = packet.refused() {
                        self.refuse(id, kind, &header, quote, now);
                        // The link that the answer leaves by may have been polled before this one.
                        self.must_poll_again = true;
                    }
                }
            },
            #[cfg(feature = "rpl")]
            Report::Sent(sent) => self.on_frame_sent(id, *sent, now),
            Report::RouterGone => {
                // Unless a route was set since.
                if self.ip.default_route().is_none() {
                    let router = self.links.iter().find_map(Link::router);
                    self.ip.set_default_route(router);
                    // As above: packets that wait may leave by that link.
                    self.must_poll_again = true;
                }
            }
        }
        if let Some(mesh) = mesh_mut(self.links, id) {
            mesh.end_report(report);
        }
    }
}

/// The outcome for a packet of this node itself that was not queued: no source gets an ICMPv6
/// error, since only a router reports that a packet is too big (RFC 4443 §3.2).
pub(super) fn of_own(refusal: Refusal) -> Disposition {
    match refusal {
        Refusal::TooBig { .. } => Disposition::Drop(ip::PacketDrop::NoRoute),
        refusal => Disposition::from(refusal),
    }
}
