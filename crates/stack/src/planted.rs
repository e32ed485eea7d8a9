//! Bugs that can be planted, to prove that the soak finds bugs.
//!
//! Purpose: a search that finds nothing may be blind. In a build with the feature
//! `planted-bugs` one bug at a time can be switched on; each stands as one condition beside
//! the code that it breaks. Without the feature [`planted`] is constantly false, and no
//! instruction and no byte of this is in the code.
//! Left out: everything that is not for the proof. No firmware enables this.

/// A bug, by what it breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[cfg_attr(
    not(feature = "planted-bugs"),
    expect(
        unreachable_pub,
        reason = "public with the feature, unknown outside without"
    )
)]
#[cfg_attr(
    not(any(feature = "tcp", feature = "planted-bugs")),
    expect(dead_code, reason = "most break TCP")
)]
pub enum Bug {
    /// Acknowledgments are compared as plain numbers, not modulo 2^32.
    SequenceWrap = 1,
    /// Timestamps are compared as plain numbers.
    TimestampWrap,
    /// A zero-window probe is not followed by another.
    LostTimer,
    /// A range kept out of order claims one byte more than came.
    ReassemblyOverlap,
    /// TCP's checksum is not verified.
    ChecksumIgnored,
    /// Frames that a neighbour repeats are delivered again.
    DuplicateFrame,
    /// Every packet in fragments gets the same tag.
    TagReuse,
    /// A window that opens again is not announced.
    WindowUpdateLost,
    /// Segments outside the window are dropped without being counted.
    DropUncounted,
    /// In recovery, an acknowledgment takes a byte too many off the send buffer.
    SendBufferTrimmed,
    /// A handshake that nobody accepts keeps its place.
    HalfOpenLeak,
    /// The last acknowledgment of a connection does not end it.
    LastAckIgnored,
    /// A new connection starts with what the last one left in its buffers.
    BuffersKept,
}

impl Bug {
    /// Every bug, by number.
    #[cfg(feature = "planted-bugs")]
    pub const ALL: [Self; 13] = [
        Self::SequenceWrap,
        Self::TimestampWrap,
        Self::LostTimer,
        Self::ReassemblyOverlap,
        Self::ChecksumIgnored,
        Self::DuplicateFrame,
        Self::TagReuse,
        Self::WindowUpdateLost,
        Self::DropUncounted,
        Self::SendBufferTrimmed,
        Self::HalfOpenLeak,
        Self::LastAckIgnored,
        Self::BuffersKept,
    ];
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    /// The number of the bug; 0: none. One for the whole process: a run proves one bug.
    static PLANTED: AtomicU8 = AtomicU8::new(0);

    /// Plants `bug` instead of any other; `None` takes it out.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
    }

    /// Whether this bug is planted.
    pub(crate) fn planted(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }
}

#[cfg(feature = "planted-bugs")]
pub use switch::plant;
#[cfg(feature = "planted-bugs")]
pub(crate) use switch::planted;

/// Whether this bug is planted: never, in this build.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn planted(_bug: Bug) -> bool {
    false
}
