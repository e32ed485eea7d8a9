//! A router's neighbour cache entries (RFC 6775 §3.5): the addresses that its neighbours have
//! registered with it.
//!
//! Place: the link checks a request and writes the answer; this table decides, and reports changes
//! to the node above. The node announces leaves in RPL (RFC 9010), so an entry notes whether its
//! change has been announced. The caller lends the memory; without memory a router accepts no
//! registrations.
//!
//! An identifier derives from a link address, and a request must come from that link address. So
//! one identifier is one address of one neighbour, and no neighbour can end the registration of
//! another. If a sender made its address up, no node acknowledges the answer. Until the answer is
//! acknowledged, an entry is *tentative*: it is short-lived, and not reported.
//!
//! Left out: link-local addresses, which are unique already (RFC 6775 §5.2); duplicates beyond this
//! router (RFC 6775 §8.2); a limit on lifetimes, since a registration costs only its entry.
//! Sources: RFC 6775 §4.1 and §6.5; RFC 8505 §5.1 to §5.3 and §5.7.

use super::Iid;
use crate::time::{Duration, Instant};
use crate::wire::ndp::registration;
use crate::wire::{lollipop, same};

/// Whether this build keeps registrations. Without RPL a router could not announce the addresses.
pub(crate) const IS_SUPPORTED: bool = cfg!(feature = "leaves");

/// Whether this build can be a router of neighbours. Without the feature a mote only sends and
/// receives its own packets, and the code for advertising is left out.
pub(crate) const IS_ROUTER: bool = cfg!(feature = "advertise");

/// How long an entry waits for its neighbour to acknowledge the answer: all attempts of the MAC,
/// behind a few frames for others.
const TENTATIVE: Duration = Duration::from_secs(2);

/// How long after a registration a request with the same transaction is a repetition. A neighbour
/// that still has no answer repeats its request after that, too. The router then answers that the
/// transaction is stale, and the neighbour takes the next one.
const REPEATED: Duration = Duration::from_secs(60);

/// Why a registration was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegistrationRefusal {
    /// Another node has registered the address.
    Duplicate,
    /// No room in the table.
    Full,
    /// A later request is known: this one was repeated, or its sender has lost count.
    Stale,
    /// The address is of another prefix, or does not derive from the link address of its sender.
    NotOnLink,
}

impl RegistrationRefusal {
    /// How many reasons there are.
    pub const COUNT: usize = Self::NotOnLink as usize + 1;

    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Duplicate => "address registered by another node",
            Self::Full => "table of registrations full",
            Self::Stale => "registration older than the one known",
            Self::NotOnLink => "address not usable on this link",
        }
    }

    /// The status in the answer to the registration (RFC 8505 §4.1, Table 1).
    pub(crate) const fn status(self) -> u8 {
        match self {
            Self::Duplicate => registration::DUPLICATE,
            Self::Full => registration::FULL,
            Self::Stale => registration::MOVED,
            Self::NotOnLink => registration::TOPOLOGY,
        }
    }
}

speaks!(RegistrationRefusal);

/// How registrations went; all counts wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RegistrationCounters {
    /// Accepted: new ones, renewals and removals.
    pub accepted: u32,
    /// Ended without a request: their time was over, or nothing acknowledged the answer.
    pub expired: u32,
    refused: [u32; RegistrationRefusal::COUNT],
}

impl RegistrationCounters {
    /// Registrations refused for `reason` since start.
    pub fn refused(&self, reason: RegistrationRefusal) -> u32 {
        self.refused
            .get(reason as usize)
            .copied()
            .unwrap_or_default()
    }

    fn count(&mut self, reason: RegistrationRefusal) {
        if let Some(count) = self.refused.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
    }
}

/// A registration request of a neighbour, from its ARO or EARO (RFC 8505 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    /// The identifier of its address.
    pub(crate) iid: Iid,
    /// Which node registers it (ROVR, EUI-64).
    pub(crate) owner: [u8; 8],
    /// Whether the address derives from `owner`, so that no other node can have it by right.
    pub(crate) is_by_right: bool,
    /// The lifetime, minutes; 0: remove the registration.
    pub(crate) lifetime_min: u16,
    /// The transaction ID (TID) of the request, a lollipop counter; `None` in an ARO without one.
    pub(crate) tid: Option<u8>,
    /// The router is to make it reachable (R flag).
    pub(crate) is_routed: bool,
    /// RPL's instance, where the neighbour names one (I field of 1, RFC 9010 §9.2.1).
    pub(crate) instance: Option<u8>,
}

/// A registration that has begun, was renewed or is over.
#[cfg(feature = "leaves")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// The identifier of the address, which lies in the mesh's prefix.
    pub(crate) iid: Iid,
    /// How long it holds from its last renewal, minutes; 0: it is over.
    pub(crate) lifetime_min: u16,
    /// The neighbour's transaction, a lollipop counter: RPL's path sequence (RFC 9010 §9.2.1).
    pub(crate) tid: Option<u8>,
    /// The router is to make it reachable.
    pub(crate) is_routed: bool,
    /// RPL's instance, where the neighbour names one.
    pub(crate) instance: Option<u8>,
}

/// Memory for one registered address (RFC 8505), lent by the caller.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "leaves"),
    expect(dead_code, reason = "only RPL asks what its leaves want of it")
)]
pub struct Registration {
    iid: Iid,
    owner: [u8; 8],
    expires: Instant,
    lifetime_min: u16,
    tid: Option<u8>,
    instance: Option<u8>,
    is_routed: bool,
    /// Whether the registration, or its end, has still to be reported to RPL.
    is_news: bool,
    /// The root has not yet confirmed the reported change of this entry.
    is_due: bool,
    state: State,
}

/// The states of a neighbour cache entry (RFC 6775 §3.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// No registration; one that is news has just ended.
    Free,
    /// The neighbour has requested the registration, but has not acknowledged a frame yet.
    Tentative,
    Registered,
}

impl Registration {
    /// An entry without a registration, to fill a table with.
    pub const EMPTY: Self = Self {
        iid: [0; 8],
        owner: [0; 8],
        expires: Instant::ORIGIN,
        lifetime_min: 0,
        tid: None,
        instance: None,
        is_routed: false,
        is_news: false,
        is_due: false,
        state: State::Free,
    };

    /// The identifier of the address.
    pub const fn iid(&self) -> Iid {
        self.iid
    }

    /// When the registration ends, unless it is renewed before.
    pub const fn expires(&self) -> Instant {
        self.expires
    }

    /// Whether the neighbour wants this router to make its address reachable, because it does not
    /// take part in routing itself (R flag, RFC 8505 §5.1).
    pub const fn is_routed(&self) -> bool {
        self.is_routed
    }

    fn is_of(&self, iid: Iid) -> bool {
        self.state != State::Free && same(&self.iid, &iid)
    }

    #[cfg(feature = "leaves")]
    const fn change(&self) -> Change {
        Change {
            iid: self.iid,
            lifetime_min: self.lifetime_min,
            tid: self.tid,
            is_routed: self.is_routed,
            instance: self.instance,
        }
    }

    /// Whether a request with the entry's transaction may be a repetition of the one that made it.
    fn is_fresh(&self, now: Instant) -> bool {
        let lifetime = Duration::from_secs(60 * u64::from(self.lifetime_min));
        self.state == State::Tentative || now + lifetime < self.expires + REPEATED
    }

    /// Ends the entry. If it was reported, its end is reported, too.
    fn end(&mut self) {
        self.is_news |= self.state == State::Registered;
        self.state = State::Free;
        self.lifetime_min = 0;
    }

    /// The router has accepted the registration, which holds from now on.
    fn accept(&mut self, now: Instant) {
        self.state = State::Registered;
        self.is_news = true;
        self.expires = now + Duration::from_secs(60 * u64::from(self.lifetime_min));
    }
}

/// The registrations of one link: a 6LR's registered and tentative neighbour cache entries.
#[derive(Debug)]
pub(crate) struct NeighborCache<'m> {
    table: &'m mut [Registration],
    /// The entry that [`Self::next_due`] looks at first.
    #[cfg(feature = "leaves")]
    due_from: u8,
    /// When the first registration ends, unless it is renewed; none: [`Instant::NEVER`].
    #[cfg(feature = "leaves")]
    ends_first: Instant,
    /// Whether an entry waits for its neighbour to acknowledge a frame.
    #[cfg(feature = "leaves")]
    has_tentative: bool,
    /// Whether `poll_change` may find something.
    #[cfg(feature = "leaves")]
    has_changed: bool,
    counters: RegistrationCounters,
}

impl<'m> NeighborCache<'m> {
    pub(crate) fn new(table: &'m mut [Registration]) -> Self {
        table.fill(Registration::EMPTY);
        Self {
            table,
            #[cfg(feature = "leaves")]
            due_from: 0,
            #[cfg(feature = "leaves")]
            ends_first: Instant::NEVER,
            #[cfg(feature = "leaves")]
            has_tentative: false,
            #[cfg(feature = "leaves")]
            has_changed: false,
            counters: RegistrationCounters::default(),
        }
    }

    /// Gives back the memory it was lent.
    pub(crate) fn into_memory(self) -> &'m mut [Registration] {
        self.table
    }

    /// Whether the table takes registrations at all: with a table of length zero every answer would
    /// be "full", and neighbours would repeat their requests for ever.
    pub(crate) const fn is_open(&self) -> bool {
        IS_SUPPORTED && !self.table.is_empty()
    }

    pub(crate) const fn counters(&self) -> &RegistrationCounters {
        &self.counters
    }

    /// The registered entries, without the tentative ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Registration> {
        let held = |entry: &&Registration| IS_SUPPORTED && entry.state == State::Registered;
        self.table.iter().filter(held)
    }

    /// Whether a neighbour's address with this identifier is registered.
    pub(crate) fn holds(&self, iid: Iid) -> bool {
        self.iter().any(|entry| same(&entry.iid, &iid))
    }

    /// Decides on a request; `is_known`: its sender acknowledges frames.
    ///
    /// # Errors
    /// Why it is refused, which is counted.
    pub(crate) fn register(
        &mut self,
        request: &Request,
        is_known: bool,
        now: Instant,
    ) -> Result<(), RegistrationRefusal> {
        let decided = self.decide(request, is_known, now);
        match decided {
            Ok(()) => {
                self.counters.accepted = self.counters.accepted.wrapping_add(1);
                self.change();
            }
            Err(reason) => self.counters.count(reason),
        }
        decided
    }

    /// Counts a request that was refused before it came here.
    pub(crate) fn refuse(&mut self, reason: RegistrationRefusal) {
        self.counters.count(reason);
    }

    fn decide(
        &mut self,
        request: &Request,
        is_known: bool,
        now: Instant,
    ) -> Result<(), RegistrationRefusal> {
        let place = match self.table.iter().position(|entry| entry.is_of(request.iid)) {
            Some(place) => place,
            None if request.lifetime_min == 0 => return Ok(()),
            None => self.room(is_known).ok_or(RegistrationRefusal::Full)?,
        };
        let entry = self.table.get_mut(place);
        let entry = entry.ok_or(RegistrationRefusal::Full)?;
        if entry.is_of(request.iid) {
            if !same(&entry.owner, &request.owner) {
                // The first owner keeps the address, unless the address derives from the EUI-64 of
                // the new one.
                if !request.is_by_right {
                    return Err(RegistrationRefusal::Duplicate);
                }
            } else if let (Some(known), Some(tid)) = (entry.tid, request.tid) {
                // A request that is repeated is answered as it was, and changes nothing. Long after
                // the registration it is none: the neighbour has lost its memory and begins to
                // count anew, and another router may have a later one of it.
                if known == tid && entry.is_fresh(now) {
                    return Ok(());
                }
                if !is_later(tid, known) {
                    return Err(RegistrationRefusal::Stale);
                }
            }
        }
        let is_held = entry.is_of(request.iid) && entry.state == State::Registered;
        if request.lifetime_min == 0 {
            entry.tid = request.tid;
            entry.end();
            return Ok(());
        }
        *entry = Registration {
            iid: request.iid,
            owner: request.owner,
            expires: now + TENTATIVE,
            lifetime_min: request.lifetime_min,
            tid: request.tid,
            instance: request.instance,
            is_routed: request.is_routed,
            is_news: false,
            is_due: false,
            state: State::Tentative,
        };
        if is_held || is_known {
            entry.accept(now);
        }
        Ok(())
    }

    /// A free place for one more registration; better one whose end was reported. A neighbour that
    /// acknowledges may take the place of one that has not acknowledged anything yet.
    fn room(&self, is_known: bool) -> Option<usize> {
        let rank = |entry: &Registration| match entry.state {
            State::Free => Some(u8::from(entry.is_news || entry.is_due)),
            State::Tentative if is_known => Some(2),
            State::Tentative | State::Registered => None,
        };
        let places = self.table.iter().map(rank).zip(0..);
        let places = places.filter_map(|(rank, place)| Some((rank?, place)));
        places.min().map(|(_, place)| place)
    }
}

/// Changes of registrations without a request.
#[cfg(feature = "leaves")]
impl NeighborCache<'_> {
    /// The neighbour has acknowledged a frame: it is there.
    pub(crate) fn on_acknowledged(&mut self, by: Iid, now: Instant) {
        if !self.has_tentative {
            return;
        }
        for entry in self.table.iter_mut() {
            if entry.state == State::Tentative && same(&entry.iid, &by) {
                entry.accept(now);
            }
        }
        self.change();
    }

    /// When [`Self::expire`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.ends_first != Instant::NEVER).then_some(self.ends_first)
    }

    /// Ends registrations that were not renewed.
    pub(crate) fn expire(&mut self, now: Instant) {
        if now < self.ends_first {
            return;
        }
        for entry in self.table.iter_mut() {
            if entry.state != State::Free && now >= entry.expires {
                entry.end();
                self.counters.expired = self.counters.expired.wrapping_add(1);
            }
        }
        self.change();
    }

    /// Ends all: the addresses are those of a prefix that is no more.
    pub(crate) fn clear(&mut self) {
        self.table.iter_mut().for_each(Registration::end);
        self.change();
    }

    /// Notes what polls ask for, so that they need not walk through a table in which nothing has
    /// changed.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn change(&mut self) {
        #[cfg(test)]
        crate::tally::count(|tally| tally.walks += 1);
        self.has_changed = true;
        self.has_tentative = false;
        self.ends_first = Instant::NEVER;
        for entry in self.table.iter() {
            if entry.state != State::Free {
                self.ends_first = self.ends_first.min(entry.expires);
                self.has_tentative |= entry.state == State::Tentative;
            }
        }
    }
}

/// A build without the feature keeps none.
#[cfg(not(feature = "leaves"))]
impl NeighborCache<'_> {
    pub(crate) const fn on_acknowledged(&mut self, _: Iid, _: Instant) {}

    pub(crate) const fn next_deadline(&self) -> Option<Instant> {
        None
    }

    pub(crate) const fn expire(&mut self, _: Instant) {}

    pub(crate) const fn clear(&mut self) {}

    const fn change(&mut self) {}
}

/// Reports to the root about leaves, for which this router speaks (RFC 9010).
#[cfg(feature = "leaves")]
impl NeighborCache<'_> {
    /// The next change that was not returned before, each registration by itself.
    pub(crate) fn poll_change(&mut self) -> Option<Change> {
        if !self.has_changed {
            return None;
        }
        #[cfg(test)]
        crate::tally::count(|tally| tally.walks += 1);
        let entry = self.table.iter_mut().find(|entry| entry.is_news);
        self.has_changed = entry.is_some();
        let entry = entry?;
        entry.is_news = false;
        entry.is_due = entry.is_routed;
        Some(entry.change())
    }

    /// The next registration that the root is to hear of, in turn; it stays so until
    /// [`Self::settle`].
    pub(crate) fn next_due(&mut self) -> Option<Change> {
        let len = self.table.len();
        let from = usize::from(self.due_from);
        let mut places = (from..len).chain(0..from.min(len));
        let is_due = |place: &usize| self.table.get(*place).is_some_and(|entry| entry.is_due);
        let place = places.find(is_due)?;
        self.due_from = u8::try_from(place + 1).unwrap_or(0);
        self.table.get(place).map(Registration::change)
    }

    /// The root has heard that the neighbour `iid` is registered by transaction `tid` for
    /// `lifetime_min` minutes: there is no more to report, unless the registration has changed
    /// since.
    pub(crate) fn settle(&mut self, iid: Iid, (tid, lifetime_min): (u8, u16)) {
        for entry in self.table.iter_mut() {
            let is_it =
                (entry.iid, entry.tid, entry.lifetime_min) == (iid, Some(tid), lifetime_min);
            entry.is_due &= !is_it;
        }
    }

    /// The root is to hear of all again.
    pub(crate) fn tell_all(&mut self) {
        for entry in self.table.iter_mut() {
            entry.is_due |= entry.is_routed && entry.state == State::Registered;
        }
    }

    /// Ends a registration without a word to the root, which knows a later one. Returns its owner
    /// and its transaction.
    pub(crate) fn forget(&mut self, iid: Iid) -> Option<([u8; 8], Option<u8>)> {
        let mut entries = self.table.iter_mut();
        let entry = entries.find(|entry| entry.is_of(iid))?;
        entry.end();
        (entry.is_news, entry.is_due) = (false, false);
        let forgotten = (entry.owner, entry.tid);
        self.change();
        Some(forgotten)
    }

    /// Ends a neighbour's registration because another router has advertised the neighbour to the
    /// root, with transaction `sequence`. A registration with a later transaction stays, and so
    /// does one whose neighbour has not acknowledged a frame yet.
    #[cfg(feature = "root")]
    pub(crate) fn forget_before(&mut self, iid: Iid, sequence: u8) {
        let is_past = |entry: &Registration| {
            let is_later = entry.tid.is_some_and(|tid| is_later(tid, sequence));
            entry.is_of(iid) && entry.state == State::Registered && !is_later
        };
        if self.table.iter().any(is_past) {
            self.forget(iid);
        }
    }
}

/// Whether transaction `tid` follows `known`. In the straight part of the lollipop it does so from
/// any distance: no honest counter begins there but at the end, and a forged one must not stay for
/// as long as its registration.
pub(super) fn is_later(tid: u8, known: u8) -> bool {
    const STRAIGHT: u8 = 128;
    match lollipop::compare(tid, known) {
        Some(order) => order.is_gt(),
        None => known >= STRAIGHT && tid > known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const START: Instant = Instant::from_micros(1_000_000);
    const MINUTE: Duration = Duration::from_secs(60);

    fn iid(n: u8) -> Iid {
        [2, 0, 0, 0, 0, 0, 0, n]
    }

    /// A request of node `n` in its own name, for an hour.
    fn request(n: u8, tid: u8) -> Request {
        Request {
            iid: iid(n),
            owner: [n; 8],
            is_by_right: false,
            lifetime_min: 60,
            tid: Some(tid),
            is_routed: true,
            instance: None,
        }
    }

    fn with_room<R>(count: usize, run: impl FnOnce(NeighborCache<'_>) -> R) -> R {
        let mut table = std::vec![Registration::EMPTY; count];
        run(NeighborCache::new(&mut table))
    }

    fn changes(neighbor_cache: &mut NeighborCache<'_>) -> Vec<(u8, u16)> {
        let changes = core::iter::from_fn(|| neighbor_cache.poll_change());
        changes.map(|c| (c.iid[7], c.lifetime_min)).collect()
    }

    #[test]
    fn a_registration_begins_is_renewed_and_ends_each_time_reported_once() {
        with_room(2, |mut neighbor_cache| {
            assert_eq!(
                neighbor_cache.register(&request(1, 240), true, START),
                Ok(())
            );
            assert_eq!(changes(&mut neighbor_cache), [(1, 60)]);
            let later = START + MINUTE.saturating_mul(50);
            assert_eq!(
                neighbor_cache.register(&request(1, 241), true, later),
                Ok(())
            );
            assert_eq!(changes(&mut neighbor_cache), [(1, 60)]);
            let end = later + MINUTE.saturating_mul(60);
            assert_eq!(neighbor_cache.next_deadline(), Some(end));
            neighbor_cache.expire(Instant::from_micros(end.as_micros() - 1));
            assert!(neighbor_cache.holds(iid(1)));
            neighbor_cache.expire(end);
            assert!(!neighbor_cache.holds(iid(1)));
            assert_eq!(changes(&mut neighbor_cache), [(1, 0)]);
            assert_eq!(neighbor_cache.counters().expired, 1);
            let removal = Request {
                lifetime_min: 0,
                ..request(2, 241)
            };
            assert_eq!(neighbor_cache.register(&request(2, 240), true, end), Ok(()));
            assert_eq!(neighbor_cache.register(&removal, true, end), Ok(()));
            assert_eq!(
                changes(&mut neighbor_cache),
                [(2, 0)],
                "only what is left of it"
            );
            assert_eq!(
                neighbor_cache.register(&removal, true, end),
                Ok(()),
                "again"
            );
            assert_eq!(neighbor_cache.next_deadline(), None);
        });
    }

    #[test]
    fn another_owner_is_a_duplicate_unless_the_address_is_its_own_by_right() {
        with_room(2, |mut neighbor_cache| {
            let first = request(1, 240);
            let other = Request {
                owner: [9; 8],
                tid: Some(5),
                ..first
            };
            assert_eq!(neighbor_cache.register(&first, true, START), Ok(()));
            let refused = Err(RegistrationRefusal::Duplicate);
            assert_eq!(neighbor_cache.register(&other, true, START), refused);
            let removal = Request {
                lifetime_min: 0,
                ..other
            };
            assert_eq!(neighbor_cache.register(&removal, true, START), refused);
            assert!(neighbor_cache.holds(iid(1)));
            let owner = Request {
                is_by_right: true,
                ..other
            };
            assert_eq!(neighbor_cache.register(&owner, false, START), Ok(()));
            assert_eq!(neighbor_cache.register(&first, true, START), refused);
            let count = neighbor_cache
                .counters()
                .refused(RegistrationRefusal::Duplicate);
            assert_eq!(count, 3);
        });
    }

    #[test]
    fn only_a_later_transaction_changes_anything() {
        let removal = |tid| Request {
            lifetime_min: 0,
            ..request(1, tid)
        };
        // (known, then, whether it is taken; `None`: answered, and nothing changes)
        for (known, then, taken) in [
            (240, 241, Some(true)),
            (240, 240, None),
            (241, 240, Some(false)),
            (255, 0, Some(true)),
            (0, 255, Some(false)),
            (5, 240, Some(true)),
            (127, 0, Some(true)),
            (0, 127, Some(false)),
            (0, 50, Some(false)),
            (200, 240, Some(true)),
            (255, 130, Some(false)),
        ] {
            with_room(1, |mut neighbor_cache| {
                neighbor_cache
                    .register(&request(1, known), true, START)
                    .expect("room");
                let outcome = neighbor_cache.register(&removal(then), true, START);
                let refused = Err(RegistrationRefusal::Stale);
                let expected = match taken {
                    Some(false) => refused,
                    Some(true) | None => Ok(()),
                };
                assert_eq!(outcome, expected, "{then} after {known}");
                let is_gone = taken == Some(true);
                assert_eq!(
                    neighbor_cache.holds(iid(1)),
                    !is_gone,
                    "{then} after {known}"
                );
            });
        }
    }

    #[test]
    fn a_repetition_prolongs_nothing() {
        with_room(1, |mut neighbor_cache| {
            let asked = request(1, 240);
            assert_eq!(neighbor_cache.register(&asked, true, START), Ok(()));
            let end = neighbor_cache.next_deadline();
            let later = START + Duration::from_secs(59);
            assert_eq!(neighbor_cache.register(&asked, true, later), Ok(()));
            assert_eq!(neighbor_cache.next_deadline(), end);
        });
    }

    /// The neighbour has restarted, or another node repeats its request.
    #[test]
    fn the_same_transaction_long_after_the_registration_is_stale() {
        with_room(1, |mut neighbor_cache| {
            let asked = request(1, 240);
            assert_eq!(neighbor_cache.register(&asked, true, START), Ok(()));
            let end = neighbor_cache.next_deadline();
            for minutes in [1, 59] {
                let later = START + MINUTE.saturating_mul(minutes);
                let decided = neighbor_cache.register(&asked, true, later);
                assert_eq!(decided, Err(RegistrationRefusal::Stale));
                assert_eq!(neighbor_cache.next_deadline(), end);
            }
            let next = request(1, 241);
            let later = START + MINUTE.saturating_mul(59);
            assert_eq!(neighbor_cache.register(&next, true, later), Ok(()));
            assert_ne!(neighbor_cache.next_deadline(), end);
        });
    }

    /// A DAO may be a repetition that the neighbour has overtaken.
    #[test]
    fn another_routers_word_ends_no_later_registration() {
        with_room(1, |mut neighbor_cache| {
            let asked = request(1, 241);
            assert_eq!(neighbor_cache.register(&asked, false, START), Ok(()));
            // It has still to show that it is there.
            neighbor_cache.forget_before(iid(1), 242);
            neighbor_cache.on_acknowledged(iid(1), START);
            for (sequence, is_kept) in [(240, true), (241, false)] {
                neighbor_cache.forget_before(iid(1), sequence);
                assert_eq!(neighbor_cache.holds(iid(1)), is_kept, "{sequence}");
            }
        });
    }

    #[test]
    fn an_option_without_transactions_is_taken_as_it_comes() {
        with_room(1, |mut neighbor_cache| {
            let plain = Request {
                tid: None,
                ..request(1, 0)
            };
            let later = START + MINUTE;
            assert_eq!(neighbor_cache.register(&plain, true, START), Ok(()));
            assert_eq!(neighbor_cache.register(&plain, true, later), Ok(()));
            let end = later + MINUTE.saturating_mul(60);
            assert_eq!(neighbor_cache.next_deadline(), Some(end));
        });
    }

    #[test]
    fn a_full_table_refuses_and_ends_nobodys_registration() {
        with_room(2, |mut neighbor_cache| {
            for n in 1..=2 {
                assert_eq!(
                    neighbor_cache.register(&request(n, 240), true, START),
                    Ok(())
                );
            }
            let refused = Err(RegistrationRefusal::Full);
            assert_eq!(
                neighbor_cache.register(&request(3, 240), true, START),
                refused
            );
            assert!(neighbor_cache.holds(iid(1)) && neighbor_cache.holds(iid(2)));
            assert_eq!(
                neighbor_cache.register(&request(1, 241), false, START),
                Ok(())
            );
            let over = START + MINUTE.saturating_mul(60);
            neighbor_cache.expire(over);
            assert_eq!(changes(&mut neighbor_cache), [(1, 0), (2, 0)]);
            assert_eq!(
                neighbor_cache.register(&request(3, 240), true, over),
                Ok(())
            );
        });
    }

    #[test]
    fn a_made_up_sender_is_soon_forgotten_and_never_reported() {
        with_room(2, |mut neighbor_cache| {
            for n in 1..=2 {
                assert_eq!(
                    neighbor_cache.register(&request(n, 240), false, START),
                    Ok(())
                );
            }
            assert!(!neighbor_cache.holds(iid(1)), "nothing has acknowledged");
            let refused = Err(RegistrationRefusal::Full);
            assert_eq!(
                neighbor_cache.register(&request(3, 240), false, START),
                refused
            );
            neighbor_cache.on_acknowledged(iid(2), START);
            assert_eq!(
                neighbor_cache.register(&request(3, 240), true, START),
                Ok(())
            );
            let soon = START + TENTATIVE;
            neighbor_cache.expire(soon);
            assert_eq!(changes(&mut neighbor_cache), [(3, 60), (2, 60)]);
            assert!(neighbor_cache.holds(iid(2)) && neighbor_cache.holds(iid(3)));
        });
        with_room(1, |mut neighbor_cache| {
            assert_eq!(
                neighbor_cache.register(&request(1, 240), false, START),
                Ok(())
            );
            neighbor_cache.expire(START + TENTATIVE);
            assert_eq!(changes(&mut neighbor_cache), []);
            assert_eq!(neighbor_cache.counters().expired, 1);
        });
    }

    #[test]
    fn with_the_prefix_all_registrations_end() {
        with_room(3, |mut neighbor_cache| {
            neighbor_cache
                .register(&request(1, 240), true, START)
                .expect("room");
            neighbor_cache
                .register(&request(2, 240), false, START)
                .expect("room");
            assert_eq!(changes(&mut neighbor_cache), [(1, 60)]);
            neighbor_cache.clear();
            assert_eq!(changes(&mut neighbor_cache), [(1, 0)]);
            assert_eq!(neighbor_cache.next_deadline(), None);
        });
    }

    #[test]
    fn polls_walk_through_no_table_in_which_nothing_has_changed() {
        with_room(4, |mut neighbor_cache| {
            for n in 1..=3 {
                let renewed = START + MINUTE.saturating_mul(n);
                let request = request(n as u8, 240);
                assert_eq!(neighbor_cache.register(&request, true, renewed), Ok(()));
            }
            assert_eq!(changes(&mut neighbor_cache), [(1, 60), (2, 60), (3, 60)]);
            let end = START + MINUTE.saturating_mul(61);
            let mut tally = Tally::default();
            for s in 0..100 {
                tally.add(|| {
                    neighbor_cache.expire(START + Duration::from_secs(s));
                    neighbor_cache.on_acknowledged(iid(2), START);
                    assert_eq!(neighbor_cache.poll_change(), None);
                    assert_eq!(neighbor_cache.next_deadline(), Some(end));
                });
            }
            assert_eq!(tally.walks, 0);
            tally.add(|| neighbor_cache.expire(end));
            assert!(tally.walks > 0);
            assert_eq!(changes(&mut neighbor_cache), [(1, 0)]);
            assert_eq!(neighbor_cache.next_deadline(), Some(end + MINUTE));
        });
    }

    #[test]
    fn a_table_without_room_is_closed() {
        assert!(!with_room(0, |neighbor_cache| neighbor_cache.is_open()));
        assert_eq!(
            with_room(1, |neighbor_cache| neighbor_cache.is_open()),
            IS_SUPPORTED
        );
    }

    /// Takes what the table reports into the set of those that hold.
    fn note(reported: &mut BTreeSet<Iid>, neighbor_cache: &mut NeighborCache<'_>) {
        while let Some(change) = neighbor_cache.poll_change() {
            match change.lifetime_min {
                0 => reported.remove(&change.iid),
                _ => reported.insert(change.iid),
            };
        }
    }

    proptest! {
        /// Whatever strangers ask: who acknowledges and renews in time stays registered, no
        /// identifier is there twice, and what is reported adds up to what is held.
        #[test]
        fn strangers_change_nothing_for_those_who_acknowledge(
            requests in prop::collection::vec(
                (2u8..12, any::<u8>(), 0u16..3, any::<Option<u8>>(), any::<[bool; 2]>(), 0u64..40), 0..200,
            ),
        ) {
            with_room(4, |mut neighbor_cache| {
                let own = Request { is_by_right: true, ..request(1, 240) };
                let mut tid = 240;
                neighbor_cache.register(&own, true, START).expect("room");
                let (mut now, mut renewed) = (START, START);
                let mut reported = BTreeSet::new();
                for (n, owner, lifetime_min, tid_asked, [known, by_right], wait_s) in requests {
                    now += Duration::from_secs(wait_s);
                    if now.since(renewed) > MINUTE.saturating_mul(30) {
                        tid = lollipop::next(tid);
                        renewed = now;
                        let renewal = Request { tid: Some(tid), ..own };
                        prop_assert_eq!(neighbor_cache.register(&renewal, true, now), Ok(()));
                    }
                    let asked = Request {
                        owner: [owner; 8], is_by_right: by_right, lifetime_min, tid: tid_asked, ..request(n, 0)
                    };
                    neighbor_cache.expire(now);
                    note(&mut reported, &mut neighbor_cache);
                    let _ = neighbor_cache.register(&asked, known, now);
                    prop_assert!(neighbor_cache.holds(iid(1)));
                    note(&mut reported, &mut neighbor_cache);
                    let held: Vec<_> = neighbor_cache.iter().map(Registration::iid).collect();
                    let set = held.iter().copied().collect::<BTreeSet<_>>();
                    prop_assert_eq!(set.len(), held.len());
                    prop_assert!(held.iter().all(|iid| reported.contains(iid)));
                    prop_assert!(reported == set);
                    let taken = neighbor_cache.table.iter().filter(|entry| entry.state != State::Free);
                    let first = taken.map(|entry| entry.expires).min();
                    prop_assert_eq!(neighbor_cache.next_deadline(), first);
                }
                Ok(())
            })?;
        }
    }
}
