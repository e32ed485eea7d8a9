//! Where the rows go: a table, Markdown or JSON lines on stdout, a file of JSON lines, a folder.

use std::path::{Path, PathBuf};

use motet_lab::experiments::row::Evidence;
use motet_lab::report;

use super::{Args, Done, json, markdown, table};
use crate::error::Error;
use crate::output::{self, BAD, DIM};
use crate::provenance;
use crate::targets::{self, Folder};

/// The files that are written.
pub(super) struct Target {
    stdout: Format,
    /// The file of JSON lines.
    lines: Option<PathBuf>,
    folder: Option<Folder>,
    replace: bool,
}

/// The format on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Table,
    Markdown,
    Json,
}

impl Target {
    /// Refuses files that could not be written after all the work.
    ///
    /// # Errors
    /// [`Error::Input`] when a file is in the way or its folder does not exist, and when two
    /// formats are to go to standard output.
    pub(super) fn prepare(args: &Args) -> Result<Self, Error> {
        let replace = args.force;
        let folder = args.out.as_deref();
        let folder = folder.map(|folder| Folder::prepare(folder, replace));
        let folder = folder.transpose()?;
        let lines = args.json.file().map(Path::to_owned);
        let stdout = match (args.json.is_on(), args.markdown) {
            (true, true) => {
                return Err(Error::input(
                    "--json and --markdown both want standard output; give --json a file",
                ));
            }
            (true, false) => Format::Json,
            (false, true) => Format::Markdown,
            (false, false) => Format::Table,
        };
        let ours = folder.iter();
        let ours = ours.flat_map(|folder| [PAGE, LINES].map(|name| folder.file(name)));
        let ours: Vec<PathBuf> = ours.collect();
        let ours = ours.iter().map(PathBuf::as_path);
        let outputs: Vec<&Path> = lines.as_deref().into_iter().chain(ours).collect();
        targets::check(&outputs, &[], replace)?;
        Ok(Self {
            stdout,
            lines,
            folder,
            replace,
        })
    }

    /// Writes what stands before all rows.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(super) fn open(&self, args: &Args) -> Result<(), Error> {
        match self.stdout {
            Format::Markdown => markdown::open(args),
            Format::Table | Format::Json => Ok(()),
        }
    }

    /// Shows an experiment as soon as it is over.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(super) fn show(&self, done: &Done, seed: u64) -> Result<(), Error> {
        match self.stdout {
            Format::Table => table::print(done, seed),
            Format::Markdown => markdown::print(done, seed),
            Format::Json => {
                let mut rows = done.report.rows.iter();
                rows.try_for_each(|row| output::line(json::line(row)))
            }
        }
    }

    /// Writes files, and the last line of the output; `missing`: experiments without rows,
    /// `seconds`: how long all took.
    ///
    /// # Errors
    /// When something cannot be written.
    pub(super) fn close(
        &self,
        args: &Args,
        all: &[Done],
        missing: &[&str],
        seconds: f64,
    ) -> Result<(), Error> {
        let incomplete = (!missing.is_empty()).then(|| json::incomplete(missing));
        let rows = all.iter().flat_map(|done| &done.report.rows);
        let lines = rows.map(json::line).chain(incomplete.clone());
        let lines: String = lines.map(|line| line + "\n").collect();
        if let Some(path) = &self.lines {
            targets::write(path, lines.as_bytes(), self.replace)?;
        }
        if let Some(folder) = &self.folder {
            let all: Vec<_> = all
                .iter()
                .map(|done| (done.experiment, &done.report))
                .collect();
            let origin = provenance::of(super::command(args), None);
            let first = origin.line_of_experiments(&all, args.seed);
            let lines = format!("{first}\n{lines}");
            targets::write(&folder.file(LINES), lines.as_bytes(), self.replace)?;
            folder.write_plots(report::criteria_plots(&all))?;
            let page = report::criteria_page(&all, missing, &origin);
            targets::write(&folder.file(PAGE), page.as_bytes(), self.replace)?;
        }
        let summary = summary(all);
        let missing = missing.join(", ");
        match (self.stdout, incomplete) {
            (Format::Json, Some(line)) => output::line(line),
            (Format::Json, None) => Ok(()),
            (Format::Table, Some(_)) => output::line(format_args!(
                "{summary} {DIM}({seconds:.0} s){DIM:#}\n\
                 {BAD}incomplete{BAD:#}: nothing of {missing}"
            )),
            (Format::Table, None) => {
                output::line(format_args!("{summary} {DIM}({seconds:.0} s){DIM:#}"))
            }
            (Format::Markdown, Some(_)) => output::line(format_args!(
                "{summary}. **Incomplete**: nothing of {missing}."
            )),
            (Format::Markdown, None) => output::line(format_args!("{summary}.")),
        }
    }
}

/// How many criteria hold, in a line.
fn summary(all: &[Done]) -> String {
    let rows = || all.iter().flat_map(|done| &done.report.rows);
    let count = |wanted: bool| rows().filter(|row| row.pass() == Some(wanted)).count();
    let fits = rows().filter(|row| row.evidence == Evidence::Fit).count();
    let withdrawn = rows().filter(|row| row.is_withdrawn()).count();
    format!(
        "{} criteria hold, {} missed, {withdrawn} withdrawn, {fits} figures were fitted on",
        count(true),
        count(false),
    )
}

/// The page's file name.
const PAGE: &str = "report.html";

/// The rows' file name.
const LINES: &str = "results.jsonl";
