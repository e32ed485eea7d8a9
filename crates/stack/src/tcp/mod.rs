//! TCP: the engine and its sockets.
//!
//! Purpose: RFC 9293 in full for what it claims, for paths of 1 to 8 segments over lossy
//! radio hops, in a few hundred bytes per connection.
//!
//! Place: `node` hands in verified IPv6 payloads ([`Tcp::on_segment`]) and pulls segments out when
//! there is room for one ([`Tcp::poll_segment`]); the application calls the rest. All memory is the
//! caller's; nothing blocks, nothing calls back: after an event or a call, poll segments until
//! there is none, then sleep until [`Tcp::next_deadline`]. An application of many tasks calls
//! [`Tcp::poll_changed`] in between, to learn which tasks to wake.
//!
//! ```
//! use motet::random::Rng;
//! use motet::tcp::{Buffers, Config, HalfOpen, Listener, Memory, RecvError, Slot, Tcp};
//! use motet::time::Instant;
//!
//! static SETTINGS: Config = Config { nagle: false, ..Config::DEFAULT };
//!
//! let mut connections = [Slot::EMPTY];
//! let mut listeners = [Listener::EMPTY];
//! let mut half_open = [HalfOpen::EMPTY; 2];
//! let mut rng = Rng::from_seed([1, 2]); // from the device's TRNG
//! let memory = Memory {
//!     connections: &mut connections,
//!     listeners: &mut listeners,
//!     half_open: &mut half_open,
//! };
//! let mut tcp = Tcp::new(memory, &mut rng);
//!
//! let listener = tcp.listen(None, 7, &SETTINGS).unwrap();
//! let (mut send, mut recv) = ([0; 2048], [0; 2304]);
//! let now = Instant::ORIGIN; // of the driver's clock
//! // Lent in advance: the next peer that connects gets these buffers.
//! let buffers = Buffers::new(&mut send, &mut recv);
//! let handle = tcp.accept(listener, buffers, now).unwrap();
//! // ... segments come and go; then, in the main loop, an echo:
//! let mut bytes = [0; 64];
//! match tcp.recv(handle, &mut bytes) {
//!     Ok(count) => { let _taken = tcp.send(handle, &bytes[..count], now); }
//!     Err(RecvError::Empty) => {} // nothing yet
//!     Err(RecvError::Finished) => tcp.shutdown(handle, now), // the peer is done: so are we
//!     Err(_failed) => { let _buffers = tcp.remove(handle); }
//! }
//! ```
//!
//! Deliberately left out: urgent data (delivered in line), window scaling and Fast Open
//! (ignored when offered), security options, and TCP ACK rate requests, whose
//! codepoint the IETF has not settled.
//!
//! Know your peer: Linux delays ACKs by 40 ms once it leaves quick-ACK mode, so if a segment takes
//! longer than that on the air, Linux acknowledges each segment, whatever `ack_every` is at this
//! end; it ignores an MSS below 88 (48 of data), and resets the MSS of a SYN without the option to
//! 536 (IPv4) or 1220 (IPv6).
//!
//! Sources: RFC 9293, 4015, 5681, 5961, 6069, 6191, 6298, 6528, 6582, 6675, 7323, 2018, 2883, 3042,
//! 3168, 3522, 3708, 8985, 9438, 9937.

mod ack;
mod arrival;
mod bytes;
mod clock;
mod commands;
mod config;
mod connection;
mod departure;
#[cfg(feature = "sleepy")]
mod expect;
mod facts;
mod input;
#[cfg(feature = "linux-acks")]
mod linux_acks;
mod listener;
mod loss;
mod output;
mod path;
#[cfg(feature = "tcple")]
mod prefetch;
#[cfg(feature = "tcple")]
mod prefetched;
mod readiness;
mod reassembly;
mod reply;
mod retransmit;
mod rtt;
mod segment;
mod send_buffer;
mod seq;
#[cfg(feature = "slices")]
mod slices;
#[cfg(not(feature = "slices"))]
#[path = "slices_absent.rs"]
mod slices;
mod sockets;
mod state;
mod storage;
mod telemetry;
mod timers;
mod types;

#[cfg(test)]
mod tests;

pub use crate::offer::Offer;
pub use config::Config;
#[cfg(feature = "sleepy")]
pub use config::Economy;
pub use connection::Connection;
pub use listener::{Agreed, HalfOpen, Listener};
pub use loss::CongestionAlgorithm;
#[cfg(feature = "tcple")]
pub(crate) use prefetch::Prefetch;
pub use reassembly::{RecvBuffer, recv_memory_len};
pub(crate) use segment::PlannedHeader;
pub use send_buffer::SendBuffer;
pub use seq::SeqNum;
#[cfg(feature = "slices")]
pub use slices::Piece;
pub use slices::SliceQueue;
pub use sockets::{Memory, Slot, Tcp};
pub use state::State;
pub use storage::Storage;
pub use telemetry::{Telemetry, UnderWay};
pub(crate) use types::Reachability;
pub use types::{
    Buffers, Changed, Edges, Endpoints, Error, Handle, IcmpError, IncomingSegment, ListenError,
    ListenerHandle, OpenError, OutgoingSegment, RecvError, Rejected, SendError, TcpCounters,
};

/// Why a segment, or the rest of one, was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum SegmentDrop {
    /// The TCP checksum is wrong (RFC 9293 §3.1).
    Checksum,
    /// Header or options are malformed.
    Malformed,
    /// Source or destination cannot be an end of a connection.
    Address,
    /// No connection and no listener: answered with a reset.
    NoConnection,
    /// The half-open table is full of connections that wait for the application, or what is
    /// left of it belongs to other listeners.
    HalfOpenFull,
    /// A SYN while no connection could be accepted: the peer tries again.
    NoSlot,
    /// Data for a connection that the application has not accepted yet.
    NotAccepted,
    /// Entirely outside the receive window.
    OutsideWindow,
    /// PAWS: a timestamp from the past.
    OldTimestamp,
    /// Timestamps were agreed upon, and this has none.
    NoTimestamp,
    /// A reset that does not hit the next expected octet exactly.
    InexactReset,
    /// A valid reset, which ended the connection.
    ConnectionReset,
    /// A SYN on a known connection.
    SynInWindow,
    /// No ACK where there must be one.
    NoAck,
    /// No SYN where there must be one.
    NoSyn,
    /// An ACK of something else during the handshake: answered with a reset.
    UnacceptableAck,
    /// An ACK of data never sent.
    AckOfUnsent,
    /// An ACK older than the window.
    AckTooOld,
    /// Data arrived after the application closed: answered with a reset.
    DataAfterClose,
}

impl SegmentDrop {
    /// How many reasons there are.
    pub const COUNT: usize = Self::DataAfterClose as usize + 1;

    /// The reason in words, for counters and captures.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Checksum => "TCP checksum wrong",
            Self::Malformed => "TCP header malformed",
            Self::Address => "address or port not allowed in TCP",
            Self::NoConnection => "no such connection",
            Self::HalfOpenFull => "half-open table full",
            Self::NoSlot => "no room for another connection",
            Self::NotAccepted => "connection not accepted yet",
            Self::OutsideWindow => "outside the receive window",
            Self::OldTimestamp => "timestamp from the past (PAWS)",
            Self::NoTimestamp => "timestamp missing",
            Self::InexactReset => "reset not at the expected octet",
            Self::ConnectionReset => "connection reset",
            Self::SynInWindow => "SYN on a known connection",
            Self::NoAck => "no ACK",
            Self::NoSyn => "no SYN",
            Self::UnacceptableAck => "ACK of something else in the handshake",
            Self::AckOfUnsent => "ACK of data never sent",
            Self::AckTooOld => "ACK older than the window",
            Self::DataAfterClose => "data after close",
        }
    }
}

speaks!(SegmentDrop);

/// Why a segment was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum RetransmissionCause {
    /// The retransmission timeout, RTO (RFC 6298 §5).
    Timeout,
    /// Three duplicate ACKs (RFC 5681).
    DuplicateAcks,
    /// A partial acknowledgment in recovery (RFC 6582).
    PartialAck,
    /// Enough bytes above were SACKed (RFC 6675 §4).
    Sack,
    /// RACK: a segment sent later was delivered (RFC 8985 §6.2).
    Rack,
    /// A tail loss probe (RFC 8985 §7).
    TailLossProbe,
    /// A zero-window probe (RFC 9293 §3.8.6.1).
    WindowProbe,
    /// A SYN or SYN-ACK again.
    Handshake,
    /// The packet was too big for the path (RFC 8201).
    PacketTooBig,
}

impl RetransmissionCause {
    /// How many causes there are.
    pub const COUNT: usize = Self::PacketTooBig as usize + 1;

    /// Every cause, in the order of its counter.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Timeout,
        Self::DuplicateAcks,
        Self::PartialAck,
        Self::Sack,
        Self::Rack,
        Self::TailLossProbe,
        Self::WindowProbe,
        Self::Handshake,
        Self::PacketTooBig,
    ];

    /// The cause in words, for traces and summaries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::DuplicateAcks => "duplicate ACKs",
            Self::PartialAck => "partial ACK",
            Self::Sack => "SACK",
            Self::Rack => "RACK",
            Self::TailLossProbe => "tail loss probe",
            Self::WindowProbe => "window probe",
            Self::Handshake => "handshake",
            Self::PacketTooBig => "packet too big",
        }
    }
}

// What a mote pays (32-bit): a connection with both ends and all of recovery, without
// buffers; a passive socket; a half-open connection.
#[cfg(target_pointer_width = "32")]
const _: () = {
    // A simulated host with Linux's timers is no mote.
    assert!(size_of::<Connection<'_>>() <= 300 || cfg!(feature = "linux-acks"));
    assert!(size_of::<Listener<'_>>() <= 28);
    assert!(size_of::<HalfOpen>() <= 60);
};
