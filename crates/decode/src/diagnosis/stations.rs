//! Nodes and links: frames, retries, losses, strength, silence, and numbers that do not follow.
//!
//! A frame that wants an acknowledgment and gets none within the capture is an attempt that
//! failed; one whose last attempt failed is lost, as far as the sniffer heard it.

use std::collections::{HashMap, VecDeque};

use super::link::{Link, Loss};
use super::overlap::{Air, Sent};
use super::sleep::Polls;
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
    /// What became of frames, by the number of their first attempt.
    fates: HashMap<u64, Fate>,
    air: Air,
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
    /// Whether it met another's frame.
    collides: bool,
}

/// What became of the attempts at a frame.
#[derive(Debug, Default)]
struct Fate {
    acked: bool,
    attempts: u64,
    collided: u64,
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
    /// The last frame's sequence number, whom it was for, and whether it was a poll.
    last_sequence: Option<(u8, Option<String>, bool)>,
    /// Its latest frames that were no polls.
    latest: VecDeque<Numbered>,
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
    /// A solicitation behind a pause, with a sequence number that does not follow.
    pub(super) restart: Option<Restart>,
    /// Data requests, as of a node that sleeps.
    pub(super) polls: Polls,
    pub(super) sent_to: Table<String, Events>,
}

/// A frame that was no poll, as far as another attempt at it is known by.
#[derive(Debug)]
struct Numbered {
    sequence: u8,
    dst: Option<String>,
    at_s: f64,
    /// Its number had come before.
    is_again: bool,
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

/// A node that seems to have begun anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Restart {
    /// The latest time: when the node was last heard before, and its first frame after.
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) frame: u64,
    pub(super) count: u64,
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

impl Node {
    /// Something was heard from it: a frame, or an acknowledgment.
    fn hear(&mut self, number: u64, at_s: f64) -> f64 {
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
        pause
    }

    /// How far a frame's number is ahead of the last one's, modulo 256.
    fn step(&self, sequence: u8) -> Option<u8> {
        let (last, ..) = self.last_sequence.as_ref()?;
        Some(sequence.wrapping_sub(*last))
    }

    /// Whether a step is one back, as by another sender. Two kinds of step back are a node's own:
    /// it goes on with one neighbour before it is done with another, or polls before a frame that
    /// waits.
    fn is_back(&self, step: u8, now: &Numbered, polls: bool) -> bool {
        let Some((_, before, has_polled)) = self.last_sequence.as_ref() else {
            return false;
        };
        let is_small = step == 0 || step >= STEP_BACK;
        let is_to_another = is_small && *before != now.dst;
        let has_waited = *has_polled && !polls && self.may_have_waited(step, now);
        (step == 0 || step > 128) && !is_to_another && !has_waited
    }

    /// Whether a frame behind a poll may be one that waited meanwhile: it was heard once, to the
    /// same neighbour and shortly before; or it was not heard, and its number is the one before
    /// the poll's.
    fn may_have_waited(&self, step: u8, now: &Numbered) -> bool {
        let mut latest = self.latest.iter().rev();
        match latest.find(|it| it.sequence == now.sequence) {
            Some(it) => !it.is_again && it.dst == now.dst && now.at_s - it.at_s <= WAITED_S,
            None => step == 255,
        }
    }

    /// Counts what a frame's number says of those before it; returns how far it is ahead of the
    /// last one.
    fn count_step(
        &mut self,
        (number, at_s): (u64, f64),
        now: &Numbered,
        polls: bool,
    ) -> Option<u8> {
        let step = self.step(now.sequence);
        if step.is_some_and(|step| self.is_back(step, now, polls)) {
            self.steps_back.add(number, at_s);
        }
        self.heard += 1;
        if let Some(step @ 2..=MISSED_MAX) = step {
            self.missed += u64::from(step) - 1;
        }
        step
    }

    /// Notes a frame's number.
    fn note_sequence(&mut self, mut now: Numbered, polls: bool) {
        self.last_sequence = Some((now.sequence, now.dst.clone(), polls));
        if polls {
            return;
        }
        now.is_again = self.latest.iter().any(|it| it.sequence == now.sequence);
        if self.latest.len() >= LATEST_MAX {
            self.latest.pop_front();
        }
        self.latest.push_back(now);
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
            self.overlap(view, None, view.number("mac", "acknowledges"));
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
            self.note_link(view, (src.clone(), dst.to_owned()), first, wants_ack);
        }
        self.overlap(view, Some(&src), None);
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
        let pause_s = node.hear(number, at_s);
        node.frames += 1;
        node.retries += u64::from(is_retry);
        node.bytes += u64::from(view.0.original_len);
        node.air_us += (view.air_s().unwrap_or(0.0) * 1e6) as u64;
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
        let mut titles = ["icmpv6", "rpl"].into_iter();
        let solicits = titles.any(|layer| {
            view.layer(layer)
                .is_some_and(|layer| asks.contains(&layer.title.as_str()))
        });
        node.asked_after += u64::from(solicits);
        let polls = view
            .layer("command")
            .is_some_and(|command| command.title == "data request");
        if polls {
            node.polls.add(at_s);
        } else {
            node.polls.other_s = at_s;
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
            let now = Numbered {
                sequence,
                dst: view.text("mac", "dst").map(str::to_owned),
                at_s,
                is_again: false,
            };
            let step = node.count_step((number, at_s), &now, polls);
            let jumps = step.is_some_and(|step| step == 0 || step > STEP_MAX);
            if node.pause.frames[1] == number {
                node.pause.jumps = jumps;
            }
            if solicits && jumps && pause_s >= RESTART_S && node.frames > BEFORE_MIN {
                let restart = node.restart.get_or_insert_default();
                restart.from_s = at_s - pause_s;
                restart.to_s = at_s;
                restart.count += 1;
                restart.frame = number;
            }
            node.note_sequence(now, polls);
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
        row.note(
            (number, at_s),
            first,
            wants_ack,
            view.measure("tap", "rssi_dbm")
                .or_else(|| view.measure("ti", "rssi_dbm")),
        );
        if !wants_ack {
            return;
        }
        let first = first.unwrap_or(number);
        let waiting = Waiting {
            link,
            first,
            at_s,
            collides: false,
        };
        self.waiting.insert(number, waiting);
        self.fates.entry(first).or_default().attempts += 1;
        self.order.push_back(number);
        if self.order.len() > WAITING_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.waiting.remove(&oldest);
            self.fates.remove(&oldest);
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
            link.acknowledge(of.first, at_s, of.collides);
            self.fates.entry(of.first).or_default().acked = true;
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

    /// How all attempts at a frame were lost, by the number of its first one; none where one of
    /// them was acknowledged, or the frame wants no acknowledgment.
    pub(super) fn loss_of(&self, number: u64) -> Option<Loss> {
        let fate = self.fates.get(&number).filter(|fate| !fate.acked)?;
        Some(match fate.collided * 4 >= fate.attempts * 3 {
            true => Loss::Collision,
            false => Loss::Link,
        })
    }

    /// Notes which frames were on the air at the same time.
    fn overlap(&mut self, view: View<'_>, src: Option<&str>, of: Option<u64>) {
        let Some(air_s) = view.air_s() else {
            return;
        };
        // An acknowledgment names nobody: it goes back over the link of what it acknowledges.
        let link = of.and_then(|of| self.waiting.get(&of));
        let link = link.map(|waiting| waiting.link.clone());
        let (src, dst) = match (src, link) {
            (None, Some((from, to))) => (Some(to), Some(from)),
            (src, _) => {
                let dst = view.text("mac", "dst");
                (src.map(str::to_owned), dst.map(str::to_owned))
            }
        };
        let new = Sent {
            number: view.0.number,
            src,
            dst,
            channel: channel(view),
            at_s: view.at_s(),
            air_s,
        };
        for met in self.air.add(new.clone(), of) {
            self.collide(&new, &met);
            self.collide(&met, &new);
        }
    }

    /// Two frames were on the air at once: whether the receiver of one hears the other.
    fn collide(&mut self, one: &Sent, other: &Sent) {
        let Some(waiting) = self.waiting.get(&one.number) else {
            return;
        };
        let receiver = &waiting.link.1;
        let mut ends = [&other.src, &other.dst].into_iter().flatten();
        let hears = ends.any(|end| self.have_exchanged(end, receiver));
        // While it sends, it hears nobody.
        let sends = other.src.as_ref() == Some(receiver);
        if waiting.collides || !(hears || sends) {
            return;
        }
        let Some(waiting) = self.waiting.get_mut(&one.number) else {
            return;
        };
        waiting.collides = true;
        self.fates.entry(waiting.first).or_default().collided += 1;
        if let Some(link) = self.links.get_mut(&waiting.link) {
            link.collide(waiting.first);
        }
    }

    /// Whether one of these has acknowledged the other.
    fn have_exchanged(&self, one: &str, other: &str) -> bool {
        let has_acknowledged = |from: &str, to: &str| {
            let link = self.links.get(&(from.to_owned(), to.to_owned()));
            link.is_some_and(|link| link.acknowledged > 0)
        };
        has_acknowledged(one, other) || has_acknowledged(other, one)
    }

    /// Whether times are good enough to speak of collisions.
    pub(super) fn are_timed(&self) -> bool {
        self.air.is_timed()
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

/// The channel that a frame was heard on, where the capture says it.
fn channel(view: View<'_>) -> Option<u64> {
    let mut layers = ["tap", "zep", "nordic"].into_iter();
    layers.find_map(|layer| view.number(layer, "channel"))
}

/// A pause that is long enough for a start.
const RESTART_S: f64 = 0.3;
/// Frames of a node before a restart can be one.
const BEFORE_MIN: u64 = 10;
/// By how much the sequence numbers of two frames differ of which the sniffer missed some between.
const STEP_MAX: u8 = 16;
/// A step back that is shorter, modulo 256, may be one of the node's own, to another neighbour.
const STEP_BACK: u8 = 240;
/// Frames of a node within which one that waits for its next attempt comes again.
const LATEST_MAX: usize = 8;
/// And how long it waits for that at most.
const WAITED_S: f64 = 2.0;
/// More numbers than this a sniffer does not miss in a row: the node was elsewhere, or began anew.
const MISSED_MAX: u8 = 32;
/// A sender that is heard more seldom says nothing.
const HEARD_MIN: f64 = 0.05;
/// Attempts of one frame come within some milliseconds, at most hundreds.
const SEALED_AGAIN_MS: u64 = 1_000;
/// Frames that wait for their acknowledgment at once.
const WAITING_MAX: usize = 4_096;
