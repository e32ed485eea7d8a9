//! 6LoWPAN mesh addressing and broadcast headers, of networks that forward below IP.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---+-+-+-------+---------------+-------------------------------+
//! |1 0|V|F|HopsLft| DeepHopsLeft  | originator address, final address
//! +---+-+-+-------+---------------+-------------------------------+
//! |0 1 0 1 0 0 0 0| sequence      |                      LOWPAN_BC0
//! +---------------+---------------+
//! ```
//!
//! V and F: the originator's and the final address have 16 bits, else 64. DeepHopsLeft is there
//! where HopsLft is 15. Place: first bytes of a frame's payload, ahead of a fragment header.
//! Left out: forwarding by them; a node of this stack routes by IP, and drops such frames.
//! Sources: RFC 4944 §5.2 and §11.1. Thread sends them between routers.

use super::LinkAddr;
use super::cursor::{Full, Reader, Truncated, Writer};

/// The longest mesh header: two addresses of 64 bits, and the byte for many hops.
pub const LEN_MAX: usize = 18;

/// The mesh addressing header (RFC 4944 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Hops that the frame may still take.
    pub hops_left: u8,
    /// The node that made the frame; interface identifiers of a compressed header derive from it.
    pub originator: LinkAddr,
    /// The node that the frame is for, or a group of them.
    pub destination: LinkAddr,
}

/// The broadcast header LOWPAN_BC0 (RFC 4944 §11.1), behind a mesh header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broadcast {
    /// By it a node recognises a frame of the same originator that it has passed on already.
    pub sequence: u8,
}

/// Why bytes are not a mesh addressing or broadcast header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the header.
    Truncated,
    /// The first byte is another dispatch.
    Dispatch,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "6LoWPAN mesh header truncated",
            Self::Dispatch => "not a 6LoWPAN mesh header",
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
    /// Reads a mesh addressing header; returns it and what follows.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut r = Reader::new(bytes);
        let first = r.u8()?;
        if first & DISPATCH_MASK != DISPATCH {
            return Err(ParseError::Dispatch);
        }
        let hops_left = match first & HOPS_MASK {
            DEEP_HOPS => r.u8()?,
            hops_left => hops_left,
        };
        let header = Self {
            hops_left,
            originator: address(&mut r, first & ORIGINATOR_SHORT != 0)?,
            destination: address(&mut r, first & DESTINATION_SHORT != 0)?,
        };
        Ok((header, r.rest()))
    }

    /// Writes the header; returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short, or where an address is not one of IEEE 802.15.4.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut first = DISPATCH | self.hops_left.min(DEEP_HOPS);
        for (addr, flag) in [
            (self.originator, ORIGINATOR_SHORT),
            (self.destination, DESTINATION_SHORT),
        ] {
            if let LinkAddr::Short(_) = addr {
                first |= flag;
            }
        }
        let mut w = Writer::new(out);
        w.u8(first)?;
        if self.hops_left >= DEEP_HOPS {
            w.u8(self.hops_left)?;
        }
        put(&mut w, self.originator)?;
        put(&mut w, self.destination)?;
        Ok(w.written())
    }
}

impl Broadcast {
    /// Reads a broadcast header; returns it and what follows.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut r = Reader::new(bytes);
        match r.u8()? {
            BROADCAST => Ok((Self { sequence: r.u8()? }, r.rest())),
            _ => Err(ParseError::Dispatch),
        }
    }

    /// Writes the header; returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out);
        w.put(&[BROADCAST, self.sequence])?;
        Ok(w.written())
    }
}

fn address(r: &mut Reader<'_>, is_short: bool) -> Result<LinkAddr, Truncated> {
    match is_short {
        true => r.u16().map(LinkAddr::Short),
        false => r.array().map(LinkAddr::Extended),
    }
}

fn put(w: &mut Writer<'_>, addr: LinkAddr) -> Result<(), Full> {
    match addr {
        LinkAddr::Short(short) => w.u16(short),
        LinkAddr::Extended(bytes) => w.put(&bytes),
        #[cfg(feature = "ble")]
        LinkAddr::Device(_) => Err(Full),
    }
}

/// The dispatch of a mesh header, its two highest bits.
const DISPATCH: u8 = 0x80;
const DISPATCH_MASK: u8 = 0xc0;
/// V: the originator's address has 16 bits.
const ORIGINATOR_SHORT: u8 = 0x20;
/// F: the final address has 16 bits.
const DESTINATION_SHORT: u8 = 0x10;
const HOPS_MASK: u8 = 0x0f;
/// The number of hops does not fit its four bits: a byte of its own follows.
const DEEP_HOPS: u8 = 0x0f;
/// The dispatch byte of LOWPAN_BC0.
const BROADCAST: u8 = 0x50;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EUI: [u8; 8] = [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1];

    #[test]
    fn headers_of_every_shape() {
        let short = LinkAddr::Short(0x2c00);
        let long = LinkAddr::Extended(EUI);
        let cases: [(Header, &[u8]); 5] = [
            (
                Header {
                    hops_left: 14,
                    originator: short,
                    destination: LinkAddr::Short(0x5001),
                },
                &[0xbe, 0x2c, 0x00, 0x50, 0x01],
            ),
            (
                Header {
                    hops_left: 15,
                    originator: short,
                    destination: LinkAddr::BROADCAST,
                },
                &[0xbf, 15, 0x2c, 0x00, 0xff, 0xff],
            ),
            (
                Header {
                    hops_left: 1,
                    originator: long,
                    destination: short,
                },
                &[0x91, 2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1, 0x2c, 0x00],
            ),
            (
                Header {
                    hops_left: 0,
                    originator: short,
                    destination: long,
                },
                &[0xa0, 0x2c, 0x00, 2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
            ),
            (
                Header {
                    hops_left: 200,
                    originator: long,
                    destination: long,
                },
                &[
                    0x8f, 200, 2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1, 2, 0x4d, 0x6f, 0x74, 0x65,
                    0x74, 0, 1,
                ],
            ),
        ];
        for (header, bytes) in cases {
            let mut out = [0; LEN_MAX];
            let len = header.emit(&mut out).unwrap();
            assert_eq!(&out[..len], bytes);
            let behind = [bytes, &[0x7f, 0x33]].concat();
            assert_eq!(Header::parse(&behind), Ok((header, &[0x7f, 0x33][..])));
            for end in 0..bytes.len() {
                assert_eq!(Header::parse(&bytes[..end]), Err(ParseError::Truncated));
            }
        }
    }

    #[test]
    fn other_dispatches_are_no_mesh_header() {
        for first in (0..0x80).chain(0xc0..=0xff) {
            assert_eq!(Header::parse(&[first; 20]), Err(ParseError::Dispatch));
        }
    }

    #[test]
    fn broadcasts_have_a_sequence() {
        let header = Broadcast { sequence: 9 };
        let mut out = [0; 2];
        assert_eq!(header.emit(&mut out), Ok(2));
        assert_eq!(out, [0x50, 9]);
        assert_eq!(
            Broadcast::parse(&[0x50, 9, 0x7f]),
            Ok((header, &[0x7f][..]))
        );
        assert_eq!(Broadcast::parse(&[0x50]), Err(ParseError::Truncated));
        assert_eq!(Broadcast::parse(&[0x7f, 9]), Err(ParseError::Dispatch));
        assert_eq!(header.emit(&mut [0]), Err(Full));
    }

    proptest! {
        #[test]
        fn what_parses_reads_the_same_once_written(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            if let Ok((header, rest)) = Header::parse(&bytes) {
                let mut out = [0; LEN_MAX];
                let len = header.emit(&mut out).unwrap();
                prop_assert!(len <= bytes.len() - rest.len());
                prop_assert_eq!(Header::parse(&out[..len]), Ok((header, &[][..])));
            }
        }
    }
}
