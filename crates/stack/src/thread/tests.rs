//! The child against a parent of `OpenThread`, byte for byte, and against one that is played here.

use std::vec::Vec;

mod hostile;
mod network;
mod parent;

use super::child::{Due, Quest};
use super::mle::{self, Builder, Ends, Numbers, command, tlv_type as tlv};
use super::*;
use crate::mac::security::NetworkKey;
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use core::net::Ipv6Addr;

/// The network of the captures.
const KEY: NetworkKey = NetworkKey::new([
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
]);
const DATASET: Dataset = Dataset {
    channel: 15,
    pan: 0xabcd,
    network: KEY,
    mesh_local_prefix: [0xfd, 0, 0x0d, 0xb8, 0, 0, 0, 0],
    timestamp: [0, 0, 0, 0, 0, 1, 0, 0],
};
/// The two ends of `attach-mtd-rx-on.pcap`.
const CHILD: [u8; 8] = [0xbe, 0xa3, 0xe4, 0xd0, 0x62, 0x8f, 0x9a, 0xa5];
const PARENT: [u8; 8] = [0x02, 0xbd, 0x70, 0xc1, 0xaf, 0x29, 0xf1, 0xe8];
const OTHER: [u8; 8] = [0x02, 0, 0, 0, 0, 0, 0, 9];
const CHALLENGE: [u8; 8] = [0x13, 0xa9, 0x97, 0x86, 0xfa, 0x35, 0x41, 0x77];
const LEADER: [u8; 8] = [0x0d, 0x22, 0x7d, 0xe2, 64, 54, 8, 42];
const PARENT_RESPONSE: &str = "0015080000000000000001a9cb8c2035252956d940ce0f067c4cf25d045495e40d\
    0890f5f949d86e332209b71312cbf7d250c9a3f0ec970711af324dfa9b6c17c5e33f8fd849d9f15f3c4a3215d4638021";
const CHILD_ID_RESPONSE: &str = "0015090000000000000001a1da06215d29f1aa08be07c402c1085c360b4f7cefb13\
    2fd06d1d675bcdaccd08ace803bb671469cb09feb";
const ADVERTISEMENT: &str = "00150a0000000000000001961dbed918b72a88a8ff74d6dc8ef5f93709a0340e2e92c885\
    5d99f1f15d29";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

fn local(extended: [u8; 8]) -> Ipv6Addr {
    crate::ip::link_local(LinkAddr::Extended(extended).iid())
}

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// What a child has sent.
#[derive(Debug)]
struct Sent {
    ends: Ends,
    command: u8,
    numbers: Numbers,
    bytes: Vec<u8>,
}

impl Sent {
    fn tlv(&self, kind: u8) -> Option<Vec<u8>> {
        Tlvs::parse(&self.bytes)
            .unwrap()
            .find(kind)
            .map(<[u8]>::to_vec)
    }

    fn types(&self) -> Vec<u8> {
        Tlvs::parse(&self.bytes)
            .unwrap()
            .map(|(kind, _)| kind)
            .collect()
    }
}

/// A child, its clock and its counters.
struct Lone {
    child: Child,
    now: Instant,
    rng: Rng,
    counter: u32,
    /// The counter of the parent that is played.
    parent_counter: u32,
    sequence: u32,
}

impl Lone {
    fn new(former: Option<Place>) -> Self {
        let identity = Identity {
            extended: CHILD,
            iid: [1, 2, 3, 4, 5, 6, 7, 8],
        };
        Self {
            child: Child::new(&ChildConfig {
                dataset: DATASET,
                identity,
                timeout: CHILD_TIMEOUT,
                former,
            }),
            now: Instant::from_micros(1_000_000),
            rng: Rng::from_seed([1, 2]),
            counter: 7,
            parent_counter: 100,
            sequence: 0,
        }
    }

    /// What is due now.
    fn poll(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        self.child.poll(self.now, &mut self.rng);
        while self.child.has_message() {
            let mut out = [0; 127];
            let (ends, len) = self
                .child
                .write(self.counter, self.now, &mut self.rng, &mut out)
                .unwrap();
            self.counter += 1;
            let message = mle::open(&KEY, &ends, &mut out[..len]).unwrap();
            let mut bytes = Vec::new();
            for (kind, value) in message.tlvs {
                bytes.extend([kind, value.len() as u8]);
                bytes.extend(value);
            }
            let (command, numbers) = (message.command, message.numbers);
            sent.push(Sent {
                ends,
                command,
                numbers,
                bytes,
            });
        }
        sent
    }

    /// All that is sent within `span`.
    fn run(&mut self, span: Duration) -> Vec<Sent> {
        let end = self.now + span;
        let mut sent = Vec::new();
        loop {
            sent.extend(self.poll());
            match self.child.next_deadline() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => break,
            }
        }
        self.now = end;
        sent
    }

    fn take(&mut self, (from, to): ([u8; 8], Ipv6Addr), bytes: &[u8]) -> Result<(), MleDrop> {
        let ends = Ends {
            src: local(from),
            dst: to,
        };
        let mut bytes = bytes.to_vec();
        let taken = self
            .child
            .on_message(&ends, &mut bytes, Some(-40), self.now);
        taken.map(|_| ())
    }

    /// A message of a router, sealed.
    fn sealed(&mut self, from: [u8; 8], command: u8, tlvs: &[(u8, &[u8])]) -> Vec<u8> {
        self.parent_counter += 1;
        let ends = Ends {
            src: local(from),
            dst: local(CHILD),
        };
        let mut out = [0; 300];
        let mut builder = Builder::new(command, &mut out);
        for (kind, value) in tlvs {
            builder.tlv(*kind, &[value]);
        }
        let numbers = Numbers {
            sequence: self.sequence,
            counter: self.parent_counter,
        };
        let len = builder.seal(&KEY, &ends, numbers).unwrap();
        out[..len].to_vec()
    }

    fn hear(&mut self, from: [u8; 8], command: u8, tlvs: &[(u8, &[u8])]) -> Result<(), MleDrop> {
        let bytes = self.sealed(from, command, tlvs);
        self.take((from, local(CHILD)), &bytes)
    }

    fn offer(&mut self, from: [u8; 8], rloc16: u16, margin: u8, cost: u8) -> Result<(), MleDrop> {
        let challenge = self.child.challenge;
        let connectivity = [0, 1, 0, 0, cost, 9, 2];
        self.hear(
            from,
            command::PARENT_RESPONSE,
            &[
                (tlv::SOURCE_ADDRESS, &rloc16.to_be_bytes()),
                (tlv::LEADER_DATA, &LEADER),
                (tlv::LINK_FRAME_COUNTER, &[0, 0, 0, 5]),
                (tlv::RESPONSE, &challenge),
                (tlv::CHALLENGE, &[7; 8]),
                (tlv::LINK_MARGIN, &[margin]),
                (tlv::CONNECTIVITY, &connectivity),
                (tlv::VERSION, &[0, 4]),
            ],
        )
    }

    fn address(&mut self, from: [u8; 8], parent: u16, child: u16) -> Result<(), MleDrop> {
        self.hear(
            from,
            command::CHILD_ID_RESPONSE,
            &[
                (tlv::SOURCE_ADDRESS, &parent.to_be_bytes()),
                (tlv::LEADER_DATA, &LEADER),
                (tlv::ADDRESS16, &child.to_be_bytes()),
                (tlv::NETWORK_DATA, &[]),
            ],
        )
    }

    /// Attaches it to the parent of the captures.
    fn attached() -> Self {
        let mut lone = Self::new(None);
        lone.poll();
        lone.offer(PARENT, 0xa800, 80, 0).unwrap();
        lone.poll();
        lone.address(PARENT, 0xa800, 0xa801).unwrap();
        assert_eq!(lone.child.state(), ChildState::Attached);
        assert!(lone.poll().is_empty());
        lone
    }

    fn dropped(&self, reason: MleDrop) -> u32 {
        self.child.counters().dropped(reason)
    }
}

#[test]
fn attaches_by_what_openthread_sent() {
    let mut lone = Lone::new(None);
    let request = &lone.poll()[0];
    assert_eq!(request.command, command::PARENT_REQUEST);
    assert_eq!(request.types(), [1, 3, 14, 18]);
    assert_eq!(request.tlv(tlv::MODE).unwrap(), [0x0d]);
    assert_eq!(request.bytes.len(), 20);
    // The answer in the capture is to the challenge in the capture.
    assert_eq!(
        lone.take((PARENT, local(CHILD)), &hex(PARENT_RESPONSE)),
        Err(MleDrop::Unasked)
    );
    lone.child.challenge = CHALLENGE;
    lone.take((PARENT, local(CHILD)), &hex(PARENT_RESPONSE))
        .unwrap();
    let sent = lone.poll();
    let [request] = &sent[..] else {
        panic!("a perfect candidate is asked at once: {sent:?}");
    };
    assert_eq!(request.command, command::CHILD_ID_REQUEST);
    assert_eq!(request.ends.dst, local(PARENT));
    assert_eq!(request.types(), [4, 5, 8, 1, 2, 18, 19, 13, 22]);
    assert_eq!(request.tlv(tlv::RESPONSE).unwrap(), hex("b8be086ae9f86c30"));
    assert_eq!(request.tlv(tlv::TLV_REQUEST).unwrap(), [10, 12]);
    assert_eq!(request.tlv(tlv::ADDRESS_REGISTRATION).unwrap().len(), 9);
    assert_eq!(
        request.tlv(tlv::ACTIVE_TIMESTAMP).unwrap(),
        DATASET.timestamp
    );
    let next = (request.numbers.counter + 1).to_be_bytes();
    assert_eq!(request.tlv(tlv::MLE_FRAME_COUNTER).unwrap(), next);
    assert_eq!(request.bytes.len(), 60);
    lone.take((PARENT, local(CHILD)), &hex(CHILD_ID_RESPONSE))
        .unwrap();
    let place = lone.child.place().unwrap();
    assert_eq!(
        (place.parent.extended, place.parent.rloc16),
        (PARENT, 0xa800)
    );
    assert_eq!(
        (place.rloc16, lone.child.partition()),
        (0xa801, 0x0d22_7de2)
    );
    let addresses: Vec<_> = lone.child.addresses().collect();
    let eid: Ipv6Addr = "fd00:db8::102:304:506:708".parse().unwrap();
    let rloc: Ipv6Addr = "fd00:db8::ff:fe00:a801".parse().unwrap();
    assert_eq!(addresses, [eid, rloc]);
    lone.take((PARENT, ALL_NODES), &hex(ADVERTISEMENT)).unwrap();
    assert!(lone.poll().is_empty(), "nothing has changed");
    // Once more, each is a recording.
    for bytes in [ADVERTISEMENT, CHILD_ID_RESPONSE, PARENT_RESPONSE] {
        let to = match bytes {
            ADVERTISEMENT => ALL_NODES,
            _ => local(CHILD),
        };
        assert!(lone.take((PARENT, to), &hex(bytes)).is_err());
    }
    assert_eq!(lone.child.counters().attached, 1);
}

#[test]
fn the_best_router_is_asked_and_the_next_round_asks_all() {
    let mut lone = Lone::new(None);
    lone.poll();
    // Neither is perfect; the nearer one to the leader wins.
    lone.offer(OTHER, 0x4400, 15, 2).unwrap();
    lone.offer(PARENT, 0xa800, 15, 1).unwrap();
    assert!(lone.poll().is_empty(), "the time for answers is not over");
    let sent = lone.run(Duration::from_secs(1));
    assert_eq!(sent[0].ends.dst, local(PARENT));
    // No answer: after a rest it begins anew, and then asks all.
    let sent = lone.run(Duration::from_secs(6));
    let scans: Vec<_> = sent
        .iter()
        .filter_map(|sent| sent.tlv(tlv::SCAN_MASK))
        .collect();
    assert_eq!(scans[..2], [[0x80], [0xc0]]);
    let challenges: Vec<_> = sent
        .iter()
        .filter_map(|sent| sent.tlv(tlv::CHALLENGE))
        .collect();
    assert_eq!(
        challenges[0], challenges[1],
        "late answers of routers still count"
    );
    assert_eq!(lone.child.refusal(), Some(Refusal::Silence));
    // The rests grow: in an hour it makes less than forty searches.
    let sent = lone.run(Duration::from_secs(3_600));
    assert!((40..160).contains(&sent.len()), "{} requests", sent.len());
}

#[test]
fn refusals_are_said() {
    let mut lone = Lone::new(None);
    lone.poll();
    lone.offer(PARENT, 0xa800, 80, 0).unwrap();
    lone.poll();
    lone.hear(PARENT, command::CHILD_ID_RESPONSE, &[(tlv::STATUS, &[1])])
        .unwrap();
    lone.poll();
    assert_eq!(lone.child.refusal(), Some(Refusal::Status(1)));
    assert_eq!(lone.child.state(), ChildState::Searching);
    let challenge = loop {
        let sent = lone.run(Duration::from_millis(100));
        if let Some(sent) = sent.first() {
            break sent.tlv(tlv::CHALLENGE).unwrap();
        }
    };
    let old = [
        (tlv::SOURCE_ADDRESS, &[0xa8, 0][..]),
        (tlv::LEADER_DATA, &LEADER),
        (tlv::LINK_FRAME_COUNTER, &[0; 4]),
        (tlv::RESPONSE, &challenge),
        (tlv::CHALLENGE, &[7; 8]),
        (tlv::LINK_MARGIN, &[80]),
        (tlv::CONNECTIVITY, &[0; 7]),
        (tlv::VERSION, &[0, 1]),
    ];
    assert_eq!(
        lone.hear(PARENT, command::PARENT_RESPONSE, &old),
        Err(MleDrop::OldVersion)
    );
    assert_eq!(lone.child.refusal(), Some(Refusal::Version(1)));
    // Each TLV that it needs is missed.
    for (missing, _) in old {
        let left: Vec<_> = old
            .into_iter()
            .filter(|(kind, _)| *kind != missing)
            .collect();
        let said = lone.hear(PARENT, command::PARENT_RESPONSE, &left);
        let expected = match missing {
            tlv::RESPONSE => Err(MleDrop::Unasked),
            tlv::LEADER_DATA => Err(MleDrop::OldVersion),
            _ => Err(MleDrop::Incomplete),
        };
        assert_eq!(said, expected, "without {missing}");
    }
}

/// A prefix with a context and a border router, as the leader of `child-tcp.pcap` has it.
const PREFIX: [u8; 22] = [
    0x03, 0x14, 0x00, 0x40, 0xfd, 0x11, 0x00, 0x22, 0x00, 0x33, 0x00, 0x44, 0x07, 0x02, 0x11, 0x40,
    0x05, 0x04, 0x74, 0x00, 0x33, 0x00,
];

#[test]
fn a_child_fits_the_memory_that_was_planned() {
    let size = size_of::<Child>();
    assert!(size <= 320, "{size} bytes");
}
