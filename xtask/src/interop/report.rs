//! A line for each check: a table, or JSON.

use std::fs;

use serde::Serialize;

/// What one check measured.
#[derive(Serialize)]
pub(super) struct Row {
    /// The version of these keys.
    schema: u32,
    /// What judges; none: the peer of the report.
    peer: Option<&'static str>,
    pub(super) check: String,
    pub(super) value: Option<f64>,
    pub(super) unit: String,
    pub(super) pass: bool,
    /// Whether more is reached than is asked for, where there is such a goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    moonshot: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

impl Row {
    pub(super) fn new(
        check: impl Into<String>,
        value: impl Into<Option<f64>>,
        unit: impl Into<String>,
        pass: bool,
    ) -> Self {
        Self {
            schema: 1,
            peer: None,
            check: check.into(),
            value: value.into(),
            unit: unit.into(),
            pass,
            moonshot: None,
            note: String::new(),
        }
    }

    /// A check that could not be made, or not to its end.
    pub(super) fn failed(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(check, 0.0, "", false).note(why)
    }

    pub(super) fn by(mut self, peer: &'static str) -> Self {
        self.peer = Some(peer);
        self
    }

    pub(super) fn moonshot(mut self, is_reached: bool) -> Self {
        self.moonshot = Some(is_reached);
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Prints what the checks found, and whether all is well.
pub(super) struct Report {
    peer: &'static str,
    is_json: bool,
    is_good: bool,
}

impl Report {
    pub(super) const fn new(peer: &'static str, is_json: bool) -> Self {
        Self {
            peer,
            is_json,
            is_good: true,
        }
    }

    pub(super) fn add(&mut self, mut row: Row) {
        self.is_good &= row.pass;
        row.peer = row.peer.or(Some(self.peer));
        let line = match (self.is_json, serde_json::to_string(&row)) {
            (true, Ok(line)) => line,
            _ => {
                let word = if row.pass { "ok" } else { "FAILED" };
                let value = row.value.map_or("-".to_owned(), |value| value.to_string());
                let Row {
                    check, unit, note, ..
                } = row;
                format!("{word:<7}{check:<66}{value:>9} {unit:<8} {note}")
            }
        };
        println!("{line}");
    }

    pub(super) const fn is_good(&self) -> bool {
        self.is_good
    }
}

/// A measured value, with as many digits as are worth something.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// How busy this machine is: a rate is one of this machine at this load.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = text.split_whitespace().next().unwrap_or("unknown");
    format!("load {minute}")
}
