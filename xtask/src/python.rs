//! The Python package: built as its users get it, installed, and tested beside the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::check::{essence, locked};
use crate::step::{Verdict, run_logged};
use crate::tools;
use crate::workspace::Workspace;

/// Builds the command and the wheel, installs the wheel, and lets pytest judge.
pub(crate) fn check(workspace: &Workspace) -> Result<Verdict> {
    tools::provide(workspace, &[tools::PYTHON])?;
    let scratch = workspace.scratch()?;
    let mut clippy = workspace.python_cargo("clippy");
    // As the wheel is built, so that both compile the same once.
    clippy.arg("--release").args(locked());
    must(
        clippy.args(["--", "-D", "warnings"]),
        &scratch.join("python-clippy.log"),
    )?;
    let mut motet = workspace.cargo("build");
    motet
        .args(["--release", "--package", "motet-cli"])
        .args(locked());
    must(&mut motet, &scratch.join("python-command.log"))?;
    let python = environment(workspace)?;
    let wheel = wheel(workspace, &python)?;
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--no-index"])
        .args(["--no-deps", "--force-reinstall"])
        .arg(&wheel);
    must(&mut install, &scratch.join("python-install.log"))?;
    let mut pytest = Command::new(&python);
    // Nothing is written beside the sources.
    pytest
        .args(["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .current_dir(workspace.root.join("python"))
        .env("CARGO_TARGET_DIR", &workspace.target);
    let (good, output) = run_logged(&mut pytest, &scratch.join("pytest.log"))?;
    let said = output.lines().last().unwrap_or_default().to_owned();
    Ok(Verdict::single(good, said, output))
}

/// Builds the wheel of these sources.
fn wheel(workspace: &Workspace, python: &Path) -> Result<PathBuf> {
    let folder = workspace.scratch()?.join("wheels");
    // What an older version left there would be found, too.
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut maturin = Command::new(python);
    // Wheels for others are made where the oldest C library is; this one stays here.
    maturin
        .args(["-m", "maturin", "build", "--release", "--quiet"])
        .args(["--auditwheel", "skip"])
        .args(locked())
        .arg("--out")
        .arg(&folder)
        .current_dir(workspace.root.join("python"))
        .env("CARGO_TARGET_DIR", &workspace.target);
    must(&mut maturin, &workspace.scratch()?.join("maturin.log"))?;
    let mut made = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(Result::ok);
    let wheel = made.next().context("maturin made no wheel")?;
    Ok(wheel.path())
}

/// Python with what builds and judges the package, in an environment that is made once for these versions.
fn environment(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("venv-python");
    let python = folder.join("bin/python");
    let names = PACKAGES.map(|(name, _)| format!("m.version('{name}')"));
    let versions = format!("import importlib.metadata as m; print({})", names.join(","));
    let found = Command::new(&python)
        .args(["-c", &versions])
        .stderr(Stdio::null())
        .output();
    let wanted = PACKAGES.map(|(_, version)| version).join(" ");
    if found.is_ok_and(|found| found.stdout.trim_ascii() == wanted.as_bytes()) {
        return Ok(python);
    }
    let log = workspace.scratch()?.join("venv-python.log");
    let mut make = Command::new("python3");
    must(make.args(["-m", "venv"]).arg(&folder), &log)?;
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet"])
        .args(PACKAGES.map(|(name, version)| format!("{name}=={version}")));
    must(&mut install, &log).context("pip needs the Python Package Index")?;
    Ok(python)
}

/// Runs a command without which there is no verdict.
fn must(command: &mut Command, log: &Path) -> Result<()> {
    let (good, output) = run_logged(command, log)?;
    ensure!(good, "{command:?} failed:\n{}", essence(&output));
    Ok(())
}

/// What builds the package, what judges it, and what it hands its tables to.
const PACKAGES: [(&str, &str); 5] = [
    ("maturin", "1.16.0"),
    ("pytest", "9.2.0"),
    ("pyarrow", "26.0.1"),
    ("pandas", "3.1.1"),
    ("polars", "2.1.0"),
];
