//! How a radio is started, refused, and started anew.

use motet::time::{Duration, Instant};
use motet_spinel::frame::{Command, Property, Status};
use motet_spinel::raw::Flags;
use motet_spinel::{Cause, Error, Event, Outcome, Peer, RadioCaps, Refusal, Session, Settings};

use crate::bench::{Bench, SETTINGS, data, is_ready, is_restarted, ms};
use crate::fake::{EUI64, Quirks};

#[test]
fn a_start_asks_first_and_listens_last() {
    let mut bench = Bench::new(Quirks::default());
    assert_eq!(
        bench.session.poll_output(bench.now()),
        b"\x7e\x80\x01\x02\xea\xf0\x7e"
    );
    bench.run_ms(100);
    let expected = [1, 2, 3, 5, 0xb0, 0xb1, 0x120b, 8, 0x22, 0x802].map(Property::from);
    // The radio tells its restart twice, and is asked again in case it has lost the question.
    let questions = &bench.radio.asked;
    assert_eq!(questions[0], questions[1]);
    assert_eq!(questions[1..], expected);
    let set = |property, value: &[u8]| (Command::Set, property, value.to_vec());
    assert_eq!(
        bench.radio.told,
        [
            set(Property::PhyEnabled, &[1]),
            set(Property::SrcMatchEnabled, &[1]),
            set(Property::SrcMatchShort, &[]),
            set(Property::SrcMatchExtended, &[]),
            set(Property::PhyChan, &[15]),
            set(Property::MacPanid, &[0xcd, 0xab]),
            set(Property::MacLaddr, &EUI64),
            set(Property::MacSaddr, &[1, 0]),
            set(Property::MacPromiscuous, &[0]),
            set(Property::RawStreamEnabled, &[1]),
        ]
    );
    let [Event::Ready(radio)] = &bench.events[..] else {
        panic!("{:?}", bench.events);
    };
    assert_eq!(radio.firmware, "OPENTHREAD/; SIMULATION");
    assert_eq!((radio.api, radio.eui64), (11, EUI64));
    assert!(radio.capabilities.has(RadioCaps::CSMA_BACKOFF));
    assert!(radio.channels.iter().copied().eq(11..=26));
    assert_eq!(bench.radio.resets, 1);
    let round_trip = bench.session.round_trip().unwrap();
    assert_eq!(
        (round_trip.min, round_trip.max),
        (Duration::from_micros(600), Duration::from_micros(600))
    );
    let counters = bench.session.counters();
    assert_eq!(
        (counters.restarts, counters.stale, counters.repeated),
        (0, 1, 0)
    );
}

#[test]
fn nothing_is_sent_to_a_radio_that_is_not_ready() {
    let mut session = Session::new(SETTINGS);
    let now = Instant::from_micros(7);
    assert_eq!(
        session.transmit(&data(1), None, now),
        Err(Refusal::NotReady)
    );
    assert_eq!(session.scan(15, 10, now), Err(Refusal::NotReady));
}

/// Radios that cannot be used: what is different, and why.
#[test]
fn a_radio_that_cannot_be_used_is_refused_with_its_reason() {
    let firmware = || "OPENTHREAD/; SIMULATION".to_owned();
    let old = |api| Error::TooOld {
        firmware: firmware(),
        api,
    };
    let ncp = || Error::NotAnRcp {
        firmware: firmware(),
    };
    let cases: [(u32, &[u8], Error); 9] = [
        (1, &[5, 0], Error::OtherProtocol { version: (5, 0) }),
        (3, &[1], ncp()),
        (3, &[], ncp()),
        (5, &[5, 12, 24, 64, 65], ncp()),
        (5, &[5, 34], old(None)),
        (0xb0, &[3], old(Some(3))),
        (0xb0, &[], old(None)),
        (
            0xb1,
            &[12],
            Error::TooNew {
                firmware: firmware(),
                least: 12,
            },
        ),
        (
            8,
            &[1, 2, 3],
            Error::Refused {
                property: Property::Hwaddr,
                status: Status::ParseError,
            },
        ),
    ];
    for (property, value, error) in cases {
        let mut bench = Bench::new(Quirks::default());
        bench.radio.properties.insert(property, value.to_vec());
        bench.run_ms(100);
        assert_eq!(bench.events, [Event::Failed(error.clone())], "{error}");
        // It is left alone.
        assert!(bench.radio.told.is_empty());
        assert_eq!(bench.session.deadline(), None);
        bench.run_ms(10_000);
        assert_eq!((bench.events.len(), bench.radio.resets), (1, 1));
        let refused = bench.session.transmit(&data(1), None, bench.now());
        assert_eq!(refused, Err(Refusal::NotReady));
    }
}

#[test]
fn what_only_young_firmware_tells_may_be_missing() {
    for (missing, settings) in [
        (&[0x22, 0x120b, 2, 0xb1][..], SETTINGS),
        (
            &[8],
            Settings {
                eui64: Some([2; 8]),
                short: None,
                ..SETTINGS
            },
        ),
    ] {
        let mut bench = Bench::with(Quirks::default(), settings);
        for property in missing {
            bench.radio.properties.remove(property);
        }
        bench.run_ms(100);
        assert_eq!(bench.count(is_ready), 1, "{:?}", bench.events);
        let eui64 = settings.eui64.unwrap_or(EUI64);
        assert!(bench.radio.has(Property::MacLaddr, &eui64));
        let short = settings.short.unwrap_or(0xffff).to_le_bytes();
        assert!(bench.radio.has(Property::MacSaddr, &short));
    }
}

#[test]
fn a_channel_that_the_radio_has_not_is_refused_here() {
    let settings = Settings {
        channel: 27,
        ..SETTINGS
    };
    let mut bench = Bench::with(Quirks::default(), settings);
    bench.run_ms(100);
    let channels = (11..=26).collect();
    let error = Error::NoSuchChannel {
        channel: 27,
        channels,
    };
    assert_eq!(bench.events, [Event::Failed(error)]);

    let mut bench = Bench::ready(Quirks::default());
    let now = bench.now();
    assert_eq!(
        bench.session.set_channel(27, now),
        Err(Refusal::NoSuchChannel(27))
    );
    assert_eq!(
        bench.session.scan(10, 5, now),
        Err(Refusal::NoSuchChannel(10))
    );
    assert_eq!(bench.session.set_channel(26, now), Ok(()));
    bench.run_ms(5);
    assert!(bench.radio.has(Property::PhyChan, &[26]));
    bench.transmit(&data(1));
    assert_eq!(bench.radio.requests[0].0, 26);
}

#[test]
fn a_setting_that_is_refused_ends_the_session() {
    let refuses = Some((Property::MacPanid, Status::InvalidArgument));
    let mut bench = Bench::new(Quirks {
        refuses,
        ..Quirks::default()
    });
    bench.run_ms(100);
    let error = Error::Refused {
        property: Property::MacPanid,
        status: Status::InvalidArgument,
    };
    assert_eq!(bench.events, [Event::Failed(error)]);
}

#[test]
fn a_radio_that_is_too_busy_for_a_setting_is_told_again() {
    let mut bench = Bench::ready(Quirks::default());
    let busy = Some((Property::RawStreamEnabled, Status::Busy));
    bench.radio.quirks.refuses = busy;
    bench.session.set_listening(false, bench.now());
    bench.run_ms(4);
    bench.radio.quirks.refuses = None;
    bench.run_ms(4);
    assert!(bench.radio.has(Property::RawStreamEnabled, &[0]));
    assert!(bench.events.is_empty());
    // It is not told for ever.
    bench.radio.quirks.refuses = busy;
    bench.session.set_listening(true, bench.now());
    bench.run_ms(100);
    let error = Error::Refused {
        property: Property::RawStreamEnabled,
        status: Status::Busy,
    };
    assert_eq!(bench.events, [Event::Failed(error)]);
}

#[test]
fn a_radio_that_never_answers_is_given_up_after_two_seconds() {
    let mut bench = Bench::new(Quirks::default());
    bench.is_stopped = true;
    bench.run_ms(1_999);
    assert!(bench.events.is_empty());
    bench.run_ms(2);
    let silent = Event::Failed(Error::NoAnswer(ms(2_000)));
    assert_eq!(bench.events, std::slice::from_ref(&silent));

    // The same where it answers only in the beginning, or speaks at another speed.
    let mut bench = Bench::new(Quirks::default());
    bench.run_ms(2);
    bench.is_stopped = true;
    bench.run_ms(2_100);
    assert_eq!(bench.events, std::slice::from_ref(&silent));
    let mut bench = Bench::new(Quirks::default());
    bench.radio.is_deaf = true;
    for n in 0..100 {
        let noise = [0x00, 0x7e, 0xf8, 0x80, n, 0x7d, 0x7e, 0xe6];
        bench.session.on_bytes(&noise, bench.now());
        bench.run_ms(21);
    }
    assert_eq!(bench.events, [silent]);
}

#[test]
fn a_reset_that_was_lost_is_repeated() {
    let mut bench = Bench::new(Quirks::default());
    bench.radio.is_deaf = true;
    bench.run_ms(700);
    bench.radio.is_deaf = false;
    bench.run_ms(100);
    assert_eq!(bench.count(is_ready), 1);
    assert_eq!(bench.session.counters().resets, 3);
}

#[test]
fn a_restart_that_is_reported_again_during_the_start_is_none() {
    // Seen of OpenThread's: behind the first answer. Later ones are answered by starting again, too.
    for after_us in (0..20_000).step_by(100) {
        let mut bench = Bench::new(Quirks {
            told: 1,
            ..Quirks::default()
        });
        bench.run_ms(1);
        bench.now_us += after_us % 1_000;
        bench.run_ms(after_us / 1_000);
        if bench.session.is_ready() {
            return;
        }
        bench.radio.restart(112, bench.now_us);
        bench.run_ms(100);
        assert_eq!(bench.events.len(), 1, "{after_us}: {:?}", bench.events);
        assert_eq!(bench.session.counters().restarts, 0, "{after_us}");
        assert!(bench.radio.has(Property::RawStreamEnabled, &[1]));
    }
    panic!("it was never ready");
}

#[test]
fn a_radio_that_vanishes_when_it_is_reset_is_not_reset_again() {
    let mut bench = Bench::new(Quirks {
        told: 0,
        ..Quirks::default()
    });
    bench.run_ms(10);
    // It enumerates anew some seconds later; nobody polls in between.
    bench.now_us += 4_000_000;
    bench.reopen();
    bench.run_ms(50);
    assert_eq!(bench.count(is_ready), 1, "{:?}", bench.events);
    assert_eq!(
        (bench.radio.resets, bench.session.counters().restarts),
        (1, 0)
    );
}

#[test]
fn a_restart_on_the_way_is_mended() {
    let mut bench = Bench::ready(Quirks::default());
    let now = bench.now();
    bench.session.set_source_match(Peer::Short(7), true, now);
    bench.session.set_channel(20, now).unwrap();
    bench.run_ms(20);
    bench.session.transmit(&data(1), None, bench.now()).unwrap();
    bench.session.poll_output(bench.now());
    bench.radio.restart(115, bench.now_us);
    bench.radio.told.clear();
    bench.run_ms(100);
    let failed = |event: &Event| {
        matches!(
            event,
            Event::Sent {
                outcome: Outcome::Failed(None),
                ..
            }
        )
    };
    let restarted = Event::Restarted(Cause::Status(Status::ResetFault));
    assert!(failed(&bench.events[0]), "{:?}", bench.events);
    assert_eq!(bench.events[1], restarted);
    assert!(is_ready(&bench.events[2]));
    assert_eq!(bench.events.len(), 3);
    assert_eq!(bench.radio.short, [7]);
    assert!(bench.radio.has(Property::PhyChan, &[20]));
    assert_eq!(
        bench.radio.told.last().unwrap().1,
        Property::RawStreamEnabled
    );
    let (outcome, _) = bench.transmit(&data(2));
    assert!(matches!(outcome, Outcome::Acked(_)));
}

#[test]
fn a_line_that_is_opened_anew_is_started_anew() {
    let mut bench = Bench::ready(Quirks::default());
    bench.run_ms(60_000);
    bench.session.transmit(&data(1), None, bench.now()).unwrap();
    bench.radio.restart(112, bench.now_us);
    bench.reopen();
    bench.run_ms(100);
    assert_eq!(
        bench.count(|event| *event == Event::Restarted(Cause::Line)),
        1
    );
    assert_eq!(bench.count(is_ready), 1);
    assert_eq!(bench.sent().0, Outcome::Failed(None));
    assert!(matches!(bench.transmit(&data(2)).0, Outcome::Acked(_)));
    // Half a frame of the old line does not spoil the new one.
    bench.run_ms(60_000);
    bench.session.on_bytes(b"\x7e\x80\x06\x71", bench.now());
    bench.reopen();
    bench.run_ms(100);
    assert_eq!(bench.count(is_ready), 2);
}

#[test]
fn while_there_is_no_line_nothing_happens() {
    let mut bench = Bench::ready(Quirks::default());
    bench.session.transmit(&data(1), None, bench.now()).unwrap();
    bench.session.poll_output(bench.now());
    bench.session.on_loss_of_line(bench.now());
    bench.is_stopped = true;
    bench.run_ms(0);
    assert_eq!(bench.sent().0, Outcome::Failed(None));
    assert_eq!(bench.events[1..], [Event::Restarted(Cause::Line)]);
    bench.session.on_loss_of_line(bench.now());
    bench.run_ms(3_600_000);
    assert_eq!(bench.session.deadline(), None);
    assert_eq!(bench.session.poll_output(bench.now()), b"");
    let refused = bench.session.transmit(&data(2), None, bench.now());
    assert_eq!(refused, Err(Refusal::NotReady));
    assert_eq!(bench.events.len(), 2, "{:?}", bench.events);
    bench.is_stopped = false;
    bench.reopen();
    bench.run_ms(100);
    assert_eq!(bench.count(is_ready), 1, "{:?}", bench.events);
    assert_eq!(bench.session.counters().restarts, 1);
    assert!(matches!(bench.transmit(&data(2)).0, Outcome::Acked(_)));
}

#[test]
fn a_radio_that_stands_still_is_configured_anew() {
    for stands_ms in [3_000, 5_000, 60_000] {
        let mut bench = Bench::ready(Quirks::default());
        bench.is_stopped = true;
        bench.session.transmit(&data(1), None, bench.now()).unwrap();
        bench.run_ms(stands_ms);
        let expected = [Event::Restarted(Cause::Silence)];
        assert_eq!(bench.sent().0, Outcome::Failed(None));
        assert_eq!(bench.events[1..], expected, "{stands_ms}");
        bench.is_stopped = false;
        // Each reset that has gathered in the line is told twice.
        bench.run_ms(500);
        assert_eq!(bench.count(is_ready), 1, "{stands_ms}");
        assert_eq!(bench.session.counters().restarts, 0);
        assert!(matches!(bench.transmit(&data(2)).0, Outcome::Acked(_)));
    }
}

#[test]
fn a_radio_that_stands_still_for_a_moment_goes_on() {
    let mut bench = Bench::ready(Quirks::default());
    bench.is_stopped = true;
    bench.session.transmit(&data(1), None, bench.now()).unwrap();
    bench.run_ms(900);
    bench.is_stopped = false;
    bench.run_ms(100);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    assert_eq!(bench.count(is_restarted), 0);
}

#[test]
fn a_radio_that_crashes_again_and_again_is_given_up() {
    // Before it was ready once, and afterwards.
    for crashes_at in [
        Property::Caps,
        Property::RawStreamEnabled,
        Property::StreamRaw,
    ] {
        let mut bench = Bench::new(Quirks {
            crashes_at: Some(crashes_at),
            ..Quirks::default()
        });
        for _ in 0..100 {
            bench.run_ms(100);
            let _ = bench.session.transmit(&data(1), None, bench.now());
        }
        let last = Some(Status::ResetCrash);
        let error = Error::KeepsRestarting { last };
        assert_eq!(bench.events.last(), Some(&Event::Failed(error)));
        assert_eq!(bench.session.counters().restarts, 6, "{crashes_at:?}");
    }
    // The same by a line that goes away.
    let mut bench = Bench::ready(Quirks::default());
    for _ in 0..20 {
        bench.reopen();
        bench.run_ms(500);
    }
    let error = Error::KeepsRestarting { last: None };
    assert_eq!(bench.events.last(), Some(&Event::Failed(error)));
}

#[test]
fn a_restart_now_and_then_is_put_up_with() {
    let mut bench = Bench::ready(Quirks::default());
    for n in 1..=50 {
        bench.radio.restart(120, bench.now_us);
        bench.run_ms(30_000);
        assert_eq!((bench.count(is_ready), bench.count(is_restarted)), (n, n));
    }
}

#[test]
fn a_request_without_an_answer_is_repeated() {
    let mut bench = Bench::new(Quirks::default());
    bench.radio.loses = vec![
        Property::Caps,
        Property::MacPanid,
        Property::MacPanid,
        Property::RcpTimestamp,
    ];
    bench.run_ms(3_000);
    assert_eq!(bench.count(is_ready), 1, "{:?}", bench.events);
    let counters = bench.session.counters();
    assert_eq!(
        (counters.repeated, counters.restarts, counters.resets),
        (4, 0, 1)
    );
    // They say nothing of the line.
    assert_eq!(
        bench.session.round_trip().unwrap().max,
        Duration::from_micros(600)
    );
}

#[test]
fn a_slow_line_is_measured_and_not_hurried() {
    let mut bench = Bench::new(Quirks::default());
    bench.way_us = 100_000;
    bench.run_ms(8_000);
    assert_eq!(bench.count(is_ready), 1);
    assert_eq!(bench.session.counters().repeated, 0);
    assert_eq!(bench.session.round_trip().unwrap().median, ms(200));
    bench.session.transmit(&data(1), None, bench.now()).unwrap();
    bench.run_ms(300);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
}

#[test]
fn a_start_survives_all_that_firmware_does_at_once() {
    for cut in [1, 7, usize::MAX] {
        let mut bench = Bench::new(Quirks {
            noise: b"\x7e\x80\x06\x70boot\x7e\x7e*** \x7d\x7e".to_vec(),
            has_short_structs: true,
            mixes: true,
            ..Quirks::default()
        });
        bench.cut = cut;
        bench.run_ms(200);
        assert_eq!(bench.count(is_ready), 1, "{cut}: {:?}", bench.events);
        assert!(matches!(bench.transmit(&data(1)).0, Outcome::Acked(_)));
        bench.radio.hears(&data(2), Flags::default(), bench.now_us);
        bench.run_ms(5);
        assert!(matches!(bench.events.last(), Some(Event::Received(_))));
        let counters = bench.session.counters();
        assert!(
            counters.stale > 20 && counters.mismatched > 15,
            "{counters:?}"
        );
        assert!(counters.unexpected > 15 && counters.line.wrong_crc > 20);
        assert!(counters.line.half > 20);
    }
}

#[test]
fn a_line_that_takes_nothing_is_not_filled() {
    let mut session = Session::new(SETTINGS);
    let mut now = Instant::from_micros(0);
    let mut longest = 0;
    let mut failed = false;
    for _ in 0..100 {
        longest = longest.max(session.poll_output(now).len());
        failed |= matches!(session.poll_event(now), Some(Event::Failed(_)));
        now += ms(100);
    }
    assert!(failed && longest < 10, "{longest}");

    // A request that the line has not taken is not repeated.
    let mut bench = Bench::ready(Quirks::default());
    let now = bench.now();
    bench.session.set_channel(20, now).unwrap();
    let waits = bench.session.poll_output(now).to_vec();
    let later = now + ms(1_900);
    assert_eq!(bench.session.poll_output(later), waits);

    let mut bench = Bench::ready(Quirks::default());
    for _ in 0..600 {
        let now = bench.now();
        let _ = bench.session.transmit(&data(1), None, now);
        longest = longest.max(bench.session.poll_output(now).len());
        while bench.session.poll_event(now).is_some() {}
        bench.now_us += 100_000;
    }
    assert!(longest < 200, "{longest}");
}

#[test]
fn a_round_trip_begins_when_the_line_has_taken_the_request() {
    let at = Instant::from_micros;
    let mut session = Session::new(SETTINGS);
    let len = session.poll_output(at(0)).len();
    session.on_written(len, at(0));
    let mut line = Vec::new();
    motet_spinel::hdlc::encode(&[0x80, 6, 0, 0x70], &mut line);
    session.on_bytes(&line, at(10));
    // The question leaves in two parts.
    let question = session.poll_output(at(10)).to_vec();
    session.on_written(3, at(20));
    session.on_written(question.len() - 3, at(100_000));
    line.clear();
    motet_spinel::hdlc::encode(&[0x81, 6, 1, 4, 3], &mut line);
    session.on_bytes(&line, at(101_000));
    assert_eq!(session.round_trip().unwrap().max, ms(1));
}

#[test]
fn text_of_the_firmware_is_kept() {
    let mut bench = Bench::ready(Quirks::default());
    bench
        .radio
        .says(Property::StreamDebug, b"[W] Radio: noise\r\n", bench.now_us);
    bench.run_ms(5);
    assert_eq!(bench.session.log_line(), "[W] Radio: noise");
    bench
        .radio
        .says(Property::StreamDebug, &[0xff; 1_000], bench.now_us);
    bench.run_ms(5);
    assert_eq!(bench.session.log_line().len(), 255);
    assert_eq!(bench.session.counters().log_lines, 2);
}

#[test]
fn frames_of_another_interface_are_not_for_us() {
    let mut bench = Bench::ready(Quirks::default());
    let mut line = Vec::new();
    motet_spinel::hdlc::encode(&[0x90, 6, 0, 0x72], &mut line);
    bench.session.on_bytes(&line, bench.now());
    bench.run_ms(5);
    assert!(bench.events.is_empty());
    assert_eq!(bench.session.counters().other_interface, 1);
}
