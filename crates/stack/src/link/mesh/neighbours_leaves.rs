//! What the node asks of discovery about leaves, in a build with the feature `leaves`.

use super::Mesh;
use crate::ip::{Iid, Ip, neighbor_cache::NeighborCache};
use crate::time::Instant;
use crate::wire::LinkAddr;

impl<'m> Mesh<'m> {
    /// The registrations of neighbours, for RPL to take those that have changed.
    pub(crate) const fn neighbor_cache_mut(&mut self) -> &mut NeighborCache<'m> {
        self.discovery.neighbor_cache_mut()
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
