//! `cargo xtask mutants`: changes the code where a fault would hurt most, and asks whether a test
//! notices.
//!
//! Place: cargo-mutants plants the changes, one build each, in a copy of the checkout. A change
//! that no test notices is a test that lacks, or a line that does nothing. Left out of `check`: the
//! whole takes more than a day on two cores, so `--shard` takes a part.

use std::process::Command;

use anyhow::{Context, Result};

use crate::tools;
use crate::workspace::Workspace;

/// Plants the changes in `files`, or in all that `.cargo/mutants.toml` names; `shard`: the part K/N
/// of them.
///
/// Gives whether the tests noticed each change.
pub(crate) fn run(workspace: &Workspace, files: &[String], shard: Option<&str>) -> Result<bool> {
    let program = tools::cargo_tool(workspace, "cargo-mutants", "27.1.0")?;
    let mut command = Command::new(program);
    command
        .args(["mutants", "--package", "motet", "--all-features"])
        .arg("--output")
        .arg(workspace.scratch()?)
        .current_dir(&workspace.root);
    command.args(files.iter().flat_map(|file| ["--file", file.as_str()]));
    command.args(shard.iter().flat_map(|part| ["--shard", part]));
    let status = command
        .args(["--", "--lib"])
        .status()
        .context("cannot run cargo-mutants")?;
    Ok(status.success())
}
