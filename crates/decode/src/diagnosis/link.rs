//! A link one way: attempts, acknowledgments, losses and their causes, strength over time.
//!
//! Place: below `stations`, which knows to which frame an acknowledgment belongs. A lost frame
//! counts as collided where others' frames were on the air at the same time as nearly all attempts
//! at it; the others the link lost by itself.

use std::collections::VecDeque;

use super::tally::Events;

/// What went over a link one way.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Frames, each counted once.
    pub(super) frames: u64,
    /// Frames that want an acknowledgment.
    pub(super) asked: u64,
    pub(super) attempts: u64,
    pub(super) retries: u64,
    /// Attempts that were acknowledged.
    pub(super) acknowledged: u64,
    /// Failed attempts that met others' frames.
    pub(super) collided: u64,
    /// Frames none of whose attempts was acknowledged, though the air was free.
    pub(super) lost: Events,
    /// Such frames that met others'.
    pub(super) lost_in_collisions: Events,
    rssi: (f64, u64),
    pub(super) first_s: f64,
    pub(super) last_s: f64,
    /// The last frame of which an attempt was acknowledged.
    last_acked: u64,
    open: Option<Open>,
    /// Time between attempts of one frame: the sum, and how many.
    pub(super) retry_s: (f64, u64),
    /// Frames lost in a row: how many, from when to when, and the first of them; the present row
    /// and the longest.
    row: Row,
    pub(super) longest: Row,
    pub(super) spans: Spans,
    /// The latest losses: when each was, s, and how many of all up to it are the link's own.
    lost_s: VecDeque<(f64, u64)>,
    /// How many were the link's own of those that are forgotten.
    forgotten: u64,
    /// The end of the last one acknowledged, s.
    pub(super) last_acked_s: f64,
}

/// A frame of which further attempts may come.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The number of its first attempt.
    first: u64,
    /// The time of its latest one.
    at_s: f64,
    /// Attempts at it that were heard.
    attempts: u64,
    /// Those that met others' frames, and were not acknowledged.
    collided: u64,
}

/// What a link did over time, in pieces that are equally long: of ten seconds at first, and of
/// twice as many each time that there is no room for another.
#[derive(Debug)]
pub(super) struct Spans {
    list: Vec<Span>,
    each_s: f64,
}

impl Default for Spans {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            each_s: SPAN_S,
        }
    }
}

impl Spans {
    /// The pieces, and when each begins and ends, s.
    pub(super) fn pieces(&self) -> impl Iterator<Item = ([f64; 2], &Span)> {
        let times = (0_u32..).map(|at| [at, at + 1].map(|edge| f64::from(edge) * self.each_s));
        times.zip(&self.list)
    }

    fn at(&mut self, at_s: f64) -> Option<&mut Span> {
        let number = |each_s: f64| (at_s.max(0.0) / each_s) as usize;
        while number(self.each_s) >= SPANS_MAX {
            let pairs = self.list.chunks(2);
            self.list = pairs.map(Span::sum).collect();
            self.each_s *= 2.0;
        }
        let span = number(self.each_s);
        if self.list.len() <= span {
            self.list.resize_with(span + 1, Span::default);
        }
        self.list.get_mut(span)
    }
}

/// What a link did in one of these.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    /// Frames that want an acknowledgment.
    pub(super) asked: u64,
    pub(super) retries: u64,
    /// Failed attempts that met others' frames.
    pub(super) collided: u64,
    /// Frames that the link lost.
    pub(super) lost: u64,
    /// The sum of strengths, dBm, and how many.
    rssi: (f64, u64),
}

/// Frames that were lost one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) count: u64,
    /// Attempts at them that were heard.
    pub(super) attempts: u64,
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    /// When a frame arrived again; 0: never.
    pub(super) until_s: f64,
    pub(super) frames: Vec<u64>,
}

/// How a frame was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loss {
    /// By the link.
    Link,
    /// Others were on the air at the same time.
    Collision,
}

impl Link {
    pub(super) fn rssi_dbm(&self) -> Option<f64> {
        mean(self.rssi)
    }

    /// How a frame was lost between these times, if one was; by the link, if several were.
    pub(super) fn loses_between(&self, from_s: f64, to_s: f64) -> Option<Loss> {
        let first = self.lost_s.partition_point(|(at_s, _)| *at_s < from_s);
        let end = self.lost_s.partition_point(|(at_s, _)| *at_s <= to_s);
        let (_, own) = self.lost_s.get(end.checked_sub(1)?)?;
        // What came before the first that is remembered was counted as well.
        let before = match first.checked_sub(1) {
            Some(before) => self.lost_s.get(before)?.1,
            None => self.forgotten,
        };
        (first < end).then_some(match *own > before {
            true => Loss::Link,
            false => Loss::Collision,
        })
    }

    /// Remembers a loss, and forgets the oldest where there is no room.
    fn lose(&mut self, at_s: f64, in_collisions: bool) {
        let (last_s, own) = self.lost_s.back().copied().unwrap_or((at_s, 0));
        if self.lost_s.len() >= LOSSES_MAX {
            self.forgotten = self.lost_s.pop_front().map_or(0, |(_, own)| own);
        }
        let own = own + u64::from(!in_collisions);
        self.lost_s.push_back((at_s.max(last_s), own));
    }

    /// Its last frames, where they were lost in a row.
    pub(super) const fn lost_at_end(&self) -> &Row {
        &self.row
    }

    /// Attempts that failed by themselves, for each frame.
    pub(super) fn own_retries(&self) -> f64 {
        self.retries.saturating_sub(self.collided) as f64 / self.asked.max(1) as f64
    }

    /// A frame, or (`first` names the first attempt) another attempt at one.
    pub(super) fn note(
        &mut self,
        (number, at_s): (u64, f64),
        first: Option<u64>,
        wants_ack: bool,
        rssi_dbm: Option<f64>,
    ) {
        if self.attempts == 0 {
            self.first_s = at_s;
        }
        self.attempts += 1;
        self.last_s = at_s;
        if let Some(dbm) = rssi_dbm {
            self.rssi = (self.rssi.0 + dbm, self.rssi.1 + 1);
            if let Some(span) = self.spans.at(at_s) {
                span.rssi = (span.rssi.0 + dbm, span.rssi.1 + 1);
            }
        }
        match first {
            Some(_) => self.retries += u64::from(wants_ack),
            None => {
                self.frames += 1;
                self.asked += u64::from(wants_ack);
                self.settle();
            }
        }
        if !wants_ack {
            return;
        }
        if let Some(span) = self.spans.at(at_s) {
            span.asked += u64::from(first.is_none());
            span.retries += u64::from(first.is_some());
        }
        let before = self.open.filter(|_| first.is_some());
        if let Some(before) = before
            && at_s - before.at_s < 1.0
        {
            self.retry_s = (self.retry_s.0 + at_s - before.at_s, self.retry_s.1 + 1);
        }
        self.open = Some(Open {
            first: first.unwrap_or(number),
            at_s,
            attempts: before.map_or(0, |before| before.attempts) + 1,
            collided: before.map_or(0, |before| before.collided),
        });
    }

    /// An attempt at frame `first` met another's frame.
    pub(super) const fn collide(&mut self, first: u64) {
        if let Some(open) = &mut self.open
            && open.first == first
        {
            open.collided += 1;
        }
    }

    /// An attempt at frame `first` was acknowledged; whether it met another's frame.
    pub(super) const fn acknowledge(&mut self, first: u64, at_s: f64, collided: bool) {
        self.acknowledged += 1;
        self.last_acked = first;
        self.last_acked_s = at_s;
        if let Some(open) = &mut self.open
            && open.first == first
            && collided
        {
            open.collided = open.collided.saturating_sub(1);
        }
    }

    /// A new frame begins, or the capture is over: what became of the frame before is known.
    pub(super) fn settle(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.collided += open.collided;
        if let Some(span) = self.spans.at(open.at_s) {
            span.collided += open.collided;
        }
        if self.last_acked == open.first {
            if self.row.count > 0 && self.row.from_s == self.longest.from_s {
                self.longest.until_s = open.at_s;
            }
            self.row = Row::default();
            return;
        }
        // A sender tries again: where it did not, the sniffer missed the acknowledgment.
        if open.attempts < 2 {
            return;
        }
        let in_collisions = open.has_collided();
        self.lose(open.at_s, in_collisions);
        if in_collisions {
            // A collision says nothing of the link.
            self.lost_in_collisions.add(open.first, open.at_s);
            return;
        }
        self.lost.add(open.first, open.at_s);
        if let Some(span) = self.spans.at(open.at_s) {
            span.lost += 1;
        }
        if self.row.count == 0 {
            self.row.from_s = open.at_s;
        }
        self.row.count += 1;
        self.row.attempts += open.attempts;
        self.row.to_s = open.at_s;
        if self.row.frames.len() < 6 {
            self.row.frames.push(open.first);
        }
        if self.row.to_s - self.row.from_s > self.longest.to_s - self.longest.from_s {
            self.longest = self.row.clone();
        }
    }
}

impl Open {
    /// Whether collisions are why it was lost: of a few attempts one may meet a short frame unseen.
    const fn has_collided(&self) -> bool {
        self.collided * 4 >= self.attempts * 3
    }
}

impl Span {
    fn sum(spans: &[Self]) -> Self {
        let add = |all: Self, one: &Self| Self {
            asked: all.asked + one.asked,
            retries: all.retries + one.retries,
            collided: all.collided + one.collided,
            lost: all.lost + one.lost,
            rssi: (all.rssi.0 + one.rssi.0, all.rssi.1 + one.rssi.1),
        };
        spans.iter().fold(Self::default(), add)
    }

    /// Attempts that failed by themselves.
    pub(super) const fn failed(&self) -> u64 {
        self.retries.saturating_sub(self.collided) + self.lost
    }

    /// Attempts that failed by themselves, for each frame; none where the frames are too few.
    pub(super) fn own_retries(&self) -> Option<f64> {
        let own = self.retries.saturating_sub(self.collided) as f64;
        (self.asked >= 20).then(|| own / self.asked as f64)
    }

    /// The mean strength, dBm, of frames that are not too few.
    pub(super) fn rssi_dbm(&self) -> Option<f64> {
        mean(self.rssi).filter(|_| self.rssi.1 >= 5)
    }
}

fn mean((sum, count): (f64, u64)) -> Option<f64> {
    (count > 0).then(|| sum / count as f64)
}

/// Seconds over which a link is compared with itself, within the first hour.
const SPAN_S: f64 = 10.0;
/// An hour of them.
const SPANS_MAX: usize = 360;
/// The latest losses of a link, of which the times are remembered.
const LOSSES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    /// A link that loses a frame each second after three attempts, up to `to_s`, s.
    fn losing(to_s: u32) -> Link {
        let mut link = Link::default();
        for at_s in 0..to_s {
            let (first, at_s) = (u64::from(at_s) * 3 + 1, f64::from(at_s));
            link.note((first, at_s), None, true, Some(-60.0));
            link.note((first + 1, at_s + 0.01), Some(first), true, Some(-60.0));
            link.note((first + 2, at_s + 0.02), Some(first), true, Some(-60.0));
        }
        link.settle();
        link
    }

    #[test]
    fn the_latest_losses_are_remembered() {
        let link = losing(5_000);
        assert_eq!(link.lost_s.len(), LOSSES_MAX);
        assert_eq!(link.loses_between(4_990.0, 4_999.5), Some(Loss::Link));
        assert_eq!(link.loses_between(4_990.1, 4_990.9), None);
        assert_eq!(link.loses_between(10.0, 20.0), None);
    }

    #[test]
    fn a_loss_by_the_link_counts_more_than_one_in_a_collision() {
        let mut link = Link::default();
        for number in 0..3_000_u32 {
            link.lose(f64::from(number), number != 2_500);
        }
        assert_eq!(link.loses_between(2_400.0, 2_499.0), Some(Loss::Collision));
        assert_eq!(link.loses_between(2_400.0, 2_500.0), Some(Loss::Link));
        assert_eq!(link.loses_between(2_501.0, 3_000.0), Some(Loss::Collision));
        // From before the first that is remembered.
        assert_eq!(link.loses_between(0.0, 2_499.0), Some(Loss::Collision));
    }

    #[test]
    fn pieces_grow_with_the_capture() {
        let mut link = losing(15_000);
        let pieces: Vec<([f64; 2], u64)> = link
            .spans
            .pieces()
            .map(|(times, span)| (times, span.lost))
            .collect();
        assert_eq!(pieces.first(), Some(&([0.0, 80.0], 80)));
        assert_eq!(pieces.iter().map(|(_, lost)| lost).sum::<u64>(), 15_000);
        // Any time has its piece.
        let late_s = 9e9;
        link.note((1, late_s), None, true, None);
        assert!(link.spans.list.len() <= SPANS_MAX);
        let (times, last) = link.spans.pieces().last().unwrap();
        assert!(times[0] <= late_s && late_s < times[1] && last.asked == 1);
    }
}
