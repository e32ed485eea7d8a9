//! Says which revision the program is built from: `MOTET_REVISION`, for pages of measurements, and
//! `MOTET_VERSION`, the version with it.
//!
//! Without git, or outside the project's own repository, nothing is set; the program then gives
//! its version.

use std::path::Path;
use std::process::Command;

/// What a measured figure depends on, from this folder.
const SOURCES: [&str; 5] = [
    "src",
    "../sim/src",
    "../stack/src",
    "../border-router/src",
    "../../Cargo.lock",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for path in SOURCES.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    // A copy of this package inside somebody else's repository is not at that one's revision.
    if git(&["ls-files", "--error-unmatch", "build.rs"]).is_none() {
        return;
    }
    // Git appends a line there whenever HEAD moves; the path is relative to this folder.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let Some(head) = git(&["rev-parse", "--short", "HEAD"]) else {
        return;
    };
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(SOURCES);
    let changed = git(&status).is_none_or(|files| !files.is_empty());
    let mark = if changed { " with changes" } else { "" };
    println!("cargo::rustc-env=MOTET_REVISION={head}{mark}");
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=MOTET_VERSION={version} ({head}{mark})");
}

/// What git prints, without its line end; `None` where it is missing or fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
