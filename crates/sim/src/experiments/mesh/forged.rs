//! The harm that forged messages do to a mesh, with a key and without one.
//!
//! An attacker stands beside the relay that most motes are behind, and sends one kind of message
//! from the beginning to the end. After the mesh has had time to form, the host sends echo requests
//! to one mote after the other. The loss is compared with that of the same floor without an
//! attacker. Left out: several attackers at once, and attackers that react to frames that they
//! hear.

use std::sync::Arc;

use motet::mac::security::NetworkKey;
use motet::time::Duration;

use super::measure::{echo_reply, echo_request};
use super::runs;
use crate::Arena;
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Case, Results};
use crate::net::attack::{AttackOptions, Forgery, Frames};
use crate::net::network::{Host, Network, NetworkOptions, SecurityOptions};
use crate::net::outages::Outages;
use crate::net::run::{self, Next};

/// A floor, and what is forged on it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Forged {
    attack: Option<(Forgery, u64)>,
    key: Option<SecurityOptions>,
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for key in KEYS {
        cases.push(case(NONE, 0, key));
        for (name, _) in kinds() {
            for rate in rates(key) {
                cases.push(case(name, *rate, key));
            }
        }
    }
    cases
}

/// A criterion for each attack on a mesh with a key; what an open one loses is shown.
pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let lost = |point: &Point| results.mean_of(point, |run| run.figure(LOST));
    let mut rows = Vec::new();
    for key in KEYS {
        let without = point(NONE, 0, key);
        for (name, _) in kinds() {
            for rate in rates(key) {
                let point = point(name, *rate, key);
                let value = lost(&point) - lost(&without);
                let row = results.derived(point, ("lost_to_forgeries", "1"), value);
                rows.push(match key {
                    OPEN => row,
                    _ => results.judged_in_full(row.at_most(0.01)),
                });
            }
        }
    }
    for key in KEYS {
        let point = point(NONE, 0, key);
        let value = lost(&point);
        rows.push(results.derived(point, ("lost", "1"), value));
    }
    rows
}

/// The forgeries: all that change what a node knows of its neighbours and its way.
fn kinds() -> impl Iterator<Item = (&'static str, Forgery)> {
    let is_control = |kind: Forgery| {
        let is_discovery = matches!(
            kind,
            Forgery::RouterAdvertisement | Forgery::Solicitation | Forgery::Refusal
        );
        is_discovery || kind.is_routing()
    };
    Forgery::ALL
        .into_iter()
        .filter(move |(_, kind)| is_control(*kind))
}

fn rates(key: &str) -> &'static [u64] {
    if key == OPEN { &[1, 10] } else { &[10] }
}

fn point(attack: &'static str, rate: u64, key: &'static str) -> Point {
    let point = Point::default().with("nodes", MOTES);
    let point = point.with("key", key).with("attack", attack);
    point.with("rate", rate)
}

fn case(attack: &'static str, rate: u64, key: &'static str) -> Case {
    let kind = kinds().find(|(name, _)| *name == attack);
    let forged = Forged {
        attack: kind.map(|(_, kind)| (kind, rate)),
        key: (key != OPEN).then_some(KEY),
    };
    Case {
        point: point(attack, rate, key),
        // A floor is no chain: of this, runs take nothing.
        setup: Setup::hops(1),
        traffic: Arc::new(forged),
    }
}

impl Traffic for Forged {
    fn run(&self, _: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let mut options = runs::mesh(MOTES, seed, Host::Outside)?;
        options.security = self.key;
        let near = relay(&options);
        options.attackers = self
            .attack
            .into_iter()
            .map(|(kind, per_s)| AttackOptions {
                near,
                // Lossless: rates are small.
                per_s: per_s as f64,
                frames: Frames::Forged(kind),
                is_elsewhere: false,
            })
            .collect();
        let arena = Arena::new();
        let mut network = runs::network(options, &arena)?;
        let (mut outages, on) = Outages::staggered(&mut network, runs::SWITCHED_ON_WITHIN);
        run::run(&mut network, on + FORMED_AFTER, |network| {
            outages.pass(network, &arena, |_, _, _| {});
            Next::At(outages.next_at().unwrap_or(on + FORMED_AFTER))
        });
        Ok(Run {
            figures: vec![(LOST, lost(&mut network, seconds))],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The share of the host's echo requests that stay unanswered; the motes get requests in turn.
fn lost(network: &mut Network<'_>, seconds: u64) -> f64 {
    let motes = network.mesh_nodes() - 1;
    let start = network.world.now();
    let end = start + Duration::from_secs(seconds);
    let mut next = start;
    let mut asked: Vec<bool> = Vec::new();
    run::run(network, end + LAST_ON_ITS_WAY, |network| {
        while let Some(packet) = network.world.take_packet() {
            let Some((from, number)) = echo_reply(&packet) else {
                continue;
            };
            let number = usize::from(number);
            let is_of_asked = from == network.addr(1 + number % motes);
            if let Some(answered) = asked.get_mut(number).filter(|_| is_of_asked) {
                *answered = true;
            }
        }
        if network.world.now() >= next && next < end {
            let to = network.addr(1 + asked.len() % motes);
            // Lossless: a run has some thousand requests.
            network
                .world
                .inject_packet(&echo_request(to, asked.len() as u16));
            asked.push(false);
            next += ASK_EVERY;
        }
        let look = network.world.now() + LOOK_EVERY;
        Next::At(if next < end { next.min(look) } else { look })
    });
    let lost = asked.iter().filter(|answered| !**answered).count();
    lost as f64 / asked.len().max(1) as f64
}

/// The neighbour of the border router that most motes are behind.
fn relay(options: &NetworkOptions) -> usize {
    let Ok(tree) = options.tree() else {
        return 1;
    };
    let mut behind = vec![0; options.nodes.len()];
    for mote in 1..options.nodes.len() {
        let mut at = mote;
        while let Some(parent) = tree.parent(at).filter(|parent| *parent > 0) {
            at = parent;
        }
        behind[at] += 1;
    }
    let motes = 1..options.nodes.len();
    motes.max_by_key(|mote| behind[*mote]).unwrap_or(1)
}

/// Any key: it is no secret here.
const KEY: SecurityOptions = SecurityOptions::new(NetworkKey::new(*b"motet experiment"), 0);

const OPEN: &str = "none";
const KEYS: [&str; 2] = [OPEN, "mic32"];
const NONE: &str = "none";
const LOST: &str = "lost";
const MOTES: u64 = 30;

/// A mesh that nobody disturbs has formed by then.
const FORMED_AFTER: Duration = Duration::from_secs(60);

/// From one request to the next.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// An answer that has not come by then is lost.
const LAST_ON_ITS_WAY: Duration = Duration::from_secs(5);

/// How often the host looks for answers.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    /// Echo requests lost on one floor, in a minute.
    fn lost_beside(kind: Option<(Forgery, u64)>, key: Option<SecurityOptions>, seed: u64) -> f64 {
        let forged = Forged { attack: kind, key };
        let run = forged.run(&Setup::hops(1), seed, 60).expect("a floor");
        run.figure(LOST)
    }

    /// The share of the 240 requests that is lost because of an attacker is at most the one
    /// measured before, with a margin for chance.
    #[test]
    fn one_forged_version_or_mode_a_second_takes_little_of_a_mesh() {
        for seed in [1, 2] {
            let without = lost_beside(None, None, seed);
            for (kind, most) in [
                (Forgery::Version, 0.04),
                (Forgery::Mode, 0.02),
                (Forgery::Prefix, 0.02),
            ] {
                let lost = lost_beside(Some((kind, 1)), None, seed) - without;
                assert!(lost <= most, "{kind:?}, seed {seed}: {lost}");
            }
        }
    }

    /// A forged DAO names one mote, and takes as much as there are motes behind that one: nothing
    /// on most floors, some percent on a few. On forty floors the mean is 1.6 %.
    #[test]
    fn one_forged_dao_a_second_takes_little_of_most_meshes() {
        let seeds = 1..=20;
        let lost = seeds.clone().map(|seed| {
            let without = lost_beside(None, None, seed);
            lost_beside(Some((Forgery::Dao, 1)), None, seed) - without
        });
        let lost: Vec<f64> = lost.collect();
        let mean = lost.iter().sum::<f64>() / seeds.count() as f64;
        assert!(mean <= 0.03, "{lost:?}");
    }

    /// A DAO that ends a route is believed until the root has asked: how much that takes depends on
    /// how many motes are behind the one that is named.
    #[test]
    fn forged_ends_of_routes_leave_a_mesh_a_third_at_least() {
        for (seed, most) in [(1, 0.68), (2, 0.1)] {
            let without = lost_beside(None, None, seed);
            let lost = lost_beside(Some((Forgery::NoPath, 1)), None, seed) - without;
            assert!(lost <= most, "seed {seed}: {lost}");
        }
    }

    #[test]
    fn a_key_ends_what_forgeries_take() {
        let without = lost_beside(None, Some(KEY), 1);
        for (_, kind) in kinds() {
            let lost = lost_beside(Some((kind, 10)), Some(KEY), 1) - without;
            assert!(lost <= 0.02, "{kind:?}: {lost}");
        }
    }
}
