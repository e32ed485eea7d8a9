//! Stands in for a root in a build without the feature `root`: a mote is none.

use core::net::Ipv6Addr;

use crate::ip::Ingress;
use crate::node::Node;
use crate::time::Instant;
use crate::wire::ipv6::Header;
use crate::wire::rpl as wire;

/// Stands for a root's state: a build without the feature `router` has none.
#[derive(Debug)]
pub(in crate::node) struct Root;

impl Root {
    pub(super) const fn new(_: Instant) -> Self {
        Self
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        None
    }
}

impl Node<'_> {
    pub(in crate::node) const fn note_source(&mut self, _: &Header, _: &Ingress, _: Instant) {}

    pub(super) const fn poll_root(&mut self, _: Instant) {}

    pub(super) const fn on_dao(&mut self, _: &wire::Dao<'_>, _: Ipv6Addr, _: &Ingress, _: Instant) {
    }

    pub(in crate::node) const fn on_broken_route(
        &mut self,
        _: &Header,
        _: &[u8],
        _: &Ingress,
        _: Instant,
    ) {
    }
}
