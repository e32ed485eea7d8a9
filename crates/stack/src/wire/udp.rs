//! UDP headers.
//!
//! ```text
//! +-------------------------------+-------------------------------+
//! |          Source Port          |       Destination Port        |
//! +-------------------------------+-------------------------------+
//! |      Length (with header)     |           Checksum            |
//! +-------------------------------+-------------------------------+
//! ```
//!
//! Place: read by `ip` and `lowpan`. Left out: the zero checksum that RFC 6935 allows to
//! tunnels. Sources: RFC 768; RFC 8200 §8.1.

use core::net::Ipv6Addr;

use super::checksum;
use super::cursor::{Full, Reader, Truncated, Writer};

/// The IPv6 next header value of UDP.
pub const NEXT_HEADER: u8 = 17;
/// Length of the header, bytes.
pub const HEADER_LEN: usize = 8;

const CHECKSUM_AT: usize = 6;

/// A UDP header; length and checksum follow from the datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Source port; 0: no answer wanted.
    pub src_port: u16,
    /// Port of the receiver, 0 to 65,535.
    pub dst_port: u16,
}

/// Why bytes are not a UDP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer than the eight bytes of the header.
    Truncated,
    /// The length field is below eight or beyond the bytes.
    Length,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "UDP header truncated",
            Self::Length => "UDP length outside the packet",
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
    /// Reads the header of `datagram`; returns it and the payload, without what lies beyond
    /// the length field. The checksum is not verified: see [`is_checksum_valid`].
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(datagram: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut r = Reader::new(datagram);
        let header = Self {
            src_port: r.u16()?,
            dst_port: r.u16()?,
        };
        let len = usize::from(r.u16()?);
        let _checksum = r.u16()?;
        let payload = len
            .checked_sub(HEADER_LEN)
            .and_then(|len| r.slice(len).ok())
            .ok_or(ParseError::Length)?;
        Ok((header, payload))
    }

    /// Writes the header of a datagram of `payload_len` bytes, with a zero checksum; returns
    /// [`HEADER_LEN`]. With the payload behind it, [`fill_checksum`] completes the datagram.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short, or the datagram too long for its length field.
    pub fn emit(&self, payload_len: usize, out: &mut [u8]) -> Result<usize, Full> {
        let len = u16::try_from(HEADER_LEN + payload_len).map_err(|_| Full)?;
        let mut w = Writer::new(out);
        w.u16(self.src_port)?;
        w.u16(self.dst_port)?;
        w.u16(len)?;
        w.u16(0)?;
        Ok(w.written())
    }
}

/// Whether `datagram`, cut to its length field, carries the right checksum; zero is wrong.
pub fn is_checksum_valid(src: &Ipv6Addr, dst: &Ipv6Addr, datagram: &[u8]) -> bool {
    checksum_field(datagram).is_some_and(|field| field != 0)
        && checksum::is_valid(src, dst, NEXT_HEADER, datagram)
}

/// Computes and stores the checksum of `datagram`, header and payload.
pub fn fill_checksum(src: &Ipv6Addr, dst: &Ipv6Addr, datagram: &mut [u8]) {
    checksum::fill(src, dst, NEXT_HEADER, datagram, CHECKSUM_AT, true);
}

/// The checksum field of `datagram`, as received.
pub fn checksum_field(datagram: &[u8]) -> Option<u16> {
    checksum::field(datagram, CHECKSUM_AT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refused() {
        let cases: [(&str, &[u8], ParseError); 4] = [
            ("empty", &[], ParseError::Truncated),
            ("no checksum", &[0, 1, 0, 2, 0, 8], ParseError::Truncated),
            ("length 7", &[0, 1, 0, 2, 0, 7, 0, 0], ParseError::Length),
            (
                "length 9 of 8",
                &[0, 1, 0, 2, 0, 9, 0, 0],
                ParseError::Length,
            ),
        ];
        for (name, bytes, reason) in cases {
            assert_eq!(Header::parse(bytes), Err(reason), "{name}");
        }
    }

    #[test]
    fn a_zero_checksum_is_not_valid() {
        let addr = Ipv6Addr::UNSPECIFIED;
        let mut datagram = [0, 1, 0, 2, 0, 8, 0, 0];
        fill_checksum(&addr, &addr, &mut datagram);
        assert!(is_checksum_valid(&addr, &addr, &datagram));
        datagram[6..].fill(0);
        assert!(!is_checksum_valid(&addr, &addr, &datagram));
        // Ports chosen so that the sum is right with a zero field: still refused.
        let all_ones = [0xff, 0xff - 33, 0, 0, 0, 8, 0, 0];
        assert!(checksum::is_valid(&addr, &addr, NEXT_HEADER, &all_ones));
        assert!(!is_checksum_valid(&addr, &addr, &all_ones));
        assert!(
            Header {
                src_port: 1,
                dst_port: 2
            }
            .emit(65528, &mut [0; 8])
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn what_parses_is_emitted_byte_for_byte(mut bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(high) = bytes.get_mut(4) {
                *high = 0;
            }
            if let Ok((header, payload)) = Header::parse(&bytes) {
                let checksum = checksum_field(&bytes).unwrap();
                let mut out = [0; HEADER_LEN];
                header.emit(payload.len(), &mut out).unwrap();
                out[6..].copy_from_slice(&checksum.to_be_bytes());
                prop_assert_eq!(&out[..], &bytes[..HEADER_LEN]);
            }
        }
    }
}
