//! The load under which instructions are counted: one stack at work, Motet at the other end.
//!
//! Place: `callgrind` runs this with `--toggle-collect` on the functions called `counted_*`, so
//! that only what the stack itself does between a packet's bytes and the application's counts:
//! IPv6 header, checksum, TCP, and the copies into and out of its buffers.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet_lab::Arena;

use crate::endpoint::{Endpoint, MSS, Seat, Stack};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Full segments sent, and the ACKs for them taken: per data segment.
    BulkSend,
    /// Full segments taken and read, and the ACKs for them sent: per data segment.
    BulkReceive,
    /// ACKs of one segment each taken, with nothing more to send: per ACK.
    Ack,
}

impl Load {
    /// Every load.
    pub const ALL: [Self; 3] = [Self::BulkSend, Self::BulkReceive, Self::Ack];

    /// As tables and JSON call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BulkSend => "bulk_send",
            Self::BulkReceive => "bulk_receive",
            Self::Ack => "ack",
        }
    }
}

/// Puts `stack` under `load` until [`UNITS`] of it are done.
pub fn run(stack: Stack, load: Load) {
    let arena = Arena::new();
    let mut bench = Bench::new(stack, load, &arena);
    let mut units = 0;
    while units < UNITS {
        units += match load {
            Load::BulkSend => bench.send(),
            Load::BulkReceive => bench.receive(),
            Load::Ack => bench.acknowledge(),
        };
    }
}

/// Units that are counted: so many that the handshake among them is nothing.
pub const UNITS: u32 = 10_000;

/// The end under the counter, its partner, and the time.
struct Bench<'m> {
    end: Box<dyn Endpoint + 'm>,
    partner: Box<dyn Endpoint + 'm>,
    clock: Clock,
}

impl<'m> Bench<'m> {
    fn new(stack: Stack, load: Load, arena: &'m Arena) -> Self {
        let address = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
        let (here, there) = ((address(1), 50_000), (address(2), 7));
        let now = Instant::ORIGIN;
        let seat = |opens, local, remote| Seat {
            local,
            remote,
            opens,
            mss: MSS,
            window_segments: WINDOW_SEGMENTS,
            hop_limit: 64,
            acks_each: load == Load::Ack,
            seed: 1,
        };
        Self {
            end: stack.sit(&seat(true, here, there), now, arena),
            partner: Stack::Motet.sit(&seat(false, there, here), now, arena),
            clock: Clock { now },
        }
    }

    /// One packet goes out, and its ACK comes back if it is due; gives the segments with data.
    fn send(&mut self) -> u32 {
        let now = self.clock.tick();
        let Some(packet) = counted_packet_out(&mut *self.end, now) else {
            counted_send(&mut *self.end, &DATA, now);
            return 0;
        };
        let units = u32::from(packet.len() > BARE_LEN_MAX);
        self.partner.on_packet(packet, now);
        drain(&mut *self.partner, now);
        while let Some(packet) = self.partner.poll_packet(now) {
            counted_packet_in(&mut *self.end, packet, now);
            counted_send(&mut *self.end, &DATA, now);
        }
        units
    }

    /// One packet comes in and is read, and its ACK goes back if it is due; gives the segments
    /// with data.
    fn receive(&mut self) -> u32 {
        let now = self.clock.tick();
        let mut units = 0;
        if let Some(packet) = self.partner.poll_packet(now) {
            units = u32::from(packet.len() > BARE_LEN_MAX);
            counted_packet_in(&mut *self.end, packet, now);
            counted_recv(&mut *self.end, &mut [0; DATA_LEN], now);
        }
        while let Some(packet) = counted_packet_out(&mut *self.end, now) {
            self.partner.on_packet(packet, now);
        }
        self.partner.send(&DATA, now);
        units
    }

    /// A window goes out, not counted, and is acknowledged segment by segment; gives the ACKs.
    fn acknowledge(&mut self) -> u32 {
        self.exchange();
        let mut acks = VecDeque::new();
        self.end.send(&WINDOW, self.clock.now);
        while let Some(packet) = self.end.poll_packet(self.clock.now) {
            self.partner.on_packet(packet, self.clock.now);
            drain(&mut *self.partner, self.clock.now);
            while let Some(packet) = self.partner.poll_packet(self.clock.now) {
                acks.push_back(packet.to_vec());
            }
        }
        let units = acks.len() as u32;
        assert!(
            units > 0,
            "an end that has a window to send sends some of it"
        );
        for ack in acks {
            let now = self.clock.tick();
            counted_packet_in(&mut *self.end, &ack, now);
            // While the congestion window is small, an ACK lets more of the window out.
            if let Some(more) = counted_packet_out(&mut *self.end, now) {
                self.partner.on_packet(more, now);
            }
        }
        units
    }

    /// Lets both ends say what they have to say: the handshake, a late ACK.
    fn exchange(&mut self) {
        let mut quiet = 0;
        while quiet < 2 {
            quiet += 1;
            let now = self.clock.tick();
            while let Some(packet) = self.end.poll_packet(now) {
                self.partner.on_packet(packet, now);
                quiet = 0;
            }
            while let Some(packet) = self.partner.poll_packet(now) {
                self.end.on_packet(packet, now);
                quiet = 0;
            }
        }
    }
}

/// Virtual time.
struct Clock {
    now: Instant,
}

impl Clock {
    /// Time passes; gives the time then.
    fn tick(&mut self) -> Instant {
        self.now += STEP;
        self.now
    }
}

#[inline(never)]
fn counted_packet_in(end: &mut dyn Endpoint, packet: &[u8], now: Instant) {
    end.on_packet(packet, now);
}

#[inline(never)]
fn counted_packet_out(end: &mut dyn Endpoint, now: Instant) -> Option<&[u8]> {
    end.poll_packet(now)
}

#[inline(never)]
fn counted_send(end: &mut dyn Endpoint, data: &[u8], now: Instant) -> usize {
    end.send(data, now)
}

#[inline(never)]
fn counted_recv(end: &mut dyn Endpoint, out: &mut [u8], now: Instant) -> usize {
    end.recv(out, now)
}

/// Reads what has come and forgets it.
fn drain(end: &mut dyn Endpoint, now: Instant) {
    let mut bytes = [0; DATA_LEN];
    while end.recv(&mut bytes, now) > 0 {}
}

/// More than a window of any stack.
const DATA_LEN: usize = 2_048;
const DATA: [u8; DATA_LEN] = [0x5a; DATA_LEN];
/// Segments of a window.
const WINDOW_SEGMENTS: usize = 4;
/// No more than a window, whose segments carry the Timestamps option (RFC 7323): what was left
/// would leave with the first ACK.
const WINDOW: [u8; WINDOW_SEGMENTS * (MSS as usize - 12)] =
    [0x5a; WINDOW_SEGMENTS * (MSS as usize - 12)];
/// IPv6 and TCP headers of the greatest length.
const BARE_LEN_MAX: usize = 100;
/// Between two packets: shorter than any delayed ACK.
const STEP: Duration = Duration::from_millis(2);
