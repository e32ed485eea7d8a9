//! Stands in for RPL in a build without it: no packet lies within another, none has a source
//! route.

use super::{Classified, Node};
use crate::ip::{Disposition, Ingress, Ip};
use crate::link::Hop;
use crate::time::{Deadlines, Instant};
use crate::wire::ipv6::Header;

impl Node<'_> {
    pub(super) const fn add_routing_deadlines(&self, _: &mut Deadlines) {}

    pub(super) const fn poll_routing(&mut self, _: Instant) {}

    pub(super) const fn remind_leaf(&mut self, _: &Header, _: &Ingress, _: Instant) {}

    pub(super) const fn note_source(&mut self, _: &Header, _: &Ingress, _: Instant) {}

    pub(super) fn open_tunnel<'p>(
        &mut self,
        _: &Classified,
        _: &'p mut [u8],
        _: usize,
        _: Hop,
    ) -> Option<(Classified, &'p mut [u8], Hop)> {
        None
    }
}

pub(super) const fn inner_at(_: &Ip<'_>, _: &Header, _: Disposition, _: &[u8]) -> Option<usize> {
    None
}
