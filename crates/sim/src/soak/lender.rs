//! The memory that a node lends to its connections.

use motet::tcp::{Buffers, Piece, RecvBuffer, SendBuffer, SliceQueue, recv_memory_len};

use super::dice::Dice;
use crate::Arena;

/// Buffers for a node's connections, all of one size and kind.
///
/// What one connection gives back, the next one gets, as it is: devices have no more.
#[derive(Debug)]
pub(super) struct Lender<'m> {
    arena: &'m Arena,
    /// Bytes that a connection may hold unread.
    pub(super) window: u16,
    /// Bytes that it may hold unacknowledged.
    send_len: usize,
    /// Whether send buffers refer to what they are given instead of copying it.
    pub(super) by_reference: bool,
    /// Buffers that came back, the latest last.
    spare: Vec<Buffers<'m>>,
}

impl<'m> Lender<'m> {
    /// `seed` of the run and `node` choose the kind of the send buffers.
    pub(super) fn new(
        arena: &'m Arena,
        window: u16,
        send_len: usize,
        (seed, node): (u64, usize),
    ) -> Self {
        Self {
            arena,
            window,
            send_len,
            by_reference: Dice::new(seed, PURPOSE | (node as u64) << 8).chance(0.5),
            spare: Vec::new(),
        }
    }

    /// Buffers for one connection: those that came back last, or new ones.
    pub(super) fn lend(&mut self) -> Buffers<'m> {
        self.spare.pop().unwrap_or_else(|| self.fresh())
    }

    /// Takes back what was refused, or served its time.
    pub(super) fn take_back(&mut self, buffers: Buffers<'m>) {
        self.spare.push(buffers);
    }

    /// Bytes that a send buffer holds at most.
    pub(super) fn send_max(&self) -> usize {
        let referred = if self.by_reference {
            PIECES * CHUNK_MAX
        } else {
            0
        };
        self.send_len + referred
    }

    fn fresh(&self) -> Buffers<'m> {
        let arena = self.arena;
        let fill = |len| &mut *arena.alloc_slice_fill_copy(len, 0);
        let copies = fill(self.send_len);
        let send = if self.by_reference {
            let pieces = arena.alloc_slice_fill_copy(PIECES, Piece::EMPTY);
            SendBuffer::slices(arena.alloc(SliceQueue::new(pieces, copies)))
        } else {
            SendBuffer::ring(copies)
        };
        let recv = RecvBuffer::new(fill(recv_memory_len(self.window)));
        Buffers { send, recv }
    }
}

/// The most that an application hands over or reads at once, bytes.
pub(super) const CHUNK_MAX: usize = 2_048;

/// Places of a send buffer that refers to what it is given.
const PIECES: usize = 6;

/// Keeps these dice apart from those of a run's level.
const PURPOSE: u64 = 3;
