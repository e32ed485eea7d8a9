//! Rows for people: one table for each experiment.

use motet_lab::experiments::row::{Evidence, Row};
use motet_lab::stats::Interval;

use super::Done;
use crate::error::Error;
use crate::figure::number;
use crate::grid::{self, Cell, Grid, Head};
use crate::output::{self, BAD, BOLD, DIM, GOOD, Out};

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
    let title = format!(
        "{}  {}  {}",
        done.experiment.id,
        done.experiment.title,
        extent(done, seed)
    );
    for (at, line) in grid::folded(&title, grid::columns(), 2).iter().enumerate() {
        match line.strip_prefix(done.experiment.id) {
            Some(rest) if at == 0 => {
                output::line(format_args!("{BOLD}{}{BOLD:#}{rest}", done.experiment.id))?;
            }
            _ => output::line(line)?,
        }
    }
    let heads = HEAD.map(|(name, is_number)| match (name, is_number) {
        ("", _) => Head::fixed(name).words().prose(),
        ("bound" | "estimate", _) => Head::new(name, 1),
        (_, true) => Head::fixed(name),
        (_, false) => Head::fixed(name).words(),
    });
    let mut grid = Grid::new(heads.to_vec());
    for row in &done.report.rows {
        let cells = cells(row).into_iter().map(Cell::from);
        grid.push(cells.chain([verdict(row)]));
    }
    let left_out = grid.print(Out::Stdout)?;
    if !left_out.is_empty() {
        let columns = left_out.join(", ");
        output::line(format_args!(
            "{DIM}{columns}: no room here, see --json{DIM:#}"
        ))?;
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

/// The verdict of the criterion on the runs; for a row that is not judged, the reason.
fn verdict(row: &Row) -> Cell {
    let text = row.criterion.as_ref().map_or("", |c| c.text.as_str());
    let role = row.evidence.name();
    match (row.evidence, row.pass(), row.meets()) {
        (Evidence::Prediction, None, _) => Cell::styled(text, DIM),
        (_, Some(true), _) => Cell::styled(format!("holds   {text}"), GOOD),
        (_, Some(false), Some(true)) => Cell::styled(
            format!("MISSED  {text}: the mean meets it, an interval does not"),
            BAD,
        ),
        (_, Some(false), _) => Cell::styled(format!("MISSED  {text}"), BAD),
        (_, None, Some(false)) => Cell::styled(format!("{role}, not met  {text}"), DIM),
        (_, None, _) => Cell::styled(format!("{role:<7} {text}").trim_end(), DIM),
    }
}
