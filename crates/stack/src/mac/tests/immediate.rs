//! Frames that wait in the radio for their condition.

use std::vec::Vec;

use super::bench::*;
use crate::mac::config::TURNAROUND;
use crate::mac::immediate::Protocol;
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::check_fcs;

const TO_ME: LinkAddr = LinkAddr::Extended(ME);

/// A first fragment's first byte, and a later one's.
const FRAG1: u8 = 0b1100_0001;
const FRAGN: u8 = 0b1110_0001;

const FROM_OTHER: Condition = Condition {
    from: OTHER,
    protocol: Protocol::FRAGMENTS,
};

/// Long enough for anything a MAC does with one frame.
const SOON: Duration = Duration::from_millis(30);

/// A relay whose radio acknowledges; frames from `OTHER` go on to `PEER`.
fn relay(seed: u64) -> Bench {
    Bench::new(RadioCapabilities::CC2420, seed)
}

fn wait_for(bench: &mut Bench, token: u16, condition: Condition) {
    let until = bench.now + SOON;
    let payload = token.to_be_bytes();
    let mac = &mut bench.mac;
    mac.enqueue_conditional(PEER, token, &payload, Class::Forward, condition, until)
        .unwrap();
}

/// With its frame in the radio, and nothing else to do.
fn armed(seed: u64) -> Bench {
    let mut bench = relay(seed);
    wait_for(&mut bench, 1, FROM_OTHER);
    assert!(bench.run_until(|bench| bench.mac.loaded != NIL && bench.mac.state == State::Idle));
    assert_eq!(bench.fired.len(), 0);
    bench
}

fn head(bench: &mut Bench, psdu: &[u8]) {
    let event = Event::FrameHead {
        head: check_fcs(psdu).unwrap(),
    };
    bench.mac.on_event(event, bench.now, &mut bench.rng);
    bench.poll();
}

fn tokens(bench: &Bench) -> Vec<u16> {
    bench.outcomes.iter().map(|outcome| outcome.token).collect()
}

fn assessments(bench: &Bench) -> usize {
    bench.count(|action| action == Action::AssessChannel)
}

/// What a test table says of the counters: waited, fired by condition, flushed, reloaded.
fn counts(bench: &Bench) -> [u32; 4] {
    let counters = bench.mac.counters();
    [
        counters.conditional,
        counters.immediate,
        counters.flushed,
        counters.reloads,
    ]
}

#[test]
fn the_next_frames_head_fires_what_waits_at_once() {
    for first in [FRAG1, FRAGN] {
        let mut bench = armed(1);
        head(&mut bench, &data(OTHER, TO_ME, 9, &[first, 0]));
        assert_eq!(bench.fired.len(), 1, "before the frame is copied");
        assert_eq!(bench.fired[0].0, bench.now);
        let (header, _) = Header::parse(check_fcs(&bench.fired[0].1).unwrap()).unwrap();
        assert!(header.frame_pending, "another frame follows: it is here");
        bench.run();
        assert_eq!(assessments(&bench), 0);
        assert_eq!(tokens(&bench), [1]);
        assert!(bench.outcomes[0].delivered);
        assert_eq!(counts(&bench), [1, 1, 0, 0]);
    }
}

#[test]
fn no_other_frame_fires_it() {
    let short = |dst| data(OTHER, dst, 9, &[FRAG1]);
    let mut foreign = Header::data(PAN + 1, TO_ME, OTHER, 9);
    foreign.pan_id_compression = false;
    let cases = [
        ("another sender", data(PEER, TO_ME, 9, &[FRAG1])),
        ("another protocol", data(OTHER, TO_ME, 9, &[0x7a, 0x33])),
        ("no payload", data(OTHER, TO_ME, 9, &[])),
        ("another receiver", short(PEER)),
        ("another PAN", frame(foreign, &[FRAG1])),
        ("an ACK", frame(Header::ack(9, false), &[])),
    ];
    for (name, psdu) in cases {
        let mut bench = armed(2);
        head(&mut bench, &psdu);
        bench.hear(&psdu);
        bench.poll();
        assert!(bench.fired.is_empty(), "{name}");
        assert_eq!(counts(&bench), [1, 0, 0, 0], "{name}");
    }
    let mut bench = armed(2);
    bench.mac.on_event(
        Event::FrameHead { head: &[0xff; 3] },
        bench.now,
        &mut bench.rng,
    );
    bench.poll();
    assert!(bench.fired.is_empty(), "garbage");
    let mut spoiled = data(OTHER, TO_ME, 9, &[FRAG1]);
    *spoiled.last_mut().unwrap() ^= 1;
    bench.hear(&spoiled);
    bench.poll();
    assert!(bench.fired.is_empty(), "a bad FCS");
}

#[test]
fn a_repeated_frame_fires_nothing() {
    let mut bench = relay(3);
    let psdu = data(OTHER, TO_ME, 9, &[FRAG1]);
    assert!(bench.hear(&psdu).is_some());
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run_until(|bench| bench.mac.loaded != NIL);
    head(&mut bench, &psdu);
    assert!(bench.hear(&psdu).is_none());
    bench.poll();
    assert!(bench.fired.is_empty());
    head(&mut bench, &data(OTHER, TO_ME, 10, &[FRAG1]));
    assert_eq!(bench.fired.len(), 1, "the next one does");
}

#[test]
fn without_heads_the_whole_frame_fires() {
    let mut bench = armed(4);
    assert!(bench.hear(&data(OTHER, TO_ME, 9, &[FRAGN])).is_some());
    bench.run();
    assert_eq!(assessments(&bench), 0);
    assert_eq!(tokens(&bench), [1]);
    assert_eq!(counts(&bench), [1, 1, 0, 0]);
}

#[test]
fn where_software_acknowledges_the_ack_goes_first() {
    let mut bench = Bench::new(SEPARATE, 5);
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run_until(|bench| bench.mac.loaded != NIL);
    let psdu = data(OTHER, TO_ME, 9, &[FRAG1]);
    head(&mut bench, &psdu);
    assert!(bench.fired.is_empty(), "its ACK is still to be sent");
    let frame_end = bench.now;
    assert!(bench.hear(&psdu).is_some());
    bench.run();
    assert_eq!(bench.acks_sent(), [frame_end + TURNAROUND]);
    assert_eq!(assessments(&bench), 0);
    assert_eq!(tokens(&bench), [1]);
    assert_eq!(bench.preloads(), 1, "the ACK left the frame alone");
}

#[test]
fn nothing_waits_longer_than_it_may() {
    let mut bench = armed(6);
    let until = bench.now + SOON;
    bench.run();
    assert_eq!(tokens(&bench), [1]);
    assert_eq!(assessments(&bench), 1, "the normal path");
    // Backoff, a copy and an assessment at most.
    let fired_at = bench.fired[0].0;
    assert!(fired_at.since(until) < Duration::from_millis(8));
    let (header, _) = Header::parse(check_fcs(&bench.fired[0].1).unwrap()).unwrap();
    assert!(!header.frame_pending, "nothing follows after all");
    assert_eq!(counts(&bench), [1, 0, 1, 0]);
}

#[test]
fn another_frame_may_go_first_and_the_waiting_one_is_copied_again() {
    let mut bench = armed(7);
    bench.send(OTHER, 2);
    bench.run_until(|bench| bench.outcomes.len() == 1 && bench.mac.loaded != NIL);
    assert_eq!(tokens(&bench), [2]);
    assert_eq!(counts(&bench), [1, 0, 0, 1]);
    head(&mut bench, &data(OTHER, TO_ME, 9, &[FRAG1]));
    bench.run();
    assert_eq!(tokens(&bench), [2, 1]);
    assert_eq!(bench.fired.len(), 2, "each once");
    assert_eq!(counts(&bench), [1, 1, 0, 1]);
}

#[test]
fn each_arrival_fires_one_and_too_many_do_not_wait() {
    let mut bench = armed(8);
    for token in 2..=4u16 {
        wait_for(&mut bench, token, FROM_OTHER);
    }
    bench.run_until(|bench| bench.outcomes.len() == 1);
    assert_eq!(tokens(&bench), [1], "the normal path, at once");
    for token in 2..=4u16 {
        bench.run_until(|bench| bench.mac.loaded != NIL && bench.mac.state == State::Idle);
        head(&mut bench, &data(OTHER, TO_ME, token as u8, &[FRAG1]));
        bench.run_until(|bench| bench.outcomes.len() == usize::from(token));
    }
    assert_eq!(tokens(&bench), [1, 2, 3, 4]);
    assert_eq!(counts(&bench), [4, 3, 0, 0]);
    assert_eq!(assessments(&bench), 1);
}

#[test]
fn a_frame_that_nothing_follows_takes_the_others_with_it() {
    let mut bench = armed(13);
    wait_for(&mut bench, 2, FROM_OTHER);
    let now = bench.now;
    bench.send(PEER, 3);
    bench.run_until(|bench| bench.outcomes.len() == 3);
    assert_eq!(tokens(&bench), [1, 2, 3]);
    assert!(bench.now.since(now) < SOON, "none has waited");
    assert_eq!(counts(&bench), [2, 0, 0, 0]);
}

#[test]
fn a_failed_attempt_is_repeated_the_normal_path() {
    for seed in 0..50 {
        let mut bench = armed(seed);
        bench.acked = [false].into();
        head(&mut bench, &data(OTHER, TO_ME, 9, &[FRAG1]));
        // Newer frames neither fire nor overtake what has to be repeated.
        wait_for(&mut bench, 2, FROM_OTHER);
        bench.run_until(|bench| bench.mac.counters().ack_timeouts == 1);
        head(&mut bench, &data(OTHER, TO_ME, 10, &[FRAG1]));
        wait_for(&mut bench, 3, FROM_OTHER);
        bench.run();
        assert_eq!(tokens(&bench), [1, 2, 3]);
        let counters = bench.mac.counters();
        assert_eq!((counters.retries, counters.transmissions), (1, 4));
        assert_eq!(counters.immediate, 1);
        assert!(assessments(&bench) >= 3);
    }
}

#[test]
fn one_buffer_cannot_keep_a_frame() {
    let mut bench = Bench::new(RadioCapabilities::AT86RF233, 9);
    assert!(!bench.mac.can_preload());
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run();
    assert_eq!(tokens(&bench), [1]);
    assert_eq!(counts(&bench), [0; 4]);
    assert_eq!(assessments(&bench), 1);
}

#[test]
fn a_notification_fires_an_alarm() {
    const NOTICE: u8 = 0x2a;
    let mut bench = relay(10);
    let condition = Condition {
        from: OTHER,
        protocol: Protocol::byte(NOTICE),
    };
    let until = bench.now + Duration::from_secs(3_600);
    let mac = &mut bench.mac;
    mac.enqueue_conditional(PEER, 7, b"fire", Class::Own, condition, until)
        .unwrap();
    bench.run_until(|bench| bench.mac.loaded != NIL);
    bench.now += Duration::from_secs(3_000);
    bench.poll();
    assert!(bench.fired.is_empty(), "for an hour, if need be");
    head(&mut bench, &data(OTHER, TO_ME, 1, &[NOTICE]));
    assert_eq!(bench.fired.len(), 1);
    bench.run();
    assert_eq!(tokens(&bench), [7]);
}

#[test]
fn a_radio_that_does_not_take_the_frame_is_given_up() {
    let mut bench = relay(11);
    bench.honest = false;
    bench.swallow = Some(|answer| answer == Answer::Preloaded);
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run();
    bench.swallow = None;
    bench.run();
    assert_eq!(tokens(&bench), [1]);
    assert!(bench.mac.counters().radio_resets > 0);
}

#[test]
fn what_is_taken_back_does_not_wait() {
    let mut bench = armed(12);
    assert_eq!(bench.mac.cancel(1), 1);
    head(&mut bench, &data(OTHER, TO_ME, 9, &[FRAG1]));
    bench.run();
    assert!(bench.fired.is_empty() && bench.mac.queue_len() == 0);
}
