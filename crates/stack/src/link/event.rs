//! Reports of drivers, and orders to them.

#[cfg(feature = "ble")]
use crate::ble;
use crate::mac;

/// A report of a link's driver.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A report of the radio of a [`Mesh`](super::Mesh).
    Mesh(mac::Event<'a>),
    /// A whole IPv6 packet, from a [`Cable`](super::Cable).
    Cable(&'a [u8]),
    /// Bytes from the line of a [`Serial`](super::Serial), cut anywhere: a part of a packet, or
    /// several packets.
    Serial(&'a [u8]),
    /// A report of the controller of a [`Ble`](super::Ble).
    #[cfg(feature = "ble")]
    Ble(ble::Event<'a>),
}

impl Event<'_> {
    /// Whether the event may bring a packet, or a part of one.
    pub(crate) const fn brings_bytes(&self) -> bool {
        match self {
            Self::Mesh(event) => matches!(event, mac::Event::FrameReceived { .. }),
            Self::Cable(_) | Self::Serial(_) => true,
            #[cfg(feature = "ble")]
            Self::Ble(event) => matches!(event, ble::Event::Data { .. }),
        }
    }
}

/// An order to a link's driver; bytes are in the caller's `out[..len]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// An order to the radio of a [`Mesh`](super::Mesh).
    Mesh(mac::Action),
    /// Send this IPv6 packet down a [`Cable`](super::Cable).
    Cable {
        /// Length of the packet in `out`, bytes.
        len: usize,
    },
    /// Write these bytes to the line of a [`Serial`](super::Serial), all of them, before the next
    /// poll. A packet may take several such actions. While the line takes no more, do not poll.
    Serial {
        /// Bytes of `out` to write.
        len: usize,
    },
    /// An order to the controller of a [`Ble`](super::Ble).
    #[cfg(feature = "ble")]
    Ble(ble::Action),
}
