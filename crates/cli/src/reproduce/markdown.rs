//! Rows for a page of measurements: Markdown, headed by revision, date and command.

use motet_lab::experiments::row::{Evidence, Row};
use motet_lab::stats::Estimate;

use super::table::{HEAD, cells, extent};
use super::{Args, Done};
use crate::error::Error;
use crate::figure::number;
use crate::output;
use crate::provenance;

/// Prints what stands before all experiments.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn open(args: &Args) -> Result<(), Error> {
    let command = super::command(args) + " --markdown";
    output::line(provenance::heading("Experiments", &command))
}

/// Prints an experiment.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn print(done: &Done, seed: u64) -> Result<(), Error> {
    output::line(format_args!(
        "## {}\n\n{}: {}.\n",
        done.experiment.id,
        done.experiment.title,
        extent(done, seed)
    ))?;
    let names = HEAD.map(|(name, _)| name);
    let rules = HEAD.map(|(_, is_number)| if is_number { "---:" } else { "---" });
    output::line(format_args!("| {}verdict | two sets |", names.join(" | ")))?;
    output::line(format_args!("|{}|---|", rules.join("|")))?;
    for row in &done.report.rows {
        let cells = cells(row).map(|cell| provenance::cell(&cell));
        let verdict = provenance::cell(&verdict(row));
        output::line(format_args!(
            "| {} | {verdict} | {} |",
            cells.join(" | "),
            sets(row)
        ))?;
    }
    output::line("")
}

/// The verdict of the criterion on the runs; for a row that is not judged, the reason.
fn verdict(row: &Row) -> String {
    let text = row.criterion.as_ref().map_or("", |c| c.text.as_str());
    let word = match (row.evidence, row.pass()) {
        (_, Some(true)) => "holds",
        (_, Some(false)) => "**missed**",
        (Evidence::Prediction, None) => return text.to_owned(),
        (evidence, None) if row.meets() == Some(false) => {
            &format!("{}, **not met**", evidence.name())
        }
        (evidence, None) => evidence.name(),
    };
    match text {
        "" => word.to_owned(),
        _ => format!("{word}: {text}"),
    }
}

/// Where a criterion is judged, the figure over either set of seeds.
fn sets(row: &Row) -> String {
    if row.pass().is_none() {
        return String::new();
    }
    let set = |n: usize| {
        let Estimate {
            value, interval, ..
        } = row.sets[n];
        match super::table::interval(value, interval) {
            half if half.is_empty() => number(value),
            ends if ends.contains("to") => format!("{} ({ends})", number(value)),
            half => format!("{} ± {half}", number(value)),
        }
    };
    format!("{}; {}", set(0), set(1))
}
