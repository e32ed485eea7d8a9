//! The bound on the goodput of a scenario's run.

use super::flow::Flow;
use super::model::{FaultKind, FaultSettings, FlowEnd, FlowKind, Scenario};
use crate::net::bound::{Path, Stretch};
use crate::net::bounded::{BoundedFlow, ble_kbps};
use crate::net::network::Network;
use crate::net::segments::Segments;

/// The bound on the goodput of the only flow of a run.
#[derive(Debug)]
pub(super) struct RunBound {
    limit: Limit,
    /// Bytes that may be under way at one time.
    window: u64,
}

/// What the bound follows from.
#[derive(Debug)]
enum Limit {
    /// The radios on the way.
    Path(Box<Path>),
    /// Connection events of Bluetooth LE; kb/s.
    Ble(f64),
}

impl RunBound {
    /// The bound of a run over a network that has joined. `None` where there is more than one flow,
    /// or one that is no bulk transfer, where links change, with `TCPlE`, whose segments need not
    /// wait for their turn, and where [`BoundedFlow::path`] knows no bound.
    pub(super) fn new(
        scenario: &Scenario,
        network: &Network<'_>,
        flows: &[Flow<'_>],
    ) -> Option<Self> {
        let ([settings], [flow]) = (&scenario.flows[..], flows) else {
            return None;
        };
        let is_link = |fault: &FaultSettings| fault.kind == FaultKind::Link;
        if settings.kind != FlowKind::Bulk || scenario.faults.iter().any(is_link) {
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
            None => Some(scenario.wire.ack_every()),
        };
        let timestamps = motes().all(|stack| stack.timestamps);
        let [mote, other] = [settings.from, settings.to].map(|end| match end {
            FlowEnd::Node(node) => Some(node),
            FlowEnd::Host => None,
        });
        let on_ble = |end: Option<usize>| end.is_some_and(|n| scenario.network.is_ble(n));
        if scenario.network.is_mixed() && on_ble(mote) != on_ble(other) && mote.zip(other).is_some()
        {
            return None;
        }
        let ble = scenario.network.ble.as_ref();
        let (limit, payload_len) = match ble.filter(|_| on_ble(mote) || on_ble(other)) {
            Some(ble) if ble.tcple_motes == 0 => {
                let segments = Segments {
                    from: mote.or(flow.path().last().copied())?,
                    next: 0,
                    peer: flow.addrs(network)[usize::from(mote.is_some())],
                    timestamps,
                    is_compressed: false,
                };
                let payload_len = segments.payload_len(&network.world);
                (Limit::Ble(ble_kbps(ble, payload_len)), payload_len)
            }
            Some(_) => return None,
            None => {
                let flow = BoundedFlow {
                    nodes: flow.path(),
                    addrs: flow.addrs(network),
                    timestamps,
                    ack_every,
                };
                let path = flow.path(&network.world, &scenario.network)?;
                let payload_len = flow
                    .segments(&scenario.network)?
                    .payload_len(&network.world);
                (Limit::Path(Box::new(path)), payload_len)
            }
        };
        let segments = motes().map(|stack| stack.window_segments).min()?;
        let window = (segments * payload_len) as u64;
        (window > 0).then_some(Self { limit, window })
    }

    /// The highest goodput that `bytes` in `seconds` can be, kb/s. `began_before`: whether the flow
    /// had begun by then.
    pub(super) fn kbps(&self, seconds: f64, bytes: u64, began_before: bool) -> f64 {
        let in_flight = if began_before { self.window } else { 0 };
        match &self.limit {
            Limit::Path(path) => path.of_stretch_kbps(&Stretch {
                seconds,
                bytes,
                in_flight,
            }),
            Limit::Ble(kbps) => kbps + in_flight as f64 / 125.0 / seconds.max(f64::MIN_POSITIVE),
        }
    }
}
