//! Meshes that form themselves: their faults, and the checks after all faults have ended.
//!
//! Place: `lab` calls this in runs whose motes find their parents by RPL.
//! Left out: the time of a repair, which the experiments `mesh-*` judge.

use motet::time::{Duration, Instant};

use super::dice::Dice;
use crate::air::gains::{Gains, Later};
use crate::air::radio::OFF_MIN;
use crate::net::moves;
use crate::net::network::Network;
use crate::net::plan;
use crate::net::run::{self, Next};

/// A fault of a network in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Breakage {
    /// A node is off for so long.
    Off(usize, Duration),
    /// Two nodes hear each other worse for so long.
    Link([usize; 2], Duration),
}

/// A fault in a mesh of `nodes` nodes, which is mended before `end`.
pub(super) fn draw(dice: &mut Dice, nodes: usize, [now, end]: [Instant; 2]) -> Option<Breakage> {
    let len = OFF_MIN + dice.scale_ms(100, 120_000);
    let len = len.min(end.since(now));
    let last = nodes as u32 - 1;
    let [from, to] = [(); 2].map(|()| dice.range(0, last) as usize);
    let is_link = dice.chance(0.5) && from != to;
    (len >= OFF_MIN).then_some(match is_link {
        true => Breakage::Link([from, to], len),
        false => Breakage::Off(from, len),
    })
}

/// Changes of the gains between two nodes, both ways, and back.
pub(super) fn link_changes(
    gains: &Gains,
    [a, b]: [usize; 2],
    dice: &mut Dice,
    [from, until]: [Instant; 2],
) -> Vec<Later> {
    let loss_db = dice.pick(&[6.0, 20.0, f64::INFINITY]);
    let mut changes = Vec::new();
    for (from_node, to) in [(a, b), (b, a)] {
        if let Some(db) = gains.get(from_node, to) {
            let change = |at, db| Later {
                at,
                from: from_node,
                to,
                db,
            };
            changes.extend([change(from, db - loss_db), change(until, db)]);
        }
    }
    changes
}

/// Lets a mesh of `nodes` nodes in which nothing is broken any more find its paths, then rest for
/// longer than any route lives. `is_misled`: somebody has spoken in the names of others, and was
/// believed.
///
/// # Errors
/// Which mote has no way up, or is not where the border router believes it.
pub(super) fn check(
    network: &mut Network<'_>,
    nodes: usize,
    is_misled: bool,
) -> Result<(), String> {
    let misled = match is_misled {
        true => REPEATED_WITHIN,
        false => Duration::ZERO,
    };
    for wait in [MENDED_WITHIN + misled, Duration::ZERO] {
        let until = network.world.now() + wait;
        let mut wrong = None;
        let is_well = run::run(network, until + SETTLED_WITHIN, |network| {
            wrong = fault_of(network, nodes);
            match wrong {
                None => Next::Over,
                Some(_) => Next::At(network.world.now() + LOOK_EVERY),
            }
        });
        if let (false, Some(wrong)) = (is_well, wrong) {
            return Err(wrong);
        }
        network.world.run_until(network.world.now() + AT_REST);
    }
    Ok(())
}

/// The fault of the tree, if it has one.
fn fault_of(network: &Network<'_>, nodes: usize) -> Option<String> {
    for mote in 1..nodes {
        let Some(way) = moves::way_up(network, mote) else {
            return Some(format!("mote {mote} has no way up"));
        };
        let parent = way.first().copied();
        // Lossless: nodes have 16-bit numbers.
        let iid = |node: usize| plan::link_addr(node as u16).iid();
        let mut steps = network.world.node(0).routes_down();
        let step = steps.find(|step| step.child == iid(mote));
        match (step, parent) {
            (Some(step), Some(parent)) if step.parent == iid(parent) => {}
            (None, _) => return Some(format!("the border router knows no way to mote {mote}")),
            (Some(_), parent) => {
                return Some(format!(
                    "the border router has another parent of mote {mote} than {parent:?}"
                ));
            }
        }
    }
    None
}

/// The longest time that a mesh takes to find its paths after the last fault: after a rejected DAO
/// a mote waits a minute and a half before the next one.
const MENDED_WITHIN: Duration = Duration::from_secs(600);

/// The time after which a mote has sent its DAO again although an attacker has ended its route, or
/// has acknowledged the DAO in the root's name: half of the route's lifetime, and up to half of
/// that again.
pub(super) const REPEATED_WITHIN: Duration = Duration::from_secs(30 * 60 / 2 * 3 / 2);

/// The further time within which a check may still succeed: a parent may just have changed.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);

/// Two lifetimes of a route.
const AT_REST: Duration = Duration::from_secs(60 * 60);

const LOOK_EVERY: Duration = Duration::from_secs(1);
