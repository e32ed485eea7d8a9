//! LOWPAN_IPHC: the compressed IPv6 header, without the contexts it may refer to.
//!
//! ```text
//!   0   1   2   3   4   5   6   7   8   9  10  11  12  13  14  15
//! +---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+
//! | 0 | 1 | 1 |  TF   |NH | HLIM  |CID|SAC|  SAM  | M |DAC|  DAM  |
//! +---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+---+
//!   then: context ids, traffic class and flow label, next header, hop limit, source,
//!   destination; each only where the bits above say so.
//! ```
//!
//! Place: below `lowpan::{compress, decompress}`, which know contexts and link addresses.
//! Left out: those. `emit` chooses the shortest form of every field it can choose alone.
//! Source: RFC 6282 §3.

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Truncated, Writer};
use super::ipv6::TrafficClass;

/// Bytes of the longest header: nothing compressed, and context ids.
pub const HEADER_LEN_MAX: usize = 41;

/// A compressed IPv6 header. The payload length is always elided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// DSCP and ECN, in IPv6's order (on the air ECN comes first).
    pub traffic_class: TrafficClass,
    /// Flow label, 0 to 0xfffff.
    pub flow_label: u32,
    /// `None`: the next header is compressed too, with LOWPAN_NHC.
    pub next_header: Option<u8>,
    /// Hop limit; 1, 64 and 255 take no byte on the air.
    pub hop_limit: u8,
    /// The source address, in the form it has on the air.
    pub src: Source,
    /// The destination address, in the form it has on the air.
    pub dst: Destination,
}

/// How the source address is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The unspecified address, `::`.
    Unspecified,
    /// Any other source address.
    Unicast(Unicast),
}

/// How the destination address is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// A unicast address.
    Unicast(Unicast),
    /// A multicast address, which has forms of its own (§3.2.3, §3.2.4).
    Multicast(Multicast),
}

/// A unicast address, as far as it is in line (§3.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unicast {
    /// All 128 bits in line.
    Full(Ipv6Addr),
    /// A prefix known to both sides, and an interface identifier.
    Known {
        /// Where the elided prefix comes from.
        prefix: Prefix,
        /// The bits that the prefix does not cover.
        iid: Iid,
    },
}

/// A prefix that is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prefix {
    /// The link-local prefix, `fe80::/64`.
    LinkLocal,
    /// The context with this identifier, 0 to 15.
    Context(u8),
}

/// How the interface identifier is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Iid {
    /// All 64 bits in line.
    Inline([u8; 8]),
    /// 16 bits in line: `0000:00ff:fe00:XXXX`.
    Short(u16),
    /// Derived from the encapsulating header: link layer, or outer IPv6.
    Elided,
}

/// A multicast address, as far as it is in line (§3.2.3, §3.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Multicast {
    /// All 128 bits in line.
    Full(Ipv6Addr),
    /// 48 bits in line: `ffXX::00XX:XXXX:XXXX`.
    Bits48([u8; 6]),
    /// 32 bits in line: `ffXX::00XX:XXXX`.
    Bits32([u8; 4]),
    /// 8 bits in line: `ff02::00XX`.
    Bits8(u8),
    /// `ffXX:XXLL:PPPP:PPPP:PPPP:PPPP:XXXX:XXXX`: unicast-prefix-based (RFC 3306, RFC 3956),
    /// length and prefix from a context.
    Prefix {
        /// Identifier of the context, 0 to 15.
        context: u8,
        /// Flags and scope (8 bits), reserved bits and RIID (8 bits), group identifier (32 bits).
        bits: [u8; 6],
    },
}

/// Why bytes are not a compressed header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated,
    /// The first byte is not the dispatch of LOWPAN_IPHC.
    Dispatch,
    /// A destination mode that RFC 6282 §3.1.1 reserves.
    ReservedMode,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "IPHC header truncated",
            Self::Dispatch => "not an IPHC header",
            Self::ReservedMode => "IPHC destination mode is reserved",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

const DISPATCH: u16 = 0b011 << 13;
const TF_AT: u32 = 11;
const NH: u16 = 1 << 10;
const HLIM_AT: u32 = 8;
const CID: u16 = 1 << 7;
const SAC: u16 = 1 << 6;
const SAM_AT: u32 = 4;
const M: u16 = 1 << 3;
const DAC: u16 = 1 << 2;

/// The hop limits with an encoding of their own, at its value.
const HOP_LIMITS: [u8; 4] = [0, 1, 64, 255];

impl Header {
    /// Reads a compressed header; returns it and what follows.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut r = Reader::new(bytes);
        let base = r.u16()?;
        if base & 0b111 << 13 != DISPATCH {
            return Err(ParseError::Dispatch);
        }
        let contexts = if base & CID != 0 { r.u8()? } else { 0 };
        let (traffic_class, flow_label) = parse_tf(&mut r, base >> TF_AT & 3)?;
        let next_header = if base & NH == 0 { Some(r.u8()?) } else { None };
        let hop_limit = match base >> HLIM_AT & 3 {
            0 => r.u8()?,
            1 => 1,
            2 => 64,
            _ => 255,
        };
        let prefix = |stateful: bool, context: u8| match stateful {
            true => Prefix::Context(context),
            false => Prefix::LinkLocal,
        };
        let src = prefix(base & SAC != 0, contexts >> 4);
        let src = match (base >> SAM_AT & 3, src) {
            (0, Prefix::Context(_)) => Source::Unspecified,
            (mode, prefix) => Source::Unicast(Unicast::parse(&mut r, mode, prefix)?),
        };
        let dst = prefix(base & DAC != 0, contexts & 15);
        let dst = match (base & 3, dst) {
            (mode, prefix) if base & M != 0 => {
                Destination::Multicast(Multicast::parse(&mut r, mode, prefix)?)
            }
            (0, Prefix::Context(_)) => return Err(ParseError::ReservedMode),
            (mode, prefix) => Destination::Unicast(Unicast::parse(&mut r, mode, prefix)?),
        };
        let header = Self {
            traffic_class,
            flow_label,
            next_header,
            hop_limit,
            src,
            dst,
        };
        Ok((header, r.rest()))
    }

    /// Appends the header, in the shortest form.
    ///
    /// # Errors
    /// [`Full`] when it does not fit.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let (src_bits, src_context) = self.src.mode();
        let (dst_bits, dst_context) = self.dst.mode();
        let contexts = src_context << 4 | dst_context;
        let tf = tf_mode(self.traffic_class, self.flow_label);
        let hlim = HOP_LIMITS
            .iter()
            .position(|known| *known == self.hop_limit)
            .unwrap_or(0);
        let mut base = DISPATCH | tf << TF_AT | (hlim as u16) << HLIM_AT | src_bits | dst_bits;
        if self.next_header.is_none() {
            base |= NH;
        }
        if contexts != 0 {
            base |= CID;
        }
        w.u16(base)?;
        if contexts != 0 {
            w.u8(contexts)?;
        }
        emit_tf(w, tf, self.traffic_class, self.flow_label)?;
        w.put(self.next_header.as_slice())?;
        if hlim == 0 {
            w.u8(self.hop_limit)?;
        }
        if let Source::Unicast(unicast) = &self.src {
            unicast.emit(w)?;
        }
        match &self.dst {
            Destination::Unicast(unicast) => unicast.emit(w),
            Destination::Multicast(multicast) => multicast.emit(w),
        }
    }
}

/// ECN stands before DSCP here, after it in IPv6: two bits of rotation.
fn parse_tf(r: &mut Reader<'_>, mode: u16) -> Result<(TrafficClass, u32), Truncated> {
    let flow_label = |[high, middle, low]: [u8; 3]| u32::from_be_bytes([0, high & 15, middle, low]);
    Ok(match mode {
        0 => {
            let class = r.u8()?.rotate_left(2);
            (TrafficClass(class), flow_label(r.array()?))
        }
        1 => {
            let bytes: [u8; 3] = r.array()?;
            let [first, ..] = bytes;
            (TrafficClass(first >> 6), flow_label(bytes))
        }
        2 => (TrafficClass(r.u8()?.rotate_left(2)), 0),
        _ => (TrafficClass(0), 0),
    })
}

const fn tf_mode(class: TrafficClass, flow_label: u32) -> u16 {
    match (class, flow_label) {
        (TrafficClass(0), 0) => 3,
        (_, 0) => 2,
        (class, _) if class.dscp() == 0 => 1,
        _ => 0,
    }
}

fn emit_tf(w: &mut Writer<'_>, mode: u16, class: TrafficClass, label: u32) -> Result<(), Full> {
    let [_, high, middle, low] = label.to_be_bytes();
    let first = class.0.rotate_right(2);
    match mode {
        0 => w.put(&[first, high & 15, middle, low]),
        1 => w.put(&[first | high & 15, middle, low]),
        2 => w.u8(first),
        _ => Ok(()),
    }
}

impl Source {
    /// SAC and SAM, and the context to name in the identifiers' byte.
    const fn mode(&self) -> (u16, u8) {
        match self {
            Self::Unspecified => (SAC, 0),
            Self::Unicast(unicast) => {
                let (mode, context) = unicast.mode();
                match context {
                    Some(id) => (SAC | mode << SAM_AT, id & 15),
                    None => (mode << SAM_AT, 0),
                }
            }
        }
    }
}

impl Destination {
    /// M, DAC and DAM, and the context to name in the identifiers' byte.
    const fn mode(&self) -> (u16, u8) {
        match self {
            Self::Unicast(unicast) => {
                let (mode, context) = unicast.mode();
                match context {
                    Some(id) => (DAC | mode, id & 15),
                    None => (mode, 0),
                }
            }
            Self::Multicast(Multicast::Full(_)) => (M, 0),
            Self::Multicast(Multicast::Bits48(_)) => (M | 1, 0),
            Self::Multicast(Multicast::Bits32(_)) => (M | 2, 0),
            Self::Multicast(Multicast::Bits8(_)) => (M | 3, 0),
            Self::Multicast(Multicast::Prefix { context, .. }) => (M | DAC, *context & 15),
        }
    }
}

impl Unicast {
    fn parse(r: &mut Reader<'_>, mode: u16, prefix: Prefix) -> Result<Self, Truncated> {
        let iid = match mode {
            0 => return Ok(Self::Full(Ipv6Addr::from(*r.chunk::<16>()?))),
            1 => Iid::Inline(*r.chunk()?),
            2 => Iid::Short(r.u16()?),
            _ => Iid::Elided,
        };
        Ok(Self::Known { prefix, iid })
    }

    const fn mode(&self) -> (u16, Option<u8>) {
        match self {
            Self::Full(_) => (0, None),
            Self::Known { prefix, iid } => {
                let mode = match iid {
                    Iid::Inline(_) => 1,
                    Iid::Short(_) => 2,
                    Iid::Elided => 3,
                };
                match prefix {
                    Prefix::LinkLocal => (mode, None),
                    Prefix::Context(id) => (mode, Some(*id)),
                }
            }
        }
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Full(addr) => w.put(&addr.octets()),
            Self::Known {
                iid: Iid::Inline(iid),
                ..
            } => w.put(iid),
            Self::Known {
                iid: Iid::Short(short),
                ..
            } => w.u16(*short),
            Self::Known {
                iid: Iid::Elided, ..
            } => Ok(()),
        }
    }
}

impl Multicast {
    fn parse(r: &mut Reader<'_>, mode: u16, prefix: Prefix) -> Result<Self, ParseError> {
        Ok(match (mode, prefix) {
            (0, Prefix::Context(context)) => Self::Prefix {
                context,
                bits: *r.chunk()?,
            },
            (_, Prefix::Context(_)) => return Err(ParseError::ReservedMode),
            (0, _) => Self::Full(Ipv6Addr::from(*r.chunk::<16>()?)),
            (1, _) => Self::Bits48(*r.chunk()?),
            (2, _) => Self::Bits32(r.array()?),
            _ => Self::Bits8(r.u8()?),
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Full(addr) => w.put(&addr.octets()),
            Self::Bits48(bits) | Self::Prefix { bits, .. } => w.put(bits),
            Self::Bits32(bits) => w.put(bits),
            Self::Bits8(bits) => w.u8(*bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ipv6::Ecn;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn header() -> Header {
        let known = Unicast::Known {
            prefix: Prefix::LinkLocal,
            iid: Iid::Elided,
        };
        Header {
            traffic_class: TrafficClass(0),
            flow_label: 0,
            next_header: Some(58),
            hop_limit: 64,
            src: Source::Unicast(known),
            dst: Destination::Unicast(known),
        }
    }

    fn emitted(header: &Header) -> Vec<u8> {
        let mut out = [0; HEADER_LEN_MAX];
        let mut w = Writer::new(&mut out);
        header.emit(&mut w).unwrap();
        let len = w.written();
        out[..len].to_vec()
    }

    #[test]
    fn plugtest_header() {
        assert_eq!(emitted(&header()), [0x7a, 0x33, 0x3a]);
    }

    #[test]
    fn traffic_class_and_flow_label_in_every_form() {
        let cases: [(u8, Ecn, u32, &[u8]); 6] = [
            (0, Ecn::NotEct, 0, &[0x7a, 0x33, 0x3a]),
            (0, Ecn::Ce, 0, &[0x72, 0x33, 0b1100_0000, 0x3a]),
            (0x2e, Ecn::Ect0, 0, &[0x72, 0x33, 0b1010_1110, 0x3a]),
            (0, Ecn::Ect1, 0xabcde, &[0x6a, 0x33, 0x4a, 0xbc, 0xde, 0x3a]),
            (0, Ecn::NotEct, 1, &[0x6a, 0x33, 0, 0, 1, 0x3a]),
            (
                0x3f,
                Ecn::Ce,
                0xabcde,
                &[0x62, 0x33, 0xff, 0x0a, 0xbc, 0xde, 0x3a],
            ),
        ];
        for (dscp, ecn, flow_label, bytes) in cases {
            let traffic_class = TrafficClass::new(dscp, ecn);
            let header = Header {
                traffic_class,
                flow_label,
                ..header()
            };
            assert_eq!(emitted(&header), bytes, "{dscp} {ecn:?} {flow_label}");
            assert_eq!(Header::parse(bytes), Ok((header, &[][..])));
        }
    }

    #[test]
    fn hop_limits() {
        for (hop_limit, bytes) in [
            (1, &[0x79, 0x33, 6][..]),
            (64, &[0x7a, 0x33, 6]),
            (255, &[0x7b, 0x33, 6]),
            (63, &[0x78, 0x33, 6, 63]),
        ] {
            let header = Header {
                hop_limit,
                next_header: Some(6),
                ..header()
            };
            assert_eq!(emitted(&header), bytes);
            assert_eq!(Header::parse(bytes).unwrap().0, header);
        }
    }

    #[test]
    fn context_0_needs_no_identifiers() {
        let known = Unicast::Known {
            prefix: Prefix::Context(0),
            iid: Iid::Elided,
        };
        let zero = Header {
            src: Source::Unicast(known),
            dst: Destination::Unicast(known),
            next_header: None,
            ..header()
        };
        assert_eq!(emitted(&zero), [0x7e, 0x77]);
        assert_eq!(Header::parse(&[0x7e, 0x77]).unwrap().0, zero);
        // The same with identifiers that need not be there.
        assert_eq!(Header::parse(&[0x7e, 0xf7, 0]).unwrap().0, zero);
    }

    #[test]
    fn refused() {
        let cases: [(&str, &[u8], ParseError); 8] = [
            ("empty", &[], ParseError::Truncated),
            ("half a base", &[0x7a], ParseError::Truncated),
            ("uncompressed", &[0x41, 0x60], ParseError::Dispatch),
            ("no context ids", &[0x7e, 0xf7], ParseError::Truncated),
            (
                "half a source",
                &[0x7e, 0x13, 1, 2, 3],
                ParseError::Truncated,
            ),
            (
                "DAC without M, mode 0",
                &[0x7e, 0x34],
                ParseError::ReservedMode,
            ),
            (
                "DAC with M, mode 1",
                &[0x7e, 0x3d, 1, 2, 3, 4, 5, 6],
                ParseError::ReservedMode,
            ),
            (
                "DAC with M, mode 3",
                &[0x7e, 0x3f, 1],
                ParseError::ReservedMode,
            ),
        ];
        for (name, bytes, reason) in cases {
            assert_eq!(
                Header::parse(bytes).map(|(header, _)| header),
                Err(reason),
                "{name}"
            );
        }
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_what_it_yields_round_trips(mut bytes in prop::collection::vec(any::<u8>(), 0..48)) {
            let _ = Header::parse(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = *first & 0x1f | 0x60;
            }
            if let Ok((header, rest)) = Header::parse(&bytes) {
                let again = emitted(&header);
                prop_assert!(again.len() <= bytes.len() - rest.len(), "never longer than what came in");
                prop_assert_eq!(Header::parse(&again), Ok((header, &[][..])));
            }
        }
    }
}
