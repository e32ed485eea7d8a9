//! Counters, and round trip times of the line.

use std::collections::VecDeque;

use motet::time::{Duration, Instant};

use crate::hdlc::LineCounters;

/// Counters of a session since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames on the line, and what was dropped of it.
    pub line: LineCounters,
    /// Frames of the line that are not Spinel's, or whose value is cut off.
    pub malformed: u64,
    /// Frames of another interface than the first.
    pub other_interface: u64,
    /// Answers to no request that is open: too late, or with another transaction.
    pub stale: u64,
    /// Answers with an open transaction and another property than the request's.
    pub mismatched: u64,
    /// Unsolicited properties without a use here.
    pub unexpected: u64,
    /// Texts of the firmware for its developers, among them its answers to noise.
    pub log_lines: u64,
    /// Frames received and handed out.
    pub received: u64,
    /// Frames received that the radio refused, or whose FCS is wrong.
    pub refused: u64,
    /// Frames received whose length no frame has.
    pub bad_length: u64,
    /// Frames reported that this radio sent itself.
    pub own: u64,
    /// Frames received before the radio was configured.
    pub early: u64,
    /// Frames received and dropped because too many events wait.
    pub overrun: u64,
    /// Frames acknowledged.
    pub acked: u64,
    /// Frames sent that ask for no ACK.
    pub done: u64,
    /// Frames without the ACK that they ask for.
    pub no_ack: u64,
    /// Frames for which the channel was never clear.
    pub busy: u64,
    /// Frames that the radio refused, or whose transmission has no answer.
    pub failed: u64,
    /// Requests repeated because no answer came.
    pub repeated: u64,
    /// Unexpected restarts of the radio, and lines opened anew.
    pub restarts: u64,
    /// Times that the radio did not answer for two seconds.
    pub silences: u64,
    /// Resets sent.
    pub resets: u64,
    /// Times that the radio's clock jumped without a restart.
    pub clock_jumps: u64,
    /// Frames for the radio that found no room because the line takes nothing.
    pub output_dropped: u64,
}

/// Round trip times of the latest sixteen requests: the delay of the line both ways, and the time
/// that the radio takes to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// The shortest.
    pub min: Duration,
    /// The one in the middle.
    pub median: Duration,
    /// The longest.
    pub max: Duration,
}

/// The latest round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips(VecDeque<Duration>);

impl RoundTrips {
    pub(super) fn on_answer(&mut self, sent_at: Instant, now: Instant) {
        self.0.truncate(KEPT - 1);
        self.0.push_front(now.since(sent_at));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn summary(&self) -> Option<RoundTrip> {
        let mut sorted: Vec<Duration> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        Some(RoundTrip {
            min: *sorted.first()?,
            median: *sorted.get(sorted.len() / 2)?,
            max: *sorted.last()?,
        })
    }
}

const KEPT: usize = 16;
