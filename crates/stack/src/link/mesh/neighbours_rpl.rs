//! The questions that RPL asks of discovery, in a build with the feature `rpl`.

use super::Mesh;
use crate::ip::{Iid, Ip};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::ndp::PrefixBytes;

impl Mesh<'_> {
    /// The neighbour whose frame came last, since the last call.
    pub(crate) fn take_heard(&mut self) -> Option<Iid> {
        self.routing.take_heard()
    }

    /// RPL leads, and contexts are asked of `router` alone, its preferred parent.
    pub(crate) fn follow(&mut self, router: Option<Iid>, ip: &Ip<'_>, now: Instant, rng: &mut Rng) {
        let queue = &mut self.queue;
        self.discovery.follow(router, queue, ip, now, rng);
        self.keep_way_up();
    }

    /// Takes the prefix of a DIO, or its end.
    pub(crate) fn learn_prefix(&mut self, information: Option<&PrefixBytes>, ip: &mut Ip<'_>) {
        self.discovery.learn_prefix(information, ip);
    }
}
