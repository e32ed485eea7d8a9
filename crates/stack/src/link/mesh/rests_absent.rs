//! A node that is no border router, or does not measure its pace: see `rests`.

use super::pace::ExchangeTimes;
use crate::time::Instant;
use crate::wire::LinkAddr;

#[derive(Debug)]
pub(super) struct Rests;

impl Rests {
    pub(super) const NEW: Self = Self;

    pub(super) const fn until(&self) -> Instant {
        Instant::ORIGIN
    }

    pub(super) const fn meet(&self, _: LinkAddr, _: Instant) {}

    pub(super) const fn count(&self, _: (LinkAddr, u16), _: ExchangeTimes, _: bool, _: Instant) {}
}
