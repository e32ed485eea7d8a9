//! The step `test`: every test of the workspace, binaries side by side, and what failed once more.
//!
//! Place: Cargo builds; this module starts what Cargo built, as Cargo would, but not one binary
//! after the other, since many tests wait for time to pass. Documentation's tests are Cargo's. Left
//! out: anything that is chosen by hand, for which there is `cargo test`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::step::{StepOutcome, TestCount, count_tests, essence, run_logged};
use crate::workspace::{Workspace, locked};

/// Binaries that try what this machine's kernel does with their packets: never two at once.
const ALONE: [&str; 4] = ["router", "linux", "kernel", "agree"];

/// The binaries that take longest, longest first; those of [`ALONE`] come after the first.
const LONGEST: [&str; 4] = ["motet_lab", "command", "motet", "lab"];

/// Tests that for the most part wait, for programs that they start and for time to pass: twice as
/// many at once as there are cores.
const WAITING: &str = "command";

/// With more failures than this the change is at fault, not chance.
const RETRIED_MAX: usize = 10;

/// A binary of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Binary {
    /// Its name without Cargo's number.
    name: String,
    program: PathBuf,
    /// The folder of its package, where Cargo lets it run.
    folder: PathBuf,
}

/// What came of a binary.
struct Outcome {
    binary: Binary,
    good: bool,
    output: String,
}

/// All tests of the workspace, counted one by one.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let scratch = workspace.scratch()?;
    let mut build = workspace.linted_test();
    build.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    build.args(locked());
    let (built, output) = run_logged(&mut build, &scratch.join("test-build.log"))?;
    if !built {
        let output = output.lines().filter(|line| !line.starts_with('{'));
        let output: String = output.map(|line| format!("{line}\n")).collect();
        return Ok(StepOutcome::single(false, "", essence(&output)));
    }
    let outcomes = run_all(batches(binaries(&output)?), &scratch)?;
    let mut sum = Sum::default();
    let named: usize = outcomes
        .iter()
        .map(|outcome| outcome.failures().len())
        .sum();
    for outcome in outcomes {
        let retried = named <= RETRIED_MAX;
        sum.add(&outcome, retried, &scratch)?;
    }
    let mut documentation = workspace.linted_test();
    documentation.args(["--doc", "--no-fail-fast"]);
    documentation.args(locked());
    let (good, output) = run_logged(&mut documentation, &scratch.join("test-doc.log"))?;
    sum.add_run(good, &output);
    Ok(sum.outcome())
}

/// The libraries' unit tests, the lab's longest ones with all of their cases: without this they try
/// some of them.
pub(crate) fn check_long(workspace: &Workspace) -> Result<StepOutcome> {
    // The tests of all libraries, so that the build is that of `check`.
    let mut tests = workspace.linted_test();
    tests.args(["--lib", "--no-fail-fast"]).args(locked());
    tests.env("MOTET_LONG", "1");
    let log = workspace.scratch()?.join("test-long.log");
    let (good, output) = run_logged(&mut tests, &log)?;
    let mut sum = Sum::default();
    sum.add_run(good, &output);
    Ok(sum.outcome())
}

/// What the tests gave so far.
#[derive(Default)]
struct Sum {
    count: TestCount,
    flaky: Vec<String>,
    output: String,
}

impl Sum {
    /// Counts what came of a binary, after running its failures once more.
    fn add(&mut self, first: &Outcome, retried: bool, scratch: &Path) -> Result<()> {
        let mut count = count_tests(&first.output);
        let mut good = first.good;
        if !first.good {
            self.output.push_str(&essence(&first.output));
            self.output.push('\n');
        }
        if !first.good && retried {
            let names = first.failures();
            let mut is_all_flaky = true;
            for name in &names {
                let again = first.binary.run(name.as_deref(), true, scratch)?;
                let again_count = count_tests(&again.output);
                // A name that selects nothing proves nothing.
                if again.good && (name.is_none() || again_count.passed == 1) {
                    self.flaky.push(first.binary.test(name.as_deref()));
                    if name.is_some() {
                        count.failed = count.failed.saturating_sub(1);
                        count.passed += 1;
                    } else {
                        count = again_count;
                    }
                } else {
                    is_all_flaky = false;
                    self.output.push_str("once more, alone:\n");
                    self.output.push_str(&essence(&again.output));
                    self.output.push('\n');
                }
            }
            good = is_all_flaky;
        }
        self.count(good, &count);
        Ok(())
    }

    /// Counts what Cargo has run by itself.
    fn add_run(&mut self, good: bool, output: &str) {
        self.count(good, &count_tests(output));
        self.output.push_str(&essence(output));
    }

    /// A binary that does not run to its end names no failed test, and has failed all the same.
    fn count(&mut self, good: bool, count: &TestCount) {
        self.count.passed += count.passed;
        self.count.ignored += count.ignored;
        self.count.failed += match good {
            true => count.failed,
            false => count.failed.max(1),
        };
    }

    fn outcome(self) -> StepOutcome {
        let TestCount {
            passed,
            failed,
            ignored,
        } = self.count;
        let mut note = format!("{passed} passed, {failed} failed");
        if ignored > 0 {
            note.push_str(&format!(", {ignored} ignored"));
        }
        StepOutcome {
            passed,
            failed,
            note,
            output: self.output,
            flaky: self.flaky,
        }
    }
}

impl Binary {
    /// Runs all its tests, or one; the log of the first run stays beside that of a later one.
    fn run(&self, test: Option<&str>, is_again: bool, scratch: &Path) -> Result<Outcome> {
        let file = self.program.file_name().context("a program has a name")?;
        let end = if is_again { "again.log" } else { "log" };
        let log = scratch.join("test").join(file).with_extension(end);
        let mut command = Command::new(&self.program);
        command
            .args(test.map(|name| [name, "--exact"]).into_iter().flatten())
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_TERM_COLOR", "never");
        if self.name == WAITING {
            command.env("RUST_TEST_THREADS", (2 * cores()).to_string());
        }
        let (good, output) = run_logged(&mut command, &log)?;
        let output = format!("Running {}\n{output}", self.program.display());
        Ok(Outcome {
            binary: self.clone(),
            good,
            output,
        })
    }

    /// How the summary names a test of it, or all of it.
    fn test(&self, name: Option<&str>) -> String {
        let package = self.folder.file_name().unwrap_or_default().display();
        match name {
            Some(name) => format!("{package}/{}::{name}", self.name),
            None => format!("{package}/{}", self.name),
        }
    }
}

impl Outcome {
    /// What has to run once more: the tests that failed, or the binary where it names none.
    fn failures(&self) -> Vec<Option<String>> {
        let names: Vec<_> = failed_tests(&self.output).into_iter().map(Some).collect();
        match (self.good, names.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![None],
            (false, false) => names,
        }
    }
}

/// The names in the last list of failures that Rust's test harness prints: one a line, indented, up
/// to an empty line. A list that says other things as well names nothing.
fn failed_tests(output: &str) -> Vec<String> {
    let Some((_, list)) = output.rsplit_once("\nfailures:\n") else {
        return Vec::new();
    };
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.map(|line| line.strip_prefix("    ").filter(|name| !name.contains(' ')));
    let names: Option<Vec<_>> = names.map(|name| name.map(str::to_owned)).collect();
    names.unwrap_or_default()
}

/// What Cargo says about one thing that it built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The binaries of tests that Cargo names in its messages, which stand among words for people.
fn binaries(messages: &str) -> Result<Vec<Binary>> {
    const MESSAGE: &str = "{\"reason\":\"compiler-artifact\"";
    let mut binaries = Vec::new();
    for line in messages.lines() {
        // Wherever on the line it begins: none may be lost, with the tests in it.
        let Some(start) = line.find(MESSAGE) else {
            continue;
        };
        let artifact: Artifact = serde_json::from_str(&line[start..])
            .with_context(|| format!("cargo says what is no message: {line}"))?;
        if let (true, Some(program)) = (artifact.profile.test, artifact.executable) {
            let folder = artifact.manifest_path.parent();
            binaries.push(Binary {
                name: artifact.target.name,
                program,
                folder: folder.context("a package has a folder")?.to_owned(),
            });
        }
    }
    Ok(binaries)
}

/// What may run side by side, longest first: a binary each, but all of [`ALONE`] in one.
fn batches(binaries: Vec<Binary>) -> Vec<Vec<Binary>> {
    let (alone, mut others): (Vec<_>, Vec<_>) = binaries
        .into_iter()
        .partition(|binary| ALONE.contains(&binary.name.as_str()));
    let place = |name: &str| LONGEST.iter().position(|longest| *longest == name);
    others.sort_by_key(|binary| place(&binary.name).unwrap_or(LONGEST.len()));
    let mut batches: Vec<_> = others.into_iter().map(|binary| vec![binary]).collect();
    if !alone.is_empty() {
        batches.insert(batches.len().min(1), alone);
    }
    batches
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs as many batches at a time as there are cores.
fn run_all(batches: Vec<Vec<Binary>>, scratch: &Path) -> Result<Vec<Outcome>> {
    let logs = scratch.join("test");
    std::fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let queue = Mutex::new(batches.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        while let Some(batch) = next() {
            for binary in batch {
                outcomes.push(binary.run(None, false, scratch)?);
            }
        }
        Ok(outcomes)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores()).map(|_| scope.spawn(work)).collect();
        let mut outcomes = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(some) => outcomes.extend(some?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(outcomes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(name: &str) -> Binary {
        Binary {
            name: name.to_owned(),
            program: PathBuf::from("/t/debug/deps").join(name),
            folder: PathBuf::from("/w/crates/lab"),
        }
    }

    #[test]
    fn the_last_list_names_the_tests_that_failed() {
        let output = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n\nfailures:\n\
            not this one\n\nfailures:\n    a::b\n    c\n\ntest result: FAILED. 3 passed; 2 failed\n";
        assert_eq!(failed_tests(output), ["a::b", "c"]);
        assert_eq!(failed_tests("test result: ok. 3 passed\n"), [""; 0]);
        assert_eq!(failed_tests("\nfailures:\nother words\n"), [""; 0]);
    }

    #[test]
    fn binaries_of_tests_are_found_among_other_messages() {
        let messages = "   Compiling lab\n\
            {\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/crates/lab/Cargo.toml\",\
            \"target\":{\"name\":\"pace\"},\"profile\":{\"test\":true},\
            \"executable\":\"/t/debug/deps/pace\"}\n\
            warn{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/w/crates/lab/Cargo.toml\",\
            \"target\":{\"name\":\"lab\"},\"profile\":{\"test\":false},\"executable\":null}\n\
            {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(binaries(messages).unwrap(), [binary("pace")]);
        assert!(binaries("{\"reason\":\"compiler-artifact\",\"mani").is_err());
    }

    #[test]
    fn the_longest_begins_and_what_is_alone_stays_together() {
        let names = ["pace", "kernel", "motet_lab", "router"];
        let batches = batches(names.map(binary).to_vec());
        let names: Vec<Vec<_>> = batches
            .iter()
            .map(|batch| batch.iter().map(|binary| binary.name.as_str()).collect())
            .collect();
        assert_eq!(
            names,
            [vec!["motet_lab"], vec!["kernel", "router"], vec!["pace"]]
        );
    }

    /// What fails by chance counts as passed, with its name; what fails twice has failed.
    #[cfg(unix)]
    #[test]
    fn what_fails_is_run_once_more() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("xtask-flaky-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("test")).unwrap();
        let program = folder.join("some");
        // A harness whose test `chance` passes alone, and whose test `never` does not.
        let script = "#!/bin/sh\n[ \"$1\" = chance ] && { echo 'test result: ok. 1 passed; 0 failed'; exit; }\n\
            printf '\\nfailures:\\n    chance\\n    never\\n\\ntest result: FAILED. 5 passed; 2 failed\\n'\nexit 101\n";
        std::fs::write(&program, script).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let binary = Binary {
            name: "some".to_owned(),
            program,
            folder: folder.clone(),
        };
        let first = binary.run(None, false, &folder).unwrap();
        let mut sum = Sum::default();
        sum.add(&first, true, &folder).unwrap();
        let outcome = sum.outcome();
        assert_eq!((outcome.passed, outcome.failed), (6, 1));
        assert_eq!(outcome.flaky.len(), 1);
        assert!(outcome.flaky[0].ends_with("/some::chance"));
        let mut sum = Sum::default();
        sum.add(&first, false, &folder).unwrap();
        assert_eq!(sum.outcome().failed, 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
