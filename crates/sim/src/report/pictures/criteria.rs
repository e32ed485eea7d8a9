//! The published experiments as a page to look at, and their plots.

use std::fmt::Write as _;

use super::html::{Figure, document, grid};
use super::page::origin;
use super::plot::{Line, Look, Plot};
use super::theme::{escape, standalone};
use crate::experiments::chart::{Chart, Style};
use crate::experiments::row::{Evidence, Row};
use crate::experiments::{Experiment, Report};
use crate::report::Provenance;
use crate::stats::Interval;

/// The page of these experiments; `missing`: requested experiments without rows.
pub fn criteria_page(
    all: &[(Experiment, &Report)],
    missing: &[&str],
    provenance: &Provenance,
) -> String {
    let mut body = String::from(
        "<header><h1>The published experiments, with Motet</h1><p class=\"quiet\">Virtual time, \
         one calibration for all. A criterion holds when the whole 95 % interval meets it on \
         each of two disjoint sets of seeds. A fit is a figure on which a constant of the air \
         was fitted, an identity follows from other figures, a repeat is judged elsewhere: they \
         prove nothing.</p></header>",
    );
    if !missing.is_empty() {
        let missing = escape(&missing.join(", "));
        let _ = write!(
            body,
            "<p class=\"warning\"><b>Incomplete:</b> nothing of {missing}.</p>"
        );
    }
    body += &tiles(all);
    body += &index(all);
    for (experiment, report) in all {
        let _ = write!(
            body,
            "<header id=\"{id}\"><h2>{}</h2><p class=\"quiet\"><code>motet reproduce {id}</code>: \
             two sets of {} runs of {} s for each setting</p></header>{}<section>{}</section>",
            escape(experiment.title),
            report.budget.runs,
            report.budget.seconds,
            grid(&figures(experiment, report)),
            tables(&report.rows),
            id = experiment.id,
        );
    }
    body += &origin(provenance);
    document("Motet: the published experiments", &body)
}

/// How many criteria hold and are missed, and how many figures are fits.
fn verdicts<'a>(rows: impl Iterator<Item = &'a Row>) -> [usize; 3] {
    let mut counts = [0; 3];
    for row in rows {
        match (row.pass(), row.evidence) {
            (Some(true), _) => counts[0] += 1,
            (Some(false), _) => counts[1] += 1,
            (None, Evidence::Fit) => counts[2] += 1,
            (None, _) => {}
        }
    }
    counts
}

/// The verdict on everything, large.
fn tiles(all: &[(Experiment, &Report)]) -> String {
    let [hold, missed, fits] = verdicts(all.iter().flat_map(|(_, report)| &report.rows));
    format!(
        "<div class=\"tiles\"><div><b style=\"color:var(--good)\">{hold}</b><p>criteria hold</p></div>\
         <div><b style=\"color:var(--bad)\">{missed}</b><p>are missed</p></div>\
         <div><b>{fits}</b><p>figures were fitted on</p></div></div>"
    )
}

/// Where everything is, and where something is missed.
fn index(all: &[(Experiment, &Report)]) -> String {
    let mut text = String::from("<ul class=\"index\">");
    for (Experiment { id, .. }, report) in all {
        let [hold, missed, fits] = verdicts(report.rows.iter());
        let missed = match missed {
            0 => String::new(),
            some => format!(", <b>{some} missed</b>"),
        };
        let fits = match fits {
            0 => String::new(),
            some => format!(", {some} fits"),
        };
        let _ = write!(
            text,
            "<li><a href=\"#{id}\">{id}</a> <small>{hold} hold{missed}{fits}</small>"
        );
    }
    text + "</ul>"
}

/// The criteria's plots as SVG files: name and text.
pub fn criteria_plots(all: &[(Experiment, &Report)]) -> Vec<(String, String)> {
    let figures = all
        .iter()
        .flat_map(|(experiment, report)| figures(experiment, report));
    figures
        .map(|figure| {
            (
                format!("{}.svg", figure.name),
                standalone(&figure.named_svg()),
            )
        })
        .collect()
}

fn figures(experiment: &Experiment, report: &Report) -> Vec<Figure> {
    let charts = (1..).zip(&report.charts);
    let figure = |(number, chart): (usize, &Chart)| Figure {
        name: format!("{}-{number}", experiment.id),
        // The section's heading already names what all charts have in common.
        title: match report.charts.len() {
            _ if is_trace(chart) => chart.title.clone(),
            1 => chart.title.clone(),
            _ => format!("{} by {}", chart.y, chart.x),
        },
        note: String::new(),
        svg: plot(chart).svg(),
    };
    charts.map(figure).collect()
}

fn is_trace(chart: &Chart) -> bool {
    chart
        .series
        .iter()
        .any(|series| series.style == Style::Trace)
}

fn plot(chart: &Chart) -> Plot {
    // What is measured, published and possible in one setting has one colour.
    let setting = |name: &str| {
        name.split_once(", ")
            .map_or("", |(_, point)| point)
            .to_owned()
    };
    let mut settings: Vec<String> = Vec::new();
    let lines = chart.series.iter().map(|series| {
        let own = setting(&series.name);
        let known = settings.iter().position(|setting| *setting == own);
        let colour = known.unwrap_or(settings.len());
        if known.is_none() {
            settings.push(own);
        }
        Line {
            name: series.name.clone(),
            panel: String::new(),
            points: series.points.clone(),
            look: match series.style {
                Style::Measured => Look::Points,
                Style::Paper => Look::Crosses,
                Style::Bound => Look::Dashes,
                Style::Estimate => Look::Dots,
                Style::Trace => Look::Trace,
            },
            colour,
        }
    });
    let lines = lines.collect();
    Plot {
        x: chart.x.clone(),
        y: chart.y.clone(),
        bands: Vec::new(),
        lines,
    }
}

/// Tables of the rows with a criterion, and of the other rows.
fn tables(rows: &[Row]) -> String {
    let (judged, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.criterion.is_some());
    let judged = match judged[..] {
        [] => String::new(),
        _ => table(&judged),
    };
    match others.len() {
        0 => judged,
        more => format!(
            "{judged}<details><summary>{more} more figures, not judged</summary>{}</details>",
            table(&others)
        ),
    }
}

fn table(rows: &[&Row]) -> String {
    let mut text = String::from(
        "<div class=\"wide\"><table class=\"criteria\"><tr><th>setting<th>metric<th>value\
         <th>paper<th>bound<th>estimate<th>criterion<th>",
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
    let interval = row
        .interval
        .map(|Interval { low, high }| format!(" <small>{low} to {high}</small>"));
    let (class, verdict) = match (row.evidence, row.pass()) {
        (_, Some(true)) => ("holds", "holds"),
        (_, Some(false)) => ("missed", "missed"),
        (Evidence::Prediction, None) => ("", ""),
        (evidence, None) => ("fit", evidence.name()),
    };
    let unit = if row.unit == "1" { "" } else { row.unit };
    format!(
        "<tr class=\"{class}\"><td>{}<td>{} <small>{unit}</small><td>{}{}<td>{}<td>{}<td>{}<td>{}<td>{verdict}",
        escape(&row.point.to_string()),
        row.metric.replace('_', " "),
        number(Some(row.value)),
        interval.unwrap_or_default(),
        number(row.paper),
        number(row.bound),
        number(row.estimate),
        escape(row.criterion.as_ref().map_or("", |c| c.text.as_str())),
    )
}
