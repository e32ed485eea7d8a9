//! TCPlE: an adaptation layer between IPv6 and L2CAP, where both ends of a connection have it.
//!
//! Purpose: a connection event that has nothing to carry ends, and a packet that comes a moment
//! later waits for the next event. So the sender's link prefetches segments from TCP beyond its
//! window, and sends them to the peer's link, which holds them until TCP has sent them
//! (`PrefetchRecords`, `Held`). An ACK carries the time that it and its data waited, so that the
//! sender can subtract it from the RTT. And a central makes its connection interval as long as the
//! data and their round trip to the host take (`Pace`, with `Predictor`). Place: pure; packets and
//! reports in, decisions out. `link` owns one [`TcpleConnection`] for each connection, one `Held`
//! for all of them, and the channel that the formats of [`crate::wire::tcple`] go by. Left out:
//! signal-to-noise ratios are those over a receiver's sensitivity, since HCI reports no other.
//!
//! Source: Performant TCP over BLE (Lv, Dong, Gao, Chen), §IV and §V.

mod held;
mod pace;
mod predictor;
mod prefetch_records;
mod segment;

pub use held::{HELD_LEN, HeldSlot};
pub(crate) use held::{Held, HeldSegment};
pub(crate) use pace::{FADING, Pace, Present, interval};
pub(crate) use prefetch_records::PrefetchRecords;
pub(crate) use segment::Segment;

use crate::time::Instant;

/// TCPlE's state for one connection of a link.
#[derive(Debug)]
pub struct TcpleConnection {
    pub(crate) prefetches: PrefetchRecords,
    pub(crate) pace: Pace,
    /// Whether TCPlE's channel was open at the last poll.
    pub(crate) was_open: bool,
    /// When the controller last reported the end of a connection event; `None`: data came since.
    pub(crate) event_over: Option<Instant>,
}

impl TcpleConnection {
    /// Memory before it is lent to a link: all zeros, so that a static one, and what is beside it,
    /// costs no flash.
    pub const EMPTY: Self = Self {
        prefetches: PrefetchRecords::NONE,
        pace: Pace::EMPTY,
        was_open: false,
        event_over: None,
    };

    /// The state of a place without a connection.
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
    /// Segments that were prefetched: sent to the peer's link before TCP might send them.
    pub prefetched: u32,
    /// Prefetched segments that TCP has sent since, unchanged.
    pub released: u32,
    /// Segments of peers that were held.
    pub held: u32,
    /// Held segments that were passed on, since the peer's TCP has sent them.
    pub passed_on: u32,
    /// Held segments that were dropped: the peer's TCP sent another segment instead, or too much
    /// time passed.
    pub dropped: u32,
    /// Prefetched segments of peers for which there was no room.
    pub no_room: u32,
    /// Fillers, SDUs without content, sent and received.
    pub fillers: u32,
    /// SDUs that TCPlE does not define, and releases of segments that are not held.
    pub malformed: u32,
    /// Intervals that were requested.
    pub intervals: u32,
}

#[cfg(test)]
mod tests;
