//! Which neighbour is the parent, and what rank follows.
//!
//! Sources: RFC 6550 §8.2.2 (no loops: a parent of a lower rank, or none that may be a descendant),
//! RFC 6719 §3.2 and §3.3 (least cost, with hysteresis).

use super::candidates::Candidate;
use super::iid::Iid;
use super::objective::{ETX_UNIT, INFINITE_RANK, LINK_ETX_MAX, Objective, SWITCH_THRESHOLD};
use super::{Dodag, Rpl, SETTLED};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::rpl::Configuration;

impl Rpl<'_> {
    /// Takes the best candidate as the parent, if it is better than the present parent by enough,
    /// and computes this node's rank.
    pub(super) fn choose(&mut self, now: Instant, rng: &mut Rng) {
        let dodag = self.dodag.as_ref().filter(|_| !self.is_root());
        let Some(configuration) = dodag.map(|dodag| dodag.configuration) else {
            return;
        };
        self.note_calm(now);
        let usable = |candidate: &Candidate| {
            let (cost, _) = self.path_over(candidate, &configuration)?;
            Some((cost, candidate.iid))
        };
        let best = self.candidates.iter().filter_map(usable).min();
        let best = best.filter(|_| !self.detached.is_poisoning() && !self.has_left);
        let current = self.parent.and_then(|parent| self.candidates.find(parent));
        let current = current.and_then(usable);
        let chosen = match (current, best) {
            (_, None) => None,
            (None, Some((_, iid))) => Some(iid),
            (Some(current), Some(best)) => Some(self.better_of(current, best, now)),
        };
        match chosen {
            None if self.parent.is_some() => self.detach(&configuration, now, rng),
            None => {}
            Some(parent) => {
                let is_other = self.parent != Some(parent);
                self.take_parent(parent, now, rng);
                self.take_rank(parent, &configuration, now, rng);
                if is_other {
                    self.catch_up_with_request(now);
                }
            }
        }
        self.plan_probe(now, rng);
    }

    /// Stops grading links by their signals once the motes around have ceased to join. While many
    /// motes talk at once a weak link carries little; in quiet times it may be as good as a strong
    /// one, and lead over fewer hops.
    fn note_calm(&mut self, now: Instant) {
        let was_calm = self.is_calm;
        let is_settled = self.is_settled(now) && now.since(self.version_since) >= SETTLED;
        self.is_calm = self.parent.is_some() && (was_calm || is_settled);
        if self.is_calm && !was_calm {
            self.candidates.forget_signals();
        }
    }

    /// The cost of the path over a candidate, and the rank that this node would have; `None` where
    /// it is not to be used.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn path_over(
        &self,
        candidate: &Candidate,
        configuration: &Configuration,
    ) -> Option<(u16, u16)> {
        let objective = Objective::or_least_etx(configuration);
        let unit = configuration.min_hop_rank_increase;
        let has_metrics = self.dodag.as_ref().is_some_and(|dodag| dodag.has_metrics);
        let etx = candidate.etx();
        let is_parent = self.is_parent(candidate.iid);
        let cost = objective.path_cost(candidate.base, etx, unit)?;
        let rank = objective.rank(cost, candidate.rank, unit, has_metrics);
        // Descendants count on the lowest rank that they may have heard, plus one hop.
        let is_no_descendant = is_parent
            || candidate.rank < self.lowest_heard.saturating_add(unit)
            || candidate.rank < self.rank;
        let is_usable = candidate.is_proven()
            && candidate.rank != INFINITE_RANK
            && rank != INFINITE_RANK
            && rank <= self.rank_max(configuration)
            && (is_parent || etx <= LINK_ETX_MAX)
            && is_no_descendant;
        is_usable.then_some((cost, rank))
    }

    /// The highest rank that this node may take in this version.
    pub(super) const fn rank_max(&self, configuration: &Configuration) -> u16 {
        match configuration.max_rank_increase {
            0 => INFINITE_RANK,
            increase => self.lowest.saturating_add(increase),
        }
    }

    /// The present parent, or a candidate that is much cheaper, or a little cheaper for long
    /// enough.
    fn better_of(&mut self, current: (u16, Iid), best: (u16, Iid), now: Instant) -> Iid {
        let (mut cost, mut at_once) = (current.0, SWITCH_THRESHOLD);
        // Under load a path's own frames collide, and would on any other one: only what is far
        // cheaper is worth a move at once, and a little counts beside a parent without collisions.
        let parent = self.candidates.find(current.1);
        if let Some(parent) = parent.filter(|parent| parent.is_loaded(now))
            && self.is_settled(now)
        {
            cost = parent.base.saturating_add(ETX_UNIT);
            at_once = 2 * SWITCH_THRESHOLD;
        }
        if current.0.saturating_sub(best.0) > at_once {
            return best.1;
        }
        let saves = cost.saturating_sub(best.0);
        let (better, since) = self.better;
        if saves < MARGIN || better != best.1 {
            let better = if saves < MARGIN { current.1 } else { best.1 };
            self.better = (better, now);
            return current.1;
        }
        // A choice among strangers is soon reviewed; one that has stood for long stands longer.
        let quarter = Duration::from_micros(since.since(self.parent_since).as_micros() >> 2);
        let patience = quarter.clamp(PATIENCE_MIN, PATIENCE_MAX);
        match now.since(since) >= patience {
            true => best.1,
            false => current.1,
        }
    }

    fn take_parent(&mut self, parent: Iid, now: Instant, rng: &mut Rng) {
        let old = self.parent.replace(parent);
        if old == Some(parent) {
            return;
        }
        self.detached.end();
        // Open questions concerned the old parent.
        self.candidates.end_questions();
        self.is_parent_news = true;
        self.parent_since = now;
        if self.dodag.as_ref().is_some_and(Dodag::is_storing) {
            self.no_path_to = old;
        }
        if old.is_none() {
            // While there was no way up, the root may have begun anew.
            self.leaves.lose();
        }
        self.schedule_dao(now, rng);
    }

    fn take_rank(
        &mut self,
        parent: Iid,
        configuration: &Configuration,
        now: Instant,
        rng: &mut Rng,
    ) {
        let parent = self.candidates.find(parent);
        let Some((cost, rank)) = parent.and_then(|parent| self.path_over(parent, configuration))
        else {
            return;
        };
        self.cost = cost;
        self.rank = rank;
        self.lowest = self.lowest.min(rank);
        self.lowest_heard = self.lowest_heard.min(rank);
        if !self.is_router() {
            return;
        }
        if !self.trickle.is_running() {
            self.start_trickle(now, rng);
        }
        // If the rank has risen a lot, a child that still knows the lower rank might have a rank
        // below this node's; if it has fallen a lot, a node with another parent might now prefer
        // this one. Small changes are frequent while motes join, and the DIO of Trickle's next
        // interval announces them in time.
        let unit = configuration.min_hop_rank_increase;
        let far =
            |from: u16, to: u16, units: u16| to >= from.saturating_add(unit.saturating_mul(units));
        self.is_inconsistent |=
            far(self.advertised, rank, RISE) || far(rank, self.advertised, FALL);
    }

    pub(super) fn start_trickle(&mut self, now: Instant, rng: &mut Rng) {
        if let Some(dodag) = &self.dodag {
            let configuration = &dodag.configuration;
            let timer = (
                configuration.interval_min,
                configuration.interval_doublings,
                configuration.redundancy,
            );
            self.advertised = self.rank;
            self.trickle.start(timer, now, rng);
        }
    }

    /// This node has no place any more. Its descendants must not become its parent before they
    /// know, so none of them counts until it has spoken again.
    fn detach(&mut self, configuration: &Configuration, now: Instant, rng: &mut Rng) {
        let safe = self
            .lowest_heard
            .saturating_add(configuration.min_hop_rank_increase);
        let safe = safe.max(self.rank);
        for candidate in self.candidates.iter_mut() {
            if candidate.rank >= safe {
                candidate.rank = INFINITE_RANK;
            }
        }
        let poisons = self.trickle.is_running();
        let was_reachable = self.dao.is_acknowledged();
        self.parent = None;
        self.is_calm = false;
        self.is_parent_news = true;
        self.parent_since = now;
        self.rank = INFINITE_RANK;
        self.cost = INFINITE_RANK;
        self.lowest_heard = INFINITE_RANK;
        self.advertised = INFINITE_RANK;
        self.trickle.stop();
        self.dao.stop();
        self.detached.begin((poisons, was_reachable), now, rng);
    }

    /// Packets down over the parent do not arrive here, although the parent acknowledges packets
    /// that go up. Its link counts as bad until further frames have measured it anew. Without a
    /// better candidate it stays the parent.
    pub(super) fn doubt_parent(&mut self) {
        if let Some(parent) = self.parent {
            self.candidates.doubt(parent);
            self.is_dirty = true;
        }
    }

    /// The parent is part of a loop: it cannot be the parent again before it has announced its rank
    /// anew.
    pub(super) fn bar_parent(&mut self) {
        let parent = self
            .parent
            .and_then(|parent| self.candidates.find_mut(parent));
        if let Some(parent) = parent {
            parent.rank = INFINITE_RANK;
            self.is_dirty = true;
        }
    }
}

/// The change of this node's rank, in whole ranks, from which a DIO is multicast at once.
const RISE: u16 = 1;
const FALL: u16 = 4;

/// Less than a fifth of a transmission is noise of the estimates.
const MARGIN: u16 = 24;

/// How long a candidate must have been a little better: a quarter of the time since the parent was
/// chosen, within these bounds.
const PATIENCE_MIN: Duration = Duration::from_secs(5);
const PATIENCE_MAX: Duration = Duration::from_secs(30 * 60);
