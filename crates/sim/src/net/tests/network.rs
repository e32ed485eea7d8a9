use std::sync::Arc;

use motet::ip;
use motet::ip::queue::Discipline;
use motet::link::{Forwarding, Relaying};
use motet::node::Node;
use motet::time::Instant;

use super::*;
use crate::air::gains::{ChainAir, Gains, LogDistance};
use crate::air::profile::Profile;
use crate::apps::{App, Receiver, Sender};
use crate::keys::{self, JoinSecret};

/// Border router, a relay, two motes behind it: a Y, known by geometry.
fn fork(joining: Joining) -> NetworkOptions {
    let positions = [[0.0, 0.0], [60.0, 0.0], [110.0, 30.0], [110.0, -30.0]];
    let names = ["border", "relay", "left", "right"];
    let gains = Gains::log_distance(&positions, LogDistance::OFFICE, 1);
    among(&names, gains, joining)
}

/// Nodes so named, of whom these hear each other.
fn among(names: &[&str], gains: Gains, joining: Joining) -> NetworkOptions {
    let nodes = names.iter().copied().map(NodeOptions::new).collect();
    NetworkOptions {
        joining,
        ..NetworkOptions::new(nodes, gains)
    }
}

#[test]
fn two_motes_send_to_two_hosts_through_one_relay() {
    for joining in [Joining::Advertised, Joining::Static] {
        let arena = Arena::new();
        let mut options = fork(joining);
        options.hosts.push(HostOptions {
            delay: Duration::from_millis(5),
            ..HostOptions::new("near")
        });
        let mut network = Network::new(options, &arena).unwrap();
        assert_eq!(
            (2..4).map(|n| network.tree().parent(n)).collect::<Vec<_>>(),
            [Some(1), Some(1)]
        );
        assert_eq!(network.has_joined(), joining == Joining::Static);
        assert!(network.join(Duration::from_secs(60)));
        let content: Arc<[u8]> = (0..6_000_u32).map(|n| n as u8).collect();
        for (mote, number) in [(2, 0), (3, 1)] {
            let host = network.host(number).unwrap();
            let remote = (network.addr(host), 80);
            let ends = network.ends(host, network.addr(mote), &arena);
            let receiver = App::Receiver(Receiver::new(80, ends));
            network.world.add_app(host, receiver);
            let ends = network.ends(mote, remote.0, &arena);
            let sender = App::Sender(Sender::new(content.clone(), remote, ends));
            assert_eq!(network.world.add_app(mote, sender), 0);
        }
        let until = network.world.now() + Duration::from_secs(30);
        network.world.run_until(until);
        for number in 0..2 {
            let host = network.host(number).unwrap();
            let [App::Receiver(receiver)] = network.world.apps(host) else {
                panic!("it runs a receiver only")
            };
            assert!(receiver.content[..] == content[..], "host {number}");
        }
    }
}

#[test]
fn names_find_their_nodes() {
    let arena = Arena::new();
    let network = Network::new(fork(Joining::Static), &arena).unwrap();
    assert_eq!(network.find("left"), Some(2));
    assert_eq!(network.find("middle"), None);
    assert_eq!((network.name(3), network.mesh_nodes()), ("right", 4));
    assert_eq!(network.addr(4), plan::HOST);
}

#[test]
fn an_impossible_mesh_is_refused_by_name() {
    let arena = Arena::new();
    let mut options = fork(Joining::Static);
    options.nodes[3].channel = 11;
    let error = Network::new(options, &arena).unwrap_err();
    assert_eq!(error, TopologyError::Unheard("right".into()));
    assert!(error.to_string().contains("right"), "{error}");
}

/// A relay after a minute in which each of these motes sends as much as TCP takes.
fn relayed<T>(
    options: NetworkOptions,
    relay: usize,
    motes: &[usize],
    read: impl Fn(&Node<'_>) -> T,
) -> T {
    let arena = Arena::new();
    let mut network = Network::new(options, &arena).unwrap();
    let host = network.host(0).unwrap();
    for &mote in motes {
        let remote = (network.addr(host), 80 + mote as u16);
        let ends = network.ends(host, network.addr(mote), &arena);
        network
            .world
            .add_app(host, App::Receiver(Receiver::new(remote.1, ends)));
        let ends = network.ends(mote, remote.0, &arena);
        let content: Arc<[u8]> = vec![0x5a; 100_000].into();
        let sender = Sender::new(content, remote, ends);
        network.world.add_app(mote, App::Sender(sender));
    }
    network
        .world
        .run_until(Instant::ORIGIN + Duration::from_secs(60));
    read(network.world.node(relay))
}

#[test]
fn a_relay_marks_packets_when_two_flows_fill_its_queue() {
    let marked = |(relaying, forwarding), discipline| {
        let mut options = fork(Joining::Static);
        for node in &mut options.nodes {
            if forwarding == Forwarding::Immediate {
                node.profile = Profile::TELOSB;
            }
            node.relaying = relaying;
            node.forwarding = forwarding;
            node.window_segments = 7;
            node.discipline = discipline;
        }
        relayed(options, 1, &[2, 3], |relay| {
            let Some(Link::Mesh(radio)) = relay.link(RADIO) else {
                panic!("a relay has a radio")
            };
            let gathered = radio.datagrams().counters().reassembled;
            assert_eq!(gathered == 0, relaying == Relaying::Fragments);
            let fired = radio.mac().counters().immediate;
            assert_eq!(fired > 0, forwarding == Forwarding::Immediate, "{fired}");
            relay.ip().counters.marked
        })
    };
    let frames_wait = ip::queue::Red::new(0, 2, 1, true);
    for (way, red) in [
        (
            (Relaying::Reassembly, Forwarding::Copy),
            ip::queue::Red::MOTE,
        ),
        ((Relaying::Fragments, Forwarding::Copy), frames_wait),
        ((Relaying::Fragments, Forwarding::Immediate), frames_wait),
    ] {
        assert_eq!(marked(way, Discipline::DropTail), 0);
        let red = marked(way, Discipline::Red(red));
        assert!(red >= 3, "{way:?}: {red} packets marked in a minute");
    }
}

/// A relay that measures its pace marks packets where its queue fills and several nodes share it,
/// whether or not the relay is one of them. It marks nothing of a lone flow, nothing where its
/// queue is long enough or has no room for two segments, and nothing where times are set by hand.
#[test]
fn a_relay_that_measures_its_pace_marks_packets_of_several_senders() {
    let names = ["border", "near", "relay", "left", "right"];
    let hops = [0_usize, 1, 2, 3, 3];
    for (pace_percent, queue_frames, motes, marks) in [
        (100, 16, &[3, 4][..], true),
        (100, 32, &[2, 3], true),
        (100, 16, &[3], false),
        (100, 16, &[2], false),
        (100, 200, &[3, 4], false),
        (100, 8, &[3, 4], false),
        (0, 16, &[3, 4], false),
    ] {
        let gains = Gains::along(hops.len(), |node| hops[node], ChainAir::CALIBRATED);
        let mut options = among(&names, gains, Joining::Static);
        for (node, parent) in options.nodes.iter_mut().skip(1).zip([0, 1, 2, 2]) {
            node.parent = Parent::Node(parent);
        }
        for node in &mut options.nodes {
            node.profile = Profile::TELOSB;
            node.window_segments = 12;
            node.pace_percent = pace_percent;
            node.tables.queue_frames = queue_frames;
        }
        let marked = relayed(options, 2, motes, |relay| relay.ip().counters.marked);
        let case = format!("{pace_percent} {queue_frames} {motes:?}: {marked}");
        assert_eq!(marked >= 3, marks, "{case}");
        assert!(marks || marked == 0, "{case}");
    }
}

/// Ctrl-C ends the set-up of a mesh however many nodes are left.
#[test]
fn a_set_up_that_is_to_stop_stops_between_two_nodes() {
    let arena = Arena::new();
    let asked = std::cell::Cell::new(0);
    let stops = || {
        asked.set(asked.get() + 1);
        true
    };
    let mut network = Network::new_unless(fork(Joining::Advertised), &arena, stops).unwrap();
    assert_eq!(asked.get(), 1, "no node after the first answer");
    assert!(!network.join(Duration::from_secs(60)));
    assert!((1..4).all(|mote| network.world.node(mote).global_address().is_none()));
}

/// A mesh of which all have joined by CoJP; the registrar has just begun to give all but mote 3
/// another key.
fn revoking(arena: &Arena) -> Network<'_> {
    let secret = JoinSecret::new([0x5a; keys::SECRET_LEN]);
    let key = SecurityOptions::new(NetworkKey::new([1; 16]), 0).joined_by(secret);
    let options = NetworkOptions {
        security: Some(key),
        ..fork(Joining::Advertised)
    };
    let mut network = Network::new(options, arena).unwrap();
    assert!(network.join(Duration::from_secs(60)));
    let revoked = plan::eui64(3);
    assert!(network.replace_key((NetworkKey::new([2; 16]), 0), |eui64| eui64 == revoked));
    network
}

fn run(network: &mut Network<'_>, seconds: u64) {
    let until = network.world.now() + Duration::from_secs(seconds);
    network.world.run_until(until);
}

/// Lets the border router send something to motes 1 and 2, so many seconds for each.
fn speak_to_both(network: &mut Network<'_>, seconds: u64) {
    for n in [1, 2] {
        let addr = network.addr(n);
        network
            .world
            .with_node(0, |node, _| node.send_datagram((addr, 9), 9, b"any"))
            .unwrap();
        run(network, seconds);
    }
}

/// The key sequence of each node.
fn sequences(network: &Network<'_>) -> Vec<u32> {
    let macs = (0..4).map(|n| network.mac(n).and_then(|mac| mac.security()));
    macs.map(|it| it.unwrap().sequence()).collect()
}

#[test]
fn all_but_a_revoked_mote_get_another_network_key() {
    let arena = Arena::new();
    let mut network = revoking(&arena);
    // The announcement takes a second; advertisements carry the others along.
    run(&mut network, 20);
    speak_to_both(&mut network, 2);
    assert_eq!(sequences(&network), [16, 16, 16, 0]);

    // What it has got outlives a reboot, and what it has missed is not made up for.
    for n in [2, 3] {
        network.switch_off(n);
        run(&mut network, 1);
        network.switch_on(n, &arena);
    }
    run(&mut network, 60);
    assert_eq!(sequences(&network), [16, 16, 16, 0]);
    assert!(network.world.node(2).global_address().is_some());
    assert!(network.world.node(3).global_address().is_none());
}

/// `motet keys rotate` a moment after `motet keys revoke`, or a rotation that is due then.
#[test]
fn a_link_key_taken_while_motes_are_told_of_another_network_key_cuts_nobody_off() {
    for later in [1, 16, 20] {
        let arena = Arena::new();
        let mut network = revoking(&arena);
        // Some have been told by then, or all.
        run(&mut network, if later == 1 { 0 } else { 5 });
        network.rotate_key(later);
        run(&mut network, 10);
        speak_to_both(&mut network, 5);
        let sequences = sequences(&network);
        let reached = later.max(16);
        assert_eq!(sequences[..3], [reached; 3], "{later}: {sequences:?}");
        assert!(sequences[3] < 16, "{later}: {sequences:?}");
    }
}

#[test]
fn motes_with_a_key_from_the_start_are_given_no_other() {
    let arena = Arena::new();
    let options = NetworkOptions {
        security: Some(SecurityOptions::new(NetworkKey::new([1; 16]), 0)),
        ..fork(Joining::Static)
    };
    let mut network = Network::new(options, &arena).unwrap();
    assert!(!network.replace_key((NetworkKey::new([2; 16]), 0), |_| false));
}
