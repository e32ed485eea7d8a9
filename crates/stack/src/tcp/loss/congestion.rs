//! cwnd and ssthresh: New Reno.
//!
//! Place: [`Loss`](super::Loss) reports what was acknowledged or lost, and asks how much may be in
//! flight. Left out: which segments were lost ([`super::detection`]) and when recovery ends
//! (`reduction`).
//! There is one algorithm, hence no choice to make here; CUBIC gains nothing at the windows
//! of 2 to 8 segments that a mote has.
//! Source: RFC 5681.

use crate::tcp::config::Config;

/// Congestion control of one connection, in bytes; windows are not scaled, so 16 bits do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Congestion {
    pub(super) cwnd: u16,
    pub(super) ssthresh: u16,
    /// Bytes acknowledged since cwnd last grew, in congestion avoidance.
    bytes_acked: u16,
    /// The most bytes that were in flight at once since the connection was last idle.
    flight_max: u16,
}

impl Congestion {
    /// Until the handshake is done.
    pub(super) const NEW: Self = Self {
        cwnd: 0,
        ssthresh: 0,
        bytes_acked: 0,
        flight_max: 0,
    };

    /// The initial window for segments of `smss` bytes (RFC 5681 §3.1).
    pub(super) fn new(smss: u32, config: &Config) -> Self {
        let segments = match (config.initial_window, smss) {
            (0, 0..=1095) => 4,
            (0, 1096..=2190) => 3,
            (0, _) => 2,
            (segments, _) => u32::from(segments),
        };
        Self {
            cwnd: saturated(smss * segments),
            ssthresh: u16::MAX,
            bytes_acked: 0,
            flight_max: 0,
        }
    }

    /// The connection was idle: what was in flight before tells nothing any more.
    pub(super) fn forget_flight(&mut self) {
        self.flight_max = 0;
    }

    /// Notes how many bytes were in flight when the peer acknowledged some of them.
    pub(super) fn note_flight(&mut self, bytes: u32) {
        self.flight_max = self.flight_max.max(saturated(bytes));
    }

    /// Grows cwnd for `acked` bytes newly acknowledged outside recovery.
    ///
    /// Slow start by at most [`Config::slow_start_segments_max`] per ACK, congestion avoidance
    /// by one `smss` per cwnd acknowledged. A window that is not used does not grow, for nothing
    /// is learned about the path (RFC 7661 §4.3): not beyond twice what was in flight, nor in
    /// congestion avoidance beyond a segment more.
    pub(super) fn on_acked(&mut self, acked: u32, smss: u32, config: &Config) {
        let (cwnd, flight_max) = (u32::from(self.cwnd), u32::from(self.flight_max));
        let is_slow = self.cwnd < self.ssthresh;
        let more = if is_slow { flight_max } else { smss };
        if cwnd >= flight_max + more {
            return;
        }
        let growth = if is_slow {
            acked.min(smss * u32::from(config.slow_start_segments_max))
        } else {
            let acked = u32::from(self.bytes_acked) + acked;
            let (left, growth) = match acked.checked_sub(cwnd) {
                Some(left) => (left, smss),
                None => (acked, 0),
            };
            self.bytes_acked = saturated(left);
            growth
        };
        self.cwnd = saturated(cwnd + growth);
    }

    /// Halves ssthresh for a loss or a congestion mark with `flight` bytes outstanding
    /// (RFC 5681 equation 4); cwnd is the caller's to set.
    pub(super) fn halve(&mut self, flight: u32, smss: u32) {
        self.ssthresh = saturated((flight / 2).max(smss * 2));
        self.bytes_acked = 0;
    }

    /// After an idle time of more than an RTO, the window starts again (RFC 5681 §4.1).
    pub(super) fn restart(&mut self, smss: u32, config: &Config) {
        self.cwnd = self.cwnd.min(Self::new(smss, config).cwnd);
    }
}

/// `bytes`, or as many as a window without scaling can have.
#[inline(never)]
pub(in crate::tcp) fn saturated(bytes: u32) -> u16 {
    bytes.min(u32::from(u16::MAX)) as u16
}
