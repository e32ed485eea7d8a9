//! The longest segment that fits a given number of frames.
//!
//! Place: the node computes it before TCP announces an MSS, and for each segment of new data, since
//! the length of a compressed header depends on its fields and on the state of the peer's context.
//! Left out: retransmissions, which may take one frame more; splitting them would cost one segment
//! more.

use crate::ip::{self, Neighbour};
use crate::lowpan::{Contexts, LinkPair, compressed_header_len, fragment};
use crate::mac::Mac;
use crate::tcphc::Tcphc;
use crate::time::Instant;
use crate::wire::ipv6::{self, Ecn, Header};
use crate::wire::{LinkAddr, tcphc};

#[cfg(feature = "sleepy")]
use super::Indirect;
use super::config::MeshSettings;
use super::tcp_headers::flow;
use super::{Mesh, link_addr};

/// The bounds that a mesh link sets on the length of a segment.
#[derive(Clone, Copy)]
pub(crate) struct Budget<'a, 'm> {
    mac: &'a Mac<'m>,
    contexts: &'a Contexts,
    /// `None` in a build without it too.
    pub(super) tcphc: Option<&'a Tcphc<'m>>,
    mss_frames: u8,
    pub(super) overhead: Overhead,
    #[cfg(feature = "sleepy")]
    indirect: Option<&'a Indirect<'m>>,
}

/// The bytes that routing adds to the first fragment of a segment.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Overhead {
    /// Bytes added to segments that this node sends.
    pub(super) up: Added,
    /// Bytes added to segments that come to this node.
    pub(super) down: Added,
}

/// Bytes in the frame of a first fragment, and how many of these fragment headers number.
pub(super) type Added = (u8, u8);

impl<'a, 'm> Budget<'a, 'm> {
    pub(super) fn of(mesh: &'a Mesh<'m>) -> Self {
        Self {
            #[cfg(feature = "sleepy")]
            indirect: mesh.indirect.as_deref(),
            ..Self::new(
                &mesh.mac,
                &mesh.discovery.contexts,
                mesh.tcphc.as_deref(),
                (&mesh.settings, mesh.routing.overhead),
            )
        }
    }

    /// As [`Self::of`], beside the buffer that the next packet is written to.
    pub(super) fn lend(mesh: &'a mut Mesh<'m>) -> (Self, &'a mut [u8]) {
        let budget = Self {
            #[cfg(feature = "sleepy")]
            indirect: mesh.indirect.as_deref(),
            ..Self::new(
                &mesh.mac,
                &mesh.discovery.contexts,
                mesh.tcphc.as_deref(),
                (&mesh.settings, mesh.routing.overhead),
            )
        };
        (budget, mesh.outgoing.buffer())
    }

    fn new(
        mac: &'a Mac<'m>,
        contexts: &'a Contexts,
        tcphc: Option<&'a Tcphc<'m>>,
        (settings, overhead): (&MeshSettings, Overhead),
    ) -> Self {
        Self {
            mac,
            contexts,
            tcphc: tcphc.filter(|_| tcphc::IS_SUPPORTED),
            mss_frames: settings.mss_frames,
            overhead,
            #[cfg(feature = "sleepy")]
            indirect: None,
        }
    }

    /// The same, of a connection whose full segments fill so many frames; 0: as many as the link
    /// says.
    pub(crate) const fn filling(self, frames: u8) -> Self {
        match frames {
            0 => self,
            mss_frames => Self { mss_frames, ..self },
        }
    }

    /// Whether a segment to this neighbour would be kept: one for a child that sleeps may have to
    /// wait until others have gone.
    #[cfg(feature = "sleepy")]
    pub(crate) fn takes(&self, to: Neighbour) -> bool {
        self.indirect.is_none_or(|indirect| indirect.has_room(to))
    }

    /// Whether a segment to this neighbour would be kept.
    #[cfg(not(feature = "sleepy"))]
    #[expect(clippy::unused_self, reason = "that a child has room is asked of it")]
    pub(crate) const fn takes(&self, _: Neighbour) -> bool {
        true
    }

    /// The most TCP payload in a packet with this IPv6 header. `tcp_len`: the length of the TCP
    /// header, compressed and uncompressed. `routing`, `numbered`: the length that routing headers
    /// add, on the air and in fragment offsets.
    pub(super) fn payload(
        &self,
        header: &Header,
        to: Neighbour,
        tcp_len: (usize, usize),
        (routing, numbered): Added,
    ) -> usize {
        let Some(neighbour) = link_addr(to) else {
            return 0;
        };
        let link = LinkPair {
            src: self.mac.source(),
            dst: neighbour,
        };
        let frames = match self.mss_frames {
            0 => usize::from(u8::MAX),
            frames => usize::from(frames),
        };
        let len = compressed_header_len(header, link, self.contexts);
        fragment::payload_for_frames(
            frames,
            self.mac.payload_len_max(neighbour),
            len + usize::from(routing) + tcp_len.0,
            ipv6::HEADER_LEN + usize::from(numbered) + tcp_len.1,
            growth(header, link, self.contexts, len),
        )
    }

    /// The most new data behind the TCP header `tcp`, at least a byte; what TCP likes where
    /// nothing is compressed, for then it keeps to the MSS, and where so few data as `len`
    /// bytes have room behind any header.
    pub(crate) fn payload_behind(
        &self,
        header: &Header,
        (tcp, len): (&[u8], u16),
        to: Neighbour,
        now: Instant,
    ) -> u16 {
        let Some(tcphc) = self.tcphc else {
            return u16::MAX;
        };
        let longest = tcp.len() + tcphc::FULL_OVERHEAD;
        if self.payload(header, to, (longest, tcp.len()), self.overhead.up) >= usize::from(len) {
            return u16::MAX;
        }
        let compressed = tcphc.header_len(&flow(header.src, header.dst), tcp, now);
        let payload = self.payload(header, to, (compressed, tcp.len()), self.overhead.up);
        payload.clamp(1, usize::from(u16::MAX)) as u16
    }
}

/// The most that a first fragment grows by on its way beyond the next hop, bytes: identifiers that
/// derive from this hop's frame must then be written out, the hop limit counts down, and a relay
/// may mark congestion. `len`: [`compressed_header_len`] for this hop.
pub(super) fn growth(header: &Header, link: LinkPair, contexts: &Contexts, len: usize) -> usize {
    let ends_there = ip::has_iid(&header.dst, &link.dst.iid());
    if ends_there || link.dst.is_broadcast() {
        return 0;
    }
    let nobody = LinkPair {
        src: LinkAddr::BROADCAST,
        dst: LinkAddr::BROADCAST,
    };
    let later = Header {
        hop_limit: header.hop_limit.saturating_sub(1),
        traffic_class: header.traffic_class.with_ecn(Ecn::Ce),
        ..*header
    };
    compressed_header_len(&later, nobody, contexts).saturating_sub(len)
}
