//! `cargo xtask interop`: foreign parts as judges of Motet.

mod kernel;
mod openthread;
mod over;
mod rcp;
mod report;
mod thread_child;
mod wpan;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::Format;
use crate::provenance::heading;
use crate::python::environment;
use crate::tools;
use crate::workspace::{Workspace, locked};

/// A foreign part.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    /// This machine's kernel, as a router of RPL's source routes and as a host beside a mesh
    Linux,
    /// This machine's kernel beside the lab's host, as the far end of `motet send`
    Kernel,
    /// aiocoap, as the registrar of a mesh that a device wants to join
    Cojp,
    /// OpenThread's simulated radio co-processors, as the radios of a router and its motes
    Rcp,
    /// OpenThread below Motet's sockets, by the crate `openthread` on a simulated radio
    Openthread,
    /// embassy-net above the same driver, and Linux behind it, as neighbours of Motet's sockets
    Over,
    /// Linux's own IEEE 802.15.4, 6LoWPAN and TCP, in an emulator, as partners of a mote
    Wpan,
    /// OpenThread's routers and its border router, as the network of which a mote is a child;
    /// within twenty minutes
    ThreadChild,
}

/// Runs every check with `peer`, those in real time included: a table, a page of it, or JSON alone
/// goes to stdout.
///
/// `is_full`: those that take half an hour and more, too.
pub(crate) fn run(
    workspace: &Workspace,
    peer: Peer,
    is_full: bool,
    format: Format,
) -> Result<bool> {
    ensure!(
        !is_full || peer == Peer::ThreadChild,
        "only thread-child has checks that --full adds"
    );
    let (judge, title, name): (fn(&Workspace, bool) -> Result<bool>, _, _) = match peer {
        Peer::Linux => (linux, "Beside Linux", "linux"),
        Peer::Kernel => (kernel::run, "The lab's host beside the kernel", "kernel"),
        Peer::Cojp => (cojp, "Beside a registrar", "cojp"),
        Peer::Rcp => (rcp::run, "On OpenThread's radios", "rcp"),
        Peer::Openthread => (openthread::run, "Above OpenThread", "openthread"),
        Peer::Over => (over::run, "Above another stack", "over"),
        Peer::Wpan => (wpan::run, "Beside Linux's 6LoWPAN", "wpan"),
        Peer::ThreadChild if is_full => (
            |workspace, json| thread_child::run(workspace, json, true),
            "In a Thread network",
            "thread-child --full",
        ),
        Peer::ThreadChild => (
            |workspace, json| thread_child::run(workspace, json, false),
            "In a Thread network",
            "thread-child",
        ),
    };
    let is_page = format == Format::Markdown;
    if is_page {
        let command = format!("cargo xtask interop {name} --markdown");
        println!("{}\n```text", heading(workspace, title, &command));
    }
    let is_good = judge(workspace, format == Format::Json)?;
    if is_page {
        println!("```");
    }
    Ok(is_good)
}

/// The machine's kernel.
fn linux(workspace: &Workspace, json: bool) -> Result<bool> {
    tools::provide(workspace, tools::CLIENTS)?;
    // The fast ones of these checks are a test of the command, and run with all others.
    let status = workspace
        .cargo("test")
        .args(["--quiet", "--package", "motet-cli", "--test", "linux"])
        .args(locked())
        .args(["--", "--live"])
        .args(json.then_some("--json"))
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}

/// A registrar of other hands, which gives Motet's pledge the key of a network.
fn cojp(workspace: &Workspace, json: bool) -> Result<bool> {
    tools::provide(workspace, &[tools::PYTHON])?;
    let python = environment(workspace, "venv-cojp", REGISTRAR)?;
    let status = workspace
        .cargo("build")
        .args(["--quiet", "--package", "motet", "--features", "join"])
        .args(["--example", "pledge"])
        .args(locked())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the pledge does not build");
    // What the registrar remembers of an earlier run would make this one a recording.
    let folder = workspace.scratch()?.join("registrar");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let status = Command::new(python)
        .arg("-B")
        .arg(workspace.root.join("peers/cojp/registrar.py"))
        .arg(workspace.target.join("debug/examples/pledge"))
        .arg(&folder)
        .args(json.then_some("--json"))
        .status()
        .context("cannot run the registrar")?;
    Ok(status.success())
}

/// What the registrar is made of: CoAP with OSCORE, and what that needs.
const REGISTRAR: &[(&str, &str)] = &[
    ("aiocoap", "0.4.17"),
    ("cbor2", "6.3.0"),
    ("cryptography", "48.0.0"),
    ("filelock", "4.2.12"),
    ("ge25519", "2.0.0"),
    ("lakers-python", "0.6.2"),
];
