//! Queues of flows where packets enter a mesh: each flow has its share of the air.
//!
//! Behind a border router the air is the bottleneck, and one queue for all gives it to whoever
//! sends most: a host that sends datagrams without looking starves every TCP connection. So each
//! flow has a queue of its own, and the queues share the air by deficit round robin: a flow's turn
//! ends when its frames have used up its share. A flow that had nothing waiting goes first (RFC
//! 8290's sparse flows). Where no packet finds room, the longest queue loses its oldest one.
//!
//! A flow of TCP gets its own queue once its mote has acknowledged something in it: no stranger can
//! forge that from outside. All other packets are strangers': datagrams, echo requests, SYNs. They
//! share [`STRANGERS`] queues by pair of addresses, without the precedence of sparse flows, and the
//! queues of one source share one queue's part. Half of these queues are TCP's, so that no datagram
//! stands before a handshake. What a stranger makes a mote answer is charged to its queue too.
//!
//! A window of TCP is often under way whole, and nothing of its flow waits here. What strangers
//! then send is ahead of its acknowledgments in every queue below, and so are their answers in the
//! mote, where nobody takes turns. So while TCP is in use, strangers together have the air for a
//! part of the time at most ([`STRANGERS_PART`]), those of TCP for one and all others for another;
//! without TCP they have it all.
//!
//! Place: between IP and the fragmenter, at a node that also has a cable ([`super::entering`] joins
//! it).
//! Left out: marking and dropping before memory is full, which is the queue's discipline
//! ([`crate::ip`]).
//! Sources: RFC 8290 §4; Shreedhar and Varghese 1995 for deficit round robin. Differs: frames and
//! not bytes are counted, and a round ends for all queues at once.

mod key;
mod turns;

use self::key::{EACH, Key, Pair, START_LEN, beginning, first_of, is_tcps};
use self::turns::Until;
use crate::ip::{IpCounters, PacketDrop};
use crate::link::arrival::Refusal;
use crate::storage::shelf::{OVERHEAD, Shelf};
use crate::time::{Duration, Instant};
use crate::wire::cursor::copy;
use crate::wire::ipv6::{HEADER_LEN, Header};
use crate::wire::tcp;

/// Packets that enter a mesh, by flow, in borrowed memory.
#[derive(Debug)]
pub struct FlowQueues<'m> {
    shelf: Shelf<'m>,
    strangers: [Stranger; STRANGERS],
    flows: &'m mut [FlowEntry],
    /// Places in the order of turns that were given out.
    turns: u64,
    /// The queue whose packet is being sent, and since when.
    serving: Option<(u8, Instant)>,
    /// Until when what strangers have sent, and were answered, takes their part of the time: those
    /// of TCP, and all others.
    strangers_until: Until,
    /// When a packet of TCP last passed, either way.
    tcp_at: Option<Instant>,
    /// Of the packets of strangers that have left last, what tells their pair from others: theirs
    /// are the answers.
    sent: [u32; SENT_MAX],
    /// When a packet may leave that waits only because strangers have had their part of the time.
    wakes_at: Option<Instant>,
    /// Whether the node's own TCP is asked before the queues are.
    pub(super) is_own_turn: bool,
    counters: FlowCounters,
}

/// Room for one flow of TCP, borrowed from the caller; [`FlowEntry::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct FlowEntry {
    key: Option<Key>,
    /// When a packet of it last passed.
    used: Instant,
    lane: Lane,
}

/// What became of packets; each wraps at 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounters {
    /// Packets that were queued.
    pub queued: u32,
    /// Packets that left for the air.
    pub sent: u32,
    /// Packets dropped after they were queued: theirs was the longest queue when room was needed.
    pub dropped: u32,
    /// Packets that found no room, because their own queue was the longest and had none to give.
    pub refused: u32,
}

/// A queue for packets of flows that have proven nothing.
#[derive(Clone, Debug)]
struct Stranger {
    /// The pair of addresses that it is kept for; others may share it.
    pair: Option<Pair>,
    used: Instant,
    lane: Lane,
}

/// One queue's share and its place among the others.
#[derive(Clone, Copy, Debug)]
struct Lane {
    place: Place,
    /// Air that it may still use in this round, in the unit of [`air`].
    credit: i32,
    packets: u16,
    /// Bytes that its packets take on the shelf.
    bytes: u32,
}

/// Where a queue stands. Lower turns go first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    /// It had nothing waiting when its packet came: it goes before those that had.
    New(u64),
    /// It has used up a share, or has not earned to go first.
    Old(u64),
    /// It has no part in the round.
    Out,
}

/// A packet that leaves its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::link) struct Next {
    /// Its length, of which as much was copied as there was room for.
    pub(in crate::link) len: usize,
    /// As given to [`FlowQueues::push`].
    pub(in crate::link) mark: u32,
}

impl FlowEntry {
    /// No flow.
    pub const EMPTY: Self = Self {
        key: None,
        used: Instant::ORIGIN,
        lane: Lane::OUT,
    };
}

impl Lane {
    const OUT: Self = Self {
        place: Place::Out,
        credit: 0,
        packets: 0,
        bytes: 0,
    };

    const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Takes note of packets that came (`bytes` on the shelf).
    fn add(&mut self, packets: u16, bytes: usize) {
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes as u32);
    }

    /// Takes note of packets that went.
    fn remove(&mut self, packets: u16, bytes: usize) {
        self.packets = self.packets.saturating_sub(packets);
        self.bytes = self.bytes.saturating_sub(bytes as u32);
    }
}

impl<'m> FlowQueues<'m> {
    /// No flow is known and nothing waits.
    ///
    /// `packets`: bytes for packets, each of which takes seven more than its length. `flows`: flows
    /// of TCP that are told apart, 247 at most; those beyond share the queues of strangers.
    pub fn new(packets: &'m mut [u8], flows: &'m mut [FlowEntry]) -> Self {
        for flow in flows.iter_mut() {
            *flow = FlowEntry::EMPTY;
        }
        const NEW: Stranger = Stranger {
            pair: None,
            used: Instant::ORIGIN,
            lane: Lane::OUT,
        };
        Self {
            shelf: Shelf::new(packets),
            strangers: [NEW; STRANGERS],
            flows,
            turns: 0,
            serving: None,
            strangers_until: Until::NEW,
            tcp_at: None,
            sent: [0; SENT_MAX],
            wakes_at: None,
            is_own_turn: false,
            counters: FlowCounters::default(),
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> (&'m mut [u8], &'m mut [FlowEntry]) {
        (self.shelf.into_memory(), self.flows)
    }

    /// What became of packets.
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.lanes()
            .map(|(_, lane)| usize::from(lane.packets))
            .sum()
    }

    /// Packets that wait in the queue that this one, which lies in two pieces, would go into.
    pub(in crate::link) fn waiting_before(&self, parts: [&[u8]; 2]) -> usize {
        let known = Key::read(beginning(parts, &mut [0; START_LEN])).and_then(|(pair, key)| {
            let flow = key.and_then(|key| self.find(&key));
            self.lane(flow.unwrap_or(self.stranger_of(&pair, key.is_some())))
        });
        known.map_or(0, |lane| usize::from(lane.packets))
    }

    /// Queues a packet that lies in two pieces. `drops` counts the packets that it takes the room of.
    ///
    /// # Errors
    /// [`Refusal::Full`]: its own queue is the longest, and holds nothing.
    pub(in crate::link) fn push(
        &mut self,
        parts: [&[u8]; 2],
        mark: u32,
        drops: &mut IpCounters,
        now: Instant,
    ) -> Result<(), Refusal> {
        let total = parts.iter().map(|part| part.len()).sum::<usize>();
        let total = total.saturating_add(OVERHEAD);
        let key = self.queue_of(beginning(parts, &mut [0; START_LEN]), now);
        while self.shelf.room() < total {
            // What can never fit costs nobody anything.
            if total > self.shelf.capacity() || !self.drop_longest(key, total) {
                return Err(self.refuse());
            }
            drops.count(PacketDrop::QueueFull);
        }
        if !self.shelf.push_parts(key, parts, mark) {
            return Err(self.refuse());
        }
        self.counters.queued = self.counters.queued.wrapping_add(1);
        if let Some(lane) = self.lane_mut(key) {
            lane.add(1, total);
        }
        self.take_part(key);
        Ok(())
    }

    fn refuse(&mut self) -> Refusal {
        self.counters.refused = self.counters.refused.wrapping_add(1);
        Refusal::Full
    }

    /// Copies the packet whose turn it is into `out` and takes it out of its queue. `is_ready`:
    /// whether the next hop of a packet takes it now; those that it does not take wait, and let
    /// others go before.
    pub(in crate::link) fn pop(
        &mut self,
        out: &mut [u8],
        is_ready: impl Fn(&[u8]) -> bool,
        now: Instant,
    ) -> Option<Next> {
        let key = self.next(is_ready, now)?;
        let first = self.shelf.first(key)?;
        let (len, mark) = (first.packet.len(), first.mark);
        copy(out, first.packet);
        let stranger = Key::read(first.packet).filter(|_| key < FLOWS_AT);
        if let Some((pair, _)) = stranger {
            self.sent.rotate_left(1);
            let [.., last] = &mut self.sent;
            *last = pair.hash();
        }
        self.take_first(key);
        self.counters.sent = self.counters.sent.wrapping_add(1);
        self.serving = Some((key, now));
        Some(Next { len, mark })
    }

    /// Charges what was put on the air of the packet that left last: `len` bytes of a frame's
    /// payload, which go over so many hops.
    pub(in crate::link) fn charge_frame(&mut self, len: usize, hops: u8) {
        if let Some((key, since)) = self.serving {
            self.charge(key, len.saturating_add(FRAME_OVERHEAD), hops, since);
        }
    }

    /// As [`Self::charge_frame`] of a packet of `len` bytes whose frames nobody sees here.
    pub(in crate::link) fn charge_packet(&mut self, len: usize, hops: u8) {
        if let Some((key, since)) = self.serving {
            self.charge(key, air(len), hops, since);
        }
    }

    /// When to ask for a packet though nothing has happened: one waits only because strangers have
    /// had their part of the time.
    pub(in crate::link) const fn next_deadline(&self) -> Option<Instant> {
        self.wakes_at
    }

    /// The caller has come, because of the deadline or for another reason; asking for a packet sets
    /// it anew.
    pub(in crate::link) const fn end_deadline(&mut self) {
        self.wakes_at = None;
    }

    /// What is put on the air from now on belongs to none of these queues.
    pub(in crate::link) const fn end_service(&mut self) {
        self.serving = None;
    }

    /// Learns from a packet that leaves the mesh: an acknowledgment of a mote's makes its flow
    /// known; anything else may answer a stranger, who pays for it.
    pub(in crate::link) fn on_leaving(&mut self, packet: &[u8], hops: u8, now: Instant) {
        let Ok((header, rest)) = Header::parse_start(packet) else {
            return;
        };
        let pair = Pair {
            src: header.dst,
            dst: header.src,
        };
        let is_tcp = header.next_header == tcp::NEXT_HEADER;
        let segment = tcp::Header::parse(rest).ok().filter(|_| is_tcp);
        if is_tcp {
            self.tcp_at = Some(now);
        }
        if let Some((read, _)) = segment
            && read.flags.contains(tcp::Flags::ACK)
            && !read.flags.intersects(tcp::Flags::SYN | tcp::Flags::RST)
        {
            let ports = u32::from(read.dst_port) << 16 | u32::from(read.src_port);
            return self.prove(Key { pair, ports }, now);
        }
        if self.sent.contains(&pair.hash()) {
            let key = self.stranger_of(&pair, is_tcp);
            let air = air(packet.len()).saturating_mul(ANSWER_WEIGHT);
            self.charge(key, air, hops, now);
        }
    }

    /// Gives a flow a queue of its own, where there is a place: that of the flow that has been
    /// silent for longest and has nothing waiting. Its packets that wait elsewhere come along, in
    /// their order.
    fn prove(&mut self, key: Key, now: Instant) {
        if let Some(place) = self.find(&key) {
            return self.touch(place, now);
        }
        let rank = |flow: &FlowEntry| (flow.key.is_some(), flow.used);
        let places = (FLOWS_AT..=u8::MAX).zip(self.flows.iter_mut());
        let free = places.filter(|(_, flow)| flow.lane.is_empty());
        let Some((place, flow)) = free.min_by_key(|(_, flow)| rank(flow)) else {
            return;
        };
        *flow = FlowEntry {
            key: Some(key),
            used: now,
            lane: Lane::OUT,
        };
        for stranger in 0..FLOWS_AT {
            let is_meant =
                |packet: &[u8]| Key::read(packet).is_some_and(|(_, own)| own == Some(key));
            let is_empty = self.lane(stranger).is_none_or(Lane::is_empty);
            if is_empty {
                continue;
            }
            let (packets, bytes) = self.shelf.hand_over(stranger, place, is_meant);
            if packets == 0 {
                continue;
            }
            if let Some(lane) = self.lane_mut(stranger) {
                lane.remove(packets, bytes);
            }
            if let Some(lane) = self.lane_mut(place) {
                lane.add(packets, bytes);
            }
            self.take_part(place);
        }
    }

    /// The queue of a packet that comes in.
    fn queue_of(&mut self, start: &[u8], now: Instant) -> u8 {
        let Some((pair, key)) = Key::read(start) else {
            return 0;
        };
        if key.is_some() {
            self.tcp_at = Some(now);
        }
        if let Some(place) = key.and_then(|key| self.find(&key)) {
            self.touch(place, now);
            return place;
        }
        let is_tcp = key.is_some();
        let place = self.stranger_of(&pair, is_tcp);
        let place = match self.strangers.get(usize::from(place)) {
            Some(own) if own.pair == Some(pair) => place,
            _ => self.claim(&pair, is_tcp, now).unwrap_or(place),
        };
        if let Some(stranger) = self.strangers.get_mut(usize::from(place)) {
            stranger.used = now;
        }
        place
    }

    /// The queue that is kept for this pair, or the one that it shares.
    fn stranger_of(&self, pair: &Pair, is_tcp: bool) -> u8 {
        let strangers = self.strangers.iter().zip(0..);
        let mut own = strangers.filter(|(_, key)| is_tcps(*key) == is_tcp);
        let own = own.find(|(stranger, _)| stranger.pair.as_ref() == Some(pair));
        own.map_or(pair.home(is_tcp), |(_, key)| key)
    }

    /// Keeps a queue for a pair from now on that no other has used lately: flows that are few share
    /// none. `None` where none is free, or packets of the pair wait in the one that it shares.
    fn claim(&mut self, pair: &Pair, is_tcp: bool, now: Instant) -> Option<u8> {
        let (home, first) = (pair.home(is_tcp), first_of(is_tcp));
        let is_free = |stranger: &Stranger| {
            let is_over = stranger.pair.is_none() || now.since(stranger.used) >= KEPT_FOR;
            stranger.lane.is_empty() && is_over
        };
        if self.shelf.packets(home).any(|kept| pair.is_of(kept.packet)) {
            return None;
        }
        let others = first..first.saturating_add(EACH as u8);
        let place = [home].into_iter().chain(others).find(|place| {
            let stranger = self.strangers.get(usize::from(*place));
            stranger.is_some_and(is_free)
        })?;
        let stranger = self.strangers.get_mut(usize::from(place))?;
        stranger.pair = Some(*pair);
        stranger.lane.credit = 0;
        Some(place)
    }

    fn find(&self, key: &Key) -> Option<u8> {
        let mut flows = (FLOWS_AT..=u8::MAX).zip(self.flows.iter());
        flows.find_map(|(place, flow)| (flow.key.as_ref() == Some(key)).then_some(place))
    }

    fn touch(&mut self, place: u8, now: Instant) {
        let flow = self
            .flows
            .get_mut(usize::from(place.saturating_sub(FLOWS_AT)));
        if let Some(flow) = flow {
            flow.used = now;
        }
    }

    /// Drops the oldest packet of the longest queue, of which the one of `key` is to hold `more`
    /// bytes besides. Returns whether there was one.
    fn drop_longest(&mut self, key: u8, more: usize) -> bool {
        let len = |(other, lane): &(u8, &Lane)| {
            let more = if *other == key { more } else { 0 };
            (lane.bytes as usize).saturating_add(more)
        };
        let Some((longest, _)) = self.lanes().max_by_key(len) else {
            return false;
        };
        if !self.take_first(longest) {
            return false;
        }
        self.counters.dropped = self.counters.dropped.wrapping_add(1);
        true
    }

    /// Takes the oldest packet off the shelf; false where the queue is empty.
    fn take_first(&mut self, key: u8) -> bool {
        let Some(first) = self.shelf.first(key) else {
            return false;
        };
        let total = first.packet.len().saturating_add(OVERHEAD);
        self.shelf.pop(key);
        if let Some(lane) = self.lane_mut(key) {
            lane.remove(1, total);
        }
        true
    }

    /// All queues, with their numbers.
    fn lanes(&self) -> impl Iterator<Item = (u8, &Lane)> {
        let strangers = self.strangers.iter().map(|stranger| &stranger.lane);
        let flows = self.flows.iter().map(|flow| &flow.lane);
        (0..=u8::MAX).zip(strangers.chain(flows))
    }

    fn lane(&self, key: u8) -> Option<&Lane> {
        match key.checked_sub(FLOWS_AT) {
            None => self.strangers.get(usize::from(key)).map(|own| &own.lane),
            Some(place) => self.flows.get(usize::from(place)).map(|flow| &flow.lane),
        }
    }

    fn lane_mut(&mut self, key: u8) -> Option<&mut Lane> {
        match key.checked_sub(FLOWS_AT) {
            None => {
                let own = self.strangers.get_mut(usize::from(key));
                own.map(|own| &mut own.lane)
            }
            Some(place) => {
                let flow = self.flows.get_mut(usize::from(place));
                flow.map(|flow| &mut flow.lane)
            }
        }
    }
}

/// About how long a packet of `len` bytes is on the air, in the unit of [`SHARE`]: compression
/// takes most of its headers away.
fn air(len: usize) -> usize {
    let payload = len
        .saturating_sub(HEADER_LEN)
        .saturating_add(COMPRESSED_LEN);
    payload.saturating_add(payload.div_ceil(FRAME_LEN).saturating_mul(FRAME_OVERHEAD))
}

/// Queues for flows that have proven nothing.
const STRANGERS: usize = 2 * EACH;

/// So many times its own air an answer costs: it goes against the stream, and every relay has to
/// let both through.
const ANSWER_WEIGHT: usize = 2;

/// The number of the first queue of a known flow.
const FLOWS_AT: u8 = STRANGERS as u8;

/// Packets whose answers are awaited: more than the mesh takes in a few round trips.
const SENT_MAX: usize = 32;

/// How long a queue is kept for a pair of addresses that sends nothing.
const KEPT_FOR: Duration = Duration::from_secs(4);

/// What a frame costs beside its payload, in bytes: a mean backoff of 1.1 ms, preamble, header,
/// checksum and ACK, and the copies on either side, at 32 µs a byte.
const FRAME_OVERHEAD: usize = 100;

/// What a frame carries, about.
const FRAME_LEN: usize = 96;

/// Compressed headers of a packet whose addresses have contexts.
const COMPRESSED_LEN: usize = 8;

#[cfg(test)]
#[path = "../tests/flow_queues.rs"]
mod tests;
