//! Counters of nodes, summed over their lives.

use motet::link::Link;
use motet::tcphc::HeaderDrop;
use motet::time::Duration;

use crate::net::network::{BESIDE, Network, RADIO};

/// Sums of counters, and what was seen at each look.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    nodes: Vec<NodeSums>,
    /// Looks at which a frame waited for the one before it.
    pub(super) waiting: u64,
    /// How many of these waited longer than they may.
    pub(super) overdue: u64,
    /// Segments that the border router held for Bluetooth LE's motes, at most.
    pub(super) held_max: u64,
    /// Of the fairness: packets that came out, those of them out of order, timeouts while held; and
    /// all packets that are not TCP, and the held.
    pub(super) left: u64,
    pub(super) disordered: u64,
    pub(super) timeouts_held: u64,
    pub(super) others: [u64; 2],
}

/// Sums of one node.
#[derive(Clone, Debug, Default)]
struct NodeSums {
    counters: [Sum; COUNTERS],
}

/// A counter that begins anew where its node does.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    last: u64,
    total: u64,
}

/// What is counted of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counter {
    /// TCP headers restored.
    Restored,
    /// TCP headers discarded.
    Discarded,
    /// Frames that waited in the radio.
    Conditional,
    /// Packets marked.
    Marked,
    /// Packets into the mesh that had a queue of their flow.
    Queued,
    /// How many of these were dropped.
    QueueDropped,
    /// Segments prefetched.
    Prefetched,
    /// Prefetched segments that TCP has sent.
    Released,
    /// Held segments that were passed on.
    PassedOn,
    /// Segments that came to TCP, and how many of these header prediction took.
    Received,
    Predicted,
}

const COUNTERS: usize = Counter::Predicted as usize + 1;

impl Sum {
    fn note(&mut self, now: u64) {
        self.total += match now >= self.last {
            true => now - self.last,
            false => now,
        };
        self.last = now;
    }
}

impl NodeSums {
    fn note(&mut self, counter: Counter, now: u32) {
        if let Some(sum) = self.counters.get_mut(counter as usize) {
            sum.note(now.into());
        }
    }
}

impl Tallies {
    /// Adds what has been counted since the last look.
    pub(super) fn look(&mut self, network: &Network<'_>) {
        self.nodes
            .resize_with(network.mesh_nodes(), NodeSums::default);
        for node in 0..network.mesh_nodes() {
            self.look_at(network, node);
        }
        let Some(fairness) = network.world.fairness() else {
            return;
        };
        let ledger = fairness.ledger();
        self.left = ledger.left;
        self.disordered = ledger.disordered;
        self.others = ledger.others;
        self.timeouts_held = fairness.timeouts_held();
    }

    fn look_at(&mut self, network: &Network<'_>, number: usize) {
        if !network.world.is_on(number) {
            return;
        }
        let (node, now) = (network.world.node(number), network.world.now());
        let sums = &mut self.nodes[number];
        sums.note(Counter::Marked, node.ip().counters.marked);
        sums.note(Counter::Received, node.tcp().counters().received);
        sums.note(Counter::Predicted, node.tcp().counters().predicted);
        if let Some(Link::Mesh(mesh)) = node.link(RADIO) {
            sums.note(Counter::Conditional, mesh.mac().counters().conditional);
            if let Some(tcphc) = mesh.tcphc() {
                let counters = tcphc.counters();
                let discarded = DISCARDS.iter().map(|why| counters.dropped(*why));
                sums.note(Counter::Discarded, discarded.sum());
                sums.note(Counter::Restored, counters.restored);
            }
            if let Some(flows) = mesh.flow_queues() {
                sums.note(Counter::Queued, flows.counters().queued);
                sums.note(Counter::QueueDropped, flows.counters().dropped);
            }
            if let Some(until) = mesh.mac().waits_until() {
                self.waiting += 1;
                self.overdue += u64::from(until + LATE < now);
            }
        }
        let over_ble = [RADIO, BESIDE].map(|interface| node.link(interface));
        for link in over_ble.into_iter().flatten() {
            let Link::Ble(ble) = link else { continue };
            let Some(tcple) = ble.tcple_counters() else {
                continue;
            };
            sums.note(Counter::Prefetched, tcple.prefetched);
            sums.note(Counter::Released, tcple.released);
            sums.note(Counter::PassedOn, tcple.passed_on);
        }
    }

    /// Looks at what the border router holds at this moment.
    pub(super) fn glance(&mut self, network: &Network<'_>) {
        let is_on = network.world.is_on(0);
        let link = network.world.node(0).link(BESIDE).filter(|_| is_on);
        let Some(Link::Ble(ble)) = link else { return };
        let Some(tcple) = ble.tcple_counters() else {
            return;
        };
        let gone = tcple.passed_on.wrapping_add(tcple.dropped);
        let held = tcple.held.wrapping_sub(gone);
        self.held_max = self.held_max.max(held.into());
    }

    /// The sum over some nodes.
    pub(super) fn sum(&self, counter: Counter, is_meant: impl Fn(usize) -> bool) -> u64 {
        let nodes = self.nodes.iter().enumerate();
        let nodes = nodes.filter(|(node, _)| is_meant(*node));
        nodes
            .map(|(_, sums)| sums.counters[counter as usize].total)
            .sum()
    }
}

/// A frame whose wait is over leaves once the one under way has gone, with its retries.
const LATE: Duration = Duration::from_millis(200);

/// Why a header is discarded that its peer has sent: what the two know differs.
const DISCARDS: [HeaderDrop; 4] = [
    HeaderDrop::NoContext,
    HeaderDrop::NoReference,
    HeaderDrop::Checksum,
    HeaderDrop::EchoUnsent,
];
