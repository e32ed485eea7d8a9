//! OpenThread's programs: motes that are spoken to by lines, and the border router.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::rig::Bench;
use crate::interop::rcp::rig::run;

// The console of `cargo xtask thread`, whose other parts are a workspace of their own.
#[path = "../../../../peers/thread/src/console.rs"]
mod console;

use console::Console;

/// The parameters of the network that every bench has.
const NETWORK: &[&str] = &[
    "dataset init new",
    "dataset networkkey 00112233445566778899aabbccddeeff",
    "dataset panid 0xabcd",
    "dataset channel 15",
    "dataset meshlocalprefix fd00:db8::",
    "dataset extpanid 1111111122222222",
    "dataset networkname motet-test",
    "dataset commit active",
];

/// The network key of [`NETWORK`].
pub(super) const KEY: &str = "00112233445566778899aabbccddeeff";
pub(super) const CHANNEL: u8 = 15;

/// A mote of OpenThread. It ends with this value.
pub(super) struct Mote {
    pub(super) console: Console,
    number: u8,
}

impl Mote {
    fn launch(bench: &Bench<'_>, number: u8) -> Result<Self> {
        let program = bench
            .parts
            .openthread
            .join("simulation/examples/apps/cli/ot-cli-ftd");
        let mut command = bench.in_air(&program);
        let log = File::create(bench.folder.join(format!("mote{number}.log")))?;
        command.arg(number.to_string()).stderr(log);
        let name = format!("OpenThread's mote {number}");
        let console = Console::start(&name, &mut command, &bench.folder)?;
        Ok(Self { console, number })
    }

    /// A mote that makes a new network, and leads it.
    pub(super) fn form(bench: &Bench<'_>, number: u8) -> Result<Self> {
        let mut mote = Self::launch(bench, number)?;
        for command in NETWORK {
            mote.console.ask(command)?;
        }
        mote.begin()?;
        mote.await_state(&["leader"])?;
        Ok(mote)
    }

    /// A mote that joins a network, as a router unless `mode` says otherwise.
    pub(super) fn join(
        bench: &Bench<'_>,
        number: u8,
        dataset: &str,
        mode: Option<&str>,
    ) -> Result<Self> {
        let mut mote = Self::launch(bench, number)?;
        mote.console.ask(&format!("dataset set active {dataset}"))?;
        if let Some(mode) = mode {
            mote.console.ask(&format!("mode {mode}"))?;
        }
        mote.begin()?;
        match mode {
            Some(_) => mote.await_state(&["child"])?,
            None => mote.become_router()?,
        }
        Ok(mote)
    }

    /// Waits until it is part of the network, and makes a router of it at once.
    fn become_router(&mut self) -> Result<()> {
        self.await_state(&["child", "router", "leader"])?;
        if self.state()? == "child" {
            self.console.ask("state router")?;
        }
        self.await_state(&["router", "leader"])
    }

    fn begin(&mut self) -> Result<()> {
        self.console.ask("ifconfig up")?;
        self.console.ask("thread start")?;
        // Otherwise the next key is taken no sooner than half a day after the last one.
        self.console.ask("keysequence guardtime 0").map(drop)
    }

    pub(super) fn state(&mut self) -> Result<String> {
        self.one("state")
    }

    fn await_state(&mut self, wanted: &[&str]) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        loop {
            let state = self.state()?;
            if wanted.contains(&state.as_str()) {
                return Ok(());
            }
            ensure!(
                Instant::now() < until,
                "OpenThread's mote {} stays {state}",
                self.number
            );
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The first line of an answer.
    pub(super) fn one(&mut self, command: &str) -> Result<String> {
        let lines = self.console.ask(command)?;
        let line = lines
            .into_iter()
            .find(|line| !line.is_empty() && line != command);
        line.with_context(|| format!("`{command}` gave nothing"))
    }

    /// All lines of an answer, as one text.
    pub(super) fn all(&mut self, command: &str) -> Result<String> {
        Ok(self.console.ask(command)?.join("\n"))
    }

    pub(super) fn dataset(&mut self) -> Result<String> {
        let lines = self.console.ask("dataset active -x")?;
        let line = lines.into_iter().find(|line| line.len() > 40);
        line.context("there is no dataset")
    }

    /// Kills it as a power cut does, and starts it again after `pause`; `forgets`: with nothing in
    /// its memory but this dataset.
    pub(super) fn restart(
        &mut self,
        bench: &Bench<'_>,
        forgets: Option<&str>,
        pause: Duration,
    ) -> Result<()> {
        self.console.end();
        thread::sleep(pause);
        if forgets.is_some() {
            let number = self.number.to_string();
            forget(bench, |path| {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                name.rsplit('_').next() == Some(&number)
            })?;
        }
        *self = Self::launch(bench, self.number)?;
        if let Some(dataset) = forgets {
            self.console.ask(&format!("dataset set active {dataset}"))?;
        }
        self.begin()?;
        self.become_router()
    }
}

/// Removes the files in which a program keeps its settings.
fn forget(bench: &Bench<'_>, is_its: impl Fn(&Path) -> bool) -> Result<()> {
    let mut removed = 0;
    for entry in fs::read_dir(bench.folder.join("tmp"))? {
        let path = entry?.path();
        if is_its(&path) {
            fs::remove_file(&path)?;
            removed += 1;
        }
    }
    ensure!(removed > 0, "there is no file of settings");
    Ok(())
}

/// OpenThread's border router: its POSIX host, over a simulated radio co-processor.
pub(super) struct Border<'b> {
    bench: &'b Bench<'b>,
    daemon: Option<Child>,
}

impl<'b> Border<'b> {
    /// A border router that leads a network of its own, or is a router in that of `dataset`.
    pub(super) fn start(bench: &'b Bench<'b>, dataset: Option<&str>) -> Result<Self> {
        let mut border = Self {
            bench,
            daemon: None,
        };
        border.launch()?;
        match dataset {
            Some(dataset) => border.control(&format!("dataset set active {dataset}"))?,
            None => {
                for command in NETWORK {
                    border.control(command)?;
                }
                Vec::new()
            }
        };
        border.begin(PREFIX)?;
        Ok(border)
    }

    fn launch(&mut self) -> Result<()> {
        let openthread = &self.bench.parts.openthread;
        let radio = openthread.join("simulation/examples/apps/ncp/ot-rcp");
        let radio = format!("spinel+hdlc+forkpty://{}?forkpty-arg=1", radio.display());
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.bench.folder.join("daemon.log"))?;
        let mut command = self
            .bench
            .in_air(&openthread.join("posix/src/posix/ot-daemon"));
        command
            .args(["-v", "-I", INTERFACE, &radio])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.daemon = Some(command.spawn().context("cannot start ot-daemon")?);
        self.wait("answer", |border| border.control("state").is_ok())
    }

    fn begin(&self, prefix: &str) -> Result<()> {
        self.add_prefix(prefix)?;
        self.control("ifconfig up")?;
        self.control("thread start")?;
        self.control("keysequence guardtime 0")?;
        self.wait("join", |border| {
            border
                .state()
                .is_ok_and(|state| ["child", "router", "leader"].contains(&state.as_str()))
        })?;
        if self.state()? == "child" {
            self.control("state router")?;
        }
        self.wait("be a router", |border| {
            border
                .state()
                .is_ok_and(|state| ["router", "leader"].contains(&state.as_str()))
        })?;
        self.control("netdata register").map(drop)
    }

    /// Offers a prefix in which motes make addresses, and a default route.
    pub(super) fn add_prefix(&self, prefix: &str) -> Result<()> {
        self.control(&format!("prefix add {prefix}/64 paros"))
            .map(drop)
    }

    /// Kills it, and starts it again after `pause`; `forgets`: with nothing in its memory but this
    /// dataset.
    pub(super) fn restart(&mut self, forgets: Option<&str>, pause: Duration) -> Result<()> {
        self.end();
        thread::sleep(pause);
        if forgets.is_some() {
            forget(self.bench, |path| {
                path.extension()
                    .is_some_and(|extension| extension == "data")
            })?;
        }
        self.launch()?;
        if let Some(dataset) = forgets {
            self.control(&format!("dataset set active {dataset}"))?;
        }
        self.begin(PREFIX)
    }

    pub(super) fn state(&self) -> Result<String> {
        let lines = self.control("state")?;
        lines.into_iter().next().context("no state")
    }

    pub(super) fn dataset(&self) -> Result<String> {
        let lines = self.control("dataset active -x")?;
        let line = lines.into_iter().find(|line| line.len() > 40);
        line.context("there is no dataset")
    }

    /// Says a command; gives the lines of its answer.
    pub(super) fn control(&self, command: &str) -> Result<Vec<String>> {
        let program = self.bench.parts.openthread.join("posix/src/posix/ot-ctl");
        let mut control = self.bench.in_air(&program);
        control.args(["-I", INTERFACE]).args(command.split(' '));
        let said = run(&mut control)?;
        let mut lines: Vec<String> = said.lines().map(|line| line.trim().to_owned()).collect();
        match lines.pop().as_deref() {
            Some("Done") => Ok(lines),
            other => bail!("`{command}` gave `{}`", other.unwrap_or_default()),
        }
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !is_so(self) {
            ensure!(
                Instant::now() < until,
                "OpenThread's border router does not {what}"
            );
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Drop for Border<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The interface that the host makes.
const INTERFACE: &str = "wpan0";
/// The prefix of the motes' addresses.
pub(super) const PREFIX: &str = "fd11:22::";
/// Networks form within ten seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(90);
