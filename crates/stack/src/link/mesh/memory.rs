//! The memory of a mesh link: slices, and a static that lends them.

use crate::ip::Registration;
use crate::limits::{IPV6_MTU_MIN, MESH_PACKET_LEN_MAX};
use crate::lowpan::datagram::Record;
use crate::mac::{FrameSlot, Neighbor};

/// The memory of a [`Mesh`](super::Mesh), borrowed for good.
#[derive(Debug)]
pub struct MeshMemory<'m> {
    /// Frames that wait for the air (255 at most).
    pub frames: &'m mut [FrameSlot],
    /// Entries for neighbours; with none, repeated frames are not recognised.
    pub neighbors: &'m mut [Neighbor],
    /// Packets that arrive in fragments, or are passed on so (255 at most).
    pub records: &'m mut [Record],
    /// Packets being gathered, [`Self::body_len`] bytes each.
    pub bodies: &'m mut [u8],
    /// The longest packet that is gathered, bytes: [`IPV6_MTU_MIN`], or where RPL puts a tunnel and
    /// a source route on top of it, [`MESH_PACKET_LEN_MAX`].
    pub body_len: usize,
    /// The packet being cut into fragments: [`IPV6_MTU_MIN`] bytes, at the root of a DODAG
    /// [`MESH_PACKET_LEN_MAX`].
    pub outgoing: &'m mut [u8],
    /// Whole packets that wait, with six bytes each.
    pub queue: &'m mut [u8],
    /// Neighbours that register their addresses with this node, where it is a router: with none, it
    /// takes no registrations.
    pub registrations: &'m mut [Registration],
}

/// Room for all of [`MeshMemory`] in one static. It takes no flash: all of it starts as zeros.
///
/// `FRAMES`, `NEIGHBORS`, `RECORDS`: of each list. `BODIES`: packets gathered at one time,
/// [`MESH_PACKET_LEN_MAX`] bytes each. `QUEUE`: bytes of packets that wait. `REGISTRATIONS`:
/// neighbours that register their addresses. The defaults suit a leaf.
#[derive(Debug)]
pub struct MeshStorage<
    const FRAMES: usize = 8,
    const NEIGHBORS: usize = 4,
    const RECORDS: usize = 2,
    const BODIES: usize = 1,
    const QUEUE: usize = 256,
    const REGISTRATIONS: usize = 0,
> {
    frames: [FrameSlot; FRAMES],
    neighbors: [Neighbor; NEIGHBORS],
    records: [Record; RECORDS],
    bodies: [[u8; MESH_PACKET_LEN_MAX]; BODIES],
    outgoing: [u8; IPV6_MTU_MIN],
    queue: [u8; QUEUE],
    registrations: [Registration; REGISTRATIONS],
}

impl<
    const FRAMES: usize,
    const NEIGHBORS: usize,
    const RECORDS: usize,
    const BODIES: usize,
    const QUEUE: usize,
    const REGISTRATIONS: usize,
> MeshStorage<FRAMES, NEIGHBORS, RECORDS, BODIES, QUEUE, REGISTRATIONS>
{
    /// Memory before it is lent to a link, for use in a `static`.
    pub const EMPTY: Self = Self {
        frames: [const { FrameSlot::EMPTY }; FRAMES],
        neighbors: [const { Neighbor::EMPTY }; NEIGHBORS],
        records: [const { Record::EMPTY }; RECORDS],
        bodies: [[0; MESH_PACKET_LEN_MAX]; BODIES],
        outgoing: [0; IPV6_MTU_MIN],
        queue: [0; QUEUE],
        registrations: [const { Registration::EMPTY }; REGISTRATIONS],
    };

    /// Lends the memory to one link; what an earlier one left in it is gone.
    pub fn lend(&mut self) -> MeshMemory<'_> {
        MeshMemory {
            frames: &mut self.frames,
            neighbors: &mut self.neighbors,
            records: &mut self.records,
            bodies: self.bodies.as_flattened_mut(),
            body_len: MESH_PACKET_LEN_MAX,
            outgoing: &mut self.outgoing,
            queue: &mut self.queue,
            registrations: &mut self.registrations,
        }
    }
}
