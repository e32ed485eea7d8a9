//! The behaviour of a node while it has no place in a DODAG: a mote poisons its sub-DODAG and asks
//! for DIOs, ever more seldom; a root listens before it sends a DIO.

use super::{ControlMessage, Destination, INFINITE_RANK, Rpl, RplAction, is_due, jittered, send};
use crate::random::Rng;
use crate::time::{Duration, Instant};

/// The timer and progress of a node without a place in a DODAG.
#[derive(Debug)]
pub(super) struct State {
    /// When the next step is due; `None` while the node has a place.
    at: Option<Instant>,
    /// Steps done, or left out: first poisonings, then solicitations.
    step: u8,
    /// Solicitations in a row at the shortest interval.
    hurried: u8,
    /// Places lost in a row that no root has acknowledged: there may be none.
    in_vain: u8,
}

impl State {
    pub(super) const NEW: Self = Self {
        at: None,
        step: 0,
        hurried: 0,
        in_vain: 0,
    };

    /// The node is switched on.
    pub(super) fn start(&mut self, is_root: bool, now: Instant, rng: &mut Rng) {
        let (step, wait_max) = match is_root {
            true => (0, ROOT_DELAY_MAX),
            false => (POISONINGS, MOTE_DELAY_MAX),
        };
        self.step = step;
        self.at = Some(now + rng.uniform(wait_max));
    }

    /// The node has lost its place; `poisons`: neighbours know it as a way to the root.
    /// `was_reachable`: the root had acknowledged its route there.
    pub(super) fn begin(
        &mut self,
        (poisons, was_reachable): (bool, bool),
        now: Instant,
        rng: &mut Rng,
    ) {
        (self.in_vain, self.hurried) = match was_reachable {
            true => (0, HURRIED_SOLICITATIONS),
            false => (self.in_vain.saturating_add(1), 0),
        };
        self.step = if poisons { 0 } else { POISONINGS };
        self.at = Some(now + rng.uniform(POISON_DELAY_MAX));
    }

    pub(super) const fn end(&mut self) {
        self.at = None;
    }

    /// How often a wait is doubled, since places did not last: motes whose root is gone, and which
    /// count on one another for a while, fall silent.
    pub(super) fn doublings(&self) -> u8 {
        let counted = self.in_vain.saturating_sub(IN_VAIN_FREE);
        counted.min(SOLICITATION_DOUBLINGS_MAX)
    }

    pub(super) const fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Whether neighbours may still take this node for a way to the root, so that none of them is
    /// to become the parent.
    pub(super) const fn is_poisoning(&self) -> bool {
        self.at.is_some() && self.step < POISONINGS
    }

    /// Whether the node has had no place for so long that nodes of a loop have given one another
    /// up.
    pub(super) const fn is_settled(&self) -> bool {
        self.at.is_some() && self.patience() >= SETTLED_SOLICITATIONS
    }

    /// Whether the DODAG of before has been silent for a minute or two.
    pub(super) const fn is_long(&self) -> bool {
        self.patience() >= LONG_SOLICITATIONS
    }

    /// Solicitations, those left out that came before their interval doubles.
    const fn patience(&self) -> u8 {
        self.step.saturating_sub(POISONINGS + self.hurried)
    }
}

impl Rpl<'_> {
    pub(super) fn poll_detached(&mut self, now: Instant, rng: &mut Rng) -> Option<RplAction> {
        if !is_due(self.detached.at, now) {
            return None;
        }
        let step = self.detached.step;
        self.detached.step = step.saturating_add(1);
        if self.is_root() {
            if step > 0 {
                self.speak_as_root(now, rng);
                return None;
            }
            self.detached.at = Some(now + ROOT_LISTENS);
            return Some(send(Destination::All, ControlMessage::Dis));
        }
        if self.has_left && step >= POISONINGS {
            self.detached.end();
            return None;
        }
        let doublings = self
            .detached
            .patience()
            .saturating_sub(1)
            .saturating_add(self.detached.doublings())
            .min(SOLICITATION_DOUBLINGS_MAX);
        let wait_ms = match step < POISONINGS {
            true => POISON_INTERVAL_MS,
            false => SOLICITATION_INTERVAL_MS << doublings,
        };
        self.detached.at = Some(jittered(now, wait_ms, rng));
        if self.detached.is_settled() {
            self.lowest = INFINITE_RANK;
        }
        // Neighbours that were heard while this node took itself back may be the parent from now.
        self.is_dirty = true;
        let message = match step < POISONINGS {
            true => ControlMessage::Dio { full: false },
            false => ControlMessage::Dis,
        };
        Some(send(Destination::All, message))
    }

    fn speak_as_root(&mut self, now: Instant, rng: &mut Rng) {
        self.detached.end();
        if let Some(dodag) = &self.dodag {
            self.rank = dodag.unit();
            self.cost = 0;
        }
        self.start_trickle(now, rng);
    }
}

/// DIOs without a rank, in case that one is lost. Meanwhile descendants learn that they are.
const POISONINGS: u8 = 2;
const POISON_DELAY_MAX: Duration = Duration::from_millis(50);

/// Time between poisoning DIOs and up to the first DIS, milliseconds, and as much again at random:
/// once what may wait in a queue has gone.
const POISON_INTERVAL_MS: u32 = 200;

/// Motes that are switched on together ask at different times, and those near the root hear its
/// DIO before.
const MOTE_DELAY_MAX: Duration = Duration::from_secs(1);

/// Time between the first two DISs, milliseconds, and as much again at random; it doubles up to 16
/// s and as much again.
const SOLICITATION_INTERVAL_MS: u32 = 1_000;
const SOLICITATION_DOUBLINGS_MAX: u8 = 4;

/// Solicitations after a place was lost that had served, before their interval doubles: about six
/// seconds, for as long as a radio may take to be back that was reset or unplugged.
const HURRIED_SOLICITATIONS: u8 = 4;

/// The places in a row that came to nothing before waits double: joining a crowd takes that many.
const IN_VAIN_FREE: u8 = 2;

/// DIS (half a minute to one) after which any rank and version will do.
const SETTLED_SOLICITATIONS: u8 = 5;

/// DIS (one to two minutes) after which another DODAG will do.
const LONG_SOLICITATIONS: u8 = 7;

/// The longest random delay before a root that has been switched on sends a DIS, and the time for
/// which it then listens for DIOs of its own DODAG. If it hears one, it begins the next version.
/// Neighbours answer within `Imin`.
const ROOT_DELAY_MAX: Duration = Duration::from_millis(100);
const ROOT_LISTENS: Duration = Duration::from_millis(800);
