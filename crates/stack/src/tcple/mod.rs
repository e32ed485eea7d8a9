//! TCPlE: what lies between IPv6's packets and L2CAP where both ends of a connection have it.
//!
//! Purpose: a connection event that has nothing to carry ends, and whatever comes a moment later
//! waits for the next one. So a sender lets segments go ahead of its window as far as the peer's
//! link, which holds them until TCP has sent them (`PrefetchRecords`, `Held`); an ACK says how long it and
//! its data waited, so that RTTs can be told from waiting; and a central makes its connection
//! interval as long as what is sent and its way to the host and back take (`Pace`, with
//! `Predictor`). Place: pure; packets and reports in, verdicts out. `link` owns one [`Side`] for
//! each connection, one `Held` for all of them, and the channel that the formats of
//! [`crate::wire::tcple`] go by. Left out: signal-to-noise ratios are those over a receiver's
//! sensitivity, since HCI reports no other.
//!
//! Source: Performant TCP over BLE (Lv, Dong, Gao, Chen), §IV and §V.

mod held;
mod pace;
mod predictor;
mod prefetch_records;
mod segment;

pub use held::{HELD_LEN, HeldSlot};
pub(crate) use held::{Held, HeldSegment};
pub(crate) use pace::{Pace, interval};
pub(crate) use prefetch_records::PrefetchRecords;
pub(crate) use segment::Segment;

use crate::time::Instant;

/// What a link keeps of TCPlE for one connection.
#[derive(Debug)]
pub struct Side {
    pub(crate) prefetches: PrefetchRecords,
    pub(crate) pace: Pace,
    /// Whether its channel was open when that was last looked at.
    pub(crate) was_open: bool,
    /// When the controller last reported the end of a connection event; `None`: something came
    /// since.
    pub(crate) event_over: Option<Instant>,
}

impl Side {
    /// Of a connection that is not there yet.
    pub const NEW: Self = Self {
        prefetches: PrefetchRecords::NONE,
        pace: Pace::NEW,
        was_open: false,
        event_over: None,
    };
}

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Segments that were sent ahead of TCP's window.
    pub prefetched: u32,
    /// Of them, those that TCP has sent since, as they were.
    pub released: u32,
    /// Segments of peers that were held.
    pub held: u32,
    /// Of them, those that went on.
    pub passed_on: u32,
    /// Of them, those that were dropped: TCP did something else, or said nothing for too long.
    pub dropped: u32,
    /// Segments ahead of their time for which there was no room.
    pub no_room: u32,
    /// SDUs that held nothing, sent and received.
    pub fillers: u32,
    /// SDUs that are none of TCPlE's, and releases of what is not held.
    pub malformed: u32,
    /// Intervals that were asked for.
    pub intervals: u32,
}

#[cfg(test)]
mod tests;
