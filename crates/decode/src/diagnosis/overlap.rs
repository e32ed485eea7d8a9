//! Which frames overlap on the air: a receiver that hears both loses one or both.
//!
//! Place: below `stations`. A sniffer that writes down both of two overlapping frames shows why
//! nobody acknowledged them: their senders did not hear each other. Many sniffers hear only one;
//! then nothing is said of collisions.

use std::collections::VecDeque;

/// The last frames on the air.
#[derive(Debug, Default)]
pub(super) struct Air {
    recent: VecDeque<Sent>,
    /// How many more acknowledgments showed that a frame's time is that of its begin than that it
    /// is that of its end.
    begins: i64,
}

#[derive(Debug)]
struct Sent {
    number: u64,
    src: Option<String>,
    at_s: f64,
    air_s: f64,
}

impl Air {
    /// Notes a frame by `src`, or an acknowledgment of frame `of`; returns the earlier frames of
    /// others that it overlaps.
    pub(super) fn add(
        &mut self,
        (number, at_s): (u64, f64),
        air_s: f64,
        src: Option<&str>,
        of: Option<u64>,
    ) -> Vec<u64> {
        if let Some(of) = self.recent.iter().find(|sent| Some(sent.number) == of) {
            let follows = at_s - of.at_s >= of.air_s;
            self.begins = (self.begins + if follows { 1 } else { -1 }).clamp(-VOTES, VOTES);
        }
        let new = Sent {
            number,
            src: src.map(str::to_owned),
            at_s,
            air_s,
        };
        let [from_s, to_s] = self.span_s(&new);
        let is_near = |sent: &Sent| (sent.at_s - at_s).abs() < NEAR_S;
        self.recent.retain(is_near);
        let overlaps = |sent: &&Sent| {
            let [begin_s, end_s] = self.span_s(sent);
            let is_other = Some(sent.number) != of && (sent.src.is_none() || sent.src != new.src);
            is_other && begin_s + ROUNDED_S < to_s && end_s > from_s + ROUNDED_S
        };
        let found = self.recent.iter().filter(overlaps);
        let found = found.map(|sent| sent.number).collect();
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(new);
        found
    }

    /// When a frame was on the air.
    fn span_s(&self, sent: &Sent) -> [f64; 2] {
        match self.begins {
            0.. => [sent.at_s, sent.at_s + sent.air_s],
            _ => [sent.at_s - sent.air_s, sent.at_s],
        }
    }
}

/// Times are rounded to a microsecond.
const ROUNDED_S: f64 = 2e-6;
/// Twice the longest frame.
const NEAR_S: f64 = 0.01;
const RECENT_MAX: usize = 32;
const VOTES: i64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_overlap_by_the_time_that_each_is_on_the_air() {
        let mut air = Air::default();
        assert!(air.add((1, 1.0), 0.004, Some("a"), None).is_empty());
        assert_eq!(air.add((2, 1.003), 0.002, Some("b"), None), [1]);
        // The acknowledgment of a frame does not meet it, but meets a third one's.
        assert!(air.add((3, 1.0053), 0.0004, None, Some(2)).is_empty());
        assert_eq!(air.add((4, 1.0055), 0.003, Some("c"), None), [3]);
    }

    #[test]
    fn a_sniffer_may_note_the_end_of_frames() {
        let mut air = Air::default();
        for (number, at_s) in [(1, 0.0), (3, 1.0), (5, 2.0)] {
            air.add((number, at_s), 0.004, Some("a"), None);
            air.add((number + 1, at_s + 0.0006), 0.0004, None, Some(number));
        }
        air.add((20, 10.0), 0.004, Some("a"), None);
        assert!(air.add((21, 10.003), 0.002, Some("b"), None).is_empty());
        assert_eq!(air.add((22, 10.004), 0.002, Some("c"), None), [21]);
    }
}
