//! Opening: active, passive, simultaneous; what the SYN agrees upon; resets in between.

use super::super::{Agreed, Config, Error, OpenError, RecvError, SendError, State};
use super::*;

#[test]
fn active_open() {
    let (mut s, syn) = Script::connecting(PLAIN);
    assert_eq!(syn.header.flags, SYN);
    assert_eq!(syn.header.options.mss, Some(1000));
    assert!(syn.header.src_port >= 49152, "an ephemeral port");
    assert_eq!(s.state(), State::SynSent);
    let windows = |s: &Script| {
        let seen = s.connection().telemetry();
        (seen.cwnd_bytes, seen.ssthresh_bytes)
    };
    assert_eq!(windows(&s), (3 * 1220, u16::MAX), "as it would begin");
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    assert_eq!(s.state(), State::Established);
    assert_eq!(windows(&s), (4 * 1000, u16::MAX));
    s.expect(ACK, 1, 1, 0);
    s.silent();
}

#[test]
fn passive_open() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    assert!(!s.tcp.can_accept(listener));
    s.peer(say(SYN, 0, 0).mss(536)).unwrap();
    assert!(!s.tcp.can_accept(listener), "the handshake is not done");
    let syn_ack = s.sent();
    s.iss = syn_ack.header.seq;
    assert_eq!(syn_ack.header.flags, SYN | ACK);
    assert_eq!(syn_ack.header.window, 8000);
    s.peer(say(ACK, 1, 1)).unwrap();
    assert!(s.tcp.can_accept(listener));
    let handle = s
        .tcp
        .accept(listener, buffers(8000, 8000), s.now())
        .unwrap();
    s.handle = Some(handle);
    assert_eq!(s.state(), State::Established);
    assert!(!s.tcp.can_accept(listener));
    // The peer's MSS holds.
    s.send(600);
    s.expect(ACK, 1, 1, 536);
    s.expect(ACK, 537, 1, 64);
}

#[test]
fn simultaneous_open() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    assert_eq!(s.state(), State::SynReceived);
    s.expect(SYN | ACK, 0, 1, 0);
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    assert_eq!(s.state(), State::Established);
    s.send(10);
    s.expect(ACK, 1, 1, 10);
}

/// RFC 9293 §3.10.7.4: in SYN-RECEIVED, an ACK of anything but our SYN is answered with a
/// reset, and changes nothing.
#[test]
fn a_bad_ack_in_a_simultaneous_open() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    s.expect(SYN | ACK, 0, 1, 0);
    for bad in [0, 2, 77_000] {
        assert_eq!(s.peer(say(ACK, 1, bad)), Err(SegmentDrop::UnacceptableAck));
        let reset = s.sent();
        assert_eq!(
            (reset.header.flags, reset.header.seq),
            (RST, s.iss.wrapping_add(bad))
        );
        assert_eq!(s.state(), State::SynReceived);
    }
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(s.state(), State::Established);
}

/// Settings that change while our SYN is on its way do not change what it offered: RFC 7323
/// §3.2 and RFC 3168 §6.1.1 bind us to what the peer agreed to.
#[test]
fn settings_change_before_the_answer() {
    const EVERYTHING: Config = Config {
        timestamps: true,
        sack: true,
        ecn: true,
        ..PLAIN
    };
    let ece = Flags::ECE;
    for (offered, later) in [(EVERYTHING, PLAIN), (PLAIN, EVERYTHING)] {
        let (mut s, syn) = Script::connecting(offered);
        let (handle, now) = (s.handle(), s.now());
        s.tcp.set_config(handle, leak(later), now);
        let nothing = Agreed {
            timestamps: false,
            sack: false,
            ecn: false,
        };
        assert_eq!(s.connection().agreed(), nothing, "no answer yet");
        let stamps = syn.header.options.timestamps;
        assert_eq!(stamps.is_some(), offered.timestamps);
        // A peer that agrees to everything, asked or not.
        let echo = stamps.map_or(0, |(value, _)| value);
        let syn_ack = say(SYN | ACK | ece, 0, 1).mss(1000);
        s.peer(syn_ack.sack_permitted().ts(77, echo)).unwrap();
        let agreed = Agreed {
            timestamps: offered.timestamps,
            sack: offered.sack,
            ecn: offered.ecn,
        };
        assert_eq!(s.connection().agreed(), agreed);
        let ack = s.expect(ACK, 1, 1, 0).header.options.timestamps;
        assert_eq!(ack.is_some(), offered.timestamps);
        // What comes without is dropped only where they were agreed upon.
        let dropped = match offered.timestamps {
            true => Err(SegmentDrop::NoTimestamp),
            false => Ok(()),
        };
        assert_eq!(s.peer(say(ACK, 1, 1).data(b"x")), dropped);
    }
}

/// The SYN sent again offers what the first one did, and what was offered to nobody is
/// agreed with nobody.
#[test]
fn a_syn_sent_again_offers_the_same() {
    let (mut s, first) = Script::connecting(Config {
        timestamps: true,
        sack: true,
        syn_retransmissions_max: 1,
        ..PLAIN
    });
    let (handle, now) = (s.handle(), s.now());
    let once = Config {
        syn_retransmissions_max: 1,
        ..PLAIN
    };
    s.tcp.set_config(handle, leak(once), now);
    let again = s.wait_for_segment().0.header.options;
    assert!(again.sack_permitted && again.timestamps.is_some());
    assert_eq!(again.mss, first.header.options.mss);
    while s.state() != State::Closed {
        s.now_us = s.tcp.next_deadline().unwrap().as_micros();
        s.silent();
    }
    let agreed = s.connection().agreed();
    assert!(!agreed.timestamps && !agreed.sack);
}

/// Two engines that open towards each other meet in one connection (MUST-10).
#[test]
fn simultaneous_open_of_two_engines() {
    let mut net = Net::new(CLEAN, 1);
    let (config, now) = (leak(Config::DEFAULT), net.now());
    let ends = [(US, 1000), (PEER, 2000)];
    let a = net.hosts[0]
        .connect_from(
            ends[0],
            ends[1],
            buffers(100, 100),
            config,
            Offer::UNBOUNDED,
            now,
        )
        .unwrap();
    let b = net.hosts[1]
        .connect_from(
            ends[1],
            ends[0],
            buffers(100, 100),
            config,
            Offer::UNBOUNDED,
            now,
        )
        .unwrap();
    net.hosts[0].send(a, b"ping", now).unwrap();
    for _ in 0..20 {
        net.step();
    }
    for (host, handle) in [(0, a), (1, b)] {
        let state = net.hosts[host].connection(handle).unwrap().state();
        assert_eq!(state, State::Established);
    }
    assert_eq!(net.hosts[1].recv(b, &mut [0; 9]), Ok(4));
}

#[test]
fn a_syn_is_sent_again_and_given_up() {
    let config = Config {
        syn_retransmissions_max: 3,
        ..PLAIN
    };
    let (mut s, _) = Script::connecting(config);
    for wait in [1000, 2000, 4000] {
        let (seg, waited) = s.wait_for_segment();
        assert_eq!((seg.header.flags, waited), (SYN, wait));
    }
    s.wait_ms(7_999);
    assert_eq!(s.state(), State::SynSent);
    s.wait_ms(2);
    s.silent();
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.connection().error(), Some(Error::TimedOut));
    assert_eq!(s.tcp.next_deadline(), None);
}

/// RFC 6298 (5.7): after a retransmitted SYN, and without a timestamp, the RTO is 3 s.
#[test]
fn a_retransmitted_syn_makes_the_first_rto_3_s() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.wait_for_segment();
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    s.expect(ACK, 1, 1, 0);
    s.send(10);
    s.expect(ACK, 1, 1, 10);
    assert_eq!(s.wait_for_segment().1, 3000);
}

#[test]
fn a_syn_ack_is_sent_again_and_given_up() {
    let config = Config {
        syn_retransmissions_max: 2,
        ..PLAIN
    };
    let mut s = Script::listening(config);
    s.peer(say(SYN, 0, 0)).unwrap();
    assert_eq!(s.sent().header.flags, SYN | ACK);
    for wait in [1000, 2000] {
        let (seg, waited) = s.wait_for_segment();
        assert_eq!((seg.header.flags, waited), (SYN | ACK, wait));
    }
    s.wait_ms(10_000);
    s.silent();
    assert_eq!(s.tcp.next_deadline(), None, "the entry is free again");
}

#[test]
fn a_syn_repeated_gets_the_same_syn_ack() {
    let mut s = Script::listening(PLAIN);
    s.peer(say(SYN, 0, 0)).unwrap();
    let first = s.sent();
    s.peer(say(SYN, 0, 0)).unwrap();
    assert_eq!(s.sent().header, first.header);
    // Another ISN from the same end: not this handshake's.
    assert_eq!(s.peer(say(SYN, 77, 0)), Err(SegmentDrop::SynInWindow));
}

#[test]
fn nobody_listens() {
    let cases = [
        ("SYN", say(SYN, 100, 0), Some((RST | ACK, 0, 101))),
        (
            "SYN with data",
            say(SYN, 100, 0).data(b"abc"),
            Some((RST | ACK, 0, 104)),
        ),
        ("ACK", say(ACK, 100, 700), Some((RST, 700, 0))),
        ("data", say(ACK, 100, 700).data(b"x"), Some((RST, 700, 0))),
        ("FIN", say(FIN | ACK, 100, 700), Some((RST, 700, 0))),
        ("RST", say(RST, 100, 0), None),
        ("RST ACK", say(RST | ACK, 100, 700), None),
    ];
    for (name, segment, answer) in cases {
        let mut s = Script::new();
        (s.iss, s.irs) = (0, 0);
        assert_eq!(s.peer(segment), Err(SegmentDrop::NoConnection), "{name}");
        let got = s
            .poll()
            .map(|seg| (seg.header.flags, seg.header.seq, seg.header.ack));
        assert_eq!(got, answer, "{name}");
    }
}

#[test]
fn a_listener_answers_only_syns() {
    let cases = [
        ("RST", say(RST, 1, 0), SegmentDrop::NoConnection, false),
        ("ACK", say(ACK, 1, 1), SegmentDrop::UnacceptableAck, true),
        (
            "SYN ACK",
            say(SYN | ACK, 1, 1),
            SegmentDrop::UnacceptableAck,
            true,
        ),
        (
            "nothing",
            say(Flags::EMPTY, 1, 0),
            SegmentDrop::NoSyn,
            false,
        ),
        ("FIN", say(FIN, 1, 0), SegmentDrop::NoSyn, false),
    ];
    for (name, segment, reason, reset) in cases {
        let mut s = Script::listening(PLAIN);
        assert_eq!(s.peer(segment), Err(reason), "{name}");
        let answer = s.poll();
        assert_eq!(
            answer.is_some_and(|seg| seg.header.flags == RST),
            reset,
            "{name}"
        );
    }
}

#[test]
fn half_open_rules() {
    let half_open = || Script::half_open(PLAIN, say(SYN, 0, 0));
    // RFC 5961 §3.2, by the 8000 bytes promised: (distance from RCV.NXT, challenged).
    for (ahead, challenged) in [(1, true), (7999, true), (8000, false), (u32::MAX, false)] {
        let mut s = half_open();
        let reset = say(RST, 1_u32.wrapping_add(ahead), 0);
        let reason = match challenged {
            true => SegmentDrop::InexactReset,
            false => SegmentDrop::OutsideWindow,
        };
        assert_eq!(s.peer(reset), Err(reason));
        match challenged {
            true => _ = s.expect(ACK, 1, 1, 0),
            false => s.silent(),
        }
        s.peer(say(ACK, 1, 1)).unwrap();
        assert!(
            s.tcp.can_accept(s.listener.unwrap()),
            "the inexact reset did nothing"
        );
    }

    let mut s = half_open();
    assert_eq!(s.peer(say(RST, 1, 0)), Err(SegmentDrop::ConnectionReset));
    assert_eq!(
        s.peer(say(ACK, 1, 1)),
        Err(SegmentDrop::UnacceptableAck),
        "it is gone"
    );

    let mut s = half_open();
    assert_eq!(s.peer(say(ACK, 1, 2)), Err(SegmentDrop::UnacceptableAck));
    let reset = s.sent();
    assert_eq!(
        (reset.header.flags, reset.header.seq),
        (RST, s.iss.wrapping_add(2))
    );
    s.peer(say(ACK, 1, 1)).unwrap();
    assert!(
        s.tcp.can_accept(s.listener.unwrap()),
        "the bad ACK did nothing"
    );
}

#[test]
fn syn_sent_rules() {
    let cases = [
        (
            "bad ACK",
            say(SYN | ACK, 0, 2),
            Err(SegmentDrop::UnacceptableAck),
            State::SynSent,
            Some(RST),
        ),
        (
            "old ACK",
            say(ACK, 0, 0),
            Err(SegmentDrop::UnacceptableAck),
            State::SynSent,
            Some(RST),
        ),
        (
            "RST, bad ACK",
            say(RST | ACK, 0, 2),
            Err(SegmentDrop::InexactReset),
            State::SynSent,
            None,
        ),
        (
            "RST without ACK",
            say(RST, 0, 0),
            Err(SegmentDrop::InexactReset),
            State::SynSent,
            None,
        ),
        (
            "ACK alone",
            say(ACK, 0, 1),
            Err(SegmentDrop::NoSyn),
            State::SynSent,
            None,
        ),
        (
            "RST",
            say(RST | ACK, 0, 1),
            Err(SegmentDrop::ConnectionReset),
            State::Closed,
            None,
        ),
    ];
    for (name, segment, result, state, answer) in cases {
        let (mut s, _) = Script::connecting(PLAIN);
        assert_eq!(s.peer(segment), result, "{name}");
        assert_eq!(s.state(), state, "{name}");
        assert_eq!(s.poll().map(|seg| seg.header.flags), answer, "{name}");
        let refused = state == State::Closed;
        assert_eq!(
            s.connection().error(),
            refused.then_some(Error::Refused),
            "{name}"
        );
    }
}

#[test]
fn what_the_syn_agrees_upon() {
    let all = Config::DEFAULT;
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let config = Config {
            timestamps: ours,
            sack: ours,
            ..all
        };
        let (mut s, syn) = Script::connecting(config);
        assert_eq!(syn.header.options.timestamps.is_some(), ours);
        assert_eq!(syn.header.options.sack_permitted, ours);
        let mut answer = say(SYN | ACK, 0, 1).mss(1000);
        if theirs {
            let echo = syn.header.options.timestamps.map_or(0, |(value, _)| value);
            answer = answer.sack_permitted().ts(50, echo);
        }
        s.peer(answer).unwrap();
        let ack = s.sent();
        let agreed = ours && theirs;
        assert_eq!(ack.header.options.timestamps.is_some(), agreed);
        if agreed {
            assert_eq!(ack.header.options.timestamps.unwrap().1, 50, "TSecr");
            s.peer_ts = Some(50);
        }
        s.peer(say(ACK, 11, 1).data(b"gap")).unwrap();
        let sack = s.sent().header.options.sack;
        assert_eq!(!sack.is_empty(), agreed, "SACK only when both permit it");
    }
}

#[test]
fn ecn_is_agreed_upon_by_flags() {
    let (ece, cwr) = (Flags::ECE, Flags::CWR);
    let config = Config { ecn: true, ..PLAIN };
    let cases = [
        ("ECE", SYN | ACK | ece, true),
        (
            "ECE and CWR: the SYN reflected",
            SYN | ACK | ece | cwr,
            false,
        ),
        ("none", SYN | ACK, false),
    ];
    for (name, flags, agreed) in cases {
        let (mut s, syn) = Script::connecting(config);
        assert_eq!(syn.header.flags, SYN | ece | cwr);
        s.peer(say(flags, 0, 1).mss(1000)).unwrap();
        assert_eq!(s.sent().ecn, 0, "a pure ACK is not ECT");
        s.send(10);
        assert_eq!(s.sent().ecn, if agreed { 2 } else { 0 }, "{name}");
    }
    // Sent again, a SYN asks for nothing.
    let (mut s, _) = Script::connecting(config);
    assert_eq!(s.wait_for_segment().0.header.flags, SYN);
    // Passive.
    let mut s = Script::listening(config);
    s.peer(say(SYN | ece | cwr, 0, 0)).unwrap();
    assert_eq!(s.sent().header.flags, SYN | ACK | ece);
}

#[test]
fn mss_rules() {
    let mss = |offered: Option<u16>, config: Config| {
        let mut syn = say(SYN, 0, 0).win(8000);
        syn.options.mss = offered;
        let mut s = Script::accepted_with(config, syn, 8000, 8000);
        s.send(5000);
        s.sent().payload.len()
    };
    let wide = Config {
        smss: 9000,
        ..PLAIN
    };
    assert_eq!(mss(None, wide), 1220, "no option over IPv6 (MUST-15)");
    assert_eq!(mss(Some(1440), wide), 1440);
    assert_eq!(mss(Some(1440), PLAIN), 1000, "our own limit");
    for small in [1, 7, 48, 63, 64] {
        assert_eq!(mss(Some(small), wide), usize::from(small));
    }
    assert_eq!(mss(Some(0), wide), 1, "the stream moves on");
    // The options of a segment come out of the MSS (RFC 9293 §3.7.1, RFC 6691).
    let syn = say(SYN, 0, 0).mss(1000).ts(1, 0);
    let config = Config {
        timestamps: true,
        ..PLAIN
    };
    let mut s = Script::accepted_with(config, syn, 8000, 8000);
    s.send(5000);
    assert_eq!(s.sent().payload.len(), 988);
}

/// MUST-16 where an MSS leaves little room for options: no SACK, and timestamps leave one octet of
/// data at least.
#[test]
fn options_make_room_for_data_where_the_mss_is_small() {
    let config = Config {
        timestamps: true,
        sack: true,
        ..PLAIN
    };
    let rich = |flags, ack, mss| say(flags, 0, ack).mss(mss).sack_permitted().ts(1, 0);
    for mss in [1, 12, 13, 20, 63, 64] {
        let mut passive = Script::half_open(config, rich(SYN, 0, mss));
        let (listener, ours, now) = (passive.listener.unwrap(), passive.our_ts, passive.now());
        passive.peer_ts = Some(1);
        passive.peer(say(ACK, 1, 1).ts(1, ours)).unwrap();
        let accepted = passive.tcp.accept(listener, buffers(100, 100), now);
        passive.handle = Some(accepted.unwrap());
        passive.send(100);
        let (mut active, _) = Script::connecting(config);
        active.peer_ts = Some(1);
        active.send(100);
        active.peer(rich(SYN | ACK, 1, mss)).unwrap();
        for mut s in [passive, active] {
            let agreed = s.connection().agreed();
            assert_eq!((agreed.timestamps, agreed.sack), (true, mss >= 64));
            let room = usize::from(mss.saturating_sub(12).max(1));
            assert_eq!(s.sent().payload.len(), room.min(100), "MSS {mss}");
            // All of it arrives, an acknowledgment at a time.
            let mut acked = 1;
            for _ in 0..200 {
                s.peer(say(ACK, 1, acked.max(1 + room as u32))).unwrap();
                while let Some(seg) = s.poll() {
                    assert!(seg.payload.len() <= room, "MSS {mss}");
                    let end = seg.header.seq.wrapping_sub(s.iss) + seg.payload.len() as u32;
                    acked = acked.max(end);
                }
                s.now_us += 1000;
            }
            assert_eq!(s.connection().unacknowledged(), 0, "MSS {mss}");
        }
    }
}

/// A cookie cannot say an MSS below 64, and so does not promise to obey it.
#[test]
fn no_cookie_goes_to_a_peer_of_a_tiny_mss() {
    for (mss, result) in [(63, Err(SegmentDrop::HalfOpenFull)), (64, Ok(()))] {
        let mut s = Script::new();
        s.tcp = engine(1, 0, 1); // no table at all
        s.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
        assert_eq!(s.peer(say(SYN, 0, 0).mss(mss)), result);
        assert_eq!(s.poll().is_some(), result.is_ok());
    }
}

/// What a path with segments of at most `mss` bytes both ways offers.
fn segments_of(mss: u16) -> Offer {
    Offer {
        smss: mss,
        rmss: mss,
        ..Offer::UNBOUNDED
    }
}

#[test]
fn the_link_limits_the_mss_both_ways() {
    let mut s = Script::new();
    s.offer = Offer {
        smss: 490,
        rmss: 474,
        ..Offer::UNBOUNDED
    };
    let listener = s.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
    s.peer(say(SYN, 0, 0).mss(1440).win(8000)).unwrap();
    let syn_ack = s.sent().header;
    assert_eq!(syn_ack.options.mss, Some(474));
    s.iss = syn_ack.seq;
    s.peer(say(ACK, 1, 1).win(8000)).unwrap();
    let (lent, now) = (buffers(8000, 8000), s.now());
    s.handle = Some(s.tcp.accept(listener, lent, now).unwrap());
    s.send(5000);
    assert_eq!(s.sent().payload.len(), 490);
}

/// The limit is the link's to one peer: what another one's SYN sets changes nothing.
#[test]
fn every_handshake_keeps_the_limit_of_its_own_link() {
    for limit in [64, 9000] {
        let mut s = Script::new();
        s.offer = segments_of(474);
        let listener = s.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
        s.peer(say(SYN, 0, 0).mss(1440).win(8000)).unwrap();
        s.iss = s.sent().header.seq;
        s.offer = segments_of(limit);
        let (again, _) = s.wait_for_segment();
        assert_eq!(again.header.options.mss, Some(474), "sent again");
        s.peer(say(ACK, 1, 1).win(8000)).unwrap();
        let (lent, now) = (buffers(8000, 8000), s.now());
        s.handle = Some(s.tcp.accept(listener, lent, now).unwrap());
        s.send(5000);
        assert_eq!(s.sent().payload.len(), 474, "accepted under {limit}");
    }
}

#[test]
fn what_is_agreed_upon_is_told() {
    let config = Config {
        timestamps: true,
        sack: true,
        ecn: true,
        ..PLAIN
    };
    let mut s = Script::listening(config);
    let listener = s.listener.unwrap();
    let now = s.now();
    s.handle = Some(s.tcp.accept(listener, buffers(9, 9), now).unwrap());
    s.peer(say(SYN, 0, 0).sack_permitted()).unwrap();
    s.iss = s.sent().header.seq;
    let ends: Vec<_> = s.tcp.handshakes().collect();
    assert!(matches!(ends[..], [only] if (only.remote, only.local_port) == (PEER, PORT)));
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(s.tcp.handshakes().count(), 0);
    let agreed = s.connection().agreed();
    assert!(agreed.sack && !agreed.timestamps && !agreed.ecn);
}

#[test]
fn data_wait_for_the_handshake() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.send(1500);
    s.silent();
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    s.expect(ACK, 1, 1, 1000);
    s.expect(ACK, 1001, 1, 500);
    s.silent();
}

#[test]
fn data_on_a_syn_ack_count() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.peer(say(SYN | ACK, 0, 1).mss(1000).data(b"hello"))
        .unwrap();
    assert_eq!(s.recv(), b"hello");
    s.expect(ACK, 1, 6, 0);
}

#[test]
fn data_before_accept_are_asked_for_again() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    s.peer(say(SYN, 0, 0)).unwrap();
    s.iss = s.sent().header.seq;
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(
        s.peer(say(ACK, 1, 1).data(b"early")),
        Err(SegmentDrop::NotAccepted)
    );
    let handle = s.tcp.accept(listener, buffers(100, 100), s.now()).unwrap();
    s.handle = Some(handle);
    s.expect(ACK, 1, 1, 0);
    s.peer(say(ACK, 1, 1).data(b"early")).unwrap();
    assert_eq!(s.recv(), b"early");
}

#[test]
fn accepted_in_advance_keeps_early_data() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    let handle = s.tcp.accept(listener, buffers(100, 100), s.now()).unwrap();
    s.handle = Some(handle);
    assert_eq!(s.state(), State::Listen);
    s.send(5); // a greeting
    assert_eq!(s.tcp.recv(handle, &mut [0]), Err(RecvError::Empty));
    s.peer(say(SYN, 0, 0)).unwrap();
    let syn_ack = s.sent();
    s.iss = syn_ack.header.seq;
    assert_eq!(syn_ack.header.window, 100, "what is lent, not what is said");
    assert_eq!(s.state(), State::Listen, "a SYN costs no buffers");
    s.peer(say(ACK, 1, 1).data(b"early")).unwrap();
    assert_eq!(s.state(), State::Established);
    assert_eq!(s.recv(), b"early");
    s.expect(ACK, 1, 6, 5);
}

/// Nothing unacceptable ends a handshake; and whatever does, what was handed over in advance must
/// not wait for ever for a window that nobody probes.
#[test]
fn data_lent_in_advance_have_a_timer_however_the_handshake_ends() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    let handle = s.tcp.accept(listener, buffers(100, 100), s.now()).unwrap();
    s.handle = Some(handle);
    s.send(5);
    s.peer(say(SYN, 0, 0)).unwrap();
    s.iss = s.sent().header.seq;
    let beyond = say(ACK, 5000, 1).win(0);
    assert_eq!(s.peer(beyond), Err(SegmentDrop::OutsideWindow));
    s.expect(ACK, 1, 1, 0);
    assert_eq!(s.state(), State::Listen);
    s.peer(say(ACK, 1, 1).win(0)).unwrap();
    assert_eq!(s.state(), State::Established);
    let (probe, _) = s.wait_for_segment();
    assert_eq!(probe.payload.len(), 1, "a window probe");
}

#[test]
fn unlisten_ends_what_waits_but_not_what_was_accepted() {
    let mut s = Script::accepted(PLAIN);
    let listener = s.listener.unwrap();
    let waiting = s.tcp.accept(listener, buffers(10, 10), s.now()).unwrap();
    s.tcp.unlisten(listener);
    assert_eq!(s.tcp.connection(waiting).unwrap().state(), State::Closed);
    assert!(s.tcp.remove(waiting).is_some());
    assert_eq!(s.state(), State::Established);
    let refused = s.tcp.accept(listener, buffers(1, 1), s.now()).unwrap_err();
    assert_eq!(refused.error, OpenError::NoListener);
    s.tcp.listen(None, PORT, leak(PLAIN)).unwrap();
}

#[test]
fn an_established_connection_nobody_accepts_is_dropped() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    s.peer(say(SYN, 0, 0)).unwrap();
    s.iss = s.sent().header.seq;
    s.peer(say(ACK, 1, 1)).unwrap();
    s.wait_ms(u64::from(PLAIN.accept_timeout_ms) + 1);
    s.silent();
    assert!(!s.tcp.can_accept(listener));
}

#[test]
fn listen_errors() {
    use super::super::ListenError;
    let mut tcp = engine(1, 1, 1);
    let config = leak(PLAIN);
    assert_eq!(tcp.listen(None, 0, config), Err(ListenError::Address));
    assert_eq!(
        tcp.listen(Some(Ipv6Addr::UNSPECIFIED), 1, config),
        Err(ListenError::Address)
    );
    tcp.listen(None, 1, config).unwrap();
    assert_eq!(tcp.listen(None, 1, config), Err(ListenError::InUse));
    tcp.listen(Some(US), 1, config).unwrap();
    tcp.listen(Some(PEER), 1, config).unwrap();
    tcp.listen(None, 2, config).unwrap();
    assert_eq!(tcp.listen(None, 3, config), Err(ListenError::NoPlace));
}

#[test]
fn connect_errors_give_the_buffers_back() {
    let mut tcp = engine(1, 0, 1);
    let (config, now) = (leak(PLAIN), Instant::ORIGIN);
    let multicast = "ff02::1".parse().unwrap();
    for (local, remote) in [
        ((US, 0), (PEER, 1)),
        ((US, 1), (PEER, 0)),
        ((US, 1), (multicast, 1)),
        ((multicast, 1), (PEER, 1)),
        ((Ipv6Addr::UNSPECIFIED, 1), (PEER, 1)),
    ] {
        let refused = tcp
            .connect_from(
                local,
                remote,
                buffers(30, 40),
                config,
                Offer::UNBOUNDED,
                now,
            )
            .unwrap_err();
        assert_eq!(refused.error, OpenError::Address);
        assert_eq!(refused.buffers.send.room(), 30);
    }
    tcp.connect_from(
        (US, 1),
        (PEER, 1),
        buffers(1, 1),
        config,
        Offer::UNBOUNDED,
        now,
    )
    .unwrap();
    let again = tcp
        .connect_from(
            (US, 1),
            (PEER, 1),
            buffers(1, 1),
            config,
            Offer::UNBOUNDED,
            now,
        )
        .unwrap_err();
    assert_eq!(again.error, OpenError::InUse);
    let full = tcp
        .connect(US, (PEER, 2), buffers(1, 1), config, Offer::UNBOUNDED, now)
        .unwrap_err();
    assert_eq!(full.error, OpenError::NoSlot);
}

#[test]
fn isns_follow_the_clock_and_differ_by_ends() {
    let mut tcp = engine(8, 1, 1);
    let config = leak(PLAIN);
    let mut isn = |port: u16, at_us: u64| {
        let now = Instant::from_micros(at_us);
        let handle = tcp
            .connect_from(
                (US, port),
                (PEER, 9),
                buffers(1, 1),
                config,
                Offer::UNBOUNDED,
                now,
            )
            .unwrap();
        let mut out = [0; 100];
        let sent = tcp.poll_segment(now, |_| true, &mut out).unwrap();
        tcp.abort(handle);
        tcp.remove(handle).unwrap();
        Seg::parse(&sent, &out[..sent.len]).header.seq
    };
    let first = isn(1, 1000);
    assert_ne!(
        isn(2, 1000).wrapping_sub(first),
        0,
        "another connection, another ISN"
    );
    assert_eq!(
        isn(1, 1000 + 4000),
        first.wrapping_add(1000),
        "4 µs a tick (RFC 6528 §3)"
    );
}

#[test]
fn ephemeral_ports_do_not_repeat_at_once() {
    let mut tcp = engine(100, 1, 1);
    let config = leak(PLAIN);
    let mut ports = Vec::new();
    for _ in 0..100 {
        let handle = tcp
            .connect(
                US,
                (PEER, 9),
                buffers(1, 1),
                config,
                Offer::UNBOUNDED,
                Instant::ORIGIN,
            )
            .unwrap();
        ports.push(tcp.connection(handle).unwrap().endpoints().local_port);
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 100);
    assert!(ports.iter().all(|port| *port >= 49152));
}

#[test]
fn stale_handles_are_recognised() {
    let mut s = Script::accepted(PLAIN);
    let stale = s.handle();
    s.tcp.abort(stale);
    s.expect(RST | ACK, 1, 1, 0);
    assert!(s.tcp.remove(stale).is_some());
    assert!(s.tcp.remove(stale).is_none());
    let now = s.now();
    assert_eq!(s.tcp.send(stale, b"x", now), Err(SendError::NoConnection));
    assert_eq!(s.tcp.recv(stale, &mut [0]), Err(RecvError::NoConnection));
    let fresh = s
        .tcp
        .connect(
            US,
            (PEER, 9),
            buffers(1, 1),
            leak(PLAIN),
            Offer::UNBOUNDED,
            now,
        )
        .unwrap();
    assert_ne!(fresh, stale);
    assert!(s.tcp.connection(stale).is_none());
    assert!(s.tcp.connection(fresh).is_some());
}

#[test]
fn no_room_no_segment_and_nothing_counted_sent() {
    let mut s = Script::accepted(PLAIN);
    s.send(10);
    s.room = false;
    s.silent();
    assert_eq!(s.connection().telemetry().inflight_bytes, 0);
    s.room = true;
    s.expect(ACK, 1, 1, 10);
}

/// What a SYN-ACK says of its link counts once it is known to be the peer's.
#[test]
fn a_forged_syn_ack_sets_no_limit() {
    let (mut s, _) = Script::connecting(PLAIN);
    s.offer = segments_of(200);
    for (flags, ack) in [(SYN | ACK, 2), (SYN | RST | ACK, 0)] {
        assert!(s.peer(say(flags, 0, ack).mss(1440)).is_err());
        while s.poll().is_some() {}
    }
    assert_eq!(s.state(), State::SynSent);
    s.offer = segments_of(900);
    s.peer(say(SYN | ACK, 0, 1).mss(1440)).unwrap();
    assert_eq!(s.connection().telemetry().smss_bytes, 900);
}

/// RFC 6298 §2.2: without timestamps the SYN-ACK gives a round-trip sample, unless it was sent
/// again.
#[test]
fn a_syn_ack_answered_late_makes_the_first_timeout_longer() {
    let stamped = Config {
        timestamps: true,
        ..PLAIN
    };
    for (name, config, rtt_ms, rto_ms) in [
        ("at once", PLAIN, 0, 1000),
        ("soon", PLAIN, 100, 1000),
        ("late", PLAIN, 600, 2000),
        ("sent again", PLAIN, 1600, 3000),
        (
            "with timestamps, which the entry must keep",
            stamped,
            600,
            1000,
        ),
    ] {
        let mut s = Script::half_open(config, say(SYN, 0, 0).mss(1000).ts(7, 0));
        s.now_us += rtt_ms * 1000;
        if rtt_ms > 1000 {
            s.sent();
        }
        s.peer(say(ACK, 1, 1).ts(8, s.our_ts)).unwrap();
        // Whoever accepts takes its time.
        s.now_us += 300_000;
        let (lent, now) = (buffers(8000, 8000), s.now());
        s.handle = Some(s.tcp.accept(s.listener.unwrap(), lent, now).unwrap());
        assert_eq!(s.connection().telemetry().rto_ms, rto_ms, "{name}");
    }
}
