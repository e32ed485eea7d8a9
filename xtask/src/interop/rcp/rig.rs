//! Motet's programs on simulated radios: started, listened to, and ended whatever happens.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::echo::await_reachable;
use crate::step::wait;

/// All that was built or fetched for the checks.
#[derive(Serialize, Deserialize)]
pub(in crate::interop) struct Parts {
    /// The command.
    pub(in crate::interop) motet: PathBuf,
    /// OpenThread's simulated RCP.
    pub(in crate::interop) rcp: PathBuf,
    pub(in crate::interop) python: PathBuf,
    /// The folder of line.py and its like.
    pub(in crate::interop) scripts: PathBuf,
    /// Python with the judges of framing, or why there is none.
    pub(in crate::interop) judges: Result<PathBuf, String>,
    /// A folder for all that is written meanwhile.
    pub(in crate::interop) folder: PathBuf,
}

/// A folder in which programs run.
pub(in crate::interop) struct Bench<'p> {
    pub(in crate::interop) parts: &'p Parts,
    pub(in crate::interop) folder: PathBuf,
}

impl<'p> Bench<'p> {
    /// An empty folder of this name, with a key in it.
    pub(in crate::interop) fn new(parts: &'p Parts, name: &str) -> Result<Self> {
        let folder = parts.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let bench = Self { parts, folder };
        run(bench.motet().args(["keys", "new", KEY]))?;
        Ok(bench)
    }

    /// The command in this folder.
    pub(in crate::interop) fn motet(&self) -> Command {
        let mut command = Command::new(&self.parts.motet);
        command
            .current_dir(&self.folder)
            .env("XDG_STATE_HOME", self.folder.join("state"))
            .env_remove("STATE_DIRECTORY")
            .stdin(Stdio::null());
        command
    }

    /// The URL of the simulated radio `number`; with `line`: behind line.py with these arguments.
    pub(in crate::interop) fn radio(&self, number: u8, line: &[&str]) -> String {
        let number = number.to_string();
        let rcp = self.parts.rcp.display().to_string();
        if line.is_empty() {
            return program("sh", &["-c", NOTE_PROCESS, &rcp, &number]);
        }
        let script = self.script("line.py");
        let python = self.parts.python.display().to_string();
        let arguments = [&["-B", script.as_str(), &rcp, &number], line].concat();
        program(&python, &arguments)
    }

    pub(in crate::interop) fn script(&self, name: &str) -> String {
        self.parts.scripts.join(name).display().to_string()
    }

    /// Starts a border router on a radio, and waits until it has its interface.
    pub(in crate::interop) fn router(&self, radio: &str, options: &[&str]) -> Result<Node> {
        let mut command = self.motet();
        command
            .args(["router", "--radio", radio, "--tun", TUN, "--socket", SOCKET])
            .args(options);
        let mut node = Node::start("the router", &mut command)?;
        node.await_line("lies behind")?;
        Ok(node)
    }

    /// Starts a mote on a radio.
    pub(in crate::interop) fn mote(&self, radio: &str, options: &[&str]) -> Result<Node> {
        let mut command = self.motet();
        command.args(["mote", "--radio", radio]).args(options);
        Node::start("a mote", &mut command)
    }

    /// A router on radio 1 and a mote on radio 2, once a datagram to the mote comes back.
    pub(in crate::interop) fn pair(&self, lines: [&[&str]; 2], options: &[&str]) -> Result<Pair> {
        let router = self.router(&self.radio(1, lines[0]), options)?;
        let mut mote = self.mote(&self.radio(2, lines[1]), options)?;
        let address = mote.address()?;
        await_reachable(address, PATIENCE)?;
        Ok(Pair {
            router,
            mote,
            address,
        })
    }

    /// The process of a radio that has no line.py before it.
    fn process(&self, number: u8) -> Result<String> {
        let path = self.folder.join(format!("{number}.pid"));
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.trim().to_owned())
    }

    /// Sends a signal to a radio's process.
    pub(in crate::interop) fn signal(&self, number: u8, signal: &str) -> Result<()> {
        let process = self.process(number)?;
        run(Command::new("kill").args([&format!("-{signal}"), process.as_str()])).map(drop)
    }

    /// Kills a radio's process; gives when the one in its place began.
    pub(in crate::interop) fn kill_radio(&self, number: u8) -> Result<Instant> {
        let killed = self.process(number)?;
        self.signal(number, "KILL")?;
        let until = Instant::now() + PATIENCE;
        while self.process(number)? == killed {
            ensure!(
                Instant::now() < until,
                "radio {number} was not started again"
            );
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Instant::now())
    }

    /// What line.py has counted in this file.
    pub(in crate::interop) fn count(&self, file: &str, name: &str) -> Result<u64> {
        let path = self.folder.join(file);
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let counts: serde_json::Value = serde_json::from_str(&text)?;
        let count = counts.get(name).and_then(serde_json::Value::as_u64);
        count.with_context(|| format!("{} counts no {name}", path.display()))
    }
}

/// A router and a mote.
pub(in crate::interop) struct Pair {
    pub(in crate::interop) router: Node,
    pub(in crate::interop) mote: Node,
    pub(in crate::interop) address: Ipv6Addr,
}

/// A running program, and what it says on its standard error. It ends with this value.
pub(in crate::interop) struct Node {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
    pub(in crate::interop) heard: Vec<String>,
}

impl Node {
    pub(in crate::interop) fn start(name: &'static str, command: &mut Command) -> Result<Self> {
        Self::start_into(name, command, Stdio::null())
    }

    /// Starts it with this standard output.
    pub(in crate::interop) fn start_into(
        name: &'static str,
        command: &mut Command,
        stdout: Stdio,
    ) -> Result<Self> {
        let mut child = command
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stderr = child.stderr.take().context("it has no standard error")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            name,
            child,
            lines,
            heard: Vec::new(),
        })
    }

    /// The next line with this word in it.
    pub(in crate::interop) fn await_line(&mut self, word: &str) -> Result<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let why = match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if line.contains(word) {
                        return Ok(line);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => "does not say",
                Err(RecvTimeoutError::Disconnected) => "has ended without saying",
            };
            let said = self.said();
            bail!("{} {why} `{word}`; it said: {said}", self.name);
        }
    }

    /// All that was said so far.
    pub(in crate::interop) fn said(&mut self) -> String {
        self.heard.extend(self.lines.try_iter());
        self.heard.join(" / ")
    }

    /// All lines of a program that has ended.
    pub(in crate::interop) fn all_said(&mut self) -> Vec<String> {
        // Ends with the pipe.
        while let Ok(line) = self.lines.recv_timeout(GRACE) {
            self.heard.push(line);
        }
        self.heard.clone()
    }

    /// A mote's address, once it has one.
    pub(in crate::interop) fn address(&mut self) -> Result<Ipv6Addr> {
        let line = self.await_line(ADDRESS)?;
        let address = line.rsplit(' ').next().unwrap_or_default().parse();
        address.with_context(|| format!("no address in `{line}`"))
    }

    /// How it has ended, if it does within `limit`.
    pub(in crate::interop) fn status(&mut self, limit: Duration) -> Result<Option<i32>> {
        Ok(wait(&mut self.child, limit)?.and_then(|status| status.code()))
    }

    /// Ends it as a system does that goes down.
    pub(in crate::interop) fn end(&mut self) {
        let id = self.child.id().to_string();
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        // So that its radios end with it; SIGINT may be ignored where this runs in the background.
        let _ = Command::new("kill").args(["-TERM", &id]).status();
        if !matches!(wait(&mut self.child, GRACE), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

/// The URL of a program as a radio.
pub(in crate::interop) fn program(path: &str, arguments: &[&str]) -> String {
    let arguments: Vec<_> = arguments
        .iter()
        .map(|argument| format!("forkpty-arg={argument}"))
        .collect();
    format!("spinel+hdlc+forkpty://{path}?{}", arguments.join("&"))
}

/// Runs a command to its end; gives what it printed.
pub(in crate::interop) fn run(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Notes the number of the radio's process in a file before it becomes the radio, whose last words
/// would otherwise stand between those of the command.
const NOTE_PROCESS: &str =
    r#"set -e; echo $$ >"$1.new"; mv "$1.new" "$1.pid"; exec "$0" "$1" 2>"$1.log""#;

/// The key of a bench.
pub(in crate::interop) const KEY: &str = "team.key";
/// The PAN identifier of nodes without a key.
pub(in crate::interop) const PAN: &str = "0xabcd";
const TUN: &str = "mesh0";
const SOCKET: &str = "router.socket";
/// What a mote says before its address.
const ADDRESS: &str = "it is fd";

/// What a program that works needs at most, however busy the machine.
pub(in crate::interop) const PATIENCE: Duration = Duration::from_secs(120);
/// How long a program may take to end.
const GRACE: Duration = Duration::from_secs(20);
