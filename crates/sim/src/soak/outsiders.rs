//! Outsiders who attack a network, in half of the runs.
//!
//! Purpose: strangers without the key beside relays that reboot, forged messages of routing and of
//! neighbour discovery where there is no key, floods from the Internet with forged sources among
//! them, children that sleep and are switched off, floors where many motes hear one another. Place:
//! `mesh` lets it change a network before it is built; `lab` does the rest while it runs. All
//! choices come from a random stream of their own, so runs without outsiders are unchanged. Left
//! out: strangers between two TCP engines, which `trouble` has; the cost of outsiders, which the
//! experiment `combined-outsiders` judges.

use motet::mac::poll::REST_REACHABLE;
use motet::mac::{Channels, Pending, Policy, Sleep};
use motet::time::Duration;

use super::dice::Dice;
use super::parts;
use crate::air::profile::Profile;
use crate::net::attack::{AttackOptions, Forgery, Frames};
use crate::net::dense::{self, DenseFloor, Shape};
use crate::net::network::{Host, HostOptions, Joining, NetworkOptions, NodeOptions, Parent, star};
use crate::net::strangers::{StrangerPacket, Strangers};

/// The outsiders of a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Outsiders {
    pub(super) what: OutsiderScenario,
    /// Hosts on the Internet that send into the mesh.
    pub(super) floods: Vec<Strangers>,
    /// Time between two reboots of a relay.
    pub(super) reboots_every: Option<Duration>,
}

/// The kind of outsiders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OutsiderScenario {
    /// Frames of somebody without the key, beside relays that reboot.
    Strangers,
    /// Forged messages of RPL and of neighbour discovery, and there is no key.
    Forgers,
    /// Packets from the Internet.
    Floods,
    /// Motes that sleep at the border router; the last one is off until the faults end.
    Children,
    /// Many motes that hear one another.
    Floor,
}

/// How much outsiders did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutsiderTally {
    /// Runs with outsiders.
    pub runs: u64,
    /// Frames of attackers, in all runs.
    pub frames: u64,
    /// Packets of hosts that nobody knows.
    pub packets: u64,
    /// How many of these had the address of a mote, which border routers drop.
    pub forged: u64,
    /// Meshes that formed only when their attackers had gone.
    pub kept_out: u64,
    /// Children that were off while much was sent to them.
    pub dead: u64,
    /// Motes of the floor with the most.
    pub densest: u64,
}

impl OutsiderTally {
    pub(super) fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.frames += other.frames;
        self.packets += other.packets;
        self.forged += other.forged;
        self.kept_out += other.kept_out;
        self.dead += other.dead;
        self.densest = self.densest.max(other.densest);
    }
}

impl Outsiders {
    /// The outsiders in the run of this seed, which is of a network; none in half of the runs.
    pub(super) fn of(seed: u64) -> Option<Self> {
        let mut dice = Dice::new(seed, PURPOSE);
        dice.chance(0.5).then(|| Self::draw(&mut dice))
    }

    fn draw(dice: &mut Dice) -> Self {
        let what = dice.pick(&[
            OutsiderScenario::Strangers,
            OutsiderScenario::Strangers,
            OutsiderScenario::Forgers,
            OutsiderScenario::Floods,
            OutsiderScenario::Children,
            OutsiderScenario::Floor,
        ]);
        let has_floods = what == OutsiderScenario::Floods || dice.chance(0.3);
        let floods = (0..dice.range(1, 2)).map(|_| flood(dice));
        let mut floods: Vec<_> = floods.filter(|_| has_floods).collect();
        if what == OutsiderScenario::Children {
            // To the one that is off.
            let per_s = f64::from(dice.scale(1, 10));
            let len = dice.scale(20, 600) as usize;
            floods.push(Strangers::one(StrangerPacket::Datagrams(len), per_s));
        }
        let pause = Duration::from_secs(20) + dice.span(Duration::from_secs(100));
        let reboots = matches!(what, OutsiderScenario::Strangers | OutsiderScenario::Floor);
        Self {
            what,
            floods,
            reboots_every: reboots.then_some(pause),
        }
    }

    /// Makes of a network what outsiders find; of one over Bluetooth LE no more than that they can
    /// send to it.
    pub(super) fn prepare(&mut self, options: &mut NetworkOptions, seed: u64) {
        let mut dice = Dice::new(seed, PREPARATION);
        options.hosts.push(HostOptions {
            kind: Host::Outside,
            ..HostOptions::new("outside")
        });
        if options.is_mixed() {
            return self.join_everything(options, &mut dice);
        }
        if options.ble.is_some() {
            self.what = OutsiderScenario::Floods;
            self.reboots_every = None;
            if self.floods.is_empty() {
                self.floods.push(flood(&mut dice));
            }
            return;
        }
        match self.what {
            OutsiderScenario::Strangers => be_strange(options, &mut dice),
            OutsiderScenario::Forgers => forge(options, &mut dice),
            OutsiderScenario::Floods => {}
            OutsiderScenario::Children => have_children(options, &mut dice),
            OutsiderScenario::Floor => crowd_together(options, (&mut dice, seed)),
        }
    }

    /// What outsiders do where everything is on, which takes the place of what they were to be:
    /// strangers' frames, packets from the Internet, relays that reboot.
    fn join_everything(&mut self, options: &mut NetworkOptions, dice: &mut Dice) {
        match self.what {
            OutsiderScenario::Strangers | OutsiderScenario::Forgers => {
                add_strangers(options, dice);
                self.what = OutsiderScenario::Strangers;
            }
            _ => self.what = OutsiderScenario::Floods,
        }
        if self.what == OutsiderScenario::Floods && self.floods.is_empty() {
            self.floods.push(flood(dice));
        }
    }
}

/// The attackers on a network's air, in words, for the search for a failure's cause.
pub(super) fn names(options: &NetworkOptions) -> String {
    let name = |attacker: &AttackOptions| {
        let what = match &attacker.frames {
            Frames::Forged(own) => Forgery::ALL.iter().find(|(_, kind)| kind == own),
            Frames::Recorded(_) | Frames::Replayed => None,
        };
        let what = what.map_or("replay", |(name, _)| name);
        let AttackOptions { per_s, near, .. } = attacker;
        format!(", {what} {per_s}/s beside node {near}")
    };
    options.attackers.iter().map(name).collect()
}

/// Packets of strangers to some of the motes.
fn flood(dice: &mut Dice) -> Strangers {
    let len = dice.scale(1, 1_000) as usize;
    let kind = dice.pick(&[
        StrangerPacket::Datagrams(len),
        StrangerPacket::Echoes(len),
        StrangerPacket::Syns(PORT),
    ]);
    Strangers {
        kind,
        per_s: f64::from(dice.scale(1, 64)),
        sources: dice.scale(1, 64) as usize,
        destinations: dice.scale(1, 6) as usize,
        is_inside: dice.chance(0.2),
    }
}

/// Adds attackers without the key beside the first relays, which send more frames than a relay has
/// time to decrypt.
fn be_strange(options: &mut NetworkOptions, dice: &mut Dice) {
    wake(options);
    parts::give_key(options, dice);
    add_strangers(options, dice);
}

/// The attackers of [`be_strange`].
fn add_strangers(options: &mut NetworkOptions, dice: &mut Dice) {
    let relays = (options.nodes.len() as u32 - 1).min(3);
    for _ in 0..dice.range(1, 2) {
        let forgery = dice.pick(&[Forgery::Source, Forgery::Number, Forgery::Ack]);
        options.attackers.push(AttackOptions {
            near: dice.range(1, relays) as usize,
            per_s: f64::from(dice.scale(20, 200)),
            frames: Frames::Forged(forgery),
            is_elsewhere: false,
        });
    }
}

/// Adds attackers that send in the names of other nodes, to a mesh without a key that forms itself
/// by RPL.
fn forge(options: &mut NetworkOptions, dice: &mut Dice) {
    wake(options);
    options.security = None;
    options.joining = Joining::Rpl;
    let is_said = |(_, kind): &(_, Forgery)| {
        let is_discovery = matches!(
            kind,
            Forgery::RouterAdvertisement | Forgery::Solicitation | Forgery::Refusal
        );
        is_discovery || kind.is_routing()
    };
    let kinds: Vec<_> = Forgery::ALL.into_iter().filter(is_said).collect();
    for _ in 0..dice.range(1, 2) {
        let (_, forgery) = dice.pick(&kinds);
        options.attackers.push(AttackOptions {
            near: dice.range(0, options.nodes.len() as u32 - 1) as usize,
            per_s: f64::from(dice.scale(1, 10)),
            frames: Frames::Forged(forgery),
            is_elsewhere: false,
        });
    }
}

/// Motes around the border router, all of which sleep.
fn have_children(options: &mut NetworkOptions, dice: &mut Dice) {
    wake(options);
    options.joining = Joining::Advertised;
    let children = dice.range(2, 6) as usize;
    alike(options, children + 1);
    options.gains = star(children);
    let radio = options.nodes[0].profile.capabilities;
    let can_wait = !radio.auto_ack || radio.pending != Pending::None;
    for (n, node) in options.nodes.iter_mut().enumerate() {
        if !can_wait {
            node.profile = Profile::HAMILTON;
        }
        if n == 0 {
            continue;
        }
        node.parent = Parent::Node(0);
        node.sleep = Some(Sleep::new(match dice.range(0, 2) {
            0 => Policy::Adaptive,
            1 => Policy::Hinted(REST_REACHABLE),
            _ => Policy::Fixed(dice.scale_ms(20, 2_000)),
        }));
    }
}

/// Motes on a floor where all, or most, hear one another. They form a mesh by themselves.
fn crowd_together(options: &mut NetworkOptions, (dice, seed): (&mut Dice, u64)) {
    wake(options);
    options.joining = Joining::Rpl;
    let floor = DenseFloor::draw(dice.pick(&Shape::ALL), seed);
    let nodes = (dice.scale(FLOOR_MIN, FLOOR_MAX) as usize).min(floor.positions.len());
    let positions = floor.positions.get(..nodes).unwrap_or_default();
    let crowded = dense::network_at(positions, seed);
    if crowded.tree().is_err() {
        return;
    }
    alike(options, nodes);
    options.gains = crowded.gains;
    for node in &mut options.nodes {
        node.parent = Parent::Shortest;
        // With several channels each neighbour may listen on another one, and a broadcast frame is
        // sent once on each channel.
        node.mac.channels = Channels::SINGLE;
    }
}

/// Makes the network have `nodes` nodes: drops the last ones, or adds copies of the last one.
fn alike(options: &mut NetworkOptions, nodes: usize) {
    let Some(last) = options.nodes.last().cloned() else {
        return;
    };
    let more = (options.nodes.len()..nodes).map(|n| NodeOptions {
        name: n.to_string(),
        ..last.clone()
    });
    options.nodes.extend(more.collect::<Vec<_>>());
    options.nodes.truncate(nodes);
    let last = options.nodes.len() as u32 - 1;
    for attacker in &mut options.attackers {
        attacker.near = attacker.near.min(last as usize);
    }
}

/// Keeps all nodes awake, and removes the attackers that send requests in the names of sleeping
/// children.
fn wake(options: &mut NetworkOptions) {
    for node in &mut options.nodes {
        node.sleep = None;
    }
    options.attackers.clear();
}

/// A separate random stream for the choice of outsiders.
pub(super) const PURPOSE: u64 = 10;

/// A separate random stream for the preparation of networks with outsiders.
const PREPARATION: u64 = 11;

/// A separate random stream for the actions of outsiders during a run.
pub(super) const AT_WORK: u64 = 12;

/// The port that every node listens on.
pub(super) const PORT: u16 = 7;

/// Nodes of a floor: each power of two is as likely as another.
const FLOOR_MIN: u32 = 12;
const FLOOR_MAX: u32 = 110;
