//! Finds by trial how much slower than its measured pace a source should send.
//!
//! A pace that is too quick shows at the source: its frames arrive while the relay still forwards
//! the previous one, and fail. A pace that is too slow only costs time. So a source with many
//! failed attempts tries slower paces, each for the same number of frames, and keeps the pace with
//! the least time per frame, retries included. Place: after [`pace`](super::pace), at a node
//! without nodes below it, for frames to its router. Left out: quicker paces, because the queues
//! ahead would absorb their frames for a while and make them look better; and a source that slows
//! down for another one, because it would measure the other's traffic.

use super::pace::fraction;
use crate::mac::Outcome;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

#[derive(Debug)]
pub(super) struct PaceSearch {
    /// The router that frames go to; with another one all begins anew.
    to: Option<LinkAddr>,
    /// How much slower the source sends now: parts of which [`PARTS`] are the pace.
    slower: u8,
    /// The best pace tried in this search, and its cost; `None`: no search is under way.
    best: Option<(u8, u32)>,
    /// Windows until it may search again, and how many after the next search.
    rest: u8,
    next_rest: u8,
    /// Whether many attempts failed in the last window too.
    was_bad: bool,
    window: Window,
}

/// A number of frames in a row.
#[derive(Debug)]
struct Window {
    /// Frames since the change of pace that still do not count.
    skipped: u8,
    frames: u8,
    /// Attempts of these frames that were not acknowledged.
    failed: u16,
    /// The time that attempts which did not fail took, in all.
    exchanges: Duration,
    since: Instant,
    last: Instant,
}

impl Window {
    const fn begin(skipped: u8, now: Instant) -> Self {
        Self {
            skipped,
            frames: 0,
            failed: 0,
            exchanges: Duration::ZERO,
            since: now,
            last: now,
        }
    }

    /// Time for each frame, in units of what an attempt takes, over 1024.
    fn cost(&self, now: Instant) -> u32 {
        let all = now.since(self.since).as_micros().saturating_mul(1_024);
        let cost = all.checked_div(self.exchanges.as_micros());
        cost.and_then(|cost| u32::try_from(cost).ok())
            .unwrap_or(u32::MAX)
    }
}

impl PaceSearch {
    pub(super) const NEW: Self = Self::of(None, Instant::ORIGIN);

    const fn of(to: Option<LinkAddr>, now: Instant) -> Self {
        Self {
            to,
            slower: 0,
            best: None,
            rest: 0,
            next_rest: REST,
            was_bad: false,
            window: Window::begin(SKIPPED, now),
        }
    }

    /// Notes a frame that the router took after `exchange`. A frame that comes more than `quiet`
    /// after the one before begins another flow.
    pub(super) fn note(
        &mut self,
        outcome: &Outcome,
        (exchange, quiet): (Duration, Duration),
        now: Instant,
    ) {
        if self.to != Some(outcome.to) {
            *self = Self::of(Some(outcome.to), now);
        }
        let window = &mut self.window;
        if now.since(window.last) > quiet {
            *window = Window::begin(SKIPPED, now);
        }
        window.last = now;
        if let Some(left) = window.skipped.checked_sub(1) {
            *window = Window::begin(left, now);
            return;
        }
        window.frames = window.frames.saturating_add(1);
        let failed = outcome.attempts.saturating_sub(1);
        window.failed = window.failed.saturating_add(failed.into());
        window.exchanges = window.exchanges + exchange;
        if window.frames >= FRAMES {
            self.judge(now);
        }
    }

    /// Compares a full window with the best pace so far, and chooses the next pace to try.
    fn judge(&mut self, now: Instant) {
        let (cost, failed) = (self.window.cost(now), self.window.failed);
        self.window = Window::begin(0, now);
        let Some(best) = self.best else {
            self.rest = self.rest.saturating_sub(1);
            // A slower pace is checked again: its reason may be gone.
            let is_bad = failed > FAILED_MAX;
            let was_bad = core::mem::replace(&mut self.was_bad, is_bad);
            if self.rest == 0 && ((is_bad && was_bad) || self.slower > 0) {
                self.best = Some((0, u32::MAX));
                self.turn_to(0, now);
            }
            return;
        };
        // A slower one has to be better by as much as chance makes it look.
        let cost = cost.saturating_add(cost / CHANCE * u32::from(self.slower));
        let best = match cost < best.1 {
            true => (self.slower, cost),
            false => best,
        };
        if self.slower < SLOWEST {
            self.best = Some(best);
            return self.turn_to(self.slower + 1, now);
        }
        self.best = None;
        self.turn_to(best.0, now);
        self.rest = self.next_rest;
        self.next_rest = self.next_rest.saturating_mul(2).min(REST_MAX);
    }

    fn turn_to(&mut self, slower: u8, now: Instant) {
        self.slower = slower;
        self.window = Window::begin(SKIPPED, now);
    }

    /// Ends a search, and discards its result.
    pub(super) fn leave(&mut self) {
        let now = self.window.last;
        self.best = None;
        self.turn_to(0, now);
    }

    /// A pace, as much slower as was found better.
    pub(super) fn slowed(&self, pace: Duration) -> Duration {
        fraction(pace, PARTS + u64::from(self.slower), PARTS)
    }
}

/// A step of the search makes the pace slower by one part in this many.
const PARTS: u64 = 16;

/// The most steps by which a pace that is tried is slower: a source that was quicker by a sixth
/// finds its pace.
const SLOWEST: u8 = 3;

/// Frames in a window: two seconds, with a standard error of 4 % of what one takes.
const FRAMES: u8 = 64;

/// Frames that are not measured after a change of pace: those still queued at the first two relays.
const SKIPPED: u8 = 8;

/// More failures than that in each of two windows begin a search. At a pace that is a twentieth too
/// quick sources on three hops have 26 in most windows; at the one that suits them five, and seldom
/// as many in two windows in a row.
const FAILED_MAX: u16 = 19;

/// For each step a slower pace has to be better by one part in this many.
const CHANCE: u32 = 50;

/// Windows between two searches, at first, half a minute; each time twice as many, up to two
/// minutes: a search that finds nothing then costs less than a hundredth.
const REST: u8 = 16;
const REST_MAX: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: LinkAddr = LinkAddr::Short(1);
    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A source that sends, and finds out.
    struct Source {
        pace_search: PaceSearch,
        now: Instant,
        failed: u32,
    }

    impl Source {
        fn new() -> Self {
            Self {
                pace_search: PaceSearch::NEW,
                now: Instant::from_micros(1_000_000),
                failed: 0,
            }
        }

        /// Sends `frames` frames at the pace found so far. A pace of less than `least` µs lets one
        /// attempt of two fail.
        fn send(&mut self, to: LinkAddr, frames: u32, least: u64) {
            for frame in 0..frames {
                let pace = self.pace();
                let failed = u64::from(pace < least && frame % 2 == 0);
                self.now += Duration::from_micros(pace + failed * 9_000);
                self.failed += failed as u32;
                let outcome = Outcome {
                    token: 1,
                    to,
                    delivered: true,
                    acknowledged: true,
                    reason: None,
                    attempts: 1 + failed as u8,
                    unsent: 0,
                    started: self.now,
                    copied: Duration::ZERO,
                };
                self.pace_search.note(&outcome, (MS(5), MS(200)), self.now);
            }
        }

        /// Where the measured one is 10 ms, µs.
        fn pace(&self) -> u64 {
            self.pace_search.slowed(MS(10)).as_micros()
        }
    }

    #[test]
    fn a_source_whose_frames_fail_finds_a_slower_pace() {
        for (least, pace) in [
            (10_001, 10_625),
            (10_626, 11_250),
            (11_251, 11_875),
            // None is slow enough.
            (12_000, 10_000),
        ] {
            let mut source = Source::new();
            source.send(ROUTER, 7 * 72, least);
            assert_eq!(source.pace(), pace, "{least}");
        }
    }

    #[test]
    fn a_source_whose_frames_do_not_fail_tries_nothing() {
        let mut source = Source::new();
        for _ in 0..1_000 {
            source.send(ROUTER, 1, 0);
            assert_eq!(source.pace(), 10_000);
        }
    }

    /// The cause of the failures may have gone: the measured pace has another chance.
    #[test]
    fn a_slower_pace_has_to_prove_itself_again() {
        let mut source = Source::new();
        source.send(ROUTER, 7 * 72, 10_001);
        assert_eq!(source.pace(), 10_625);
        source.send(ROUTER, 30 * 72, 0);
        assert_eq!(source.pace(), 10_000);
    }

    #[test]
    fn another_router_is_another_pace() {
        let mut source = Source::new();
        source.send(ROUTER, 7 * 72, 10_001);
        source.send(LinkAddr::Short(2), 1, 0);
        assert_eq!(source.pace(), 10_000);
    }

    #[test]
    fn a_search_that_is_given_up_leaves_the_pace_as_it_was() {
        let mut source = Source::new();
        source.send(ROUTER, 4 * 72, 20_000);
        assert!(source.pace() > 10_000);
        source.pace_search.leave();
        assert_eq!(source.pace(), 10_000);
    }

    /// A search takes two windows of every ten at most, and a source that finds nothing searches
    /// less often.
    #[test]
    fn searches_become_rare() {
        let mut source = Source::new();
        let mut slower = 0;
        for _ in 0..10_000 {
            source.send(ROUTER, 1, 20_000);
            slower += u32::from(source.pace() > 10_000);
        }
        assert!(slower > 0 && slower < 1_000, "{slower}");
    }

    /// Pauses are no part of what frames cost.
    #[test]
    fn a_pause_begins_a_window_anew() {
        let mut source = Source::new();
        for _ in 0..100 {
            source.send(ROUTER, 40, 10_001);
            source.now += MS(1_000);
        }
        assert_eq!(source.pace(), 10_000);
    }
}
