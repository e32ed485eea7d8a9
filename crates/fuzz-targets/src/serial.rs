//! A node on a serial line, with whatever comes over it: held against a plain model of the framing.

use motet::ip::{Address, Config as IpConfig, InterfaceId, Ip, Neighbour, NextHop};
use motet::limits::IPV6_MTU_MIN;
use motet::link::{Action, Event, Link, Serial, SerialCounters, SerialMemory};
use motet::node::{ACTION_LEN_MAX, Node};
use motet::random::Rng;
use motet::tcp::{Config, HalfOpen, Listener, Memory, Slot, Tcp};
use motet::time::{Duration, Instant};
use motet::wire::ipv6;

use crate::input::Input;
use crate::wire::HOST;

/// Feeds a line in events of any length, and takes what the node answers in pieces of any length.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (mut inward, mut outward) = ([0; IPV6_MTU_MIN], [0; IPV6_MTU_MIN]);
    let mut queue = [0; 3000];
    let mut links = [Link::Serial(Serial::new(SerialMemory {
        inward: &mut inward,
        outward: &mut outward,
        queue: &mut queue,
    }))];
    let (mut connections, mut half_open) = ([Slot::EMPTY], [HalfOpen::EMPTY; 2]);
    let mut listeners = [Listener::EMPTY];
    let memory = Memory {
        connections: &mut connections,
        listeners: &mut listeners,
        half_open: &mut half_open,
    };
    let mut rng = Rng::from_seed([7, 8]);
    let mut tcp = Tcp::new(memory, &mut rng);
    tcp.listen(None, LISTENED, &Config::DEFAULT)
        .expect("a free place");
    let mut ip = Ip::new(IpConfig::default(), &mut []);
    ip.add_address(Address {
        addr: HOST,
        interface: LINE,
    });
    ip.set_default_route(Some(NextHop {
        interface: LINE,
        neighbour: Neighbour::Only,
    }));
    let mut now = Instant::ORIGIN;
    let mut node = Node::new(&mut links, ip, tcp, rng, now);
    let (mut came, mut left) = (Vec::new(), Vec::new());
    while !input.is_empty() {
        now += Duration::from_millis(input.u8().into());
        let op = input.u8();
        let event = match op & 3 {
            // A frame as it should be; its packet is the input's.
            0 => framed(input.block()),
            // One that may be too long.
            1 => vec![input.u8(); usize::from(input.u16()) % 4000],
            _ => input.block().to_vec(),
        };
        came.extend_from_slice(&event);
        for part in event.chunks(1 + usize::from(op >> 2)) {
            node.on_event(LINE, Event::Serial(part), now);
        }
        let room = 2 + usize::from(input.u8()) * 5;
        poll(&mut node, room, now, &mut left);
    }
    let Some(Link::Serial(line)) = node.link(LINE) else {
        panic!("no line");
    };
    let (counters, _) = model(&came);
    assert_eq!(*line.counters(), counters);
    // The node's output must be well framed, and consist of whole packets.
    let (counters, packets) = model(&left);
    assert_eq!((counters.bad_escapes, counters.overlong), (0, 0));
    assert!(left.last().is_none_or(|last| *last == END), "half a frame");
    for packet in packets {
        let (_, payload) = ipv6::Header::parse(&packet).expect("an IPv6 packet");
        assert_eq!(ipv6::HEADER_LEN + payload.len(), packet.len());
    }
}

/// Polls the node until it has nothing left to send; each action gets `room` bytes at most.
fn poll(node: &mut Node<'_>, room: usize, now: Instant, left: &mut Vec<u8>) {
    let mut out = [0; ACTION_LEN_MAX];
    for _ in 0..10_000 {
        let Some((_, action)) = node.poll_action(now, &mut out[..room]) else {
            return;
        };
        let Action::Serial { len } = action else {
            panic!("no action for a line: {action:?}");
        };
        assert!(len > 0 && len <= room);
        left.extend_from_slice(&out[..len]);
    }
    panic!("the node never rests");
}

/// The bytes by which SLIP frames `packet` (RFC 1055), with an END before it.
pub(crate) fn framed(packet: &[u8]) -> Vec<u8> {
    let symbol = |byte: &u8| match *byte {
        END => vec![ESC, ESC_END],
        ESC => vec![ESC, ESC_ESC],
        byte => vec![byte],
    };
    let body = packet.iter().flat_map(symbol);
    [END].into_iter().chain(body).chain([END]).collect()
}

/// A model of a line: the packets that a stream of bytes holds, and the counters after it. A frame
/// without END holds no packet yet, but may count as dropped already.
fn model(bytes: &[u8]) -> (SerialCounters, Vec<Vec<u8>>) {
    let (mut counters, mut packets) = (SerialCounters::default(), Vec::new());
    let frames: Vec<&[u8]> = bytes.split(|byte| *byte == END).collect();
    for (n, frame) in frames.iter().enumerate() {
        let ends = n + 1 < frames.len();
        match unframed(frame, ends) {
            Ok(packet) if ends && !packet.is_empty() => {
                counters.received += 1;
                packets.push(packet);
            }
            Ok(_) => {}
            Err(Wrong::Escape) => counters.bad_escapes += 1,
            Err(Wrong::Length) => counters.overlong += 1,
        }
    }
    (counters, packets)
}

/// Why a frame is dropped: whichever shows first.
enum Wrong {
    Escape,
    Length,
}

fn unframed(frame: &[u8], ends: bool) -> Result<Vec<u8>, Wrong> {
    let mut packet = Vec::new();
    let mut bytes = frame.iter();
    while let Some(byte) = bytes.next() {
        let byte = match (*byte, bytes.as_slice().first()) {
            (ESC, Some(&ESC_END)) => END,
            (ESC, Some(&ESC_ESC)) => ESC,
            (ESC, None) if !ends => break,
            (ESC, _) => return Err(Wrong::Escape),
            (byte, _) => byte,
        };
        if byte == END || byte == ESC {
            bytes.next();
        }
        if packet.len() == IPV6_MTU_MIN {
            return Err(Wrong::Length);
        }
        packet.push(byte);
    }
    Ok(packet)
}

const LINE: InterfaceId = InterfaceId(0);
const LISTENED: u16 = 7;

const END: u8 = 0xc0;
const ESC: u8 = 0xdb;
const ESC_END: u8 = 0xdc;
const ESC_ESC: u8 = 0xdd;
