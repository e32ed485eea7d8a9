//! A link of nodes that never sleep, built without the feature `sleepy`: see `indirect` and
//! `sleep`.

use super::{Mesh, PacketMeta};
use crate::ip::{self, Ip};
use crate::mac::{self, Outcome};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::LinkAddr;

impl Mesh<'_> {
    pub(super) const fn sleeps(&self, _: LinkAddr) -> bool {
        false
    }

    pub(super) const fn note_asked(&self, _: Instant) {}

    pub(super) const fn end_sleep(&self, _: LinkAddr) {}

    pub(super) const fn divert(
        &self,
        _: ip::Neighbour,
        _: usize,
        _: PacketMeta,
        _: Instant,
    ) -> bool {
        false
    }

    pub(super) const fn fill_indirect(&self, _: &mut Ip<'_>, _: Instant) {}

    pub(super) const fn on_indirect_outcome(&self, _: &Outcome, _: Instant) {}

    pub(super) const fn poll_shown(&self) -> Option<mac::Action> {
        None
    }

    pub(super) const fn indirect_deadline(&self) -> Option<Instant> {
        None
    }

    pub(super) fn poll_discovery(&mut self, ip: &mut Ip<'_>, now: Instant, rng: &mut Rng) {
        self.discovery.poll(&mut self.queue, ip, now, rng);
    }

    pub(super) const fn note_polled(&self, _: Instant) {}
}
