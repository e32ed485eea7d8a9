//! The choice of the neighbour that gets the next probe, a short unicast DIO: its acknowledgement
//! measures the link.
//!
//! One probe is under way at a time. Where many motes join at once, more would only fill queues and
//! the air, and measure the congestion that they cause. For the same reason the wait for the next
//! probe doubles with each one that took many attempts, and halves with each one that did not.

use super::candidates::{CLAIMS, Candidate, ticks};
use super::iid::Iid;
use super::objective::ETX_UNIT;
use super::{ControlMessage, Destination, Rpl, RplAction, is_due, jittered, send};
use crate::random::Rng;
use crate::time::{Duration, Instant};

/// Why a neighbour is probed, the most urgent reason first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ProbeReason {
    /// The parent did not take the last frame.
    Doubt,
    /// The parent is to confirm a message. If it has not, a neighbour is to confirm the newer
    /// version that it claims.
    Claim,
    /// The node has no parent, and this neighbour was gone, but is heard again.
    Return,
    /// The node has no parent, and this neighbour might become it.
    Wanted,
    /// The neighbour might be better than the parent, but little is known of its link.
    Promise,
    /// The neighbour was silent for long, or is the parent and was sent nothing.
    Routine,
}

impl ProbeReason {
    /// Milliseconds to wait, and as much again at random.
    const fn wait_ms(self) -> u32 {
        match self {
            // The frames of others are to pass, too.
            Self::Doubt => 150,
            // Other children have heard the same.
            Self::Claim | Self::Return => 40,
            // Other neighbours may answer the same question.
            Self::Wanted => 100,
            Self::Promise => 2_000,
            Self::Routine => 15_000,
        }
    }
}

/// The last question to a neighbour: a DIS to it alone.
#[derive(Debug)]
pub(super) struct Question {
    to: Iid,
    at: Instant,
    /// The question has not been answered.
    is_open: bool,
}

impl Question {
    pub(super) const NONE: Self = Self {
        to: Iid::NONE,
        at: Instant::ORIGIN,
        is_open: false,
    };

    pub(super) const fn to(to: Iid, at: Instant) -> Self {
        Self {
            to,
            at,
            is_open: true,
        }
    }

    /// Whether a message to this node alone is the answer; each question has one.
    pub(super) fn is_answer(&mut self, from: Iid, now: Instant) -> bool {
        let is_answer = self.is_open && self.to == from && now < self.next_at();
        self.is_open &= !is_answer;
        is_answer
    }

    /// When the next DIS to a neighbour may be sent.
    pub(super) fn next_at(&self) -> Instant {
        let wait = match self.is_open {
            true => ANSWERED_WITHIN,
            false => QUESTION_INTERVAL,
        };
        self.at + wait
    }
}

impl Rpl<'_> {
    /// Sets the next probe, or brings it forward; unless one is under way.
    pub(super) fn plan_probe(&mut self, now: Instant, rng: &mut Rng) {
        if self.has_left {
            self.probe_at = None;
            return;
        }
        if self.probed.is_some() {
            return;
        }
        let wait_ms = match self.next_probe(now) {
            Some((why @ (ProbeReason::Wanted | ProbeReason::Promise), iid)) => {
                // A mote without a parent waits less, because failed probes may be due to bad links
                // rather than to a full air.
                let doublings = match why {
                    ProbeReason::Wanted => self.detached.doublings().max(self.probe_doublings / 2),
                    _ => self.probe_doublings,
                };
                // Nearer neighbours may soon have a place.
                let weakness = self.candidates.find(iid).map_or(0, Candidate::weakness);
                why.wait_ms() << (doublings + weakness * 3 / 2).min(WAIT_DOUBLINGS_MAX)
            }
            Some((why, _)) => why.wait_ms(),
            // Neighbours that are left alone for now come of age without an event.
            None if self.parent.is_none() => LOOK_MS,
            None => ProbeReason::Routine.wait_ms(),
        };
        let mut at = jittered(now, wait_ms, rng);
        let mut candidates = self.candidates.iter();
        if self.question.next_at() > now
            && candidates.any(|candidate| self.is_to_be_asked(candidate))
        {
            at = at.min(self.question.next_at());
        }
        self.probe_at = Some(self.probe_at.map_or(at, |planned| planned.min(at)));
    }

    /// A probe was acknowledged after `attempts` attempts, or given up after as many: whether its
    /// link is bad or the air is full, the next one can wait.
    pub(super) const fn pace_probes(&mut self, attempts: u8, acknowledged: bool) {
        let doublings = self.probe_doublings;
        self.probe_doublings = match acknowledged && attempts <= EASY_ATTEMPTS {
            true => doublings.saturating_sub(1),
            false if doublings < PROBE_DOUBLINGS_MAX => doublings + 1,
            false => doublings,
        };
    }

    pub(super) fn poll_probe(&mut self, now: Instant, rng: &mut Rng) -> Option<RplAction> {
        if !is_due(self.probe_at, now) {
            return None;
        }
        self.probe_at = None;
        self.probed = None;
        let Some((why, iid)) = self.next_probe(now) else {
            self.plan_probe(now, rng);
            return None;
        };
        // A queue may have had no room for it.
        self.probed = Some(iid);
        self.probe_at = Some(jittered(now, LOST_MS, rng));
        let candidate = self.candidates.find_mut(iid)?;
        candidate.test(now);
        let message = match why {
            // The neighbour's answer is worth more than its acknowledgement.
            ProbeReason::Claim => {
                candidate.questions = candidate.questions.saturating_sub(1);
                self.question = Question::to(iid, now);
                ControlMessage::Dis
            }
            // So it is where the radio tells of no acknowledgement.
            _ if self.is_blind => {
                self.question = Question::to(iid, now);
                self.probe_at = Some(self.question.next_at());
                ControlMessage::Dis
            }
            _ => ControlMessage::Dio { full: false },
        };
        Some(send(Destination::Neighbour(iid.octets()), message))
    }

    fn next_probe(&self, now: Instant) -> Option<(ProbeReason, Iid)> {
        let mut first: Option<(ProbeReason, u64, Iid)> = None;
        for candidate in self.candidates.iter() {
            let Some(why) = self.probe_reason(candidate, now) else {
                continue;
            };
            let order = match why {
                ProbeReason::Routine => candidate.tested,
                // Claimants come before a parent that is to be asked anew.
                ProbeReason::Claim => u32::from(CLAIMS - candidate.questions),
                _ => u32::from(candidate.base.saturating_add(candidate.etx())),
            };
            // By reason first, by order among those of one.
            let key = u64::from(why as u8) << 32 | u64::from(order);
            let is_first = first
                .is_none_or(|(_, least, iid)| key < least || key == least && candidate.iid < iid);
            if is_first {
                first = Some((why, key, candidate.iid));
            }
        }
        first.map(|(why, _, iid)| (why, iid))
    }

    fn probe_reason(&self, candidate: &Candidate, now: Instant) -> Option<ProbeReason> {
        let is_parent = self.is_parent(candidate.iid);
        let is_silent = candidate.unanswered() > 0;
        let idle = ticks(now).saturating_sub(candidate.tested);
        // The path cost over the candidate: as measured, at best, and with a perfect link.
        let over = |etx: u16| candidate.base.saturating_add(etx);
        let cost = over(candidate.etx());
        let best = over(candidate.etx_at_best());
        let perfect = over(ETX_UNIT);
        let rank_max = self.rank_max(&self.dodag.as_ref()?.configuration);
        let idle_min = match is_parent || cost < self.cost.saturating_add(2 * ETX_UNIT) {
            true => IDLE_TICKS,
            false => IDLE_LONG_TICKS,
        };
        match () {
            () if is_parent && is_silent => Some(ProbeReason::Doubt),
            () if self.is_to_be_asked(candidate) && now >= self.question.next_at() => {
                Some(ProbeReason::Claim)
            }
            () if !candidate.is_worth_testing(idle) => None,
            // It counts on no root any more, and this node would not follow it.
            () if candidate.rank >= rank_max => None,
            () if self.parent.is_none() && candidate.may_be_back() => Some(ProbeReason::Return),
            () if self.parent.is_none() && (!candidate.is_proven() || is_silent) => {
                Some(ProbeReason::Wanted)
            }
            () if candidate.is_untested() && best.saturating_add(PROMISE) < self.cost => {
                Some(ProbeReason::Promise)
            }
            () if idle >= idle_min && (is_parent || perfect < self.cost) => {
                Some(ProbeReason::Routine)
            }
            () => None,
        }
    }
}

/// Milliseconds, and as much again at random: until a node without a parent looks again for a
/// neighbour to try, and until a probe of which nothing is heard is taken for lost.
const LOOK_MS: u32 = 2_000;
const LOST_MS: u32 = 1_500;

/// Attempts of a probe after which the air is not full.
const EASY_ATTEMPTS: u8 = 4;

/// How often the wait for a probe doubles at most: up to half a minute for one that promises
/// something, and as much again.
const PROBE_DOUBLINGS_MAX: u8 = 4;

/// How often the wait doubles at most where the link is weak, too.
const WAIT_DOUBLINGS_MAX: u8 = 5;

/// The time after which an unanswered request to a neighbour is repeated: the answer may queue
/// behind other frames.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// The time from an answered request to the next one.
const QUESTION_INTERVAL: Duration = Duration::from_millis(500);

/// The ETX by which a candidate must be able to beat the parent, to be tried again and again.
const PROMISE: u16 = ETX_UNIT / 4;

/// Silence after which a link's quality may have changed, in steps of 1.05 s.
const IDLE_TICKS: u32 = 30;

/// Silence after which the link of a neighbour far worse than the parent may have changed, in steps
/// of 1.05 s.
const IDLE_LONG_TICKS: u32 = 600;
