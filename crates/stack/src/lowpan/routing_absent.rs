//! Routing headers where the feature `rpl` is off: none is read or written.

use super::contexts::Contexts;
use super::restored::{DecompressError, Restored};
use super::{Encapsulation, LinkPair, PartlyCompressed};
use crate::wire::cursor::{Full, Writer};
use crate::wire::lowpan_iphc;
use crate::wire::rpl_option::Rpi;

/// How much more of a packet there is than fragment headers number: they number all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unnumbered(());

pub(super) const fn numbered(len: usize, _: Unnumbered) -> usize {
    len
}

pub(super) const fn unabridged(numbered: usize, _: Unnumbered) -> usize {
    numbered
}

pub(super) const OPTION_LEN: usize = 0;

/// Nothing is written ahead of a packet's IPv6 header.
pub(super) const fn begin(
    _: &mut PartlyCompressed<'_>,
    _: Option<Rpi>,
    _: bool,
    _: &Contexts,
    _: &mut Writer<'_>,
) -> Result<(), Full> {
    Ok(())
}

/// Stands for routing headers ahead of a packet, in a build that cannot read them.
pub(super) struct LeadingHeaders<'a>(core::marker::PhantomData<&'a ()>);

impl LeadingHeaders<'_> {
    pub(super) const fn none() -> Self {
        Self(core::marker::PhantomData)
    }

    pub(super) const fn len(&self) -> usize {
        0
    }

    pub(super) const fn rpi(&self) -> Option<Rpi> {
        None
    }

    pub(super) const fn unnumbered(&self) -> Unnumbered {
        Unnumbered(())
    }
}

pub(super) const fn take_option<'b>(
    _: &mut LeadingHeaders<'_>,
    next_header: Option<u8>,
    rest: &'b [u8],
) -> (Option<u8>, &'b [u8]) {
    (next_header, rest)
}

pub(super) fn restore(
    _: &mut LeadingHeaders<'_>,
    packet: &mut Restored<'_>,
    iphc: (&lowpan_iphc::Header, &[u8]),
    link: LinkPair,
    contexts: &Contexts,
) -> Result<(), DecompressError> {
    packet.iphc(iphc, Encapsulation::link(link), contexts)
}

/// The routing of a first fragment, as a record keeps it: nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordRouting;

impl RecordRouting {
    pub(super) const NOTHING: Self = Self;

    pub(super) const fn of(_: Option<Rpi>, _: Unnumbered) -> Self {
        Self
    }

    pub(super) const fn rpi(self) -> Option<Rpi> {
        None
    }

    pub(super) const fn unnumbered(self) -> Unnumbered {
        Unnumbered(())
    }
}
