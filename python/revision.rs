//! Finds the commit that a package is built from, for build scripts.
//!
//! The same in the command and in the Python package, as `cargo xtask check tidy` sees to: each
//! package holds all that it is built from. Left out: trees without git; each script decides for
//! itself what those are called.

use std::path::Path;
use std::process::Command;

/// Ends the name of a commit that files differ from.
pub(crate) const CHANGED: &str = " with changes";

/// The commit in so many digits, and [`CHANGED`] where one of `sources` differs from it. Nothing
/// without git, and nothing for a copy of the package inside somebody else's repository.
///
/// The script runs again whenever HEAD moves or one of `sources` changes.
pub(crate) fn of(sources: &[&str], digits: usize) -> Option<String> {
    for path in sources.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // Git appends a line there whenever HEAD moves; the path is relative to the package.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let head = git(&["rev-parse", &format!("--short={digits}"), "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--"], sources].concat());
    let mark = match changed.as_deref() {
        Some("") => "",
        _ => CHANGED,
    };
    Some(format!("{head}{mark}"))
}

/// What git prints, without its line end; `None` where it is missing or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
