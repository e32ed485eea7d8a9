//! The charge that an nRF52840 takes for what its radio does.
//!
//! Currents at 3 V with the DC/DC converter, 0 dBm, from the product specification v1.11 §6.20.15;
//! that of the processor, the ramps and the crystal's start are estimates, as `docs/reference` says
//! of the other radios.

use motet::ble::Phy;
use motet::time::Duration;

/// The activity of a device's radio.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Usage {
    /// Time spent sending, µs.
    pub sending_us: u64,
    /// Receiving or waiting for a packet at 1 Mb/s, µs.
    pub receiving_1m_us: u64,
    /// The same at 2 Mb/s, µs.
    pub receiving_2m_us: u64,
    /// Times that the radio was made ready to send, and to receive.
    pub ramps: [u64; 2],
    /// Times that it woke for something: a connection event, an advertisement, a look at a channel.
    pub wakes: u64,
}

impl Usage {
    pub(super) fn send(&mut self, time: Duration) {
        self.sending_us += time.as_micros();
        self.ramps[0] += 1;
    }

    pub(super) fn receive(&mut self, phy: Phy, time: Duration) {
        self.wait(phy, time);
        self.ramps[1] += 1;
    }

    /// The receiver is on before a packet comes.
    pub(super) fn wait(&mut self, phy: Phy, time: Duration) {
        match phy {
            Phy::Le1M => self.receiving_1m_us += time.as_micros(),
            Phy::Le2M => self.receiving_2m_us += time.as_micros(),
        }
    }

    /// Receiving or waiting for a packet, µs.
    pub const fn receiving_us(&self) -> u64 {
        self.receiving_1m_us + self.receiving_2m_us
    }

    /// Getting ready to send or receive, µs.
    pub const fn preparing_us(&self) -> u64 {
        (self.ramps[0] + self.ramps[1]) * RAMP_US
    }

    /// Work of the processor for the radio, µs.
    pub const fn processor_us(&self) -> u64 {
        self.wakes * PROCESSOR_US as u64
    }

    /// The charge of the radio alone, µC.
    pub fn radio_uc(&self) -> f64 {
        let sent = (self.sending_us + self.ramps[0] * RAMP_US) as f64;
        let received = (self.receiving_1m_us + self.ramps[1] * RAMP_US) as f64;
        let received_2m = self.receiving_2m_us as f64;
        (sent * SENDING_MA + received * RECEIVING_1M_MA + received_2m * RECEIVING_2M_MA) / 1000.0
    }

    /// The same with the crystal's start and the processor's work, µC.
    pub fn charge_uc(&self) -> f64 {
        let each = (CRYSTAL_US * CRYSTAL_MA + PROCESSOR_US * PROCESSOR_MA) / 1000.0;
        let on_us = self.sending_us + self.receiving_us() + self.preparing_us();
        self.radio_uc() + self.wakes as f64 * each + on_us as f64 * CRYSTAL_MA / 1000.0
    }

    /// As [`Self::charge_uc`], as energy, µJ.
    pub fn energy_uj(&self) -> f64 {
        self.charge_uc() * VOLTS
    }

    /// As [`Self::radio_uc`], as energy, µJ.
    pub fn radio_uj(&self) -> f64 {
        self.radio_uc() * VOLTS
    }
}

const VOLTS: f64 = 3.0;
const SENDING_MA: f64 = 4.8;
const RECEIVING_1M_MA: f64 = 4.6;
const RECEIVING_2M_MA: f64 = 5.2;
const RAMP_US: u64 = 40;
const CRYSTAL_US: f64 = 400.0;
const CRYSTAL_MA: f64 = 0.1;
const PROCESSOR_US: f64 = 300.0;
const PROCESSOR_MA: f64 = 3.3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ble::phy::air_time;

    /// An empty event of a peripheral that listens 32 µs too early, as `ble_limits.py energy` has
    /// it: 3.83 µJ of the radio, and 7.04 with crystal and processor.
    #[test]
    fn an_empty_event_costs_what_the_limits_say() {
        let mut usage = Usage::default();
        let empty = air_time(0, Phy::Le1M, false);
        usage.receive(Phy::Le1M, empty + Duration::from_micros(32));
        usage.send(empty);
        usage.wakes = 1;
        let radio = usage.radio_uc() * VOLTS;
        assert!((radio - 3.83).abs() < 0.01, "{radio}");
        // The limits count the 150 µs between both packets to the crystal, too.
        let all = usage.energy_uj();
        assert!((all - 7.04).abs() < 0.06, "{all}");
    }
}
