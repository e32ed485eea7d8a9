//! One seed, one air: a debug and a release build write the same capture, byte for byte.
//!
//! Whether one build repeats itself is tested in `crates/cli/tests/command/determinism.rs`. Two
//! builds that agree rule out what optimisation may change: overflow that wraps where debug builds
//! panic, and floating point in another order.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{Verdict, run_logged};
use crate::workspace::Workspace;

/// Commands that use the whole stack, losses and both directions of data included; each
/// prints a report for programs and leaves the air in [`CAPTURE`]. `@` is the project's folder.
const RUNS: [&[&str]; 3] = [
    &[
        "send",
        "@/LICENSE-APACHE",
        "--virtual",
        "--json",
        "--frame-loss=0.05",
        "--seed=7",
    ],
    &[
        "send",
        "@/LICENSE-APACHE",
        "--virtual",
        "--json",
        "--direction=down",
        "--packet-loss=0.05",
    ],
    &[
        "run",
        "@/scenarios/services.toml",
        "--duration=30",
        "--json=-",
    ],
];

/// The file that each run leaves in its folder.
const CAPTURE: &str = "air.pcap";

/// Builds the command twice, lets both run the same in virtual time, and compares.
pub(crate) fn check(workspace: &Workspace) -> Result<Verdict> {
    let mut airs = Vec::new();
    for (name, build) in BUILDS {
        match airs_of(workspace, name, &build(workspace)?)? {
            Ok(air) => airs.push(air),
            Err(output) => return Ok(Verdict::single(false, "", output)),
        }
    }
    let same = airs.windows(2).all(|pair| pair.first() == pair.last());
    Ok(Verdict::single(
        same,
        "",
        "motet send and motet run: debug and release builds wrote different captures or reports, see xtask/determinism in the target folder",
    ))
}

/// What builds the command, and gives where it is.
type Build = fn(&Workspace) -> Result<PathBuf>;

/// The name of each build, and the build.
const BUILDS: [(&str, Build); 2] = [
    ("debug", Workspace::debug_motet),
    ("release", Workspace::release_motet),
];

/// The reports and captures of all runs by one build, or the reason why there are none.
fn airs_of(
    workspace: &Workspace,
    name: &str,
    binary: &Path,
) -> Result<std::result::Result<Vec<Vec<u8>>, String>> {
    let scratch = workspace.scratch()?.join("determinism").join(name);
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;
    let mut airs = Vec::new();
    for arguments in RUNS {
        let capture = scratch.join(CAPTURE);
        let (good, report) = run(workspace, binary, &scratch, arguments)?;
        if !good {
            return Ok(Err(report));
        }
        airs.push(report.into_bytes());
        airs.push(fs::read(&capture).with_context(|| format!("no {}", capture.display()))?);
    }
    Ok(Ok(airs))
}

/// Runs one of the commands; gives whether that worked, and all it printed.
fn run(
    workspace: &Workspace,
    binary: &Path,
    scratch: &Path,
    arguments: &[&str],
) -> Result<(bool, String)> {
    let root = workspace.root.display().to_string();
    let arguments = arguments.iter().map(|text| text.replacen('@', &root, 1));
    let mut command = Command::new(binary);
    command
        .current_dir(scratch)
        .args(arguments)
        // The path, being part of some reports, has to be the same for both.
        .args(["--force", "--pcap", CAPTURE]);
    run_logged(&mut command, &scratch.join("run.log"))
}
