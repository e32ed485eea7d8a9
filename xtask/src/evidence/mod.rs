//! The pages of measurements in `docs/evidence`, and where each comes from.
//!
//! ```text
//! docs/evidence/pages.toml -> a command -> PAGE.jsonl (rows of experiments) -> PAGE.md
//! ```
//!
//! A page of experiments is short: what was measured, how sure it is, what missed and why. All rows
//! are beside it. Pages of other commands are those commands' Markdown.

mod age;
#[path = "../../../crates/cli/src/figure.rs"]
mod figure;
mod page;
mod rows;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// What `pages.toml` says of all pages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    page: Vec<Page>,
}

/// One page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    /// The file's name without its ending.
    name: String,
    title: String,
    /// What is measured, and why a reader should care. Empty for pages of other commands.
    #[serde(default)]
    summary: String,
    /// IDs for `motet reproduce --full`.
    #[serde(default)]
    experiments: Vec<String>,
    /// The command that prints the page, where it has no experiments.
    command: Option<String>,
    /// Why the page names a revision that is not of this history. Such a page is printed by every
    /// check, and stops a release, until it is measured again.
    lost: Option<String>,
    /// Files and folders whose changes make the page old.
    measures: Vec<String>,
    /// The setting whose values have lines of their own in an experiment's table, by its ID.
    #[serde(default)]
    by: BTreeMap<String, String>,
    /// Why criteria of an experiment are missed, by its ID.
    #[serde(default)]
    why: BTreeMap<String, String>,
}

impl Page {
    fn file(&self, ending: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{}.{ending}", self.name))
    }

    /// Whether its experiments have been measured since it lists them.
    fn has_rows(&self, workspace: &Workspace) -> bool {
        workspace.root.join(self.file("jsonl")).exists()
    }
}

/// Measures these pages again, all of them if none is named; with `is_rewrite` writes pages of
/// experiments from the rows that are there.
pub(crate) fn run(workspace: &Workspace, names: &[String], is_rewrite: bool) -> Result<()> {
    let pages = pages(workspace)?;
    if let Some(name) = names
        .iter()
        .find(|name| pages.iter().all(|page| page.name != **name))
    {
        let known: Vec<&str> = pages.iter().map(|page| &*page.name).collect();
        bail!("there is no page {name}, only {}", known.join(", "));
    }
    let is_asked = |page: &&Page| names.is_empty() || names.contains(&page.name);
    for page in pages.iter().filter(is_asked) {
        match &page.command {
            Some(_) if is_rewrite => {}
            Some(command) => print_page(workspace, page, command)?,
            None => {
                if !is_rewrite {
                    measure(workspace, page)?;
                } else if !page.has_rows(workspace) {
                    // It stays as its command of before has printed it.
                    continue;
                }
                let text = made(workspace, page)?;
                fs::write(workspace.root.join(page.file("md")), text)?;
            }
        }
    }
    Ok(())
}

/// Adds what is wrong with pages: edited by hand, of a revision that is not of this history, or
/// without reasons for what they miss. Returns remarks on pages that are old, or not measured since
/// they list experiments.
pub(crate) fn judge(workspace: &Workspace, faults: &mut Vec<String>) -> Result<Vec<String>> {
    let pages = pages(workspace)?;
    let mut remarks = Vec::new();
    for page in pages.iter().filter(|page| page.command.is_none()) {
        let file = page.file("md");
        let there = fs::read_to_string(workspace.root.join(&file)).unwrap_or_default();
        if !page.has_rows(workspace) && !there.contains(page::MADE) {
            remarks.push(format!(
                "{} has no rows beside it yet: `cargo xtask evidence {}` measures it",
                file.display(),
                page.name
            ));
            continue;
        }
        match made(workspace, page) {
            Ok(text) if text == there => {}
            Ok(_) => faults.push(format!(
                "{} differs from its rows; `cargo xtask evidence --rewrite` makes it from them",
                file.display()
            )),
            Err(error) => faults.push(format!("{error:#}")),
        }
    }
    strangers(workspace, &pages, faults)?;
    remarks.extend(age::judge(workspace, &pages, faults)?);
    Ok(remarks)
}

/// Adds files of the folder that no page names.
fn strangers(workspace: &Workspace, pages: &[Page], faults: &mut Vec<String>) -> Result<()> {
    let mut known = vec![Path::new(FOLDER).join(LIST)];
    for page in pages {
        known.push(page.file("md"));
        known.push(page.file("jsonl"));
    }
    for entry in fs::read_dir(workspace.root.join(FOLDER))? {
        let file = Path::new(FOLDER).join(entry?.file_name());
        if !known.contains(&file) {
            faults.push(format!("{} is not among {LIST}", file.display()));
        }
    }
    Ok(())
}

fn pages(workspace: &Workspace) -> Result<Vec<Page>> {
    let file = Path::new(FOLDER).join(LIST);
    let text = fs::read_to_string(workspace.root.join(&file))
        .with_context(|| format!("cannot read {}", file.display()))?;
    let Pages { page } =
        toml::from_str(&text).with_context(|| format!("cannot read {}", file.display()))?;
    for page in &page {
        ensure!(
            page.command.is_some() == page.experiments.is_empty(),
            "{}: page {} has either experiments or a command",
            file.display(),
            page.name
        );
    }
    Ok(page)
}

/// Runs the experiments of a page in full, and keeps their rows.
fn measure(workspace: &Workspace, page: &Page) -> Result<()> {
    let motet = workspace.release_motet()?;
    let out = workspace.scratch()?.join(format!("evidence-{}", page.name));
    let mut reproduce = Command::new(motet);
    reproduce.arg("reproduce").args(&page.experiments);
    reproduce.args(["--full", "--force", "--out"]).arg(&out);
    eprintln!("{}: {}", page.name, page.experiments.join(" "));
    let status = reproduce.stdout(std::process::Stdio::null()).status()?;
    ensure!(status.success(), "the experiments of {} failed", page.name);
    let rows = workspace.root.join(page.file("jsonl"));
    fs::copy(out.join("results.jsonl"), rows)?;
    Ok(())
}

/// The text of a page of experiments, from its rows.
fn made(workspace: &Workspace, page: &Page) -> Result<String> {
    let file = page.file("jsonl");
    let text = fs::read_to_string(workspace.root.join(&file))
        .with_context(|| format!("cannot read {}", file.display()))?;
    let results = rows::Results::read(&text).with_context(|| file.display().to_string())?;
    page::markdown(page, &results)
}

/// Runs another command, and keeps what it prints.
fn print_page(workspace: &Workspace, page: &Page, command: &str) -> Result<()> {
    eprintln!("{}: {command}", page.name);
    let mut words = command.split_whitespace();
    let program = words.next().context("an empty command")?;
    let motet;
    let program = match program {
        "motet" => {
            motet = workspace.release_motet()?;
            motet.as_path()
        }
        other => Path::new(other),
    };
    let mut printing = Command::new(program);
    printing.args(words).current_dir(&workspace.root);
    let log = workspace
        .scratch()?
        .join(format!("evidence-{}.log", page.name));
    let output = printing
        .stderr(fs::File::create(&log)?)
        .output()
        .with_context(|| format!("cannot run `{command}`"))?;
    // Commands of xtask end with 1 where what they print misses something, and with 2 on errors.
    let is_whole = match output.status.code() {
        Some(1) => command.starts_with("cargo xtask"),
        code => code == Some(0),
    };
    ensure!(is_whole, "`{command}` failed, see {}", log.display());
    fs::write(workspace.root.join(page.file("md")), output.stdout)?;
    Ok(())
}

/// Where the pages are.
const FOLDER: &str = "docs/evidence";

/// What pages there are.
const LIST: &str = "pages.toml";
