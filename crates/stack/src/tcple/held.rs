//! The receiver's side: prefetched segments, held until the peer's TCP has sent them, and the
//! waiting time table (TCPlE §V, table V).

use super::Counters;
use super::segment::{Flow, Segment};
use crate::limits::IPV6_MTU_MIN;
use crate::time::{Duration, Instant};

/// Bytes of memory of a [`HeldSlot`]: a packet, and as much before it as its headers may grow by
/// once they are restored.
pub const HELD_LEN: usize = IPV6_MTU_MIN + 100;

/// A place for one prefetched segment.
#[derive(Debug)]
pub struct HeldSlot<'m> {
    memory: &'m mut [u8],
    packet: Option<HeldSegment>,
    /// The connection of the packet that was handed out with this place's memory.
    lent_of: Option<u8>,
}

impl<'m> HeldSlot<'m> {
    /// A free place; `memory`: [`HELD_LEN`] bytes.
    pub fn new(memory: &'m mut [u8]) -> Self {
        debug_assert!(memory.len() >= HELD_LEN, "a segment has no room");
        Self {
            memory,
            packet: None,
            lent_of: None,
        }
    }

    /// The connection that has this place; `None`: it is free.
    fn taken_by(&self) -> Option<u8> {
        self.lent_of.or(self.packet.map(|held| held.peer))
    }
}

/// A segment that is held.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldSegment {
    /// Index of the packet in the memory.
    pub(crate) start: usize,
    pub(crate) len: u16,
    /// The connection that it came by.
    pub(crate) peer: u8,
    /// The sender's number for the connection.
    pub(crate) flow: u8,
    pub(crate) segment: Segment,
    pub(crate) since: Instant,
    /// Order of arrival: a segment that came earlier has a smaller number.
    order: u32,
    is_released: bool,
}

impl HeldSegment {
    pub(crate) const fn new(
        (start, len): (usize, u16),
        (peer, flow): (u8, u8),
        segment: Segment,
        since: Instant,
    ) -> Self {
        Self {
            start,
            len,
            peer,
            flow,
            segment,
            since,
            order: 0,
            is_released: false,
        }
    }
}

/// The held segments of all peers, and the waiting time table.
#[derive(Debug)]
pub(crate) struct Held<'m> {
    slots: &'m mut [HeldSlot<'m>],
    /// Places that one connection may take.
    each: usize,
    next_order: u32,
    waits: [Option<Wait>; WAITS_MAX],
}

/// An entry of the waiting time table.
#[derive(Clone, Copy, Debug)]
struct Wait {
    flow: Flow,
    /// SEG.ACK from which on an ACK covers the segment.
    end: u32,
    waited_ms: u16,
    /// When the segment was passed on.
    at: Instant,
}

/// Times of the newest segment that an ACK covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WaitReport {
    /// How long the data that it acknowledges were held, ms.
    pub(crate) waited_ms: u16,
    /// Time since the data were passed on.
    pub(crate) round_trip: Duration,
}

impl<'m> Held<'m> {
    /// Divides `slots` among `peers` connections, the same number for each. Slots from index
    /// `limit` on are not used.
    pub(crate) fn new(slots: &'m mut [HeldSlot<'m>], peers: usize, limit: usize) -> Self {
        for slot in slots.iter_mut() {
            slot.packet = None;
        }
        Self {
            each: slots.len().min(limit).checked_div(peers).unwrap_or(0),
            slots,
            next_order: 0,
            waits: [None; WAITS_MAX],
        }
    }

    /// Gives back the memory it was lent.
    pub(crate) fn into_memory(self) -> &'m mut [HeldSlot<'m>] {
        self.slots
    }

    /// Bytes of segments that each connection has places for.
    pub(crate) fn share(&self) -> u16 {
        let all = self.each.saturating_mul(IPV6_MTU_MIN);
        u16::try_from(all).unwrap_or(u16::MAX)
    }

    /// Holds a segment whose packet lies in `memory`, which is exchanged for other memory. Returns
    /// whether its connection had a place left.
    pub(crate) fn hold(&mut self, memory: &mut &'m mut [u8], segment: HeldSegment) -> bool {
        let taken = self.slots.iter().filter_map(HeldSlot::taken_by);
        if taken.filter(|peer| *peer == segment.peer).count() >= self.each {
            return false;
        }
        let is_free = |slot: &&mut HeldSlot<'_>| slot.taken_by().is_none();
        let Some(slot) = self.slots.iter_mut().find(is_free) else {
            return false;
        };
        core::mem::swap(&mut slot.memory, memory);
        let order = self.next_order;
        self.next_order = order.wrapping_add(1);
        slot.packet = Some(HeldSegment { order, ..segment });
        true
    }

    fn packets(&self) -> impl Iterator<Item = &HeldSegment> {
        self.slots.iter().filter_map(|slot| slot.packet.as_ref())
    }

    /// The peer's TCP has sent `bytes` of the data held of `flow`: releases the oldest segments. 0:
    /// drops all segments of the flow. Returns whether at least `bytes` bytes were held.
    pub(crate) fn release(
        &mut self,
        (peer, flow): (u8, u8),
        bytes: u16,
        counters: &mut Counters,
    ) -> bool {
        if bytes == 0 {
            self.drop_where(|held| held.peer == peer && held.flow == flow, counters);
            return true;
        }
        let mut left = bytes;
        while left > 0 {
            let of_flow =
                |held: &&HeldSegment| held.peer == peer && held.flow == flow && !held.is_released;
            let oldest = self.packets().filter(of_flow).map(|held| held.order).min();
            let Some(order) = oldest else { return false };
            let packets = self
                .slots
                .iter_mut()
                .filter_map(|slot| slot.packet.as_mut());
            for held in packets.filter(|held| held.order == order) {
                held.is_released = true;
                left = left.saturating_sub(held.segment.len.max(1));
            }
        }
        true
    }

    /// A packet of this TCP connection came outside the held segments: they are obsolete, and
    /// dropped.
    pub(crate) fn pass_by(&mut self, peer: u8, segment: &Segment, counters: &mut Counters) {
        let flow = segment.flow;
        self.drop_where(
            |held| held.peer == peer && held.segment.flow == flow,
            counters,
        );
    }

    /// The peer's channel is closed: drops the segments that wait for a release.
    pub(crate) fn end(&mut self, peer: u8, counters: &mut Counters) {
        self.drop_where(|held| held.peer == peer, counters);
    }

    /// Drops segments and table entries that are too old.
    pub(crate) fn expire(&mut self, now: Instant, counters: &mut Counters) {
        self.drop_where(|held| now.since(held.since) >= HELD_FOR, counters);
        for wait in &mut self.waits {
            wait.take_if(|wait| now.since(wait.at) >= HELD_FOR);
        }
    }

    /// When [`Self::expire`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.packets().map(|held| held.since + HELD_FOR).min()
    }

    /// Drops the segments for which `is_it` is true, except released ones.
    fn drop_where(&mut self, is_it: impl Fn(&HeldSegment) -> bool, counters: &mut Counters) {
        for slot in self.slots.iter_mut() {
            let dropped = slot.packet.take_if(|held| !held.is_released && is_it(held));
            let count = u32::from(dropped.is_some());
            counters.dropped = counters.dropped.wrapping_add(count);
        }
    }

    /// Whether a released segment waits to be passed on.
    pub(crate) fn has_released(&self) -> bool {
        self.packets().any(|held| held.is_released)
    }

    /// The next released segment, with its memory, and the place to which [`Self::give_back`]
    /// returns the memory.
    pub(crate) fn next_released(
        &mut self,
        now: Instant,
    ) -> Option<(&'m mut [u8], HeldSegment, usize)> {
        let order = |slot: &HeldSlot<'_>| {
            let held = slot.packet.filter(|held| held.is_released);
            held.map(|held| held.order)
        };
        let slots = self.slots.iter_mut().enumerate();
        let (place, slot) = slots
            .filter(|(_, slot)| order(slot).is_some())
            .min_by_key(|(_, slot)| order(slot))?;
        let held = slot.packet.take()?;
        slot.lent_of = Some(held.peer);
        let memory = core::mem::take(&mut slot.memory);
        self.note(&held.segment, now.since(held.since), now);
        Some((memory, held, place))
    }

    /// Takes the memory of a packet back.
    pub(crate) fn give_back(&mut self, memory: &'m mut [u8], place: usize) {
        if let Some(slot) = self.slots.get_mut(place) {
            slot.memory = memory;
            slot.lent_of = None;
        }
    }

    /// Enters a segment that is passed on in the waiting time table, with the time that it was
    /// held.
    pub(crate) fn note(&mut self, segment: &Segment, held: Duration, now: Instant) {
        if segment.len == 0 {
            return;
        }
        let wait = Wait {
            flow: segment.flow,
            end: segment.seq.wrapping_add(u32::from(segment.len)),
            waited_ms: millis(held),
            at: now,
        };
        let free = self.waits.iter().position(Option::is_none);
        let place = free.or_else(|| {
            let waits = self.waits.iter().enumerate();
            let oldest = waits.min_by_key(|(_, wait)| wait.map(|wait| wait.at));
            oldest.map(|(place, _)| place)
        });
        if let Some(entry) = place.and_then(|place| self.waits.get_mut(place)) {
            *entry = Some(wait);
        }
    }

    /// An ACK passes to the peer: removes the table entries that it covers, and returns the newest
    /// one.
    pub(crate) fn on_ack(&mut self, segment: &Segment, now: Instant) -> Option<WaitReport> {
        let flow = segment.flow.back();
        let is_acked =
            |wait: &Wait| wait.flow == flow && segment.ack.wrapping_sub(wait.end) as i32 >= 0;
        let acked = self.waits.iter().flatten().filter(|wait| is_acked(wait));
        let newest = acked.max_by_key(|wait| wait.at).copied();
        for wait in &mut self.waits {
            wait.take_if(|wait| is_acked(wait));
        }
        newest.map(|wait| WaitReport {
            waited_ms: wait.waited_ms,
            round_trip: now.since(wait.at),
        })
    }
}

pub(super) fn millis(time: Duration) -> u16 {
    u16::try_from(time.as_micros() / 1_000).unwrap_or(u16::MAX)
}

/// Entries of the waiting time table.
const WAITS_MAX: usize = 8;

/// How long a segment and an entry stay: 2.5 times the sender's retransmission timeout (§V.A),
/// which the receiver does not know; of the least initial one, a second.
const HELD_FOR: Duration = Duration::from_millis(2_500);
