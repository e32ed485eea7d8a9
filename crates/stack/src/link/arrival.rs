//! The values that pass between a link and the node above it.

use crate::ip::icmp::ErrorKind;
use crate::ip::{self, Disposition, Iid, Ingress, Neighbour};
use crate::limits::{PSDU_LEN_MAX, ROUTING_LEN_MAX};
use crate::lowpan::TcpForm;
use crate::storage::whole::Whole;
use crate::tcphc;
use crate::wire::ipv6::{HEADER_LEN, Header, next_header};

/// The outcome of an event.
#[derive(Debug)]
pub(crate) enum Arrival<'m, 's> {
    /// The node has nothing to do: a part of a packet came, a packet was forwarded in fragments, or
    /// a frame was dropped.
    Nothing,
    /// A packet that the driver holds.
    #[cfg_attr(
        not(feature = "cable"),
        expect(dead_code, reason = "only links of whole packets give it")
    )]
    Given(&'s [u8], Hop),
    /// A packet in the scratch memory.
    Packet(&'s mut [u8], Hop),
    /// A packet in the memory that it was gathered in, to be given back.
    Gathered(Whole<'m>, Hop),
    /// A packet went no further, and its source is to get an ICMPv6 error, which the node sends.
    Refuse {
        /// Which ICMPv6 error the source gets.
        kind: ErrorKind,
        /// The start of the packet, as far as the error may quote it.
        quote: &'s [u8],
    },
}

/// The hop over which a packet came, as the link knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// The hop as IP knows it: interface, neighbour, RPL option.
    pub(crate) ingress: Ingress,
    /// The treatment of the packet's TCP header on the next link.
    pub(super) egress: TcpEgress,
    /// Whether the packet follows a source route.
    pub(crate) is_routed: bool,
}

impl Hop {
    /// The part of `packet` that an ICMPv6 error may quote.
    pub(crate) fn quotable<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        match self.egress {
            TcpEgress::As(form) => quotable(packet, form),
            TcpEgress::Begins(_) => packet,
        }
    }
}

/// The part of `packet` that an ICMPv6 error may quote. It ends before a compressed TCP header,
/// which only the ends of its path can read; without that TCP has no use for the error.
pub(super) fn quotable(packet: &[u8], form: TcpForm) -> &[u8] {
    match form {
        TcpForm::Compressed => packet.get(..HEADER_LEN).unwrap_or_default(),
        TcpForm::Plain | TcpForm::Full { .. } => packet,
    }
}

/// The treatment of a packet's TCP header where the packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TcpEgress {
    /// The TCP header's compressed path begins at this node, if it has one.
    Begins(tcphc::Origin),
    /// The TCP header goes on in the form in which it came.
    As(TcpForm),
}

/// A packet of this node's TCP, pulled when its link had room for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulled {
    /// Length of the packet, its IPv6 header first, bytes.
    pub(crate) len: usize,
    /// The IPv6 header of the packet.
    pub(crate) header: Header,
    /// The neighbour to which the packet's route leads.
    pub(crate) to: Neighbour,
}

/// A fact that a link has found out and the node has to know.
#[derive(Debug)]
pub(crate) enum Report<'m> {
    /// The last hop of this packet did not answer.
    Undelivered(Undelivered<'m>),
    /// The router of this link has gone, and the default route with it.
    RouterGone,
    /// A frame to one neighbour was acknowledged, or given up.
    #[cfg(feature = "rpl")]
    Sent(Sent),
}

/// The outcome of a frame to one neighbour.
#[cfg(feature = "rpl")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sent {
    pub(crate) to: Iid,
    /// Attempts in which the frame went out; 0: the channel was never clear, or the frame grew too
    /// old.
    pub(crate) attempts: u8,
    /// Attempts in which it did not.
    pub(crate) unsent: u8,
    /// `None`: the radio does not know, or no ACK was asked for.
    pub(crate) acknowledged: Option<bool>,
    /// The frame was given up, and with it a packet that another node fragmented. This node has no
    /// copy to quote in an ICMPv6 error.
    pub(crate) is_step_lost: bool,
}

/// A packet that was given up.
#[derive(Debug)]
pub(crate) struct Undelivered<'m> {
    /// The link's memory, the packet first.
    pub(super) buffer: &'m mut [u8],
    pub(super) last_hop: Iid,
    pub(super) form: TcpForm,
    /// What its TCP header began with, where that is compressed: ports and sequence number.
    pub(super) head: [u8; 8],
    /// Whether the neighbour took none of the frames before either.
    #[cfg(feature = "rpl")]
    pub(super) is_step_lost: bool,
}

impl Undelivered<'_> {
    /// The header of a packet of this node, and what follows it; of a compressed TCP header what it
    /// began with.
    pub(crate) fn parts(&self) -> Option<(Header, &[u8])> {
        let (header, _) = Header::parse(self.buffer).ok()?;
        let segment = match self.form {
            TcpForm::Compressed => &self.head,
            form => quotable(self.buffer, form).get(HEADER_LEN..)?,
        };
        Some((header, segment))
    }

    /// The parts of an ICMPv6 error about the packet: its header, the bytes that may be quoted, and
    /// the kind of error. `None` while the packet's next copy may take another neighbour, namely
    /// where the one that did not answer was no last hop. A source route leaves no choice: a step
    /// of it counts as lost once several frames in a row were not acknowledged.
    pub(crate) fn refused(&self) -> Option<(Header, &[u8], ErrorKind)> {
        let (header, payload) = Header::parse(self.buffer).ok()?;
        let packet = self.buffer.get(..HEADER_LEN + payload.len())?;
        let is_last = ip::has_iid(&header.dst, &self.last_hop);
        let is_routed = cfg!(feature = "rpl") && header.next_header == next_header::ROUTING;
        let kind = match is_routed {
            true => ErrorKind::SourceRoute,
            false => ErrorKind::AddressUnreachable,
        };
        #[cfg(feature = "rpl")]
        let is_last = is_last && (!is_routed || self.is_step_lost);
        is_last.then(|| (header, quotable(packet, self.form), kind))
    }
}

/// Why a link did not queue a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// The link carries packets of up to `mtu` bytes.
    TooBig {
        /// The longest packet of the link, bytes.
        mtu: u32,
    },
    /// No room in its queue.
    Full,
    /// The queue is long, and its discipline drops before it is full.
    Congestion,
}

impl From<Refusal> for Disposition {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooBig { mtu } => Self::Refuse(ErrorKind::PacketTooBig { mtu }),
            Refusal::Full => Self::Drop(ip::PacketDrop::QueueFull),
            Refusal::Congestion => Self::Drop(ip::PacketDrop::Congestion),
        }
    }
}

/// Memory for a frame's payload with its headers restored: two bytes of IPHC may stand for 40
/// of IPv6, a few for 60 of TCP, one for each address of a source route, and extension headers and
/// UDP grow a little besides. Where TCP's are never compressed, there is room for two IPv6 headers.
#[derive(Debug)]
pub(crate) struct Scratch(pub(super) [u8; SCRATCH_LEN]);

const SCRATCH_LEN: usize = PSDU_LEN_MAX + RESTORED_LEN_MAX + ROUTING_LEN_MAX;

const RESTORED_LEN_MAX: usize = if crate::wire::tcphc::IS_SUPPORTED {
    100
} else {
    84
};

impl Scratch {
    pub(crate) const fn new() -> Self {
        Self([0; SCRATCH_LEN])
    }
}
