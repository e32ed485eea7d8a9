//! [`Tcp`]: the connections of a node, found by their ends; the calls of the application.
//!
//! Place: between `node`, which owns it, and [`super::connection`]. Here lie demultiplexing,
//! listeners, resets to strangers, and the order in which connections get to send. Left out:
//! routes and source addresses (`ip`), and what goes on inside a connection.

use core::net::Ipv6Addr;

use super::config::Config;
use super::connection::{Buffers, Connection, Endpoints, Error, Facts, is_unicast};
use super::listener::{self, Agreed, HalfOpen, LOCAL_ANY, Listener, LocalAddrs, Stage, cookie};
use super::segment::{Head, Segment};
use super::send_buffer::SendBuffer;
use super::seq::SeqNum;
use super::state::State;
use super::{Drop, RetransmissionCause};
use crate::limits::TCP_LISTENERS_MAX;
use crate::random::{KeyedHash, Rng};
use crate::time::{Duration, Instant};
use crate::wire::tcp::{self as wire, Flags, Header};

/// A place for a connection.
#[derive(Debug)]
pub struct Slot<'m>(Option<Connection<'m>>, u8);

impl Slot<'_> {
    /// A free place.
    pub const EMPTY: Self = Self(None, 0);
}

/// The memory of [`Tcp`], borrowed for good; buffers come with each connection.
#[derive(Debug)]
pub struct Memory<'m> {
    /// As many connections as there can be at one time (255 at most).
    pub connections: &'m mut [Slot<'m>],
    /// As many ports as there can be listened on (16 at most).
    pub listeners: &'m mut [Listener<'m>],
    /// Handshakes under way; beyond, SYN cookies serve (255 at most).
    pub half_open: &'m mut [HalfOpen],
}

/// A connection, from `connect` or `accept` until `remove`; stale ones are recognised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    index: u8,
    generation: u8,
}

/// A listener, from `listen` until `unlisten`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListenerHandle(u8);

/// Why `connect` or `accept` did not give a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Every slot is taken: `remove` a closed connection, or lend more slots.
    NoSlot,
    /// The listener is none (any more).
    NoListener,
    /// The address or port cannot be an end of a connection.
    Address,
    /// Every ephemeral port to this peer is in use.
    NoPort,
    /// There is a connection between these ends already.
    InUse,
}

/// `connect` or `accept` failed; the buffers come back.
#[derive(Debug)]
pub struct Rejected<'m> {
    /// The reason.
    pub error: OpenError,
    /// What was lent.
    pub buffers: Buffers<'m>,
}

/// Why `listen` failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenError {
    /// Every place for a listener is taken.
    NoPlace,
    /// Somebody listens there already.
    InUse,
    /// Port 0, or too many local addresses.
    Address,
}

/// Why `send` took nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// Wait for acknowledgments.
    BufferFull,
    /// `shutdown` or `close` was called.
    Closing,
    /// The connection ended.
    Failed(Error),
    /// The handle is stale.
    NoConnection,
}

/// Why `recv` gave nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// Nothing has arrived (yet).
    Empty,
    /// The peer has sent everything, and all of it was read.
    Finished,
    /// The connection ended.
    Failed(Error),
    /// The handle is stale.
    NoConnection,
}

/// What ICMPv6 says about a packet of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// Packet too big: the next link's MTU, bytes.
    PacketTooBig(u32),
    /// The peer has no such port, or policy forbids: hard while connecting.
    Hard,
    /// No route, no neighbour, hop limit exceeded: may pass.
    Soft,
}

/// A segment that [`Tcp::poll_segment`] wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Our address.
    pub src: Ipv6Addr,
    /// The peer's address.
    pub dst: Ipv6Addr,
    /// The ECN field of the traffic class: 0, or 2 for ECT(0).
    pub ecn: u8,
    /// Bytes written: header and payload.
    pub len: usize,
    /// Why this is sent again, if it is.
    pub cause: Option<RetransmissionCause>,
}

/// What happened since the start; counters stop at their greatest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters {
    /// Segments received, wrong ones included.
    pub received: u32,
    /// Segments sent.
    pub sent: u32,
    /// Segments sent again, by [`RetransmissionCause`].
    pub retransmissions: [u16; RetransmissionCause::COUNT],
    /// Segments dropped, by [`Drop`].
    pub drops: [u16; Drop::COUNT],
    /// SYN cookies sent because the half-open table was full.
    pub syn_cookies: u16,
    /// Replies (resets, SYN cookies) that found the one place for them taken.
    pub replies_lost: u16,
}

impl Counters {
    const NEW: Self = Self {
        received: 0,
        sent: 0,
        retransmissions: [0; RetransmissionCause::COUNT],
        drops: [0; Drop::COUNT],
        syn_cookies: 0,
        replies_lost: 0,
    };

    /// Segments dropped for `reason`.
    pub fn dropped(&self, reason: Drop) -> u16 {
        self.drops.get(reason as usize).copied().unwrap_or(0)
    }

    /// Segments sent again for `cause`.
    pub fn retransmitted(&self, cause: RetransmissionCause) -> u16 {
        self.retransmissions
            .get(cause as usize)
            .copied()
            .unwrap_or(0)
    }
}

fn count(counter: Option<&mut u16>) {
    if let Some(counter) = counter {
        *counter = counter.saturating_add(1);
    }
}

/// A segment to somebody who has no connection: a reset, or a SYN-ACK.
#[derive(Clone, Copy, Debug)]
struct Reply {
    ends: Endpoints,
    seq: SeqNum,
    ack: SeqNum,
    flags: Flags,
    /// The rest is for SYN-ACKs.
    window: u16,
    mss: u16,
    sack_permitted: bool,
    timestamps: Option<(u32, u32)>,
}

/// Everything of TCP in a node.
#[derive(Debug)]
pub struct Tcp<'m> {
    memory: Memory<'m>,
    locals: LocalAddrs,
    hash: KeyedHash,
    reply: Option<Reply>,
    counters: Counters,
    /// The start of the current millisecond, and its number modulo 2^32.
    pub(super) tick: Instant,
    pub(super) now_ms: u32,
    /// Largest segment, as MSS counts it, that the node's link carries.
    mss_limit: u16,
    next_port: u16,
    next_generation: u8,
    /// Whose turn it is to send: a slot index.
    turn: u8,
}

impl<'m> Tcp<'m> {
    /// An engine in `memory`; `rng` keys the hash behind ISNs, ports and cookies.
    pub fn new(memory: Memory<'m>, rng: &mut Rng) -> Self {
        Self {
            memory,
            locals: LocalAddrs::NEW,
            hash: rng.keyed_hash(),
            reply: None,
            counters: Counters::NEW,
            tick: Instant::ORIGIN,
            now_ms: 0,
            mss_limit: u16::MAX,
            next_port: rng.next_u32() as u16,
            next_generation: 0,
            turn: 0,
        }
    }

    /// Bounds the MSS of later connections, both ways, by what the link carries.
    ///
    /// `mss`: bytes of payload and TCP options in a packet that is not to be cut up further
    /// than wanted.
    pub fn set_mss_limit(&mut self, mss: u16) {
        self.mss_limit = mss;
    }

    /// What happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    // ---- the application ----

    /// Starts a connection from `local` (chosen for `remote` by `ip`) to a port of `remote`.
    ///
    /// The handshake follows; data may be sent at once, and wait for it.
    ///
    /// # Errors
    /// [`OpenError::NoSlot`], `Address`, `NoPort`.
    pub fn connect(
        &mut self,
        local: Ipv6Addr,
        remote: (Ipv6Addr, u16),
        buffers: Buffers<'m>,
        config: &'m Config,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        match self.ephemeral_port(local, remote) {
            Ok(port) => self.connect_from((local, port), remote, buffers, config, now),
            Err(error) => Err(Rejected { error, buffers }),
        }
    }

    /// As [`Self::connect`], from a local port of choice.
    ///
    /// # Errors
    /// [`OpenError::NoSlot`], `Address`, `InUse`.
    pub fn connect_from(
        &mut self,
        local: (Ipv6Addr, u16),
        remote: (Ipv6Addr, u16),
        buffers: Buffers<'m>,
        config: &'m Config,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        self.set_now(now);
        let ends = Endpoints {
            local: local.0,
            remote: remote.0,
            local_port: local.1,
            remote_port: remote.1,
        };
        if !ends.are_possible() {
            return Err(Rejected {
                error: OpenError::Address,
                buffers,
            });
        }
        if self.find(&ends).is_some() {
            return Err(Rejected {
                error: OpenError::InUse,
                buffers,
            });
        }
        let (iss, ts_offset) = self.initial_numbers(&ends, now);
        let mut connection = Connection::new(ends, buffers, config, iss, ts_offset);
        connection.rmss = config.rmss.min(self.mss_limit);
        connection.smss = config.smss.min(self.mss_limit);
        connection.open(self.now_ms);
        self.place(connection)
    }

    /// Takes connections to `port`, at `local` or (`None`) at every address of the node.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(
        &mut self,
        local: Option<Ipv6Addr>,
        port: u16,
        config: &'m Config,
    ) -> Result<ListenerHandle, ListenError> {
        let local = match local {
            None => LOCAL_ANY,
            Some(addr) if is_unicast(addr) => {
                let in_use = self.locals_in_use();
                self.locals
                    .enter(addr, in_use)
                    .ok_or(ListenError::Address)?
            }
            Some(_) => return Err(ListenError::Address),
        };
        if port == 0 {
            return Err(ListenError::Address);
        }
        let mut listeners = self.memory.listeners.iter();
        if listeners.any(|l| l.config.is_some() && (l.port, l.local) == (port, local)) {
            return Err(ListenError::InUse);
        }
        let places = self
            .memory
            .listeners
            .iter_mut()
            .take(TCP_LISTENERS_MAX)
            .enumerate();
        for (index, place) in places {
            if place.config.is_none() {
                *place = Listener {
                    config: Some(config),
                    port,
                    local,
                };
                return Ok(ListenerHandle(index as u8));
            }
        }
        Err(ListenError::NoPlace)
    }

    /// Stops listening; handshakes under way are forgotten, accepted connections live on.
    pub fn unlisten(&mut self, listener: ListenerHandle) {
        if let Some(place) = self.memory.listeners.get_mut(usize::from(listener.0)) {
            *place = Listener::EMPTY;
        }
        for slot in self.memory.connections.iter_mut() {
            if let Some(connection) = slot.0.as_mut().filter(|c| c.waits_for(listener.0)) {
                connection.end(None);
            }
        }
        for entry in self.memory.half_open.iter_mut() {
            if entry.listener() == listener.0 {
                entry.set_stage(Stage::Free);
            }
        }
    }

    /// Whether a connection waits for [`Self::accept`].
    pub fn can_accept(&self, listener: ListenerHandle) -> bool {
        self.first_ready(listener.0).is_some()
    }

    /// Gives buffers to the connection that has waited longest or, when none waits, to the
    /// next one: the handle is in [`State::Listen`] until its handshake is done.
    ///
    /// Data that arrive before there are buffers are dropped, to be sent again. So lend them
    /// in advance where a peer talks at once; call this only when [`Self::can_accept`] says
    /// so where memory counts more.
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
        let index = listener.0;
        let found = self.memory.listeners.get(usize::from(index));
        let Some((config, port)) = found.and_then(|found| Some((found.config?, found.port))) else {
            return Err(Rejected {
                error: OpenError::NoListener,
                buffers,
            });
        };
        let ends = Endpoints {
            local: Ipv6Addr::UNSPECIFIED,
            remote: Ipv6Addr::UNSPECIFIED,
            local_port: port,
            remote_port: 0,
        };
        let mut connection = Connection::new(ends, buffers, config, SeqNum::new(0), 0);
        connection.wait_for(index);
        let handle = self.place(connection)?;
        if let Some(ready) = self.first_ready(index) {
            self.hand_over(ready, usize::from(handle.index), now);
        }
        Ok(handle)
    }

    /// Copies what fits of `data` to the send buffer; returns how many bytes that is.
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken.
    pub fn send(&mut self, handle: Handle, data: &[u8], now: Instant) -> Result<usize, SendError> {
        self.set_now(now);
        let now_ms = self.now_ms;
        let connection = self.connection_mut(handle).ok_or(SendError::NoConnection)?;
        connection.check_send()?;
        match connection.send.push(data) {
            0 if !data.is_empty() => Err(SendError::BufferFull),
            taken => {
                connection.on_data_queued(now_ms);
                Ok(taken)
            }
        }
    }

    /// Hands over `data` without copying it, all or nothing; needs a
    /// [`SendBuffer::Slices`](super::SendBuffer::Slices).
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken.
    pub fn send_slice(
        &mut self,
        handle: Handle,
        data: &'m [u8],
        now: Instant,
    ) -> Result<(), SendError> {
        self.set_now(now);
        let now_ms = self.now_ms;
        let connection = self.connection_mut(handle).ok_or(SendError::NoConnection)?;
        connection.check_send()?;
        let taken = match &mut connection.send {
            SendBuffer::Slices(queue) => queue.push_slice(data),
            SendBuffer::Ring(_) => false,
        };
        if !taken {
            return Err(SendError::BufferFull);
        }
        connection.on_data_queued(now_ms);
        Ok(())
    }

    /// Copies received bytes to `out`; returns how many, at least one.
    ///
    /// # Errors
    /// [`RecvError`]; what arrived before a failure can still be read.
    pub fn recv(&mut self, handle: Handle, out: &mut [u8]) -> Result<usize, RecvError> {
        let connection = self.connection_mut(handle).ok_or(RecvError::NoConnection)?;
        connection.check_recv()?;
        Ok(connection.read(out))
    }

    /// The received bytes that lie in one piece; [`Self::consume`] frees them.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn peek(&self, handle: Handle) -> Result<&[u8], RecvError> {
        let connection = self.connection(handle).ok_or(RecvError::NoConnection)?;
        connection.check_recv()?;
        Ok(connection.recv.front())
    }

    /// Frees `count` received bytes that were looked at with [`Self::peek`].
    pub fn consume(&mut self, handle: Handle, count: usize) {
        if let Some(connection) = self.connection_mut(handle) {
            connection.consume(count.min(usize::from(u16::MAX)) as u16);
        }
    }

    /// Half-close: the peer learns, behind the last byte, that no more will come. Reading
    /// goes on.
    pub fn shutdown(&mut self, handle: Handle, now: Instant) {
        self.set_now(now);
        let now_ms = self.now_ms;
        if let Some(connection) = self.connection_mut(handle) {
            connection.shutdown();
            connection.on_data_queued(now_ms);
        }
    }

    /// Full close: nothing more is sent nor read; what was handed over is still delivered
    /// in the background. Unread or late data reset the connection, as the peer must learn
    /// that nobody read them. Call [`Self::remove`] once [`Connection::state`] is
    /// [`State::Closed`] or [`State::TimeWait`].
    pub fn close(&mut self, handle: Handle, now: Instant) {
        self.set_now(now);
        let now_ms = self.now_ms;
        if let Some(connection) = self.connection_mut(handle) {
            connection.close(now_ms);
            connection.on_data_queued(now_ms);
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
        self.set_now(now);
        let now_ms = self.now_ms;
        if let Some(connection) = self.connection_mut(handle) {
            connection.config = config;
            connection.put_off_keepalive(now_ms);
        }
    }

    /// Takes the buffers back from a connection in CLOSED or TIME-WAIT; the handle is stale
    /// from then on. `None`: not over yet (call [`Self::abort`] first to insist), or stale.
    ///
    /// A connection in TIME-WAIT keeps its slot, without buffers, until its time is over or
    /// the slot is needed (RFC 9293 §3.4.2 allows neither less nor more).
    pub fn remove(&mut self, handle: Handle) -> Option<Buffers<'m>> {
        let slot = self.memory.connections.get_mut(usize::from(handle.index))?;
        let connection = slot
            .0
            .as_mut()
            .filter(|c| slot.1 == handle.generation && !c.is_orphan())?;
        let buffers = connection.release()?;
        if connection.is_over() {
            slot.0 = None;
        }
        Some(buffers)
    }

    // ---- the network ----

    /// A TCP segment from `src` to `dst`, an address of ours; `ecn`: the low two bits of the
    /// packet's traffic class.
    ///
    /// # Errors
    /// Why it, or the rest of it, was dropped; counted already.
    pub fn on_segment(
        &mut self,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        ecn: u8,
        segment: &[u8],
        now: Instant,
    ) -> Result<(), Drop> {
        self.set_now(now);
        self.counters.received = self.counters.received.wrapping_add(1);
        let result = self.arrive(src, dst, ecn, segment, now);
        if let Err(reason) = result {
            count(self.counters.drops.get_mut(reason as usize));
        }
        result
    }

    /// ICMPv6 says that a segment of ours did not get through.
    ///
    /// `local`, `remote`: source and destination of the quoted packet; `quoted`: its TCP
    /// header, at least the first eight bytes. What was not sent by a connection of ours, or
    /// is not on the way, is ignored (RFC 5927 §4).
    pub fn on_icmp_error(
        &mut self,
        local: Ipv6Addr,
        remote: Ipv6Addr,
        quoted: &[u8],
        error: IcmpError,
        now: Instant,
    ) {
        self.set_now(now);
        let mut reader = crate::wire::cursor::Reader::new(quoted);
        let (Ok(local_port), Ok(remote_port), Ok(seq)) = (reader.u16(), reader.u16(), reader.u32())
        else {
            return;
        };
        let ends = Endpoints {
            local,
            remote,
            local_port,
            remote_port,
        };
        let now_ms = self.now_ms;
        if let Some(connection) = self.find(&ends).and_then(|index| self.at_mut(index)) {
            connection.on_icmp_error(SeqNum::new(seq), error, now_ms);
        }
    }

    /// Writes the next segment to send, if any, to `out`, which holds a whole one (the MSS
    /// and 60 bytes).
    ///
    /// `room`: whether a packet to an address could be sent on now; asked before a segment is
    /// counted sent, because one refused afterwards would be a loss of our own making.
    pub fn poll_segment(
        &mut self,
        now: Instant,
        mut room: impl FnMut(&Ipv6Addr) -> bool,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        self.set_now(now);
        self.on_deadline();
        if let Some(reply) = self.reply
            && room(&reply.ends.remote)
        {
            self.reply = None;
            let outgoing = Self::emit_reply(&reply, out)?;
            return Some(self.sent(outgoing));
        }
        let entries = self.memory.half_open.iter();
        let due = entries
            .enumerate()
            .find(|(_, entry)| entry.stage() == Stage::SynAckDue && room(&entry.remote));
        if let Some((index, _)) = due {
            return self.emit_syn_ack(index, now, out);
        }
        let slots = self.memory.connections.len();
        for _ in 0..slots {
            let index = usize::from(self.turn);
            self.turn = if index + 1 >= slots { 0 } else { self.turn + 1 };
            let Some(connection) = self.at(index) else {
                continue;
            };
            let Some(plan) = connection.plan() else {
                continue;
            };
            if room(&connection.ends.remote) {
                return self.emit(index, plan, out);
            }
        }
        None
    }

    /// When [`Self::poll_segment`] must be called at the latest, even without an event.
    /// `None`: nothing will ever happen by itself.
    pub fn next_deadline(&self) -> Option<Instant> {
        let mut wait: Option<u32> = None;
        let mut note = |this: u32| wait = Some(wait.map_or(this, |wait| wait.min(this)));
        for slot in self.memory.connections.iter() {
            if let Some(this) = slot.0.as_ref().and_then(|c| c.wait_ms(self.now_ms)) {
                note(this);
            }
        }
        for entry in self.memory.half_open.iter() {
            if matches!(entry.stage(), Stage::SynReceived | Stage::Ready) {
                note((entry.deadline_ms.wrapping_sub(self.now_ms) as i32).max(0) as u32);
            }
        }
        wait.map(|wait| self.tick + Duration::from_millis(u64::from(wait)))
    }

    // ---- arrival ----

    fn arrive(
        &mut self,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        ecn: u8,
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), Drop> {
        if !wire::is_checksum_valid(&src, &dst, bytes) {
            return Err(Drop::Checksum);
        }
        let (header, payload) = Header::parse(bytes).map_err(|_| Drop::Malformed)?;
        let ends = Endpoints {
            local: dst,
            remote: src,
            local_port: header.dst_port,
            remote_port: header.src_port,
        };
        if !ends.are_possible() {
            return Err(Drop::Address);
        }
        let segment = Segment::new(&header, payload, ecn & 3 == ECN_CE);
        let now_ms = self.now_ms;
        let found = self.find(&ends);
        let outlived = found.and_then(|index| self.outlive(index, &ends, &segment));
        if let (Some(index), None) = (found, outlived)
            && let Some(connection) = self.at_mut(index)
        {
            let result = connection.on_segment(segment, now_ms);
            self.sweep(index);
            if result == Err(Drop::UnacceptableAck) {
                self.reset(&ends, &segment);
            }
            return result;
        }
        self.arrive_without_connection(&ends, &segment, outlived, now)
    }

    /// A listener's business, or nobody's (RFC 9293 §3.10.7.1 and .2).
    ///
    /// `outlived`: SND.NXT of an earlier incarnation whose TIME-WAIT this SYN ended.
    fn arrive_without_connection(
        &mut self,
        ends: &Endpoints,
        segment: &Segment<'_>,
        outlived: Option<SeqNum>,
        now: Instant,
    ) -> Result<(), Drop> {
        let Some(listener) = self.listener_of(ends) else {
            self.reset(ends, segment);
            return Err(Drop::NoConnection);
        };
        if let Some(index) = self.half_open_of(ends, listener.0) {
            return self.arrive_half_open(index, ends, segment, listener.1, now);
        }
        if segment.has(Flags::RST) {
            return Err(Drop::NoConnection);
        }
        if segment.has(Flags::ACK) {
            return self.arrive_with_cookie(ends, segment, listener, now);
        }
        if !segment.has(Flags::SYN) {
            return Err(Drop::NoSyn);
        }
        let (mut iss, ts_offset) = self.initial_numbers(ends, now);
        if let Some(snd_nxt) = outlived {
            // Behind everything the peer may still have of the last incarnation.
            iss = iss.later(snd_nxt.plus(1 << 16));
        }
        let agreed = listener::agree(listener.1, segment.header());
        match self.new_half_open(ends, segment, listener, agreed, false) {
            Ok(index) => {
                if let Some(entry) = self.memory.half_open.get_mut(index) {
                    entry.iss = iss;
                    entry.set_stage(Stage::SynAckDue);
                }
                Ok(())
            }
            Err(Drop::HalfOpenFull) => {
                self.send_cookie(ends, segment, listener.1, agreed, ts_offset);
                Ok(())
            }
            Err(reason) => Err(reason),
        }
    }

    /// A segment for a handshake under way.
    fn arrive_half_open(
        &mut self,
        index: usize,
        ends: &Endpoints,
        segment: &Segment<'_>,
        config: &'m Config,
        now: Instant,
    ) -> Result<(), Drop> {
        let now_ms = self.now_ms;
        let Some(entry) = self.memory.half_open.get_mut(index) else {
            return Err(Drop::HalfOpenFull);
        };
        let rcv_nxt = entry.irs.plus(1);
        if segment.has(Flags::RST) {
            if segment.seq != rcv_nxt {
                return Err(Drop::InexactReset);
            }
            entry.set_stage(Stage::Free);
            return Err(Drop::ConnectionReset);
        }
        if segment.has(Flags::SYN) {
            if segment.seq != entry.irs || segment.has(Flags::ACK) {
                return Err(Drop::SynInWindow);
            }
            if entry.stage() == Stage::SynReceived {
                entry.set_stage(Stage::SynAckDue);
            }
            return Ok(());
        }
        if !segment.has(Flags::ACK) {
            return Err(Drop::NoAck);
        }
        if segment.ack() != entry.iss.plus(1) {
            self.reset(ends, segment);
            return Err(Drop::UnacceptableAck);
        }
        if entry.stage() != Stage::Ready {
            entry.on_acknowledged(segment.window(), config, now_ms);
        }
        self.on_ready(index, segment, now)
    }

    /// A handshake is done: whoever waits for it continues with the segment that ended it.
    fn on_ready(&mut self, index: usize, segment: &Segment<'_>, now: Instant) -> Result<(), Drop> {
        let now_ms = self.now_ms;
        let Some(entry) = self.memory.half_open.get_mut(index) else {
            return Err(Drop::HalfOpenFull);
        };
        let listener = entry.listener();
        let mut slots = self.memory.connections.iter();
        let waiting = slots.position(|slot| slot.0.as_ref().is_some_and(|c| c.waits_for(listener)));
        if let Some(slot) = waiting {
            self.hand_over(index, slot, now);
            let connection = self.at_mut(slot).ok_or(Drop::NoConnection)?;
            return connection.on_segment(*segment, now_ms);
        }
        if segment.payload.is_empty() && !segment.has(Flags::FIN) {
            return Ok(());
        }
        entry.miss_data();
        Err(Drop::NotAccepted)
    }

    /// The connection in a slot takes over a half-open entry.
    fn hand_over(&mut self, entry: usize, slot: usize, now: Instant) {
        let Some(half_open) = self.memory.half_open.get(entry) else {
            return;
        };
        let ends = self.ends_of(half_open);
        let (_, ts_offset) = self.initial_numbers(&ends, now);
        if let Some(half_open) = self.memory.half_open.get_mut(entry)
            && let Some(slot) = self.memory.connections.get_mut(slot)
            && let Some(connection) = slot.0.as_mut()
        {
            connection.take_over(half_open, ends, ts_offset, self.mss_limit, self.now_ms);
            half_open.set_stage(Stage::Free);
        }
    }

    /// An ACK for a port that is listened on, of no known handshake: the answer to a cookie?
    fn arrive_with_cookie(
        &mut self,
        ends: &Endpoints,
        segment: &Segment<'_>,
        listener: (u8, &'m Config),
        now: Instant,
    ) -> Result<(), Drop> {
        let iss = segment.ack().minus(1);
        let irs = segment.seq.minus(1);
        let valid = cookie::claims(iss, self.now_ms)
            .filter(|_| !segment.has(Flags::SYN))
            .filter(|(period, mss)| self.cookie(ends, irs, *period, *mss) == iss);
        let Some((_, mss)) = valid else {
            self.reset(ends, segment);
            return Err(Drop::UnacceptableAck);
        };
        let timestamps = segment.timestamps().filter(|_| listener.1.timestamps);
        let agreed = Agreed {
            timestamps: timestamps.is_some(),
            sack: timestamps.is_some_and(|(_, echo)| echo & 1 == 1) && listener.1.sack,
            ecn: false,
        };
        let now_ms = self.now_ms;
        let index = self.new_half_open(ends, segment, listener, agreed, true)?;
        let Some(entry) = self.memory.half_open.get_mut(index) else {
            return Err(Drop::HalfOpenFull);
        };
        entry.iss = iss;
        entry.irs = irs;
        entry.smss = cookie::mss(mss);
        entry.on_acknowledged(segment.window(), listener.1, now_ms);
        self.on_ready(index, segment, now)
    }

    /// A place for a handshake: a free one, or, when the peer has proven that it exists
    /// (`proven`), one of somebody who has not.
    fn new_half_open(
        &mut self,
        ends: &Endpoints,
        segment: &Segment<'_>,
        listener: (u8, &'m Config),
        agreed: Agreed,
        proven: bool,
    ) -> Result<usize, Drop> {
        let in_use = self.locals_in_use();
        let entries = &mut self.memory.half_open;
        let free = entries.iter().position(HalfOpen::is_free);
        let place = free.or_else(|| {
            proven.then(|| {
                entries
                    .iter()
                    .position(|entry| entry.stage() != Stage::Ready)
            })?
        });
        let place = place.ok_or(Drop::HalfOpenFull)?;
        let local = self
            .locals
            .enter(ends.local, in_use)
            .ok_or(Drop::LocalAddrsFull)?;
        let entry = entries.get_mut(place).ok_or(Drop::HalfOpenFull)?;
        let options = &segment.header().options;
        *entry = HalfOpen::new(listener.0, local, agreed);
        entry.remote = ends.remote;
        entry.remote_port = ends.remote_port;
        entry.irs = segment.seq;
        entry.smss = options.mss.unwrap_or(super::connection::SMSS_DEFAULT);
        entry.ts_recent = options.timestamps.map_or(0, |(value, _)| value);
        Ok(place)
    }

    /// Answers a SYN without keeping anything of it.
    fn send_cookie(
        &mut self,
        ends: &Endpoints,
        segment: &Segment<'_>,
        config: &Config,
        agreed: Agreed,
        ts_offset: u32,
    ) {
        let mss = segment
            .header()
            .options
            .mss
            .unwrap_or(super::connection::SMSS_DEFAULT);
        let index = cookie::mss_index(mss);
        let iss = self.cookie(ends, segment.seq, cookie::period(self.now_ms), index);
        // The lowest bit of our timestamp remembers whether the peer takes SACK.
        let clock = self.now_ms.wrapping_add(ts_offset) & !1 | u32::from(agreed.sack);
        let timestamps = segment.timestamps().map(|(value, _)| (clock, value));
        count(Some(&mut self.counters.syn_cookies));
        self.set_reply(Reply {
            ends: *ends,
            seq: iss,
            ack: segment.seq.plus(1),
            flags: Flags::SYN | Flags::ACK,
            window: config.accept_window,
            mss: config.rmss.min(self.mss_limit),
            timestamps: timestamps.filter(|_| agreed.timestamps),
            sack_permitted: agreed.sack && agreed.timestamps,
        });
    }

    fn cookie(&self, ends: &Endpoints, irs: SeqNum, period: u32, mss_index: u32) -> SeqNum {
        // The top bit keeps cookies apart from ISNs and ports, whose salt is 0.
        let salt = 1 << 63 | u64::from(period << 8 | mss_index) << 32 | u64::from(irs.get());
        cookie::make(period, mss_index, self.hash_ends(ends, salt))
    }

    /// TIME-WAIT gives way to a new incarnation (RFC 9293 §3.10.7.4, RFC 6191) when its SYN
    /// starts behind everything the old one received, by timestamp or by number. Returns
    /// where our numbers ended.
    fn outlive(&mut self, index: usize, ends: &Endpoints, segment: &Segment<'_>) -> Option<SeqNum> {
        let control = Flags::SYN | Flags::ACK | Flags::RST;
        if segment.flags.bits() & control.bits() != Flags::SYN.bits() {
            return None;
        }
        self.listener_of(ends)?;
        let connection = self.at_mut(index)?;
        if connection.state != State::TimeWait || !connection.gives_way_to(segment) {
            return None;
        }
        let snd_nxt = connection.snd_nxt;
        connection.end(None);
        self.sweep(index);
        Some(snd_nxt)
    }

    // ---- replies to strangers ----

    /// A reset for a segment that belongs to nothing (RFC 9293 §3.10.7.1).
    fn reset(&mut self, ends: &Endpoints, segment: &Segment<'_>) {
        if segment.has(Flags::RST) {
            return;
        }
        let (seq, flags) = match segment.has(Flags::ACK) {
            true => (segment.ack(), Flags::RST),
            false => (SeqNum::new(0), Flags::RST | Flags::ACK),
        };
        let ack = match segment.has(Flags::ACK) {
            true => SeqNum::new(0),
            false => segment.seq.plus(segment.seq_len()),
        };
        self.set_reply(Reply {
            ends: *ends,
            seq,
            ack,
            flags,
            window: 0,
            mss: 0,
            timestamps: None,
            sack_permitted: false,
        });
    }

    /// The first reply waits to be polled; later ones are lost until then, and counted:
    /// strangers cost one place, not a queue.
    fn set_reply(&mut self, reply: Reply) {
        if self.reply.is_some() {
            count(Some(&mut self.counters.replies_lost));
        } else {
            self.reply = Some(reply);
        }
    }

    // ---- emission ----

    fn emit(
        &mut self,
        index: usize,
        plan: super::output::Plan,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        let now_ms = self.now_ms;
        let connection = self.at_mut(index)?;
        let (src, dst) = (connection.ends.local, connection.ends.remote);
        let ecn = if connection.is_ect(plan) { ECN_ECT0 } else { 0 };
        let handshake = connection.is_connecting() && connection.facts.has(Facts::SYN_RESENT);
        let cause = plan
            .cause()
            .or(handshake.then_some(RetransmissionCause::Handshake));
        let len = connection.emit(plan, now_ms, out)?;
        self.sweep(index);
        Some(self.sent(Outgoing {
            src,
            dst,
            ecn,
            len,
            cause,
        }))
    }

    fn emit_syn_ack(&mut self, index: usize, now: Instant, out: &mut [u8]) -> Option<Outgoing> {
        let now_ms = self.now_ms;
        let entry = self.memory.half_open.get(index)?;
        let config = self
            .memory
            .listeners
            .get(usize::from(entry.listener()))?
            .config?;
        let ends = self.ends_of(entry);
        let (_, ts_offset) = self.initial_numbers(&ends, now);
        let agreed = entry.agreed();
        let clock = now_ms.wrapping_add(ts_offset);
        let ecn = if agreed.ecn { Flags::ECE } else { Flags::EMPTY };
        let reply = Reply {
            ends,
            seq: entry.iss,
            ack: entry.irs.plus(1),
            flags: Flags::SYN | Flags::ACK | ecn,
            window: config.accept_window,
            mss: config.rmss.min(self.mss_limit),
            timestamps: agreed.timestamps.then_some((clock, entry.ts_recent)),
            sack_permitted: agreed.sack,
        };
        let mut outgoing = Self::emit_reply(&reply, out)?;
        let entry = self.memory.half_open.get_mut(index)?;
        if entry.retries() > 0 {
            outgoing.cause = Some(RetransmissionCause::Handshake);
        }
        entry.on_syn_ack_sent(config, now_ms);
        Some(self.sent(outgoing))
    }

    /// Both ends of a half-open connection.
    fn ends_of(&self, entry: &HalfOpen) -> Endpoints {
        let listener = self.memory.listeners.get(usize::from(entry.listener()));
        Endpoints {
            local: self.locals.get(entry.local()),
            remote: entry.remote,
            local_port: listener.map_or(0, |listener| listener.port),
            remote_port: entry.remote_port,
        }
    }

    /// Writes a segment that belongs to no connection.
    fn emit_reply(reply: &Reply, out: &mut [u8]) -> Option<Outgoing> {
        let ends = &reply.ends;
        let mut head = Head::new(ends, reply.seq, reply.ack);
        if reply.flags.contains(Flags::SYN) {
            head.push_syn_options(reply.mss, reply.sack_permitted, reply.timestamps);
        }
        let len = head.finish(ends, (reply.flags, reply.window), None, 0, out)?;
        Some(Outgoing {
            src: ends.local,
            dst: ends.remote,
            ecn: 0,
            len,
            cause: None,
        })
    }

    fn sent(&mut self, outgoing: Outgoing) -> Outgoing {
        self.counters.sent = self.counters.sent.wrapping_add(1);
        if let Some(cause) = outgoing.cause {
            count(self.counters.retransmissions.get_mut(cause as usize));
        }
        outgoing
    }

    // ---- tables and clock ----

    /// Brings the millisecond clock up to `now`; it never goes back.
    ///
    /// By 32-bit division of what passed since the last call: a 64-bit one costs a
    /// Cortex-M0+ some 900 bytes and as many cycles.
    pub(super) fn set_now(&mut self, now: Instant) {
        let mut passed_us = now.since(self.tick).as_micros();
        loop {
            let ms = passed_us.min(CLOCK_STEP_US) as u32 / 1000;
            let step = Duration::from_micros(u64::from(ms) * 1000);
            self.tick += step;
            self.now_ms = self.now_ms.wrapping_add(ms);
            if passed_us < CLOCK_STEP_US {
                return;
            }
            passed_us -= step.as_micros();
        }
    }

    fn on_deadline(&mut self) {
        let now_ms = self.now_ms;
        for index in 0..self.memory.connections.len() {
            if let Some(connection) = self.at_mut(index)
                && connection.wait_ms(now_ms) == Some(0)
            {
                connection.on_deadline(now_ms);
                self.sweep(index);
            }
        }
        for entry in self
            .memory
            .half_open
            .iter_mut()
            .filter(|entry| !entry.is_free())
        {
            let listener = self.memory.listeners.get(usize::from(entry.listener()));
            if let Some(config) = listener.and_then(|listener| listener.config) {
                entry.on_deadline(config, now_ms);
            }
        }
    }

    /// Frees the slot of an orphan that is over.
    fn sweep(&mut self, index: usize) {
        if let Some(slot) = self.memory.connections.get_mut(index)
            && slot
                .0
                .as_ref()
                .is_some_and(|c| c.is_orphan() && c.is_over())
        {
            slot.0 = None;
        }
    }

    fn place(&mut self, connection: Connection<'m>) -> Result<Handle, Rejected<'m>> {
        let most = self.memory.connections.len().min(usize::from(u8::MAX));
        let slots = self.memory.connections.get_mut(..most).unwrap_or_default();
        let free = slots.iter().position(|slot| slot.0.is_none()).or_else(|| {
            // TIME-WAIT without an owner gives way rather than refuse work.
            slots
                .iter()
                .position(|slot| slot.0.as_ref().is_some_and(Connection::is_orphan))
        });
        let Some((index, slot)) = free.and_then(|index| Some((index, slots.get_mut(index)?)))
        else {
            return Err(Rejected {
                error: OpenError::NoSlot,
                buffers: connection.into_buffers(),
            });
        };
        self.next_generation = self.next_generation.wrapping_add(1);
        *slot = Slot(Some(connection), self.next_generation);
        Ok(Handle {
            index: index as u8,
            generation: self.next_generation,
        })
    }

    fn find(&self, ends: &Endpoints) -> Option<usize> {
        self.memory.connections.iter().position(|slot| {
            slot.0
                .as_ref()
                .is_some_and(|c| c.state != State::Closed && c.is_between(ends))
        })
    }

    fn at(&self, index: usize) -> Option<&Connection<'m>> {
        self.memory.connections.get(index)?.0.as_ref()
    }

    fn at_mut(&mut self, index: usize) -> Option<&mut Connection<'m>> {
        self.memory.connections.get_mut(index)?.0.as_mut()
    }

    fn connection_mut(&mut self, handle: Handle) -> Option<&mut Connection<'m>> {
        let slot = self.memory.connections.get_mut(usize::from(handle.index))?;
        let current = slot.1 == handle.generation;
        slot.0
            .as_mut()
            .filter(|connection| current && !connection.is_orphan())
    }

    /// The listener for a destination: one bound to the address goes before one for all.
    fn listener_of(&self, ends: &Endpoints) -> Option<(u8, &'m Config)> {
        let local = self.locals.find(ends.local);
        let mut found = None;
        for (index, listener) in self.memory.listeners.iter().enumerate() {
            if let Some(config) = listener.config
                && listener.port == ends.local_port
            {
                if Some(listener.local) == local {
                    return Some((index as u8, config));
                }
                if listener.local == LOCAL_ANY {
                    found = Some((index as u8, config));
                }
            }
        }
        found
    }

    fn half_open_of(&self, ends: &Endpoints, listener: u8) -> Option<usize> {
        let local = self.locals.find(ends.local)?;
        self.memory.half_open.iter().position(|entry| {
            !entry.is_free()
                && entry.remote_port == ends.remote_port
                && entry.listener() == listener
                && entry.local() == local
                && entry.remote == ends.remote
        })
    }

    fn first_ready(&self, listener: u8) -> Option<usize> {
        let mut first: Option<(usize, u32)> = None;
        for (index, entry) in self.memory.half_open.iter().enumerate() {
            if entry.stage() == Stage::Ready && entry.listener() == listener {
                let left = entry.deadline_ms.wrapping_sub(self.now_ms);
                if first.is_none_or(|(_, least)| left < least) {
                    first = Some((index, left));
                }
            }
        }
        first.map(|(index, _)| index)
    }

    /// One bit per local address that a listener or a half-open entry refers to.
    fn locals_in_use(&self) -> u32 {
        let listeners = self.memory.listeners.iter();
        let bound = listeners.filter(|l| l.config.is_some() && l.local != LOCAL_ANY);
        let entries = self
            .memory
            .half_open
            .iter()
            .filter(|entry| !entry.is_free());
        bound
            .map(|l| l.local)
            .chain(entries.map(HalfOpen::local))
            .fold(0, |bits, i| bits | 1 << i)
    }

    /// ISS and timestamp offset between two ends (RFC 6528 §3, RFC 7323 §5.4): a keyed hash,
    /// and for the ISS a clock of 4 µs ticks on top.
    fn initial_numbers(&self, ends: &Endpoints, now: Instant) -> (SeqNum, u32) {
        let hash = self.hash_ends(ends, 0);
        let clock = (now.as_micros() >> 2) as u32;
        (
            SeqNum::new((hash as u32).wrapping_add(clock)),
            (hash >> 32) as u32,
        )
    }

    /// The keyed hash of two ends and a `salt`.
    fn hash_ends(&self, ends: &Endpoints, salt: u64) -> u64 {
        let ports = u64::from(ends.local_port) << 16 | u64::from(ends.remote_port);
        let (local, remote) = (ends.local.octets(), ends.remote.octets());
        self.hash.hash(&[
            local.as_chunks().0,
            remote.as_chunks().0,
            &[ports.to_le_bytes(), salt.to_le_bytes()],
        ])
    }

    /// An unused local port towards `remote` (RFC 6056 §3.3.3: hash of the peer plus a
    /// counter, so that neither the next port nor its predecessors tell about other peers).
    fn ephemeral_port(
        &mut self,
        local: Ipv6Addr,
        remote: (Ipv6Addr, u16),
    ) -> Result<u16, OpenError> {
        let mut ends = Endpoints {
            local,
            remote: remote.0,
            local_port: 0,
            remote_port: remote.1,
        };
        let offset = self.hash_ends(&ends, 0) as u16;
        // No more ports can be taken than there are connections and listeners.
        let tries = self.memory.connections.len() + self.memory.listeners.len() + 1;
        for _ in 0..tries {
            let number = offset.wrapping_add(self.next_port);
            self.next_port = self.next_port.wrapping_add(1);
            ends.local_port = EPHEMERAL_FIRST | number & !EPHEMERAL_FIRST;
            let listened = self
                .memory
                .listeners
                .iter()
                .any(|l| l.config.is_some() && l.port == ends.local_port);
            if !listened && self.find(&ends).is_none() {
                return Ok(ends.local_port);
            }
        }
        Err(OpenError::NoPort)
    }
}

/// The longest step of the millisecond clock: 71 minutes, in microseconds of 32 bits.
const CLOCK_STEP_US: u64 = 4_294_967_000;
/// ECN field values (RFC 3168 §5).
const ECN_CE: u8 = 3;
const ECN_ECT0: u8 = 2;
/// The dynamic ports 49152 to 65535: the first one, and the bits they share.
const EPHEMERAL_FIRST: u16 = 0xc000;

// What a mote pays (32-bit): a connection with both ends and all of recovery, without
// buffers; a passive socket; a half-open connection.
#[cfg(target_pointer_width = "32")]
const _: () = {
    assert!(size_of::<Connection<'_>>() <= 300);
    assert!(size_of::<Listener<'_>>() <= 12);
    assert!(size_of::<HalfOpen>() <= 40);
};
