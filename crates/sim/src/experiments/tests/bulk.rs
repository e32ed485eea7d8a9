use super::*;
use crate::air::profile::Profile;
use crate::net::chain::ChainOptions;
use motet::mac::Channels;

const CASES: [(Forwarding, Channels); 4] = [
    (Forwarding::Copy, Channels::SINGLE),
    (Forwarding::Copy, Channels::ALL),
    (Forwarding::Immediate, Channels::SINGLE),
    (Forwarding::Immediate, Channels::ALL),
];

fn chain(hops: u16, (forwarding, channels): (Forwarding, Channels)) -> NetworkOptions {
    let chain = ChainOptions {
        hops,
        forwarding,
        channels,
        profile: Profile::TELOSB,
        ..ChainOptions::default()
    };
    chain.network()
}

fn with_profile(mut chain: NetworkOptions, change: impl Fn(&mut Profile)) -> NetworkOptions {
    let nodes = chain.nodes.iter_mut();
    nodes.for_each(|node| change(&mut node.profile));
    chain
}

/// Slow enough for every way of forwarding.
const SLOW: Duration = Duration::from_millis(60);

/// The bulk protocol of the CIT paper (section 5): nothing is lost, nothing doubled.
#[test]
fn every_packet_arrives_once_and_in_order() {
    for case in CASES {
        for hops in [1, 2, 6] {
            let batch = Bulk::FULL.batch(&chain(hops, case), SLOW, 50, 1);
            assert_eq!(batch.arrivals.len(), 50, "{case:?}, {hops} hops");
            if case.0 == Forwarding::Immediate {
                // All but the packets of the end, which wait for nothing.
                let relays = u32::from(hops) - 1;
                assert!(batch.immediate >= relays * 50, "{case:?}: {batch:?}");
                assert_eq!(batch.reloads, 0, "{case:?}");
            }
        }
    }
}

/// Drivers that know nothing of CIT work unchanged (section 4 of the paper).
#[test]
fn a_driver_that_reports_no_heads_forwards_the_same_only_slower() {
    let modified = chain(3, CASES[3]);
    let unmodified = with_profile(modified.clone(), |profile| profile.head_first = false);
    let [fast, slow] = [&modified, &unmodified].map(|chain| {
        assert_eq!(Bulk::FULL.batch(chain, SLOW, 50, 1).arrivals.len(), 50);
        Bulk::FULL.throughput_kbps(chain, 1).unwrap()
    });
    assert!(slow < 0.9 * fast, "{slow}, {fast} kb/s with heads");
    let one_buffer = with_profile(modified, |profile| *profile = Profile::HAMILTON);
    let batch = Bulk::FULL.batch(&one_buffer, SLOW, 50, 1);
    assert_eq!(
        (batch.arrivals.len(), batch.immediate),
        (50, 0),
        "CIT is off"
    );
}

/// Figure 5 of the CIT paper, with forwarding by copies as the baseline.
#[test]
fn forwarding_without_copies_nears_the_bound_and_copies_do_not() {
    let kbps = |hops, case| Bulk::FULL.throughput_kbps(&chain(hops, case), 1).unwrap();
    let multi = kbps(6, CASES[3]);
    assert!((106.0..112.0).contains(&multi), "{multi}: 109 in the paper");
    let single = kbps(6, CASES[2]);
    assert!(single > 0.95 * 224.8 / 6.0, "{single}");
    assert!(single > 1.8 * kbps(6, CASES[0]), "{single}");
    assert!(multi > 1.4 * kbps(6, CASES[1]), "{multi}");
}

/// Figure 6 of the CIT paper.
#[test]
fn waiting_packets_save_a_third_of_the_latency() {
    for (psdu_len, least, most) in [(127, 0.38, 0.55), (5 + OVERHEAD, 0.25, 0.5)] {
        let bulk = Bulk {
            psdu_len,
            measure: Measure::Latency,
            ..Bulk::FULL
        };
        let [copy, cit] =
            [CASES[0], CASES[2]].map(|case| bulk.latency_ms(&chain(6, case), 1).unwrap());
        let saved = 1.0 - cit / copy;
        assert!((least..most).contains(&saved), "{psdu_len} B: {saved}");
    }
}
