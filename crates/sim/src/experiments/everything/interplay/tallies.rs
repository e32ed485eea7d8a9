//! Counters of nodes, summed over their lives.

use motet::link::Link;
use motet::tcphc::HeaderDrop;
use motet::time::Duration;

use crate::net::fairness::Datagrams;
use crate::net::network::{Network, RADIO};

/// Sums of counters, and what was seen at each look.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    nodes: Vec<NodeSums>,
    /// Glances at which a frame waited for the one before it.
    pub(super) waiting: u64,
    /// How many of these were too late, or too early for how long it may wait.
    pub(super) overdue: u64,
    /// Of the fairness: packets that came out, those of them out of order, those that its policy
    /// held, and timeouts while held; and datagrams, by direction.
    pub(super) left: u64,
    pub(super) disordered: u64,
    pub(super) held: u64,
    pub(super) timeouts_held: u64,
    pub(super) datagrams: [Datagrams; 2],
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
        self.datagrams = ledger.datagrams;
        self.held = fairness.router().counters().held;
        self.timeouts_held = fairness.timeouts_held();
    }

    fn look_at(&mut self, network: &Network<'_>, number: usize) {
        if !network.world.is_on(number) {
            return;
        }
        let node = network.world.node(number);
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
        }
    }

    /// Looks at the frames that wait in radios at this moment.
    pub(super) fn glance(&mut self, network: &Network<'_>) {
        let now = network.world.now();
        for number in 0..network.mesh_nodes() {
            let link = network.world.node(number).link(RADIO);
            let Some(Link::Mesh(mesh)) = link.filter(|_| network.world.is_on(number)) else {
                continue;
            };
            if let Some(until) = mesh.mac().waits_until() {
                self.waiting += 1;
                self.overdue += u64::from(until + LATE < now || until > now + WAIT);
            }
        }
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

/// How long a frame may wait for the next one: a few frame times.
const WAIT: Duration = Duration::from_millis(30);

/// A frame whose wait is over leaves once the one under way has gone, with its retries.
const LATE: Duration = Duration::from_millis(200);

/// Why a header is discarded that its peer has sent: what the two know differs.
const DISCARDS: [HeaderDrop; 4] = [
    HeaderDrop::NoContext,
    HeaderDrop::NoReference,
    HeaderDrop::Checksum,
    HeaderDrop::EchoUnsent,
];
