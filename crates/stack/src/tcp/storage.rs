//! Room for TCP's tables and streams in a static that lends them.

use core::mem::MaybeUninit;

use super::listener::{HalfOpen, Listener};
use super::sockets::{Memory, Slot};
use super::types::Buffers;

/// Room for all of [`Memory`], and for the buffers of each connection. A static of this type takes
/// no flash: it is all zeros, and other initial values are written when it is lent.
///
/// `CONNECTIONS`, `LISTENERS`, `HALF_OPEN`: the length of each table; `BUFFER`: the bytes of each
/// send buffer and of each receive buffer.
#[derive(Debug)]
pub struct Storage<
    'm,
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const LISTENERS: usize = 1,
    const HALF_OPEN: usize = 2,
> {
    connections: MaybeUninit<[Slot<'m>; CONNECTIONS]>,
    listeners: MaybeUninit<[Listener<'m>; LISTENERS]>,
    half_open: MaybeUninit<[HalfOpen; HALF_OPEN]>,
    buffers: [[[u8; BUFFER]; 2]; CONNECTIONS],
}

impl<
    'm,
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
> Storage<'m, CONNECTIONS, BUFFER, LISTENERS, HALF_OPEN>
{
    /// Tables and buffers that are not lent yet.
    pub const EMPTY: Self = Self {
        connections: MaybeUninit::uninit(),
        listeners: MaybeUninit::uninit(),
        half_open: MaybeUninit::uninit(),
        buffers: [[[0; BUFFER]; 2]; CONNECTIONS],
    };

    /// Lends the tables to one [`Tcp`](super::Tcp), and a pair of buffers for each connection.
    pub fn lend(&'m mut self) -> (Memory<'m>, [Buffers<'m>; CONNECTIONS]) {
        let memory = Memory {
            connections: self.connections.write([const { Slot::EMPTY }; CONNECTIONS]),
            listeners: self.listeners.write([const { Listener::EMPTY }; LISTENERS]),
            half_open: self.half_open.write([const { HalfOpen::EMPTY }; HALF_OPEN]),
        };
        let buffers = self.buffers.each_mut();
        (memory, buffers.map(|[send, recv]| Buffers::new(send, recv)))
    }
}
