//! A node that sleeps: its receiver is off, and it asks its parent for what waits there.
//!
//! The receiver is on while a frame is being sent and its ACK awaited, and after an ACK or a data
//! frame of the parent that says that more follows (the frame pending bit), for
//! [`Sleep::answer_timeout`] at most. A [`Policy`] says when the parent is asked, by a data
//! request; a frame for the parent that is to be sent anyway takes its place ([`Sleep::rides`]).
//!
//! Place: part of [`Mac`]. The parent is the neighbour that [`Mac::keep`] names; without one, and
//! until it has acknowledged a first request, the receiver stays on. A request that fails is made
//! again soon, then ever more slowly; `Mac::take_polled` tells the link of each.
//! Left out: what waits at a parent (`pending`), sampled listening (CSL), frames for all, which a
//! sleeping node misses.
//!
//! Sources: IEEE 802.15.4-2006 §7.5.6.3 (indirect transmission) and §7.3.4 (data request); TCPlp
//! §3.2, §9.2 and appendix C. Differs: the standard leaves the pending bit out of ACKs to data
//! frames; a request that can ride on one saves a frame, as Thread 1.2's enhanced frame pending
//! does.

use super::{Class, Frame, FrameSlot, Mac};
use crate::hint::Expectation;
use crate::time::{Duration, Instant, earliest};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::{Command, Header};

/// How a node sleeps between data requests: when it asks, and how long it listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sleep {
    /// When the node asks its parent.
    pub policy: Policy,
    /// Whether the parent sends all that waits upon one request; off, it sends a frame upon each
    /// (OpenThread, TCPlp appendix C), and the next one is asked for at once.
    pub drained: bool,
    /// Whether the parent says in the ACK of any frame that something waits, not only of a data
    /// request: a request that is due then rides on data.
    pub rides: bool,
    /// Whether the node sends or listens, and never does both: a request that is due goes before
    /// its own frames, and these wait while it listens for frames that were promised (TCPlp
    /// appendix C). Off, they go out between the parent's frames.
    pub alternates: bool,
    /// How long to listen for the frame that was promised.
    pub answer_timeout: Duration,
}

impl Sleep {
    /// Settings for a parent of a Thread network: it sends a frame upon each request, and says in
    /// the ACKs of requests alone, on some radios, that something waits.
    #[cfg(feature = "thread")]
    pub const fn thread(policy: Policy) -> Self {
        Self {
            policy,
            drained: false,
            rides: false,
            alternates: true,
            answer_timeout: THREAD_ANSWER_TIMEOUT,
        }
    }
}

/// When a sleeping node asks its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Asks at this constant interval (TCPlp appendix C.1).
    Fixed(Duration),
    /// Every [`REST`], every [`PAPER_PACE`] while an answer is due (TCPlp §9.2).
    Paper,
    /// After [`ADAPTIVE_MIN`] where a packet came, twice as long after each time that none did, up
    /// to [`ADAPTIVE_MAX`] (TCPlp appendix C.2).
    Adaptive,
    /// Asks at this interval at rest, and while an answer is expected: first at its earliest
    /// instant, then at its pace, no longer after the latest. What a peer sends unasked, such as a
    /// SYN, waits for the whole interval: [`REST_REACHABLE`] for a node that listens on a port,
    /// [`REST`] for one that only asks. What the parent promised and did not send is asked for
    /// sooner: after 250 ms, then after four times as long each time.
    Hinted(Duration),
}

impl Policy {
    /// How long a packet that the node does not expect may wait at the parent, if no request is
    /// lost.
    pub const fn rest(&self) -> Duration {
        match *self {
            Self::Fixed(interval) | Self::Hinted(interval) => interval,
            Self::Paper => REST,
            Self::Adaptive => ADAPTIVE_MAX,
        }
    }
}

impl Sleep {
    /// Settings for a parent that runs Motet.
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            drained: true,
            rides: true,
            alternates: true,
            answer_timeout: ANSWER_TIMEOUT,
        }
    }
}

/// Counters of a sleeping node; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PollCounters {
    /// Data requests that the parent acknowledged.
    pub polls: u32,
    /// Data requests, and frames that rode in place of one, whose ACK promised a packet.
    pub hits: u32,
    /// Requests that took no frame of their own.
    pub rides: u32,
    /// Data requests given up after their last attempt.
    pub failed: u32,
    /// Times that what was promised did not come.
    pub unanswered: u32,
}

/// The child's side of indirect transmission.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction. In the
/// compiler's order a node that sleeps is 100 B larger.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Poll {
    /// Whether the parent has taken a request: it knows this node as its child.
    is_child: bool,
    /// The frame that is waited for was promised by another one, not by an ACK.
    is_streaming: bool,
    /// The parent is to be asked again at once.
    is_hasty: bool,
    /// Whether the parent has said, since the last request, that nothing follows.
    has_ended: bool,
    /// The last one failed, and the receiver is to be on for a moment.
    #[cfg(feature = "security")]
    was_refused: bool,
    /// The outcome of the last request, if the link does not know it yet.
    untold: Option<bool>,
    /// Requests that have failed in a row.
    failures: u8,
    /// [`BROKEN`] for each promise in a row that the parent has not kept: it had other frames to
    /// send, or this one was lost; or its radio has one flag for all children.
    broken: u8,
    parent: Option<LinkAddr>,
    sleep: Option<Sleep>,
    /// When the parent was asked last; `None`: not yet, so at once.
    asked_at: Option<Instant>,
    /// Until when to listen for a frame that the parent has promised; the origin: for none.
    awake_until: Instant,
    /// Until when to listen for an answer to all; the origin: for none.
    attentive_until: Instant,
    /// Until when the link waits for an answer to a question of its own.
    solicited_until: Instant,
    /// The time between requests under [`Policy::Adaptive`].
    interval: Duration,
    expected: Option<Expectation>,
    counters: PollCounters,
}

impl Poll {
    pub(super) const OFF: Self = Self {
        sleep: None,
        parent: None,
        is_child: false,
        asked_at: None,
        awake_until: Instant::ORIGIN,
        attentive_until: Instant::ORIGIN,
        solicited_until: Instant::ORIGIN,
        is_streaming: false,
        is_hasty: false,
        interval: ADAPTIVE_MIN,
        has_ended: false,
        expected: None,
        failures: 0,
        broken: 0,
        #[cfg(feature = "security")]
        was_refused: false,
        untold: None,
        counters: PollCounters {
            polls: 0,
            hits: 0,
            rides: 0,
            failed: 0,
            unanswered: 0,
        },
    };

    pub(super) fn follow(&mut self, parent: Option<LinkAddr>) {
        if self.parent != parent {
            *self = Self {
                sleep: self.sleep,
                parent,
                expected: self.expected,
                solicited_until: self.solicited_until,
                counters: self.counters,
                ..Self::OFF
            };
        }
    }

    /// The settings and the parent, where the node sleeps and has one.
    fn bond(&self) -> Option<(&Sleep, &LinkAddr)> {
        self.sleep.as_ref().zip(self.parent.as_ref())
    }

    fn is_parent(&self, addr: &LinkAddr) -> bool {
        self.bond().is_some_and(|(_, parent)| parent.is(addr))
    }

    /// Whether the receiver is on though no frame is under way.
    /// `rests_alone`: not while it has no parent.
    pub(super) fn is_awake(&self, rests_alone: bool, now: Instant) -> bool {
        let is_on = match (&self.sleep, &self.parent) {
            (None, _) => true,
            (_, None) => !rests_alone,
            _ => !self.is_child && self.failures == 0,
        };
        is_on || now < self.awake_until.max(self.attentive_until)
    }

    /// Whether this node's own frames wait until it has listened for the promised ones; for no
    /// longer than that, lest forged frames of the parent keep it silent.
    pub(super) fn holds_back(&self, now: Instant) -> bool {
        let alternates = self.bond().is_some_and(|(sleep, _)| sleep.alternates);
        let is_recent = |asked_at: Instant| now < asked_at + HELD_BACK_MAX;
        alternates && self.is_promised() && self.asked_at.is_some_and(is_recent)
    }

    /// Whether the parent has promised a frame.
    fn is_promised(&self) -> bool {
        self.awake_until != Instant::ORIGIN
    }

    /// When the parent is asked next.
    fn asks_at(&self) -> Option<Instant> {
        let (sleep, _) = self.bond()?;
        let Some(asked_at) = self.asked_at.filter(|_| !self.is_hasty) else {
            return Some(Instant::ORIGIN);
        };
        if let Some(again) = self.failures.checked_sub(1) {
            return Some(asked_at + repeat_wait(again.saturating_sub(REPEATS_FAST)));
        }
        let at = match sleep.policy {
            Policy::Fixed(interval) => asked_at + interval,
            Policy::Adaptive => asked_at + self.interval,
            Policy::Paper if self.expected.is_some() => asked_at + PAPER_PACE,
            Policy::Paper => asked_at + REST,
            Policy::Hinted(rest) => {
                let hinted = self.expected.and_then(|answer| {
                    let pace = answer.pace.max(ADAPTIVE_MIN);
                    let at = answer.earliest.max(asked_at + pace);
                    (at <= answer.latest).then_some(at)
                });
                let rest = match self.broken.checked_sub(BROKEN) {
                    Some(doublings) => rest.min(repeat_wait(doublings)),
                    None => rest,
                };
                hinted.unwrap_or(asked_at + rest).min(asked_at + rest)
            }
        };
        let soon = asked_at + SOLICITED_PACE;
        Some(match soon <= self.solicited_until {
            true => at.min(soon),
            false => at,
        })
    }

    /// Ends the waits that have lasted.
    fn expire(&mut self, now: Instant) {
        if self.is_promised() && now >= self.awake_until {
            self.awake_until = Instant::ORIGIN;
            self.counters.unanswered = self.counters.unanswered.wrapping_add(1);
            // Of what was under way the rest still waits; a parent that promises in vain is asked
            // ever later, and no sooner than the policy has it.
            self.is_hasty = core::mem::take(&mut self.is_streaming);
            self.broken = self.broken.saturating_add(BROKEN);
        }
        if now >= self.attentive_until {
            self.attentive_until = Instant::ORIGIN;
        }
    }

    /// The parent is being asked.
    fn ask(&mut self, now: Instant) {
        let is_first = self.asked_at.is_none();
        self.asked_at = Some(now);
        (self.is_hasty, self.has_ended) = (false, false);
        // Unless a packet comes.
        if !is_first && self.failures == 0 {
            self.interval = self.interval.saturating_mul(2).min(ADAPTIVE_MAX);
        }
    }

    /// The parent has acknowledged a frame, and said whether something waits.
    fn on_answer(&mut self, is_request: bool, pending: bool, now: Instant) {
        let Some((sleep, _)) = self.bond() else {
            return;
        };
        let (timeout, rides) = (sleep.answer_timeout, sleep.rides);
        self.failures = 0;
        if is_request {
            self.is_child = true;
            self.is_hasty = false;
            self.untold = Some(true);
            self.counters.polls = self.counters.polls.wrapping_add(1);
            if !pending {
                self.broken = 0;
            }
        }
        if pending {
            self.counters.hits = self.counters.hits.wrapping_add(1);
            self.is_streaming = false;
            match is_request || rides {
                true => self.awake_until = now + timeout,
                // The parent sends upon a request alone: to listen for it would be in vain.
                false => self.is_hasty = true,
            }
        }
    }

    fn on_failure(&mut self) {
        self.failures = self.failures.saturating_add(1);
        #[cfg(feature = "security")]
        {
            self.was_refused = self.failures.is_power_of_two();
        }
        self.untold = Some(false);
        self.counters.failed = self.counters.failed.wrapping_add(1);
    }

    /// Whether requests have failed and the parent may now say why: it has gone over to a key that
    /// this node has missed. After the first failure in a row, the second, the fourth and so on.
    #[cfg(feature = "security")]
    pub(super) const fn take_refused(&mut self) -> bool {
        core::mem::replace(&mut self.was_refused, false)
    }

    /// A data frame of the parent came, and said whether more follow.
    fn on_data(&mut self, pending: bool, now: Instant) {
        let Some((sleep, _)) = self.bond() else {
            return;
        };
        let (timeout, drained) = (sleep.answer_timeout, sleep.drained);
        let is_adaptive = sleep.policy == Policy::Adaptive;
        self.interval = ADAPTIVE_MIN;
        self.broken = 0;
        // The interval begins behind the packet; once for each request, lest forged frames put off
        // the next.
        if is_adaptive && !pending && !core::mem::replace(&mut self.has_ended, true) {
            self.asked_at = self.asked_at.map(|_| now);
        }
        self.is_streaming = pending && drained;
        self.awake_until = match self.is_streaming {
            true => now + timeout,
            false => Instant::ORIGIN,
        };
        self.is_hasty = pending && !drained;
    }
}

/// Time from a request in vain to the next one.
// Not inlined: it has two callers, and one copy saves flash.
#[inline(never)]
fn repeat_wait(doublings: u8) -> Duration {
    let us = REPEAT_US << doublings.min(REPEAT_DOUBLINGS_MAX);
    Duration::from_micros(us.into())
}

impl Mac<'_> {
    /// Makes this node sleep, or stay awake from now on.
    pub fn set_sleep(&mut self, sleep: Option<Sleep>) {
        self.poll.sleep = sleep;
    }

    /// The settings by which this node sleeps; `None`: it does not sleep.
    pub const fn sleep(&self) -> Option<&Sleep> {
        self.poll.sleep.as_ref()
    }

    /// Whether this node's receiver is off while no frame is asked for or promised.
    pub(crate) const fn sleeps(&self) -> bool {
        self.poll.sleep.is_some()
    }

    /// Counts of requests and of their outcomes.
    pub const fn poll_counters(&self) -> &PollCounters {
        &self.poll.counters
    }

    /// Takes over when an answer may come; returns whether that is news to a node that sleeps.
    pub(crate) fn expect(&mut self, answer: Option<Expectation>) -> bool {
        let is_news = self.poll.sleep.is_some() && self.poll.expected != answer;
        self.poll.expected = answer;
        is_news
    }

    /// The link has asked the parent something, and waits for its answer until then.
    pub(crate) fn solicit_until(&mut self, until: Instant) {
        self.poll.solicited_until = until;
    }

    /// The link has asked all neighbours something: the receiver stays on until then.
    pub(crate) fn listen_until(&mut self, until: Instant) {
        self.poll.attentive_until = self.poll.sleep.map_or(Instant::ORIGIN, |_| until);
    }

    /// Ends the listening window if it would end by `until`: the answer has come.
    #[cfg(feature = "security")]
    pub(super) fn end_listening(&mut self, until: Instant) {
        if self.poll.attentive_until <= until {
            self.poll.attentive_until = Instant::ORIGIN;
        }
    }

    /// The parent, and whether it has acknowledged the last request; once for each.
    pub(crate) fn take_polled(&mut self) -> Option<(LinkAddr, bool)> {
        let told = self.poll.untold.take()?;
        Some((self.poll.parent?, told))
    }

    /// Asks the parent, where that is due.
    pub(super) fn poll_parent(&mut self, now: Instant) {
        self.poll.expire(now);
        let Some((sleep, parent)) = self.poll.bond() else {
            return;
        };
        let (alternates, parent) = (sleep.alternates, *parent);
        if self.poll.asks_at().is_none_or(|at| now < at) || self.poll.is_promised() {
            return;
        }
        if self.is_riding() {
            // What waits goes first, and its ACK says what a request would have asked.
            self.poll.counters.rides = self.poll.counters.rides.wrapping_add(1);
            return self.poll.ask(now);
        }
        if self.is_requesting() {
            return;
        }
        let mut payload = [0; 1];
        let command = Command::DataRequest.emit(&mut payload);
        debug_assert!(command.is_ok(), "the identifier is all there is of it");
        let request = Frame {
            to: parent,
            token: 0,
            payload: &payload,
            class: match alternates {
                true => Class::Indirect,
                false => Class::Control,
            },
            since: now,
        };
        // Where the queue is full its frames go first, and the parent is asked soon after.
        self.poll.ask(now);
        let index = self.queue.push(&request);
        match index.and_then(|index| self.queue.get_mut(index)) {
            Some(slot) => {
                (slot.is_request, slot.is_indirect) = (true, false);
                self.counters.accepted = self.counters.accepted.wrapping_add(1);
            }
            None => self.poll.failures = self.poll.failures.max(1),
        }
    }

    /// Whether a frame is queued whose ACK tells the same as that of a request.
    fn is_riding(&self) -> bool {
        let Some((sleep, parent)) = self.poll.bond() else {
            return false;
        };
        let is_child = self.poll.is_child && sleep.rides;
        is_child
            && self
                .queue
                .count(|slot| slot.to.is(parent) && !slot.is_request)
                > 0
    }

    fn is_requesting(&self) -> bool {
        self.queue.count(|slot| slot.is_request) > 0
    }

    /// When the parent is to be asked, or the receiver switched off.
    pub(super) fn poll_deadline(&self) -> Option<Instant> {
        if self.poll.bond().is_none() {
            return self.poll.attentive_until.if_any();
        }
        let asks_at = match self.poll.is_promised() || self.is_requesting() {
            true => None,
            false => self.poll.asks_at(),
        };
        let Poll {
            awake_until,
            attentive_until,
            ..
        } = self.poll;
        let ends = earliest(awake_until.if_any(), attentive_until.if_any());
        earliest(asks_at, ends)
    }

    /// The header of the frame in this slot, which may be a data request.
    pub(super) fn header_of(&self, slot: &FrameSlot) -> Option<Header> {
        let (pan, source) = (self.config.pan, self.source_to(slot.to));
        Some(match slot.is_request {
            true => Header::command(pan, slot.to, source, slot.dsn?),
            false => Header::data(pan, slot.to, source, slot.dsn?),
        })
    }

    /// The frame under way was acknowledged.
    pub(super) fn on_poll_answer(&mut self, pending: bool, now: Instant) {
        let Some(slot) = self.queue.get(self.current) else {
            return;
        };
        let (to, is_request) = (slot.to, slot.is_request);
        if self.poll.is_parent(&to) {
            self.poll.on_answer(is_request, pending, now);
        }
    }

    /// A data frame from `src` has come, new or again, which is authentic as far as this node has a
    /// key.
    pub(crate) fn on_poll_data(&mut self, src: LinkAddr, pending: bool, now: Instant) {
        #[cfg(feature = "thread")]
        let src = self.security().map_or(src, |it| it.polled_as(src));
        if self.poll.is_parent(&src) {
            self.poll.on_data(pending, now);
        }
    }

    /// A request ends; whether the frame in this slot was one.
    pub(super) fn end_request(&mut self, index: u8, delivered: bool) -> bool {
        let is_request = self.queue.get(index).is_some_and(|slot| slot.is_request);
        if is_request && !delivered {
            self.poll.on_failure();
        }
        is_request
    }

    /// The longest random wait before the frame in this slot is tried again.
    pub(super) fn retry_delay_max(&self, index: u8) -> Duration {
        let quick = |slot: &FrameSlot| slot.is_request || slot.is_indirect;
        match self.queue.get(index).is_some_and(quick) {
            true => self.config.retry_delay_max.min(QUICK_RETRY_DELAY_MAX),
            false => self.config.retry_delay_max,
        }
    }
}

/// Time between requests at rest: OpenThread's default in TCPlp's study (§9.2).
pub const REST: Duration = Duration::from_secs(240);

/// Time between requests at rest of a node that others connect to: less than half of the 127 s
/// after which Linux gives up a SYN, so that one request may be lost (`tcp_syn_retries`,
/// ip-sysctl).
pub const REST_REACHABLE: Duration = Duration::from_secs(60);

/// Time between requests while an answer is due (TCPlp §9.2).
pub const PAPER_PACE: Duration = Duration::from_millis(100);

/// `smin`, the shortest interval of [`Policy::Adaptive`] (TCPlp appendix C.2).
pub const ADAPTIVE_MIN: Duration = Duration::from_millis(20);

/// `smax`, the longest interval of [`Policy::Adaptive`] (TCPlp appendix C.2).
pub const ADAPTIVE_MAX: Duration = Duration::from_secs(5);

/// How long to listen for what was promised: a parent's frame that is under way, with backoffs, and
/// a few attempts of the one that follows. OpenThread waits 100 ms; TCPlp §9.5 found a shorter wait
/// better.
pub const ANSWER_TIMEOUT: Duration = Duration::from_millis(50);

/// The same below a parent of a Thread network, whose radio may be behind a line.
#[cfg(feature = "thread")]
pub const THREAD_ANSWER_TIMEOUT: Duration = Duration::from_millis(100);

/// Longest random wait between attempts at a request, or at a frame for a child that listens: its
/// receiver is on meanwhile (TCPlp §9.5).
pub const QUICK_RETRY_DELAY_MAX: Duration = Duration::from_millis(8);

/// Since the last request: a parent sends some packets within that.
const HELD_BACK_MAX: Duration = Duration::from_secs(1);

/// While the link waits for the answer to a question of its own.
const SOLICITED_PACE: Duration = Duration::from_millis(100);

/// Time from a request that failed to the next one, microseconds: the disturbance of eight attempts
/// may be over.
const REPEAT_US: u32 = 250_000;

/// How many failed requests are followed by the next one after [`REPEAT_US`]. Then the wait
/// doubles, so that a parent that has gone costs little.
const REPEATS_FAST: u8 = 3;

/// How often [`REPEAT_US`] doubles at most: to 64 s.
const REPEAT_DOUBLINGS_MAX: u8 = 8;

/// The doublings of [`REPEAT_US`] that a promise which was not kept adds.
const BROKEN: u8 = 2;
