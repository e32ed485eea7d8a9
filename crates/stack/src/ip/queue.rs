//! Active queue management, which acts before a queue is full: none, or random early detection.
//!
//! Place: [`crate::node`] gets an `AqmDecision` for each forwarded packet before it queues it for a
//! radio. A border router, and a relay that reassembles, decide on whole packets; with fragment
//! forwarding the decision is on the first fragment.
//! Left out: the count since the last drop, which would spread them evenly, and decay while idle:
//! with an average over four packets neither is worth its bytes.
//! Sources: Floyd and Jacobson 1993; RFC 7567; RFC 3168 §5 for marking instead of dropping.

use crate::random::Rng;
use crate::wire::ipv6::Ecn;

/// How a queue of packets is kept short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    /// Whatever finds room is queued.
    #[default]
    DropTail,
    /// Random early detection (RFC 7567): packets are marked or dropped before the queue is full.
    Red(Red),
}

/// Random early detection, by packets waiting.
///
/// Between two thresholds of the average length the chance of a mark grows from 0; beyond the
/// upper one every packet is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Red {
    /// Packets below which nothing happens.
    pub min: u8,
    /// The upper threshold is this power of two above the lower: sparing a division.
    pub span_log2: u8,
    /// The chance of a mark at the upper threshold is one in this power of two.
    pub chance_log2: u8,
    /// Whether packets that may be are marked instead of dropped.
    pub ecn: bool,
    /// The average length in 1/256 of a packet.
    average: u16,
}

/// The verdict of active queue management (AQM, RFC 7567) on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AqmDecision {
    /// The packet joins the queue.
    Enqueue,
    /// Queue it with a mark of congestion.
    Mark,
    /// The packet is dropped although the queue has room.
    Drop,
}

impl Red {
    /// Thresholds of 2 and 6 packets, one in 8, with marks. Chosen for windows of 4 to 8
    /// segments: one flow alone hardly reaches the lower threshold, two together do.
    pub const MOTE: Self = Self::new(2, 2, 3, true);

    /// Detection with these thresholds; see the fields.
    pub const fn new(min: u8, span_log2: u8, chance_log2: u8, ecn: bool) -> Self {
        Self {
            min,
            span_log2,
            chance_log2,
            ecn,
            average: 0,
        }
    }

    /// The thresholds with [`Self::ecn`] off: every marked packet is dropped instead.
    #[must_use]
    pub const fn dropping(mut self) -> Self {
        self.ecn = false;
        self
    }

    /// Judges a packet that would wait behind `waiting` others.
    fn judge(&mut self, waiting: usize, ecn: Ecn, rng: &mut Rng) -> AqmDecision {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX).min(255) << 8;
        let average = u32::from(self.average);
        // A weight of 1/4: bursts are as long as windows, a few packets.
        let average = average - (average >> 2) + (waiting >> 2);
        self.average = average as u16;
        let over = average.saturating_sub(u32::from(self.min) << 8);
        if over == 0 {
            return AqmDecision::Enqueue;
        }
        let share = over >> self.span_log2.min(7);
        if share >= 256 {
            return AqmDecision::Drop;
        }
        // Of 2^16: the share is of 2^8.
        let chance = (share << 8) >> self.chance_log2.min(16);
        match rng.next_u32() >> 16 < chance {
            false => AqmDecision::Enqueue,
            true if self.ecn && ecn != Ecn::NotEct => AqmDecision::Mark,
            true => AqmDecision::Drop,
        }
    }
}

impl Discipline {
    /// Judges a packet that would wait behind `waiting` others.
    pub(crate) fn judge(&mut self, waiting: usize, ecn: Ecn, rng: &mut Rng) -> AqmDecision {
        match self {
            Self::DropTail => AqmDecision::Enqueue,
            Self::Red(red) => red.judge(waiting, ecn, rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(waiting: usize, ecn: Ecn, discipline: Discipline) -> [usize; 3] {
        let mut rng = Rng::from_seed([1, 2]);
        let mut discipline = discipline;
        // The average settles first.
        for _ in 0..40 {
            discipline.judge(waiting, ecn, &mut rng);
        }
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[discipline.judge(waiting, ecn, &mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn drop_tail_takes_everything() {
        let counts = verdicts(200, Ecn::NotEct, Discipline::DropTail);
        assert_eq!(counts, [10_000, 0, 0]);
    }

    #[test]
    fn the_chance_grows_between_the_thresholds() {
        let red = Discipline::Red(Red::MOTE);
        // (packets waiting, least and most of 10,000 that are marked)
        for (waiting, [least, most]) in
            [(0, [0, 0]), (2, [0, 0]), (4, [520, 700]), (5, [820, 1_050])]
        {
            let [_, marked, dropped] = verdicts(waiting, Ecn::Ect0, red);
            assert!((least..=most).contains(&marked), "{waiting}: {marked}");
            assert_eq!(dropped, 0, "{waiting} waiting");
        }
        assert_eq!(verdicts(8, Ecn::Ect0, red), [0, 0, 10_000]);
        assert_eq!(verdicts(10_000, Ecn::Ect0, red), [0, 0, 10_000]);
    }

    #[test]
    fn what_cannot_be_marked_is_dropped() {
        let plain = Discipline::Red(Red::MOTE.dropping());
        for (ecn, discipline) in [
            (Ecn::NotEct, Discipline::Red(Red::MOTE)),
            (Ecn::Ect0, plain),
        ] {
            let [_, marked, dropped] = verdicts(4, ecn, discipline);
            assert!(marked == 0 && dropped > 500, "{dropped}");
        }
    }
}
