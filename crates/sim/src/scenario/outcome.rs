//! How flows end.

use std::fmt;

use motet::tcp;
use serde::{Deserialize, Serialize};

use crate::scenario::{FlowEnd, FlowKind, FlowSettings};

/// How a flow ended, or that it had not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A transfer of known length arrived whole.
    Complete,
    /// The flow was under way when the time was over; a flow without an end always is.
    Running,
    /// No connection was made: the peer, or the sender's own node, refused it.
    Refused,
    /// The connection was reset.
    Reset,
    /// The peer did not answer for too long.
    TimedOut,
    /// The network said that the peer cannot be reached.
    Unreachable,
    /// A fault of the scenario has switched one of its ends off for good.
    SwitchedOff,
}

impl Outcome {
    /// The outcome of a connection that ended by `error`.
    pub fn of(error: tcp::Error) -> Self {
        match error {
            tcp::Error::Refused => Self::Refused,
            tcp::Error::Reset | tcp::Error::Aborted => Self::Reset,
            tcp::Error::TimedOut | tcp::Error::KeepaliveTimedOut | tcp::Error::UserTimeout => {
                Self::TimedOut
            }
            tcp::Error::Unreachable => Self::Unreachable,
        }
    }

    /// Whether the flow ended otherwise than the scenario says.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Complete | Self::Running | Self::SwitchedOff)
    }

    /// The outcome in a word or two, for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Running => "running",
            Self::Refused => "refused",
            Self::Reset => "reset",
            Self::TimedOut => "timed out",
            Self::Unreachable => "unreachable",
            Self::SwitchedOff => "switched off",
        }
    }

    /// The outcome in words, with the flow as the subject.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Complete => "arrived whole",
            Self::Running => "was still running when the time was over",
            Self::Refused => "was refused a connection",
            Self::Reset => "was reset",
            Self::TimedOut => "timed out: its peer did not answer for too long",
            Self::Unreachable => "ended because its peer could not be reached",
            Self::SwitchedOff => "ended because a fault has switched one of its ends off for good",
        }
    }
}

/// Which way a flow goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From a mote to the host.
    Up,
    /// From the host to a mote.
    Down,
    /// From a mote to a mote.
    Across,
}

/// The properties that flows have to share for a mean over them to mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Likeness {
    /// The kind of traffic, which says by which transport.
    pub kind: FlowKind,
    /// Which way the flow goes.
    pub direction: Direction,
    /// The number of radio hops.
    pub hops: usize,
    /// Bytes of a transfer; 0: without an end.
    pub bytes: u64,
    /// Messages: bytes of one, bytes of its answer, and µs between two. All 0 for a transfer.
    pub message: [u64; 3],
}

impl Likeness {
    /// The likeness of a flow with these settings over `hops` radio hops.
    pub fn new(flow: &FlowSettings, hops: usize) -> Self {
        let (bytes, message) = match flow.kind {
            FlowKind::Bulk | FlowKind::Push => (flow.bytes, [0; 3]),
            kind => {
                let answer = match kind {
                    FlowKind::Request => flow.answer_bytes as u64,
                    _ => 0,
                };
                let interval_us = (flow.interval_s * 1e6) as u64;
                (0, [flow.message_bytes as u64, answer, interval_us])
            }
        };
        Self {
            kind: flow.kind,
            direction: flow.direction(),
            hops,
            bytes,
            message,
        }
    }
}

impl Likeness {
    /// Kind, direction and hops alone.
    pub fn short(&self) -> String {
        let kind = self.kind.name();
        let direction = self.direction.name();
        let hops = self.hops;
        let plural = if hops == 1 { "" } else { "s" };
        format!("{kind} {direction}, {hops} hop{plural}")
    }
}

impl Direction {
    /// The name that JSON has.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Across => "across",
        }
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())?;
        match (self.bytes, self.message) {
            (0, [0, ..]) => Ok(()),
            (bytes, [0, ..]) => write!(f, ", {bytes} B"),
            (_, [bytes, answer, interval_us]) => {
                let each_s = interval_us as f64 / 1e6;
                match answer {
                    0 => write!(f, ", {bytes} B each {each_s} s"),
                    _ => write!(f, ", {bytes} B for {answer} B each {each_s} s"),
                }
            }
        }
    }
}

impl FlowSettings {
    /// The direction of the flow.
    pub fn direction(&self) -> Direction {
        match (self.from, self.to) {
            (_, FlowEnd::Host) => Direction::Up,
            (FlowEnd::Host, _) => Direction::Down,
            _ => Direction::Across,
        }
    }
}
