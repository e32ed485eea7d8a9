//! Flow admission: only a limited number of flows are inside the mesh at a time.
//!
//! Purpose: acknowledgments into the mesh are held. An acknowledgment that is released and that is
//! new to its mote triggers new data. Until these arrive, or are overdue ([`super::answers`]), the
//! flow is inside the mesh. If fewer flows are inside than the window allows, the flow with the
//! least service is next, and one of its acknowledgments is released. So the mesh is never
//! overloaded, every flow finds it equally empty, and a flow that has lost packets catches up. Data
//! into the mesh come from one place, which can queue them itself, and they trigger only short
//! ACKs: the policy `admission` never holds them. `auto` holds them like acknowledgments where
//! flows out of the mesh contend, too: beside those, which wait, downloads would have the air to
//! themselves. A flow that sends little is never held, either ([`super::heavy_flows`]). Only one
//! packet of a flow is released at a time: if it is lost, the flow's next one acknowledges the same
//! bytes, so the sender does not run into its timeout. The window follows from the size of
//! segments: as many bytes are inside as the air between neighbours can carry. It shrinks if flows
//! that lose segments fall behind the others still, or if flows retransmit. A flow that sends
//! readings at times of its own, or whose leaf sleeps until it fetches what waits for it, would be
//! inside for long and keep all others out, though it leaves them the air. It is recognised by its
//! answers, which take far longer than those of the quickest flow, or than the mesh took when the
//! flow was opened, and needs no place inside: it is let in as soon as no flow that waits was
//! served less. Nor does a flow need one whose mote has sent the end of a message, or runs out of
//! data again and again. A packet waits for at most a minute. While the number of flows inside is
//! below one and a half times the window, it also waits no longer than its sender's timeout,
//! estimated from the round trips so far. A sender that sends again at fixed times, whatever the
//! round trips, is recognised by them, and its packets wait no longer than it does. Source: Motet's
//! own.

use std::collections::BTreeSet;
use std::mem;

use motet::time::{Duration, Instant, earliest};

use super::HOLD_MAX;
use super::answers::{Answers, FIRST_MAX};
use super::heavy_flows::{CLAIM, HeavyFlows, Sign};
use super::share::{RTO_MIN, Share, WaitingFlow, patience};
use super::turn::Turn;
use crate::config::{Admission, Window};
use crate::flow::{Flow, HeldPacket, SegmentEffect};
use crate::flows::{FlowId, Flows};
use crate::segment::{Direction, Segment};

/// The flows inside the mesh, and those that wait.
#[derive(Debug)]
pub(crate) struct Gate {
    is_adaptive: bool,
    /// Whether data into the mesh wait for their turn, too.
    shares_data: bool,
    /// The part of its turn that the flow which is being let in has had.
    entered: Turn,
    /// Flows that may be inside at a time.
    window: usize,
    /// The state of each flow, by its place in the table.
    shares: Vec<Share>,
    /// Flows that wait, those that were served least first, then those that have waited longest.
    waiting: BTreeSet<(u64, u64, FlowId)>,
    /// When the first packet of a flow that waits must go.
    due: BTreeSet<(Instant, FlowId)>,
    /// When the first packet of a flow should go, lest its sender's timer run out, if the mesh is
    /// not too full by then.
    urgent: BTreeSet<(Instant, FlowId)>,
    /// Flows inside, by when they count as outside again.
    inside: BTreeSet<(Instant, FlowId)>,
    /// The flow that is being let in, packet by packet.
    entering: Option<FlowId>,
    /// Packets that have begun to wait first of their flow.
    turns: u64,
    /// Until when the air is left to motes that try to open a flow.
    quiet_until: Option<Instant>,
    /// The classification of flows as heavy or light.
    heavy_flows: HeavyFlows,
    /// When flows last contended.
    contended_at: Option<Instant>,
    /// What flows inside owe.
    answers: Answers,
    /// Smoothed length of a segment with new bytes.
    message_bytes: u64,
    /// Segments since the window was looked at: with new bytes, and sent again though they had
    /// come.
    come: [u64; 2],
    /// When the window is looked at again.
    adapts_at: Option<Instant>,
    /// Packets let in because they were due.
    pub(crate) early: u64,
}

impl Gate {
    pub(crate) fn new(admission: Admission) -> Self {
        let (is_adaptive, window) = match admission.window {
            Window::Adaptive => (true, WINDOW_FIRST),
            Window::Fixed(window) => (false, usize::from(window).max(1)),
        };
        Self {
            is_adaptive,
            shares_data: false,
            entered: Turn::default(),
            window,
            shares: Vec::new(),
            waiting: BTreeSet::new(),
            due: BTreeSet::new(),
            urgent: BTreeSet::new(),
            inside: BTreeSet::new(),
            entering: None,
            turns: 0,
            quiet_until: None,
            heavy_flows: HeavyFlows::default(),
            contended_at: None,
            answers: Answers::default(),
            message_bytes: 0,
            come: [0; 2],
            adapts_at: None,
            early: 0,
        }
    }

    /// Admission as the policy `auto` has it: it sets itself, and remembers a crowd.
    pub(crate) fn auto() -> Self {
        Self {
            heavy_flows: HeavyFlows::patient(),
            shares_data: true,
            ..Self::new(Admission::default())
        }
    }

    /// Flows that may be inside at a time.
    pub(crate) fn window(&self) -> usize {
        if !self.is_adaptive {
            return self.window;
        }
        // Lossless: `INSIDE_BYTES` is small.
        let most = (INSIDE_BYTES / self.message_bytes.max(1)) as usize;
        self.window.min(most).max(1)
    }

    pub(crate) fn inside(&self) -> usize {
        self.inside.len()
    }

    /// Whether a segment may have to wait: it goes into the mesh, and its flow sends much. One with
    /// data waits under `auto` alone.
    pub(crate) fn holds(&self, id: FlowId, segment: &Segment) -> bool {
        segment.direction == Direction::Down
            && (segment.payload_len == 0 || self.shares_data)
            && self.heavy_flows.is_heavy(id)
    }

    /// A segment has come. One out of the mesh may end its flow's turn.
    pub(crate) fn on_segment(
        &mut self,
        id: FlowId,
        flow: &Flow,
        segment: &Segment,
        news: &SegmentEffect,
        now: Instant,
    ) {
        let mut sign = Sign::of(segment, news);
        if segment.direction == Direction::Down {
            if !self.shares_data {
                sign.streamed = 0;
            }
            self.heavy_flows.on_segment(id, sign, now);
            self.note_heavy(id, now);
            return;
        }
        let answered = news.new_bytes + news.newly_acknowledged;
        self.welcome(id, sign, now);
        self.note_heavy(id, now);
        self.note_late(id, flow, news, now);
        if self.heavy_flows.is_heavy(id) && !self.is_silent(id) {
            self.note_message(news);
        }
        self.come[0] += u64::from(news.new_bytes > 0);
        self.come[1] += u64::from(news.is_retransmission && news.new_bytes == 0);
        let (shares_data, counts) = (self.shares_data, self.counts(now));
        let share = self.share(id);
        share.last = Some(now);
        match answered > 0 {
            true => (share.late, share.was_repeated) = (0, false),
            false => share.was_repeated |= news.is_retransmission,
        }
        share.served += u64::from(match shares_data {
            _ if !counts => 0,
            true => answered,
            false => news.new_bytes,
        });
        if news.is_retransmission && news.new_bytes == 0 {
            share.note_repeat(flow, segment.seq, now);
        }
        // An ACK that acknowledges nothing new answers data that had come before.
        let is_ack = shares_data && segment.payload_len == 0;
        let when = (self.heavy_flows.contend(), now);
        let is_even = self.answers.note(id, segment, news, when);
        if is_even && (answered > 0 || is_ack) || flow.is_over {
            self.leave_air(id, now);
            self.leave(id);
        } else if answered > 0 {
            self.shorten(id, now);
        }
        if flow.is_over {
            self.share(id).end();
            self.heavy_flows.on_over(id);
        }
        // A flow's position in the order follows from its service so far.
        let served = self.share(id).served;
        if let Some(place) = self.share(id).place {
            self.unqueue(id);
            self.queue(id, WaitingFlow { served, ..place });
        }
    }

    /// Smooths the length of segments with new bytes.
    fn note_message(&mut self, news: &SegmentEffect) {
        let len = match self.shares_data {
            true => news.new_bytes.max(news.newly_acknowledged),
            false => news.new_bytes,
        };
        let len = u64::from(len);
        if len > 0 {
            self.message_bytes = match self.message_bytes {
                0 => len,
                smoothed => (15 * smoothed + len) / 16,
            };
        }
    }

    /// A flow that is new, or was silent for long, begins with as much as was served least: it has
    /// no claim to what it did not use.
    fn welcome(&mut self, id: FlowId, sign: Sign, now: Instant) {
        if self.heavy_flows.on_segment(id, sign, now) {
            self.raise(id, now);
        }
    }

    /// Whether what a flow gets now is counted: flows contend, or did a moment ago. Nobody owes
    /// others for the time before. One that had most of the air until then was once held for ten
    /// minutes, until those far away had had as much.
    fn counts(&mut self, now: Instant) -> bool {
        if self.heavy_flows.contend() {
            self.contended_at = Some(now);
        }
        let at = self.contended_at;
        at.is_some_and(|at| now.since(at) < PAUSE_MAX)
    }

    /// A flow that is heavy, and was not for a minute, has no claim to what it left. One that
    /// starved is known as heavy, and keeps its claim.
    fn note_heavy(&mut self, id: FlowId, now: Instant) {
        if !self.heavy_flows.is_heavy(id) {
            return;
        }
        let before = self.share(id).heavy_at.replace(now);
        if before.is_none_or(|before| now.since(before) >= CLAIM) {
            self.raise(id, now);
        }
    }

    /// Counts a flow as served at least as much as that which was served least.
    fn raise(&mut self, id: FlowId, now: Instant) {
        let others = self.active(now, Some(id)).map(|share| share.served);
        let least = others.min();
        let share = self.share(id);
        share.served = share.served.max(least.unwrap_or(0));
    }

    /// Notes an answer that came late while flows contend.
    fn note_late(&mut self, id: FlowId, flow: &Flow, news: &SegmentEffect, now: Instant) {
        let Some(took) = news.took.filter(|_| self.heavy_flows.contend()) else {
            return;
        };
        let is_own = flow.is_own_time(took) && !self.heavy_flows.streams(id);
        let share = self.share(id);
        share.note_answer(is_own);
        if news.new_bytes > 0 && !news.is_retransmission {
            share.note_dry(news.ran_dry);
        }
        let is_active = |place: usize| {
            let is_heard = |share: &Share| share.is_heard(now);
            self.heavy_flows.is_heavy_at(place) && self.shares.get(place).is_some_and(is_heard)
        };
        if self.answers.is_late(took, is_active, now) {
            self.heavy_flows.note_late(id, took);
        }
    }

    /// Whether the flow needs no place inside. A window that is set counts all flows.
    fn is_silent(&self, id: FlowId) -> bool {
        let has_own_time = || self.shares.get(id.index()).is_some_and(Share::has_own_time);
        let runs_dry = || self.shares.get(id.index()).is_some_and(Share::runs_dry);
        let sends_by_itself = || !self.heavy_flows.streams(id) && has_own_time() || runs_dry();
        self.is_adaptive && (self.heavy_flows.is_silent(id) || sends_by_itself())
    }

    /// Whether a segment into the mesh may go at once, none of its flow being held.
    pub(crate) fn admits(&mut self, id: FlowId, now: Instant) -> bool {
        self.expire(now);
        if !self.heavy_flows.contend() {
            return true;
        }
        let (served, is_inside) = (self.share(id).served, self.share(id).until.is_some());
        match self.waiting.first() {
            Some((least, ..)) => served <= *least && self.is_silent(id),
            None => is_inside || self.has_room_for(id, now),
        }
    }

    /// Whether the flow may come inside besides those that are.
    fn has_room_for(&self, id: FlowId, now: Instant) -> bool {
        let is_quiet = self.quiet_until.is_some_and(|until| now < until);
        self.inside.len() < self.window() && !is_quiet || self.is_silent(id)
    }

    /// A packet goes into the mesh. `is_news`: the mote is to answer it, with new data; else it may
    /// be the last of those by which the mote knows what to send again.
    pub(crate) fn on_pass(&mut self, id: FlowId, flow: &Flow, is_news: bool, now: Instant) {
        let repair = flow.is_to_repair().filter(|_| !is_news);
        if is_news || repair.is_some() {
            self.leave(id);
            self.answers.ask(id, repair.unwrap_or(flow.invites), now);
            if self.is_silent(id) || flow.has_sent_all() {
                return;
            }
            let usual = self.answers.usual(id);
            self.share(id).nudged = usual.map(|usual| now + usual + usual);
            let patience = self.answers.patience(id);
            let until = now + patience.or(flow.mesh.timeout()).unwrap_or(FIRST_MAX);
            self.share(id).until = Some(until);
            self.inside.insert((until, id));
        }
    }

    /// A packet waits from now on.
    pub(crate) fn on_held(&mut self, id: FlowId, flow: &Flow, now: Instant) {
        if self.share(id).place.is_none() {
            self.begin_to_wait(id, flow, now + HOLD_MAX, now);
        }
    }

    /// A packet waits no more. `is_news`: the mote is to answer it.
    pub(crate) fn on_released(
        &mut self,
        id: FlowId,
        flow: &Flow,
        (packet, is_news): (&HeldPacket, bool),
        now: Instant,
    ) {
        let first = flow.first(Direction::Down);
        let is_turn_over = match packet.end() {
            Some(end) => self.entered.ends_with(end),
            None => self.entered.invites(flow.invites) * 2 >= self.message_bytes,
        };
        // If a released packet is nothing new to its mote, or invites nothing yet, the next one of
        // the flow is released, too.
        let goes_on = first.is_some() && (!is_news || !is_turn_over);
        if !goes_on {
            self.entering = None;
            self.entered = Turn::default();
            self.unqueue(id);
        }
        if let Some(first) = first.filter(|_| !goes_on) {
            // Its sender's timer begins anew, but it has waited behind the other.
            self.begin_to_wait(id, flow, first.since + HOLD_MAX, now);
        }
        self.on_pass(id, flow, is_news, now);
    }

    pub(crate) fn on_forgotten(&mut self, id: FlowId) {
        self.unqueue(id);
        self.leave(id);
        self.heavy_flows.on_over(id);
        self.answers.forget(id);
        *self.share(id) = Share::default();
    }

    /// The flow whose first packet goes now.
    pub(crate) fn next(&mut self, flows: &Flows, now: Instant) -> Option<FlowId> {
        self.heavy_flows.count_shut_out(flows, now);
        self.quiet_until = self.quiet_until.filter(|until| now < *until);
        self.heavy_flows.look(now);
        self.adapt(now);
        self.expire(now);
        if self.entering.is_none() {
            self.entering = self
                .due(now)
                .or_else(|| self.turn(now))
                .or_else(|| self.nudge(now))
                .or_else(|| self.urgent(now));
        }
        self.entering
    }

    /// When the next packet may leave without an arrival.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let due = self.due.first().map(|(at, _)| *at);
        let urgent = self.urgent.first().map(|(at, _)| *at);
        let leaves = self.inside.first().map(|(at, _)| *at);
        let urgent = urgent.filter(|_| !self.is_overfull());
        let nudge = self.nudges().map(|(at, _)| at).min();
        let leaves = earliest(leaves, nudge);
        let looks = earliest(self.heavy_flows.looks_at(), self.quiet_until);
        earliest(earliest(due, urgent), earliest(leaves, looks))
    }

    /// A flow that can wait no longer.
    fn due(&mut self, now: Instant) -> Option<FlowId> {
        let (_, id) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.early += 1;
        Some(*id)
    }

    /// A flow whose sender would time out, if there are not far too many inside already.
    fn urgent(&mut self, now: Instant) -> Option<FlowId> {
        let (_, id) = self.urgent.first().filter(|(at, _)| *at <= now)?;
        if self.is_overfull() {
            return None;
        }
        self.early += 1;
        Some(*id)
    }

    /// Whether half as many again are inside as should be. With segments so large that only one
    /// flow should, a second would keep both from getting through.
    fn is_overfull(&self) -> bool {
        self.inside.len() >= self.window() * 3 / 2
    }

    /// The flow whose turn it is.
    fn turn(&self, now: Instant) -> Option<FlowId> {
        let (_, _, first) = self.waiting.first()?;
        if self.has_room_for(*first, now) || !self.heavy_flows.contend() {
            return Some(*first);
        }
        // If all waiting flows already have a place inside, one of them may send.
        let has_place = |id: &FlowId| self.shares[id.index()].until.is_some();
        let all_have = self.waiting.iter().all(|(_, _, id)| has_place(id));
        all_have.then_some(*first)
    }

    /// A flow inside whose answer is not complete after twice its usual time, while another of its
    /// packets waits: a mote with less than a segment to send may wait for that (Nagle's
    /// algorithm, RFC 9293 §3.7.4).
    fn nudge(&self, now: Instant) -> Option<FlowId> {
        let due = self.nudges().find(|(at, _)| *at <= now);
        due.map(|(_, id)| id)
    }

    /// When those are due.
    fn nudges(&self) -> impl Iterator<Item = (Instant, FlowId)> {
        self.inside.iter().filter_map(|(_, id)| {
            let share = self.shares.get(id.index())?;
            share.place?;
            Some((share.nudged?, *id))
        })
    }

    /// A flow's turn is over, if it had one. Motes that try to open a flow have nothing that could
    /// be held, and so no turns: the air is left to them for as long as those would take, a second
    /// at most, for a sender that is held longer times out. Two flows beside the border router once
    /// had it for a minute, between them without a gap, while the handshakes of most of thirty were
    /// lost in it.
    fn leave_air(&mut self, id: FlowId, now: Instant) {
        let others = self.heavy_flows.kept_out();
        let took = self.answers.usual(id).filter(|_| others > 0);
        let had_turn = self.share(id).until.is_some();
        if let Some(took) = took.filter(|_| had_turn) {
            let span = took.saturating_mul(others as u64).min(RTO_MIN);
            self.quiet_until = self.quiet_until.max(Some(now + span));
        }
    }

    fn leave(&mut self, id: FlowId) {
        if let Some(until) = self.share(id).until.take() {
            self.inside.remove(&(until, id));
        }
    }

    /// A flow inside has answered in part. The rest comes as soon as the first part did, or not at
    /// all.
    fn shorten(&mut self, id: FlowId, now: Instant) {
        let until = self.share(id).until;
        if let Some((until, took)) = until.zip(self.answers.usual(id)) {
            self.leave(id);
            let until = until.min(now + took);
            self.share(id).until = Some(until);
            self.inside.insert((until, id));
        }
    }

    /// Flows that have not answered in time are outside.
    fn expire(&mut self, now: Instant) {
        while let Some((_, id)) = self
            .inside
            .first()
            .filter(|(until, _)| *until <= now)
            .copied()
        {
            self.answers.write_off(id);
            self.leave(id);
            let share = self.share(id);
            share.late = share.late.saturating_add(1);
        }
    }

    /// A flow's first packet waits, at the longest until `latest`.
    fn begin_to_wait(&mut self, id: FlowId, flow: &Flow, latest: Instant, now: Instant) {
        self.turns += 1;
        let share = self.share(id);
        let place = WaitingFlow {
            served: share.served,
            turn: 0,
            due: latest.min(now + share.hold_max(now)),
            urgent: now + patience(flow),
        };
        let turn = self.turns;
        self.queue(id, WaitingFlow { turn, ..place });
    }

    fn queue(&mut self, id: FlowId, place: WaitingFlow) {
        self.share(id).place = Some(place);
        self.waiting.insert((place.served, place.turn, id));
        self.due.insert((place.due, id));
        self.urgent.insert((place.urgent, id));
    }

    fn unqueue(&mut self, id: FlowId) {
        if let Some(place) = self.share(id).place.take() {
            self.waiting.remove(&(place.served, place.turn, id));
            self.due.remove(&(place.due, id));
            self.urgent.remove(&(place.urgent, id));
        }
    }

    /// Makes the window smaller where flows drift apart or acknowledgments are lost, larger where
    /// they are not. Only a flow counts as behind that keeps not answering, or loses segments: a
    /// sensor that answers each time has less because it sends less.
    fn adapt(&mut self, now: Instant) {
        let at = *self.adapts_at.get_or_insert(now + ADAPTS_EVERY);
        if now < at {
            return;
        }
        self.adapts_at = Some(now + ADAPTS_EVERY);
        let (mut least, mut most) = (u64::MAX, 0);
        for share in self.active(now, None) {
            if share.is_behind() {
                least = least.min(share.served);
            }
            most = most.max(share.served);
        }
        if !self.is_adaptive {
            return;
        }
        let spread = most.saturating_sub(least);
        let is_apart = spread > SPREAD_MESSAGES * self.message_bytes;
        let [fresh, again] = mem::take(&mut self.come);
        let is_lossy = again * AGAIN_PART > fresh;
        let window = self.window();
        self.window = match is_apart || is_lossy {
            true => window - 1,
            false => window + 1,
        };
        self.window = self.window.max(1);
    }

    /// Heavy flows that were heard of lately, or wait; all or all but one.
    fn active(&self, now: Instant, but: Option<FlowId>) -> impl Iterator<Item = &Share> {
        let shares = self.shares.iter().enumerate();
        shares.filter_map(move |(place, share)| {
            let is_other = but.is_none_or(|but| but.index() != place);
            let counts = is_other && (share.is_heard(now) || share.place.is_some());
            (counts && self.heavy_flows.is_heavy_at(place)).then_some(share)
        })
    }

    fn share(&mut self, id: FlowId) -> &mut Share {
        if self.shares.len() <= id.index() {
            self.shares.resize(id.index() + 1, Share::default());
        }
        &mut self.shares[id.index()]
    }
}

/// Bytes of streams that answers may have inside the mesh at a time: one flow with segments of five
/// frames, fifteen with the paper's segments of 38 bytes. Found on generated floors whose seeds no
/// experiment uses.
const INSIDE_BYTES: u64 = 570;

/// The window at the start; the size of segments bounds it.
const WINDOW_FIRST: usize = 8;

/// What flows get in a pause of their contention that is shorter counts, too.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How often the window is looked at.
const ADAPTS_EVERY: Duration = Duration::from_secs(10);

/// The number of segments by which the flows may be apart.
const SPREAD_MESSAGES: u64 = 3;

/// If more than one segment in this many is a retransmission, the mesh is too full: acknowledgments
/// in it are lost or late. Found on floors whose seeds no experiment uses.
const AGAIN_PART: u64 = 50;

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use motet::wire::tcp::Flags;

    use super::*;
    use crate::config::Config;
    use crate::flow::Passing;
    use crate::router::PacketId;
    use crate::segment::FlowKey;

    const KEY: FlowKey = FlowKey {
        mote: Ipv6Addr::LOCALHOST,
        mote_port: 1,
        peer: Ipv6Addr::UNSPECIFIED,
        peer_port: 2,
    };

    fn up(seq: u32, payload_len: u32) -> Segment {
        Segment {
            flow: KEY,
            direction: Direction::Up,
            seq,
            ack: Some(0),
            flags: Flags::ACK,
            payload_len,
            packet_len: 60 + payload_len as usize,
            mss: None,
        }
    }

    /// A gate for one flow that answers after 50 ms, the flow, and the time.
    fn gate() -> (Gate, FlowId, Flow, Instant) {
        let (mut gate, id) = (Gate::auto(), FlowId::at(0));
        let mut now = Instant::ORIGIN + Duration::from_secs(1_000);
        let news = SegmentEffect {
            new_bytes: 400,
            ..SegmentEffect::default()
        };
        for round in 0..20 {
            gate.answers.ask(id, 400, now);
            now += Duration::from_millis(50);
            gate.answers
                .note(id, &up(400 * round, 400), &news, (true, now));
        }
        (gate, id, Flow::new(KEY, now), now)
    }

    /// A segment of 400 bytes comes out of the mesh.
    fn comes(gate: &mut Gate, flow: &mut Flow, seq: u32, at: Instant) {
        let segment = up(seq, 400);
        let news = flow.on_segment(&segment, at);
        gate.on_segment(FlowId::at(0), flow, &segment, &news, at);
    }

    /// A mote with less than a segment left waits until all is acknowledged. The acknowledgment
    /// that it lacked was held behind the one let in, until its flow's turn had passed in vain.
    #[test]
    fn a_flow_that_does_not_answer_gets_the_next_acknowledgment_before_the_others() {
        let ms = Duration::from_millis;
        let (mut gate, id, mut flow, now) = gate();
        flow.invites = 400;
        gate.on_pass(id, &flow, true, now);
        assert_eq!(gate.nudge(now + ms(200)), None, "nothing of it waits");
        let ack = Segment {
            direction: Direction::Down,
            ..up(0, 0)
        };
        flow.hold(PacketId(1), &ack, now);
        gate.on_held(id, &flow, now);
        assert_eq!(gate.nudge(now + ms(99)), None);
        assert_eq!(gate.nudge(now + ms(100)), Some(id), "twice its usual time");
        assert_eq!(gate.nudges().next(), Some((now + ms(100), id)));
        assert!(gate.next_deadline() <= Some(now + ms(100)));
    }

    /// A mote that has sent the end of a message has nothing to answer with. One that sends in
    /// segments of that length alone may have more.
    #[test]
    fn the_acknowledgment_of_a_message_takes_no_place() {
        for (lens, inside) in [([400, 400], 1), ([400, 100], 0), ([100, 100], 1)] {
            let (mut gate, id, mut flow, now) = gate();
            let of = |direction, seq, ack, payload_len| Segment {
                direction,
                ack: Some(ack),
                ..up(seq, payload_len)
            };
            for direction in [Direction::Up, Direction::Down] {
                let syn = Segment {
                    flags: Flags::SYN,
                    mss: Some(400),
                    ..of(direction, 0, 0, 0)
                };
                flow.on_segment(&syn, now);
            }
            let mut end = 1;
            for len in lens {
                flow.on_segment(&of(Direction::Up, end, 1, len), now);
                end += len;
            }
            let ack = of(Direction::Down, 1, end, 0);
            flow.on_segment(&ack, now);
            flow.on_pass(Direction::Down, Passing::of(&ack), now);
            gate.on_pass(id, &flow, true, now);
            assert_eq!(gate.inside(), inside, "{lens:?}");
        }
    }

    /// The second of two segments that an acknowledgment triggers comes soon after the first, or
    /// not at all: one that was lost once kept the turn for as long as the first might take.
    #[test]
    fn a_turn_ends_sooner_once_its_first_answer_has_come() {
        let ms = Duration::from_millis;
        let (mut gate, id, mut flow, now) = gate();
        flow.invites = 800;
        gate.on_pass(id, &flow, true, now);
        assert_eq!(gate.share(id).until, Some(now + ms(250)));
        comes(&mut gate, &mut flow, 0, now + ms(60));
        assert_eq!(gate.share(id).until, Some(now + ms(110)));
        assert_eq!(gate.inside(), 1);
        let mut lost = now + ms(109);
        for inside in [1, 0] {
            gate.expire(lost);
            assert_eq!(gate.inside(), inside);
            lost += ms(1);
        }
        // Where both come, the turn ends with the second.
        flow.invites = 800;
        gate.on_pass(id, &flow, true, lost);
        comes(&mut gate, &mut flow, 400, lost + ms(60));
        assert_eq!(gate.inside(), 1);
        comes(&mut gate, &mut flow, 800, lost + ms(70));
        assert_eq!(gate.inside(), 0);
    }

    /// What each of four flows counts as served with, at each of the seconds `at`. `bytes`: what a
    /// flow moves in a second.
    fn served(at: &[u64], bytes: impl Fn(usize, u64) -> u32) -> Vec<[u64; 4]> {
        let mut gate = Gate::auto();
        let start = Instant::ORIGIN + Duration::from_secs(1_000);
        let mut flows: Vec<_> = (0..4).map(|_| Flow::new(KEY, start)).collect();
        let mut seqs = [0_u32; 4];
        let mut seen = Vec::new();
        for second in 0..=at.iter().copied().max().unwrap_or(0) {
            for (place, flow) in flows.iter_mut().enumerate() {
                let bytes = bytes(place, second);
                if bytes > 0 {
                    let segment = up(seqs[place], bytes);
                    seqs[place] += bytes;
                    let now = start + Duration::from_millis(second * 1_000 + place as u64);
                    let news = flow.on_segment(&segment, now);
                    gate.on_segment(FlowId::at(place as u32), flow, &segment, &news, now);
                }
            }
            if at.contains(&second) {
                seen.push([0, 1, 2, 3].map(|place| gate.share(FlowId::at(place)).served));
            }
        }
        seen
    }

    /// A flow beside the border router once owed to those far away what it had had before there
    /// was a third one, and had a thirtieth of their share for ten minutes.
    #[test]
    fn nothing_is_owed_for_the_time_before_flows_contend() {
        let seen = served(&[40], |place, second| match (place, second) {
            (0, 0..30) => 9_000,
            (1, 0..30) => 1_500,
            (0..3, 30..) => 1_000,
            _ => 0,
        });
        let with = seen[0];
        let (least, most) = (with[..3].iter().min(), with[..3].iter().max());
        assert!(least >= Some(&3_000), "{with:?}");
        let apart = most.zip(least).map(|(most, least)| most - least);
        assert!(apart <= Some(3_000), "{with:?}");
    }

    /// A flow that sends little for long, and then as much as it can, once had all the turns until
    /// it had as much as the others.
    #[test]
    fn a_flow_that_wanted_little_has_no_claim_to_what_it_left() {
        let seen = served(&[40, 170], |place, second| match (place, second) {
            (0 | 1, _) | (2, 30..) | (3, 160..) => 1_000,
            (2, _) => 0,
            _ => 20,
        });
        let (with, then) = (seen[0], seen[1]);
        assert!(with[3] < 2_000, "{with:?}");
        assert!(then[0] > 100_000 && then[3] + 3_000 > then[0], "{then:?}");
    }

    /// A flow that starves seems light for a while; it keeps its claim.
    #[test]
    fn a_flow_that_starves_keeps_its_claim() {
        let seen = served(&[99], |place, second| match (place, second) {
            (3, 20..80) => 20,
            _ => 1_000,
        });
        let [other, .., starved] = seen[0];
        assert!(starved + 50_000 < other, "{starved} {other}");
    }

    /// The last duplicate ACK that goes to a mote has it send again what is missing: it has a turn
    /// for that, and owes what is missing. An ACK behind which others are held gives none.
    #[test]
    fn a_mote_has_a_turn_to_repair() {
        let ms = Duration::from_millis;
        let (mut gate, id, mut flow, now) = gate();
        gate.on_pass(id, &flow, false, now);
        assert_eq!(gate.inside(), 0, "nothing is missing");
        for seq in [0, 800] {
            flow.on_segment(&up(seq, 400), now);
        }
        let ack = Segment {
            direction: Direction::Down,
            ack: Some(400),
            payload_len: 0,
            ..up(0, 0)
        };
        flow.hold(PacketId(0), &ack, now);
        gate.on_pass(id, &flow, false, now);
        assert_eq!(gate.inside(), 0, "another ACK is held");
        flow.release(Direction::Down, now);
        gate.on_pass(id, &flow, false, now);
        assert_eq!(gate.share(id).until, Some(now + ms(250)));
        comes(&mut gate, &mut flow, 400, now + ms(60));
        assert_eq!(gate.inside(), 0);
    }

    /// Motes that try to connect have nothing that could be held: between the turns of others the
    /// air is left to them.
    #[test]
    fn the_air_is_left_to_motes_that_try_to_connect() {
        let ms = Duration::from_millis;
        for (motes, quiet_ms) in [(0, 0), (2, 0), (6, 300), (100, 1_000)] {
            let (mut gate, id, mut flow, now) = gate();
            gate.message_bytes = 400;
            let flows = Flows::of_motes_that_try(motes, true, now);
            let mut at = now + Duration::from_secs(4);
            for round in 0..40 {
                flow.invites = 400;
                gate.on_pass(id, &flow, true, at);
                comes(&mut gate, &mut flow, 400 * round, at + ms(50));
                assert_eq!(gate.next(&flows, at + ms(50)), None, "nothing is held");
                at += ms(50);
            }
            let until = gate.quiet_until;
            assert_eq!(
                until,
                (quiet_ms > 0).then_some(at + ms(quiet_ms)),
                "{motes}"
            );
            assert_eq!(gate.admits(id, at), quiet_ms == 0, "{motes}");
            assert_eq!(gate.next(&flows, at + ms(quiet_ms)), None);
            assert!(gate.admits(id, at + ms(quiet_ms)), "{motes}");
        }
    }

    /// Of acknowledgments that are held, the next goes, too, until they make room for a segment.
    #[test]
    fn a_turn_makes_room_for_a_segment() {
        for (lens, turn) in [
            ([48, 400, 400], 2),
            ([199, 400, 400], 2),
            ([200, 400, 400], 1),
            ([400, 400, 400], 1),
            ([100, 100, 100], 2),
            ([40, 40, 40], 3),
        ] {
            let (mut gate, id, mut flow, now) = gate();
            let flows = Flows::new(&Config::default());
            gate.message_bytes = 400;
            let ack = |ack| Segment {
                direction: Direction::Down,
                ack: Some(ack),
                ..up(0, 0)
            };
            flow.on_pass(Direction::Down, Passing::of(&ack(0)), now);
            let mut end = 0;
            for (number, len) in (0..).zip(lens) {
                flow.on_segment(&up(end, len), now);
                end += len;
                flow.hold(PacketId(number), &ack(end), now);
                gate.on_held(id, &flow, now);
            }
            flow.on_segment(&up(end, 400), now);
            let mut released = 0;
            while released == 0 || gate.entering.is_some() {
                assert_eq!(gate.next(&flows, now), Some(id));
                let (held, is_news) = flow.release(Direction::Down, now).expect("one is held");
                gate.on_released(id, &flow, (&held, is_news), now);
                released += 1;
            }
            assert_eq!((released, gate.inside()), (turn, 1), "{lens:?}");
        }
    }

    /// A pure download once had no estimate of the mote's timer, and so was urgent at once: it went
    /// past the flows that were served less.
    #[test]
    fn data_into_the_mesh_wait_as_long_as_their_host_does() {
        let ms = Duration::from_millis;
        let segment = |direction, [seq, ack]: [u32; 2], payload_len: u32| Segment {
            direction,
            ack: Some(ack),
            ..up(seq, payload_len)
        };
        // Round trips of 100 ms through the mesh, and holding for as long as is said.
        for (hold, upload, least, most) in [
            (ms(0), 0, ms(200), ms(250)),
            (ms(500), 0, ms(700), ms(750)),
            // The mote waits for an acknowledgment, too, but no round trip beyond is known.
            (ms(0), 100, ms(200), ms(250)),
        ] {
            let mut now = Instant::ORIGIN + Duration::from_secs(1_000);
            let mut flow = Flow::new(KEY, now);
            let mut at = 0;
            for round in 0..40 {
                let data = segment(Direction::Down, [at, 0], 100);
                at += 100;
                flow.on_segment(&data, now);
                flow.hold(PacketId(round), &data, now);
                if round == 0 {
                    assert_eq!(patience(&flow), RTO_MIN, "nothing is known");
                }
                now += hold;
                flow.release(Direction::Down, now);
                now += ms(100);
                let ack = segment(Direction::Up, [0, at], 0);
                flow.on_segment(&ack, now);
                flow.on_pass(Direction::Up, Passing::of(&ack), now);
            }
            let asks = segment(Direction::Up, [0, at], upload);
            flow.on_segment(&asks, now);
            let data = segment(Direction::Down, [at, upload], 100);
            flow.on_segment(&data, now);
            flow.hold(PacketId(100), &data, now);
            let span = patience(&flow);
            assert!(least <= span && span <= most, "{hold:?} {upload}: {span:?}");
        }
    }
}
