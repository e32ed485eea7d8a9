//! A child of a Thread network: finds a parent, attaches, stays attached, moves on.
//!
//! ```text
//! searching  Parent Request → Parent Responses, the best of which is asked
//! asking     Child ID Request → Child ID Response: attached
//! restoring  Child Update Request with a challenge → the former parent still knows this node
//! attached   Child Updates, Data Requests; searches for a better parent while the link is poor
//! ```
//!
//! Purpose: all decisions. A datagram goes in by [`Child::on_message`], the fate of frames by
//! [`Child::on_sent`], time by [`Child::poll`]; datagrams come out of [`Child::write`], one for
//! each bit of `due`. What the link has to do follows from the getters, see `link/mesh/thread`.
//!
//! A node that has lost its parent keeps its addresses while it searches, so that connections last.
//! A key sequence is followed only where an authentic message of the parent shows it, or of the
//! candidate that a node without one asks, and never downwards; messages of an earlier sequence are
//! read by their own key.
//! Place: pure; nothing here knows of frames. Source: Thread 1.1 §4.

mod message;
mod receive;
mod types;

use core::net::Ipv6Addr;

use super::mle::Numbers;
use crate::mac::security::{NetworkKey, upper_half};
use crate::random::Rng;
use crate::time::{Allowance, Duration, Instant, earliest};
use crate::wire::{LinkAddr, cursor};
use receive::Candidate;
pub use types::{
    ChildConfig, ChildCounters, ChildState, Identity, MleDrop, Parent, Place, Refusal,
};

/// What a child is after, whether it is attached or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quest {
    /// Nothing; where it is not attached, until the next search.
    Rest,
    /// The answers of routers, then of all that can be routers.
    Routers,
    All,
    /// An address of the best of them.
    Address,
    /// A sign of the former parent.
    Former,
}

/// A prefix that this node has formed an address with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Formed {
    prefix: [u8; 8],
    /// The first byte of its entry in a registration: the context that stands for the prefix, or 0,
    /// where none does and the whole address follows.
    context: u8,
}

/// A node's part in a Thread network.
#[derive(Debug)]
pub struct Child {
    network: NetworkKey,
    timestamp: [u8; 8],
    prefix: [u8; 8],
    identity: Identity,
    timeout: u32,
    sequence: u32,
    is_sleepy: bool,
    state: ChildState,
    pub(super) quest: Quest,
    /// Searches in vain, in a row.
    searches: u8,
    /// Messages to write, bits of [`Due`].
    pub(super) due: u8,
    /// Requests to the parent that it has not answered.
    asked: u8,
    unanswered: u8,
    /// Frames in a row that the parent has not acknowledged.
    untaken: u8,
    /// Frames that the parent had promised and not sent, before its last one.
    unkept: u8,
    has_news: bool,
    refusal: Option<Refusal>,
    place: Place,
    /// The last message of the parent.
    heard: Numbers,
    /// The margin of the link from the parent, dB.
    pub(super) margin: u8,
    leader: [u8; 8],
    /// The version of the network data in force.
    data_version: Option<u8>,
    /// The first frame counter of a former parent that is new.
    link_counter: u32,
    border_router: Option<u16>,
    formed: [Option<Formed>; FORMED_MAX],
    /// This node's challenge to the routers that it searches.
    pub(super) challenge: [u8; 8],
    /// Its challenge to the parent, until that has answered it; and the parent's, until this node
    /// has.
    own_challenge: Option<[u8; 8]>,
    their_challenge: Option<[u8; 8]>,
    pub(super) candidate: Option<Candidate>,
    /// The last router that offered itself and then gave no address: others go before it.
    shunned: Option<[u8; 8]>,
    /// When the quest goes on.
    quest_at: Option<Instant>,
    /// When the parent is asked again, or anew.
    update_at: Option<Instant>,
    /// Messages that are opened without being believed.
    openings: Allowance,
    /// From when on a request of the past is answered again.
    answers_past_at: Instant,
    /// Whether the parent has told this node's challenge from which frame counter on it counts.
    counts_anew: bool,
    counters: ChildCounters,
}

/// Messages to write: bits, the first of which is written first.
pub(super) struct Due;

impl Due {
    pub(super) const UPDATE_RESPONSE: u8 = 0x01;
    pub(super) const CHILD_ID_REQUEST: u8 = 0x02;
    pub(super) const UPDATE_REQUEST: u8 = 0x04;
    pub(super) const DATA_REQUEST: u8 = 0x08;
    pub(super) const PARENT_REQUEST: u8 = 0x10;
}

impl Child {
    /// A child that begins to look for its parent at its first `poll`.
    pub fn new(config: &ChildConfig) -> Self {
        let dataset = &config.dataset;
        Self {
            network: dataset.network,
            timestamp: dataset.timestamp,
            prefix: dataset.mesh_local_prefix,
            identity: config.identity,
            timeout: config.timeout.as_secs(),
            sequence: 0,
            is_sleepy: false,
            state: ChildState::Searching,
            quest: match config.former {
                Some(_) => Quest::Former,
                None => Quest::Rest,
            },
            searches: 0,
            due: 0,
            asked: 0,
            unanswered: 0,
            untaken: 0,
            unkept: 0,
            has_news: true,
            refusal: None,
            place: config.former.unwrap_or_default(),
            heard: Numbers::default(),
            margin: 0,
            leader: [0; 8],
            data_version: None,
            link_counter: 0,
            border_router: None,
            formed: [None; FORMED_MAX],
            challenge: [0; 8],
            own_challenge: None,
            their_challenge: None,
            candidate: None,
            shunned: None,
            quest_at: Some(Instant::ORIGIN),
            update_at: None,
            openings: RATION,
            answers_past_at: Instant::ORIGIN,
            counts_anew: false,
            counters: ChildCounters::default(),
        }
    }

    /// Whether it is attached.
    pub const fn state(&self) -> ChildState {
        self.state
    }

    /// Where it is attached; `None` while it searches.
    pub fn place(&self) -> Option<Place> {
        self.is_attached().then_some(self.place)
    }

    /// The identifier of the network's partition.
    pub const fn partition(&self) -> u32 {
        let [a, b, c, d, ..] = self.leader;
        u32::from_be_bytes([a, b, c, d])
    }

    /// The RLOC16 of a border router with a default route, if there is one.
    pub const fn border_router(&self) -> Option<u16> {
        self.border_router
    }

    /// Why the last attempt to attach led to nothing; `None` once it is attached.
    pub const fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// Messages sent, believed and dropped since start.
    pub const fn counters(&self) -> &ChildCounters {
        &self.counters
    }

    /// The prefix of addresses that are valid within the mesh: 64 bits.
    pub(crate) const fn mesh_local_prefix(&self) -> [u8; 8] {
        self.prefix
    }

    /// The mesh-local address of this interface identifier.
    pub(crate) fn mesh_local(&self, iid: &[u8; 8]) -> Ipv6Addr {
        with(&self.prefix, iid)
    }

    /// The addresses of this node beside its link-local one: the ML-EID, the RLOC while it is
    /// attached, and one for each prefix of the network that invites to form them.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.address_list().into_iter().flatten()
    }

    #[inline(never)]
    fn address_list(&self) -> [Option<Ipv6Addr>; 2 + FORMED_MAX] {
        let mut list = [None; 2 + FORMED_MAX];
        let [eid, rloc, formed @ ..] = &mut list;
        *eid = Some(self.mesh_local(&self.identity.iid));
        let short = LinkAddr::Short(self.place.rloc16).iid();
        *rloc = self.is_attached().then(|| self.mesh_local(&short));
        for (place, formed) in formed.iter_mut().zip(&self.formed) {
            *place = formed.map(|formed| with(&formed.prefix, &self.iid_in(&formed.prefix)));
        }
        list
    }

    /// The interface identifier in a prefix: always the same one of this node, and known to nobody
    /// else (RFC 7217).
    fn iid_in(&self, prefix: &[u8; 8]) -> [u8; 8] {
        let half = upper_half(self.network.as_bytes(), &[&self.identity.iid, prefix]);
        half.first_chunk().copied().unwrap_or_default()
    }

    pub(crate) fn is_attached(&self) -> bool {
        self.state == ChildState::Attached
    }

    /// Leaves the network: tells the parent, and then does nothing more.
    pub fn leave(&mut self) {
        self.due = match self.is_attached() {
            true => Due::UPDATE_REQUEST,
            false => 0,
        };
        (self.state, self.quest) = (ChildState::Left, Quest::Rest);
        (self.quest_at, self.update_at, self.candidate) = (None, None, None);
        self.has_news = true;
    }

    /// Takes over whether the node sleeps, and the key sequence of the MAC. `unkept`: frames that
    /// the parent has promised and not sent, modulo 256. After some in a row it is asked: one that
    /// has another key acknowledges all, and takes nothing.
    pub(crate) fn note(&mut self, is_sleepy: bool, sequence: u32, unkept: u8) {
        if self.asked != 0 {
            // What the parent owes while it is asked says nothing that its answer does not say.
            self.unkept = unkept;
        }
        let is_ignored = self.asked == 0 && unkept.wrapping_sub(self.unkept) >= UNKEPT_MAX;
        if self.is_sleepy != is_sleepy || sequence > self.sequence || is_ignored {
            self.is_sleepy = is_sleepy;
            self.sequence = self.sequence.max(sequence);
            self.unkept = unkept;
            self.update();
        }
    }

    /// The neighbour to bind to: the parent, or the candidate that was asked; whether it is asked
    /// from the extended address.
    pub(crate) fn tie(&self) -> Option<LinkAddr> {
        match (self.quest, &self.candidate) {
            (Quest::Address, Some(candidate)) => {
                Some(LinkAddr::Extended(candidate.parent.extended))
            }
            (Quest::Former, _) => Some(LinkAddr::Extended(self.place.parent.extended)),
            _ => self
                .place()
                .map(|place| LinkAddr::Short(place.parent.rloc16)),
        }
    }

    /// Whether the parent, or a candidate, owes an answer.
    #[cfg(feature = "sleepy")]
    pub(crate) fn awaits_answer(&self) -> bool {
        self.asked != 0 || self.quest != Quest::Rest
    }

    /// The key sequence in force.
    pub(crate) const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Whether something has changed that the link has to take over, once.
    pub(crate) const fn take_news(&mut self) -> bool {
        core::mem::replace(&mut self.has_news, false)
    }

    /// When `poll` or `write` has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.due {
            0 => self.next_step(),
            _ => Some(Instant::ORIGIN),
        }
    }

    /// When `poll` has something to do, whatever is to be written.
    pub(crate) fn next_step(&self) -> Option<Instant> {
        earliest(self.quest_at, self.update_at)
    }

    /// A frame to the parent was acknowledged, or given up.
    pub(crate) fn on_sent(&mut self, was_taken: bool, now: Instant) {
        // A candidate's silence is none of the parent's.
        if !self.is_attached() || self.quest == Quest::Address {
            return;
        }
        match was_taken {
            true => self.untaken = 0,
            false => self.untaken += 1,
        }
        if self.untaken >= UNTAKEN_MAX {
            self.lose(now);
        }
    }

    /// The parent has sent an authentic frame: a child that sleeps need not ask it. `unkept`: as
    /// [`Self::note`] has it.
    pub(crate) fn on_heard(&mut self, unkept: u8, now: Instant) {
        self.unkept = unkept;
        if self.is_sleepy && self.asked == 0 && self.is_attached() {
            self.update_at = Some(now + self.pace());
        }
    }

    /// Does what is due.
    pub(crate) fn poll(&mut self, now: Instant, rng: &mut Rng) {
        let is_over = |at: &Option<Instant>| at.is_some_and(|at| now >= at);
        if is_over(&self.update_at) {
            self.update_at = None;
            self.unanswered += u8::from(self.asked != 0);
            self.due |= match self.asked {
                0 => Due::UPDATE_REQUEST,
                asked => asked,
            };
            if self.unanswered >= UNANSWERED_MAX {
                self.lose(now);
            }
        }
        if is_over(&self.quest_at) {
            self.quest_at = None;
            self.go_on(now, rng);
        }
    }

    /// The next step of the quest, whose last one has brought all that it brings.
    fn go_on(&mut self, now: Instant, rng: &mut Rng) {
        match (self.quest, self.candidate) {
            (Quest::Routers | Quest::All, Some(candidate)) => {
                self.quest = Quest::Address;
                if !self.is_attached() {
                    // It has answered a challenge: its key is in force, and what it sends is sealed
                    // so. A parent that there still is may lack that key, and be needed again.
                    self.sequence = self.sequence.max(candidate.heard.sequence);
                }
                // What is owed to a parent that there still is stays due.
                self.due = self.due & !Due::PARENT_REQUEST | Due::CHILD_ID_REQUEST;
                self.has_news = true;
            }
            (Quest::Former, _) if self.unanswered < FORMER_MAX => {
                self.unanswered += 1;
                self.due |= Due::UPDATE_REQUEST;
                self.has_news = true;
            }
            (Quest::Rest, _) if self.is_attached() && margin_quality(self.margin) > POOR => {
                self.quest_at = Some(now + BETTER_PACE);
            }
            (Quest::Rest | Quest::Former, _) => self.search(Quest::Routers, rng),
            (Quest::Routers, None) => self.search(Quest::All, rng),
            (Quest::All | Quest::Address, _) => {
                if self.quest == Quest::All && self.refusal.is_none() {
                    self.refusal = Some(Refusal::Silence);
                }
                self.has_news = true;
                let refused = self.candidate.map(|candidate| candidate.parent.extended);
                self.shunned = refused.or(self.shunned);
                (self.quest, self.candidate) = (Quest::Rest, None);
                let wait = match self.is_attached() {
                    true => BETTER_PACE,
                    false => REST.saturating_mul(1 << self.searches.min(REST_DOUBLINGS_MAX)),
                };
                self.searches = self.searches.saturating_add(1);
                self.quest_at = Some(now + wait + rng.uniform(wait));
            }
        }
    }

    fn search(&mut self, quest: Quest, rng: &mut Rng) {
        if quest == Quest::Routers {
            // That nobody answered holds until somebody does.
            let is_silence = |refusal: &Refusal| *refusal == Refusal::Silence;
            self.refusal = self.refusal.filter(is_silence);
            self.candidate = None;
            self.challenge = rng.next_u64().to_be_bytes();
        }
        // Whatever a flood has used up before: the answers are not to wait for it.
        self.openings = RATION;
        self.quest = quest;
        self.due |= Due::PARENT_REQUEST;
        self.has_news = true;
    }

    /// The parent has gone, or does not know this node: looks for another one at once.
    fn lose(&mut self, now: Instant) {
        self.counters.lost = self.counters.lost.wrapping_add(1);
        self.state = ChildState::Searching;
        (self.quest, self.candidate) = (Quest::Rest, None);
        self.ask_no_more();
        (self.update_at, self.quest_at) = (None, Some(now));
        self.searches = 0;
        self.has_news = true;
    }

    /// What was asked of a parent, and owed to it, is over.
    const fn ask_no_more(&mut self) {
        (self.due, self.asked, self.unanswered, self.untaken) = (0, 0, 0, 0);
        (self.own_challenge, self.their_challenge) = (None, None);
    }

    /// Tells the parent what has changed.
    const fn update(&mut self) {
        if matches!(self.state, ChildState::Attached) {
            self.due |= Due::UPDATE_REQUEST;
        }
    }

    /// The time between Child Updates: two may be lost. Of a child that sleeps it counts from the
    /// last frame of the parent, which its polls keep informed.
    fn pace(&self) -> Duration {
        let third = Duration::from_secs(u64::from(self.timeout / 3));
        match self.is_sleepy {
            true => third,
            false => third.min(AWAKE_PACE_MAX),
        }
    }

    /// The byte of leader data that says which network data is in force: for a child that sleeps
    /// only the stable part counts.
    const fn version(&self, leader: &[u8; 8]) -> u8 {
        let [_, _, _, _, _, all, stable, _] = *leader;
        match self.is_sleepy {
            true => stable,
            false => all,
        }
    }
}

/// An address of a prefix and an interface identifier.
#[inline(never)]
fn with(prefix: &[u8; 8], iid: &[u8; 8]) -> Ipv6Addr {
    // By bytes: a processor of 32 bits shifts 128 of them in many steps.
    let mut octets = [0; 16];
    let (high, low) = octets.split_at_mut(8);
    cursor::copy(high, prefix);
    cursor::copy(low, iid);
    Ipv6Addr::from(octets)
}

/// The link-local address of a node.
fn local(extended: [u8; 8]) -> Ipv6Addr {
    with(&LINK_LOCAL, &LinkAddr::Extended(extended).iid())
}

/// The quality of a link with this margin, 0 to 3 (Thread 1.1 §4.10.1.1).
const fn margin_quality(margin_db: u8) -> u8 {
    match margin_db {
        0..=1 => 0,
        2..=9 => 1,
        10..=19 => 2,
        20.. => 3,
    }
}

const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

/// How long a parent keeps a child that it does not hear (OpenThread's default).
pub const CHILD_TIMEOUT: Duration = Duration::from_secs(240);

/// The longest time between updates of a child that is awake: so one that its parent has forgotten
/// finds out within a minute.
const AWAKE_PACE_MAX: Duration = Duration::from_secs(40);

/// Prefixes of which addresses are formed.
const FORMED_MAX: usize = 2;

/// Frames in a row that the parent may leave without an ACK, each with all its attempts.
const UNTAKEN_MAX: u8 = 3;

/// Promised frames in a row that it may not send: one may be lost.
const UNKEPT_MAX: u8 = 2;

/// Requests in a row that it may leave unanswered (OpenThread: four), and that a former parent may.
const UNANSWERED_MAX: u8 = 4;
const FORMER_MAX: u8 = 2;

/// Messages that are opened at once, and milliseconds for each more, those that are believed left
/// out: strangers that send more than that keep the receiver busy, and not the cipher as well. Each
/// round of a search has a ration of its own. Routers of OpenThread answer within half a second: a
/// flood of 110 frames a second keeps none of them out, and one that fills the air (some 250) half.
const RATION: Allowance = Allowance::new(32, 20);

/// How long after a request of the past the next one is answered: whoever has a recording of one
/// can send it for ever.
const PAST_PACE: Duration = Duration::from_secs(15);

/// How long answers are waited for: of routers, of all, of a parent (OpenThread: 0.75 s, 1.25 s).
const ROUTERS_WAIT: Duration = Duration::from_millis(750);
const ALL_WAIT: Duration = Duration::from_millis(1_250);
const ANSWER_WAIT: Duration = Duration::from_millis(1_500);

/// The shortest rest between two searches in vain, and how often it doubles: to 64 s at most, and
/// as long again at random.
const REST: Duration = Duration::from_millis(500);
const REST_DOUBLINGS_MAX: u8 = 7;

/// The time between searches for a better parent, and the quality of the link from which on none is
/// sought.
const BETTER_PACE: Duration = Duration::from_secs(600);
const POOR: u8 = 1;
