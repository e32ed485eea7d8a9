//! Files that the user named: one to read whole, one to write a capture to.

use std::{fs, io, path::Path};

use motet_lab::capture::{Capture, Records};

use crate::{error::Error, output::describe};

/// Reads the file a user named.
///
/// # Errors
/// [`Error::Input`] when it is missing, unreadable or no file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if fs::metadata(path).is_ok_and(|meta| meta.is_dir()) {
        return Err(Error::input(format!(
            "{} is a directory, name a file",
            path.display()
        )));
    }
    fs::read(path).map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => ", check the path",
            io::ErrorKind::PermissionDenied => ", check its permissions",
            _ => "",
        };
        Error::input(format!(
            "cannot read {}: {}{advice}",
            path.display(),
            describe(&error)
        ))
    })
}

/// Begins a capture of the air that will be called `path` once it is whole; dropping it
/// leaves nothing behind.
///
/// # Errors
/// [`Error::Input`] when `path` exists (unless `replace`) or its folder takes no new file.
pub(crate) fn create_capture(path: &Path, replace: bool) -> Result<Capture, Error> {
    if path.is_dir() {
        return Err(Error::input(format!(
            "{} is a directory, name a file",
            path.display()
        )));
    }
    Capture::create(path, Records::Frames, replace).map_err(|error| write_error(path, &error))
}

/// Gives a finished capture its name.
///
/// # Errors
/// When the disk is full, or another file took the name meanwhile.
pub(crate) fn keep_capture(capture: Capture, path: &Path, replace: bool) -> Result<(), Error> {
    capture
        .finish(replace)
        .map_err(|error| write_error(path, &error))
}

/// Why a file cannot be written, and what to do.
pub(crate) fn write_error(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => Error::input(format!(
            "{path} exists, name another file or allow overwriting with --force"
        )),
        io::ErrorKind::StorageFull => Error::failed(format!(
            "cannot write {path}: the disk is full, make room and try again"
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

    #[test]
    fn a_capture_appears_when_kept_and_a_dropped_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let entries = || fs::read_dir(folder.path()).unwrap().count();
        let path = folder.path().join("air.pcap");
        drop(create_capture(&path, false).unwrap());
        assert_eq!(entries(), 0);
        let capture = create_capture(&path, false).unwrap();
        assert!(!path.exists());
        keep_capture(capture, &path, false).unwrap();
        assert!(path.exists());
        assert!(matches!(create_capture(&path, false), Err(Error::Input(_))));
        assert_eq!(entries(), 1);
    }
}
