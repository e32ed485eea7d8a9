//! The 2.4 GHz O-QPSK physical layer: air times and error rates.
//!
//! Place: the medium asks for the chance that each stretch of a frame survives.
//! Left out: channel coding, frequency offset, multipath: the formula is for white noise;
//! other 802.15.4 frames count double for that ([`CO_CHANNEL_LOSS_DB`]).
//! Sources: IEEE 802.15.4-2006 §6.5, §6.9, §7.4.2 and annex E.4.1.8.

use std::sync::LazyLock;

use motet::time::Duration;

/// Synchronisation header: four preamble bytes and the SFD, µs.
pub const SHR: Duration = Duration::from_micros(160);

/// Synchronisation and PHY header, before the first PSDU byte, µs.
pub const HEADER: Duration = Duration::from_micros(192);

/// Time from receiving to transmitting or back: `aTurnaroundTime`, 12 symbols.
pub const TURNAROUND: Duration = Duration::from_micros(192);

/// One clear channel assessment: 8 symbols.
pub const CCA: Duration = Duration::from_micros(128);

/// `aUnitBackoffPeriod`: 20 symbols.
pub const UNIT_BACKOFF: Duration = Duration::from_micros(320);

/// PSDU bytes of an immediate ACK, FCS included.
pub const ACK_LEN: usize = 5;

/// Microseconds on the air per byte at 250 kb/s.
pub const BYTE_US: u64 = 32;

/// The gain by which an 802.15.4 interferer's power is raised before it counts as noise, dB.
///
/// The error formula holds for white noise; a second O-QPSK signal correlates with the
/// chips and does more harm. 3 dB is the co-channel rejection of the CC2420's data sheet
/// and the capture threshold of Cooja's ray tracer. Not fitted.
pub const CO_CHANNEL_LOSS_DB: f64 = 3.0;

/// The strength by which a later frame must exceed an earlier one to take over a receiver still in
/// the preamble of an earlier one, dB. Same sources as [`CO_CHANNEL_LOSS_DB`].
pub const CAPTURE_DB: f64 = 3.0;

/// The weakest signal over noise and interference whose preamble a receiver finds, dB.
///
/// Below it even a 20-byte frame is lost more often than not (50 % at -1.86 dB).
pub const SYNC_SINR_DB: f64 = -2.0;

/// By how much the noise floor lies below the sensitivity, dB: sensitivity is where 1 % of
/// 20-byte frames are lost, which the error formula puts at +0.40 dB over noise.
pub const NOISE_BELOW_SENSITIVITY_DB: f64 = 0.4;

/// Time on the air of a frame with `psdu_len` bytes, all headers included.
pub const fn air_time(psdu_len: usize) -> Duration {
    Duration::from_micros(HEADER.as_micros() + psdu_len as u64 * BYTE_US)
}

/// Whether no run will ever see a wrong bit at `sinr` (a factor).
pub fn is_error_free(sinr: f64) -> bool {
    sinr >= ERROR_FREE_SINR
}

/// Bit error rate at a signal-to-noise ratio (a factor, not decibels).
///
/// `BER = 8/15 · 1/16 · Σ_{k=2..16} (-1)^k C(16,k) exp(20·SINR·(1/k - 1))`
///
/// Source: IEEE 802.15.4-2006 §E.4.1.8.
pub fn bit_error_rate(sinr: f64) -> f64 {
    if is_error_free(sinr) {
        return 0.0;
    }
    let sum: f64 = (2_u32..=16)
        .zip(BINOMIALS)
        .map(|(k, term)| term * libm::exp(20.0 * sinr * (1.0 / f64::from(k) - 1.0)))
        .sum();
    (8.0 / 15.0 / 16.0 * sum).clamp(0.0, 0.5)
}

/// The chance that `bits` bits pass without error at `sinr` (a factor).
///
/// From a table of the formula's logarithm, on straight lines in between: off by less than
/// one part in ten thousand, and sixteen exponentials fewer for each stretch of each frame.
pub fn survival(sinr: f64, bits: f64) -> f64 {
    if is_error_free(sinr) {
        return 1.0;
    }
    let place = sinr * STEPS_PER_UNIT;
    let at = place as usize;
    let share = place - at as f64;
    let log = match LOG_SURVIVAL.get(at..at + 2) {
        Some([low, high]) => low + share * (high - low),
        _ => 0.0,
    };
    libm::exp(bits * log)
}

/// The logarithm of the chance that one bit passes, by signal-to-noise ratio in steps.
static LOG_SURVIVAL: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let steps = (ERROR_FREE_SINR * STEPS_PER_UNIT) as u32;
    (0..=steps)
        .map(|step| libm::log1p(-bit_error_rate(f64::from(step) / STEPS_PER_UNIT)))
        .collect()
});

/// Fine enough that a straight line between two steps is as good as the formula.
const STEPS_PER_UNIT: f64 = 1024.0;

/// Signed binomial coefficients `(-1)^k C(16, k)` for k = 2 to 16.
const BINOMIALS: [f64; 15] = [
    120.0, -560.0, 1820.0, -4368.0, 8008.0, -11440.0, 12870.0, -11440.0, 8008.0, -4368.0, 1820.0,
    -560.0, 120.0, -16.0, 1.0,
];

/// Above this ratio (6 dB) the largest term is 4 · exp(-40): less than one wrong bit in
/// 10^16, nothing any run will see.
pub(super) const ERROR_FREE_SINR: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::air::power::ratio;

    fn packet_error_rate(sinr_db: f64, len: usize) -> f64 {
        1.0 - survival(ratio(sinr_db), len as f64 * 8.0)
    }

    #[test]
    fn the_formula_gives_the_published_error_rates() {
        // (PSDU bytes, SINR in dB, packet error rate), as computed by two other simulators.
        for (len, db, expected) in [
            (127, -0.71, 0.50),
            (127, 1.09, 0.01),
            (20, -1.86, 0.50),
            (20, 0.40, 0.01),
        ] {
            let rate = packet_error_rate(db, len);
            assert!(
                (rate / expected - 1.0).abs() < 0.06,
                "{len} B at {db} dB: {rate:.4}, not {expected}"
            );
        }
    }

    #[test]
    fn the_table_is_as_good_as_the_formula() {
        for step in 0..40_000 {
            let sinr = f64::from(step) * 1e-4 + 3e-5;
            let exact = libm::exp(1_016.0 * libm::log1p(-bit_error_rate(sinr)));
            let table = survival(sinr, 1_016.0);
            assert!((table - exact).abs() < 1e-4, "{sinr}: {table}, not {exact}");
        }
    }

    #[test]
    fn errors_only_fall_as_the_signal_grows() {
        let rates: Vec<f64> = (-60..80)
            .map(|tenth| packet_error_rate(f64::from(tenth) / 10.0, 127))
            .collect();
        assert!(rates.windows(2).all(|pair| pair[0] >= pair[1]));
        assert!(rates[0] > 0.999_999 && *rates.last().unwrap() == 0.0);
    }

    #[test]
    fn air_times_are_those_of_the_standard() {
        assert_eq!(air_time(127).as_micros(), 4256);
        assert_eq!(air_time(ACK_LEN).as_micros(), 352);
    }

    #[test]
    fn results_are_bit_exact_on_every_platform() {
        // A change here changes every seeded run: it belongs in the change log.
        assert_eq!(
            bit_error_rate(1.0).to_bits(),
            REFERENCE_BITS,
            "{:#x}",
            bit_error_rate(1.0).to_bits()
        );
    }

    const REFERENCE_BITS: u64 = 0x3f25_2bef_af22_85ba;
}
