//! The time that a radio spends in each state.

use motet::time::{Duration, Instant};

use super::Radio;
use crate::air::profile::Profile;

/// A state in which a radio spends time and charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The radio is off.
    Sleep,
    /// Receiving, or ready to.
    Listen,
    /// A frame is copied into it.
    Copy,
    /// A frame is copied out of the radio, which cannot receive meanwhile.
    Unload,
    /// Measuring energy.
    Assess,
    /// Listening while the driver prepares a transmission.
    Prepare,
    /// Turning around to transmit, tuning, or waking up.
    Turnaround,
    /// Transmitting.
    Transmit,
}

/// How long a radio was in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    spans: [Duration; State::COUNT],
    pub(super) cpu: Duration,
    /// The part of the turnaround time in which the radio woke up.
    pub(super) waking: Duration,
    pub(super) state: State,
    since: Instant,
}

impl Usage {
    pub(super) fn new() -> Self {
        Self {
            spans: [Duration::ZERO; State::COUNT],
            cpu: Duration::ZERO,
            waking: Duration::ZERO,
            state: State::Listen,
            since: Instant::ORIGIN,
        }
    }

    pub(super) fn enter(&mut self, state: State, now: Instant) {
        let span = &mut self.spans[self.state as usize];
        *span = *span + now.since(self.since);
        self.state = state;
        self.since = now;
    }

    /// The time spent in `state`, since the start.
    pub fn span(&self, state: State) -> Duration {
        self.spans[state as usize]
    }

    /// Time its processor worked for it.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// Time in which the radio woke up; part of [`State::Turnaround`].
    pub fn waking(&self) -> Duration {
        self.waking
    }

    /// A radio that did nothing but listen.
    #[cfg(test)]
    pub(crate) fn listening(span: Duration) -> Self {
        let mut usage = Self::new();
        usage.enter(State::Listen, Instant::ORIGIN + span);
        usage
    }

    /// Time spent in any state.
    pub fn total(&self) -> Duration {
        self.spans
            .iter()
            .fold(Duration::ZERO, |sum, span| sum + *span)
    }
}

impl Radio {
    /// Counts the processor's time for these numbers of frames sent, frames received, and segments;
    /// it moves nothing.
    pub(crate) fn work(&mut self, [sent, received, segments]: [u32; 3]) {
        let Profile {
            frame_sent,
            frame_received,
            segment,
            ..
        } = *self.profile;
        let span = frame_sent.saturating_mul(sent.into())
            + frame_received.saturating_mul(received.into())
            + segment.saturating_mul(segments.into());
        self.usage.cpu = self.usage.cpu + span;
    }
}

impl State {
    /// How many states there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Sleep,
        Self::Listen,
        Self::Copy,
        Self::Unload,
        Self::Assess,
        Self::Prepare,
        Self::Turnaround,
        Self::Transmit,
    ];
}
