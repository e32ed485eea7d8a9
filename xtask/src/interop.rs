//! `cargo xtask interop`: foreign parts as judges of Motet.

use anyhow::{Context, Result};

use crate::Format;
use crate::check::locked;
use crate::provenance::heading;
use crate::tools;
use crate::workspace::Workspace;

/// A foreign part.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Peer {
    /// This machine's kernel, as a router of RPL's source routes and as a host beside a mesh
    Linux,
}

/// Runs every check with `peer`, those in real time included: a table, a page of it, or JSON alone
/// goes to stdout.
pub(crate) fn run(workspace: &Workspace, peer: Peer, format: Format) -> Result<bool> {
    let Peer::Linux = peer;
    tools::provide(workspace, tools::CLIENTS)?;
    if format == Format::Markdown {
        let command = "cargo xtask interop linux --markdown";
        let title = "Beside Linux";
        println!("{}\n```text", heading(workspace, title, command));
    }
    // The fast ones of these checks are a test of the command, and run with all others.
    let status = workspace
        .cargo("test")
        .args(["--quiet", "--package", "motet-cli", "--test", "linux"])
        .args(locked())
        .args(["--", "--live"])
        .args((format == Format::Json).then_some("--json"))
        .status()
        .context("cannot run cargo")?;
    if format == Format::Markdown {
        println!("```");
    }
    Ok(status.success())
}
