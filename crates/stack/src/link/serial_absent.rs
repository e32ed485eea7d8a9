//! Takes the place of [`serial`](super::serial) in a build without the feature `serial`: a link
//! that cannot be made, so that other links' code for it takes no flash.

use core::convert::Infallible;

use super::arrival::{Arrival, Pulled};
use super::{Ask, Cable, Event};
use crate::ip::Ip;
use crate::storage::whole::Whole;

/// A serial line needs the feature `serial`: there is no value of this type.
#[derive(Debug)]
pub struct Serial<'m> {
    pub(super) cable: Cable<'m>,
    never: Infallible,
}

impl<'m> Serial<'m> {
    pub(super) fn on_bytes<'e, 's>(&mut self, _: &'e [u8]) -> (Arrival<'m, 's>, Option<Event<'e>>) {
        match self.never {}
    }

    pub(super) fn give_back(&mut self, _: Whole<'m>) {
        match self.never {}
    }

    pub(super) fn poll_bytes(
        &mut self,
        _: &mut Ip<'_>,
        _: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        _: &mut [u8],
    ) -> Option<usize> {
        match self.never {}
    }
}
