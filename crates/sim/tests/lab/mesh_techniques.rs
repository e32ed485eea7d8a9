//! What makes transfers faster on given routes works over those that RPL finds: compressed TCP
//! headers, frames that wait in the radio, several channels, marks of congestion.

use std::collections::BTreeSet;

use motet::ip::queue::{Discipline, Red};
use motet::link::{Forwarding, Link};
use motet::mac::{Channels, Mac};
use motet::tcphc;
use motet::time::Duration;
use motet_lab::Arena;
use motet_lab::air::gains::{ChainAir, Gains};
use motet_lab::air::profile::Profile;
use motet_lab::apps::content::Content;
use motet_lab::apps::{App, Receiver, Sender};
use motet_lab::capture::{Capture, Records};
use motet_lab::net::network::{Joining, Network, NetworkOptions, NodeOptions, RADIO};

/// Two hops away from the border router, the parent of both senders; only neighbours hear it.
const RELAY: usize = 2;
const NODES: usize = 5;
const SENDERS: [usize; 2] = [3, 4];

/// Bytes of each transfer.
const LEN: u64 = 60_000;

#[derive(Clone, Copy, Default, Debug)]
struct Techniques {
    tcphc: bool,
    cit: bool,
    channels: bool,
    red: bool,
}

/// What a run has shown of each.
#[derive(Debug)]
struct Shown {
    compressed: u32,
    restored: u32,
    fired: u32,
    channels: BTreeSet<u8>,
    marked: u32,
}

fn options(with: Techniques, seed: u64) -> NetworkOptions {
    let near = ChainAir::CALIBRATED.one_hop_db;
    let gains = Gains::from_fn(NODES, |a, b| match (a.min(b), a.max(b)) {
        (0, 1) | (1, RELAY) | (RELAY, 3 | 4) => near,
        _ => f64::NEG_INFINITY,
    });
    let nodes = (0..NODES).map(|n| {
        let mut node = NodeOptions::new(n.to_string());
        node.profile = Profile::NRF52840;
        if with.tcphc {
            node.compression = Some(tcphc::Mode::default());
        }
        if with.cit {
            node.forwarding = Forwarding::Immediate;
            node.pacing_step = Duration::from_millis(4);
        }
        if with.channels {
            node.mac.channels = Channels::ALL;
        }
        if with.red {
            node.discipline = Discipline::Red(Red::new(0, 2, 1, true));
        }
        node
    });
    NetworkOptions {
        seed,
        joining: Joining::Rpl,
        ..NetworkOptions::new(nodes.collect(), gains)
    }
}

fn mac<'a, 'm>(network: &'a Network<'m>, node: usize) -> &'a Mac<'m> {
    match network.world.node(node).link(RADIO) {
        Some(Link::Mesh(mesh)) => mesh.mac(),
        _ => panic!("node {node} has a radio"),
    }
}

/// Two transfers up, one down, all at once; every byte is compared.
fn run(with: Techniques, seed: u64) -> Shown {
    let arena = Arena::new();
    let mut network = Network::new(options(with, seed), &arena).unwrap();
    let name = format!(
        "motet-mesh-techniques-{}-{with:?}-{seed}.pcap",
        std::process::id()
    );
    let path = std::env::temp_dir().join(name);
    let capture = Capture::create(&path, Records::TappedFrames, true).unwrap();
    network.world.set_capture(Some(capture));
    assert!(network.join(Duration::from_secs(60)), "{with:?}");
    let host = network.host(0).unwrap();
    let transfers = [
        (SENDERS[0], host, 4_000),
        (SENDERS[1], host, 4_001),
        (host, SENDERS[0], 4_002),
    ];
    let mut apps = Vec::new();
    for (from, to, port) in transfers {
        let content = || Content::made([seed, u64::from(port)], LEN);
        let ends = network.ends(to, network.addr(from), &arena);
        let receiver = Receiver::checking(port, ends, content());
        let remote = (network.addr(to), port);
        let ends = network.ends(from, remote.0, &arena);
        let sender = Sender::new(content(), remote, ends);
        let receiver = network.world.add_app(to, App::Receiver(receiver));
        let sender = network.world.add_app(from, App::Sender(sender));
        apps.push([(to, receiver), (from, sender)]);
    }
    let until = network.world.now() + Duration::from_secs(300);
    network.world.run_until(until);
    for (at, [(to, receiver), (from, sender)]) in apps.into_iter().enumerate() {
        let App::Receiver(receiver) = &network.world.apps(to)[receiver] else {
            panic!("the receiver")
        };
        let case = format!("{with:?} seed {seed}, transfer {at}");
        assert_eq!(
            (receiver.received, receiver.differs_at),
            (LEN, None),
            "{case}"
        );
        let App::Sender(sender) = &network.world.apps(from)[sender] else {
            panic!("the sender")
        };
        assert_eq!(sender.progress.lost, 0, "{case}");
    }
    network.world.take_capture().unwrap().finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let headers = |node: usize| match network.world.node(node).link(RADIO) {
        Some(Link::Mesh(mesh)) => mesh.tcphc().map(|it| it.counters().clone()),
        _ => None,
    };
    let ends = [0, SENDERS[0], SENDERS[1]].map(|node| headers(node).unwrap_or_default());
    let relays = [1, RELAY];
    Shown {
        compressed: ends.iter().map(|counters| counters.sent[2]).min().unwrap(),
        restored: ends.iter().map(|counters| counters.restored).min().unwrap(),
        fired: relays
            .map(|node| mac(&network, node).counters().immediate)
            .into_iter()
            .min()
            .unwrap(),
        channels: channels(&bytes),
        marked: relays
            .map(|node| network.world.node(node).ip().counters.marked)
            .iter()
            .sum(),
    }
}

/// The channels of the frames in a capture of link type 283.
fn channels(capture: &[u8]) -> BTreeSet<u8> {
    let u16_at = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let mut found = BTreeSet::new();
    let mut rest = &capture[24..];
    while let Some((record, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize;
        let (packet, next) = after.split_at(len);
        let mut options = &packet[4..usize::from(u16_at(packet, 2))];
        while let Some((head, value)) = options.split_at_checked(4) {
            let padded = usize::from(u16_at(head, 2)).next_multiple_of(4);
            // Channel assignment: number and page.
            if u16_at(head, 0) == 3 {
                found.insert(value[0]);
            }
            options = &value[padded..];
        }
        rest = next;
    }
    found
}

const NONE: Techniques = Techniques {
    tcphc: false,
    cit: false,
    channels: false,
    red: false,
};

#[test]
fn without_any_of_them_none_shows() {
    let shown = run(NONE, 1);
    assert_eq!((shown.compressed, shown.restored), (0, 0), "{shown:?}");
    assert_eq!((shown.fired, shown.marked), (0, 0), "{shown:?}");
    assert_eq!(shown.channels.len(), 1, "{shown:?}");
}

#[test]
fn tcp_headers_are_compressed_over_rpl() {
    let with = Techniques {
        tcphc: true,
        ..NONE
    };
    for seed in 1..=2 {
        let shown = run(with, seed);
        assert!(shown.compressed > 50 && shown.restored > 50, "{shown:?}");
    }
}

#[test]
fn frames_that_wait_in_the_radio_are_fired_over_rpl() {
    let with = Techniques { cit: true, ..NONE };
    for seed in 1..=2 {
        let shown = run(with, seed);
        assert!(shown.fired > 50, "{shown:?}");
    }
}

#[test]
fn a_mesh_of_several_channels_forms_itself() {
    let with = Techniques {
        channels: true,
        ..NONE
    };
    for seed in 1..=2 {
        let shown = run(with, seed);
        assert!(shown.channels.len() >= 3, "{shown:?}");
    }
}

#[test]
fn relays_mark_congestion_over_rpl() {
    let with = Techniques { red: true, ..NONE };
    for seed in 1..=2 {
        let shown = run(with, seed);
        assert!(shown.marked > 3, "{shown:?}");
    }
}

#[test]
fn all_of_them_work_together_over_rpl() {
    let with = Techniques {
        tcphc: true,
        cit: true,
        channels: true,
        red: true,
    };
    for seed in 1..=3 {
        let shown = run(with, seed);
        assert!(shown.compressed > 50 && shown.restored > 50, "{shown:?}");
        assert!(shown.fired > 50 && shown.marked > 3, "{shown:?}");
        assert!(shown.channels.len() >= 3, "{shown:?}");
    }
}
