//! The figures that are read off a run, by the names that the papers give them.

use super::run::Run;

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The metric's name in rows.
    pub name: &'static str,
    /// The metric's unit.
    pub unit: &'static str,
    /// Reads the metric from a run.
    pub of: fn(&Run) -> f64,
}

const fn metric(name: &'static str, unit: &'static str, of: fn(&Run) -> f64) -> Metric {
    Metric { name, unit, of }
}

/// Application bytes delivered once, all flows.
pub const GOODPUT: Metric = metric("goodput", "kb/s", Run::goodput_kbps);

/// Part of segments that link retries did not save.
pub const LOSS: Metric = metric("loss", "1", |run| run.mean_of(|flow| flow.loss));

/// Median of the smoothed RTT.
pub const RTT: Metric = metric("rtt", "ms", |run| run.mean_of(|flow| flow.rtt_ms));

/// Mean congestion window as a part of the buffers.
pub const CWND: Metric = metric("cwnd", "1", |run| run.mean_of(|flow| flow.cwnd));

/// Timeouts in 100 s.
pub const TIMEOUTS: Metric = metric("timeouts", "1/100 s", |run| {
    run.mean_of(|flow| flow.timeouts)
});

/// Fast retransmissions in 100 s.
pub const FAST: Metric = metric("fast_retransmissions", "1/100 s", |run| {
    run.mean_of(|flow| flow.fast_retransmissions)
});

/// Frames on the air for 1,000 bytes delivered.
pub const FRAMES: Metric = metric("frames", "1/kB", Run::frames_per_kb);

/// Part of link attempts that were retries.
pub const RETRIES: Metric = metric("link_retries", "1", Run::retry_part);

/// All bits of the packets that arrived.
pub const THROUGHPUT: Metric = metric("throughput", "kb/s", Run::goodput_kbps);

/// Time of one packet from end to end.
pub const LATENCY: Metric = metric("latency", "ms", |run| run.mean_of(|flow| flow.rtt_ms));

/// Jain's index of the flows' goodputs.
pub const JAIN: Metric = metric("jain", "1", Run::jain);

/// How long a transfer of a fixed size takes.
pub const TIME: Metric = metric("transfer_time", "s", |run| {
    run.bytes as f64 * 8.0 / 1_000.0 / run.goodput_kbps()
});

/// Segments that TCP sent again.
pub const RETRANSMISSIONS: Metric =
    metric("retransmissions", "1", |run| run.retransmissions as f64);

/// The energy that the chain's radios spend transmitting.
pub const TRANSMIT_ENERGY: Metric = metric("transmit_energy", "mJ", |run| run.spent.transmit_mj);

/// The energy that the chain's nodes spend in all.
pub const ENERGY: Metric = metric("energy", "mJ", |run| run.spent.total_mj);

/// The energy for 1,000 bytes delivered: of transmitting, and of everything.
pub const ENERGIES_PER_KB: [Metric; 2] = [
    metric("transmit_energy", "mJ/kB", |run| {
        run.spent.transmit_mj * 1_000.0 / run.bytes as f64
    }),
    metric("energy", "mJ/kB", |run| {
        run.spent.total_mj * 1_000.0 / run.bytes as f64
    }),
];

/// Figures of the first and the second of two flows.
pub const FLOWS: [[Metric; 3]; 2] = [
    [
        metric("goodput", "kb/s", |run| run.flows[0].goodput_kbps),
        metric("loss", "1", |run| run.flows[0].loss),
        metric("rtt", "ms", |run| run.flows[0].rtt_ms),
    ],
    [
        metric("goodput", "kb/s", |run| run.flows[1].goodput_kbps),
        metric("loss", "1", |run| run.flows[1].loss),
        metric("rtt", "ms", |run| run.flows[1].rtt_ms),
    ],
];
