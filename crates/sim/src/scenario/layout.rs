//! The positions of nodes and the path gains between them, from a scenario's keys.

use std::collections::BTreeSet;

use super::error::{ScenarioError, shown};
use super::model::PathLoss;
use super::sources::Named;
use crate::air::gains::{ChainAir, Gains, Later, LogDistance};
use crate::air::k7;
use crate::air::profile::Profile;
use crate::net::floor::{Floor, FloorOptions};
use crate::net::network;
use crate::ordered;

/// Gains between nodes, and where the nodes are if the scenario says so.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) gains: Gains,
    /// How gains change in the course of a run.
    pub(super) later: Vec<Later>,
    /// Places of the nodes, in metres.
    pub(super) positions: Option<Vec<[f64; 2]>>,
    /// The parents that this layout implies.
    pub(super) parents: Vec<usize>,
    /// The nodes of a testbed: those without a path are left out. `None`: every node must have one.
    pub(super) testbed: Option<BTreeSet<usize>>,
}

impl Layout {
    /// `hops` hops in a row.
    pub(super) fn chain(hops: u16, hidden: bool) -> Self {
        let air = if hidden {
            ChainAir::CALIBRATED
        } else {
            ChainAir::NO_HIDDEN
        };
        let nodes = usize::from(hops) + 1;
        Self {
            gains: Gains::chain(nodes, air),
            later: Vec::new(),
            positions: None,
            parents: (0..usize::from(hops)).collect(),
            testbed: None,
        }
    }

    /// `motes` motes around the border router, over Bluetooth LE.
    pub(super) fn star(motes: usize) -> Self {
        Self {
            gains: network::star(motes),
            later: Vec::new(),
            positions: None,
            parents: vec![0; motes],
            testbed: None,
        }
    }

    /// Nodes at `positions`; `seed` draws shadowing and offsets.
    pub(super) fn positions(positions: Vec<[f64; 2]>, loss: PathLoss, seed: u64) -> Self {
        Self {
            gains: Gains::log_distance(&positions, loss.model(), seed),
            later: Vec::new(),
            positions: Some(positions),
            parents: Vec::new(),
            testbed: None,
        }
    }

    /// `motes` motes at random, one of them `hops` hops away or more.
    pub(super) fn floor(
        (motes, hops): (usize, usize),
        loss: PathLoss,
        profile: &Profile,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let options = FloorOptions {
            motes,
            hops,
            loss: loss.model(),
            transmit_dbm: profile.transmit_dbm,
            noise_dbm: profile.noise_dbm(),
        };
        let Some(floor) = Floor::generate(&options, seed) else {
            return Err(ScenarioError::new(format!(
                "topology.floor is {motes}, but no floor was found on which so many motes are \
                 connected and one is {hops} hops away: ask for more motes, or for less floor_hops"
            )));
        };
        Ok(Self {
            gains: floor.gains,
            later: Vec::new(),
            positions: Some(floor.positions),
            parents: Vec::new(),
            testbed: None,
        })
    }

    /// Gains one way each, from, to, dB; of a link that is listed twice the last.
    pub(super) fn links(links: &[(usize, usize, f64)]) -> Result<Self, ScenarioError> {
        if let Some((node, ..)) = links.iter().find(|(from, to, _)| from == to) {
            return Err(ScenarioError::new(format!(
                "topology.links has a link from node {node} to itself, but must be between two nodes"
            )));
        }
        let ends = links.iter().flat_map(|(from, to, _)| [*from, *to]);
        let nodes = ends.max().map_or(0, |last| last + 1);
        let gains = ordered::map(links.iter().map(|(from, to, db)| ((*from, *to), *db)));
        let gain = |from, to| gains.get(&(from, to)).copied().unwrap_or(f64::NEG_INFINITY);
        Ok(Self {
            gains: Gains::from_fn(nodes, gain),
            later: Vec::new(),
            positions: None,
            parents: Vec::new(),
            testbed: Some(ordered::set(
                links.iter().flat_map(|(from, to, _)| [*from, *to]),
            )),
        })
    }

    /// The gains in a file: a line per transmitter, a number per receiver.
    pub(super) fn matrix(file: &Named<'_>) -> Result<Self, ScenarioError> {
        let matrix = parse_matrix(file.text()?).map_err(|error| error.within(&file.file))?;
        Ok(Self {
            gains: Gains::from_matrix(&matrix),
            later: Vec::new(),
            positions: None,
            parents: Vec::new(),
            testbed: None,
        })
    }

    /// The gains that a testbed measured on `channel`, for receivers with this noise floor: from
    /// `hour` hours into the trace on, or in the mean; `root` becomes node 0.
    pub(super) fn k7(
        file: &Named<'_>,
        (channel, root): (u8, usize),
        hour: Option<f64>,
        noise_dbm: f64,
    ) -> Result<Self, ScenarioError> {
        let trace = k7::read(&file.bytes, channel)
            .map_err(|error| ScenarioError::new(error.to_string()).within(&file.file))?;
        if root >= trace.nodes {
            return Err(ScenarioError::new(format!(
                "topology.root is {root}, but must be the number of a node of the trace, 0 to {}",
                trace.nodes - 1
            )));
        }
        let trace = trace.rooted_at(root);
        let (gains, later) = match hour {
            None => (trace.mean(noise_dbm, k7::FRAME_LEN), Vec::new()),
            Some(hour) => trace.replay((hour * 3_600.0) as u64, noise_dbm, k7::FRAME_LEN),
        };
        Ok(Self {
            gains,
            later,
            positions: None,
            parents: Vec::new(),
            testbed: Some(trace.measured()),
        })
    }
}

impl PathLoss {
    fn model(self) -> LogDistance {
        LogDistance {
            loss_1m_db: self.loss_1m_db,
            exponent: self.exponent,
            shadowing_sigma_db: self.shadowing_db,
            node_sigma_db: self.node_db,
        }
    }
}

fn parse_matrix(text: &str) -> Result<Vec<Vec<f64>>, ScenarioError> {
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let entries = line
            .split([',', ' ', '\t', ';'])
            .filter(|entry| !entry.is_empty());
        let row: Result<Vec<f64>, ScenarioError> =
            entries.map(|entry| gain(number, entry)).collect();
        let row = row?;
        if !row.is_empty() {
            rows.push((number, row));
        }
    }
    let nodes = rows.len();
    if let Some((number, row)) = rows.iter().find(|(_, row)| row.len() != nodes) {
        return Err(ScenarioError::new(format!(
            "line {number} has {} numbers, but must have {nodes}, as many as there are lines",
            row.len()
        )));
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

fn gain(line: usize, entry: &str) -> Result<f64, ScenarioError> {
    if entry == "-" {
        return Ok(f64::NEG_INFINITY);
    }
    let gain = entry
        .parse()
        .ok()
        .filter(|gain: &f64| (-1e3..=0.0).contains(gain));
    gain.ok_or_else(|| {
        let entry = shown(entry);
        ScenarioError::new(format!(
            "line {line} has {entry}, but must have a gain in dB from -1000 to 0, or -"
        ))
    })
}
