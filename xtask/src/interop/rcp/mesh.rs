//! A root and several motes, a radio each: RPL, a key, one mote asleep.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::capture::Sniffer;
use super::echo::{Echo, await_reachable};
use super::rig::{Bench, KEY, Node, PATIENCE, Parts, run};
use crate::interop::report::{Report, Row, load, rounded};

/// Three motes, then eight.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    for count in [3, 8] {
        let added = mesh(parts, report, count);
        if let Err(error) = added {
            let check = format!("{count} motes and a root");
            report.add(Row::failed(check, format!("{error:#}")));
        }
    }
    Ok(())
}

fn mesh(parts: &Parts, report: &mut Report, count: u8) -> Result<()> {
    let bench = Bench::new(parts, &format!("mesh-{count}"))?;
    let sleeps = can_sleep(&bench)?;
    let is_moonshot = count > 3;
    let of = |row: Row, pass| {
        if is_moonshot { row.moonshot(pass) } else { row }
    };
    let mut sniffer = Sniffer::start(&bench, &format!("mesh of {count} motes"), &[])?;
    let began = Instant::now();
    let _router = bench.router(&bench.radio(1, &[]), &["--key", KEY])?;
    let mut motes: Vec<Node> = Vec::new();
    for number in 2..2 + count {
        let mut options = vec!["--key", KEY];
        if sleeps && number == SLEEPER {
            options.extend(["--sleep", SLEEP]);
        }
        motes.push(bench.mote(&bench.radio(number, &[]), &options)?);
    }
    let mut addresses = Vec::new();
    for mote in &mut motes {
        addresses.push(mote.address()?);
    }
    for address in &addresses {
        await_reachable(*address, PATIENCE)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let check = format!("{count} motes and a root, RPL and a key: all reachable");
    let row = Row::new(check, rounded(seconds), "s", seconds <= REACHABLE_S);
    report.add(of(row, seconds <= REACHABLE_S).note(load()));
    let echoes: Vec<_> = addresses
        .iter()
        .map(|mote| Echo::start(*mote, KIB))
        .collect();
    let mut whole = 0;
    let mut longest = Duration::ZERO;
    for echo in echoes {
        let outcome = echo?.finish();
        whole += u8::from(outcome.is_whole);
        longest = longest.max(outcome.took);
    }
    let check = format!("{count} motes at once: 20 KiB each way, whole");
    let row = Row::new(check, f64::from(whole), "motes", whole == count);
    let note = format!("the last after {:.0} s", longest.as_secs_f64());
    report.add(of(row, whole == count).note(note));
    if !is_moonshot {
        sniffer.end()?;
        report.add(asleep(sleeps, sniffer.polls(SLEEPER)?));
    }
    report.add(sniffer.judge()?);
    Ok(())
}

/// A mote that sleeps asks its parent for packets: so many of its data requests were heard.
fn asleep(sleeps: bool, polls: usize) -> Row {
    let check = "one of 3 motes asleep: its polls of its parent";
    let row = Row::new(check, polls as f64, "frames", sleeps && polls > 0);
    row.note(match sleeps {
        true => format!("--sleep {SLEEP}"),
        false => "`motet mote` has no --sleep: all are awake".to_owned(),
    })
}

/// Whether the command's motes know how to sleep.
fn can_sleep(bench: &Bench<'_>) -> Result<bool> {
    let help = run(bench.motet().args(["mote", "--help"]))?;
    Ok(help.contains("--sleep"))
}

/// The radio of the mote that sleeps.
const SLEEPER: u8 = 2;
/// Asleep, and woken by what TCP waits for; a poll each 20 s at the least.
const SLEEP: &str = "hinted:20";
const KIB: usize = 20;
const REACHABLE_S: f64 = 30.0;
