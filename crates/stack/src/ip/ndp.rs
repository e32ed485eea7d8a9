//! Neighbour discovery for a route-over 6LoWPAN: how a mote finds its router.
//!
//! A [`Solicitor`] sends router solicitations until a router answers, and again before the learnt
//! configuration expires. It sends them to all routers, or by unicast if only one router is
//! acceptable: a unicast is acknowledged, and only one router answers it. The node applies what
//! [`Solicitor::on_advertisement`] accepted: prefix, contexts, default route; a relay then
//! advertises the same (RFC 6775 §8.1), so the configuration spreads down the tree.
//!
//! Anybody can advertise in the router's name. An advertisement that repeats or prolongs the known
//! configuration is accepted. One that would change it is a claim: the router is solicited twice by
//! unicast, and the change is accepted only if both answers contain it, with no contradicting
//! advertisement in between. These solicitations are at least `INTERVAL` apart, however many claims
//! come. Three attacks remain without authenticated frames. A neighbour that answers in the
//! router's name, and keeps the router's own answers from arriving, can change the configuration. A
//! neighbour that contradicts the router all the time can delay true changes until the lease ends.
//! And the very first router is accepted without a check. The claim that the router stops is also
//! accepted if the router neither answers nor acknowledges.
//!
//! Left out: address resolution and duplicate detection. Interface identifiers come from link
//! addresses (RFC 6775 §5.2 and §5.6), so a neighbour's link address is read off its IPv6 address.
//! Sources: RFC 4861 §6, RFC 6775 §5.3 and §5.4.

use core::net::Ipv6Addr;

use super::Iid;
use super::address::{ALL_ROUTERS, has_iid, iid_of, link_local};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::same;

/// Neighbour discovery messages start with 255 hops: one that arrives with fewer came from
/// beyond the link (RFC 4861 §6.1).
pub(crate) const HOP_LIMIT: u8 = 255;

/// Solicitations before the pace slows (`MAX_RTR_SOLICITATIONS`, RFC 6775 §9).
const SOLICITATIONS_FAST: u8 = 3;

/// Further fast solicitations where RPL has brought the router: without its contexts neither this
/// node nor those below it can be reached, and the parent is known to be there.
const SOLICITATIONS_FAST_MORE: u8 = 6;

/// Time between the first solicitations. RFC 6775 §9 says 10 s (`RTR_SOLICITATION_INTERVAL`); RFC
/// 4861's 4 s is kept since a mote that waits cannot be reached, and costs 3 frames.
const INTERVAL: Duration = Duration::from_secs(4);

/// Bound of the doubling interval (`MAX_RTR_SOLICITATION_INTERVAL`, RFC 6775 §9).
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Unanswered solicitations after which a claim is dropped. If the claim is that the router stops,
/// and the router has acknowledged none of these frames, the claim is accepted.
const QUESTIONS_MAX: u8 = 3;

/// The time by which the clocks of router and mote, and the wait of an advertisement, may shorten a
/// lease that has not changed.
const LEASE_SLACK: Duration = Duration::from_secs(10);

/// Random wait before the first solicitation, so that motes powered together do not ask at
/// once (`MAX_RTR_SOLICITATION_DELAY` of RFC 4861 §10 is 1 s; a frame lasts 4 ms here).
const FIRST_DELAY_MAX: Duration = Duration::from_millis(250);

/// Wait before all routers are solicited because the present router does not serve this node:
/// frames lost in the same burst of noise are not known to be lost before.
const SEARCH_DELAY: Duration = Duration::from_millis(100);

/// How long to wait after the `sent`-th message in a row without an answer: a few are sent fast,
/// then ever more slowly.
pub(super) fn pace(sent: u8) -> Duration {
    let doublings = sent.saturating_sub(SOLICITATIONS_FAST).min(4);
    INTERVAL.saturating_mul(1 << doublings).min(INTERVAL_MAX)
}

/// The router of one interface: wanted or found.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction. In the
/// compiler's order a router is 150 B larger.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Solicitor {
    /// Whether RPL names the parent, and no other router will do.
    is_led: bool,
    parent: Option<Iid>,
    state: State,
    /// The router does not register this node, or does not acknowledge frames. All routers are
    /// solicited, and the first one that advertises becomes the router. The number of solicitations
    /// so far, and the time of the next one.
    search: Option<(u8, Instant)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The node has not begun to look for a router.
    Idle,
    /// Soliciting all routers, or the only acceptable one; `sent`: solicitations so far.
    Asking { sent: u8, at: Instant },
    /// Configured by `router`, which is solicited again by unicast from `refresh` on; the
    /// configuration expires at `expires`.
    Bound {
        router: Ipv6Addr,
        refresh: Instant,
        expires: Instant,
        claim: Option<Claim>,
        /// The next question about a claim, at the earliest.
        may_ask: Instant,
    },
}

/// A change that the router may have advertised, or a forger in its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Claim {
    digest: u32,
    /// The claim is that the router stops: a router lifetime of 0.
    is_end: bool,
    /// The router has repeated the change in its answer to the first solicitation.
    agreed: bool,
    /// The router has not yet answered the last question.
    asked: bool,
    /// The router has acknowledged a frame since the last question.
    is_acknowledged: bool,
    questions: u8,
}

/// The facts about an advertisement that decide whether it is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdvertisementClaims {
    /// How long all information in the advertisement holds; zero: the sender is no longer a router.
    pub lease: Duration,
    /// A number for the change of prefix, contexts and offer that the advertisement would make;
    /// `None`: it changes nothing.
    pub change: Option<u32>,
    /// Whether the message was sent to this node alone, as an answer is.
    pub to_one: bool,
}

/// The action at a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// Send a router solicitation to this address.
    Solicit(Ipv6Addr),
    /// The router has gone: forget the default route.
    Expired,
}

/// The information that a router gives its mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertised {
    /// The /64 from which motes form addresses.
    pub prefix: Ipv6Addr,
    /// How long prefix, contexts and default route hold, whole seconds. A relay passes on what is
    /// left of the time that it has learnt.
    pub lifetime: Duration,
}

impl Advertised {
    /// RFC 6775 §9's scale is hours: meshes are stable, and each refresh costs frames.
    pub const LIFETIME: Duration = Duration::from_secs(2 * 60 * 60);
}

impl Solicitor {
    /// Solicits any router, or only the neighbour `parent` if the tree is fixed by hand.
    pub(crate) const fn new(parent: Option<Iid>) -> Self {
        Self {
            parent,
            is_led: false,
            search: None,
            state: State::Idle,
        }
    }

    /// From now on sends solicitations to `router` only, and accepts only its advertisements;
    /// `None`: no router is known. The known configuration stays: all routers of a mesh advertise
    /// the same, so another router is solicited only if no configuration is known yet, and where
    /// this node `asks` for any.
    #[cfg(feature = "rpl")]
    pub(crate) fn follow(&mut self, router: Option<Iid>, asks: bool, now: Instant, rng: &mut Rng) {
        self.is_led = true;
        self.search = None;
        if self.parent == router && self.state != State::Idle {
            return;
        }
        self.parent = router;
        match (&mut self.state, router) {
            (State::Bound { router, claim, .. }, Some(iid)) => {
                *router = link_local(iid);
                *claim = None;
            }
            (State::Bound { .. }, None) => {}
            (_, Some(_)) if asks => self.start(now, rng),
            (_, _) => self.state = State::Idle,
        }
    }

    /// Whether only one router will do, which is known.
    pub(crate) const fn has_parent(&self) -> bool {
        self.parent.is_some()
    }

    /// Whether RPL chooses the router, the prefix and the default route.
    pub(crate) const fn is_led(&self) -> bool {
        cfg!(feature = "rpl") && self.is_led
    }

    /// Whether any router will do.
    const fn is_free(&self) -> bool {
        self.parent.is_none() && !self.is_led()
    }

    /// Asks all routers, ever more slowly, where any will do: the next one that answers takes the
    /// place of this one.
    pub(crate) fn loosen(&mut self, now: Instant) {
        if self.search.is_none() && self.router().is_some() && self.is_free() {
            self.search = Some((0, now + SEARCH_DELAY));
        }
    }

    /// A neighbour has become reachable that may be a router, and may have dropped the last
    /// solicitation as a stranger's: the next one follows soon.
    #[cfg(any(feature = "ble", feature = "security"))]
    pub(crate) fn ask_again(&mut self, now: Instant, rng: &mut Rng) {
        if self.router().is_none() {
            self.start(now, rng);
        } else if let Some((1.., at)) = &mut self.search {
            *at = (*at).min(now + rng.uniform(FIRST_DELAY_MAX));
        }
    }

    /// The router serves again: no other one is looked for.
    pub(crate) const fn firm(&mut self) {
        self.search = None;
    }

    /// The router that frames for the world go to: it is known, or only it will do.
    pub(crate) fn way_up(&self) -> Option<Iid> {
        self.parent.or_else(|| self.router().map(iid_of))
    }

    /// Whether `iid` is the neighbour that this node sends upwards through.
    pub(crate) fn is_way_up(&self, iid: &Iid) -> bool {
        match &self.parent {
            Some(parent) => same(parent, iid),
            None => self.router().is_some_and(|router| has_iid(router, iid)),
        }
    }

    /// Whether all routers are or will be solicited: there is no router, or it does not serve this
    /// node.
    #[cfg(feature = "sleepy")]
    pub(crate) const fn is_searching(&self) -> bool {
        self.search.is_some() || matches!(self.state, State::Asking { .. })
    }

    /// Whether several solicitations have had no answer.
    pub(crate) const fn is_unanswered(&self) -> bool {
        matches!(self.state, State::Asking { sent, .. } if sent >= SOLICITATIONS_FAST)
    }

    /// Whether a solicitation was sent, so that an answer may still come.
    pub(crate) fn has_asked(&self, now: Instant) -> bool {
        match self.state {
            State::Idle => false,
            State::Asking { .. } => true,
            State::Bound { refresh, claim, .. } => {
                claim.is_some() || refresh.since(now) <= INTERVAL_MAX
            }
        }
    }

    /// The router has more configuration than it has advertised: solicits it `after` so long, but
    /// at most once a minute. While it is asked about a change, it is asked anyhow.
    pub(crate) fn hasten(&mut self, after: Duration, now: Instant) {
        if let State::Bound {
            refresh,
            may_ask,
            claim: None,
            ..
        } = &mut self.state
            && now >= *may_ask
        {
            *refresh = (now + after).min(*refresh);
            *may_ask = now + INTERVAL_MAX;
        }
    }

    /// The router is solicited again at `at`, unless it advertises before.
    pub(crate) fn ask_by(&mut self, at: Instant) {
        if let State::Bound { refresh, .. } = &mut self.state {
            *refresh = at.min(*refresh);
        }
    }

    /// Starts asking, after a random moment.
    pub(crate) fn start(&mut self, now: Instant, rng: &mut Rng) {
        self.search = None;
        self.state = State::Asking {
            sent: 0,
            at: now + rng.uniform(FIRST_DELAY_MAX),
        };
    }

    /// The router this interface is configured by.
    pub(crate) const fn router(&self) -> Option<&Ipv6Addr> {
        match &self.state {
            State::Bound { router, .. } => Some(router),
            State::Idle | State::Asking { .. } => None,
        }
    }

    /// When the configuration from the router expires; `None` while there is no router.
    pub(crate) const fn expires(&self) -> Option<Instant> {
        match self.state {
            State::Bound { expires, .. } => Some(expires),
            State::Idle | State::Asking { .. } => None,
        }
    }

    /// Whether to take an advertisement from `router` (its link-local address); if so, its lifetime
    /// starts. A bound interface keeps its router until its lifetime expires, or it advertises a
    /// lifetime of zero, or it does not serve this node any more ([`Self::loosen`]); there is no
    /// metric to compare routers.
    pub(crate) fn on_advertisement(
        &mut self,
        router: Ipv6Addr,
        said: AdvertisementClaims,
        now: Instant,
        rng: &mut Rng,
    ) -> bool {
        let is_parent =
            self.is_free() || self.parent.is_some_and(|parent| has_iid(&router, &parent));
        let is_bound_elsewhere = self.router().is_some_and(|bound| *bound != router);
        let may_change = self.search.is_some() && said.lease > Duration::ZERO;
        if !is_parent || (is_bound_elsewhere && !may_change) || self.state == State::Idle {
            return false;
        }
        let mut since = None;
        if let State::Bound { expires, .. } = self.state
            && !is_bound_elsewhere
        {
            let is_shorter = now + said.lease + LEASE_SLACK < expires;
            match said.change {
                None if !is_shorter => since = Some(expires),
                change => {
                    let is_end = said.lease == Duration::ZERO;
                    let kind = u32::from(is_shorter) + u32::from(is_end);
                    let digest = change.unwrap_or(0).wrapping_add(kind);
                    if !self.is_confirmed(digest, said, now, rng) {
                        return false;
                    }
                }
            }
        }
        if said.lease == Duration::ZERO {
            // Taken (the caller forgets the route) only from the router we had.
            let was_bound = self.router().is_some();
            if was_bound {
                self.start(now, rng);
            }
            return was_bound;
        }
        let expires = (now + said.lease).max(since.unwrap_or(now));
        // Three quarters through: room for four solicitations before it is lost.
        let refresh = now + Duration::from_micros(expires.since(now).as_micros() / 4 * 3);
        let may_ask = match self.state {
            State::Bound { may_ask, .. } => may_ask,
            State::Idle | State::Asking { .. } => now,
        };
        if is_bound_elsewhere {
            self.search = None;
        }
        self.state = State::Bound {
            router,
            refresh,
            expires,
            claim: None,
            may_ask,
        };
        true
    }

    /// Notes a claim, or an answer about it; whether the router has confirmed it twice.
    fn is_confirmed(
        &mut self,
        digest: u32,
        said: AdvertisementClaims,
        now: Instant,
        rng: &mut Rng,
    ) -> bool {
        let State::Bound { claim, may_ask, .. } = &mut self.state else {
            return false;
        };
        match claim {
            Some(claim) if claim.digest == digest => {
                if !claim.asked || !said.to_one {
                    return false;
                }
                claim.asked = false;
                core::mem::replace(&mut claim.agreed, true)
            }
            _ => {
                *claim = Some(Claim {
                    digest,
                    is_end: said.lease == Duration::ZERO,
                    agreed: false,
                    asked: false,
                    is_acknowledged: false,
                    questions: 0,
                });
                // A random delay, because all neighbours have heard the claim and will check it,
                // too.
                *may_ask = (*may_ask).max(now + rng.uniform(FIRST_DELAY_MAX));
                false
            }
        }
    }

    /// When [`Self::poll`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Idle => None,
            State::Asking { at, .. } => Some(at),
            State::Bound {
                refresh,
                claim,
                may_ask,
                ..
            } => {
                let first = claim.map_or(refresh, |_| refresh.min(may_ask));
                Some(self.search.map_or(first, |(_, at)| first.min(at)))
            }
        }
    }

    /// The neighbour `by` has acknowledged a frame. A router that acknowledges a solicitation is
    /// present. If it stopped, it would advertise that, so a missing answer proves nothing.
    pub(crate) fn on_acknowledged(&mut self, by: Iid) {
        if let State::Bound { router, claim, .. } = &mut self.state
            && let Some(claim) = claim
            && has_iid(router, &by)
        {
            claim.is_acknowledged |= claim.questions > 0;
        }
    }

    /// The next solicitation of a node that looks for a router; `sent`: the solicitations before
    /// it.
    fn ask_on(&mut self, sent: u8, now: Instant) -> Due {
        let sent = sent.saturating_add(1);
        // A parent may not know the configuration yet, and its advertisement for all may get lost.
        let fast_more = match self.is_led() {
            true => SOLICITATIONS_FAST_MORE,
            false => 0,
        };
        self.state = State::Asking {
            sent,
            at: now + pace(sent.saturating_sub(fast_more)),
        };
        Due::Solicit(self.parent.map_or(ALL_ROUTERS, link_local))
    }

    /// The action that is due now, if any.
    pub(crate) fn poll(&mut self, now: Instant, rng: &mut Rng) -> Option<Due> {
        if self.next_deadline().is_none_or(|at| now < at) {
            return None;
        }
        match &mut self.state {
            State::Idle => None,
            State::Asking { sent, .. } => {
                let sent = *sent;
                Some(self.ask_on(sent, now))
            }
            State::Bound { expires, .. } if now >= *expires => {
                self.start(now, rng);
                // A node whose router RPL chooses solicits no router while it has no parent.
                if self.parent.is_none() && !self.is_free() {
                    self.state = State::Idle;
                }
                Some(Due::Expired)
            }
            State::Bound {
                router,
                refresh,
                expires,
                claim,
                may_ask,
            } => {
                if let Some((sent, at)) = &mut self.search
                    && now >= *at
                {
                    *sent = sent.saturating_add(1);
                    *at = now + pace(*sent);
                    return Some(Due::Solicit(ALL_ROUTERS));
                }
                let router = *router;
                let mut asks = now >= *refresh;
                if asks {
                    *refresh = (now + INTERVAL_MAX).min(*expires);
                }
                if now >= *may_ask
                    && let Some(doubt) = claim
                {
                    if doubt.questions < QUESTIONS_MAX {
                        doubt.questions += 1;
                        doubt.asked = true;
                        doubt.is_acknowledged = false;
                        asks = true;
                        *may_ask = now + INTERVAL;
                    } else if doubt.is_end && !doubt.is_acknowledged {
                        self.start(now, rng);
                        return Some(Due::Expired);
                    } else {
                        *claim = None;
                    }
                }
                asks.then_some(Due::Solicit(router))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LinkAddr;

    fn rng() -> Rng {
        Rng::from_seed([1, 2])
    }

    fn router(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, n)
    }

    /// An advertisement to all of what is known already.
    fn same(lease: Duration) -> AdvertisementClaims {
        AdvertisementClaims {
            lease,
            change: None,
            to_one: false,
        }
    }

    fn run_until_due(solicitor: &mut Solicitor, rng: &mut Rng) -> (Instant, Due) {
        let at = solicitor.next_deadline().expect("a deadline");
        (
            at,
            solicitor
                .poll(at, rng)
                .expect("something due at its deadline"),
        )
    }

    #[cfg(feature = "rpl")]
    #[test]
    fn led_to_a_parent_it_asks_where_it_wants_to_know_anything() {
        let parent = Some([7; 8]);
        for asks in [true, false] {
            let mut solicitor = Solicitor::new(None);
            solicitor.follow(parent, asks, Instant::ORIGIN, &mut rng());
            assert_eq!(solicitor.next_deadline().is_some(), asks);
            assert_eq!(solicitor.way_up(), parent);
        }
    }

    #[test]
    fn asks_fast_then_ever_slower() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(None);
        solicitor.start(Instant::ORIGIN, &mut rng);
        let times: std::vec::Vec<u64> = (0..8)
            .map(|_| run_until_due(&mut solicitor, &mut rng).0.as_micros() / 1_000_000)
            .collect();
        let gaps: std::vec::Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(gaps, [4, 4, 4, 8, 16, 32, 60]);
        assert!(times[0] == 0);
    }

    #[test]
    fn a_bound_mote_refreshes_then_starts_over() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(None);
        solicitor.start(Instant::ORIGIN, &mut rng);
        let now = Instant::from_micros(5);
        assert!(solicitor.on_advertisement(
            router(1),
            same(Duration::from_secs(100)),
            now,
            &mut rng
        ));
        assert!(!solicitor.on_advertisement(
            router(2),
            same(Duration::from_secs(100)),
            now,
            &mut rng
        ));
        let (at, due) = run_until_due(&mut solicitor, &mut rng);
        assert_eq!(
            (at, due),
            (now + Duration::from_secs(75), Due::Solicit(router(1)))
        );
        let (at, due) = run_until_due(&mut solicitor, &mut rng);
        assert_eq!((at, due), (now + Duration::from_secs(100), Due::Expired));
        assert_eq!(solicitor.router(), None);
        assert!(matches!(
            run_until_due(&mut solicitor, &mut rng).1,
            Due::Solicit(ALL_ROUTERS)
        ));
    }

    #[test]
    fn only_the_parent_is_heard_where_one_is_set() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(Some(LinkAddr::Short(7).iid()));
        solicitor.start(Instant::ORIGIN, &mut rng);
        let lifetime = Duration::from_secs(100);
        assert!(!solicitor.on_advertisement(router(1), same(lifetime), Instant::ORIGIN, &mut rng));
        assert!(solicitor.on_advertisement(router(7), same(lifetime), Instant::ORIGIN, &mut rng));
    }

    /// A neighbour that may be a router has dropped the solicitation as a stranger's, and knows
    /// this node now. A router that still serves is left alone.
    #[cfg(any(feature = "ble", feature = "security"))]
    #[test]
    fn a_search_asks_a_neighbour_that_became_reachable_at_once() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(None);
        solicitor.start(Instant::ORIGIN, &mut rng);
        let (lease, start) = (Duration::from_secs(7_200), Instant::from_micros(5));
        assert!(solicitor.on_advertisement(router(1), same(lease), start, &mut rng));
        let refresh = solicitor.next_deadline();
        solicitor.ask_again(start, &mut rng);
        assert_eq!(solicitor.next_deadline(), refresh);
        solicitor.loosen(start);
        let mut now = start;
        for _ in 0..6 {
            now = run_until_due(&mut solicitor, &mut rng).0;
        }
        let planned = solicitor.next_deadline().unwrap();
        assert!(planned > now + Duration::from_secs(30));
        solicitor.ask_again(now, &mut rng);
        let (at, due) = run_until_due(&mut solicitor, &mut rng);
        assert!(at <= now + FIRST_DELAY_MAX);
        assert_eq!(due, Due::Solicit(ALL_ROUTERS));
        // The pace stays as slow as it was.
        assert!(solicitor.next_deadline().unwrap() > at + Duration::from_secs(30));
    }

    /// Runs to the next question, which goes to `router` alone.
    fn asked(solicitor: &mut Solicitor, rng: &mut Rng) -> Instant {
        let (at, due) = run_until_due(solicitor, rng);
        assert_eq!(due, Due::Solicit(router(1)));
        at
    }

    #[test]
    fn a_change_holds_when_two_questions_have_the_same_answer() {
        let lease = Duration::from_secs(7_200);
        let said = |change, to_one| AdvertisementClaims {
            lease,
            change,
            to_one,
        };
        // (what comes after each of two questions, whether the last of it is taken)
        let cases: [(&str, [&[AdvertisementClaims]; 2], bool); 6] = [
            (
                "confirmed",
                [&[said(Some(5), true)], &[said(Some(5), true)]],
                true,
            ),
            ("confirmed once", [&[said(Some(5), true); 3], &[]], false),
            (
                "told to all",
                [&[said(Some(5), false)], &[said(Some(5), false)]],
                false,
            ),
            (
                "denied",
                [
                    &[said(Some(5), true), said(None, true)],
                    &[said(Some(5), true)],
                ],
                false,
            ),
            (
                "contradicted",
                [
                    &[said(Some(5), true), said(Some(6), true)],
                    &[said(Some(5), true)],
                ],
                false,
            ),
            (
                "another",
                [&[said(Some(6), true)], &[said(Some(6), true)]],
                false,
            ),
        ];
        for (name, answers, taken) in cases {
            let mut rng = rng();
            let mut solicitor = Solicitor::new(None);
            solicitor.start(Instant::ORIGIN, &mut rng);
            let mut now = Instant::from_micros(5);
            let hear = |solicitor: &mut Solicitor, said, now| {
                solicitor.on_advertisement(router(1), said, now, &mut self::rng())
            };
            assert!(hear(&mut solicitor, said(None, true), now));
            assert!(
                !hear(&mut solicitor, said(Some(5), true), now),
                "{name}: nothing asked"
            );
            let mut last = false;
            for answers in answers {
                if solicitor
                    .next_deadline()
                    .is_some_and(|at| at < now + Duration::from_secs(60))
                {
                    now = asked(&mut solicitor, &mut rng);
                }
                for said in answers {
                    last = hear(&mut solicitor, *said, now) && said.change.is_some();
                }
            }
            assert_eq!(last, taken, "{name}");
        }
    }

    #[test]
    fn claims_are_asked_about_at_one_pace_and_forgotten() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(None);
        solicitor.start(Instant::ORIGIN, &mut rng);
        let lease = Duration::from_secs(7_200);
        let start = Instant::from_micros(5);
        assert!(solicitor.on_advertisement(router(1), same(lease), start, &mut rng));
        let mut asked = 0;
        // Ten claims a second, each denied at once.
        for n in 0..600u32 {
            let now = start + Duration::from_millis(100 * u64::from(n));
            asked += u32::from(solicitor.poll(now, &mut rng).is_some());
            let claim = AdvertisementClaims {
                change: Some(n),
                ..same(Duration::from_secs(1))
            };
            assert!(!solicitor.on_advertisement(router(1), claim, now, &mut rng));
            if n % 3 == 0 {
                solicitor.on_advertisement(router(1), same(lease), now, &mut rng);
            }
        }
        assert!(asked <= 16, "{asked} in a minute");
        let mut questions = 0;
        while solicitor.next_deadline().unwrap() < start + Duration::from_secs(600) {
            let at = solicitor.next_deadline().unwrap();
            questions += u32::from(solicitor.poll(at, &mut rng).is_some());
        }
        assert!(questions <= 3, "{questions} more");
        assert_eq!(solicitor.router(), Some(&router(1)));
        assert!(
            solicitor.expires().unwrap() >= start + lease,
            "never shorter"
        );
    }

    #[test]
    fn a_router_that_says_it_stops_is_believed_when_it_is_silent() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(None);
        solicitor.start(Instant::ORIGIN, &mut rng);
        let start = Instant::from_micros(5);
        let lease = Duration::from_secs(7_200);
        assert!(solicitor.on_advertisement(router(1), same(lease), start, &mut rng));
        assert!(!solicitor.on_advertisement(router(1), same(Duration::ZERO), start, &mut rng));
        for n in 0..3 {
            asked(&mut solicitor, &mut rng);
            // It goes after it has said so, and another neighbour stays.
            solicitor.on_acknowledged(LinkAddr::Short(if n == 0 { 1 } else { 2 }).iid());
        }
        let (at, due) = run_until_due(&mut solicitor, &mut rng);
        assert_eq!(due, Due::Expired);
        assert!(at < start + Duration::from_secs(15));
    }

    /// Anybody can forge such an advertisement in the router's name, and keep the router's answers
    /// from arriving; but the router still acknowledges frames.
    #[test]
    fn a_router_that_is_there_does_not_stop_by_being_silent() {
        let mut rng = rng();
        let mut solicitor = Solicitor::new(None);
        solicitor.start(Instant::ORIGIN, &mut rng);
        let start = Instant::from_micros(5);
        let lease = Duration::from_secs(7_200);
        assert!(solicitor.on_advertisement(router(1), same(lease), start, &mut rng));
        assert!(!solicitor.on_advertisement(router(1), same(Duration::ZERO), start, &mut rng));
        // Before the first question an ACK says nothing, nor does another neighbour's.
        solicitor.on_acknowledged(LinkAddr::Short(1).iid());
        for n in 0..3 {
            asked(&mut solicitor, &mut rng);
            // What counts is the last question: the router may have gone after the first.
            solicitor.on_acknowledged(LinkAddr::Short(if n == 2 { 1 } else { 2 }).iid());
        }
        let at = solicitor.next_deadline().expect("the claim ends");
        assert_eq!(solicitor.poll(at, &mut rng), None);
        assert_eq!(solicitor.router(), Some(&router(1)));
        let refresh = start + Duration::from_secs(3_600);
        assert!(solicitor.next_deadline() > Some(refresh), "forgotten");
    }

    #[test]
    fn a_router_that_never_started_asking_takes_nothing() {
        let mut solicitor = Solicitor::new(None);
        let lifetime = Duration::from_secs(100);
        assert!(!solicitor.on_advertisement(
            router(1),
            same(lifetime),
            Instant::ORIGIN,
            &mut rng()
        ));
        assert_eq!(solicitor.next_deadline(), None);
    }
}
