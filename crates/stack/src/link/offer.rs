//! A description of a connection's segments, for which a link computes the sizes that its path
//! offers to TCP.

use crate::ip::Neighbour;
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
    /// Frames of a full one on a mesh; 0: as many as the link says.
    pub(crate) frames: u8,
}

/// Whether any link can compress TCP headers: in a build without the feature `tcphc`, code that
/// computes their compressed length is left out.
pub(crate) const SHRINKS_HEADERS: bool = tcphc::IS_SUPPORTED;

/// Both headers of a segment, without options.
pub(super) const HEADERS_LEN: usize = ipv6::HEADER_LEN + tcp::HEADER_LEN;
