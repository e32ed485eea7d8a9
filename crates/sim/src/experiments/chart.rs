//! Rows as lines and points.
//!
//! Purpose: what a figure of a paper shows, from the very rows that are printed.
//! Left out: drawing.

use super::row::{Row, Value};

/// One picture of a report.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// The title above the chart.
    pub title: String,
    /// The label of the horizontal axis.
    pub x: String,
    /// The label of the vertical axis.
    pub y: String,
    /// The lines and points that the chart shows.
    pub series: Vec<Series>,
}

/// One line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// x, y, and half the width of y's confidence interval.
    pub points: Vec<(f64, f64, f64)>,
    /// The style in which it is drawn.
    pub style: Style,
}

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Measured: points, intervals, a line.
    Measured,
    /// Published values, drawn as points.
    Paper,
    /// What no run exceeds: a dashed line.
    Bound,
    /// What arithmetic gives, and a run may exceed: a dotted line.
    Estimate,
    /// A quantity over time: a line.
    Trace,
}

/// The rows that differ by `axis`, a chart for each metric.
pub fn of_rows(title: &str, axis: &str, rows: &[Row]) -> Vec<Chart> {
    let mut charts: Vec<Chart> = Vec::new();
    for row in rows {
        let Some(x) = row.point.get(axis).and_then(Value::number) else {
            continue;
        };
        let metric = row.metric.replace('_', " ");
        let y = match row.unit {
            "1" => metric,
            unit => format!("{metric}, {unit}"),
        };
        let place = charts.iter().position(|chart| chart.y == y);
        let chart = if let Some(place) = place {
            &mut charts[place]
        } else {
            charts.push(Chart {
                title: title.into(),
                x: axis.replace('_', " "),
                y,
                series: Vec::new(),
            });
            let last = charts.len() - 1;
            &mut charts[last]
        };
        let name = row.point.without(axis).to_string();
        let measured = (x, row.value, row.ci95().unwrap_or(0.0));
        chart.add(named(&name, "measured"), Style::Measured, measured);
        if let Some(paper) = row.paper {
            chart.add(named(&name, "paper"), Style::Paper, (x, paper, 0.0));
        }
        if let Some(bound) = row.bound {
            chart.add(named(&name, "bound"), Style::Bound, (x, bound, 0.0));
        }
        if let Some(estimate) = row.estimate {
            chart.add(
                named(&name, "estimate"),
                Style::Estimate,
                (x, estimate, 0.0),
            );
        }
    }
    charts.retain(|chart| chart.series.iter().any(|series| series.points.len() > 2));
    for series in charts.iter_mut().flat_map(|chart| &mut chart.series) {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    charts
}

/// A congestion window over its first hundred seconds.
pub fn of_trace(trace: &[(f64, f64)]) -> Chart {
    let points = trace.iter().take_while(|(at_s, _)| *at_s <= 100.0);
    Chart {
        title: "Congestion window at d = 0, three hops (TCPlp Fig 7a)".into(),
        x: "time, s".into(),
        y: "cwnd, B".into(),
        series: vec![Series {
            name: "cwnd, at most the buffer".into(),
            points: points.map(|(at_s, cwnd)| (*at_s, *cwnd, 0.0)).collect(),
            style: Style::Trace,
        }],
    }
}

impl Chart {
    fn add(&mut self, name: String, style: Style, point: (f64, f64, f64)) {
        match self.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => self.series.push(Series {
                name,
                points: vec![point],
                style,
            }),
        }
    }
}

fn named(point: &str, what: &str) -> String {
    if point.is_empty() {
        what.into()
    } else {
        format!("{what}, {point}")
    }
}
