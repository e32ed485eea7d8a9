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
//! protocols, options that it does not know, segments whose transport speaks ECN, segments behind a
//! gap; and then all of that flow, until the device has acknowledged what came meanwhile. The same
//! holds for a flow that has more than [`FLOW_BYTES_MAX`] to be kept, or whose device does not
//! answer [`TRIES_MAX`] copies.
//!
//! Bounds: [`FLOWS_MAX`] flows, [`FLOW_BYTES_MAX`] each; copies only of what is kept, and at most
//! [`TRIES_MAX`] of a segment. Whoever does not see a flow and guesses its numbers changes nothing
//! of it: what is far from them counts only once the device has acknowledged it, and the ACK by
//! which the device answers it goes to the host.
//!
//! Source: Balakrishnan et al., *Improving TCP/IP Performance over Wireless Networks*, 1995
//! (Snoop). Differs: two segments at a time; the first duplicate ACK counts, since with two
//! segments there is no other. RFC 6298 for the timeout.

mod flow;
mod reading;

use std::collections::{BTreeSet, VecDeque};

use motet::time::{Duration, Instant};
use motet::wire::tcp::Flags;

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
    /// Until then no flow yields its place.
    full_until: Instant,
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

impl Relay {
    /// Decides about a segment and its packet. `acknowledged`: what the device of its flow has;
    /// `may_hold`: whether there is room for it to wait, and for another packet to be dropped.
    pub(crate) fn on_segment(
        &mut self,
        id: FlowId,
        (segment, acknowledged): (&Segment, Option<u32>),
        packet: &[u8],
        (may_hold, now): (bool, Instant),
    ) -> Verdict {
        if segment.is_control() {
            return self.on_control(id, segment, now);
        }
        if self.is_new(id, (segment, acknowledged)) && self.count < FLOWS_MAX {
            self.enter(id, segment.seq, now);
        }
        let Some(flow) = self.get(id) else {
            return Verdict::Pass;
        };
        let verdict = match segment.direction {
            Direction::Down => flow.on_down(segment, packet, (may_hold, now)),
            Direction::Up => flow.on_up(segment, packet, (may_hold, now)),
        };
        self.plan(id);
        verdict
    }

    /// A segment that begins a connection or ends one at once. Anybody can send a SYN into the
    /// mesh: what counts is the device's answer. Of a reset into the mesh, the number counts.
    fn on_control(&mut self, id: FlowId, segment: &Segment, now: Instant) -> Verdict {
        let is_in = segment.direction == Direction::Down;
        let is_far = |flow: &mut RelayedFlow| flow.is_far(segment.seq);
        if is_in && (segment.flags.contains(Flags::SYN) || self.get(id).is_some_and(is_far)) {
            if let Some(flow) = self.get(id) {
                flow.expect_echo(true, now);
            }
            return Verdict::Pass;
        }
        // The router lets those go first that wait; then nothing is left of the flow.
        Verdict::Behind
    }

    /// The flow that yields its place to the one of this segment, if the table is full: the router
    /// lets go what waits of it, and forgets it.
    ///
    /// A flow yields that has made no progress lately, one that never made any before all others.
    pub(crate) fn yielding(
        &mut self,
        id: FlowId,
        shown: (&Segment, Option<u32>),
        now: Instant,
    ) -> Option<FlowId> {
        let is_full = self.count >= FLOWS_MAX && self.is_new(id, shown);
        if !is_full || now < self.full_until {
            return None;
        }
        let flows = self.flows.iter().zip(0..);
        let flows = flows.filter_map(|(slot, place)| Some((slot.as_deref()?, place)));
        let next = flows.clone().map(|(flow, _)| flow.yields_at()).min();
        let yielding = flows
            .filter(|(flow, _)| flow.yields_at() <= now)
            .min_by_key(|(flow, _)| flow.progress());
        if yielding.is_none() {
            self.full_until = next.unwrap_or(now);
        }
        yielding.map(|(_, place)| FlowId::at(place))
    }

    /// Whether a segment needs a place for its flow: one near to what the device has acknowledged.
    fn is_new(&mut self, id: FlowId, (segment, acknowledged): (&Segment, Option<u32>)) -> bool {
        let takes_room = segment.direction == Direction::Down && segment.end() != segment.seq;
        let is_near = acknowledged.is_some_and(|end| segment.seq.wrapping_sub(end) <= NEAR);
        takes_room && is_near && !segment.is_control() && self.get(id).is_none()
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

    /// Enters a flow whose stream goes on at `seq`.
    fn enter(&mut self, id: FlowId, seq: u32, now: Instant) {
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

/// How long ago the latest progress of a flow was that yields its place: several times what a
/// mesh takes for a segment. A flow that yields loses what it does not use: it is entered again
/// with its next segment.
pub(super) const REST: Duration = Duration::from_secs(10);

/// The same, of a flow that has made none yet: time for a first copy.
pub(super) const REST_FIRST: Duration = Duration::from_secs(4);

/// How far numbers may be from those of their flow: a window that is not scaled. Whoever does not
/// see the flow meets that by one guess of 30,000.
pub(super) const NEAR: u32 = 1 << 16;
