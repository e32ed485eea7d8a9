//! Why IP drops packets, and how many took which way.
//!
//! Place: [`Ip`](super::Ip) and the node count here. Left out: packets that a link drops.

/// Why IP dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketDrop {
    /// No header, a wrong version, or fewer bytes than the header says.
    Malformed,
    /// A multicast or loopback source, this node's own, or an unspecified one where an answer
    /// is due; or a loopback destination.
    BadAddress,
    /// A packet for one node, in a broadcast frame: each neighbour would forward a copy.
    LinkBroadcast,
    /// A link-local address of another link, or a group this node has not joined.
    NotMine,
    /// A packet for another node, and this node does not forward.
    NotARouter,
    /// A fragment of IPv6 that nothing came of: a node without memory to put packets together, a
    /// packet that did not become whole, or a fragment that breaks a rule.
    Fragment,
    /// An extension header that asks for a silent discard, or is malformed; or is not accepted, and
    /// no error may be sent.
    ExtensionHeader,
    /// No route, none that is long enough or none that carries so long a packet; and no error may
    /// be sent.
    NoRoute,
    /// The ICMPv6 checksum or length is wrong.
    BadIcmp,
    /// An ICMPv6 message this node does not act on.
    IgnoredIcmp,
    /// A neighbour discovery message that came from beyond the link, in fragments or breaks a rule;
    /// or a message of RPL's in fragments.
    BadNdp,
    /// A transport or a port that this node does not have, and no error may be sent.
    UnknownProtocol,
    /// The queue of the interface it should leave by is full.
    QueueFull,
    /// The queue of the interface is long, and its discipline drops before it is full.
    Congestion,
    /// The packet waited in the queue for longer than its compressed TCP header allows.
    TooOld,
    /// The route leads back to the neighbour that sent the packet.
    SentBack,
    /// An echo request or a solicitation beyond the limit on answers.
    TooMany,
    /// An ICMPv6 error that cannot be true: an MTU below IPv6's minimum, or a packet that this
    /// node does not send.
    UntrueError,
    /// The RPL option shows a loop for the second time (RFC 6550 §11.2.2.2).
    Loop,
    /// The RPL option names an instance that this node is not in.
    Instance,
    /// A packet within a packet that no root of this node's DODAG has put there.
    Tunnel,
    /// A wire brought it, with a source that is inside a mesh (BCP 38).
    ForgedSource,
}

impl PacketDrop {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed IPv6 packet",
            Self::BadAddress => "source or destination not allowed in IPv6",
            Self::LinkBroadcast => "packet for one node in a frame for all",
            Self::NotMine => "another link or a group not joined",
            Self::NotARouter => "for another node, and this one does not forward",
            Self::Fragment => "IPv6 fragment that nothing came of",
            Self::ExtensionHeader => "extension header that asks for a discard",
            Self::NoRoute => "no route leads there",
            Self::BadIcmp => "ICMPv6 checksum or length wrong",
            Self::IgnoredIcmp => "ICMPv6 message not acted on",
            Self::BadNdp => "neighbour discovery message that breaks a rule",
            Self::UnknownProtocol => "transport that this node does not have",
            Self::QueueFull => "queue of the interface full",
            Self::Congestion => "queue of the interface long",
            Self::TooOld => "packet waited too long",
            Self::SentBack => "packet that would go back to where it came from",
            Self::TooMany => "too many answers to strangers",
            Self::UntrueError => "ICMPv6 error that cannot be true",
            Self::Loop => "packet that goes round in a loop",
            Self::Instance => "RPL option of another instance",
            Self::Tunnel => "packet within a packet that this node does not open",
            Self::ForgedSource => "source inside, but it came from outside",
        }
    }
}

speaks!(PacketDrop);

/// How many packets took which way.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct IpCounters {
    /// Delivered to a transport or to ICMPv6 of this node.
    pub delivered: u32,
    /// Passed on to another node.
    pub forwarded: u32,
    /// Packets marked as having met congestion (RFC 3168 §5): those passed on, and this node's own.
    pub marked: u32,
    /// ICMPv6 error messages that this node has sent (RFC 4443 §3).
    pub errors_sent: u32,
    /// ICMPv6 errors withheld by the rate limit (RFC 4443 §2.4 f).
    pub errors_limited: u32,
    /// Dropped, by reason, in the order of [`PacketDrop`].
    pub drops: [u32; PacketDrop::COUNT],
}

impl PacketDrop {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ForgedSource as usize + 1;
}

impl IpCounters {
    /// Adds one to the count of packets dropped for `reason`; it wraps at 2^32.
    pub(crate) fn count(&mut self, reason: PacketDrop) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
    }

    /// Drops for `reason` so far.
    pub fn dropped(&self, reason: PacketDrop) -> u32 {
        self.drops.get(reason as usize).copied().unwrap_or_default()
    }
}
