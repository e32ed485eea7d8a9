//! The memory that a node lends to its connections.

use motet::tcp::{Buffers, recv_memory_len};

use crate::Arena;

/// Buffers for a node's connections, all of one size.
#[derive(Debug)]
pub(super) struct Lender<'m> {
    arena: &'m Arena,
    /// Bytes that a connection may hold unread.
    pub(super) window: u16,
    /// Bytes that it may hold unacknowledged.
    pub(super) send_len: usize,
    /// What a full table refused.
    spare: Option<Buffers<'m>>,
}

impl<'m> Lender<'m> {
    pub(super) const fn new(arena: &'m Arena, window: u16, send_len: usize) -> Self {
        Self {
            arena,
            window,
            send_len,
            spare: None,
        }
    }

    /// Buffers for one connection.
    pub(super) fn lend(&mut self) -> Buffers<'m> {
        let arena = self.arena;
        let fill = |len| &mut *arena.alloc_slice_fill_copy(len, 0);
        let fresh = || Buffers::new(fill(self.send_len), fill(recv_memory_len(self.window)));
        self.spare.take().unwrap_or_else(fresh)
    }

    /// Takes back what was refused, for the next one.
    pub(super) fn take_back(&mut self, buffers: Buffers<'m>) {
        self.spare = Some(buffers);
    }
}
