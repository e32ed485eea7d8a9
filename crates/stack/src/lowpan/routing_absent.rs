//! Routing headers where the feature `rpl` is off: none is read or written.

use super::contexts::Contexts;
use super::restored::{DecompressError, Restored, header_of};
use super::{Begun, Encapsulation, LinkPair};
use crate::wire::cursor::{Full, Writer};
use crate::wire::rpl_option::Rpi;
use crate::wire::{ipv6, lowpan_iphc};

pub(super) const IS_SUPPORTED: bool = false;

pub(super) const LENGTHS_MAX: usize = 0;

pub(super) const OPTION_LEN: usize = 0;

/// Nothing is written ahead of a packet's IPv6 header.
pub(super) const fn begin<'p>(
    (header, rest): (ipv6::Header, &'p [u8]),
    (_, link): (Option<Rpi>, LinkPair),
    _: bool,
    _: &Contexts,
    _: &mut Writer<'_>,
) -> Result<Begun<'p>, Full> {
    Ok(Begun {
        header,
        rest,
        encapsulation: Encapsulation::link(link),
        option: None,
        unnumbered: 0,
    })
}

/// No routing headers.
pub(super) struct Ahead<'a>(core::marker::PhantomData<&'a ()>);

impl Ahead<'_> {
    pub(super) const fn none() -> Self {
        Self(core::marker::PhantomData)
    }

    pub(super) const fn len(&self) -> usize {
        0
    }

    pub(super) const fn rpi(&self) -> Option<Rpi> {
        None
    }

    pub(super) const fn unnumbered(&self) -> i16 {
        0
    }

    pub(super) const fn take_option<'b>(
        &mut self,
        next_header: Option<u8>,
        rest: &'b [u8],
    ) -> (Option<u8>, &'b [u8]) {
        (next_header, rest)
    }

    pub(super) fn restore(
        &mut self,
        packet: &mut Restored<'_>,
        (iphc, rest): (&lowpan_iphc::Header, &[u8]),
        link: LinkPair,
        contexts: &Contexts,
    ) -> Result<(), DecompressError> {
        packet.ipv6(&header_of(iphc, rest, Encapsulation::link(link), contexts)?)
    }
}

/// What a record keeps of a first fragment's routing: nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept;

impl Kept {
    pub(super) const NOTHING: Self = Self;

    pub(super) const fn of(_: Option<Rpi>, _: i16) -> Self {
        Self
    }

    pub(super) const fn rpi(self) -> Option<Rpi> {
        None
    }

    pub(super) const fn unnumbered(self) -> i16 {
        0
    }
}
