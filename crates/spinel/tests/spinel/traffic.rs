//! Frames that are sent and received.

use motet::time::{Duration, Instant};
use motet_spinel::frame::{Property, Status};
use motet_spinel::raw::Flags;
use motet_spinel::{Event, Outcome, Promiscuous, Received, Refusal};
use proptest::prelude::*;

use crate::bench::{Bench, data, is_restarted};
use crate::fake::{End, Quirks};

fn received(bench: &Bench) -> Vec<&Received> {
    let received = bench.events.iter().filter_map(|event| match event {
        Event::Received(received) => Some(received),
        _ => None,
    });
    received.collect()
}

#[test]
fn each_end_of_a_transmission_is_told() {
    let mut bench = Bench::ready(Quirks::default());
    bench.radio.ends = [
        End::Acked { pending: true },
        End::Acked { pending: false },
        End::Status(Status::NoAck),
        End::Status(Status::ChannelBusy),
        End::Status(Status::ParseError),
    ]
    .into();
    for pending in [true, false] {
        let sent_at = bench.now_us;
        let (outcome, at) = bench.transmit(&data(1));
        let Outcome::Acked(ack) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((ack.pending, ack.rssi_dbm), (pending, Some(-20)));
        // The frame is on the air from when the radio has it, 13 bytes behind six; and its ACK.
        let ended = sent_at + bench.way_us + 32 * (6 + 13);
        assert!(at.as_micros().abs_diff(ended) <= 1, "{at:?} {ended}");
        assert!(ack.at.as_micros().abs_diff(ended + 544) <= 1);
    }
    assert_eq!(bench.transmit(&data(2)).0, Outcome::NoAck);
    assert_eq!(bench.transmit(&data(3)).0, Outcome::Busy);
    let failed = Outcome::Failed(Some(Status::ParseError));
    assert_eq!(bench.transmit(&data(4)).0, failed);
    let mut broadcast = data(5);
    broadcast[0] = 0x41;
    assert_eq!(bench.transmit(&broadcast).0, Outcome::Done);
    let counters = bench.session.counters();
    let ends = [
        counters.acked,
        counters.no_ack,
        counters.busy,
        counters.failed,
        counters.done,
    ];
    assert_eq!(ends, [2, 1, 1, 1, 1]);
    assert_eq!(bench.radio.air.len(), 6);
}

#[test]
fn a_radio_may_only_say_that_it_was_acknowledged() {
    let mut bench = Bench::ready(Quirks::default());
    bench.radio.ends = [End::Acknowledged].into();
    let (outcome, at) = bench.transmit(&data(1));
    let Outcome::Acked(ack) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((ack.pending, ack.rssi_dbm, ack.at), (true, None, at));
}

#[test]
fn one_frame_is_sent_at_a_time() {
    let mut bench = Bench::ready(Quirks::default());
    let now = bench.now();
    bench.session.transmit(&data(1), None, now).unwrap();
    assert_eq!(
        bench.session.transmit(&data(2), None, now),
        Err(Refusal::InProgress)
    );
    bench.run_ms(20);
    for (len, is_sent) in [(0, false), (2, false), (3, true), (125, true), (126, false)] {
        let psdu = vec![0; len];
        let result = bench.session.transmit(&psdu, None, bench.now());
        assert_eq!(
            result,
            if is_sent {
                Ok(())
            } else {
                Err(Refusal::Length(len))
            }
        );
        bench.run_ms(20);
    }
}

/// A frame secured with key identifier mode 1.
fn secured() -> Vec<u8> {
    let mut frame = vec![0x69, 0x98, 33, 0xcd, 0xab, 2, 0, 1, 0];
    // Level 5, mode 1; counter 0x1122; key index 1; then what is encrypted.
    frame.extend([0x0d, 0x22, 0x11, 0, 0, 1]);
    frame.extend(*b"ciphertext and MIC");
    frame
}

#[test]
fn firmware_that_stamps_secured_frames_leaves_ours_alone() {
    let mut bench = Bench::ready(Quirks {
        stamps: true,
        ..Quirks::default()
    });
    bench.transmit(&secured());
    bench.transmit(&data(1));
    assert_eq!(bench.radio.air, [secured(), data(1)]);
    // Is a retransmission, is secured: and for frames in the clear only the latter.
    let flags: Vec<_> = bench
        .radio
        .requests
        .iter()
        .map(|told| (told.1, told.2))
        .collect();
    assert_eq!(flags, [(true, true), (false, true)]);
}

#[test]
fn the_played_firmware_does_stamp_frames_that_are_sent_otherwise() {
    use motet_spinel::frame::{Command, Frame, Header};
    let mut bench = Bench::ready(Quirks {
        stamps: true,
        ..Quirks::default()
    });
    let secured = secured();
    let request = motet_spinel::raw::Request {
        psdu: &secured,
        channel: 15,
        csma: true,
        csma_backoffs_max: 4,
        retries_max: 0,
        is_header_updated: false,
        is_retransmission: false,
        is_secured: true,
        delay_us: 0,
        base_us: 0,
    };
    let frame = Frame {
        header: Header {
            interface: 0,
            transaction: 1,
        },
        command: Command::Set,
        property: Property::StreamRaw,
        value: &request.emit(),
    };
    let mut line = Vec::new();
    motet_spinel::hdlc::encode(&frame.emit(), &mut line);
    bench.radio.on_bytes(&line, bench.now_us);
    assert_ne!(bench.radio.air, [secured]);
    assert_eq!(bench.radio.air[0][10..15], [77, 0, 0, 0, 9]);
}

#[test]
fn an_answer_that_is_lost_holds_the_next_frame_until_the_radio_answers() {
    let mut bench = Bench::ready(Quirks::default());
    bench.radio.ends = [End::Unanswered].into();
    bench.session.transmit(&data(1), None, bench.now()).unwrap();
    bench.run_ms(999);
    assert!(bench.events.is_empty());
    bench.radio.asked.clear();
    bench.run_ms(2);
    assert_eq!(bench.sent().0, Outcome::Failed(None));
    // The radio is asked anything before it is given another frame.
    bench.session.transmit(&data(2), None, bench.now()).unwrap();
    bench.run_ms(20);
    assert_eq!(bench.radio.asked, [Property::RcpTimestamp]);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    assert_eq!(bench.count(is_restarted), 0);
}

#[test]
fn a_frame_may_be_sent_at_a_time() {
    // The clock's lower half wraps between the request and the time.
    let mut bench = Bench::ready(Quirks {
        clock_us: 0x7_ffff_ffff - 1_101_000,
        ..Quirks::default()
    });
    let at = Instant::from_micros(bench.now_us + 50_000);
    bench
        .session
        .transmit(&data(1), Some(at), bench.now())
        .unwrap();
    bench.run_ms(100);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    let (_, _, _, delay_us, base_us) = bench.radio.requests[0];
    assert_eq!(delay_us, 50_000);
    let wanted = bench.radio.clock(at.as_micros()) as u32;
    assert!(base_us > u32::MAX - 60_000 && wanted < 60_000);
    assert!(base_us.wrapping_add(delay_us).abs_diff(wanted) <= 1);
    // A time that has passed is now.
    let at = Instant::from_micros(bench.now_us - 5);
    bench
        .session
        .transmit(&data(2), Some(at), bench.now())
        .unwrap();
    bench.run_ms(100);
    assert_eq!(bench.radio.requests[1].3, 0);
}

#[test]
fn frames_come_without_their_fcs_and_with_their_time() {
    let mut bench = Bench::ready(Quirks::default());
    let ended = bench.now_us;
    bench.radio.hears(&data(9), Flags::ACKED_PENDING, ended);
    bench.run_ms(5);
    let [frame] = received(&bench)[..] else {
        panic!("{:?}", bench.events);
    };
    assert_eq!(frame.psdu, data(9));
    assert_eq!((frame.rssi_dbm, frame.lqi, frame.channel), (-20, 200, 15));
    assert!(frame.flags.has(Flags::ACKED_PENDING));
    assert!(frame.at.as_micros().abs_diff(ended) <= 1);
    let sfd_us = bench.radio.clock(ended - 32 * 14);
    assert_eq!(frame.sfd_us, Some(sfd_us));
}

#[test]
fn a_drifting_clock_stays_mapped_for_hours() {
    for (clock_ppm, has_short_clock) in [(40, false), (-40, true)] {
        let mut bench = Bench::ready(Quirks {
            clock_ppm,
            has_short_clock,
            ..Quirks::default()
        });
        bench.way_us = 2_000;
        let mut worst = 0;
        for _ in 0..300 {
            bench.run_ms(29_000);
            let ended = bench.now_us;
            bench.radio.hears(&data(9), Flags::default(), ended);
            bench.run_ms(10);
            let at = received(&bench).last().unwrap().at.as_micros();
            worst = worst.max(at.abs_diff(ended));
            bench.events.clear();
        }
        // In the first minute the rate is unknown: 40 ppm of a minute.
        assert!(worst <= 2_500, "{worst}");
        assert_eq!(bench.session.counters().clock_jumps, 0);
        let ended = bench.now_us;
        bench.radio.hears(&data(9), Flags::default(), ended);
        bench.run_ms(10);
        let off = received(&bench)[0].at.as_micros().abs_diff(ended);
        assert!(off < 20, "{off}");
    }
}

#[test]
fn old_firmwares_frames_lack_their_time() {
    let mut bench = Bench::ready(Quirks {
        has_short_structs: true,
        ..Quirks::default()
    });
    bench.radio.hears(&data(9), Flags::default(), bench.now_us);
    bench.run_ms(5);
    let came = bench.now_us - 5_000 + bench.way_us;
    let [frame] = received(&bench)[..] else {
        panic!("{:?}", bench.events);
    };
    assert_eq!((frame.sfd_us, frame.lqi), (None, 200));
    assert_eq!(frame.at, Instant::from_micros(came));
    let Outcome::Acked(ack) = bench.transmit(&data(1)).0 else {
        panic!("no ACK");
    };
    assert!(ack.at > Instant::from_micros(came));
}

#[test]
fn a_time_that_cannot_be_is_not_believed() {
    let mut bench = Bench::ready(Quirks::default());
    bench.run_ms(50_000);
    let now = bench.now_us;
    let shown = bench.radio.clock(now);
    for sfd_us in [0, shown - 20_000_000, shown + 1_000_000, u64::MAX] {
        bench
            .radio
            .hears_at(&data(9), Flags::default(), sfd_us, now);
    }
    bench.run_ms(5);
    let came = Instant::from_micros(now + bench.way_us);
    let frames = received(&bench);
    assert_eq!(frames.len(), 4);
    for frame in frames {
        assert_eq!(frame.at, came, "{frame:?}");
    }
}

#[test]
fn a_frame_waits_for_settings_and_settings_for_a_frame() {
    let mut bench = Bench::ready(Quirks::default());
    bench.radio.told.clear();
    let now = bench.now();
    bench.session.set_addresses(7, Some(9), None, now);
    bench.session.set_channel(20, now).unwrap();
    bench.session.transmit(&data(1), None, now).unwrap();
    bench.run_ms(20);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    assert_eq!(bench.radio.told.len(), 4);
    assert_eq!(bench.radio.told[3].1, Property::StreamRaw);
    // The played radio wants neither a setting nor a scan while it sends, nor a setting while it
    // scans.
    bench.session.transmit(&data(2), None, bench.now()).unwrap();
    bench.session.set_channel(21, bench.now()).unwrap();
    bench.session.scan(22, 20, bench.now()).unwrap();
    bench.run_ms(10);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    assert!(bench.radio.has(Property::PhyChan, &[21]));
    bench.session.set_channel(23, bench.now()).unwrap();
    bench.run_ms(40);
    assert!(bench.radio.has(Property::PhyChan, &[23]));
    assert_eq!(bench.events.len(), 3);
}

#[test]
fn frames_that_are_none_are_counted() {
    let mut bench = Bench::ready(Quirks::default());
    let now = bench.now_us;
    bench.radio.hears(&data(1), Flags::BAD_FCS, now);
    bench.radio.hears(&data(1), Flags::SENT, now);
    bench.radio.hears(&[1], Flags::default(), now);
    bench.radio.hears(&[1; 126], Flags::default(), now);
    // A frame that was refused: no bytes, and why.
    bench.radio.says(
        Property::StreamRaw,
        &[0, 0, 0, 0x80, 0, 0, 0, 0, 1, 0, 5],
        now,
    );
    bench.radio.says(Property::StreamRaw, &[9, 0, 1], now);
    bench.run_ms(5);
    assert!(bench.events.is_empty());
    let counters = bench.session.counters();
    assert_eq!((counters.refused, counters.own), (2, 1));
    assert_eq!((counters.bad_length, counters.malformed), (2, 1));
}

#[test]
fn frames_that_nobody_takes_are_bounded() {
    let mut bench = Bench::ready(Quirks::default());
    for _ in 0..1_000 {
        bench.radio.hears(&data(1), Flags::default(), bench.now_us);
    }
    let now = bench.now();
    for (_, line) in std::mem::take(&mut bench.radio.sent) {
        bench.session.on_bytes(&line, now);
    }
    let counters = bench.session.counters();
    assert_eq!((counters.received, counters.overrun), (256, 744));
}

#[test]
fn a_receiver_that_is_off_neither_hears_nor_sends() {
    let mut bench = Bench::ready(Quirks::default());
    bench.session.set_listening(false, bench.now());
    let refused = bench.session.transmit(&data(1), None, bench.now());
    assert_eq!(refused, Err(Refusal::NotReady));
    bench.run_ms(5);
    assert!(bench.radio.has(Property::RawStreamEnabled, &[0]));
    // It is switched on before the frame is handed over.
    bench.session.set_listening(true, bench.now());
    assert!(matches!(bench.transmit(&data(1)).0, Outcome::Acked(_)));
    bench.session.set_promiscuous(Promiscuous::All, bench.now());
    bench
        .session
        .set_addresses(7, None, Some([9; 8]), bench.now());
    bench.run_ms(20);
    assert!(bench.radio.has(Property::MacPromiscuous, &[2]));
    assert!(bench.radio.has(Property::MacPanid, &[7, 0]));
    assert!(bench.radio.has(Property::MacSaddr, &[0xff, 0xff]));
    assert!(bench.radio.has(Property::MacLaddr, &[9; 8]));
}

#[test]
fn a_radio_that_dies_silently_is_noticed_within_a_minute() {
    let mut bench = Bench::ready(Quirks::default());
    bench.is_stopped = true;
    bench.run_ms(62_500);
    assert_eq!(bench.count(is_restarted), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_comes_between_every_frame_ends_once(
        noise in prop::collection::vec(any::<u8>(), 0..30),
        (cut, way_us, mixes, has_short_structs) in (1_usize..200, 0_u64..20_000, any::<bool>(), any::<bool>()),
        restarts in prop::collection::vec(0_u64..40, 0..4),
    ) {
        let mut bench = Bench::new(Quirks { mixes, has_short_structs, ..Quirks::default() });
        (bench.cut, bench.way_us) = (cut, way_us);
        bench.run_ms(2_000);
        prop_assert!(bench.session.is_ready());
        bench.events.clear();
        bench.radio.quirks.noise = [&noise[..], &[0x7e]].concat();
        let mut accepted = 0;
        for turn in 0..40 {
            if bench.session.transmit(&data(turn as u8), None, bench.now()).is_ok() {
                accepted += 1;
            }
            if restarts.contains(&turn) {
                bench.radio.restart(118, bench.now_us);
            }
            bench.run_ms(100);
        }
        bench.run_ms(10_000);
        prop_assert!(bench.session.is_ready());
        let sent = bench.count(|event| matches!(event, Event::Sent { .. }));
        prop_assert_eq!(sent, accepted);
        prop_assert!(accepted > 0);
        prop_assert!(bench.session.deadline().unwrap() > bench.now());
        prop_assert!(bench.session.round_trip().unwrap().min >= Duration::from_micros(2 * way_us));
    }
}
