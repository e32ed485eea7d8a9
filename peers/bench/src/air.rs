//! Two end points over the lab's chain: one at the far mote, one on the host beyond the wire.
//!
//! Both are the caller's ends of the lab's wires, so that 6LoWPAN, MAC, radio and relays are the
//! same for all stacks. A packet is lost at the border router, either way, with the setting's
//! chance. A mote's end may send a packet when none waits for the air.

use motet::link::Link;
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::net::chain::{Chain, ChainOptions, Host, RADIO};
use motet_lab::net::plan;

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
    let mut air = Air::new(Chain::new(options, &arena), setting, &arena);
    let until = Instant::ORIGIN + length;
    let mut sender = Sender::new(content, until);
    let mut receiver = Receiver::default();
    while air.now() < until {
        air.exchange(&mut sender, &mut receiver);
        air.advance(until);
    }
    let differs = receiver
        .content
        .iter()
        .zip(content)
        .position(|(a, b)| a != b);
    if let Some(at) = differs {
        return Err(at);
    }
    let bits = receiver.content.len() as f64 * 8.0;
    Ok(Run {
        goodput_kbps: bits / length.as_millis() as f64,
        retransmitted: sender.retransmissions() as f64 / sender.segments().max(1) as f64,
    })
}

/// The chain and its two ends, the sender's first.
struct Air<'m> {
    chain: Chain<'m>,
    ends: [Box<dyn Endpoint + 'm>; 2],
    is_upwards: bool,
}

impl<'m> Air<'m> {
    fn new(chain: Chain<'m>, setting: &Setting, arena: &'m Arena) -> Self {
        let (mote, host) = ((chain.mote_addr(), MOTE_PORT), (plan::HOST, HOST_PORT));
        let seat = |local, remote, opens| Seat {
            local,
            remote,
            opens,
            mss: MSS,
            window_segments: setting.window_segments,
            acks_each: false,
            // The mote's node forwards its packets, and counts that hop.
            hop_limit: if local == mote { 65 } else { 64 },
            seed: setting.seed,
        };
        let (here, there) = if setting.is_upwards {
            (mote, host)
        } else {
            (host, mote)
        };
        let now = chain.world.now();
        let ends = [
            setting.sender.sit(&seat(here, there, true), now, arena),
            setting.receiver.sit(&seat(there, here, false), now, arena),
        ];
        Self {
            chain,
            ends,
            is_upwards: setting.is_upwards,
        }
    }

    fn now(&self) -> Instant {
        self.chain.world.now()
    }

    /// Lets both ends take what has come and say what they have to say.
    fn exchange(&mut self, sender: &mut Sender<'_>, receiver: &mut Receiver) {
        let now = self.now();
        let (mote, host) = if self.is_upwards { (0, 1) } else { (1, 0) };
        while let Some(packet) = self.chain.world.take_at(self.chain.mote()) {
            self.ends[mote].on_packet(&packet, now);
            self.speak(mote, sender, receiver);
        }
        while let Some(packet) = self.chain.world.take_packet() {
            self.ends[host].on_packet(&packet, now);
            self.speak(host, sender, receiver);
        }
        self.speak(mote, sender, receiver);
        self.speak(host, sender, receiver);
    }

    /// The application of `end` and what follows from it.
    fn speak(&mut self, end: usize, sender: &mut Sender<'_>, receiver: &mut Receiver) {
        let now = self.now();
        let is_mote = (end == 0) == self.is_upwards;
        match end {
            0 => sender.step(&mut *self.ends[0], now),
            _ => receiver.step(&mut *self.ends[1], now),
        }
        while !is_mote || self.has_room() {
            let Some(packet) = self.ends[end].poll_packet(now) else {
                break;
            };
            if end == 0 {
                sender.note_sent(packet);
            }
            if is_mote {
                self.chain.world.inject_at(self.chain.mote(), packet);
            } else {
                self.chain.world.inject_packet(packet);
            }
        }
    }

    /// Whether the mote's radio has nothing waiting.
    fn has_room(&self) -> bool {
        let node = self.chain.world.node(self.chain.mote());
        match node.link(RADIO) {
            Some(Link::Mesh(radio)) => !radio.has_packet_waiting(),
            _ => false,
        }
    }

    /// Moves on to what happens next, at an end or on the air, but not beyond `until`.
    fn advance(&mut self, until: Instant) {
        let now = self.now();
        let deadlines = self
            .ends
            .iter_mut()
            .filter_map(|end| end.next_deadline(now));
        let due = deadlines.min().unwrap_or(until).max(now + TICK).min(until);
        if !self.chain.world.step(due) {
            self.chain.world.run_until(due);
        }
    }
}

/// As in `TCPlp`'s study.
const HOPS: u16 = 3;
const MOTE_PORT: u16 = 49_152;
const HOST_PORT: u16 = 50_000;
/// Of the clock.
const TICK: Duration = Duration::from_micros(1);
