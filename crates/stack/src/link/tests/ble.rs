//! Nodes over controllers that lose nothing and take no time.

use std::boxed::Box;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::ble::{Action, Advertisement, GapRole, Handle, INWARD_LEN, PeerMemory, Timing};
use crate::ip::{Address, Prefix, Route};
use crate::limits::IPV6_MTU_MIN;
use crate::link::{Event as LinkEvent, Link};
use crate::node::{self, ACTION_LEN_MAX, Node};
use crate::tcp::{self, HalfOpen, Listener, Slot, Tcp};
use crate::time::Duration;
use crate::wire::icmpv6::Message;
use core::net::Ipv6Addr;

const ID: InterfaceId = InterfaceId(0);
const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0);

fn memory<T>(items: Vec<T>) -> &'static mut [T] {
    Box::leak(items.into_boxed_slice())
}

const fn device(n: u8) -> DeviceAddr {
    DeviceAddr {
        bytes: [0xc2, 0x11, 0x22, 0x33, 0x44, n],
        is_random: true,
    }
}

fn link_local(n: u8) -> Ipv6Addr {
    Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        0xc211,
        0x22ff,
        0xfe33,
        0x4400 | u16::from(n),
    )
}

fn buffers() -> tcp::Buffers<'static> {
    tcp::Buffers::new(memory(vec![0; 4096]), memory(vec![0; 4608]))
}

fn link(n: u8, role: GapRole, places: usize) -> Ble<'static> {
    let place = || {
        Peer::new(PeerMemory {
            inward: memory(vec![0; INWARD_LEN]),
            outward: memory(vec![0; IPV6_MTU_MIN]),
            queue: memory(vec![0; 4000]),
        })
    };
    let is_central = role == GapRole::Central;
    let config = BleConfig {
        host: Config::new(device(n), role),
        solicits: !is_central,
        registers: true,
        advertised: is_central.then_some(Advertised {
            prefix: PREFIX,
            lifetime: Advertised::LIFETIME,
        }),
    };
    let registrations = if is_central { 4 } else { 0 };
    let mut link = Ble::new(
        config,
        BleMemory {
            peers: memory((0..places).map(|_| place()).collect()),
            queue: memory(vec![0; 4000]),
            registrations: memory(vec![Registration::EMPTY; registrations]),
        },
    );
    if is_central {
        link.contexts_mut().set(0, PREFIX, 64, true);
    }
    link
}

fn node(n: u8, role: GapRole, places: usize) -> Node<'static> {
    node_over(n, link(n, role, places))
}

fn node_over(n: u8, link: Ble<'static>) -> Node<'static> {
    let is_central = link.host().config().role == GapRole::Central;
    node_of(n, is_central, vec![Link::Ble(link)])
}

fn node_of(n: u8, is_central: bool, links: Vec<Link<'static>>) -> Node<'static> {
    let mut rng = Rng::from_seed([n.into(), 5]);
    let routes = (2..6).map(|n| {
        let iid = link_local(n).to_bits() as u64;
        Some(Route {
            prefix: Prefix::host(crate::ip::with_iid(&PREFIX, iid.to_be_bytes())),
            next_hop: NextHop {
                interface: ID,
                neighbour: Neighbour::One(iid.to_be_bytes()),
            },
        })
    });
    let routes: Vec<_> = routes.filter(|_| is_central).collect();
    let config = crate::ip::Config {
        forwards: is_central,
        ..crate::ip::Config::default()
    };
    let tcp = Tcp::new(
        tcp::Memory {
            connections: memory((0..4).map(|_| Slot::EMPTY).collect()),
            listeners: memory(vec![Listener::EMPTY]),
            half_open: memory(vec![HalfOpen::EMPTY; 4]),
        },
        &mut rng,
    );
    Node::new(
        memory(links),
        Ip::new(config, memory(routes)),
        tcp,
        rng,
        Instant::ORIGIN,
    )
}

#[test]
fn a_source_is_told_that_a_peer_is_not_there() {
    const WIRE: InterfaceId = InterfaceId(1);
    let cable = crate::link::Cable::new(memory(vec![0; 4000]), 1500);
    let links = vec![Link::Ble(link(1, GapRole::Central, 2)), Link::Cable(cable)];
    let mut central = node_of(1, true, links);
    central.ip_mut().set_default_route(Some(NextHop {
        interface: WIRE,
        neighbour: Neighbour::Only,
    }));
    let (us, source) = (
        Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1),
        Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 9),
    );
    let ours = Address {
        addr: us,
        interface: WIRE,
    };
    central.ip_mut().add_address(ours);
    let iid = link_local(3).to_bits() as u64;
    let absent = crate::ip::with_iid(&PREFIX, iid.to_be_bytes());
    let mut packet = [0; 60];
    let request = Message::EchoRequest(crate::wire::icmpv6::Echo {
        identifier: 1,
        sequence: 1,
        data: &[7; 12],
    });
    crate::ip::icmp::write(&request, source, absent, 64, &mut packet).unwrap();
    central.on_event(WIRE, LinkEvent::Cable(&packet), Instant::ORIGIN);
    let mut out = [0; ACTION_LEN_MAX];
    let len = loop {
        match central.poll_action(Instant::ORIGIN, &mut out) {
            Some((WIRE, node::Action::Cable { len })) => break len,
            Some(_) => {}
            None => panic!("nothing was said"),
        }
    };
    let (header, message) = Header::parse(&out[..len]).unwrap();
    assert_eq!((header.src, header.dst), (us, source));
    let message = Message::parse(message).unwrap();
    let is_told = matches!(message, Message::DestinationUnreachable { code: 3, .. });
    assert!(is_told, "{message:?}");
}

/// Nodes 0 (the central) and following, each number n as device n + 1.
struct Ether {
    nodes: Vec<Node<'static>>,
    now: Instant,
    /// Which nodes advertise, and whether the central scans.
    advertising: Vec<bool>,
    scanning: bool,
    /// What each node's controller has to report.
    reports: VecDeque<(usize, Report)>,
    /// SDUs seen on the air, by sender.
    data: Vec<usize>,
    /// Nothing that this node sends arrives.
    mute: Option<usize>,
}

enum Report {
    Connected(usize, GapRole),
    Answered,
    Advertised(usize),
    DataLength(Handle),
    Completed(Handle),
    Data(Handle, bool, Vec<u8>),
}

impl Ether {
    fn new(peripherals: usize) -> Self {
        let central = node(1, GapRole::Central, peripherals);
        let others = (0..peripherals).map(|n| node(n as u8 + 2, GapRole::Peripheral, 1));
        Self::of(std::iter::once(central).chain(others).collect())
    }

    fn of(nodes: Vec<Node<'static>>) -> Self {
        let peripherals = nodes.len() - 1;
        let mut ether = Self {
            nodes,
            now: Instant::ORIGIN,
            advertising: vec![false; peripherals + 1],
            scanning: false,
            reports: VecDeque::new(),
            data: vec![0; peripherals + 1],
            mute: None,
        };
        for n in 0..=peripherals {
            let started = Event::Started {
                packet_len: 251,
                packets: 10,
            };
            ether.nodes[n].on_event(ID, LinkEvent::Ble(started), ether.now);
        }
        ether
    }

    fn act(&mut self, n: usize) -> bool {
        let mut out = [0; ACTION_LEN_MAX];
        let Some((_, action)) = self.nodes[n].poll_action(self.now, &mut out) else {
            return false;
        };
        let node::Action::Ble(action) = action else {
            panic!("{action:?}");
        };
        // The connection of the central and node n has n as its handle at both ends.
        let data = matches!(action, Action::Data { .. });
        if !data {
            self.reports.push_back((n, Report::Answered));
        }
        match action {
            Action::SetAdvertising { is_on } => {
                self.advertising[n] = is_on;
                if self.scanning {
                    self.reports.push_back((0, Report::Advertised(n)));
                }
            }
            Action::SetScan { is_on: false } => self.scanning = false,
            Action::SetScan { is_on: true } => {
                self.scanning = true;
                for (from, _) in self.advertising.iter().enumerate().filter(|(_, on)| **on) {
                    self.reports.push_back((n, Report::Advertised(from)));
                }
            }
            Action::Connect { peer, .. } => {
                let to = usize::from(peer.bytes[5]) - 1;
                self.advertising[to] = false;
                self.reports
                    .push_back((n, Report::Connected(to, GapRole::Central)));
                self.reports
                    .push_back((to, Report::Connected(to, GapRole::Peripheral)));
            }
            Action::SetDataLength { handle, .. } => {
                self.reports.push_back((n, Report::DataLength(handle)));
            }
            Action::Data {
                handle,
                is_first,
                len,
            } => {
                let to = if n == 0 { usize::from(handle.0) } else { 0 };
                self.data[n] += 1;
                self.reports.push_back((n, Report::Completed(handle)));
                if self.mute != Some(n) {
                    let bytes = out[..len].to_vec();
                    self.reports
                        .push_back((to, Report::Data(handle, is_first, bytes)));
                }
            }
            _ => {}
        }
        true
    }

    /// Lets everything happen that is due now.
    fn settle(&mut self) {
        loop {
            let mut acted = false;
            for n in 0..self.nodes.len() {
                while self.act(n) {
                    acted = true;
                }
            }
            let Some((n, report)) = self.reports.pop_front() else {
                if acted {
                    continue;
                }
                return;
            };
            let event = match &report {
                Report::Connected(with, role) => Event::Connected {
                    status: 0,
                    handle: Handle(*with as u16),
                    role: *role,
                    peer: device(if n == 0 { *with as u8 + 1 } else { 1 }),
                    timing: Timing {
                        interval: 40,
                        latency: 0,
                        timeout: 200,
                    },
                },
                Report::Answered => Event::Answered { status: 0 },
                Report::Advertised(from) => Event::Advertised(Advertisement {
                    from: device(*from as u8 + 1),
                    is_connectable: true,
                    rssi: -50,
                    data: &[2, 1, 6, 3, 3, 0x20, 0x18],
                }),
                Report::DataLength(handle) => Event::DataLength {
                    handle: *handle,
                    sent: 251,
                    received: 251,
                },
                Report::Completed(handle) => Event::Completed {
                    handle: *handle,
                    packets: 1,
                },
                Report::Data(handle, is_first, bytes) => Event::Data {
                    handle: *handle,
                    is_first: *is_first,
                    bytes,
                },
            };
            self.nodes[n].on_event(ID, LinkEvent::Ble(event), self.now);
        }
    }

    fn run(&mut self, time: Duration, mut until: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + time;
        while self.now < end {
            self.settle();
            if until(self) {
                return true;
            }
            let deadlines = self.nodes.iter().filter_map(Node::next_deadline);
            let next = deadlines.min().unwrap_or(end);
            self.now = next.max(self.now + Duration::from_millis(1)).min(end);
        }
        self.settle();
        until(self)
    }

    fn join(&mut self) {
        let joined = self.run(Duration::from_secs(30), |ether| {
            let mut motes = ether.nodes[1..].iter();
            motes.all(|mote| mote.global_address().is_some() && mote.ip().default_route().is_some())
        });
        assert!(joined, "the motes find the router");
    }

    fn ble(&self, n: usize) -> &Ble<'static> {
        match self.nodes[n].link(ID) {
            Some(Link::Ble(ble)) => ble,
            _ => panic!("no link"),
        }
    }

    /// Sends bytes from one node to another; whether all came.
    fn transfer(&mut self, from: usize, to: usize, remote: Ipv6Addr) -> bool {
        const LEN: usize = 50_000;
        let now = self.now;
        let config = &tcp::Config::DEFAULT;
        let tcp = self.nodes[to].tcp_mut();
        let listener = tcp.listen(None, 7, config).expect("a place");
        let accepted = tcp.accept(listener, buffers(), now).expect("a slot");
        let node = &mut self.nodes[from];
        let handle = node.connect((remote, 7), buffers(), config, now);
        let handle = handle.expect("a way there");
        let (mut sent, mut received) = (0, 0);
        let is_done = self.run(Duration::from_secs(60), |ether| {
            let now = ether.now;
            loop {
                let tcp = ether.nodes[from].tcp_mut();
                let piece: Vec<u8> = (sent..LEN.min(sent + 500)).map(|n| n as u8).collect();
                let taken = tcp.send(handle, &piece, now).unwrap_or(0);
                sent += taken;
                let tcp = ether.nodes[to].tcp_mut();
                let mut out = [0; 500];
                let came = tcp.recv(accepted, &mut out).unwrap_or(0);
                for byte in &out[..came] {
                    assert_eq!(*byte, received as u8);
                    received += 1;
                }
                if taken + came == 0 {
                    break;
                }
            }
            ether.settle();
            received == LEN
        });
        self.nodes[to].tcp_mut().unlisten(listener);
        is_done
    }
}

#[test]
fn motes_find_the_router_and_register() {
    let mut ether = Ether::new(3);
    ether.join();
    for n in 1..4 {
        let own = crate::ip::with_iid(&PREFIX, crate::ip::iid_of(&link_local(n as u8 + 1)));
        assert_eq!(ether.nodes[n].global_address(), Some(own));
        let mut addresses = ether.nodes[n].ip().addresses();
        assert!(addresses.any(|address| address.addr == link_local(n as u8 + 1)));
        let router = ether.nodes[n].ip().default_route();
        let iid = crate::ip::iid_of(&link_local(1));
        assert_eq!(router.map(|hop| hop.neighbour), Some(Neighbour::One(iid)));
    }
    ether.run(Duration::from_secs(5), |_| false);
    for n in 1..4 {
        let iid = crate::ip::iid_of(&link_local(n + 1));
        assert!(
            ether.ble(0).discovery.neighbor_cache().holds(iid),
            "mote {n}"
        );
    }
}

#[test]
fn tcp_gives_up_a_peer_whose_connection_does_not_come_back() {
    static HASTY: tcp::Config = tcp::Config {
        syn_retransmissions_max: 2,
        ..tcp::Config::DEFAULT
    };
    let mut ether = Ether::new(1);
    ether.join();
    let mote = &mut ether.nodes[1];
    let connected = mote.connect((link_local(1), 7), buffers(), &HASTY, ether.now);
    let handle = connected.expect("a way there");
    // The central has not noticed, and does not look for it.
    let gone = Event::Disconnected {
        handle: Handle(1),
        reason: 0x08,
    };
    mote.on_event(ID, LinkEvent::Ble(gone), ether.now);
    let state = |ether: &Ether| {
        let connection = ether.nodes[1].tcp().connection(handle);
        connection.map(tcp::Connection::state)
    };
    ether.run(Duration::from_secs(4), |_| false);
    let sent = |ether: &Ether| ether.nodes[1].tcp().counters().sent;
    assert_eq!(sent(&ether), 0, "it may come back soon");
    let is_over = ether.run(Duration::from_secs(60), |ether| {
        state(ether) == Some(tcp::State::Closed)
    });
    assert!(is_over, "{:?}", state(&ether));
    assert_eq!(sent(&ether), 3);
}

#[test]
fn tcp_passes_both_ways_and_fills_its_packets() {
    let mut ether = Ether::new(2);
    ether.join();
    let [router, mote] = [link_local(1), ether.nodes[1].global_address().unwrap()];
    let before = ether.data.clone();
    // Identifiers are elided, so that the MTU is what bounds a segment.
    assert_eq!(ether.nodes[1].mss((router, 7), false), 1220);
    assert!(ether.transfer(1, 0, router), "up");
    // 41 segments of 1,220 bytes fill five packets of 251 each; headers in a sixth would take 246.
    let packets = ether.data[1] - before[1];
    assert!((205..=235).contains(&packets), "{packets} packets");
    assert!(ether.transfer(0, 1, mote), "down");
    assert!(ether.transfer(0, 2, ether.nodes[2].global_address().unwrap()));
    assert_eq!(ether.ble(1).counters(), &LinkCounters::default());
}

/// A packet of which only its destination matters.
fn packet_to(dst: Ipv6Addr) -> [u8; 60] {
    let mut packet = [0; 60];
    let header = Header {
        traffic_class: crate::wire::ipv6::TrafficClass(0),
        flow_label: 0,
        payload_len: 20,
        next_header: 59,
        hop_limit: 255,
        src: link_local(1),
        dst,
    };
    header.emit(&mut packet).unwrap();
    packet
}

#[test]
fn what_goes_to_all_goes_to_each_peer_once() {
    let mut ether = Ether::new(3);
    ether.join();
    ether.run(Duration::from_secs(5), |_| false);
    let received: Vec<u32> = (1..4)
        .map(|n| ether.nodes[n].ip().counters.delivered)
        .collect();
    let Some(Link::Ble(ble)) = ether.nodes[0].link_mut(ID) else {
        panic!("no link");
    };
    let packet = packet_to(crate::ip::ALL_NODES);
    ble.queue([&packet, &[]]).unwrap();
    // Calls of the application are followed by a poll.
    ether.settle();
    for n in 1..4 {
        let delivered = ether.nodes[n].ip().counters.delivered;
        assert_eq!(delivered, received[n - 1] + 1, "mote {n}");
    }
}

#[test]
fn a_peer_that_gives_no_credit_stops_nobody_else() {
    let mut ether = Ether::new(2);
    ether.join();
    let [first, second] = [1, 2].map(|n| ether.nodes[n].global_address().unwrap());
    // Its credits do not come back, nor its segments.
    ether.mute = Some(1);
    let now = ether.now;
    let config = &tcp::Config::DEFAULT;
    let node = &mut ether.nodes[0];
    node.connect((first, 7), buffers(), config, now).unwrap();
    assert!(ether.transfer(0, 2, second));
}

#[test]
fn a_mote_waits_for_credit_with_its_tcp() {
    let mut ether = Ether::new(1);
    ether.join();
    ether.mute = Some(0);
    let now = ether.now;
    let remote = (link_local(1), 7);
    let handle = ether.nodes[1].connect(remote, buffers(), &tcp::Config::DEFAULT, now);
    let handle = handle.unwrap();
    let is_over = |ether: &mut Ether| {
        let connection = ether.nodes[1].tcp().connection(handle);
        connection.is_none_or(|connection| connection.state() == tcp::State::Closed)
    };
    assert!(
        ether.run(Duration::from_secs(2_000), is_over),
        "it waits for ever"
    );
    assert!(ether.now.as_micros() > 60_000_000, "it gave up at once");
}

#[test]
fn a_mote_whose_packet_is_stuck_does_not_keep_its_tcp_waiting_for_ever() {
    let mut ether = Ether::new(1);
    ether.join();
    ether.mute = Some(0);
    let remote = (link_local(1), 7);
    let now = ether.now;
    let handle = ether.nodes[1].connect(remote, buffers(), &tcp::Config::DEFAULT, now);
    let handle = handle.unwrap();
    let packet = packet_to(link_local(1));
    while !ether.ble(1).is_busy() {
        let Some(Link::Ble(ble)) = ether.nodes[1].link_mut(ID) else {
            panic!("no link");
        };
        ble.queue([&packet, &[]]).unwrap();
        ether.settle();
    }
    let Some(Link::Ble(ble)) = ether.nodes[1].link_mut(ID) else {
        panic!("no link");
    };
    // As after the first K-frames of an SDU for a peer whose K-frames are short.
    ble.host.begin(0, ChannelKind::Ip, 0, 1280);
    assert!(ble.host.lend_outward().is_none(), "the memory is in use");
    let is_over = |ether: &mut Ether| {
        let connection = ether.nodes[1].tcp().connection(handle);
        connection.is_none_or(|connection| connection.state() == tcp::State::Closed)
    };
    let sent = ether.nodes[1].tcp().counters().sent;
    assert!(
        ether.run(Duration::from_secs(2_000), is_over),
        "it waits for ever"
    );
    assert!(ether.now.since(now) > Duration::from_secs(60), "at once");
    assert_eq!(ether.nodes[1].tcp().counters().sent, sent);
}

#[test]
fn sdus_that_are_no_packets_are_counted() {
    let cases: [(&str, &[u8], LinkDrop); 6] = [
        ("a fragment", &[0xc0, 0x20, 0, 1, 0x7b], LinkDrop::Dispatch),
        ("no dispatch", &[0x00, 1, 2], LinkDrop::Dispatch),
        ("a mesh header", &[0x80, 1, 2], LinkDrop::Dispatch),
        ("headers that end", &[0x60], LinkDrop::Compression),
        (
            "half an IPv6 header",
            &[0x41, 0x60, 0, 0],
            LinkDrop::Compression,
        ),
        ("no context", &[0x7a, 0xf7, 0xff, 59], LinkDrop::Compression),
    ];
    let mut ether = Ether::new(1);
    ether.join();
    for (name, sdu, reason) in cases {
        let before = ether.ble(1).counters().dropped(reason);
        let len = sdu.len() as u8;
        let pdu = [&[len + 2, 0, 0x40, 0, len, 0][..], sdu].concat();
        let event = Event::Data {
            handle: Handle(1),
            is_first: true,
            bytes: &pdu,
        };
        let now = ether.now;
        ether.nodes[1].on_event(ID, LinkEvent::Ble(event), now);
        assert_eq!(
            ether.ble(1).counters().dropped(reason),
            before + 1,
            "{name}"
        );
    }
    assert!(ether.transfer(1, 0, link_local(1)), "nothing broke");
}

#[test]
fn an_address_has_its_bits_unchanged() {
    let link = link(7, GapRole::Peripheral, 1);
    let mut ip = Ip::new(crate::ip::Config::default(), &mut []);
    let mut link = link;
    link.start(ID, &mut ip, Instant::ORIGIN, &mut Rng::from_seed([1, 1]));
    let own = Address {
        addr: "fe80::c211:22ff:fe33:4407".parse().unwrap(),
        interface: ID,
    };
    assert!(ip.addresses().any(|address| *address == own));
}

#[cfg(feature = "tcple")]
#[path = "tcple.rs"]
mod with_tcple;
