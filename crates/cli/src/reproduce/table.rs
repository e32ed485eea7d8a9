//! Rows for people: one table for each experiment.

use motet_lab::experiments::row::{Evidence, Row};
use motet_lab::stats::Interval;

use super::Done;
use crate::error::Error;
use crate::output::{self, BAD, BOLD, DIM, GOOD};

/// Names of the columns; numbers are aligned to the right.
pub(super) const HEAD: [(&str, bool); 8] = [
    ("setting", false),
    ("metric", false),
    ("value", true),
    ("±", true),
    ("paper", true),
    ("bound", true),
    ("estimate", true),
    ("", false),
];

/// Prints an experiment.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn print(done: &Done, seed: u64) -> Result<(), Error> {
    output::line(format_args!(
        "{BOLD}{}{BOLD:#}  {}  {DIM}{}{DIM:#}",
        done.experiment.id,
        done.experiment.title,
        extent(done, seed)
    ))?;
    let cells: Vec<[String; 7]> = done.report.rows.iter().map(cells).collect();
    let mut widths = HEAD.map(|(name, _)| name.chars().count());
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head: Vec<String> = HEAD.iter().map(|(name, _)| (*name).to_owned()).collect();
    let head = align(&head, &widths);
    output::line(format_args!("  {DIM}{}{DIM:#}", head.trim_end()))?;
    for (row, cells) in done.report.rows.iter().zip(&cells) {
        output::line(format_args!("  {}{}", align(cells, &widths), verdict(row)))?;
    }
    output::line("")
}

/// How long each setting ran, and with which seeds.
pub(super) fn extent(done: &Done, seed: u64) -> String {
    let budget = done.report.budget;
    let set = |first: u64| {
        let last = first.wrapping_add(budget.runs.saturating_sub(1));
        format!("{first} to {last}")
    };
    let [first, second] = [seed, seed.wrapping_add(budget.runs)].map(set);
    format!("{} s, seeds {first} and {second}", budget.seconds)
}

fn align(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for ((cell, width), (_, is_number)) in cells.iter().zip(widths).zip(HEAD) {
        let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
        line += &if is_number {
            format!("{padding}{cell}  ")
        } else {
            format!("{cell}{padding}  ")
        };
    }
    line
}

/// A row's cells under [`HEAD`], its verdict apart.
pub(super) fn cells(row: &Row) -> [String; 7] {
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    let unit = if row.unit == "1" { "" } else { row.unit };
    [
        row.point.to_string(),
        format!("{} {unit}", row.metric).trim_end().to_owned(),
        number(row.value),
        interval(row.value, row.interval),
        optional(row.paper),
        optional(row.bound),
        optional(row.estimate),
    ]
}

/// Half the width of an interval around its value; of one that is not, its ends.
pub(super) fn interval(value: f64, interval: Option<Interval>) -> String {
    let Some(Interval { low, high }) = interval else {
        return String::new();
    };
    let [below, above] = [value - low, high - value];
    // What is left of an exact middle after rounding to four digits.
    let rounding = 2e-3 * value.abs();
    match (above - below).abs() <= rounding.max(0.02 * (above + below)) {
        true => number(f64::midpoint(below, above)),
        false => format!("{} to {}", number(low), number(high)),
    }
}

/// Enough digits to compare, and no exponent.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        0.0 => "0".into(),
        size if size < 0.1 => format!("{value:.4}"),
        size if size < 2.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The verdict of the criterion on the runs; for a row that is not judged, the reason.
fn verdict(row: &Row) -> String {
    let text = row.criterion.as_ref().map_or("", |c| c.text.as_str());
    let role = row.evidence.name();
    match (row.evidence, row.pass(), row.meets()) {
        (Evidence::Prediction, None, _) => format!("{DIM}{text}{DIM:#}"),
        (_, Some(true), _) => format!("{GOOD}holds{GOOD:#}   {DIM}{text}{DIM:#}"),
        (_, Some(false), Some(true)) => {
            format!("{BAD}MISSED{BAD:#}  {text}: the mean meets it, an interval does not")
        }
        (_, Some(false), _) => format!("{BAD}MISSED{BAD:#}  {text}"),
        (_, None, Some(false)) => format!("{DIM}{role}, not met  {text}{DIM:#}"),
        (_, None, _) => format!("{DIM}{role:<7} {text}{DIM:#}")
            .trim_end()
            .to_owned(),
    }
}
