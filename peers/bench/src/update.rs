//! The updates of devices that are not Motet's, with lwIP itself as the device.
//!
//! Purpose: the claim of `motet router --policy relay`, judged by a TCP from outside. As ESPHome
//! does, the host sends a block, waits for one byte, and sends the next. The device is lwIP with
//! ESP-IDF's settings: segments of 1,220 bytes, a window of 5,744. Place: the mesh, its border
//! router and the policy there are the lab's; the TCPs of the device, of readers and of the host
//! are this caller's. Twelve readers in three branches send 64 bytes every ten seconds meanwhile,
//! and a frame has 16 attempts, as with `OpenThread`. Packets are lost behind the policy.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::air::gains::{ChainAir, Gains};
use motet_lab::air::profile::Profile;
use motet_lab::net::network::{
    Host, HostOptions, Joining, Network, NetworkOptions, NodeOptions, Parent,
};
use motet_lab::net::plan;
use motet_taim::{Config, Policy};
use rayon::prelude::*;

use crate::air::{has_room, ports_of};
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

/// What is around an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Around {
    /// Motes that send readings.
    pub readers: usize,
    /// Attempts for a frame.
    pub attempts: u8,
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
    /// The same of the delay that nineteen of twenty readings do not exceed; none without readers.
    pub latency: Option<Estimate>,
    /// Of the readings that have come, without the relay and with it.
    pub delivery: Option<[Estimate; 2]>,
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

impl Around {
    /// As the criteria have it.
    pub const DEFAULT: Self = Self {
        readers: 12,
        attempts: 16,
    };
}

/// What one run gives.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// How long [`IMAGE_LEN`] bytes take at its rate, s.
    done_s: f64,
    latency_p95_ms: f64,
    delivery: f64,
}

/// Measures every air with so many seeds, on all processors.
///
/// # Errors
/// An update that carries nothing, or other bytes than were sent.
pub fn measure(seeds: u64, around: Around) -> Result<Vec<Update>> {
    let each = SETTINGS.into_par_iter().map(|setting| {
        let pairs = (1..=seeds).map(|seed| {
            let [plain, relayed] = [false, true].map(|relays| run(&setting, around, relays, seed));
            Ok([plain?, relayed?])
        });
        let pairs = pairs.collect::<Result<Vec<[Measured; 2]>>>()?;
        let of = |which: usize, figure: fn(&Measured) -> f64| {
            estimate(pairs.iter().map(move |pair| figure(&pair[which])))
        };
        let part = |figure: fn(&Measured) -> f64| {
            estimate(
                pairs
                    .iter()
                    .map(move |[plain, relayed]| figure(relayed) / figure(plain)),
            )
        };
        let has_readers = around.readers > 0;
        Ok(Update {
            setting,
            plain_s: of(0, |run| run.done_s),
            relayed_s: of(1, |run| run.done_s),
            part: part(|run| run.done_s),
            latency: has_readers.then(|| part(|run| run.latency_p95_ms)),
            delivery: has_readers.then(|| [0, 1].map(|which| of(which, |run| run.delivery))),
        })
    });
    each.collect()
}

/// The mesh: three branches, the device in the first.
fn network(setting: &Setting, around: Around, relays: bool, seed: u64) -> NetworkOptions {
    let depth = DEPTH_MIN.max(setting.hops.into());
    let count = match around.readers {
        0 => 1 + usize::from(setting.hops),
        _ => 1 + BRANCHES * depth,
    };
    let place = |node: usize| match node.checked_sub(1) {
        Some(below) => (below / depth, 1 + below % depth),
        None => (0, 0),
    };
    let nodes = (0..count).map(|node| {
        let mut options = NodeOptions::new(node.to_string());
        options.parent = match place(node).1 {
            0 => Parent::Shortest,
            1 => Parent::Node(0),
            _ => Parent::Node(node - 1),
        };
        options.profile = Profile::NRF52840;
        options.mac.retry_delay_max = Duration::ZERO;
        options.mac.attempts_max = around.attempts;
        options.mss_frames = 12;
        if node > 0 {
            options.transport = Host::Outside;
        }
        options
    });
    let air = ChainAir::CALIBRATED;
    let gains = Gains::from_fn(count, |from, to| {
        let ((branch, up), (other, down)) = (place(from), place(to));
        // By the border router, which is of every branch.
        let apart = match branch == other || up == 0 || down == 0 {
            true => up.abs_diff(down),
            false => up + down,
        };
        match apart {
            1 => air.one_hop_db,
            2 => air.two_hops_db,
            _ => air.beyond_db,
        }
    });
    NetworkOptions {
        seed,
        joining: Joining::Static,
        hosts: vec![HostOptions {
            kind: Host::Outside,
            ..HostOptions::new("host")
        }],
        frame_loss: setting.frame_loss,
        inner_loss: setting.packet_loss,
        queues_flows: false,
        fairness: relays.then(|| Config::new(Policy::Relay)),
        ..NetworkOptions::new(nodes.collect(), gains)
    }
}

/// The motes that send readings: those of other branches first, then those of the device's, but
/// for the device, again and again.
fn readers(setting: &Setting, around: Around) -> impl Iterator<Item = usize> {
    let (device, depth) = (
        usize::from(setting.hops),
        DEPTH_MIN.max(setting.hops.into()),
    );
    let own = (1..=depth).filter(move |mote| *mote != device);
    let all = (depth + 1..=BRANCHES * depth).chain(own);
    all.cycle().take(around.readers)
}

fn run(setting: &Setting, around: Around, relays: bool, seed: u64) -> Result<Measured> {
    let arena = Arena::new();
    let network = Network::new(network(setting, around, relays, seed), &arena);
    let mut bench = Bench::new(network?, setting, around, seed, &arena);
    let until = Instant::ORIGIN + LENGTH;
    while bench.now() < until {
        bench.exchange()?;
        bench.advance(until);
    }
    bench.measured()
}

struct Bench<'m> {
    network: Network<'m>,
    update: Pair<LwipEnd, MotetEnd<'m>>,
    readers: Vec<Reader<'m>>,
    /// Bytes of the block that the host has still to write, and what it has written in all.
    unwritten: usize,
    written: usize,
    /// Bytes that the device has read, and answers that it has still to write.
    read: usize,
    answers: usize,
    /// When the answer to each block came.
    blocks_at: Vec<Instant>,
    /// By the host's port: which reader; the update's is none of them.
    ports: BTreeMap<u16, usize>,
}

/// A connection: its end on a mote, and the host's.
struct Pair<D, H> {
    mote: usize,
    device: D,
    host: H,
}

/// A mote that sends a reading now and then.
struct Reader<'m> {
    pair: Pair<MotetEnd<'m>, MotetEnd<'m>>,
    /// When the next reading is due, and when each was that is due already.
    next_at: Instant,
    due_at: Vec<Instant>,
    /// Bytes of due readings that the mote has still to write.
    unwritten: usize,
    read: usize,
    latencies_ms: Vec<f64>,
}

/// The seats of a connection's ends: the mote's and the host's.
fn seats(mote: usize, [own, far]: [u16; 2], window_segments: [usize; 2], seed: u64) -> [Seat; 2] {
    let device = (plan::mesh_addr(mote as u16), own);
    let host = (plan::HOST, far);
    let seat = |local, remote, opens, window_segments| Seat {
        local,
        remote,
        opens,
        mss: MSS,
        window_segments,
        acks_each: false,
        hop_limit: 64,
        seed,
    };
    [
        seat(device, host, own != DEVICE_PORT, window_segments[0]),
        seat(host, device, own == DEVICE_PORT, window_segments[1]),
    ]
}

impl<'m> Bench<'m> {
    fn new(
        network: Network<'m>,
        setting: &Setting,
        around: Around,
        seed: u64,
        arena: &'m Arena,
    ) -> Self {
        let (mote, now) = (usize::from(setting.hops), network.world.now());
        // A host's buffer holds a block: what is under way, the device's window says.
        let [device, host] = seats(mote, [DEVICE_PORT, HOST_PORT], [4, 16], seed);
        let mut rng = Rng::from_seed([seed, 0x7265_6164]);
        let mut ports = BTreeMap::new();
        let readers = readers(setting, around).zip(1_u16..).map(|(mote, number)| {
            let port = HOST_PORT + number;
            ports.insert(port, usize::from(number) - 1);
            let [device, host] = seats(mote, [READER_PORT + number, port], [4, 4], seed);
            Reader {
                pair: Pair {
                    mote,
                    device: MotetEnd::new(&device, now, arena),
                    host: MotetEnd::new(&host, now, arena),
                },
                next_at: now + Duration::from_millis(rng.below(EVERY_MS as u32).into()),
                due_at: Vec::new(),
                unwritten: 0,
                read: 0,
                latencies_ms: Vec::new(),
            }
        });
        Self {
            readers: readers.collect(),
            update: Pair {
                mote,
                device: LwipEnd::with_window(&device, WINDOW_LEN, now),
                host: MotetEnd::new(&host, now, arena),
            },
            unwritten: BLOCK_LEN,
            written: 0,
            read: 0,
            answers: 0,
            blocks_at: Vec::new(),
            ports,
            network,
        }
    }

    fn now(&self) -> Instant {
        self.network.world.now()
    }

    /// Lets all ends take what has come and say what they have to say.
    fn exchange(&mut self) -> Result<()> {
        let now = self.now();
        while let Some(packet) = self.network.world.take_packet() {
            match ports_of(&packet).and_then(|[_, to]| self.ports.get(&to)) {
                Some(reader) => self.readers[*reader].pair.host.on_packet(&packet, now),
                None => self.update.host.on_packet(&packet, now),
            }
        }
        for mote in 1..self.network.mesh_nodes() {
            while let Some(packet) = self.network.world.take_at(mote) {
                match ports_of(&packet).and_then(|[from, _]| self.ports.get(&from)) {
                    Some(reader) => self.readers[*reader].pair.device.on_packet(&packet, now),
                    None => self.update.device.on_packet(&packet, now),
                }
            }
        }
        self.step_device()?;
        self.step_host();
        self.update.carry(&mut self.network, now);
        for reader in &mut self.readers {
            reader.step(now);
            reader.pair.carry(&mut self.network, now);
        }
        Ok(())
    }

    /// The device answers each block by a byte.
    fn step_device(&mut self) -> Result<()> {
        let now = self.now();
        let mut bytes = [0; 512];
        loop {
            let len = self.update.device.recv(&mut bytes, now);
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
            self.answers -= self.update.device.send(&[0], now);
        }
        Ok(())
    }

    /// The host writes a block, and the next when the answer has come.
    fn step_host(&mut self) {
        let now = self.now();
        let host = &mut self.update.host;
        if host.recv(&mut [0], now) > 0 {
            self.blocks_at.push(now);
            self.unwritten = BLOCK_LEN;
        }
        if self.unwritten > 0 && host.status().may_send {
            let block: Vec<u8> = (0..self.unwritten)
                .map(|place| content(self.written + place))
                .collect();
            let taken = host.send(&block, now);
            (self.written, self.unwritten) = (self.written + taken, self.unwritten - taken);
        }
    }

    /// Moves on to what happens next, but not beyond `until`.
    fn advance(&mut self, until: Instant) {
        let now = self.now();
        let mut due = self.update.next_deadline(now).unwrap_or(until);
        for reader in &mut self.readers {
            let own = reader.pair.next_deadline(now).unwrap_or(until);
            due = due.min(own).min(reader.next_at);
        }
        let due = due.max(now + TICK).min(until);
        if !self.network.world.step(due) {
            self.network.world.run_until(due);
        }
    }

    fn measured(&self) -> Result<Measured> {
        let last = self.blocks_at.last().context("no block has arrived")?;
        let seconds = last.since(Instant::ORIGIN).as_micros() as f64 / 1e6;
        let bytes = self.blocks_at.len() * BLOCK_LEN;
        // Those that were due in the last seconds may be under way.
        let until = Instant::ORIGIN + (LENGTH - GRACE);
        let mut latencies = Vec::new();
        for reader in &self.readers {
            let due = reader.due_at.iter().filter(|at| **at < until);
            let mut came = reader.latencies_ms.iter().copied();
            // One that never came is as late as a run is long, not left out.
            latencies.extend(due.map(|_| came.next().unwrap_or(f64::INFINITY)));
        }
        let came = latencies.iter().filter(|ms| ms.is_finite()).count();
        let delivery = came as f64 / latencies.len().max(1) as f64;
        latencies.sort_by(f64::total_cmp);
        let p95 = latencies.get(latencies.len() * 19 / 20).copied();
        Ok(Measured {
            done_s: seconds * IMAGE_LEN as f64 / bytes as f64,
            latency_p95_ms: p95.unwrap_or(0.0).min(LENGTH.as_micros() as f64 / 1e3),
            delivery,
        })
    }
}

impl Reader<'_> {
    /// The mote writes what is due; the host reads.
    fn step(&mut self, now: Instant) {
        while self.next_at <= now {
            self.due_at.push(self.next_at);
            self.next_at += Duration::from_millis(EVERY_MS);
            self.unwritten += READING_LEN;
        }
        if self.unwritten > 0 && self.pair.device.status().may_send {
            let bytes = vec![0; self.unwritten];
            self.unwritten -= self.pair.device.send(&bytes, now);
        }
        let mut bytes = [0; 512];
        loop {
            match self.pair.host.recv(&mut bytes, now) {
                0 => break,
                len => self.read += len,
            }
        }
        while self.read >= (self.latencies_ms.len() + 1) * READING_LEN {
            let due = self.due_at.get(self.latencies_ms.len()).copied();
            let late = now.since(due.unwrap_or(now)).as_micros();
            self.latencies_ms.push(late as f64 / 1e3);
        }
    }
}

impl<D: Endpoint, H: Endpoint> Pair<D, H> {
    /// Puts what both ends have to say on their ways.
    fn carry(&mut self, network: &mut Network<'_>, now: Instant) {
        while let Some(packet) = self.host.poll_packet(now) {
            network.world.inject_packet(packet);
        }
        while has_room(&network.world, self.mote)
            && let Some(packet) = self.device.poll_packet(now)
        {
            network.world.inject_at(self.mote, packet);
        }
    }

    fn next_deadline(&mut self, now: Instant) -> Option<Instant> {
        let ends = [self.device.next_deadline(now), self.host.next_deadline(now)];
        ends.into_iter().flatten().min()
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
const MSS: u16 = 1_220;

const DEVICE_PORT: u16 = 6_053;
const HOST_PORT: u16 = 50_000;
const READER_PORT: u16 = 7_000;

/// A reading, and how often a mote sends one.
const READING_LEN: usize = 64;
const EVERY_MS: u64 = 10_000;

/// Readings that were due so shortly before the end are not counted.
const GRACE: Duration = Duration::from_secs(20);

const BRANCHES: usize = 3;

/// The motes of a branch, at least.
const DEPTH_MIN: usize = 4;

/// Of the clock.
const TICK: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Where frames are lost over three hops the relay saves lwIP time, and of the readings beside
    /// it no fewer come.
    #[test]
    fn lwip_gets_its_blocks_sooner_by_the_relay() {
        let of = |relays| run(&SETTINGS[1], Around::DEFAULT, relays, 1).unwrap();
        let [plain, relayed] = [false, true].map(of);
        assert!(
            relayed.done_s <= SETTINGS[1].must * plain.done_s,
            "{plain:?}, {relayed:?}"
        );
        assert!(relayed.delivery >= plain.delivery, "{plain:?}, {relayed:?}");
    }
}
