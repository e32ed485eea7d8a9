//! What holds of every router, whatever the packets, the policy and the clock: what goes in comes
//! out once, in the order of its flow and direction, and within a minute, or is a stranger's and
//! dropped; memory is bounded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::tcp::{self, Flags};
use motet_taim::{
    Admission, Config, Decision, Direction, Fq, Packet, PacketId, Policy, Router, Taim, Window,
};
use proptest::prelude::*;

fn addr(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last)
}

/// The headers of a segment, and the bytes of its packet.
fn segment(up: bool, mote: u16, [seq, ack]: [u32; 2], flags: Flags, len: u16) -> (Vec<u8>, usize) {
    let tcp = tcp::Header {
        src_port: if up { 1_000 } else { 80 },
        dst_port: if up { 80 } else { 1_000 },
        seq,
        ack,
        flags,
        window: 1_848,
        // A SYN says any segment size, as strangers may.
        options: tcp::Options {
            mss: flags.contains(Flags::SYN).then_some(len),
            ..tcp::Options::default()
        },
        ..tcp::Header::default()
    };
    let header_len = tcp.header_len() as u16;
    let (src, dst) = (addr(mote + 1), addr(0));
    let (src, dst) = if up { (src, dst) } else { (dst, src) };
    let ip = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: header_len + len,
        next_header: tcp::NEXT_HEADER,
        hop_limit: 64,
        src,
        dst,
    };
    let mut headers = vec![0; 40 + usize::from(header_len)];
    ip.emit(&mut headers).expect("room");
    tcp.emit(&mut headers[40..]).expect("room");
    let packet_len = headers.len() + usize::from(len);
    (headers, packet_len)
}

/// A router whose packets are followed.
struct Followed {
    router: Router,
    now: Instant,
    next_id: u64,
    /// By flow and direction: those that are inside.
    inside: BTreeMap<(u16, bool), VecDeque<PacketId>>,
    whose: BTreeMap<PacketId, (u16, bool)>,
}

impl Followed {
    fn new(config: Config) -> Self {
        Self {
            router: Router::new(config),
            now: Instant::ORIGIN + Duration::from_secs(1_000),
            next_id: 0,
            inside: BTreeMap::new(),
            whose: BTreeMap::new(),
        }
    }

    fn offer(&mut self, mote: u16, up: bool, (headers, len): &(Vec<u8>, usize)) -> Decision {
        let id = PacketId(self.next_id);
        self.next_id += 1;
        let direction = if up { Direction::Up } else { Direction::Down };
        let packet = Packet {
            id,
            direction,
            headers,
            len: *len,
        };
        let decision = self.router.on_packet(&packet, self.now);
        match decision {
            Decision::Pass => {
                let queue = self.inside.get(&(mote, up));
                let overtaken = queue.map_or(0, VecDeque::len);
                assert_eq!(overtaken, 0, "packet {id:?} overtakes others of its flow");
            }
            Decision::Hold => {
                self.inside.entry((mote, up)).or_default().push_back(id);
                self.whose.insert(id, (mote, up));
            }
        }
        self.drain();
        decision
    }

    fn drain(&mut self) {
        let gone: Vec<PacketId> = std::iter::from_fn(|| self.router.poll(self.now)).collect();
        let dropped = std::iter::from_fn(|| self.router.poll_dropped());
        for id in dropped {
            let flow = self.whose.remove(&id).expect("it was held, and once");
            let queue = self.inside.get_mut(&flow).expect("its flow");
            queue.retain(|other| *other != id);
        }
        for id in gone {
            let flow = self
                .whose
                .remove(&id)
                .expect("it was held, and comes out once");
            let queue = self.inside.get_mut(&flow).expect("its flow");
            assert_eq!(queue.pop_front(), Some(id), "in the order of its flow");
        }
        assert_eq!(self.router.held(), self.whose.len());
    }

    /// Lets time pass, with a call at each deadline, until nothing is held.
    fn settle(&mut self, within: Duration) {
        let end = self.now + within;
        while let Some(at) = self.router.next_deadline() {
            assert!(at <= end, "packets are held beyond {within:?}");
            self.now = at.max(self.now + Duration::from_micros(1));
            self.drain();
        }
        assert!(
            self.whose.is_empty(),
            "{} packets are held for ever",
            self.whose.len()
        );
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    let names = prop::sample::select(Policy::NAMES.to_vec());
    let named = names.prop_map(|name| name.parse::<Policy>().expect("a name"));
    let window = (1_u16..4).prop_map(|window| {
        Policy::Admission(Admission {
            window: Window::Fixed(window),
        })
    });
    prop_oneof![named, window]
}

#[derive(Clone, Debug)]
enum Step {
    Segment {
        up: bool,
        mote: u16,
        numbers: [u32; 2],
        flags: u16,
        len: u16,
    },
    /// Any bytes at all.
    Bytes(Vec<u8>),
    Wait(u64),
    Back(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = prop_oneof![0_u32..5_000, (u32::MAX - 5_000)..=u32::MAX, any::<u32>()];
    let flags = prop_oneof![8 => Just(0x10_u16), 1 => any::<u16>()];
    let segment = (
        any::<bool>(),
        0_u16..6,
        [number.clone(), number],
        flags,
        0_u16..1_300,
    );
    let segment = segment.prop_map(|(up, mote, numbers, flags, len)| Step::Segment {
        up,
        mote,
        numbers,
        flags,
        len,
    });
    let step = prop_oneof![
        12 => segment,
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(Step::Bytes),
        2 => (0_u64..3_000_000).prop_map(Step::Wait),
        1 => (0_u64..500_000_000).prop_map(Step::Back),
    ];
    prop::collection::vec(step, 0..200)
}

/// No packet is held for longer, whatever the policy.
const HOLD_MAX: Duration = Duration::from_secs(60);

proptest! {
    #[test]
    fn what_goes_in_comes_out_once_in_order_and_in_time(
        policy in policies(),
        strangers_max in 0..6_usize,
        steps in steps(),
    ) {
        take(policy, strangers_max, steps);
    }
}

/// Takes the steps, and sees that the laws hold.
fn take(policy: Policy, strangers_max: usize, steps: Vec<Step>) {
    let config = Config {
        strangers_max,
        flows_max: 4,
        flows_per_mote_max: 2,
        held_max: 20,
        held_per_flow_max: 6,
        ..Config::new(policy)
    };
    let mut followed = Followed::new(config);
    for step in steps {
        match step {
            Step::Segment {
                up,
                mote,
                numbers,
                flags,
                len,
            } => {
                let segment = segment(up, mote, numbers, Flags::from_bits(flags), len);
                let _ = followed.offer(mote, up, &segment);
            }
            Step::Bytes(bytes) => {
                let packet = (bytes.clone(), bytes.len());
                // Of no flow that is followed, whatever it is.
                assert_eq!(followed.offer(1_000, true, &packet), Decision::Pass);
            }
            Step::Wait(us) => followed.now += Duration::from_micros(us),
            Step::Back(us) => {
                let us = followed.now.as_micros().saturating_sub(us);
                followed.now = Instant::from_micros(us);
            }
        }
        followed.drain();
        assert!(followed.router.held() <= config.held_max + strangers_max);
        let status = followed.router.status(followed.now);
        assert!(status.flows.len() <= config.flows_max);
        assert!(status.motes.len() <= config.flows_max);
    }
    followed.settle(HOLD_MAX);
    let counters = followed.router.counters();
    assert_eq!(counters.held, counters.released + counters.dropped);
    assert!(strangers_max > 0 || counters.dropped == 0);
}

/// Each packet behind the first of its flow once began its minute anew, when the one before it
/// had gone.
#[test]
fn a_queue_of_one_flow_is_held_no_longer_than_its_packets_may_be() {
    let segment = |up, mote, numbers, flags, len| Step::Segment {
        up,
        mote,
        numbers,
        flags,
        len,
    };
    let steps = vec![
        segment(true, 5, [0, 0], 16, 0),
        segment(true, 1, [0, 4_294_962_295], 16, 77),
        segment(false, 1, [4_294_962_295, 0], 16, 1),
        segment(true, 3, [0, 0], 16, 3),
        segment(true, 4, [3_916, 0], 16, 1),
        Step::Wait(2_395_135),
        Step::Wait(2_297_380),
        Step::Wait(967_545),
        segment(false, 3, [4_294_962_295, 0], 16, 1),
        segment(false, 1, [4_294_962_295, 0], 16, 2),
        segment(false, 3, [4_294_962_295, 0], 16, 1),
        Step::Wait(1_209_829),
        Step::Wait(1_306_759),
        segment(false, 3, [4_294_962_295, 0], 16, 1),
        segment(false, 1, [4_294_962_295, 0], 16, 3),
        Step::Wait(2_428_534),
        segment(true, 5, [0, 0], 16, 91),
        Step::Wait(800_376),
        segment(false, 5, [4_278, 3_352_653_374], 16, 251),
        segment(false, 4, [75, 4_294_963_409], 16, 389),
        Step::Wait(1_495_440),
        segment(true, 5, [4_839, 3_253_990_947], 16, 771),
        Step::Wait(2_183_980),
        segment(true, 1, [3_826_478_234, 417], 16, 881),
        segment(true, 3, [2_202_599_981, 512], 16, 735),
        Step::Wait(2_962_303),
        segment(true, 4, [3_769, 3_170], 16, 149),
        Step::Wait(2_103_343),
        segment(false, 1, [3_526_812_964, 23_203_017], 16, 428),
        segment(false, 3, [852, 3_333_230_097], 60_712, 1_278),
        segment(false, 5, [1_873_108_812, 533], 16, 192),
        segment(false, 1, [3_642, 4_294_966_600], 16, 1_014),
        segment(false, 3, [4_294_967_156, 3_055_441_733], 16, 274),
        segment(false, 5, [3_951_553_586, 366], 16, 474),
        segment(false, 3, [4_294_963_861, 4_294_965_296], 16, 680),
        segment(false, 4, [1_294, 4_294_965_731], 16, 1_045),
        segment(false, 3, [4_294_966_336, 1_336], 16, 1_081),
    ];
    let window = Window::Fixed(1);
    take(Policy::Admission(Admission { window }), 0, steps);
}

#[test]
fn a_mss_of_one_and_a_long_spacing_hold_nothing_beyond_a_minute() {
    let spacing = Duration::from_secs(3_600);
    let taim = Taim {
        spacing,
        ..Taim::default()
    };
    for policy in [
        Policy::Fq(Fq::default()),
        Policy::Taim(Taim::default()),
        Policy::Fq(Fq { spacing }),
        Policy::Taim(taim),
    ] {
        let mut followed = Followed::new(Config::new(policy));
        for mote in 0..3 {
            let _ = followed.offer(mote, false, &segment(false, mote, [0, 0], Flags::SYN, 1));
            let _ = followed.offer(mote, true, &segment(true, mote, [0, 0], Flags::SYN, 1));
            for n in 0..5 {
                let down = segment(false, mote, [n * 1_200, 0], Flags::ACK, 1_200);
                open(&mut followed, mote, n * 1_200);
                let _ = followed.offer(mote, false, &down);
            }
        }
        assert!(followed.router.held() > 0);
        followed.settle(HOLD_MAX);
        let counters = followed.router.counters();
        assert_eq!(counters.held, counters.released);
    }
}

/// A flow that is known: its mote has sent `sent` bytes.
/// A mote sends a hundred bytes; the first ones in two segments, for a flow's first may be a question.
fn open(followed: &mut Followed, mote: u16, sent: u32) {
    let mut send = |at: u32, len| {
        let _ = followed.offer(mote, true, &segment(true, mote, [at, 0], Flags::ACK, len));
    };
    match sent {
        0 => [0, 50].into_iter().for_each(|at| send(at, 50)),
        _ => send(sent, 100),
    }
}

fn admission(window: u16) -> Config {
    Config::new(Policy::Admission(Admission {
        window: Window::Fixed(window),
    }))
}

#[test]
fn only_as_many_flows_as_the_window_allows_are_let_in() {
    // The window, and with it those beyond it whose senders would time out: half as many.
    for (window, inside) in [(1, 1), (2, 3)] {
        let mut followed = Followed::new(admission(window));
        for mote in 0..6 {
            open(&mut followed, mote, 0);
        }
        let ack = |mote| segment(false, mote, [0, 100], Flags::ACK, 0);
        let decisions: Vec<Decision> = (0..6)
            .map(|mote| followed.offer(mote, false, &ack(mote)))
            .collect();
        let passed = decisions
            .iter()
            .filter(|decision| **decision == Decision::Pass)
            .count();
        assert_eq!(passed, usize::from(window), "{decisions:?}");
        assert_eq!(followed.router.held(), 6 - inside);
        // The answer of one flow makes room for another.
        open(&mut followed, 0, 100);
        assert_eq!(followed.router.held(), 5 - inside);
        let status = followed.router.status(followed.now);
        assert_eq!(
            (status.window, status.inside),
            (Some(window.into()), Some(inside))
        );
    }
}

/// A download once was let in by two segments at a time, and waited for every other flow in between.
/// What is held of its flow goes before it.
#[test]
fn data_into_the_mesh_never_wait_for_admission() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..4 {
        open(&mut followed, mote, 0);
    }
    for mote in 0..4 {
        let ack = segment(false, mote, [0, 100], Flags::ACK, 0);
        let _ = followed.offer(mote, false, &ack);
    }
    assert_eq!(followed.router.held(), 3);
    for mote in 0..4 {
        for n in 0..4 {
            let data = segment(false, mote, [n * 400, 100], Flags::ACK, 400);
            let decision = followed.offer(mote, false, &data);
            let is_behind = mote > 0 && n == 0;
            assert_eq!(decision == Decision::Hold, is_behind, "{mote}: {n}");
        }
    }
    assert_eq!(followed.router.held(), 0);
    let status = followed.router.status(followed.now);
    assert!(status.inside <= Some(4), "{:?}", status.inside);
}

/// Beside uploads that wait for their turn, a download under `auto` once had the air to itself. Where
/// there are downloads alone, the border router's queues share it.
#[test]
fn data_into_the_mesh_take_turns_where_uploads_contend() {
    for (uploads, downloads, expected) in [(3, 2, true), (0, 5, false)] {
        let mut followed = Followed::new(Config::new("auto".parse().expect("a name")));
        let mut held_data = 0;
        for round in 0..200_u32 {
            followed.now += Duration::from_millis(100);
            followed.drain();
            for mote in 0..uploads + downloads {
                let is_up = mote < uploads;
                let [mine, others] = if is_up { [462, 0] } else { [0, 462] };
                let up = segment(
                    true,
                    mote,
                    [round * mine, round * others],
                    Flags::ACK,
                    mine as u16,
                );
                let _ = followed.offer(mote, true, &up);
                let down = segment(
                    false,
                    mote,
                    [round * others, round * mine + mine],
                    Flags::ACK,
                    others as u16,
                );
                let decision = followed.offer(mote, false, &down);
                held_data += u32::from(!is_up && decision == Decision::Hold);
            }
        }
        assert_eq!(
            held_data > 50,
            expected,
            "{uploads} up, {downloads} down: {held_data}"
        );
        followed.settle(HOLD_MAX);
        let counters = followed.router.counters();
        assert_eq!(counters.held, counters.released);
    }
}

/// A mote opens a connection with segments of 440 bytes, through a mesh of 50 ms.
fn open_by_syn(followed: &mut Followed, mote: u16) {
    let flags = [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK];
    for (flags, is_up, mss) in [(flags[0], true, 440), (flags[1], false, 440)] {
        let _ = followed.offer(mote, is_up, &segment(is_up, mote, [0, 1], flags, mss));
    }
    followed.now += Duration::from_millis(50);
    let _ = followed.offer(mote, true, &segment(true, mote, [1, 1], flags[2], 0));
}

/// How many packets `auto` holds where three motes send `len` bytes each `every_ms`, one reading in
/// five twice, and another one is sent 4,000 bytes each ten seconds.
fn held_beside_readings(len: u16, every_ms: u64) -> u64 {
    let mut followed = Followed::new(Config::new("auto".parse().expect("a name")));
    (0..4).for_each(|mote| open_by_syn(&mut followed, mote));
    let [mut sent, mut got] = [1_u32, 1];
    for step in 0..3_000_u64 {
        followed.now += Duration::from_millis(100);
        followed.drain();
        if step % (every_ms / 100) == 0 {
            let again = 1 + u32::from(step % (every_ms / 20) == 0);
            for (mote, _) in (0..3).flat_map(|mote| (0..again).map(move |time| (mote, time))) {
                let up = segment(true, mote, [sent, 1], Flags::ACK, len);
                let _ = followed.offer(mote, true, &up);
            }
            sent += u32::from(len);
            for mote in 0..3 {
                let ack = segment(false, mote, [1, sent], Flags::ACK, 0);
                let _ = followed.offer(mote, false, &ack);
            }
        }
        if step % 100 < 10 {
            let down = segment(false, 3, [got, 1], Flags::ACK, 400);
            let _ = followed.offer(3, false, &down);
            got += 400;
            let _ = followed.offer(3, true, &segment(true, 3, [1, got], Flags::ACK, 0));
        }
    }
    followed.router.counters().held
}

/// What a mote sent a second after an acknowledgment once counted as its answer, and the mesh as so
/// slow: motes with readings never rested, and a download beside three of them was held for
/// seconds. Motes that answer acknowledgments in such segments do not rest.
#[test]
fn motes_with_readings_are_no_crowd() {
    for every_ms in [1_000, 2_000, 5_000, 15_000] {
        assert_eq!(held_beside_readings(64, every_ms), 0, "{every_ms}");
    }
    assert!(held_beside_readings(200, 100) > 100);
}

/// One flow or two that send all they can, either way, beside motes that are asked now and then: no
/// policy holds any.
#[test]
fn those_who_ask_now_and_then_do_not_contend() {
    for name in Policy::NAMES {
        for (bulk, is_up) in [(1, true), (2, true), (1, false), (2, false)] {
            let mut followed = Followed::new(Config::new(name.parse().expect("a name")));
            let mut held_late = 0;
            for round in 0..600_u32 {
                followed.now += Duration::from_millis(100);
                followed.drain();
                let before = followed.router.counters().held;
                for mote in 0..bulk {
                    let [mine, others] = if is_up { [462, 0] } else { [0, 462] };
                    let numbers = [round * mine, round * others];
                    let up = segment(true, mote, numbers, Flags::ACK, mine as u16);
                    let _ = followed.offer(mote, true, &up);
                    let numbers = [round * others, round * mine + mine];
                    let down = segment(false, mote, numbers, Flags::ACK, others as u16);
                    let _ = followed.offer(mote, false, &down);
                }
                for mote in 10..18 {
                    if (round + u32::from(mote)) % 10 == 0 {
                        let done = round / 10 * 64;
                        let ask = segment(false, mote, [done, done], Flags::ACK, 64);
                        let _ = followed.offer(mote, false, &ask);
                        let answer = segment(true, mote, [done, done + 64], Flags::ACK, 64);
                        let _ = followed.offer(mote, true, &answer);
                        let ack = segment(false, mote, [done + 64, done + 64], Flags::ACK, 0);
                        let _ = followed.offer(mote, false, &ack);
                    }
                }
                // Until it is known who sends what.
                if round > 50 {
                    held_late += followed.router.counters().held - before;
                }
            }
            assert_eq!(held_late, 0, "{name}: {bulk} flows, up: {is_up}");
        }
    }
}

/// Two flows once had the mesh to themselves for good: the others had waited for more than a minute
/// between two tries, and did not count any more.
#[test]
fn flows_that_starve_still_contend() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..6 {
        open(&mut followed, mote, 0);
    }
    let mut is_held = false;
    for round in 1..300 {
        followed.now += Duration::from_millis(300);
        followed.drain();
        for mote in 0..2 {
            open(&mut followed, mote, round * 100);
            let ack = segment(false, mote, [0, round * 100 + 100], Flags::ACK, 0);
            is_held = followed.offer(mote, false, &ack) == Decision::Hold;
        }
    }
    assert!(is_held, "after 90 s the two are let in together");
}

/// The window of a mesh with small segments after three minutes in which six motes send, and of
/// every `lost` acknowledgments one is lost.
fn window_after(lost: u32) -> Option<usize> {
    let mut followed = Followed::new(Config::new(Policy::default()));
    let small = |mote, round: u32| {
        let numbers = [round * 38, 0];
        segment(true, mote, numbers, Flags::ACK, 38)
    };
    for round in 0..600 {
        followed.now += Duration::from_millis(300);
        followed.drain();
        for mote in 0..6 {
            let _ = followed.offer(mote, true, &small(mote, round));
            if (round * 6 + u32::from(mote)) % lost == 0 {
                let _ = followed.offer(mote, true, &small(mote, round));
            }
            let ack = segment(false, mote, [0, round * 38 + 38], Flags::ACK, 0);
            let _ = followed.offer(mote, false, &ack);
        }
    }
    followed.router.status(followed.now).window
}

/// Into a queue of twelve packets sixteen flows once were let, for all the acknowledgments that it
/// lost: the flows lost them in turn, and stayed even.
#[test]
fn the_window_shrinks_where_acknowledgments_are_lost() {
    assert_eq!(window_after(10), Some(1));
    assert_eq!(window_after(200), Some(15));
}

/// An acknowledgment may invite nothing, where its mote's window is shut: what the mote sends long
/// after it, by a timer or for another acknowledgment, says nothing of the mesh. Each such round
/// trip once kept the one place inside for longer, and a star of ten stood still for a minute.
#[test]
fn an_acknowledgment_that_nothing_answers_makes_the_mesh_no_slower() {
    for (apart_ms, rtt_ms) in [(60, 160), (10_000, 100)] {
        let mut followed = Followed::new(Config::new(Policy::None));
        open(&mut followed, 0, 0);
        let pass = |followed: &mut Followed, ack, wait_ms| {
            let _ = followed.offer(0, false, &segment(false, 0, [0, ack], Flags::ACK, 0));
            followed.now += Duration::from_millis(wait_ms);
        };
        for round in 1..40 {
            pass(&mut followed, round * 100, 100);
            open(&mut followed, 0, round * 100);
        }
        let before = followed.router.status(followed.now).flows[0].mesh.rtt;
        assert_eq!(before, Some(Duration::from_millis(100)));
        // Two segments are under way, and two acknowledgments come back.
        open(&mut followed, 0, 4_000);
        pass(&mut followed, 4_000, apart_ms);
        pass(&mut followed, 4_100, 100);
        open(&mut followed, 0, 4_100);
        let after = followed.router.status(followed.now).flows[0].mesh.rtt;
        let expected = (7 * 100 + rtt_ms) * 1_000 / 8;
        assert_eq!(after, Some(Duration::from_micros(expected)), "{apart_ms}");
    }
}

/// A round trip through the mesh that rose for good once was never learnt where it passed the
/// timeout at once.
#[test]
fn a_mesh_that_becomes_slower_for_good_is_noticed() {
    for (before_ms, after_ms) in [(20, 600), (100, 500), (400, 2_000)] {
        let mut followed = Followed::new(Config::new(Policy::None));
        open(&mut followed, 0, 0);
        for round in 1..60 {
            let took = if round < 20 { before_ms } else { after_ms };
            let ack = segment(false, 0, [0, round * 100], Flags::ACK, 0);
            let _ = followed.offer(0, false, &ack);
            followed.now += Duration::from_millis(took);
            open(&mut followed, 0, round * 100);
        }
        let rtt = followed.router.status(followed.now).flows[0].mesh.rtt;
        let rtt_ms = rtt.expect("samples").as_millis();
        assert!(
            rtt_ms * 10 >= after_ms * 9 && rtt_ms <= after_ms,
            "{rtt_ms}"
        );
    }
}

/// Ten motes answer after 100 ms, and then none does any more: two at a time would take 1.2 s.
#[test]
fn packets_go_before_their_senders_time_out() {
    let mut followed = Followed::new(Config::new(Policy::None));
    for mote in 0..10 {
        open(&mut followed, mote, 0);
    }
    for round in 1..20 {
        for mote in 0..10 {
            let ack = segment(false, mote, [0, round * 100], Flags::ACK, 0);
            let _ = followed.offer(mote, false, &ack);
        }
        followed.now += Duration::from_millis(100);
        followed.drain();
        for mote in 0..10 {
            open(&mut followed, mote, round * 100);
        }
    }
    let now = followed.now;
    followed.router.set_policy(admission(2).policy, now);
    for mote in 0..10 {
        open(&mut followed, mote, 2_000);
    }
    for mote in 0..10 {
        let ack = segment(false, mote, [0, 2_100], Flags::ACK, 0);
        let _ = followed.offer(mote, false, &ack);
    }
    assert_eq!(followed.router.held(), 8);
    let begun = followed.now;
    while let Some(at) = followed.router.next_deadline() {
        followed.now = at;
        followed.drain();
    }
    let waited = followed.now.since(begun);
    assert!(waited <= Duration::from_secs(1), "{waited:?}");
}

/// The clock is set back by an hour, and forth by a day.
#[test]
fn steps_of_the_clock_hold_nothing_for_longer() {
    for name in Policy::NAMES {
        let mut followed = Followed::new(Config::new(name.parse().expect("a name")));
        followed.now += Duration::from_secs(100_000);
        for step in [0, 1] {
            for mote in 0..8 {
                open(&mut followed, mote, 0);
                for n in 1..4 {
                    let ack = segment(false, mote, [0, n * 20], Flags::ACK, 0);
                    let _ = followed.offer(mote, false, &ack);
                }
            }
            let hour = Duration::from_secs(3_600);
            followed.now = match step {
                0 => Instant::from_micros(followed.now.as_micros() - hour.as_micros()),
                _ => followed.now + Duration::from_secs(24 * 3_600),
            };
            followed.drain();
            followed.settle(Duration::from_secs(60));
        }
        assert!(followed.router.counters().clock_steps >= 1, "{name}");
    }
}

/// Without it the mote sends its FIN again, until it gives the connection up.
#[test]
fn the_acknowledgment_of_a_fin_never_waits_and_takes_no_place() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..6 {
        open(&mut followed, mote, 0);
    }
    let ack = |mote, ack| segment(false, mote, [0, ack], Flags::ACK, 0);
    assert_eq!(followed.offer(0, false, &ack(0, 100)), Decision::Pass);
    for mote in 1..6 {
        let fin = segment(true, mote, [100, 0], Flags::ACK | Flags::FIN, 0);
        assert_eq!(followed.offer(mote, true, &fin), Decision::Pass);
        assert_eq!(followed.offer(mote, false, &ack(mote, 101)), Decision::Pass);
    }
    let status = followed.router.status(followed.now);
    assert_eq!((status.window, status.inside), (Some(1), Some(1)));
}

/// Those that have ended do not contend.
#[test]
fn flows_that_are_over_hold_no_others() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..6 {
        open(&mut followed, mote, 0);
    }
    for mote in 2..6 {
        let fin = segment(true, mote, [100, 0], Flags::ACK | Flags::FIN, 0);
        let _ = followed.offer(mote, true, &fin);
        let ack = segment(false, mote, [0, 101], Flags::ACK | Flags::FIN, 0);
        let _ = followed.offer(mote, false, &ack);
        let last = segment(true, mote, [101, 1], Flags::ACK, 0);
        let _ = followed.offer(mote, true, &last);
    }
    for round in 1..20 {
        for mote in 0..2 {
            open(&mut followed, mote, round * 100);
            let ack = segment(false, mote, [0, round * 100 + 100], Flags::ACK, 0);
            assert_eq!(followed.offer(mote, false, &ack), Decision::Pass);
        }
        followed.now += Duration::from_millis(300);
    }
}

#[test]
fn one_flow_or_two_are_never_held() {
    for name in Policy::NAMES {
        let mut followed = Followed::new(Config::new(name.parse().expect("a name")));
        for round in 0..200 {
            for mote in 0..2 {
                let data = segment(true, mote, [round * 100, 0], Flags::ACK, 100);
                assert_eq!(followed.offer(mote, true, &data), Decision::Pass, "{name}");
                let ack = segment(false, mote, [0, round * 100 + 100], Flags::ACK, 0);
                assert_eq!(followed.offer(mote, false, &ack), Decision::Pass, "{name}");
            }
            followed.now += Duration::from_millis(300);
        }
    }
}

#[test]
fn strangers_floods_fill_nothing() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..4 {
        open(&mut followed, mote, 0);
    }
    for n in 0..100_000_u32 {
        let flags = if n % 2 == 0 { Flags::SYN } else { Flags::RST };
        let mote = (n % 60_000) as u16 + 10;
        let flood = segment(false, mote, [n, 0], flags, 0);
        assert_eq!(followed.offer(mote, false, &flood), Decision::Pass);
    }
    let status = followed.router.status(followed.now);
    assert_eq!((status.flows.len(), status.motes.len()), (4, 4));
    assert_eq!(followed.router.held(), 0);
}

#[test]
fn a_mote_cannot_fill_the_table_alone() {
    let config = Config {
        flows_per_mote_max: 8,
        ..admission(1)
    };
    let mut router = Router::new(config);
    let now = Instant::ORIGIN;
    for port in 0..5_000_u16 {
        let (mut headers, len) = segment(true, 1, [0, 0], Flags::ACK, 10);
        headers[40..42].copy_from_slice(&port.to_be_bytes());
        let packet = Packet {
            id: PacketId(port.into()),
            direction: Direction::Up,
            headers: &headers,
            len,
        };
        assert_eq!(router.on_packet(&packet, now), Decision::Pass);
    }
    assert_eq!(router.status(now).flows.len(), 8);
    assert_eq!(router.counters().mote_full, 4_992);
}

#[test]
fn forged_jumps_and_resets_stick_no_flow() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..4 {
        open(&mut followed, mote, 0);
    }
    for n in 0..1_000_u32 {
        let jump = segment(false, 1, [n << 22, n << 21], Flags::ACK, 0);
        let reset = segment(false, 1, [n << 20, 0], Flags::RST, 0);
        let _ = followed.offer(1, false, &jump);
        let _ = followed.offer(1, false, &reset);
    }
    followed.settle(Duration::from_secs(120));
    // The flow goes on as if nothing had been.
    let before = followed.router.status(followed.now).flows[1].bytes_up;
    for round in 1..50 {
        open(&mut followed, 1, round * 100);
        let _ = followed.offer(
            1,
            false,
            &segment(false, 1, [0, round * 100], Flags::ACK, 0),
        );
        followed.settle(Duration::from_secs(120));
    }
    let flow = &followed.router.status(followed.now).flows[1];
    assert_eq!(flow.bytes_up - before, 49 * 100);
}

#[test]
fn all_that_is_held_goes_when_the_router_ends() {
    for name in Policy::NAMES {
        let mut followed = Followed::new(Config::new(name.parse().expect("a name")));
        for mote in 0..6 {
            open(&mut followed, mote, 0);
            for n in 1..5 {
                let _ = followed.offer(
                    mote,
                    false,
                    &segment(false, mote, [0, n * 20], Flags::ACK, 0),
                );
            }
        }
        followed.router.release_all();
        followed.drain();
        assert_eq!(followed.router.held(), 0, "{name}");
        let ack = segment(false, 1, [0, 100], Flags::ACK, 0);
        assert_eq!(
            followed.offer(1, false, &ack),
            Decision::Pass,
            "{name}: no more is held"
        );
    }
}

#[test]
fn progress_survives_wraps_losses_and_repeats() {
    let mut followed = Followed::new(Config::new(Policy::None));
    let start = u32::MAX - 250;
    // The third segment is lost before the router, the second comes twice.
    for n in [0, 1, 3, 4, 1, 2, 5] {
        open(&mut followed, 0, start.wrapping_add(n * 100));
    }
    let flow = &followed.router.status(followed.now).flows[0];
    assert_eq!(flow.bytes_up, 600);
    assert_eq!(flow.retransmissions, 2);
}

/// A mote that serves is sent data before its first acknowledgment makes its flow known.
#[test]
fn what_a_mote_is_sent_before_its_first_acknowledgment_counts() {
    let mut followed = Followed::new(admission(1));
    let begin = u32::MAX - 40;
    let down =
        |offset: u32, flags, len| segment(false, 0, [begin.wrapping_add(offset), 501], flags, len);
    let up = |ack: u32, flags| segment(true, 0, [501, begin.wrapping_add(ack)], flags, 0);
    let _ = followed.offer(0, false, &down(u32::MAX, Flags::SYN, 0));
    let _ = followed.offer(0, true, &up(0, Flags::SYN | Flags::ACK));
    for (offset, len) in [(0, 100), (100, 100), (100, 100), (0xa000_0000, 100)] {
        let _ = followed.offer(0, false, &down(offset, Flags::ACK, len));
    }
    let _ = followed.offer(0, true, &up(200, Flags::ACK));
    let _ = followed.offer(0, false, &down(200, Flags::ACK, 50));
    let _ = followed.offer(0, true, &up(250, Flags::ACK));
    let flow = &followed.router.status(followed.now).flows[0];
    assert_eq!((flow.bytes_up, flow.bytes_down), (0, 250));
}

/// A sender that sends its last bytes again may put its FIN behind them.
#[test]
fn the_number_of_a_fin_is_no_byte() {
    let fin = Flags::ACK | Flags::FIN;
    // The last segments of a stream of 200 bytes: where each begins, its flags and its bytes.
    let ends: [&[(u32, Flags, u16)]; 4] = [
        &[(100, Flags::ACK, 100), (100, fin, 100)],
        &[(100, Flags::ACK, 100), (200, fin, 0), (100, fin, 100)],
        &[(100, fin, 100), (100, fin, 100), (200, fin, 0)],
        &[(200, fin, 0), (100, Flags::ACK, 100), (0, fin, 200)],
    ];
    for end in ends {
        for is_early in [false, true] {
            let mut followed = Followed::new(Config::new(Policy::None));
            let down = |seq, flags, len| segment(false, 0, [seq, 501], flags, len);
            let up = |ack, flags| segment(true, 0, [501, ack], flags, 0);
            let _ = followed.offer(0, false, &down(u32::MAX, Flags::SYN, 0));
            let _ = followed.offer(0, true, &up(0, Flags::SYN | Flags::ACK));
            let _ = followed.offer(0, false, &down(0, Flags::ACK, 100));
            if !is_early {
                let _ = followed.offer(0, true, &up(100, Flags::ACK));
            }
            for &(seq, flags, len) in end {
                let _ = followed.offer(0, false, &down(seq, flags, len));
            }
            let _ = followed.offer(0, true, &up(201, Flags::ACK));
            let _ = followed.offer(0, false, &down(100, fin, 100));
            let flow = &followed.router.status(followed.now).flows[0];
            assert_eq!(flow.bytes_down, 200, "{end:?}, early: {is_early}");
        }
    }
}

#[test]
fn names_are_those_that_are_read() {
    let named: BTreeSet<&str> = Policy::NAMES
        .iter()
        .map(|name| name.parse::<Policy>().expect("a name").name())
        .collect();
    assert_eq!(named, Policy::NAMES.into_iter().collect());
    assert!("TAiM".parse::<Policy>().is_err());
}

/// Instants at which packets leave, µs since the first.
fn releases(followed: &mut Followed) -> Vec<(u64, PacketId)> {
    let mut left = Vec::new();
    while let Some(at) = followed.router.next_deadline() {
        followed.now = at.max(followed.now);
        while let Some(id) = followed.router.poll(followed.now) {
            left.push((followed.now.as_micros(), id));
        }
    }
    left
}

#[test]
fn taim_lets_packets_go_one_by_one_the_slowest_flow_first() {
    let taim = Taim {
        spacing: Duration::from_millis(50),
        adapts: false,
        ..Taim::default()
    };
    let mut followed = Followed::new(Config::new(Policy::Taim(taim)));
    // Mote 0 has had three times what mote 2 had.
    for (mote, segments) in [(0, 6), (1, 4), (2, 2)] {
        for n in 0..segments {
            open(&mut followed, mote, n * 100);
            followed.settle(Duration::from_secs(10));
        }
    }
    followed.now += Duration::from_secs(1);
    // The first goes at once; of the others that of the slowest flow.
    let ids: Vec<u64> = [1_u16, 0, 2]
        .iter()
        .map(|mote| {
            let ack = segment(false, *mote, [0, 100], Flags::ACK, 0);
            let id = followed.next_id;
            let _ = followed.offer(*mote, false, &ack);
            id
        })
        .collect();
    let from = followed.now.as_micros();
    let left = releases(&mut followed);
    let spacing = 50_000;
    let expected = vec![
        (from + spacing, PacketId(ids[2])),
        (from + 2 * spacing, PacketId(ids[1])),
    ];
    assert_eq!(left, expected);
}

#[test]
fn fair_queueing_lets_flows_go_in_turn() {
    let fq = Policy::Fq(Fq {
        spacing: Duration::from_millis(10),
    });
    let mut followed = Followed::new(Config::new(fq));
    // With two there would be nothing to share.
    for mote in 0..3 {
        open(&mut followed, mote, 0);
        followed.settle(Duration::from_secs(1));
    }
    followed.now += Duration::from_secs(1);
    let mut whose = BTreeMap::new();
    for mote in [0, 0, 0, 0, 1, 1, 1] {
        whose.insert(PacketId(followed.next_id), mote);
        let _ = followed.offer(
            mote,
            false,
            &segment(false, mote, [0, 100], Flags::ACK, 500),
        );
    }
    let left = releases(&mut followed);
    let order: Vec<u16> = left.iter().map(|(_, id)| whose[id]).collect();
    assert_eq!(order, [1, 0, 1, 0, 1, 0]);
}

/// Segments that follow one another, a tenth of a second apart, once were taken for one that is sent
/// each tenth of a second: its flow was held no longer, and had the mesh to itself.
#[test]
fn a_window_that_is_sent_again_is_no_fixed_timeout() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..4 {
        open(&mut followed, mote, 0);
        let ack = segment(false, mote, [0, 100], Flags::ACK, 0);
        let _ = followed.offer(mote, false, &ack);
    }
    for n in 1..8 {
        open(&mut followed, 3, n * 100);
    }
    for n in 0..300_u32 {
        followed.now += Duration::from_millis(100);
        followed.drain();
        open(&mut followed, 0, 100 + n * 100);
        let ack = segment(false, 0, [0, 200 + n * 100], Flags::ACK, 0);
        let _ = followed.offer(0, false, &ack);
        if n < 8 {
            open(&mut followed, 3, n * 100);
        }
        let ack = segment(false, 3, [0, 800], Flags::ACK, 0);
        let _ = followed.offer(3, false, &ack);
    }
    let early = followed.router.counters().released_early;
    assert_eq!(early, 0, "packets went out of turn");
}

#[test]
fn a_sender_with_a_fixed_timeout_is_not_held_longer() {
    let mut followed = Followed::new(admission(1));
    for mote in 0..4 {
        open(&mut followed, mote, 0);
        let ack = segment(false, mote, [0, 100], Flags::ACK, 0);
        let _ = followed.offer(mote, false, &ack);
    }
    // Motes 1 to 3 wait; mote 3 sends again each three seconds while mote 0 keeps the place.
    let mut waited = Vec::new();
    for _ in 0..4 {
        let begun = followed.now;
        let _ = followed.offer(3, false, &segment(false, 3, [0, 100], Flags::ACK, 0));
        for n in 0..30_u32 {
            followed.now += Duration::from_secs(1);
            open(&mut followed, 0, 100 + n * 100);
            let ack = segment(false, 0, [0, 200 + n * 100], Flags::ACK, 0);
            let _ = followed.offer(0, false, &ack);
            if n % 3 == 2 {
                open(&mut followed, 3, 0);
            }
            let is_held = followed
                .inside
                .get(&(3, false))
                .is_some_and(|queue| !queue.is_empty());
            if !is_held {
                break;
            }
        }
        waited.push(followed.now.since(begun).as_secs());
    }
    assert!(
        waited.iter().skip(1).all(|seconds| *seconds <= 5),
        "{waited:?}"
    );
}

/// A datagram of a stranger, or to one.
fn of_stranger(up: bool, stranger: u16, mote: u16, len: u16) -> (Vec<u8>, usize) {
    let ends = [
        Ipv6Addr::new(0x2001, 0xdb8, stranger, 0, 0, 0, 0, 1),
        addr(mote + 1),
    ];
    let [src, dst] = if up { [ends[1], ends[0]] } else { ends };
    let ip = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: len,
        next_header: 17,
        hop_limit: 64,
        src,
        dst,
    };
    let mut headers = vec![0; 48];
    ip.emit(&mut headers).expect("room");
    (headers, 40 + usize::from(len))
}

/// Everything that was held goes on or is to be dropped, and each packet does one of both once.
fn settle_strangers(router: &mut Router, now: &mut Instant, within: Duration) -> [Vec<u64>; 2] {
    let end = *now + within;
    let [mut passed, mut dropped] = [Vec::new(), Vec::new()];
    loop {
        passed.extend(std::iter::from_fn(|| router.poll(*now)).map(|id| id.0));
        dropped.extend(std::iter::from_fn(|| router.poll_dropped()).map(|id| id.0));
        match router.next_deadline() {
            Some(at) if at <= end => *now = at.max(*now + Duration::from_micros(1)),
            _ => break,
        }
    }
    *now = end;
    [passed, dropped]
}

/// The part of the nominal air that a flood has in a minute beside a connection in use, and how many
/// packets pass and are dropped.
fn flood(sources: u16, len: u16, per_s: u64, answers: bool, uses_tcp: bool) -> (f64, usize, usize) {
    let config = Config {
        strangers_max: Config::STRANGERS_MAX,
        ..Config::new(Policy::None)
    };
    let mut router = Router::new(config);
    let start = Instant::ORIGIN + Duration::from_secs(1_000);
    let (mut now, mut passed, mut dropped) = (start, 0, 0);
    let mut packets = 0;
    let air_us = |len: u64| (len - 40 + 8 + (len - 40 + 8).div_ceil(96) * 100) * 3 * 32;
    let mut spent_us = 0;
    for n in 0..60 * per_s {
        if n % per_s == 0 && uses_tcp {
            let (headers, len) = segment(true, 1, [n as u32, 0], Flags::ACK, 10);
            let id = PacketId(u64::MAX - n);
            let packet = Packet {
                id,
                direction: Direction::Up,
                headers: &headers,
                len,
            };
            assert_eq!(router.on_packet(&packet, now), Decision::Pass);
        }
        let source = (n % u64::from(sources)) as u16;
        let (headers, len) = of_stranger(false, source, 3, len);
        let packet = Packet {
            id: PacketId(n),
            direction: Direction::Down,
            headers: &headers,
            len,
        };
        packets += 1;
        let at_once = router.on_packet(&packet, now) == Decision::Pass;
        let [gone, lost] = settle_strangers(
            &mut router,
            &mut now,
            Duration::from_micros(1_000_000 / per_s),
        );
        let new = gone.len() + usize::from(at_once);
        let own = at_once.then_some(n);
        for id in gone.iter().copied().chain(own).filter(|_| answers) {
            let source = (id % u64::from(sources)) as u16;
            let (headers, len) = of_stranger(true, source, 3, len as u16 - 40);
            let packet = Packet {
                id: PacketId(0),
                direction: Direction::Up,
                headers: &headers,
                len,
            };
            assert_eq!(router.on_packet(&packet, now), Decision::Pass);
        }
        // An answer counts twice.
        spent_us += air_us(len as u64) * new as u64 * if answers { 3 } else { 1 };
        (passed, dropped) = (passed + new, dropped + lost.len());
        assert!(router.held() <= 256);
    }
    assert_eq!(
        packets,
        passed + dropped + router.held(),
        "each packet once"
    );
    assert_eq!(router.counters().dropped, dropped as u64);
    router.release_all();
    let [gone, lost] = settle_strangers(&mut router, &mut now, Duration::from_micros(1));
    assert_eq!(packets, passed + dropped + gone.len() + lost.len());
    assert_eq!(router.held(), 0);
    (
        spent_us as f64 / now.since(start).as_micros() as f64,
        passed,
        dropped,
    )
}

#[test]
fn strangers_have_an_eighth_of_the_air_while_tcp_is_in_use() {
    for (len, per_s) in [(28, 50), (108, 100), (1_008, 3), (1_008, 20)] {
        for answers in [false, true] {
            for sources in [1, 8, 64] {
                let (part, ..) = flood(sources, len, per_s, answers, true);
                assert!(
                    (0.1..0.15).contains(&part),
                    "{len}, {per_s}, {answers}, {sources}: {part}"
                );
            }
        }
    }
}

#[test]
fn strangers_pass_at_once_where_nobody_uses_tcp_and_where_they_are_few() {
    let (_, passed, dropped) = flood(4, 108, 100, false, false);
    assert_eq!((passed, dropped), (6_000, 0));
    let (_, passed, dropped) = flood(1, 28, 2, true, true);
    assert_eq!((passed, dropped), (120, 0));
}

/// What waited while its flow was a stranger's goes before what comes when it is known.
#[test]
fn a_flow_that_becomes_known_keeps_its_order() {
    let config = Config {
        strangers_max: Config::STRANGERS_MAX,
        ..admission(1)
    };
    let mut followed = Followed::new(config);
    open(&mut followed, 2, 0);
    for n in 0..50 {
        let data = segment(false, 1, [n * 400, 0], Flags::ACK, 400);
        let _ = followed.offer(1, false, &data);
    }
    assert!(followed.router.held() > 40);
    open(&mut followed, 1, 0);
    assert_eq!(followed.router.held(), 0);
    let data = segment(false, 1, [50 * 400, 0], Flags::ACK, 400);
    assert_eq!(followed.offer(1, false, &data), Decision::Pass);
}

/// What a link needs to work never waits, and is nothing that passes the router.
#[test]
fn what_is_for_the_link_alone_passes() {
    let mut followed = Followed::new(queueing(admission(1)));
    open(&mut followed, 1, 0);
    for n in 0..1_000_u16 {
        let _ = followed.offer(7, false, &of_stranger(false, 1, 7, 1_008));
        let packets = followed.router.counters().packets;
        let mut local = of_stranger(false, 1, 3, 64);
        local.0[8..24].copy_from_slice(&Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n).octets());
        assert_eq!(followed.offer(100 + n, false, &local), Decision::Pass);
        // A solicitation between global addresses; a router has forwarded the other one.
        for (hop_limit, is_waiting) in [(255, false), (254, true)] {
            let mut solicits = of_stranger(false, 1, 7, 64);
            [solicits.0[6], solicits.0[7]] = [58, hop_limit];
            solicits.0[40] = 135;
            let decision = followed.offer(if is_waiting { 7 } else { 2_000 }, false, &solicits);
            assert_eq!(decision == Decision::Hold, is_waiting, "{n}");
        }
        assert_eq!(followed.router.counters().packets, packets + 1);
    }
    assert!(followed.router.counters().dropped > 0);
}

/// The first window of a download once waited with the strangers, and was dropped with them.
#[test]
fn a_handshake_makes_a_flow_known() {
    let mut followed = Followed::new(queueing(Config::new(Policy::None)));
    open(&mut followed, 1, 0);
    for n in 0..100 {
        let _ = followed.offer(7, false, &of_stranger(false, n, 7, 108));
    }
    let syn = segment(false, 3, [100, 0], Flags::SYN, 0);
    while followed.offer(3, false, &syn) == Decision::Hold {
        followed.settle(Duration::from_secs(60));
    }
    let answer = segment(true, 3, [500, 101], Flags::SYN | Flags::ACK, 0);
    assert_eq!(followed.offer(3, true, &answer), Decision::Pass);
    // Whoever has not seen that is a stranger still.
    let data = |n: u32, ack| segment(false, 3, [101 + n * 400, ack], Flags::ACK, 400);
    let blind: Vec<Decision> = (0..20)
        .map(|n| followed.offer(3, false, &data(n, 77)))
        .collect();
    assert!(blind.contains(&Decision::Hold), "{blind:?}");
    // What waits of it goes first.
    let _ = followed.offer(3, false, &data(0, 501));
    for n in 1..10 {
        assert_eq!(followed.offer(3, false, &data(n, 501)), Decision::Pass);
    }
    assert_eq!(followed.router.counters().flows, 2);
}

/// What a mote has asked for comes beside any flood; what nobody asked for waits.
#[test]
fn an_answer_to_a_mote_passes_at_once() {
    let mut followed = Followed::new(queueing(Config::new(Policy::None)));
    open(&mut followed, 1, 0);
    for _ in 0..50 {
        let _ = followed.offer(7, false, &of_stranger(false, 1, 7, 1_008));
    }
    for _ in 0..3 {
        assert_eq!(
            followed.offer(4, true, &of_stranger(true, 2, 4, 40)),
            Decision::Pass
        );
        for n in 0..4 {
            // An acknowledgment, a response in two parts, and nothing more.
            let passes = followed.offer(4, false, &of_stranger(false, 2, 4, 40)) == Decision::Pass;
            assert_eq!(passes, n < 3, "{n}");
        }
        followed.settle(Duration::from_secs(60));
        open(&mut followed, 1, 0);
        let _ = followed.offer(7, false, &of_stranger(false, 1, 7, 1_008));
        let _ = followed.offer(7, false, &of_stranger(false, 1, 7, 1_008));
        // It is answered what it was let in: nothing is asked by that.
        let _ = followed.offer(4, true, &of_stranger(true, 2, 4, 40));
        assert_eq!(
            followed.offer(4, false, &of_stranger(false, 2, 4, 40)),
            Decision::Hold
        );
        followed.now += Duration::from_secs(61);
        followed.drain();
        followed.settle(Duration::from_secs(60));
        open(&mut followed, 1, 0);
        let _ = followed.offer(7, false, &of_stranger(false, 1, 7, 1_008));
        let _ = followed.offer(7, false, &of_stranger(false, 1, 7, 1_008));
    }
}

/// A flood while nobody used TCP once kept all other strangers out for minutes after somebody did; and a
/// mote that tells an observer something each second once used up what all strangers have.
#[test]
fn what_strangers_had_before_or_motes_say_by_themselves_is_not_charged() {
    for observes in [false, true] {
        let mut followed = Followed::new(queueing(Config::new(Policy::None)));
        if observes {
            open(&mut followed, 1, 0);
            let _ = followed.offer(4, false, &of_stranger(false, 2, 4, 40));
        }
        for n in 0..600 {
            let (up, mote, host) = match observes {
                true => (true, 4, 2),
                false => (false, 7, 1),
            };
            let _ = followed.offer(mote, up, &of_stranger(up, host, mote, 1_008));
            followed.now += Duration::from_millis(if observes { 1_000 } else { 100 });
            if observes && n % 10 == 0 {
                open(&mut followed, 1, 100 * (n + 1));
            }
            followed.drain();
        }
        open(&mut followed, 1, 100_000);
        let other = followed.offer(5, false, &of_stranger(false, 3, 5, 40));
        assert_eq!(other, Decision::Pass, "observes: {observes}");
    }
}

/// SYNs to a mesh that uses no TCP once gave all other strangers an eighth of the time.
#[test]
fn strangers_of_tcp_alone_bring_no_limit() {
    let mut followed = Followed::new(queueing(Config::new(Policy::None)));
    for n in 0..200_u16 {
        let syn = segment(false, n % 20, [0, 0], Flags::SYN, 0);
        assert_eq!(followed.offer(n % 20, false, &syn), Decision::Pass);
        let datagram = of_stranger(false, 1, 30, 1_008);
        assert_eq!(followed.offer(30, false, &datagram), Decision::Pass);
    }
}

/// What a mote has reset its host cannot keep known.
#[test]
fn a_host_keeps_no_flow_that_its_mote_has_reset() {
    let mut followed = Followed::new(Config::new(Policy::None));
    open(&mut followed, 1, 0);
    let reset = segment(true, 1, [100, 0], Flags::RST | Flags::ACK, 0);
    let _ = followed.offer(1, true, &reset);
    for n in 0..120 {
        followed.now += Duration::from_secs(1);
        let data = segment(false, 1, [n * 100, 100], Flags::ACK, 100);
        let _ = followed.offer(1, false, &data);
    }
    let now = followed.now;
    assert!(followed.router.status(now).flows.is_empty());
}

/// Nobody wants what has waited for long.
#[test]
fn strangers_wait_for_five_seconds_at_most() {
    let mut router = Router::new(queueing(Config::new(Policy::None)));
    let mut now = Instant::ORIGIN + Duration::from_secs(1_000);
    let offer = |router: &mut Router, up, id, (headers, len): &(Vec<u8>, usize), now| {
        let direction = if up { Direction::Up } else { Direction::Down };
        let id = PacketId(id);
        let len = *len;
        router.on_packet(
            &Packet {
                id,
                direction,
                headers,
                len,
            },
            now,
        )
    };
    let known = segment(true, 1, [0, 0], Flags::ACK, 100);
    assert_eq!(offer(&mut router, true, 1_000, &known, now), Decision::Pass);
    for id in 0..40 {
        let _ = offer(
            &mut router,
            false,
            id,
            &of_stranger(false, 1, 3, 1_008),
            now,
        );
    }
    let [passed, dropped] = settle_strangers(&mut router, &mut now, Duration::from_secs(5));
    assert!(
        passed.len() >= 3 && passed.len() + dropped.len() == 39,
        "{passed:?}, {dropped:?}"
    );
    assert_eq!(router.held(), 0);
}

fn queueing(config: Config) -> Config {
    Config {
        strangers_max: Config::STRANGERS_MAX,
        ..config
    }
}
