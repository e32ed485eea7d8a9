//! Requirements of the RFCs that no other test shows; `docs/reference/tcp-requirements.md`
//! points here.

use super::super::{Config, Error, RetransmissionCause as Cause, State};
use super::*;

/// A handshake takes 50 ms, and then a segment of data 700 ms: nothing is sent twice, neither
/// the first data nor the next.
#[test]
fn a_quick_handshake_does_not_make_the_first_data_go_twice() {
    for timestamps in [false, true] {
        let config = Config {
            timestamps,
            ..Config::DEFAULT
        };
        let (mut s, syn) = Script::connecting(config);
        s.now_us += 50_000;
        let mut syn_ack = say(SYN | ACK, 0, 1).mss(1000).sack_permitted();
        if timestamps {
            s.peer_ts = Some(7);
            s.our_ts = syn.header.options.timestamps.unwrap().0;
            syn_ack = syn_ack.ts(7, s.our_ts);
        }
        s.peer(syn_ack).unwrap();
        s.expect(ACK, 1, 1, 0);
        let before = s.connection().telemetry();
        assert_eq!((before.srtt_ms, before.rto_ms), (50, 1000));
        let full = usize::from(before.smss_bytes);
        let mut end = 1;
        for _ in 0..4 {
            s.send(full);
            let data = s.expect(ACK, end, 1, full);
            end += full as u32;
            s.wait_ms(700);
            s.our_ts = data.header.options.timestamps.map_or(0, |(value, _)| value);
            s.peer(say(ACK, 1, end)).unwrap();
            s.silent();
        }
        let after = s.connection().telemetry();
        assert_eq!(after.srtt_ms, 700, "the handshake's sample is forgotten");
        assert!(after.rto_ms > 1000, "{} ms", after.rto_ms);
        let retransmitted = |cause| s.tcp.counters().retransmitted(cause);
        assert_eq!(retransmitted(Cause::TailLossProbe), 0);
        assert_eq!(retransmitted(Cause::Timeout), 0);
    }
}

/// Once data were measured, the RTO may fall far below a second, and tails are probed.
#[test]
fn measured_data_make_the_rto_small() {
    let (mut s, _) = Script::connecting(Config {
        timestamps: false,
        ..Config::DEFAULT
    });
    s.now_us += 50_000;
    s.peer(say(SYN | ACK, 0, 1).mss(1000).sack_permitted())
        .unwrap();
    s.expect(ACK, 1, 1, 0);
    for n in 0..10 {
        s.send(1000);
        s.expect(ACK, 1 + n * 1000, 1, 1000);
        s.wait_ms(50);
        s.peer(say(ACK, 1, 1001 + n * 1000)).unwrap();
    }
    assert!(s.connection().telemetry().rto_ms < 300);
    s.send(1000);
    s.expect(ACK, 10_001, 1, 1000);
    let (_, waited) = s.wait_for_segment();
    assert!(waited < 350, "{waited} ms");
}

/// MUST-1: windows are unsigned; more than 32,767 octets may be in flight.
#[test]
fn a_window_above_32767_is_used() {
    let config = Config {
        initial_window: 60,
        ..PLAIN
    };
    let syn = say(SYN, 0, 0).mss(1000).win(50_000);
    let mut s = Script::accepted_with(config, syn, 60_000, 8000);
    s.send(60_000);
    let mut sent = 0;
    while let Some(seg) = s.poll() {
        sent += seg.payload.len();
    }
    assert_eq!(sent, 50_000);
}

/// `segment` with other bytes in place, and the checksum right again.
fn patched(mut segment: Vec<u8>, patch: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    patch(&mut segment);
    fill_checksum(&PEER, &US, &mut segment);
    segment
}

/// MUST-64: options are read wherever they begin.
#[test]
fn options_off_the_word_boundary_are_read() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    let syn = s.peer_bytes(&say(SYN, 0, 0));
    let syn = patched(syn, |bytes| {
        bytes[12] = 7 << 4;
        // No-operation, MSS 600, no-operations.
        bytes.extend([1, 2, 4, 0x02, 0x58, 1, 1, 1]);
    });
    let now = s.now();
    s.tcp.on_segment(&incoming(PEER, US, 0, &syn), now).unwrap();
    s.iss = s.sent().header.seq;
    s.peer(say(ACK, 1, 1)).unwrap();
    s.handle = Some(s.tcp.accept(listener, buffers(8000, 8000), now).unwrap());
    s.send(2000);
    s.expect(ACK, 1, 1, 600);
}

/// Bytes of the next segment sent.
fn raw(s: &mut Script) -> Vec<u8> {
    let mut out = [0; 2000];
    let sent = s.tcp.poll_segment(s.now(), |_| true, &mut out).unwrap();
    out[..sent.len].to_vec()
}

/// The kinds of the options of a segment; every one but the two of one octet has a length,
/// and behind an end of the list there are zeros.
fn option_kinds(segment: &[u8]) -> Vec<u8> {
    let area = &segment[20..usize::from(segment[12] >> 4) * 4];
    let (mut kinds, mut at) = (Vec::new(), 0);
    while at < area.len() {
        match area[at] {
            0 => {
                assert!(area[at..].iter().all(|byte| *byte == 0), "{area:?}");
                break;
            }
            1 => at += 1,
            kind => {
                let len = usize::from(area[at + 1]);
                assert!(len >= 2 && at + len <= area.len(), "{area:?}");
                kinds.push(kind);
                at += len;
            }
        }
    }
    kinds
}

/// MUST-65, MUST-68, MUST-69: what our option areas look like on each kind of segment.
#[test]
fn options_sent_have_lengths_and_the_mss_goes_with_syns_only() {
    let (mss, sack_permitted, sack, timestamps) = (2, 4, 5, 8);
    let config = Config {
        timestamps: true,
        sack: true,
        ..PLAIN
    };
    let mut s = Script::listening(config);
    let listener = s.listener.unwrap();
    s.peer(say(SYN, 0, 0).mss(1000).sack_permitted().ts(9, 0))
        .unwrap();
    let syn_ack = raw(&mut s);
    let mut kinds = option_kinds(&syn_ack);
    kinds.sort_unstable();
    assert_eq!(kinds, [mss, sack_permitted, timestamps], "SYN-ACK");
    s.iss = u32::from_be_bytes(*syn_ack[4..].first_chunk().unwrap());
    s.peer_ts = Some(9);
    s.peer(say(ACK, 1, 1)).unwrap();
    let now = s.now();
    s.handle = Some(s.tcp.accept(listener, buffers(8000, 8000), now).unwrap());
    s.send(10);
    assert_eq!(option_kinds(&raw(&mut s)), [timestamps], "data");
    s.peer(say(ACK, 100, 11).data(b"behind a gap")).unwrap();
    assert_eq!(option_kinds(&raw(&mut s)), [timestamps, sack], "a gap");
    let (_, syn) = Script::connecting(config);
    assert!(syn.header.options.mss.is_some(), "SYN");
}

/// The documented deviation from MUST-30 to MUST-33 and MUST-62: urgent data are data.
#[test]
fn urgent_data_are_delivered_in_line() {
    let mut s = Script::accepted(PLAIN);
    let segment = s.peer_bytes(&say(ACK, 1, 1).data(b"urgent"));
    let segment = patched(segment, |bytes| {
        bytes[13] |= 0x20;
        bytes[19] = 3;
    });
    let now = s.now();
    assert_eq!(
        s.tcp.on_segment(&incoming(PEER, US, 0, &segment), now),
        Ok(())
    );
    s.expect(ACK, 1, 7, 0);
    assert_eq!(s.recv(), b"urgent");
}

/// SHLD-2: a reset may carry an explanation.
#[test]
fn a_reset_with_text_resets() {
    let mut s = Script::accepted(PLAIN);
    let reset = say(RST, 1, 0).data(b"out of memory");
    assert_eq!(s.peer(reset), Err(SegmentDrop::ConnectionReset));
    assert_eq!(s.connection().error(), Some(Error::Reset));
    assert_eq!(s.recv(), b"");
}

/// MUST-58, MUST-59: segments that wait together are answered together.
#[test]
fn one_ack_answers_all_that_arrived() {
    let mut s = Script::accepted(PLAIN);
    for n in 0..3 {
        s.peer(say(ACK, 1 + n * 1000, 1).data(&pattern(0, 1000)))
            .unwrap();
    }
    s.expect(ACK, 1, 3001, 0);
    s.silent();
}

/// MUST-41, MUST-42: listening on the port of a connection attempt disturbs neither.
#[test]
fn a_port_is_listened_on_beside_an_attempt() {
    let mut s = Script::new();
    let (config, now) = (leak(PLAIN), s.now());
    let far = (PEER, PEER_PORT + 1);
    let attempt = s
        .tcp
        .connect_from(
            (US, PORT),
            far,
            buffers(100, 100),
            config,
            Offer::UNBOUNDED,
            now,
        )
        .unwrap();
    assert!(s.sent().header.flags.contains(SYN));
    s.tcp.listen(None, PORT, config).unwrap();
    s.peer(say(SYN, 0, 0)).unwrap();
    assert_eq!(s.sent().header.flags, SYN | ACK);
    let attempt = s.tcp.connection(attempt).unwrap();
    assert_eq!(attempt.state(), State::SynSent);
}

/// MUST-23, SHLD-10, SHLD-11 by the default settings: a SYN is tried for three minutes at
/// least, data for 100 s; meanwhile the application can see that nothing gets through (SHLD-9).
#[test]
fn giving_up_takes_as_long_as_it_should() {
    let (mut s, _) = Script::connecting(Config::DEFAULT);
    let start = s.now_us;
    while s.state() == State::SynSent {
        let _ = s.poll();
        if let Some(at) = s.tcp.next_deadline() {
            s.now_us = at.as_micros().max(s.now_us);
        }
    }
    assert!(s.now_us - start >= 180_000_000, "SYN: {}", s.now_us - start);

    let mut s = Script::accepted(Config::DEFAULT);
    s.send(10);
    let start = s.now_us;
    let mut doublings = 0;
    while s.state() == State::Established {
        doublings = doublings.max(s.connection().telemetry().rto_doublings);
        let _ = s.poll();
        if let Some(at) = s.tcp.next_deadline() {
            s.now_us = at.as_micros().max(s.now_us);
        }
    }
    assert!(
        s.now_us - start >= 100_000_000,
        "data: {}",
        s.now_us - start
    );
    assert!(doublings >= 3, "{doublings}");
}

/// SHLD-16, SHLD-17: data beyond a window that shrank to nothing are probed, not timed out,
/// and sent again when it opens.
#[test]
fn data_beyond_a_shrunken_window_do_not_time_out() {
    let mut s = Script::accepted(PLAIN);
    s.send(3000);
    for seq in [1, 1001, 2001] {
        s.expect(ACK, seq, 1, 1000);
    }
    s.peer(say(ACK, 1, 1001).win(0)).unwrap();
    for _ in 0..20 {
        let (probe, _) = s.wait_for_segment();
        assert_eq!(probe.header.seq.wrapping_sub(s.iss), 1001);
        s.peer(say(ACK, 1, 1001).win(0)).unwrap();
    }
    assert_eq!(s.state(), State::Established);
    s.peer(say(ACK, 1, 1001).win(8000)).unwrap();
    let (again, _) = s.wait_for_segment();
    assert_eq!(again.header.seq.wrapping_sub(s.iss), 1001);
    s.peer(say(ACK, 1, 3001).win(8000)).unwrap();
    assert_eq!(s.connection().unacknowledged(), 0);
}

/// RFC 6298 (5.2): with everything acknowledged, the timer is off.
#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    let mut s = Script::accepted(PLAIN);
    s.send(10);
    s.expect(ACK, 1, 1, 10);
    assert!(s.tcp.next_deadline().is_some());
    s.peer(say(ACK, 1, 11)).unwrap();
    assert_eq!(s.tcp.next_deadline(), None);
}

/// SHLD-15, MAY-7: new data stay within a window that shrank; a retransmission is as long as
/// its segment was.
#[test]
fn only_retransmissions_reach_beyond_a_shrunken_window() {
    let syn = say(SYN, 0, 0).mss(1000).win(2000);
    let mut s = Script::accepted_with(PLAIN, syn, 8000, 8000);
    s.send(3000);
    s.expect(ACK, 1, 1, 1000);
    s.expect(ACK, 1001, 1, 1000);
    s.peer(say(ACK, 1, 1001).win(500)).unwrap();
    s.silent();
    let (again, _) = s.wait_for_segment();
    assert_eq!(again.header.seq.wrapping_sub(s.iss), 1001);
    assert_eq!(again.payload.len(), 1000);
}

/// MUST-9: engines with other keys choose other ISNs for the same ends at the same time.
#[test]
fn isns_depend_on_the_key() {
    let isn = |seed| {
        let mut tcp = engine(1, 1, seed);
        let now = Instant::from_micros(1000);
        let far = (PEER, 9);
        tcp.connect_from(
            (US, 1),
            far,
            buffers(1, 1),
            leak(PLAIN),
            Offer::UNBOUNDED,
            now,
        )
        .unwrap();
        let mut out = [0; 100];
        let sent = tcp.poll_segment(now, |_| true, &mut out).unwrap();
        Seg::parse(&sent, &out[..sent.len]).header.seq
    };
    assert_eq!(isn(1), isn(1));
    assert_ne!(isn(1), isn(2));
}

/// MUST-48, SHLD-21: the DSCP is the settings', in the handshake and after a change.
#[test]
fn the_dscp_can_be_set_and_changed() {
    fn next(s: &mut Script) -> Option<u8> {
        let mut out = [0; 2000];
        let now = s.now();
        let sent = s.tcp.poll_segment(now, |_| true, &mut out);
        sent.map(|outgoing| outgoing.dscp)
    }
    let expedited = leak(Config { dscp: 46, ..PLAIN });
    let mut s = Script::new();
    s.tcp.listen(None, PORT, expedited).unwrap();
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    assert_eq!(next(&mut s), Some(46), "the SYN-ACK");
    let mut s = Script::accepted(*expedited);
    s.send(10);
    assert_eq!(next(&mut s), Some(46));
    let (handle, now) = (s.handle(), s.now());
    s.tcp
        .set_config(handle, leak(Config { dscp: 8, ..PLAIN }), now);
    s.send(10);
    assert_eq!(next(&mut s), Some(8));
}
