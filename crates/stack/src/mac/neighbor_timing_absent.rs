//! A node that measures no pace, built without the feature `pace`: see `neighbor_timing`.

use super::flow::Flow;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

#[derive(Clone, Debug)]
pub(super) struct NeighborTiming;

impl NeighborTiming {
    pub(super) const NONE: Self = Self;

    pub(super) const fn exchange(&self) -> Option<Duration> {
        None
    }

    pub(super) const fn took(&self, _: Duration) {}

    pub(super) const fn note_attempt(&self, _: bool) {}

    pub(super) const fn exchanges_left(&self, _: u8, _: Instant) -> Option<u64> {
        None
    }

    pub(super) const fn note_busy(&self) {}

    pub(super) const fn grow_old(&self) {}

    pub(super) const fn busy(&self) -> u16 {
        0
    }

    pub(super) const fn flow(&self) -> Flow {
        Flow::NONE
    }

    pub(super) const fn note_flow(&self, _: Flow) {}

    pub(super) const fn note_arrival(&self, _: LinkAddr, _: Instant) -> Option<Duration> {
        None
    }

    pub(super) const fn note_promise(&self, _: Instant, _: Option<Instant>) {}

    pub(super) const fn keeps_promises(&self) -> bool {
        true
    }

    pub(super) const fn note_sender(&self, _: LinkAddr) {}

    pub(super) const fn is_shared(&self) -> bool {
        false
    }

    pub(super) const fn apart(&self, _: Instant) -> Option<Duration> {
        None
    }

    pub(super) const fn is_mostly_of(&self, _: LinkAddr) -> bool {
        false
    }

    pub(super) const fn contends(&self, _: Instant) -> bool {
        false
    }

    pub(super) const fn is_orderly(&self, _: Instant) -> bool {
        false
    }
}
