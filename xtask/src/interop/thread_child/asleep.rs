//! A child that sleeps: 64 B each minute, a poll each 30 s, and what its receiver costs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::attach::FIRST_RADIO;
use super::capture::{judge, polls};
use super::openthread::{Border, PREFIX};
use super::rig::{Bench, Child, Parts};
use crate::interop::report::{Report, Row, rounded};

/// One connection, on which Linux sends a little each minute: an hour, or a few minutes.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "asleep")?;
    let minutes = if parts.is_full { 60 } else { 3 };
    let mut child = {
        let border = Border::start(&bench, None)?;
        let dataset = border.dataset()?;
        let options = ["--sleep", "hinted:30"];
        let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &options)?;
        let (came, slowest) = messages(&mut child, minutes)?;
        let check = format!("asleep: 64 B each minute there and back, {minutes} minutes");
        let pass = came == minutes && slowest <= SLOWEST;
        let row = Row::new(check, f64::from(came), "messages", pass);
        report.add(row.note(format!("the slowest after {:.1} s", slowest.as_secs_f64())));
        let table = border.control("child table")?.join("\n");
        let is_listed = table.contains(&child.extended);
        report.add(Row::new(
            "asleep: still in the child table",
            f64::from(u8::from(is_listed)),
            "",
            is_listed,
        ));
        child.node.end();
        report.add(duty(&mut child)?);
        child
    };
    bench.end_capture();
    report.add(arithmetic(&bench, &mut child, minutes)?);
    for row in judge(&mut bench, "asleep", &mut [child])? {
        report.add(row);
    }
    Ok(())
}

/// Messages that came back within a minute, and the longest time that one took.
fn messages(child: &mut Child, minutes: u32) -> Result<(u32, Duration)> {
    // Datagrams that ask whether it is there would wait for it, and cost it polls.
    let address = child.address(PREFIX.trim_end_matches(':'))?;
    let mut stream = TcpStream::connect_timeout(&(address, 7).into(), MINUTE * 2)
        .context("no connection to the child that sleeps")?;
    stream.set_read_timeout(Some(MINUTE * 2))?;
    let (mut came, mut slowest) = (0, Duration::ZERO);
    for minute in 0..minutes {
        let began = Instant::now();
        let sent = [minute as u8; 64];
        stream.write_all(&sent)?;
        let mut got = [0; 64];
        if stream.read_exact(&mut got).is_ok() && got == sent {
            came += 1;
            slowest = slowest.max(began.elapsed());
        }
        std::thread::sleep(MINUTE.saturating_sub(began.elapsed()));
    }
    Ok((came, slowest))
}

/// What the mote says of its receiver: how much of the time it was on.
fn duty(child: &mut Child) -> Result<Row> {
    let said = child.node.all_said();
    let line = said
        .iter()
        .rev()
        .find(|line| line.contains("its receiver was on"))
        .context("the mote does not say how long its receiver was on")?;
    let words: Vec<_> = line.split_whitespace().collect();
    let number_before = |unit: &str| {
        let at = words.iter().position(|word| *word == unit)?;
        words.get(at.checked_sub(1)?)?.parse::<f64>().ok()
    };
    let on_s = number_before("s").context("no seconds")?;
    let lasted_s = number_before("seconds").context("no seconds")?;
    let percent = on_s / lasted_s * 100.0;
    let row = Row::new(
        "asleep: receiver on",
        rounded(percent),
        "%",
        (ON_MIN_PERCENT..ON_MAX_PERCENT).contains(&percent),
    );
    Ok(row.note(line.clone()))
}

/// Data requests in the air beside what the intervals say: one each 30 s, and those that a message
/// asks for.
fn arithmetic(bench: &Bench<'_>, child: &mut Child, minutes: u32) -> Result<Row> {
    let counted = polls(bench, child)? as f64;
    let expected = f64::from(minutes) * (60.0 / 30.0 + PER_MESSAGE) + AT_FIRST;
    let part = counted / expected;
    let check = "asleep: data requests, beside the arithmetic of polls";
    let row = Row::new(check, rounded(part), "×", (part - 1.0).abs() <= 0.15);
    Ok(row.note(format!("{counted} of {expected}")))
}

/// A message has two frames. One of the regular data requests brings the first, one more the
/// second, and two go out while its echo awaits the ACK.
const PER_MESSAGE: f64 = 3.0;
/// Attaching, and the handshake.
const AT_FIRST: f64 = 12.0;
/// Seven data requests a minute, of 10 ms each: the line to the radio co-processor and this machine
/// lengthen them. One that listens in vain for 250 ms a minute exceeds it.
const ON_MAX_PERCENT: f64 = 0.3;
/// They take 2 ms at least: one is 0.7 ms in the air, and its ACK may take 0.9 ms. Less would be a
/// clock that counts something else.
const ON_MIN_PERCENT: f64 = 0.02;
/// A message waits for the next regular data request, and the echo needs no other one.
const SLOWEST: Duration = Duration::from_secs(35);
const MINUTE: Duration = Duration::from_secs(60);
