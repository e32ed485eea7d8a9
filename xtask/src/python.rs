//! The Python package: built without optimisation for size, installed, and tested beside the
//! command.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step::{StepOutcome, essence, run_logged};
use crate::tools;
use crate::workspace::{Workspace, linted, locked};

/// Makes the environment in which the package is built and judged.
pub(crate) fn make_ready(workspace: &Workspace) -> Result<()> {
    tools::provide(workspace, &[tools::PYTHON])?;
    environment(workspace, "venv-python", &PACKAGES).map(drop)
}

/// Builds the command and a wheel, installs the wheel, and lets pytest judge.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    tools::provide(workspace, &[tools::PYTHON])?;
    let scratch = workspace.scratch()?;
    let motet = workspace.debug_motet()?;
    let python = environment(workspace, "venv-python", &PACKAGES)?;
    let wheel = wheel(workspace, &python)?;
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--no-index"])
        .args(["--no-deps", "--force-reinstall"])
        .arg(&wheel);
    must(&mut install, &scratch.join("python-install.log"))?;
    if let Some(wrong) = types(workspace, &python)? {
        return Ok(wrong);
    }
    let mut pytest = Command::new(&python);
    // Nothing is written beside the sources.
    pytest
        .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .current_dir(workspace.root.join("python"))
        .env("MOTET", motet);
    let (good, output) = run_logged(&mut pytest, &scratch.join("pytest.log"))?;
    let said = output.lines().last().unwrap_or_default().to_owned();
    Ok(StepOutcome::single(good, said, output))
}

/// What mypy finds wrong with the package's types, or with stubs beside what they are of.
fn types(workspace: &Workspace, python: &Path) -> Result<Option<StepOutcome>> {
    let scratch = workspace.scratch()?;
    let folder = workspace.root.join("python");
    let configured = folder.join("pyproject.toml");
    let source = folder.join("package/motet");
    let cache = workspace.target.join("mypy");
    let mut checker = Command::new(python);
    checker.args(["-m", "mypy", "--python-version", "3.10", "--config-file"]);
    checker.arg(&configured).arg("--cache-dir").arg(&cache);
    checker.arg(&source);
    let mut stubs = Command::new(python);
    stubs.args(["-m", "mypy.stubtest", "--mypy-config-file"]);
    stubs.arg(&configured).arg("motet._motet");
    // Beside the sources, the package without its library would be found.
    stubs.current_dir(&scratch);
    for (command, log) in [(&mut checker, "mypy.log"), (&mut stubs, "stubtest.log")] {
        let (good, output) = run_logged(command, &scratch.join(log))?;
        if !good {
            let said = "the package's types are wrong".to_owned();
            return Ok(Some(StepOutcome::single(false, said, output)));
        }
    }
    Ok(None)
}

/// Builds the wheel of these sources, and judges their Rust.
fn wheel(workspace: &Workspace, python: &Path) -> Result<PathBuf> {
    let folder = workspace.scratch()?.join("wheels");
    // What an older version left there would be found, too.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut maturin = Command::new(python);
    // Wheels for others are made, measured and tried by `cargo xtask release`; this one stays here.
    maturin
        .args(["-m", "maturin", "build", "--quiet"])
        .args(["--auditwheel", "skip"])
        .args(locked())
        .arg("--out")
        .arg(&folder)
        .current_dir(workspace.root.join("python"))
        .env("CARGO_TARGET_DIR", &workspace.target);
    must(
        linted(&mut maturin),
        &workspace.scratch()?.join("maturin.log"),
    )?;
    let mut made = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(Result::ok);
    let wheel = made.next().context("maturin made no wheel")?;
    Ok(wheel.path())
}

/// Python with these packages, in an environment of that name that is made once for these versions.
pub(crate) fn environment(
    workspace: &Workspace,
    name: &str,
    packages: &[(&str, &str)],
) -> Result<PathBuf> {
    let pinned = packages
        .iter()
        .map(|(name, version)| format!("{name}=={version}"));
    let pinned: Vec<_> = pinned.collect();
    // What was installed for one Python another one does not find.
    let version = Command::new("python3").arg("--version").output();
    let mut hasher = DefaultHasher::new();
    (&pinned, version.context("cannot run python3")?.stdout).hash(&mut hasher);
    let name_of_set = format!("{name}-{:016x}", hasher.finish());
    let folder = tools::once(workspace, &name_of_set, |folder| {
        let log = workspace.scratch()?.join(format!("{name}.log"));
        let mut make = Command::new("python3");
        must(make.args(["-m", "venv"]).arg(folder), &log)
            .context("install Python's venv: `apt-get install python3-venv`")?;
        let mut install = Command::new(folder.join("bin/python"));
        install
            .args(["-m", "pip", "install", "--quiet"])
            .args(&pinned);
        must(&mut install, &log).context("pip needs the Python Package Index")
    })?;
    Ok(folder.join("bin/python"))
}

/// Runs a command without which there is no verdict.
fn must(command: &mut Command, log: &Path) -> Result<()> {
    let (good, output) = run_logged(command, log)?;
    ensure!(good, "{command:?} failed:\n{}", essence(&output));
    Ok(())
}

/// What builds the package, what judges it, what it hands its tables to, and what runs its sweeps
/// and notebooks.
const PACKAGES: [(&str, &str); 11] = [
    ("maturin", "1.16.0"),
    ("pytest", "9.2.0"),
    ("mypy", "2.4.1"),
    ("pyarrow", "26.0.1"),
    ("pandas", "3.1.1"),
    ("pandas-stubs", "3.1.0.261029"),
    ("polars", "2.1.0"),
    ("distributed", "2026.8.0"),
    ("nbclient", "0.11.0"),
    ("ipykernel", "7.4.0"),
    ("matplotlib", "3.11.2"),
];
