//! Meshes with a key: its cost, the attacks that it stops, and reboots and key changes.
//!
//! Chains of three hops with a measured pace and an ACK for every eighth segment. Their cipher is
//! the radio's. An attacker stands beside the first relay; its frames are compared with equally
//! many frames of the same length for another PAN, which take the same air time, and which no node
//! accepts. Left out: mixtures of kinds other than one attacker of each; the kind `children`, since
//! no mote sleeps.

use std::sync::Arc;

use motet::mac::security::NetworkKey;
use motet::tcp::Config;
use motet::time::Duration;

use super::flows::Flows;
use super::mesh;
use super::metric::GOODPUT;
use super::row::{Point, Row};
use super::run::{Failure, PORT, Run, WARM_UP};
use super::setup::{Segment, Setup};
use super::traffic::Traffic;
use super::{Budget, Case, Experiment, Results};
use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::keys::JoinSecret;
use crate::net::attack::{AttackOptions, Forgery, Frames};
use crate::net::network::{Network, NetworkOptions, SecurityOptions};
use crate::net::outages::{Outages, Switch};
use crate::net::run::{self, Next};

/// The experiments, in the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-security",
    title: "What a key costs a mesh, what it keeps off, and what it outlives",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 4,
            seconds: 60,
        },
        Budget {
            runs: 20,
            seconds: 120,
        },
    ],
}];

/// How relays forward, and whether headers are compressed; what a key may cost such a chain.
struct Design {
    forwarding: &'static str,
    compression: &'static str,
    /// The least part of the goodput without a key.
    least: f64,
}

/// The design that attackers are tried on.
const COPY: &Design = &DESIGNS[0];

/// The design of the nodes to which forged heads are sent.
const IMMEDIATE: &Design = &DESIGNS[2];

const DESIGNS: [Design; 3] = [
    design("copy", "none", 0.86),
    design("copy", "tcphc", 0.88),
    design("cit", "tcphc", 0.87),
];

const fn design(forwarding: &'static str, compression: &'static str, least: f64) -> Design {
    Design {
        forwarding,
        compression,
        least,
    }
}

impl Design {
    fn point(&self, key: &'static str) -> Point {
        Point::default()
            .with("hops", HOPS)
            .with("forwarding", self.forwarding)
            .with("compression", self.compression)
            .with("key", key)
    }

    fn setup(&self, security: Option<SecurityOptions>) -> Setup {
        let mut setup = Setup::hops(HOPS as u16)
            .window_segments(12)
            .measured(100, false)
            .with("stack.queue_frames", 32)
            .with("stack.compression", self.compression)
            .with("stack.forwarding", self.forwarding)
            .with("wire.host_ack_every", i64::from(ACK_EVERY));
        if self.forwarding == "cit" {
            setup = setup.with("radio.profile", "telosb");
        }
        setup.beyond.security = security;
        setup.sender = |config: &mut Config| config.initial_window = 8;
        setup.receiver = |config: &mut Config| {
            config.ack_every = ACK_EVERY;
            config.ack_delay_ms = 500;
        };
        setup
    }

    fn sealed(&self) -> (Point, Setup) {
        (self.point("mic32"), self.setup(Some(KEY)))
    }
}

/// The trouble that a chain with a key meets.
#[derive(Clone, PartialEq, Debug)]
enum Trouble {
    /// One flow upwards, beside these attackers of as many frames a second.
    Attack(Vec<Forgery>, u32, Aim),
    /// One flow upwards, while the border router takes one key after the other.
    Rotation,
    /// One flow upwards, while each minute another mote starts anew.
    Reboots,
    /// This many motes of a generated floor are switched on; they have this key or ask for it.
    Join(u64, SecurityOptions),
}

/// The addressee of forged frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    ThisPan,
    AnotherPan,
}

impl Aim {
    const fn name(self) -> &'static str {
        match self {
            Self::ThisPan => "this PAN",
            Self::AnotherPan => "another PAN",
        }
    }
}

impl Traffic for Trouble {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let mut options = setup.network(seed)?;
        match self {
            Self::Attack(kinds, per_s, aim) => {
                let attacker = |kind: &Forgery| AttackOptions {
                    near: 1,
                    per_s: f64::from(*per_s),
                    frames: Frames::Forged(*kind),
                    is_elsewhere: *aim == Aim::AnotherPan,
                };
                options.attackers = kinds.iter().map(attacker).collect();
                Flows::Up.run_in(options, setup, (seed, seconds), |network| {
                    vec![(ACCEPTED.0, network.world.forgeries_believed() as f64)]
                })
            }
            Self::Rotation => {
                let run = Flows::Up.run_in(options, setup, (seed, seconds), |network| {
                    vec![(LOST.0, 0.0), (ROTATIONS.0, rotations(network))]
                });
                match run {
                    Err(Failure::Unfinished { .. }) => Ok(Run {
                        figures: vec![(LOST.0, 1.0), (ROTATIONS.0, 0.0)],
                        ..Run::default()
                    }),
                    run => run,
                }
            }
            Self::Reboots => reboots(options, setup, seed),
            Self::Join(motes, key) => mesh::join_with_key(*motes, seed, *key),
        }
    }

    fn segment(&self, setup: &Setup, seconds: u64) -> Segment {
        match self {
            Self::Attack(..) | Self::Rotation => setup.segment(seconds),
            Self::Reboots | Self::Join(..) => Segment::NONE,
        }
    }
}

/// Keys that every node has taken.
fn rotations(network: &Network<'_>) -> f64 {
    let taken = network.macs().map(|mac| {
        let security = mac.security();
        security.map_or(0, |security| security.counters().rotations)
    });
    f64::from(taken.min().unwrap_or_default())
}

/// Counts nonces that come again while motes are switched off and on, by turns.
fn reboots(options: NetworkOptions, setup: &Setup, seed: u64) -> Result<Run, Failure> {
    let arena = Arena::new();
    let mut network =
        Network::new(options, &arena).map_err(|error| Failure::Topology(error.to_string()))?;
    network.world.take_nonces();
    if !network.join(super::run::JOIN_LIMIT) {
        return Err(Failure::NotJoined);
    }
    let mote = setup.mote();
    let host = network.host(0).unwrap_or_default();
    let until = network.world.now() + WARM_UP + REBOOT_EVERY.saturating_mul(REBOOTS);
    let content = Content::endless([seed, 0]);
    let receiving = network.ends(host, network.addr(mote), &arena);
    let receiving = Receiver::checking(PORT, receiving.with(setup.receiver), content.clone());
    let sending = network.ends(mote, network.addr(host), &arena);
    let sending = Sender::new(
        content,
        (network.addr(host), PORT),
        sending.with(setup.sender),
    );
    network.world.set_app(host, App::Receiver(receiving));
    network
        .world
        .set_app(mote, App::Sender(sending.until(until)));
    let mut outages = Outages::default();
    for n in 0..REBOOTS as usize {
        let at = network.world.now() + WARM_UP + REBOOT_EVERY.saturating_mul(n as u64);
        let node = 1 + n % mote;
        outages.add(at, node, Switch::Off);
        outages.add(at + OFF_FOR, node, Switch::On);
    }
    run::run(&mut network, until, |network| {
        outages.pass(network, &arena, |_, _, _| {});
        outages.next_at().map_or(Next::At(until), Next::At)
    });
    let (repeated, seen) = network.world.nonces();
    debug_assert!(seen > 0, "frames are sealed");
    Ok(Run {
        figures: vec![(REPEATED.0, repeated as f64)],
        ..Run::default()
    })
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for design in &DESIGNS {
        cases.push(Case::new(design.point("none"), design.setup(None)));
        let (point, setup) = design.sealed();
        cases.push(Case::new(point, setup));
    }
    for (design, name, kinds, per_s) in attacks() {
        for aim in [Aim::ThisPan, Aim::AnotherPan] {
            let setup = design.setup(Some(KEY));
            let trouble = Trouble::Attack(kinds.clone(), per_s, aim);
            cases.push(Case::new(attacked(design, name, aim), setup).traffic(trouble));
        }
    }
    let mut rotating = COPY.setup(Some(KEY));
    if let Some(security) = &mut rotating.beyond.security {
        security.rotates_after = Some(ROTATES_AFTER);
    }
    cases.push(Case::new(rotated(), rotating).traffic(Trouble::Rotation));
    let sealed = COPY.setup(Some(KEY));
    cases.push(Case::new(rebooted(), sealed).traffic(Trouble::Reboots));
    for (design, key, _) in JOINING {
        cases.push(Case {
            point: joining(design),
            // A floor is no chain: of this, runs take nothing.
            setup: Setup::hops(1),
            traffic: Arc::new(Trouble::Join(MOTES, key)),
        });
    }
    cases
}

/// Every attack: on which chain, what it is called, its kinds, and how many frames a second each
/// sends.
fn attacks() -> Vec<(&'static Design, &'static str, Vec<Forgery>, u32)> {
    // Nobody sleeps here, and motes learn their routes from advertisements.
    let kinds = Forgery::ALL.into_iter();
    let kinds = kinds.filter(|(_, kind)| {
        let is_registration = matches!(kind, Forgery::Solicitation | Forgery::Refusal);
        *kind != Forgery::Children && !is_registration && !kind.is_routing()
    });
    let all = kinds.clone().map(|(_, kind)| kind).collect();
    let mut attacks: Vec<_> = kinds
        .map(|(name, kind)| (COPY, name, vec![kind], 10))
        .collect();
    attacks.push((COPY, "all", all, 10));
    attacks.push((IMMEDIATE, HEADS, vec![Forgery::Head], 50));
    attacks
}

fn attacked(design: &Design, name: &'static str, aim: Aim) -> Point {
    let point = design.point("mic32").with("attack", name);
    point.with("aim", aim.name())
}

fn rotated() -> Point {
    COPY.point("mic32, another each 60 s")
}

fn rebooted() -> Point {
    COPY.point("mic32").with("design", "reboots each minute")
}

fn joining(design: &'static str) -> Point {
    Point::default()
        .with("nodes", MOTES)
        .with("key", "mic32")
        .with("design", design)
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let mean = |point: &Point| results.mean(point, GOODPUT);
    let part = |point: Point, name, of: &Point| {
        let value = mean(&point) / mean(of);
        results.derived(point, (name, "1"), value)
    };
    let figure = |point: Point, (name, unit): (&'static str, &'static str)| {
        let value = results.mean_of(&point, |run| run.figure(name));
        results.derived(point, (name, unit), value)
    };
    let mut rows = Vec::new();
    for design in &DESIGNS {
        let (sealed, clear) = (design.point("mic32"), design.point("none"));
        rows.push(part(sealed, "goodput_ratio", &clear).at_least(design.least));
    }
    for (design, name, ..) in attacks() {
        let least = if name == HEADS { 0.8 } else { 0.95 };
        let aims = [Aim::ThisPan, Aim::AnotherPan];
        let [here, elsewhere] = aims.map(|aim| attacked(design, name, aim));
        rows.push(part(here.clone(), "attack_ratio", &elsewhere).at_least(least));
        rows.push(figure(here, ACCEPTED).at_most(0.0));
    }
    rows.push(part(rotated(), "rotation_ratio", &COPY.point("mic32")).at_least(0.98));
    rows.push(figure(rotated(), LOST).at_most(0.0));
    for (design, _, most) in JOINING {
        rows.push(figure(joining(design), ("joined_s", "s")).at_most(most));
    }
    rows.push(figure(rebooted(), REPEATED).at_most(0.0));
    for design in &DESIGNS {
        rows.extend(["none", "mic32"].map(|key| results.goodput(&design.point(key))));
    }
    for (design, name, ..) in attacks() {
        for aim in [Aim::ThisPan, Aim::AnotherPan] {
            rows.push(results.goodput(&attacked(design, name, aim)));
        }
    }
    rows.push(results.goodput(&rotated()));
    rows.push(figure(rotated(), ROTATIONS));
    rows
}

/// Any key: it is no secret here.
const KEY: SecurityOptions = SecurityOptions::new(NetworkKey::new(*b"motet experiment"), 0);

/// How motes get the key, and within how many seconds all have joined.
const JOINING: [(&str, SecurityOptions, f64); 2] = [
    ("provisioned", KEY, 36.0),
    ("cojp", KEY.joined_by(JOIN_SECRET), 120.0),
];

/// Any secret: join keys follow from it.
const JOIN_SECRET: JoinSecret = JoinSecret::new(*b"motet experiment: its join keys.");

const HOPS: u64 = 3;

/// Segments for which there is one ACK.
const ACK_EVERY: u8 = 8;

/// Motes that join.
const MOTES: u64 = 30;

/// Time from one key to the next.
const ROTATES_AFTER: Duration = Duration::from_secs(60);

/// From one reboot to the next, how many there are, and how long a mote is off.
const REBOOT_EVERY: Duration = Duration::from_secs(60);
const REBOOTS: u64 = 6;
const OFF_FOR: Duration = Duration::from_secs(1);

/// The name of the attack with more frequent heads.
const HEADS: &str = "head, 50/s";

const ACCEPTED: (&str, &str) = ("forgeries_accepted", "1");
const ROTATIONS: (&str, &str) = ("rotations", "1");
const LOST: (&str, &str) = ("connections_lost", "1");
const REPEATED: (&str, &str) = ("nonces_repeated", "1");
