//! Reading what a user or a scenario names: regular files of bounded length.
//!
//! A file may be anybody's: a device without an end, a pipe that nobody writes to, a name with
//! a line break in it. Each is refused in one sentence, before it costs memory or time.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use super::error::ScenarioError;

/// What a file is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The scenario itself, which may come through a pipe: `motet run <(make-scenario)`.
    Scenario,
    /// A matrix or a trace that a scenario names: every point of a sweep reads it anew, so that
    /// no pipe will do.
    Data,
}

impl Source {
    /// Bytes that such a file has at most.
    const fn len_max(self) -> u64 {
        match self {
            Self::Scenario => 16 << 20,
            Self::Data => 256 << 20,
        }
    }
}

/// Reads a file of text.
///
/// # Errors
/// One sentence with the file's name, as [`read_bytes`].
pub(super) fn read_text(file: &Path, source: Source) -> Result<String, ScenarioError> {
    let text = String::from_utf8(read_bytes(file, source)?);
    text.map_err(|_| ScenarioError::new("not text in UTF-8").within(file))
}

/// Reads a file.
///
/// # Errors
/// One sentence with the file's name: it is missing, unreadable, no file, or too long.
pub(super) fn read_bytes(file: &Path, source: Source) -> Result<Vec<u8>, ScenarioError> {
    let failed = |error: io::Error| {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "no such file, check the path",
            io::ErrorKind::PermissionDenied => "not readable, check its permissions",
            _ => "cannot be read",
        };
        ScenarioError::new(reason).within(file)
    };
    let refused = |why: String| Err(ScenarioError::new(why).within(file));
    // Before it is opened: opening a pipe waits for a writer.
    let metadata = fs::metadata(file).map_err(failed)?;
    if metadata.is_dir() {
        return refused("this is a directory, name a file".to_owned());
    }
    let is_readable = match source {
        Source::Scenario => metadata.is_file() || is_pipe(&metadata),
        Source::Data => metadata.is_file(),
    };
    if !is_readable {
        return refused("this is a device or a pipe, name a regular file".to_owned());
    }
    let most = source.len_max();
    let mut bytes = Vec::new();
    // Some files tell their length only to those who read on.
    let read = File::open(file).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(failed)?;
    if bytes.len() as u64 > most {
        return refused(format!("this is longer than {} MiB", most >> 20));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn is_pipe(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    metadata.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &Metadata) -> bool {
    false
}
