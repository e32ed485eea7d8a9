//! How many criteria of the experiments hold, and how often two runs of them agree.
//!
//! Purpose: reads files that `motet reproduce --json` wrote, of any form, of any seeds. For each it
//! counts the rows that are judged and those that hold; for every two it counts the rows that both
//! judge and those on which they agree. A row that one of them leaves open is no disagreement: what
//! is not judged claims nothing.
//! Left out: running the experiments, which takes hours in the full form.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The least part of judged rows that hold, and of rows judged twice that agree.
const HELD_LEAST: f64 = 0.95;
const AGREED_LEAST: f64 = 0.97;

/// What is read of a row; lines without an experiment say that rows are missing.
#[derive(Deserialize)]
struct Line {
    experiment: Option<String>,
    #[serde(default)]
    point: serde_json::Value,
    #[serde(default)]
    metric: String,
    pass: Option<bool>,
}

/// The verdicts of a file, by row.
type Verdicts = BTreeMap<String, bool>;

/// So many of so many.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Part {
    of: usize,
    all: usize,
}

impl Part {
    fn add(&mut self, counts: bool) {
        self.of += usize::from(counts);
        self.all += 1;
    }

    /// Of nothing, nothing is missing.
    fn is_at_least(self, least: f64) -> bool {
        self.of as f64 >= least * self.all as f64
    }

    fn percent(self) -> f64 {
        100.0 * self.of as f64 / (self.all as f64).max(1.0)
    }
}

/// Prints the shares of `files`, the rows that are missed and those on which two files differ;
/// whether enough hold and agree.
///
/// # Errors
/// For a file that cannot be read, or is not of rows.
pub(crate) fn run(files: &[PathBuf]) -> Result<bool> {
    let read = |path: &PathBuf| Ok((path.display().to_string(), read(path)?));
    let files: Vec<(String, Verdicts)> = files.iter().map(read).collect::<Result<_>>()?;
    let mut held = Part::default();
    let mut missed: BTreeMap<&str, Part> = BTreeMap::new();
    for (name, verdicts) in &files {
        let mut part = Part::default();
        for (row, pass) in verdicts {
            part.add(*pass);
            held.add(*pass);
            missed.entry(row).or_default().add(!*pass);
        }
        println!("{name}: {} of {} hold", part.of, part.all);
    }
    missed.retain(|_, part| part.of > 0);
    for (row, part) in &missed {
        println!("missed in {} of {}: {row}", part.of, part.all);
    }
    let verdicts: Vec<&Verdicts> = files.iter().map(|(_, verdicts)| verdicts).collect();
    let (agreed, differing) = agreement(&verdicts);
    for row in differing {
        println!("differs: {row}");
    }
    println!(
        "{} of {} verdicts hold ({:.1} %, {:.0} asked)\n\
         {} of {} pairs of verdicts agree ({:.1} %, {:.0} asked)",
        held.of,
        held.all,
        held.percent(),
        100.0 * HELD_LEAST,
        agreed.of,
        agreed.all,
        agreed.percent(),
        100.0 * AGREED_LEAST,
    );
    Ok(held.is_at_least(HELD_LEAST) && agreed.is_at_least(AGREED_LEAST))
}

fn read(path: &Path) -> Result<Verdicts> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    verdicts(&text).with_context(|| format!("{} is no file of rows", path.display()))
}

fn verdicts(text: &str) -> Result<Verdicts> {
    let mut verdicts = Verdicts::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line)?;
        let (Some(experiment), Some(pass)) = (line.experiment, line.pass) else {
            continue;
        };
        let row = format!("{experiment} {} {}", line.point, line.metric);
        let is_new = verdicts.insert(row, pass).is_none();
        ensure!(is_new, "{experiment}: a row is there twice");
    }
    Ok(verdicts)
}

/// The pairs of verdicts on the same row that agree, over every two files, and the rows on which
/// some do not.
fn agreement(files: &[&Verdicts]) -> (Part, Vec<String>) {
    let mut agreed = Part::default();
    let mut differing = Vec::new();
    for (place, first) in files.iter().enumerate() {
        for second in &files[place + 1..] {
            for (row, pass) in *first {
                let Some(other) = second.get(row) else {
                    continue;
                };
                agreed.add(pass == other);
                if pass != other && !differing.contains(row) {
                    differing.push(row.clone());
                }
            }
        }
    }
    (agreed, differing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(metric: &str, pass: &str) -> String {
        format!(r#"{{"experiment":"e","point":{{"hops":3}},"metric":"{metric}","pass":{pass}}}"#)
    }

    #[test]
    fn rows_that_both_judge_are_compared_and_no_others() {
        let lines = |rows: [(&str, &str); 3]| rows.map(|(name, pass)| row(name, pass)).join("\n");
        let first = verdicts(&lines([("a", "true"), ("b", "false"), ("c", "true")])).unwrap();
        let second = verdicts(&lines([("a", "true"), ("b", "true"), ("c", "null")])).unwrap();
        assert_eq!(second.len(), 2);
        let (agreed, differing) = agreement(&[&first, &second]);
        assert_eq!(agreed, Part { of: 1, all: 2 });
        assert_eq!(differing, [r#"e {"hops":3} b"#]);
        assert!(!agreed.is_at_least(AGREED_LEAST));
        assert!(Part::default().is_at_least(1.0));
    }

    #[test]
    fn a_mark_of_missing_rows_is_no_row_and_a_row_is_there_once() {
        assert!(
            verdicts(r#"{"incomplete":true,"missing":["e"]}"#)
                .unwrap()
                .is_empty()
        );
        let twice = [row("a", "true"), row("a", "true")].join("\n");
        assert!(verdicts(&twice).is_err());
        assert!(verdicts("no row").is_err());
    }
}
