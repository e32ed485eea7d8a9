//! RPL's source routing header: a routing header of type 3.
//!
//! ```text
//! +---------------+---------------+---------------+---------------+
//! |  Next Header  |  Hdr Ext Len  |Routing Type=3 | Segments Left |
//! +-------+-------+-------+-------+---------------+---------------+
//! | CmprI | CmprE |  Pad  |               Reserved                |
//! +-------+-------+-------+---------------------------------------+
//! |  addresses 1 to n: 16 - CmprI bytes each, of the last 16 - CmprE; then Pad bytes
//! ```
//!
//! An address lacks its first bytes where they are those of the packet's destination, which
//! each router of the path exchanges for the next address.
//!
//! Place: between `ip`, which follows the route, and `lowpan`, which compresses it.
//! Left out: whether the next address is a neighbour.
//! Source: RFC 6554 §3, §4.

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Truncated, Writer, copy};
use super::ipv6::{self, next_header};
use super::lorh::common_bytes;

/// Routing type of RPL's source routing header (RFC 6554 §3).
pub const TYPE: u8 = 3;
/// Offset of the number of segments left in the routing header.
pub const SEGMENTS_LEFT_AT: usize = 3;

const FIXED_LEN: usize = 8;
/// Padding fills up a unit of eight bytes.
const PAD_MAX: usize = 7;
/// Offset of the destination in an IPv6 header.
const DST_AT: usize = 24;
const ADDR_LEN: usize = 16;

/// A source routing header, checked: its lengths agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceRoute<'a> {
    /// The protocol number of the header behind this one.
    pub next_header: u8,
    /// Addresses that the packet has yet to visit, at most [`Self::len`].
    pub segments_left: u8,
    /// Bytes elided of every address but the last.
    cmpr_i: u8,
    /// Bytes elided of the last address.
    cmpr_e: u8,
    /// The list of addresses, elided, without padding.
    addrs: &'a [u8],
    /// How many of them stand before the last.
    before_last: usize,
}

/// Why bytes are not a source routing header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the fixed fields.
    Truncated,
    /// A routing header of another type.
    Type,
    /// The addresses do not fill the header, or there is none.
    Addresses,
    /// More segments left than addresses (RFC 6554 §4.2: a parameter problem that points at
    /// the field, [`SEGMENTS_LEFT_AT`]).
    SegmentsLeft,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "source route truncated",
            Self::Type => "routing header of another type",
            Self::Addresses => "source route whose addresses do not fill it",
            Self::SegmentsLeft => "source route with more segments left than addresses",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl<'a> SourceRoute<'a> {
    /// Reads `header`, a whole routing header.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(header: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(header);
        let [next_header, units, kind, segments_left] = r.array()?;
        if kind != TYPE {
            return Err(ParseError::Type);
        }
        let [cmpr, pad, _, _] = r.array()?;
        let (cmpr_i, cmpr_e) = (cmpr >> 4, cmpr & 15);
        let pad = usize::from(pad >> 4);
        let len = (usize::from(units) * 8).checked_sub(pad);
        let mut route = Self {
            next_header,
            segments_left,
            cmpr_i,
            cmpr_e,
            addrs: r.slice(len.ok_or(ParseError::Addresses)?)?,
            before_last: 0,
        };
        let (each, last) = route.sizes();
        let before_last = route.addrs.len().checked_sub(last);
        let before_last = before_last.ok_or(ParseError::Addresses)?;
        route.before_last = before_last.checked_div(each).unwrap_or(0);
        if r.len() != pad || route.before_last * each != before_last {
            return Err(ParseError::Addresses);
        }
        if usize::from(segments_left) > route.len() {
            return Err(ParseError::SegmentsLeft);
        }
        Ok(route)
    }

    /// Bytes of every address but the last, and of the last.
    fn sizes(&self) -> (usize, usize) {
        let size = |elided: u8| ADDR_LEN - usize::from(elided);
        (size(self.cmpr_i), size(self.cmpr_e))
    }

    /// How many addresses the header holds.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one address")]
    pub fn len(&self) -> usize {
        self.before_last + 1
    }

    /// The address with this index, from 1 on as RFC 6554 counts. `dst`: the destination of the
    /// packet.
    pub fn addr(&self, index: usize, dst: &Ipv6Addr) -> Option<Ipv6Addr> {
        let (at, size) = self.place(index)?;
        let mut octets = dst.octets();
        let tail = octets.get_mut(ADDR_LEN - size..)?;
        copy(tail, self.addrs.get(at..)?);
        Some(Ipv6Addr::from(octets))
    }

    /// The next address on the route; `None` where no segment is left.
    pub fn next(&self, dst: &Ipv6Addr) -> Option<Ipv6Addr> {
        self.addr(self.next_index()?, dst)
    }

    /// All addresses, visited or not.
    pub fn addrs(&self, dst: Ipv6Addr) -> impl Iterator<Item = Ipv6Addr> + use<'a> {
        let route = *self;
        (1..=route.len()).filter_map(move |index| route.addr(index, &dst))
    }

    /// As [`Self::next`], of the packet with this header.
    #[cfg(feature = "plain-rpl")]
    pub(crate) fn next_of(&self, header: &ipv6::Header) -> Option<Ipv6Addr> {
        self.next(&header.dst)
    }

    /// Whether `is_so` is true of any address, visited or not, but that at which the packet with
    /// this header is.
    #[cfg(feature = "plain-rpl")]
    pub(crate) fn any_other(
        &self,
        header: &ipv6::Header,
        is_so: impl Fn(&Ipv6Addr) -> bool,
    ) -> bool {
        self.addrs(header.dst).any(|addr| is_so(&addr))
    }

    /// The index of the address that the packet visits next.
    fn next_index(&self) -> Option<usize> {
        let visited = self.len().checked_sub(self.segments_left.into())?;
        (self.segments_left > 0).then_some(visited + 1)
    }

    /// Where an address lies behind the fixed fields, and its bytes there.
    fn place(&self, index: usize) -> Option<(usize, usize)> {
        let (each, last) = self.sizes();
        let before = index.checked_sub(1)?;
        let size = match self.len().checked_sub(index)? {
            0 => last,
            _ => each,
        };
        Some((before * each, size))
    }
}

/// The routing header, of whatever type, that leads a packet to its next segment: it is the first
/// extension header, or follows the hop-by-hop options. `next_header`: that of the fixed IPv6
/// header; `rest`: the bytes after it. Returns the offset of the routing header in `rest`, and its
/// bytes.
pub fn header_in(next_header: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    ipv6::routing_header_in(next_header, rest)
}

/// Routing type for experiments (RFC 4727 §4): of the source routes that a mote without the feature
/// `plain-rpl` keeps in memory. No packet has it on the air.
pub(crate) const TYPE_IN_MEMORY: u8 = 254;

/// Whether a routing header of this type is a source route.
#[cfg(feature = "plain-rpl")]
pub(crate) const fn is_source_route(kind: u8) -> bool {
    matches!(kind, TYPE | TYPE_IN_MEMORY)
}

/// Whether a packet that came with its routing header as IPv6 has it, or the beginning of one, may
/// name the type that no packet has on the air: also where the bytes end before the type.
pub(crate) fn is_foreign(packet: &[u8]) -> bool {
    let first = packet.get(NEXT_HEADER_AT).copied().unwrap_or_default();
    let rest = packet.get(ipv6::HEADER_LEN..).unwrap_or_default();
    let mut walk = ipv6::Extensions::new(first, rest);
    while walk.next_header() == next_header::HOP_BY_HOP {
        if walk.next().is_err() {
            return true;
        }
    }
    let kind = walk.rest().get(2);
    walk.next_header() == next_header::ROUTING && kind.is_none_or(|kind| *kind == TYPE_IN_MEMORY)
}

/// Sends a packet on to its next segment, in place: exchanges its destination for the next
/// address and counts that segment. `packet`: from its fixed IPv6 header on. The hop limit is left
/// to the caller. Returns the new destination; `None`, and the packet is as before, where there is
/// no source route with segments left.
pub fn advance(packet: &mut [u8]) -> Option<Ipv6Addr> {
    let (at, route) = route_in(packet)?;
    let place = route.place(route.next_index()?)?;
    let segments_left = route.segments_left - 1;
    let dst = Ipv6Addr::from(*packet.get(DST_AT..)?.first_chunk()?);
    let last = route.addr(route.len(), &dst)?;
    let elided = usize::from(route.cmpr_e);
    let next = exchange(packet, at, place, segments_left)?;
    let shared = common_bytes(&next, &last);
    if segments_left > 0 && shared < elided {
        respell(packet, &last, shared);
    }
    Some(next)
}

/// Gives the `last` address of a route back the bytes that the destination, which has `shared` of
/// them, does not stand for any more, in the place of the first address, which has been visited.
///
/// Linux compresses a route anew at each hop, and elides of the last address as many bytes as the
/// destination of that hop allows. `None`, and the packet is as before: there is no room, which
/// takes addresses of several prefixes.
fn respell(packet: &mut [u8], last: &Ipv6Addr, shared: usize) -> Option<()> {
    let (at, route) = route_in(packet)?;
    let (each, _) = route.sizes();
    let (last_at, cmpr_i) = (route.place(route.len())?.0, route.cmpr_i);
    let header = packet.get_mut(ipv6::HEADER_LEN + at..)?;
    let [_, units, _, _, cmpr, pad, _, _, rest @ ..] = header else {
        return None;
    };
    let addrs = rest.get_mut(..usize::from(*units) * 8)?;
    let before_last = last_at.checked_sub(each)?;
    let room = addrs.len().checked_sub(before_last)?;
    // What the last address does not need is padding, seven bytes at most.
    let size = room.saturating_sub(PAD_MAX).max(ADDR_LEN - shared);
    let spared = room.checked_sub(size)?;
    let octets = last.octets();
    let tail = octets.get(ADDR_LEN.checked_sub(size)?..)?;

    *cmpr = cmpr_i << 4 | (ADDR_LEN - size) as u8;
    *pad = (spared << 4) as u8;
    for at in 0..before_last {
        *addrs.get_mut(at)? = *addrs.get(at + each)?;
    }
    let end = addrs.get_mut(before_last..)?;
    end.fill(0);
    copy(end, tail);
    Some(())
}

/// Undoes one [`advance`]; returns the destination from before. `None`, and the packet is as it
/// was, where the header names no segment that has been visited.
pub fn retreat(packet: &mut [u8]) -> Option<Ipv6Addr> {
    let (at, route) = route_in(packet)?;
    let visited = route.len().checked_sub(route.segments_left.into())?;
    exchange(packet, at, route.place(visited)?, route.segments_left + 1)
}

/// The source route of a packet, and where behind the fixed header it begins.
fn route_in(packet: &[u8]) -> Option<(usize, SourceRoute<'_>)> {
    let (fixed, rest) = packet.split_first_chunk::<{ ipv6::HEADER_LEN }>()?;
    let (at, header) = header_in(*fixed.get(NEXT_HEADER_AT)?, rest)?;
    Some((at, SourceRoute::parse(header).ok()?))
}

/// The place of the next header field in the fixed header.
const NEXT_HEADER_AT: usize = 6;

/// Exchanges the destination for an address of the route, with `segments_left` behind it.
fn exchange(
    packet: &mut [u8],
    at: usize,
    (place, size): (usize, usize),
    segments_left: u8,
) -> Option<Ipv6Addr> {
    let (fixed, rest) = packet.split_at_mut_checked(ipv6::HEADER_LEN)?;
    let header = rest.get_mut(at..)?;
    // The bytes in front are the same in both addresses.
    let dst = fixed.get_mut(ipv6::HEADER_LEN - size..)?;
    let next = header.get_mut(FIXED_LEN + place..)?;
    for (dst, next) in dst.iter_mut().zip(next) {
        core::mem::swap(dst, next);
    }
    *header.get_mut(SEGMENTS_LEFT_AT)? = segments_left;
    fixed.last_chunk::<ADDR_LEN>().copied().map(Ipv6Addr::from)
}

/// Appends a routing header that leads a packet from its destination `dst` through `addrs`, the
/// last of which is the true destination, in the shortest form.
///
/// # Errors
/// [`Full`] when it does not fit, or there are no addresses or too many.
pub fn emit(
    w: &mut Writer<'_>,
    next_header: u8,
    dst: &Ipv6Addr,
    addrs: &[Ipv6Addr],
) -> Result<(), Full> {
    let (last, before_last) = addrs.split_last().ok_or(Full)?;
    let common = |max: usize, addr| max.min(common_bytes(dst, addr));
    let cmpr_i = before_last.iter().fold(CMPR_MAX, common);
    // Not more than of the others: each of them is the destination when its router reads on.
    let cmpr_e = common(cmpr_i, last);
    let len = before_last.len() * (ADDR_LEN - cmpr_i) + ADDR_LEN - cmpr_e;
    let pad = len.wrapping_neg() & 7;
    let units = u8::try_from((len + pad) / 8).map_err(|_| Full)?;
    let segments_left = u8::try_from(addrs.len()).map_err(|_| Full)?;

    w.put(&[next_header, units, TYPE, segments_left])?;
    w.put(&[(cmpr_i << 4 | cmpr_e) as u8, (pad << 4) as u8, 0, 0])?;
    for addr in before_last {
        w.put(addr.octets().get(cmpr_i..).unwrap_or_default())?;
    }
    w.put(last.octets().get(cmpr_e..).unwrap_or_default())?;
    w.put([0; 7].get(..pad).unwrap_or_default())
}

/// As many bytes can be elided: four bits say so, and one byte of each address is always there.
const CMPR_MAX: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ipv6::next_header;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn mote(id: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0xff, 0xfe00, id)
    }

    const OUTSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5);

    fn emitted(dst: Ipv6Addr, addrs: &[Ipv6Addr]) -> Vec<u8> {
        let mut out = [0; 400];
        let mut w = Writer::new(&mut out);
        emit(&mut w, next_header::IPV6, &dst, addrs).unwrap();
        let len = w.written();
        let short = emit(&mut Writer::new(&mut out[..len - 1]), 41, &dst, addrs);
        assert_eq!(short, Err(Full));
        out[..len].to_vec()
    }

    fn packet(dst: Ipv6Addr, addrs: &[Ipv6Addr]) -> Vec<u8> {
        let header = ipv6::Header {
            traffic_class: ipv6::TrafficClass(0),
            flow_label: 0,
            payload_len: 0,
            next_header: next_header::ROUTING,
            hop_limit: 64,
            src: mote(0),
            dst,
        };
        let mut packet = [0; ipv6::HEADER_LEN].to_vec();
        header.emit(&mut packet).unwrap();
        packet.extend(emitted(dst, addrs));
        packet
    }

    #[test]
    fn byte_for_byte() {
        let bytes = emitted(mote(0x101), &[mote(0x102), mote(0x203), mote(0x104)]);
        assert_eq!(bytes[..8], [41, 1, 3, 3, 0xee, 0x20, 0, 0]);
        assert_eq!(bytes[8..], [1, 2, 2, 3, 1, 4, 0, 0]);
    }

    #[test]
    fn elides_what_every_destination_on_the_way_shares() {
        let cases = [
            ("one address", [mote(2)].to_vec(), 0xff, 8),
            ("all alike", [mote(2), mote(3)].to_vec(), 0xff, 8),
            ("outside at last", [mote(2), OUTSIDE].to_vec(), 0xf0, 24),
            ("outside between", [OUTSIDE, mote(3)].to_vec(), 0x00, 32),
        ];
        for (name, addrs, cmpr, len) in cases {
            let bytes = emitted(mote(1), &addrs);
            assert_eq!((bytes[4], bytes.len() - 8), (cmpr, len), "{name}");
            let route = SourceRoute::parse(&bytes).unwrap();
            assert_eq!(route.addrs(mote(1)).collect::<Vec<_>>(), addrs, "{name}");
        }
    }

    #[test]
    fn a_packet_visits_the_addresses_in_order() {
        let path = [mote(1), mote(2), mote(0x303), OUTSIDE];
        let (first, rest) = path.split_first().unwrap();
        let mut packet = packet(*first, rest);
        for (visited, next) in rest.iter().enumerate() {
            let dst = path[visited];
            let route = SourceRoute::parse(&packet[40..]).unwrap();
            assert_eq!(route.next(&dst), Some(*next));
            assert_eq!(route.addr(rest.len(), &dst), Some(OUTSIDE));
            let before = packet.clone();
            assert_eq!(advance(&mut packet), Some(*next));
            assert_eq!(packet[24..40], next.octets());
            let after = packet.clone();
            assert_eq!(retreat(&mut packet), Some(dst));
            assert_eq!(packet, before);
            packet = after;
        }
        let at_the_end = packet.clone();
        assert_eq!(advance(&mut packet), None);
        assert_eq!(packet, at_the_end);
    }

    /// As Linux writes it: the last address lacks all that it shares with the destination.
    fn by_linux(path: &[Ipv6Addr]) -> Vec<u8> {
        let (dst, rest) = path.split_first().unwrap();
        let (last, between) = rest.split_last().unwrap();
        let shared = between.iter().map(|addr| common_bytes(dst, addr));
        let cmpr_i = shared.min().unwrap_or(CMPR_MAX).min(CMPR_MAX);
        let cmpr_e = common_bytes(dst, last).min(CMPR_MAX);
        let mut addrs: Vec<u8> = Vec::new();
        for addr in between {
            addrs.extend(&addr.octets()[cmpr_i..]);
        }
        addrs.extend(&last.octets()[cmpr_e..]);
        let pad = addrs.len().wrapping_neg() % 8;
        addrs.resize(addrs.len() + pad, 0);
        let mut packet = packet(*dst, rest);
        packet.truncate(ipv6::HEADER_LEN);
        let units = (addrs.len() / 8) as u8;
        let cmpr = (cmpr_i << 4 | cmpr_e) as u8;
        let left = rest.len() as u8;
        packet.extend([59, units, TYPE, left, cmpr, (pad << 4) as u8, 0, 0]);
        packet.extend(addrs);
        packet
    }

    #[test]
    fn the_last_address_keeps_bytes_that_a_destination_on_the_way_lacks() {
        let path = [mote(0x101), mote(0x202), mote(0x103)];
        let mut packet = by_linux(&path);
        assert_eq!(packet[44..51], [0xef, 0x50, 0, 0, 2, 2, 3]);
        assert_eq!(advance(&mut packet), Some(path[1]));
        // One byte of the last address in two, with what was the next one's room as padding.
        assert_eq!(packet[43..51], [1, 0xee, 0x60, 0, 0, 1, 3, 0]);
        assert_eq!(advance(&mut packet), Some(path[2]));
        assert_eq!(advance(&mut packet), None);
    }

    #[test]
    fn refused() {
        let cases: [(&str, &[u8], ParseError); 9] = [
            ("nothing", &[], ParseError::Truncated),
            ("half", &[41, 0, 3, 0, 0, 0, 0], ParseError::Truncated),
            ("type 2", &[41, 0, 2, 0, 0, 0, 0, 0], ParseError::Type),
            (
                "addresses beyond the end",
                &[41, 1, 3, 1, 0xff, 0x70, 0, 0],
                ParseError::Truncated,
            ),
            (
                "no address",
                &[41, 0, 3, 0, 0, 0, 0, 0],
                ParseError::Addresses,
            ),
            (
                "padding beyond the header",
                &[41, 0, 3, 0, 0, 0x10, 0, 0],
                ParseError::Addresses,
            ),
            (
                "an address of 16 in 8",
                &[41, 1, 3, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7],
                ParseError::Addresses,
            ),
            (
                "an address and a half",
                &[41, 1, 3, 1, 0xee, 0x10, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7],
                ParseError::Addresses,
            ),
            (
                "a segment more than addresses",
                &[41, 1, 3, 9, 0xff, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7],
                ParseError::SegmentsLeft,
            ),
        ];
        for (name, header, error) in cases {
            assert_eq!(SourceRoute::parse(header), Err(error), "{name}");
        }
        let all = [41, 1, 3, 8, 0xff, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(SourceRoute::parse(&all).unwrap().len(), 8);
        // RFC 6554 §3 allows more padding than alignment asks for: Linux takes it, too.
        let padded = [&[41, 2, 3, 4, 0xff, 0xc0, 0, 0][..], &[2; 16]].concat();
        assert_eq!(SourceRoute::parse(&padded).unwrap().len(), 4);
    }

    #[test]
    fn a_route_too_long_for_its_length_is_not_written() {
        let out = &mut [0; 5000];
        for (addr, count, result) in [
            (OUTSIDE, 0, Err(Full)),
            (OUTSIDE, 127, Ok(())),
            (OUTSIDE, 128, Err(Full)),
            (mote(2), 255, Ok(())),
            (mote(2), 256, Err(Full)),
        ] {
            let addrs = vec![addr; count];
            let emitted = emit(&mut Writer::new(out), 41, &mote(1), &addrs);
            assert_eq!(emitted, result, "{count}");
        }
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_advancing_ends(
            mut bytes in prop::collection::vec(any::<u8>(), 40..120), units in 0u8..10, left in 0u8..20,
        ) {
            if let Some(header) = bytes[40..].first_chunk_mut::<4>() {
                *header = [41, units, 3, left];
            }
            let mut packet = bytes;
            let mut advanced = 0;
            while let Some(dst) = advance(&mut packet) {
                prop_assert_eq!(packet[24..40].to_vec(), dst.octets().to_vec());
                advanced += 1;
            }
            prop_assert!(advanced == 0 || advanced == left);
        }

        #[test]
        fn routes_of_linux_are_followed(
            ids in prop::collection::vec(any::<u16>(), 2..12), far in 8usize..16,
        ) {
            let addr = |id: &u16| {
                let mut octets = mote(*id).octets();
                // Some differ earlier.
                octets[far] ^= (*id >> 8) as u8 & 1;
                Ipv6Addr::from(octets)
            };
            let path: Vec<Ipv6Addr> = ids.iter().map(addr).collect();
            let mut packet = by_linux(&path);
            let len = packet.len();
            for (dst, next) in path.iter().zip(&path[1..]) {
                prop_assert_eq!(advance(&mut packet), Some(*next));
                prop_assert_eq!(&packet[24..40], &next.octets());
                let (mut back, after) = (packet.clone(), packet.clone());
                if retreat(&mut back).is_some() {
                    prop_assert_eq!(&back[24..40], &dst.octets());
                    prop_assert_eq!(advance(&mut back), Some(*next));
                    prop_assert_eq!(back, after);
                }
            }
            prop_assert_eq!(advance(&mut packet), None);
            prop_assert_eq!(packet.len(), len);
        }

        #[test]
        fn what_is_emitted_is_read_again(
            ids in prop::collection::vec((any::<bool>(), any::<u16>()), 1..12), first in any::<u16>(),
        ) {
            let addrs: Vec<_> = ids.iter().map(|(outside, id)| if *outside { OUTSIDE } else { mote(*id) }).collect();
            let bytes = emitted(mote(first), &addrs);
            prop_assert!(bytes.len().is_multiple_of(8));
            let route = SourceRoute::parse(&bytes).unwrap();
            prop_assert_eq!(route.len(), addrs.len());
            let dst = mote(first);
            prop_assert_eq!(route.addrs(dst).collect::<Vec<_>>(), addrs);
        }
    }
}
