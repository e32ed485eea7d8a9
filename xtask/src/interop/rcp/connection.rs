//! One TCP connection over two radios: whole, whatever becomes of the radios meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::capture::Sniffer;
use super::echo::{Echo, await_reachable, round_trip};
use super::rig::{Bench, KEY, PAN, PATIENCE, Pair, Parts};
use crate::interop::report::{Report, Row, load, rounded};

/// 250 KiB and 1 MiB to a mote and back, in the clear, so that tshark sees all headers.
pub(super) fn whole(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "whole")?;
    let mut pair = bench.pair([&[], &[]], &["--pan", PAN])?;
    let sniffer = Sniffer::start(&bench, "whole", &[])?;
    let round_trip = round_trip(pair.address)?.as_secs_f64() * 1_000.0;
    let row = Row::new(
        "a datagram to a mote and back, with nothing else on its way",
        rounded(round_trip),
        "ms",
        round_trip <= ROUND_TRIP_MAX_MS,
    );
    report.add(row.note(format!("{ROUND_TRIP_MAX_MS} asked; {}", load())));
    let outcome = Echo::start(pair.address, 250)?.finish();
    let row = Row::new(
        "two radios: 250 KiB from a socket of Linux and back, by SHA-256",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole,
    );
    report.add(row.note(format!("{:.0} kb/s each way", outcome.rate())));
    report.add(sniffer.judge()?);
    let outcome = Echo::start(pair.address, 1_024)?.finish();
    let row = Row::new(
        "two radios: 1 MiB from a socket of Linux and back, by SHA-256",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole,
    );
    let note = format!("{:.0} kb/s each way", outcome.rate());
    report.add(row.moonshot(outcome.is_whole).note(note));
    pair.mote.end();
    pair.router.end();
    Ok(())
}

/// Radios killed in the midst of a transfer: the router's, the mote's, the router's again.
pub(super) fn kills(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "kills")?;
    let pair = bench.pair([&[], &[]], &["--key", KEY])?;
    let mut echo = Echo::start(pair.address, 250)?;
    let mut returns = Returns::default();
    for (part, radio) in [(0.25, 1), (0.5, 2), (0.75, 1)] {
        echo.await_part(part)?;
        let returned = bench.kill_radio(radio)?;
        returns.measure(&pair, &mut echo, returned)?;
    }
    let outcome = echo.finish();
    let row = Row::new(
        "a radio killed three times, each at least once: one connection, whole",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole,
    );
    report.add(row.moonshot(outcome.is_whole));
    returns.report("killed", report);
    Ok(())
}

/// Radios that are stopped for five seconds, first the router's, then the mote's.
pub(super) fn stops(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "stops")?;
    let pair = bench.pair([&[], &[]], &["--key", KEY])?;
    let mut echo = Echo::start(pair.address, 250)?;
    let mut returns = Returns::default();
    for (part, radio) in [(0.3, 1), (0.6, 2)] {
        echo.await_part(part)?;
        bench.signal(radio, "STOP")?;
        thread::sleep(STOP);
        let resumed = Instant::now();
        bench.signal(radio, "CONT")?;
        returns.measure(&pair, &mut echo, resumed)?;
    }
    let outcome = echo.finish();
    report.add(Row::new(
        "each radio stopped for 5 s: one connection, whole",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole,
    ));
    returns.report("stopped", report);
    Ok(())
}

/// Radios whose every answer and frame is late.
pub(super) fn late(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "late")?;
    let line = ["--to-host", "100"];
    let pair = bench.pair([&line, &line], &["--key", KEY])?;
    let outcome = Echo::start(pair.address, 20)?.finish();
    let row = Row::new(
        "every answer of both radios 100 ms late: 20 KiB each way, whole",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole,
    );
    report.add(row.note(format!("{:.1} kb/s each way", outcome.rate())));
    Ok(())
}

/// How long after the return of radios what came by them.
#[derive(Default)]
struct Returns {
    datagrams: Vec<Duration>,
    bytes: Vec<Duration>,
}

impl Returns {
    /// A datagram to the mote and back, and the connection's next byte.
    fn measure(&mut self, pair: &Pair, echo: &mut Echo, returned: Instant) -> Result<()> {
        await_reachable(pair.address, PATIENCE)?;
        self.datagrams.push(returned.elapsed());
        self.bytes.push(echo.await_byte_after(returned)?);
        Ok(())
    }

    fn report(&self, how: &str, report: &mut Report) {
        for (what, times) in [
            ("a datagram there and back", &self.datagrams),
            ("the connection's next byte", &self.bytes),
        ] {
            let seconds: Vec<_> = times.iter().map(Duration::as_secs_f64).collect();
            let slowest = seconds.iter().copied().fold(0.0, f64::max);
            let row = Row::new(
                format!("a radio {how}: {what} after its return"),
                rounded(slowest),
                "s",
                slowest <= 2.0 && !seconds.is_empty(),
            );
            let each: Vec<_> = seconds.iter().map(|time| format!("{time:.2}")).collect();
            let note = format!("each time: {} s, {}", each.join(", "), load());
            report.add(row.moonshot(slowest <= 1.0).note(note));
        }
    }
}

const STOP: Duration = Duration::from_secs(5);

/// Less than any pause of a program at one of the ends.
const ROUND_TRIP_MAX_MS: f64 = 15.0;
