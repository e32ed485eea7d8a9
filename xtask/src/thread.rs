//! `cargo xtask thread`: OpenThread's border router and its motes behind `motet router`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::Format;
use crate::provenance::heading;
use crate::step::{StepOutcome, count_tests, essence, run_logged};
use crate::tools::{self, Tool};
use crate::workspace::{Workspace, in_ci, locked};

/// Builds what is needed and runs every check: a table, a page of it, or JSON alone goes to stdout.
pub(crate) fn run(workspace: &Workspace, format: Format) -> Result<bool> {
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        bail!("{advice}");
    }
    let mut command = program(workspace)?;
    let is_page = format == Format::Markdown;
    if is_page {
        let title = "Beside OpenThread";
        let command = "cargo xtask thread --markdown";
        println!("{}\n```text", heading(workspace, title, command));
    }
    command.args((format == Format::Json).then_some("--json"));
    let status = command.status().context("cannot run the checks")?;
    if is_page {
        println!("```");
    }
    Ok(status.success())
}

/// Builds OpenThread, once on this machine.
pub(crate) fn make_ready(workspace: &Workspace) -> Result<()> {
    tools::provide(workspace, NEEDS)?;
    openthread(workspace).map(drop)
}

/// The same as a step of the check.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let mut output = tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        output.push_str(&advice);
        let note = format!("not run: {advice}");
        return Ok(StepOutcome::single(!in_ci(), note, output));
    }
    let log = workspace.scratch()?.join("thread.log");
    let (good, printed) = run_logged(&mut program(workspace)?, &log)?;
    let count = count_tests(&printed);
    let failed = if good {
        count.failed
    } else {
        count.failed.max(1)
    };
    Ok(StepOutcome {
        passed: count.passed,
        failed,
        note: format!("{} passed, {failed} failed", count.passed),
        output: essence(&printed),
        ..StepOutcome::default()
    })
}

/// What builds OpenThread, and what makes networks and rules.
const NEEDS: &[Tool] = &[
    tools::CMAKE,
    tools::NINJA,
    tools::CXX,
    tools::IP,
    tools::IP6TABLES,
];

/// The command that runs the checks, with everything built that it needs.
fn program(workspace: &Workspace) -> Result<Command> {
    let openthread = openthread(workspace)?;
    let scratch = workspace.scratch()?;
    let motet = workspace.debug_motet()?;
    let mut checks = workspace.peers_cargo("build");
    checks.args(["--package", "motet-thread"]).args(locked());
    let (good, output) = run_logged(&mut checks, &scratch.join("thread-build.log"))?;
    ensure!(good, "{}", essence(&output));
    let mut command = as_anybody(&workspace.target.join("debug/motet-thread"));
    command
        .arg("check")
        .arg("--openthread")
        .arg(openthread)
        .arg("--motet")
        .arg(motet);
    Ok(command)
}

/// `program`, without the rights of root: as uid 0 of a user namespace, which any user may make,
/// and in a space of processes of its own, so that no radio of OpenThread's outlives it. A machine
/// that forbids those runs it as it is.
pub(crate) fn as_anybody(program: &Path) -> Command {
    const ANYBODY: [&str; 7] = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--",
    ];
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(ANYBODY);
        command
    };
    let is_allowed = unshare()
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if is_allowed {
        let mut command = unshare();
        command.arg(program);
        command
    } else {
        Command::new(program)
    }
}

/// One of OpenThread's two builds.
struct Build {
    folder: &'static str,
    settings: &'static [&'static str],
    targets: &'static [&'static str],
}

const BUILDS: &[Build] = &[
    Build {
        folder: "simulation",
        settings: &[
            "-DOT_PLATFORM=simulation",
            "-DOT_TCP=ON",
            "-DOT_FTD=ON",
            "-DOT_MTD=OFF",
            "-DOT_RCP=ON",
        ],
        targets: &["ot-cli-ftd", "ot-rcp"],
    },
    // With TCP on, the host itself would take the connections.
    Build {
        folder: "posix",
        settings: &[
            "-DOT_PLATFORM=posix",
            "-DOT_DAEMON=ON",
            "-DOT_TCP=OFF",
            "-DOT_BORDER_ROUTER=ON",
        ],
        targets: &["ot-daemon", "ot-ctl"],
    },
];

/// The folder of OpenThread's programs: built once for each version of its sources.
pub(crate) fn openthread(workspace: &Workspace) -> Result<PathBuf> {
    let package = package(workspace)?;
    let name = format!("openthread-{}", package.version);
    tools::once(workspace, &name, |folder| {
        let sources = package.manifest_path.with_file_name("openthread");
        ensure!(sources.is_dir(), "{} is not there", sources.display());
        let log = workspace.scratch()?.join("openthread.log");
        for build in BUILDS {
            let place = folder.join(build.folder);
            let configure = &mut configure(&sources, &place, build);
            let compile = &mut Command::new("ninja");
            compile.arg("-C").arg(&place).args(build.targets);
            for command in [configure, compile] {
                let (good, output) = run_logged(command, &log)?;
                ensure!(good, "{output}\nOpenThread does not build: see above");
            }
        }
        Ok(())
    })
}

fn configure(sources: &Path, place: &Path, build: &Build) -> Command {
    let mut command = Command::new("cmake");
    command
        .args(["-GNinja", "-S"])
        .arg(sources)
        .arg("-B")
        .arg(place)
        .args(build.settings)
        .args([
            "-DOT_APP_NCP=OFF",
            "-DOT_THREAD_VERSION=1.4",
            "-DOT_COMPILE_WARNING_AS_ERROR=OFF",
            "-DBUILD_TESTING=OFF",
            "-DCMAKE_BUILD_TYPE=Release",
            // It computes little, and takes the compiler half the time of the usual -O3.
            "-DCMAKE_C_FLAGS_RELEASE=-O1",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
        ]);
    command
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// The crate that carries OpenThread's sources, as peers/Cargo.lock names it, fetched.
fn package(workspace: &Workspace) -> Result<Package> {
    let output = workspace
        .peers_cargo("metadata")
        .args(["--format-version=1", "--locked"])
        .output()
        .context("cannot run `cargo metadata`")?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")?;
    let mut packages = metadata.packages.into_iter();
    packages
        .find(|package| package.name == "openthread-sys")
        .context("peers/Cargo.lock names no openthread-sys")
}
