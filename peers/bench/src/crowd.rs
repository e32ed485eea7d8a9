//! Crowds of other stacks behind Motet's border router.
//!
//! Purpose: whether the router, with nothing set, shares the air among motes that are not Motet's,
//! and between these and Motet's. At each mote of one of the lab's places a stack sends all it can
//! to Motet on the host. A stack sits there as over the chain of [`air`](crate::air), and its mote
//! compresses no TCP headers, as motes of others do not; Motet's own motes are the lab's, whole
//! and with nothing set.
//! Place: the lab's places and border router; [`run`] makes one run with the connections of `air`.
//! Left out: losses but the air's own, flows down, other relays than Motet's.

mod run;

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use motet::time::Duration;
use motet_lab::experiments::fair::crowd::Place;
use motet_lab::stats::jain;
use motet_taim::Policy;
use rayon::prelude::*;

use crate::compare::{Effort, Estimate, estimate};
use crate::endpoint::Stack;

pub use self::run::run;

/// What is at a mote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occupant {
    /// A whole mote of Motet's.
    Motet,
    /// A TCP alone, above a mote that forwards its packets.
    Tcp(Stack),
}

impl Occupant {
    /// Every occupant, a mote of Motet's first.
    pub const ALL: [Self; 5] = [
        Self::Motet,
        Self::Tcp(Stack::Motet),
        Self::Tcp(Stack::Tcplp),
        Self::Tcp(Stack::Smoltcp),
        Self::Tcp(Stack::Lwip),
    ];

    /// As tables and JSON call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Motet => "motet",
            Self::Tcp(Stack::Motet) => "motet-tcp",
            Self::Tcp(stack) => stack.name(),
        }
    }

    const fn stack(self) -> Option<Stack> {
        match self {
            Self::Motet => None,
            Self::Tcp(stack) => Some(stack),
        }
    }
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Occupant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("a mote has one of {names}")
        })
    }
}

/// A place, and when its motes begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scene {
    /// As tables and JSON call it.
    pub name: &'static str,
    /// Where the motes are.
    pub place: Place,
    /// How much later every second mote begins; the others have the air to themselves until then,
    /// and nothing is measured.
    pub late: Duration,
}

/// Every scene.
pub const SCENES: [Scene; 4] = [
    scene("star", Place::Star(10), 0),
    scene("hidden", Place::Hidden(2), 0),
    scene("late", Place::Hidden(2), 30),
    scene("floor", Place::Floor(30), 0),
];

const fn scene(name: &'static str, place: Place, late_s: u64) -> Scene {
    Scene {
        name,
        place,
        late: Duration::from_secs(late_s),
    }
}

/// The radios.
pub const RADIOS: [&str; 2] = ["hamilton", "nrf52840"];

/// One crowd.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Where the motes are, and when they begin.
    pub scene: Scene,
    /// The radio of all.
    pub radio: &'static str,
    /// The border router's policy.
    pub policy: Policy,
    /// What is at the first mote, the second and so on, and again from the first.
    pub occupants: Vec<Occupant>,
    /// Seed of the floor, of the radio and of the stacks.
    pub seed: u64,
}

/// What became of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It has a tenth of an equal share, or more.
    Lives,
    /// It has less.
    Starves,
    /// None of its bytes came in the second half of the run.
    Silent,
    /// Its stack has closed the connection.
    GaveUp,
}

impl Fate {
    /// As JSON calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lives => "lives",
            Self::Starves => "starves",
            Self::Silent => "silent",
            Self::GaveUp => "gave up",
        }
    }
}

/// One flow of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowRun {
    /// The mote that sent.
    pub mote: usize,
    /// What is there.
    pub occupant: Occupant,
    /// Radio hops to the border router.
    pub hops: usize,
    /// Application bytes read at the host, kb/s.
    pub goodput_kbps: f64,
    /// What became of it.
    pub fate: Fate,
    /// Data segments sent again, of all sent; none for a mote of Motet's, whose segments the
    /// caller does not see.
    pub retransmitted: Option<f64>,
}

/// What one run gave.
#[derive(Clone, PartialEq, Debug)]
pub struct CrowdRun {
    /// The run's seed.
    pub seed: u64,
    /// By mote.
    pub flows: Vec<FlowRun>,
}

impl CrowdRun {
    /// The flows in the order of motes; those that live with too little starve.
    fn judged(seed: u64, mut flows: Vec<FlowRun>) -> Self {
        flows.sort_by_key(|flow| flow.mote);
        let run = Self { seed, flows };
        let least = STARVES_BELOW * run.sum() / run.flows.len() as f64;
        let judged = |flow: FlowRun| match flow.fate {
            Fate::Lives if flow.goodput_kbps < least => FlowRun {
                fate: Fate::Starves,
                ..flow
            },
            _ => flow,
        };
        Self {
            flows: run.flows.into_iter().map(judged).collect(),
            ..run
        }
    }

    /// The goodput of each flow, kb/s.
    pub fn goodputs(&self) -> Vec<f64> {
        self.flows.iter().map(|flow| flow.goodput_kbps).collect()
    }

    /// The goodput of all flows, kb/s.
    pub fn sum(&self) -> f64 {
        self.goodputs().iter().sum()
    }

    /// Jain's index of the flows.
    pub fn jain(&self) -> f64 {
        jain(&self.goodputs())
    }

    /// The goodput of the flow that has least, kb/s.
    pub fn least(&self) -> f64 {
        self.goodputs().into_iter().fold(f64::INFINITY, f64::min)
    }

    /// The mean goodput of the motes with this occupant, kb/s.
    pub fn share(&self, occupant: Occupant) -> f64 {
        let its = self.flows.iter().filter(|flow| flow.occupant == occupant);
        let goodputs: Vec<f64> = its.map(|flow| flow.goodput_kbps).collect();
        goodputs.iter().sum::<f64>() / goodputs.len() as f64
    }
}

/// A line of the tables: one crowd by one set of seeds.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where the motes are, and when they begin.
    pub scene: Scene,
    /// The radio of all.
    pub radio: &'static str,
    /// The border router's policy.
    pub policy: Policy,
    /// What is at the motes, in turn.
    pub occupants: Vec<Occupant>,
    /// The first and the last seed.
    pub seeds: [u64; 2],
    /// In the order of seeds. Where motes differ, each seed runs once more with the occupants
    /// moved on by one mote, until all have been everywhere.
    pub runs: Vec<CrowdRun>,
}

impl Row {
    /// A figure of each run: its mean.
    pub fn of(&self, figure: impl Fn(&CrowdRun) -> f64) -> Estimate {
        let figures: Vec<f64> = self.runs.iter().map(figure).collect();
        estimate(figures.iter().copied())
    }

    /// The run whose flows are most unequal.
    pub fn worst(&self) -> Option<&CrowdRun> {
        let runs = self.runs.iter();
        runs.min_by(|a, b| a.jain().total_cmp(&b.jain()))
    }

    /// How many flows of all runs came to this.
    pub fn count(&self, fate: Fate) -> usize {
        let flows = self.runs.iter().flat_map(|run| &run.flows);
        flows.filter(|flow| flow.fate == fate).count()
    }
}

/// The effort that is judged: seeds of each of the two sets, and the time that is measured.
pub const FULL: Effort = Effort {
    seeds: 5,
    length: Duration::from_secs(300),
};
/// The effort of a look.
pub const QUICK: Effort = Effort {
    seeds: 2,
    length: Duration::from_secs(60),
};

/// Which crowds.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only this scene.
    pub scene: Option<String>,
    /// Only with this radio.
    pub radio: Option<String>,
    /// Instead of all crowds that [`crowds`] has, one of these.
    pub occupants: Vec<Occupant>,
    /// The border router's policy: by itself the default one.
    pub policy: Policy,
}

/// What is at the motes: everywhere the same, and then Motet's mote beside each other one.
pub fn crowds() -> Vec<Vec<Occupant>> {
    let alone = Occupant::ALL.into_iter().map(|one| vec![one]);
    let others = Occupant::ALL.into_iter().skip(1);
    let mixed = others.map(|other| vec![Occupant::Motet, other]);
    alone.chain(mixed).collect()
}

/// Measures every crowd selected, on all processors.
///
/// # Errors
/// No such scene or radio; a run whose bytes were not those sent.
pub fn measure(effort: Effort, selection: &Selection) -> Result<Vec<Row>> {
    let mut rows = rows(effort, selection);
    ensure!(!rows.is_empty(), "there is no such scene, or no such radio");
    let settings: Vec<(usize, Setting)> = rows
        .iter()
        .enumerate()
        .flat_map(|(number, row)| settings(row).map(move |setting| (number, setting)))
        .collect();
    let runs = settings.into_par_iter().map(|(number, setting)| {
        let run = run(&setting, effort.length);
        Ok((number, run.with_context(|| format!("{setting:?}"))?))
    });
    for (number, run) in runs.collect::<Result<Vec<_>>>()? {
        rows[number].runs.push(run);
    }
    Ok(rows)
}

/// The rows, without their runs.
fn rows(effort: Effort, selection: &Selection) -> Vec<Row> {
    let crowds = match selection.occupants.is_empty() {
        true => crowds(),
        false => vec![selection.occupants.clone()],
    };
    let is = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|it| it == name);
    let mut rows = Vec::new();
    for occupants in crowds {
        for scene in SCENES
            .into_iter()
            .filter(|it| is(&selection.scene, it.name))
        {
            for radio in RADIOS.into_iter().filter(|it| is(&selection.radio, it)) {
                rows.extend(SEED_SETS.map(|first| Row {
                    scene,
                    radio,
                    policy: selection.policy,
                    occupants: occupants.clone(),
                    seeds: [first, first + effort.seeds - 1],
                    runs: Vec::new(),
                }));
            }
        }
    }
    rows
}

/// The runs of a row.
fn settings(row: &Row) -> impl Iterator<Item = Setting> {
    let [first, last] = row.seeds;
    let seeds = (first..=last).flat_map(|seed| (0..row.occupants.len()).map(move |by| (seed, by)));
    seeds.map(|(seed, by)| {
        let mut occupants = row.occupants.clone();
        occupants.rotate_left(by);
        Setting {
            scene: row.scene,
            radio: row.radio,
            policy: row.policy,
            occupants,
            seed,
        }
    })
}

/// Of an equal share: with less a flow starves.
const STARVES_BELOW: f64 = 0.1;

/// The first seeds of the two sets.
const SEED_SETS: [u64; 2] = [1, 1_001];

#[cfg(test)]
mod tests {
    use super::*;

    /// Three stacks that are not Motet's, and then a mote of Motet's among them: every byte comes,
    /// no stack gives up, and each has a part of the air.
    #[test]
    fn a_star_of_other_stacks_lives_behind_the_router() {
        let [lwip, tcplp, smoltcp] = [Stack::Lwip, Stack::Tcplp, Stack::Smoltcp].map(Occupant::Tcp);
        for occupants in [
            vec![lwip, tcplp, smoltcp],
            vec![lwip, tcplp, Occupant::Motet],
        ] {
            for seed in [1, 2] {
                let setting = Setting {
                    scene: scene("three", Place::Star(3), 0),
                    radio: RADIOS[1],
                    policy: Policy::default(),
                    occupants: occupants.clone(),
                    seed,
                };
                let run = run(&setting, Duration::from_secs(20)).expect("every byte");
                assert_eq!(run.flows.len(), 3);
                for flow in &run.flows {
                    assert_eq!(flow.fate, Fate::Lives, "{setting:?}: {flow:?}");
                }
                assert!(run.sum() > 20.0, "{setting:?}: {run:?}");
            }
        }
    }

    /// What does not arrive is not taken for a flow that lives.
    #[test]
    fn flows_without_bytes_are_no_living_ones() {
        let flow = |mote, goodput_kbps, fate| FlowRun {
            mote,
            occupant: Occupant::Motet,
            hops: 1,
            goodput_kbps,
            fate,
            retransmitted: None,
        };
        let flows = vec![
            flow(1, 30.0, Fate::Lives),
            flow(2, 0.5, Fate::Lives),
            flow(3, 0.0, Fate::Silent),
            flow(4, 0.5, Fate::GaveUp),
        ];
        let run = CrowdRun::judged(1, flows);
        let fates: Vec<Fate> = run.flows.iter().map(|flow| flow.fate).collect();
        assert_eq!(
            fates,
            [Fate::Lives, Fate::Starves, Fate::Silent, Fate::GaveUp]
        );
    }
}
