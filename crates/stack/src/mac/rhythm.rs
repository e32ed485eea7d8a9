//! What a node that measures its pace remembers of a neighbour: how long frames take, and how far apart
//! those come that go on to it.

use super::flow::Flow;
use crate::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(super) struct Rhythm {
    /// How long the last frame took that it acknowledged, from the assessment to the ACK, µs; none
    /// takes as long as the type counts. 0: not known.
    exchange_us: u16,
    /// Assessments before frames for it that found the channel busy; they grow old as attempts do.
    busy: u16,
    /// How far apart frames begin that come to go on to it, µs: a time that three of four exceed. 0: not
    /// known.
    apart_us: u16,
    /// When the last of those had come.
    came_at: Instant,
    flow: Flow,
}

impl Rhythm {
    /// Nothing yet: all zeros.
    pub(super) const NONE: Self = Self {
        exchange_us: 0,
        busy: 0,
        apart_us: 0,
        came_at: Instant::ORIGIN,
        flow: Flow::NONE,
    };

    pub(super) fn exchange(&self) -> Option<Duration> {
        (self.exchange_us > 0).then_some(Duration::from_micros(self.exchange_us.into()))
    }

    pub(super) fn took(&mut self, exchange: Duration) {
        self.exchange_us = u16::try_from(exchange.as_micros()).unwrap_or(u16::MAX);
    }

    pub(super) const fn note_busy(&mut self) {
        self.busy = self.busy.saturating_add(1);
    }

    pub(super) const fn grow_old(&mut self) {
        self.busy /= 2;
    }

    pub(super) const fn busy(&self) -> u16 {
        self.busy
    }

    pub(super) const fn flow(&self) -> Flow {
        self.flow
    }

    pub(super) const fn note_flow(&mut self, flow: Flow) {
        self.flow = flow;
    }

    /// Notes that a frame had come `at`, and returns how far apart such frames begin, once it is known.
    ///
    /// A frame that had to be sent again comes late, and the one behind it soon: neither is to move
    /// what is known by much. So that changes in small steps, whatever the difference, and falls
    /// three times as fast as it rises. Frames that come far apart do not follow each other, and say
    /// nothing.
    pub(super) fn note_arrival(&mut self, at: Instant) -> Option<Duration> {
        let apart = at.since(self.came_at).as_micros();
        let longest = u64::from(self.exchange_us) * FOLLOWS;
        self.came_at = at;
        if let Ok(apart) = u16::try_from(apart)
            && u64::from(apart) < longest
        {
            let known = self.apart_us;
            let (less, more) = (known / STEPS, known / (3 * STEPS));
            self.apart_us = match known {
                0 => apart,
                _ => apart.clamp(known - less, known.saturating_add(more)),
            };
        }
        self.apart()
    }

    /// How far apart frames begin that come to go on to it.
    pub(super) fn apart(&self) -> Option<Duration> {
        (self.apart_us > 0).then_some(Duration::from_micros(self.apart_us.into()))
    }
}

/// Exchanges between two frames that do not follow each other.
const FOLLOWS: u64 = 8;

/// One step is so small a part of what is known: at forty frames a second it has found another pace, a
/// seventh slower, within three seconds. Four times as large steps cost relays that copy a twentieth of
/// goodput.
const STEPS: u16 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known when frames have come so far apart, ms, over and over.
    fn after(times: usize, apart_ms: &[u64]) -> Option<u64> {
        let mut rhythm = Rhythm::NONE;
        rhythm.took(Duration::from_millis(5));
        let mut at = Instant::from_micros(1_000_000);
        for ms in apart_ms.iter().cycle().take(times * apart_ms.len()) {
            at += Duration::from_millis(*ms);
            rhythm.note_arrival(at);
        }
        rhythm.apart().map(Duration::as_micros)
    }

    #[test]
    fn frames_tell_how_far_apart_they_come() {
        assert_eq!(after(1, &[20]), None);
        assert_eq!(after(2, &[20]), Some(20_000));
        let near = |apart: Option<u64>, us: u64| apart.unwrap().abs_diff(us) <= us / 64;
        // Late ones, and those behind them, move it little.
        assert!(near(after(200, &[20, 20, 20, 28, 12]), 20_000));
        assert!(near(after(200, &[20, 20, 20, 39]), 20_000));
        // The next segment says nothing.
        assert_eq!(after(200, &[20, 20, 20, 20, 40]), Some(20_000));
        assert_eq!(after(200, &[20, 20, 400]), Some(20_000));
    }

    #[test]
    fn another_pace_is_found() {
        let mut rhythm = Rhythm::NONE;
        rhythm.took(Duration::from_millis(5));
        let mut at = Instant::from_micros(1_000_000);
        for (ms, frames) in [(20, 10), (23, 160), (17, 160), (20, 160)] {
            for _ in 0..frames {
                at += Duration::from_millis(ms);
                rhythm.note_arrival(at);
            }
            assert_eq!(rhythm.apart(), Some(Duration::from_millis(ms)));
        }
    }

    /// Before the first ACK nobody knows which frames follow each other.
    #[test]
    fn nothing_is_known_before_the_first_exchange() {
        let mut rhythm = Rhythm::NONE;
        for ms in [1, 2, 3] {
            let at = Instant::from_micros(1_000_000 + ms * 1_000);
            assert_eq!(rhythm.note_arrival(at), None);
        }
    }
}
