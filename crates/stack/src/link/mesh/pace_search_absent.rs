//! A source without a measured pace, built without the feature `pace`: see `pace_search`.

use crate::mac::Outcome;
use crate::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct PaceSearch;

impl PaceSearch {
    pub(super) const NEW: Self = Self;

    pub(super) const fn note(&self, _: &Outcome, _: (Duration, Duration), _: Instant) {}

    pub(super) const fn leave(&self) {}

    pub(super) const fn slowed(&self, pace: Duration) -> Duration {
        pace
    }
}
