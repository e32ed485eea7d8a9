//! One mote more than a scenario has, for a run that is under way.
//!
//! Memory, tables and routes of a network are made before its first event. So a mote that comes
//! later is there from the beginning, switched off, and heard by its parent alone. The caller
//! repeats the run up to that moment, and then switches it on ([`super::Change::On`]). Each node
//! and each link has a random stream of its own: up to then the run is the same as without the
//! mote, if its parent passes packets on anyway. A parent that had no child is a router from the
//! beginning.

use std::collections::BTreeSet;

use super::hosts;
use super::model::{FlowEnd, Scenario};
use super::session::Change;
use crate::air::gains::Gains;
use crate::net::network::Parent;
use crate::ordered;

impl Scenario {
    /// This scenario with the last mote of `wanted`, which is to be switched on `after_s` after all
    /// others have joined: its flows, which are that mote's in `wanted`, begin then.
    ///
    /// # Errors
    /// A sentence: `wanted` does not have one node more, or no mesh can be built.
    pub fn with_mote(&self, wanted: &Self, after_s: f64) -> Result<Self, String> {
        let new = self.network.nodes.len();
        let (Some(node), Some(stack), Some(parent)) = (
            wanted.network.nodes.get(new),
            wanted.stacks.get(new),
            wanted.tree.parent(new),
        ) else {
            return Err(format!("there is no node {new} to add, or it has no link"));
        };
        if wanted.network.nodes.len() != new + 1 {
            return Err("one mote at a time is added".to_owned());
        }
        let mut all = self.clone();
        let mut node = node.clone();
        node.parent = Parent::Node(parent);
        all.network.nodes.push(node);
        all.network.gains = beside(&self.network.gains, |from, to| {
            let its = [(from, to), (to, from)].contains(&(new, parent));
            let gain = wanted.network.gains.get(from, to);
            gain.filter(|_| its)
        });
        all.network.absent = self.absent_with(new);
        all.tree = all.network.tree().map_err(|error| error.to_string())?;
        all.stacks.push(stack.clone());
        all.positions.clone_from(&wanted.positions);
        let is_its = |end: FlowEnd| end == FlowEnd::Node(new);
        let flows = wanted
            .flows
            .iter()
            .filter(|flow| is_its(flow.from) || is_its(flow.to));
        all.flows.extend(flows.cloned().map(|mut flow| {
            flow.start_s += after_s;
            flow
        }));
        all.network.hosts = hosts::hosts(&all.wire, &all.flows, &all.faults);
        Ok(all)
    }

    fn absent_with(&self, new: usize) -> BTreeSet<usize> {
        let absent = self.network.absent.iter().copied();
        ordered::set(absent.chain([new]))
    }
}

impl Change {
    /// The same change of a run that has a mote more, which is not in it yet.
    #[must_use]
    pub fn with_mote(&self) -> Self {
        match self {
            Self::Gains(gains) => Self::Gains(beside(gains, |_, _| None)),
            other => other.clone(),
        }
    }
}

/// These gains, and those of a node more.
fn beside(gains: &Gains, new: impl Fn(usize, usize) -> Option<f64>) -> Gains {
    let nodes = gains.nodes();
    Gains::from_fn(nodes + 1, |from, to| {
        let gain = match from < nodes && to < nodes {
            true => gains.get(from, to),
            false => new(from, to),
        };
        gain.unwrap_or(f64::NEG_INFINITY)
    })
}
