//! Tables of children, and scans.

use motet_spinel::frame::{Command, Property, Status};
use motet_spinel::{Event, Outcome, Peer, Refusal};

use crate::bench::{Bench, data};
use crate::fake::Quirks;

#[test]
fn children_are_told_as_they_come_and_go() {
    let mut bench = Bench::ready(Quirks::default());
    bench.radio.told.clear();
    let extended = [1, 2, 3, 4, 5, 6, 7, 8];
    let now = bench.now();
    bench
        .session
        .set_source_match(Peer::Short(0x1234), true, now);
    bench
        .session
        .set_source_match(Peer::Extended(extended), true, now);
    bench.run_ms(10);
    assert_eq!(
        (&bench.radio.short[..], &bench.radio.extended[..]),
        (&[0x1234][..], &[extended][..])
    );
    assert_eq!(bench.radio.told[0].2, [0x34, 0x12]);
    assert_eq!(bench.radio.told[1].2, extended);
    let now = bench.now();
    bench
        .session
        .set_source_match(Peer::Short(0x1234), false, now);
    bench.run_ms(10);
    assert!(bench.radio.short.is_empty());
    let now = bench.now();
    bench.session.replace_source_match([Peer::Short(5)], now);
    bench.run_ms(10);
    assert_eq!(bench.radio.short, [5]);
    assert!(bench.radio.extended.is_empty());
    let commands: Vec<Command> = bench.radio.told.iter().map(|told| told.0).collect();
    let (insert, remove) = (Command::Insert, Command::Remove);
    assert_eq!(commands, [insert, insert, remove, remove, insert]);
}

#[test]
fn a_full_table_is_switched_off_and_on_again() {
    let mut bench = Bench::ready(Quirks {
        places: 3,
        ..Quirks::default()
    });
    for short in 0..5 {
        let now = bench.now();
        bench
            .session
            .set_source_match(Peer::Short(short), true, now);
        bench.run_ms(10);
        let is_full = short >= 3;
        assert_eq!(bench.session.is_source_match_full(), is_full);
        let is_on = u8::from(!is_full);
        assert!(
            bench.radio.has(Property::SrcMatchEnabled, &[is_on]),
            "{short}"
        );
    }
    for short in 0..2 {
        let now = bench.now();
        bench
            .session
            .set_source_match(Peer::Short(short), false, now);
        bench.run_ms(10);
    }
    assert!(!bench.session.is_source_match_full());
    assert!(bench.radio.has(Property::SrcMatchEnabled, &[1]));
    assert_eq!(bench.radio.short, [2, 3, 4]);
}

#[test]
fn tables_change_while_frames_are_sent() {
    let mut bench = Bench::ready(Quirks::default());
    for n in 0..50 {
        let now = bench.now();
        bench.session.transmit(&data(n), None, now).unwrap();
        let peer = Peer::Short(u16::from(n) % 7);
        bench.session.set_source_match(peer, n % 3 > 0, now);
        bench.run_ms(10);
        assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    }
    let counters = bench.session.counters();
    assert_eq!(
        (counters.acked, counters.stale, counters.mismatched),
        (50, 1, 0)
    );
}

#[test]
fn a_scan_measures_one_channel() {
    let mut bench = Bench::ready(Quirks::default());
    bench.radio.told.clear();
    let now = bench.now();
    bench.session.scan(20, 30, now).unwrap();
    assert_eq!(bench.session.scan(21, 30, now), Err(Refusal::InProgress));
    // A frame waits for its end.
    bench.session.transmit(&data(1), None, now).unwrap();
    bench.run_ms(20);
    assert!(bench.events.is_empty() && bench.radio.air.is_empty());
    bench.run_ms(50);
    let result = Event::ScanResult {
        channel: 20,
        rssi_dbm: Some(-60),
    };
    assert_eq!(bench.events[0], result);
    assert!(matches!(bench.sent().0, Outcome::Acked(_)));
    let told: Vec<_> = bench
        .radio
        .told
        .iter()
        .map(|told| (told.1, &told.2[..]))
        .collect();
    let steps = [
        (Property::MacScanMask, &[20][..]),
        (Property::MacScanPeriod, &[30, 0]),
        (Property::MacScanState, &[2]),
    ];
    assert_eq!(told[..3], steps);
}

#[test]
fn a_scan_without_a_result_ends() {
    let refuses = Some((Property::MacScanState, Status::Busy));
    let mut bench = Bench::ready(Quirks {
        refuses,
        ..Quirks::default()
    });
    let none = Event::ScanResult {
        channel: 20,
        rssi_dbm: None,
    };
    bench.session.scan(20, 30, bench.now()).unwrap();
    bench.run_ms(10);
    assert_eq!(bench.events, std::slice::from_ref(&none));
    // The result gets lost.
    bench.radio.quirks.refuses = None;
    bench.session.scan(20, 30, bench.now()).unwrap();
    bench.run_ms(20);
    bench.radio.sent.clear();
    bench.run_ms(3_000);
    assert_eq!(bench.events, [none.clone(), none]);
    assert!(bench.session.scan(20, 30, bench.now()).is_ok());
}

#[test]
fn a_result_of_another_scan_is_none_of_this_one() {
    let mut bench = Bench::ready(Quirks::default());
    bench.session.scan(20, 30, bench.now()).unwrap();
    bench.run_ms(10);
    bench
        .radio
        .says(Property::EnergyScanResult, &[21, 0x80], bench.now_us);
    bench.run_ms(5);
    assert!(bench.events.is_empty());
    bench.run_ms(30);
    assert_eq!(bench.events.len(), 1);
    assert_eq!(bench.session.counters().unexpected, 1);
}

#[test]
fn a_restart_ends_a_scan() {
    let mut bench = Bench::ready(Quirks::default());
    bench.session.scan(20, 1_000, bench.now()).unwrap();
    bench.run_ms(10);
    bench.radio.sent.clear();
    bench.radio.restart(112, bench.now_us);
    bench.run_ms(50);
    let none = Event::ScanResult {
        channel: 20,
        rssi_dbm: None,
    };
    assert_eq!(bench.events[0], none);
    assert_eq!(bench.events.len(), 3);
}

#[test]
fn many_children_are_told_in_requests_that_firmware_can_take() {
    let mut bench = Bench::ready(Quirks {
        places: 200,
        ..Quirks::default()
    });
    bench
        .session
        .replace_source_match((0..200).map(Peer::Short), bench.now());
    bench.run_ms(200);
    bench.radio.restart(112, bench.now_us);
    bench.run_ms(300);
    assert_eq!(bench.radio.short.len(), 200);
    assert!(bench.session.is_ready() && !bench.session.is_source_match_full());
}
