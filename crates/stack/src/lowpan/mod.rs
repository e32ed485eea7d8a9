//! 6LoWPAN: IPv6 packets in and out of small frames.
//!
//! Purpose: header compression (RFC 6282) with shared contexts, and fragmentation.
//! Place: between `ip` and `mac`; [`wire`](crate::wire) holds the bare formats.
//! Left out: where contexts come from and when they expire (`node`, from router
//! advertisements).

mod compress;
mod contexts;
pub mod datagram;
mod decompress;
pub mod fragment;
mod tcp_form;

use core::net::Ipv6Addr;

use crate::wire::LinkAddr;

pub use compress::{CompressError, Compressed, compress};
pub(crate) use compress::{compress_form, compressed_header_len};
pub use contexts::{Context, Contexts};
pub use decompress::{DecompressError, Decompressed, complete_udp_checksum, decompress};
pub use tcp_form::TcpForm;

/// The two ends of the hop that a frame takes: interface identifiers derive from them.
///
/// Addresses of the frame itself, not of a mesh header, for this stack routes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkPair {
    /// The node that transmits the frame.
    pub src: LinkAddr,
    /// The node that receives the frame.
    pub dst: LinkAddr,
}

/// Interface identifiers of the encapsulating header: link layer, or outer IPv6
/// (RFC 6282 §3.2.2).
#[derive(Clone, Copy, Debug)]
struct Encapsulation {
    src: [u8; 8],
    dst: [u8; 8],
}

impl Encapsulation {
    const fn link(link: LinkPair) -> Self {
        Self {
            src: link.src.iid(),
            dst: link.dst.iid(),
        }
    }

    fn ipv6((src, dst): (Ipv6Addr, Ipv6Addr)) -> Self {
        let [src, dst] = [src, dst].map(contexts::low_64);
        Self { src, dst }
    }
}

/// Headers compressed or restored in one packet, behind the first one. Bounds the work that
/// one frame can ask for.
const NEXT_HEADERS_MAX: usize = 8;

#[cfg(test)]
#[path = "tests/compression.rs"]
mod tests;
