//! Files that a command will write, checked together before it works.
//!
//! Purpose: an error that would show after all the work shows before it, and no input file is
//! written over.
//! Left out: errors that only writing can find: a full disk, a name taken meanwhile.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use motet_lab::report;

use crate::{error::Error, files::write_error};

/// Checks files to write: none is a folder, none exists unless `force`, none is below a file, no
/// two are the same, and none is one of `inputs`, with or without `force`.
///
/// # Errors
/// [`Error::Input`], naming the file.
pub(crate) fn check(outputs: &[&Path], inputs: &[&Path], force: bool) -> Result<(), Error> {
    let read: Vec<PathBuf> = inputs.iter().map(|path| place(path)).collect();
    let mut written: Vec<PathBuf> = Vec::new();
    for path in outputs {
        let (shown, place) = (path.display(), place(path));
        if read.contains(&place) {
            return Err(Error::input(format!(
                "{shown} is what is read, name another file to write"
            )));
        }
        if written.contains(&place) {
            return Err(Error::input(format!(
                "{shown} cannot be written twice, name two files"
            )));
        }
        check_one(path, force)?;
        written.push(place);
    }
    Ok(())
}

fn check_one(path: &Path, force: bool) -> Result<(), Error> {
    let refused = |kind: io::ErrorKind| Err(write_error(path, &kind.into()));
    if path.is_dir() {
        let path = path.display();
        return Err(Error::input(format!("{path} is a directory, name a file")));
    }
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        return refused(io::ErrorKind::InvalidInput);
    }
    if !force && path.symlink_metadata().is_ok() {
        return refused(io::ErrorKind::AlreadyExists);
    }
    // Folders that are missing are made when the file is.
    let mut folders = path.ancestors().skip(1);
    match folders.find_map(|folder| folder.metadata().ok()) {
        Some(folder) if !folder.is_dir() => refused(io::ErrorKind::NotADirectory),
        _ => Ok(()),
    }
}

/// Where a file is or would be, the same for every way to write its name.
fn place(path: &Path) -> PathBuf {
    let beside = || {
        let folder = folder_of(path).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    let found = path.canonicalize().ok().or_else(beside);
    found.unwrap_or_else(|| path.to_owned())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A folder for a page, its plots and what else belongs to one run.
pub(crate) struct Folder {
    path: PathBuf,
    force: bool,
    /// Plots that were there before.
    stale: Vec<PathBuf>,
}

impl Folder {
    /// Makes the folder unless it exists.
    ///
    /// # Errors
    /// [`Error::Input`] when it cannot be made or has plots of an earlier run, unless `force`.
    pub(crate) fn prepare(path: &Path, force: bool) -> Result<Self, Error> {
        let refused = |path: &Path, error: &io::Error| write_error(path, error);
        if path.exists() && !path.is_dir() {
            let path = path.display();
            return Err(Error::input(format!("{path} is a file, name a directory")));
        }
        fs::create_dir_all(path).map_err(|error| refused(path, &error))?;
        let entries = fs::read_dir(path).map_err(|error| refused(path, &error))?;
        let mut stale: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .filter(|entry| report::is_plot(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        stale.sort();
        match stale.first() {
            Some(plot) if !force => Err(refused(plot, &io::ErrorKind::AlreadyExists.into())),
            _ => Ok(Self {
                path: path.to_owned(),
                force,
                stale,
            }),
        }
    }

    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes plots, and removes those of an earlier run that have no successor: beside the
    /// new page they would pass for its own.
    ///
    /// # Errors
    /// When a file can be neither written nor removed.
    pub(crate) fn write_plots(&self, plots: Vec<(String, String)>) -> Result<(), Error> {
        let mut written = Vec::new();
        for (name, svg) in plots {
            let path = self.file(&name);
            write(&path, svg.as_bytes(), self.force)?;
            written.push(path);
        }
        let mut stale = self.stale.iter().filter(|path| !written.contains(path));
        stale.try_for_each(|path| fs::remove_file(path).map_err(|error| write_error(path, &error)))
    }
}

/// Writes a file that appears under its name only when whole.
///
/// # Errors
/// When it cannot be written; nothing stays behind then.
pub(crate) fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), Error> {
    motet_lab::files::write_file(path, bytes, force).map_err(|error| write_error(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(outcome: Result<(), Error>) -> String {
        match outcome {
            Err(Error::Input(sentence)) => sentence,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_would_fail_or_destroy_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("input"), "read").unwrap();
        fs::write(at("there"), "old").unwrap();
        fs::create_dir(at("folder")).unwrap();
        let [input, there, new] = ["input", "there", "new"].map(at);
        let roundabout = at("folder/../new");
        let cases: [(&[&Path], bool, &str); 8] = [
            (&[&there], false, "there exists"),
            (&[&input], false, "is what is read"),
            (&[&input], true, "is what is read"),
            (&[&new, &new], true, "written twice"),
            (&[&new, &roundabout], false, "written twice"),
            (&[&at("folder")], true, "is a directory"),
            (&[&at("there/file")], true, "not a directory"),
            (&[Path::new("/dev/null")], true, "no regular file"),
        ];
        for (outputs, force, words) in cases {
            let sentence = sentence(check(outputs, &[&input], force));
            assert!(sentence.contains(words), "{outputs:?}: {sentence}");
        }
        check(&[&new, &there], &[&input], true).unwrap();
        check(&[&new], &[&input], false).unwrap();
        check(&[&at("none/file")], &[&input], false).unwrap();
        assert!(!new.exists());
    }

    #[test]
    fn plots_of_before_do_not_pass_for_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["point-2-rtt.svg", "rtt.svg", "drawing.svg"] {
            fs::write(at(name), "old").unwrap();
        }
        let refused = Folder::prepare(folder.path(), false).err().unwrap();
        assert!(refused.to_string().contains("point-2-rtt.svg exists"));
        let folder = Folder::prepare(folder.path(), true).unwrap();
        folder
            .write_plots(vec![("rtt.svg".into(), "new".into())])
            .unwrap();
        assert!(!at("point-2-rtt.svg").exists());
        assert_eq!(fs::read(at("rtt.svg")).unwrap(), b"new");
        assert_eq!(fs::read(at("drawing.svg")).unwrap(), b"old", "theirs");
    }
}
