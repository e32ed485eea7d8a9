//! One end of one connection, whatever TCP is behind it: IPv6 packets in and out, bytes in and
//! out, time as an argument.

use std::fmt;
use std::net::Ipv6Addr;

use motet::time::Instant;
use motet_lab::Arena;

use crate::stacks;

/// A TCP with one connection.
pub trait Endpoint {
    /// Takes a packet from the network.
    fn on_packet(&mut self, packet: &[u8], now: Instant);
    /// The next packet to the network. Called when there is room for one.
    fn poll_packet(&mut self, now: Instant) -> Option<&[u8]>;
    /// When [`Self::poll_packet`] must be called at the latest.
    fn next_deadline(&mut self, now: Instant) -> Option<Instant>;
    /// Takes what fits of `data`; gives how many bytes that is.
    fn send(&mut self, data: &[u8], now: Instant) -> usize;
    /// Gives received bytes; 0: none.
    fn recv(&mut self, out: &mut [u8], now: Instant) -> usize;
    /// Half-close.
    fn shutdown(&mut self, now: Instant);
    /// What the connection is like.
    fn status(&mut self) -> Status;
}

/// What a connection is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The application may hand over bytes.
    pub may_send: bool,
    /// The peer has sent all, and all of it was read.
    pub finished: bool,
    /// The connection is over.
    pub closed: bool,
}

/// The project whose TCP it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// This project's.
    Motet,
    /// `TCPlp`'s protocol core, as `OpenThread` ships it.
    Tcplp,
    /// smoltcp, with Reno.
    Smoltcp,
    /// lwIP, as ESP-IDF sets it.
    Lwip,
}

/// Where an end point sits, and how large it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seat {
    /// The end point's own address and port.
    pub local: (Ipv6Addr, u16),
    /// The other end's address and port.
    pub remote: (Ipv6Addr, u16),
    /// Whether this end opens the connection.
    pub opens: bool,
    /// Bytes of a full segment: [`MSS`], or of Motet and lwIP another number.
    pub mss: u16,
    /// What may be under way, in full segments: the send buffer's size.
    pub window_segments: usize,
    /// Whether every segment is acknowledged at once, where the stack has such a setting: Motet.
    pub acks_each: bool,
    /// Hop limit of the end point's packets.
    pub hop_limit: u8,
    /// Seed of the end point's random choices.
    pub seed: u64,
}

impl Seat {
    /// Bytes of the send buffer: the window. Counted by the MSS, which a segment without timestamps
    /// carries whole; with them it carries less, and no stack sends the rest of the buffer while
    /// something is on the way (Nagle).
    pub const fn send_len(&self) -> usize {
        self.window_segments * self.mss as usize
    }

    /// Bytes of the receive buffer: no sender's window fills it.
    pub const fn recv_len(&self) -> usize {
        self.send_len() + RECV_SLACK
    }
}

impl Stack {
    /// Every stack, Motet first.
    pub const ALL: [Self; 4] = [Self::Motet, Self::Tcplp, Self::Smoltcp, Self::Lwip];

    /// As tables and JSON call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Motet => "motet",
            Self::Tcplp => "tcplp",
            Self::Smoltcp => "smoltcp",
            Self::Lwip => "lwip",
        }
    }

    /// An end point with this stack; its memory comes from `arena`.
    pub fn sit<'m>(self, seat: &Seat, now: Instant, arena: &'m Arena) -> Box<dyn Endpoint + 'm> {
        match self {
            Self::Motet => Box::new(stacks::motet::MotetEnd::new(seat, now, arena)),
            Self::Tcplp => Box::new(stacks::tcplp::TcplpEnd::new(seat, now)),
            Self::Smoltcp => Box::new(stacks::smoltcp::SmoltcpEnd::new(seat, now)),
            Self::Lwip => Box::new(stacks::lwip::LwipEnd::new(seat, now)),
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The MSS of all: `TCPlp`'s core is compiled with it, for five frames.
pub const MSS: u16 = motet_tcplp::MSS;

/// Bytes that a receive buffer has beyond any sender's window. `TCPlp` miscounts when the last
/// gap of a full buffer closes, and acknowledges up to seven bytes that never came; so its buffer
/// is never full here, and for fairness no other stack's is.
const RECV_SLACK: usize = 8;

/// Longer than any packet here: a segment of 1,220 bytes and two headers.
pub const PACKET_LEN_MAX: usize = 1_320;
