//! Networks over Bluetooth LE: transfers, silence, motes that go and come back.

use super::transfer::{received, start};
use super::*;
use crate::Arena;
use crate::net::chain::{Chain, ChainOptions};

fn options(motes: usize, frame_loss: f64) -> NetworkOptions {
    NetworkOptions {
        frame_loss,
        ..NetworkOptions::over_ble(motes, BleOptions::DEFAULT)
    }
}

fn joined<'m>(options: NetworkOptions, arena: &'m Arena) -> Network<'m> {
    let mut network = Network::new(options, arena).unwrap();
    assert!(network.join(Duration::from_secs(20)));
    network
}

fn run(network: &mut Network<'_>, seconds: u64) {
    let until = network.world.now() + Duration::from_secs(seconds);
    network.world.run_until(until);
}

#[test]
fn bytes_pass_both_ways_and_the_same_seed_gives_the_same_run() {
    for (frame_loss, least) in [(0.0, 1_000_000), (0.05, 400_000)] {
        for up in [true, false] {
            let digest = || {
                let arena = Arena::new();
                let mut network = joined(options(2, frame_loss), &arena);
                let host = network.host(0).unwrap();
                let (from, to) = if up { (2, host) } else { (host, 2) };
                start(&mut network, (from, to), &arena);
                run(&mut network, 30);
                let links: Vec<_> = network.world.links().collect();
                (received(&network, to), links)
            };
            let (bytes, links) = digest();
            assert!(bytes >= least, "{bytes} at {frame_loss}, up {up}");
            assert_eq!((bytes, links), digest());
        }
    }
}

/// Bluetooth LE has its own order of events: what 802.15.4 does about frames changes nothing.
#[test]
fn no_pace_reaches_it() {
    let digest = |pace_percent: u8| {
        let mut options = options(2, 0.02);
        for node in &mut options.nodes {
            node.pace_percent = pace_percent;
        }
        options.thins_acks = pace_percent > 0;
        let arena = Arena::new();
        let mut network = joined(options, &arena);
        let host = network.host(0).unwrap();
        start(&mut network, (2, host), &arena);
        run(&mut network, 5);
        network.world.links().collect::<Vec<_>>()
    };
    assert_eq!(digest(0), digest(100));
}

#[test]
fn motes_reach_one_another_through_the_border_router() {
    let arena = Arena::new();
    let mut network = joined(options(3, 0.0), &arena);
    start(&mut network, (1, 3), &arena);
    run(&mut network, 10);
    assert!(received(&network, 3) > 100_000, "{}", received(&network, 3));
}

#[test]
fn what_is_on_the_air_is_counted_by_link() {
    let arena = Arena::new();
    let mut network = joined(options(1, 0.1), &arena);
    start(&mut network, (1, 2), &arena);
    run(&mut network, 10);
    let links: Vec<_> = network.world.links().collect();
    let ends: Vec<_> = links.iter().map(|(link, _)| *link).collect();
    assert_eq!(ends, [(0, 1), (1, 0)]);
    for (link, tally) in links {
        let fates: u64 = tally.frame_fates.iter().sum();
        assert_eq!(fates, tally.frames, "{link:?}");
        let lost = tally.frame_fates[crate::air::medium::Fate::Injected.index()];
        let share = lost as f64 / tally.frames as f64;
        assert!((0.05..0.15).contains(&share), "{link:?}: {share}");
    }
}

#[test]
fn a_mote_that_was_off_comes_back() {
    let arena = Arena::new();
    let mut network = joined(options(2, 0.0), &arena);
    network.switch_off(1);
    run(&mut network, 6);
    assert!(!network.has_joined());
    network.switch_on(1, &arena);
    assert!(network.join(Duration::from_secs(20)));
    start(&mut network, (1, 2), &arena);
    run(&mut network, 10);
    assert!(received(&network, 2) > 100_000);
}

#[test]
fn motes_find_a_border_router_that_was_off() {
    let arena = Arena::new();
    let mut network = joined(options(2, 0.0), &arena);
    network.switch_off(0);
    run(&mut network, 1);
    network.switch_on(0, &arena);
    run(&mut network, 10);
    let host = network.host(0).unwrap();
    start(&mut network, (2, host), &arena);
    run(&mut network, 10);
    assert!(received(&network, host) > 100_000);
}

#[test]
fn a_node_that_reboots_in_place_joins_again() {
    let arena = Arena::new();
    let mut network = joined(options(1, 0.0), &arena);
    assert!(network.reboot(1, &arena));
    run(&mut network, 8);
    assert!(network.has_joined());
}

#[test]
fn goodput_stays_below_its_bound() {
    for phy in [motet::ble::Phy::Le1M, motet::ble::Phy::Le2M] {
        let arena = Arena::new();
        let ble = BleOptions {
            phy,
            ..BleOptions::DEFAULT
        };
        let options = ChainOptions {
            ble: Some(ble),
            window_segments: 16,
            ..ChainOptions::default()
        };
        let mut chain = Chain::new(options, &arena);
        assert!(chain.join(Duration::from_secs(20)));
        let (estimate, bound) = (chain.estimate_kbps(), chain.ble_bound_kbps().unwrap());
        assert!(estimate < bound, "{phy:?}: {estimate} {bound}");
        let to = chain.host().unwrap();
        let receiver = crate::apps::Receiver::new(7, chain.host_ends(&arena));
        chain
            .world
            .set_app(to, crate::apps::App::Receiver(receiver));
        let content: std::sync::Arc<[u8]> = vec![1; 2_000_000].into();
        let remote = (plan::HOST, 7);
        let sender = crate::apps::Sender::new(content, remote, chain.mote_ends(&arena));
        chain
            .world
            .set_app(chain.mote(), crate::apps::App::Sender(sender));
        let until = chain.world.now() + Duration::from_secs(10);
        chain.world.run_until(until);
        let crate::apps::App::Receiver(end) = chain.world.app(to) else {
            panic!("it was given one")
        };
        let kbps = end.content.len() as f64 * 8.0 / 10_000.0;
        assert!(
            (0.9 * estimate..bound).contains(&kbps),
            "{phy:?}: {kbps} of {estimate}"
        );
    }
}

/// What arrives from a mote in ten seconds, and how long its receiver was on, where clocks and
/// signals are so.
fn with_air(set: impl Fn(&mut crate::ble::Air)) -> (usize, u64) {
    let arena = Arena::new();
    let mut network = joined(options(1, 0.0), &arena);
    set(network.world.ble_mut().unwrap());
    run(&mut network, 10);
    let listened = network.world.ble().unwrap().usage(1).receiving_us();
    let host = network.host(0).unwrap();
    start(&mut network, (1, host), &arena);
    run(&mut network, 10);
    (received(&network, host), listened)
}

#[test]
fn clocks_that_are_as_good_as_they_say_cost_listening_and_others_the_connection() {
    let drifting = |central, mote| {
        with_air(|air| {
            air.set_drift(0, central);
            air.set_drift(1, mote);
        })
    };
    let exact = drifting(0, 0);
    let (late, early) = (drifting(45, -45), drifting(-45, 45));
    for (bytes, _) in [late, early] {
        assert!(bytes.abs_diff(exact.0) < exact.0 / 20, "{bytes}, {exact:?}");
    }
    // 90 ppm of 50 ms are 4.5 µs an event, 200 events.
    assert!(
        (600..1_000).contains(&(late.1 - exact.1)),
        "{late:?}, {exact:?}"
    );
    assert!(
        (600..1_000).contains(&(exact.1 - early.1)),
        "{early:?}, {exact:?}"
    );
    let (bytes, _) = drifting(0, 1_000);
    assert!(bytes < exact.0 / 5, "{bytes} beside {}", exact.0);
}

#[test]
fn weak_signals_that_vary_lose_packets() {
    let with = |mean, sigma| {
        with_air(|air| air.set_signal(mean, sigma, motet::random::Rng::from_seed([4; 2]))).0
    };
    let (strong, weak) = (with(-50.0, 0.0), with(-88.0, 6.0));
    assert_eq!(strong, with(-60.0, 0.0));
    assert!(weak > 0 && weak < strong * 9 / 10, "{weak} of {strong}");
}

#[test]
fn a_mote_without_tcple_gets_plain_ipv6_among_motes_with_it() {
    let mut options = options(2, 0.0);
    options.nodes[2].lacks_tcple = true;
    options.ble = options.ble.map(|ble| BleOptions {
        tcple_motes: 2,
        ..ble
    });
    let arena = Arena::new();
    let mut network = joined(options, &arena);
    let host = network.host(0).unwrap();
    // From one with it, and from the one without to that.
    for ends in [(1, host), (2, 1)] {
        start(&mut network, ends, &arena);
        run(&mut network, 10);
        let bytes = received(&network, ends.1);
        assert!(bytes > 200_000, "{bytes} between {ends:?}");
    }
    let ahead = |mote: usize| match network.world.node(mote).link(RADIO) {
        Some(Link::Ble(link)) => link.tcple_counters().map(|counters| counters.prefetched),
        _ => None,
    };
    assert!(ahead(1).is_some_and(|ahead| ahead > 0), "{:?}", ahead(1));
    assert_eq!(ahead(2), None);
}
