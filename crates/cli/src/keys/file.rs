//! Makes and changes key files, which [`motet_lab::keys`] describes and reads.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use motet_lab::keys::{self, KeyFile, Keys, SECRET_LEN};

use crate::error::Error;
use crate::output::describe;

/// Writes a new file with a new secret, which its owner alone may read.
///
/// # Errors
/// [`Error::Input`] where the file exists or cannot be written: its old secret is never lost.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    let mut secret = [0; SECRET_LEN];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::failed(format!("no random bytes from this system: {error}")))?;
    write_new(path, &KeyFile::new(&secret).text()).map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::AlreadyExists => ": name a new file, or remove it first",
            _ => "",
        };
        let path = path.display();
        Error::input(format!("cannot write {path}: {}{advice}", describe(&error)))
    })
}

/// Changes a key file: the old one stands until the new one is whole.
///
/// # Errors
/// [`Error::Input`] where it cannot be read or written, or `change` refuses.
pub(super) fn change(
    path: &Path,
    change: impl FnOnce(&mut KeyFile) -> Result<(), String>,
) -> Result<(), Error> {
    let mut file = KeyFile::read(path).map_err(Error::input)?;
    change(&mut file).map_err(Error::input)?;
    let cannot = |path: &Path, error: &std::io::Error| {
        let path = path.display();
        Error::input(format!("cannot write {path}: {}", describe(error)))
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    write_new(&new, &file.text()).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Error::input(format!(
            "{} is there: another command changes the key, or was stopped while it did; remove it",
            new.display()
        )),
        _ => cannot(&new, &error),
    })?;
    std::fs::rename(&new, path).map_err(|error| {
        let _ = std::fs::remove_file(&new);
        cannot(path, &error)
    })
}

/// Writes a file that is not there yet, which its owner alone may read.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a file is none.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Reads a key file.
///
/// # Errors
/// [`Error::Input`] where there is none, others than its owner may read it, or it is damaged.
pub(crate) fn read(path: &Path) -> Result<Keys, Error> {
    keys::read(path).map_err(Error::input)
}
