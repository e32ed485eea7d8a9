use std::vec::Vec;

use proptest::prelude::*;

use super::bench::*;
use crate::mac::config::TURNAROUND;
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::{Address, FrameType, fcs};

const TO_ME: LinkAddr = LinkAddr::Extended(ME);

#[test]
fn a_frame_for_us_is_delivered_and_acknowledged_a_turnaround_later() {
    let mut bench = Bench::new(SHARED, 1);
    let psdu = data(PEER, TO_ME, 5, b"hello");
    let received = bench.hear(&psdu).unwrap();
    assert_eq!(
        (received.src, received.dst, received.payload),
        (PEER, TO_ME, &b"hello"[..])
    );
    let frame_end = bench.now;
    bench.run();
    assert_eq!(bench.acks_sent(), [frame_end + TURNAROUND]);
    assert_eq!(bench.mac.counters().acks_sent, 1);
}

#[test]
fn no_ack_for_broadcasts_unrequested_ones_or_when_the_radio_does_it() {
    let mut unrequested = Header::data(PAN, TO_ME, PEER, 5);
    unrequested.ack_request = false;
    let mut asked = Header::data(PAN, LinkAddr::BROADCAST, PEER, 5);
    asked.ack_request = true;
    for psdu in [
        data(PEER, LinkAddr::BROADCAST, 5, b"x"),
        frame(unrequested, b"x"),
        frame(asked, b"x"),
    ] {
        let mut bench = Bench::new(SHARED, 1);
        assert!(bench.hear(&psdu).is_some());
        bench.run();
        assert!(bench.acks_sent().is_empty());
    }
    let mut bench = Bench::new(RadioCapabilities::AT86RF233, 1);
    assert!(bench.hear(&data(PEER, TO_ME, 5, b"x")).is_some());
    bench.run();
    assert!(bench.acks_sent().is_empty());
}

#[test]
fn an_ack_goes_out_in_every_state_and_the_attempt_goes_on() {
    type Reached = fn(&State) -> bool;
    let states: [(&str, Reached); 4] = [
        ("backoff", |s| matches!(s, State::Backoff { .. })),
        ("preloading", |s| matches!(s, State::Preloading { .. })),
        ("assessing", |s| matches!(s, State::Assessing { .. })),
        ("awaiting ACK", |s| matches!(s, State::AwaitingAck { .. })),
    ];
    for radio in [SHARED, SEPARATE] {
        for (name, reached) in states {
            let mut seen = 0;
            for seed in 0..20 {
                let mut bench = Bench::new(radio, seed);
                bench.send(PEER, 1);
                if !bench.run_until(|bench| reached(&bench.mac.state)) {
                    continue; // A backoff of no length.
                }
                seen += 1;
                let (frame_end, preloads) = (bench.now, bench.preloads());
                assert!(bench.hear(&data(OTHER, TO_ME, 9, b"x")).is_some());
                bench.run();
                assert_eq!(bench.acks_sent(), [frame_end + TURNAROUND], "{name}");
                assert_eq!(bench.outcomes.len(), 1, "{name}");
                assert!(bench.outcomes[0].delivered, "{name}");
                assert_eq!(bench.mac.counters().radio_resets, 0, "{name}");
                if radio.shared_buffer && ["preloading", "assessing"].contains(&name) {
                    assert_eq!(
                        bench.preloads(),
                        preloads + 1,
                        "{name}: the ACK took the buffer"
                    );
                }
                if !radio.shared_buffer {
                    assert_eq!(bench.preloads(), 1, "{name}: the ACK left the buffer alone");
                }
            }
            assert!(seen > 10, "{name}");
        }
    }
}

#[test]
fn receives_and_acknowledges_during_the_retry_delay() {
    let mut bench = Bench::new(SHARED, 2);
    bench.acked = [false].into();
    bench.send(PEER, 1);
    assert!(bench.run_until(|bench| bench.mac.counters().ack_timeouts == 1));
    assert_eq!(bench.mac.state, State::Idle);
    assert!(bench.hear(&data(PEER, TO_ME, 9, b"x")).is_some());
    bench.run();
    assert_eq!(bench.acks_sent().len(), 1);
    assert_eq!(bench.outcomes[0].attempts, 2);
}

#[test]
fn an_ack_nobody_would_hear_is_not_sent() {
    let mut bench = Bench::new(SHARED, 3);
    let psdu = data(PEER, TO_ME, 5, b"x");
    let meta = RxMeta {
        rssi_dbm: 0,
        lqi: 0,
        channel: 26,
        at: bench.now,
    };
    for (late_us, sent) in [(192 + 320, 1), (192 + 321, 0)] {
        let at = Instant::from_micros(2_000_000);
        bench.actions.clear();
        bench.now = at + Duration::from_micros(late_us);
        let event = Event::FrameReceived {
            psdu: &psdu,
            meta: RxMeta { at, ..meta },
        };
        bench.mac.on_event(event, bench.now, &mut bench.rng);
        bench.run();
        assert_eq!(bench.acks_sent().len(), sent, "{late_us}");
    }
    assert_eq!(bench.mac.counters().dropped(FrameDrop::AckTooLate), 1);
}

#[test]
fn a_lost_answer_to_an_ack_does_not_hang() {
    let mut bench = Bench::new(SHARED, 4);
    bench.swallow = Some(|answer| answer == Answer::Done);
    bench.hear(&data(PEER, TO_ME, 5, b"x"));
    bench.run();
    assert_eq!(bench.mac.counters().radio_resets, 1);
    bench.swallow = None;
    bench.send(PEER, 1);
    bench.run();
    assert!(bench.outcomes[0].delivered);
}

#[test]
fn duplicates_are_acknowledged_but_not_delivered() {
    let mut bench = Bench::new(SHARED, 5);
    let first = data(PEER, TO_ME, 255, b"a");
    let next = data(PEER, TO_ME, 0, b"b");
    let other = data(OTHER, TO_ME, 255, b"c");
    let broadcast = data(PEER, LinkAddr::BROADCAST, 1, b"d");
    let steps = [
        ("first", &first, true, 1),
        ("its repetition", &first, false, 2),
        ("same number, other neighbour", &other, true, 3),
        ("a broadcast between", &broadcast, true, 3),
        ("again", &first, false, 4),
        ("the next", &next, true, 5),
        ("the first no longer", &first, true, 6),
    ];
    for (name, psdu, delivered, acks) in steps {
        bench.now += Duration::from_millis(10);
        assert_eq!(bench.hear(psdu).is_some(), delivered, "{name}");
        bench.run();
        assert_eq!(bench.acks_sent().len(), acks, "{name}");
    }
    assert_eq!(bench.mac.counters().dropped(FrameDrop::Duplicate), 2);
    bench.now += Duration::from_millis(2_001);
    assert!(
        bench.hear(&first).is_some(),
        "256 frames later the number means another frame"
    );
}

#[test]
fn forged_neighbours_do_not_push_out_one_we_send_to() {
    let mut bench = Bench::new(SHARED, 6);
    bench.send(PEER, 1);
    bench.run();
    let psdu = data(PEER, TO_ME, 5, b"x");
    assert!(bench.hear(&psdu).is_some());
    bench.run();
    for short in 0..500 {
        bench.hear(&data(LinkAddr::Short(short), TO_ME, 5, b"x"));
        bench.now += Duration::from_micros(1_000);
        bench.poll();
    }
    assert!(bench.hear(&psdu).is_none(), "still known as a duplicate");
    assert_eq!(bench.mac.neighbor(PEER).unwrap().etx(), Some(128));
}

#[test]
fn frames_not_for_us_are_dropped_with_a_reason() {
    let good = Header::data(PAN, TO_ME, PEER, 1);
    let pan = |pan_id, addr| Some(Address { pan_id, addr });
    let with = |change: &dyn Fn(&mut Header)| {
        let mut header = good;
        change(&mut header);
        frame(header, b"payload")
    };
    let raw = |first: u8, second: u8| {
        let mut psdu = frame(good, b"payload");
        (psdu[0], psdu[1]) = (psdu[0] | first, psdu[1] | second);
        seal(psdu)
    };
    let mut bad_fcs = frame(good, b"payload");
    bad_fcs[10] ^= 1;
    let me = TO_ME;
    let cases: [(&str, Vec<u8>, FrameDrop); 19] = [
        ("empty", Vec::new(), FrameDrop::Malformed),
        ("two bytes", seal(std::vec![0; 2]), FrameDrop::Malformed),
        (
            "header cut",
            seal(frame(good, b"")[..12].to_vec()),
            FrameDrop::Malformed,
        ),
        ("too long", std::vec![0x41; 128], FrameDrop::Malformed),
        ("one bit wrong", bad_fcs, FrameDrop::BadFcs),
        ("secured", raw(0x08, 0), FrameDrop::Secured),
        ("information elements", raw(0, 0x02), FrameDrop::Unsupported),
        ("version 2015", raw(0, 0x20), FrameDrop::Unsupported),
        ("frame type 5", raw(0x04, 0), FrameDrop::Unsupported),
        (
            "other PAN",
            with(&|h| h.dst = pan(PAN + 1, me)),
            FrameDrop::OtherPan,
        ),
        (
            "from another PAN",
            with(&|h| h.src = pan(PAN + 1, PEER)),
            FrameDrop::OtherPan,
        ),
        (
            "other node",
            with(&|h| h.dst = pan(PAN, OTHER)),
            FrameDrop::OtherNode,
        ),
        (
            "short address we lack",
            with(&|h| h.dst = pan(PAN, LinkAddr::Short(1))),
            FrameDrop::OtherNode,
        ),
        (
            "for the coordinator",
            with(&|h| h.dst = None),
            FrameDrop::OtherNode,
        ),
        (
            "from the coordinator",
            with(&|h| h.src = None),
            FrameDrop::BadSource,
        ),
        (
            "from everybody",
            with(&|h| h.src = pan(PAN, LinkAddr::BROADCAST)),
            FrameDrop::BadSource,
        ),
        (
            "from ourselves",
            with(&|h| h.src = pan(PAN, me)),
            FrameDrop::BadSource,
        ),
        (
            "command",
            with(&|h| h.frame_type = FrameType::Command),
            FrameDrop::Command,
        ),
        (
            "stray ACK",
            frame(Header::ack(1, false), &[]),
            FrameDrop::StrayAck,
        ),
    ];
    let mut bench = Bench::new(SHARED, 7);
    for (name, psdu, reason) in cases {
        let before = bench.mac.counters().dropped(reason);
        assert_eq!(bench.hear(&psdu), None, "{name}");
        assert_eq!(bench.mac.counters().dropped(reason), before + 1, "{name}");
        bench.run();
        assert!(bench.acks_sent().is_empty(), "{name}");
    }
    assert!(
        bench.hear(&with(&|h| h.dst = pan(0xffff, me))).is_some(),
        "broadcast PAN"
    );
}

/// Replaces the last two bytes by the FCS of the others.
fn seal(mut psdu: Vec<u8>) -> Vec<u8> {
    let len = psdu.len() - 2;
    let sum = fcs(&psdu[..len]).to_le_bytes();
    psdu[len..].copy_from_slice(&sum);
    psdu
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    Wait(u8, u8, u32),
    Hear(u8, u8),
    Head(u8, u8),
    Garbage(Vec<u8>),
    Answer(u8),
    Later(u32),
    Cancel(u8),
    Hold(u8, u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0u8..3).prop_map(Step::Send),
        (0u8..2, 0u8..2, 0u32..100_000).prop_map(|(to, from, us)| Step::Wait(to, from, us)),
        (0u8..3, 0u8..3).prop_map(|(who, dsn)| Step::Hear(who, dsn)),
        (0u8..2, 0u8..3).prop_map(|(who, dsn)| Step::Head(who, dsn)),
        prop::collection::vec(any::<u8>(), 0..130).prop_map(Step::Garbage),
        (0u8..5).prop_map(Step::Answer),
        (0u32..200_000).prop_map(Step::Later),
        (0u8..3).prop_map(Step::Cancel),
        (0u8..3, 0u32..200_000).prop_map(|(who, us)| Step::Hold(who, us)),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// Whatever a radio reports, in whatever order: no panic, no deadline in the past after
    /// polling (a busy loop), and every frame ends once.
    #[test]
    fn survives_any_sequence_of_events(
        steps in steps(),
        shared: bool,
        acknowledges: bool,
        blocks: bool,
        seed: u64,
    ) {
        let mut config = Config::new(PAN, ME);
        config.retry_blocks_queue = blocks;
        let radio = RadioCapabilities {
            auto_ack: acknowledges,
            ..if shared { SHARED } else { SEPARATE }
        };
        let mut bench = Bench::with(config, radio, 5, 2, seed);
        bench.honest = false;
        let who = |n: u8| [PEER, OTHER, LinkAddr::BROADCAST][usize::from(n)];
        let (mut enqueued, mut cancelled) = (0, 0);
        for step in steps {
            match step {
                Step::Send(n) => {
                    let token = u16::from(n);
                    enqueued += usize::from(bench.enqueue(who(n), token, b"x", Class::Control).is_ok());
                }
                Step::Wait(to, from, us) => {
                    let condition = Condition {
                        from: who(from),
                        protocol: Protocol::byte(b'x'),
                    };
                    let until = bench.now + Duration::from_micros(u64::from(us));
                    let token = u16::from(to);
                    let frame = Frame {
                        to: who(to),
                        token,
                        payload: b"x",
                        class: Class::Control,
                        since: bench.now,
                    };
                    let queued = bench.mac.enqueue_conditional(&frame, condition, until);
                    enqueued += usize::from(queued.is_ok());
                }
                Step::Head(n, dsn) => {
                    let psdu = data(who(n), TO_ME, dsn, b"x");
                    let head = &psdu[..psdu.len() - 2];
                    bench.mac.on_event(Event::FrameHead { head }, bench.now, &mut bench.rng);
                }
                Step::Hear(n, dsn) => { bench.hear(&data(who(n % 2), TO_ME, dsn, b"x")); }
                Step::Garbage(psdu) => { bench.hear(&psdu); }
                Step::Answer(n) => {
                    let dsn = bench.fired.last().map_or(0, |(_, psdu)| psdu[2]);
                    let ack = frame(Header::ack(dsn, false), &[]);
                    let meta = RxMeta { rssi_dbm: 0, lqi: 0, channel: 26, at: bench.now };
                    let event = match n {
                        0 => Event::Preloaded,
                        1 => Event::ChannelAssessed { clear: true },
                        2 => Event::ChannelAssessed { clear: false },
                        3 => Event::TransmitDone { at: bench.now },
                        _ => Event::FrameReceived { psdu: &ack, meta },
                    };
                    bench.mac.on_event(event, bench.now, &mut bench.rng);
                }
                Step::Later(us) => bench.now += Duration::from_micros(u64::from(us)),
                Step::Cancel(n) => cancelled += bench.mac.cancel(u16::from(n)),
                Step::Hold(n, us) => {
                    let until = bench.now + Duration::from_micros(u64::from(us));
                    bench.mac.pause(who(n), until, bench.now);
                }
            }
            bench.poll();
        }
        for _ in 0..10 {
            bench.run();
        }
        prop_assert_eq!(bench.outcomes.len() + cancelled, enqueued);
        prop_assert_eq!(bench.mac.queue_len(), 0);
        let counters = bench.mac.counters();
        // A frame may be in both: flushed, and then fired in its backoff.
        prop_assert!(counters.immediate.max(counters.flushed) <= counters.conditional);
    }
}
