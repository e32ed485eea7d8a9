//! Where the project is and how to run Cargo in it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::step::{essence, run_logged};

pub(crate) use crate::step::in_ci;

/// The project's folders.
pub(crate) struct Workspace {
    /// The folder of the top Cargo.toml.
    pub(crate) root: PathBuf,
    /// The one target folder, shared by the nested workspaces.
    pub(crate) target: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
}

/// What a Cargo.toml of the workspace says.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) rust_version: Option<String>,
}

impl Workspace {
    /// Reads the folders from Cargo, which knows about CARGO_TARGET_DIR and configuration files.
    pub(crate) fn locate() -> Result<Self> {
        let here = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let manifest = here.join("Cargo.toml");
        let output = Command::new(cargo())
            .args([
                "metadata",
                "--format-version=1",
                "--no-deps",
                "--manifest-path",
            ])
            .arg(&manifest)
            .output()
            .context("cannot run `cargo metadata`")?;
        ensure!(
            output.status.success(),
            "`cargo metadata` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")?;
        Ok(Self {
            root: metadata.workspace_root,
            target: metadata.target_directory,
            packages: metadata.packages,
        })
    }

    /// The package of that name.
    pub(crate) fn package(&self, name: &str) -> Result<&Package> {
        let mut packages = self.packages.iter();
        let found = packages.find(|package| package.name == name);
        found.with_context(|| format!("there is no package {name}"))
    }

    /// `cargo SUBCOMMAND` in the top workspace, without what makes the next build of a changed
    /// crate quicker: 12 GB of the target folder after a whole check, and a third more work in each
    /// build.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new(cargo());
        command
            .arg(subcommand)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_INCREMENTAL", "0");
        command
    }

    /// The command `motet`, built for debugging from what the step `test` builds: a build of its
    /// package alone would need fewer features of forty crates, and build each of them once more.
    pub(crate) fn debug_motet(&self) -> Result<PathBuf> {
        let mut build = self.linted_test();
        // A small test of the command's package; with it comes the command.
        build.args(["--no-run", "--test", "revision"]);
        self.motet(build, "debug")
    }

    /// `cargo test --workspace`, in which Clippy judges what is built. All builds of tests have
    /// this form: Cargo keeps apart what Clippy has judged and what it has not.
    pub(crate) fn linted_test(&self) -> Command {
        let mut command = self.cargo("test");
        linted(&mut command).arg("--workspace");
        command
    }

    /// The command `motet`, as users get it.
    pub(crate) fn release_motet(&self) -> Result<PathBuf> {
        let mut build = self.cargo("build");
        build.args(["--release", "--package", "motet-cli"]);
        self.motet(build, "release")
    }

    /// Runs a build of the command; gives where it then is.
    fn motet(&self, mut build: Command, folder: &str) -> Result<PathBuf> {
        let log = self.scratch()?.join(format!("{folder}-motet.log"));
        let (good, output) = run_logged(build.args(locked()), &log)?;
        ensure!(good, "{}", essence(&output));
        let name = format!("motet{}", env::consts::EXE_SUFFIX);
        Ok(self.target.join(folder).join(name))
    }

    /// `cargo SUBCOMMAND` in the firmware workspace.
    pub(crate) fn firmware_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.current_dir(self.root.join("firmware"));
        command
    }

    /// `cargo SUBCOMMAND` in the workspace of the applications.
    pub(crate) fn apps_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.current_dir(self.root.join("apps"));
        command
    }

    /// `cargo SUBCOMMAND` in the workspace of chips' radios.
    pub(crate) fn chips_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.current_dir(self.root.join("chips"));
        command
    }

    /// `cargo SUBCOMMAND` in the peers' workspace.
    pub(crate) fn peers_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.current_dir(self.root.join("peers"));
        command
    }

    /// `cargo SUBCOMMAND` in the workspace of the Python package.
    pub(crate) fn python_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.current_dir(self.root.join("python"));
        command
    }

    /// `cargo SUBCOMMAND` in the workspace of the live page.
    pub(crate) fn web_cargo(&self, subcommand: &str) -> Command {
        let mut command = self.cargo(subcommand);
        command.current_dir(self.root.join("web"));
        command
    }

    /// A folder for this command's own files, created on demand.
    pub(crate) fn scratch(&self) -> Result<PathBuf> {
        let folder = self.target.join("xtask");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }
}

/// This program's file. One that a step of the check has built anew meanwhile is in its place.
///
/// # Errors
/// The system does not say where it is.
pub(crate) fn own_program() -> Result<PathBuf> {
    let path = env::current_exe().context("this program has no file")?;
    let name = path.to_string_lossy();
    Ok(match name.strip_suffix(" (deleted)") {
        Some(before) => PathBuf::from(before),
        None => path,
    })
}

/// The Cargo that runs this.
fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// In continuous integration Cargo.lock is part of what is checked.
pub(crate) fn locked() -> Option<&'static str> {
    in_ci().then_some("--locked")
}

/// Lets a build of a workspace judge what is in it by Clippy, a warning being an error, as
/// `cargo clippy` does for a check. What it builds on is then compiled once, not checked as well.
pub(crate) fn linted(build: &mut Command) -> &mut Command {
    build
        .env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
        // What separates Clippy's arguments.
        .env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__")
}
