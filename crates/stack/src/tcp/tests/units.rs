//! Sequence numbers, RTT estimation, timers, buffers.

use super::super::reassembly::{RecvBuffer, recv_memory_len};
use super::super::rtt::RttEstimator;
use super::super::send_buffer::SendBuffer;
use super::super::slices::{Piece, SliceQueue};
use super::super::timers::{NEVER, Purpose, Timer, present};
use super::super::{Buffers, Config, Connection, Endpoints, SeqNum};
use super::pattern;
use crate::time::Instant;
use core::net::Ipv6Addr;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec;
use std::vec::Vec;

proptest! {
    #[test]
    fn sequence_order_is_translation_invariant(a: u32, b: u32, shift: u32) {
        let (x, y) = (SeqNum::new(a), SeqNum::new(b));
        prop_assert_eq!(x.before(y), x.plus(shift).before(y.plus(shift)));
        prop_assert_eq!(x.plus(shift).since(x), shift);
        prop_assert_eq!(x.plus(shift).minus(shift), x);
        prop_assert!(!(x.before(y) && x.after(y)) || a.wrapping_sub(b) == 1 << 31);
        prop_assert_eq!(x.before(y) || x.after(y), a != b);
        if shift > 0 && shift < 1 << 31 {
            prop_assert!(x.before(x.plus(shift)) && x.plus(shift).after(x));
            prop_assert_eq!(x.later(x.plus(shift)), x.plus(shift));
        }
    }

    #[test]
    fn reassembly_is_a_vec_with_holes(
        window in 1u16..200,
        steps in prop::collection::vec((0u16..220, 0usize..60, 0usize..80), 1..60),
    ) {
        let mut memory = vec![0xa5; recv_memory_len(window)];
        let mut buffer = RecvBuffer::new(&mut memory);
        prop_assert!(buffer.capacity() >= window);
        let capacity = usize::from(buffer.capacity());
        // The stream, byte by byte, as far as it may have arrived; `true`: held.
        let stream = pattern(0, 20_000);
        let mut held = vec![false; 20_000];
        let (mut read, mut in_order) = (0usize, 0usize);
        // Where bytes out of order arrived, the last ones first.
        let (mut grew, mut count) = (Vec::new(), 0);
        for (gap, len, take) in steps {
            let start = in_order + usize::from(gap);
            let grown = buffer.insert(u32::from(gap), &stream[start..start + len]);
            for place in held.iter_mut().take((start + len).min(read + capacity)).skip(start) {
                *place = true;
            }
            let before = in_order;
            while held[in_order] {
                in_order += 1;
            }
            prop_assert_eq!(grown as usize, in_order - before);
            prop_assert_eq!(usize::from(buffer.len()), in_order - read);
            prop_assert_eq!(usize::from(buffer.window()), capacity - (in_order - read));
            // Ranges out of order, from the bitmap and from the model.
            let mut expected = Vec::new();
            let mut at = in_order;
            while at < read + capacity {
                if held[at] {
                    let from = at;
                    while at < read + capacity && held[at] {
                        at += 1;
                    }
                    expected.push(((from - in_order) as u32, (at - in_order) as u32));
                }
                at += 1;
            }
            let mut ranges = Vec::new();
            let mut from = 0;
            loop {
                let range = buffer.next_range(from);
                if range == (0, 0) {
                    break;
                }
                ranges.push(range);
                from = range.1;
            }
            prop_assert_eq!(&ranges, &expected);
            prop_assert_eq!(buffer.has_gaps(), !expected.is_empty());
            // The range that grew last comes first, and so on back (RFC 2018 §4).
            if gap > 0 && held[start] {
                count += 1;
                buffer.note_latest(u32::from(gap), count);
                grew.insert(0, start);
            }
            let mut by_age: Vec<(u32, u32)> = Vec::new();
            for place in &grew {
                let at = (*place as u32).wrapping_sub(in_order as u32);
                let range = expected.iter().find(|(left, right)| (*left..*right).contains(&at));
                by_age.extend(range.filter(|range| !by_age.contains(range)));
            }
            prop_assert_eq!(by_age.len(), expected.len());
            let mut key = 0;
            for range in by_age {
                let (found, next) = buffer.next_by_age(count, key);
                prop_assert_eq!(next, range);
                key = found + 1;
            }
            prop_assert_eq!(buffer.next_by_age(count, key).1, (0, 0));
            let mut out = vec![0; take];
            prop_assert!(stream[read..].starts_with(buffer.front()));
            let got = buffer.read(&mut out);
            prop_assert_eq!(&out[..got], &stream[read..read + got]);
            read += got;
        }
    }

    #[test]
    fn a_slice_queue_sends_what_was_pushed(
        steps in prop::collection::vec((0u8..4, 0usize..40), 1..60),
    ) {
        let source: &'static [u8] = Box::leak(pattern(0, 4000).into_boxed_slice());
        let mut queue = SendBuffer::slices(slice_queue());
        let mut model: Vec<u8> = Vec::new();
        let mut next = 0;
        for (kind, count) in steps {
            let data = &source[next..next + count];
            match kind {
                0 => {
                    if queue.push_slice(data) {
                        model.extend(data);
                        next += count;
                    }
                }
                1 => {
                    let room = usize::from(queue.room());
                    let taken = queue.push(data);
                    prop_assert_eq!(taken, room.min(count));
                    model.extend(&data[..taken]);
                    next += taken;
                }
                _ => {
                    queue.consume(count as u16);
                    model.drain(..count.min(model.len()));
                }
            }
            prop_assert_eq!(usize::from(queue.len()), model.len());
            for offset in [0, count, model.len() / 2] {
                let mut out = [0; 50];
                let got = queue.peek(offset as u16, &mut out);
                let expected: Vec<u8> = model.iter().skip(offset).take(50).copied().collect();
                prop_assert_eq!(&out[..got], &expected[..]);
            }
        }
    }
}

/// A queue that lives for good, as its own lifetime asks.
fn slice_queue() -> &'static mut SliceQueue<'static> {
    let pieces = Box::leak(vec![Piece::EMPTY; 4].into_boxed_slice());
    let copies = Box::leak(vec![0; 64].into_boxed_slice());
    Box::leak(Box::new(SliceQueue::new(pieces, copies)))
}

proptest! {
    #[test]
    fn the_clock_is_a_division_by_1000(steps in prop::collection::vec(any::<(u64, u8)>(), 1..20)) {
        let mut tcp = super::engine(0, 0, 1);
        let mut latest = 0;
        for (us, shift) in steps {
            let us = us >> (shift % 64);
            tcp.set_now(Instant::from_micros(us));
            latest = latest.max(us);
            prop_assert_eq!(tcp.now_ms, (latest / 1000) as u32);
            prop_assert_eq!(tcp.tick.as_micros(), latest / 1000 * 1000);
        }
    }
}

#[test]
fn rto_follows_rfc_6298() {
    let config = Config {
        rto_min_ms: 0,
        rto_slop_ms: 0,
        ..Config::DEFAULT
    };
    let mut rtt = RttEstimator::NEW;
    assert_eq!(rtt.rto_ms(&config), 1000, "(2.1)");
    rtt.sample(100);
    assert_eq!(rtt.srtt_ms(), Some(100));
    assert_eq!(rtt.rto_ms(&config), 300, "(2.2): R + 4·R/2");
    rtt.sample(180);
    // (2.3) RTTVAR = 3/4·50 + 1/4·80 = 57.5, then SRTT = 7/8·100 + 1/8·180 = 110
    assert_eq!(rtt.srtt_ms(), Some(110));
    assert_eq!(rtt.rto_ms(&config), 340);
    rtt.back_off();
    assert_eq!(rtt.rto_ms(&config), 680, "(5.5)");
    for _ in 0..20 {
        rtt.back_off();
    }
    assert_eq!(rtt.rto_ms(&config), 60_000, "(2.5)");
    rtt.sample(110);
    assert!(rtt.rto_ms(&config) < 400, "a sample ends the backoff");
}

/// RFC 4015 §4.3, with SRTT alone: behind one late round trip the RTO is longer than that.
#[test]
fn a_spurious_expiry_raises_srtt_to_what_was_late() {
    let config = Config {
        rto_min_ms: 0,
        rto_slop_ms: 0,
        ..Config::DEFAULT
    };
    let mut rtt = RttEstimator::NEW;
    rtt.sample(100);
    rtt.sample(1_000);
    assert!(rtt.rto_ms(&config) > 1_000, "by its variation");
    for _ in 0..10 {
        rtt.sample(100);
    }
    assert!(rtt.rto_ms(&config) < 600);
    let variation = rtt.rttvar_ms();
    rtt.raise(1_000);
    assert_eq!(rtt.srtt_ms(), Some(1_000));
    assert_eq!(rtt.rttvar_ms(), variation);
    assert!(rtt.rto_ms(&config) > 1_000);
    rtt.raise(500);
    assert_eq!(rtt.srtt_ms(), Some(1_000), "it lowers nothing");
}

/// What stays doubled behind a repair, without timestamps, is what was measured; the slop is added
/// once.
#[test]
fn behind_a_repair_the_slop_is_not_doubled() {
    let config = Config {
        rto_min_ms: 200,
        rto_slop_ms: 200,
        rto_max_ms: 60_000,
        ..Config::DEFAULT
    };
    let (mut repaired, mut by_stamp) = (RttEstimator::NEW, RttEstimator::NEW);
    repaired.sample(100);
    by_stamp.sample_stamped(100);
    let mut by_age = repaired;
    repaired.note_repaired();
    by_stamp.note_repaired();
    for doublings in 0..4 {
        assert_eq!(repaired.rto_ms(&config), (300 << doublings) + 200);
        for doubled in [&by_age, &by_stamp] {
            assert_eq!(doubled.rto_ms(&config), 500 << doublings);
        }
        for rtt in [&mut repaired, &mut by_age, &mut by_stamp] {
            assert_eq!(rtt.probe_ms(&config), 500 << doublings);
            rtt.back_off();
        }
    }
    // A sample ends it, and goes on from what is known.
    repaired.sample(180);
    assert_eq!(repaired.srtt_ms(), Some(110));
    repaired.back_off();
    assert_eq!(repaired.rto_ms(&config), 2 * (340 + 200));
    // The floor is doubled in any case, and the ceiling holds.
    let high = Config {
        rto_min_ms: 1_000,
        ..config
    };
    let mut steady = RttEstimator::NEW;
    for _ in 0..100 {
        steady.sample(20);
    }
    steady.note_repaired();
    steady.back_off();
    assert_eq!(steady.rto_ms(&high), 2_000);
    for _ in 0..20 {
        steady.back_off();
    }
    assert_eq!(steady.rto_ms(&config), 60_000);
}

#[test]
fn rto_has_a_floor_and_a_slop() {
    let mut rtt = RttEstimator::NEW;
    for _ in 0..100 {
        rtt.sample(20);
    }
    let with = |rto_min_ms, rto_slop_ms| Config {
        rto_min_ms,
        rto_slop_ms,
        ..Config::DEFAULT
    };
    assert!(rtt.rto_ms(&with(0, 0)) < 25);
    assert_eq!(rtt.rto_ms(&with(1000, 0)), 1000);
    assert!((220..230).contains(&rtt.rto_ms(&with(0, 200))));
    let mut silent = RttEstimator::NEW;
    silent.distrust();
    assert_eq!(silent.rto_ms(&Config::DEFAULT), 3000, "RFC 6298 (5.7)");
    let mut zero = RttEstimator::NEW;
    zero.sample(0);
    assert_eq!(zero.srtt_ms(), Some(1), "the clock's resolution");
    zero.sample(u32::MAX);
    assert!(zero.rto_ms(&Config::DEFAULT) <= 60_000);
}

#[test]
fn timers_give_the_earliest_across_the_wrap() {
    let now = u32::MAX - 10;
    let ends = Endpoints {
        local: Ipv6Addr::LOCALHOST,
        remote: Ipv6Addr::LOCALHOST,
        local_port: 1,
        remote_port: 2,
        zone: 0,
    };
    let buffers = Buffers::new(&mut [], &mut []);
    let mut connection = Connection::new(&ends, buffers, &Config::DEFAULT, (now, 0));
    let wait = |c: &Connection<'_>| c.wait(present(c.now_ms, c.now_part));
    assert_eq!(wait(&connection), NEVER);
    connection.arm(Timer::Ack, 100);
    connection.arm_transmit(Purpose::Persist, 40);
    assert_eq!(wait(&connection), 40 << 5);
    assert_eq!(connection.timers.purpose(), Some(Purpose::Persist));
    connection.set_now(now.wrapping_add(39), 31);
    assert!(wait(&connection) > 0 && !connection.take_due(Timer::Transmit));
    connection.set_now(now.wrapping_add(40), 0);
    assert!(wait(&connection) == 0 && connection.take_due(Timer::Transmit));
    assert!(!connection.take_due(Timer::Transmit), "once");
    assert_eq!(connection.timers.purpose(), None);
    connection.set_now(now.wrapping_add(200), 0);
    assert_eq!(wait(&connection), 0, "late is now");
    // Later than deadlines can tell: still late, not early.
    connection.leap(199_999_800, now.wrapping_add(200_000_000), 0);
    connection.set_now(now.wrapping_add(200_000_000), 0);
    assert!(connection.take_due(Timer::Ack), "two days late");
    assert_eq!(wait(&connection), NEVER);
    connection.arm(Timer::Lifetime, u32::MAX);
    assert!(wait(&connection) > 0, "no wait is so long that it is over");
    connection.timers.disarm_all();
    assert_eq!(wait(&connection), NEVER);
}
