//! The fields of a packet that TCPlE reads: its connection, numbers and length.

use core::net::Ipv6Addr;

use crate::wire::ipv6::Header;
use crate::wire::tcp::{self, Flags, NEXT_HEADER};

/// A TCP segment in its packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(super) flow: Flow,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Length of the TCP payload, bytes.
    pub(super) len: u16,
    /// Whether the segment's flags are ACK, and neither SYN, FIN nor RST.
    pub(super) is_plain: bool,
}

/// A connection in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flow {
    from: (Ipv6Addr, u16),
    to: (Ipv6Addr, u16),
}

impl Flow {
    /// The connection in the other direction.
    pub(super) const fn back(&self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }
}

impl Segment {
    /// The TCP segment in a packet; `None`: another protocol, or extension headers.
    pub(crate) fn of(packet: &[u8]) -> Option<Self> {
        let (header, payload) = Header::parse(packet).ok()?;
        if header.next_header != NEXT_HEADER {
            return None;
        }
        let (tcp, data) = tcp::Header::parse(payload).ok()?;
        let others = Flags::SYN | Flags::FIN | Flags::RST;
        let is_plain = tcp.flags.contains(Flags::ACK) && tcp.flags.bits() & others.bits() == 0;
        Some(Self {
            flow: Flow {
                from: (header.src, tcp.src_port),
                to: (header.dst, tcp.dst_port),
            },
            seq: tcp.seq,
            ack: tcp.ack,
            len: data.len() as u16,
            is_plain,
        })
    }

    /// Whether the segment carries data.
    pub(crate) const fn has_data(&self) -> bool {
        self.len > 0
    }

    /// Whether the segment's flags are ACK, and neither SYN, FIN nor RST.
    pub(crate) const fn acknowledges(&self) -> bool {
        self.is_plain
    }
}
