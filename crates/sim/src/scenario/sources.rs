//! Reading what a user or a scenario names: regular files of bounded length, or bytes that a
//! caller gave under such a name.
//!
//! A file may be anybody's: a device without an end, a pipe that nobody writes to, a name with
//! a line break in it. Each is refused in one sentence, before it costs memory or time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{ScenarioError, shown};
#[cfg(feature = "captures")]
use crate::files;

/// The format in which a file is read.
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

/// Matrices and traces that a caller gives as bytes: where there is no file system, or the bytes
/// come from elsewhere. A scenario names them as it names files; a name that is here is never
/// looked for on disk.
#[derive(Clone, Debug, Default)]
pub struct Files {
    named: BTreeMap<String, Arc<[u8]>>,
    recorded: BTreeMap<String, Result<Recorded, String>>,
}

/// Frames of IEEE 802.15.4, each with its FCS.
pub(super) type Recorded = Arc<[Box<[u8]>]>;

impl Files {
    /// No file: all are on disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the file of this name, in the place of one that was given before.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.named.insert(name.into(), bytes.into());
        self
    }

    /// Gives the frames of the capture of this name, which somebody else has read, each with its
    /// FCS; or why it cannot be read, in a sentence.
    #[must_use]
    pub fn with_frames(
        mut self,
        name: impl Into<String>,
        frames: Result<Vec<Box<[u8]>>, String>,
    ) -> Self {
        self.recorded.insert(name.into(), frames.map(Arc::from));
        self
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }
}

/// Where the files are that a scenario names.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScenarioFiles<'a> {
    /// The scenario's own folder.
    pub(super) folder: &'a Path,
    pub(super) given: &'a Files,
}

/// A file that a scenario names, as read.
#[derive(Debug)]
pub(super) struct Named<'a> {
    /// The name that errors call the file by.
    pub(super) file: PathBuf,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> ScenarioFiles<'a> {
    /// The frames of the capture that `key` names.
    ///
    /// # Errors
    /// One sentence: there is no such file, it is no capture, or one without such frames.
    pub(super) fn frames(&self, key: &str, name: &str) -> Result<Recorded, ScenarioError> {
        let read = || frames_of(&self.read(key, name)?.bytes);
        let given = self.given.recorded.get(name).cloned();
        let given = given.map(|frames| frames.map_err(ScenarioError::new));
        let within = |error: ScenarioError| error.within(&self.folder.join(name));
        let frames = match given {
            Some(frames) => frames.map_err(within)?,
            None => read().map_err(within)?,
        };
        match frames.is_empty() {
            true => Err(within(ScenarioError::new(
                "it holds no frame of IEEE 802.15.4",
            ))),
            false => Ok(frames),
        }
    }

    /// Reads the file that `key` names.
    ///
    /// # Errors
    /// One sentence: there is no such file, or it cannot be read.
    pub(super) fn read(&self, key: &str, name: &str) -> Result<Named<'a>, ScenarioError> {
        let file = self.folder.join(name);
        if let Some(bytes) = self.given.named.get(name) {
            if bytes.len() as u64 > Source::Data.len_max() {
                return Err(too_long(Source::Data).within(&file));
            }
            let bytes = Cow::Borrowed(&bytes[..]);
            return Ok(Named { file, bytes });
        }
        if !file.exists() {
            let (name, place) = (shown(name), file.display());
            return Err(ScenarioError::new(format!(
                "{key} is \"{name}\", but there is no such file: {place}"
            )));
        }
        let bytes = Cow::Owned(read_bytes(&file, Source::Data)?);
        Ok(Named { file, bytes })
    }
}

#[cfg(feature = "captures")]
fn frames_of(bytes: &[u8]) -> Result<Recorded, ScenarioError> {
    let mut plain = Vec::new();
    let read = files::plain(bytes).and_then(|mut trace| trace.read_to_end(&mut plain));
    read.map_err(|error| ScenarioError::new(error.to_string()))?;
    let frames = motet_decode::mac_frames(plain);
    let frames = frames.map_err(|error| ScenarioError::new(error.to_string()))?;
    Ok(frames.into())
}

#[cfg(not(feature = "captures"))]
fn frames_of(_: &[u8]) -> Result<Recorded, ScenarioError> {
    Err(ScenarioError::new("this build reads no captures"))
}

impl Named<'_> {
    /// The text of the file.
    ///
    /// # Errors
    /// One sentence: it is none.
    pub(super) fn text(&self) -> Result<&str, ScenarioError> {
        let text = std::str::from_utf8(&self.bytes);
        text.map_err(|_| ScenarioError::new(NO_TEXT).within(&self.file))
    }
}

/// Reads a file of text.
///
/// # Errors
/// One sentence with the file's name, as [`read_bytes`].
pub(super) fn read_text(file: &Path, source: Source) -> Result<String, ScenarioError> {
    let text = String::from_utf8(read_bytes(file, source)?);
    text.map_err(|_| ScenarioError::new(NO_TEXT).within(file))
}

fn too_long(source: Source) -> ScenarioError {
    ScenarioError::new(format!(
        "this is longer than {} MiB",
        source.len_max() >> 20
    ))
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
    // The length of some files is known only after they have been read to the end.
    let read = File::open(file).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
    read.map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(too_long(source).within(file));
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

const NO_TEXT: &str = "not text in UTF-8";
