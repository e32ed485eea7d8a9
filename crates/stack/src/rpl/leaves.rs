//! The leaves that this router speaks for: nodes without RPL, of which it tells the root (RFC
//! 9010).
//!
//! Place: the node above keeps them, since they register with it; here one of them at a time is on
//! its way to the root. Each has a DAO of its own, because the root may know a later router of one
//! of them and says so by the status of its answer. The transaction of the leaf's registration is
//! the path sequence, so whichever router the leaf went to last counts.
//! Left out: storing mode, where this node is a leaf itself.
//! Sources: RFC 9010 §9.2.1 and §9.2.2, RFC 6550 §6.4 and §6.5.

use super::dao::status;
use super::{ControlMessage, Destination, Dodag, Rpl, RplAction, is_due, jittered, send};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::lollipop;
use crate::wire::rpl::{DaoAck, mode};

/// A leaf, as the root hears of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The identifier of its address in the prefix of the DODAG.
    pub iid: [u8; 8],
    /// The transaction of its registration.
    pub sequence: u8,
    /// For how long it is registered, minutes; 0: it is not any more.
    pub lifetime_min: u16,
}

/// What the root made of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafOutcome {
    /// The root knows of it.
    Entered,
    /// It is at another router since.
    Moved,
    /// The root has no room for it, or has not answered.
    Failed,
}

/// The leaf that is on its way to the root.
#[derive(Debug)]
pub(super) struct State {
    pub(super) leaf: Option<Leaf>,
    /// Of its DAO.
    sequence: u8,
    tries: u8,
    at: Option<Instant>,
    outcome: Option<LeafOutcome>,
    /// The root may have lost them all.
    are_lost: bool,
}

impl State {
    pub(super) const NEW: Self = Self {
        leaf: None,
        sequence: 0,
        tries: 0,
        at: None,
        outcome: None,
        are_lost: false,
    };

    pub(super) const fn at(&self) -> Option<Instant> {
        self.at
    }

    pub(super) const fn has_news(&self) -> bool {
        self.outcome.is_some() || self.are_lost
    }

    pub(super) const fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The root may know none of them any more.
    pub(super) const fn lose(&mut self) {
        self.are_lost = true;
    }

    /// Takes the root's answer, if it is one about a leaf.
    pub(super) fn on_ack(&mut self, ack: &DaoAck<'_>) -> bool {
        if self.tries == 0 || self.at.is_none() || ack.sequence != self.sequence {
            return false;
        }
        self.end(match ack.status {
            0..status::REJECTED => LeafOutcome::Entered,
            status::LEAF_MOVED => LeafOutcome::Moved,
            _ => LeafOutcome::Failed,
        });
        true
    }

    const fn end(&mut self, outcome: LeafOutcome) {
        self.at = None;
        self.outcome = Some(outcome);
    }
}

impl Rpl<'_> {
    /// Whether a leaf can be spoken for now: none is on its way, and there is a way.
    pub fn can_advertise_leaf(&self) -> bool {
        let speaks = |dodag: &Dodag| dodag.mode == mode::NON_STORING;
        let has_way = self.parent.is_some() && self.dodag.as_ref().is_some_and(speaks);
        has_way && self.leaves.leaf.is_none()
    }

    /// Tells the root of a leaf; [`RplAction::Leaf`] says what came of it. Only where
    /// [`Self::can_advertise_leaf`].
    pub fn advertise_leaf(&mut self, leaf: Leaf, now: Instant) {
        self.dao.counter = lollipop::next(self.dao.counter);
        self.leaves = State {
            leaf: Some(leaf),
            sequence: self.dao.counter,
            at: Some(now),
            are_lost: self.leaves.are_lost,
            ..State::NEW
        };
    }

    /// What is new of leaves, and the DAO that is due.
    pub(super) fn poll_leaves(&mut self, now: Instant, rng: &mut Rng) -> Option<RplAction> {
        if core::mem::take(&mut self.leaves.are_lost) {
            return Some(RplAction::LeavesLost);
        }
        if let Some(outcome) = self.leaves.outcome.take() {
            return Some(RplAction::Leaf(self.leaves.leaf.take()?, outcome));
        }
        if !is_due(self.leaves.at, now) {
            return None;
        }
        let id = self.dodag.as_ref().map(|dodag| dodag.id);
        match id.filter(|_| self.parent.is_some() && self.leaves.tries < TRIES_MAX) {
            Some(id) => {
                let wait_ms = RETRY_MS << self.leaves.tries;
                self.leaves.tries += 1;
                self.leaves.at = Some(jittered(now, wait_ms, rng));
                Some(send(Destination::Node(id), ControlMessage::Leaf))
            }
            None => {
                self.leaves.end(LeafOutcome::Failed);
                self.poll_leaves(now, rng)
            }
        }
    }
}

/// DAOs about one leaf without an answer, after which the next leaf has its turn.
const TRIES_MAX: u8 = 4;

/// Milliseconds to the first repetition, and as much again at random; then twice as long.
const RETRY_MS: u32 = 1_500;
