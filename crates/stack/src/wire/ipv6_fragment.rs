//! The fragment header of IPv6.
//!
//! ```text
//! +---------------+---------------+-------------------------+---+-+
//! |  Next Header  |   Reserved    |     Fragment Offset     |Res|M|
//! +---------------+---------------+-------------------------+---+-+
//! |                         Identification                        |
//! +---------------------------------------------------------------+
//! ```
//!
//! Place: read and written where packets are put together and cut. Left out: what lies in a
//! fragment. Source: RFC 8200 §4.5.

use super::ipv6::next_header;

/// Length of the fragment header, bytes.
pub const HEADER_LEN: usize = 8;

/// The fragment header: which part of which packet follows (RFC 8200 §4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FragmentHeader {
    /// The type of the header at the first byte of the whole packet's fragmentable part.
    pub next_header: u8,
    /// Where the fragment begins in that part, bytes: a multiple of 8 below 65,536.
    pub offset: u16,
    /// M flag: whether more fragments follow.
    pub more: bool,
    /// Which packet it is a part of, beside source and destination.
    pub identification: u32,
}

impl FragmentHeader {
    /// Reads a header; reserved bits are ignored.
    pub const fn parse(bytes: &[u8; HEADER_LEN]) -> Self {
        let [next_header, _, high, low, a, b, c, d] = *bytes;
        let place = u16::from_be_bytes([high, low]);
        Self {
            next_header,
            offset: place & !7,
            more: place & 1 != 0,
            identification: u32::from_be_bytes([a, b, c, d]),
        }
    }

    /// Writes the header, reserved bits zero.
    pub const fn emit(&self) -> [u8; HEADER_LEN] {
        let [high, low] = (self.offset & !7 | self.more as u16).to_be_bytes();
        let [a, b, c, d] = self.identification.to_be_bytes();
        [self.next_header, 0, high, low, a, b, c, d]
    }
}

/// Whether an extension header of this `kind` marks its packet as a fragment of a longer one. The
/// header of an atomic fragment, which is both the first and the last fragment, does not (RFC
/// 6946).
pub(crate) fn is_part(kind: u8, bytes: &[u8]) -> bool {
    kind == next_header::FRAGMENT && !matches!(bytes, [_, _, 0, low, ..] if low & !RESERVED == 0)
}

/// Bits between the offset and the last one, which are ignored.
const RESERVED: u8 = 0b110;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_stand_where_they_belong() {
        let bytes = [58, 0, 0x04, 0xd1, 0x12, 0x34, 0x56, 0x78];
        let header = FragmentHeader {
            next_header: 58,
            offset: 1_232,
            more: true,
            identification: 0x1234_5678,
        };
        assert_eq!(FragmentHeader::parse(&bytes), header);
        assert_eq!(header.emit(), bytes);
    }

    #[test]
    fn an_atomic_fragment_is_whole() {
        for (place, part) in [([0, 0], false), ([0, 6], false), ([0, 1], true)] {
            let [high, low] = place;
            let bytes = [6, 0, high, low, 0, 0, 0, 1];
            assert_eq!(is_part(next_header::FRAGMENT, &bytes), part, "{place:?}");
            assert!(!is_part(next_header::DESTINATION_OPTIONS, &bytes));
        }
        for place in [[0, 8], [1, 0], [0xff, 0xf8]] {
            let [high, low] = place;
            assert!(is_part(
                next_header::FRAGMENT,
                &[6, 0, high, low, 0, 0, 0, 1]
            ));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(next_header: u8, offset: u16, more: bool, identification: u32) {
            let header = FragmentHeader { next_header, offset: offset & !7, more, identification };
            prop_assert_eq!(FragmentHeader::parse(&header.emit()), header);
        }
    }
}
