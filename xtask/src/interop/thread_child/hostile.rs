//! Messages that must change nothing: forged, replayed, of other keys, of lower sequences, mutated.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::attach::FIRST_RADIO;
use super::openthread::{Border, CHANNEL, KEY};
use super::rig::{Bench, Child, Parts};
use super::transfer::outside;
use crate::interop::rcp::echo::{Echo, Pace};
use crate::interop::rcp::rig::run;
use crate::interop::report::{Report, Row};

/// Each kind while bytes go to the child and back.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "hostile")?;
    let border = Border::start(&bench, None)?;
    let dataset = border.dataset()?;
    let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &[])?;
    let address = outside(&mut child)?;
    // So that there is a sequence that is past.
    border.control("keysequence counter 1")?;
    std::thread::sleep(Duration::from_secs(2));
    // Messages of the parent to replay: an update there and back.
    outside(&mut child)?;
    let parent = border.control("extaddr")?;
    let parent = parent.into_iter().next().context("no address")?;
    for (kind, count) in KINDS {
        let echo = Echo::start_slowly(address, 48, PACE)?;
        let sent = attack(&bench, &child, &parent, kind, *count)?;
        let outcome = echo.finish();
        let effects = effects(&mut child, &border)?;
        let pass = outcome.is_whole && effects.is_empty() && sent > 0;
        let check = format!("{kind}: effects, a transfer goes on meanwhile");
        let row = Row::new(check, effects.len() as f64, "effects", pass);
        let whole = if outcome.is_whole { "whole" } else { "cut" };
        report.add(row.note(format!(
            "of {sent} messages; the transfer is {whole} {}",
            effects.join("; ")
        )));
    }
    child.node.end();
    report.add(counted(&mut child)?);
    Ok(())
}

/// Sends messages of a kind; gives how many.
fn attack(bench: &Bench<'_>, child: &Child, parent: &str, kind: &str, count: u32) -> Result<u64> {
    let mut command = bench.python();
    command.arg("attack").arg(bench.capture());
    for (option, value) in [
        ("--kind", kind),
        ("--key", KEY),
        ("--child", &child.extended),
        ("--parent", parent),
        ("--sequence", "1"),
        ("--channel", &CHANNEL.to_string()),
        ("--count", &count.to_string()),
    ] {
        command.args([option, value]);
    }
    let said: Value = serde_json::from_str(&run(&mut command)?)?;
    let sent = said.get("sent").and_then(Value::as_u64);
    sent.context("the attacker does not say what it sent")
}

/// What has changed about the child.
fn effects(child: &mut Child, border: &Border<'_>) -> Result<Vec<String>> {
    child.node.said();
    let known = child.node.heard.iter();
    let said = known.filter(|line| CHANGES.iter().any(|word| line.contains(word)));
    // It attached once, when it began.
    let mut effects: Vec<String> = said.skip(1).cloned().collect();
    let table = border.control("child table")?;
    let is_ours = |line: &&String| line.contains(&child.extended);
    let short = format!("0x{:04x}", child.short);
    let entry = table.iter().find(is_ours);
    match entry {
        Some(entry) if entry.contains(&short) => {}
        Some(entry) => effects.push(format!("the parent lists {entry}")),
        None => effects.push("the parent no longer lists the child".to_owned()),
    }
    Ok(effects)
}

/// What the mote says that it dropped.
fn counted(child: &mut Child) -> Result<Row> {
    let said = child.node.all_said();
    let line = said
        .iter()
        .rev()
        .find(|line| line.contains("MLE messages dropped"))
        .context("the mote does not say what it dropped")?;
    let words: Vec<_> = line.split_whitespace().collect();
    let mut places = words.windows(4);
    let dropped = places.find_map(|place| match place {
        [count, "MLE", "messages", "dropped"] => count.parse::<f64>().ok(),
        _ => None,
    });
    let dropped = dropped.unwrap_or(0.0);
    // Those that repeat a frame end in the MAC; those that are mutated may end anywhere.
    let least = KINDS
        .iter()
        .filter(|(kind, _)| ["forged", "other-key", "lower"].contains(kind))
        .map(|(_, count)| f64::from(*count))
        .sum::<f64>();
    let row = Row::new(
        "messages dropped and counted",
        dropped,
        "messages",
        dropped >= least,
    );
    Ok(row.note(line.clone()))
}

const KINDS: &[(&str, u32)] = &[
    ("forged", 300),
    ("other-key", 300),
    ("lower", 300),
    ("replayed", 300),
    ("reordered", 300),
    ("mutated", 10_000),
];
/// What the mote says when its place in the network changes.
const CHANGES: [&str; 4] = ["attached as", "detached", "it is no longer", "key sequence"];
/// 2 KiB/s: as long as an attack.
const PACE: Pace = Pace {
    piece: 512,
    every: Duration::from_millis(20),
    half_time: Duration::ZERO,
};
