//! Stands in for leaves in a build without the feature `leaves`: neighbours without RPL are none of
//! this router's.

use super::Node;
use crate::ip::Ingress;
#[cfg(feature = "root")]
use crate::ip::{InterfaceId, Step};
#[cfg(feature = "root")]
use crate::link::Link;
use crate::time::Instant;
use crate::wire::ipv6::Header;

impl Node<'_> {
    pub(super) const fn poll_leaves(&mut self, _: Instant) {}

    pub(super) const fn remind_leaf(&mut self, _: &Header, _: &Ingress, _: Instant) {}
}

#[cfg(feature = "root")]
pub(super) const fn forget(_: &mut [Link<'_>], _: InterfaceId, _: &Step) {}
