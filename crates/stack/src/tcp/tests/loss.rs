//! Loss: finding it, sending again, cwnd meanwhile; SACK, DSACK, RACK-TLP, PRR, undo, ECN.

use super::super::{Config, RetransmissionCause as Cause, State};
use super::*;

pub(in crate::tcp) const SACK: Config = Config {
    sack: true,
    rack: false,
    tail_loss_probe: false,
    ..PLAIN
};
pub(in crate::tcp) const RACK: Config = Config {
    sack: true,
    ..PLAIN
};
const STAMPED: Config = Config {
    timestamps: true,
    ..RACK
};

pub(in crate::tcp) fn offering_sack() -> Say {
    say(SYN, 0, 0).mss(1000).sack_permitted().win(30_000)
}

/// `segments` of 1000 octets out, cwnd and window wide enough; RTT 100 ms measured.
pub(in crate::tcp) fn in_flight(config: Config, syn: Say, segments: u32) -> Script {
    let config = Config {
        initial_window: 11,
        ..config
    };
    let mut s = Script::accepted_with(config, syn, 30_000, 30_000);
    s.send(1000);
    s.expect(ACK, 1, 1, 1000);
    s.now_us += 100_000;
    s.peer(say(ACK, 1, 1001).win(30_000)).unwrap();
    s.send(20_000);
    for n in 0..segments {
        s.room = true;
        s.expect(ACK, 1001 + n * 1000, 1, 1000);
    }
    s
}

/// A duplicate ACK, 100 ms after the data were sent.
fn duplicate(s: &mut Script, ack: u32) {
    s.peer(say(ACK, 1, ack).win(30_000)).unwrap();
}

pub(in crate::tcp) fn sacking(s: &mut Script, ack: u32, blocks: &[(u32, u32)]) {
    let segment = say(ACK, 1, ack).win(30_000).sack(s, blocks);
    s.peer(segment).unwrap();
}

pub(in crate::tcp) fn cwnd(s: &Script) -> u16 {
    s.connection().telemetry().cwnd_bytes
}

#[test]
fn slow_start_then_congestion_avoidance() {
    let mut s = Script::accepted_with(
        Config {
            initial_window: 2,
            ..PLAIN
        },
        say(SYN, 0, 0).mss(1000).win(60_000),
        40_000,
        8000,
    );
    s.send(40_000);
    assert_eq!(cwnd(&s), 2000);
    s.expect(ACK, 1, 1, 1000);
    s.expect(ACK, 1001, 1, 1000);
    s.silent();
    duplicate_free_ack(&mut s, 2001);
    assert_eq!(
        cwnd(&s),
        3000,
        "at most one segment per ACK (RFC 5681 §3.1)"
    );
    let mut acked = 2001;
    for _ in 0..4 {
        acked += 1000;
        while s.poll().is_some() {}
        duplicate_free_ack(&mut s, acked);
    }
    assert_eq!(cwnd(&s), 7000);
}

fn duplicate_free_ack(s: &mut Script, ack: u32) {
    s.peer(say(ACK, 1, ack).win(60_000)).unwrap();
}

#[test]
fn initial_window_by_rfc_5681() {
    for (mss, segments) in [(474, 4), (1095, 4), (1220, 3), (1440, 3), (2191, 2)] {
        let config = Config {
            smss: 9000,
            initial_window: 0,
            ..PLAIN
        };
        let mut s =
            Script::accepted_with(config, say(SYN, 0, 0).mss(mss).win(60_000), 60_000, 8000);
        s.send(60_000);
        let mut sent = 0;
        while s.poll().is_some() {
            sent += 1;
        }
        assert_eq!(sent, segments, "MSS {mss}");
    }
}

/// Six segments of ten allowed: slow start stops at twelve, and five let nothing grow
/// (RFC 7661 §4.3).
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for (segments, grown) in [(5, 10_000), (6, 12_000), (9, 18_000)] {
        let config = Config {
            initial_window: 10,
            ..PLAIN
        };
        let syn = say(SYN, 0, 0).mss(1000).win(30_000);
        let mut s = Script::accepted_with(config, syn, 30_000, 30_000);
        s.send(segments * 1000);
        while s.poll().is_some() {}
        for n in 1..=segments as u32 {
            s.peer(say(ACK, 1, 1 + n * 1000).win(30_000)).unwrap();
        }
        assert_eq!(cwnd(&s), grown, "{segments} segments");
    }
}

#[test]
fn three_duplicates_then_partial_acks_without_sack() {
    let config = Config {
        prr: false,
        ..PLAIN
    };
    let mut s = in_flight(config, say(SYN, 0, 0).mss(1000).win(30_000), 11);
    s.now_us += 100_000;
    s.silent();
    duplicate(&mut s, 1001);
    s.expect(ACK, 12_001, 1, 1000); // limited transmit (RFC 3042)
    duplicate(&mut s, 1001);
    s.expect(ACK, 13_001, 1, 1000);
    s.silent();
    duplicate(&mut s, 1001);
    s.expect(ACK, 1001, 1, 1000);
    assert_eq!(s.tcp.counters().retransmitted(Cause::DuplicateAcks), 1);
    let ssthresh = s.connection().telemetry().ssthresh_bytes;
    assert!(
        (5000..=6000).contains(&ssthresh),
        "half of the flight: {ssthresh}"
    );
    assert!(s.connection().telemetry().is_recovering);
    s.silent();
    // A partial acknowledgment: the next hole, at once.
    duplicate(&mut s, 3001);
    s.expect(ACK, 3001, 1, 1000);
    assert_eq!(s.tcp.counters().retransmitted(Cause::PartialAck), 1);
    // All that was out: recovery ends.
    duplicate(&mut s, 14_001);
    assert!(!s.connection().telemetry().is_recovering);
    assert!(cwnd(&s) <= ssthresh);
    assert_eq!(s.tcp.counters().retransmitted(Cause::Timeout), 0);
}

#[test]
fn without_limited_transmit_the_first_duplicates_send_nothing() {
    let config = Config {
        limited_transmit: false,
        ..PLAIN
    };
    let mut s = in_flight(config, say(SYN, 0, 0).mss(1000).win(30_000), 10);
    // cwnd 11000 after the first ACK: one more segment goes out by itself.
    while s.poll().is_some() {}
    duplicate(&mut s, 1001);
    duplicate(&mut s, 1001);
    s.silent();
    duplicate(&mut s, 1001);
    s.expect(ACK, 1001, 1, 1000);
}

#[test]
fn what_is_not_a_duplicate_ack() {
    type Case = (&'static str, fn(u32) -> Say);
    let not: [Case; 3] = [
        ("data", |n| say(ACK, 1 + n, 1001).win(30_000).data(b"x")),
        ("a window update", |n| {
            say(ACK, 1, 1001).win(30_001 + n as u16)
        }),
        ("an old ACK", |_| say(ACK, 1, 900).win(30_000)),
    ];
    for (name, segment) in not {
        let mut s = in_flight(PLAIN, say(SYN, 0, 0).mss(1000).win(30_000), 4);
        for n in 0..6 {
            let _ = s.peer(segment(n));
            while s.poll().is_some() {}
        }
        assert!(!s.connection().telemetry().is_recovering, "{name}");
    }
}

/// RFC 6582 §4.1: after a timeout, duplicates of what was sent twice must not start a fast
/// retransmit.
#[test]
fn duplicates_after_a_timeout_are_no_loss() {
    let mut s = in_flight(PLAIN, say(SYN, 0, 0).mss(1000).win(30_000), 5);
    s.room = false;
    s.now_us += 2_000_000;
    s.silent();
    s.room = true;
    s.expect(ACK, 1001, 1, 1000);
    // What it covers is acknowledged exactly, new data follow, and the peer answers each of
    // the retransmissions that it had already.
    let covered = s.connection().loss.recover().get().wrapping_sub(s.iss);
    duplicate(&mut s, covered);
    let mut new = 0;
    while let Some(seg) = s.poll() {
        assert!(seg.header.seq.wrapping_sub(s.iss) >= covered);
        new += 1;
    }
    assert!(new > 0);
    for _ in 0..4 {
        duplicate(&mut s, covered);
        while s.poll().is_some() {}
    }
    assert_eq!(s.tcp.counters().retransmitted(Cause::DuplicateAcks), 0);
}

#[test]
fn sack_recovery_by_counting() {
    let config = Config { prr: false, ..SACK };
    let mut s = in_flight(config, offering_sack(), 10);
    s.now_us += 100_000;
    // Segments 1 and 3 of 10 are lost.
    sacking(&mut s, 1001, &[(2001, 3001)]);
    while s.poll().is_some() {}
    sacking(&mut s, 1001, &[(4001, 5001), (2001, 3001)]);
    assert!(
        !s.connection().telemetry().is_recovering,
        "two ranges, not three"
    );
    while s.poll().is_some() {}
    sacking(&mut s, 1001, &[(4001, 6001), (2001, 3001)]);
    s.expect(ACK, 1001, 1, 1000);
    assert!(s.connection().telemetry().is_recovering);
    sacking(&mut s, 1001, &[(4001, 8001), (2001, 3001)]);
    // The second hole has more than two segments above it now.
    let mut again = Vec::new();
    for blocks in [(4001, 9001), (4001, 10_001), (4001, 11_001)] {
        sacking(&mut s, 1001, &[blocks, (2001, 3001)]);
        while let Some(seg) = s.poll() {
            again.push(seg.header.seq.wrapping_sub(s.iss));
        }
    }
    assert_eq!(again.first(), Some(&3001));
    assert!(!again.contains(&1001), "sent again once");
    let end = s.connection().snd_nxt.get().wrapping_sub(s.iss);
    sacking(&mut s, end, &[]);
    assert!(!s.connection().telemetry().is_recovering);
    assert_eq!(s.tcp.counters().retransmitted(Cause::Sack), 2);
}

/// With 4 segments out and 2 lost there are never three duplicates: counting stalls until
/// the timeout, time does not.
#[test]
fn rack_finds_losses_in_small_windows() {
    let mut s = in_flight(RACK, offering_sack(), 4);
    s.room = false;
    s.now_us += 100_000;
    sacking(&mut s, 1001, &[(4001, 5001)]);
    s.room = true;
    let before = s.now_us;
    while s.tcp.counters().retransmitted(Cause::Rack) == 0 {
        s.wait_for_segment();
    }
    assert!(
        s.now_us - before <= 30_000,
        "within min RTT / 4: {}",
        s.now_us - before
    );
    while s.poll().is_some() {}
    s.now_us += 100_000;
    let end = s.connection().snd_nxt.get().wrapping_sub(s.iss);
    sacking(&mut s, 2001, &[(4001, end)]);
    while s.poll().is_some() {}
    s.now_us += 100_000;
    sacking(&mut s, end, &[]);
    while s.poll().is_some() {}
    assert_eq!(s.tcp.counters().retransmitted(Cause::Rack), 3);
    assert_eq!(s.tcp.counters().retransmitted(Cause::Timeout), 0);
}

#[test]
fn rack_tolerates_reordering_within_its_window() {
    let mut s = in_flight(RACK, offering_sack(), 3);
    s.now_us += 100_000;
    sacking(&mut s, 1001, &[(2001, 3001)]);
    while let Some(seg) = s.poll() {
        assert!(seg.header.seq.wrapping_sub(s.iss) > 3001, "nothing again");
    }
    // 10 ms later the late one arrives: less than a quarter of the RTT.
    s.now_us += 10_000;
    sacking(&mut s, 3001, &[]);
    assert_eq!(s.tcp.counters().retransmissions, [0; Cause::COUNT]);
}

#[test]
fn a_lost_retransmission_is_found_by_time() {
    let mut s = in_flight(RACK, offering_sack(), 6);
    s.now_us += 100_000;
    sacking(&mut s, 1001, &[(2001, 7001)]);
    s.expect(ACK, 1001, 1, 1000);
    // New data sent after the retransmission arrive, it does not.
    let mut highest = 7001;
    while let Some(seg) = s.poll() {
        highest = seg.header.seq.wrapping_sub(s.iss) + 1000;
    }
    assert!(highest > 7001);
    s.now_us += 101_000;
    sacking(&mut s, 1001, &[(2001, highest)]);
    let (seg, waited) = s.wait_for_segment();
    assert_eq!(seg.header.seq.wrapping_sub(s.iss), 1001);
    assert!(waited < 50, "long before the timeout: {waited} ms");
}

#[test]
fn a_tail_loss_probe_goes_before_the_timeout() {
    let mut s = in_flight(RACK, offering_sack(), 3);
    let handle = s.handle();
    // Let everything be sent that can: then the last segment is the probe.
    let mut last = 0;
    while let Some(seg) = s.poll() {
        last = seg.header.seq.wrapping_sub(s.iss);
    }
    let (probe, waited) = s.wait_for_segment();
    let telemetry = s.tcp.connection(handle).unwrap().telemetry();
    assert!(waited >= u64::from(telemetry.srtt_ms) * 2 - 1);
    assert!(waited < u64::from(telemetry.rto_ms), "{waited}");
    assert!(probe.header.seq.wrapping_sub(s.iss) >= last);
    // New data count as a probe as well; the one after it is the timeout.
    s.wait_for_segment();
    assert_eq!(s.tcp.counters().retransmitted(Cause::TailLossProbe), 0);
    assert_eq!(s.tcp.counters().retransmitted(Cause::Timeout), 1);
}

/// A thousand octets whose tail loss probe waits for room, and with `deadlines` of 2 its
/// timeout too, are acknowledged; then there is room again.
fn acknowledged_before_its_probe(deadlines: usize) -> Script {
    let mut s = Script::accepted_with(RACK, offering_sack(), 30_000, 30_000);
    s.send(1000);
    s.expect(ACK, 1, 1, 1000);
    s.now_us += 100_000;
    s.peer(say(ACK, 1, 1001).win(30_000)).unwrap();
    s.send(1000);
    s.expect(ACK, 1001, 1, 1000);
    s.room = false;
    for _ in 0..deadlines {
        s.now_us = s.tcp.next_deadline().expect("a probe").as_micros();
        s.silent();
    }
    s.peer(say(ACK, 1, 2001).win(30_000)).unwrap();
    s.room = true;
    s
}

/// What the probe was to ask for arrived while it waited for room.
#[test]
fn data_behind_a_probe_that_found_no_room_have_a_timer() {
    let mut s = acknowledged_before_its_probe(1);
    s.send(1000);
    s.expect(ACK, 2001, 1, 1000);
    assert!(s.tcp.next_deadline().is_some());
}

/// A FIN takes no room in a packet, but only the packet that it is in is an octet longer.
#[test]
fn what_is_sent_again_keeps_to_the_mss_though_a_fin_follows() {
    let config = Config {
        initial_window: 10,
        ..PLAIN
    };
    let syn = say(SYN, 0, 0).mss(1000).win(30_000);
    let mut s = Script::accepted_with(config, syn, 30_000, 30_000);
    // Nine short segments apart; then, at one instant, more than the table tells apart.
    for n in 0..9 {
        s.send(10);
        s.expect(ACK, 1 + n * 10, 1, 10);
        s.now_us += 2_000;
    }
    for n in 0..12 {
        s.send(300);
        s.expect(ACK, 91 + n * 300, 1, 300);
    }
    let (handle, now) = (s.handle(), s.now());
    s.tcp.shutdown(handle, now);
    s.expect(ACK | FIN, 3691, 1, 0);
    s.wait_for_segment();
    s.peer(say(ACK, 1, 91).win(30_000)).unwrap();
    s.expect(ACK, 91, 1, 1000);
}

#[test]
fn a_probe_that_found_no_room_in_time_leaves_the_next_segment_its_timer() {
    let mut s = acknowledged_before_its_probe(2);
    s.send(10);
    s.expect(ACK, 2001, 1, 10);
    assert!(s.tcp.next_deadline().is_some(), "it may be lost");
    s.wait_for_segment();
}

#[test]
fn keepalives_without_an_answer_do_not_count_against_data() {
    let config = Config {
        keepalive_idle_s: 1,
        keepalive_interval_s: 1,
        keepalive_probes: 8,
        retransmissions_max: 12,
        ..PLAIN
    };
    let mut s = Script::accepted(config);
    for _ in 0..7 {
        s.wait_for_segment();
    }
    s.send(10);
    s.sent();
    for _ in 0..12 {
        let (again, _) = s.wait_for_segment();
        assert_eq!(again.payload.len(), 10);
    }
}

#[test]
fn a_probe_that_repairs_a_loss_halves_cwnd_and_a_needless_one_does_not() {
    for needless in [false, true] {
        let config = Config {
            initial_window: 10,
            ..RACK
        };
        let mut s = Script::accepted_with(config, offering_sack(), 30_000, 30_000);
        s.send(1000);
        s.expect(ACK, 1, 1, 1000);
        s.now_us += 100_000;
        s.peer(say(ACK, 1, 1001).win(30_000)).unwrap();
        s.send(2000);
        s.expect(ACK, 1001, 1, 1000);
        s.expect(ACK, 2001, 1, 1000);
        let (probe, _) = s.wait_for_segment();
        assert_eq!(
            probe.header.seq.wrapping_sub(s.iss),
            2001,
            "the last one again"
        );
        assert_eq!(s.tcp.counters().retransmitted(Cause::TailLossProbe), 1);
        s.now_us += 100_000;
        let before = cwnd(&s);
        sacking(&mut s, 3001, &[]);
        if needless {
            sacking(&mut s, 3001, &[(2001, 3001)]); // DSACK: it had arrived
        }
        s.send(1000);
        s.expect(ACK, 3001, 1, 1000);
        s.now_us += 100_000;
        sacking(&mut s, 4001, &[]);
        assert_eq!(cwnd(&s) < before, !needless, "needless: {needless}");
    }
}

#[test]
fn timeout_recovery_sends_everything_again_in_slow_start() {
    let mut s = in_flight(
        Config {
            tail_loss_probe: false,
            ..RACK
        },
        offering_sack(),
        6,
    );
    while s.poll().is_some() {}
    let flight = s.connection().telemetry().inflight_bytes;
    let (seg, _) = s.wait_for_segment();
    assert_eq!(seg.header.seq.wrapping_sub(s.iss), 1001);
    assert_eq!(cwnd(&s), 1000, "the loss window");
    assert_eq!(s.connection().telemetry().ssthresh_bytes, flight / 2);
    s.silent();
    s.now_us += 100_000;
    sacking(&mut s, 2001, &[]);
    s.expect(ACK, 2001, 1, 1000);
    s.expect(ACK, 3001, 1, 1000);
    s.silent();
    s.now_us += 100_000;
    sacking(&mut s, 1001 + u32::from(flight), &[]);
    assert!(!s.connection().telemetry().is_recovering);
}

/// RFC 5681 §3.1: a second timeout of the same segment does not halve ssthresh again.
#[test]
fn repeated_timeouts_halve_once() {
    let mut s = in_flight(PLAIN, say(SYN, 0, 0).mss(1000).win(30_000), 8);
    while s.poll().is_some() {}
    s.wait_for_segment();
    let ssthresh = s.connection().telemetry().ssthresh_bytes;
    s.wait_for_segment();
    s.wait_for_segment();
    assert_eq!(s.connection().telemetry().ssthresh_bytes, ssthresh);
}

#[test]
fn reneging_is_survived() {
    let mut s = in_flight(
        Config {
            tail_loss_probe: false,
            ..RACK
        },
        offering_sack(),
        4,
    );
    while s.poll().is_some() {}
    // The peer says it has everything but the first, then forgets it.
    sacking(&mut s, 1001, &[(2001, 12_001)]);
    while s.poll().is_some() {}
    s.now_us += 100_000;
    sacking(&mut s, 2001, &[]);
    while s.poll().is_some() {}
    let mut acked = 2001;
    for _ in 0..60 {
        let (seg, _) = s.wait_for_segment();
        let seq = seg.header.seq.wrapping_sub(s.iss);
        if seq == acked {
            acked = seq + seg.payload.len() as u32;
            s.now_us += 50_000;
            sacking(&mut s, acked, &[]);
        }
        if acked >= 12_001 {
            return;
        }
    }
    panic!("stuck at {acked}");
}

#[test]
fn prr_spreads_recovery_over_the_acks() {
    let mut s = in_flight(RACK, offering_sack(), 10);
    while s.poll().is_some() {}
    s.now_us += 130_000;
    let mut sent_by_ack = Vec::new();
    for n in 2..=10 {
        sacking(&mut s, 1001, &[(2001, 1001 + n * 1000)]);
        let mut sent = 0;
        while s.poll().is_some() {
            sent += 1;
        }
        sent_by_ack.push(sent);
    }
    let total: i32 = sent_by_ack.iter().sum();
    assert!(
        sent_by_ack.iter().all(|sent| *sent <= 2),
        "no bursts: {sent_by_ack:?}"
    );
    assert!(
        (4..=7).contains(&total),
        "about half of what was delivered: {sent_by_ack:?}"
    );
}

/// Eifel: the ACK of the original echoes a time before the retransmission.
#[test]
fn a_spurious_timeout_is_undone_by_timestamps() {
    let syn = offering_sack().ts(100, 0);
    let config = Config {
        initial_window: 10,
        tail_loss_probe: false,
        ..STAMPED
    };
    let mut s = Script::accepted_with(config, syn, 30_000, 30_000);
    s.send(5000);
    while s.poll().is_some() {}
    let (before, original) = (cwnd(&s), s.our_ts);
    let (seg, _) = s.wait_for_segment();
    assert_eq!(seg.header.seq.wrapping_sub(s.iss), 1);
    assert_ne!(s.our_ts, original);
    assert!(cwnd(&s) < before);
    // Everything had only been late.
    s.peer(say(ACK, 1, 3001).win(30_000).ts(101, original))
        .unwrap();
    assert!(cwnd(&s) >= before, "undone: {} of {before}", cwnd(&s));
    assert!(!s.connection().telemetry().is_recovering);
    assert_eq!(s.connection().telemetry().ssthresh_bytes, u16::MAX);
    // RFC 4015 §4.3: the next timer outlasts a round trip as long.
    let late_ms = s.our_ts.wrapping_sub(original);
    assert!(s.connection().telemetry().srtt_ms >= late_ms, "{late_ms}");
    while let Some(seg) = s.poll() {
        assert!(
            seg.header.seq.wrapping_sub(s.iss) >= 5001,
            "nothing more again"
        );
    }
}

#[test]
fn a_real_timeout_is_not_undone() {
    let syn = offering_sack().ts(100, 0);
    let config = Config {
        initial_window: 10,
        tail_loss_probe: false,
        ..STAMPED
    };
    let mut s = Script::accepted_with(config, syn, 30_000, 30_000);
    s.send(5000);
    while s.poll().is_some() {}
    let before = cwnd(&s);
    s.wait_for_segment();
    let again = s.our_ts;
    s.peer(say(ACK, 1, 3001).win(30_000).ts(101, again))
        .unwrap();
    assert!(cwnd(&s) < before);
}

#[test]
fn a_spurious_recovery_is_undone_by_dsack() {
    let mut s = in_flight(RACK, offering_sack(), 6);
    while s.poll().is_some() {}
    let before = cwnd(&s);
    s.now_us += 130_000;
    // One segment is late by more than the reordering window.
    sacking(&mut s, 1001, &[(2001, 7001)]);
    s.expect(ACK, 1001, 1, 1000);
    assert!(s.connection().telemetry().is_recovering);
    while s.poll().is_some() {}
    s.now_us += 10_000;
    sacking(&mut s, 7001, &[]);
    sacking(&mut s, 7001, &[(1001, 2001)]); // it came twice
    assert!(cwnd(&s) >= before, "{} of {before}", cwnd(&s));
    // Switched off, it is not.
    let mut s = in_flight(
        Config {
            undo: false,
            ..RACK
        },
        offering_sack(),
        6,
    );
    while s.poll().is_some() {}
    s.now_us += 130_000;
    sacking(&mut s, 1001, &[(2001, 7001)]);
    while s.poll().is_some() {}
    sacking(&mut s, 7001, &[(1001, 2001)]);
    assert!(cwnd(&s) < before);
}

/// RFC 3708 §3: the reduction stands until all that the recovery sent again is known to have
/// come twice; reports of anything else, or of the same once more, do not count.
#[test]
fn only_reports_of_all_that_was_sent_again_undo() {
    const BEHIND: u32 = 100_000;
    let (first, second) = ((1001, 2001), (3001, 4001));
    for (reports, is_undone) in [
        (&[first, second][..], true),
        (&[first], false),
        (&[first, first], false),
        (&[first, (2001, 3001)], true), // as many octets, all within the recovery
        (&[(1, 1001), (1, 1001)], false),
        (&[first, (1, 1001)], false),
        (
            &[(BEHIND, BEHIND + 1000), (BEHIND + 1000, BEHIND + 2000)],
            false,
        ),
    ] {
        let mut s = in_flight(RACK, offering_sack(), 8);
        while s.poll().is_some() {}
        let before = cwnd(&s);
        s.now_us += 130_000;
        let end = s.connection().snd_nxt.get().wrapping_sub(s.iss);
        sacking(&mut s, 1001, &[(4001, end), (2001, 3001)]);
        while s.poll().is_some() {}
        assert_eq!(s.tcp.counters().retransmitted(Cause::Rack), 2);
        sacking(&mut s, end, &[]);
        assert!(cwnd(&s) < before);
        while s.poll().is_some() {}
        for (left, right) in reports {
            let place = |edge: u32| edge.checked_sub(BEHIND).map_or(edge, |more| end + more);
            let left = place(*left);
            sacking(&mut s, end.max(left), &[(left, place(*right))]);
        }
        assert_eq!(cwnd(&s) >= before, is_undone, "{reports:?}");
    }
    // Once more than the recovery's data is acknowledged, reports come too late.
    let mut s = in_flight(RACK, offering_sack(), 6);
    while s.poll().is_some() {}
    let before = cwnd(&s);
    s.now_us += 130_000;
    let end = s.connection().snd_nxt.get().wrapping_sub(s.iss);
    sacking(&mut s, 1001, &[(2001, end)]);
    while s.poll().is_some() {}
    sacking(&mut s, end, &[]);
    sacking(&mut s, end + 1000, &[]);
    sacking(&mut s, end + 1000, &[(1001, 2001)]);
    assert!(cwnd(&s) < before);
}

/// A peer that shuts its window for long: what was sent before was on the way all the time.
#[test]
fn a_round_trip_of_minutes_is_not_taken_for_seconds() {
    for wait_ms in [70_000, 140_000] {
        let mut s = in_flight(RACK, offering_sack(), 4);
        s.peer(say(ACK, 1, 1001).win(0)).unwrap();
        let end = s.now_us + wait_ms * 1000;
        while s.now_us < end {
            s.now_us += 1_000_000;
            while s.poll().is_some() {}
        }
        // The window was probed with the first segment again; the others were sent once.
        s.peer(say(ACK, 1, 2001).win(0)).unwrap();
        assert_eq!(s.connection().telemetry().srtt_ms, 100);
        s.peer(say(ACK, 1, 5001).win(30_000)).unwrap();
        // 100 ms before; now 60 s, the longest that is believed, or at least 32 s.
        let srtt = s.connection().telemetry().srtt_ms;
        let of = |rtt_ms: u32| (7 * 100 + rtt_ms) / 8;
        assert!(
            (of(32_000)..=of(60_000)).contains(&srtt),
            "{wait_ms}: {srtt}"
        );
    }
}

#[test]
fn rtt_comes_from_timestamps_also_of_retransmissions() {
    let syn = offering_sack().ts(100, 0);
    let config = Config {
        tail_loss_probe: false,
        ..STAMPED
    };
    let mut s = Script::accepted_with(config, syn, 30_000, 30_000);
    s.send(100);
    s.sent();
    s.wait_for_segment();
    let again = s.our_ts;
    s.now_us += 70_000;
    s.peer(say(ACK, 1, 101).ts(101, again)).unwrap();
    assert_eq!(s.connection().telemetry().srtt_ms, 70);
}

#[test]
fn without_timestamps_karn_holds() {
    let mut s = Script::accepted(PLAIN);
    s.send(100);
    s.sent();
    s.wait_for_segment();
    s.now_us += 70_000;
    s.peer(say(ACK, 1, 101)).unwrap();
    assert_eq!(
        s.connection().telemetry().srtt_ms,
        0,
        "no sample from what was sent twice"
    );
    s.send(100);
    s.sent();
    s.now_us += 70_000;
    s.peer(say(ACK, 1, 201)).unwrap();
    assert_eq!(s.connection().telemetry().srtt_ms, 70);
}

#[test]
fn sack_reports_every_range_the_latest_first() {
    let mut s = Script::accepted_with(SACK, offering_sack(), 8000, 8000);
    let blocks = |s: &mut Script, seq: u32| -> Vec<(u32, u32)> {
        s.peer(say(ACK, seq, 1).data(&pattern(0, 100))).unwrap();
        let ack = s.expect(ACK, 1, 1, 0);
        let irs = s.irs;
        let relative = |b: &SackBlock| (b.left.wrapping_sub(irs), b.right.wrapping_sub(irs));
        ack.header
            .options
            .sack
            .as_slice()
            .iter()
            .map(relative)
            .collect()
    };
    assert_eq!(blocks(&mut s, 501), [(501, 601)]);
    assert_eq!(blocks(&mut s, 1001), [(1001, 1101), (501, 601)]);
    assert_eq!(
        blocks(&mut s, 1501),
        [(1501, 1601), (1001, 1101), (501, 601)]
    );
    assert_eq!(
        blocks(&mut s, 1101),
        [(1001, 1201), (1501, 1601), (501, 601)],
        "grown"
    );
    assert_eq!(blocks(&mut s, 2001).len(), 4, "as many as fit");
    assert_eq!(
        blocks(&mut s, 3001),
        [(3001, 3101), (2001, 2101), (1001, 1201), (1501, 1601)]
    );
    // Filled from below, the ranges join the stream; the first one came twice.
    s.peer(say(ACK, 1, 1).data(&pattern(0, 1000))).unwrap();
    let ack = s.expect(ACK, 1, 1201, 0);
    let sack = ack.header.options.sack.as_slice();
    assert_eq!(sack.len(), 4);
    assert_eq!(sack[0].left.wrapping_sub(s.irs), 501);
}

#[test]
fn with_timestamps_three_blocks_fit() {
    let syn = offering_sack().ts(7, 0);
    let mut s = Script::accepted_with(STAMPED, syn, 8000, 8000);
    for n in (0..5).rev() {
        s.peer(say(ACK, 501 + n * 200, 1).data(b"x")).unwrap();
        let ack = s.expect(ACK, 1, 1, 0);
        assert_eq!(ack.header.options.sack.len() as u32, (5 - n).min(3));
    }
}

#[test]
fn dsack_reports_duplicates_once() {
    let mut s = Script::accepted_with(SACK, offering_sack(), 8000, 8000);
    s.peer(say(ACK, 1, 1).data(b"abcdef")).unwrap();
    s.expect(ACK, 1, 7, 0);
    let dsack = |s: &mut Script, segment: Say| -> Vec<(u32, u32)> {
        let _ = s.peer(segment);
        let ack = s.sent();
        let irs = s.irs;
        let relative = |b: &SackBlock| (b.left.wrapping_sub(irs), b.right.wrapping_sub(irs));
        ack.header
            .options
            .sack
            .as_slice()
            .iter()
            .map(relative)
            .collect()
    };
    assert_eq!(dsack(&mut s, say(ACK, 1, 1).data(b"abcdef")), [(1, 7)]);
    assert_eq!(
        dsack(&mut s, say(ACK, 4, 1).data(b"defghi")),
        [(4, 7)],
        "in part"
    );
    assert_eq!(
        dsack(&mut s, say(ACK, 20, 1).data(b"xyz")),
        [(20, 23)],
        "no duplicate"
    );
    assert_eq!(
        dsack(&mut s, say(ACK, 20, 1).data(b"xyz")),
        [(20, 23), (20, 23)],
        "held"
    );
}

#[test]
fn ecn_echo_until_cwr_and_one_reduction_per_window() {
    let (ece, cwr) = (Flags::ECE, Flags::CWR);
    let config = Config {
        ecn: true,
        initial_window: 10,
        ..PLAIN
    };
    let mut syn = say(SYN | ece | cwr, 0, 0).mss(1000).win(30_000);
    syn.options.sack_permitted = true;
    let mut s = Script::accepted_with(config, syn, 30_000, 8000);
    // Receiver: CE is echoed on every ACK until CWR.
    s.peer(say(ACK, 1, 1).data(b"a").win(30_000).ce()).unwrap();
    s.expect(ACK | ece, 1, 2, 0);
    s.peer(say(ACK, 2, 1).data(b"b").win(30_000)).unwrap();
    s.expect(ACK | ece, 1, 3, 0);
    s.peer(say(ACK | cwr, 3, 1).data(b"c").win(30_000)).unwrap();
    s.expect(ACK, 1, 4, 0);
    // Sender: ECE halves once per window, and is answered with CWR on new data.
    s.send(9000);
    for n in 0..9 {
        assert_eq!(s.expect(ACK, 1 + n * 1000, 4, 1000).ecn, 2, "ECT(0)");
    }
    s.now_us += 100_000;
    let before = cwnd(&s);
    s.peer(say(ACK | ece, 4, 1001).win(30_000)).unwrap();
    let after = cwnd(&s);
    assert!(after < before && after >= before / 3, "{after} of {before}");
    s.peer(say(ACK | ece, 4, 2001).win(30_000)).unwrap();
    s.peer(say(ACK | ece, 4, 8001).win(30_000)).unwrap();
    assert_eq!(cwnd(&s), after, "once");
    s.send(2000);
    let next = s.sent();
    assert_eq!(next.header.flags.without(Flags::PSH), ACK | cwr);
    assert!(!s.sent().header.flags.contains(cwr), "once");
}

/// A mark is echoed at once, and of eight segments from it on every second is acknowledged: its
/// sender has halved its window, and has little on its way. Another mark, before the sender has
/// reduced, is not echoed by an ACK of its own.
#[test]
fn a_mark_shortens_the_delay_of_acknowledgments_for_a_while() {
    let config = Config {
        ecn: true,
        ack_every: 4,
        ack_delay_ms: 500,
        ..PLAIN
    };
    let mut syn = say(SYN | Flags::ECE | Flags::CWR, 0, 0).mss(1000);
    syn.options.sack_permitted = true;
    let mut s = Script::accepted_with(config, syn, 30_000, 8000);
    let acknowledged: Vec<u32> = (1..24)
        .filter(|&seq| {
            let segment = say(ACK, seq, 1).data(b"x");
            let is_marked = seq == 2 || seq == 5;
            s.peer(if is_marked { segment.ce() } else { segment })
                .unwrap();
            s.poll().is_some()
        })
        .collect();
    assert_eq!(acknowledged, [2, 4, 6, 8, 10, 12, 16, 20]);
}

#[test]
fn the_same_mark_echoed_until_cwr_arrives_halves_once() {
    let (ece, cwr) = (Flags::ECE, Flags::CWR);
    let config = Config {
        ecn: true,
        initial_window: 10,
        ..PLAIN
    };
    let syn = say(SYN | ece | cwr, 0, 0).mss(1000).win(30_000);
    let mut s = Script::accepted_with(config, syn, 30_000, 8000);
    s.send(8000);
    while s.poll().is_some() {}
    s.peer(say(ACK | ece, 1, 1001).win(30_000)).unwrap();
    let halved = cwnd(&s);
    // All of the window is acknowledged, and there is nothing that could carry CWR.
    s.peer(say(ACK | ece, 1, 8001).win(30_000)).unwrap();
    for n in 0..5 {
        s.peer(say(ACK | ece, 1 + n, 8001).data(b"d").win(30_000))
            .unwrap();
        while s.poll().is_some() {}
    }
    assert_eq!(cwnd(&s), halved);
}

#[test]
fn a_retransmission_is_not_ect() {
    let (ece, cwr) = (Flags::ECE, Flags::CWR);
    let config = Config { ecn: true, ..PLAIN };
    let mut s = Script::accepted_with(config, say(SYN | ece | cwr, 0, 0).mss(1000), 30_000, 8000);
    s.send(10);
    assert_eq!(s.sent().ecn, 2);
    assert_eq!(s.wait_for_segment().0.ecn, 0, "RFC 3168 §6.1.5");
}

#[test]
fn an_idle_connection_starts_again_with_the_initial_window() {
    let mut s = in_flight(PLAIN, say(SYN, 0, 0).mss(1000).win(30_000), 10);
    while s.poll().is_some() {}
    for acked in (2..=21).map(|n| n * 1000 + 1) {
        duplicate(&mut s, acked);
        while s.poll().is_some() {}
    }
    assert!(cwnd(&s) > 20_000, "{}", cwnd(&s));
    s.wait_ms(10_000);
    s.send(1);
    s.sent();
    assert_eq!(cwnd(&s), 11_000, "RFC 5681 §4.1");
}

/// Losses at every single place of a transfer, with every kind of recovery: it completes
/// without a timeout where the feature promises that.
#[test]
fn every_single_loss_is_repaired() {
    let base = Config {
        rmss: 474,
        smss: 474,
        accept_window: 1896,
        ..Config::DEFAULT
    };
    for (name, config, no_timeout) in [
        ("RACK-TLP", base, true),
        (
            "RFC 6675",
            Config {
                rack: false,
                tail_loss_probe: false,
                ..base
            },
            false,
        ),
        (
            "New Reno",
            Config {
                sack: false,
                ..base
            },
            false,
        ),
    ] {
        for place in 1..40 {
            let mut net = Net::new(CLEAN, 1);
            net.lose.push((0, place));
            let out = transfer::transfer_in(net, config, 12_000, (4096, 4096));
            let timeouts = out.net.hosts[0].counters().retransmitted(Cause::Timeout);
            let handshake_or_close = place <= 1 || place + 3 >= out.net.segments[0];
            if no_timeout && !handshake_or_close {
                assert_eq!(timeouts, 0, "{name}, segment {place} lost");
            }
        }
    }
}

#[test]
fn a_transfer_survives_a_long_outage() {
    let mut net = Net::new(CLEAN, 9);
    net.lose.extend((10..22).map(|n| (0, n)));
    let config = Config {
        rmss: 474,
        smss: 474,
        accept_window: 1896,
        ..Config::DEFAULT
    };
    let out = transfer::transfer_in(net, config, 12_000, (4096, 4096));
    assert!(matches!(
        out.net.hosts[0].connection(out.client).unwrap().state(),
        State::TimeWait | State::Closed
    ));
}

#[test]
fn a_window_is_advised() {
    let telemetry = super::super::Telemetry {
        smss_bytes: 462,
        srtt_ms: 2_000,
        rtt_min_ms: 700,
        ..Default::default()
    };
    assert_eq!(telemetry.window_advised_bytes(3_500), 3 * 462 + 2 * 2_450);
    assert_eq!(telemetry.window_advised_bytes(0), 3 * 462);
}

/// A SACK block that reaches beyond SND.NXT is ignored as a whole.
#[test]
fn a_sack_block_beyond_what_was_sent_is_ignored() {
    for rack in [true, false] {
        let mut s = in_flight(Config { rack, ..SACK }, offering_sack(), 4);
        let before = s.connection().telemetry().inflight_bytes;
        sacking(&mut s, 1001, &[(2001, 29_001)]);
        assert_eq!(s.connection().telemetry().inflight_bytes, before);
        assert_eq!(s.connection().loss.sacked(), 0);
    }
}
