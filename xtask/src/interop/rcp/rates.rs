//! Goodput over two radios, by the delay of their lines.

use anyhow::Result;

use super::echo::Echo;
use super::rig::{Bench, KEY, Parts};
use crate::interop::report::{Report, Row, load, rounded};

/// Echoes with lines of several delays.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    for (delay, must, moonshot) in [("0", 80.0, 130.0), ("2", 55.0, 100.0), ("5", 35.0, 60.0)] {
        let bench = Bench::new(parts, &format!("rate-{delay}"))?;
        let line = ["--to-rcp", delay, "--to-host", delay];
        // Without a delay nothing stands between the two.
        let line: &[&str] = if delay == "0" { &[] } else { &line };
        let pair = bench.pair([line, line], &["--key", KEY])?;
        let mut rates = Vec::new();
        let mut is_whole = true;
        for _ in 0..RUNS {
            let outcome = Echo::start(pair.address, KIB)?.finish();
            is_whole &= outcome.is_whole;
            rates.push(outcome.rate());
        }
        rates.sort_by(f64::total_cmp);
        let median = rates.get(RUNS / 2).copied().unwrap_or(0.0);
        let row = Row::new(
            format!("goodput each way at once, line delay {delay} ms"),
            rounded(median),
            "kb/s",
            is_whole && median >= must,
        );
        let [least, most] = [rates.first(), rates.last()].map(|rate| rate.copied().unwrap_or(0.0));
        let note = format!(
            "{must} asked; {least:.0} to {most:.0} in {RUNS} runs, {}",
            load()
        );
        report.add(row.moonshot(is_whole && median >= moonshot).note(note));
    }
    Ok(())
}

/// Transfers of which the one in the middle counts.
const RUNS: usize = 3;
const KIB: usize = 40;
