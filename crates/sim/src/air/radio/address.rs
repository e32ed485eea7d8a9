//! Where a radio is, and the short address by which it filters: one that its node gets later.

use super::Radio;

impl Radio {
    /// Its place on the air.
    pub const fn place(&self) -> usize {
        self.place
    }

    /// The short address by which it filters.
    pub const fn short(&self) -> Option<u16> {
        self.filter.short
    }

    /// Lets it filter by another short address; returns the one before.
    pub const fn set_short(&mut self, short: Option<u16>) -> Option<u16> {
        std::mem::replace(&mut self.filter.short, short)
    }
}
