//! The Python package: built as its users get it, installed, and tested beside the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::step::{Verdict, essence, run_logged};
use crate::tools;
use crate::workspace::{Workspace, locked};

/// Builds the command and the wheel, installs the wheel, and lets pytest judge.
pub(crate) fn check(workspace: &Workspace) -> Result<Verdict> {
    tools::provide(workspace, &[tools::PYTHON, tools::ADVZIP])?;
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
    let python = environment(workspace, "venv-python", &PACKAGES)?;
    let wheel = wheel(workspace, &python)?;
    // As it is released, where the tool for that is there.
    if tools::absent(&[tools::ADVZIP]).is_none() {
        tools::pack_again(workspace, &wheel)?;
    }
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
        .env("CARGO_TARGET_DIR", &workspace.target);
    let (good, output) = run_logged(&mut pytest, &scratch.join("pytest.log"))?;
    let said = output.lines().last().unwrap_or_default().to_owned();
    let size = fs::metadata(&wheel)?.len() as f64 / 1e6;
    let verdict = if size <= WHEEL_MB {
        "reached"
    } else {
        "MISSED"
    };
    let said = format!("{said}; the wheel has {size:.2} MB of {WHEEL_MB}: {verdict}");
    Ok(Verdict::single(good, said, output))
}

/// What mypy finds wrong with the package's types, or with stubs beside what they are of.
fn types(workspace: &Workspace, python: &Path) -> Result<Option<Verdict>> {
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
            return Ok(Some(Verdict::single(false, said, output)));
        }
    }
    Ok(None)
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
        .args(["--auditwheel", "skip", "--compression-level", "9"])
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

/// Python with these packages, in an environment of that name that is made once for these versions.
pub(crate) fn environment(
    workspace: &Workspace,
    name: &str,
    packages: &[(&str, &str)],
) -> Result<PathBuf> {
    let folder = workspace.target.join(name);
    let python = folder.join("bin/python");
    let names: Vec<_> = packages
        .iter()
        .map(|(name, _)| format!("m.version('{name}')"))
        .collect();
    let versions = format!("import importlib.metadata as m; print({})", names.join(","));
    let found = Command::new(&python)
        .args(["-c", &versions])
        .stderr(Stdio::null())
        .output();
    let wanted: Vec<_> = packages.iter().map(|(_, version)| *version).collect();
    let wanted = wanted.join(" ");
    if found.is_ok_and(|found| found.stdout.trim_ascii() == wanted.as_bytes()) {
        return Ok(python);
    }
    let log = workspace.scratch()?.join(format!("{name}.log"));
    let mut make = Command::new("python3");
    must(make.args(["-m", "venv"]).arg(&folder), &log)?;
    let mut install = Command::new(&python);
    let pinned = packages
        .iter()
        .map(|(name, version)| format!("{name}=={version}"));
    install
        .args(["-m", "pip", "install", "--quiet"])
        .args(pinned);
    must(&mut install, &log).context("pip needs the Python Package Index")?;
    Ok(python)
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

/// How large a wheel may be, MB.
const WHEEL_MB: f64 = 1.5;
