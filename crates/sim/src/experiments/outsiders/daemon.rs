//! Connections beside strangers, behind a border router with one common queue, and the daemon
//! `motet router` in front of it.
//!
//! Purpose: the effect of `motet router --nfqueue` on a mesh with a border router of another make.
//! Traffic and figures are those of [`ChainTraffic`]; a run is compared with one with the same
//! policy and without strangers ([`super::chain_traffic::bulk_ratio`],
//! [`super::chain_traffic::request_ratios`]).

use motet_taim::{Config, Policy};

use super::chain_traffic::ChainTraffic;
use crate::experiments::run::{Failure, Run};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;

/// Traffic past a daemon, into a mesh whose border router has one queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Daemon {
    /// The traffic into the mesh and out of it.
    pub traffic: ChainTraffic,
    /// The policy by which the daemon holds packets of connections; none: there is no daemon.
    pub policy: Option<Policy>,
}

impl Traffic for Daemon {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let traffic = ChainTraffic {
            queues_flows: false,
            ..self.traffic
        };
        let config = |policy| Config {
            strangers_max: Config::STRANGERS_MAX,
            ..Config::new(policy)
        };
        traffic.run_in(setup, (seed, seconds), |options| {
            options.fairness = self.policy.map(config);
        })
    }

    fn segment(&self, setup: &Setup, seconds: u64) -> Segment {
        self.traffic.segment(setup, seconds)
    }
}

#[cfg(test)]
#[path = "../tests/daemon.rs"]
mod tests;
