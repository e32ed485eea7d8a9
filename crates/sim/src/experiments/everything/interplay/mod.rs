//! Whether the parts of Motet keep out of each other's way: fifteen requirements, each as a few
//! checks of one run. `docs/composition.md` lists them.
//!
//! Purpose: the share of a requirement's checks that held. They are read from captures of the
//! wire, of the mesh with its key and of Bluetooth LE's air, and from the nodes' counters.
//! Forged heads (4), header prediction (9) and few flows (14) have small networks of their own;
//! congestion marks (5 and 6) a run without admission.

mod ahead;
mod fired;
mod frames;
mod predicted;
mod rules;
mod tallies;

use std::io;

use motet::time::Duration;

pub(super) use self::fired::forged;
use self::frames::{Heard, read};
pub(super) use self::predicted::predicted;
use self::tallies::Tallies;
use super::network::Roles;
use super::troubles::Troubles;
use crate::capture::{Records, Tape};
use crate::net::plan;
use crate::scenario::{RunResult, Scenario, Session, Watch};

/// The requirements that have checks, and the names of their shares.
pub(super) const REQUIREMENTS: [(usize, &str); 15] = [
    (1, "interplay_1"),
    (2, "interplay_2"),
    (3, "interplay_3"),
    (4, "interplay_4"),
    (5, "interplay_5"),
    (6, "interplay_6"),
    (7, "interplay_7"),
    (8, "interplay_8"),
    (9, "interplay_9"),
    (10, "interplay_10"),
    (11, "interplay_11"),
    (12, "interplay_12"),
    (13, "interplay_13"),
    (14, "interplay_14"),
    (15, "interplay_15"),
];

/// Those that congestion marks show.
pub(super) const MARKS: [usize; 2] = [5, 6];

/// Those that are checked in networks of their own alone, the same wherever the network stands.
pub(super) const APART: [usize; 3] = [5, 9, 14];

/// What is written and counted while a run goes on.
#[derive(Debug)]
pub(super) struct Interplay {
    wire: Tape,
    mesh: Tape,
    over_ble: Tape,
    tallies: Tallies,
}

/// All that the checks know of a run that is over.
struct Trace<'a> {
    wire: Vec<Heard>,
    mesh: Vec<Heard>,
    /// The mesh's frames as they are to somebody who lacks the key.
    sealed: Vec<Heard>,
    over_ble: Vec<Heard>,
    tallies: &'a Tallies,
    result: &'a RunResult,
    roles: &'a Roles,
    /// The relay that died.
    died: Option<usize>,
    /// When all motes had joined, as captures count.
    joined_us: u64,
    scenario: &'a Scenario,
}

/// What a run is judged by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Judged {
    /// All that a run with everything on shows.
    All,
    /// What congestion marks show: of a run without admission, under which there are hardly any.
    Marks,
}

/// Checks, by requirement.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks(Vec<Check>);

/// A requirement, what was checked, and whether it held.
#[derive(Clone, Debug)]
pub(super) struct Check {
    requirement: usize,
    what: String,
    holds: bool,
    /// Whether the run has shown too little for a verdict.
    is_bare: bool,
}

impl Interplay {
    /// Begins to write and count; before the run does. None where there is no memory to write to.
    pub(super) fn begin(session: &mut Session) -> Option<Self> {
        let [wire, mesh, over_ble] = [(); 3].map(|()| Tape::default());
        Self::record(session, [&wire, &mesh, &over_ble]).ok()?;
        Some(Self {
            wire,
            mesh,
            over_ble,
            tallies: Tallies::default(),
        })
    }

    fn record(session: &mut Session, [wire, mesh, over_ble]: [&Tape; 3]) -> io::Result<()> {
        session.record([
            wire.capture(Records::Packets)?,
            mesh.capture(Records::Frames)?,
            over_ble.capture(Records::Bluetooth)?,
        ]);
        Ok(())
    }

    /// Lets a second pass, and counts; whether the run is over.
    pub(super) fn advance(&mut self, session: &mut Session, watch: &Watch<'_>) -> bool {
        let from = session.now();
        let is_over = (1..=GLANCES).any(|n| {
            let is_over = session.advance(from + GLANCE.saturating_mul(n), watch);
            session.inspect(|network| self.tallies.glance(network));
            is_over
        });
        session.inspect(|network| self.tallies.look(network));
        is_over
    }

    /// Checks what the run has shown.
    pub(super) fn conclude(
        &self,
        scenario: &Scenario,
        roles: &Roles,
        troubles: &Troubles,
        result: &RunResult,
        judged: Judged,
    ) -> Checks {
        let key = scenario.network.security.as_ref().map(|it| it.network);
        let prefix = plan::MESH_PREFIX;
        let trace = Trace {
            wire: read(&self.wire, None, prefix),
            mesh: read(&self.mesh, key, prefix),
            sealed: read(&self.mesh, None, prefix),
            over_ble: read(&self.over_ble, None, plan::prefix_over_ble(prefix)),
            tallies: &self.tallies,
            result,
            roles,
            died: troubles.died.map(|(relay, _)| relay),
            joined_us: troubles.joined_us,
            scenario,
        };
        let mut checks = Checks::default();
        match judged {
            Judged::All => {
                rules::all(&trace, &mut checks);
                ahead::check(&trace, &mut checks);
            }
            Judged::Marks => rules::marks(&trace, &mut checks),
        }
        checks
    }
}

impl Checks {
    pub(super) fn note(&mut self, requirement: usize, what: impl Into<String>, holds: bool) {
        self.0.push(Check {
            requirement,
            what: what.into(),
            holds,
            is_bare: false,
        });
    }

    /// Whether a run has shown too little for one of its checks, and none that does not hold.
    pub(super) fn are_open(&self) -> bool {
        let is_open = self.0.iter().any(|check| check.is_bare);
        is_open && self.0.iter().all(|check| check.holds || check.is_bare)
    }

    /// Takes over those of another run.
    pub(super) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Notes that all, or all but `missing` of a thousand, of at least `least` are right.
    fn part(
        &mut self,
        requirement: usize,
        what: &str,
        [right, all]: [u64; 2],
        (least, missing): (u64, u64),
    ) {
        let is_bare = all < least.max(1);
        self.0.push(Check {
            requirement,
            what: format!("{what}: {right} of {all}"),
            holds: !is_bare && (all - right) * 1_000 <= all * missing,
            is_bare,
        });
    }

    /// The share of a requirement's checks that held, 0 to 1; no number where it has none.
    pub(super) fn share(&self, requirement: usize) -> f64 {
        let own = self
            .0
            .iter()
            .filter(|check| check.requirement == requirement);
        let held = own.clone().filter(|check| check.holds).count();
        held as f64 / own.count() as f64
    }

    /// The shares, by name.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&'static str, f64)> {
        REQUIREMENTS
            .iter()
            .map(|(number, name)| (*name, self.share(*number)))
    }

    /// What did not hold, in words.
    pub(super) fn broken(&self) -> impl Iterator<Item = String> {
        let broken = self.0.iter().filter(|check| !check.holds);
        broken.map(|check| format!("requirement {}: {}", check.requirement, check.what))
    }
}

/// Between two looks at all counters.
const LOOK: Duration = Duration::from_secs(1);

/// Between two looks at what is held: it is for a few connection events.
const GLANCE: Duration = Duration::from_millis(10);
const GLANCES: u64 = 100;
