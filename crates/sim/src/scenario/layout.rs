//! Where nodes are and how well they hear each other, as a scenario says it.

use std::path::Path;

use super::document::read_text;
use super::error::ScenarioError;
use super::model::PathLoss;
use crate::gains::{ChainAir, Gains, LogDistance};

/// Gains between nodes, and where the nodes are if the scenario says so.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) gains: Gains,
    /// Metres.
    pub(super) positions: Option<Vec<[f64; 2]>>,
    /// The parents that this layout implies.
    pub(super) parents: Vec<usize>,
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
            positions: None,
            parents: (0..usize::from(hops)).collect(),
        }
    }

    /// Nodes at `positions`; `seed` draws shadowing and offsets.
    pub(super) fn positions(positions: Vec<[f64; 2]>, loss: PathLoss, seed: u64) -> Self {
        let model = LogDistance {
            loss_1m_db: loss.loss_1m_db,
            exponent: loss.exponent,
            shadowing_sigma_db: loss.shadowing_db,
            node_sigma_db: loss.node_db,
        };
        Self {
            gains: Gains::log_distance(&positions, model, seed),
            positions: Some(positions),
            parents: Vec::new(),
        }
    }

    /// The gains in a file: a line per transmitter, a number per receiver.
    pub(super) fn matrix(file: &Path) -> Result<Self, ScenarioError> {
        let text = read_text(file)?;
        let matrix = parse_matrix(&text).map_err(|error| error.within(file))?;
        Ok(Self {
            gains: Gains::from_matrix(&matrix),
            positions: None,
            parents: Vec::new(),
        })
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
        ScenarioError::new(format!(
            "line {line} has {entry}, but must have a gain in dB from -1000 to 0, or -"
        ))
    })
}
