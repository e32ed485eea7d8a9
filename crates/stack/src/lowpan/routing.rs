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
//! Place: [`begin`] is the first step of compression, [`restore`] that of decompression. In a build
//! with RPL but without the feature `plain-rpl`, `routing_compressed` stands here. Headers that
//! 6LoRH cannot express are sent as ordinary extension headers: a source route that is too long or
//! not the root's, an outer header that has a flow label or another traffic class than its packet.
//! Left out: the meaning of routes; the visited addresses of a route, which 6LoRH does not keep.
//! Sources: RFC 8138; RFC 9035; RFC 6282 §4.2; RFC 6553; RFC 6554; RFC 6040 for marks of congestion
//! on an outer header, which has no traffic class of its own here.

use core::net::Ipv6Addr;

use super::contexts::{Contexts, low_64};
use super::restored::{BLANK, DecompressError, Restored, restore_header};
pub use super::routing_headers::Unnumbered;
pub(super) use super::routing_headers::{
    LeadingHeaders, OPTION_LEN, RecordRouting, numbered, unabridged,
};
use super::routing_headers::{encapsulation, implied, mark};
use super::{Encapsulation, LinkPair, PartlyCompressed};
use crate::limits::ROUTE_HOPS_MAX;
use crate::wire::cursor::{Full, Writer};
use crate::wire::ipv6::{self, next_header};
use crate::wire::lorh::{self, RoutingHeaders};
use crate::wire::rpl_option::Rpi;
use crate::wire::source_route::{self, SourceRoute};
use crate::wire::{lowpan_iphc, lowpan_nhc};

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
    if !routing.compresses() {
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
            let ends = (&outer.src, &path.end);
            begun.encapsulation = encapsulation(ends, &path.header, begun.encapsulation);
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
}

/// Moves the RPL option to `leading` if it follows an IPv6 header directly, in a hop-by-hop options
/// header of its own, compressed or in line. `next_header`: the next header, if in line; `rest`:
/// the following bytes. Returns both as they are without the option.
pub(super) fn take_option<'b>(
    leading: &mut LeadingHeaders<'_>,
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
        Some((rpi, next_header, behind)) if leading.len() == 0 => {
            leading.headers.rpi = Some(rpi);
            leading.unnumbered = -(OPTION_LEN as i16);
            (next_header, behind)
        }
        _ => (next_header, rest),
    }
}

/// Restores the first IPv6 header, with the routing headers from before it: `leading`. `iphc`: that
/// header, compressed; `rest`: the bytes after it.
#[inline(never)]
pub(super) fn restore(
    leading: &mut LeadingHeaders<'_>,
    packet: &mut Restored<'_>,
    (iphc, rest): (&lowpan_iphc::Header, &[u8]),
    link: LinkPair,
    contexts: &Contexts,
) -> Result<(), DecompressError> {
    let link = Encapsulation::link(link);
    let mut hops = Hops::NONE;
    let Some(tunnel) = &leading.headers.tunnel else {
        if leading.headers.segments.is_empty() {
            return packet.iphc((iphc, rest), link, contexts);
        }
        let mut header = BLANK;
        restore_header((iphc, rest), link, contexts, &mut header)?;
        let end = header.dst;
        put_hops(&leading.headers, &header.src, &mut hops)?;
        // The destination may also stand at the route's end.
        if hops.as_slice().last() != Some(&end) {
            hops.push(&end).ok_or(DecompressError::RouteLength)?;
        }
        leading.unnumbered = put_routed(packet, &mut header, &hops)?;
        packet.is_routed = leading.unnumbered != 0;
        packet.ends = (header.src, end);
        return Ok(());
    };
    let routing = contexts.routing().ok_or(DecompressError::NoRoot)?;
    let src = tunnel.encapsulator(&routing.root);
    put_hops(&leading.headers, &src, &mut hops)?;
    let is_down = leading.headers.rpi.is_some_and(|rpi| rpi.down);
    let end = match hops.as_slice().last() {
        // The inner header names it.
        None if is_down => None,
        None => Some(&routing.root),
        last => last,
    };
    let mut encapsulation = link;
    encapsulation.src = low_64(src);
    if let Some(end) = end {
        encapsulation.dst = low_64(*end);
    }
    let mut inner = BLANK;
    restore_header((iphc, rest), encapsulation, contexts, &mut inner)?;
    if hops.len == 0 {
        let dst = if is_down { &inner.dst } else { &routing.root };
        hops.push(dst).ok_or(DecompressError::RouteLength)?;
    }
    let mut outer = inner;
    outer.flow_label = 0;
    outer.next_header = next_header::IPV6;
    outer.hop_limit = tunnel.hop_limit;
    outer.src = src;
    leading.unnumbered = put_routed(packet, &mut outer, &hops)? + ipv6::HEADER_LEN as i16;
    packet.ipv6(&inner)
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
