//! A whole node, a border router, fed frames and packets: it never panics, always comes to
//! rest, and gives up every record.

use std::net::Ipv6Addr;

use motet::ip::{Address, Config as IpConfig, InterfaceId, Ip, Neighbour, NextHop, Prefix, Route};
use motet::limits::IPV6_MTU_MIN;
use motet::lowpan::datagram::{Datagrams, Record};
use motet::mac::{self, FrameSlot, Mac, Neighbor, RadioCapabilities, RxMeta};
use motet::node::{
    ACTION_LEN_MAX, Action, Advertised, Event, Interface, Node, Radio, RadioConfig, RadioMemory,
    Relaying, Wire,
};
use motet::random::Rng;
use motet::storage::packet_queue::PacketQueue;
use motet::tcp::{Config, HalfOpen, Listener, Memory, Slot, Tcp};
use motet::time::{Duration, Instant};
use motet::wire::{LinkAddr, ieee802154};

use crate::input::Input;
use crate::wire::{HOST, MESH};

/// Runs a border router through the events of an input.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut rng = Rng::from_seed([5, 6]);
    let mut slots = [const { FrameSlot::EMPTY }; 4];
    let mut neighbors = [Neighbor::EMPTY; 2];
    let (mut records, mut bodies) = ([const { Record::EMPTY }; 3], vec![0; 2 * IPV6_MTU_MIN]);
    let (mut outgoing, mut queue, mut wire_queue) = ([0; IPV6_MTU_MIN], [0; 3000], [0; 3000]);
    let capabilities = RadioCapabilities::CC2420;
    let config = mac::Config::new(PAN, US);
    let mac = Mac::new(config, capabilities, &mut slots, &mut neighbors, &mut rng);
    let memory = RadioMemory {
        outgoing: &mut outgoing,
        datagrams: Datagrams::new(&mut records, &mut bodies, IPV6_MTU_MIN, false, &mut rng),
        queue: PacketQueue::new(&mut queue),
    };
    let relaying = match input.flag() {
        true => Relaying::Reassembly,
        false => Relaying::Fragments,
    };
    let mut radio = Radio::new(radio_config(relaying), mac, memory);
    radio.contexts_mut().set(0, MESH, 64, true);
    let wire = Wire::new(PacketQueue::new(&mut wire_queue), 1500);
    let mut interfaces = [Interface::Radio(radio), Interface::Wire(wire)];
    let mut routes = [const { None }; 4];
    let mut connections = [const { Slot::EMPTY }; 2];
    let (mut listeners, mut half_open) = ([Listener::EMPTY; 1], [HalfOpen::EMPTY; 2]);
    let memory = Memory {
        connections: &mut connections,
        listeners: &mut listeners,
        half_open: &mut half_open,
    };
    let mut tcp = Tcp::new(memory, &mut rng);
    tcp.listen(None, 7, &SETTINGS).expect("a free place");
    let ip = router(&mut routes);
    let node = Node::new(&mut interfaces, ip, tcp, rng, Instant::ORIGIN);
    let mut driver = Driver {
        node,
        now: Instant::ORIGIN,
        sequence: 0,
    };
    driver.rest();
    while !input.is_empty() {
        driver.step(&mut input);
    }
    driver.sleep();
}

struct Driver<'m> {
    node: Node<'m>,
    now: Instant,
    sequence: u8,
}

impl Driver<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        self.now += Duration::from_micros(u64::from(input.u8()) * 100);
        let op = input.u8();
        match op & 7 {
            0 => self.radio(mac::Event::Preloaded),
            1 => self.radio(mac::Event::ChannelAssessed { clear: op & 8 != 0 }),
            2 => self.radio(mac::Event::TransmitDone { at: self.now }),
            3 => self.now += Duration::from_millis(u64::from(input.u16())),
            4 => {
                let len = usize::from(input.u16() & 0x7ff);
                let packet = input.bytes(len);
                self.node
                    .on_event(InterfaceId(1), Event::Packet(packet), self.now);
            }
            _ => {
                let frame = framed(input.block(), op, &mut self.sequence);
                if op & 64 != 0 {
                    self.radio(mac::Event::FrameHead { head: &frame });
                }
                let meta = RxMeta {
                    rssi_dbm: -50,
                    lqi: 200,
                    channel: 26,
                    at: self.now,
                };
                self.radio(mac::Event::FrameReceived { psdu: &frame, meta });
            }
        }
        self.rest();
    }

    fn radio(&mut self, event: mac::Event<'_>) {
        self.node
            .on_event(InterfaceId(0), Event::Radio(event), self.now);
    }

    /// Does whatever is due; the node must come to an end with it.
    fn rest(&mut self) {
        let mut out = [0; 1500];
        assert!(out.len() >= ACTION_LEN_MAX);
        for _ in 0..1000 {
            match self.node.poll_action(self.now, &mut out) {
                None => {
                    let next = self.node.next_deadline();
                    assert!(next.is_none_or(|at| at > self.now), "it wakes at once");
                    return;
                }
                Some((_, Action::Packet { len })) => assert!(len <= 1500),
                Some((_, Action::Radio(_))) => {}
            }
        }
        panic!("the node never rests");
    }

    /// Ten minutes in which nothing more comes.
    fn sleep(&mut self) {
        let end = self.now + Duration::from_secs(600);
        let mut wakes = 0;
        while let Some(at) = self.node.next_deadline().filter(|at| *at < end) {
            self.now = self.now.max(at);
            self.rest();
            wakes += 1;
            assert!(wakes < 5_000, "it does not sleep");
        }
        let Some(Interface::Radio(radio)) = self.node.interface(InterfaceId(0)) else {
            panic!("a radio");
        };
        assert!(radio.datagrams().is_empty(), "a record was not given up");
    }
}

/// A frame as it comes from the radio: `body` as it is, or with a header to us and an FCS,
/// so that the layers above see it.
fn framed(body: &[u8], op: u8, sequence: &mut u8) -> Vec<u8> {
    if op & 8 != 0 {
        return body.get(..body.len().min(127)).unwrap_or(body).to_vec();
    }
    *sequence = sequence.wrapping_add(1);
    let dst = match op & 16 {
        0 => LinkAddr::Extended(US),
        _ => LinkAddr::BROADCAST,
    };
    let header = ieee802154::Header::data(PAN, dst, LinkAddr::Extended(THEM), *sequence);
    let mut out = [0; 127];
    let room = header.payload_len_max().min(body.len());
    let payload = body.get(..room).unwrap_or(body);
    let len = header.emit_frame(payload, &mut out).expect("it fits");
    out[..len].to_vec()
}

fn radio_config(relaying: Relaying) -> RadioConfig {
    RadioConfig {
        relaying,
        solicits: false,
        advertised: Some(Advertised {
            prefix: MESH,
            lifetime: Advertised::LIFETIME,
        }),
        ..RadioConfig::default()
    }
}

fn router<'m>(routes: &'m mut [Option<Route>]) -> Ip<'m> {
    let config = IpConfig {
        forwards: true,
        ..IpConfig::default()
    };
    let mut ip = Ip::new(config, routes);
    let wire = NextHop {
        interface: InterfaceId(1),
        neighbour: Neighbour::Only,
    };
    let radio = NextHop {
        interface: InterfaceId(0),
        neighbour: Neighbour::One(LinkAddr::Extended(THEM).iid()),
    };
    let [a, b, c, d, ..] = HOST.segments();
    ip.add_address(Address {
        addr: Ipv6Addr::new(a, b, c, d, 0, 0, 0, 2),
        interface: InterfaceId(1),
    });
    let host = Prefix {
        addr: HOST,
        len: 64,
    };
    let mesh = Prefix {
        addr: MESH,
        len: 64,
    };
    for (prefix, next_hop) in [(host, wire), (mesh, radio)] {
        assert!(ip.add_route(Route { prefix, next_hop }));
    }
    ip
}

const PAN: u16 = 0x4d54;
const US: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 1];
const THEM: [u8; 8] = [2, 0, 0, 0, 0, 0, 0, 2];
static SETTINGS: Config = Config::DEFAULT;
