//! The record that a program stores for a node with a key.

use motet::mac::security::Reservation;

/// What the program stores so that it outlives the power, for each key and each EUI-64. Two frames
/// of one key with one counter betray both: what is stored must be what is read after a power cut
/// at any moment, never something older. A store that is damaged, or not the last one, needs
/// another key.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_reservation {
    /// The key sequence that the node has.
    pub sequence: u32,
    /// The first frame counter that it has not used when it starts again.
    pub counter: u32,
    /// The first number that no request to join has had when it starts again; of a node that does
    /// not join, 0.
    pub requests: u32,
}

pub(crate) const fn reservation(of: motet_reservation) -> Reservation {
    Reservation {
        sequence: of.sequence,
        counter: of.counter,
    }
}

/// With fewer a mote knows hardly more than its parent.
pub(crate) const NEIGHBORS_MIN: u8 = 4;
