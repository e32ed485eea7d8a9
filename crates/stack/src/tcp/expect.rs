//! TCP's expectations: when an answer to what it has sent may come, for a node that sleeps until
//! then.
//!
//! Place: the node calls this after each poll, and passes the combined expectation of all
//! connections to its links. No state is kept for it: it follows from SRTT, the transmit timer and
//! the time of the last progress. Left out: this end's own delayed ACK, after which no answer is
//! expected.
//!
//! Sources: TCPlp §10 and appendix C.2, which propose the RTT estimate, the timeout, the PSH flag
//! and the bytes in flight as hints, and leave them undone.

use super::config::Economy;
use super::connection::Connection;
use super::facts::Facts;
use super::listener::{HalfOpen, Stage, possible};
use super::sockets::Tcp;
use super::timers::{Timer, present, wait_until};
use crate::hint::Expectation;
use crate::time::{Duration, Instant};

impl Tcp<'_> {
    /// When the peers of all connections and handshakes may answer; `None`: nothing is expected. A
    /// connection that only waits for what its peer does by itself expects nothing.
    pub fn expected(&self, now: Instant) -> Option<Expectation> {
        let (tick, now_ms) = (self.tick, self.now_ms);
        let mut all = None;
        let mut add = |answer: Option<Expectation>| {
            Expectation::join(&mut all, answer.filter(|answer| answer.latest > now));
        };
        for slot in self.memory.connections.iter() {
            if let Some(connection) = &slot.0 {
                add(connection.expects(tick, now_ms, now));
            }
        }
        for entry in possible(self.memory.half_open) {
            if entry.stage() == Stage::SynReceived {
                add(Some(entry.expects(tick, now_ms)));
            }
        }
        all
    }
}

impl HalfOpen {
    /// The answer to the SYN-ACK, which often carries the peer's request. The round trip is not
    /// known, only that the SYN-ACK is sent again at the deadline. A forged SYN costs some ten
    /// requests for each SYN-ACK.
    fn expects(&self, tick: Instant, now_ms: u32) -> Expectation {
        let wait = wait_until(self.deadline, present(now_ms, 0));
        let pace_ms = ROUND_UNKNOWN_MS / 4;
        Expectation {
            earliest: Instant::ORIGIN,
            latest: tick + Duration::from_micros(u64::from(wait) * 125 / 4),
            pace: Duration::from_millis(u64::from(pace_ms) << self.retries()),
            more: false,
        }
    }
}

impl Connection<'_> {
    /// `tick`: the instant of `now_ms`.
    fn expects(&self, tick: Instant, now_ms: u32, now: Instant) -> Option<Expectation> {
        let ms = |ms: u32| Duration::from_millis(u64::from(ms));
        let ago = |at: u32| {
            let past = ms(now_ms.wrapping_sub(at));
            Instant::from_micros(tick.as_micros().saturating_sub(past.as_micros()))
        };
        let economy = self.config.economy;
        let srtt = self.rtt.srtt_ms();
        let round = srtt.unwrap_or(ROUND_UNKNOWN_MS);
        let pace = match economy {
            Economy::LowestEnergy => round / 2,
            Economy::Balanced => round / 4,
            Economy::LowestLatency => 0,
        };
        let pace = pace.min(PACE_MAX_MS);
        // Where several answers are due, each lets more data out. A router that holds them for
        // other flows makes the round trip long, and the wait for each would make it longer still.
        let is_alone = self.flight() <= u32::from(self.smss);
        let most = match is_alone || economy == Economy::LowestEnergy {
            true => PACE_MAX_MS,
            false => PACE_SEVERAL_MAX_MS,
        };
        // Each timeout in a row doubles the time between two requests as it doubles the timeout: an
        // answer that was late once may be late by as long.
        let doublings = self.retries.min(self.rtt.doublings());
        let least = if doublings > 0 { PACE_LATE_MS } else { 0 };
        let doubled = pace.min(most).max(least) << doublings;
        let [pace, sent_pace] = [pace, doubled.min(PACE_MAX_MS)].map(ms);
        let sent = self.timers.is_armed(Timer::Transmit).then(|| {
            let [transmit, ..] = self.deadlines;
            let wait = wait_until(transmit, present(now_ms, 0));
            let latest = tick + Duration::from_micros(u64::from(wait) * 125 / 4);
            let var = self.rtt.rttvar_ms();
            // The first of several answers may be on its way already.
            let after = match economy {
                // The measured RTT includes this wait: a wait of a whole RTT would make the RTT
                // grow without end.
                Economy::LowestEnergy => round - round / 4,
                Economy::Balanced if is_alone => round.saturating_sub(2 * var),
                Economy::Balanced | Economy::LowestLatency => 0,
            };
            Expectation {
                earliest: ago(self.progress_at()) + ms(after),
                latest,
                pace: sent_pace,
                more: !is_alone,
            }
        });
        let mut all = sent;
        Expectation::join(&mut all, self.stream(ago, pace, now));
        all
    }

    /// The peer has just sent, or connected, and probably has more: it sends again when it has our
    /// ACK, or when its own timer expires, whose length is unknown. So the longer the peer is
    /// silent, the more rarely the node polls for its segments. If there is a gap before received
    /// data, the missing data are always expected, even if the last segment had the PSH flag.
    fn stream(
        &self,
        ago: impl Fn(u32) -> Instant,
        pace: Duration,
        now: Instant,
    ) -> Option<Expectation> {
        let streams = self.facts.has(Facts::STREAMS | Facts::HAS_CONNECTED)
            && self.config.economy != Economy::LowestEnergy;
        if !self.is_established() || !(streams || self.recv.has_gaps()) {
            return None;
        }
        let since = ago(self.ts_recent_at);
        let silence = Duration::from_micros(now.since(since).as_micros() / 4);
        Some(Expectation {
            earliest: since,
            latest: since + STREAM_MAX,
            pace: pace.max(silence),
            more: true,
        })
    }
}

/// Before the first round trip was measured: some hops of single frames.
const ROUND_UNKNOWN_MS: u32 = 400;

/// However long the round trip, an answer waits no longer.
const PACE_MAX_MS: u32 = 1_000;

/// The same where answers to several segments are due, each of which lets more data out.
const PACE_SEVERAL_MAX_MS: u32 = 100;

/// The least time between two requests that is doubled, ms: a link asks no more often.
const PACE_LATE_MS: u32 = 20;

/// How long the peer's next segments are waited for: its greatest RTO (RFC 6298 §2.5).
const STREAM_MAX: Duration = Duration::from_secs(60);
