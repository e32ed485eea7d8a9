//! Motet's sockets above OpenThread by the crate `openthread`: a mote of `motet-over` in the Thread
//! network exchanges 250 KiB each way with this machine's kernel and with TCPlp on another mote.

use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::border::{Border, Mote, PREFIX, Programs};
use crate::console::Console;
use crate::network;
use crate::report::Report;

/// Runs every check; gives whether all hold.
pub(crate) fn run(openthread: &Path, mote: &Path, is_json: bool) -> Result<bool> {
    let openthread = openthread.canonicalize().context("OpenThread is missing")?;
    let mote = mote.canonicalize().context("there is no such mote")?;
    let programs = Programs::of(&openthread)?;
    motet_router::namespace::enter().map_err(|error| anyhow::anyhow!("{error}"))?;
    network::set_up()?;
    let folder = tempfile::tempdir()?;
    let mut report = Report::new(is_json);
    let border = Border::start(&programs, folder.path())?;
    // The number 1 is the border router's.
    let mut tcplp = border.add_mote(2)?;
    tcplp.console.ask(&format!("tcp listen :: {MOTE_PORT}"))?;
    let reads = serve(READS, false)?;
    let writes = serve(WRITES, true)?;
    let reads_on = serve(READS_ON, false)?;
    let host = border.address()?;
    let peer = tcplp.addr.to_string();
    let mut command = Command::new(&mote);
    command
        .args(["mote", "--number", "3", "--prefix", PREFIX, "--rcp"])
        .arg(programs.radio())
        .args(["--dataset", border.dataset()])
        .args(["send", &host, &READS.to_string()])
        .args(["receive", &host, &WRITES.to_string()])
        .args(["survive", &host, &READS_ON.to_string()])
        .args(["send", &peer, &MOTE_PORT.to_string()])
        .args(["receive", &peer, &MOTE_PORT.to_string()]);
    let mut motet = Console::start("Motet's mote", &mut command, folder.path())?;
    motet.await_line("joined", PATIENCE)?;

    let sent = outcome(&mut motet, "send")?;
    let Ok(read) = reads.join() else {
        bail!("the kernel's end has panicked");
    };
    let is_whole = read? == LEN;
    report.row(
        "250 KiB to this machine's Linux",
        sent.seconds,
        "s",
        is_whole,
    );
    let check = "packets that OpenThread dropped meanwhile";
    report.row(check, sent.dropped, "", sent.dropped == 0.0);
    let received = outcome(&mut motet, "receive")?;
    drop(writes);
    let check = "250 KiB from this machine's Linux";
    report.row(check, received.seconds, "s", received.read == LEN);
    let survived = outcome(&mut motet, "survive")?;
    let Ok(read) = reads_on.join() else {
        bail!("the kernel's end has panicked");
    };
    let check = "250 KiB to this machine's Linux, a burst, then 5 s away";
    report.row(check, survived.seconds, "s", read? == LEN);

    let read = take(&mut tcplp)?;
    let sent = outcome(&mut motet, "send")?;
    report.row("250 KiB to TCPlp on a mote", sent.seconds, "s", read == LEN);
    give(&mut tcplp)?;
    let received = outcome(&mut motet, "receive")?;
    let check = "250 KiB from TCPlp on a mote";
    report.row(check, received.seconds, "s", received.read == LEN);
    Ok(report.failed == 0)
}

/// What Motet's mote says when a task has ended.
struct Outcome {
    seconds: f64,
    /// Bytes that it received.
    read: usize,
    /// Packets of the mote that OpenThread took and did not send.
    dropped: f64,
}

/// Waits for the end of the mote's task `what`.
fn outcome(motet: &mut Console, what: &str) -> Result<Outcome> {
    let line = motet.await_line(what, PATIENCE)?;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["done", _, read, seconds, dropped] => Ok(Outcome {
            seconds: seconds.parse()?,
            read: read.parse()?,
            dropped: dropped.parse()?,
        }),
        _ => bail!("Motet's mote says `{line}`"),
    }
}

/// TCPlp reads to the end: how many bytes.
fn take(tcplp: &mut Mote) -> Result<usize> {
    let console = &mut tcplp.console;
    console.await_line("TCP: Reached end of stream", PATIENCE)?;
    console.ask("tcp sendend")?;
    console.await_line("TCP: Disconnected", PATIENCE)?;
    let parts = console.heard().iter();
    let parts = parts.filter_map(|line| line.strip_prefix("TCP: Received "));
    let counts = parts.filter_map(|line| line.split_once(" bytes")?.0.parse::<usize>().ok());
    Ok(counts.sum())
}

/// TCPlp sends to the peer that comes next.
fn give(tcplp: &mut Mote) -> Result<()> {
    let console = &mut tcplp.console;
    console.await_line("Accepted connection", PATIENCE)?;
    console.ask(&format!("tcp benchmark run {LEN}"))?;
    console.await_line("TCP Benchmark Complete", PATIENCE)?;
    console.ask("tcp sendend").map(drop)
}

/// The kernel's end: reads all and gives how many bytes, or writes all first.
fn serve(port: u16, writes: bool) -> Result<JoinHandle<Result<usize>>> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))?;
    Ok(thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if writes {
            let content: Vec<u8> = (0..LEN).map(|place| (place % 251) as u8).collect();
            stream.write_all(&content)?;
            stream.shutdown(Shutdown::Write)?;
        }
        let mut arrived = Vec::new();
        stream.read_to_end(&mut arrived)?;
        let right = arrived.iter().zip(0..);
        Ok(right
            .take_while(|(byte, at)| **byte == (at % 251) as u8)
            .count())
    }))
}

const LEN: usize = 250 * 1024;
const MOTE_PORT: u16 = 7;
const READS: u16 = 9101;
const WRITES: u16 = 9102;
const READS_ON: u16 = 9103;
/// On a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
