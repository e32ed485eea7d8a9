//! `typos`: words that are misspelt in sources and texts, by typos.toml.

use std::process::Command;

use anyhow::Result;

use crate::step::{StepOutcome, run_logged};
use crate::workspace::Workspace;
use crate::{python, tools};

/// Looks at every file that git tracks, or would.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    tools::provide(workspace, &[tools::PYTHON])?;
    let python = python::environment(workspace, "venv-typos", &PACKAGES)?;
    let mut command = Command::new(python.with_file_name("typos"));
    // typos.toml is found where it runs.
    command
        .current_dir(&workspace.root)
        .args(["--color", "never", "--format", "brief"]);
    let log = workspace.scratch()?.join("typos.log");
    let (good, output) = run_logged(&mut command, &log)?;
    Ok(StepOutcome::single(good, "", output))
}

/// The wheel of the Python Package Index carries the program: to build it takes minutes.
const PACKAGES: [(&str, &str); 1] = [("typos", "1.52.0")];
