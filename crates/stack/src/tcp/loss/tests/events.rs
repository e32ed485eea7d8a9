//! Loss recovery alone, without a connection around it: one event in, and what it changes.

use super::super::control::Algorithm;
use super::super::notes::Notes;
use super::super::prr::Prr;
use super::super::scoreboard::{Delivery, NONE};
use super::super::{CongestionAlgorithm, Loss, Phase, Sender};
use crate::tcp::Config;
use crate::tcp::seq::SeqNum;
use crate::tcp::tests::loss::RACK;

/// Everything up to `una` is acknowledged, and sent up to `nxt`; segments of 1000 bytes.
fn sender(config: &Config, una: u32, nxt: u32) -> Sender<'_> {
    Sender {
        config,
        una: SeqNum::new(una),
        nxt: SeqNum::new(nxt),
        now_ms: 200,
        smss: 1000,
        srtt_ms: 100,
        has_sack: true,
    }
}

/// So many segments of 1000 bytes from 0 on, sent at 0 ms; cwnd is ten segments.
fn sent(segments: u32) -> Loss {
    sent_with(segments, CongestionAlgorithm::NewReno)
}

fn sent_with(segments: u32, algorithm: CongestionAlgorithm) -> Loss {
    let mut loss = Loss::new(algorithm);
    loss.begin_at(SeqNum::new(0));
    loss.begin(1000, 10);
    for _ in 0..segments {
        loss.on_sent(1000, 0);
    }
    loss
}

/// An acknowledgment at 200 ms of `acked` bytes, and of what lies between `held`.
fn take_in(loss: &mut Loss, acked: u32, held: Option<(u32, u32)>) -> Delivery {
    let mut delivery = Delivery {
        acked,
        ..loss.delivery(200, NONE)
    };
    if let Some((left, right)) = held {
        loss.on_sacked(left, right, &mut delivery);
    }
    loss.on_acked(SeqNum::new(acked), &mut delivery);
    loss.on_delivered(&delivery);
    delivery
}

/// RFC 9937 §6.2: `SafeACK` is an ACK that advances SND.UNA and shows no further loss.
#[test]
fn an_ack_that_tells_of_a_loss_is_not_safe() {
    for (held, cwnd) in [
        (None, 9000 + 2000),
        // 2000 and 3000 are lost: six segments are on the way, and two were delivered.
        (Some((3000, 4000)), 6000 + 2000),
    ] {
        let mut loss = sent(10);
        loss.recover = SeqNum::new(10_000);
        loss.congestion.ssthresh = 20_000;
        loss.begin_recovery(Prr {
            delivered: 5000,
            sent: 9000,
            ..Prr::new(10_000)
        });
        let delivery = take_in(&mut loss, 1000, held);
        loss.judge(&delivery, false, &sender(&RACK, 1000, 10_000));
        assert_eq!(loss.phase(), Phase::Recovery);
        assert_eq!(loss.cwnd(), cwnd, "{held:?}");
    }
}

/// RFC 8985 §6.2 step 4: no window in recovery or above three segments held, unless the network was
/// seen to reorder; and never more than a smoothed round trip.
#[test]
fn racks_window_opens_where_the_network_reorders() {
    let window = |phase, reordered, held: u32, quarters: u8| {
        let mut loss = sent(10);
        loss.phase = phase;
        loss.min_rtt = 80;
        loss.reo.0 = (quarters - 1) << 4;
        loss.notes.put(Notes::REORDERED, reordered);
        let mut delivery = loss.delivery(200, NONE);
        loss.on_sacked(1000, 1000 + held, &mut delivery);
        loss.reordering_window_ms(&sender(&RACK, 0, 10_000))
    };
    for (phase, reordered, held, quarters, expected) in [
        (Phase::Open, false, 1000, 1, 20),
        (Phase::Open, false, 3000, 1, 0),
        (Phase::Open, true, 3000, 1, 20),
        (Phase::Recovery, false, 1000, 1, 0),
        (Phase::Loss, false, 1000, 1, 0),
        (Phase::Reduced, false, 1000, 1, 20),
        (Phase::Recovery, true, 1000, 1, 20),
        (Phase::Recovery, true, 1000, 5, 100),
        (Phase::Recovery, true, 1000, 6, 100),
    ] {
        let told = window(phase, reordered, held, quarters);
        assert_eq!(told, expected, "{phase:?} {reordered} {held} {quarters}");
    }
}

/// A reduction that can be undone, of a window of ten segments; the first is sent again at 150 ms.
fn reduced() -> Loss {
    let mut loss = sent(10);
    loss.notes.set(Notes::RACK);
    loss.enter_recovery(0, &sender(&RACK, 0, 10_000));
    loss.on_resent(0, 1000, 150);
    loss.on_repaired(1000, Some(150));
    loss
}

/// RFC 3522: the echo of an earlier time than the first retransmission's, while that recovery
/// lasts.
#[test]
fn only_an_earlier_echo_undoes_and_only_in_recovery() {
    for (echo, undoes) in [(149, true), (150, false), (151, false)] {
        let mut loss = reduced();
        assert_eq!(loss.on_echo(echo), undoes, "{echo}");
        assert_eq!(loss.phase() == Phase::Open, undoes);
    }
    for over in [Phase::Open, Phase::Reduced] {
        let mut loss = reduced();
        loss.phase = over;
        assert!(!loss.on_echo(149));
    }
}

#[test]
fn an_undo_takes_nothing_from_a_window_that_has_grown_since() {
    let mut loss = reduced();
    assert!(loss.cwnd() < 10_000);
    loss.congestion.cwnd = 12_000;
    loss.congestion.ssthresh = 11_000;
    loss.dup_acks = 4;
    assert!(loss.on_dsack(SeqNum::new(0), SeqNum::new(1000)));
    assert_eq!(loss.cwnd(), 12_000);
    assert_eq!(loss.congestion.ssthresh, u16::MAX);
    assert_eq!(loss.pipe(10_000, 1000), 10_000, "no duplicate counts");
}

/// RFC 3708 §3: each reduction counts its own retransmissions and their reports.
#[test]
fn a_reduction_begins_the_count_of_reports_anew() {
    let mut loss = reduced();
    loss.on_timeout(true, &sender(&RACK, 0, 10_000));
    loss.on_repaired(500, None);
    assert!(loss.on_dsack(SeqNum::new(0), SeqNum::new(500)), "all of it");

    let mut loss = reduced();
    assert!(loss.on_dsack(SeqNum::new(0), SeqNum::new(1000)));
    loss.on_timeout(true, &sender(&RACK, 0, 10_000));
    loss.on_repaired(500, None);
    // The same bytes were sent again for the other reduction, too.
    assert!(loss.on_dsack(SeqNum::new(0), SeqNum::new(500)));
    assert!(!loss.on_dsack(SeqNum::new(0), SeqNum::new(500)), "once");
}

/// RFC 9937 §6.2: `RecoverFS` is what was outstanding, less what was held before this ACK.
#[test]
fn prr_starts_from_what_was_in_the_network() {
    let mut loss = sent(10);
    let mut delivery = loss.delivery(200, NONE);
    loss.on_sacked(5000, 8000, &mut delivery);
    loss.enter_recovery(1000, &sender(&RACK, 0, 10_000));
    assert_eq!(loss.control.prr(), Some(&Prr::new(8000)));
    // Half of what was out, not of what cwnd allowed.
    assert_eq!(loss.cwnd(), 5000);
}

#[test]
fn a_timeout_forgets_what_came_before_it() {
    for is_first in [true, false] {
        let mut loss = sent(10);
        loss.dup_acks = 4;
        loss.recover = SeqNum::new(4000);
        loss.on_timeout(is_first, &sender(&RACK, 0, 10_000));
        assert_eq!(loss.phase(), Phase::Loss);
        assert_eq!(loss.recover, SeqNum::new(10_000), "{is_first}");
        assert_eq!(loss.dup_acks, 0, "{is_first}");
        assert_eq!(loss.notes.has(Notes::UNDO), is_first);
    }
}

/// What was too big for the path stays so: nothing takes that back.
#[test]
fn what_was_too_big_is_lost_for_certain() {
    let mut loss = sent(10);
    loss.on_too_big(SeqNum::new(10_000), 200);
    assert_eq!(loss.phase(), Phase::Resize);
    assert_eq!(loss.recover, SeqNum::new(10_000));
    loss.on_timeout(true, &sender(&RACK, 0, 10_000));
    assert_eq!(loss.phase(), Phase::Loss);
    assert!(!loss.notes.has(Notes::UNDO));

    let mut loss = reduced();
    let recover = loss.recover;
    loss.on_too_big(SeqNum::new(12_000), 200);
    assert_eq!((loss.phase(), loss.recover), (Phase::Recovery, recover));
    assert!(!loss.notes.has(Notes::UNDO));
}

/// Duplicate ACKs of a connection without SACK.
#[test]
fn duplicates_stand_for_segments_until_these_are_acknowledged() {
    let three = || {
        let mut loss = sent(10);
        for _ in 0..3 {
            loss.on_duplicate();
        }
        loss
    };
    let mut loss = three();
    assert!(!loss.is_plain(), "no header prediction");
    assert_eq!(loss.pipe(10_000, 1000), 7000);
    // The hole was one of the four that are acknowledged, and no duplicate stood for it.
    for (acked, left) in [(500, 3), (1000, 3), (2000, 2), (3000, 1), (4000, 0)] {
        let mut loss = three();
        loss.forget_duplicates(acked, 1000);
        assert_eq!(loss.dup_acks, left, "{acked}");
    }
    let config = Config {
        sack: false,
        ..RACK
    };
    loss.begin_recovery(Prr::new(10_000));
    loss.recover = SeqNum::new(5000);
    let at_end = Sender {
        has_sack: false,
        ..sender(&config, 5000, 10_000)
    };
    loss.leave_recovery(&at_end);
    assert_eq!((loss.phase(), loss.dup_acks), (Phase::Open, 0));
}

/// However much is sent without a loss, the end of the last reduction stays behind it.
#[test]
fn the_end_of_the_last_reduction_keeps_up() {
    let mut loss = sent(0);
    let mut una = 0_u32;
    for _ in 0..5 {
        una = una.wrapping_add(1 << 30);
        let mut delivery = loss.delivery(200, NONE);
        loss.on_acked(SeqNum::new(una), &mut delivery);
        assert_eq!(loss.recover, SeqNum::new(una.wrapping_sub(1)));
    }
}

/// RACK's times wrap within 50 days.
#[test]
fn rack_forgets_in_an_idle_time() {
    let mut loss = sent(2);
    let delivery = take_in(&mut loss, 1000, None);
    assert_eq!(delivery.newest_age, 200);
    assert!(loss.is_newest(SeqNum::new(1000)));
    assert!(!loss.is_newest(SeqNum::new(2000)));
    loss.on_idle_over();
    assert!(loss.is_newest(SeqNum::new(2000)));
}

/// RFC 5681 §3.2, RFC 9438 §4.6: what limited transmit sent beyond cwnd does not count for a mark.
#[cfg(feature = "cubic")]
#[test]
fn a_mark_reduces_what_cwnd_allowed() {
    let mut loss = sent_with(4, CongestionAlgorithm::Cubic);
    loss.congestion.cwnd = 2000;
    loss.on_ecn_echo(&sender(&RACK, 0, 4000));
    assert_eq!((loss.phase(), loss.cwnd()), (Phase::Reduced, 1400));
}
