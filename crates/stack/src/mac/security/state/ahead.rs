//! What is computed before a frame has come: the keystream with which a frame begins that may fire
//! what waits for it.
//!
//! Place: part of [`Security`]. `ahead_absent` stands in its place in a build without conditional
//! transmission, the feature `cit`, where no frame fires another.

use super::super::{ccm, index, nonce};
use super::{Peer, Security};
use crate::time::Instant;
use crate::wire::ieee802154::Auxiliary;

/// First bytes of the keystreams of the next frames from one neighbour.
#[derive(Debug, Default)]
pub(super) struct Ahead(Option<Keystream>);

/// Keystream computed before its frame has come.
#[derive(Clone, Copy)]
struct Keystream {
    source: [u8; 8],
    sequence: u32,
    /// The counter of the first of them.
    counter: u32,
    bytes: [u8; 2],
}

impl core::fmt::Debug for Keystream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Keystream(..)")
    }
}

impl Ahead {
    /// Forgets what was computed, because the key is another one now.
    pub(super) const fn forget(&mut self) {
        self.0 = None;
    }
}

impl Security<'_> {
    /// Computes the keystream ahead with which the next frames of this neighbour begin.
    pub(in crate::mac) fn prepare(&mut self, source: [u8; 8]) {
        let Some((sequence, counter)) = self.peers.find(source).map(Peer::next) else {
            return;
        };
        if sequence != self.sequence {
            return;
        }
        let is_ready = |keystream: Keystream| {
            (keystream.source, keystream.sequence, keystream.counter) == (source, sequence, counter)
        };
        if !self.ahead.0.is_some_and(is_ready) {
            self.ahead.0 = Some(Keystream {
                source,
                sequence,
                counter,
                bytes: self.first_bytes(source, counter),
            });
        }
    }

    /// The first keystream byte of two frames of this neighbour: of the one with `counter`, and of
    /// the next.
    fn first_bytes(&mut self, source: [u8; 8], counter: u32) -> [u8; 2] {
        self.counters.cipher_calls = self.counters.cipher_calls.wrapping_add(1);
        let nonces = [counter, counter.wrapping_add(1)].map(|it| nonce(source, it, self.level));
        ccm::first_bytes(&self.keyed, nonces)
    }

    /// The first byte in clear of a frame that has begun to come, where it may fire what waits for
    /// it.
    pub(in crate::mac) fn peek(
        &mut self,
        source: [u8; 8],
        auxiliary: &Auxiliary,
        first: u8,
        now: Instant,
    ) -> Option<u8> {
        let is_current = auxiliary.key_index == index(self.sequence);
        if auxiliary.level != self.level || auxiliary.counter == u32::MAX || !is_current {
            return None;
        }
        let peer = self.peers.find(source)?;
        peer.admits(self.sequence, auxiliary.counter).ok()?;
        if !peer.fires(now) {
            self.counters.muted_heads = self.counters.muted_heads.wrapping_add(1);
            return None;
        }
        let wanted = auxiliary.counter;
        let keystream = self
            .ahead
            .0
            .filter(|keystream| keystream.source == source && keystream.sequence == self.sequence);
        let place = keystream.and_then(|keystream| wanted.checked_sub(keystream.counter));
        let stream = keystream.zip(place).and_then(|(keystream, place)| {
            let place = usize::try_from(place).ok()?;
            keystream.bytes.get(place).copied()
        });
        let stream = stream.unwrap_or_else(|| {
            let [stream, _] = self.first_bytes(source, wanted);
            stream
        });
        Some(first ^ stream)
    }

    /// As [`Self::peek`], of the last frame that was believed, which has come again.
    pub(in crate::mac) fn peek_again(
        &mut self,
        source: [u8; 8],
        auxiliary: &Auxiliary,
        first: u8,
    ) -> Option<u8> {
        let is_current = auxiliary.key_index == index(self.sequence);
        if auxiliary.level != self.level || !is_current {
            return None;
        }
        let [stream, _] = self.first_bytes(source, auxiliary.counter);
        Some(first ^ stream)
    }
}
