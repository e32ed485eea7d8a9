//! Thinning of ACKs where packets enter a mesh: a newer ACK takes the place of one that waits.
//!
//! A cumulative ACK includes the information of the previous one. On a chain whose links share the
//! air each ACK costs as much as several frames of data. So a border router keeps a pure ACK back
//! while frames of a fragmented packet keep coming from the neighbour that it goes to, and sends
//! the newest one. Place: before the queue of whole packets ([`forward`](super::forward)), below
//! whatever makes the border router fair, and before TCP headers are compressed. Left out:
//! duplicate ACKs, SACK, ECN's echo, pure window updates, SYN, FIN and RST, which pass at once,
//! after the waiting ACK; and pure ACKs in an unusual format.

use core::net::Ipv6Addr;

use super::{Mesh, PacketMeta, link_addr};
use crate::ip::{self, Ip, Neighbour};
use crate::link::arrival::TcpEgress;
use crate::tcphc::Origin;
use crate::time::{Deadlines, Duration, Instant};
use crate::wire::cursor::copy;
use crate::wire::ipv6::{Ecn, HEADER_LEN, HOP_LIMIT_AT, Header};
use crate::wire::{LinkAddr, tcp};

/// Where ACKs wait: one for each flow.
#[derive(Debug)]
pub struct Thinning {
    flows: [Flow; FLOWS],
    replaced: u32,
}

/// The state of one flow towards the mesh.
#[derive(Debug)]
struct Flow {
    /// Source, destination and ports; `None`: the place is free.
    key: Option<Key>,
    /// The last acknowledgment number that passed.
    ack: Option<u32>,
    /// When the flow's last segment passed.
    used: Instant,
    /// The neighbour that it goes to.
    via: Option<LinkAddr>,
    /// When the last fragment came from that neighbour.
    came: Option<Instant>,
    /// Mean time between fragments from it; zero: not known.
    gap: Duration,
    /// The last acknowledgment number that went on.
    sent: u32,
    /// The most bytes by which an ACK was ahead of the ACK that went before it: at most what the
    /// sender may have in flight, and exactly that if the sender had to wait for the ACK.
    widest: u32,
    /// ACKs since one has waited for as long as fragments came.
    steps: u8,
    waiting: Option<Waiting>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    ports: u32,
}

/// A packet that is one pure ACK, waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    bytes: [u8; PACKET_LEN_MAX],
    len: u8,
    meta: PacketMeta,
    /// When the oldest of the ACKs that this one replaces came.
    since: Instant,
}

/// The verdict on a packet that is offered.
#[derive(Debug)]
pub(super) struct Offered {
    /// A packet to be queued first.
    pub(super) before: Option<Waiting>,
    /// Whether the packet waits, and is not to be queued.
    pub(super) is_kept: bool,
}

impl Waiting {
    fn of(packet: &[u8], meta: PacketMeta, since: Instant) -> Option<Self> {
        let mut bytes = [0; PACKET_LEN_MAX];
        let len = copy(&mut bytes, packet);
        (len == packet.len()).then_some(Self {
            bytes,
            len: len as u8,
            meta,
            since,
        })
    }

    pub(super) fn packet(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Whether `newer`, a pure ACK of the same flow, contains all the information of this one.
    fn is_covered_by(&self, newer: &Self) -> bool {
        let headers = [self, newer].map(|packet| {
            let packet = packet.packet();
            let behind = packet.get(HOP_LIMIT_AT + 1..HEADER_LEN);
            (packet.get(..HOP_LIMIT_AT), behind)
        });
        let [Some(own), Some(other)] = [self, newer].map(|packet| pure_ack(packet.packet())) else {
            return false;
        };
        let is_later = match (own.options.timestamps, other.options.timestamps) {
            (Some((own, _)), Some((other, _))) => other.wrapping_sub(own) <= i32::MAX as u32,
            (None, None) => true,
            _ => false,
        };
        headers[0] == headers[1]
            && self.meta.is_alike(newer.meta)
            // Between them no data was sent.
            && own.seq == other.seq
            && advances(own.ack, other.ack)
            && own.window > 0
            && other.window > 0
            // What may be sent does not shrink: the right edge of the window stays, or moves on.
            // The window itself may be smaller: Linux's is, until it has learnt how much memory
            // the segments take.
            && u32::from(own.window) <= u32::from(other.window) + other.ack.wrapping_sub(own.ack)
            && is_later
    }
}

impl Flow {
    const FREE: Self = Self {
        key: None,
        ack: None,
        used: Instant::ORIGIN,
        via: None,
        came: None,
        gap: Duration::ZERO,
        sent: 0,
        widest: 0,
        steps: 0,
        waiting: None,
    };

    /// Takes over the neighbour that it goes to: of another one nothing is known.
    fn take_way(&mut self, via: Option<LinkAddr>) {
        if self.via != via {
            (self.via, self.came, self.gap) = (via, None, Duration::ZERO);
            (self.widest, self.steps) = (0, 0);
        }
    }

    /// Offers a packet of this flow, and `ack`, the number that it acknowledges. Returns the
    /// verdict on the packet, and whether it replaces one that waited.
    fn offer(
        &mut self,
        (ack, packet): (Option<u32>, &[u8]),
        meta: PacketMeta,
        now: Instant,
    ) -> (Offered, bool) {
        let last = self.ack;
        let has_advanced = last.zip(ack).is_some_and(|(last, ack)| advances(last, ack));
        self.ack = ack.or(last);
        let newer = (has_advanced && self.via.is_some() && pure_ack(packet).is_some())
            .then(|| Waiting::of(packet, meta, now))
            .flatten();
        let earlier = core::mem::replace(&mut self.waiting, newer);
        let is_kept = newer.is_some();
        let covered = earlier.filter(|own| newer.is_some_and(|newer| own.is_covered_by(&newer)));
        if let (Some(waiting), Some(covered)) = (&mut self.waiting, covered) {
            waiting.since = covered.since;
            let before = None;
            return (Offered { before, is_kept }, true);
        }
        // The waiting ACK leaves now, followed by the new packet if that is not kept.
        if earlier.is_some() || !is_kept {
            self.sent = if is_kept { last } else { self.ack }.unwrap_or_default();
        }
        let before = earlier;
        (Offered { before, is_kept }, false)
    }

    /// Until when the neighbour may be expected to send the next fragment.
    fn quiet_at(&self) -> Option<Instant> {
        let came = self.came.filter(|_| self.gap > Duration::ZERO)?;
        Some(came + self.gap.saturating_mul(4))
    }

    /// Notes a fragment from the neighbour.
    fn on_fragment(&mut self, now: Instant) {
        let last = self.came.replace(now);
        let Some(gap) = last
            .map(|last| now.since(last))
            .filter(|gap| *gap <= GAP_MAX)
        else {
            return;
        };
        let (mean, gap) = (self.gap.as_micros(), gap.as_micros());
        self.gap = match mean {
            0 => Duration::from_micros(gap),
            // As RFC 6298 §2 smooths round trips.
            _ => Duration::from_micros((mean * 7 + gap) / 8),
        };
    }

    /// Whether the next ACK waits for as long as fragments come, to find out how many do.
    const fn is_probing(&self) -> bool {
        self.steps >= STEPS
    }

    /// Notes that the last acknowledgment number has gone on.
    fn went_on(&mut self) {
        let Some(ack) = self.ack else {
            return;
        };
        let ahead = ack.wrapping_sub(self.sent);
        self.sent = ack;
        if self.is_probing() {
            // A burst may end before the window does, so a smaller value lowers the estimate only
            // slowly.
            self.widest = ahead.max((self.widest.saturating_mul(3).saturating_add(ahead)) / 4);
            self.steps = 0;
        } else {
            self.steps = self.steps.saturating_add(1);
        }
    }

    /// When the ACK that waits is to go. `is_busy`: whether a frame waits for that neighbour
    /// anyway.
    fn due_at(&self, is_busy: impl Fn(LinkAddr) -> bool) -> Option<Instant> {
        let waiting = self.waiting?;
        let latest = waiting.since + WAIT_MAX;
        let ahead = self.ack?.wrapping_sub(self.sent);
        if !self.is_probing() && ahead >= self.widest / 3 * 2 {
            return Some(waiting.since);
        }
        if self.via.is_some_and(is_busy) {
            return Some(latest);
        }
        Some(self.quiet_at().unwrap_or(waiting.since).min(latest))
    }
}

impl Thinning {
    /// No flow is known, and nothing waits.
    pub const fn new() -> Self {
        Self {
            flows: [const { Flow::FREE }; FLOWS],
            replaced: 0,
        }
    }

    /// ACKs whose place a newer one has taken; wraps at 2^32.
    pub const fn replaced(&self) -> u32 {
        self.replaced
    }

    /// Offers a packet of `meta` that enters the mesh. `via`: the neighbour that it goes to.
    fn offer(
        &mut self,
        (header, packet): (&Header, &[u8]),
        via: Option<LinkAddr>,
        meta: PacketMeta,
        now: Instant,
    ) -> Offered {
        let segment = packet.get(HEADER_LEN..).unwrap_or_default();
        let (Some(ports), true) = (
            segment.first_chunk(),
            header.next_header == tcp::NEXT_HEADER,
        ) else {
            return Offered::PASSES;
        };
        let key = Key {
            src: header.src,
            dst: header.dst,
            ports: u32::from_be_bytes(*ports),
        };
        let read = tcp::Header::parse(segment).ok().map(|(read, _)| read);
        let acking = read.filter(|read| read.flags.contains(tcp::Flags::ACK));
        let flow = self.flow(key);
        if flow.key != Some(key) {
            let before = core::mem::replace(flow, Flow::FREE).waiting;
            flow.key = Some(key);
            // It is unknown whether the first ACK seen is a duplicate.
            (flow.ack, flow.used) = (acking.map(|read| read.ack), now);
            flow.sent = flow.ack.unwrap_or_default();
            return Offered {
                before,
                is_kept: false,
            };
        }
        flow.used = now;
        flow.take_way(via);
        let (offered, is_replaced) = flow.offer((acking.map(|read| read.ack), packet), meta, now);
        self.replaced = self.replaced.wrapping_add(u32::from(is_replaced));
        offered
    }

    /// The place of a flow: where it is unknown a free one, else that of the flow that has been
    /// silent for longest.
    fn flow(&mut self, key: Key) -> &mut Flow {
        let [first, others @ ..] = &mut self.flows;
        let rank = |flow: &Flow| (flow.key != Some(key), flow.key.is_some(), flow.used);
        others.iter_mut().fold(
            first,
            |best, flow| {
                if rank(flow) < rank(best) { flow } else { best }
            },
        )
    }

    /// Notes a fragment from a neighbour.
    fn on_fragment(&mut self, from: LinkAddr, now: Instant) {
        let flows = self.flows.iter_mut();
        for flow in flows.filter(|flow| flow.via.is_some_and(|via| via.is(&from))) {
            flow.on_fragment(now);
        }
    }

    /// An ACK that need wait no longer. `is_busy`: whether a frame waits for that neighbour anyway.
    fn take_due(&mut self, is_busy: impl Fn(LinkAddr) -> bool, now: Instant) -> Option<Waiting> {
        let is_due = |flow: &Flow| flow.due_at(&is_busy).is_some_and(|at| at <= now);
        let due = self.flows.iter_mut().find(|flow| is_due(flow));
        let flow = due?;
        let due = flow.waiting.take()?;
        flow.went_on();
        Some(due)
    }
}

impl Offered {
    /// The packet goes on as if there were no thinning.
    const PASSES: Self = Self {
        before: None,
        is_kept: false,
    };
}

impl Default for Thinning {
    fn default() -> Self {
        Self::new()
    }
}

impl<'m> Mesh<'m> {
    /// Thins the ACKs of packets that enter the mesh here, from now on. Of use at a border router.
    pub fn set_thinning(&mut self, thinning: &'m mut Thinning) {
        self.thinning = Some(thinning);
    }

    /// Gives back the memory in which ACKs wait; waiting ACKs are lost.
    pub fn take_thinning(&mut self) -> Option<&'m mut Thinning> {
        self.thinning.take()
    }

    /// The ACKs that wait, and the counters of thinned ones, where ACKs are thinned.
    pub fn thinning(&self) -> Option<&Thinning> {
        self.thinning.as_deref()
    }

    /// Keeps a packet back that is a pure ACK of a flow into the mesh, and queues what waited for
    /// longer and is to go before it. Returns whether the packet is kept.
    pub(super) fn keeps_back(
        &mut self,
        [head, rest]: [&[u8]; 2],
        meta: PacketMeta,
        ip: &mut Ip<'_>,
        now: Instant,
    ) -> bool {
        let is_entering = matches!(meta.egress, TcpEgress::Begins(Origin::Outside));
        if self.thinning.is_none() || !is_entering {
            return false;
        }
        let mut start = [0; HEADER_LEN + tcp::HEADER_LEN_MAX];
        let len = copy(&mut start, head);
        let len = len + copy(start.get_mut(len..).unwrap_or_default(), rest);
        let start = start.get(..len).unwrap_or_default();
        let Ok((header, _)) = Header::parse_start(start) else {
            return false;
        };
        let hop = ip.next_hop(&header.dst, self.discovery.id);
        let via = match hop.map(|hop| hop.neighbour) {
            Some(neighbour @ Neighbour::One(_)) => link_addr(neighbour),
            _ => None,
        };
        // Packets for a sleeping child wait elsewhere.
        let via = via.filter(|via| !self.sleeps(*via));
        let Some(thinning) = self.thinning.as_deref_mut() else {
            return false;
        };
        let offered = thinning.offer((&header, start), via, meta, now);
        if let Some(before) = offered.before {
            self.queue_waited(&before, ip, now);
        }
        offered.is_kept
    }

    fn queue_waited(&mut self, waiting: &Waiting, ip: &mut Ip<'_>, now: Instant) {
        let parts = [waiting.packet(), &[]];
        if self.push_forwarded(parts, waiting.meta, ip, now).is_err() {
            ip.counters.count(ip::PacketDrop::QueueFull);
        }
    }

    /// Queues the ACKs that need wait no longer.
    pub(super) fn queue_due(&mut self, ip: &mut Ip<'_>, now: Instant) {
        while let Some(due) = self.take_due(now) {
            self.queue_waited(&due, ip, now);
        }
    }

    fn take_due(&mut self, now: Instant) -> Option<Waiting> {
        let Self { mac, thinning, .. } = self;
        let thinning = thinning.as_deref_mut()?;
        thinning.take_due(|via| mac.has_frame_for(via), now)
    }

    /// Notes a fragment from a neighbour: more of its packet follow.
    pub(super) fn note_fragment(&mut self, from: LinkAddr, now: Instant) {
        if let Some(thinning) = self.thinning.as_deref_mut() {
            thinning.on_fragment(from, now);
        }
    }

    pub(super) fn add_thinning_deadlines(&self, deadlines: &mut Deadlines) {
        let Some(thinning) = self.thinning.as_deref() else {
            return;
        };
        for flow in &thinning.flows {
            deadlines.add(flow.due_at(|via| self.mac.has_frame_for(via)));
        }
    }
}

/// The header of a packet that is one pure ACK and nothing else, written as it usually is: no
/// option but timestamps in their usual place, no flag but ACK, no sign of congestion, a checksum
/// that is right.
fn pure_ack(packet: &[u8]) -> Option<tcp::Header> {
    let (header, rest) = Header::parse_start(packet).ok()?;
    let segment = packet.get(HEADER_LEN..)?;
    let (read, payload) = tcp::Header::parse(segment).ok()?;
    let options = tcp::Options {
        timestamps: read.options.timestamps,
        ..tcp::Options::NONE
    };
    let mut written = [0; tcp::HEADER_LEN_MAX];
    let usual = tcp::Header { options, ..read };
    let len = usual.emit(&mut written).ok()?;
    let written = written.get_mut(..len)?;
    tcp::fill_checksum(&header.src, &header.dst, written);
    let is_pure = payload.is_empty()
        && usize::from(header.payload_len) == rest.len()
        && header.next_header == tcp::NEXT_HEADER
        && header.traffic_class.ecn() == Ecn::NotEct
        && read.flags == tcp::Flags::ACK
        && read.urgent == 0
        // Another checksum than this one's is wrong, or another way to write zero.
        && written == segment;
    is_pure.then_some(read)
}

/// Whether `ack` acknowledges more than `last` did, and no more than a mote may have in flight
/// without window scaling.
const fn advances(last: u32, ack: u32) -> bool {
    let more = ack.wrapping_sub(last);
    more > 0 && more <= u16::MAX as u32
}

/// The number of flows of which an ACK may wait at the same time. ACKs of further flows pass at
/// once.
const FLOWS: usize = 16;

/// A pure ACK with timestamps.
const PACKET_LEN_MAX: usize = HEADER_LEN + tcp::HEADER_LEN + tcp::TIMESTAMPS_LEN;

/// How many ACKs use what one ACK has found out, before another one finds it out anew.
const STEPS: u8 = 16;

/// How long an ACK waits at most: as long as RFC 9293 §3.8.6.3 lets a receiver delay it, which may
/// have happened before. A sender's first RTO is twice that.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// Fragments that come further apart than this do not follow each other: after four such gaps an
/// ACK has waited for [`WAIT_MAX`].
const GAP_MAX: Duration = Duration::from_millis(125);

#[cfg(test)]
#[path = "tests/thinning.rs"]
mod tests;
