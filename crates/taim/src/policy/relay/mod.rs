//! Relay: a lost segment is sent again from the border router, and each flow has two segments in
//! the mesh at a time.
//!
//! Purpose: a device with a plain TCP (lwIP's defaults: four segments of window, no SACK, a timer
//! of 250 ms) loses most of its time to the timeouts of a host far away. The relay keeps a copy of
//! each segment that entered the mesh, until the device has acknowledged it. It sends the copy
//! again at a duplicate ACK, which it then keeps from the host, and at a timeout of its own. What
//! the mesh loses thus costs one round trip of the mesh, and the host's window stays as it was.
//! Two full segments a flow are unacknowledged in the mesh, as few as delayed ACKs allow; more
//! would only collide there. The others wait, in order.
//!
//! Invariants: no ACK is made or altered. A copy is, byte for byte, what the host sent last. A
//! host's retransmission passes at once. What the relay does not understand passes untouched: other
//! protocols, options that it does not know, segments behind a gap; and then all of that flow,
//! until the device has acknowledged what came meanwhile. The same holds for a flow that has more
//! than [`FLOW_BYTES_MAX`] to be kept, or whose device does not answer [`TRIES_MAX`] copies.
//!
//! Bounds: [`FLOWS_MAX`] flows, [`FLOW_BYTES_MAX`] each; copies only of what is kept, and at most
//! [`TRIES_MAX`] of a segment.
//!
//! Source: Balakrishnan et al., *Improving TCP/IP Performance over Wireless Networks*, 1995
//! (Snoop). Differs: two segments at a time; the first duplicate ACK counts, since with two
//! segments there is no other. RFC 6298 for the timeout.

mod flow;

use std::collections::{BTreeSet, VecDeque};

use motet::time::{Duration, Instant};
use motet::wire::ipv6;
use motet::wire::tcp::{self, Flags};

use self::flow::{RelayedFlow, Timeout};
use crate::flows::FlowId;
use crate::segment::{Direction, Segment};

/// The flows that are relayed.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    /// By the flow's place in the table.
    flows: Vec<Option<Box<RelayedFlow>>>,
    /// How many there are.
    count: usize,
    /// Flows whose first waiting packet may go.
    open: BTreeSet<FlowId>,
    /// When which flow has to be looked at.
    due: BTreeSet<(Instant, FlowId)>,
    /// Flows whose first segment goes again now.
    copies: VecDeque<FlowId>,
    /// Copies sent so far.
    pub(crate) resent: u64,
}

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It goes now; packets of its flow may wait.
    Pass,
    /// It goes now, and all packets of its flow and direction before it.
    Behind,
    /// It waits.
    Hold,
    /// It is dropped: a duplicate ACK that a copy has answered.
    Swallow,
}

/// What the relay reads of a packet besides a [`Segment`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    /// The receive window, as it stands in the header.
    pub(super) window: u16,
}

impl Relay {
    /// Decides about a segment; `may_hold`: whether there is room for it to wait, and for another
    /// packet to be dropped.
    pub(crate) fn on_segment(
        &mut self,
        id: FlowId,
        segment: &Segment,
        packet: &[u8],
        (may_hold, now): (bool, Instant),
    ) -> Verdict {
        if segment.is_control() {
            // The router lets those go first that wait; then nothing is left of the flow.
            return Verdict::Behind;
        }
        let reading = read(packet, segment);
        let takes_room = segment.direction == Direction::Down && segment.end() != segment.seq;
        if takes_room && self.get(id).is_none() {
            self.enter(id, segment.seq, now);
        }
        let Some(flow) = self.get(id) else {
            return Verdict::Pass;
        };
        let verdict = match segment.direction {
            Direction::Down => flow.on_down(segment, reading.map(|_| packet), (may_hold, now)),
            Direction::Up => flow.on_up(segment, reading, (may_hold, now)),
        };
        self.plan(id);
        verdict
    }

    /// The first packet of those of a flow that wait goes.
    pub(crate) fn on_released(&mut self, id: FlowId, now: Instant) {
        if let Some(flow) = self.get(id) {
            flow.on_released(now);
            self.plan(id);
        }
    }

    /// Nothing is left of a flow.
    pub(crate) fn on_forgotten(&mut self, id: FlowId) {
        let slot = self.flows.get_mut(id.index());
        let Some(flow) = slot.and_then(Option::take) else {
            return;
        };
        self.count -= 1;
        self.open.remove(&id);
        self.copies.retain(|other| *other != id);
        if let Some(at) = flow.planned {
            self.due.remove(&(at, id));
        }
    }

    /// The flow whose first waiting packet goes now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<FlowId> {
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            if let Some(flow) = self.get(id)
                && flow.on_due(now) == Timeout::GaveUp
            {
                self.copies.retain(|other| *other != id);
            }
            self.plan(id);
        }
        self.open.first().copied()
    }

    /// A copy of a segment that goes into the mesh again now.
    pub(crate) fn poll_copy(&mut self) -> Option<&[u8]> {
        let id = self.copies.pop_front()?;
        let flow = self.flows.get_mut(id.index())?.as_mut()?;
        (flow.copy_awaited, flow.copy_queued) = (false, false);
        let copy = flow.first()?;
        self.resent += 1;
        Some(copy)
    }

    /// Whether a copy goes now.
    pub(crate) fn has_copy(&self) -> bool {
        !self.copies.is_empty()
    }

    /// When a flow has to be looked at.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn get(&mut self, id: FlowId) -> Option<&mut RelayedFlow> {
        self.flows.get_mut(id.index())?.as_deref_mut()
    }

    /// Enters a flow whose stream goes on at `seq`, if there is room or one that rests yields.
    fn enter(&mut self, id: FlowId, seq: u32, now: Instant) {
        if self.count >= FLOWS_MAX {
            let resting = self.flows.iter().position(|slot| {
                let flow = slot.as_ref();
                flow.is_some_and(|flow| flow.is_at_rest(now))
            });
            // It neither waits nor keeps anything: neither deadline nor copy refers to it.
            let Some(slot) = resting.and_then(|place| self.flows.get_mut(place)) else {
                return;
            };
            *slot = None;
            self.count -= 1;
        }
        if self.flows.len() <= id.index() {
            self.flows.resize_with(id.index() + 1, || None);
        }
        if let Some(slot) = self.flows.get_mut(id.index()) {
            *slot = Some(Box::new(RelayedFlow::new(seq, now)));
            self.count += 1;
        }
    }

    /// Notes what a flow awaits after an event.
    fn plan(&mut self, id: FlowId) {
        let Some(flow) = self
            .flows
            .get_mut(id.index())
            .and_then(|slot| slot.as_deref_mut())
        else {
            return;
        };
        let next = flow.next_deadline();
        if next != flow.planned {
            if let Some(at) = flow.planned {
                self.due.remove(&(at, id));
            }
            if let Some(at) = next {
                self.due.insert((at, id));
            }
            flow.planned = next;
        }
        match flow.may_release() {
            true => self.open.insert(id),
            false => self.open.remove(&id),
        };
        if flow.copy_awaited && !flow.copy_queued {
            self.copies.push_back(id);
        } else if !flow.copy_awaited && flow.copy_queued {
            self.copies.retain(|other| *other != id);
        }
        flow.copy_queued = flow.copy_awaited;
    }
}

/// Reads a packet that the relay may keep, answer or send again; none where it must not: it is not
/// all there, or its checksum is wrong, it has extension headers, urgent data, or options that the
/// relay does not know.
fn read(packet: &[u8], segment: &Segment) -> Option<Reading> {
    if packet.len() != segment.packet_len {
        return None;
    }
    let (header, bytes) = ipv6::Header::parse_start(packet).ok()?;
    let is_plain = header.next_header == tcp::NEXT_HEADER
        && usize::from(header.payload_len) == bytes.len()
        && !segment.flags.intersects(Flags::URG);
    if !is_plain {
        return None;
    }
    let options = bytes.get(tcp::HEADER_LEN..tcp::header_len(bytes)?)?;
    let window = bytes.get(WINDOW_AT..WINDOW_AT + 2)?;
    let window = u16::from_be_bytes(window.try_into().ok()?);
    let is_known = knows_all(options) && tcp::is_checksum_valid(&header.src, &header.dst, bytes);
    is_known.then_some(Reading { window })
}

/// Whether the relay knows all options of a segment: those by which nothing depends on who sends.
fn knows_all(mut options: &[u8]) -> bool {
    loop {
        options = match options {
            [] | [END_OF_OPTIONS, ..] => return true,
            [NO_OPERATION, rest @ ..] => rest,
            [SACK | TIMESTAMPS, len, ..] if *len >= 2 => {
                options.get(usize::from(*len)..).unwrap_or_default()
            }
            _ => return false,
        };
    }
}

/// Where the window stands in a TCP header.
const WINDOW_AT: usize = 14;

/// Kinds of options (RFC 9293 §3.1, RFC 2018 §3, RFC 7323 §3.2).
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Flows that are relayed at a time; further ones pass untouched.
pub(super) const FLOWS_MAX: usize = 256;

/// Bytes of packets that are kept for one flow: what lwIP's window of 5,744 bytes takes, with
/// headers.
pub(super) const FLOW_BYTES_MAX: usize = 6 * 1_024;

/// Segments of a flow that are unacknowledged in the mesh at a time: a receiver that delays its
/// ACKs acknowledges every second segment at once.
pub(super) const INSIDE_MAX: usize = 2;

/// Bytes of packets that are so in any case: two packets of IPv6's least MTU. Of shorter segments
/// more are inside, which several hops carry at once.
pub(super) const INSIDE_BYTES_MAX: usize = 2 * 1_280;

/// Copies of one segment in a row; then the host's own retransmissions have to do.
pub(super) const TRIES_MAX: u8 = 5;

/// The timeout before the first round trip is known. RFC 6298 §2.1 says one second; a sleeping
/// device needs longer.
pub(super) const TIMEOUT_FIRST: Duration = Duration::from_secs(3);

/// The longest timeout (RFC 6298 §2.5).
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// How long a flow has been silent that yields its place.
pub(super) const REST: Duration = Duration::from_secs(60);
