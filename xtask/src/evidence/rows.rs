//! The rows of experiments, as `motet reproduce --out` writes them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

/// A file of rows.
pub(super) struct Results {
    pub(super) origin: Origin,
    pub(super) rows: Vec<Row>,
}

/// Its first line.
#[derive(Deserialize)]
pub(super) struct Origin {
    schema: u64,
    record: String,
    version: String,
    revision: Option<String>,
    pub(super) date: String,
    pub(super) command: String,
    /// By ID.
    pub(super) experiments: BTreeMap<String, Experiment>,
}

#[derive(Deserialize)]
pub(super) struct Experiment {
    pub(super) title: String,
    pub(super) seconds: u64,
    pub(super) seeds: [[u64; 2]; 2],
}

/// A row, as far as a page has it.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) experiment: String,
    point: serde_json::Map<String, Value>,
    pub(super) metric: String,
    unit: String,
    pub(super) value: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) paper: Option<f64>,
    pub(super) role: String,
    pub(super) criterion: Option<String>,
    pub(super) pass: Option<bool>,
}

impl Results {
    /// Reads all rows.
    pub(super) fn read(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let first = lines.next().context("is empty")?;
        let origin: Origin = serde_json::from_str(first)
            .context("its first line does not say where it comes from")?;
        ensure!(
            origin.schema == SCHEMA && origin.record == "provenance",
            "its rows are of another version; measure them again"
        );
        let rows = lines.enumerate().map(|(number, line)| {
            serde_json::from_str(line).with_context(|| format!("line {}", number + 2))
        });
        let rows = rows.collect::<Result<Vec<Row>>>()?;
        Ok(Self { origin, rows })
    }
}

impl Origin {
    /// The sources that were measured.
    pub(super) fn source(&self) -> String {
        match &self.revision {
            Some(revision) => format!("revision {revision}"),
            None => format!("version {}", self.version),
        }
    }
}

impl Row {
    /// The setting, in the order of its keys.
    pub(super) fn setting(&self) -> String {
        let values = self.point.keys();
        let values = values.filter_map(|key| Some(format!("{key}={}", self.value_of(key)?)));
        values.collect::<Vec<_>>().join(" ")
    }

    /// The value of one key of the setting.
    pub(super) fn value_of(&self, key: &str) -> Option<String> {
        let value = self.point.get(key)?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    }

    /// The metric with its unit.
    pub(super) fn named(&self) -> String {
        match &*self.unit {
            "" | "1" => self.metric.clone(),
            unit => format!("{} ({unit})", self.metric),
        }
    }
}

/// The version of the keys that is read.
const SCHEMA: u64 = 1;
