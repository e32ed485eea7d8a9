//! Whether every mote of a dense floor joins in time.
//!
//! All nodes are switched on at once, and a mote has joined when it has answered an echo request of
//! a host beyond the border router: it then has an address, the 6LoWPAN contexts and a route from
//! the border router. It gets echo requests only after its own state shows that it has joined, so
//! that echoes do not load the mesh while it forms.

use motet::time::{Duration, Instant};

use crate::Arena;
use crate::experiments::mesh::measure::{answers_of, last};
use crate::experiments::row::{Point, Row};
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::experiments::{Case, Results};
use crate::net::dense::{DenseFloor, Shape};
use crate::net::lacks;
use crate::net::network::{Network, NetworkOptions};
use crate::net::outages::Outages;

/// The state of a mesh after the time that it had.
#[derive(Clone, PartialEq, Debug)]
pub struct Joined {
    /// Part of its motes that have answered.
    pub share: f64,
    /// When the last of these answered, s; the time that it had where some have not.
    pub slowest_s: f64,
    /// The motes that have not answered, and what each one lacks; empty where all have.
    pub missing: String,
}

/// Lets a mesh form itself for `limit`, and asks all its motes. The network's first host is the
/// caller.
///
/// # Errors
/// [`Failure::Topology`]: no mesh can be built of these nodes.
pub fn joined(options: NetworkOptions, limit: Duration) -> Result<Joined, Failure> {
    let arena = Arena::new();
    let network = Network::new(options, &arena);
    let mut network = network.map_err(|error| Failure::Topology(error.to_string()))?;
    let until = Instant::ORIGIN + limit;
    let mut on = Outages::default();
    let answered = answers_of(&mut network, &arena, &mut on, until, |network, mote| {
        lacks::lacks(&network.world, mote).is_empty()
    });
    let missing = (1..answered.len()).filter(|mote| answered[*mote].is_none());
    let missing: Vec<usize> = missing.collect();
    let motes = answered.len().saturating_sub(1).max(1);
    let slowest = last(&answered).map_or(limit, |at| at.since(Instant::ORIGIN));
    Ok(Joined {
        share: (motes - missing.len()) as f64 / motes as f64,
        slowest_s: slowest.as_micros() as f64 / 1e6,
        missing: lacks::describe(&network.world, missing),
    })
}

/// One floor of a shape for each two seeds, which draw what happens on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Join(pub(super) Shape);

impl Traffic for Join {
    fn run(&self, _: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let floor = DenseFloor::draw(self.0, seed / SEEDS_A_FLOOR);
        let joined = joined(floor.network(seed), LIMIT)?;
        Ok(Run {
            figures: vec![(JOINED.0, joined.share), (JOINED_S.0, joined.slowest_s)],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Join {
    fn point(self) -> Point {
        Point::default().with("design", self.0.name())
    }
}

/// Every shape of floor.
pub(super) fn cases() -> Vec<Case> {
    // A floor is no chain: of the setup, runs take nothing.
    let of = |join: Join| Case::new(join.point(), Setup::hops(1)).traffic(join);
    Shape::ALL.map(Join).map(of).into()
}

/// The rows for the runs of [`cases`].
pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let of = |join: Join| {
        let point = join.point();
        let joined = results.mean_of(&point, |run| run.figure(JOINED.0));
        let slowest = results.runs(&point).map(|run| run.figure(JOINED_S.0));
        let slowest = slowest.fold(f64::NAN, f64::max);
        [
            results.derived(point.clone(), JOINED, joined).at_least(1.0),
            results.derived(point, JOINED_S, slowest).without_interval(),
        ]
    };
    Shape::ALL.map(Join).into_iter().flat_map(of).collect()
}

const JOINED: (&str, &str) = ("joined", "1");

/// The slowest of all runs.
const JOINED_S: (&str, &str) = ("joined_s", "s");

/// The time within which every mote must answer.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// How many seeds each floor is run with.
const SEEDS_A_FLOOR: u64 = 2;
