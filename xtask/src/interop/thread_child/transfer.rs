//! 250 KiB each way between Motet's child and Linux, or OpenThread's TCP.

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::attach::FIRST_RADIO;
use super::capture::judge;
use super::openthread::{Border, Mote, PREFIX};
use super::rig::{Bench, Child, Parts};
use crate::interop::rcp::echo::{Echo, await_reachable};
use crate::interop::rcp::rig::PATIENCE;
use crate::interop::report::{Report, Row, load, rounded};

/// A border router as the parent, and Linux behind it.
pub(super) fn linux(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "linux")?;
    // Its address outlives the border's borrow of the bench.
    let mut children = {
        let border = Border::start(&bench, None)?;
        let dataset = border.dataset()?;
        let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &[])?;
        let address = outside(&mut child)?;
        report.add(whole("Linux behind the border router", address, 250)?);
        report.add(whole("Linux behind the border router", address, 1_024)?);
        [child]
    };
    for row in judge(&mut bench, "linux", &mut children)? {
        report.add(row);
    }
    Ok(())
}

/// The child's address in the border router's prefix, once Linux reaches it.
pub(super) fn outside(child: &mut Child) -> Result<Ipv6Addr> {
    let address = child.address(PREFIX.trim_end_matches(':'))?;
    await_reachable(address, PATIENCE)?;
    Ok(address)
}

/// Bytes to the child's echo service and back; more than 250 KiB is a goal beyond.
fn whole(peer: &str, address: Ipv6Addr, kib: usize) -> Result<Row> {
    let outcome = Echo::start(address, kib)?.finish();
    let check = format!("{peer}: {kib} KiB each way, by SHA-256");
    let row = Row::new(check, rounded(outcome.kib()), "KiB", outcome.is_whole);
    let row = row.note(format!("{:.0} kb/s each way, {}", outcome.rate(), load()));
    Ok(match kib > 250 {
        true => row.moonshot(outcome.is_whole),
        false => row,
    })
}

/// TCPlp on another mote.
pub(super) fn tcplp(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "tcplp")?;
    let mut parent = Mote::form(&bench, 2)?;
    let dataset = parent.dataset()?;
    let mut other = Mote::join(&bench, 3, &dataset, None)?;
    let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &["--connections", "8"])?;
    report.add(benchmark(
        "TCPlp on another mote",
        &mut other,
        child.mesh_local,
    )?);
    report.add(benchmark(
        "TCPlp on the parent or a router",
        &mut parent,
        child.mesh_local,
    )?);
    child.node.said();
    for row in judge(&mut bench, "tcplp", &mut [child])? {
        report.add(row);
    }
    Ok(())
}

/// 250 KiB of OpenThread's benchmark to the child's echo service and back.
fn benchmark(peer: &str, mote: &mut Mote, child: Ipv6Addr) -> Result<Row> {
    let console = &mut mote.console;
    console.ask("tcp init")?;
    console.skip();
    let first = console.heard().len();
    console.ask(&format!("tcp connect {child} 7"))?;
    console.await_line("Connection established", TCP_PATIENCE)?;
    let began = Instant::now();
    console.ask(&format!("tcp benchmark run {BYTES}"))?;
    console.await_line("TCP Benchmark Complete", TCP_PATIENCE)?;
    let (mut bytes, mut last) = (0, Instant::now());
    while bytes < BYTES && last.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
        let heard = console.heard().get(first..).unwrap_or_default();
        let now = heard.iter().filter_map(|line| received(line)).sum();
        if now > bytes {
            (bytes, last) = (now, Instant::now());
        }
    }
    let took = (last - began).as_secs_f64();
    let heard = console.heard().get(first..).unwrap_or_default();
    let is_same = is_pattern(heard);
    console.ask("tcp abort")?;
    console.ask("tcp deinit")?;
    let check = format!("{peer}: 250 KiB each way");
    let pass = bytes == BYTES && is_same;
    let row = Row::new(check, rounded(bytes as f64 / 1_024.0), "KiB", pass);
    let rate = bytes as f64 * 8.0 / 1_000.0 / took.max(1e-6);
    let order = if is_same {
        "in order"
    } else {
        "not what was sent"
    };
    Ok(row.note(format!("{order}, {rate:.0} kb/s each way, {}", load())))
}

/// How many bytes a line says to have received.
fn received(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("TCP: Received ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Whether what came is what the benchmark sends: one text over and over.
fn is_pattern(heard: &[String]) -> bool {
    let parts = heard.iter().filter(|line| received(line).is_some());
    let mut parts = parts.filter_map(|line| line.split_once(" bytes: "));
    let Some((_, first)) = parts.next() else {
        return false;
    };
    let mut whole = first.to_owned();
    parts.for_each(|(_, part)| whole.push_str(part));
    let whole = whole.as_bytes();
    let period = (1..=PERIOD_MAX.min(whole.len() / 2)).find(|period| {
        whole
            .iter()
            .zip(whole.iter().skip(*period))
            .all(|(a, b)| a == b)
    });
    whole.len() >= BYTES && period.is_some()
}

/// The child behind a second router.
pub(super) fn behind_a_second_router(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "second")?;
    let mut children = {
        let place = Place::new(&bench)?;
        report.add(whole(
            "Linux, the child behind a second router",
            place.address,
            250,
        )?);
        let note = format!(
            "parent {}, border router {}",
            place.child.parent, place.border_extended
        );
        let is_second = place.child.parent == place.router_extended;
        let row = Row::new(
            "the parent is the second router",
            f64::from(u8::from(is_second)),
            "",
            is_second,
        );
        report.add(row.note(note));
        [place.child]
    };
    for row in judge(&mut bench, "second", &mut children)? {
        report.add(row);
    }
    Ok(())
}

/// A border router, a second router that is preferred as a parent, and a child.
pub(super) struct Place<'b> {
    pub(super) child: Child,
    pub(super) router: Mote,
    pub(super) border: Border<'b>,
    pub(super) dataset: String,
    /// The child's address in the prefix of the border router.
    pub(super) address: Ipv6Addr,
    /// The prefix of [`Self::address`].
    pub(super) prefix: &'static str,
    router_extended: String,
    border_extended: String,
}

impl<'b> Place<'b> {
    pub(super) fn new(bench: &'b Bench<'b>) -> Result<Self> {
        let border = Border::start(bench, None)?;
        Self::around(bench, border)
    }

    /// As [`Self::new`], in the network of a border router that runs.
    pub(super) fn around(bench: &'b Bench<'b>, border: Border<'b>) -> Result<Self> {
        let dataset = border.dataset()?;
        let mut router = Mote::join(bench, 3, &dataset, None)?;
        border.control("parentpriority -1")?;
        router.console.ask("parentpriority 1")?;
        let mut child = Child::start(bench, FIRST_RADIO, &dataset, OPTIONS)?;
        let border_extended = border.control("extaddr")?;
        let border_extended = border_extended.into_iter().next().context("no address")?;
        Ok(Self {
            address: outside(&mut child)?,
            prefix: PREFIX,
            router_extended: router.one("extaddr")?,
            border_extended,
            child,
            router,
            border,
            dataset,
        })
    }

    /// Puts a new child, with nothing in its memory, below the second router; gives the old one.
    pub(super) fn renew_child(&mut self, bench: &Bench<'_>, number: u8) -> Result<Child> {
        let state = format!("state{number}");
        let options = [OPTIONS, &["--state", &state]].concat();
        self.child.node.end();
        let child = Child::start(bench, number, &self.dataset, &options)?;
        let old = std::mem::replace(&mut self.child, child);
        self.address = self.child.address(self.prefix.trim_end_matches(':'))?;
        await_reachable(self.address, PATIENCE)?;
        Ok(old)
    }
}

const OPTIONS: &[&str] = &["--connections", "8"];
const BYTES: usize = 256_000;
const TCP_PATIENCE: Duration = Duration::from_secs(150);
/// The longest text that a benchmark could repeat.
const PERIOD_MAX: usize = 4_096;
