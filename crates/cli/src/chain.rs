//! The common part of commands with a mesh in real time: the options of a chain, and the time in
//! which its motes find each other before anything else happens.
//!
//! Most options are keys of a scenario ([`flags`]). Their values go into a document, like the keys
//! of a file, and the lab builds the mesh from that.

use std::path::PathBuf;

use clap::{
    Arg, ArgAction, ArgMatches, Args as ClapArgs, Command, FromArgMatches, ValueEnum,
    builder::{EnumValueParser, PathBufValueParser},
};
#[cfg(target_os = "linux")]
use motet::mac::{Policy, poll::REST_REACHABLE};
use motet::time::Duration;
use motet_lab::{
    net::network::{self, BleOptions, NetworkOptions},
    net::world::World,
    scenario::{Document, Scenario},
};

use crate::{error::Error, flags, interrupt::Interrupt, keys, number::whole};

/// The chain of motes and its air. Flatten it last: its heading holds for what follows.
#[derive(Clone, Debug)]
pub(crate) struct ChainArgs {
    /// The options as keys of a scenario.
    document: Document,
    /// The key file of the mesh.
    key: Option<PathBuf>,
    /// The folder that keeps its frame counters.
    pub(crate) state: Option<PathBuf>,
    /// The seed, where one is given.
    pub(crate) seed: Option<u64>,
}

/// Which radio the motes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum RadioKind {
    Hamilton,
    #[value(name = "telosb")]
    TelosB,
    Nrf52840,
    Rcp,
    Ble,
}

/// How a mote sleeps: the name of a policy, and its key for an interval, s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleep {
    name: &'static str,
    interval: Option<(&'static str, f64)>,
}

#[cfg(target_os = "linux")]
impl Sleep {
    /// The policy, for a mote of which no scenario speaks.
    pub(crate) fn policy(self) -> Policy {
        let interval = self.interval.map(|(_, seconds)| {
            // Lossless: at most 300 s.
            Duration::from_micros((seconds * 1e6) as u64)
        });
        match (self.name, interval) {
            ("fixed", Some(interval)) => Policy::Fixed(interval),
            ("hinted", interval) => Policy::Hinted(interval.unwrap_or(REST_REACHABLE)),
            ("adaptive", _) => Policy::Adaptive,
            _ => Policy::Paper,
        }
    }
}

impl ClapArgs for ChainArgs {
    fn augment_args(command: Command) -> Command {
        flags::add(command.next_help_heading("Mesh and air"), others())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ChainArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut document = Document::new();
        flags::say(matches, &mut document)?;
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let (radio, sleep) = (matches.get_one(RADIO), matches.get_one(SLEEP));
        if matches.get_flag(THREAD) {
            document = document.with("topology.joining", "thread");
        }
        Ok(Self {
            document: said(document, radio.copied(), sleep.copied()),
            key: path(KEY),
            state: path(STATE),
            seed: matches.get_one(SEED).copied(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Options that are no key, or several, each with the one that it stands behind.
fn others() -> [(Arg, &'static str); 6] {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    [
        (
            option(
                RADIO,
                "hamilton|telosb|nrf52840|rcp|ble",
                "Radio and driver of every mote; telosb where relays are to forward without copies, \
                 else hamilton; rcp: a co-processor that makes attempts by itself, as a dongle; ble: \
                 Bluetooth LE, one hop",
            )
            .hide_possible_values(true)
            .value_parser(EnumValueParser::<RadioKind>::new()),
            "compression",
        ),
        (
            option(
                SLEEP,
                "POLICY",
                "Let the mote sleep, and ask its parent for what waits there: at an interval \
                 (fixed:SECONDS); as TCPlp's study did, each 240 s at rest (paper); at 20 ms to 5 s, \
                 by what comes (adaptive); or when TCP expects an answer, and at rest each SECONDS \
                 (hinted:SECONDS; hinted is hinted:60). The first packet to a mote at rest waits up \
                 to that interval; Linux gives up a connection after 127 s",
            )
            .value_parser(sleep_policy),
            "window",
        ),
        (
            Arg::new(THREAD)
                .long(THREAD)
                .help(
                    "Let the border router be a Thread router, and the mote its child: one hop, with a key \
                     that such networks of the lab have",
                )
                .action(ArgAction::SetTrue),
            SLEEP,
        ),
        (
            option(
                KEY,
                "FILE",
                "Encrypt and authenticate every frame in the mesh with the key in this file (motet \
                 keys new)",
            )
            .value_parser(PathBufValueParser::new()),
            "congestion",
        ),
        (
            option(
                STATE,
                "DIR",
                "Folder that keeps the frame counters of the key from one run to the next: a key has \
                 one, and a run at a time [default: $STATE_DIRECTORY, else ~/.local/state/motet]",
            )
            .value_parser(PathBufValueParser::new()),
            KEY,
        ),
        (
            option(
                SEED,
                "S",
                "Seed of every random choice in the air and the motes [default: 1]",
            )
            .allow_negative_numbers(true)
            .value_parser(whole::<u64>(0..=u64::MAX)),
            STATE,
        ),
    ]
}

/// A document with what these two options say besides.
fn said(document: Document, radio: Option<RadioKind>, sleep: Option<Sleep>) -> Document {
    let document = match radio {
        None => document,
        Some(RadioKind::Ble) => document.with("radio.kind", "ble"),
        Some(RadioKind::Hamilton) => document.with("radio.profile", "hamilton"),
        Some(RadioKind::TelosB) => document.with("radio.profile", "telosb"),
        Some(RadioKind::Nrf52840) => document.with("radio.profile", "nrf52840"),
        Some(RadioKind::Rcp) => document.with("radio.profile", "rcp"),
    };
    let Some(sleep) = sleep else {
        return document;
    };
    let document = document.with("stack.sleep", sleep.name);
    match sleep.interval {
        Some((key, seconds)) => document.with(key, seconds),
        None => document,
    }
}

impl ChainArgs {
    /// The seed, where no scenario has another.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The mesh that the options describe, its key left out.
    ///
    /// # Errors
    /// [`Error::Input`] for options that contradict each other, or that the radio has no use for.
    pub(crate) fn mesh(&self) -> Result<Scenario, Error> {
        self.scenario(self.document.clone())
    }

    /// The chain as [`Self::mesh`] makes it, with a flow between the mote and the host.
    ///
    /// # Errors
    /// As [`Self::mesh`].
    pub(crate) fn mesh_with_flow(&self, is_down: bool) -> Result<Scenario, Error> {
        let mut document = self.document.clone().with_flow();
        // The option speaks of both simulated ends, the key of the mote's.
        if let Some(congestion) = document.get("stack.congestion").cloned() {
            document = document.with("wire.congestion", congestion);
        }
        self.scenario(match is_down {
            // The last node is the mote.
            true => document.with("flow.from", "host").with("flow.to", -1),
            false => document,
        })
    }

    fn scenario(&self, document: Document) -> Result<Scenario, Error> {
        let scenario = document.completed().scenario();
        let mut scenario = scenario.map_err(|error| Error::input(flags::sentence(&error)))?;
        let secrets = [(KEY, &self.key), (STATE, &self.state)];
        let mut given = secrets.iter().filter(|(_, path)| path.is_some());
        if !scenario.network.has_mesh()
            && let Some((name, _)) = given.next()
        {
            return Err(Error::input(flags::foreign_to_ble(name)));
        }
        scenario.network.seed = self.seed();
        Ok(scenario)
    }

    /// Gives a mesh the key, where one is named.
    ///
    /// # Errors
    /// [`Error::Input`] where it cannot be read.
    pub(crate) fn secure(&self, options: &mut NetworkOptions) -> Result<(), Error> {
        match &self.key {
            Some(key) => keys::give(options, key),
            None => Ok(()),
        }
    }

    /// A mote over a controller of Bluetooth LE, as the options describe it.
    ///
    /// # Errors
    /// As [`Self::mesh`].
    pub(crate) fn ble(&self) -> Result<BleOptions, Error> {
        let ble = self.document.ble();
        ble.map_err(|error| Error::input(flags::sentence(&error)))
    }
}

/// Advice for a chain in which nothing arrives any more.
pub(crate) fn advice(options: &NetworkOptions) -> &'static str {
    let has_losses = options.frame_loss > 0.0 || options.packet_loss > 0.0;
    let mut nodes = options.nodes.iter();
    // Frames that are held for so long are too old by the time when they may go.
    match nodes.any(|node| node.pacing_step > HOLD_USUAL_MAX) {
        true => "lower --hold",
        false if has_losses => "lower the losses or --hops",
        false => "lower --hops",
    }
}

/// A policy of a mote that sleeps, as the command line names it.
pub(crate) fn sleep_policy(text: &str) -> Result<Sleep, String> {
    let (name, seconds) = match text.split_once(':') {
        None => (text, None),
        Some((name, seconds)) => (name, Some(seconds)),
    };
    let (name, key) = match (name, seconds) {
        ("paper", None) => ("paper", None),
        ("adaptive", None) => ("adaptive", None),
        ("hinted", None) => ("hinted", None),
        ("fixed", Some(_)) => ("fixed", Some("stack.sleep_interval_s")),
        ("hinted", Some(_)) => ("hinted", Some("stack.sleep_idle_s")),
        _ => {
            return Err(
                "must be fixed:SECONDS, paper, adaptive, hinted or hinted:SECONDS".to_owned(),
            );
        }
    };
    let seconds = seconds.and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| (SLEEP_MIN_S..=SLEEP_MAX_S).contains(seconds));
    if key.is_some() && seconds.is_none() {
        return Err(format!(
            "the interval must be {SLEEP_MIN_S} to {SLEEP_MAX_S} seconds"
        ));
    }
    Ok(Sleep {
        name,
        interval: key.zip(seconds),
    })
}

/// Options that are no key of a scenario, or several.
const RADIO: &str = "radio";
const SLEEP: &str = "sleep";
const KEY: &str = "key";
const STATE: &str = "state";
const SEED: &str = "seed";
const THREAD: &str = "thread";

/// Options that are no key of a scenario of their own, and that a scenario's keys say, too.
pub(crate) const SAID_BY_SCENARIO: [&str; 4] = [RADIO, SLEEP, KEY, THREAD];

/// Options of this file that a mote over a controller of Bluetooth LE has no use for.
pub(crate) const FOREIGN_TO_CONTROLLER: [&str; 5] = [RADIO, SLEEP, KEY, STATE, THREAD];

/// The shortest and the longest interval of a mote that sleeps, s: one frame's exchange, and half
/// the time that its parent keeps it.
const SLEEP_MIN_S: f64 = 0.01;
const SLEEP_MAX_S: f64 = 300.0;

/// Brings a mesh up, in virtual time: every mote among the first `nodes` nodes of `world` finds
/// its address and route within `limit`, at one time or another: in a large mesh there is hardly a
/// moment without a mote that changes its parent.
///
/// # Errors
/// When motes do not: which, and what each one lacks, with `advice` if there is any; when a signal
/// comes.
pub(crate) fn join(
    world: &mut World<'_>,
    nodes: usize,
    limit: Duration,
    advice: &str,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let give_up = world.now() + limit;
    let mut arrivals = network::Arrivals::default();
    while !network::arrive(world, &mut arrivals, nodes, LOOK_EVERY) {
        interrupt.check()?;
        // Time passes even when nothing happens.
        let next = world.now() + LOOK_EVERY;
        world.run_until(next);
        if next > give_up {
            let missing = arrivals.describe_missing(world, nodes);
            let advice = match advice {
                "" => String::new(),
                advice => format!("; {advice}"),
            };
            return Err(Error::failed(format!(
                "not all motes found a way to the border router within {} s: {missing}{advice}",
                limit.as_millis() / 1_000
            )));
        }
    }
    let known_by = world.now() + KNOWN_WITHIN;
    while !network::has_ways_down(world, nodes) && world.now() < known_by {
        interrupt.check()?;
        let next = world.now() + LOOK_EVERY;
        world.run_until(next);
    }
    interrupt.check()
}

/// Virtual time within which the border router hears of a leaf that has joined; one of which it
/// hears later is unreachable until then.
const KNOWN_WITHIN: Duration = Duration::from_secs(60);

/// The longest hold that is of any use: a full frame goes one hop in 7 ms.
const HOLD_USUAL_MAX: Duration = Duration::from_millis(50);

/// Advice for a chain: its motes do not find the border router in time.
pub(crate) const JOIN_ADVICE: &str = "lower --frame-loss, --hold or --hops";

/// Virtual time between two looks for a signal.
const LOOK_EVERY: Duration = Duration::from_secs(1);
