//! `cargo xtask apps`: crates that others wrote for async firmware, on motes in the lab.
//!
//! Never a part of the check: it builds dozens of crates that the product does not need. The sizes of
//! images for devices ([`crate::devices`]) are among its lines.

use anyhow::{Context, Result};

use crate::check::locked;
use crate::devices;
use crate::workspace::Workspace;

/// Builds the applications and runs them; their lines go to stdout.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    let mut cargo = workspace.apps_cargo("run");
    cargo
        .args(["--quiet", "--package", "motet-apps"])
        .args(locked());
    cargo.arg("--").args(json.then_some("--json"));
    let status = cargo.status().context("cannot run cargo")?;
    let mut all_pass = status.success();
    for row in devices::measure(workspace)? {
        all_pass &= row.print(json);
    }
    Ok(all_pass)
}
