//! The parts of TCPlE by themselves.

use std::boxed::Box;
use std::vec;

use super::pace::Need;
use super::*;
use crate::time::Duration;
use crate::wire::cursor::Writer;
use crate::wire::ipv6;
use crate::wire::tcp::{self, Flags};
use crate::wire::tcple::Sdu;
use core::net::Ipv6Addr;

const MOTE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

fn at_ms(ms: u64) -> Instant {
    Instant::from_micros(ms * 1_000)
}

/// A packet with a segment from a port of one address to the other.
fn packet(up: bool, port: u16, (seq, ack): (u32, u32), len: usize) -> vec::Vec<u8> {
    let (src, dst) = if up { (MOTE, HOST) } else { (HOST, MOTE) };
    let (src_port, dst_port) = if up { (port, 80) } else { (80, port) };
    let header = ipv6::Header {
        traffic_class: ipv6::TrafficClass(0),
        flow_label: 0,
        payload_len: (tcp::HEADER_LEN + len) as u16,
        next_header: tcp::NEXT_HEADER,
        hop_limit: 64,
        src,
        dst,
    };
    let mut bytes = vec![0; ipv6::HEADER_LEN + tcp::HEADER_LEN + len];
    let (head, rest) = bytes.split_at_mut(ipv6::HEADER_LEN);
    header.emit(head).unwrap();
    let mut w = Writer::new(rest);
    for port in [src_port, dst_port] {
        w.u16(port).unwrap();
    }
    w.u32(seq).unwrap();
    w.u32(ack).unwrap();
    w.put(&[0x50, Flags::ACK.bits() as u8]).unwrap();
    bytes
}

fn segment(up: bool, port: u16, numbers: (u32, u32), len: usize) -> Segment {
    Segment::of(&packet(up, port, numbers, len)).expect("a segment")
}

/// The receiver's places, `count` of them, for one connection.
fn held(count: usize) -> Held<'static> {
    held_of(count, 1, usize::MAX)
}

fn held_of(count: usize, peers: usize, limit: usize) -> Held<'static> {
    let slot = || HeldSlot::new(Box::leak(vec![0; HELD_LEN].into_boxed_slice()));
    let slots: vec::Vec<_> = (0..count).map(|_| slot()).collect();
    Held::new(Box::leak(slots.into_boxed_slice()), peers, limit)
}

impl Held<'static> {
    fn take(&mut self, of: (u8, u8), segment: Segment, now: Instant) -> bool {
        let mut memory: &'static mut [u8] = Box::leak(vec![0; HELD_LEN].into_boxed_slice());
        self.hold(&mut memory, HeldSegment::new((100, 200), of, segment, now))
    }

    fn next(&mut self, now: Instant) -> Option<u32> {
        let (memory, held, place) = self.next_released(now)?;
        self.give_back(memory, place);
        Some(held.segment.seq)
    }
}

#[test]
fn what_tcp_sends_as_it_was_ahead_is_released_and_all_else_forgets_it() {
    let mut prefetches = PrefetchRecords::NONE;
    let flow = |sdu| match sdu {
        Some(Sdu::Prefetched { flow }) => flow,
        other => panic!("{other:?}"),
    };
    let first = flow(prefetches.note(&segment(true, 1, (1000, 5), 100)));
    assert_eq!(
        flow(prefetches.note(&segment(true, 1, (1100, 5), 100))),
        first
    );
    let other = flow(prefetches.note(&segment(true, 2, (1, 5), 100)));
    assert_ne!(first, other, "two connections");
    let released = prefetches.release(&segment(true, 1, (1000, 9), 100));
    let expected = Sdu::Release {
        flow: first,
        bytes: 100,
    };
    assert_eq!(released, Some(expected));
    // A bare acknowledgment makes the peer drop the second one; the other connection's stays.
    assert_eq!(prefetches.release(&segment(true, 1, (1100, 9), 0)), None);
    assert_eq!(prefetches.release(&segment(true, 1, (1100, 9), 100)), None);
    assert!(prefetches.release(&segment(true, 2, (1, 9), 100)).is_some());
    // Cut in another way it is another segment.
    prefetches.note(&segment(true, 1, (1100, 5), 100)).unwrap();
    assert_eq!(prefetches.release(&segment(true, 1, (1100, 5), 50)), None);
    assert_eq!(prefetches.release(&segment(true, 1, (1100, 5), 100)), None);
    assert_eq!(
        prefetches.note(&segment(true, 1, (1, 1), 0)),
        None,
        "no data"
    );
}

#[test]
fn no_more_is_noted_than_there_are_places_for() {
    let mut prefetches = PrefetchRecords::NONE;
    let noted = (0..9).filter(|n| {
        let segment = segment(true, 1, (n * 100, 0), 100);
        prefetches.note(&segment).is_some()
    });
    assert_eq!(noted.count(), 4);
    assert!(!prefetches.has_room(u16::MAX));
    prefetches.end();
    assert!(prefetches.has_room(u16::MAX));
}

#[test]
fn no_more_goes_ahead_than_the_peer_has_places_for_however_short() {
    let mut prefetches = PrefetchRecords::NONE;
    assert!(!prefetches.has_room(1279), "no place");
    assert!(prefetches.has_room(2560));
    prefetches.note(&segment(true, 1, (0, 0), 1)).unwrap();
    assert!(prefetches.has_room(2560));
    prefetches.note(&segment(true, 1, (1, 0), 1)).unwrap();
    assert!(!prefetches.has_room(2560));
}

#[test]
fn a_peer_that_fills_its_places_leaves_those_of_the_others() {
    let mut held = held_of(5, 2, usize::MAX);
    assert_eq!(held.share(), 2560, "two for each, one over");
    let take = |held: &mut Held<'static>, peer, seq| {
        held.take((peer, 7), segment(true, 1, (seq, 0), 100), at_ms(1))
    };
    assert!(take(&mut held, 0, 0) && take(&mut held, 0, 100));
    assert!(!take(&mut held, 0, 200));
    assert!(take(&mut held, 1, 0));
    // A place whose memory is lent out is still its peer's.
    assert!(held.release((0, 7), 100, &mut Counters::default()));
    let (memory, _, place) = held.next_released(at_ms(2)).unwrap();
    assert!(!take(&mut held, 0, 200));
    held.give_back(memory, place);
    assert!(take(&mut held, 0, 200));
}

#[test]
fn places_beyond_the_numbers_that_there_are_stay_empty() {
    let mut held = held_of(9, 2, 5);
    assert_eq!(held.share(), 2560, "four of nine");
    let mut counters = Counters::default();
    for peer in [0, 1] {
        for n in 0..3 {
            let taken = held.take((peer, 7), segment(true, 1, (n * 100, 0), 100), at_ms(1));
            assert_eq!(taken, n < 2);
        }
        assert!(held.release((peer, 7), 200, &mut counters));
    }
    for _ in 0..4 {
        let (memory, _, place) = held.next_released(at_ms(2)).unwrap();
        assert!(place < 5);
        held.give_back(memory, place);
    }
}

#[test]
fn held_segments_go_on_in_order_by_the_bytes_that_are_released() {
    let mut held = held(3);
    let mut counters = Counters::default();
    for n in 0..3 {
        assert!(held.take((0, 7), segment(true, 1, (n * 100, 0), 100), at_ms(10)));
    }
    assert!(
        !held.take((0, 7), segment(true, 1, (300, 0), 100), at_ms(10)),
        "full"
    );
    assert!(held.release((0, 7), 200, &mut counters));
    assert_eq!(held.next(at_ms(35)), Some(0));
    assert_eq!(held.next(at_ms(35)), Some(100));
    assert_eq!(held.next(at_ms(35)), None, "the third is not released");
    // An ACK of both says how long the later one waited, and what its way took.
    let told = held
        .on_ack(&segment(false, 1, (0, 200), 0), at_ms(75))
        .unwrap();
    assert_eq!(
        (told.waited_ms, told.round_trip),
        (25, Duration::from_millis(40))
    );
    assert_eq!(
        held.on_ack(&segment(false, 1, (0, 200), 0), at_ms(75)),
        None
    );
    // Another packet of the connection, and another peer's.
    held.pass_by(1, &segment(true, 1, (200, 0), 0), &mut counters);
    assert_eq!(counters.dropped, 0, "that came from another peer");
    held.pass_by(0, &segment(true, 1, (200, 0), 0), &mut counters);
    assert_eq!(counters.dropped, 1);
    assert!(!held.release((0, 7), 100, &mut counters), "nothing is held");
}

#[test]
fn what_is_held_or_noted_for_too_long_is_dropped() {
    let mut held = held(1);
    let mut counters = Counters::default();
    assert!(held.take((0, 7), segment(true, 1, (0, 0), 100), at_ms(0)));
    held.note(&segment(true, 2, (0, 0), 100), Duration::ZERO, at_ms(0));
    assert_eq!(held.next_deadline(), Some(at_ms(2_500)));
    held.expire(at_ms(2_499), &mut counters);
    assert_eq!(counters.dropped, 0);
    held.expire(at_ms(2_500), &mut counters);
    assert_eq!((counters.dropped, held.next_deadline()), (1, None));
    assert_eq!(
        held.on_ack(&segment(false, 2, (0, 100), 0), at_ms(2_500)),
        None
    );
}

/// A link at 1 Mb/s that loses nothing, whose interval is 50 ms without TCPlE, a second after the
/// last decision.
const USUAL: Present = Present {
    interval: 40,
    plain: 40,
    is_lossy: false,
    is_2m: false,
    elapsed: Duration::from_secs(1),
};

const fn need(data_us: u32, round_trip_us: u32) -> Need {
    Need {
        data_us,
        round_trip_us,
        crossed: 0,
    }
}

fn interval_of(needs: &[Need], present: Present) -> Option<u16> {
    interval(needs.iter().copied(), present)
}

#[test]
fn the_interval_is_what_a_round_takes_and_a_quarter_more() {
    let at = |needs: &[Need], interval| interval_of(needs, Present { interval, ..USUAL });
    // Five packets at 1 Mb/s take 12.5 ms: 15.6, and the next step.
    assert_eq!(at(&[need(12_500, 0)], 40), Some(13));
    assert_eq!(at(&[need(12_500, 15_000)], 40), Some(28));
    // Within 0.8 and 0.9 of the present one nothing changes, nor where rounding leads back to it.
    assert_eq!(at(&[need(42_500, 0)], 40), None);
    assert_eq!(at(&[need(30_000, 0)], 28), None);
    assert_eq!(at(&[need(30_000, 0)], 26), Some(30));
    assert_eq!(at(&[need(12_500, 0)], 13), None);
    assert_eq!(at(&[need(0, 0)], 6), None, "there is no shorter one");
    assert_eq!(at(&[need(100, 0)], 40), Some(6));
    // The data of several peers are in one interval, and the longest of their rounds.
    assert_eq!(at(&[need(9_000, 1_000), need(9_000, 3_000)], 40), Some(18));
    assert_eq!(at(&[need(4_000, 1_000), need(4_000, 9_000)], 40), Some(13));
    // Each has room for a packet, however little there is to send.
    assert_eq!(at(&[need(100, 0); 4], 40), Some(12));
}

/// A lost packet ends its event, and a window that is used up waits for the next one: an interval
/// beyond the one without TCPlE carries less.
#[test]
fn no_interval_is_longer_than_without_tcple() {
    let of = |round_trip, plain| {
        let present = Present {
            interval: 100,
            plain,
            ..USUAL
        };
        interval_of(&[need(12_500, round_trip)], present)
    };
    // Rounds of 52.5 and 112.5 ms end 0.2 intervals before the end of the second and the third.
    assert_eq!(of(40_000, 40), Some(24));
    assert_eq!(of(100_000, 40), Some(33));
    // An interval that is hardly shorter saves no time.
    assert_eq!(of(120_000, 40), Some(40));
    assert_eq!(of(2_500_000, 40), Some(40));
    // Losses have made it shorter.
    assert_eq!(of(40_000, 8), Some(8));
}

/// Downloads count as uploads do: what a round of uploads takes says nothing about them.
#[test]
fn a_link_that_is_full_in_either_direction_has_the_interval_without_tcple() {
    let of = |crossed, peers: usize, present| {
        let busy = Need {
            crossed,
            ..need(0, 0)
        };
        let needs = [&[busy][..], &[need(0, 0); 2][..peers - 1]].concat();
        interval_of(&needs, present)
    };
    let short = Present {
        interval: 6,
        ..USUAL
    };
    // Two packets fit into 7.5 ms: 66,933 bytes a second.
    assert_eq!(of(55_000, 1, short), None);
    assert_eq!(of(58_000, 1, short), Some(40));
    assert_eq!(of(58_000, 1, USUAL), None, "it stays there");
    assert_eq!(of(55_000, 1, USUAL), Some(6), "there is less to carry");
    // One of three peers fills its own part: one packet in 11.25 ms.
    let third = Present {
        interval: 9,
        ..USUAL
    };
    assert_eq!(of(18_000, 3, third), None);
    assert_eq!(of(19_500, 3, third), Some(40));
    // Where losses end events early, half of the packets fill it.
    let lossy = Present {
        is_lossy: true,
        plain: 8,
        ..short
    };
    assert_eq!(of(30_000, 1, lossy), None);
    assert_eq!(of(35_000, 1, lossy), Some(8));
    // At 2 Mb/s five packets fit.
    let fast = Present {
        is_2m: true,
        ..short
    };
    assert_eq!(of(130_000, 1, fast), None);
    assert_eq!(of(150_000, 1, fast), Some(40));
}

#[test]
fn what_crosses_counts_in_both_directions_and_fades() {
    let mut pace = Pace::NEW;
    pace.on_crossing(2_000);
    pace.on_crossing(1_200);
    assert_eq!(pace.need(false).crossed, 3_200);
    assert_eq!(pace.need(false).crossed, 3_100);
}

#[test]
fn a_round_counts_twice_up_to_the_buffer_and_more_where_errors_are_expected() {
    let mut pace = Pace::NEW;
    pace.on_data(200);
    pace.on_ack(Duration::from_millis(8));
    let need = pace.need(false);
    assert_eq!(need.data_us, 400 * 2468 / 251);
    assert_eq!(need.round_trip_us, 8_000);
    assert!(pace.need(true).data_us < need.data_us, "2 Mb/s");
    pace.on_data(5_000);
    pace.on_ack(Duration::from_millis(8));
    let full = pace.need(false).data_us;
    assert_eq!(full, 1280 * 2468 / 251);
    // A link on which every second packet is lost.
    pace.on_rssi(-90);
    for _ in 0..40 {
        pace.on_event(5, 5);
    }
    let bad = pace.need(false).data_us;
    assert!(
        (f64::from(bad) / f64::from(full) - 2.0).abs() < 0.1,
        "{bad}"
    );
    for _ in 0..60 {
        pace.on_event(10, 0);
    }
    assert_eq!(pace.need(false).data_us, full, "it is good again");
    // However long an ACK takes, the sums stay in range.
    pace.on_ack(Duration::from_secs(10_000));
    assert!(pace.need(false).round_trip_us <= 2_500_000);
}
