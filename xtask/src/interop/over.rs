//! `cargo xtask interop over`: Motet's sockets above a driver of whole packets, beside embassy-net.
//!
//! `peers/over` has the checks, and prints their rows by itself: embassy-net is a dependency of
//! that workspace alone.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step::{essence, run_logged};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, locked};

/// Runs every check: a table, or JSON alone, goes to stdout.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        eprintln!("not everything is run: {advice}");
    }
    let mut build = workspace.peers_cargo("build");
    build.args(["--package", "motet-over"]).args(locked());
    let log = workspace.scratch()?.join("over-build.log");
    let (good, output) = run_logged(&mut build, &log)?;
    ensure!(good, "{}", essence(&output));
    let program = workspace.target.join("debug/motet-over");
    let status = Command::new(&program)
        .args(json.then_some("--json"))
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    Ok(status.success())
}

/// The servers of the clients' rows.
const NEEDS: &[Tool] = &[tools::MOSQUITTO, tools::PYTHON];
