//! IPv6 headers: the fixed one, and a walk over extension headers.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------+-----------+---+---------------------------------------+
//! |Version|   DSCP    |ECN|              Flow Label               |
//! +-------+-----------+---+-------+---------------+---------------+
//! |         Payload Length        |  Next Header  |   Hop Limit   |
//! +-------------------------------+---------------+---------------+
//! |                 source and destination, 16 bytes each         |
//! ```
//!
//! Place: read and written by `ip` and `lowpan`. Left out: jumbograms, and what an extension header
//! means; fragment headers are in [`ipv6_fragment`](super::ipv6_fragment).
//! Sources: RFC 8200 §3, §4; RFC 2474 and RFC 3168 for the traffic class.

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Truncated, Writer};

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Extension headers that a packet may carry before it is refused. RFC 8200 §4.1 has use for
/// six; more only cost time.
pub const EXTENSIONS_MAX: usize = 8;

/// Values of the next header field.
pub mod next_header {
    /// Hop-by-hop options (RFC 8200 §4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// An IPv6 packet within this one.
    pub const IPV6: u8 = 41;
    /// Routing header (RFC 8200 §4.4).
    pub const ROUTING: u8 = 43;
    /// Fragment header (RFC 8200 §4.5).
    pub const FRAGMENT: u8 = 44;
    /// No next header: nothing follows (RFC 8200 §4.7).
    pub const NONE: u8 = 59;
    /// Destination options (RFC 8200 §4.6).
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// Mobility header (RFC 6275 §6.1).
    pub const MOBILITY: u8 = 135;
}

/// The fixed IPv6 header, 40 bytes (RFC 8200 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// DSCP and ECN, 8 bits.
    pub traffic_class: TrafficClass,
    /// Flow label, 0 to 0xfffff; [`Self::emit`] ignores higher bits.
    pub flow_label: u32,
    /// Bytes behind this header, extension headers included.
    pub payload_len: u16,
    /// Protocol of the first header behind this one; see [`mod@next_header`].
    pub next_header: u8,
    /// Hops that may still forward.
    pub hop_limit: u8,
    /// Source address; not checked, so it may be multicast.
    pub src: Ipv6Addr,
    /// Destination address; not checked.
    pub dst: Ipv6Addr,
}

/// The traffic class lies across the first two bytes; its low bits, which are ECN's, have
/// four bits of the flow label below them.
pub(crate) const ECN_SHIFT: u32 = 4;
/// Offset of the hop limit.
pub(crate) const HOP_LIMIT_AT: usize = 7;

/// Takes one off the hop limit of a packet that is passed on. IP's disposition has made sure that
/// the hop limit is above one.
pub(crate) fn count_down(packet: &mut [u8]) {
    if let Some(hop_limit) = packet.get_mut(HOP_LIMIT_AT) {
        *hop_limit = hop_limit.saturating_sub(1);
    }
}

/// Marks on `packet` the congestion that the header around it has met (RFC 6040 §4.2). False
/// where the packet's transport does not know the mark: the packet is to be dropped.
#[cfg(feature = "rpl")]
pub(crate) fn take_over_ecn(outer: Ecn, packet: &mut [u8]) -> bool {
    outer != Ecn::Ce || mark_congestion(packet)
}

/// Marks congestion on `packet` (RFC 3168 §5). False, and nothing is marked, where its transport
/// does not know the mark.
pub(crate) fn mark_congestion(packet: &mut [u8]) -> bool {
    let knows = ecn_of(packet).is_some_and(|ecn| ecn != Ecn::NotEct);
    if knows && let Some(class_low) = packet.get_mut(1) {
        *class_low |= (Ecn::Ce as u8) << ECN_SHIFT;
    }
    knows
}

/// The ECN field of `packet`; `None` where it has no second byte.
pub(crate) fn ecn_of(packet: &[u8]) -> Option<Ecn> {
    let bits = packet.get(1)? >> ECN_SHIFT;
    Some(TrafficClass(bits).ecn())
}

/// Why bytes are not an IPv6 packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within a header.
    Truncated,
    /// The version is not 6.
    Version,
    /// The payload is shorter than the header says.
    PayloadLength,
    /// More than [`EXTENSIONS_MAX`] extension headers.
    TooManyExtensions,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "IPv6 header truncated",
            Self::Version => "IP version is not 6",
            Self::PayloadLength => "IPv6 payload shorter than its length field",
            Self::TooManyExtensions => "IPv6 packet with too many extension headers",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl Header {
    /// Reads the fixed header of `packet`; returns it and the payload, without what lies
    /// beyond the payload length.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::Version`], [`ParseError::PayloadLength`].
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, rest) = Self::parse_start(packet)?;
        let payload = rest
            .get(..usize::from(header.payload_len))
            .ok_or(ParseError::PayloadLength)?;
        Ok((header, payload))
    }

    /// As [`Self::parse`] for the start of a packet, as in a first fragment or an ICMPv6
    /// error: whatever follows the header is returned, long enough or not.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::Version`].
    pub fn parse_start(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        #[cfg(test)]
        crate::tally::count(|tally| tally.parses += 1);
        let (fixed, rest) = packet
            .split_first_chunk::<HEADER_LEN>()
            .ok_or(ParseError::Truncated)?;
        let mut r = Reader::new(fixed);
        let first = r.u32()?;
        if first >> 28 != 6 {
            return Err(ParseError::Version);
        }
        let header = Self {
            traffic_class: TrafficClass((first >> 20) as u8),
            flow_label: first & FLOW_LABEL_MASK,
            payload_len: r.u16()?,
            next_header: r.u8()?,
            hop_limit: r.u8()?,
            src: Ipv6Addr::from(*r.chunk::<16>()?),
            dst: Ipv6Addr::from(*r.chunk::<16>()?),
        };
        Ok((header, rest))
    }

    /// Writes the header; returns [`HEADER_LEN`].
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out);
        let class = u32::from(self.traffic_class.0);
        w.u32(6 << 28 | class << 20 | self.flow_label & FLOW_LABEL_MASK)?;
        w.u16(self.payload_len)?;
        w.put(&[self.next_header, self.hop_limit])?;
        w.put(&self.src.octets())?;
        w.put(&self.dst.octets())?;
        Ok(w.written())
    }
}

const FLOW_LABEL_MASK: u32 = 0xf_ffff;

/// The traffic class byte: six bits of DSCP, two of ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrafficClass(pub u8);

impl TrafficClass {
    /// Both parts in one byte; `dscp` has six bits.
    pub const fn new(dscp: u8, ecn: Ecn) -> Self {
        Self(dscp << 2 | ecn as u8)
    }

    /// Differentiated services code point, six bits.
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The lower two bits: explicit congestion notification.
    pub const fn ecn(self) -> Ecn {
        match self.0 & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The traffic class with another ECN field and the same DSCP.
    pub const fn with_ecn(self, ecn: Ecn) -> Self {
        Self::new(self.dscp(), ecn)
    }
}

/// The ECN field (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The sender's transport does not support ECN.
    #[default]
    NotEct = 0,
    /// ECT(1): the transport supports ECN. Codepoint 1.
    Ect1 = 1,
    /// ECT(0): the transport supports ECN. Codepoint 2.
    Ect0 = 2,
    /// CE: a router met congestion. Codepoint 3.
    Ce = 3,
}

/// One extension header of a packet (RFC 8200 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExtensionHeader<'a> {
    /// The protocol number of this header: one of [`mod@next_header`].
    pub kind: u8,
    /// The protocol number of the header behind this one.
    pub next_header: u8,
    /// The whole header, next header field first.
    pub bytes: &'a [u8],
}

/// A walk over extension headers, up to the upper layer.
///
/// ```text
/// +---------------+---------------+------------------------------+
/// |  Next Header  | Hdr Ext Len   |  8 * Hdr Ext Len + 6 bytes   |
/// +---------------+---------------+------------------------------+
/// ```
/// [`Self::next`] yields the headers that RFC 8200 and RFC 6275 define; when it is done,
/// [`Self::next_header`] and [`Self::rest`] are the upper layer. A fragment header is
/// yielded like the others: a caller that refuses fragments stops there.
#[derive(Clone, Copy, Debug)]
pub struct Extensions<'a> {
    next_header: u8,
    rest: Reader<'a>,
    walked: usize,
}

impl<'a> Extensions<'a> {
    /// A walk that starts with `next_header` of the fixed header, and its payload.
    pub const fn new(next_header: u8, payload: &'a [u8]) -> Self {
        Self {
            next_header,
            rest: Reader::new(payload),
            walked: 0,
        }
    }

    /// The protocol number of [`Self::rest`].
    pub const fn next_header(&self) -> u8 {
        self.next_header
    }

    /// The bytes that have not been walked over.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest.rest()
    }

    /// The next extension header, or `None` at the upper layer.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::TooManyExtensions`].
    #[expect(
        clippy::should_implement_trait,
        reason = "an Iterator of Results would hide that the walk stops at the first error"
    )]
    pub fn next(&mut self) -> Result<Option<ExtensionHeader<'a>>, ParseError> {
        let kind = self.next_header;
        if !is_extension(kind) {
            return Ok(None);
        }
        if self.walked == EXTENSIONS_MAX {
            return Err(ParseError::TooManyExtensions);
        }
        let &[next_header, units] = self
            .rest()
            .first_chunk::<2>()
            .ok_or(ParseError::Truncated)?;
        let units = if kind == next_header::FRAGMENT {
            0
        } else {
            units
        };
        let bytes = self.rest.slice(8 + 8 * usize::from(units))?;
        self.next_header = next_header;
        self.walked += 1;
        Ok(Some(ExtensionHeader {
            kind,
            next_header,
            bytes,
        }))
    }
}

/// The routing header of a packet, where it is the first extension header or follows the hop-by-hop
/// options: its offset in `rest`, the bytes after the fixed header, and its own bytes.
#[cfg(feature = "rpl")]
pub(crate) fn routing_header_in(next_header: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    let mut walk = Extensions::new(next_header, rest);
    loop {
        let at = rest.len() - walk.rest().len();
        let extension = walk.next().ok()??;
        match extension.kind {
            next_header::ROUTING => return Some((at, extension.bytes)),
            next_header::HOP_BY_HOP => {}
            _ => return None,
        }
    }
}

/// Whether `next_header` is an extension header that can be walked over.
pub(crate) const fn is_extension(next_header: u8) -> bool {
    matches!(
        next_header,
        next_header::HOP_BY_HOP
            | next_header::ROUTING
            | next_header::FRAGMENT
            | next_header::DESTINATION_OPTIONS
            | next_header::MOBILITY
    )
}

/// One option of a hop-by-hop or destination options header (RFC 8200 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderOption<'a> {
    /// Option type; its two highest bits give the action of a node that does not know the option
    /// (RFC 8200 §4.2).
    pub kind: u8,
    /// Offset of the option in its extension header, bytes.
    pub offset: usize,
    /// Option data, without type and length byte.
    pub data: &'a [u8],
}

/// The options of an options header, padding skipped; bounded by the header's length.
///
/// `bytes`: the extension header, as [`ExtensionHeader::bytes`]. Ends early, with an
/// [`ParseError::Truncated`], at an option that reaches beyond it.
pub fn options(bytes: &[u8]) -> impl Iterator<Item = Result<HeaderOption<'_>, ParseError>> {
    let mut r = Reader::new(bytes.get(2..).unwrap_or_default());
    core::iter::from_fn(move || {
        loop {
            let offset = bytes.len() - r.len();
            let kind = r.u8().ok()?;
            if kind == option::PAD_1 {
                continue;
            }
            let data = r.u8().and_then(|len| r.slice(usize::from(len)));
            return match data {
                Ok(_) if kind == option::PAD_N => continue,
                Ok(data) => Some(Ok(HeaderOption { kind, offset, data })),
                Err(Truncated) => {
                    r = Reader::new(&[]);
                    Some(Err(ParseError::Truncated))
                }
            };
        }
    })
}

/// Option types that are padding.
pub mod option {
    /// Pad1: one byte of padding, without length.
    pub const PAD_1: u8 = 0;
    /// PadN: padding of two bytes or more.
    pub const PAD_N: u8 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn packet() -> [u8; 44] {
        let mut out = [0xcc; 44];
        let header = Header {
            traffic_class: TrafficClass::new(0x2e, Ecn::Ce),
            flow_label: 0xabcde,
            payload_len: 4,
            next_header: 17,
            hop_limit: 64,
            src: Ipv6Addr::LOCALHOST,
            dst: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
        };
        assert_eq!(header.emit(&mut out), Ok(HEADER_LEN));
        out
    }

    #[test]
    fn fields_stand_where_they_belong() {
        let bytes = packet();
        assert_eq!(bytes[..8], [0x6b, 0xba, 0xbc, 0xde, 0, 4, 17, 64]);
        let (header, payload) = Header::parse(&bytes).unwrap();
        assert_eq!(header.traffic_class.dscp(), 0x2e);
        assert_eq!(header.traffic_class.ecn(), Ecn::Ce);
        let marked = header.traffic_class.with_ecn(Ecn::Ect0);
        assert_eq!((marked.dscp(), marked.ecn()), (0x2e, Ecn::Ect0));
        assert_eq!(payload, [0xcc; 4]);
    }

    #[test]
    fn refused() {
        let bytes = packet();
        assert_eq!(Header::parse(&bytes[..39]), Err(ParseError::Truncated));
        assert_eq!(Header::parse(&bytes[..43]), Err(ParseError::PayloadLength));
        assert!(Header::parse_start(&bytes[..43]).is_ok());
        let mut other = bytes;
        other[0] = 0x45;
        assert_eq!(Header::parse(&other), Err(ParseError::Version));
    }

    #[test]
    fn bytes_beyond_the_payload_are_cut_off() {
        let mut bytes = packet().to_vec();
        bytes.push(0xdd);
        assert_eq!(Header::parse(&bytes).unwrap().1, [0xcc; 4]);
    }

    #[test]
    fn walk_over_each_kind() {
        let mut payload = Vec::new();
        payload.extend([43, 0, 1, 4, 0, 0, 0, 0]);
        payload.extend([44, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        payload.extend([60, 0xff, 0, 1, 0, 0, 0, 9]); // a fragment header has no length field
        payload.extend([135, 0, 1, 4, 0, 0, 0, 0]);
        payload.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        payload.extend([1, 2, 3]);
        let mut walk = Extensions::new(0, &payload);
        let mut kinds = Vec::new();
        while let Some(header) = walk.next().unwrap() {
            kinds.push((header.kind, header.bytes.len()));
        }
        assert_eq!(kinds, [(0, 8), (43, 16), (44, 8), (60, 8), (135, 8)]);
        assert_eq!((walk.next_header(), walk.rest()), (6, &[1, 2, 3][..]));
    }

    #[test]
    fn hostile_walks_end() {
        let chain = [0u8; 8 * (EXTENSIONS_MAX + 1)];
        let mut walk = Extensions::new(0, &chain);
        for _ in 0..EXTENSIONS_MAX {
            assert!(walk.next().unwrap().is_some());
        }
        assert_eq!(walk.next(), Err(ParseError::TooManyExtensions));
        for bytes in [&[][..], &[6], &[6, 0, 0], &[6, 1, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(
                Extensions::new(60, bytes).next(),
                Err(ParseError::Truncated)
            );
        }
    }

    #[test]
    fn options_without_padding() {
        let header = [6, 1, 0, 0, 5, 2, 1, 2, 1, 1, 9, 0xc2, 2, 7, 8, 0];
        let found: Vec<_> = options(&header).map(Result::unwrap).collect();
        let option = |kind, offset, data| HeaderOption { kind, offset, data };
        assert_eq!(
            found,
            [option(5, 4, &[1, 2][..]), option(0xc2, 11, &[7, 8])]
        );
        let broken = [6, 0, 5, 9, 0, 0, 0, 0];
        let found: Vec<_> = options(&broken).collect();
        assert_eq!(found, [Err(ParseError::Truncated)]);
    }

    proptest! {
        #[test]
        fn what_parses_is_emitted_byte_for_byte(mut bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Some(first) = bytes.first_mut() {
                *first = *first & 0x0f | 0x60;
            }
            if let Ok((header, rest)) = Header::parse_start(&bytes) {
                let mut out = [0; HEADER_LEN];
                header.emit(&mut out).unwrap();
                prop_assert_eq!(&out[..], &bytes[..HEADER_LEN]);
                let mut walk = Extensions::new(header.next_header % 64, rest);
                while let Ok(Some(extension)) = walk.next() {
                    prop_assert!(options(extension.bytes).count() <= extension.bytes.len());
                }
            }
            let _ = Header::parse(&bytes);
        }
    }
}
