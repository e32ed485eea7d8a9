//! The table of flows, and of their motes.
//!
//! Purpose: a bounded memory of the flows through the router. A flow is entered when a segment of
//! an open connection comes out of the mesh. So a stranger's SYN, RST or data cannot create an
//! entry: a mote answers these with a SYN or an RST, or not at all. Flows that are over or silent
//! are forgotten; in a full table the flow that has been silent longest gives way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::tcp::Flags;

use crate::config::Config;
use crate::flow::Flow;
use crate::meter::Meter;
use crate::segment::{Direction, FlowKey, Segment};
use crate::status::Counters;
use crate::tally::Tally;

/// Where a flow is in the table, as long as it is there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FlowId(u32);

/// The flows that are known.
#[derive(Debug)]
pub(crate) struct Flows {
    slots: Vec<Option<Flow>>,
    free: Vec<FlowId>,
    by_key: BTreeMap<FlowKey, FlowId>,
    motes: BTreeMap<Ipv6Addr, Mote>,
    /// Handshakes that SYNs began lately, the oldest first.
    handshakes: VecDeque<Handshake>,
    flows_max: usize,
    flows_per_mote_max: usize,
    swept: Instant,
}

/// A mote that has or had flows.
#[derive(Debug)]
pub(crate) struct Mote {
    /// Flows that are known now.
    pub(crate) flows: usize,
    /// Counts of flows that are not known any more.
    pub(crate) tally: Tally,
    /// Goodput of flows that are not known any more.
    pub(crate) meter: Meter,
    last: Instant,
}

#[derive(Debug)]
struct Handshake {
    key: FlowKey,
    /// The stream into the mesh: its beginning by the mote's SYN-ACK, and its progress since then.
    mss: [Option<u16>; 2],
    /// The stream into the mesh: where it begins by the mote's SYN-ACK, and how far it has come
    /// since.
    down: Option<Span>,
    /// The sequence number at which the stream out of the mesh begins, by the mote's SYN-ACK.
    up: Option<u32>,
    /// When the mote first sent a SYN for it, and when it last did.
    asked: Option<[Instant; 2]>,
    /// When its peer answered the mote's SYN, if it did.
    answered: Option<Instant>,
    /// Whether it did so again: it is unknown which answer the mote acknowledges (Karn).
    is_answered_again: bool,
}

impl Handshake {
    const fn new(key: FlowKey) -> Self {
        Self {
            key,
            mss: [None; 2],
            down: None,
            up: None,
            asked: None,
            answered: None,
            is_answered_again: false,
        }
    }

    /// Whether its mote tries in vain to open it: the peer has answered, and the mote has asked
    /// again. Timers double: the next SYN comes after twice the time that all before have taken.
    fn is_in_vain(&self, now: Instant) -> bool {
        let asked = self.asked.filter(|_| self.answered.is_some());
        asked.is_some_and(|[first, last]| {
            let span = last.since(first);
            span >= VAIN_MIN && now.since(last) < span.saturating_mul(2).min(VAIN_MAX)
        })
    }
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) begin: u32,
    /// Behind its last byte, or its FIN.
    pub(crate) end: u32,
    /// Bytes of it that were seen.
    pub(crate) seen: u32,
    /// Bytes of it that were not seen.
    pub(crate) holes: u32,
}

impl FlowId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The flow at this place.
    pub(crate) const fn at(place: u32) -> Self {
        Self(place)
    }
}

/// The flow of a segment, if it is known.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found {
    Flow(FlowId),
    /// The segment belongs to a flow, for which there is no room.
    Full,
    /// The handshake of its flow is not complete, as far as was seen.
    Nothing,
}

impl Flows {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            motes: BTreeMap::new(),
            handshakes: VecDeque::new(),
            flows_max: config.flows_max.min(u32::MAX as usize),
            flows_per_mote_max: config.flows_per_mote_max,
            swept: Instant::ORIGIN,
        }
    }

    /// How many flows are known.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.slots.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// All flows, in the order of the table.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowId, &Flow)> {
        let slots = self.slots.iter().zip(0..);
        slots.filter_map(|(slot, id)| Some((FlowId(id), slot.as_ref()?)))
    }

    /// All flows, in the order of their keys.
    pub(crate) fn by_key(&self) -> impl Iterator<Item = &Flow> {
        self.by_key.values().filter_map(|id| self.get(*id))
    }

    /// All motes, in the order of their addresses.
    pub(crate) fn motes(&self) -> impl Iterator<Item = (&Ipv6Addr, &Mote)> {
        self.motes.iter()
    }

    /// The flow that a segment is of. It may be entered with it.
    pub(crate) fn find(
        &mut self,
        segment: &Segment,
        counters: &mut Counters,
        now: Instant,
    ) -> Found {
        if let Some(id) = self.by_key.get(&segment.flow) {
            return Found::Flow(*id);
        }
        if segment.flags.contains(Flags::SYN) {
            self.note_handshake(segment, now);
        } else if segment.direction == Direction::Down {
            self.note_early(segment);
        }
        // The segment acknowledges a number of the other end, so its source address is not forged.
        let opens = match segment.direction {
            Direction::Up => segment.ack.is_some(),
            Direction::Down => self.completes_handshake(segment),
        };
        let opens = opens && !segment.is_control();
        if !opens {
            return Found::Nothing;
        }
        let entered = self.enter(segment.flow, counters, now);
        entered.map_or(Found::Full, Found::Flow)
    }

    /// How many motes try in vain to open a flow.
    pub(crate) fn shut_out(&self, now: Instant) -> usize {
        let vain = self.handshakes.iter().filter(|seen| seen.is_in_vain(now));
        let motes: BTreeSet<Ipv6Addr> = vain.map(|seen| seen.key.mote).collect();
        motes.len()
    }

    /// Whether a segment into the mesh acknowledges a mote's SYN-ACK.
    fn completes_handshake(&self, segment: &Segment) -> bool {
        let Some(ack) = segment.ack else { return false };
        let mut handshakes = self.handshakes.iter();
        handshakes.any(|seen| seen.key == segment.flow && seen.up == Some(ack))
    }

    fn enter(&mut self, key: FlowKey, counters: &mut Counters, now: Instant) -> Option<FlowId> {
        let own = self.motes.get(&key.mote).map_or(0, |mote| mote.flows);
        if own >= self.flows_per_mote_max {
            counters.mote_full += 1;
            return None;
        }
        let is_full = self.len() >= self.flows_max
            || own == 0
                && self.motes.len() >= self.flows_max
                && !self.motes.contains_key(&key.mote);
        if is_full {
            counters.table_full += 1;
            return None;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // Lossless: `flows_max` is no more.
            FlowId((self.slots.len() - 1) as u32)
        });
        let mut flow = Flow::new(key, now);
        if let Some(place) = self.handshakes.iter().position(|seen| seen.key == key)
            && let Some(seen) = self.handshakes.remove(place)
        {
            flow.set_mss(seen.mss);
            let answered = seen.answered.filter(|_| !seen.is_answered_again);
            let took = answered.map(|answered| now.since(answered));
            flow.opened_in = took.filter(|took| *took <= OPENED_MAX);
            seen.down
                .into_iter()
                .for_each(|span| flow.begin_down(span, now));
        }
        self.slots[id.index()] = Some(flow);
        self.by_key.insert(key, id);
        let mote = self.motes.entry(key.mote).or_insert_with(|| Mote {
            flows: 0,
            tally: Tally::default(),
            meter: Meter::new(now),
            last: now,
        });
        mote.flows += 1;
        counters.flows += 1;
        Some(id)
    }

    /// Stores the information of a SYN: the MSS of each end, and the beginning of the stream into
    /// the mesh. If there are several SYNs, the latest counts.
    fn note_handshake(&mut self, segment: &Segment, now: Instant) {
        let known = self
            .handshakes
            .iter()
            .position(|seen| seen.key == segment.flow);
        let mut seen = match known.and_then(|place| self.handshakes.remove(place)) {
            Some(seen) => seen,
            None => Handshake::new(segment.flow),
        };
        if segment.direction == Direction::Up && segment.ack.is_none() {
            let asked = seen.asked.filter(|[_, last]| now.since(*last) < VAIN_MAX);
            if asked.is_none() {
                // The same ports, long after: another try.
                (seen.answered, seen.is_answered_again) = (None, false);
            }
            seen.asked = Some([asked.map_or(now, |[first, _]| first), now]);
        }
        if segment.direction == Direction::Down && segment.ack.is_some() {
            seen.is_answered_again |= seen.answered.replace(now).is_some();
        }
        if let Some(mss) = segment.mss {
            // The MSS option limits the segments of the other direction.
            seen.mss[segment.direction.back() as usize] = Some(mss);
        }
        if let (Direction::Up, Some(ack)) = (segment.direction, segment.ack) {
            seen.up = Some(segment.end());
            seen.down = Some(Span {
                begin: ack,
                end: ack,
                seen: 0,
                holes: 0,
            });
        }
        if self.handshakes.len() >= HANDSHAKES_MAX {
            // A flood of SYNs pushes none out that a mote has answered, before all others.
            let unanswered = self.handshakes.iter().position(|seen| seen.up.is_none());
            self.handshakes.remove(unanswered.unwrap_or(0));
        }
        self.handshakes.push_back(seen);
    }

    /// Notes the progress of the stream into the mesh, for a flow whose mote has sent a SYN-ACK,
    /// but no other segment yet.
    fn note_early(&mut self, segment: &Segment) {
        let mut handshakes = self.handshakes.iter_mut();
        let seen = handshakes.find(|seen| seen.key == segment.flow);
        if let Some(span) = seen.and_then(|seen| seen.down.as_mut())
            && segment.payload_len > 0
        {
            let further = segment.end().wrapping_sub(span.end);
            if further <= EARLY_MAX && span.end.wrapping_sub(span.begin) <= EARLY_MAX {
                let new = segment.new_bytes(further);
                span.end = segment.end();
                span.seen += new.seen;
                span.holes += new.holes;
            }
        }
    }

    /// Flows that are to be forgotten: those that are over or have long been silent, and in a
    /// full table the one that has been silent longest. None of them has a packet held.
    pub(crate) fn stale(&mut self, now: Instant) -> Vec<FlowId> {
        let is_full = self.len() >= self.flows_max;
        let every = if is_full { SWEEP_FULL } else { SWEEP };
        if now.since(self.swept) < every {
            return Vec::new();
        }
        self.swept = now;
        let (flows, motes) = (&self.by_key, &mut self.motes);
        debug_assert!(flows.len() <= self.flows_max, "the table is bounded");
        motes.retain(|_, mote| mote.flows > 0 || now.since(mote.last) < MOTE_FORGOTTEN);
        let quiet = || self.iter().filter(|(_, flow)| flow.held_in_all() == 0);
        let is_stale = |flow: &Flow| {
            let patience = if flow.is_over {
                OVER_FORGOTTEN
            } else {
                SILENT_FORGOTTEN
            };
            now.since(flow.last) >= patience
        };
        let mut stale: Vec<FlowId> = quiet()
            .filter(|(_, flow)| is_stale(flow))
            .map(|(id, _)| id)
            .collect();
        if stale.is_empty() && is_full {
            let oldest = quiet().min_by_key(|(id, flow)| (flow.last, *id));
            stale.extend(
                oldest
                    .filter(|(_, flow)| now.since(flow.last) >= SWEEP)
                    .map(|(id, _)| id),
            );
        }
        stale
    }

    /// Forgets a flow.
    pub(crate) fn forget(&mut self, id: FlowId, now: Instant) {
        let Some(flow) = self.slots.get_mut(id.index()).and_then(Option::take) else {
            return;
        };
        self.by_key.remove(&flow.key);
        self.free.push(id);
        if let Some(mote) = self.motes.get_mut(&flow.key.mote) {
            mote.flows -= 1;
            mote.last = now;
            mote.tally.add(&flow.tally);
            mote.meter.absorb(&flow.meter, now);
        }
    }
}

/// The SYN by which a mote opens its flow.
#[cfg(test)]
fn syn_of(mote: u16) -> Segment {
    Segment {
        flow: FlowKey {
            mote: Ipv6Addr::from(u128::from(mote)),
            mote_port: 1,
            peer: Ipv6Addr::UNSPECIFIED,
            peer_port: 80,
        },
        direction: Direction::Up,
        seq: 0,
        ack: None,
        flags: Flags::SYN,
        payload_len: 0,
        packet_len: 64,
        mss: Some(440),
    }
}

#[cfg(test)]
impl Flows {
    /// So many motes have sent a SYN twice, at the time `at` and three seconds later, to a peer
    /// that answers or does not.
    pub(crate) fn of_motes_that_try(motes: u16, is_answered: bool, at: Instant) -> Self {
        let (mut flows, mut counters) = (Self::new(&Config::default()), Counters::default());
        for mote in 0..motes {
            let syn = syn_of(mote);
            let answer = Segment {
                direction: Direction::Down,
                ack: Some(1),
                ..syn
            };
            flows.find(&syn, &mut counters, at);
            if is_answered {
                flows.find(&answer, &mut counters, at);
            }
            flows.find(&syn, &mut counters, at + VAIN_MIN);
        }
        flows
    }
}

/// How often flows are looked through.
const SWEEP: Duration = Duration::from_secs(10);

/// How often while the table is full.
const SWEEP_FULL: Duration = Duration::from_secs(1);

/// How long a flow is remembered behind its end.
const OVER_FORGOTTEN: Duration = Duration::from_secs(30);

/// How long an open flow is remembered through which nothing passes. It is entered again with its
/// next segment.
const SILENT_FORGOTTEN: Duration = Duration::from_secs(15 * 60);

/// How long a mote is remembered without a flow: the longest window of its goodput.
const MOTE_FORGOTTEN: Duration = Duration::from_secs(10 * 60);

/// Handshakes that are remembered at a time. What a flood pushes out costs a flow its segment
/// size, without which only packets longer than the mesh's MTU count as merged; and its flow is
/// known only with the mote's first acknowledgment.
const HANDSHAKES_MAX: usize = 256;

/// The most that a mote may be sent before its first acknowledgment, bytes: more than any mote's
/// window.
const EARLY_MAX: u32 = 1 << 16;

/// A mote that sends its SYN again for so long tries in vain: on a quiet mesh one of the first two
/// arrives.
const VAIN_MIN: Duration = Duration::from_secs(3);

/// A mote that sends no SYN for so long has given up.
const VAIN_MAX: Duration = Duration::from_secs(30);

/// A flow was opened in this time at most. What came later is no answer to the SYN-ACK: the ACK was
/// lost, or there was no room for the flow.
const OPENED_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    /// A mote that nobody answers is kept out by nobody, and one that tries no more has gone.
    #[test]
    fn motes_that_try_in_vain_are_counted() {
        let at = Instant::ORIGIN + Duration::from_secs(1_000);
        for (motes, is_answered, after_s, expected) in [
            (5, true, 3, 5),
            (5, false, 3, 0),
            (5, true, 8, 5),
            (5, true, 9, 0),
            (300, true, 3, HANDSHAKES_MAX),
        ] {
            let flows = Flows::of_motes_that_try(motes, is_answered, at);
            let seen = flows.shut_out(at + Duration::from_secs(after_s));
            assert_eq!(seen, expected, "{motes} {is_answered} {after_s}");
        }
    }

    /// The first SYN from ports that a mote used long ago is no SYN in vain.
    #[test]
    fn a_next_try_from_the_same_ports_begins_anew() {
        let at = Instant::ORIGIN + Duration::from_secs(1_000);
        let mut flows = Flows::of_motes_that_try(5, true, at);
        let again = at + Duration::from_secs(3_600);
        for mote in 0..5 {
            flows.find(&syn_of(mote), &mut Counters::default(), again);
        }
        assert_eq!(flows.shut_out(again), 0);
        assert_eq!(flows.shut_out(again + Duration::from_secs(4)), 0);
    }
}
