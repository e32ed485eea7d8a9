//! The figures of a sweep, over a swept key.
//!
//! Few lines share one picture. More are drawn in panels, one for each value of another swept
//! key; where that would be too many panels, as the band that they lie within.

use std::collections::BTreeSet;

use toml::Value;

use super::figures::{percent, short, shown};
use super::grouped::Grouped;
use super::html::Figure;
use super::plot::{Band, LINES_MAX, Line, Look, Plot};
use crate::report::metrics::{Metric, Summary, groups};
use crate::scenario::{FlowSettings, Plan, Point, RunResult};

/// The metrics drawn over a swept key: name, title, unit.
pub(super) const SWEPT: [(&str, &str, &str); 6] = [
    ("total_goodput", "Goodput", "kb/s"),
    ("finished", "Time to finish", "s"),
    ("rtt", "Round-trip time", "ms"),
    (
        "latency_p95",
        "Age of 95 % of the messages on arrival, at most",
        "ms",
    ),
    ("retransmitted", "Segments sent again", "%"),
    ("frame_loss", "Frames lost on the air", "%"),
];

/// The picture of flows' shares by policy.
pub(super) const SHARES: &str = "shares";

/// The key whose values it compares.
const POLICY: &str = "router.policy";

/// The figures that matter, over the swept key with the most values.
pub(super) fn sweep_figures(plan: &Plan, results: &[RunResult]) -> Vec<Figure> {
    let seeds = match plan.seeds.len() {
        1 => "",
        _ => "Means over the seeds; bars hold the true mean with 95 %.",
    };
    let shares = shares(plan, results, seeds);
    let Some(axis) = sweep_axis(plan) else {
        return shares.into_iter().collect();
    };
    let figures = SWEPT.iter().filter_map(|(name, title, unit)| {
        let metric = Metric::named(name)?;
        let all = curves(plan, results, axis, metric);
        let (bands, lines, note) = arranged(&all);
        let plot = Plot {
            x: axis.to_owned(),
            y: format!("{}, {unit}", lower(title)),
            bands,
            lines,
        };
        let is_drawn = !plot.lines.is_empty();
        is_drawn.then(|| Figure {
            name: format!("sweep-{name}"),
            title: (*title).to_owned(),
            note: [note.as_str(), seeds].join(" ").trim().to_owned(),
            svg: plot.svg(),
        })
    });
    figures.chain(shares).collect()
}

/// The goodput of each flow with each policy of the border router, where a sweep compares them: a
/// bar for each, or, of many flows, lines.
fn shares(plan: &Plan, results: &[RunResult], seeds: &str) -> Option<Figure> {
    let is_compared = |point: &Point| point.values.iter().any(|(key, _)| key == POLICY);
    let first = plan.points.first().filter(|point| is_compared(point))?;
    let metric = Metric::named("goodput")?;
    let curve = |(number, point): (usize, &Point)| {
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        let values = point.values.iter();
        let of = values.map(|(key, value)| format!("{} {}", short(key), shown(value)));
        let of_flow = |(flow, summary): (Option<usize>, Summary)| {
            let half = summary.ci95.unwrap_or(0.0);
            Some(((flow? + 1) as f64, summary.value, half))
        };
        Curve {
            of: of.collect(),
            points: metric
                .summaries(&runs)
                .into_iter()
                .filter_map(of_flow)
                .collect(),
        }
    };
    let curves = plan.points.iter().enumerate().map(curve);
    let curves: Vec<Curve> = curves.filter(|curve| !curve.points.is_empty()).collect();
    let flows = &first.scenario.flows;
    let (note, svg) = match flows.len() <= FLOWS_BARRED && curves.len() <= LINES_MAX {
        true => (String::new(), bars_of(flows, &curves).svg()),
        false => {
            let (bands, lines, note) = arranged(&curves);
            let plot = Plot {
                x: "flow".to_owned(),
                y: "goodput, kb/s".to_owned(),
                bands,
                lines,
            };
            (note, plot.svg())
        }
    };
    (!curves.is_empty()).then(|| Figure {
        name: format!("sweep-{SHARES}"),
        title: "What each flow gets, by the border router’s policy".to_owned(),
        note: [note.as_str(), "Goodput in kb/s.", seeds]
            .join(" ")
            .trim()
            .to_owned(),
        svg,
    })
}

/// For each flow, by its ends, a bar for each curve.
fn bars_of(flows: &[FlowSettings], curves: &[Curve]) -> Grouped {
    let value = |curve: &Curve, flow: usize| {
        let mut points = curve.points.iter();
        let own = points.find(|(number, ..)| *number == (flow + 1) as f64);
        own.map(|(_, value, half)| (*value, *half))
    };
    let groups = flows.iter().enumerate().map(|(flow, ends)| {
        let bars = curves.iter().map(|curve| value(curve, flow));
        (format!("{} → {}", ends.from, ends.to), bars.collect())
    });
    Grouped {
        names: curves.iter().map(|curve| curve.of.join(", ")).collect(),
        groups: groups.collect(),
    }
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

/// One curve: what else it is of, and its points.
#[derive(Clone, PartialEq, Debug)]
struct Curve {
    /// The values of the other swept keys, and the flows if there are several.
    of: Vec<String>,
    points: Vec<(f64, f64, f64)>,
}

/// A curve for each flow where those are few, else for flows that are alike.
fn curves(plan: &Plan, results: &[RunResult], axis: &str, metric: &Metric) -> Vec<Curve> {
    let each = curves_of(plan, results, axis, metric, |point, runs| {
        let flows = &point.scenario.flows;
        let name = |flow: Option<usize>| match flow.and_then(|flow| Some((flow, flows.get(flow)?)))
        {
            Some((flow, ends)) if flows.len() > 1 => {
                Some(format!("{}: {} → {}", flow + 1, ends.from, ends.to))
            }
            _ => None,
        };
        let summaries = metric.summaries(runs).into_iter();
        summaries
            .map(|(flow, summary)| (name(flow), summary))
            .collect()
    });
    if each.len() <= LINES_MAX || metric.is_of_run() {
        return each;
    }
    curves_of(plan, results, axis, metric, |_, runs| {
        let alike = groups(runs).into_iter();
        let means = alike.filter_map(|group| {
            let spread = metric.spread(&group, runs)?;
            Some((Some(group.name), spread.mean))
        });
        means.collect()
    })
}

fn curves_of(
    plan: &Plan,
    results: &[RunResult],
    axis: &str,
    metric: &Metric,
    figures: impl Fn(&Point, &[&RunResult]) -> Vec<(Option<String>, Summary)>,
) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (number, point) in plan.points.iter().enumerate() {
        let on_axis = point.values.iter().find(|(key, _)| key == axis);
        let Some(x) = on_axis.and_then(|(_, value)| numeric(value)) else {
            continue;
        };
        let others = point.values.iter().filter(|(key, _)| key != axis);
        let others: Vec<String> = others
            .map(|(key, value)| format!("{} {}", short(key), shown(value)))
            .collect();
        let runs: Vec<&RunResult> = results.iter().filter(|run| run.point == number).collect();
        for (whose, summary) in figures(point, &runs) {
            let of: Vec<String> = others.iter().cloned().chain(whose).collect();
            let factor = percent(metric);
            let half = summary.ci95.unwrap_or(0.0);
            let at = (x, factor * summary.value, factor * half);
            match curves.iter_mut().find(|curve| curve.of == of) {
                Some(curve) => curve.points.push(at),
                None => curves.push(Curve {
                    of,
                    points: vec![at],
                }),
            }
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    curves
}

/// The arrangement of curves: bands, lines, and a note for the caption.
fn arranged(curves: &[Curve]) -> (Vec<Band>, Vec<Line>, String) {
    if curves.len() <= LINES_MAX {
        let lines = curves.iter().enumerate();
        let lines =
            lines.map(|(colour, curve)| line(curve, curve.of.join(", "), String::new(), colour));
        return (Vec::new(), lines.collect(), String::new());
    }
    let dimensions = curves.iter().map(|curve| curve.of.len()).max().unwrap_or(0);
    let divisions = (1..1_usize << dimensions.min(DIMENSIONS_MAX)).filter_map(|apart| {
        let panels: BTreeSet<String> = curves
            .iter()
            .map(|curve| part(curve, apart, true))
            .collect();
        let names: BTreeSet<String> = curves
            .iter()
            .map(|curve| part(curve, apart, false))
            .collect();
        let fits = names.len() <= LINES_MAX && panels.len() <= PANELS_MAX;
        fits.then_some((panels.len(), apart))
    });
    match divisions.min() {
        Some((_, apart)) => (Vec::new(), in_panels(curves, apart), String::new()),
        None => in_band(curves),
    }
}

/// The values of swept keys that a curve stands for: those in the title of its panel (`is_panel`),
/// or those in its name within the panel. `apart`: a bit for each value that is in the panel's
/// title.
fn part(curve: &Curve, apart: usize, is_panel: bool) -> String {
    let values = curve.of.iter().enumerate();
    let own = values.filter(|(place, _)| (apart >> place & 1 == 1) == is_panel);
    let own: Vec<&str> = own.map(|(_, value)| value.as_str()).collect();
    own.join(", ")
}

fn in_panels(curves: &[Curve], apart: usize) -> Vec<Line> {
    let mut names: Vec<String> = Vec::new();
    let lines = curves.iter().map(|curve| {
        let name = part(curve, apart, false);
        let known = names.iter().position(|known| *known == name);
        let colour = known.unwrap_or(names.len());
        if known.is_none() {
            names.push(name.clone());
        }
        line(curve, name, part(curve, apart, true), colour)
    });
    lines.collect()
}

/// The middle of many curves, and what all of them are within.
fn in_band(curves: &[Curve]) -> (Vec<Band>, Vec<Line>, String) {
    let mut at: Vec<f64> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|(x, ..)| *x))
        .collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let (mut band, mut middle) = (Vec::new(), Vec::new());
    for x in at {
        let here = curves.iter().flat_map(|curve| &curve.points);
        let mut values: Vec<f64> = here
            .filter(|(at, ..)| *at == x)
            .map(|(_, y, _)| *y)
            .collect();
        values.sort_by(f64::total_cmp);
        if let (Some(low), Some(high)) = (values.first(), values.last()) {
            band.push((x, *low, *high));
            middle.push((x, values[(values.len() - 1) / 2], 0.0));
        }
    }
    let curve = Curve {
        of: Vec::new(),
        points: middle,
    };
    let note = format!(
        "{} curves. Line: their median. Band: from the least to the greatest; results.jsonl has each.",
        curves.len()
    );
    let band = Band {
        points: band,
        colour: 0,
    };
    (
        vec![band],
        vec![line(&curve, String::new(), String::new(), 0)],
        note,
    )
}

fn line(curve: &Curve, name: String, panel: String, colour: usize) -> Line {
    Line {
        name,
        panel,
        points: curve.points.clone(),
        look: Look::Points,
        colour,
    }
}

/// A title within a sentence; abbreviations stay as they are.
fn lower(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|first| first.to_lowercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// More flows have lines instead of bars.
const FLOWS_BARRED: usize = 24;

/// More panels are too small to read.
const PANELS_MAX: usize = 12;

/// More swept keys are divided by the first ones.
const DIMENSIONS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(sizes: &[usize]) -> Vec<Curve> {
        let mut all = vec![Vec::new()];
        for (key, size) in sizes.iter().enumerate() {
            let longer = |of: &Vec<String>| -> Vec<Vec<String>> {
                let values = (0..*size).map(|value| format!("key{key} {value}"));
                values
                    .map(|value| of.iter().cloned().chain([value]).collect())
                    .collect()
            };
            all = all.iter().flat_map(longer).collect();
        }
        let curve = |(number, of)| Curve {
            of,
            points: vec![(1.0, number as f64, 0.0), (2.0, 1.0, 0.0)],
        };
        all.into_iter().enumerate().map(curve).collect()
    }

    /// (values of the other keys, panels, lines in each)
    #[test]
    fn no_panel_has_more_lines_than_colours_tell_apart() {
        let cases: [(&[usize], usize, usize); 5] = [
            (&[8], 1, 8),
            (&[3, 4], 3, 4),
            (&[4, 3], 3, 4),
            (&[5, 10], 10, 5),
            (&[3, 3, 5], 9, 5),
        ];
        for (sizes, panels, lines) in cases {
            let (bands, drawn, _) = arranged(&curves(sizes));
            assert!(bands.is_empty());
            let mut of: Vec<(&str, usize)> = drawn
                .iter()
                .map(|line| (line.panel.as_str(), line.colour))
                .collect();
            of.sort_unstable();
            assert_eq!(of.len(), sizes.iter().product::<usize>(), "{sizes:?}");
            of.dedup();
            assert_eq!(
                of.len(),
                drawn.len(),
                "{sizes:?}: a colour twice in a panel"
            );
            let titles: BTreeSet<&str> = of.iter().map(|(panel, _)| *panel).collect();
            let colours: BTreeSet<usize> = of.iter().map(|(_, colour)| *colour).collect();
            assert_eq!((titles.len(), colours.len()), (panels, lines), "{sizes:?}");
        }
    }

    #[test]
    fn too_many_curves_become_a_band() {
        let (bands, lines, note) = arranged(&curves(&[30]));
        assert_eq!(bands[0].points, [(1.0, 0.0, 29.0), (2.0, 1.0, 1.0)]);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].points[0], (1.0, 14.0, 0.0));
        assert!(note.starts_with("30 curves"), "{note}");
    }
}
