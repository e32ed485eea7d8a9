//! The table of fragmented packets that this node receives or forwards.
//!
//! A record has the key of a packet, the ranges of its bytes that have arrived, and what to do with
//! its fragments: store them in a body until the packet is complete (packets for this node, or
//! reassembly at each hop), or forward them at once with a new tag (fragment forwarding).
//!
//! Place: the node parses a fragment, decompresses and routes a first one, asks this table,
//! and acts on the [`FragmentOutcome`]. Left out: headers, routes, frames.
//!
//! Everything is bounded against hostile neighbours: records, bodies, both per neighbour, and the
//! time each is kept. If all are taken, a new packet replaces another one: first those of
//! strangers, then those with a single fragment, and among these the one whose last fragment is the
//! oldest. A stranger is a neighbour that has never acknowledged a frame of this node; its packets
//! never replace those of a known neighbour. A packet that still receives fragments cannot be
//! replaced by one of the same rank for 250 ms, nor by a stranger's for a second. But a known
//! neighbour that has been refused for long may now and then replace a packet of one that has not.
//!
//! Sources: RFC 4944 §5.3 (reassembly, overlaps, time limit); RFC 8930 §5 and §6
//! (forwarding without reassembly; tags are a link's own).

mod record;
mod room;
mod tags;

pub use record::{LIFETIME, Record};
pub use room::BURST_MAX;

use super::routing::RecordRouting;
use super::{First, HeaderForms, Unnumbered, numbered, unabridged};
use crate::limits::{IS_RELAY, MESH_PACKET_LEN_MAX};
use crate::random::Rng;
pub use crate::storage::whole::Whole;
use crate::time::{Allowance, Instant, earliest};
use crate::wire::{LinkAddr, cursor};
use record::{Span, State};
use tags::Tags;

/// The table. Fragments of broadcast frames are treated like unicast ones.
#[derive(Debug)]
pub struct Datagrams<'m> {
    records: &'m mut [Record],
    bodies: &'m mut [u8],
    body_len: usize,
    tags: Tags,
    overtakings: Allowance,
    /// Whether a packet may begin with another fragment than its first.
    any_order: bool,
    /// The earliest deadline of all records: read at every poll, changed by few events.
    deadline: Option<Instant>,
    counters: DatagramCounters,
}

/// The key of a fragmented packet at a receiver (RFC 4944 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// The neighbour that sent the fragment over this hop.
    pub from: LinkAddr,
    /// `datagram_tag` that the sender chose for the packet (RFC 4944 §5.3).
    pub tag: u16,
    /// `datagram_size`, bytes before compression, as fragment headers number them.
    pub size: u16,
}

/// The handling of a packet, decided from its first fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FragmentHandling {
    /// The packet is for this node, or is reassembled at each hop: gather it here.
    Reassemble,
    /// Pass its fragments on to this neighbour as they come. Refused in a build without the feature
    /// `relay`.
    Forward {
        /// Link address of the next hop.
        next_hop: LinkAddr,
    },
}

/// The next step for a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FragmentOutcome {
    /// Send it on with this tag, contents unchanged but for a first fragment's header.
    Forward {
        /// Link address of the next hop.
        next_hop: LinkAddr,
        /// `datagram_tag` towards the next hop.
        tag: u16,
    },
    /// The fragment is kept; more must come.
    Stored,
    /// The packet is whole: [`Datagrams::lend`] it, then [`Datagrams::give_back`].
    Complete(RecordId),
    /// Discard the fragment; the reason is counted.
    Drop(FragmentDrop),
}

/// A whole packet in the table, until released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId(u8);

/// Why a fragment, or with it a whole packet, was discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FragmentDrop {
    /// The first fragment has not come, and it decides where the others go.
    NoRecord,
    /// Every record is in use.
    TableFull,
    /// This neighbour has as many packets under way as one may.
    NeighborQuota,
    /// No memory to gather the packet in.
    NoBody,
    /// Larger than a body, or than [`MESH_PACKET_LEN_MAX`].
    TooLarge,
    /// Empty, not a multiple of eight bytes, or beyond the packet's end.
    BadLength,
    /// These bytes have come before.
    Duplicate,
    /// The fragment contradicts bytes that have come before; the packet is given up.
    Overlap,
    /// Another fragment of the packet was lost: the rest is of no use.
    SiblingLost,
    /// The packet was not whole in time.
    Timeout,
    /// The record was needed for another packet.
    Evicted,
}

impl FragmentDrop {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoRecord => "fragment of a packet whose first has not come",
            Self::TableFull => "every record is in use",
            Self::NeighborQuota => "the neighbour has too many packets under way",
            Self::NoBody => "no memory to gather the packet in",
            Self::TooLarge => "packet too large to gather",
            Self::BadLength => "fragment of an illegal length",
            Self::Duplicate => "fragment has come before",
            Self::Overlap => "fragment contradicts what has come",
            Self::SiblingLost => "another fragment of the packet was lost",
            Self::Timeout => "packet not whole in time",
            Self::Evicted => "record needed for another packet",
        }
    }
}

speaks!(FragmentDrop);

impl FragmentDrop {
    /// How many reasons there are.
    pub const COUNT: usize = Self::Evicted as usize + 1;
}

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Debug, Default)]
pub struct DatagramCounters {
    /// Packets put together from all their fragments.
    pub reassembled: u32,
    /// Packets of which every fragment was forwarded.
    pub forwarded: u32,
    drops: [u32; FragmentDrop::COUNT],
}

impl DatagramCounters {
    /// Fragments discarded for `reason`; packets for `Timeout` and `Evicted`.
    pub fn dropped(&self, reason: FragmentDrop) -> u32 {
        self.drops.get(reason as usize).copied().unwrap_or_default()
    }

    fn drop(&mut self, reason: FragmentDrop) -> FragmentOutcome {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
        FragmentOutcome::Drop(reason)
    }
}

impl<'m> Datagrams<'m> {
    /// A table over borrowed records (at most 255 are used) and as many bodies of
    /// `body_len` bytes as `bodies` holds; a packet larger than that is refused.
    ///
    /// `any_order`: whether a packet may begin with another fragment than its first, which
    /// costs a body for what may have to be forwarded. Needed only where a link reorders.
    pub fn new(
        records: &'m mut [Record],
        bodies: &'m mut [u8],
        body_len: usize,
        any_order: bool,
        rng: &mut Rng,
    ) -> Self {
        for record in records.iter_mut() {
            *record = Record::EMPTY;
        }
        Self {
            records,
            bodies,
            body_len,
            tags: Tags::new(rng),
            overtakings: room::OVERTAKINGS,
            any_order,
            deadline: None,
            counters: DatagramCounters::default(),
        }
    }

    /// The records and the bodies it was lent.
    pub(crate) fn into_memory(self) -> (&'m mut [Record], &'m mut [u8]) {
        (self.records, self.bodies)
    }

    /// Length of one body, the memory in which a packet is gathered, bytes.
    pub(crate) const fn body_len(&self) -> usize {
        self.body_len
    }

    /// Begins the tags of this node's packets anew, at a random one.
    pub(crate) fn renew_tags(&mut self, rng: &mut Rng) {
        self.tags = Tags::new(rng);
    }

    /// A tag for a packet this node fragments. Also serves as the MAC's token, so that
    /// [`Self::fragment_lost`] finds the packet.
    pub fn new_tag(&mut self) -> u16 {
        self.tags.draw()
    }

    /// How many tags were given out, modulo 2^16 and from a random start: after 65,536 of them
    /// they come again in the same order.
    pub const fn tags_given(&self) -> u16 {
        self.tags.next
    }

    /// The longest packet that can be passed on or gathered here, bytes.
    pub(crate) fn packet_len_max(&self, handling: FragmentHandling) -> usize {
        match handling {
            FragmentHandling::Reassemble => self.body_len.min(MESH_PACKET_LEN_MAX),
            FragmentHandling::Forward { .. } => MESH_PACKET_LEN_MAX,
        }
    }

    /// Takes a first fragment. `is_known`: whether its sender is known to be there.
    pub fn on_first(
        &mut self,
        key: Key,
        first: First<'_>,
        handling: FragmentHandling,
        is_known: bool,
        now: Instant,
    ) -> FragmentOutcome {
        let len = unabridged(usize::from(key.size), first.unnumbered);
        let piece = Piece {
            offset: 0,
            bytes: first.bytes,
            unnumbered: first.unnumbered,
        };
        let index = match self.find(key, now) {
            Some(index) => Ok(index),
            None if len > self.packet_len_max(handling) => Err(FragmentDrop::TooLarge),
            None => match piece.span(key.size) {
                Some(_) => self.open((key, len), handling, is_known, now),
                None => Err(FragmentDrop::BadLength),
            },
        };
        let outcome = self.judge(index, piece, now);
        if let (FragmentOutcome::Stored | FragmentOutcome::Complete(_), Ok(index)) =
            (outcome, index)
            && let Some(record) = self.records.get_mut(usize::from(index))
        {
            record.tcp = first.forms.tcp;
            record.routing = RecordRouting::of(first.forms.rpi, first.unnumbered);
        }
        outcome
    }

    /// Takes a later fragment, which starts at byte `offset` of the uncompressed packet as
    /// fragment headers number it.
    pub fn on_next(
        &mut self,
        key: Key,
        offset: usize,
        piece: &[u8],
        now: Instant,
    ) -> FragmentOutcome {
        let index = match self.find(key, now) {
            Some(index) => Ok(index),
            None if !self.any_order => Err(FragmentDrop::NoRecord),
            None => match Span::new(key.size, offset, piece.len()) {
                Some(_) => {
                    let size = usize::from(key.size);
                    self.open((key, size), FragmentHandling::Reassemble, false, now)
                }
                None => Err(FragmentDrop::BadLength),
            },
        };
        let piece = Piece {
            offset,
            bytes: piece,
            unnumbered: Unnumbered::default(),
        };
        self.judge(index, piece, now)
    }

    /// Lends the complete packet of [`FragmentOutcome::Complete`], with the memory of all bodies;
    /// until [`Self::give_back`] no packet can be reassembled. Also returns the forms of its TCP
    /// and routing headers. `None` if it was released or has timed out.
    pub fn lend(&mut self, id: RecordId) -> Option<(Whole<'m>, HeaderForms)> {
        let record = self.records.get(usize::from(id.0))?;
        let State::Whole { body } = record.state else {
            return None;
        };
        let start = usize::from(body) * self.body_len;
        let bodies = core::mem::take(&mut self.bodies);
        let whole = Whole::new(bodies, start, record.packet_len() as u16, id.0);
        let forms = HeaderForms {
            tcp: record.tcp,
            rpi: record.routing.rpi(),
        };
        Some((whole, forms))
    }

    /// Ends a loan: the packet has been dealt with.
    pub fn give_back(&mut self, whole: Whole<'m>) {
        let (bodies, id) = whole.into_memory();
        self.bodies = bodies;
        self.release(RecordId(id));
    }

    /// As [`Self::lend`], where it lies. Empty once released or timed out.
    #[cfg(test)]
    fn packet(&mut self, id: RecordId) -> &mut [u8] {
        let Some(record) = self.records.get(usize::from(id.0)) else {
            return &mut [];
        };
        let size = record.packet_len();
        match record.state {
            State::Whole { body } => self
                .body_mut(body)
                .and_then(|body| body.get_mut(..size))
                .unwrap_or_default(),
            _ => &mut [],
        }
    }

    /// Gives the packet's memory back.
    fn release(&mut self, id: RecordId) {
        if let Some(record) = self.records.get_mut(usize::from(id.0))
            && matches!(record.state, State::Whole { .. })
        {
            record.state = State::Over { lost: false };
            self.note_deadline();
        }
    }

    /// A fragment that was forwarded under `tag` did not get through, or found no room: the
    /// packet's later fragments will be dropped. Returns whether there was such a packet, as far as
    /// it is remembered.
    pub fn fragment_lost(&mut self, tag: u16) -> bool {
        if !IS_RELAY {
            return false;
        }
        let is_its = |record: &&mut Record| match record.state {
            State::Forwarding { tag: out, .. } | State::Passed { tag: out } => out == tag,
            _ => false,
        };
        let forwarded = self.records.iter_mut().find(is_its);
        match forwarded {
            Some(record) => {
                record.state = State::Over { lost: true };
                self.note_deadline();
                true
            }
            None => false,
        }
    }

    /// Gives up the packets whose time is over.
    pub fn expire(&mut self, now: Instant) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        for record in self.records.iter_mut() {
            if record.deadline().is_some_and(|deadline| now >= deadline) {
                record.state = State::Over { lost: true };
                self.counters.drop(FragmentDrop::Timeout);
            }
        }
        self.note_deadline();
    }

    /// When [`Self::expire`] has something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        debug_assert_eq!(
            self.deadline,
            self.first_deadline(),
            "noted whenever a record changes"
        );
        self.deadline
    }

    fn note_deadline(&mut self) {
        self.deadline = self.first_deadline();
    }

    fn first_deadline(&self) -> Option<Instant> {
        self.records
            .iter()
            .fold(None, |first, record| earliest(first, record.deadline()))
    }

    /// Packets of which fragments have come and are awaited.
    pub fn len(&self) -> usize {
        self.records
            .iter()
            .filter(|record| record.is_active())
            .count()
    }

    /// Whether no packet is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fragments and packets counted since start.
    pub const fn counters(&self) -> &DatagramCounters {
        &self.counters
    }

    /// Adds a fragment to its record, if it has one.
    fn judge(
        &mut self,
        index: Result<u8, FragmentDrop>,
        piece: Piece<'_>,
        now: Instant,
    ) -> FragmentOutcome {
        let outcome = index.and_then(|index| self.add(index, piece, now));
        self.note_deadline();
        outcome.unwrap_or_else(|reason| self.counters.drop(reason))
    }

    fn add(
        &mut self,
        index: u8,
        piece: Piece<'_>,
        now: Instant,
    ) -> Result<FragmentOutcome, FragmentDrop> {
        let record = self.records.get_mut(usize::from(index));
        let record = record.ok_or(FragmentDrop::NoRecord)?;
        match record.state {
            State::Free => return Err(FragmentDrop::NoRecord),
            State::Over { lost: true } => return Err(FragmentDrop::SiblingLost),
            State::Over { lost: false } | State::Passed { .. } | State::Whole { .. } => {
                return Err(FragmentDrop::Duplicate);
            }
            State::Gathering { .. } | State::Forwarding { .. } => {}
        }
        let span = piece.span(record.key.size).ok_or(FragmentDrop::BadLength)?;
        let bytes = piece.bytes;
        let had = record.coverage.count(span);
        let (at, is_shifted) = match piece.offset {
            // Fragments that came before the first one have been put elsewhere, then.
            0 => {
                let is_other = piece.unnumbered != record.routing.unnumbered();
                let is_late = record.coverage.count > 0 && record.body().is_some();
                (0, is_other && is_late)
            }
            offset => (unabridged(offset, record.routing.unnumbered()), false),
        };
        if had > 0 || is_shifted {
            let body = record.body();
            // Where bytes are kept they decide; on a relay the extent has to do.
            let same = had == span.len && body.is_none_or(|body| self.holds(body, at, bytes));
            return Err(if same {
                FragmentDrop::Duplicate
            } else {
                self.give_up(index);
                FragmentDrop::Overlap
            });
        }
        record.grows = record.coverage.count > 0;
        record.coverage.add(span);
        record.heard_at = now;
        let whole = record.coverage.is_whole(record.key.size);
        match record.state {
            State::Forwarding { next_hop, tag } if IS_RELAY => {
                if whole {
                    record.state = State::Passed { tag };
                    self.counters.forwarded = self.counters.forwarded.wrapping_add(1);
                }
                Ok(FragmentOutcome::Forward { next_hop, tag })
            }
            State::Gathering { body } => {
                if whole {
                    record.state = State::Whole { body };
                    self.counters.reassembled = self.counters.reassembled.wrapping_add(1);
                }
                let room = self
                    .body_mut(body)
                    .and_then(|body| body.get_mut(at..))
                    .unwrap_or_default();
                cursor::copy(room, bytes);
                Ok(if whole {
                    FragmentOutcome::Complete(RecordId(index))
                } else {
                    FragmentOutcome::Stored
                })
            }
            _ => Err(FragmentDrop::NoRecord),
        }
    }

    fn find(&self, key: Key, now: Instant) -> Option<u8> {
        let known = |record: &Record| record.key == key && record.is_known(now);
        (0..u8::MAX)
            .zip(self.records.iter())
            .find(|(_, record)| known(record))
            .map(|(index, _)| index)
    }

    fn give_up(&mut self, index: u8) {
        if let Some(record) = self.records.get_mut(usize::from(index)) {
            record.state = State::Over { lost: true };
        }
    }

    fn holds(&self, body: u8, offset: usize, piece: &[u8]) -> bool {
        let start = usize::from(body) * self.body_len + offset;
        self.bodies
            .get(start..)
            .is_some_and(|bytes| bytes.starts_with(piece))
    }

    fn body_mut(&mut self, body: u8) -> Option<&mut [u8]> {
        let start = usize::from(body) * self.body_len;
        self.bodies.get_mut(start..)?.get_mut(..self.body_len)
    }
}

/// A fragment's bytes, and where they belong.
#[derive(Clone, Copy, Debug)]
struct Piece<'p> {
    /// Offset in the packet as its fragment header numbers it, bytes.
    offset: usize,
    bytes: &'p [u8],
    /// The bytes of this packet that fragment headers do not number; 0 except in a first fragment.
    unnumbered: Unnumbered,
}

impl Piece<'_> {
    /// The units it covers, of a packet of `size` bytes as fragment headers number them.
    fn span(&self, size: u16) -> Option<Span> {
        let len = match self.offset {
            0 => numbered(self.bytes.len(), self.unnumbered),
            _ => self.bytes.len(),
        };
        Span::new(size, self.offset, len)
    }
}

#[cfg(test)]
#[path = "tests/datagram.rs"]
mod tests;
