//! Everything a stranger, or a hostile peer, can send: counted, answered as the RFCs say,
//! never a panic, memory bounded, and the connection in progress goes on.

use super::super::{Config, State, TcpCounters};
use super::*;
use crate::wire::tcp::is_checksum_valid;
use proptest::prelude::*;

const FULL: Config = Config {
    timestamps: true,
    sack: true,
    ecn: true,
    ..PLAIN
};

/// Still the same connection, and data flow both ways.
fn goes_on(s: &mut Script, name: &str) {
    assert_eq!(s.state(), State::Established, "{name}");
    while s.poll().is_some() {}
    let next = s.connection().rcv_nxt.get().wrapping_sub(s.irs);
    let una = s.connection().snd_nxt.get().wrapping_sub(s.iss);
    s.recv();
    if let Some(ts) = s.peer_ts.as_mut() {
        *ts = ts.wrapping_add(10);
    }
    s.peer(say(ACK, next, una).data(b"on")).unwrap();
    assert!(s.recv().ends_with(b"on"), "{name}");
}

#[test]
fn hostile_fields_each() {
    let cases: [(&str, Say, SegmentDrop); 15] = [
        ("no flags", say(Flags::EMPTY, 1, 1), SegmentDrop::NoAck),
        ("SYN in window", say(SYN, 100, 0), SegmentDrop::SynInWindow),
        ("SYN at RCV.NXT", say(SYN, 1, 0), SegmentDrop::SynInWindow),
        (
            "SYN FIN RST",
            say(SYN | FIN | RST, 5, 0),
            SegmentDrop::InexactReset,
        ),
        ("RST in window", say(RST, 100, 0), SegmentDrop::InexactReset),
        (
            "RST before the window",
            say(RST, 0, 0),
            SegmentDrop::OutsideWindow,
        ),
        (
            "ACK of unsent data",
            say(ACK, 1, 2),
            SegmentDrop::AckOfUnsent,
        ),
        (
            "ACK far ahead",
            say(ACK, 1, 1 << 30),
            SegmentDrop::AckOfUnsent,
        ),
        (
            "ACK far behind",
            say(ACK, 1, 1u32.wrapping_sub(100_000)),
            SegmentDrop::AckTooOld,
        ),
        (
            "data before the window",
            say(ACK, 0u32.wrapping_sub(50), 1).data(&[1; 20]),
            SegmentDrop::OutsideWindow,
        ),
        (
            "data behind the window",
            say(ACK, 20_000, 1).data(&[1; 20]),
            SegmentDrop::OutsideWindow,
        ),
        (
            "half the space away",
            say(ACK, 1 << 31, 1).data(&[1; 20]),
            SegmentDrop::OutsideWindow,
        ),
        (
            "FIN behind the window",
            say(FIN | ACK, 30_000, 1),
            SegmentDrop::OutsideWindow,
        ),
        (
            "an older timestamp",
            say(ACK, 1, 1).data(b"x").ts(99, 0),
            SegmentDrop::OldTimestamp,
        ),
        (
            "data without ACK",
            say(Flags::PSH, 1, 1).data(b"x"),
            SegmentDrop::NoAck,
        ),
    ];
    for (name, segment, reason) in cases {
        let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
        assert_eq!(s.peer(segment), Err(reason), "{name}");
        assert_eq!(s.tcp.counters().dropped(reason), 1, "{name}");
        goes_on(&mut s, name);
    }
}

#[test]
fn a_segment_without_the_agreed_timestamp_is_dropped() {
    let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
    let stamp = s.peer_ts.take();
    assert_eq!(
        s.peer(say(ACK, 1, 1).data(b"x")),
        Err(SegmentDrop::NoTimestamp)
    );
    s.peer_ts = stamp;
    goes_on(&mut s, "no timestamp");
}

/// RFC 7323 §5.5: after 24 days, TS.Recent no longer counts.
#[test]
fn paws_forgets_after_24_days() {
    let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
    s.now_us += 23 * 24 * 3600 * 1_000_000;
    assert_eq!(
        s.peer(say(ACK, 1, 1).data(b"x").ts(99, 0)),
        Err(SegmentDrop::OldTimestamp)
    );
    s.now_us += 2 * 24 * 3600 * 1_000_000;
    s.peer(say(ACK, 1, 1).data(b"x").ts(99, 0)).unwrap();
}

#[test]
fn paws_forgets_however_often_the_clock_wrapped() {
    for days in [25, 40, 49, 50, 75, 99, 100, 1_000] {
        let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
        s.now_us += days * 24 * 3600 * 1_000_000;
        let answer = s.peer(say(ACK, 1, 1).data(b"x").ts(99, 0));
        assert_eq!(answer, Ok(()), "after {days} days");
    }
}

#[test]
fn a_timestamp_from_the_future_poisons_nothing_for_good() {
    let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
    // An echo from our future is no RTT sample.
    s.send(10);
    s.sent();
    let future = s.our_ts.wrapping_add(1_000_000);
    s.peer(say(ACK, 1, 11).ts(101, future)).unwrap();
    assert!(s.connection().telemetry().rto_ms < 2_000);
}

#[test]
fn sack_blocks_of_every_kind_of_nonsense() {
    let blocks: [(&str, &[(u32, u32)]); 8] = [
        ("empty", &[(1001, 1001)]),
        ("backwards", &[(3001, 2001)]),
        ("beyond what was sent", &[(2001, 90_001)]),
        ("half the space", &[(1001, 1001 + (1 << 31))]),
        ("all of it", &[(1, 0)]),
        ("before the window", &[(0u32.wrapping_sub(500), 0)]),
        (
            "one octet each",
            &[(1501, 1502), (1503, 1504), (1505, 1506)],
        ),
        ("overlapping", &[(1001, 3001), (2001, 3501), (1501, 2501)]),
    ];
    for (name, blocks) in blocks {
        for rack in [true, false] {
            let config = Config {
                rack,
                initial_window: 4,
                timestamps: false,
                ecn: false,
                ..FULL
            };
            let syn = say(SYN, 0, 0).mss(1000).sack_permitted();
            let mut s = Script::accepted_with(config, syn, 8000, 8000);
            s.send(4000);
            while s.poll().is_some() {}
            for _ in 0..50 {
                let segment = say(ACK, 1, 1).sack(&s, blocks);
                s.peer(segment).unwrap();
                while s.poll().is_some() {}
            }
            s.now_us += 50_000;
            let end = s.connection().snd_nxt.get().wrapping_sub(s.iss);
            s.peer(say(ACK, 1, end)).unwrap();
            goes_on(&mut s, name);
        }
    }
}

#[test]
fn overlapping_retransmissions_with_other_bytes_change_nothing_delivered() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(b"abcdef")).unwrap();
    assert_eq!(s.recv(), b"abcdef");
    s.peer(say(ACK, 1, 1).data(b"XXXXXXghi")).unwrap();
    assert_eq!(s.recv(), b"ghi");
    s.peer(say(ACK, 12, 1).data(b"no")).unwrap();
    s.peer(say(ACK, 10, 1).data(b"jkLM")).unwrap();
    // What nobody has read yet may be replaced, octet for octet.
    assert_eq!(s.recv(), b"jkLM");
}

#[test]
fn a_stranger_with_a_timestamp_far_ahead_shuts_nobody_out() {
    let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
    let far = 100 + i32::MAX as u32;
    let forged = [
        (say(SYN, 1, 0), SegmentDrop::SynInWindow),
        (say(ACK, 1, 90_000).data(b"x"), SegmentDrop::AckOfUnsent),
    ];
    for (forged, reason) in forged {
        assert_eq!(s.peer(forged.ts(far, 0)), Err(reason));
        while s.poll().is_some() {}
    }
    s.peer(say(ACK, 1, 1).data(b"true").ts(101, 0)).unwrap();
    assert_eq!(s.recv(), b"true");
}

#[test]
fn ends_that_disagree_on_the_time_do_not_answer_each_other_for_ever() {
    let mut s = Script::accepted_with(FULL, say(SYN, 0, 0).mss(1000).ts(100, 0), 8000, 8000);
    let mut answers = 0;
    for _ in 0..1000 {
        assert_eq!(
            s.peer(say(ACK, 1, 1).ts(99, 0)),
            Err(SegmentDrop::OldTimestamp)
        );
        answers += u32::from(s.poll().is_some());
        s.now_us += 1_000;
    }
    assert_eq!(answers, 2, "one per 500 ms (RFC 5961 §7)");
    for wait_ms in [70_000, 1 << 16, 140_000, 1 << 17] {
        s.now_us += wait_ms * 1_000;
        let _ = s.peer(say(SYN, 1, 0));
        assert!(s.poll().is_some(), "{wait_ms} ms after the last one");
    }
}

/// A SYN of the n-th stranger.
fn strange_syn(n: u32) -> (Ipv6Addr, Vec<u8>) {
    let src = Ipv6Addr::from(0xfd00_0000_0000_0000_0000_0000_0001_0000 + u128::from(n));
    let header = Header {
        src_port: 1024,
        dst_port: PORT,
        seq: n,
        flags: SYN,
        options: Options {
            mss: Some(1220),
            ..Options::NONE
        },
        ..Header::default()
    };
    let seg = Seg {
        header,
        payload: Vec::new(),
        ecn: 0,
    };
    let bytes = seg.bytes(&src, &US);
    (src, bytes)
}

#[test]
fn strangers_without_a_way_back_do_not_silence_a_listener() {
    let mut s = Script::accepted(PLAIN);
    let mut out = [0; 2000];
    // More than half-open entries and places for replies.
    for n in 0..10 {
        let (src, syn) = strange_syn(n);
        let _ = s.tcp.on_segment(&incoming(src, US, 0, &syn), s.now());
        assert!(s.tcp.poll_segment(s.now(), |_| false, &mut out).is_none());
    }
    let (src, syn) = strange_syn(77);
    let _ = s.tcp.on_segment(&incoming(src, US, 0, &syn), s.now());
    let answer = s.tcp.poll_segment(s.now(), |to| to.remote == src, &mut out);
    assert_eq!(answer.map(|sent| sent.dst), Some(src), "a cookie goes out");
    // The entries come free by themselves.
    for _ in 0..100 {
        if let Some(at) = s.tcp.next_deadline() {
            s.now_us = s.now_us.max(at.as_micros());
        }
        assert!(s.tcp.poll_segment(s.now(), |_| false, &mut out).is_none());
    }
    assert_eq!(s.tcp.next_deadline(), None);
}

#[test]
fn a_flood_leaves_connections_every_second_segment() {
    let mut s = Script::accepted(PLAIN);
    s.send(4000);
    let mut out = [0; 2000];
    let mut data = 0;
    for n in 0..8 {
        let (src, syn) = strange_syn(n);
        let _ = s.tcp.on_segment(&incoming(src, US, 0, &syn), s.now());
        let sent = s.tcp.poll_segment(s.now(), |_| true, &mut out);
        data += u32::from(sent.is_some_and(|sent| sent.dst == PEER));
    }
    assert!(data >= 2, "{data}: the initial window at least");
}

#[test]
fn challenge_acks_are_limited() {
    let mut s = Script::accepted(PLAIN);
    let mut answers = 0;
    for _ in 0..1000 {
        let _ = s.peer(say(SYN, 1, 0));
        let _ = s.peer(say(RST, 3, 0));
        let _ = s.peer(say(ACK, 1, 5000));
        answers += u32::from(s.poll().is_some());
        s.now_us += 1_000;
    }
    assert_eq!(answers, 2, "one per 500 ms (RFC 5961 §7)");
}

#[test]
fn a_window_of_zero_for_ever_costs_a_probe_a_minute() {
    let mut s = Script::accepted(PLAIN);
    s.send(4000);
    while s.poll().is_some() {}
    s.peer(say(ACK, 1, 4001).win(0)).unwrap();
    s.send(5000);
    let (mut probes, end) = (0, s.now_us + 24 * 3600 * 1_000_000);
    while s.now_us < end {
        s.wait_for_segment();
        probes += 1;
        s.peer(say(ACK, 1, 4001).win(0)).unwrap();
    }
    assert!((1440..1460).contains(&probes), "{probes} in a day");
    assert_eq!(s.state(), State::Established);
}

/// 100,000 SYNs from 100,000 addresses: the table holds what it holds, cookies answer the
/// rest, a stranger who answers a cookie gets in, and the connection in progress goes on.
#[test]
fn a_syn_flood() {
    let mut s = Script::accepted(PLAIN);
    let listener = s.listener.unwrap();
    let mut out = [0; 2000];
    let mut cookie = None;
    for n in 0..100_000u32 {
        let (src, syn) = strange_syn(n);
        let now = s.now();
        s.tcp.on_segment(&incoming(src, US, 0, &syn), now).unwrap();
        if n % 2 == 0 {
            continue; // two SYNs at once: the one place for replies is taken
        }
        while let Some(sent) = s.tcp.poll_segment(now, |_| true, &mut out) {
            assert!(is_checksum_valid(&sent.src, &sent.dst, &out[..sent.len]));
            let (header, _) = Header::parse(&out[..sent.len]).unwrap();
            assert_eq!(header.flags, SYN | ACK);
            cookie = Some((sent.dst, header));
        }
        s.now_us += 10;
    }
    let counters = *s.tcp.counters();
    assert!(counters.syn_cookies > 10_000);
    assert!(counters.replies_lost > 10_000);
    assert!(!s.tcp.can_accept(listener), "nobody has proven to exist");
    // The last one is real.
    let (src, syn_ack) = cookie.unwrap();
    let reply = Header {
        src_port: 1024,
        dst_port: PORT,
        seq: syn_ack.ack,
        ack: syn_ack.seq.wrapping_add(1),
        flags: ACK,
        window: 5000,
        ..Header::default()
    };
    let now = s.now();
    let answer = |header: Header| {
        Seg {
            header,
            payload: Vec::new(),
            ecn: 0,
        }
        .bytes(&src, &US)
    };
    // Guessing does not do.
    for wrong in [
        Header {
            ack: reply.ack ^ 1,
            ..reply
        },
        Header {
            seq: reply.seq ^ 1,
            ..reply
        },
        Header {
            src_port: 1025,
            ..reply
        },
    ] {
        let result = s.tcp.on_segment(&incoming(src, US, 0, &answer(wrong)), now);
        assert_eq!(result, Err(SegmentDrop::UnacceptableAck));
    }
    s.tcp
        .on_segment(&incoming(src, US, 0, &answer(reply)), now)
        .unwrap();
    assert!(s.tcp.can_accept(listener));
    let handle = s.tcp.accept(listener, buffers(100, 100), now).unwrap();
    let connection = s.tcp.connection(handle).unwrap();
    assert_eq!(connection.state(), State::Established);
    assert_eq!(connection.endpoints().remote, src);
    assert_eq!(
        connection.telemetry().smss_bytes,
        1000,
        "MSS 1220 remembered, ours is 1000"
    );
    while s.tcp.poll_segment(now, |_| true, &mut out).is_some() {}
    goes_on(&mut s, "flood");
}

#[test]
fn cookies_remember_timestamps_and_sack_and_grow_old() {
    let config = Config {
        timestamps: true,
        sack: true,
        accept_window: 500,
        ..PLAIN
    };
    for (wait_s, good) in [(1, true), (60, true), (200, false)] {
        let mut s = Script::new();
        s.tcp = engine(1, 0, 1); // no table at all
        let listener = s.tcp.listen(None, PORT, leak(config)).unwrap();
        s.peer(say(SYN, 0, 0).mss(462).sack_permitted().ts(77, 0))
            .unwrap();
        let syn_ack = s.sent();
        s.iss = syn_ack.header.seq;
        let (ours, echo) = syn_ack.header.options.timestamps.unwrap();
        assert_eq!(echo, 77);
        assert!(syn_ack.header.options.sack_permitted);
        s.now_us += wait_s * 1_000_000;
        // Without a table there is no place for the proven either, unless one waits: so the
        // proof itself is what is tested here.
        let result = s.peer(say(ACK, 1, 1).ts(78, ours));
        let expected = if good {
            SegmentDrop::HalfOpenFull
        } else {
            SegmentDrop::UnacceptableAck
        };
        assert_eq!(result, Err(expected), "after {wait_s} s");
        assert!(!s.tcp.can_accept(listener));
    }
}

#[test]
fn addresses_and_ports_that_cannot_be() {
    let multicast: Ipv6Addr = "ff02::1".parse().unwrap();
    let mut s = Script::accepted(PLAIN);
    let header = |src_port, dst_port| Header {
        src_port,
        dst_port,
        flags: SYN,
        ..Header::default()
    };
    for (src, dst, head) in [
        (multicast, US, header(9, PORT)),
        (PEER, multicast, header(9, PORT)),
        (Ipv6Addr::UNSPECIFIED, US, header(9, PORT)),
        (PEER, US, header(0, PORT)),
        (PEER, US, header(9, 0)),
    ] {
        let bytes = Seg {
            header: head,
            payload: Vec::new(),
            ecn: 0,
        }
        .bytes(&src, &dst);
        let now = s.now();
        assert_eq!(
            s.tcp.on_segment(&incoming(src, dst, 0, &bytes), now),
            Err(SegmentDrop::Address)
        );
        s.silent();
    }
    goes_on(&mut s, "addresses");
}

#[test]
fn damaged_segments() {
    let mut s = Script::accepted(PLAIN);
    let good = s.peer_bytes(&say(ACK, 1, 1).data(b"hello"));
    let now = s.now();
    for byte in 0..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 0x40;
        assert_eq!(
            s.tcp.on_segment(&incoming(PEER, US, 0, &bad), now),
            Err(SegmentDrop::Checksum)
        );
    }
    for len in 0..20 {
        assert!(
            s.tcp
                .on_segment(&incoming(PEER, US, 0, &good[..len]), now)
                .is_err()
        );
    }
    goes_on(&mut s, "damage");
}

#[derive(Clone, Debug)]
enum Step {
    Segment(
        u16,
        i32,
        i32,
        u16,
        usize,
        u8,
        Option<(i32, i32)>,
        Vec<(i32, i32)>,
    ),
    /// What a bulk transfer is made of: the next octets, an ACK of so many quarters of what
    /// is out, the window as before.
    Next(usize, u32),
    Send(usize),
    Recv(usize),
    Wait(u32),
    Poll,
    Shutdown,
}

fn step() -> impl Strategy<Value = Step> {
    let near = prop_oneof![3 => Just(0i32), 4 => -3000i32..6000, 1 => any::<i32>()];
    let pair = (near.clone(), near.clone());
    prop_oneof![
        6 => (
            prop_oneof![
                6 => Just(0x10u16),
                1 => prop::sample::select(&[0x30, 0x50, 0x90, 0xc2, 0xd0, 0xd2, 0x110][..]),
                2 => 0u16..0x200,
            ],
            near.clone(),
            near,
            prop_oneof![3 => 1000u16..9000, 1 => Just(0), 1 => any::<u16>()],
            0usize..700,
            0u8..4,
            prop::option::of(pair.clone()),
            prop::collection::vec(pair, 0..3),
        )
            .prop_map(|(f, s, a, w, l, e, t, b)| Step::Segment(f, s, a, w, l, e, t, b)),
        6 => (prop_oneof![Just(0usize), 1usize..500], 0u32..5).prop_map(|(l, a)| Step::Next(l, a)),
        2 => (0usize..3000).prop_map(Step::Send),
        2 => (0usize..3000).prop_map(Step::Recv),
        2 => (0u32..5000).prop_map(Step::Wait),
        3 => Just(Step::Poll),
        1 => Just(Step::Shutdown),
    ]
}

/// Puts the options of a segment in another order, the last first, with NOPs between.
fn turn_options(bytes: &mut Vec<u8>, urgent: u16) {
    let len = usize::from(bytes[12] >> 4) * 4;
    let (mut rest, mut turned) = (&bytes[20..len], Vec::new());
    while let [kind, tail @ ..] = rest {
        let option_len = match kind {
            0 | 1 => 1,
            _ => usize::from(tail[0]),
        };
        turned.splice(0..0, rest[..option_len].iter().copied());
        rest = &rest[option_len..];
    }
    bytes.splice(20..len, turned);
    bytes[18..20].copy_from_slice(&urgent.to_be_bytes());
    bytes[16..18].fill(0);
    fill_checksum(&PEER, &US, bytes);
}

/// Everything visible, and every field at the end.
#[derive(PartialEq, Debug)]
struct Played {
    sent: Vec<Seg>,
    received: Vec<u8>,
    answers: Vec<Answer>,
    connection: std::string::String,
    counters: TcpCounters,
    deadline: Option<Instant>,
}

/// What a step of the played sequence returned.
#[derive(PartialEq, Debug)]
enum Answer {
    Arrival(Result<(), SegmentDrop>),
    Send(Result<usize, super::super::SendError>),
    Recv(Result<usize, super::super::RecvError>),
}

/// Plays the steps against a connection that the peer opened with `syn`.
fn play(config: Config, syn: Say, steps: &[Step]) -> Played {
    let mut answers = Vec::new();
    let mut s = Script::accepted_with(config, syn, 4000, 4000);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for step in steps {
        let connection = s.connection();
        let (una, nxt) = (connection.snd_una.get(), connection.rcv_nxt.get());
        assert!(
            !connection.snd_una.after(connection.snd_nxt),
            "SND.UNA =< SND.NXT"
        );
        assert!(connection.pipe() <= connection.flight().max(1));
        match step {
            Step::Segment(flags, seq, ack, win, len, ecn, ts, sack) => {
                let flags = Flags::from_bits(*flags);
                let mut segment = say(
                    flags,
                    nxt.wrapping_add_signed(*seq).wrapping_sub(s.irs),
                    una.wrapping_add_signed(*ack).wrapping_sub(s.iss),
                )
                .win(*win)
                .data(&pattern(0, *len));
                segment.ecn = *ecn;
                if let Some((value, echo)) = ts {
                    let our = s.our_ts.wrapping_add_signed(*echo % 100);
                    segment = segment.ts(1000u32.wrapping_add_signed(*value), our);
                }
                for (left, right) in sack {
                    let block = SackBlock {
                        left: una.wrapping_add_signed(*left),
                        right: una.wrapping_add_signed(*right),
                    };
                    segment.options.sack.push(block);
                }
                let ecn = segment.ecn;
                let mut bytes = s.peer_bytes(&segment);
                if win & 1 != 0 {
                    turn_options(&mut bytes, win >> 1);
                }
                let now = s.now();
                answers.push(Answer::Arrival(
                    s.tcp.on_segment(&incoming(PEER, US, ecn, &bytes), now),
                ));
            }
            Step::Next(len, quarters) => {
                let acked = connection.flight() * quarters / 4;
                let win = connection.snd_wnd;
                let segment = say(
                    ACK,
                    nxt.wrapping_sub(s.irs),
                    una.wrapping_add(acked).wrapping_sub(s.iss),
                );
                if let Some(ts) = s.peer_ts.as_mut() {
                    *ts = ts.wrapping_add(1);
                }
                let segment = segment.win(win).data(&pattern(0, *len));
                answers.push(Answer::Arrival(s.peer(segment)));
            }
            Step::Send(len) => {
                let (handle, now) = (s.handle(), s.now());
                answers.push(Answer::Send(s.tcp.send(handle, &pattern(0, *len), now)));
            }
            Step::Recv(len) => {
                let mut out = std::vec![0; *len];
                let handle = s.handle();
                let result = s.tcp.recv(handle, &mut out);
                received.extend(&out[..result.unwrap_or(0)]);
                answers.push(Answer::Recv(result));
            }
            Step::Wait(ms) => s.now_us += u64::from(*ms) * 1000,
            Step::Poll => {
                for _ in 0..50 {
                    let Some(seg) = s.poll() else { break };
                    let end = seg.header.seq.wrapping_add(seg.payload.len() as u32);
                    assert!(
                        s.connection().snd_nxt.get().wrapping_sub(end) as i32 >= 0
                            || seg.payload.is_empty()
                    );
                    sent.push(seg);
                }
                if s.room {
                    assert!(s.poll().is_none() || sent.len() > 40, "it ends");
                }
            }
            Step::Shutdown => s.shutdown(),
        }
    }
    // The one setting that differs must not show, but for its own count.
    let connection = std::format!("{:?}", s.connection());
    let connection = connection.replace("header_prediction: false", "header_prediction: true");
    Played {
        sent,
        received,
        answers,
        connection,
        counters: TcpCounters {
            predicted: 0,
            ..*s.tcp.counters()
        },
        deadline: s.tcp.next_deadline(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    /// No sequence of segments, calls and times panics, storms or breaks an invariant; and
    /// header prediction changes nothing: not a segment, not a byte, not a field.
    #[test]
    fn prediction_equals_the_checks_in_full(steps in prop::collection::vec(step(), 1..60)) {
        let offer = || say(SYN, 0, 0).mss(500).sack_permitted().ts(1000, 0);
        let mut with_ecn = offer();
        with_ecn.flags = SYN | Flags::ECE | Flags::CWR;
        let fast = Config { keepalive_idle_s: 4, ..FULL };
        let plain = Config { sack: false, timestamps: false, rack: false, nagle: true, ..FULL };
        for (config, syn) in [(fast, offer()), (fast, with_ecn), (plain, offer())] {
            let slow = Config { header_prediction: false, ..config };
            prop_assert_eq!(play(config, syn.clone(), &steps), play(slow, syn, &steps));
        }
    }

    /// Any bytes at all, from anybody.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), fix: bool) {
        let mut s = Script::accepted(PLAIN);
        let mut bytes = bytes;
        if fix {
            fill_checksum(&PEER, &US, &mut bytes);
        }
        let now = s.now();
        let _ = s.tcp.on_segment(&incoming(PEER, US, 0, &bytes), now);
        while s.poll().is_some() {}
        goes_on(&mut s, "any bytes");
    }
}
