//! The command as one static file for each kind of machine.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use object::Object as _;

use super::{MACHINES, Machine, Release, line};
use crate::apps::Line;
use crate::tools;

/// Builds the command for every machine, and runs it there or under an emulator.
pub(super) fn make(release: &Release<'_>) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut results = Vec::new();
    for machine in &MACHINES {
        build(release, machine)?;
        let bytes = std::fs::read(release.binary(machine)).context("the command was not built")?;
        let file = object::File::parse(&*bytes).context("the command is no program")?;
        let is_static = file.imports()?.next().is_none();
        lines.push(line(
            machine.architecture,
            "needs no library",
            f64::from(u8::from(is_static)),
            "",
            is_static,
        ));
        lines.push(line(
            machine.architecture,
            "binary",
            bytes.len() as f64,
            "B",
            true,
        ));
        let version = output(release, machine, &["--version"])?;
        let is_right = version.starts_with(&format!("motet {}", release.version));
        lines.push(line(
            machine.architecture,
            "says its version",
            f64::from(u8::from(is_right)),
            "",
            is_right,
        ));
        results.push(output(release, machine, &TRANSFER)?);
    }
    let is_equal = results.windows(2).all(|pair| pair.first() == pair.last());
    let is_whole = results
        .iter()
        .all(|result| result.contains("\"sha256_received\""));
    lines.push(line(
        "binaries",
        "a transfer is the same on each machine, byte for byte",
        f64::from(u8::from(is_equal)),
        "",
        is_equal && is_whole,
    ));
    Ok(lines)
}

/// The commands are there, and no source of theirs has changed since the revision that they name.
///
/// # Errors
/// There is none, or it is of another revision: which one, and what builds it anew.
pub(super) fn check_revision(release: &Release<'_>) -> Result<()> {
    const ANEW: &str = "build it anew: cargo xtask release --dry-run --part binaries";
    for machine in &MACHINES {
        let architecture = machine.architecture;
        let version = output(release, machine, &["--version"])
            .with_context(|| format!("there is no command for {architecture}, {ANEW}"))?;
        let revision = revision_in(&version)
            .with_context(|| format!("the command for {architecture} names no revision, {ANEW}"))?;
        let mut git = Command::new("git");
        git.arg("-C").arg(&release.workspace.root);
        git.args(["diff", "--quiet", revision, "HEAD", "--"]);
        git.args(["crates", "Cargo.toml", "Cargo.lock"]);
        ensure!(
            git.status().context("cannot run git")?.success(),
            "the command for {architecture} is of revision {revision}, and the sources have changed \
             since, {ANEW}"
        );
    }
    Ok(())
}

/// The revision in what `motet --version` prints; none of a tree that was changed.
fn revision_in(version: &str) -> Option<&str> {
    let (_, revision) = version.trim_end().strip_suffix(')')?.rsplit_once('(')?;
    let is_plain = revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_plain && !revision.is_empty()).then_some(revision)
}

/// Rust's own linker and C library: no compiler for the other machine is needed.
fn build(release: &Release<'_>, machine: &Machine) -> Result<()> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", machine.target]);
    rustup.current_dir(&release.workspace.root);
    release.run(&mut rustup)?;
    let linker = format!(
        "CARGO_TARGET_{}_LINKER",
        machine.target.to_uppercase().replace('-', "_")
    );
    let mut cargo = release.workspace.cargo("build");
    cargo
        .args(["--package", "motet-cli", "--profile", "dist", "--locked"])
        .args(["--target", machine.target])
        .env(linker, "rust-lld");
    release.run(&mut cargo)?;
    Ok(())
}

/// What the command prints; run by an emulator where this machine is of another kind.
pub(super) fn output(
    release: &Release<'_>,
    machine: &Machine,
    arguments: &[&str],
) -> Result<String> {
    let is_native = machine.target.starts_with(std::env::consts::ARCH);
    let binary = release.binary(machine);
    let mut command = match is_native {
        true => Command::new(&binary),
        false => {
            let emulator = tools::find(machine.emulator);
            let mut command =
                Command::new(emulator.with_context(|| format!("{} not found", machine.emulator))?);
            command.arg(&binary);
            command
        }
    };
    command.args(arguments).current_dir(&release.workspace.root);
    let output = command.output().context("the command cannot be run")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "motet {}: {errors}",
        arguments.join(" ")
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

const TRANSFER: [&str; 4] = ["send", "README.md", "--virtual", "--json"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_its_revision() {
        for (version, revision) in [
            ("motet 0.1.0 (91e9009)\n", Some("91e9009")),
            ("motet 0.1.0 (91e9009+changed)\n", None),
            ("motet 0.1.0\n", None),
            ("motet 0.1.0 ()", None),
        ] {
            assert_eq!(revision_in(version), revision, "{version}");
        }
    }
}
