//! Nodes on an ideal air: a host, a border router and a chain of motes.
//!
//! Frames reach every neighbour after their air time; nothing is lost unless a test says so.
//! The lab has the real air; here only the joints between layers are under test.

mod budget;
mod compression;
mod discovery;
mod driver;
mod errors;
#[cfg(feature = "fragments")]
mod fragments;
mod hostile;
#[cfg(feature = "join")]
mod joining;
#[cfg(feature = "rpl")]
mod leaves;
mod links;
mod marking;
#[cfg(feature = "offload")]
mod offload;
mod registration;
mod routers;
#[cfg(feature = "rpl")]
mod routing;
mod secrets;
#[cfg(feature = "rpl")]
mod source_routes;
mod strangers;
mod streams;
#[cfg(all(feature = "thread", feature = "tcp-small", feature = "offload"))]
mod thread;
mod work;
mod zones;

use super::*;
use crate::ip;
use crate::ip::{Address, Config as IpConfig, Neighbour, NextHop, Prefix, Registration, Route};
use crate::limits::PSDU_LEN_MAX;
use crate::link::{
    Advertised, Cable, Forwarding, LinkDrop, Mesh, MeshConfig, MeshMemory, Pacing, Relaying,
};
use crate::lowpan::{self, TcpForm, datagram, datagram::Record};
use crate::mac;
use crate::mac::{FrameSlot, Neighbor, RadioCapabilities, RxMeta};
use crate::tally::Tally;
use crate::tcp::{self, Buffers, HalfOpen, Listener, Memory, RecvError, SendError, Slot};
use crate::tcphc::{self, Tcphc};
use crate::time::{Duration, earliest};
use crate::wire::LinkAddr;
use crate::wire::icmpv6::{self, Echo, Message};
use crate::wire::ipv6::{self, Header, TrafficClass};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

/// Connections that a node has room for.
const SLOTS: usize = 4;
const RADIO: InterfaceId = InterfaceId(0);
const WIRE: InterfaceId = InterfaceId(1);
const MESH: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
/// Patient: what is under test here is the layers below, not TCP's timers.
static SETTINGS: tcp::Config = tcp::Config {
    ack_every: 1,
    rto_min_ms: 1_000,
    tail_loss_probe: false,
    ..tcp::Config::DEFAULT
};

fn memory<T: Clone>(value: T, count: usize) -> &'static mut [T] {
    Box::leak(std::vec![value; count].into_boxed_slice())
}

fn eui(n: usize) -> [u8; 8] {
    [2, 0, 0, 0, 0, 0, 0, n as u8 + 1]
}

fn link(n: usize) -> LinkAddr {
    LinkAddr::Extended(eui(n))
}

fn global(n: usize) -> Ipv6Addr {
    ip::with_iid(&MESH, link(n).iid())
}

fn tcp_engine(rng: &mut Rng) -> Tcp<'static> {
    let connections = (0..SLOTS).map(|_| Slot::EMPTY).collect::<Vec<_>>();
    let memory = Memory {
        connections: Vec::leak(connections),
        listeners: memory(Listener::EMPTY, 2),
        half_open: memory(HalfOpen::EMPTY, 2),
    };
    Tcp::new(memory, rng)
}

fn radio(
    n: usize,
    config: MeshConfig,
    retry_delay_max: Duration,
    slots: usize,
    rng: &mut Rng,
) -> Link<'static> {
    let capabilities = RadioCapabilities {
        auto_ack: false,
        ..RadioCapabilities::CC2420
    };
    radio_with(capabilities, n, config, retry_delay_max, slots, rng)
}

fn radio_with(
    capabilities: RadioCapabilities,
    n: usize,
    config: MeshConfig,
    retry_delay_max: Duration,
    slots: usize,
    rng: &mut Rng,
) -> Link<'static> {
    let mac = mac::Config {
        retry_delay_max,
        ..mac::Config::new(0x4d54, eui(n))
    };
    // How long neighbours are left alone, and d, are what a test says.
    let config = MeshConfig {
        pacing: Pacing::default(),
        ..config
    };
    let memory = mesh_memory(slots, 4);
    Link::Mesh(Mesh::new(config, (mac, capabilities), memory, rng).unwrap())
}

/// Room for so many frames that wait, and packets that are gathered.
fn mesh_memory(frames: usize, bodies: usize) -> MeshMemory<'static> {
    memory_for(frames, (bodies, IPV6_MTU_MIN))
}

/// As [`mesh_memory`], for packets of so many bytes each.
fn memory_for(frames: usize, (bodies, packet_len_max): (usize, usize)) -> MeshMemory<'static> {
    MeshMemory {
        frames: memory(FrameSlot::EMPTY, frames),
        neighbors: memory(Neighbor::EMPTY, 4),
        records: memory(Record::EMPTY, 8),
        bodies: memory(0, bodies * packet_len_max),
        body_len: packet_len_max,
        outgoing: memory(0, packet_len_max),
        queue: memory(0, 8192),
        registrations: memory(Registration::EMPTY, 4),
    }
}

/// A compressor of a border router, node 0, or a mote; `learned`: it agrees on compression.
fn tcphc_table(n: usize, learned: bool, rng: &mut Rng) -> &'static mut Tcphc<'static> {
    let config = tcphc::Config {
        end: match n {
            0 => tcphc::End::Router,
            _ => tcphc::End::Mote,
        },
        quiet: Duration::ZERO,
        learned,
        ..tcphc::Config::default()
    };
    let contexts = memory(tcphc::Context::EMPTY, 4);
    Box::leak(Box::new(Tcphc::new(contexts, config, Instant::ORIGIN, rng)))
}

/// The way to [`HOST`] and its neighbours beyond a border router.
fn route_to_host() -> Route {
    let (addr, len) = (HOST, 64);
    Route {
        prefix: Prefix { addr, len },
        next_hop: NextHop {
            interface: WIRE,
            neighbour: Neighbour::Only,
        },
    }
}

fn wire() -> Link<'static> {
    Link::Cable(Cable::new(memory(0, 8192), 1500))
}

/// What the air holds: an event for a node at a time.
enum Pending {
    Frame(Vec<u8>),
    Radio(mac::Event<'static>),
    Packet(Vec<u8>),
}

/// Host = node `len`, border router = 0, motes 1 to `hops`; all in virtual time.
struct World {
    nodes: Vec<Node<'static>>,
    hops: usize,
    now: Instant,
    /// The work of each, in its driver's calls.
    tallies: Vec<Tally>,
    events: BTreeMap<(Instant, u64), (usize, InterfaceId, Pending)>,
    sequence: u64,
    /// Preloaded frame of each node.
    loaded: Vec<Vec<u8>>,
    frames: Vec<(usize, Vec<u8>)>,
    /// Frames that the sender of each had fired by a condition, it included.
    immediate: Vec<u32>,
    /// Until when the air is taken: every node senses every other.
    busy_until: Instant,
    /// Loses the n-th frame of more than 30 bytes, once.
    lose: Option<usize>,
    /// A node that hears nothing for some time.
    deaf: Option<(usize, core::ops::Range<Instant>)>,
}

impl World {
    fn chain(hops: usize, relaying: Relaying) -> Self {
        // More slots than a window of 2 KiB needs: no relay drops for want of room here.
        Self::with_queue(hops, relaying, mac::config::RETRY_DELAY_MAX, 32)
    }

    /// A chain in which these nodes compress TCP headers.
    fn compressing(hops: usize, relaying: Relaying, ends: &[usize]) -> Self {
        let delay = mac::config::RETRY_DELAY_MAX;
        Self::build(hops, relaying, delay, 32, (ends, false))
    }

    /// A chain in which these nodes compress TCP headers towards those that they agree with.
    fn agreeing(hops: usize, relaying: Relaying, ends: &[usize]) -> Self {
        let delay = mac::config::RETRY_DELAY_MAX;
        Self::build(hops, relaying, delay, 32, (ends, true))
    }

    fn with_queue(
        hops: usize,
        relaying: Relaying,
        retry_delay_max: Duration,
        slots: usize,
    ) -> Self {
        Self::build(hops, relaying, retry_delay_max, slots, (&[], false))
    }

    fn build(
        hops: usize,
        relaying: Relaying,
        retry_delay_max: Duration,
        slots: usize,
        (compressing, agrees): (&[usize], bool),
    ) -> Self {
        let mut nodes = Vec::new();
        for n in 0..=hops {
            let mut rng = Rng::from_seed([7, n as u64]);
            let advertised = Advertised {
                prefix: MESH,
                lifetime: Advertised::LIFETIME,
            };
            let config = MeshConfig {
                relaying,
                parent: (n > 0).then(|| link(n - 1)),
                solicits: n > 0,
                advertised: (n == 0).then_some(advertised),
                ..MeshConfig::default()
            };
            let mut interface = radio(n, config, retry_delay_max, slots, &mut rng);
            if let Link::Mesh(radio) = &mut interface
                && n == 0
            {
                radio.contexts_mut().set(0, MESH, 64, true);
                radio.contexts_mut().set(1, HOST, 128, true);
            }
            if let Link::Mesh(radio) = &mut interface
                && compressing.contains(&n)
            {
                radio.set_tcphc(tcphc_table(n, agrees, &mut rng));
            }
            let mut interfaces = std::vec![interface];
            if n == 0 {
                interfaces.push(wire());
            }
            let mut ip = Ip::new(
                IpConfig {
                    forwards: true,
                    ..IpConfig::default()
                },
                memory(None, 8),
            );
            for below in n + 1..=hops {
                let next_hop = NextHop {
                    interface: RADIO,
                    neighbour: Neighbour::One(link(n + 1).iid()),
                };
                assert!(ip.add_route(Route {
                    prefix: Prefix::host(global(below)),
                    next_hop
                }));
            }
            if n == 0 {
                let addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
                ip.add_address(Address {
                    addr,
                    interface: WIRE,
                });
                let prefix = Prefix {
                    addr: HOST,
                    len: 64,
                };
                let next_hop = NextHop {
                    interface: WIRE,
                    neighbour: Neighbour::Only,
                };
                ip.add_route(Route { prefix, next_hop });
            }
            let tcp = tcp_engine(&mut rng);
            nodes.push(Node::new(
                Vec::leak(interfaces),
                ip,
                tcp,
                rng,
                Instant::ORIGIN,
            ));
        }
        let mut world = Self::of(nodes, hops);
        world.poll_all();
        // Time to join, and to register.
        world.run_for(Duration::from_secs(10));
        world
    }

    /// Border router and motes, and a host of its own for them.
    fn of(mut nodes: Vec<Node<'static>>, hops: usize) -> Self {
        let mut rng = Rng::from_seed([7, 99]);
        let mut ip = Ip::new(IpConfig::default(), memory(None, 2));
        ip.add_address(Address {
            addr: HOST,
            interface: RADIO,
        });
        ip.set_default_route(Some(NextHop {
            interface: RADIO,
            neighbour: Neighbour::Only,
        }));
        let tcp = tcp_engine(&mut rng);
        nodes.push(Node::new(
            Vec::leak(std::vec![wire()]),
            ip,
            tcp,
            rng,
            Instant::ORIGIN,
        ));
        let loaded = std::vec![Vec::new(); nodes.len()];
        Self {
            tallies: std::vec![Tally::default(); nodes.len()],
            nodes,
            hops,
            now: Instant::ORIGIN,
            events: BTreeMap::new(),
            sequence: 0,
            loaded,
            frames: Vec::new(),
            immediate: Vec::new(),
            busy_until: Instant::ORIGIN,
            lose: None,
            deaf: None,
        }
    }

    fn host(&self) -> usize {
        self.hops + 1
    }

    fn at(&mut self, delay: Duration, node: usize, interface: InterfaceId, pending: Pending) {
        self.sequence += 1;
        self.events.insert(
            (self.now + delay, self.sequence),
            (node, interface, pending),
        );
    }

    fn poll_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.poll(node);
        }
    }

    fn poll(&mut self, node: usize) {
        let mut out = [0; ACTION_LEN_MAX];
        let mut rounds = 0;
        loop {
            let (polled, now) = (&mut self.nodes[node], self.now);
            let action = self.tallies[node].add(|| polled.poll_action(now, &mut out));
            let Some((interface, action)) = action else {
                break;
            };
            rounds += 1;
            assert!(rounds < 1_000, "node {node} never rests at {:?}", self.now);
            if let Action::Mesh(action) = action {
                self.radio(node, interface, action, &out);
                continue;
            }
            let Action::Cable { len } = action else {
                panic!("a link that no node here has: {action:?}");
            };
            let to = if node == 0 { self.host() } else { 0 };
            let to_interface = if node == 0 { RADIO } else { WIRE };
            let packet = Pending::Packet(out[..len].to_vec());
            self.at(Duration::from_millis(1), to, to_interface, packet);
        }
        self.check_wake_up(node);
    }

    /// Whatever a layer waits for, its node wakes for.
    fn check_wake_up(&self, node: usize) {
        let Some(Link::Mesh(radio)) = self.nodes[node].link(RADIO) else {
            return;
        };
        let wakes_at = self.nodes[node].next_deadline();
        let mac = radio.mac().next_deadline();
        let datagrams = radio.datagrams().next_deadline();
        for at in [mac, datagrams].into_iter().flatten() {
            if at > self.now {
                assert!(
                    wakes_at.is_some_and(|wakes| wakes <= at),
                    "node {node} sleeps"
                );
            }
        }
    }

    fn radio(&mut self, node: usize, id: InterfaceId, action: mac::Action, out: &[u8]) {
        let answer = |event| Pending::Radio(event);
        match action {
            mac::Action::Preload { len } => {
                self.loaded[node] = out[..len].to_vec();
                self.at(
                    Duration::from_micros(100),
                    node,
                    id,
                    answer(mac::Event::Preloaded),
                );
            }
            mac::Action::AssessChannel => {
                let clear = self.now >= self.busy_until;
                let event = mac::Event::ChannelAssessed { clear };
                self.at(Duration::from_micros(128), node, id, answer(event));
            }
            mac::Action::Fire => {
                let frame = self.loaded[node].clone();
                self.send(node, id, &frame);
            }
            mac::Action::Transmit { len, .. } => self.send(node, id, &out[..len]),
            _ => {}
        }
    }

    fn send(&mut self, node: usize, id: InterfaceId, frame: &[u8]) {
        assert!(frame.len() <= PSDU_LEN_MAX);
        let air = Duration::from_micros(192 + (6 + frame.len() as u64) * 32);
        let done = mac::Event::TransmitDone { at: self.now + air };
        self.at(air, node, id, Pending::Radio(done));
        self.frames.push((node, frame.to_vec()));
        let immediate = self.radio_of(node).mac().counters().immediate;
        self.immediate.push(immediate);
        self.busy_until = self.busy_until.max(self.now + air);
        if frame.len() > 30 && self.lose.is_some() {
            self.lose = self.lose.and_then(|n| n.checked_sub(1));
            if self.lose.is_none() {
                return;
            }
        }
        for neighbour in [node.wrapping_sub(1), node + 1] {
            if neighbour <= self.hops {
                self.at(air, neighbour, RADIO, Pending::Frame(frame.to_vec()));
            }
        }
    }

    /// Runs until nothing happens before `self.now + span`.
    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        self.poll_all();
        loop {
            let deadline = self.nodes.iter().map(Node::next_deadline).enumerate();
            let deadline = deadline.filter_map(|(n, at)| Some((at?, n))).min();
            let event = self.events.keys().next().copied();
            let event_at = event.map(|(at, _)| at);
            let next = earliest(deadline.map(|(at, _)| at), event_at);
            let Some(next) = next.filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            if event_at == Some(next) {
                let (node, id, pending) = self.events.remove(&event.unwrap()).unwrap();
                self.deliver(node, id, &pending);
                self.poll(node);
            } else if let Some((_, node)) = deadline {
                self.poll(node);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self, node: usize, id: InterfaceId, pending: &Pending) {
        let deaf = self.deaf.as_ref();
        let is_deaf = deaf.is_some_and(|(n, when)| *n == node && when.contains(&self.now));
        if is_deaf && matches!(pending, Pending::Frame(_)) {
            return;
        }
        let meta = RxMeta {
            rssi_dbm: -60,
            lqi: 255,
            channel: 26,
            at: self.now,
        };
        let event = match pending {
            Pending::Frame(psdu) => Event::Mesh(mac::Event::FrameReceived { psdu, meta }),
            Pending::Radio(event) => Event::Mesh(*event),
            Pending::Packet(packet) => Event::Cable(packet),
        };
        let (to, now) = (&mut self.nodes[node], self.now);
        self.tallies[node].add(|| to.on_event(id, event, now));
    }

    fn radio_of(&self, node: usize) -> &Mesh<'static> {
        match self.nodes[node].link(RADIO) {
            Some(Link::Mesh(radio)) => radio,
            _ => panic!("node {node} has a radio"),
        }
    }

    /// Sends a packet from the host and returns what comes back within ten seconds.
    fn exchange(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        self.at(Duration::ZERO, 0, WIRE, Pending::Packet(packet.to_vec()));
        let end = self.now + Duration::from_secs(10);
        let mut answers = Vec::new();
        while self.now < end {
            self.run_for(Duration::from_micros(500));
            let host = self.host();
            let arrived = self.events.extract_if(.., |_, (node, _, _)| *node == host);
            answers.extend(arrived.filter_map(|(_, (_, _, pending))| match pending {
                Pending::Packet(bytes) => Some(bytes),
                _ => None,
            }));
        }
        answers
    }
}

fn transfer(world: &mut World, from: usize, to: usize, target: Ipv6Addr, data: &[u8]) {
    transfer_with(world, (from, to, (target, 9)), data, &SETTINGS);
}

/// As [`transfer`], with other settings than [`SETTINGS`] at both ends.
fn transfer_with(
    world: &mut World,
    (from, to, target): (usize, usize, (Ipv6Addr, u16)),
    data: &[u8],
    settings: &'static tcp::Config,
) {
    let now = world.now;
    let tcp = world.nodes[to].tcp_mut();
    let listener = tcp.listen(None, target.1, settings).unwrap();
    let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
    let sender = world.nodes[from]
        .connect(target, buffers(), settings, now)
        .unwrap();
    // In advance: the first data come with the end of the handshake.
    let receiver = world.nodes[to]
        .tcp_mut()
        .accept(listener, buffers(), now)
        .unwrap();
    let (mut sent, mut received) = (0, Vec::new());
    for _ in 0..40_000 {
        let now = world.now;
        let tcp = world.nodes[from].tcp_mut();
        if sent < data.len() {
            match tcp.send(sender, &data[sent..], now) {
                Ok(count) => sent += count,
                Err(SendError::BufferFull) => {}
                Err(error) => panic!("{error:?} after {sent} bytes"),
            }
            if sent == data.len() {
                tcp.shutdown(sender, now);
            }
        }
        let tcp = world.nodes[to].tcp_mut();
        let mut bytes = [0; 512];
        match tcp.recv(receiver, &mut bytes) {
            Ok(count) => received.extend_from_slice(&bytes[..count]),
            Err(RecvError::Empty) => {}
            Err(RecvError::Finished) => break,
            Err(error) => panic!("{error:?} after {} bytes", received.len()),
        }
        world.run_for(Duration::from_millis(2));
    }
    assert_eq!(received.len(), data.len());
    assert!(received == data, "bytes differ");
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 + n / 256) as u8).collect()
}

fn packet(dst: Ipv6Addr, hop_limit: u8, len: usize) -> Vec<u8> {
    let mut out = std::vec![0; len];
    let data = bytes(len - 48);
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: &data,
    });
    ip::icmp::write(&request, HOST, dst, hop_limit, &mut out).unwrap();
    out
}

fn icmp(packet: &[u8]) -> (Ipv6Addr, Message<'_>) {
    let (header, message) = Header::parse(packet).unwrap();
    assert!(icmpv6::is_checksum_valid(&header.src, &header.dst, message));
    (header.src, Message::parse(message).unwrap())
}

fn frame_of(packet: &[u8], to: LinkAddr, sequence: u8) -> Vec<u8> {
    let payload = [&[crate::wire::lowpan_dispatch::IPV6], packet].concat();
    frame_from(link(0), to, sequence, &payload)
}

fn frame_from(from: LinkAddr, to: LinkAddr, sequence: u8, payload: &[u8]) -> Vec<u8> {
    let header = crate::wire::ieee802154::Header::data(0x4d54, to, from, sequence);
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit_frame(payload, &mut out).unwrap();
    out[..len].to_vec()
}
