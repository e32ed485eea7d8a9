//! Nodes that are switched off and on during a run.
//!
//! Purpose: the one list of such events, for every caller that runs a network.
//! Place: a caller asks [`Outages::next_at`], lets the network run until then, and calls
//! [`Outages::pass`].
//! Left out: links that change, which are the medium's; packets that a wire loses (`faults`).

use std::collections::BTreeMap;

use motet::time::{Duration, Instant};

use super::network::Network;
use crate::Arena;
use crate::air::radio::OFF_MIN;
use crate::streams::{Purpose, stream};

/// A fault of one node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Switch {
    /// The node is switched off.
    Off,
    /// The node is switched on.
    On,
}

/// The faults still to come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outages {
    /// The faults by time, then in the order in which they were added.
    planned: BTreeMap<(Instant, usize), (usize, Switch)>,
    added: usize,
}

impl Outages {
    /// Switches every mesh node of `network` off, which has not run yet, and on at a random
    /// moment before `within`; also gives the last of these moments.
    pub fn staggered(network: &mut Network<'_>, within: Duration) -> (Self, Instant) {
        let seed = network.seed();
        let mut outages = Self::default();
        let mut last = Instant::ORIGIN;
        let is_left_out = |node: usize| network.world.is_left_out(node);
        let present = |node: &usize| !is_left_out(*node) && !network.is_absent(*node);
        for node in (0..network.mesh_nodes())
            .filter(present)
            .collect::<Vec<_>>()
        {
            // Lossless: nodes have 16-bit numbers.
            let mut rng = stream(seed, node as u32, Purpose::SwitchOn);
            let at = (Instant::ORIGIN + rng.uniform(within)).max(Instant::ORIGIN + OFF_MIN);
            network.switch_off(node);
            outages.add(at, node, Switch::On);
            last = last.max(at);
        }
        (outages, last)
    }

    /// Lets this happen to `node` at an instant.
    pub fn add(&mut self, at: Instant, node: usize, switch: Switch) {
        self.planned.insert((at, self.added), (node, switch));
        self.added += 1;
    }

    /// When the next node is switched.
    pub fn next_at(&self) -> Option<Instant> {
        self.planned.keys().next().map(|(at, _)| *at)
    }

    /// Whether `node` is never switched on again.
    pub fn is_last_of(&self, node: usize) -> bool {
        let mut planned = self.planned.values();
        !planned.any(|planned| *planned == (node, Switch::On))
    }

    /// Lets everything happen that is due, and nothing before `note` has seen the network and
    /// heard of it.
    pub fn pass<'m>(
        &mut self,
        network: &mut Network<'m>,
        arena: &'m Arena,
        mut note: impl FnMut(&Network<'m>, usize, Switch),
    ) {
        let now = network.world.now();
        while let Some(next) = self.planned.first_entry()
            && next.key().0 <= now
        {
            let (node, switch) = next.remove();
            note(network, node, switch);
            match switch {
                Switch::Off => network.switch_off(node),
                Switch::On => network.switch_on(node, arena),
            }
        }
    }
}
