//! Files that appear under their name only when whole.

use std::io::{self, Write};
use std::path::Path;

use crate::files::NewFile;

/// Writes `bytes` to a file called `path`.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::keep`]; nothing stays behind then.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> io::Result<()> {
    let mut file = NewFile::create(path, replace)?;
    file.write_all(bytes)?;
    file.keep(replace)
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
