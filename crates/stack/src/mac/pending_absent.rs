//! Stands for a parent of sleeping nodes, in a build without the feature `sleepy`; see `pending`.

use super::queue::FrameSlot;
use super::{FrameDrop, Mac};
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ieee802154::Header;

#[derive(Debug)]
pub(super) struct Serving;

impl Serving {
    pub(super) const OFF: Self = Self;

    pub(super) const fn take_pending(&self) -> bool {
        false
    }

    pub(super) const fn reserved(&self) -> usize {
        0
    }

    #[cfg(feature = "security")]
    pub(super) const fn on_heard(&self, _: LinkAddr, _: bool) {}

    pub(super) const fn on_data(&self, _: LinkAddr) {}

    pub(super) const fn on_end(&self, _: Option<u8>, _: bool) {}

    pub(super) const fn has_more(&self, _: &LinkAddr) -> bool {
        false
    }
}

impl Mac<'_> {
    pub(super) const fn on_command(
        &self,
        _: &Header,
        _: &[u8],
        _: Instant,
    ) -> Result<(), FrameDrop> {
        Err(FrameDrop::Command)
    }

    #[cfg(feature = "security")]
    pub(super) const fn on_request(&self, _: LinkAddr, _: &[u8]) -> Result<(), FrameDrop> {
        Err(FrameDrop::Command)
    }

    pub(super) fn attempts_max(&self, slot: &FrameSlot) -> u8 {
        self.patient_attempts(slot.to)
    }
}
