//! One step of the check: a command or a function, its outcome and its output.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What a step gives.
#[derive(Default)]
pub(crate) struct StepOutcome {
    /// Checks that held; a step without tests of its own counts as one check.
    pub(crate) passed: u32,
    /// Checks that did not hold.
    pub(crate) failed: u32,
    /// A few words beside the step's name.
    pub(crate) note: String,
    /// What to show when something failed.
    pub(crate) output: String,
    /// Checks that failed once and then held: they count as held, and are named.
    pub(crate) flaky: Vec<String>,
}

impl StepOutcome {
    /// The outcome of a step that is one check.
    pub(crate) fn single(good: bool, note: impl Into<String>, output: impl Into<String>) -> Self {
        Self {
            passed: u32::from(good),
            failed: u32::from(!good),
            note: note.into(),
            output: output.into(),
            flaky: Vec::new(),
        }
    }
}

/// When this program has to be done in continuous integration, which ends it after 90 minutes
/// without a word. A step has no limit of its own: how long one takes depends on what else the
/// machine does.
const RUN_LIMIT: Duration = Duration::from_secs(85 * 60);

/// When this program began.
static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Begins the time that [`RUN_LIMIT`] bounds.
pub(crate) fn start_clock() {
    BEGAN.get_or_init(Instant::now);
}

/// What is left of [`RUN_LIMIT`].
fn time_left() -> Duration {
    RUN_LIMIT.saturating_sub(BEGAN.get_or_init(Instant::now).elapsed())
}

/// Whether this is continuous integration: a missing tool then is a failure, never skipped.
pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

/// Runs `command` with both its streams going into the file `log`, in the order written.
///
/// Returns whether the command succeeded, and all it printed. In continuous integration a command
/// that still runs at the end of [`RUN_LIMIT`] is ended, with every process it started; elsewhere
/// the developer ends it.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<(bool, String)> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    if in_ci() {
        own_group(command);
    }
    let program = command.get_program().display().to_string();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{program}`"))?;
    let status = if in_ci() {
        wait(&mut child, time_left())?
    } else {
        Some(child.wait()?)
    };
    if status.is_none() {
        end_group(&child);
        child.wait()?;
    }
    let output = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    let mut output = String::from_utf8_lossy(&output).into_owned();
    if status.is_none() {
        let minutes = RUN_LIMIT.as_secs() / 60;
        output.push_str(&format!(
            "\nended: the whole check may take {minutes} minutes, and they were over\n"
        ));
    }
    Ok((status.is_some_and(|status| status.success()), output))
}

/// Waits until the child ends; none when it takes longer than `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command and all it starts can then be ended at once; the terminal's Ctrl-C, on the
/// other hand, no longer reaches them.
fn own_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(not(unix))]
    let _ = command;
}

fn end_group(child: &Child) {
    // A process that is gone already need not be ended.
    let _ = Command::new("kill")
        .args(["-KILL", "--", &format!("-{}", child.id())])
        .status();
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCount {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) ignored: u32,
}

/// Sums the "test result:" lines, one of which every test binary prints.
pub(crate) fn count_tests(output: &str) -> TestCount {
    let mut sum = TestCount::default();
    for line in output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("test result: "))
    {
        for part in line.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u32>() else {
                continue;
            };
            match what {
                "passed" => sum.passed += number,
                "failed" => sum.failed += number,
                "ignored" => sum.ignored += number,
                _ => {}
            }
        }
    }
    sum
}

/// The output without the lines of success.
pub(crate) fn essence(output: &str) -> String {
    const PROGRESS: &[&str] = &[
        "Compiling ",
        "Checking ",
        "Documenting ",
        "Downloading ",
        "Downloaded ",
        "Locking ",
    ];
    let boring = |line: &str| {
        let line = line.trim();
        (line.starts_with("test ") && line.ends_with("... ok"))
            || PROGRESS.iter().any(|word| line.starts_with(word))
    };
    output
        .lines()
        .filter(|line| !boring(line))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 2 tests
test a ... ok
test b ... FAILED

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

   Doc-tests motet
test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 1.52s
";

    #[test]
    fn test_results_are_summed_over_binaries() {
        assert_eq!(
            count_tests(OUTPUT),
            TestCount {
                passed: 13,
                failed: 1,
                ignored: 3
            }
        );
        assert_eq!(
            count_tests("error: could not compile `motet`"),
            TestCount::default()
        );
    }

    #[test]
    fn failures_stay_and_passes_go() {
        let kept = essence(OUTPUT);
        assert!(kept.contains("test b ... FAILED"));
        assert!(!kept.contains("test a"));
    }
}
