//! In the place of motes that take new firmware: types without values, in a build without the
//! feature `firmware`.

use std::marker::PhantomData;

use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle};
use motet::time::{Duration, Instant};

/// No mote has `/firmware`.
#[derive(Debug)]
pub(super) enum Device {}

/// Nor has it a client.
#[derive(Debug)]
pub(super) enum Upload {}

/// Nor over CoAP.
#[derive(Debug)]
pub struct BlockTaker<'m>(Upload, PhantomData<&'m ()>);

/// What a mote's flash holds of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stored {
    /// The most bytes that the slot has held.
    pub bytes: u64,
    /// The slot begins with the whole image.
    pub is_intact: bool,
    /// When an image first became pending.
    pub pending_since: Option<Instant>,
}

impl<'m> BlockTaker<'m> {
    pub(super) fn stored(&self, _: &[u8]) -> Stored {
        match self.0 {}
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self.0 {}
    }

    pub(super) fn take_halt(&mut self) -> Duration {
        match self.0 {}
    }

    pub(super) fn switch_off(&mut self, _: &mut Node<'m>) {
        match self.0 {}
    }

    pub(super) fn step(&mut self, _: &mut Node<'m>, _: Instant) -> bool {
        match self.0 {}
    }
}

impl Device {
    pub(super) fn stored(&self, _: &[u8]) -> Stored {
        match *self {}
    }

    pub(super) fn begin(&mut self) -> Option<Upload> {
        match *self {}
    }

    pub(super) fn call<'m>(
        &mut self,
        _: &mut Node<'m>,
        _: &'m Config,
        _: &mut Vec<Buffers<'m>>,
        _: impl FnMut(&mut Vec<Buffers<'m>>) -> Option<Buffers<'m>>,
        _: Instant,
    ) -> bool {
        match *self {}
    }

    pub(super) fn serve(
        &mut self,
        _: &mut Upload,
        _: Handle,
        _: &mut tcp::Tcp<'_>,
        _: Instant,
    ) -> bool {
        match *self {}
    }

    pub(super) const fn active(&self) -> Instant {
        match *self {}
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match *self {}
    }

    pub(super) fn take_halt(&mut self) -> Duration {
        match *self {}
    }

    pub(super) fn switch_off<'m>(&mut self, _: &mut tcp::Tcp<'m>, _: &mut Vec<Buffers<'m>>) {
        match *self {}
    }
}

/// Where `/firmware` would be.
pub(super) const PORT: u16 = 80;
