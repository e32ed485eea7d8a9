use super::*;
use crate::air::gains::{ChainAir, Gains};
use crate::apps::content::Content;
use crate::apps::{Receiver, Sender};
use crate::net::moves;
use crate::net::network::{Joining, Parent};

fn chain(hops: usize, kind: Host) -> NetworkOptions {
    let nodes = (0..=hops).map(|n| NodeOptions {
        parent: n.checked_sub(1).map_or(Parent::Shortest, Parent::Node),
        ..NodeOptions::new(n.to_string())
    });
    let mut options = NetworkOptions::new(
        nodes.collect(),
        Gains::chain(hops + 1, ChainAir::CALIBRATED),
    );
    options.hosts[0].kind = kind;
    options
}

fn after(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

#[test]
fn floors_become_networks() {
    for motes in [30, 100] {
        let options = floor(motes, 1).expect("a floor");
        assert_eq!(options.nodes.len(), motes + 1);
        let least = if motes == 30 { 4 } else { 6 };
        assert!(options.tree().unwrap().height(0) >= least);
    }
}

#[test]
fn motes_answer_when_they_have_joined_and_not_while_they_are_off() {
    let arena = Arena::new();
    let mut network = Network::new(chain(3, Host::Outside), &arena).unwrap();
    let (mut outages, last_on) = Outages::staggered(&mut network, Duration::from_secs(5));
    outages.add(after(6), 2, Switch::Off);
    outages.add(after(20), 2, Switch::On);
    let answered = answers(&mut network, &arena, &mut outages, after(60));
    assert!(last_on > after(1) && last_on < after(5));
    assert_eq!(answered[0], None);
    let all = last(&answered).expect("all answer in the end");
    assert!(all < after(40), "{answered:?}");
    assert!(answered[1].unwrap() < after(8), "{answered:?}");
    // Nobody answers from behind a relay that is off.
    let before = answered
        .iter()
        .flatten()
        .filter(|at| **at > after(7) && **at < after(20));
    assert_eq!(before.count(), 0, "{answered:?}");
    let back = reboot(&mut network, &arena, after(120)).expect("they come back");
    assert!(back > 0.0 && back < 30.0, "{back}");
    network.switch_off(1);
    let silent = answers(&mut network, &arena, &mut Outages::default(), after(125));
    assert!(silent.iter().all(Option::is_none) && last(&silent).is_none());
}

#[test]
fn a_transfer_whose_parent_goes_does_not_move_again_by_itself() {
    let arena = Arena::new();
    let mut network = Network::new(chain(2, Host::Virtual), &arena).unwrap();
    assert!(network.join(Duration::from_secs(60)));
    let host = network.host(0).unwrap();
    let remote = (network.addr(host), 4_000);
    let content = || Content::endless([1, 1]);
    let receiver = Receiver::checking(
        remote.1,
        network.ends(host, network.addr(2), &arena),
        content(),
    );
    network.world.set_app(host, App::Receiver(receiver));
    let sender = Sender::new(content(), remote, network.ends(2, remote.0, &arena));
    network.world.set_app(2, App::Sender(sender));
    network.world.run_until(after(10));
    assert_eq!(moves::parent(&network, 2), Some(1));
    let limit = after(30);
    let gone = repair(&mut network, [2, host], limit).expect("its parent is a mote");
    assert_eq!(
        gone,
        Repair {
            seconds: None,
            connections_lost: 0
        }
    );
    // With its parent back it does.
    network.switch_on(1, &arena);
    network.world.run_until(after(120));
    let App::Receiver(receiver) = network.world.app(host) else {
        panic!("the host reads")
    };
    assert!(receiver.received > 40_000, "{}", receiver.received);
    // The first mote's parent is the border router, which is another measure.
    assert_eq!(repair(&mut network, [1, host], after(130)), None);
}

#[test]
fn the_best_tree_has_the_ratio_one() {
    let options = floor(30, 3).expect("a floor");
    let (_, parents) = best_tree(&options);
    let ratio = etx_ratio(&options, &parents).expect("all paths lead up");
    assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    // The lab's own tree keeps a margin against fading, and has shorter links.
    let tree = options.tree().unwrap();
    let parents: Vec<Option<usize>> = (0..31).map(|node| tree.parent(node)).collect();
    let ratio = etx_ratio(&options, &parents).expect("all paths lead up");
    assert!((1.0..3.0).contains(&ratio), "{ratio}");
    let best = chain(4, Host::Virtual);
    let by_one = [None, Some(0), Some(1), Some(2), Some(3)];
    // There a frame arrives over two hops at once: 1 + 1 + 2 + 2 would do.
    let ratio = etx_ratio(&best, &by_one).unwrap();
    assert!((ratio - 10.0 / 6.0).abs() < 1e-3, "{ratio}");
    let circle = [None, Some(2), Some(1), Some(2), Some(3)];
    assert_eq!(etx_ratio(&best, &circle), None);
    assert_eq!(
        etx_ratio(&best, &[None, Some(0), Some(1), None, Some(3)]),
        None
    );
}

/// The criterion of `mesh-path`, on each of a few floors.
#[test]
fn motes_find_paths_that_are_nearly_the_best() {
    for seed in 1..=4 {
        let arena = Arena::new();
        let mut options = floor(30, seed).expect("a floor");
        options.joining = Joining::Rpl;
        let mut network = Network::new(options.clone(), &arena).unwrap();
        let (mut outages, last_on) = Outages::staggered(&mut network, Duration::from_secs(5));
        let on = answers(&mut network, &arena, &mut outages, last_on);
        assert_eq!(on.len(), 31);
        network.world.run_until(after(600));
        let parents: Vec<Option<usize>> = (0..31).map(|n| moves::parent(&network, n)).collect();
        let ratio = etx_ratio(&options, &parents).expect("all paths lead up");
        assert!((1.0..1.15).contains(&ratio), "{seed}: {ratio}");
    }
}

#[test]
fn an_idle_mesh_with_given_routes_sends_hardly_anything() {
    let arena = Arena::new();
    let mut options = chain(3, Host::Outside);
    options.joining = Joining::Static;
    let mut network = Network::new(options, &arena).unwrap();
    network.world.take_census();
    let before = sent(&network);
    network.world.run_until(after(60));
    let span = Duration::from_secs(60);
    // The border router advertises itself nevertheless.
    assert!(control_airtime(&network, &before, span) < 1e-4);
    assert_eq!(routing_bytes(&network, &before), None);
    // Echoes are users', and nothing is added to them where routes are given.
    answers(&mut network, &arena, &mut Outages::default(), after(70));
    assert!(control_airtime(&network, &before, span) < 1e-4);
    assert_eq!(routing_bytes(&network, &before), Some(0.0));
    assert!(sent(&network)[3].user_time > Duration::ZERO);
}
