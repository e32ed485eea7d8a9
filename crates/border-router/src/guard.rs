//! A command that ends with the process that started it, however that process ends.
//!
//! A mesh lives as long as its process, and a command beside the mesh has no business without it.
//! A process that is killed can end nothing any more, so a guard stands in between: a small
//! process that starts the command, waits for it, and has the kernel send it a signal when its
//! own parent dies. The guard then kills the command and every process that the command has
//! started. If the guard itself is killed, its parent inherits those processes and kills them.
//!
//! Left out: processes that a command leaves behind when it ends by itself. They live on, as they
//! would below any shell. When parent and guard are both killed outright, no process is left to
//! act.
//!
//! Sources: prctl(2), `PR_SET_PDEATHSIG` and `PR_SET_CHILD_SUBREAPER`; signal(7); proc(5).

use std::{
    fs,
    io::{self, PipeReader, Read as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
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
    /// The command ended by itself, with this exit status: 128 plus the signal's number where a
    /// signal ended it, as shells report it.
    Exited(u8),
    /// The guard killed the command, or never started it: the guard's parent is gone, or a signal
    /// said that the command must end.
    Killed,
}

/// Runs `command` until it ends or the process `parent` ends, which must be this process's own
/// parent.
///
/// Call it in a process that has nothing else to do, before any thread exists. SIGINT and SIGQUIT
/// are the command's business; SIGTERM and SIGHUP end it. If SIGINT is blocked, this function
/// unblocks it, and a SIGINT that was pending reaches the command.
///
/// # Errors
/// What [`Command::spawn`] reports when the command cannot be started. No part of the command
/// runs then.
pub fn watch(parent: u32, command: &mut Command) -> io::Result<Ending> {
    // All that can fail comes before the command starts. From then on, each way out of this
    // function has either seen the command end or kills it.
    let mut signals = Signals::note()?;
    prctl::set_child_subreaper(true)?;
    prctl::set_pdeathsig(Signal::SIGTERM)?;
    // The parent may have died before the kernel knew that its death matters.
    if getppid() != Pid::from_raw(parent.cast_signed()) || signals.ask_for_the_end() {
        return Ok(Ending::Killed);
    }
    // Handlers do not outlive exec(2): the command gets the signals as it would from a shell.
    let child = match command.spawn() {
        Ok(child) => Pid::from_raw(child.id().cast_signed()),
        Err(error) => {
            kill_all();
            return Err(error);
        }
    };
    // The terminal's Ctrl-C reaches whatever runs: one that came too early for the command has
    // met the guard alone.
    if signals.interrupted.load(Ordering::Relaxed) {
        let _ = kill(child, Signal::SIGINT);
    }
    loop {
        if signals.ask_for_the_end() {
            kill_all();
            return Ok(Ending::Killed);
        }
        if let Some(status) = reap(child) {
            return Ok(Ending::Exited(status));
        }
        if signals.wait().is_err() {
            kill_all();
            return Ok(Ending::Killed);
        }
    }
}

/// The signals that a guard waits for.
struct Signals {
    /// The pipe gets a byte with each signal.
    wake: PipeReader,
    /// Whether a signal came that ends the command.
    end: Arc<AtomicBool>,
    /// Whether a SIGINT came.
    interrupted: Arc<AtomicBool>,
}

impl Signals {
    /// Starts noting the signals. A signal that is ignored stays ignored, for the command too:
    /// hang-ups below nohup(1), Ctrl-C in the background. SIGTERM alone is always noted: it says
    /// that the parent is dead.
    fn note() -> io::Result<Self> {
        let (wake, woken) = io::pipe()?;
        let (end, interrupted) = (Arc::default(), Arc::default());
        let is_heeded = |signal: &Signal| !is_ignored(*signal as i32);
        let (always, unless_ignored) = (
            [Signal::SIGCHLD, Signal::SIGTERM],
            [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT],
        );
        for signal in always
            .into_iter()
            .chain(unless_ignored.into_iter().filter(is_heeded))
        {
            // The flag is registered before the byte: the byte makes the main loop look at it.
            match signal {
                Signal::SIGTERM | Signal::SIGHUP => {
                    signal_hook::flag::register(signal as i32, Arc::clone(&end))?;
                }
                Signal::SIGINT => {
                    signal_hook::flag::register(signal as i32, Arc::clone(&interrupted))?;
                }
                _ => {}
            }
            signal_hook::low_level::pipe::register(signal as i32, woken.try_clone()?)?;
        }
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGINT);
        blocked.thread_unblock()?;
        Ok(Self {
            wake,
            end,
            interrupted,
        })
    }

    /// Whether a signal came that ends the command.
    fn ask_for_the_end(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Waits for any of the signals.
    fn wait(&mut self) -> io::Result<()> {
        match self.wake.read(&mut [0; 64]) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether this process ignores a signal, by its number, as processes below nohup(1) do.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, signal)
}

/// As [`is_ignored`], of the process whose `/proc/PID/status` this is.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(signal - 1).ok();
    let bit = bit.and_then(|bit| 1_u64.checked_shl(bit));
    mask.zip(bit).is_some_and(|(mask, bit)| mask & bit != 0)
}

/// A guard as its parent holds it; dropping the value kills the guard and the command.
#[derive(Debug)]
pub struct Guard {
    process: Child,
    has_ended: bool,
}

impl Guard {
    /// Starts a guard: `command` is a program that calls [`watch`].
    ///
    /// # Errors
    /// What [`Command::spawn`] reports.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        // Where a parent left SIGCHLD ignored, no child could be waited for. No code reads the
        // flag.
        signal_hook::flag::register(Signal::SIGCHLD as i32, Arc::default())?;
        // A process whose guard was killed becomes a child of this process.
        prctl::set_child_subreaper(true)?;
        Ok(Self {
            process: command.spawn()?,
            has_ended: false,
        })
    }

    /// The guard's exit status once it has ended: the command's, see [`Ending`].
    ///
    /// # Errors
    /// What [`Child::try_wait`] reports.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = self.process.try_wait()?;
        if let Some(status) = ended {
            self.bury(status);
        }
        Ok(ended)
    }

    /// Makes the guard process kill the command that it guards, and waits until it has.
    fn dismiss(&mut self) -> io::Result<()> {
        let guard = Pid::from_raw(self.process.id().cast_signed());
        // A stopped guard acts only when it goes on. Both calls fail where the guard has ended
        // already.
        let _ = kill(guard, Signal::SIGTERM);
        let _ = kill(guard, Signal::SIGCONT);
        let status = self.process.wait()?;
        self.bury(status);
        Ok(())
    }

    fn bury(&mut self, status: ExitStatus) {
        self.has_ended = true;
        // A guard that was killed could not do its work.
        if status.signal().is_some() {
            kill_all();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.has_ended && self.dismiss().is_err() {
            kill_all();
        }
    }
}

/// Buries the dead; gives the exit status of `child` once it is among them.
fn reap(child: Pid) -> Option<u8> {
    loop {
        let (pid, status) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) => (pid, status),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32),
            Err(Errno::EINTR) => continue,
            // No child has died, or no child is left.
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
            // The process may have died meanwhile; it is buried below then.
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

    #[test]
    fn an_ignored_signal_is_found_by_its_bit() {
        // SIGHUP is 1, SIGINT 2, SIGTERM 15.
        let status = "Name:\tsh\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000004001\n";
        let cases = [(1, true), (2, false), (15, true), (0, false), (65, false)];
        for (signal, expected) in cases {
            assert_eq!(ignores(status, signal), expected, "{signal}");
        }
        assert!(!ignores("", 1));
        assert!(!ignores("SigIgn: none", 1));
    }
}
