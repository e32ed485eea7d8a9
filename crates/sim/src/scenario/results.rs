//! The results of a run.
//!
//! What many runs give together is in [`crate::report`].

use serde::{Deserialize, Serialize};

use super::outcome::{Likeness, Outcome};
use crate::air::medium::Fate;
use crate::air::radio::State;
use crate::apps::ages::Ages;
use crate::scenario::{FlowEnd, FlowKind, Move};
use crate::stats::{jain, ratio};
use motet::tcp::RetransmissionCause;

/// The results of one run. All counts are of the time after the warm-up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Which point of the sweep.
    pub point: usize,
    /// The seed of the run.
    pub seed: u64,
    /// Whether the run went to its end.
    pub complete: bool,
    /// Why the run counts for nothing, if so.
    pub failure: Option<String>,
    /// Until all motes had an address and a route, s.
    pub joined_s: f64,
    /// The measured time, s.
    pub seconds: f64,
    /// The goodput that the run cannot exceed, kb/s, where such a bound is known.
    pub bound_kbps: Option<f64>,
    /// The goodput that the best pace and window of a search reached, kb/s, where one was made
    /// ([`Plan::search_reachable`](super::Plan::search_reachable)).
    #[serde(default)]
    pub reachable_kbps: Option<f64>,
    /// The results of each flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// The results of each mesh node, then of the host.
    pub nodes: Vec<NodeResult>,
    /// Links that carried anything.
    pub links: Vec<LinkResult>,
    /// Packets lost on purpose at the border router.
    pub packets_injected_lost: u64,
    /// ACKs whose place a newer one took at the border router.
    pub acks_thinned: u64,
    /// Flows over time; of the first seed of each point only.
    pub samples: Vec<Sample>,
    /// Nodes that got another parent, in order.
    pub moves: Vec<Move>,
    /// Motes that sleep, hour by hour, where the run is that long.
    pub hours: Vec<HourResult>,
}

/// How much a mote was awake in an hour of the run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct HourResult {
    /// The mote's number.
    pub node: usize,
    /// Counted from 0, from the moment when all motes had joined.
    pub hour: usize,
    /// Share of it in which the radio was not asleep, 0 to 1.
    pub radio_duty: f64,
    /// Share of it in which the processor worked for the radio, 0 to 1.
    pub cpu_duty: f64,
}

/// The results of one flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowResult {
    /// The flow's place in the scenario.
    pub flow: usize,
    /// The sender.
    pub from: FlowEnd,
    /// The receiver.
    pub to: FlowEnd,
    /// The flow's sort.
    pub likeness: Likeness,
    /// The end of the flow.
    pub outcome: Outcome,
    /// Bytes of an image that were sent again: over TCP once a connection was lost, over CoAP in
    /// each block that was; none of other flows.
    pub resent_bytes: Option<u64>,
    /// Connections that were established and lost; none of datagrams.
    pub connections_lost: Option<u32>,
    /// Application bytes read at the far end in the whole run.
    pub bytes: u64,
    /// The part of `bytes` that came after the warm-up.
    pub counted_bytes: u64,
    /// Application bytes a second, kb/s: after the warm-up, or of a transfer that ended from
    /// its first to its last.
    pub goodput_kbps: f64,
    /// Mean of the smoothed round-trip times sampled, ms; none where there was no sample.
    pub rtt_ms: Option<f64>,
    /// Mean congestion window sampled, as far as buffers let it be used; full segments.
    pub cwnd_segments: Option<f64>,
    /// How long a transfer of known length took, s; none if it did not end.
    pub finished_s: Option<f64>,
    /// Messages or datagrams that were due in the whole run, and those that arrived or were
    /// answered; none of a bulk flow.
    pub messages: Option<[u64; 2]>,
    /// How old messages were on arrival, or until they were answered.
    #[serde(default)]
    pub ages: Ages,
    /// Mean age of messages on arrival, or until they were answered, ms.
    pub latency_ms: Option<f64>,
    /// The age that half of them do not exceed, ms.
    pub latency_p50_ms: Option<f64>,
    /// The age that nineteen of twenty do not exceed, ms.
    pub latency_p95_ms: Option<f64>,
    /// The greatest age of a message, ms.
    pub latency_max_ms: Option<f64>,
    /// The flow's share of the energy that the nodes on its path used after the warm-up, mJ: shared
    /// by bytes; radio and processor, listening included.
    pub energy_mj: f64,
    /// The bytes read were the bytes sent, in order, once.
    pub intact: bool,
}

/// The results of one node.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeResult {
    /// The node's name: a number, or "host".
    pub name: String,
    /// The next hop towards the border router, the last one if there is none any more.
    pub parent: Option<usize>,
    /// Radio hops to the border router.
    pub hops: usize,
    /// The node's rank, where a routing protocol gives it one.
    pub rank: Option<u16>,
    /// Expected transmissions of a frame to its parent, as its link has counted them.
    pub etx: Option<f64>,
    /// Until it first had an address and a parent, s after the last node was switched on.
    pub joined_s: Option<f64>,
    /// How often its parent became another one.
    pub parent_changes: u64,
    /// How long the node's battery would last, days, where the scenario has one.
    pub battery_days: Option<f64>,
    /// The node's counters.
    pub counts: NodeCounts,
}

/// Counters of one node.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeCounts {
    /// Frames put on the air, each attempt, ACKs not.
    pub transmissions: u64,
    /// Attempts at a frame after the first.
    pub retries: u64,
    /// Assessments that found the channel busy.
    pub channel_busy: u64,
    /// Frames and ACKs put on the air that carry no TCP, no UDP and no echo.
    pub control_frames: u64,
    /// How long these control frames were on the air, µs.
    pub control_us: u64,
    /// TCP segments sent.
    pub segments: u64,
    /// How many of these were sent again, by [`RetransmissionCause`].
    pub retransmissions: [u64; RetransmissionCause::COUNT],
    /// Frames, fragments and packets dropped, by [`DROPS`].
    pub drops: [u64; DROPS.len()],
    /// Time of the radio in each state, µs, by [`State`].
    pub states_us: [u64; State::COUNT],
    /// Time that the processor worked for the radio, µs.
    pub cpu_us: u64,
    /// The energy that the radio used, mJ.
    pub radio_mj: f64,
    /// The energy that the processor used, mJ.
    pub cpu_mj: f64,
}

/// The frames over one link, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LinkResult {
    /// The sending node.
    pub from: usize,
    /// The receiving node.
    pub to: usize,
    /// Frames with a payload, each attempt.
    pub frames: u64,
    /// The fates of these frames, by [`Fate::index`].
    pub fates: [u64; Fate::COUNT],
}

/// One flow at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// The flow's place in the scenario.
    pub flow: usize,
    /// Since all motes had joined, s.
    pub at_s: f64,
    /// Goodput since the sample before, kb/s.
    pub goodput_kbps: f64,
    /// Smoothed round-trip time, ms; 0 before the first.
    pub rtt_ms: u32,
    /// Congestion window, bytes.
    pub cwnd_bytes: u16,
    /// Slow start threshold, bytes.
    pub ssthresh_bytes: u16,
    /// The part of cwnd that the sender's buffer and the peer's window let it use, bytes.
    pub window_bytes: u16,
    /// Sent, neither acknowledged nor deemed lost, bytes.
    pub inflight_bytes: u16,
}

/// Names of the drops that [`NodeCounts::drops`] counts.
pub const DROPS: [&str; 27] = [
    "link gave up: no ACK",
    "link gave up: channel busy",
    "link gave up: frame too old",
    "MAC queue full",
    "relay queue full",
    "IP queue full",
    "IP: packet too old",
    "IP: no route leads there",
    "IP: back to where it came from",
    "RPL: a loop",
    "RPL: another instance",
    "RPL: a tunnel that must not be",
    "fragments: no first one",
    "fragments: sibling lost",
    "fragments: not whole in time",
    "fragments: evicted",
    "fragments: table full",
    "fragments: no memory",
    "security: not secured",
    "security: at a lower level",
    "security: with another key",
    "security: replayed",
    "security: last counter",
    "security: forged",
    "security: of an unproven neighbour",
    "security: beyond the strangers' share",
    "security: no counter to send with",
];

/// Names of the radio's states, by [`State`].
pub const STATES: [&str; State::COUNT] = [
    "sleep",
    "listen",
    "copy in",
    "copy out",
    "assess",
    "prepare",
    "turn around",
    "transmit",
];

impl NodeCounts {
    /// Adds what the same node counted before it was switched off.
    pub(super) fn add_stack(&mut self, before: &Self) {
        fn add<const N: usize>(sums: &mut [u64; N], counts: [u64; N]) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        self.transmissions += before.transmissions;
        self.retries += before.retries;
        self.channel_busy += before.channel_busy;
        self.segments += before.segments;
        add(&mut self.retransmissions, before.retransmissions);
        add(&mut self.drops, before.drops);
    }

    /// The counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        fn each<const N: usize>(now: [u64; N], before: [u64; N]) -> [u64; N] {
            std::array::from_fn(|at| now[at].saturating_sub(before[at]))
        }
        Self {
            transmissions: self.transmissions.saturating_sub(before.transmissions),
            retries: self.retries.saturating_sub(before.retries),
            channel_busy: self.channel_busy.saturating_sub(before.channel_busy),
            control_frames: self.control_frames.saturating_sub(before.control_frames),
            control_us: self.control_us.saturating_sub(before.control_us),
            segments: self.segments.saturating_sub(before.segments),
            retransmissions: each(self.retransmissions, before.retransmissions),
            drops: each(self.drops, before.drops),
            states_us: each(self.states_us, before.states_us),
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            radio_mj: self.radio_mj - before.radio_mj,
            cpu_mj: self.cpu_mj - before.cpu_mj,
        }
    }

    /// TCP segments sent again.
    pub fn retransmitted(&self) -> u64 {
        self.retransmissions.iter().sum()
    }

    /// Share of the time in which the radio was not asleep, 0 to 1.
    pub fn radio_duty(&self) -> f64 {
        1.0 - self.share(State::Sleep)
    }

    /// Share of the time in which the processor worked for the radio, 0 to 1.
    pub fn cpu_duty(&self) -> f64 {
        ratio(self.cpu_us, self.states_us.iter().sum())
    }

    /// Mean power of radio and processor, mW.
    pub fn power_mw(&self) -> [f64; 2] {
        let seconds = self.states_us.iter().sum::<u64>() as f64 / 1e6;
        [self.radio_mj, self.cpu_mj].map(|mj| if seconds > 0.0 { mj / seconds } else { 0.0 })
    }

    /// Share of the time that the radio was in `state`, 0 to 1.
    pub fn share(&self, state: State) -> f64 {
        ratio(self.states_us[state as usize], self.states_us.iter().sum())
    }
}

/// The age that nineteen of twenty of all messages of these flows do not exceed, ms: of their
/// readers together, so that one that waits long counts by its messages. None where none came.
pub fn latency_p95_ms_of<'f>(flows: impl IntoIterator<Item = &'f FlowResult>) -> Option<f64> {
    let mut all = Ages::default();
    for flow in flows {
        all.add(&flow.ages);
    }
    let age = all.quantile(0.95)?;
    Some(age.as_micros() as f64 / 1e3)
}

impl FlowResult {
    /// The flow's name in errors: its place in the scenario, counted from 1, and its ends.
    pub fn name(&self) -> String {
        format!("[[flow]] {} ({} → {})", self.flow + 1, self.from, self.to)
    }

    /// The energy of a byte, µJ; none where none arrived after the warm-up.
    pub fn energy_uj_per_byte(&self) -> Option<f64> {
        let bytes = self.counted_bytes;
        (bytes > 0).then(|| self.energy_mj * 1e3 / bytes as f64)
    }

    /// Messages that arrived or were answered, of those that were due, 0 to 1; none where none was
    /// due yet.
    pub fn delivered(&self) -> Option<f64> {
        let [due, came] = self.messages?;
        (due > 0).then(|| ratio(came, due))
    }
}

impl LinkResult {
    /// Share of the frames that arrived, 0 to 1.
    pub fn delivered(&self) -> f64 {
        ratio(self.fates[Fate::Received.index()], self.frames)
    }
}

impl RunResult {
    /// The longest time between two samples of a stretch with bytes of the flow in this place, the
    /// ends of the stretch included, s; `None` where it has no samples.
    pub fn silence_s(&self, flow: usize, [from, to]: [f64; 2]) -> Option<f64> {
        let own = self.samples.iter().filter(|it| it.flow == flow);
        let mut own = own.filter(|it| (from..=to).contains(&it.at_s)).peekable();
        own.peek()?;
        let (mut longest, mut last) = (0.0_f64, from);
        for sample in own.filter(|it| it.goodput_kbps > 0.0) {
            longest = longest.max(sample.at_s - last);
            last = sample.at_s;
        }
        Some(longest.max(to - last))
    }

    /// Goodput of all flows together after the warm-up, kb/s.
    pub fn goodput_kbps(&self) -> f64 {
        if self.seconds > 0.0 {
            self.counted_bytes() as f64 / 125.0 / self.seconds
        } else {
            0.0
        }
    }

    /// Application bytes that came out of all flows after the warm-up.
    fn counted_bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.counted_bytes).sum()
    }

    /// Flows that ended otherwise than they should.
    pub fn failed_flows(&self) -> impl Iterator<Item = &FlowResult> {
        let mut flows = self.flows.iter();
        std::iter::from_fn(move || flows.find(|flow| flow.outcome.is_failure()))
    }

    /// The flow's failure, if it failed, as the end of a sentence.
    pub fn trouble(&self) -> Option<String> {
        if self.failure.is_some() {
            return self.failure.clone();
        }
        let first = self.failed_flows().next()?;
        let what = format!("{} {}", first.name(), first.outcome.sentence());
        Some(match (self.failed_flows().count(), self.flows.len()) {
            (1, _) => what,
            (failed, all) => format!("{failed} of {all} flows failed, the first: {what}"),
        })
    }

    /// Whether the transfers without an end got the same: Jain's index, 1 at best.
    pub fn fairness(&self) -> Option<f64> {
        let shares =
            |flow: &&FlowResult| flow.likeness.kind == FlowKind::Bulk && flow.likeness.bytes == 0;
        let endless = self.flows.iter().filter(shares);
        let shares: Vec<f64> = endless.map(|flow| flow.goodput_kbps).collect();
        (shares.len() > 1 && shares.iter().any(|share| *share > 0.0)).then(|| jain(&shares))
    }

    /// Segments sent again, of all that the flows' senders sent.
    pub fn retransmitted(&self) -> f64 {
        let (mut sent, mut again) = (0, 0);
        for node in self.senders() {
            sent += node.counts.segments;
            again += node.counts.retransmitted();
        }
        ratio(again, sent)
    }

    /// Retransmission timeouts at both ends of the flows: the one that answers sends, too. Each
    /// node counts once, the host with all its connections.
    pub fn timeouts(&self) -> u64 {
        let timeouts = RetransmissionCause::Timeout as usize;
        let of = |node: &NodeResult| node.counts.retransmissions[timeouts];
        let ends = self.flows.iter().flat_map(|flow| [flow.from, flow.to]);
        self.nodes_at(ends).map(of).sum()
    }

    /// Frames with a payload on the air.
    pub fn frames(&self) -> u64 {
        self.links.iter().map(|link| link.frames).sum()
    }

    /// The fates of those frames, by [`Fate::index`].
    pub fn fates(&self) -> [u64; Fate::COUNT] {
        let mut sums = [0; Fate::COUNT];
        for link in &self.links {
            for (sum, count) in sums.iter_mut().zip(link.fates) {
                *sum += count;
            }
        }
        sums
    }

    /// Frames that did not arrive, of all.
    pub fn frame_loss(&self) -> f64 {
        let frames = self.frames();
        ratio(frames - self.fates()[Fate::Received.index()], frames)
    }

    /// The energy that radios and processors of all nodes used, mJ.
    pub fn energy_mj(&self) -> f64 {
        let of = |node: &NodeResult| node.counts.radio_mj + node.counts.cpu_mj;
        // An empty sum of f64 would be -0.0.
        self.nodes.iter().map(of).fold(0.0, |sum, node| sum + node)
    }

    /// The energy that all nodes used for each byte that any flow delivered, µJ; none where there
    /// was none.
    pub fn energy_uj_per_byte(&self) -> Option<f64> {
        let bytes = self.counted_bytes();
        (bytes > 0).then(|| self.energy_mj() * 1e3 / bytes as f64)
    }

    /// Frames sent again by links, of all.
    pub fn retried(&self) -> f64 {
        let sum = |count: fn(&NodeCounts) -> u64| -> u64 {
            self.nodes.iter().map(|node| count(&node.counts)).sum()
        };
        ratio(sum(|node| node.retries), sum(|node| node.transmissions))
    }

    fn senders(&self) -> impl Iterator<Item = &NodeResult> {
        self.nodes_at(self.flows.iter().map(|flow| flow.from))
    }

    /// The nodes at these ends, each once.
    fn nodes_at(&self, ends: impl Iterator<Item = FlowEnd>) -> impl Iterator<Item = &NodeResult> {
        // The nodes of the mesh, then the host.
        let host = self.nodes.len().saturating_sub(1);
        let mut nodes: Vec<usize> = ends
            .map(|end| match end {
                FlowEnd::Host => host,
                FlowEnd::Node(node) => node,
            })
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().filter_map(|node| self.nodes.get(node))
    }
}
