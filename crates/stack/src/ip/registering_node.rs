//! A node's registration of its address with its router.
//!
//! Place: the link starts it when it has a router and an address, sends what is due, and hands in
//! the answers. It repeats its request at growing intervals until it is accepted, and again before
//! the registration ends. After several refusals or missing answers in a row the node also looks
//! for another router, and keeps its own until it has found one: a router forwards packets of
//! unregistered neighbours, too.
//!
//! An answer counts only if its transaction ID is that of the open request. An answer with another
//! ID shows that the router has a registration in this node's name that this node did not request:
//! the node then registers again, no more often than it would repeat a request.
//! Sources: RFC 6775 §5.5, RFC 8505 §5.2 and §5.7.

use super::ndp::pace;
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::lollipop;
use crate::wire::ndp::{AddressRegistration, registration};

/// The lifetime of a registration, minutes: a router forgets a mote that was taken away within the
/// hour, and each renewal costs two frames.
pub(crate) const LIFETIME_MIN: u16 = 60;

/// Random wait before the first request, since one advertisement sets off all its hearers: some 30
/// of them find room for their four frames.
const FIRST_DELAY_MAX: Duration = Duration::from_secs(1);

/// The least time between a registration and one that is made early.
const HASTENED_MIN: Duration = Duration::from_secs(60);

/// Requests in a row without success until other routers are looked for, or an address that
/// another node has is given up (`MAX_UNICAST_SOLICIT`, RFC 4861 §10).
const FAILURES_MAX: u8 = 3;

/// The registration of one address, at the node that registers it (RFC 8505 §2: *registering
/// node*).
#[derive(Debug)]
pub(crate) struct RegisteringNode {
    /// The transaction of the last request.
    tid: u8,
    /// Whether the last request has had no answer yet.
    is_open: bool,
    /// Requests since the last success.
    failures: u8,
    /// Answers since the last success with the status "duplicate address" (RFC 6775 §4.1).
    duplicates: u8,
    /// When the last success was.
    accepted: Instant,
    /// When the next request is due; `None`: this node does not register.
    at: Option<Instant>,
}

/// The outcome of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The address is registered, and may be used.
    Accepted,
    /// The router has answered several times that another node has the address.
    Duplicate,
    /// The address is neither accepted nor given up: another request follows.
    Pending,
}

impl RegisteringNode {
    pub(crate) const fn new() -> Self {
        Self {
            tid: lollipop::INITIAL - 1,
            is_open: false,
            failures: 0,
            duplicates: 0,
            accepted: Instant::ORIGIN,
            at: None,
        }
    }

    /// Registers anew, after a random moment: router or address are new.
    pub(crate) fn start(&mut self, now: Instant, rng: &mut Rng) {
        (self.is_open, self.failures, self.duplicates) = (false, 0, 0);
        self.at = Some(now + rng.uniform(FIRST_DELAY_MAX));
    }

    /// Registers no more: there is no router, or no address.
    pub(crate) fn stop(&mut self) {
        (self.is_open, self.at) = (false, None);
    }

    /// Renews the registration soon, because the router may have lost it. The hint can be forged,
    /// hence at most once a minute.
    pub(crate) fn hasten(&mut self, now: Instant) {
        if self.failures == 0 {
            let soon = (now + pace(1)).max(self.accepted + HASTENED_MIN);
            self.at = self.at.map(|at| at.min(soon));
        }
    }

    /// Whether this node has an address to register and a router to register it with.
    pub(crate) const fn is_active(&self) -> bool {
        self.at.is_some()
    }

    /// When [`Self::poll`] has something to do.
    pub(crate) const fn next_deadline(&self) -> Option<Instant> {
        self.at
    }

    /// The transaction of the request that is due now, if one is.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<u8> {
        self.at.filter(|at| now >= *at)?;
        // One that had no answer is repeated as it was.
        if !self.is_open {
            self.next_tid();
        }
        self.is_open = true;
        self.failures = self.failures.saturating_add(1);
        self.at = Some(now + pace(self.failures));
        Some(self.tid)
    }

    /// The next transaction: that of a request which needs no answer, too.
    pub(crate) fn next_tid(&mut self) -> u8 {
        self.tid = lollipop::next(self.tid);
        self.tid
    }

    /// Whether to look for another router: this one has refused, or not answered, several times.
    pub(crate) const fn is_in_trouble(&self) -> bool {
        self.failures > FAILURES_MAX
    }

    /// Whether another node has the address.
    pub(crate) const fn is_duplicate(&self) -> bool {
        self.duplicates >= FAILURES_MAX
    }

    /// The router's answer to a solicitation: `None` where it has no word about registrations.
    pub(crate) fn on_answer(
        &mut self,
        answer: Option<&AddressRegistration<'_>>,
        now: Instant,
        rng: &mut Rng,
    ) -> Outcome {
        let Some(at) = self.at else {
            return Outcome::Pending;
        };
        let is_ours = match answer {
            // An RFC 6775 router may return the transaction or not.
            Some(answer) => answer.transaction.is_none_or(|tid| tid == self.tid),
            None => true,
        };
        let is_moved = answer.is_some_and(|answer| answer.status == registration::MOVED);
        if !is_ours || !(self.is_open || is_moved) {
            if answer.is_some() && self.failures == 0 {
                self.at = Some(at.min(now + pace(1)));
            }
            return Outcome::Pending;
        }
        self.is_open = false;
        let granted_min = match answer.map(|answer| (answer.status, answer.lifetime_min)) {
            // A router that keeps none may keep some later.
            None => LIFETIME_MIN,
            Some((registration::SUCCESS, lifetime_min)) => lifetime_min.clamp(1, LIFETIME_MIN),
            Some((registration::DUPLICATE, _)) => {
                self.duplicates = self.duplicates.saturating_add(1);
                return match self.is_duplicate() {
                    true => Outcome::Duplicate,
                    false => Outcome::Pending,
                };
            }
            Some((registration::MOVED, _)) => {
                // The root has seen this one elsewhere or a later one: before this node restarted,
                // or another's in its name. The next one may be later than both. If not, one of
                // three leaps is: into the circular part, from there to the straight part's
                // beginning, and from there to where a counter begins.
                self.tid = match self.tid {
                    ..lollipop::STRAIGHT => lollipop::STRAIGHT,
                    lollipop::STRAIGHT..lollipop::INITIAL => lollipop::INITIAL - 1,
                    lollipop::INITIAL => lollipop::INITIAL,
                    _ => u8::MAX,
                };
                self.at = Some(at.min(now + pace(1)));
                return Outcome::Pending;
            }
            Some(_) => return Outcome::Pending,
        };
        (self.failures, self.duplicates) = (0, 0);
        self.accepted = now;
        // Between five and six eighths through: time for several more attempts, and nodes that
        // registered together do not renew together.
        let eighth = Duration::from_micros(u64::from(granted_min) * (60_000_000 / 8));
        self.at = Some(now + eighth.saturating_mul(5) + rng.uniform(eighth));
        Outcome::Accepted
    }
}

#[cfg(test)]
mod tests {
    use super::super::neighbor_cache::is_later;
    use super::*;
    use std::vec::Vec;

    const START: Instant = Instant::from_micros(1_000_000);

    fn rng() -> Rng {
        Rng::from_seed([3, 4])
    }

    fn started(rng: &mut Rng) -> RegisteringNode {
        let mut registering_node = RegisteringNode::new();
        registering_node.start(START, rng);
        registering_node
    }

    /// Runs to the next request.
    fn asked(registering_node: &mut RegisteringNode) -> (Instant, u8) {
        let at = registering_node.next_deadline().expect("a request to come");
        (at, registering_node.poll(at).expect("due"))
    }

    fn answer(status: u8, tid: u8) -> AddressRegistration<'static> {
        AddressRegistration {
            status,
            opaque: 0,
            opaque_use: 0,
            reachable: true,
            transaction: Some(tid),
            lifetime_min: 60,
            owner: &[1; 8],
        }
    }

    #[test]
    fn an_unanswered_request_is_repeated_ever_more_slowly() {
        let mut registering_node = started(&mut rng());
        let requests: Vec<_> = (0..9).map(|_| asked(&mut registering_node)).collect();
        assert!(requests[0].0 <= START + FIRST_DELAY_MAX);
        let gaps: Vec<u64> = requests
            .windows(2)
            .map(|pair| pair[1].0.since(pair[0].0).as_millis() / 1_000)
            .collect();
        assert_eq!(gaps, [4, 4, 4, 8, 16, 32, 60, 60]);
        assert!(requests.iter().all(|(_, tid)| *tid == lollipop::INITIAL));
        assert!(registering_node.is_in_trouble());
    }

    #[test]
    fn it_is_renewed_before_it_ends_at_a_moment_of_its_own() {
        let mut rng = rng();
        let mut moments = Vec::new();
        for _ in 0..20 {
            let mut registering_node = started(&mut rng);
            let (at, tid) = asked(&mut registering_node);
            let answer = answer(registration::SUCCESS, tid);
            let outcome = registering_node.on_answer(Some(&answer), at, &mut rng);
            assert_eq!(outcome, Outcome::Accepted);
            let (again, next) = asked(&mut registering_node);
            assert_eq!(next, lollipop::next(tid));
            let minutes = again.since(at).as_millis() / 60_000;
            assert!((37..=45).contains(&minutes), "{minutes}");
            moments.push(again.since(at));
        }
        moments.sort_unstable();
        moments.dedup();
        assert_eq!(moments.len(), 20);
    }

    #[test]
    fn refused_it_asks_on_and_looks_elsewhere() {
        let mut rng = rng();
        let mut registering_node = started(&mut rng);
        let mut tids = Vec::new();
        for n in 0..6 {
            assert_eq!(
                registering_node.is_in_trouble(),
                n > FAILURES_MAX,
                "after {n}"
            );
            let (at, tid) = asked(&mut registering_node);
            tids.push(tid);
            let refused = answer(registration::FULL, tid);
            let outcome = registering_node.on_answer(Some(&refused), at, &mut rng);
            assert_eq!(outcome, Outcome::Pending);
        }
        assert_eq!(tids, [240, 241, 242, 243, 244, 245], "each a new request");
        let (at, tid) = asked(&mut registering_node);
        let taken = answer(registration::SUCCESS, tid);
        let outcome = registering_node.on_answer(Some(&taken), at, &mut rng);
        assert_eq!(outcome, Outcome::Accepted);
        assert!(!registering_node.is_in_trouble());
    }

    #[test]
    fn an_address_that_another_node_has_is_given_up_when_three_answers_say_so() {
        let mut rng = rng();
        let mut registering_node = started(&mut rng);
        let outcomes = [(); 3].map(|()| {
            let (at, tid) = asked(&mut registering_node);
            let refused = answer(registration::DUPLICATE, tid);
            registering_node.on_answer(Some(&refused), at, &mut rng)
        });
        use Outcome::{Duplicate, Pending};
        assert_eq!(outcomes, [Pending, Pending, Duplicate]);
        let (at, tid) = asked(&mut registering_node);
        let taken = answer(registration::SUCCESS, tid);
        registering_node.on_answer(Some(&taken), at, &mut rng);
        assert!(!registering_node.is_duplicate());
    }

    /// The router keeps what an earlier life of this node, or a forger, has registered last.
    #[test]
    fn behind_what_the_router_knows_it_catches_up_with_three_requests() {
        let mut rng = rng();
        for known in 0..=u8::MAX {
            // A router in whose table this is the last one; a repetition is answered.
            let answers = |tid: u8| match tid == known || is_later(tid, known) {
                true => registration::SUCCESS,
                false => registration::MOVED,
            };
            let mut registering_node = started(&mut rng);
            let mut requests = 0;
            loop {
                let (at, tid) = asked(&mut registering_node);
                requests += 1;
                let answer = answer(answers(tid), tid);
                let outcome = registering_node.on_answer(Some(&answer), at, &mut rng);
                if outcome == Outcome::Accepted {
                    break;
                }
                assert!(requests < 4, "router knows {known}");
            }
        }
    }

    /// The root knows a transaction of an earlier life over another router; each request is taken
    /// by the router and then refused by the root, unless what it knows is older.
    #[test]
    fn whatever_the_root_knows_of_another_router_four_requests_pass_it() {
        let mut rng = rng();
        for (known, first) in (0..=u8::MAX)
            .flat_map(|known| [0, 1, 127, 128, 200, 239, 240, 255].map(|first| (known, first)))
        {
            let mut registering_node = started(&mut rng);
            registering_node.tid = first;
            let passed = (0..4).any(|_| {
                let (at, tid) = asked(&mut registering_node);
                let taken = answer(registration::SUCCESS, tid);
                registering_node.on_answer(Some(&taken), at, &mut rng);
                if tid != known && !lollipop::is_newer(known, tid) {
                    return true;
                }
                let moved = answer(registration::MOVED, tid);
                registering_node.on_answer(Some(&moved), at, &mut rng);
                false
            });
            assert!(passed, "root knows {known}, begun behind {first}");
        }
    }

    /// A number that another router has, too, is left by the shortest step: a long one would soon
    /// make that router's old number seem new.
    #[test]
    fn a_first_number_that_is_known_elsewhere_is_followed_by_the_next() {
        let mut rng = rng();
        let mut registering_node = started(&mut rng);
        let (at, tid) = asked(&mut registering_node);
        let taken = answer(registration::SUCCESS, tid);
        assert_eq!(
            registering_node.on_answer(Some(&taken), at, &mut rng),
            Outcome::Accepted
        );
        let moved = answer(registration::MOVED, tid);
        registering_node.on_answer(Some(&moved), at, &mut rng);
        assert_eq!(
            asked(&mut registering_node),
            (at + pace(1), lollipop::next(tid))
        );
    }

    #[test]
    fn an_answer_to_what_was_not_asked_only_brings_the_renewal_forward() {
        let mut rng = rng();
        let mut registering_node = started(&mut rng);
        let stray = answer(registration::FULL, 7);
        let outcome = registering_node.on_answer(Some(&stray), START, &mut rng);
        assert_eq!(outcome, Outcome::Pending);
        let (at, tid) = asked(&mut registering_node);
        // In the middle of a transaction it changes nothing.
        let next = registering_node.next_deadline();
        registering_node.on_answer(Some(&stray), at, &mut rng);
        assert_eq!(registering_node.next_deadline(), next);
        let taken = answer(registration::SUCCESS, tid);
        registering_node.on_answer(Some(&taken), at, &mut rng);
        // Somebody has ended it in this node's name.
        registering_node.on_answer(Some(&stray), at, &mut rng);
        let (again, _) = asked(&mut registering_node);
        assert_eq!(again, at + pace(1));
    }

    #[test]
    fn a_router_without_registrations_is_asked_again_when_one_would_be_renewed() {
        let mut rng = rng();
        let mut registering_node = started(&mut rng);
        let (at, _) = asked(&mut registering_node);
        let outcome = registering_node.on_answer(None, at, &mut rng);
        assert_eq!(outcome, Outcome::Accepted);
        let (again, _) = asked(&mut registering_node);
        assert!(again.since(at) > Duration::from_secs(37 * 60));
    }

    #[test]
    fn stopped_it_says_nothing() {
        let mut rng = rng();
        let mut registering_node = started(&mut rng);
        registering_node.stop();
        assert_eq!(registering_node.next_deadline(), None);
        let late = answer(registration::SUCCESS, lollipop::INITIAL);
        let outcome = registering_node.on_answer(Some(&late), START, &mut rng);
        assert_eq!(outcome, Outcome::Pending);
    }
}
