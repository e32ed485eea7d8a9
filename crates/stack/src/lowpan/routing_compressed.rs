//! Routing headers in a build without the feature `plain-rpl`: between 6LoWPAN's and a form in
//! memory that keeps their lists of addresses as they are.
//!
//! As `routing` has it, a packet holds its tunnel as any IPv6 packet does, and its RPL packet
//! information goes [beside it](super::HeaderForms). Its source route is a header of
//! [`source_route`](crate::wire::source_route_compressed), which names the lists that came and the
//! step at which the packet is. So a mote copies the lists, and writes only the address of the next
//! step anew.
//!
//! Place: [`begin`] is the first step of compression, [`restore`] that of decompression. Left out:
//! RPL's headers as IPv6 has them. They stay in their packet as any other extension header does:
//! options of hop-by-hop headers are not looked at, and a route of RFC 6554 is refused where it
//! names a further step. A source route that 6LoRH cannot express goes no further.
//! Sources: RFC 8138; RFC 6040 for marks of congestion.

use super::contexts::{Contexts, low_64};
use super::restored::{BLANK, DecompressError, Restored, restore_header};
pub(super) use super::routing_headers::LeadingHeaders;
#[cfg(not(feature = "plain-rpl"))]
pub use super::routing_headers::Unnumbered;
#[cfg(not(feature = "plain-rpl"))]
pub(super) use super::routing_headers::{OPTION_LEN, RecordRouting, numbered, unabridged};
use super::routing_headers::{encapsulation, implied, mark};
use super::{Encapsulation, LinkPair, PartlyCompressed};
use crate::limits::ROUTE_HOPS_MAX;
use crate::wire::cursor::{Full, Writer};
use crate::wire::ipv6::{self, next_header};
use crate::wire::lorh::{self, Segments};
use crate::wire::lowpan_iphc;
use crate::wire::rpl_option::Rpi;
use crate::wire::source_route_compressed::{self as source_route, SourceRoute};

/// Writes the routing headers that precede a packet's compressed IPv6 header.
///
/// `begun`: the packet, from its first IPv6 header on; then what comes behind the headers that were
/// written.
///
/// # Errors
/// [`Full`]: they do not fit, or 6LoRH cannot express what is around a source route. In line it
/// must not go, because nobody else reads this form.
#[inline(never)]
pub(super) fn begin(
    begun: &mut PartlyCompressed<'_>,
    rpi: Option<Rpi>,
    _: bool,
    contexts: &Contexts,
    w: &mut Writer<'_>,
) -> Result<(), Full> {
    let Some(routing) = contexts.routing() else {
        return Ok(());
    };
    let outer = begun.header;
    let (route, next_header, mut rest) = split(outer.next_header, begun.rest);
    let is_routed = !route.segments.is_empty();
    let end = route.last((&outer.src, &outer.dst));
    let mut goes_on = route.segments_left > 0;
    let mut is_tunnel = false;
    if next_header != next_header::IPV6 {
        // The IPv6 header names the last one.
        (begun.header.next_header, begun.header.dst) = (next_header, end);
    } else if let Some((inner, behind)) = inner_of(&outer, begun.rest, rest) {
        goes_on |= end != *implied(rpi, &inner.dst, &routing.root);
        // A route is compressed relative to its source's address: only the root writes one.
        is_tunnel = is_routed || !goes_on || outer.src == routing.root;
        if is_tunnel {
            (begun.header, rest) = (inner, behind);
        }
    }
    if !is_tunnel && next_header == next_header::IPV6 {
        if is_routed {
            return Err(Full);
        }
        goes_on = false;
    }
    if rpi.is_some() || is_tunnel || goes_on {
        w.u8(lorh::PAGE_1)?;
    }
    if goes_on {
        let from = usize::from(route.index);
        route
            .segments
            .emit_from(w, from, (&outer.src, &outer.dst))?;
    }
    if let Some(rpi) = rpi {
        lorh::emit_rpi(w, rpi)?;
    }
    begun.unnumbered = (begun.rest.len() - rest.len()) as i16;
    if is_tunnel {
        lorh::emit_tunnel(w, outer.hop_limit, &outer.src, &routing.root)?;
        begun.encapsulation = encapsulation((&outer.src, &end), &begun.header, begun.encapsulation);
    }
    begun.rest = rest;
    Ok(())
}

/// The source route of a packet, what comes behind it, and the bytes from there on. `next_header`,
/// `rest`: of its first header.
fn split(next_header: u8, rest: &[u8]) -> (SourceRoute<'_>, u8, &[u8]) {
    if next_header == next_header::ROUTING {
        let mut walk = ipv6::Extensions::new(next_header, rest);
        if let Ok(Some(header)) = walk.next()
            && let Ok(route) = SourceRoute::parse(header.bytes)
        {
            return (route, walk.next_header(), walk.rest());
        }
    }
    (SourceRoute::NONE, next_header, rest)
}

/// The header of a packet in a tunnel, with a mark of congestion that the tunnel has met, and what
/// follows it. `None`: 6LoRH cannot express the tunnel. `payload`: what follows the fixed header of
/// the tunnel; `rest`: what follows all its headers.
fn inner_of<'p>(
    outer: &ipv6::Header,
    payload: &[u8],
    rest: &'p [u8],
) -> Option<(ipv6::Header, &'p [u8])> {
    let (mut inner, behind) = ipv6::Header::parse_start(rest).ok()?;
    let len = usize::from(inner.payload_len) + payload.len() - behind.len();
    if len != usize::from(outer.payload_len) {
        return None;
    }
    mark(&mut inner, outer.traffic_class)?;
    (outer.flow_label == 0).then_some((inner, behind))
}

/// There are no options of hop-by-hop headers that this form takes out.
#[cfg(not(feature = "plain-rpl"))]
pub(super) const fn take_option<'b>(
    _: &mut LeadingHeaders<'_>,
    next_header: Option<u8>,
    rest: &'b [u8],
) -> (Option<u8>, &'b [u8]) {
    (next_header, rest)
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
    let segments = leading.headers.segments;
    let Some(tunnel) = &leading.headers.tunnel else {
        let mut header = BLANK;
        restore_header((iphc, rest), link, contexts, &mut header)?;
        let end = header.dst;
        leading.unnumbered = put_routed(packet, &mut header, segments, &end.octets())?;
        packet.is_routed = leading.unnumbered != 0;
        packet.ends = (header.src, end);
        return Ok(());
    };
    let routing = contexts.routing().ok_or(DecompressError::NoRoot)?;
    let src = tunnel.encapsulator(&routing.root);
    let is_down = leading.headers.rpi.is_some_and(|rpi| rpi.down);
    let (mut end, mut steps) = (src, segments.steps());
    let mut is_known = false;
    while steps.next(&mut end) {
        is_known = true;
    }
    if !is_known && !is_down {
        (end, is_known) = (routing.root, true);
    }
    let mut encapsulation = link;
    encapsulation.src = low_64(src);
    if is_known {
        encapsulation.dst = low_64(end);
    }
    let mut inner = BLANK;
    restore_header((iphc, rest), encapsulation, contexts, &mut inner)?;
    let mut outer = inner;
    outer.flow_label = 0;
    outer.next_header = next_header::IPV6;
    outer.hop_limit = tunnel.hop_limit;
    outer.src = src;
    // Where the end is not known, the inner header names it.
    if is_known {
        outer.dst = end;
    }
    leading.unnumbered = put_routed(packet, &mut outer, segments, &[])? + ipv6::HEADER_LEN as i16;
    packet.ipv6(&inner)
}

/// Appends `header`, with the first of `segments` as destination if there are any, and a source
/// route through the others and to `end`, which is an address or nothing, if there are more;
/// returns the bytes of that.
fn put_routed(
    packet: &mut Restored<'_>,
    header: &mut ipv6::Header,
    segments: Segments<'_>,
    end: &[u8],
) -> Result<i16, DecompressError> {
    let (mut addr, mut steps) = (header.src, segments.steps());
    let mut segments_left = 0_u8;
    if steps.next(&mut addr) {
        header.dst = addr;
        while usize::from(segments_left) < ROUTE_HOPS_MAX && steps.next(&mut addr) {
            segments_left += 1;
        }
        // The destination may also stand at the route's end.
        if !end.is_empty() && end != addr.octets() {
            segments_left += 1;
        }
    }
    if usize::from(segments_left) >= ROUTE_HOPS_MAX {
        return Err(DecompressError::RouteLength);
    }
    if segments_left == 0 {
        packet.ipv6(header)?;
        return Ok(0);
    }
    let behind = core::mem::replace(&mut header.next_header, next_header::ROUTING);
    packet.ipv6(header)?;
    let route = SourceRoute {
        segments,
        index: 0,
        segments_left,
        end,
    };
    let mut w = packet.writer();
    source_route::emit(&mut w, behind, &route)?;
    let len = w.written();
    packet.len += len;
    Ok(len as i16)
}

#[cfg(test)]
#[path = "tests/routing_compressed.rs"]
mod tests;
