//! Radios on pseudo-terminals and behind programs: opened, used, unplugged, refused.
#![cfg(unix)]

mod dongle;
#[path = "../../../spinel/tests/spinel/fake.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod fake;
mod mac;
mod program;
mod refused;

use std::time;

use motet::time::Instant;
use motet_radio::{Event, RadioUrl, SpinelRadio};
use motet_spinel::{Cause, Outcome, Promiscuous, Settings, raw::Flags};

use dongle::Dongle;
use fake::Quirks;

const SETTINGS: Settings = Settings {
    channel: 15,
    pan: 0xabcd,
    short: Some(1),
    eui64: None,
    promiscuous: Promiscuous::Off,
};

/// A program's clock.
#[derive(Clone, Copy)]
struct Clock(time::Instant);

impl Clock {
    fn now(self) -> Instant {
        Instant::from_micros(1_000_000 + self.0.elapsed().as_micros() as u64)
    }
}

fn clock() -> Clock {
    Clock(time::Instant::now())
}

fn url(text: &str) -> RadioUrl {
    text.parse().expect("a URL")
}

/// A radio that has started.
fn started(text: &str, clock: Clock) -> SpinelRadio {
    let mut radio = SpinelRadio::open(&url(text), SETTINGS).unwrap();
    radio.start(|| clock.now(), || false).unwrap();
    radio
}

/// The next event that `is` wanted.
fn wait_for(radio: &mut SpinelRadio, clock: Clock, is: impl Fn(&Event) -> bool) -> Event {
    let patience = time::Duration::from_millis(100);
    for _ in 0..200 {
        while let Some(event) = radio.poll(clock.now()).unwrap() {
            if is(&event) {
                return event;
            }
        }
        radio.wait(Some(patience), &[], clock.now()).unwrap();
    }
    panic!("it never came");
}

/// A data frame from node 1 to node 2 that asks for an ACK.
fn data(sequence: u8) -> Vec<u8> {
    vec![0x61, 0x88, sequence, 0xcd, 0xab, 2, 0, 1, 0, b'h', b'i']
}

fn is_sent(event: &Event) -> bool {
    matches!(event, Event::Sent { .. })
}

fn is_ready(event: &Event) -> bool {
    matches!(event, Event::Ready(_))
}

fn assert_acked(event: &Event) {
    let is_acked = matches!(
        event,
        Event::Sent {
            outcome: Outcome::Acked(_),
            ..
        }
    );
    assert!(is_acked, "{event:?}");
}

#[test]
fn frames_go_both_ways_over_a_serial_line() {
    let folder = tempfile::tempdir().unwrap();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let clock = clock();
    let mut radio = started(&dongle.url(), clock);
    radio.transmit(&data(1), None, clock.now()).unwrap();
    assert_acked(&wait_for(&mut radio, clock, is_sent));
    let heard_at = clock.now();
    let now_us = dongle.now_us();
    dongle.radio().hears(&data(2), Flags::ACKED_PENDING, now_us);
    let is_received = |event: &Event| matches!(event, Event::Received(_));
    let Event::Received(received) = wait_for(&mut radio, clock, is_received) else {
        unreachable!("asked for");
    };
    assert_eq!((received.psdu, received.channel), (data(2), 15));
    // Both clocks are one: the time of the frame's end is mapped.
    let off = received.at.as_micros().abs_diff(heard_at.as_micros());
    assert!(off < 50_000, "{off} µs");
    radio.set_channel(20, clock.now()).unwrap();
    radio.scan(22, 10, clock.now()).unwrap();
    let scanned = wait_for(&mut radio, clock, |event| {
        matches!(event, Event::Scanned { .. })
    });
    let expected = Event::Scanned {
        channel: 22,
        rssi_dbm: Some(-60),
    };
    assert_eq!(scanned, expected);
    assert!(radio.session().round_trip().is_some());
}

#[test]
fn a_dongle_that_is_unplugged_is_awaited() {
    let folder = tempfile::tempdir().unwrap();
    let mut dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let clock = clock();
    let mut radio = started(&dongle.url(), clock);
    for turn in 0..2 {
        dongle.unplug();
        let gone = wait_for(&mut radio, clock, |_| true);
        assert_eq!(gone, Event::Restarted(Cause::Line));
        assert!(!radio.has_line());
        assert!(radio.transmit(&data(9), None, clock.now()).is_err());
        // It tries, and says what is wrong.
        while radio.why_away().is_none() {
            radio.wait(None, &[], clock.now()).unwrap();
            assert_eq!(radio.poll(clock.now()).unwrap(), None);
        }
        let why = radio.why_away().unwrap().to_string();
        assert!(why.starts_with("there is no "), "{why}");
        dongle.plug();
        wait_for(&mut radio, clock, is_ready);
        assert!(radio.why_away().is_none());
        radio.transmit(&data(turn), None, clock.now()).unwrap();
        assert_acked(&wait_for(&mut radio, clock, is_sent));
    }
    assert_eq!(radio.session().counters().restarts, 2);
}

#[test]
fn a_line_is_opened_once_and_again_after_it_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let radio = SpinelRadio::open(&url(&dongle.url()), SETTINGS).unwrap();
    let error = SpinelRadio::open(&url(&dongle.url()), SETTINGS).unwrap_err();
    let device = folder.path().join("dongle");
    let device = device.display();
    let sentence = format!(
        "{device} is in use by another program: end that one, which `fuser {device}` names"
    );
    assert_eq!((error.to_string(), error.is_input()), (sentence, false));
    drop(radio);
    started(&dongle.url(), clock());
}
