//! `cargo xtask ble-peers`: foreign hosts of Bluetooth LE as judges of Motet's.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::check::{essence, locked};
use crate::step::{Verdict, run_logged};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, in_ci};

/// Moves 100 kB each way with every peer and in every role: a table, or JSON alone, goes to stdout.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        bail!("{advice}");
    }
    let mut command = judge(workspace)?;
    command.args(json.then_some("--json"));
    let status = command.status().context("cannot run the judge")?;
    Ok(status.success())
}

/// The same as a step of the check.
pub(crate) fn check(workspace: &Workspace) -> Result<Verdict> {
    let output = tools::provide(workspace, NEEDS)?;
    let not_run = |why: String| {
        let note = format!("not run: {why}");
        Verdict::single(!in_ci(), note, format!("{output}{why}\n"))
    };
    if let Some(advice) = tools::absent(NEEDS) {
        return Ok(not_run(advice));
    }
    if let Err(error) = python(workspace) {
        return Ok(not_run(format!("{error:#}")));
    }
    let log = workspace.scratch()?.join("ble-peers.log");
    let (good, printed) = run_logged(judge(workspace)?.arg("--json"), &log)?;
    // Lossless: a handful.
    let passed = printed.matches("\"pass\": true").count() as u32;
    let failed = printed.matches("\"pass\": false").count() as u32;
    let failed = failed.max(u32::from(!good));
    Ok(Verdict {
        passed,
        failed,
        note: format!("{passed} passed, {failed} failed"),
        output: printed,
    })
}

/// What runs bumble, and what makes networks.
const NEEDS: &[Tool] = &[tools::PYTHON, tools::UNSHARE, tools::IP];

/// The command that judges, in a network of its own, with everything built that it needs.
fn judge(workspace: &Workspace) -> Result<Command> {
    let python = python(workspace)?;
    let mut motet = workspace.cargo("build");
    motet.args(["--package", "motet-cli"]).args(locked());
    let log = workspace.scratch()?.join("ble-peers-build.log");
    let (good, output) = run_logged(&mut motet, &log)?;
    ensure!(good, "{}", essence(&output));
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--net", "--"])
        .arg(python)
        .arg(workspace.root.join("peers/ble/bumble_peer.py"))
        .arg("--motet")
        .arg(workspace.target.join("debug/motet"));
    Ok(command)
}

/// Python with bumble, in an environment that is made once for each version.
fn python(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("venv");
    let python = folder.join("bin/python");
    let version = "import importlib.metadata as m; print(m.version('bumble'))";
    let found = Command::new(&python)
        .args(["-c", version])
        .stderr(Stdio::null())
        .output();
    if found.is_ok_and(|found| found.stdout.trim_ascii() == BUMBLE.as_bytes()) {
        return Ok(python);
    }
    let log = workspace.scratch()?.join("venv.log");
    let make = &mut Command::new("python3");
    make.args(["-m", "venv"]).arg(&folder);
    let install = &mut Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet"])
        .arg(format!("bumble=={BUMBLE}"));
    for (command, advice) in [
        (
            make,
            "install Python's venv: `apt-get install python3-venv`",
        ),
        (install, "pip needs the Python Package Index"),
    ] {
        let (good, output) = run_logged(command, &log)?;
        ensure!(good, "bumble cannot be installed: {advice}\n{output}");
    }
    Ok(python)
}

/// The version whose quirks the judge knows.
const BUMBLE: &str = "0.0.236";
