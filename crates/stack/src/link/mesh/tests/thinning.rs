//! ACKs that wait, those that never do, and what arrives in the end.

use super::*;
use crate::link::Class;
use crate::wire::ipv6::TrafficClass;
use proptest::prelude::*;
use std::vec::Vec;

const VIA: LinkAddr = LinkAddr::Short(1);

/// A segment from the host to a mote.
#[derive(Clone, Copy, Debug)]
struct Segment {
    flow: u8,
    ack: u32,
    oddity: Oddity,
}

/// What is not as in a pure ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Oddity {
    None,
    Data,
    Flags(u16),
    Sack,
    Window(u16),
    Checksum,
    Urgent,
    Congested,
    Padding,
    OlderStamp,
}

impl Segment {
    const fn pure(ack: u32) -> Self {
        Self {
            flow: 0,
            ack,
            oddity: Oddity::None,
        }
    }

    const fn odd(ack: u32, oddity: Oddity) -> Self {
        Self {
            oddity,
            ..Self::pure(ack)
        }
    }

    /// `number`: of the segment, which its timestamp tells.
    fn packet(self, number: u32) -> Vec<u8> {
        let oddity = self.oddity;
        let mut options = tcp::Options {
            timestamps: Some((
                if oddity == Oddity::OlderStamp {
                    0
                } else {
                    number + 1
                },
                7,
            )),
            ..tcp::Options::NONE
        };
        if oddity == Oddity::Sack {
            options.sack.push(tcp::SackBlock { left: 9, right: 10 });
        }
        let tcp = tcp::Header {
            src_port: 80,
            dst_port: 1_000 + u16::from(self.flow),
            seq: 77,
            ack: self.ack,
            flags: match oddity {
                Oddity::Flags(more) => tcp::Flags::ACK.with(tcp::Flags::from_bits(more)),
                _ => tcp::Flags::ACK,
            },
            window: match oddity {
                Oddity::Window(window) => window,
                _ => 1_000,
            },
            urgent: u16::from(oddity == Oddity::Urgent),
            options,
        };
        let mut segment = [0; tcp::HEADER_LEN_MAX];
        let len = tcp.emit(&mut segment).unwrap();
        let mut segment = segment[..len].to_vec();
        if oddity == Oddity::Padding {
            // Timestamps first and padding behind.
            segment[tcp::HEADER_LEN..].rotate_left(2);
        }
        if oddity == Oddity::Data {
            segment.push(1);
        }
        let ipv6 = Header {
            traffic_class: TrafficClass(if oddity == Oddity::Congested { 3 } else { 0 }),
            flow_label: 0,
            payload_len: segment.len() as u16,
            next_header: tcp::NEXT_HEADER,
            hop_limit: 60 + number as u8 % 3,
            src: Ipv6Addr::LOCALHOST,
            dst: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
        };
        tcp::fill_checksum(&ipv6.src, &ipv6.dst, &mut segment);
        if oddity == Oddity::Checksum {
            segment[16] ^= 1;
        }
        let mut packet = std::vec![0; HEADER_LEN];
        ipv6.emit(&mut packet).unwrap();
        packet.extend(segment);
        packet
    }
}

/// A border router's queue behind the thinning, without end.
struct Router {
    thinning: Thinning,
    now: Instant,
    /// When each packet came to the router.
    came: Vec<Instant>,
    left: Vec<Vec<u8>>,
}

impl Router {
    fn new() -> Self {
        Self {
            thinning: Thinning::new(),
            now: Instant::ORIGIN + Duration::from_secs(1),
            came: Vec::new(),
            left: Vec::new(),
        }
    }

    fn offer(&mut self, packet: &[u8], via: Option<LinkAddr>) {
        let meta = PacketMeta::new(Class::Own, TcpEgress::Begins(Origin::Outside), self.now);
        let (header, _) = Header::parse_start(packet).unwrap();
        self.came.push(self.now);
        let offered = self.thinning.offer((&header, packet), via, meta, self.now);
        let before = offered.before.map(|before| before.packet().to_vec());
        self.left.extend(before);
        if !offered.is_kept {
            self.left.push(packet.to_vec());
        }
        self.poll(false);
    }

    fn poll(&mut self, is_busy: bool) {
        while let Some(due) = self.thinning.take_due(|_| is_busy, self.now) {
            assert!(self.now < due.since + WAIT_MAX + MS(11), "waited too long");
            self.left.push(due.packet().to_vec());
        }
    }

    /// Fragments keep coming, every 10 ms.
    fn fragments(&mut self, count: usize) {
        for _ in 0..count {
            self.now += MS(10);
            self.thinning.on_fragment(VIA, self.now);
            self.poll(false);
        }
    }

    /// Full ACKs until one waits for as long as fragments come.
    fn probe(&mut self) -> u32 {
        for number in 0..u32::from(STEPS) + 2 {
            self.fragments(2);
            let packet = Segment::pure(1_000 + number).packet(number);
            self.offer(&packet, Some(VIA));
        }
        self.left.clear();
        1_002 + u32::from(STEPS)
    }
}

const MS: fn(u64) -> Duration = Duration::from_millis;

fn ack_of(packet: &[u8]) -> u32 {
    tcp::Header::parse(&packet[HEADER_LEN..]).unwrap().0.ack
}

#[test]
fn a_newer_ack_takes_the_place_of_one_that_waits() {
    let mut router = Router::new();
    let next = router.probe();
    for number in 0..3 {
        router.fragments(2);
        let packet = Segment::pure(next + number).packet(50 + number);
        router.offer(&packet, Some(VIA));
    }
    assert!(router.left.is_empty());
    // The sender has no more to send.
    router.now += MS(100);
    router.poll(false);
    let [left] = &router.left[..] else {
        panic!("one leaves");
    };
    assert_eq!(ack_of(left), next + 2);
    assert_eq!(router.thinning.replaced(), 4 - 1);
}

/// Nobody sends to the mesh's edge: nothing is known of its pace, and an ACK goes at once.
#[test]
fn an_ack_waits_only_while_fragments_come() {
    let mut router = Router::new();
    for number in 0..100 {
        router.offer(&Segment::pure(1_000 + number).packet(number), Some(VIA));
        assert_eq!(router.left.len(), number as usize + 1);
        router.now += MS(5);
    }
    assert_eq!(router.thinning.replaced(), 0);
}

/// As many segments wait as two thirds of those that the sender sends without an ACK.
#[test]
fn no_sender_waits_but_to_find_out_how_long_it_can() {
    let mut router = Router::new();
    let mut next = router.probe();
    // It can send 600 more.
    router.fragments(2);
    router.offer(&Segment::pure(next + 600).packet(60), Some(VIA));
    router.now += MS(100);
    router.poll(false);
    next += 600;
    router.left.clear();
    for number in 0..STEPS.into() {
        router.fragments(2);
        next += 100;
        router.offer(&Segment::pure(next).packet(70 + number), Some(VIA));
    }
    let left: Vec<u32> = router.left.iter().map(|packet| ack_of(packet)).collect();
    let apart = left.windows(2).map(|pair| pair[1] - pair[0]);
    assert_eq!(apart.collect::<Vec<_>>(), [400; 3], "{left:?}");
}

#[test]
fn an_ack_waits_for_a_frame_under_way_and_not_for_ever() {
    let mut router = Router::new();
    let next = router.probe();
    router.now += MS(100);
    router.poll(true);
    assert!(router.left.is_empty());
    for _ in 0..50 {
        router.now += MS(10);
        router.thinning.on_fragment(VIA, router.now);
        router.poll(true);
    }
    assert_eq!(router.left.len(), 1);
    assert_eq!(ack_of(&router.left[0]), next - 1);
}

/// Everything but a pure ACK that acknowledges more passes at once, behind what waited.
#[test]
fn what_says_more_than_an_ack_never_waits() {
    let own = Segment::pure(0).packet(0);
    assert!(pure_ack(&own).is_some());
    let flags = [0, 1, 2, 3, 5, 6, 7, 8, 9].map(|bit| Oddity::Flags(1 << bit));
    let others = [
        Oddity::Data,
        Oddity::Sack,
        Oddity::Checksum,
        Oddity::Urgent,
        Oddity::Congested,
        Oddity::Padding,
    ];
    for oddity in flags.into_iter().chain(others) {
        let mut router = Router::new();
        let next = router.probe();
        let odd = Segment::odd(next, oddity).packet(60);
        assert!(pure_ack(&odd).is_none(), "{oddity:?}");
        router.offer(&odd, Some(VIA));
        assert_eq!(router.left.len(), 2, "{oddity:?}");
        assert_eq!(ack_of(&router.left[0]), next - 1);
        assert_eq!(router.left[1], odd);
    }
}

/// Pure ACKs that do not cover the one that waits let it go before them.
#[test]
fn an_ack_that_says_less_replaces_none() {
    for (more, oddity) in [
        // A duplicate, and a window update.
        (0, Oddity::None),
        (0, Oddity::Window(2_000)),
        // Older, and farther than any mote sends.
        (u32::MAX, Oddity::None),
        (0x1_0000, Oddity::None),
        (1, Oddity::Window(998)),
        (1, Oddity::Window(0)),
        (1, Oddity::OlderStamp),
    ] {
        let mut router = Router::new();
        let last = router.probe() - 1;
        let packet = Segment::odd(last.wrapping_add(more), oddity).packet(60);
        router.offer(&packet, Some(VIA));
        assert_eq!(ack_of(&router.left[0]), last, "{more} {oddity:?}");
        assert_eq!(router.thinning.replaced(), 0);
    }
}

/// A window that shrinks by no more than what was acknowledged takes nothing back, as Linux's does
/// in the beginning.
#[test]
fn a_smaller_window_with_the_same_right_edge_replaces() {
    let mut router = Router::new();
    let last = router.probe() - 1;
    let next = Segment::odd(last + 1, Oddity::Window(999)).packet(60);
    router.offer(&next, Some(VIA));
    assert!(router.left.is_empty(), "the older one still waits, or went");
    assert_eq!(router.thinning.replaced(), 1);
}

/// Packets for nobody in particular, for a child that sleeps, and of other protocols.
#[test]
fn other_packets_are_left_alone() {
    let mut router = Router::new();
    let next = router.probe();
    router.offer(&Segment::pure(next).packet(60), None);
    assert_eq!(router.left.len(), 2, "it has another way now");
    let mut udp = Segment::pure(next).packet(60);
    udp[6] = 17;
    router.offer(&udp, Some(VIA));
    router.offer(&udp[..HEADER_LEN + 3], Some(VIA));
    assert_eq!(router.left.len(), 4);
}

/// More flows than there is room for: the one that was silent for longest loses its place, and
/// nothing of what it had waiting.
#[test]
fn a_flow_without_a_place_loses_nothing() {
    let mut router = Router::new();
    router.probe();
    for flow in 1..=FLOWS as u8 + 1 {
        router.now += MS(1);
        let segment = Segment {
            flow,
            ..Segment::pure(5)
        };
        router.offer(&segment.packet(60), Some(VIA));
    }
    assert_eq!(router.left.len(), FLOWS + 2);
}

fn segment() -> impl Strategy<Value = Segment> {
    let oddity = prop_oneof![
        8 => Just(Oddity::None),
        1 => Just(Oddity::Data),
        1 => Just(Oddity::Sack),
        1 => Just(Oddity::Checksum),
        1 => Just(Oddity::Padding),
        1 => Just(Oddity::OlderStamp),
        1 => (0u16..10).prop_map(|bit| Oddity::Flags(1 << bit)),
        1 => (0u16..2_000).prop_map(Oddity::Window),
    ];
    (0u8..3, 0u32..4, oddity).prop_map(|(flow, ack, oddity)| Segment { flow, ack, oddity })
}

proptest! {
    /// Whatever a host sends, and whenever: the sender in the mesh sees the same cumulative ACK in
    /// the end, the same segments but pure ACKs, all in their order, and as many fewer as were
    /// counted.
    #[test]
    fn a_sender_sees_the_same_in_the_end(
        steps in prop::collection::vec((segment(), 0usize..4, 0u64..40), 1..200),
    ) {
        let mut router = Router::new();
        let mut acks = [u32::MAX - 50; 3];
        let mut offered: Vec<Vec<u8>> = Vec::new();
        for (number, (mut segment, fragments, ms)) in steps.into_iter().enumerate() {
            let ack = &mut acks[usize::from(segment.flow)];
            *ack = ack.wrapping_add(segment.ack * 500);
            segment.ack = *ack;
            let packet = segment.packet(number as u32);
            router.fragments(fragments);
            router.now += MS(ms % 11);
            router.poll(ms % 2 == 0);
            router.offer(&packet, Some(VIA));
            offered.push(packet);
        }
        router.now += MS(10);
        router.poll(false);
        for _ in 0..=WAIT_MAX.as_millis() / 10 {
            router.now += MS(10);
            router.poll(true);
        }
        let port = |packet: &Vec<u8>| packet[HEADER_LEN + 3];
        for flow in 0..3 {
            let is_own = |packet: &&Vec<u8>| port(packet) == (1_000u16 + flow).to_be_bytes()[1];
            let mut left = router.left.iter().filter(is_own).peekable();
            for packet in offered.iter().filter(is_own) {
                if left.next_if(|next| *next == packet).is_some() {
                    continue;
                }
                // A later ACK stands for it.
                let own = pure_ack(packet);
                let next = left.peek().and_then(|next| pure_ack(next));
                let (Some(own), Some(next)) = (own, next) else {
                    panic!("only ACKs are left out, and only before ACKs");
                };
                let more = next.ack.wrapping_sub(own.ack);
                let edge = u32::from(next.window) + more;
                prop_assert!(advances(own.ack, next.ack) && edge >= u32::from(own.window));
            }
            prop_assert!(left.next().is_none());
        }
        prop_assert_eq!(offered.len() - router.left.len(), router.thinning.replaced() as usize);
    }
}
