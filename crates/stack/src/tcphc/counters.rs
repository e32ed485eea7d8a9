//! Counters of the headers that one end has sent, restored and discarded, and why.

use crate::wire::tcphc;

/// Why a compressed segment was discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderDrop {
    /// The bytes are no TCPHC header.
    Malformed(tcphc::ParseError),
    /// A full header with options that no TCP header may have.
    BadTcp,
    /// No context with this identifier between these addresses.
    NoContext,
    /// A field was left out, and the context holds no reference for it.
    NoReference,
    /// The restored segment's checksum does not verify: damage, or references that differ.
    Checksum,
    /// The restored header does not fit `out`.
    Full,
    /// The echo of a timestamp that was not sent from here: references that differ.
    EchoUnsent,
}

impl HeaderDrop {
    /// How many reasons counters tell apart.
    pub const COUNT: usize = 7;

    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed(error) => error.reason(),
            Self::BadTcp => "TCPHC full header with malformed TCP",
            Self::NoContext => "TCPHC context unknown",
            Self::NoReference => "TCPHC field elided without a reference",
            Self::Checksum => "TCP checksum wrong after decompression",
            Self::Full => "no room for the restored TCP header",
            Self::EchoUnsent => "TCPHC echo of a timestamp that was not sent",
        }
    }

    pub(super) const fn index(self) -> usize {
        match self {
            Self::Malformed(_) => 0,
            Self::BadTcp => 1,
            Self::NoContext => 2,
            Self::NoReference => 3,
            Self::Checksum => 4,
            Self::Full => 5,
            Self::EchoUnsent => 6,
        }
    }
}

speaks!(HeaderDrop, Self::Malformed(error) => error);

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Debug, Default)]
pub struct TcphcCounters {
    /// Segments sent: with a full, a mostly compressed, a compressed header, and as plain TCP.
    pub sent: [u32; 4],
    /// Segments received whose headers were restored.
    pub restored: u32,
    pub(super) drops: [u32; HeaderDrop::COUNT],
}

impl TcphcCounters {
    /// Segments discarded for `reason`; parse errors are counted as one.
    pub fn dropped(&self, reason: HeaderDrop) -> u32 {
        self.drops.get(reason.index()).copied().unwrap_or_default()
    }
}

pub(super) fn count(counters: &mut [u32], which: usize) {
    if let Some(count) = counters.get_mut(which) {
        *count = count.wrapping_add(1);
    }
}
