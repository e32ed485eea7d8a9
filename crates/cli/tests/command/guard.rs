//! A command of `motet up` ends with it, whatever ends which process of it, and when.
#![cfg(target_os = "linux")]

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::common::{self, motet};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// Random moments: a fixed sequence, so that a failure names its moment; what the machine does
/// meanwhile is the other half of chance.
struct Moments(u64);

impl Moments {
    /// The next one, `below` microseconds from now.
    fn next(&mut self, below_us: u64) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Duration::from_micros((self.0 >> 33) % below_us)
    }
}

/// An argument of sleep(1) that no other process has.
fn mark(test: u32, run: u32) -> String {
    format!("86400.{:08}{test}{run:05}", std::process::id())
}

/// The processes that were started with `mark`, and live.
fn marked(mark: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let has_mark = |pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        // Dead processes that are not buried yet have no words.
        words
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    };
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has_mark).collect()
}

/// What is left of `mark` once its end had time enough; it is killed then.
fn survivors(mark: &str, patience: Duration) -> usize {
    let give_up = Instant::now() + patience;
    loop {
        let left = marked(mark);
        if left.is_empty() || Instant::now() > give_up {
            for pid in &left {
                send(*pid, Signal::SIGKILL);
            }
            return left.len();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn send(pid: u32, signal: Signal) {
    // It may have ended meanwhile: that is no failure.
    let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
}

/// Those of `signals` that this process does not ignore: what it ignores (SIGHUP under nohup, say) its
/// children ignore, too.
fn heeded(signals: &[Signal]) -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    let is_heeded = |signal: &&Signal| ignored >> (**signal as i32 - 1) & 1 == 0;
    signals.iter().filter(is_heeded).copied().collect()
}

fn ends_within(process: &mut Child, patience: Duration) -> bool {
    let give_up = Instant::now() + patience;
    while process.try_wait().unwrap().is_none() {
        if Instant::now() > give_up {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn quiet(mut command: Command) -> Child {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The guard itself is ended: at random moments, and at the very moment its command appears.
#[test]
fn a_guard_ended_at_any_moment_takes_its_command_along() {
    let signals = heeded(&[Signal::SIGTERM, Signal::SIGHUP]);
    let mut moments = Moments(1);
    // What was left, and `usize::MAX` where the guard itself did not end.
    let mut left = Vec::new();
    for run in 0..120 {
        let mark = mark(1, run);
        let mut command = motet();
        command
            .args(["guard", &format!("--parent={}", std::process::id()), "--"])
            .args(["sleep", &mark]);
        let mut guard = quiet(command);
        let signal = signals[run as usize % signals.len()];
        if run % 3 == 0 {
            thread::sleep(moments.next(8_000));
        } else {
            let children = format!("/proc/{0}/task/{0}/children", guard.id());
            let give_up = Instant::now() + Duration::from_secs(5);
            while fs::read(&children).is_ok_and(|list| list.is_empty()) && Instant::now() < give_up
            {
                std::hint::spin_loop();
            }
        }
        send(guard.id(), signal);
        if !ends_within(&mut guard, Duration::from_secs(60)) {
            send(guard.id(), Signal::SIGKILL);
            guard.wait().unwrap();
            left.push((run, signal, usize::MAX));
        }
        let survivors = survivors(&mark, Duration::ZERO);
        if survivors > 0 {
            left.push((run, signal, survivors));
        }
    }
    assert!(
        left.is_empty(),
        "{} of 120 left something: {left:?}",
        left.len()
    );
}

/// `up` is ended at random moments, from its first step to long after its command has begun.
#[test]
fn an_up_ended_at_any_moment_takes_its_command_along() {
    const THREADS: u32 = 4;
    let signals = heeded(&[
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGKILL,
    ]);
    let signals = &signals;
    let kill_some = |thread: u32| {
        let mut moments = Moments(thread.into());
        // What was left, and `usize::MAX` where `up` itself did not end.
        let mut left = Vec::new();
        for run in 0..30 {
            let mark = mark(2, thread * 100 + run);
            let mut command = motet();
            command.args(["up", "--hops", "1", "--", "sh", "-c"]);
            // A session of its own, out of reach for signals to the group.
            command.arg(format!("setsid sleep {mark} & sleep {mark}; wait"));
            let mut up = quiet(command);
            let signal = signals[run as usize % signals.len()];
            let moment = moments.next(300_000);
            thread::sleep(moment);
            send(up.id(), signal);
            if !ends_within(&mut up, Duration::from_secs(60)) {
                send(up.id(), Signal::SIGKILL);
                up.wait().unwrap();
                left.push((run, signal, moment, usize::MAX));
            }
            // The guard of a process that was killed outright still has to do its work.
            let survivors = survivors(&mark, Duration::from_secs(5));
            if survivors > 0 {
                left.push((run, signal, moment, survivors));
            }
        }
        left
    };
    let left: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || kill_some(thread)))
            .collect();
        let threads = threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(
        left.is_empty(),
        "{} of 120 left something: {left:?}",
        left.len()
    );
}

/// A guard that is killed outright can do nothing more: `up` does it.
#[test]
fn an_up_whose_guard_is_killed_kills_the_command_itself() {
    let mark = mark(3, 0);
    let mut command = motet();
    command.args(["up", "--hops", "1", "--", "sh", "-c"]);
    command.arg(format!("setsid sleep {mark} & sleep {mark}; wait"));
    let mut up = quiet(command);
    let give_up = Instant::now() + Duration::from_secs(20);
    // The shell holds the mark in a longer word.
    while marked(&mark).len() < 2 {
        assert!(Instant::now() < give_up, "the command never ran");
        thread::sleep(Duration::from_millis(5));
    }
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", up.id())).unwrap();
    let guard = children.split_whitespace().next().unwrap();
    send(guard.parse().unwrap(), Signal::SIGKILL);
    assert!(ends_within(&mut up, Duration::from_secs(10)));
    assert_eq!(survivors(&mark, Duration::ZERO), 0);
}

/// Some parents ignore SIGCHLD, and their children inherit that.
#[test]
fn a_command_is_waited_for_where_its_end_is_ignored() {
    let script = "trap '' CHLD; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_motet")])
        .args(["up", "--hops", "1", "--", "sh", "-c", "exit 4"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", common::said(&output));
}

/// A Ctrl-C that comes before the command runs is the command's all the same, and it is the
/// first one that does not stay blocked.
#[test]
fn a_ctrl_c_that_comes_before_the_command_reaches_it() {
    let guarded = format!(
        "kill -INT $$; exec {} guard --parent=$PPID -- sleep 20",
        env!("CARGO_BIN_EXE_motet")
    );
    let mut shell = Command::new("env");
    shell.args(["--default-signal=INT", "--block-signal=INT"]);
    shell.args(["sh", "-c", &guarded]);
    assert_eq!(shell.status().unwrap().code(), Some(128 + 2));
}
