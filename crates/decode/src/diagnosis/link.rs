//! A link one way: attempts, acknowledgments, losses and their causes, strength over time.
//!
//! Place: below `stations`, which knows whose frame an acknowledgment is for. A lost frame counts
//! as collided where others' frames were on the air at the same time as nearly all attempts at it;
//! the others the link lost by itself.

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
    /// Each ten seconds.
    pub(super) spans: Vec<Span>,
    /// When frames were lost, and whether in a collision.
    lost_s: Vec<(f64, bool)>,
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

/// What a link did in ten seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    /// Frames that want an acknowledgment.
    pub(super) asked: u64,
    pub(super) retries: u64,
    /// Failed attempts that met others' frames.
    pub(super) collided: u64,
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
        let between = self
            .lost_s
            .iter()
            .filter(|(at_s, _)| (from_s..=to_s).contains(at_s));
        between
            .map(|(_, collided)| match collided {
                true => Loss::Collision,
                false => Loss::Link,
            })
            .min_by_key(|loss| *loss == Loss::Collision)
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
            if let Some(span) = self.span(at_s) {
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
        if let Some(span) = self.span(at_s) {
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

    fn span(&mut self, at_s: f64) -> Option<&mut Span> {
        let span = (at_s.max(0.0) / SPAN_S) as usize;
        if span >= SPANS_MAX {
            return None;
        }
        if self.spans.len() <= span {
            self.spans.resize_with(span + 1, Span::default);
        }
        self.spans.get_mut(span)
    }

    /// A new frame begins, or the capture is over: what became of the frame before is known.
    pub(super) fn settle(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.collided += open.collided;
        if let Some(span) = self.span(open.at_s) {
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
        if self.lost_s.len() < LOSSES_MAX {
            self.lost_s.push((open.at_s, in_collisions));
        }
        if in_collisions {
            // A collision says nothing of the link.
            self.lost_in_collisions.add(open.first, open.at_s);
            return;
        }
        self.lost.add(open.first, open.at_s);
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

/// Seconds over which a link is compared with itself.
pub(super) const SPAN_S: f64 = 10.0;
/// An hour of them.
const SPANS_MAX: usize = 360;
/// Losses of a link whose time is remembered.
const LOSSES_MAX: usize = 1_024;
