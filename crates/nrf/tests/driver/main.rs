//! The driver on the model: ACKs, stamps, the filter, assessments, firing.

#[path = "../model/mod.rs"]
mod model;
mod races;
mod strength;

use model::{Bench, Model, OnAir};
use motet::mac::{Action, Event, RxMeta};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::Header;
use motet_nrf::{CrystalOff, Driver, Filter, Frames};

const ME: Filter = Filter {
    pan: 0x4d54,
    extended: [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
    short: Some(7),
};
const OTHER: LinkAddr = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]);

/// Near its end, so that every test crosses it.
const COUNT_AT_START: u32 = u32::MAX - 3_000;

fn bench() -> Bench {
    let mut bench = Bench::new(COUNT_AT_START);
    bench.driver.set_filter(ME);
    bench.run(100);
    bench
}

/// A data frame with this many bytes above the header, without its FCS.
fn data(to: LinkAddr, sequence: u8, payload: usize) -> Vec<u8> {
    data_in(ME.pan, to, sequence, payload)
}

fn data_in(pan: u16, to: LinkAddr, sequence: u8, payload: usize) -> Vec<u8> {
    let mut header = Header::data(pan, to, OTHER, sequence);
    header.ack_request = !to.is_broadcast();
    let payload: Vec<_> = (0..payload).map(|n| n as u8).collect();
    let mut psdu = [0; 127];
    let len = header.emit_frame(&payload, &mut psdu).expect("it fits");
    psdu[..len - 2].to_vec()
}

const MINE: LinkAddr = LinkAddr::Extended(ME.extended);

/// Puts a frame on the air 50 µs from now; returns its last bit's time.
fn hear(bench: &Bench, mpdu: &[u8]) -> u64 {
    let frame = OnAir::good(bench.model.now() + 50, mpdu);
    let end = frame.end();
    bench.model.put(frame);
    end
}

/// An event without its borrow.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Seen {
    Preloaded,
    Assessed(bool),
    Sent(u64),
    Head(Vec<u8>),
    Frame(Vec<u8>, RxMeta),
}

fn next(bench: &mut Bench) -> Option<Seen> {
    let now = Instant::from_micros(bench.model.now());
    let mut psdu = [0; 127];
    let event = bench.driver.poll(now, &mut psdu)?;
    Some(match event {
        Event::Preloaded => Seen::Preloaded,
        Event::ChannelAssessed { clear } => Seen::Assessed(clear),
        Event::TransmitDone { at } => Seen::Sent(at.as_micros()),
        Event::Sent { outcome, .. } => panic!("of other radios: {outcome:?}"),
        Event::FrameHead { head } => Seen::Head(head.to_vec()),
        Event::FrameReceived { psdu, meta } => Seen::Frame(psdu.to_vec(), meta),
    })
}

fn all(bench: &mut Bench) -> Vec<Seen> {
    std::iter::from_fn(|| next(bench)).collect()
}

fn frames(seen: &[Seen]) -> Vec<Vec<u8>> {
    let frames = seen.iter().filter_map(|seen| match seen {
        Seen::Frame(psdu, _) => Some(psdu.clone()),
        _ => None,
    });
    frames.collect()
}

/// Not a microsecond early, when its receiver may still be on its way up, and at most one late.
#[test]
fn an_ack_begins_a_turnaround_after_its_frame_while_the_task_computes() {
    for latency in 0..100 {
        for (payload, later_ns) in [(0, 0), (1, 1), (2, 250), (3, 500), (40, 750), (104, 999)] {
            let mut bench = bench();
            bench.latency = latency;
            let mut frame = OnAir::good(bench.model.now() + 50, &data(MINE, 99, payload));
            frame.later_ns = later_ns;
            let end_ns = frame.end_ns();
            bench.model.put(frame);
            // No task polls the driver for 10 ms.
            bench.run(10_000);
            let sent = bench.model.sent();
            assert_eq!(sent.len(), 1, "latency {latency}, payload {payload}");
            let after_ns = sent[0].start * 1_000 - end_ns;
            assert!((192_000..=193_000).contains(&after_ns), "{after_ns} ns");
            assert_eq!(sent[0].psdu[..3], [2, 0, 99]);
        }
    }
}

/// Also with registers several times as slow as the chip's.
#[test]
fn an_ack_is_in_time_or_not_sent() {
    for (latency, access_ns) in (100..200).flat_map(|l| [0, 60, 125, 250].map(|a| (l, a))) {
        let mut bench = bench();
        bench.latency = latency;
        bench.model.set_access(access_ns);
        let end = hear(&bench, &data(MINE, 99, 40));
        bench.run(10_000);
        let sent = bench.model.sent();
        let late = bench.driver.counters().late_acks;
        assert_eq!(sent.len() as u32 + late, 1, "latency {latency}");
        let is_in_time = |ack: &OnAir| (192..=193).contains(&(ack.start - end));
        assert!(sent.iter().all(is_in_time), "{latency} µs, {access_ns} ns");
        assert_eq!(frames(&all(&mut bench)).len(), 1, "{latency}");
    }
}

#[test]
fn an_interrupt_too_late_for_an_ack_costs_that_ack_alone() {
    let mut bench = bench();
    bench.latency = 140;
    hear(&bench, &data(MINE, 1, 0));
    bench.run(3_000);
    assert!(bench.model.sent().is_empty());
    assert_eq!(bench.driver.counters().late_acks, 1);
    bench.latency = 2;
    hear(&bench, &data(MINE, 2, 0));
    bench.run(3_000);
    assert_eq!(bench.model.sent().len(), 1);
    assert_eq!(frames(&all(&mut bench)).len(), 2);
}

#[test]
fn stamps_are_those_of_the_last_bit_however_late_they_are_read() {
    let mut bench = bench();
    bench.latency = 60;
    let end = hear(&bench, &data(MINE, 1, 50));
    bench.run(10_000);
    let seen = all(&mut bench);
    let Some(Seen::Frame(_, meta)) = seen.last() else {
        panic!("{seen:?}");
    };
    assert_eq!(meta.at.as_micros(), end);
    assert_eq!((meta.channel, meta.rssi_dbm), (26, -60));

    bench
        .driver
        .perform(Action::Preload { len: 100 }, &[7; 100]);
    bench.driver.perform(Action::Fire, &[]);
    bench.run(10_000);
    let sent = bench.model.sent().last().expect("sent").end();
    assert_eq!(all(&mut bench), [Seen::Preloaded, Seen::Sent(sent)]);
}

#[test]
fn frames_pass_and_are_answered_by_address() {
    let short = LinkAddr::Short(7);
    // (name, frame, reported, answered)
    let cases = [
        ("mine", data(MINE, 1, 10), true, true),
        ("mine, short", data(short, 1, 10), true, true),
        ("another's", data(OTHER, 1, 10), false, false),
        ("another PAN's", data_in(1, MINE, 1, 10), false, false),
        ("everybody's", data(LinkAddr::BROADCAST, 1, 10), true, false),
        ("an ACK", vec![2, 0, 9], true, false),
        ("no frame", vec![0xff; 30], false, false),
        ("too short for one", vec![2], false, false),
    ];
    for (name, mpdu, reported, answered) in cases {
        let mut bench = bench();
        hear(&bench, &mpdu);
        bench.run(5_000);
        assert_eq!(!frames(&all(&mut bench)).is_empty(), reported, "{name}");
        assert_eq!(!bench.model.sent().is_empty(), answered, "{name}");
    }
}

#[test]
fn the_first_bytes_of_a_good_frame_come_before_it() {
    let mut bench = bench();
    let mpdu = data(MINE, 1, 60);
    hear(&bench, &mpdu);
    bench.run(5_000);
    let seen = all(&mut bench);
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], Seen::Head(mpdu[..24].to_vec()));
    assert_eq!(frames(&seen)[0], mpdu);

    // One with a bad CRC is not reported at all.
    let mut frame = OnAir::good(bench.model.now() + 50, &mpdu);
    frame.is_crc_good = false;
    bench.model.put(frame);
    bench.run(5_000);
    assert_eq!(all(&mut bench), []);
    assert_eq!(bench.driver.counters().bad_crc, 1);
}

/// Whatever length a frame says it has, and whether its CRC is right or not.
#[test]
fn every_frame_is_reported_or_counted() {
    let mut bench = bench();
    let mut bytes = data(MINE, 1, 90);
    bytes.resize(255, 0x5a);
    let mut reported = 0;
    for phr in 0..=255 {
        for is_crc_good in [true, false] {
            let before = bench.driver.counters();
            bench.model.put(OnAir {
                phr,
                is_crc_good,
                ..OnAir::of(bench.model.now() + 50, bytes.clone())
            });
            bench.run(6_000);
            let seen = frames(&all(&mut bench)).len() as u32;
            let now = bench.driver.counters();
            let counted = now.bad_crc + now.bad_length + now.filtered;
            let dropped = counted - (before.bad_crc + before.bad_length + before.filtered);
            assert_eq!(seen + dropped, 1, "length {phr}, good CRC: {is_crc_good}");
            reported += seen;
        }
    }
    let counters = bench.driver.counters();
    assert!(
        counters.bad_crc >= 256 && counters.bad_length > 0,
        "{counters:?}"
    );
    assert!(reported > 0, "those that hold a header are for this node");
    hear(&bench, &data(MINE, 2, 20));
    bench.run(5_000);
    assert_eq!(frames(&all(&mut bench)), [data(MINE, 2, 20)]);
    assert_eq!(bench.driver.counters().lost_interrupts, 0);
}

#[test]
fn an_assessment_takes_a_ramp_up_and_eight_symbols() {
    let mut bench = bench();
    bench.driver.perform(Action::AssessChannel, &[]);
    bench.run(175);
    assert_eq!(all(&mut bench), [Seen::Assessed(true)]);
    // It listens again.
    hear(&bench, &data(MINE, 1, 0));
    bench.run(3_000);
    assert_eq!(frames(&all(&mut bench)).len(), 1);

    hear(&bench, &data(OTHER, 1, 60));
    bench.run(150);
    bench.driver.perform(Action::AssessChannel, &[]);
    bench.run(200);
    assert_eq!(all(&mut bench), [Seen::Assessed(false)]);
}

#[test]
fn a_frame_on_its_way_in_makes_the_channel_busy_and_is_not_disturbed() {
    let mut bench = bench();
    hear(&bench, &data(MINE, 1, 60));
    bench.run(600);
    bench.driver.perform(Action::AssessChannel, &[]);
    assert_eq!(all(&mut bench), [Seen::Assessed(false)]);
    bench.run(5_000);
    assert_eq!(frames(&all(&mut bench)).len(), 1);
    assert_eq!(bench.model.sent().len(), 1);
}

#[test]
fn what_is_fired_begins_a_turnaround_later() {
    let mut bench = bench();
    bench.driver.perform(Action::Preload { len: 30 }, &[9; 30]);
    let fired = bench.model.now();
    bench.driver.perform(Action::Fire, &[]);
    bench.run(3_000);
    let turnaround = bench.model.sent()[0].start - fired;
    assert!((192..=193).contains(&turnaround), "{turnaround} µs");

    // The frame stays: fired during a reception it follows our ACK by a turnaround.
    hear(&bench, &data(MINE, 5, 60));
    bench.run(1_000);
    bench.driver.perform(Action::Fire, &[]);
    bench.run(10_000);
    let [_, ack, frame] = &bench.model.sent()[..] else {
        panic!("{:?}", bench.model.sent());
    };
    assert_eq!(ack.psdu.len(), 5);
    assert_eq!(frame.psdu[..30], [9; 30]);
    let turnaround = frame.start - ack.end();
    assert!((192..=193).contains(&turnaround), "{turnaround} µs");
}

#[test]
fn an_answer_to_our_frame_is_heard() {
    let mut bench = bench();
    bench.driver.perform(Action::Preload { len: 30 }, &[9; 30]);
    bench.driver.perform(Action::Fire, &[]);
    bench.run(193 + (6 + 32) * 32);
    let end = bench.model.now();
    let ack = OnAir::good(end + 192, &[2, 0, 9]);
    let ack_end = ack.end();
    bench.model.put(ack);
    bench.latency = 90;
    bench.run(2_000);
    let seen = all(&mut bench);
    assert_eq!(seen[..2], [Seen::Preloaded, Seen::Sent(end)]);
    let Seen::Frame(psdu, meta) = &seen[2] else {
        panic!("{seen:?}");
    };
    assert_eq!(psdu[..], [2, 0, 9]);
    assert_eq!(meta.at.as_micros(), ack_end);
}

#[test]
fn a_frame_is_loaded_while_another_is_on_the_air() {
    let mut bench = bench();
    bench.driver.perform(Action::Preload { len: 60 }, &[1; 60]);
    bench.driver.perform(Action::Fire, &[]);
    bench.run(500);
    for byte in [2, 3] {
        bench
            .driver
            .perform(Action::Preload { len: 60 }, &[byte; 60]);
    }
    bench.driver.perform(Action::Fire, &[]);
    bench.run(10_000);
    let firsts: Vec<_> = bench.model.sent().iter().map(|sent| sent.psdu[0]).collect();
    assert_eq!(firsts, [1, 3]);
}

#[test]
fn a_radio_without_its_crystal_is_refused_and_one_that_loses_it_is_counted() {
    let model = Model::new(0);
    model.set_crystal(false);
    let frames = Box::leak(Box::new(Frames::new()));
    assert_eq!(Driver::new(model, frames).err(), Some(CrystalOff));

    let mut bench = bench();
    bench.driver.check();
    assert_eq!(bench.driver.counters().crystal_off, 0);
    bench.model.set_crystal(false);
    bench.driver.check();
    assert_eq!(bench.driver.counters().crystal_off, 1);
}

#[test]
fn what_is_no_frame_is_not_fired() {
    // (name, bytes that are preloaded, how many of them)
    let cases: [(&str, Option<&[u8]>, usize); 5] = [
        ("nothing", None, 0),
        ("no bytes", Some(&[]), 0),
        ("two bytes", Some(&[1; 2]), 2),
        ("fewer than said", Some(&[1; 9]), 10),
        ("more than a frame holds", Some(&[1; 126]), 126),
    ];
    for (name, bytes, len) in cases {
        let mut bench = bench();
        // Also where it has to wait for the end of a reception, and for that of our ACK.
        for wait in [0, 600, 1_200] {
            hear(&bench, &data(MINE, 1, 10));
            bench.run(wait);
            if let Some(bytes) = bytes {
                bench.driver.perform(Action::Preload { len }, bytes);
            }
            bench.driver.perform(Action::Fire, &[]);
            bench.run(5_000);
            all(&mut bench);
        }
        let is_ack = |sent: &OnAir| sent.psdu.len() == 5;
        assert!(bench.model.sent().iter().all(is_ack), "{name}");
        assert_eq!(bench.driver.counters().empty_fires, 3, "{name}");
        hear(&bench, &data(MINE, 1, 10));
        bench.run(3_000);
        assert_eq!(frames(&all(&mut bench)).len(), 1, "{name}");
    }
}

#[test]
fn frames_that_nobody_takes_are_not_acknowledged() {
    let mut bench = bench();
    for sequence in 0..5 {
        hear(&bench, &data(MINE, sequence, 0));
        bench.run(3_000);
    }
    assert_eq!(bench.model.sent().len(), 3);
    assert_eq!(bench.driver.counters().overruns, 2);
    assert_eq!(frames(&all(&mut bench)).len(), 3);
    hear(&bench, &data(MINE, 9, 0));
    bench.run(3_000);
    assert_eq!(bench.model.sent().len(), 4);
}

#[test]
fn lost_interrupts_are_made_up_for() {
    // Of a reception, of a transmission, of an assessment.
    let begin: [fn(&mut Bench); 3] = [
        |bench| {
            hear(bench, &data(MINE, 1, 0));
        },
        |bench| {
            bench.driver.perform(Action::Preload { len: 9 }, &[0; 9]);
            bench.driver.perform(Action::Fire, &[]);
        },
        |bench| bench.driver.perform(Action::AssessChannel, &[]),
    ];
    for (index, begin) in begin.iter().enumerate() {
        let mut bench = bench();
        bench.lost = 1;
        begin(&mut bench);
        bench.run(20_000);
        bench.mend();
        bench.driver.check();
        assert_eq!(bench.driver.counters().lost_interrupts, 1, "{index}");
        assert!(bench.driver.has_report(), "{index}");
        all(&mut bench);
        bench.run(1_000);
        hear(&bench, &data(MINE, 2, 0));
        bench.run(3_000);
        assert_eq!(frames(&all(&mut bench)).len(), 1, "{index}");
    }
}

#[test]
fn channels_change_and_the_radio_sleeps() {
    let mut bench = bench();
    bench
        .driver
        .perform(Action::ChangeChannel { channel: 11 }, &[]);
    bench.run(100);
    let mut frame = OnAir::good(bench.model.now(), &data(MINE, 1, 0));
    frame.channel = 11;
    bench.model.put(frame);
    bench.run(3_000);
    assert_eq!(frames(&all(&mut bench)).len(), 1);
    assert_eq!(bench.model.sent()[0].channel, 11);

    bench.driver.perform(Action::Sleep, &[]);
    bench
        .driver
        .perform(Action::ChangeChannel { channel: 26 }, &[]);
    bench.run(100);
    hear(&bench, &data(MINE, 2, 0));
    bench.run(3_000);
    assert_eq!(all(&mut bench), []);
    bench.driver.perform(Action::Listen, &[]);
    bench.run(100);
    hear(&bench, &data(MINE, 3, 0));
    bench.run(3_000);
    assert_eq!(frames(&all(&mut bench)).len(), 1);
}
