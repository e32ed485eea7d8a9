//! TCPlE on a link over Bluetooth LE: segments go by its channel where that is open, all else by
//! IPSP's.
//!
//! Place: between the link's packets and the two channels of [`crate::ble::Host`]; what is decided
//! about a segment, [`crate::tcple`] decides.

use super::{Arrival, Ask, Ble, PLACES_MAX, Pulled, Scratch};
use crate::ble::{ChannelKind, Connection, Event, GapRole, INWARD_LEN, Phy, SDU_HEADROOM};
use crate::ip::{Ip, Neighbour};
use crate::link::LinkDrop;
use crate::storage::whole::Whole;
use crate::tcple::{
    Counters, FADING, HELD_LEN, Held, HeldSegment, HeldSlot, Present, Segment, TcpleConnection,
    interval,
};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::cursor::{Writer, copy};
use crate::wire::tcple::{HEADER_LEN_MAX, Sdu};

/// The memory of TCPlE on a link, borrowed for good.
#[derive(Debug)]
pub struct TcpleMemory<'m> {
    /// One for each place for a connection.
    pub sides: &'m mut [TcpleConnection],
    /// Places for prefetched segments of peers, divided equally among the connections. With fewer
    /// places than connections TCPlE works without prefetching. Slots beyond a total of 256,
    /// connections included, are not used.
    pub held: &'m mut [HeldSlot<'m>],
}

/// A link's part of TCPlE.
#[derive(Debug)]
pub(super) struct Layer<'m> {
    sides: &'m mut [TcpleConnection],
    held: Held<'m>,
    counters: Counters,
    /// The waiting time that the ACK under way announces, ms.
    waited_ms: u16,
    /// Connection events since the last request for an interval.
    settled: u16,
    /// Since when bytes that cross the links have been counted; they fade.
    since: Instant,
}

/// A segment's memory is exchanged for the one that it was gathered in.
const _: () = assert!(HELD_LEN == INWARD_LEN);

impl<'m> Ble<'m> {
    /// Offers TCPlE to peers that have it, on connections that begin from now on.
    #[must_use]
    pub fn with_tcple(mut self, memory: TcpleMemory<'m>) -> Self {
        let TcpleMemory { sides, held } = memory;
        for side in sides.iter_mut() {
            *side = TcpleConnection::NEW;
        }
        let peers = self.host.peers.len();
        let held = Held::new(held, peers, PLACES_MAX.saturating_sub(peers));
        self.host.offer_tcple(held.share());
        self.tcple = Some(Layer {
            sides,
            held,
            counters: Counters::default(),
            waited_ms: 0,
            settled: 0,
            since: Instant::ORIGIN,
        });
        self
    }

    /// Takes TCPlE off the link again, with its memory.
    pub fn take_tcple(&mut self) -> Option<TcpleMemory<'m>> {
        let Layer { sides, held, .. } = self.tcple.take()?;
        let held = held.into_memory();
        Some(TcpleMemory { sides, held })
    }

    /// The counters of TCPlE; `None`: it is not offered.
    pub fn tcple_counters(&self) -> Option<&Counters> {
        self.tcple.as_ref().map(|layer| &layer.counters)
    }

    /// Bytes in front of a packet where TCPlE is offered: a peer may have it.
    pub(super) const fn tcple_header_len(&self) -> usize {
        match self.tcple {
            Some(_) => HEADER_LEN_MAX,
            None => 0,
        }
    }

    pub(super) fn tcple_deadline(&self) -> Option<Instant> {
        self.tcple.as_ref()?.held.next_deadline()
    }

    pub(in crate::link) const fn take_waited(&mut self) -> u16 {
        match &mut self.tcple {
            Some(layer) => core::mem::replace(&mut layer.waited_ms, 0),
            None => 0,
        }
    }

    /// Notes the measurements in an event, before the host handles the event.
    pub(super) fn on_tcple_event(&mut self, event: &Event<'_>, now: Instant) {
        let Some(layer) = &mut self.tcple else { return };
        let handle = match event {
            Event::Data { handle, .. } | Event::Rssi { handle, .. } => *handle,
            Event::Report(report) => report.handle,
            _ => return,
        };
        let Some(at) = self.host.place_of(handle) else {
            return;
        };
        let Some(side) = layer.sides.get_mut(at) else {
            return;
        };
        match event {
            Event::Data { bytes, .. } => {
                side.event_over = None;
                side.pace.on_crossing(bytes.len());
            }
            Event::Rssi {
                rssi: Some(rssi), ..
            } => side.pace.on_rssi(*rssi),
            Event::Report(report) => {
                side.event_over = Some(now);
                let is_due = side.pace.on_event(report.good, report.bad);
                layer.settled = layer.settled.saturating_add(1);
                if is_due && self.host.config().role == GapRole::Central {
                    self.host.ask_rssi(at);
                    self.lead(now);
                }
            }
            _ => {}
        }
    }

    /// Makes the interval of a central's connections what their peers need.
    fn lead(&mut self, now: Instant) {
        let Some(layer) = &mut self.tcple else { return };
        let places = 0..self.host.peers.len();
        let open = places.filter(|at| self.host.has_tcple(*at)).count();
        if open == 0 {
            return self.host.lead(None);
        }
        // A new interval takes effect some connection events after its request.
        if usize::from(layer.settled) < SETTLES_AFTER * open {
            return;
        }
        let elapsed = now.since(layer.since);
        layer.since += Duration::from_micros(elapsed.as_micros() / u64::from(FADING));
        let host = &self.host;
        let first = host.connections().next();
        let present = Present {
            interval: first.map_or(0, |connection| connection.timing().interval),
            plain: host.plain_interval(),
            is_lossy: host.is_lossy(),
            is_2m: host.config().phy == Phy::Le2M,
            elapsed,
        };
        // Those without TCPlE have their part of the interval too.
        let places = host.peers.iter().zip(layer.sides.iter_mut());
        let sides = places.filter(|(peer, _)| peer.open().is_some());
        let needs = sides.map(|(_, side)| side.pace.need(present.is_2m));
        if let Some(interval) = interval(needs, present) {
            layer.settled = 0;
            layer.counters.intervals = layer.counters.intervals.wrapping_add(1);
            self.host.lead(Some(interval));
        }
    }

    /// Discards the state of closed channels, and segments that have been held for too long.
    pub(super) fn poll_tcple(&mut self, now: Instant) {
        let Some(layer) = &mut self.tcple else { return };
        for (at, side) in layer.sides.iter_mut().enumerate() {
            let is_open = self.host.has_tcple(at);
            if side.was_open && !is_open {
                side.prefetches.end();
                layer.held.end(at as u8, &mut layer.counters);
            }
            side.was_open = is_open;
        }
        layer.held.expire(now, &mut layer.counters);
    }

    /// An SDU of TCPlE's channel.
    pub(super) fn on_tcple_sdu<'s>(
        &mut self,
        peer: usize,
        len: u16,
        scratch: &mut Scratch,
        now: Instant,
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let place = self.host.peers.get(peer);
        let end = SDU_HEADROOM + usize::from(len);
        let bytes = place.and_then(|place| place.inward.get(SDU_HEADROOM..end));
        let parsed = Sdu::parse(bytes.unwrap_or_default());
        let parsed = parsed.map(|(sdu, rest)| (sdu, usize::from(len) - rest.len()));
        let Some(layer) = &mut self.tcple else {
            return Ok(Arrival::Nothing);
        };
        layer.waited_ms = 0;
        let (sdu, skipped) = match parsed {
            Ok(parsed) => parsed,
            Err(_) => {
                layer.counters.malformed = layer.counters.malformed.wrapping_add(1);
                self.host.fail_tcple(peer);
                return Err(LinkDrop::Dispatch);
            }
        };
        match sdu {
            Sdu::Filler => {
                layer.counters.fillers = layer.counters.fillers.wrapping_add(1);
                return Ok(Arrival::Nothing);
            }
            Sdu::Release { flow, bytes } => {
                let of = (peer as u8, flow);
                let is_held = layer.held.release(of, bytes, &mut layer.counters);
                let malformed = u32::from(!is_held);
                layer.counters.malformed = layer.counters.malformed.wrapping_add(malformed);
                return Ok(Arrival::Nothing);
            }
            Sdu::Plain | Sdu::Ack { .. } | Sdu::Prefetched { .. } => {}
        }
        let place = self.restore(peer, (skipped, len), scratch)?;
        match sdu {
            Sdu::Prefetched { flow } => self.hold((peer, flow), place, now),
            _ => {
                self.pass(peer, place, sdu, now);
                self.lend(peer, place)
            }
        }
    }

    /// Holds the segment that lies where a peer's SDUs are gathered.
    fn hold<'s>(
        &mut self,
        (peer, flow): (usize, u8),
        (start, len): (usize, u16),
        now: Instant,
    ) -> Result<Arrival<'m, 's>, LinkDrop> {
        let place = self.host.peers.get_mut(peer);
        let (Some(place), Some(layer)) = (place, &mut self.tcple) else {
            return Ok(Arrival::Nothing);
        };
        let counters = &mut layer.counters;
        let packet = place.inward.get(start..start + usize::from(len));
        let Some(segment) = packet.and_then(Segment::of) else {
            counters.malformed = counters.malformed.wrapping_add(1);
            return Err(LinkDrop::MalformedPacket);
        };
        let segment = HeldSegment::new((start, len), (peer as u8, flow), segment, now);
        let count = match layer.held.hold(&mut place.inward, segment) {
            true => &mut counters.held,
            false => &mut counters.no_room,
        };
        *count = count.wrapping_add(1);
        Ok(Arrival::Nothing)
    }

    /// Notes a packet that goes on at once.
    fn pass(&mut self, peer: usize, (start, len): (usize, u16), sdu: Sdu, now: Instant) {
        let place = self.host.peers.get(peer);
        let packet = place.and_then(|place| place.inward.get(start..start + usize::from(len)));
        let segment = packet.and_then(Segment::of);
        let (Some(segment), Some(layer)) = (segment, &mut self.tcple) else {
            return;
        };
        layer
            .held
            .pass_by(peer as u8, &segment, &mut layer.counters);
        layer.note_data(peer, &segment, (len, Duration::ZERO), now);
        if let Sdu::Ack { waited_ms } = sdu {
            layer.waited_ms = waited_ms;
        }
    }

    /// Notes a packet that came by IPSP's channel.
    pub(super) fn observe(&mut self, peer: usize, (start, len): (usize, u16), now: Instant) {
        if self.tcple.is_none() {
            return;
        }
        let place = self.host.peers.get(peer);
        let packet = place.and_then(|place| place.inward.get(start..start + usize::from(len)));
        let segment = packet.and_then(Segment::of);
        if let (Some(segment), Some(layer)) = (segment, &mut self.tcple) {
            layer.note_data(peer, &segment, (len, Duration::ZERO), now);
        }
    }

    pub(in crate::link) fn has_arrival(&self) -> bool {
        let layer = self.tcple.as_ref();
        layer.is_some_and(|layer| layer.held.has_released())
    }

    /// The next segment that was held and goes on.
    pub(in crate::link) fn poll_released<'s>(&mut self, now: Instant) -> Arrival<'m, 's> {
        let Some(layer) = &mut self.tcple else {
            return Arrival::Nothing;
        };
        let Some((memory, held, place)) = layer.held.next_released(now) else {
            return Arrival::Nothing;
        };
        layer.waited_ms = 0;
        let peer = usize::from(held.peer);
        if let Some(side) = layer.sides.get_mut(peer) {
            side.pace.on_data(held.len);
        }
        let Some(hop) = self.hop_from(peer) else {
            if let Some(layer) = &mut self.tcple {
                layer.counters.dropped = layer.counters.dropped.wrapping_add(1);
                layer.held.give_back(memory, place);
            }
            return Arrival::Nothing;
        };
        if let Some(layer) = &mut self.tcple {
            layer.counters.passed_on = layer.counters.passed_on.wrapping_add(1);
        }
        // Numbers of held packets follow those of the peers; the length of `Held` is limited so
        // that they fit a byte.
        let number = self.host.peers.len() + place;
        let lent = Whole::new(memory, held.start, held.len, number as u8);
        Arrival::Gathered(lent, hop)
    }

    /// Takes back the memory of a packet that was held; returns it where it is another one's.
    pub(super) fn give_back_held(
        &mut self,
        memory: &'m mut [u8],
        place: u8,
    ) -> Option<&'m mut [u8]> {
        let held = usize::from(place).checked_sub(self.host.peers.len());
        match (&mut self.tcple, held) {
            (Some(layer), Some(held)) => {
                layer.held.give_back(memory, held);
                None
            }
            _ => Some(memory),
        }
    }

    /// The SDU on TCPlE's channel for the packet of `len` bytes that waits for the peer at `at`;
    /// `None`: it goes by the other channel.
    pub(super) fn sdu_for(&mut self, at: usize, len: usize, now: Instant) -> Option<Sdu> {
        let is_open = self.host.has_tcple(at);
        let layer = self.tcple.as_mut()?;
        let peer = self.host.peers.get(at)?;
        let side = layer.sides.get_mut(at)?;
        let segment = Segment::of(peer.outward.get(..len)?);
        if segment.is_none_or(|segment| segment.has_data()) {
            side.pace.on_crossing(len);
        }
        let segment = segment?;
        if !is_open {
            let told = layer.held.on_ack(&segment, now);
            told.inspect(|told| side.pace.on_ack(told.round_trip));
            return None;
        }
        if segment.has_data() {
            side.prefetches.allow_fillers();
        }
        if let Some(release) = side.prefetches.release(&segment) {
            layer.counters.released = layer.counters.released.wrapping_add(1);
            return Some(release);
        }
        if !segment.acknowledges() {
            return Some(Sdu::Plain);
        }
        let told = layer.held.on_ack(&segment, now);
        if let Some(told) = told {
            side.pace.on_ack(told.round_trip);
        }
        if told.is_none() && segment.has_data() {
            return Some(Sdu::Plain);
        }
        let wait = peer
            .connection()
            .map_or(Duration::ZERO, |connection| side.wait(connection, now));
        let wait_ms = u16::try_from(wait.as_micros() / 1_000).unwrap_or(u16::MAX);
        let waited_ms = told
            .map_or(0, |told| told.waited_ms)
            .saturating_add(wait_ms);
        Some(Sdu::Ack { waited_ms })
    }

    /// Sets the packet of `len` bytes on its way that lies with the peer at `at`, or what goes in
    /// its place.
    pub(super) fn begin_tcple(&mut self, at: usize, len: usize, sdu: Sdu) {
        let mut head = [0; RELEASE_LEN];
        let mut w = Writer::new(&mut head);
        if sdu.emit(&mut w).is_err() {
            return;
        }
        let head_len = w.written();
        let head = head.get(..head_len).unwrap_or_default();
        let (from, len) = match sdu {
            Sdu::Release { .. } | Sdu::Filler => (0, head_len),
            _ => {
                let Some(packet) = self.compress(at, len) else {
                    return;
                };
                match packet.checked_sub(head_len) {
                    Some(from) => (from, len),
                    // Nothing of its headers could be left out: it has no room for another one.
                    None if matches!(sdu, Sdu::Prefetched { .. }) => {
                        let layer = self.tcple.as_mut();
                        let side = layer.and_then(|layer| layer.sides.get_mut(at));
                        return side.map_or((), |side| side.prefetches.end());
                    }
                    None => {
                        return self
                            .host
                            .begin(at, ChannelKind::Ip, packet as u16, len as u16);
                    }
                }
            }
        };
        if let Some(peer) = self.host.peers.get_mut(at) {
            copy(peer.outward.get_mut(from..).unwrap_or_default(), head);
        }
        self.host
            .begin(at, ChannelKind::Tcple, from as u16, len as u16);
    }

    /// Begins a prefetched segment, or a filler where none may be prefetched; TCP has nothing to
    /// send. Returns whether there was one.
    pub(super) fn begin_prefetched(
        &mut self,
        ip: &Ip<'_>,
        pull: &mut impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
    ) -> bool {
        for at in 0..self.host.peers.len() {
            if !self.host.has_tcple(at) || !self.host.is_ready(at) {
                continue;
            }
            let side = self.tcple.as_ref().and_then(|layer| layer.sides.get(at));
            let held_len = self.host.held_len(at);
            let has_room = side.is_some_and(|side| side.prefetches.has_room(held_len));
            let held_len = if has_room { held_len } else { 0 };
            let Some(peer) = self.host.peers.get_mut(at) else {
                continue;
            };
            let Some(addr) = peer.open() else {
                continue;
            };
            let to = Neighbour::One(LinkAddr::Device(addr.bytes).iid());
            let Some(pulled) = pull(ip, Ask::Prefetch(to, held_len), peer.outward) else {
                continue;
            };
            if self.begin_one_prefetched(at, pulled.len) {
                return true;
            }
        }
        false
    }

    /// Begins the segment of `len` bytes that lies with the peer at `at`, or a filler if it has
    /// none.
    fn begin_one_prefetched(&mut self, at: usize, len: usize) -> bool {
        let Some(layer) = &mut self.tcple else {
            return false;
        };
        let Some(side) = layer.sides.get_mut(at) else {
            return false;
        };
        if len == 0 {
            let may = side.prefetches.take_filler();
            if may {
                layer.counters.fillers = layer.counters.fillers.wrapping_add(1);
                self.begin_tcple(at, 0, Sdu::Filler);
            }
            return may;
        }
        let packet = self
            .host
            .peers
            .get(at)
            .and_then(|peer| peer.outward.get(..len));
        let segment = packet.and_then(Segment::of);
        let Some(sdu) = segment.and_then(|segment| side.prefetches.note(&segment)) else {
            return false;
        };
        layer.counters.prefetched = layer.counters.prefetched.wrapping_add(1);
        self.begin_tcple(at, len, sdu);
        true
    }
}

impl Layer<'_> {
    /// Notes a segment from a peer that goes on after it was held for so long.
    fn note_data(
        &mut self,
        peer: usize,
        segment: &Segment,
        (len, held): (u16, Duration),
        now: Instant,
    ) {
        if !segment.has_data() {
            return;
        }
        self.held.note(segment, held, now);
        if let Some(side) = self.sides.get_mut(peer) {
            side.pace.on_data(len);
        }
    }
}

impl TcpleConnection {
    /// How long a packet that is given to the controller now will wait: not at all during a
    /// connection event, else until the next one.
    fn wait(&self, connection: &Connection, now: Instant) -> Duration {
        let interval = connection.interval();
        let Some(over) = self.event_over else {
            return Duration::ZERO;
        };
        let since = now.since(over).as_micros();
        let into = since.checked_rem(interval.as_micros()).unwrap_or(0);
        Duration::from_micros(interval.as_micros() - into)
    }
}

/// The longest SDU without a packet.
const RELEASE_LEN: usize = 4;

/// Events of each connection until a new interval is in force and its effect is seen: six or more
/// (Core 5.4 Vol 6 Part B §5.1.1), and a round.
const SETTLES_AFTER: usize = 16;
