//! The one table of fragmented packets on their way in or through.
//!
//! A record says which packet a fragment belongs to, which of its bytes have come, and
//! where it goes: into a body until it is whole (this node's own packets, or reassembly at
//! each hop), or on at once under a new tag (fragment forwarding).
//!
//! Place: the node parses a fragment, decompresses and routes a first one, asks this table,
//! and acts on the [`Verdict`]. Left out: headers, routes, frames.
//!
//! Everything is bounded against hostile neighbours: records, bodies, both per neighbour,
//! and the time each is kept. Where all are taken, a packet makes way for a new one: first
//! those of strangers, then those of which only one fragment has come, and of these the one
//! heard of least recently. A stranger is a neighbour that has never acknowledged a frame of
//! this node; nothing of a stranger pushes out what a known neighbour sends. A packet that
//! grows is safe from its like for [`PAUSE_MAX`], from strangers for [`STALE_AFTER`].
//!
//! Sources: RFC 4944 §5.3 (reassembly, overlaps, time limit); RFC 8930 §5 and §6
//! (forwarding without reassembly; tags are a link's own).

use super::TcpForm;
use crate::limits::IPV6_MTU_MIN;
use crate::planted::{Bug, planted};
use crate::random::{KeyedHash, Rng};
use crate::time::{Duration, Instant, earliest};
use crate::wire::{LinkAddr, cursor};

/// The table. Fragments of broadcast frames are not told from unicast ones.
#[derive(Debug)]
pub struct Datagrams<'m> {
    records: &'m mut [Record],
    bodies: &'m mut [u8],
    body_len: usize,
    tags: Tags,
    /// Whether a packet may begin with another fragment than its first.
    any_order: bool,
    /// The earliest deadline of all records: asked at every poll, changed by few events.
    deadline: Option<Instant>,
    counters: Counters,
}

/// What tells one fragmented packet from another at a receiver (RFC 4944 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Who sent the fragment over this hop.
    pub from: LinkAddr,
    /// `datagram_tag`, the sender's.
    pub tag: u16,
    /// `datagram_size`, bytes before compression.
    pub size: u16,
}

/// Where a packet goes, decided from its first fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Gather it here.
    Reassemble,
    /// Pass its fragments on to this neighbour as they come.
    Forward {
        /// Link address of the next hop.
        next_hop: LinkAddr,
    },
}

/// What to do with a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Send it on with this tag, contents unchanged but for a first fragment's header.
    Forward {
        /// Link address of the next hop.
        next_hop: LinkAddr,
        /// `datagram_tag` towards the next hop.
        tag: u16,
    },
    /// It is kept; more must come.
    Stored,
    /// The packet is whole: [`Datagrams::lend`] it, then [`Datagrams::give_back`].
    Complete(RecordId),
    /// Discard it; counted.
    Drop(Drop),
}

/// A whole packet in the table, until released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId(u8);

/// A whole packet on loan, with the memory it lies in.
#[must_use = "the memory must be given back"]
#[derive(Debug)]
pub struct Whole<'m> {
    id: RecordId,
    start: usize,
    len: u16,
    tcp: TcpForm,
    bodies: &'m mut [u8],
}

impl Whole<'_> {
    /// How the packet has its TCP header.
    pub const fn tcp_form(&self) -> TcpForm {
        self.tcp
    }

    /// The packet; writable, for a forwarder's hop limit and congestion mark.
    pub fn packet(&mut self) -> &mut [u8] {
        let rest = self.bodies.get_mut(self.start..).unwrap_or_default();
        rest.get_mut(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Why a fragment, or with it a whole packet, was discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Drop {
    /// The first fragment has not come, and it decides where the others go.
    NoRecord,
    /// Every record is in use.
    TableFull,
    /// This neighbour has as many packets under way as one may.
    NeighborQuota,
    /// No memory to gather the packet in.
    NoBody,
    /// Larger than a body, or than IPv6's minimum MTU.
    TooLarge,
    /// Empty, not a multiple of eight bytes, or beyond the packet's end.
    BadLength,
    /// These bytes have come before.
    Duplicate,
    /// It contradicts bytes that have come before; the packet is given up.
    Overlap,
    /// Another fragment of the packet was lost: the rest is of no use.
    SiblingLost,
    /// The packet was not whole in time.
    Timeout,
    /// Its record was needed for another packet.
    Evicted,
}

impl Drop {
    /// The reason in words.
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

speaks!(Drop);

impl Drop {
    /// How many reasons there are.
    pub const COUNT: usize = Self::Evicted as usize + 1;
}

/// Totals since start; all wrap at 2^32.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Packets gathered whole.
    pub reassembled: u32,
    /// Packets whose every fragment was passed on.
    pub forwarded: u32,
    drops: [u32; Drop::COUNT],
}

impl Counters {
    /// Fragments discarded for `reason`; packets for `Timeout` and `Evicted`.
    pub fn dropped(&self, reason: Drop) -> u32 {
        self.drops.get(reason as usize).copied().unwrap_or_default()
    }

    fn drop(&mut self, reason: Drop) -> Verdict {
        if let Some(count) = self.drops.get_mut(reason as usize) {
            *count = count.wrapping_add(1);
        }
        Verdict::Drop(reason)
    }
}

/// One packet under way, borrowed from the caller; [`Record::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct Record {
    key: Key,
    state: State,
    /// Said by the first fragment.
    tcp: TcpForm,
    /// Whether its sender is known to be there.
    is_known: bool,
    /// Whether more than one fragment of it has come.
    grows: bool,
    coverage: Coverage,
    /// When its last useful fragment came.
    heard_at: Instant,
    /// However many fragments still come.
    give_up_at: Instant,
}

impl Record {
    /// A record of nothing: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        key: Key {
            from: LinkAddr::Short(0),
            tag: 0,
            size: 0,
        },
        state: State::Free,
        tcp: TcpForm::Plain,
        is_known: false,
        grows: false,
        coverage: Coverage::NONE,
        heard_at: Instant::ORIGIN,
        give_up_at: Instant::ORIGIN,
    };

    /// Whether fragments are still expected or the packet not yet released.
    const fn is_active(&self) -> bool {
        !matches!(self.state, State::Free | State::Over { .. })
    }

    /// Whether fragments of this key belong to this packet: active, or over not long ago.
    fn is_known(&self, now: Instant) -> bool {
        match self.state {
            State::Free => false,
            State::Over { .. } => now.since(self.heard_at) < LINGER,
            _ => true,
        }
    }

    const fn holds(&self, holding: Holding) -> bool {
        match holding {
            Holding::Record => self.is_active(),
            Holding::Body => self.body().is_some(),
        }
    }

    const fn body(&self) -> Option<u8> {
        match self.state {
            State::Gathering { body } | State::Whole { body } => Some(body),
            _ => None,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let idle = match self.state {
            State::Free | State::Over { .. } => return None,
            State::Forwarding { .. } => RELAY_TIMEOUT,
            State::Gathering { .. } | State::Whole { .. } => REASSEMBLY_TIMEOUT,
        };
        Some((self.heard_at + idle).min(self.give_up_at))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)] // Makes `Free` zero.
enum State {
    Free,
    /// Fragments are collected in this body.
    Gathering {
        body: u8,
    },
    /// All have come; the node has yet to take the packet.
    Whole {
        body: u8,
    },
    /// Fragments are passed on as they come.
    Forwarding {
        next_hop: LinkAddr,
        tag: u16,
    },
    /// Done with, well or not. Remembered for [`LINGER`], unless the record is needed, so
    /// that repeated or orphaned fragments do not open another.
    Over {
        lost: bool,
    },
}

/// The tags of this node's packets: all 65,536, in an order that only the key knows. A tag that
/// was heard does not tell the next one, a reboot continues no packet of before, and none
/// comes again before all others have.
#[derive(Debug)]
struct Tags {
    /// Place of the next one in that order.
    next: u16,
    hash: KeyedHash,
}

/// The tag at a place: four rounds of a Feistel network, which makes a permutation of any hash
/// (Luby and Rackoff, 1988).
fn permute(place: u16, hash: &KeyedHash) -> u16 {
    let [mut left, mut right] = place.to_be_bytes();
    for round in 0..4 {
        let word = [round, right, 0, 0, 0, 0, 0, 0];
        (left, right) = (right, left ^ hash.hash(&[&[word]]) as u8);
    }
    u16::from_be_bytes([left, right])
}

/// What a packet takes up.
#[derive(Clone, Copy, Debug)]
enum Holding {
    Record,
    Body,
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
            tags: Tags {
                next: rng.next_u32() as u16,
                hash: rng.keyed_hash(),
            },
            any_order,
            deadline: None,
            counters: Counters::default(),
        }
    }

    /// A tag for a packet this node fragments. Also serves as the MAC's token, so that
    /// [`Self::fragment_lost`] finds the packet.
    pub fn new_tag(&mut self) -> u16 {
        let Tags { next, hash } = &mut self.tags;
        let tag = permute(*next, hash);
        *next = next.wrapping_add(u16::from(!planted(Bug::TagReuse)));
        tag
    }

    /// How many tags were given out, modulo 2^16 and from a random start: after 65,536 of them
    /// they come again in the same order.
    pub const fn tags_given(&self) -> u16 {
        self.tags.next
    }

    /// The longest packet that can be passed on or gathered here, bytes.
    pub fn packet_len_max(&self, role: Role) -> usize {
        match role {
            Role::Reassemble => self.body_len.min(IPV6_MTU_MIN),
            Role::Forward { .. } => IPV6_MTU_MIN,
        }
    }

    /// Takes a first fragment. `piece`: its bytes *decompressed*, header and all, TCP's in
    /// the form `tcp`. `is_known`: whether its sender is known to be there.
    pub fn on_first(
        &mut self,
        key: Key,
        piece: &[u8],
        tcp: TcpForm,
        role: Role,
        is_known: bool,
        now: Instant,
    ) -> Verdict {
        let index = match self.find(key, now) {
            Some(index) => Ok(index),
            None if usize::from(key.size) > self.packet_len_max(role) => Err(Drop::TooLarge),
            None => match Span::new(key.size, 0, piece.len()) {
                Some(_) => self.open(key, role, is_known, now),
                None => Err(Drop::BadLength),
            },
        };
        let verdict = self.judge(index, 0, piece, now);
        if let (Verdict::Stored | Verdict::Complete(_), Ok(index)) = (verdict, index)
            && let Some(record) = self.records.get_mut(usize::from(index))
        {
            record.tcp = tcp;
        }
        verdict
    }

    /// Takes a later fragment, which starts at byte `offset` of the uncompressed packet.
    pub fn on_next(&mut self, key: Key, offset: usize, piece: &[u8], now: Instant) -> Verdict {
        let verdict = match self.find(key, now) {
            Some(index) => Ok(index),
            None if !self.any_order => Err(Drop::NoRecord),
            None => match Span::new(key.size, offset, piece.len()) {
                Some(_) => self.open(key, Role::Reassemble, false, now),
                None => Err(Drop::BadLength),
            },
        };
        self.judge(verdict, offset, piece, now)
    }

    /// Takes the whole packet behind [`Verdict::Complete`] out of the table, to be worked on
    /// while the table stays free; until [`Self::give_back`] no packet can be gathered.
    /// `None` once released or timed out.
    pub fn lend(&mut self, id: RecordId) -> Option<Whole<'m>> {
        let record = self.records.get(usize::from(id.0))?;
        let State::Whole { body } = record.state else {
            return None;
        };
        Some(Whole {
            id,
            start: usize::from(body) * self.body_len,
            len: record.key.size,
            tcp: record.tcp,
            bodies: core::mem::take(&mut self.bodies),
        })
    }

    /// Ends a loan: the packet has been dealt with.
    pub fn give_back(&mut self, whole: Whole<'m>) {
        let Whole { id, bodies, .. } = whole;
        self.bodies = bodies;
        self.release(id);
    }

    /// As [`Self::lend`], where it lies. Empty once released or timed out.
    #[cfg(test)]
    fn packet(&mut self, id: RecordId) -> &mut [u8] {
        let Some(record) = self.records.get(usize::from(id.0)) else {
            return &mut [];
        };
        let size = usize::from(record.key.size);
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

    /// A fragment that was forwarded under `tag` did not get through, or found no room:
    /// the packet's later fragments will be dropped. Returns whether there was such a packet.
    pub fn fragment_lost(&mut self, tag: u16) -> bool {
        let forwarded = self.records.iter_mut().find(
            |record| matches!(record.state, State::Forwarding { tag: out, .. } if out == tag),
        );
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
                self.counters.drop(Drop::Timeout);
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

    /// Packets under way.
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

    /// Totals since start.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Adds a fragment to its record, if it has one.
    fn judge(
        &mut self,
        index: Result<u8, Drop>,
        offset: usize,
        piece: &[u8],
        now: Instant,
    ) -> Verdict {
        let verdict = index.and_then(|index| self.add(index, offset, piece, now));
        self.note_deadline();
        verdict.unwrap_or_else(|reason| self.counters.drop(reason))
    }

    fn add(
        &mut self,
        index: u8,
        offset: usize,
        piece: &[u8],
        now: Instant,
    ) -> Result<Verdict, Drop> {
        let record = self
            .records
            .get_mut(usize::from(index))
            .ok_or(Drop::NoRecord)?;
        match record.state {
            State::Free => return Err(Drop::NoRecord),
            State::Over { lost: true } => return Err(Drop::SiblingLost),
            State::Over { lost: false } | State::Whole { .. } => return Err(Drop::Duplicate),
            State::Gathering { .. } | State::Forwarding { .. } => {}
        }
        let span = Span::new(record.key.size, offset, piece.len()).ok_or(Drop::BadLength)?;
        let had = record.coverage.count(span);
        if had > 0 {
            let body = record.body();
            // Where bytes are kept they decide; on a relay the extent has to do.
            let same = had == span.len && body.is_none_or(|body| self.holds(body, offset, piece));
            return Err(if same {
                Drop::Duplicate
            } else {
                self.give_up(index);
                Drop::Overlap
            });
        }
        record.grows = record.coverage.count > 0;
        record.coverage.add(span);
        record.heard_at = now;
        let whole = record.coverage.is_whole(record.key.size);
        match record.state {
            State::Forwarding { next_hop, tag } => {
                if whole {
                    record.state = State::Over { lost: false };
                    self.counters.forwarded = self.counters.forwarded.wrapping_add(1);
                }
                Ok(Verdict::Forward { next_hop, tag })
            }
            State::Gathering { body } => {
                if whole {
                    record.state = State::Whole { body };
                    self.counters.reassembled = self.counters.reassembled.wrapping_add(1);
                }
                let room = self
                    .body_mut(body)
                    .and_then(|body| body.get_mut(offset..))
                    .unwrap_or_default();
                cursor::copy(room, piece);
                Ok(if whole {
                    Verdict::Complete(RecordId(index))
                } else {
                    Verdict::Stored
                })
            }
            _ => Err(Drop::NoRecord),
        }
    }

    fn find(&self, key: Key, now: Instant) -> Option<u8> {
        let known = |record: &Record| record.key == key && record.is_known(now);
        (0..u8::MAX)
            .zip(self.records.iter())
            .find(|(_, record)| known(record))
            .map(|(index, _)| index)
    }

    /// Makes a record, and a body if it needs one, for a packet not seen before.
    fn open(&mut self, key: Key, role: Role, is_known: bool, now: Instant) -> Result<u8, Drop> {
        let size = usize::from(key.size);
        if size > self.packet_len_max(role) {
            return Err(Drop::TooLarge);
        }
        let index = self.take_record((key.from, is_known), now)?;
        let state = match role {
            Role::Reassemble => State::Gathering {
                body: self.take_body((key.from, is_known), now)?,
            },
            Role::Forward { next_hop } => State::Forwarding {
                next_hop,
                tag: self.new_tag(),
            },
        };
        let record = self
            .records
            .get_mut(usize::from(index))
            .ok_or(Drop::TableFull)?;
        *record = Record {
            key,
            state,
            tcp: TcpForm::Plain,
            is_known,
            grows: false,
            coverage: Coverage::NONE,
            heard_at: now,
            give_up_at: now + LIFETIME,
        };
        Ok(index)
    }

    /// A record that is free or may be taken. One neighbour gets three of four at most.
    fn take_record(&mut self, sender: Sender, now: Instant) -> Result<u8, Drop> {
        let (from, _) = sender;
        let quota = (self.records.len() * 3 / 4).max(1);
        let any = Holding::Record;
        if self.count(any, from) >= quota {
            let (index, _) = self
                .evict(any, Some(from), sender, now)
                .ok_or(Drop::NeighborQuota)?;
            return Ok(index);
        }
        // Never used before done with, and of those the one done with first.
        let done = (0..u8::MAX)
            .zip(self.records.iter())
            .filter(|(_, record)| !record.is_active())
            .min_by_key(|(_, record)| (record.state != State::Free, record.heard_at));
        if let Some((index, _)) = done {
            return Ok(index);
        }
        let (index, _) = self.evict(any, None, sender, now).ok_or(Drop::TableFull)?;
        Ok(index)
    }

    /// A body that is free or may be taken. One neighbour gets all but one, if there are two.
    fn take_body(&mut self, sender: Sender, now: Instant) -> Result<u8, Drop> {
        let (from, _) = sender;
        let bodies = self.bodies.len().checked_div(self.body_len).unwrap_or(0);
        let bodies = u8::try_from(bodies).unwrap_or(u8::MAX);
        let quota = usize::from(bodies.saturating_sub(1).max(1));
        let (of, reason) = if self.count(Holding::Body, from) < quota {
            let taken = |body| self.records.iter().any(|r| r.body() == Some(body));
            if let Some(body) = (0..bodies).find(|&body| !taken(body)) {
                return Ok(body);
            }
            (None, Drop::NoBody)
        } else if bodies < 2 {
            (Some(from), Drop::NoBody)
        } else {
            (Some(from), Drop::NeighborQuota)
        };
        let evicted = self.evict(Holding::Body, of, sender, now);
        evicted.and_then(|(_, body)| body).ok_or(reason)
    }

    /// How much a neighbour holds.
    fn count(&self, holding: Holding, from: LinkAddr) -> usize {
        self.records
            .iter()
            .filter(|record| record.key.from == from && record.holds(holding))
            .count()
    }

    /// Gives up the packet that matters least among those that make way for a new one of
    /// `sender`, of one neighbour or of any; returns its record and body.
    fn evict(
        &mut self,
        holding: Holding,
        of: Option<LinkAddr>,
        (_, is_known): Sender,
        now: Instant,
    ) -> Option<(u8, Option<u8>)> {
        let may_go = |record: &Record| {
            let is_spared_for = match (is_known, record.is_known) {
                (true, false) => Duration::ZERO,
                (false, true) => STALE_AFTER,
                _ if record.grows => PAUSE_MAX,
                _ => BURST_MAX,
            };
            record.holds(holding)
                && of.is_none_or(|from| record.key.from == from)
                && now.since(record.heard_at) >= is_spared_for
        };
        let (index, record) = (0..u8::MAX)
            .zip(self.records.iter_mut())
            .filter(|(_, record)| may_go(record))
            .min_by_key(|(_, record)| (record.is_known, record.grows, record.heard_at))?;
        let body = record.body();
        record.state = State::Over { lost: true };
        self.counters.drop(Drop::Evicted);
        Some((index, body))
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

/// The eight-byte units that a fragment covers.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u8,
    len: u8,
}

impl Span {
    /// `None` unless the bytes lie within the packet, begin on a unit, and end on one or
    /// with the packet.
    fn new(size: u16, offset: usize, len: usize) -> Option<Self> {
        let size = usize::from(size);
        let end = offset.checked_add(len)?;
        let aligned = offset.is_multiple_of(8) && (end.is_multiple_of(8) || end == size);
        if len == 0 || end > size || size > IPV6_MTU_MIN || !aligned {
            return None;
        }
        Some(Self {
            start: (offset / 8) as u8,
            len: len.div_ceil(8) as u8,
        })
    }
}

/// Which eight-byte units of a packet have come: 1,280 bytes in 160 bits.
#[derive(Clone, Debug)]
struct Coverage {
    units: [u8; IPV6_MTU_MIN / 8 / 8],
    count: u8,
}

impl Coverage {
    const NONE: Self = Self {
        units: [0; IPV6_MTU_MIN / 8 / 8],
        count: 0,
    };

    /// How many units of the span have come.
    fn count(&self, span: Span) -> u8 {
        let mut count = 0;
        for unit in span.start..span.start.saturating_add(span.len) {
            let byte = self.units.get(usize::from(unit / 8)).copied();
            count += byte.unwrap_or_default() >> (unit % 8) & 1;
        }
        count
    }

    fn add(&mut self, span: Span) {
        for unit in span.start..span.start.saturating_add(span.len) {
            if let Some(byte) = self.units.get_mut(usize::from(unit / 8)) {
                *byte |= 1 << (unit % 8);
            }
        }
        self.count = self.count.saturating_add(span.len);
    }

    fn is_whole(&self, size: u16) -> bool {
        u16::from(self.count) == size.div_ceil(8)
    }
}

/// How long a packet that is gathered here waits for its next fragment. A fragment's
/// attempts at the hop before take at most 0.7 s, and others may be queued before it; twice
/// what OpenThread gives a whole packet.
pub const REASSEMBLY_TIMEOUT: Duration = Duration::from_secs(4);

/// The same at a relay, which loses only a tag and a next hop by waiting; shorter, because
/// it has no memory to spare for packets that their senders have given up.
pub const RELAY_TIMEOUT: Duration = Duration::from_secs(2);

/// However slowly fragments come: RFC 4944 §5.3 allows 60 s at most.
pub const LIFETIME: Duration = Duration::from_secs(60);

/// How long after its last fragment a packet that is over is remembered: the link repeats
/// frames for 0.7 s at most. Short, for a sender that restarts may soon reuse a tag.
pub const LINGER: Duration = REASSEMBLY_TIMEOUT;

/// After this long without a fragment any other packet may have a record's place, even a
/// stranger's: longer than all attempts of one frame (0.7 s), so that a live packet is not
/// robbed.
pub const STALE_AFTER: Duration = Duration::from_secs(1);

/// After this long its like may have the place of a packet that had begun to grow: some five
/// frames of a path on which only every third hop may send, or as many attempts of one.
pub const PAUSE_MAX: Duration = Duration::from_millis(250);

/// And of one of which a first fragment is all that has come: the next follows it in 8 ms over
/// a hop, in three times that along a path.
pub const BURST_MAX: Duration = Duration::from_millis(20);

/// A neighbour, and whether it is known to be there.
type Sender = (LinkAddr, bool);

#[cfg(test)]
#[path = "tests/datagram.rs"]
mod tests;
