//! What a connection remembers between segments besides its variables: facts of one bit.
//!
//! Place: part of [`Connection`](super::Connection). Left out: every decision.

use super::config::{Config, SMSS_FOR_OPTIONS};
use super::types::Edges;
use crate::wire::tcp::Options;

/// Yes-or-no facts of a connection, one bit each; those that are asked or changed together in
/// one byte, the most frequent in the low one, where a Cortex-M0+ needs the fewest instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts(u32);

impl Facts {
    pub(super) const NONE: Self = Self(0);
    /// Timestamps are in use.
    pub(super) const TIMESTAMPS: u32 = 1;
    /// SACK is in use.
    pub(super) const SACK: u32 = 1 << 1;
    /// ECN is in use.
    pub(super) const ECN: u32 = 1 << 2;
    /// What a handshake agrees upon.
    pub(super) const AGREED: u32 = Self::TIMESTAMPS | Self::SACK | Self::ECN;
    /// The application has no more to send.
    pub(super) const FIN_QUEUED: u32 = 1 << 13;
    /// A gap was filled and the ACK of that not sent: it bears the window as it was before
    /// anybody read, and what was read goes out behind it, step by step.
    pub(super) const GAP_FILLED: u32 = 1 << 16;
    /// The peer's FIN was seen: `rcv_fin` is its place.
    pub(super) const FIN_SEEN: u32 = 1 << 8;
    /// The application reads no more.
    pub(super) const READ_CLOSED: u32 = 1 << 9;
    /// The application gave the handle back; the slot frees itself.
    pub(super) const ORPHANED: u32 = 1 << 18;
    /// An ACK is to be sent at once.
    pub(super) const ACK_DUE: u32 = 1 << 3;
    /// A SYN, or SYN-ACK, is to be sent.
    pub(super) const SYN_DUE: u32 = 1 << 4;
    /// A reset is to be sent.
    pub(super) const RESET_DUE: u32 = 1 << 12;
    /// A zero-window probe is to be sent.
    pub(super) const PERSIST_DUE: u32 = 1 << 5;
    /// A tail loss probe is to be sent.
    pub(super) const TAIL_PROBE_DUE: u32 = 1 << 6;
    /// A keepalive probe is to be sent.
    pub(super) const KEEPALIVE_DUE: u32 = 1 << 7;
    /// A byte was sent beyond the window, as a probe. With nothing in flight: SND.NXT went back
    /// before it when the window opened, but the peer may have taken it.
    pub(super) const WINDOW_PROBED: u32 = 1 << 10;
    /// Echo congestion experienced until the peer sends CWR.
    pub(super) const ECHO_CE: u32 = 1 << 17;
    /// Tell the peer that cwnd was reduced, with the next new data.
    pub(super) const CWR_DUE: u32 = 1 << 14;
    /// `dsack` is to be reported.
    pub(super) const DSACK_DUE: u32 = 1 << 15;
    /// The network said that the peer may not be reachable (a soft error).
    pub(super) const SOFT_ERROR: u32 = 1 << 11;
    /// TS.Recent is older than PAWS may rely on.
    pub(super) const TS_OUTDATED: u32 = 1 << 21;
    /// The peer's last segment with text was not the end of what it had to send: it was full, or
    /// bore no PSH.
    #[cfg(feature = "sleepy")]
    pub(super) const STREAMS: u32 = 1 << 22;
    /// The application awaits these [`Edges`]: their conditions did not hold behind its last call,
    /// and their return has not been reported.
    pub(super) const AWAITED: u32 = 0b1111 << AWAITED_SHIFT;

    /// What a handshake agrees upon where the peer offers all of it.
    pub(super) fn offered_by(config: &Config) -> Self {
        Self(
            u32::from(config.timestamps) * Self::TIMESTAMPS
                + u32::from(config.sack) * Self::SACK
                + u32::from(config.ecn) * Self::ECN,
        )
    }

    /// Clears what `syn`, which allows segments of `mss` bytes, does not offer or has no room for;
    /// of ECN its flags speak.
    pub(super) fn keep_offered(&mut self, syn: &Options, mss: u16) {
        if syn.timestamps.is_none() {
            self.clear(Self::TIMESTAMPS);
        }
        if !syn.sack_permitted || mss < SMSS_FOR_OPTIONS {
            self.clear(Self::SACK);
        }
    }

    /// What of this a handshake agrees upon, in bits 0 to 2.
    pub(super) const fn agreed(self) -> u8 {
        (self.0 & Self::AGREED) as u8
    }

    /// The facts that [`Self::agreed`] gave the bits of.
    pub(super) fn of_agreed(bits: u8) -> Self {
        Self(u32::from(bits) & Self::AGREED)
    }

    /// Of a connection that begins.
    pub(super) const fn at_first() -> Self {
        Self((Edges::AT_FIRST.0 as u32) << AWAITED_SHIFT)
    }

    /// The application awaits `edges`.
    pub(super) fn awaits(&mut self, edges: Edges) {
        self.set(u32::from(edges.0) << AWAITED_SHIFT);
    }

    /// Those of `edges` that the application awaits; it does so no more.
    pub(super) fn take_awaited(&mut self, edges: Edges) -> Edges {
        let taken = self.0 & u32::from(edges.0) << AWAITED_SHIFT;
        self.clear(taken);
        Edges((taken >> AWAITED_SHIFT) as u8)
    }

    pub(super) const fn has(self, fact: u32) -> bool {
        self.0 & fact != 0
    }

    pub(super) const fn has_all(self, facts: u32) -> bool {
        self.0 & facts == facts
    }

    pub(super) fn set(&mut self, fact: u32) {
        self.0 |= fact;
    }

    pub(super) fn add(&mut self, facts: Self) {
        self.0 |= facts.0;
    }

    pub(super) fn clear(&mut self, fact: u32) {
        self.0 &= !fact;
    }

    pub(super) fn put(&mut self, fact: u32, value: bool) {
        if value {
            self.set(fact);
        } else {
            self.clear(fact);
        }
    }

    /// Clears `fact`; says whether it was set.
    pub(super) fn take(&mut self, fact: u32) -> bool {
        let had = self.has(fact);
        self.clear(fact);
        had
    }
}

/// Where [`Facts::AWAITED`] begins.
const AWAITED_SHIFT: u32 = 28;
const _: () = assert!(Facts::AWAITED.count_ones() == Edges::ALL.0.count_ones());
const _: () = assert!(Facts::AGREED == 7, "what `agreed` gives");
