//! Published experiments, run on all cores while Python's lock is free.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use motet_lab::experiments::row::{KEYS, Row, Value};
use motet_lab::experiments::{Effort, Experiment, Unfinished, Watch, all};
use motet_lab::report::{Column, Table as Columns, Values};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::ScenarioError;
use crate::pool;
use crate::running::{Work, wait};
use crate::table::Table;

/// The IDs of all experiments, each with what it asks.
#[pyfunction]
pub(crate) fn experiments() -> Vec<(&'static str, &'static str)> {
    all()
        .into_iter()
        .map(|experiment| (experiment.id, experiment.title))
        .collect()
}

/// A row for each figure of these experiments, all with this first seed.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "what Python has becomes a list of Rust's own"
)]
pub(crate) fn reproduce(
    py: Python<'_>,
    ids: Vec<String>,
    full: bool,
    seed: u64,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Table> {
    let all = all();
    let known = |id: &String| {
        let found = all.iter().find(|one| one.id.eq_ignore_ascii_case(id));
        found.copied().ok_or_else(|| {
            ScenarioError::new_err(format!(
                "there is no experiment {id:?}; motet.experiments() names all"
            ))
        })
    };
    let chosen: Vec<Experiment> = ids.iter().map(known).collect::<PyResult<_>>()?;
    let effort = match full {
        true => Effort::Full,
        false => Effort::Quick,
    };
    let total: u64 = chosen.iter().map(|one| one.runs(effort)).sum();
    let done = Arc::new(Runs::default());
    let (tell, told) = mpsc::channel();
    let shared = done.clone();
    pool::own()?.spawn(move || {
        let each = chosen
            .iter()
            .map(|one| one.run(one.budget(effort), seed, &*shared));
        let rows = each.map(|report| report.map(|report| report.rows));
        let rows = rows.collect::<Result<Vec<Vec<Row>>, Unfinished>>();
        // Nobody listens any more: nobody wants them.
        let _ = tell.send(rows);
    });
    let work = Work::default();
    let (_, rows) = wait(py, told, &work, || {
        let share = done.over.load(Ordering::Relaxed) as f64 / total.max(1) as f64;
        match progress.map(|progress| progress.call1((share.min(1.0),))) {
            Some(Err(error)) => {
                done.stop.store(true, Ordering::Relaxed);
                Err(error)
            }
            _ if work.stop.load(Ordering::Relaxed) => {
                done.stop.store(true, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        }
    })?;
    let rows = rows.map_err(|unfinished| match unfinished {
        Unfinished::Void(void) => PyRuntimeError::new_err(void.to_string()),
        Unfinished::Stopped => PyRuntimeError::new_err("the experiments were stopped"),
    })?;
    if let Some(progress) = progress {
        progress.call1((1.0,))?;
    }
    Table::of(columns(&rows.concat()), None)
}

/// How many runs are over, and whether no more shall begin.
#[derive(Debug, Default)]
struct Runs {
    over: AtomicU64,
    stop: AtomicBool,
}

impl Watch for Runs {
    fn on_run(&self) {
        self.over.fetch_add(1, Ordering::Relaxed);
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The columns of `motet reproduce --json`: those of the setting that some row has, then the figures.
fn columns(rows: &[Row]) -> Columns {
    let text = |name: &str, of: fn(&Row) -> Option<String>| Column {
        name: name.to_owned(),
        values: Values::Text(rows.iter().map(of).collect()),
    };
    let real = |name: &str, of: fn(&Row) -> Option<f64>| Column {
        name: name.to_owned(),
        values: Values::Real(
            rows.iter()
                .map(|row| of(row).filter(|value| value.is_finite()))
                .collect(),
        ),
    };
    let mut columns = vec![text("experiment", |row| Some(row.experiment.to_owned()))];
    columns.extend(KEYS.iter().filter_map(|key| setting(rows, key)));
    columns.extend([
        text("metric", |row| Some(row.metric.to_owned())),
        text("unit", |row| Some(row.unit.to_owned())),
        real("value", |row| Some(row.value)),
        real("low", |row| row.interval.map(|interval| interval.low)),
        real("high", |row| row.interval.map(|interval| interval.high)),
        real("paper", |row| row.paper),
        real("bound", |row| row.bound),
        real("estimate", |row| row.estimate),
        text("role", |row| Some(row.evidence.name().to_owned())),
        text("criterion", |row| {
            row.criterion
                .as_ref()
                .map(|criterion| criterion.text.clone())
        }),
        Column {
            name: "pass".to_owned(),
            values: Values::Flag(rows.iter().map(Row::pass).collect()),
        },
    ]);
    Columns {
        rows: rows.len(),
        columns,
    }
}

/// What the rows have under one key; none where no row has it.
fn setting(rows: &[Row], key: &str) -> Option<Column> {
    let values: Vec<Option<&Value>> = rows.iter().map(|row| row.point.get(key)).collect();
    values.iter().flatten().next()?;
    let is_number = values
        .iter()
        .flatten()
        .all(|value| value.number().is_some());
    let values = match is_number {
        true => Values::Real(
            values
                .iter()
                .map(|value| value.and_then(Value::number))
                .collect(),
        ),
        false => Values::Text(
            values
                .iter()
                .map(|value| value.map(ToString::to_string))
                .collect(),
        ),
    };
    Some(Column {
        name: key.to_owned(),
        values,
    })
}
