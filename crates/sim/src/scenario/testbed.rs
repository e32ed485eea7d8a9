//! The nodes of a testbed that take part in a run: those with a path to the border router.

use std::collections::{BTreeMap, BTreeSet};

use super::error::ScenarioError;
use super::layout::Layout;
use super::model::{FaultSettings, FlowEnd, FlowSettings, RadioSettings};
use crate::net::network::{NetworkOptions, NodeOptions};

/// The nodes of a run that are off from the start to the end.
#[derive(Clone, Default, Debug)]
pub(super) struct LeftOut {
    /// All of them.
    pub(super) nodes: BTreeSet<usize>,
    /// Those that the testbed has measured: the others are gaps in its numbers.
    pub(super) measured: Vec<usize>,
}

impl LeftOut {
    /// The nodes without a path, where the layout is a testbed's and finds the parents itself.
    ///
    /// # Errors
    /// No node has a path.
    pub(super) fn of(
        layout: &Layout,
        parents: &[usize],
        radio: &RadioSettings,
        profiles: &BTreeMap<usize, String>,
    ) -> Result<Self, ScenarioError> {
        let Some(measured) = layout.testbed.as_ref().filter(|_| parents.is_empty()) else {
            return Ok(Self::default());
        };
        let count = layout.gains.nodes();
        let nodes = (0..count).map(|n| NodeOptions {
            profile: radio.profile_of(profiles.get(&n).unwrap_or(&radio.profile)),
            channel: radio.channel,
            ..NodeOptions::new(n.to_string())
        });
        let network = NetworkOptions::new(nodes.collect(), layout.gains.clone());
        let nodes = network.without_path();
        if nodes.len() + 1 >= count {
            let heard = |node: &usize| layout.gains.listeners(*node).len();
            let best = (0..count).max_by_key(heard).unwrap_or_default();
            return Err(ScenarioError::new(format!(
                "no path of links leads from any node of the trace to the border router on channel \
                 {}: choose another topology.root (most nodes hear node {best}) or radio.channel",
                radio.channel
            )));
        }
        Ok(Self {
            measured: nodes.intersection(measured).copied().collect(),
            nodes,
        })
    }

    /// The last of `nodes` nodes that takes part.
    pub(super) fn last(&self, nodes: usize) -> usize {
        let mut present = (0..nodes).rev().filter(|node| !self.nodes.contains(node));
        present.next().unwrap_or_default()
    }

    /// # Errors
    /// A flow or a fault of a node that is off.
    pub(super) fn check(
        &self,
        flows: &[FlowSettings],
        faults: &[FaultSettings],
    ) -> Result<(), ScenarioError> {
        let off = |key: &str, node: usize| {
            let sentence = format!(
                "{key} is {node}, but must be a node from which a path of links leads to the border \
                 router (topology.root)"
            );
            match self.nodes.contains(&node) {
                true => Err(ScenarioError::new(sentence)),
                false => Ok(()),
            }
        };
        for (flow, number) in flows.iter().zip(1..) {
            for (key, end) in [("flow.from", flow.from), ("flow.to", flow.to)] {
                if let FlowEnd::Node(node) = end {
                    off(key, node).map_err(|error| error.of_table("flow", number))?;
                }
            }
        }
        for (fault, number) in faults.iter().zip(1..) {
            off("fault.node", fault.node).map_err(|error| error.of_table("fault", number))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests/testbed.rs"]
mod tests;
