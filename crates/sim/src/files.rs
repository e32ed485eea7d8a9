//! Files that appear under their name only when whole, and files that may be zipped.
//!
//! Purpose: whatever ends a run half way, an old file stays as it was and no half file is
//! left. Written beside the name, so that naming it is one step on the same file system.

use std::io::{self, Write};
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
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when `path` exists and not `replace`;
    /// [`io::ErrorKind::InvalidInput`] when it is a folder, a device or a pipe, whose place
    /// no file may take; what the file system says when nothing can be written beside it.
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

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when another file took the name meanwhile and not
    /// `replace`; what the file system says. Nothing stays behind then.
    pub fn keep(self, replace: bool) -> io::Result<()> {
        let named = if replace {
            self.file.persist(&self.path)
        } else {
            self.file.persist_noclobber(&self.path)
        };
        named.map(drop).map_err(|error| error.error)
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

/// How a line begins: enough to find it by, and short enough for a sentence.
pub(crate) fn beginning(line: &str) -> String {
    match line.trim().char_indices().nth(LINE_SHOWN) {
        Some((end, _)) => format!("{}…", &line.trim()[..end]),
        None => line.trim().to_owned(),
    }
}

/// Characters of a broken line that an error shows.
const LINE_SHOWN: usize = 40;

/// A file's plain bytes: traces are published gzipped, and may be kept so. Ends with an error
/// behind [`PLAIN_LEN_MAX`] bytes, for a small file may unzip to any length.
pub(crate) fn unzipped(bytes: &[u8]) -> impl io::Read + '_ {
    let plain: Box<dyn io::Read + '_> = match bytes {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::GzDecoder::new(bytes)),
        _ => Box::new(bytes),
    };
    Bounded {
        plain,
        left: PLAIN_LEN_MAX,
    }
}

struct Bounded<R> {
    plain: R,
    left: usize,
}

impl<R: io::Read> io::Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.plain.read(into)?;
        self.left = self.left.checked_sub(read).ok_or_else(|| {
            let most = PLAIN_LEN_MAX >> 20;
            io::Error::other(format!("it is longer than {most} MiB unzipped"))
        })?;
        Ok(read)
    }
}

/// Plain bytes of a trace, which bound the length of a line and what is kept of it; the
/// published ones have five million.
const PLAIN_LEN_MAX: usize = 64 << 20;

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
}
