//! A MAC with a key, against neighbours with and without it.

use std::vec::Vec;

use super::bench::*;
use crate::mac::config::LIFS;
use crate::mac::security::{
    GUARD_TIME, NetworkKey, Peer, Reservation, Security, SecurityConfig, Software, index, seal,
};
use crate::mac::state::State;
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::{Auxiliary, FCS_LEN, Level, check_fcs, fcs};

pub(super) const KEY: NetworkKey = NetworkKey::new([7; 16]);
pub(super) const SEQUENCE: u32 = 5;
pub(super) const A: [u8; 8] = ME;
pub(super) const B: [u8; 8] = [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2];
pub(super) const C: [u8; 8] = [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3];

pub(super) fn settings() -> SecurityConfig {
    SecurityConfig::new(KEY, SEQUENCE)
}

/// A node with a key and so many entries, its radio acknowledging by itself.
pub(super) fn node(own: [u8; 8], settings: &SecurityConfig, entries: usize, seed: u64) -> Bench {
    let config = Config::new(PAN, own);
    let mut bench = Bench::with(config, RadioCapabilities::CC2420, 16, 8, seed);
    let table = std::vec![Peer::EMPTY; entries].leak();
    let security = std::boxed::Box::new(Security::new(settings, table));
    bench.mac.set_security(std::boxed::Box::leak(security));
    bench
}

pub(super) fn pair(seed: u64) -> (Bench, Bench) {
    (
        node(A, &settings(), 16, seed),
        node(B, &settings(), 16, seed + 1),
    )
}

/// What the layer above `bench` gets of a frame.
pub(super) fn take(bench: &mut Bench, psdu: &[u8]) -> Option<Vec<u8>> {
    bench.now += LIFS;
    assert_eq!(
        bench.hear(psdu),
        None,
        "nothing is believed before it is opened"
    );
    let (now, mut rng) = (bench.now, bench.rng.derive());
    let opened = bench.mac.open_sealed(now, &mut rng);
    opened.map(|opened| opened.frame().payload.to_vec())
}

/// Lets both send what they have, until nobody has; returns what each layer above got.
pub(super) fn settle(a: &mut Bench, b: &mut Bench) -> [Vec<Vec<u8>>; 2] {
    let mut got = [Vec::new(), Vec::new()];
    for _ in 0..8 {
        // Short of the next deadline that comes round: a challenge's, a rotation's.
        for bench in [&mut *a, &mut *b] {
            let end = bench.now + Duration::from_millis(200);
            bench.run_until(|bench| bench.now >= end);
        }
        let sent: Vec<_> = a.fired.drain(..).collect();
        got[1].extend(sent.iter().filter_map(|(_, psdu)| take(b, psdu)));
        let sent: Vec<_> = b.fired.drain(..).collect();
        got[0].extend(sent.iter().filter_map(|(_, psdu)| take(a, psdu)));
        a.now = a.now.max(b.now);
        b.now = a.now;
    }
    got
}

/// Two nodes that know each other.
pub(super) fn acquainted(seed: u64) -> (Bench, Bench) {
    let (mut a, mut b) = pair(seed);
    a.send(LinkAddr::Extended(B), 1);
    settle(&mut a, &mut b);
    assert!(knows(&a, B) && knows(&b, A));
    (a, b)
}

pub(super) fn knows(bench: &Bench, addr: [u8; 8]) -> bool {
    bench.mac.security().unwrap().knows(addr)
}

/// The next frame that `from` sends to `to`, not delivered.
pub(super) fn sent(from: &mut Bench, to: [u8; 8], token: u16) -> Vec<u8> {
    from.send(LinkAddr::Extended(to), token);
    from.fired.clear();
    let end = from.now + Duration::from_millis(200);
    from.run_until(|bench| bench.now >= end);
    from.fired.pop().expect("it was sent").1
}

pub(super) fn auxiliary(psdu: &[u8]) -> Auxiliary {
    Header::parse_secured(check_fcs(psdu).unwrap())
        .unwrap()
        .1
        .expect("it is sealed")
}

/// A frame that somebody with the key, or another one, writes by hand.
pub(super) fn sealed_by_hand(
    key: &NetworkKey,
    header: Header,
    auxiliary: Auxiliary,
    sequence: u32,
) -> Vec<u8> {
    sealed_with(key, header, (auxiliary, sequence), &[0x41, 0x42])
}

/// As [`sealed_by_hand`], with this payload.
pub(super) fn sealed_with(
    key: &NetworkKey,
    header: Header,
    (auxiliary, sequence): (Auxiliary, u32),
    payload: &[u8],
) -> Vec<u8> {
    let mut out = [0; 127];
    let header_len = header.emit_secured(&auxiliary, &mut out).unwrap();
    let LinkAddr::Extended(source) = header.src.unwrap().addr else {
        panic!("nonces need extended addresses");
    };
    let len = header_len + payload.len() + auxiliary.level.mic_len();
    let (clear, body) = out[..len].split_at_mut(header_len);
    body[..payload.len()].copy_from_slice(payload);
    seal(
        &Software::new(&key.link_key(sequence)),
        source,
        auxiliary,
        clear,
        body,
    )
    .unwrap();
    with_fcs(&out[..len])
}

pub(super) fn with_fcs(mpdu: &[u8]) -> Vec<u8> {
    let mut psdu = mpdu.to_vec();
    psdu.extend(fcs(mpdu).to_le_bytes());
    psdu
}

pub(super) fn from_b(dsn: u8) -> Header {
    Header::data(PAN, LinkAddr::Extended(A), LinkAddr::Extended(B), dsn)
}

pub(super) fn current(counter: u32) -> Auxiliary {
    Auxiliary {
        level: Level::Mic32,
        counter,
        key_index: index(SEQUENCE),
    }
}

#[test]
fn neighbours_prove_themselves_and_then_exchange_frames() {
    let (mut a, mut b) = pair(1);
    a.send(LinkAddr::Extended(B), 1);
    let got = settle(&mut a, &mut b);
    assert_eq!(
        got,
        [Vec::<Vec<u8>>::new(), Vec::new()],
        "it may be a recording"
    );
    for bench in [&a, &b] {
        assert_eq!(bench.mac.counters().dropped(FrameDrop::Unproven), 1);
    }
    assert!(knows(&a, B) && knows(&b, A));
    a.send(LinkAddr::Extended(B), 2);
    b.send(LinkAddr::Extended(A), 3);
    assert_eq!(
        settle(&mut a, &mut b),
        [std::vec![std::vec![0, 3]], std::vec![std::vec![0, 2]]]
    );
    // The layers above never hear of challenges.
    let tokens: Vec<_> = a.outcomes.iter().map(|outcome| outcome.token).collect();
    assert_eq!(tokens, [1, 2]);
    assert!(b.outcomes.iter().all(|outcome| outcome.token == 3));
}

/// The ACK to the request of a sleeping stranger tells it to listen for the challenge.
#[test]
fn a_stranger_is_challenged_and_a_neighbour_is_not() {
    let [strangers, neighbours] = [pair(6), acquainted(6)].map(|(_, b)| b);
    assert!(strangers.mac.challenges(LinkAddr::Extended(A)));
    assert!(!neighbours.mac.challenges(LinkAddr::Extended(A)));
    // Its frames cannot be opened at all.
    assert!(!strangers.mac.challenges(LinkAddr::Short(7)));
}

#[test]
fn frames_shrink_by_header_and_mic() {
    for (level, len) in [(Level::Mic32, 94), (Level::Mic64, 90), (Level::Mic128, 82)] {
        let settings = SecurityConfig {
            level,
            ..settings()
        };
        let mut a = node(A, &settings, 1, 2);
        assert_eq!(a.mac.payload_len_max(LinkAddr::Extended(B)), len);
        a.enqueue(LinkAddr::Extended(B), 1, &std::vec![9; len], Class::Own)
            .unwrap();
        a.run();
        assert_eq!(a.fired[0].1.len(), 127);
    }
}

#[test]
fn recordings_open_no_entry_and_forge_none() {
    let (mut a, mut b) = pair(3);
    a.send(LinkAddr::Extended(B), 1);
    let mut recorded = Vec::new();
    for _ in 0..6 {
        for bench in [&mut a, &mut b] {
            let end = bench.now + Duration::from_millis(200);
            bench.run_until(|bench| bench.now >= end);
        }
        let sent: Vec<_> = a.fired.drain(..).map(|(_, psdu)| psdu).collect();
        for psdu in &sent {
            take(&mut b, psdu);
        }
        recorded.extend(sent);
        for (_, psdu) in core::mem::take(&mut b.fired) {
            take(&mut a, &psdu);
        }
    }
    recorded.push(sent(&mut a, B, 2));
    assert!(recorded.len() >= 3, "a frame, an answer and another frame");
    assert!(take(&mut b, &recorded[recorded.len() - 1]).is_some());
    // To the node that has heard them, and to one that has just started.
    for psdu in recorded.iter().cycle().take(20) {
        assert_eq!(take(&mut b, psdu), None);
    }
    let refused = |bench: &Bench, reason| bench.mac.counters().dropped(reason);
    assert!(refused(&b, FrameDrop::Replayed) > 0 && refused(&b, FrameDrop::Duplicate) > 0);
    // Its random numbers are others then, or those of its life before.
    for (seed, counter) in [(77, 0), (4, 8_192)] {
        let settings = SecurityConfig {
            counter,
            ..settings()
        };
        let mut rebooted = node(B, &settings, 16, seed);
        for psdu in recorded.iter().cycle().take(20) {
            assert_eq!(take(&mut rebooted, psdu), None);
            let end = rebooted.now + Duration::from_millis(400);
            rebooted.run_until(|bench| bench.now >= end);
        }
        assert!(!knows(&rebooted, A), "seed {seed}");
        assert!(refused(&rebooted, FrameDrop::Unproven) > 0);
    }
}

#[test]
fn a_frame_that_was_changed_is_refused_and_changes_nothing() {
    let (mut a, mut b) = acquainted(4);
    let good = sent(&mut a, B, 9);
    let mpdu = &good[..good.len() - FCS_LEN];
    for at in 0..mpdu.len() {
        for bit in 0..8 {
            let mut bad = mpdu.to_vec();
            bad[at] ^= 1 << bit;
            let opened = take(&mut b, &with_fcs(&bad));
            assert_eq!(opened, None, "bit {bit} of byte {at}");
        }
    }
    assert!(b.mac.counters().dropped(FrameDrop::Forged) > 100);
    assert_eq!(
        take(&mut b, &good),
        Some(std::vec![0, 9]),
        "no forgery took its counter"
    );
}

#[test]
#[cfg(feature = "rotation")]
fn everything_else_is_refused_by_its_own_name() {
    let (mut a, mut b) = acquainted(5);
    let plain = data(LinkAddr::Extended(B), LinkAddr::Extended(A), 1, &[0x41]);
    let strict = SecurityConfig {
        level: Level::Mic64,
        ..settings()
    };
    let mut strict = node(A, &strict, 16, 6);
    let good = sent(&mut b, A, 1);
    let counter = auxiliary(&good).counter;
    let other = NetworkKey::new([8; 16]);
    let short = Header::data(PAN, LinkAddr::Extended(A), LinkAddr::Short(2), 9);
    let mut from_short = [0; 127];
    let len = short.emit_secured(&current(9), &mut from_short).unwrap() + 8;
    let key_index = |key_index| Auxiliary {
        key_index,
        ..current(counter + 9)
    };
    let by_hand = |auxiliary| sealed_by_hand(&KEY, from_b(3), auxiliary, SEQUENCE);
    for (reason, psdu) in [
        (FrameDrop::Unsecured, plain),
        (FrameDrop::LastCounter, by_hand(current(u32::MAX))),
        (
            FrameDrop::UnknownKey,
            by_hand(key_index(index(SEQUENCE - 1))),
        ),
        (FrameDrop::UnknownKey, by_hand(key_index(200))),
        (FrameDrop::Forged, by_hand(key_index(index(SEQUENCE + 1)))),
        (
            FrameDrop::Forged,
            sealed_by_hand(&other, from_b(3), current(counter + 9), SEQUENCE),
        ),
        (FrameDrop::BadSource, with_fcs(&from_short[..len])),
    ] {
        let before = a.mac.counters().dropped(reason);
        assert_eq!(take(&mut a, &psdu), None);
        assert_eq!(a.mac.counters().dropped(reason), before + 1, "{reason:?}");
    }
    assert_eq!(take(&mut strict, &good), None);
    assert_eq!(strict.mac.counters().dropped(FrameDrop::LowLevel), 1);
    assert_eq!(
        a.mac.security().unwrap().sequence(),
        SEQUENCE,
        "no forgery moves the key"
    );
    assert!(take(&mut a, &good).is_some());
}

/// Whatever is sent, one counter is of one string of bytes: retries, other frames in between, ACKs
/// of the node's own in a buffer that it shares, a reboot.
#[test]
fn no_counter_is_of_two_frames() {
    let mut seen = std::collections::BTreeMap::new();
    let mut stored = Reservation {
        sequence: 0,
        counter: 0,
    };
    for (boot, radio) in [SHARED, SEPARATE, RadioCapabilities::CC2420]
        .into_iter()
        .cycle()
        .take(9)
        .enumerate()
    {
        let config = Config::new(PAN, A);
        let mut bench = Bench::with(config, radio, 16, 8, 40 + boot as u64);
        let table = std::vec![Peer::EMPTY; 16].leak();
        let settings = settings().resume(stored);
        let security = std::boxed::Box::new(Security::new(&settings, table));
        bench.mac.set_security(std::boxed::Box::leak(security));
        bench.acked = (0..40).map(|n| n % 3 == 0).collect();
        for token in 0..12 {
            bench.send(
                LinkAddr::Extended(if token % 2 == 0 { B } else { C }),
                token,
            );
            if token % 4 == 0 {
                bench.send(LinkAddr::BROADCAST, 100 + token);
            }
            bench.run_until(|bench| bench.mac.state == State::Idle);
        }
        bench.run();
        assert!(bench.fired.len() > 12);
        for (_, psdu) in &bench.fired {
            let first = seen
                .entry(auxiliary(psdu).counter)
                .or_insert_with(|| psdu.clone());
            assert_eq!(first, psdu);
        }
        stored = *bench.reservations.last().expect("it asked at its start");
    }
}

#[test]
#[cfg(feature = "rotation")]
fn a_valid_frame_of_a_later_key_carries_its_hearer_along() {
    let (mut a, mut b) = acquainted(7);
    let old = sent(&mut b, A, 1);
    let late = sent(&mut b, A, 2);
    let (now, later) = (b.now, SEQUENCE + 2);
    b.mac.security_mut().unwrap().rotate(later, now);
    b.mac.security_mut().unwrap().rotate(SEQUENCE, now);
    assert_eq!(b.mac.security().unwrap().sequence(), later, "only forward");
    let new = sent(&mut b, A, 3);
    assert_eq!(auxiliary(&new).key_index, index(later));
    assert_eq!(
        auxiliary(&new).counter,
        auxiliary(&late).counter + 1,
        "counters go on"
    );
    assert!(take(&mut a, &old).is_some());
    assert_eq!(take(&mut a, &new), Some(std::vec![0, 3]));
    assert_eq!(a.mac.security().unwrap().sequence(), later);
    assert_eq!(take(&mut a, &late), None, "of the past");
    // What others have sent with the previous key is taken for a while.
    let from_c = |bench: &mut Bench, counter, sequence| {
        let header = Header::data(
            PAN,
            LinkAddr::Extended(A),
            LinkAddr::Extended(C),
            counter as u8,
        );
        let auxiliary = Auxiliary {
            key_index: index(sequence),
            ..current(counter)
        };
        let psdu = sealed_by_hand(&KEY, header, auxiliary, sequence);
        let unproven = bench.mac.counters().dropped(FrameDrop::Unproven);
        assert_eq!(take(bench, &psdu), None);
        bench.mac.counters().dropped(FrameDrop::Unproven) - unproven
    };
    assert_eq!(from_c(&mut a, 1, SEQUENCE), 1, "its MIC is right");
    assert_eq!(from_c(&mut a, 2, SEQUENCE + 1), 0, "never this node's key");
    a.now += GUARD_TIME;
    assert_eq!(from_c(&mut a, 3, SEQUENCE), 0, "no longer");
}

#[test]
#[cfg(not(feature = "rotation"))]
fn a_node_whose_keys_do_not_follow_one_another_knows_one_alone() {
    let (mut a, mut b) = acquainted(7);
    let now = a.now;
    a.mac.security_mut().unwrap().rotate(SEQUENCE + 1, now);
    assert_eq!(a.mac.security().unwrap().sequence(), SEQUENCE);
    for sequence in [SEQUENCE - 1, SEQUENCE + 1, SEQUENCE + 2] {
        let auxiliary = Auxiliary {
            key_index: index(sequence),
            ..current(90)
        };
        let psdu = sealed_by_hand(&KEY, from_b(9), auxiliary, sequence);
        let unknown = a.mac.counters().dropped(FrameDrop::UnknownKey);
        assert_eq!(take(&mut a, &psdu), None);
        assert_eq!(a.mac.counters().dropped(FrameDrop::UnknownKey), unknown + 1);
        let security = a.mac.security().unwrap();
        assert_eq!(security.sequence(), SEQUENCE);
        assert_eq!(security.counters().reminders, 0);
    }
    let fresh = sent(&mut b, A, 3);
    assert_eq!(take(&mut a, &fresh), Some(std::vec![0, 3]));
    // Nor does time, or the number of frames.
    let settings = SecurityConfig {
        rotates_after: Some(Duration::from_secs(60)),
        counter: 1 << 31,
        ..settings()
    };
    let mut router = node(A, &settings, 16, 8);
    router.now += Duration::from_secs(61);
    let after = sent(&mut router, B, 1);
    assert_eq!(auxiliary(&after).key_index, index(SEQUENCE));
}

/// A node that has heard nothing for longer than the guard time learns of the key by what it sends
/// in vain.
#[test]
#[cfg(feature = "rotation")]
fn a_neighbour_with_an_earlier_key_is_reminded_of_the_one_in_force() {
    let (mut a, mut b) = acquainted(21);
    let later = SEQUENCE + 3;
    a.mac.security_mut().unwrap().rotate(later, a.now);
    a.now += GUARD_TIME + Duration::from_secs(1);
    b.now = a.now;
    let stale = sent(&mut b, A, 2);
    a.fired.clear();
    let reminders = |a: &Bench| a.mac.security().unwrap().counters().reminders;
    // A stranger says the same; a frame for all is not worth an answer of each that hears it.
    for (dst, sent) in [(LinkAddr::BROADCAST, 0), (LinkAddr::Extended(A), 1)] {
        let header = Header::data(PAN, dst, LinkAddr::Extended(C), 9);
        let strange = sealed_by_hand(&KEY, header, current(7), SEQUENCE);
        for _ in 0..20 {
            assert_eq!(take(&mut a, &strange), None);
        }
        assert_eq!(reminders(&a), sent, "{dst:?}");
    }
    for _ in 0..20 {
        assert_eq!(take(&mut a, &stale), None);
    }
    assert_eq!(reminders(&a), 2, "strangers leave one to neighbours");
    assert_eq!(a.mac.counters().dropped(FrameDrop::UnknownKey), 60);
    settle(&mut a, &mut b);
    assert_eq!(b.mac.security().unwrap().sequence(), later);
    let fresh = sent(&mut b, A, 3);
    assert_eq!(take(&mut a, &fresh), Some(std::vec![0, 3]));
    assert_eq!(reminders(&a), 2);
}

#[test]
#[cfg(feature = "rotation")]
fn a_border_router_takes_the_next_key_in_time() {
    let settings = SecurityConfig {
        rotates_after: Some(Duration::from_secs(60)),
        ..settings()
    };
    let mut router = node(A, &settings, 16, 8);
    let before = sent(&mut router, B, 1);
    // Nothing is left to do but that: the clock goes on to its deadline.
    let after = sent(&mut router, B, 2);
    assert_eq!(auxiliary(&before).key_index, index(SEQUENCE));
    assert_eq!(auxiliary(&after).key_index, index(SEQUENCE + 1));
    // At half of the counters: they begin anew, once that is stored.
    let used = SecurityConfig {
        counter: 1 << 31,
        ..settings
    };
    let mut router = node(A, &used, 16, 9);
    assert_eq!(
        auxiliary(&sent(&mut router, B, 1)),
        Auxiliary {
            counter: 0,
            key_index: index(SEQUENCE + 1),
            ..current(0)
        }
    );
    let begins_anew = Reservation {
        sequence: SEQUENCE + 1,
        counter: 8_192,
    };
    assert!(router.reservations.contains(&begins_anew));
}

#[test]
fn a_node_whose_storage_fails_sends_nothing_and_says_so() {
    let mut a = node(A, &settings(), 16, 10);
    a.stores = false;
    a.send(LinkAddr::Extended(B), 1);
    let end = a.now + Duration::from_secs(5);
    a.run_until(|bench| bench.now >= end);
    assert_eq!(a.fired.len(), 0);
    assert_eq!(a.mac.counters().dropped(FrameDrop::NoCounter), 1);
    assert_eq!(a.outcomes[0].reason, Some(FrameDrop::NoCounter));
    a.stores = true;
    a.now += Duration::from_secs(10);
    assert_eq!(auxiliary(&sent(&mut a, B, 2)).counter, 0);
    // All used: nothing more, for ever.
    let used = SecurityConfig {
        counter: u32::MAX - 1,
        ..settings()
    };
    let mut last = node(A, &used, 16, 11);
    assert_eq!(auxiliary(&sent(&mut last, B, 1)).counter, u32::MAX - 1);
    last.send(LinkAddr::Extended(B), 2);
    last.fired.clear();
    last.run();
    assert_eq!(last.fired.len(), 0);
    assert_eq!(last.mac.counters().dropped(FrameDrop::NoCounter), 1);
}

#[test]
fn strangers_cost_their_share_of_decryptions_and_push_nobody_out() {
    let (mut a, mut b) = acquainted(12);
    for n in 0..500_u32 {
        let stranger = LinkAddr::Extended([9, 9, 9, 9, 0, 0, (n >> 8) as u8, n as u8]);
        let header = Header::data(PAN, LinkAddr::Extended(A), stranger, n as u8);
        let key = match n % 2 {
            0 => NetworkKey::new([8; 16]),
            _ => KEY,
        };
        assert_eq!(
            take(&mut a, &sealed_by_hand(&key, header, current(n), SEQUENCE)),
            None
        );
    }
    // Of 250 forgeries within 320 ms; frames that are sealed with the key count for nothing.
    let counters = a.mac.counters();
    assert!(counters.dropped(FrameDrop::Forged) < 120, "{counters:?}");
    assert!(counters.dropped(FrameDrop::Rationed) > 100, "{counters:?}");
    assert!(a.mac.security().unwrap().counters().challenges <= 16);
    assert!(knows(&a, B));
    assert!(take(&mut a, &sent(&mut b, A, 5)).is_some());
}

#[test]
fn a_full_table_keeps_parent_and_children() {
    let mut a = node(A, &settings(), 2, 13);
    let neighbour = |n: u8| [2, 0, 0, 0, 0, 0, 0, n];
    a.mac.keep(Some(LinkAddr::Extended(neighbour(1))));
    for n in 1..=4 {
        let mut b = node(neighbour(n), &settings(), 16, 20 + u64::from(n));
        b.now = a.now;
        b.send(LinkAddr::Extended(A), 1);
        settle(&mut b, &mut a);
        a.mac.keep_children(|_| false);
        assert!(knows(&a, neighbour(n)), "{n}: the one before had no claim");
        assert!(knows(&a, neighbour(1)), "{n}: the parent stays");
    }
    a.mac
        .keep_children(|addr| addr == LinkAddr::Extended(neighbour(4)));
    let mut late = node(neighbour(5), &settings(), 16, 30);
    late.now = a.now;
    late.send(LinkAddr::Extended(A), 1);
    settle(&mut late, &mut a);
    assert!(!knows(&a, neighbour(5)) && knows(&a, neighbour(4)));
    assert!(a.mac.security().unwrap().counters().turned_away > 0);
}

#[test]
fn a_head_fires_what_waits_until_a_forgery_mutes_its_sender() {
    let (mut a, mut b) = acquainted(14);
    let fragment = |from: &mut Bench| {
        let payload = [0b1100_0001, 1, 2, 3];
        from.fired.clear();
        from.enqueue(LinkAddr::Extended(A), 7, &payload, Class::Own)
            .unwrap();
        let end = from.now + Duration::from_millis(200);
        from.run_until(|bench| bench.now >= end);
        from.fired.pop().unwrap().1
    };
    let wait = |bench: &mut Bench, token: u16| {
        bench.now += Duration::from_millis(50);
        let frame = Frame {
            to: LinkAddr::Extended(C),
            token,
            payload: &token.to_be_bytes(),
            class: Class::Forward,
            since: bench.now,
        };
        let condition = Condition {
            from: LinkAddr::Extended(B),
            protocol: Protocol::FRAGMENTS,
        };
        let until = bench.now + Duration::from_millis(30);
        bench
            .mac
            .enqueue_conditional(&frame, condition, until)
            .unwrap();
        assert!(bench.run_until(|bench| bench.mac.loaded != NIL && bench.mac.state == State::Idle));
        bench.now += LIFS;
    };
    let head = |bench: &mut Bench, psdu: &[u8]| {
        let event = Event::FrameHead { head: &psdu[..28] };
        bench
            .mac
            .on_event(event, bench.now, &mut bench.rng.derive());
        let fired = bench.mac.state == State::Triggered;
        bench.run_until(|bench| bench.mac.queue_len() == 0);
        fired
    };
    let first = fragment(&mut b);
    wait(&mut a, 1);
    let calls = a.mac.security().unwrap().counters().cipher_calls;
    assert!(head(&mut a, &first), "its first byte is encrypted");
    let after = a.mac.security().unwrap().counters();
    assert_eq!(after.cipher_calls, calls, "computed ahead");
    assert!(take(&mut a, &first).is_some());
    // Another protocol fires nothing.
    let other = sent(&mut b, A, 9);
    wait(&mut a, 2);
    assert!(!head(&mut a, &other));
    assert!(take(&mut a, &other).is_some());
    // A forged one does, once: then its sender is not believed for a second, and for two.
    let good = fragment(&mut b);
    let mut forged = good.clone();
    let mic = forged.len() - 3;
    forged[mic] ^= 1;
    let forged = with_fcs(&forged[..forged.len() - FCS_LEN]);
    for fires_again_s in [1, 2] {
        wait(&mut a, 3);
        assert!(head(&mut a, &forged), "nobody can tell yet");
        assert_eq!(take(&mut a, &forged), None);
        wait(&mut a, 4);
        assert!(!head(&mut a, &forged), "muted");
        a.now += Duration::from_secs(fires_again_s);
    }
    wait(&mut a, 5);
    assert!(head(&mut a, &good));
    assert_eq!(take(&mut a, &good).map(|payload| payload.len()), Some(4));
}

/// A node whose parent acknowledges, but has answered no challenge since it answered one.
fn without_a_parent() -> Bench {
    let (mut a, mut b) = acquainted(15);
    let parent = LinkAddr::Extended(B);
    a.mac.keep(Some(parent));
    // It answers one challenge.
    a.now += Duration::from_secs(31);
    b.now = a.now;
    a.send(parent, 1);
    settle(&mut a, &mut b);
    assert!(a.mac.is_trusted(parent));
    // From now on somebody else acknowledges in its place.
    for round in 0..12 {
        a.now += Duration::from_secs(31);
        a.send(parent, 2 + round);
        pass(&mut a, Duration::from_secs(1));
    }
    a
}

fn pass(bench: &mut Bench, span: Duration) {
    let end = bench.now + span;
    bench.run_until(|bench| bench.now >= end);
}

#[test]
fn a_parent_that_acknowledges_but_has_no_key_is_given_up() {
    let a = without_a_parent();
    assert!(!a.mac.is_trusted(LinkAddr::Extended(B)));
    assert_eq!(a.mac.security().unwrap().counters().parents_lost, 1);
}

/// The parent may be there all the same, and send a frame under a later key, which this node has
/// missed. Found by the soak: a mote asked a border router four keys ahead of it for ever.
#[cfg(feature = "sleepy")]
#[test]
fn a_sleeper_listens_to_a_parent_whose_acks_count_for_nothing() {
    use crate::mac::{Policy, Sleep};
    use crate::time::Instant;

    let mut a = without_a_parent();
    assert_eq!(a.mac.security().unwrap().counters().parents_lost, 1);
    let rest = Policy::Fixed(Duration::from_secs(1_000));
    a.mac.set_sleep(Some(Sleep::new(rest)));
    // Requests fail, at last a minute apart; between two of them the receiver is off.
    pass(&mut a, Duration::from_secs(600));
    a.actions.clear();
    a.send(LinkAddr::Extended(B), 50);
    pass(&mut a, Duration::from_secs(1));
    let is_fire = |(_, action): &(Instant, Action)| *action == Action::Fire;
    let attempts: Vec<_> = a.actions.iter().filter(|turn| is_fire(turn)).collect();
    assert!(attempts.len() > 1, "its ACKs count for nothing");
    let fired_at = attempts.last().unwrap().0;
    let is_off = |(at, action): &&(Instant, Action)| *at > fired_at && *action == Action::Sleep;
    let off_at = a.actions.iter().find(is_off).unwrap().0;
    let heard = off_at.since(fired_at);
    assert!(heard > Duration::from_millis(200), "{heard:?}");
}

#[cfg(feature = "sleepy")]
#[test]
fn a_data_request_names_itself_in_clear_and_is_believed_with_its_mic_alone() {
    let (mut a, mut b) = acquainted(16);
    a.mac.serve(8);
    let command = |counter, key: &NetworkKey| {
        let header = Header::command(
            PAN,
            LinkAddr::Extended(A),
            LinkAddr::Extended(B),
            counter as u8,
        );
        let mut out = [0; 127];
        let header_len = header.emit_secured(&current(counter), &mut out).unwrap();
        crate::wire::ieee802154::Command::DataRequest
            .emit(&mut out[header_len..])
            .unwrap();
        let len = header_len + 1 + 4;
        let (clear, mic) = out[..len].split_at_mut(header_len + 1);
        let cipher = Software::new(&key.link_key(SEQUENCE));
        seal(&cipher, B, current(counter), clear, mic).unwrap();
        with_fcs(&out[..len])
    };
    let counter = auxiliary(&sent(&mut b, A, 1)).counter;
    let mut asked = |psdu: &[u8]| {
        take(&mut a, psdu);
        a.mac
            .take_asked()
            .map(|asked| (asked.is_request, asked.is_forgeable))
    };
    assert_eq!(
        asked(&command(counter + 1, &NetworkKey::new([8; 16]))),
        Some((true, true))
    );
    assert_eq!(asked(&command(counter + 1, &KEY)), Some((true, false)));
}
