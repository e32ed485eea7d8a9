//! Stands in for TCPlE's channel in a build without the feature `tcple`: see `second`.

use super::counters::HostCounters;
use super::peer::{Attributes, Connection};
use crate::time::Instant;

#[derive(Debug)]
pub(super) struct Second;

impl Second {
    pub(super) const NONE: Self = Self;

    pub(super) const fn attributes(&self) -> Attributes {
        Attributes::NONE
    }

    pub(super) const fn led(&self) -> Option<u16> {
        None
    }
}

impl Connection {
    pub(super) const fn give_up_second(&mut self, _: &mut HostCounters, _: Instant) {}
}
