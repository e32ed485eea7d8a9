//! A bench: a folder, a recorder of the air, and Motet's child.

use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::interop::rcp::rig::{Node, program};
use crate::step::wait;

/// All that was built or fetched for the checks.
#[derive(Serialize, Deserialize)]
pub(super) struct Parts {
    /// The command.
    pub(super) motet: PathBuf,
    /// The folder of OpenThread's programs.
    pub(super) openthread: PathBuf,
    /// Python with what the attacker needs.
    pub(super) python: PathBuf,
    /// air.py.
    pub(super) air: PathBuf,
    /// A folder for all that is written meanwhile.
    pub(super) folder: PathBuf,
    /// Checks of half an hour and more are run, too.
    pub(super) is_full: bool,
}

/// A folder in which programs run, and a capture of what their radios send.
pub(super) struct Bench<'p> {
    pub(super) parts: &'p Parts,
    pub(super) folder: PathBuf,
    recorder: Option<Process>,
}

impl<'p> Bench<'p> {
    /// An empty folder of this name, and a recorder that listens.
    pub(super) fn new(parts: &'p Parts, name: &str) -> Result<Self> {
        let folder = parts.folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut bench = Self {
            parts,
            folder,
            recorder: None,
        };
        let capture = bench.capture();
        let mut command = bench.python();
        command.arg("record").arg(&capture);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        bench.recorder = Some(command.spawn().context("cannot start the recorder")?);
        let until = Instant::now() + Duration::from_secs(20);
        while fs::metadata(&capture).map_or(0, |file| file.len()) == 0 {
            ensure!(Instant::now() < until, "the recorder does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(bench)
    }

    /// Where the recorder writes.
    pub(super) fn capture(&self) -> PathBuf {
        self.folder.join("air.pcap")
    }

    /// Lets the recorder write what it has heard, and end.
    pub(super) fn end_capture(&mut self) {
        if let Some(mut recorder) = self.recorder.take() {
            drop(recorder.stdin.take());
            if !matches!(wait(&mut recorder, Duration::from_secs(10)), Ok(Some(_))) {
                let _ = recorder.kill();
                let _ = recorder.wait();
            }
        }
    }

    /// A program in this folder and in the network of the radios.
    pub(super) fn in_air(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg("--net=/run/netns/air")
            .arg(program)
            .current_dir(&self.folder)
            .env("XDG_STATE_HOME", self.folder.join("state"))
            .env_remove("STATE_DIRECTORY")
            .stdin(Stdio::null());
        command
    }

    /// air.py in the network of the radios.
    pub(super) fn python(&self) -> Command {
        let mut command = self.in_air(&self.parts.python);
        command.arg("-B").arg(&self.parts.air);
        command
    }

    /// `motet mote` on the simulated radio `number`, with these options.
    pub(super) fn mote(&self, number: u8, options: &[&str]) -> Command {
        let rcp = self
            .parts
            .openthread
            .join("simulation/examples/apps/ncp/ot-rcp");
        let radio = program(&rcp.display().to_string(), &[&number.to_string()]);
        let mut command = self.in_air(&self.parts.motet);
        command.args(["mote", "--radio", &radio]).args(options);
        command
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        self.end_capture();
    }
}

/// `motet mote --thread`, once it is a child.
pub(super) struct Child {
    pub(super) node: Node,
    /// Its extended address, as OpenThread prints one.
    pub(super) extended: String,
    /// Its parent's.
    pub(super) parent: String,
    /// Its short address.
    pub(super) short: u16,
    /// Its mesh-local address that stays.
    pub(super) mesh_local: Ipv6Addr,
    /// From the moment at which its radio was ready.
    pub(super) attached_after: Duration,
}

impl Child {
    /// Starts one on the radio `number`, and waits until it is attached.
    pub(super) fn start(
        bench: &Bench<'_>,
        number: u8,
        dataset: &str,
        options: &[&str],
    ) -> Result<Self> {
        let options = [&["--thread", dataset], options].concat();
        let mut node = Node::start("Motet's child", &mut bench.mote(number, &options))?;
        let line = node.await_line("Thread child")?;
        let began = Instant::now();
        let extended = word_after(&line, "child").context("no extended address")?;
        let line = node.await_line("attached as")?;
        let attached_after = began.elapsed();
        let short = word_after(&line, "as").context("no short address")?;
        let short = u16::from_str_radix(short.trim_start_matches("0x"), 16)?;
        let parent = word_after(&line, "router").context("no parent")?;
        let mut child = Self {
            node,
            extended,
            parent,
            short,
            mesh_local: Ipv6Addr::UNSPECIFIED,
            attached_after,
        };
        child.mesh_local = child.address(MESH_LOCAL)?;
        Ok(child)
    }

    /// The parent that it has named last.
    pub(super) fn current_parent(&mut self) -> Option<String> {
        self.node.said();
        let mut said = self.node.heard.iter().rev();
        let line = said.find(|line| line.contains("attached as"))?;
        word_after(line, "router")
    }

    /// What it has said of its place, its first attaching left out.
    pub(super) fn history(&mut self) -> String {
        self.node.said();
        let said = self.node.heard.iter();
        let said = said.filter(|line| line.contains("attached as") || line.contains("detached"));
        let said = said.skip(1).map(|line| line.trim_start_matches("motet: "));
        said.collect::<Vec<_>>().join(" / ")
    }

    /// Its address that begins so.
    pub(super) fn address(&mut self, start: &str) -> Result<Ipv6Addr> {
        let wanted = format!("it is {start}");
        let said = self.node.heard.iter();
        let known = said
            .rev()
            .find(|line| line.contains(&wanted) && !line.contains(LOCATOR));
        if let Some(line) = known {
            return address_in(line);
        }
        loop {
            let line = self.node.await_line(&wanted)?;
            if !line.contains(LOCATOR) {
                return address_in(&line);
            }
        }
    }
}

fn address_in(line: &str) -> Result<Ipv6Addr> {
    let address = line.rsplit(' ').next().unwrap_or_default().parse();
    address.with_context(|| format!("no address in `{line}`"))
}

/// The word that follows `before`, without a comma at its end.
pub(super) fn word_after(line: &str, before: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == before)?;
    let word = words.next()?;
    Some(word.trim_end_matches([',', ';', ':']).to_owned())
}

/// How the mesh-local addresses of all networks here begin.
pub(super) const MESH_LOCAL: &str = "fd00:db8:";
/// In the middle of addresses that follow from a short address.
const LOCATOR: &str = ":ff:fe00:";
