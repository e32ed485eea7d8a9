//! The border router's fairness, between the mesh and the wire.
//!
//! Purpose: keeps the packets that `motet-taim` holds, and checks that each comes out unchanged,
//! once, and in the order of its flow, unless the router drops it.
//! Place: `world` passes each packet on the border router's wire to it, and calls it again at its
//! deadline.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::ipv6::Header;
use motet::wire::{tcp, udp};
use motet_taim::{Config, Decision, Direction, Gate, KeptPacket, PacketId, Router, Status};

use crate::net::plan;

/// A policy at the border router, with the packets that it holds.
#[derive(Debug)]
pub struct Fairness {
    gate: Gate,
    /// The prefix of motes over Bluetooth LE beside a mesh, of 64 bits, where there are some.
    beside: Option<Ipv6Addr>,
    /// When the router is called again.
    planned: Option<Instant>,
    /// For each mote, the number of its packets that are held, and the number of its TCP timeouts
    /// before the first of them was held.
    motes: BTreeMap<usize, (u32, u16)>,
    timeouts_held: u64,
    /// The last packet of each flow that came out.
    last: BTreeMap<FlowKey, PacketId>,
    ledger: Ledger,
}

/// Counts of the packets that went into the router and came out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Packets that went in.
    pub entered: u64,
    /// Packets that came out.
    pub left: u64,
    /// Packets of strangers that were dropped, and duplicate ACKs that copies have answered.
    pub dropped: u64,
    /// Copies that were made.
    pub copies: u64,
    /// UDP datagrams out of the mesh and into it, by [`Direction`].
    pub datagrams: [Datagrams; 2],
    /// Packets that came out behind one of their flow that had gone in later.
    pub disordered: u64,
    /// The sum of the hashes of all packets that went in.
    content_in: u64,
    /// The sum of the hashes of packets that came out, or were dropped.
    content_out: u64,
}

/// Counts of UDP datagrams in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Datagrams {
    /// Those that went into the router.
    pub entered: u64,
    /// How many of these it held.
    pub held: u64,
}

impl Fairness {
    /// A router that has seen no packet. `beside`: the prefix of 64 bits of motes that take nothing
    /// of the mesh's air, whose packets pass it.
    pub fn new(config: Config, beside: Option<Ipv6Addr>) -> Self {
        Self {
            gate: Gate::new(config),
            beside,
            planned: None,
            motes: BTreeMap::new(),
            timeouts_held: 0,
            last: BTreeMap::new(),
            ledger: Ledger::default(),
        }
    }

    /// The router that decides which packets are held.
    pub fn router(&self) -> &Router {
        self.gate.router()
    }

    /// All that the router knows of flows and motes.
    pub fn status(&mut self, now: Instant) -> Status {
        self.gate.status(now)
    }

    /// Whether all packets that went in have come out unchanged, except those that are held now.
    pub fn is_balanced(&self) -> bool {
        let held = self.gate.kept().map(content);
        let held = held.fold(0, u64::wrapping_add);
        let kept = self.gate.kept().len();
        let Ledger {
            entered,
            left,
            dropped,
            content_in,
            content_out,
            ..
        } = self.ledger;
        entered == left + dropped + kept as u64
            && content_in == content_out.wrapping_add(held)
            && kept == self.gate.router().held()
    }

    /// Retransmission timeouts that came while a packet of the mote was held.
    pub fn timeouts_held(&self) -> u64 {
        self.timeouts_held
    }

    /// The counts of the packets that went in and came out.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Whether a packet passes now; otherwise it is kept.
    ///
    /// `timeouts`: how many retransmission timeouts a mote has had.
    pub(super) fn offer(
        &mut self,
        direction: Direction,
        packet: &[u8],
        now: Instant,
        timeouts: impl Fn(usize) -> u16,
    ) -> bool {
        if self.is_beside_mesh(direction, packet) {
            return true;
        }
        self.ledger.entered += 1;
        self.ledger.content_in = self.ledger.content_in.wrapping_add(content(packet));
        let (id, decision) = self.gate.offer(direction, packet, now);
        let is_held = decision == Decision::Hold;
        if is_udp(packet) {
            let datagrams = &mut self.ledger.datagrams[direction as usize];
            datagrams.entered += 1;
            datagrams.held += u64::from(is_held);
        }
        match decision {
            Decision::Pass => {
                self.note_left(id, packet);
                true
            }
            Decision::Hold => {
                if let Some(mote) = mote(direction, packet) {
                    let (held, _) = self.motes.entry(mote).or_insert((0, timeouts(mote)));
                    *held += 1;
                }
                false
            }
        }
    }

    /// A packet that goes into the mesh besides, before those of [`Self::poll`]: a copy of one that
    /// has passed.
    pub(super) fn poll_copy(&mut self, now: Instant) -> Option<Box<[u8]>> {
        let copy = self.gate.poll_copy(now)?;
        self.ledger.copies += 1;
        Some(copy.into())
    }

    /// Whether a packet is of a mote over Bluetooth LE beside a mesh, which takes nothing of its
    /// air.
    fn is_beside_mesh(&self, direction: Direction, packet: &[u8]) -> bool {
        let prefix = |addr: Ipv6Addr| addr.to_bits() >> 64;
        let mote = mote_addr(direction, packet).map(prefix);
        self.beside.map(prefix).is_some_and(|it| mote == Some(it))
    }

    /// The next packet that goes now.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        timeouts: impl Fn(usize) -> u16,
    ) -> Option<(Direction, Box<[u8]>)> {
        let next = self.gate.poll(now);
        while let Some(dropped) = self.gate.poll_dropped() {
            self.note_let_out(&dropped, &timeouts);
            self.ledger.dropped += 1;
            let content = content(&dropped.bytes);
            self.ledger.content_out = self.ledger.content_out.wrapping_add(content);
        }
        let packet = next?;
        self.note_let_out(&packet, &timeouts);
        self.note_left(packet.id, &packet.bytes);
        Some((packet.direction, packet.bytes))
    }

    /// A packet is kept no longer.
    fn note_let_out(&mut self, packet: &KeptPacket, timeouts: impl Fn(usize) -> u16) {
        if let Some(mote) = mote(packet.direction, &packet.bytes)
            && let Some((held, before)) = self.motes.get_mut(&mote)
        {
            *held -= 1;
            if *held == 0 {
                self.timeouts_held += u64::from(timeouts(mote).saturating_sub(*before));
                self.motes.remove(&mote);
            }
        }
    }

    /// When the router has to be called again, unless that is planned already.
    pub(super) fn plan(&mut self, now: Instant) -> Option<Instant> {
        // What is due by then has gone.
        let at = self.gate.router().next_deadline()?.max(now + TICK);
        let is_new = self.planned.is_none_or(|planned| at < planned);
        is_new.then(|| {
            self.planned = Some(at);
            at
        })
    }

    /// A call that was planned.
    pub(super) fn on_due(&mut self, now: Instant) {
        if self.planned.is_some_and(|planned| planned <= now) {
            self.planned = None;
        }
    }

    /// Lets all held packets go.
    pub(super) fn end(&mut self) {
        self.gate.release_all();
    }

    fn note_left(&mut self, id: PacketId, packet: &[u8]) {
        self.ledger.left += 1;
        if self.last.len() >= FLOWS_MAX {
            self.last.clear();
        }
        if let Some(flow) = flow_of(packet) {
            let last = self.last.entry(flow).or_insert(id);
            self.ledger.disordered += u64::from(*last > id);
            *last = id.max(*last);
        }
        self.ledger.content_out = self.ledger.content_out.wrapping_add(content(packet));
    }
}

/// The mote of the mesh that a packet is from, or for.
fn mote(direction: Direction, packet: &[u8]) -> Option<usize> {
    plan::mesh_node(mote_addr(direction, packet)?)
}

/// The address of a packet on the side of the motes.
fn mote_addr(direction: Direction, packet: &[u8]) -> Option<Ipv6Addr> {
    let (header, _) = Header::parse_start(packet).ok()?;
    Some(match direction {
        Direction::Up => header.src,
        Direction::Down => header.dst,
    })
}

/// The ends of a connection: addresses, and the bytes of its ports.
type FlowKey = (Ipv6Addr, Ipv6Addr, [u8; 4]);

/// The flow that a packet of TCP is of.
fn flow_of(packet: &[u8]) -> Option<FlowKey> {
    let (header, payload) = Header::parse_start(packet).ok()?;
    let is_tcp = header.next_header == tcp::NEXT_HEADER;
    let ports = payload.first_chunk().filter(|_| is_tcp)?;
    Some((header.src, header.dst, *ports))
}

fn is_udp(packet: &[u8]) -> bool {
    let header = Header::parse_start(packet);
    header.is_ok_and(|(header, _)| header.next_header == udp::NEXT_HEADER)
}

/// Flows whose order is watched at a time.
const FLOWS_MAX: usize = 4_096;

/// The shortest time between two calls.
const TICK: Duration = Duration::from_micros(1);

/// A hash of a packet's content.
fn content(packet: &[u8]) -> u64 {
    // Its keys are constants: the same packet gives the same number in every run.
    let mut hasher = DefaultHasher::new();
    packet.hash(&mut hasher);
    hasher.finish()
}
