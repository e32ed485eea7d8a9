//! `cargo xtask ble-peers`: foreign hosts of Bluetooth LE as judges of Motet's.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::ble_linux;
use crate::python::environment;
use crate::step::{StepOutcome, run_logged};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, in_ci};

/// Moves 100 kB each way with every peer and in every role: a table, or JSON alone, goes to stdout.
/// `tcple`: the mote offers it to each.
pub(crate) fn run(workspace: &Workspace, json: bool, tcple: bool) -> Result<bool> {
    let mut is_good = true;
    for peer in PEERS.iter().filter(|peer| !(tcple && peer.tcple)) {
        tools::provide(workspace, peer.needs)?;
        if let Some(advice) = tools::absent(peer.needs) {
            bail!("{advice}");
        }
        let mut command = judge(workspace, peer, parts(workspace, peer)?)?;
        command.args(json.then_some("--json"));
        command.args(tcple.then_some("--tcple"));
        let status = command.status().context("cannot run the judge")?;
        is_good &= status.success();
    }
    Ok(is_good)
}

/// Fetches the peers, once on this machine.
pub(crate) fn make_ready(workspace: &Workspace) -> Result<()> {
    for peer in PEERS {
        tools::provide(workspace, peer.needs)?;
        parts(workspace, peer)?;
    }
    Ok(())
}

/// The same as a step of the check.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let mut sum = StepOutcome {
        passed: 0,
        failed: 0,
        note: String::new(),
        output: String::new(),
        ..StepOutcome::default()
    };
    let mut notes = Vec::new();
    for peer in PEERS {
        let outcome = check_one(workspace, peer)?;
        sum.passed += outcome.passed;
        sum.failed += outcome.failed;
        notes.push(format!("{}: {}", peer.name, outcome.note));
        sum.output.push_str(&outcome.output);
    }
    sum.note = notes.join("; ");
    Ok(sum)
}

fn check_one(workspace: &Workspace, peer: &Peer) -> Result<StepOutcome> {
    let output = tools::provide(workspace, peer.needs)?;
    let not_run = |why: String| {
        let note = format!("not run: {why}");
        StepOutcome::single(!in_ci(), note, format!("{output}{why}\n"))
    };
    if let Some(advice) = tools::absent(peer.needs) {
        return Ok(not_run(advice));
    }
    let parts = match parts(workspace, peer) {
        Ok(parts) => parts,
        Err(error) => return Ok(not_run(format!("{error:#}"))),
    };
    let mut command = judge(workspace, peer, parts)?;
    let log = workspace
        .scratch()?
        .join(format!("ble-peers-{}.log", peer.script));
    let (good, printed) = run_logged(command.arg("--json"), &log)?;
    // Lossless: a handful.
    let passed = printed.matches("\"pass\": true").count() as u32;
    let failed = printed.matches("\"pass\": false").count() as u32;
    let failed = failed.max(u32::from(!good));
    Ok(StepOutcome {
        passed,
        failed,
        note: format!("{passed} passed, {failed} failed"),
        output: printed,
        ..StepOutcome::default()
    })
}

/// A foreign host of Bluetooth LE.
struct Peer {
    name: &'static str,
    needs: &'static [Tool],
    /// In peers/ble.
    script: &'static str,
    /// Whether the mote offers it, which no peer knows.
    tcple: bool,
    /// What the script is told beside what every one is told.
    arguments: fn(&Workspace) -> Result<Vec<OsString>>,
}

const PEERS: &[Peer] = &[
    Peer {
        name: "bumble",
        needs: &[tools::PYTHON, tools::UNSHARE, tools::IP],
        script: "bumble_peer.py",
        arguments: |_| Ok(Vec::new()),
        tcple: false,
    },
    Peer {
        name: "bumble, with TCPlE",
        needs: &[tools::PYTHON, tools::UNSHARE, tools::IP],
        script: "bumble_peer.py",
        arguments: |_| Ok(Vec::new()),
        tcple: true,
    },
    Peer {
        name: "linux",
        needs: ble_linux::NEEDS,
        script: "linux_peer.py",
        arguments: |workspace| {
            Ok(vec![
                "--parts".into(),
                ble_linux::parts(workspace)?.into(),
                "--attach".into(),
                ble_linux::attach(workspace)?.into(),
            ])
        },
        tcple: false,
    },
];

/// What others made that a judge needs.
struct Parts {
    python: PathBuf,
    arguments: Vec<OsString>,
}

/// Fetches what is not there yet.
fn parts(workspace: &Workspace, peer: &Peer) -> Result<Parts> {
    Ok(Parts {
        python: environment(workspace, "venv-bumble", &[("bumble", BUMBLE)])?,
        arguments: (peer.arguments)(workspace)?,
    })
}

/// The command that judges, in a network of its own, once the mote is built.
fn judge(workspace: &Workspace, peer: &Peer, parts: Parts) -> Result<Command> {
    let motet = workspace.debug_motet()?;
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--net", "--"])
        .arg(parts.python)
        .arg(workspace.root.join("peers/ble").join(peer.script))
        .arg("--motet")
        .arg(motet)
        .args(parts.arguments)
        .args(peer.tcple.then_some("--tcple"));
    Ok(command)
}

/// The version whose quirks the judge knows.
const BUMBLE: &str = "0.0.236";
