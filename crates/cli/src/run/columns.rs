//! The columns of the tables, and the form of figures in them.

use motet_lab::report::{Group, Metric, Spread, Summary};
use motet_lab::scenario::{FlowResult, RunResult};

use crate::grid::Head;

/// A figure, shown in a unit for people.
pub(super) struct Column {
    metric: &'static str,
    head: &'static str,
    factor: f64,
    decimals: usize,
    /// When the column is left out for want of room, as [`Head`] has it.
    leaves: u8,
}

const fn column(
    metric: &'static str,
    head: &'static str,
    factor: f64,
    decimals: usize,
    leaves: u8,
) -> Column {
    Column {
        metric,
        head,
        factor,
        decimals,
        leaves,
    }
}

pub(super) const FLOW_COLUMNS: [Column; 10] = [
    column("goodput", "kb/s", 1.0, 1, 0),
    column("finished", "done\ns", 1.0, 1, 0),
    column("delivered", "delivered\n%", 100.0, 1, 0),
    column("latency_p50", "latency\np50 ms", 1.0, 0, 2),
    column("latency_p95", "latency\np95 ms", 1.0, 0, 1),
    column("latency_max", "latency\nmax ms", 1.0, 0, 3),
    column("rtt", "RTT\nms", 1.0, 0, 5),
    column("cwnd", "cwnd\nsegs", 1.0, 1, 7),
    column("flow_energy", "energy\nmJ", 1.0, 0, 6),
    column("flow_energy_per_byte", "energy\nµJ/B", 1.0, 1, 4),
];

pub(super) const RUN_COLUMNS: [Column; 9] = [
    column("total_goodput", "kb/s", 1.0, 1, 0),
    column("fairness", "Jain", 1.0, 3, 2),
    column("retransmitted", "resent\n%", 100.0, 2, 1),
    column("timeouts", "timeouts", 1.0, 1, 3),
    column("frames", "frames", 1.0, 0, 6),
    column("frame_loss", "frames\nlost %", 100.0, 1, 4),
    column("link_retries", "retries\n%", 100.0, 1, 7),
    column("energy", "energy\nJ", 1e-3, 2, 5),
    column("energy_per_byte", "energy\nµJ/B", 1.0, 1, 4),
];

impl Column {
    pub(super) fn head(&self) -> Head {
        Head::new(self.head, self.leaves)
    }

    /// The figure of each flow of a point.
    pub(super) fn of_flows(&self, runs: &[&RunResult], flows: usize) -> Vec<String> {
        let mut cells = vec![String::new(); flows];
        for (flow, summary) in self.summaries(runs) {
            if let Some(cell) = flow.and_then(|flow| cells.get_mut(flow)) {
                *cell = self.shown(&summary);
            }
        }
        cells
    }

    /// The figure of the runs of a point as a whole.
    pub(super) fn of_runs(&self, runs: &[&RunResult]) -> String {
        let summaries = self.summaries(runs);
        let first = summaries.first();
        first.map_or(String::new(), |(_, summary)| self.shown(summary))
    }

    /// The figure of one flow of one run.
    pub(super) fn of_flow(&self, flow: &FlowResult) -> String {
        let value = Metric::named(self.metric).and_then(|metric| metric.of_flow(flow));
        value.map_or(String::new(), |value| self.number(value))
    }

    /// The figure of flows that are alike.
    pub(super) fn spread(&self, group: &Group, runs: &[&RunResult]) -> Option<Spread> {
        Metric::named(self.metric)?.spread(group, runs)
    }

    fn summaries(&self, runs: &[&RunResult]) -> Vec<(Option<usize>, Summary)> {
        Metric::named(self.metric).map_or(Vec::new(), |metric| metric.summaries(runs))
    }

    /// With the half-width of its interval, where there is one.
    pub(super) fn shown(&self, summary: &Summary) -> String {
        match summary.ci95 {
            None => self.number(summary.value),
            Some(ci95) => format!("{} ± {}", self.number(summary.value), self.number(ci95)),
        }
    }

    pub(super) fn number(&self, value: f64) -> String {
        let value = value * self.factor;
        // A rate of 0.0 would be none.
        let is_small = self.decimals == 1 && value > 0.0 && value < 0.1;
        let decimals = if is_small { 3 } else { self.decimals };
        format!("{value:.decimals$}")
    }
}
