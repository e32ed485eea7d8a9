//! A step of the check: the crates for devices build with the oldest Rust that they say they need.
//!
//! Place: each of them says it in its Cargo.toml (`rust-version`), which may be less than the
//! toolchain of this workspace; `rustup` fetches that compiler once. Left out: their tests, which
//! need what this workspace's newer crates need.

use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result};

use crate::step::{StepOutcome, essence, run_logged};
use crate::tools;
use crate::workspace::{Workspace, in_ci, locked};

/// The crates that firmware depends on, with the features that a device may want.
const CRATES: [(&str, &[&str]); 4] = [
    ("motet", &["--all-features"]),
    ("motet-embassy", &[]),
    ("motet-c", &[]),
    ("motet-nrf", &[]),
];

/// A device that all of them build for.
const TARGET: &str = "thumbv7em-none-eabihf";

/// Fetches the compilers, once on this machine.
pub(crate) fn make_ready(workspace: &Workspace) -> Result<()> {
    for (name, _) in CRATES {
        if let Some(version) = workspace.package(name)?.rust_version.as_deref() {
            provide(workspace, version)?;
        }
    }
    Ok(())
}

/// Every crate of [`CRATES`] builds with the compiler that it names.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    if tools::find("rustup").is_none() {
        let note = "rustup not found: it fetches older compilers";
        return Ok(StepOutcome::single(!in_ci(), note, ""));
    }
    let mut notes = Vec::new();
    for (name, features) in CRATES {
        let version = workspace.package(name)?.rust_version.as_deref();
        let version =
            version.with_context(|| format!("{name} does not say which Rust it needs"))?;
        if !provide(workspace, version)? {
            let note = format!("not judged: rustup cannot fetch Rust {version}");
            return Ok(StepOutcome {
                passed: 0,
                failed: 0,
                note,
                output: String::new(),
                ..StepOutcome::default()
            });
        }
        let (good, output) = build(workspace, version, name, features)?;
        if !good {
            let output = format!(
                "{}\n{name} does not build with Rust {version}",
                essence(&output)
            );
            return Ok(StepOutcome::single(false, "", output));
        }
        notes.push(format!("{name} {version}"));
    }
    Ok(StepOutcome::single(true, notes.join(", "), ""))
}

/// Whether that compiler is here, after fetching it where it is not. One that cannot be fetched
/// gives no verdict, as with advisories: that is the network's failure, not the code's.
fn provide(workspace: &Workspace, version: &str) -> Result<bool> {
    // One fetches, others wait: of two rustups that install the same compiler one fails.
    static FETCHING: Mutex<()> = Mutex::new(());
    let _alone = FETCHING.lock();
    let mut targets = rustup(workspace);
    targets.args(["target", "list", "--installed", "--toolchain", version]);
    let log = workspace.scratch()?.join("oldest.log");
    let (good, output) = run_logged(&mut targets, &log)?;
    if good && output.lines().any(|line| line.trim() == TARGET) {
        return Ok(true);
    }
    let mut install = rustup(workspace);
    install.args(["toolchain", "install", version, "--profile", "minimal"]);
    install.args(["--target", TARGET, "--no-self-update"]);
    Ok(run_logged(&mut install, &log)?.0)
}

fn build(
    workspace: &Workspace,
    version: &str,
    package: &str,
    features: &[&str],
) -> Result<(bool, String)> {
    let log = workspace.scratch()?.join("oldest.log");
    let mut check = rustup(workspace);
    check
        .args(["run", version, "cargo", "check", "--package", package])
        .args(features)
        .args(["--target", TARGET])
        .args(locked())
        .env("CARGO_TARGET_DIR", workspace.target.join("oldest"))
        .env("CARGO_TERM_COLOR", "never");
    run_logged(&mut check, &log)
}

/// `rustup`, without what the Cargo that runs this has set for its own compiler.
pub(crate) fn rustup(workspace: &Workspace) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(&workspace.root);
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}
