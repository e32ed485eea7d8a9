//! The bound on the goodput of a scenario's run.

use super::flow::Flow;
use super::model::{FaultKind, FaultSettings, FlowEnd, FlowKind, Scenario};
use crate::net::bound::{Path, Stretch};
use crate::net::bounded::BoundedFlow;
use crate::net::network::Network;

/// The bound on the goodput of the only flow of a run.
#[derive(Debug)]
pub(super) struct RunBound {
    path: Path,
    /// Bytes that may be under way at one time.
    window: u64,
}

impl RunBound {
    /// The bound of a run over a network that has joined. `None` where there is more than one flow,
    /// or one that is no bulk transfer, where links change, over Bluetooth LE, and where
    /// [`BoundedFlow::path`] knows no bound.
    pub(super) fn new(
        scenario: &Scenario,
        network: &Network<'_>,
        flows: &[Flow<'_>],
    ) -> Option<Self> {
        let ([settings], [flow]) = (&scenario.flows[..], flows) else {
            return None;
        };
        let is_link = |fault: &FaultSettings| fault.kind == FaultKind::Link;
        let is_ble = scenario.network.ble.is_some();
        if is_ble || settings.kind != FlowKind::Bulk || scenario.faults.iter().any(is_link) {
            return None;
        }
        let ends = [settings.from, settings.to].map(|end| match end {
            FlowEnd::Host => None,
            FlowEnd::Node(node) => scenario.stacks.get(node),
        });
        let motes = || ends.into_iter().flatten();
        // Those of the host pass the border router.
        let ack_every = match ends[1] {
            Some(stack) => Some(stack.ack_every),
            None if scenario.network.thins_acks => None,
            None => Some(scenario.wire.host_ack_every),
        };
        let flow = BoundedFlow {
            nodes: flow.path(),
            addrs: flow.addrs(network),
            timestamps: motes().all(|stack| stack.timestamps),
            ack_every,
        };
        let path = flow.path(&network.world, &scenario.network)?;
        let segments = motes().map(|stack| stack.window_segments).min()?;
        let window = (segments * path.segment.payload_len) as u64;
        (window > 0).then_some(Self { path, window })
    }

    /// The highest goodput that `bytes` in `seconds` can be, kb/s. `began_before`: whether the flow
    /// had begun by then.
    pub(super) fn kbps(&self, seconds: f64, bytes: u64, began_before: bool) -> f64 {
        self.path.of_stretch_kbps(&Stretch {
            seconds,
            bytes,
            in_flight: if began_before { self.window } else { 0 },
        })
    }
}
