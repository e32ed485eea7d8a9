//! `cargo xtask docs`: the commands of README, guides and references, run as they are written.
//!
//! Each page has a copy of the project and one shell, in which its commands run in their order, as
//! a user without rights. Fences marked `hardware`, `root` or `long` are read beside `--help`
//! alone; the check leaves out those marked `slow`, too.

mod help;
mod page;
mod shell;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};

use crate::step::StepOutcome;
use crate::workspace::Workspace;

use self::help::Help;
use self::page::{Mark, Page};
use self::shell::{Place, Status};

/// Pages outside `docs/guide` and `docs/reference`.
const PAGES: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "docs/README.md",
    "docs/security.md",
    "crates/capi/README.md",
    "crates/cli/README.md",
    "crates/conformance/README.md",
    "crates/fuzz-targets/README.md",
    "crates/packetdrill/README.md",
    "python/README.md",
    "web/README.md",
];

/// How long a command may take in the check: twelve times the five seconds that a page should keep
/// to, because other steps run beside it.
const CHECK_LIMIT: Duration = Duration::from_secs(60);
/// The same for `cargo xtask docs`, which builds.
const DOCS_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Pages that the check runs side by side: for the most part they wait for simulated air.
const SIDE_BY_SIDE: usize = 3;

/// Runs all pages, or those named; prints a line for each command. Gives whether all held.
pub(crate) fn run(workspace: &Workspace, only: &[PathBuf], motet: Option<&Path>) -> Result<bool> {
    let motet = motet.map_or_else(|| workspace.release_motet(), |motet| Ok(motet.to_owned()))?;
    let judge = Judge::new(workspace, &motet, true)?;
    let mut outcome = StepOutcome::default();
    let pages = pages(&workspace.root)?;
    for name in only {
        ensure!(
            pages.iter().any(|page| page.path == *name),
            "{} is no page with commands; README.md and docs/guide/router.md are",
            name.display()
        );
    }
    for page in pages {
        if only.is_empty() || only.contains(&page.path) {
            judge.page(&page, &mut outcome)?;
        }
    }
    print!("{}", outcome.output);
    println!("{} passed, {} failed", outcome.passed, outcome.failed);
    Ok(outcome.failed == 0)
}

/// The step `docs`: what takes less than five seconds, and the rest beside `--help`.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let judge = Judge::new(workspace, &workspace.debug_motet()?, false)?;
    let pages = pages(&workspace.root)?;
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(StepOutcome::default());
    thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut outcome = StepOutcome::default();
                judge.page(page, &mut outcome)?;
                let mut sum = sum
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                sum.passed += outcome.passed;
                sum.failed += outcome.failed;
                sum.output.push_str(&outcome.output);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let mut outcome = sum.into_inner().unwrap_or_default();
    outcome.note = format!("{} commands of {} pages", outcome.passed, pages.len());
    Ok(outcome)
}

/// Pages with commands, in the order of their names.
fn pages(root: &Path) -> Result<Vec<Page>> {
    let mut paths: Vec<PathBuf> = PAGES.iter().map(PathBuf::from).collect();
    for folder in ["docs/guide", "docs/reference"] {
        for entry in fs::read_dir(root.join(folder)).context(folder)? {
            let name = entry?.file_name();
            paths.push(Path::new(folder).join(name));
        }
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let mut pages = Vec::new();
    for path in paths {
        pages.push(Page::read(root, path)?);
    }
    pages.retain(|page| !page.commands.is_empty());
    Ok(pages)
}

/// Runs and reads commands.
struct Judge<'w> {
    workspace: &'w Workspace,
    help: Help,
    /// Has the command `motet`.
    programs: PathBuf,
    /// Where pages have their folders.
    scratch: PathBuf,
    /// Whether those marked `slow` are run, too.
    slow: bool,
}

impl<'w> Judge<'w> {
    fn new(workspace: &'w Workspace, motet: &Path, slow: bool) -> Result<Self> {
        let scratch = workspace.scratch()?.join("docs");
        let programs = scratch.join("programs");
        fs::create_dir_all(&programs)?;
        let copy = programs.join("motet");
        fs::copy(motet, &copy).context("cannot copy the command")?;
        Ok(Self {
            workspace,
            help: Help::new(&copy)?,
            programs,
            scratch,
            slow,
        })
    }

    fn page(&self, page: &Page, outcome: &mut StepOutcome) -> Result<()> {
        let runs = |mark: Mark| mark == Mark::None || (mark == Mark::Slow && self.slow);
        let at = |line: usize| format!("{}:{line}", page.path.display());
        for command in page.commands.iter().filter(|command| !runs(command.mark)) {
            match self.help.judge(&command.text) {
                Ok(0) => {}
                Ok(_) => outcome.passed += 1,
                Err(error) => {
                    let place = at(command.line);
                    fail(outcome, &format!("{place}: {}\n  {error}\n", command.text));
                }
            }
        }
        let commands: Vec<_> = page
            .commands
            .iter()
            .filter(|command| runs(command.mark))
            .collect();
        if commands.is_empty() {
            return Ok(());
        }
        // One path for all that build, so that Cargo finds what the page before has built.
        let name = match self.slow {
            true => "page".to_owned(),
            false => page.path.to_string_lossy().replace('/', "-"),
        };
        let place = Place {
            root: &self.workspace.root,
            folder: &self.scratch.join(name),
            programs: &self.programs,
            target: &self.scratch.join("target"),
            limit: if self.slow { DOCS_LIMIT } else { CHECK_LIMIT },
        };
        let ran = shell::run(&place, &commands).with_context(|| page.path.display().to_string())?;
        for (command, ran) in commands.iter().zip(&ran) {
            let place = at(command.line);
            if self.slow {
                let seconds = ran.took.as_secs_f32();
                eprintln!("{seconds:>7.1} s  {place}: {}", command.text);
            }
            let what = match ran.status {
                Status::Ended(0) => {
                    outcome.passed += 1;
                    continue;
                }
                Status::Ended(status) => format!("ended with {status}"),
                Status::TooLong => format!("took more than {} s", self.limit_s()),
                Status::NotRun => "not run, for what stands before it".to_owned(),
            };
            let output = tail(&ran.output);
            fail(
                outcome,
                &format!("{place}: {}\n  {what}\n{output}", command.text),
            );
        }
        if outcome.failed == 0 {
            fs::remove_dir_all(place.folder)?;
        }
        Ok(())
    }

    const fn limit_s(&self) -> u64 {
        if self.slow { DOCS_LIMIT } else { CHECK_LIMIT }.as_secs()
    }
}

fn fail(outcome: &mut StepOutcome, text: &str) {
    outcome.failed += 1;
    outcome.output.push_str(text);
}

/// The last lines of an output, indented.
fn tail(output: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = output.lines().collect();
    let skipped = lines.len().saturating_sub(LINES);
    let kept = lines.iter().skip(skipped);
    kept.map(|line| format!("    {line}\n")).collect()
}
