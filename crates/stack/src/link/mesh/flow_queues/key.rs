//! The key of a flow: addresses and ports, read from the beginning of a packet.

use core::net::Ipv6Addr;

use crate::wire::cursor::copy;
use crate::wire::ipv6::{HEADER_LEN, Header};
use crate::wire::tcp;

/// A flow of TCP into the mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) pair: Pair,
    pub(super) ports: u32,
}

/// Source outside, destination in the mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pair {
    pub(super) src: Ipv6Addr,
    pub(super) dst: Ipv6Addr,
}

impl Key {
    /// The flow of a packet that goes into the mesh, where it is TCP's, and its pair of addresses.
    pub(super) fn read(start: &[u8]) -> Option<(Pair, Option<Self>)> {
        let (header, rest) = Header::parse_start(start).ok()?;
        let pair = Pair {
            src: header.src,
            dst: header.dst,
        };
        let is_tcp = header.next_header == tcp::NEXT_HEADER;
        let ports = rest.first_chunk().filter(|_| is_tcp);
        let key = ports.map(|ports| Self {
            pair,
            ports: u32::from_be_bytes(*ports),
        });
        Some((pair, key))
    }
}

impl Pair {
    /// A hash that differs between flows, as a rule.
    pub(super) fn hash(&self) -> u32 {
        let octets = [self.src, self.dst].map(|addr| addr.octets());
        hash(octets.as_flattened())
    }
}

/// The queue that a source is given where others are taken.
pub(super) fn home(source: &Ipv6Addr, is_tcp: bool) -> u8 {
    let own = (hash(&source.octets()) % EACH as u32) as u8;
    own.saturating_add(first_of(is_tcp))
}

/// FNV-1a. No secret enters it: a host that makes up sources fills every queue anyway.
fn hash(octets: &[u8]) -> u32 {
    let hash = octets.iter().fold(0x811c_9dc5_u32, |hash, octet| {
        (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193)
    });
    hash ^ hash >> 16
}

/// The first bytes of a packet in two pieces, as many as tell its flow.
pub(super) fn beginning<'b>([head, tail]: [&[u8]; 2], out: &'b mut [u8; START_LEN]) -> &'b [u8] {
    let len = copy(out, head);
    let len = len + copy(out.get_mut(len..).unwrap_or_default(), tail);
    out.get(..len).unwrap_or_default()
}

/// The acknowledgment number of a segment, if it has one, from the beginning of its packet. Of an
/// RST none: a peer that refuses has no flow.
pub(super) fn ack_of(start: &[u8]) -> Option<u32> {
    let segment = start.get(HEADER_LEN..)?.first_chunk::<NUMBERS_LEN>()?;
    let [.., a, b, c, d, _, flags] = *segment;
    let flags = tcp::Flags::from_bits(flags.into());
    let counts = flags.contains(tcp::Flags::ACK) && !flags.contains(tcp::Flags::RST);
    counts.then_some(u32::from_be_bytes([a, b, c, d]))
}

/// Length of the IPv6 header and of TCP's as far as its flags: what a flow is known by, and what
/// proves it, bytes.
pub(super) const START_LEN: usize = HEADER_LEN + NUMBERS_LEN;

/// Length of TCP's header as far as its flags, bytes (RFC 9293 §3.1).
const NUMBERS_LEN: usize = 14;

/// Whether a queue of strangers is TCP's.
pub(super) const fn is_tcps(key: u8) -> bool {
    key >= EACH as u8
}

/// The first queue of strangers of TCP, or of the others.
pub(super) const fn first_of(is_tcp: bool) -> u8 {
    if is_tcp { EACH as u8 } else { 0 }
}

/// Queues of strangers of TCP, and as many of all others.
pub(super) const EACH: usize = 4;
