//! Nodes that sleep: when they poll, and which retransmissions their sleep explains.
//!
//! Place: below `stations`, which notes polls, and `flows`, which asks.

use std::collections::VecDeque;

/// The polls of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Polls {
    /// When each of the latest was sent, and when the last frame before it that was none, s.
    recent: VecDeque<(f64, f64)>,
    /// When the last other frame was sent, s.
    pub(super) other_s: f64,
    /// The times between them: their number, their sum, that of their squares, and the longest, s.
    intervals: (u64, f64, f64, f64),
}

impl Polls {
    /// It polls.
    pub(super) fn add(&mut self, at_s: f64) {
        if let Some((last_s, _)) = self.recent.back() {
            let (count, sum, squares, longest) = self.intervals;
            let one = (at_s - last_s).max(0.0);
            self.intervals = (count + 1, sum + one, squares + one * one, longest.max(one));
        }
        if self.recent.len() >= POLLS_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((at_s, self.other_s));
    }

    /// Whether it polls, and has not since `at_s`.
    pub(super) fn wait_since(&self, at_s: f64) -> bool {
        let last = self.recent.back();
        self.intervals.0 + 1 >= POLLS_MIN && last.is_some_and(|(last_s, _)| *last_s < at_s)
    }

    /// The next poll behind `at_s`, and the last other frame before it, s.
    fn next(&self, at_s: f64) -> Option<(f64, f64)> {
        let mut recent = self.recent.iter();
        recent.find(|(poll_s, _)| *poll_s > at_s).copied()
    }

    /// The usual interval, s: the mean one in which a moment falls. A node that looks often for an
    /// answer sleeps most of its time nevertheless. The longest one is left out, since behind its
    /// last poll a node may have been awake.
    fn usual_s(&self) -> f64 {
        let (_, sum, squares, longest) = self.intervals;
        (squares - longest * longest).max(0.0) / (sum - longest).max(f64::MIN_POSITIVE)
    }
}

/// A retransmission of a node that sleeps, if it polls again.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) frame: u64,
    pub(super) at_s: f64,
    /// The cause otherwise.
    pub(super) cause: &'static str,
    /// How long after it the next poll came, s, and whether nothing else came before.
    poll: Option<(f64, bool)>,
}

/// Retransmissions that their sender's sleep may explain, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Waits(VecDeque<Wait>);

impl Waits {
    /// One more, in this frame at this time; its cause otherwise.
    pub(super) fn push(&mut self, (frame, at_s): (u64, f64), cause: &'static str) {
        self.0.push_back(Wait {
            frame,
            at_s,
            cause,
            poll: None,
        });
    }

    /// Looks whether the sender has polled since it sent again.
    pub(super) fn look(&mut self, polls: &Polls) {
        // It may send again several times before it polls.
        let mut last_s = f64::MIN;
        let waits = self.0.iter_mut().rev();
        for wait in waits.take_while(|wait| wait.poll.is_none()) {
            let Some((next_s, other_s)) = polls.next(wait.at_s) else {
                continue;
            };
            last_s = match last_s < next_s {
                true => last_s.max(wait.at_s),
                false => wait.at_s,
            };
            wait.poll = Some((next_s - wait.at_s, other_s <= last_s));
        }
    }

    /// Judges all, at the capture's end, or the oldest where there is no room for another; returns
    /// those that sleep does not explain.
    pub(super) fn judge(&mut self, polls: &Polls, all: bool) -> Vec<Wait> {
        self.look(polls);
        let kept = if all { 0 } else { WAITS_MAX - 1 };
        let judged = self.0.drain(..self.0.len().saturating_sub(kept));
        let usual_s = polls.usual_s();
        let waits = |(wait_s, is_quiet)| is_quiet && wait_s <= INTERVALS_MAX * usual_s;
        judged
            .filter(|wait| !wait.poll.is_some_and(waits))
            .collect()
    }
}

/// The latest polls, which are remembered.
const POLLS_MAX: usize = 16;
/// With fewer polls a node does not sleep.
const POLLS_MIN: u64 = 3;
/// Retransmissions that are judged once their sender's usual polls are known.
const WAITS_MAX: usize = 64;
/// Within so many of its usual intervals a node that sleeps polls again.
const INTERVALS_MAX: f64 = 3.0;
