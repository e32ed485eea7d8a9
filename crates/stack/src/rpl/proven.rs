//! Neighbours that have acknowledged a frame: they exist, which an invented address does not.
//!
//! A router passes to each child at least the root's answers to its DAOs, so its children are among
//! them, though most have no slot of a candidate. The table has [`PLACES`] places of one byte of a
//! hash each: an invented address passes for a proven neighbour once in 255 times at most, and a
//! later neighbour may take the place of an earlier one. Left out: an attacker that sends in the
//! name of a proven neighbour passes for it.

use super::iid::Iid;

#[derive(Debug)]
pub(super) struct ProvenNeighbours([u8; PLACES]);

impl ProvenNeighbours {
    pub(super) const NONE: Self = Self([0; PLACES]);

    /// A neighbour has acknowledged a frame.
    pub(super) fn note(&mut self, iid: Iid) {
        let (place, tag) = place_of(iid);
        if let Some(entry) = self.0.get_mut(place) {
            *entry = tag;
        }
    }

    /// Whether a neighbour has acknowledged a frame, as far as is known.
    pub(super) fn has(&self, iid: Iid) -> bool {
        let (place, tag) = place_of(iid);
        self.0.get(place) == Some(&tag)
    }
}

/// The index of a neighbour in the table and its fingerprint, one byte; 0 marks an empty entry, so
/// no fingerprint is 0.
fn place_of(iid: Iid) -> (usize, u8) {
    // Twice Fibonacci hashing: the upper bits of a product depend on all others, and identifiers
    // that count up would fill few places after one.
    let hash = iid.mixed().wrapping_mul(0x9e37_79b1);
    let hash = (hash ^ hash >> 15).wrapping_mul(0x85eb_ca6b);
    let [tag, place, ..] = hash.to_be_bytes();
    (usize::from(place) % PLACES, tag.max(1))
}

/// How many are known at most: twice as many as a parent usually has children.
const PLACES: usize = 64;
