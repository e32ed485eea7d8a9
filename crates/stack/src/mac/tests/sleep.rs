//! A node that sleeps, and a parent of such nodes.

use std::vec::Vec;

use super::bench::*;
use crate::hint::Expectation;
use crate::mac::poll::{ANSWER_TIMEOUT, REST, REST_REACHABLE};
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::{Command, FrameType, Header, check_fcs};

/// A node that sleeps and whose parent is [`PEER`].
fn child(policy: Policy) -> Bench {
    let mut bench = Bench::new(SEPARATE, 5);
    bench.mac.set_sleep(Some(Sleep::new(policy)));
    bench.mac.keep(Some(PEER));
    bench
}

/// The instants, ms since the start, of the data requests sent.
fn requests(bench: &Bench) -> Vec<u64> {
    let is_request = |psdu: &Vec<u8>| {
        let (header, payload) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
        header.frame_type == FrameType::Command
            && Command::parse(payload) == Ok(Command::DataRequest)
            && header.ack_request
    };
    let fired = bench.fired.iter().filter(|(_, psdu)| is_request(psdu));
    fired.map(|(at, _)| ms(*at)).collect()
}

fn ms(at: Instant) -> u64 {
    at.since(Instant::from_micros(1_000_000)).as_millis()
}

fn at_ms(ms: u64) -> Instant {
    Instant::from_micros(1_000_000 + 1_000 * ms)
}

fn run_to(bench: &mut Bench, at: u64) {
    bench.run_to(at_ms(at));
}

/// How long the receiver was on, µs, of the time up to now.
fn awake_us(bench: &Bench) -> u64 {
    let (mut on, mut since, mut total) = (true, at_ms(0), 0);
    for &(at, action) in &bench.actions {
        let now_on = match action {
            Action::Listen => true,
            Action::Sleep => false,
            _ => continue,
        };
        if on {
            total += at.since(since).as_micros();
        }
        (on, since) = (now_on, at);
    }
    match on {
        true => total + bench.now.since(since).as_micros(),
        false => total,
    }
}

#[test]
fn the_receiver_is_off_but_for_the_request_and_its_answer() {
    let mut bench = child(Policy::Fixed(Duration::from_secs(1)));
    run_to(&mut bench, 9_900);
    assert_eq!(requests(&bench).len(), 10);
    // The first one keeps it on through the backoff, since nobody knows yet that it sleeps.
    let each = awake_us(&bench) / 10;
    assert!((1_500..4_500).contains(&each), "{each} µs");
    assert_eq!(bench.mac.poll_counters().polls, 10);
    assert_eq!(bench.outcomes, [], "the link above sent nothing");
}

#[test]
fn what_is_promised_is_waited_for_and_what_follows_it_too() {
    let mut bench = child(Policy::Fixed(Duration::from_secs(5)));
    bench.more = [true].into();
    run_to(&mut bench, 20);
    let is_on = |bench: &Bench| {
        let turns = bench.actions.iter().rev();
        let mut turns =
            turns.filter(|(_, action)| matches!(action, Action::Listen | Action::Sleep));
        turns
            .next()
            .is_some_and(|(_, action)| *action == Action::Listen)
    };
    assert!(is_on(&bench), "the ACK says that something waits");
    for (dsn, more) in [(1, true), (2, true), (3, false)] {
        let mut header = Header::data(PAN, LinkAddr::Extended(ME), PEER, dsn);
        header.frame_pending = more;
        assert!(bench.hear(&frame(header, b"fragment")).is_some());
        let later = ms(bench.now) + 30;
        run_to(&mut bench, later);
        bench.poll();
        assert_eq!(is_on(&bench), more, "after frame {dsn}");
    }
    assert_eq!(requests(&bench).len(), 1);
    assert_eq!(bench.mac.poll_counters().unanswered, 0);
}

#[test]
fn a_promise_that_is_not_kept_ends_with_a_timeout() {
    let mut bench = child(Policy::Fixed(Duration::from_secs(1)));
    bench.more = [true; 3].into();
    run_to(&mut bench, 2_900);
    assert_eq!(requests(&bench).len(), 3);
    assert_eq!(bench.mac.poll_counters().unanswered, 3);
    let each = awake_us(&bench) / 3;
    let timeout = ANSWER_TIMEOUT.as_micros();
    assert!((timeout..timeout + 6_000).contains(&each), "{each} µs");
}

/// The channel was full, or the frame was lost: it still waits, and not for a minute. A parent that
/// always promises in vain costs four requests more, and then what a parent without packets does.
#[test]
fn what_was_promised_in_vain_is_asked_for_soon_then_ever_later() {
    let mut bench = child(Policy::Hinted(REST_REACHABLE));
    bench.more = [true; 99].into();
    run_to(&mut bench, 1_800_000);
    let asked = requests(&bench);
    let waits = asked.windows(2).map(|two| (two[1] - two[0] + 125) / 250);
    let waits: Vec<u64> = waits.collect();
    assert_eq!(waits[..6], [1, 4, 16, 64, 240, 240]);
    assert!((33..=34).contains(&asked.len()), "{asked:?}");
    // It keeps one promise, and not the next one: that packet is asked for soon.
    let header = Header::data(PAN, LinkAddr::Extended(ME), PEER, 1);
    assert!(bench.hear(&frame(header, b"packet")).is_some());
    let rested = asked.last().unwrap() + 60_000;
    run_to(&mut bench, rested + 500);
    assert_eq!(requests(&bench).len(), asked.len() + 2);
    // Then nothing waits any more.
    bench.more.clear();
    run_to(&mut bench, rested + 59_000);
    assert_eq!(requests(&bench).len(), asked.len() + 3);
}

#[test]
fn what_was_under_way_is_asked_for_again_at_once() {
    let mut bench = child(Policy::Fixed(Duration::from_secs(100)));
    bench.more = [true].into();
    run_to(&mut bench, 20);
    let mut header = Header::data(PAN, LinkAddr::Extended(ME), PEER, 1);
    header.frame_pending = true;
    assert!(bench.hear(&frame(header, b"fragment")).is_some());
    run_to(&mut bench, 500);
    let asked = requests(&bench);
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[1] < 100, "{asked:?}");
}

#[test]
fn with_a_parent_that_sends_one_frame_a_request_each_is_asked_for() {
    let mut bench = child(Policy::Fixed(Duration::from_secs(100)));
    bench.mac.set_sleep(Some(Sleep {
        drained: false,
        ..Sleep::new(Policy::Fixed(Duration::from_secs(100)))
    }));
    bench.more = [true, true].into();
    for dsn in 0..2 {
        let later = ms(bench.now) + 20;
        run_to(&mut bench, later);
        let mut header = Header::data(PAN, LinkAddr::Extended(ME), PEER, dsn);
        header.frame_pending = true;
        assert!(bench.hear(&frame(header, b"fragment")).is_some());
    }
    run_to(&mut bench, 500);
    assert_eq!(requests(&bench).len(), 3);
}

#[test]
fn failed_requests_are_repeated_soon_then_ever_later_and_each_is_told() {
    let mut bench = child(Policy::Paper);
    run_to(&mut bench, 100);
    assert_eq!(requests(&bench).len(), 1);
    bench.absent = |_| true;
    bench.mac.expect(Some(Expectation {
        earliest: bench.now,
        latest: at_ms(1_000_000),
        pace: Duration::from_millis(100),
        more: false,
    }));
    let mut told = Vec::new();
    run_to(&mut bench, 60_000);
    let mut failed = bench.mac.poll_counters().failed;
    assert!((5..=12).contains(&failed), "{failed} in a minute");
    while let Some(how) = bench.mac.take_polled() {
        told.push(how);
    }
    assert_eq!(told, [(PEER, false)], "the last one");
    // The parent is back: one success, and the policy counts again.
    bench.absent = |_| false;
    run_to(&mut bench, 200_000);
    failed = bench.mac.poll_counters().failed - failed;
    assert!(failed <= 1, "{failed}");
    let late: Vec<_> = requests(&bench)
        .into_iter()
        .filter(|at| *at > 190_000)
        .collect();
    assert!((95..=101).contains(&late.len()), "{}", late.len());
}

#[test]
fn a_request_rides_on_data() {
    let mut bench = child(Policy::Fixed(Duration::from_millis(200)));
    run_to(&mut bench, 150);
    let before = requests(&bench).len();
    for _ in 0..4 {
        bench.enqueue(PEER, 1, b"reading", Class::Own).unwrap();
        let due = ms(bench.now) + 200;
        bench.acked = [false, false].into();
        run_to(&mut bench, due);
    }
    let rides = bench.mac.poll_counters().rides;
    assert!(
        rides >= 1,
        "none of the frames lasted until a request was due"
    );
    assert!(requests(&bench).len() < before + 5);
    // The ACK of data says that something waits, too.
    bench.more = [true].into();
    bench.enqueue(PEER, 2, b"reading", Class::Own).unwrap();
    let hits = bench.mac.poll_counters().hits;
    let due = ms(bench.now) + 30;
    run_to(&mut bench, due);
    assert_eq!(bench.mac.poll_counters().hits, hits + 1);
}

/// The instants, ms since the start, of the data frames sent.
fn data_sent(bench: &Bench) -> Vec<u64> {
    let is_data = |psdu: &Vec<u8>| {
        let (header, _) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
        header.frame_type == FrameType::Data
    };
    let fired = bench.fired.iter().filter(|(_, psdu)| is_data(psdu));
    fired.map(|(at, _)| ms(*at)).collect()
}

#[test]
fn own_frames_wait_while_the_parent_sends() {
    for alternates in [true, false] {
        let mut bench = Bench::new(SEPARATE, 5);
        let policy = Policy::Fixed(Duration::from_secs(5));
        bench.mac.set_sleep(Some(Sleep {
            alternates,
            ..Sleep::new(policy)
        }));
        bench.mac.keep(Some(PEER));
        bench.more = [true].into();
        run_to(&mut bench, 20);
        bench.enqueue(PEER, 1, b"reading", Class::Own).unwrap();
        run_to(&mut bench, 40);
        assert_eq!(data_sent(&bench).is_empty(), alternates);
        let header = Header::data(PAN, LinkAddr::Extended(ME), PEER, 1);
        assert!(bench.hear(&frame(header, b"the last one")).is_some());
        run_to(&mut bench, 60);
        assert_eq!(data_sent(&bench).len(), 1);
    }
}

#[test]
fn a_request_goes_before_own_frames() {
    let mut bench = Bench::new(SEPARATE, 5);
    let policy = Policy::Fixed(Duration::from_millis(200));
    bench.mac.set_sleep(Some(Sleep {
        rides: false,
        ..Sleep::new(policy)
    }));
    bench.mac.keep(Some(PEER));
    run_to(&mut bench, 150);
    // The first one fails so often that a request falls due meanwhile.
    bench.acked = [false; 6].into();
    for _ in 0..2 {
        bench.enqueue(PEER, 1, b"reading", Class::Own).unwrap();
    }
    run_to(&mut bench, 390);
    let (asked, sent) = (requests(&bench), data_sent(&bench));
    assert!(asked.len() > 1, "{asked:?}");
    let last = sent.iter().max().unwrap();
    assert!(asked[1] < *last, "{asked:?} {sent:?}");
}

/// The ACK of data made it hasty, and the request was on its way already.
#[test]
fn one_request_asks_for_what_the_ack_of_data_before_it_has_promised() {
    let mut bench = Bench::new(SEPARATE, 5);
    let policy = Policy::Fixed(Duration::from_secs(5));
    bench.mac.set_sleep(Some(Sleep {
        rides: false,
        alternates: false,
        ..Sleep::new(policy)
    }));
    bench.mac.keep(Some(PEER));
    run_to(&mut bench, 5_000 - 1);
    bench.more = [true, false].into();
    bench.enqueue(PEER, 1, b"reading", Class::Own).unwrap();
    run_to(&mut bench, 6_000);
    let (asked, sent) = (requests(&bench), data_sent(&bench));
    assert!(sent[0] <= asked[1], "{asked:?} {sent:?}");
    assert_eq!(asked.len(), 2, "{asked:?}");
}

/// A parent of Thread says in the ACK of a data frame that something waits, and sends it upon a data
/// request alone: the child asks at once, and does not listen before.
#[test]
fn a_promise_in_the_ack_of_data_is_asked_for() {
    let mut bench = Bench::new(SEPARATE, 5);
    let policy = Policy::Fixed(Duration::from_secs(30));
    bench.mac.set_sleep(Some(Sleep {
        rides: false,
        ..Sleep::new(policy)
    }));
    bench.mac.keep(Some(PEER));
    run_to(&mut bench, 150);
    bench.more = [true, true].into();
    bench.enqueue(PEER, 1, b"reading", Class::Own).unwrap();
    run_to(&mut bench, 200);
    let (asked, sent) = (requests(&bench), data_sent(&bench));
    assert_eq!((asked.len(), sent.len()), (2, 1), "{asked:?} {sent:?}");
    let between = asked[1] - sent[0];
    assert!(between < 15, "{between} ms");
}

/// Frames of somebody who takes the parent's name keep the receiver on; own frames go out
/// nevertheless.
#[test]
fn nobody_keeps_a_node_silent_by_promises() {
    let mut bench = child(Policy::Fixed(Duration::from_secs(100)));
    run_to(&mut bench, 20);
    bench.enqueue(PEER, 1, b"reading", Class::Own).unwrap();
    for dsn in 0..100 {
        let mut header = Header::data(PAN, LinkAddr::Extended(ME), PEER, dsn);
        header.frame_pending = true;
        bench.hear(&frame(header, b"forged"));
        bench.poll();
        let later = ms(bench.now) + 20;
        run_to(&mut bench, later);
    }
    let sent = data_sent(&bench);
    assert!(sent.len() == 1 && sent[0] < 1_100, "{sent:?}");
}

#[test]
fn policies_keep_their_intervals() {
    let answer = |from: u64, to: u64| {
        Some(Expectation {
            earliest: at_ms(from),
            latest: at_ms(to),
            pace: Duration::from_millis(300),
            more: false,
        })
    };
    let asked = |policy, expected, until| {
        let mut bench = child(policy);
        bench.poll();
        bench.mac.expect(expected);
        run_to(&mut bench, until);
        let mut at = requests(&bench);
        at.retain(|at| *at > 10);
        at
    };
    let rest = REST.as_millis();
    assert!(asked(Policy::Paper, None, rest - 1_000).is_empty());
    assert_eq!(asked(Policy::Paper, None, rest + 1_000).len(), 1);
    let due = asked(Policy::Paper, answer(0, 9_000), 1_050).len();
    assert!((9..=10).contains(&due), "{due}");
    for rest in [Duration::from_secs(7), REST_REACHABLE, REST] {
        let (hinted, ms) = (Policy::Hinted(rest), rest.as_millis());
        assert_eq!(hinted.rest(), rest);
        assert!(asked(hinted, None, ms - 1_000).is_empty(), "{rest:?}");
        assert_eq!(asked(hinted, None, 3 * ms + 1_000).len(), 3, "{rest:?}");
    }
    let hinted = asked(Policy::Hinted(REST), answer(1_000, 2_000), 200_000);
    assert_eq!(hinted.len(), 4, "{hinted:?}");
    assert!((1_000..1_012).contains(&hinted[0]), "{hinted:?}");
    let adaptive = asked(Policy::Adaptive, None, 60_000);
    // 20 ms, 40, 80 … 5.12 s are past after ten seconds; then every five.
    assert!((17..=20).contains(&adaptive.len()), "{adaptive:?}");
}

#[test]
fn without_a_parent_the_receiver_stays_on() {
    let mut bench = child(Policy::Hinted(REST));
    bench.mac.keep(None);
    bench.run();
    assert!(requests(&bench).is_empty());
    assert_eq!(bench.count(|action| action == Action::Sleep), 0);
}

#[test]
fn a_stranger_that_asks_in_vain_changes_nothing() {
    let mut bench = Bench::new(SEPARATE, 3);
    let request = frame(Header::command(PAN, LinkAddr::Extended(ME), OTHER, 9), &[4]);
    assert!(bench.hear(&request).is_none());
    assert_eq!(bench.mac.counters().dropped(FrameDrop::Command), 1);
    assert_eq!(bench.mac.take_asked(), None);
    bench.mac.serve(u8::MAX);
    for bad in [&[][..], &[4, 4], &[5], &[255; 20]] {
        let command = frame(Header::command(PAN, LinkAddr::Extended(ME), OTHER, 9), bad);
        assert!(bench.hear(&command).is_none());
        assert_eq!(bench.mac.take_asked(), None, "{bad:?}");
    }
    assert_eq!(bench.mac.counters().dropped(FrameDrop::Command), 5);
    assert_eq!(bench.acks_sent().len(), 0);
}

#[test]
fn the_ack_says_whether_something_waits() {
    for pending in [false, true] {
        let mut bench = Bench::new(SEPARATE, 3);
        bench.mac.serve(u8::MAX);
        bench.poll();
        let request = frame(Header::command(PAN, LinkAddr::Extended(ME), OTHER, 9), &[4]);
        for _ in 0..2 {
            assert!(
                bench.hear(&request).is_none(),
                "again where its ACK was lost"
            );
            let asked = bench.mac.take_asked().unwrap();
            assert!(asked.is_request && asked.by == OTHER);
            bench.mac.answer_pending(pending);
            let mut out = [0; 127];
            let ack = bench.mac.poll_action(bench.now, &mut bench.rng, &mut out);
            assert!(matches!(ack, Some(Action::Transmit { len: 5, .. })));
            let (header, _) = Header::parse(check_fcs(&out[..5]).unwrap()).unwrap();
            assert_eq!(header.frame_pending, pending);
            bench.now += Duration::from_millis(3);
            let done = Event::TransmitDone { at: bench.now };
            bench.mac.on_event(done, bench.now, &mut bench.rng);
        }
    }
}

#[test]
fn frames_for_a_child_stand_first_and_say_that_more_waits() {
    let mut bench = Bench::new(SEPARATE, 3);
    bench.mac.serve(u8::MAX);
    bench.poll();
    for n in 0..3 {
        bench.enqueue(PEER, n, &[0, n as u8], Class::Own).unwrap();
    }
    bench.poll();
    bench.mac.set_more(Some(OTHER));
    for n in 10..12 {
        bench
            .enqueue(OTHER, n, &[0, n as u8], Class::Indirect)
            .unwrap();
    }
    bench.run();
    let tokens: Vec<u16> = bench.outcomes.iter().map(|outcome| outcome.token).collect();
    assert_eq!(tokens, [0, 10, 11, 1, 2], "the first was under way");
    let says_more: Vec<bool> = bench
        .fired
        .iter()
        .map(|(_, psdu)| Header::parse(check_fcs(psdu).unwrap()).unwrap().0)
        .map(|header| header.frame_pending)
        .collect();
    assert_eq!(says_more, [true, true, true, true, false]);
}

#[test]
fn a_slot_is_kept_for_children() {
    let mut bench = Bench::new(SEPARATE, 3);
    let all = bench.mac.room(Class::Control);
    bench.mac.serve(u8::MAX);
    assert_eq!(bench.mac.room(Class::Control), all - 1);
    assert_eq!(bench.mac.room(Class::Indirect), all);
}
