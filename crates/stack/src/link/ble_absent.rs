//! Takes the place of [`ble`](super::ble) in a build without the feature `ble`: a link that cannot
//! be made, so that other links' code for it takes no flash.

use core::convert::Infallible;
use core::marker::PhantomData;

use super::arrival::{Arrival, Hop, Refusal, Report};
use crate::ip::{Ingress, InterfaceId, Ip, Neighbour, NextHop, PacketDrop};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::storage::whole::Whole;
use crate::time::{Deadlines, Instant};
use crate::wire::icmpv6::MessageView;
use crate::wire::ipv6::Header;

/// A link over Bluetooth LE needs the feature `ble`: there is no value of this type.
#[derive(Debug)]
pub struct Ble<'m>(Infallible, PhantomData<&'m ()>);

impl<'m> Ble<'m> {
    pub(super) fn start(&mut self, _: InterfaceId, _: &mut Ip<'_>, _: Instant, _: &mut Rng) {
        match self.0 {}
    }

    #[cfg(feature = "tcp-small")]
    pub(super) const fn unique(&self) -> u64 {
        match self.0 {}
    }

    pub(super) fn reaches(&self, _: Neighbour) -> bool {
        match self.0 {}
    }

    pub(super) fn add_deadlines(&self, _: &mut Deadlines) {
        match self.0 {}
    }

    pub(super) fn has_arrival(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn poll_released<'s>(&mut self, _: Instant) -> Arrival<'m, 's> {
        match self.0 {}
    }

    pub(super) fn give_back(&mut self, _: Whole<'m>) {
        match self.0 {}
    }

    pub(super) fn on_discovery(
        &mut self,
        _: (&Header, &MessageView<'_>),
        _: &Ingress,
        _: &mut Ip<'_>,
        _: Instant,
        _: &mut Rng,
    ) -> Result<(), PacketDrop> {
        match self.0 {}
    }

    pub(super) const fn waiting(&self) -> &PacketQueue<'m> {
        match self.0 {}
    }

    pub(super) fn queue(&mut self, _: [&[u8]; 2]) -> Result<(), Refusal> {
        match self.0 {}
    }

    pub(super) fn forward(
        &mut self,
        _: [&[u8]; 2],
        _: &Hop,
        _: &mut Ip<'_>,
        _: Instant,
    ) -> Result<(), Refusal> {
        match self.0 {}
    }

    pub(super) const fn note_leaving(&mut self, _: &[u8], _: Instant) {
        match self.0 {}
    }

    pub(super) fn router(&self) -> Option<NextHop> {
        match self.0 {}
    }

    pub(super) fn poll_report(&mut self) -> Option<Report<'m>> {
        match self.0 {}
    }

    #[cfg(feature = "tcp-small")]
    pub(super) fn mss(&self, _: &super::Segments) -> usize {
        match self.0 {}
    }
}
