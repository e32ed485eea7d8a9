//! Frames that wait in the radio for their condition.

use std::vec::Vec;

use proptest::prelude::*;

use super::bench::*;
use crate::mac::config::{LIFS, TURNAROUND};
use crate::mac::immediate::Protocol;
use crate::mac::queue::Wait;
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
    let frame = Frame {
        to: PEER,
        token,
        payload: &token.to_be_bytes(),
        class: Class::Forward,
        since: bench.now,
    };
    let queued = bench.mac.enqueue_conditional(&frame, condition, until);
    assert_eq!(queued, Ok(()));
}

/// With its frame in the radio, and nothing else to do.
fn armed(seed: u64) -> Bench {
    let mut bench = relay(seed);
    wait_for(&mut bench, 1, FROM_OTHER);
    assert!(bench.run_until(|bench| bench.mac.loaded != NIL && bench.mac.state == State::Idle));
    assert_eq!(bench.fired.len(), 0);
    bench
}

/// A frame is longer than the spacing after the one sent before it came.
fn frame_time(bench: &mut Bench) {
    bench.now += LIFS;
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

/// A frame is copied into the radio before it may start; the first bytes of another one start it.
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

/// Only the head of a frame from the hop before starts what waits.
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

/// A frame that waits survives another one that takes the buffer meanwhile.
#[test]
fn another_frame_may_go_first_and_the_waiting_one_is_copied_again() {
    let mut bench = armed(7);
    bench.send(OTHER, 2);
    bench.run_until(|bench| bench.outcomes.len() == 1 && bench.mac.loaded != NIL);
    assert_eq!(tokens(&bench), [2]);
    assert_eq!(counts(&bench), [1, 0, 0, 1]);
    frame_time(&mut bench);
    head(&mut bench, &data(OTHER, TO_ME, 9, &[FRAG1]));
    bench.run();
    assert_eq!(tokens(&bench), [2, 1]);
    assert_eq!(bench.fired.len(), 2, "each once");
    assert_eq!(counts(&bench), [1, 1, 0, 1]);
}

/// Each frame that comes sends one frame that waits for it.
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
        frame_time(&mut bench);
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

/// A driver with one buffer works as without CIT.
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

/// A packet that is loaded beforehand goes out upon a notification (section 5.2 of the paper).
#[test]
fn a_notification_fires_an_alarm() {
    let mut bench = relay(10);
    let second = alarm_frame(8, bench.now);
    alarm(&mut bench, 7);
    let second = bench.mac.enqueue_alarm(&second, NOTICE);
    assert_eq!(second, Err(FrameDrop::QueueFull), "one at a time");
    bench.run_until(|bench| bench.mac.loaded != NIL);
    bench.now += Duration::from_secs(3_000);
    bench.poll();
    assert!(bench.fired.is_empty(), "for an hour, if need be");
    head(&mut bench, &data(OTHER, TO_ME, 1, &[0x2a]));
    assert_eq!(bench.fired.len(), 1);
    bench.run();
    assert_eq!(tokens(&bench), [7]);
    assert_eq!(assessments(&bench), 0);
}

/// A neighbour that is left alone for its pace gets an alarm all the same.
#[test]
fn no_pace_holds_an_alarm_back() {
    let mut bench = relay(10);
    let now = bench.now;
    bench.mac.pause(PEER, now + Duration::from_secs(60), now);
    alarm(&mut bench, 7);
    bench.run_until(|bench| bench.mac.loaded != NIL);
    bench.now = now + Duration::from_secs(1);
    head(&mut bench, &data(OTHER, TO_ME, 1, &[0x2a]));
    assert_eq!(bench.fired.len(), 1);
    bench.run_until(|bench| !bench.outcomes.is_empty());
    assert_eq!(tokens(&bench), [7]);
    assert!(bench.now.since(now) < Duration::from_secs(2));
}

const NOTICE: Condition = Condition {
    from: OTHER,
    protocol: Protocol::byte(0x2a),
};

fn alarm_frame(token: u16, since: Instant) -> Frame<'static> {
    Frame {
        to: PEER,
        token,
        payload: b"fire",
        class: Class::Own,
        since,
    }
}

fn alarm(bench: &mut Bench, token: u16) {
    let frame = alarm_frame(token, bench.now);
    bench.mac.enqueue_alarm(&frame, NOTICE).unwrap();
}

/// Nothing else sends it, whatever else goes over the same radio to the same neighbour.
#[test]
fn nothing_but_its_notification_sends_an_alarm() {
    for radio in [
        RadioCapabilities::CC2420,
        SEPARATE,
        RadioCapabilities::AT86RF233,
        SHARED,
    ] {
        let mut bench = Bench::new(radio, 14);
        alarm(&mut bench, 7);
        bench.send(PEER, 1);
        bench.send(OTHER, 2);
        wait_for(&mut bench, 3, FROM_OTHER);
        bench.run();
        bench.hear(&data(OTHER, TO_ME, 1, &[FRAG1]));
        wait_for(&mut bench, 4, FROM_OTHER);
        bench.hear(&data(OTHER, TO_ME, 2, &[FRAGN]));
        bench.send(PEER, 5);
        bench.run();
        assert_eq!(tokens(&bench), [1, 2, 3, 4, 5], "{radio:?}");
        for (_, psdu) in &bench.fired[2..] {
            let (header, _) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
            assert!(!header.frame_pending || psdu.len() < 28, "{radio:?}");
        }
        assert_eq!(bench.mac.queue_len(), 1);
        bench.hear(&data(OTHER, TO_ME, 3, &[0x2a]));
        bench.run();
        assert_eq!(tokens(&bench)[5..], [7], "{radio:?}");
        alarm(&mut bench, 9);
        assert_eq!(bench.mac.cancel(9), 1, "taken back");
        bench.hear(&data(OTHER, TO_ME, 4, &[0x2a]));
        bench.run();
        assert_eq!(bench.outcomes.len(), 6);
        adds_up(&bench);
    }
}

/// A radio that forgot its frame while an ACK was due is given it again before it fires.
#[test]
fn what_was_to_fire_is_copied_again_after_a_reset() {
    let mut bench = Bench::new(SEPARATE, 15);
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run_until(|bench| bench.mac.loaded != NIL);
    bench.honest = false;
    // The ACK's end is never told.
    bench.swallow = Some(|answer| answer == Answer::Done);
    assert!(bench.hear(&data(OTHER, TO_ME, 9, &[FRAG1])).is_some());
    bench.run_until(|bench| bench.mac.counters().radio_resets == 1);
    bench.swallow = None;
    bench.run();
    let last = |wanted: fn(&Action) -> bool| {
        let at = bench.actions.iter().rposition(|(_, action)| wanted(action));
        at.unwrap()
    };
    let fired = last(|action| *action == Action::Fire);
    let reset = last(|action| *action == Action::Listen);
    let copied = last(|action| matches!(action, Action::Preload { .. }));
    assert!(reset < copied && copied < fired, "{:?}", bench.actions);
    assert_eq!(assessments(&bench), 1, "the air is not known any more");
    assert_eq!(tokens(&bench), [1]);
    assert_eq!(bench.mac.counters().immediate, 0);
    adds_up(&bench);
}

#[test]
fn a_frame_whose_ack_is_too_late_fires_nothing_blindly() {
    let mut bench = Bench::new(SEPARATE, 16);
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run_until(|bench| bench.mac.loaded != NIL);
    let psdu = data(OTHER, TO_ME, 9, &[FRAG1]);
    let meta = RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: bench.now,
    };
    bench.now += Duration::from_millis(2);
    let event = Event::FrameReceived { psdu: &psdu, meta };
    let heard = bench.mac.on_event(event, bench.now, &mut bench.rng);
    assert!(heard.is_some());
    bench.run();
    assert_eq!(bench.mac.counters().dropped(FrameDrop::AckTooLate), 1);
    assert_eq!(bench.acks_sent(), []);
    assert_eq!(assessments(&bench), 1, "its sender may be repeating it");
    assert_eq!(bench.mac.counters().immediate, 0);
    assert_eq!(tokens(&bench), [1]);
}

/// A frame reported while the ACK of another one is on the air gets none itself, and comes
/// again.
#[test]
fn a_frame_that_got_no_ack_fires_when_it_is_repeated() {
    let mut bench = Bench::new(SEPARATE, 17);
    wait_for(&mut bench, 1, FROM_OTHER);
    bench.run_until(|bench| bench.mac.loaded != NIL);
    let first = data(PEER, TO_ME, 1, &[FRAG1]);
    assert!(bench.hear(&first).is_some());
    bench.poll();
    assert_eq!(bench.acks_sent().len(), 1);
    let psdu = data(OTHER, TO_ME, 9, &[FRAG1]);
    assert!(bench.hear(&psdu).is_some());
    bench.poll();
    assert!(bench.fired.is_empty(), "its sender sends it once more");
    bench.now += Duration::from_millis(5);
    bench.run_until(|bench| bench.mac.acknowledgment == Acknowledgment::None);
    for _ in 0..2 {
        assert!(bench.hear(&psdu).is_none(), "a duplicate");
        bench.run_until(|bench| bench.mac.state == State::Idle && !bench.outcomes.is_empty());
    }
    assert_eq!(bench.mac.counters().immediate, 1, "once is enough");
    assert_eq!(assessments(&bench), 0);
    assert_eq!(tokens(&bench), [1]);
}

/// What has been written while another frame was to follow is written again without it.
#[test]
fn no_frame_promises_one_that_is_not_there() {
    // Taken back, or gone elsewhere because another flow's frames wait now.
    let changes: [fn(&mut Bench); 2] = [
        |bench| assert_eq!(bench.mac.cancel(2), 1),
        |bench| {
            assert_eq!(bench.mac.cancel(2), 1);
            let until = bench.now + SOON;
            let condition = Condition {
                from: PEER,
                protocol: Protocol::FRAGMENTS,
            };
            let frame = Frame {
                to: OTHER,
                ..alarm_frame(3, bench.now)
            };
            let queued = bench.mac.enqueue_conditional(&frame, condition, until);
            assert_eq!(queued, Ok(()));
        },
    ];
    for change in changes {
        let mut bench = armed(17);
        wait_for(&mut bench, 2, FROM_OTHER);
        change(&mut bench);
        bench.run();
        let of_one = bench.fired.iter().find(|(_, psdu)| {
            let (_, payload) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
            payload == [0, 1]
        });
        let (header, _) = Header::parse(check_fcs(&of_one.unwrap().1).unwrap()).unwrap();
        assert!(!header.frame_pending);
        adds_up(&bench);
    }
    // The same without anything that waits: the first of two is in the radio already.
    let mut bench = relay(18);
    bench.send(PEER, 1);
    bench.send(PEER, 2);
    bench.run_until(|bench| bench.mac.loaded != NIL && bench.fired.is_empty());
    assert_eq!(bench.mac.cancel(2), 1);
    bench.run();
    let (header, _) = Header::parse(check_fcs(&bench.fired[0].1).unwrap()).unwrap();
    assert!(!header.frame_pending);
}

/// What is taken back while the radio takes it never goes out, whatever is queued in its place.
#[test]
fn what_is_cancelled_while_it_is_copied_is_not_sent() {
    for is_alarm in [true, false] {
        let mut bench = relay(19);
        match is_alarm {
            true => alarm(&mut bench, 1),
            false => wait_for(&mut bench, 1, FROM_OTHER),
        }
        let is_arming = |bench: &Bench| matches!(bench.mac.state, State::Arming { .. });
        assert!(bench.run_until(is_arming));
        assert_eq!(bench.mac.cancel(1), 1);
        // Takes the same slot.
        wait_for(&mut bench, 2, FROM_OTHER);
        assert!(bench.run_until(|bench| bench.mac.loaded != NIL));
        bench.hear(&data(OTHER, TO_ME, 1, &[0x2a]));
        bench.hear(&data(OTHER, TO_ME, 2, &[FRAGN]));
        bench.run();
        assert_eq!(tokens(&bench), [2]);
        let (_, payload) = Header::parse(check_fcs(&bench.fired[0].1).unwrap()).unwrap();
        assert_eq!((bench.fired.len(), payload), (1, &[0, 2][..]));
        assert_eq!(bench.mac.counters().radio_resets, 0);
        adds_up(&bench);
    }
}

/// On several channels the sender waits for the ACK where it has found us, wherever we were going.
#[test]
fn acks_go_out_at_home() {
    for state in 0..4 {
        let mut config = Config::new(PAN, ME);
        config.channels = Channels::ALL;
        let mut bench = Bench::with(config, SEPARATE, 8, 4, 19);
        bench.honest = false;
        let home = bench.mac.home();
        bench.send(PEER, 1);
        let there = |bench: &Bench| match state {
            0 => matches!(bench.mac.state, State::Backoff { .. }),
            1 => matches!(bench.mac.state, State::Assessing { .. }),
            2 => matches!(bench.mac.state, State::AwaitingAck { .. }),
            _ => bench.mac.state == State::Idle && bench.fired.len() == 1,
        };
        assert!(bench.run_until(there), "{state}");
        // It came while we were still at home, and is told only now.
        assert!(bench.hear(&data(OTHER, TO_ME, 5, b"data")).is_some());
        bench.run();
        let mut tuned = 0;
        for (_, action) in &bench.actions {
            match action {
                Action::ChangeChannel { channel } => tuned = *channel,
                Action::Transmit { .. } => assert_eq!(tuned, home, "{state}"),
                Action::Fire => assert_ne!(tuned, home, "{state}"),
                _ => {}
            }
        }
        assert_eq!(bench.acks_sent().len(), 1, "{state}");
        assert_eq!(tokens(&bench), [1], "{state}");
    }
}

/// Every frame and every attempt is accounted for.
fn adds_up(bench: &Bench) {
    let (mac, counters) = (&bench.mac, bench.mac.counters());
    let given_up = [
        FrameDrop::ChannelBusy,
        FrameDrop::NoAck,
        FrameDrop::RadioSilent,
        FrameDrop::TooOld,
        FrameDrop::Silent,
        FrameDrop::Cancelled,
    ];
    let given_up: u32 = given_up.iter().map(|why| counters.dropped(*why)).sum();
    let queued = mac.queue_len() as u32;
    assert_eq!(
        counters.accepted,
        counters.delivered + given_up + queued,
        "{counters:?}"
    );
    let ended = counters.immediate_delivered + counters.immediate_failed;
    assert_eq!(
        counters.immediate,
        ended + u32::from(mac.is_immediate),
        "{counters:?}"
    );
    assert!(counters.immediate <= counters.conditional, "{counters:?}");
    assert!(mac.waiting.slot == NIL || mac.queue.get(mac.waiting.slot).is_some());
}

/// What happens to a relay.
#[derive(Clone, Debug)]
enum Step {
    Forward,
    Alarm,
    Send(bool),
    Cancel(u16),
    Head(u8),
    Frame {
        from_other: bool,
        first: u8,
        new: bool,
    },
    Pass(u16),
    Deaf(bool),
    Busy,
    Lost,
}

fn step() -> impl Strategy<Value = Step> {
    let first = prop_oneof![Just(FRAG1), Just(FRAGN), Just(0x2a), Just(0x7a)];
    prop_oneof![
        4 => Just(Step::Forward),
        1 => Just(Step::Alarm),
        2 => any::<bool>().prop_map(Step::Send),
        1 => (0u16..40).prop_map(Step::Cancel),
        2 => first.clone().prop_map(Step::Head),
        4 => (any::<bool>(), first, prop::bool::weighted(0.8))
            .prop_map(|(from_other, first, new)| Step::Frame { from_other, first, new }),
        5 => (0u16..20_000).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Deaf),
        1 => Just(Step::Busy),
        1 => Just(Step::Lost),
    ]
}

/// Frames are neither lost nor doubled nor held longer than they may be, and the
/// counters say so, whatever happens in whatever order on whatever radio.
fn play(seed: u64, radio: usize, multi: bool, steps: impl IntoIterator<Item = Step>) -> Bench {
    play_with(config::FRAME_AGE_MAX, (seed, radio, multi), steps)
}

/// The same where frames grow old sooner or later.
fn play_with(
    frame_age_max: Duration,
    (seed, radio, multi): (u64, usize, bool),
    steps: impl IntoIterator<Item = Step>,
) -> Bench {
    let radios = [
        RadioCapabilities::CC2420,
        SEPARATE,
        RadioCapabilities::AT86RF233,
        SHARED,
    ];
    let mut config = Config::new(PAN, ME);
    config.frame_age_max = frame_age_max;
    config.channels = if multi {
        Channels::ALL
    } else {
        Channels::SINGLE
    };
    let mut bench = Bench::with(config, radios[radio], 8, 4, seed);
    bench.honest = false;
    let (mut token, mut dsn, mut alarms) = (0u16, 0u8, Vec::new());
    let (mut accepted, mut cancelled, mut notices) = (0, 0, 0);
    for step in steps {
        token += 1;
        let payload = token.to_be_bytes();
        let before = bench.mac.counters().accepted;
        let (class, since) = (Class::Forward, bench.now);
        let frame = Frame {
            to: PEER,
            token,
            payload: &payload,
            class,
            since,
        };
        match step {
            Step::Forward => {
                let until = bench.now + SOON;
                let _ = bench.mac.enqueue_conditional(&frame, FROM_OTHER, until);
            }
            Step::Alarm => {
                let frame = Frame {
                    class: Class::Own,
                    ..frame
                };
                if bench.mac.enqueue_alarm(&frame, NOTICE).is_ok() {
                    alarms.push((token, notices));
                }
            }
            Step::Send(to_peer) => {
                let to = if to_peer { PEER } else { OTHER };
                let _ = bench.mac.enqueue(&Frame { to, ..frame });
            }
            Step::Cancel(back) => {
                let token = token.wrapping_sub(back);
                let count = bench.mac.cancel(token);
                cancelled += count;
            }
            Step::Head(first) => {
                dsn = dsn.wrapping_add(1);
                notices += u32::from(first == 0x2a);
                let psdu = data(OTHER, TO_ME, dsn, &[first]);
                head(&mut bench, &psdu);
                bench.hear(&psdu);
            }
            Step::Frame {
                from_other,
                first,
                new,
            } => {
                dsn = dsn.wrapping_add(u8::from(new));
                notices += u32::from(first == 0x2a);
                let from = if from_other { OTHER } else { PEER };
                bench.hear(&data(from, TO_ME, dsn, &[first]));
            }
            Step::Pass(us) => {
                let end = bench.now + Duration::from_micros(us.into());
                bench.run_until(|bench| bench.now >= end);
            }
            Step::Deaf(on) => {
                bench.swallow = on.then_some(|answer| answer != Answer::Done);
            }
            Step::Busy => bench.clear.push_back(false),
            Step::Lost => bench.acked.push_back(false),
        }
        accepted += bench.mac.counters().accepted - before;
        bench.poll();
        adds_up(&bench);
        // What waits does so within its time; an attempt under way may end first.
        let late = bench.mac.queue.count(|slot| {
            slot.wait == Wait::Next
                && bench.mac.state == State::Idle
                && slot.not_before <= bench.now
        });
        assert_eq!(late, 0);
        for (alarm, before) in &alarms {
            let sent = tokens(&bench).contains(alarm);
            assert!(
                !sent || notices > *before,
                "an alarm without its notification"
            );
        }
    }
    bench.swallow = None;
    bench.run();
    adds_up(&bench);
    let mut ended = tokens(&bench);
    let left = bench.mac.queue_len();
    assert_eq!(ended.len() + cancelled + left, accepted as usize);
    let alarm_waits = bench.mac.queue.count(|slot| slot.wait == Wait::Notice);
    assert_eq!(left, alarm_waits, "nothing else is left");
    ended.sort_unstable();
    let count = ended.len();
    ended.dedup();
    assert_eq!(ended.len(), count, "each frame ends once");
    bench
}

proptest! {
    #[test]
    fn every_frame_is_accounted_for(
        seed in any::<u64>(),
        radio in 0usize..4,
        multi in any::<bool>(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        play(seed, radio, multi, steps);
    }
}

/// As the property found it: a radio that no longer answers holds up the queue until a frame
/// in it is too old to be sent, which ends it like any other.
#[test]
fn a_frame_that_grows_too_old_behind_a_deaf_radio_is_accounted_for() {
    use Step::{Deaf, Forward, Pass, Send};
    let few = |step: Step, count| std::iter::repeat_n(step, count);
    let steps = few(Forward, 2)
        .chain([Deaf(true), Send(false), Pass(226)])
        .chain(few(Pass(1), 7))
        .chain(few(Forward, 2))
        .chain(few(Pass(1), 3))
        .chain(few(Forward, 2))
        .chain([Pass(1)])
        .chain(few(Forward, 12))
        .chain([Pass(10_684)])
        .chain(few(Forward, 3))
        .chain([Pass(5_412)])
        .chain(few(Pass(1), 3))
        .chain([Forward, Pass(1), Pass(31), Pass(12_542)])
        .chain(few(Pass(1), 4))
        .chain([Pass(4_883)])
        .chain(few(Pass(1), 2));
    // Eight attempts that each wait for the radio's answer: whatever waits behind them is older
    // than half of that, whichever seed says how long the retries wait besides.
    let age_max = config::ANSWER_TIMEOUT.saturating_mul(u64::from(config::ATTEMPTS_MAX) / 2);
    for seed in 0..100 {
        let bench = play_with(age_max, (seed, 0, false), steps.clone());
        assert!(
            bench.mac.counters().dropped(FrameDrop::TooOld) > 0,
            "{seed}"
        );
    }
}

#[test]
fn what_may_wait_for_long_is_not_too_old_then() {
    let mut bench = relay(13);
    let frame = alarm_frame(7, bench.now);
    let until = bench.now + Duration::from_secs(100);
    let queued = bench.mac.enqueue_conditional(&frame, FROM_OTHER, until);
    assert_eq!(queued, Ok(()));
    bench.run_until(|bench| bench.now >= until);
    bench.run();
    assert!(bench.outcomes[0].delivered, "{:?}", bench.outcomes);
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
