//! Handling of received DIOs and DISs.
//!
//! Source: RFC 6550 §8.2 and §8.3.

use core::cmp::Ordering;
use core::net::Ipv6Addr;

use super::candidates::{ASKED, CLAIMS, Candidate, LATER, QUESTIONS, ticks};
use super::iid::Iid;
use super::objective::{ETX_UNIT, INFINITE_RANK};
use super::probe::Question;
use super::{ControlMessage, Dodag, MessageDrop, Rpl};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::lollipop;
use crate::wire::ndp::{PrefixBody, PrefixBytes, prefix_in, usable_prefix, valid_lifetime_s};
use crate::wire::rpl::configuration::COMPRESSED;
use crate::wire::rpl::{
    CONFIGURATION_LEN, Configuration, Dio, Dis, Metrics, RplOptions, Solicited, kind, mode,
};

/// The options of a DIO.
struct DioOptions<'a> {
    configuration: Option<&'a [u8; CONFIGURATION_LEN]>,
    prefix: Option<&'a PrefixBody>,
    etx: Option<u16>,
}

impl<'a> DioOptions<'a> {
    fn of(options: &RplOptions<'a>) -> Self {
        let mut seen = Self {
            configuration: None,
            prefix: None,
            etx: None,
        };
        for (kind, body) in options.bodies() {
            match kind {
                kind::CONFIGURATION => seen.configuration = body.try_into().ok(),
                kind::PREFIX if seen.prefix.is_none() => {
                    seen.prefix = usable_prefix(body).filter(|it| is_for_addresses(it));
                }
                kind::METRICS => seen.etx = Metrics::parse(body).ok().and_then(|it| it.etx()),
                _ => {}
            }
        }
        seen
    }
}

fn is_for_addresses(prefix: &PrefixBody) -> bool {
    valid_lifetime_s(prefix) > 0 && prefix_in(prefix) != Ipv6Addr::UNSPECIFIED
}

impl Rpl<'_> {
    pub(super) fn on_dis(
        &mut self,
        from: Iid,
        to_all: bool,
        dis: &Dis<'_>,
        now: Instant,
    ) -> Result<(), MessageDrop> {
        let Some(dodag) = self.dodag.as_ref() else {
            return Err(MessageDrop::Unwanted);
        };
        let id = (dodag.instance, &dodag.id, dodag.version);
        let is_other =
            |(kind, body): (u8, &[u8])| kind == kind::SOLICITED && !Solicited::includes(body, id);
        let has_place = self.rank != INFINITE_RANK;
        // A child's unicast DIS is answered even without a rank, so that the child learns of that.
        // A root that has just started listens first.
        let is_silent = !has_place && (to_all || self.is_root());
        if is_silent || !self.is_router() || dis.options.bodies().any(is_other) {
            return Err(MessageDrop::Unwanted);
        }
        if to_all {
            self.is_inconsistent = true;
            return Ok(());
        }
        let candidate = self.candidates.find(from);
        let is_proven = candidate.is_some_and(Candidate::is_proven);
        let is_stranger = !is_proven && !self.proven.has(from);
        let [neighbours, strangers] = &mut self.answers;
        let allowance = match is_stranger {
            true => strangers,
            false => neighbours,
        };
        if self.reply.is_some() || !allowance.take(now) {
            return Err(MessageDrop::TooMany);
        }
        self.queue_reply(from, ControlMessage::Dio { full: has_place });
        Ok(())
    }

    pub(super) fn on_dio(
        &mut self,
        from: Iid,
        to_all: bool,
        dio: &Dio<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), MessageDrop> {
        let options = DioOptions::of(&dio.options);
        // The answer to a DIS has the configuration option (RFC 6550 §8.3), or an infinite rank. A
        // DIO without the option is a probe, and no answer.
        let is_whole = options.configuration.is_some() || dio.rank == INFINITE_RANK;
        let is_own = !to_all && is_whole && self.question.is_answer(from, now);
        if is_own {
            // It may be what shows that the neighbour is there.
            self.on_answered(from, now);
        }
        let is_heeded = is_own && self.end_questions_to(from);
        let is_here = |dodag: &Dodag| dodag.id == dio.dodag && dodag.instance == dio.instance;
        if !self.dodag.as_ref().is_some_and(is_here) {
            // A neighbour that has joined another DODAG is no parent in this one.
            let adopted = self.adopt(from, dio, &options, now);
            if adopted == Err(MessageDrop::OtherDodag) {
                self.lose_rank_of(from, is_own);
            }
            adopted?;
        }
        let dodag = self.dodag.as_mut().ok_or(MessageDrop::OtherDodag)?;
        if dio.mode != dodag.mode {
            // Neither is a neighbour in another mode of operation.
            self.lose_rank_of(from, is_own);
            return Err(MessageDrop::BadMode);
        }
        check_rank(dio.rank, dodag.unit())?;
        if self.is_root() {
            return self.on_dio_as_root(from, dio, is_own, now);
        }
        if dio.rank == INFINITE_RANK {
            // A poisoning counts at once while motes still join, because waiting for the parent's
            // answer could form a loop. Later it counts if it is the parent's answer, or the second
            // one while the parent has not answered: the parent may already be gone.
            let counts = is_own || !self.is_settled(now) || self.is_asked();
            self.lose_rank_of(from, counts);
            return Ok(());
        }
        self.check_root(from, dio.rank)?;
        let checked = self.check_version(from, (is_own, is_heeded), dio, &options, now);
        if checked == Err(MessageDrop::OldVersion) {
            // Its rank of before is none in this version.
            self.lose_rank_of(from, is_own);
        }
        checked?;
        if !to_all && is_whole && self.is_parent(from) && !self.is_asked() {
            // The parent's late answer to this round's questions: no claimant counts any more.
            self.candidates.end_questions();
        }
        self.hear((from, is_own, to_all), dio, &options, now, rng)
    }

    /// Whether a round of questions has DISs to the parent left.
    fn is_asked(&self) -> bool {
        let parent = self.parent.and_then(|parent| self.candidates.find(parent));
        parent.is_some_and(|parent| (1..=QUESTIONS).contains(&parent.questions))
    }

    /// Plans DISs to the parent, to confirm a message that counts only with its confirmation. Each
    /// round of questions ends before the next begins: neighbours in a newer version are asked once
    /// the parent has left its questions unanswered, however many claims come meanwhile. Then it is
    /// the parent's turn again.
    fn ask_parent(&mut self) {
        let has_claims = self.candidates.claims() > 0;
        let parent = self.parent.and_then(|iid| self.candidates.find(iid));
        let Some(iid) = parent.filter(|it| it.questions == 0).map(|it| it.iid) else {
            return;
        };
        if !has_claims {
            self.candidates.end_questions();
        }
        if let Some(parent) = self.candidates.find_mut(iid) {
            parent.questions = if has_claims { LATER } else { QUESTIONS };
            self.is_dirty = true;
        }
    }

    /// `from`, which is not the parent, claims a newer version: it is asked once in this round, if
    /// it may exist and takes frames. Once the parent has had its questions, claimants wait for the
    /// next round, so that invented ones cannot prolong this one.
    fn note_claim_of(&mut self, from: Iid) {
        let has_room = self.candidates.claims() < CLAIMANTS_MAX;
        if self.is_asked()
            && let Some(claimant) = self.candidates.find_mut(from)
            && (has_room || claimant.is_proven())
            && claimant.may_answer()
        {
            claimant.questions = CLAIMS;
        }
    }

    /// Notes that `from` has answered this node's question, and returns whether a newer version in
    /// the answer counts: in the parent's, and in that of a neighbour which was asked because the
    /// parent had left its questions unanswered.
    fn end_questions_to(&mut self, from: Iid) -> bool {
        if self.is_parent(from) {
            self.candidates.end_questions();
            return true;
        }
        // It stays asked until it claims anew, whatever it answers.
        let candidate = self.candidates.find(from);
        candidate.is_some_and(|candidate| candidate.questions == ASKED && candidate.is_proven())
    }

    /// Whether a DIS to this candidate is due once the last question is over: to the parent for its
    /// confirmation, then to a neighbour in a newer version.
    pub(super) fn is_to_be_asked(&self, candidate: &Candidate) -> bool {
        match self.is_parent(candidate.iid) {
            true => candidate.questions > 0,
            false => candidate.questions == CLAIMS && self.parent.is_some() && !self.is_asked(),
        }
    }

    /// Sets the rank of a candidate in this DODAG to infinite. For the parent this needs its own
    /// answer (`is_own`); otherwise the parent is asked.
    fn lose_rank_of(&mut self, candidate: Iid, is_own: bool) {
        if self.is_parent(candidate) && !is_own {
            return self.ask_parent();
        }
        if let Some(candidate) = self.candidates.find_mut(candidate) {
            candidate.rank = INFINITE_RANK;
            self.is_dirty = true;
        }
    }

    /// Enters the DODAG of a DIO, where this node is in none, or has lost its own for a long time.
    /// The node gets its rank there only once a neighbour in that DODAG acknowledges a frame.
    fn adopt(
        &mut self,
        from: Iid,
        dio: &Dio<'_>,
        options: &DioOptions<'_>,
        now: Instant,
    ) -> Result<(), MessageDrop> {
        if let Some(dodag) = &self.dodag {
            let is_known = self.candidates.iter().any(Candidate::is_proven);
            let is_bound = self.is_root()
                || self.parent.is_some()
                || (is_known && !self.detached.is_long())
                || now.since(self.parent_since) < ADOPTION_MIN;
            if is_bound {
                return Err(match dodag.instance == dio.instance {
                    true => MessageDrop::OtherDodag,
                    false => MessageDrop::OtherInstance,
                });
            }
        }
        if dio.rank == INFINITE_RANK {
            return Err(MessageDrop::Unwanted);
        }
        let Some(configuration) = options.configuration.map(Configuration::of) else {
            // A DIS to one is answered with it (RFC 6550 §8.3).
            if self.reply.is_none() && self.may_react(now) {
                self.queue_reply(from, ControlMessage::Dis);
            }
            return Err(MessageDrop::NoConfiguration);
        };
        check(&configuration, dio)?;
        self.candidates.clear();
        self.parent_since = now;
        self.is_prefix_news = true;
        self.dodag = Some(Dodag {
            id: dio.dodag,
            instance: dio.instance,
            version: dio.version,
            mode: dio.mode,
            preference: dio.preference,
            grounded: dio.grounded,
            has_metrics: options.etx.is_some(),
            configuration,
            prefix: options.prefix.map(PrefixBytes::of),
        });
        Ok(())
    }

    /// The root receives a DIO of its own DODAG. If its version is newer than the root's own,
    /// because the root has restarted, the root begins the version after it. Once the root has sent
    /// a DIO itself, it first asks the sender for confirmation.
    fn on_dio_as_root(
        &mut self,
        from: Iid,
        dio: &Dio<'_>,
        is_own: bool,
        now: Instant,
    ) -> Result<(), MessageDrop> {
        let Some(dodag) = self.dodag.as_ref() else {
            return Err(MessageDrop::Unwanted);
        };
        if dio.rank == dodag.unit() {
            return Err(MessageDrop::SecondRoot);
        }
        let listens = self.rank == INFINITE_RANK;
        match lollipop::compare(dio.version, dodag.version) {
            Some(Ordering::Less) => {}
            Some(Ordering::Equal) if !listens => return Ok(()),
            _ if !listens && !is_own => {
                if self.reply.is_none() && now >= self.question.next_at() {
                    self.queue_reply(from, ControlMessage::Dis);
                    self.question = Question::to(from, now);
                }
                return Err(MessageDrop::StrangeVersion);
            }
            _ if !self.versions.take(now) => return Err(MessageDrop::TooMany),
            _ => {
                let next = lollipop::next(dio.version);
                self.dodag = self.dodag.map(|dodag| Dodag {
                    version: next,
                    ..dodag
                });
                self.announce_version();
            }
        }
        self.is_inconsistent = true;
        Ok(())
    }

    /// A second neighbour that claims the root's rank is not believed while the first acknowledges.
    fn check_root(&self, from: Iid, rank: u16) -> Result<(), MessageDrop> {
        let is_root = |rank: u16| {
            self.dodag
                .as_ref()
                .is_some_and(|dodag| dodag.unit() == rank)
        };
        let is_taken = self.candidates.iter().any(|other| {
            other.iid != from && is_root(other.rank) && other.is_proven() && !other.is_gone()
        });
        match is_root(rank) && is_taken {
            true => Err(MessageDrop::SecondRoot),
            false => Ok(()),
        }
    }

    /// Follows the parent into a newer version of the DODAG if the parent's own answer has that
    /// version. Versions come from the root, so a node that hears of a newer one from another
    /// neighbour asks its parent first. If the parent leaves all its questions unanswered, because
    /// the way down from it loses its long DIOs, the node asks that neighbour, and follows its
    /// answer. A node without a parent follows any neighbour, and after a while also into an older
    /// version: the root may have lost its counter.
    ///
    /// `is_heeded`: see [`Self::end_questions_to`].
    fn check_version(
        &mut self,
        from: Iid,
        (is_own, is_heeded): (bool, bool),
        dio: &Dio<'_>,
        options: &DioOptions<'_>,
        now: Instant,
    ) -> Result<(), MessageDrop> {
        let Some(dodag) = self.dodag.as_mut() else {
            return Err(MessageDrop::Unwanted);
        };
        match lollipop::compare(dio.version, dodag.version) {
            Some(Ordering::Equal) => return Ok(()),
            Some(Ordering::Greater) if is_heeded || self.parent.is_none() => {}
            Some(Ordering::Greater) => {
                self.ask_parent();
                if !self.is_parent(from) {
                    // It is none that this node could go over to, as long as the parent stays.
                    self.lose_rank_of(from, is_own);
                    self.note_claim_of(from);
                }
                return Err(MessageDrop::StrangeVersion);
            }
            _ if self.detached.is_settled() => {}
            _ => {
                // It may be the root, which has forgotten: it learns of this version.
                if self.reply.is_none() && self.may_react(now) {
                    self.queue_reply(from, ControlMessage::Dio { full: false });
                }
                return Err(MessageDrop::OldVersion);
            }
        }
        let configuration = options.configuration.map(Configuration::of);
        if let Some(configuration) = &configuration {
            check(configuration, dio)?;
        }
        if !self.versions.take(now) {
            return Err(MessageDrop::TooMany);
        }
        dodag.version = dio.version;
        if let Some(configuration) = configuration {
            dodag.configuration = configuration;
        }
        self.candidates.end_questions();
        for candidate in self.candidates.iter_mut() {
            candidate.rank = INFINITE_RANK;
        }
        self.lowest = INFINITE_RANK;
        self.lowest_heard = INFINITE_RANK;
        // All motes look for their places anew, at once: signals count again.
        self.is_calm = false;
        self.version_since = now;
        self.announce_version();
        self.is_route_lost = true;
        self.dao.excuse_missing_answer();
        Ok(())
    }

    /// Notes the DIO of a neighbour in this version.
    fn hear(
        &mut self,
        (from, is_own, to_all): (Iid, bool, bool),
        dio: &Dio<'_>,
        options: &DioOptions<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), MessageDrop> {
        let (is_parent, is_settled) = (self.is_parent(from), self.is_settled(now));
        let Some(dodag) = self.dodag.as_mut() else {
            return Err(MessageDrop::Unwanted);
        };
        let etx = options.etx.filter(|_| dodag.has_metrics);
        let base = etx.unwrap_or(dio.rank);
        let prefix = options.prefix.map(PrefixBytes::of);
        let has_other_prefix = prefix.is_some() && prefix != dodag.prefix;
        let signal_dbm = if self.is_calm { 0 } else { self.signal_dbm };
        let candidate = self
            .candidates
            .heard(from, (base, signal_dbm), self.parent, now);
        if to_all && candidate.is_err() && dio.rank < self.rank {
            // It changes nothing (RFC 6550 §8.3). In a crowd most neighbours have no slot.
            self.trickle.on_consistent();
        }
        let candidate = candidate?;
        let is_known = candidate.rank != 0;
        let is_as_before = candidate.rank == dio.rank && candidate.base == base;
        // A counter on its straight part goes back only where its node has begun anew.
        let counted = lollipop::compare(dio.dtsn, candidate.dtsn);
        let asks_for_dao = match counted {
            Some(Ordering::Equal) => false,
            Some(Ordering::Less) => dio.dtsn >= lollipop::STRAIGHT,
            Some(Ordering::Greater) | None => true,
        };
        let has_begun_anew = counted != Some(Ordering::Greater);
        let is_far_worse = dio.rank > candidate.rank.saturating_add(dodag.unit())
            || base > candidate.base.saturating_add(WORSE_ETX);
        let makes_act = (is_far_worse && is_settled) || asks_for_dao || has_other_prefix;
        if is_parent && makes_act && !is_own {
            self.ask_parent();
            return Ok(());
        }
        candidate.rank = dio.rank;
        candidate.base = base;
        candidate.dtsn = dio.dtsn;
        self.is_dirty = true;
        if to_all && is_as_before && dio.rank < self.rank {
            self.trickle.on_consistent();
        }
        if !is_parent {
            if asks_for_dao && is_known {
                self.on_ask_of_others((dio.rank, has_begun_anew), now, rng);
            }
            return Ok(());
        }
        let mut is_route_lost = core::mem::take(&mut self.is_route_lost);
        if has_other_prefix {
            dodag.prefix = prefix;
            self.is_prefix_news = true;
            self.is_inconsistent = true;
            self.trickle.insist();
            is_route_lost = true;
        }
        if asks_for_dao {
            self.pass_request_on(now);
        }
        self.announce_anew((is_route_lost, asks_for_dao), now, rng);
        Ok(())
    }

    /// Lets the root hear of this node and its leaves again: soon where it has lost the routes, at
    /// leisure where it asks all motes.
    fn announce_anew(&mut self, (is_lost, is_asked): (bool, bool), now: Instant, rng: &mut Rng) {
        if !is_lost && !is_asked {
            return;
        }
        self.leaves.lose();
        match is_lost {
            true => self.schedule_dao(now, rng),
            false => self.schedule_asked_dao(now, rng),
        }
    }
}

impl Rpl<'_> {
    /// This node is in a newer version, which the nodes below learn at once. What neighbours have
    /// made this node send before does not delay it: new versions have a bound of their own.
    pub(super) const fn announce_version(&mut self) {
        self.is_inconsistent = true;
        self.is_version_news = true;
    }

    /// Lets a root request the route of every mote anew, as when steps were lost.
    pub fn refresh_routes(&mut self) {
        self.dtsn = lollipop::next(self.dtsn);
        self.is_inconsistent = true;
    }

    /// Incrementing its own DTSN passes a request for all routes on to this node's children (RFC
    /// 6550 §9.6).
    fn pass_request_on(&mut self, now: Instant) {
        self.dtsn = lollipop::next(self.dtsn);
        self.is_inconsistent = true;
        self.trickle.insist();
        self.request_at = ticks(now);
        self.is_request_missed = false;
    }

    /// This node goes over to another parent. If a neighbour above it has been asking for routes
    /// and the old parent has passed nothing on, the request counts now: the new parent's DTSN will
    /// not change again, and the root may have lost the routes of leaves and of children.
    pub(super) fn catch_up_with_request(&mut self, now: Instant) {
        if core::mem::take(&mut self.is_request_missed) && self.noticed(REQUEST_COUNTS_FOR, now) {
            self.pass_request_on(now);
            self.leaves.lose();
        }
    }

    /// Whether a request for all routes was noticed within so many ticks.
    fn noticed(&self, within: u32, now: Instant) -> bool {
        ticks(now).wrapping_sub(self.request_at) < within
    }

    /// Another neighbour's DTSN shows that the root has requested all routes anew, and the parent
    /// has not forwarded that request. The parent may be gone, or its frames may not arrive here:
    /// sending a DAO finds out. `rank`: the neighbour's; only one of lower rank counts, since
    /// requests spread downwards. `has_begun_anew`: its counter has, and that is no request that
    /// was noticed before.
    fn on_ask_of_others(
        &mut self,
        (rank, has_begun_anew): (u16, bool),
        now: Instant,
        rng: &mut Rng,
    ) {
        let is_new = has_begun_anew || !self.noticed(REQUEST_SPREADS_FOR, now);
        if rank < self.rank && is_new {
            self.request_at = ticks(now);
            self.is_request_missed = true;
        }
        let parent = self.parent.and_then(|parent| self.candidates.find(parent));
        let is_silent = parent.is_some_and(|parent| parent.silence(now) >= SILENT_TICKS);
        if is_silent && self.dao.is_acknowledged() && self.may_react(now) {
            self.schedule_dao(now, rng);
        }
    }
}

/// A DTSN that rises within this time of a request is taken for the same request: about a minute,
/// in ticks.
const REQUEST_SPREADS_FOR: u32 = 57;

/// How long a request that the parent has not passed on counts for another parent: about five
/// minutes, in ticks.
const REQUEST_COUNTS_FOR: u32 = 286;

/// A configuration that the timers, ranks and headers here can follow.
fn check(configuration: &Configuration, dio: &Dio<'_>) -> Result<(), MessageDrop> {
    if dio.mode > mode::STORING_WITH_MULTICAST {
        return Err(MessageDrop::BadMode);
    }
    let is_legal = configuration.min_hop_rank_increase > 0
        && configuration.lifetime_unit_s > 0
        && configuration.default_lifetime > 0
        && (cfg!(feature = "plain-rpl") || configuration.flags & COMPRESSED != 0);
    is_legal
        .then_some(())
        .ok_or(MessageDrop::BadConfiguration)?;
    check_rank(dio.rank, configuration.min_hop_rank_increase)
}

/// The root's rank is one whole rank, its children's at least two (RFC 6550 §17, `ROOT_RANK`).
fn check_rank(rank: u16, unit: u16) -> Result<(), MessageDrop> {
    let is_legal = rank == unit || rank >= unit.saturating_mul(2);
    is_legal.then_some(()).ok_or(MessageDrop::BadRank)
}

/// A parent that was heard within this time, in steps of 1.05 s, passes on the root's request
/// itself.
const SILENT_TICKS: u32 = 8;

/// How many claimants wait for a question before strangers are left to a later round.
const CLAIMANTS_MAX: usize = 3;

/// The rise of the cost of the parent's path from which the parent is asked: two transmissions.
const WORSE_ETX: u16 = 2 * ETX_UNIT;

/// How long a DODAG in which no neighbour has acknowledged a frame is kept before another may
/// replace it.
const ADOPTION_MIN: Duration = Duration::from_secs(2);
