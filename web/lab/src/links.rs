//! Where a scenario's nodes are, and how well they hear each other, before anything runs.

use motet_lab::air::phy;
use motet_lab::air::power::ratio;
use motet_lab::scenario::{Overrides, Scenario};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{Files, plan};

/// Places and links.
#[wasm_bindgen]
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    nodes: usize,
    positions: Vec<f64>,
    links: Vec<f64>,
}

#[wasm_bindgen]
impl Layout {
    /// How many mesh nodes there are, the border router included.
    #[wasm_bindgen(getter)]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// x and y of each node, m; empty where the scenario says nothing of places.
    #[wasm_bindgen(getter)]
    pub fn positions(&self) -> Vec<f64> {
        self.positions.clone()
    }

    /// Rows of four: from, to, strength at the receiver in dBm, and the chance that the longest
    /// frame arrives while nothing else is on the air. Links on which no preamble is ever found are
    /// left out.
    #[wasm_bindgen(getter)]
    pub fn links(&self) -> Vec<f64> {
        self.links.clone()
    }
}

/// The layout of a scenario: of the first point where it has a sweep.
///
/// # Errors
/// The lab's sentence about the scenario.
#[wasm_bindgen]
pub fn layout(text: &str, name: &str, files: &Files) -> Result<Layout, JsError> {
    let plan = plan(text, name, files, Overrides::default())?;
    Ok(Layout::of(&plan.points[0].scenario))
}

impl Layout {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let positions = scenario.positions.iter().flatten().flatten().copied();
        Self {
            nodes: scenario.network.nodes.len(),
            positions: positions.collect(),
            links: links(scenario),
        }
    }
}

fn links(scenario: &Scenario) -> Vec<f64> {
    let network = &scenario.network;
    let mut links = Vec::new();
    // Bluetooth LE has no gains: a scenario gives the strength at every receiver.
    if network.ble.is_some() {
        return links;
    }
    for (from, sender) in network.nodes.iter().enumerate() {
        for gain in network.gains.listeners(from) {
            let Some(receiver) = network.nodes.get(gain.to) else {
                continue;
            };
            let dbm = sender.profile.transmit_dbm + gain.db;
            let sinr_db = dbm - receiver.profile.noise_dbm();
            if sinr_db >= phy::SYNC_SINR_DB && sender.channel == receiver.channel {
                let arrives = phy::survival(ratio(sinr_db), FRAME_BITS);
                links.extend([from as f64, gain.to as f64, dbm, arrives]);
            }
        }
    }
    links
}

/// Of the longest frame of IEEE 802.15.4: 127 bytes.
const FRAME_BITS: f64 = 127.0 * 8.0;
