//! The published experiments as a page to look at, and their plots.

use std::fmt::Write as _;

use super::html::{Figure, document, grid};
use super::plot::{Line, Look, Plot};
use super::theme::{escape, standalone};
use crate::experiments::chart::{Chart, Style};
use crate::experiments::row::{Role, Row};
use crate::experiments::{Experiment, Report};

/// The page of these experiments; `missing`: those that were asked for and have no rows.
pub fn criteria_page(all: &[(Experiment, &Report)], missing: &[&str]) -> String {
    let mut body = String::from(
        "<header><h1>The published experiments, with Motet</h1><p class=\"quiet\">Virtual time, \
         one calibration for all. A fit is a figure on which a constant of the air was fitted; \
         it proves nothing.</p></header>",
    );
    if !missing.is_empty() {
        let missing = escape(&missing.join(", "));
        let _ = write!(
            body,
            "<p class=\"warning\"><b>Incomplete:</b> nothing of {missing}.</p>"
        );
    }
    for (experiment, report) in all {
        let _ = write!(
            body,
            "<section id=\"{id}\"><h2>{}</h2><p class=\"quiet\"><code>motet reproduce {id}</code>: \
             {} runs of {} s for each setting</p>{}</section>{}",
            escape(experiment.title),
            report.budget.runs,
            report.budget.seconds,
            table(&report.rows),
            grid(&figures(experiment, report)),
            id = experiment.id,
        );
    }
    document("Motet: the published experiments", &body)
}

/// Its plots as SVG files: name and text.
pub fn criteria_plots(all: &[(Experiment, &Report)]) -> Vec<(String, String)> {
    let figures = all
        .iter()
        .flat_map(|(experiment, report)| figures(experiment, report));
    figures
        .map(|figure| (format!("{}.svg", figure.name), standalone(&figure.svg)))
        .collect()
}

fn figures(experiment: &Experiment, report: &Report) -> Vec<Figure> {
    let charts = (1..).zip(&report.charts);
    let figure = |(number, chart): (usize, &Chart)| Figure {
        name: format!("{}-{number}", experiment.id),
        title: chart.title.clone(),
        note: String::new(),
        svg: plot(chart).svg(),
    };
    charts.map(figure).collect()
}

fn plot(chart: &Chart) -> Plot {
    let lines = chart
        .series
        .iter()
        .enumerate()
        .map(|(colour, series)| Line {
            name: series.name.clone(),
            points: series.points.clone(),
            look: match series.style {
                Style::Measured => Look::Points,
                Style::Paper => Look::Crosses,
                Style::Bound => Look::Dashes,
                Style::Trace => Look::Trace,
            },
            colour,
        });
    Plot {
        x: chart.x.clone(),
        y: chart.y.clone(),
        lines: lines.collect(),
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "<div class=\"wide\"><table class=\"criteria\"><tr><th>setting<th>metric<th>value\
         <th>paper<th>bound<th>criterion<th>",
    );
    for row in rows {
        text += &cells(row);
    }
    text + "</table></div>"
}

fn cells(row: &Row) -> String {
    let number = |value: Option<f64>| {
        let finite = value.filter(|value| value.is_finite());
        finite.map_or_else(String::new, |value| value.to_string())
    };
    let interval = row.ci95.map(|ci| format!(" <small>± {ci}</small>"));
    let (class, verdict) = match (row.role, row.pass()) {
        (Role::Fit, _) => ("fit", "fit"),
        (_, Some(true)) => ("holds", "holds"),
        (_, Some(false)) => ("missed", "missed"),
        _ => ("", ""),
    };
    let unit = if row.unit == "1" { "" } else { row.unit };
    format!(
        "<tr class=\"{class}\"><td>{}<td>{} <small>{unit}</small><td>{}{}<td>{}<td>{}<td>{}<td>{verdict}",
        escape(&row.point.to_string()),
        row.metric.replace('_', " "),
        number(Some(row.value)),
        interval.unwrap_or_default(),
        number(row.paper),
        number(row.bound),
        escape(row.criterion.as_ref().map_or("", |c| c.text.as_str())),
    )
}
