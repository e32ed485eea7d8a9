//! The part of a packet that the router reads: a TCP segment of a flow, or the addresses alone.
//!
//! Purpose: reads the flow, the sequence numbers and the lengths of a TCP segment. Of all other
//! packets (other protocols, fragments, truncated or malformed headers) only the addresses are
//! read, and whether they are link-local. Checksums are not verified: a segment with a wrong one
//! only falsifies an estimate.

use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

use motet::wire::icmpv6;
use motet::wire::ipv6::{self, Extensions, next_header};
use motet::wire::tcp::{self, Flags};

/// Which way a packet passes the border router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the mesh to the outside.
    Up,
    /// From outside into the mesh.
    Down,
}

/// A TCP connection between a mote and a peer outside the mesh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowKey {
    /// The mote's address.
    pub mote: Ipv6Addr,
    /// The mote's port.
    pub mote_port: u16,
    /// The peer's address.
    pub peer: Ipv6Addr,
    /// The peer's port.
    pub peer_port: u16,
}

/// A host outside the mesh and a mote, one of which speaks to the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Pair {
    pub(crate) peer: Ipv6Addr,
    pub(crate) mote: Ipv6Addr,
}

/// A TCP segment, or several that hardware has merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) flow: FlowKey,
    pub(crate) direction: Direction,
    pub(crate) seq: u32,
    /// The acknowledgment number, where the segment has one.
    pub(crate) ack: Option<u32>,
    pub(crate) flags: Flags,
    /// Bytes of the stream that it carries.
    pub(crate) payload_len: u32,
    /// Length of the whole packet, bytes.
    pub(crate) packet_len: usize,
    /// The MSS option of the segment, if present.
    pub(crate) mss: Option<u16>,
}

/// Bytes by which a segment takes its stream further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reach {
    /// Bytes that the segment itself carries.
    pub(crate) seen: u32,
    /// Bytes in front of the segment that no segment has carried.
    pub(crate) holes: u32,
}

impl Direction {
    /// The opposite direction.
    pub(crate) const fn back(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

impl Pair {
    /// The pair of addresses of a packet; `None` if its IPv6 header cannot be read.
    pub(crate) fn read(direction: Direction, headers: &[u8]) -> Option<Self> {
        let (header, _) = ipv6::Header::parse_start(headers).ok()?;
        let (peer, mote) = match direction {
            Direction::Down => (header.src, header.dst),
            Direction::Up => (header.dst, header.src),
        };
        Some(Self { peer, mote })
    }
}

/// Whether a packet is for a link alone, and never passes a router: its addresses say so, or it is
/// neighbour discovery, which no router can have forwarded (RFC 4861 §3.1).
pub(crate) fn is_of_link(headers: &[u8]) -> bool {
    let Ok((header, rest)) = ipv6::Header::parse_start(headers) else {
        return false;
    };
    let (src, dst) = (header.src, header.dst);
    let is_of_link_group = dst.is_multicast() && dst.octets()[1] & SCOPE <= SCOPE_OF_LINK;
    let is_discovery = || {
        header.hop_limit == HOP_LIMIT_UNFORWARDED
            && header.next_header == icmpv6::NEXT_HEADER
            && rest.first().is_some_and(|kind| DISCOVERY.contains(kind))
    };
    let is_local = src.is_unicast_link_local() || dst.is_unicast_link_local();
    is_local || is_of_link_group || src.is_unspecified() || is_discovery()
}

/// The scope of a multicast address, and the widest one that no router passes on (RFC 4291 §2.7).
const SCOPE: u8 = 0x0f;
const SCOPE_OF_LINK: u8 = 2;

/// No packet has it that a router has forwarded.
const HOP_LIMIT_UNFORWARDED: u8 = 255;

/// Types of ICMPv6's messages of neighbour discovery: solicitations, advertisements, redirects.
const DISCOVERY: RangeInclusive<u8> = 133..=137;

impl Segment {
    /// Reads the first bytes of a packet of `packet_len` bytes; none where it is no TCP segment,
    /// or its headers are not all there.
    pub(crate) fn read(direction: Direction, headers: &[u8], packet_len: usize) -> Option<Self> {
        let (header, rest) = ipv6::Header::parse_start(headers).ok()?;
        let mut extensions = Extensions::new(header.next_header, rest);
        while let Some(extension) = extensions.next().ok()? {
            if extension.kind == next_header::FRAGMENT {
                return None;
            }
        }
        if extensions.next_header() != tcp::NEXT_HEADER {
            return None;
        }
        let (segment, payload) = tcp::Header::parse(extensions.rest()).ok()?;
        let headers_len = headers.len() - payload.len();
        let payload_len = packet_len.checked_sub(headers_len)?;
        let (src, dst) = (
            (header.src, segment.src_port),
            (header.dst, segment.dst_port),
        );
        let (mote, peer) = match direction {
            Direction::Up => (src, dst),
            Direction::Down => (dst, src),
        };
        Some(Self {
            flow: FlowKey {
                mote: mote.0,
                mote_port: mote.1,
                peer: peer.0,
                peer_port: peer.1,
            },
            direction,
            seq: segment.seq,
            ack: segment.flags.contains(Flags::ACK).then_some(segment.ack),
            flags: segment.flags,
            payload_len: u32::try_from(payload_len).ok()?,
            packet_len,
            mss: segment.options.mss,
        })
    }

    /// Behind the last number that it takes of the stream, its SYN and FIN included.
    pub(crate) fn end(&self) -> u32 {
        let control = |flag| u32::from(self.flags.contains(flag));
        self.seq
            .wrapping_add(self.payload_len)
            .wrapping_add(control(Flags::SYN) + control(Flags::FIN))
    }

    /// The bytes of a step of `further` numbers that ends where this segment ends. The number of a
    /// FIN is no byte.
    pub(crate) fn new_bytes(&self, further: u32) -> Reach {
        let bytes = further.saturating_sub(u32::from(self.flags.contains(Flags::FIN)));
        let seen = bytes.min(self.payload_len);
        Reach {
            seen,
            holes: bytes - seen,
        }
    }

    /// Whether the segment is part of a handshake or ends a connection at once.
    pub(crate) fn is_control(&self) -> bool {
        self.flags.intersects(Flags::SYN | Flags::RST)
    }
}
