//! A node that is a child of a Thread network, frame by frame: a parent is played here, with keys,
//! frames and messages as `OpenThread`'s.

use super::*;
use crate::lowpan::{Contexts, LinkPair, compress, decompress};
use crate::mac::security::{
    NetworkKey, Peer, Security, SecurityConfig, Software, index, open, seal,
};
use crate::mac::{Action as RadioAction, AttemptOutcome, Event as RadioEvent, FrameDrop};
#[cfg(feature = "sleepy")]
use crate::mac::{Policy, Sleep};
use crate::thread::mle::{self, Builder, Ends, Numbers, command, tlv_type as tlv};
use crate::thread::{
    CHILD_TIMEOUT, Child, ChildConfig, ChildState, Dataset, Identity, MleDrop, ThreadUnfit, Tlvs,
};
use crate::udp::Inbox;
use crate::wire::ieee802154::{Auxiliary, FrameType, Header as FrameHeader, Level, fcs};
use crate::wire::udp;

const KEY: NetworkKey = NetworkKey::new([7; 16]);
const PAN: u16 = 0xabcd;
const OWN: [u8; 8] = [0x02, 1, 2, 3, 4, 5, 6, 7];
const ROUTER: [u8; 8] = [0x0a, 9, 9, 9, 9, 9, 9, 9];
const ROUTER_SHORT: u16 = 0x7400;
const OWN_SHORT: u16 = 0x7401;
const LEADER: [u8; 8] = [0, 0, 0, 9, 64, 1, 1, 29];
/// A host behind a border router.
const FAR: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
/// Another node of the mesh.
const NEAR: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xdb8, 0, 0, 1, 1, 1, 1);
const PREFIX: [u8; 22] = [
    0x03, 0x14, 0x00, 0x40, 0xfd, 0x11, 0x00, 0x22, 0x00, 0x33, 0x00, 0x44, 0x07, 0x02, 0x11, 0x40,
    0x05, 0x04, 0x74, 0x00, 0x33, 0x00,
];

/// A node and the parent that is played.
struct Air {
    node: Node<'static>,
    now: Instant,
    loaded: Vec<u8>,
    /// Whether the node's receiver is on, and for how long it was.
    is_listening: bool,
    listened: Duration,
    frames: usize,
    /// Frames that wait for the air, or for a node that sleeps.
    to_child: Vec<(Instant, Vec<u8>)>,
    waiting: Vec<Vec<u8>>,
    sleeps: bool,
    /// Whether sealed frames say that more follow.
    follows: bool,
    /// Whether others are on the air whenever the node would send.
    is_busy: bool,
    /// Whether the parent is there, and knows the child.
    is_there: bool,
    knows: bool,
    sequence: u32,
    mle_counter: u32,
    mac_counter: u32,
    dsn: u8,
    /// Messages of the node, and its packets.
    messages: Vec<(u8, Vec<u8>)>,
    packets: Vec<Vec<u8>>,
    polls: Vec<Instant>,
}

fn dataset() -> Dataset {
    Dataset {
        channel: 15,
        pan: PAN,
        network: KEY,
        mesh_local_prefix: [0xfd, 0, 0x0d, 0xb8, 0, 0, 0, 0],
        timestamp: [0, 0, 0, 0, 0, 1, 0, 0],
    }
}

impl Air {
    fn new(sleeps: bool) -> Self {
        let mut rng = Rng::from_seed([3, 4]);
        let radio = RadioCapabilities {
            fcs_by_radio: false,
            ..RadioCapabilities::OFFLOADING
        };
        let mac = mac::Config {
            channel: 15,
            ..mac::Config::new(PAN, OWN)
        };
        let memory_of = mesh_memory(16, 4);
        let config = MeshConfig::default();
        let mut mesh = Mesh::new(config, (mac, radio), memory_of, &mut rng).unwrap();
        let security = Security::new(&SecurityConfig::new(KEY, 0), memory(Peer::EMPTY, 2));
        mesh.set_security(Box::leak(Box::new(security)));
        let identity = Identity {
            extended: OWN,
            iid: [8; 8],
        };
        let child = Child::new(&ChildConfig {
            dataset: dataset(),
            identity,
            timeout: CHILD_TIMEOUT,
            former: None,
        });
        mesh.set_thread(Box::leak(Box::new(child))).unwrap();
        #[cfg(feature = "sleepy")]
        if sleeps {
            let policy = Policy::Hinted(Duration::from_secs(30));
            mesh.set_sleep(Some(Sleep::thread(policy)));
        }
        let ip = Ip::new(IpConfig::default(), memory(None, 2));
        let tcp = tcp_engine(&mut rng);
        let links = Vec::leak(std::vec![Link::Mesh(mesh)]);
        let mut node = Node::new(links, ip, tcp, rng, Instant::ORIGIN);
        node.set_inbox(Inbox::new(&[7], memory(0, 1_024)));
        Self {
            node,
            now: Instant::from_micros(1),
            loaded: Vec::new(),
            is_listening: true,
            listened: Duration::ZERO,
            frames: 0,
            to_child: Vec::new(),
            waiting: Vec::new(),
            sleeps,
            follows: false,
            is_busy: false,
            is_there: true,
            knows: false,
            sequence: 0,
            mle_counter: 50,
            mac_counter: 0,
            dsn: 0,
            messages: Vec::new(),
            packets: Vec::new(),
            polls: Vec::new(),
        }
    }

    fn child(&self) -> &Child {
        let mesh = self.node.link(RADIO).and_then(Link::mesh).unwrap();
        mesh.thread().unwrap()
    }

    fn mac(&self) -> &mac::Mac<'static> {
        self.node.link(RADIO).and_then(Link::mesh).unwrap().mac()
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.poll();
            let frame = self.to_child.iter().map(|(at, _)| *at).min();
            let next = earliest(self.node.next_deadline(), frame);
            let Some(next) = next.filter(|at| *at <= end) else {
                break;
            };
            let next = next.max(self.now + Duration::from_micros(1));
            if self.is_listening {
                self.listened = self.listened + next.since(self.now);
            }
            self.now = next;
            let due = self.to_child.iter().position(|(at, _)| *at <= self.now);
            if let Some(due) = due {
                let (_, frame) = self.to_child.remove(due);
                if self.is_listening {
                    self.report(&frame);
                }
            }
        }
        self.now = end;
    }

    fn run_until(&mut self, is_so: impl Fn(&Self) -> bool) -> Duration {
        let begin = self.now;
        while !is_so(self) {
            self.run(Duration::from_millis(10));
            let past = self.now.since(begin);
            let child = self.child();
            assert!(past < Duration::from_secs(200), "in vain: {child:?}");
        }
        self.now.since(begin)
    }

    fn report(&mut self, psdu: &[u8]) {
        let meta = RxMeta {
            rssi_dbm: -40,
            lqi: 255,
            channel: 15,
            at: self.now,
        };
        let event = Event::Mesh(RadioEvent::FrameReceived { psdu, meta });
        self.node.on_event(RADIO, event, self.now);
    }

    fn poll(&mut self) {
        let mut out = [0; ACTION_LEN_MAX];
        while let Some((_, action)) = self.node.poll_action(self.now, &mut out) {
            let Action::Mesh(action) = action else {
                panic!("a node with one radio: {action:?}");
            };
            let event = match action {
                RadioAction::Preload { len } => {
                    self.loaded = out[..len].to_vec();
                    RadioEvent::Preloaded
                }
                RadioAction::Fire => {
                    self.now += Duration::from_millis(4);
                    let frame = self.loaded.clone();
                    let outcome = self.hear(&frame);
                    RadioEvent::Sent {
                        outcome,
                        at: self.now,
                    }
                }
                RadioAction::Listen | RadioAction::Sleep => {
                    self.is_listening = action == RadioAction::Listen;
                    continue;
                }
                _ => continue,
            };
            self.node.on_event(RADIO, Event::Mesh(event), self.now);
        }
        while let Some((id, reservation)) = self.node.poll_reservation(self.now) {
            self.node.on_reserved(id, reservation, true, self.now);
        }
    }

    /// A frame of the node, as the parent hears it.
    fn hear(&mut self, psdu: &[u8]) -> AttemptOutcome {
        self.frames += 1;
        let mpdu = &psdu[..psdu.len() - 2];
        let (header, auxiliary, body) = FrameHeader::parse_secured(mpdu).unwrap();
        if self.is_busy {
            return AttemptOutcome::Busy;
        }
        if !self.is_there {
            return match header.ack_request {
                true => AttemptOutcome::NoAck,
                false => AttemptOutcome::Done,
            };
        }
        let link = LinkPair {
            src: header.src.unwrap().addr,
            dst: header.dst.unwrap().addr,
        };
        let Some(auxiliary) = auxiliary else {
            assert_eq!(
                link.src,
                LinkAddr::Extended(OWN),
                "MLE is from the extended address"
            );
            self.on_mle(body, link);
            return match header.ack_request {
                true => AttemptOutcome::Acked { pending: false },
                false => AttemptOutcome::Done,
            };
        };
        if auxiliary.key_index != index(self.sequence) {
            // The radio acknowledges, and knows for whom something waits.
            let pending = header.frame_type == FrameType::Command && !self.waiting.is_empty();
            return AttemptOutcome::Acked { pending };
        }
        let is_command = header.frame_type == FrameType::Command;
        let at = mpdu.len() - body.len() + usize::from(is_command);
        let (clear, sealed) = mpdu.split_at(at);
        let mut sealed = sealed.to_vec();
        let cipher = Software::new(&KEY.link_key(self.sequence));
        let opened = open(&cipher, OWN, auxiliary, clear, &mut sealed);
        let opened = opened.expect("sealed with the network's key").to_vec();
        if is_command {
            self.polls.push(self.now);
            let is_child = self.knows || link.src == LinkAddr::Extended(OWN);
            let pending = is_child && !self.waiting.is_empty();
            if pending {
                let mut frame = self.waiting.remove(0);
                if !self.waiting.is_empty() {
                    // The frame pending bit, which is authenticated: such frames are made for it.
                    frame = self.promise(frame);
                }
                self.to_child
                    .push((self.now + Duration::from_millis(3), frame));
            }
            return AttemptOutcome::Acked { pending };
        }
        if self.knows {
            assert_eq!(link.src, LinkAddr::Short(OWN_SHORT));
            assert_eq!(
                link.dst,
                LinkAddr::Short(ROUTER_SHORT),
                "all goes to the parent"
            );
            let mut out = [0; 1_280];
            let done = decompress(&opened, link, &contexts(), None, &mut out).unwrap();
            let rest = &opened[done.compressed_len..];
            self.packets
                .push([&out[..done.uncompressed_len], rest].concat());
        }
        AttemptOutcome::Acked { pending: false }
    }

    /// Sets the frame pending bit of a frame in clear.
    fn promise(&self, mut frame: Vec<u8>) -> Vec<u8> {
        let is_secured = frame[0] & 0x08 != 0;
        if is_secured {
            return frame;
        }
        frame[0] |= 0x10;
        let len = frame.len() - 2;
        let sum = fcs(&frame[..len]).to_le_bytes();
        frame[len..].copy_from_slice(&sum);
        frame
    }

    fn on_mle(&mut self, body: &[u8], link: LinkPair) {
        let mut out = [0; 1_280];
        let done = decompress(body, link, &Contexts::new(), None, &mut out).unwrap();
        let packet = [&out[..done.uncompressed_len], &body[done.compressed_len..]].concat();
        let (header, datagram) = Header::parse(&packet).unwrap();
        assert!(udp::is_checksum_valid(&header.src, &header.dst, datagram));
        assert_eq!(header.hop_limit, 255);
        let mut payload = datagram[8..].to_vec();
        let ends = Ends {
            src: header.src,
            dst: header.dst,
        };
        let message = mle::open(&KEY, &ends, &mut payload).unwrap();
        let mut tlvs = Vec::new();
        for (kind, value) in message.tlvs {
            tlvs.extend([kind, value.len() as u8]);
            tlvs.extend(value);
        }
        let command = message.command;
        // A higher sequence that was not proven is not followed, and what is sealed with it is not
        // opened; answered challenges prove it.
        let told = Tlvs::parse(&tlvs).unwrap();
        let challenge = told.find(tlv::CHALLENGE).map(<[u8]>::to_vec);
        self.messages.push((command, tlvs.clone()));
        let source = (tlv::SOURCE_ADDRESS, &ROUTER_SHORT.to_be_bytes()[..]);
        let leader = (tlv::LEADER_DATA, &LEADER[..]);
        let response = challenge.as_deref().map(|it| (tlv::RESPONSE, it));
        match command {
            command::PARENT_REQUEST => {
                let counter = self.mac_counter.to_be_bytes();
                let answer = [
                    source,
                    leader,
                    (tlv::LINK_FRAME_COUNTER, &counter),
                    response.unwrap(),
                    (tlv::CHALLENGE, &[6; 8]),
                    (tlv::LINK_MARGIN, &[60]),
                    (tlv::CONNECTIVITY, &[0; 10]),
                    (tlv::VERSION, &[0, 4]),
                ];
                self.knows = false;
                // The node listens until it has chosen.
                let frame = self.mle(command::PARENT_RESPONSE, &answer, OWN);
                self.to_child
                    .push((self.now + Duration::from_millis(100), frame));
            }
            command::CHILD_ID_REQUEST => {
                assert_eq!(told.find(tlv::RESPONSE).unwrap(), [6; 8]);
                self.knows = true;
                self.waiting.clear();
                let answer = [
                    source,
                    leader,
                    (tlv::ADDRESS16, &OWN_SHORT.to_be_bytes()),
                    (tlv::NETWORK_DATA, &PREFIX),
                ];
                self.answer(command::CHILD_ID_RESPONSE, &answer);
            }
            command::CHILD_UPDATE_REQUEST => {
                let status = (!self.knows).then_some((tlv::STATUS, &[1][..]));
                let counter = self.mac_counter.to_be_bytes();
                let counts = response.map(|_| (tlv::LINK_FRAME_COUNTER, &counter[..]));
                let answer = [Some(source), Some(leader), response, counts, status];
                let answer: Vec<_> = answer.into_iter().flatten().collect();
                self.answer(command::CHILD_UPDATE_RESPONSE, &answer);
            }
            command::DATA_REQUEST => {
                let answer = [source, leader, (tlv::NETWORK_DATA, &PREFIX)];
                self.answer(command::DATA_RESPONSE, &answer);
            }
            _ => {}
        }
    }

    fn answer(&mut self, command: u8, tlvs: &[(u8, &[u8])]) {
        let frame = self.mle(command, tlvs, OWN);
        self.give(frame);
    }

    /// Sends a frame to the node, or keeps it until the node asks.
    fn give(&mut self, frame: Vec<u8>) {
        match self.sleeps {
            true => self.waiting.push(frame),
            false => self
                .to_child
                .push((self.now + Duration::from_millis(5), frame)),
        }
    }

    /// A frame with a message of the parent.
    fn mle(&mut self, command: u8, tlvs: &[(u8, &[u8])], to: [u8; 8]) -> Vec<u8> {
        self.mle_counter += 1;
        let [src, dst] = [ROUTER, to].map(|it| ip::link_local(LinkAddr::Extended(it).iid()));
        let ends = Ends { src, dst };
        let mut out = [0; 400];
        let mut builder = Builder::new(command, &mut out);
        for (kind, value) in tlvs {
            builder.tlv(*kind, &[value]);
        }
        let numbers = Numbers {
            sequence: self.sequence,
            counter: self.mle_counter,
        };
        let len = builder.seal(&KEY, &ends, numbers).unwrap();
        let packet = datagram((src, dst), (mle::PORT, mle::PORT), 255, &out[..len]);
        self.frame(
            LinkAddr::Extended(ROUTER),
            LinkAddr::Extended(to),
            &packet,
            false,
        )
    }

    /// A frame with a packet, sealed where that is asked for.
    fn frame(&mut self, src: LinkAddr, dst: LinkAddr, packet: &[u8], is_sealed: bool) -> Vec<u8> {
        let link = LinkPair { src, dst };
        let mut payload = [0; 200];
        let done = compress(packet, link, &contexts(), &mut payload).unwrap();
        let payload = [
            &payload[..done.compressed_len],
            &packet[done.uncompressed_len..],
        ]
        .concat();
        self.dsn = self.dsn.wrapping_add(1);
        let mut header = FrameHeader::data(PAN, dst, src, self.dsn);
        header.frame_pending = is_sealed && self.follows;
        let mut out = [0; 127];
        if !is_sealed {
            let len = header.emit_frame(&payload, &mut out).unwrap();
            return out[..len].to_vec();
        }
        let auxiliary = Auxiliary {
            level: Level::Mic32,
            counter: self.mac_counter,
            key_index: index(self.sequence),
        };
        self.mac_counter += 1;
        let at = header.emit_secured(&auxiliary, &mut out).unwrap();
        let mut body = [&payload[..], &[0; 4]].concat();
        let cipher = Software::new(&KEY.link_key(self.sequence));
        seal(&cipher, ROUTER, auxiliary, &out[..at], &mut body).unwrap();
        let mpdu = [&out[..at], &body].concat();
        let sum = fcs(&mpdu).to_le_bytes();
        [&mpdu[..], &sum].concat()
    }

    /// Sends a datagram to the node, from a host.
    fn send(&mut self, src: Ipv6Addr, dst: Ipv6Addr, payload: &[u8]) {
        let packet = datagram((src, dst), (9, 7), 62, payload);
        let short = [ROUTER_SHORT, OWN_SHORT].map(LinkAddr::Short);
        let frame = self.frame(short[0], short[1], &packet, true);
        self.give(frame);
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let inbox = self.node.inbox_mut().unwrap();
        let mut all = Vec::new();
        let mut out = [0; 200];
        while let Some(received) = inbox.recv(&mut out) {
            all.push(out[..received.len].to_vec());
        }
        all
    }

    fn address(&self, n: usize) -> Ipv6Addr {
        self.child().addresses().nth(n).unwrap()
    }

    fn dropped(&self, reason: FrameDrop) -> u32 {
        self.mac().counters().dropped(reason)
    }
}

fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    let [mesh, prefix] = ["fd00:db8::", "fd11:22:33:44::"].map(|it| it.parse().unwrap());
    assert!(contexts.set(0, mesh, 64, true) && contexts.set(1, prefix, 64, true));
    contexts
}

fn datagram(
    (src, dst): (Ipv6Addr, Ipv6Addr),
    (src_port, dst_port): (u16, u16),
    hop_limit: u8,
    payload: &[u8],
) -> Vec<u8> {
    let len = udp::HEADER_LEN + payload.len();
    let header = Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: len as u16,
        next_header: udp::NEXT_HEADER,
        hop_limit,
        src,
        dst,
    };
    let mut packet = std::vec![0; ipv6::HEADER_LEN + len];
    header.emit(&mut packet).unwrap();
    let (_, datagram) = packet.split_at_mut(ipv6::HEADER_LEN);
    let ports = udp::Header { src_port, dst_port };
    ports.emit(payload.len(), datagram).unwrap();
    datagram[udp::HEADER_LEN..].copy_from_slice(payload);
    udp::fill_checksum(&src, &dst, datagram);
    packet
}

fn attached(sleeps: bool) -> Air {
    let mut air = Air::new(sleeps);
    let took = air.run_until(|air| air.child().state() == ChildState::Attached);
    assert!(took < Duration::from_millis(600), "{took:?}");
    // The address in the prefix is registered.
    air.run_until(|air| air.messages.last().unwrap().0 == command::CHILD_UPDATE_REQUEST);
    air.run(Duration::from_millis(300));
    air
}

#[test]
fn a_node_attaches_and_its_data_goes_both_ways() {
    let mut air = attached(false);
    let eid: Ipv6Addr = "fd00:db8::808:808:808:808".parse().unwrap();
    assert_eq!(air.address(0), eid);
    let rloc: Ipv6Addr = "fd00:db8::ff:fe00:7401".parse().unwrap();
    let slaac = air.address(2);
    // Each address takes what comes; the source fits the destination.
    let cases = [(NEAR, eid, eid), (FAR, slaac, slaac), (NEAR, rloc, eid)];
    for (n, (host, own, speaks)) in cases.into_iter().enumerate() {
        air.send(host, own, &[n as u8; 3]);
        air.run(Duration::from_millis(100));
        assert_eq!(air.received(), [[n as u8; 3]]);
        air.packets.clear();
        air.node.send_datagram((host, 9), 7, b"answer").unwrap();
        air.run(Duration::from_millis(100));
        let (header, datagram) = Header::parse(&air.packets[0]).unwrap();
        assert_eq!((header.src, header.dst), (speaks, host));
        assert_eq!(&datagram[8..], b"answer");
    }
    // What is for all goes to the parent, too: it is no frame for all.
    air.packets.clear();
    let all = "ff02::1".parse::<Ipv6Addr>().unwrap();
    air.node.send_datagram((all, 9), 7, b"hello").unwrap();
    air.run(Duration::from_millis(100));
    assert_eq!(air.packets.len(), 1);
}

#[test]
fn frames_of_others_and_recordings_are_dropped_and_counted() {
    let mut air = attached(false);
    let eid = air.address(0);
    let packet = datagram((NEAR, eid), (9, 7), 64, b"x");
    let short = LinkAddr::Short(OWN_SHORT);
    // Of another router, for all; of another one by its extended address; the same one twice.
    let frame = air.frame(LinkAddr::Short(0x1000), LinkAddr::BROADCAST, &packet, true);
    air.report(&frame);
    let stranger = LinkAddr::Extended([0x02, 5, 5, 5, 5, 5, 5, 5]);
    let frame = air.frame(stranger, short, &packet, true);
    air.report(&frame);
    assert_eq!(air.dropped(FrameDrop::NotParent), 2);
    let frame = air.frame(LinkAddr::Short(ROUTER_SHORT), short, &packet, true);
    let later = air.frame(LinkAddr::Short(ROUTER_SHORT), short, &packet, true);
    for frame in [&frame, &later, &later, &frame] {
        air.report(frame);
        air.run(Duration::from_millis(10));
    }
    assert_eq!(air.received().len(), 2);
    let counters = [FrameDrop::Duplicate, FrameDrop::Replayed].map(|it| air.dropped(it));
    assert_eq!(counters, [1, 1]);
    // Data in clear, and MLE whose hop limit shows that it was forwarded.
    let frame = air.frame(
        LinkAddr::Extended(ROUTER),
        LinkAddr::Extended(OWN),
        &packet,
        false,
    );
    air.report(&frame);
    air.run(Duration::from_millis(10));
    assert!(air.received().is_empty());
    let mesh = air.node.link(RADIO).and_then(Link::mesh).unwrap();
    assert_eq!(mesh.counters().dropped(LinkDrop::InClear), 1);
    let before = air.child().counters().believed;
    let [src, dst] = [ROUTER, OWN].map(|it| ip::link_local(LinkAddr::Extended(it).iid()));
    let forwarded = datagram((src, dst), (mle::PORT, mle::PORT), 254, &[0; 40]);
    let frame = air.frame(
        LinkAddr::Extended(ROUTER),
        LinkAddr::Extended(OWN),
        &forwarded,
        false,
    );
    air.report(&frame);
    let forged = datagram((src, dst), (mle::PORT, mle::PORT), 255, &[0; 40]);
    let frame = air.frame(
        LinkAddr::Extended(ROUTER),
        LinkAddr::Extended(OWN),
        &forged,
        false,
    );
    air.report(&frame);
    air.run(Duration::from_millis(10));
    assert_eq!(air.child().counters().believed, before);
    let reasons = [MleDrop::Unsecured, MleDrop::NotLocal];
    assert_eq!(reasons.map(|it| air.child().counters().dropped(it)), [1, 1]);
}

#[test]
fn a_later_key_is_followed_with_the_first_frame_of_the_parent() {
    let mut air = attached(false);
    let eid = air.address(0);
    air.messages.clear();
    (air.sequence, air.mac_counter) = (5, 0);
    air.send(NEAR, eid, b"new key");
    air.run(Duration::from_millis(100));
    assert_eq!(air.received(), [b"new key"]);
    assert_eq!(air.mac().security().unwrap().sequence(), 5);
    assert_eq!(
        air.messages[0].0,
        command::CHILD_UPDATE_REQUEST,
        "it says so"
    );
    air.packets.clear();
    air.node.send_datagram((NEAR, 9), 7, b"answer").unwrap();
    air.run(Duration::from_millis(100));
    assert_eq!(air.packets.len(), 1);
    // By a message of MLE, the same.
    (air.sequence, air.mac_counter) = (6, 0);
    let told = [(tlv::CHALLENGE, &[1; 8][..])];
    air.answer(command::CHILD_UPDATE_REQUEST, &told);
    air.run(Duration::from_millis(100));
    assert_eq!(air.mac().security().unwrap().sequence(), 6);
    let commands: Vec<_> = air.messages.iter().map(|(command, _)| *command).collect();
    let (response, request) = (
        command::CHILD_UPDATE_RESPONSE,
        command::CHILD_UPDATE_REQUEST,
    );
    assert_eq!(commands[1..], [response, request]);
}

/// Its own key came from a router that then did not take it. It keeps the parent's for as long as
/// the parent has no later one, beyond the guard time of 10 minutes.
#[test]
fn a_node_one_key_ahead_of_its_parent_goes_on_hearing_it() {
    let mut air = attached(false);
    let (eid, now) = (air.address(0), air.now);
    let link = air.node.link_mut(RADIO).and_then(Link::mesh_mut);
    link.unwrap().rotate_key(1, now);
    air.run(Duration::from_secs(700));
    assert_eq!(air.mac().security().unwrap().sequence(), 1);
    assert_eq!(air.child().counters().lost, 0);
    air.send(NEAR, eid, b"old key");
    air.run(Duration::from_millis(100));
    assert_eq!(air.received(), [b"old key"]);
}

#[test]
fn frames_that_others_keep_from_the_air_are_not_the_silence_of_the_parent() {
    for (is_busy, lost) in [(true, 0), (false, 1)] {
        let mut air = attached(false);
        (air.is_busy, air.is_there) = (is_busy, false);
        for _ in 0..4 {
            air.node.send_datagram((NEAR, 9), 7, b"x").unwrap();
            air.run(Duration::from_millis(500));
        }
        assert_eq!(air.child().counters().lost, lost, "busy: {is_busy}");
    }
}

#[test]
fn a_parent_that_is_gone_or_has_forgotten_is_found_again() {
    for knows_nothing in [false, true] {
        let mut air = attached(false);
        let eid = air.address(0);
        let buffers = Buffers::new(memory(0, 512), memory(0, 512));
        let now = air.now;
        air.packets.clear();
        let socket = air.node.connect((NEAR, 80), buffers, &SETTINGS, now);
        let socket = socket.unwrap();
        air.run(Duration::from_millis(100));
        assert_eq!(air.packets.len(), 1, "a SYN");
        // A minute without data later it is gone, or has been started anew.
        air.is_there = knows_nothing;
        air.knows = false;
        air.mle_counter = 0;
        air.waiting.clear();
        let is_lost = |air: &Air| air.child().counters().lost == 1;
        let took = air.run_until(is_lost);
        assert!(took < Duration::from_secs(60), "{took:?}");
        air.is_there = true;
        air.run_until(|air| air.child().state() == ChildState::Attached);
        assert_eq!(air.address(0), eid);
        // The connection still begins, from the same address.
        air.packets.clear();
        air.run_until(|air| !air.packets.is_empty());
        let (header, _) = Header::parse(&air.packets[0]).unwrap();
        assert_eq!((header.src, header.dst), (eid, NEAR));
        assert!(air.node.tcp_mut().send(socket, b"x", now).is_ok());
    }
}

#[test]
fn a_node_rests_until_its_counters_are_stored() {
    let mut air = Air::new(false);
    let mut out = [0; ACTION_LEN_MAX];
    let (id, reservation) = air.node.poll_reservation(air.now).unwrap();
    while air.node.poll_action(air.now, &mut out).is_some() {}
    let rests_until = air.node.next_deadline();
    assert!(rests_until.is_none_or(|at| at > air.now), "{rests_until:?}");
    air.node.on_reserved(id, reservation, true, air.now);
    air.run_until(|air| air.child().state() == ChildState::Attached);
}

#[test]
fn a_parent_that_counts_anew_is_heard_once_it_has_told_so() {
    let mut air = attached(false);
    air.mac_counter = 5_000;
    let eid = air.address(0);
    air.send(NEAR, eid, b"1");
    air.run(Duration::from_millis(100));
    assert_eq!(air.received(), [b"1"]);
    // It has started anew, without its memory, and says in its Parent Response where it counts.
    (air.knows, air.mac_counter) = (false, 10);
    air.run_until(|air| air.child().counters().attached == 2);
    air.run(Duration::from_millis(300));
    air.send(NEAR, eid, b"2");
    air.run(Duration::from_millis(100));
    assert_eq!(air.received(), [b"2"]);
}

#[test]
fn a_node_that_leaves_says_so_and_is_silent() {
    let mut air = attached(false);
    air.messages.clear();
    let link = air.node.link_mut(RADIO).and_then(Link::mesh_mut);
    link.unwrap().leave_thread();
    air.run(Duration::from_secs(600));
    let [(command, tlvs)] = &air.messages[..] else {
        panic!("{:?}", air.messages);
    };
    let told = Tlvs::parse(tlvs).unwrap();
    assert_eq!(*command, command::CHILD_UPDATE_REQUEST);
    assert_eq!(told.array(tlv::TIMEOUT), Some([0; 4]));
    assert_eq!(air.child().state(), ChildState::Left);
}

#[cfg(feature = "sleepy")]
#[test]
fn a_node_that_sleeps_attaches_and_polls_by_its_short_address() {
    let mut air = attached(true);
    let mode = &air.messages[0].1[..3];
    assert_eq!(mode, [tlv::MODE, 1, 4]);
    air.run(Duration::from_secs(40));
    air.polls.clear();
    air.listened = Duration::ZERO;
    let frames = air.frames;
    air.run(Duration::from_secs(300));
    assert!((10..18).contains(&air.polls.len()), "{:?}", air.polls);
    let updates = (air.frames - frames - air.polls.len()) as u32;
    assert!(updates <= 8, "{updates} frames beside polls");
    assert!(air.listened < Duration::from_secs(3), "{:?}", air.listened);
    // Packets that wait are asked for one after the other, at once.
    let eid = air.address(0);
    for n in 0..5 {
        air.follows = n < 4;
        air.send(NEAR, eid, &[n; 4]);
    }
    air.polls.clear();
    air.run(Duration::from_secs(31));
    assert_eq!(air.received().len(), 5);
    let span = air.polls[4].since(air.polls[0]);
    assert!(span < Duration::from_millis(200), "{:?}", air.polls);
}

#[cfg(feature = "sleepy")]
#[test]
fn a_later_key_and_a_challenge_reach_a_node_that_sleeps() {
    let mut air = attached(true);
    let eid = air.address(0);
    air.run(Duration::from_secs(40));
    air.messages.clear();
    // It has gone over to a key far ahead: it promises frames, and takes no request of the former.
    (air.sequence, air.mac_counter) = (5, 0);
    air.send(NEAR, eid, b"new key");
    let begin = air.now;
    air.run_until(|air| air.mac().security().unwrap().sequence() == 5);
    air.run_until(|air| air.child().state() == ChildState::Attached);
    let took = air.now.since(begin);
    assert!(took < Duration::from_secs(100), "{took:?}");
    let told = [(tlv::CHALLENGE, &[1; 8][..])];
    air.send(NEAR, eid, b"new key");
    air.answer(command::CHILD_UPDATE_REQUEST, &told);
    air.run(Duration::from_secs(35));
    assert_eq!(air.received(), [b"new key"]);
    let commands: Vec<_> = air.messages.iter().map(|(command, _)| *command).collect();
    assert!(
        commands.contains(&command::CHILD_UPDATE_RESPONSE),
        "{commands:?}"
    );
    assert_eq!(air.child().state(), ChildState::Attached);
}

/// With the counters that it has lost, all its frames would be recordings.
#[test]
fn a_parent_that_counts_anew_with_its_memory_is_heard_after_a_challenge() {
    let mut air = attached(false);
    air.mac_counter = 5_000;
    let eid = air.address(0);
    air.send(NEAR, eid, b"1");
    air.run(Duration::from_millis(100));
    assert_eq!(air.received(), [b"1"]);
    (air.mac_counter, air.mle_counter) = (10, 0);
    air.send(NEAR, eid, b"2");
    air.run(Duration::from_millis(100));
    assert!(air.received().is_empty(), "it may be a recording");
    air.run(Duration::from_secs(45));
    air.send(NEAR, eid, b"3");
    air.run(Duration::from_millis(100));
    assert_eq!(air.received(), [b"3"]);
    assert_eq!(air.child().counters().attached, 1);
}

#[test]
fn a_node_that_cannot_be_a_child_is_refused() {
    for (peers, agrees, expected) in [
        (0, None, Err(ThreadUnfit::NoKey)),
        (1, None, Err(ThreadUnfit::FewNeighbours)),
        (2, None, Ok(())),
        // A network of Thread has no router that restores headers: what is agreed there is plain.
        (2, Some(true), Ok(())),
        (2, Some(false), Err(ThreadUnfit::TcpHeaders)),
    ] {
        let mut rng = Rng::from_seed([3, 4]);
        let config = mac::Config::new(PAN, OWN);
        let parts = (config, RadioCapabilities::OFFLOADING);
        let mut mesh =
            Mesh::new(MeshConfig::default(), parts, mesh_memory(16, 4), &mut rng).unwrap();
        if let Some(agrees) = agrees {
            mesh.set_tcphc(tcphc_table(1, agrees, &mut rng));
        }
        if peers > 0 {
            let security = Security::new(&SecurityConfig::new(KEY, 0), memory(Peer::EMPTY, peers));
            mesh.set_security(Box::leak(Box::new(security)));
        }
        let child = Child::new(&ChildConfig {
            dataset: dataset(),
            identity: Identity {
                extended: OWN,
                iid: [8; 8],
            },
            timeout: CHILD_TIMEOUT,
            former: None,
        });
        let placed = mesh.set_thread(Box::leak(Box::new(child)));
        assert_eq!(placed, expected, "{peers} {agrees:?}");
        if placed.is_ok() {
            assert!(mesh.tcphc().is_none());
        }
    }
}

/// What nobody has sealed: its bit that more follows, and that it is there at all.
#[cfg(feature = "sleepy")]
#[test]
fn frames_in_clear_that_are_not_believed_steer_no_poll() {
    let mut air = attached(true);
    air.run(Duration::from_secs(40));
    air.polls.clear();
    for _ in 0..200 {
        let mut forged = air.mle(command::ADVERTISEMENT, &[], OWN);
        let at = forged.len() - 3;
        forged[at] ^= 1;
        let forged = air.promise(forged);
        air.report(&forged);
        air.run(Duration::from_millis(50));
    }
    assert!(air.polls.len() <= 1, "{:?}", air.polls);
}

#[cfg(feature = "sleepy")]
#[test]
fn a_node_that_sleeps_and_has_no_parent_listens_only_for_answers() {
    let mut air = Air::new(true);
    air.is_there = false;
    air.run(Duration::from_secs(60));
    air.listened = Duration::ZERO;
    air.run(Duration::from_secs(600));
    // Less than twenty searches of two rounds each, of three seconds.
    assert!(air.listened < Duration::from_secs(60), "{:?}", air.listened);
    assert!(air.listened > Duration::from_secs(5), "{:?}", air.listened);
    air.is_there = true;
    air.run_until(|air| air.child().state() == ChildState::Attached);
}
