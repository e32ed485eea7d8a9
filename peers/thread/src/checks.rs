//! What is checked, in the order in which it happens.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::border::{Border, INTERFACE, Mote, Programs};
use crate::console::Console;
use crate::network::{self, FAR, beyond, rules};
use crate::report::Report;
use crate::router::Router;
use crate::serve::{Received, sha256};

const MOTES: usize = 3;
/// What a mote sends at a time.
const BYTES: u64 = 20_000;
/// What it sends while the daemon is ended.
const MANY_BYTES: u64 = 150_000;
const SERVER_PORT: u16 = 9000;
const MOTE_PORT: u16 = 7;
/// A busy machine is slow; a stream that stands still is caught all the same.
const PATIENCE: Duration = Duration::from_secs(90);

/// Runs every check; gives whether all hold.
pub(crate) fn run(openthread: &Path, motet: &Path, is_json: bool) -> Result<bool> {
    // Relative paths would be others in the folder below.
    let motet = motet.canonicalize().context("there is no such `motet`")?;
    let openthread = openthread.canonicalize().context("OpenThread is missing")?;
    let programs = Programs::of(&openthread)?;
    motet_router::namespace::enter().map_err(|error| anyhow::anyhow!("{error}"))?;
    network::set_up()?;
    let folder = tempfile::tempdir()?;
    let mut report = Report::new(is_json);
    let mut place = Place::set_up(&programs, folder.path())?;
    report.all(
        "motes are part of the Thread network",
        place.motes.len(),
        MOTES,
        "motes",
    );
    let mut kept = rules()?;
    kept.extend(place.add_foreign_rule()?);

    let reference = place.send_all(Far::Beyond, BYTES)?;
    ensure!(
        reference
            .iter()
            .all(|(_, got)| got.is_whole && got.bytes == BYTES),
        "without the daemon, not every byte arrives: {reference:?}"
    );
    let router = Router::start(&motet, folder.path())?;
    check_rules(&mut report, &kept)?;
    for far in [Far::Beyond, Far::Here] {
        let got = place.send_all(far, BYTES)?;
        let same =
            |((_, got), (_, wanted)): &(&Sent, &Sent)| got.is_whole && got.sha256 == wanted.sha256;
        let good = got.iter().zip(&reference).filter(same).count();
        let check = format!(
            "motes to a server {}: bytes as without the daemon",
            far.name()
        );
        report.all(&check, good, MOTES, "motes");
    }
    for far in [Far::Beyond, Far::Here] {
        let good = place.receive_all(far)?;
        let check = format!("a client {} to motes: every byte in order", far.name());
        report.all(&check, good, MOTES, "motes");
    }
    check_status(&mut report, &router, &place)?;
    check_ends(&mut report, &mut place, router, &motet, &kept)?;
    if !is_json {
        report.sum();
    }
    Ok(report.failed == 0)
}

/// A mote's address, and what came of what it sent.
type Sent = (std::net::Ipv6Addr, Received);

/// Where the Linux end of a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Far {
    /// On the border router itself.
    Here,
    Beyond,
}

impl Far {
    const fn name(self) -> &'static str {
        match self {
            Self::Here => "on the border router",
            Self::Beyond => "beyond the border router",
        }
    }
}

/// The network, its motes and the servers.
struct Place<'a> {
    _border: Border<'a>,
    motes: Vec<Mote>,
    here: Console,
    there: Console,
    here_addr: String,
    folder: &'a Path,
}

impl<'a> Place<'a> {
    fn set_up(programs: &'a Programs, folder: &'a Path) -> Result<Self> {
        let border = Border::start(programs, folder)?;
        // The number 1 is the radio co-processor's.
        let motes = (2..2 + MOTES).map(|number| border.add_mote(number));
        let mut motes = motes.collect::<Result<Vec<_>>>()?;
        for mote in &mut motes {
            mote.console.ask(&format!("tcp listen :: {MOTE_PORT}"))?;
        }
        let this = std::env::current_exe()?;
        let serve = ["serve", &SERVER_PORT.to_string()].map(str::to_owned);
        let mut here = Console::start("the server here", Command::new(&this).args(&serve), folder)?;
        let mut there = Console::start("the server beyond", beyond(&this).args(&serve), folder)?;
        for server in [&mut here, &mut there] {
            server.await_line("listening", PATIENCE)?;
        }
        Ok(Self {
            here_addr: border.address()?,
            _border: border,
            motes,
            here,
            there,
            folder,
        })
    }

    /// A rule of somebody else in each chain; gives how the packet filter lists them.
    fn add_foreign_rule(&self) -> Result<Vec<String>> {
        let before = rules()?;
        for chain in ["PREROUTING", "POSTROUTING"] {
            let line = format!("-t mangle -A {chain} -p udp --dport 9 -j ACCEPT");
            network::run(Command::new("ip6tables").args(line.split(' ')))?;
        }
        Ok(rules()?
            .into_iter()
            .filter(|rule| !before.contains(rule))
            .collect())
    }

    /// Every mote sends `bytes` at once; gives what the server got of each.
    fn send_all(&mut self, far: Far, bytes: u64) -> Result<Vec<Sent>> {
        self.start_sending(far, bytes)?;
        self.finish_sending(far)
    }

    fn start_sending(&mut self, far: Far, bytes: u64) -> Result<()> {
        let addr = match far {
            Far::Here => self.here_addr.as_str(),
            Far::Beyond => FAR,
        };
        for mote in &mut self.motes {
            mote.console
                .ask(&format!("tcp connect {addr} {SERVER_PORT}"))?;
            mote.console
                .await_line("Connection established", PATIENCE)?;
        }
        for mote in &mut self.motes {
            mote.console.ask(&format!("tcp benchmark run {bytes}"))?;
        }
        Ok(())
    }

    fn finish_sending(&mut self, far: Far) -> Result<Vec<Sent>> {
        for mote in &mut self.motes {
            mote.console
                .await_line("TCP Benchmark Complete", PATIENCE)?;
            mote.console.ask("tcp sendend")?;
        }
        let server = match far {
            Far::Here => &mut self.here,
            Far::Beyond => &mut self.there,
        };
        let mut all = Vec::new();
        for _ in &self.motes {
            let line = server.await_line(Received::WORD, PATIENCE)?;
            let got = Received::parse(&line).context("a line of the server's that is none")?;
            all.push((got.from.parse()?, got));
        }
        for mote in &mut self.motes {
            // Out of TIME-WAIT: the one end point of the example is needed again.
            mote.console.ask("tcp abort")?;
        }
        all.sort_by_key(|(addr, _)| *addr);
        Ok(all)
    }

    /// A client sends every mote a text; gives how many motes print it whole.
    fn receive_all(&mut self, far: Far) -> Result<usize> {
        let this = std::env::current_exe()?;
        let mut good = 0;
        for (number, mote) in self.motes.iter_mut().enumerate() {
            let text: String = (0..400).map(|n| format!("{number}:{n},")).collect();
            let mut command = match far {
                Far::Here => Command::new(&this),
                Far::Beyond => beyond(&this),
            };
            command.args([
                "send",
                &mote.addr.to_string(),
                &MOTE_PORT.to_string(),
                &text,
            ]);
            // What the mote sent before has ended with the same words.
            mote.console.skip();
            let first = mote.console.heard().len();
            let mut client = Console::start("the client", &mut command, self.folder)?;
            client.await_line("sent", PATIENCE)?;
            mote.console
                .await_line("TCP: Reached end of stream", PATIENCE)?;
            mote.console.ask("tcp sendend")?;
            client.await_line("ended", PATIENCE)?;
            // The one end point of the example is needed again.
            mote.console.await_line("TCP: Disconnected", PATIENCE)?;
            let heard = mote.console.heard().get(first..).unwrap_or_default();
            let parts = heard
                .iter()
                .filter_map(|line| line.strip_prefix("TCP: Received "));
            let parts = parts.filter_map(|line| line.split_once(" bytes: "));
            let came: String = parts.map(|(_, bytes)| bytes).collect();
            good += usize::from(sha256(came.as_bytes()) == sha256(text.as_bytes()));
        }
        Ok(good)
    }
}

/// The daemon's rules are the last of their chains, and nobody else's has changed.
fn check_rules(report: &mut Report, kept: &[String]) -> Result<()> {
    let now = rules()?;
    let ours = now.iter().filter(|rule| !kept.contains(rule)).count();
    report.all("the daemon's rules stand", ours, 2, "rules");
    let last = ["PREROUTING", "POSTROUTING"].into_iter().filter(|chain| {
        let start = format!("-A {chain} ");
        let last = now.iter().rfind(|rule| rule.starts_with(&start));
        last.is_some_and(|rule| rule.contains("NFQUEUE") && rule.contains(INTERFACE))
    });
    report.all("each is the last of its chain", last.count(), 2, "rules");
    let there = kept.iter().filter(|rule| now.contains(rule)).count();
    report.all("the rules of others stand", there, kept.len(), "rules");
    Ok(())
}

/// The daemon has seen every mote, and at least the bytes that its servers got.
fn check_status(report: &mut Report, router: &Router, place: &Place<'_>) -> Result<()> {
    let status = router.status()?;
    let motes = status["motes"].as_array().cloned().unwrap_or_default();
    let known = place.motes.iter().filter(|mote| {
        let addr = mote.addr.to_string();
        motes.iter().any(|row| {
            row["mote"] == addr.as_str()
                && row["bytes_up"]
                    .as_u64()
                    .is_some_and(|bytes| bytes >= 2 * BYTES)
        })
    });
    report.all(
        "`motet router status` counts each mote's bytes",
        known.count(),
        MOTES,
        "motes",
    );
    let counter = |name: &str| status["counters"][name].as_u64().unwrap_or(u64::MAX);
    let row = |row: &Value| row["held_now"].as_u64().unwrap_or(u64::MAX);
    let held_now = motes.iter().map(row).fold(0, u64::saturating_add);
    let (held, released) = (counter("held"), counter("released"));
    let check = "each packet that it held has gone on, or is held";
    let is_exact = released.checked_add(held_now) == Some(held);
    report.row(check, held as f64, "packets", is_exact);
    let lost = network::lost_by_queues()?;
    let check = "packets that the kernel's queue lost";
    report.row(check, lost as f64, "packets", lost == 0);
    Ok(())
}

/// The daemon is killed and another one ended while bytes move: they arrive, and no rule stays.
fn check_ends(
    report: &mut Report,
    place: &mut Place<'_>,
    router: Router,
    motet: &Path,
    kept: &[String],
) -> Result<()> {
    let is_whole = |sent: &&Sent| sent.1.is_whole && sent.1.bytes == MANY_BYTES;
    place.start_sending(Far::Beyond, MANY_BYTES)?;
    router.end(Signal::SIGKILL)?;
    let got = place.finish_sending(Far::Beyond)?;
    let check = "streams outlive a daemon that is killed";
    report.all(check, got.iter().filter(is_whole).count(), MOTES, "motes");

    let router = Router::start(motet, place.folder)?;
    place.start_sending(Far::Beyond, MANY_BYTES)?;
    let (status, after) = router.end(Signal::SIGTERM)?;
    report.row(
        "a daemon that is asked to end does so with status 0",
        f64::from(status.code().unwrap_or(-1)),
        "1",
        status.success(),
    );
    let ms = after.as_secs_f64() * 1e3;
    report.row("so long after it was asked", ms.round(), "ms", ms < 1_000.0);
    let got = place.finish_sending(Far::Beyond)?;
    let check = "streams outlive a daemon that ends";
    report.all(check, got.iter().filter(is_whole).count(), MOTES, "motes");
    let left = rules()?.iter().filter(|rule| !kept.contains(rule)).count();
    report.row("rules that it leaves", left as f64, "rules", left == 0);
    Ok(())
}
