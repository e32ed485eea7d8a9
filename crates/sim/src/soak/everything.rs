//! A network with all of Motet on, in half of the networks that a soak runs.
//!
//! Purpose: faults and attackers where the parts meet: an RPL mesh with a key and leaves asleep,
//! frames forwarded as they come, compressed headers, a pace that is measured, ECN, a border router
//! with a policy and a queue for each flow, and motes on Bluetooth LE with TCPlE beside the mesh.
//! Place: `mesh` takes it in place of a network of parts; `lab` runs and judges it like any other.
//! Left out: what everything brings together, which the experiment `combined-all` judges.

use motet::ble::Phy;
use motet::link::{Forwarding, Relaying};
use motet::mac::poll::{REST, REST_REACHABLE};
use motet::mac::{Policy, Sleep};
use motet::tcphc;

use super::dice::Dice;
use super::parts;
use crate::air::gains::{ChainAir, Gains, LogDistance};
use crate::air::profile::Profile;
use crate::net::attack::Forgery;
use crate::net::network::{BleOptions, Joining, NetworkOptions, NodeOptions, Parent};

/// The network of this seed, before outsiders come; none in half of the cases.
pub(super) fn network(seed: u64) -> Option<NetworkOptions> {
    let mut dice = Dice::new(seed, ALL_ON);
    if !dice.chance(0.5) {
        return None;
    }
    let in_mesh = dice.range(IN_MESH_MIN, IN_MESH_MAX) as usize;
    let on_ble = dice.range(1, NODES_MAX - in_mesh as u32) as usize;
    let nodes = nodes(&mut dice, in_mesh + on_ble);
    let gains = gains(&mut dice, &nodes, seed, in_mesh);
    let mut options = NetworkOptions::new(nodes, gains);
    for node in options.nodes.iter_mut().skip(in_mesh) {
        (node.is_ble, node.parent) = (true, Parent::Node(0));
    }
    options.seed = seed;
    options.joining = Joining::Rpl;
    options.hosts = parts::hosts(&mut dice);
    options.frame_loss = f64::from(dice.range(0, 10)) / 100.0;
    options.thins_acks = true;
    options.queues_flows = true;
    options.fairness = Some(motet_taim::Config::new(motet_taim::Policy::Auto));
    options.ble = Some(BleOptions {
        phy: dice.pick(&[Phy::Le1M, Phy::Le2M]),
        interval: dice.scale(6 * on_ble as u32, 200) as u16,
        tcple_motes: usize::MAX,
        ..BleOptions::DEFAULT
    });
    put_leaves_to_sleep(&mut options, &mut dice);
    parts::give_key(&mut options, &mut dice);
    // Of every kind, beside nodes of the mesh.
    for _ in 0..dice.range(0, 2) {
        let attacker = parts::attacker(&mut dice, in_mesh, &Forgery::ALL, 0.3);
        options.attackers.push(attacker);
    }
    Some(options)
}

/// Nodes alike, all of whose parts are on.
fn nodes(dice: &mut Dice, count: usize) -> Vec<NodeOptions> {
    let profile = dice.pick(&[Profile::HAMILTON, Profile::NRF52840]);
    let node = |n: usize| {
        let mut node = NodeOptions::new(n.to_string());
        node.profile = profile;
        node.relaying = Relaying::Fragments;
        node.forwarding = Forwarding::Immediate;
        node.compression = Some(tcphc::Mode::Default);
        node.pace_percent = 100;
        node
    };
    let mut nodes: Vec<_> = (0..count).map(node).collect();
    for node in &mut nodes {
        node.tags_wrap = dice.chance(0.3);
    }
    nodes
}

/// An office where every mote of the mesh has a path; a chain where twenty floors have none.
fn gains(dice: &mut Dice, nodes: &[NodeOptions], seed: u64, in_mesh: usize) -> Gains {
    let heard = |gains: Gains| gains.apart(|n| n >= in_mesh, None);
    let floors = (0..TRIES).map(|_| {
        let mut place = || f64::from(dice.range(0, FLOOR_M));
        let positions: Vec<[f64; 2]> = nodes.iter().map(|_| [place(), place()]).collect();
        heard(Gains::log_distance(&positions, LogDistance::OFFICE, seed))
    });
    let holds = |gains: &Gains| {
        let options = NetworkOptions::new(nodes.to_vec(), gains.clone());
        options.without_path().iter().all(|node| *node >= in_mesh)
    };
    let floor = floors.into_iter().find(holds);
    floor.unwrap_or_else(|| heard(Gains::chain(nodes.len(), ChainAir::CALIBRATED)))
}

/// Lets half of the leaves sleep until they have something to ask.
fn put_leaves_to_sleep(options: &mut NetworkOptions, dice: &mut Dice) {
    let Ok(tree) = options.tree() else {
        return;
    };
    for (n, node) in options.nodes.iter_mut().enumerate().skip(1) {
        if !node.is_ble && tree.children(n) == 0 && dice.chance(0.5) {
            let rest = dice.pick(&[REST, REST_REACHABLE]);
            node.sleep = Some(Sleep::new(Policy::Hinted(rest)));
        }
    }
}

/// A separate random stream for networks with everything on.
const ALL_ON: u64 = 21;

/// Nodes in all, the border router included, and those of the mesh.
const NODES_MAX: u32 = 12;
const IN_MESH_MIN: u32 = 5;
const IN_MESH_MAX: u32 = 10;

/// The side of a floor, m.
const FLOOR_M: u32 = 150;

/// Floors that are tried until one holds together.
const TRIES: usize = 20;
