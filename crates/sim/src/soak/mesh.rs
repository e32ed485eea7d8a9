//! The network of a run.

use motet::ble::Phy;
use motet::link::{Forwarding, IndirectConfig, Relaying};
use motet::mac::poll::REST;
use motet::mac::{Channels, Policy, Sleep};
use motet::tcphc;
use motet::time::Duration;

use super::dice::Dice;
use super::everything;
use super::outsiders::Outsiders;
use super::parts;
use crate::air::gains::{ChainAir, Gains, LogDistance};
use crate::air::profile::Profile;
use crate::net::attack::{AttackOptions, Forgery, Frames};
use crate::net::network::{BleOptions, Joining, NetworkOptions, NodeOptions, Parent, Tables, star};

/// A random network that holds together, and what outsiders do to it.
pub(super) fn network(dice: &mut Dice, seed: u64) -> (NetworkOptions, Option<Outsiders>) {
    let mut options = everything::network(seed).unwrap_or_else(|| undisturbed(dice, seed));
    let mut outsiders = Outsiders::of(seed);
    if let Some(outsiders) = &mut outsiders {
        outsiders.prepare(&mut options, seed);
    }
    (options, outsiders)
}

/// A random network before outsiders come.
fn undisturbed(dice: &mut Dice, seed: u64) -> NetworkOptions {
    let nodes = nodes(dice);
    let hosts = parts::hosts(dice);
    let frame_loss = f64::from(dice.range(0, 20)) / 100.0;
    // Drawn in every case, so that the other half of the runs is what it would be without RPL.
    let given = dice.pick(&[Joining::Advertised, Joining::Static]);
    let joining = match Dice::new(seed, RPL).chance(0.5) {
        true => Joining::Rpl,
        false => given,
    };
    let geometry = (0..TRIES).find_map(|_| {
        let mut place = || f64::from(dice.range(0, 150));
        let positions: Vec<[f64; 2]> = nodes.iter().map(|_| [place(), place()]).collect();
        let gains = Gains::log_distance(&positions, LogDistance::OFFICE, seed);
        let options = NetworkOptions::new(nodes.clone(), gains);
        options.tree().is_ok().then_some(options)
    });
    let mut options = geometry
        .filter(|_| dice.chance(0.5))
        .unwrap_or_else(|| chain(nodes));
    options.seed = seed;
    options.hosts = hosts;
    options.frame_loss = frame_loss;
    options.joining = joining;
    let mut dice = Dice::new(seed, BLUETOOTH);
    if dice.chance(0.2) {
        go_by_bluetooth(&mut options, &mut dice);
        return options;
    }
    let mut dice = Dice::new(seed, SLEEP);
    if dice.chance(0.3) {
        put_to_sleep(&mut options, &mut dice);
        trouble_sleepers(&mut options, &mut Dice::new(seed, SLEEPERS));
    }
    let mut dice = Dice::new(seed, PACE);
    if dice.chance(0.5) {
        let percent = dice.pick(&[100, 100, 40, 200]);
        for node in &mut options.nodes {
            node.pace_percent = percent;
        }
        options.thins_acks = dice.chance(0.7);
    }
    let mut dice = Dice::new(seed, SECURITY);
    let sleeps = options.nodes.iter().any(|node| node.sleep.is_some());
    // Not with sleeping RPL leaves; `docs/reference/soak.md` gives the reason.
    let is_free = !(sleeps && joining == Joining::Rpl);
    if dice.chance(0.4) && is_free {
        seal(&mut options, &mut dice);
    }
    options
}

/// Gives the mesh a key, and puts up to two attackers beside its nodes, which forge frames of any
/// kind or play back what they hear.
fn seal(options: &mut NetworkOptions, dice: &mut Dice) {
    parts::give_key(options, dice);
    for _ in 0..dice.range(0, 2) {
        // Messages of RPL mislead nobody elsewhere.
        let is_heard =
            |(_, kind): &(_, Forgery)| options.joining == Joining::Rpl || !kind.is_routing();
        let kinds: Vec<_> = Forgery::ALL.into_iter().filter(is_heard).collect();
        let attacker = parts::attacker(dice, options.nodes.len(), &kinds, 0.4);
        options.attackers.push(attacker);
    }
}

/// Makes every mote a peripheral of the border router, with any settings that the air has.
fn go_by_bluetooth(options: &mut NetworkOptions, dice: &mut Dice) {
    let motes = options.nodes.len() - 1;
    for (n, node) in options.nodes.iter_mut().enumerate() {
        node.parent = match n {
            0 => Parent::Shortest,
            _ => Parent::Node(0),
        };
        node.is_ble = n > 0;
    }
    options.gains = star(motes);
    if options.joining == Joining::Rpl {
        options.joining = Joining::Advertised;
    }
    let tcple_max = dice.pick(&[0, motes]) as u32;
    options.ble = Some(BleOptions {
        phy: dice.pick(&[Phy::Le1M, Phy::Le2M]),
        // 7.5 ms at least for each.
        interval: dice.scale(6 * motes as u32, 400) as u16,
        is_adaptive: dice.chance(0.7),
        latency: dice.pick(&[0, 0, 1, 10]),
        has_mic: dice.chance(0.5),
        tcple_motes: dice.range(0, tcple_max) as usize,
        ..BleOptions::DEFAULT
    });
}

/// Nodes that have radio, channels, forwarding and compression in common.
fn nodes(dice: &mut Dice) -> Vec<NodeOptions> {
    let count = dice.range(2, 6) as usize;
    let relaying = dice.pick(&[Relaying::Fragments, Relaying::Reassembly]);
    // Not the modes that trust a path to keep the order, nor the one that misreads.
    let forwarding = dice.pick(&[Forwarding::Copy, Forwarding::Immediate]);
    let compression = dice.pick(&[
        None,
        None,
        Some(tcphc::Mode::Default),
        Some(tcphc::Mode::Strict),
    ]);
    let profile = dice.pick(&[
        Profile::HAMILTON,
        Profile::HAMILTON.hearing(),
        Profile::NRF52840,
        Profile::RCP,
        Profile::TELOSB,
    ]);
    // What makes attempts by itself sends nothing at once.
    let forwarding = match profile.capabilities.assesses {
        true => Forwarding::Copy,
        false => forwarding,
    };
    let channels = dice.pick(&[
        Channels::SINGLE,
        Channels::SINGLE,
        Channels::ALL,
        Channels::of(&[11, 15, 26]),
    ]);
    let pacing_step = dice.pick(&[Duration::ZERO, Duration::from_millis(4)]);
    let mut node = |n: usize| {
        let mut node = NodeOptions::new(n.to_string());
        node.profile = profile;
        node.relaying = relaying;
        node.forwarding = forwarding;
        node.mac.channels = channels;
        node.pacing_step = pacing_step;
        node.compression = compression;
        node.mss_frames = dice.range(1, 8) as u8;
        node.mac.retry_delay_max = Duration::from_millis(u64::from(dice.range(0, 60)));
        // All attempts fall within the time that a repetition is known as one.
        node.mac.attempts_max = dice.range(3, 8) as u8;
        node.tags_wrap = dice.chance(0.3);
        node.tables = Tables {
            queue_frames: dice.range(8, 20) as usize,
            records: dice.range(4, 16) as usize,
            bodies: dice.range(1, 4) as usize,
            connections: dice.range(2, 6) as usize,
            half_open: dice.range(1, 4) as usize,
            ..Tables::RELAY
        };
        node
    };
    (0..count).map(&mut node).collect()
}

/// Lets motes without children sleep, if their parents' radios can set the frame pending bit.
fn put_to_sleep(options: &mut NetworkOptions, dice: &mut Dice) {
    let Ok(tree) = options.tree() else {
        return;
    };
    let (drain, data_asks) = (dice.chance(0.8), dice.chance(0.7));
    let (priority, retries) = (dice.chance(0.8), dice.chance(0.8));
    for (n, node) in options.nodes.iter_mut().enumerate() {
        let radio = node.profile.capabilities;
        if !radio.says_pending() {
            return;
        }
        node.indirect = IndirectConfig {
            drain,
            priority,
            retries,
            data_asks,
            ..IndirectConfig::DEFAULT
        };
        let policy = match dice.chance(0.5) {
            true => Policy::Adaptive,
            false => Policy::Fixed(dice.scale_ms(20, 2_000)),
        };
        if n > 0 && tree.children(n) == 0 && dice.chance(0.7) {
            node.sleep = Some(Sleep {
                drained: drain,
                rides: data_asks,
                alternates: drain,
                ..Sleep::new(policy)
            });
        }
    }
}

/// Lets some of the motes that sleep ask every four minutes at rest, so that some connections to
/// them time out. Puts an attacker beside a parent: it sends data requests in the names of the
/// parent's children, or in more names than the parent has places for.
fn trouble_sleepers(options: &mut NetworkOptions, dice: &mut Dice) {
    let Ok(tree) = options.tree() else {
        return;
    };
    let mut parents = Vec::new();
    for (n, node) in options.nodes.iter_mut().enumerate() {
        let Some(sleep) = &mut node.sleep else {
            continue;
        };
        parents.extend(tree.parent(n));
        if dice.chance(0.4) {
            sleep.policy = dice.pick(&[Policy::Paper, Policy::Hinted(REST)]);
        }
    }
    if parents.is_empty() || !dice.chance(0.6) {
        return;
    }
    options.attackers.push(AttackOptions {
        near: dice.pick(&parents),
        per_s: f64::from(dice.scale(1, 20)),
        frames: Frames::Forged(dice.pick(&[Forgery::Poll, Forgery::Children])),
        is_elsewhere: false,
    });
}

/// A network whose nodes form a chain.
fn chain(mut nodes: Vec<NodeOptions>) -> NetworkOptions {
    for (n, node) in nodes.iter_mut().enumerate() {
        node.parent = n.checked_sub(1).map_or(Parent::Shortest, Parent::Node);
    }
    let gains = Gains::chain(nodes.len(), ChainAir::CALIBRATED);
    NetworkOptions::new(nodes, gains)
}

/// Keeps the dice that say whether motes find their parents by RPL apart from others.
const RPL: u64 = 4;

/// Keeps the dice that say which motes sleep apart, too.
const SLEEP: u64 = 5;

/// Keeps the dice of what befalls those apart.
const SLEEPERS: u64 = 8;

/// Keeps the dice that say whether motes measure their pace apart, too.
const PACE: u64 = 6;

/// A separate random stream for the choice of Bluetooth LE.
const BLUETOOTH: u64 = 7;

/// A separate random stream for the key of the mesh and its attackers.
const SECURITY: u64 = 9;

/// Geometries that are tried until one holds together.
const TRIES: usize = 20;
