//! Where the rows go: a table or JSON lines on stdout, a file of JSON lines, a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use motet_lab::report::{self, write_file};

use super::{Done, json, table};
use crate::error::Error;
use crate::files::write_error;
use crate::output;

/// Everything that is written.
pub(super) struct Target {
    json: Json,
    folder: Option<PathBuf>,
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
        let json = match json {
            None => Json::None,
            Some(path) if path == Path::new("-") => Json::Stdout,
            Some(path) => {
                check(path, replace)?;
                Json::File(path.into())
            }
        };
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|error| write_error(folder, &error))?;
            check(&folder.join(PAGE), replace)?;
        }
        Ok(Self {
            json,
            folder: folder.map(Path::to_path_buf),
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

    /// Writes files, and the last line of the table.
    ///
    /// # Errors
    /// When something cannot be written.
    pub(super) fn close(&self, all: &[Done], summary: &str) -> Result<(), Error> {
        if let Json::File(path) = &self.json {
            let rows = all.iter().flat_map(|done| &done.report.rows);
            let text: String = rows.map(|row| json::line(row) + "\n").collect();
            write(path, &text, self.replace)?;
        }
        if let Some(folder) = &self.folder {
            let all: Vec<_> = all
                .iter()
                .map(|done| (done.experiment, &done.report))
                .collect();
            for (name, svg) in report::criteria_plots(&all) {
                write(&folder.join(name), &svg, self.replace)?;
            }
            let page = report::criteria_page(&all);
            write(&folder.join(PAGE), &page, self.replace)?;
        }
        match self.json {
            Json::Stdout => Ok(()),
            _ => output::line(summary),
        }
    }
}

/// Whether `path` may be written later.
fn check(path: &Path, replace: bool) -> Result<(), Error> {
    if path.is_dir() {
        let path = path.display();
        return Err(Error::input(format!("{path} is a directory, name a file")));
    }
    if path.exists() && !replace {
        return Err(write_error(path, &io::ErrorKind::AlreadyExists.into()));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(Error::input(format!(
            "there is no folder {folder}, create it or name another"
        )));
    }
    Ok(())
}

/// Writes a file that appears under its name only when whole.
fn write(path: &Path, text: &str, replace: bool) -> Result<(), Error> {
    write_file(path, text.as_bytes(), replace).map_err(|error| write_error(path, &error))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The page's file name.
const PAGE: &str = "report.html";
