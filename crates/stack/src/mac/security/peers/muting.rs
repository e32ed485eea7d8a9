//! The time for which the heads of a neighbour's frames fire nothing, because somebody forges
//! frames in its name.
//!
//! Place: part of [`Peer`](super::Peer). `muting_absent` stands in its place in a build without
//! conditional transmission, the feature `cit`, where no head fires anything.

use super::TICK_SHIFT;

/// Since when its heads fire nothing, in ticks, and how often that time was doubled.
// Packed, so that it ends without padding: 64 B of a node with sixteen neighbours.
#[derive(Clone, Debug)]
#[repr(Rust, packed(2))]
pub(super) struct Muting {
    since: u32,
    doublings: u8,
    is_on: bool,
}

impl Muting {
    /// Nothing was forged: all zeros.
    pub(super) const NONE: Self = Self {
        since: 0,
        doublings: 0,
        is_on: false,
    };

    /// Notes a forgery.
    pub(super) fn begin(&mut self, now: u32) {
        // Forgeries that come while it is muted prolong nothing.
        if self.is_on && now.wrapping_sub(self.since) < self.ticks() {
            return;
        }
        let is_recent = now.wrapping_sub(self.since) < self.ticks() + MUTE_MAX;
        self.doublings = match self.is_on && is_recent {
            true => self.doublings.saturating_add(1).min(DOUBLINGS_MAX),
            false => 0,
        };
        (self.is_on, self.since) = (true, now);
    }

    pub(super) fn is_over(&self, now: u32) -> bool {
        !self.is_on || now.wrapping_sub(self.since) >= self.ticks()
    }

    fn ticks(&self) -> u32 {
        (MUTE << self.doublings).min(MUTE_MAX)
    }
}

/// How long a neighbour's heads fire nothing after a forgery in its name: longer than a burst of
/// forgeries. A flow only loses the time that firing saves on some frames.
const MUTE: u32 = (1_000_000 >> TICK_SHIFT) + 1;

/// The longest time for which a neighbour's heads fire nothing, if forgeries go on, in ticks.
const MUTE_MAX: u32 = (60_000_000 >> TICK_SHIFT) + 1;

/// How often [`MUTE`] may double: then it has reached [`MUTE_MAX`].
const DOUBLINGS_MAX: u8 = 6;
