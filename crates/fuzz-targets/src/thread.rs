//! A child of a Thread network: its dataset, the messages that it hears, and their sequences.
//!
//! The input is a program: messages of routers with arbitrary TLVs, sealed with the network's key
//! at arbitrary sequences; answers to the child's own challenges; frames, sealed and not; ACKs that
//! do not come; time; a host that stores counters, or fails to. Invariants: nothing panics, the
//! node rests after each step, no counter is used twice or beyond what was stored, and the key
//! sequence neither goes back nor beyond what a router has shown.

use std::net::Ipv6Addr;

use motet::ip::{Config as IpConfig, InterfaceId, Ip};
use motet::link::{Link, Mesh, MeshConfig, MeshStorage};
use motet::lowpan::{Contexts, LinkPair, compress, decompress};
use motet::mac::security::{NetworkKey, Peer, Security, SecurityConfig, Software, index, seal};
use motet::mac::{self, Action as RadioAction, AttemptOutcome, RadioCapabilities, RxMeta};
use motet::node::{ACTION_LEN_MAX, Action, Event, Node};
use motet::random::Rng;
use motet::thread::mle::{self, Builder, Ends, Numbers, command, tlv_type as tlv};
use motet::thread::network_data::NetworkData;
use motet::thread::{CHILD_TIMEOUT, Child, ChildConfig, Dataset, Identity};
use motet::time::{Duration, Instant};
use motet::wire::ieee802154::{Auxiliary, Header, Level, fcs};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::{LinkAddr, udp};

use crate::input::Input;

/// Runs a child through a program.
pub(crate) fn run(bytes: &[u8]) {
    let _attached = reach(bytes);
}

/// As [`run`]; how often the child was attached.
fn reach(bytes: &[u8]) -> u32 {
    let _dataset = Dataset::parse(bytes);
    let _text = std::str::from_utf8(bytes).map(Dataset::parse_hex);
    if let Ok(prefixes) = NetworkData::parse(bytes) {
        for prefix in prefixes {
            let routers = prefix.border_routers().chain(prefix.external_routes());
            assert!(routers.count() <= bytes.len() && prefix.bits <= 128);
            assert!(prefix.context().is_none_or(|it| it.id < 16));
        }
    }
    let mut input = Input::new(bytes);
    let mut peers = [Peer::EMPTY; 2];
    let mut security = Security::new(&SecurityConfig::new(KEY, 0), &mut peers);
    let mut child = Child::new(&ChildConfig {
        dataset: DATASET,
        identity: IDENTITY,
        timeout: CHILD_TIMEOUT,
        former: None,
    });
    let mut storage = MeshStorage::<8, 3, 4, 2, 1500>::EMPTY;
    let mut rng = Rng::from_seed([8, 9]);
    let mac = mac::Config::new(DATASET.pan, IDENTITY.extended);
    let radio = (
        mac,
        RadioCapabilities {
            fcs_by_radio: false,
            ..RadioCapabilities::OFFLOADING
        },
    );
    let mesh = Mesh::new(MeshConfig::default(), radio, storage.lend(), &mut rng);
    let mut mesh = mesh.expect("the radio can do what these settings ask for");
    mesh.set_security(&mut security);
    mesh.set_thread(&mut child)
        .expect("a key, and two neighbours");
    let mut links = [Link::Mesh(mesh)];
    let ip = Ip::new(IpConfig::default(), &mut []);
    let mut world = World {
        node: Node::without_tcp(&mut links, ip, rng, Instant::ORIGIN),
        now: Instant::ORIGIN,
        loaded: Vec::new(),
        stores: true,
        acknowledges: true,
        bound: 0,
        counter: None,
        challenge: None,
        shown: 0,
        sequence: 0,
        counters: [0; 2],
    };
    world.rest();
    while !input.is_empty() {
        world.step(&mut input);
        world.rest();
    }
    world.child().counters().attached
}

/// The child, its radio, and what the routers remember.
struct World<'m> {
    node: Node<'m>,
    now: Instant,
    loaded: Vec<u8>,
    stores: bool,
    acknowledges: bool,
    /// The bound that the host has stored, and the last counter of a message.
    bound: u32,
    counter: Option<u32>,
    /// The last challenge of the child.
    challenge: Option<Vec<u8>>,
    /// The highest key sequence that a message or a frame was sealed with, and the child's.
    shown: u32,
    sequence: u32,
    /// Counters of the routers, of MLE and of frames.
    counters: [u32; 2],
}

impl<'m> World<'m> {
    fn mesh(&self) -> &Mesh<'m> {
        self.node.link(RADIO).and_then(Link::mesh).expect("a mesh")
    }

    fn child(&self) -> &Child {
        self.mesh().thread().expect("a child")
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 6 {
            0 => self.pass(Duration::from_millis(u64::from(input.u8()) * 250)),
            1 => self.message(input),
            2 => self.receive(input.block()),
            3 => self.data(input),
            4 => self.stores = input.flag(),
            _ => self.acknowledges = input.flag(),
        }
    }

    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.node.next_deadline().filter(|at| *at < end) {
            self.now = self.now.max(at);
            self.rest();
        }
        self.now = end;
    }

    /// A message of a router, with the TLVs of the input; a response to the child's challenge in
    /// front of them, where that is asked for.
    fn message(&mut self, input: &mut Input<'_>) {
        let (choice, command, sequence) = (input.u8(), input.u8(), u32::from(input.u8()));
        let router = ROUTERS[usize::from(choice & 1)];
        let answers = choice & 2 != 0;
        let [counter, _] = &mut self.counters;
        *counter = counter.wrapping_add(u32::from(choice >> 2));
        let numbers = Numbers {
            sequence,
            counter: *counter,
        };
        let mut out = [0; 400];
        let mut builder = Builder::new(command, &mut out);
        if let Some(challenge) = self.challenge.as_ref().filter(|_| answers) {
            builder.tlv(tlv::RESPONSE, &[challenge]);
        }
        for _ in 0..12 {
            let value = input.block();
            if value.is_empty() {
                break;
            }
            builder.tlv(value[0], &[&value[1..]]);
        }
        let [src, dst] = [router, IDENTITY.extended].map(local);
        let ends = Ends { src, dst };
        let Ok(len) = builder.seal(&KEY, &ends, numbers) else {
            return;
        };
        self.shown = self.shown.max(sequence);
        let packet = datagram(&ends, &out[..len]);
        let link = LinkPair {
            src: LinkAddr::Extended(router),
            dst: LinkAddr::Extended(IDENTITY.extended),
        };
        let mut payload = [0; 512];
        let done = compress(&packet, link, &Contexts::new(), &mut payload);
        let done = done.expect("a datagram of MLE");
        let payload = [
            &payload[..done.compressed_len],
            &packet[done.uncompressed_len..],
        ]
        .concat();
        let header = Header::data(DATASET.pan, link.dst, link.src, *counter as u8);
        if payload.len() <= header.payload_len_max() {
            let mut frame = [0; 127];
            let len = header.emit_frame(&payload, &mut frame).expect("it fits");
            self.receive(&frame[..len]);
        }
    }

    /// A sealed frame of a router, with arbitrary contents.
    fn data(&mut self, input: &mut Input<'_>) {
        let (choice, sequence) = (input.u8(), u32::from(input.u8()));
        let own = self.child().place().map_or(0, |place| place.rloc16);
        let src = match choice & 1 {
            0 => LinkAddr::Short(0x7400),
            _ => LinkAddr::Extended(ROUTERS[0]),
        };
        let dst = match choice & 6 {
            0 => LinkAddr::BROADCAST,
            2 => LinkAddr::Extended(IDENTITY.extended),
            _ => LinkAddr::Short(own),
        };
        let [_, counter] = &mut self.counters;
        *counter = counter.wrapping_add(1);
        let auxiliary = Auxiliary {
            level: Level::Mic32,
            counter: *counter,
            key_index: index(sequence),
        };
        let header = Header::data(DATASET.pan, dst, src, *counter as u8);
        let mut frame = [0; 127];
        let at = header
            .emit_secured(&auxiliary, &mut frame)
            .expect("a header fits");
        let payload = input.block();
        let room = 127 - 2 - 4 - at;
        let mut body = [&payload[..payload.len().min(room)], &[0; 4]].concat();
        let cipher = Software::new(&KEY.link_key(sequence));
        let sealed = seal(&cipher, ROUTERS[0], auxiliary, &frame[..at], &mut body);
        sealed.expect("there is room for the MIC");
        self.shown = self.shown.max(sequence);
        let mpdu = [&frame[..at], &body].concat();
        let sum = fcs(&mpdu).to_le_bytes();
        self.receive(&[&mpdu[..], &sum].concat());
    }

    fn receive(&mut self, psdu: &[u8]) {
        let meta = RxMeta {
            rssi_dbm: -50,
            lqi: 200,
            channel: 15,
            at: self.now,
        };
        self.radio(mac::Event::FrameReceived { psdu, meta });
    }

    fn radio(&mut self, event: mac::Event<'_>) {
        self.node.on_event(RADIO, Event::Mesh(event), self.now);
    }

    /// Lets the node do all that it can, and looks at what holds always.
    fn rest(&mut self) {
        let mut out = [0; ACTION_LEN_MAX];
        loop {
            while let Some((id, reservation)) = self.node.poll_reservation(self.now) {
                self.node
                    .on_reserved(id, reservation, self.stores, self.now);
                if self.stores {
                    self.bound = self.bound.max(reservation.counter);
                }
            }
            let Some((_, action)) = self.node.poll_action(self.now, &mut out) else {
                break;
            };
            let Action::Mesh(action) = action else {
                panic!("one radio");
            };
            match action {
                RadioAction::Preload { len } => {
                    self.loaded = out[..len].to_vec();
                    self.radio(mac::Event::Preloaded);
                }
                RadioAction::Fire => self.fire(),
                _ => {}
            }
        }
        let next = self.node.next_deadline();
        assert!(next.is_none_or(|at| at > self.now), "it wakes at once");
        let sequence = self.mesh().mac().security().expect("a key").sequence();
        assert!(sequence >= self.sequence, "the key sequence went back");
        assert!(
            sequence <= self.shown,
            "a key sequence that nobody has shown"
        );
        self.sequence = sequence;
    }

    /// The frame that is loaded goes out.
    fn fire(&mut self) {
        let mpdu = &self.loaded[..self.loaded.len() - 2];
        let (header, auxiliary, body) = Header::parse_secured(mpdu).expect("its own frame");
        match auxiliary {
            Some(auxiliary) => assert!(auxiliary.counter < self.bound),
            None => {
                let link = LinkPair {
                    src: header.src.expect("a source").addr,
                    dst: header.dst.expect("a destination").addr,
                };
                let mut out = [0; 400];
                let done = decompress(body, link, &Contexts::new(), None, &mut out);
                let done = done.expect("its own packet");
                let head = &out[..done.uncompressed_len];
                let packet = [head, &body[done.compressed_len..]].concat();
                let (header, datagram) = ipv6::Header::parse(&packet).expect("its own packet");
                let ends = Ends {
                    src: header.src,
                    dst: header.dst,
                };
                let mut payload = datagram[udp::HEADER_LEN..].to_vec();
                let message = mle::open(&KEY, &ends, &mut payload).expect("its own message");
                let counter = message.numbers.counter;
                assert!(counter < self.bound, "a counter that was not stored");
                // A frame that is tried again is the same message.
                assert!(
                    self.counter.is_none_or(|last| last <= counter),
                    "a counter of the past"
                );
                self.counter = Some(counter);
                if let Some(challenge) = message.tlvs.find(tlv::CHALLENGE) {
                    self.challenge = Some(challenge.to_vec());
                }
            }
        }
        let outcome = match (header.ack_request, self.acknowledges) {
            (false, _) => AttemptOutcome::Done,
            (true, true) => AttemptOutcome::Acked { pending: false },
            (true, false) => AttemptOutcome::NoAck,
        };
        let at = self.now;
        self.radio(mac::Event::Sent { outcome, at });
    }
}

fn local(extended: [u8; 8]) -> Ipv6Addr {
    let iid = u64::from_be_bytes(LinkAddr::Extended(extended).iid());
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(iid))
}

fn datagram(ends: &Ends, payload: &[u8]) -> Vec<u8> {
    let len = udp::HEADER_LEN + payload.len();
    let header = ipv6::Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: len as u16,
        next_header: udp::NEXT_HEADER,
        hop_limit: 255,
        src: ends.src,
        dst: ends.dst,
    };
    let mut packet = vec![0; ipv6::HEADER_LEN + len];
    header.emit(&mut packet).expect("it fits");
    let (_, datagram) = packet.split_at_mut(ipv6::HEADER_LEN);
    let ports = udp::Header {
        src_port: mle::PORT,
        dst_port: mle::PORT,
    };
    ports.emit(payload.len(), datagram).expect("it fits");
    datagram[udp::HEADER_LEN..].copy_from_slice(payload);
    udp::fill_checksum(&ends.src, &ends.dst, datagram);
    packet
}

/// Programs that attach, and in which then something happens; a dataset; network data.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let block = |kind: u8, value: &[u8]| [&[value.len() as u8 + 1, kind][..], value].concat();
    let message = |choice: u8, command: u8, sequence: u8, tlvs: &[Vec<u8>]| {
        [&[1, choice, command, sequence][..], &tlvs.concat(), &[0]].concat()
    };
    let source = block(tlv::SOURCE_ADDRESS, &[0x74, 0]);
    let leader = block(tlv::LEADER_DATA, &[0, 0, 0, 9, 64, 1, 1, 29]);
    let offer = [
        source.clone(),
        leader.clone(),
        block(tlv::LINK_FRAME_COUNTER, &[0; 4]),
        block(tlv::CHALLENGE, &[6; 8]),
        block(tlv::LINK_MARGIN, &[60]),
        block(tlv::CONNECTIVITY, &[0; 10]),
        block(tlv::VERSION, &[0, 4]),
    ];
    let given = [
        source.clone(),
        leader.clone(),
        block(tlv::ADDRESS16, &[0x74, 1]),
        block(tlv::NETWORK_DATA, &NETWORK_DATA),
    ];
    let attach = [
        message(6, command::PARENT_RESPONSE, 0, &offer),
        message(4, command::CHILD_ID_RESPONSE, 0, &given),
    ]
    .concat();
    let then = |more: &[Vec<u8>]| [&attach[..], &more.concat()].concat();
    let challenge = block(tlv::CHALLENGE, &[3; 8]);
    let status = block(tlv::STATUS, &[1]);
    vec![
        then(&[
            vec![0, 200],
            message(
                6,
                command::CHILD_UPDATE_RESPONSE,
                0,
                &[source.clone(), leader],
            ),
        ]),
        then(&[message(4, command::CHILD_UPDATE_REQUEST, 5, &[challenge])]),
        then(&[
            message(4, command::CHILD_UPDATE_RESPONSE, 0, &[source, status]),
            vec![0, 20],
        ]),
        then(&[
            vec![3, 4, 3, 2, 0x7a, 0x33],
            vec![4, 0, 5, 0, 0, 255, 0, 255],
        ]),
        NETWORK_DATA.to_vec(),
        vec![
            0, 3, 0, 0, 15, 1, 2, 0xab, 0xcd, 5, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
            15, 16, 7, 8, 0xfd, 0, 0, 0, 0, 0, 0, 0, 14, 8, 0, 0, 0, 0, 0, 1, 0, 0,
        ],
    ]
}

const RADIO: InterfaceId = InterfaceId(0);
const KEY: NetworkKey = NetworkKey::new([7; 16]);
const DATASET: Dataset = Dataset {
    channel: 15,
    pan: 0xabcd,
    network: KEY,
    mesh_local_prefix: [0xfd, 0, 0x0d, 0xb8, 0, 0, 0, 0],
    timestamp: [0, 0, 0, 0, 0, 1, 0, 0],
};
const IDENTITY: Identity = Identity {
    extended: [2, 1, 2, 3, 4, 5, 6, 7],
    iid: [8; 8],
};
const ROUTERS: [[u8; 8]; 2] = [[0x0a; 8], [0x0e; 8]];
/// A prefix with a context and a border router.
const NETWORK_DATA: [u8; 22] = [
    0x03, 0x14, 0x00, 0x40, 0xfd, 0x11, 0x00, 0x22, 0x00, 0x33, 0x00, 0x44, 0x07, 0x02, 0x11, 0x40,
    0x05, 0x04, 0x74, 0x00, 0x33, 0x00,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_attach() {
        let attached: Vec<_> = seeds().iter().map(|seed| reach(seed)).collect();
        assert_eq!(attached[..4], [1; 4]);
    }

    #[test]
    fn random_programs_find_nothing() {
        let mut rng = Rng::from_seed([1, 2]);
        for seed in seeds() {
            for _ in 0..300 {
                let mut program = seed.clone();
                for _ in 0..=rng.below(6) {
                    let at = rng.below(program.len() as u32) as usize;
                    program[at] = rng.next_u32() as u8;
                }
                program.extend(seed.iter().take(rng.below(60) as usize));
                run(&program);
            }
        }
    }
}
