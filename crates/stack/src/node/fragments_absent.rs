//! Stands in for fragments of IPv6 in a build without them: those for this node are counted and
//! dropped, and no answer is longer than a link's packets.

use super::Node;
use crate::ip::{self, NextHop, icmp};
use crate::link::{Class, Hop, Refusal};
use crate::time::Instant;
use crate::wire::ipv6::Header;

impl Node<'_> {
    pub(super) const fn poll_fragments(&mut self, _: Instant) {}

    pub(super) const fn fragments_deadline(&self) -> Option<Instant> {
        None
    }

    pub(super) fn on_fragment(&mut self, _: &Header, _: &[u8], _: &Hop, _: Instant) {
        self.ip.counters.count(ip::PacketDrop::Fragment);
    }

    pub(super) fn queue_or_cut(
        &mut self,
        hop: NextHop,
        head: &icmp::Head,
        data: &[u8],
        class: Class,
    ) -> Result<(), Refusal> {
        let link = self.link_mut(hop.interface).ok_or(Refusal::Full)?;
        link.queue([head, data], class)
    }
}
