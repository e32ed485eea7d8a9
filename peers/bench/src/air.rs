//! End points on the lab's air: at motes, and on the host beyond the wire.
//!
//! All are the caller's ends of the lab's wires, so that 6LoWPAN, MAC, radio and relays are the
//! same for all stacks. An end at a mote may send a packet when none waits for the air there.
//! [`run`] is one connection over the lab's chain, with the mote at the chain's end. A packet is
//! lost there at the border router, either way, with the setting's chance.

use std::net::Ipv6Addr;

use motet::link::Link;
use motet::time::{Duration, Instant};
use motet::wire::ipv6::Header;
use motet_lab::Arena;
use motet_lab::net::chain::{Chain, ChainOptions, Host, RADIO};
use motet_lab::net::plan;
use motet_lab::net::world::World;

use crate::endpoint::{Endpoint, MSS, Seat, Stack};
use crate::transfer::{Receiver, Sender};

/// One transfer's setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// The stack that sends.
    pub sender: Stack,
    /// The stack that receives.
    pub receiver: Stack,
    /// Whether the mote sends, or the host.
    pub is_upwards: bool,
    /// Chance that a packet is lost at the border router, either way.
    pub loss: f64,
    /// What may be under way, in full segments.
    pub window_segments: usize,
    /// Seed of radio, loss and stacks.
    pub seed: u64,
}

/// What a transfer gave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// Application bytes read at the far end, kb/s.
    pub goodput_kbps: f64,
    /// Data segments sent again, of all sent.
    pub retransmitted: f64,
}

/// Runs one transfer for `length` of virtual time, handshake included.
///
/// # Errors
/// The first place where what was read is not what was sent.
pub fn run(setting: &Setting, content: &[u8], length: Duration) -> Result<Run, usize> {
    let arena = Arena::new();
    let options = ChainOptions {
        hops: HOPS,
        seed: setting.seed,
        packet_loss: setting.loss,
        host: Host::Outside,
        mote: Host::Outside,
        ..ChainOptions::default()
    };
    let chain = Chain::new(options, &arena);
    let line = Line {
        mote: chain.mote(),
        addr: chain.mote_addr(),
        port: HOST_PORT,
        sender: Some(setting.sender),
        receiver: setting.receiver,
        is_upwards: setting.is_upwards,
        sizes: [setting.window_segments; 2].map(|window_segments| Size {
            mss: MSS,
            window_segments,
        }),
        seed: setting.seed,
    };
    let mut air = Air::new(chain.world);
    let until = Instant::ORIGIN + length;
    let flow = air.connect(&line, Sender::new(content, until), &arena);
    air.run_until(until);
    let Flow {
        sender, receiver, ..
    } = &air.flows[flow];
    if let Some(at) = receiver.differs_from(content) {
        return Err(at);
    }
    Ok(Run {
        goodput_kbps: air.flows[flow].received() as f64 * 8.0 / length.as_millis() as f64,
        retransmitted: sender.retransmitted(),
    })
}

/// A world, and the connections in it whose ends are the caller's.
pub(crate) struct Air<'m, 'c> {
    pub(crate) world: World<'m>,
    pub(crate) flows: Vec<Flow<'m, 'c>>,
}

/// Where a connection is, and whose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) mote: usize,
    /// The mote's address.
    pub(crate) addr: Ipv6Addr,
    /// The host's port: no two connections of a world share it.
    pub(crate) port: u16,
    /// `None`: an application on the lab's own node sends.
    pub(crate) sender: Option<Stack>,
    pub(crate) receiver: Stack,
    /// Whether the mote sends, or the host.
    pub(crate) is_upwards: bool,
    /// Of the mote's end, and of the host's.
    pub(crate) sizes: [Size; 2],
    pub(crate) seed: u64,
}

/// How large an end is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Bytes of a full segment: another number than [`MSS`] only of Motet and lwIP.
    pub(crate) mss: u16,
    /// What may be under way, in full segments.
    pub(crate) window_segments: usize,
}

/// A connection: its ends, and the applications at them.
pub(crate) struct Flow<'m, 'c> {
    pub(crate) line: Line,
    /// The caller's ends, the mote's first if it is one.
    ends: Vec<End<'m>>,
    pub(crate) sender: Sender<'c>,
    pub(crate) receiver: Receiver,
}

/// One end of a connection.
struct End<'m> {
    tcp: Box<dyn Endpoint + 'm>,
    is_mote: bool,
    sends: bool,
    /// When it must be called again, if no packet comes before.
    due: Option<Instant>,
    /// Whether it would say more, had the mote's radio room.
    is_kept: bool,
}

impl Line {
    /// The seats of both ends: the mote's, and the host's.
    fn seats(&self) -> [Seat; 2] {
        let (mote, host) = ((self.addr, MOTE_PORT), (plan::HOST, self.port));
        let [at_mote, at_host] = self.sizes;
        let seat = |(local, remote), opens, size: Size, hop_limit| Seat {
            local,
            remote,
            opens,
            mss: size.mss,
            window_segments: size.window_segments,
            acks_each: false,
            hop_limit,
            seed: self.seed,
        };
        // The mote's node forwards its packets, and counts that hop.
        [
            seat((mote, host), self.is_upwards, at_mote, 65),
            seat((host, mote), !self.is_upwards, at_host, 64),
        ]
    }

    /// Whether the mote's end sends the content, or the host's.
    const fn sends(&self, is_mote: bool) -> bool {
        is_mote == self.is_upwards
    }
}

impl Flow<'_, '_> {
    /// Application bytes read so far.
    pub(crate) fn received(&self) -> usize {
        self.receiver.content.len()
    }

    /// Whether the sending end, where it is the caller's, is over.
    pub(crate) fn has_given_up(&mut self) -> bool {
        let mut ends = self.ends.iter_mut().filter(|end| end.sends);
        ends.any(|end| end.tcp.status().closed)
    }
}

impl<'m, 'c> Air<'m, 'c> {
    pub(crate) fn new(world: World<'m>) -> Self {
        Self {
            world,
            flows: Vec::new(),
        }
    }

    /// Seats the ends of a connection; its place among [`Self::flows`].
    pub(crate) fn connect(&mut self, line: &Line, sender: Sender<'c>, arena: &'m Arena) -> usize {
        let now = self.world.now();
        let seats = line.seats().into_iter().zip([true, false]);
        let ends = seats.filter_map(|(seat, is_mote)| {
            let sends = line.sends(is_mote);
            let stack = if sends { line.sender? } else { line.receiver };
            Some(End {
                tcp: stack.sit(&seat, now, arena),
                is_mote,
                sends,
                due: Some(now),
                is_kept: false,
            })
        });
        self.flows.push(Flow {
            line: *line,
            ends: ends.collect(),
            sender,
            receiver: Receiver::default(),
        });
        self.flows.len() - 1
    }

    /// Lets all happen that is due before `until`, and moves time there.
    pub(crate) fn run_until(&mut self, until: Instant) {
        while self.world.now() < until {
            self.exchange();
            self.advance(until);
        }
    }

    /// Lets all ends take what has come and say what they have to say.
    fn exchange(&mut self) {
        let Self { world, flows } = self;
        let now = world.now();
        for flow in &mut *flows {
            while flow.ends.iter().any(|end| end.is_mote)
                && let Some(packet) = world.take_at(flow.line.mote)
            {
                flow.on_packet(true, &packet, world);
            }
        }
        while let Some(packet) = world.take_packet() {
            let port = ports_of(&packet).map(|[_, to]| to);
            if let Some(flow) = flows.iter_mut().find(|flow| Some(flow.line.port) == port) {
                flow.on_packet(false, &packet, world);
            }
        }
        for flow in flows {
            flow.on_time(world, now);
        }
    }

    /// Moves on to what happens next, at an end or on the air, but not beyond `until`.
    fn advance(&mut self, until: Instant) {
        let now = self.world.now();
        let ends = self.flows.iter().flat_map(|flow| &flow.ends);
        // One that is kept has its turn when the radio has room, which is an event of the world.
        let dues = ends.filter(|end| !end.is_kept).filter_map(|end| end.due);
        let due = dues.min().unwrap_or(until).max(now + TICK).min(until);
        if !self.world.step(due) {
            self.world.run_until(due);
        }
    }
}

impl<'m> Flow<'m, '_> {
    /// A packet has come to the mote's end, or to the host's.
    fn on_packet(&mut self, is_mote: bool, packet: &[u8], world: &mut World<'m>) {
        let now = world.now();
        if let Some(place) = self.ends.iter().position(|end| end.is_mote == is_mote) {
            self.ends[place].tcp.on_packet(packet, now);
            self.speak(place, world);
        }
    }

    /// Lets the ends speak whose time has come, or for which there is room again.
    fn on_time(&mut self, world: &mut World<'m>, now: Instant) {
        for place in 0..self.ends.len() {
            let end = &self.ends[place];
            let is_its_turn = match end.is_kept {
                true => has_room(world, self.line.mote),
                false => end.due.is_some_and(|due| due <= now),
            };
            if is_its_turn {
                self.speak(place, world);
            }
        }
    }

    /// The application of an end and what follows from it.
    fn speak(&mut self, place: usize, world: &mut World<'m>) {
        let now = world.now();
        let (mote, end) = (self.line.mote, &mut self.ends[place]);
        match end.sends {
            true => self.sender.step(&mut *end.tcp, now),
            false => self.receiver.step(&mut *end.tcp, now),
        }
        loop {
            end.is_kept = end.is_mote && !has_room(world, mote);
            if end.is_kept {
                break;
            }
            let Some(packet) = end.tcp.poll_packet(now) else {
                break;
            };
            if end.sends {
                self.sender.note_sent(packet);
            }
            if end.is_mote {
                world.inject_at(mote, packet);
            } else {
                world.inject_packet(packet);
            }
        }
        end.due = end.tcp.next_deadline(now);
    }
}

/// Whether a mote's radio has nothing waiting.
pub(crate) fn has_room(world: &World<'_>, mote: usize) -> bool {
    let radio = world.node(mote).link(RADIO);
    matches!(radio, Some(Link::Mesh(radio)) if !radio.has_packet_waiting())
}

/// The ports of a segment: its sender's, its receiver's.
pub(crate) fn ports_of(packet: &[u8]) -> Option<[u16; 2]> {
    let (_, segment) = Header::parse_start(packet).ok()?;
    let [a, b, c, d] = *segment.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

/// As in `TCPlp`'s study.
const HOPS: u16 = 3;
const MOTE_PORT: u16 = 49_152;
/// The host's port of the first connection.
pub(crate) const HOST_PORT: u16 = 50_000;
/// Of the clock.
const TICK: Duration = Duration::from_micros(1);
