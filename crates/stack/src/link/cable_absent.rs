//! Takes the place of [`cable`](super) in a build without the feature `cable`: a link that cannot
//! be made, so that other links' code for it takes no flash.

use core::convert::Infallible;
use core::marker::PhantomData;

use super::Ask;
use super::arrival::{Arrival, Pulled, Refusal};
use crate::ip::{InterfaceId, Ip};
use crate::storage::packet_queue::PacketQueue;

/// A link that carries whole packets needs the feature `cable`: there is no value of this type.
#[derive(Debug)]
pub struct Cable<'m>(Infallible, PhantomData<&'m ()>);

impl<'m> Cable<'m> {
    #[cfg(feature = "tcp-small")]
    pub(super) const fn mtu(&self) -> u16 {
        match self.0 {}
    }

    pub(super) fn start(&mut self, _: InterfaceId) {
        match self.0 {}
    }

    pub(super) fn on_packet<'s>(&self, _: &'s [u8]) -> Arrival<'m, 's> {
        match self.0 {}
    }

    pub(super) const fn waiting(&self) -> &PacketQueue<'m> {
        match self.0 {}
    }

    pub(super) fn queue(&mut self, _: [&[u8]; 2]) -> Result<(), Refusal> {
        match self.0 {}
    }

    pub(super) fn poll_packet(
        &mut self,
        _: &mut Ip<'_>,
        _: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        _: &mut [u8],
    ) -> Option<usize> {
        match self.0 {}
    }
}
