//! Nodes and links: frames, retries, losses, strength, silence, and numbers that do not follow.
//!
//! A frame that wants an acknowledgment and gets none within the capture is an attempt that
//! failed; one whose last attempt failed is lost, as far as the sniffer heard it.

use std::collections::{HashMap, VecDeque};

use super::tally::{Events, Table};
use super::view::View;

/// All that was heard of the link layer.
#[derive(Debug, Default)]
pub(super) struct Stations {
    pub(super) nodes: Table<String, Node>,
    pub(super) links: Table<(String, String), Link>,
    /// Frames whose acknowledgment may still come, by number: their link and their first attempt.
    waiting: HashMap<u64, Waiting>,
    order: VecDeque<u64>,
    /// First attempts, and whether one of their frame's attempts was acknowledged.
    acked: HashMap<u64, bool>,
    /// Acknowledgments that belong to no frame.
    pub(super) stray_acks: Events,
    pub(super) wrong_fcs: Events,
    pub(super) malformed: Events,
    pub(super) closed: Events,
    pub(super) pans: Table<u64, Events>,
    pub(super) frames: u64,
    pub(super) last_s: f64,
}

#[derive(Debug)]
struct Waiting {
    link: (String, String),
    /// The number of the first attempt.
    first: u64,
    at_s: f64,
}

/// What a node sent.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) retries: u64,
    /// Time on the air, µs, with preamble and length, at 250 kb/s.
    pub(super) air_us: u64,
    pub(super) first_s: f64,
    pub(super) last_s: f64,
    rssi: (f64, u64),
    pub(super) data_frames: u64,
    last_sequence: Option<u8>,
    /// Frames of which an attempt was heard, each counted once, and sequence numbers between them
    /// that were not.
    heard: u64,
    missed: u64,
    last_secured: Option<Secured>,
    /// Sequence numbers that go back.
    pub(super) steps_back: Events,
    frame_counter: Option<u64>,
    /// Secured frames with a counter that was there before.
    pub(super) replays: Events,
    /// The longest pause, and when it began.
    pub(super) pause: Pause,
    /// Solicitations after the longest pause, as after a start.
    pub(super) asked_after: u64,
    pub(super) sent_to: Table<String, Events>,
}

/// A frame with link security: each of its attempts is sealed anew, so that no bytes are repeated.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Secured {
    sequence: u64,
    dst: String,
    len: u32,
    counter: u64,
    /// The number of the first attempt.
    first: u64,
    /// Of the latest one, ms.
    at_ms: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pause {
    pub(super) began_s: f64,
    pub(super) long_s: f64,
    /// The frame before it and the one behind it.
    pub(super) frames: [u64; 2],
    /// Frames of the node before it.
    pub(super) before: u64,
    /// Whether the sequence number behind it does not follow: it lives in memory, and a start draws
    /// another.
    pub(super) jumps: bool,
    last_frame: u64,
}

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
    /// Frames none of whose attempts was.
    pub(super) lost: Events,
    rssi: (f64, u64),
    pub(super) first_s: f64,
    pub(super) last_s: f64,
    /// The last frame of which an attempt was acknowledged.
    last_acked: u64,
    open: Option<(u64, f64)>,
    /// Attempts at that frame that were heard.
    open_attempts: u64,
    /// Time between attempts of one frame: the sum, and how many.
    pub(super) retry_s: (f64, u64),
    /// Frames lost in a row: how many, from when to when, and the first of them; the present row
    /// and the longest.
    row: Row,
    pub(super) longest: Row,
    /// Frames that want an acknowledgment, and retries, in each ten seconds.
    pub(super) spans: Vec<(u64, u64)>,
    /// When frames were lost.
    lost_s: Vec<f64>,
    /// The end of the last one acknowledged, s.
    pub(super) last_acked_s: f64,
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

impl Node {
    /// Something was heard from it: a frame, or an acknowledgment.
    fn hear(&mut self, number: u64, at_s: f64) {
        let pause = at_s - self.last_s;
        if pause > self.pause.long_s {
            self.pause.long_s = pause;
            self.pause.began_s = self.last_s;
            self.pause.frames = [self.pause.last_frame, number];
            self.pause.before = self.frames;
            self.pause.jumps = false;
            self.asked_after = 0;
        }
        self.pause.last_frame = number;
        self.last_s = at_s;
    }

    pub(super) fn rssi_dbm(&self) -> Option<f64> {
        (self.rssi.1 > 0).then(|| self.rssi.0 / self.rssi.1 as f64)
    }

    /// The share of its frames of which no attempt was heard, and the share of its attempts that
    /// was.
    ///
    /// Sequence numbers show the first. With `a` attempts heard for each frame that was heard at
    /// all, an attempt is heard with the chance `1 - missed * a`: a frame succeeds at each attempt
    /// with the same chance, so that the number of its attempts is geometric, and so is that of
    /// those heard.
    pub(super) fn shares(&self) -> (f64, f64) {
        let missed = self.missed as f64 / (self.missed + self.heard).max(1) as f64;
        let attempts = self.frames as f64 / self.heard.max(1) as f64;
        (missed, (1.0 - missed * attempts).clamp(HEARD_MIN, 1.0))
    }
}

impl Link {
    pub(super) fn rssi_dbm(&self) -> Option<f64> {
        (self.rssi.1 > 0).then(|| self.rssi.0 / self.rssi.1 as f64)
    }

    /// Whether a frame was lost between these times.
    pub(super) fn loses_between(&self, from_s: f64, to_s: f64) -> bool {
        self.lost_s
            .iter()
            .any(|at_s| (from_s..=to_s).contains(at_s))
    }

    /// Its last frames, where they were lost in a row.
    pub(super) const fn lost_at_end(&self) -> &Row {
        &self.row
    }

    /// A new frame begins: what became of the one before is known.
    fn settle(&mut self) {
        let Some((first, at_s)) = self.open.take() else {
            return;
        };
        if self.last_acked == first {
            if self.row.count > 0 && self.row.from_s == self.longest.from_s {
                self.longest.until_s = at_s;
            }
            self.row = Row::default();
            return;
        }
        // A sender tries again: where it did not, the sniffer missed the acknowledgment.
        if self.open_attempts < 2 {
            return;
        }
        self.lost.add(first, at_s);
        if self.lost_s.len() < LOSSES_MAX {
            self.lost_s.push(at_s);
        }
        if self.row.count == 0 {
            self.row.from_s = at_s;
        }
        self.row.count += 1;
        self.row.attempts += self.open_attempts;
        self.row.to_s = at_s;
        if self.row.frames.len() < 6 {
            self.row.frames.push(first);
        }
        if self.row.to_s - self.row.from_s > self.longest.to_s - self.longest.from_s {
            self.longest = self.row.clone();
        }
    }
}

impl Stations {
    /// Notes a frame; returns whether it repeats one.
    pub(super) fn observe(&mut self, view: View<'_>) -> bool {
        let frame = view.0;
        let at_s = view.at_s();
        self.frames += 1;
        self.last_s = self.last_s.max(at_s);
        match frame.status.name() {
            "malformed" => {
                let is_fcs = view.flag("mac", "fcs_ok") == Some(false);
                let events = [&mut self.malformed, &mut self.wrong_fcs];
                let [malformed, wrong] = events;
                if is_fcs { wrong } else { malformed }.add(frame.number, at_s);
                if is_fcs {
                    return true;
                }
            }
            "undecoded"
                if frame
                    .status
                    .problem()
                    .is_some_and(|p| p.layer == "security") =>
            {
                self.closed.add(frame.number, at_s);
            }
            _ => {}
        }
        if view.text("mac", "type") == Some("ack") {
            self.acknowledge(view, at_s);
            return false;
        }
        let Some(src) = view.text("mac", "src").map(str::to_owned) else {
            return false;
        };
        if let Some(pan) = view.number("mac", "pan").filter(|pan| *pan != 0xffff)
            && let Some(events) = self.pans.at(pan)
        {
            events.add(frame.number, at_s);
        }
        let wants_ack = view.flag("mac", "ack_request") == Some(true);
        let repeated = view.number("mac", "repeat_of");
        let first = repeated.or_else(|| self.sealed_again(view, &src).filter(|_| wants_ack));
        let is_retry = first.is_some() && wants_ack;
        self.note_node(view, &src, is_retry, first.is_some());
        if let Some(dst) = view.text("mac", "dst") {
            self.note_link(view, (src, dst.to_owned()), first, wants_ack);
        }
        first.is_some()
    }

    /// The first attempt of a secured frame that this one repeats with a later frame counter.
    fn sealed_again(&mut self, view: View<'_>, src: &str) -> Option<u64> {
        let number = view.0.number;
        let now = Secured {
            counter: view.number("security", "frame_counter")?,
            sequence: view.number("mac", "seq")?,
            dst: view.text("mac", "dst")?.to_owned(),
            len: view.0.original_len,
            first: number,
            at_ms: (view.at_s().max(0.0) * 1e3) as u64,
        };
        let node = self.nodes.at(src.to_owned())?;
        let before = node.last_secured.replace(now.clone())?;
        let is_again = (before.sequence, &before.dst, before.len)
            == (now.sequence, &now.dst, now.len)
            && before.counter < now.counter
            && now.at_ms.saturating_sub(before.at_ms) < SEALED_AGAIN_MS;
        let latest = node.last_secured.as_mut().filter(|_| is_again)?;
        latest.first = before.first;
        Some(before.first)
    }

    fn note_node(&mut self, view: View<'_>, src: &str, is_retry: bool, is_copy: bool) {
        let (number, at_s) = (view.0.number, view.at_s());
        let Some(node) = self.nodes.at(src.to_owned()) else {
            return;
        };
        if node.frames == 0 {
            node.first_s = at_s;
            node.last_s = at_s;
        }
        node.hear(number, at_s);
        node.frames += 1;
        node.retries += u64::from(is_retry);
        let len = u64::from(view.0.original_len);
        node.bytes += len;
        node.air_us += (len + PHY_LEN) * US_PER_BYTE;
        node.data_frames += u64::from(view.text("mac", "type") == Some("data"));
        if let Some(dbm) = view
            .measure("tap", "rssi_dbm")
            .or_else(|| view.measure("ti", "rssi_dbm"))
        {
            node.rssi.0 += dbm;
            node.rssi.1 += 1;
        }
        if is_copy {
            return;
        }
        let asks = ["router solicitation", "DIS"];
        let titles = ["icmpv6", "rpl"].map(|layer| view.layer(layer).map(|layer| &layer.title));
        if titles
            .iter()
            .flatten()
            .any(|title| asks.contains(&title.as_str()))
        {
            node.asked_after += 1;
        }
        if let Some(counter) = view.number("security", "frame_counter") {
            if node.frame_counter.is_some_and(|last| counter <= last) {
                node.replays.add(number, at_s);
            }
            node.frame_counter = Some(counter.max(node.frame_counter.unwrap_or(0)));
        }
        let sequence = view.number("mac", "seq").map(|sequence| sequence as u8);
        let sequence = sequence.filter(|_| view.text("mac", "type") != Some("beacon"));
        if let Some(sequence) = sequence {
            let step = node.last_sequence.map(|last| sequence.wrapping_sub(last));
            if step.is_some_and(|step| step == 0 || step > 128) {
                node.steps_back.add(number, at_s);
            }
            node.heard += 1;
            if let Some(step @ 2..=MISSED_MAX) = step {
                node.missed += u64::from(step) - 1;
            }
            if node.pause.frames[1] == number {
                node.pause.jumps = step.is_some_and(|step| step == 0 || step > STEP_MAX);
            }
            node.last_sequence = Some(sequence);
        }
    }

    fn note_link(
        &mut self,
        view: View<'_>,
        link: (String, String),
        first: Option<u64>,
        wants_ack: bool,
    ) {
        let (number, at_s) = (view.0.number, view.at_s());
        if let Some(events) = self
            .nodes
            .get_mut(&link.0)
            .and_then(|node| node.sent_to.at(link.1.clone()))
        {
            events.add(number, at_s);
        }
        let Some(row) = self.links.at(link.clone()) else {
            return;
        };
        if row.attempts == 0 {
            row.first_s = at_s;
        }
        row.attempts += 1;
        row.last_s = at_s;
        if let Some(dbm) = view.measure("tap", "rssi_dbm") {
            row.rssi.0 += dbm;
            row.rssi.1 += 1;
        }
        match first {
            Some(_) => row.retries += u64::from(wants_ack),
            None => {
                row.frames += 1;
                row.asked += u64::from(wants_ack);
                row.settle();
            }
        }
        if !wants_ack {
            return;
        }
        let span = (at_s.max(0.0) / SPAN_S) as usize;
        if span < SPANS_MAX {
            if row.spans.len() <= span {
                row.spans.resize(span + 1, (0, 0));
            }
            if let Some((asked, retries)) = row.spans.get_mut(span) {
                *asked += u64::from(first.is_none());
                *retries += u64::from(first.is_some());
            }
        }
        if let (Some(_), Some((_, last_s))) = (first, row.open)
            && at_s - last_s < 1.0
        {
            row.retry_s = (row.retry_s.0 + at_s - last_s, row.retry_s.1 + 1);
        }
        row.open_attempts = match first {
            Some(_) => row.open_attempts + 1,
            None => 1,
        };
        let first = first.unwrap_or(number);
        row.open = Some((first, at_s));
        self.waiting.insert(number, Waiting { link, first, at_s });
        self.acked.entry(first).or_default();
        self.order.push_back(number);
        if self.order.len() > WAITING_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.waiting.remove(&oldest);
            self.acked.remove(&oldest);
        }
    }

    fn acknowledge(&mut self, view: View<'_>, at_s: f64) {
        let of = view.number("mac", "acknowledges");
        let Some(of) = of.and_then(|of| self.waiting.remove(&of)) else {
            self.stray_acks.add(view.0.number, at_s);
            return;
        };
        if at_s - of.at_s < 1.0
            && let Some(link) = self.links.get_mut(&of.link)
        {
            link.acknowledged += 1;
            self.acked.insert(of.first, true);
            link.last_acked = of.first;
            link.last_acked_s = at_s;
            // An acknowledgment has no sender: it is the destination's.
            if let Some(node) = self
                .nodes
                .get_mut(&of.link.1)
                .filter(|node| node.frames > 0)
            {
                node.hear(view.0.number, at_s);
            }
        }
    }

    /// Whether one attempt of a frame was acknowledged, by the number of its first one; frames
    /// that want no acknowledgment count as if.
    pub(super) fn was_acked(&self, number: u64) -> bool {
        self.acked.get(&number).copied().unwrap_or(true)
    }

    /// The capture is over.
    pub(super) fn finish(&mut self) {
        let keys: Vec<(String, String)> = self.links.iter().map(|(key, _)| key.clone()).collect();
        for key in keys {
            if let Some(link) = self.links.get_mut(&key) {
                link.settle();
            }
        }
    }
}

/// By how much the sequence numbers of two frames differ of which the sniffer missed some between.
const STEP_MAX: u8 = 16;
/// More numbers than this a sniffer does not miss in a row: the node was elsewhere, or began anew.
const MISSED_MAX: u8 = 32;
/// A sender that is heard more seldom says nothing.
const HEARD_MIN: f64 = 0.05;
/// Preamble, start-of-frame delimiter and length.
const PHY_LEN: u64 = 6;
const US_PER_BYTE: u64 = 32;
/// Attempts of one frame come within some milliseconds, at most hundreds.
const SEALED_AGAIN_MS: u64 = 1_000;
/// Seconds over which retries of a link are compared.
pub(super) const SPAN_S: f64 = 10.0;
/// An hour of them.
const SPANS_MAX: usize = 360;
/// Losses of a link whose time is remembered.
const LOSSES_MAX: usize = 1_024;
/// Frames that wait for their acknowledgment at once.
const WAITING_MAX: usize = 4_096;
