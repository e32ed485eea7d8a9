//! One flow that is relayed.

use std::collections::VecDeque;

use motet::time::{Duration, Instant, earliest};
use motet::wire::tcp::Flags;

use super::super::HOLD_MAX;
use super::reading::Reading;
use super::{
    FLOW_BYTES_MAX, INSIDE_BYTES_MAX, INSIDE_MAX, NEAR, REST, REST_FIRST, TIMEOUT_FIRST,
    TIMEOUT_MAX, TRIES_MAX, Verdict,
};
use crate::rtt::Rtt;
use crate::segment::Segment;

/// The stream of a flow into the mesh, from what the device has acknowledged on.
#[derive(Debug)]
pub(super) struct RelayedFlow {
    /// The device's highest acknowledgment number.
    acknowledged: u32,
    /// The window of its latest ACK.
    window: Option<u16>,
    /// Behind the last byte that the device has sent.
    device_tail: Option<u32>,
    /// Behind the last byte that came from the host.
    tail: u32,
    /// Segments that are in the mesh, in order.
    inside: VecDeque<Kept>,
    /// Packets that wait for the mesh, in order.
    waiting: VecDeque<Waiting>,
    /// Bytes of both.
    bytes: usize,
    /// Until the device has acknowledged this number, everything passes and nothing is kept.
    untouched_until: Option<u32>,
    /// Behind the latest segment of the host whose number was far from the flow's: a stranger's, or
    /// the relay has missed much, which the device's ACK of it would show.
    stray: Option<u32>,
    /// Segments that went again, each of which a duplicate ACK may answer.
    echoes: VecDeque<Echo>,
    /// Round trips where one segment was inside, and where two or more were: a device delays the
    /// ACK of a single one.
    round_trips: [Rtt; 2],
    /// Timeouts since a round trip was last measured.
    timeouts: u32,
    /// Since when the answer to the first segment is awaited.
    since: Instant,
    /// When the flow was entered, and when its device last acknowledged more.
    entered: Instant,
    progressed: Option<Instant>,
    /// Whether the first segment is to go again.
    pub(super) copy_awaited: bool,
    /// Whether the relay knows that.
    pub(super) copy_queued: bool,
    /// The deadline that the relay knows.
    pub(super) planned: Option<Instant>,
}

/// What a deadline has brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Timeout {
    /// Nothing, or a copy that goes.
    Goes,
    /// The device has not answered any copy: the flow passes untouched.
    GaveUp,
}

/// A segment that may go again.
#[derive(Debug)]
struct Kept {
    seq: u32,
    /// Behind its last number, a FIN's included.
    end: u32,
    packet: Box<[u8]>,
    /// When it went first.
    first_sent: Instant,
    /// When it, or the latest copy, went.
    sent: Instant,
    /// Whether it went more than once: no round trip is measured by it (Karn).
    is_again: bool,
    /// Copies so far.
    tries: u8,
    /// Why the latest copy went.
    cause: Cause,
}

/// Why a segment went again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    /// No ACK came in time.
    Timeout,
    /// A duplicate ACK came: it was lost, for a mesh keeps the order.
    Duplicate,
    /// It is behind one that went again, and was not acknowledged with it.
    Next,
}

/// A duplicate ACK that is no loss: a segment that went again is answered by one where it was there
/// already.
#[derive(Clone, Copy, Debug)]
struct Echo {
    /// From when on it is not expected any more.
    until: Instant,
    /// Whether the host sent the segment again, so that the ACK is the host's.
    is_hosts: bool,
}

/// A packet that waits, with the segment to be kept, unless it is only an ACK.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    kept: Option<Kept>,
}

impl RelayedFlow {
    /// A flow that goes on at `seq`, and of which nothing is in the mesh.
    pub(super) fn new(seq: u32, now: Instant) -> Self {
        Self {
            acknowledged: seq,
            window: None,
            device_tail: None,
            tail: seq,
            inside: VecDeque::new(),
            waiting: VecDeque::new(),
            bytes: 0,
            untouched_until: None,
            stray: None,
            echoes: VecDeque::new(),
            round_trips: [Rtt::default(); 2],
            timeouts: 0,
            since: now,
            entered: now,
            progressed: None,
            copy_awaited: false,
            copy_queued: false,
            planned: None,
        }
    }

    /// A segment into the mesh, and its packet.
    pub(super) fn on_down(
        &mut self,
        segment: &Segment,
        packet: &[u8],
        (may_hold, now): (bool, Instant),
    ) -> Verdict {
        let (seq, end) = (segment.seq, segment.end());
        if self.is_far(seq) {
            self.stray = Some(end);
            self.expect_echo(true, now);
            return Verdict::Pass;
        }
        // What the host has received of the device, the device has sent.
        if let Some(ack) = segment.ack
            && self
                .device_tail
                .is_none_or(|tail| (1..=NEAR).contains(&ack.wrapping_sub(tail)))
        {
            self.device_tail = Some(ack);
        }
        if is_before(seq, self.tail) {
            return self.on_old(segment, packet, now);
        }
        let is_ack = seq == end;
        if self.untouched_until.is_some() {
            self.tail = end;
            return Verdict::Pass;
        }
        if is_ack && seq == self.tail {
            return match (self.waiting.is_empty(), may_hold) {
                (true, _) => Verdict::Pass,
                (false, false) => Verdict::Behind,
                (false, true) => self.wait(None, now),
            };
        }
        let fits = self.bytes + packet.len() <= FLOW_BYTES_MAX;
        let has_turn = self.waiting.is_empty() && self.has_room(packet.len());
        let may_be_kept = seq == self.tail && fits && (has_turn || may_hold);
        if !may_be_kept || !matches!(Reading::of(packet, segment), Reading::Plain(_)) {
            // Behind a gap, or not to be kept.
            self.leave_untouched(end);
            return Verdict::Behind;
        }
        self.tail = end;
        self.bytes += packet.len();
        let kept = Kept {
            seq,
            end,
            packet: packet.into(),
            first_sent: now,
            sent: now,
            is_again: false,
            tries: 0,
            cause: Cause::Timeout,
        };
        if !has_turn {
            return self.wait(Some(kept), now);
        }
        self.enter(kept, now);
        Verdict::Pass
    }

    /// A segment whose numbers the host has used before: it passes, and may be answered by a
    /// duplicate ACK.
    fn on_old(&mut self, segment: &Segment, packet: &[u8], now: Instant) -> Verdict {
        let (seq, end) = (segment.seq, segment.end());
        self.expect_echo(true, now);
        if is_before(self.tail, end) {
            // The host has cut its stream anew.
            self.leave_untouched(end);
            return Verdict::Behind;
        }
        let first = self.inside.front().map(|first| first.seq);
        let waiting = self.waiting.iter_mut();
        let waiting = waiting.filter_map(|waiting| waiting.kept.as_mut());
        for kept in self.inside.iter_mut().chain(waiting) {
            let overlaps = is_before(seq, kept.end) && is_before(kept.seq, end);
            if !overlaps {
                continue;
            }
            // It is unknown which of them an ACK answers (Karn).
            kept.is_again = true;
            let is_first = first == Some(kept.seq);
            if is_first {
                self.since = now;
            }
            if (kept.seq, kept.end) != (seq, end) {
                continue;
            }
            // The host's own retransmission is on the way now.
            kept.sent = now;
            self.copy_awaited &= !is_first;
            let is_plain = || matches!(Reading::of(packet, segment), Reading::Plain(_));
            if packet.len() == kept.packet.len() && is_plain() {
                kept.packet.copy_from_slice(packet);
            }
        }
        // What reaches into a segment that waits goes behind it, or its ACK would be of the future.
        match is_before(self.inside_end(), end) {
            true => Verdict::Behind,
            false => Verdict::Pass,
        }
    }

    /// A segment out of the mesh, and its packet.
    pub(super) fn on_up(
        &mut self,
        segment: &Segment,
        packet: &[u8],
        (may_swallow, now): (bool, Instant),
    ) -> Verdict {
        let window = match Reading::of(packet, segment) {
            Reading::Plain(window) => window,
            Reading::Foreign => {
                self.leave_untouched(self.tail);
                return Verdict::Pass;
            }
            Reading::Broken => return Verdict::Pass,
        };
        let tail = *self.device_tail.get_or_insert(segment.seq);
        let is_next = !is_before(segment.seq, tail);
        let is_near = segment.seq.wrapping_sub(tail.wrapping_sub(NEAR)) <= 2 * NEAR;
        if is_next || !is_near {
            self.device_tail = Some(segment.end());
        }
        // The host takes no ACK of a segment whose own number is far from the others.
        let Some(ack) = segment.ack.filter(|_| is_near) else {
            return Verdict::Pass;
        };
        if self.is_far(ack) {
            self.on_far_ack(ack);
            return Verdict::Pass;
        }
        // Nobody can have received what waits here: such a number is a lie, or of another age.
        if is_before(self.inside_end(), ack) || is_before(ack, self.acknowledged) {
            return Verdict::Pass;
        }
        let is_known = self.window.is_some();
        let is_same_window = window > 0 && self.window.is_none_or(|own| own == window);
        self.window = Some(window);
        if ack != self.acknowledged {
            self.on_progress(ack, now);
            return Verdict::Pass;
        }
        // A number of before is that of a keep-alive probe, which the host must answer.
        let says_more = Flags::FIN.with(Flags::ECE).with(Flags::CWR);
        let is_bare = is_next && segment.payload_len == 0 && !segment.flags.intersects(says_more);
        if !is_bare || !is_same_window {
            return Verdict::Pass;
        }
        match self.on_duplicate(may_swallow, now) {
            // It may be the first to say so large a window.
            Verdict::Swallow if !is_known => Verdict::Pass,
            verdict => verdict,
        }
    }

    /// The device has acknowledged a number that is far from the flow's. With a segment of the host
    /// there, the stream is there: the flow goes on from it.
    fn on_far_ack(&mut self, ack: u32) {
        let near = self.stray.filter(|stray| stray.wrapping_sub(ack) <= NEAR);
        if let Some(stray) = near {
            self.leave_untouched(stray);
            (self.acknowledged, self.stray) = (ack, None);
            self.untouched_until = self.untouched_until.filter(|until| *until != ack);
        }
    }

    /// The device has received more.
    fn on_progress(&mut self, ack: u32, now: Instant) {
        (self.acknowledged, self.since) = (ack, now);
        (self.progressed, self.stray) = (Some(now), None);
        self.copy_awaited = false;
        if self
            .untouched_until
            .is_some_and(|until| !is_before(ack, until))
        {
            self.untouched_until = None;
        }
        let (mut sample, mut repeated_at, mut cause) = (None, None, None);
        let kind = self.kind();
        let whole = self.round_trips[kind].smoothed();
        while let Some(kept) = self.inside.pop_front_if(|kept| !is_before(ack, kept.end)) {
            self.bytes -= kept.packet.len();
            // The ACK comes too soon after a copy to be its answer (compare RFC 3522).
            let is_too_soon =
                whole.is_some_and(|whole| now.since(kept.sent).saturating_mul(2) < whole);
            match (kept.is_again, kept.tries > 0 && is_too_soon) {
                (true, true) => sample = Some(now.since(kept.first_sent)),
                (true, false) => {
                    (repeated_at, sample) = (Some(kept.sent), None);
                    cause = Some(kept.cause);
                }
                (false, _) if repeated_at.is_none() => sample = Some(now.since(kept.sent)),
                (false, _) => {}
            }
        }
        // The ACK answers the copy: no echo of that will come.
        let took = repeated_at.map(|at| now.since(at));
        let took_whole = took
            .zip(whole)
            .is_some_and(|(took, whole)| took >= most_of(whole));
        if (cause == Some(Cause::Duplicate) || took_whole)
            && let Some(place) = self.echoes.iter().rposition(|echo| !echo.is_hosts)
        {
            self.echoes.remove(place);
        }
        if let Some(sample) = sample {
            self.round_trips[kind].add(sample);
            self.timeouts = 0;
        }
        // Had the next one arrived before the repeated one, it would be acknowledged now: it is
        // lost, too (compare RFC 6582). Where the copy was one too many, so is the next, but that
        // brings forth no third one.
        if let (Some(at), Some(first)) = (repeated_at, self.inside.front())
            && first.sent < at
            && cause != Some(Cause::Next)
        {
            self.repeat(Cause::Next, now);
        }
    }

    /// An ACK that says nothing new: where a later segment caused it, the first one is lost.
    fn on_duplicate(&mut self, may_swallow: bool, now: Instant) -> Verdict {
        if let Some(echo) = self.take_echo(now) {
            return match may_swallow && !echo.is_hosts {
                true => Verdict::Swallow,
                false => Verdict::Pass,
            };
        }
        let mut inside = self.inside.iter();
        let (Some(first), Some(second)) = (inside.next(), inside.next()) else {
            return Verdict::Pass;
        };
        // In less than half a round trip the second one cannot have caused it.
        let kind = self.kind();
        let round_trip = self.round_trips[kind].smoothed();
        if round_trip.is_some_and(|whole| now.since(second.sent).saturating_mul(2) < whole) {
            return Verdict::Pass;
        }
        let covers = !is_before(self.acknowledged, first.seq);
        if !covers || !may_swallow || first.tries >= TRIES_MAX {
            return Verdict::Pass;
        }
        let is_answered = first.tries > 0 && first.sent >= second.sent;
        if !is_answered {
            self.repeat(Cause::Duplicate, now);
        }
        Verdict::Swallow
    }

    /// A segment goes again, or one that lies outside the device's window (RFC 9293 §3.10.7.4), so
    /// a duplicate ACK may come of it. `is_hosts`: it is the host's.
    pub(super) fn expect_echo(&mut self, is_hosts: bool, now: Instant) {
        let round_trip = self.round_trips[self.kind()].timeout();
        let patience = round_trip.unwrap_or(TIMEOUT_FIRST);
        let until = now + patience.saturating_mul(ECHO_ROUND_TRIPS).min(TIMEOUT_MAX);
        if self.echoes.len() >= ECHOES_MAX {
            self.echoes.pop_front();
        }
        self.echoes.push_back(Echo { until, is_hosts });
    }

    /// The echo that a duplicate ACK is.
    fn take_echo(&mut self, now: Instant) -> Option<Echo> {
        self.echoes.retain(|echo| echo.until > now);
        self.echoes.pop_front()
    }

    /// The first segment goes again.
    fn repeat(&mut self, cause: Cause, now: Instant) {
        if self.inside.is_empty() {
            return;
        }
        self.expect_echo(false, now);
        if let Some(first) = self.inside.front_mut() {
            (first.sent, first.is_again) = (now, true);
            (first.tries, first.cause) = (first.tries + 1, cause);
            self.since = now;
            self.copy_awaited = true;
        }
    }

    /// The first packet of those that wait goes.
    pub(super) fn on_released(&mut self, now: Instant) {
        let Some(waiting) = self.waiting.pop_front() else {
            return;
        };
        let Some(kept) = waiting.kept else { return };
        if self.untouched_until.is_some() {
            self.bytes -= kept.packet.len();
        } else {
            let kept = Kept {
                first_sent: now,
                sent: now,
                ..kept
            };
            self.enter(kept, now);
        }
    }

    /// A deadline may have come.
    pub(super) fn on_due(&mut self, now: Instant) -> Timeout {
        if self.times_out_at().is_some_and(|at| at <= now) {
            if self
                .inside
                .front()
                .is_some_and(|first| first.tries >= TRIES_MAX)
            {
                self.leave_untouched(self.tail);
                return Timeout::GaveUp;
            }
            self.timeouts += 1;
            self.repeat(Cause::Timeout, now);
        }
        if self.waits_until().is_some_and(|at| at <= now) {
            self.leave_untouched(self.tail);
            return Timeout::GaveUp;
        }
        Timeout::Goes
    }

    /// When [`Self::on_due`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        earliest(self.times_out_at(), self.waits_until())
    }

    /// Whether the first packet of those that wait may go.
    pub(super) fn may_release(&self) -> bool {
        let Some(first) = self.waiting.front() else {
            return false;
        };
        let has_room = |kept: &Kept| self.has_room(kept.packet.len());
        self.untouched_until.is_some() || first.kept.as_ref().is_none_or(has_room)
    }

    /// The first segment, of which a copy goes.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.inside.front().map(|first| &*first.packet)
    }

    /// From when on the flow yields its place to one that has none.
    pub(super) fn yields_at(&self) -> Instant {
        match self.progressed {
            Some(at) => at + REST,
            None => self.entered + REST_FIRST,
        }
    }

    /// When it last made progress, and when it was entered: the least yields first.
    pub(super) const fn progress(&self) -> (Option<Instant>, Instant) {
        (self.progressed, self.entered)
    }

    /// Whether a number is farther from those that may be under way than any window allows.
    pub(super) fn is_far(&self, number: u32) -> bool {
        let under_way = self.tail.wrapping_sub(self.acknowledged);
        let from = self.acknowledged.wrapping_sub(NEAR);
        number.wrapping_sub(from) > under_way.saturating_add(2 * NEAR)
    }

    fn wait(&mut self, kept: Option<Kept>, now: Instant) -> Verdict {
        self.waiting.push_back(Waiting { since: now, kept });
        Verdict::Hold
    }

    /// Whether a packet of `len` bytes may enter the mesh besides those that are inside.
    fn has_room(&self, len: usize) -> bool {
        let inside: usize = self.inside.iter().map(|kept| kept.packet.len()).sum();
        self.inside.len() < INSIDE_MAX || inside + len <= INSIDE_BYTES_MAX
    }

    /// A segment enters the mesh.
    fn enter(&mut self, kept: Kept, now: Instant) {
        if self.inside.is_empty() {
            self.since = now;
        }
        self.inside.push_back(kept);
    }

    /// Keeps nothing, and holds nothing, until the device has acknowledged `until`.
    fn leave_untouched(&mut self, until: u32) {
        let kept = self.inside.drain(..).map(|kept| kept.packet.len());
        self.bytes -= kept.sum::<usize>();
        self.tail = until;
        self.untouched_until = Some(until);
        self.copy_awaited = false;
    }

    /// Behind the last byte that is in the mesh.
    fn inside_end(&self) -> u32 {
        let waits = self
            .waiting
            .iter()
            .find_map(|waiting| waiting.kept.as_ref());
        waits.map_or(self.tail, |waits| waits.seq)
    }

    /// When the first segment goes again.
    fn times_out_at(&self) -> Option<Instant> {
        self.inside.front()?;
        let kind = self.kind();
        let timeout = timeout(&self.round_trips[kind])
            .or_else(|| timeout(&self.round_trips[1 - kind]).map(|other| other + ACK_DELAY_MAX));
        let timeout = timeout.unwrap_or(TIMEOUT_FIRST);
        // Of the first timeout a loss is as likely a cause as congestion is.
        let doublings = self.timeouts.saturating_sub(1).min(DOUBLINGS_MAX);
        let timeout = timeout.saturating_mul(1 << doublings);
        Some(self.since + timeout.min(TIMEOUT_MAX))
    }

    /// The place of the round trips that count now.
    fn kind(&self) -> usize {
        usize::from(self.inside.len() > 1)
    }

    /// How long the first packet waits at most.
    fn waits_until(&self) -> Option<Instant> {
        let first = self.waiting.front()?;
        let has_turn = self.untouched_until.is_some();
        (!has_turn).then(|| first.since + HOLD_MAX)
    }
}

/// When an answer is overdue by these round trips (RFC 6298 §2.3). Differs: the slack is twice the
/// variation, half of a host's, for a copy too many costs a packet's time in the mesh, and no
/// window.
fn timeout(rtt: &Rtt) -> Option<Duration> {
    let slack = rtt.variation()?.saturating_mul(2).max(SLACK_MIN);
    Some(rtt.smoothed()? + slack)
}

/// Three quarters.
fn most_of(span: Duration) -> Duration {
    Duration::from_micros(span.as_micros() * 3 / 4)
}

/// Whether a sequence number is before another one: less than half the circle behind.
fn is_before(seq: u32, other: u32) -> bool {
    (seq.wrapping_sub(other) as i32) < 0
}

/// Duplicate ACKs that are expected at a time.
const ECHOES_MAX: usize = 4;

/// A copy and its answer take at most so many round trips.
const ECHO_ROUND_TRIPS: u64 = 2;

/// The least slack of a timeout.
const SLACK_MIN: Duration = Duration::from_millis(100);

/// The longest time that a device may delay an ACK (RFC 9293 §3.8.6.3).
const ACK_DELAY_MAX: Duration = Duration::from_millis(500);

/// Beyond, [`TIMEOUT_MAX`] holds anyway.
const DOUBLINGS_MAX: u32 = 8;
