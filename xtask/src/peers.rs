//! `cargo xtask peers`: Motet beside TCPlp, smoltcp and lwIP; and that they still understand it.

use anyhow::{Context, Result, ensure};

use crate::Format;
use crate::footprint;
use crate::provenance::heading;
use crate::step::{StepOutcome, count_tests, essence, run_logged};
use crate::tools;
use crate::workspace::{Workspace, locked};

/// Builds the comparison at full optimisation and runs it: its tables, a page of them, or JSON
/// alone, go to stdout.
pub(crate) fn run(workspace: &Workspace, format: Format, quick: bool) -> Result<bool> {
    // Where valgrind is missing and cannot be installed, the program itself prints what to do.
    tools::provide(workspace, &[tools::VALGRIND])?;
    let footprints = footprint::measure(workspace)?;
    let built = workspace
        .peers_cargo("build")
        .args(["--release", "--quiet"])
        .args(locked())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the peers do not build: see above");
    let program = workspace.target.join("release/motet-peers");
    let is_page = format == Format::Markdown;
    if is_page {
        let quick = if quick { " --quick" } else { "" };
        let command = format!("cargo xtask peers --markdown{quick}");
        let title = "Beside TCPlp, smoltcp and lwIP";
        println!("{}\n```text", heading(workspace, title, &command));
    }
    let json = format == Format::Json;
    let status = std::process::Command::new(&program)
        .args(json.then_some("--json"))
        .args(quick.then_some("--quick"))
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    footprint::print(&footprints, json);
    if is_page {
        println!("```");
    }
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
