//! Runs the commands of a page in one shell, in a folder of its own with a copy of the project.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::page::Command as PageCommand;

/// Where and as whom a page runs.
pub(super) struct Place<'p> {
    /// The project.
    pub(super) root: &'p Path,
    /// The page's own folder, made anew.
    pub(super) folder: &'p Path,
    /// Has the command `motet`, and is readable for everybody.
    pub(super) programs: &'p Path,
    /// Cargo's folder for what it builds.
    pub(super) target: &'p Path,
    /// How long one command may take.
    pub(super) limit: Duration,
}

/// What became of a command.
pub(super) struct Ran {
    pub(super) status: Status,
    pub(super) took: Duration,
    /// Its output, both streams.
    pub(super) output: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ended(i32),
    /// The limit passed; what follows on the page was not run.
    TooLong,
    /// A command before it took too long, or ended the shell.
    NotRun,
}

/// Runs the commands in order. Each has its outcome, and none ends the shell.
pub(super) fn run(place: &Place<'_>, commands: &[&PageCommand]) -> Result<Vec<Ran>> {
    copy_project(place)?;
    let outputs = place.folder.join(".git/outputs");
    // Programs keep no state in the developer's home.
    let home = outputs.join("home");
    fs::create_dir_all(&home)?;
    let script = outputs.join("script.sh");
    fs::write(&script, script_of(commands, &outputs))?;
    // Root's own Cargo is out of another user's reach.
    let builds = commands
        .iter()
        .any(|command| command.text.contains("cargo "));
    let user = ordinary_user().filter(|_| !builds);
    if user.is_some() {
        let chown = Command::new("chown")
            .args(["-R", "nobody:nogroup"])
            .arg(place.folder)
            .status()?;
        ensure!(chown.success(), "cannot give the page's folder to `nobody`");
    }
    let mut shell = user.unwrap_or_else(|| Command::new("bash"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(place.programs.to_owned()).chain(std::env::split_paths(&path));
    shell
        .arg(&script)
        .current_dir(place.folder)
        .env("PATH", std::env::join_paths(path)?)
        .env("XDG_STATE_HOME", home.join("state"))
        .env("XDG_RUNTIME_DIR", home.join("run"))
        .env("CARGO_TARGET_DIR", place.target)
        .env_remove("MOTET_SHARED")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if !builds {
        shell.env("HOME", &home);
    }
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let child = shell.spawn().context("cannot run bash")?;
    follow(child, place, commands, &outputs)
}

/// Reads a line for each command that has ended, until all have or one takes too long.
fn follow(
    mut child: Child,
    place: &Place<'_>,
    commands: &[&PageCommand],
    outputs: &Path,
) -> Result<Vec<Ran>> {
    let stdout = child.stdout.take().context("bash has no output")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody listens any more: the page has failed.
            let _ = sender.send(line);
        }
    });
    let mut ran = Vec::new();
    let mut lost = None;
    for index in 0..commands.len() {
        let start = Instant::now();
        let status = lost.unwrap_or_else(|| match receiver.recv_timeout(place.limit) {
            Ok(line) => line.parse().map_or(Status::NotRun, Status::Ended),
            Err(RecvTimeoutError::Timeout) => Status::TooLong,
            Err(RecvTimeoutError::Disconnected) => Status::NotRun,
        });
        if !matches!(status, Status::Ended(_)) {
            lost = Some(Status::NotRun);
        }
        let output = fs::read(output_file(outputs, index)).unwrap_or_default();
        ran.push(Ran {
            status,
            took: start.elapsed(),
            output: String::from_utf8_lossy(&output).into_owned(),
        });
    }
    // What a page leaves in the background ends with it.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill")
        .args(["-TERM", "--", &group])
        .stderr(Stdio::null())
        .status();
    if lost.is_some() {
        thread::sleep(Duration::from_millis(500));
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
    }
    child.wait()?;
    Ok(ran)
}

fn output_file(outputs: &Path, index: usize) -> PathBuf {
    outputs.join(format!("{index}.log"))
}

/// Each command as written, its streams in a file; then its status on the shell's own output. A
/// pipe fails with any of its parts.
fn script_of(commands: &[&PageCommand], outputs: &Path) -> String {
    let mut script = String::from("set -o pipefail\nexec 3>&1\n");
    for (index, command) in commands.iter().enumerate() {
        let file = output_file(outputs, index);
        script.push_str(&format!(
            "exec >'{}' 2>&1 <&-\n{}\necho $? >&3\n",
            file.display(),
            command.text
        ));
    }
    script
}

/// The shell of a user without rights, where this one is root.
fn ordinary_user() -> Option<Command> {
    let is_root = fs::metadata("/proc/self")
        .is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0);
    if !is_root {
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=nobody",
        "--regid=nogroup",
        "--clear-groups",
        "bash",
    ]);
    Some(command)
}

/// A clone of the project, with the changes that are not committed.
fn copy_project(place: &Place<'_>) -> Result<()> {
    let _ = fs::remove_dir_all(place.folder);
    let git = |arguments: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(place.root)
            .output()
            .context("cannot run git")?;
        ensure!(
            output.status.success(),
            "git: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(output.stdout)
    };
    let folder = place.folder.to_string_lossy();
    git(&["clone", "--quiet", "--shared", ".", &folder])?;
    let changed = git(&["diff", "-z", "--name-only", "HEAD"])?;
    let new = git(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    for name in [changed, new].concat().split(|&byte| byte == 0) {
        let name = String::from_utf8_lossy(name);
        if name.is_empty() {
            continue;
        }
        let (from, to) = (place.root.join(&*name), place.folder.join(&*name));
        if from.is_file() {
            fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            fs::copy(&from, &to).with_context(|| format!("cannot copy {name}"))?;
        } else {
            let _ = fs::remove_file(to);
        }
    }
    Ok(())
}
