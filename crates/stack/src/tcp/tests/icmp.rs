//! ICMPv6 errors: soft, hard, packet too big; forged ones.

use super::super::{Config, Error, IcmpError, RetransmissionCause as Cause, State};
use super::loss::RACK;
use super::*;

/// Delivers an ICMPv6 error about the engine's segment at `seq` (relative).
fn icmp(s: &mut Script, seq: u32, error: IcmpError) {
    undelivered(s, seq, Some(error));
}

/// As [`icmp`]; `None`: the engine's own link gave the segment up.
fn undelivered(s: &mut Script, seq: u32, error: Option<IcmpError>) {
    let mut quoted = [0; 8];
    quoted[..2].copy_from_slice(&s.local_port.to_be_bytes());
    quoted[2..4].copy_from_slice(&PEER_PORT.to_be_bytes());
    quoted[4..].copy_from_slice(&s.iss.wrapping_add(seq).to_be_bytes());
    let now = s.now();
    match error {
        Some(error) => s.tcp.on_icmp_error(&US, &PEER, 0, &quoted, error, now),
        None => (s.tcp).on_undelivered(&US, &PEER, 0, &quoted, None, now),
    }
}

#[test]
fn a_hard_error_ends_a_connection_attempt_only() {
    let (mut s, _) = Script::connecting(PLAIN);
    icmp(&mut s, 0, IcmpError::Hard);
    assert_eq!(s.state(), State::Closed);
    assert_eq!(s.connection().error(), Some(Error::Unreachable));
    s.silent();

    let mut s = Script::accepted(PLAIN);
    s.send(10);
    s.sent();
    icmp(&mut s, 1, IcmpError::Hard);
    assert_eq!(
        s.state(),
        State::Established,
        "RFC 5461: may pass, may be forged"
    );
}

#[test]
fn a_soft_error_names_the_reason_of_a_timeout() {
    let (mut s, _) = Script::connecting(Config {
        syn_retransmissions_max: 1,
        ..PLAIN
    });
    icmp(&mut s, 0, IcmpError::Soft);
    assert_eq!(s.state(), State::SynSent);
    s.wait_for_segment();
    s.wait_ms(2_001);
    s.silent();
    assert_eq!(s.connection().error(), Some(Error::Unreachable));
}

#[test]
fn packet_too_big_makes_segments_smaller_and_sends_again() {
    let config = Config {
        smss: 1440,
        rmss: 1440,
        ..PLAIN
    };
    let mut s = Script::accepted_with(config, say(SYN, 0, 0).mss(1440).win(30_000), 30_000, 8000);
    s.send(4000);
    s.expect(ACK, 1, 1, 1440);
    s.expect(ACK, 1441, 1, 1440);
    let cwnd = s.connection().telemetry().cwnd_bytes;
    icmp(&mut s, 1, IcmpError::PacketTooBig(1280));
    s.expect(ACK, 1, 1, 1220);
    assert_eq!(s.connection().telemetry().smss_bytes, 1220);
    assert_eq!(s.connection().telemetry().cwnd_bytes, cwnd, "no congestion");
    let counted = |s: &Script, cause| s.tcp.counters().retransmitted(cause);
    assert_eq!(counted(&s, Cause::PacketTooBig), 1);
    assert_eq!(counted(&s, Cause::Timeout), 0);
    let mut next = 1221;
    while let Some(seg) = s.poll() {
        assert_eq!(seg.header.seq.wrapping_sub(s.iss), next);
        assert!(seg.payload.len() <= 1220);
        next += seg.payload.len() as u32;
    }
    s.peer(say(ACK, 1, next).win(30_000)).unwrap();
    assert!(!s.connection().telemetry().is_recovering);
    assert!(counted(&s, Cause::PacketTooBig) > 1);
    assert_eq!(counted(&s, Cause::Timeout), 0);
}

#[test]
fn forged_errors_are_ignored() {
    let cases = [
        ("below IPv6's minimum", 1, IcmpError::PacketTooBig(600)),
        ("larger than what we send", 1, IcmpError::PacketTooBig(9000)),
        ("not on the way: before", 0, IcmpError::PacketTooBig(1280)),
        (
            "not on the way: behind",
            5001,
            IcmpError::PacketTooBig(1280),
        ),
    ];
    for (name, seq, error) in cases {
        let config = Config {
            smss: 1440,
            ..PLAIN
        };
        let mut s = Script::accepted_with(config, say(SYN, 0, 0).mss(1440), 30_000, 8000);
        s.send(4000);
        while s.poll().is_some() {}
        icmp(&mut s, seq, error);
        s.silent();
        assert_eq!(s.connection().telemetry().smss_bytes, 1440, "{name}");
    }
    // Cut short, or of nobody's connection.
    let (mut s, _) = Script::connecting(PLAIN);
    let now = s.now();
    for quoted in [&[][..], &[0; 7], &[0; 8]] {
        s.tcp
            .on_icmp_error(&US, &PEER, 0, quoted, IcmpError::Hard, now);
    }
    assert_eq!(s.state(), State::SynSent);
}

/// What was too big for the path is lost for certain, whatever an earlier recovery remembers:
/// neither an old timestamp nor a DSACK takes anything back.
#[test]
fn sending_smaller_segments_is_never_undone() {
    for in_recovery in [false, true] {
        let config = Config {
            smss: 1440,
            initial_window: 10,
            ..RACK
        };
        let config = Config {
            timestamps: true,
            tail_loss_probe: false,
            ..config
        };
        let syn = say(SYN, 0, 0).mss(1440).sack_permitted().win(30_000);
        let mut s = Script::accepted_with(config, syn.ts(100, 0), 30_000, 8000);
        s.send(20_000);
        while s.poll().is_some() {}
        // A timeout that was right: cwnd stays small when it is over.
        let original = s.our_ts;
        s.wait_for_segment();
        if !in_recovery {
            let all = s.connection().snd_nxt.get().wrapping_sub(s.iss);
            s.peer(say(ACK, 1, all).win(30_000)).unwrap();
            assert!(!s.connection().telemetry().is_recovering);
            while s.poll().is_some() {}
        }
        let una = s.connection().snd_una.get().wrapping_sub(s.iss);
        icmp(&mut s, una, IcmpError::PacketTooBig(1280));
        let (cwnd, ssthresh) = reduced(&s);
        s.now_us += 100_000;
        while s.poll().is_some() {}
        let ack = say(ACK, 1, una + 1208).win(30_000).ts(101, original);
        s.peer(ack).unwrap();
        assert!(s.connection().telemetry().is_recovering);
        assert_eq!(reduced(&s).1, ssthresh, "in recovery: {in_recovery}");
        assert!(reduced(&s).0 <= cwnd + 1208, "in recovery: {in_recovery}");
    }
}

/// Nor does a timeout that was needless bring back what was too big.
#[test]
fn a_timeout_after_the_path_shrank_is_not_undone() {
    let config = Config {
        smss: 1440,
        initial_window: 10,
        timestamps: true,
        tail_loss_probe: false,
        ..RACK
    };
    let syn = say(SYN, 0, 0).mss(1440).sack_permitted().win(30_000);
    let mut s = Script::accepted_with(config, syn.ts(100, 0), 30_000, 8000);
    s.send(20_000);
    while s.poll().is_some() {}
    icmp(&mut s, 1, IcmpError::PacketTooBig(1280));
    s.now_us += 100_000;
    while s.poll().is_some() {}
    let small = s.our_ts;
    s.wait_for_segment();
    let ack = say(ACK, 1, 1 + 1208).win(30_000).ts(101, small);
    s.peer(ack).unwrap();
    assert!(s.connection().telemetry().is_recovering);
}

/// cwnd and ssthresh of the connection, bytes.
fn reduced(s: &Script) -> (u16, u16) {
    let telemetry = s.connection().telemetry();
    (telemetry.cwnd_bytes, telemetry.ssthresh_bytes)
}

/// A sender with one segment in flight, and the waits before its next `count` retransmissions, ms;
/// `report` is called behind each.
fn waits(s: &mut Script, count: usize, mut report: impl FnMut(&mut Script)) -> Vec<u64> {
    let mut waits = Vec::new();
    for _ in 0..count {
        let (segment, waited) = s.wait_for_segment();
        assert_eq!(segment.payload.len(), 100);
        waits.push(waited);
        report(s);
    }
    waits
}

/// A sender of two segments, of which nothing was acknowledged.
fn unanswered() -> Script {
    let mut s = Script::accepted(PLAIN);
    s.send(100);
    s.expect(ACK, 1, 1, 100);
    s
}

/// RFC 6069 §4.2: the RTO stays what it was while each retransmission is reported.
#[test]
fn an_interruption_takes_the_doubling_back() {
    let mut s = unanswered();
    let reported = waits(&mut s, 5, |s| icmp(s, 1, IcmpError::Disrupted));
    assert_eq!(reported, [reported[0]; 5]);
    // The last one was reported, the next ones are not: one after another they double.
    let silent = waits(&mut s, 3, |_| ());
    let first = reported[0];
    assert_eq!(silent, [first, first * 2, first * 4]);
    // A report takes one doubling back, not all.
    icmp(&mut s, 1, IcmpError::Disrupted);
    assert_eq!(waits(&mut s, 1, |_| ()), [first * 4]);
}

/// The report counts from when the timer was armed: where the shorter time is over, at once.
#[test]
fn a_late_report_lets_the_timer_expire() {
    let mut s = unanswered();
    let (_, first) = s.wait_for_segment();
    s.wait_ms(first + 1);
    s.silent();
    icmp(&mut s, 1, IcmpError::Disrupted);
    let (_, waited) = s.wait_for_segment();
    assert_eq!(waited, 0);
}

/// What is not about the oldest segment, or no interruption, takes nothing back.
#[test]
fn only_an_interruption_of_the_oldest_segment_counts() {
    for (seq, error) in [
        (1, IcmpError::Soft),
        (1, IcmpError::Hard),
        (2, IcmpError::Disrupted),
        (0, IcmpError::Disrupted),
    ] {
        let mut s = unanswered();
        // Before the first retransmission there is nothing to take back.
        icmp(&mut s, 1, IcmpError::Disrupted);
        let waits = waits(&mut s, 3, |s| icmp(s, seq, error));
        assert_eq!(waits[1..], [waits[0] * 2, waits[0] * 4], "{seq} {error}");
    }
}

/// Doublings that are left of an earlier timeout are no interruption's: before the first timeout of
/// a segment, a report takes none of them back.
#[test]
fn a_report_before_the_timeout_takes_no_kept_doubling_back() {
    let wait = |is_reported: bool| {
        let mut s = unanswered();
        let first = waits(&mut s, 2, |_| ())[0];
        // It acknowledges a retransmission: without timestamps the RTO stays doubled.
        s.peer(say(ACK, 1, 101)).unwrap();
        s.send(100);
        s.expect(ACK, 101, 1, 100);
        if is_reported {
            icmp(&mut s, 101, IcmpError::Disrupted);
        }
        let next = waits(&mut s, 1, |_| ())[0];
        assert!(next > first, "{next} {first}");
        next
    };
    assert_eq!(wait(true), wait(false));
}

/// What the own link gave up before the first timeout is sent again after the least RTO; an ICMPv6
/// error, which anybody may forge, leaves the timer.
#[test]
fn what_the_own_link_gave_up_is_sent_again_soon() {
    for (seq, error, is_sooner) in [
        (101, None, true),
        (102, None, false),
        (101, Some(IcmpError::Disrupted), false),
    ] {
        let mut s = Script::accepted(PLAIN);
        // Round trips of 900 ms make an RTO of 2,700 ms.
        s.send(100);
        s.expect(ACK, 1, 1, 100);
        s.wait_ms(900);
        s.peer(say(ACK, 1, 101)).unwrap();
        s.send(100);
        s.expect(ACK, 101, 1, 100);
        let least = u64::from(PLAIN.rto_min_ms);
        s.wait_ms(100);
        s.silent();
        undelivered(&mut s, seq, error);
        let (_, waited) = s.wait_for_segment();
        assert_eq!(waited == least, is_sooner, "{seq} {error:?}: {waited}");
        assert!(is_sooner || waited > least);
    }
}

/// Each copy of a report takes one doubling back, and all of them never more than there are.
#[test]
fn copies_of_a_report_leave_the_undoubled_timeout() {
    let mut s = unanswered();
    let first = waits(&mut s, 3, |_| ())[0];
    for _ in 0..8 {
        icmp(&mut s, 1, IcmpError::Disrupted);
    }
    assert_eq!(waits(&mut s, 2, |_| ()), [first, first * 2]);
}

/// A timer that the user timeout has cut short is brought forward to no less than the RTO.
#[test]
fn a_report_ahead_of_the_user_timeout_leaves_the_whole_rto() {
    let second = |user_timeout_ms| {
        let mut s = Script::accepted(Config {
            user_timeout_ms,
            ..PLAIN
        });
        s.send(100);
        s.expect(ACK, 1, 1, 100);
        let waits = waits(&mut s, 2, |_| ());
        assert_eq!(waits, [1_000, 2_000]);
        s.wait_ms(500);
        s.silent();
        icmp(&mut s, 1, IcmpError::Disrupted);
        s
    };
    // 6.5 s: the next timeout, due behind 4 s, was cut to 3.5 s; now it comes 2 s later.
    let mut s = second(6_500);
    let (segment, waited) = s.wait_for_segment();
    assert_eq!((segment.payload.len(), waited), (100, 2_000));
    // 5 s: the limit comes before that.
    let mut s = second(5_000);
    let (segment, waited) = s.wait_for_segment();
    assert!(segment.header.flags.contains(RST));
    assert_eq!(waited, 1_500);
    assert_eq!(s.connection().error(), Some(Error::UserTimeout));
}

/// A way that stays interrupted ends the connection as late as one that is silent. Only an ICMPv6
/// message is a soft error.
#[test]
fn a_lasting_interruption_ends_the_connection_no_sooner() {
    let end = |report: Option<Option<IcmpError>>| {
        let mut s = unanswered();
        let start = s.now_us;
        let mut count = 0;
        loop {
            let (segment, _) = s.wait_for_segment();
            if segment.header.flags.contains(RST) {
                break;
            }
            count += 1;
            if let Some(error) = report {
                undelivered(&mut s, 1, error);
            }
        }
        ((s.now_us - start) / 1000, count, s.connection().error())
    };
    let (silent_ms, silent, error) = end(None);
    assert_eq!((silent, error), (12, Some(Error::TimedOut)));
    let (given_up_ms, given_up, error) = end(Some(None));
    assert_eq!(error, Some(Error::TimedOut));
    let (reported_ms, reported, error) = end(Some(Some(IcmpError::Disrupted)));
    assert_eq!(error, Some(Error::Unreachable));
    assert_eq!((given_up_ms, given_up), (reported_ms, reported));
    assert!(reported_ms >= silent_ms, "{reported_ms} {silent_ms}");
    assert!(
        reported_ms <= silent_ms + 1_000,
        "{reported_ms} {silent_ms}"
    );
    assert!(reported > 255, "more than is counted: {reported}");
}
