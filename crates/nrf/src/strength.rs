//! Strengths of signals: the radio's units, and dBm.
//!
//! Sources: nRF52840 Product Specification §6.20.12, with errata 236 (conversion) and 153
//! (temperature). The latter gives a correction of RSSISAMPLE alone; that the same one holds for
//! the LQI is from Nordic's driver (nrf_802154). [`BUSY_ENERGY`] is not corrected: the erratum
//! does not name it, and that driver moves it the other way.

/// How much stronger than it is the radio measures a signal, dB, where it is so hot, in quarters of
/// 1 °C: one less every 20 °C (erratum 153).
pub(crate) fn excess_db(heat: i32) -> i8 {
    let steps = COLDEST.saturating_sub(heat).div_euclid(STEP);
    (EXCESS_MAX_DB + steps).clamp(-EXCESS_MAX_DB, EXCESS_MAX_DB) as i8
}

/// A strength as it is, of one that the radio has measured.
pub(crate) const fn true_dbm(measured_dbm: i8, excess_db: i8) -> i8 {
    measured_dbm.saturating_sub(excess_db)
}

/// The LQI, 255 best, of the byte that the radio puts in the place of a frame's FCS.
pub(crate) const fn lqi(measured: u8, excess_db: i8) -> u8 {
    let energy = measured.saturating_add_signed(excess_db.saturating_neg());
    energy.saturating_mul(LQI_SCALE)
}

/// The most of the radio's powers that is not above this, or the least, dBm.
pub(crate) fn power_dbm(dbm: i8) -> i8 {
    let [least, above @ ..] = POWERS_DBM;
    let allowed = above.iter().copied().take_while(|power| *power <= dbm);
    allowed.last().unwrap_or(least)
}

/// The energy beyond which a channel is busy, in the radio's units: one each dB.
pub(crate) const BUSY_ENERGY: u8 = (BUSY_DBM - ENERGY_FLOOR_DBM) as u8;

/// What IEEE 802.15.4-2006 §6.9.9 allows at most: 10 dB above the sensitivity that it asks for.
const BUSY_DBM: i8 = -75;

/// What 0 of the radio's units is, dBm (ED_RSSIOFFS; -93 on the nRF52833).
const ENERGY_FLOOR_DBM: i8 = -92;

/// The powers that the radio can send with, dBm (TXPOWER).
const POWERS_DBM: [i8; 14] = [-40, -20, -16, -12, -8, -4, 0, 2, 3, 4, 5, 6, 7, 8];

/// Factor from energy to an LQI of at most 255 (ED_RSSISCALE).
const LQI_SCALE: u8 = 4;

/// At most so hot, -30 °C in quarters, the radio measures [`EXCESS_MAX_DB`] too much.
const COLDEST: i32 = 4 * -30;
const STEP: i32 = 4 * 20;
const EXCESS_MAX_DB: i32 = 3;
