//! `cargo xtask fuzz`: libFuzzer over the targets of `crates/fuzz-targets`.
//!
//! Place: the fuzzer's own workspace is `fuzz`, which needs a nightly compiler. New inputs that
//! reach new code go to `fuzz/found`, which is not committed; inputs that fail go to
//! `fuzz/artifacts`. Left out: replaying the committed inputs, which `cargo test` does.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::Workspace;

/// Fuzzes `targets`, or each one there is, for `seconds` of one core's time each.
pub(crate) fn run(workspace: &Workspace, targets: &[String], seconds: u32) -> Result<bool> {
    let folder = workspace.root.join("fuzz");
    let known = target_names(workspace)?;
    if let Some(wrong) = targets.iter().find(|name| !known.contains(name)) {
        bail!(
            "there is no target `{wrong}`; there are {}",
            known.join(", ")
        );
    }
    let has_fuzz = Command::new("cargo")
        .args(["+nightly", "fuzz", "--version"])
        .output()
        .is_ok_and(|out| out.status.success());
    ensure!(
        has_fuzz,
        "cargo-fuzz is missing: `rustup toolchain install nightly`, `cargo install cargo-fuzz`"
    );
    let chosen = if targets.is_empty() { &known } else { targets };
    let mut found = Vec::new();
    for target in chosen {
        let more = folder.join("found").join(target);
        fs::create_dir_all(&more).with_context(|| format!("cannot make {}", more.display()))?;
        println!("{target}: {seconds} s");
        let status = Command::new("cargo")
            .args(["+nightly", "fuzz", "run", "--sanitizer=none", target])
            .arg(&more)
            .arg(folder.join("corpus").join(target))
            .args(["--", "-timeout=20", "-max_len=1200"])
            .arg(format!("-max_total_time={seconds}"))
            .current_dir(&folder)
            .status()
            .context("cannot run cargo-fuzz")?;
        if !status.success() {
            found.push(target.as_str());
        }
    }
    match found.is_empty() {
        true => println!("{} targets, nothing found", chosen.len()),
        false => println!("found something: {}", found.join(", ")),
    }
    Ok(found.is_empty())
}

/// Writes the seeds that the project's own emitters make into `fuzz/corpus`.
pub(crate) fn write_seeds(workspace: &Workspace) -> Result<bool> {
    let status = workspace
        .cargo("run")
        .args(["--quiet", "--package", "motet-fuzz-targets", "--"])
        .arg(workspace.root.join("fuzz").join("corpus"))
        .status()
        .context("cannot run the seeds' writer")?;
    Ok(status.success())
}

/// The targets: those with a corpus.
fn target_names(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root.join("fuzz").join("corpus");
    let entries =
        fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
