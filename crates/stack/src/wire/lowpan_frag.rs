//! 6LoWPAN fragmentation headers.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------+---------------------+-------------------------------+
//! |1 1 0 0 0|    datagram_size    |         datagram_tag          |  FRAG1
//! +---------+---------------------+-------------------------------+
//! |1 1 1 0 0|    datagram_size    |         datagram_tag          |  FRAGN
//! +---------+-----+---------------+-------------------------------+
//! |datagram_offset|
//! +---------------+
//! ```
//!
//! Place: first bytes of a frame's payload. Left out: which fragments make a packet; that is
//! `lowpan`'s. Sources: RFC 4944 §5.3; RFC 8930 forwards by them.

use super::cursor::{Full, Reader, Truncated, Writer};

/// Bytes of a FRAG1 header.
pub const FIRST_LEN: usize = 4;
/// Where `datagram_tag` stands in either.
pub const TAG_AT: usize = 2;
/// Bytes of a FRAGN header.
pub const NEXT_LEN: usize = 5;
/// The largest `datagram_size`: eleven bits.
pub const DATAGRAM_SIZE_MAX: u16 = 0x7ff;

const DISPATCH_FIRST: u16 = 0b11000;
const DISPATCH_NEXT: u16 = 0b11100;

/// The header of a 6LoWPAN fragment (RFC 4944 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes of the whole packet before compression; eleven bits.
    pub datagram_size: u16,
    /// Identifies the packet, together with both link addresses and the size.
    pub datagram_tag: u16,
    /// Where the fragment starts in the uncompressed packet, in units of eight bytes.
    /// `None`: FRAG1, which starts the packet and holds its compressed header.
    pub datagram_offset: Option<u8>,
}

/// Why bytes are not a fragment header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated,
    /// The first byte is the dispatch of neither FRAG1 nor FRAGN.
    Dispatch,
    /// A FRAGN that starts at 0 or at or beyond the packet's end.
    Offset,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "6LoWPAN fragment header truncated",
            Self::Dispatch => "not a 6LoWPAN fragment",
            Self::Offset => "6LoWPAN fragment offset outside the packet",
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
    /// Reads a fragment header; returns it and what the fragment carries.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut r = Reader::new(bytes);
        let first = r.u16()?;
        let datagram_size = first & DATAGRAM_SIZE_MAX;
        let datagram_tag = r.u16()?;
        let datagram_offset = match first >> 11 {
            DISPATCH_FIRST => None,
            DISPATCH_NEXT => Some(r.u8()?),
            _ => return Err(ParseError::Dispatch),
        };
        if let Some(offset) = datagram_offset
            && (offset == 0 || u16::from(offset) * 8 >= datagram_size)
        {
            return Err(ParseError::Offset);
        }
        Ok((
            Self {
                datagram_size,
                datagram_tag,
                datagram_offset,
            },
            r.rest(),
        ))
    }

    /// Writes the header; returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        debug_assert!(
            self.datagram_size <= DATAGRAM_SIZE_MAX,
            "sizes have eleven bits"
        );
        let dispatch = if self.is_first() {
            DISPATCH_FIRST
        } else {
            DISPATCH_NEXT
        };
        let mut w = Writer::new(out);
        w.u16(dispatch << 11 | self.datagram_size & DATAGRAM_SIZE_MAX)?;
        w.u16(self.datagram_tag)?;
        w.put(self.datagram_offset.as_slice())?;
        Ok(w.written())
    }

    /// Whether this is FRAG1, the header of a packet's first fragment.
    pub const fn is_first(&self) -> bool {
        self.datagram_offset.is_none()
    }

    /// Where the fragment starts in the uncompressed packet, bytes.
    pub fn offset_bytes(&self) -> usize {
        usize::from(self.datagram_offset.unwrap_or(0)) * 8
    }

    /// How many bytes [`Self::emit`] writes: [`FIRST_LEN`] or [`NEXT_LEN`].
    pub const fn header_len(&self) -> usize {
        if self.is_first() { FIRST_LEN } else { NEXT_LEN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_headers() {
        let first = Header {
            datagram_size: 1280,
            datagram_tag: 0xbeef,
            datagram_offset: None,
        };
        let next = Header {
            datagram_offset: Some(12),
            ..first
        };
        let mut out = [0; 8];
        assert_eq!(
            (first.emit(&mut out), &out[..4]),
            (Ok(4), &[0xc5, 0, 0xbe, 0xef][..])
        );
        assert_eq!(Header::parse(&out[..6]), Ok((first, &[0, 0][..])));
        assert_eq!(
            (next.emit(&mut out), &out[..5]),
            (Ok(5), &[0xe5, 0, 0xbe, 0xef, 12][..])
        );
        assert_eq!(Header::parse(&out[..5]), Ok((next, &[][..])));
        assert_eq!(next.offset_bytes(), 96);
        assert_eq!(next.emit(&mut out[..4]), Err(Full));
    }

    #[test]
    fn refused() {
        let cases: [(&str, &[u8], ParseError); 7] = [
            ("empty", &[], ParseError::Truncated),
            ("no tag", &[0xc0, 80, 1], ParseError::Truncated),
            ("no offset", &[0xe0, 80, 1, 2], ParseError::Truncated),
            ("offset 0", &[0xe0, 80, 1, 2, 0], ParseError::Offset),
            (
                "offset at the end",
                &[0xe0, 80, 1, 2, 10],
                ParseError::Offset,
            ),
            ("IPHC", &[0x7a, 0x33, 0x3a, 0x80], ParseError::Dispatch),
            (
                "RFC 8931 fragment",
                &[0xe8, 0, 0, 0, 0, 0],
                ParseError::Dispatch,
            ),
        ];
        for (name, bytes, reason) in cases {
            assert_eq!(Header::parse(bytes), Err(reason), "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_is_emitted_byte_for_byte(mut bytes in prop::collection::vec(any::<u8>(), 0..9), kind in 0u8..3) {
            if let Some(first) = bytes.first_mut() {
                *first = match kind { 0 => *first, 1 => *first & 7 | 0xc0, _ => *first & 7 | 0xe0 };
            }
            if let Ok((header, rest)) = Header::parse(&bytes) {
                let mut out = [0; 8];
                let len = header.emit(&mut out).unwrap();
                prop_assert_eq!(len, header.header_len());
                prop_assert_eq!(&out[..len], &bytes[..bytes.len() - rest.len()]);
            }
        }
    }
}
