//! 6LoWPAN: IPv6 packets in and out of small frames.
//!
//! Purpose: header compression (RFC 6282) with shared contexts, and fragmentation.
//! Place: between `ip` and `mac`; [`wire`](crate::wire) holds the bare formats.
//! Left out: where contexts come from and when they expire (`node`, from router advertisements).

mod compress;
mod contexts;
pub mod datagram;
mod decompress;
pub mod fragment;
mod restored;
#[cfg(all(feature = "rpl", feature = "plain-rpl"))]
mod routing;
#[cfg(not(feature = "rpl"))]
#[path = "routing_absent.rs"]
mod routing;
#[cfg(all(feature = "rpl", any(test, not(feature = "plain-rpl"))))]
mod routing_compressed;
#[cfg(feature = "rpl")]
mod routing_headers;
mod tcp_form;

use core::net::Ipv6Addr;

use crate::wire::rpl_option::Rpi;
use crate::wire::{LinkAddr, ipv6};

#[cfg(feature = "mesh")]
pub(crate) use compress::compressed_header_len;
pub use compress::{CompressError, Compressed, compress, compress_form};
#[cfg(feature = "rpl")]
pub use contexts::Routing;
pub use contexts::{Context, Contexts};
pub use decompress::{Decompressed, complete_udp_checksum, decompress};
pub use restored::DecompressError;
pub use routing::Unnumbered;
use routing::{numbered, unabridged};
#[cfg(all(feature = "rpl", not(feature = "plain-rpl")))]
use routing_compressed as routing;
pub use tcp_form::TcpForm;

/// The two ends of the hop that a frame takes: interface identifiers derive from them.
///
/// In this stack they are of the frame itself, since it routes by IP. Behind a mesh header (RFC
/// 4944 §5.2) they are the originator and the final address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkPair {
    /// The node that transmits the frame.
    pub src: LinkAddr,
    /// The node that receives the frame.
    pub dst: LinkAddr,
}

/// Headers of a packet that its bytes in memory do not hold, or hold in another form than a packet
/// on the Internet does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeaderForms {
    /// The form of the packet's TCP header.
    pub tcp: TcpForm,
    /// RPL packet information (RFC 6553). It is kept here, not in the packet, unless other
    /// hop-by-hop options stand beside it.
    pub rpi: Option<Rpi>,
}

impl From<TcpForm> for HeaderForms {
    fn from(tcp: TcpForm) -> Self {
        Self { tcp, rpi: None }
    }
}

/// A first fragment decompressed: the beginning of its packet.
#[derive(Clone, Copy, Debug)]
pub struct First<'p> {
    /// The beginning of the packet, headers and all.
    pub bytes: &'p [u8],
    /// The headers that `bytes` hold in another form, or not at all.
    pub forms: HeaderForms,
    /// How many bytes fragment headers do not number; see [`Decompressed::unnumbered`].
    pub unnumbered: Unnumbered,
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

/// A packet whose routing headers have been written, as far as these stand ahead of its compressed
/// IPv6 header.
struct PartlyCompressed<'p> {
    /// The IPv6 header that comes next, not compressed yet.
    header: ipv6::Header,
    /// The packet's bytes behind that header.
    rest: &'p [u8],
    /// The addresses from which the packet's own may be elided.
    encapsulation: Encapsulation,
    /// The RPL option that comes next, all that its hop-by-hop header holds.
    #[cfg(all(feature = "rpl", feature = "plain-rpl"))]
    option: Option<[u8; 6]>,
    /// How many bytes fragment headers do not number; see [`Decompressed::unnumbered`].
    unnumbered: Unnumbered,
}

/// The most headers after the first one that are compressed or restored in one packet. Bounds the
/// work that one frame can cause.
const NEXT_HEADERS_MAX: usize = 8;

#[cfg(all(test, feature = "rpl"))]
#[path = "tests/routing.rs"]
mod routing_tests;
#[cfg(test)]
#[path = "tests/compression.rs"]
mod tests;
