//! Files read whole, and files that appear whole or not at all.

use std::{
    fs,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

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

/// A file being written under a temporary name beside its final one.
///
/// Dropping it without [`NewFile::keep`] removes it.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    overwrite: bool,
    writer: BufWriter<NamedTempFile>,
}

impl NewFile {
    /// Claims `path`: it must not exist (unless `overwrite`) and its folder must take files.
    ///
    /// # Errors
    /// [`Error::Input`] when it exists or cannot be written.
    pub(crate) fn create(path: &Path, overwrite: bool) -> Result<Self, Error> {
        if path.is_dir() {
            return Err(Error::input(format!(
                "{} is a directory, name a file",
                path.display()
            )));
        }
        if !overwrite && path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".motet-").suffix(".partial");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // As any new file: the umask decides.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(|error| {
            let error = io::Error::from(error.kind());
            Error::input(format!(
                "cannot write {}: {}, choose a folder that takes new files",
                path.display(),
                describe(&error)
            ))
        })?;
        Ok(Self {
            path: path.to_owned(),
            overwrite,
            writer: BufWriter::new(file),
        })
    }

    /// Gives the finished file its name.
    ///
    /// # Errors
    /// When the disk is full, or another file took the name meanwhile.
    pub(crate) fn keep(self) -> Result<(), Error> {
        let Self {
            path,
            overwrite,
            writer,
        } = self;
        let file = writer.into_inner().map_err(|error| {
            Error::failed(format!(
                "cannot write {}: {}",
                path.display(),
                describe(error.error())
            ))
        })?;
        let kept = if overwrite {
            file.persist(&path)
        } else {
            file.persist_noclobber(&path)
        };
        kept.map(drop).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(&path),
            _ => Error::failed(format!(
                "cannot write {}: {}",
                path.display(),
                describe(&error.error)
            )),
        })
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn exists(path: &Path) -> Error {
    Error::input(format!(
        "{} exists, name another file or allow overwriting with --force",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_appears_when_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("air.pcap");
        let mut file = NewFile::create(&path, false).unwrap();
        file.write_all(b"whole").unwrap();
        assert!(!path.exists());
        file.keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = NewFile::create(&folder.path().join("air.pcap"), false).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(entries(folder.path()), 0);
    }

    #[test]
    fn nothing_is_overwritten_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("air.pcap");
        fs::write(&path, b"old").unwrap();
        assert!(matches!(
            NewFile::create(&path, false),
            Err(Error::Input(_))
        ));
        NewFile::create(&path, true).unwrap().keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");

        // A file that takes the name while ours is being written wins, too.
        fs::remove_file(&path).unwrap();
        let late = NewFile::create(&path, false).unwrap();
        fs::write(&path, b"theirs").unwrap();
        assert!(matches!(late.keep(), Err(Error::Input(_))));
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(entries(folder.path()), 1);
    }
}
