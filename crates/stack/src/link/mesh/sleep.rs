//! A sleeping node, seen from its link: the parent that it polls, and the answers that it waits
//! for.
//!
//! Place: between discovery, which chooses the parent and loses it, and the MAC, which polls it
//! ([`mac::poll`](crate::mac::poll)). After a unicast solicitation the node polls until the answer
//! must have come; after a multicast one it keeps its receiver on.

use super::Mesh;
use crate::hint::Expectation;
use crate::ip::Ip;
use crate::mac::Sleep;
use crate::random::Rng;
use crate::time::{Duration, Instant};

impl Mesh<'_> {
    /// Makes this node sleep, or stay awake from now on. It needs a parent that serves sleepers.
    pub fn set_sleep(&mut self, sleep: Option<Sleep>) {
        self.mac.set_sleep(sleep);
    }

    /// Takes over when an answer may come; returns whether that is news.
    pub(crate) fn expect(&mut self, answer: Option<Expectation>) -> bool {
        self.mac.expect(answer)
    }

    /// Whether this node sleeps and needs to know what its transports expect.
    pub(crate) const fn takes_hints(&self) -> bool {
        self.mac.sleep().is_some()
    }

    /// Lets discovery do what is due, and polls for the answer.
    pub(super) fn poll_discovery(&mut self, ip: &mut Ip<'_>, now: Instant, rng: &mut Rng) {
        let before = self.queue.len();
        self.discovery.poll(&mut self.queue, ip, now, rng);
        if self.takes_hints() && self.queue.len() > before {
            self.mac.solicit_until(now + ANSWER_MAX);
            if self.discovery.is_searching() {
                self.mac.listen_until(now + ANSWER_TO_ALL_MAX);
            }
        }
    }

    /// Reports the outcome of the last data request to discovery.
    pub(super) fn note_polled(&mut self, now: Instant) {
        let polled = self.mac.take_polled();
        #[cfg(feature = "thread")]
        if let Some((parent, was_taken)) = polled {
            self.note_taken(parent, was_taken, now);
        }
        match polled {
            Some((parent, true)) => self.discovery.on_acknowledged(parent.iid(), now),
            Some((parent, false)) => self.discovery.on_given_up(parent.iid(), now),
            None => {}
        }
    }
}

/// How long an answer of the parent may take: a few attempts each way.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How long an answer to all nodes may take: routers delay it by half a second at most.
const ANSWER_TO_ALL_MAX: Duration = Duration::from_secs(1);
