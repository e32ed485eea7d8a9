//! The charge that a node's time costs.
//!
//! Place: `radio` counts how long it was in each state and how long its processor worked; this
//! turns it into energy and duty cycles.
//! Left out: the regulator's losses, sensors, leakage, batteries.
//! Sources: data sheets of the AT86RF233, CC2420, nRF52840, MSP430F1611 and SAM R21, each beside
//! its figure; a figure without a document beside it is an estimate.

use motet::time::Duration;

use crate::air::radio::{State, Usage};

/// Supply and currents of a radio and the processor beside it, mA.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Currents {
    /// The supply voltage, V.
    pub volts: f64,
    /// The current while the radio is switched off, mA.
    pub sleep_ma: f64,
    /// The current while the radio is on and neither receives nor transmits, mA: while a driver
    /// that cannot receive meanwhile copies a frame.
    pub ready_ma: f64,
    /// Radio receiving, or ready to.
    pub listen_ma: f64,
    /// Radio waking up, on average.
    pub wake_ma: f64,
    /// Radio transmitting, by power in dBm, ascending; between two of them on a straight line.
    pub transmit_ma: &'static [(f64, f64)],
    /// The current of the processor at work, mA.
    pub cpu_ma: f64,
    /// The current of the processor that waits, mA.
    pub cpu_idle_ma: f64,
}

impl Currents {
    /// SAM R21: AT86RF233 data sheet §12.8 (11.8 mA receiving and at 0 dBm, 13.8 mA at +4 dBm,
    /// 5.2 mA with the PLL locked, 0.02 µA asleep); Cortex-M0+ at 48 MHz about 5.5 mA.
    pub const HAMILTON: Self = Self {
        volts: 3.0,
        sleep_ma: 0.000_02,
        ready_ma: 5.2,
        listen_ma: 11.8,
        // Estimate: the oscillator starts, then TRX_OFF (0.3 mA) and the PLL (5.2 mA).
        wake_ma: 1.2,
        transmit_ma: &[(-17.0, 7.2), (0.0, 11.8), (4.0, 13.8)],
        cpu_ma: 5.5,
        cpu_idle_ma: 0.004,
    };

    /// CC2420 data sheet §5.3 (receiving 18.8 mA, transmitting by power, idle 0.426 mA);
    /// MSP430F1611 1.8 mA active, 54.5 µA idle.
    pub const TELOSB: Self = Self {
        volts: 3.0,
        sleep_ma: 0.02,
        ready_ma: 18.8,
        listen_ma: 18.8,
        // Idle with the oscillator on, by the data sheet.
        wake_ma: 0.426,
        transmit_ma: &[
            (-25.0, 8.5),
            (-15.0, 9.9),
            (-10.0, 11.2),
            (-5.0, 13.9),
            (0.0, 17.4),
        ],
        cpu_ma: 1.8,
        cpu_idle_ma: 0.054_5,
    };

    /// As the TCPHC paper counts a `TelosB`: 0.5 mA whenever its processor runs, 19.7 mA
    /// listening with it.
    pub const TELOSB_TCPHC: Self = Self {
        ready_ma: 19.7,
        listen_ma: 19.7,
        cpu_ma: 0.5,
        ..Self::TELOSB
    };

    /// nRF52840 product specification, current tables of radio and processor (DC/DC, HFXO
    /// included): 6.53 mA receiving, 6.40 mA at 0 dBm, 16.4 mA at +8 dBm; processor 3.3 mA.
    pub const NRF52840: Self = Self {
        volts: 3.0,
        sleep_ma: 0.002,
        ready_ma: 6.53,
        listen_ma: 6.53,
        // Estimate: the crystal starts (0.25 mA above idle), then the radio ramps up.
        wake_ma: 1.0,
        transmit_ma: &[(0.0, 6.40), (8.0, 16.4)],
        cpu_ma: 3.3,
        cpu_idle_ma: 0.002,
    };

    /// The transmit current at `dbm`; that of the nearest power beyond the table's ends.
    pub fn transmitting_ma(&self, dbm: f64) -> f64 {
        let above = self.transmit_ma.partition_point(|(power, _)| *power < dbm);
        let below = above.saturating_sub(1);
        let (Some((low, low_ma)), Some((high, high_ma))) = (
            self.transmit_ma.get(below),
            self.transmit_ma.get(above).or(self.transmit_ma.last()),
        ) else {
            return self.listen_ma;
        };
        if high <= low {
            return *high_ma;
        }
        let share = ((dbm - low) / (high - low)).clamp(0.0, 1.0);
        low_ma + share * (high_ma - low_ma)
    }

    fn radio_ma(&self, state: State, dbm: f64, deaf: bool) -> f64 {
        match state {
            State::Sleep => self.sleep_ma,
            State::Copy | State::Unload if deaf => self.ready_ma,
            State::Transmit => self.transmitting_ma(dbm),
            _ => self.listen_ma,
        }
    }
}

/// The energy that a node has used.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Energy {
    /// Energy of the radio, mJ.
    pub radio_mj: f64,
    /// Energy of the processor, mJ.
    pub cpu_mj: f64,
    /// Share of the time in which the radio was not asleep, 0 to 1.
    pub radio_duty: f64,
    /// Share of the time in which the processor worked, 0 to 1.
    pub cpu_duty: f64,
}

impl Energy {
    /// The energy that a radio and its processor use: `usage` says how long the radio was in each
    /// state, it transmits at `dbm`, and a driver that is `deaf` does not receive while it copies.
    pub fn of(usage: &Usage, currents: &Currents, dbm: f64, deaf: bool) -> Self {
        let total = seconds(usage.total());
        let spent = |ma: f64, span: f64| ma * currents.volts * span;
        let radio_mj: f64 = State::ALL
            .into_iter()
            .map(|state| {
                let ma = currents.radio_ma(state, dbm, deaf);
                spent(ma, seconds(usage.span(state)))
            })
            .sum::<f64>()
            // Waking counts among turning around.
            - spent(currents.listen_ma - currents.wake_ma, seconds(usage.waking()));
        let working = seconds(usage.cpu()).min(total);
        let share = |span: f64| if total > 0.0 { span / total } else { 0.0 };
        Self {
            radio_mj,
            cpu_mj: spent(currents.cpu_ma, working) + spent(currents.cpu_idle_ma, total - working),
            radio_duty: share(total - seconds(usage.span(State::Sleep))),
            cpu_duty: share(working),
        }
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmit_currents_are_those_of_the_tables_and_between() {
        for (currents, dbm, expected) in [
            (Currents::TELOSB, 0.0, 17.4),
            (Currents::TELOSB, -10.0, 11.2),
            (Currents::TELOSB, -7.5, 12.55),
            (Currents::TELOSB, -60.0, 8.5),
            (Currents::TELOSB, 9.0, 17.4),
            (Currents::NRF52840, 4.0, 11.4),
            (Currents::HAMILTON, 4.0, 13.8),
        ] {
            let ma = currents.transmitting_ma(dbm);
            assert!((ma - expected).abs() < 1e-9, "{dbm} dBm: {ma}");
        }
    }

    #[test]
    fn a_radio_that_only_listens_costs_just_that() {
        let usage = Usage::listening(Duration::from_secs(10));
        let energy = Energy::of(&usage, &Currents::HAMILTON, 0.0, true);
        assert!((energy.radio_mj - 354.0).abs() < 1e-9, "{energy:?}");
        assert!((energy.cpu_mj - 0.12).abs() < 1e-9, "{energy:?}");
        assert_eq!((energy.radio_duty, energy.cpu_duty), (1.0, 0.0));
    }
}
