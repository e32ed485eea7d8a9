//! SYN-RECEIVED: every kind of segment against the checks of RFC 9293 §3.10.7.4, written down here
//! a second time: for an entry of the half-open table, for one whose handshake is done, for a
//! simultaneous open, and for a SYN cookie.

use super::super::State;
use super::*;

/// The ways in which SYN-RECEIVED is represented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// An entry of the half-open table.
    HalfOpen,
    /// The same, its SYN-ACK acknowledged: ESTABLISHED, and not accepted yet.
    Done,
    /// A connection after a simultaneous open (RFC 9293 §3.5).
    Crossed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Silence,
    Ack,
    SynAck,
    Reset,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    Waits,
    IsGone,
    Establishes,
}

/// The window promised; RCV.NXT is 1, SND.NXT too.
const WINDOW: u32 = 8000;

/// RFC 9293 §3.10.7.4, table 6, for a window that is open.
fn is_acceptable(seq: u32, len: u32) -> bool {
    let is_within = |octet: u32| octet.wrapping_sub(1) < WINDOW;
    is_within(seq) || len > 0 && is_within(seq.wrapping_add(len - 1))
}

/// What RFC 9293 §3.10.7.4 has done about a segment, check by check.
fn by_rfc_9293(place: Place, segment: &Say) -> (Answer, Then) {
    let has = |flag| segment.flags.contains(flag);
    let len = segment.payload.len() as u32 + u32::from(has(SYN)) + u32::from(has(FIN));
    let starts_with_syn = has(SYN) && segment.seq == 0 && !has(RST);
    match place {
        // The SYN again: all stacks send the SYN-ACK again at once.
        Place::HalfOpen if starts_with_syn && !has(ACK) => return (Answer::SynAck, Then::Waits),
        // The SYN-ACK of a simultaneous open starts with the SYN that is known.
        Place::Crossed if starts_with_syn && has(ACK) => {
            return match segment.ack {
                1 => (Answer::Silence, Then::Establishes),
                _ => (Answer::Reset, Then::Waits),
            };
        }
        _ => {}
    }
    // First, the sequence number.
    if !is_acceptable(segment.seq, len) {
        let answer = match has(RST) {
            true => Answer::Silence,
            false => Answer::Ack,
        };
        return (answer, Then::Waits);
    }
    // Second, the reset.
    if has(RST) {
        return match segment.seq {
            1 => (Answer::Silence, Then::IsGone),
            _ => (Answer::Ack, Then::Waits),
        };
    }
    // Fourth, the SYN.
    if has(SYN) {
        return match place {
            Place::HalfOpen => (Answer::Silence, Then::IsGone),
            Place::Done | Place::Crossed => (Answer::Ack, Then::Waits),
        };
    }
    // Fifth, the acknowledgment.
    match (has(ACK), segment.ack) {
        (false, _) => (Answer::Silence, Then::Waits),
        (true, 1) => (Answer::Silence, Then::Establishes),
        (true, _) if place == Place::Done => (Answer::Ack, Then::Waits),
        (true, _) => (Answer::Reset, Then::Waits),
    }
}

fn segments() -> Vec<Say> {
    let mut all = Vec::new();
    let numbers = [
        (-100_000_i32) as u32,
        u32::MAX,
        0,
        1,
        2,
        4000,
        WINDOW,
        WINDOW + 1,
        100_000,
        1 << 31,
        (1 << 31) + 1,
    ];
    let flags = [
        Flags::EMPTY,
        ACK,
        SYN,
        SYN | ACK,
        FIN,
        FIN | ACK,
        RST,
        RST | ACK,
        Flags::PSH | ACK,
    ];
    for seq in numbers {
        for flags in flags {
            for ack in [0, 1, 2, 5000] {
                if ack > 0 && !flags.contains(ACK) {
                    continue;
                }
                for len in [0, 1, 100] {
                    all.push(say(flags, seq, ack).data(&pattern(0, len)));
                }
            }
        }
    }
    all
}

fn in_place(place: Place) -> Script {
    if place == Place::Crossed {
        let (mut s, _) = Script::connecting(PLAIN);
        s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
        s.expect(SYN | ACK, 0, 1, 0);
        return s;
    }
    let mut s = Script::half_open(PLAIN, say(SYN, 0, 0).mss(1000));
    if place == Place::Done {
        s.peer(say(ACK, 1, 1)).unwrap();
    }
    s
}

/// What became of the handshake under test.
fn outcome(s: &Script, place: Place) -> Then {
    if place == Place::Crossed {
        return match s.state() {
            State::SynReceived => Then::Waits,
            State::Closed => Then::IsGone,
            _ => Then::Establishes,
        };
    }
    let is_ready = s.tcp.can_accept(s.listener.unwrap());
    match (is_ready, s.tcp.handshakes().count()) {
        (true, _) => Then::Establishes,
        (false, 0) => Then::IsGone,
        (false, _) => Then::Waits,
    }
}

/// Asserts that the answer is `wanted`, and nothing follows.
fn check_answer(s: &mut Script, wanted: Answer, what: &str) {
    let answer = s.poll();
    let got = match &answer {
        None => Answer::Silence,
        Some(seg) if seg.header.flags.contains(RST) => Answer::Reset,
        Some(seg) if seg.header.flags.contains(SYN) => Answer::SynAck,
        Some(_) => Answer::Ack,
    };
    assert_eq!(got, wanted, "{what}");
    if let (Answer::Ack, Some(seg)) = (got, answer) {
        let header = seg.header;
        let at = (
            header.seq.wrapping_sub(s.iss),
            header.ack.wrapping_sub(s.irs),
        );
        assert_eq!(
            (header.flags, at, seg.payload.len()),
            (ACK, (1, 1), 0),
            "{what}"
        );
    }
    assert_eq!(s.poll(), None, "{what}: one answer");
}

#[test]
fn every_segment_meets_the_checks_in_order() {
    let mut unacceptable = 0;
    for place in [Place::HalfOpen, Place::Done, Place::Crossed] {
        for segment in segments() {
            let what = std::format!(
                "{place:?}: flags {:02x}, seq {}, ack {}, {} octets",
                segment.flags.bits(),
                segment.seq as i32,
                segment.ack,
                segment.payload.len()
            );
            let (answer, then) = by_rfc_9293(place, &segment);
            let mut s = in_place(place);
            let result = s.peer(segment);
            unacceptable += u32::from(result == Err(SegmentDrop::OutsideWindow));
            let then = match (place, then) {
                (Place::Done, Then::Waits) => Then::Establishes,
                _ => then,
            };
            assert_eq!(outcome(&s, place), then, "{what}");
            // What text and FIN are answered with is their own matter.
            if (place, then) != (Place::Crossed, Then::Establishes) {
                check_answer(&mut s, answer, &what);
            }
            if (place, then) == (Place::HalfOpen, Then::Waits) {
                s.peer(say(ACK, 1, 1)).unwrap();
                assert_eq!(outcome(&s, place), Then::Establishes, "{what}: afterwards");
            }
        }
    }
    assert!(unacceptable > 1000, "{unacceptable}");
}

/// A cookie names one sequence number: nothing else establishes, and all else meets LISTEN's rules.
#[test]
fn a_cookie_is_answered_by_its_own_number_alone() {
    for segment in segments() {
        let mut s = Script::new();
        s.tcp = engine(1, 0, 1); // no table at all
        let listener = s.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
        s.handle = Some(
            s.tcp
                .accept(listener, buffers(8000, 8000), s.now())
                .unwrap(),
        );
        s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
        let cookie = s.sent().header;
        assert_eq!(cookie.flags, SYN | ACK);
        s.iss = cookie.seq;
        let has = |flag| segment.flags.contains(flag);
        let is_answer = has(ACK) && !has(SYN) && !has(RST) && (segment.seq, segment.ack) == (1, 1);
        let is_refused = has(ACK) && !has(RST) && !is_answer;
        let what = std::format!("{segment:?}");
        let _ = s.peer(segment.clone());
        let is_listening = s.state() == State::Listen;
        assert_eq!(is_listening, !is_answer, "{what}");
        if is_refused {
            check_answer(&mut s, Answer::Reset, &what);
        } else if !is_answer && !has(SYN) {
            check_answer(&mut s, Answer::Silence, &what);
        }
    }
}

/// RFC 5961 §7: three challenge ACKs at most for each SYN-ACK, on each handshake.
#[test]
fn challenges_of_a_handshake_are_limited() {
    let answers = |s: &mut Script| {
        let mut count = 0;
        for _ in 0..20 {
            let result = s.peer(say(ACK, 100_000, 1));
            assert_eq!(result, Err(SegmentDrop::OutsideWindow));
            count += u32::from(s.poll().is_some());
        }
        count
    };
    let mut s = in_place(Place::HalfOpen);
    assert_eq!(answers(&mut s), 3);
    let (again, _) = s.wait_for_segment();
    assert_eq!(again.header.flags, SYN | ACK);
    assert_eq!(answers(&mut s), 3, "for the next SYN-ACK as many");
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(answers(&mut s), 3, "and while it waits for the application");
    let unlimited = Config {
        challenge_interval_ms: 0,
        ..PLAIN
    };
    let mut s = Script::half_open(unlimited, say(SYN, 0, 0));
    assert_eq!(answers(&mut s), 20);
    // Those that wait for a way out are one.
    let mut s = in_place(Place::HalfOpen);
    s.room = false;
    assert_eq!(answers(&mut s), 0);
    s.room = true;
    s.expect(ACK, 1, 1, 0);
    s.silent();
}

/// The whole way of RFC 9293 §3.5.1: the peer has started anew, from the same port.
#[test]
fn a_peer_that_started_anew_gets_in() {
    for place in [Place::HalfOpen, Place::Done] {
        let mut s = in_place(place);
        let anew = say(SYN, 700_000, 0).mss(1000);
        assert_eq!(s.peer(anew.clone()), Err(SegmentDrop::OutsideWindow));
        s.expect(ACK, 1, 1, 0);
        // To a socket in SYN-SENT that ACK is of something else.
        assert_eq!(s.peer(say(RST, 1, 0)), Err(SegmentDrop::ConnectionReset));
        s.peer(anew).unwrap();
        let syn_ack = s.sent().header;
        assert_eq!(syn_ack.flags, SYN | ACK);
        assert_eq!(syn_ack.ack, s.irs.wrapping_add(700_001));
    }
}

const STAMPED: Config = Config {
    timestamps: true,
    ..PLAIN
};

/// PAWS and missing timestamps (RFC 7323 §5.3, §3.2).
#[test]
fn timestamps_are_checked_before_a_handshake_ends() {
    let mut s = Script::half_open(STAMPED, say(SYN, 0, 0).ts(1000, 0));
    let listener = s.listener.unwrap();
    assert_eq!(
        s.peer(say(ACK, 1, 1).ts(999, 1)),
        Err(SegmentDrop::OldTimestamp)
    );
    let challenge = s.expect(ACK, 1, 1, 0);
    assert_eq!(challenge.header.options.timestamps.unwrap().1, 1000);
    assert_eq!(s.peer(say(ACK, 1, 1)), Err(SegmentDrop::NoTimestamp));
    s.silent();
    assert!(!s.tcp.can_accept(listener));
    // A reset needs none (RFC 7323 §5.2).
    assert_eq!(s.peer(say(RST, 2, 0)), Err(SegmentDrop::InexactReset));
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).ts(1000, 1)).unwrap();
    assert!(s.tcp.can_accept(listener));
    // What waits for the application goes on to echo the latest (§4.3).
    s.peer(say(ACK, 1, 1).ts(1500, 1)).unwrap();
    let old = say(ACK, 1, 1).ts(1200, 1);
    assert_eq!(s.peer(old), Err(SegmentDrop::OldTimestamp));
    s.handle = Some(s.tcp.accept(listener, buffers(100, 100), s.now()).unwrap());
    s.silent();
    s.send(10);
    let data = s.expect(ACK, 1, 1, 10);
    assert_eq!(data.header.options.timestamps.unwrap().1, 1500);
}

/// A SYN on a connection with timestamps is challenged though it offers none: its sender may have
/// started anew, with other settings.
#[test]
fn a_syn_without_timestamps_is_challenged() {
    let mut s = Script::half_open(STAMPED, say(SYN, 0, 0).ts(1000, 0));
    assert_eq!(s.peer(say(SYN, 90_000, 0)), Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1, 1, 0);
    let mut s = Script::accepted_with(STAMPED, say(SYN, 0, 0).ts(1000, 0), 100, 100);
    s.peer_ts = None;
    assert_eq!(s.peer(say(SYN, 90_000, 0)), Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1, 1, 0);
}

/// When two SYNs belong to one handshake, only options that both offer are used; the later
/// timestamp is echoed.
#[test]
fn a_syn_that_comes_again_may_take_back_what_it_offered() {
    let config = Config {
        sack: true,
        ecn: true,
        ..STAMPED
    };
    let ecn = SYN | Flags::ECE | Flags::CWR;
    let rich = || say(ecn, 0, 0).mss(1000).sack_permitted().ts(500, 0);
    let poor = || say(SYN, 0, 0).mss(700);
    for (first, second) in [(rich(), poor()), (poor(), rich())] {
        let mut s = Script::half_open(config, first);
        s.peer(second).unwrap();
        let syn_ack = s.expect(SYN | ACK, 0, 1, 0).header;
        assert_eq!(syn_ack.options.timestamps, None);
        assert!(!syn_ack.options.sack_permitted);
        s.peer(say(ACK, 1, 1)).unwrap();
        let listener = s.listener.unwrap();
        s.handle = Some(s.tcp.accept(listener, buffers(3000, 300), s.now()).unwrap());
        let agreed = s.connection().agreed();
        assert!(!agreed.timestamps && !agreed.sack && !agreed.ecn);
        s.send(3000);
        let data = s.sent();
        assert_eq!((data.payload.len(), data.ecn), (700, 0));
    }
    let mut s = Script::half_open(config, rich());
    s.peer(rich().ts(900, 0)).unwrap();
    let flags = SYN | ACK | Flags::ECE;
    let syn_ack = s.expect(flags, 0, 1, 0).header;
    assert_eq!(syn_ack.options.timestamps.unwrap().1, 900);
    // A copy of the first one, late: it is older by PAWS.
    assert_eq!(s.peer(rich()), Err(SegmentDrop::OldTimestamp));
    let ack = s.expect(ACK, 1, 1, 0).header;
    assert_eq!(ack.options.timestamps.unwrap().1, 900);
}

/// The same where both ends opened: the peer's second SYN has neither timestamps nor SACK, and its
/// data, without timestamps, must be taken.
#[test]
fn a_simultaneous_open_may_take_back_what_it_offered() {
    let config = Config {
        sack: true,
        ..STAMPED
    };
    let (mut s, _) = Script::connecting(config);
    s.peer(say(SYN, 0, 0).mss(1000).sack_permitted().ts(500, 0))
        .unwrap();
    s.expect(SYN | ACK, 0, 1, 0);
    let later = say(SYN, 0, 0).mss(1000).sack_permitted().ts(800, 0);
    assert_eq!(s.peer(later), Err(SegmentDrop::OutsideWindow));
    let ack = s.expect(ACK, 1, 1, 0).header;
    assert_eq!(
        ack.options.timestamps.unwrap().1,
        800,
        "the later is echoed"
    );
    s.now_us += 600_000;
    let again = s.peer(say(SYN, 0, 0).mss(1000));
    assert_eq!(again, Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(b"taken")).unwrap();
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.recv(), b"taken");
    let agreed = s.connection().agreed();
    assert!(!agreed.timestamps && !agreed.sack);
}
