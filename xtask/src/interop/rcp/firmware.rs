//! Firmware as it is in the field, played by line.py, and the framing judged by other hands.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::capture::Sniffer;
use super::echo::Echo;
use super::rig::{Bench, KEY, Parts, run};
use crate::interop::report::{Report, Row, rounded};

/// Both radios with nRF's stamping, short structs, strange transactions and garbage on their lines.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "firmware")?;
    let [first, second] = [1, 2].map(|number| {
        let files = [format!("{number}.json"), format!("{number}.record")];
        files.map(|file| bench.folder.join(file).display().to_string())
    });
    let [first, second] = [&first, &second].map(|[count, record]| {
        let kept = ["--count", count.as_str(), "--record", record.as_str()];
        [&QUIRKS[..], &kept].concat()
    });
    let mut pair = bench.pair([&first, &second], &["--key", KEY])?;
    let heard = bench.folder.join("30.json").display().to_string();
    let mut sniffer = Sniffer::start(&bench, "firmware", &["--garbage", "--count", &heard])?;
    let outcome = Echo::start(pair.address, 40)?.finish();
    pair.mote.end();
    pair.router.end();
    await_silence(&bench)?;
    let account = sniffer.end()?;
    let row = Row::new(
        "nRF's stamping, short structs, mixed transactions, garbage: 40 KiB each way, whole",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole,
    );
    report.add(row.note(survived(&bench)?));
    report.add(stamped(&bench)?);
    report.add(dropped(&bench, &account)?);
    report.add(sniffer.judge()?);
    framing(&bench, report)
}

fn sum(bench: &Bench<'_>, name: &str) -> Result<u64> {
    Ok(bench.count("1.json", name)? + bench.count("2.json", name)?)
}

/// What the firmware and the line did meanwhile.
fn survived(bench: &Bench<'_>) -> Result<String> {
    Ok(format!(
        "{} structs cut, {} strange transactions, {} pieces of garbage",
        sum(bench, "shortened")?,
        sum(bench, "strangers")?,
        sum(bench, "garbage")?
    ))
}

/// A frame that the firmware stamps anew opens at no peer.
fn stamped(bench: &Bench<'_>) -> Result<Row> {
    let (stamped, secured) = (sum(bench, "stamped")?, sum(bench, "secured")?);
    let row = Row::new(
        "secured frames that nRF's firmware would have spoilt",
        stamped as f64,
        "frames",
        stamped == 0 && secured > 0,
    );
    Ok(row.note(format!("of {secured} secured ones")))
}

/// Waits until the sniffer's line brings nothing more: all of it has been read then.
fn await_silence(bench: &Bench<'_>) -> Result<()> {
    let mut before = 0;
    loop {
        let made = bench.count("30.json", "garbage")?;
        if made == before {
            return Ok(());
        }
        before = made;
        thread::sleep(SILENCE);
    }
}

/// Whether each piece of garbage is counted, once.
fn dropped(bench: &Bench<'_>, account: &Value) -> Result<Row> {
    let made = bench.count("30.json", "garbage")?;
    let counted = account.get("spoilt").and_then(Value::as_u64);
    let counted = counted.context("the sniffer counts nothing spoilt")?;
    let pass = counted > 0 && counted == made;
    let row = Row::new(
        "pieces of garbage that `motet sniff` counts",
        counted as f64,
        "pieces",
        pass,
    );
    Ok(row.note(format!("of {made}")))
}

/// aiospinel and pyspinel read what Motet wrote.
fn framing(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let python = match &bench.parts.judges {
        Ok(python) => python,
        Err(why) => {
            let check = "frames that aiospinel and pyspinel read";
            report.add(Row::failed(check, why.clone()));
            return Ok(());
        }
    };
    let records: [PathBuf; 2] = [1, 2].map(|number| bench.folder.join(format!("{number}.record")));
    let mut judge = Command::new(python);
    judge.args(["-B", &bench.script("framing.py")]);
    judge.args(&records).current_dir(&bench.folder);
    let found: Value = serde_json::from_str(&run(&mut judge)?)?;
    let count = |name: &str| found.get(name).and_then(Value::as_u64).unwrap_or(0);
    let frames = count("frames");
    for (check, good, of) in [
        ("frames of Motet that aiospinel reads", "aiospinel", frames),
        (
            "frames of Motet that aiospinel writes with the same bytes",
            "same",
            frames,
        ),
        ("frames of Motet that pyspinel reads", "pyspinel", frames),
        (
            "transmissions whose values pyspinel reads",
            "values",
            count("transmissions"),
        ),
    ] {
        let good = count(good);
        let row = Row::new(check, good as f64, "frames", good == of && of > 0);
        report.add(row.note(format!("of {of}")));
    }
    Ok(())
}

const QUIRKS: [&str; 4] = ["--nrf", "--short", "--mixed-tids", "--garbage"];

/// How long nothing comes over a line on which nothing is under way.
const SILENCE: Duration = Duration::from_millis(500);
