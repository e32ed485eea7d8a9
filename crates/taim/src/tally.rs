//! Counts of packets, bytes and holding.

use motet::time::Duration;

/// Counts of a flow, or of all flows of a mote, so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// New bytes, by direction.
    pub(crate) bytes: [u64; 2],
    pub(crate) packets: u64,
    pub(crate) retransmissions: u64,
    pub(crate) held: u64,
    pub(crate) held_for: Duration,
    pub(crate) held_longest: Duration,
}

impl Tally {
    /// Takes over what another one has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        for (own, other) in self.bytes.iter_mut().zip(other.bytes) {
            *own += other;
        }
        self.packets += other.packets;
        self.retransmissions += other.retransmissions;
        self.held += other.held;
        self.held_for = self.held_for + other.held_for;
        self.held_longest = self.held_longest.max(other.held_longest);
    }
}
