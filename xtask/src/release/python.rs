//! The Python package: a wheel for each kind of machine, and the sources, from which others build
//! one.
//!
//! Zig links the wheels against a C library as old as most machines have, and maturin checks that
//! nothing newer is asked for. pip installs and builds what was made: it is judged as its users get
//! it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use tar::Archive;

use super::{Release, contents, line};
use crate::apps::Line;
use crate::python::environment;
use crate::tools;
use crate::workspace::locked;

/// A machine that a wheel is for.
struct Wheel {
    /// As Debian names it.
    architecture: &'static str,
    /// As Rust names it.
    target: &'static str,
}

const WHEELS: [Wheel; 2] = [
    Wheel {
        architecture: "amd64",
        target: "x86_64-unknown-linux-gnu",
    },
    Wheel {
        architecture: "arm64",
        target: "aarch64-unknown-linux-gnu",
    },
];

/// Makes the wheels and the package of sources, and tries both.
pub(super) fn make(release: &Release<'_>) -> Result<Vec<Line>> {
    let python = environment(release.workspace, "venv-release", &PACKAGES)?;
    let mut lines = Vec::new();
    for wheel in &WHEELS {
        let path = wheel.build(release, &python)?;
        lines.extend(wheel.judge(release, &python, &path)?);
    }
    lines.extend(sources(release, &python)?);
    Ok(lines)
}

impl Wheel {
    fn build(&self, release: &Release<'_>, python: &Path) -> Result<PathBuf> {
        let mut rustup = Command::new("rustup");
        rustup.args(["target", "add", self.target]);
        rustup.current_dir(&release.workspace.root);
        release.run(&mut rustup)?;
        let mut maturin = maturin(release, python)?;
        maturin
            .args(["build", "--release", "--zig", "--compression-level", "9"])
            .args(["--compatibility", C_LIBRARY, "--target", self.target])
            .args(locked())
            .arg("--out")
            .arg(&release.folder);
        release.run(&mut maturin)?;
        let machine = self.target.split('-').next().unwrap_or_default();
        let path = made(&release.folder, &format!("{C_LIBRARY}_{machine}.whl"))?;
        tools::pack_again(release.workspace, &path)?;
        Ok(path)
    }

    fn judge(&self, release: &Release<'_>, python: &Path, path: &Path) -> Result<Vec<Line>> {
        let bytes = fs::metadata(path)?.len();
        let size = line(
            self.architecture,
            "wheel",
            bytes as f64,
            "B",
            bytes <= WHEEL_MAX,
        );
        let found = wheel_files(release, python, path)?;
        let whole = "files in the wheel: all, with licences, and no others";
        let whole = contents(
            self.architecture,
            whole,
            &found,
            &wheel_wanted(release)?,
            is_bill,
        );
        let mut lines = vec![size, whole];
        if self.target.starts_with(std::env::consts::ARCH) {
            let installed = release.workspace.scratch()?.join("wheel-installed");
            let runs = runs(release, python, path, &installed)?;
            let what = "wheel, as pip installs it, runs a scenario";
            lines.push(line(
                self.architecture,
                what,
                f64::from(u8::from(runs)),
                "",
                runs,
            ));
        }
        Ok(lines)
    }
}

/// maturin in the package's folder.
fn maturin(release: &Release<'_>, python: &Path) -> Result<Command> {
    let mut command = python_command(release, python)?;
    command
        .args(["-m", "maturin"])
        .current_dir(release.workspace.root.join("python"));
    Ok(command)
}

/// Python, whose modules find the programs that are beside it: maturin finds Zig, and pip finds
/// maturin.
fn python_command(release: &Release<'_>, python: &Path) -> Result<Command> {
    let own = python.parent().context("python is in no folder")?;
    let mut folders = vec![own.to_path_buf()];
    let search = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&search));
    let mut command = Command::new(python);
    command
        .env("PATH", std::env::join_paths(folders)?)
        .env("CARGO_TARGET_DIR", &release.workspace.target);
    Ok(command)
}

/// The file in `folder` whose name ends so.
fn made(folder: &Path, end: &str) -> Result<PathBuf> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.to_string_lossy().ends_with(end))
        .with_context(|| format!("nothing in {} ends in {end}", folder.display()))
}

/// Names in a wheel, without the folders that carry the version.
fn wheel_files(release: &Release<'_>, python: &Path, path: &Path) -> Result<BTreeSet<String>> {
    let mut list = Command::new(python);
    list.args(["-c", LIST]).arg(path);
    let about = format!("motet-{}.dist-info/", release.version);
    let output = release.run(&mut list)?;
    Ok(output
        .lines()
        .map(|name| name.replace(&about, "about/"))
        .collect())
}

/// What a wheel has to hold: every file of the package, the library, and what says what it is.
fn wheel_wanted(release: &Release<'_>) -> Result<BTreeSet<String>> {
    let folder = "python/package/";
    let tracked = release.tracked()?;
    let package = tracked.iter().filter_map(|path| path.strip_prefix(folder));
    let beside = [
        "motet/_motet.abi3.so",
        "about/METADATA",
        "about/WHEEL",
        "about/RECORD",
        "about/licenses/LICENSE-APACHE",
        "about/licenses/LICENSE-MIT",
    ];
    Ok(package.chain(beside).map(str::to_owned).collect())
}

/// The bill of materials that maturin adds: which crates are in it.
fn is_bill(name: &str) -> bool {
    name.starts_with("about/sboms/")
}

/// Whether the package, installed from `from` by pip alone, runs a scenario.
fn runs(release: &Release<'_>, python: &Path, from: &Path, installed: &Path) -> Result<bool> {
    if installed.exists() {
        fs::remove_dir_all(installed)?;
    }
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index"])
        .args(["--no-deps", "--target"])
        .arg(installed)
        .arg(from);
    release.run(&mut pip)?;
    let mut run = Command::new(python);
    run.args(["-c", RUN])
        .env("PYTHONPATH", installed)
        .current_dir(installed);
    Ok(release.run(&mut run)?.trim() == "1")
}

/// The package of sources: complete, with nothing that is not in the repository, and it builds.
fn sources(release: &Release<'_>, python: &Path) -> Result<Vec<Line>> {
    let mut maturin = maturin(release, python)?;
    maturin.args(["sdist", "--out"]).arg(&release.folder);
    release.run(&mut maturin)?;
    let path = made(
        &release.folder,
        &format!("motet-{}.tar.gz", release.version),
    )?;
    let bytes = fs::metadata(&path)?.len();
    let mut lines = vec![line("sources", "package for pip", bytes as f64, "B", true)];
    let found = source_files(release, &path)?;
    let tracked = release.tracked()?;
    let wanted: BTreeSet<_> = SOURCES.iter().map(|name| (*name).to_owned()).collect();
    let known = |name: &str| {
        let beside = format!("python/{name}");
        name == "PKG-INFO" || tracked.contains(name) || tracked.contains(&beside)
    };
    let whole = "files in it: with licences, and none that the repository has not";
    lines.push(contents("sources", whole, &found, &wanted, known));
    let folder = release.workspace.scratch()?.join("wheel-of-sources");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut pip = python_command(release, python)?;
    // In a folder of its own: by the age of the archive's files, cargo would take what it has built
    // of the repository's for theirs.
    pip.env("CARGO_TARGET_DIR", folder.join("target"));
    pip.args(["-m", "pip", "wheel", "--no-index", "--no-deps"])
        .args(["--no-build-isolation", "--wheel-dir"])
        .arg(&folder)
        .arg(&path);
    release.run(&mut pip)?;
    let wheel = made(&folder, ".whl")?;
    let runs = runs(release, python, &wheel, &folder.join("installed"))?;
    let what = "pip builds them, and the wheel runs a scenario";
    lines.push(line("sources", what, f64::from(u8::from(runs)), "", runs));
    Ok(lines)
}

/// Paths in the package of sources, without the folder that carries the version.
fn source_files(release: &Release<'_>, path: &Path) -> Result<BTreeSet<String>> {
    let file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = format!("motet-{}/", release.version);
    let mut archive = Archive::new(GzDecoder::new(file));
    let names = archive.entries()?.map(|entry| {
        let name = entry?.path()?.to_string_lossy().into_owned();
        Ok(name.strip_prefix(&folder).unwrap_or(&name).to_owned())
    });
    names.collect()
}

/// What makes the wheels: maturin, and Zig's linker with the C libraries of all machines.
const PACKAGES: [(&str, &str); 2] = [("maturin", "1.16.0"), ("ziglang", "0.17.1")];

/// The oldest C library that wheels run with: glibc 2.28, of 2018.
const C_LIBRARY: &str = "manylinux_2_28";

/// What a wheel may take, B.
const WHEEL_MAX: u64 = 1_500_000;

/// Prints what is in a wheel.
const LIST: &str =
    "import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep='\\n')";

/// Prints for how many runs there is a goodput.
const RUN: &str = "import motet; \
    flows = motet.run({'duration_s': 5, 'warmup_s': 1, 'topology': {'chain': 2}, 'flow': [{}]}, seeds=1).flows; \
    print(sum(kbps > 0 for kbps in flows['goodput_kbps']))";

/// What the package of sources has to hold at least.
const SOURCES: [&str; 10] = [
    "PKG-INFO",
    "pyproject.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "python/Cargo.lock",
    "python/build.rs",
    "python/src/lib.rs",
    "package/motet/__init__.py",
    "crates/sim/src/lib.rs",
    "crates/stack/src/lib.rs",
];
