//! `cargo xtask interop openthread`: Motet's sockets above OpenThread, by the crate `openthread`.
//!
//! OpenThread is built twice: its border router, radio and motes as for `cargo xtask thread`, and
//! within the mote of `peers/over`. `peers/thread` makes the network and the rows.

use anyhow::{Context, Result, bail, ensure};

use crate::step::{essence, run_logged};
use crate::thread::{as_anybody, openthread};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, locked};

/// Runs every check: a table, or JSON alone, goes to stdout.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        bail!("{advice}");
    }
    let programs = openthread(workspace)?;
    let mut network = workspace.peers_cargo("build");
    network.args(["--package", "motet-thread"]).args(locked());
    let mut mote = workspace.peers_cargo("build");
    mote.args(["--package", "motet-over", "--features", "openthread"])
        .args(locked());
    let log = workspace.scratch()?.join("openthread-build.log");
    for build in [&mut network, &mut mote] {
        let (good, output) = run_logged(build, &log)?;
        ensure!(good, "{}", essence(&output));
    }
    let folder = workspace.target.join("debug");
    let status = as_anybody(&folder.join("motet-thread"))
        .arg("over")
        .arg("--openthread")
        .arg(programs)
        .arg("--mote")
        .arg(folder.join("motet-over"))
        .args(json.then_some("--json"))
        .status()
        .context("cannot run the checks")?;
    Ok(status.success())
}

const NEEDS: &[Tool] = &[
    tools::CLANG,
    tools::CMAKE,
    tools::NINJA,
    tools::CXX,
    tools::IP,
];
