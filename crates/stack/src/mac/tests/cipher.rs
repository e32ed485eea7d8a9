//! A node's security asked directly: what it computes ahead, what it counts, whom it doubts.

use super::bench::*;
use super::secured::*;
use crate::mac::security::{GUARD_TIME, Security, index};
#[cfg(feature = "join")]
use crate::mac::security::{NetworkKey, Peer, Reservation};
use crate::mac::*;
use crate::random::Rng;
use crate::time::Duration;
use crate::wire::ieee802154::{Auxiliary, FCS_LEN, Level};

fn security(bench: &mut Bench) -> &mut Security<'static> {
    bench.mac.security_mut().unwrap()
}

/// The auxiliary header of a frame of [`sent`], and its first byte as it is on the air.
fn first(psdu: &[u8]) -> (Auxiliary, u8) {
    let mpdu = &psdu[..psdu.len() - FCS_LEN];
    let (_, auxiliary, body) = Header::parse_secured(mpdu).unwrap();
    (auxiliary.unwrap(), body[0])
}

/// The first byte of what [`sent`] sends.
const IN_CLEAR: u8 = 0;

#[test]
fn a_head_is_read_where_its_frame_would_be_believed() {
    let (mut a, mut b) = acquainted(61);
    let now = a.now;
    security(&mut a).prepare(B);
    let calls = security(&mut a).counters().cipher_calls;
    let (auxiliary, byte) = first(&sent(&mut b, A, 1));
    let a = security(&mut a);
    assert_eq!(a.peek(B, &auxiliary, byte, now), Some(IN_CLEAR));
    a.prepare(B);
    assert_eq!(a.counters().cipher_calls, calls, "computed once, and ahead");
    let refused = [
        Auxiliary {
            level: Level::Mic64,
            ..auxiliary
        },
        Auxiliary {
            counter: u32::MAX,
            ..auxiliary
        },
        Auxiliary {
            key_index: index(SEQUENCE + 1),
            ..auxiliary
        },
        Auxiliary {
            key_index: index(SEQUENCE + 1),
            level: Level::Mic64,
            ..auxiliary
        },
        Auxiliary {
            counter: 0,
            ..auxiliary
        },
    ];
    for refused in &refused {
        assert_eq!(a.peek(B, refused, byte, now), None, "{refused:?}");
    }
    assert_eq!(a.peek(C, &auxiliary, byte, now), None, "not known");
    assert_eq!(a.peek_again(B, &auxiliary, byte), Some(IN_CLEAR));
    for refused in refused
        .iter()
        .filter(|it| it.level != Level::Mic32 || it.key_index != auxiliary.key_index)
    {
        assert_eq!(a.peek_again(B, refused, byte), None, "{refused:?}");
    }
}

/// What was computed for one neighbour, or under one key, is of no use for another.
#[test]
fn what_was_computed_ahead_is_of_one_neighbour_and_one_key() {
    let (mut a, mut b) = acquainted(62);
    let mut c = node(C, &settings(), 16, 63);
    c.now = a.now;
    c.send(LinkAddr::Extended(A), 1);
    settle(&mut a, &mut c);
    assert!(knows(&a, C));
    let (auxiliary, byte) = first(&sent(&mut c, A, 1));
    let now = a.now;
    security(&mut a).prepare(B);
    assert_eq!(
        security(&mut a).peek(C, &auxiliary, byte, now),
        Some(IN_CLEAR)
    );
    security(&mut a).prepare(C);
    assert_eq!(
        security(&mut a).peek(C, &auxiliary, byte, now),
        Some(IN_CLEAR)
    );
    // The frames after the next, which are not computed ahead.
    security(&mut a).prepare(B);
    for token in 0..4 {
        let (auxiliary, byte) = first(&sent(&mut b, A, token));
        assert_eq!(
            security(&mut a).peek(B, &auxiliary, byte, now),
            Some(IN_CLEAR),
            "{token}"
        );
    }
    let later = SEQUENCE + 1;
    security(&mut a).rotate(later, now);
    security(&mut b).rotate(later, now);
    let (auxiliary, byte) = first(&sent(&mut b, A, 9));
    security(&mut a).prepare(B);
    assert_eq!(
        security(&mut a).peek(B, &auxiliary, byte, now),
        Some(IN_CLEAR)
    );
}

#[test]
fn each_call_of_the_cipher_is_counted() {
    let mut a = node(A, &settings(), 16, 64);
    let before = a.mac.security().unwrap().counters().cipher_calls;
    let psdu = sent(&mut a, B, 1);
    // The first block and the header's two, of which one call encrypts a counter block too; one for
    // the payload.
    let calls = a.mac.security().unwrap().counters().cipher_calls - before;
    assert_eq!((psdu.len(), calls), (27 + 2 + 4 + FCS_LEN, 4));
    assert_eq!(a.mac.security().unwrap().counters().sealed, 1);
}

/// A command names itself in clear, and with its MIC.
#[test]
fn what_is_to_stay_in_clear_does() {
    let (mut a, mut b) = acquainted(65);
    let header = Header::command(PAN, LinkAddr::Extended(A), LinkAddr::Extended(B), 7);
    let mut out = [0; 127];
    let len = security(&mut b)
        .seal(&header, (&[4], 1), B, &mut out)
        .unwrap();
    let (_, auxiliary, body) = Header::parse_secured(&out[..len]).unwrap();
    let (auxiliary, clear_len) = (auxiliary.unwrap(), len - body.len() + 1);
    assert_eq!(body[0], 4);
    let mut changed = out;
    changed[clear_len - 1] = 5;
    for (mut frame, payload) in [(changed, Err(FrameDrop::Forged)), (out, Ok((0, true)))] {
        let (clear, body) = frame[..len].split_at_mut(clear_len);
        let now = a.now;
        let opened = security(&mut a).open(B, auxiliary, (clear, body), now);
        assert_eq!(opened, payload);
    }
}

/// What the parent itself sends ends every doubt of it; what others send ends none.
#[test]
fn a_parent_is_believed_again_by_its_own_frames_alone() {
    let (mut a, mut b) = acquainted(66);
    let mut c = node(C, &settings(), 16, 67);
    c.now = a.now;
    c.send(LinkAddr::Extended(A), 1);
    settle(&mut a, &mut c);
    let parent = LinkAddr::Extended(B);
    a.mac.keep(Some(parent));
    for round in 0..12 {
        a.now += Duration::from_secs(31);
        a.send(parent, 2 + round);
        let end = a.now + Duration::from_secs(1);
        a.run_until(|bench| bench.now >= end);
    }
    assert!(!a.mac.is_trusted(parent));
    assert_eq!(security(&mut a).counters().parents_lost, 1);
    let of_c = sent(&mut c, A, 1);
    assert!(take(&mut a, &of_c).is_some());
    assert!(security(&mut a).disbelieves(B) && !security(&mut a).disbelieves(C));
    let of_b = sent(&mut b, A, 1);
    assert!(take(&mut a, &of_b).is_some());
    assert!(!security(&mut a).disbelieves(B));
}

#[test]
fn storage_that_fails_is_counted() {
    let mut a = node(A, &settings(), 16, 68);
    sent(&mut a, B, 1);
    assert_eq!(security(&mut a).counters().storage_failures, 0);
    let mut a = node(A, &settings(), 16, 69);
    a.stores = false;
    a.send(LinkAddr::Extended(B), 1);
    let end = a.now + Duration::from_secs(1);
    a.run_until(|bench| bench.now >= end);
    let failures = security(&mut a).counters().storage_failures;
    assert!(failures > 0 && failures as usize == a.reservations.len());
}

#[test]
fn a_parent_that_only_acknowledges_is_asked_thrice() {
    let (mut a, _) = acquainted(70);
    let (begun, mut rng) = (a.now, Rng::from_seed([1, 2]));
    let a = security(&mut a);
    a.keep_parent(Some(B));
    let quiet = begun + Duration::from_secs(31);
    assert_eq!(
        a.doubt_parent(false, quiet, &mut rng),
        None,
        "it has acknowledged nothing"
    );
    a.on_acknowledged(C);
    assert_eq!(a.doubt_parent(false, quiet, &mut rng), None, "another has");
    a.on_acknowledged(B);
    a.on_acknowledged(B);
    assert_eq!(
        a.doubt_parent(false, begun + Duration::from_secs(29), &mut rng),
        None
    );
    let asked = a.counters().challenges;
    for n in 0..3 {
        let due = quiet + Duration::from_secs(2).saturating_mul(n);
        assert!(
            a.doubt_parent(false, due, &mut rng)
                .is_some_and(|(addr, _)| addr == B),
            "{n}"
        );
        let early = due + Duration::from_millis(1_999);
        assert_eq!(a.doubt_parent(false, early, &mut rng), None, "{n}");
        assert!(!a.disbelieves(B), "{n}");
    }
    assert_eq!(a.counters().challenges, asked + 3);
    for _ in 0..2 {
        assert_eq!(
            a.doubt_parent(false, quiet + Duration::from_secs(6), &mut rng),
            None
        );
        assert!(a.disbelieves(B));
    }
    assert_eq!(a.counters().parents_lost, 1);
}

/// Two that knew nothing of one another once stayed so: the parent asked while its child slept.
#[test]
fn a_parent_that_was_never_heard_is_asked_by_a_node_that_sleeps() {
    for sleeps in [false, true] {
        let (mut a, _) = acquainted(71);
        let (now, mut rng) = (a.now, Rng::from_seed([1, 2]));
        let a = security(&mut a);
        a.keep_parent(Some(C));
        assert_eq!(a.doubt_parent(sleeps, now, &mut rng), None, "no ACK yet");
        a.on_acknowledged(C);
        let asked = a.doubt_parent(sleeps, now, &mut rng);
        assert_eq!(asked.map(|(addr, _)| addr), sleeps.then_some(C));
    }
}

#[test]
#[cfg(feature = "rotation")]
fn the_previous_key_is_valid_for_the_guard_time() {
    let (mut a, _) = acquainted(71);
    let now = a.now;
    let a = security(&mut a);
    a.rotate(SEQUENCE, now);
    assert_eq!(a.counters().rotations, 0, "it has that key");
    a.rotate(SEQUENCE + 1, now);
    assert_eq!(a.counters().rotations, 1);
    let auxiliary = current(9);
    let before = now + (GUARD_TIME - Duration::from_micros(1));
    assert_eq!(a.admit(C, &auxiliary, before), Ok(()));
    let after = now + GUARD_TIME;
    assert_eq!(a.admit(C, &auxiliary, after), Err(FrameDrop::UnknownKey));
}

/// Another network key shuts out those that know the former one: soon, but not at once.
#[cfg(feature = "join")]
#[test]
fn the_previous_network_key_is_valid_for_a_minute() {
    for (late_s, is_taken) in [(59, true), (61, false)] {
        let (mut a, mut b) = acquainted(72);
        let (now, next) = (a.now, SEQUENCE + 1);
        let of_before = sent(&mut b, A, 1);
        security(&mut a).expect(NetworkKey::new([8; 16]), next);
        security(&mut a).rotate(next, now);
        a.now += Duration::from_secs(late_s);
        assert_eq!(take(&mut a, &of_before).is_some(), is_taken, "{late_s} s");
    }
}

#[test]
fn a_parent_keeps_its_entry_from_the_moment_that_it_has_one() {
    for (parent, stays) in [(Some(LinkAddr::Extended(B)), true), (None, false)] {
        let mut a = node(A, &settings(), 1, 73);
        a.mac.keep(parent);
        for (addr, seed) in [(B, 74), (C, 75)] {
            let mut other = node(addr, &settings(), 16, seed);
            other.now = a.now;
            other.send(LinkAddr::Extended(A), 1);
            settle(&mut other, &mut a);
        }
        assert_eq!([knows(&a, B), knows(&a, C)], [stays, !stays]);
    }
}

#[test]
fn news_of_neighbours_is_told_once() {
    let mut a = node(A, &settings(), 16, 76);
    assert!(!a.mac.take_news());
    for (addr, seed) in [(B, 77), (C, 78)] {
        let mut other = node(addr, &settings(), 16, seed);
        other.now = a.now;
        other.send(LinkAddr::Extended(A), 1);
        settle(&mut other, &mut a);
    }
    assert!(a.mac.take_news());
    assert!(!a.mac.take_news());
}

/// A neighbour that is known is answered and asked nothing; an answer to nothing is not answered.
#[test]
fn proofs_are_answered_as_far_as_they_ask() {
    let (mut a, _) = acquainted(79);
    let counts = |a: &mut Bench| {
        let counters = security(a).counters();
        (counters.challenges, counters.answers)
    };
    let (challenges, answers) = counts(&mut a);
    let asks = [0x3c, 1, 1, 2, 3, 4, 5, 6, 7, 8];
    let of_b = sealed_with(&KEY, from_b(90), (current(5_000), SEQUENCE), &asks);
    assert_eq!(take(&mut a, &of_b), None);
    assert_eq!(counts(&mut a), (challenges, answers + 1));
    let header = Header::data(PAN, LinkAddr::Extended(A), LinkAddr::Extended(C), 1);
    let answers_nothing = [0x3c, 2, 1, 2, 3, 4, 5, 6, 7, 8];
    let of_c = sealed_with(&KEY, header, (current(1), SEQUENCE), &answers_nothing);
    assert_eq!(take(&mut a, &of_c), None);
    assert_eq!(counts(&mut a), (challenges, answers + 1));
    assert!(!knows(&a, C));
}

#[cfg(feature = "join")]
#[test]
fn a_node_without_a_key_takes_the_first_one_and_keeps_it() {
    let table = std::vec![Peer::EMPTY; 2].leak();
    let mut security = Security::locked(&settings(), table);
    let now = Instant::from_micros(1_000_000);
    assert!(security.is_locked());
    let refused = Err(FrameDrop::UnknownKey);
    assert_eq!(security.admit(C, &current(1), now), refused);
    let stored = Reservation {
        sequence: SEQUENCE + 1,
        counter: 8_192,
    };
    security.unlock(KEY, SEQUENCE, Some(stored));
    assert!(!security.is_locked() && security.take_news());
    assert_eq!(security.sequence(), SEQUENCE + 1, "of the life before");
    let auxiliary = Auxiliary {
        key_index: index(SEQUENCE + 1),
        ..current(1)
    };
    assert_eq!(security.admit(C, &auxiliary, now), Ok(()));
    security.unlock(NetworkKey::new([8; 16]), SEQUENCE + 9, None);
    assert_eq!(security.sequence(), SEQUENCE + 1);
}
