//! A child that sleeps: 64 B each minute, a poll each 30 s, and what its receiver costs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::attach::FIRST_RADIO;
use super::capture::{judge, polls};
use super::openthread::Border;
use super::rig::{Bench, Child, Parts};
use super::transfer::outside;
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
        let began = Instant::now();
        let (came, slowest) = messages(&mut child, minutes)?;
        let lasted = began.elapsed();
        let check = format!("asleep: 64 B each minute there and back, {minutes} minutes");
        let row = Row::new(check, f64::from(came), "messages", came == minutes);
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
        report.add(duty(&mut child, lasted)?);
        child
    };
    bench.end_capture();
    let count = polls(&bench, &mut child)?;
    report.add(Row::new(
        "asleep: data requests in all",
        count as f64,
        "frames",
        count > 0,
    ));
    for row in judge(&mut bench, "asleep", &mut [child])? {
        report.add(row);
    }
    Ok(())
}

/// Messages that came back within a minute, and the longest time that one took.
fn messages(child: &mut Child, minutes: u32) -> Result<(u32, Duration)> {
    let address = outside(child)?;
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

/// How long the receiver was on, beside polls times what one poll takes: both as the mote counts.
fn duty(child: &mut Child, lasted: Duration) -> Result<Row> {
    let said = child.node.all_said();
    let line = said
        .iter()
        .rev()
        .find(|line| line.contains("its receiver was on"))
        .context("the mote does not say how long its receiver was on")?;
    let words: Vec<_> = line.split_whitespace().collect();
    let number_before = |unit: &str| {
        let at = words.iter().position(|word| word.starts_with(unit))?;
        words.get(at.checked_sub(1)?)?.parse::<f64>().ok()
    };
    let on_s = number_before("s").context("no seconds")?;
    let asked = number_before("polls").context("no polls")?;
    let each_ms = number_before("ms").context("no time of a poll")?;
    let expected_s = asked * each_ms / 1_000.0;
    let part = on_s / expected_s.max(1e-9);
    let check = "asleep: receiver on, beside polls times the time of one";
    let row = Row::new(check, rounded(part), "×", (part - 1.0).abs() <= 0.15);
    let percent = on_s / lasted.as_secs_f64() * 100.0;
    Ok(row.note(format!(
        "{percent:.3} % of {:.0} s; {line}",
        lasted.as_secs_f64()
    )))
}

const MINUTE: Duration = Duration::from_secs(60);
