//! Routing headers: conversion between their form in memory and the two forms on the air.
//!
//! In memory a packet holds source routes and tunnels as any IPv6 packet does, and its RPL packet
//! information goes [beside it](super::HeaderForms). On the air they are
//!
//! - 6LoWPAN routing headers ahead of the IPv6 header, where the DODAG's T flag is set: the hops
//!   yet to visit, the RPL packet information, and what is left of an outer header. The IPv6
//!   header behind them is the inner one, or has the source route's last address as destination;
//! - otherwise ordinary extension headers, the RPL option first.
//!
//! Place: [`begin`] is the first step of compression; [`LeadingHeaders`] is what decompression
//! finds first. Headers that 6LoRH cannot express are sent as ordinary extension headers: a source
//! route that is too long or not the root's, an outer header that has a flow label or another
//! traffic class than its packet.
//! Left out: the meaning of routes; the visited addresses of a route, which 6LoRH does not keep.
//! Sources: RFC 8138; RFC 9035; RFC 6282 §4.2; RFC 6553; RFC 6554; RFC 6040 for marks of congestion
//! on an outer header, which has no traffic class of its own here.

use core::net::Ipv6Addr;

use super::contexts::{Contexts, low_64};
use super::restored::{DecompressError, Restored, header_of};
use super::{Encapsulation, LinkPair, PartlyCompressed};
use crate::limits::ROUTE_HOPS_MAX;
use crate::wire::cursor::{Full, Writer};
use crate::wire::ipv6::{self, Ecn, next_header};
use crate::wire::lorh::{self, RoutingHeaders};
use crate::wire::rpl_option::{self, Rpi};
use crate::wire::source_route::{self, SourceRoute};
use crate::wire::{lowpan_iphc, lowpan_nhc, same};

/// Bytes of a packet that fragment headers do not number, less those that they number beside; where
/// the feature `rpl` is off, nothing.
pub type Unnumbered = i16;

/// How many of the first `len` bytes of a packet fragment headers number.
pub(super) const fn numbered(len: usize, unnumbered: Unnumbered) -> usize {
    shifted(len, -(unnumbered as isize))
}

/// How many bytes of a packet end where fragment headers count `numbered`: undoes [`numbered`].
pub(super) const fn unabridged(numbered: usize, unnumbered: Unnumbered) -> usize {
    shifted(numbered, unnumbered as isize)
}

/// `len` and `by` together, of which both are lengths of a packet's parts; none are below zero.
const fn shifted(len: usize, by: isize) -> usize {
    match len.wrapping_add_signed(by) {
        len if len > isize::MAX as usize => 0,
        len => len,
    }
}

/// Bytes of hop-by-hop options that hold the RPL option alone.
pub(super) const OPTION_LEN: usize = rpl_option::HEADER_LEN;

/// Addresses that a packet visits, in order.
#[derive(Clone, Copy)]
struct Hops {
    addrs: [Ipv6Addr; ROUTE_HOPS_MAX],
    len: usize,
}

impl Hops {
    const NONE: Self = Self {
        addrs: [Ipv6Addr::UNSPECIFIED; ROUTE_HOPS_MAX],
        len: 0,
    };

    /// Appends one; `None` where there are too many.
    fn push(&mut self, addr: &Ipv6Addr) -> Option<()> {
        *self.addrs.get_mut(self.len)? = *addr;
        self.len += 1;
        Some(())
    }

    fn as_slice(&self) -> &[Ipv6Addr] {
        self.addrs.get(..self.len).unwrap_or_default()
    }
}

/// Writes the routing headers that precede a packet's compressed IPv6 header.
///
/// `begun`: the packet, from its first IPv6 header on; then what comes behind the headers that were
/// written. `routes`: whether source routes and tunnels may be written as 6LoRH.
#[inline(never)]
pub(super) fn begin(
    begun: &mut PartlyCompressed<'_>,
    rpi: Option<Rpi>,
    routes: bool,
    contexts: &Contexts,
    w: &mut Writer<'_>,
) -> Result<(), Full> {
    let Some(routing) = contexts.routing() else {
        return Ok(());
    };
    if !routing.is_compressed {
        if let Some(rpi) = rpi {
            let [_, _, option @ ..] = rpi.header(0, routing.option_type);
            begun.option = Some(option);
            begun.unnumbered = -(OPTION_LEN as i16);
        }
        return Ok(());
    }
    let path = match routes {
        true => Path::of((&begun.header, begun.rest), rpi, &routing.root),
        false => None,
    };
    let is_written = |path: &Path<'_>| path.is_tunnel || path.hops.len > 0;
    if rpi.is_some() || path.as_ref().is_some_and(is_written) {
        w.u8(lorh::PAGE_1)?;
    }
    if let Some(path) = &path {
        lorh::emit_segments(w, &routing.root, path.hops.as_slice())?;
    }
    if let Some(rpi) = rpi {
        lorh::emit_rpi(w, rpi)?;
    }
    if let Some(path) = &path {
        if path.is_tunnel {
            let outer = &begun.header;
            lorh::emit_tunnel(w, outer.hop_limit, &outer.src, &routing.root)?;
            begun.encapsulation = path.encapsulation(&outer.src, begun.encapsulation);
        }
        begun.header = path.header;
        begun.unnumbered = path.len as i16;
        begun.rest = path.rest;
    }
    Ok(())
}

/// The routing headers of a packet, as 6LoRH expresses them.
struct Path<'p> {
    /// The packet's destination, and where it goes from there; empty where that is implied.
    hops: Hops,
    /// The end of the tunnel, or of the source route.
    end: Ipv6Addr,
    is_tunnel: bool,
    /// The IPv6 header to be compressed.
    header: ipv6::Header,
    /// Bytes of the packet that 6LoRH stands for.
    len: usize,
    /// The bytes behind all these headers.
    rest: &'p [u8],
}

impl<'p> Path<'p> {
    /// `None` where there are no routing headers, or 6LoRH cannot express them.
    #[inline(never)]
    fn of(
        (outer, payload): (&ipv6::Header, &'p [u8]),
        rpi: Option<Rpi>,
        root: &Ipv6Addr,
    ) -> Option<Self> {
        if !matches!(outer.next_header, next_header::ROUTING | next_header::IPV6) {
            return None;
        }
        let mut walk = ipv6::Extensions::new(outer.next_header, payload);
        let mut path = Self {
            hops: Hops::NONE,
            end: outer.dst,
            is_tunnel: false,
            header: *outer,
            len: 0,
            rest: payload,
        };
        path.hops.push(&outer.dst)?;
        if outer.next_header == next_header::ROUTING {
            let route = SourceRoute::parse(walk.next().ok()??.bytes).ok()?;
            let visited = route.len().checked_sub(route.segments_left.into())?;
            for index in visited..route.len() {
                path.end = route.addr(index + 1, &outer.dst)?;
                path.hops.push(&path.end)?;
            }
        }
        path.len = payload.len() - walk.rest().len();
        path.is_tunnel = walk.next_header() == next_header::IPV6;
        if path.is_tunnel {
            (path.header, path.rest) = ipv6::Header::parse_start(walk.rest()).ok()?;
            path.len += ipv6::HEADER_LEN;
            let len = usize::from(path.header.payload_len) + path.len;
            if len != usize::from(outer.payload_len) || outer.flow_label != 0 {
                return None;
            }
            if path.hops.len == 1 && path.end == *implied(rpi, &path.header.dst, root) {
                path.hops.len = 0;
            }
            mark(&mut path.header, outer.traffic_class)?;
        } else {
            // The IPv6 header names the last one, which reads as the same where both do.
            path.hops.len -= 1;
            if path.hops.as_slice().last() == Some(&path.end) {
                return None;
            }
            path.header.next_header = walk.next_header();
            path.header.dst = path.end;
            path.rest = walk.rest();
        }
        // The route is compressed relative to the root's address: only the root writes one.
        if path.hops.len > 0 && outer.src != *root {
            return None;
        }
        Some(path)
    }

    /// The addresses from which the inner addresses may be elided. An address is elided only if it
    /// follows both from the outer header (RFC 8138 §5.2.3) and from the link addresses, because
    /// implementations differ in which of these they use.
    fn encapsulation(&self, src: &Ipv6Addr, link: Encapsulation) -> Encapsulation {
        let both = |link: [u8; 8], outer: &Ipv6Addr, inner: &Ipv6Addr| {
            if same(&low_64(*outer), &link) {
                return link;
            }
            // A value that matches no inner address, so that it is not elided.
            let mut other = low_64(*inner);
            for byte in &mut other {
                *byte = !*byte;
            }
            other
        };
        Encapsulation {
            src: both(link.src, src, &self.header.src),
            dst: both(link.dst, &self.end, &self.header.dst),
        }
    }
}

/// The destination of an outer header that omits it: for a packet that goes up it is the root (RFC
/// 8138 §7).
fn implied<'a>(rpi: Option<Rpi>, inner: &'a Ipv6Addr, root: &'a Ipv6Addr) -> &'a Ipv6Addr {
    match rpi {
        Some(Rpi { down: true, .. }) => inner,
        _ => root,
    }
}

/// Takes a mark of congestion over from the outer header; `None` where their traffic classes differ
/// otherwise, or the inner packet may not be marked.
fn mark(inner: &mut ipv6::Header, outer: ipv6::TrafficClass) -> Option<()> {
    let is_new_mark = outer.ecn() == Ecn::Ce
        && inner.traffic_class.ecn() != Ecn::NotEct
        && outer.dscp() == inner.traffic_class.dscp();
    if is_new_mark {
        inner.traffic_class = outer;
    }
    (inner.traffic_class == outer).then_some(())
}

/// Routing headers ahead of a compressed IPv6 header, or none.
pub(super) struct LeadingHeaders<'a> {
    headers: RoutingHeaders<'a>,
    /// Bytes read, the page included.
    len: usize,
    unnumbered: i16,
}

impl<'a> LeadingHeaders<'a> {
    /// No routing headers: the compressed IPv6 header comes first.
    pub(super) fn none() -> Self {
        Self {
            headers: RoutingHeaders::default(),
            len: 0,
            unnumbered: 0,
        }
    }

    /// Reads the routing headers at the start of `bytes`, the page first; returns them and what
    /// follows.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), DecompressError> {
        let behind_page = bytes.get(1..).unwrap_or_default();
        let (headers, rest) = RoutingHeaders::parse(behind_page).map_err(DecompressError::Lorh)?;
        let leading = Self {
            headers,
            len: bytes.len() - rest.len(),
            unnumbered: 0,
        };
        Ok((leading, rest))
    }

    /// Length of the routing headers, the page's byte included.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn rpi(&self) -> Option<Rpi> {
        self.headers.rpi
    }

    pub(super) const fn unnumbered(&self) -> i16 {
        self.unnumbered
    }

    /// Removes the RPL option if it follows an IPv6 header directly, in a hop-by-hop options header
    /// of its own, compressed or in line. `next_header`: the next header, if in line; `rest`: the
    /// following bytes. Returns both as they are without the option.
    pub(super) fn take_option<'b>(
        &mut self,
        next_header: Option<u8>,
        rest: &'b [u8],
    ) -> (Option<u8>, &'b [u8]) {
        let found = match next_header {
            Some(next_header::HOP_BY_HOP) => in_line(rest),
            None => compressed(rest),
            _ => None,
        };
        // An option after 6LoRH headers, or in an inner packet, belongs to another node, and stays.
        match found {
            Some((rpi, next_header, behind)) if self.len == 0 => {
                self.headers.rpi = Some(rpi);
                self.unnumbered = -(OPTION_LEN as i16);
                (next_header, behind)
            }
            _ => (next_header, rest),
        }
    }

    /// Restores the first IPv6 header, with the routing headers from before it. `iphc`: that
    /// header, compressed; `rest`: the bytes after it.
    #[inline(never)]
    pub(super) fn restore(
        &mut self,
        packet: &mut Restored<'_>,
        (iphc, rest): (&lowpan_iphc::Header, &[u8]),
        link: LinkPair,
        contexts: &Contexts,
    ) -> Result<(), DecompressError> {
        let link = Encapsulation::link(link);
        let mut hops = Hops::NONE;
        let Some(tunnel) = &self.headers.tunnel else {
            if self.headers.segments.is_empty() {
                return packet.iphc((iphc, rest), link, contexts);
            }
            let mut header = header_of(iphc, rest, link, contexts)?;
            let end = header.dst;
            put_hops(&self.headers, &header.src, &mut hops)?;
            // The destination may also stand at the route's end.
            if hops.as_slice().last() != Some(&end) {
                hops.push(&end).ok_or(DecompressError::RouteLength)?;
            }
            self.unnumbered = put_routed(packet, &mut header, &hops)?;
            packet.is_routed = self.unnumbered != 0;
            packet.ends = (header.src, end);
            return Ok(());
        };
        let routing = contexts.routing().ok_or(DecompressError::NoRoot)?;
        let src = tunnel.encapsulator(&routing.root);
        put_hops(&self.headers, &src, &mut hops)?;
        let is_down = self.headers.rpi.is_some_and(|rpi| rpi.down);
        let end = match hops.as_slice().last() {
            // The inner header names it.
            None if is_down => None,
            None => Some(&routing.root),
            last => last,
        };
        let encapsulation = Encapsulation {
            src: low_64(src),
            dst: end.map_or(link.dst, |end| low_64(*end)),
        };
        let inner = header_of(iphc, rest, encapsulation, contexts)?;
        if hops.len == 0 {
            let dst = if is_down { &inner.dst } else { &routing.root };
            hops.push(dst).ok_or(DecompressError::RouteLength)?;
        }
        let mut outer = ipv6::Header {
            traffic_class: inner.traffic_class,
            flow_label: 0,
            payload_len: 0,
            next_header: next_header::IPV6,
            hop_limit: tunnel.hop_limit,
            src,
            dst: Ipv6Addr::UNSPECIFIED,
        };
        self.unnumbered = put_routed(packet, &mut outer, &hops)? + ipv6::HEADER_LEN as i16;
        packet.ipv6(&inner)
    }
}

/// Appends the hops of the source route in `headers`. `reference`: the address that the first one
/// counts on.
fn put_hops(
    headers: &RoutingHeaders<'_>,
    reference: &Ipv6Addr,
    hops: &mut Hops,
) -> Result<(), DecompressError> {
    for hop in headers.segments.iter(*reference) {
        hops.push(&hop).ok_or(DecompressError::RouteLength)?;
    }
    Ok(())
}

/// Appends `header` with the first of `hops` as destination, and a source route through the others
/// if there are any; returns the bytes of that.
fn put_routed(
    packet: &mut Restored<'_>,
    header: &mut ipv6::Header,
    hops: &Hops,
) -> Result<i16, DecompressError> {
    let behind = header.next_header;
    let (dst, route) = hops
        .as_slice()
        .split_first()
        .ok_or(DecompressError::RouteLength)?;
    header.dst = *dst;
    if route.is_empty() {
        packet.ipv6(header)?;
        return Ok(0);
    }
    header.next_header = next_header::ROUTING;
    packet.ipv6(header)?;
    let mut w = packet.writer();
    source_route::emit(&mut w, behind, dst, route)?;
    let len = w.written();
    packet.len += len;
    Ok(len as i16)
}

/// Uncompressed hop-by-hop options with the RPL option: its contents, the next header, and the
/// following bytes.
fn in_line(rest: &[u8]) -> Option<(Rpi, Option<u8>, &[u8])> {
    let (header, behind) = rest.split_at_checked(OPTION_LEN)?;
    let (_, rpi) = Rpi::parse(header)?;
    Some((rpi, Some(*header.first()?), behind))
}

/// As [`in_line`], of compressed ones; the next header is `None` where it is compressed, too.
fn compressed(rest: &[u8]) -> Option<(Rpi, Option<u8>, &[u8])> {
    let (next_header, rest) = match rest {
        [lowpan_nhc::HOP_BY_HOP, next_header, rest @ ..] => (Some(*next_header), rest),
        [lowpan_nhc::HOP_BY_HOP_AND_NHC, rest @ ..] => (None, rest),
        _ => return None,
    };
    let &[6, a, b, c, d, e, f, ref behind @ ..] = rest else {
        return None;
    };
    let (_, rpi) = Rpi::parse(&[0, 0, a, b, c, d, e, f])?;
    Some((rpi, next_header, behind))
}

/// The routing of a first fragment, as a record keeps it. Nothing: all zeros, so that a static
/// record costs no flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordRouting {
    /// The RPL option's flags, and [`HAS_RPI`] where there is one.
    flags: u8,
    instance: u8,
    sender_rank: u16,
    unnumbered: i16,
}

/// A bit that no flag of an RPL option takes.
const HAS_RPI: u8 = 1;

impl RecordRouting {
    pub(super) const NOTHING: Self = Self {
        flags: 0,
        instance: 0,
        sender_rank: 0,
        unnumbered: 0,
    };

    pub(super) fn of(rpi: Option<Rpi>, unnumbered: i16) -> Self {
        let mut kept = Self {
            unnumbered,
            ..Self::NOTHING
        };
        if let Some(rpi) = rpi {
            kept.flags = rpi.flags() | HAS_RPI;
            kept.instance = rpi.instance;
            kept.sender_rank = rpi.sender_rank;
        }
        kept
    }

    pub(super) fn rpi(self) -> Option<Rpi> {
        let has_rpi = self.flags & HAS_RPI != 0;
        has_rpi.then(|| Rpi::of(self.flags, self.instance, self.sender_rank))
    }

    pub(super) const fn unnumbered(self) -> i16 {
        self.unnumbered
    }
}
