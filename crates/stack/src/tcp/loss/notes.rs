//! Facts of loss recovery in one bit each.

use crate::tcp::config::HAS_RECOVERY;

/// Boolean facts about transmissions and losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Notes(u8);

impl Notes {
    pub(super) const NONE: Self = Self(0);
    /// RACK knows a delivered segment.
    pub(super) const RACK: u8 = 1;
    /// A tail loss probe is out; it is answered when SND.UNA reaches `tail_end` (RFC 8985 §7.4).
    pub(super) const TAIL_PROBED: u8 = 1 << 1;
    /// The latest tail loss probe was a retransmission, not new data, and has not been answered:
    /// neither by a DSACK, nor by an ACK of data sent after it.
    pub(super) const TAIL_RESENT: u8 = 1 << 2;
    /// The first retransmission of a recovery goes out whatever cwnd allows.
    pub(super) const FORCE_RESEND: u8 = 1 << 3;
    /// The reduction under way can be undone.
    pub(super) const UNDO: u8 = 1 << 4;
    /// `undo_ts` holds the time of the first retransmission.
    pub(super) const UNDO_TS: u8 = 1 << 5;
    /// RACK has seen reordering on this path.
    pub(super) const REORDERED: u8 = 1 << 6;
    /// A DSACK has widened RACK's reordering window since cwnd was last reduced.
    pub(super) const REO_GROWN: u8 = 1 << 7;

    pub(super) const fn has(self, note: u8) -> bool {
        self.0 & note & POSSIBLE != 0
    }

    pub(super) fn set(&mut self, note: u8) {
        self.0 |= note & POSSIBLE;
    }

    pub(super) fn clear(&mut self, note: u8) {
        self.0 &= !(note & POSSIBLE);
    }

    pub(super) fn put(&mut self, note: u8, value: bool) {
        self.clear(note);
        if value {
            self.set(note);
        }
    }
}

/// The notes that are possible in this build: without RACK, New Reno's alone.
const POSSIBLE: u8 = match HAS_RECOVERY {
    true => u8::MAX,
    false => Notes::FORCE_RESEND,
};
