//! A line for each check: a table, or JSON.

use serde_json::json;

/// What one check measured.
pub(crate) struct Row {
    peer: &'static str,
    check: String,
    value: Option<f64>,
    unit: &'static str,
    pass: bool,
    moonshot: Option<bool>,
    note: String,
}

impl Row {
    pub(crate) fn new(
        check: impl Into<String>,
        value: impl Into<Option<f64>>,
        unit: &'static str,
        pass: bool,
    ) -> Self {
        Self {
            peer: "embassy-net",
            check: check.into(),
            value: value.into().map(rounded),
            unit,
            pass,
            moonshot: None,
            note: String::new(),
        }
    }

    pub(crate) fn by(mut self, peer: &'static str) -> Self {
        self.peer = peer;
        self
    }

    /// Whether more is reached than is asked for.
    pub(crate) fn moonshot(mut self, is_reached: bool) -> Self {
        self.moonshot = Some(is_reached);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Prints what the checks found, and whether all is well.
pub(crate) struct Report {
    is_json: bool,
    pub(crate) is_good: bool,
}

impl Report {
    pub(crate) const fn new(is_json: bool) -> Self {
        Self {
            is_json,
            is_good: true,
        }
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.is_good &= row.pass;
        if self.is_json {
            let mut object = json!({
                "schema": 1, "peer": row.peer, "check": row.check, "value": row.value,
                "unit": row.unit, "pass": row.pass,
            });
            if let Some(moonshot) = row.moonshot {
                object["moonshot"] = moonshot.into();
            }
            if !row.note.is_empty() {
                object["note"] = row.note.into();
            }
            println!("{object}");
        } else {
            let word = if row.pass { "ok" } else { "FAILED" };
            let value = row.value.map_or("-".to_owned(), |value| value.to_string());
            let Row {
                check, unit, note, ..
            } = row;
            println!("{word:<7}{check:<44}{value:>9} {unit:<4} {note}");
        }
    }
}

/// As many digits as are worth something.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
