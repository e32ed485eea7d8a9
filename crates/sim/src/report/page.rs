//! One page to look at, and its plots as files of their own.

use std::fmt::Write as _;

use toml::Value;

use super::map;
use super::plot::{Bars, Line, Look, Plot};
use super::results::{
    DROPS, METRICS, Metric, NodeResult, RunResult, STATES, Sample, Summary, ratio,
};
use super::theme::{escape, series_css, standalone, variables};
use crate::medium::Fate;
use crate::radio::State;
use crate::scenario::{Plan, Point};

/// A picture, with what stands above and below it.
struct Figure {
    /// Of its file, without the ending.
    name: String,
    title: String,
    note: String,
    svg: String,
}

/// The page.
pub fn page(plan: &Plan, results: &[RunResult]) -> String {
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
            "{}{}",
            tiles(point, run),
            grid(&point_figures(point, run, ""))
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
    let title = escape(&plan.title);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{}{STYLE}</style></head><body><main>{body}</main></body></html>\n",
        variables()
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
        .map(|figure| (format!("{}.svg", figure.name), standalone(&figure.svg)))
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
    let whole = results.iter().filter(|run| run.complete).count();
    let mut warnings = String::new();
    if whole < plan.runs() {
        let runs = plan.runs();
        let _ = write!(
            warnings,
            "<p class=\"warning\"><b>Incomplete:</b> {whole} of {runs} runs went to their end.</p>"
        );
    }
    for run in results.iter().filter(|run| run.failure.is_some()).take(3) {
        let why = escape(run.failure.as_deref().unwrap_or_default());
        let _ = write!(
            warnings,
            "<p class=\"warning\"><b>Failed</b> with seed {}: {why}</p>",
            run.seed
        );
    }
    format!(
        "<header><h1>{}</h1><p class=\"quiet\">{}</p>{warnings}</header>",
        escape(&plan.title),
        facts.join(" · ")
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
    for flow in run.flows.iter().take(TILED_FLOWS_MAX) {
        let route = format!("flow {} → {}", flow.from, flow.to);
        let goodput = format!("{:.1}", flow.goodput_kbps);
        tile(goodput, "kb/s", &route, &series_css(flow.flow));
    }
    if let Some(rtt) = run.flows.iter().find_map(|flow| flow.rtt_ms) {
        tile(format!("{rtt:.0}"), "ms", "mean round trip", "var(--ink)");
    }
    if let Some(latency) = run.flows.iter().find_map(|flow| flow.latency_ms) {
        tile(
            format!("{latency:.0}"),
            "ms",
            "until a message arrives",
            "var(--ink)",
        );
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
    text + "</div>"
}

fn point_figures(point: &Point, run: &RunResult, prefix: &str) -> Vec<Figure> {
    let figure = |name: &str, title: &str, note: &str, svg: String| Figure {
        name: format!("{prefix}{name}"),
        title: title.to_owned(),
        note: note.to_owned(),
        svg,
    };
    let over_time = |y: &str, of: fn(&Sample) -> f64| time_plot(run, y, of).svg();
    let mut figures = vec![figure(
        "topology",
        "The network",
        "Width of a link: its frames. Number and colour: how many arrived. Square: the border router.",
        map::svg(&point.scenario, run),
    )];
    if !run.samples.is_empty() {
        figures.push(figure(
            "goodput",
            "Goodput",
            "Faint: each sample. Strong: the mean of the eight around it.",
            goodput_plot(run).svg(),
        ));
    }
    if run.samples.iter().any(|sample| sample.rtt_ms > 0) {
        figures.push(figure(
            "rtt",
            "Round-trip time",
            "As the sender smooths it.",
            over_time("SRTT, ms", |sample| f64::from(sample.rtt_ms)),
        ));
        figures.push(figure(
            "cwnd",
            "Congestion window",
            "As far as the sender’s buffer and the peer’s window let it be used.",
            over_time("cwnd, bytes", |sample| f64::from(sample.window_bytes)),
        ));
    }
    let (losses, left_out) = loss_bars(run);
    if !losses.rows.is_empty() {
        let note = match left_out {
            0 => "Share of each link’s frames that did not arrive.".to_owned(),
            more => format!(
                "Share of each link’s frames that did not arrive; {more} links that lost less are not shown."
            ),
        };
        figures.push(figure(
            "losses",
            "Frames lost on the air, by cause",
            &note,
            losses.svg(),
        ));
    }
    let drops = drop_bars(run);
    if !drops.rows.is_empty() {
        figures.push(figure(
            "drops",
            "Dropped in nodes, by reason",
            "Frames, fragments and packets that their node gave up.",
            drops.svg(),
        ));
    }
    figures.push(figure(
        "radio",
        "What each radio did",
        "Share of the time in each state.",
        radio_bars(run).svg(),
    ));
    figures.push(figure(
        "energy",
        "Power and duty",
        "Mean power of radio and processor; how long each was at work.",
        power_bars(run).svg(),
    ));
    figures
}

fn flow_name(run: &RunResult, flow: usize) -> String {
    let flow = run.flows.get(flow);
    flow.map_or(String::new(), |flow| format!("{} → {}", flow.from, flow.to))
}

fn samples_of(run: &RunResult, flow: usize) -> impl Iterator<Item = &Sample> {
    run.samples.iter().filter(move |sample| sample.flow == flow)
}

fn time_plot(run: &RunResult, y: &str, of: fn(&Sample) -> f64) -> Plot {
    let shown = (0..run.flows.len())
        // Datagrams have bytes over time, but neither round trips nor a window.
        .filter(|flow| {
            y.starts_with("goodput") || samples_of(run, *flow).any(|sample| sample.rtt_ms > 0)
        });
    let lines = shown.map(|flow| Line {
        name: flow_name(run, flow),
        points: samples_of(run, flow)
            .map(|sample| (sample.at_s, of(sample), 0.0))
            .collect(),
        look: Look::Trace,
        colour: flow,
    });
    Plot {
        x: "time, s".to_owned(),
        y: y.to_owned(),
        lines: lines.collect(),
    }
}

/// Segments arrive in lumps: single samples say little, their mean does.
fn goodput_plot(run: &RunResult) -> Plot {
    let mut plot = time_plot(run, "goodput, kb/s", |sample| sample.goodput_kbps);
    let smooth: Vec<Line> = plot
        .lines
        .iter()
        .map(|line| Line {
            points: smoothed(&line.points),
            ..line.clone()
        })
        .collect();
    for line in &mut plot.lines {
        line.look = Look::Faint;
        line.name = String::new();
    }
    plot.lines.extend(smooth);
    plot
}

fn smoothed(points: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
    (0..points.len())
        .map(|at| {
            let around = &points[at.saturating_sub(4)..(at + 4).min(points.len())];
            let sum: f64 = around.iter().map(|(_, y, _)| y).sum();
            (points[at].0, sum / around.len() as f64, 0.0)
        })
        .collect()
}

/// Causes of frame loss by link, the most used ones; and how many were left out.
fn loss_bars(run: &RunResult) -> (Bars, usize) {
    let total = run.fates();
    let causes: Vec<usize> = (0..Fate::COUNT)
        .filter(|fate| *fate != Fate::Received.index() && total[*fate] > 0)
        .collect();
    let mut links: Vec<_> = run
        .links
        .iter()
        .filter(|link| link.delivered() < 1.0)
        .collect();
    links.sort_by_key(|link| {
        let lost = link.frames - link.fates[Fate::Received.index()];
        (std::cmp::Reverse(lost), link.from, link.to)
    });
    let left_out = links.len().saturating_sub(BARS_MAX);
    links.truncate(BARS_MAX);
    links.sort_by_key(|link| (link.from, link.to));
    let rows = links.into_iter().map(|link| {
        let shares = causes
            .iter()
            .map(|cause| ratio(link.fates[*cause], link.frames));
        let label = format!("{} → {}", link.from, link.to);
        let remark = format!(
            "{:.0} % of {}",
            100.0 * (1.0 - link.delivered()),
            link.frames
        );
        (label, shares.collect(), remark)
    });
    let bars = Bars {
        parts: causes
            .iter()
            .map(|cause| Fate::NAMES[*cause].to_owned())
            .collect(),
        rows: rows.collect(),
    };
    (bars, left_out)
}

fn drop_bars(run: &RunResult) -> Bars {
    let reasons: Vec<usize> = (0..DROPS.len())
        .filter(|reason| run.nodes.iter().any(|node| node.counts.drops[*reason] > 0))
        .collect();
    let sum = |drops: &[u64; DROPS.len()]| drops.iter().sum::<u64>();
    let most = run.nodes.iter().map(|node| sum(&node.counts.drops)).max();
    let rows = run
        .nodes
        .iter()
        .filter(|node| sum(&node.counts.drops) > 0)
        .map(|node| {
            let drops = &node.counts.drops;
            let shares = reasons
                .iter()
                .map(|reason| ratio(drops[*reason], most.unwrap_or(1)));
            (
                format!("node {}", node.name),
                shares.collect(),
                sum(drops).to_string(),
            )
        });
    Bars {
        parts: reasons
            .iter()
            .map(|reason| DROPS[*reason].to_owned())
            .collect(),
        rows: rows.take(BARS_MAX).collect(),
    }
}

fn radio_bars(run: &RunResult) -> Bars {
    // Listening has the last colour: grey.
    let states = [
        State::Transmit,
        State::Copy,
        State::Unload,
        State::Prepare,
        State::Assess,
        State::Turnaround,
        State::Sleep,
        State::Listen,
    ];
    let on_air = run
        .nodes
        .iter()
        .filter(|node| node.counts.states_us.iter().any(|us| *us > 0));
    let rows = on_air.take(BARS_MAX).map(|node| {
        let shares = states.map(|state| node.counts.share(state)).to_vec();
        let remark = format!("{:.1} % transmits", 100.0 * shares[0]);
        (format!("node {}", node.name), shares, remark)
    });
    Bars {
        parts: states
            .iter()
            .map(|state| STATES[*state as usize].to_owned())
            .collect(),
        rows: rows.collect(),
    }
}

fn power_bars(run: &RunResult) -> Bars {
    let total = |node: &NodeResult| node.counts.power_mw().iter().sum::<f64>();
    let most = run
        .nodes
        .iter()
        .map(total)
        .fold(f64::MIN_POSITIVE, f64::max);
    let on_air = run.nodes.iter().filter(|node| total(node) > 0.0);
    let rows = on_air.take(BARS_MAX).map(|node| {
        let counts = &node.counts;
        let shares = counts.power_mw().map(|mw| 0.75 * mw / most).to_vec();
        let remark = format!(
            "{:.1} mW · radio {:.0} %, CPU {:.1} %",
            total(node),
            100.0 * counts.radio_duty(),
            100.0 * counts.cpu_duty()
        );
        (format!("node {}", node.name), shares, remark)
    });
    Bars {
        parts: vec!["radio".to_owned(), "processor".to_owned()],
        rows: rows.collect(),
    }
}

/// What the swept key with the most values does, for the figures that matter.
fn sweep_figures(plan: &Plan, results: &[RunResult]) -> Vec<Figure> {
    let Some(axis) = sweep_axis(plan) else {
        return Vec::new();
    };
    let shown = [
        ("total_goodput", "Goodput", "kb/s"),
        ("rtt", "Round-trip time", "ms"),
        ("retransmitted", "Segments sent again", "%"),
        ("frame_loss", "Frames lost on the air", "%"),
    ];
    let figures = shown.iter().filter_map(|(name, title, unit)| {
        let metric = Metric::named(name)?;
        let plot = Plot {
            x: axis.to_owned(),
            y: format!("{}, {unit}", title.to_lowercase()),
            lines: sweep_lines(plan, results, axis, metric),
        };
        Some(Figure {
            name: format!("sweep-{name}"),
            title: (*title).to_owned(),
            note: if plan.seeds.len() > 1 {
                "Means over the seeds; bars hold the true mean with 95 %.".to_owned()
            } else {
                String::new()
            },
            svg: plot.svg(),
        })
    });
    figures.collect()
}

/// The swept key of numbers with the most values.
fn sweep_axis(plan: &Plan) -> Option<&str> {
    let keys = plan.points.first()?.values.iter().enumerate();
    let numeric = keys.filter_map(|(place, (key, _))| {
        let values: Option<Vec<f64>> = plan
            .points
            .iter()
            .map(|point| numeric(&point.values[place].1))
            .collect();
        let mut values = values?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        Some((values.len(), key.as_str()))
    });
    // The first of equals.
    numeric
        .filter(|(values, _)| *values > 1)
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, key)| key)
}

fn numeric(value: &Value) -> Option<f64> {
    value
        .as_float()
        .or(value.as_integer().map(|number| number as f64))
}

fn sweep_lines(plan: &Plan, results: &[RunResult], axis: &str, metric: &Metric) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, point) in plan.points.iter().enumerate() {
        let on_axis = point.values.iter().find(|(key, _)| key == axis);
        let Some(x) = on_axis.and_then(|(_, value)| numeric(value)) else {
            continue;
        };
        let others: Vec<String> = point
            .values
            .iter()
            .filter(|(key, _)| key != axis)
            .map(|(key, value)| format!("{} {}", short(key), shown(value)))
            .collect();
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        let flows = point.scenario.flows.len();
        for (flow, summary) in metric.summaries(&runs) {
            let flow = flow
                .filter(|_| flows > 1)
                .map(|flow| format!("flow {flow}"));
            let name: Vec<String> = others.iter().cloned().chain(flow).collect();
            let name = name.join(", ");
            let factor = percent(metric);
            let at = (
                x,
                factor * summary.value,
                factor * summary.ci95.unwrap_or(0.0),
            );
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(at),
                None => lines.push(Line {
                    name,
                    points: vec![at],
                    look: Look::Points,
                    colour: lines.len(),
                }),
            }
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

fn label(point: &Point) -> String {
    let values = point.values.iter();
    let values = values.map(|(key, value)| format!("{} {}", short(key), shown(value)));
    values.collect::<Vec<_>>().join(", ")
}

fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// People read fractions as percentages.
fn percent(metric: &Metric) -> f64 {
    if metric.unit == "fraction" {
        100.0
    } else {
        1.0
    }
}

fn table(plan: &Plan, results: &[RunResult]) -> String {
    let several = plan
        .points
        .iter()
        .any(|point| point.scenario.flows.len() > 1);
    let all: Vec<&RunResult> = results.iter().collect();
    let metrics: Vec<&Metric> = METRICS
        .iter()
        .filter(|metric| several || metric.name != "total_goodput")
        .filter(|metric| !metric.summaries(&all).is_empty())
        .collect();
    let mut text = String::from("<div class=\"wide\"><table><tr>");
    for (key, _) in &plan.points[0].values {
        let _ = write!(text, "<th>{}", escape(short(key)));
    }
    text.push_str("<th>flow");
    for metric in &metrics {
        let name = metric.name.replace('_', " ");
        let unit = if metric.unit == "fraction" {
            "%"
        } else {
            metric.unit
        };
        let _ = write!(text, "<th>{name} <small>{unit}</small>");
    }
    for (number, point) in plan.points.iter().enumerate() {
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        for (flow, settings) in point.scenario.flows.iter().enumerate() {
            text.push_str("<tr>");
            for (_, value) in &point.values {
                let _ = write!(text, "<td>{}", escape(&shown(value)));
            }
            let _ = write!(text, "<td>{} → {}", settings.from, settings.to);
            for metric in &metrics {
                let mine = metric.summaries(&runs);
                let mine = mine.into_iter().find(|(of, _)| of.unwrap_or(0) == flow);
                text.push_str(&cell(mine.map(|(_, summary)| summary), percent(metric)));
            }
        }
    }
    text + "</table></div>"
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
    let interval = ci95.map(|ci95| format!(" <small>± {:.decimals$}</small>", ci95 * factor));
    format!("<td>{value:.decimals$}{}", interval.unwrap_or_default())
}

fn grid(figures: &[Figure]) -> String {
    let mut text = String::from("<div class=\"grid\">");
    for figure in figures {
        let _ = write!(
            text,
            "<figure><figcaption><h2>{}</h2><p>{}</p></figcaption>{}</figure>",
            escape(&figure.title),
            escape(&figure.note),
            figure.svg
        );
    }
    text + "</div>"
}

fn section(title: &str, content: &str) -> String {
    format!("<section><h2>{title}</h2>{content}</section>")
}

/// More would make a page that nobody opens.
const POINTS_SHOWN: usize = 24;
const TILED_FLOWS_MAX: usize = 6;
const BARS_MAX: usize = 24;

const STYLE: &str = "\
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\
main{max-width:1440px;margin:0 auto;padding:2rem 1.5rem 4rem}\
h1{margin:0;font-size:1.9rem;letter-spacing:-.02em}h2{margin:0;font-size:1.05rem}\
.quiet,figcaption p,.tiles p,small{color:var(--quiet)}header p{margin:.2rem 0 1.2rem}\
.warning{border-left:4px solid var(--bad);padding:.3rem .8rem;background:var(--paper)}\
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:0 0 1rem}\
.tiles div{background:var(--paper);border-radius:12px;padding:.7rem 1.2rem .6rem;flex:1 1 7rem}\
.tiles b{font-size:1.9rem;font-weight:650;letter-spacing:-.02em}.tiles p{margin:0}\
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:1rem;\
margin-bottom:1rem;align-items:start}\
figure,section{margin:0;background:var(--paper);border-radius:12px;padding:1rem 1.2rem}\
section{margin-bottom:1rem}figcaption p{margin:0 0 .6rem;font-size:.87rem;min-height:1.3em}\
svg{display:block;width:100%;height:auto;font-family:system-ui,sans-serif}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;margin-top:.6rem;\
font-variant-numeric:tabular-nums;font-size:.9rem}\
th,td{padding:.25rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}\
th{font-weight:600;vertical-align:bottom;white-space:normal}\
details{margin-bottom:1rem}summary{cursor:pointer;font-weight:600;padding:.5rem 0}\
@media print{body{background:none}figure{break-inside:avoid}}";
