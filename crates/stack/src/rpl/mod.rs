//! RPL: how motes that are switched on become a mesh, and how it mends itself.
//!
//! One instance and one DODAG at a time, in non-storing mode (MOP 1): each mote knows its parent,
//! the root knows the whole tree and routes downwards by source. A DODAG of another mode, or with
//! an unknown objective function, has leaves only (RFC 6550 §8.5); in storing mode (MOP 2 and 3)
//! they send their DAOs to their parents.
//!
//! Place: pure. A control message, a report of the link or a deadline goes in; [`RplAction`]s come
//! out. The node joins it to IP and to the links:
//!
//! | when | call |
//! |---|---|
//! | once | [`Rpl::new`], then [`Rpl::start`] |
//! | ICMPv6 type 155 came | [`Rpl::on_signal`], [`Rpl::on_message`]; at a root: see [`MessageOutcome`] |
//! | a unicast frame was acknowledged or given up | [`Rpl::on_sent`] |
//! | any frame of a neighbour came | [`Rpl::on_heard`] |
//! | a packet shows by its RPL option that ranks contradict | [`Rpl::on_contradiction`] |
//! | a leaf registers with this router, or leaves | [`Rpl::advertise_leaf`] |
//! | after each of these, and at [`Rpl::next_deadline`] | [`Rpl::poll`] until it gives nothing |
//! | an action sends | [`Rpl::emit`] writes the message |
//!
//! How a mote finds its place: it sends DIS messages at growing intervals, and listens. It probes
//! the neighbours that it hears with a short unicast DIO with infinite rank, one at a time and the
//! most promising first: a neighbour that acknowledges it may become the parent. Links are measured
//! by [`Rpl::on_sent`]; candidates that might be better, and those that were silent for long, are
//! probed likewise. A parent that is gone is replaced by any candidate that cannot be a descendant;
//! if there is none, the mote announces an infinite rank to its children (poisoning), waits until
//! they know, and sends DIS messages again. A neighbour that was gone is tried again when it is
//! heard: at once, and ever more seldom while it takes no frame.
//!
//! What strangers can do: each message costs bounded work and no memory; messages that make this
//! node send something are limited by an [`Allowance`]. Neighbours that have acknowledged a frame
//! have a separate one for their DIS, so that messages from invented addresses cannot prevent a
//! parent's answer to its child. A message in the parent's name that would make this node act
//! (another version, mode, DODAG or prefix, a new DTSN, a much worse or an infinite rank) is
//! accepted only as the answer to this node's own DIS to the parent. If the parent leaves three of
//! them unanswered, a newer version is accepted as the answer to a DIS to a neighbour that claims
//! it and acknowledges frames. Until frames are authenticated, an attacker can mislead this node
//! that answers in the parent's name at that moment, or silences the parent and claims a version.
//!
//! Left out: routers of storing mode, floating DODAGs, several parents at once, route information,
//! secured messages, P2P-RPL. Sources: RFC 6550, 6551, 6552, 6719, 6206, 9008, 9010, 9035.

mod candidates;
mod choose;
mod dao;
mod detached;
mod dio;
mod dodag;
mod drops;
mod emit;
mod iid;
#[cfg(feature = "leaves")]
mod leaves;
#[cfg(not(feature = "leaves"))]
#[path = "leaves_absent.rs"]
mod leaves;
mod link_report;
mod objective;
mod probe;
mod proven;
mod receive;
#[cfg(all(test, feature = "root"))]
mod tests;
mod trickle;

use core::net::Ipv6Addr;

pub use candidates::Candidate;
pub use dao::{Route, routes, status};
pub use dodag::{Config, Dodag, Root, RplRole};
pub use drops::MessageDrop;
#[cfg(feature = "leaves")]
pub use leaves::{Leaf, LeafOutcome};
pub use link_report::FrameReport;
pub use objective::{ETX_UNIT, INFINITE_RANK, dag_rank};

use candidates::Candidates;
use iid::Iid;
use proven::ProvenNeighbours;
use trickle::Trickle;

use crate::random::Rng;
use crate::time::{Allowance, Duration, Instant, earliest};
use crate::wire::lollipop;
use crate::wire::rpl::{Dao, mode};

/// An action for the node; [`Rpl::poll`] returns one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RplAction {
    /// Send a message, which [`Rpl::emit`] writes.
    Send {
        /// Where the message is to go.
        to: Destination,
        /// Which control message to send.
        message: ControlMessage,
    },
    /// The default route leads over this neighbour now, or over none.
    Parent(Option<[u8; 8]>),
    /// The prefix (a /64) of [`Rpl::dodag`] is another one, or none: the node forms its address
    /// from it, in place of the one before.
    Prefix,
    /// The outcome of [`Rpl::advertise_leaf`] for a leaf.
    #[cfg(feature = "leaves")]
    Leaf(Leaf, LeafOutcome),
    /// All leaves are to be advertised to the root again: it may have lost them.
    #[cfg(feature = "leaves")]
    LeavesLost,
}

/// The destination of a control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination {
    /// All RPL nodes in reach: [`ALL_RPL_NODES`], from the link-local address.
    All,
    /// One neighbour's link-local address, from the link-local address.
    Neighbour([u8; 8]),
    /// The root of [`Rpl::dodag`], from the address that [`Rpl::address`] gives, over the parent.
    Root,
    /// This address, from the root's own, along a source route: answers to DAOs.
    #[cfg(feature = "root")]
    Node(Ipv6Addr),
}

/// All RPL nodes on the link (RFC 6550 §6).
pub const ALL_RPL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x1a);

/// A control message to be sent (RFC 6550 §6); [`Rpl::emit`] writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlMessage {
    /// DODAG information solicitation: asks for DIOs (RFC 6550 §6.2).
    Dis,
    /// DODAG information object: this node's rank, DODAG and version (RFC 6550 §6.3).
    Dio {
        /// Whether the DIO carries configuration, prefix and metrics.
        full: bool,
    },
    /// Destination advertisement object: the route to this node (RFC 6550 §6.4).
    Dao,
    /// A DAO with the route to the leaf that [`Rpl::advertise_leaf`] named last.
    #[cfg(feature = "leaves")]
    Leaf,
    /// A No-Path DAO: withdraws this node's route over a former parent (RFC 6550 §6.7.8).
    NoPath,
    /// The answer to a DAO (RFC 6550 §6.5): a root's.
    #[cfg(feature = "root")]
    DaoAck {
        /// `DAOSequence` of the DAO that is answered.
        sequence: u8,
        /// 0: accepted; from 128 on: rejected.
        status: u8,
    },
}

/// The caller's part in handling a message received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageOutcome<'a> {
    /// The message needs no further handling.
    Done,
    /// A root enters the [`routes`] of this DAO into its graph, and sends what
    /// [`Rpl::acknowledge`] makes.
    Dao(Dao<'a>),
}

/// The RPL state machine of one node.
#[derive(Debug)]
pub struct Rpl<'m> {
    iid: Iid,
    kind: Kind,
    dodag: Option<Dodag>,
    candidates: Candidates<'m>,
    parent: Option<Iid>,
    /// When the present parent was chosen.
    parent_since: Instant,
    /// When this node last entered a newer version.
    version_since: Instant,
    /// A candidate that is better than the parent, though not by much, and since when.
    better: (Iid, Instant),
    /// This node's rank, and the cost of its path; [`INFINITE_RANK`] without a parent.
    rank: u16,
    cost: u16,
    /// The lowest rank in this version: no rank is much above it (`L` of RFC 6550 §8.2.2.4), so
    /// that nodes that count on one another count not for ever.
    lowest: u16,
    /// The lowest rank that descendants may have heard since the last poisoning.
    lowest_heard: u16,
    /// The rank in the last DIO that was multicast.
    advertised: u16,
    dtsn: u8,
    /// When a request for all routes was last noticed, in ticks modulo 2^32, and whether it came by
    /// others than the parent and was not passed on.
    request_at: u32,
    is_request_missed: bool,
    dao: dao::State,
    leaves: leaves::State,
    trickle: Trickle,
    detached: detached::State,
    /// The next probe; while one is under way, when it is taken for lost.
    probe_at: Option<Instant>,
    /// The neighbour that a probe is under way to.
    probed: Option<Iid>,
    /// Whether the radio does not tell which frames are acknowledged.
    is_blind: bool,
    /// How often the wait for the next probe is doubled, since the air is full.
    probe_doublings: u8,
    /// The reply that is due to a neighbour, and the neighbour to which a No-Path DAO is due. A
    /// pending reply is never replaced by one to another neighbour.
    reply: Option<(Iid, ControlMessage)>,
    no_path_to: Option<Iid>,
    /// The last DIS to one neighbour, and whether it was answered.
    question: probe::Question,
    /// Bounds on what messages of neighbours cause: Trickle's resets and losses of the parent; new
    /// versions.
    resets: Allowance,
    versions: Allowance,
    /// Signal strength of the frame with the next message, dBm; 0: not known.
    signal_dbm: i8,
    /// Whether this node has had a place in this version since the motes around it ceased to join.
    is_calm: bool,
    /// Bounds on answers to a DIS: of neighbours that acknowledged a frame, and of strangers.
    answers: [Allowance; 2],
    proven: ProvenNeighbours,
    /// Events since the last poll.
    is_dirty: bool,
    is_inconsistent: bool,
    is_version_news: bool,
    is_parent_news: bool,
    is_prefix_news: bool,
    /// The root may not know this node's route in this version.
    is_route_lost: bool,
    /// This node has left its DODAG for good.
    has_left: bool,
    drops: [u16; MessageDrop::COUNT],
}

/// A [`RplRole`] without what [`Dodag`] keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    #[cfg_attr(not(feature = "root"), expect(dead_code, reason = "a router's part"))]
    Root,
    Router,
    Leaf,
}

impl<'m> Rpl<'m> {
    /// A node that has sent no message yet. `candidates`: eight are plenty, a root needs none.
    pub fn new(config: &Config, candidates: &'m mut [Candidate]) -> Self {
        let (kind, dodag) = match &config.role {
            #[cfg(feature = "root")]
            RplRole::Root(root) => (Kind::Root, Some(root.dodag(Iid::of(&config.iid)))),
            RplRole::Router => (Kind::Router, None),
            RplRole::Leaf => (Kind::Leaf, None),
        };
        Self {
            iid: Iid::of(&config.iid),
            kind,
            dodag,
            candidates: Candidates::new(candidates),
            parent: None,
            parent_since: Instant::ORIGIN,
            version_since: Instant::ORIGIN,
            better: (Iid::NONE, Instant::ORIGIN),
            rank: INFINITE_RANK,
            cost: INFINITE_RANK,
            lowest: INFINITE_RANK,
            lowest_heard: INFINITE_RANK,
            advertised: INFINITE_RANK,
            dtsn: lollipop::INITIAL,
            request_at: 1 << 31,
            is_request_missed: false,
            dao: dao::State::NEW,
            leaves: leaves::State::NEW,
            trickle: Trickle::STOPPED,
            detached: detached::State::NEW,
            probe_at: None,
            probed: None,
            is_blind: false,
            probe_doublings: 0,
            reply: None,
            no_path_to: None,
            question: probe::Question::NONE,
            resets: Allowance::new(RESETS_MAX, RESETS_INTERVAL_MS),
            versions: Allowance::new(VERSIONS_MAX, VERSIONS_INTERVAL_MS),
            signal_dbm: 0,
            is_calm: false,
            answers: [
                Allowance::new(ANSWERS_MAX, NEIGHBOURS_INTERVAL_MS),
                Allowance::new(ANSWERS_MAX, STRANGERS_INTERVAL_MS),
            ],
            proven: ProvenNeighbours::NONE,
            is_dirty: false,
            is_inconsistent: false,
            is_version_news: false,
            is_parent_news: false,
            is_prefix_news: dodag.is_some(),
            is_route_lost: false,
            has_left: false,
            drops: [0; MessageDrop::COUNT],
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> &'m mut [Candidate] {
        self.candidates.into_memory()
    }

    /// Begins: a mote looks for a DODAG; a root listens for its motes of before, then speaks.
    pub fn start(&mut self, now: Instant, rng: &mut Rng) {
        if self.is_root() {
            // A new DTSN shows children that knew the same version that the root has restarted.
            self.dtsn = 128 | rng.below(128) as u8;
        }
        self.detached.start(self.is_root(), now, rng);
    }

    /// Sets the signal strength of the frame with the next message, dBm; 0, or not called: unknown.
    ///
    /// Links without any measurement are ranked by signal strength: while many motes send at once,
    /// a weak link loses most frames, even if it is good in quiet times.
    pub const fn on_signal(&mut self, dbm: i8) {
        self.signal_dbm = dbm;
    }

    /// A packet that `from` has sent up to this node has a sender rank that is not higher than this
    /// node's, or comes even from this node's own parent: one of the two nodes has outdated
    /// information. The neighbour gets a DIO at once. A parent that sends such a packet is given
    /// up. `is_second`: the packet has met such a hop before, and is dropped; then this node's
    /// parent is given up, too.
    ///
    /// Source: RFC 6550 §11.2.2.2.
    pub fn on_contradiction(&mut self, from: [u8; 8], is_second: bool, now: Instant) {
        // Bounded: options can be made up.
        if self.may_react(now) {
            let from = Iid::of(&from);
            self.queue_reply(from, ControlMessage::Dio { full: false });
            self.is_inconsistent = true;
            if self.is_parent(from) || is_second {
                self.bar_parent();
            }
        }
    }

    /// Queues a reply to a neighbour, unless a reply is queued already.
    fn queue_reply(&mut self, to: Iid, message: ControlMessage) {
        self.reply = self.reply.or(Some((to, message)));
    }

    /// The next action that is due now, if any.
    pub fn poll(&mut self, now: Instant, rng: &mut Rng) -> Option<RplAction> {
        // First, while the route that the DAO withdraws still leads somewhere.
        if let Some(old) = self.no_path_to.take() {
            return self.withdraw_route(old);
        }
        self.end_question(now);
        if core::mem::take(&mut self.is_dirty) {
            self.choose(now, rng);
        }
        let is_version_news = core::mem::take(&mut self.is_version_news);
        if core::mem::take(&mut self.is_inconsistent)
            && self.trickle.is_slow()
            && (is_version_news || self.may_react(now))
        {
            self.trickle.reset(now, rng);
            self.advertised = self.rank;
        }
        if core::mem::take(&mut self.is_parent_news) {
            return Some(RplAction::Parent(self.parent()));
        }
        if self.has_prefix_news() {
            self.is_prefix_news = false;
            return Some(RplAction::Prefix);
        }
        if let Some((asker, message)) = self.reply.take() {
            return Some(send(Destination::Neighbour(asker.octets()), message));
        }
        let due = self.poll_detached(now, rng);
        let due = due.or_else(|| self.poll_dao(now, rng));
        let due = due.or_else(|| self.poll_leaves(now, rng));
        let due = due.or_else(|| self.poll_probe(now, rng));
        due.or_else(|| {
            self.trickle.poll(now, rng).then(|| {
                self.advertised = self.rank;
                send(Destination::All, ControlMessage::Dio { full: true })
            })
        })
    }

    /// When [`Self::poll`] has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        let has_news = self.is_dirty
            || self.is_inconsistent
            || self.is_parent_news
            || self.has_prefix_news()
            || self.reply.is_some()
            || self.leaves.has_news()
            || self.no_path_to.is_some();
        if has_news {
            return Some(Instant::ORIGIN);
        }
        let routes = earliest(self.dao.at(), self.leaves.at());
        let timers = earliest(self.trickle.next_deadline(), routes);
        earliest(earliest(timers, self.detached.at()), self.probe_at)
    }

    /// Global repair: a root begins a new version of its DODAG, in which every mote finds its place
    /// anew (RFC 6550 §3.2.2).
    pub fn repair(&mut self) {
        let is_root = self.is_root();
        if let Some(dodag) = self.dodag.as_mut().filter(|_| is_root) {
            dodag.version = lollipop::next(dodag.version);
            self.announce_version();
        }
    }

    /// Leaves the DODAG, as before the node is switched off: sends a No-Path DAO to the root, then
    /// poisons.
    pub fn leave(&mut self) {
        self.no_path_to = self.parent;
        self.has_left = true;
        self.is_dirty = true;
    }

    /// The neighbour that the default route leads over.
    pub const fn parent(&self) -> Option<[u8; 8]> {
        match self.parent {
            Some(parent) => Some(parent.octets()),
            None => None,
        }
    }

    /// This node's rank; [`INFINITE_RANK`] while it has no place in a DODAG.
    pub const fn rank(&self) -> u16 {
        self.rank
    }

    /// `DAGRank`, the integer part of the rank (RFC 6550 §3.5.1): the RPL option carries it.
    pub fn dag_rank(&self) -> u16 {
        let unit = self.dodag.as_ref().map_or(0, Dodag::unit);
        dag_rank(self.rank, unit)
    }

    /// How many hops the root is away, at most, where ranks count transmissions; 0 without a place.
    pub fn hops(&self) -> u8 {
        match self.rank {
            INFINITE_RANK => 0,
            _ => u8::try_from(self.dag_rank().saturating_sub(1)).unwrap_or(u8::MAX),
        }
    }

    /// The DODAG that this node is in, or was last.
    pub const fn dodag(&self) -> Option<&Dodag> {
        self.dodag.as_ref()
    }

    /// This node's own address in the DODAG.
    pub fn address(&self) -> Option<Ipv6Addr> {
        Some(self.dodag.as_ref()?.addr_of(self.iid))
    }

    /// Whether the root has acknowledged the route to this node.
    pub const fn is_reachable(&self) -> bool {
        self.parent.is_some() && self.dao.is_acknowledged()
    }

    /// Whether neighbours may choose this node as a parent.
    pub fn is_router(&self) -> bool {
        self.is_root()
            || (self.kind == Kind::Router
                && self.dodag.as_ref().is_some_and(|dodag| {
                    let objective = objective::Objective::of(&dodag.configuration);
                    dodag.mode <= mode::NON_STORING && objective.is_some()
                }))
    }

    /// Whether the link to the parent is known from quiet times.
    fn is_settled(&self, now: Instant) -> bool {
        now.since(self.parent_since) >= SETTLED
    }

    /// Takes one of the reactions that messages of neighbours may cause; false: none is left for
    /// now.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn may_react(&mut self, now: Instant) -> bool {
        self.resets.take(now)
    }

    /// Whether this is the root: never without the feature `root`, which spares a mote its code.
    pub(crate) const fn is_root(&self) -> bool {
        cfg!(feature = "root") && matches!(self.kind, Kind::Root)
    }

    /// The prefix of a DODAG is taken with the first parent in it.
    const fn has_prefix_news(&self) -> bool {
        self.is_prefix_news && (self.parent.is_some() || self.is_root())
    }

    /// Whether the default route leads over this neighbour.
    fn is_parent(&self, iid: Iid) -> bool {
        self.parent == Some(iid)
    }

    /// The neighbours that are candidates.
    pub fn candidates(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates.iter()
    }

    /// Counts a drop that the caller decided: a DAO of [`MessageOutcome::Dao`] that its graph did
    /// not take.
    pub fn count(&mut self, reason: MessageDrop) {
        if let Some(count) = self.drops.get_mut(reason.index()) {
            *count = count.wrapping_add(1);
        }
    }

    /// Messages dropped for `reason`, modulo 2^16; those that do not parse count as one reason.
    pub fn dropped(&self, reason: MessageDrop) -> u16 {
        self.drops.get(reason.index()).copied().unwrap_or_default()
    }
}

const fn send(to: Destination, message: ControlMessage) -> RplAction {
    RplAction::Send { to, message }
}

/// `min_ms` milliseconds after `now`, and up to as much again at random.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
fn jittered(now: Instant, min_ms: u32, rng: &mut Rng) -> Instant {
    let us = u64::from(min_ms + rng.below(min_ms)) * 1_000;
    now + Duration::from_micros(us)
}

/// Whether a deadline has come.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
fn is_due(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| now >= at)
}

fn is_link_local(addr: &Ipv6Addr) -> bool {
    addr.octets().starts_with(&[0xfe, 0x80, 0, 0, 0, 0, 0, 0])
}

/// Motes that join together have ceased to disturb one another by then.
const SETTLED: Duration = Duration::from_secs(60);

/// Resets of Trickle, and repairs, that messages of neighbours cause: eight at once, then one in 4
/// s. A flood of DIS then makes a mote send a DIO a second, as it does when it has just joined.
const RESETS_MAX: u8 = 8;
const RESETS_INTERVAL_MS: u16 = 4_000;

/// New versions that are followed: four at once, then two a minute. Each makes the mesh form
/// anew.
const VERSIONS_MAX: u8 = 4;
const VERSIONS_INTERVAL_MS: u16 = 30_000;

/// Answers to a DIS that was sent to this node alone: a burst of as many as a parent has children,
/// then one each 100 ms to neighbours and one each 500 ms to strangers. So of a hundred children
/// that all ask three times, a second apart, more than half get an answer; the others ask again
/// after the next DIO. More answers at once would cause as many DAOs at once, which two hundred
/// motes in one room cannot send. A stranger that acknowledges the answer is a neighbour from then
/// on.
const ANSWERS_MAX: u8 = 24;
const NEIGHBOURS_INTERVAL_MS: u16 = 100;
const STRANGERS_INTERVAL_MS: u16 = 500;
