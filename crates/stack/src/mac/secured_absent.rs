//! A MAC without link security, built without the feature `security`: see `secured`.

use core::marker::PhantomData;

use super::counters::FrameDrop;
use super::radio::RxMeta;
use super::{Mac, Received};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ieee802154::Header;

#[derive(Debug, Default)]
pub(super) struct Guard<'m>(PhantomData<&'m mut ()>);

impl Guard<'_> {
    pub(super) const fn is_on(&self) -> bool {
        false
    }

    pub(super) const fn overhead(&self) -> usize {
        0
    }

    pub(super) const fn is_waiting(&self) -> bool {
        false
    }

    pub(super) const fn is_closed(&self) -> bool {
        false
    }

    pub(super) const fn or_deadline(&self, own: Option<Instant>) -> Option<Instant> {
        own
    }

    pub(super) fn emit(
        &self,
        header: &Header,
        payload: &[u8],
        _: [u8; 8],
        out: &mut [u8],
    ) -> Option<usize> {
        header.emit_mpdu(payload, out).ok()
    }

    pub(super) const fn refusal(&self) -> FrameDrop {
        FrameDrop::BadLength
    }
}

impl Mac<'_> {
    pub(crate) fn keep_children(&self, _: impl Fn(LinkAddr) -> bool) {}

    pub(super) const fn keep_parent(&self, _: Option<LinkAddr>) {}

    pub(super) const fn disbelieves(&self, _: LinkAddr) -> bool {
        false
    }

    pub(super) const fn await_answer(&self, _: Instant) {}

    pub(super) const fn is_proof(&self, _: u8) -> bool {
        false
    }

    pub(super) const fn poll_security(&self, _: Instant, _: &mut Rng) {}

    pub(super) const fn hear<'a>(
        &self,
        _: &'a [u8],
        _: RxMeta,
        _: Instant,
    ) -> Result<Option<Received<'a>>, FrameDrop> {
        Ok(None)
    }

    pub(super) const fn hear_head(&self, _: &[u8], _: Instant) {}

    pub(crate) const fn has_sealed(&self) -> bool {
        false
    }
}
