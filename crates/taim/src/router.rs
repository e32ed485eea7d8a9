//! A packet in, a decision out.

use std::collections::VecDeque;

use motet::time::{Instant, earliest};

use crate::clock::Clock;
use crate::config::{Config, Policy};
use crate::flow::{Flow, Passing};
use crate::flows::{FlowId, Flows, Found};
use crate::policy::{Relay, Rule, Verdict};
use crate::segment::{self, Direction, FlowKey, Pair, Segment};
use crate::status::{self, Counters, Status};
use crate::strangers::Strangers;

/// The number of a packet that the caller keeps. Each that is held must have another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PacketId(pub u64);

/// A packet that passes the border router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The caller's number of it.
    pub id: PacketId,
    /// The packet's direction.
    pub direction: Direction,
    /// The packet's first bytes: from the IPv6 header to the end of the TCP header, or more. The
    /// policy `relay` keeps only packets that are here whole.
    pub headers: &'a [u8],
    /// Bytes of all of it.
    pub len: usize,
}

/// The decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Decision {
    /// The packet goes on now.
    Pass,
    /// The caller keeps it until [`Router::poll`] names it.
    Hold,
}

/// Decides when packets pass a border router.
#[derive(Debug)]
pub struct Router {
    config: Config,
    clock: Clock,
    flows: Flows,
    rule: Rule,
    strangers: Strangers,
    /// Packets that were held and go on now.
    ready: VecDeque<PacketId>,
    /// Duplicate ACKs that were held and are to be dropped.
    swallowed: VecDeque<PacketId>,
    /// Packets that wait for their turn.
    waiting: usize,
    is_closing: bool,
    counters: Counters,
}

impl Router {
    /// A router that has seen nothing.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            clock: Clock::default(),
            flows: Flows::new(&config),
            rule: Rule::new(config.policy),
            strangers: Strangers::new(config.strangers_max),
            ready: VecDeque::new(),
            swallowed: VecDeque::new(),
            waiting: 0,
            is_closing: false,
            counters: Counters::default(),
        }
    }

    /// The router's settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Another policy from now on; packets that the former one holds go at once.
    pub fn set_policy(&mut self, policy: Policy, now: Instant) {
        let now = self.read(now);
        self.release_waiting(now);
        self.counters.resent += self.resent_now();
        self.config.policy = policy;
        self.rule = Rule::new(policy);
    }

    /// A packet has come. Then, whatever the decision, the caller calls [`Self::poll`] until it
    /// gives nothing.
    pub fn on_packet(&mut self, packet: &Packet<'_>, now: Instant) -> Decision {
        let now = self.read(now);
        let segment = Segment::read(packet.direction, packet.headers, packet.len);
        if segment.is_none() && segment::is_of_link(packet.headers) {
            // It goes no further than the link: nothing that passes the router.
            return Decision::Pass;
        }
        self.counters.packets += 1;
        let Some(segment) = segment else {
            self.counters.others += 1;
            return self.meet_stranger(packet, None, now);
        };
        self.sweep(now);
        let id = match self.flows.find(&segment, &mut self.counters, now) {
            Found::Flow(id) => id,
            // The table of flows is full, but the packet belongs to an open connection, so it is
            // not a stranger's.
            Found::Full => return self.pass_unknown(packet, &segment.flow, now),
            Found::Nothing => {
                self.counters.strangers += 1;
                return self.meet_stranger(packet, Some(segment.flow), now);
            }
        };
        self.strangers.note_tcp(now);
        self.take_strangers(&segment.flow);
        let decision = match self.rule {
            Rule::Relay(_) => self.relay(id, &segment, packet, now),
            _ => self.judge(id, &segment, packet.id, now),
        };
        self.advance(now);
        decision
    }

    /// The next packet of those held that goes now.
    pub fn poll(&mut self, now: Instant) -> Option<PacketId> {
        let now = self.read(now);
        if self.ready.is_empty() {
            self.advance(now);
        }
        let id = self.ready.pop_front()?;
        self.counters.released += 1;
        Some(id)
    }

    /// A packet that the caller sends into the mesh besides, in front of those of [`Self::poll`]: a
    /// copy of one that passed. Only the policy `relay` has any.
    pub fn poll_copy(&mut self, now: Instant) -> Option<&[u8]> {
        let now = self.read(now);
        self.advance(now);
        match &mut self.rule {
            Rule::Relay(relay) => relay.poll_copy(),
            _ => None,
        }
    }

    /// The next packet of those held that the caller is to drop: it is of a stranger, and found no
    /// room; or a duplicate ACK that the policy `relay` has answered.
    pub fn poll_dropped(&mut self) -> Option<PacketId> {
        if let Some(id) = self.swallowed.pop_front() {
            return Some(id);
        }
        let id = self.strangers.poll_dropped()?;
        self.counters.dropped += 1;
        Some(id)
    }

    /// When [`Self::poll`] may next return a packet without an arrival, by the caller's clock.
    pub fn next_deadline(&self) -> Option<Instant> {
        let relay = self.rule.relay();
        let has_copy = relay.is_some_and(Relay::has_copy);
        if !self.ready.is_empty() || !self.swallowed.is_empty() || has_copy {
            return Some(self.clock.outside(self.clock.now()));
        }
        let is_awaited = self.waiting > 0 || relay.is_some();
        let due = self.rule.next_deadline().filter(|_| is_awaited);
        let due = earliest(due, self.strangers.next_deadline());
        due.map(|due| self.clock.outside(due))
    }

    /// Lets all held packets go with the next calls of [`Self::poll`], and holds none from now on:
    /// the router is about to end.
    pub fn release_all(&mut self) {
        self.is_closing = true;
        let ready = &mut self.ready;
        self.strangers.take_all(|id| ready.push_back(id));
        self.release_waiting(self.clock.now());
    }

    /// How many packets are held.
    pub fn held(&self) -> usize {
        let dropped = self.swallowed.len() + self.strangers.dropped();
        self.waiting + self.ready.len() + self.strangers.len() + dropped
    }

    /// The router's counters since it began.
    pub const fn counters(&self) -> Counters {
        Counters {
            released_early: self.rule.early(),
            resent: self.counters.resent + self.resent_now(),
            ..self.counters
        }
    }

    const fn resent_now(&self) -> u64 {
        match self.rule.relay() {
            Some(relay) => relay.resent,
            None => 0,
        }
    }

    /// All that is known of flows and motes.
    pub fn status(&mut self, now: Instant) -> Status {
        let now = self.read(now);
        status::of(&self.config, &self.rule, &self.flows, self.counters(), now)
    }

    /// The router's own time at the instant `outside`, which steps of the clock do not change.
    fn read(&mut self, outside: Instant) -> Instant {
        if self.clock.is_step_back(outside) {
            self.counters.clock_steps += 1;
        }
        self.clock.read(outside)
    }

    /// Handles a packet that is of no known flow; `flow`: where it is TCP's.
    fn meet_stranger(
        &mut self,
        packet: &Packet<'_>,
        flow: Option<FlowKey>,
        now: Instant,
    ) -> Decision {
        if !self.strangers.are_queued() || self.is_closing {
            return Decision::Pass;
        }
        let Some(pair) = Pair::read(packet.direction, packet.headers) else {
            return Decision::Pass;
        };
        if packet.direction == Direction::Up {
            self.strangers.on_up(pair, flow.is_some(), packet.len, now);
            return Decision::Pass;
        }
        let passes = self
            .strangers
            .admits(packet.id, (pair, flow), packet.len, now);
        if passes && self.ready.is_empty() {
            return Decision::Pass;
        }
        if passes {
            // The caller has not polled packets that may leave already: this packet must leave
            // after them.
            self.ready.push_back(packet.id);
        }
        self.counters.held += 1;
        Decision::Hold
    }

    /// Releases the packets that waited while their flow was still unknown: they leave before the
    /// present one.
    fn take_strangers(&mut self, flow: &FlowKey) {
        let ready = &mut self.ready;
        self.strangers.take_flow(flow, |id| ready.push_back(id));
    }

    /// A segment whose flow does not fit the table leaves after the waiting packets of that flow.
    fn pass_unknown(&mut self, packet: &Packet<'_>, flow: &FlowKey, now: Instant) -> Decision {
        self.take_strangers(flow);
        if packet.direction == Direction::Up
            && let Some(pair) = Pair::read(packet.direction, packet.headers)
        {
            // The answer may be an RST, which belongs to no flow, so the answer is expected here.
            self.strangers.on_up(pair, true, packet.len, now);
        }
        self.pass_behind_ready(packet.id)
    }

    /// Decides whether a segment of a known flow passes or is held.
    fn judge(&mut self, id: FlowId, segment: &Segment, packet: PacketId, now: Instant) -> Decision {
        let is_full = self.waiting + self.ready.len() >= self.config.held_max;
        let Some(flow) = self.flows.get_mut(id) else {
            return Decision::Pass;
        };
        let direction = segment.direction;
        let news = flow.on_segment(segment, now);
        self.counters.strays += u64::from(news.is_stray);
        self.rule.on_segment(id, flow, segment, &news, now);
        let is_first = flow.held(direction) == 0;
        let may_hold = !self.is_closing && !segment.is_control() && self.rule.holds(id, segment);
        if !may_hold {
            // Behind those of its flow that are held: they go before it.
            self.release_lane(id, direction, now);
            return self.pass_behind(id, segment, packet, now);
        }
        if is_first && (flow.is_last_word(segment) || self.rule.admits(id, now)) {
            return self.pass_behind(id, segment, packet, now);
        }
        if is_full || flow.held(direction) >= self.config.held_per_flow_max {
            self.counters.queue_full += 1;
            self.release_lane(id, direction, now);
            return self.pass_behind(id, segment, packet, now);
        }
        flow.hold(packet, segment, now);
        self.waiting += 1;
        self.counters.held += 1;
        self.rule.on_held(id, flow, direction, now);
        Decision::Hold
    }

    /// Asks the policy `relay` about a segment of a known flow.
    fn relay(
        &mut self,
        id: FlowId,
        segment: &Segment,
        packet: &Packet<'_>,
        now: Instant,
    ) -> Decision {
        let is_full =
            self.waiting + self.ready.len() + self.swallowed.len() >= self.config.held_max;
        let Some(flow) = self.flows.get_mut(id) else {
            return Decision::Pass;
        };
        let news = flow.on_segment(segment, now);
        self.counters.strays += u64::from(news.is_stray);
        if flow.is_refused() && !segment.is_control() {
            // The device has reset it: nothing goes again that it would only reset again.
            return self.pass_behind(id, segment, packet.id, now);
        }
        self.make_room(id, segment, now);
        let (Some(flow), Rule::Relay(relay)) = (self.flows.get(id), &mut self.rule) else {
            return Decision::Pass;
        };
        let held_max = self.config.held_per_flow_max;
        let has_room = !is_full && flow.held(segment.direction) < held_max;
        let may_hold = has_room && !self.is_closing;
        let shown = (segment, flow.mote_ack());
        match relay.on_segment(id, shown, packet.headers, (may_hold, now)) {
            Verdict::Pass => {}
            Verdict::Behind => {
                self.counters.queue_full += u64::from(is_full);
                self.release_lane(id, segment.direction, now);
                if segment.is_control() {
                    self.release_lane(id, segment.direction.back(), now);
                    self.rule.on_forgotten(id);
                }
            }
            Verdict::Hold => {
                if let Some(flow) = self.flows.get_mut(id) {
                    flow.hold(packet.id, segment, now);
                    self.waiting += 1;
                    self.counters.held += 1;
                }
                return Decision::Hold;
            }
            Verdict::Swallow => {
                self.swallowed.push_back(packet.id);
                self.counters.held += 1;
                self.counters.swallowed += 1;
                return Decision::Hold;
            }
        }
        self.pass_behind(id, segment, packet.id, now)
    }

    /// Where the table of relayed flows is full, one that makes no progress yields its place to the
    /// flow of a segment.
    fn make_room(&mut self, id: FlowId, segment: &Segment, now: Instant) {
        let acknowledged = self.flows.get(id).and_then(Flow::mote_ack);
        if let Rule::Relay(relay) = &mut self.rule
            && let Some(yielding) = relay.yielding(id, (segment, acknowledged), now)
        {
            self.release_lane(yielding, Direction::Down, now);
            self.rule.on_forgotten(yielding);
        }
    }

    /// Lets a segment go at once, but behind those that go now.
    fn pass_behind(
        &mut self,
        id: FlowId,
        segment: &Segment,
        packet: PacketId,
        now: Instant,
    ) -> Decision {
        if let Some(flow) = self.flows.get_mut(id) {
            let is_news = flow.on_pass(segment.direction, Passing::of(segment), now);
            if self.rule.holds(id, segment) {
                self.rule.on_pass(id, flow, segment, is_news, now);
            }
        }
        self.pass_behind_ready(packet)
    }

    /// Lets a packet go behind those that go now.
    fn pass_behind_ready(&mut self, id: PacketId) -> Decision {
        // A caller that does not poll is not to make the router grow.
        let is_full = self.waiting + self.ready.len() > self.config.held_max;
        if self.ready.is_empty() || is_full {
            return Decision::Pass;
        }
        self.ready.push_back(id);
        self.counters.held += 1;
        Decision::Hold
    }

    /// Lets go what the policy lets go.
    fn advance(&mut self, now: Instant) {
        while let Some((id, direction)) = self.rule.next(&self.flows, now) {
            self.release(id, direction, now);
        }
        while let Some(id) = self.strangers.next(now) {
            self.ready.push_back(id);
        }
    }

    fn release(&mut self, id: FlowId, direction: Direction, now: Instant) {
        let Some(flow) = self.flows.get_mut(id) else {
            return;
        };
        let Some((held, is_news)) = flow.release(direction, now) else {
            return;
        };
        self.waiting -= 1;
        self.ready.push_back(held.id);
        self.rule
            .on_released(id, flow, (direction, is_news), &held, now);
    }

    fn release_lane(&mut self, id: FlowId, direction: Direction, now: Instant) {
        while self
            .flows
            .get(id)
            .is_some_and(|flow| flow.held(direction) > 0)
        {
            self.release(id, direction, now);
        }
    }

    fn release_waiting(&mut self, now: Instant) {
        let all: Vec<FlowId> = self.flows.iter().map(|(id, _)| id).collect();
        for id in all {
            for direction in [Direction::Up, Direction::Down] {
                self.release_lane(id, direction, now);
            }
        }
    }

    /// Forgets flows that are over or silent.
    fn sweep(&mut self, now: Instant) {
        for id in self.flows.stale(now) {
            self.rule.on_forgotten(id);
            self.flows.forget(id, now);
        }
    }
}
