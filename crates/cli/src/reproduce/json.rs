//! Rows of experiments as JSON, for programs.

use motet_lab::experiments::row::{Point, Row, Value};
use motet_lab::stats::Estimate;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::output::Versioned;

/// One row as a line of JSON.
#[derive(serde::Serialize)]
struct Line<'a> {
    experiment: &'a str,
    point: Keys<'a>,
    metric: &'a str,
    unit: &'a str,
    /// `null` where it is no number.
    value: Option<f64>,
    /// Ends of the 95 % interval, and half its width.
    low: Option<f64>,
    high: Option<f64>,
    ci95: Option<f64>,
    /// Seeds of both sets together.
    runs: usize,
    /// The figure over the first and over the second set of seeds.
    sets: [Set; 2],
    paper: Option<f64>,
    bound: Option<f64>,
    /// The estimate by the papers' arithmetic, where that is no bound.
    estimate: Option<f64>,
    role: &'a str,
    criterion: Option<&'a str>,
    pass: Option<bool>,
}

/// A figure over one set of seeds.
#[derive(serde::Serialize)]
struct Set {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    ci95: Option<f64>,
}

impl Set {
    fn of(figure: &Estimate) -> Self {
        Self {
            value: finite(figure.value),
            low: figure.interval.and_then(|interval| finite(interval.low)),
            high: figure.interval.and_then(|interval| finite(interval.high)),
            ci95: figure.ci95().and_then(finite),
        }
    }
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
    let line = Versioned::new(Line {
        experiment: row.experiment,
        point: Keys(&row.point),
        metric: row.metric,
        unit: row.unit,
        value: finite(row.value),
        low: row.interval.and_then(|interval| finite(interval.low)),
        high: row.interval.and_then(|interval| finite(interval.high)),
        ci95: row.ci95().and_then(finite),
        runs: row.runs,
        sets: row.sets.each_ref().map(Set::of),
        paper: row.paper,
        bound: row.bound.and_then(finite),
        estimate: row.estimate.and_then(finite),
        role: row.evidence.name(),
        criterion: row
            .criterion
            .as_ref()
            .map(|criterion| criterion.text.as_str()),
        pass: row.pass(),
    });
    // Strings and numbers only: nothing that serde_json could refuse.
    serde_json::to_string(&line).unwrap_or_default()
}

/// The last line when rows of these experiments are expected and missing.
pub(super) fn incomplete(missing: &[&str]) -> String {
    let mark = serde_json::json!({ "incomplete": true, "missing": missing });
    serde_json::to_string(&Versioned::new(mark)).unwrap_or_default()
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
