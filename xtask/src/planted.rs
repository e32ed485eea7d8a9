//! The proof that the soak finds bugs: a copy of the project with bugs in it.
//!
//! `crates/sim/planted` holds one patch a bug, the switch that puts one bug at a time into
//! force, and the test that looks for them. The copy lies in the target folder and has a version
//! of its own, so that its packages are built beside the project's and not instead of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step::{StepOutcome, run_logged};
use crate::workspace::Workspace;

/// Patches, switch and test, from the project's folder.
const BUGS: &str = "crates/sim/planted";

/// The folders and files of the project that the lab is built from.
const COPIED: [&str; 5] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "crates",
    "xtask",
];

/// The project's version, and the copy's. The copy's also satisfies a dependency on the
/// project's.
const VERSIONS: [&str; 2] = ["version = \"0.1.0\"", "version = \"0.1.99\""];

/// Makes the copy: every patch applies.
pub(crate) fn check_patches(workspace: &Workspace) -> Result<StepOutcome> {
    let copy = workspace.scratch()?.join("planted");
    Ok(match plant(workspace, &copy) {
        Ok(patches) => StepOutcome::single(true, format!("{patches} bugs can be planted"), ""),
        Err(error) => StepOutcome::single(false, "", format!("{error:#}\n")),
    })
}

/// Builds the copy and lets its test look for every bug.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let copy = workspace.scratch()?.join("planted");
    let patches = plant(workspace, &copy)?;
    let mut test = workspace.cargo("test");
    test.args(["--release", "--package", "motet-lab", "--test", "planted"])
        .args(["--", "--nocapture"])
        .current_dir(&copy);
    let log = workspace.scratch()?.join("planted.log");
    let (good, output) = run_logged(&mut test, &log)?;
    Ok(StepOutcome::single(good, format!("{patches} bugs"), output))
}

/// Makes the copy anew and gives the number of patches in it. What has not changed since the
/// last time stays untouched there, so that it is not built again.
fn plant(workspace: &Workspace, copy: &Path) -> Result<usize> {
    let fresh = copy.with_extension("fresh");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    let files = tracked(workspace)?;
    for file in &files {
        put(&fs::read(workspace.root.join(file))?, &fresh.join(file))?;
    }
    let bugs = workspace.root.join(BUGS);
    let patches = patches(&bugs)?;
    for patch in &patches {
        apply(patch, &fresh)?;
    }
    let switch = Path::new("crates/stack/src/planted.rs");
    let test = Path::new("crates/sim/tests/planted.rs");
    put(&fs::read(bugs.join("switch.rs"))?, &fresh.join(switch))?;
    put(&fs::read(bugs.join("found.rs"))?, &fresh.join(test))?;
    let root = fresh.join("crates/stack/src/lib.rs");
    let text = fs::read_to_string(&root)? + "\npub mod planted;\n";
    fs::write(&root, text)?;
    for manifest in ["Cargo.toml", "Cargo.lock"] {
        rename_version(&fresh.join(manifest))?;
    }
    let mut all: BTreeSet<PathBuf> = files.into_iter().collect();
    all.extend([switch.to_owned(), test.to_owned()]);
    for file in &all {
        let bytes = fs::read(fresh.join(file))?;
        if fs::read(copy.join(file)).ok().as_ref() != Some(&bytes) {
            put(&bytes, &copy.join(file))?;
        }
    }
    forget_others(copy, Path::new(""), &all)?;
    fs::remove_dir_all(&fresh)?;
    Ok(patches.len())
}

/// The project's files that the copy needs, those included that git does not track yet.
fn tracked(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .args(COPIED)
        .current_dir(&workspace.root)
        .output()
        .context("cannot run `git ls-files`")?;
    ensure!(output.status.success(), "`git ls-files` failed");
    let text = String::from_utf8(output.stdout)?;
    let files = text.lines().map(PathBuf::from);
    Ok(files
        .filter(|file| workspace.root.join(file).is_file())
        .collect())
}

fn patches(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut patches = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "patch")
        {
            patches.push(path);
        }
    }
    patches.sort();
    ensure!(!patches.is_empty(), "no patches in {}", folder.display());
    Ok(patches)
}

fn apply(patch: &Path, tree: &Path) -> Result<()> {
    // The copy lies inside a checkout, which git must not look for.
    let output = Command::new("git")
        .args(["apply", "--whitespace=nowarn"])
        .arg(patch)
        .current_dir(tree)
        .env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap_or(tree))
        .output()
        .context("cannot run `git apply`")?;
    if !output.status.success() {
        bail!(
            "{} no longer applies, so that its bug is not looked for: write it anew\n{}",
            patch.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Gives the packages of the project another version in a manifest or in the lock file.
fn rename_version(path: &Path) -> Result<()> {
    let [ours, planted] = VERSIONS;
    let text = fs::read_to_string(path)?;
    ensure!(text.contains(ours), "{}: no {ours}", path.display());
    let mut in_ours = !path.ends_with("Cargo.lock");
    let lines = text.lines().map(|line| {
        if line.starts_with("name = ") {
            in_ours = line.starts_with("name = \"motet");
        }
        match in_ours {
            true => line.replace(ours, planted),
            false => line.to_owned(),
        }
    });
    let text: String = lines.map(|line| line + "\n").collect();
    Ok(fs::write(path, text)?)
}

/// Removes what is in the copy and no longer in the project.
fn forget_others(copy: &Path, folder: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(copy.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            forget_others(copy, &path, files)?;
        } else if !files.contains(&path) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Writes a file and the folders that it lies in.
fn put(bytes: &[u8], path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
