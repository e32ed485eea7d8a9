//! The expectations of a sleeping node's transports, handed to the links that it sleeps on.
//!
//! Place: after each poll. Left out: what a link does about it ([`mac::poll`](crate::mac::poll)).

use super::{Node, meshes_mut};
use crate::hint::Expectation;
use crate::link::{Link, Mesh};
use crate::time::{Duration, Instant};

impl Node<'_> {
    /// Call it after sending a datagram whose answer comes by `until`, or not at all: until then a
    /// sleeping node polls its parent ten times a second. `None`: no answer is expected any more.
    pub fn expect_answer(&mut self, until: Option<Instant>) {
        self.answer_until = until;
        self.polled_at = None;
    }

    /// Passes the expected answers of TCP and of datagrams to the links; returns whether a link has
    /// something to do.
    pub(super) fn hint(&mut self, now: Instant) -> bool {
        if !self
            .links
            .iter()
            .filter_map(Link::mesh)
            .any(Mesh::takes_hints)
        {
            return false;
        }
        let datagrams = self.answer_until.filter(|until| now < *until);
        let datagrams = datagrams.map(|latest| Expectation {
            earliest: Instant::ORIGIN,
            latest,
            pace: DATAGRAM_PACE,
            more: false,
        });
        let mut expected = self.tcp.expected(now);
        Expectation::join(&mut expected, datagrams);
        let mut has_news = false;
        for mesh in meshes_mut(self.links) {
            has_news |= mesh.expect(expected);
        }
        has_news
    }
}

/// TCPlp's interval while a CoAP response is due (§9.2).
const DATAGRAM_PACE: Duration = Duration::from_millis(100);
