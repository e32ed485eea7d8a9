//! Symbols that do not depend on the checkout's folder, so that an image has one size everywhere.
//!
//! Symbols order an image's functions, and their order decides how many literal pools and how much
//! padding it needs. Cargo gives each package a number, `-C metadata`, that enters its symbols. The
//! number of a package outside the workspace that is built, as the stack is for the firmware, is
//! made of the package's absolute path. Cargo has no setting for it, so the images are built
//! with this command as `RUSTC_WRAPPER`: it puts in another number, made of what identifies the
//! package without its path.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode};
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::workspace::{Workspace, own_program};

/// Set where this program runs as the wrapper of rustc.
const WRAPPER: &str = "MOTET_RUSTC_WRAPPER";

/// Lets this program stand between a command of Cargo's and rustc.
///
/// # Errors
/// This program's own file cannot be found or copied.
pub(crate) fn without_paths<'c>(
    workspace: &Workspace,
    cargo: &'c mut Command,
) -> Result<&'c mut Command> {
    let wrapper = copy_of_this(&workspace.scratch()?)?;
    Ok(cargo.env("RUSTC_WRAPPER", wrapper).env(WRAPPER, "1"))
}

/// Copies this program while its file is still there.
///
/// A later step may build this program anew, and Cargo then puts another file in its place.
///
/// # Errors
/// This program's own file cannot be found or copied.
pub(crate) fn keep_this_program(workspace: &Workspace) -> Result<()> {
    copy_of_this(&workspace.scratch()?).map(drop)
}

/// A copy of this program, which stays where a build beside this one puts another in its place.
fn copy_of_this(folder: &Path) -> Result<PathBuf> {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = MADE.get() {
        return Ok(path.clone());
    }
    let here = own_program()?;
    let path = folder.join("rustc-wrapper");
    // Not written in place: another check may be running it.
    let new = folder.join(format!("rustc-wrapper-{}", process::id()));
    fs::copy(&here, &new)
        .and_then(|_| fs::rename(&new, &path))
        .with_context(|| format!("cannot copy {} to {}", here.display(), path.display()))?;
    Ok(MADE.get_or_init(|| path).clone())
}

/// Runs rustc with a number of its own where this program is its wrapper; none elsewhere.
pub(crate) fn run_as_wrapper() -> Option<ExitCode> {
    env::var_os(WRAPPER)?;
    let mut given = env::args_os().skip(1);
    let rustc = given.next()?;
    let arguments: Vec<_> = given.collect();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let status = Command::new(&rustc)
        .args(renumbered(&arguments, &version))
        .status();
    Some(match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("error: cannot run {}: {error}", rustc.display());
            ExitCode::FAILURE
        }
    })
}

/// The arguments of rustc with another `metadata=`, where they have one.
///
/// The number is made of the crate's name, kind and target, the package's version and the features.
/// Two crates of one build that agree in all of these would be the same crate twice.
fn renumbered(arguments: &[OsString], version: &str) -> Vec<OsString> {
    const NAMES_IT: [&str; 4] = ["--crate-name", "--crate-type", "--target", "--cfg"];
    let mut number = DefaultHasher::new();
    version.hash(&mut number);
    for (option, value) in arguments.iter().zip(arguments.iter().skip(1)) {
        if NAMES_IT.iter().any(|name| option == OsStr::new(name)) {
            (option, value).hash(&mut number);
        }
    }
    let metadata = OsString::from(format!("metadata={:016x}", number.finish()));
    arguments
        .iter()
        .map(|argument| {
            let is_it = argument
                .to_str()
                .is_some_and(|text| text.starts_with("metadata="));
            if is_it { &metadata } else { argument }.clone()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, number: &str, feature: &str) -> Vec<OsString> {
        let number = format!("metadata={number}");
        [
            "--crate-name",
            name,
            "--cfg",
            feature,
            "-C",
            &number,
            "a.rs",
        ]
        .map(OsString::from)
        .to_vec()
    }

    #[test]
    fn the_number_is_made_of_the_package_and_not_of_cargos() {
        let one = renumbered(&given("motet", "1a", "tcp"), "0.1.0");
        assert_eq!(one, renumbered(&given("motet", "2b", "tcp"), "0.1.0"));
        assert_ne!(one, given("motet", "1a", "tcp"));
        for other in [
            renumbered(&given("motet", "1a", "rpl"), "0.1.0"),
            renumbered(&given("node", "1a", "tcp"), "0.1.0"),
            renumbered(&given("motet", "1a", "tcp"), "0.2.0"),
        ] {
            assert_ne!(one[5], other[5]);
        }
    }

    #[test]
    fn other_arguments_stay_as_they_are() {
        let bare = ["-vV"].map(OsString::from);
        assert_eq!(renumbered(&bare, "0.1.0"), bare);
        let before = given("motet", "1a", "tcp");
        let after = renumbered(&before, "0.1.0");
        assert_eq!(after[..5], before[..5]);
        assert_eq!(after[6..], before[6..]);
    }
}
