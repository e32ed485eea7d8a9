//! `cargo xtask interop wpan`: Linux's own IEEE 802.15.4, 6LoWPAN and TCP as partners of
//! `motet mote --radio wpan:…`.
//!
//! A Debian kernel runs in QEMU, with radios of software (`mac802154_hwsim`). One of them is the
//! mote's, another has Linux's 6LoWPAN interface, a third one captures. What is done there is in
//! `peers/wpan/init`, which prints a line for each check; here those lines become rows.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::debian::{self, Parcel};
use crate::interop::report::{Report, Row};
use crate::tools::{self, Tool};
use crate::workspace::Workspace;

mod image;

use image::Image;

/// Runs every check: a table, or JSON alone, goes to stdout.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    tools::provide(workspace, NEEDS)?;
    if let Some(advice) = tools::absent(NEEDS) {
        bail!("{advice}");
    }
    let scratch = workspace.scratch()?;
    let motet = workspace.debug_motet()?;
    let parts = debian::parts(workspace, &PARCEL)?;
    let (kernel, files) = pack(workspace, &parts, &motet)?;
    let place = scratch.join("wpan.cpio");
    fs::write(&place, files).with_context(|| format!("cannot write {}", place.display()))?;
    let log = scratch.join("wpan.log");
    let mut console =
        File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut report = Report::new(PEER, json);
    let mut seen = BTreeSet::new();
    let mut add = |row: Row| {
        seen.insert(row.check.clone());
        report.add(row);
    };
    let capture = scratch.join("wpan.pcap");
    let mut guest = Guest::start(&kernel, &place, &capture)?;
    let lines = guest.watch(|line| {
        writeln!(console, "{line}")?;
        if let Some(row) = Row::read(line) {
            add(row);
        }
        Ok(())
    })?;
    drop(guest);
    judge(&capture)?.into_iter().for_each(add);
    // What said nothing has failed.
    for check in CHECKS.iter().filter(|check| !seen.contains(**check)) {
        report.add(Row::new(*check, None, "", false));
    }
    let is_good = report.is_good();
    if !is_good {
        let last = lines.len().saturating_sub(LAST_LINES);
        eprintln!("Linux said last:\n{}", lines[last..].join("\n"));
        eprintln!("All that it said is in {}", log.display());
    }
    Ok(is_good)
}

/// The kernel's file, and the file system that it starts with.
fn pack(workspace: &Workspace, parts: &Path, motet: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let mut image = Image::new(parts);
    image.modules(MODULES)?;
    for name in PROGRAMS {
        let path = image.part(name)?;
        image.program(&path)?;
    }
    // Those of this machine.
    for name in ["ip", "tc", "iperf3", "nc"] {
        let path = tools::find(name).with_context(|| format!("there is no {name}"))?;
        image.program(&path)?;
    }
    image.program(motet)?;
    let script = workspace.root.join("peers/wpan/init");
    let script = fs::read(&script).with_context(|| format!("cannot read {}", script.display()))?;
    image.file("init", script);
    let boot = fs::read_dir(parts.join("boot")).context("there is no kernel")?;
    let kernel = boot.flatten().map(|entry| entry.path());
    let kernel = kernel.max().context("there is no kernel")?;
    Ok((kernel, image.pack()))
}

/// What tshark says of the frames in a capture, which is cut off somewhere.
fn judge(capture: &Path) -> Result<Vec<Row>> {
    let count = |filter: &str| {
        let output = Command::new(tools::TSHARK.program)
            .args([
                "-2",
                "-R",
                filter,
                "-T",
                "fields",
                "-e",
                "frame.number",
                "-r",
            ])
            .arg(capture)
            .output()
            .context("cannot run tshark")?;
        Ok::<_, anyhow::Error>(output.stdout.split(|byte| *byte == b'\n').count() - 1)
    };
    let row = |check: &str, count: usize, pass| {
        Row::new(check, count as f64, "frames", pass).by("tshark")
    };
    let (read, malformed) = (count("wpan")?, count("_ws.malformed")?);
    Ok(vec![
        row("frames that tshark reads", read, read > 500),
        row(
            "frames that tshark calls malformed",
            malformed,
            malformed == 0,
        ),
    ])
}

impl Row {
    /// Of a line `row CHECK VALUE UNIT PASS`; none of another one.
    fn read(line: &str) -> Option<Self> {
        let (_, words) = line.split_once("row ")?;
        let mut words = words.split_whitespace();
        let check = words.next()?.replace('_', " ");
        let value: Option<f64> = words.next()?.parse().ok();
        let unit = words.next()?.replace('_', " ");
        let holds = words.next()? == "1" && value.is_some();
        Some(Self::new(check, value, unit, holds))
    }
}

/// The emulator; it is ended with this value.
struct Guest {
    child: Child,
    lines: Receiver<String>,
}

impl Guest {
    fn start(kernel: &Path, files: &Path, capture: &Path) -> Result<Self> {
        let words = "console=ttyS0 loglevel=1 edd=off mitigations=off panic=1";
        let mut child = Command::new(tools::QEMU_PC.program)
            .args(["-accel", "tcg", "-cpu", "qemu64"])
            .args(["-smp", "1", "-m", "512", "-nodefaults", "-no-user-config"])
            .args(["-no-reboot", "-display", "none", "-serial", "stdio"])
            .args(["-append", words, "-kernel"])
            .arg(kernel)
            .arg("-initrd")
            .arg(files)
            .arg("-serial")
            .arg(format!("file:{}", capture.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot run QEMU")?;
        let console = child.stdout.take().context("QEMU has no output")?;
        let (say, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(console).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                if say.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, lines })
    }

    /// All lines of its console until it ends, each of which goes to `note`.
    fn watch(&mut self, mut note: impl FnMut(&str) -> Result<()>) -> Result<Vec<String>> {
        let (began, mut console) = (Instant::now(), Vec::new());
        loop {
            let left = LIMIT.saturating_sub(began.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    note(&line)?;
                    console.push(line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    console.push(format!("(ended after {} minutes)", LIMIT.as_secs() / 60));
                    break;
                }
            }
        }
        ensure!(!console.is_empty(), "QEMU said nothing");
        Ok(console)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PEER: &str = "linux";

/// Those that have to be there.
const CHECKS: &[&str] = &[
    "an interface that is down is refused",
    "ping, link-local",
    "TCP echo, link-local",
    "UDP echo",
    "iperf3",
    "the mote takes the prefix of Linux",
    "ping, global",
    "ping from behind the router",
    "TCP echo, radvd restarted meanwhile",
    "ping after the restart",
    "TCP echo, 5 % of frames lost",
    "frames that were dropped",
    "the mote ends",
    "ping through motet router",
    "TCP echo through motet router",
    "ping after the radio was down",
    "frames that tshark reads",
    "frames that tshark calls malformed",
];

/// From its start to its end it takes three minutes on an idle core that has to emulate.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// Of the console, where something goes wrong.
const LAST_LINES: usize = 60;

/// What runs Linux, and programs of this machine that run there.
const NEEDS: &[Tool] = &[
    tools::QEMU_PC,
    tools::IP,
    tools::IPERF,
    tools::NC,
    tools::TSHARK,
    tools::DPKG,
    tools::TAR,
    tools::XZ,
    tools::APT_CACHE,
    tools::APT_GET,
];

const PARCEL: Parcel = Parcel {
    name: "wpan-linux",
    kernel: &[
        "*/vmlinuz-*",
        "*/kernel/crypto/*",
        "*/kernel/lib/*",
        "*/kernel/net/6lowpan/*",
        "*/kernel/net/ieee802154/*",
        "*/kernel/net/mac802154/*",
        "*/kernel/net/sched/sch_netem.*",
        "*/kernel/drivers/net/ieee802154/*",
        "*/kernel/drivers/net/tun.*",
        "*/kernel/drivers/net/veth.*",
    ],
    others: &[
        ("busybox-static", &["*/bin/busybox"]),
        ("wpan-tools", &["*/bin/*"]),
        ("radvd", &["*/sbin/*"]),
        ("libnl-3-200", &["*/lib/*"]),
        ("libnl-genl-3-200", &["*/lib/*"]),
    ],
};

/// By the kernel's names; those that they need come with them.
const MODULES: &[&str] = &[
    "mac802154_hwsim",
    "ieee802154_6lowpan",
    "nhc_udp",
    "nhc_ipv6",
    "nhc_hop",
    "nhc_dest",
    "nhc_fragment",
    "nhc_routing",
    "nhc_mobility",
    "sch_netem",
    "tun",
    "veth",
];

const PROGRAMS: [&str; 4] = ["bin/busybox", "bin/iwpan", "bin/wpan-hwsim", "sbin/radvd"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_guest_become_rows() {
        let row = Row::read("row ping_link-local 5 of_5 1").unwrap();
        let read = (row.check.as_str(), row.value, row.unit.as_str(), row.pass);
        assert_eq!(read, ("ping link-local", Some(5.0), "of 5", true));
        assert!(!Row::read("row a 0 B 0").unwrap().pass);
        // A value that is none is no success.
        assert!(!Row::read("row a - B 1").unwrap().pass);
        assert!(Row::read("row a 1").is_none());
        assert!(Row::read("[    0.1] Linux").is_none());
    }
}
