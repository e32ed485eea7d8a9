//! Counters from one run to the next, and a disk that refuses meanwhile.

use std::fs;
use std::path::Path;

use motet::mac::FrameDrop;
use motet::mac::security::NetworkKey;
use motet::time::Duration;
use motet_state::{Counters, KeyName, Past};

use crate::Arena;
use crate::keys::{self, JoinSecret};
use crate::net::chain::ChainOptions;
use crate::net::counter_store::CounterStore;
use crate::net::network::{Network, NetworkOptions, SecurityOptions};
use crate::net::plan;

const KEY: [u8; 16] = [1; 16];

fn counters(folder: &Path) -> Counters {
    Counters::open(folder, KeyName::of(&KEY), "lab").unwrap()
}

fn counter_store(folder: &Path) -> CounterStore {
    let nodes = (0..3).map(plan::eui64);
    CounterStore::begin(counters(folder), 0, nodes, |_| {}).unwrap()
}

/// A chain of two hops with a key, whose motes have joined.
fn joined<'m>(folder: &Path, security: SecurityOptions, arena: &'m Arena) -> Network<'m> {
    let chain = ChainOptions {
        hops: 2,
        security: Some(security),
        ..ChainOptions::default()
    };
    let options = NetworkOptions {
        counter_store: Some(counter_store(folder)),
        ..chain.network()
    };
    let mut network = Network::new(options, arena).unwrap();
    assert!(network.join(Duration::from_secs(120)));
    network
}

fn pasts(folder: &Path) -> Vec<Past> {
    let counters = counters(folder);
    (0..3).map(|n| counters.past(plan::eui64(n))).collect()
}

/// Of each node: the last counter that another one has believed.
fn heard(network: &Network<'_>) -> Vec<([u8; 8], u32)> {
    let securities = (0..3).filter_map(|n| network.mac(n)?.security());
    securities
        .flat_map(motet::mac::security::Security::neighbours)
        .collect()
}

#[test]
fn a_run_begins_behind_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let security = SecurityOptions::new(NetworkKey::new(KEY), 0);
    let mut before = vec![Past::default(); 3];
    for _ in 0..3 {
        let arena = Arena::new();
        let network = joined(folder, security, &arena);
        let heard = heard(&network);
        assert!(heard.len() >= 4, "{heard:?}");
        drop(network);
        let after = pasts(folder);
        for n in 0..3 {
            let (from, to) = (before[n].counter, after[n].counter);
            // Lossless: three nodes.
            let own = heard
                .iter()
                .filter(|(eui64, _)| *eui64 == plan::eui64(n as u16));
            for (_, counter) in own {
                assert!((from..to).contains(counter), "{from} to {to}: {counter}");
            }
        }
        before = after;
    }
}

/// Pledges and their registrar use each number of their messages once, over all runs.
#[test]
fn messages_of_joining_have_numbers_of_their_own_in_each_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let secret = JoinSecret::new([0x5a; keys::SECRET_LEN]);
    let security = SecurityOptions::new(NetworkKey::new(KEY), 0).joined_by(secret);
    let mut before = [0; 3];
    for run in 1..4 {
        let arena = Arena::new();
        let mut network = joined(folder, security, &arena);
        let next = (NetworkKey::new([2; 16]), 0);
        assert!(network.replace_key(next, |_| false));
        let until = network.world.now() + Duration::from_secs(5);
        network.world.run_until(until);
        drop(network);
        let numbers: Vec<u32> = pasts(folder).iter().map(|past| past.number).collect();
        for (number, before) in numbers.iter().zip(before) {
            assert!(*number > before, "run {run}: {numbers:?}");
        }
        before = numbers.try_into().unwrap();
    }
}

/// While the disk takes nothing, nothing is sent beyond what it has; when it does again, the mesh
/// goes on.
#[test]
fn a_disk_that_refuses_stops_a_node_at_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let arena = Arena::new();
    let security = SecurityOptions::new(NetworkKey::new(KEY), 0);
    let mut network = joined(folder, security, &arena);
    // A folder that is not there takes no file.
    let (place, away) = (folder.join("counters"), folder.join("away"));
    fs::rename(&place, &away).unwrap();
    let to = network.addr(1);
    let no_counter = |network: &Network<'_>| {
        let mac = network.mac(0).unwrap();
        mac.counters().dropped(FrameDrop::NoCounter)
    };
    let speak = |network: &mut Network<'_>| {
        network.world.with_node(0, |node, _| {
            let _ = node.send_datagram((to, 9), 9, b"any");
        });
        let until = network.world.now() + Duration::from_millis(4);
        network.world.run_until(until);
    };
    let mut spoken = 0;
    while no_counter(&network) == 0 {
        speak(&mut network);
        spoken += 1;
        assert!(spoken < 20_000, "it stops");
    }
    let bound = 8_192;
    let own = |network: &Network<'_>| {
        let of_router = heard(network).into_iter();
        let of_router = of_router.filter(|(eui64, _)| *eui64 == plan::eui64(0));
        of_router.map(|(_, counter)| counter).max().unwrap()
    };
    assert_eq!(own(&network), bound - 1);
    for _ in 0..5_000 {
        speak(&mut network);
    }
    assert_eq!(own(&network), bound - 1, "nothing was sent since");
    fs::rename(&away, &place).unwrap();
    for _ in 0..5_000 {
        speak(&mut network);
    }
    assert!(own(&network) > bound, "it goes on");
    drop(network);
    assert!(pasts(folder)[0].counter > bound);
}
