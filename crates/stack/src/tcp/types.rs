//! The types of [`Tcp`](super::Tcp)'s arguments and results: buffers, ends, handles, errors,
//! outgoing segments, counters.

use core::net::Ipv6Addr;

use super::reassembly::RecvBuffer;
use super::send_buffer::SendBuffer;
use super::{RetransmissionCause, SegmentDrop};
use crate::offer::Offer;
use crate::remote::Remote;

/// The two ends of a connection, seen from here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Endpoints {
    /// IPv6 address of this node's end.
    pub local: Ipv6Addr,
    /// IPv6 address of the peer's end.
    pub remote: Ipv6Addr,
    /// TCP port of this node's end.
    pub local_port: u16,
    /// TCP port of the peer's end.
    pub remote_port: u16,
    /// Zone of link-local addresses: a number of the link, from 1 on (RFC 4007 §6). 0: addresses
    /// of a wider scope. TCP only compares it.
    pub zone: u8,
}

/// Whether a packet can leave now, on its way between two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reachability {
    /// A packet can leave now.
    Open,
    /// A packet can leave later, or over another link.
    Shut,
    /// The link takes no packet, and nobody knows when it will.
    #[cfg(any(feature = "cable", feature = "ble"))]
    Full,
    /// No route leads to the peer.
    Missing,
}

impl Endpoints {
    /// A placeholder where there is no connection.
    pub(super) const NONE: Self = Self {
        local: Ipv6Addr::UNSPECIFIED,
        remote: Ipv6Addr::UNSPECIFIED,
        local_port: 0,
        remote_port: 0,
        zone: 0,
    };

    pub(super) const fn between(local: (Ipv6Addr, u16), remote: Remote) -> Self {
        Self {
            local: local.0,
            remote: remote.addr,
            local_port: local.1,
            remote_port: remote.port,
            zone: remote.zone,
        }
    }

    /// The peer's address, port and zone.
    pub const fn remote(&self) -> Remote {
        Remote {
            addr: self.remote,
            port: self.remote_port,
            zone: self.zone,
        }
    }

    /// Whether a connection can be between these ends.
    pub(super) fn are_possible(&self) -> bool {
        is_unicast(&self.local)
            && is_unicast(&self.remote)
            && self.local_port != 0
            && self.remote_port != 0
    }
}

// Out of line: a Cortex-M0+ puts an address together byte by byte to look at it.
#[inline(never)]
pub(super) fn is_unicast(addr: &Ipv6Addr) -> bool {
    !addr.is_multicast() && *addr != Ipv6Addr::UNSPECIFIED
}

/// The memory a connection works in, lent until [`Tcp::remove`](super::Tcp::remove).
///
/// `connect` and `accept` empty it: bytes of an earlier connection never reach the next peer or the
/// next application.
#[derive(Debug)]
pub struct Buffers<'m> {
    /// Bytes to send, or sent and not acknowledged.
    pub send: SendBuffer<'m>,
    /// Bytes received that the application has not read.
    pub recv: RecvBuffer<'m>,
}

impl<'m> Buffers<'m> {
    /// A plain ring of `send.len()` bytes, and a receive window of eight ninths of
    /// `recv.len()` (see [`recv_memory_len`](super::recv_memory_len)).
    pub fn new(send: &'m mut [u8], recv: &'m mut [u8]) -> Self {
        Self {
            send: SendBuffer::ring(send),
            recv: RecvBuffer::new(recv),
        }
    }

    /// Drops what an earlier connection left.
    pub(super) fn clear(&mut self) {
        self.send.clear();
        self.recv.clear();
    }
}

/// Why a connection ended other than by both sides closing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The peer answered our SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// Too many retransmissions or probes without an answer; or, once closed, no progress within
    /// [`Config::close_timeout_ms`](super::Config::close_timeout_ms).
    TimedOut,
    /// Too many keepalive probes without an answer.
    KeepaliveTimedOut,
    /// Sent data made no progress within
    /// [`Config::user_timeout_ms`](super::Config::user_timeout_ms).
    UserTimeout,
    /// ICMPv6 errors, or missing routes, show that the peer cannot be reached.
    Unreachable,
    /// [`Tcp::abort`](super::Tcp::abort), or data arrived after `close`.
    Aborted,
}

impl Error {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by the peer",
            Self::TimedOut => "the peer does not answer",
            Self::KeepaliveTimedOut => "keepalive probes found no answer",
            Self::UserTimeout => "no progress within the user timeout",
            Self::Unreachable => "the peer cannot be reached",
            Self::Aborted => "connection aborted",
        }
    }
}

speaks!(Error);

/// A connection, from `connect` or `accept` until `remove`.
///
/// Stale handles are recognised: a handle is not given out again before 2^32 other handles were.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle {
    pub(super) index: u8,
    pub(super) generation: u32,
}

impl Handle {
    /// The index of its slot, below the length of [`Memory::connections`](super::Memory): no two
    /// connections have the same one at a time, so that an array may hold what belongs to each.
    pub const fn slot(self) -> usize {
        self.index as usize
    }
}

/// A listener, from `listen` until `unlisten`; stale ones are recognised as [`Handle`]s are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ListenerHandle {
    pub(super) index: u8,
    pub(super) generation: u32,
}

impl ListenerHandle {
    /// The index of its place, below the length of [`Memory::listeners`](super::Memory).
    pub const fn slot(self) -> usize {
        self.index as usize
    }
}

/// Something that became possible, from [`Tcp::poll_changed`](super::Tcp::poll_changed).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Changed {
    /// One of these edges at least, at a connection.
    Connection(Handle, Edges),
    /// A connection waits for [`Tcp::accept`](super::Tcp::accept). One report may stand for several
    /// waiting connections: after it, accept as long as [`Tcp::can_accept`](super::Tcp::can_accept)
    /// is true.
    Listener(ListenerHandle),
}

/// The calls that became possible at a connection: a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edges(pub(super) u8);

impl Edges {
    pub(super) const READABLE: Self = Self(1);
    pub(super) const WRITABLE: Self = Self(1 << 1);
    pub(super) const ALL_ACKNOWLEDGED: Self = Self(1 << 2);
    pub(super) const OVER: Self = Self(1 << 3);
    pub(super) const ALL: Self = Self(0b1111);
    /// The edges that a new connection awaits: all but the acknowledgment of data that it has not
    /// got.
    pub(super) const AT_FIRST: Self = Self(Self::READABLE.0 | Self::WRITABLE.0 | Self::OVER.0);

    /// [`Tcp::recv`](super::Tcp::recv) has an answer: bytes, or that there will be none (the peer
    /// has sent everything, or the connection failed).
    pub const fn is_readable(self) -> bool {
        self.has(Self::READABLE)
    }

    /// [`Tcp::send`](super::Tcp::send) takes something again after the buffer was full, or says
    /// why it never will. Before the handshake is done this is not reported, then once at any
    /// rate. A [`SliceQueue`](super::SliceQueue) counts as full as long as it lacks a place for a
    /// slice or room for copies; a slice that would bring it above 65,535 bytes waits for
    /// [`Self::is_all_acknowledged`].
    pub const fn is_writable(self) -> bool {
        self.has(Self::WRITABLE)
    }

    /// A flush is done: the peer's TCP has all data handed over, or the connection is over and
    /// [`Connection::error`](super::Connection::error) says why.
    pub const fn is_all_acknowledged(self) -> bool {
        self.has(Self::ALL_ACKNOWLEDGED)
    }

    /// [`Tcp::remove`](super::Tcp::remove) gives the buffers back: both ends have closed the
    /// connection, or it failed ([`Connection::error`](super::Connection::error)).
    pub const fn is_over(self) -> bool {
        self.has(Self::OVER)
    }

    const fn has(self, edge: Self) -> bool {
        self.0 & edge.0 != 0
    }

    pub(super) fn put(&mut self, edge: Self, holds: bool) {
        if holds {
            self.0 |= edge.0;
        }
    }
}

/// Why `connect` or `accept` did not give a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// Every slot is taken: `remove` a closed connection, or lend more slots.
    NoSlot,
    /// The handle is stale, or of no listener.
    NoListener,
    /// The address or port cannot be an end of a connection.
    Address,
    /// Every ephemeral port to this peer is in use.
    NoPort,
    /// A connection between these ends exists already.
    InUse,
}

impl OpenError {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoSlot => "every slot for a connection is taken",
            Self::NoListener => "no such listener",
            Self::Address => "address or port cannot be an end of a connection",
            Self::NoPort => "every ephemeral port to this peer is in use",
            Self::InUse => "there is a connection between these ends already",
        }
    }
}

speaks!(OpenError);

/// `connect` or `accept` failed; the buffers come back.
#[derive(Debug)]
pub struct Rejected<'m> {
    /// Why no connection was opened.
    pub error: OpenError,
    /// The buffers that the call was given.
    pub buffers: Buffers<'m>,
}

impl Rejected<'_> {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        self.error.reason()
    }
}

speaks!(Rejected<'_>; error);

/// Why `listen` did not give a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenError {
    /// Every place for a listener is taken.
    NoPlace,
    /// Another listener has this port already.
    InUse,
    /// Port 0, or no address of a node.
    Address,
}

impl ListenError {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoPlace => "every place for a listener is taken",
            Self::InUse => "somebody listens there already",
            Self::Address => "address or port cannot be listened on",
        }
    }
}

speaks!(ListenError);

/// Why `send` took no bytes from the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The send buffer is full: there is room once the peer acknowledges.
    BufferFull,
    /// `shutdown` or `close` was called.
    Closing,
    /// The connection ended by an error.
    Failed(Error),
    /// The handle is stale: its connection was removed.
    NoConnection,
}

impl SendError {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::BufferFull => "the send buffer is full",
            Self::Closing => "the connection was closed for sending",
            Self::Failed(_) => "the connection has ended",
            Self::NoConnection => "no such connection",
        }
    }
}

speaks!(SendError, Self::Failed(error) => error);

/// Why `recv` gave the application no bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecvError {
    /// No unread bytes are there (yet).
    Empty,
    /// The peer has sent everything, and all of it was read.
    Finished,
    /// The connection ended by an error.
    Failed(Error),
    /// The handle is stale: its connection was removed.
    NoConnection,
}

impl RecvError {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Empty => "nothing has arrived yet",
            Self::Finished => "the peer has sent everything",
            Self::Failed(_) => "the connection has ended",
            Self::NoConnection => "no such connection",
        }
    }
}

speaks!(RecvError, Self::Failed(error) => error);

/// An ICMPv6 error about a packet of ours, by its effect on TCP (RFC 1122 §4.2.3.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// Packet too big: the next link's MTU, bytes.
    PacketTooBig(u32),
    /// The peer has no such port, or policy forbids: hard while connecting.
    Hard,
    /// A router found no route or no neighbour: as [`Self::Soft`], and a timeout of the segment
    /// tells nothing of congestion, so that its doubling of the RTO is taken back (RFC 6069). SYNs
    /// are left out.
    Disrupted,
    /// Hop limit exceeded, a bad field: may pass.
    Soft,
}

impl IcmpError {
    /// The reason as an English phrase, for logs and error messages.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::PacketTooBig(_) => "packet too big for the path",
            Self::Hard => "the destination refuses",
            Self::Disrupted => "the way to the destination is interrupted for now",
            Self::Soft => "the destination cannot be reached for now",
        }
    }
}

speaks!(IcmpError);

/// A segment that came in, for [`Tcp::on_segment`](super::Tcp::on_segment).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncomingSegment<'a> {
    /// IPv6 source address: the peer's.
    pub src: Ipv6Addr,
    /// IPv6 destination address: this node's.
    pub dst: Ipv6Addr,
    /// Zone of a link-local address, as in [`Endpoints::zone`].
    pub zone: u8,
    /// The packet's traffic class, of which only the ECN field counts, the low two bits.
    pub ecn: u8,
    /// The offer of the path back to the peer. It counts only in a segment with SYN; for other
    /// segments the caller may give [`Offer::UNBOUNDED`].
    pub offer: Offer,
    /// TCP header and payload of the segment.
    pub bytes: &'a [u8],
}

/// A segment that [`Tcp::poll_segment`](super::Tcp::poll_segment) wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingSegment {
    /// IPv6 source address: this node's.
    pub src: Ipv6Addr,
    /// IPv6 destination address: the peer's.
    pub dst: Ipv6Addr,
    /// Zone of a link-local address, as in [`Endpoints::zone`].
    pub zone: u8,
    /// The ECN field of the traffic class: 0, or 2 for ECT(0).
    pub ecn: u8,
    /// Differentiated services codepoint (RFC 2474), six bits.
    pub dscp: u8,
    /// Bytes written: header and payload.
    pub len: usize,
    /// Why the segment is sent again, if it is a retransmission.
    pub cause: Option<RetransmissionCause>,
}

/// Counts since the start. Counters of 16 bits saturate, counters of 32 bits wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpCounters {
    /// Segments received, wrong ones included.
    pub received: u32,
    /// Of these, the segments that header prediction took: the next data or the next
    /// acknowledgment of a transfer one way, and nothing else. Counted where a connection has
    /// [`Config::header_prediction`](super::Config::header_prediction).
    pub predicted: u32,
    /// Segments sent, first transmissions and retransmissions.
    pub sent: u32,
    /// Segments sent again, by [`RetransmissionCause`].
    pub retransmissions: [u16; RetransmissionCause::COUNT],
    /// Segments received and dropped, counted by [`SegmentDrop`].
    pub drops: [u16; SegmentDrop::COUNT],
    /// SYN cookies sent because the half-open table was full.
    pub syn_cookies: u16,
    /// Replies (resets, SYN cookies) that found the one place for them taken.
    pub replies_lost: u16,
}

impl TcpCounters {
    pub(super) const NEW: Self = Self {
        received: 0,
        predicted: 0,
        sent: 0,
        retransmissions: [0; RetransmissionCause::COUNT],
        drops: [0; SegmentDrop::COUNT],
        syn_cookies: 0,
        replies_lost: 0,
    };

    /// How many segments were dropped for `reason`.
    pub fn dropped(&self, reason: SegmentDrop) -> u16 {
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

pub(super) fn count(counter: Option<&mut u16>) {
    if let Some(counter) = counter {
        *counter = counter.saturating_add(1);
    }
}
