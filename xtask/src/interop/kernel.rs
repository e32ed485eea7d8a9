//! `cargo xtask interop kernel`: the lab's host beside the kernel that it stands for.
//!
//! Each of twenty settings is sent by `motet send`, whose far end is this machine's kernel, and by
//! `motet send --virtual`, whose far end is the lab's host, with the same seeds. Judged is the
//! median over the settings of how far the two differ in goodput, in retransmissions and in retries
//! of links. Left out: bytes that differ, which the command itself would refuse.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::report::{Report, Row, load, rounded};
use crate::workspace::Workspace;

/// Runs every setting: a table, or JSON alone, goes to stdout.
pub(crate) fn run(workspace: &Workspace, json: bool) -> Result<bool> {
    let motet = workspace.debug_motet()?;
    let mut report = Report::new("kernel", json);
    let mut apart: [Vec<f64>; 3] = Default::default();
    for setting in &SETTINGS {
        let file = content(workspace, setting.bytes)?;
        let kernel = sent(&motet, &file, setting, false)?;
        let lab = sent(&motet, &file, setting, true)?;
        for ((differences, kernel), lab) in apart.iter_mut().zip(kernel).zip(lab) {
            differences.push(difference_percent(kernel, lab));
        }
        let [goodput, retransmissions, retries] = [0, 1, 2].map(|figure| {
            let digits = usize::from(figure == 0);
            format!("{:.digits$} and {:.digits$}", kernel[figure], lab[figure])
        });
        let note = format!(
            "kernel and lab: {goodput} kb/s, {retransmissions} retransmissions, {retries} link \
             retries"
        );
        let value = rounded(difference_percent(kernel[0], lab[0]));
        report.add(Row::new(setting.name(), value, "%", true).note(note));
    }
    for (figure, differences) in FIGURES.iter().zip(&mut apart) {
        let absolute: Vec<f64> = differences.iter().map(|percent| percent.abs()).collect();
        let (signed, absolute) = (median(differences.clone()), median(absolute));
        let note = format!(
            "median of |lab - kernel| {:.1} %; {} runs each, {}",
            absolute,
            SEEDS.len(),
            load()
        );
        let is_near = signed.abs() <= APART_MAX_PERCENT;
        report.add(Row::new(*figure, rounded(signed), "%", is_near).note(note));
    }
    Ok(report.is_good())
}

/// One way to send.
struct Setting {
    bytes: usize,
    arguments: &'static str,
}

impl Setting {
    fn name(&self) -> String {
        let kilobytes = self.bytes / 1_000;
        format!("{kilobytes} KB {}", self.arguments)
            .trim_end()
            .to_owned()
    }
}

/// What `motet send --json` says, as far as it is compared.
#[derive(Deserialize)]
struct Sent {
    goodput_kbps: f64,
    retransmissions: u64,
    link_retries: u64,
}

/// Mean goodput over the seeds, retransmissions and retries of links in all.
fn sent(motet: &Path, file: &Path, setting: &Setting, is_virtual: bool) -> Result<[f64; 3]> {
    // Runs against the kernel take real time, and little of the processor.
    let runs: Vec<_> = SEEDS
        .iter()
        .map(|seed| {
            let mut command = Command::new(motet);
            command
                .arg("send")
                .arg(file)
                .args(setting.arguments.split_whitespace())
                .args(["--json", "--seed", &seed.to_string()])
                .args(is_virtual.then_some("--virtual"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().context("cannot run motet")
        })
        .collect();
    let mut sums = [0.0; 3];
    for run in runs {
        let output = run?.wait_with_output().context("motet does not end")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("motet send {}: {}", setting.arguments, said.trim());
        }
        let sent: Sent = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("motet send {}: no such JSON", setting.arguments))?;
        let figures = [
            sent.goodput_kbps / SEEDS.len() as f64,
            sent.retransmissions as f64,
            sent.link_retries as f64,
        ];
        for (sum, figure) in sums.iter_mut().zip(figures) {
            *sum += figure;
        }
    }
    Ok(sums)
}

/// A file of `bytes` bytes in which every place differs from its neighbours.
fn content(workspace: &Workspace, bytes: usize) -> Result<std::path::PathBuf> {
    let path = workspace.scratch()?.join(format!("kernel-{bytes}"));
    let content: Vec<u8> = (0..bytes).map(|at| (at * 31 + at / 251) as u8).collect();
    fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// How far the lab is above the kernel, % of the larger of the two.
fn difference_percent(kernel: f64, lab: f64) -> f64 {
    match kernel.max(lab) {
        0.0 => 0.0,
        larger => (lab - kernel) / larger * 100.0,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle.wrapping_sub(1)), values.get(middle)) {
        (Some(below), Some(above)) if values.len().is_multiple_of(2) => {
            f64::midpoint(*below, *above)
        }
        (_, Some(value)) => *value,
        _ => 0.0,
    }
}

const FIGURES: [&str; 3] = [
    "goodput: the lab above the kernel, median over settings",
    "retransmissions: the lab above the kernel, median over settings",
    "link retries: the lab above the kernel, median over settings",
];

const APART_MAX_PERCENT: f64 = 5.0;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

const fn setting(bytes: usize, arguments: &'static str) -> Setting {
    Setting { bytes, arguments }
}

const CIT: &str = "--hops 6 --radio telosb --forwarding cit --channels multi --compression tcphc";

const SETTINGS: [Setting; 20] = [
    setting(20_000, ""),
    setting(60_000, ""),
    setting(60_000, "--hops 1"),
    setting(60_000, "--hops 2"),
    setting(60_000, "--hops 6"),
    setting(20_000, "--pacing off"),
    setting(20_000, "--frame-loss 0.1"),
    setting(20_000, "--frame-loss 0.2"),
    setting(20_000, "--packet-loss 0.03"),
    setting(20_000, "--hops 1 --packet-loss 0.1"),
    setting(60_000, "--compression tcphc"),
    setting(60_000, "--window 8"),
    setting(60_000, "--hops 1 --radio telosb"),
    setting(60_000, "--radio nrf52840"),
    setting(60_000, CIT),
    setting(200_000, CIT),
    setting(60_000, "--direction down"),
    setting(60_000, "--direction down --hops 1"),
    setting(20_000, "--direction down --packet-loss 0.03"),
    setting(20_000, "--hops 1 --sleep hinted"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_parts_of_the_larger() {
        assert_eq!(difference_percent(0.0, 0.0), 0.0);
        assert_eq!(difference_percent(50.0, 40.0), -20.0);
        assert_eq!(difference_percent(0.0, 3.0), 100.0);
    }

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), 3.0);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
