//! Copies of a TCP segment: finds a waiting packet of which a newer one is a retransmission.
//!
//! Purpose: a SYN for a child that polls once a minute is retransmitted six times before the child
//! polls, and each copy would cost the child a frame and an answer. So only one copy is kept, the
//! newest, which has the newest timestamp, acknowledgment and window. Where later segments of the
//! connection wait behind the older copy, `share` keeps that one: they have its timestamp or
//! little more, and behind a newer one the child would drop them as old (PAWS, RFC 7323 §5.3).
//! Place: `share` calls this before it keeps a packet for a child. Left out: segments without
//! sequence space (each duplicate ACK counts: RFC 5681 §2), and compressed headers, which cannot
//! be read here. Encryption above TCP does no harm: payload bytes are compared, and those of a
//! retransmission are the same. Link encryption is applied later, by the MAC.
//!
//! Sources: RFC 9293 §3.4 and §3.8.1.

use crate::wire::ipv6::{Ecn, Extensions, Header as Ipv6Header, next_header};
use crate::wire::tcp::{self, Flags, Header as TcpHeader};

/// The first of `older` packets of which `newer` is a copy, counted from 0: the same segment sent
/// again, of the same flow, with the same sequence numbers, control bits and payload; and whether a
/// further segment of the flow is among those behind it. Each older packet comes with whether it
/// may be the one.
///
/// Acknowledgment, window and options may differ, and so may the hop limit, the flow label (Linux
/// chooses another one after a timeout) and the ECN bits (RFC 3168 §6.1.5: a retransmission is not
/// ECN-capable; a repeated SYN may not request ECN). An older packet with a congestion mark (CE) is
/// replaced only by one that has it, too, so that the mark is delivered.
///
/// All are whole IPv6 packets with uncompressed TCP headers. A newer one whose checksum is wrong is
/// no copy: a damaged packet never takes the place of a good one.
pub(super) fn copied<'a>(
    newer: &[u8],
    older: impl Iterator<Item = (bool, &'a [u8])>,
) -> Option<(usize, bool)> {
    let newer = Segment::of(newer).filter(Segment::takes_numbers)?;
    let (mut found, mut goes_on) = (None, false);
    for (nth, (may_be_it, packet)) in older.enumerate() {
        let Some(older) = Segment::of(packet).filter(|older| newer.is_of_flow(older)) else {
            continue;
        };
        match found {
            Some(_) => goes_on = true,
            None if may_be_it && newer.is_copy_of(&older) => found = Some(nth),
            None => {}
        }
    }
    let (src, dst) = (&newer.ip.src, &newer.ip.dst);
    let nth = found.filter(|_| tcp::is_checksum_valid(src, dst, newer.bytes))?;
    Some((nth, goes_on))
}

/// A packet that holds a TCP segment.
struct Segment<'a> {
    ip: Ipv6Header,
    /// All extension headers of the packet.
    extensions: &'a [u8],
    tcp: TcpHeader,
    payload: &'a [u8],
    /// The segment, header and payload.
    bytes: &'a [u8],
}

impl<'a> Segment<'a> {
    /// The segment in `packet`; `None` where it holds none, or only a part of one.
    fn of(packet: &'a [u8]) -> Option<Self> {
        let (ip, behind) = Ipv6Header::parse(packet).ok()?;
        let mut walk = Extensions::new(ip.next_header, behind);
        while let Some(extension) = walk.next().ok()? {
            if extension.kind == next_header::FRAGMENT {
                return None;
            }
        }
        let bytes = walk.rest();
        let (extensions, _) = behind.split_at_checked(behind.len().checked_sub(bytes.len())?)?;
        if walk.next_header() != tcp::NEXT_HEADER {
            return None;
        }
        let (tcp, payload) = TcpHeader::parse(bytes).ok()?;
        Some(Self {
            ip,
            extensions,
            tcp,
            payload,
            bytes,
        })
    }

    /// Whether the segment takes any sequence number.
    fn takes_numbers(&self) -> bool {
        let flags = self.tcp.flags;
        !self.payload.is_empty() || flags.contains(Flags::SYN) || flags.contains(Flags::FIN)
    }

    /// The control bits that a copy must have, too. A SYN without an answer is retransmitted
    /// without the bits of ECN, and a host that has sent one such SYN does not use ECN (RFC 3168
    /// §6.1.1): the earlier SYN is then obsolete.
    fn control_bits(&self) -> Flags {
        let flags = self.tcp.flags;
        match flags.contains(Flags::SYN) {
            true => flags.without(Flags::ECE).without(Flags::CWR),
            false => flags,
        }
    }

    /// Whether the other one is of the same direction of the same connection.
    fn is_of_flow(&self, other: &Self) -> bool {
        self.ip.src == other.ip.src
            && self.ip.dst == other.ip.dst
            && self.tcp.src_port == other.tcp.src_port
            && self.tcp.dst_port == other.tcp.dst_port
    }

    /// Whether this is an older segment of its flow sent again.
    fn is_copy_of(&self, older: &Self) -> bool {
        let ecn = |segment: &Self| segment.ip.traffic_class.ecn();
        let says_less = ecn(older) == Ecn::Ce && ecn(self) != Ecn::Ce;
        !says_less
            && self.extensions == older.extensions
            && (self.tcp.seq, self.control_bits()) == (older.tcp.seq, older.control_bits())
            && self.tcp.urgent == older.tcp.urgent
            && self.payload == older.payload
    }
}

#[cfg(test)]
#[path = "tests/copies.rs"]
pub(super) mod tests;
