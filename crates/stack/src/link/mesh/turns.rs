//! The border router's rests between the frames of streams that it sends down.
//!
//! A mote two hops away does not hear the border router, but its own router does. While the border
//! router sends a stream to another neighbour, each frame of that mote falls into one of the
//! stream's. The border router's frames do not fail, so nothing tells it of the mote, and nothing
//! tells a policy for flows either: the mote's packets never arrive. So the border router rests
//! after some frames, for long enough that a frame of such a mote gets through. Once fragments come
//! from a neighbour that the stream does not go to, the border router and that neighbour take
//! turns.
//!
//! Place: [`outward`](super::outward), after [`pace`](super::pace), at the border router of a mesh
//! with more than one hop. Left out: packets of one frame, such as ACKs, for which the others wait;
//! motes, because their streams go up, and fail where another one is hidden.

use super::pace::ExchangeTimes;
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Turns {
    /// Frames since the last rest.
    frames: u8,
    last_at: Instant,
    rests_until: Instant,
}

impl Turns {
    pub(super) const NEW: Self = Self {
        frames: 0,
        last_at: Instant::ORIGIN,
        rests_until: Instant::ORIGIN,
    };

    /// Counts a frame of a stream that a neighbour has taken, and returns until when the border
    /// router sends no other frame of a stream. `took`: the times of the frame's exchange.
    /// `goes_further`: whether the neighbour passes it on, so that the stream has a pace.
    /// `meets_others`: whether fragments come from other neighbours.
    pub(super) fn after(
        &mut self,
        took: ExchangeTimes,
        goes_further: bool,
        meets_others: bool,
        now: Instant,
    ) -> Instant {
        // Others, whose radios may be of the same kind, copy each frame before they send it.
        let long_rest = (took.exchange + took.copy).saturating_mul(REST);
        let (turn, rest) = match (meets_others, goes_further) {
            (true, _) => (TURN, long_rest),
            (false, false) => (LONG_TURN, took.exchange.saturating_mul(SHORT_REST)),
            // The pace leaves room for a frame, and now and then for one that nobody knows of.
            (false, true) => return self.rests_until,
        };
        if now < self.rests_until {
            return self.rests_until;
        }
        if now.since(self.last_at) >= long_rest {
            // It has rested, for want of frames: less than that may be ACKs, and first fragments.
            self.frames = 0;
        }
        self.last_at = now;
        self.frames = self.frames.saturating_add(1);
        if self.frames >= turn {
            self.frames = 0;
            self.rests_until = now + rest;
        }
        self.rests_until
    }
}

/// Frames of a stream in a row, and exchanges of rest, copies included, beside others: three segments of five
/// frames. On two arms of a mesh that do not hear one another, a mote with an upload carries as
/// much with turns and rests of 16 to 24. With 12 frames a turn it loses half over nRF52840.
const TURN: u8 = 16;
const REST: u64 = 20;

/// Frames in a row, and exchanges of rest, where no others are known. A mote tries a frame eight
/// times within about 45 exchanges, so that nearly each frame meets a rest; an attempt succeeds if
/// it begins in the first seven exchanges of it. Over nRF52840 a stream alone loses a fifteenth; with
/// rests of six exchanges it loses a twentieth, and a mote with a reading each ten seconds lost half
/// of them in one run of four.
const LONG_TURN: u8 = 48;
const SHORT_REST: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    const EXCHANGE: Duration = Duration::from_millis(5);
    const TOOK: ExchangeTimes = ExchangeTimes {
        exchange: EXCHANGE,
        copy: Duration::ZERO,
    };

    /// A stream's frames, each of which begins when the one before it, or the rest, has ended: for
    /// how many exchanges the border router rests after each.
    fn rests(goes_further: bool, meets_others: bool) -> impl Iterator<Item = u64> {
        let mut turns = Turns::NEW;
        let mut now = Instant::from_micros(1_000_000);
        (0..400).map(move |_| {
            now += EXCHANGE;
            let until = turns.after(TOOK, goes_further, meets_others, now);
            let rest = until.since(now).as_micros() / EXCHANGE.as_micros();
            now = now.max(until);
            rest
        })
    }

    /// Without others a stream to a neighbour rests seldom, and one with a pace never. Beside
    /// others the border router has less than half of the air.
    #[test]
    fn a_stream_rests_more_beside_others() {
        for (goes_further, meets_others, turn, rest) in [
            (false, false, 48, 8),
            (false, true, 16, 20),
            (true, false, 1, 0),
            (true, true, 16, 20),
        ] {
            for (index, rests) in rests(goes_further, meets_others).enumerate() {
                let expected = if (index + 1) % turn == 0 { rest } else { 0 };
                assert_eq!(rests, expected, "{goes_further} {meets_others} {index}");
            }
        }
    }

    /// Each neighbour that frames of streams go to is left alone until the rest is over.
    #[test]
    fn all_streams_rest_together() {
        let mut turns = Turns::NEW;
        let now = Instant::from_micros(1_000_000);
        for _ in 1..TURN {
            assert!(turns.after(TOOK, false, true, now) <= now);
        }
        let until = turns.after(TOOK, false, true, now);
        assert_eq!(until, now + EXCHANGE.saturating_mul(REST));
        let later = now + EXCHANGE;
        for (goes_further, meets_others) in [(false, true), (true, false), (false, false)] {
            let rests_until = turns.after(TOOK, goes_further, meets_others, later);
            assert_eq!(rests_until, until, "{goes_further} {meets_others}");
        }
        assert!(turns.after(TOOK, false, true, until) <= until);
    }

    /// Motes that copy each frame into their radios get the time for it.
    #[test]
    fn copies_are_part_of_the_others_turn() {
        for (meets_others, turn, rest_ms) in [(true, TURN, 20 * 7), (false, LONG_TURN, 8 * 5)] {
            let mut turns = Turns::NEW;
            let now = Instant::from_micros(1_000_000);
            let took = ExchangeTimes {
                copy: Duration::from_millis(2),
                ..TOOK
            };
            let rests = (0..turn).map(|_| turns.after(took, false, meets_others, now).since(now));
            assert_eq!(rests.last(), Some(Duration::from_millis(rest_ms)));
        }
    }

    /// A stream that paused for as long as a rest begins a turn anew.
    #[test]
    fn a_pause_is_a_rest() {
        let mut turns = Turns::NEW;
        let mut now = Instant::from_micros(1_000_000);
        for _ in 0..5 {
            for _ in 1..TURN {
                assert!(turns.after(TOOK, true, true, now) <= now);
            }
            now += EXCHANGE.saturating_mul(REST);
        }
    }
}
