//! `cargo xtask apps`: crates that others wrote for async firmware, on motes in the lab.
//!
//! Never a part of the check: it builds dozens of crates that the product does not need. The sizes
//! of images for devices ([`crate::devices`]) are among its lines.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::Format;
use crate::devices;
use crate::provenance::heading;
use crate::tools;
use crate::workspace::{Workspace, locked};

/// What a check gave.
#[derive(Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) app: String,
    pub(crate) check: String,
    /// None where there was nothing to measure.
    pub(crate) value: Option<f64>,
    pub(crate) unit: String,
    pub(crate) pass: bool,
}

/// Builds the applications and runs them; their lines go to stdout as they come.
pub(crate) fn run(workspace: &Workspace, format: Format) -> Result<bool> {
    tools::provide(workspace, tools::APPLICATIONS)?;
    if let Some(advice) = tools::absent(tools::APPLICATIONS) {
        eprintln!("not everything is run: {advice}");
    }
    if format == Format::Markdown {
        let command = "cargo xtask apps --markdown";
        println!("{}", heading(workspace, "Applications on motes", command));
        println!("{NOTE}\n\n| application | check | value | unit | kept |\n|---|---|---:|---|---|");
    }
    let mut all_pass = true;
    let mut print = |line: &Line| -> Result<()> {
        all_pass &= line.pass;
        println!("{}", line.shown(format)?);
        Ok(())
    };
    let mut cargo = workspace.apps_cargo("run");
    cargo.args(["--quiet", "--package", "motet-apps"]);
    cargo.args(locked()).args(["--", "--json"]);
    let mut child = cargo.stdout(Stdio::piped()).spawn();
    let child = child
        .as_mut()
        .map_err(|error| anyhow::anyhow!("cannot run cargo: {error}"))?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    for text in BufReader::new(stdout).lines() {
        let text = text.context("the applications cannot be read")?;
        let line = serde_json::from_str(&text);
        print(&line.with_context(|| format!("no line of a check: {text}"))?)?;
    }
    let is_good = child.wait().context("cannot wait for cargo")?.success();
    for line in devices::measure(workspace)? {
        print(&line)?;
    }
    Ok(all_pass && is_good)
}

impl Line {
    pub(crate) fn shown(&self, format: Format) -> Result<String> {
        let Self {
            app,
            check,
            value,
            unit,
            pass,
        } = self;
        let number = value.map_or_else(|| "none".to_owned(), number);
        Ok(match format {
            Format::Json => serde_json::to_string(self)?,
            Format::Markdown => {
                let kept = if *pass { "yes" } else { "**no**" };
                format!("| {app} | {check} | {number} | {unit} | {kept} |")
            }
            Format::Table => {
                let verdict = if *pass { "ok" } else { "FAILED" };
                format!("{app:<20} {check:<50} {number:>8} {unit:<7} {verdict}")
            }
        })
    }
}

/// Counts without a fraction, times with one digit of it, ratios with two.
fn number(value: f64) -> String {
    let digits = match value {
        _ if value.fract() == 0.0 => 0,
        _ if value < 10.0 => 2,
        _ => 1,
    };
    format!("{value:.digits$}")
}

const NOTE: &str = "Motes and air are the lab's, time is virtual, and no real radio has any part in this. Losses are
of frames, besides those of the air. Pages, messages and downloads count only when every byte is the
one that was sent. A place is memory of a connection.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_the_same_in_each_format() {
        let text = r#"{"app":"a","check":"c","value":0.525,"unit":"wakes","pass":false}"#;
        let line: Line = serde_json::from_str(text).unwrap();
        assert_eq!(line.shown(Format::Json).unwrap(), text);
        let markdown = line.shown(Format::Markdown).unwrap();
        assert_eq!(markdown, "| a | c | 0.53 | wakes | **no** |");
        assert!(line.shown(Format::Table).unwrap().ends_with("FAILED"));
        let counted = [4_018.0, 322.88, 0.0].map(number);
        assert_eq!(counted, ["4018", "322.9", "0"]);
    }
}
