//! Takes the place of TCP in a node built without the feature `tcp`: there is nothing to send, and
//! segments that come are of a protocol this node does not know.

use core::marker::PhantomData;

use super::Node;
use crate::ip::{self, Disposition, InterfaceId, Ip, UNKNOWN_PROTOCOL};
use crate::link::{Ask, Pulled};
use crate::time::Instant;
use crate::wire::icmpv6::MessageView;
use crate::wire::ipv6::Header;

/// Stands for TCP in a build without it: no connections, no memory.
#[derive(Debug)]
pub(super) struct Tcp<'m>(PhantomData<&'m mut ()>);

impl Tcp<'_> {
    pub(super) const fn absent() -> Self {
        Self(PhantomData)
    }

    pub(super) const fn next_deadline(&self) -> Option<Instant> {
        None
    }

    #[cfg(feature = "sleepy")]
    pub(super) const fn expected(&self, _: Instant) -> Option<crate::hint::Expectation> {
        None
    }
}

impl Node<'_> {
    pub(super) fn on_segment(
        &mut self,
        _id: InterfaceId,
        _header: &Header,
        _segment: &[u8],
        _now: Instant,
    ) -> Result<(), Disposition> {
        Err(UNKNOWN_PROTOCOL)
    }

    pub(super) fn on_icmp_error(
        &mut self,
        _id: InterfaceId,
        _message: &MessageView<'_>,
        _now: Instant,
    ) -> Result<(), Disposition> {
        Err(Disposition::Drop(ip::PacketDrop::IgnoredIcmp))
    }

    pub(super) fn on_own_undelivered(
        &mut self,
        _id: InterfaceId,
        _header: &Header,
        _segment: &[u8],
        _now: Instant,
    ) {
    }
}

pub(super) fn poll_segment(
    _ip: &Ip<'_>,
    _tcp: &mut Tcp<'_>,
    _id: InterfaceId,
    _ask: Ask<'_, '_>,
    _now: Instant,
    _out: &mut [u8],
) -> Option<Pulled> {
    None
}
