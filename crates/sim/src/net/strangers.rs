//! Unknown hosts on the Internet, and the packets that they send into a mesh.
//!
//! Purpose: floods of datagrams, echo requests and SYNs from one address or from many, also from
//! forged addresses of the mesh. Place: the caller that runs a network calls
//! [`StrangerTraffic::send`] when it is due. Left out: attackers on the air ([`super::attack`]);
//! strangers that react to packets that they get.

use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::icmpv6::{self, Echo, Message};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::{tcp, udp};

use super::network::Network;

/// Hosts that nobody knows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Strangers {
    /// The packets that the strangers send.
    pub kind: StrangerPacket,
    /// Packets a second, of all of them.
    pub per_s: f64,
    /// The number of addresses that packets come from, in turn.
    pub sources: usize,
    /// The number of motes that packets go to, in turn, the last one first.
    pub destinations: usize,
    /// Whether the addresses are those of motes: a border router drops such packets from outside
    /// (BCP 38).
    pub is_inside: bool,
}

/// The packets of a stranger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StrangerPacket {
    /// UDP datagrams with this many bytes, to a port that nobody has.
    Datagrams(usize),
    /// Echo requests with this many bytes.
    Echoes(usize),
    /// SYNs to this port, where somebody listens, each from another port.
    Syns(u16),
}

impl Strangers {
    /// One host that sends to the last mote.
    pub const fn one(kind: StrangerPacket, per_s: f64) -> Self {
        Self {
            kind,
            per_s,
            sources: 1,
            destinations: 1,
            is_inside: false,
        }
    }
}

/// Strangers at work.
#[derive(Clone, Debug)]
pub struct StrangerTraffic {
    strangers: Strangers,
    next: Instant,
    every: Duration,
    sent: usize,
    forged: u64,
}

impl StrangerTraffic {
    /// Strangers that send from `now` on.
    pub fn new(strangers: Strangers, now: Instant) -> Self {
        Self {
            strangers,
            next: now,
            every: Duration::from_micros((1e6 / strangers.per_s.max(1e-3)) as u64),
            sent: 0,
            forged: 0,
        }
    }

    /// Packets sent so far.
    pub const fn sent(&self) -> usize {
        self.sent
    }

    /// How many of these had the address of a mote and reached the border router.
    pub const fn forged(&self) -> u64 {
        self.forged
    }

    /// Sends the packets that are due; returns when the next one is. A packet whose source is a
    /// mote's address is put at the border router directly, so that it is known whether it arrived.
    pub fn send(&mut self, network: &mut Network<'_>) -> Instant {
        while self.next <= network.world.now() {
            let packet = self.packet(network);
            match self.strangers.is_inside {
                true if network.world.is_on(ROUTER) => {
                    network.world.inject_at(ROUTER, &packet);
                    self.forged += 1;
                }
                true => {}
                false => network.world.inject_packet(&packet),
            }
            self.next += self.every;
            self.sent += 1;
        }
        self.next
    }

    fn packet(&self, network: &Network<'_>) -> Vec<u8> {
        let last = network.mesh_nodes() - 1;
        let turn = self.sent % self.strangers.destinations.clamp(1, last);
        let dst = network.addr(last - turn);
        let source = (self.sent % self.strangers.sources.max(1)) as u16;
        let src = match self.strangers.is_inside {
            true => network.addr(1 + usize::from(source) % last),
            false => Ipv6Addr::new(0x2001, 0xdb8, 0xbad, source, 0, 0, 0, 1),
        };
        let upper = match self.strangers.kind {
            StrangerPacket::Datagrams(len) => datagram(&src, &dst, len),
            StrangerPacket::Echoes(len) => echo(&src, &dst, len, self.sent as u16),
            StrangerPacket::Syns(port) => syn(&src, (&dst, port), self.sent as u32),
        };
        packet(self.strangers.kind.protocol(), (src, dst), &upper)
    }
}

/// An echo request without data.
pub fn ping(src: Ipv6Addr, dst: Ipv6Addr) -> Vec<u8> {
    packet(icmpv6::NEXT_HEADER, (src, dst), &echo(&src, &dst, 0, 0))
}

fn packet(next_header: u8, (src, dst): (Ipv6Addr, Ipv6Addr), upper: &[u8]) -> Vec<u8> {
    let header = ipv6::Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: upper.len() as u16,
        next_header,
        hop_limit: 64,
        src,
        dst,
    };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    let written = header.emit(&mut packet);
    debug_assert!(written.is_ok(), "a header has its length");
    packet.extend(upper);
    packet
}

impl StrangerPacket {
    const fn protocol(self) -> u8 {
        match self {
            Self::Datagrams(_) => udp::NEXT_HEADER,
            Self::Echoes(_) => icmpv6::NEXT_HEADER,
            Self::Syns(_) => tcp::NEXT_HEADER,
        }
    }
}

fn datagram(src: &Ipv6Addr, dst: &Ipv6Addr, len: usize) -> Vec<u8> {
    let header = udp::Header {
        src_port: 40_000,
        dst_port: 9,
    };
    let mut datagram = vec![0; udp::HEADER_LEN + len];
    let written = header.emit(len, &mut datagram);
    debug_assert!(written.is_ok(), "there is room for it");
    udp::fill_checksum(src, dst, &mut datagram);
    datagram
}

fn echo(src: &Ipv6Addr, dst: &Ipv6Addr, len: usize, sequence: u16) -> Vec<u8> {
    let data = vec![0x5a; len];
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence,
        data: &data,
    });
    let mut message = vec![0; len + ECHO_HEADER_LEN];
    let written = request.emit(&mut message);
    debug_assert!(written.is_ok(), "there is room for it");
    icmpv6::fill_checksum(src, dst, &mut message);
    message
}

fn syn(src: &Ipv6Addr, (dst, port): (&Ipv6Addr, u16), number: u32) -> Vec<u8> {
    let header = tcp::Header {
        // Lossless: below 2^15.
        src_port: 0x8000 | (number & 0x7fff) as u16,
        dst_port: port,
        seq: number,
        ack: 0,
        flags: tcp::Flags::SYN,
        window: 1_024,
        urgent: 0,
        options: tcp::Options {
            mss: Some(1_220),
            ..tcp::Options::NONE
        },
    };
    let mut segment = vec![0; tcp::HEADER_LEN_MAX];
    let len = header.emit(&mut segment).unwrap_or_default();
    segment.truncate(len);
    tcp::fill_checksum(src, dst, &mut segment);
    segment
}

/// The border router's number.
const ROUTER: usize = 0;

const ECHO_HEADER_LEN: usize = 8;
