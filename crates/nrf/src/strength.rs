//! Strengths of signals: the radio's units, and dBm.
//!
//! Source: nRF52840 Product Specification §6.20.12, with erratum 236 for the conversion.

/// The energy beyond which a channel is busy, in the radio's units: one each dB.
pub(crate) const BUSY_ENERGY: u8 = (BUSY_DBM - ENERGY_FLOOR_DBM) as u8;

/// What IEEE 802.15.4-2006 §6.9.9 allows at most: 10 dB above the sensitivity that it asks for.
const BUSY_DBM: i8 = -75;

/// What 0 of the radio's units is, dBm (ED_RSSIOFFS; -93 on the nRF52833).
const ENERGY_FLOOR_DBM: i8 = -92;
