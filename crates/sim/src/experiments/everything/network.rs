//! A network with all parts of Motet at once, as a scenario: a floor for each seed, and the roles
//! of its motes.
//!
//! Purpose: the text of a scenario that `motet run` takes, too. `scenarios/everything.toml` is one
//! written by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::experiments::run::Failure;
use crate::experiments::testbed;
use crate::net::network::NetworkOptions;
use crate::net::topology::Tree;
use crate::scenario::{Overrides, Plan};

/// A part of Motet that can be left out, and the name of the point without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Tcphc,
    Cit,
    Pacing,
    Ecn,
    Admission,
    Queues,
    Hints,
    Tcple,
    Security,
}

impl Part {
    pub(super) const ALL: [(Self, &'static str); 9] = [
        (Self::Tcphc, "tcphc"),
        (Self::Cit, "cit"),
        (Self::Pacing, "pacing"),
        (Self::Ecn, "ecn"),
        (Self::Admission, "admission"),
        (Self::Queues, "queues"),
        (Self::Hints, "hints"),
        (Self::Tcple, "tcple"),
        (Self::Security, "security"),
    ];
}

/// Where the network stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A floor of the lab's own, all on one channel.
    Floor,
    /// The same floor, a home channel for each mote.
    Channels,
    /// The links of a testbed, as they were measured, with a node of the seed's as border router.
    Testbed,
}

/// What motes of a floor are chosen for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Roles {
    /// The seed of the floor.
    floor: u64,
    /// On Bluetooth LE.
    pub(super) on_ble: Vec<usize>,
    pub(super) asleep: Vec<usize>,
    /// Ends of bulk flows up, and down.
    pub(super) up: Vec<usize>,
    pub(super) down: Vec<usize>,
    pub(super) asked: Vec<usize>,
    /// Send datagrams to those that are asked: the host takes CoAP's alone.
    pub(super) datagrams: Vec<usize>,
    /// Gets an image over CoAP.
    pub(super) coap: usize,
    /// Relays that the others can do without, of which one dies; the likeliest last.
    pub(super) dies: Vec<usize>,
}

/// Motes of the mesh and on Bluetooth LE; those asleep.
const MOTES: usize = 33;
const ON_BLE: usize = 3;
const ASLEEP: usize = 6;
/// Bulk flows of the mesh, up and down: admission is for more than two that share the air.
const BULK_UP: usize = 4;
const BULK_DOWN: usize = 2;
const ASKED: usize = 3;
const DATAGRAMS: usize = 2;
/// Floors that a seed tries until one has a mote for each role.
const FLOORS_MAX: u64 = 64;

/// When a relay dies, s after all motes have joined; for good.
pub(super) const DIES_AT_S: u64 = 150;
/// When a link gets worse, and for how long.
pub(super) const WORSE_AT_S: u64 = 300;
pub(super) const WORSE_FOR_S: u64 = 100;

/// The scenario of a seed; none where no floor fits. What is left out changes neither the floor nor
/// the roles.
pub(super) fn scenario(
    seed: u64,
    (place, without): (Place, &[Part]),
    seconds: u64,
) -> Option<(String, Roles)> {
    (0..FLOORS_MAX).find_map(|n| {
        let floor = seed.wrapping_mul(FLOORS_MAX).wrapping_add(n) & i64::MAX as u64;
        // A mesh alone has no keys of Bluetooth LE.
        let probe = head(floor, (place, &[Part::Tcple]), seconds) + "[[flow]]\nfrom = 1\n";
        let plan = Plan::parse(&probe, Path::new(""), Overrides::default()).ok()?;
        let scenario = &plan.points.first()?.scenario;
        let roles = Roles::of(floor, &scenario.tree, &scenario.network)?;
        let text = |without: &[Part]| {
            let text = head(floor, (place, without), seconds) + &roles.text(without);
            match seconds > REBOOTS_AT_S {
                true => text + &reboot(),
                false => text,
            }
        };
        Plan::parse(&text(&[]), Path::new(""), Overrides::default()).ok()?;
        Some((text(without), roles))
    })
}

fn head(floor: u64, (place, without): (Place, &[Part]), seconds: u64) -> String {
    let has = |part| !without.contains(&part);
    let links = match place {
        Place::Floor | Place::Channels => format!("floor = {MOTES}\nfloor_hops = 4\n"),
        Place::Testbed => format!(
            "k7 = {:?}\nroot = {}\n",
            testbed::path().display().to_string(),
            floor % testbed::NODES
        ),
    };
    let channel = match place {
        Place::Floor => String::new(),
        Place::Channels => "channels = \"multi\"\n".into(),
        Place::Testbed => format!("channel = {}\n", testbed::CHANNEL),
    };
    let mut text = format!(
        "name = \"everything\"\nseed = {floor}\nduration_s = {seconds}\nwarmup_s = {WARMUP_S}\n\
         sample_s = 0.5\n[topology]\n{links}joining = \"rpl\"\n\
         [radio]\nprofile = \"nrf52840\"\n{channel}{}[stack]\necn = {}\npacing = \"{}\"\n\
         compression = \"{}\"\nforwarding = \"{}\"\n[router]\npolicy = \"{}\"\nflow_queues = {}\n\
         [wire]\nloss = {WIRE_LOSS}\n",
        if has(Part::Tcple) {
            "tcple = true\n"
        } else {
            ""
        },
        has(Part::Ecn),
        if has(Part::Pacing) { "auto" } else { "off" },
        if has(Part::Tcphc) { "tcphc" } else { "none" },
        if has(Part::Cit) { "cit" } else { "copy" },
        if has(Part::Admission) { "auto" } else { "none" },
        has(Part::Queues),
    );
    if has(Part::Security) {
        text += &format!("[security]\nlab_key = true\nrotate_s = {ROTATES_S}\n");
    }
    text
}

impl Roles {
    /// Chooses leaves and far motes; none where the floor has too few of a kind.
    fn of(floor: u64, tree: &Tree, network: &NetworkOptions) -> Option<Self> {
        let nodes = network.nodes.len();
        let (mut leaves, relays): (Vec<usize>, Vec<usize>) =
            (1..nodes).partition(|n| tree.children(*n) == 0);
        // The deepest last.
        leaves.sort_by_key(|n| (tree.depth(*n), *n));
        let far = leaves.split_off(leaves.len().checked_sub(BULK_UP + BULK_DOWN)?);
        let mut near = leaves.into_iter();
        let mut take = |count: usize| -> Option<Vec<usize>> {
            let taken: Vec<usize> = near.by_ref().take(count).collect();
            (taken.len() == count).then_some(taken)
        };
        let on_ble = take(ON_BLE)?;
        let asleep = take(ASLEEP)?;
        let rest: Vec<usize> = near.chain(relays.iter().copied()).collect();
        let (asked, rest) = rest.split_at_checked(ASKED)?;
        let (datagrams, rest) = rest.split_at_checked(DATAGRAMS)?;
        let coap = *rest.first()?;
        let (up, down) = far.split_at_checked(BULK_UP)?;
        let used = asked.iter().chain(datagrams).copied();
        let used: BTreeSet<usize> = used.chain([coap]).collect();
        // Its death cuts nobody off, and ends no flow.
        let spared = |relay: &usize| {
            let dead = NetworkOptions {
                gains: network.gains.apart(|n| n == *relay, None),
                ..network.clone()
            };
            !used.contains(relay) && dead.without_path() == BTreeSet::from([*relay])
        };
        let mut dies: Vec<usize> = relays.iter().copied().filter(spared).collect();
        dies.sort_by_key(|n| (tree.children(*n), *n));
        (!dies.is_empty()).then_some(Self {
            floor,
            on_ble,
            asleep,
            up: up.to_vec(),
            down: down.to_vec(),
            asked: asked.to_vec(),
            datagrams: datagrams.to_vec(),
            coap,
            dies,
        })
    }

    /// The ends of the mesh's bulk flows.
    pub(super) fn far(&self) -> Vec<usize> {
        self.up.iter().chain(&self.down).copied().collect()
    }

    /// The bulk flow that begins or ends at a far mote.
    fn bulk(&self, mote: usize) -> String {
        match self.down.contains(&mote) {
            true => format!("[[flow]]\nfrom = \"host\"\nto = {mote}\n"),
            false => format!("[[flow]]\nfrom = {mote}\n"),
        }
    }

    /// The mote over Bluetooth LE that does without TCPlE.
    pub(super) fn unaided(&self) -> Option<usize> {
        self.on_ble.get(2).copied()
    }

    /// Nodes, flows and faults of the scenario; not the relay that dies and the link that gets
    /// worse, which are chosen when their time has come.
    fn text(&self, without: &[Part]) -> String {
        let mut text = String::new();
        let policy = match without.contains(&Part::Hints) {
            true => "adaptive",
            false => "hinted",
        };
        for id in &self.asleep {
            let _ = writeln!(text, "[[node]]\nid = {id}\nsleep = \"{policy}\"");
        }
        for id in &self.on_ble {
            let _ = writeln!(text, "[[node]]\nid = {id}\nkind = \"ble\"");
            if self.unaided() == Some(*id) && !without.contains(&Part::Tcple) {
                let _ = writeln!(text, "tcple = false");
            }
        }
        for mote in self.far() {
            text += &self.bulk(mote);
        }
        if let [up, down, ..] = self.on_ble.as_slice() {
            let _ = writeln!(text, "[[flow]]\nfrom = {up}");
            let _ = writeln!(text, "[[flow]]\nfrom = \"host\"\nto = {down}");
        }
        for from in self.asleep.iter().chain(self.on_ble.get(2)) {
            let _ = writeln!(
                text,
                "[[flow]]\nkind = \"periodic\"\nfrom = {from}\ninterval_s = {READS_EACH_S}"
            );
        }
        for to in &self.asked {
            let _ = writeln!(
                text,
                "[[flow]]\nkind = \"request\"\nfrom = \"host\"\nto = {to}\ninterval_s = 10"
            );
        }
        for (from, to) in self.datagrams.iter().zip(&self.asked) {
            let _ = writeln!(
                text,
                "[[flow]]\nkind = \"udp\"\nfrom = {from}\nto = {to}\ninterval_s = 10"
            );
        }
        let coap = self.coap;
        let _ = writeln!(
            text,
            "[[flow]]\nkind = \"push\"\ntransport = \"coap\"\nblock_bytes = {BLOCK_LEN}\n\
             bytes = {IMAGE_LEN}\nmotes = [{coap}]\nstart_s = {WARMUP_S}"
        );
        text
    }
}

/// The scenarios of a seed's far flows with everything on, each alone; none where no floor fits.
pub(super) fn alone(seed: u64, seconds: u64) -> Option<Vec<String>> {
    let (_, roles) = scenario(seed, (Place::Floor, &[]), seconds)?;
    let head = head(roles.floor, (Place::Floor, &[Part::Tcple]), seconds);
    let far = roles.far().into_iter();
    Some(
        far.map(|mote| format!("{head}{}", roles.bulk(mote)))
            .collect(),
    )
}

/// The border router starts again.
fn reboot() -> String {
    format!("[[fault]]\nkind = \"reboot\"\nnode = 0\nat_s = {REBOOTS_AT_S}\nfor_s = 2\n")
}

/// Why there is no such network.
pub(super) fn unfit() -> Failure {
    Failure::Topology("no floor of this seed has a mote for each role".into())
}

/// Time between two readings.
pub(super) const READS_EACH_S: u64 = 30;
/// Until flows have settled.
pub(super) const WARMUP_S: u64 = 60;
/// Packets that are lost on their way between border router and host: without any, congestion
/// windows over Bluetooth LE are never short of what its events can carry, and TCPlE has nothing
/// to do.
const WIRE_LOSS: f64 = 0.01;
/// An image over CoAP, in blocks of a frame each: some hundred requests.
const IMAGE_LEN: usize = 20_000;
const BLOCK_LEN: usize = 64;
/// When all get another key, again and again.
pub(super) const ROTATES_S: u64 = 250;
/// When the border router starts again.
pub(super) const REBOOTS_AT_S: u64 = 450;
/// Where an nRF52840 loses a quarter of full frames: noise at -106 dBm.
pub(super) const WORSE_DB: f64 = -101.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// The same floor and roles with each part left out, and every role is another mote's.
    #[test]
    fn every_seed_has_a_network() {
        let all: Vec<Part> = Part::ALL.iter().map(|(part, _)| *part).collect();
        for seed in [1, 2, 9_000, 60_001, u64::MAX] {
            let (text, roles) = scenario(seed, (Place::Floor, &[]), 600).expect("a floor fits");
            let (plain, same) = scenario(seed, (Place::Floor, &all), 600).expect("a floor fits");
            assert_eq!(roles, same, "seed {seed}");
            assert_ne!(text, plain);
            for text in [text, plain] {
                let plan = Plan::parse(&text, Path::new(""), Overrides::default());
                assert!(plan.is_ok(), "{}", plan.unwrap_err());
            }
            let ends = [
                &roles.on_ble,
                &roles.asleep,
                &roles.up,
                &roles.down,
                &roles.asked,
            ];
            let count: usize = ends.iter().map(|motes| motes.len()).sum();
            let distinct: BTreeSet<usize> = ends.into_iter().flatten().copied().collect();
            assert_eq!(distinct.len(), count);
            assert!(!distinct.contains(&roles.coap), "seed {seed}");
            assert!(roles.dies.iter().all(|relay| !distinct.contains(relay)));
        }
    }
}
