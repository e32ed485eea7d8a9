//! A source route in the memory of a mote without the feature `plain-rpl`: a routing header that
//! holds the lists of addresses as they stood on the air.
//!
//! ```text
//! +---------------+---------------+---------------+---------------+
//! |  Next Header  |  Hdr Ext Len  |   Type = 254  | Segments Left |
//! +---------------+---------------+---------------+---------------+
//! |  Index of dst | Bytes of SRH  |  SRH-6LoRHs; the destination in the packet, unless
//! +---------------+---------------+    it lies in a tunnel: 16 bytes; then padding
//! ```
//!
//! The source address of the packet is what the first address counts on, so that a step along the
//! route changes three fields and no list. `lowpan` turns it into routing headers of 6LoWPAN before
//! it leaves. Only this node writes it: a packet that came with such a header is refused on arrival
//! ([`is_foreign`](super::source_route::is_foreign)): a host outside the mesh could otherwise lead
//! packets along any path in it.
//!
//! Place: between `ip`, which follows the route, and `lowpan`. Left out: RFC 6554's routing header,
//! which ends here as every unknown one does. Sources: RFC 8138 §5; RFC 4727 §4 for the type.

use core::net::Ipv6Addr;

use super::cursor::{Full, Writer, copy};
use super::ipv6;
#[cfg(all(feature = "root", not(feature = "plain-rpl")))]
use super::lorh;
use super::lorh::Segments;
use super::source_route::TYPE_IN_MEMORY as TYPE;
#[cfg(all(feature = "root", not(feature = "plain-rpl")))]
use crate::limits::{PSDU_LEN_MAX, ROUTE_HOPS_MAX};

/// RFC 6554's, which no packet may carry into a mesh.
#[cfg(not(feature = "plain-rpl"))]
const TYPE_RPL: u8 = 3;

/// The offset of Segments Left in the header.
pub(crate) const SEGMENTS_LEFT_AT: usize = 3;
/// The destination's offset in the fixed header.
const DST_AT: usize = 24;
const FIXED_LEN: usize = 6;
const ADDR_LEN: usize = 16;

/// A source route, read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SourceRoute<'a> {
    pub(crate) segments: Segments<'a>,
    /// Which of the addresses is the packet's destination: 0 is the first.
    pub(crate) index: u8,
    pub(crate) segments_left: u8,
    /// The address behind `segments`, or nothing.
    pub(crate) end: &'a [u8],
}

/// Why a routing header is no such route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ParseError {
    /// Its type is another, or its lengths contradict one another.
    Other,
    /// It names more segments than it has. Never found, because nobody but this node writes it.
    #[expect(dead_code, reason = "RFC 6554's header has it")]
    SegmentsLeft,
}

impl<'a> SourceRoute<'a> {
    /// No route: a packet that goes to its destination at once.
    pub(crate) const NONE: Self = Self {
        segments: Segments::in_bytes(&[]),
        index: 0,
        segments_left: 0,
        end: &[],
    };

    /// `header`: the routing header.
    pub(crate) fn parse(header: &'a [u8]) -> Result<Self, ParseError> {
        let &[_, _, TYPE, segments_left, index, len, ref body @ ..] = header else {
            return Err(ParseError::Other);
        };
        let split = body.split_at_checked(usize::from(len));
        let (segments, end) = split.ok_or(ParseError::Other)?;
        Ok(Self {
            segments: Segments::in_bytes(segments),
            index,
            segments_left,
            end: end.get(..ADDR_LEN).unwrap_or_default(),
        })
    }

    /// The address behind that at which the packet with this header is.
    pub(crate) fn next_of(&self, header: &ipv6::Header) -> Option<Ipv6Addr> {
        self.segments_left.checked_sub(1)?;
        self.addr(&header.src, self.index.checked_add(1)?)
    }

    /// Whether `is_so` is true of any address but that at which the packet with this header is, be
    /// it the one behind the lists, where the route leads so far.
    pub(crate) fn any_other(
        &self,
        header: &ipv6::Header,
        is_so: impl Fn(&Ipv6Addr) -> bool,
    ) -> bool {
        let (mut steps, mut addr) = (self.segments.steps(), header.src);
        let mut index = 0;
        while steps.next(&mut addr) {
            if index != u32::from(self.index) && is_so(&addr) {
                return true;
            }
            index += 1;
        }
        u32::from(self.index) + u32::from(self.segments_left) >= index
            && self.end().is_some_and(|end| is_so(&end))
    }

    fn end(&self) -> Option<Ipv6Addr> {
        self.end.first_chunk().copied().map(Ipv6Addr::from)
    }

    /// The address with this index; of a higher one the end. `src`: the source of the packet.
    pub(crate) fn addr(&self, src: &Ipv6Addr, index: u8) -> Option<Ipv6Addr> {
        let (mut steps, mut addr) = (self.segments.steps(), *src);
        for _ in 0..=index {
            if !steps.next(&mut addr) {
                return self.end();
            }
        }
        Some(addr)
    }

    /// The last of its addresses; of no route the packet's destination. `ends`: of the packet.
    pub(crate) fn last(&self, (src, dst): (&Ipv6Addr, &Ipv6Addr)) -> Ipv6Addr {
        match self.segments_left {
            0 => *dst,
            left => self
                .addr(src, self.index.saturating_add(left))
                .unwrap_or(*dst),
        }
    }
}

/// As [`ipv6::routing_header_in`].
pub(crate) fn header_in(next_header: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    ipv6::routing_header_in(next_header, rest)
}

/// Whether a routing header of this type is a source route.
#[cfg(not(feature = "plain-rpl"))]
pub(crate) const fn is_source_route(kind: u8) -> bool {
    matches!(kind, TYPE | TYPE_RPL)
}

/// Takes a packet to the next address of its source route: that becomes its destination. `packet`:
/// the fixed IPv6 header first. Returns the address; `None`: no address is left, and the packet is
/// as it was.
pub(crate) fn advance(packet: &mut [u8]) -> Option<Ipv6Addr> {
    go(packet, 1)
}

/// Undoes [`advance`].
pub(crate) fn retreat(packet: &mut [u8]) -> Option<Ipv6Addr> {
    go(packet, -1)
}

fn go(packet: &mut [u8], by: i8) -> Option<Ipv6Addr> {
    let (header, rest) = ipv6::Header::parse_start(packet).ok()?;
    let route = match header_in(header.next_header, rest)? {
        (0, bytes) => SourceRoute::parse(bytes).ok()?,
        _ => return None,
    };
    let index = route.index.checked_add_signed(by)?;
    let left = route.segments_left.checked_add_signed(-by)?;
    let addr = route.addr(&header.src, index)?;
    copy(packet.get_mut(DST_AT..)?, &addr.octets());
    let at = ipv6::HEADER_LEN + SEGMENTS_LEFT_AT;
    copy(packet.get_mut(at..)?, &[left, index]);
    Some(addr)
}

/// Appends the routing header of a packet that is at the first of its addresses.
///
/// # Errors
/// [`Full`] when it does not fit, or its lists take 256 bytes.
pub(crate) fn emit(
    w: &mut Writer<'_>,
    next_header: u8,
    route: &SourceRoute<'_>,
) -> Result<(), Full> {
    let segments = route.segments.bytes();
    let len = FIXED_LEN + segments.len() + route.end.len();
    let units = (len.div_ceil(8) - 1) as u8;
    let segments_len = u8::try_from(segments.len()).map_err(|_| Full)?;
    w.put(&[next_header, units, TYPE, route.segments_left])?;
    w.put(&[route.index, segments_len])?;
    w.put(segments)?;
    w.put(route.end)?;
    w.put([0; 7].get(..len.wrapping_neg() & 7).unwrap_or_default())
}

/// Appends the routing header of a packet between two addresses that goes from the second of them
/// through `rest`. `next_header`: of what follows; behind anything but a packet in a tunnel the
/// last address is that of the packet's own header.
///
/// # Errors
/// [`Full`] when it does not fit.
#[cfg(all(feature = "root", not(feature = "plain-rpl")))]
pub(crate) fn begin(
    (src, first): (&Ipv6Addr, &Ipv6Addr),
    rest: &[Ipv6Addr],
    next_header: u8,
    w: &mut Writer<'_>,
) -> Result<usize, Full> {
    let mut hops = [Ipv6Addr::UNSPECIFIED; ROUTE_HOPS_MAX];
    let (end, between) = match next_header {
        ipv6::next_header::IPV6 => (None, rest),
        _ => rest
            .split_last()
            .map_or((None, rest), |(end, rest)| (Some(end.octets()), rest)),
    };
    let hops = hops.get_mut(..=between.len()).ok_or(Full)?;
    for (place, hop) in hops.iter_mut().zip(core::iter::once(first).chain(between)) {
        *place = *hop;
    }
    let mut lists = [0; PSDU_LEN_MAX];
    let mut list = Writer::new(&mut lists);
    lorh::emit_segments(&mut list, src, hops)?;
    let len = list.written();
    let route = SourceRoute {
        segments: Segments::in_bytes(lists.get(..len).unwrap_or_default()),
        index: 0,
        segments_left: rest.len() as u8,
        end: end.as_ref().map_or(&[][..], |end| end),
    };
    emit(w, next_header, &route)?;
    Ok(w.written())
}
