//! The figures of a run.

use std::collections::BTreeMap;

use toml::Value;

use super::html::Figure;
use super::map;
use super::plot::{Band, Bars, LINES_MAX, Line, Look, Plot};
use crate::air::medium::Fate;
use crate::air::radio::State;
use crate::report::metrics::{Group, Metric, groups};
use crate::scenario::{DROPS, NodeResult, Point, RunResult, STATES, Sample};
use crate::stats::ratio;

/// The names of a run's pictures.
pub(super) const NAMES: [&str; 8] = [
    "topology", "goodput", "rtt", "cwnd", "losses", "drops", "radio", "energy",
];

/// The pictures of one run; `prefix` begins the names of their files.
pub(super) fn point_figures(point: &Point, run: &RunResult, prefix: &str) -> Vec<Figure> {
    let mut album = Album {
        prefix,
        figures: Vec::new(),
    };
    album.add(
        "topology",
        "The network",
        &match run.moves.is_empty() {
            true => NETWORK_NOTE.to_owned(),
            false => format!("{NETWORK_NOTE} {MOVES_NOTE}"),
        },
        map::svg(&point.scenario, run),
    );
    album.add_flows(run);
    album.add_losses(run);
    album.add_nodes(run);
    album.figures
}

/// Pictures in the order in which they are shown.
struct Album<'a> {
    prefix: &'a str,
    figures: Vec<Figure>,
}

impl Album<'_> {
    fn add(&mut self, name: &str, title: &str, note: &str, svg: String) {
        debug_assert!(NAMES.contains(&name), "a stale one would not be found");
        self.figures.push(Figure {
            name: format!("{}{name}", self.prefix),
            title: title.to_owned(),
            note: note.to_owned(),
            svg,
        });
    }

    /// How flows did over time, where they were sampled.
    fn add_flows(&mut self, run: &RunResult) {
        let many = run.flows.len() > LINES_MAX;
        let over_time = |y: &str, of: fn(&Sample) -> f64| time_plot(run, y, of).svg();
        if !run.samples.is_empty() {
            self.add(
                "goodput",
                "Goodput",
                match many {
                    true => "Of all flows that are alike together, the mean of eight samples.",
                    false => "Faint: each sample. Strong: the mean of the eight around it.",
                },
                over_time("goodput, kb/s", |sample| sample.goodput_kbps),
            );
        }
        if run.samples.iter().any(|sample| sample.rtt_ms > 0) {
            self.add(
                "rtt",
                "Round-trip time",
                match many {
                    true => MANY,
                    false => "As the sender smooths it.",
                },
                over_time("SRTT, ms", |sample| f64::from(sample.rtt_ms)),
            );
            self.add(
                "cwnd",
                "Congestion window",
                match many {
                    true => MANY,
                    false => "As far as the sender’s buffer and the peer’s window let it be used.",
                },
                over_time("cwnd, bytes", |sample| f64::from(sample.window_bytes)),
            );
        }
    }

    /// Adds the losses on the air, if there are any.
    fn add_losses(&mut self, run: &RunResult) {
        let (losses, left_out) = loss_bars(run);
        if losses.rows.is_empty() {
            return;
        }
        let note = match left_out {
            0 => "Share of each link’s frames that did not arrive.".to_owned(),
            more => format!(
                "Share of each link’s frames that did not arrive; {more} links that lost less are not shown."
            ),
        };
        let title = "Frames lost on the air, by cause";
        self.add("losses", title, &note, losses.svg());
    }

    /// Adds the events in nodes, and their cost.
    fn add_nodes(&mut self, run: &RunResult) {
        let of_nodes = |text: &str, rows: usize, nodes: usize| match nodes.saturating_sub(rows) {
            0 => text.to_owned(),
            more => format!("{text} {more} more nodes are in results.jsonl."),
        };
        let drops = drop_bars(run);
        if !drops.rows.is_empty() {
            let dropping = |node: &&NodeResult| sum(&node.counts.drops) > 0;
            let dropping = run.nodes.iter().filter(dropping).count();
            let text = "Frames, fragments and packets that their node gave up.";
            self.add(
                "drops",
                "Dropped in nodes, by reason",
                &of_nodes(text, drops.rows.len(), dropping),
                drops.svg(),
            );
        }
        let on_air = run.nodes.iter().filter(|node| is_on_air(node)).count();
        self.add(
            "radio",
            "What each radio did",
            &of_nodes("Share of the time in each state.", BARS_MAX, on_air),
            radio_bars(run).svg(),
        );
        let text = "Mean power of radio and processor; how long each was at work.";
        self.add(
            "energy",
            "Power and duty",
            &of_nodes(text, BARS_MAX, on_air),
            power_bars(run).svg(),
        );
    }
}

/// The samples of each flow, by its place.
fn by_flow(run: &RunResult) -> Vec<Vec<&Sample>> {
    let mut flows = vec![Vec::new(); run.flows.len()];
    for sample in &run.samples {
        if let Some(own) = flows.get_mut(sample.flow) {
            own.push(sample);
        }
    }
    flows
}

/// A quantity of each flow over time, or, of many flows, of those that are alike.
fn time_plot(run: &RunResult, y: &str, of: fn(&Sample) -> f64) -> Plot {
    let is_goodput = y.starts_with("goodput");
    let flows = by_flow(run).into_iter().enumerate();
    let shown = flows
        // Datagrams have bytes over time, but neither round trips nor a window.
        .filter(|(_, own)| is_goodput || own.iter().any(|sample| sample.rtt_ms > 0));
    let mut lines: Vec<Line> = shown
        .map(|(flow, own)| Line {
            name: format!("{} → {}", run.flows[flow].from, run.flows[flow].to),
            panel: String::new(),
            points: own
                .iter()
                // Before the first round trip there is nothing to show.
                .filter(|sample| is_goodput || sample.rtt_ms > 0)
                .map(|sample| (sample.at_s, of(sample), 0.0))
                .collect(),
            look: Look::Trace,
            colour: flow,
        })
        .collect();
    let plot = |bands, lines| Plot {
        x: "time, s".to_owned(),
        y: y.to_owned(),
        bands,
        lines,
    };
    if run.flows.len() > LINES_MAX {
        let (bands, lines) = match is_goodput {
            true => (Vec::new(), together(run, &lines)),
            false => alike(run, &lines),
        };
        return plot(bands, lines);
    }
    // Segments arrive in lumps: single samples say little, their mean does.
    if is_goodput {
        let smooth = lines.iter().map(|line| Line {
            points: smoothed(&line.points),
            ..line.clone()
        });
        let smooth: Vec<Line> = smooth.collect();
        for line in &mut lines {
            line.look = Look::Faint;
            line.name = String::new();
        }
        lines.extend(smooth);
    }
    plot(Vec::new(), lines)
}

/// The sum of the lines of flows that are alike; no point where none of them runs.
fn together(run: &RunResult, lines: &[Line]) -> Vec<Line> {
    let groups = groups(&[run]).into_iter().take(LINES_MAX).enumerate();
    let of_group = |(colour, group): (usize, Group)| {
        let sums = values_at(&group, lines).into_iter().map(|(x, values)| {
            let sum = values.iter().sum::<f64>();
            (f64::from_bits(x), sum, 0.0)
        });
        Line {
            name: format!("{} ({} flows)", group.name, group.flows.len()),
            panel: String::new(),
            points: smoothed(&sums.collect::<Vec<_>>()),
            look: Look::Trace,
            colour,
        }
    };
    groups.map(of_group).collect()
}

/// The values of a group's flows at each moment; `lines` have the numbers of their flows as
/// colours.
fn values_at(group: &Group, lines: &[Line]) -> BTreeMap<u64, Vec<f64>> {
    let own = lines
        .iter()
        .filter(|line| group.flows.binary_search(&line.colour).is_ok());
    // Times are positive: their bits are in their order.
    let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (x, y, _) in own.flat_map(|line| &line.points) {
        at.entry(x.to_bits()).or_default().push(*y);
    }
    at
}

/// The median of flows that are alike, and the band that holds nine of ten.
fn alike(run: &RunResult, lines: &[Line]) -> (Vec<Band>, Vec<Line>) {
    let groups = groups(&[run]).into_iter().take(LINES_MAX).enumerate();
    let of_group = |(colour, group): (usize, Group)| {
        let spread = values_at(&group, lines).into_iter().map(|(x, mut values)| {
            values.sort_by(f64::total_cmp);
            (
                f64::from_bits(x),
                [0.05, 0.5, 0.95].map(|share| rank(&values, share)),
            )
        });
        let spread: Vec<(f64, [f64; 3])> = spread.collect();
        let band = Band {
            points: spread
                .iter()
                .map(|(x, [low, _, high])| (*x, *low, *high))
                .collect(),
            colour,
        };
        let line = Line {
            name: format!("{} ({} flows)", group.name, group.flows.len()),
            panel: String::new(),
            points: spread
                .iter()
                .map(|(x, [_, middle, _])| (*x, *middle, 0.0))
                .collect(),
            look: Look::Trace,
            colour,
        };
        (band, line)
    };
    let drawn = groups
        .map(of_group)
        .filter(|(_, line)| !line.points.is_empty());
    drawn.unzip()
}

/// The least of these sorted values that `share` of them do not exceed.
fn rank(values: &[f64], share: f64) -> f64 {
    let place = ((share * values.len() as f64).ceil() as usize).max(1) - 1;
    values.get(place).copied().unwrap_or_default()
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

fn sum(drops: &[u64; DROPS.len()]) -> u64 {
    drops.iter().sum()
}

fn is_on_air(node: &NodeResult) -> bool {
    node.counts.states_us.iter().any(|us| *us > 0)
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
    let on_air = run.nodes.iter().filter(|node| is_on_air(node));
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

const NETWORK_NOTE: &str =
    "Width of a link: its frames. Number and colour: how many arrived. Square: the border router.";
const MOVES_NOTE: &str = "The tree is that of the end. Red ring: the node lost its parent, or got \
                          another one. Dashed: no link of that tree.";

const BARS_MAX: usize = 24;

const MANY: &str = "Line: the flow in the middle of those that are alike. Band: nine of ten.";
