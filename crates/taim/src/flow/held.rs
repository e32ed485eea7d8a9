//! A packet that the router holds, and what its passing shows the end that it goes to.

use motet::time::Instant;

use crate::router::PacketId;
use crate::segment::Segment;

/// A packet that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldPacket {
    pub(crate) id: PacketId,
    /// Since when it is held.
    pub(crate) since: Instant,
    /// Segments in it: hardware may have merged some.
    pub(crate) segments: u32,
    /// Length of the packet, bytes.
    pub(crate) len: u64,
    /// The numbers that the other end sees when the packet is released.
    pub(super) passing: Passing,
}

/// The numbers that a segment's passing shows the end that it goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing {
    /// Behind its last byte, where it carries any.
    pub(super) end: Option<u32>,
    pub(super) ack: Option<u32>,
}

impl HeldPacket {
    /// The sequence number after its last byte, where it carries data.
    pub(crate) const fn end(&self) -> Option<u32> {
        self.passing.end
    }
}

impl Passing {
    pub(crate) fn of(segment: &Segment) -> Self {
        Self {
            end: (segment.payload_len > 0).then(|| segment.end()),
            ack: segment.ack,
        }
    }
}
