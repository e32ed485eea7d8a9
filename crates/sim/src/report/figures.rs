//! What a run, and what a sweep, looks like.

use toml::Value;

use super::html::Figure;
use super::map;
use super::plot::{Bars, Line, Look, Plot};
use super::results::{DROPS, Metric, NodeResult, RunResult, STATES, Sample, ratio};
use crate::medium::Fate;
use crate::radio::State;
use crate::scenario::{Plan, Point};

/// The names of a run's pictures.
pub(super) const NAMES: [&str; 8] = [
    "topology", "goodput", "rtt", "cwnd", "losses", "drops", "radio", "energy",
];

/// The pictures of one run; `prefix` begins the names of their files.
pub(super) fn point_figures(point: &Point, run: &RunResult, prefix: &str) -> Vec<Figure> {
    let figure = |name: &str, title: &str, note: &str, svg: String| {
        debug_assert!(NAMES.contains(&name), "a stale one would not be found");
        Figure {
            name: format!("{prefix}{name}"),
            title: title.to_owned(),
            note: note.to_owned(),
            svg,
        }
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

/// The metrics drawn over a swept key: name, title, unit.
pub(super) const SWEPT: [(&str, &str, &str); 4] = [
    ("total_goodput", "Goodput", "kb/s"),
    ("rtt", "Round-trip time", "ms"),
    ("retransmitted", "Segments sent again", "%"),
    ("frame_loss", "Frames lost on the air", "%"),
];

/// What the swept key with the most values does, for the figures that matter.
pub(super) fn sweep_figures(plan: &Plan, results: &[RunResult]) -> Vec<Figure> {
    let Some(axis) = sweep_axis(plan) else {
        return Vec::new();
    };
    let figures = SWEPT.iter().filter_map(|(name, title, unit)| {
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

pub(super) fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// People read fractions as percentages.
pub(super) fn percent(metric: &Metric) -> f64 {
    if metric.unit == "fraction" {
        100.0
    } else {
        1.0
    }
}

const BARS_MAX: usize = 24;
