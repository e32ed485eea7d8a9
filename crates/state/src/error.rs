//! Why counters cannot be kept.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reasons why counters cannot be used. Each is displayed as one sentence with advice.
#[derive(Debug)]
pub enum Error {
    /// Another process has this file.
    InUse(PathBuf),
    /// Not a record, or not a whole one.
    Damaged(PathBuf),
    /// A record of a later version of this crate.
    Foreign(PathBuf, u32),
    /// A copy, or an older state, of the record that was written last.
    PutBack(PathBuf),
    /// The record does not exist, though one was written.
    Gone(PathBuf),
    /// The reservation to be stored is of an earlier key sequence than the stored one.
    Back(PathBuf),
    /// An error of the file system: the operation, the path, and the reason.
    Io(&'static str, PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "{} is in use: another process runs nodes with this key, end that one first",
                path.display()
            ),
            Self::Damaged(path) => write!(f, "{} is damaged, {REMEDY}", path.display()),
            Self::Foreign(path, version) => write!(
                f,
                "{} has version {version}, which a later Motet has written: run that one",
                path.display()
            ),
            Self::PutBack(path) => write!(
                f,
                "{} is a copy or an older state of what was written last, {REMEDY}",
                path.display()
            ),
            Self::Gone(path) => write!(
                f,
                "{} is missing, though it was written before, {REMEDY}",
                path.display()
            ),
            Self::Back(path) => write!(
                f,
                "{} holds a later key sequence than the one to be kept",
                path.display()
            ),
            Self::Io(what, path, error) => {
                write!(f, "cannot {what} {}: {}", path.display(), describe(error))
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, _, error) => Some(error),
            _ => None,
        }
    }
}

/// An I/O error without the operating system's number, in the middle of a sentence.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_lowercase);
    first.chain(chars).collect()
}

const REMEDY: &str = "and frame counters may have been used that it does not record: make another key \
     (motet keys new) and give it to all nodes";
