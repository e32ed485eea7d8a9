//! Where results come from: program, command, date, and the scenario that repeats them.
//!
//! Left out: the clock and the command line. The program that writes results gives both.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::SCHEMA;
use crate::experiments::{Experiment, Report};
use crate::scenario::Plan;

/// The origin of results: with the scenario's text it repeats them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Provenance {
    /// The program's version.
    pub version: String,
    /// The revision of its sources, where it is known.
    pub revision: Option<String>,
    /// The date in UTC, year-month-day.
    pub date: String,
    /// The command, without where its results go.
    pub command: String,
    /// The files that were read; nothing of experiments.
    pub inputs: Option<Inputs>,
}

/// The files that a run has read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inputs {
    /// The scenario's file. Other files that the scenario names lie beside it.
    pub scenario: PathBuf,
    /// The file of a key that the command line gave.
    pub key: Option<PathBuf>,
    /// Other files by path, each with its SHA-256 in hexadecimal.
    pub others: Vec<(String, String)>,
}

impl Provenance {
    /// The first line of a file of results, without a line end: `record` is `provenance`.
    /// `scenario` is the whole text with all that the command line changed.
    pub fn line(&self, plan: &Plan) -> String {
        let mut line = Map::new();
        line.insert("schema".into(), SCHEMA.into());
        line.insert("record".into(), RECORD.into());
        line.extend(self.program());
        line.insert("seeds".into(), json!(plan.seeds));
        if let Some(inputs) = &self.inputs {
            let key = inputs.key.as_ref().map(|key| key.to_string_lossy());
            let others = inputs.others.iter();
            let others = others.map(|(path, digest)| (path.clone(), digest.clone().into()));
            line.insert("file".into(), inputs.scenario.to_string_lossy().into());
            line.insert("key".into(), json!(key));
            line.insert("files".into(), Value::Object(others.collect()));
        }
        line.insert("scenario".into(), plan.text().into());
        Value::Object(line).to_string()
    }

    /// The same for experiments: of each its title, the seconds of a run, and its seeds from `seed`
    /// on.
    pub fn line_of_experiments(&self, all: &[(Experiment, &Report)], seed: u64) -> String {
        let experiments = all.iter().map(|(experiment, report)| {
            let budget = report.budget;
            let second = seed.wrapping_add(budget.runs);
            let set = |first: u64| [first, first.wrapping_add(budget.runs.saturating_sub(1))];
            let body = json!({
                "title": experiment.title,
                "seconds": budget.seconds,
                "seeds": [set(seed), set(second)],
            });
            (experiment.id.to_owned(), body)
        });
        let mut line = Map::new();
        line.insert("schema".into(), SCHEMA.into());
        line.insert("record".into(), RECORD.into());
        line.extend(self.program());
        line.insert("experiments".into(), Value::Object(experiments.collect()));
        Value::Object(line).to_string()
    }

    fn program(&self) -> [(String, Value); 4] {
        [
            ("version".into(), self.version.clone().into()),
            ("revision".into(), json!(self.revision)),
            ("date".into(), self.date.clone().into()),
            ("command".into(), self.command.clone().into()),
        ]
    }
}

/// What a file of results says about its own repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The whole scenario in TOML.
    pub scenario: String,
    /// The files that were read beside it.
    pub inputs: Inputs,
}

impl Origin {
    /// Whether a text is one of results, by its first character: no TOML begins with a brace.
    pub fn is_results(text: &str) -> bool {
        text.trim_start().starts_with('{')
    }

    /// Reads the origin from a file of results.
    ///
    /// # Errors
    /// The rest of a sentence that begins with the file's name.
    pub fn read(text: &str) -> Result<Self, String> {
        let first = text.trim_start().lines().next().unwrap_or_default();
        let line: Value = serde_json::from_str(first)
            .map_err(|_| "begins with a brace, and its first line is no JSON".to_owned())?;
        let text_of = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
        match line.get("schema").and_then(Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                let version = text_of("version");
                let by = version.map_or(String::new(), |version| {
                    format!(" and was written by version {version}")
                });
                return Err(format!(
                    "has keys of version {schema}{by}; this program reads version {SCHEMA}"
                ));
            }
            None => return Err("is no file of results: its first line has no `schema`".to_owned()),
        }
        if text_of("record").as_deref() != Some(RECORD) {
            return Err(
                "does not say where it comes from; results.jsonl of `motet run --out` does"
                    .to_owned(),
            );
        }
        let Some(scenario) = text_of("scenario") else {
            let command = text_of("command").unwrap_or_default();
            return Err(format!(
                "has no scenario; its own command repeats it: {command}"
            ));
        };
        let files = line.get("files").and_then(Value::as_object);
        let files = files.into_iter().flatten().filter_map(|(path, digest)| {
            let digest = digest.as_str()?;
            Some((path.clone(), digest.to_owned()))
        });
        Ok(Self {
            scenario,
            inputs: Inputs {
                scenario: text_of("file").unwrap_or_default().into(),
                key: text_of("key").map(PathBuf::from),
                others: files.collect(),
            },
        })
    }
}

/// The date `days` days after 1 January 1970, as year-month-day.
pub fn date(mut days: u64) -> String {
    let mut year = 1970;
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    let mut month = 1;
    for length in month_lengths(year) {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

fn days_in_year(year: u64) -> u64 {
    month_lengths(year).iter().sum()
}

/// Days of each month in the Gregorian calendar.
fn month_lengths(year: u64) -> [u64; 12] {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let february = if is_leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

/// The kind of the line that says where results come from.
const RECORD: &str = "provenance";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_453, "2025-12-31"),
            (20_454, "2026-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn results_of_another_version_or_without_a_scenario_are_refused() {
        for (text, expected) in [
            ("{", "its first line is no JSON"),
            ("{}\n", "its first line has no `schema`"),
            (
                r#"{"schema":999,"record":"provenance","version":"9.1"}"#,
                "has keys of version 999 and was written by version 9.1; this program reads version 1",
            ),
            (
                r#"{"schema":1,"record":"run"}"#,
                "does not say where it comes from",
            ),
            (
                r#"{"schema":1,"record":"provenance","command":"motet reproduce cit-onehop"}"#,
                "has no scenario; its own command repeats it: motet reproduce cit-onehop",
            ),
        ] {
            let error = Origin::read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
