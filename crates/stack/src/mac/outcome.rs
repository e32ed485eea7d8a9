//! What became of a frame.

use super::FrameDrop;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// The outcome of an enqueued frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The [`Frame::token`](super::Frame::token) of the frame.
    pub token: u16,
    /// The [`Frame::to`](super::Frame::to) of the frame: a neighbour, or all.
    pub to: LinkAddr,
    /// Whether the frame was acknowledged; or was sent, where no ACK was asked for, or the radio
    /// does not tell whether one came.
    pub delivered: bool,
    /// Whether its neighbour acknowledged it.
    pub acknowledged: bool,
    /// Why the last attempt failed; `None` when delivered.
    pub reason: Option<FrameDrop>,
    /// Attempts made; 0 for a frame that grew too old before its first, or whose neighbour is
    /// left alone.
    pub attempts: u8,
    /// Those of them in which the frame did not go out: the channel was busy, or the radio did not
    /// do as it was told. They say nothing of the link.
    pub unsent: u8,
    /// When the frame's last attempt assessed the channel, or was fired without an assessment.
    pub started: Instant,
    /// How long the copy of the frame into the radio took.
    pub copied: Duration,
}
