//! Takes the place of [`mesh`](super::mesh) in a build without the feature `mesh`: a link that
//! cannot be made, so that a node whose links carry whole packets holds no 6LoWPAN and no MAC.

use core::convert::Infallible;
use core::marker::PhantomData;

use super::Ask;
use super::arrival::{Arrival, Hop, Pulled, Refusal, Report, Scratch};
use super::counters::LinkDrop;
use crate::ip::{Ingress, InterfaceId, Ip, Neighbour, NextHop, PacketDrop};
use crate::mac::{self, Class};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::storage::whole::Whole;
use crate::time::{Deadlines, Instant};
use crate::wire::icmpv6::MessageView;
use crate::wire::ipv6::Header;

/// A link over an IEEE 802.15.4 radio needs the feature `mesh`: there is no value of this type.
#[derive(Debug)]
pub struct Mesh<'m>(Infallible, PhantomData<&'m ()>);

/// No link has such a limit: there is no value of this type.
#[derive(Clone, Copy)]
pub(crate) struct Budget<'a, 'm>(
    #[cfg_attr(
        not(feature = "tcp-small"),
        expect(dead_code, reason = "only TCP asks how long a segment may be")
    )]
    Infallible,
    PhantomData<(&'a (), &'m ())>,
);

#[cfg(feature = "tcp-small")]
impl Budget<'_, '_> {
    pub(crate) const fn takes(&self, _: Neighbour) -> bool {
        match self.0 {}
    }

    pub(crate) const fn filling(self, _: u8) -> Self {
        self
    }

    pub(crate) const fn payload_behind(
        &self,
        _: &Header,
        _: (&[u8], u16),
        _: Neighbour,
        _: Instant,
    ) -> u16 {
        match self.0 {}
    }
}

impl<'m> Mesh<'m> {
    pub(super) fn start(&mut self, _: InterfaceId, _: &mut Ip<'_>, _: Instant, _: &mut Rng) {
        match self.0 {}
    }

    pub(super) const fn reaches(&self, _: Neighbour) -> bool {
        match self.0 {}
    }

    pub(super) fn add_deadlines(&self, _: &mut Deadlines) {
        match self.0 {}
    }

    pub(super) fn on_event<'s>(
        &mut self,
        _: mac::Event<'_>,
        _: &mut Ip<'_>,
        _: &'s mut Scratch,
        _: Instant,
        _: &mut Rng,
    ) -> Arrival<'m, 's> {
        match self.0 {}
    }

    pub(super) fn note(&mut self, _: mac::Event<'_>, _: Instant, _: &mut Rng) {
        match self.0 {}
    }

    pub(super) fn has_arrival(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn poll_arrival<'s>(
        &mut self,
        _: &mut Ip<'_>,
        _: &'s mut Scratch,
        _: Instant,
        _: &mut Rng,
    ) -> Arrival<'m, 's> {
        match self.0 {}
    }

    pub(super) fn give_back(&mut self, _: Whole<'m>) {
        match self.0 {}
    }

    pub(super) fn end_path(
        &mut self,
        _: &Header,
        _: &mut [u8],
        _: &mut Hop,
        _: bool,
        _: Instant,
    ) -> Result<(), LinkDrop> {
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

    pub(super) fn queue(&mut self, _: [&[u8]; 2], _: Class) -> Result<(), Refusal> {
        match self.0 {}
    }

    pub(super) const fn waiting(&self) -> &PacketQueue<'m> {
        match self.0 {}
    }

    pub(super) fn forward(
        &mut self,
        _: (&mut [u8], &[u8]),
        _: &Hop,
        _: &mut Ip<'_>,
        _: Instant,
        _: &mut Rng,
    ) -> Result<(), Refusal> {
        match self.0 {}
    }

    pub(super) fn poll_action(
        &mut self,
        _: &mut Ip<'_>,
        _: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        _: Instant,
        _: &mut Rng,
        _: &mut [u8],
    ) -> Option<mac::Action> {
        match self.0 {}
    }

    pub(crate) fn poll_acknowledgment(&mut self, _: Instant, _: &mut [u8]) -> Option<mac::Action> {
        match self.0 {}
    }

    pub(super) fn router(&self) -> Option<NextHop> {
        match self.0 {}
    }

    pub(super) fn poll_report(&mut self) -> Option<Report<'m>> {
        match self.0 {}
    }

    pub(crate) fn end_report(&mut self, _: Report<'m>) {
        match self.0 {}
    }
}

/// What TCP asks.
#[cfg(feature = "tcp-small")]
impl Mesh<'_> {
    pub(super) fn mss(&self, _: &super::Segments, _: bool) -> [usize; 2] {
        match self.0 {}
    }

    pub(super) fn is_carried(
        &self,
        _: &super::Segments,
        _: Option<(u16, u16)>,
        _: Instant,
    ) -> bool {
        match self.0 {}
    }

    pub(super) fn flight_max(&self) -> u16 {
        match self.0 {}
    }

    pub(super) const fn unique(&self) -> u64 {
        match self.0 {}
    }
}
