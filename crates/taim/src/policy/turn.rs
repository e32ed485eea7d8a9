//! The packets that a flow has a turn with: acknowledgments until they make room for a segment, and
//! segments with data where data into the mesh wait for their turn like acknowledgments. Source:
//! Motet's own.

use crate::flow;

/// What was let in of one flow at its turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Segments that go further than those before.
    further: usize,
    /// All segments.
    segments: usize,
    /// Behind the last byte.
    end: Option<u32>,
    /// Bytes that acknowledgments without data acknowledged for the first time.
    invited: u64,
}

impl Turn {
    /// Counts a segment that ends at `end`; returns whether it is the last one of the turn. Of data
    /// several segments have a turn together, because their receiver answers every other one. A
    /// segment and its retransmission are one segment to the receiver.
    pub(super) fn ends_with(&mut self, end: u32) -> bool {
        self.segments += 1;
        if self.end.is_none_or(|last| flow::ahead(end, last).is_some()) {
            self.further += 1;
            self.end = Some(end);
        }
        self.further >= TURN_SEGMENTS || self.segments >= TURN_SEGMENTS_MAX
    }

    /// Counts an acknowledgment that acknowledges `bytes` for the first time; returns how many all
    /// those of the turn acknowledge. A mote whose buffer is full has no room for a segment after
    /// the acknowledgment of a short one, and answers the next (RFC 9293 §3.8.6.2.1). smoltcp sends
    /// a short segment wherever its ring of bytes ends: each turn with its acknowledgment alone
    /// once left the air idle until the answer was overdue.
    pub(super) fn invites(&mut self, bytes: u32) -> u64 {
        self.invited += u64::from(bytes);
        self.invited
    }
}

/// Successive segments with data that a flow has a turn with: a receiver that delays its
/// acknowledgments answers every other one at once (RFC 9293 §3.8.6.3).
const TURN_SEGMENTS: usize = 2;

/// Segments with data that a flow has a turn with, retransmissions included: a host that sends one
/// segment again and again has no longer turns for that.
const TURN_SEGMENTS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment and its own retransmission once were a turn of two: the receiver delayed its
    /// acknowledgment of them.
    #[test]
    fn a_retransmission_is_no_second_segment_of_a_turn() {
        let wraps = u32::MAX - 99;
        for (ends, taken) in [
            (&[100, 200, 300][..], 2),
            (&[100, 100, 200, 300], 3),
            (&[200, 100, 300, 400], 3),
            (&[100, 100, 100, 100, 100], 4),
            (&[wraps, wraps, 100, 200], 3),
        ] {
            let mut turn = Turn::default();
            let last = ends.iter().position(|end| turn.ends_with(*end));
            assert_eq!(last.map(|last| last + 1), Some(taken), "{ends:?}");
        }
    }
}
