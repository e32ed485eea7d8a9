//! Interface identifiers as two words.
//!
//! Eight bytes lie at any address. A processor that reads words only at their own addresses puts
//! such bytes together one by one, wherever they are passed on or compared. So an identifier is
//! bytes where it comes in and goes out, and words in between: a mote's code is 1 KB shorter.

use core::net::Ipv6Addr;

/// Interface identifier of a node (RFC 4291 §2.5.1), in the order of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Iid {
    high: u32,
    low: u32,
}

impl Iid {
    /// The identifier of no node.
    pub(super) const NONE: Self = Self { high: 0, low: 0 };

    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn of(bytes: &[u8; 8]) -> Self {
        let both = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
        Self {
            high: (both >> 32) as u32,
            low: both as u32,
        }
    }

    /// The identifier in an address.
    pub(super) fn of_addr(addr: &Ipv6Addr) -> Self {
        let [_, _, _, _, _, _, _, _, bytes @ ..] = addr.octets();
        Self::of(&bytes)
    }

    pub(super) const fn octets(self) -> [u8; 8] {
        ((self.high as u64) << 32 | self.low as u64).to_be_bytes()
    }

    /// `prefix`'s leading 64 bits joined with the identifier.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn within(self, prefix: &Ipv6Addr) -> Ipv6Addr {
        let mut octets = prefix.octets();
        if let Some(low) = octets.last_chunk_mut() {
            *low = self.octets();
        }
        Ipv6Addr::from(octets)
    }

    /// Both words, mixed.
    pub(super) const fn mixed(self) -> u32 {
        self.high ^ self.low
    }
}
