//! One page to look at, and its plots as files of their own.

use std::fmt::Write as _;

use super::faults;
use super::figures::{percent, point_figures, short, shown};
use super::html::{document, grid};
use super::map::moved;
use super::sweeps::sweep_figures;
use super::theme::{escape, series_css, standalone};
use crate::report::Provenance;
use crate::report::metrics::{METRICS, Metric, Summary, groups};
use crate::scenario::{FlowKind, Plan, Point, RunResult};
use crate::stats::measured;

/// The report as one HTML page, with the origin of its results and the whole scenario at the end.
pub fn page(plan: &Plan, results: &[RunResult], provenance: &Provenance) -> String {
    let mut body = header(plan, results);
    let sweep = sweep_figures(plan, results);
    if !sweep.is_empty() {
        body += &grid(&sweep);
    }
    if plan.runs() > 1 {
        body += &section("Every point", &table(plan, results));
    }
    for (number, point) in plan.points.iter().enumerate().take(POINTS_SHOWN) {
        let Some(run) = first_run(results, number) else {
            continue;
        };
        let content = format!(
            "{}{}{}{}",
            tiles(point, run),
            flows(plan, results),
            grid(&point_figures(point, run, "")),
            changes(point, run)
        );
        if plan.points.len() == 1 {
            body += &content;
        } else {
            let open = if number == 0 { " open" } else { "" };
            let label = escape(&label(point));
            let seed = run.seed;
            let _ = write!(
                body,
                "<details{open}><summary>{label} <small>seed {seed}</small></summary>{content}</details>"
            );
        }
    }
    let left_out = plan.points.len().saturating_sub(POINTS_SHOWN);
    if left_out > 0 {
        let _ = write!(
            body,
            "<p class=\"quiet\">{left_out} more points are in results.jsonl.</p>"
        );
    }
    let _ = write!(
        body,
        "{}<details><summary>Scenario</summary><pre>{}</pre></details>",
        origin(provenance),
        escape(&plan.text())
    );
    document(&plan.title, &body)
}

/// Where results come from, as a line of a page.
pub(super) fn origin(provenance: &Provenance) -> String {
    let Provenance {
        command,
        date,
        version,
        revision,
        ..
    } = provenance;
    let revision = revision.as_ref();
    let revision = revision.map_or(String::new(), |revision| format!(" ({})", escape(revision)));
    format!(
        "<p class=\"quiet\">Written by <code>{}</code>, Motet {}{revision}, on {}.</p>",
        escape(command),
        escape(version),
        escape(date)
    )
}

/// The page's plots as SVG files: name and text.
pub fn plots(plan: &Plan, results: &[RunResult]) -> Vec<(String, String)> {
    let mut figures = sweep_figures(plan, results);
    let several = plan.points.len() > 1;
    for (number, point) in plan.points.iter().enumerate().take(POINTS_SHOWN) {
        let prefix = if several {
            format!("point-{}-", number + 1)
        } else {
            String::new()
        };
        if let Some(run) = first_run(results, number) {
            figures.extend(point_figures(point, run, &prefix));
        }
    }
    figures
        .into_iter()
        .map(|figure| {
            (
                format!("{}.svg", figure.name),
                standalone(&figure.named_svg()),
            )
        })
        .collect()
}

/// The first run of a point that gave anything.
fn first_run(results: &[RunResult], point: usize) -> Option<&RunResult> {
    results
        .iter()
        .find(|run| run.point == point && !run.nodes.is_empty())
}

fn header(plan: &Plan, results: &[RunResult]) -> String {
    let timing = &plan.points[0].scenario.timing;
    let nodes = plan.points.iter().map(|point| point.scenario.stacks.len());
    let (least, most) = (nodes.clone().min().unwrap_or(0), nodes.max().unwrap_or(0));
    let nodes = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    let seeds = match plan.seeds[..] {
        [seed] => format!("seed {seed}"),
        [first, .., last] => format!("seeds {first} to {last}"),
        [] => String::new(),
    };
    let mut facts = vec![
        format!("{nodes} nodes"),
        format!(
            "{} s, the first {} s not counted",
            timing.duration_s, timing.warmup_s
        ),
        seeds,
    ];
    if plan.points.len() > 1 {
        facts.push(format!("{} points", plan.points.len()));
    }
    let cut = |run: &&RunResult| !run.complete && run.trouble().is_none();
    let missing = plan.runs() - results.len() + results.iter().filter(cut).count();
    let whole = plan.runs() - missing;
    let mut warnings = String::new();
    if whole < plan.runs() {
        let runs = plan.runs();
        let _ = write!(
            warnings,
            "<p class=\"warning\"><b>Incomplete:</b> {whole} of {runs} runs went to their end.</p>"
        );
    }
    let troubles = results.iter().filter_map(|run| Some((run, run.trouble()?)));
    for (run, why) in troubles.take(3) {
        let why = escape(&why);
        let _ = write!(
            warnings,
            "<p class=\"warning\"><b>Failed</b> with seed {} (alone: <code>{}</code>): {why}</p>",
            run.seed,
            plan.repeats(run.seed)
        );
    }
    let mut left_out: Vec<&[usize]> = plan
        .points
        .iter()
        .map(|point| &point.scenario.left_out[..])
        .collect();
    left_out.dedup();
    for nodes in left_out.iter().filter(|nodes| !nodes.is_empty()) {
        let numbers: Vec<String> = nodes.iter().map(usize::to_string).collect();
        let _ = write!(
            warnings,
            "<p class=\"quiet\"><b>Left out:</b> no path of links leads to the border router from {}.</p>",
            numbers.join(", ")
        );
    }
    format!(
        "<header><h1>{}</h1><p class=\"quiet\">{}</p>{warnings}</header>",
        escape(&plan.title),
        facts.join(" · ")
    )
}

/// The faults and how they mended, then the changes of parents in the order of time.
fn changes(point: &Point, run: &RunResult) -> String {
    let broke = faults::table(point, run);
    let broke = match broke.is_empty() {
        true => broke,
        false => section("What broke, and how it mended", &broke),
    };
    if run.moves.is_empty() {
        return broke;
    }
    let mut rows = String::from("<table><tr><th>s</th><th>node</th><th>what</th></tr>");
    for step in run.moves.iter().take(CHANGES_SHOWN) {
        let what = moved(step);
        let _ = write!(
            rows,
            "<tr><td>{:.1}</td><td>{}</td><td>{}</td></tr>",
            step.at_s,
            step.node,
            escape(&what)
        );
    }
    rows += "</table>";
    let left_out = run.moves.len().saturating_sub(CHANGES_SHOWN);
    if left_out > 0 {
        let _ = write!(
            rows,
            "<p class=\"quiet\">{left_out} more are in results.jsonl.</p>"
        );
    }
    let count = run.moves.len();
    format!(
        "{broke}<details><summary>Who moved when <small>{count} changes of parents</small></summary>{rows}</details>"
    )
}

/// The figures that matter most, large.
fn tiles(point: &Point, run: &RunResult) -> String {
    let mut text = String::from("<div class=\"tiles\">");
    let mut tile = |value: String, unit: &str, what: &str, colour: &str| {
        let _ = write!(
            text,
            "<div><b style=\"color:{colour}\">{value}</b> <span>{unit}</span><p>{what}</p></div>"
        );
    };
    let groups = groups(&[run]);
    if run.flows.len() <= TILED_FLOWS_MAX {
        for flow in &run.flows {
            let route = format!("flow {} → {}", flow.from, flow.to);
            let goodput = format!("{:.1}", flow.goodput_kbps);
            tile(goodput, "kb/s", &route, &series_css(flow.flow));
        }
    } else {
        let goodput = format!("{:.1}", run.goodput_kbps());
        let what = format!("{} flows together", run.flows.len());
        tile(goodput, "kb/s", &what, "var(--ink)");
    }
    for group in groups.iter().take(TILED_GROUPS_MAX) {
        let mean = |name: &str| {
            let spread = Metric::named(name)?.spread(group, &[run])?;
            Some(format!("{:.0}", spread.mean.value))
        };
        let what = |text: &str| match groups.len() {
            1 => text.to_owned(),
            _ => format!("{text}: {}", group.name),
        };
        if let Some(rtt) = mean("rtt") {
            tile(rtt, "ms", &what("mean round trip"), "var(--ink)");
        }
        if let Some(latency) = mean("latency") {
            tile(
                latency,
                "ms",
                &what("until a message arrives"),
                "var(--ink)",
            );
        }
    }
    if let Some(fairness) = run.fairness() {
        tile(
            format!("{fairness:.2}"),
            "",
            "Jain’s fairness",
            "var(--ink)",
        );
    }
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let resent = percent(run.retransmitted());
    tile(resent, "%", "segments sent again", "var(--ink)");
    let lost = percent(run.frame_loss());
    tile(lost, "%", "frames lost on the air", "var(--ink)");
    if point.scenario.network.packet_loss > 0.0 {
        let injected = run.packets_injected_lost.to_string();
        tile(injected, "packets", "lost on purpose", "var(--ink)");
    }
    if point.scenario.network.thins_acks {
        let thinned = run.acks_thinned.to_string();
        tile(thinned, "ACKs", "replaced by newer ones", "var(--ink)");
    }
    text + "</div>"
}

/// Who used what in a run alone, and what it brought: where there are several, each point has rows.
fn flows(plan: &Plan, results: &[RunResult]) -> String {
    let is_one = plan.runs() == 1 && plan.points.iter().all(|it| it.scenario.flows.len() > 1);
    match is_one {
        true => section("Every flow", &table(plan, results)),
        false => String::new(),
    }
}

fn label(point: &Point) -> String {
    let values = point.values.iter();
    let values = values.map(|(key, value)| format!("{} {}", short(key), shown(value)));
    values.collect::<Vec<_>>().join(", ")
}

/// One table by flow, or of many flows by those that are alike, and one of what flows share.
fn table(plan: &Plan, results: &[RunResult]) -> String {
    let flows = plan.points.iter().map(|point| point.scenario.flows.len());
    let several = flows.clone().any(|flows| flows > 1);
    let is_each = flows.sum::<usize>() <= FLOWS_SHOWN_MAX;
    let all: Vec<&RunResult> = results.iter().collect();
    let (of_run, of_flow): (Vec<&Metric>, Vec<&Metric>) = METRICS
        .iter()
        .filter(|metric| several || metric.name != "total_goodput")
        .filter(|metric| !metric.summaries(&all).is_empty())
        .partition(|metric| metric.is_of_run());
    let what = if is_each { "flow" } else { "mean of flows" };
    let mut text = head(plan, what, &of_flow);
    let mut runs = head(plan, "", &of_run);
    for (number, point) in plan.points.iter().enumerate() {
        let own: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        if is_each {
            text += &flow_rows(point, &of_flow, &own);
        } else {
            text += &group_rows(point, &of_flow, &own);
        }
        let cells = of_run.iter().map(|metric| {
            let summary = metric.summaries(&own).first().map(|(_, summary)| *summary);
            cell(summary, percent(metric))
        });
        runs += &row(point, "all flows", cells);
    }
    format!("{text}</table></div>{runs}</table></div>")
}

fn flow_rows(point: &Point, metrics: &[&Metric], runs: &[&RunResult]) -> String {
    let flows = &point.scenario.flows;
    let columns = metrics.iter().map(|metric| {
        let mut cells = vec![None; flows.len()];
        for (flow, summary) in metric.summaries(runs) {
            if let Some(cell) = flow.and_then(|flow| cells.get_mut(flow)) {
                *cell = Some(summary);
            }
        }
        (percent(metric), cells)
    });
    let columns: Vec<(f64, Vec<Option<Summary>>)> = columns.collect();
    let rows = flows.iter().enumerate().map(|(flow, settings)| {
        let kind = match settings.kind {
            FlowKind::Bulk => String::new(),
            kind => format!(", {}", kind.name()),
        };
        let route = format!("{} → {}{kind}", settings.from, settings.to);
        let cells = columns.iter();
        let cells = cells.map(|(factor, cells)| cell(cells[flow], *factor));
        row(point, &route, cells)
    });
    rows.collect()
}

fn group_rows(point: &Point, metrics: &[&Metric], runs: &[&RunResult]) -> String {
    let groups = groups(runs).into_iter().take(GROUPS_SHOWN_MAX);
    let rows = groups.map(|group| {
        let cells = metrics.iter().map(|metric| {
            let spread = metric.spread(&group, runs);
            cell(spread.map(|spread| spread.mean), percent(metric))
        });
        let name = format!("{}: {}", group.flows.len(), group.name);
        row(point, &name, cells)
    });
    rows.collect()
}

fn head(plan: &Plan, what: &str, metrics: &[&Metric]) -> String {
    let mut text = String::from("<div class=\"wide\"><table><tr>");
    for (key, _) in &plan.points[0].values {
        let _ = write!(text, "<th>{}", escape(short(key)));
    }
    let _ = write!(text, "<th>{what}");
    for metric in metrics {
        let name = metric.name.replace('_', " ");
        let unit = match metric.unit {
            "fraction" => "%",
            unit => unit,
        };
        let _ = write!(text, "<th>{name} <small>{unit}</small>");
    }
    text
}

fn row(point: &Point, what: &str, cells: impl Iterator<Item = String>) -> String {
    let mut text = String::from("<tr>");
    for (_, value) in &point.values {
        let _ = write!(text, "<td>{}", escape(&shown(value)));
    }
    let _ = write!(text, "<td>{}", escape(what));
    text.extend(cells);
    text
}

fn cell(summary: Option<Summary>, factor: f64) -> String {
    let Some(Summary { value, ci95, .. }) = summary else {
        return "<td>".to_owned();
    };
    let value = value * factor;
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 1.0 => 1,
        _ => 2,
    };
    match ci95.map(|ci95| measured(value, ci95 * factor)) {
        Some((value, error)) => format!("<td>{value} <small>± {error}</small>"),
        None => format!("<td>{value:.decimals$}"),
    }
}

fn section(title: &str, content: &str) -> String {
    format!("<section><h2>{title}</h2>{content}</section>")
}

/// More would make a page that nobody opens.
const POINTS_SHOWN: usize = 24;
const TILED_FLOWS_MAX: usize = 6;
const TILED_GROUPS_MAX: usize = 3;

/// Where there are more flows, those that are alike have one row.
const FLOWS_SHOWN_MAX: usize = 40;
const GROUPS_SHOWN_MAX: usize = 12;

/// More changes of parents are for programs.
const CHANGES_SHOWN: usize = 60;
