//! The record of one fragmented packet under way: its sender, its next hop, which of its bytes have
//! come, and when it expires.

use super::Key;
use crate::limits::MESH_PACKET_LEN_MAX;
use crate::lowpan::routing::{self, RecordRouting};
use crate::lowpan::{TcpForm, unabridged};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// One packet under way, borrowed from the caller; [`Record::EMPTY`] to begin with.
///
/// The bytes come before the halfwords, where a Cortex-M0+ reaches them with one instruction. In
/// the compiler's order a router is 130 B larger.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Record {
    /// When the packet's last useful fragment came.
    pub(super) heard_at: Instant,
    /// However many fragments still come.
    pub(super) give_up_at: Instant,
    /// Whether the packet's sender is known to exist.
    pub(super) is_known: bool,
    /// Whether more than one fragment of the packet has arrived.
    pub(super) grows: bool,
    /// Whether another packet of the same sender was completed just before.
    pub(super) follows: bool,
    /// The form of the TCP header, from the first fragment.
    pub(super) tcp: TcpForm,
    pub(super) state: State,
    pub(super) key: Key,
    /// The RPL packet information, from the first fragment.
    pub(super) routing: RecordRouting,
    pub(super) coverage: Coverage,
}

impl Record {
    /// A record of nothing: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        key: Key {
            from: LinkAddr::Short(0),
            tag: 0,
            size: 0,
        },
        state: State::Free,
        tcp: TcpForm::Plain,
        routing: RecordRouting::NOTHING,
        is_known: false,
        grows: false,
        follows: false,
        coverage: Coverage::NONE,
        heard_at: Instant::ORIGIN,
        give_up_at: Instant::ORIGIN,
    };

    /// Whether fragments are still expected or the packet not yet released.
    pub(super) const fn is_active(&self) -> bool {
        !matches!(
            self.state,
            State::Free | State::Over { .. } | State::Passed { .. }
        )
    }

    /// Whether fragments of this key belong to this packet: active, or over not long ago.
    pub(super) fn is_known(&self, now: Instant) -> bool {
        match self.state {
            State::Free => false,
            State::Over { .. } | State::Passed { .. } => now.since(self.heard_at) < LINGER,
            _ => true,
        }
    }

    /// Length of the whole uncompressed packet, bytes.
    pub(super) fn packet_len(&self) -> usize {
        unabridged(usize::from(self.key.size), self.routing.unnumbered())
    }

    pub(super) const fn body(&self) -> Option<u8> {
        match self.state {
            State::Gathering { body } | State::Whole { body } => Some(body),
            _ => None,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let idle = match self.state {
            State::Free | State::Over { .. } | State::Passed { .. } => return None,
            State::Forwarding { .. } => RELAY_TIMEOUT,
            State::Gathering { .. } | State::Whole { .. } => REASSEMBLY_TIMEOUT,
        };
        Some((self.heard_at + idle).min(self.give_up_at))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)] // Makes `Free` zero.
pub(super) enum State {
    Free,
    /// Fragments are collected in this body.
    Gathering {
        body: u8,
    },
    /// All have come; the node has yet to take the packet.
    Whole {
        body: u8,
    },
    /// Fragments are passed on as they come.
    Forwarding {
        next_hop: LinkAddr,
        tag: u16,
    },
    /// Done with, well or not. Remembered for [`LINGER`], unless the record is needed, so
    /// that repeated or orphaned fragments do not open another.
    Over {
        lost: bool,
    },
    /// Every fragment was forwarded under this tag. The packet is almost done: a fragment may yet
    /// get lost.
    Passed {
        tag: u16,
    },
}

/// The eight-byte units that a fragment covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: u8,
    pub(super) len: u8,
}

impl Span {
    /// `None` unless the bytes lie within the packet, begin on a unit, and end on one or
    /// with the packet.
    pub(super) fn new(size: u16, offset: usize, len: usize) -> Option<Self> {
        let size = usize::from(size);
        let end = offset.checked_add(len)?;
        let aligned = offset.is_multiple_of(8) && (end.is_multiple_of(8) || end == size);
        if len == 0 || end > size || size > SIZE_MAX || !aligned {
            return None;
        }
        Some(Self {
            start: (offset / 8) as u8,
            len: len.div_ceil(8) as u8,
        })
    }
}

/// The largest `datagram_size`: the longest packet, and hop-by-hop options that hold the RPL
/// option, where fragment headers number them.
const SIZE_MAX: usize = MESH_PACKET_LEN_MAX + routing::OPTION_LEN;

/// Which eight-byte units of a packet have come: 1,280 bytes in 160 bits.
#[derive(Clone, Debug)]
pub(super) struct Coverage {
    units: [u8; SIZE_MAX.div_ceil(64)],
    pub(super) count: u8,
}

impl Coverage {
    pub(super) const NONE: Self = Self {
        units: [0; SIZE_MAX.div_ceil(64)],
        count: 0,
    };

    /// How many units of the span have come.
    pub(super) fn count(&self, span: Span) -> u8 {
        let mut count = 0;
        for unit in span.start..span.start.saturating_add(span.len) {
            let byte = self.units.get(usize::from(unit / 8)).copied();
            count += byte.unwrap_or_default() >> (unit % 8) & 1;
        }
        count
    }

    pub(super) fn add(&mut self, span: Span) {
        for unit in span.start..span.start.saturating_add(span.len) {
            if let Some(byte) = self.units.get_mut(usize::from(unit / 8)) {
                *byte |= 1 << (unit % 8);
            }
        }
        self.count = self.count.saturating_add(span.len);
    }

    pub(super) fn is_whole(&self, size: u16) -> bool {
        u16::from(self.count) == size.div_ceil(8)
    }
}

/// How long a packet that is reassembled here waits for its next fragment. A fragment's attempts at
/// the hop before take at most 0.7 s, and others may be queued before it. OpenThread gives a whole
/// packet half of this.
pub(crate) const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(4);

/// The same at a relay, which loses only a tag and a next hop by waiting; shorter, because
/// it has no memory to spare for packets that their senders have given up.
pub(crate) const RELAY_TIMEOUT: Duration = Duration::from_secs(2);

/// However slowly fragments come: RFC 4944 §5.3 allows 60 s at most.
pub const LIFETIME: Duration = Duration::from_secs(60);

/// How long a finished packet is remembered after its last fragment: the link repeats frames for
/// 0.7 s at most. The time is short because a sender that restarts may soon reuse a tag.
pub(crate) const LINGER: Duration = REASSEMBLY_TIMEOUT;
