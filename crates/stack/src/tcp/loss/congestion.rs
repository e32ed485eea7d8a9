//! cwnd and ssthresh: the initial window, slow start, and the common part of all reductions.
//!
//! Place: [`Loss`](super::Loss) reports acknowledgments and losses, and reads how much may be in
//! flight. Left out: loss detection ([`super::detection`]), the end of recovery (`reduction`), and
//! the differences between algorithms ([`super::control`]).
//! Source: RFC 5681.

use super::saturated;

/// The windows of one connection, in bytes; they are not scaled, so 16 bits do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Congestion {
    pub(super) cwnd: u16,
    pub(super) ssthresh: u16,
    /// The most bytes that were in flight at once since the connection was last idle.
    flight_max: u16,
}

impl Congestion {
    /// Until the handshake is done.
    pub(super) const NEW: Self = Self {
        cwnd: 0,
        ssthresh: 0,
        flight_max: 0,
    };

    /// The handshake is done; initial window as for [`initial_window`].
    pub(super) fn begin(&mut self, smss: u32, segments: u8) {
        self.cwnd = initial_window(smss, segments);
        self.ssthresh = u16::MAX;
    }

    /// The connection was idle: earlier flights are no measure of the path any more.
    pub(super) fn forget_flight(&mut self) {
        self.flight_max = 0;
    }

    /// Notes how many bytes were in flight when the peer acknowledged some of them.
    pub(super) fn note_flight(&mut self, bytes: u32) {
        self.flight_max = self.flight_max.max(saturated(bytes));
    }

    /// Slow start for `acked` bytes newly acknowledged outside recovery, by at most `segments_max`
    /// per ACK. Returns whether cwnd has to grow by congestion avoidance instead.
    ///
    /// An unused window does not grow, because the path has not been tested with it (RFC 7661
    /// §4.3): in slow start cwnd stays below twice the flight, in congestion avoidance below the
    /// flight plus one segment.
    pub(super) fn on_acked(&mut self, acked: u32, smss: u32, segments_max: u8) -> bool {
        let (cwnd, flight_max) = (u32::from(self.cwnd), u32::from(self.flight_max));
        let is_slow = self.cwnd < self.ssthresh;
        let more = if is_slow { flight_max } else { smss };
        if cwnd >= flight_max + more {
            return false;
        }
        if is_slow {
            let growth = acked.min(smss * u32::from(segments_max));
            self.cwnd = saturated(cwnd + growth);
        }
        !is_slow
    }

    /// Lowers ssthresh for a loss or a congestion mark that leaves `left` bytes (RFC 5681 equation
    /// 4, with the algorithm's factor); cwnd is the caller's to set.
    pub(super) fn reduce(&mut self, left: u32, smss: u32) {
        self.ssthresh = saturated(left.max(smss * 2));
    }

    /// After an idle time of more than an RTO, the window starts again (RFC 5681 §4.1).
    pub(super) fn restart(&mut self, smss: u32, segments: u8) {
        self.cwnd = self.cwnd.min(initial_window(smss, segments));
    }
}

/// The initial window for segments of `smss` bytes, in bytes; `segments`: its length in segments,
/// or 0 for that of RFC 5681 §3.1.
#[inline(never)]
pub(super) fn initial_window(smss: u32, segments: u8) -> u16 {
    let segments = match (segments, smss) {
        (0, 0..=1095) => 4,
        (0, 1096..=2190) => 3,
        (0, _) => 2,
        (segments, _) => u32::from(segments),
    };
    saturated(smss * segments)
}
