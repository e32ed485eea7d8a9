//! Devices that are switched off and on.
//!
//! A device is switched off without a message: the other end of a connection notices by the
//! supervision timeout.

use super::Air;
use super::advertise::Seeking;
use super::connection::{CENTRAL, PERIPHERAL};

impl Air {
    /// Switches a device off at once.
    pub fn switch_off(&mut self, device: usize) {
        let now = self.now();
        let found = &mut self.devices[device];
        found.is_off = true;
        found.seeking = Seeking::default();
        found.reports.clear();
        found.busy_until = now;
        for at in 0..self.connections.len() {
            if !self.connections[at].is_of(device) {
                continue;
            }
            self.close_event(at);
            let connection = &mut self.connections[at];
            for end in [CENTRAL, PERIPHERAL] {
                connection.ends[end].is_gone |= connection.ends[end].device == device;
            }
            connection.is_over = connection.ends.iter().all(|end| end.is_gone);
        }
    }

    /// Switches a device on, whose controller starts.
    pub fn switch_on(&mut self, device: usize) {
        self.devices[device].is_off = false;
        self.report_started(device);
    }
}
