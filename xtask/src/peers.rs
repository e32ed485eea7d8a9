//! `cargo xtask peers`: Motet beside TCPlp, smoltcp and lwIP, alone and as the motes of a crowd;
//! and that they still understand it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::Format;
use crate::footprint;
use crate::provenance::heading;
use crate::step::{StepOutcome, count_tests, essence, run_logged};
use crate::tools;
use crate::workspace::{Workspace, locked};

/// A comparison that is not among the others.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Debug)]
pub(crate) enum Part {
    /// Crowds of these stacks behind Motet's border router, and of Motet's motes beside them
    Crowd,
}

/// Builds the comparison at full optimisation and runs it: its tables, a page of them, or JSON
/// alone, go to stdout.
pub(crate) fn run(workspace: &Workspace, format: Format, quick: bool) -> Result<bool> {
    // Where valgrind is missing and cannot be installed, the program itself prints what to do.
    tools::provide(workspace, &[tools::VALGRIND])?;
    let footprints = footprint::measure(workspace)?;
    let program = build(workspace)?;
    if format == Format::Markdown {
        begin_page(workspace, "Beside TCPlp, smoltcp and lwIP", "", quick);
    }
    let is_well = call(&program, format, quick, None)?;
    footprint::print(&footprints, format == Format::Json);
    if format == Format::Markdown {
        println!("```");
    }
    Ok(is_well)
}

/// The same for crowds.
pub(crate) fn run_crowd(workspace: &Workspace, format: Format, quick: bool) -> Result<bool> {
    let program = build(workspace)?;
    if format == Format::Markdown {
        let title = "Motes of other stacks behind the border router";
        begin_page(workspace, title, " crowd", quick);
    }
    let is_well = call(&program, format, quick, Some("crowd"))?;
    if format == Format::Markdown {
        println!("```");
    }
    Ok(is_well)
}

/// The program that compares, built at full optimisation.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let built = workspace
        .peers_cargo("build")
        .args(["--release", "--quiet"])
        .args(locked())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the peers do not build: see above");
    Ok(workspace.target.join("release/motet-peers"))
}

/// Prints the head of a page of tables. `part`: the argument that asks for it, behind a space.
fn begin_page(workspace: &Workspace, title: &str, part: &str, quick: bool) {
    let quick = if quick { " --quick" } else { "" };
    let command = format!("cargo xtask peers{part} --markdown{quick}");
    println!("{}\n```text", heading(workspace, title, &command));
}

/// Runs the program; returns whether it met no error.
fn call(program: &Path, format: Format, quick: bool, part: Option<&str>) -> Result<bool> {
    let status = std::process::Command::new(program)
        .args((format == Format::Json).then_some("--json"))
        .args(quick.then_some("--quick"))
        .args(part)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    Ok(status.success())
}

/// TCPlp's core and lwIP compile, every pair of stacks exchanges its bytes, and the lints hold.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let scratch = workspace.scratch()?;
    let mut clippy = workspace.peers_cargo("clippy");
    clippy
        .args(["--workspace", "--all-targets"])
        .args(locked())
        .args(["--", "-D", "warnings"]);
    let (lints_hold, mut output) = run_logged(&mut clippy, &scratch.join("peers-clippy.log"))?;
    let mut test = workspace.peers_cargo("test");
    test.args(["--workspace", "--no-fail-fast"]).args(locked());
    let (tests_hold, tests) = run_logged(&mut test, &scratch.join("peers.log"))?;
    output.push_str(&tests);
    let count = count_tests(&tests);
    let failed = count.failed + u32::from(!lints_hold || !tests_hold && count.failed == 0);
    Ok(StepOutcome {
        passed: count.passed,
        failed,
        note: format!("{} passed, {failed} failed", count.passed),
        output: essence(&output),
        ..StepOutcome::default()
    })
}
