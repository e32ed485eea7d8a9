//! Neighbour discovery for a route-over 6LoWPAN: how a mote finds its router.
//!
//! A [`Solicitor`] asks until a router answers and again before what it learnt expires. The
//! node applies what [`Solicitor::on_advertisement`] accepted: prefix, contexts, default
//! route; a relay then advertises the same (RFC 6775 §8.1), so configuration walks down the
//! tree by itself.
//! Left out: address resolution and duplicate detection. Interface identifiers come from
//! link addresses (RFC 6775 §5.2 and §5.6), so a neighbour's link address is read off its
//! IPv6 address.
//! Sources: RFC 4861 §6, RFC 6775 §5.3 and §5.4.

use core::net::Ipv6Addr;

use super::address::{ALL_ROUTERS, iid_of};
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// Solicitations before the pace slows (`MAX_RTR_SOLICITATIONS`, RFC 6775 §9).
const SOLICITATIONS_FAST: u8 = 3;

/// Between the first solicitations. RFC 6775 §9 says 10 s (`RTR_SOLICITATION_INTERVAL`);
/// RFC 4861's 4 s is kept since a mote that waits cannot be reached, and costs 3 frames.
const INTERVAL: Duration = Duration::from_secs(4);

/// Bound of the doubling interval (`MAX_RTR_SOLICITATION_INTERVAL`, RFC 6775 §9).
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Random wait before the first solicitation, so that motes powered together do not ask at
/// once (`MAX_RTR_SOLICITATION_DELAY` of RFC 4861 §10 is 1 s; a frame lasts 4 ms here).
const FIRST_DELAY_MAX: Duration = Duration::from_millis(250);

/// The router of one interface: wanted or found.
#[derive(Debug)]
pub struct Solicitor {
    parent: Option<LinkAddr>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing asked yet.
    Idle,
    /// Asking all routers; `sent` so far.
    Asking { sent: u8, at: Instant },
    /// Configured by `router`; asked again, alone, from `refresh` on, lost at `expires`.
    Bound {
        router: Ipv6Addr,
        refresh: Instant,
        expires: Instant,
    },
}

/// What to do at a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// Send a router solicitation to this address.
    Solicit(Ipv6Addr),
    /// The router has gone: forget the default route.
    Expired,
}

impl Solicitor {
    /// Asks any router, or only the neighbour `parent` where the tree is fixed by hand.
    pub const fn new(parent: Option<LinkAddr>) -> Self {
        Self {
            parent,
            state: State::Idle,
        }
    }

    /// Starts asking, after a random moment.
    pub fn start(&mut self, now: Instant, rng: &mut Rng) {
        self.state = State::Asking {
            sent: 0,
            at: now + rng.uniform(FIRST_DELAY_MAX),
        };
    }

    /// The router this interface is configured by.
    pub const fn router(&self) -> Option<Ipv6Addr> {
        match self.state {
            State::Bound { router, .. } => Some(router),
            State::Idle | State::Asking { .. } => None,
        }
    }

    /// When what the router said ends; `None` while there is no router.
    pub const fn expires(&self) -> Option<Instant> {
        match self.state {
            State::Bound { expires, .. } => Some(expires),
            State::Idle | State::Asking { .. } => None,
        }
    }

    /// Whether to take an advertisement from `router` (its link-local address); if so, its
    /// lifetime starts. A bound interface stays with its router until that one expires or
    /// says that it stops (`lifetime` zero), since no metric says who is better.
    pub fn on_advertisement(
        &mut self,
        router: Ipv6Addr,
        lifetime: Duration,
        now: Instant,
        rng: &mut Rng,
    ) -> bool {
        let is_parent = self.parent.is_none_or(|p| p.iid() == iid_of(&router));
        let is_bound_elsewhere = self.router().is_some_and(|bound| bound != router);
        if !is_parent || is_bound_elsewhere || self.state == State::Idle {
            return false;
        }
        if lifetime == Duration::ZERO {
            // Taken (the caller forgets the route) only from the router we had.
            let was_bound = self.router().is_some();
            self.start(now, rng);
            return was_bound;
        }
        let expires = now + lifetime;
        // Three quarters through: room for four solicitations before it is lost.
        let refresh = now + Duration::from_micros(lifetime.as_micros() / 4 * 3);
        self.state = State::Bound {
            router,
            refresh,
            expires,
        };
        true
    }

    /// When [`Self::poll`] has something to do.
    pub const fn next_deadline(&self) -> Option<Instant> {
        match self.state {
            State::Idle => None,
            State::Asking { at, .. } => Some(at),
            State::Bound { refresh, .. } => Some(refresh),
        }
    }

    /// What is due now, if anything.
    pub fn poll(&mut self, now: Instant, rng: &mut Rng) -> Option<Due> {
        if self.next_deadline().is_none_or(|at| now < at) {
            return None;
        }
        match self.state {
            State::Idle => None,
            State::Asking { sent, .. } => {
                let sent = sent.saturating_add(1);
                let doublings = sent.saturating_sub(SOLICITATIONS_FAST).min(4);
                let wait = INTERVAL.saturating_mul(1 << doublings).min(INTERVAL_MAX);
                self.state = State::Asking {
                    sent,
                    at: now + wait,
                };
                Some(Due::Solicit(ALL_ROUTERS))
            }
            State::Bound { expires, .. } if now >= expires => {
                self.start(now, rng);
                Some(Due::Expired)
            }
            State::Bound {
                router, expires, ..
            } => {
                let refresh = (now + INTERVAL_MAX).min(expires);
                self.state = State::Bound {
                    router,
                    refresh,
                    expires,
                };
                Some(Due::Solicit(router))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rng() -> Rng {
        Rng::from_seed([1, 2])
    }

    fn router(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, n)
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
        assert!(solicitor.on_advertisement(router(1), Duration::from_secs(100), now, &mut rng));
        assert!(!solicitor.on_advertisement(router(2), Duration::from_secs(100), now, &mut rng));
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
        let mut solicitor = Solicitor::new(Some(LinkAddr::Short(7)));
        solicitor.start(Instant::ORIGIN, &mut rng);
        let lifetime = Duration::from_secs(100);
        assert!(!solicitor.on_advertisement(router(1), lifetime, Instant::ORIGIN, &mut rng));
        assert!(solicitor.on_advertisement(router(7), lifetime, Instant::ORIGIN, &mut rng));
        assert!(solicitor.on_advertisement(router(7), Duration::ZERO, Instant::ORIGIN, &mut rng));
        assert_eq!(solicitor.router(), None);
        assert!(!solicitor.on_advertisement(router(7), Duration::ZERO, Instant::ORIGIN, &mut rng));
    }

    #[test]
    fn a_router_that_never_started_asking_takes_nothing() {
        let mut solicitor = Solicitor::new(None);
        let lifetime = Duration::from_secs(100);
        assert!(!solicitor.on_advertisement(router(1), lifetime, Instant::ORIGIN, &mut rng()));
        assert_eq!(solicitor.next_deadline(), None);
    }
}
