//! SRTT, RTTVAR and the retransmission timeout.
//!
//! Place: fed by input with one sample per acknowledgment, asked by output and timers.
//! Left out: when to take a sample (timestamps, Karn): the caller's business.
//! Sources: RFC 6298; RFC 4015 §4.3. Differs: the least RTO, see [`Config::rto_min_ms`].
//!
//! The handshake's sample is a stand-in. A SYN is one frame where a segment of data is four or
//! five on every hop, so that it is answered in a tenth of the time (60 ms against 600 ms over
//! three hops): an RTO made of it would send the first data twice. Until data were measured,
//! the RTO is at least [`Config::rto_initial_ms`] (RFC 6298 §2.4's second) and there are no
//! tail loss probes; the first sample of data then starts afresh, by (2.2).

use super::config::Config;

/// Smoothed round-trip time and its variation, in milliseconds scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RttEstimator {
    /// SRTT in 1/8 ms; 0: no sample yet.
    srtt_8th: u32,
    /// RTTVAR, the round-trip time variation (RFC 6298 §2), in 1/4 ms.
    rttvar_4th: u16,
    /// Times the RTO was doubled since the last sample (RFC 6298 §5.5).
    doublings: u8,
    basis: Basis,
    /// Waiting time that was subtracted from round trips, ms; it is added to the RTO.
    #[cfg(feature = "tcple")]
    waited_ms: u16,
}

/// The kind of samples that the estimate rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Basis {
    /// No round trip was measured yet.
    #[default]
    Nothing,
    /// Nothing was measured, and the SYN was retransmitted.
    LostSyn,
    /// The round trip of a SYN or SYN-ACK.
    Handshake,
    /// Round trips of data that were sent once.
    Data,
    /// As [`Self::Data`], and since the last sample a repair was acknowledged, which measures
    /// nothing.
    Repaired,
    /// Round trips of data by timestamps.
    Stamped,
}

impl RttEstimator {
    pub(super) const NEW: Self = Self {
        srtt_8th: 0,
        rttvar_4th: 0,
        doublings: 0,
        basis: Basis::Nothing,
        #[cfg(feature = "tcple")]
        waited_ms: 0,
    };

    /// Takes how long packets waited on the last hop, which is no part of the samples: a timeout
    /// must not come while they do. The longest counts, and fades.
    #[cfg(feature = "tcple")]
    pub(super) fn note_waited(&mut self, waited_ms: u16) {
        self.waited_ms = waited_ms.max(self.waited_ms - self.waited_ms / 8);
    }

    /// Takes the round trip of the handshake, until one of data is known.
    pub(super) fn sample_handshake(&mut self, rtt_ms: u32) {
        self.sample(rtt_ms);
        self.basis = Basis::Handshake;
    }

    /// Folds in one round trip of `rtt_ms`, of data sent once; 0 counts as 1, the clock's
    /// resolution.
    pub(super) fn sample(&mut self, rtt_ms: u32) {
        self.fold_in(rtt_ms, Basis::Data);
    }

    /// As [`Self::sample`], by a timestamp.
    pub(super) fn sample_stamped(&mut self, rtt_ms: u32) {
        self.fold_in(rtt_ms, Basis::Stamped);
    }

    fn fold_in(&mut self, rtt_ms: u32, basis: Basis) {
        let rtt = rtt_ms.clamp(1, 60_000);
        self.doublings = 0;
        let is_first = !self.is_of_data();
        self.basis = basis;
        if is_first {
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

    /// SRTT, ms, once it rests on round trips of data.
    pub(super) fn data_srtt_ms(&self) -> Option<u32> {
        self.srtt_ms().filter(|_| self.is_of_data())
    }

    fn is_of_data(&self) -> bool {
        matches!(self.basis, Basis::Data | Basis::Repaired | Basis::Stamped)
    }

    /// RTTVAR, the round-trip time variation (RFC 6298 §2), ms.
    pub(super) const fn rttvar_ms(&self) -> u32 {
        (self.rttvar_4th >> 2) as u32
    }

    /// The timeout to arm now, doublings included, ms.
    ///
    /// Without timestamps an ACK of a retransmission does not end the doublings (Karn): they last
    /// until data that were sent once are acknowledged. After the ACK of a repair only the measured
    /// part is doubled, and `rto_slop_ms` is added once, as in BSD.
    pub(super) fn rto_ms(&self, config: &Config) -> u32 {
        let undoubled_ms = match self.basis {
            Basis::Repaired if !config.linux_acks() => {
                u32::from(config.rto_slop_ms) * ((1 << self.doublings) - 1)
            }
            _ => 0,
        };
        self.timeout_ms(config, undoubled_ms)
    }

    /// Time between two probes of a shut window, ms: all of it doubled (RFC 9293 §3.8.6.1).
    pub(super) fn probe_ms(&self, config: &Config) -> u32 {
        self.timeout_ms(config, 0)
    }

    /// The RTO by RFC 6298 §2.3 to §2.5 and §5.5; `undoubled_ms`: a part of the estimate that is
    /// not doubled.
    fn timeout_ms(&self, config: &Config, undoubled_ms: u32) -> u32 {
        let least = match self.basis {
            Basis::LostSyn => RTO_AFTER_LOST_SYN_MS,
            #[cfg(feature = "linux-acks")]
            Basis::Handshake if config.linux_acks => u32::from(config.rto_min_ms),
            Basis::Nothing | Basis::Handshake => u32::from(config.rto_initial_ms),
            Basis::Data | Basis::Repaired | Basis::Stamped => u32::from(config.rto_min_ms),
        };
        let estimate = match self.srtt_ms() {
            None => 0,
            // SRTT rounded up: a timeout must not come early.
            Some(_) => {
                let srtt = (self.srtt_8th + 7) >> 3;
                let variation = u32::from(self.rttvar_4th);
                match config.linux_acks() {
                    true => srtt + variation.max(u32::from(config.rto_min_ms)),
                    false => srtt + variation + u32::from(config.rto_slop_ms),
                }
            }
        };
        #[cfg(feature = "tcple")]
        let estimate = estimate + u32::from(self.waited_ms);
        let timeout = (estimate << self.doublings) - undoubled_ms;
        timeout
            .max(least << self.doublings)
            .min(u32::from(config.rto_max_ms))
    }

    /// Doubles the timeout after an expiry.
    pub(super) fn back_off(&mut self) {
        self.doublings = self.doublings.saturating_add(1).min(DOUBLINGS_MAX);
    }

    /// Whether each of `expiries` in a row has doubled the RTO, as far as it is doubled at all.
    pub(super) fn has_doubled(&self, expiries: u8) -> bool {
        self.doublings >= expiries.min(DOUBLINGS_MAX)
    }

    /// Takes the last doubling back (RFC 6069 §4.2).
    pub(super) fn take_back_doubling(&mut self) {
        self.doublings = self.doublings.saturating_sub(1);
    }

    /// How long `expiries` timeouts in a row and one more take if each doubles the RTO, ms.
    pub(super) fn doubled_ms(&self, config: &Config, expiries: u8) -> u32 {
        let nth = |doublings: u8| Self {
            doublings: doublings.min(DOUBLINGS_MAX),
            ..*self
        };
        (0..=expiries).map(|n| nth(n).rto_ms(config)).sum()
    }

    /// Takes the doublings back: the peer answers, or the expiry was spurious.
    pub(super) fn forget_backoff(&mut self) {
        self.doublings = 0;
    }

    /// After an expiry that was spurious: SRTT is at least the round trip of `rtt_ms` that the
    /// timer was too short for (RFC 4015 §4.3), which one sample raises by an eighth alone.
    /// Differs: the RTTVAR of that section, half the round trip, makes an RTO of three round trips,
    /// and the next loss costs a sender in a crowd all of them. RTTVAR stays what the sample has
    /// made of it.
    pub(super) fn raise(&mut self, rtt_ms: u32) {
        #[cfg(feature = "tcple")]
        let rtt_ms = rtt_ms.saturating_sub(self.waited_ms.into());
        let rtt = rtt_ms.clamp(1, RTT_MAX_MS);
        self.srtt_8th = self.srtt_8th.max(rtt << 3);
    }

    /// Notes that retransmitted data were acknowledged.
    pub(super) fn note_repaired(&mut self) {
        if self.basis == Basis::Data {
            self.basis = Basis::Repaired;
        }
    }

    pub(super) const fn doublings(&self) -> u8 {
        self.doublings
    }

    /// After the handshake of a retransmitted SYN: without a sample, the RTO is 3 s.
    pub(super) fn distrust(&mut self) {
        self.basis = Basis::LostSyn;
        self.doublings = 0;
    }
}

/// The least RTO of data, ms ([`Config::rto_min_ms`]).
pub(super) fn least_ms(config: &Config) -> u32 {
    u32::from(config.rto_min_ms)
}

/// RTO after a handshake in which the SYN was retransmitted (RFC 6298 §5.7), ms.
const RTO_AFTER_LOST_SYN_MS: u32 = 3000;

/// Doublings of the RTO: with the default settings it exceeds [`Config::rto_max_ms`] then.
const DOUBLINGS_MAX: u8 = 12;

/// Longest believable round trip, ms.
pub(super) const RTT_MAX_MS: u32 = 60_000;
