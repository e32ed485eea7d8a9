//! Archives and Debian packages of the command, its manual and its completions.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tar::{Builder, HeaderMode};

use super::{MACHINES, Machine, Release, binary, line, write};
use crate::apps::Line;
use crate::tools::{self, DPKG, XZ};

/// Makes both packages for every machine.
pub(super) fn make(release: &Release<'_>) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for machine in &MACHINES {
        build_companions(release, machine)?;
        let bytes = archive(release, machine)?;
        let is_small = bytes <= ARCHIVE_MAX;
        lines.push(line(
            machine.architecture,
            "archive, with manual and completions",
            bytes as f64,
            "B",
            is_small,
        ));
        lines.push(debian(release, machine)?);
    }
    Ok(lines)
}

/// Writes the manual and the completions into the folder `package` beside the command.
fn build_companions(release: &Release<'_>, machine: &Machine) -> Result<()> {
    let folder = release.built(machine).join("package");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let manual = folder.join("man");
    fs::create_dir_all(&manual)?;
    let manual = manual
        .to_str()
        .context("the target folder's path is no text")?;
    binary::output(release, machine, &["manual", manual])?;
    for (shell, file) in [("bash", "motet"), ("zsh", "_motet"), ("fish", "motet.fish")] {
        let script = binary::output(release, machine, &["completions", shell])?;
        let shell = folder.join(shell);
        fs::create_dir_all(&shell)?;
        write(&shell.join(file), script.as_bytes())?;
    }
    Ok(())
}

/// One folder, compressed; the same bytes whenever it is made. Gives how many.
fn archive(release: &Release<'_>, machine: &Machine) -> Result<u64> {
    let name = format!("motet-{}-{}", release.version, machine.target);
    let path = release.folder.join(format!("{name}.tar"));
    let file =
        fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut tar = Builder::new(file);
    tar.mode(HeaderMode::Deterministic);
    tar.append_path_with_name(release.binary(machine), format!("{name}/motet"))?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        tar.append_path_with_name(release.workspace.root.join(file), format!("{name}/{file}"))?;
    }
    for folder in ["man", "bash", "zsh", "fish"] {
        let files = release.built(machine).join("package").join(folder);
        for file in sorted(&files)? {
            let inside = format!("{name}/{folder}/{}", file.display());
            tar.append_path_with_name(files.join(&file), inside)?;
        }
    }
    tar.into_inner()?;
    let mut xz = Command::new(XZ.program);
    release.run(xz.args(["--threads=1", "-9", "--extreme"]).arg(&path))?;
    let packed = release.folder.join(format!("{name}.tar.xz"));
    Ok(fs::metadata(packed)?.len())
}

fn sorted(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().into()))
        .collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// The Debian package: made by cargo-deb, read by dpkg.
fn debian(release: &Release<'_>, machine: &Machine) -> Result<Line> {
    let program = tools::cargo_tool(release.workspace, "cargo-deb", "3.8.0")?;
    let mut command = Command::new(program);
    command
        .args([
            "--package",
            "motet-cli",
            "--no-build",
            "--no-strip",
            "--profile",
            "dist",
        ])
        .args(["--target", machine.target, "--locked", "--output"])
        .arg(&release.folder)
        .current_dir(&release.workspace.root)
        .env("CARGO_TARGET_DIR", &release.workspace.target);
    release.run(&mut command)?;
    let made = sorted(&release.folder)?;
    let end = format!("_{}.deb", machine.architecture);
    let name = made
        .iter()
        .find(|name| name.to_string_lossy().ends_with(&end));
    let path = release
        .folder
        .join(name.context("cargo-deb made no package")?);
    let mut dpkg = Command::new(DPKG.program);
    let contents = release.run(dpkg.arg("--contents").arg(&path))?;
    for file in DEBIAN_FILES {
        ensure!(contents.contains(file), "{} has no {file}", path.display());
    }
    let unpacked = release
        .workspace
        .scratch()?
        .join("deb")
        .join(machine.architecture);
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    let mut dpkg = Command::new(DPKG.program);
    release.run(dpkg.arg("--extract").arg(&path).arg(&unpacked))?;
    let is_same = fs::read(unpacked.join("usr/bin/motet"))? == fs::read(release.binary(machine))?;
    let bytes = fs::metadata(&path)?.len() as f64;
    Ok(line(
        machine.architecture,
        "Debian package, as dpkg reads it",
        bytes,
        "B",
        is_same,
    ))
}

/// What a static binary, compressed, may take.
const ARCHIVE_MAX: u64 = 3_000_000;

const DEBIAN_FILES: [&str; 7] = [
    "./usr/bin/motet\n",
    "./usr/share/man/man1/motet.1\n",
    "./usr/share/man/man1/motet-run.1\n",
    "./usr/share/bash-completion/completions/motet\n",
    "./usr/share/zsh/vendor-completions/_motet\n",
    "./usr/share/fish/vendor_completions.d/motet.fish\n",
    "./usr/lib/systemd/system/motet-router@.service\n",
];
