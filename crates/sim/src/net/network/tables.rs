//! How much memory a node's tables have.

use motet::limits::IPV6_MTU_MIN;

/// How large a node's tables are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tables {
    /// Frames that its MAC queues.
    pub queue_frames: usize,
    /// Bytes of whole packets that wait for the air.
    pub packet_queue_len: usize,
    /// Packets under way through it in fragments.
    pub records: usize,
    /// Packets being gathered in it.
    pub bodies: usize,
    /// TCP connections that the node has memory for.
    pub connections: usize,
    /// TCP listeners that the node has memory for.
    pub listeners: usize,
    /// TCP handshakes that nobody has accepted yet.
    pub half_open: usize,
    /// Connections whose compressed headers it knows, if more than its own and, at the border
    /// router, two of every mote.
    pub compressed: usize,
}

impl Tables {
    /// A relay of `TCPlp`'s testbed, whose 32 buffers of 128 bytes served everything.
    pub const RELAY: Self = Self {
        queue_frames: 16,
        packet_queue_len: 8 * IPV6_MTU_MIN,
        records: 16,
        bodies: 4,
        connections: 8,
        listeners: 4,
        half_open: 4,
        compressed: 0,
    };

    /// A border router of so many motes on a machine that has memory to spare: it puts a packet of
    /// each of them together at a time, and 32 at the least.
    #[must_use]
    pub fn border_router(motes: usize) -> Self {
        let bodies = motes.clamp(BODIES_MIN, BODIES_MAX);
        Self {
            records: bodies + Self::RELAY.records,
            bodies,
            ..Self::RELAY
        }
    }

    /// A mote of a large mesh: one connection of its own, and little to pass on at a time.
    pub const SMALL: Self = Self {
        queue_frames: 12,
        packet_queue_len: 2 * IPV6_MTU_MIN,
        records: 8,
        bodies: 1,
        connections: 1,
        listeners: 1,
        half_open: 1,
        compressed: 0,
    };
}

/// Packets that a border router puts together at a time, however few motes it has.
const BODIES_MIN: usize = 32;

/// The most of them: their table has 255 records at most.
const BODIES_MAX: usize = 255 - Tables::RELAY.records;
