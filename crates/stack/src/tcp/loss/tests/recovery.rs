//! The parts of loss recovery one by one: the scoreboard's answers, RACK's memory, PRR's
//! arithmetic, and what each change of phase forgets.

use super::super::Phase;
use super::super::control::Algorithm;
use super::super::notes::Notes;
use super::super::prr::Prr;
use super::super::reordering::Reordering;
use super::super::scoreboard::{Delivery, NONE, Scoreboard};
use crate::limits::SENT_RUNS_MAX;
use crate::tcp::facts::Facts;
use crate::tcp::tests::loss::{RACK, SACK, cwnd, in_flight, offering_sack, sacking};
use crate::tcp::tests::*;
use crate::tcp::{Config, Connection, State};
use crate::wire::tcp::Flags;

/// Runs of these lengths, sent at these times.
fn board(sent: &[(u16, u32)]) -> Scoreboard {
    let mut board = Scoreboard::NEW;
    for (len, at_ms) in sent {
        board.push(*len, *at_ms);
    }
    board
}

fn acknowledged(board: &Scoreboard, bytes: u32, now_ms: u32) -> Delivery {
    delivered(board, bytes, now_ms, 0)
}

fn delivered(board: &Scoreboard, bytes: u32, now_ms: u32, age_min: u32) -> Delivery {
    let mut board = *board;
    let mut delivery = board.delivery(now_ms, age_min);
    board.acknowledge(bytes, &mut delivery);
    delivery
}

/// The age and the end of the newest transmission delivered.
fn newest(delivery: &Delivery) -> Option<(u32, u32)> {
    (delivery.newest_age != NONE).then_some((delivery.newest_age, delivery.newest_end))
}

fn some((offset, len): (u32, u16)) -> Option<(u32, u16)> {
    (len > 0).then_some((offset, len))
}

fn hold(board: &mut Scoreboard, left: u32, right: u32) {
    let mut delivery = board.delivery(1000, 0);
    board.sack(left, right, &mut delivery);
}

/// RFC 8985 §6.2 steps 1 and 2: the newest transmission, by time and then by number.
#[test]
fn a_delivery_tells_of_the_newest_transmission() {
    let later = board(&[(100, 10), (100, 20), (100, 30)]);
    let delivery = acknowledged(&later, 250, 50);
    assert_eq!((delivery.bytes, delivery.round_trip()), (250, 20));
    assert_eq!(newest(&delivery), Some((20, 250)));

    let together = board(&[(100, 10), (100, 10)]);
    let delivery = acknowledged(&together, 200, 50);
    assert_eq!(newest(&delivery), Some((40, 200)));

    // What was sent again last is the newest, wherever it lies.
    let mut resent = board(&[(100, 10), (100, 20)]);
    resent.resend(0, 100, 40);
    let delivery = acknowledged(&resent, 200, 60);
    assert_eq!(newest(&delivery), Some((20, 100)));
    assert_eq!(
        delivery.round_trip(),
        NONE,
        "the other was sent once, but waited for the repair"
    );

    // Blocks may come in any order: of two sent at once the higher one counts.
    let mut unordered = board(&[(100, 10), (100, 10), (100, 10), (100, 10)]);
    let mut delivery = unordered.delivery(50, 0);
    unordered.sack(300, 400, &mut delivery);
    unordered.sack(100, 200, &mut delivery);
    assert_eq!(newest(&delivery), Some((40, 400)));
}

/// RFC 8985 §6.2 step 2: an ACK of the original transmission is no sample of the retransmission.
#[test]
fn an_answer_to_the_original_is_told_from_one_to_the_retransmission() {
    let mut resent = board(&[(100, 10)]);
    resent.resend(0, 100, 40);
    for (now, age_min, expected) in [
        (50, 20, None),
        (50, 11, None),
        (50, 10, Some((10, 100))),
        (70, 31, None),
        (70, 30, Some((30, 100))),
        (70, 29, Some((30, 100))),
    ] {
        let delivery = delivered(&resent, 100, now, age_min);
        assert_eq!(newest(&delivery), expected, "{now} {age_min}");
        assert_eq!(delivery.round_trip(), NONE, "Karn");
    }
}

/// RFC 6298 §3: whatever the order in which it tells of them, an acknowledgment of something sent
/// again measures nothing, and the next one does.
#[test]
fn what_covers_a_retransmission_measures_nothing() {
    let sent = || {
        let mut board = board(&[(100, 10), (100, 20), (100, 30), (100, 40)]);
        board.resend(100, 100, 60);
        board
    };
    for (acked, expected) in [
        (100, 90),
        (200, NONE),
        (300, NONE),
        (400, NONE),
        (150, NONE),
    ] {
        assert_eq!(acknowledged(&sent(), acked, 100).round_trip(), expected);
    }
    for (blocks, expected) in [
        (&[(100, 200)][..], NONE),
        (&[(200, 300)], 70),
        (&[(200, 300), (100, 200)], NONE),
        (&[(100, 200), (200, 300)], NONE),
        (&[(100, 300)], NONE),
    ] {
        let mut board = sent();
        let mut delivery = board.delivery(100, 0);
        for (left, right) in blocks {
            board.sack(*left, *right, &mut delivery);
        }
        assert_eq!(delivery.round_trip(), expected, "{blocks:?}");
        // What the peer held before is covered anew by the acknowledgment behind it.
        hold(&mut board, 100, 200);
        assert_eq!(acknowledged(&board, 100, 100).round_trip(), 90);
        assert_eq!(acknowledged(&board, 300, 100).round_trip(), NONE);
        board.acknowledge(300, &mut delivery);
        assert_eq!(acknowledged(&board, 100, 100).round_trip(), 60);
    }
}

/// RFC 6298 §5: a timeout backed off is over once new data were sent and acknowledged; what was
/// sent once before the repair says nothing of that, and of what the peer answered before it was
/// sent again nothing is known.
#[test]
fn new_data_behind_a_repair_end_the_backing_off() {
    let mut board = board(&[(100, 10), (100, 20)]);
    assert!(acknowledged(&board, 100, 50).answers_new_data());
    board.resend(0, 100, 60);
    board.push(100, 60);
    board.push(100, 70);
    for (acked, ends) in [(100, false), (200, false), (300, true), (400, true)] {
        let delivery = acknowledged(&board, acked, 100);
        assert_eq!(delivery.answers_new_data(), ends, "{acked}");
        assert_eq!(delivery.round_trip(), NONE);
        // However short the least round trip makes the retransmission's age look.
        let spurious = delivered(&board, acked, 61, 50);
        assert_eq!(spurious.answers_new_data(), ends, "{acked}");
    }
    // What the peer held before was sent again later than that.
    board.resend(100, 100, 80);
    hold(&mut board, 100, 200);
    assert!(!acknowledged(&board, 400, 100).answers_new_data());
}

/// RFC 8985 §6.2 step 3: delivered after something that was sent later.
#[test]
fn reordering_is_seen_in_what_was_sent_once() {
    let mut board = board(&[(100, 10), (100, 20), (100, 30)]);
    assert!(!acknowledged(&board, 100, 50).reordered);
    hold(&mut board, 100, 200);
    assert!(acknowledged(&board, 100, 50).reordered);
    let mut delivery = board.delivery(50, 0);
    board.sack(200, 300, &mut delivery);
    assert!(!delivery.reordered, "above all that was held");
    board.resend(0, 100, 40);
    assert!(!acknowledged(&board, 100, 90).reordered, "sent again");
}

/// `IsLost` of RFC 6675 §4, by its two criteria.
#[test]
fn ranges_and_bytes_above_count() {
    let seven = [(100, 0); 7];
    let lost = |held: &[(u32, u32)], smss| {
        let mut board = board(&seven);
        for (left, right) in held {
            hold(&mut board, *left, *right);
        }
        let news = board.lose_by_count(smss);
        assert_eq!(news, some(board.first_due()).is_some());
        assert!(!board.lose_by_count(smss), "news once");
        some(board.first_due())
    };
    let three = [(100, 200), (300, 400), (500, 600)];
    assert_eq!(lost(&three, 1000), Some((0, 100)), "three ranges");
    let two = [(100, 300), (400, 600)];
    assert_eq!(lost(&two, 1000), None, "neighbours are one range");
    assert_eq!(lost(&[(100, 300)], 100), None, "two segments");
    assert_eq!(lost(&[(100, 400)], 100), Some((0, 100)), "more than two");
}

#[test]
fn many_held_are_told_by_runs_or_by_bytes() {
    for (held, smss, many) in [
        (&[(1, 101), (102, 202)][..], 100, false),
        (&[(1, 202)], 100, true),
        (&[(1, 201)], 100, false),
        (&[(1, 151)], 100, false),
        (&[(1, 11), (12, 22), (23, 33)], 100, true),
    ] {
        let mut board = board(&[(400, 0)]);
        for (left, right) in held {
            hold(&mut board, *left, *right);
        }
        assert_eq!(board.is_sacked_beyond(smss), many, "{held:?}");
    }
}

/// RFC 6675 §4 `NextSeg` rule 3.
#[test]
fn only_what_lies_below_something_held_is_doubtful() {
    let mut board = board(&[(100, 0), (100, 0), (100, 0)]);
    assert_eq!(some(board.first_doubtful()), None);
    hold(&mut board, 0, 100);
    assert_eq!(some(board.first_doubtful()), None);
    hold(&mut board, 200, 300);
    assert_eq!(board.first_doubtful(), (100, 100));
}

#[test]
fn sending_again_marks_no_neighbour() {
    let mut board = board(&[(100, 10), (100, 10), (100, 10)]);
    board.resend(100, 100, 50);
    assert_eq!(acknowledged(&board, 100, 60).round_trip(), 50);
    assert_eq!(acknowledged(&board, 200, 60).round_trip(), NONE);
    let mut delivery = board.delivery(60, 0);
    board.sack(200, 300, &mut delivery);
    assert_eq!(delivery.round_trip(), 50);
}

/// RFC 6675 §5.1, RFC 8985 §6.3.
#[test]
fn a_timeout_loses_the_first_and_what_is_old() {
    let mut young = board(&[(100, 95), (100, 40), (100, 90)]);
    young.lose_all(100, 50);
    assert_eq!(young.gone(), 200, "the last is too young");
    assert_eq!(young.first_due(), (0, 100));
    let mut held = board(&[(100, 0), (100, 0)]);
    hold(&mut held, 100, 200);
    held.lose_all(100, 0);
    assert_eq!(held.sacked(), 100);
    // The peer holds the first byte, yet did not acknowledge it: it has reneged.
    let mut reneged = board(&[(100, 0), (100, 0)]);
    hold(&mut reneged, 0, 100);
    reneged.lose_all(100, 0);
    assert_eq!((reneged.sacked(), reneged.gone()), (0, 200));
}

/// After an undo, what was sent again is not sent a third time before it is lost anew.
#[test]
fn what_is_absolved_may_be_lost_again() {
    let mut board = board(&[(100, 0); 5]);
    board.lose_first(100);
    board.resend(0, 100, 10);
    board.absolve();
    assert_eq!(board.fates(), [0, 0, 0]);
    hold(&mut board, 100, 200);
    assert_eq!(some(board.first_doubtful()), None, "it was sent twice");
    hold(&mut board, 200, 500);
    assert!(board.lose_by_count(100));
    assert_eq!(board.first_due(), (0, 100));
}

/// What the peer holds is not sent again by what is sent around it.
#[test]
fn sending_again_passes_over_what_is_held() {
    let mut board = board(&[(100, 0), (100, 0), (100, 0)]);
    hold(&mut board, 100, 200);
    board.resend(0, 300, 10);
    assert_eq!(board.fates(), [100, 0, 200]);
    let mut delivery = board.delivery(20, 0);
    board.acknowledge(100, &mut delivery);
    let mut delivery = board.delivery(20, 0);
    board.acknowledge(100, &mut delivery);
    assert_eq!(delivery.resent_age, NONE);
}

#[test]
fn a_cleared_scoreboard_knows_nothing() {
    let mut board = board(&[(100, 0), (100, 0)]);
    board.clear();
    assert_eq!((board.gone(), board.tail_len()), (0, 0));
    board.push(50, 7);
    assert_eq!(board.tail_len(), 50);
}

/// A full table merges the neighbours sent closest together, and believes the later time.
#[test]
fn a_full_scoreboard_merges_what_was_sent_together() {
    let places = SENT_RUNS_MAX as u32;
    let full = |at: fn(u32) -> u32| {
        let mut board = Scoreboard::NEW;
        for n in 0..=places {
            board.push(100, at(n));
        }
        let mut lost = board;
        lost.lose_all(60_000, 0);
        (board, lost.first_due())
    };
    let (board, first) = full(|n| n * 100);
    assert_eq!(first, (0, 200), "of equals the first pair");
    assert_eq!(
        acknowledged(&board, 200, 500).round_trip(),
        400,
        "the later time"
    );
    let (_, first) = full(|n| n * 100 + if n >= 4 { 1 } else { 0 });
    assert_eq!(first, (0, 200));
    let (board, first) = full(|n| if n < 5 { n * 100 } else { n * 100 - 90 });
    assert_eq!(first, (0, 100), "the pair closest together");
    assert_eq!(
        acknowledged(&board, 450, 500).round_trip(),
        90,
        "that of 4 and 5"
    );
}

/// Ages of minutes are told, and told to be at least 32 s once something was sent since.
#[test]
fn ages_do_not_wrap() {
    for age in [70_000, 140_000] {
        let early = board(&[(100, 10)]);
        assert_eq!(acknowledged(&early, 100, 10 + age).round_trip(), age);
        let mut both = early;
        both.push(100, 10 + age);
        let now = 60 + age;
        assert_eq!(newest(&acknowledged(&both, 200, now)), Some((50, 200)));
        assert!((32_000..=age + 50).contains(&acknowledged(&both, 100, now).round_trip()));
        let (news, wait) = both.lose_by_time(now, (60, i32::MAX), 1_000);
        assert!(news && wait == 0, "the early one is lost");
        assert_eq!(both.first_due(), (0, 100));
        both.resend(0, 100, now);
        assert_eq!(newest(&acknowledged(&both, 100, now + 5)), Some((5, 100)));
    }
}

/// Whatever the epoch, what was sent within the last 32 s keeps its time, and older things are told
/// apart from it.
#[test]
fn a_change_of_epoch_keeps_the_times_of_what_is_young() {
    for (now, ages) in [
        (66_000, [33_000, 31_000, 16_000, 500, 0]),
        (98_000, [65_000, 63_000, 48_000, 32_500, 0]),
    ] {
        let mut board = board(&[(100, 33_000), (100, 35_000), (100, 50_000), (100, 65_500)]);
        // Its time does not fit what counts from the first epoch.
        board.push(100, now);
        let told = [0, 1, 2, 3, 4].map(|n| {
            let mut rest = board;
            let mut delivery = rest.delivery(now, 0);
            rest.acknowledge(n * 100, &mut delivery);
            acknowledged(&rest, 100, now).round_trip()
        });
        for (told, age) in told.into_iter().zip(ages) {
            match age {
                0..=32_000 => assert_eq!(told, age),
                _ => assert!((32_000..=age).contains(&told), "{told} of {age}"),
            }
        }
        assert!(
            told.is_sorted_by(|older, younger| older >= younger),
            "{told:?}"
        );
    }
}

/// RFC 8985 §6.2 step 5: of what was sent at one time, only what lies below the newest delivery is
/// lost, and the newest itself is not.
#[test]
fn of_what_was_sent_together_the_lower_is_lost() {
    for (newest_end, limit, due, gone, wait) in [
        (200, 90, (0, 100), 100, 0),
        (201, 90, (0, 100), 200, 0),
        (300, 90, (0, 100), 200, 0),
        (100, 90, (0, 0), 0, 0),
        // Nothing but the lower one is waited for.
        (200, 95, (0, 0), 0, 5),
        (100, 95, (0, 0), 0, 0),
    ] {
        let mut together = board(&[(100, 10), (100, 10), (100, 10)]);
        let (news, wait_told) = together.lose_by_time(100, (90, newest_end), limit);
        assert_eq!(news, gone > 0, "{newest_end} {limit}");
        assert_eq!(wait_told, wait, "{newest_end} {limit}");
        assert_eq!((together.first_due(), together.gone()), (due, gone));
    }
    // The longest wait counts, wherever it lies.
    let mut waiting = board(&[(100, 10), (100, 10), (100, 20)]);
    waiting.resend(0, 100, 40);
    assert_eq!(waiting.lose_by_time(100, (50, 300), 95), (false, 35));
    // Sent earlier, it is lost wherever it lies; sent later, nowhere.
    let mut apart = board(&[(100, 20), (100, 10), (100, 9)]);
    apart.resend(100, 100, 10);
    let (news, wait) = apart.lose_by_time(100, (90, 200), 90);
    assert!(news && wait == 0);
    assert_eq!((apart.first_due(), apart.gone()), ((200, 100), 100));
}

/// Where no two neighbours are alike, the last two become one: on the way if one of them is,
/// and never the source of a round trip if one was sent again.
#[test]
fn unlike_runs_merge_to_what_is_on_the_way() {
    let last = SENT_RUNS_MAX as u32 - 3;
    let mut board = Scoreboard::NEW;
    for n in 0..=last {
        board.push(100, n);
    }
    board.lose_all(100, 0);
    board.resend(100 * last, 100, 90);
    for n in (1..last).step_by(2) {
        hold(&mut board, 100 * n, 100 * (n + 1));
    }
    board.push(100, 60);
    // The one sent last but one was sent again since; what follows it is lost meanwhile.
    let (news, _) = board.lose_by_time(100, (20, i32::MAX), 30);
    assert!(news);
    // Room for two cuts: the last two become one.
    hold(&mut board, 0, 100);
    let mut delivery = board.delivery(120, 0);
    board.acknowledge(100 * last, &mut delivery);
    assert_eq!(some(board.first_due()), None);
    assert_eq!(acknowledged(&board, 200, 150).round_trip(), NONE);
    // Time tells of both.
    let (news, _) = board.lose_by_time(200, (50, i32::MAX), 60);
    assert!(news);
    assert_eq!(board.first_due(), (0, 200));
}

fn inner(s: &mut Script) -> &mut Connection<'static> {
    let slot = &mut s.tcp.memory.connections[0];
    slot.0.as_mut().expect("the script's connection")
}

/// Lets the retransmission timer expire.
fn time_out(s: &mut Script) {
    let connection = inner(s);
    let sender = connection.sender();
    let outcome = connection.loss.on_timeout(connection.retries == 0, &sender);
    connection.apply_loss_outcome(outcome);
}

/// The newest delivery stays, whatever older one follows it.
#[test]
fn rack_remembers_the_newest_delivery() {
    let mut s = in_flight(RACK, offering_sack(), 4);
    let at = |s: &Script| s.connection().loss.rack_end.get().wrapping_sub(s.iss);
    s.now_us += 100_000;
    sacking(&mut s, 1001, &[(3001, 4001)]);
    assert_eq!(at(&s), 4001);
    sacking(&mut s, 1001, &[(3001, 4001), (2001, 3001)]);
    assert_eq!(at(&s), 4001, "sent at the same time, and lower");
    sacking(&mut s, 4001, &[]);
    assert_eq!(at(&s), 4001);
    sacking(&mut s, 5001, &[]);
    assert_eq!(at(&s), 5001);
}

#[test]
fn round_trips_come_from_new_acknowledgments_alone() {
    let mut s = in_flight(RACK, offering_sack(), 4);
    assert_eq!(s.connection().telemetry().srtt_ms, 100);
    assert_eq!(s.connection().loss.min_rtt, 100);
    s.now_us += 164_000;
    sacking(&mut s, 1001, &[(2001, 3001)]);
    assert_eq!(s.connection().telemetry().srtt_ms, 100);
    assert_eq!(s.connection().loss.min_rtt, 101, "drifts by 1/64");
    sacking(&mut s, 3001, &[]);
    assert_eq!(s.connection().telemetry().srtt_ms, 108);
    assert_eq!(s.connection().loss.min_rtt, 101);
}

/// RFC 6298 §3, without SACK and without timestamps: the hole was repaired, and what had waited
/// behind it is as old as the repair. By timestamps the same acknowledgment measures.
#[test]
fn the_repair_of_a_hole_is_no_round_trip() {
    for by_timeout in [false, true] {
        let mut s = in_flight(PLAIN, say(SYN, 0, 0).mss(1000).win(30_000), 4);
        assert_eq!(s.connection().telemetry().srtt_ms, 100);
        if by_timeout {
            while s.poll().is_some() {}
            s.wait_for_segment();
        } else {
            s.now_us += 100_000;
            for _ in 0..3 {
                s.peer(say(ACK, 1, 1001).win(30_000)).unwrap();
            }
            s.expect(ACK, 1001, 1, 1000);
        }
        s.now_us += 900_000;
        let all = s.connection().snd_nxt.get().wrapping_sub(s.iss);
        s.peer(say(ACK, 1, all).win(30_000)).unwrap();
        let after = s.connection().telemetry();
        assert_eq!(after.srtt_ms, 100, "by timeout: {by_timeout}");
        assert_eq!(s.connection().loss.min_rtt, 100);
        // What is sent once from now on is measured.
        s.expect(ACK, all, 1, 1000);
        s.now_us += 180_000;
        s.peer(say(ACK, 1, all + 1000).win(30_000)).unwrap();
        assert_eq!(s.connection().telemetry().srtt_ms, 110);
    }
    let config = Config {
        rmss: 1012,
        smss: 1012,
        timestamps: true,
        ..PLAIN
    };
    let syn = say(SYN, 0, 0).mss(1012).win(30_000).ts(1, 0);
    let mut s = in_flight(config, syn, 4);
    s.now_us += 100_000;
    for _ in 0..3 {
        s.peer(say(ACK, 1, 1001).win(30_000)).unwrap();
    }
    s.expect(ACK, 1001, 1, 1000);
    let before = s.connection().telemetry().srtt_ms;
    s.now_us += 900_000;
    s.peer(say(ACK, 1, 5001).win(30_000)).unwrap();
    assert!(s.connection().telemetry().srtt_ms > before + 90);
}

/// RFC 6298 §5, without SACK and without timestamps.
#[test]
fn a_timeout_backed_off_ends_with_new_data_and_not_with_the_repair() {
    let mut s = in_flight(PLAIN, say(SYN, 0, 0).mss(1000).win(30_000), 4);
    while s.poll().is_some() {}
    s.wait_for_segment();
    assert_eq!(s.connection().rtt.doublings(), 1);
    let all = s.connection().snd_nxt.get().wrapping_sub(s.iss);
    s.now_us += 100_000;
    s.peer(say(ACK, 1, 3001).win(30_000)).unwrap();
    assert_eq!(s.connection().rtt.doublings(), 1, "sent before the repair");
    // Again from there on, as nothing is known of it; then new data.
    let mut next = s.sent();
    while next.header.seq.wrapping_sub(s.iss) < all {
        s.now_us += 100_000;
        let end = next.header.seq.wrapping_sub(s.iss) + 1000;
        s.peer(say(ACK, 1, end).win(30_000)).unwrap();
        next = s.sent();
        while let Some(seg) = s.poll() {
            next = seg;
        }
    }
    assert_eq!(s.connection().rtt.doublings(), 1, "nothing but the repair");
    s.now_us += 100_000;
    let end = next.header.seq.wrapping_sub(s.iss) + 1000;
    s.peer(say(ACK, 1, end).win(30_000)).unwrap();
    assert_eq!(s.connection().rtt.doublings(), 0);
    assert_eq!(s.connection().telemetry().srtt_ms, 100);
}

/// RFC 3708 §3: a report of what was sent after the reduction says nothing of what was sent again
/// for it, and does not undo it.
#[test]
fn a_duplicate_of_what_came_behind_a_recovery_does_not_undo_it() {
    for (duplicate, is_undone) in [((7001, 8001), false), ((1001, 2001), true)] {
        let mut s = in_flight(RACK, offering_sack(), 6);
        let before = cwnd(&s);
        s.now_us += 130_000;
        sacking(&mut s, 1001, &[(2001, 7001)]);
        s.expect(ACK, 1001, 1, 1000);
        // Recovery ends at 7001; this is new.
        s.expect(ACK, 7001, 1, 1000);
        let recovery = s.connection().loss;
        assert_eq!(recovery.recover.get().wrapping_sub(s.iss), 7001);
        s.now_us += 50_000;
        if is_undone {
            sacking(&mut s, 2001, &[duplicate]);
            assert_eq!(s.connection().loss.phase, Phase::Open);
            assert!(cwnd(&s) >= before);
        } else {
            // The network doubled the new segment, and the first is still on the way.
            sacking(&mut s, 1001, &[duplicate, (2001, 8001)]);
            let after = s.connection().loss;
            assert_eq!(after.phase, Phase::Recovery);
            assert_eq!(after.undo_left, recovery.undo_left);
            assert_eq!(after.recover, recovery.recover, "the same recovery");
        }
    }
}

/// RFC 8985 §6.2 step 4: DSACKs widen the window, to a limit, once for each time that something
/// was sent again, and for 16 recoveries.
#[test]
fn racks_window_grows_by_dsacks_and_shrinks_by_recoveries() {
    let mut s = in_flight(RACK, offering_sack(), 6);
    s.now_us += 100_000;
    for reductions in 1..=20 {
        for _ in 0..3 {
            sacking(&mut s, 1001, &[(1, 1001)]);
            let recovery = s.connection().loss;
            assert_eq!(recovery.reo.quarters(), reductions.min(15) + 1);
            assert_eq!(recovery.reo.0 & 15, 15);
        }
        time_out(&mut s);
    }
    for (before, left) in [(0xf1, 0xf0), (0xf0, 0)] {
        let mut s = in_flight(RACK, offering_sack(), 4);
        inner(&mut s).loss.reo = Reordering(before);
        inner(&mut s).loss.begin_recovery(Prr::new(4000));
        inner(&mut s).loss.recover = inner(&mut s).snd_una;
        sacking(&mut s, 2001, &[]);
        assert_eq!(s.connection().loss.reo, Reordering(left));
    }
}

/// RFC 2883 §4: a duplicate above the cumulative ACK lies within the block that follows it.
#[test]
fn a_duplicate_above_the_ack_is_told_by_the_second_block() {
    for (blocks, is_duplicate) in [
        (&[(3001, 4001), (2001, 5001)][..], true),
        (&[(2001, 3001), (2001, 5001)], true),
        (&[(2001, 4001), (3001, 5001)], false),
        (&[(3001, 5001), (2001, 4001)], false),
        (&[(3001, 4001)], false),
    ] {
        let mut s = in_flight(RACK, offering_sack(), 6);
        s.now_us += 100_000;
        sacking(&mut s, 1001, blocks);
        let grown = s.connection().loss.reo.quarters() == 2;
        assert_eq!(grown, is_duplicate, "{blocks:?}");
    }
}

/// RFC 6582 §3.2 step 3, where PRR does not: recovery ends without a burst.
#[test]
fn recovery_without_prr_ends_with_what_is_in_flight_and_a_segment() {
    let config = Config { prr: false, ..RACK };
    let mut s = in_flight(config, offering_sack(), 8);
    while s.poll().is_some() {}
    s.now_us += 100_000;
    let end = 1001 + u32::from(s.connection().telemetry().inflight_bytes);
    sacking(&mut s, 1001, &[(2001, end)]);
    assert!(s.connection().telemetry().is_recovering);
    assert!(s.connection().telemetry().ssthresh_bytes > 2000);
    let all = s.connection().snd_nxt.since(s.connection().snd_una) + 1001;
    sacking(&mut s, all, &[]);
    assert!(!s.connection().telemetry().is_recovering);
    assert_eq!(cwnd(&s), 3000, "two segments, and what this ACK adds");
}

/// RFC 9937 §6.2, computed beside the engine for every ACK of a recovery.
#[test]
fn prr_follows_its_formula() {
    let mut s = in_flight(RACK, offering_sack(), 10);
    while s.poll().is_some() {}
    s.now_us += 130_000;
    let acks: [(u32, &[(u32, u32)]); 9] = [
        (1001, &[(2001, 3001)]),
        (1001, &[(2001, 4001)]),
        (1001, &[(2001, 5001)]),
        (1001, &[(2001, 5001), (6001, 7001)]),
        (1001, &[(2001, 5001), (6001, 8001)]),
        (1001, &[(2001, 5001), (6001, 9001)]),
        (1001, &[(2001, 5001), (6001, 10_001)]),
        (5001, &[(6001, 10_001)]),
        (5001, &[(6001, 11_001)]),
    ];
    let (mut delivered_before, mut acked) = (0, 1001);
    let (mut proportional, mut conservative) = (0, 0);
    for (ack, blocks) in acks {
        sacking(&mut s, ack, blocks);
        if s.connection().loss.phase != Phase::Recovery {
            continue;
        }
        let recovery = s.connection().loss;
        let telemetry = s.connection().telemetry();
        let prr = recovery.control.prr().expect("a fast recovery");
        let (total, out) = (u32::from(prr.delivered), u32::from(prr.sent));
        let start = u32::from(prr.start.get());
        let delivered = total - delivered_before;
        delivered_before = total;
        assert_eq!(delivered, 1000, "each of these ACKs delivers one segment");
        let pipe = u32::from(telemetry.inflight_bytes);
        let ssthresh = u32::from(telemetry.ssthresh_bytes);
        let mut more = if pipe > ssthresh {
            proportional += 1;
            (total * ssthresh).div_ceil(start).saturating_sub(out)
        } else {
            conservative += 1;
            let is_safe = ack > acked;
            let more = total.saturating_sub(out).max(delivered);
            (more + if is_safe { 1000 } else { 0 }).min(ssthresh - pipe)
        };
        acked = ack;
        if out == 0 {
            more = more.max(1000);
        }
        assert_eq!(
            u32::from(telemetry.cwnd_bytes),
            pipe + more,
            "{ack} {blocks:?}"
        );
        while s.poll().is_some() {}
    }
    assert!(
        proportional > 1 && conservative > 1,
        "{proportional} {conservative}"
    );
}

/// RFC 9937 §6.2: what delivers nothing changes nothing.
#[test]
fn prr_waits_for_what_is_delivered() {
    let mut s = in_flight(RACK, offering_sack(), 11);
    s.now_us += 100_000;
    sacking(&mut s, 1001, &[(10_001, 12_001)]);
    while s.poll().is_some() {}
    s.wait_for_segment();
    assert_eq!(s.connection().loss.phase, Phase::Recovery);
    while s.poll().is_some() {}
    s.now_us += 50_000;
    sacking(&mut s, 2001, &[(10_001, 12_001)]);
    let before = cwnd(&s);
    let data = say(ACK, 1, 2001).win(30_000).data(b"data");
    let data = data.sack(&s, &[(10_001, 12_001)]);
    s.peer(data).unwrap();
    assert_eq!(cwnd(&s), before);
}

/// A tail loss probe is out, and another is due.
fn probe(s: &mut Script) {
    inner(s).facts.set(Facts::TAIL_PROBE_DUE);
    inner(s).loss.notes.set(Notes::TAIL_PROBED);
}

fn is_probing(s: &Script) -> bool {
    has_any(s, Facts::TAIL_PROBE_DUE) || has_note(s, Notes::TAIL_PROBED)
}

fn has_note(s: &Script, notes: u8) -> bool {
    s.connection().loss.notes.has(notes)
}

fn has_any(s: &Script, facts: u32) -> bool {
    s.connection().facts.has(facts)
}

/// A new phase of recovery forgets what the old one had under way.
#[test]
fn each_phase_forgets_the_last_ones_doings() {
    let mut s = in_flight(RACK, offering_sack(), 6);
    probe(&mut s);
    inner(&mut s).set_now(1_200, 0);
    time_out(&mut s);
    assert!(!is_probing(&s), "a timeout");

    let mut s = in_flight(RACK, offering_sack(), 6);
    probe(&mut s);
    s.now_us += 130_000;
    sacking(&mut s, 1001, &[(2001, 5001)]);
    assert!(s.connection().telemetry().is_recovering);
    assert!(!is_probing(&s), "fast recovery");
    sacking(&mut s, 5001, &[]);
    let undo = Notes::UNDO | Notes::UNDO_TS | Notes::FORCE_RESEND;
    inner(&mut s).loss.notes.set(undo);
    inner(&mut s).loss.undo_left = 1;
    sacking(&mut s, 5001, &[(1001, 2001)]);
    assert!(!s.connection().telemetry().is_recovering, "undone");
    assert!(!has_note(&s, undo));

    let mut s = in_flight(RACK, offering_sack(), 6);
    inner(&mut s).facts.set(Facts::ECN);
    inner(&mut s).loss.notes.set(Notes::UNDO_TS);
    s.peer(say(ACK | Flags::ECE, 1, 2001).win(30_000)).unwrap();
    assert!(
        !has_note(&s, Notes::UNDO | Notes::UNDO_TS),
        "a mark is never undone"
    );

    let mut s = in_flight(RACK, offering_sack(), 6);
    let soft = Facts::WINDOW_PROBED | Facts::SOFT_ERROR;
    inner(&mut s).facts.set(soft);
    sacking(&mut s, 2001, &[]);
    assert!(!has_any(&s, soft), "what an ACK of new data answers");
}

/// RFC 8985 §7.4: a probe is judged when its end is acknowledged, not before.
#[test]
fn a_probe_stays_out_until_its_end_is_acknowledged() {
    let mut s = in_flight(RACK, offering_sack(), 6);
    let end = s.connection().snd_una.plus(3000);
    for (notes, ack, left) in [
        (Notes::TAIL_PROBED, 2001, Notes::TAIL_PROBED),
        (
            Notes::TAIL_PROBED | Notes::TAIL_RESENT,
            4001,
            Notes::TAIL_PROBED,
        ),
        (Notes::TAIL_PROBED | Notes::TAIL_RESENT, 5001, 0),
    ] {
        inner(&mut s)
            .loss
            .notes
            .clear(Notes::TAIL_PROBED | Notes::TAIL_RESENT);
        inner(&mut s).loss.notes.set(notes);
        inner(&mut s).loss.tail_end = end;
        sacking(&mut s, ack, &[]);
        let now = Notes::TAIL_PROBED | Notes::TAIL_RESENT;
        assert_eq!(has_note(&s, now), left != 0, "{ack}");
        assert_eq!(has_note(&s, Notes::TAIL_PROBED), left != 0, "{ack}");
    }
}

/// The known gap of the scripts: a connection that ends leaves nothing to send nor to wait for.
#[test]
fn the_end_leaves_nothing_due() {
    let due = Facts::ACK_DUE
        | Facts::SYN_DUE
        | Facts::PERSIST_DUE
        | Facts::TAIL_PROBE_DUE
        | Facts::KEEPALIVE_DUE;
    let mut s = in_flight(SACK, offering_sack(), 4);
    inner(&mut s).facts.set(due);
    inner(&mut s).end(None);
    assert!(!has_any(&s, due));
    assert_eq!(s.connection().telemetry().inflight_bytes, 0);
    assert_eq!(s.tcp.next_deadline(), None);
    assert_eq!(s.state(), State::Closed);
}
