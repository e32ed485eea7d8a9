//! SRTT, RTTVAR and the retransmission timeout.
//!
//! Place: fed by input with one sample per acknowledgment, asked by output and timers.
//! Left out: when to take a sample (timestamps, Karn): the caller's business.
//! Source: RFC 6298. Differs: the least RTO, see [`Config::rto_min_ms`].

use super::config::Config;

/// Smoothed round-trip time and its variation, in milliseconds scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RttEstimator {
    /// SRTT in 1/8 ms; 0: no sample yet.
    srtt_8th: u32,
    /// RTTVAR in 1/4 ms.
    rttvar_4th: u16,
    /// Times the RTO was doubled since the last sample (RFC 6298 §5.5).
    doublings: u8,
    /// The SYN was retransmitted, and nothing was measured.
    distrusted: bool,
}

impl RttEstimator {
    pub(super) const NEW: Self = Self {
        srtt_8th: 0,
        rttvar_4th: 0,
        doublings: 0,
        distrusted: false,
    };

    /// Folds in one round trip of `rtt_ms`; 0 counts as 1, the clock's resolution.
    pub(super) fn sample(&mut self, rtt_ms: u32) {
        let rtt = rtt_ms.clamp(1, 60_000);
        self.doublings = 0;
        if self.srtt_8th == 0 {
            self.srtt_8th = rtt << 3;
            self.rttvar_4th = (rtt << 1).min(u32::from(u16::MAX)) as u16;
            return;
        }
        let error = rtt.abs_diff(self.srtt_8th >> 3);
        let var = u32::from(self.rttvar_4th);
        self.rttvar_4th = (var - (var >> 2) + error).min(u32::from(u16::MAX)) as u16;
        self.srtt_8th = self.srtt_8th - (self.srtt_8th >> 3) + rtt;
    }

    /// SRTT, ms; `None` before the first sample.
    pub(super) const fn srtt_ms(&self) -> Option<u32> {
        match self.srtt_8th {
            0 => None,
            srtt => Some(srtt >> 3),
        }
    }

    /// RTTVAR, ms.
    pub(super) const fn rttvar_ms(&self) -> u32 {
        (self.rttvar_4th >> 2) as u32
    }

    /// The timeout to arm now, doublings included, ms.
    pub(super) fn rto_ms(&self, config: &Config) -> u32 {
        let base = match self.srtt_ms() {
            None if self.distrusted => RTO_AFTER_LOST_SYN_MS,
            None => u32::from(config.rto_initial_ms),
            Some(srtt) => (srtt + u32::from(self.rttvar_4th) + u32::from(config.rto_slop_ms))
                .max(u32::from(config.rto_min_ms)),
        };
        (base << self.doublings).min(u32::from(config.rto_max_ms))
    }

    /// Doubles the timeout after an expiry.
    pub(super) fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1).min(12);
    }

    /// Takes the doublings back: the peer answers, or the expiry was spurious.
    pub(super) fn forget_backoff(&mut self) {
        self.doublings = 0;
    }

    pub(super) const fn doublings(&self) -> u8 {
        self.doublings
    }

    /// After the handshake of a retransmitted SYN: without a sample, the RTO is 3 s.
    pub(super) fn distrust(&mut self) {
        self.distrusted = true;
        self.doublings = 0;
    }
}

/// RFC 6298 §5.7.
const RTO_AFTER_LOST_SYN_MS: u32 = 3000;
