//! When a confirmable request is sent again, and when it is given up.
//!
//! Without estimates the first timeout is drawn from a fixed range and doubles with each
//! retransmission (RFC 7252 §4.2). CoCoA estimates the timeout instead: the strong estimate uses
//! answers to requests that were sent once, the weak estimate answers to retransmitted requests,
//! measured from the first transmission. There are two variants: that of draft-ietf-core-cocoa-03,
//! and that of its authors' code for Contiki, which gives the weak estimate three times the weight.

use motet::random::Rng;
use motet::time::{Duration, Instant};

/// The settings of RFC 7252 §4.8 that matter here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// ACK_TIMEOUT: the least first timeout, without an estimate.
    pub ack_timeout: Duration,
    /// ACK_RANDOM_FACTOR: by so much at most it is longer.
    pub random_factor: f64,
    /// MAX_RETRANSMIT (RFC 7252 §4.8): how many times a request is sent again.
    pub retransmissions: u8,
}

impl Parameters {
    /// The defaults of RFC 7252 §4.8.
    pub const RFC7252: Self = Self {
        ack_timeout: Duration::from_secs(2),
        random_factor: 1.5,
        retransmissions: 4,
    };

    /// The parameters of Contiki, used in `TCPlp` §9.4: the first timeout is 3 s.
    pub const CONTIKI: Self = Self {
        ack_timeout: Duration::from_secs(3),
        ..Self::RFC7252
    };
}

/// The algorithm that sets retransmission timeouts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Binary exponential backoff by [`Parameters`] (RFC 7252 §4.2).
    Fixed,
    /// draft-ietf-core-cocoa-03.
    Cocoa,
    /// The code of CoCoA's authors for Contiki.
    CocoaContiki,
}

/// The next step for a request whose timer has run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// The request is to be sent again.
    Again,
    /// Nobody waits for its answer any more.
    GivenUp,
}

/// The timer of the request under way, and what is known of the path.
#[derive(Clone, Debug)]
pub struct Timing {
    parameters: Parameters,
    algorithm: Algorithm,
    request: Option<Request>,
    strong: Estimate,
    weak: Estimate,
    /// CoCoA's estimate of both, s.
    rto_s: f64,
    updated_at: Instant,
}

/// The request under way.
#[derive(Clone, Copy, Debug)]
struct Request {
    first_sent: Instant,
    expires_at: Instant,
    timeout_s: f64,
    factor: f64,
    retransmissions: u8,
}

/// SRTT and RTTVAR (RFC 6298 §2), s.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate(Option<(f64, f64)>);

impl Estimate {
    /// Takes a sample; returns SRTT and `k` times RTTVAR.
    fn update(&mut self, rtt_s: f64, k: f64) -> f64 {
        let (srtt, rttvar) = match self.0 {
            None => (rtt_s, rtt_s / 2.0),
            Some((srtt, rttvar)) => (
                srtt + (rtt_s - srtt) / 8.0,
                rttvar + ((srtt - rtt_s).abs() - rttvar) / 4.0,
            ),
        };
        self.0 = Some((srtt, rttvar));
        srtt + k * rttvar
    }
}

impl Timing {
    /// Nothing is under way, and nothing known.
    pub fn new(algorithm: Algorithm, parameters: Parameters) -> Self {
        Self {
            parameters,
            algorithm,
            request: None,
            strong: Estimate::default(),
            weak: Estimate::default(),
            rto_s: RTO_FIRST_S,
            updated_at: Instant::ORIGIN,
        }
    }

    /// A request is sent for the first time.
    pub fn begin(&mut self, now: Instant, rng: &mut Rng) {
        let least_s = match self.algorithm {
            Algorithm::Fixed => seconds(self.parameters.ack_timeout),
            Algorithm::Cocoa | Algorithm::CocoaContiki => {
                self.age(now);
                self.rto_s
            }
        };
        let part = f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let timeout_s = least_s * (1.0 + (self.parameters.random_factor - 1.0) * part);
        self.request = Some(Request {
            first_sent: now,
            expires_at: now + duration(timeout_s),
            timeout_s,
            factor: self.factor(timeout_s),
            retransmissions: 0,
        });
    }

    /// The factor by which a timeout grows with each retransmission, if the first one was
    /// `timeout_s`.
    fn factor(&self, timeout_s: f64) -> f64 {
        let short = match self.algorithm {
            Algorithm::Fixed => return 2.0,
            Algorithm::Cocoa => 3.0,
            Algorithm::CocoaContiki => 2.5,
        };
        match timeout_s {
            s if s < SHORT_S => short,
            s if s > LONG_S => 1.5,
            _ => 2.0,
        }
    }

    /// When to look at the request under way, if there is one.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.request.map(|request| request.expires_at)
    }

    /// The time until which an answer to the last transmission may come.
    pub fn answer_until(&self) -> Option<Instant> {
        self.next_deadline()
    }

    /// Whether the timer has run out, and what follows.
    pub fn on_due(&mut self, now: Instant) -> Option<Due> {
        let most = self.parameters.retransmissions;
        let algorithm = self.algorithm;
        let request = self.request.as_mut()?;
        if now < request.expires_at {
            return None;
        }
        if request.retransmissions >= most {
            self.request = None;
            self.forget_strong();
            return Some(Due::GivenUp);
        }
        request.retransmissions += 1;
        request.timeout_s *= request.factor;
        if algorithm != Algorithm::Fixed {
            request.timeout_s = request.timeout_s.min(TIMEOUT_MAX_S);
        }
        request.expires_at = now + duration(request.timeout_s);
        Some(Due::Again)
    }

    /// The request under way was answered.
    pub fn on_answer(&mut self, now: Instant) {
        let Some(request) = self.request.take() else {
            return;
        };
        let rtt_s = seconds(now.since(request.first_sent));
        let weak_weight = match self.algorithm {
            Algorithm::Fixed => return,
            Algorithm::Cocoa => 0.25,
            Algorithm::CocoaContiki => 0.75,
        };
        let (weight, estimate_s) = match request.retransmissions {
            0 => (0.5, self.strong.update(rtt_s, STRONG_K)),
            1..=WEAK_RETRANSMISSIONS_MAX => (weak_weight, self.weak.update(rtt_s, WEAK_K)),
            _ => return self.forget_strong(),
        };
        self.rto_s += weight * (estimate_s - self.rto_s);
        self.rto_s = self.rto_s.min(TIMEOUT_MAX_S);
        self.updated_at = now;
    }

    /// The path has changed: what was measured in Contiki's code begins anew.
    fn forget_strong(&mut self) {
        if self.algorithm == Algorithm::CocoaContiki {
            self.strong = Estimate::default();
        }
    }

    /// An estimate that nothing has confirmed for long moves towards the first one.
    fn age(&mut self, now: Instant) {
        let idle_s = seconds(now.since(self.updated_at));
        if self.rto_s < SHORT_S && idle_s > 16.0 * self.rto_s {
            self.rto_s *= 2.0;
            self.updated_at = now;
        } else if self.rto_s > LONG_S && idle_s > 4.0 * self.rto_s {
            self.rto_s = (RTO_FIRST_S + self.rto_s) / 2.0;
            self.updated_at = now;
        }
    }

    /// CoCoA's estimate of the timeout, s.
    pub fn rto_s(&self) -> f64 {
        self.rto_s
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

fn duration(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}

/// Before anything was measured (draft-ietf-core-cocoa-03 §4.1, as ACK_TIMEOUT).
const RTO_FIRST_S: f64 = 2.0;

/// No timeout is longer (draft-ietf-core-cocoa-03 §4.2).
const TIMEOUT_MAX_S: f64 = 32.0;

/// Timeouts below grow by more, timeouts above [`LONG_S`] by less (§4.2.1).
const SHORT_S: f64 = 1.0;
const LONG_S: f64 = 3.0;

/// By how many RTTVAR estimates lie above SRTT (§4.2).
const STRONG_K: f64 = 4.0;
const WEAK_K: f64 = 1.0;

/// The most retransmissions of a request whose answer still counts for the weak estimate (§4.2).
const WEAK_RETRANSMISSIONS_MAX: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ORIGIN + duration(seconds)
    }

    /// Timeouts from each transmission to the next, and to the end; s.
    fn spans(timing: &mut Timing, seed: u64) -> Vec<f64> {
        let mut now = at(100.0);
        timing.begin(now, &mut Rng::from_seed([seed, 1]));
        let mut spans = Vec::new();
        loop {
            let next = timing.next_deadline().expect("under way");
            assert_eq!(
                timing.on_due(next.checked_sub(Duration::from_micros(1))),
                None
            );
            spans.push(seconds(next.since(now)));
            now = next;
            if timing.on_due(now) == Some(Due::GivenUp) {
                assert_eq!(timing.next_deadline(), None);
                return spans;
            }
        }
    }

    trait Before {
        fn checked_sub(self, span: Duration) -> Self;
    }

    impl Before for Instant {
        fn checked_sub(self, span: Duration) -> Self {
            Self::from_micros(self.as_micros() - span.as_micros())
        }
    }

    /// RFC 7252 §4.8.2: MAX_TRANSMIT_SPAN is 45 s and MAX_TRANSMIT_WAIT 93 s.
    #[test]
    fn timers_are_those_of_rfc_7252() {
        let mut firsts = Vec::new();
        for seed in 0..200 {
            let mut timing = Timing::new(Algorithm::Fixed, Parameters::RFC7252);
            let spans = spans(&mut timing, seed);
            assert_eq!(spans.len(), 5, "four retransmissions");
            for pair in spans.windows(2) {
                assert!((pair[1] / pair[0] - 2.0).abs() < 1e-5, "{spans:?}");
            }
            let all: f64 = spans.iter().sum();
            assert!(
                all - spans[4] <= 45.0 && (62.0 - 1e-3..=93.0).contains(&all),
                "{spans:?}"
            );
            firsts.push(spans[0]);
        }
        let least = firsts.iter().copied().fold(f64::MAX, f64::min);
        let most = firsts.iter().copied().fold(0.0, f64::max);
        assert!(
            (2.0..2.05).contains(&least) && (2.95..=3.0).contains(&most),
            "{least} {most}"
        );
    }

    #[test]
    fn the_next_request_begins_where_the_first_did() {
        let mut timing = Timing::new(Algorithm::Fixed, Parameters::CONTIKI);
        for seed in 0..5 {
            assert!(
                (3.0..=4.5).contains(&spans(&mut timing, seed)[0]),
                "given up, 3 s again"
            );
        }
    }

    /// A request whose answer comes `rtt_s` after its first transmission, sent `sent` times.
    fn exchange(timing: &mut Timing, rtt_s: f64, sent: u8) {
        let began = at(1_000.0);
        timing.updated_at = began;
        timing.begin(began, &mut Rng::from_seed([1, 1]));
        for _ in 1..sent {
            let due = timing.next_deadline().expect("under way");
            assert_eq!(timing.on_due(due), Some(Due::Again));
        }
        timing.on_answer(began + duration(rtt_s));
    }

    /// The draft's arithmetic, by hand: a first strong sample of 1 s gives an estimate of 1 + 4 ·
    /// 0.5, a weak one 1 + 0.5.
    #[test]
    fn estimates_weigh_as_the_draft_and_the_code_have_it() {
        for (algorithm, sent, expected) in [
            (Algorithm::Cocoa, 1, 0.5 * 3.0 + 0.5 * 2.0),
            (Algorithm::Cocoa, 2, 0.25 * 1.5 + 0.75 * 2.0),
            (Algorithm::Cocoa, 3, 0.25 * 1.5 + 0.75 * 2.0),
            (Algorithm::Cocoa, 4, 2.0),
            (Algorithm::CocoaContiki, 1, 0.5 * 3.0 + 0.5 * 2.0),
            (Algorithm::CocoaContiki, 2, 0.75 * 1.5 + 0.25 * 2.0),
            (Algorithm::CocoaContiki, 4, 2.0),
        ] {
            let mut timing = Timing::new(algorithm, Parameters::RFC7252);
            exchange(&mut timing, 1.0, sent);
            assert!(
                (timing.rto_s() - expected).abs() < 1e-9,
                "{algorithm:?} {sent}: {}",
                timing.rto_s()
            );
        }
    }

    #[test]
    fn three_retransmissions_make_contikis_code_forget() {
        for (algorithm, is_kept) in [(Algorithm::Cocoa, true), (Algorithm::CocoaContiki, false)] {
            let mut timing = Timing::new(algorithm, Parameters::RFC7252);
            exchange(&mut timing, 0.5, 1);
            exchange(&mut timing, 20.0, 4);
            assert_eq!(timing.strong.0.is_some(), is_kept, "{algorithm:?}");
        }
    }

    #[test]
    fn backoff_depends_on_the_first_timeout() {
        let factor = |algorithm, rto_s: f64| {
            let mut timing = Timing::new(algorithm, Parameters::RFC7252);
            timing.rto_s = rto_s;
            timing.updated_at = at(100.0);
            let spans = spans(&mut timing, 3);
            assert!(spans.iter().all(|span| *span <= TIMEOUT_MAX_S + 1e-3));
            (spans[1] / spans[0] * 100.0).round() / 100.0
        };
        assert_eq!(
            [0.3, 1.5, 4.0].map(|rto| factor(Algorithm::Cocoa, rto)),
            [3.0, 2.0, 1.5]
        );
        let contiki = [0.3, 1.5, 4.0].map(|rto| factor(Algorithm::CocoaContiki, rto));
        assert_eq!(contiki, [2.5, 2.0, 1.5]);
    }

    #[test]
    fn what_nothing_confirms_grows_old() {
        for (before, idle_s, after) in [
            (0.5, 8.1, 1.0),
            (0.5, 7.9, 0.5),
            (8.0, 33.0, 5.0),
            (2.0, 900.0, 2.0),
        ] {
            let mut timing = Timing::new(Algorithm::Cocoa, Parameters::RFC7252);
            timing.rto_s = before;
            timing.updated_at = at(10.0);
            timing.begin(at(10.0 + idle_s), &mut Rng::from_seed([1, 1]));
            assert_eq!(timing.rto_s(), after, "{before} after {idle_s} s");
        }
    }
}
