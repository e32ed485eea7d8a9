//! What waits for whom once there is no room for all.

use super::super::copies::tests::{Made, packet};
use super::super::parent::{Child, IndirectConfig};
use super::*;
use crate::mac::{Class, PollingFrame};
use crate::tcphc::Origin;
use crate::time::Duration;
use crate::wire::LinkAddr;
use crate::wire::tcp::Flags;
use proptest::prelude::*;
use std::vec::Vec;

const NOW: Instant = Instant::from_micros(1_000_000);

fn indirect(children: u16, memory: usize, bytes_max: usize) -> Indirect<'static> {
    let config = IndirectConfig {
        child_bytes_max: bytes_max,
        ..IndirectConfig::DEFAULT
    };
    let places = std::vec![Child::EMPTY; children.into()].leak();
    let (packets, outgoing) = (std::vec![0; memory].leak(), std::vec![0; 1_280].leak());
    let mut indirect = Indirect::new(config, places, packets, outgoing);
    for child in 0..children {
        ask(&mut indirect, child as u8, NOW);
    }
    indirect
}

/// The child asks, and is that heard.
fn ask(indirect: &mut Indirect<'_>, child: u8, now: Instant) {
    let asked = PollingFrame {
        by: LinkAddr::Short(child.into()),
        is_request: true,
        #[cfg(feature = "security")]
        is_forgeable: false,
    };
    indirect.on_asked(asked, None, |_| true, now);
}

fn meta() -> PacketMeta {
    PacketMeta::own(Class::Own)
}

fn keep(indirect: &mut Indirect<'_>, child: u8, packet: &[u8], now: Instant) -> bool {
    indirect.keep(child, packet, meta(), now)
}

/// The first byte of each packet that waits for a child.
fn waiting(indirect: &Indirect<'_>, child: u8) -> Vec<u8> {
    let packets = indirect.queues.packets(child);
    packets.map(|kept| kept.packet[0]).collect()
}

/// What came last is there, and the sum of what went and stays is what was kept.
fn check(indirect: &Indirect<'_>) {
    let counters = &indirect.counters;
    let waits = indirect.waiting() as u32;
    assert_eq!(counters.kept, counters.delivered + counters.dropped + waits);
}

#[test]
fn one_that_does_not_ask_leaves_the_others_their_share() {
    for children in [2, 3, 6, 16] {
        let mut indirect = indirect(children, 6_144, usize::MAX);
        // Child 0 gets far more than there is room for, before the others get anything and after.
        for round in 0..200 {
            assert!(keep(&mut indirect, 0, &[round; 600], NOW), "{round}");
            if round < 100 {
                continue;
            }
            for child in 1..children as u8 {
                assert!(keep(&mut indirect, child, &[round; 100], NOW));
                assert_eq!(waiting(&indirect, child), [round], "{children}");
                indirect.queues.pop(child);
                indirect.counters.delivered += 1;
            }
            check(&indirect);
        }
        // Its newest packets are those that wait.
        assert_eq!(waiting(&indirect, 0).last(), Some(&199));
    }
}

#[test]
fn the_oldest_of_the_fullest_goes_first() {
    let mut indirect = indirect(3, 1_000, usize::MAX);
    let packet = |n| [n; 93];
    for n in 0..6 {
        assert!(keep(&mut indirect, 0, &packet(n), NOW));
    }
    for n in 10..14 {
        assert!(keep(&mut indirect, 1, &packet(n), NOW));
    }
    assert_eq!(indirect.queues.room(), 0);
    assert!(keep(&mut indirect, 2, &packet(20), NOW));
    assert_eq!(waiting(&indirect, 0), [1, 2, 3, 4, 5]);
    // Now child 1 has less than child 0, but with one more as much.
    assert!(keep(&mut indirect, 1, &packet(14), NOW));
    assert_eq!(waiting(&indirect, 1), [11, 12, 13, 14]);
    // A packet that is being sent stays, and the next one goes.
    indirect.serving = Some(0);
    assert!(keep(&mut indirect, 2, &packet(21), NOW));
    assert_eq!(waiting(&indirect, 0), [1, 3, 4, 5]);
    check(&indirect);
}

#[test]
fn a_child_has_no_more_than_it_may_and_keeps_what_is_newest() {
    let mut indirect = indirect(2, 3_000, 300);
    for n in 0..10 {
        assert!(keep(&mut indirect, 0, &[n; 93], NOW));
        assert!(waiting(&indirect, 0).len() <= 3);
    }
    assert_eq!(waiting(&indirect, 0), [7, 8, 9]);
    // What never fits costs nobody a packet.
    assert!(!keep(&mut indirect, 0, &[9; 294], NOW));
    assert_eq!(waiting(&indirect, 0), [7, 8, 9]);
    assert_eq!(indirect.counters.full, 1);
    // One that is being sent stays, so the second one and the third go.
    indirect.serving = Some(0);
    assert!(keep(&mut indirect, 0, &[10; 193], NOW));
    assert_eq!(waiting(&indirect, 0), [7, 10]);
    check(&indirect);
}

#[test]
fn each_child_has_room_for_one_packet_however_long() {
    let mut indirect = indirect(5, 6_144, usize::MAX);
    for n in 0..40 {
        assert!(keep(&mut indirect, n % 4, &[n; 300], NOW));
    }
    assert!(keep(&mut indirect, 4, &[77; 1_280], NOW));
    assert_eq!(waiting(&indirect, 4), [77]);
    check(&indirect);
}

/// Children 1 to 9 are off and much is sent to them: child 0, which asks each two seconds, has
/// nearly all of the memory; while they are there it has a tenth.
#[test]
fn children_that_are_overdue_leave_the_others_nearly_all() {
    let mut indirect = indirect(10, 6_144, usize::MAX);
    let at = |seconds| NOW + Duration::from_secs(seconds);
    let fill = |indirect: &mut Indirect<'_>, now| {
        for n in 0..30 {
            for child in 0..10 {
                keep(indirect, child, &[n; 93], now);
            }
        }
        check(indirect);
        indirect.queues.bytes_for(0)
    };
    for seconds in (2..=60).step_by(2) {
        for child in 0..10 {
            ask(&mut indirect, child, at(seconds));
        }
    }
    let share = fill(&mut indirect, at(61));
    assert!((500..800).contains(&share), "{share}");
    for seconds in (62..=90).step_by(2) {
        ask(&mut indirect, 0, at(seconds));
    }
    // It keeps all that it gets.
    assert_eq!(fill(&mut indirect, at(90)), share + 3_000);
    // One that asks again has its share at once.
    ask(&mut indirect, 9, at(90));
    for n in 0..9 {
        assert!(keep(&mut indirect, 9, &[n; 93], at(90)));
    }
    assert!(waiting(&indirect, 9).ends_with(&[0, 1, 2, 3, 4, 5, 6, 7, 8]));
}

#[test]
fn a_child_is_overdue_when_it_is_silent_for_longer_than_it_ever_is() {
    let mut indirect = indirect(1, 1_000, usize::MAX);
    let at = |seconds| NOW + Duration::from_secs(seconds);
    let is_overdue = |indirect: &Indirect<'_>, seconds| indirect.is_overdue(0, at(seconds));
    // One that has asked once may rest as long as any: twice 120 s and 5 s.
    assert!(
        !is_overdue(&indirect, 245) && is_overdue(&indirect, 246),
        "a new one"
    );
    ask(&mut indirect, 0, at(60));
    assert!(!is_overdue(&indirect, 180));
    assert!(is_overdue(&indirect, 186));
    // Ten minutes in which it asks often do not make it forgotten that it rests for one.
    for tenth in 600..6_600 {
        ask(&mut indirect, 0, NOW + Duration::from_millis(tenth * 100));
    }
    assert!(!is_overdue(&indirect, 660 + 60));
    // Hours do.
    for second in 660..20_000 {
        ask(&mut indirect, 0, at(second));
    }
    assert!(is_overdue(&indirect, 20_000 + 12));
}

#[test]
fn children_of_a_parent_that_begins_anew_keep_their_shares_until_they_ask_again() {
    // All have asked once, in the last two minutes; child 0 rests for longer than the others.
    let mut indirect = indirect(4, 4_000, usize::MAX);
    let at = |seconds| NOW + Duration::from_secs(seconds);
    for second in (2..=60).step_by(2) {
        for child in 1..4 {
            ask(&mut indirect, child, at(second));
        }
    }
    for n in 0..40 {
        for child in 0..4 {
            keep(&mut indirect, child, &[n; 93], at(60));
        }
    }
    let bytes = [0, 1].map(|child| indirect.queues.bytes_for(child));
    assert!(bytes[0] >= bytes[1] - 100, "{bytes:?}");
    // What is assumed of one that asks fast is forgotten within a few requests.
    for tenth in 600..610 {
        ask(&mut indirect, 0, NOW + Duration::from_millis(tenth * 100));
    }
    assert!(!indirect.is_overdue(0, at(65)));
    assert!(
        indirect.is_overdue(0, at(190)),
        "it was silent for a minute"
    );
}

#[test]
fn room_is_promised_to_tcp_where_nothing_of_its_own_goes() {
    let mut indirect = indirect(3, 4_000, usize::MAX);
    let to = |child: u16| ip::Neighbour::One(LinkAddr::Short(child).iid());
    for n in 0..20 {
        assert!(keep(&mut indirect, 0, &[n; 500], NOW));
    }
    assert!(!indirect.has_room(to(0)), "its own would go");
    assert!(indirect.has_room(to(1)), "another one's");
    assert!(keep(&mut indirect, 1, &[30; 1_280], NOW));
    assert!(
        !indirect.has_room(to(1)),
        "with as much again it is the fullest"
    );
    assert!(indirect.has_room(to(2)));
    assert!(indirect.has_room(to(99)), "no child");
}

/// A SYN of the flow from `port`, with this sequence number and timestamp.
fn syn(port: u16, seq: u32, stamp: u32) -> Vec<u8> {
    packet(&Made {
        port,
        seq,
        stamp: Some(stamp),
        ..Made::SYN
    })
}

#[test]
fn the_newest_copy_waits_in_the_place_of_the_first() {
    let mut indirect = indirect(2, 6_144, usize::MAX);
    // Three connections, whose SYNs come three times before the child asks.
    for stamp in [1, 2, 3] {
        for port in [1_000, 1_001, 1_002] {
            assert!(keep(&mut indirect, 0, &syn(port, 7, stamp), NOW));
        }
        assert_eq!(indirect.queues.count(0), 3, "{stamp}");
    }
    let newest = [1_000, 1_001, 1_002].map(|port| syn(port, 7, 3));
    let packets = indirect.queues.packets(0).map(|kept| kept.packet.to_vec());
    assert!(packets.eq(newest));
    assert_eq!((indirect.counters.kept, indirect.counters.merged), (3, 6));
    // For another child it is no copy.
    assert!(keep(&mut indirect, 1, &syn(1_000, 7, 4), NOW));
    assert_eq!((indirect.queues.count(0), indirect.queues.count(1)), (3, 1));
    // What is being sent stays as it is.
    indirect.serving = Some(0);
    assert!(keep(&mut indirect, 0, &syn(1_000, 7, 5), NOW));
    assert_eq!(indirect.queues.count(0), 4);
    check(&indirect);
}

/// Segments that wait behind the older copy have older timestamps than a newer copy, and the child
/// would refuse them (PAWS): with polls every 30 s, each second segment was lost so.
#[test]
fn an_older_copy_stays_where_its_connection_goes_on_behind_it() {
    let data = |seq, stamp| {
        packet(&Made {
            seq,
            stamp: Some(stamp),
            flags: Flags::ACK,
            payload: b"some bytes",
            ..Made::SYN
        })
    };
    let mut indirect = indirect(1, 6_144, usize::MAX);
    for (seq, stamp) in [(7, 1), (17, 1), (7, 2), (17, 3)] {
        assert!(keep(&mut indirect, 0, &data(seq, stamp), NOW));
    }
    // Of the last one a newer copy is kept: nothing is behind it.
    let packets = indirect.queues.packets(0).map(|kept| kept.packet.to_vec());
    assert!(packets.eq([data(7, 1), data(17, 3)]));
    assert_eq!((indirect.counters.kept, indirect.counters.merged), (2, 2));
    check(&indirect);
}

#[test]
fn a_copy_that_is_longer_and_has_no_room_goes_behind_the_others() {
    let (short, long) = (syn(1_000, 7, 1), syn(1_000, 7, 2));
    let plain = packet(&Made {
        port: 1_000,
        seq: 7,
        ..Made::SYN
    });
    assert!(plain.len() < long.len() && short.len() == long.len());
    let memory = 2 * (plain.len() + OVERHEAD) + 4;
    let mut indirect = indirect(1, memory, usize::MAX);
    assert!(keep(&mut indirect, 0, &plain, NOW));
    assert!(keep(&mut indirect, 0, &std::vec![9; plain.len()], NOW));
    assert!(keep(&mut indirect, 0, &long, NOW));
    let packets: Vec<_> = indirect.queues.packets(0).map(|kept| kept.packet).collect();
    assert_eq!(packets, [&long[..]]);
    check(&indirect);
}

#[test]
fn headers_that_others_follow_are_not_exchanged() {
    let compressed = PacketMeta::new(Class::Own, TcpEgress::As(TcpForm::Compressed), NOW);
    let full = |cid| PacketMeta::new(Class::Own, TcpEgress::As(TcpForm::Full { cid }), NOW);
    let begins = PacketMeta::new(Class::Own, TcpEgress::Begins(Origin::Outside), NOW);
    for (first, between, second, is_merged) in [
        (full(1), None, full(1), true),
        (full(1), Some(full(1)), full(1), true),
        (full(1), Some(compressed), full(1), false),
        (full(1), None, full(2), false),
        (full(1), None, begins, false),
        (compressed, None, compressed, false),
        (begins, None, begins, true),
    ] {
        let mut indirect = indirect(1, 6_144, usize::MAX);
        assert!(indirect.keep(0, &syn(1_000, 7, 1), first, NOW));
        if let Some(between) = between {
            assert!(indirect.keep(0, &[1; 50], between, NOW));
        }
        assert!(indirect.keep(0, &syn(1_000, 7, 2), second, NOW));
        let merged = indirect.counters.merged;
        assert_eq!(merged == 1, is_merged, "{first:?}, {between:?}, {second:?}");
    }
}

proptest! {
    /// Whatever is sent to whom, memory is bounded, no packet is lost to the count, a child that
    /// asked has room for its newest packet, and nothing under way goes.
    #[test]
    fn no_child_is_shut_out(
        memory in 1_400usize..7_000,
        bytes_max in prop_oneof![Just(usize::MAX), 1_300usize..3_000],
        steps in prop::collection::vec((0u8..6, 1usize..1_280, any::<u8>()), 1..200),
    ) {
        let mut indirect = indirect(6, memory, bytes_max);
        for (n, (child, len, what)) in steps.into_iter().enumerate() {
            let now = NOW + Duration::from_millis(100 * n as u64);
            ask(&mut indirect, child, now);
            let first = indirect.serving.and_then(|key| indirect.queues.first(key));
            let first = first.map(|kept| kept.packet.to_vec());
            let kept = keep(&mut indirect, child, &std::vec![what; len], now);
            // Only what is under way may stand in its way.
            prop_assert!(kept || indirect.serving.is_some());
            let own = indirect.queues.bytes_for(child);
            prop_assert!(own <= bytes_max && indirect.queues.room() <= memory);
            if kept {
                prop_assert_eq!(waiting(&indirect, child).pop(), Some(what));
            }
            let after = indirect.serving.and_then(|key| indirect.queues.first(key));
            prop_assert_eq!(first, after.map(|kept| kept.packet.to_vec()));
            indirect.serving = match what % 4 {
                0 if indirect.queues.count(child) > 0 => Some(child),
                1 => indirect.serving,
                _ => None,
            };
            check(&indirect);
        }
    }
}
