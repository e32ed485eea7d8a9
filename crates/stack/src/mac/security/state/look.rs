//! The view of a node's security for others: no key.

use super::Security;
use crate::mac::security::SecurityCounters;
use crate::wire::ieee802154::Level;

impl Security<'_> {
    /// The key sequence in force.
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// The security level of the frames that this node sends.
    pub const fn level(&self) -> Level {
        self.level
    }

    /// Frames, keys and challenges counted since start.
    pub const fn counters(&self) -> &SecurityCounters {
        &self.counters
    }

    /// Whether this neighbour has shown that it has the key.
    pub fn knows(&self, addr: [u8; 8]) -> bool {
        self.peers.find(addr).is_some()
    }

    /// The neighbours that have shown that they have the key: the extended address of each, and the
    /// frame counter of its last authentic frame.
    pub fn neighbours(&self) -> impl Iterator<Item = ([u8; 8], u32)> {
        self.peers.counters()
    }
}
