//! Packets of all flows leave one at a time: TAiM, and fair queueing.
//!
//! Purpose: packets of both directions are held, in the order of each flow. They leave one at a
//! time, separated by a spacing: with TAiM one of the flow with the least throughput, with fair
//! queueing one of each flow in turn. Each minute TAiM's Algorithm 1 makes the spacing longer where
//! the fastest flow has more than twice the throughput of the slowest, shorter where it has less.
//! No flow is held while at most two flows are heavy, and flows that rest, or that only exchange
//! requests and responses, are never held ([`super::heavy_flows`]): the paper had thirty flows that
//! were alike. A packet that has waited for a minute leaves whatever the spacing: neither a starved
//! flow, nor a merged packet of thousands of segments, nor a spacing without bound holds it for
//! longer.
//!
//! The paper leaves open what follows; `docs/reference/fairness.md` gives the reasons.
//!
//! | | literal | corrected |
//! |---|---|---|
//! | priority | throughput of past minutes, smoothed | bytes delivered in the minute that runs |
//! | compared by Algorithm 1 | the same, smoothed | the minute that ends |
//! | the spacing is at most the mean timeout divided by | flows with a packet held, smoothed | packets held, smoothed |
//! | that number is below one | taken as it is | taken as one |
//! | just twice the throughput | the spacing stays | the spacing stays |
//!
//! Source: Park and Paek, sections III.A to III.D and Algorithm 1.

use std::collections::BTreeSet;

use motet::time::{Duration, Instant, earliest};

use super::HOLD_MAX;
use super::heavy_flows::{HeavyFlows, Sign};
use crate::config::{Fq, Taim};
use crate::flow::{Flow, HeldPacket, SegmentEffect};
use crate::flows::{FlowId, Flows};
use crate::segment::{Direction, Segment};

/// Chooses the packet that leaves next, and when it leaves.
#[derive(Debug)]
pub(crate) struct Pacer {
    order: Order,
    spacing: Duration,
    /// When the next packet may leave.
    free_at: Instant,
    /// First packets of flows, by priority, then by when they began to wait.
    waiting: BTreeSet<(u64, u64, FlowId, Direction)>,
    /// Flows and directions by the time at which their first packet must go.
    due: BTreeSet<(Instant, FlowId, Direction)>,
    /// The state of each flow, by its place in the table.
    shares: Vec<Share>,
    /// The classification of flows as heavy or light.
    flows: HeavyFlows,
    turns: u64,
    /// The number of packets held.
    held: u64,
    /// Smoothed: flows with a packet held, or packets held, as the order counts.
    mean_load: f64,
    minute_ends: Option<Instant>,
    /// Where a flow begins that has had nothing lately.
    level: u64,
    /// Packets let go because they were due.
    pub(crate) early: u64,
}

/// The order in which flows go.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Order {
    /// The flow with the least throughput first.
    Slowest(Taim),
    /// Each flow in turn.
    Turns,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// TAiM: bytes delivered in this minute. Fair queueing: bytes let go.
    bytes: u64,
    /// Bytes delivered in past minutes, smoothed.
    smoothed: f64,
    /// The flow's key in the order of flows; the least goes first.
    key: u64,
    /// The flow's places among those that wait, by direction.
    places: [Option<WaitingFlow>; 2],
    is_known: bool,
}

/// Where the first packet of a flow waits.
#[derive(Clone, Copy, Debug)]
struct WaitingFlow {
    key: u64,
    turn: u64,
    due: Instant,
}

impl Pacer {
    pub(crate) fn taim(taim: Taim) -> Self {
        Self::new(Order::Slowest(taim), taim.spacing)
    }

    pub(crate) fn fq(fq: Fq) -> Self {
        Self::new(Order::Turns, fq.spacing)
    }

    fn new(order: Order, spacing: Duration) -> Self {
        Self {
            order,
            spacing,
            free_at: Instant::ORIGIN,
            waiting: BTreeSet::new(),
            due: BTreeSet::new(),
            shares: Vec::new(),
            flows: HeavyFlows::default(),
            turns: 0,
            held: 0,
            mean_load: 0.0,
            minute_ends: None,
            level: 0,
            early: 0,
        }
    }

    pub(crate) const fn spacing(&self) -> Duration {
        self.spacing
    }

    /// Whether packets of a flow may be held: while flows contend, those of all flows that have
    /// more to send. A starving flow is included, because packets that pass at once add to the
    /// spaced ones.
    pub(crate) fn holds(&self, id: FlowId) -> bool {
        self.flows.contend() && self.flows.wants_more(id)
    }

    /// Counts the bytes that an arriving segment delivers for its flow.
    pub(crate) fn on_segment(
        &mut self,
        id: FlowId,
        flow: &Flow,
        segment: &Segment,
        (news, now): (&SegmentEffect, Instant),
    ) {
        self.flows.on_segment(id, Sign::of(segment, news), now);
        if segment.direction == Direction::Up && flow.is_over {
            self.flows.on_over(id);
        }
        let order = self.order;
        let share = self.share(id);
        share.is_known = true;
        if segment.direction == Direction::Up
            && let Order::Slowest(taim) = order
        {
            share.bytes += u64::from(news.new_bytes + news.newly_acknowledged);
            if !taim.literal {
                share.key = share.bytes;
                self.place_anew(id);
            }
        }
    }

    /// Whether an arriving segment passes at once, if no packet of its flow and direction is held.
    pub(crate) fn admits(&mut self, now: Instant) -> bool {
        self.waiting.is_empty() && self.free_at <= now
    }

    /// A packet of `segments` segments has gone without waiting.
    pub(crate) fn on_pass(&mut self, id: FlowId, (segments, bytes): (u32, u64), now: Instant) {
        let span = self.spacing.saturating_mul(u64::from(segments));
        self.free_at = now + span;
        if self.order == Order::Turns {
            self.level = self.level.max(self.share(id).key);
            let level = self.level;
            let share = self.share(id);
            share.key = share.key.max(level) + bytes;
        }
    }

    pub(crate) fn on_held(&mut self, id: FlowId, direction: Direction, now: Instant) {
        self.held += 1;
        if self.share(id).places[direction as usize].is_none() {
            self.queue(id, direction, now);
        }
    }

    pub(crate) fn on_released(
        &mut self,
        id: FlowId,
        flow: &Flow,
        direction: Direction,
        packet: &HeldPacket,
        now: Instant,
    ) {
        self.held = self.held.saturating_sub(1);
        self.unqueue(id, direction);
        self.on_pass(id, (packet.segments, packet.len), now);
        if let Some(first) = flow.first(direction) {
            self.queue(id, direction, first.since);
        }
    }

    pub(crate) fn on_forgotten(&mut self, id: FlowId) {
        self.flows.on_over(id);
        for direction in [Direction::Up, Direction::Down] {
            self.unqueue(id, direction);
        }
        *self.share(id) = Share::default();
    }

    /// The flow and the direction whose first packet goes now.
    pub(crate) fn next(&mut self, flows: &Flows, now: Instant) -> Option<(FlowId, Direction)> {
        self.pass_minutes(flows, now);
        if let Some((_, id, direction)) = self.due.first().filter(|(at, ..)| *at <= now) {
            self.early += 1;
            return Some((*id, *direction));
        }
        self.flows.look(now);
        let may_go = self.free_at <= now || !self.flows.contend();
        let (.., id, direction) = self.waiting.first().filter(|_| may_go)?;
        Some((*id, *direction))
    }

    /// When the next packet may leave.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let (due, ..) = self.due.first()?;
        let next = earliest(Some(self.free_at), self.flows.looks_at());
        earliest(Some(*due), next)
    }

    /// Where a minute is over, Algorithm 1.
    fn pass_minutes(&mut self, flows: &Flows, now: Instant) {
        let Order::Slowest(taim) = self.order else {
            return;
        };
        let ends = *self.minute_ends.get_or_insert(now + MINUTE);
        if now < ends {
            return;
        }
        self.minute_ends = Some(now + MINUTE);
        let busy = self.waiting.iter().map(|(.., id, _)| *id);
        // One by one: to collect into a set is to sort, by code that is larger.
        let mut distinct = BTreeSet::new();
        distinct.extend(busy);
        let busy = distinct.len() as f64;
        if taim.adapts {
            self.adapt(taim, flows);
        }
        for share in &mut self.shares {
            share.smoothed += WEIGHT * (share.bytes as f64 - share.smoothed);
            share.bytes = 0;
            share.key = if taim.literal {
                share.smoothed as u64
            } else {
                0
            };
        }
        let load = if taim.literal { busy } else { self.held as f64 };
        self.mean_load += WEIGHT * (load - self.mean_load);
        let ids: Vec<FlowId> = flows.iter().map(|(id, _)| id).collect();
        ids.into_iter().for_each(|id| self.place_anew(id));
    }

    /// Lines 2 to 10 of Algorithm 1.
    fn adapt(&mut self, taim: Taim, flows: &Flows) {
        let throughput = |share: &Share| match taim.literal {
            true => share.smoothed,
            false => share.bytes as f64,
        };
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for share in self.shares.iter().filter(|share| share.is_known) {
            least = least.min(throughput(share));
            most = most.max(throughput(share));
        }
        let spacing_us = self.spacing.as_micros() as f64;
        let adapted_us = if most > 2.0 * least {
            (spacing_us * (1.0 + ALPHA)).min(self.spacing_max_us(taim, flows))
        } else if most < 2.0 * least {
            spacing_us * (1.0 - BETA)
        } else {
            spacing_us
        };
        self.spacing = Duration::from_micros(adapted_us as u64);
    }

    /// The mean timeout of senders, divided by the mean load.
    fn spacing_max_us(&self, taim: Taim, flows: &Flows) -> f64 {
        let timeouts = flows.iter().filter_map(|(_, flow)| flow.sender_timeout());
        let (count, sum_us) = timeouts.fold((0.0, 0.0), |(count, sum), timeout| {
            (count + 1.0, sum + timeout.as_micros() as f64)
        });
        if count == 0.0 {
            return f64::INFINITY;
        }
        let load = if taim.literal {
            self.mean_load
        } else {
            self.mean_load.max(1.0)
        };
        sum_us / count / load
    }

    /// Lets the places of a flow that waits follow its key.
    fn place_anew(&mut self, id: FlowId) {
        for direction in [Direction::Up, Direction::Down] {
            let share = self.share(id);
            let key = share.key;
            if let Some(place) = share.places[direction as usize].as_mut()
                && place.key != key
            {
                let (old, turn) = (place.key, place.turn);
                place.key = key;
                self.waiting.remove(&(old, turn, id, direction));
                self.waiting.insert((key, turn, id, direction));
            }
        }
    }

    /// The first packet of a flow waits, having been held since then.
    fn queue(&mut self, id: FlowId, direction: Direction, since: Instant) {
        self.turns += 1;
        let (turn, due) = (self.turns, since + HOLD_MAX);
        let share = self.share(id);
        let key = share.key;
        share.places[direction as usize] = Some(WaitingFlow { key, turn, due });
        self.waiting.insert((key, turn, id, direction));
        self.due.insert((due, id, direction));
    }

    fn unqueue(&mut self, id: FlowId, direction: Direction) {
        let place = self.share(id).places[direction as usize].take();
        if let Some(WaitingFlow { key, turn, due }) = place {
            self.waiting.remove(&(key, turn, id, direction));
            self.due.remove(&(due, id, direction));
        }
    }

    fn share(&mut self, id: FlowId) -> &mut Share {
        if self.shares.len() <= id.index() {
            self.shares.resize(id.index() + 1, Share::default());
        }
        &mut self.shares[id.index()]
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// The part by which the spacing grows and shrinks (TAiM, section III.C).
const ALPHA: f64 = 0.02;
const BETA: f64 = 0.05;

/// Weight of the newest value in a smoothed one. The paper gives none.
const WEIGHT: f64 = 0.25;
