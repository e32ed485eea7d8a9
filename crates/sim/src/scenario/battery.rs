//! `[battery]`: for how long a mote's cells last, given what its radio and processor used.
//!
//! Left out: self-discharge, temperature, and the voltage that falls while a cell empties.

use serde::Deserialize;
use toml::Table;

use super::defaults::section;
use super::error::ScenarioError;
use super::keys::Kind::Number;
use super::keys::{Section, key};

/// The keys of `[battery]`.
pub(super) const SECTION: Section = Section {
    name: "battery",
    repeated: false,
    doc: "What motes are supplied from; the border router has a cable. With it a result says for how many days each would last.",
    keys: &[
        key(
            "cell_mah",
            Number(1.0, 1e6),
            Some("2500.0"),
            "Charge of the cells in a row, mAh: two alkaline AA as a rule.",
        ),
        key(
            "sensor_ua",
            Number(0.0, 1e6),
            Some("0.0"),
            "Mean current of the sensor, µA.",
        ),
        key(
            "idle_ua",
            Number(0.0, 1e6),
            Some("0.0"),
            "What the board needs besides radio, processor and sensor, µA.",
        ),
    ],
};

/// The cells of a mote, and what drains them besides radio and processor.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub struct Battery {
    /// The charge of a cell, mAh.
    pub cell_mah: f64,
    /// Mean current of the sensor, µA.
    pub sensor_ua: f64,
    /// Current of the rest of the board, µA.
    pub idle_ua: f64,
}

impl Battery {
    /// Days that it lasts where radio and processor need `milliwatts` at `volts`; without end where
    /// nothing needs anything.
    pub fn days(&self, milliwatts: f64, volts: f64) -> Option<f64> {
        let milliamperes = milliwatts / volts + (self.sensor_ua + self.idle_ua) / 1e3;
        (milliamperes > 0.0).then(|| self.cell_mah / milliamperes / 24.0)
    }
}

/// The battery that a scenario names, if it has the table.
///
/// # Errors
/// None that the keys' own checks have not found.
pub(super) fn battery(table: &Table) -> Result<Option<Battery>, ScenarioError> {
    match table.contains_key("battery") {
        true => section(table, "battery").map(Some),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_from_charge_and_current() {
        let battery = Battery {
            cell_mah: 2_400.0,
            sensor_ua: 60.0,
            idle_ua: 10.0,
        };
        // 0.03 mA of the radio and 0.07 mA of the others: 24,000 h.
        let days = battery.days(0.09, 3.0).expect("a current");
        assert!((days - 1_000.0).abs() < 1e-6, "{days}");
        let nothing = Battery {
            sensor_ua: 0.0,
            idle_ua: 0.0,
            ..battery
        };
        assert_eq!(nothing.days(0.0, 3.0), None);
    }
}
