//! Fragments in every order, and what no well-behaved sender makes of them.

use super::*;
use crate::wire::icmpv6;
use crate::wire::ipv6::TrafficClass;
use proptest::prelude::*;
use std::boxed::Box;
use std::vec::Vec;

const DST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const LINK: InterfaceId = InterfaceId(0);
const START: Instant = Instant::from_micros(5_000_000);

fn host(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, n)
}

fn table(slots: usize) -> Fragments<'static> {
    Fragments::new(Box::leak(std::vec![FragmentSlot::EMPTY; slots].into()))
}

/// The fragmentable part of an echo request.
fn part(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|n| (n * 7 + n / 256) as u8).collect();
    bytes[..8].copy_from_slice(&[128, 0, 1, 2, 3, 4, 5, 6]);
    bytes
}

/// Hands over bytes of `part` as the fragment of that range.
fn give(
    table: &mut Fragments<'_>,
    (src, identification): (Ipv6Addr, u32),
    part: &[u8],
    range: core::ops::Range<usize>,
    now: Instant,
) -> Gathered {
    give_with(table, (src, identification), part, range, Ecn::NotEct, now)
}

fn give_with(
    table: &mut Fragments<'_>,
    (src, identification): (Ipv6Addr, u32),
    part: &[u8],
    range: core::ops::Range<usize>,
    ecn: Ecn,
    now: Instant,
) -> Gathered {
    let place = FragmentHeader {
        next_header: icmpv6::NEXT_HEADER,
        offset: range.start as u16,
        more: range.end < part.len(),
        identification,
    };
    give_raw(table, src, place, ecn, &part[range], now)
}

fn give_raw(
    table: &mut Fragments<'_>,
    src: Ipv6Addr,
    place: FragmentHeader,
    ecn: Ecn,
    bytes: &[u8],
    now: Instant,
) -> Gathered {
    let header = Header {
        traffic_class: TrafficClass::new(0, ecn),
        flow_label: 0,
        payload_len: (8 + bytes.len()) as u16,
        next_header: next_header::FRAGMENT,
        hop_limit: 64,
        src,
        dst: DST,
    };
    let payload = [&place.emit(), bytes].concat();
    let fragment = Fragment::find(&header, &payload).expect("it is one");
    assert_eq!((fragment.at, fragment.bytes), (40, bytes));
    table.on_fragment(&fragment, LINK, now)
}

/// The whole packet behind its IPv6 header.
fn whole(table: &mut Fragments<'_>, gathered: Gathered) -> Vec<u8> {
    let Gathered::Whole(index) = gathered else {
        panic!("{gathered:?}");
    };
    let (header, packet) = table.packet(index).expect("it is whole");
    let (parsed, payload) = Header::parse(packet).expect("a packet");
    assert_eq!(parsed, header);
    assert_eq!(header.next_header, icmpv6::NEXT_HEADER);
    let payload = payload.to_vec();
    table.release(index);
    payload
}

#[test]
fn two_fragments_make_a_packet_in_either_order() {
    for order in [[0..1232, 1232..1408], [1232..1408, 0..1232]] {
        let mut table = table(1);
        let part = part(1_408);
        let [a, b] = order.map(|range| give(&mut table, (host(1), 7), &part, range, START));
        assert_eq!(a, Gathered::Nothing);
        assert_eq!(whole(&mut table, b), part);
        assert!(table.is_empty() && table.next_deadline().is_none());
        assert_eq!(table.counters().whole, 1);
    }
}

#[test]
fn packets_are_told_apart() {
    let mut table = table(3);
    let (one, two) = (part(200), [part(8), std::vec![9; 192]].concat());
    for (src, id, part) in [(1, 7, &one), (1, 8, &two), (2, 7, &two)] {
        give(&mut table, (host(src), id), part, 0..104, START);
    }
    for (src, id, part) in [(2, 7, &two), (1, 8, &two), (1, 7, &one)] {
        let gathered = give(&mut table, (host(src), id), part, 104..200, START);
        assert_eq!(whole(&mut table, gathered), **part);
    }
}

#[test]
fn overlaps_drop_the_packet_and_what_still_comes_of_it() {
    let part = part(400);
    // (case, what came before, what overlaps)
    for (case, before, overlap) in [
        ("over its beginning", 0..200, 96..304),
        ("within", 0..200, 48..96),
        ("around", 96..200, 48..304),
        ("the same beginning", 96..200, 96..304),
        ("the same end", 96..200, 48..200),
        ("cut otherwise, to the end", 200..400, 304..400),
    ] {
        let mut table = table(2);
        give(&mut table, (host(1), 7), &part, before, START);
        give(&mut table, (host(1), 7), &part, overlap, START);
        assert_eq!(table.counters().contradictory, 1, "{case}");
        for rest in [0..96, 96..200, 200..400] {
            let gathered = give(&mut table, (host(1), 7), &part, rest, START);
            assert_eq!(gathered, Gathered::Nothing, "{case}");
        }
        assert_eq!(table.expire(START + PATIENCE), None, "{case}: in silence");
        // Another packet of that source is another matter, and so is this one later.
        for id in [8, 7] {
            give(&mut table, (host(1), id), &part, 0..200, START + PATIENCE);
            let gathered = give(&mut table, (host(1), id), &part, 200..400, START + PATIENCE);
            assert_eq!(whole(&mut table, gathered), part, "{case}");
        }
    }
}

#[test]
fn ends_that_contradict_each_other_drop_the_packet() {
    let (short, long) = (part(200), part(400));
    // (case, of which part and what, then)
    for (case, first, then) in [
        ("two ends", (&short, 104..200), (&long, 304..400)),
        (
            "an end before what came",
            (&long, 304..352),
            (&short, 104..200),
        ),
        ("more behind the end", (&short, 104..200), (&long, 200..304)),
        (
            "more that ends at the end",
            (&short, 104..200),
            (&long, 0..200),
        ),
    ] {
        let mut table = table(1);
        give(&mut table, (host(1), 7), first.0, first.1, START);
        give(&mut table, (host(1), 7), then.0, then.1, START);
        assert_eq!(table.counters().contradictory, 1, "{case}");
    }
}

#[test]
fn copies_change_nothing_unless_they_differ() {
    let part = part(204);
    let mut table = table(1);
    for order in [[0..104, 104..204], [104..204, 0..104]] {
        let [first, last] = order;
        for _ in 0..3 {
            let gathered = give(&mut table, (host(1), 7), &part, first.clone(), START);
            assert_eq!(gathered, Gathered::Nothing);
        }
        let gathered = give(&mut table, (host(1), 7), &part, last, START);
        assert_eq!(whole(&mut table, gathered), part);
    }
    // A copy of the last one, while others are awaited.
    let part = self::part(400);
    for range in [304..400, 304..400, 0..104, 104..304] {
        let gathered = give(&mut table, (host(1), 7), &part, range.clone(), START);
        match range.start {
            104 => assert_eq!(whole(&mut table, gathered), part),
            _ => assert_eq!(gathered, Gathered::Nothing),
        }
    }
    assert_eq!(table.counters().contradictory, 0);
    let mut other = part.clone();
    other[50] ^= 1;
    give(&mut table, (host(1), 8), &part, 0..104, START);
    give(&mut table, (host(1), 8), &other, 0..104, START);
    assert_eq!(table.counters().contradictory, 1);
}

#[test]
fn a_source_is_told_of_its_first_fragment_after_a_minute() {
    let part = part(400);
    let mut table = table(2);
    give(&mut table, (host(1), 7), &part, 200..304, START);
    let second = START + Duration::from_secs(59);
    give(&mut table, (host(1), 7), &part, 0..200, second);
    give(&mut table, (host(2), 7), &part, 200..400, START);
    assert_eq!(table.next_deadline(), Some(START + PATIENCE));
    let before = START + Duration::from_micros(59_999_999);
    assert!(table.expire(before).is_none());
    let (interface, header, packet) = table.expire(START + PATIENCE).expect("one is told");
    assert_eq!((interface, header.src), (LINK, host(1)));
    let (parsed, payload) = Header::parse(packet).expect("a packet");
    assert_eq!(
        (parsed, parsed.next_header),
        (header, next_header::FRAGMENT)
    );
    let place = FragmentHeader::parse(payload.first_chunk().expect("a header"));
    let expected = FragmentHeader {
        next_header: icmpv6::NEXT_HEADER,
        offset: 0,
        more: true,
        identification: 7,
    };
    assert_eq!((place, &payload[8..]), (expected, &part[..200]));
    assert!(
        table.expire(START + PATIENCE).is_none(),
        "once, and only it"
    );
    assert!(table.is_empty());
    assert_eq!(table.counters().timed_out, 2);
}

#[test]
fn a_flood_takes_from_itself_first() {
    let part = part(400);
    let mut table = table(3);
    give(&mut table, (host(1), 1), &part, 0..200, START);
    for id in 0..100 {
        let now = START + Duration::from_millis(u64::from(id) + 1);
        give(&mut table, (host(2), id), &part, 0..200, now);
    }
    assert_eq!(table.counters().displaced, 98);
    let now = START + Duration::from_secs(1);
    let gathered = give(&mut table, (host(1), 1), &part, 200..400, now);
    assert_eq!(whole(&mut table, gathered), part);
    // Of the flood itself the newest are there.
    let gathered = give(&mut table, (host(2), 99), &part, 200..400, now);
    assert_eq!(whole(&mut table, gathered), part);
}

#[test]
fn what_no_rule_allows_is_refused_and_opens_nothing() {
    let bytes = part(64);
    let place = |offset, more| FragmentHeader {
        next_header: icmpv6::NEXT_HEADER,
        offset,
        more,
        identification: 7,
    };
    let of = |next_header| FragmentHeader {
        next_header,
        ..place(0, true)
    };
    let problem = |code, pointer| Gathered::Problem { code, pointer };
    // (case, place, bytes, answer)
    for (case, place, bytes, answer) in [
        (
            "not a multiple of eight",
            place(8, true),
            &bytes[..60],
            problem(0, 4),
        ),
        (
            "beyond 65,535 bytes",
            place(65_528, false),
            &bytes[..8],
            problem(0, 42),
        ),
        ("without bytes", place(8, true), &[], Gathered::Nothing),
        ("a first one without bytes", of(58), &[], Gathered::Nothing),
        (
            "no ICMPv6 header behind options",
            of(60),
            &[58, 0, 1, 4, 0, 0, 0, 0],
            problem(3, 0),
        ),
        (
            "no UDP header behind options",
            of(60),
            &[17, 0, 1, 4, 0, 0, 0, 0],
            problem(3, 0),
        ),
        ("half a TCP header", of(6), &bytes[..16], problem(3, 0)),
        (
            "half an extension header",
            of(60),
            &[6, 1, 0, 0, 0, 0, 0, 0],
            problem(3, 0),
        ),
    ] {
        let mut table = table(1);
        let gathered = give_raw(&mut table, host(1), place, Ecn::NotEct, bytes, START);
        assert_eq!(gathered, answer, "{case}");
        assert!(table.is_empty(), "{case}");
        assert_eq!(table.counters().malformed, 1, "{case}");
    }
}

#[test]
fn the_first_fragment_may_end_with_the_upper_layers_header() {
    for (next_header, len) in [(58, 8), (17, 8), (6, 24), (59, 0), (132, 8)] {
        let options = [next_header, 0, 1, 4, 0, 0, 0, 0];
        let bytes = [&options[..], &part(64)[..len]].concat();
        let place = FragmentHeader {
            next_header: 60,
            offset: 0,
            more: true,
            identification: 7,
        };
        let mut table = table(1);
        let gathered = give_raw(&mut table, host(1), place, Ecn::NotEct, &bytes, START);
        assert_eq!(gathered, Gathered::Nothing, "{next_header}");
        assert_eq!(
            (table.len(), table.counters().malformed),
            (1, 0),
            "{next_header}"
        );
    }
}

#[test]
fn what_is_too_long_is_counted_and_holds_nothing() {
    let part = part(PART_LEN_MAX + 4);
    let mut table = table(1);
    give(&mut table, (host(1), 7), &part, 1_232..part.len(), START);
    assert_eq!((table.counters().too_long, table.len()), (1, 0));
    let longest = &part[..PART_LEN_MAX];
    give(
        &mut table,
        (host(1), 8),
        longest,
        1_232..PART_LEN_MAX,
        START,
    );
    let gathered = give(&mut table, (host(1), 8), longest, 0..1_232, START);
    assert_eq!(whole(&mut table, gathered), longest);
}

#[test]
fn congestion_marks_are_kept_and_contradictions_are_not() {
    let part = part(200);
    // (of the first and the second fragment, of the whole)
    for (first, second, whole) in [
        (Ecn::NotEct, Ecn::NotEct, Some(Ecn::NotEct)),
        (Ecn::Ect0, Ecn::Ect0, Some(Ecn::Ect0)),
        (Ecn::Ect0, Ecn::Ce, Some(Ecn::Ce)),
        (Ecn::Ce, Ecn::Ect1, Some(Ecn::Ce)),
        (Ecn::NotEct, Ecn::Ce, None),
        (Ecn::Ect0, Ecn::NotEct, None),
    ] {
        let mut table = table(1);
        give_with(&mut table, (host(1), 7), &part, 0..104, first, START);
        let gathered = give_with(&mut table, (host(1), 7), &part, 104..200, second, START);
        let ecn = match gathered {
            Gathered::Whole(index) => {
                let (header, _) = table.packet(index).expect("it is whole");
                Some(header.traffic_class.ecn())
            }
            _ => None,
        };
        assert_eq!(ecn, whole, "{first:?} {second:?}");
    }
}

proptest! {
    #[test]
    fn any_cut_in_any_order_with_copies_makes_the_packet(
        len in 16usize..=PART_LEN_MAX,
        cuts in prop::collection::btree_set(1usize..180, 0..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let part = part(len);
        let cuts = cuts.into_iter().map(|cut| cut * 8).filter(|cut| *cut < len);
        let ends: Vec<usize> = cuts.chain([len]).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let ranges: Vec<_> = starts.zip(&ends).map(|(start, end)| start..*end).collect();
        prop_assume!(ranges.len() > 1);
        let mut table = table(1);
        let shuffled = order.iter().map(|index| index.get(&ranges).clone());
        let mut came = None;
        for range in shuffled.chain(ranges.clone()) {
            match give(&mut table, (host(1), 7), &part, range, START) {
                Gathered::Nothing => {}
                gathered => {
                    came = Some(whole(&mut table, gathered));
                    break;
                }
            }
        }
        prop_assert_eq!(came, Some(part));
    }
}
