//! A node that never sleeps, built without the feature `sleepy`: see `poll`.

use super::{FrameSlot, Mac};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::Header;

#[derive(Debug)]
pub(super) struct Poll;

impl Poll {
    pub(super) const OFF: Self = Self;

    pub(super) const fn follow(&self, _: Option<LinkAddr>) {}

    pub(super) const fn is_awake(&self, _: bool, _: Instant) -> bool {
        true
    }

    pub(super) const fn holds_back(&self, _: Instant) -> bool {
        false
    }
}

impl Mac<'_> {
    pub(crate) const fn sleeps(&self) -> bool {
        false
    }

    pub(super) const fn poll_parent(&self, _: Instant) {}

    pub(super) const fn poll_deadline(&self) -> Option<Instant> {
        None
    }

    pub(super) fn header_of(&self, slot: &FrameSlot) -> Option<Header> {
        Some(Header::data(
            self.config.pan,
            slot.to,
            self.source_to(slot.to),
            slot.dsn?,
        ))
    }

    pub(super) const fn on_poll_answer(&self, _: bool, _: Instant) {}

    pub(crate) const fn on_poll_data(&self, _: LinkAddr, _: bool, _: Instant) {}

    pub(super) const fn end_request(&self, _: u8, _: bool) -> bool {
        false
    }

    pub(super) const fn retry_delay_max(&self, _: u8) -> Duration {
        self.config.retry_delay_max
    }
}
