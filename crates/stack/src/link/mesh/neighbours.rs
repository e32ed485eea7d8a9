//! The questions that the node and its application may ask about registrations: the rules are in
//! [`discovery`](crate::link::discovery).

use super::Mesh;
use crate::ip::{Iid, Registration, RegistrationCounters};

impl Mesh<'_> {
    /// The addresses that neighbours have registered with this node.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.discovery.neighbor_cache().iter()
    }

    /// Counts of registrations accepted and refused.
    pub const fn registration_counters(&self) -> &RegistrationCounters {
        self.discovery.neighbor_cache().counters()
    }

    /// Whether a neighbour has registered its address with this identifier, which lies in the
    /// mesh's prefix.
    pub fn is_registered(&self, iid: Iid) -> bool {
        self.discovery.neighbor_cache().holds(iid)
    }
}
