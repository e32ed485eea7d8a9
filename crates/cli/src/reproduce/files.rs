//! Where the rows go: a table or JSON lines on stdout, a file of JSON lines, a folder.

use std::path::{Path, PathBuf};

use motet_lab::report;

use super::{Done, json, table};
use crate::error::Error;
use crate::output::{self, BAD};
use crate::targets::{self, Folder};

/// Everything that is written.
pub(super) struct Target {
    json: Json,
    folder: Option<Folder>,
    replace: bool,
}

enum Json {
    None,
    Stdout,
    File(PathBuf),
}

impl Target {
    /// Refuses what would fail after all the work.
    ///
    /// # Errors
    /// [`Error::Input`] when a file is in the way or its folder does not exist.
    pub(super) fn prepare(
        json: Option<&Path>,
        folder: Option<&Path>,
        replace: bool,
    ) -> Result<Self, Error> {
        let folder = folder.map(|folder| Folder::prepare(folder, replace));
        let folder = folder.transpose()?;
        let json = match json {
            None => Json::None,
            Some(path) if path == Path::new("-") => Json::Stdout,
            Some(path) => Json::File(path.into()),
        };
        let page = folder.as_ref().map(|folder| folder.file(PAGE));
        let lines = match &json {
            Json::File(path) => Some(path.as_path()),
            _ => None,
        };
        let outputs: Vec<&Path> = lines.into_iter().chain(page.as_deref()).collect();
        targets::check(&outputs, &[], replace)?;
        Ok(Self {
            json,
            folder,
            replace,
        })
    }

    /// Shows an experiment as soon as it is over.
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub(super) fn show(&self, done: &Done, seed: u64) -> Result<(), Error> {
        if let Json::Stdout = self.json {
            let mut rows = done.report.rows.iter();
            return rows.try_for_each(|row| output::line(json::line(row)));
        }
        table::print(done, seed)
    }

    /// Writes files, and the last line of the table; `missing`: experiments without rows.
    ///
    /// # Errors
    /// When something cannot be written.
    pub(super) fn close(&self, all: &[Done], missing: &[&str], summary: &str) -> Result<(), Error> {
        let incomplete = (!missing.is_empty()).then(|| json::incomplete(missing));
        if let Json::File(path) = &self.json {
            let rows = all.iter().flat_map(|done| &done.report.rows);
            let lines = rows.map(json::line).chain(incomplete.clone());
            let text: String = lines.map(|line| line + "\n").collect();
            targets::write(path, text.as_bytes(), self.replace)?;
        }
        if let Some(folder) = &self.folder {
            let all: Vec<_> = all
                .iter()
                .map(|done| (done.experiment, &done.report))
                .collect();
            folder.write_plots(report::criteria_plots(&all))?;
            let page = report::criteria_page(&all, missing);
            targets::write(&folder.file(PAGE), page.as_bytes(), self.replace)?;
        }
        match (&self.json, incomplete) {
            (Json::Stdout, Some(line)) => output::line(line),
            (Json::Stdout, None) => Ok(()),
            (_, Some(_)) => {
                let missing = missing.join(", ");
                output::line(format_args!(
                    "{summary}\n{BAD}incomplete{BAD:#}: nothing of {missing}"
                ))
            }
            (_, None) => output::line(summary),
        }
    }
}

/// The page's file name.
const PAGE: &str = "report.html";
