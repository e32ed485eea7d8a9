//! A root's routes: which mote is whose child, and so the way to each (RFC 6550 §9.7).
//!
//! Place: RPL's verdicts fill the table by way of the node; [`Ip`](super::Ip) finds the first
//! step of a packet in it, and the link all steps when the packet leaves. Motes are named by
//! their interface identifiers: all of them share the DODAG's prefix. Left out: routes to other
//! prefixes, which no mote here has; several parents of one child.

use core::net::Ipv6Addr;

use super::{Iid, InterfaceId, Neighbour, NextHop, iid_of};
use crate::limits::ROUTE_HOPS_MAX;
use crate::time::Instant;
#[cfg(feature = "root")]
use crate::wire::lollipop;

/// One mote in a root's table, which is a slice of them lent to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The mote, by its interface identifier.
    pub child: Iid,
    /// The router that passes packets on to it; the root itself for the first hop.
    pub parent: Iid,
    /// `PathSequence` of the DAO that set this entry, a lollipop counter (RFC 6550 §7.2).
    pub sequence: u8,
    /// Whether the mote knows no RPL: its packets are to be taken out of their tunnel one hop
    /// before (RFC 9010).
    pub is_leaf: bool,
    /// Whether the parent could not pass a packet on to the mote since: no way leads over this
    /// step.
    pub is_lost: bool,
    /// How often a packet over this step was lost lately.
    pub losses: u8,
    /// The neighbour of the root that brought the message; the mote itself where it is one.
    pub via: Iid,
    /// When the root forgets it (RFC 6550 §6.7.8, path lifetime).
    pub until: Instant,
}

/// The table, and where it leads.
#[derive(Debug, Default)]
pub(super) struct SourceRoutes<'m> {
    steps: &'m mut [Option<Step>],
    /// Where the next search for a step that leads nowhere begins.
    #[cfg(feature = "root")]
    searched: usize,
    /// The root's address in the DODAG, and the interface towards it.
    #[cfg(feature = "root")]
    root: Option<(Ipv6Addr, InterfaceId)>,
}

/// A way from the root: the motes in order, the destination last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    motes: [Iid; ROUTE_HOPS_MAX],
    from: u8,
    ends_at_leaf: bool,
}

impl Path {
    /// The motes in order, the destination last; never empty.
    pub(crate) fn motes(&self) -> &[Iid] {
        self.motes.get(usize::from(self.from)..).unwrap_or_default()
    }

    /// Whether the destination knows no RPL.
    #[cfg(feature = "root")]
    pub(crate) const fn ends_at_leaf(&self) -> bool {
        self.ends_at_leaf
    }
}

/// Why a step was not taken.
#[cfg(feature = "root")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StepError {
    /// The step that is known of the mote is newer.
    Old,
    /// The mote has a way, and the one that the message makes begins at another neighbour of the
    /// root than the one that brought the message.
    Strange,
    /// No entry of the table is free.
    Full,
}

impl<'m> SourceRoutes<'m> {
    /// Lends memory for steps, one for each mote, and forgets all that it holds.
    pub(super) fn lend(&mut self, steps: &'m mut [Option<Step>]) {
        steps.fill(None);
        self.steps = steps;
        #[cfg(feature = "root")]
        {
            self.searched = 0;
        }
    }

    pub(super) const fn into_memory(self) -> &'m mut [Option<Step>] {
        self.steps
    }

    /// Begins or ends being the root of a DODAG, by this address.
    #[cfg(feature = "root")]
    pub(super) fn set_root(&mut self, root: Option<(Ipv6Addr, InterfaceId)>) {
        self.root = root;
    }

    /// The root's address, and the interface towards it: none without the feature `root`, which
    /// spares a mote the code of a root.
    const fn root(&self) -> Option<(Ipv6Addr, InterfaceId)> {
        #[cfg(feature = "root")]
        return self.root;
        #[cfg(not(feature = "root"))]
        None
    }

    /// Whether an address can only be a mote's of this root: no other route leads there.
    pub(super) fn covers(&self, dst: &Ipv6Addr) -> bool {
        let prefix = |addr: &Ipv6Addr| addr.to_bits() >> 64;
        self.root()
            .is_some_and(|(root, _)| prefix(&root) == prefix(dst))
    }
}

#[cfg(feature = "root")]
impl SourceRoutes<'_> {
    /// Adds or replaces the step to a mote. A step whose lifetime is over marks the mote as lost.
    /// Returns whether the step has been lost repeatedly, so that another parent would be better.
    ///
    /// A mote sends its DAO over its parents, so the DAO arrives by the neighbour of the root at
    /// which the route to that mote begins. A DAO that arrives by another neighbour is forged, or
    /// has overtaken the DAO of a router on the route. Such a DAO is accepted only if the mote has
    /// no route, and one that arrives by the right neighbour replaces it.
    ///
    /// # Errors
    /// [`StepError`].
    pub(super) fn set(&mut self, mut step: Step, now: Instant) -> Result<bool, StepError> {
        let same = |slot: &Option<Step>| slot.is_some_and(|known| known.child == step.child);
        let at = self.steps.iter().position(same);
        let known = at.and_then(|at| self.steps.get(at).copied().flatten());
        // A lost step does not count, even if its sequence is newer.
        let holds = known.filter(|known| !known.is_lost);
        // Two routers send a DAO for the same registration of a leaf: the leaf has registered anew,
        // and either router may be the old one. The leaf has to register once more, with a later
        // transaction ID. A no-path DAO of another router is ignored, too: its transaction may be
        // so old that it compares as newer.
        let is_torn = |known: &Step| {
            known.is_leaf
                && step.is_leaf
                && known.parent != step.parent
                && (known.sequence == step.sequence || step.until <= now)
        };
        let is_old = |known: &Step| lollipop::is_newer(known.sequence, step.sequence);
        let is_own = self.is_root(step.via);
        let came_its_way = is_own || self.first_hop(&step) == Some(step.via);
        let way = holds.and_then(|known| self.first_hop(&known));
        let is_doubted = holds.is_some_and(|known| known.via == NOBODY);
        if !came_its_way && way.is_some() && !is_doubted {
            return Err(StepError::Strange);
        }
        // A step that itself came by the wrong neighbour is no reason to refuse one that comes by
        // the right one.
        let came_right = |known: &Step| self.is_root(known.via) || way == Some(known.via);
        let holds = holds.filter(|known| !came_its_way || is_doubted || came_right(known));
        if holds.is_some_and(|known| is_old(&known) || is_torn(&known)) {
            return Err(StepError::Old);
        }
        if step.until <= now {
            match is_own {
                true => self.remove(step.child),
                false => _ = self.lose(step.child, step.parent),
            }
            return Ok(false);
        }
        let as_before = known.filter(|known| known.parent == step.parent);
        step.losses = as_before.map_or(0, |known| known.losses >> u8::from(!known.is_lost));
        let is_bad = as_before.is_some_and(|known| known.is_lost) && step.losses >= LOSSES_BAD;
        let at = at.or_else(|| self.steps.iter().position(Option::is_none));
        let is_lost = |slot: &Option<Step>| slot.is_some_and(|known| known.is_lost);
        let at = at.or_else(|| self.steps.iter().position(is_lost));
        let at = match came_its_way {
            true => at.or_else(|| self.find_astray()),
            false => at,
        };
        let slot = at.and_then(|at| self.steps.get_mut(at));
        *slot.ok_or(StepError::Full)? = Some(step);
        Ok(is_bad)
    }

    /// Whether `iid` is the root's.
    fn is_root(&self, iid: Iid) -> bool {
        self.root().is_some_and(|(root, _)| iid_of(&root) == iid)
    }

    /// The neighbour of the root at which the way over this step begins; `None` where there is no
    /// way.
    fn first_hop(&self, step: &Step) -> Option<Iid> {
        let (mut mote, mut parent) = (step.child, step.parent);
        for _ in 0..ROUTE_HOPS_MAX {
            if self.is_root(parent) {
                return Some(mote);
            }
            mote = parent;
            #[cfg(test)]
            crate::tally::count(|tally| tally.walks += 1);
            let next = self.iter().find(|known| known.child == mote)?;
            parent = next.parent;
            if mote == step.child {
                return None;
            }
        }
        None
    }

    /// The place of a step that belongs to no route: the sender of its message may not exist.
    ///
    /// Each call looks at [`ASTRAY_LOOKS`] places behind those of the call before: each look goes
    /// through the table once for each hop, and strangers can cause a call with each message.
    fn find_astray(&mut self) -> Option<usize> {
        let len = self.steps.len();
        for _ in 0..len.min(ASTRAY_LOOKS) {
            let at = self.searched.checked_rem(len).unwrap_or(0);
            self.searched = at + 1;
            let step = self.steps.get(at).copied().flatten();
            if step.is_some_and(|step| self.first_hop(&step).is_none()) {
                return Some(at);
            }
        }
        None
    }

    /// The motes find their places anew: the ways that are known keep out nothing that comes by
    /// another.
    pub(super) fn doubt(&mut self) {
        let root = self.root().map(|(root, _)| iid_of(&root));
        for step in self.steps.iter_mut().flatten() {
            if root != Some(step.via) {
                step.via = NOBODY;
            }
        }
    }

    /// Forgets the step to a mote.
    fn remove(&mut self, child: Iid) {
        for slot in self.steps.iter_mut() {
            *slot = slot.filter(|step| step.child != child);
        }
    }

    /// The parent could not pass a packet on to a mote. Returns whether that was a step.
    pub(super) fn lose(&mut self, child: Iid, parent: Iid) -> bool {
        let steps = self.steps.iter_mut().flatten();
        let mut steps = steps.filter(|step| (step.child, step.parent) == (child, parent));
        let step = steps.find(|step| !step.is_lost);
        step.map(|step| {
            step.is_lost = true;
            step.losses = step.losses.saturating_add(1);
        })
        .is_some()
    }

    /// Whether any step is lost.
    pub(super) fn has_lost(&self) -> bool {
        self.steps.iter().flatten().any(|step| step.is_lost)
    }

    /// Empties the entries whose steps are lost.
    pub(super) fn forget_lost(&mut self) {
        for slot in self.steps.iter_mut() {
            *slot = slot.filter(|step| !step.is_lost);
        }
    }

    /// Removes expired steps.
    pub(super) fn expire(&mut self, now: Instant) {
        for slot in self.steps.iter_mut() {
            *slot = slot.filter(|step| now < step.until);
        }
    }
}

impl SourceRoutes<'_> {
    /// The steps that ways lead over.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().flatten().filter(|step| !step.is_lost)
    }

    /// The way to `dst`; `None` where a step of it is missing.
    pub(super) fn path(&self, dst: &Ipv6Addr) -> Option<Path> {
        let (root, _) = self.root().filter(|_| self.covers(dst))?;
        let root = iid_of(&root);
        let mut path = Path {
            motes: [[0; 8]; ROUTE_HOPS_MAX],
            from: ROUTE_HOPS_MAX as u8,
            ends_at_leaf: false,
        };
        let mut mote = iid_of(dst);
        // A loop among the steps ends with the room for them.
        while mote != root {
            path.from = path.from.checked_sub(1)?;
            *path.motes.get_mut(usize::from(path.from))? = mote;
            let step = self.iter().find(|step| step.child == mote)?;
            path.ends_at_leaf |= step.is_leaf && mote == iid_of(dst);
            mote = step.parent;
        }
        path.motes().first().map(|_| path)
    }

    /// The first hop of the way to `dst`.
    pub(super) fn next_hop(&self, dst: &Ipv6Addr) -> Option<NextHop> {
        let (_, interface) = self.root()?;
        let path = self.path(dst)?;
        Some(NextHop {
            interface,
            neighbour: Neighbour::One(*path.motes().first()?),
        })
    }
}

/// Stands for the neighbour by which a step came that was known before the DODAG's version changed.
#[cfg(feature = "root")]
const NOBODY: Iid = [0; 8];

/// Places of a full table that are looked at for a step that leads nowhere when a message needs
/// room.
#[cfg(feature = "root")]
const ASTRAY_LOOKS: usize = 16;

/// Losses of one step after which its mote should look for another parent: the first may be of a
/// mote that was switched off for a while.
#[cfg(feature = "root")]
const LOSSES_BAD: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;
    use std::vec::Vec;

    const MESH: InterfaceId = InterfaceId(1);
    const NOW: Instant = Instant::ORIGIN;

    fn addr(n: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into())
    }

    fn iid(n: u8) -> Iid {
        iid_of(&addr(n))
    }

    fn step(child: u8, parent: u8) -> Step {
        Step {
            child: iid(child),
            parent: iid(parent),
            sequence: 240,
            is_leaf: false,
            is_lost: false,
            losses: 0,
            via: NOBODY,
            until: Instant::from_micros(1_000),
        }
    }

    fn routes(steps: &mut [Option<Step>]) -> SourceRoutes<'_> {
        let mut routes = SourceRoutes::default();
        routes.lend(steps);
        routes.set_root(Some((addr(1), MESH)));
        routes
    }

    #[test]
    fn a_way_leads_from_parent_to_child() {
        let mut steps = [None; 3];
        let mut routes = routes(&mut steps);
        for (child, parent) in [(4, 3), (3, 2), (2, 1)] {
            assert_eq!(routes.next_hop(&addr(4)), None, "{child}");
            routes.set(step(child, parent), NOW).unwrap();
        }
        assert_eq!(routes.set(step(5, 1), NOW), Err(StepError::Full));
        let path = routes.path(&addr(4)).unwrap();
        assert_eq!(path.motes(), [iid(2), iid(3), iid(4)]);
        let first = routes.next_hop(&addr(4)).unwrap();
        assert_eq!(first.neighbour, Neighbour::One(iid(2)));
        assert_eq!(routes.path(&addr(2)).unwrap().motes(), [iid(2)]);
        // The root itself is no hop away, and other prefixes have other routes.
        assert!(routes.path(&addr(1)).is_none());
        let elsewhere = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 4);
        assert!(routes.covers(&addr(9)) && !routes.covers(&elsewhere));
        assert!(routes.path(&elsewhere).is_none());
        // A mote moves.
        routes.set(step(4, 1), NOW).unwrap();
        assert_eq!(routes.path(&addr(4)).unwrap().motes(), [iid(4)]);
    }

    #[test]
    fn a_full_table_costs_each_message_bounded_work() {
        // A chain of twelve, and below its end as many as there is room for.
        let node = |n: u16| (0x0200_0000_0000_0000 | u64::from(n)).to_be_bytes();
        let made = |child: u16, parent: Iid| Step {
            child: node(child),
            parent,
            via: node(2),
            ..step(0, 0)
        };
        let mut steps = [None; 500];
        let mut routes = routes(&mut steps);
        for n in 2..502 {
            let parent = match n {
                2 => iid(1),
                n => node((n - 1).min(13)),
            };
            assert_eq!(routes.set(made(n, parent), NOW), Ok(false), "{n}");
        }
        for n in 600..700 {
            let mut tally = crate::tally::Tally::default();
            let outcome = tally.add(|| routes.set(made(n, node(13)), NOW));
            assert_eq!(outcome, Err(StepError::Full));
            let walks = tally.walks as usize;
            assert!(
                walks <= 18 * ROUTE_HOPS_MAX,
                "{walks} walks through the table"
            );
        }
        // One of them moves below a mote that does not exist: its place is found after a while.
        let astray = Step {
            sequence: 241,
            ..made(300, node(999))
        };
        routes.doubt();
        assert_eq!(routes.set(astray, NOW), Ok(false));
        let tries = (600..700).position(|n| routes.set(made(n, node(13)), NOW).is_ok());
        assert!(
            tries.is_some_and(|tries| tries <= 500 / ASTRAY_LOOKS),
            "{tries:?}"
        );
    }

    #[test]
    fn loops_and_gaps_lead_nowhere() {
        let mut steps = [None; 8];
        let mut routes = routes(&mut steps);
        for (child, parent) in [(2, 3), (3, 4), (4, 2), (5, 5), (6, 9)] {
            routes.set(step(child, parent), NOW).unwrap();
        }
        for n in 2..=6 {
            assert!(routes.path(&addr(n)).is_none(), "{n}");
        }
    }

    #[test]
    fn steps_grow_old_and_are_taken_back() {
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        routes.set(step(2, 1), NOW).unwrap();
        routes.set(step(3, 2), NOW).unwrap();
        assert!(!routes.lose(iid(3), iid(1)), "it was not that parent's");
        assert!(routes.path(&addr(3)).is_some());
        assert!(routes.lose(iid(3), iid(2)) && !routes.lose(iid(3), iid(2)));
        assert!(routes.path(&addr(3)).is_none());
        routes.expire(Instant::from_micros(999));
        assert!(routes.path(&addr(2)).is_some());
        routes.expire(Instant::from_micros(1_000) + Duration::ZERO);
        assert!(routes.path(&addr(2)).is_none());
        routes.set_root(None);
        assert!(!routes.covers(&addr(2)));
    }

    #[test]
    fn old_news_of_a_mote_is_refused() {
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        let newer = Step {
            sequence: 242,
            ..step(2, 1)
        };
        routes.set(newer, NOW).unwrap();
        assert_eq!(routes.set(step(2, 3), NOW), Err(StepError::Old));
        let ended = Step {
            until: NOW,
            ..step(2, 1)
        };
        assert_eq!(routes.set(ended, NOW), Err(StepError::Old));
        assert!(routes.path(&addr(2)).is_some());
        routes
            .set(
                Step {
                    sequence: 243,
                    ..ended
                },
                NOW,
            )
            .unwrap();
        assert!(routes.path(&addr(2)).is_none());
    }

    #[test]
    fn a_step_that_is_lost_again_is_a_bad_one_until_it_holds_for_long() {
        let mut steps = [None; 2];
        let mut routes = routes(&mut steps);
        assert_eq!(routes.set(step(2, 1), NOW), Ok(false));
        assert!(routes.lose(iid(2), iid(1)) && routes.has_lost());
        assert_eq!(routes.iter().count(), 0);
        // Its mote may have begun anew, with an older sequence.
        let older = Step {
            sequence: 239,
            ..step(2, 1)
        };
        assert_eq!(routes.set(older, NOW), Ok(false));
        assert!(!routes.has_lost() && routes.path(&addr(2)).is_some());
        assert!(routes.lose(iid(2), iid(1)));
        assert_eq!(routes.set(step(2, 1), NOW), Ok(true));
        assert_eq!(routes.set(step(2, 1), NOW), Ok(false), "it holds");
        assert!(routes.lose(iid(2), iid(1)));
        assert_eq!(routes.set(step(2, 3), NOW), Ok(false), "another parent");
        assert!(routes.lose(iid(2), iid(3)));
        // Others need the room more than what is lost.
        routes.set(step(4, 1), NOW).unwrap();
        assert_eq!(routes.set(step(5, 1), NOW), Ok(false));
        assert_eq!(routes.set(step(6, 1), NOW), Err(StepError::Full));
        assert!(routes.lose(iid(5), iid(1)));
        routes.forget_lost();
        assert!(!routes.has_lost() && routes.set(step(6, 1), NOW).is_ok());
    }

    #[test]
    fn a_leaf_is_known_at_the_end_of_its_way() {
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        routes.set(step(2, 1), NOW).unwrap();
        let leaf = Step {
            is_leaf: true,
            ..step(3, 2)
        };
        routes.set(leaf, NOW).unwrap();
        assert!(routes.path(&addr(3)).unwrap().ends_at_leaf());
        assert!(!routes.path(&addr(2)).unwrap().ends_at_leaf());
    }

    /// A leaf that had begun anew registered with the root by the number that an earlier router
    /// still had of it; each word of that router moved the way back there, until the leaf renewed.
    #[test]
    fn one_transaction_of_a_leaf_leads_over_one_router() {
        let leaf = |parent, sequence| Step {
            is_leaf: true,
            sequence,
            ..step(3, parent)
        };
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        routes.set(leaf(1, 240), NOW).unwrap();
        assert_eq!(routes.set(leaf(2, 240), NOW), Err(StepError::Old));
        let ended = Step {
            until: NOW,
            ..leaf(2, 240)
        };
        assert_eq!(routes.set(ended, NOW), Err(StepError::Old));
        assert_eq!(
            routes.set(
                Step {
                    sequence: 242,
                    ..ended
                },
                NOW
            ),
            Err(StepError::Old)
        );
        assert_eq!(routes.path(&addr(3)).unwrap().motes(), [iid(3)]);
        assert_eq!(routes.set(leaf(1, 240), NOW), Ok(false), "renewed");
        assert_eq!(routes.set(leaf(2, 241), NOW), Ok(false), "a later one");
        // Nothing is known of a step that was lost.
        assert!(routes.lose(iid(3), iid(2)));
        assert_eq!(routes.set(leaf(1, 241), NOW), Ok(false));
    }

    /// As [`step`], of a message that this neighbour of the root has brought.
    fn by(via: u8, child: u8, parent: u8) -> Step {
        Step {
            via: iid(via),
            ..step(child, parent)
        }
    }

    fn way(routes: &SourceRoutes<'_>, to: u8) -> Option<Vec<Iid>> {
        routes.path(&addr(to)).map(|path| path.motes().to_vec())
    }

    #[test]
    fn what_comes_another_way_than_its_own_changes_no_way() {
        let mut steps = [None; 8];
        let mut routes = routes(&mut steps);
        // Behind 2 are 3 and 4, behind 5 is 6.
        for known in [
            by(2, 2, 1),
            by(2, 3, 2),
            by(2, 4, 3),
            by(5, 5, 1),
            by(5, 6, 5),
        ] {
            assert_eq!(routes.set(known, NOW), Ok(false));
        }
        let newer = |forged: Step| Step {
            sequence: 244,
            ..forged
        };
        let before = [2, 3, 4, 5, 6].map(|n| way(&routes, n));
        for (name, forged) in [
            ("a way on the other side", by(5, 6, 2)),
            ("by somebody who is no neighbour", by(9, 4, 3)),
            ("below nobody", by(2, 4, 77)),
            ("below itself, by way of another", by(2, 3, 4)),
            ("a neighbour of the root that is none", by(2, 4, 1)),
            ("without who brought it", step(4, 2)),
        ] {
            let refused = routes.set(newer(forged), NOW);
            assert_eq!(refused, Err(StepError::Strange), "{name}");
            let ended = Step {
                until: NOW,
                ..newer(forged)
            };
            assert_eq!(routes.set(ended, NOW), Err(StepError::Strange), "{name}");
            assert_eq!([2, 3, 4, 5, 6].map(|n| way(&routes, n)), before, "{name}");
        }
        // Whatever moves says so on its new way.
        assert_eq!(routes.set(newer(by(5, 4, 6)), NOW), Ok(false));
        assert_eq!(way(&routes, 4), Some(std::vec![iid(5), iid(6), iid(4)]));
    }

    #[test]
    fn a_mote_without_a_way_is_entered_and_yields_to_what_comes_its_way() {
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        // Its router's message was lost, or somebody has made it up.
        let late = Step {
            sequence: 250,
            ..by(9, 4, 3)
        };
        assert_eq!(routes.set(late, NOW), Ok(false));
        for known in [by(2, 2, 1), by(2, 3, 2), by(2, 4, 2)] {
            assert_eq!(routes.set(known, NOW), Ok(false), "however old");
        }
        assert_eq!(way(&routes, 4), Some(std::vec![iid(2), iid(4)]));
        let older = Step {
            sequence: 239,
            ..by(2, 4, 2)
        };
        assert_eq!(routes.set(older, NOW), Err(StepError::Old));
        // What leads nowhere gives its room to what leads somewhere, and not to its like.
        assert_eq!(routes.set(by(2, 7, 66), NOW), Ok(false));
        assert_eq!(routes.set(by(2, 8, 66), NOW), Err(StepError::Full));
        assert_eq!(routes.set(by(2, 5, 2), NOW), Ok(false));
    }

    #[test]
    fn in_a_new_version_ways_are_found_in_any_order() {
        let mut steps = [None; 8];
        let mut routes = routes(&mut steps);
        for known in [by(2, 2, 1), by(2, 3, 2), by(2, 4, 3), by(5, 5, 1)] {
            routes.set(known, NOW).unwrap();
        }
        // 3 goes over to 5, and the message of 4, which is behind it, comes first.
        assert_eq!(routes.set(by(5, 4, 3), NOW), Err(StepError::Strange));
        routes.doubt();
        assert_eq!(routes.set(by(5, 4, 3), NOW), Ok(false));
        let old = Step {
            sequence: 239,
            ..by(5, 3, 5)
        };
        assert_eq!(routes.set(old, NOW), Err(StepError::Old), "order counts");
        assert_eq!(routes.set(by(5, 3, 5), NOW), Ok(false));
        assert_eq!(way(&routes, 4), Some(std::vec![iid(5), iid(3), iid(4)]));
        assert_eq!(routes.set(by(2, 4, 2), NOW), Ok(false), "and as before");
        assert_eq!(routes.set(by(9, 4, 5), NOW), Err(StepError::Strange));
    }

    #[test]
    fn a_root_speaks_for_its_own_leaves_itself() {
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        let leaf = Step {
            is_leaf: true,
            ..by(1, 6, 1)
        };
        assert_eq!(routes.set(leaf, NOW), Ok(false));
        routes.doubt();
        let ended = Step { until: NOW, ..leaf };
        assert_eq!(routes.set(by(2, 6, 2), NOW), Err(StepError::Strange));
        routes.set(by(2, 2, 1), NOW).unwrap();
        let former = Step {
            is_leaf: true,
            ..by(2, 6, 2)
        };
        assert_eq!(
            routes.set(former, NOW),
            Err(StepError::Old),
            "at its former router"
        );
        assert_eq!(routes.set(ended, NOW), Ok(false));
        // Gone, and not lost: nobody is to be asked for it.
        assert!(!routes.has_lost() && way(&routes, 6).is_none());
        // Of others' it is not known who says so.
        let ended = Step {
            until: NOW,
            ..by(2, 2, 1)
        };
        assert_eq!(routes.set(ended, NOW), Ok(false));
        assert!(routes.has_lost() && way(&routes, 2).is_none());
    }

    #[test]
    fn the_longest_way_has_an_end() {
        let mut steps = [None; 40];
        let mut routes = routes(&mut steps);
        for n in 2..=40 {
            routes.set(step(n, n - 1), NOW).unwrap();
        }
        let last = ROUTE_HOPS_MAX as u8 + 1;
        assert_eq!(
            routes.path(&addr(last)).unwrap().motes().len(),
            ROUTE_HOPS_MAX
        );
        assert!(routes.path(&addr(last + 1)).is_none());
    }

    /// A leaf that speaks RPL from now on comes by its own parent, whatever its sequence was.
    #[test]
    fn a_leaf_that_becomes_a_mote_may_be_elsewhere() {
        let mut steps = [None; 4];
        let mut routes = routes(&mut steps);
        for child in [2, 3] {
            routes.set(step(child, 1), NOW).unwrap();
        }
        let leaf = |parent: u8, is_leaf| Step {
            is_leaf,
            via: iid(parent),
            ..step(5, parent)
        };
        routes.set(leaf(2, true), NOW).unwrap();
        assert_eq!(routes.set(leaf(3, true), NOW), Err(StepError::Old));
        assert_eq!(routes.set(leaf(3, false), NOW), Ok(false));
        assert_eq!(routes.path(&addr(5)).unwrap().motes(), [iid(3), iid(5)]);
    }

    /// Losses count while they are recent: each message that follows none halves them.
    #[test]
    fn losses_long_ago_are_forgotten() {
        for (messages_between, is_bad) in [(0, true), (1, false), (3, false)] {
            let mut steps = [None; 1];
            let mut routes = routes(&mut steps);
            routes.set(step(2, 1), NOW).unwrap();
            assert!(routes.lose(iid(2), iid(1)));
            assert_eq!(routes.set(step(2, 1), NOW), Ok(false));
            for _ in 0..messages_between {
                assert_eq!(routes.set(step(2, 1), NOW), Ok(false));
            }
            assert!(routes.lose(iid(2), iid(1)));
            assert_eq!(
                routes.set(step(2, 1), NOW),
                Ok(is_bad),
                "{messages_between}"
            );
        }
    }
}
