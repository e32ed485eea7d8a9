//! What the node and its application may ask of registrations, and RPL of discovery: the rules are
//! in [`discovery`](crate::link::discovery).

use super::Mesh;
use crate::ip::registrar::Change;
use crate::ip::{Iid, Ip, Registration, RegistrationCounters};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::ndp::PrefixInformation;

impl Mesh<'_> {
    /// The addresses that neighbours have registered with this node.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.discovery.registrar().iter()
    }

    /// How their registrations went.
    pub const fn registration_counters(&self) -> &RegistrationCounters {
        self.discovery.registrar().counters()
    }

    /// Whether a neighbour has registered its address with this identifier, which lies in the
    /// mesh's prefix.
    pub fn is_registered(&self, iid: Iid) -> bool {
        self.discovery.registrar().holds(iid)
    }
}

/// What RPL asks of discovery.
#[expect(dead_code, reason = "RPL is joined to the link by the node")]
impl Mesh<'_> {
    /// A registration that has begun, was renewed or is over; each once.
    pub(crate) fn poll_registration(&mut self) -> Option<Change> {
        self.discovery.registrar_mut().poll_change()
    }

    /// RPL leads, and contexts are asked of `router` alone, its preferred parent.
    pub(crate) fn follow(&mut self, router: Option<Iid>, now: Instant, rng: &mut Rng) {
        self.discovery.follow(router, now, rng);
    }

    /// Takes the prefix of a DIO.
    pub(crate) fn learn_prefix(
        &mut self,
        information: &PrefixInformation,
        ip: &mut Ip<'_>,
        now: Instant,
    ) {
        self.discovery.learn_prefix(information, ip, now);
    }
}
