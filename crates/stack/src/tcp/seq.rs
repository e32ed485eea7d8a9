//! Sequence numbers: arithmetic modulo 2^32.
//!
//! Place: the one type for positions in either byte stream. Left out: `Ord`; positions on a
//! circle have no order, only a before and an after within half of it.
//! Source: RFC 9293 §3.4.

/// A position in a byte stream, modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SeqNum(u32);

impl SeqNum {
    /// The position with this number on the wire.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The position `octets` further on.
    #[must_use]
    pub const fn plus(self, octets: u32) -> Self {
        Self(self.0.wrapping_add(octets))
    }

    /// The position `octets` before this one.
    #[must_use]
    pub(crate) const fn minus(self, octets: u32) -> Self {
        Self(self.0.wrapping_sub(octets))
    }

    /// Octets from `earlier` to here, modulo 2^32.
    pub(crate) const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Octets from `origin` to here: negative when this position lies before it.
    pub(crate) const fn offset_from(self, origin: Self) -> i32 {
        self.0.wrapping_sub(origin.0) as i32
    }

    /// Whether this position lies before `other`, going the shorter way round.
    pub const fn before(self, other: Self) -> bool {
        self.offset_from(other) < 0
    }

    /// Whether this position lies after `other`, going the shorter way round.
    pub const fn after(self, other: Self) -> bool {
        other.offset_from(self) < 0
    }

    /// The later of two positions.
    #[must_use]
    pub(crate) const fn later(self, other: Self) -> Self {
        if self.before(other) { other } else { self }
    }
}
