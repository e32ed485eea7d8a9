//! The driver's side of the clock: interframe spacing, late stamps, a radio that keeps the FCS.

use std::vec::Vec;

use proptest::prelude::*;

use super::bench::*;
use crate::mac::config::{ACK_AIR_TIME, ACK_SLACK, CCA, LIFS, SIFS, TURNAROUND};
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::check_fcs;

const TO_ME: LinkAddr = LinkAddr::Extended(ME);

/// A driver that takes no time: what the MAC itself leaves between frames.
const PROMPT: RadioCapabilities = RadioCapabilities {
    auto_ack: true,
    ..SEPARATE
};

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// First symbol and end of each frame fired.
fn on_air(bench: &Bench) -> Vec<(Instant, Instant)> {
    let span = |(at, psdu): &(Instant, Vec<u8>)| {
        let first = *at + TURNAROUND;
        (first, first + us(32 * (6 + psdu.len() as u64)))
    };
    bench.fired.iter().map(span).collect()
}

/// The shortest time from the end of one exchange to the next frame over many backoffs, and the
/// mean.
fn gaps(config: &Config, payload_len: usize, to: LinkAddr) -> (u64, u64) {
    let ack = match to.is_broadcast() || !config.acknowledged {
        true => Duration::ZERO,
        false => TURNAROUND + ACK_AIR_TIME,
    };
    let mut all = Vec::new();
    for seed in 0..100 {
        let mut bench = Bench::with(config.clone(), PROMPT, 16, 4, seed);
        bench.copy_us_per_byte = 0;
        for token in 0..4 {
            let payload = [0x5a; 104];
            bench
                .enqueue(to, token, &payload[..payload_len], Class::Control)
                .unwrap();
        }
        bench.run();
        assert_eq!(bench.outcomes.len(), 4);
        let pairs = on_air(&bench);
        let gap = |pair: &[(Instant, Instant)]| pair[1].0.since(pair[0].1 + ack).as_micros();
        all.extend(pairs.windows(2).map(gap));
    }
    let mean = all.iter().sum::<u64>() / all.len() as u64;
    (all.into_iter().min().unwrap(), mean)
}

#[test]
fn frames_of_one_sender_keep_the_interframe_spacing() {
    let (long, short) = (LIFS.as_micros(), SIFS.as_micros());
    let config = |acknowledged, assessed, be| Config {
        acknowledged,
        assessed,
        be_min: be,
        short: Some(1),
        short_source: true,
        ..Config::new(PAN, ME)
    };
    // Header and FCS take 11 bytes between short addresses, 17 to a long one.
    let near = LinkAddr::Short(2);
    let usual = CCA.as_micros() + short;
    for (name, config, len, to, expected) in [
        ("a full frame", config(true, true, 3), 104, near, long),
        ("18 bytes", config(true, true, 3), 7, near, usual),
        ("19 bytes", config(true, true, 3), 8, near, long),
        ("no ACK asked for", config(false, true, 3), 104, near, long),
        (
            "to all",
            config(true, true, 3),
            104,
            LinkAddr::BROADCAST,
            long,
        ),
        ("nothing assessed", config(false, false, 0), 104, near, long),
        ("that, 18 bytes", config(false, false, 0), 7, near, short),
        ("to a long address", config(true, true, 3), 2, PEER, long),
    ] {
        let (least, _) = gaps(&config, len, to);
        // The bench reports an ACK 50 µs after its end.
        let reported = expected..=expected + 50;
        assert!(
            reported.contains(&least),
            "{name}: {least} µs, not {expected}"
        );
    }
}

/// The spacing runs while the backoff does: of eight backoffs only the one of no length grows.
#[test]
fn the_spacing_costs_an_eighth_of_a_backoff_unit() {
    let without = Config {
        lifs: Duration::ZERO,
        ..Config::new(PAN, ME)
    };
    let (_, free) = gaps(&without, 104, PEER);
    let (_, spaced) = gaps(&Config::new(PAN, ME), 104, PEER);
    let cost = spaced.saturating_sub(free);
    assert!((20..=60).contains(&cost), "{cost} µs; 320 / 8 = 40");
}

#[test]
fn a_frame_that_its_condition_would_fire_too_early_takes_the_normal_path() {
    let mut bench = Bench::new(PROMPT, 1);
    let condition = Condition {
        from: OTHER,
        protocol: Protocol::byte(b'x'),
    };
    bench.send(PEER, 1);
    bench.run();
    // The queue is empty, the exchange just over.
    let psdu = data(OTHER, TO_ME, 9, b"x");
    let frame = Frame {
        to: PEER,
        token: 2,
        payload: b"two",
        class: Class::Forward,
        since: bench.now,
    };
    let until = bench.now + Duration::from_millis(30);
    bench
        .mac
        .enqueue_conditional(&frame, condition, until)
        .unwrap();
    bench.poll();
    bench
        .mac
        .on_event(Event::Preloaded, bench.now, &mut bench.rng);
    bench.honest = false;
    let ended = bench.now;
    let event = Event::FrameHead {
        head: check_fcs(&psdu).unwrap(),
    };
    bench.mac.on_event(event, bench.now, &mut bench.rng);
    bench.run();
    let (first, _) = on_air(&bench)[1];
    assert!(
        first.since(ended) >= LIFS - us(50),
        "{:?}",
        first.since(ended)
    );
    assert!(bench.outcomes[1].delivered);
    assert_eq!(bench.mac.counters().immediate, 0);
}

/// Sends one frame whose ACK ends `late` µs (or so much before) the right moment, by the driver's
/// stamps; whether it is taken.
fn takes_ack(radio: RadioCapabilities, late: i64) -> (bool, MacCounters) {
    let mut bench = Bench::new(radio, 1);
    bench.acked = [false].into();
    bench.send(PEER, 1);
    assert!(bench.run_until(|bench| matches!(bench.mac.state, State::AwaitingAck { .. })));
    let State::AwaitingAck { sent_at, .. } = bench.mac.state else {
        unreachable!()
    };
    let on_time = (sent_at + TURNAROUND + ACK_AIR_TIME).as_micros();
    let at = Instant::from_micros(on_time.checked_add_signed(late).unwrap());
    bench.now = at;
    let dsn = bench.fired[0].1[2];
    let psdu = frame(Header::ack(dsn, false), &[]);
    bench.hear(&psdu);
    bench.poll();
    (!bench.outcomes.is_empty(), bench.mac.counters().clone())
}

#[test]
fn late_stamps_widen_what_counts_as_our_ack() {
    let slack = ACK_SLACK.as_micros() as i64;
    for stamps in [0, 30, 500] {
        let radio = RadioCapabilities {
            stamp_delay_max: us(stamps as u64),
            ..PROMPT
        };
        for (late, taken) in [
            (0, true),
            (-slack - stamps, true),
            (-slack - stamps - 1, false),
            (slack + 2 * stamps, true),
            (slack + 2 * stamps + 1, false),
        ] {
            let (was_taken, counters) = takes_ack(radio, late);
            assert_eq!(was_taken, taken, "stamps {stamps} µs late, ACK {late}");
            let mistimed = counters.dropped(FrameDrop::MistimedAck);
            assert_eq!(mistimed, u32::from(!taken));
            let by = if taken { 0 } else { late as i32 };
            assert_eq!(counters.mistimed_by_us, by);
        }
    }
}

#[test]
fn an_ack_that_a_neighbour_may_not_take_is_counted() {
    for (late_us, sent, late, too_late) in [(256, 1, 0, 0), (257, 1, 1, 0), (513, 0, 0, 1)] {
        let mut bench = Bench::new(SEPARATE, 1);
        let psdu = data(PEER, TO_ME, 5, b"x");
        let at = bench.now;
        bench.now += us(late_us);
        let meta = RxMeta {
            rssi_dbm: -60,
            lqi: 255,
            channel: 26,
            at,
        };
        let event = Event::FrameReceived { psdu: &psdu, meta };
        bench.mac.on_event(event, bench.now, &mut bench.rng);
        bench.run();
        let counters = bench.mac.counters();
        assert_eq!(
            (counters.acks_sent, counters.acks_late),
            (sent, late),
            "{late_us}"
        );
        assert_eq!(counters.dropped(FrameDrop::AckTooLate), too_late);
    }
}

#[test]
fn a_radio_that_keeps_the_fcs_sees_frames_without_it() {
    let radio = RadioCapabilities {
        fcs_by_radio: true,
        ..SEPARATE
    };
    let mut bench = Bench::new(radio, 1);
    let whole = data(PEER, TO_ME, 5, b"hello");
    let mpdu = &whole[..whole.len() - 2];
    assert_eq!(bench.hear(mpdu).unwrap().payload, b"hello");
    bench.run();
    let ack = bench.actions.iter().find_map(|(_, action)| match action {
        Action::Transmit { len, .. } => Some(*len),
        _ => None,
    });
    assert_eq!(ack, Some(3));
    bench.enqueue(PEER, 7, &[0x5a; 104], Class::Own).unwrap();
    bench.run();
    assert!(bench.outcomes[0].delivered, "{:?}", bench.mac.counters());
    assert_eq!(
        bench.fired[0].1.len(),
        125,
        "the longest frame less its FCS"
    );
    assert_eq!(bench.hear(&[0x41; 126]), None, "no PSDU is as long");
    assert_eq!(bench.mac.counters().dropped(FrameDrop::Malformed), 1);
}

/// The bytes of the FCS stay as they were: nobody computes what the radio does.
#[test]
fn the_fcs_of_a_radio_that_keeps_it_is_not_computed() {
    let radio = RadioCapabilities {
        fcs_by_radio: true,
        ..SEPARATE
    };
    let mut bench = Bench::new(radio, 1);
    let mut out = [0xaa; 127];
    bench.enqueue(PEER, 7, b"hello", Class::Own).unwrap();
    let actions = std::iter::from_fn(|| {
        bench.now += us(320);
        Some(bench.mac.poll_action(bench.now, &mut bench.rng, &mut out))
    });
    let mut actions = actions.take(100).flatten();
    let loaded = actions.find_map(|action| match action {
        Action::Preload { len } => Some(len),
        _ => None,
    });
    assert_eq!(out[loaded.expect("it copies the frame")..][..2], [0xaa; 2]);
}

proptest! {
    /// Whatever is sent and heard in between, in whatever order.
    #[test]
    fn no_frame_follows_its_senders_last_too_early(
        steps in prop::collection::vec((0u8..4, 4usize..104, 0u64..3_000), 1..60),
        seed: u64,
        acknowledges: bool,
        acknowledged: bool,
    ) {
        let mut config = Config::new(PAN, ME);
        config.acknowledged = acknowledged;
        let radio = RadioCapabilities { auto_ack: acknowledges, ..SEPARATE };
        let mut bench = Bench::with(config, radio, 8, 4, seed);
        bench.copy_us_per_byte = 0;
        let mut dsn = 0u8;
        for (what, len, wait) in steps {
            let end = bench.now + us(wait);
            match what {
                0 | 1 => {
                    let to = [PEER, LinkAddr::BROADCAST][usize::from(what)];
                    let _full = bench.enqueue(to, 1, &[0x5a; 104][..len], Class::Control);
                }
                2 => {
                    dsn = dsn.wrapping_add(1);
                    bench.hear(&data(OTHER, TO_ME, dsn, b"x"));
                }
                _ => bench.acked.push_back(false),
            }
            bench.run_until(|bench| bench.now >= end);
            bench.now = bench.now.max(end);
        }
        bench.run();
        for pair in on_air(&bench).windows(2) {
            prop_assert!(pair[1].0.since(pair[0].1) >= LIFS);
        }
    }
}
