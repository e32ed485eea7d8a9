//! A mote that sleeps, in a mesh that forms itself.

use std::collections::BTreeSet;

use motet::link::{Link, Mesh};
use motet::mac::poll::REST;
use motet::mac::{Policy, Sleep};
use motet::random::Rng;

use super::*;
use crate::air::gains::{Gains, LogDistance};
use crate::air::log::{Happening, Seen};
use crate::apps::App;
use crate::apps::messages::{Client, Server, Shape};

const ROUTERS: [usize; 2] = [1, 2];
const LEAF: usize = 3;

/// The border router, two routers beside each other, and a leaf that hears both and sleeps.
fn diamond(policy: Policy) -> NetworkOptions {
    let positions = [[0.0, 0.0], [70.0, 20.0], [70.0, -20.0], [140.0, 0.0]];
    let mut nodes = ["border", "upper", "lower", "leaf"]
        .map(NodeOptions::new)
        .to_vec();
    nodes[LEAF].sleep = Some(Sleep::new(policy));
    let gains = Gains::log_distance(&positions, LogDistance::OFFICE, 1);
    NetworkOptions {
        joining: Joining::Rpl,
        ..NetworkOptions::new(nodes, gains)
    }
}

fn radio<'w, 'm>(network: &'w Network<'m>, node: usize) -> &'w Mesh<'m> {
    match network.world.node(node).link(RADIO) {
        Some(Link::Mesh(radio)) => radio,
        _ => panic!("node {node} has a radio"),
    }
}

/// The router of the leaf, as the border router knows it.
fn router_of_leaf(network: &Network<'_>) -> Option<usize> {
    let iid = |node: usize| plan::link_addr(node as u16).iid();
    let mut steps = network.world.node(0).routes_down();
    let step = steps.find(|step| step.child == iid(LEAF))?;
    assert!(step.is_leaf, "it has no RPL");
    ROUTERS
        .into_iter()
        .find(|router| step.parent == iid(*router))
}

/// Whether a router has been asked to make the leaf reachable (the R flag of RFC 8505), and keeps
/// its packets.
fn serves_leaf(network: &Network<'_>, router: usize) -> bool {
    let leaf = plan::link_addr(LEAF as u16);
    let mesh = radio(network, router);
    let mut registrations = mesh.registrations();
    let is_routed = registrations.any(|entry| entry.iid() == leaf.iid() && entry.is_routed());
    let is_child = mesh
        .indirect()
        .is_some_and(|indirect| indirect.children().any(|child| child == leaf));
    is_routed && is_child
}

/// The leaf registers with the R flag, so that the router speaks for it; a router that has gone is
/// replaced, and the border router's route follows.
#[test]
fn a_leaf_that_sleeps_registers_and_is_found_at_its_next_router() {
    for policy in [Policy::Hinted(REST), Policy::Adaptive, Policy::Paper] {
        let arena = Arena::new();
        let mut network = Network::new(diamond(policy), &arena).unwrap();
        assert!(network.join(Duration::from_secs(60)), "{policy:?}");
        let after = |network: &mut Network<'_>, seconds| {
            let until = network.world.now() + Duration::from_secs(seconds);
            network.world.run_until(until);
        };
        after(&mut network, 30);
        let first = router_of_leaf(&network).unwrap_or_else(|| panic!("{policy:?}: no route"));
        let other = ROUTERS[0] + ROUTERS[1] - first;
        assert!(serves_leaf(&network, first), "{policy:?}");
        assert!(!serves_leaf(&network, other), "{policy:?}");
        network.switch_off(first);
        // It asks its parent every 240 s.
        after(&mut network, 600);
        assert_eq!(router_of_leaf(&network), Some(other), "{policy:?}");
        assert!(serves_leaf(&network, other), "{policy:?}");
    }
}

const SYN_PORTS: [u16; 3] = [7_001, 7_002, 7_003];

/// SYNs to each of [`SYN_PORTS`] that a node was sent in frames; a frame that is sent again counts
/// once.
fn syns_to(node: usize, seen: &Seen) -> [usize; 3] {
    let frames = seen.all.iter().filter_map(|happening| match happening {
        Happening::Frame(frame) if frame.to == Some(node) => Some(&frame.bytes[..]),
        _ => None,
    });
    let frames: Vec<&[u8]> = frames.collect();
    SYN_PORTS.map(|port| {
        // The header of a SYN is in line: nine bytes behind the destination's port come its flags.
        let is_syn =
            |header: &[u8]| header.starts_with(&port.to_be_bytes()) && header[11] & 0x17 == 0x02;
        let syns = frames.iter().filter(|frame| frame.windows(12).any(is_syn));
        // By their numbers.
        let numbers: BTreeSet<u8> = syns.map(|frame| frame[2]).collect();
        numbers.len()
    })
}

/// Three connections to a mote that asks each ten seconds: their SYNs are repeated three times
/// before it does, and each waits once, at the border router as at a router of the mesh.
#[test]
fn copies_of_a_syn_wait_once() {
    let star = || NetworkOptions {
        joining: Joining::Static,
        ..NetworkOptions::new(
            vec![NodeOptions::new("border"), NodeOptions::new("leaf")],
            star(1),
        )
    };
    for (name, mut options) in [("star", star()), ("diamond", diamond(Policy::Adaptive))] {
        let leaf = options.nodes.len() - 1;
        options.nodes[leaf].sleep = Some(Sleep::new(Policy::Fixed(Duration::from_secs(10))));
        let arena = Arena::new();
        let mut network = Network::new(options, &arena).unwrap();
        assert!(network.join(Duration::from_secs(60)), "{name}");
        let begin = network.world.now() + Duration::from_secs(30);
        network.world.run_until(begin);
        let host = network.host(0).unwrap();
        let shape = Shape {
            message_len: 20,
            answer_len: 20,
            interval: Duration::from_millis(1),
        };
        let clients = SYN_PORTS.map(|port| {
            let server = Server::new(port, network.ends(leaf, plan::HOST, &arena), shape);
            network.world.add_app(leaf, App::Server(server));
            let remote = (network.addr(leaf), port);
            let ends = network.ends(host, remote.0, &arena);
            let mut rng = Rng::from_seed([1, port.into()]);
            let client = Client::new(remote, ends, shape, begin, &mut rng);
            let client = client.until(begin + Duration::from_millis(2));
            network.world.add_app(host, App::Client(client))
        });
        network.world.observe(Some(1 << 16));
        network.world.run_until(begin + Duration::from_secs(60));
        let seen = network.world.take_seen();
        assert_eq!(syns_to(leaf, &seen), [1, 1, 1], "{name}: SYNs on the air");
        for client in clients {
            let Some(App::Client(client)) = network.world.apps(host).get(client) else {
                panic!("{name}: no client")
            };
            assert!(client.tally.received > 0, "{name}");
        }
        let parents = (0..leaf).filter_map(|node| radio(&network, node).indirect());
        let merged: u32 = parents.map(|parent| parent.counters().merged).sum();
        // Each of the SYNs came again, once at least, before the mote asked.
        assert!(merged >= 3, "{name}: {merged} copies merged");
    }
}
