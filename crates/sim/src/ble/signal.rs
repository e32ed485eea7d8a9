//! How strong a signal is, and which packets are lost because it is weak.
//!
//! A level is a mean and a variation with a normal distribution in dB, the same both ways, which
//! changes within about a second. Left out: how bodies and walls make it so; a level of each
//! channel.

use std::collections::BTreeMap;

use motet::ble::Phy;
use motet::random::Rng;
use motet::time::Instant;

use super::phy::packet_len;
use crate::streams::gaussian;

/// The signals between all devices.
#[derive(Debug)]
pub(super) struct Signal {
    mean_dbm: f64,
    sigma_db: f64,
    rng: Rng,
    /// For each pair of devices, the lower number first: the time of the last sample, and its
    /// variation as a multiple of sigma.
    links: BTreeMap<(usize, usize), (Instant, f64)>,
}

impl Signal {
    /// Signals with this mean at every receiver, dBm, that vary by `sigma_db`, or are steady.
    pub(super) fn new(mean_dbm: f64, sigma_db: f64, rng: Rng) -> Self {
        Self {
            mean_dbm,
            sigma_db,
            rng,
            links: BTreeMap::new(),
        }
    }

    /// The level between two devices now, dBm.
    pub(super) fn level(&mut self, link: (usize, usize), now: Instant) -> f64 {
        if self.sigma_db <= 0.0 {
            return self.mean_dbm;
        }
        let fresh = gaussian(&mut self.rng);
        let known = self.links.entry(ordered(link)).or_insert((now, fresh));
        let (at, before) = *known;
        // A first-order autoregressive process: what is kept of the variation falls with time.
        let kept = libm::exp(-(now.since(at).as_micros() as f64) / COHERENCE_US);
        let level = kept * before + libm::sqrt(1.0 - kept * kept) * fresh;
        *known = (now, level);
        self.mean_dbm + self.sigma_db * level
    }

    /// The received level at the last packet, dBm, as a controller reports it.
    pub(super) fn told(&self, link: (usize, usize)) -> i8 {
        let level = self
            .links
            .get(&ordered(link))
            .map_or(0.0, |(_, level)| *level);
        let dbm = self.mean_dbm + self.sigma_db * level;
        // HCI limits the value to this range (Core 5.4 Vol 4 Part E §7.5.4).
        dbm.clamp(-127.0, 20.0) as i8
    }

    /// The chance that a packet has an error on a link now, where it is `injected` otherwise.
    pub(super) fn error(
        &mut self,
        link: (usize, usize),
        injected: f64,
        (payload, phy): (usize, Phy),
        now: Instant,
    ) -> f64 {
        let by_noise = packet_error(self.level(link, now), payload, phy);
        match by_noise > 0.0 {
            true => 1.0 - (1.0 - injected) * (1.0 - by_noise),
            false => injected,
        }
    }
}

fn ordered((a, b): (usize, usize)) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// The chance that noise spoils a packet at this level: bit errors of frequency shift keying that
/// is received without its phase, 1/2 exp(-Eb/2N0) (Proakis, Digital Communications, §4.5-4).
fn packet_error(dbm: f64, payload: usize, phy: Phy) -> f64 {
    let sensitivity = match phy {
        Phy::Le1M => SENSITIVITY_1M_DBM,
        Phy::Le2M => SENSITIVITY_2M_DBM,
    };
    let above = libm::pow(10.0, (dbm - sensitivity) / 10.0);
    let bit = 0.5 * libm::exp(-above * EB_N0_AT_SENSITIVITY / 2.0);
    let bits = 8 * packet_len(payload, phy, false);
    1.0 - libm::pow(1.0 - bit, bits as f64)
}

/// The coherence time of a level, µs. A person who walks at 1 m/s changes the interference of paths
/// at a wavelength of 12.5 cm within a fraction of a second, and the shadowing within several
/// seconds.
const COHERENCE_US: f64 = 1e6;

/// The sensitivity of an nRF52840, dBm (nRF52840 PS v1.11 §6.20.15.5, ideal transmitter, packets of
/// up to 37 bytes).
const SENSITIVITY_1M_DBM: f64 = -95.0;
const SENSITIVITY_2M_DBM: f64 = -92.0;

/// Eb/N0 with a bit error in a thousand, which sensitivity is measured at (Core 5.4 Vol 6 Part A
/// §4.1): 2 ln 500.
const EB_N0_AT_SENSITIVITY: f64 = 12.429_216;

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_micros(1_000 * ms)
    }

    #[test]
    fn a_bit_in_a_thousand_is_wrong_at_the_sensitivity_and_none_well_above() {
        // 37 bytes of payload: 47 on the air of 1M, 376 bits.
        let error = packet_error(-95.0, 37, Phy::Le1M);
        assert!(
            (error - (1.0 - 0.999_f64.powi(376))).abs() < 1e-6,
            "{error}"
        );
        assert!(packet_error(-92.0, 37, Phy::Le1M) < 0.01);
        assert!(packet_error(-99.0, 37, Phy::Le1M) > 0.99);
        assert!(packet_error(-92.0, 251, Phy::Le2M) > 0.8);
        assert_eq!(packet_error(-50.0, 251, Phy::Le2M), 0.0);
    }

    #[test]
    fn levels_have_their_mean_and_spread_and_stay_for_a_while() {
        let mut signal = Signal::new(-80.0, 4.0, Rng::from_seed([1; 2]));
        let all: Vec<f64> = (0..4_000)
            .map(|n| signal.level((1, 0), at_ms(3_000 * n)))
            .collect();
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let spread = all.iter().map(|level| (level - mean).powi(2)).sum::<f64>();
        let sigma = (spread / all.len() as f64).sqrt();
        assert!(
            (mean + 80.0).abs() < 0.3 && (sigma - 4.0).abs() < 0.3,
            "{mean} {sigma}"
        );
        let last = all.last().copied().unwrap_or_default();
        let soon = signal.level((0, 1), at_ms(3_000 * 3_999 + 1));
        assert!((soon - last).abs() < 1.5, "{last} {soon}");
        assert_eq!(signal.told((1, 0)), soon as i8);
    }

    #[test]
    fn a_strong_and_steady_signal_changes_no_chance() {
        let mut signal = Signal::new(-50.0, 0.0, Rng::from_seed([1; 2]));
        let error = signal.error((0, 1), 0.1, (251, Phy::Le1M), at_ms(1));
        assert_eq!((error, signal.told((0, 1))), (0.1, -50));
        let mut weak = Signal::new(-96.0, 0.0, Rng::from_seed([1; 2]));
        assert!(weak.error((0, 1), 0.1, (251, Phy::Le1M), at_ms(1)) > 0.9);
    }
}
