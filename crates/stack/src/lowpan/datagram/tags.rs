//! Datagram tags of this node's own.

use crate::random::{KeyedHash, Rng};

/// The tags of this node's packets: all 65,536 values, in an order that depends on a secret key. So
/// the next tag cannot be predicted from overheard ones, a tag after a reboot does not continue an
/// earlier packet, and no tag is reused before all others have been used.
#[derive(Debug)]
pub(super) struct Tags {
    /// The position of the next tag in that order.
    pub(super) next: u16,
    hash: KeyedHash,
}

impl Tags {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            next: rng.next_u32() as u16,
            hash: rng.keyed_hash(),
        }
    }

    pub(super) fn draw(&mut self) -> u16 {
        let tag = permute(self.next, &self.hash);
        self.next = self.next.wrapping_add(1);
        tag
    }
}

/// The tag at a place: four rounds of a Feistel network, which makes a permutation of any hash
/// (Luby and Rackoff, 1988).
fn permute(place: u16, hash: &KeyedHash) -> u16 {
    let [mut left, mut right] = place.to_be_bytes();
    for round in 0..4 {
        let word = [round, right, 0, 0, 0, 0, 0, 0];
        (left, right) = (right, left ^ hash.hash(&[&[word]]) as u8);
    }
    u16::from_be_bytes([left, right])
}
