//! The order of the queues: start-time fair queueing, the share of strangers, and which queue gives
//! way.

use super::key::is_tcps;
use super::{FLOWS_AT, FRAME_LEN, FlowQueues, QueueShare, Turn};
use crate::time::{Duration, Instant};

/// Until when strangers have had their part of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    tcp: Instant,
    others: Instant,
}

impl Until {
    pub(super) const NEW: Self = Self {
        tcp: Instant::ORIGIN,
        others: Instant::ORIGIN,
    };

    const fn of(&self, is_tcp: bool) -> Instant {
        if is_tcp { self.tcp } else { self.others }
    }

    fn extend(&mut self, is_tcp: bool, by: Duration, now: Instant) {
        let until = match is_tcp {
            true => &mut self.tcp,
            false => &mut self.others,
        };
        *until = ((*until).max(now) + by).min(now + PART_MAX);
    }
}

impl FlowQueues<'_> {
    /// Adds packets to a queue (`bytes` in memory). If it was empty, its turn comes after what it
    /// has sent, and not before the packet that left last; a stranger's, after every known flow
    /// that waits. What other strangers owe puts nobody off.
    pub(super) fn join(&mut self, key: u8, packets: u16, bytes: usize) {
        self.order = self.order.wrapping_add(1);
        let order = self.order;
        let begins = match key < FLOWS_AT {
            true => self.last_known_start().max(self.shared_out),
            false => self.shared_out,
        };
        let Some(lane) = self.lane_mut(key) else {
            return;
        };
        if lane.is_empty() {
            let start = lane.turn.start.max(begins);
            lane.turn = Turn { start, order };
        }
        lane.add(packets, bytes);
    }

    /// Where the last of the known flows stands that wait.
    fn last_known_start(&self) -> u64 {
        let waiting = self.flows.iter().filter(|flow| !flow.lane.is_empty());
        waiting
            .map(|flow| flow.lane.turn.start)
            .max()
            .unwrap_or_default()
    }

    /// The turn of a queue. A queue whose packets could not go for a while takes up nothing of what
    /// the others have used meanwhile.
    fn turn(&self, lane: &QueueShare) -> Turn {
        Turn {
            start: lane.turn.start.max(self.shared_out),
            order: lane.turn.order,
        }
    }

    /// The queue that sends next, and how many of its packets wait for their next hops before the
    /// one that may leave.
    pub(super) fn next(
        &mut self,
        is_ready: impl Fn(&[u8]) -> bool,
        now: Instant,
    ) -> Option<(u8, usize)> {
        let [others_wait, tcp_waits] =
            [false, true].map(|is_tcp| self.must_strangers_wait(is_tcp, now));
        let waits = |key: u8| match is_tcps(key) {
            true => key < FLOWS_AT && tcp_waits,
            false => others_wait,
        };
        let held_up = self
            .lanes()
            .filter(|(key, lane)| !lane.is_empty() && waits(*key));
        let until = held_up.map(|(key, _)| self.strangers_until.of(is_tcps(key)));
        self.wakes_at = until.min();
        let mut best: Option<(Turn, u8, usize)> = None;
        for (key, lane) in self.lanes() {
            if lane.is_empty() || waits(key) {
                continue;
            }
            let mut packets = self.queues.packets(key).take(LOOKS_AT);
            let Some(nth) = packets.position(|kept| is_ready(kept.packet)) else {
                continue;
            };
            let own = (self.turn(lane), key, nth);
            best = Some(best.map_or(own, |best| best.min(own)));
        }
        let (turn, key, nth) = best?;
        self.share_out(turn.start, waits);
        Some((key, nth))
    }

    /// Takes note of a turn. What a stranger owes it still owes behind the time for which it must
    /// wait (`waits`): meanwhile its turn moves off with those of others.
    fn share_out(&mut self, turn: u64, waits: impl Fn(u8) -> bool) {
        let step = turn.saturating_sub(self.shared_out);
        for (key, stranger) in (0..FLOWS_AT).zip(&mut self.strangers) {
            let start = &mut stranger.lane.turn.start;
            if waits(key) && *start > self.shared_out {
                *start = start.saturating_add(step);
            }
        }
        self.shared_out = turn;
    }

    /// Drops the oldest packet of the longest queue, of which the one of `key` is to hold `more`
    /// bytes besides. Returns whether there was one.
    ///
    /// Lengths are compared in frames: by the byte, the flow whose lone ACK has an option more than
    /// the others' would lose every one. Of queues as long as each other a stranger's gives way,
    /// then the one that holds something, and whose turn is last. A flow that always lost such a
    /// tie would starve.
    pub(super) fn drop_longest(&mut self, key: u8, more: usize) -> bool {
        let rank = |(other, lane): &(u8, &QueueShare)| {
            let more = if *other == key { more } else { 0 };
            let frames = (lane.bytes as usize)
                .saturating_add(more)
                .div_ceil(FRAME_LEN);
            (frames, *other < FLOWS_AT, !lane.is_empty(), self.turn(lane))
        };
        let Some((longest, _)) = self.lanes().max_by_key(rank) else {
            return false;
        };
        if !self.take(longest, 0) {
            return false;
        }
        self.counters.dropped = self.counters.dropped.wrapping_add(1);
        true
    }

    /// Drops the oldest packets of strangers' queues in which none that is looked at can go.
    pub(super) fn drop_stuck(&mut self, is_ready: impl Fn(&[u8]) -> bool) {
        for key in 0..FLOWS_AT {
            while self.is_stuck(key, &is_ready) && self.take(key, 0) {
                self.counters.dropped = self.counters.dropped.wrapping_add(1);
            }
        }
    }

    /// Whether none of the first `LOOKS_AT` packets of a queue can leave, and further packets wait
    /// behind them.
    fn is_stuck(&self, key: u8, is_ready: impl Fn(&[u8]) -> bool) -> bool {
        let lane = self.lane(key);
        lane.is_some_and(|lane| usize::from(lane.packets) > LOOKS_AT) && {
            let mut looked_at = self.queues.packets(key).take(LOOKS_AT);
            !looked_at.any(|kept| is_ready(kept.packet))
        }
    }

    /// Whether strangers of this kind have had their part of the time, and TCP is in use.
    pub(super) fn must_strangers_wait(&self, is_tcp: bool, now: Instant) -> bool {
        let in_use = self.tcp_at.is_some_and(|at| now.since(at) < IN_USE_FOR);
        in_use && now < self.strangers_until.of(is_tcp)
    }

    /// Charges a queue what was on the air for it: its next turn comes so much later.
    pub(super) fn charge(&mut self, key: u8, air: usize, hops: u8, now: Instant) {
        let air = air.saturating_mul(usize::from(hops)) as u64;
        if key < FLOWS_AT {
            let span = Duration::from_micros(air.saturating_mul(BYTE_US * STRANGERS_PART));
            self.strangers_until.extend(is_tcps(key), span, now);
        }
        self.order = self.order.wrapping_add(1);
        let (order, shared_out) = (self.order, self.shared_out);
        let Some(lane) = self.lane_mut(key) else {
            return;
        };
        let start = lane.turn.start.max(shared_out).saturating_add(air);
        let start = start.min(shared_out.saturating_add(DEBT_MAX));
        lane.turn = Turn { start, order };
    }
}

/// While TCP is in use, strangers get one part in this many of the air time, computed with
/// [`BYTE_US`] and [`FRAME_OVERHEAD`]. A single connection uses some 60 % of the air time by the
/// same computation; in the rest hops wait for each other. So a connection keeps more than half of
/// its goodput.
const STRANGERS_PART: u64 = 4;

/// The longest time by which strangers may use up their share in advance: three datagrams of 1,280
/// bytes over three hops with their answers, 2.9 s each, which may come in a burst. A longer time
/// would block strangers for too long afterwards.
pub(super) const PART_MAX: Duration = Duration::from_secs(9);

/// The most packets of a queue that are checked for one whose next hop can take it.
const LOOKS_AT: usize = 8;

/// TCP is in use for so long behind its last packet: longer than a timeout or two.
pub(super) const IN_USE_FOR: Duration = Duration::from_secs(10);

/// A byte on the air of IEEE 802.15.4 at 2.4 GHz.
pub(super) const BYTE_US: u64 = 32;

/// How far frames, and the answers to a stranger, may put off a queue's next turn, in bytes over
/// one hop: more than one packet of IPv6's least MTU over three hops.
const DEBT_MAX: u64 = 12_000;
