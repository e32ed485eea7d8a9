//! The tail loss probe: what answers it, and what it must not be taken for (RFC 8985 §7).

use super::super::Phase;
use super::super::prr::Prr;
use crate::tcp::facts::Facts;
use crate::tcp::tests::loss::{RACK, cwnd, offering_sack, sacking};
use crate::tcp::tests::*;
use crate::tcp::{Config, RetransmissionCause as Cause};
use crate::wire::tcp::Flags;

/// `segments` of 1000 octets from 1001 on, all sent; RTT 100 ms measured.
fn all_sent(config: Config, segments: u32) -> Script {
    let config = Config {
        initial_window: 10,
        ..config
    };
    let mut s = Script::accepted_with(config, offering_sack(), 30_000, 30_000);
    s.send(1000);
    s.expect(ACK, 1, 1, 1000);
    s.now_us += 100_000;
    sacking(&mut s, 1001, &[]);
    s.send(segments as usize * 1000);
    for n in 0..segments {
        s.expect(ACK, 1001 + n * 1000, 1, 1000);
    }
    s.silent();
    s
}

/// As [`all_sent`], and the last segment sent again by a probe.
fn probed(config: Config, segments: u32) -> Script {
    let mut s = all_sent(config, segments);
    let (probe, _) = s.wait_for_segment();
    let at = probe.header.seq.wrapping_sub(s.iss);
    assert_eq!(at, segments * 1000 + 1, "the last one again");
    assert_eq!(s.tcp.counters().retransmitted(Cause::TailLossProbe), 1);
    s
}

fn phase(s: &Script) -> Phase {
    s.connection().loss.phase
}

/// The probe was needless, the retransmission was not: a DSACK of the one says nothing of the
/// other.
#[test]
fn the_duplicate_of_a_probe_does_not_undo_a_recovery() {
    let mut s = probed(RACK, 5);
    let before = cwnd(&s);
    s.now_us += 10_000;
    // The first was lost; the others were late, the last of them not lost either.
    sacking(&mut s, 1001, &[(2001, 6001)]);
    s.expect(ACK, 1001, 1, 1000);
    assert_eq!(phase(&s), Phase::Recovery);
    s.now_us += 90_000;
    sacking(&mut s, 1001, &[(5001, 6001), (2001, 6001)]);
    assert_eq!(phase(&s), Phase::Recovery);
    sacking(&mut s, 6001, &[]);
    assert!(cwnd(&s) < before, "{} of {before}", cwnd(&s));
    // Had the first come twice as well, it would be undone.
    sacking(&mut s, 6001, &[(1001, 2001)]);
    assert_eq!(cwnd(&s), before);
}

#[test]
fn the_duplicate_of_a_probe_does_not_undo_a_timeout() {
    let mut s = probed(RACK, 5);
    let (again, _) = s.wait_for_segment();
    assert_eq!(again.header.seq.wrapping_sub(s.iss), 1001);
    assert_eq!(phase(&s), Phase::Loss);
    sacking(&mut s, 1001, &[(5001, 6001), (5001, 6001)]);
    assert_eq!(phase(&s), Phase::Loss);
    assert_eq!(cwnd(&s), 1000);
}

/// RFC 8985 §7.4.2: the probe's own duplicate ends its episode, no other does.
#[test]
fn only_its_own_duplicate_clears_a_probe() {
    for (duplicate, is_own) in [
        ((1, 1001), false),
        ((1001, 2001), false),
        ((2001, 3001), true),
    ] {
        let mut s = probed(RACK, 2);
        let before = cwnd(&s);
        s.now_us += 100_000;
        sacking(&mut s, 3001, &[]);
        sacking(&mut s, 3001, &[duplicate]);
        s.send(1000);
        s.expect(ACK, 3001, 1, 1000);
        s.now_us += 100_000;
        sacking(&mut s, 4001, &[]);
        assert_eq!(cwnd(&s) >= before, is_own, "{duplicate:?}");
    }
}

/// RFC 8985 §7.2: no probe is scheduled in recovery, and one scheduled before gives way to the
/// retransmission timeout, counted from where recovery begins.
#[test]
fn recovery_puts_the_timeout_in_the_place_of_the_probe() {
    let mut s = all_sent(RACK, 5);
    s.now_us += 130_000;
    sacking(&mut s, 1001, &[(2001, 6001)]);
    s.expect(ACK, 1001, 1, 1000);
    assert_eq!(phase(&s), Phase::Recovery);
    let rto = u64::from(s.connection().telemetry().rto_ms);
    let (again, waited) = s.wait_for_segment();
    assert_eq!(again.header.seq.wrapping_sub(s.iss), 1001);
    assert_eq!(s.tcp.counters().retransmitted(Cause::TailLossProbe), 0);
    assert_eq!(s.tcp.counters().retransmitted(Cause::Timeout), 1);
    assert_eq!(waited, rto);
}

/// RFC 8985 §7.2 has no probes in recovery; having answered a mark is none.
#[test]
fn a_tail_is_probed_though_a_mark_reduced_the_window() {
    let mut s = all_sent(RACK, 5);
    s.now_us += 100_000;
    mark(&mut s, 3001);
    assert_eq!(phase(&s), Phase::Reduced);
    s.wait_for_segment();
    assert_eq!(s.tcp.counters().retransmitted(Cause::TailLossProbe), 1);
}

/// The peer echoes a congestion mark.
fn mark(s: &mut Script, ack: u32) {
    let slot = &mut s.tcp.memory.connections[0];
    let connection = slot.0.as_mut().expect("the script's connection");
    connection.facts.set(Facts::ECN);
    s.peer(say(ACK | Flags::ECE, 1, ack).win(30_000)).unwrap();
}

/// RFC 3168 §6.1.2: one reduction for the marks and drops of one window of data.
#[test]
fn a_loss_in_the_window_of_a_mark_reduces_no_further() {
    let mut s = all_sent(RACK, 8);
    s.now_us += 100_000;
    mark(&mut s, 2001);
    let ssthresh = s.connection().telemetry().ssthresh_bytes;
    assert_eq!(ssthresh, 3500, "half of what is out");
    s.now_us += 30_000;
    sacking(&mut s, 2001, &[(3001, 9001)]);
    assert_eq!(phase(&s), Phase::Recovery);
    assert_eq!(s.connection().telemetry().ssthresh_bytes, ssthresh);
}

/// Once all of that window is acknowledged, a loss is one of another window.
#[test]
fn a_loss_behind_the_window_of_a_mark_reduces_again() {
    let mut s = all_sent(RACK, 8);
    s.now_us += 100_000;
    mark(&mut s, 2001);
    s.now_us += 30_000;
    sacking(&mut s, 9001, &[]);
    s.send(3000);
    s.expect(ACK | Flags::CWR, 9001, 1, 1000);
    s.expect(ACK, 10_001, 1, 1000);
    s.expect(ACK, 11_001, 1, 1000);
    s.now_us += 100_000;
    sacking(&mut s, 9001, &[(10_001, 12_001)]);
    s.wait_for_segment();
    assert_eq!(phase(&s), Phase::Recovery);
    assert_eq!(s.connection().telemetry().ssthresh_bytes, 2000);
}

/// RFC 5681 §3.1: a timeout halves whatever came before it.
#[test]
fn a_timeout_in_the_window_of_a_mark_reduces_further() {
    let config = Config {
        tail_loss_probe: false,
        ..RACK
    };
    let mut s = all_sent(config, 8);
    s.now_us += 100_000;
    mark(&mut s, 2001);
    s.wait_for_segment();
    assert_eq!(phase(&s), Phase::Loss);
    assert_eq!(s.connection().telemetry().ssthresh_bytes, 2000);
}

/// RFC 8985 §7.4, RFC 3168 §6.1.2: what a probe repaired was lost in the window of the mark, whose
/// reduction has answered it.
#[test]
fn a_probe_in_the_window_of_a_mark_reduces_no_further() {
    let mut s = all_sent(RACK, 5);
    s.now_us += 100_000;
    mark(&mut s, 3001);
    assert_eq!(phase(&s), Phase::Reduced);
    let before = s.connection().telemetry();
    let (probe, _) = s.wait_for_segment();
    assert_eq!(probe.header.seq.wrapping_sub(s.iss), 5001);
    s.now_us += 100_000;
    sacking(&mut s, 6001, &[]);
    assert_eq!(
        phase(&s),
        Phase::Reduced,
        "until more than that window is acknowledged"
    );
    s.send(1000);
    s.sent();
    s.now_us += 100_000;
    // No DSACK came: the probe repaired a loss.
    sacking(&mut s, 7001, &[]);
    let after = s.connection().telemetry();
    assert_eq!(phase(&s), Phase::Open);
    assert_eq!(after.ssthresh_bytes, before.ssthresh_bytes);
    assert!(after.cwnd_bytes >= before.cwnd_bytes);
}

/// A recovery that is under way is not ended, nor its window reduced, by what a probe before it
/// repaired.
#[test]
fn a_probe_is_not_judged_in_a_recovery() {
    for under_way in [Phase::Recovery, Phase::Loss, Phase::Resize] {
        let mut s = probed(RACK, 5);
        s.send(1000);
        s.sent();
        let slot = &mut s.tcp.memory.connections[0];
        let connection = slot.0.as_mut().expect("the script's connection");
        let loss = &mut connection.loss;
        match under_way {
            Phase::Recovery => loss.begin_recovery(Prr::new(6000)),
            _ => loss.phase = under_way,
        }
        loss.recover = loss.recover.plus(10_000);
        let ssthresh = s.connection().telemetry().ssthresh_bytes;
        s.now_us += 100_000;
        sacking(&mut s, 7001, &[]);
        assert_eq!(phase(&s), under_way);
        assert_eq!(s.connection().telemetry().ssthresh_bytes, ssthresh);
        assert!(!s.connection().loss.has_tail_probe());
    }
}
