//! Starts the probes and judges how they end.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid},
};

use crate::probe::{NOT_APPLICABLE, NOT_PERMITTED, READY};

const NOBODY: u32 = 65534;

/// Probe and link asked for. `hold` is started and then killed.
const CASES: &[(&str, &str)] = &[
    ("traffic", "any"),
    ("traffic", "tun"),
    ("traffic", "veth"),
    ("reopen", "any"),
    ("reopen", "veth"),
    ("hold", "any"),
    ("hold", "veth"),
    ("limits", "any"),
];

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let program = Program::copy();
    let me = Uid::current().as_raw();
    let users = if me == 0 { vec![0, NOBODY] } else { vec![me] };
    let mut failed = 0;
    for uid in users {
        for (probe, link) in CASES {
            let name = format!("{probe} over {link} as uid {uid}");
            if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
                continue;
            }
            let outcome = match *probe {
                "hold" => killed_probe_leaves_nothing(&program, uid, link),
                _ => finished_probe(&program, uid, probe, link),
            };
            failed += usize::from(!report(&name, outcome));
        }
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

enum Outcome {
    Passed(String),
    /// There is nothing to test for this user on this machine.
    NotApplicable(String),
    NotPermitted(String),
    Failed(String),
}

/// Returns whether the case may count as passed.
fn report(name: &str, outcome: Outcome) -> bool {
    let is_ci = env::var("CI").is_ok_and(|value| value == "true");
    match outcome {
        Outcome::Passed(note) => println!("ok: {name}: {note}"),
        Outcome::NotApplicable(why) => println!("not applicable: {name}: {why}"),
        Outcome::NotPermitted(why) if !is_ci => println!("not run: {name}: {why}"),
        Outcome::NotPermitted(why) | Outcome::Failed(why) => {
            println!("FAILED: {name}: {why}");
            return false;
        }
    }
    true
}

fn finished_probe(program: &Program, uid: u32, probe: &str, link: &str) -> Outcome {
    if link == "tun" && !may_open_tun(uid) {
        return Outcome::NotApplicable("/dev/net/tun is closed to this user".to_owned());
    }
    let child = program.start(uid, probe, link);
    let output = child
        .wait_with_output()
        .expect("a started probe can be waited for");
    let text = String::from_utf8_lossy(&output.stdout)
        .trim()
        .replace('\n', "; ");
    match output.status.code() {
        Some(0) => Outcome::Passed(text),
        Some(code) if code == i32::from(NOT_PERMITTED) => Outcome::NotPermitted(text),
        Some(code) if code == i32::from(NOT_APPLICABLE) => Outcome::NotApplicable(text),
        _ => Outcome::Failed(format!("{}: {text}", output.status)),
    }
}

/// Ctrl-C, without any handler: the harshest of the clean ends.
fn killed_probe_leaves_nothing(program: &Program, uid: u32, link: &str) -> Outcome {
    let mut child = program.start(uid, "hold", link);
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("a pipe");
    BufReader::new(stdout)
        .read_line(&mut line)
        .expect("a readable pipe");
    if !line.starts_with(READY) {
        let status = child.wait().expect("a started probe can be waited for");
        return match status.code() {
            Some(code) if code == i32::from(NOT_PERMITTED) => Outcome::NotPermitted(line),
            _ => Outcome::Failed(format!("{status}: {line}")),
        };
    }
    let pid = Pid::from_raw(child.id().try_into().expect("a process id"));
    let inside = fs::read_link(format!("/proc/{pid}/ns/net")).expect("root may look");
    let shared = fs::read_link("/proc/self/ns/net").is_ok_and(|outside| outside == inside);
    let visible = interfaces().contains("motet0");
    kill(pid, Signal::SIGINT).expect("our own child");
    let status = child.wait().expect("a started probe can be waited for");
    if shared || visible {
        Outcome::Failed("the probe worked in the machine's own network".to_owned())
    } else if status.signal() != Some(Signal::SIGINT as i32) {
        Outcome::Failed(format!("SIGINT ended the probe with {status}"))
    } else if interfaces().contains("motet0") || namespace_is_in_use(&inside) {
        Outcome::Failed("an interface or the namespace outlived the probe".to_owned())
    } else {
        Outcome::Passed(format!("{} is gone after SIGINT", inside.display()))
    }
}

fn interfaces() -> String {
    fs::read_to_string("/proc/net/dev").expect("/proc is mounted")
}

fn namespace_is_in_use(namespace: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    processes
        .filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok())
        .any(|other| other == namespace)
}

/// By its mode alone: enough for the two users of this test.
fn may_open_tun(uid: u32) -> bool {
    const OTHERS_READ_WRITE: u32 = 0o006;
    fs::metadata("/dev/net/tun").is_ok_and(|tun| {
        uid == 0 || tun.permissions().mode() & OTHERS_READ_WRITE == OTHERS_READ_WRITE
    })
}

/// A copy of this binary that any user may run: the build directory is often
/// closed to others. Removed on drop.
struct Program {
    directory: PathBuf,
}

impl Program {
    fn copy() -> Self {
        let directory = env::temp_dir().join(format!("motet-router-probe-{}", std::process::id()));
        fs::create_dir(&directory).expect("a new directory in the temporary one");
        let program = Self { directory };
        let open_to_all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program.directory, open_to_all.clone()).expect("our own directory");
        let this = env::current_exe().expect("/proc is mounted");
        fs::copy(this, program.path()).expect("room for a copy of the probe");
        fs::set_permissions(program.path(), open_to_all).expect("our own file");
        program
    }

    fn path(&self) -> PathBuf {
        self.directory.join("probe")
    }

    fn start(&self, uid: u32, probe: &str, link: &str) -> Child {
        // A shell's background jobs ignore SIGINT, and so would all that they start.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=INT")
            .arg(self.path())
            .args(["probe", probe, link])
            .current_dir("/")
            .stdout(Stdio::piped());
        if uid != Uid::current().as_raw() {
            command.uid(uid).gid(uid);
        }
        command.spawn().expect("the probe starts")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
