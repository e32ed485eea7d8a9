//! The updates of devices that are not Motet's, with lwIP itself as the device.
//!
//! Purpose: the claim of `motet router --policy relay`, judged by a TCP from outside. As ESPHome
//! does, the host sends a block, waits for one byte, and sends the next. The device is lwIP with
//! ESP-IDF's settings: segments of 1,220 bytes, a window of 5,744. Place: both ends are the
//! caller's ends of the lab's chain ([`crate::air`]); the router stands before the border router,
//! as `--nfqueue` has it. Packets are lost behind it. Left out: readers beside the update, and
//! `OpenThread`'s number of attempts, which `motet reproduce combined-update` has.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use motet::link::Link;
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::air::profile::Profile;
use motet_lab::net::chain::{Chain, ChainOptions, Host, RADIO};
use motet_lab::net::plan;
use motet_taim::{Config, Decision, Direction, Packet, PacketId, Policy, Router};
use rayon::prelude::*;

use crate::compare::{Estimate, estimate};
use crate::endpoint::{Endpoint, Seat};
use crate::stacks::lwip::LwipEnd;
use crate::stacks::motet::MotetEnd;

/// The air of an update.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Radio hops to the device.
    pub hops: u16,
    /// Chance that a frame is lost on the air.
    pub frame_loss: f64,
    /// Chance that a packet is lost between the router and the mesh, either way.
    pub packet_loss: f64,
    /// What the relay may take at most of the time without it.
    pub must: f64,
}

/// One air: how long the update takes without and with the relay, and how much of the time the
/// relay takes by the same seeds.
#[derive(Clone, Copy, Debug)]
pub struct Update {
    /// The air.
    pub setting: Setting,
    /// Without the relay, s for [`IMAGE_LEN`] bytes.
    pub plain_s: Estimate,
    /// With it.
    pub relayed_s: Estimate,
    /// The part of the time.
    pub part: Estimate,
}

/// The airs that are judged.
pub const SETTINGS: [Setting; 6] = [
    setting(3, [0.03, 0.0], 0.93),
    setting(3, [0.10, 0.0], 0.82),
    setting(1, [0.0, 0.10], 0.75),
    setting(3, [0.0, 0.10], 0.75),
    setting(1, [0.0, 0.0], 1.02),
    setting(3, [0.0, 0.0], 1.02),
];

const fn setting(hops: u16, [frame_loss, packet_loss]: [f64; 2], must: f64) -> Setting {
    Setting {
        hops,
        frame_loss,
        packet_loss,
        must,
    }
}

/// Measures every air with so many seeds, on all processors.
///
/// # Errors
/// An update that carries nothing, or other bytes than were sent.
pub fn measure(seeds: u64) -> Result<Vec<Update>> {
    let each = SETTINGS.into_par_iter().map(|setting| {
        let pairs = (1..=seeds).map(|seed| {
            let [plain, relayed] = [false, true].map(|relays| run(&setting, relays, seed));
            Ok([plain?, relayed?])
        });
        let pairs = pairs.collect::<Result<Vec<[f64; 2]>>>()?;
        Ok(Update {
            setting,
            plain_s: estimate(pairs.iter().map(|pair| pair[0])),
            relayed_s: estimate(pairs.iter().map(|pair| pair[1])),
            part: estimate(pairs.iter().map(|[plain, relayed]| relayed / plain)),
        })
    });
    each.collect()
}

/// How long [`IMAGE_LEN`] bytes take at the rate of a run, s.
fn run(setting: &Setting, relays: bool, seed: u64) -> Result<f64> {
    let arena = Arena::new();
    let options = ChainOptions {
        hops: setting.hops,
        seed,
        frame_loss: setting.frame_loss,
        packet_loss: setting.packet_loss,
        retry_delay: Duration::ZERO,
        mss_frames: 12,
        host: Host::Outside,
        mote: Host::Outside,
        profile: Profile::NRF52840,
        ..ChainOptions::default()
    };
    let mut bench = Bench::new(Chain::new(options, &arena), relays, seed, &arena);
    let until = Instant::ORIGIN + LENGTH;
    while bench.now() < until {
        bench.exchange()?;
        bench.advance(until);
    }
    let last = bench.blocks_at.last().context("no block has arrived")?;
    let bytes = bench.blocks_at.len() * BLOCK_LEN;
    Ok(last.since(Instant::ORIGIN).as_micros() as f64 / 1e6 * IMAGE_LEN as f64 / bytes as f64)
}

struct Bench<'m> {
    chain: Chain<'m>,
    device: LwipEnd,
    host: MotetEnd<'m>,
    router: Option<Router>,
    held: BTreeMap<PacketId, (Direction, Vec<u8>)>,
    packets: u64,
    /// Bytes of the block that the host has still to write, and whether it waits for an answer.
    unwritten: usize,
    written: usize,
    /// Bytes that the device has read, and answers that it has still to write.
    read: usize,
    answers: usize,
    /// When the answer to each block came.
    blocks_at: Vec<Instant>,
}

impl<'m> Bench<'m> {
    fn new(chain: Chain<'m>, relays: bool, seed: u64, arena: &'m Arena) -> Self {
        let (device, host) = ((chain.mote_addr(), DEVICE_PORT), (plan::HOST, HOST_PORT));
        let seat = |local, remote, window_segments| Seat {
            local,
            remote,
            opens: local == host,
            mss: 1_220,
            window_segments,
            acks_each: false,
            hop_limit: 64,
            seed,
        };
        let now = chain.world.now();
        Self {
            device: LwipEnd::with_window(&seat(device, host, 4), WINDOW_LEN, now),
            // A host's buffer holds a block: what is under way, the device's window says.
            host: MotetEnd::new(&seat(host, device, 16), now, arena),
            router: relays.then(|| Router::new(Config::new(Policy::Relay))),
            held: BTreeMap::new(),
            packets: 0,
            unwritten: BLOCK_LEN,
            written: 0,
            read: 0,
            answers: 0,
            blocks_at: Vec::new(),
            chain,
        }
    }

    fn now(&self) -> Instant {
        self.chain.world.now()
    }

    /// Lets both ends and the router take what has come and say what they have to say.
    fn exchange(&mut self) -> Result<()> {
        let now = self.now();
        self.drain();
        while let Some(packet) = self.chain.world.take_packet() {
            self.offer(Direction::Up, &packet);
        }
        while let Some(packet) = self.chain.world.take_at(self.chain.mote()) {
            self.device.on_packet(&packet, now);
        }
        self.step_device()?;
        self.step_host();
        while let Some(packet) = self.host.poll_packet(now).map(<[u8]>::to_vec) {
            self.offer(Direction::Down, &packet);
        }
        while self.has_room()
            && let Some(packet) = self.device.poll_packet(now)
        {
            self.chain.world.inject_at(self.chain.mote(), packet);
        }
        Ok(())
    }

    /// The device answers each block by a byte.
    fn step_device(&mut self) -> Result<()> {
        let now = self.now();
        let mut bytes = [0; 512];
        loop {
            let len = self.device.recv(&mut bytes, now);
            if len == 0 {
                break;
            }
            for byte in &bytes[..len] {
                ensure!(*byte == content(self.read), "byte {} is another", self.read);
                self.read += 1;
                self.answers += usize::from(self.read.is_multiple_of(BLOCK_LEN));
            }
        }
        if self.answers > 0 {
            self.answers -= self.device.send(&[0], now);
        }
        Ok(())
    }

    /// The host writes a block, and the next when the answer has come.
    fn step_host(&mut self) {
        let now = self.now();
        let mut answer = [0];
        if self.host.recv(&mut answer, now) > 0 {
            self.blocks_at.push(now);
            self.unwritten = BLOCK_LEN;
        }
        if self.unwritten > 0 && self.host.status().may_send {
            let block: Vec<u8> = (0..self.unwritten)
                .map(|place| content(self.written + place))
                .collect();
            let taken = self.host.send(&block, now);
            (self.written, self.unwritten) = (self.written + taken, self.unwritten - taken);
        }
    }

    /// A packet that comes to the router, or where there is none goes on.
    fn offer(&mut self, direction: Direction, bytes: &[u8]) {
        let now = self.now();
        let Some(router) = &mut self.router else {
            return self.pass_on(direction, bytes);
        };
        self.packets += 1;
        let packet = Packet {
            id: PacketId(self.packets),
            direction,
            headers: bytes,
            len: bytes.len(),
        };
        match router.on_packet(&packet, now) {
            Decision::Pass => self.pass_on(direction, bytes),
            Decision::Hold => drop(self.held.insert(packet.id, (direction, bytes.to_vec()))),
        }
        self.drain();
    }

    /// What the router lets go, sends again, or drops.
    fn drain(&mut self) {
        let now = self.now();
        while let Some(router) = &mut self.router
            && let Some(copy) = router.poll_copy(now).map(<[u8]>::to_vec)
        {
            self.pass_on(Direction::Down, &copy);
        }
        while let Some(router) = &mut self.router
            && let Some(id) = router.poll(now)
        {
            if let Some((direction, bytes)) = self.held.remove(&id) {
                self.pass_on(direction, &bytes);
            }
        }
        while let Some(router) = &mut self.router
            && let Some(id) = router.poll_dropped()
        {
            self.held.remove(&id);
        }
    }

    fn pass_on(&mut self, direction: Direction, bytes: &[u8]) {
        let now = self.now();
        match direction {
            Direction::Down => self.chain.world.inject_packet(bytes),
            Direction::Up => self.host.on_packet(bytes, now),
        }
    }

    /// Whether the device's radio has nothing waiting.
    fn has_room(&self) -> bool {
        let node = self.chain.world.node(self.chain.mote());
        matches!(node.link(RADIO), Some(Link::Mesh(radio)) if !radio.has_packet_waiting())
    }

    /// Moves on to what happens next, but not beyond `until`.
    fn advance(&mut self, until: Instant) {
        let now = self.now();
        let deadlines = [
            self.device.next_deadline(now),
            self.host.next_deadline(now),
            self.router.as_ref().and_then(Router::next_deadline),
        ];
        let due = deadlines.into_iter().flatten().min().unwrap_or(until);
        let due = due.max(now + TICK).min(until);
        if !self.chain.world.step(due) {
            self.chain.world.run_until(due);
        }
    }
}

/// The byte of a stream at a place.
fn content(place: usize) -> u8 {
    (place * 31 % 251) as u8
}

/// Bytes of the image whose time is said.
pub const IMAGE_LEN: usize = 900_000;

/// Virtual time of a run.
const LENGTH: Duration = Duration::from_secs(300);

/// What ESPHome sends before it waits for a byte.
const BLOCK_LEN: usize = 8_192;

/// What ESP-IDF gives lwIP.
const WINDOW_LEN: u16 = 5_744;

const DEVICE_PORT: u16 = 6_053;
const HOST_PORT: u16 = 50_000;

/// Of the clock.
const TICK: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// At one packet of ten lost, the relay saves lwIP a quarter of the time.
    #[test]
    fn lwip_gets_its_blocks_sooner_by_the_relay() {
        let setting = SETTINGS[2];
        let [plain, relayed] = [false, true].map(|relays| run(&setting, relays, 1).unwrap());
        assert!(relayed < 0.9 * plain, "{plain}, {relayed}");
    }
}
