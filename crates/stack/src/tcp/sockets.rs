//! [`Tcp`]: the connections of a node, their memory, and the calls of the application.
//!
//! Place: between `node`, which owns it, and [`super::connection`]. Left out: the bytes of a
//! connection ([`super::bytes`]), what the network brings ([`super::arrival`]) and takes
//! ([`super::departure`]).

use core::net::Ipv6Addr;

use super::config::Config;
use super::connection::Connection;
use super::listener::{HalfOpen, Listener, Stage, possible, possible_mut};
use super::reply::Reply;
use super::types::{
    Buffers, Endpoints, Handle, ListenError, ListenerHandle, OpenError, Rejected, TcpCounters,
    is_unicast,
};
use crate::limits::TCP_LISTENERS_MAX;
use crate::offer::{BOUNDS_FLIGHT, Offer};
use crate::random::{KeyedHash, Rng};
use crate::remote::Remote;
use crate::time::Instant;

/// A place for a connection.
#[derive(Debug)]
pub struct Slot<'m>(pub(super) Option<Connection<'m>>, pub(super) u32);

impl Slot<'_> {
    /// A place without a connection.
    pub const EMPTY: Self = Self(None, 0);
}

/// The memory of [`Tcp`], borrowed for good; buffers come with each connection.
#[derive(Debug)]
pub struct Memory<'m> {
    /// As many connections as there can be at one time (255 at most).
    pub connections: &'m mut [Slot<'m>],
    /// As many ports as there can be listened on (16 at most); none in a build without the feature
    /// `listen`, whatever its length.
    pub listeners: &'m mut [Listener<'m>],
    /// Handshakes under way, or done and not accepted yet (255 at most). As many as listeners,
    /// or more, so that each may have one that waits; beyond, SYN cookies serve. In a build
    /// without the feature `listen` it is not used.
    pub half_open: &'m mut [HalfOpen],
}

/// Everything of TCP in a node.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction. In the
/// compiler's order a mote is 140 B larger, one with all parts 300 B.
#[derive(Debug)]
#[repr(C)]
pub struct Tcp<'m> {
    /// Whether answers to strangers went before connections in the last poll.
    pub(super) strangers_turn: bool,
    /// Whose turn it is to send: a slot index.
    pub(super) turn: u8,
    /// How far the current millisecond has passed, in 32nds: 0 to 31 (see [`super::timers`]).
    pub(super) now_part: u8,
    pub(super) next_port: u16,
    /// How far the current millisecond has passed, µs.
    pub(super) tick_part_us: u16,
    /// The least [`Offer::flight_max`] so far.
    flight_max: u16,
    /// The waiting time that [`Self::note_waited`] noted last, ms.
    #[cfg(feature = "tcple")]
    pub(super) waited_ms: u16,
    /// The number of the current millisecond, modulo 2^32.
    pub(super) now_ms: u32,
    pub(super) memory: Memory<'m>,
    /// The start of the current millisecond.
    pub(super) tick: Instant,
    /// When a SYN cookie was last sent, ms; `None`: none was, or all are outdated.
    pub(super) cookie_sent_at: Option<u32>,
    /// The generation in the handle given out last.
    last_generation: u32,
    pub(super) reply: Option<Reply>,
    pub(super) hash: KeyedHash,
    /// This node's identifier, which goes into every hash.
    pub(super) id: u64,
    pub(super) counters: TcpCounters,
}

impl<'m> Tcp<'m> {
    /// An engine in `memory`; `rng` keys the hash behind ISNs, ports and cookies.
    pub fn new(memory: Memory<'m>, rng: &mut Rng) -> Self {
        // Handshakes of an engine that used this memory before are forgotten.
        for entry in possible_mut(memory.half_open) {
            entry.set_stage(Stage::Free);
        }
        Self::keyed(memory, rng.keyed_hash(), rng.next_u32() as u16)
    }

    /// Gives back the memory it was lent, with the connections as they were last: take their
    /// buffers back before, by [`Self::abort`] and [`Self::remove`].
    pub fn into_memory(self) -> Memory<'m> {
        self.memory
    }

    /// Makes ISNs, ports and cookies depend on `id`, so that they differ from those of another node
    /// whose `rng` had the same seed; [`Node::new`](crate::node::Node::new) calls it with each
    /// radio's EUI-64. It must be called before the first connection, because it invalidates
    /// cookies and the sequence numbers of TIME-WAIT.
    pub(crate) fn personalize(&mut self, id: u64) {
        self.id = id;
    }

    /// A TCP without memory: it has no connections, and answers no segments.
    pub(crate) fn absent() -> Self {
        let memory = Memory {
            connections: &mut [],
            listeners: &mut [],
            half_open: &mut [],
        };
        Self::keyed(memory, KeyedHash::UNKEYED, 0)
    }

    /// Whether the instance has no memory, as after [`Self::absent`].
    pub(crate) const fn is_absent(&self) -> bool {
        self.memory.connections.is_empty()
    }

    fn keyed(memory: Memory<'m>, hash: KeyedHash, next_port: u16) -> Self {
        Self {
            memory,
            hash,
            id: 0,
            reply: None,
            counters: TcpCounters::NEW,
            cookie_sent_at: None,
            tick: Instant::ORIGIN,
            now_ms: 0,
            tick_part_us: 0,
            now_part: 0,
            flight_max: u16::MAX,
            strangers_turn: false,
            next_port,
            last_generation: 0,
            turn: 0,
            #[cfg(feature = "tcple")]
            waited_ms: 0,
        }
    }

    /// Takes the flight limit of a path's offer into account. A window that was announced cannot be
    /// taken back, so the least limit holds from then on for all paths.
    pub(super) fn keep_to(&mut self, offer: Offer) {
        self.flight_max = self.flight_max.min(offer.flight_max);
    }

    /// The largest window to offer and to use.
    pub(super) const fn window_max(&self) -> u16 {
        match BOUNDS_FLIGHT {
            true => self.flight_max,
            false => u16::MAX,
        }
    }

    /// Counts of segments since the start.
    pub const fn counters(&self) -> &TcpCounters {
        &self.counters
    }

    /// Starts a connection from `local` (chosen for `remote` by `ip`) to a port of `remote`, over
    /// a path with this `offer`.
    ///
    /// The handshake follows; data may be sent at once, and wait for it.
    ///
    /// # Errors
    /// [`OpenError::NoSlot`], `Address`, `NoPort`.
    pub fn connect(
        &mut self,
        local: Ipv6Addr,
        remote: impl Into<Remote>,
        buffers: Buffers<'m>,
        config: &'m Config,
        offer: Offer,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        let mut ends = Endpoints::between((local, 0), remote.into());
        self.open(&mut ends, true, buffers, config, offer, now)
    }

    /// As [`Self::connect`], from a local port of choice.
    ///
    /// # Errors
    /// [`OpenError::NoSlot`], `Address`, `InUse`.
    pub fn connect_from(
        &mut self,
        local: (Ipv6Addr, u16),
        remote: impl Into<Remote>,
        buffers: Buffers<'m>,
        config: &'m Config,
        offer: Offer,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        let mut ends = Endpoints::between(local, remote.into());
        self.open(&mut ends, false, buffers, config, offer, now)
    }

    /// Opens a connection between two ends; `chooses`: from a port to be chosen.
    fn open(
        &mut self,
        ends: &mut Endpoints,
        chooses: bool,
        buffers: Buffers<'m>,
        config: &'m Config,
        offer: Offer,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        self.set_now(now);
        let index = match self.slot_between(ends, chooses) {
            Ok(index) => index,
            Err(error) => return Err(Rejected { error, buffers }),
        };
        let (iss, ts_offset) = self.initial_numbers(ends);
        self.keep_to(offer);
        let (rmss, window_max) = (config.rmss.min(offer.rmss), self.window_max());
        let handle = self.occupy(index, ends, buffers, config);
        if let Some(connection) = self.at_mut(index) {
            connection.rmss = rmss;
            connection.recv.limit(window_max);
            connection.open(iss, ts_offset);
        }
        Ok(handle)
    }

    /// A slot for a connection between two ends; see [`Self::open`].
    fn slot_between(&mut self, ends: &mut Endpoints, chooses: bool) -> Result<usize, OpenError> {
        if chooses {
            self.choose_port(ends)?;
        }
        if !ends.are_possible() {
            return Err(OpenError::Address);
        }
        if self.find(ends).is_some() {
            return Err(OpenError::InUse);
        }
        self.free_slot().ok_or(OpenError::NoSlot)
    }

    /// Takes connections to `port`, at `local` or (`None`) at every address of the node.
    ///
    /// # Errors
    /// [`ListenError`]; in a build without the feature `listen`, [`ListenError::NoPlace`].
    pub fn listen(
        &mut self,
        local: Option<Ipv6Addr>,
        port: u16,
        config: &'m Config,
    ) -> Result<ListenerHandle, ListenError> {
        let local = match local {
            None => Ipv6Addr::UNSPECIFIED,
            Some(addr) if is_unicast(&addr) => addr,
            Some(_) => return Err(ListenError::Address),
        };
        if port == 0 {
            return Err(ListenError::Address);
        }
        let mut free = None;
        let places = possible(self.memory.listeners)
            .iter()
            .take(TCP_LISTENERS_MAX);
        for (index, place) in places.enumerate() {
            if place.config.is_none() {
                free = free.or(Some(index));
            } else if place.port == port && place.local == local {
                return Err(ListenError::InUse);
            }
        }
        let index = free.ok_or(ListenError::NoPlace)?;
        let generation = self.last_generation.wrapping_add(1);
        self.last_generation = generation;
        if let Some(place) = possible_mut(self.memory.listeners).get_mut(index) {
            *place = Listener {
                config: Some(config),
                port,
                local,
                generation,
            };
        }
        let index = index as u8;
        Ok(ListenerHandle { index, generation })
    }

    /// Stops listening; handshakes under way are forgotten, accepted connections live on.
    pub fn unlisten(&mut self, listener: ListenerHandle) {
        if self.listener_at(listener).is_none() {
            return;
        }
        if let Some(place) =
            possible_mut(self.memory.listeners).get_mut(usize::from(listener.index))
        {
            *place = Listener::EMPTY;
        }
        for slot in self.memory.connections.iter_mut() {
            let waiting = slot.0.as_mut().filter(|c| c.waits_for(listener.index));
            if let Some(connection) = waiting {
                connection.end(None);
            }
        }
        for entry in possible_mut(self.memory.half_open).iter_mut() {
            if entry.listener() == listener.index {
                entry.set_stage(Stage::Free);
            }
        }
    }

    /// Whether a connection waits for [`Self::accept`].
    pub fn can_accept(&self, listener: ListenerHandle) -> bool {
        self.listener_at(listener).is_some() && self.first_ready(listener.index).is_some()
    }

    /// The listener's settings and port; `None`: the handle is stale.
    fn listener_at(&self, listener: ListenerHandle) -> Option<(&'m Config, u16)> {
        let place = possible(self.memory.listeners).get(usize::from(listener.index))?;
        let config = place.config?;
        (place.generation == listener.generation).then_some((config, place.port))
    }

    /// Both ends of each handshake with a listener that is under way.
    pub fn handshakes(&self) -> impl Iterator<Item = Endpoints> {
        let entries = possible(self.memory.half_open).iter();
        entries
            .filter(|entry| matches!(entry.stage(), Stage::SynAckDue | Stage::SynReceived))
            .map(|entry| entry.ends)
    }

    /// Gives buffers to the connection that has waited longest or, when none waits, to the next
    /// one: the handle is in [`State::Listen`](super::State::Listen) until its handshake is done.
    ///
    /// Data that arrive before there are buffers are dropped, and the peer has to retransmit them.
    /// So lend buffers in advance if peers send data at once. To save memory, call this only when
    /// [`Self::can_accept`] is true.
    ///
    /// # Errors
    /// [`OpenError::NoSlot`], [`OpenError::NoListener`].
    pub fn accept(
        &mut self,
        listener: ListenerHandle,
        buffers: Buffers<'m>,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        self.set_now(now);
        let (index, config, port) = match self.slot_of_listener(listener) {
            Ok(found) => found,
            Err(error) => return Err(Rejected { error, buffers }),
        };
        let handle = self.occupy(index, &Endpoints::NONE, buffers, config);
        if let Some(connection) = self.at_mut(index) {
            connection.wait_for(listener.index, port);
        }
        if let Some(ready) = self.first_ready(listener.index) {
            self.hand_over_entry(ready, index);
        }
        Ok(handle)
    }

    /// A slot for a connection that a listener takes, the listener's settings and port.
    fn slot_of_listener(
        &self,
        listener: ListenerHandle,
    ) -> Result<(usize, &'m Config, u16), OpenError> {
        let found = self.listener_at(listener);
        let (config, port) = found.ok_or(OpenError::NoListener)?;
        let index = self.free_slot().ok_or(OpenError::NoSlot)?;
        Ok((index, config, port))
    }

    /// Half-close: the peer learns, behind the last byte, that no more will come. Reading
    /// goes on.
    pub fn shutdown(&mut self, handle: Handle, now: Instant) {
        if let Some(connection) = self.connection_at(handle, now) {
            connection.shutdown();
            connection.on_data_queued();
        }
    }

    /// Full close: nothing more is sent nor read; what was handed over is still delivered
    /// in the background. Unread or late data reset the connection, as the peer must learn
    /// that the application has not read them. Call [`Self::remove`] once [`Connection::state`] is
    /// [`State::Closed`](super::State::Closed) or [`State::TimeWait`](super::State::TimeWait).
    pub fn close(&mut self, handle: Handle, now: Instant) {
        if let Some(connection) = self.connection_at(handle, now) {
            connection.close();
            connection.on_data_queued();
        }
    }

    /// Ends the connection at once, with a reset.
    pub fn abort(&mut self, handle: Handle) {
        if let Some(connection) = self.connection_mut(handle) {
            connection.abort();
        }
    }

    /// The connection's state, readiness and telemetry; `None`: the handle is stale.
    pub fn connection(&self, handle: Handle) -> Option<&Connection<'m>> {
        let slot = self.memory.connections.get(usize::from(handle.index))?;
        let current = slot.1 == handle.generation;
        slot.0
            .as_ref()
            .filter(|connection| current && !connection.is_orphan())
    }

    /// Changes the settings of a connection; those of the handshake stay as agreed.
    pub fn set_config(&mut self, handle: Handle, config: &'m Config, now: Instant) {
        if let Some(connection) = self.connection_at(handle, now) {
            connection.config = config;
            connection.loss.choose(config.congestion_algorithm);
            connection.put_off_keepalive();
        }
    }

    /// Takes the buffers back from a connection in CLOSED or TIME-WAIT; the handle is stale from
    /// then on. `None`: the connection is not over yet (call [`Self::abort`] first to force it), or
    /// the handle is stale.
    ///
    /// A connection in TIME-WAIT keeps its slot, without buffers, until its time is over or
    /// the slot is needed (RFC 9293 §3.4.2 allows neither less nor more).
    pub fn remove(&mut self, handle: Handle) -> Option<Buffers<'m>> {
        let slot = self.memory.connections.get_mut(usize::from(handle.index))?;
        let connection = slot
            .0
            .as_mut()
            .filter(|c| slot.1 == handle.generation && !c.is_orphan())?;
        connection.release()
    }

    /// A slot that is free or, rather than refuse work, in TIME-WAIT without an owner.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    pub(super) fn free_slot(&self) -> Option<usize> {
        let most = self.memory.connections.len().min(usize::from(u8::MAX));
        let slots = self.memory.connections.get(..most).unwrap_or_default();
        let mut orphan = None;
        for (index, slot) in slots.iter().enumerate() {
            match &slot.0 {
                None => return Some(index),
                Some(connection) if connection.is_orphan() => orphan = Some(index),
                Some(_) => {}
            }
        }
        orphan
    }

    /// A new connection in a slot.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn occupy(
        &mut self,
        index: usize,
        ends: &Endpoints,
        buffers: Buffers<'m>,
        config: &'m Config,
    ) -> Handle {
        let generation = self.last_generation.wrapping_add(1);
        self.last_generation = generation;
        if let Some(slot) = self.memory.connections.get_mut(index) {
            let now = (self.now_ms, self.now_part);
            slot.0 = Some(Connection::new(ends, buffers, config, now));
            slot.1 = generation;
        }
        Handle {
            index: index as u8,
            generation,
        }
    }

    /// The connection, its clock at `now`.
    #[inline(never)]
    pub(super) fn connection_at(
        &mut self,
        handle: Handle,
        now: Instant,
    ) -> Option<&mut Connection<'m>> {
        self.set_now(now);
        self.connection_mut(handle)
    }

    pub(super) fn connection_mut(&mut self, handle: Handle) -> Option<&mut Connection<'m>> {
        let slot = self.memory.connections.get_mut(usize::from(handle.index))?;
        let current = slot.1 == handle.generation;
        slot.0
            .as_mut()
            .filter(|connection| current && !connection.is_orphan())
    }

    /// The oldest done handshake of a listener: first the ones that wait for a slot, then by the
    /// time that they have left.
    pub(super) fn first_ready(&self, listener: u8) -> Option<usize> {
        let mut first: Option<(usize, u32)> = None;
        for (index, entry) in possible(self.memory.half_open).iter().enumerate() {
            if entry.stage() == Stage::Ready && entry.listener() == listener {
                let left = entry.deadline.wrapping_sub(self.present());
                let left = left >> 1 | u32::from(!entry.is_prolonged()) << 31;
                if first.is_none_or(|(_, least)| left < least) {
                    first = Some((index, left));
                }
            }
        }
        first.map(|(index, _)| index)
    }

    /// Sets an unused local port towards the remote end (RFC 6056 §3.3.3: hash of the peer plus a
    /// counter, so that ports reveal nothing about other peers).
    fn choose_port(&mut self, ends: &mut Endpoints) -> Result<(), OpenError> {
        let offset = self.hash_ends(ends, 0) as u16;
        // No more ports can be taken than there are connections and listeners.
        let tries = self.memory.connections.len() + possible(self.memory.listeners).len() + 1;
        for _ in 0..tries {
            let number = offset.wrapping_add(self.next_port);
            self.next_port = self.next_port.wrapping_add(1);
            ends.local_port = EPHEMERAL_FIRST | number & !EPHEMERAL_FIRST;
            let listened = possible(self.memory.listeners)
                .iter()
                .any(|l| l.config.is_some() && l.port == ends.local_port);
            if !listened && self.find(ends).is_none() {
                return Ok(());
            }
        }
        Err(OpenError::NoPort)
    }
}

/// The dynamic ports 49152 to 65535: the first one, and the bits they share.
const EPHEMERAL_FIRST: u16 = 0xc000;
