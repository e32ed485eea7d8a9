//! Files that appear under their name only when whole, or only with whole records.
//!
//! Purpose: if a run is interrupted, the old file stays unchanged, and no half-written file is
//! left. A new file is written in the same folder under a temporary name, so that renaming it is
//! one atomic step.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file being written; dropped before [`NewFile::keep`], it leaves nothing behind.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file that will be called `path`, with the permissions that any new file has.
    /// Folders that are missing are made.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when `path` exists and `replace` is false;
    /// [`io::ErrorKind::InvalidInput`] when it is a folder, a device or a pipe, which no file may
    /// replace; other errors of the file system when no file can be created in the folder.
    pub fn create(path: &Path, replace: bool) -> io::Result<Self> {
        if path.metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        if !replace && path.symlink_metadata().is_ok() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        // A link stays one, and what it leads to is replaced; a name that is free is itself.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder)?;
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".motet-");
        // Temporary files are their owner's alone; this one is not temporary. The umask
        // takes away from it what it takes from other files.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        Ok(Self {
            file: builder.tempfile_in(folder.unwrap_or(Path::new(".")))?,
            path,
        })
    }

    /// Renames the temporary file to its final name.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when a file of that name has appeared and `replace` is
    /// false; other errors of the file system. After an error no temporary file is left.
    pub fn keep(self, replace: bool) -> io::Result<()> {
        let named = if replace {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        named.map(drop).map_err(|error| error.error)
    }
}

/// Writes `bytes` to a file called `path`.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::keep`]; nothing stays behind then.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    let mut file = NewFile::create(path, replace)?;
    file.write_all(bytes)?;
    file.keep(replace)
}

/// A file that grows by records under its name, for whoever follows it.
///
/// Its first record gives it the name: a run that ends before leaves nothing, and an old file
/// of that name as it was. Each record is there, whole, as soon as it is written. A process
/// that is killed leaves all records up to then.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    /// Until it has its name.
    unnamed: Option<NewFile>,
    replace: bool,
    /// Length of the head and the whole records, bytes.
    len: u64,
}

impl RecordFile {
    /// Begins a file that will be called `path`, and writes `head`, the bytes before its first
    /// record.
    ///
    /// # Errors
    /// As [`NewFile::create`]; an error of writing `head`.
    pub fn create(path: &Path, replace: bool, head: &[u8]) -> io::Result<Self> {
        let mut new = NewFile::create(path, replace)?;
        new.write_all(head)?;
        Ok(Self {
            file: new.file.as_file().try_clone()?,
            unnamed: Some(new),
            replace,
            len: head.len() as u64,
        })
    }

    /// Appends a record. With the first record the file appears under its name.
    ///
    /// # Errors
    /// As [`NewFile::keep`]; an error of writing, after which no part of the record is left in the
    /// file.
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(record) {
            // The part that there was room for.
            self.file.set_len(self.len)?;
            self.file.seek(SeekFrom::Start(self.len))?;
            return Err(error);
        }
        self.len += record.len() as u64;
        self.name()
    }

    /// Ends the file, which has its name now, with or without records.
    ///
    /// # Errors
    /// As [`NewFile::keep`].
    pub fn finish(mut self) -> io::Result<()> {
        self.name()
    }

    fn name(&mut self) -> io::Result<()> {
        let unnamed = self.unnamed.take();
        unnamed.map_or(Ok(()), |new| new.keep(self.replace))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary folder")
    }

    #[test]
    fn nothing_is_overwritten_or_left_behind() {
        let folder = folder();
        let entries = || fs::read_dir(folder.path()).unwrap().count();
        let path = folder.path().join("file");
        let mut file = NewFile::create(&path, false).unwrap();
        file.write_all(b"one").unwrap();
        assert!(!path.exists());
        file.keep(false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");

        let refused = NewFile::create(&path, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        drop(NewFile::create(&path, true).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        let mut file = NewFile::create(&path, true).unwrap();
        file.write_all(b"two").unwrap();
        file.keep(true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(entries(), 1);
    }

    #[test]
    fn a_file_of_records_can_be_followed_and_has_only_whole_ones() {
        let folder = folder();
        let entries = || fs::read_dir(folder.path()).unwrap().count();
        let path = folder.path().join("file");
        drop(RecordFile::create(&path, false, b"head").unwrap());
        assert_eq!(entries(), 0, "nothing came of it");
        let mut file = RecordFile::create(&path, false, b"head").unwrap();
        assert!(!path.exists(), "there is no record to follow");
        file.append(b" one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"head one");
        assert_eq!(entries(), 1);
        file.append(b" two").unwrap();
        // What a killed process does not do any more.
        std::mem::forget(file);
        assert_eq!(fs::read(&path).unwrap(), b"head one two");

        let mut new = RecordFile::create(&path, true, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"head one two", "until then");
        new.append(b" one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new one");
        new.finish().unwrap();
        let empty = folder.path().join("empty");
        let file = RecordFile::create(&empty, false, b"head").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(&empty).unwrap(), b"head");
    }

    #[test]
    fn a_name_taken_meanwhile_is_left_alone() {
        let folder = folder();
        let path = folder.path().join("file");
        let file = NewFile::create(&path, false).unwrap();
        fs::write(&path, b"theirs").unwrap();
        let refused = file.keep(false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// As root a rename would put a file in the place of /dev/null.
    #[test]
    fn folders_and_devices_keep_their_place() {
        let folder = folder();
        let mut taken = vec![folder.path()];
        if cfg!(unix) {
            taken.push(Path::new("/dev/null"));
        }
        for path in taken {
            for replace in [false, true] {
                let refused = NewFile::create(path, replace).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path:?}");
            }
        }
    }

    /// /dev/stdout is one, and may lead to a regular file.
    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = folder();
        let [link, path] = ["link", "file"].map(|name| folder.path().join(name));
        fs::write(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let refused = NewFile::create(&link, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let mut file = NewFile::create(&link, true).unwrap();
        file.write_all(b"new").unwrap();
        file.keep(true).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_permissions_of_any_other() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = folder();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        let [ours, other] = ["ours", "other"].map(|name| folder.path().join(name));
        NewFile::create(&ours, false).unwrap().keep(false).unwrap();
        fs::write(&other, b"").unwrap();
        assert_eq!(mode(&ours), mode(&other));
    }

    #[test]
    fn nothing_is_overwritten_unasked() {
        let folder = folder();
        let path = folder.path().join("report.html");
        write_file(&path, b"one", false).unwrap();
        let refused = write_file(&path, b"two", false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_file(&path, b"two", true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
