//! Which neighbour is tried next with a short DIO: its acknowledgement shows how good the link is.

use super::candidates::{Candidate, Iid, ticks};
use super::objective::ETX_UNIT;
use super::{Destination, Outgoing, Rpl, Verdict, is_due, jittered, send};
use crate::random::Rng;
use crate::time::Instant;

/// Why a neighbour is tried, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Why {
    /// The parent did not take the last frame.
    Doubt,
    /// There is no parent, and this might be it.
    Wanted,
    /// It might be better than the parent, but little is known of its link.
    Promise,
    /// It was silent for long, or is the parent and was sent nothing.
    Routine,
}

impl Why {
    /// Milliseconds to wait, and as much again at random.
    const fn wait_ms(self) -> u32 {
        match self {
            // Longer than a frame's attempts take: more would only fill the queue.
            Self::Doubt => 150,
            Self::Wanted => 40,
            Self::Promise => 700,
            Self::Routine => 20_000,
        }
    }
}

impl Rpl<'_> {
    /// Sets the next probe, or brings it forward.
    pub(super) fn plan_probe(&mut self, now: Instant, rng: &mut Rng) {
        if self.has_left {
            self.probe_at = None;
            return;
        }
        let Some((why, _)) = self.next_probe(now) else {
            // What is routine some time from now must not wait for an event to be seen.
            self.probe_at = self
                .probe_at
                .or(Some(jittered(now, Why::Routine.wait_ms(), rng)));
            return;
        };
        let at = jittered(now, why.wait_ms(), rng);
        self.probe_at = Some(self.probe_at.map_or(at, |planned| planned.min(at)));
    }

    pub(super) fn poll_probe(&mut self, now: Instant, rng: &mut Rng) -> Option<Verdict> {
        if !is_due(self.probe_at, now) {
            return None;
        }
        self.probe_at = None;
        let next = self.next_probe(now);
        if let Some(candidate) = next.and_then(|(_, iid)| self.candidates.find_mut(iid)) {
            candidate.tested = ticks(now);
        }
        self.plan_probe(now, rng);
        let (_, iid) = next?;
        let is_ahead = self.candidates.find(iid).is_some_and(|it| it.is_ahead);
        let message = match is_ahead {
            // Its answer is worth more than its acknowledgement.
            true => Outgoing::Dis,
            false => Outgoing::Dio { full: false },
        };
        Some(send(Destination::Neighbour(iid), message))
    }

    fn next_probe(&self, now: Instant) -> Option<(Why, Iid)> {
        let reasons = self.candidates.iter().filter_map(|candidate| {
            let why = self.why_probe(candidate, now)?;
            Some((why, candidate.tested, candidate.base, candidate.iid()))
        });
        reasons.min().map(|(why, _, _, iid)| (why, iid))
    }

    fn why_probe(&self, candidate: &Candidate, now: Instant) -> Option<Why> {
        let is_parent = self.parent == Some(candidate.iid());
        let is_silent = candidate.unanswered() > 0;
        let idle = ticks(now).saturating_sub(candidate.tested);
        // The cost over it as far as is known, and were its link perfect.
        let cost = candidate.base.saturating_add(candidate.etx());
        let best = candidate.base.saturating_add(ETX_UNIT);
        let idle_min = match is_parent || cost < self.cost.saturating_add(2 * ETX_UNIT) {
            true => IDLE_TICKS,
            false => IDLE_LONG_TICKS,
        };
        match () {
            () if is_parent && is_silent => Some(Why::Doubt),
            () if !candidate.is_worth_testing(idle) => None,
            () if candidate.is_ahead => Some(Why::Wanted),
            () if self.parent.is_none() && (!candidate.is_proven() || is_silent) => {
                Some(Why::Wanted)
            }
            () if candidate.is_untested() && best.saturating_add(PROMISE) < self.cost => {
                Some(Why::Promise)
            }
            () if idle >= idle_min && (is_parent || best < self.cost) => Some(Why::Routine),
            () => None,
        }
    }
}

/// By how much a candidate must be able to beat the parent, to be tried again and again.
const PROMISE: u16 = ETX_UNIT / 2;

/// Silence after which a link's quality may have changed, in steps of 1.05 s.
const IDLE_TICKS: u32 = 30;

/// The same for one that is far worse than the parent.
const IDLE_LONG_TICKS: u32 = 600;
