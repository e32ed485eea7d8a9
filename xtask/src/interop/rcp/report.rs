//! A line for each check: a table, or JSON.

use std::fs;

use serde_json::{Map, Value, json};

/// What one check measured.
pub(super) struct Row {
    check: String,
    value: f64,
    unit: &'static str,
    pass: bool,
    /// Whether more is reached than is asked for, where there is such a goal.
    moonshot: Option<bool>,
    note: String,
}

impl Row {
    pub(super) fn new(
        check: impl Into<String>,
        value: f64,
        unit: &'static str,
        pass: bool,
    ) -> Self {
        Self {
            check: check.into(),
            value,
            unit,
            pass,
            moonshot: None,
            note: String::new(),
        }
    }

    /// A check that could not be made, or not to its end.
    pub(super) fn failed(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(check, 0.0, "", false).note(why)
    }

    pub(super) fn moonshot(mut self, is_reached: bool) -> Self {
        self.moonshot = Some(is_reached);
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    fn json(&self) -> Value {
        let mut object = Map::new();
        object.insert("schema".to_owned(), json!(1));
        object.insert("peer".to_owned(), json!(PEER));
        object.insert("check".to_owned(), json!(self.check));
        object.insert("value".to_owned(), json!(self.value));
        object.insert("unit".to_owned(), json!(self.unit));
        object.insert("pass".to_owned(), json!(self.pass));
        if let Some(is_reached) = self.moonshot {
            object.insert("moonshot".to_owned(), json!(is_reached));
        }
        if !self.note.is_empty() {
            object.insert("note".to_owned(), json!(self.note));
        }
        Value::Object(object)
    }
}

/// Prints what the checks found, and whether all is well.
pub(super) struct Report {
    is_json: bool,
    is_good: bool,
}

impl Report {
    pub(super) const fn new(is_json: bool) -> Self {
        Self {
            is_json,
            is_good: true,
        }
    }

    pub(super) fn add(&mut self, row: &Row) {
        self.is_good &= row.pass;
        if self.is_json {
            println!("{}", row.json());
            return;
        }
        let word = if row.pass { "ok" } else { "FAILED" };
        let Row { check, unit, .. } = row;
        println!(
            "{word:<7}{check:<66}{:>9} {unit:<8} {}",
            row.value, row.note
        );
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

const PEER: &str = "ot-rcp";
