//! OpenThread's border router: its POSIX host, over a simulated radio co-processor.

use std::fs::File;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::console::Console;
use crate::network::run;

/// The interface that the host makes.
pub(crate) const INTERFACE: &str = "wpan0";
/// The prefix of the motes' addresses.
pub(crate) const PREFIX: &str = "fd11:22::";

/// Where OpenThread's programs are.
pub(crate) struct Programs {
    daemon: PathBuf,
    control: PathBuf,
    radio: PathBuf,
    mote: PathBuf,
}

impl Programs {
    /// Those in `folder`, as `cargo xtask thread` builds them.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let at = |path: &str| {
            let path = folder.join(path);
            path.is_file()
                .then_some(path.clone())
                .with_context(|| format!("{} is missing", path.display()))
        };
        Ok(Self {
            daemon: at("posix/src/posix/ot-daemon")?,
            control: at("posix/src/posix/ot-ctl")?,
            radio: at("simulation/examples/apps/ncp/ot-rcp")?,
            mote: at("simulation/examples/apps/cli/ot-cli-ftd")?,
        })
    }
}

impl Programs {
    /// The simulated radio co-processor.
    pub(crate) fn radio(&self) -> &Path {
        &self.radio
    }
}

/// The border router at work.
pub(crate) struct Border<'a> {
    programs: &'a Programs,
    folder: PathBuf,
    daemon: Child,
    /// The network's parameters, which its motes need too.
    dataset: String,
}

impl<'a> Border<'a> {
    /// Starts the border router and waits until it leads a network; its log goes to `folder`.
    pub(crate) fn start(programs: &'a Programs, folder: &Path) -> Result<Self> {
        let log = File::create(folder.join("daemon.log"))?;
        let radio = format!(
            "spinel+hdlc+forkpty://{}?forkpty-arg=1",
            programs.radio.display()
        );
        let daemon = Command::new(&programs.daemon)
            .args(["-v", "-I", INTERFACE, &radio])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", programs.daemon.display()))?;
        let mut border = Self {
            programs,
            folder: folder.to_owned(),
            daemon,
            dataset: String::new(),
        };
        border.wait(|border| border.control("state").is_ok(), "answer")?;
        for command in [
            "dataset init new",
            "dataset networkkey 00112233445566778899aabbccddeeff",
            "dataset panid 0xabcd",
            "dataset channel 11",
            "dataset commit active",
            &format!("prefix add {PREFIX}/64 paros"),
            "ifconfig up",
            "thread start",
        ] {
            border.control(command)?;
        }
        let dataset = border.control("dataset active -x")?;
        border.dataset = dataset.into_iter().next().context("no dataset")?;
        let leads = |border: &Self| {
            border
                .control("state")
                .is_ok_and(|said| said.iter().any(|line| line == "leader"))
        };
        border.wait(leads, "lead a network")?;
        border.control("netdata register")?;
        Ok(border)
    }

    /// Starts a mote, and returns once it is part of the network and has an address in its prefix.
    pub(crate) fn add_mote(&self, number: usize) -> Result<Mote> {
        let mut command = Command::new(&self.programs.mote);
        let log = File::create(self.folder.join(format!("mote{number}.log")))?;
        command.arg(number.to_string()).stderr(log);
        let name = format!("mote {number}");
        let mut console = Console::start(&name, &mut command, &self.folder)?;
        console.ask(&format!("dataset set active {}", self.dataset))?;
        console.ask("ifconfig up")?;
        console.ask("thread start")?;
        let start = Instant::now();
        let addr = loop {
            let addrs = console.ask("ipaddr")?;
            let own = |line: &String| line.starts_with(PREFIX.trim_end_matches("::"));
            if let Some(addr) = addrs.iter().find(|line| own(line)) {
                break addr.parse().context("an address that is none")?;
            }
            if start.elapsed() > PATIENCE {
                bail!("{name} does not join the network");
            }
            thread::sleep(Duration::from_millis(500));
        };
        console.ask("tcp init")?;
        Ok(Mote { addr, console })
    }

    /// The network's parameters, hexadecimal.
    pub(crate) fn dataset(&self) -> &str {
        &self.dataset
    }

    /// The border router's own address in the prefix of its motes.
    pub(crate) fn address(&self) -> Result<String> {
        let addrs = self.control("ipaddr")?;
        let own = |line: &String| line.starts_with(PREFIX.trim_end_matches("::"));
        addrs
            .into_iter()
            .find(own)
            .context("the border router has no address")
    }

    /// Says a command to the border router; gives the lines of its answer.
    fn control(&self, command: &str) -> Result<Vec<String>> {
        let mut control = Command::new(&self.programs.control);
        control
            .args(["-I", INTERFACE])
            .args(command.split(' '))
            .current_dir(&self.folder);
        let said = run(&mut control)?;
        let mut lines: Vec<String> = said.lines().map(|line| line.trim().to_owned()).collect();
        match lines.pop().as_deref() {
            Some("Done") => Ok(lines),
            other => bail!("`{command}` gave `{}`", other.unwrap_or_default()),
        }
    }

    fn wait(&self, is_so: impl Fn(&Self) -> bool, what: &str) -> Result<()> {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > PATIENCE {
                bail!("OpenThread's border router does not {what}");
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

/// Networks form within ten seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(90);

impl Drop for Border<'_> {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// A mote of OpenThread, whose TCP is TCPlp.
pub(crate) struct Mote {
    pub(crate) addr: Ipv6Addr,
    pub(crate) console: Console,
}
