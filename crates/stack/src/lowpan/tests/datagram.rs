use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

use super::record::{LINGER, REASSEMBLY_TIMEOUT, RELAY_TIMEOUT};
use super::*;
use crate::random::Rng;
use crate::time::Duration;

const A: LinkAddr = LinkAddr::Short(1);
const B: LinkAddr = LinkAddr::Short(2);
const C: LinkAddr = LinkAddr::Short(3);

fn table(records: usize, bodies: usize, any_order: bool) -> Datagrams<'static> {
    let records = vec![Record::EMPTY; records].leak();
    let bodies = vec![0; bodies * 1280].leak();
    Datagrams::new(
        records,
        bodies,
        1280,
        any_order,
        &mut Rng::from_seed([7, 7]),
    )
}

/// A first fragment without anything beside it.
const fn first(bytes: &[u8]) -> First<'_> {
    First {
        bytes,
        forms: HeaderForms {
            tcp: crate::lowpan::TcpForm::Plain,
            rpi: None,
        },
        unnumbered: 0,
    }
}

const fn key(from: LinkAddr, tag: u16, size: u16) -> Key {
    Key { from, tag, size }
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Duration::from_millis(1_000_000 + ms)
}

fn packet(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i * 7 + i / 256) as u8).collect()
}

#[test]
fn gathers_a_packet() {
    let mut table = table(2, 1, false);
    let (key, packet) = (key(A, 1, 100), packet(100));
    assert_eq!(
        table.on_first(
            key,
            first(&packet[..48]),
            FragmentHandling::Reassemble,
            true,
            at(0)
        ),
        FragmentOutcome::Stored
    );
    assert_eq!(
        table.on_next(key, 48, &packet[48..96], at(1)),
        FragmentOutcome::Stored
    );
    let FragmentOutcome::Complete(id) = table.on_next(key, 96, &packet[96..], at(2)) else {
        panic!("the packet is whole")
    };
    assert_eq!(table.packet(id), packet);
    assert_eq!(
        table.on_next(key, 96, &packet[96..], at(3)),
        FragmentOutcome::Drop(FragmentDrop::Duplicate)
    );
    assert_eq!(table.len(), 1);
    table.release(id);
    assert_eq!((table.len(), table.packet(id)), (0, &mut [][..]));
    assert_eq!(
        table.on_next(key, 96, &packet[96..], at(4)),
        FragmentOutcome::Drop(FragmentDrop::Duplicate)
    );
    assert_eq!(table.counters().reassembled, 1);
    assert_eq!(table.counters().dropped(FragmentDrop::Duplicate), 2);
}

#[test]
fn a_lent_packet_comes_back_to_the_table() {
    let mut table = table(4, 2, false);
    let FragmentOutcome::Complete(id) = table.on_first(
        key(A, 1, 8),
        first(&[1; 8]),
        FragmentHandling::Reassemble,
        true,
        at(0),
    ) else {
        panic!("the packet is whole")
    };
    let (mut whole, _) = table.lend(id).unwrap();
    whole.packet()[7] -= 1;
    assert_eq!(whole.packet(), [1, 1, 1, 1, 1, 1, 1, 0]);
    let second = |table: &mut Datagrams<'_>| {
        table.on_first(
            key(B, 1, 16),
            first(&[2; 8]),
            FragmentHandling::Reassemble,
            true,
            at(0),
        )
    };
    assert_eq!(
        second(&mut table),
        FragmentOutcome::Drop(FragmentDrop::NoBody),
        "on loan"
    );
    table.give_back(whole);
    assert!(table.lend(id).is_none() && table.is_empty(), "released");
    assert_eq!(second(&mut table), FragmentOutcome::Stored);
}

#[test]
fn a_first_fragment_may_be_all() {
    let mut table = table(2, 1, false);
    let packet = packet(45);
    let outcome = table.on_first(
        key(A, 1, 45),
        first(&packet),
        FragmentHandling::Reassemble,
        true,
        at(0),
    );
    assert!(matches!(outcome, FragmentOutcome::Complete(_)));
}

#[test]
fn passes_fragments_on_under_a_tag_of_its_own() {
    let mut table = table(2, 0, false);
    let (one, two) = (key(A, 9, 96), key(B, 9, 96));
    let handling = |next_hop| FragmentHandling::Forward { next_hop };
    let FragmentOutcome::Forward {
        next_hop: C,
        tag: tag_one,
    } = table.on_first(one, first(&[0; 48]), handling(C), true, at(0))
    else {
        panic!("forwards")
    };
    let FragmentOutcome::Forward {
        next_hop: A,
        tag: tag_two,
    } = table.on_first(two, first(&[0; 48]), handling(A), true, at(0))
    else {
        panic!("forwards")
    };
    assert_ne!(
        tag_one, tag_two,
        "the same tag from two neighbours means two packets"
    );
    let on = FragmentOutcome::Forward {
        next_hop: C,
        tag: tag_one,
    };
    assert_eq!(table.on_next(one, 48, &[0; 24], at(1)), on);
    assert_eq!(
        table.on_next(one, 48, &[0; 24], at(1)),
        FragmentOutcome::Drop(FragmentDrop::Duplicate)
    );
    assert_eq!(table.len(), 2);
    assert_eq!(table.on_next(one, 72, &[0; 24], at(2)), on);
    assert_eq!(
        (table.len(), table.counters().forwarded),
        (1, 1),
        "done with the last one"
    );
    assert_eq!(
        table.on_next(one, 72, &[0; 24], at(3)),
        FragmentOutcome::Drop(FragmentDrop::Duplicate)
    );
    assert_eq!(
        table.on_first(one, first(&[0; 48]), handling(C), true, at(3)),
        FragmentOutcome::Drop(FragmentDrop::Duplicate)
    );
}

#[test]
fn without_its_first_fragment_a_packet_is_dropped_or_gathered() {
    let packet = packet(96);
    let mut strict = table(2, 1, false);
    let outcome = strict.on_next(key(A, 1, 96), 48, &packet[48..], at(0));
    assert_eq!(outcome, FragmentOutcome::Drop(FragmentDrop::NoRecord));
    assert!(strict.is_empty());
    let mut lenient = table(2, 1, true);
    assert_eq!(
        lenient.on_next(key(A, 1, 96), 48, &packet[48..], at(0)),
        FragmentOutcome::Stored
    );
    // It turns out to be for somebody else: whole it is routed all the same.
    let handling = FragmentHandling::Forward { next_hop: C };
    let FragmentOutcome::Complete(id) =
        lenient.on_first(key(A, 1, 96), first(&packet[..48]), handling, true, at(1))
    else {
        panic!("the packet is whole")
    };
    assert_eq!(lenient.packet(id), packet);
}

#[test]
fn after_a_loss_the_siblings_are_dropped() {
    let mut table = table(2, 0, false);
    let key = key(A, 1, 96);
    let handling = FragmentHandling::Forward { next_hop: C };
    let FragmentOutcome::Forward { tag, .. } =
        table.on_first(key, first(&[0; 48]), handling, true, at(0))
    else {
        panic!("forwards")
    };
    assert!(!table.fragment_lost(tag.wrapping_add(1)));
    assert!(table.fragment_lost(tag));
    for offset in [48, 72] {
        let outcome = table.on_next(key, offset, &[0; 24], at(1));
        assert_eq!(outcome, FragmentOutcome::Drop(FragmentDrop::SiblingLost));
    }
    assert!(table.is_empty());
    assert!(!table.fragment_lost(tag), "once");
    // Long after, the same tag means another packet.
    let later = at(0) + LINGER;
    assert!(matches!(
        table.on_first(key, first(&[0; 48]), handling, true, later),
        FragmentOutcome::Forward { .. }
    ));
}

#[test]
fn malformed_fragments_open_no_record() {
    let cases = [
        ("empty", 96, 0, 0, FragmentDrop::BadLength),
        ("not whole units", 96, 0, 20, FragmentDrop::BadLength),
        ("beyond the end", 96, 0, 104, FragmentDrop::BadLength),
        ("offset not a unit", 96, 4, 8, FragmentDrop::BadLength),
        ("offset beyond the end", 96, 96, 8, FragmentDrop::BadLength),
        ("end beyond the end", 96, 88, 16, FragmentDrop::BadLength),
        ("no size", 0, 0, 0, FragmentDrop::BadLength),
        (
            "offset wraps",
            96,
            usize::MAX - 7,
            8,
            FragmentDrop::BadLength,
        ),
        (
            "larger than any packet",
            1464,
            8,
            8,
            FragmentDrop::BadLength,
        ),
    ];
    for any_order in [false, true] {
        for (name, size, offset, len, reason) in cases {
            let mut table = table(2, 2, any_order);
            let key = key(A, 1, size);
            let outcome = match offset {
                0 => table.on_first(
                    key,
                    first(&vec![0; len]),
                    FragmentHandling::Reassemble,
                    true,
                    at(0),
                ),
                _ => table.on_next(key, offset, &vec![0; len], at(0)),
            };
            let reason = if offset > 0 && !any_order {
                FragmentDrop::NoRecord
            } else {
                reason
            };
            assert_eq!(outcome, FragmentOutcome::Drop(reason), "{name}");
            assert!(table.is_empty(), "{name}");
        }
    }
    let mut small = Datagrams::new(
        vec![Record::EMPTY; 1].leak(),
        vec![0; 600].leak(),
        300,
        false,
        &mut Rng::from_seed([0, 0]),
    );
    let outcome = small.on_first(
        key(A, 1, 301),
        first(&[0; 8]),
        FragmentHandling::Reassemble,
        true,
        at(0),
    );
    assert_eq!(outcome, FragmentOutcome::Drop(FragmentDrop::TooLarge));
    let handling = FragmentHandling::Forward { next_hop: C };
    assert!(matches!(
        small.on_first(key(A, 1, 301), first(&[0; 8]), handling, true, at(0)),
        FragmentOutcome::Forward { .. }
    ));
}

#[test]
fn what_contradicts_gives_the_packet_up() {
    let packet = packet(96);
    let mut changed = packet.clone();
    changed[50] ^= 1;
    let steps: [(&str, usize, &[u8], FragmentDrop); 4] = [
        ("the same", 0, &packet[..48], FragmentDrop::Duplicate),
        (
            "part of the same",
            8,
            &packet[8..24],
            FragmentDrop::Duplicate,
        ),
        (
            "a later part that reaches back",
            40,
            &packet[40..64],
            FragmentDrop::Overlap,
        ),
        ("other bytes", 48, &changed[48..72], FragmentDrop::Overlap),
    ];
    for (name, offset, piece, reason) in steps {
        let mut table = table(2, 1, false);
        let key = key(A, 1, 96);
        table.on_first(
            key,
            first(&packet[..48]),
            FragmentHandling::Reassemble,
            true,
            at(0),
        );
        if offset == 48 {
            table.on_next(key, 48, &packet[48..72], at(0));
        }
        assert_eq!(
            table.on_next(key, offset, piece, at(1)),
            FragmentOutcome::Drop(reason),
            "{name}"
        );
        assert_eq!(table.is_empty(), reason == FragmentDrop::Overlap, "{name}");
    }
}

#[test]
fn time_limits() {
    let mut table = table(4, 2, false);
    table.on_first(
        key(A, 1, 96),
        first(&[0; 8]),
        FragmentHandling::Reassemble,
        true,
        at(0),
    );
    table.on_first(
        key(B, 1, 96),
        first(&[0; 8]),
        FragmentHandling::Forward { next_hop: C },
        true,
        at(0),
    );
    assert_eq!(table.next_deadline(), Some(at(0) + RELAY_TIMEOUT));
    table.expire(at(0) + RELAY_TIMEOUT);
    assert_eq!(table.len(), 1);
    table.on_next(key(A, 1, 96), 8, &[0; 8], at(3_000));
    assert_eq!(table.next_deadline(), Some(at(3_000) + REASSEMBLY_TIMEOUT));
    table.expire(at(3_000) + REASSEMBLY_TIMEOUT);
    assert!(table.is_empty());
    assert_eq!(table.next_deadline(), None);
    assert_eq!(table.counters().dropped(FragmentDrop::Timeout), 2);
    // One byte group now and then does not keep a body for ever.
    let (slow, mut ms) = (key(C, 1, 1280), 10_000);
    table.on_first(
        slow,
        first(&[0; 8]),
        FragmentHandling::Reassemble,
        true,
        at(ms),
    );
    for unit in 1.. {
        ms += 3_000;
        table.expire(at(ms));
        if table.on_next(slow, unit * 8, &[0; 8], at(ms)) != FragmentOutcome::Stored {
            break;
        }
    }
    assert_eq!(ms, 70_000, "RFC 4944 allows 60 s");
}

#[test]
fn an_untaken_packet_does_not_stay() {
    let mut table = table(1, 1, false);
    let FragmentOutcome::Complete(id) = table.on_first(
        key(A, 1, 8),
        first(&[1; 8]),
        FragmentHandling::Reassemble,
        true,
        at(0),
    ) else {
        panic!("the packet is whole")
    };
    table.expire(at(0) + REASSEMBLY_TIMEOUT);
    assert!(table.packet(id).is_empty() && table.is_empty());
}

/// Opens a record for a packet of 96 bytes.
fn open(
    table: &mut Datagrams<'_>,
    (from, is_known): (LinkAddr, bool),
    tag: u16,
    handling: FragmentHandling,
    ms: u64,
) -> FragmentOutcome {
    let key = key(from, tag, 96);
    table.on_first(key, first(&[0; 8]), handling, is_known, at(ms))
}

#[test]
fn no_neighbour_takes_all_and_a_burst_is_safe() {
    let mut table = table(4, 3, false);
    let handling = FragmentHandling::Forward { next_hop: C };
    let taken = |outcome| matches!(outcome, FragmentOutcome::Forward { .. });
    for tag in 0..3 {
        assert!(taken(open(&mut table, (A, true), tag, handling, 0)));
    }
    let quota = FragmentOutcome::Drop(FragmentDrop::NeighborQuota);
    assert_eq!(open(&mut table, (A, true), 3, handling, 59), quota);
    assert!(taken(open(&mut table, (B, true), 0, handling, 59)));
    let full = FragmentOutcome::Drop(FragmentDrop::TableFull);
    assert_eq!(open(&mut table, (C, true), 0, handling, 59), full);
    // Nothing has followed: a record may go, first to its own neighbour.
    assert!(taken(open(&mut table, (A, true), 3, handling, 60)));
    assert!(taken(open(&mut table, (C, true), 0, handling, 60)));
    assert_eq!(table.counters().dropped(FragmentDrop::Evicted), 2);
    assert_eq!(
        table.on_next(key(A, 0, 96), 8, &[0; 8], at(61)),
        FragmentOutcome::Drop(FragmentDrop::NoRecord)
    );
}

#[test]
fn no_neighbour_takes_every_body() {
    let mut table = table(8, 2, false);
    let handling = FragmentHandling::Reassemble;
    assert_eq!(
        open(&mut table, (A, true), 0, handling, 0),
        FragmentOutcome::Stored
    );
    let quota = FragmentOutcome::Drop(FragmentDrop::NeighborQuota);
    assert_eq!(open(&mut table, (A, true), 1, handling, 0), quota);
    assert_eq!(
        open(&mut table, (B, true), 0, handling, 10),
        FragmentOutcome::Stored
    );
    let none = FragmentOutcome::Drop(FragmentDrop::NoBody);
    assert_eq!(open(&mut table, (C, true), 0, handling, 10), none);
    assert_eq!(
        open(&mut table, (C, true), 0, handling, 60),
        FragmentOutcome::Stored
    );
    assert_eq!(table.len(), 2);
}

/// The second fragment's first attempt failed: 40 ms of retry delay, a backoff and a frame.
#[test]
fn a_first_fragment_keeps_its_place_until_the_second_was_tried_twice() {
    let retried = crate::mac::config::RETRY_DELAY_MAX + Duration::from_millis(19);
    let mut table = table(8, 1, false);
    let handling = FragmentHandling::Reassemble;
    assert_eq!(
        open(&mut table, (A, true), 0, handling, 0),
        FragmentOutcome::Stored
    );
    for ms in 0..=retried.as_micros() / 1_000 {
        let other = open(&mut table, (B, true), ms as u16, handling, ms);
        assert_eq!(other, FragmentOutcome::Drop(FragmentDrop::NoBody), "{ms}");
    }
    let second = table.on_next(key(A, 0, 96), 8, &[0; 8], at(0) + retried);
    assert_eq!(second, FragmentOutcome::Stored);
}

/// A packet of two fragments from `from`, whole at the second.
fn serve(table: &mut Datagrams<'_>, from: LinkAddr, tag: u16, ms: u64) {
    let key = key(from, tag, 16);
    let gathers = FragmentHandling::Reassemble;
    let first = table.on_first(key, first(&[0; 8]), gathers, true, at(ms));
    assert_eq!(first, FragmentOutcome::Stored);
    let FragmentOutcome::Complete(id) = table.on_next(key, 8, &[0; 8], at(ms)) else {
        panic!("whole")
    };
    table.release(id);
}

/// A sender without pause may not keep the one body for ever.
#[test]
fn who_was_refused_for_long_overtakes_who_was_served() {
    let handling = FragmentHandling::Reassemble;
    let none = FragmentOutcome::Drop(FragmentDrop::NoBody);
    let grow = |table: &mut Datagrams<'_>, from, tag, ms| {
        open(table, (from, true), tag, handling, ms);
        table.on_next(key(from, tag, 96), 8, &[0; 8], at(ms))
    };
    let mut table = table(8, 1, false);
    serve(&mut table, A, 0, 0);
    assert_eq!(grow(&mut table, A, 1, 0), FragmentOutcome::Stored);
    assert_eq!(
        open(&mut table, (B, false), 0, handling, 1),
        none,
        "a stranger"
    );
    assert_eq!(grow(&mut table, B, 1, 1), FragmentOutcome::Stored);
    assert_eq!(
        open(&mut table, (A, true), 2, handling, 2),
        none,
        "had its turn"
    );
    assert_eq!(
        open(&mut table, (C, true), 0, handling, 2),
        none,
        "so has B's none"
    );
    // Each time costs a packet: four at once, then one a second.
    let mut overtaken = 0;
    for n in 0..100u16 {
        let ms = 10_000 + 100 * u64::from(n);
        let evicted = table.counters().dropped(FragmentDrop::Evicted);
        table.expire(at(ms));
        serve(&mut table, A, 100 + n, ms);
        assert_eq!(grow(&mut table, A, 300 + n, ms), FragmentOutcome::Stored);
        let forged = LinkAddr::Short(500 + n);
        let outcome = open(&mut table, (forged, true), 0, handling, ms);
        overtaken += u32::from(outcome == FragmentOutcome::Stored);
        assert_eq!(
            outcome == none,
            evicted == table.counters().dropped(FragmentDrop::Evicted)
        );
        for (from, tag) in [(forged, 0), (A, 300 + n)] {
            let all = [0; 88];
            if let FragmentOutcome::Complete(id) =
                table.on_next(key(from, tag, 96), 8, &all, at(ms))
            {
                table.release(id);
            }
            if let FragmentOutcome::Complete(id) =
                table.on_next(key(from, tag, 96), 16, &all[8..], at(ms))
            {
                table.release(id);
            }
        }
    }
    assert!((10..=14).contains(&overtaken), "{overtaken} in ten seconds");
}

/// A record may be had for the asking, a body not: then nobody makes way.
#[test]
fn no_packet_is_given_up_for_one_that_is_refused() {
    let mut table = table(2, 1, false);
    let forwards = FragmentHandling::Forward { next_hop: C };
    let FragmentOutcome::Forward { .. } = open(&mut table, (A, true), 0, forwards, 0) else {
        panic!("it is passed on");
    };
    let gathers = FragmentHandling::Reassemble;
    assert_eq!(
        open(&mut table, (B, true), 0, gathers, 100),
        FragmentOutcome::Stored
    );
    let grows = table.on_next(key(B, 0, 96), 8, &[0; 8], at(100));
    assert_eq!(grows, FragmentOutcome::Stored);
    let refused = open(&mut table, (C, true), 0, gathers, 101);
    assert_eq!(refused, FragmentOutcome::Drop(FragmentDrop::NoBody));
    assert_eq!(table.counters().dropped(FragmentDrop::Evicted), 0);
    let next = table.on_next(key(A, 0, 96), 8, &[0; 8], at(102));
    assert!(matches!(next, FragmentOutcome::Forward { .. }), "{next:?}");
}

/// Where record and body are both taken, one packet makes way, not two.
#[test]
fn one_packet_makes_way_for_one() {
    let mut table = table(2, 1, false);
    let forwards = FragmentHandling::Forward { next_hop: C };
    open(&mut table, (A, true), 0, forwards, 0);
    let gathers = FragmentHandling::Reassemble;
    assert_eq!(
        open(&mut table, (B, true), 0, gathers, 50),
        FragmentOutcome::Stored
    );
    assert_eq!(
        open(&mut table, (C, true), 0, gathers, 200),
        FragmentOutcome::Stored
    );
    assert_eq!(table.counters().dropped(FragmentDrop::Evicted), 1);
    let next = table.on_next(key(A, 0, 96), 8, &[0; 8], at(201));
    assert!(matches!(next, FragmentOutcome::Forward { .. }), "{next:?}");
}

#[test]
fn what_grows_stays_and_strangers_make_way() {
    let handling = FragmentHandling::Reassemble;
    let none = FragmentOutcome::Drop(FragmentDrop::NoBody);
    let grown = |is_known| {
        let mut table = table(8, 1, false);
        assert_eq!(
            open(&mut table, (A, is_known), 0, handling, 0),
            FragmentOutcome::Stored
        );
        let outcome = table.on_next(key(A, 0, 96), 8, &[0; 8], at(100));
        assert_eq!(outcome, FragmentOutcome::Stored);
        table
    };
    // (who holds the body, who wants it, from when on)
    for (holder, other, from_ms) in [
        (true, true, 100 + 250),
        (true, false, 100 + 1_000),
        (false, false, 100 + 250),
        (false, true, 100),
    ] {
        let mut table = grown(holder);
        if from_ms > 100 {
            let before = open(&mut table, (B, other), 0, handling, from_ms - 1);
            assert_eq!(before, none, "{holder} {other}");
        }
        let outcome = open(&mut table, (B, other), 0, handling, from_ms);
        assert_eq!(outcome, FragmentOutcome::Stored, "{holder} {other}");
    }
    // Among several the stranger's goes first, then what does not grow, then the oldest.
    let mut table = table(8, 3, false);
    for (from, is_known, ms) in [(A, true, 0), (B, true, 1), (C, false, 2)] {
        assert_eq!(
            open(&mut table, (from, is_known), 0, handling, ms),
            FragmentOutcome::Stored
        );
    }
    table.on_next(key(A, 0, 96), 8, &[0; 8], at(3));
    for (tag, loser) in [(1, C), (2, B)] {
        let other = LinkAddr::Short(40 + tag);
        assert_eq!(
            open(&mut table, (other, true), tag, handling, 70),
            FragmentOutcome::Stored
        );
        let outcome = table.on_next(key(loser, 0, 96), 16, &[0; 8], at(70));
        assert_eq!(
            outcome,
            FragmentOutcome::Drop(FragmentDrop::SiblingLost),
            "{loser:?}"
        );
    }
}

/// Seventeen first fragments a second from two forged sources, beside a packet of five.
#[test]
fn forged_first_fragments_do_not_cost_an_honest_packet_its_body() {
    for bodies in [1, 2, 4] {
        let (mut table, packet) = (table(8, bodies, false), packet(480));
        let (mut ms, mut tag) = (0, 0);
        for _ in 0..100 {
            tag += 1;
            let honest = key(A, tag, 480);
            for n in 0..5usize {
                let piece = &packet[n * 96..][..96];
                let now = at(ms);
                let outcome = match n {
                    0 => table.on_first(
                        honest,
                        first(piece),
                        FragmentHandling::Reassemble,
                        true,
                        now,
                    ),
                    _ => table.on_next(honest, n * 96, piece, now),
                };
                match outcome {
                    FragmentOutcome::Complete(id) => table.release(id),
                    outcome => assert_eq!(outcome, FragmentOutcome::Stored, "{bodies} bodies, {n}"),
                }
                for _ in 0..2 {
                    let from = LinkAddr::Short(100 + tag % 2);
                    open(
                        &mut table,
                        (from, false),
                        1_000 + tag,
                        FragmentHandling::Reassemble,
                        ms + 5,
                    );
                }
                ms += 30;
            }
        }
        assert_eq!(table.counters().reassembled, 100);
    }
}

/// What a naive reassembly of one packet says.
#[derive(Default)]
struct Model {
    bytes: Vec<Option<u8>>,
    over: Option<FragmentDrop>,
}

impl Model {
    fn take(&mut self, size: usize, offset: usize, piece: &[u8]) -> Result<bool, FragmentDrop> {
        if let Some(reason) = self.over {
            return Err(reason);
        }
        let end = offset + piece.len();
        if piece.is_empty() || end > size || (!end.is_multiple_of(8) && end != size) {
            return Err(FragmentDrop::BadLength);
        }
        self.bytes.resize(size, None);
        let held = &mut self.bytes[offset..end];
        if held.iter().any(Option::is_some) {
            let same = held
                .iter()
                .zip(piece)
                .all(|(held, new)| *held == Some(*new));
            if !same {
                self.over = Some(FragmentDrop::SiblingLost);
            }
            return Err(if same {
                FragmentDrop::Duplicate
            } else {
                FragmentDrop::Overlap
            });
        }
        held.iter_mut()
            .zip(piece)
            .for_each(|(held, new)| *held = Some(*new));
        let whole = self.bytes.iter().all(Option::is_some);
        if whole {
            self.over = Some(FragmentDrop::Duplicate);
        }
        Ok(whole)
    }
}

proptest! {
    /// Two packets interleaved, fragments of any extent in any order, some with other bytes:
    /// the same verdicts and the same packets as from two byte vectors.
    #[test]
    fn reassembly_agrees_with_a_vec(
        sizes in [1u16..80, 1u16..80],
        steps in prop::collection::vec((0usize..2, 0usize..10, 0usize..40, 0u8..12), 0..60),
    ) {
        let mut table = table(4, 3, true);
        let mut models = [Model::default(), Model::default()];
        let original = packet(80);
        for (which, unit, len, change) in steps {
            let size = usize::from(sizes[which]);
            let key = key([A, B][which], 5, sizes[which]);
            let offset = unit * 8;
            // Mostly whole units or up to the end.
            let len = if change % 2 == 0 { len & !7 } else { len.min(size.saturating_sub(offset)) };
            let mut piece = original[offset..(offset + len).min(80)].to_vec();
            if change == 11 && let Some(byte) = piece.first_mut() {
                *byte ^= 0x80;
            }
            let outcome = match unit {
                0 => table.on_first(key, first(&piece), FragmentHandling::Reassemble, true, at(0)),
                _ => table.on_next(key, offset, &piece, at(0)),
            };
            match (models[which].take(size, offset, &piece), outcome) {
                (Ok(false), outcome) => prop_assert_eq!(outcome, FragmentOutcome::Stored),
                (Err(reason), outcome) => prop_assert_eq!(outcome, FragmentOutcome::Drop(reason)),
                (Ok(true), FragmentOutcome::Complete(id)) => {
                    let expected: Option<Vec<u8>> = models[which].bytes.iter().copied().collect();
                    prop_assert_eq!(Some(table.packet(id).to_vec()), expected);
                    table.release(id);
                }
                (Ok(true), outcome) => prop_assert!(false, "whole, but {:?}", outcome),
            }
        }
    }

    /// Whatever neighbours send: no body twice, no tag twice, quotas kept, and time frees all.
    #[test]
    fn stays_within_its_bounds(
        records in 0usize..7,
        bodies in 0usize..4,
        any_order: bool,
        steps in prop::collection::vec(
            (0u16..4, 0u16..3, 0usize..4, any::<bool>(), any::<bool>(), 0u64..400), 0..150),
    ) {
        let mut table = table(records, bodies, any_order);
        let mut ms = 0;
        for (from, tag, unit, forward, lose, wait) in steps {
            ms += wait;
            let key = key(LinkAddr::Short(from), tag, 32);
            let handling = if forward { FragmentHandling::Forward { next_hop: C } } else { FragmentHandling::Reassemble };
            let outcome = match unit {
                0 => table.on_first(key, first(&[0; 8]), handling, true, at(ms)),
                _ => table.on_next(key, unit * 8, &[0; 8], at(ms)),
            };
            match outcome {
                FragmentOutcome::Complete(id) if forward => table.release(id),
                FragmentOutcome::Forward { tag, .. } if lose && unit < 3 => { table.fragment_lost(tag); }
                _ => {}
            }
            if wait > 350 {
                table.expire(at(ms));
            }
            let held: Vec<u8> = table.records.iter().filter_map(Record::body).collect();
            let mut distinct = held.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), held.len(), "a body belongs to one record");
            prop_assert!(held.iter().all(|body| usize::from(*body) < bodies));
            let of = |from| move |record: &&Record| record.is_active() && record.key.from == from;
            for from in 0..4 {
                let count = table.records.iter().filter(of(LinkAddr::Short(from))).count();
                prop_assert!(count <= (records * 3 / 4).max(1));
            }
            if let Some(deadline) = table.next_deadline() {
                prop_assert!(deadline > at(ms) || wait <= 350);
            }
        }
        table.expire(at(ms) + REASSEMBLY_TIMEOUT);
        prop_assert!(table.is_empty());
        prop_assert_eq!(table.next_deadline(), None);
    }
}
