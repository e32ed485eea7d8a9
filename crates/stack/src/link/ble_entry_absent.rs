//! Stands in for the queues of flows in a build without the feature `entry`: packets from outside
//! wait with all others.

use super::Ble;
use crate::ip::Ip;
use crate::link::arrival::{Hop, Refusal};
use crate::time::{Deadlines, Instant};

impl Ble<'_> {
    pub(in crate::link) fn forward(
        &mut self,
        parts: [&[u8]; 2],
        _: &Hop,
        _: &mut Ip<'_>,
        _: Instant,
    ) -> Result<(), Refusal> {
        self.queue(parts)
    }

    pub(in crate::link) const fn note_leaving(&mut self, _: &[u8], _: Instant) {}

    pub(super) const fn add_entry_deadlines(&self, _: &mut Deadlines) {}

    pub(super) const fn distribute_flows(&mut self, _: &mut Ip<'_>, _: Instant, _: &mut [u8]) {}
}
