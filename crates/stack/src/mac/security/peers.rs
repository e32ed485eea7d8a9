//! The neighbours that have shown that they have the key, and the last frame counter of each.
//!
//! Purpose: a counter that is not above the last one is of a recording. An entry is made only of a
//! frame that answers a fresh challenge, so that neither recordings nor forgeries open or push out
//! any.
//! Place: [`super::Security`] asks it before the cipher runs, and tells it after the MIC was right.
//! Left out: challenges, which are in [`super::proof`].

use crate::mac::counters::FrameDrop;
use crate::time::{Duration, Instant};

/// A neighbour with the key, borrowed from the caller; [`Peer::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct Peer {
    addr: [u8; 8],
    is_known: bool,
    /// A parent or child: nobody else takes its entry.
    is_kin: bool,
    /// The key sequence of its last frame, and that frame's counter.
    sequence: u32,
    counter: u32,
    /// When that frame came, ms.
    believed_ms: u32,
    /// Since when its heads fire nothing, ms, and for how often doubled a time.
    muted_ms: u32,
    doublings: u8,
    is_muted: bool,
}

impl Peer {
    /// An empty slot: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        addr: [0; 8],
        is_known: false,
        is_kin: false,
        sequence: 0,
        counter: 0,
        believed_ms: 0,
        muted_ms: 0,
        doublings: 0,
        is_muted: false,
    };

    /// Its last frame counter, of the key sequence that comes with it.
    pub(super) const fn last(&self) -> (u32, u32) {
        (self.sequence, self.counter)
    }

    /// Whether a frame with this counter would be new.
    pub(super) fn admits(&self, sequence: u32, counter: u32) -> Result<(), FrameDrop> {
        match (sequence, counter).cmp(&self.last()) {
            core::cmp::Ordering::Greater => Ok(()),
            core::cmp::Ordering::Equal => Err(FrameDrop::Duplicate),
            core::cmp::Ordering::Less => Err(FrameDrop::Replayed),
        }
    }

    /// A frame that says it is its own is none: its heads are not to be trusted for a while.
    pub(super) fn mute(&mut self, now: Instant) {
        let now_ms = now.as_millis_wrapping();
        // Forgeries that come while it is muted prolong nothing.
        if self.is_muted && now_ms.wrapping_sub(self.muted_ms) < self.mute_ms() {
            return;
        }
        let is_recent = now_ms.wrapping_sub(self.muted_ms) < self.mute_ms() + MUTE_MAX_MS;
        self.doublings = match self.is_muted && is_recent {
            true => self.doublings.saturating_add(1).min(DOUBLINGS_MAX),
            false => 0,
        };
        (self.is_muted, self.muted_ms) = (true, now_ms);
    }

    /// Whether its heads fire what waits for them.
    pub(super) fn fires(&self, now: Instant) -> bool {
        let past_ms = now.as_millis_wrapping().wrapping_sub(self.muted_ms);
        !self.is_muted || past_ms >= self.mute_ms()
    }

    fn mute_ms(&self) -> u32 {
        (MUTE_MS << self.doublings).min(MUTE_MAX_MS)
    }
}

/// The table of them.
#[derive(Debug)]
pub(super) struct Peers<'m>(&'m mut [Peer]);

impl<'m> Peers<'m> {
    pub(super) fn new(table: &'m mut [Peer]) -> Self {
        table.fill(Peer::EMPTY);
        Self(table)
    }

    pub(super) fn into_memory(self) -> &'m mut [Peer] {
        self.0
    }

    pub(super) fn find(&self, addr: [u8; 8]) -> Option<&Peer> {
        self.0
            .iter()
            .find(|peer| peer.is_known && peer.addr == addr)
    }

    pub(super) fn find_mut(&mut self, addr: [u8; 8]) -> Option<&mut Peer> {
        let mut known = self.0.iter_mut();
        known.find(|peer| peer.is_known && peer.addr == addr)
    }

    /// The address of each, and its last frame counter.
    pub(super) fn counters(&self) -> impl Iterator<Item = ([u8; 8], u32)> {
        let known = self.0.iter().filter(|peer| peer.is_known);
        known.map(|peer| (peer.addr, peer.counter))
    }

    /// Whether one more finds room without pushing another out.
    pub(super) fn has_room(&self) -> bool {
        self.0.iter().any(|peer| !peer.is_known)
    }

    /// Takes over the counter of an authentic frame of `addr`; false where it has no entry.
    pub(super) fn believe(
        &mut self,
        addr: [u8; 8],
        (sequence, counter): (u32, u32),
        now: Instant,
    ) -> bool {
        let Some(peer) = self.find_mut(addr) else {
            return false;
        };
        (peer.sequence, peer.counter) = (sequence, counter);
        peer.believed_ms = now.as_millis_wrapping();
        true
    }

    /// Makes an entry, instead of the one longest silent where there is no room; false where all are
    /// of parents and children.
    pub(super) fn insert(
        &mut self,
        addr: [u8; 8],
        (sequence, counter): (u32, u32),
        is_kin: bool,
        now: Instant,
    ) -> bool {
        let now_ms = now.as_millis_wrapping();
        let candidates = self.0.iter_mut().filter(|peer| !peer.is_kin);
        let rank = |peer: &Peer| (peer.is_known, !now_ms.wrapping_sub(peer.believed_ms));
        let Some(peer) = candidates.min_by_key(|peer| rank(peer)) else {
            return false;
        };
        *peer = Peer {
            addr,
            is_known: true,
            is_kin,
            sequence,
            counter,
            believed_ms: now_ms,
            ..Peer::EMPTY
        };
        true
    }

    /// Says anew which entries nobody else takes.
    pub(super) fn keep(&mut self, is_kin: impl Fn([u8; 8]) -> bool) {
        for peer in self.0.iter_mut().filter(|peer| peer.is_known) {
            peer.is_kin = is_kin(peer.addr);
        }
    }

    /// Since when this neighbour has sent nothing authentic; `None` where it has no entry.
    pub(super) fn silence(&self, addr: [u8; 8], now: Instant) -> Option<Duration> {
        let peer = self.find(addr)?;
        let ms = now.as_millis_wrapping().wrapping_sub(peer.believed_ms);
        Some(Duration::from_millis(ms.into()))
    }
}

/// How long a neighbour's heads fire nothing after a forgery in its name: longer than a burst of
/// them, and what a flow loses by it is the lead of some frames.
const MUTE_MS: u32 = 1_000;

/// And at most, when forgeries go on.
const MUTE_MAX_MS: u32 = 60_000;

/// From [`MUTE_MS`] to [`MUTE_MAX_MS`].
const DOUBLINGS_MAX: u8 = 6;
