//! The bounds on what strangers cost: decryptions, keys that are derived, challenges and answers.
//!
//! Nothing is kept of a stranger but the challenge that it was sent, and a fixed number of those is
//! open. All strangers share three allowances, and whoever has none of the key can use them up. So
//! none of them may stand between two nodes that have the key:
//!
//! ```text
//! decryptions  more a second than the air carries frames of a usual length; a sender whose
//!              challenge is open needs none
//! derivations  the next sequence needs none: its link key is kept once it was derived
//! proofs       frames for all leave most to frames for this node, and half of the MAC's attempts
//!              in vain; the answer to an open challenge needs none
//! ```
//!
//! Place: part of [`Security`].

use super::super::keys::{LinkKey, index, sequence_of};
use super::super::proof::Proof;
use super::rotation::ROTATES;
use super::{Keyed, Security};
use crate::mac::counters::FrameDrop;
use crate::random::Rng;
use crate::time::{Allowance, Instant};
use crate::wire::ieee802154::Auxiliary;

impl Security<'_> {
    /// Whether a frame may be opened, by all that can be known without the cipher.
    ///
    /// # Errors
    /// Why it may not.
    pub(in crate::mac) fn admit(
        &mut self,
        source: [u8; 8],
        auxiliary: &Auxiliary,
        now: Instant,
    ) -> Result<(), FrameDrop> {
        if self.is_locked() {
            return Err(FrameDrop::UnknownKey);
        }
        if auxiliary.level < self.level {
            return Err(FrameDrop::LowLevel);
        }
        if self.refuses(source) {
            return Err(FrameDrop::NotParent);
        }
        if auxiliary.counter == u32::MAX {
            return Err(FrameDrop::LastCounter);
        }
        let sequence = self.sequence_of(auxiliary, now)?;
        if let Some(peer) = self.peers.find(source) {
            peer.admits(sequence, auxiliary.counter)?;
        }
        // Of a neighbour's name too: a key costs more than the frame that names it.
        let derives = ROTATES && sequence > self.sequence && !self.is_next(sequence);
        let may_derive = !derives || self.derivations.take(now);
        let may_open = !self.is_stranger(source, now) || self.decryptions.take(now);
        match may_derive && may_open {
            true => Ok(()),
            false => Err(FrameDrop::Rationed),
        }
    }

    /// Whether the decryption of a frame from `source` counts: not where this node knows it, or
    /// waits for its answer.
    pub(super) fn is_stranger(&self, source: [u8; 8], now: Instant) -> bool {
        self.peers.find(source).is_none() && self.challenges.current(source, now).is_none()
    }

    fn is_next(&self, sequence: u32) -> bool {
        sequence.checked_sub(self.sequence) == Some(1)
    }

    /// The sequence of a frame's key.
    pub(super) fn sequence_of(
        &self,
        auxiliary: &Auxiliary,
        now: Instant,
    ) -> Result<u32, FrameDrop> {
        if !ROTATES {
            return match auxiliary.key_index == index(self.sequence) {
                true => Ok(self.sequence),
                false => Err(FrameDrop::UnknownKey),
            };
        }
        let sequence = sequence_of(auxiliary.key_index, self.sequence);
        let is_previous = |sequence: u32| {
            // The parent of a child in a Thread network may stay one key behind for long.
            let is_parents = self.is_child() && sequence.checked_add(1) == Some(self.sequence);
            let mut previous = self.previous.iter();
            is_parents
                || previous.any(|previous| previous.sequence == sequence && now < previous.until)
        };
        sequence
            .filter(|&sequence| sequence >= self.sequence || is_previous(sequence))
            .ok_or(FrameDrop::UnknownKey)
    }

    /// The cipher of another sequence than this one's.
    pub(super) fn other_cipher(&mut self, sequence: u32) -> Option<Keyed> {
        if !ROTATES || sequence == self.sequence {
            return None;
        }
        let key = self.other_key(sequence);
        self.counters.keys_made = self.counters.keys_made.wrapping_add(1);
        Some(Keyed::new(self.engine, &key))
    }

    /// The link key of another sequence than this one's: kept, or derived.
    fn other_key(&mut self, sequence: u32) -> LinkKey {
        let is_next = self.is_next(sequence);
        let kept = match &self.previous {
            _ if is_next => self.next_link_key,
            Some(previous) if previous.sequence == sequence => Some(previous.key),
            _ => None,
        };
        let key = kept.unwrap_or_else(|| self.network_of(sequence).link_key(sequence));
        if is_next {
            self.next_link_key = Some(key);
        }
        key
    }

    /// The proof to send back upon a proof. Takes its sender in where the proof answers this node's
    /// challenge. Returns with it whether the sender is known now.
    ///
    /// `numbers`: key index and counter of the frame.
    pub(in crate::mac) fn on_proof(
        &mut self,
        source: [u8; 8],
        (auxiliary, proof): (&Auxiliary, Proof),
        mut is_known: bool,
        now: Instant,
        rng: &mut Rng,
    ) -> (Option<Proof>, bool) {
        let is_right = |answer| self.challenges.take(source, answer, now);
        let is_of_now = proof.answer.is_some_and(is_right);
        if is_of_now && !is_known {
            let sequence = self.sequence_of(auxiliary, now).unwrap_or(self.sequence);
            let is_kin = self.parent.addr == Some(source);
            is_known = self
                .peers
                .insert(source, (sequence, auxiliary.counter), is_kin, now);
            let counters = &mut self.counters;
            let count = match is_known {
                true => &mut counters.proven,
                false => &mut counters.turned_away,
            };
            *count = count.wrapping_add(1);
            self.has_news |= is_known;
        }
        let reply = Proof {
            answer: proof.challenge,
            challenge: match is_known || proof.challenge.is_none() {
                true => None,
                false => self.challenge(source, now, rng),
            },
        };
        // A recording answers nothing that was just asked: whoever does stands in no queue.
        let is_due = reply.answer.is_some() && (is_of_now || self.proofs.take(now));
        let answers = &mut self.counters.answers;
        *answers = answers.wrapping_add(u32::from(is_due));
        (is_due.then_some(reply), is_known)
    }

    /// Challenges a sender that is not known.
    ///
    /// `for_all`: its frame was for all, and whether the MAC has attempts to spare for a neighbour
    /// that may not be there. Such a sender never displaces a known neighbour. Recordings of
    /// such frames can be of nodes anywhere in the mesh: they leave a part of the challenges to
    /// senders of frames for this node.
    pub(in crate::mac) fn challenge_stranger(
        &mut self,
        source: [u8; 8],
        for_all: Option<bool>,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Proof> {
        let for_all = for_all.filter(|_| self.parent.addr != Some(source));
        let may_send = match for_all {
            None => self.proofs.allows(now),
            Some(can_spare) => {
                can_spare && self.peers.has_room() && self.proofs.allows_beyond(CLAIMED, now)
            }
        };
        if !may_send {
            return None;
        }
        let challenge = self.make_challenge(source, now, rng)?;
        self.proofs.take(now);
        self.counters.challenges = self.counters.challenges.wrapping_add(1);
        Some(Proof {
            challenge: Some(challenge),
            answer: None,
        })
    }

    pub(super) fn make_challenge(
        &mut self,
        addr: [u8; 8],
        now: Instant,
        rng: &mut Rng,
    ) -> Option<[u8; 8]> {
        self.challenges.make((addr, self.own.next()), now, rng)
    }

    /// The challenge that goes with an answer.
    fn challenge(&mut self, addr: [u8; 8], now: Instant, rng: &mut Rng) -> Option<[u8; 8]> {
        let made = self.challenges.current(addr, now);
        let challenge = made.or_else(|| self.make_challenge(addr, now, rng));
        let counters = &mut self.counters;
        counters.challenges = counters
            .challenges
            .wrapping_add(u32::from(challenge.is_some()));
        challenge
    }
}

/// Frames of strangers that are decrypted at once, and milliseconds for each more. The air carries
/// 230 full frames a second, and 320 of 90 bytes: a smaller share lets a stranger keep a neighbour
/// out that this node does not know yet, of whose frames as large a part is refused as of the
/// stranger's. A full frame takes 94,000 instructions, hence strangers that send 250 full frames a
/// second cost 23.5 million a second: three quarters of a processor of 32 MHz. A stranger that
/// forges in the name of a neighbour costs as much, and there the air alone is the bound.
pub(super) const DECRYPTIONS: Allowance = Allowance::new(32, 4);

/// Link keys that are derived at once, and milliseconds for each more.
pub(super) const DERIVATIONS: Allowance = Allowance::new(16, 100);

/// Challenges and answers sent at once, and milliseconds for each more.
pub(super) const PROOFS: Allowance = Allowance::new(16, 125);

/// How many of the burst are left to senders of frames for this node. Frames for all then hold half
/// of the challenges that may be open.
const CLAIMED: u8 = 12;
