//! Segment arrival at its edges: where the window ends, what comes again, what handshakes
//! remember; and what leaves in answer.

use super::super::facts::Facts;
use super::super::rtt::RttEstimator;
use super::super::{Config, RetransmissionCause as Cause, State};
use super::loss::{RACK, SACK, offering_sack, sacking};
use super::*;

#[test]
fn a_syn_ack_that_comes_again_is_acknowledged_again() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    s.expect(ACK, 1, 1, 0);
    assert_eq!(
        s.peer(say(SYN | ACK, 0, 1).mss(1000)),
        Err(SegmentDrop::OutsideWindow)
    );
    s.expect(ACK, 1, 1, 0);
}

#[test]
fn the_window_ends_where_it_was_announced_to() {
    let mut s = Script::accepted(PLAIN);
    for (seq, data, taken) in [
        (8001, &b""[..], false),
        (8001, b"x", false),
        (8000, b"", true),
        (8000, b"x", true),
        (8000, b"xyz", true),
    ] {
        let taken_now = s.peer(say(ACK, seq, 1).data(data)).is_ok();
        assert_eq!(taken_now, taken, "{seq} {data:?}");
        s.now_us += 1_000_000;
        while s.poll().is_some() {}
    }
}

/// A shut window takes no text, not even the new part of text that is partly old.
#[test]
fn a_shut_window_takes_only_what_begins_at_it() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(&pattern(0, 8000))).unwrap();
    s.expect(ACK, 1, 8001, 0);
    let overlap = s.peer(say(ACK, 8000, 1).data(b"xy"));
    assert_eq!(overlap, Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1, 8001, 0);
    s.peer(say(ACK, 8001, 1)).unwrap();
    assert_eq!(s.peer(say(RST, 8001, 0)), Err(SegmentDrop::ConnectionReset));
}

#[test]
fn a_fin_behind_a_gap_is_remembered_where_the_window_holds_it() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK | FIN, 101, 1).data(&pattern(100, 100)))
        .unwrap();
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(&pattern(0, 100))).unwrap();
    s.expect(ACK, 1, 202, 0);
    assert_eq!(s.state(), State::CloseWait);

    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK | FIN, 7991, 1).data(&pattern(7990, 20)))
        .unwrap();
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(&pattern(0, 7990))).unwrap();
    s.expect(ACK, 1, 8001, 0);
    assert_eq!(s.state(), State::Established, "it lay beyond");
}

fn blocks(seg: &Seg, irs: u32) -> Vec<(u32, u32)> {
    let relative = |b: &SackBlock| (b.left.wrapping_sub(irs), b.right.wrapping_sub(irs));
    let sack = seg.header.options.sack.as_slice().iter();
    sack.map(relative).collect()
}

#[test]
fn blocks_begin_with_the_latest_and_with_duplicates() {
    let mut s = Script::accepted_with(SACK, offering_sack(), 8000, 8000);
    for (seq, len, expected) in [
        (1001, 100, &[(1001, 1101)][..]),
        (501, 100, &[(501, 601), (1001, 1101)]),
        // In order: the range that grew last stays first.
        (1, 100, &[(501, 601), (1001, 1101)]),
        // Held in part: that part is a duplicate.
        (1051, 100, &[(1051, 1101), (1001, 1151), (501, 601)]),
        (551, 40, &[(551, 591), (501, 601), (1001, 1151)]),
    ] {
        s.peer(say(ACK, seq, 1).data(&pattern(seq as usize - 1, len)))
            .unwrap();
        let ack = s.sent();
        assert_eq!(blocks(&ack, s.irs), expected, "after {seq}");
    }
}

/// Data sent while something is to be reported leave room for the report.
#[test]
fn segments_leave_room_for_their_blocks() {
    let stamped = Config {
        timestamps: true,
        ..RACK
    };
    for (config, syn, len) in [
        (RACK, offering_sack(), 1000 - 4 - 4 * 8),
        (stamped, offering_sack().ts(5, 0), 1000 - 12 - 4 - 3 * 8),
    ] {
        let mut s = Script::accepted_with(config, syn, 8000, 8000);
        s.peer(say(ACK, 501, 1).data(b"behind a gap")).unwrap();
        s.send(3000);
        assert_eq!(s.sent().payload.len(), len);
    }
}

/// RFC 6675 §4 `NextSeg` rule 3: when nothing is lost and nothing new is there, what is in
/// doubt goes again.
#[test]
fn what_is_in_doubt_goes_when_nothing_better_does() {
    let config = Config {
        initial_window: 10,
        ..SACK
    };
    let mut s = Script::accepted_with(config, offering_sack(), 30_000, 8000);
    s.send(8000);
    while s.poll().is_some() {}
    s.now_us += 100_000;
    let mut again = Vec::new();
    let held = [(3001, 6001), (7001, 8001)];
    for (ack, held) in [
        (1, &held[..]),
        (1001, &held),
        (2001, &held),
        (6001, &held[1..]),
    ] {
        sacking(&mut s, ack, held);
        while let Some(seg) = s.poll() {
            again.push(seg.header.seq.wrapping_sub(s.iss));
        }
    }
    assert_eq!(
        again,
        [1, 1001, 2001, 6001],
        "three holes, then what is in doubt"
    );
    assert_eq!(s.tcp.counters().retransmitted(Cause::Sack), 4);
}

#[test]
fn ecn_needs_the_wish_and_a_first_syn() {
    let ece = Flags::ECE;
    for (ecn, resent, agreed) in [
        (true, false, true),
        (true, true, false),
        (false, false, false),
        (false, true, false),
    ] {
        let (mut s, _) = Script::connecting(Config { ecn, ..PLAIN });
        if resent {
            s.wait_for_segment();
        }
        s.peer(say(SYN | ACK | ece, 0, 1).mss(1000)).unwrap();
        assert_eq!(
            s.connection().facts.has(Facts::ECN),
            agreed,
            "{ecn} {resent}"
        );
    }
}

/// A cookie says SACK in the timestamp's lowest bit, whatever the clock says.
#[test]
fn a_cookie_remembers_sack_where_there_are_timestamps() {
    for (sack, stamps) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut clocks = Vec::new();
        for ms in 0..4 {
            let mut s = full_listener();
            s.now_us += ms * 1000;
            let mut syn = say(SYN, 0, 0).mss(1000);
            syn.options.sack_permitted = sack;
            if stamps {
                syn = syn.ts(77, 0);
            }
            let _ = s.peer(syn);
            let options = s.sent().header.options;
            assert_eq!(options.sack_permitted, sack && stamps, "{sack} {stamps}");
            clocks.extend(options.timestamps.map(|(ours, _)| ours));
        }
        assert_eq!(clocks.is_empty(), !stamps);
        assert!(clocks.iter().all(|clock| (clock & 1 == 1) == sack));
        let later = clocks
            .windows(2)
            .all(|pair| pair[1].wrapping_sub(pair[0]) <= 2);
        assert!(
            later && clocks.first() != clocks.last() || !stamps,
            "a clock"
        );
    }
}

/// A listener, while another peer's handshake fills the table.
fn full_listener() -> Script {
    full_listener_with(Config {
        sack: true,
        timestamps: true,
        ..PLAIN
    })
}

fn full_listener_with(config: Config) -> Script {
    let mut s = Script::new();
    s.tcp = engine(2, 1, 1);
    s.listener = Some(s.tcp.listen(None, PORT, leak(config)).unwrap());
    let mut other = s.peer_bytes(&say(SYN, 900, 0));
    other[..2].copy_from_slice(&9u16.to_be_bytes());
    fill_checksum(&PEER, &US, &mut other);
    s.tcp
        .on_segment(&incoming(PEER, US, 0, &other), s.now())
        .unwrap();
    s.sent();
    s
}

/// Neither the MSS nor the period of a cookie, nor the peer's number, can be changed.
#[test]
fn a_forged_cookie_is_reset() {
    let cookie = |s: &mut Script| {
        let _ = s.peer(say(SYN, 0, 0).mss(1000));
        s.iss = s.sent().header.seq;
        assert_eq!(s.tcp.counters().syn_cookies, 1);
    };
    for (bit, seq) in [(24, 1), (25, 1), (26, 1), (0, 1), (23, 1), (27, 1), (32, 2)] {
        let mut s = full_listener();
        cookie(&mut s);
        s.iss ^= 1u32.checked_shl(bit).unwrap_or(0);
        let answer = s.peer(say(ACK, seq, 1));
        assert_eq!(
            answer,
            Err(SegmentDrop::UnacceptableAck),
            "bit {bit}, seq {seq}"
        );
    }
    // It tells no round trip; neither do timestamps that were declined.
    let mut s = full_listener_with(PLAIN);
    cookie(&mut s);
    s.peer(say(ACK, 1, 1).ts(2_000, 0)).unwrap();
    let (lent, now) = (buffers(8000, 8000), s.now());
    s.handle = Some(s.tcp.accept(s.listener.unwrap(), lent, now).unwrap());
    assert_eq!(s.connection().telemetry().rto_ms, 1000);
}

/// A number that would do as a cookie is none unless one was sent, and not long ago.
#[test]
fn a_cookie_is_believed_only_while_one_may_be_under_way() {
    const GOOD_FOR_S: u64 = 131; // two periods of 2^16 ms
    // The twin has the same key and no room: its cookies are those that we would send.
    let cookie_at = |now_us| {
        let mut twin = Script::new();
        twin.tcp = engine(1, 0, 1);
        twin.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
        twin.now_us = now_us;
        twin.peer(say(SYN, 0, 0).mss(1000)).unwrap();
        twin.sent().header.seq
    };
    let mut s = Script::new();
    s.tcp = engine(1, 2, 1);
    s.listener = Some(s.tcp.listen(None, PORT, leak(PLAIN)).unwrap());
    s.iss = cookie_at(s.now_us);
    assert_eq!(s.peer(say(ACK, 1, 1)), Err(SegmentDrop::UnacceptableAck));
    s.expect(RST, 1, 0, 0);

    for (later_s, is_good) in [(0, true), (GOOD_FOR_S, true), (GOOD_FOR_S + 1, false)] {
        let mut s = full_listener();
        let _ = s.peer(say(SYN, 0, 0).mss(1000));
        let sent = s.sent().header.seq;
        assert_eq!(sent, cookie_at(s.now_us), "twins agree");
        s.now_us += later_s * 1_000_000;
        s.iss = cookie_at(s.now_us);
        let answer = s.peer(say(ACK, 1, 1));
        assert_eq!(answer.is_ok(), is_good, "{later_s} s: {answer:?}");
    }
}

#[test]
fn a_cookies_answer_agrees_upon_what_the_cookie_offered() {
    for (sack, stamps) in [(true, true), (false, true), (true, false)] {
        let mut s = full_listener();
        let mut syn = say(SYN, 0, 0).mss(1000);
        syn.options.sack_permitted = sack;
        if stamps {
            syn = syn.ts(77, 0);
        }
        let _ = s.peer(syn);
        let syn_ack = s.sent();
        assert_eq!(s.tcp.counters().syn_cookies, 1);
        s.iss = syn_ack.header.seq;
        let mut ack = say(ACK, 1, 1);
        if let Some((ours, _)) = syn_ack.header.options.timestamps {
            ack = ack.ts(78, ours);
        }
        s.peer(ack).unwrap();
        let now = s.now();
        let listener = s.listener.unwrap();
        s.handle = Some(s.tcp.accept(listener, buffers(100, 100), now).unwrap());
        assert_eq!(s.state(), State::Established);
        let facts = s.connection().facts;
        assert_eq!(facts.has(Facts::SACK), sack && stamps, "{sack} {stamps}");
        assert_eq!(facts.has(Facts::TIMESTAMPS), stamps);
    }
}

/// Handshakes belong to the listener that they began at.
#[test]
fn each_listener_gets_its_own_handshakes() {
    let mut s = Script::new();
    let config = leak(PLAIN);
    let first = s.tcp.listen(None, 9, config).unwrap();
    let second = s.tcp.listen(None, PORT, config).unwrap();
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    s.iss = s.sent().header.seq;
    s.peer(say(ACK, 1, 1)).unwrap();
    assert!(!s.tcp.can_accept(first) && s.tcp.can_accept(second));
    let now = s.now();
    let waiting = s.tcp.accept(first, buffers(100, 100), now).unwrap();
    assert_eq!(s.tcp.connection(waiting).unwrap().state(), State::Listen);
    let taken = s.tcp.accept(second, buffers(100, 100), now).unwrap();
    let connection = s.tcp.connection(taken).unwrap();
    assert_eq!(connection.state(), State::Established);
    assert_eq!(connection.endpoints().local, US);
}

#[test]
fn a_syn_ack_sent_again_counts_as_a_retransmission() {
    let mut s = Script::listening(PLAIN);
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    s.sent();
    assert_eq!(s.tcp.counters().retransmitted(Cause::Handshake), 0);
    s.wait_for_segment();
    assert_eq!(s.tcp.counters().retransmitted(Cause::Handshake), 1);
}

#[test]
fn an_answer_takes_the_backoff_back() {
    let mut rtt = RttEstimator::NEW;
    let before = rtt.rto_ms(&Config::DEFAULT);
    rtt.back_off();
    assert_eq!(rtt.rto_ms(&Config::DEFAULT), 2 * before);
    rtt.forget_backoff();
    assert_eq!(rtt.rto_ms(&Config::DEFAULT), before);
}

/// RFC 5961 §7: one challenge per interval, the next exactly when it is over.
#[test]
fn the_next_challenge_goes_when_its_interval_is_over() {
    let interval_ms = 500;
    let config = Config {
        challenge_interval_ms: interval_ms,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    for (after_ms, answered) in [(0, true), (499, false), (1, true), (1, false)] {
        s.now_us += after_ms * 1000;
        let _ = s.peer(say(RST, 5, 0));
        assert_eq!(s.poll().is_some(), answered, "{after_ms}");
    }
}

/// Our ACK was lost, and the peer's text comes again with an ACK of our data that had been lost,
/// too: those data have arrived.
#[test]
fn news_in_the_ack_of_text_that_came_again_count() {
    let mut s = Script::accepted(PLAIN);
    let text = say(ACK, 1, 1).data(&pattern(0, 100));
    s.peer(text.clone()).unwrap();
    s.expect(ACK, 1, 101, 0);
    s.send(1000);
    s.expect(ACK, 1, 101, 1000);
    // What begins farther back than a window holds is not what the peer has sent.
    let mut old = text.clone();
    (old.seq, old.ack) = (101_u32.wrapping_sub(8001), 1001);
    assert_eq!(s.peer(old), Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1001, 101, 0);
    assert_eq!(s.connection().unacknowledged(), 1000);
    // Nor does an ACK of what was never sent count, nor is it challenged twice.
    let mut unsent = text.clone();
    unsent.ack = 1002;
    assert_eq!(s.peer(unsent), Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1001, 101, 0);
    assert_eq!(s.connection().unacknowledged(), 1000);
    let mut again = text;
    again.ack = 1001;
    assert_eq!(s.peer(again), Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1001, 101, 0);
    assert_eq!(s.connection().unacknowledged(), 0);
    s.wait_ms(5000);
}

/// A FIN that comes again with the ACK of ours ends the connection.
#[test]
fn news_in_the_ack_of_a_fin_that_came_again_count() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(FIN | ACK, 1, 1)).unwrap();
    s.expect(ACK, 1, 2, 0);
    s.shutdown();
    s.expect(FIN | ACK, 1, 2, 0);
    assert_eq!(s.state(), State::LastAck);
    assert_eq!(
        s.peer(say(FIN | ACK, 1, 2)),
        Err(SegmentDrop::OutsideWindow)
    );
    assert_eq!(s.state(), State::Closed);
    s.silent();
}
