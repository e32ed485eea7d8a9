//! The cost of a run to the nodes of a chain: energy, processor time, work of the header
//! compressor.
//!
//! Place: read off a network before and after what is measured; the difference counts.
//! Left out: nodes beside the chain and hosts, which are no part of the path.

use motet::link::Link;

use crate::air::radio::State;
use crate::net::network::{Network, RADIO};

/// Sums over the nodes of a chain, border router included.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    /// Energy of the radios while they transmit, ACKs included, mJ.
    pub transmit_mj: f64,
    /// Energy of radios and processors, mJ.
    pub total_mj: f64,
    /// Time in which processors worked for their radios, s.
    pub cpu_s: f64,
    /// TCP headers compressed and restored.
    pub compressions: f64,
}

impl Spent {
    /// All since the network began.
    ///
    /// `mote`: the chain's far end.
    pub fn of(network: &Network<'_>, mote: usize) -> Self {
        let mut spent = Self::default();
        for node in 0..=mote {
            if let Some((usage, profile)) = network.world.usage(node).zip(network.profile(node)) {
                let transmit_ma = profile.currents.transmitting_ma(profile.transmit_dbm);
                let transmit_mw = transmit_ma * profile.currents.volts;
                spent.transmit_mj += transmit_mw * seconds(usage.span(State::Transmit));
                spent.cpu_s += seconds(usage.cpu());
            }
            if let Some(energy) = network.world.energy(node) {
                spent.total_mj += energy.radio_mj + energy.cpu_mj;
            }
            spent.compressions += compressions(network, node);
        }
        spent
    }

    /// The cost since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            transmit_mj: self.transmit_mj - before.transmit_mj,
            total_mj: self.total_mj - before.total_mj,
            cpu_s: self.cpu_s - before.cpu_s,
            compressions: self.compressions - before.compressions,
        }
    }
}

fn seconds(span: motet::time::Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

/// Headers that a node has compressed, whatever form came out, and restored.
fn compressions(network: &Network<'_>, node: usize) -> f64 {
    let Some(Link::Mesh(radio)) = network.world.node(node).link(RADIO) else {
        return 0.0;
    };
    let Some(counters) = radio.tcphc().map(motet::tcphc::Tcphc::counters) else {
        return 0.0;
    };
    let [full, mostly, compressed, _plain] = counters.sent;
    f64::from(full) + f64::from(mostly) + f64::from(compressed) + f64::from(counters.restored)
}
