//! The time at which a transport expects an answer from its peers.
//!
//! Place: at the floor, because TCP makes it and the MAC of a sleeping node uses it, and neither
//! may import the other. Left out: when the MAC then polls, which is `mac::poll`'s.

use crate::time::{Duration, Instant};

/// The period in which an answer to this node's segments may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation {
    /// No answer comes before this instant.
    pub earliest: Instant,
    /// No answer comes after this instant: by then the data are retransmitted, or given up.
    pub latest: Instant,
    /// How long an answer may wait at the parent and still be in time: the interval between
    /// requests.
    pub pace: Duration,
    /// More than one packet is likely to come.
    pub more: bool,
}

impl Expectation {
    /// The expectation of two flows together.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            earliest: self.earliest.min(other.earliest),
            latest: self.latest.max(other.latest),
            pace: self.pace.min(other.pace),
            more: self.more || other.more,
        }
    }

    /// Adds the expectation of another flow to that of all flows so far.
    // In place, and not inlined: chains of iterators that pass expectations on take 1,000 B more.
    #[inline(never)]
    pub(crate) fn join(all: &mut Option<Self>, other: Option<Self>) {
        match (all, other) {
            (Some(all), Some(other)) => *all = all.or(other),
            (all, Some(other)) => *all = Some(other),
            (_, None) => {}
        }
    }
}
