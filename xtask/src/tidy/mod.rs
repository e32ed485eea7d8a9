//! `cargo xtask check tidy`: limits that keep the code readable, tests aside.
//!
//! No file is longer than [`FILE_LINES_MAX`], no comment wider than [`COMMENT_COLUMNS_MAX`]
//! columns, no files of a crate import one another in a circle that is not named, files that are
//! copies read as their originals, no text has codes of a list of requirements, and pages of
//! measurements come from this history, as [`crate::evidence`] judges them. Files that no
//! person writes by hand do not exist here, so none is exempt. How long functions may be, Clippy
//! knows: `clippy.toml`.

mod circles;
mod codes;
mod columns;
mod copies;
mod known;
mod lengths;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::evidence;
use crate::step::StepOutcome;
use crate::workspace::Workspace;

/// A file fits in a head: lines without those of its tests.
const FILE_LINES_MAX: usize = 600;

/// Lines of comments are as wide as those of code at the most.
const COMMENT_COLUMNS_MAX: usize = 100;

/// A source file of the project.
struct Source {
    /// Where it is, from the project's folder.
    path: PathBuf,
    text: String,
    syntax: syn::File,
}

/// Looks at every source file that is not a test.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let files = files(workspace)?;
    let sources = sources(workspace, &files)?;
    let mut faults = Vec::new();
    copies::judge(workspace, &files, &mut faults)?;
    codes::judge(workspace, &files, &mut faults)?;
    for source in &sources {
        lengths::judge(source, &mut faults);
        columns::judge(source, &mut faults);
    }
    circles::judge(&sources, &mut faults);
    for remark in evidence::judge(workspace, &mut faults)? {
        println!("{remark}");
    }
    let note = format!("{} files", sources.len());
    Ok(StepOutcome::single(
        faults.is_empty(),
        note,
        faults.join("\n"),
    ))
}

/// The files that git tracks, or would, but for those that are gone from the working tree.
pub(crate) fn files(workspace: &Workspace) -> Result<Vec<String>> {
    const LIST: [&str; 4] = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git")
        .args(LIST)
        .current_dir(&workspace.root)
        .output()
        .context("cannot run `git ls-files`")?;
    ensure!(output.status.success(), "`git ls-files` failed");
    let text = String::from_utf8(output.stdout)?;
    let is_there = |file: &&str| workspace.root.join(file).exists();
    Ok(text.lines().filter(is_there).map(str::to_owned).collect())
}

/// The source files among these; folders of tests and of benchmarks aside.
fn sources(workspace: &Workspace, files: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files {
        let path = PathBuf::from(file);
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "benches";
        if !is_source || path.iter().any(is_test) || path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(workspace.root.join(&path))
            .with_context(|| format!("cannot read {file}"))?;
        let syntax = syn::parse_file(&text).with_context(|| format!("cannot parse {file}"))?;
        sources.push(Source { path, text, syntax });
    }
    ensure!(sources.len() > 50, "found only {} files", sources.len());
    Ok(sources)
}

/// Whether an item is there for tests alone.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || path.is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|condition| condition.is_ident("test"))
    })
}
