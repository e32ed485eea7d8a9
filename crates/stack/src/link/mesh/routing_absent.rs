//! Stands in for RPL's part in a build without it: packets leave as they are.

use super::PacketMeta;
use super::budget::Overhead;
use crate::ip::{InterfaceId, Ip, NextHop, PacketDrop};
use crate::lowpan::Contexts;
use crate::mac::Outcome;
use crate::wire::LinkAddr;
use crate::wire::ipv6::Header;
use crate::wire::rpl_option::Rpi;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) overhead: Overhead,
}

impl State {
    pub(super) const fn note(&self, _: &Outcome, _: bool) {}

    pub(super) const fn note_heard(&self, _: LinkAddr) {}

    pub(super) const fn has_report(&self) -> bool {
        false
    }
}

pub(super) const ROUTED_SLACK: usize = 0;

#[derive(Clone, Copy, Debug)]
pub(super) struct InsertedHeaders;

impl InsertedHeaders {
    pub(super) const fn of(_: &Ip<'_>, _: &Header, _: NextHop, _: &PacketMeta) -> Self {
        Self
    }

    pub(super) const fn is_long(self) -> bool {
        false
    }

    pub(super) const fn grows(self, _: &Contexts) -> bool {
        false
    }

    pub(super) const fn hops(self) -> Option<u8> {
        None
    }

    pub(super) const fn option(self) -> Option<Rpi> {
        None
    }

    pub(super) const fn compressed_len(self, _: &Contexts) -> usize {
        0
    }

    pub(super) const fn put_on(
        self,
        _: &Ip<'_>,
        _: InterfaceId,
        _: &Header,
        (_, len): (&mut [u8], usize),
    ) -> Result<usize, PacketDrop> {
        Ok(len)
    }
}

pub(super) const fn hops_left(_: &[u8]) -> u8 {
    0
}
