//! The peers that are known to support compression, or not to support it.
//!
//! Purpose: if not all nodes of the network are known to compress, an unknown peer gets one offer
//! in each attempt to connect; a peer that never accepts gets no offers for a while.
//! Place: the table checks the peer before it makes a context. Left out: signalling; there is none.
//! Source: section 2.2 of the proposal, with the three failures of its section 13.

use crate::time::Instant;

/// The peers to which compression was offered last, or which took it up.
#[derive(Debug)]
pub(super) struct Peers {
    /// The peers, in the order in which they were last offered or took up compression, the latest
    /// first.
    known: [Peer; PEERS_MAX],
}

/// A peer, or a place for one.
#[derive(Clone, Copy, Debug)]
struct Peer {
    /// Keyed hash of its address.
    remote: u16,
    /// Low half of the number behind the SYN that offered it last.
    offered: u16,
    /// Offers that the peer has not taken up; 0: the peer understands compression.
    offers: u8,
    /// When compression was last offered to the peer, or taken up by it, in units of
    /// [`TICK_SHIFT`].
    at: u32,
}

impl Peers {
    pub(super) const fn new() -> Self {
        let nobody = Peer {
            remote: 0,
            offered: 0,
            offers: u8::MAX,
            at: 0,
        };
        Self {
            known: [nobody; PEERS_MAX],
        }
    }

    /// Whether `remote` has understood compression.
    pub(super) fn understands(&self, remote: u16) -> bool {
        self.known
            .iter()
            .any(|peer| peer.remote == remote && peer.offers == 0)
    }

    /// Whether a SYN before the number `end` may offer it to `remote`; counts that it does.
    pub(super) fn may_offer(&mut self, remote: u16, end: u32, now: Instant) -> bool {
        let now = ticks(now);
        let known = self.known.iter().find(|peer| peer.remote == remote);
        let fresh = known.filter(|peer| {
            let is_peer = peer.offers != u8::MAX;
            is_peer && now.wrapping_sub(peer.at) < FORGET_AFTER
        });
        let offered = end as u16;
        let offers = match fresh {
            Some(peer) if peer.offers == 0 => return true,
            // The SYN again: the peer may have thrown the first one away.
            Some(peer) if peer.offered == offered || peer.offers >= OFFERS_MAX => return false,
            Some(peer) => peer.offers + 1,
            None => 1,
        };
        self.put(Peer {
            remote,
            offered,
            offers,
            at: now,
        });
        true
    }

    /// `remote` has sent a compressed header, or a full one.
    pub(super) fn note_understanding(&mut self, remote: u16, now: Instant) {
        self.put(Peer {
            remote,
            offered: 0,
            offers: 0,
            at: ticks(now),
        });
    }

    /// Puts a peer first, in place of its earlier entry or of the peer heard least recently.
    fn put(&mut self, peer: Peer) {
        let known = self.known.iter();
        let at = known
            .take(PEERS_MAX - 1)
            .take_while(|known| known.remote != peer.remote)
            .count();
        if let Some(moved) = self.known.get_mut(..=at) {
            moved.rotate_right(1);
        }
        if let Some(first) = self.known.first_mut() {
            *first = peer;
        }
    }
}

const fn ticks(now: Instant) -> u32 {
    (now.as_micros() >> TICK_SHIFT) as u32
}

/// A tick is 2^20 µs, about 1.05 s.
const TICK_SHIFT: u32 = 20;
/// A peer is forgotten after one hour, in ticks.
const FORGET_AFTER: u32 = 3_433;
/// Offers to a peer until it is left alone: an offer or its answer may be lost on the way.
const OFFERS_MAX: u8 = 3;
/// Peers remembered; a router with more forgets those that it talks to least.
const PEERS_MAX: usize = 8;
