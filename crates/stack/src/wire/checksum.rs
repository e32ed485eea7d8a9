//! The Internet checksum of UDP, TCP and ICMPv6.
//!
//! Purpose: one's-complement sums over bytes that lie in several pieces (pseudo-header,
//! header, the two halves of a ring). Place: used by every transport, both ways.
//! Left out: incremental update of a changed field; nothing here rewrites packets in flight.
//! Sources: RFC 1071; RFC 8200 §8.1.

use core::net::Ipv6Addr;

use super::cursor::Reader;

/// A running one's-complement sum; feed it slices in order, of any length, odd ones too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    sum: u32,
    /// An odd number of bytes went in: the next byte is the low half of a word.
    odd: bool,
}

impl Checksum {
    /// A sum over no bytes.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// The sum over the IPv6 pseudo-header of a `len`-byte upper-layer unit (RFC 8200 §8.1).
    pub fn pseudo_header(src: &Ipv6Addr, dst: &Ipv6Addr, next_header: u8, len: usize) -> Self {
        let addresses = add(sum_words(&src.octets()), sum_words(&dst.octets()));
        let len = len as u32;
        let rest = (len >> 16) + (len & 0xffff) + u32::from(next_header);
        Self {
            sum: fold(u32::from(in_order(addresses)) + rest),
            odd: false,
        }
    }

    /// Adds `bytes` to the sum, behind those added before.
    pub fn add(&mut self, mut bytes: &[u8]) {
        if self.odd {
            let Some((low, rest)) = bytes.split_first() else {
                return;
            };
            self.sum += u32::from(*low);
            self.odd = false;
            bytes = rest;
        }
        let sum = u32::from(in_order(sum_words(bytes)));
        self.sum = fold(self.sum + sum);
        self.odd = bytes.len() & 1 == 1;
    }

    /// Adds one word; for fields that are not stored as bytes yet. Only at an even offset.
    pub fn add_u16(&mut self, word: u16) {
        debug_assert!(!self.odd, "a word is added at an even offset");
        self.sum = fold(self.sum + u32::from(word));
    }

    /// The sum without the final complement: `0xffff` over data that hold a right checksum.
    pub const fn sum(&self) -> u16 {
        fold(self.sum) as u16
    }

    /// The checksum field's value for the data summed with that field zero.
    pub const fn finish(&self) -> u16 {
        !self.sum()
    }
}

/// Whether `bytes`, an upper-layer unit with its checksum field, sums up right.
pub fn is_valid(src: &Ipv6Addr, dst: &Ipv6Addr, next_header: u8, bytes: &[u8]) -> bool {
    let mut sum = Checksum::pseudo_header(src, dst, next_header, bytes.len());
    sum.add(bytes);
    sum.sum() == 0xffff
}

/// Computes the checksum of `bytes` and stores it at offset `at`; what stood there is ignored.
///
/// `zero_means_none`: send a computed zero as `0xffff`, as UDP must (RFC 768, RFC 8200 §8.1).
/// Does nothing when the field lies beyond `bytes`.
pub fn fill(
    src: &Ipv6Addr,
    dst: &Ipv6Addr,
    next_header: u8,
    bytes: &mut [u8],
    at: usize,
    zero_means_none: bool,
) {
    let Some(field) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) else {
        return;
    };
    *field = [0; 2];
    let mut sum = Checksum::pseudo_header(src, dst, next_header, bytes.len());
    sum.add(bytes);
    let value = match sum.finish() {
        0 if zero_means_none => 0xffff,
        value => value,
    };
    if let Some(field) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) {
        *field = value.to_be_bytes();
    }
}

/// The 16-bit word at offset `at` of `bytes`, if it is there: a checksum as received.
pub fn field(bytes: &[u8], at: usize) -> Option<u16> {
    Reader::new(bytes.get(at..)?).u16().ok()
}

/// Sums `bytes` by machine words in the machine's own order, which a one's-complement sum does
/// not mind until its end (RFC 1071 §2): [`in_order`].
fn sum_words(bytes: &[u8]) -> usize {
    let (mut words, rest) = bytes.as_chunks();
    let mut sum = 0;
    if cfg!(target_pointer_width = "64") {
        // The carry runs through a block, with one instruction for a word; a mote's code, on
        // whose processor it gains little, is to stay small.
        let (blocks, single) = words.as_chunks::<BLOCK_WORDS>();
        words = single;
        for block in blocks {
            let mut carry = false;
            for word in block {
                (sum, carry) = usize::from_ne_bytes(*word).carrying_add(sum, carry);
            }
            sum = add(sum, usize::from(carry));
        }
    }
    let sum = words
        .iter()
        .fold(sum, |sum, word| add(sum, usize::from_ne_bytes(*word)));
    let (halves, last) = rest.as_chunks();
    let sum = halves.iter().fold(sum, |sum, half| {
        add(sum, usize::from(u16::from_ne_bytes(*half)))
    });
    let last = last
        .first()
        .map_or(0, |last| u16::from_ne_bytes([*last, 0]));
    add(sum, usize::from(last))
}

/// One's-complement addition: a carry out of the top comes in at the bottom.
const fn add(a: usize, b: usize) -> usize {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry as usize)
}

/// A sum of [`sum_words`] folded to 16 bits, most significant byte first.
const fn in_order(sum: usize) -> u16 {
    let sum = sum as u64;
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    u16::from_be(fold(sum as u32) as u16)
}

const fn fold(sum: u32) -> u32 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16)
}

/// Words that are summed in one go.
const BLOCK_WORDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn rfc_1071_example() {
        let mut sum = Checksum::new();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.sum(), 0xddf2);
        assert_eq!(sum.finish(), 0x220d);
    }

    #[test]
    fn udp_sends_a_zero_checksum_as_ones() {
        let addr = Ipv6Addr::UNSPECIFIED;
        // Pseudo-header sums to 17 + 8; the first word makes it 0xffff, the checksum 0.
        let mut bytes = [0xff, 0xff - 25, 0, 0, 0, 0, 0xab, 0xcd];
        fill(&addr, &addr, 17, &mut bytes, 6, true);
        assert_eq!(bytes[6..], [0xff, 0xff]);
        assert!(is_valid(&addr, &addr, 17, &bytes));
        fill(&addr, &addr, 17, &mut bytes, 6, false);
        assert_eq!(bytes[6..], [0, 0]);
    }

    /// RFC 1071 §1, word by word.
    fn plain_sum(bytes: &[u8]) -> u16 {
        let words = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        words.fold(0, |sum, word| (sum + word) % 0xffff) as u16
    }

    #[test]
    fn carries_are_not_lost() {
        // In ones, every addition carries, and so does the addition of that carry.
        for len in 0..200 {
            for byte in [0xff, 0x80, 0x01] {
                let mut bytes = std::vec![byte; len];
                let mut sum = Checksum::new();
                sum.add(&bytes);
                assert_eq!(sum.sum() % 0xffff, plain_sum(&bytes), "{len} of {byte}");
                bytes.push(1);
                bytes.push(2);
                let mut sum = Checksum::new();
                sum.add(&bytes);
                assert_eq!(
                    sum.sum() % 0xffff,
                    plain_sum(&bytes),
                    "{len} of {byte}, and more"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_the_plain_sum(bytes in prop::collection::vec(any::<u8>(), 0..1300)) {
            let mut sum = Checksum::new();
            sum.add(&bytes);
            prop_assert_eq!(sum.sum() % 0xffff, plain_sum(&bytes));
        }

        #[test]
        fn pieces_sum_as_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..200), cuts in prop::collection::vec(0usize..200, 0..5)) {
            let mut whole = Checksum::new();
            whole.add(&bytes);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Checksum::new();
            let mut at = 0;
            for cut in cuts {
                pieces.add(&bytes[at..cut]);
                at = cut;
            }
            pieces.add(&bytes[at..]);
            prop_assert_eq!(whole.sum(), pieces.sum());
        }

        #[test]
        fn a_filled_checksum_is_valid_and_a_flipped_bit_is_not(
            mut bytes in prop::collection::vec(any::<u8>(), 8..100), src: u128, dst: u128, at in 0usize..3, bit in 0usize..64,
        ) {
            let (src, dst) = (Ipv6Addr::from(src), Ipv6Addr::from(dst));
            fill(&src, &dst, 6, &mut bytes, at * 2, false);
            prop_assert!(is_valid(&src, &dst, 6, &bytes));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!is_valid(&src, &dst, 6, &bytes));
        }
    }
}
