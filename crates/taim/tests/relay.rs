//! What holds of the policy `relay`: nothing is acknowledged that the device has not, the stream
//! arrives whole, memory is bounded, and no flow meets another's packets.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::tcp::{self, Flags};
use motet_taim::{Config, Decision, Direction, Packet, PacketId, Policy, Router};
use proptest::prelude::*;

const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);

/// A packet of mote `mote`, whole.
fn packet(up: bool, mote: u16, [seq, ack]: [u32; 2], flags: Flags, payload: &[u8]) -> Vec<u8> {
    let options = tcp::Options {
        mss: flags.contains(Flags::SYN).then_some(SEGMENT as u16),
        ..tcp::Options::default()
    };
    with_options(up, mote, [seq, ack], (flags, options), payload)
}

fn with_options(
    up: bool,
    mote: u16,
    [seq, ack]: [u32; 2],
    (flags, options): (Flags, tcp::Options),
    payload: &[u8],
) -> Vec<u8> {
    let device = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, mote);
    let ports = if up { [6_053, 40_000] } else { [40_000, 6_053] };
    let header = tcp::Header {
        src_port: ports[0],
        dst_port: ports[1],
        seq,
        ack,
        flags,
        window: 5_744,
        options,
        ..tcp::Header::default()
    };
    let len = header.header_len() + payload.len();
    let (src, dst) = if up { (device, HOST) } else { (HOST, device) };
    let ip = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: len as u16,
        next_header: tcp::NEXT_HEADER,
        hop_limit: 64,
        src,
        dst,
    };
    let mut bytes = vec![0; ipv6::HEADER_LEN + len];
    ip.emit(&mut bytes).expect("room");
    let segment = &mut bytes[ipv6::HEADER_LEN..];
    let header_len = header.emit(segment).expect("room");
    segment[header_len..].copy_from_slice(payload);
    tcp::fill_checksum(&src, &dst, segment);
    bytes
}

/// Bytes of a full segment: as 1,280 of the packet leave.
const SEGMENT: usize = 1_220;

/// A router and the packets that it holds; all that comes out, with its direction.
struct Relayed {
    router: Router,
    now: Instant,
    next_id: u64,
    held: BTreeMap<PacketId, (bool, Vec<u8>)>,
    out: VecDeque<(bool, Vec<u8>)>,
    copies: Vec<Vec<u8>>,
}

impl Relayed {
    fn new() -> Self {
        Self {
            router: Router::new(Config::new(Policy::Relay)),
            now: Instant::ORIGIN + Duration::from_secs(1_000),
            next_id: 0,
            held: BTreeMap::new(),
            out: VecDeque::new(),
            copies: Vec::new(),
        }
    }

    /// A router with a connection to `mote`, whose next byte in has the number `seq`.
    fn connected(mote: u16, seq: u32) -> Self {
        let mut relayed = Self::new();
        relayed.connect(mote, seq);
        relayed
    }

    fn connect(&mut self, mote: u16, seq: u32) {
        self.taken();
        let (first, own) = (seq.wrapping_sub(1), 700);
        self.offer(false, &packet(false, mote, [first, 0], Flags::SYN, &[]));
        let both = Flags::SYN | Flags::ACK;
        self.offer(true, &packet(true, mote, [own, seq], both, &[]));
        self.offer(false, &packet(false, mote, [seq, own + 1], Flags::ACK, &[]));
        self.offer(true, &packet(true, mote, [own + 1, seq], Flags::ACK, &[]));
        assert_eq!(self.taken().len(), 4);
    }

    /// Whether a packet passes at once.
    fn offer(&mut self, up: bool, bytes: &[u8]) -> bool {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let direction = if up { Direction::Up } else { Direction::Down };
        let shown = Packet {
            id,
            direction,
            headers: bytes,
            len: bytes.len(),
        };
        let decision = self.router.on_packet(&shown, self.now);
        match decision {
            Decision::Pass => self.out.push_back((up, bytes.to_vec())),
            Decision::Hold => drop(self.held.insert(id, (up, bytes.to_vec()))),
        }
        self.drain();
        decision == Decision::Pass
    }

    fn drain(&mut self) {
        while let Some(copy) = self.router.poll_copy(self.now) {
            let copy = copy.to_vec();
            self.copies.push(copy.clone());
            self.out.push_back((false, copy));
        }
        while let Some(id) = self.router.poll(self.now) {
            self.out
                .push_back(self.held.remove(&id).expect("it was held"));
        }
        while let Some(id) = self.router.poll_dropped() {
            let (up, _) = self.held.remove(&id).expect("it was held");
            assert!(up, "nothing of the host's is dropped");
        }
        assert_eq!(self.router.held(), self.held.len());
    }

    /// All that came out since the last call.
    fn taken(&mut self) -> Vec<(bool, Vec<u8>)> {
        self.out.drain(..).collect()
    }

    /// The numbers of the segments into the mesh that came out since the last call.
    fn numbers(&mut self) -> Vec<u32> {
        let down = self.taken().into_iter().filter(|(up, _)| !up);
        down.map(|(_, bytes)| parsed(&bytes).0.seq).collect()
    }

    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.router.next_deadline().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn data(&mut self, seq: u32) -> bool {
        self.offer(
            false,
            &packet(false, 1, [seq, 701], Flags::ACK, &[7; 1_000]),
        )
    }

    fn ack(&mut self, ack: u32) -> bool {
        self.offer(true, &packet(true, 1, [701, ack], Flags::ACK, &[]))
    }
}

fn parsed(bytes: &[u8]) -> (tcp::Header, Vec<u8>) {
    let (_, segment) = ipv6::Header::parse_start(bytes).expect("IPv6");
    let (header, payload) = tcp::Header::parse(segment).expect("TCP");
    (header, payload.to_vec())
}

#[test]
fn two_segments_are_inside_and_the_others_wait_in_order() {
    let mut relayed = Relayed::connected(1, 5_000);
    let decisions = [5_000, 6_000, 7_000, 8_000].map(|seq| relayed.data(seq));
    assert_eq!(decisions, [true, true, false, false]);
    assert_eq!(relayed.numbers(), [5_000, 6_000]);
    relayed.ack(6_000);
    assert_eq!(relayed.numbers(), [7_000]);
    relayed.ack(8_000);
    assert_eq!(relayed.numbers(), [8_000]);
    relayed.ack(9_000);
    relayed.wait(Duration::from_secs(600));
    assert!(relayed.copies.is_empty(), "all is acknowledged");
}

#[test]
fn of_short_segments_as_many_bytes_are_inside() {
    let mut relayed = Relayed::connected(1, 5_000);
    let data = |seq| packet(false, 1, [seq, 701], Flags::ACK, &[7; 440]);
    // 500 bytes each, with headers.
    let passed = (0..6).map(|place| relayed.offer(false, &data(5_000 + 440 * place)));
    let passed: Vec<bool> = passed.collect();
    assert_eq!(passed, [true, true, true, true, true, false]);
}

#[test]
fn a_duplicate_ack_is_answered_and_kept_from_the_host() {
    for begin in [5_000, u32::MAX - 1_500] {
        let at = |further: u32| begin.wrapping_add(further);
        let mut relayed = Relayed::connected(1, begin);
        relayed.data(at(0));
        relayed.ack(at(1_000));
        let begin = at(1_000);
        let at = |further: u32| begin.wrapping_add(further);
        for further in [0, 1_000, 2_000] {
            relayed.data(at(further));
        }
        relayed.taken();
        // The first was lost: the second causes an ACK that says nothing new.
        relayed.ack(at(0));
        assert_eq!(relayed.numbers(), [at(0)]);
        assert_eq!(relayed.router.counters().swallowed, 1);
        assert_eq!(relayed.router.counters().resent, 1);
        // Another one is answered already.
        relayed.ack(at(0));
        assert!(relayed.taken().is_empty());
        relayed.ack(at(2_000));
        assert_eq!(relayed.numbers(), [at(2_000)]);
    }
}

#[test]
fn what_is_not_answered_goes_again_by_a_timeout_and_not_for_ever() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.data(5_000);
    relayed.data(6_000);
    relayed.data(7_000);
    relayed.taken();
    relayed.wait(Duration::from_secs(2));
    assert!(relayed.taken().is_empty());
    relayed.wait(Duration::from_secs(2));
    assert_eq!(relayed.numbers(), [5_000]);
    relayed.wait(Duration::from_secs(3_600));
    let numbers = relayed.numbers();
    let again = numbers.iter().filter(|seq| **seq == 5_000).count();
    assert!(again <= 4 && numbers.contains(&7_000), "{numbers:?}");
    assert!(relayed.held.is_empty());
    // The host's own go on passing, and once they are acknowledged the relay keeps them again.
    assert!(relayed.data(5_000));
    relayed.ack(8_000);
    relayed.data(8_000);
    relayed.data(9_000);
    assert!(!relayed.data(10_000));
}

#[test]
fn retransmissions_of_the_host_pass_before_what_waits_and_replace_the_copy() {
    let mut relayed = Relayed::connected(1, 5_000);
    for seq in [5_000, 6_000, 7_000] {
        relayed.data(seq);
    }
    relayed.taken();
    let other = packet(false, 1, [5_000, 777], Flags::ACK, &[7; 1_000]);
    assert!(relayed.offer(false, &other));
    relayed.taken();
    relayed.wait(Duration::from_secs(4));
    assert_eq!(relayed.copies, [other]);
    // Of one that waits: what waits goes first.
    relayed.taken();
    relayed.data(7_000);
    assert_eq!(relayed.numbers(), [7_000, 7_000]);
}

#[test]
fn a_duplicate_ack_that_a_retransmission_has_caused_passes() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.ack(5_000);
    relayed.data(5_000);
    relayed.ack(6_000);
    relayed.data(6_000);
    relayed.data(7_000);
    // The ACK of 6,000 was lost between here and the host.
    relayed.data(5_000);
    relayed.taken();
    assert!(relayed.ack(6_000));
    assert!(relayed.copies.is_empty());
}

/// Linux joins small segments when it sends them again.
#[test]
fn a_retransmission_that_reaches_into_what_waits_goes_behind_it() {
    let mut relayed = Relayed::connected(1, 5_000);
    for seq in [5_000, 6_000, 7_000] {
        relayed.data(seq);
    }
    relayed.taken();
    let joined = packet(false, 1, [6_500, 701], Flags::ACK, &[7; 1_000]);
    relayed.offer(false, &joined);
    assert_eq!(relayed.numbers(), [7_000, 6_500]);
    // Its ACK counts: nothing stands for ever.
    relayed.ack(8_000);
    relayed.data(8_000);
    assert_eq!(relayed.numbers(), [8_000]);
}

#[test]
fn a_keep_alive_probe_of_the_device_passes() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.ack(5_000);
    relayed.data(5_000);
    relayed.data(6_000);
    // One byte before what the device has sent.
    let probe = packet(true, 1, [700, 5_000], Flags::ACK, &[]);
    for _ in 0..4 {
        assert!(relayed.offer(true, &probe));
    }
    assert!(relayed.copies.is_empty());
}

/// A copy one too many is answered by a duplicate ACK; that is no loss.
#[test]
fn the_echo_of_a_copy_brings_forth_no_other() {
    let mut relayed = Relayed::connected(1, 5_000);
    let mut next = 5_000;
    let round = Duration::from_millis(200);
    relayed.data(next);
    relayed.data(next + 1_000);
    for _ in 0..20 {
        relayed.wait(round);
        next += 2_000;
        relayed.data(next);
        relayed.data(next + 1_000);
        relayed.ack(next);
    }
    assert!(relayed.copies.is_empty());
    // One ACK comes late.
    relayed.wait(Duration::from_millis(400));
    assert_eq!(relayed.copies.len(), 1);
    for _ in 0..20 {
        next += 2_000;
        relayed.data(next);
        relayed.data(next + 1_000);
        relayed.ack(next);
        relayed.wait(Duration::from_millis(10));
        // The echo of the copy.
        relayed.ack(next);
        relayed.wait(round);
    }
    assert_eq!(relayed.copies.len(), 1);
}

/// Once each segment went twice for ever: a duplicate ACK that a copy had caused called for the next
/// copy, and no round trip was measured while all went twice.
#[test]
fn a_round_trip_that_grows_does_not_double_every_segment() {
    let mut relayed = Relayed::connected(1, 5_000);
    let data = |seq| packet(false, 1, [seq, 701], Flags::ACK, &[7; 700]);
    // The host has four segments under way, and the device acknowledges each of what it gets, copies
    // included, in order, a round trip later.
    let mut device = 5_000;
    let (mut next, mut under_way) = (5_000, VecDeque::new());
    let mut acks: VecDeque<(Instant, u32)> = VecDeque::new();
    let mut sent = 0;
    for tick in 0_u64..6_000 {
        let round_trip = Duration::from_millis(if tick < 1_000 { 300 } else { 620 });
        while under_way.len() < 4 {
            under_way.push_back(next + 700);
            relayed.offer(false, &data(next));
            next += 700;
        }
        for seq in relayed.numbers() {
            sent += 1;
            if seq == device {
                device += 700;
            }
            acks.push_back((relayed.now + round_trip, device));
        }
        while let Some((_, ack)) = acks.pop_front_if(|(at, _)| *at <= relayed.now) {
            relayed.ack(ack);
            under_way.retain(|end| *end > ack);
        }
        relayed.wait(Duration::from_millis(10));
    }
    let copies = relayed.copies.len();
    assert!(copies <= 8, "{copies} copies of {sent} segments");
}

#[test]
fn gaps_unknown_options_and_wrong_checksums_pass_untouched() {
    let mut gap = Relayed::connected(1, 5_000);
    gap.data(5_000);
    gap.data(6_000);
    gap.data(7_000);
    // 8,000 is lost before the router: all of it goes, and duplicate ACKs reach the host.
    assert!(!gap.data(9_000), "behind those that wait");
    assert_eq!(gap.numbers(), [5_000, 6_000, 7_000, 9_000]);
    gap.ack(8_000);
    for _ in 0..3 {
        assert!(gap.ack(8_000));
    }
    gap.wait(Duration::from_secs(600));
    assert!(gap.copies.is_empty());

    let mut wrong = Relayed::connected(1, 5_000);
    let mut bytes = packet(false, 1, [5_000, 701], Flags::ACK, &[7; 1_000]);
    *bytes.last_mut().expect("bytes") ^= 1;
    assert!(wrong.offer(false, &bytes));
    wrong.data(6_000);
    wrong.data(7_000);
    wrong.data(8_000);
    wrong.wait(Duration::from_secs(600));
    assert_eq!(wrong.numbers().len(), 4);
    assert!(wrong.copies.is_empty());

    // An MD5 signature (RFC 2385) in the place of timestamps.
    let mut signed = Relayed::connected(1, 5_000);
    let options = tcp::Options {
        timestamps: Some((1, 2)),
        ..tcp::Options::default()
    };
    let mut bytes = with_options(false, 1, [5_000, 701], (Flags::ACK, options), &[7; 100]);
    let place = bytes
        .windows(2)
        .position(|pair| pair == [8, 10])
        .expect("timestamps");
    bytes[place] = 19;
    signed.offer(false, &bytes);
    signed.wait(Duration::from_secs(600));
    assert!(signed.copies.is_empty());
}

#[test]
fn an_ack_of_what_waits_or_of_the_future_moves_nothing() {
    let mut relayed = Relayed::connected(1, 5_000);
    for seq in [5_000, 6_000, 7_000, 8_000] {
        relayed.data(seq);
    }
    relayed.taken();
    for lie in [8_000, 9_000, 4_000, 0x8000_0000] {
        assert!(relayed.ack(lie));
        assert!(relayed.numbers().is_empty());
    }
    relayed.wait(Duration::from_secs(4));
    assert_eq!(relayed.numbers(), [5_000]);
}

#[test]
fn a_fin_is_kept_a_reset_lets_go_what_waits_and_the_next_connection_begins_anew() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.data(5_000);
    let fin = packet(false, 1, [6_000, 701], Flags::ACK | Flags::FIN, &[]);
    assert!(relayed.offer(false, &fin));
    relayed.taken();
    relayed.ack(6_000);
    relayed.taken();
    relayed.wait(Duration::from_millis(700));
    assert_eq!(relayed.numbers(), [6_000], "the FIN");

    let mut relayed = Relayed::connected(1, 5_000);
    for seq in [5_000, 6_000, 7_000] {
        relayed.data(seq);
    }
    relayed.taken();
    relayed.offer(false, &packet(false, 1, [8_000, 701], Flags::RST, &[]));
    assert_eq!(relayed.numbers(), [7_000, 8_000]);
    relayed.connect(1, 90_000);
    relayed.data(90_000);
    relayed.taken();
    relayed.wait(Duration::from_secs(4));
    assert_eq!(relayed.numbers(), [90_000]);
}

#[test]
fn a_flow_keeps_six_kilobytes_and_passes_beyond() {
    let mut relayed = Relayed::connected(1, 0);
    for place in 0..40 {
        relayed.data(1_000 * place);
    }
    assert!(relayed.held.is_empty(), "beyond all pass");
    assert_eq!(relayed.numbers().len(), 40);
    // When the device has all of it, the relay keeps the flow again.
    relayed.ack(40_000);
    assert!(relayed.data(40_000) && relayed.data(41_000));
    assert!(!relayed.data(42_000));
}

#[test]
fn flows_beyond_the_table_pass_and_resting_ones_yield() {
    let mut relayed = Relayed::new();
    let data = |mote: u16, seq| packet(false, mote, [seq, 701], Flags::ACK, &[7; 1_000]);
    for mote in 1..=300 {
        relayed.connect(mote, 5_000);
        for place in 0..3 {
            relayed.offer(false, &data(mote, 5_000 + 1_000 * place));
        }
    }
    assert_eq!(
        relayed.held.len(),
        256,
        "one packet of each flow that is kept"
    );
    relayed.taken();
    relayed.wait(Duration::from_secs(600));
    let copies = std::mem::take(&mut relayed.copies);
    assert!(copies.len() <= 256 * 5, "{}", copies.len());
    // Each copy is its own flow's.
    for copy in &copies {
        let (header, payload) = parsed(copy);
        let (ip, _) = ipv6::Header::parse_start(copy).expect("IPv6");
        assert!(ip.dst.segments()[7] <= 256);
        assert_eq!((header.seq, payload.len()), (5_000, 1_000));
    }
    relayed.connect(1_000, 5_000);
    for place in 0..3 {
        relayed.offer(false, &data(1_000, 5_000 + 1_000 * place));
    }
    assert_eq!(relayed.held.len(), 1, "a flow at rest has yielded");
}

#[test]
fn the_end_of_the_router_lets_all_go() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.ack(5_000);
    for seq in [5_000, 6_000, 7_000] {
        relayed.data(seq);
    }
    relayed.taken();
    relayed.router.release_all();
    relayed.drain();
    assert_eq!(relayed.numbers(), [7_000]);
    assert!(relayed.data(8_000));
    assert!(relayed.ack(5_000));
}

#[test]
fn nothing_goes_again_to_a_device_that_has_reset_the_flow() {
    let mut relayed = Relayed::connected(1, 5_000);
    for seq in [5_000, 6_000] {
        relayed.data(seq);
    }
    relayed.offer(true, &packet(true, 1, [701, 5_000], Flags::RST, &[]));
    // The host has not seen it.
    for seq in [5_000, 6_000, 7_000] {
        assert!(relayed.data(seq));
    }
    relayed.wait(Duration::from_secs(600));
    assert!(relayed.copies.is_empty());
    // The next connection with these ports is relayed.
    relayed.connect(1, 90_000);
    relayed.data(90_000);
    relayed.wait(Duration::from_secs(4));
    assert_eq!(relayed.copies.len(), 1);
}

/// Whether the flow is relayed that goes on at `seq`, with nothing under way.
fn is_relayed(relayed: &mut Relayed, seq: u32) -> bool {
    relayed.taken();
    relayed.copies.clear();
    for place in 0..3 {
        relayed.data(seq + 1_000 * place);
    }
    relayed.wait(Duration::from_millis(500));
    relayed.ack(seq);
    relayed.ack(seq);
    let is_repeated = relayed.copies.len() == 1;
    relayed.ack(seq + 2_000);
    relayed.ack(seq + 3_000);
    is_repeated
}

#[test]
fn a_stranger_that_guesses_numbers_switches_nothing_off() {
    let forged = |seq, ack, flags, payload: &[u8]| packet(false, 1, [seq, ack], flags, payload);
    let strays = [
        forged(0x4000_0000, 701, Flags::ACK, &[1; 50]),
        forged(0xc000_0000, 701, Flags::ACK, &[1; 50]),
        forged(0x4000_0000, 701, Flags::ACK, &[]),
        forged(0x4000_0000, 0x3000_0000, Flags::ACK, &[]),
        forged(0xc000_0000, 0x3000_0000, Flags::ACK, &[1; 50]),
        forged(0x4000_0000, 0, Flags::SYN, &[]),
        forged(0x4000_0000, 701, Flags::RST, &[]),
    ];
    for (place, stray) in strays.iter().enumerate() {
        for before in [false, true] {
            let mut relayed = Relayed::connected(1, 5_000);
            if !before {
                relayed.data(5_000);
                relayed.ack(6_000);
            }
            for _ in 0..6 {
                relayed.offer(false, stray);
            }
            if before {
                relayed.data(5_000);
                relayed.ack(6_000);
            }
            assert!(is_relayed(&mut relayed, 6_000), "stray {place}, {before}");
        }
    }
    // While packets wait: they stay in order, and what is kept stays.
    for stray in &strays {
        let mut relayed = Relayed::connected(1, 5_000);
        for seq in [5_000, 6_000, 7_000] {
            relayed.data(seq);
        }
        relayed.taken();
        relayed.offer(false, stray);
        assert_eq!(relayed.numbers().len(), 1, "{stray:?}");
        relayed.wait(Duration::from_secs(4));
        assert_eq!(relayed.numbers(), [5_000]);
    }
}

/// The device answers what lies outside its window by an ACK of its true number (RFC 9293
/// §3.10.7.4): that goes to the host, and nothing goes again.
#[test]
fn the_answer_to_a_stranger_calls_for_no_copy() {
    let forged = |seq, flags, payload: &[u8]| packet(false, 1, [seq, 701], flags, payload);
    for stray in [
        forged(0x4000_0000, Flags::ACK, &[1; 50]),
        forged(0x4000_0000, Flags::SYN, &[]),
        forged(0xc000_0000, Flags::RST, &[]),
    ] {
        let mut relayed = Relayed::connected(1, 5_000);
        relayed.data(5_000);
        relayed.wait(Duration::from_millis(50));
        relayed.ack(6_000);
        relayed.data(6_000);
        relayed.data(7_000);
        relayed.wait(Duration::from_millis(100));
        for _ in 0..3 {
            relayed.offer(false, &stray);
            relayed.taken();
            relayed.ack(6_000);
            assert_eq!(relayed.taken().len(), 1, "it is the host's: {stray:?}");
        }
        assert!(relayed.copies.is_empty(), "{stray:?}");
    }
}

/// ECN: an echo of congestion is the host's, and what may be marked is not sent again.
#[test]
fn what_speaks_ecn_passes_untouched() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.data(5_000);
    relayed.data(6_000);
    relayed.wait(Duration::from_millis(50));
    relayed.taken();
    let echo = packet(true, 1, [701, 5_000], Flags::ACK | Flags::ECE, &[]);
    relayed.offer(true, &echo);
    assert_eq!(relayed.taken().len(), 1);
    assert!(relayed.copies.is_empty());

    let mut relayed = Relayed::connected(1, 5_000);
    let marked = |seq: u32| {
        let mut bytes = packet(false, 1, [seq, 701], Flags::ACK, &[7; 1_000]);
        bytes[1] |= 0x20;
        bytes
    };
    let passed = [5_000, 6_000, 7_000, 8_000].map(|seq| relayed.offer(false, &marked(seq)));
    assert_eq!(passed, [true; 4]);
    relayed.wait(Duration::from_secs(5));
    assert!(relayed.copies.is_empty());
}

/// A queue of the kernel that is full lets packets pass unseen.
#[test]
fn a_flow_of_which_much_was_missed_is_relayed_again() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.data(5_000);
    relayed.ack(6_000);
    let far = 6_000 + (5 << 20);
    relayed.data(far);
    relayed.ack(far + 1_000);
    relayed.data(far + 1_000);
    relayed.ack(far + 2_000);
    assert!(is_relayed(&mut relayed, far + 2_000));
}

#[test]
fn an_ack_that_the_host_will_not_take_frees_nothing() {
    let mut broken = packet(true, 1, [701, 6_000], Flags::ACK, &[]);
    broken[ipv6::HEADER_LEN + 16] ^= 1;
    let lies = [
        broken,
        packet(true, 1, [0x4000_0000, 6_000], Flags::ACK, &[]),
        packet(true, 1, [0xc000_0000, 6_000], Flags::ACK, &[]),
        packet(true, 1, [701, 9_000], Flags::ACK, &[]),
        packet(true, 1, [701, 4_000], Flags::ACK, &[]),
        packet(true, 1, [701, 0x4000_0000], Flags::ACK, &[]),
    ];
    for lie in &lies {
        let mut relayed = Relayed::connected(1, 5_000);
        for seq in [5_000, 6_000, 7_000] {
            relayed.data(seq);
        }
        relayed.taken();
        assert!(relayed.offer(true, lie));
        assert!(relayed.numbers().is_empty(), "nothing was acknowledged");
        relayed.wait(Duration::from_secs(4));
        assert_eq!(relayed.numbers(), [5_000], "{lie:?}");
    }
}

#[test]
fn a_device_with_unknown_options_is_left_alone() {
    let mut relayed = Relayed::connected(1, 5_000);
    for seq in [5_000, 6_000, 7_000] {
        relayed.data(seq);
    }
    let options = tcp::Options {
        timestamps: Some((1, 2)),
        ..tcp::Options::default()
    };
    let mut ack = with_options(true, 1, [701, 6_000], (Flags::ACK, options), &[]);
    let place = ack.windows(2).position(|pair| pair == [8, 10]);
    ack[place.expect("timestamps")] = 19;
    let src = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1);
    tcp::fill_checksum(&src, &HOST, &mut ack[ipv6::HEADER_LEN..]);
    relayed.taken();
    assert!(relayed.offer(true, &ack));
    assert_eq!(relayed.numbers(), [7_000], "what waited goes");
    relayed.wait(Duration::from_secs(600));
    assert!(relayed.copies.is_empty());
}

/// Idle connections of strangers, some of which were answered once, against one that goes on.
#[test]
fn idle_flows_neither_keep_a_flow_out_of_the_table_nor_push_one_out() {
    let data = |mote: u16, seq| packet(false, mote, [seq, 701], Flags::ACK, &[7; 1_000]);
    let ack = |mote: u16, ack| packet(true, mote, [701, ack], Flags::ACK, &[]);
    let mut relayed = Relayed::new();
    let half_open = |relayed: &mut Relayed, mote: u16| {
        relayed.connect(mote, 5_000);
        relayed.offer(false, &data(mote, 5_000));
        if mote.is_multiple_of(2) {
            relayed.offer(true, &ack(mote, 6_000));
            relayed.offer(false, &data(mote, 6_000));
        }
    };
    for mote in 2..=257 {
        half_open(&mut relayed, mote);
    }
    relayed.connect(1, 5_000);
    relayed.wait(Duration::from_secs(5));
    // It gets in, and stays, whatever strangers begin meanwhile.
    let mut seq = 5_000;
    for round in 0..600 {
        relayed.data(seq);
        relayed.data(seq + 1_000);
        assert!(!relayed.data(seq + 2_000), "round {round} is not relayed");
        half_open(&mut relayed, 300 + round);
        relayed.wait(Duration::from_millis(500));
        relayed.ack(seq + 2_000);
        relayed.ack(seq + 3_000);
        seq += 3_000;
    }
    // What waited of those that yielded has gone.
    relayed.wait(Duration::from_secs(600));
    assert!(relayed.held.is_empty());
}

/// The host cuts what it sends again in other pieces: the ACK may be of either.
#[test]
fn no_round_trip_is_measured_by_a_segment_that_was_sent_again_in_part() {
    let mut relayed = Relayed::connected(1, 5_000);
    relayed.data(5_000);
    relayed.wait(Duration::from_millis(100));
    relayed.ack(6_000);
    relayed.data(6_000);
    relayed.wait(Duration::from_millis(150));
    for from in [6_000, 6_500] {
        relayed.offer(false, &packet(false, 1, [from, 701], Flags::ACK, &[7; 500]));
    }
    relayed.wait(Duration::from_millis(190));
    relayed.ack(7_000);
    assert!(relayed.copies.is_empty());
    relayed.data(7_000);
    // Were those 340 ms measured, the timeout would be above 300.
    relayed.wait(Duration::from_millis(260));
    assert_eq!(relayed.copies.len(), 1);
}

/// A transfer through the router, with losses, repetitions and reordering at both sides.
struct Transfer {
    relayed: Relayed,
    begin: u32,
    stream: Vec<u8>,
    /// The host: its first unacknowledged byte, the next one, its duplicate ACKs and its timeout.
    una: usize,
    next: usize,
    duplicates: u32,
    retransmits_at: Instant,
    timeout: Duration,
    /// The device's bytes, and those behind a gap.
    received: Vec<u8>,
    beyond: BTreeMap<usize, Vec<u8>>,
    /// Acknowledgment numbers that the device has sent.
    acks: Vec<u32>,
    /// Packets under way: into the mesh, out of it, and on the wire to and from the host.
    paths: BTreeMap<(Instant, u64), (Leg, Vec<u8>)>,
    count: u64,
    random: u64,
    /// Of 256: losses in the mesh and on the wire; late and repeated packets.
    odds: [u8; 4],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Leg {
    FromHost,
    ToDevice,
    FromDevice,
    ToHost,
}

impl Transfer {
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn happens(&mut self, odds: u8) -> bool {
        self.random() % 256 < u64::from(odds)
    }

    fn send(&mut self, leg: Leg, bytes: &[u8]) {
        let in_mesh = matches!(leg, Leg::ToDevice | Leg::FromDevice);
        let [mesh, wire, late, again] = self.odds;
        let lost = if in_mesh { mesh } else { wire };
        if self.happens(lost) {
            return;
        }
        let repeats = 1 + u32::from(self.happens(again));
        for _ in 0..repeats {
            let base = if in_mesh { 120 } else { 5 };
            let late = if self.happens(late) {
                self.random() % 400
            } else {
                0
            };
            let at = self.relayed.now + Duration::from_millis(base + late);
            self.count += 1;
            self.paths.insert((at, self.count), (leg, bytes.to_vec()));
        }
    }

    /// The host sends what its window has room for.
    fn fill(&mut self) {
        while self.next < self.stream.len() && self.next - self.una < 4 * SEGMENT {
            let len = SEGMENT.min(self.stream.len() - self.next);
            self.transmit(self.next, len);
            self.next += len;
        }
    }

    fn transmit(&mut self, from: usize, len: usize) {
        let seq = self.begin.wrapping_add(from as u32);
        let bytes = packet(
            false,
            1,
            [seq, 701],
            Flags::ACK,
            &self.stream[from..from + len],
        );
        self.send(Leg::FromHost, &bytes);
    }

    fn on_leg(&mut self, leg: Leg, bytes: &[u8]) {
        match leg {
            Leg::FromHost => _ = self.relayed.offer(false, bytes),
            Leg::FromDevice => _ = self.relayed.offer(true, bytes),
            Leg::ToDevice => self.on_device(bytes),
            Leg::ToHost => self.on_host(bytes),
        }
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for (up, bytes) in self.relayed.taken() {
            self.send(if up { Leg::ToHost } else { Leg::ToDevice }, &bytes);
        }
    }

    fn on_device(&mut self, bytes: &[u8]) {
        let (header, payload) = parsed(bytes);
        let from = header.seq.wrapping_sub(self.begin) as usize;
        self.beyond.insert(from, payload);
        while let Some((&from, payload)) = self.beyond.first_key_value()
            && from <= self.received.len()
        {
            let skip = self.received.len() - from;
            let news = payload.get(skip..).unwrap_or_default().to_vec();
            self.received.extend(news);
            self.beyond.remove(&from);
        }
        let ack = self.begin.wrapping_add(self.received.len() as u32);
        self.acks.push(ack);
        self.send(
            Leg::FromDevice,
            &packet(true, 1, [701, ack], Flags::ACK, &[]),
        );
    }

    fn on_host(&mut self, bytes: &[u8]) {
        let (header, _) = parsed(bytes);
        assert!(
            self.acks.contains(&header.ack),
            "an ACK that the device has not sent"
        );
        let ack = header.ack.wrapping_sub(self.begin) as usize;
        if ack > self.una && ack <= self.next {
            (self.una, self.duplicates) = (ack, 0);
            self.timeout = Duration::from_secs(1);
            self.retransmits_at = self.relayed.now + self.timeout;
        } else if ack == self.una && self.una < self.next {
            self.duplicates += 1;
            if self.duplicates == 3 {
                self.transmit(self.una, SEGMENT.min(self.next - self.una));
            }
        }
        self.fill();
    }

    /// Whether the transfer ends within the time.
    fn run(&mut self, within: Duration) -> bool {
        let end = self.relayed.now + within;
        self.fill();
        while self.una < self.stream.len() {
            let next = [
                self.paths.first_key_value().map(|((at, _), _)| *at),
                self.relayed.router.next_deadline(),
                Some(self.retransmits_at),
            ];
            let at = next.into_iter().flatten().min().expect("a timeout");
            self.relayed.now = at.max(self.relayed.now);
            if self.relayed.now > end {
                return false;
            }
            self.relayed.drain();
            self.pass_on();
            if self.retransmits_at <= self.relayed.now {
                self.transmit(self.una, SEGMENT.min(self.next - self.una));
                self.timeout = (self.timeout + self.timeout).min(Duration::from_secs(60));
                self.retransmits_at = self.relayed.now + self.timeout;
            }
            while let Some(entry) = self.paths.first_entry()
                && entry.key().0 <= self.relayed.now
            {
                let (leg, bytes) = entry.remove();
                self.on_leg(leg, &bytes);
            }
        }
        true
    }
}

fn transfer(begin: u32, len: usize, odds: [u8; 4], random: u64) -> Transfer {
    let relayed = Relayed::connected(1, begin);
    Transfer {
        begin,
        stream: (0..len).map(|place| (place * 31 % 251) as u8).collect(),
        una: 0,
        next: 0,
        duplicates: 0,
        retransmits_at: relayed.now + Duration::from_secs(1),
        timeout: Duration::from_secs(1),
        received: Vec::new(),
        beyond: BTreeMap::new(),
        acks: Vec::new(),
        paths: BTreeMap::new(),
        count: 0,
        random: random | 1,
        odds,
        relayed,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_stream_arrives_whole_and_no_ack_is_made(
        begin in prop_oneof![Just(u32::MAX - 9_000), any::<u32>()],
        len in 1_usize..40_000,
        odds in [0_u8..80, 0_u8..40, 0_u8..60, 0_u8..60],
        random in any::<u64>(),
    ) {
        let mut transfer = transfer(begin, len, odds, random);
        prop_assert!(transfer.run(Duration::from_secs(36_000)), "it locks up");
        prop_assert_eq!(&transfer.received, &transfer.stream);
        // Nothing waits or is kept for ever.
        transfer.relayed.wait(Duration::from_secs(600));
        prop_assert!(transfer.relayed.held.is_empty());
        prop_assert_eq!(transfer.relayed.router.next_deadline(), None);
    }

    #[test]
    fn a_hostile_pair_makes_it_hold_and_send_no_more_than_its_bounds(
        steps in prop::collection::vec((any::<bool>(), 0_u8..12, 0_u8..12, 0_u16..1_300, 0_u16..3_000, 0_u8..40), 1..200),
    ) {
        let mut relayed = Relayed::connected(1, 0_u32.wrapping_sub(5_000));
        let mut entered = 0;
        for (up, seq, ack, len, wait, flags) in steps {
            let number = |steps: u8| (u32::from(steps) * 1_000).wrapping_sub(5_000);
            let flags = match flags {
                0 => Flags::ACK | Flags::FIN,
                1 => Flags::RST,
                2 => Flags::SYN,
                _ => Flags::ACK,
            };
            let own = 701 + u32::from(ack % 3);
            let numbers = if up { [own, number(ack)] } else { [number(seq), own] };
            let payload = vec![seq; if up { 0 } else { usize::from(len) }];
            entered += usize::from(!up);
            relayed.offer(up, &packet(up, 1, numbers, flags, &payload));
            let kept: usize = relayed.held.values().map(|(_, bytes)| bytes.len()).sum();
            prop_assert!(kept <= 6 * 1_024 + 128 * 100, "{kept} bytes wait");
            relayed.wait(Duration::from_millis(u64::from(wait)));
        }
        relayed.wait(Duration::from_secs(600));
        prop_assert!(relayed.held.is_empty());
        prop_assert!(relayed.copies.len() <= 5 * entered, "{} of {entered}", relayed.copies.len());
        prop_assert_eq!(relayed.router.next_deadline(), None);
    }
}
