//! In the place of motes that take new firmware: types without values, in a build without the
//! feature `firmware`.

use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle};
use motet::time::{Duration, Instant};

/// No mote has `/firmware`.
#[derive(Debug)]
pub(super) enum Device {}

/// Nor has it a client.
#[derive(Debug)]
pub(super) enum Upload {}

impl Device {
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
