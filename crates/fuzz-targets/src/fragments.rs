//! IPv6 fragments to a node that reassembles them, compared with a simple model: which packets it
//! answers, how, and that it releases incomplete packets.
//!
//! Four packets, of two sources with two identifications each, are cut by the input: in any order,
//! overlapping, twice, damaged, beyond their end. There is a slot for each of the four, so no
//! packet has to give way to another.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use motet::ip::{Address, FragmentSlot, InterfaceId, Ip, Neighbour, NextHop};
use motet::limits::{IPV6_MTU_MIN, REASSEMBLED_LEN_MAX};
use motet::link::{Cable, Link};
use motet::node::{Action, Event, Node};
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::wire::icmpv6::{self, Message};
use motet::wire::ipv6::{HEADER_LEN, Header, TrafficClass, next_header};
use motet::wire::ipv6_fragment::FragmentHeader;

use crate::input::Input;

/// Delivers the fragments. The node must answer a packet exactly when the model does.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut slots = [const { FragmentSlot::EMPTY }; SLOTS];
    let mut queue = [0; 4 * REASSEMBLED_LEN_MAX];
    let mut links = [Link::Cable(Cable::new(&mut queue, IPV6_MTU_MIN as u16))];
    let mut bench = Bench::new(&mut links, &mut slots);
    let originals: Vec<Vec<u8>> = (0..SLOTS).map(original).collect();
    while !input.is_empty() {
        let op = input.u8();
        let key = usize::from(op & 3);
        // So slowly that every echo may be answered.
        let pause = u64::from(input.u8() & 0x3f) * if op & 128 != 0 { 1_000 } else { 1 };
        bench.sleep(Duration::from_millis(100 + pause));
        let start = usize::from(input.u8()) * 8;
        let len = usize::from(input.u16()) % 1_500;
        let original = &originals[key];
        let piece = original.iter().copied().chain(std::iter::repeat(0));
        let mut piece: Vec<u8> = piece.skip(start).take(len).collect();
        if op & 4 != 0
            && let Some(byte) = piece.last_mut()
        {
            *byte ^= 0x10;
        }
        let place = FragmentHeader {
            next_header: icmpv6::NEXT_HEADER,
            offset: start as u16,
            more: op & 8 != 0,
            identification: key as u32 >> 1,
        };
        bench.give(key, place, &piece);
    }
    bench.sleep(PATIENCE);
    let fragments = bench.node.fragments().expect("memory was lent");
    assert!(fragments.is_empty(), "a packet is kept for ever");
}

struct Bench<'m> {
    node: Node<'m>,
    now: Instant,
    model: HashMap<usize, Gathering>,
}

/// The model's record of one packet.
struct Gathering {
    since: Instant,
    is_dropped: bool,
    pieces: Vec<(FragmentHeader, Vec<u8>)>,
}

impl<'m> Bench<'m> {
    fn new(links: &'m mut [Link<'m>], slots: &'m mut [FragmentSlot]) -> Self {
        let mut ip = Ip::new(motet::ip::Config::default(), &mut []);
        let interface = InterfaceId(0);
        ip.add_address(Address {
            addr: US,
            interface,
        });
        ip.set_default_route(Some(NextHop {
            interface,
            neighbour: Neighbour::Only,
        }));
        let mut node = Node::without_tcp(links, ip, Rng::from_seed([3, 4]), Instant::ORIGIN);
        node.lend_fragments(slots);
        Self {
            node,
            now: Instant::ORIGIN,
            model: HashMap::new(),
        }
    }

    /// Delivers a fragment, and compares the node's answer with the expected one.
    fn give(&mut self, key: usize, place: FragmentHeader, piece: &[u8]) {
        let due = self.expect(key, place, piece);
        let header = header(source(key), US, next_header::FRAGMENT, 8 + piece.len());
        let packet = [&emitted(&header)[..], &place.emit(), piece].concat();
        let event = Event::Cable(&packet);
        self.node.on_event(InterfaceId(0), event, self.now);
        let answer = self.answer();
        match due {
            Some(due) => assert_eq!(answer, Some(due), "the echo of packet {key}"),
            None => assert_eq!(answer, None, "nothing is whole"),
        }
    }

    /// Time passes, in which nothing is answered but that packets did not become whole.
    fn sleep(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.node.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            assert_eq!(self.answer(), None);
        }
        self.now = end;
        self.model
            .retain(|_, gathering| end < gathering.since + PATIENCE);
    }

    /// The echo reply that the node sends now: its destination, and its bytes after the IPv6
    /// header.
    fn answer(&mut self) -> Option<(Ipv6Addr, Vec<u8>)> {
        let (mut part, mut to, mut end) = (Vec::new(), None, None);
        for _ in 0..16 {
            let mut out = [0; REASSEMBLED_LEN_MAX];
            let Some((_, action)) = self.node.poll_action(self.now, &mut out) else {
                break;
            };
            let Action::Cable { len } = action else {
                panic!("a wire alone");
            };
            assert!(len <= IPV6_MTU_MIN);
            let (header, payload) = Header::parse(&out[..len]).expect("a packet");
            let (place, bytes) = match header.next_header {
                next_header::FRAGMENT => {
                    let (place, bytes) = payload.split_first_chunk().expect("its header");
                    (FragmentHeader::parse(place), bytes)
                }
                _ => (FragmentHeader::default(), payload),
            };
            if place == FragmentHeader::default() && is_error(bytes) {
                continue;
            }
            assert_eq!(part.len(), usize::from(place.offset), "in order");
            part.extend_from_slice(bytes);
            to = Some(header.dst);
            end = (!place.more).then_some(part.len());
        }
        let to = to?;
        assert_eq!(end, Some(part.len()), "all of it");
        assert!(icmpv6::is_checksum_valid(&US, &to, &part));
        Some((to, part))
    }

    /// The outcome due for a fragment, by rules that look at all fragments that came.
    fn expect(
        &mut self,
        key: usize,
        place: FragmentHeader,
        piece: &[u8],
    ) -> Option<(Ipv6Addr, Vec<u8>)> {
        let end = usize::from(place.offset) + piece.len();
        if !place.more && place.offset == 0 {
            // Whole by itself, whatever else there is of that name.
            return due(key, piece);
        }
        let is_short = place.offset == 0 && piece.len() < icmpv6::HEADER_LEN;
        let is_odd = place.more && !piece.len().is_multiple_of(8);
        if piece.is_empty() || is_short || is_odd {
            return None;
        }
        if end > REASSEMBLED_LEN_MAX - HEADER_LEN {
            if let Some(gathering) = self.model.get_mut(&key) {
                gathering.is_dropped = true;
            }
            return None;
        }
        let gathering = self.model.entry(key).or_insert(Gathering {
            since: self.now,
            is_dropped: false,
            pieces: Vec::new(),
        });
        if gathering.is_dropped || gathering.pieces.contains(&(place, piece.to_vec())) {
            return None;
        }
        gathering.is_dropped = gathering.pieces.iter().any(|(other, bytes)| {
            let other_end = usize::from(other.offset) + bytes.len();
            let apart = end <= usize::from(other.offset) || other_end <= place.offset.into();
            let beyond = (!place.more && other_end > end) || (!other.more && end > other_end);
            let same_end = !place.more && !other.more;
            let both = place.more != other.more && end == other_end;
            !apart || beyond || same_end || both
        });
        gathering.pieces.push((place, piece.to_vec()));
        if gathering.is_dropped {
            return None;
        }
        let mut pieces = gathering.pieces.clone();
        pieces.sort_by_key(|(place, _)| place.offset);
        let mut whole = Vec::new();
        for (place, bytes) in &pieces {
            if whole.len() != usize::from(place.offset) {
                return None;
            }
            whole.extend_from_slice(bytes);
        }
        if pieces.last().is_none_or(|(place, _)| place.more) {
            return None;
        }
        self.model.remove(&key);
        due(key, &whole)
    }
}

/// The reply to a message, if it is an echo request that arrived as it was sent.
fn due(key: usize, message: &[u8]) -> Option<(Ipv6Addr, Vec<u8>)> {
    if !icmpv6::is_checksum_valid(&source(key), &US, message) {
        return None;
    }
    let Ok(Message::EchoRequest(echo)) = Message::parse(message) else {
        return None;
    };
    let mut reply = vec![0; message.len()];
    Message::EchoReply(echo).emit(&mut reply).expect("it fits");
    icmpv6::fill_checksum(&US, &source(key), &mut reply);
    Some((source(key), reply))
}

/// Errors that the node may send: a fragment that breaks a rule, a packet that never became whole.
/// It is no router, and no packet of its own is too big for it.
fn is_error(message: &[u8]) -> bool {
    match Message::parse(message) {
        Ok(Message::TimeExceeded { code, .. }) => code == 1,
        Ok(Message::ParameterProblem { code, .. }) => matches!(code, 0 | 3),
        Ok(Message::EchoReply(_)) => false,
        other => panic!("{other:?}"),
    }
}

/// The echo request that packet `key` is: a short one, and others up to the longest.
fn original(key: usize) -> Vec<u8> {
    let mut message = vec![0; [64, 600, 1_408, REASSEMBLED_LEN_MAX - HEADER_LEN][key]];
    let data: Vec<u8> = (8..message.len()).map(|n| (n * 5 + key) as u8).collect();
    let echo = icmpv6::Echo {
        identifier: key as u16,
        sequence: 1,
        data: &data,
    };
    let request = Message::EchoRequest(echo);
    request.emit(&mut message).expect("it fits");
    icmpv6::fill_checksum(&source(key), &US, &mut message);
    message
}

fn source(key: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 1 + (key as u16 & 1))
}

fn header(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, len: usize) -> Header {
    Header {
        traffic_class: TrafficClass::default(),
        flow_label: 0,
        payload_len: len as u16,
        next_header,
        hop_limit: 64,
        src,
        dst,
    }
}

fn emitted(header: &Header) -> [u8; HEADER_LEN] {
    let mut out = [0; HEADER_LEN];
    header.emit(&mut out).expect("it fits");
    out
}

/// Packets that are cut well, in either order, twice, overlapping, and with their end missing.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let step = |key: u8, flags: u8, wait: u8, start: usize, len: usize| {
        let [high, low] = (len as u16).to_be_bytes();
        [key | flags, wait, (start / 8) as u8, high, low]
    };
    let more = 8;
    let steps = [
        vec![step(2, more, 0, 0, 1_232), step(2, 0, 0, 1_232, 176)],
        vec![step(2, 0, 0, 1_232, 176), step(2, more, 0, 0, 1_232)],
        vec![step(3, more, 0, 0, 1_232), step(3, 0, 0, 1_232, 228)],
        vec![
            step(1, more, 0, 0, 304),
            step(1, more, 0, 0, 304),
            step(1, 0, 0, 304, 296),
        ],
        vec![
            step(1, more, 0, 0, 304),
            step(1, more, 0, 104, 304),
            step(1, 0, 0, 304, 296),
        ],
        vec![step(0, 0, 0, 0, 64)],
        vec![
            step(2, more, 0, 0, 1_232),
            step(2, 128, 61, 1_232, 176),
            step(2, more, 0, 0, 1_232),
        ],
        vec![step(3, 0, 0, 1_232, 400), step(3, more | 4, 0, 8, 60)],
    ];
    steps.map(|steps| steps.concat()).to_vec()
}

const US: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 2, 0, 0, 0, 1);

/// The packets that are put together at a time.
const SLOTS: usize = 4;

/// How long a packet may take (RFC 8200 §4.5).
const PATIENCE: Duration = Duration::from_secs(60);
