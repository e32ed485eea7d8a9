//! Makes key files, which [`motet_lab::keys`] describes and reads.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use motet_lab::keys::{self, Keys, SECRET_LEN};

use crate::error::Error;
use crate::output::{describe, hex};

/// Writes a new file with a new secret, which its owner alone may read.
///
/// # Errors
/// [`Error::Input`] where the file exists or cannot be written: its old secret is never lost.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    let mut secret = [0; SECRET_LEN];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::failed(format!("no random bytes from this system: {error}")))?;
    let text = format!(
        "# Whoever has this file can read this network's frames and write them. Keep it secret.\n\
         secret = \"{}\"\nnetwork = 0\nsequence = 0\n",
        hex(&secret)
    );
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a file is none.
            let _ = std::fs::remove_file(path);
        }
        written
    });
    written.map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::AlreadyExists => ": name a new file, or remove it first",
            _ => "",
        };
        let path = path.display();
        Error::input(format!("cannot write {path}: {}{advice}", describe(&error)))
    })
}

/// Reads a key file.
///
/// # Errors
/// [`Error::Input`] where there is none, others than its owner may read it, or it is damaged.
pub(crate) fn read(path: &Path) -> Result<Keys, Error> {
    keys::read(path).map_err(Error::input)
}
