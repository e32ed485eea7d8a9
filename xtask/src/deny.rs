//! `cargo deny`: licences, sources and advisories of the dependencies, by deny.toml.

use std::process::Command;

use anyhow::Result;

use crate::step::{StepOutcome, run_logged};
use crate::tools;
use crate::workspace::Workspace;

/// Builds cargo-deny, once on this machine.
pub(crate) fn make_ready(workspace: &Workspace) -> Result<()> {
    tools::cargo_deny(workspace).map(drop)
}

/// Licences, banned crates and registries.
pub(crate) fn check_licences(workspace: &Workspace) -> Result<StepOutcome> {
    let (good, output) = deny(workspace, &["bans", "licenses", "sources"])?;
    Ok(StepOutcome::single(good, "", output))
}

/// Known vulnerabilities. The database is fetched; where it cannot be reached no verdict is
/// given, in continuous integration either: that is the network's failure, not the code's.
pub(crate) fn check_advisories(workspace: &Workspace) -> Result<StepOutcome> {
    let (good, output) = deny(workspace, &["advisories"])?;
    if !good && output.contains("failed to fetch advisory database") {
        let note = "not judged: the advisory database cannot be reached";
        return Ok(StepOutcome {
            passed: 0,
            failed: 0,
            note: note.to_owned(),
            output,
            ..StepOutcome::default()
        });
    }
    Ok(StepOutcome::single(good, "", output))
}

/// Runs the named checks on the product, the firmware, the applications, the radios by vendors'
/// drivers, the Python package and the live page.
fn deny(workspace: &Workspace, checks: &[&str]) -> Result<(bool, String)> {
    let program = tools::cargo_deny(workspace)?;
    let log = workspace.scratch()?.join("deny.log");
    let (mut good, mut output) = (true, String::new());
    for manifest in [
        "Cargo.toml",
        "firmware/Cargo.toml",
        "apps/Cargo.toml",
        "chips/Cargo.toml",
        "python/Cargo.toml",
        "web/Cargo.toml",
    ] {
        let mut command = Command::new(&program);
        // deny.toml is found where it runs.
        command
            .current_dir(&workspace.root)
            .args(["--color", "never", "--manifest-path", manifest, "check"])
            .args(checks);
        let (this_good, this_output) = run_logged(&mut command, &log)?;
        good &= this_good;
        output.push_str(&this_output);
    }
    Ok((good, output))
}
