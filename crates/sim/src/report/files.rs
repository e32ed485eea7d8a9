//! Files that appear under their name only when whole.

use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes `bytes` to a file called `path`.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when `path` exists and may not be replaced; what the
/// file system says when nothing can be written beside it. Nothing stays behind then.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    if !replace && path.symlink_metadata().is_ok() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    open_to_all(&file)?;
    let named = if replace {
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    named.map(drop).map_err(|error| error.error)
}

/// Temporary files are their owner's alone; results are for everybody to read.
#[cfg(unix)]
fn open_to_all(file: &NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(permissions)
}

#[cfg(not(unix))]
fn open_to_all(_: &NamedTempFile) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_overwritten_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_file(&path, b"one", false).unwrap();
        let refused = write_file(&path, b"two", false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        write_file(&path, b"two", true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
