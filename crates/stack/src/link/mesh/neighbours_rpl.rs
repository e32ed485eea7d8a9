//! The questions that RPL asks of discovery, in a build with the feature `rpl`.

use super::Mesh;
use crate::ip::{Iid, Ip, neighbor_cache::NeighborCache};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ndp::PrefixInformation;

impl<'m> Mesh<'m> {
    /// The registrations of neighbours, for RPL to take those that have changed.
    pub(crate) const fn neighbor_cache_mut(&mut self) -> &mut NeighborCache<'m> {
        self.discovery.neighbor_cache_mut()
    }

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
    pub(crate) fn learn_prefix(
        &mut self,
        information: Option<&PrefixInformation>,
        ip: &mut Ip<'_>,
    ) {
        self.discovery.learn_prefix(information, ip);
    }

    /// A packet of the neighbour `from`'s own was passed on, which takes no part in RPL.
    pub(crate) fn remind(&mut self, from: Iid, ip: &Ip<'_>, now: Instant) {
        let is_trusted = self.mac.is_trusted(LinkAddr::from_iid(from));
        let queue = &mut self.queue;
        self.discovery.remind((from, is_trusted), queue, ip, now);
    }

    /// Ends the registration of the neighbour with identifier `iid`, because it has registered with
    /// another router, and sends the neighbour a notice.
    pub(crate) fn end_registration(&mut self, iid: Iid, ip: &Ip<'_>) {
        self.discovery.end_registration(iid, &mut self.queue, ip);
    }
}
