//! The root of a DODAG, which also keeps the routes of its motes.
//!
//! Place: beside `routing`, in a build with the feature `root`. Left out: the source routes made
//! from them, which are the link's.
//! Sources: RFC 6550 §9, RFC 9010 §9.2 for leaves.

use core::net::Ipv6Addr;

use crate::ip::{self, Iid, Ingress, Neighbour, Step, StepError};
use crate::node::{Node, leaves};
use crate::rpl::{self, Destination, MessageDrop, Rpl};
use crate::time::{Duration, Instant, earliest};
use crate::wire::ipv6::Header;
use crate::wire::lollipop;
use crate::wire::rpl as wire;

/// The state that only a root keeps.
#[derive(Debug)]
pub(in crate::node) struct Root {
    /// When the root forgets steps that are too old.
    expire_at: Instant,
    /// When a root that has lost steps asks for routes unless they are back, and how often it has.
    ask_at: Option<Instant>,
    asked: u8,
    /// Until then the root sends no further request: answers to its last one are still arriving.
    quiet_until: Instant,
    /// The version of the DODAG that the steps are of.
    version: u8,
    stranger: Stranger,
}

/// A mote whose packets come up, and to which no route leads down: its DAO never came, or what the
/// root knew of it was lost, and the mote does not know.
#[derive(Clone, Copy, Debug)]
struct Stranger {
    /// The mote, and when the root asks for all routes unless its own has come.
    mote: Option<(Iid, Instant)>,
    /// The mote for which the root asked last; it is not asked for again before long.
    last: Option<Iid>,
    /// How often the root has asked because of strangers, and until when it does not ask again.
    asked: u8,
    quiet_until: Instant,
}

impl Root {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            expire_at: now,
            ask_at: None,
            asked: 0,
            quiet_until: now,
            version: lollipop::INITIAL,
            stranger: Stranger {
                mote: None,
                last: None,
                asked: 0,
                quiet_until: now,
            },
        }
    }

    /// A no-path DAO ends the route of a mote, but it may be forged. So the root requests the
    /// routes of all motes once, unless such a request is already planned.
    fn ask_whether_gone(&mut self, now: Instant) {
        if self.ask_at.is_none() {
            self.asked = ASKED_MAX - 1;
            self.ask_at = Some(now + Duration::from_secs(ASK_AFTER_S));
        }
    }

    /// When to request routes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let stranger = self.stranger.mote;
        earliest(self.ask_at, stranger.map(|(_, at)| at))
    }
}

impl Stranger {
    /// Whether a mote that has no route would be noted. Each time that the root asks doubles the
    /// wait until it may ask again: addresses can be made up, and a full table has no room for some
    /// motes.
    fn is_sought(&self, mote: Iid, now: Instant) -> bool {
        let is_vain = self.last == Some(mote) && !self.is_forgotten(now);
        self.mote.is_none() && now >= self.quiet_until && !is_vain
    }

    /// The mote whose route was waited for long enough.
    fn take_due(&mut self, now: Instant) -> Option<Iid> {
        self.mote
            .take_if(|(_, at)| *at <= now)
            .map(|(mote, _)| mote)
    }

    /// Notes that the root has asked because of this mote.
    fn has_asked(&mut self, mote: Iid, now: Instant) {
        if self.is_forgotten(now) {
            self.asked = 0;
        }
        self.last = Some(mote);
        self.quiet_until = now + Duration::from_secs(STRANGER_AFTER_S << self.asked);
        self.asked = (self.asked + 1).min(STRANGER_DOUBLINGS_MAX);
    }

    /// Whether so long nothing was asked that the wait is as short as at first.
    fn is_forgotten(&self, now: Instant) -> bool {
        now.since(self.quiet_until) >= STRANGERS_FORGOTTEN_AFTER
    }
}

impl Node<'_> {
    /// Enters the routes of a DAO into the root's table, and answers it. A DAO that arrives by
    /// another neighbour than its routes lead over is ignored: a genuine sender repeats it, and a
    /// forger needs no answer.
    pub(super) fn on_dao(
        &mut self,
        dao: &wire::Dao<'_>,
        from: Ipv6Addr,
        ingress: &Ingress,
        now: Instant,
    ) {
        let Self {
            routing, ip, links, ..
        } = self;
        let Some(routing) = routing.as_mut() else {
            return;
        };
        let (rpl, root) = (&mut routing.rpl, &mut routing.root);
        let Some(dodag) = rpl.dodag().copied() else {
            return;
        };
        let own = ip.iid_on(ingress.interface);
        let via = match ingress.from {
            Neighbour::One(iid) if iid != own => iid,
            _ => return,
        };
        let mut status = rpl::status::ENTERED;
        for route in rpl::routes(dao, &dodag) {
            let step = Step {
                child: ip::iid_of(&route.target),
                parent: ip::iid_of(&route.parent),
                sequence: route.sequence,
                is_leaf: route.is_external,
                is_lost: false,
                losses: 0,
                via,
                until: now + route.lifetime,
            };
            let (reason, of_leaf) = match ip.rpl_mut().set_step(step, now) {
                Ok(is_bad) => {
                    if is_bad {
                        status = rpl::status::OTHER_PARENT;
                    }
                    match route.lifetime {
                        Duration::ZERO if ip.rpl().has_lost() => root.ask_whether_gone(now),
                        Duration::ZERO => {}
                        // A leaf that has left this router for another one. Its registration here
                        // would make a request of its next life pass for a repetition.
                        _ if step.is_leaf => leaves::forget(links, routing.interface, &step),
                        _ => {}
                    }
                    continue;
                }
                Err(StepError::Strange) => return rpl.count(MessageDrop::StrangeWay),
                Err(StepError::Old) => (MessageDrop::OldSequence, rpl::status::LEAF_MOVED),
                Err(StepError::Full) => (MessageDrop::GraphFull, rpl::status::LEAF_FULL),
            };
            rpl.count(reason);
            status = match route.is_external {
                true => of_leaf,
                false => rpl::status::REJECTED,
            };
        }
        if let Some(answer) = Rpl::acknowledge(dao, status) {
            self.send_routing(Destination::Node(from), answer);
        }
    }

    /// A router could not send a packet of this root on along its source route: the step is gone.
    /// `invoking`: the packet as that router had it, its destination the neighbour that is lost.
    pub(in crate::node) fn on_broken_route(
        &mut self,
        header: &Header,
        invoking: &[u8],
        ingress: &Ingress,
        now: Instant,
    ) {
        let is_own = self
            .routing
            .as_ref()
            .is_some_and(|routing| routing.is_root() && routing.interface == ingress.interface);
        if !is_own {
            return;
        }
        let Ok((lost, _)) = Header::parse_start(invoking) else {
            return;
        };
        let (child, parent) = (ip::iid_of(&lost.dst), ip::iid_of(&header.src));
        // As a DAO, the report comes by the neighbour at which the way to its sender begins.
        let way = self.ip.rpl().path(&header.src);
        let first = way.and_then(|way| way.motes().first().copied());
        let came_its_way = first.is_some_and(|first| ingress.from == Neighbour::One(first));
        let is_lost = came_its_way
            && self.ip.owns(&lost.src, ingress.interface)
            && self.ip.rpl_mut().lose_step(child, parent);
        if let Some(routing) = self.routing.as_mut().filter(|_| is_lost) {
            // If steps are lost all the time, requests are at least ten seconds apart.
            routing.root.asked = match routing.root.ask_at {
                None => 0,
                Some(_) => routing.root.asked.min(1),
            };
            let at = now + Duration::from_secs(ASK_AFTER_S << routing.root.asked);
            let at = at.max(routing.root.quiet_until);
            routing.root.ask_at = earliest(routing.root.ask_at, Some(at));
        }
    }

    /// A packet has come. If it came up from a mote that no route leads down to, the root asks for
    /// the routes of all motes before long: an answer to that packet finds no way.
    pub(in crate::node) fn note_source(
        &mut self,
        header: &Header,
        ingress: &Ingress,
        now: Instant,
    ) {
        let Self { routing, ip, .. } = self;
        let Some(routing) = routing.as_mut().filter(|routing| routing.is_root()) else {
            return;
        };
        let (root, mote) = (&mut routing.root, ip::iid_of(&header.src));
        let is_new = routing.interface == ingress.interface && root.stranger.is_sought(mote, now);
        if is_new && ip.rpl().misses(&header.src) {
            let at = now + Duration::from_secs(ASK_AFTER_S);
            root.stranger.mote = Some((mote, at.max(root.quiet_until)));
        }
    }

    /// Requests all routes where that of a stranger has not come by itself, and no request for the
    /// routes of lost motes is planned.
    fn ask_for_stranger(&mut self, now: Instant) {
        let Self { routing, ip, .. } = self;
        let Some(routing) = routing.as_mut() else {
            return;
        };
        let (rpl, root) = (&mut routing.rpl, &mut routing.root);
        let due = root.stranger.take_due(now);
        let Some((mote, own)) = due.filter(|_| root.ask_at.is_none()).zip(rpl.address()) else {
            return;
        };
        if ip.rpl().misses(&ip::with_iid(&own, mote)) {
            root.stranger.has_asked(mote, now);
            rpl.refresh_routes();
            root.quiet_until = now + answers_take(ip.rpl().steps().count());
        }
    }

    /// Removes expired steps, and requests the routes of all motes (by a new DTSN) if lost steps
    /// have not been renewed: those motes may still be there, and would send their next DAO only
    /// minutes later. It does so at growing intervals, and `ASKED_MAX` times at most, since the
    /// motes may be gone.
    pub(super) fn poll_root(&mut self, now: Instant) {
        self.ask_for_stranger(now);
        let Self { routing, ip, .. } = self;
        let Some(routing) = routing.as_mut().filter(|routing| routing.is_root()) else {
            return;
        };
        let (rpl, root) = (&mut routing.rpl, &mut routing.root);
        let version = rpl.dodag().map_or(root.version, |dodag| dodag.version);
        if core::mem::replace(&mut root.version, version) != version {
            ip.rpl_mut().doubt_steps();
        }
        if root.expire_at <= now {
            root.expire_at = now + EXPIRE_EVERY;
            ip.rpl_mut().expire(now);
        }
        if root.ask_at.take_if(|at| *at <= now).is_none() || !ip.rpl().has_lost() {
            return;
        }
        if root.asked == ASKED_MAX {
            return ip.rpl_mut().forget_lost();
        }
        rpl.refresh_routes();
        root.asked += 1;
        root.quiet_until = now + answers_take(ip.rpl().steps().count());
        let at = now + Duration::from_secs(ASK_AFTER_S << root.asked);
        root.ask_at = Some(at.max(root.quiet_until));
    }
}

/// How long the answers of so many motes to a request take.
fn answers_take(motes: usize) -> Duration {
    Duration::from_millis(ANSWER_MS.saturating_mul(motes as u64))
}

/// How often a root checks for expired steps: lifetimes are minutes.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);

/// How long a mote whose step was lost has to send its new route by itself, s; a mote whose parent
/// is gone does so. The time doubles with each request of the root.
const ASK_AFTER_S: u64 = 5;

/// Air time around the root that a DAO and its answer take with all their attempts, ms, in a mesh
/// where motes hear one another. In a large mesh, requests in quick succession would lose more
/// routes than they restore.
const ANSWER_MS: u64 = 250;

/// How often a root requests the routes of lost motes: over five minutes in all.
const ASKED_MAX: u8 = 5;

/// Time from one request because of a stranger to the next, s; it doubles up to so many times, to
/// over an hour.
const STRANGER_AFTER_S: u64 = 60;
const STRANGER_DOUBLINGS_MAX: u8 = 6;

/// After so long without a request because of strangers the wait is as short as at first, and the
/// last of them may be asked for again.
const STRANGERS_FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
