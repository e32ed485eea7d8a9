//! What drivers report, and what they shall do.

use crate::mac;

/// What a link's driver reports.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// From the radio of a [`Mesh`](super::Mesh).
    Mesh(mac::Event<'a>),
    /// A whole IPv6 packet, from a [`Cable`](super::Cable).
    Cable(&'a [u8]),
}

/// What a link's driver shall do; bytes are in the caller's `out[..len]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// For the radio of a [`Mesh`](super::Mesh).
    Mesh(mac::Action),
    /// Send this IPv6 packet down a [`Cable`](super::Cable).
    Cable {
        /// Bytes of `out`.
        len: usize,
    },
}
