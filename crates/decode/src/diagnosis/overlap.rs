//! Which frames overlap on the air: a receiver that hears both loses one or both.
//!
//! Place: below `stations`, which knows the nodes that hear each other. Frames overlap on one
//! channel alone, and by a clock that is good enough: the distances of acknowledgments from their
//! frames show it. A sniffer of one radio cannot write down two frames that overlap; where it seems
//! so, its times are rounded, or those of the batches that came over its cable.

use std::collections::VecDeque;

/// The last frames on the air.
#[derive(Debug, Default)]
pub(super) struct Air {
    recent: VecDeque<Sent>,
    /// Acknowledgments of frames that are known.
    acks: u64,
    /// Those that came when they should, if a frame's time is that of its begin, and if it is that
    /// of its end.
    begins: u64,
    ends: u64,
}

/// A frame on the air.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) src: Option<String>,
    pub(super) dst: Option<String>,
    pub(super) channel: Option<u64>,
    pub(super) at_s: f64,
    pub(super) air_s: f64,
}

impl Air {
    /// Notes a frame, or an acknowledgment of frame `of`; returns the earlier frames of others that
    /// it overlaps, as far as the clock can tell.
    pub(super) fn add(&mut self, new: Sent, of: Option<u64>) -> Vec<Sent> {
        if let Some(of) = self.recent.iter().find(|sent| Some(sent.number) == of) {
            let fits = |after_s: f64| {
                let late_s = new.at_s - of.at_s - after_s - TURNAROUND_S;
                u64::from(late_s.abs() <= FIT_S)
            };
            self.acks += 1;
            self.begins += fits(of.air_s);
            self.ends += fits(new.air_s);
        }
        let [from_s, to_s] = self.span_s(&new);
        let is_near = |sent: &Sent| (sent.at_s - new.at_s).abs() < NEAR_S;
        self.recent.retain(is_near);
        let overlaps = |sent: &&Sent| {
            let [begin_s, end_s] = self.span_s(sent);
            let is_other = Some(sent.number) != of && (sent.src.is_none() || sent.src != new.src);
            let is_near = is_other && sent.channel == new.channel;
            is_near && begin_s + ROUNDED_S < to_s && end_s > from_s + ROUNDED_S
        };
        let found = match self.is_timed() {
            true => self.recent.iter().filter(overlaps).cloned().collect(),
            false => Vec::new(),
        };
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(new);
        found
    }

    /// Whether times are as good as overlaps need.
    pub(super) fn is_timed(&self) -> bool {
        let fit = self.begins.max(self.ends);
        self.acks >= ACKS_MIN && fit * 10 >= self.acks * 9
    }

    /// When a frame was on the air.
    fn span_s(&self, sent: &Sent) -> [f64; 2] {
        match self.begins >= self.ends {
            true => [sent.at_s, sent.at_s + sent.air_s],
            false => [sent.at_s - sent.air_s, sent.at_s],
        }
    }
}

/// Times are rounded to a microsecond.
const ROUNDED_S: f64 = 2e-6;
/// Twice the longest frame.
const NEAR_S: f64 = 0.01;
const RECENT_MAX: usize = 32;
/// From a frame's end to its acknowledgment (IEEE 802.15.4-2020, aTurnaroundTime).
const TURNAROUND_S: f64 = 192e-6;
/// How far an acknowledgment is from its time, by a clock that shows overlaps.
const FIT_S: f64 = 200e-6;
/// Acknowledgments that show what the clock is worth.
const ACKS_MIN: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of `air_s` that `src` sends at `at_s`.
    fn sent(number: u64, at_s: f64, air_s: f64, src: Option<&str>) -> Sent {
        Sent {
            number,
            src: src.map(str::to_owned),
            dst: None,
            channel: Some(11),
            at_s,
            air_s,
        }
    }

    /// Ten frames of 4 ms, each with its acknowledgment `after_s` behind it.
    fn heard(after_s: impl Fn(u64) -> f64) -> Air {
        let mut air = Air::default();
        for number in (1..20).step_by(2) {
            let at_s = number as f64;
            air.add(sent(number, at_s, 0.004, Some("a")), None);
            let ack = sent(number + 1, at_s + after_s(number), 0.000_352, None);
            air.add(ack, Some(number));
        }
        air
    }

    fn numbers(met: Vec<Sent>) -> Vec<u64> {
        met.into_iter().map(|sent| sent.number).collect()
    }

    #[test]
    fn frames_overlap_by_the_time_that_each_is_on_the_air() {
        let mut air = heard(|_| 0.004_192);
        let mut add = |sent, of| numbers(air.add(sent, of));
        assert!(add(sent(31, 31.0, 0.004, Some("a")), None).is_empty());
        assert_eq!(add(sent(32, 31.003, 0.002, Some("b")), None), [31]);
        // The acknowledgment of a frame does not meet it, but meets a third one's.
        assert!(add(sent(33, 31.0053, 0.0004, None), Some(32)).is_empty());
        assert_eq!(add(sent(34, 31.0055, 0.003, Some("c")), None), [33]);
        // Nor does a frame on another channel.
        let mut other = sent(35, 31.0056, 0.003, Some("d"));
        other.channel = Some(12);
        assert!(add(other, None).is_empty());
    }

    #[test]
    fn a_sniffer_may_note_the_end_of_frames() {
        let mut air = heard(|_| 0.000_544);
        air.add(sent(30, 30.0, 0.004, Some("a")), None);
        assert!(air.add(sent(31, 30.003, 0.002, Some("b")), None).is_empty());
        let met = air.add(sent(32, 30.004, 0.002, Some("c")), None);
        assert_eq!(numbers(met), [31]);
    }

    #[test]
    fn a_bad_clock_shows_no_overlaps() {
        // Rounded, late by what a computer does meanwhile, at once in one batch.
        let rounded = |number: u64| {
            if number.is_multiple_of(3) {
                0.005
            } else {
                0.004
            }
        };
        let late = |number: u64| 0.004_192 + number as f64 * 1e-4;
        for mut air in [heard(rounded), heard(late), heard(|_| 0.0)] {
            assert!(!air.is_timed());
            air.add(sent(30, 30.0, 0.004, Some("a")), None);
            assert!(air.add(sent(31, 30.001, 0.002, Some("b")), None).is_empty());
        }
    }
}
