//! Fuzzes the fairness of a border router. Each packet that goes in comes out once, in the order of
//! its flow and direction, and within a minute; only packets of unknown flows may be dropped. The
//! byte counters never exceed the bytes that passed.

use std::collections::{BTreeMap, VecDeque};

use motet::time::{Duration, Instant};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::tcp::{self, Flags};
use motet_taim::{
    Admission, Config, Decision, Direction, Packet, PacketId, Policy, Router, Window,
};

use crate::input::Input;
use crate::wire::{HOST, MESH};

/// Has segments of eight flows pass, with any numbers, flags, lengths, merged or cut off, and any
/// bytes between them, under a clock that steps both ways.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let choice = input.u8();
    let policy = policy(choice);
    let config = Config {
        // None in a fourth of the runs.
        strangers_max: usize::from(choice / 8 % 4),
        flows_max: 6,
        flows_per_mote_max: 3,
        held_max: 24,
        held_per_flow_max: 8,
        ..Config::new(policy)
    };
    let mut followed = Followed {
        router: Router::new(config),
        config,
        now: Instant::ORIGIN + Duration::from_secs(1_000),
        next_id: 0,
        copies: 0,
        lanes: BTreeMap::new(),
        whose: BTreeMap::new(),
        payload: 0,
    };
    while !input.is_empty() {
        match input.u8() {
            op @ 0..=199 => followed.segment(op, &mut input),
            200..=219 => followed.bytes(input.block()),
            220..=247 => followed.now += Duration::from_millis(input.u16().into()),
            248..=251 => {
                let back = u64::from(input.u16()) * 100_000;
                let now_us = followed.now.as_micros().saturating_sub(back);
                followed.now = Instant::from_micros(now_us);
            }
            252..=254 => followed
                .router
                .set_policy(self::policy(input.u8()), followed.now),
            255 => followed.now += Duration::from_secs(3_600),
        }
        followed.drain();
        followed.check();
    }
    followed.settle();
}

fn policy(choice: u8) -> Policy {
    match choice % 10 {
        named @ 0..=5 => Policy::NAMES[usize::from(named)].parse().expect("a name"),
        9 => Policy::Relay,
        window => Policy::Admission(Admission {
            window: Window::Fixed(u16::from(window) - 5),
        }),
    }
}

/// A router whose packets are followed.
struct Followed {
    router: Router,
    config: Config,
    now: Instant,
    next_id: u64,
    /// Copies that the relay sent.
    copies: u64,
    /// The packets held, by flow and direction.
    lanes: BTreeMap<(u8, bool), VecDeque<PacketId>>,
    whose: BTreeMap<PacketId, (u8, bool)>,
    /// Bytes of the streams that have come in segments.
    payload: u64,
}

impl Followed {
    /// Offers a segment; `op` says of which flow, which way, and how odd it is.
    fn segment(&mut self, op: u8, input: &mut Input<'_>) {
        let (flow, is_up) = (op & 7, op & 8 != 0);
        let number = |byte: u8, input: &mut Input<'_>| match byte {
            255 => input.u32(),
            steps => u32::from(steps).wrapping_mul(100).wrapping_sub(5_000),
        };
        let seq = number(input.u8(), input);
        let ack = number(input.u8(), input);
        let flags = match op >> 4 {
            0..=9 => Flags::ACK,
            10 => Flags::SYN | Flags::ACK,
            11 => Flags::ACK | Flags::FIN,
            _ => Flags::from_bits(input.u16() & 0x1ff),
        };
        let len = match input.u8() {
            255 => usize::from(input.u16()),
            steps => 10 * usize::from(steps),
        };
        self.payload += len as u64;
        let numbers = [seq, ack];
        let mut packet = headers(flow, is_up, numbers, flags, len);
        let packet_len = packet.len() + len;
        if self.router.config().policy == Policy::Relay && len <= MTU {
            // What is to be sent again must be there whole.
            packet.resize(packet_len, flow);
            fill_checksum(&mut packet);
        }
        self.offer((flow, is_up), &packet, packet_len);
    }

    fn offer(&mut self, lane: (u8, bool), headers: &[u8], len: usize) {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let direction = if lane.1 {
            Direction::Up
        } else {
            Direction::Down
        };
        let packet = Packet {
            id,
            direction,
            headers,
            len,
        };
        let held = self.lanes.entry(lane).or_default();
        let config = *self.router.config();
        match self.router.on_packet(&packet, self.now) {
            Decision::Pass => assert!(
                // A retransmission passes before new data of its flow that the relay holds.
                held.is_empty() || lane.0 == BYTES || config.policy == Policy::Relay,
                "it overtakes others of its flow"
            ),
            Decision::Hold => {
                held.push_back(id);
                self.whose.insert(id, lane);
            }
        }
    }

    /// Offers bytes that are of no flow that is followed, whatever they are.
    fn bytes(&mut self, bytes: &[u8]) {
        self.offer((BYTES, false), bytes, bytes.len());
        if self.config.strangers_max == 0 {
            assert!(self.lanes[&(BYTES, false)].is_empty(), "bytes wait");
        }
    }

    fn drain(&mut self) {
        while let Some(copy) = self.router.poll_copy(self.now) {
            let (header, _) = ipv6::Header::parse_start(copy).expect("it came so");
            assert_eq!(header.src, HOST, "only the host's are sent again");
            assert!(copy.len() <= MTU + 100);
            self.copies += 1;
        }
        assert!(self.copies <= 5 * self.next_id, "copies without end");
        let gone: Vec<PacketId> = std::iter::from_fn(|| self.router.poll(self.now)).collect();
        for id in std::iter::from_fn(|| self.router.poll_dropped()) {
            let lane = self.whose.remove(&id).expect("it is held, and goes once");
            let lane = self.lanes.get_mut(&lane).expect("its flow");
            lane.retain(|other| *other != id);
        }
        for id in gone {
            let lane = self.whose.remove(&id).expect("it is held, and goes once");
            let of_lane = self.lanes.get_mut(&lane).expect("its flow");
            match lane {
                // Several hosts' may be among them.
                (BYTES, _) => of_lane.retain(|other| *other != id),
                _ => assert_eq!(of_lane.pop_front(), Some(id), "in the order of its flow"),
            }
        }
    }

    fn check(&mut self) {
        assert_eq!(self.router.held(), self.whose.len());
        assert!(self.router.held() <= self.config.held_max + self.config.strangers_max);
        let status = self.router.status(self.now);
        assert!(status.flows.len() <= self.config.flows_max);
        assert!(status.motes.len() <= self.config.flows_max);
        let counted = status
            .motes
            .iter()
            .map(|mote| mote.bytes_up + mote.bytes_down);
        assert!(counted.sum::<u64>() <= self.payload, "more than has passed");
    }

    /// Nothing is held for longer than a minute, when nothing comes any more.
    fn settle(&mut self) {
        let end = self.now + Duration::from_secs(60);
        while let Some(at) = self.router.next_deadline() {
            assert!(
                at <= end || self.whose.is_empty(),
                "a packet is held for more than a minute"
            );
            assert!(at <= end + Duration::from_secs(600), "it never rests");
            self.now = at.max(self.now + Duration::from_micros(1));
            self.drain();
        }
        assert!(self.whose.is_empty(), "a packet is held for ever");
    }
}

/// Bytes of payload that a packet into a mesh has at most.
const MTU: usize = 1_280;

fn fill_checksum(packet: &mut [u8]) {
    let (header, _) = ipv6::Header::parse_start(packet).expect("one of ours");
    tcp::fill_checksum(&header.src, &header.dst, &mut packet[ipv6::HEADER_LEN..]);
}

/// The number of no flow.
const BYTES: u8 = 8;

/// An IPv6 and a TCP header; each two flows are of one mote.
fn headers(flow: u8, is_up: bool, numbers: [u32; 2], flags: Flags, len: usize) -> Vec<u8> {
    let port = 1_000 + u16::from(flow % 2);
    let tcp = tcp::Header {
        src_port: if is_up { port } else { 80 },
        dst_port: if is_up { 80 } else { port },
        seq: numbers[0],
        ack: numbers[1],
        flags,
        window: 1_848,
        options: tcp::Options {
            mss: flags.contains(Flags::SYN).then_some(len as u16),
            ..tcp::Options::default()
        },
        ..tcp::Header::default()
    };
    let header_len = tcp.header_len();
    let mut mote = MESH.octets();
    mote[15] ^= flow / 2;
    let ends = (mote.into(), HOST);
    let (src, dst) = if is_up { ends } else { (ends.1, ends.0) };
    let ip = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: (header_len + len).min(65_535) as u16,
        next_header: tcp::NEXT_HEADER,
        hop_limit: 64,
        src,
        dst,
    };
    let mut headers = vec![0; ipv6::HEADER_LEN + header_len];
    ip.emit(&mut headers).expect("room");
    tcp.emit(&mut headers[ipv6::HEADER_LEN..]).expect("room");
    headers
}

/// A transfer out of the mesh by three flows, acknowledged; one into it; and what a stranger
/// forges.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for policy in 0..32 {
        let mut up = vec![policy];
        let mut down = vec![policy, 10 << 4 | 8, 50, 50, 0];
        let mut forged = vec![policy];
        for n in 0..12 {
            for flow in 0..3 {
                // A segment, and its acknowledgment 50 ms later.
                up.extend([8 | flow, 50 + n, 50, 10, 220, 0, 50, flow, 50, 51 + n, 0]);
                down.extend([flow, 50 + n, 50, 10, 220, 0, 50, 8 | flow, 50, 51 + n, 0]);
                let jump = [255, n, flow, 0, 0];
                forged.extend([8 | flow, 50 + n, 50, 10]);
                forged.extend([flow].iter().chain(&jump).chain(&jump).chain(&[0]));
                // SYN, then RST.
                forged.extend([12 << 4 | flow, 50, 50, 0, 2, 0]);
                forged.extend([12 << 4 | flow, 50, 50, 0, 4, 0]);
            }
        }
        up.extend([248, 1, 0, 255]);
        seeds.extend([up, down, forged]);
    }
    seeds
}
