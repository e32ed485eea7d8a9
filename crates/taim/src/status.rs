//! The status of a border router, for its operator.

use std::net::Ipv6Addr;

use motet::time::{Duration, Instant};

use crate::config::Config;
use crate::flow::Flow;
use crate::flows::Flows;
use crate::meter::Meter;
use crate::policy::Rule;
use crate::rtt::Rtt;
use crate::segment::FlowKey;
use crate::tally::Tally;

/// All that a router knows of its flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// The policy by which packets are held.
    pub policy: &'static str,
    /// Flows that may be inside the mesh at a time, where admission holds.
    pub window: Option<usize>,
    /// Flows that are inside the mesh now, where admission holds.
    pub inside: Option<usize>,
    /// Time between two packets, where TAiM or fair queueing holds.
    pub spacing: Option<Duration>,
    /// How even the motes' goodputs are.
    pub fairness: Fairness,
    /// The known flows, in the order of their addresses and ports.
    pub flows: Vec<FlowStatus>,
    /// The motes, in the order of their addresses.
    pub motes: Vec<MoteStatus>,
    /// Counters since the router began.
    pub counters: Counters,
}

/// The status of one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowStatus {
    /// The flow's addresses and ports.
    pub key: FlowKey,
    /// New bytes out of the mesh.
    pub bytes_up: u64,
    /// New bytes into the mesh.
    pub bytes_down: u64,
    /// New bytes both ways over the last minute, bit/s.
    pub goodput_1min_bps: f64,
    /// New bytes both ways over the last ten minutes, or since the flow began, bit/s.
    pub goodput_10min_bps: f64,
    /// Round trips from the router through the mesh.
    pub mesh: RoundTripSide,
    /// Round trips from the router to the peer.
    pub wired: RoundTripSide,
    /// Packets that came, both ways.
    pub packets: u64,
    /// Segments that were sent again, as far as the router has seen it.
    pub retransmissions: u64,
    /// The flow's packets that were held.
    pub held: Held,
    /// Time since the last packet of the flow.
    pub idle: Duration,
    /// Whether an end has closed it.
    pub is_over: bool,
}

/// All flows of one mote, those that are over included.
#[derive(Clone, PartialEq, Debug)]
pub struct MoteStatus {
    /// The mote's address.
    pub addr: Ipv6Addr,
    /// Flows that are known now.
    pub flows: usize,
    /// New bytes out of the mesh.
    pub bytes_up: u64,
    /// New bytes into the mesh.
    pub bytes_down: u64,
    /// New bytes both ways over the last minute, bit/s.
    pub goodput_1min_bps: f64,
    /// New bytes both ways over the last ten minutes, or since the mote began, bit/s.
    pub goodput_10min_bps: f64,
    /// Packets that came, both ways.
    pub packets: u64,
    /// Segments that were sent again, as far as the router has seen it.
    pub retransmissions: u64,
    /// The mote's packets that were held.
    pub held: Held,
}

/// Round trips on one side of the router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundTripSide {
    /// Smoothed (RFC 6298); none before the first.
    pub rtt: Option<Duration>,
    /// Smoothed mean deviation.
    pub variation: Option<Duration>,
}

/// Packets that were held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Packets that are held now.
    pub now: usize,
    /// Packets that were held and have gone.
    pub packets: u64,
    /// How long they were held, in all.
    pub time: Duration,
    /// The longest time that a packet was held.
    pub longest: Duration,
}

/// How even the goodputs of flows are.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Fairness {
    /// Jain's index of the motes' goodputs over the last minute; none without any.
    pub jain_1min: Option<f64>,
    /// The greatest over the least of them; none where the least is zero.
    pub max_min_1min: Option<f64>,
    /// Jain's index over ten minutes.
    pub jain_10min: Option<f64>,
    /// The greatest over the least, over ten minutes.
    pub max_min_10min: Option<f64>,
}

/// Counters of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that arrived, except link-local ones and neighbour discovery.
    pub packets: u64,
    /// Packets that were not TCP, or not readable.
    pub others: u64,
    /// TCP segments of no known flow, but for those that no table had room for.
    pub strangers: u64,
    /// Packets that were held; each goes on in the end, or is in `dropped` or
    /// `swallowed`.
    pub held: u64,
    /// Packets that were held and have gone on.
    pub released: u64,
    /// Packets of strangers that were held and then dropped, for want of room or time.
    pub dropped: u64,
    /// Segments that the policy `relay` sent again.
    pub resent: u64,
    /// Duplicate ACKs that the policy `relay` answered so, and dropped; `dropped` leaves them out.
    pub swallowed: u64,
    /// Flows that were entered.
    pub flows: u64,
    /// Flows that were not entered, because the table was full.
    pub table_full: u64,
    /// Flows that were not entered, because their mote had too many.
    pub mote_full: u64,
    /// Packets that passed at once, because too many were held.
    pub queue_full: u64,
    /// Packets released although their turn had not come: their sender would have timed out, or
    /// they had waited for a minute.
    pub released_early: u64,
    /// Segments whose numbers are far from those of their flow.
    pub strays: u64,
    /// Steps of the clock backwards.
    pub clock_steps: u64,
}

/// The status of a router.
pub(crate) fn of(
    config: &Config,
    rule: &Rule,
    flows: &Flows,
    counters: Counters,
    now: Instant,
) -> Status {
    let mut motes: Vec<MoteStatus> = flows
        .motes()
        .map(|(addr, mote)| {
            let mut row = MoteStatus::of(*addr, &mote.tally);
            (row.goodput_1min_bps, row.goodput_10min_bps) = rates(&mote.meter, now);
            row.flows = mote.flows;
            row
        })
        .collect();
    let mut rows = Vec::with_capacity(flows.len());
    for flow in flows.by_key() {
        let row = FlowStatus::of(flow, now);
        // Both are in the order of their addresses, and a flow has its mote.
        if let Ok(place) = motes.binary_search_by_key(&flow.key.mote, |mote| mote.addr)
            && let Some(mote) = motes.get_mut(place)
        {
            mote.add(&row);
        }
        rows.push(row);
    }
    Status {
        policy: config.policy.name(),
        window: rule.window(),
        inside: rule.inside(),
        spacing: rule.spacing(),
        fairness: Fairness::of(&motes),
        flows: rows,
        motes,
        counters,
    }
}

impl FlowStatus {
    fn of(flow: &Flow, now: Instant) -> Self {
        let (goodput_1min_bps, goodput_10min_bps) = rates(&flow.meter, now);
        let [bytes_up, bytes_down] = flow.tally.bytes;
        Self {
            key: flow.key,
            bytes_up,
            bytes_down,
            goodput_1min_bps,
            goodput_10min_bps,
            mesh: RoundTripSide::of(&flow.mesh),
            wired: RoundTripSide::of(&flow.wired),
            packets: flow.tally.packets,
            retransmissions: flow.tally.retransmissions,
            held: Held {
                now: flow.held_in_all(),
                ..Held::of(&flow.tally)
            },
            idle: now.since(flow.last),
            is_over: flow.is_over,
        }
    }
}

impl MoteStatus {
    fn of(addr: Ipv6Addr, tally: &Tally) -> Self {
        let [bytes_up, bytes_down] = tally.bytes;
        Self {
            addr,
            flows: 0,
            bytes_up,
            bytes_down,
            goodput_1min_bps: 0.0,
            goodput_10min_bps: 0.0,
            packets: tally.packets,
            retransmissions: tally.retransmissions,
            held: Held::of(tally),
        }
    }

    /// With one of its flows.
    fn add(&mut self, flow: &FlowStatus) {
        self.bytes_up += flow.bytes_up;
        self.bytes_down += flow.bytes_down;
        self.goodput_1min_bps += flow.goodput_1min_bps;
        self.goodput_10min_bps += flow.goodput_10min_bps;
        self.packets += flow.packets;
        self.retransmissions += flow.retransmissions;
        self.held.now += flow.held.now;
        self.held.packets += flow.held.packets;
        self.held.time = self.held.time + flow.held.time;
        self.held.longest = self.held.longest.max(flow.held.longest);
    }
}

impl RoundTripSide {
    fn of(rtt: &Rtt) -> Self {
        Self {
            rtt: rtt.smoothed(),
            variation: rtt.variation(),
        }
    }
}

impl Held {
    fn of(tally: &Tally) -> Self {
        Self {
            now: 0,
            packets: tally.held,
            time: tally.held_for,
            longest: tally.held_longest,
        }
    }
}

impl Fairness {
    fn of(motes: &[MoteStatus]) -> Self {
        let of = |rate: fn(&MoteStatus) -> f64| {
            let rates = motes.iter().map(rate);
            even(&rates.collect::<Vec<_>>())
        };
        let (jain_1min, max_min_1min) = of(|mote| mote.goodput_1min_bps);
        let (jain_10min, max_min_10min) = of(|mote| mote.goodput_10min_bps);
        Self {
            jain_1min,
            max_min_1min,
            jain_10min,
            max_min_10min,
        }
    }
}

/// Jain's fairness index, and the greatest rate over the least. A mote without any goodput counts:
/// it starves, or has nothing to say.
fn even(rates: &[f64]) -> (Option<f64>, Option<f64>) {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| {
        (sum + rate, squares + rate * rate)
    });
    let jain = (squares > 0.0).then(|| sum * sum / (squares * rates.len() as f64));
    let greatest = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    (
        jain,
        (least > 0.0 && least.is_finite()).then(|| greatest / least),
    )
}

/// The goodput over one minute and over ten.
fn rates(meter: &Meter, now: Instant) -> (f64, f64) {
    let over = |seconds| meter.rate_bps(Duration::from_secs(seconds), now);
    (over(60), over(600))
}
