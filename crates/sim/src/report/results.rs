//! What a run gave, and what many runs give together.

use std::collections::BTreeMap;

use serde::Serialize;

use super::outcome::{Likeness, Outcome};
use crate::experiments::stats::{Stat, jain};
use crate::medium::Fate;
use crate::radio::State;
use crate::scenario::{FlowEnd, FlowKind};
use motet::tcp::RetransmissionCause;

/// What one run gave. All counts are of the time after the warm-up.
#[derive(Clone, PartialEq, Debug)]
pub struct RunResult {
    /// Which point of the sweep.
    pub point: usize,
    /// With which seed.
    pub seed: u64,
    /// Whether it went to its end.
    pub complete: bool,
    /// Why it is worth nothing, if so.
    pub failure: Option<String>,
    /// Until all motes had an address and a route, s.
    pub joined_s: f64,
    /// Measured time, s.
    pub seconds: f64,
    /// By flow, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// By mesh node, then the host.
    pub nodes: Vec<NodeResult>,
    /// Links that carried anything.
    pub links: Vec<LinkResult>,
    /// Packets lost on purpose at the border router.
    pub packets_injected_lost: u64,
    /// Flows over time; of the first seed of each point only.
    pub samples: Vec<Sample>,
}

/// How one flow did.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowResult {
    /// Place in the scenario.
    pub flow: usize,
    /// Who sent.
    pub from: FlowEnd,
    /// Who received.
    pub to: FlowEnd,
    /// What sort of flow it is.
    pub likeness: Likeness,
    /// How it ended.
    pub outcome: Outcome,
    /// Application bytes read at the far end in the whole run.
    pub bytes: u64,
    /// Those of them that came after the warm-up.
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
    /// Mean age of messages on arrival, or until they were answered, ms.
    pub latency_ms: Option<f64>,
    /// The age that half of them do not exceed, ms.
    pub latency_p50_ms: Option<f64>,
    /// The age that nineteen of twenty do not exceed, ms.
    pub latency_p95_ms: Option<f64>,
    /// The greatest age, ms.
    pub latency_max_ms: Option<f64>,
    /// Its share of what the nodes on its path used after the warm-up, mJ: by bytes, of radio
    /// and processor, listening included.
    pub energy_mj: f64,
    /// The bytes read were the bytes sent, in order, once.
    pub intact: bool,
}

/// What happened at one node.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeResult {
    /// Its name: a number, or "host".
    pub name: String,
    /// Its next hop towards the border router.
    pub parent: Option<usize>,
    /// Radio hops to the border router.
    pub hops: usize,
    /// How much of everything.
    pub counts: NodeCounts,
}

/// Counters of one node.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NodeCounts {
    /// Frames put on the air, each attempt, ACKs not.
    pub transmissions: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Assessments that found the channel busy.
    pub channel_busy: u64,
    /// TCP segments sent.
    pub segments: u64,
    /// Of them sent again, by [`RetransmissionCause`].
    pub retransmissions: [u64; RetransmissionCause::COUNT],
    /// Frames, fragments and packets dropped, by [`DROPS`].
    pub drops: [u64; DROPS.len()],
    /// Time of the radio in each state, µs, by [`State`].
    pub states_us: [u64; State::COUNT],
    /// Time that the processor worked for the radio, µs.
    pub cpu_us: u64,
    /// What the radio used, mJ.
    pub radio_mj: f64,
    /// What the processor used, mJ.
    pub cpu_mj: f64,
}

/// What went over one link, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkResult {
    /// Sender.
    pub from: usize,
    /// Receiver.
    pub to: usize,
    /// Frames with a payload, each attempt.
    pub frames: u64,
    /// What became of them, by [`Fate::index`].
    pub fates: [u64; Fate::COUNT],
}

/// One flow at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// Which flow.
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
    /// What of it the sender's buffer and the peer's window let it use, bytes.
    pub window_bytes: u16,
    /// Sent, neither acknowledged nor deemed lost, bytes.
    pub inflight_bytes: u16,
}

/// Names of the drops that [`NodeCounts::drops`] counts.
pub const DROPS: [&str; 12] = [
    "link gave up: no ACK",
    "link gave up: channel busy",
    "link gave up: frame too old",
    "MAC queue full",
    "relay queue full",
    "IP queue full",
    "IP: packet too old",
    "fragments: no first one",
    "fragments: sibling lost",
    "fragments: not whole in time",
    "fragments: evicted",
    "fragments: table full",
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
    /// What came after `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        fn each<const N: usize>(now: [u64; N], before: [u64; N]) -> [u64; N] {
            std::array::from_fn(|at| now[at].saturating_sub(before[at]))
        }
        Self {
            transmissions: self.transmissions.saturating_sub(before.transmissions),
            retries: self.retries.saturating_sub(before.retries),
            channel_busy: self.channel_busy.saturating_sub(before.channel_busy),
            segments: self.segments.saturating_sub(before.segments),
            retransmissions: each(self.retransmissions, before.retransmissions),
            drops: each(self.drops, before.drops),
            states_us: each(self.states_us, before.states_us),
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            radio_mj: self.radio_mj - before.radio_mj,
            cpu_mj: self.cpu_mj - before.cpu_mj,
        }
    }

    /// Segments sent again.
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

impl FlowResult {
    /// What errors call it: its place in the scenario, counted from 1, and its ends.
    pub fn name(&self) -> String {
        format!("[[flow]] {} ({} → {})", self.flow + 1, self.from, self.to)
    }

    /// What a byte cost, µJ; none where none arrived after the warm-up.
    pub fn energy_uj_per_byte(&self) -> Option<f64> {
        let bytes = self.counted_bytes;
        (bytes > 0).then(|| self.energy_mj * 1e3 / bytes as f64)
    }

    /// Messages that arrived or were answered, of those that were due, 0 to 1.
    pub fn delivered(&self) -> Option<f64> {
        self.messages.map(|[due, came]| ratio(came, due))
    }
}

impl LinkResult {
    /// Share of the frames that arrived, 0 to 1.
    pub fn delivered(&self) -> f64 {
        ratio(self.fates[Fate::Received.index()], self.frames)
    }
}

impl RunResult {
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

    /// What went wrong, if anything did, as the end of a sentence.
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

    /// Retransmission timeouts of the flows' senders.
    pub fn timeouts(&self) -> u64 {
        let timeouts = RetransmissionCause::Timeout as usize;
        let of = |node: &NodeResult| node.counts.retransmissions[timeouts];
        self.senders().map(of).sum()
    }

    /// Frames with a payload on the air.
    pub fn frames(&self) -> u64 {
        self.links.iter().map(|link| link.frames).sum()
    }

    /// What became of those frames, by [`Fate::index`].
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

    /// What radios and processors of all nodes used, mJ.
    pub fn energy_mj(&self) -> f64 {
        let of = |node: &NodeResult| node.counts.radio_mj + node.counts.cpu_mj;
        self.nodes.iter().map(of).sum()
    }

    /// What each byte that any flow delivered cost all nodes, µJ; none where there was none.
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
        // The nodes of the mesh, then the host.
        let host = self.nodes.len().saturating_sub(1);
        let mut senders: Vec<usize> = self
            .flows
            .iter()
            .map(|flow| match flow.from {
                FlowEnd::Host => host,
                FlowEnd::Node(node) => node,
            })
            .collect();
        senders.sort_unstable();
        senders.dedup();
        senders.into_iter().filter_map(|node| self.nodes.get(node))
    }
}

/// A figure over the seeds of one point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Mean.
    pub value: f64,
    /// Half-width of the interval that holds the true mean with 95 %; none of one run.
    pub ci95: Option<f64>,
    /// Of so many runs.
    pub runs: usize,
}

impl Summary {
    /// Of these values; none of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Stat { mean, ci95, runs } = Stat::of(values);
        (runs > 0).then_some(Self {
            value: mean,
            ci95,
            runs,
        })
    }
}

/// A figure of a run that is shown for every point.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// As in JSON.
    pub name: &'static str,
    /// Of the value.
    pub unit: &'static str,
    of: Of,
    /// Whether more of it is better.
    more: bool,
    /// Whether the greatest of several runs stands for all, not their mean.
    greatest: bool,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    Run(fn(&RunResult) -> Option<f64>),
    Flow(fn(&FlowResult) -> Option<f64>),
}

/// All of them: first those of flows, then those of runs.
pub const METRICS: [Metric; 20] = [
    Metric::flow("goodput", "kb/s", |flow| Some(flow.goodput_kbps)).more(),
    Metric::flow("finished", "s", |flow| flow.finished_s),
    Metric::flow("rtt", "ms", |flow| flow.rtt_ms),
    Metric::flow("cwnd", "segments", |flow| flow.cwnd_segments).more(),
    Metric::flow("delivered", "fraction", FlowResult::delivered).more(),
    Metric::flow("latency", "ms", |flow| flow.latency_ms),
    Metric::flow("latency_p50", "ms", |flow| flow.latency_p50_ms),
    Metric::flow("latency_p95", "ms", |flow| flow.latency_p95_ms),
    Metric::flow("latency_max", "ms", |flow| flow.latency_max_ms).greatest(),
    Metric::flow("flow_energy", "mJ", |flow| Some(flow.energy_mj)),
    Metric::flow(
        "flow_energy_per_byte",
        "µJ/B",
        FlowResult::energy_uj_per_byte,
    ),
    Metric::run("total_goodput", "kb/s", |run| Some(run.goodput_kbps())),
    Metric::run("fairness", "Jain", RunResult::fairness),
    Metric::run("retransmitted", "fraction", |run| Some(run.retransmitted())),
    Metric::run("timeouts", "count", |run| Some(run.timeouts() as f64)),
    Metric::run("frames", "count", |run| Some(run.frames() as f64)),
    Metric::run("frame_loss", "fraction", |run| Some(run.frame_loss())),
    Metric::run("link_retries", "fraction", |run| Some(run.retried())),
    Metric::run("energy", "mJ", |run| Some(run.energy_mj())),
    Metric::run("energy_per_byte", "µJ/B", RunResult::energy_uj_per_byte),
];

impl Metric {
    const fn run(
        name: &'static str,
        unit: &'static str,
        of: fn(&RunResult) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            unit,
            of: Of::Run(of),
            more: false,
            greatest: false,
        }
    }

    const fn flow(
        name: &'static str,
        unit: &'static str,
        of: fn(&FlowResult) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            unit,
            of: Of::Flow(of),
            more: false,
            greatest: false,
        }
    }

    const fn more(self) -> Self {
        Self { more: true, ..self }
    }

    const fn greatest(self) -> Self {
        Self {
            greatest: true,
            ..self
        }
    }

    /// Whether it belongs to a run as a whole and to none of its flows.
    pub fn is_of_run(&self) -> bool {
        matches!(self.of, Of::Run(_))
    }

    /// The metric of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Its summary over the runs of one point: one for all, or by flow. A flow that failed in
    /// a run has none there.
    pub fn summaries(&self, runs: &[&RunResult]) -> Vec<(Option<usize>, Summary)> {
        let usable = || runs.iter().filter(|run| run.failure.is_none());
        match self.of {
            Of::Run(of) => {
                let values: Vec<f64> = usable().filter_map(|run| of(run)).collect();
                Summary::of(&values)
                    .map(|summary| (None, summary))
                    .into_iter()
                    .collect()
            }
            Of::Flow(of) => {
                let flows = runs.iter().map(|run| run.flows.len()).max().unwrap_or(0);
                (0..flows)
                    .filter_map(|flow| {
                        let flow_of = |run: &&&RunResult| {
                            let mine = run.flows.get(flow)?;
                            of(mine).filter(|_| !mine.outcome.is_failure())
                        };
                        let values: Vec<f64> = usable().filter_map(|run| flow_of(&run)).collect();
                        Some((Some(flow), self.fold(&values)?))
                    })
                    .collect()
            }
        }
    }
}

impl Metric {
    /// Several runs' values as one.
    fn fold(&self, values: &[f64]) -> Option<Summary> {
        let summary = Summary::of(values)?;
        Some(match self.greatest {
            false => summary,
            true => Summary {
                value: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ci95: None,
                ..summary
            },
        })
    }

    /// Its value for one flow of one run, if it is a figure of flows.
    pub fn of_flow(&self, flow: &FlowResult) -> Option<f64> {
        match self.of {
            Of::Flow(of) => of(flow),
            Of::Run(_) => None,
        }
    }

    /// How the flows with these numbers, which are alike, did in the runs of one point; none
    /// where no flow has a value, or it is a figure of runs.
    pub fn spread(&self, flows: &[usize], runs: &[&RunResult]) -> Option<Spread> {
        let Of::Flow(of) = self.of else {
            return None;
        };
        let (mut sums, mut means) = (vec![(0.0, 0_u32); flows.len()], Vec::new());
        for run in runs.iter().filter(|run| run.failure.is_none()) {
            let (mut sum, mut count) = (0.0, 0_u32);
            for (place, flow) in flows.iter().enumerate() {
                let flow = run
                    .flows
                    .get(*flow)
                    .filter(|flow| !flow.outcome.is_failure());
                if let Some(value) = flow.and_then(of) {
                    let before = &mut sums[place];
                    *before = (before.0 + value, before.1 + 1);
                    (sum, count) = (sum + value, count + 1);
                }
            }
            if count > 0 {
                means.push(sum / f64::from(count));
            }
        }
        let sums = sums.into_iter().filter(|(_, count)| *count > 0);
        let mut values: Vec<f64> = sums.map(|(sum, count)| sum / f64::from(count)).collect();
        values.sort_by(|a, b| {
            if self.more {
                b.total_cmp(a)
            } else {
                a.total_cmp(b)
            }
        });
        let mean = Summary::of(&means)?;
        // The first value that so many do not miss; there is one, or there were no mean.
        let rank = |share: f64| values[((share * values.len() as f64).ceil() as usize).max(1) - 1];
        Some(Spread {
            flows: values.len(),
            mean,
            best: rank(0.0),
            p50: rank(0.5),
            p95: rank(0.95),
            worst: rank(1.0),
        })
    }
}

/// A figure over flows that are alike: means over the seeds of each, from the best flow to
/// the worst.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// How many have it.
    pub flows: usize,
    /// Over flows, then over seeds.
    pub mean: Summary,
    /// The best flow's.
    pub best: f64,
    /// Half of the flows do at least as well.
    pub p50: f64,
    /// Nineteen of twenty do at least as well.
    pub p95: f64,
    /// The worst flow's.
    pub worst: f64,
}

/// Flows that are alike, by their places in the scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// The same, for programs.
    pub likeness: Likeness,
    /// In order.
    pub flows: Vec<usize>,
}

/// The flows of one point by what they have in common; the largest group first.
pub fn groups(runs: &[&RunResult]) -> Vec<Group> {
    let mut alike: BTreeMap<Likeness, Vec<usize>> = BTreeMap::new();
    let run = runs.iter().find(|run| !run.flows.is_empty());
    for flow in run.iter().flat_map(|run| &run.flows) {
        alike.entry(flow.likeness).or_default().push(flow.flow);
    }
    let mut short: BTreeMap<String, usize> = BTreeMap::new();
    for likeness in alike.keys() {
        *short.entry(likeness.short()).or_default() += 1;
    }
    let named = alike.into_iter().map(|(likeness, flows)| Group {
        name: match short.get(&likeness.short()) {
            Some(1) => likeness.short(),
            _ => likeness.to_string(),
        },
        likeness,
        flows,
    });
    let mut groups: Vec<Group> = named.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.flows.len()));
    groups
}

pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::outcome::Direction;

    fn flow(goodput_kbps: f64, finished_s: Option<f64>) -> FlowResult {
        FlowResult {
            flow: 0,
            from: FlowEnd::Node(1),
            to: FlowEnd::Host,
            likeness: Likeness {
                kind: FlowKind::Bulk,
                direction: Direction::Up,
                hops: 1,
                bytes: if finished_s.is_some() { 9 } else { 0 },
                message: [0; 3],
            },
            outcome: Outcome::Running,
            bytes: 1,
            counted_bytes: (goodput_kbps * 125.0) as u64,
            goodput_kbps,
            rtt_ms: None,
            cwnd_segments: None,
            finished_s,
            messages: None,
            latency_ms: None,
            latency_p50_ms: None,
            latency_p95_ms: None,
            latency_max_ms: None,
            energy_mj: 2.0 * goodput_kbps,
            intact: true,
        }
    }

    fn run(flows: Vec<FlowResult>) -> RunResult {
        RunResult {
            point: 0,
            seed: 1,
            complete: true,
            failure: None,
            joined_s: 0.0,
            seconds: 1.0,
            flows,
            nodes: vec![NodeResult::default(); 3],
            links: Vec::new(),
            packets_injected_lost: 0,
            samples: Vec::new(),
        }
    }

    #[test]
    fn figures_of_a_run_follow_from_its_counts() {
        let mut run = run(vec![
            flow(30.0, None),
            flow(10.0, None),
            flow(5.0, Some(2.0)),
        ]);
        assert_eq!(run.goodput_kbps(), 45.0);
        assert_eq!(run.fairness(), Some(0.8));
        run.nodes[1].counts.segments = 50;
        run.nodes[1].counts.retransmissions[0] = 4;
        run.nodes[1].counts.retransmissions[3] = 1;
        assert_eq!((run.retransmitted(), run.timeouts()), (0.1, 4));
        let mut fates = [0; Fate::COUNT];
        fates[Fate::Received.index()] = 6;
        fates[Fate::Corrupted.index()] = 4;
        run.links.push(LinkResult {
            from: 1,
            to: 0,
            frames: 10,
            fates,
        });
        assert_eq!(run.frame_loss(), 0.4);
    }

    #[test]
    fn means_are_over_flows_that_are_alike_and_have_a_value() {
        let with = |number, rtt_ms, outcome, hops| {
            let mut flow = flow(1.0, None);
            (flow.flow, flow.rtt_ms, flow.outcome) = (number, rtt_ms, outcome);
            flow.likeness.hops = hops;
            flow
        };
        let run = run(vec![
            with(0, Some(300.0), Outcome::Running, 1),
            with(1, None, Outcome::Running, 1),
            with(2, Some(9_000.0), Outcome::Running, 3),
            with(3, Some(500.0), Outcome::Running, 1),
            with(4, Some(7_000.0), Outcome::Reset, 1),
        ]);
        let groups = groups(&[&run]);
        let names: Vec<(&str, &[usize])> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.flows.as_slice()))
            .collect();
        assert_eq!(
            names,
            [
                ("bulk up, 1 hop", &[0, 1, 3, 4][..]),
                ("bulk up, 3 hops", &[2])
            ]
        );
        let rtt = Metric::named("rtt").unwrap();
        let spread = rtt.spread(&groups[0].flows, &[&run]).unwrap();
        assert_eq!((spread.flows, spread.mean.value), (2, 400.0));
        assert_eq!((spread.best, spread.worst), (300.0, 500.0));
        let latency = Metric::named("latency").unwrap();
        assert_eq!(latency.spread(&groups[0].flows, &[&run]), None);
    }

    #[test]
    fn percentiles_go_from_the_best_flow_to_the_worst() {
        let flows = (1..=40).map(|number| {
            let mut flow = flow(f64::from(number), None);
            (flow.flow, flow.latency_ms) = (number as usize - 1, Some(f64::from(number)));
            flow
        });
        let run = run(flows.collect());
        let all: Vec<usize> = (0..40).collect();
        let of = |name: &str| {
            let spread = Metric::named(name).unwrap().spread(&all, &[&run]).unwrap();
            [spread.best, spread.p50, spread.p95, spread.worst]
        };
        assert_eq!(of("goodput"), [40.0, 21.0, 3.0, 1.0]);
        assert_eq!(of("latency"), [1.0, 20.0, 38.0, 40.0]);
        // Twice as many mJ as kb/s, and 125 bytes to the latter.
        assert_eq!(of("flow_energy_per_byte"), [16.0; 4]);
    }

    #[test]
    fn a_failed_flow_fails_its_run_and_is_in_no_mean() {
        let mut refused = run(vec![flow(10.0, None), flow(0.0, None)]);
        (refused.flows[1].flow, refused.flows[1].outcome) = (1, Outcome::Refused);
        let trouble = refused.trouble().unwrap();
        assert_eq!(trouble, "[[flow]] 2 (1 → host) was refused a connection");
        let goodput = Metric::named("goodput").unwrap().summaries(&[&refused]);
        assert_eq!(goodput.len(), 1);
        refused.flows[0].outcome = Outcome::TimedOut;
        let trouble = refused.trouble().unwrap();
        assert!(
            trouble.starts_with("2 of 2 flows failed, the first: [[flow]] 1"),
            "{trouble}"
        );
    }

    #[test]
    fn summaries_are_by_flow_and_leave_failed_runs_out() {
        let runs = [
            run(vec![flow(10.0, None), flow(1.0, None)]),
            run(vec![flow(14.0, None), flow(1.0, None)]),
            RunResult {
                failure: Some("no".into()),
                ..run(vec![flow(900.0, None)])
            },
        ];
        let runs: Vec<&RunResult> = runs.iter().collect();
        let goodput = Metric::named("goodput").unwrap().summaries(&runs);
        let values: Vec<_> = goodput
            .iter()
            .map(|(flow, summary)| (*flow, summary.value))
            .collect();
        assert_eq!(values, [(Some(0), 12.0), (Some(1), 1.0)]);
        assert_eq!(goodput[0].1.runs, 2);
        assert!(Metric::named("rtt").unwrap().summaries(&runs).is_empty());
    }
}
