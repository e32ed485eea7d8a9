//! 6LoWPAN routing headers: what RPL adds to a packet, compressed.
//!
//! ```text
//! +-+-+-+---------+---------------+
//! |1|0|0|  Size   |   Type 0..4   |  SRH: Size + 1 addresses of 1, 2, 4, 8 or 16 bytes
//! +-+-+-+-+-+-+-+-+---------------+
//! |1|0|0|O|R|F|I|K|    Type 5     |  RPI: instance (I = 0), one (K = 1) or two bytes of rank
//! +-+-+-+-+-+-+-+-+---------------+
//! |1|0|1| Length  |    Type 6     |  IP-in-IP: hop limit, end of the encapsulator's address
//! +-+-+-+---------+---------------+
//! ```
//!
//! They stand between the dispatch of page 1 and an IPHC header, SRHs first. In front of an
//! IP-in-IP header they belong to the tunnel, else to the packet itself. An address omits the
//! leading bytes that are equal to those of the previous address; the first address omits those
//! equal to the root's address (or, without a tunnel, to the packet's source, which is the root).
//! If K is set, the low byte of the rank is zero and omitted.
//!
//! Place: `lowpan` reads and writes them. Left out: which addresses belong where, in the canonical
//! form of the packet. An elective header of another type is skipped, a critical one refused.
//! Source: RFC 8138 §4 to §7.

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Truncated, Writer, copy};
use super::rpl_option::Rpi;

/// The dispatch of page 1 (RFC 8025 §3), in front of the routing headers.
pub const PAGE_1: u8 = 0xf1;

/// The routing headers of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoutingHeaders<'a> {
    /// The addresses that the packet, or its tunnel, has still to visit.
    pub segments: Segments<'a>,
    /// The RPL packet information, from an RPI-6LoRH (RFC 8138 §6).
    pub rpi: Option<Rpi>,
    /// The outer header of a packet within a tunnel.
    pub tunnel: Option<Tunnel<'a>>,
}

/// An outer IPv6 header. Its destination is the first segment, or the root where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tunnel<'a> {
    /// Hop limit of the outer header.
    pub hop_limit: u8,
    /// The last bytes of the source of the outer header; the others are the root's.
    encapsulator: &'a [u8],
}

impl Tunnel<'_> {
    /// Source of the outer header. `root`: the DODAG's identifier.
    pub fn encapsulator(&self, root: &Ipv6Addr) -> Ipv6Addr {
        coalesced(root, self.encapsulator)
    }
}

/// The segments that a packet has yet to visit; the next one is the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segments<'a>(&'a [u8]);

impl<'a> Segments<'a> {
    /// Whether no source route is there.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The addresses in order. `reference`: the encapsulator's address, or without a tunnel the
    /// source of the packet.
    pub fn iter(&self, reference: Ipv6Addr) -> impl Iterator<Item = Ipv6Addr> + Clone + use<'a> {
        let (mut steps, mut addr) = (self.steps(), reference);
        core::iter::from_fn(move || steps.next(&mut addr).then_some(addr))
    }

    /// Those in `bytes`, which were read once already; of other bytes it is what they happen to
    /// hold.
    #[cfg(any(test, not(feature = "plain-rpl")))]
    pub(crate) const fn in_bytes(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The headers that hold them.
    #[cfg(any(test, not(feature = "plain-rpl")))]
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// As [`Self::iter`].
    pub(crate) const fn steps(&self) -> Steps<'a> {
        Steps {
            headers: Reader::new(self.0),
            addrs: Reader::new(&[]),
            size: 0,
        }
    }

    /// Appends them from number `from` on, where 0 is the first. `addr`: that one; `reference`: as
    /// in [`Self::iter`]. Only this address is written anew, because the others count on the
    /// addresses before them, which stay. Where there are none, `addr` alone is the list.
    ///
    /// # Errors
    /// [`Full`] when they do not fit.
    #[cfg(any(test, not(feature = "plain-rpl")))]
    pub(crate) fn emit_from(
        &self,
        w: &mut Writer<'_>,
        from: usize,
        (reference, addr): (&Ipv6Addr, &Ipv6Addr),
    ) -> Result<(), Full> {
        let own = kind_of(reference, addr);
        let octets = addr.octets();
        let tail = octets.get(16 - (1 << own)..).unwrap_or_default();
        let mut headers = Reader::new(self.0);
        let (mut skipped, mut left, mut behind) = (from + 1, (own, 0), &[][..]);
        while let Some((kind, bytes)) = list(&mut headers) {
            let count = bytes.len() >> kind;
            if let Some(count) = count.checked_sub(skipped) {
                left = (kind, count as u8);
                behind = bytes.get(skipped << kind..).unwrap_or_default();
                break;
            }
            skipped -= count;
        }
        let (kind, left) = left;
        // Those of its own list stay in one with it where they are as long.
        let is_split = kind != own && left > 0;
        w.put(&[CRITICAL | if is_split { 0 } else { left }, own])?;
        w.put(tail)?;
        if is_split {
            w.put(&[CRITICAL | (left - 1), kind])?;
        }
        w.put(behind)?;
        w.put(headers.rest())
    }
}

/// A walk along segments.
#[derive(Clone)]
pub(crate) struct Steps<'a> {
    headers: Reader<'a>,
    /// Of the list that is being read.
    addrs: Reader<'a>,
    size: usize,
}

impl Steps<'_> {
    /// Makes the next address of the one before it: of the reference at first. False, and the
    /// address stays, where there is no further one.
    // Not inlined: each walk is a caller, and one copy saves flash.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(crate) fn next(&mut self, addr: &mut Ipv6Addr) -> bool {
        while self.addrs.is_empty() {
            let Some((kind, bytes)) = list(&mut self.headers) else {
                return false;
            };
            (self.size, self.addrs) = (1 << kind, Reader::new(bytes));
        }
        let Ok(tail) = self.addrs.slice(self.size) else {
            return false;
        };
        *addr = coalesced(addr, tail);
        true
    }
}

/// The next list of addresses among headers that were read once already: its type and its bytes.
fn list<'a>(headers: &mut Reader<'a>) -> Option<(u8, &'a [u8])> {
    loop {
        let [first, kind] = headers.array().ok()?;
        let len = usize::from(first & LEN_MASK);
        match first & !LEN_MASK {
            ELECTIVE => {
                headers.slice(len).ok()?;
            }
            CRITICAL if kind <= kind::SRH_MAX => {
                return Some((kind, headers.slice((len + 1) << kind).ok()?));
            }
            _ => return None,
        }
    }
}

/// `tail` in place of the last bytes of `reference`.
fn coalesced(reference: &Ipv6Addr, tail: &[u8]) -> Ipv6Addr {
    let mut octets = reference.octets();
    let kept = octets.len().saturating_sub(tail.len());
    copy(octets.get_mut(kept..).unwrap_or_default(), tail);
    Ipv6Addr::from(octets)
}

/// Why bytes are not routing headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within a header.
    Truncated,
    /// A critical header of an unknown type: the packet is not to be forwarded.
    Critical,
    /// A header where it cannot stand, or a second one of its kind.
    Order,
    /// An IP-in-IP header without a hop limit, or with an address of more than 16 bytes.
    TunnelLength,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "6LoWPAN routing header truncated",
            Self::Critical => "critical 6LoWPAN routing header of unknown type",
            Self::Order => "6LoWPAN routing headers out of order",
            Self::TunnelLength => "IP-in-IP 6LoWPAN routing header of impossible length",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

mod kind {
    /// SRH whose addresses have 16 bytes, the last of the types 0 to 4.
    pub(super) const SRH_MAX: u8 = 4;
    pub(super) const RPI: u8 = 5;
    pub(super) const IP_IN_IP: u8 = 6;
}

const CRITICAL: u8 = 0b100 << 5;
const ELECTIVE: u8 = 0b101 << 5;
const LEN_MASK: u8 = 0x1f;
const INSTANCE_ELIDED: u8 = 0x02;
const RANK_SHORT: u8 = 0x01;

/// Whether a routing header starts with `first`, behind the dispatch of page 1.
pub const fn is_routing_header(first: u8) -> bool {
    first >> 6 == 0b10
}

enum RoutingHeader<'a> {
    /// A list of addresses, each elided to `each` bytes (SRH-6LoRH, RFC 8138 §5).
    Segments,
    Rpi(Rpi),
    Tunnel(Tunnel<'a>),
    /// Elective, and of an unknown type.
    Skipped,
}

/// The next routing header; `None`: something else follows.
fn split<'a>(r: &mut Reader<'a>) -> Result<Option<RoutingHeader<'a>>, ParseError> {
    match r.rest() {
        [first, ..] if is_routing_header(*first) => {}
        _ => return Ok(None),
    }
    let [first, kind] = r.array()?;
    let len = usize::from(first & LEN_MASK);
    Ok(Some(match kind {
        _ if first & ELECTIVE == ELECTIVE => {
            let body = r.slice(len)?;
            match (kind, body) {
                (kind::IP_IN_IP, [hop_limit, encapsulator @ ..]) if encapsulator.len() <= 16 => {
                    RoutingHeader::Tunnel(Tunnel {
                        hop_limit: *hop_limit,
                        encapsulator,
                    })
                }
                (kind::IP_IN_IP, _) => return Err(ParseError::TunnelLength),
                _ => RoutingHeader::Skipped,
            }
        }
        0..=kind::SRH_MAX => {
            r.slice((len + 1) << kind)?;
            RoutingHeader::Segments
        }
        kind::RPI => {
            let is_global_0 = first & INSTANCE_ELIDED != 0;
            let instance = if is_global_0 { 0 } else { r.u8()? };
            let rank = u16::from(r.u8()?) << 8;
            let is_short = first & RANK_SHORT != 0;
            let low = if is_short { 0 } else { r.u8()? };
            RoutingHeader::Rpi(Rpi::of(first << 3, instance, rank | u16::from(low)))
        }
        _ => return Err(ParseError::Critical),
    }))
}

impl<'a> RoutingHeaders<'a> {
    /// Reads all routing headers, from behind the dispatch of page 1 on; returns them and what
    /// follows.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let mut headers = Self::default();
        let mut r = Reader::new(bytes);
        while let Some(header) = split(&mut r)? {
            let is_first = headers.rpi.is_none() && headers.tunnel.is_none();
            match header {
                RoutingHeader::Segments if is_first => {
                    let end = bytes.len() - r.len();
                    headers.segments = Segments(bytes.get(..end).unwrap_or_default());
                }
                RoutingHeader::Rpi(rpi) if is_first => headers.rpi = Some(rpi),
                RoutingHeader::Tunnel(tunnel) if headers.tunnel.is_none() => {
                    headers.tunnel = Some(tunnel);
                }
                RoutingHeader::Skipped => {}
                _ => return Err(ParseError::Order),
            }
        }
        Ok((headers, r.rest()))
    }
}

/// Appends the SRHs of a packet that visits `path`, in order. `reference`: as in
/// [`Segments::iter`].
///
/// # Errors
/// [`Full`] when they do not fit.
pub fn emit_segments(
    w: &mut Writer<'_>,
    reference: &Ipv6Addr,
    path: &[Ipv6Addr],
) -> Result<(), Full> {
    let addr = |index: usize| match index.checked_sub(1) {
        None => Some(reference),
        Some(index) => path.get(index),
    };
    // The type that an address needs, given the one before it.
    let kind = |index: usize| match (addr(index), addr(index + 1)) {
        (Some(before), Some(addr)) => Some(kind_of(before, addr)),
        _ => None,
    };
    let mut start = 0;
    while let Some(kind_now) = kind(start) {
        let mut end = start + 1;
        while end - start <= usize::from(LEN_MASK)
            && kind(end).is_some_and(|next| {
                next == kind_now || next < kind_now && !is_worth_a_header(kind_now, next, end, kind)
            })
        {
            end += 1;
        }
        w.put(&[CRITICAL | (end - start - 1) as u8, kind_now])?;
        for index in start..end {
            let octets = addr(index + 1).ok_or(Full)?.octets();
            w.put(octets.get(16 - (1 << kind_now)..).unwrap_or_default())?;
        }
        start = end;
    }
    Ok(())
}

/// Whether the addresses from `from` on that need no more than type `next` are shorter by more
/// than the two bytes of a header of their own.
fn is_worth_a_header(now: u8, next: u8, from: usize, kind: impl Fn(usize) -> Option<u8>) -> bool {
    let saved_each = (1 << now) - (1 << next);
    let run = (from..).take_while(|index| kind(*index).is_some_and(|kind| kind <= next));
    saved_each * run.take(3).count() > 2
}

/// The shortest type of SRH that holds `addr` behind `before`.
fn kind_of(before: &Ipv6Addr, addr: &Ipv6Addr) -> u8 {
    match 16 - common_bytes(before, addr) {
        0 | 1 => 0,
        2 => 1,
        3 | 4 => 2,
        5..=8 => 3,
        _ => 4,
    }
}

/// Leading bytes that two addresses share.
pub(super) fn common_bytes(a: &Ipv6Addr, b: &Ipv6Addr) -> usize {
    let (a, b) = (a.octets(), b.octets());
    a.iter().zip(&b).take_while(|(a, b)| a == b).count()
}

/// Appends the RPL option.
///
/// # Errors
/// [`Full`] when it does not fit.
pub fn emit_rpi(w: &mut Writer<'_>, rpi: Rpi) -> Result<(), Full> {
    let [high, low] = rpi.sender_rank.to_be_bytes();
    let mut first = CRITICAL | rpi.flags() >> 3;
    if rpi.instance == 0 {
        first |= INSTANCE_ELIDED;
    }
    if low == 0 {
        first |= RANK_SHORT;
    }
    w.put(&[first, kind::RPI])?;
    if rpi.instance != 0 {
        w.u8(rpi.instance)?;
    }
    w.u8(high)?;
    if low != 0 {
        w.u8(low)?;
    }
    Ok(())
}

/// Appends the outer header of a tunnel. `encapsulator`: its source; `root`: the DODAG's
/// identifier.
///
/// # Errors
/// [`Full`] when it does not fit.
pub fn emit_tunnel(
    w: &mut Writer<'_>,
    hop_limit: u8,
    encapsulator: &Ipv6Addr,
    root: &Ipv6Addr,
) -> Result<(), Full> {
    let octets = encapsulator.octets();
    let sent = match encapsulator == root {
        true => 0,
        false => 1 << kind_of(root, encapsulator),
    };
    w.put(&[ELECTIVE | (1 + sent) as u8, kind::IP_IN_IP, hop_limit])?;
    w.put(octets.get(octets.len() - sent..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn mote(id: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0xff, 0xfe00, id)
    }

    const ROOT: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 1);
    const OUTSIDE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5);
    const IPHC: [u8; 2] = [0x7a, 0x33];

    fn written(emit: impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
        let mut out = [0; 1000];
        let mut w = Writer::new(&mut out);
        emit(&mut w).unwrap();
        let len = w.written();
        assert_eq!(emit(&mut Writer::new(&mut out[..len - 1])), Err(Full));
        out[..len].to_vec()
    }

    /// The SRHs of a packet that visits `path`.
    fn segments(path: &[Ipv6Addr]) -> Vec<u8> {
        written(|w| emit_segments(w, &ROOT, path))
    }

    fn read(bytes: &[u8]) -> Vec<Ipv6Addr> {
        let (headers, rest) = RoutingHeaders::parse(bytes).unwrap();
        assert!(rest.is_empty());
        headers.segments.iter(ROOT).collect()
    }

    #[test]
    fn rpi_byte_for_byte() {
        let rpi = Rpi {
            down: true,
            rank_error: true,
            forwarding_error: false,
            instance: 0x1e,
            sender_rank: 0x0180,
        };
        let (global_0, whole) = (
            Rpi { instance: 0, ..rpi },
            Rpi {
                sender_rank: 0x0300,
                ..rpi
            },
        );
        let least = Rpi {
            sender_rank: 0x0300,
            ..Rpi::default()
        };
        let cases: [(Rpi, &[u8]); 4] = [
            (rpi, &[0x98, 5, 0x1e, 1, 0x80]),
            (global_0, &[0x9a, 5, 1, 0x80]),
            (whole, &[0x99, 5, 0x1e, 3]),
            (least, &[0x83, 5, 3]),
        ];
        for (rpi, bytes) in cases {
            assert_eq!(written(|w| emit_rpi(w, rpi)), bytes);
            let (headers, rest) = RoutingHeaders::parse(bytes).unwrap();
            assert_eq!((headers.rpi, rest), (Some(rpi), [].as_slice()));
        }
    }

    #[test]
    fn tunnel_byte_for_byte() {
        let near = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 0x201);
        let outside = OUTSIDE.octets();
        let cases: [(Ipv6Addr, &[&[u8]]); 4] = [
            (ROOT, &[&[0xa1, 6, 64]]),
            (near, &[&[0xa3, 6, 64, 2, 1]]),
            (mote(9), &[&[0xa9, 6, 64, 0, 0, 0, 0xff, 0xfe, 0, 0, 9]]),
            (OUTSIDE, &[&[0xb1, 6, 64], &outside]),
        ];
        for (encapsulator, bytes) in cases {
            let bytes = bytes.concat();
            assert_eq!(written(|w| emit_tunnel(w, 64, &encapsulator, &ROOT)), bytes);
            let tunnel = RoutingHeaders::parse(&bytes).unwrap().0.tunnel.unwrap();
            assert_eq!(
                (tunnel.hop_limit, tunnel.encapsulator(&ROOT)),
                (64, encapsulator)
            );
        }
    }

    #[test]
    fn segments_byte_for_byte() {
        let iid = |id: u8| [0, 0, 0, 0xff, 0xfe, 0, 0, id];
        let alike = [mote(1), mote(2), mote(3)];
        assert_eq!(
            segments(&alike),
            [&[0x80, 3][..], &iid(1), &[0x81, 0, 2, 3]].concat()
        );
        // One byte shorter is not worth two of a header; three times one byte is.
        let mixed = [mote(1), mote(0x202), mote(0x203), mote(0x304)];
        assert_eq!(
            segments(&mixed),
            [&[0x80, 3][..], &iid(1), &[0x82, 1, 2, 2, 2, 3, 3, 4]].concat()
        );
        let run = [mote(0x202), mote(3), mote(4), mote(5), mote(6)];
        assert_eq!(segments(&run)[10..], [0x80, 1, 0, 3, 0x82, 0, 4, 5, 6]);
        let last = OUTSIDE.octets();
        assert_eq!(segments(&[OUTSIDE]), [&[0x80, 4][..], &last].concat());
        for path in [&alike[..], &mixed, &run, &[OUTSIDE]] {
            assert_eq!(read(&segments(path)), path);
        }
    }

    #[test]
    fn more_segments_than_one_header_counts() {
        let path: Vec<_> = (1..=40).map(mote).collect();
        let bytes = segments(&path);
        assert_eq!(bytes[10..12], [0x9f, 0]);
        assert_eq!(bytes[44..46], [0x86, 0]);
        assert_eq!(read(&bytes), path);
    }

    #[test]
    fn headers_in_order_up_to_the_packet() {
        // An elective header of another type, and a type of SRH after another.
        let bytes = [
            &[0xa2, 9, 1, 2][..],
            &[0x80, 1, 7, 8, 0xa0, 0x3f, 0x81, 0, 9, 10],
            &[0x83, 5, 2],
            &[0xa1, 6, 3],
            &IPHC,
        ]
        .concat();
        let (headers, rest) = RoutingHeaders::parse(&bytes).unwrap();
        let end = |low| Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, low);
        let path = [end(0x0708), end(0x0709), end(0x070a)];
        assert_eq!(headers.segments.iter(ROOT).collect::<Vec<_>>(), path);
        assert_eq!(headers.rpi.unwrap().sender_rank, 0x0200);
        assert_eq!(headers.tunnel.unwrap().hop_limit, 3);
        assert_eq!(rest, IPHC);
        let none = RoutingHeaders::parse(&IPHC).unwrap();
        assert_eq!(none, (RoutingHeaders::default(), IPHC.as_slice()));
        assert!(none.0.segments.is_empty());
    }

    #[test]
    fn refused() {
        let cases: [(&str, &[u8], ParseError); 12] = [
            ("no type", &[0x80], ParseError::Truncated),
            ("no address", &[0x80, 0], ParseError::Truncated),
            ("half an address", &[0x80, 1, 0], ParseError::Truncated),
            ("no instance", &[0x81, 5], ParseError::Truncated),
            ("half a rank", &[0x82, 5, 1], ParseError::Truncated),
            (
                "elective beyond the end",
                &[0xa2, 9, 1],
                ParseError::Truncated,
            ),
            (
                "unknown and critical",
                &[0x80, 6, 1, 2],
                ParseError::Critical,
            ),
            ("no hop limit", &[0xa0, 6], ParseError::TunnelLength),
            (
                "an address of 17",
                &[
                    0xb2, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                ],
                ParseError::TunnelLength,
            ),
            (
                "SRH behind RPI",
                &[0x83, 5, 1, 0x80, 0, 1],
                ParseError::Order,
            ),
            ("two RPIs", &[0x83, 5, 1, 0x83, 5, 1], ParseError::Order),
            ("two tunnels", &[0xa1, 6, 1, 0xa1, 6, 1], ParseError::Order),
        ];
        for (name, bytes, error) in cases {
            assert_eq!(RoutingHeaders::parse(bytes), Err(error), "{name}");
        }
    }

    proptest! {
        #[test]
        fn parse_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kinds in prop::collection::vec(0u8..8, 40)) {
            for (pair, kind) in bytes.chunks_exact_mut(2).zip(kinds) {
                pair[0] = 0x80 | pair[0] & 0x23;
                pair[1] = kind;
            }
            if let Ok((headers, rest)) = RoutingHeaders::parse(&bytes) {
                prop_assert!(headers.segments.iter(ROOT).count() <= bytes.len() - rest.len());
            }
        }

        #[test]
        fn what_is_emitted_is_read_again(
            ids in prop::collection::vec((0u8..8, any::<u16>()), 1..50),
        ) {
            let path: Vec<_> = ids.iter().map(|(kind, id)| match kind {
                0 => OUTSIDE,
                1..4 => mote(*id),
                _ => mote(*id & 3),
            }).collect();
            prop_assert_eq!(read(&segments(&path)), path);
        }
    }
}
