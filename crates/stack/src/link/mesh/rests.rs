//! The border router's rests between the frames of streams that it sends down.
//!
//! A mote two hops away may not hear the border router, but its own router does. While the border
//! router sends a stream to another neighbour, each frame of that mote falls into one of the
//! stream's. The border router's frames do not fail, so nothing tells it of the mote, and nothing
//! tells a policy for flows either: the mote's packets never arrive. So the border router rests
//! after some frames, for long enough that a frame of such a mote gets through. Once fragments of
//! such motes come, by a neighbour that the stream does not go to, the border router rests for
//! about half of the time. Packets of its own neighbours do not count: these hear it, except where
//! each link has its channel.
//!
//! Place: [`outward`](super::outward), after [`pace`](super::pace), at the border router of a mesh
//! with more than one hop, or with a channel for each link. Left out: packets of one frame, such as
//! ACKs, which other nodes wait for; streams to sleeping children; and motes: their streams go up,
//! and where a hidden mote sends, their frames fail, so that they slow down.

use super::pace::ExchangeTimes;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

#[derive(Debug)]
pub(super) struct Rests {
    /// When a packet of a mote that may not hear this node last began to come, by a neighbour that
    /// no stream went to.
    met_at: Instant,
    /// The neighbour that the last frame of a stream went to, and its packet.
    to: LinkAddr,
    token: u16,
    /// Frames since the last rest, and what the longest of them took; beside others with its copy.
    frames: u8,
    longest: Duration,
    last_at: Instant,
    until: Instant,
}

impl Rests {
    pub(super) const NEW: Self = Self {
        met_at: Instant::ORIGIN,
        to: LinkAddr::Short(0),
        token: 0,
        frames: 0,
        longest: Duration::ZERO,
        last_at: Instant::ORIGIN,
        until: Instant::ORIGIN,
    };

    /// Until when the border router sends no frame of a stream.
    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    /// Notes a packet of several frames, of a mote that may not hear this node, which `from` passes
    /// on.
    pub(super) fn meet(&mut self, from: LinkAddr, now: Instant) {
        if !self.to.is(&from) {
            self.met_at = now;
        }
    }

    /// Counts a frame that a neighbour has taken, of a packet of several: the second one or a later
    /// one. `stream`: the neighbour, and the packet's token. `took`: the times of the frame's
    /// exchange. `goes_further`: whether the neighbour passes it on, so that the stream has a pace.
    pub(super) fn count(
        &mut self,
        stream: (LinkAddr, u16),
        took: ExchangeTimes,
        goes_further: bool,
        now: Instant,
    ) {
        if now < self.until {
            return;
        }
        let meets_others = self.met_at > Instant::ORIGIN && now.since(self.met_at) < MET_FOR;
        let (turn, rest) = match (meets_others, goes_further) {
            (true, _) => (TURN, REST),
            (false, false) => (LONG_TURN, SHORT_REST),
            // The pace leaves room for a frame, and sometimes for one of a sender that is not known
            // yet.
            (false, true) => return,
        };
        // The other senders copy each of their frames, too. Where none is known, copies do not
        // count: with them a lone stream of TelosBs lost a tenth, instead of a fifteenth.
        let took = match meets_others {
            true => took.exchange + took.copy,
            false => took.exchange,
        };
        let longest = self.longest.max(took).min(EXCHANGE_MAX);
        if now.since(self.last_at) >= longest.saturating_mul(REST) {
            // Nothing was sent for as long as a rest. A shorter gap may have been filled with ACKs.
            self.frames = 0;
        }
        let is_second = (self.to, self.token) != stream;
        (self.to, self.token) = stream;
        self.frames = self.frames.saturating_add(1 + u8::from(is_second));
        self.longest = longest;
        self.last_at = now;
        if self.frames >= turn {
            self.frames = 0;
            self.longest = Duration::ZERO;
            self.until = now + longest.saturating_mul(rest);
        }
    }
}

/// Others count for so long after the last of their packets: for the first timeout of a sender (RFC
/// 6298 §2) and as long again.
const MET_FOR: Duration = Duration::from_secs(2);

/// Frames of a stream in a row beside others: four segments of five frames.
const TURN: u8 = 20;

/// Exchanges of a rest beside others. Of turns of 15 to 20 and rests of 15 to 24 none gives an
/// upload on another arm clearly more.
const REST: u64 = 20;

/// Frames in a row where no others are known: twelve segments of five frames.
const LONG_TURN: u8 = 60;

/// Exchanges of a rest where no others are known: an attempt at a frame succeeds if it begins in
/// the first seven. Over nRF52840 a stream alone loses a twelfth; with rests of six exchanges it
/// loses a twentieth, and a mote with a reading each ten seconds lost half of them in one run of
/// four.
const SHORT_REST: u64 = 8;

/// An exchange of others takes no longer, 2.2 ms of copy and 4.3 ms of frame on the slowest radio:
/// a border router's own may, if its radio is behind a serial line, or an acknowledgment was read
/// late.
const EXCHANGE_MAX: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    const EXCHANGE: Duration = Duration::from_millis(5);
    const TOOK: ExchangeTimes = ExchangeTimes {
        exchange: EXCHANGE,
        copy: Duration::ZERO,
    };
    const TO: LinkAddr = LinkAddr::Short(1);
    const OTHER: LinkAddr = LinkAddr::Short(2);
    const START: Instant = Instant::from_micros(1_000_000);

    /// How many exchanges the border router rests for the first time, and how many frames of a
    /// stream it sent before. Packets have `per_packet` frames; each frame begins when the one
    /// before it has ended.
    fn rests(per_packet: u16, goes_further: bool, meets_others: bool) -> (u64, usize) {
        let mut rests = Rests::NEW;
        let mut now = START;
        for frame in 0..1_000_u16 {
            now += EXCHANGE;
            if meets_others {
                rests.meet(OTHER, now);
            }
            if frame % per_packet > 0 {
                let stream = (TO, frame / per_packet);
                rests.count(stream, TOOK, goes_further, now);
            }
            if rests.until() > now {
                let rest = rests.until().since(now).as_micros() / EXCHANGE.as_micros();
                return (rest, usize::from(frame) + 1);
            }
        }
        (0, 1_000)
    }

    /// Without others a stream to a neighbour rests seldom, and one with a pace never. Beside
    /// others the border router has half of the air, whatever packets are long.
    #[test]
    fn a_stream_rests_more_beside_others() {
        for per_packet in [2, 5] {
            for (goes_further, meets_others, expected) in [
                (false, false, (8, 60)),
                (false, true, (20, 20)),
                (true, false, (0, 1_000)),
                (true, true, (20, 20)),
            ] {
                let rests = rests(per_packet, goes_further, meets_others);
                assert_eq!(
                    rests, expected,
                    "{per_packet} {goes_further} {meets_others}"
                );
            }
        }
    }

    /// Packets of one frame make no stream.
    #[test]
    fn acks_rest_never() {
        assert_eq!(rests(1, false, true), (0, 1_000));
    }

    /// A turn goes on after its rest, and frames that end within the rest do not count.
    #[test]
    fn a_rest_is_followed_by_a_turn() {
        let mut rests = Rests::NEW;
        let mut now = START;
        for _ in 0..3 {
            rests.meet(OTHER, now);
            for frame in 1..TURN {
                assert!(rests.until() <= now, "{frame}");
                rests.count((TO, 7), TOOK, false, now);
            }
            // In the first turn a packet begins, whose first frame counts, too; later turns go on
            // with that packet.
            if rests.until() <= now {
                rests.count((TO, 7), TOOK, false, now);
            }
            let until = rests.until();
            assert_eq!(until, now + EXCHANGE.saturating_mul(REST));
            rests.count((TO, 7), TOOK, false, now + EXCHANGE);
            assert_eq!(rests.until(), until);
            now = until;
        }
    }

    /// The last frame of a turn may be short, and beside others copies take time, too.
    #[test]
    fn a_rest_is_as_long_as_others_need() {
        for (meets_others, turn, rest_ms) in [(true, TURN, 20 * 8), (false, LONG_TURN, 8 * 6)] {
            let mut rests = Rests::NEW;
            if meets_others {
                rests.meet(OTHER, START);
            }
            for frame in 1..turn {
                let ms = if frame + 1 == turn { 1 } else { 6 };
                let took = ExchangeTimes {
                    exchange: Duration::from_millis(ms),
                    copy: Duration::from_millis(2),
                };
                rests.count((TO, 7), took, false, START);
            }
            assert_eq!(rests.until(), START + Duration::from_millis(rest_ms));
        }
    }

    /// An acknowledgment that was read late, or came over a slow line, makes no long rest.
    #[test]
    fn a_rest_has_a_bound() {
        let late = ExchangeTimes {
            exchange: Duration::from_secs(3),
            ..TOOK
        };
        let mut rests = Rests::NEW;
        for _ in 1..LONG_TURN {
            rests.count((TO, 7), late, false, START);
        }
        assert_eq!(rests.until(), START + Duration::from_millis(8 * 10));
    }

    /// What comes from the neighbour that the stream goes to meets its frames there, and makes them
    /// fail. Others count for two seconds.
    #[test]
    fn only_others_count_and_only_lately() {
        for (from, ms, expected) in [
            (OTHER, 0, true),
            (OTHER, 1_999, true),
            (OTHER, 2_000, false),
            (TO, 0, false),
        ] {
            let mut rests = Rests::NEW;
            rests.count((TO, 7), TOOK, true, START);
            rests.count((TO, 7), TOOK, false, START);
            rests.meet(from, START);
            let now = START + Duration::from_millis(ms);
            for _ in 0..TURN {
                rests.count((TO, 7), TOOK, false, now);
            }
            assert_eq!(rests.until() > now, expected, "{from:?} {ms}");
        }
    }

    /// A stream that paused for as long as a rest begins a turn anew.
    #[test]
    fn a_pause_is_a_rest() {
        let mut rests = Rests::NEW;
        let mut now = START;
        for _ in 0..5 {
            rests.meet(OTHER, now);
            for _ in 2..TURN {
                rests.count((TO, 7), TOOK, true, now);
                assert!(rests.until() <= now);
            }
            now += EXCHANGE.saturating_mul(REST);
        }
    }
}
