//! Sets of windows, as much of them as decides which window may be left out.

/// Which of a context's window sets.
#[derive(Clone, Copy)]
pub(super) enum Set {
    /// Windows the peer may hold.
    Held = 0,
    SincePair = 1,
    SinceTpair = 2,
}

/// A set of windows, as far as two bits and a window describe it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowSet {
    /// Windows with several high bytes, or nothing is known.
    Many,
    /// Windows with one high byte and several low ones.
    High(u8),
    /// The set has one window.
    One(u16),
    /// No window was sent yet.
    Empty,
}

impl WindowSet {
    /// The set with one window more.
    pub(super) const fn with(self, window: u16) -> Self {
        let high = (window >> 8) as u8;
        match self {
            Self::Empty => Self::One(window),
            Self::One(only) if only == window => self,
            Self::One(only) if (only >> 8) as u8 == high => Self::High(high),
            Self::High(only) if only == high => self,
            _ => Self::Many,
        }
    }
}
