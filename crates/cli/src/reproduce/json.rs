//! Rows for programs.

use motet_lab::experiments::row::{Point, Row, Value};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// One line.
#[derive(serde::Serialize)]
struct Line<'a> {
    experiment: &'a str,
    point: Keys<'a>,
    metric: &'a str,
    unit: &'a str,
    /// `null` where it is no number.
    value: Option<f64>,
    ci95: Option<f64>,
    runs: usize,
    paper: Option<f64>,
    bound: Option<f64>,
    role: &'a str,
    criterion: Option<&'a str>,
    pass: Option<bool>,
}

struct Keys<'a>(&'a Point);

impl Serialize for Keys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.iter() {
            match value {
                Value::Whole(number) => map.serialize_entry(key, number)?,
                Value::Hundredths(_) => map.serialize_entry(key, &value.number())?,
                Value::Name(name) => map.serialize_entry(key, name)?,
            }
        }
        map.end()
    }
}

/// A row as one line of JSON.
pub(super) fn line(row: &Row) -> String {
    let finite = |value: f64| value.is_finite().then_some(value);
    let line = Line {
        experiment: row.experiment,
        point: Keys(&row.point),
        metric: row.metric,
        unit: row.unit,
        value: finite(row.value),
        ci95: row.ci95.and_then(finite),
        runs: row.runs,
        paper: row.paper,
        bound: row.bound.and_then(finite),
        role: row.role.name(),
        criterion: row
            .criterion
            .as_ref()
            .map(|criterion| criterion.text.as_str()),
        pass: row.pass(),
    };
    // Strings and numbers only: nothing that serde_json could refuse.
    serde_json::to_string(&line).unwrap_or_default()
}

/// The last line where rows of these experiments were asked for and are not there.
pub(super) fn incomplete(missing: &[&str]) -> String {
    serde_json::json!({ "incomplete": true, "missing": missing }).to_string()
}
