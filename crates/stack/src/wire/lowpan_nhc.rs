//! LOWPAN_NHC: compressed next headers.
//!
//! ```text
//! +---+---+---+---+---+---+---+---+   extension header: EEE says which; NH = 1: another
//! | 1 | 1 | 1 | 0 |    EEE    |NH |   NHC follows. Then next header (NH = 0), length in
//! +---+---+---+---+---+---+---+---+   bytes, content.
//! +---+---+---+---+---+---+---+---+   UDP: C = 1: no checksum; P: how ports are given.
//! | 1 | 1 | 1 | 1 | 0 | C |   P   |
//! +---+---+---+---+---+---+---+---+
//! ```
//!
//! TCP: the headers of [`tcphc`], whose first bytes RFC 6282 and RFC 7400 leave free.
//!
//! Place: below `lowpan::{compress, decompress}`. Left out: GHC (RFC 7400).
//! Source: RFC 6282 §4. In a compressed fragment header the reserved byte stays in place of a
//! length. RFC 6282 does not define this; Wireshark reads it the same way.

use super::cursor::{Full, Reader, Truncated, Writer};
use super::ipv6::next_header;
use super::{tcp, tcphc, udp};

/// Bytes of extension header content that the length field can count.
pub const EXTENSION_LEN_MAX: usize = 255;

/// One compressed next header (RFC 6282 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nhc<'a> {
    /// An IPv6 extension header (RFC 6282 §4.2).
    Extension(Extension<'a>),
    /// An IPv6 header within this packet; LOWPAN_IPHC follows.
    Ipv6,
    /// A UDP header (RFC 6282 §4.3).
    Udp(Udp),
    /// A TCP header, which takes a context to be restored.
    Tcp(Tcp<'a>),
}

/// A compressed IPv6 extension header (RFC 6282 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extension<'a> {
    /// Which: a value of [`next_header`].
    pub kind: u8,
    /// `None`: the next header is compressed too.
    pub next_header: Option<u8>,
    /// The bytes behind the length field, at most 255; trailing padding may be missing. In a
    /// fragment header: the seven bytes behind its next header field.
    pub body: &'a [u8],
}

/// A compressed UDP header; its length is always elided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp {
    /// Source and destination port.
    pub ports: udp::Header,
    /// `None`: elided, with the upper layer's consent (RFC 6282 §4.3.2).
    pub checksum: Option<u16>,
}

/// A compressed TCP header as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tcp<'a> {
    /// The compressed header; the first byte tells its form.
    pub header: &'a [u8],
    /// Bytes of the TCP header it stands for, 20 to 60.
    pub uncompressed_len: usize,
}

/// Why bytes are not a compressed next header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated,
    /// An encoding that is reserved or of another specification.
    Unknown,
    /// An IPv6 header that claims another NHC before itself.
    Ipv6NextHeader,
    /// A compressed TCP header is malformed.
    Tcp(tcphc::ParseError),
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "NHC header truncated",
            Self::Unknown => "NHC encoding unknown",
            Self::Ipv6NextHeader => "NHC of an IPv6 header with the NH bit",
            Self::Tcp(error) => error.reason(),
        }
    }
}

speaks!(ParseError, Self::Tcp(error) => error);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

/// First byte of compressed hop-by-hop options, with the next header in line.
#[cfg(all(feature = "rpl", feature = "plain-rpl"))]
pub(crate) const HOP_BY_HOP: u8 = EXTENSION;
/// The same, with the next header compressed, too.
#[cfg(all(feature = "rpl", feature = "plain-rpl"))]
pub(crate) const HOP_BY_HOP_AND_NHC: u8 = EXTENSION | 1;

const EXTENSION: u8 = 0b1110_0000;
const UDP: u8 = 0b1111_0000;
const UDP_CHECKSUM_ELIDED: u8 = 0b100;
const FRAGMENT_BODY_LEN: usize = 7;

/// Extension header identifiers (EID), 0 to 4 and 7.
const EIDS: [(u8, u8); 6] = [
    (0, next_header::HOP_BY_HOP),
    (1, next_header::ROUTING),
    (2, next_header::FRAGMENT),
    (3, next_header::DESTINATION_OPTIONS),
    (4, next_header::MOBILITY),
    (7, next_header::IPV6),
];

/// The IPv6 next header value of what a NHC that starts with `first` encodes.
///
/// # Errors
/// [`ParseError::Unknown`].
pub(crate) fn next_header_of(first: u8) -> Result<u8, ParseError> {
    if first & 0b1111_1000 == UDP {
        return Ok(udp::NEXT_HEADER);
    }
    if tcphc::is_tcphc(first) {
        return Ok(tcp::NEXT_HEADER);
    }
    if first & 0b1111_0000 != EXTENSION {
        return Err(ParseError::Unknown);
    }
    let eid = first >> 1 & 7;
    let found = EIDS.iter().find(|(known, _)| *known == eid);
    found.map(|(_, kind)| *kind).ok_or(ParseError::Unknown)
}

impl<'a> Nhc<'a> {
    /// Reads one compressed next header; returns it and what follows.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), ParseError> {
        let mut r = Reader::new(bytes);
        let first = r.u8()?;
        let nhc = match next_header_of(first)? {
            udp::NEXT_HEADER => Self::Udp(Udp::parse(first, &mut r)?),
            tcp::NEXT_HEADER if tcphc::IS_SUPPORTED => {
                let lengths = tcphc::lengths(bytes).map_err(ParseError::Tcp)?;
                r = Reader::new(bytes);
                Self::Tcp(Tcp {
                    header: r.slice(lengths.compressed)?,
                    uncompressed_len: lengths.uncompressed,
                })
            }
            next_header::IPV6 if first & 1 != 0 => return Err(ParseError::Ipv6NextHeader),
            next_header::IPV6 => Self::Ipv6,
            kind => {
                let next_header = if first & 1 == 0 { Some(r.u8()?) } else { None };
                let len = match kind {
                    next_header::FRAGMENT => FRAGMENT_BODY_LEN,
                    _ => usize::from(r.u8()?),
                };
                Self::Extension(Extension {
                    kind,
                    next_header,
                    body: r.slice(len)?,
                })
            }
        };
        Ok((nhc, r.rest()))
    }

    /// Appends the header, ports in the shortest form.
    ///
    /// # Errors
    /// [`Full`] when it does not fit, or a body is too long for its length field.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Extension(extension) => extension.emit(w),
            Self::Ipv6 => w.u8(EXTENSION | 7 << 1),
            Self::Udp(udp) => udp.emit(w),
            Self::Tcp(tcp) => w.put(tcp.header),
        }
    }
}

impl Extension<'_> {
    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let (eid, _) = EIDS
            .iter()
            .find(|(_, kind)| *kind == self.kind)
            .ok_or(Full)?;
        w.u8(EXTENSION | eid << 1 | u8::from(self.next_header.is_none()))?;
        w.put(self.next_header.as_slice())?;
        if self.kind != next_header::FRAGMENT {
            w.u8(u8::try_from(self.body.len()).map_err(|_| Full)?)?;
        }
        w.put(self.body)
    }
}

impl Udp {
    fn parse(first: u8, r: &mut Reader<'_>) -> Result<Self, Truncated> {
        let (src_port, dst_port) = match first & 3 {
            0 => (r.u16()?, r.u16()?),
            1 => (r.u16()?, 0xf000 | u16::from(r.u8()?)),
            2 => (0xf000 | u16::from(r.u8()?), r.u16()?),
            _ => {
                let both = u16::from(r.u8()?);
                (0xf0b0 | both >> 4, 0xf0b0 | both & 15)
            }
        };
        let checksum = match first & UDP_CHECKSUM_ELIDED {
            0 => Some(r.u16()?),
            _ => None,
        };
        Ok(Self {
            ports: udp::Header { src_port, dst_port },
            checksum,
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let udp::Header { src_port, dst_port } = self.ports;
        let elided = if self.checksum.is_none() {
            UDP_CHECKSUM_ELIDED
        } else {
            0
        };
        if src_port & 0xfff0 == 0xf0b0 && dst_port & 0xfff0 == 0xf0b0 {
            w.u8(UDP | elided | 3)?;
            w.u8(((src_port & 15) << 4 | dst_port & 15) as u8)?;
        } else if src_port & 0xff00 == 0xf000 {
            w.put(&[UDP | elided | 2, src_port as u8])?;
            w.u16(dst_port)?;
        } else if dst_port & 0xff00 == 0xf000 {
            w.u8(UDP | elided | 1)?;
            w.u16(src_port)?;
            w.u8(dst_port as u8)?;
        } else {
            w.u8(UDP | elided)?;
            w.u16(src_port)?;
            w.u16(dst_port)?;
        }
        match self.checksum {
            Some(checksum) => w.u16(checksum),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn emitted(nhc: &Nhc<'_>) -> Vec<u8> {
        let mut out = [0; 300];
        let mut w = Writer::new(&mut out);
        nhc.emit(&mut w).unwrap();
        let len = w.written();
        out[..len].to_vec()
    }

    #[test]
    fn ports_in_every_form() {
        let cases: [(u16, u16, Option<u16>, &[u8]); 7] = [
            (
                5683,
                1000,
                Some(0x1234),
                &[0xf0, 0x16, 0x33, 0x03, 0xe8, 0x12, 0x34],
            ),
            (
                5683,
                0xf012,
                Some(0x1234),
                &[0xf1, 0x16, 0x33, 0x12, 0x12, 0x34],
            ),
            (
                0xf012,
                5683,
                Some(0x1234),
                &[0xf2, 0x12, 0x16, 0x33, 0x12, 0x34],
            ),
            (0xf0b1, 0xf0b2, Some(0x1234), &[0xf3, 0x12, 0x12, 0x34]),
            (0xf0b1, 0xf0b2, None, &[0xf7, 0x12]),
            (0xf0b1, 0xf0a2, None, &[0xf6, 0xb1, 0xf0, 0xa2]),
            (1, 2, None, &[0xf4, 0, 1, 0, 2]),
        ];
        for (src_port, dst_port, checksum, bytes) in cases {
            let nhc = Nhc::Udp(Udp {
                ports: udp::Header { src_port, dst_port },
                checksum,
            });
            assert_eq!(emitted(&nhc), bytes);
            assert_eq!(Nhc::parse(bytes), Ok((nhc, &[][..])));
            assert_eq!(next_header_of(bytes[0]), Ok(17));
        }
    }

    #[test]
    fn every_extension_header() {
        let kinds = [(0xe0, 0), (0xe2, 43), (0xe6, 60), (0xe8, 135)];
        for (first, kind) in kinds {
            let nhc = Nhc::Extension(Extension {
                kind,
                next_header: Some(6),
                body: &[1, 2, 3],
            });
            assert_eq!(emitted(&nhc), [first, 6, 3, 1, 2, 3]);
            assert_eq!(Nhc::parse(&[first, 6, 3, 1, 2, 3, 9]), Ok((nhc, &[9][..])));
            let nhc = Nhc::Extension(Extension {
                kind,
                next_header: None,
                body: &[],
            });
            assert_eq!(emitted(&nhc), [first | 1, 0]);
            assert_eq!(Nhc::parse(&[first | 1, 0]), Ok((nhc, &[][..])));
        }
        let body = &[0, 0, 1, 0, 0, 0, 7];
        let fragment = Nhc::Extension(Extension {
            kind: 44,
            next_header: Some(17),
            body,
        });
        assert_eq!(emitted(&fragment), [0xe4, 17, 0, 0, 1, 0, 0, 0, 7]);
        assert_eq!(Nhc::parse(&emitted(&fragment)), Ok((fragment, &[][..])));
        assert_eq!(emitted(&Nhc::Ipv6), [0xee]);
        assert_eq!(Nhc::parse(&[0xee, 0x7a]), Ok((Nhc::Ipv6, &[0x7a][..])));
    }

    #[test]
    fn refused() {
        let cases: [(&str, &[u8], ParseError); 9] = [
            ("empty", &[], ParseError::Truncated),
            ("EID 5", &[0xea, 0, 0], ParseError::Unknown),
            ("EID 6", &[0xec, 0, 0], ParseError::Unknown),
            ("IPv6 with NH", &[0xef], ParseError::Ipv6NextHeader),
            ("GHC", &[0xd0, 0], ParseError::Unknown),
            ("reserved", &[0xf8, 0], ParseError::Unknown),
            ("no length", &[0xe0, 6], ParseError::Truncated),
            ("body too short", &[0xe1, 3, 0, 0], ParseError::Truncated),
            ("no checksum", &[0xf3, 0x12, 0], ParseError::Truncated),
        ];
        for (name, bytes, reason) in cases {
            assert_eq!(Nhc::parse(bytes), Err(reason), "{name}");
        }
        let body = &[0; EXTENSION_LEN_MAX + 1];
        let long = Nhc::Extension(Extension {
            kind: 0,
            next_header: None,
            body,
        });
        assert_eq!(long.emit(&mut Writer::new(&mut [0; 300])), Err(Full));
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_what_it_yields_round_trips(mut bytes in prop::collection::vec(any::<u8>(), 0..40), nhc: bool) {
            if let Some(first) = bytes.first_mut().filter(|_| nhc) {
                *first |= 0xe0;
            }
            if let Ok((nhc, rest)) = Nhc::parse(&bytes) {
                let again = emitted(&nhc);
                prop_assert!(again.len() <= bytes.len() - rest.len());
                prop_assert_eq!(Nhc::parse(&again), Ok((nhc, &[][..])));
            }
        }
    }
}
