//! Results as a table for people.

use motet_lab::{
    report::{self, Group, Spread},
    scenario::{FlowKind, FlowResult, Outcome, Plan, Point, RunResult},
};

use super::columns::{Column, FLOW_COLUMNS, RUN_COLUMNS};
use super::remarks;
use crate::{
    error::Error,
    grid::{Grid, Head},
    output::{self, BOLD, DIM, Out},
};

/// A line for each flow of each point, or for those that are alike, and one for each point as
/// a whole: means over the seeds, with their confidence.
pub(super) fn print(plan: &Plan, results: &[RunResult], out: Out) -> Result<(), Error> {
    output::line_to(out, format_args!("{BOLD}{}{BOLD:#}", plan.title))?;
    let points: Vec<Vec<&RunResult>> = (0..plan.points.len())
        .map(|point| results.iter().filter(|run| run.point == point).collect())
        .collect();
    let flows = plan.points.iter().map(|point| point.scenario.flows.len());
    let mut left_out = match flows.sum::<usize>() {
        few if few <= FLOWS_SHOWN_MAX => every_flow(plan, &points).print(out)?,
        _ => {
            let alike = match &points[..] {
                [runs] => ranks(runs),
                _ => means(plan, &points),
            };
            let left_out = alike.print(out)?;
            let sorts = points.iter().map(|runs| report::groups(runs).len()).max();
            let more = sorts.unwrap_or(0).saturating_sub(GROUPS_SHOWN_MAX);
            if more > 0 {
                output::line_to(
                    out,
                    format_args!(
                        "{DIM}{more} more sorts of flows, with fewer of each; --json has all{DIM:#}"
                    ),
                )?;
            }
            print_worst(plan, results, out)?;
            left_out
        }
    };
    output::line_to(out, "")?;
    let mut totals = Grid::new(heads(plan, &["flows"], &RUN_COLUMNS));
    for (point, runs) in plan.points.iter().zip(&points) {
        let cells = RUN_COLUMNS.iter().map(|column| column.of_runs(runs));
        totals.push(row(values(point), ["all".to_owned()], cells));
    }
    left_out.extend(totals.print(out)?);
    if let ([_], Some(run)) = (&plan.points[..], results.first())
        && (1..=NODES_MAX).contains(&run.nodes.len())
    {
        output::line_to(out, "")?;
        left_out.extend(nodes(run).print(out)?);
        if !run.hours.is_empty() {
            output::line_to(out, "")?;
            left_out.extend(hours(run).print(out)?);
        }
    } else if let ([_], Some(run)) = (&plan.points[..], results.first())
        && run.nodes.len() > NODES_MAX
    {
        let nodes = run.nodes.len() - 1;
        output::line_to(
            out,
            format_args!(
                "{DIM}what each of the {nodes} nodes did: --json, or the page of --out{DIM:#}"
            ),
        )?;
    }
    if !left_out.is_empty() {
        let what = left_out.join(", ");
        output::line_to(
            out,
            format_args!("{DIM}no room for: {what}; --json has everything{DIM:#}"),
        )?;
    }
    remarks::print(plan, results, out)
}

/// Each flow of each point.
fn every_flow(plan: &Plan, points: &[Vec<&RunResult>]) -> Grid {
    let mut grid = Grid::new(heads(plan, &["flow", "ended"], &FLOW_COLUMNS));
    for (point, runs) in plan.points.iter().zip(points) {
        let flows = &point.scenario.flows;
        let columns = FLOW_COLUMNS
            .each_ref()
            .map(|column| column.of_flows(runs, flows.len()));
        for (flow, ends) in flows.iter().enumerate() {
            let route = format!("{} → {}", ends.from, ends.to);
            let cells = columns.iter().map(|cells| cells[flow].clone());
            grid.push(row(values(point), [route, ended(flow, runs)], cells));
        }
    }
    grid
}

/// Ranks the flows of one point that are alike, from the best to the worst.
fn ranks(runs: &[&RunResult]) -> Grid {
    let fixed = ["flows", "how many", "from best to worst"]
        .map(Head::fixed)
        .into_iter();
    let mut grid = Grid::new(fixed.chain(FLOW_COLUMNS.iter().map(Column::head)).collect());
    let ranks = ["best", "p50", "p95", "worst"];
    let of = |spread: Spread| [spread.best, spread.p50, spread.p95, spread.worst];
    for group in report::groups(runs).iter().take(GROUPS_SHOWN_MAX) {
        let spreads = spreads(group, runs);
        for (place, rank) in ranks.into_iter().enumerate() {
            let cells = spreads.iter().map(|(column, spread)| {
                spread.map_or(String::new(), |spread| column.number(of(spread)[place]))
            });
            let [name, count] = match place {
                0 => [group.name.clone(), group.flows.len().to_string()],
                _ => [String::new(), String::new()],
            };
            grid.push(row(Vec::new(), [name, count, rank.to_owned()], cells));
        }
    }
    grid
}

/// The means over the flows that are alike, of each point.
fn means(plan: &Plan, points: &[Vec<&RunResult>]) -> Grid {
    let mut grid = Grid::new(heads(plan, &["mean of flows", "how many"], &FLOW_COLUMNS));
    for (point, runs) in plan.points.iter().zip(points) {
        for group in report::groups(runs).iter().take(GROUPS_SHOWN_MAX) {
            let cells = spreads(group, runs);
            let cells = cells.iter().map(|(column, spread)| {
                spread.map_or(String::new(), |spread| column.shown(&spread.mean))
            });
            let what = [group.name.clone(), group.flows.len().to_string()];
            grid.push(row(values(point), what, cells));
        }
    }
    grid
}

fn spreads(group: &Group, runs: &[&RunResult]) -> Vec<(&'static Column, Option<Spread>)> {
    let columns = FLOW_COLUMNS.iter();
    columns
        .map(|column| (column, column.spread(group, runs)))
        .collect()
}

/// The flows that did worst: those that failed, then those that fall most behind their like.
fn print_worst(plan: &Plan, results: &[RunResult], out: Out) -> Result<(), Error> {
    let mut flows: Vec<(f64, &RunResult, &FlowResult)> = Vec::new();
    for run in results {
        for group in report::groups(&[run]) {
            let medians = Medians::of(&group, run);
            let members = group.flows.iter().filter_map(|flow| run.flows.get(*flow));
            flows.extend(members.map(|flow| (medians.score(flow), run, flow)));
        }
    }
    flows.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let several = plan.seeds.len() > 1;
    let columns: &[&str] = if several {
        &["seed", "[[flow]]", "worst", "ended"]
    } else {
        &["[[flow]]", "worst", "ended"]
    };
    let mut grid = Grid::new(heads(plan, columns, &FLOW_COLUMNS));
    for (_, run, flow) in flows.into_iter().take(WORST_SHOWN) {
        let seed = several.then(|| run.seed.to_string());
        let what = [
            (flow.flow + 1).to_string(),
            format!("{} → {}", flow.from, flow.to),
            end_of(flow),
        ];
        let cells = FLOW_COLUMNS.iter().map(|column| column.of_flow(flow));
        let point = plan.points.get(run.point).map_or(Vec::new(), values);
        grid.push(row(point, seed.into_iter().chain(what), cells));
    }
    if grid.is_empty() {
        return Ok(());
    }
    output::line_to(out, "")?;
    // What has no room here had none above.
    grid.print(out).map(drop)
}

/// The median figures of the flows of one sort, against which each flow is measured.
struct Medians {
    goodput: f64,
    finished: f64,
    latency: f64,
}

impl Medians {
    fn of(group: &Group, run: &RunResult) -> Self {
        let of = |name: &str| {
            let spread =
                report::Metric::named(name).and_then(|metric| metric.spread(group, &[run]));
            spread.map_or(0.0, |spread| spread.p50)
        };
        Self {
            goodput: of("goodput"),
            finished: of("finished"),
            latency: of("latency_p95"),
        }
    }

    /// How well a flow did among its like: 1 is the middle, below 0 it did not end, and below
    /// -1 it failed.
    fn score(&self, flow: &FlowResult) -> f64 {
        let over = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        match (flow.outcome, flow.likeness.kind, flow.finished_s) {
            (outcome, ..) if outcome.is_failure() => -2.0,
            (_, FlowKind::Bulk | FlowKind::Push, Some(finished_s)) => {
                over(self.finished, finished_s)
            }
            (_, FlowKind::Bulk | FlowKind::Push, None) if flow.likeness.bytes > 0 => {
                over(flow.bytes as f64, flow.likeness.bytes as f64) - 1.0
            }
            (_, FlowKind::Bulk, None) => over(flow.goodput_kbps, self.goodput),
            _ => {
                let late = flow.latency_p95_ms.unwrap_or(f64::INFINITY);
                match (flow.messages, flow.delivered()) {
                    (_, Some(part)) => part * over(self.latency, late).min(1.0),
                    // Nothing was due yet.
                    (Some(_), None) => 1.0,
                    (None, None) => 0.0,
                }
            }
        }
    }
}

/// The frames and the energy of each node of a run.
fn nodes(run: &RunResult) -> Grid {
    let heads = NODE_HEADS.map(|(text, leaves)| Head::new(text, leaves));
    let mut grid = Grid::new(heads.to_vec());
    let on_air = run
        .nodes
        .iter()
        .filter(|node| node.counts.states_us.iter().any(|us| *us > 0));
    let took_time = run.joined_s >= JOINED_SHOWN_S;
    for node in on_air {
        let counts = &node.counts;
        let [radio_mw, cpu_mw] = counts.power_mw();
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let moves = (!run.moves.is_empty()).then(|| node.parent_changes.to_string());
        let joined = node.joined_s.filter(|_| took_time);
        grid.push(vec![
            node.name.clone(),
            node.parent
                .map_or(String::new(), |parent| parent.to_string()),
            node.rank.map_or(String::new(), |rank| rank.to_string()),
            node.hops.to_string(),
            node.etx.map_or(String::new(), |etx| format!("{etx:.2}")),
            joined.map_or(String::new(), |joined_s| format!("{joined_s:.1}")),
            moves.unwrap_or_default(),
            counts.transmissions.to_string(),
            counts.control_frames.to_string(),
            counts.retries.to_string(),
            counts.drops.iter().sum::<u64>().to_string(),
            percent(counts.radio_duty()),
            percent(counts.cpu_duty()),
            format!("{radio_mw:.1}"),
            format!("{cpu_mw:.2}"),
            node.battery_days
                .map_or(String::new(), |days| format!("{days:.0}")),
        ]);
    }
    grid
}

/// The share of each hour in which the radios of motes that sleep were on.
fn hours(run: &RunResult) -> Grid {
    let mut nodes: Vec<usize> = run.hours.iter().map(|hour| hour.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.truncate(SLEEPERS_SHOWN_MAX);
    let mut heads = vec![Head::new("hour", 0)];
    let of_node = |node: &usize| Head::new(&format!("node {node}\nradio on %"), 1);
    heads.extend(nodes.iter().map(of_node));
    let mut grid = Grid::new(heads);
    let last = run.hours.iter().map(|hour| hour.hour).max().unwrap_or(0);
    for number in 0..=last {
        let of = |node: &usize| {
            let mut hours = run.hours.iter();
            let hour = hours.find(|hour| hour.hour == number && hour.node == *node);
            hour.map_or(String::new(), |hour| {
                format!("{:.2}", 100.0 * hour.radio_duty)
            })
        };
        let cells = nodes.iter().map(of);
        grid.push([number.to_string()].into_iter().chain(cells));
    }
    grid
}

/// How a flow ended in the runs of a point, unless it is as it should be.
fn ended(flow: usize, runs: &[&RunResult]) -> String {
    let ends = runs
        .iter()
        .filter_map(|run| run.flows.get(flow))
        .map(end_of);
    let mut bad: Vec<String> = ends.filter(|end| !end.is_empty()).collect();
    bad.sort();
    let Some(first) = bad.first().cloned() else {
        return String::new();
    };
    match runs.len() {
        1 => first,
        all => format!("{first} {} of {all}", bad.len()),
    }
}

/// How a flow ended, unless it is as it should be.
fn end_of(flow: &FlowResult) -> String {
    match flow.outcome {
        Outcome::Complete | Outcome::Running if flow.connections_lost > Some(0) => {
            let lost = flow.connections_lost.unwrap_or_default();
            format!("anew {lost}×")
        }
        Outcome::Complete => String::new(),
        Outcome::Running if flow.likeness.bytes > 0 => "unfinished".to_owned(),
        Outcome::Running => String::new(),
        outcome => outcome.name().to_owned(),
    }
}

fn heads(plan: &Plan, fixed: &[&str], columns: &[Column]) -> Vec<Head> {
    let swept = plan.points[0].values.iter().map(|(key, _)| short(key));
    let fixed = swept.chain(fixed.iter().copied()).map(Head::fixed);
    fixed.chain(columns.iter().map(Column::head)).collect()
}

fn row(
    point: Vec<String>,
    what: impl IntoIterator<Item = String>,
    cells: impl IntoIterator<Item = String>,
) -> Vec<String> {
    point.into_iter().chain(what).chain(cells).collect()
}

/// The swept values at a point.
fn values(point: &Point) -> Vec<String> {
    let values = point.values.iter().map(|(_, value)| {
        let text = value.as_str().map(str::to_owned);
        let number = || value.as_float().map(|number| number.to_string());
        text.or_else(number).unwrap_or_else(|| value.to_string())
    });
    values.collect()
}

/// The last part of a key's full name.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

const NODE_HEADS: [(&str, u8); 16] = [
    ("node", 0),
    ("parent", 0),
    ("rank", 0),
    ("hops", 0),
    ("ETX", 1),
    ("joined\ns", 2),
    ("moves", 0),
    ("frames", 0),
    ("control\nframes", 2),
    ("retries", 3),
    ("drops", 1),
    ("radio\non %", 5),
    ("CPU\n%", 7),
    ("radio\nmW", 5),
    ("CPU\nmW", 6),
    ("battery\ndays", 4),
];

/// More columns of motes than a terminal has room for.
const SLEEPERS_SHOWN_MAX: usize = 8;

/// Motes that join faster do so at once.
const JOINED_SHOWN_S: f64 = 0.05;

/// More nodes are for programs, and for the page.
const NODES_MAX: usize = 33;

/// More flows than that scroll by.
const FLOWS_SHOWN_MAX: usize = 40;

/// Sorts of flows shown of one point: the largest.
const GROUPS_SHOWN_MAX: usize = 8;

/// Where not all flows are shown.
const WORST_SHOWN: usize = 10;
