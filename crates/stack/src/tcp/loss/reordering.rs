//! How wide RACK's reordering window is (RFC 8985 §6.2 step 4).

/// Quarters of the least round trip beyond the first one, in the upper half; in the lower one, how
/// many more recoveries they are kept for behind the present one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reordering(pub(super) u8);

impl Reordering {
    pub(super) const NEW: Self = Self(0);

    /// The window, in quarters of the least round trip: 1 to 16.
    pub(super) const fn quarters(self) -> u32 {
        (self.0 >> 4) as u32 + 1
    }

    /// A DSACK came: one quarter more, for 16 recoveries.
    pub(super) fn grow(&mut self) {
        self.0 = self.0.saturating_add(16) | 15;
    }

    /// Counts a recovery that is over: after the 16th since the last DSACK, the window is narrowest
    /// again.
    pub(super) fn on_recovered(&mut self) {
        self.0 = match self.0 & 15 {
            0 => 0,
            _ => self.0 - 1,
        };
    }
}
