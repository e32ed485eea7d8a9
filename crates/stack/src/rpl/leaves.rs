//! Leaves without RPL that register with this router, which advertises them to the root (RFC 9010).
//!
//! Place: the node above keeps the leaves; here one leaf at a time is advertised. Each has a DAO of
//! its own, because the root may know a later router of one leaf and then answers with a status for
//! it. The transaction ID of the leaf's registration is the path sequence, so the router that the
//! leaf registered with last counts. Left out: storing mode, where this node is a leaf itself.
//! Sources: RFC 9010 §9.2.1 and §9.2.2, RFC 6550 §6.4 and §6.5.

use super::dao::status;
use super::{ControlMessage, Destination, Dodag, Rpl, RplAction, is_due, jittered, send};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::lollipop;
use crate::wire::rpl::{DaoAck, mode};

/// A leaf as it is advertised to the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Interface identifier of the leaf's address in the prefix of the DODAG.
    pub iid: [u8; 8],
    /// Transaction ID (TID) of the leaf's registration (RFC 8505 §5.2).
    pub sequence: u8,
    /// Lifetime of the registration, minutes; 0: it has ended.
    pub lifetime_min: u16,
}

/// The root's answer about a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafOutcome {
    /// The root has entered the leaf's route.
    Entered,
    /// The leaf has registered with another router since.
    Moved,
    /// The root has no room for the leaf, or has not answered.
    Failed,
}

/// The leaf whose DAO waits for the root's answer.
#[derive(Debug)]
pub(super) struct State {
    pub(super) leaf: Option<Leaf>,
    /// `DAOSequence` of the DAO about the leaf.
    sequence: u8,
    tries: u8,
    at: Option<Instant>,
    outcome: Option<LeafOutcome>,
    /// The root may have lost the routes of all leaves.
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

    /// Notes that the root may have lost the routes of all leaves.
    pub(super) const fn lose(&mut self) {
        self.are_lost = true;
    }

    /// Takes the root's answer, if its sequence is that of the leaf's DAO.
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
    /// Whether a leaf can be advertised now: no other one waits for an answer, and there is a
    /// parent.
    pub fn can_advertise_leaf(&self) -> bool {
        let speaks = |dodag: &Dodag| dodag.mode == mode::NON_STORING;
        let has_way = self.parent.is_some() && self.dodag.as_ref().is_some_and(speaks);
        has_way && self.leaves.leaf.is_none()
    }

    /// Advertises a leaf to the root by a DAO; [`RplAction::Leaf`] reports the outcome. To be
    /// called only if [`Self::can_advertise_leaf`].
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

    /// The outcome for a leaf, or the DAO about it that is due.
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
        if self.parent.is_none() || self.leaves.tries >= TRIES_MAX {
            self.leaves.end(LeafOutcome::Failed);
            return self.poll_leaves(now, rng);
        }
        let wait_ms = RETRY_MS << self.leaves.tries;
        self.leaves.tries += 1;
        self.leaves.at = Some(jittered(now, wait_ms, rng));
        Some(send(Destination::Root, ControlMessage::Leaf))
    }
}

/// DAOs about one leaf without an answer, after which the next leaf has its turn.
const TRIES_MAX: u8 = 4;

/// Milliseconds to the first repetition, and as much again at random; then twice as long.
const RETRY_MS: u32 = 1_500;
