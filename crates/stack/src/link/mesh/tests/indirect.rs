//! Children and their packets, without a radio.

use super::super::parent::CHILD_TIMEOUT;
use super::*;
use std::vec::Vec;

const NOW: Instant = Instant::from_micros(1_000_000);
const ALL_LISTEN: Option<Pending> = None;

fn indirect(children: usize, config: IndirectConfig) -> Indirect<'static> {
    let children = std::vec![Child::EMPTY; children].leak();
    let (packets, outgoing) = (std::vec![0; 1_000].leak(), std::vec![0; 1_280].leak());
    Indirect::new(config, children, packets, outgoing)
}

const fn request(by: u16) -> PollingFrame {
    PollingFrame {
        by: LinkAddr::Short(by),
        is_request: true,
        #[cfg(feature = "security")]
        is_forgeable: false,
    }
}

const fn data(by: u16) -> PollingFrame {
    PollingFrame {
        is_request: false,
        ..request(by)
    }
}

fn keep(indirect: &mut Indirect<'_>, child: u16, packet: &[u8]) -> bool {
    let key = indirect.find(&LinkAddr::Short(child)).expect("a child");
    let bytes_max = indirect.config.child_bytes_max;
    indirect.queues.push(key, packet, 0, bytes_max)
}

#[test]
fn a_request_makes_a_child_and_silence_ends_that() {
    let mut indirect = indirect(2, IndirectConfig::DEFAULT);
    assert!(!indirect.on_asked(data(7), ALL_LISTEN, |_| true, NOW));
    assert_eq!(indirect.children().count(), 0, "data makes none");
    assert!(
        !indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW),
        "nothing waits"
    );
    assert!(indirect.children().eq([LinkAddr::Short(7)]));
    assert!(keep(&mut indirect, 7, b"packet"));
    assert_eq!(indirect.next_ready(), None, "it sleeps");
    assert!(indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW));
    assert_eq!(indirect.next_ready(), Some(0));
    indirect.expire(NOW + LISTENS);
    assert_eq!(indirect.next_ready(), None, "it sleeps again");
    assert!(
        indirect.on_asked(data(7), ALL_LISTEN, |_| true, NOW),
        "data asks, too"
    );
    let end = indirect.next_deadline().expect("a deadline");
    indirect.expire(end);
    let end = indirect.next_deadline().expect("a deadline");
    assert_eq!(end, NOW + CHILD_TIMEOUT);
    indirect.expire(end);
    assert_eq!(indirect.children().count(), 0);
    assert_eq!((indirect.counters.gone, indirect.counters.dropped), (1, 1));
    assert_eq!(indirect.next_deadline(), None);
}

#[test]
fn strangers_take_no_place_of_those_that_acknowledge_nor_more_memory() {
    let mut indirect = indirect(4, IndirectConfig::DEFAULT);
    let is_trusted = |addr: LinkAddr| addr == LinkAddr::Short(1) || addr == LinkAddr::Short(2);
    for child in 1..3 {
        indirect.on_asked(request(child), ALL_LISTEN, is_trusted, NOW);
        assert!(keep(&mut indirect, child, b"packet"));
    }
    for n in 0..1_000 {
        let at = NOW + Duration::from_millis(n);
        indirect.on_asked(request(100 + n as u16), ALL_LISTEN, is_trusted, at);
        assert!(indirect.children().count() <= 4);
    }
    for child in 1..3 {
        assert!(
            indirect.on_asked(request(child), ALL_LISTEN, is_trusted, NOW),
            "{child}"
        );
    }
    // Where all acknowledge, a newcomer finds no room, and is counted.
    let before = indirect.counters.strangers;
    assert!(!indirect.on_asked(request(5_000), ALL_LISTEN, |_| true, NOW));
    assert_eq!(indirect.counters.strangers, before + 1);
    assert_eq!(indirect.find(&LinkAddr::Short(5_000)), None);
}

#[test]
fn the_memory_of_one_child_and_of_all_is_bounded() {
    let mut indirect = indirect(
        2,
        IndirectConfig {
            child_bytes_max: 300,
            ..IndirectConfig::DEFAULT
        },
    );
    for child in 1..3 {
        indirect.on_asked(request(child), ALL_LISTEN, |_| true, NOW);
        let kept = (0..10)
            .filter(|_| keep(&mut indirect, child, &[0; 93]))
            .count();
        assert_eq!(kept, 3, "{child}");
    }
}

/// A delivery upon a request that succeeds so far: a part of a packet is acknowledged, or not.
fn deliver(indirect: &mut Indirect<'_>, is_part_taken: bool, now: Instant) {
    assert!(indirect.on_asked(request(7), ALL_LISTEN, |_| true, now));
    (indirect.serving, indirect.in_mac) = (indirect.next_ready(), 2);
    indirect.has_asked_again = false;
    if is_part_taken {
        indirect.on_outcome(true, true, now);
    }
    indirect.on_outcome(false, true, now);
}

#[test]
fn a_packet_of_which_a_part_is_taken_in_vain_is_dropped_after_four_deliveries() {
    let mut indirect = indirect(1, IndirectConfig::DEFAULT);
    indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
    assert!(keep(&mut indirect, 7, b"first") && keep(&mut indirect, 7, b"second"));
    for round in 1..=DELIVERIES_MAX {
        assert_eq!(indirect.counters.dropped, 0, "{round}");
        deliver(&mut indirect, true, NOW);
        let rests = (indirect.serving, indirect.next_ready());
        assert_eq!(rests, (None, None), "{round}");
    }
    let second = indirect.queues.first(0).expect("the second");
    assert_eq!(second.packet, b"second");
    let counters = (indirect.counters.failed, indirect.counters.dropped);
    assert_eq!(counters, (4, 1));
}

/// Whoever asks in a child's name cannot have its packets thrown away, nor keep a child for ever
/// that is not there.
#[test]
fn a_packet_of_which_nothing_is_taken_waits_until_its_child_is_given_up() {
    let mut indirect = indirect(1, IndirectConfig::DEFAULT);
    indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
    assert!(keep(&mut indirect, 7, b"packet"));
    for n in 0..20 * 600 {
        deliver(&mut indirect, false, NOW + Duration::from_millis(50 * n));
        assert_eq!(indirect.queues.count(0), 1, "{n}");
    }
    deliver(&mut indirect, false, NOW + CHILD_TIMEOUT);
    assert_eq!(
        (indirect.children().count(), indirect.queues.count(0)),
        (0, 0)
    );
    assert_eq!((indirect.counters.gone, indirect.counters.dropped), (1, 1));
    // An ACK between two of them begins that time anew.
    let later = NOW + CHILD_TIMEOUT;
    let mut indirect = self::indirect(1, IndirectConfig::DEFAULT);
    indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
    assert!(keep(&mut indirect, 7, b"first") && keep(&mut indirect, 7, b"second"));
    deliver(&mut indirect, false, NOW);
    indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
    (indirect.serving, indirect.in_mac) = (indirect.next_ready(), 1);
    indirect.on_outcome(true, true, NOW);
    deliver(&mut indirect, false, later);
    assert_eq!(indirect.children().count(), 1);
}

/// The child's own request may come while a delivery is under way that somebody else has asked for.
#[test]
fn a_request_during_a_delivery_that_fails_begins_another_one() {
    let mut indirect = indirect(1, IndirectConfig::DEFAULT);
    indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
    assert!(keep(&mut indirect, 7, b"packet"));
    for asks_again in [true, false] {
        assert!(indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW));
        (indirect.serving, indirect.in_mac) = (indirect.next_ready(), 1);
        indirect.has_asked_again = false;
        if asks_again {
            assert!(indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW));
        }
        indirect.on_outcome(false, true, NOW);
        assert_eq!(indirect.next_ready().is_some(), asks_again);
    }
}

/// Begins a delivery of `packet` to child 7 with this tag, as the link does; returns how far it is.
fn begin(indirect: &mut Indirect<'_>, packet: &[u8], tag: u16, now: Instant) -> Progress {
    let link = crate::lowpan::LinkPair {
        src: LinkAddr::Short(1),
        dst: LinkAddr::Short(7),
    };
    indirect.outgoing.discard();
    let len = copy(indirect.outgoing.buffer(), packet);
    let forms = crate::lowpan::HeaderForms::default();
    let started = indirect.outgoing.start(len, forms, link, tag, 100, 0);
    assert_eq!(started, Ok(()));
    indirect.serving = Some(0);
    indirect.resume(0, now);
    assert_eq!(indirect.outgoing.tag(), indirect.progress.tag);
    indirect.progress
}

#[test]
fn a_delivery_that_broke_off_goes_on_with_the_frame_that_failed() {
    let packet = [0x60; 300];
    let other = [0x61; 300];
    let soon = NOW + Duration::from_secs(2);
    let late = NOW + Duration::from_secs(3);
    let anew = (9, 0, None);
    for (second, at, expected) in [
        (&packet, soon, (8, 2, Some(40))),
        // It is compressed otherwise now; the child has forgotten what it had.
        (&other, soon, anew),
        (&packet, late, anew),
    ] {
        let mut indirect = indirect(1, IndirectConfig::DEFAULT);
        indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
        assert!(keep(&mut indirect, 7, &packet));
        let first = begin(&mut indirect, &packet, 8, NOW);
        assert_eq!((first.tag, first.taken, first.dsn), (8, 0, None));
        indirect.on_outcome(true, true, NOW);
        indirect.on_outcome(true, true, NOW);
        indirect.progress.dsn = Some(40);
        indirect.on_outcome(false, true, NOW);
        assert_eq!(indirect.serving, None);
        let progress = begin(&mut indirect, second, 9, at);
        assert_eq!((progress.tag, progress.taken, progress.dsn), expected);
    }
}

#[test]
fn the_packet_after_one_that_was_dropped_begins_anew() {
    let mut indirect = indirect(1, IndirectConfig::DEFAULT);
    indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
    assert!(keep(&mut indirect, 7, b"twin") && keep(&mut indirect, 7, b"twin"));
    begin(&mut indirect, b"twin", 8, NOW);
    indirect.progress.dsn = Some(40);
    indirect.on_outcome(false, true, NOW);
    indirect.drop_first(0);
    let progress = begin(&mut indirect, b"twin", 9, NOW);
    assert_eq!((progress.tag, progress.dsn), (9, None));
}

#[test]
fn a_child_that_was_told_of_more_listens_on() {
    for (drain, promised, listens) in [
        (true, true, true),
        (true, false, false),
        (false, true, false),
    ] {
        let mut indirect = indirect(
            1,
            IndirectConfig {
                drain,
                ..IndirectConfig::DEFAULT
            },
        );
        indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
        assert!(keep(&mut indirect, 7, b"first") && keep(&mut indirect, 7, b"second"));
        indirect.on_asked(request(7), ALL_LISTEN, |_| true, NOW);
        (indirect.serving, indirect.in_mac) = (indirect.next_ready(), 1);
        indirect.on_outcome(true, promised, NOW);
        assert_eq!(indirect.counters.delivered, 1);
        assert_eq!(
            indirect.next_ready().is_some(),
            listens,
            "{drain} {promised}"
        );
    }
}

#[test]
fn children_have_their_turn() {
    let mut indirect = indirect(3, IndirectConfig::DEFAULT);
    for child in 1..4 {
        indirect.on_asked(request(child), ALL_LISTEN, |_| true, NOW);
        for _ in 0..3 {
            assert!(keep(&mut indirect, child, b"packet"));
        }
        assert!(indirect.on_asked(request(child), ALL_LISTEN, |_| true, NOW));
    }
    let mut turns = Vec::new();
    for _ in 0..6 {
        let key = indirect.next_ready().expect("one listens");
        (indirect.serving, indirect.last, indirect.in_mac) = (Some(key), key, 1);
        turns.push(key);
        indirect.on_outcome(true, true, NOW);
    }
    assert_eq!(turns, [1, 2, 0, 1, 2, 0]);
}

#[test]
fn a_radio_that_acknowledges_is_told_of_each_change_once() {
    let told = |radio| {
        let mut indirect = indirect(2, IndirectConfig::DEFAULT);
        let mut told = Vec::new();
        for child in 1..3 {
            indirect.on_asked(request(child), Some(radio), |_| true, NOW);
            assert!(keep(&mut indirect, child, b"packet"));
            told.extend(indirect.poll_shown(radio));
        }
        assert_eq!(indirect.poll_shown(radio), None);
        assert!(indirect.on_asked(request(1), Some(radio), |_| true, NOW));
        let says = indirect.on_asked(data(1), Some(radio), |_| true, NOW);
        assert_eq!(says, radio == Pending::PerNeighbour, "of data");
        indirect.end(0);
        indirect.end(1);
        told.extend(core::iter::from_fn(|| indirect.poll_shown(radio)));
        told
    };
    let set = |of, pending| Action::SetPending { of, pending };
    let [one, two] = [1, 2].map(|n| Some(LinkAddr::Short(n)));
    assert_eq!(
        told(Pending::PerNeighbour),
        [
            set(one, true),
            set(two, true),
            set(one, false),
            set(two, false)
        ]
    );
    assert_eq!(
        told(Pending::OneForAll),
        [set(None, true), set(None, false)]
    );
}

/// TCP is asked for no segment that the store would refuse; a child for which nothing waits gets
/// one.
#[test]
fn a_full_store_shuts_the_way_to_its_child() {
    let children = std::vec![Child::EMPTY; 2].leak();
    let packets = std::vec![0; 3_000].leak();
    let outgoing = std::vec![0; 1_280].leak();
    let config = IndirectConfig {
        child_bytes_max: 1_500,
        ..IndirectConfig::DEFAULT
    };
    let mut indirect = Indirect::new(config, children, packets, outgoing);
    let to = |child: u16| ip::Neighbour::One(LinkAddr::Short(child).iid());
    assert!(indirect.has_room(to(7)), "no child");
    for child in [7, 8] {
        indirect.on_asked(request(child), ALL_LISTEN, |_| true, NOW);
        assert!(indirect.has_room(to(child)));
    }
    assert!(keep(&mut indirect, 7, &[1; 1_000]));
    assert!(!indirect.has_room(to(7)), "its own bound");
    assert!(indirect.has_room(to(8)));
    assert!(keep(&mut indirect, 8, &[1; 1_000]));
    indirect.queues.pop(0);
    assert!(indirect.has_room(to(7)) && !indirect.has_room(to(8)));
    assert!(keep(&mut indirect, 7, &[1; 800]));
    assert!(!indirect.has_room(to(7)) && !indirect.has_room(to(8)));
    indirect.queues.pop(0);
    indirect.queues.pop(1);
    assert!(indirect.has_room(to(7)) && indirect.has_room(to(8)));
}
