//! Reassembly of IPv6 fragments, in memory that the application lends.
//!
//! Place: the node passes in each fragment with its own address as destination, and delivers
//! complete packets. Fragments for other nodes are forwarded unchanged. A stranger can send any
//! number of fragments, so everything is bounded: as many packets as there are slots, each for
//! [`PATIENCE`]. If all slots are taken, the oldest packet of the source with the most packets
//! gives way to a new one. A packet with overlapping fragments is dropped whole, with all its later
//! fragments: no honest sender makes overlaps, and receivers interpret them differently. Left out:
//! packets above [`REASSEMBLED_LEN_MAX`]. Extension headers in front of the fragment header, which
//! each fragment has and which were acted on with it, are no part of the packet that is put
//! together. Sources: RFC 8200 §4.5, §5; RFC 5722 (overlaps); RFC 7112 (the first fragment has all
//! headers); RFC 3168 §5.3 (congestion marks).

use core::net::Ipv6Addr;

use super::InterfaceId;
use crate::limits::REASSEMBLED_LEN_MAX;
use crate::time::{Duration, Instant};
use crate::wire::cursor::copy;
use crate::wire::ipv6::{self, Ecn, Extensions, Header, next_header};
use crate::wire::ipv6_fragment::{self, FragmentHeader};
use crate::wire::tcp;

/// Packets that are being put together, over borrowed memory.
#[derive(Debug)]
pub struct Fragments<'m> {
    slots: &'m mut [FragmentSlot],
    counters: FragmentCounters,
}

/// Memory for one packet that comes in fragments.
#[derive(Clone, Debug)]
pub struct FragmentSlot {
    state: State,
    key: Key,
    interface: InterfaceId,
    /// When the first of its fragments came.
    since: Instant,
    /// The IPv6 header of the first fragment (offset 0), once that has come. The next header is
    /// that of the whole packet.
    header: Option<Header>,
    /// Length of the first fragment's part of the packet, bytes.
    first_len: u16,
    /// Length of the fragmentable part, bytes, once the last fragment has come.
    total: Option<u16>,
    /// The ECN fields of the fragments that have come, one bit for each of the four codepoints.
    ecn: u8,
    came: Units,
    /// The units at which a fragment that has come begins.
    begins: Units,
    /// Room for both headers, then the fragmentable part.
    bytes: [u8; HEADERS_LEN + PART_LEN_MAX],
}

/// Counters of fragments; all wrap at 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FragmentCounters {
    /// Packets put together from all their fragments.
    pub whole: u32,
    /// Packets that were dropped because two fragments did not agree: they overlap, each is the
    /// last one, or one of them knows no congestion marks.
    pub contradictory: u32,
    /// Packets of which something was missing after 60 s.
    pub timed_out: u32,
    /// Packets that yielded their memory to a newcomer.
    pub displaced: u32,
    /// Fragments of packets longer than any that is put together.
    pub too_long: u32,
    /// Fragments that no rule allows: without bytes, not of a multiple of eight, or without
    /// headers.
    pub malformed: u32,
}

impl FragmentCounters {
    /// Whatever was dropped as it came, or for it.
    pub(crate) const fn lost(&self) -> u32 {
        let fragments = self.too_long.wrapping_add(self.malformed);
        let packets = self.contradictory.wrapping_add(self.displaced);
        fragments.wrapping_add(packets)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    /// Some fragments have come, and others are awaited.
    Open,
    /// Two fragments contradict each other: later ones of the packet are dropped, too.
    Dropped,
}

/// Which packet a fragment is a part of. A link-local address may be another node's on each link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    zone: u8,
    identification: u32,
}

/// A fragment of a packet for this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'p> {
    /// The IPv6 header in front of it.
    pub(crate) header: &'p Header,
    /// Offset of the fragment header in the fragment's packet, bytes.
    pub(crate) at: usize,
    pub(crate) place: FragmentHeader,
    /// The bytes behind the fragment header: this fragment's part of the packet.
    pub(crate) bytes: &'p [u8],
}

/// The outcome of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gathered {
    /// Others are to come, or it was dropped and counted.
    Nothing,
    /// The fragment was the last that was missing: [`Fragments::packet`] has the whole packet.
    Whole(usize),
    /// The fragment breaks a rule, and its source gets a parameter problem (RFC 4443 §3.4).
    Problem { code: u8, pointer: u32 },
}

impl<'m> Fragments<'m> {
    /// A table over `slots`; what an earlier node left in them is gone.
    pub fn new(slots: &'m mut [FragmentSlot]) -> Self {
        for slot in slots.iter_mut() {
            slot.state = State::Free;
        }
        Self {
            slots,
            counters: FragmentCounters::default(),
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> &'m mut [FragmentSlot] {
        self.slots
    }

    /// The counters of fragments so far.
    pub const fn counters(&self) -> &FragmentCounters {
        &self.counters
    }

    /// How many slots are taken.
    pub fn len(&self) -> usize {
        let taken = self.slots.iter().filter(|slot| slot.is_taken());
        taken.count()
    }

    /// Whether no packet is being put together.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a fragment that came by `interface`.
    pub(crate) fn on_fragment(
        &mut self,
        fragment: &Fragment<'_>,
        interface: InterfaceId,
        now: Instant,
    ) -> Gathered {
        if let Err(gathered) = fragment.check() {
            self.counters.malformed = self.counters.malformed.wrapping_add(1);
            return gathered;
        }
        let header = fragment.header;
        let key = Key {
            src: header.src,
            dst: header.dst,
            zone: interface.zone_between(&header.src, &header.dst),
            identification: fragment.place.identification,
        };
        let known = self.slots.iter().position(|slot| slot.holds(&key));
        if fragment.end() > PART_LEN_MAX {
            self.counters.too_long = self.counters.too_long.wrapping_add(1);
            // The fragments that have already come cannot become a packet.
            if let Some(slot) = known.and_then(|index| self.slots.get_mut(index)) {
                slot.state = State::Dropped;
            }
            return Gathered::Nothing;
        }
        let Some(index) = known.or_else(|| self.make_room(&key.src)) else {
            return Gathered::Nothing;
        };
        let Some(slot) = self.slots.get_mut(index) else {
            return Gathered::Nothing;
        };
        if known.is_none() {
            slot.open(key, interface, now);
        }
        match slot.take(fragment) {
            FragmentResult::Part => Gathered::Nothing,
            FragmentResult::Whole => {
                self.counters.whole = self.counters.whole.wrapping_add(1);
                Gathered::Whole(index)
            }
            FragmentResult::Contradiction => {
                slot.state = State::Dropped;
                self.counters.contradictory = self.counters.contradictory.wrapping_add(1);
                Gathered::Nothing
            }
        }
    }

    /// The whole packet that [`Gathered::Whole`] named, with its header. [`Self::release`] follows.
    pub(crate) fn packet(&mut self, index: usize) -> Option<(Header, &mut [u8])> {
        let slot = self.slots.get_mut(index)?;
        let header = slot.whole_header()?;
        let packet = slot.bytes.get_mut(ipv6_fragment::HEADER_LEN..)?;
        header.emit(packet).ok()?;
        let len = ipv6::HEADER_LEN + usize::from(header.payload_len);
        Some((header, packet.get_mut(..len)?))
    }

    /// Frees slot `index`, whose packet has been handed on or dropped.
    pub(crate) fn release(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.state = State::Free;
        }
    }

    /// When the first packet's time is over.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let taken = self.slots.iter().filter(|slot| slot.is_taken());
        taken.map(|slot| slot.since + PATIENCE).min()
    }

    /// Gives up one packet whose time is over. Returns its first fragment, about which its source
    /// gets an ICMPv6 error, and the interface by which it came. Without a first fragment, or where
    /// fragments contradict one another, no error is sent. Call until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(InterfaceId, Header, &[u8])> {
        let is_over = |slot: &FragmentSlot| slot.is_taken() && now >= slot.since + PATIENCE;
        while let Some(index) = self.slots.iter().position(is_over) {
            let slot = self.slots.get_mut(index)?;
            let was_open = slot.state == State::Open;
            slot.state = State::Free;
            if !was_open {
                continue;
            }
            self.counters.timed_out = self.counters.timed_out.wrapping_add(1);
            if self.slots.get(index)?.header.is_some() {
                return self.slots.get_mut(index)?.first_fragment();
            }
        }
        None
    }

    /// A free slot for a packet from `src`, or that of a packet which yields to it.
    fn make_room(&mut self, src: &Ipv6Addr) -> Option<usize> {
        let states = self.slots.iter().map(|slot| slot.state);
        let free = states.clone().position(|state| state == State::Free);
        let dropped = || states.clone().position(|state| state == State::Dropped);
        if let Some(index) = free.or_else(dropped) {
            return Some(index);
        }
        // A source alone has all that there are.
        let held = |of: &Ipv6Addr| {
            let theirs = self.slots.iter().filter(|slot| slot.key.src == *of);
            theirs.count() + usize::from(of == src)
        };
        let slots = self.slots.iter().enumerate();
        let (index, _) =
            slots.max_by_key(|(_, slot)| (held(&slot.key.src), core::cmp::Reverse(slot.since)))?;
        self.counters.displaced = self.counters.displaced.wrapping_add(1);
        Some(index)
    }
}

impl<'p> Fragment<'p> {
    /// The fragment in a packet for this node; `None`: it is none. `payload`: what follows the
    /// packet's IPv6 header.
    pub(crate) fn find(header: &'p Header, payload: &'p [u8]) -> Option<Self> {
        let mut walk = Extensions::new(header.next_header, payload);
        loop {
            let at = ipv6::HEADER_LEN + payload.len() - walk.rest().len();
            let extension = walk.next().ok()??;
            if ipv6_fragment::is_part(extension.kind, extension.bytes) {
                return Some(Self {
                    header,
                    at,
                    place: FragmentHeader::parse(extension.bytes.first_chunk()?),
                    bytes: walk.rest(),
                });
            }
        }
    }

    /// Where the fragment ends in the packet's fragmentable part, bytes.
    const fn end(&self) -> usize {
        self.place.offset as usize + self.bytes.len()
    }

    /// Checks whether the fragment may be a part of a packet at all.
    fn check(&self) -> Result<(), Gathered> {
        let problem = |code, pointer: usize| {
            let pointer = pointer as u32;
            Err(Gathered::Problem { code, pointer })
        };
        if self.place.more && !self.bytes.len().is_multiple_of(UNIT) {
            return problem(0, PAYLOAD_LEN_AT);
        }
        let in_front = self.at.saturating_sub(ipv6::HEADER_LEN);
        if in_front + self.end() > usize::from(u16::MAX) {
            return problem(0, self.at + OFFSET_AT);
        }
        if self.bytes.is_empty() {
            return Err(Gathered::Nothing);
        }
        if self.place.offset == 0 && !has_all_headers(self.place.next_header, self.bytes) {
            return problem(INCOMPLETE_CHAIN, 0);
        }
        Ok(())
    }
}

/// Whether `bytes` hold all headers up to the upper layer's, and that one (RFC 7112 §5).
fn has_all_headers(first: u8, bytes: &[u8]) -> bool {
    let mut walk = Extensions::new(first, bytes);
    loop {
        match walk.next() {
            Ok(Some(_)) => {}
            Err(_) => return false,
            Ok(None) => break,
        }
    }
    // Extension headers and fragments have lengths in units of eight bytes. So after the extension
    // headers a first fragment has no byte or at least eight, enough for a header of UDP or ICMPv6.
    let least = match walk.next_header() {
        tcp::NEXT_HEADER => tcp::HEADER_LEN,
        next_header::NONE => 0,
        _ => 1,
    };
    walk.rest().len() >= least
}

/// The outcome of a fragment in its slot.
enum FragmentResult {
    Part,
    Whole,
    Contradiction,
}

impl FragmentSlot {
    /// A slot without a packet; not lent yet.
    pub const EMPTY: Self = Self {
        state: State::Free,
        key: Key {
            src: Ipv6Addr::UNSPECIFIED,
            dst: Ipv6Addr::UNSPECIFIED,
            zone: 0,
            identification: 0,
        },
        interface: InterfaceId(0),
        since: Instant::ORIGIN,
        header: None,
        first_len: 0,
        total: None,
        ecn: 0,
        came: Units::NONE,
        begins: Units::NONE,
        bytes: [0; HEADERS_LEN + PART_LEN_MAX],
    };

    fn is_taken(&self) -> bool {
        self.state != State::Free
    }

    fn holds(&self, key: &Key) -> bool {
        self.is_taken() && self.key == *key
    }

    const fn open(&mut self, key: Key, interface: InterfaceId, now: Instant) {
        self.state = State::Open;
        self.key = key;
        self.interface = interface;
        self.since = now;
        self.header = None;
        self.total = None;
        self.ecn = 0;
        self.came = Units::NONE;
        self.begins = Units::NONE;
    }

    /// Adds a fragment that is no longer than there is room.
    fn take(&mut self, fragment: &Fragment<'_>) -> FragmentResult {
        if self.state == State::Dropped {
            return FragmentResult::Part;
        }
        let FragmentHeader { offset, more, .. } = fragment.place;
        let (start, end) = (usize::from(offset), fragment.end());
        let units = start / UNIT..end.div_ceil(UNIT);
        if self.came.any(units.clone()) {
            return match self.is_copy(fragment) {
                true => FragmentResult::Part,
                false => FragmentResult::Contradiction,
            };
        }
        let beyond = usize::from(self.total.unwrap_or(u16::MAX));
        let is_beyond = match more {
            true => end >= beyond,
            false => self.total.is_some() || self.came.any(units.end..UNITS),
        };
        if is_beyond {
            return FragmentResult::Contradiction;
        }
        let room = self.bytes.get_mut(HEADERS_LEN + start..);
        copy(room.unwrap_or_default(), fragment.bytes);
        self.begins.set(units.start..units.start + 1);
        self.came.set(units);
        self.ecn |= 1 << fragment.header.traffic_class.ecn() as u8;
        if !more {
            self.total = Some(end as u16);
        }
        if offset == 0 {
            self.first_len = end as u16;
            self.header = Some(Header {
                next_header: fragment.place.next_header,
                ..*fragment.header
            });
        }
        self.complete()
    }

    /// Whether all of it is here, and fits together.
    fn complete(&self) -> FragmentResult {
        let Some(total) = self.total else {
            return FragmentResult::Part;
        };
        if !self.came.all(0..usize::from(total).div_ceil(UNIT)) {
            return FragmentResult::Part;
        }
        match self.whole_header() {
            Some(_) => FragmentResult::Whole,
            None => FragmentResult::Contradiction,
        }
    }

    /// The header of the whole; `None` where some of its fragments know congestion marks, and
    /// others do not.
    fn whole_header(&self) -> Option<Header> {
        let (header, total) = (self.header?, self.total?);
        let knows_none = 1 << Ecn::NotEct as u8;
        if self.ecn & knows_none != 0 && self.ecn != knows_none {
            return None;
        }
        let class = header.traffic_class;
        let is_marked = self.ecn & 1 << Ecn::Ce as u8 != 0;
        Some(Header {
            traffic_class: match is_marked {
                true => class.with_ecn(Ecn::Ce),
                false => class,
            },
            payload_len: total,
            ..header
        })
    }

    /// Whether a fragment has come before, byte for byte.
    fn is_copy(&self, fragment: &Fragment<'_>) -> bool {
        let (start, end) = (usize::from(fragment.place.offset), fragment.end());
        let units = start / UNIT..end.div_ceil(UNIT);
        let is_last = self.total.is_some_and(|total| usize::from(total) == end);
        let ends_here = match fragment.place.more {
            true => !is_last && (self.begins.has(units.end) || !self.came.has(units.end)),
            false => is_last,
        };
        let begins_here = self.begins.has(units.start)
            && !self.begins.any(units.start + 1..units.end)
            && self.came.all(units);
        let same = self.bytes.get(HEADERS_LEN + start..HEADERS_LEN + end);
        begins_here && ends_here && same == Some(fragment.bytes)
    }

    /// The fragment with offset 0, as it came but for extension headers in front.
    fn first_fragment(&mut self) -> Option<(InterfaceId, Header, &[u8])> {
        let first = self.header?;
        let place = FragmentHeader {
            next_header: first.next_header,
            offset: 0,
            more: true,
            identification: self.key.identification,
        };
        let header = Header {
            next_header: next_header::FRAGMENT,
            payload_len: ipv6_fragment::HEADER_LEN as u16 + self.first_len,
            ..first
        };
        header.emit(&mut self.bytes).ok()?;
        copy(self.bytes.get_mut(ipv6::HEADER_LEN..)?, &place.emit());
        let len = ipv6::HEADER_LEN + usize::from(header.payload_len);
        Some((self.interface, header, self.bytes.get(..len)?))
    }
}

/// A bit for each unit of a packet.
#[derive(Clone, Copy, Debug)]
struct Units([u8; UNITS.div_ceil(8)]);

impl Units {
    const NONE: Self = Self([0; UNITS.div_ceil(8)]);

    fn has(&self, unit: usize) -> bool {
        let byte = self.0.get(unit / 8);
        byte.is_some_and(|byte| byte & 1 << (unit % 8) != 0)
    }

    fn any(&self, mut units: core::ops::Range<usize>) -> bool {
        units.any(|unit| self.has(unit))
    }

    fn all(&self, mut units: core::ops::Range<usize>) -> bool {
        units.all(|unit| self.has(unit))
    }

    fn set(&mut self, units: core::ops::Range<usize>) {
        for unit in units {
            if let Some(byte) = self.0.get_mut(unit / 8) {
                *byte |= 1 << (unit % 8);
            }
        }
    }
}

/// How long a packet may take to become whole, from its first fragment on (RFC 8200 §4.5).
const PATIENCE: Duration = Duration::from_secs(60);

/// The unit of offsets, bytes.
const UNIT: usize = 8;

/// The longest fragmentable part of a packet that is put together, bytes.
const PART_LEN_MAX: usize = REASSEMBLED_LEN_MAX - ipv6::HEADER_LEN;

const UNITS: usize = PART_LEN_MAX.div_ceil(UNIT);

/// Length of an IPv6 header and a fragment header, bytes.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + ipv6_fragment::HEADER_LEN;

/// Offset of the payload length in the IPv6 header.
const PAYLOAD_LEN_AT: usize = 4;

/// Offset of the fragment offset field in a fragment header.
const OFFSET_AT: usize = 2;

/// Parameter problem: the first fragment lacks headers (RFC 7112 §5).
const INCOMPLETE_CHAIN: u8 = 3;

#[cfg(test)]
#[path = "tests/fragments.rs"]
mod tests;
