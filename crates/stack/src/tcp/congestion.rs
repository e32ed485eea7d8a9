//! cwnd and ssthresh: New Reno.
//!
//! Place: input reports what was acknowledged or lost; output asks how much may be in
//! flight. Left out: which segments were lost ([`super::recovery`]) and when recovery ends
//! (`ack`).
//! There is one algorithm, hence no choice to make here; CUBIC gains nothing at the windows
//! of 2 to 8 segments that a mote has.
//! Source: RFC 5681.

use super::config::Config;

/// Congestion control of one connection, in bytes; windows are not scaled, so 16 bits do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Congestion {
    pub(super) cwnd: u16,
    pub(super) ssthresh: u16,
    /// Bytes acknowledged since cwnd last grew, in congestion avoidance.
    bytes_acked: u16,
    /// The most bytes that were in flight at once since the connection was last idle.
    pub(super) flight_max: u16,
}

impl Congestion {
    /// The initial window for segments of `smss` bytes (RFC 5681 §3.1).
    pub(super) fn new(smss: u16, config: &Config) -> Self {
        let segments = match (config.initial_window, smss) {
            (0, 0..=1095) => 4,
            (0, 1096..=2190) => 3,
            (0, _) => 2,
            (segments, _) => u16::from(segments),
        };
        Self {
            cwnd: smss.saturating_mul(segments),
            ssthresh: u16::MAX,
            bytes_acked: 0,
            flight_max: 0,
        }
    }

    /// Grows cwnd for `acked` bytes newly acknowledged outside recovery.
    ///
    /// Slow start by at most [`Config::slow_start_segments_max`] per ACK, congestion avoidance
    /// by one `smss` per cwnd acknowledged. A window that is not used does not grow, for nothing
    /// is learned about the path (RFC 7661 §4.3): not beyond twice what was in flight, nor in
    /// congestion avoidance beyond a segment more.
    pub(super) fn on_acked(&mut self, acked: u16, smss: u16, config: &Config) {
        let is_slow = self.cwnd < self.ssthresh;
        let more = if is_slow { self.flight_max } else { smss };
        if self.cwnd.saturating_sub(self.flight_max) >= more {
            return;
        }
        if is_slow {
            let most = smss.saturating_mul(u16::from(config.slow_start_segments_max));
            self.cwnd = self.cwnd.saturating_add(acked.min(most));
            return;
        }
        self.bytes_acked = self.bytes_acked.saturating_add(acked);
        if self.bytes_acked >= self.cwnd {
            self.bytes_acked -= self.cwnd;
            self.cwnd = self.cwnd.saturating_add(smss);
        }
    }

    /// Halves ssthresh for a loss or a congestion mark with `flight` bytes outstanding
    /// (RFC 5681 equation 4); cwnd is the caller's to set.
    pub(super) fn halve(&mut self, flight: u16, smss: u16) {
        self.ssthresh = (flight / 2).max(smss.saturating_mul(2));
        self.bytes_acked = 0;
    }

    /// After an idle time of more than an RTO, the window starts again (RFC 5681 §4.1).
    pub(super) fn restart(&mut self, smss: u16, config: &Config) {
        self.cwnd = self.cwnd.min(Self::new(smss, config).cwnd);
    }
}
