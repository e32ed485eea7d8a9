//! The CIT paper's bulk protocol: packets at a fixed rate along a chain, nothing repeated.
//!
//! Purpose: what a radio and its driver can carry, with no other protocol in between. The MACs are
//! the stack's; above them a source sends numbered packets, relays pass them on, by copy or by
//! conditional immediate transmission, and a sink counts. All nodes hear each other. The highest
//! rate at which every packet arrives is what the paper calls throughput.
//! Left out: recovery, flow control, ACKs, address assignment: node n has short address n.
//! Source: Conditional immediate transmission, §3 and §5. Differs: packets carry an IEEE 802.15.4
//! header, and radios filter by its address.

use motet::link::Forwarding;
use motet::mac::{Channels, Class, Condition, Config, Frame, FrameSlot, Mac, Neighbor, Protocol};
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::FCS_LEN;

use super::run::{Failure, Flow, Run};
use super::setup::{Segment, Setup};
use super::traffic::Traffic;
use crate::Arena;
use crate::air::filter::{self, Filter};
use crate::air::gains::Gains;
use crate::air::medium::{FrameId, Medium, Placement};
use crate::air::phy;
use crate::air::radio::{IncomingFrame, Radio};
use crate::air::{Air, Event};
use crate::net::bound::raw_kbps;
use crate::net::network::{NetworkOptions, NodeOptions};
use crate::net::plan;
use crate::streams::{Purpose, happens, stream};

/// Packets of one size through a chain; the settings of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// Bytes of a frame, FCS included.
    pub psdu_len: usize,
    /// Whether the channel is assessed before a frame that nothing fired.
    pub assessed: bool,
    /// The measurement.
    pub measure: Measure,
}

/// The figure that is measured on a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// The highest rate at which every packet arrives.
    Throughput,
    /// The time of one packet from end to end, both ends' copies included.
    Latency,
}

/// How the packets of a batch went through the chain.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// When each packet arrived, in order; a packet that came twice, or before its turn, ends
    /// the batch.
    pub arrivals: Vec<Instant>,
    /// Packets fired by their condition.
    pub immediate: u32,
    /// Packets that waited too long for it.
    pub flushed: u32,
    /// Frames that were copied into a radio again.
    pub reloads: u32,
    /// Frames on the air.
    pub transmissions: u32,
}

/// Packets of one batch: the paper's.
pub const PACKETS: u32 = 1_000;

/// The MAC's header with short addresses, and the FCS.
pub const OVERHEAD: usize = 11;

impl Bulk {
    /// The paper's: full frames, with assessment, for throughput.
    pub const FULL: Self = Self {
        psdu_len: motet::limits::PSDU_LEN_MAX,
        assessed: true,
        measure: Measure::Throughput,
    };

    /// Bits that the paper counts of a packet: all of the MPDU but the FCS.
    pub const fn bits(&self) -> usize {
        (self.psdu_len - FCS_LEN) * 8
    }

    /// The highest rate at which every packet arrives, kb/s; `None` where even the lowest one
    /// loses some.
    ///
    /// As the paper does, from a low rate up to the first loss: a rate beyond it at which
    /// copies and frames happen to interleave does not count.
    pub fn throughput_kbps(&self, chain: &NetworkOptions, seed: u64) -> Option<f64> {
        let serial = self
            .serial_hop(chain)
            .saturating_mul(chain.nodes.len() as u64);
        let arrives = |us: u64, packets| {
            let batch = self.batch(chain, Duration::from_micros(us), packets, seed);
            (batch.arrivals.len() == packets as usize).then_some(batch)
        };
        let climb = |from: u64, per_mille: u64, packets| {
            let mut best = None;
            let mut us = from;
            while let Some(batch) = arrives(us, packets) {
                best = Some((us, batch));
                us -= (us * per_mille / 1_000).max(1);
            }
            best
        };
        let (near, _) = climb(serial.as_micros(), 30, PACKETS / 10)?;
        // A long batch may fail where queues saved the short one.
        let (_, batch) =
            (1..5).find_map(|step| climb(near + near * step * 30 / 1_000, 2, PACKETS))?;
        let [first, .., last] = batch.arrivals[..] else {
            return None;
        };
        let bits = self.bits() as f64 * f64::from(PACKETS - 1);
        Some(bits * 1_000.0 / last.since(first).as_micros() as f64)
    }

    /// The time of one packet over the chain, ms: the mean of several; `None` where one is
    /// lost.
    ///
    /// With CIT every relay holds its packet before, and the one that arrives fires it.
    pub fn latency_ms(&self, chain: &NetworkOptions, seed: u64) -> Option<f64> {
        let arena = Arena::new();
        let mut links = Links::new(self, chain, seed, &arena);
        let mut sum = 0.0;
        for number in 0..LATENCY_SAMPLES {
            links.arm_all(number);
            links.run_until(links.now() + SETTLE);
            let sent_at = links.now();
            links.send(number);
            links.run_until(sent_at + IDLE);
            let arrived_at = links.batch.arrivals.get(number as usize)?;
            sum += arrived_at.since(sent_at).as_micros() as f64;
        }
        Some(sum / f64::from(LATENCY_SAMPLES) / 1_000.0)
    }

    /// Sends `packets` packets, one every `interval`, and after them as many more as relays
    /// hold back: these push the others on.
    pub fn batch(
        &self,
        chain: &NetworkOptions,
        interval: Duration,
        packets: u32,
        seed: u64,
    ) -> Batch {
        let arena = Arena::new();
        let mut links = Links::new(self, chain, seed, &arena);
        links.run_until(Instant::ORIGIN + IDLE);
        for number in 0..packets + hops(chain) as u32 {
            if !links.is_sound {
                break;
            }
            links.send(number);
            links.run_until(links.now() + interval);
        }
        links.run_until(links.now() + IDLE);
        links.finish(packets)
    }

    /// One hop with nothing overlapped: both copies, and all that the driver does.
    fn serial_hop(&self, chain: &NetworkOptions) -> Duration {
        let profile = &mote(chain).profile;
        profile.transmit_copy(self.psdu_len)
            + profile.receive_copy(self.psdu_len)
            + profile.handle
            + phy::CCA
            + profile.prepare
            + profile.jitter
            + phy::TURNAROUND
            + phy::air_time(self.psdu_len)
            + profile.capabilities.channel_switch
            + profile.capabilities.channel_switch
    }
}

impl Traffic for Bulk {
    fn run(&self, setup: &Setup, seed: u64, _seconds: u64) -> Result<Run, Failure> {
        let (chain, mut flow) = (setup.network(seed)?, Flow::default());
        match self.measure {
            Measure::Throughput => {
                let throughput = self.throughput_kbps(&chain, seed);
                flow.goodput_kbps = throughput.ok_or(Failure::PacketsLost)?;
            }
            Measure::Latency => {
                let latency = self.latency_ms(&chain, seed);
                flow.rtt_ms = latency.ok_or(Failure::PacketsLost)?;
            }
        }
        Ok(Run {
            flows: vec![flow],
            ..Run::default()
        })
    }

    /// A packet has no headers: its payload is the whole frame.
    fn segment(&self, setup: &Setup, _: u64) -> Segment {
        let bound = setup.network(1).map(|chain| {
            let is_multi = mote(&chain).mac.channels != Channels::SINGLE;
            raw_kbps(self.psdu_len, hops(&chain), is_multi)
        });
        Segment {
            payload_len: self.psdu_len,
            bound: bound.ok(),
            estimate: None,
        }
    }
}

/// MACs on one air, and the protocol above them.
struct Links<'m> {
    bulk: Bulk,
    forwarding: Forwarding,
    frame_loss: f64,
    air: Air,
    nodes: Vec<Link<'m>>,
    batch: Batch,
    /// No packet has been lost, doubled or moved so far.
    is_sound: bool,
    /// Whether relays forward arriving packets; in a latency run their packets are queued in
    /// advance.
    passes_on: bool,
}

struct Link<'m> {
    mac: Mac<'m>,
    radio: Radio,
    rng: Rng,
    loss: Rng,
    deadline: Option<Instant>,
    resumes: Option<Instant>,
}

impl<'m> Links<'m> {
    fn new(bulk: &Bulk, chain: &NetworkOptions, seed: u64, arena: &'m Arena) -> Self {
        let (nodes, profile) = (chain.nodes.len(), mote(chain).profile);
        let forwarding = mote(chain).forwarding;
        let gains = Gains::from_fn(nodes, |_, _| {
            crate::air::gains::ChainAir::CALIBRATED.one_hop_db
        });
        let placement = Placement {
            transmit_dbm: profile.transmit_dbm,
            noise_dbm: profile.noise_dbm(),
            channel: plan::CHANNEL,
        };
        let medium = Medium::new(&gains, &vec![placement; nodes]);
        let addresses = (0..nodes).map(|node| (addr(node), node));
        let mut links = Self {
            bulk: *bulk,
            forwarding,
            frame_loss: chain.frame_loss,
            air: Air::new(medium, addresses),
            nodes: (0..nodes)
                .map(|node| Link::new(node, bulk, mote(chain), seed, arena))
                .collect(),
            batch: Batch::default(),
            is_sound: true,
            passes_on: bulk.measure == Measure::Throughput || forwarding == Forwarding::Copy,
        };
        for node in 0..nodes {
            links.drive(node, Instant::ORIGIN);
        }
        links
    }

    fn now(&self) -> Instant {
        self.air.calendar.now()
    }

    /// The source takes packet `number`.
    fn send(&mut self, number: u32) {
        let packet = self.packet(number);
        let now = self.now();
        let frame = frame(1, &packet, Class::Own, now);
        self.is_sound &= self.nodes[0].mac.enqueue(&frame).is_ok();
        self.drive(0, now);
    }

    /// Every relay that can has packet `number` wait for the one that arrives.
    fn arm_all(&mut self, number: u32) {
        if self.passes_on {
            return;
        }
        let packet = self.packet(number);
        for relay in 1..self.nodes.len() - 1 {
            self.enqueue(relay, &packet);
            self.drive(relay, self.now());
        }
    }

    fn packet(&self, number: u32) -> Vec<u8> {
        let mut packet = vec![BULK];
        packet.extend(number.to_be_bytes());
        packet.resize(self.bulk.psdu_len - OVERHEAD, 0);
        packet
    }

    fn enqueue(&mut self, relay: usize, packet: &[u8]) {
        let now = self.now();
        let mac = &mut self.nodes[relay].mac;
        let frame = frame(relay + 1, packet, Class::Forward, now);
        let queued = if self.forwarding == Forwarding::Copy {
            mac.enqueue(&frame)
        } else {
            let condition = Condition {
                from: addr(relay - 1),
                protocol: Protocol::byte(BULK),
            };
            mac.enqueue_conditional(&frame, condition, now + HELD_MAX)
        };
        self.is_sound &= queued.is_ok();
    }

    fn run_until(&mut self, until: Instant) {
        while let Some((now, event)) = self.air.calendar.pop_until(until) {
            match event {
                Event::Deadline { mote } => {
                    self.nodes[mote].deadline = None;
                    self.drive(mote, now);
                }
                Event::Resume { mote } => {
                    self.nodes[mote].resumes = None;
                    self.drive(mote, now);
                }
                Event::Radio { place: mote, due } => {
                    self.nodes[mote].radio.on_due(due, &mut self.air, now);
                    self.drive(mote, now);
                }
                Event::FrameEnd { id } => self.end_frame(id, now),
                Event::Packet(_) | Event::Gain(_) | Event::Attack { .. } | Event::Release => {}
            }
        }
        self.air.calendar.advance_to(until);
    }

    fn end_frame(&mut self, id: FrameId, now: Instant) {
        let mut receptions = Vec::new();
        let Some(finished) = self.air.medium.finish(id, now, &mut receptions) else {
            return;
        };
        let sender = finished.from;
        let header = filter::header(finished.frame.psdu());
        let sent = header.as_ref();
        self.nodes[sender].radio.on_sent(sent, &mut self.air, now);
        for reception in &receptions {
            let Link { radio, loss, .. } = &mut self.nodes[reception.at];
            let arrives = happens(loss, reception.survival)
                && !(self.frame_loss > 0.0 && happens(loss, self.frame_loss));
            let heard = header
                .as_ref()
                .filter(|_| arrives)
                .map(|header| IncomingFrame {
                    frame: &finished.frame,
                    header,
                    power: reception.power,
                    from: sender,
                });
            radio.on_reception(heard, &mut self.air, now);
        }
        self.drive(sender, now);
        for reception in &receptions {
            self.drive(reception.at, now);
        }
    }

    /// Passes the radio's events to the MAC, and carries out the MAC's actions.
    fn drive(&mut self, node: usize, now: Instant) {
        let Link { radio, resumes, .. } = &mut self.nodes[node];
        let free_at = radio.cpu_free_at();
        if free_at > now {
            if resumes.is_none_or(|planned| free_at < planned) {
                *resumes = Some(free_at);
                self.air
                    .calendar
                    .schedule(free_at, Event::Resume { mote: node });
            }
            return;
        }
        let mut out = [0; motet::limits::PSDU_LEN_MAX];
        loop {
            let Link {
                mac, radio, rng, ..
            } = &mut self.nodes[node];
            if let Some(output) = radio.poll_output(&mut self.air, now) {
                let packet = output.tell(|event| {
                    let received = mac.on_event(event, now, rng)?;
                    Some(received.payload.to_vec())
                });
                if let Some(packet) = packet {
                    self.on_packet(node, &packet, now);
                }
            } else if let Some(action) = mac.poll_action(now, rng, &mut out) {
                radio.command(action, &out, &mut self.air, now);
            } else if mac.poll_outcome().is_none() {
                break;
            }
        }
        let Link { mac, deadline, .. } = &mut self.nodes[node];
        if let Some(at) = mac.next_deadline()
            && deadline.is_none_or(|planned| at < planned)
        {
            *deadline = Some(at);
            let at = at.max(now + Duration::from_micros(1));
            self.air
                .calendar
                .schedule(at, Event::Deadline { mote: node });
        }
    }

    /// A packet came in: counted at the sink, passed on elsewhere.
    fn on_packet(&mut self, node: usize, packet: &[u8], now: Instant) {
        let Some((_, rest)) = packet.split_first() else {
            return;
        };
        let number = rest.first_chunk().map(|word| u32::from_be_bytes(*word));
        if node + 1 == self.nodes.len() {
            let expected = self.batch.arrivals.len() as u32;
            self.is_sound &= number == Some(expected);
            if self.is_sound {
                self.batch.arrivals.push(now);
            }
        } else if self.passes_on {
            self.enqueue(node, packet);
        }
    }

    fn finish(mut self, packets: u32) -> Batch {
        self.batch.arrivals.truncate(packets as usize);
        for Link { mac, .. } in &self.nodes {
            let counters = mac.counters();
            self.batch.immediate += counters.immediate;
            self.batch.flushed += counters.flushed;
            self.batch.reloads += counters.reloads;
            self.batch.transmissions += counters.transmissions;
        }
        self.batch
    }
}

impl<'m> Link<'m> {
    fn new(node: usize, bulk: &Bulk, options: &NodeOptions, seed: u64, arena: &'m Arena) -> Self {
        // Lossless: chains are short.
        let number = node as u16;
        let config = Config {
            short: Some(number),
            short_source: true,
            channel: plan::CHANNEL,
            channels: options.mac.channels,
            // What is lost is lost: no backoff, no second attempt, no ACK.
            be_min: 0,
            be_max: 0,
            csma_backoffs_max: 0,
            attempts_max: 1,
            acknowledged: false,
            assessed: bulk.assessed,
            // Nor the standard's spacing: 220 kb/s over one hop without copies (Fig 3) leave
            // 0.36 ms between a source's frames, and LIFS takes 0.64.
            sifs: Duration::ZERO,
            lifs: Duration::ZERO,
            // As published.
            retry_doubles: false,
            ..Config::new(plan::PAN, plan::eui64(number))
        };
        let mut rng = stream(seed, u32::from(number), Purpose::Stack);
        let slots = arena.alloc_slice_fill_with(options.tables.queue_frames, |_| FrameSlot::EMPTY);
        let neighbors = arena.alloc_slice_fill_with(2, |_| Neighbor::EMPTY);
        let filter = Filter {
            pan: plan::PAN,
            extended: plan::eui64(number),
            short: Some(number),
        };
        let jitter = stream(seed, u32::from(number), Purpose::CpuJitter);
        let profile = options.profile;
        let mac = Mac::new(config, profile.capabilities, slots, neighbors, &mut rng);
        Self {
            mac: mac.expect("profiles of the lab fit all settings"),
            radio: Radio::new(node, profile, filter, jitter),
            rng,
            loss: stream(seed, u32::from(number), Purpose::Reception),
            deadline: None,
            resumes: None,
        }
    }
}

/// The node that every node of a chain is like.
fn mote(chain: &NetworkOptions) -> &NodeOptions {
    &chain.nodes[0]
}

/// Radio hops of a chain.
fn hops(chain: &NetworkOptions) -> usize {
    chain.nodes.len() - 1
}

/// The short address of a node.
fn addr(node: usize) -> LinkAddr {
    LinkAddr::Short(node as u16)
}

/// A packet in one frame to a node.
fn frame(to: usize, payload: &[u8], class: Class, since: Instant) -> Frame<'_> {
    Frame {
        to: addr(to),
        token: 0,
        payload,
        class,
        since,
    }
}

/// The protocol's own first byte: no 6LoWPAN frame begins with it (RFC 4944 §5.1).
const BULK: u8 = 0x2c;

/// Longer than any packet takes over the longest chain, and than any interval.
const IDLE: Duration = Duration::from_millis(500);

/// How long a packet waits for the next: longer than any interval, so that only the last ones
/// do in vain.
const HELD_MAX: Duration = Duration::from_millis(400);

/// Enough for every relay to copy its packet.
const SETTLE: Duration = Duration::from_millis(50);

/// Driver times vary: a few packets for the mean.
const LATENCY_SAMPLES: u32 = 20;

#[cfg(test)]
#[path = "tests/bulk.rs"]
mod tests;
