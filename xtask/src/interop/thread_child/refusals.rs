//! Input that is wrong, and networks that take no child: one sentence, and the exit status.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::attach::FIRST_RADIO;
use super::openthread::{CHANNEL, KEY, Mote};
use super::rig::{Bench, Parts};
use crate::interop::rcp::rig::Node;
use crate::interop::report::{Report, Row};

/// Datasets of no use, and a network in which nobody answers.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "refusals")?;
    let mut parent = Mote::form(&bench, 2)?;
    let dataset = parent.dataset()?;
    let without_key = dataset.replace(&format!("0510{KEY}"), "");
    let other_channel = dataset.replace("000300000f", "0003000001");
    let other_key = dataset.replace(KEY, OTHER_KEY);
    let other_pan = dataset.replace("0102abcd", "0102abce");
    let with_done = format!("{dataset}\r\nDone\r\n");
    let file = bench.folder.join("dataset.txt");
    std::fs::write(&file, with_done)?;
    for (what, dataset, status, word) in [
        ("a dataset that is none", "0e08zz", 2, "dataset"),
        ("a dataset that is cut short", &dataset[..31], 2, "dataset"),
        ("a dataset without a key", &without_key, 2, "network key"),
        (
            "a channel that the radio lacks",
            &other_channel,
            2,
            "channel",
        ),
        (
            "another PAN than that of any router",
            &other_pan,
            1,
            "0xabcd",
        ),
        ("another key than that of the parent", &other_key, 1, "key"),
    ] {
        report.add(refused(&bench, what, dataset, status, word)?);
    }
    report.add(without_room(&bench, &other_key)?);
    let path = file.display().to_string();
    let mut node = Node::start(
        "Motet's child",
        &mut bench.mote(FIRST_RADIO, &["--thread", &path]),
    )?;
    let attached = node.await_line("attached as");
    let pass = attached.is_ok();
    let row = Row::new(
        "a file, with the Done of ot-ctl",
        f64::from(u8::from(pass)),
        "",
        pass,
    );
    report.add(row.note(attached.unwrap_or_else(|error| error.to_string())));
    Ok(())
}

/// A router that is heard in a network of its own, and has no address left.
fn without_room(bench: &Bench<'_>, dataset: &str) -> Result<Row> {
    let mut command = bench.python();
    command.args(["router", "--key", OTHER_KEY, "--channel"]);
    command.arg(CHANNEL.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut router = command.spawn().context("cannot start the router")?;
    let row = refused(
        bench,
        "a router without an address left (Status)",
        dataset,
        1,
        "takes no child",
    );
    // Its input ends, and so does it.
    drop(router.stdin.take());
    let _ = router.wait();
    row
}

fn refused(bench: &Bench<'_>, what: &str, dataset: &str, wanted: i32, word: &str) -> Result<Row> {
    let state = format!("state-{}", what.replace(' ', "-"));
    let options = ["--thread", dataset, "--state", &state];
    let mut node = Node::start("Motet's child", &mut bench.mote(FIRST_RADIO, &options))?;
    let status = node.status(REFUSED_WITHIN)?;
    node.end();
    let said = node.all_said();
    let sentences: Vec<_> = said
        .iter()
        .filter(|line| line.starts_with("motet: "))
        .collect();
    let last = sentences.last().map_or("", |line| line.as_str());
    let pass = status == Some(wanted) && last.contains(word) && sentences.len() <= 3;
    let row = Row::new(
        format!("refused: {what}, the exit status"),
        status.map(f64::from),
        "",
        pass,
    );
    Ok(row.note(last.to_owned()))
}

const OTHER_KEY: &str = "ffeeddccbbaa99887766554433221100";
const REFUSED_WITHIN: Duration = Duration::from_secs(60);
