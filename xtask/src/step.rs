//! One step of the check: a command or a function, its verdict and its output.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// What a step gives.
pub(crate) struct Verdict {
    /// Checks that held; a step without tests of its own counts as one.
    pub(crate) passed: u32,
    /// Checks that did not.
    pub(crate) failed: u32,
    /// A few words beside the step's name.
    pub(crate) note: String,
    /// What to show when something failed.
    pub(crate) output: String,
}

impl Verdict {
    /// The verdict of a step that is one check.
    pub(crate) fn single(good: bool, note: impl Into<String>, output: impl Into<String>) -> Self {
        Self {
            passed: u32::from(good),
            failed: u32::from(!good),
            note: note.into(),
            output: output.into(),
        }
    }
}

/// Runs `command` with both its streams going into the file `log`, in the order written.
///
/// Gives whether it succeeded, and all it printed.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<(bool, String)> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("cannot run `{}`", command.get_program().display()))?;
    let output = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    Ok((
        status.success(),
        String::from_utf8_lossy(&output).into_owned(),
    ))
}
