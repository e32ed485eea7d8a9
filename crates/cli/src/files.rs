//! Files that the user named: one to read whole, and why one cannot be written.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use crate::{error::Error, output::describe};

/// Reads the file a user named; `-` is standard input.
///
/// # Errors
/// [`Error::Input`] when it is missing, unreadable, a folder, or longer than
/// [`FILE_LEN_MAX`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if path.as_os_str() == "-" {
        return read_all(io::stdin(), "standard input");
    }
    if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
        return Err(Error::input(format!(
            "{} is a directory, name a file",
            path.display()
        )));
    }
    let named = path.display().to_string();
    match File::open(path) {
        Ok(file) => read_all(file, &named),
        Err(error) => Err(unreadable(&named, &error)),
    }
}

/// All bytes of `input`, which is called `named`.
fn read_all(input: impl io::Read, named: &str) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    // Some files show their length only at their end: /dev/zero, pipes.
    let read = input.take(FILE_LEN_MAX + 1).read_to_end(&mut content);
    read.map_err(|error| unreadable(named, &error))?;
    if content.len() as u64 > FILE_LEN_MAX {
        return Err(Error::input(format!(
            "{named} is longer than {} MiB, hours on the air: name a shorter file",
            FILE_LEN_MAX >> 20
        )));
    }
    Ok(content)
}

fn unreadable(named: &str, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => ", check the path",
        io::ErrorKind::PermissionDenied => ", check its permissions",
        _ => "",
    };
    Error::input(format!("cannot read {named}: {}{advice}", describe(error)))
}

/// The longest file to send, in bytes: it is held in memory at both ends. At the 70 kb/s of
/// one hop it takes two hours.
const FILE_LEN_MAX: u64 = 64 << 20;

/// Why a file cannot be written, and what to do.
pub(crate) fn write_error(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Error::input(format!(
            "{path} exists, name another file or allow overwriting with --force"
        )),
        io::ErrorKind::InvalidInput => {
            Error::input(format!("{path} is no regular file, name another file"))
        }
        io::ErrorKind::NotFound => Error::input(format!(
            "cannot write {path}: there is no such folder, make it or name another"
        )),
        io::ErrorKind::StorageFull => Error::failed(format!(
            "cannot write {path}: the disk is full, make room and try again"
        )),
        io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => Error::failed(format!(
            "cannot write {path}: there is no room for more, raise the limit and try again"
        )),
        kind => Error::input(format!(
            "cannot write {path}: {}, choose a folder that takes new files",
            describe(&io::Error::from(kind))
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_bad_input() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            matches!(read(folder.path()), Err(Error::Input(text)) if text.contains("directory"))
        );
        let missing = folder.path().join("missing");
        assert!(matches!(read(&missing), Err(Error::Input(text)) if text.contains("no such")));
    }
}
