//! A MAC with a key, and strangers without it: what they cost, and that they keep nobody out.

use std::vec::Vec;

use super::bench::*;
use super::secured::*;
use crate::mac::config::DUPLICATE_LIFETIME;
use crate::mac::security::{GUARD_TIME, NetworkKey, index};
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::{Auxiliary, FCS_LEN};

/// A key that is not the network's.
const ANOTHER: NetworkKey = NetworkKey::new([8; 16]);

/// A frame without the key, for `A`, from the `n`-th of many that do not exist.
fn forged(n: u32) -> Vec<u8> {
    let header = Header::data(PAN, LinkAddr::Extended(A), stranger(n), n as u8);
    sealed_by_hand(&ANOTHER, header, current(1_000 + n), SEQUENCE)
}

/// A frame that has the key, for `A`, from a node that `A` does not know.
fn authentic(n: u32) -> Vec<u8> {
    let header = Header::data(PAN, LinkAddr::Extended(A), stranger(n), n as u8);
    sealed_by_hand(&KEY, header, current(1_000 + n), SEQUENCE)
}

fn stranger(n: u32) -> LinkAddr {
    let [a, b, c, d] = n.to_be_bytes();
    LinkAddr::Extended([9, 9, 9, 9, a, b, c, d])
}

/// What the layer above `bench` gets of a frame that comes at this very moment.
fn take_now(bench: &mut Bench, psdu: &[u8]) -> Option<Vec<u8>> {
    bench.hear(psdu);
    let (now, mut rng) = (bench.now, bench.rng.derive());
    let opened = bench.mac.open_sealed(now, &mut rng);
    opened.map(|opened| opened.frame().payload.to_vec())
}

/// Frames that were refused for this reason.
fn refused(bench: &Bench, reason: FrameDrop) -> u32 {
    bench.mac.counters().dropped(reason)
}

/// All that `bench` sends within a while, to whomever.
fn all_sent(bench: &mut Bench) -> Vec<Vec<u8>> {
    let end = bench.now + Duration::from_millis(200);
    bench.run_until(|bench| bench.now >= end);
    bench.fired.drain(..).map(|(_, psdu)| psdu).collect()
}

/// The one frame that `bench` sends within a while.
fn one_sent(bench: &mut Bench) -> Vec<u8> {
    let mut sent = all_sent(bench);
    assert_eq!(sent.len(), 1);
    sent.remove(0)
}

fn destination(psdu: &[u8]) -> LinkAddr {
    let header = header_of(&psdu[..psdu.len() - FCS_LEN]);
    header.dst.expect("it is for somebody").addr
}

/// Two nodes that do not know each other, and B's answer to A's challenge, on its way.
fn answering(seed: u64) -> (Bench, Bench, Vec<u8>) {
    let (mut a, mut b) = pair(seed);
    let first = sent(&mut b, A, 1);
    assert_eq!(take(&mut a, &first), None);
    let challenge = one_sent(&mut a);
    b.now = a.now;
    assert_eq!(take(&mut b, &challenge), None);
    let answer = one_sent(&mut b);
    a.now = b.now;
    (a, b, answer)
}

#[test]
fn the_answer_to_a_challenge_stands_in_no_queue_of_strangers() {
    let (mut a, _, answer) = answering(31);
    for n in 0..100 {
        take_now(&mut a, &forged(n));
    }
    assert!(refused(&a, FrameDrop::Rationed) > 50);
    let rationed = refused(&a, FrameDrop::Rationed);
    take_now(&mut a, &answer);
    assert_eq!(refused(&a, FrameDrop::Rationed), rationed);
    assert!(knows(&a, B));
}

#[test]
fn who_answers_is_answered_whatever_others_have_asked() {
    let (mut a, mut b, answer) = answering(32);
    // Recordings of nodes that have gone since.
    let ask = [0x3c, 1, 1, 2, 3, 4, 5, 6, 7, 8];
    for n in 0..40 {
        let header = Header::data(PAN, LinkAddr::Extended(A), stranger(n), n as u8);
        take_now(
            &mut a,
            &sealed_with(&KEY, header, (current(9), SEQUENCE), &ask),
        );
    }
    take_now(&mut a, &answer);
    let to_b = |psdu: &Vec<u8>| destination(psdu) == LinkAddr::Extended(B);
    a.absent = |addr| addr != LinkAddr::Extended(B);
    let mut replies = Vec::new();
    for _ in 0..50 {
        replies.extend(all_sent(&mut a).into_iter().filter(to_b));
    }
    b.now = a.now;
    for reply in &replies {
        take(&mut b, reply);
    }
    assert!(knows(&a, B) && knows(&b, A), "{} replies", replies.len());
}

/// Two hundred forgeries a second are the most that leave air for a mesh: whoever has the key is
/// heard beside them. Whatever comes faster costs no more than its share.
#[test]
fn strangers_take_their_share_of_decryptions_and_no_more() {
    let (mut a, _) = pair(33);
    for n in 0..600 {
        a.now += Duration::from_millis(5);
        take_now(&mut a, &forged(n));
        if n % 20 == 0 {
            take_now(&mut a, &authentic(10_000 + n));
        }
    }
    assert_eq!(refused(&a, FrameDrop::Unproven), 30, "each was opened");
    let forgeries = refused(&a, FrameDrop::Forged);
    for n in 600..4_600 {
        a.now += Duration::from_micros(500);
        take_now(&mut a, &forged(n));
    }
    let opened = refused(&a, FrameDrop::Forged) - forgeries;
    assert!((500..=532).contains(&opened), "{opened} in two seconds");
    assert_eq!(refused(&a, FrameDrop::Rationed), 4_000 - opened);
}

/// The share is for forgeries; it is neither used by others nor does it grow by them.
#[test]
fn frames_with_the_key_leave_the_share_of_strangers_as_it_is() {
    let (mut a, _) = pair(34);
    for n in 0..200 {
        take_now(&mut a, &authentic(n));
    }
    assert_eq!(refused(&a, FrameDrop::Unproven), 200);
    for n in 1_000..1_200 {
        take_now(&mut a, &forged(n));
    }
    assert_eq!(refused(&a, FrameDrop::Forged), 32);
}

fn named(counter: u32, sequence: u32) -> Auxiliary {
    Auxiliary {
        key_index: index(sequence),
        ..current(counter)
    }
}

#[test]
#[cfg(feature = "rotation")]
fn forged_later_keys_cost_their_share_in_the_name_of_a_neighbour_too() {
    let (mut a, mut b) = acquainted(35);
    for n in 0..100 {
        let auxiliary = named(1_000 + n, SEQUENCE + 2 + n % 60);
        take_now(
            &mut a,
            &sealed_by_hand(&ANOTHER, from_b(n as u8), auxiliary, SEQUENCE),
        );
    }
    assert_eq!(refused(&a, FrameDrop::Forged), 16);
    assert_eq!(refused(&a, FrameDrop::Rationed), 84);
    // The key in force costs a neighbour nothing.
    let good = sent(&mut b, A, 1);
    assert_eq!(take_now(&mut a, &good), Some(std::vec![0, 1]));
    // A mote that has missed several comes along where nobody forges.
    a.now += Duration::from_secs(2);
    let later = SEQUENCE + 5;
    b.mac.security_mut().unwrap().rotate(later, b.now);
    let good = sent(&mut b, A, 2);
    assert_eq!(take_now(&mut a, &good), Some(std::vec![0, 2]));
    assert_eq!(a.mac.security().unwrap().sequence(), later);
}

#[test]
#[cfg(feature = "rotation")]
fn no_forgery_keeps_a_neighbour_from_its_next_key() {
    let (mut a, mut b) = acquainted(36);
    for next in [SEQUENCE + 1, SEQUENCE + 2] {
        for n in 0..100 {
            let auxiliary = named(1_000 + n, next + n % 2);
            take_now(
                &mut a,
                &sealed_by_hand(&ANOTHER, from_b(n as u8), auxiliary, next),
            );
        }
        b.mac.security_mut().unwrap().rotate(next, b.now);
        let token = next as u16;
        let good = sent(&mut b, A, token);
        assert_eq!(take_now(&mut a, &good), Some(token.to_be_bytes().to_vec()));
        assert_eq!(a.mac.security().unwrap().sequence(), next);
    }
}

/// A link key that was kept because a frame named it is not the one of another network key.
#[cfg(feature = "join")]
#[test]
fn a_network_key_to_come_takes_the_place_of_what_was_kept() {
    let (mut a, _) = acquainted(37);
    let next = SEQUENCE + 1;
    let by = |key: &NetworkKey, counter| sealed_by_hand(key, from_b(1), named(counter, next), next);
    take_now(&mut a, &by(&NetworkKey::new([9; 16]), 1_000));
    assert_eq!(refused(&a, FrameDrop::Forged), 1);
    a.mac.security_mut().unwrap().expect(ANOTHER, next);
    assert!(take_now(&mut a, &by(&ANOTHER, 1_001)).is_some());
    assert_eq!(a.mac.security().unwrap().sequence(), next);
}

/// Lets `from` send for a while, and `to`, which has this address, hear what is for it.
fn exchange(from: &mut Bench, to: &mut Bench, addr: [u8; 8]) {
    let end = from.now + Duration::from_millis(10);
    from.run_until(|bench| bench.now >= end);
    to.now = to.now.max(from.now);
    for (_, psdu) in core::mem::take(&mut from.fired) {
        if destination(&psdu).is(&LinkAddr::Extended(addr)) {
            take_now(to, &psdu);
        }
    }
}

/// Frames for all, recorded anywhere in the mesh and played back beside a node that has just
/// started.
#[test]
fn recordings_of_nodes_that_are_not_there_keep_nobody_out() {
    for seed in 40..50 {
        let (mut a, mut b) = pair(seed);
        a.absent = |addr| addr != LinkAddr::Extended(B);
        let begun = a.now;
        let mut token = 0;
        for n in 0_u32.. {
            assert!(n < 300, "seed {seed}: it stays out");
            a.now = a
                .now
                .max(begun + Duration::from_millis(20).saturating_mul(n.into()));
            let far = stranger(n % 20);
            let header = Header::data(PAN, LinkAddr::BROADCAST, far, n as u8);
            take_now(&mut a, &sealed_by_hand(&KEY, header, current(n), SEQUENCE));
            b.now = a.now;
            if n % 50 == 49 {
                token += 1;
                b.send(LinkAddr::Extended(A), token);
            }
            exchange(&mut a, &mut b, B);
            exchange(&mut b, &mut a, A);
            if knows(&a, B) && knows(&b, A) {
                break;
            }
        }
    }
}

#[test]
fn the_last_frame_of_a_neighbour_is_believed_once_however_late_it_comes_again() {
    let (mut a, mut b) = acquainted(51);
    let good = sent(&mut b, A, 1);
    assert!(take(&mut a, &good).is_some());
    let unopened = a.mac.security().unwrap().counters().opened;
    for after in [Duration::ZERO, DUPLICATE_LIFETIME.saturating_mul(2)] {
        a.now += after;
        assert_eq!(take(&mut a, &good), None, "{after:?}");
    }
    assert_eq!(refused(&a, FrameDrop::Duplicate), 2);
    let opened = a.mac.security().unwrap().counters().opened;
    assert_eq!(opened, unopened, "the counter alone says so");
}

#[test]
fn a_challenge_is_answered_in_time_or_not_at_all() {
    for (late_ms, is_taken) in [(4_000, true), (5_000, false), (60_000, false)] {
        let (mut a, _, answer) = answering(52);
        a.now += Duration::from_millis(late_ms);
        take_now(&mut a, &answer);
        assert_eq!(knows(&a, B), is_taken, "{late_ms} ms");
    }
}

#[test]
#[cfg(feature = "rotation")]
fn only_an_earlier_key_is_worth_a_reminder() {
    let (mut a, _) = acquainted(53);
    let now = a.now;
    let security = a.mac.security_mut().unwrap();
    for key_index in [
        index(SEQUENCE),
        index(SEQUENCE + 1),
        index(SEQUENCE + 63),
        0,
        129,
        200,
    ] {
        assert!(!security.reminds(B, key_index, now), "{key_index}");
    }
    assert_eq!(security.counters().reminders, 0);
    assert!(security.reminds(B, index(SEQUENCE - 1), now));
    assert_eq!(security.counters().reminders, 1);
}

/// Somebody without the key asks all the time, so that no reminder is left for the one that needs
/// it: that one hears what is sent to the other.
#[test]
#[cfg(feature = "rotation")]
fn strangers_are_reminded_by_frames_for_all() {
    let (mut a, mut b) = acquainted(54);
    let later = SEQUENCE + 1;
    a.mac.security_mut().unwrap().rotate(later, a.now);
    a.now += GUARD_TIME + Duration::from_secs(1);
    b.now = a.now;
    for n in 0..20 {
        assert_eq!(take(&mut a, &forged(n)), None);
    }
    let reminder = one_sent(&mut a);
    assert!(destination(&reminder).is_broadcast());
    b.now = a.now;
    take(&mut b, &reminder);
    assert_eq!(b.mac.security().unwrap().sequence(), later);
}

#[cfg(feature = "join")]
#[test]
fn frames_in_clear_are_taken_for_all_by_join_proxies_and_for_one_by_pledges() {
    let in_clear = |dst| data(LinkAddr::Extended(B), dst, 1, &[0x41]);
    let for_all = in_clear(LinkAddr::BROADCAST);
    let for_one = in_clear(LinkAddr::Extended(A));
    for (serves, is_taken) in [(false, [false, false]), (true, [true, false])] {
        let (mut a, _) = acquainted(55);
        a.mac.serve_pledges(serves);
        for (psdu, is_taken) in [&for_all, &for_one].into_iter().zip(is_taken) {
            a.now += Duration::from_secs(1);
            let before = refused(&a, FrameDrop::Unsecured);
            assert_eq!(a.hear(psdu).is_some(), is_taken, "{serves}");
            let unsecured = refused(&a, FrameDrop::Unsecured) - before;
            assert_eq!(unsecured, u32::from(!is_taken), "{serves}");
        }
        assert!(a.acks_sent().is_empty() || !serves);
    }
}

/// Recordings of frames for all are worth a challenge each, but hold no more than half of the
/// places.
#[test]
fn a_frame_for_this_node_is_challenged_beside_recordings_of_frames_for_all() {
    let (mut a, _) = pair(56);
    let to_all = |n: u32| {
        let header = Header::data(PAN, LinkAddr::BROADCAST, stranger(n), n as u8);
        sealed_by_hand(&KEY, header, current(n), SEQUENCE)
    };
    let challenges = |a: &Bench| a.mac.security().unwrap().counters().challenges;
    for n in 0..40 {
        take_now(&mut a, &to_all(n));
    }
    assert_eq!(challenges(&a), 4, "at once");
    take_now(&mut a, &authentic(1_000));
    assert_eq!(challenges(&a), 5);
    let begun = a.now;
    for n in 1..=400 {
        let at = begun + Duration::from_millis(10).saturating_mul(n.into());
        a.run_until(|bench| bench.now >= at);
        a.now = a.now.max(at);
        take_now(&mut a, &to_all(100 + n));
        if n % 100 == 99 {
            let before = challenges(&a);
            take_now(&mut a, &authentic(2_000 + n));
            assert_eq!(challenges(&a), before + 1, "{n}");
        }
    }
    assert!(challenges(&a) > 20, "{}", challenges(&a));
}
