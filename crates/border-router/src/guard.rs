//! A command that ends with the process that started it, however that ends.
//!
//! A mesh lives as long as its process, and a command beside the mesh has no business without
//! it. A killed process can end nothing, so a guard stands in between: a small process that
//! starts the command, waits for it, and is told by the kernel when its own parent has died.
//! It then kills the command and whatever that has started.
//!
//! Left out: what a command leaves behind when it ends by itself. That lives on, as it would
//! below any shell.
//!
//! Sources: prctl(2), `PR_SET_PDEATHSIG` and `PR_SET_CHILD_SUBREAPER`; proc(5).

use std::{
    fs, io,
    process::{Child, Command},
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::{
        prctl,
        signal::{SigSet, Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{Pid, getppid},
};

/// How a guarded command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By itself, with this exit status; 128 and its number where a signal ended it, as
    /// shells have it.
    Exited(u8),
    /// The guard killed it: its parent is gone, or asked for it.
    Killed,
}

/// Runs `command` until it ends, or the process `parent`, which must be this one's own.
///
/// Call it in a process that has nothing else to do, before any thread exists. SIGINT and
/// SIGQUIT are the command's business; SIGTERM and SIGHUP end it.
///
/// # Errors
/// When the command cannot be started: what [`Command::spawn`] reports.
pub fn watch(parent: u32, command: &mut Command) -> io::Result<Ending> {
    prctl::set_child_subreaper(true)?;
    let child = Pid::from_raw(command.spawn()?.id().cast_signed());
    // After the command has started: it would inherit the mask.
    let mut awaited = SigSet::empty();
    for signal in [
        Signal::SIGCHLD,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
    ] {
        awaited.add(signal);
    }
    awaited.thread_block()?;
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    // It may have died before it could be watched, and the command before SIGCHLD was.
    if getppid() != Pid::from_raw(parent.cast_signed()) {
        kill_all();
        return Ok(Ending::Killed);
    }
    loop {
        if let Some(status) = reap(child) {
            return Ok(Ending::Exited(status));
        }
        match awaited.wait()? {
            Signal::SIGTERM | Signal::SIGHUP => {
                kill_all();
                return Ok(Ending::Killed);
            }
            _ => {}
        }
    }
}

/// Asks a guard to kill what it guards, and waits until it has.
///
/// # Errors
/// What waitpid(2) reports.
pub fn dismiss(guard: &mut Child) -> io::Result<()> {
    // Fails where the guard has ended already.
    let _ = kill(Pid::from_raw(guard.id().cast_signed()), Signal::SIGTERM);
    guard.wait().map(drop)
}

/// Buries the dead; gives the exit status of `child` once it is among them.
fn reap(child: Pid) -> Option<u8> {
    loop {
        let (pid, status) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) => (pid, status),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32),
            Err(Errno::EINTR) => continue,
            // Nobody has died, or nobody is left.
            _ => return None,
        };
        if pid == child {
            return Some(u8::try_from(status).unwrap_or(u8::MAX));
        }
    }
}

/// Kills all descendants: as children die, theirs become ours.
fn kill_all() {
    for _ in 0..ROUNDS_MAX {
        for child in children() {
            // It may have died meanwhile; then it is buried below.
            let _ = kill(child, Signal::SIGKILL);
        }
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Err(Errno::ECHILD) => return,
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => {}
                _ => break,
            }
        }
        thread::sleep(ROUND);
    }
}

/// The children of this process.
fn children() -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let own = std::process::id();
    let child = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        (parent_of(&stat)? == own).then_some(Pid::from_raw(pid))
    };
    processes.flatten().filter_map(child).collect()
}

/// The fourth field of `/proc/PID/stat`. The second, a name, may hold blanks and brackets.
fn parent_of(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// How long killing goes on: a process that forks for ever could outrun it for ever.
const ROUNDS_MAX: usize = 2_000;
const ROUND: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_found_behind_any_name() {
        let cases = [
            ("12 (sh) S 7 12 12 0", Some(7)),
            ("12 (a) R 1 (b) S 9 12", Some(9)),
            ("12 () Z 4194303", Some(4_194_303)),
            ("12 (sh) S", None),
            ("12", None),
            ("", None),
        ];
        for (stat, parent) in cases {
            assert_eq!(parent_of(stat), parent, "{stat}");
        }
    }
}
