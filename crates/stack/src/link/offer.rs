//! What the path over a link offers to TCP.
//!
//! Place: the node asks before TCP announces an MSS, and makes a
//! [`tcp::Offer`](crate::tcp::Offer) of the answers.

use super::{Link, Serial};
use crate::ip::Neighbour;
use crate::time::Instant;
use crate::wire::ipv6::{self, Header};
use crate::wire::{tcp, tcphc};

/// The segments that a connection sends over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segments {
    /// Their IPv6 header; its length does not count.
    pub(crate) header: Header,
    /// The neighbour that their route leads to.
    pub(crate) to: Neighbour,
    /// Whether their TCP headers have time stamps.
    pub(crate) timestamps: bool,
}

impl Link<'_> {
    /// How long segments may be that this node sends, and those that the peer should send: payload
    /// and TCP options, bytes; 0: none has room.
    ///
    /// `is_carried`: whether headers are compressed. Own segments then count on what headers of
    /// bulk data shrink by, for [`Budget`](super::mesh::Budget) cuts the others; the peer's on what
    /// is sure, for it may be a host that knows nothing of it.
    pub(crate) fn mss(&self, segments: &Segments, is_carried: bool) -> [u16; 2] {
        let bytes = match self {
            Self::Mesh(mesh) => mesh.mss(segments, is_carried),
            Self::Cable(cable) | Self::Serial(Serial { cable, .. }) => {
                [usize::from(cable.mtu()) - HEADERS_LEN; 2]
            }
            Self::Ble(ble) => [ble.mss(segments); 2],
        };
        bytes.map(|bytes| bytes.min(usize::from(u16::MAX)) as u16)
    }

    /// Whether the headers of a connection are compressed here. `ports`: its local and its remote
    /// one, where the peer chose both.
    pub(crate) fn is_carried(
        &self,
        segments: &Segments,
        ports: Option<(u16, u16)>,
        now: Instant,
    ) -> bool {
        match self {
            Self::Mesh(mesh) => mesh.is_carried(segments, ports, now),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => false,
        }
    }

    /// The most bytes that a connection may have in flight.
    pub(crate) fn flight_max(&self) -> u16 {
        match self {
            Self::Mesh(mesh) => mesh.flight_max(),
            Self::Cable(_) | Self::Serial(_) | Self::Ble(_) => u16::MAX,
        }
    }

    /// A number that no other node has, where the link knows one: its EUI-64.
    pub(crate) const fn unique(&self) -> Option<u64> {
        match self {
            Self::Mesh(mesh) => Some(u64::from_be_bytes(mesh.mac().config().extended)),
            Self::Ble(ble) => Some(ble.unique()),
            Self::Cable(_) | Self::Serial(_) => None,
        }
    }
}

/// Whether any link can leave out parts of TCP headers: a build without the feature `tcphc` drops
/// what asks how long they become.
pub(crate) const SHRINKS_HEADERS: bool = tcphc::IS_SUPPORTED;

/// Both headers of a segment, without options.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + tcp::HEADER_LEN;
