//! Motes without RPL below a mesh that forms itself by RPL.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet::link::Link;
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::air::gains::{ChainAir, Gains, Later};
use motet_lab::apps::content::Content;
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::net::network::{Joining, Network, NetworkOptions, NodeOptions, RADIO};
use motet_lab::net::plan;
use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

/// The routers of the leaf, and the leaf.
const FIRST: usize = 2;
const SECOND: usize = 3;
const LEAF: usize = 4;

/// Border router 0 is heard by 1 alone, 1 by the routers 2 and 3, and both by the leaf, the first
/// better than the second.
fn diamond() -> NetworkOptions {
    let near = ChainAir::CALIBRATED.one_hop_db;
    let gains = Gains::from_fn(LEAF + 1, |a, b| match (a.min(b), a.max(b)) {
        (0, 1) | (1, FIRST | SECOND) | (FIRST | SECOND, LEAF) | (FIRST, SECOND) => near,
        _ => f64::NEG_INFINITY,
    });
    let nodes = (0..=LEAF).map(|n| NodeOptions {
        is_leaf: n == LEAF,
        ..NodeOptions::new(n.to_string())
    });
    NetworkOptions {
        joining: Joining::Rpl,
        ..NetworkOptions::new(nodes.collect(), gains)
    }
}

fn after(network: &Network<'_>, seconds: u64) -> Instant {
    network.world.now() + Duration::from_secs(seconds)
}

/// The routers that hold a registration of the leaf.
fn routers_of_leaf(network: &Network<'_>) -> Vec<usize> {
    let iid = plan::link_addr(LEAF as u16).iid();
    let routers = (0..LEAF).filter(|router| match network.world.node(*router).link(RADIO) {
        Some(Link::Mesh(mesh)) => mesh.is_registered(iid),
        _ => false,
    });
    routers.collect()
}

/// The router that the root knows of for the leaf.
fn step_to_leaf(network: &Network<'_>) -> Option<usize> {
    let iid = plan::link_addr(LEAF as u16).iid();
    let mut steps = network.world.node(0).routes_down();
    let step = steps.find(|step| step.child == iid)?;
    assert!(step.is_leaf);
    (0..LEAF).find(|router| plan::link_addr(*router as u16).iid() == step.parent)
}

fn joined<'m>(options: NetworkOptions, arena: &'m Arena) -> Network<'m> {
    let mut network = Network::new(options, arena).unwrap();
    assert!(network.join(Duration::from_secs(60)));
    let settled = after(&network, 10);
    network.world.run_until(settled);
    network
}

#[test]
fn every_router_gets_contexts_from_its_parent() {
    let arena = Arena::new();
    let network = joined(diamond(), &arena);
    for n in 0..=LEAF {
        let Some(Link::Mesh(mesh)) = network.world.node(n).link(RADIO) else {
            panic!("node {n} has a radio");
        };
        for (id, context) in plan::contexts().iter() {
            let known = mesh.contexts().get(id).map(|c| (c.prefix(), c.compress()));
            assert_eq!(known, Some((context.prefix(), true)), "node {n}");
        }
    }
}

/// Runs a transfer between the leaf and the host, in which after five seconds the leaf's link to its
/// first router breaks for good; returns both routers.
fn transfer_with_a_move(to_leaf: bool) -> [Option<usize>; 2] {
    const LEN: u64 = 60_000;
    let arena = Arena::new();
    let mut network = joined(diamond(), &arena);
    let before = step_to_leaf(&network);
    let router = before.expect("the root knows the leaf");
    assert_eq!(routers_of_leaf(&network), [router]);
    assert!([FIRST, SECOND].contains(&router));
    let at = after(&network, 5);
    let breaks = |from, to| Later {
        at,
        from,
        to,
        db: f64::NEG_INFINITY,
    };
    let changes = vec![breaks(router, LEAF), breaks(LEAF, router)];
    network.world.change_later(changes);
    let host = network.host(0).unwrap();
    let (from, to) = if to_leaf { (host, LEAF) } else { (LEAF, host) };
    let content = || Content::made([7, 9], LEN);
    let remote = (network.addr(to), 4_000);
    let ends = network.ends(to, network.addr(from), &arena);
    let receiver = Receiver::checking(4_000, ends, content());
    network.world.add_app(to, App::Receiver(receiver));
    let ends = network.ends(from, remote.0, &arena);
    let sender = Sender::new(content(), remote, ends);
    network.world.add_app(from, App::Sender(sender));
    let end = after(&network, 120);
    network.world.run_until(end);
    let App::Receiver(receiver) = &network.world.apps(to)[0] else {
        panic!("the receiver");
    };
    assert_eq!(receiver.received, LEN, "to_leaf {to_leaf}");
    assert!(receiver.differs_at.is_none());
    let App::Sender(sender) = &network.world.apps(from)[0] else {
        panic!("the sender");
    };
    assert_eq!(sender.progress.lost, 0, "to_leaf {to_leaf}");
    [before, step_to_leaf(&network)]
}

#[test]
fn a_leaf_that_moves_to_another_router_keeps_its_connection() {
    let [before, then] = transfer_with_a_move(false);
    assert!(then.is_some() && then != before, "{before:?} {then:?}");
}

#[test]
fn a_leaf_is_served_through_tunnels_while_it_stays() {
    let arena = Arena::new();
    let mut network = joined(diamond(), &arena);
    let host = network.host(0).unwrap();
    let ends = network.ends(LEAF, network.addr(host), &arena);
    let content = || Content::made([7, 9], 30_000);
    let receiver = Receiver::checking(4_000, ends, content());
    network.world.add_app(LEAF, App::Receiver(receiver));
    let remote = (network.addr(LEAF), 4_000);
    let ends = network.ends(host, remote.0, &arena);
    let sender = Sender::new(content(), remote, ends);
    network.world.add_app(host, App::Sender(sender));
    let end = after(&network, 60);
    network.world.run_until(end);
    let App::Receiver(receiver) = &network.world.apps(LEAF)[0] else {
        panic!("the receiver");
    };
    assert_eq!(receiver.received, 30_000);
    assert!(receiver.differs_at.is_none());
}

#[test]
fn a_leaf_that_goes_off_is_forgotten_by_its_router_and_by_the_root() {
    let arena = Arena::new();
    let mut network = joined(diamond(), &arena);
    assert!(step_to_leaf(&network).is_some());
    network.switch_off(LEAF);
    let end = after(&network, 59 * 60);
    network.world.run_until(end);
    let routers = routers_of_leaf(&network);
    assert_eq!(step_to_leaf(&network), Some(routers[0]));
    let end = after(&network, 3 * 60);
    network.world.run_until(end);
    assert_eq!(step_to_leaf(&network), None);
    assert!(routers_of_leaf(&network).is_empty());
}

/// The root has lost its graph, or the leaf has lost count of its registrations.
#[test]
fn a_leaf_is_known_again_after_a_reboot_of_the_root_or_of_the_leaf() {
    for node in [0, LEAF] {
        let arena = Arena::new();
        let mut network = joined(diamond(), &arena);
        network.switch_off(node);
        let end = after(&network, 3);
        network.world.run_until(end);
        network.switch_on(node, &arena);
        let end = after(&network, 120);
        network.world.run_until(end);
        let router = step_to_leaf(&network);
        let router = router.unwrap_or_else(|| panic!("after a reboot of node {node}"));
        assert!(routers_of_leaf(&network).contains(&router), "node {node}");
    }
}

/// A floor with security on which `leaves` sleep and report every ten seconds, and on which the
/// parent of some of them fails after a minute: the longest that a report took to arrive, s.
fn oldest_report([seed, motes, hops]: [u64; 3], leaves: &[usize], fault: &str) -> f64 {
    let mut text = format!(
        "seed = {seed}\nduration_s = 300\nwarmup_s = 5\n[topology]\nfloor = {motes}\n\
         floor_hops = {hops}\njoining = \"rpl\"\n[radio]\nprofile = \"nrf52840\"\n\
         channels = \"single\"\n[security]\nlab_key = true\n[[fault]]\nat_s = 60\n{fault}\n"
    );
    for leaf in leaves {
        text += &format!(
            "[[node]]\nid = {leaf}\nsleep = \"hinted\"\n[[flow]]\nkind = \"periodic\"\n\
             interval_s = 10\nfrom = {leaf}\n"
        );
    }
    let plan = Plan::parse(&text, Path::new("floor.toml"), Overrides::default()).unwrap();
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    let result = plan.run_one(0, seed, &watch, Captures::default());
    let all = result.flows.iter().map(|flow| {
        let [due, arrived] = flow.messages.unwrap();
        assert!(due - arrived <= 1, "{}: {arrived} of {due}", flow.name());
        flow.latency_max_ms.unwrap() / 1e3
    });
    all.fold(0.0, f64::max)
}

/// On these floors leaves were not served for three minutes: over links that lose most long
/// advertisements, by routers that did not know them any more while they slept.
#[test]
fn a_leaf_whose_parent_fails_is_served_again_within_a_minute_or_so() {
    let reboot = |node| format!("kind = \"reboot\"\nfor_s = 2\nnode = {node}");
    let off = |node| format!("kind = \"off\"\nnode = {node}");
    for (floor, leaves, fault, most) in [
        ([21, 16, 4], &[2, 15, 10, 1, 7, 12][..], reboot(6), 75.0),
        (
            [36, 24, 3],
            &[15, 21, 13, 11, 12, 22, 18, 7, 23, 16][..],
            reboot(19),
            80.0,
        ),
        (
            [20, 30, 5],
            &[20, 2, 28, 15, 27, 16, 7, 8][..],
            off(4),
            60.0,
        ),
    ] {
        let oldest = oldest_report(floor, leaves, &fault);
        assert!(oldest < most, "{floor:?}: {oldest} s");
    }
}
