//! What a connection costs in memory, its buffers aside.

use crate::endpoint::Stack;

/// Bytes of the structures of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// The stack.
    pub stack: Stack,
    /// A connection, on this machine.
    pub active_bytes: usize,
    /// A passive socket, on this machine; smoltcp listens with a whole connection.
    pub passive_bytes: usize,
}

/// What each stack's structures take here.
pub fn measure() -> [Memory; 4] {
    Stack::ALL.map(|stack| {
        let (active_bytes, passive_bytes) = match stack {
            Stack::Motet => (
                size_of::<motet::tcp::Connection<'_>>(),
                size_of::<motet::tcp::Listener<'_>>(),
            ),
            Stack::Tcplp => motet_tcplp::socket_sizes(),
            Stack::Lwip => motet_lwip::socket_sizes(),
            Stack::Smoltcp => {
                let socket = size_of::<smoltcp::socket::tcp::Socket<'_>>();
                (socket, socket)
            }
        };
        Memory {
            stack,
            active_bytes,
            passive_bytes,
        }
    })
}
