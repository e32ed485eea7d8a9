//! Clocks that are off: events drift away from when a peripheral expects them.
//!
//! Hosts' clocks are not: what drifts is the controllers' count of connection events alone.
//! Source: Bluetooth Core 5.4 Vol 6 Part B §4.2.

use motet::time::{Duration, Instant};

use super::Air;
use super::connection::{CENTRAL, PERIPHERAL};

impl Air {
    /// Lets a device's clock be slower than it should be by `ppm` parts in a million, or faster.
    /// How far off controllers expect clocks to be stays as [`super::Profile::clock_ppm`] says.
    pub fn set_drift(&mut self, device: usize, ppm: i32) {
        self.devices[device].drift_ppm = ppm;
    }

    /// How long the connection's interval is by its central's clock, to the next event.
    pub(super) fn drifted_interval(&mut self, at: usize) -> Duration {
        let connection = &mut self.connections[at];
        let ppm = self.devices[connection.ends[CENTRAL].device].drift_ppm;
        let us = connection.interval().as_micros();
        // Millionths of a microsecond: what does not make a whole one is kept.
        let off = us.cast_signed() * i64::from(ppm) + connection.drift_rest;
        connection.drift_rest = off.rem_euclid(MILLION);
        Duration::from_micros(us.saturating_add_signed(off.div_euclid(MILLION)))
    }

    /// An instant by a central's clock.
    pub(super) fn by_clock_of(&self, central: usize, at: Instant) -> u64 {
        let ppm = i64::from(self.devices[central].drift_ppm);
        let us = at.as_micros();
        us.saturating_add_signed(-(us.cast_signed() / (MILLION + ppm) * ppm))
    }

    /// How much later a packet of the central comes now than the peripheral expects it, µs.
    pub(super) fn lateness(&self, at: usize, now: Instant) -> i64 {
        let connection = &self.connections[at];
        let ppm = |end: usize| i64::from(self.devices[connection.ends[end].device].drift_ppm);
        let since = now.since(connection.synchronised_at).as_micros();
        since.cast_signed() * (ppm(CENTRAL) - ppm(PERIPHERAL)) / MILLION
    }
}

const MILLION: i64 = 1_000_000;
