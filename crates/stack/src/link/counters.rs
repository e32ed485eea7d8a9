//! Counters of packets that a link drops between its layers; each layer has counters of its own
//! besides.

/// Why the link dropped a frame or packet between the MAC and IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDrop {
    /// A format that is not 6LoWPAN, or that this stack does not read.
    Dispatch,
    /// Headers that do not decompress: malformed, or an unknown context.
    Compression,
    /// A compressed TCP header that could not be restored; `tcphc` counts why.
    TcpCompression,
    /// A fragment header that is malformed (RFC 4944 §5.3).
    MalformedFragment,
    /// The decompressed bytes are no IPv6 packet, or one with a routing header that no packet may
    /// bring.
    MalformedPacket,
    /// A fragment that is longer than a frame of the next hop.
    FragmentTooLong,
    /// No room in the MAC's queue for a fragment to be passed on: its packet is lost.
    RelayQueueFull,
    /// A packet for which ICMPv6 answered.
    Refused,
    /// A frame in clear that bears no datagram for a key, or that came while another one waited.
    #[cfg(any(feature = "join", feature = "thread"))]
    InClear,
}

impl LinkDrop {
    /// The meaning of the drop, in a few English words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Dispatch => "not a 6LoWPAN format that is read",
            Self::Compression => "headers do not decompress",
            Self::TcpCompression => "compressed TCP header not restored",
            Self::MalformedFragment => "malformed fragment header",
            Self::MalformedPacket => "not an IPv6 packet",
            Self::FragmentTooLong => "fragment longer than a frame of the next hop",
            Self::RelayQueueFull => "no room to pass a fragment on",
            Self::Refused => "refused by ICMPv6",
            #[cfg(any(feature = "join", feature = "thread"))]
            Self::InClear => "frame in clear that neither asks for a key nor is of MLE",
        }
    }
}

speaks!(LinkDrop);

impl LinkDrop {
    /// How many reasons there are.
    #[cfg(not(any(feature = "join", feature = "thread")))]
    pub const COUNT: usize = Self::Refused as usize + 1;
    /// How many reasons there are.
    #[cfg(any(feature = "join", feature = "thread"))]
    pub const COUNT: usize = Self::InClear as usize + 1;
}

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct LinkCounters {
    /// Fragments passed on without reassembly.
    pub fragments_relayed: u32,
    drops: [u32; LinkDrop::COUNT],
}

impl LinkCounters {
    /// How many frames or packets were dropped for `reason`.
    pub fn dropped(&self, reason: LinkDrop) -> u32 {
        self.drops.get(reason as usize).copied().unwrap_or_default()
    }

    pub(super) fn count(&mut self, reason: LinkDrop) {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
    }
}
