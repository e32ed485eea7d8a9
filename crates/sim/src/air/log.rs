//! A log of the air for an observer: each frame once it has left, each change of a radio's state.
//!
//! Purpose: maps and timelines of a run that goes on. The log draws no random number, schedules no
//! event and changes no counter: the results of a run are the same with and without an observer.
//! Place: [`crate::air::Air`] and the air of Bluetooth LE write to the log; [`crate::net::world`]
//! returns it to the observer. Without an observer there is no log, and a frame costs one test.
//! Left out: frames that are still on the air; they are logged when they end and their fate is
//! known.

use motet::time::Instant;
use motet::wire::ieee802154::{FrameType, Header};

use crate::air::medium::{Fate, Finished, Medium};
use crate::air::phy;
use crate::air::radio::State;

/// Something that an observer has seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happening {
    /// A frame has left the air.
    Frame(LoggedFrame),
    /// A radio of IEEE 802.15.4 is in another state.
    Radio(Turn),
}

/// A frame that has left the air.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedFrame {
    /// The node that sent it; of attackers a number behind those of all nodes.
    pub from: usize,
    /// The destination node; `None` for a broadcast, and for an ACK that no node is known to wait
    /// for.
    pub to: Option<usize>,
    /// When its first symbol was on the air, the preamble's.
    pub start: Instant,
    /// When its last symbol had passed.
    pub end: Instant,
    /// The channel: 11 to 26 of IEEE 802.15.4, 0 to 39 of Bluetooth LE.
    pub channel: u8,
    /// The frame's sort.
    pub kind: Sort,
    /// The frame's fate at its destination.
    pub fate: Fate,
    /// The frame's bytes as a capture holds them: a PSDU with FCS, or a packet of Bluetooth LE
    /// behind the header of link type 256.
    pub bytes: Box<[u8]>,
}

impl LoggedFrame {
    /// A frame of IEEE 802.15.4 that has just left the air, with its fate and the end of it.
    pub(crate) fn of(
        finished: &Finished,
        header: Option<&Header>,
        (fate, end): (Fate, Instant),
        medium: &Medium,
    ) -> Self {
        let bytes = finished.frame.psdu();
        let time_us = phy::air_time(bytes.len()).as_micros();
        Self {
            from: finished.from,
            to: finished.intended,
            start: Instant::from_micros(end.as_micros().saturating_sub(time_us)),
            end,
            channel: medium.channel(finished.from),
            kind: Sort::of(header.map(|header| header.frame_type)),
            fate,
            bytes: bytes.into(),
        }
    }
}

/// The sort of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    /// A beacon of IEEE 802.15.4.
    Beacon,
    /// Data of IEEE 802.15.4, or a packet of a connection of Bluetooth LE.
    Data,
    /// An immediate ACK.
    Ack,
    /// A command of IEEE 802.15.4.
    Command,
    /// An advertisement of Bluetooth LE, or a request for a connection.
    Advertisement,
    /// The frame's header could not be read.
    Unknown,
}

impl Sort {
    /// A short name, for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Beacon => "beacon",
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Command => "command",
            Self::Advertisement => "advertisement",
            Self::Unknown => "unknown",
        }
    }

    /// The sort of a frame with this header.
    pub(crate) fn of(frame_type: Option<FrameType>) -> Self {
        match frame_type {
            Some(FrameType::Beacon) => Self::Beacon,
            Some(FrameType::Data) => Self::Data,
            Some(FrameType::Ack) => Self::Ack,
            Some(FrameType::Command) => Self::Command,
            _ => Self::Unknown,
        }
    }
}

/// A radio's change of state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The node's number.
    pub node: usize,
    /// When the radio changed its state.
    pub at: Instant,
    /// The radio's state from then on.
    pub state: State,
}

/// Events seen since the last look, by time, in a bounded number.
#[derive(Debug)]
pub struct Log {
    seen: Vec<Happening>,
    limit: usize,
    missed: u64,
}

/// Events that an observer has seen since it looked last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// The events in the order of time: a frame by its end.
    pub all: Vec<Happening>,
    /// How many more there were than the observer wanted to keep.
    pub missed: u64,
}

impl Log {
    /// A log that keeps `limit` happenings from one look to the next.
    pub fn new(limit: usize) -> Self {
        Self {
            seen: Vec::new(),
            limit,
            missed: 0,
        }
    }

    /// Adds the result of `happening` if there is room; otherwise `happening` is not called, and a
    /// loss is counted.
    pub fn note(&mut self, happening: impl FnOnce() -> Happening) {
        match self.seen.len() < self.limit {
            true => self.seen.push(happening()),
            false => self.missed += 1,
        }
    }

    /// Takes the events seen since the last look.
    pub fn take(&mut self) -> Seen {
        Seen {
            all: std::mem::take(&mut self.seen),
            missed: std::mem::take(&mut self.missed),
        }
    }
}
