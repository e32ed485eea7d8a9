//! What a node that measures its pace remembers of a neighbour: how long frames take, how far apart
//! those come that go on to it, and whether several nodes send them.

use super::flow::Flow;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

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
    /// The node that sent it, folded; 0: none yet.
    came_from: u16,
    /// Frames from that node until it counts as the only one.
    shared: u8,
    flow: Flow,
}

impl Rhythm {
    /// Nothing yet: all zeros.
    pub(super) const NONE: Self = Self {
        exchange_us: 0,
        busy: 0,
        apart_us: 0,
        came_at: Instant::ORIGIN,
        came_from: 0,
        shared: 0,
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

    /// Notes that a frame had come `at` and `from` a node, and returns how far apart such frames begin, once it
    /// is known.
    ///
    /// A frame that had to be sent again comes late, and the one behind it soon: neither is to move
    /// what is known by much. So that changes in small steps, whatever the difference, and falls
    /// three times as fast as it rises. Frames that come far apart do not follow each other, and say
    /// nothing.
    pub(super) fn note_arrival(&mut self, from: LinkAddr, at: Instant) -> Option<Duration> {
        self.note_sender(folded(from));
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

    fn note_sender(&mut self, from: u16) {
        self.shared = match self.came_from {
            0 => 0,
            known if known == from => self.shared.saturating_sub(1),
            _ => SHARED_FOR,
        };
        self.came_from = from;
    }

    /// Whether several nodes sent the last frames that came to go on to it, however long ago that was.
    pub(super) const fn is_shared(&self) -> bool {
        self.shared > 0
    }

    /// How far apart frames begin that come to go on to it.
    pub(super) fn apart(&self) -> Option<Duration> {
        (self.apart_us > 0).then_some(Duration::from_micros(self.apart_us.into()))
    }
}

/// An address in 16 bits, none of them all zeros. Two neighbours seldom have the same; they then count as one. A
/// neighbour that uses a short and a long address counts as two.
fn folded(addr: LinkAddr) -> u16 {
    let [a, b, c, d, e, f, g, h] = addr.iid();
    u16::from_be_bytes([a ^ c ^ e ^ g, b ^ d ^ f ^ h]).max(1)
}

/// So many frames in a row from one node say that no other sends: six segments of five frames.
const SHARED_FOR: u8 = 32;

/// Exchanges between two frames that do not follow each other.
const FOLLOWS: u64 = 8;

/// One step is so small a part of what is known: at forty frames a second it has found another pace, a
/// seventh slower, within three seconds. Four times as large steps cost relays that copy a twentieth of
/// goodput.
const STEPS: u16 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: LinkAddr = LinkAddr::Short(7);

    /// What is known when frames have come so far apart, ms, over and over.
    fn after(times: usize, apart_ms: &[u64]) -> Option<u64> {
        let mut rhythm = Rhythm::NONE;
        rhythm.took(Duration::from_millis(5));
        let mut at = Instant::from_micros(1_000_000);
        for ms in apart_ms.iter().cycle().take(times * apart_ms.len()) {
            at += Duration::from_millis(*ms);
            rhythm.note_arrival(CHILD, at);
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
                rhythm.note_arrival(CHILD, at);
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
            assert_eq!(rhythm.note_arrival(CHILD, at), None);
        }
    }

    /// A neighbour is shared from the second sender on, and no longer when only one is left. Frames far apart
    /// say it as well as frames that follow each other.
    #[test]
    fn several_senders_share_a_neighbour() {
        let mut rhythm = Rhythm::NONE;
        let mut now = Instant::from_micros(1_000_000);
        let others = [
            LinkAddr::Short(8),
            LinkAddr::Extended([7, 0, 9, 0, 0, 0, 1, 1]),
        ];
        for other in others {
            for (from, frames, is_shared) in [
                (CHILD, 64, false),
                (other, 31, true),
                (CHILD, 32, true),
                (CHILD, 1, false),
            ] {
                for _ in 0..frames {
                    now += Duration::from_millis(300);
                    rhythm.note_arrival(from, now);
                }
                assert_eq!(rhythm.is_shared(), is_shared, "{from:?}");
            }
        }
    }

    #[test]
    fn an_address_folds_to_what_is_not_none() {
        for (bytes, known) in [
            ([2, 0, 0, 0, 0, 0, 0, 0], 1),
            ([1, 2, 3, 4, 5, 6, 7, 8], 0x0208),
        ] {
            assert_eq!(folded(LinkAddr::Extended(bytes)), known, "{bytes:x?}");
        }
        assert_ne!(folded(LinkAddr::Short(1)), folded(LinkAddr::Short(2)));
    }
}
