//! Neighbours that do not answer, or do not exist.

use super::bench::*;
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::check_fcs;

/// Frames fired at `to` from an instant on.
fn attempts_at(bench: &Bench, to: LinkAddr, from: Instant) -> usize {
    let is_for = |psdu: &[u8]| {
        let (header, _) = Header::parse(check_fcs(psdu).unwrap()).unwrap();
        header.dst.is_some_and(|dst| dst.addr == to)
    };
    let fired = bench.fired.iter();
    fired
        .filter(|(at, psdu)| *at >= from && is_for(psdu))
        .count()
}

/// Sends a frame and runs for `ms`; what became of it by then.
fn send(bench: &mut Bench, to: LinkAddr, ms: u64) -> Option<Outcome> {
    let end = bench.now + Duration::from_millis(ms);
    bench.outcomes.clear();
    bench.send(to, 1);
    bench.run_until(|bench| bench.now >= end);
    bench.now = bench.now.max(end);
    let of_it = |outcome: &&Outcome| outcome.to == to;
    bench.outcomes.iter().find(of_it).copied()
}

fn forged(n: u32) -> LinkAddr {
    let [a, b, c, d] = n.to_be_bytes();
    LinkAddr::Extended([2, 0xaa, 0, 0, a, b, c, d])
}

#[test]
fn a_silent_neighbour_is_left_alone_for_ever_longer() {
    for radio in [SHARED, SEPARATE] {
        let mut bench = Bench::new(radio, 1);
        assert!(send(&mut bench, PEER, 1_000).unwrap().delivered);
        let (began, mut others) = (bench.now, 0);
        bench.absent = |to| to == PEER;
        for _ in 0..600 {
            // 60 s.
            send(&mut bench, PEER, 70);
            let other = send(&mut bench, OTHER, 30);
            let delivered = other.is_some_and(|outcome| outcome.delivered);
            others += u32::from(delivered);
        }
        let attempts = attempts_at(&bench, PEER, began);
        assert!(others > 590, "{others} of 600 passed within 30 ms");
        assert!((32..200).contains(&attempts), "{attempts} of 4,800");
        let late = began + Duration::from_secs(40);
        let attempts = attempts_at(&bench, PEER, late);
        assert!(
            (8..=48).contains(&attempts),
            "{attempts} in 20 s, still asked"
        );
        assert!(bench.mac.counters().dropped(FrameDrop::Silent) > 400);
    }
}

#[test]
fn one_frame_heard_ends_the_wait_and_one_ack_the_doubt() {
    let mut bench = Bench::new(SHARED, 2);
    assert!(send(&mut bench, PEER, 1_000).unwrap().delivered);
    bench.absent = |to| to == PEER;
    let mut is_silent =
        || send(&mut bench, PEER, 1_000).is_some_and(|outcome| outcome.attempts == 0);
    // Eight frames, and then until a pause is longer than the second between two.
    assert!((0..12).any(|_| is_silent()));
    bench.absent = |_| false;
    bench.hear(&data(PEER, LinkAddr::Extended(ME), 1, b"x"));
    let outcome = send(&mut bench, PEER, 100).unwrap();
    assert!(outcome.delivered, "{outcome:?}");
    bench.absent = |to| to == PEER;
    // One that is deaf for a moment again has all attempts, twice.
    for _ in 0..2 {
        let outcome = send(&mut bench, PEER, 1_000).unwrap();
        assert_eq!(
            (outcome.reason, outcome.attempts),
            (Some(FrameDrop::NoAck), 8)
        );
    }
}

#[test]
fn a_silent_neighbour_that_returns_unheard_is_found() {
    let mut bench = Bench::new(SHARED, 3);
    assert!(send(&mut bench, PEER, 1_000).unwrap().delivered);
    bench.absent = |to| to == PEER;
    for _ in 0..600 {
        send(&mut bench, PEER, 100);
    }
    bench.absent = |_| false;
    let returned = bench.now;
    while !send(&mut bench, PEER, 100).unwrap().delivered {
        assert!(bench.now.since(returned) <= Duration::from_millis(4_200));
    }
}

/// Ten, or a hundred, a second from addresses that nobody has cost the same few attempts, and
/// none of them takes the entry of a neighbour that is there.
#[test]
fn forged_neighbours_share_one_bound() {
    for (per_s, ms) in [(10, 100), (100, 10)] {
        let mut bench = Bench::new(SHARED, 4);
        for to in [PEER, OTHER] {
            assert!(send(&mut bench, to, 1_000).unwrap().delivered);
        }
        let before = bench.fired.len();
        bench.absent = |to| to != PEER && to != OTHER;
        for n in 0..per_s * 30 {
            bench.hear(&data(forged(n), LinkAddr::Extended(ME), n as u8, b"x"));
            send(&mut bench, forged(n), ms);
        }
        let attempts = bench.fired.len() - before;
        assert!((60..=16 + 4 * 32).contains(&attempts), "{attempts}");
        for to in [PEER, OTHER] {
            assert!(bench.mac.neighbors.is_trusted(to), "{per_s} a second");
            assert!(send(&mut bench, to, 50).is_some_and(|outcome| outcome.delivered));
        }
    }
}

/// No ACK is asked for, so none that is missing says anything.
#[test]
fn without_acks_nobody_is_in_doubt() {
    let mut config = Config::new(PAN, ME);
    config.acknowledged = false;
    let mut bench = Bench::with(config, SHARED, 8, 4, 6);
    for n in 0..40 {
        for to in [PEER, OTHER, forged(n)] {
            assert!(bench.mac.is_trusted(to), "{to:?}");
            bench.send(to, 1);
            assert!(!bench.mac.is_doubtful(to), "{to:?} with a frame on its way");
            assert!(send(&mut bench, to, 50).is_some_and(|outcome| outcome.delivered));
        }
    }
}

/// Five frames in a row given up, for longer than a second, by one that answers the sixth.
#[test]
fn a_disturbed_neighbour_has_all_attempts_and_holds_up_nobody() {
    for radio in [SHARED, SEPARATE] {
        let mut bench = Bench::new(radio, 7);
        assert!(send(&mut bench, PEER, 1_000).unwrap().delivered);
        for _ in 0..10 {
            bench.absent = |to| to == PEER;
            for n in 0..5 {
                bench.outcomes.clear();
                bench.send(PEER, 1);
                // From the third on others do not wait for its retries.
                let others = send(&mut bench, OTHER, 30).is_some_and(|other| other.delivered);
                assert!(others || n < 2, "{n}");
                bench.run();
                let is_its = |outcome: &&Outcome| outcome.to == PEER;
                let outcome = *bench.outcomes.iter().find(is_its).unwrap();
                assert_eq!(
                    (outcome.reason, outcome.attempts),
                    (Some(FrameDrop::NoAck), 8)
                );
            }
            bench.absent = |_| false;
            assert!(send(&mut bench, PEER, 1_000).unwrap().delivered);
        }
        assert_eq!(bench.mac.counters().dropped(FrameDrop::Silent), 0);
    }
}

#[test]
fn without_entries_nobody_is_in_doubt() {
    let mut bench = Bench::with(Config::new(PAN, ME), SHARED, 4, 0, 5);
    bench.absent = |_| true;
    for _ in 0..20 {
        let outcome = send(&mut bench, PEER, 1_000).unwrap();
        assert_eq!(
            (outcome.reason, outcome.attempts),
            (Some(FrameDrop::NoAck), 8)
        );
    }
}
