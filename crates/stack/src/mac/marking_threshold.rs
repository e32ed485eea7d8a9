//! How full the MAC's queue may be before a relay marks packets: the limit follows the queue's
//! losses.
//!
//! `Mac::push` notes frames, and `Mac::is_crowded` asks. Which nodes send the frames,
//! `neighbor_timing` remembers.

/// The limit begins one slot below those that frames passed on may take: a sender is slowed before
/// a frame is lost. Each frame passed on that finds no room lowers the limit by an eighth of the
/// slots, at the least to a third. Every 256 such frames that find room raise it by half of that.
/// In equilibrium one frame in 512 is lost, which is about one packet of five frames in a hundred.
///
/// Marks have a price: ACKs that echo them are never thinned, and a sender that halves a small
/// window leaves the air idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MarkingThreshold {
    /// How far losses have lowered the limit, slots.
    lowered: u8,
    /// Frames passed on that found room, modulo 256: at each wrap the limit rises.
    queued: u8,
}

impl MarkingThreshold {
    /// The threshold of a queue that has lost no frame yet.
    pub(super) const NONE: Self = Self {
        lowered: 0,
        queued: 0,
    };

    /// A frame passed on was queued, in one of `slots` slots.
    pub(super) fn note_queued(&mut self, slots: usize) {
        self.queued = self.queued.wrapping_add(1);
        if self.queued == 0 {
            let rise = (slots.div_ceil(STEP) / 2).max(1);
            self.lowered = self.lowered.saturating_sub(rise as u8);
        }
    }

    /// A frame passed on found none of `slots` slots free.
    pub(super) fn note_lost(&mut self, slots: usize) {
        let lowered = usize::from(self.lowered) + slots.div_ceil(STEP);
        self.lowered = lowered.min(slots - slots / LEAST) as u8;
    }

    /// Whether `len` frames are too many for `slots` slots; a full segment fills `segment`. Where
    /// two segments have no room they never are: the queue is full as soon as one waits.
    pub(super) fn is_reached(self, len: usize, slots: usize, segment: usize) -> bool {
        let below = usize::from(self.lowered).max(1);
        let limit = slots.saturating_sub(below).max(segment);
        segment <= slots / 2 && len >= limit.max(1)
    }
}

/// The limit falls by one part in this many of the slots.
const STEP: usize = 8;

/// The limit is never less than one part in this many of the slots: segments that are on their way
/// until a mark has come back to their sender fill the rest.
const LEAST: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The fewest frames that are too many after `lost` losses and then `queued` frames queued.
    fn limit(slots: usize, segment: usize, lost: usize, queued: usize) -> Option<usize> {
        let mut threshold = MarkingThreshold::NONE;
        (0..lost).for_each(|_| threshold.note_lost(slots));
        (0..queued).for_each(|_| threshold.note_queued(slots));
        (0..=slots).find(|&len| threshold.is_reached(len, slots, segment))
    }

    #[test]
    fn losses_lower_the_limit_and_what_is_queued_raises_it() {
        for (lost, queued, least) in [
            (0, 0, 15),
            (0, 10_000, 15),
            (1, 0, 14),
            (5, 0, 6),
            (6, 0, 5),
            (1_000, 0, 5),
            (1_000, 255, 5),
            (1_000, 256, 6),
            (1, 256, 15),
            (1_000, 10 * 256, 15),
        ] {
            assert_eq!(limit(16, 5, lost, queued), Some(least), "{lost} {queued}");
        }
    }

    #[test]
    fn a_queue_without_room_for_two_segments_is_never_crowded() {
        for (slots, segment, least) in [
            (0, 0, None),
            (1, 0, Some(1)),
            (2, 0, Some(1)),
            (1, 1, None),
            (8, 5, None),
            (9, 5, None),
            (10, 5, Some(5)),
            (12, 5, Some(5)),
            (16, 5, Some(5)),
            (16, 9, None),
            (32, 5, Some(10)),
            (255, 12, Some(85)),
        ] {
            assert_eq!(limit(slots, segment, 1_000, 0), least, "{slots} {segment}");
        }
    }

    /// However many slots there are, 4,096 frames after the last loss the limit is where it began.
    #[test]
    fn what_was_lost_long_ago_is_forgotten() {
        for slots in 2..=255 {
            assert_eq!(limit(slots, 1, 1_000, 16 * 256), Some(slots - 1), "{slots}");
        }
    }
}
