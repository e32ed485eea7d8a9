//! What [`Tcp`](super::Tcp) is given and gives: buffers, ends, handles, errors, outgoing
//! segments, counters.

use core::net::Ipv6Addr;

use super::reassembly::RecvBuffer;
use super::send_buffer::SendBuffer;
use super::{RetransmissionCause, SegmentDrop};
use crate::offer::Offer;
use crate::remote::Remote;

/// The two ends of a connection, seen from here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Endpoints {
    /// Our address.
    pub local: Ipv6Addr,
    /// The peer's address.
    pub remote: Ipv6Addr,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// Of link-local addresses, which may be another node's on another link: a number of that
    /// link. 0: of others. TCP only compares it.
    pub zone: u8,
}

/// Whether a packet can leave now, on its way between two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// It can.
    Open,
    /// Later, or over another link.
    Shut,
    /// No route leads there.
    Missing,
}

impl Endpoints {
    /// Of no connection.
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

    /// The other end.
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
/// `connect` and `accept` empty it: whatever an earlier connection left there, read or not,
/// sent or not, in order or not, reaches neither the next peer nor the next application.
#[derive(Debug)]
pub struct Buffers<'m> {
    /// Bytes to send.
    pub send: SendBuffer<'m>,
    /// Bytes received.
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
    /// No progress within [`Config::user_timeout_ms`](super::Config::user_timeout_ms).
    UserTimeout,
    /// The network says that the peer cannot be reached.
    Unreachable,
    /// [`Tcp::abort`](super::Tcp::abort), or data arrived after `close`.
    Aborted,
}

impl Error {
    /// The reason in words.
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
/// Stale ones are recognised: a handle is not given out again before 2^32 others were.
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
    /// At a connection: one of these at least.
    Connection(Handle, Edges),
    /// A connection waits for [`Tcp::accept`](super::Tcp::accept). Each one that comes to wait is
    /// reported, several at once by one report: after it, accept as long as
    /// [`Tcp::can_accept`](super::Tcp::can_accept) says so.
    Listener(ListenerHandle),
}

/// What became possible at a connection: a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Edges(pub(super) u8);

impl Edges {
    pub(super) const READABLE: Self = Self(1);
    pub(super) const WRITABLE: Self = Self(1 << 1);
    pub(super) const ALL_ACKNOWLEDGED: Self = Self(1 << 2);
    pub(super) const OVER: Self = Self(1 << 3);
    pub(super) const ALL: Self = Self(0b1111);
    /// What a new connection awaits: all but the acknowledgment of data that it has not got.
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
    /// The listener is none (any more).
    NoListener,
    /// The address or port cannot be an end of a connection.
    Address,
    /// Every ephemeral port to this peer is in use.
    NoPort,
    /// There is a connection between these ends already.
    InUse,
}

impl OpenError {
    /// The reason in words.
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
    /// The reason.
    pub error: OpenError,
    /// What was lent.
    pub buffers: Buffers<'m>,
}

impl Rejected<'_> {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        self.error.reason()
    }
}

speaks!(Rejected<'_>; error);

/// Why `listen` failed.
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
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoPlace => "every place for a listener is taken",
            Self::InUse => "somebody listens there already",
            Self::Address => "address or port cannot be listened on",
        }
    }
}

speaks!(ListenError);

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

impl SendError {
    /// The reason in words.
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

impl RecvError {
    /// The reason in words.
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

impl IcmpError {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::PacketTooBig(_) => "packet too big for the path",
            Self::Hard => "the destination refuses",
            Self::Soft => "the destination cannot be reached for now",
        }
    }
}

speaks!(IcmpError);

/// A segment that came in, for [`Tcp::on_segment`](super::Tcp::on_segment).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncomingSegment<'a> {
    /// The peer's address.
    pub src: Ipv6Addr,
    /// Our address.
    pub dst: Ipv6Addr,
    /// As [`Endpoints::zone`].
    pub zone: u8,
    /// The traffic class of its packet: the low two bits, which are ECN's, count.
    pub ecn: u8,
    /// What the path back to the peer offers. It counts in a segment with SYN, where both ends
    /// agree; of any other the caller need not find it out: [`Offer::UNBOUNDED`].
    pub offer: Offer,
    /// Header and payload.
    pub bytes: &'a [u8],
}

/// A segment that [`Tcp::poll_segment`](super::Tcp::poll_segment) wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingSegment {
    /// Our address.
    pub src: Ipv6Addr,
    /// The peer's address.
    pub dst: Ipv6Addr,
    /// As [`Endpoints::zone`].
    pub zone: u8,
    /// The ECN field of the traffic class: 0, or 2 for ECT(0).
    pub ecn: u8,
    /// Its DSCP, six bits.
    pub dscp: u8,
    /// Bytes written: header and payload.
    pub len: usize,
    /// Why this is sent again, if it is.
    pub cause: Option<RetransmissionCause>,
}

/// What happened since the start; counters of 16 bits stop at their greatest value, those of
/// 32 wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpCounters {
    /// Segments received, wrong ones included.
    pub received: u32,
    /// Segments sent.
    pub sent: u32,
    /// Segments sent again, by [`RetransmissionCause`].
    pub retransmissions: [u16; RetransmissionCause::COUNT],
    /// Segments dropped, by [`SegmentDrop`].
    pub drops: [u16; SegmentDrop::COUNT],
    /// SYN cookies sent because the half-open table was full.
    pub syn_cookies: u16,
    /// Replies (resets, SYN cookies) that found the one place for them taken.
    pub replies_lost: u16,
}

impl TcpCounters {
    pub(super) const NEW: Self = Self {
        received: 0,
        sent: 0,
        retransmissions: [0; RetransmissionCause::COUNT],
        drops: [0; SegmentDrop::COUNT],
        syn_cookies: 0,
        replies_lost: 0,
    };

    /// Segments dropped for `reason`.
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
