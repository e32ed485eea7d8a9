//! Where the attempt at a frame stands.

use crate::time::Instant;

/// Where the attempt stands. Each state but `Idle` ends at a deadline or before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing to send, or every frame must wait.
    Idle,
    /// Waiting a random time, receiver on.
    Backoff { until: Instant },
    /// The radio was asked to take the frame; the backoff, if any is left, runs on.
    Preloading {
        until: Instant,
        backoff_until: Instant,
    },
    /// The radio was asked whether the channel is clear.
    Assessing { until: Instant },
    /// The channel is clear; the frame goes out next.
    Clear,
    /// The radio was asked to take a frame that waits for its condition.
    Arming { until: Instant },
    /// The condition came true; the frame goes out after the ACK of the one that met it.
    Triggered,
    /// The frame is on the air.
    Firing { until: Instant },
    /// Waiting for the ACK of a frame that ended at `sent_at`.
    AwaitingAck { sent_at: Instant, until: Instant },
}

impl State {
    /// When the wait for the radio's answer, or for the ACK, is over.
    pub(super) const fn answer_until(self) -> Option<Instant> {
        match self {
            Self::Idle | Self::Backoff { .. } | Self::Clear | Self::Triggered => None,
            Self::Preloading { until, .. }
            | Self::Arming { until }
            | Self::Assessing { until }
            | Self::Firing { until }
            | Self::AwaitingAck { until, .. } => Some(until),
        }
    }

    pub(super) const fn is_firing(self) -> bool {
        matches!(self, Self::Firing { .. })
    }
}
