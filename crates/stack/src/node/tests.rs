//! Nodes on an ideal air: a host, a border router and a chain of motes.
//!
//! Frames reach every neighbour after their air time; nothing is lost unless a test says so.
//! The lab has the real air; here only the joints between layers are under test.

use super::*;
use crate::ip::{Config as IpConfig, NextHop, Prefix, Route};
use crate::limits::PSDU_LEN_MAX;
use crate::lowpan::{self, TcpForm, datagram, datagram::Datagrams, datagram::Record};
use crate::mac::{FrameSlot, Mac, Neighbor, RadioCapabilities, RxMeta};
use crate::storage::packet_queue::PacketQueue;
use crate::tcp::{self, Buffers, HalfOpen, Listener, Memory, RecvError, SendError, Slot};
use crate::time::Duration;
use crate::wire::LinkAddr;
use crate::wire::icmpv6::{self, Echo, Message};
use crate::wire::ipv6::{self, Header, TrafficClass};
use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

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
    let connections = (0..4).map(|_| Slot::EMPTY).collect::<Vec<_>>();
    let memory = Memory {
        connections: Vec::leak(connections),
        listeners: memory(Listener::EMPTY, 2),
        half_open: memory(HalfOpen::EMPTY, 2),
    };
    Tcp::new(memory, rng)
}

fn radio(
    n: usize,
    config: RadioConfig,
    retry_delay_max: Duration,
    slots: usize,
    rng: &mut Rng,
) -> Interface<'static> {
    let mac = mac::Config {
        retry_delay_max,
        ..mac::Config::new(0x4d54, eui(n))
    };
    let slots = memory(FrameSlot::EMPTY, slots);
    let neighbors = memory(Neighbor::EMPTY, 4);
    let capabilities = RadioCapabilities {
        auto_ack: false,
        ..RadioCapabilities::CC2420
    };
    let mac = Mac::new(mac, capabilities, slots, neighbors, rng);
    let (records, bodies) = (memory(Record::EMPTY, 8), memory(0, 4 * IPV6_MTU_MIN));
    let memory = RadioMemory {
        outgoing: memory(0, IPV6_MTU_MIN),
        datagrams: Datagrams::new(records, bodies, IPV6_MTU_MIN, false, rng),
        queue: PacketQueue::new(memory(0, 8192)),
    };
    Interface::Radio(Radio::new(config, mac, memory))
}

fn wire() -> Interface<'static> {
    Interface::Wire(Wire::new(PacketQueue::new(memory(0, 8192)), 1500))
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
    events: BTreeMap<(Instant, u64), (usize, InterfaceId, Pending)>,
    sequence: u64,
    /// Preloaded frame of each node.
    loaded: Vec<Vec<u8>>,
    frames: Vec<(usize, Vec<u8>)>,
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

    fn with_queue(
        hops: usize,
        relaying: Relaying,
        retry_delay_max: Duration,
        slots: usize,
    ) -> Self {
        let mut nodes = Vec::new();
        for n in 0..=hops {
            let mut rng = Rng::from_seed([7, n as u64]);
            let advertised = Advertised {
                prefix: MESH,
                lifetime: Advertised::LIFETIME,
            };
            let config = RadioConfig {
                relaying,
                parent: (n > 0).then(|| link(n - 1)),
                solicits: n > 0,
                advertised: (n == 0).then_some(advertised),
                ..RadioConfig::default()
            };
            let mut interface = radio(n, config, retry_delay_max, slots, &mut rng);
            if let Interface::Radio(radio) = &mut interface
                && n == 0
            {
                radio.contexts_mut().set(0, MESH, 64, true);
                radio.contexts_mut().set(1, HOST, 128, true);
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
                    neighbour: Some(link(n + 1)),
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
                    neighbour: None,
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
        let mut rng = Rng::from_seed([7, 99]);
        let mut ip = Ip::new(IpConfig::default(), memory(None, 2));
        ip.add_address(Address {
            addr: HOST,
            interface: RADIO,
        });
        ip.set_default_route(Some(NextHop {
            interface: RADIO,
            neighbour: None,
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
        let mut world = Self {
            nodes,
            hops,
            now: Instant::ORIGIN,
            events: BTreeMap::new(),
            sequence: 0,
            loaded,
            frames: Vec::new(),
            busy_until: Instant::ORIGIN,
            lose: None,
            deaf: None,
        };
        world.poll_all();
        world.run_for(Duration::from_secs(5));
        world
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
        while let Some((interface, action)) = self.nodes[node].poll_action(self.now, &mut out) {
            rounds += 1;
            assert!(rounds < 1_000, "node {node} never rests at {:?}", self.now);
            match action {
                Action::Packet { len } => {
                    let to = if node == 0 { self.host() } else { 0 };
                    let to_interface = if node == 0 { RADIO } else { WIRE };
                    let packet = Pending::Packet(out[..len].to_vec());
                    self.at(Duration::from_millis(1), to, to_interface, packet);
                }
                Action::Radio(action) => self.radio(node, interface, action, &out),
            }
        }
        self.check_wake_up(node);
    }

    /// Whatever a layer waits for, its node wakes for.
    fn check_wake_up(&self, node: usize) {
        let Some(Interface::Radio(radio)) = self.nodes[node].interface(RADIO) else {
            return;
        };
        let wakes_at = self.nodes[node].next_deadline();
        let mac = radio.mac.next_deadline();
        let datagrams = radio.datagrams.next_deadline();
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
            Pending::Frame(psdu) => Event::Radio(mac::Event::FrameReceived { psdu, meta }),
            Pending::Radio(event) => Event::Radio(*event),
            Pending::Packet(packet) => Event::Packet(packet),
        };
        self.nodes[node].on_event(id, event, self.now);
    }

    fn radio_of(&self, node: usize) -> &Radio<'static> {
        match self.nodes[node].interface(RADIO) {
            Some(Interface::Radio(radio)) => radio,
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
    let now = world.now;
    let listener = world.nodes[to]
        .tcp_mut()
        .listen(None, 9, &SETTINGS)
        .unwrap();
    let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
    let sender = world.nodes[from]
        .connect((target, 9), buffers(), &SETTINGS, now)
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

#[test]
fn advertisements_walk_down_the_chain() {
    let world = World::chain(3, Relaying::Fragments);
    for n in 1..=3 {
        let node = &world.nodes[n];
        assert_eq!(node.global_address(), Some(global(n)), "mote {n}");
        let up = NextHop {
            interface: RADIO,
            neighbour: Some(link(n - 1)),
        };
        assert_eq!(node.ip().default_route(), Some(up), "mote {n}");
        assert_eq!(world.radio_of(n).contexts.get(1).unwrap().prefix(), HOST);
    }
}

#[test]
fn a_stream_crosses_three_hops_both_ways() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        let mut world = World::chain(3, relaying);
        let data = bytes(5_000);
        let host = world.host();
        transfer(&mut world, 3, host, HOST, &data);
        let mut world = World::chain(3, relaying);
        transfer(&mut world, host, 3, global(3), &data);
        let relayed = world.nodes[2].counters().fragments_relayed;
        assert_eq!(
            relayed > 20,
            relaying == Relaying::Fragments,
            "{relaying:?} {relayed}"
        );
    }
}

#[test]
fn the_mss_fills_its_frames_and_relays_never_find_a_fragment_too_long() {
    let mut world = World::chain(3, Relaying::Fragments);
    let mss = world.nodes[3].mss(&HOST, true);
    // 5 frames of 104 bytes; FRAG1 4, FRAGN 5 each; IPHC with contexts 0 and 1, and later
    // the source's identifier, the hop limit and a mark: 14; the first ends on a unit.
    assert_eq!(mss, 80 + 3 * 96 + 99 - 20);
    let config: &'static tcp::Config = Box::leak(Box::new(tcp::Config {
        smss: mss,
        timestamps: false,
        ecn: false,
        ..SETTINGS
    }));
    let now = world.now;
    let host = world.host();
    let listener = world.nodes[host]
        .tcp_mut()
        .listen(None, 9, &SETTINGS)
        .unwrap();
    let buffers = Buffers::new(memory(0, 2048), memory(0, 2304));
    let sender = world.nodes[3]
        .connect((HOST, 9), buffers, config, now)
        .unwrap();
    world.run_for(Duration::from_secs(1));
    let now = world.now;
    let buffers = Buffers::new(memory(0, 2048), memory(0, 2304));
    world.nodes[host]
        .tcp_mut()
        .accept(listener, buffers, now)
        .unwrap();
    let before = world.frames.len();
    world.nodes[3]
        .tcp_mut()
        .send(sender, &bytes(usize::from(mss)), now)
        .unwrap();
    world.run_for(Duration::from_secs(1));
    let data_frames = |node: usize| {
        world.frames[before..]
            .iter()
            .filter(|(n, frame)| *n == node && frame.len() > 60)
            .count()
    };
    assert_eq!((data_frames(3), data_frames(2), data_frames(1)), (5, 5, 5));
    assert_eq!(world.nodes[2].counters().dropped(Drop::FragmentTooLong), 0);
}

/// A packet in fragments, as somebody sends them who leaves no slack and does it his way.
fn inject(world: &mut World, hop: lowpan::LinkPair, len_max: usize, packet: &[u8]) {
    let mut buffer = [0; IPV6_MTU_MIN];
    buffer[..packet.len()].copy_from_slice(packet);
    let mut outgoing = lowpan::fragment::Outgoing::new(&mut buffer);
    outgoing
        .start(packet.len(), TcpForm::Plain, hop, 77, len_max, 0)
        .unwrap();
    let mut payload = [0; PSDU_LEN_MAX];
    for sequence in 0.. {
        let contexts = &world.radio_of(0).contexts;
        let Some(len) = outgoing.next(contexts, &mut payload).unwrap() else {
            break;
        };
        let header = crate::wire::ieee802154::Header::data(0x4d54, hop.dst, hop.src, sequence);
        let mut out = [0; PSDU_LEN_MAX];
        let len = header.emit_frame(&payload[..len], &mut out).unwrap();
        let frame = Pending::Frame(out[..len].to_vec());
        world.at(Duration::ZERO, 2, RADIO, frame);
        world.run_for(Duration::from_millis(20));
    }
    world.run_for(Duration::from_secs(2));
}

#[test]
fn a_relay_passes_on_what_no_slack_was_left_for() {
    // A mote that fills its first fragment, and one whose short addresses leave more room.
    for (src, len_max) in [(link(3), 104), (LinkAddr::Short(7), 110)] {
        let mut world = World::chain(3, Relaying::Fragments);
        let mut request = packet(HOST, 64, 800);
        let (mut header, _) = Header::parse(&request).unwrap();
        header.src = ip::with_iid(&MESH, src.iid());
        header.emit(&mut request).unwrap();
        icmpv6::fill_checksum(&header.src, &HOST, &mut request[40..]);
        let hop = lowpan::LinkPair { src, dst: link(2) };
        let gathered = |world: &World| world.radio_of(2).datagrams().counters().reassembled;
        let before = gathered(&world);
        inject(&mut world, hop, len_max, &request);
        let host = world.host();
        // The border router has no route for the second answer, and says so.
        assert!(world.nodes[host].ip().counters.delivered > 0, "{src:?}");
        let gathered = gathered(&world) - before;
        assert_eq!(gathered, 1, "reassembled, then cut anew: {src:?}");
    }
}

#[test]
fn an_extension_header_longer_than_a_frame_is_carried() {
    let mut world = World::chain(2, Relaying::Fragments);
    let plain = packet(global(2), 64, 100);
    let (mut header, echo) = Header::parse(&plain).unwrap();
    header.next_header = 60;
    header.payload_len += 208;
    let mut options = [0u8; 208];
    options[..4].copy_from_slice(&[58, 25, 5, 204]);
    options[4..].fill(9);
    let mut long = [0u8; 40].to_vec();
    header.emit(&mut long).unwrap();
    long.extend(options);
    long.extend(echo);
    assert_eq!(world.exchange(&long).len(), 1);
}

#[test]
fn a_lost_frame_is_repeated_on_its_link_and_tcp_never_knows() {
    for lost in [3, 7, 12] {
        let mut world = World::chain(2, Relaying::Fragments);
        world.lose = Some(lost);
        let data = bytes(3_000);
        let host = world.host();
        transfer(&mut world, 2, host, HOST, &data);
        let retries: u32 = (0..=2)
            .map(|n| world.radio_of(n).mac().counters().retries)
            .sum();
        assert!(retries >= 1, "the {lost}th frame was repeated");
        assert_eq!(world.nodes[2].tcp().counters().retransmissions, [0; _]);
    }
}

#[test]
fn a_fragment_given_up_takes_its_packet_with_it_and_tcp_repairs() {
    let mut world = World::chain(2, Relaying::Fragments);
    // The border router hears nothing for longer than eight attempts last.
    let deaf_from = world.now + Duration::from_millis(300);
    world.deaf = Some((0, deaf_from..deaf_from + Duration::from_millis(1_200)));
    let data = bytes(3_000);
    let host = world.host();
    transfer(&mut world, 2, host, HOST, &data);
    let relay = world.radio_of(1).mac().counters();
    assert!(relay.dropped(mac::Drop::NoAck) >= 1, "a frame was given up");
    let ends = [world.radio_of(1).datagrams(), world.radio_of(0).datagrams()];
    let orphans: u32 = ends
        .iter()
        .map(|d| d.counters().dropped(datagram::Drop::SiblingLost))
        .sum();
    assert!(
        orphans + relay.dropped(mac::Drop::Cancelled) > 0,
        "its siblings were not sent"
    );
}

#[test]
fn a_segment_without_room_does_not_hide_the_retry_that_makes_room() {
    let patient = Duration::from_millis(500);
    let mut world = World::with_queue(1, Relaying::Fragments, patient, 12);
    let now = world.now;
    let buffers = Buffers::new(memory(0, 2048), memory(0, 2304));
    let host = world.host();
    let listener = world.nodes[host]
        .tcp_mut()
        .listen(None, 9, &SETTINGS)
        .unwrap();
    let sender = world.nodes[1]
        .connect((HOST, 9), buffers, &SETTINGS, now)
        .unwrap();
    world.run_for(Duration::from_secs(1));
    let (now, buffers) = (world.now, Buffers::new(memory(0, 2048), memory(0, 2304)));
    let tcp = world.nodes[host].tcp_mut();
    tcp.accept(listener, buffers, now).unwrap();
    // Nobody answers: frames fill the queue between retries while TCP's timers run out.
    world.deaf = Some((0, now..now + Duration::from_secs(30)));
    world.nodes[1]
        .tcp_mut()
        .send(sender, &bytes(2048), now)
        .unwrap();
    let before = world.frames.len();
    world.run_for(Duration::from_secs(20));
    let given_up = world.radio_of(1).mac().counters().dropped(mac::Drop::NoAck);
    assert!(
        given_up > 4 && world.frames.len() > before + 8,
        "{given_up}"
    );
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

#[test]
fn motes_answer_ping_of_any_size() {
    for relaying in [Relaying::Fragments, Relaying::Reassembly] {
        let mut world = World::chain(3, relaying);
        for len in [48, 100, 500, 1280] {
            let answers = world.exchange(&packet(global(3), 64, len));
            assert_eq!(answers.len(), 1, "{relaying:?} {len}");
            let data = bytes(len - 48);
            let reply = Message::EchoReply(Echo {
                identifier: 1,
                sequence: 2,
                data: &data,
            });
            assert_eq!(icmp(&answers[0]), (global(3), reply), "{relaying:?} {len}");
        }
    }
}

#[test]
fn sources_are_told_why_a_packet_went_no_further() {
    let mut world = World::chain(3, Relaying::Fragments);
    let mut answer = |packet: &[u8]| -> (Ipv6Addr, u8, u8, u32) {
        let answers = world.exchange(packet);
        assert_eq!(answers.len(), 1);
        let (src, message) = icmp(&answers[0]);
        match message {
            Message::DestinationUnreachable { code, .. } => (src, 1, code, 0),
            Message::PacketTooBig { mtu, .. } => (src, 2, 0, mtu),
            Message::TimeExceeded { code, .. } => (src, 3, code, 0),
            Message::ParameterProblem { code, pointer, .. } => (src, 4, code, pointer),
            other => panic!("{other:?}"),
        }
    };
    let border = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    assert_eq!(
        answer(&packet(global(9), 64, 100)),
        (border, 1, 0, 0),
        "unknown mote"
    );
    assert_eq!(
        answer(&packet(global(3), 64, 1300)),
        (border, 2, 0, 1280),
        "too big"
    );
    assert_eq!(
        answer(&packet(global(3), 1, 100)),
        (border, 3, 0, 0),
        "spent at the border"
    );
    assert_eq!(
        answer(&packet(global(3), 2, 100)),
        (global(1), 3, 0, 0),
        "spent at a relay"
    );
    assert_eq!(
        answer(&packet(global(3), 2, 600)),
        (global(1), 3, 0, 0),
        "from a first fragment"
    );
    let mut udp = packet(global(2), 64, 100);
    udp[6] = 17;
    assert_eq!(answer(&udp), (global(2), 1, 4, 0), "no such port");
    udp[6] = 132;
    assert_eq!(answer(&udp), (global(2), 4, 1, 6), "no such protocol");
}

#[test]
fn a_node_without_tcp_knows_no_segments() {
    let mut ip = Ip::new(IpConfig::default(), memory(None, 1));
    let addr = global(1);
    ip.add_address(Address {
        addr,
        interface: RADIO,
    });
    let hop = NextHop {
        interface: RADIO,
        neighbour: None,
    };
    ip.set_default_route(Some(hop));
    let interfaces = Vec::leak(std::vec![wire()]);
    let (rng, now) = (Rng::from_seed([1, 2]), Instant::ORIGIN);
    let mut node = Node::without_tcp(interfaces, ip, rng, now);
    let mut segment = packet(addr, 64, 100);
    segment[6] = crate::wire::tcp::NEXT_HEADER;
    node.on_event(RADIO, Event::Packet(&segment), now);
    let mut out = [0; ACTION_LEN_MAX];
    let answer = node.poll_action(now, &mut out);
    let Some((_, Action::Packet { len })) = answer else {
        panic!("{answer:?}");
    };
    let (_, message) = icmp(&out[..len]);
    let refused = matches!(
        message,
        Message::ParameterProblem {
            code: 1,
            pointer: 6,
            ..
        }
    );
    assert!(refused, "{message:?}");
    assert_eq!(node.next_deadline(), None);
}

#[test]
fn a_source_is_told_that_the_last_hop_does_not_answer() {
    for len in [60, 600] {
        let mut world = World::chain(2, Relaying::Reassembly);
        let start = world.now;
        world.deaf = Some((1, start..start + Duration::from_secs(60)));
        let answers = world.exchange(&packet(global(1), 64, len));
        assert_eq!(answers.len(), 1, "{len}");
        let (_, message) = icmp(&answers[0]);
        let Message::DestinationUnreachable { code: 3, invoking } = message else {
            panic!("{message:?}");
        };
        assert_eq!(invoking.len(), len);
        // Of a packet lost half way nothing is known of its last hop.
        assert!(world.exchange(&packet(global(2), 64, len)).is_empty());
        world.deaf = None;
        assert_eq!(world.exchange(&packet(global(1), 64, len)).len(), 1);
    }
}

#[test]
fn ipv6_fragments_are_refused_with_a_count() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut fragment = packet(global(1), 64, 100);
    fragment[6] = 44;
    assert!(world.exchange(&fragment).is_empty());
    assert_eq!(world.nodes[1].ip().counters.dropped(ip::Drop::Fragment), 1);
}

#[test]
fn discovery_from_beyond_the_link_is_dropped() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut out = [0; 100];
    let solicitation = Message::RouterSolicitation {
        options: Default::default(),
    };
    let len = ip::icmp::write(&solicitation, HOST, global(1), 64, &mut out).unwrap();
    assert!(world.exchange(&out[..len]).is_empty());
    assert_eq!(world.nodes[1].ip().counters.dropped(ip::Drop::BadNdp), 1);
}

/// A frame from node 0 to `to` that holds `packet` as it is.
fn frame_of(packet: &[u8], to: LinkAddr, sequence: u8) -> Vec<u8> {
    let header = crate::wire::ieee802154::Header::data(0x4d54, to, link(0), sequence);
    let payload = [&[crate::wire::lowpan_dispatch::IPV6], packet].concat();
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit_frame(&payload, &mut out).unwrap();
    out[..len].to_vec()
}

#[test]
fn what_is_for_one_node_is_not_taken_from_a_frame_for_all() {
    let mut world = World::chain(2, Relaying::Fragments);
    for (target, broadcast) in [(global(1), true), (global(2), true), (global(2), false)] {
        let to = if broadcast {
            LinkAddr::BROADCAST
        } else {
            link(1)
        };
        let (frames, drops) = (world.frames.len(), ip::Drop::LinkBroadcast);
        let dropped = world.nodes[1].ip().counters.dropped(drops);
        let frame = frame_of(&packet(target, 64, 60), to, 77);
        world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
        world.run_for(Duration::from_secs(1));
        let dropped = world.nodes[1].ip().counters.dropped(drops) - dropped;
        assert_eq!(dropped == 1, broadcast, "{target}");
        assert_eq!(world.frames.len() == frames, broadcast, "{target}");
    }
}

#[test]
fn padding_behind_a_packet_is_cut_off() {
    let mut world = World::chain(1, Relaying::Fragments);
    for len in [60, 600] {
        let mut padded = packet(global(1), 64, len);
        padded.extend([0; 7]);
        let answers = world.exchange(&padded);
        assert_eq!(answers.len(), 1, "{len}");
        assert_eq!(answers[0].len(), len);
    }
}

#[test]
fn no_half_packets_leave_by_a_wire() {
    let mut world = World::chain(1, Relaying::Fragments);
    let border = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    // The wire takes 1,500 bytes, `out` in these tests 1,280.
    assert!(world.exchange(&packet(border, 64, 1400)).is_empty());
    assert_eq!(world.exchange(&packet(border, 64, 1280))[0].len(), 1280);
}

#[test]
fn nobody_is_not_answered() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut echo = [0; 60];
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: b"x",
    });
    for (n, hop_limit) in [64, 255].into_iter().enumerate() {
        let src = Ipv6Addr::UNSPECIFIED;
        let len = ip::icmp::write(&request, src, global(1), hop_limit, &mut echo).unwrap();
        let frames = world.frames.len();
        let frame = frame_of(&echo[..len], link(1), 80 + n as u8);
        world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.frames.len(), frames + 1, "the ACK alone, {hop_limit}");
    }
    let counters = world.nodes[1].ip().counters;
    assert_eq!(counters.dropped(ip::Drop::BadAddress), 1);
}

#[test]
fn a_packet_whose_route_goes_while_it_waits_is_a_counted_drop() {
    let mut world = World::chain(2, Relaying::Reassembly);
    let frame = frame_of(&packet(global(2), 64, 60), link(1), 90);
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: world.now,
    };
    let event = mac::Event::FrameReceived { psdu: &frame, meta };
    let now = world.now;
    world.nodes[1].on_event(RADIO, Event::Radio(event), now);
    let prefix = Prefix::host(global(2));
    world.nodes[1].ip_mut().remove_route(prefix);
    world.nodes[1].ip_mut().set_default_route(None);
    world.run_for(Duration::from_secs(1));
    let counters = world.nodes[1].ip().counters;
    assert_eq!(counters.dropped(ip::Drop::NoRoute), 1);
    assert!(world.radio_of(1).queue.is_empty());
}

#[test]
fn an_expired_lease_is_passed_on_and_a_new_one_too() {
    let mut world = World::chain(2, Relaying::Fragments);
    let compressing = |world: &World, n| world.radio_of(n).contexts.compressing().count();
    let routes = |world: &World| [1, 2].map(|n| world.nodes[n].ip().default_route().is_some());
    assert_eq!((routes(&world), compressing(&world, 2)), ([true; 2], 2));
    let start = world.now;
    world.deaf = Some((0, start..start + Duration::from_secs(3 * 60 * 60)));
    world.run_for(Duration::from_secs(2 * 60 * 60 - 10));
    assert_eq!(
        routes(&world),
        [true; 2],
        "both leases end together, two hops or one"
    );
    world.run_for(Duration::from_secs(30));
    assert_eq!(routes(&world), [false; 2]);
    assert_eq!((compressing(&world, 1), compressing(&world, 2)), (0, 0));
    assert!(world.radio_of(1).contexts.get(0).is_some(), "decompresses");
    // Mote 2 still asks, and mote 1 has nothing to tell.
    world.run_for(Duration::from_secs(10 * 60));
    assert_eq!(routes(&world), [false; 2]);
    world.run_for(Duration::from_secs(60 * 60));
    assert_eq!((routes(&world), compressing(&world, 2)), ([true; 2], 2));
    assert_eq!(world.exchange(&packet(global(2), 64, 100)).len(), 1);
}

/// An advertisement of `prefixes`, each with its lifetime, from node `by` in the name of `of`.
fn advertise(world: &mut World, by: usize, of: usize, router_s: u16, prefixes: &[(Ipv6Addr, u32)]) {
    use crate::wire::ndp::{NdpOption, NdpOptions, PrefixInformation};
    let mut options = [0; 100];
    let mut w = crate::wire::cursor::Writer::new(&mut options);
    for (prefix, valid_lifetime_s) in prefixes {
        let information = PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: false,
            valid_lifetime_s: *valid_lifetime_s,
            preferred_lifetime_s: *valid_lifetime_s,
            prefix: *prefix,
        };
        NdpOption::Prefix(information).emit(&mut w).unwrap();
    }
    let len = w.written();
    let message = Message::RouterAdvertisement(icmpv6::RouterAdvertisement {
        hop_limit: 64,
        flags: 0,
        router_lifetime_s: router_s,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: NdpOptions::parse(&options[..len]).unwrap(),
    });
    let mut bytes = [0; 200];
    let src = ip::link_local(link(of).iid());
    let len = ip::icmp::write(&message, src, ip::ALL_NODES, 255, &mut bytes).unwrap();
    let hop = lowpan::LinkPair {
        src: link(by),
        dst: LinkAddr::BROADCAST,
    };
    let mut payload = [0; PSDU_LEN_MAX];
    let none = lowpan::Contexts::new();
    let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
    let rest = &bytes[headers.uncompressed_len..len];
    let payload = [&payload[..headers.compressed_len], rest].concat();
    let header = crate::wire::ieee802154::Header::data(0x4d54, hop.dst, hop.src, 5);
    let mut out = [0; PSDU_LEN_MAX];
    let len = header.emit_frame(&payload, &mut out).unwrap();
    let frame = Pending::Frame(out[..len].to_vec());
    world.at(Duration::ZERO, 1, RADIO, frame);
    world.run_for(Duration::from_millis(500));
}

#[test]
fn only_the_router_itself_is_believed() {
    let mut world = World::chain(2, Relaying::Fragments);
    let evil = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 0);
    let before = world.nodes[1].ip().default_route();
    for (by, of) in [(2, 0), (2, 2)] {
        advertise(&mut world, by, of, 100, &[(evil, 100)]);
        advertise(&mut world, by, of, 0, &[(MESH, 0)]);
        assert_eq!(world.nodes[1].ip().default_route(), before, "{by} as {of}");
        assert_eq!(
            world.nodes[1].global_address(),
            Some(global(1)),
            "{by} as {of}"
        );
    }
    assert_eq!(world.nodes[1].ip().counters.dropped(ip::Drop::BadNdp), 2);
}

#[test]
fn a_new_prefix_takes_the_place_of_the_old_all_the_way_down() {
    let mut world = World::chain(2, Relaying::Fragments);
    let prefix = |n: u16| Ipv6Addr::new(0xfd00, 0, 0, n, 0, 0, 0, 0);
    let named = |n: usize, of: u16| Some(ip::with_iid(&prefix(of), link(n).iid()));
    advertise(&mut world, 0, 0, 1000, &[(prefix(7), 1000), (MESH, 1000)]);
    assert_eq!(
        world.nodes[1].global_address(),
        named(1, 1),
        "still among them"
    );
    for round in 2..12 {
        let prefixes = [(prefix(round), 1000), (prefix(99), 1000)];
        advertise(&mut world, 0, 0, 1000, &prefixes);
        for n in [1, 2] {
            assert_eq!(world.nodes[n].global_address(), named(n, round), "mote {n}");
            assert_eq!(world.nodes[n].ip().addresses().count(), 2, "mote {n}");
        }
    }
    advertise(&mut world, 0, 0, 1000, &[(prefix(11), 0)]);
    assert_eq!(world.nodes[1].global_address(), None, "withdrawn");
}

#[test]
fn the_shortest_lifetime_decides_when_to_ask_again() {
    let mut world = World::chain(1, Relaying::Fragments);
    advertise(&mut world, 0, 0, 1000, &[(MESH, 40)]);
    let asks_at = world.radio_of(1).solicitor.next_deadline().unwrap();
    assert!(
        asks_at <= world.now + Duration::from_secs(30),
        "{asks_at:?}"
    );
    // Asked, the border router renews it.
    world.run_for(Duration::from_secs(100));
    assert!(world.nodes[1].ip().default_route().is_some());
    advertise(&mut world, 0, 0, 0, &[]);
    world.run_for(Duration::from_secs(5));
    assert!(world.nodes[1].ip().default_route().is_some(), "asked again");
}

#[test]
fn hostile_frames_are_counted_drops() {
    let mut world = World::chain(1, Relaying::Fragments);
    let mut rng = Rng::from_seed([3, 4]);
    let header = crate::wire::ieee802154::Header::data(0x4d54, link(1), link(0), 1);
    for n in 0..3_000u32 {
        let mut payload = [0; 80];
        for byte in &mut payload {
            *byte = rng.next_u32() as u8;
        }
        payload[0] = [0x60, 0x7a, 0xc0, 0xe0, 0x41, 0xf0][n as usize % 6] | payload[0] & 7;
        let mut out = [0; PSDU_LEN_MAX];
        let header = crate::wire::ieee802154::Header {
            sequence: n as u8,
            ..header
        };
        let len = header
            .emit_frame(&payload[..rng.below(80) as usize], &mut out)
            .unwrap();
        world.at(
            Duration::from_millis(50),
            1,
            RADIO,
            Pending::Frame(out[..len].to_vec()),
        );
        world.run_for(Duration::from_millis(60));
    }
    let counters = world.nodes[1].counters();
    assert!(counters.dropped(Drop::Compression) > 100);
    assert!(counters.dropped(Drop::Dispatch) > 100);
    assert!(
        world
            .radio_of(1)
            .datagrams()
            .counters()
            .dropped(datagram::Drop::NoRecord)
            > 10
    );
    let answers = world.exchange(&packet(global(1), 64, 100));
    assert_eq!(answers.len(), 1, "and the mote still answers");
}

/// Frames of an honest mesh with bytes changed, radio answers nobody asked for, packets of any
/// kind by wire: the node under attack always comes to rest, and afterwards sleeps.
#[test]
fn no_sequence_of_events_keeps_a_node_busy() {
    let mut world = World::chain(2, Relaying::Fragments);
    let host = world.host();
    transfer(&mut world, 2, host, HOST, &bytes(3_000));
    world.exchange(&packet(global(2), 64, 600));
    let corpus: Vec<Vec<u8>> = world.frames.iter().map(|(_, f)| f.clone()).collect();
    for attacked in [0, 1] {
        let mut rng = Rng::from_seed([attacked as u64, 6]);
        let node = &mut world.nodes[attacked];
        let (mut now, mut out) = (world.now, [0; ACTION_LEN_MAX]);
        let mut rest = |node: &mut Node<'_>, now: Instant| {
            let rounds = core::iter::from_fn(|| node.poll_action(now, &mut out)).take(1_000);
            assert!(rounds.count() < 1_000, "never rests");
            assert!(
                node.next_deadline().is_none_or(|at| at > now),
                "wakes at once"
            );
        };
        for n in 0..8_000u32 {
            now += rng.uniform(Duration::from_millis(5));
            let mut frame = corpus[rng.below(corpus.len() as u32) as usize].clone();
            frame[2] = n as u8;
            for _ in 0..rng.below(4) {
                let at = rng.below(frame.len() as u32 - 2) as usize;
                frame[at] = rng.next_u32() as u8;
            }
            let mpdu = frame.len() - 2;
            let fcs = crate::wire::ieee802154::fcs(&frame[..mpdu]);
            frame[mpdu..].copy_from_slice(&fcs.to_le_bytes());
            let meta = RxMeta {
                rssi_dbm: 0,
                lqi: 0,
                channel: 26,
                at: now,
            };
            let psdu = &frame[..];
            let event = match rng.below(9) {
                0 => Event::Radio(mac::Event::Preloaded),
                1 => Event::Radio(mac::Event::ChannelAssessed { clear: n & 1 == 0 }),
                2 => Event::Radio(mac::Event::TransmitDone { at: now }),
                3 => Event::Radio(mac::Event::FrameHead { head: psdu }),
                4 => Event::Packet(&psdu[psdu.len().min(21)..]),
                _ => Event::Radio(mac::Event::FrameReceived { psdu, meta }),
            };
            let id = if matches!(event, Event::Packet(_)) {
                WIRE
            } else {
                RADIO
            };
            node.on_event(id, event, now);
            rest(node, now);
        }
        // A radio that never answers is all that still happens.
        let mut wakes = 0;
        let end = now + Duration::from_secs(600);
        while let Some(at) = node.next_deadline().filter(|at| *at < end) {
            rest(node, at);
            wakes += 1;
            assert!(wakes < 20_000, "does not sleep");
        }
        let Some(Interface::Radio(radio)) = node.interface(RADIO) else {
            panic!("a radio")
        };
        assert!(radio.datagrams.is_empty(), "every record was given up");
        assert!(node.ip().addresses().count() <= 3);
    }
}

#[test]
fn an_idle_node_has_no_reason_to_wake_but_its_lease() {
    let world = World::chain(1, Relaying::Fragments);
    let deadline = world.nodes[1].next_deadline().unwrap();
    assert!(
        deadline > world.now + Duration::from_secs(60 * 60),
        "{deadline:?}"
    );
    assert_eq!(world.nodes[world.host()].next_deadline(), None);
}

#[test]
fn traffic_class_travels() {
    let mut world = World::chain(2, Relaying::Fragments);
    let mut marked = packet(global(2), 64, 600);
    let class = TrafficClass::new(0x2e, ipv6::Ecn::Ce);
    let (header, _) = Header::parse(&marked).unwrap();
    Header {
        traffic_class: class,
        ..header
    }
    .emit(&mut marked)
    .unwrap();
    world.at(Duration::ZERO, 0, WIRE, Pending::Packet(marked));
    world.run_for(Duration::from_secs(2));
    assert_eq!(
        world.nodes[2].ip().counters.delivered,
        2,
        "the advertisement and the ping"
    );
}
