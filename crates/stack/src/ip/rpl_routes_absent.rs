//! Stands in for the DODAG in a build without RPL: there is none.

use core::marker::PhantomData;
use core::net::Ipv6Addr;

use super::{Disposition, Ingress, NextHop, PacketDrop, Turn};
use crate::wire::ipv6::Header;
use crate::wire::rpl_option::Rpi;

/// Stands for what IP keeps of RPL, in a build without it: no place and no routes.
#[derive(Debug, Default)]
pub(crate) struct RplRoutes<'m>(PhantomData<&'m ()>);

impl RplRoutes<'_> {
    pub(super) const fn forwarded(&self, _: Option<Rpi>) -> Option<Rpi> {
        None
    }

    pub(super) const fn next_hop(&self, _: &Ipv6Addr) -> Option<Option<NextHop>> {
        None
    }

    pub(super) const fn judge(
        &mut self,
        _: (&Header, &[u8]),
        _: &Ingress,
        _: (NextHop, Option<NextHop>),
    ) -> Result<Turn, PacketDrop> {
        Ok(Turn::No)
    }

    pub(super) const fn source_route(
        &self,
        _: (&Header, &[u8]),
        _: &Ingress,
        _: impl Fn(&Ipv6Addr) -> bool + Copy,
    ) -> Option<Disposition> {
        None
    }
}

/// Whether an option in a hop-by-hop header is known: none is without RPL.
pub(super) const fn knows_option(_: u8) -> bool {
    false
}
