//! `cargo xtask release --dry-run`: everything that a release publishes, made and checked.
//!
//! Place: the crates' packages, static binaries ([`binary`]), archives and Debian packages of them
//! ([`packages`]), an image for containers ([`image`]), the Python package ([`python`]) and the
//! live page ([`page`]); all but the crates go to `target/release-VERSION`. Nothing leaves this
//! machine: a person publishes.

mod binary;
mod image;
mod packages;
mod page;
mod python;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use sha2::{Digest, Sha256};

use crate::Format;
use crate::apps::Line;
use crate::evidence;
use crate::provenance::heading;
use crate::step::{essence, run_logged};
use crate::tools;
use crate::workspace::Workspace;

/// A kind of machine that Motet is released for.
pub(crate) struct Machine {
    /// As Rust names it.
    target: &'static str,
    /// As Debian and the Open Container Initiative name it.
    architecture: &'static str,
    /// Runs its programs on another machine.
    emulator: &'static str,
}

const MACHINES: [Machine; 2] = [
    Machine {
        target: "x86_64-unknown-linux-musl",
        architecture: "amd64",
        emulator: "qemu-x86_64-static",
    },
    Machine {
        target: "aarch64-unknown-linux-musl",
        architecture: "arm64",
        emulator: "qemu-aarch64-static",
    },
];

/// Where a release is made.
pub(crate) struct Release<'w> {
    workspace: &'w Workspace,
    version: String,
    /// What people download.
    folder: PathBuf,
}

/// Makes a part of the release, and says what it checked.
type Part = fn(&Release<'_>) -> Result<Vec<Line>>;

/// The parts of a release, as the command line names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum PartName {
    /// The crates' packages, each built from its archive and those of the others
    Crates,
    /// The crates' interfaces, compared with the last release
    Interfaces,
    /// Static binaries
    Binaries,
    /// Archives and Debian packages
    Packages,
    /// The image for containers
    Image,
    /// The Python package
    Python,
    /// The live page
    Page,
}

impl PartName {
    /// In the order in which they are made: some need what others have built.
    const ALL: [Self; 7] = [
        Self::Crates,
        Self::Interfaces,
        Self::Binaries,
        Self::Packages,
        Self::Image,
        Self::Python,
        Self::Page,
    ];

    const fn make(self) -> Part {
        match self {
            Self::Crates => crates,
            Self::Interfaces => interfaces,
            Self::Binaries => binary::make,
            Self::Packages => packages::make,
            Self::Image => image::make,
            Self::Python => python::make,
            Self::Page => page::make,
        }
    }

    /// Whether it packs the commands that the part before it has built.
    const fn needs_binaries(self) -> bool {
        matches!(self, Self::Packages | Self::Image)
    }

    /// Makes it; its lines go to stdout. Gives whether all of them hold.
    fn print(self, release: &Release<'_>, format: Format) -> Result<bool> {
        let mut all_pass = true;
        for line in self.make()(release)? {
            all_pass &= line.pass;
            println!("{}", line.shown(format)?);
        }
        Ok(all_pass)
    }
}

/// Makes and checks one part, of those before it what they left.
pub(crate) fn run_part(
    workspace: &Workspace,
    part: PartName,
    is_dry: bool,
    format: Format,
) -> Result<bool> {
    may_begin(workspace, is_dry)?;
    let release = Release::of(workspace)?;
    fs::create_dir_all(&release.folder)
        .with_context(|| format!("cannot create {}", release.folder.display()))?;
    if part.needs_binaries() {
        binary::check_revision(&release)?;
    }
    part.print(&release, format)
}

fn may_begin(workspace: &Workspace, is_dry: bool) -> Result<()> {
    ensure!(
        is_dry,
        "a person publishes: after `cargo xtask release --dry-run` has passed, `cargo publish --workspace`"
    );
    ensure!(
        is_clean(workspace),
        "the checkout has changes: a release is of a revision"
    );
    Ok(())
}

/// Makes and checks a release; its lines go to stdout as they come.
pub(crate) fn run(workspace: &Workspace, is_dry: bool, format: Format) -> Result<bool> {
    may_begin(workspace, is_dry)?;
    let mut faults = Vec::new();
    let old = evidence::judge(workspace, &mut faults)?;
    faults.extend(old);
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    tools::provide(workspace, tools::RELEASE)?;
    if let Some(advice) = tools::absent(tools::RELEASE) {
        bail!("{advice}");
    }
    let release = Release::begin(workspace)?;
    if format == Format::Markdown {
        let command = "cargo xtask release --dry-run --markdown";
        println!("{}", heading(workspace, "A release", command));
        println!("| part | check | value | unit | kept |\n|---|---|---:|---|---|");
    }
    let mut all_pass = true;
    for part in PartName::ALL {
        all_pass &= part.print(&release, format)?;
    }
    release.write_digests()?;
    eprintln!("made in {}", release.folder.display());
    Ok(all_pass)
}

impl<'w> Release<'w> {
    fn of(workspace: &'w Workspace) -> Result<Self> {
        let version = workspace.package("motet-cli")?.version.clone();
        let folder = workspace.target.join(format!("release-{version}"));
        Ok(Self {
            workspace,
            version,
            folder,
        })
    }

    fn begin(workspace: &'w Workspace) -> Result<Self> {
        let release = Self::of(workspace)?;
        let folder = &release.folder;
        // What an earlier release left is no part of this one.
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(release)
    }

    /// Runs a command that has to succeed; gives what it printed.
    fn run(&self, command: &mut Command) -> Result<String> {
        let log = self.workspace.scratch()?.join("release.log");
        let (good, output) = run_logged(command, &log)?;
        ensure!(good, "{}", essence(&output));
        Ok(output)
    }

    /// What `target`'s build and the files beside it are made in.
    fn built(&self, machine: &Machine) -> PathBuf {
        self.workspace.target.join(machine.target).join("dist")
    }

    fn binary(&self, machine: &Machine) -> PathBuf {
        self.built(machine).join("motet")
    }

    /// Every file that the repository has, as paths from its root.
    fn tracked(&self) -> Result<BTreeSet<String>> {
        let mut git = Command::new("git");
        git.arg("-C").arg(&self.workspace.root);
        let output = git.arg("ls-files").output().context("cannot run git")?;
        ensure!(output.status.success(), "git knows no files here");
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// A list of what is in the folder, as `sha256sum --check` reads it.
    fn write_digests(&self) -> Result<()> {
        let mut lines = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let digest = digest_of(&fs::read(entry.path())?);
                lines.push(format!("{digest}  {}\n", entry.file_name().display()));
            }
        }
        lines.sort();
        write(&self.folder.join("SHA256SUMS"), lines.concat().as_bytes())
    }
}

/// The crates' packages, in the order in which they are published: each one is unpacked and built
/// with those before it, which Cargo takes from a registry of this build alone.
fn crates(release: &Release<'_>) -> Result<Vec<Line>> {
    let mut cargo = release.workspace.cargo("publish");
    cargo.args(["--workspace", "--dry-run", "--locked"]);
    // Whether they build is asked, not how fast they are.
    for (setting, value) in [("OPT_LEVEL", "0"), ("DEBUG", "0")] {
        cargo.env(format!("CARGO_PROFILE_DEV_{setting}"), value);
    }
    let output = release.run(&mut cargo)?;
    let count = |word: &str| {
        let lines = output.lines().map(str::trim);
        lines.filter(|line| line.starts_with(word)).count()
    };
    let (made, built) = (count("Packaged "), count("Verifying "));
    let is_whole = made == PUBLISHED && built == made;
    Ok(vec![
        line("crates", "packages made", made as f64, "", is_whole),
        line(
            "crates",
            "packages built from their archives",
            built as f64,
            "",
            is_whole,
        ),
    ])
}

/// How many crates of the workspace are published.
const PUBLISHED: usize = 13;

/// The interfaces of the crates, compared with those of the last release before this commit, which
/// may have the tag of its own release already.
fn interfaces(release: &Release<'_>) -> Result<Vec<Line>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(&release.workspace.root);
    git.args(["describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"]);
    let found = git.output().context("cannot run git")?;
    if !found.status.success() {
        let check = "interfaces: there is no release to compare with";
        return Ok(vec![line("crates", check, 0.0, "", true)]);
    }
    let last = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let program = tools::cargo_tool(release.workspace, "cargo-semver-checks", "0.51.0")?;
    let mut command = Command::new(program);
    command
        .args(["semver-checks", "--workspace", "--baseline-rev", &last])
        .current_dir(&release.workspace.root);
    let log = release.workspace.scratch()?.join("semver.log");
    let (good, output) = run_logged(&mut command, &log)?;
    if !good {
        eprintln!("{}", essence(&output));
    }
    let check = format!("interfaces: as {last} promises");
    Ok(vec![line(
        "crates",
        &check,
        f64::from(u8::from(good)),
        "",
        good,
    )])
}

fn is_clean(workspace: &Workspace) -> bool {
    let mut git = Command::new("git");
    git.arg("-C")
        .arg(&workspace.root)
        .args(["status", "--porcelain"]);
    git.output()
        .is_ok_and(|output| output.status.success() && output.stdout.is_empty())
}

/// Judges the files of an archive: all that are `wanted` are there, and others only if `may_be`.
/// Says which are not so.
fn contents(
    part: &str,
    check: &str,
    found: &BTreeSet<String>,
    wanted: &BTreeSet<String>,
    may_be: impl Fn(&str) -> bool,
) -> Line {
    let missing: Vec<_> = wanted.difference(found).collect();
    let others = found.difference(wanted);
    let stray: Vec<_> = others.filter(|name| !may_be(name)).collect();
    if !missing.is_empty() || !stray.is_empty() {
        eprintln!("{part}: missing {missing:?}, stray {stray:?}");
    }
    let is_right = missing.is_empty() && stray.is_empty();
    line(part, check, found.len() as f64, "", is_right)
}

fn line(part: &str, check: &str, value: f64, unit: &str, pass: bool) -> Line {
    Line {
        app: part.to_owned(),
        check: check.to_owned(),
        value: Some(value),
        unit: unit.to_owned(),
        pass,
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// SHA-256 in hexadecimal digits.
fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn an_archive_has_all_that_is_wanted_and_nothing_stray() {
        let wanted = names(&["a", "b"]);
        let cases: [(&[&str], bool); 4] = [
            (&["a", "b"], true),
            (&["a", "b", "bill/c"], true),
            (&["a"], false),
            (&["a", "b", ".DS_Store"], false),
        ];
        for (found, is_right) in cases {
            let is_bill = |name: &str| name.starts_with("bill/");
            let line = contents("part", "check", &names(found), &wanted, is_bill);
            assert_eq!(line.pass, is_right, "{found:?}");
            assert_eq!(line.value, Some(found.len() as f64), "{found:?}");
        }
    }
}
