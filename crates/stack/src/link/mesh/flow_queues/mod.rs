//! Queues of flows where packets enter a mesh: each flow has its share of the air.
//!
//! Behind a border router the air is the bottleneck, and a common queue gives it to the fastest
//! sender: a host that sends datagrams without congestion control starves every TCP connection. So
//! each flow has a queue of its own, and the queues share the air by start-time fair queueing: the
//! flow is next whose frames have used least of it. A flow that had nothing waiting goes before
//! those that had, as RFC 8290's sparse flows do; among such flows the first to come is the first
//! to go. If a packet finds no room, the longest queue loses its oldest packet; of queues as long
//! as each other, the one whose turn is last.
//!
//! A TCP flow gets its own queue once a segment into the mesh acknowledges its mote's SYN-ACK, once
//! the mote has sent data in it, or has acknowledged more than the SYN: each requires that the
//! source has seen what the mote has sent to it, so its address is not forged. All other packets
//! are those of strangers: datagrams, echo requests, SYNs. They share [`STRANGERS`] queues by
//! source, without the precedence of sparse flows. Half of these queues are for TCP, so that no
//! datagram delays a handshake. A mote's answer to a stranger is charged to the stranger's queue,
//! too.
//!
//! Often a whole TCP window is in flight, and no packet of its flow waits here. Packets of
//! strangers then get ahead of its acknowledgments in every later queue, and their answers do so in
//! the mote, where flows do not take turns. So while TCP is in use, strangers together get a
//! limited share of the air time ([`STRANGERS_PART`]): one share for their TCP packets, and one for
//! all others. Without TCP in use they have no limit. TCP is in use while packets of known flows
//! pass.
//!
//! Place: between IP and the fragmenter, at a node that also has a cable ([`super::entering`] joins
//! it). Left out: marking and dropping before memory is full, which is the discipline of the queue
//! ([`crate::ip`]). Sources: Goyal, Vin and Cheng 1996 for start-time fair queueing; RFC 8290 §4
//! for the packet that gives way. Differs from RFC 8290: no deficit round robin. There a sparse
//! flow kept its precedence for a share of several ACKs and then waited for a whole round, so that
//! flows of one segment at a time saw round trips of two lengths, and timed out early. Differs from
//! both: the air that frames take is counted, and not their bytes.

mod handshakes;
mod key;
mod turns;

use self::handshakes::Handshakes;
use self::key::{EACH, Key, Pair, START_LEN, beginning, first_of, is_tcps};
use self::turns::Until;
use core::net::Ipv6Addr;

use crate::ip::{IpCounters, PacketDrop};
use crate::link::arrival::Refusal;
use crate::storage::keyed_queues::{KeyedQueues, OVERHEAD};
use crate::time::{Duration, Instant};
use crate::wire::cursor::copy;
use crate::wire::ipv6::{HEADER_LEN, Header};
use crate::wire::tcp;

/// Packets that enter a mesh, by flow, in borrowed memory.
#[derive(Debug)]
pub struct FlowQueues<'m> {
    queues: KeyedQueues<'m>,
    strangers: [Stranger; STRANGERS],
    flows: &'m mut [FlowEntry],
    /// How far the air is shared out: the turn of the packet that left last, in the unit of
    /// [`air`]. No queue takes up what it left unused before.
    shared_out: u64,
    /// Counts queues that began to wait or have used air: of equal turns the earlier one goes.
    order: u64,
    /// The queue whose packet is being sent, and since when.
    serving: Option<(u8, Instant)>,
    /// The times until which the strangers' share of the air is used up, by their packets and the
    /// answers to these: one for strangers' TCP packets, one for all others.
    strangers_until: Until,
    /// When a packet of a known flow last passed, either way.
    tcp_at: Option<Instant>,
    handshakes: Handshakes,
    /// Fingerprints of the address pairs of the last strangers' packets that went into the mesh.
    /// One packet back counts as the answer to each.
    sent: [Option<u32>; SENT_MAX],
    /// When the next packet may leave, if only the limited share of strangers holds packets back.
    wakes_at: Option<Instant>,
    /// Whether the node's own TCP is polled before these queues.
    pub(super) is_own_turn: bool,
    /// Whether these queues go before the next packet that the node passes on within the mesh.
    pub(super) is_entering_turn: bool,
    counters: FlowCounters,
}

/// Room for one flow of TCP, borrowed from the caller; [`FlowEntry::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct FlowEntry {
    key: Option<Key>,
    /// When a packet of it last passed.
    used: Instant,
    lane: QueueShare,
}

/// Counters of packets; each wraps at 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounters {
    /// Packets that joined a queue.
    pub queued: u32,
    /// Packets that left for the air.
    pub sent: u32,
    /// Packets dropped after they were queued: theirs was the longest queue when room was needed,
    /// or their next hop took none for so long that others waited behind them.
    pub dropped: u32,
    /// Packets that found no room, because their own queue was the longest and had none to give.
    pub refused: u32,
}

/// A queue for packets of flows that have proven nothing.
#[derive(Clone, Debug)]
struct Stranger {
    /// The source that it is kept for; others may share it.
    source: Option<Ipv6Addr>,
    used: Instant,
    lane: QueueShare,
}

/// One queue's share and its place among the others.
#[derive(Clone, Copy, Debug)]
struct QueueShare {
    /// Where its next packet stands; lower turns go first. All that it has sent is added up in it.
    turn: Turn,
    packets: u16,
    /// Bytes that its packets take in the queues.
    bytes: u32,
}

/// A place in the order of the queues.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Turn {
    /// In the unit of [`air`], beside [`FlowQueues::shared_out`].
    start: u64,
    order: u64,
}

/// A packet that leaves its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::link) struct Next {
    /// Length of the whole packet, bytes, even if the buffer took only a part.
    pub(in crate::link) len: usize,
    /// The value that was given to [`FlowQueues::push`] with the packet.
    pub(in crate::link) meta: u32,
}

impl FlowEntry {
    /// A free entry.
    pub const EMPTY: Self = Self {
        key: None,
        used: Instant::ORIGIN,
        lane: QueueShare::NEW,
    };
}

impl QueueShare {
    const NEW: Self = Self {
        turn: Turn { start: 0, order: 0 },
        packets: 0,
        bytes: 0,
    };

    const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Takes note of packets that came (`bytes` in the queues).
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
    /// Flows of TCP that can be told apart: queues have numbers of one byte.
    pub const FLOWS_MAX: usize = 256 - STRANGERS;

    /// Queues without any known flow or packet.
    ///
    /// `packets`: bytes for packets, each of which takes seven more than its length. `flows`:
    /// entries for flows of TCP, [`Self::FLOWS_MAX`] at most; further flows share the queues of
    /// strangers.
    pub fn new(packets: &'m mut [u8], flows: &'m mut [FlowEntry]) -> Self {
        for flow in flows.iter_mut() {
            *flow = FlowEntry::EMPTY;
        }
        const NEW: Stranger = Stranger {
            source: None,
            used: Instant::ORIGIN,
            lane: QueueShare::NEW,
        };
        Self {
            queues: KeyedQueues::new(packets),
            strangers: [NEW; STRANGERS],
            flows,
            shared_out: 0,
            order: 0,
            serving: None,
            strangers_until: Until::NEW,
            tcp_at: None,
            handshakes: Handshakes::NEW,
            sent: [None; SENT_MAX],
            wakes_at: None,
            is_own_turn: false,
            is_entering_turn: false,
            counters: FlowCounters::default(),
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> (&'m mut [u8], &'m mut [FlowEntry]) {
        (self.queues.into_memory(), self.flows)
    }

    /// Counts of packets queued, sent and dropped.
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// Packets that wait in all queues together.
    pub fn waiting(&self) -> usize {
        self.lanes()
            .map(|(_, lane)| usize::from(lane.packets))
            .sum()
    }

    /// Packets that wait in the queue that this one, which lies in two pieces, would go into.
    pub(in crate::link) fn waiting_before(&self, parts: [&[u8]; 2]) -> usize {
        let known = Key::read(beginning(parts, &mut [0; START_LEN])).and_then(|(pair, key)| {
            let flow = key.and_then(|key| self.find(&key));
            self.lane(flow.unwrap_or(self.stranger_of(&pair.src, key.is_some())))
        });
        known.map_or(0, |lane| usize::from(lane.packets))
    }

    /// Queues a packet that lies in two pieces. `drops` counts the packets that it takes the room
    /// of.
    ///
    /// # Errors
    /// [`Refusal::Full`]: its own queue is to give way, and holds nothing.
    pub(in crate::link) fn push(
        &mut self,
        parts: [&[u8]; 2],
        meta: u32,
        drops: &mut IpCounters,
        now: Instant,
    ) -> Result<(), Refusal> {
        let total = parts.iter().map(|part| part.len()).sum::<usize>();
        let total = total.saturating_add(OVERHEAD);
        let key = self.queue_of(beginning(parts, &mut [0; START_LEN]), now);
        while self.queues.room() < total {
            // A packet that can never fit must not push out others.
            if total > self.queues.capacity() || !self.drop_longest(key, total) {
                return Err(self.refuse());
            }
            drops.count(PacketDrop::QueueFull);
        }
        if !self.queues.push_parts(key, parts, meta) {
            return Err(self.refuse());
        }
        self.counters.queued = self.counters.queued.wrapping_add(1);
        self.join(key, 1, total);
        Ok(())
    }

    fn refuse(&mut self) -> Refusal {
        self.counters.refused = self.counters.refused.wrapping_add(1);
        Refusal::Full
    }

    /// Copies the packet whose turn it is into `out` and takes it out of its queue. `is_ready`:
    /// whether the next hop of a packet can take it now; packets that cannot leave are overtaken.
    /// In a queue of strangers only the first `LOOKS_AT` packets are considered: if none of them
    /// can leave, the oldest are dropped, so that they do not block the packets behind them.
    pub(in crate::link) fn pop(
        &mut self,
        out: &mut [u8],
        is_ready: impl Fn(&[u8]) -> bool,
        now: Instant,
    ) -> Option<Next> {
        self.drop_stuck(&is_ready);
        let (key, nth) = self.next(is_ready, now)?;
        let chosen = self.queues.packets(key).nth(nth)?;
        let (len, meta) = (chosen.packet.len(), chosen.meta);
        copy(out, chosen.packet);
        let stranger = Key::read(chosen.packet).filter(|_| key < FLOWS_AT);
        if let Some((pair, _)) = stranger {
            self.sent.rotate_left(1);
            let [.., last] = &mut self.sent;
            *last = Some(pair.hash());
        }
        self.take(key, nth);
        self.counters.sent = self.counters.sent.wrapping_add(1);
        self.serving = Some((key, now));
        Some(Next { len, meta })
    }

    /// Charges what was put on the air of the packet that left last: `len` bytes of a frame's
    /// payload, which go over `hops` hops.
    pub(in crate::link) fn charge_frame(&mut self, len: usize, hops: u8) {
        if let Some((key, since)) = self.serving {
            self.charge(key, len.saturating_add(FRAME_OVERHEAD), hops, since);
        }
    }

    /// As [`Self::charge_frame`], for a whole packet whose frames are not visible here. `air`: see
    /// [`air`].
    pub(in crate::link) fn charge_packet(&mut self, air: usize, hops: u8) {
        if let Some((key, since)) = self.serving {
            self.charge(key, air, hops, since);
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

    /// Frames from now on are charged to none of these queues.
    pub(in crate::link) const fn end_service(&mut self) {
        self.serving = None;
    }

    /// Handles a packet that leaves the mesh for another link. Some TCP segments make their flow
    /// known. Any other packet may be the answer to a stranger's packet, and is then charged to
    /// that stranger's queue.
    ///
    /// `air`: what the packet took on each hop, see [`air`].
    pub(in crate::link) fn on_leaving(
        &mut self,
        packet: &[u8],
        air: usize,
        hops: u8,
        now: Instant,
    ) {
        let Ok((header, rest)) = Header::parse_start(packet) else {
            return;
        };
        let pair = Pair {
            src: header.dst,
            dst: header.src,
        };
        let is_tcp = header.next_header == tcp::NEXT_HEADER;
        // Padding of the link below is no data.
        let rest = rest.get(..header.payload_len.into()).unwrap_or_default();
        let segment = tcp::Header::parse(rest).ok().filter(|_| is_tcp);
        if let Some((read, payload)) = segment {
            let ports = u32::from(read.dst_port) << 16 | u32::from(read.src_port);
            let key = Key { pair, ports };
            let is_known = self.find(&key).is_some();
            if is_known || (self.handshakes).is_proven_by(key, &read, !payload.is_empty()) {
                self.tcp_at = Some(now);
                return self.prove(key, now);
            }
        }
        let answered = Some(pair.hash());
        if let Some(sent) = self.sent.iter_mut().find(|sent| **sent == answered) {
            *sent = None;
            let key = self.stranger_of(&pair.src, is_tcp);
            self.charge(key, air.saturating_mul(ANSWER_WEIGHT), hops, now);
        }
    }

    /// Gives a flow its own queue: a free one, or else that of the flow without waiting packets
    /// that has been silent for longest. Packets of the flow that wait in other queues move to it,
    /// in their order.
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
            lane: QueueShare::NEW,
        };
        // Should it lose its place, its next segments are to prove it again.
        self.handshakes.forget(&key);
        for stranger in 0..FLOWS_AT {
            let is_meant =
                |packet: &[u8]| Key::read(packet).is_some_and(|(_, own)| own == Some(key));
            let is_empty = self.lane(stranger).is_none_or(QueueShare::is_empty);
            if is_empty {
                continue;
            }
            let (packets, bytes) = self.queues.hand_over(stranger, place, is_meant);
            if packets == 0 {
                continue;
            }
            if let Some(lane) = self.lane_mut(stranger) {
                lane.remove(packets, bytes);
            }
            self.join(place, packets, bytes);
        }
    }

    /// The queue of a packet that comes in.
    fn queue_of(&mut self, start: &[u8], now: Instant) -> u8 {
        let Some((pair, key)) = Key::read(start) else {
            return 0;
        };
        if let Some(key) = key.filter(|key| self.handshakes.is_answered_by(key, start)) {
            self.prove(key, now);
        }
        if let Some(place) = key.and_then(|key| self.find(&key)) {
            self.tcp_at = Some(now);
            self.touch(place, now);
            return place;
        }
        let is_tcp = key.is_some();
        let place = self.stranger_of(&pair.src, is_tcp);
        let place = match self.strangers.get(usize::from(place)) {
            Some(own) if own.source == Some(pair.src) => place,
            _ => self.claim(pair.src, is_tcp, now).unwrap_or(place),
        };
        if let Some(stranger) = self.strangers.get_mut(usize::from(place)) {
            stranger.used = now;
        }
        place
    }

    /// The queue that is kept for this source, or the one that it shares.
    fn stranger_of(&self, source: &Ipv6Addr, is_tcp: bool) -> u8 {
        let strangers = self.strangers.iter().zip(0..);
        let mut own = strangers.filter(|(_, key)| is_tcps(*key) == is_tcp);
        let own = own.find(|(stranger, _)| stranger.source.as_ref() == Some(source));
        own.map_or(key::home(source, is_tcp), |(_, key)| key)
    }

    /// Keeps a queue for a source from now on that no other has used lately: sources that are few
    /// share none. `None` where none is free, or packets of the source wait in the one that it
    /// shares.
    fn claim(&mut self, source: Ipv6Addr, is_tcp: bool, now: Instant) -> Option<u8> {
        let (home, first) = (key::home(&source, is_tcp), first_of(is_tcp));
        let is_free = |stranger: &Stranger| {
            let is_over = stranger.source.is_none() || now.since(stranger.used) >= KEPT_FOR;
            stranger.lane.is_empty() && is_over
        };
        let is_own = |packet: &[u8]| Key::read(packet).is_some_and(|(pair, _)| pair.src == source);
        if self.queues.packets(home).any(|kept| is_own(kept.packet)) {
            return None;
        }
        let others = first..first.saturating_add(EACH as u8);
        let place = [home].into_iter().chain(others).find(|place| {
            let stranger = self.strangers.get(usize::from(*place));
            stranger.is_some_and(is_free)
        })?;
        let stranger = self.strangers.get_mut(usize::from(place))?;
        stranger.source = Some(source);
        stranger.lane = QueueShare::NEW;
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

    /// Takes the packet behind `nth` others off its queue; false where there is none.
    fn take(&mut self, key: u8, nth: usize) -> bool {
        let Some(kept) = self.queues.packets(key).nth(nth) else {
            return false;
        };
        let total = kept.packet.len().saturating_add(OVERHEAD);
        self.queues.remove(key, nth);
        if let Some(lane) = self.lane_mut(key) {
            lane.remove(1, total);
        }
        true
    }

    /// All queues, with their numbers.
    fn lanes(&self) -> impl Iterator<Item = (u8, &QueueShare)> {
        let strangers = self.strangers.iter().map(|stranger| &stranger.lane);
        let flows = self.flows.iter().map(|flow| &flow.lane);
        (0..=u8::MAX).zip(strangers.chain(flows))
    }

    fn lane(&self, key: u8) -> Option<&QueueShare> {
        match key.checked_sub(FLOWS_AT) {
            None => self.strangers.get(usize::from(key)).map(|own| &own.lane),
            Some(place) => self.flows.get(usize::from(place)).map(|flow| &flow.lane),
        }
    }

    fn lane_mut(&mut self, key: u8) -> Option<&mut QueueShare> {
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

/// About how long a packet of `len` bytes is on the air of IEEE 802.15.4 over one hop, in
/// bytes of [`BYTE_US`]: compression takes most of its headers away.
pub(in crate::link) fn air(len: usize) -> usize {
    let payload = len
        .saturating_sub(HEADER_LEN)
        .saturating_add(COMPRESSED_LEN);
    payload.saturating_add(payload.div_ceil(FRAME_LEN).saturating_mul(FRAME_OVERHEAD))
}

/// Queues for flows that have proven nothing.
const STRANGERS: usize = 2 * EACH;

/// An answer costs this many times its own air: it goes against the stream, and every relay has to
/// let both through.
const ANSWER_WEIGHT: usize = 2;

/// The number of the first queue of a known flow.
const FLOWS_AT: u8 = STRANGERS as u8;

/// Packets whose answers are awaited: more than the mesh carries in a few round trips.
const SENT_MAX: usize = 32;

/// How long a queue is kept for a source that sends nothing.
const KEPT_FOR: Duration = Duration::from_secs(4);

/// The cost of a frame beside its payload, in bytes: a mean backoff of 1.1 ms, preamble, header,
/// checksum and ACK, and the copies on either side, at 32 µs a byte.
const FRAME_OVERHEAD: usize = 100;

/// The usual payload of a frame, bytes.
const FRAME_LEN: usize = 96;

/// Compressed headers of a packet whose addresses have contexts.
const COMPRESSED_LEN: usize = 8;

#[cfg(test)]
#[path = "../tests/flow_queues.rs"]
mod tests;
