//! Keys that come while the node runs: from a JRC (RFC 9031).

use super::{Counters, Keyed, NetworkKey, Peer, Reservation, Security, SecurityConfig};

impl<'m> Security<'m> {
    /// The security of a node without a key. It believes no frame, and sends only requests for a
    /// key, until [`Node::unlock`](crate::node::Node::unlock). The key in `config` is not used.
    pub fn locked(config: &SecurityConfig, table: &'m mut [Peer]) -> Self {
        Self {
            is_locked: true,
            ..Self::new(config, table)
        }
    }

    /// Takes the key of the network. `stored`: the last reservation of frame counters that the node
    /// stored for this very network key, also before a reboot. A node that has a key keeps it.
    pub(in crate::mac) fn unlock(
        &mut self,
        network: NetworkKey,
        sequence: u32,
        stored: Option<Reservation>,
    ) {
        if !core::mem::replace(&mut self.is_locked, false) {
            return;
        }
        self.network = network;
        self.sequence = stored.map_or(sequence, |stored| stored.sequence.max(sequence));
        // The settings may have brought a reservation, too.
        let first = self
            .own
            .next()
            .max(stored.map_or(0, |stored| stored.counter));
        self.own = Counters::from(first);
        self.keyed = Keyed::new(self.engine, &network.link_key(self.sequence));
        self.next_link_key = None;
        self.since = None;
        self.has_news = true;
    }

    /// Notes another network key, whose link keys are those from `sequence` on: the node goes over
    /// to it when it hears the first frame of them, or by [`Self::rotate`]. One that begins no
    /// later than the key in force changes nothing.
    pub(in crate::mac) const fn expect(&mut self, network: NetworkKey, sequence: u32) {
        if sequence > self.sequence && !self.is_locked {
            self.next = Some((network, sequence));
            self.next_link_key = None;
        }
    }
}
