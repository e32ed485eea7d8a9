//! Stands in for TCPlE in a build without the feature `tcple`: all packets go by IPSP's channel.

use core::convert::Infallible;
use core::marker::PhantomData;

use super::{Arrival, Ask, Ble, Pulled};
use crate::ble::Event;
use crate::ip::Ip;
use crate::time::Instant;

/// Stands for the layer, which is not built in: no value of this type exists.
#[derive(Debug)]
pub(super) struct Layer<'m>(Infallible, PhantomData<&'m ()>);

impl<'m> Ble<'m> {
    #[cfg(feature = "tcp-small")]
    pub(super) const fn tcple_header_len(&self) -> usize {
        0
    }

    pub(super) const fn tcple_deadline(&self) -> Option<Instant> {
        match &self.tcple {
            Some(layer) => match layer.0 {},
            None => None,
        }
    }

    pub(super) const fn on_tcple_event(&mut self, _: &Event<'_>, _: Instant) {}

    pub(super) const fn poll_tcple(&mut self, _: Instant) {}

    pub(super) const fn observe(&mut self, _: usize, _: (usize, u16), _: Instant) {}

    pub(in crate::link) const fn has_arrival(&self) -> bool {
        false
    }

    pub(in crate::link) const fn poll_released<'s>(&mut self, _: Instant) -> Arrival<'m, 's> {
        Arrival::Nothing
    }

    pub(super) const fn give_back_held(
        &mut self,
        memory: &'m mut [u8],
        _: u8,
    ) -> Option<&'m mut [u8]> {
        Some(memory)
    }

    pub(super) const fn sdu_for(&mut self, _: usize, _: usize, _: Instant) -> Option<Infallible> {
        None
    }

    pub(super) fn begin_tcple(&mut self, _: usize, _: usize, sdu: Infallible) {
        match sdu {}
    }

    pub(super) fn begin_prefetched(
        &mut self,
        _: &Ip<'_>,
        _: &mut impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
    ) -> bool {
        false
    }
}
