//! Messages that must change nothing: forged, replayed, overtaken, of other keys, of lower
//! sequences, mutated; and a flood of forgeries.
//!
//! A child opens 50 messages a second that it does not believe: kinds that are sent more slowly are
//! judged by what their messages say, the flood by what becomes of the child beneath it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::attach::FIRST_RADIO;
use super::capture::keys;
use super::openthread::{Border, CHANNEL, KEY};
use super::rig::{Bench, Child, Parts};
use super::transfer::outside;
use super::trouble::NO_GUARD;
use crate::interop::rcp::echo::{Echo, Pace};
use crate::interop::rcp::rig::run;
use crate::interop::report::{Report, Row, rounded};

/// Each kind against a child of its own, while bytes go to that child and back.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "hostile")?;
    let border = Border::start(&bench, None)?;
    let dataset = border.dataset()?;
    // So that there is a sequence that is past.
    border.control(NO_GUARD)?;
    border.control(&format!("keysequence counter {SEQUENCE}"))?;
    let parent = border.control("extaddr")?;
    let parent = parent.into_iter().next().context("no address")?;
    for (number, kind) in KINDS.iter().enumerate() {
        let radio = FIRST_RADIO + number as u8;
        let state = format!("state{radio}");
        let mut child = Child::start(&bench, radio, &dataset, &["--state", &state])?;
        let address = outside(&mut child)?;
        let before = Standing::of(&bench, &border, &mut child)?;
        ensure!(
            before.key_index == Some(SEQUENCE + 1),
            "the child seals with key {:?} before the attack",
            before.key_index
        );
        let seconds = f64::from(kind.count) / f64::from(kind.rate);
        // 2 KiB a second: for longer than the attack.
        let kib = 2 * (seconds.ceil() as usize + STARTS_WITHIN_S);
        let echo = Echo::start_slowly(address, kib, PACE)?;
        let attack = Attack::make(&bench, &child, &parent, kind)?;
        let ended = Instant::now();
        let after = Standing::of(&bench, &border, &mut child)?;
        let outcome = echo.finish();
        let effects = before.differences(&after);
        let lasts = outcome.silence_after(ended).is_some();
        let pass = outcome.is_whole && lasts && effects.is_empty() && attack.sent == kind.count;
        let Kind { name, .. } = kind;
        let check = format!("{name}: effects, a transfer goes on meanwhile");
        let row = Row::new(check, effects.len() as f64, "effects", pass);
        let whole = match (outcome.is_whole, lasts) {
            (true, true) => "whole, and lasts longer",
            (true, false) => "over before",
            _ => "cut",
        };
        report.add(row.note(format!(
            "of {} messages in {} s; the transfer is {whole}; {}",
            attack.sent,
            attack.seconds,
            effects.join("; ")
        )));
        child.node.end();
        report.add(counted(kind, &mut child)?);
    }
    Ok(())
}

/// What one attack has sent.
struct Attack {
    sent: u32,
    seconds: f64,
}

impl Attack {
    /// Sends the messages of a kind.
    fn make(bench: &Bench<'_>, child: &Child, parent: &str, kind: &Kind) -> Result<Self> {
        let mut command = bench.python();
        command.arg("attack").arg(bench.capture());
        for (option, value) in [
            ("--kind", kind.attack),
            ("--key", KEY),
            ("--child", &child.extended),
            ("--parent", parent),
            ("--sequence", &SEQUENCE.to_string()),
            ("--channel", &CHANNEL.to_string()),
            ("--count", &kind.count.to_string()),
            ("--rate", &kind.rate.to_string()),
        ] {
            command.args([option, value]);
        }
        let said: Value = serde_json::from_str(&run(&mut command)?)?;
        let number = |name: &str| said.get(name).and_then(Value::as_f64);
        let sent = number("sent").context("the attacker does not say what it sent")?;
        let seconds = number("seconds").context("the attacker does not say how long it took")?;
        Ok(Self {
            sent: sent as u32,
            seconds,
        })
    }
}

/// A child's place in its network.
#[derive(PartialEq)]
struct Standing {
    /// How often it has said that it is attached, or is not, and where it was last.
    said: usize,
    parent: Option<String>,
    addresses: BTreeSet<String>,
    /// What its last secured frame was sealed with.
    key_index: Option<u64>,
    /// Its short address in the parent's table.
    listed: Option<String>,
    /// Its addresses there.
    registered: BTreeSet<String>,
}

impl Standing {
    fn of(bench: &Bench<'_>, border: &Border<'_>, child: &mut Child) -> Result<Self> {
        child.node.said();
        let heard = &child.node.heard;
        let is_change = |line: &&String| CHANGES.iter().any(|word| line.contains(word));
        let mut addresses = BTreeSet::new();
        for line in heard {
            if let Some((_, address)) = line.split_once("it is no longer ") {
                addresses.remove(address);
            } else if let Some((_, address)) = line.split_once("it is ") {
                addresses.insert(address.to_owned());
            }
        }
        let short = format!("0x{:04x}", child.short);
        let table = border.control("child table")?;
        let entry = table.iter().find(|line| line.contains(&child.extended));
        let words = entry.map(|line| line.split([' ', '|']).map(str::to_owned));
        let listed = words.and_then(|mut words| words.find(|word| word.starts_with("0x")));
        // Lines such as `7001: fd00:db8:0:0:8f3a:…`.
        let registered = border.control("childip")?;
        let start = format!("{}: ", short.trim_start_matches("0x"));
        let registered = registered
            .iter()
            .filter_map(|line| line.strip_prefix(&start));
        Ok(Self {
            said: heard.iter().filter(is_change).count(),
            parent: child.current_parent(),
            addresses,
            key_index: keys(bench, child)?.last,
            listed,
            registered: registered.map(str::to_owned).collect(),
        })
    }

    /// What is not as it was, in words.
    fn differences(&self, after: &Self) -> Vec<String> {
        let pairs = [
            (
                "times attached and not",
                format!("{:?}", self.said),
                format!("{:?}", after.said),
            ),
            (
                "parent",
                format!("{:?}", self.parent),
                format!("{:?}", after.parent),
            ),
            (
                "addresses",
                format!("{:?}", self.addresses),
                format!("{:?}", after.addresses),
            ),
            (
                "key index",
                format!("{:?}", self.key_index),
                format!("{:?}", after.key_index),
            ),
            (
                "place in the child table",
                format!("{:?}", self.listed),
                format!("{:?}", after.listed),
            ),
            (
                "registered",
                format!("{:?}", self.registered),
                format!("{:?}", after.registered),
            ),
        ];
        let changed = pairs
            .into_iter()
            .filter(|(_, before, after)| before != after);
        let words = |(what, before, after)| format!("{what}: {before}, then {after}");
        changed.map(words).collect()
    }
}

/// What the mote says that it dropped, reason by reason.
fn counted(kind: &Kind, child: &mut Child) -> Result<Row> {
    let said = child.node.all_said();
    let line = said
        .iter()
        .rev()
        .find(|line| line.contains("MLE messages dropped"))
        .context("the mote does not say what it dropped")?;
    let counts = reasons(line);
    let expected = kind.reasons.iter().filter_map(|reason| counts.get(*reason));
    let dropped: u32 = expected.sum();
    let least = f64::from(kind.count) * kind.least;
    let check = format!("{}: counted by the reasons of this kind", kind.name);
    let pass = f64::from(dropped) >= least && dropped > 0;
    let part = rounded(f64::from(dropped) / f64::from(kind.count) * 100.0);
    let named: Vec<_> = counts
        .iter()
        .map(|(reason, count)| format!("{count} × {reason}"))
        .collect();
    let row = Row::new(check, f64::from(dropped), "messages", pass);
    Ok(row.note(format!("{part} % of those sent; {}", named.join(", "))))
}

/// The counts in brackets: `(300 × MLE message sealed with another key, 2 × …)`.
fn reasons(line: &str) -> BTreeMap<&str, u32> {
    let inside = line.split_once("dropped (").map_or("", |(_, rest)| rest);
    let parts = inside.trim_end_matches(')').split(", ");
    let pairs = parts.filter_map(|part| part.split_once(" × "));
    pairs
        .filter_map(|(count, reason)| Some((reason, count.parse().ok()?)))
        .collect()
}

/// Messages of one kind.
struct Kind {
    name: &'static str,
    /// As air.py names it.
    attack: &'static str,
    count: u32,
    /// Frames a second.
    rate: u32,
    /// Why the child is to drop them, and the part that it drops for these reasons at least. The
    /// rest ends in the MAC, or says nothing of the child.
    reasons: &'static [&'static str],
    least: f64,
}

const FORGED: &str = "MLE message sealed with another key";
const NOT_PARENT: &str = "MLE message of another router";
const REPLAYED: &str = "MLE counter of the past";
const UNASKED: &str = "MLE answer that nobody waits for";
const UNSECURED: &str = "MLE message without security";
const MALFORMED: &str = "MLE message of a wrong length";
const DAMAGED: &str = "MLE message that is damaged or from beyond the link";
const RATIONED: &str = "MLE message in a flood";

const KINDS: &[Kind] = &[
    Kind {
        name: "forged",
        attack: "forged",
        count: 300,
        rate: RATE,
        reasons: &[FORGED],
        least: 0.98,
    },
    Kind {
        name: "another network's key",
        attack: "other-key",
        count: 300,
        rate: RATE,
        reasons: &[FORGED, NOT_PARENT],
        least: 0.98,
    },
    // One in 15 s is answered: a parent that has lost its sequence asks so.
    Kind {
        name: "the parent's, of a lower sequence",
        attack: "lower",
        count: 300,
        rate: RATE,
        reasons: &[REPLAYED],
        least: 0.98,
    },
    Kind {
        name: "replayed",
        attack: "replayed",
        count: 300,
        rate: RATE,
        reasons: &[REPLAYED, UNASKED],
        least: 0.9,
    },
    Kind {
        name: "replayed backwards",
        attack: "replayed-backwards",
        count: 300,
        rate: RATE,
        reasons: &[REPLAYED, UNASKED],
        least: 0.9,
    },
    // Of each pair the first one is good.
    Kind {
        name: "overtaken",
        attack: "overtaken",
        count: 300,
        rate: RATE,
        reasons: &[REPLAYED],
        least: 0.49,
    },
    Kind {
        name: "mutated",
        attack: "mutated",
        count: 10_000,
        // Half of them are opened, a quarter has a wrong checksum, and a quarter is anybody's.
        rate: 60,
        reasons: &[FORGED, UNSECURED, MALFORMED, DAMAGED],
        least: 0.6,
    },
    Kind {
        name: "a flood of forgeries",
        attack: "forged",
        count: 4_000,
        rate: 400,
        reasons: &[FORGED, RATIONED],
        least: 0.98,
    },
];

/// Below the 50 a second of which each is opened.
const RATE: u32 = 40;
const SEQUENCE: u64 = 1;
/// What the mote says when its place in the network changes.
const CHANGES: [&str; 4] = ["attached as", "detached", "it is no longer", "it is fd"];
/// 2 KiB a second.
const PACE: Pace = Pace {
    piece: 512,
    every: Duration::from_millis(250),
    half_time: Duration::ZERO,
};
/// Until an attack begins, and until what has become of the child is known.
const STARTS_WITHIN_S: usize = 8;
