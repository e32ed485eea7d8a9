//! One connection as the router sees it pass.
//!
//! Purpose: the progress of the stream in each direction, retransmissions, round-trip times on
//! either side of the router, and held packets. A stream's progress is the highest number seen.
//! Bytes below it that were never seen are holes, lost before the router; bytes that fill a hole
//! count as new. So neither SACK nor timestamps need be read. A segment whose numbers are too far
//! from the others is treated as forged, unless several such segments follow one another.

mod effect;
mod held;
mod number;
mod pauses;

use std::collections::VecDeque;

use motet::time::{Duration, Instant};
use motet::wire::tcp::Flags;

pub(crate) use effect::SegmentEffect;
pub(crate) use held::{HeldPacket, Passing};
pub(crate) use number::ahead;
use number::distance;

use crate::flows::Span;
use crate::meter::Meter;
use crate::router::PacketId;
use crate::rtt::{self, Rtt};
use crate::segment::{Direction, FlowKey, Reach, Segment};
use crate::tally::Tally;

/// A known flow.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) key: FlowKey,
    /// When the last packet of the flow arrived.
    pub(crate) last: Instant,
    /// When the last packet of the flow arrived or was released.
    moved: Instant,
    /// Bytes since the other end last sent data, by direction; `None` before it has sent any.
    since_asked: [Option<u32>; 2],
    /// Whether any byte has been seen.
    has_begun: bool,
    /// Whether an end has closed it or reset it, and nothing has come since that denies it.
    pub(crate) is_over: bool,
    /// How long its mote took to acknowledge the peer's SYN-ACK, where that is known.
    pub(crate) opened_in: Option<Duration>,
    /// Whether the mote's last new bytes came in less than half a segment: it had no more then.
    ends_short: bool,
    /// Whether the mote's last new bytes came in a full segment, and whether in one that was not,
    /// behind a full one: the end of a message.
    was_full: bool,
    was_tail: bool,
    /// Whether the flow's end was a reset by the mote.
    is_refused: bool,
    /// The mote's latest acknowledgment number.
    mote_ack: Option<u32>,
    streams: [Stream; 2],
    lanes: [HeldPackets; 2],
    /// Round trips from the release of a packet into the mesh to its answer.
    pub(crate) mesh: Rtt,
    /// When an acknowledgment went into the mesh that new data is to answer.
    invited: Option<Instant>,
    /// Answers in a row that came overdue.
    overdue: u8,
    /// Bytes that the last packet that left acknowledged for the first time.
    pub(crate) invites: u32,
    /// Round trips from a packet out of the mesh to its answer.
    pub(crate) wired: Rtt,
    /// The same, with the time for which the answer was held.
    pub(crate) beyond: Rtt,
    /// Round trips from data that came for the mesh to their acknowledgment, with the time for
    /// which they were held.
    host: Rtt,
    pub(crate) tally: Tally,
    pub(crate) meter: Meter,
}

/// The bytes that go one way.
#[derive(Debug, Default)]
struct Stream {
    /// Behind the highest byte seen.
    highest: Option<u32>,
    /// Bytes below that were not seen.
    holes: u32,
    /// Behind the highest byte that was acknowledged, where the acknowledgment has gone on.
    acknowledged: Option<u32>,
    /// Consecutive segments whose numbers are far from the highest.
    strays: u8,
    /// The sequence number after a byte whose acknowledgment is awaited, and since when.
    timed: Option<(u32, Instant)>,
    /// The timed byte, until its acknowledgment has left this router.
    timed_on: Option<(u32, Instant)>,
    /// The sequence number after the FIN, once that was seen: the sender has no new data then.
    fin: Option<u32>,
    /// Bytes of a full segment.
    mss: Option<u16>,
}

/// Packets of one direction that are held, the first to leave first.
#[derive(Debug, Default)]
struct HeldPackets(VecDeque<HeldPacket>);

impl Flow {
    pub(crate) fn new(key: FlowKey, now: Instant) -> Self {
        Self {
            key,
            last: now,
            moved: now,
            since_asked: [None; 2],
            has_begun: false,
            is_refused: false,
            mote_ack: None,
            is_over: false,
            opened_in: None,
            ends_short: false,
            was_full: false,
            was_tail: false,
            streams: Default::default(),
            lanes: Default::default(),
            mesh: Rtt::default(),
            invited: None,
            overdue: 0,
            invites: 0,
            wired: Rtt::default(),
            beyond: Rtt::default(),
            host: Rtt::default(),
            tally: Tally::default(),
            meter: Meter::new(now),
        }
    }

    /// The largest segments, by the direction in which they go.
    pub(crate) fn set_mss(&mut self, mss: [Option<u16>; 2]) {
        for (stream, mss) in self.streams.iter_mut().zip(mss) {
            stream.mss = mss;
        }
    }

    /// Begins the stream into the mesh with the data that passed before the flow was known.
    pub(crate) fn begin_down(&mut self, span: Span, now: Instant) {
        let bytes = u64::from(span.seen);
        let stream = &mut self.streams[Direction::Down as usize];
        (stream.highest, stream.acknowledged) = (Some(span.end), Some(span.begin));
        stream.holes = span.holes;
        self.mote_ack = Some(span.begin);
        self.tally.bytes[Direction::Down as usize] += bytes;
        if bytes > 0 {
            self.meter.add(bytes, now);
        }
    }

    /// Learns from a segment that has come, before it is known whether it is held.
    pub(crate) fn on_segment(&mut self, segment: &Segment, now: Instant) -> SegmentEffect {
        // Before its first byte a flow has not begun to rest.
        let rest = match self.has_begun {
            true => self.rest(now),
            false => Duration::ZERO,
        };
        let direction = segment.direction;
        self.note_end(segment);
        if let Some(mss) = segment.mss {
            // A mote may begin anew from the same port.
            self.streams[direction.back() as usize].mss = Some(mss);
            (self.opened_in, self.ends_short, self.invited) = (None, false, None);
            (self.was_full, self.was_tail) = (false, false);
        }
        self.moved = now;
        if !self.is_refused || direction == Direction::Up {
            self.last = now;
        }
        if direction == Direction::Up {
            self.mote_ack = segment.ack.or(self.mote_ack);
        }
        let was_tail = self.was_tail;
        let is_unasked = direction == Direction::Up && self.has_no_more();
        let stream = &mut self.streams[direction as usize];
        let mut news = stream.on_data(segment, now);
        stream.note_fin(segment);
        match self.is_full(segment) {
            true => news.full = 1 + u8::from(news.is_retransmission),
            false => news.is_short = news.new_bytes > 0 && self.mss().is_some(),
        }
        if direction == Direction::Up && news.new_bytes > 0 {
            self.ends_short = self.mss().is_some_and(|mss| segment.payload_len * 2 < mss);
            self.was_tail = news.is_short && self.was_full;
            self.was_full = news.full > 0;
        }
        news.streamed = self.streamed(segment, &news);
        if news.new_bytes > 0 && !news.is_retransmission {
            // A sender that has more answers an acknowledgment within a round trip.
            let asked = match direction {
                Direction::Down => Some(Duration::ZERO),
                Direction::Up if is_unasked => Some(self.answer_max()),
                Direction::Up => self.mesh.timeout(),
            };
            news.rested = asked.map_or(Duration::ZERO, |asked| match rest > asked {
                true => rest,
                false => Duration::ZERO,
            });
        }
        if let Some(ack) = segment.ack {
            let acknowledged = &mut self.streams[direction.back() as usize];
            let (bytes, took) = acknowledged.on_ack(ack, now);
            news.newly_acknowledged = bytes;
            match (took, direction) {
                (Some(took), Direction::Down) => self.wired.add(took),
                (Some(took), Direction::Up) => self.mesh.add(took),
                (None, _) => {}
            }
        }
        if direction == Direction::Up && (news.new_bytes > 0 || news.is_retransmission) {
            // A retransmission may have been sent before the ACK arrived (Karn).
            let invited = self.invited.take().filter(|_| !news.is_retransmission);
            news.took = invited.map(|invited| now.since(invited));
            news.ran_dry = was_tail && news.took.is_some_and(|took| self.is_pause(took));
            let is_answer = |took: &Duration| !is_unasked || *took <= self.answer_max();
            if let Some(took) = news.took.filter(is_answer) {
                self.note_answer(took);
            }
        }
        self.tally.packets += 1;
        self.tally.retransmissions += u64::from(news.is_retransmission);
        self.tally.bytes[direction as usize] += u64::from(news.new_bytes);
        if news.new_bytes > 0 {
            self.meter.add(u64::from(news.new_bytes), now);
        }
        news
    }

    /// Samples the mesh by data that came `took` after an acknowledgment. A mote whose window is
    /// shut answers nothing, and sends again by a timer, so overdue data tell nothing of the mesh.
    /// Only where they come overdue again and again has the mesh become slower. Such a sample is
    /// cut to the timeout, which thus grows step by step.
    fn note_answer(&mut self, took: Duration) {
        let timeout = self.mesh.timeout().unwrap_or(took);
        self.overdue = match took > timeout {
            true => self.overdue.saturating_add(1),
            false => 0,
        };
        if self.overdue == 0 || self.overdue > OVERDUE_MAX {
            self.mesh.add(took.min(timeout));
        }
    }

    /// Notes the end of the flow, by a FIN or an RST. Data after it show that it was forged, or
    /// ended one direction only, and the flow goes on. After an RST from the mote only data from
    /// the mote do so, or its SYN.
    fn note_end(&mut self, segment: &Segment) {
        let is_up = segment.direction == Direction::Up;
        if segment.flags.intersects(Flags::FIN | Flags::RST) {
            self.is_over = true;
            self.is_refused |= is_up && segment.flags.contains(Flags::RST);
        } else if is_up && segment.flags.contains(Flags::SYN)
            || segment.payload_len > 0 && (is_up || !self.is_refused)
        {
            (self.is_over, self.is_refused) = (false, false);
        }
    }

    /// See [`SegmentEffect::streamed`].
    fn streamed(&mut self, segment: &Segment, news: &SegmentEffect) -> u32 {
        let is_again = news.is_retransmission && news.new_bytes == 0;
        let bytes = match is_again {
            true => segment.payload_len.saturating_mul(2),
            false => news.new_bytes,
        };
        if segment.payload_len > 0 {
            self.since_asked[segment.direction.back() as usize] = Some(0);
            if !std::mem::replace(&mut self.has_begun, true) {
                return bytes.saturating_sub(ANSWER_BYTES_MAX);
            }
        }
        let Some(before) = &mut self.since_asked[segment.direction as usize] else {
            return bytes;
        };
        let left = ANSWER_BYTES_MAX.saturating_sub(*before);
        *before = before.saturating_add(news.new_bytes);
        bytes.saturating_sub(left)
    }

    /// Whether a segment is as long as the MSS of either end allows, but for an eighth: frames may
    /// have room for less. Timestamps are no part of the MSS (RFC 6691). A very short MSS would
    /// make every byte a full segment.
    fn is_full(&self, segment: &Segment) -> bool {
        let mss = self.mss();
        mss.is_some_and(|mss| segment.payload_len + TIMESTAMPS_LEN >= mss - mss / 8)
    }

    /// The MSS of either end, the smaller one, where the SYNs have shown it.
    fn mss(&self) -> Option<u32> {
        let mss = self.streams.iter().filter_map(|stream| stream.mss).min();
        mss.map(|mss| u32::from(mss.max(MSS_MIN)))
    }

    /// How long nothing has been under way: all that was sent is acknowledged.
    fn rest(&self, now: Instant) -> Duration {
        match self.streams.iter().all(Stream::is_acknowledged) {
            true => now.since(self.moved),
            false => Duration::ZERO,
        }
    }

    /// Segments of which a packet consists: several where hardware has merged them.
    pub(crate) fn segments(&self, segment: &Segment) -> u32 {
        let mss = self.streams[segment.direction as usize].mss;
        let mss = u32::from(mss.unwrap_or(MSS_MAX).clamp(1, MSS_MAX));
        segment.payload_len.div_ceil(mss).max(1)
    }

    /// The retransmission timeout of the mote's TCP, estimated as in RFC 6298: its round-trip time
    /// is the sum of those through the mesh and beyond the router, hold times included.
    pub(crate) fn sender_timeout(&self) -> Option<Duration> {
        let smoothed = self.mesh.smoothed()? + self.beyond.smoothed()?;
        let variation = self.mesh.variation()? + self.beyond.variation()?;
        Some(smoothed + variation.saturating_mul(4))
    }

    /// How long data into the mesh may be held before the host's timer runs out: at least
    /// [`rtt::VARIATION_MIN`] remains of its timeout behind a round trip through the mesh. None
    /// before the first round trip is known.
    pub(crate) fn host_patience(&self) -> Option<Duration> {
        let (timeout, mesh) = (self.host.timeout()?, self.mesh.smoothed()?);
        Some((timeout - mesh).max(rtt::VARIATION_MIN))
    }

    /// Whether the mote waits for an acknowledgment that has not left this router.
    pub(crate) fn awaits_ack(&self) -> bool {
        !self.streams[Direction::Up as usize].is_acknowledged()
    }

    /// Bytes of the mote that are missing here, while nothing more is held for it: it knows now
    /// that it has to send them again.
    pub(crate) fn is_to_repair(&self) -> Option<u32> {
        let holes = self.streams[Direction::Up as usize].holes;
        (holes > 0 && self.held(Direction::Down) == 0).then_some(holes)
    }

    /// Whether a segment only acknowledges all that its receiver will ever send, its FIN included:
    /// it invites nothing into the mesh, and without it the FIN is sent again and again.
    pub(crate) fn is_last_word(&self, segment: &Segment) -> bool {
        let stream = &self.streams[segment.direction.back() as usize];
        segment.end() == segment.seq && segment.ack.is_some_and(|ack| stream.is_whole(ack))
    }

    /// Whether the mote has reset it.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// The latest number that the mote has acknowledged, whatever others have sent.
    pub(crate) const fn mote_ack(&self) -> Option<u32> {
        self.mote_ack
    }

    /// How many packets are held that go this way.
    pub(crate) fn held(&self, direction: Direction) -> usize {
        self.lanes[direction as usize].0.len()
    }

    /// How many packets are held both ways.
    pub(crate) fn held_in_all(&self) -> usize {
        self.lanes.iter().map(|lane| lane.0.len()).sum()
    }

    /// Holds a segment that has come.
    pub(crate) fn hold(&mut self, id: PacketId, segment: &Segment, now: Instant) {
        let held = HeldPacket {
            id,
            since: now,
            segments: self.segments(segment),
            len: segment.packet_len as u64,
            passing: Passing::of(segment),
        };
        self.lanes[segment.direction as usize].0.push_back(held);
    }

    /// The packet that leaves next this way.
    pub(crate) fn first(&self, direction: Direction) -> Option<&HeldPacket> {
        self.lanes[direction as usize].0.front()
    }

    /// Releases the first packet that is held in this direction; returns whether it brings the
    /// other end anything new.
    pub(crate) fn release(
        &mut self,
        direction: Direction,
        now: Instant,
    ) -> Option<(HeldPacket, bool)> {
        let held = self.lanes[direction as usize].0.pop_front()?;
        let span = now.since(held.since);
        self.tally.held += 1;
        self.tally.held_for = self.tally.held_for + span;
        self.tally.held_longest = self.tally.held_longest.max(span);
        let is_news = self.on_pass(direction, held.passing, now);
        Some((held, is_news))
    }

    /// Handles a segment that leaves, at once or after it was held; returns whether it brings the
    /// other end anything new.
    pub(crate) fn on_pass(&mut self, direction: Direction, passing: Passing, now: Instant) -> bool {
        self.moved = now;
        let is_acknowledged = |end: u32| {
            let ack = self.mote_ack.filter(|_| direction == Direction::Down);
            ack.is_some_and(|ack| ahead(end, ack).is_none())
        };
        let mut is_news = passing.end.is_some_and(|end| !is_acknowledged(end));
        self.invites = 0;
        if let Some(ack) = passing.ack {
            let before = self.streams[direction.back() as usize].acknowledged;
            self.invites = before.and_then(|before| ahead(ack, before)).unwrap_or(0);
            let (is_further, took) =
                self.streams[direction.back() as usize].on_ack_passed(ack, now);
            is_news |= is_further && !self.streams[direction.back() as usize].is_whole(ack);
            if let Some(took) = took {
                match direction {
                    Direction::Down => self.beyond.add(took),
                    Direction::Up => self.host.add(took),
                }
            }
            let is_begun = self.streams[Direction::Up as usize].highest.is_some();
            if direction == Direction::Down && is_further && is_begun {
                self.invited.get_or_insert(now);
            }
        }
        if let (Some(end), Direction::Down) = (passing.end, direction) {
            self.streams[direction as usize].restart(end, now);
        }
        is_news
    }
}

impl Stream {
    fn on_data(&mut self, segment: &Segment, now: Instant) -> SegmentEffect {
        if segment.payload_len == 0 && !segment.flags.contains(Flags::FIN) {
            return SegmentEffect::default();
        }
        let end = segment.end();
        let Some(highest) = self.highest else {
            self.highest = Some(end);
            self.acknowledged.get_or_insert(segment.seq);
            self.timed = Some((end, now));
            self.timed_on = self.timed;
            return SegmentEffect {
                new_bytes: segment.payload_len,
                ..SegmentEffect::default()
            };
        };
        if distance(end, highest).unsigned_abs() > JUMP_MAX {
            self.strays += 1;
            if self.strays >= STRAYS_MAX {
                *self = Self {
                    highest: Some(end),
                    acknowledged: Some(segment.seq),
                    mss: self.mss,
                    ..Self::default()
                };
            }
            return SegmentEffect {
                is_stray: true,
                ..SegmentEffect::default()
            };
        }
        self.strays = 0;
        let Some(further) = ahead(end, highest) else {
            return self.on_old_data(segment);
        };
        self.highest = Some(end);
        let Reach {
            seen: new_bytes,
            holes,
        } = segment.new_bytes(further);
        self.holes = self.holes.saturating_add(holes).min(JUMP_MAX);
        if self.timed.is_none() {
            self.timed = Some((end, now));
            self.timed_on = self.timed;
        }
        SegmentEffect {
            new_bytes,
            is_retransmission: segment.payload_len > 0 && new_bytes == 0,
            ..SegmentEffect::default()
        }
    }

    /// Bytes below the highest: they fill a hole, or have passed before.
    fn on_old_data(&mut self, segment: &Segment) -> SegmentEffect {
        // It is unknown which transmission the ACK is for (Karn).
        (self.timed, self.timed_on) = (None, None);
        let new_bytes = segment.payload_len.min(self.holes);
        self.holes -= new_bytes;
        SegmentEffect {
            new_bytes,
            is_retransmission: segment.payload_len > 0,
            ..SegmentEffect::default()
        }
    }

    /// How many bytes an acknowledgment that has come acknowledges for the first time, and how
    /// long the timed one took.
    fn on_ack(&mut self, ack: u32, now: Instant) -> (u32, Option<Duration>) {
        let took = take_timed(&mut self.timed, ack, now);
        let highest = *self.highest.get_or_insert(ack);
        let acknowledged = *self.acknowledged.get_or_insert(ack);
        let is_seen = ahead(ack, highest).is_none();
        let further = ahead(ack, acknowledged).filter(|_| is_seen);
        (further.unwrap_or(0), took)
    }

    /// An acknowledgment goes on to the sender of this stream.
    ///
    /// Whether it acknowledges more than those before, and how long the timed byte took.
    fn on_ack_passed(&mut self, ack: u32, now: Instant) -> (bool, Option<Duration>) {
        let is_seen = self.highest.is_none_or(|own| ahead(ack, own).is_none());
        let is_news = self
            .acknowledged
            .is_none_or(|own| ahead(ack, own).is_some());
        if is_seen && is_news {
            self.acknowledged = Some(ack);
        }
        let took = take_timed(&mut self.timed_on, ack, now);
        (is_seen && is_news, took)
    }

    /// Remembers where a FIN ends the stream. Bytes behind it deny it.
    fn note_fin(&mut self, segment: &Segment) {
        let is_highest = self.highest == Some(segment.end());
        if is_highest && segment.flags.contains(Flags::FIN) {
            self.fin = self.highest;
        } else if self.fin != self.highest {
            self.fin = None;
        }
    }

    /// Whether all that was sent of it is acknowledged.
    fn is_acknowledged(&self) -> bool {
        self.highest == self.acknowledged
    }

    /// Whether `ack` acknowledges all of a stream that has ended.
    fn is_whole(&self, ack: u32) -> bool {
        self.fin == Some(ack)
    }

    /// The segment that ends here leaves now: it was timed from when it came.
    fn restart(&mut self, end: u32, now: Instant) {
        if let Some((_, since)) = self.timed.as_mut().filter(|(timed, _)| *timed == end) {
            *since = now;
        }
    }
}

/// How long the timed byte took, if `ack` acknowledges it.
fn take_timed(timed: &mut Option<(u32, Instant)>, ack: u32, now: Instant) -> Option<Duration> {
    let (end, since) = (*timed)?;
    let is_due = distance(ack, end) >= 0 && distance(ack, end).unsigned_abs() <= JUMP_MAX;
    is_due.then(|| {
        *timed = None;
        now.since(since)
    })
}

/// The most that an answer has, bytes: more is a stream, which acknowledgments drive.
const ANSWER_BYTES_MAX: u32 = 2_048;

/// How long an answer takes at most before the mesh is known: the shortest timeout of a sender
/// (RFC 6298 §2.4).
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// A shorter MSS counts as this long, bytes: about the payload of one frame, as motes of TAiM have
/// it.
const MSS_MIN: u16 = 48;

/// Length of TCP's timestamps option with its padding (RFC 7323), bytes.
const TIMESTAMPS_LEN: u32 = 12;

/// A jump of sequence numbers beyond this is larger than any window of a mote allows, and is taken
/// for forged.
const JUMP_MAX: u32 = 1 << 20;

/// After this many jumps in a row the new numbers are believed.
const STRAYS_MAX: u8 = 4;

/// So many overdue answers in a row are no samples.
pub(crate) const OVERDUE_MAX: u8 = 2;

/// The greatest segment that fits a packet of the mesh, bytes, with its MTU of 1,280: a longer
/// packet was merged.
const MSS_MAX: u16 = 1_220;
