//! Facts of one bit that a connection remembers between segments, besides its variables.
//!
//! Place: part of [`Connection`](super::Connection). Left out: every decision.

use super::config::{Config, HAS_ECN, HAS_RECOVERY, HAS_SACK, HAS_TIMESTAMPS, SMSS_FOR_OPTIONS};
use super::types::Edges;
use crate::wire::tcp::Options;

/// Yes-or-no facts of a connection, one bit each. Facts that are read or changed together are in
/// one byte, the most frequent in the low byte, where a Cortex-M0+ needs the fewest instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts(u32);

impl Facts {
    pub(super) const NONE: Self = Self(0);
    /// Timestamps are in use (RFC 7323).
    pub(super) const TIMESTAMPS: u32 = 1;
    /// Selective acknowledgments are in use (RFC 2018).
    pub(super) const SACK: u32 = 1 << 1;
    /// Explicit congestion notification is in use (RFC 3168).
    pub(super) const ECN: u32 = 1 << 2;
    /// The options that a handshake agrees upon.
    pub(super) const AGREED: u32 = Self::TIMESTAMPS | Self::SACK | Self::ECN;
    /// The application has closed its end for sending: a FIN follows the data.
    pub(super) const FIN_QUEUED: u32 = 1 << 13;
    /// A gap was filled, and its ACK is not sent yet. That ACK announces the window from before the
    /// application read; the bytes read since then are added by the following window updates, in
    /// steps.
    pub(super) const GAP_FILLED: u32 = 1 << 16;
    /// The peer's FIN was seen: `rcv_fin` is its place.
    pub(super) const FIN_SEEN: u32 = 1 << 8;
    /// The application has called `close`: it reads no more.
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
    /// ECE is set in each ACK until the peer sends CWR (RFC 3168 §6.1.3).
    pub(super) const ECHO_CE: u32 = 1 << 17;
    /// CWR is to be set in the next segment of new data (RFC 3168 §6.1.2).
    pub(super) const CWR_DUE: u32 = 1 << 14;
    /// A duplicate (`dsack_at`, `dsack_len`) is to be reported (RFC 2883).
    pub(super) const DSACK_DUE: u32 = 1 << 15;
    /// An ICMPv6 error reported that the peer may be unreachable (a soft error).
    pub(super) const SOFT_ERROR: u32 = 1 << 11;
    /// TS.Recent is older than PAWS may rely on.
    pub(super) const TS_OUTDATED: u32 = 1 << 21;
    /// The peer's last segment with text was not the end of what it had to send: it was full, or
    /// bore no PSH.
    #[cfg(feature = "sleepy")]
    pub(super) const STREAMS: u32 = 1 << 22;
    /// The peer has connected, and no segment of it has come since.
    #[cfg(feature = "sleepy")]
    pub(super) const HAS_CONNECTED: u32 = 1 << 23;
    /// The application awaits these [`Edges`]: their conditions did not hold behind its last call,
    /// and their return has not been reported.
    pub(super) const AWAITED: u32 = 0b1111 << AWAITED_SHIFT;

    /// The features that a handshake agrees upon where the peer offers all of them.
    pub(super) fn offered_by(config: &Config) -> Self {
        Self(
            u32::from(config.timestamps) * Self::TIMESTAMPS
                + u32::from(config.sack) * Self::SACK
                + u32::from(config.ecn) * Self::ECN,
        )
        .only_possible()
    }

    /// Clears timestamps and SACK where `syn` does not offer them, or where segments of `mss` bytes
    /// have no room for SACK; ECN is negotiated by flags.
    pub(super) fn keep_offered(&mut self, syn: &Options, mss: u16) {
        if syn.timestamps.is_none() {
            self.clear(Self::TIMESTAMPS);
        }
        if !syn.sack_permitted || mss < SMSS_FOR_OPTIONS {
            self.clear(Self::SACK);
        }
    }

    /// Those of the facts that are possible in this build.
    const fn only_possible(self) -> Self {
        Self(self.0 & POSSIBLE)
    }

    /// The options among these facts, in bits 0 to 2.
    pub(super) const fn agreed(self) -> u8 {
        (self.0 & Self::AGREED) as u8
    }

    /// The facts that [`Self::agreed`] gave the bits of.
    pub(super) fn of_agreed(bits: u8) -> Self {
        Self(u32::from(bits) & Self::AGREED)
    }

    /// The facts of a connection that begins: the application awaits the first [`Edges`].
    pub(super) const fn at_first() -> Self {
        Self((Edges::AT_FIRST.0 as u32) << AWAITED_SHIFT)
    }

    /// Notes that the application awaits `edges`.
    pub(super) fn awaits(&mut self, edges: Edges) {
        self.set(u32::from(edges.0) << AWAITED_SHIFT);
    }

    /// Returns those of `edges` that the application awaits, and clears them.
    pub(super) fn take_awaited(&mut self, edges: Edges) -> Edges {
        let taken = self.0 & u32::from(edges.0) << AWAITED_SHIFT;
        self.clear(taken);
        Edges((taken >> AWAITED_SHIFT) as u8)
    }

    pub(super) const fn has(self, fact: u32) -> bool {
        self.0 & fact & POSSIBLE != 0
    }

    pub(super) const fn has_all(self, facts: u32) -> bool {
        self.0 & facts & POSSIBLE == facts
    }

    pub(super) fn set(&mut self, fact: u32) {
        self.0 |= fact & POSSIBLE;
    }

    pub(super) fn add(&mut self, facts: Self) {
        self.0 |= facts.0;
    }

    pub(super) fn clear(&mut self, fact: u32) {
        self.0 &= !(fact & POSSIBLE);
    }

    pub(super) fn put(&mut self, fact: u32, value: bool) {
        if value {
            self.set(fact);
        } else {
            self.clear(fact);
        }
    }

    /// Clears `fact`; returns whether it was set.
    pub(super) fn take(&mut self, fact: u32) -> bool {
        let had = self.has(fact);
        self.clear(fact);
        had
    }
}

/// The facts that are possible in this build. Where a fact is not, [`Facts::has`] is known to the
/// compiler, and it leaves out what depends on it.
const POSSIBLE: u32 = !(lacking(HAS_TIMESTAMPS, Facts::TIMESTAMPS | Facts::TS_OUTDATED)
    | lacking(HAS_SACK, Facts::SACK | Facts::DSACK_DUE)
    | lacking(HAS_ECN, Facts::ECN | Facts::ECHO_CE | Facts::CWR_DUE)
    | lacking(HAS_RECOVERY, Facts::TAIL_PROBE_DUE));

/// `facts` where a build lacks them, else none.
const fn lacking(has: bool, facts: u32) -> u32 {
    if has { 0 } else { facts }
}

/// The lowest bit of [`Facts::AWAITED`].
const AWAITED_SHIFT: u32 = 28;
const _: () = assert!(Facts::AWAITED.count_ones() == Edges::ALL.0.count_ones());
const _: () = assert!(Facts::AGREED == 7, "what `agreed` gives");
