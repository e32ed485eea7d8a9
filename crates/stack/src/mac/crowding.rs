//! How many frames a queue holds before those that fill it had better send less: as its losses teach.

/// A queue that loses nothing is left alone, however full. Each frame that finds no room lowers the limit by an
/// eighth of the queue, down to a third of it; so many frames later each that did raises the limit again by half of
/// that. So about one packet in a hundred is lost, where senders can be slowed at all: marks have a price, too. ACKs that
/// echo them are never thinned, and a sender that halves a small window leaves the air idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Crowding {
    /// How far below the queue's capacity the limit is, frames.
    below: u8,
    /// Frames queued since it last rose, modulo [`u8::MAX`] + 1.
    queued: u8,
}

impl Crowding {
    /// Of a queue that has lost nothing.
    pub(super) const NONE: Self = Self {
        below: 0,
        queued: 0,
    };

    /// A frame that is passed on was queued.
    pub(super) fn note_queued(&mut self, capacity: usize) {
        self.queued = self.queued.wrapping_add(1);
        if self.queued == 0 {
            let rise = (capacity.div_ceil(STEP) / 2).max(1);
            self.below = self.below.saturating_sub(rise as u8);
        }
    }

    /// A frame that was to be passed on found no room.
    pub(super) fn note_lost(&mut self, capacity: usize) {
        let step = capacity.div_ceil(STEP);
        let most = capacity - capacity / LEAST;
        self.below = most.min(usize::from(self.below) + step) as u8;
    }

    /// Whether a queue that holds `len` frames holds too many; a full segment fills `segment`. One without room for
    /// two segments never does: it is full as soon as one waits.
    pub(super) fn is_reached(self, len: usize, capacity: usize, segment: usize) -> bool {
        let limit = capacity.saturating_sub(self.below.into()).max(segment);
        self.below > 0 && segment <= capacity / 2 && len >= limit
    }
}

/// The limit falls by one part in so many of the queue.
const STEP: usize = 8;

/// The limit is never less than one part in so many of the queue: what is on its way by the time that a mark has come
/// back to its sender fills the rest.
const LEAST: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// The fewest frames that are too many after so many losses and then so many frames queued.
    fn limit(capacity: usize, lost: usize, queued: usize) -> Option<usize> {
        let mut crowding = Crowding::NONE;
        (0..lost).for_each(|_| crowding.note_lost(capacity));
        (0..queued).for_each(|_| crowding.note_queued(capacity));
        (0..=capacity).find(|&len| crowding.is_reached(len, capacity, 5))
    }

    #[test]
    fn losses_lower_the_limit_and_what_is_queued_raises_it() {
        for (lost, queued, least) in [
            (0, 0, None),
            (0, 10_000, None),
            (1, 0, Some(14)),
            (5, 0, Some(6)),
            (6, 0, Some(5)),
            (1_000, 0, Some(5)),
            (1_000, 255, Some(5)),
            (1_000, 256, Some(6)),
            (1, 256, Some(15)),
            (1, 512, None),
            (1_000, 11 * 256, None),
        ] {
            assert_eq!(limit(16, lost, queued), least, "{lost} {queued}");
        }
    }

    #[test]
    fn a_queue_without_room_for_two_segments_is_never_crowded() {
        for (capacity, least) in [
            (0, None),
            (1, None),
            (8, None),
            (9, None),
            (10, Some(5)),
            (12, Some(5)),
            (16, Some(5)),
            (32, Some(10)),
            (200, Some(66)),
        ] {
            assert_eq!(limit(capacity, 1_000, 0), least, "{capacity}");
        }
    }

    /// Of a queue of any length the limit is open again some thousand frames after the last loss.
    #[test]
    fn what_was_lost_long_ago_is_forgotten() {
        for capacity in 0..=200 {
            assert_eq!(limit(capacity, 1_000, 16 * 256), None, "{capacity}");
        }
    }
}
