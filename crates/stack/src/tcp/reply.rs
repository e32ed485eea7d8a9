//! A segment to a peer that has no connection.
//!
//! Place: `arrival` stores a reply in [`Tcp`](super::Tcp), which has room for one; `departure`
//! writes it into a packet.

use super::facts::Facts;
use super::seq::SeqNum;
use super::types::Endpoints;
use crate::wire::tcp::Flags;

/// A segment to a peer that has no connection: a reset, a SYN-ACK, or the challenge
/// ACK of a handshake.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub(super) ends: Endpoints,
    pub(super) seq: SeqNum,
    pub(super) ack: SeqNum,
    pub(super) flags: Flags,
    pub(super) window: u16,
    /// TSval and TSecr, where timestamps are agreed upon.
    pub(super) timestamps: (u32, u32),
    pub(super) agreed: Facts,
    /// The MSS option's value; only in SYN-ACKs.
    pub(super) mss: u16,
}

impl Reply {
    /// A placeholder, which is never sent.
    pub(super) const EMPTY: Self = Self {
        ends: Endpoints::NONE,
        seq: SeqNum::new(0),
        ack: SeqNum::new(0),
        flags: Flags::EMPTY,
        window: 0,
        timestamps: (0, 0),
        agreed: Facts::NONE,
        mss: 0,
    };
}
