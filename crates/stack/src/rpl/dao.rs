//! Downward routes: a mote advertises its parent to the root, which enters it in its graph.
//!
//! A DAO is sent shortly after its cause, repeated at growing intervals until it is acknowledged,
//! and sent again after half of its lifetime. A new cause does not bring forward the repetition of
//! an unacknowledged DAO: while many motes join at once, DAOs are most of the traffic. In a storing
//! DODAG it goes to the parent instead. Sources: RFC 6550 §9, RFC 9010 §9.2 for leaves.

use core::net::Ipv6Addr;

use super::iid::Iid;
use super::{
    ControlMessage, Destination, Dodag, MessageDrop, Rpl, RplAction, is_due, is_link_local,
    jittered, send,
};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::lollipop;
use crate::wire::rpl::{Dao, DaoAck, RplOption, Transit, mode};

/// The state of a mote's own route and of its DAOs.
#[derive(Debug)]
pub(super) struct State {
    /// When the next DAO is due, if one is.
    at: Option<Instant>,
    /// The sequence of this node's last DAO, whether about itself or a leaf.
    pub(super) counter: u8,
    pub(super) sequence: u8,
    pub(super) path_sequence: u8,
    /// DAOs since the last acknowledgement.
    tries: u8,
    /// The next DAO is the first of its sequence.
    is_new: bool,
    is_acknowledged: bool,
    /// The root has answered since this node found its place in this version.
    is_answered: bool,
}

impl State {
    pub(super) const NEW: Self = Self {
        at: None,
        counter: lollipop::INITIAL,
        sequence: lollipop::INITIAL,
        path_sequence: lollipop::INITIAL,
        tries: 0,
        is_new: false,
        is_acknowledged: false,
        is_answered: false,
    };

    pub(super) const fn stop(&mut self) {
        self.at = None;
        self.is_new = false;
        self.is_acknowledged = false;
        self.is_answered = false;
    }

    /// Many motes send at once: a missing answer is no sign of a bad parent.
    pub(super) const fn excuse_missing_answer(&mut self) {
        self.is_answered = false;
    }

    /// Chooses a path sequence that may be newer than the one that the root has, which this node
    /// does not know any more: half of the comparison window above the initial value, then a whole
    /// window above it; a counter in its circular part begins again (RFC 6550 §7.2). Of three leaps
    /// in a row the root accepts at least one, whatever sequence it has, and each leap is newer
    /// than the accepted ones before.
    const fn leap(&mut self) {
        self.path_sequence = match self.path_sequence {
            ..lollipop::STRAIGHT => lollipop::INITIAL,
            lollipop::STRAIGHT..LEAP_HALF => LEAP_HALF,
            _ => LEAP_WHOLE,
        };
    }

    pub(super) const fn at(&self) -> Option<Instant> {
        self.at
    }

    pub(super) const fn is_acknowledged(&self) -> bool {
        self.is_acknowledged
    }
}

/// One edge of the root's graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Address of the mote or leaf.
    pub target: Ipv6Addr,
    /// The node that is one hop nearer to the root.
    pub parent: Ipv6Addr,
    /// Path sequence: the newest counts ([`lollipop`]).
    pub sequence: u8,
    /// Lifetime of the route; zero: it ends; the longest time: it holds for ever.
    pub lifetime: Duration,
    /// The target is no RPL node: the parent delivers what is for it (RFC 9010).
    pub is_external: bool,
}

/// The routes in a DAO that [`Rpl::on_message`] has accepted. `dodag`: the receiver's.
pub fn routes<'a>(dao: &Dao<'a>, dodag: &Dodag) -> impl Iterator<Item = Route> + use<'a> {
    let (options, dodag) = (dao.options, *dodag);
    let targets = options.iter().enumerate();
    targets.filter_map(move |(index, option)| {
        let RplOption::Target(target) = option else {
            return None;
        };
        // The transit information behind it, of several parents the first.
        let mut behind = options.iter().skip(index);
        let transit = behind.find_map(|option| match option {
            RplOption::Transit(transit) => Some(transit),
            _ => None,
        })?;
        route((target.prefix, target.prefix_len), transit, &dodag)
    })
}

/// The edge that a target and its transit information describe; `None` where it cannot be one of
/// this DODAG.
fn route((target, len): (Ipv6Addr, u8), transit: Transit, dodag: &Dodag) -> Option<Route> {
    let parent = transit.parent?;
    let is_inside = |addr: &Ipv6Addr| Iid::of_addr(addr).within(&dodag.prefix()) == *addr;
    let is_legal = len == 128
        && is_inside(&target)
        && (parent == dodag.id || is_inside(&parent))
        && parent != target
        && target != dodag.id;
    is_legal.then_some(Route {
        target,
        parent,
        sequence: transit.sequence,
        lifetime: lifetime(transit.lifetime, dodag).unwrap_or(FOR_EVER),
        is_external: transit.external,
    })
}

/// A lifetime in the units of a DODAG; `None`: for ever.
fn lifetime(units: u8, dodag: &Dodag) -> Option<Duration> {
    let seconds = u32::from(dodag.configuration.lifetime_unit_s) * u32::from(units);
    (units != u8::MAX).then_some(Duration::from_secs(u64::from(seconds)))
}

impl Rpl<'_> {
    /// Something about this node's route is new: a DAO follows, at the time that was set already if
    /// that is earlier.
    pub(super) fn schedule_dao(&mut self, now: Instant, rng: &mut Rng) {
        self.schedule_dao_after(DELAY_MS, now, rng);
    }

    /// The root has requested the routes of all motes: a DAO follows after a long random delay.
    pub(super) fn schedule_asked_dao(&mut self, now: Instant, rng: &mut Rng) {
        self.schedule_dao_after(ASKED_DELAY_MS, now, rng);
    }

    fn schedule_dao_after(&mut self, delay_ms: u32, now: Instant, rng: &mut Rng) {
        let Some(dodag) = &self.dodag else {
            return;
        };
        if self.parent.is_none() || dodag.mode == mode::UPWARD_ONLY {
            return;
        }
        let dao = &mut self.dao;
        if core::mem::take(&mut dao.is_acknowledged) {
            dao.tries = 0;
        }
        let waits = core::mem::replace(&mut dao.is_new, true);
        if !waits {
            dao.counter = lollipop::next(dao.counter);
            dao.sequence = dao.counter;
            dao.path_sequence = lollipop::next(dao.path_sequence);
        }
        // A repetition that is due earlier, or a DAO that already waits, announces the same parent.
        // A DAO with a long delay is brought forward if the new cause is urgent.
        let delay_ms = delay_ms.max(DELAY_MS << dao.tries.min(DELAY_DOUBLINGS_MAX));
        let latest = now + Duration::from_millis(2 * u64::from(delay_ms));
        if !waits || dao.at.is_none_or(|planned| planned > latest) {
            let at = jittered(now, delay_ms, rng);
            dao.at = Some(dao.at.map_or(at, |planned| planned.min(at)));
        }
    }

    pub(super) fn poll_dao(&mut self, now: Instant, rng: &mut Rng) -> Option<RplAction> {
        if !is_due(self.dao.at, now) {
            return None;
        }
        let (Some(parent), Some(dodag)) = (self.parent, &self.dodag) else {
            self.dao.at = None;
            return None;
        };
        let to = match dodag.is_storing() {
            true => Destination::Neighbour(parent.octets()),
            false => Destination::Root,
        };
        if self.dao.is_acknowledged {
            // It is repeated before it ends: a new one.
            self.dao.at = None;
            self.schedule_dao(now, rng);
        }
        let tries = self.dao.tries;
        if self.dao.is_answered && tries > 0 && tries.is_multiple_of(TRIES_IN_VAIN) {
            // Frames go up over this parent, and nothing comes down.
            self.doubt_parent();
        }
        let dao = &mut self.dao;
        dao.is_new = false;
        dao.at = Some(jittered(
            now,
            RETRY_MS << dao.tries.min(RETRY_DOUBLINGS_MAX),
            rng,
        ));
        dao.tries = dao.tries.saturating_add(1);
        if dao.tries > TRIES_AS_IT_IS {
            // The root may reject it, and have no way to say so but the one that is to be replaced.
            dao.leap();
        }
        Some(send(to, ControlMessage::Dao))
    }

    /// Withdraws the route over `old`, a former parent, by a No-Path DAO: to the root, or in
    /// storing mode to `old`.
    pub(super) fn withdraw_route(&mut self, old: Iid) -> Option<RplAction> {
        let dodag = self.dodag.as_ref()?;
        self.dao.path_sequence = lollipop::next(self.dao.path_sequence);
        let to = match dodag.is_storing() {
            true => Destination::Neighbour(old.octets()),
            false => Destination::Root,
        };
        Some(send(to, ControlMessage::NoPath))
    }

    /// Checks a DAO: a root takes it if each target in it is one of its DODAG.
    pub(super) fn on_dao(&self, dao: &Dao<'_>) -> Result<(), MessageDrop> {
        let dodag = self.dodag.as_ref().filter(|_| self.is_root());
        let dodag = dodag.ok_or(MessageDrop::Unwanted)?;
        if dao.instance != dodag.instance {
            return Err(MessageDrop::OtherInstance);
        }
        if dao.dodag.is_some_and(|id| id != dodag.id) {
            return Err(MessageDrop::OtherDodag);
        }
        let is_target = |option: &RplOption<'_>| matches!(option, RplOption::Target(_));
        let targets = dao.options.iter().filter(is_target).count();
        match targets > 0 && routes(dao, dodag).count() == targets {
            true => Ok(()),
            false => Err(MessageDrop::BadTarget),
        }
    }

    /// The answer to a DAO: to be sent to the DAO's source. `None` where the sender does not want
    /// one. `status`: see [`mod@status`].
    #[cfg(feature = "root")]
    pub fn acknowledge(dao: &Dao<'_>, status: u8) -> Option<ControlMessage> {
        dao.ack_requested.then_some(ControlMessage::DaoAck {
            sequence: dao.sequence,
            status,
        })
    }

    pub(super) fn on_dao_ack(
        &mut self,
        from: &Ipv6Addr,
        ack: &DaoAck<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), MessageDrop> {
        let dodag = self.dodag.as_ref().ok_or(MessageDrop::Unwanted)?;
        let by_parent = self.is_parent(Iid::of_addr(from)) && is_link_local(from);
        if !by_parent && *from != dodag.id {
            return Err(MessageDrop::BadSource);
        }
        if ack.instance == dodag.instance && self.leaves.on_ack(ack) {
            return Ok(());
        }
        let dao = &mut self.dao;
        let is_awaited = dao.tries > 0 && !dao.is_new && !dao.is_acknowledged && dao.at.is_some();
        if !is_awaited || ack.instance != dodag.instance || ack.sequence != dao.sequence {
            return Err(MessageDrop::Unwanted);
        }
        dao.is_answered = true;
        dao.is_acknowledged = ack.status < status::REJECTED;
        if !dao.is_acknowledged {
            // The root may know a newer path, of before this node began anew.
            dao.leap();
            if dao.tries <= HURRIED_TRIES {
                let delay_ms = DELAY_MS << (dao.tries / 2).min(DELAY_DOUBLINGS_MAX);
                dao.at = Some(jittered(now, delay_ms, rng));
                return Ok(());
            }
        }
        let wait_s = match dao.is_acknowledged {
            true => refresh_s(dodag),
            false => REJECTED_WAIT_S,
        };
        let jitter = rng.below(wait_s / 2);
        dao.at = Some(now + Duration::from_secs(u64::from(wait_s + jitter)));
        if ack.status == status::OTHER_PARENT {
            self.doubt_parent();
        }
        Ok(())
    }

    /// The lifetime that this node gives its routes, in units of the DODAG.
    pub(super) fn lifetime_units(&self) -> u8 {
        let default = |dodag: &Dodag| dodag.configuration.default_lifetime;
        self.dodag.as_ref().map_or(0, default)
    }
}

/// When a route is repeated, and half as long again at random: half its lifetime. One for ever
/// every six hours.
fn refresh_s(dodag: &Dodag) -> u32 {
    let lifetime = lifetime(dodag.configuration.default_lifetime, dodag);
    lifetime.map_or(6 * 60 * 60, |lifetime| lifetime.as_secs() / 2)
}

const FOR_EVER: Duration = Duration::from_micros(u64::MAX);

/// Statuses in the answer to a DAO (RFC 6550 §6.5.1; RFC 9010 §6.3 for statuses of registrations).
pub mod status {
    use crate::wire::ndp::registration;

    /// The routes are in the root's graph.
    pub const ENTERED: u8 = 0;
    /// The routes are in the root's graph, but frames to the mote were lost on this way: another
    /// parent would be better.
    pub const OTHER_PARENT: u8 = 1;
    /// The routes are not in the root's graph: this status and all above.
    pub const REJECTED: u8 = 128;
    /// A later router of this leaf is known.
    pub const LEAF_MOVED: u8 = BY_REGISTRATION | registration::MOVED;
    /// The root has no room for this leaf.
    pub const LEAF_FULL: u8 = BY_REGISTRATION | registration::FULL;

    const BY_REGISTRATION: u8 = REJECTED | 0x40;
}

/// Milliseconds from the cause of a DAO to the DAO, and as much again at random: a parent that
/// was chosen in haste may change at once, and motes that join together do not speak together.
/// RFC 6550's `DEFAULT_DAO_DELAY` is 1 s.
const DELAY_MS: u32 = 350;

/// The delay that takes the place of [`DELAY_MS`] where the root asks all motes at once; most of
/// their routes have not changed.
const ASKED_DELAY_MS: u32 = 3_000;

/// How often [`DELAY_MS`] doubles while no DAO is acknowledged.
const DELAY_DOUBLINGS_MAX: u8 = 2;

/// Milliseconds to the first repetition, and as much again at random: ten hops there and back. It
/// doubles up to 12 s and as much again: two hundred motes without an answer send ten DAOs a second
/// then.
const RETRY_MS: u32 = 1_500;

/// How often the wait for a repetition is doubled at most.
const RETRY_DOUBLINGS_MAX: u8 = 3;

/// DAOs without an answer after which the parent is doubted: ten to twenty seconds.
const TRIES_IN_VAIN: u8 = 3;

/// Path sequences for a node that may have forgotten a newer one.
const LEAP_HALF: u8 = lollipop::INITIAL + lollipop::WINDOW / 2 + 1;
const LEAP_WHOLE: u8 = lollipop::INITIAL.wrapping_add(lollipop::WINDOW + 1);

/// DAOs that are repeated without a leap, since most that are not answered are lost on their way.
/// If a DAO with a leap is lost, the one with the next leap may seem old to the root, which knows
/// only the sequence before both.
const TRIES_AS_IT_IS: u8 = 2;

/// DAOs after the last acknowledgement up to which a rejected one is repeated soon: where many
/// motes join, each needs several.
const HURRIED_TRIES: u8 = 8;

/// Seconds after which a root that had no room is asked again, and half as long again at random.
const REJECTED_WAIT_S: u32 = 60;
