//! Results as a table for people.

use motet_lab::{
    report::{Metric, RunResult, Summary},
    scenario::{FlowEnd, Plan, Point},
};

use crate::{
    error::Error,
    output::{self, BAD, BOLD, DIM},
};

/// A line for each point and flow, and one for each point as a whole: means over the seeds,
/// with their confidence.
pub(super) fn print(plan: &Plan, results: &[RunResult]) -> Result<(), Error> {
    output::line(format_args!("{BOLD}{}{BOLD:#}", plan.title))?;
    let (mut flows, mut totals) = (
        vec![head(plan, &FLOW_COLUMNS)],
        vec![head(plan, &RUN_COLUMNS)],
    );
    for (number, point) in plan.points.iter().enumerate() {
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        for (flow, ends) in point.scenario.flows.iter().enumerate() {
            let route = format!("{} → {}", end(ends.from), end(ends.to));
            flows.push(row(point, route, &FLOW_COLUMNS, Some(flow), &runs));
        }
        totals.push(row(point, "all".to_owned(), &RUN_COLUMNS, None, &runs));
    }
    drop_empty_columns(&mut flows);
    print_rows(&flows)?;
    output::line("")?;
    drop_empty_columns(&mut totals);
    print_rows(&totals)?;
    if let ([_], Some(run)) = (&plan.points[..], results.first())
        && (1..=NODES_MAX).contains(&run.nodes.len())
    {
        output::line("")?;
        print_rows(&nodes(run))?;
    }
    remarks(plan, results)
}

/// What each node of a run did, and what that cost it.
fn nodes(run: &RunResult) -> Vec<Vec<String>> {
    let mut rows = vec![NODE_HEADS.map(str::to_owned).to_vec()];
    let on_air = run
        .nodes
        .iter()
        .filter(|node| node.counts.states_us.iter().any(|us| *us > 0));
    rows.extend(on_air.map(|node| {
        let counts = &node.counts;
        let [radio_mw, cpu_mw] = counts.power_mw();
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        vec![
            node.name.clone(),
            node.hops.to_string(),
            counts.transmissions.to_string(),
            counts.retries.to_string(),
            counts.drops.iter().sum::<u64>().to_string(),
            percent(counts.radio_duty()),
            percent(counts.cpu_duty()),
            format!("{radio_mw:.1}"),
            format!("{cpu_mw:.2}"),
        ]
    }));
    rows
}

fn print_rows(rows: &[Vec<String>]) -> Result<(), Error> {
    let widths = widths(rows);
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, width)| aligned(cell, *width)).collect();
        let text = cells.join("  ");
        if number == 0 {
            output::line(format_args!("{DIM}{text}{DIM:#}"))?;
        } else {
            output::line(text)?;
        }
    }
    Ok(())
}

fn remarks(plan: &Plan, results: &[RunResult]) -> Result<(), Error> {
    let whole = results.iter().filter(|run| run.complete).count();
    if whole < plan.runs() {
        let runs = plan.runs();
        output::line(format_args!(
            "{BAD}incomplete{BAD:#}: {whole} of {runs} runs went to their end"
        ))?;
    }
    let errors = results.iter().flat_map(|run| {
        let errors = run
            .flows
            .iter()
            .filter_map(|flow| Some((flow.flow, flow.error.as_ref()?)));
        errors.map(|(flow, error)| (run.seed, flow, error))
    });
    for (seed, flow, error) in errors.take(REMARKS_MAX) {
        output::line(format_args!(
            "{BAD}failed{BAD:#}: flow {flow} with seed {seed}: {error}"
        ))?;
    }
    Ok(())
}

fn head(plan: &Plan, columns: &[Column]) -> Vec<String> {
    let swept = plan.points[0].values.iter().map(|(key, _)| short(key));
    let columns = columns.iter().map(|column| column.head);
    swept
        .chain(["flow"])
        .chain(columns)
        .map(str::to_owned)
        .collect()
}

fn row(
    point: &Point,
    what: String,
    columns: &[Column],
    flow: Option<usize>,
    runs: &[&RunResult],
) -> Vec<String> {
    let values = point.values.iter().map(|(_, value)| {
        let text = value.as_str().map(str::to_owned);
        let number = || value.as_float().map(|number| number.to_string());
        text.or_else(number).unwrap_or_else(|| value.to_string())
    });
    let cells = columns.iter().map(|column| column.cell(flow, runs));
    values.chain([what]).chain(cells).collect()
}

fn end(end: FlowEnd) -> String {
    match end {
        FlowEnd::Host => "host".to_owned(),
        FlowEnd::Node(node) => node.to_string(),
    }
}

/// The last part of a key's full name.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// A figure, shown in a unit for people.
struct Column {
    metric: &'static str,
    head: &'static str,
    factor: f64,
    decimals: usize,
}

const fn column(metric: &'static str, head: &'static str, factor: f64, decimals: usize) -> Column {
    Column {
        metric,
        head,
        factor,
        decimals,
    }
}

const FLOW_COLUMNS: [Column; 5] = [
    column("goodput", "kb/s", 1.0, 1),
    column("rtt", "RTT ms", 1.0, 0),
    column("cwnd", "cwnd segs", 1.0, 1),
    column("delivered", "delivered %", 100.0, 1),
    column("latency", "latency ms", 1.0, 0),
];

const RUN_COLUMNS: [Column; 8] = [
    column("total_goodput", "kb/s", 1.0, 1),
    column("fairness", "Jain", 1.0, 3),
    column("retransmitted", "resent %", 100.0, 2),
    column("timeouts", "timeouts", 1.0, 1),
    column("frames", "frames", 1.0, 0),
    column("frame_loss", "frames lost %", 100.0, 1),
    column("link_retries", "retries %", 100.0, 1),
    column("energy", "energy J", 1e-3, 2),
];

impl Column {
    /// The figure of a flow, or of the runs as a whole.
    fn cell(&self, flow: Option<usize>, runs: &[&RunResult]) -> String {
        let summaries = Metric::named(self.metric).map(|metric| metric.summaries(runs));
        let mine = summaries.into_iter().flatten().find(|(of, _)| *of == flow);
        let Some((_, Summary { value, ci95, .. })) = mine else {
            return String::new();
        };
        let decimals = self.decimals;
        let number = |value: f64| format!("{:.decimals$}", value * self.factor);
        match ci95 {
            None => number(value),
            Some(ci95) => format!("{} ± {}", number(value), number(ci95)),
        }
    }
}

/// Datagrams have no round trips, TCP has no latency: what nobody has needs no column.
fn drop_empty_columns(rows: &mut [Vec<String>]) {
    let Some((head, body)) = rows.split_first_mut() else {
        return;
    };
    for column in (0..head.len()).rev() {
        if body.iter().all(|row| row[column].is_empty()) {
            head.remove(column);
            body.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect()
}

/// To the right, as numbers stand.
fn aligned(cell: &str, width: usize) -> String {
    format!("{cell:>width$}")
}

const NODE_HEADS: [&str; 9] = [
    "node",
    "hops",
    "frames",
    "retries",
    "drops",
    "radio on %",
    "CPU %",
    "radio mW",
    "CPU mW",
];

/// More nodes are for programs, and for the page.
const NODES_MAX: usize = 33;

/// More failures of flows say nothing new.
const REMARKS_MAX: usize = 5;
