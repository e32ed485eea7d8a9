//! The proof that a neighbour is there: it answers a challenge that was never made before.
//!
//! ```text
//! 0x3c  flags  challenge 8 (flag 1)  answer 8 (flag 2)
//! ```
//!
//! A recording has a right MIC, and a node that has just started knows no counters: only an answer
//! to a number that it has just drawn is of this moment. Such frames are data frames, encrypted
//! whole; their first byte is none of 6LoWPAN's (RFC 4944 §5.1: 00xxxxxx is not a LoWPAN frame).
//! Left out: which neighbour is challenged, and when; [`super::Security`] decides.

use crate::random::Rng;
use crate::storage::least;
use crate::time::{Duration, Instant};
use crate::wire::cursor::{Full, Reader, Truncated, Writer};

/// A number that answers repeat.
pub(super) type Nonce = [u8; 8];

/// The content of a proof frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::mac) struct Proof {
    /// The challenge that the receiver has to repeat.
    pub(super) challenge: Option<Nonce>,
    /// The challenge of the receiver that this proof answers.
    pub(super) answer: Option<Nonce>,
}

impl Proof {
    /// Bytes of the longest one.
    pub(in crate::mac) const LEN_MAX: usize = 2 + 8 + 8;

    /// Reads a frame's payload; `None` for any other.
    pub(in crate::mac) fn parse(payload: &[u8]) -> Option<Self> {
        let read = || {
            let mut r = Reader::new(payload);
            let [DISPATCH, flags] = r.array()? else {
                return Ok(None);
            };
            let mut nonce = |flag: u8| match flags & flag {
                0 => Ok(None),
                _ => r.array().map(Some),
            };
            let proof = Self {
                challenge: nonce(CHALLENGE)?,
                answer: nonce(ANSWER)?,
            };
            Ok::<_, Truncated>(Some(proof).filter(|_| r.is_empty()))
        };
        read().ok().flatten()
    }

    /// Writes it; returns its length.
    pub(in crate::mac) fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out);
        let flag = |nonce: Option<Nonce>, flag: u8| nonce.map_or(0, |_| flag);
        w.u8(DISPATCH)?;
        w.u8(flag(self.challenge, CHALLENGE) | flag(self.answer, ANSWER))?;
        w.put(self.challenge.as_ref().map_or(&[][..], |nonce| nonce))?;
        w.put(self.answer.as_ref().map_or(&[][..], |nonce| nonce))?;
        Ok(w.written())
    }
}

/// The challenges that may still be answered.
#[derive(Debug, Default)]
pub(super) struct Challenges([Challenge; CHALLENGES_MAX]);

#[derive(Clone, Copy, Debug, Default)]
struct Challenge {
    addr: [u8; 8],
    nonce: Nonce,
    /// [`LIFETIME`] after it was made; long past where it was answered.
    ends: Instant,
}

impl Challenges {
    /// A challenge for `addr`; `None` where it got one a moment ago, or too many others have.
    ///
    /// `counter`: this node's next frame counter, which differs after each reboot. Even a generator
    /// that is seeded alike each time then makes no challenge whose answer was recorded.
    pub(super) fn make(
        &mut self,
        (addr, counter): ([u8; 8], u32),
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Nonce> {
        let rank = |made: &Challenge| made.ends.rank((made.addr != addr).into());
        let entry = least(self.0.iter().map(|made| Some(rank(made))));
        let entry = self.0.get_mut(entry?)?;
        let holds = match entry.addr == addr {
            true => PACE,
            false => HOLD,
        };
        if now + (LIFETIME - holds) < entry.ends {
            return None;
        }
        let nonce = (rng.next_u64() ^ u64::from(counter)).to_be_bytes();
        *entry = Challenge {
            addr,
            nonce,
            ends: now + LIFETIME,
        };
        Some(nonce)
    }

    /// The challenge that `addr` got last, if it still holds; for one that answers and asks at
    /// once.
    pub(super) fn current(&self, addr: [u8; 8], now: Instant) -> Option<Nonce> {
        let mut made = self.0.iter();
        let made = made.find(|made| made.addr == addr && now < made.ends)?;
        Some(made.nonce)
    }

    /// Whether `answer` answers the challenge that `addr` got; each challenge counts once.
    pub(super) fn take(&mut self, addr: [u8; 8], answer: Nonce, now: Instant) -> bool {
        let mut made = self.0.iter_mut();
        let answered =
            made.find(|made| made.addr == addr && made.nonce == answer && now < made.ends);
        answered.map(|made| made.ends = Instant::ORIGIN).is_some()
    }
}

/// The first byte of the payload.
const DISPATCH: u8 = 0x3c;
const CHALLENGE: u8 = 1;
const ANSWER: u8 = 2;

/// Challenges that may be open at one time.
const CHALLENGES_MAX: usize = 8;

/// Time between challenges for one neighbour: that of eight attempts at two frames.
const PACE: Duration = Duration::from_secs(1);

/// Until an open one may make place for another's. Twice as many find a place as are sent in a
/// second, so that recordings of nodes that are not there cannot hold them all.
const HOLD: Duration = Duration::from_millis(500);

/// How long a challenge may be answered: attempts at both frames, behind a queue of others.
const LIFETIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_micros(60_000_000);
    const SHORT: Duration = Duration::from_micros(1);

    fn of(n: u8) -> ([u8; 8], u32) {
        ([n; 8], 7)
    }

    /// A moment before `span` has passed.
    fn just_before(span: Duration) -> Instant {
        NOW + (span - SHORT)
    }

    #[test]
    fn a_challenge_holds_for_its_lifetime() {
        let mut rng = Rng::from_seed([1, 2]);
        for (at, holds) in [(just_before(LIFETIME), true), (NOW + LIFETIME, false)] {
            let mut challenges = Challenges::default();
            let nonce = challenges.make(of(1), NOW, &mut rng).expect("one");
            assert_eq!(challenges.current([1; 8], at), holds.then_some(nonce));
            assert_eq!(challenges.current([2; 8], at), None);
            assert!(!challenges.take([2; 8], nonce, at), "another's");
            assert!(!challenges.take([1; 8], [9; 8], at), "another answer");
            assert_eq!(challenges.take([1; 8], nonce, at), holds);
            assert!(!challenges.take([1; 8], nonce, at), "once");
        }
    }

    #[test]
    fn challenges_for_one_neighbour_are_paced() {
        let mut rng = Rng::from_seed([1, 2]);
        let mut challenges = Challenges::default();
        let first = challenges.make(of(1), NOW, &mut rng).expect("one");
        assert_eq!(challenges.make(of(1), just_before(PACE), &mut rng), None);
        let second = challenges.make(of(1), NOW + PACE, &mut rng).expect("later");
        assert_ne!(first, second);
        assert_eq!(challenges.current([1; 8], NOW + PACE), Some(second));
        assert!(!challenges.take([1; 8], first, NOW + PACE), "the last one");
    }

    /// Each holds its place for a while; then the oldest makes place.
    #[test]
    fn a_new_challenge_takes_the_place_of_the_oldest() {
        let mut rng = Rng::from_seed([1, 2]);
        let mut challenges = Challenges::default();
        let count = CHALLENGES_MAX as u8;
        for n in 0..count {
            let at = NOW + SHORT.saturating_mul(n.into());
            assert!(challenges.make(of(n), at, &mut rng).is_some(), "{n}");
        }
        assert_eq!(challenges.make(of(90), just_before(HOLD), &mut rng), None);
        assert!(challenges.make(of(90), NOW + HOLD, &mut rng).is_some());
        assert_eq!(challenges.make(of(91), NOW + HOLD, &mut rng), None);
        let is_open = |n: u8| challenges.current([n; 8], NOW + HOLD).is_some();
        assert!(!is_open(0) && is_open(90) && (1..count).all(is_open));
    }

    /// The same random numbers after a reboot make another challenge.
    #[test]
    fn the_counter_goes_into_the_challenge() {
        let made = |counter| {
            let mut rng = Rng::from_seed([1, 2]);
            Challenges::default().make(([1; 8], counter), NOW, &mut rng)
        };
        assert_ne!(made(0), made(8_192));
    }

    #[test]
    fn proofs_are_read_as_they_are_written() {
        for (challenge, answer) in [
            (None, None),
            (Some([1; 8]), None),
            (None, Some([2; 8])),
            (Some([1; 8]), Some([2; 8])),
        ] {
            let proof = Proof { challenge, answer };
            let mut out = [0; Proof::LEN_MAX];
            let len = proof.emit(&mut out).unwrap();
            assert_eq!(Proof::parse(&out[..len]), Some(proof));
            assert_eq!(Proof::parse(&out[..len - 1]), None, "{proof:?}");
            let longer = [&out[..len], &[0]].concat();
            assert_eq!(Proof::parse(&longer), None, "{proof:?}");
        }
        assert_eq!(Proof::parse(&[0x41, 0]), None);
    }
}
