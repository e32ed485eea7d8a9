//! Runs of a sweep, one at a time wherever somebody asks for one, and all of them together again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use motet_lab::scenario::{Captures, Overrides, Plan, RunResult, Watch};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::ScenarioError;
use crate::pool;
use crate::running::Outcome;
use crate::scenario::given;

/// One point of a sweep, checked elsewhere beside all others.
#[pyclass(frozen, module = "motet")]
#[derive(Debug)]
pub(crate) struct Task(Arc<Plan>);

/// Ends runs that are under way in other threads.
#[pyclass(frozen, module = "motet")]
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicBool);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl Task {
    #[new]
    fn new(
        text: &str,
        title: String,
        files: BTreeMap<String, Vec<u8>>,
        point: usize,
    ) -> PyResult<Self> {
        let plan = Plan::parse_point(text, given(files), point);
        let mut plan = plan.map_err(|error| ScenarioError::new_err(error.to_string()))?;
        plan.title = title;
        Ok(Self(Arc::new(plan)))
    }

    /// Runs it with one seed while Python's lock is free; nothing if it was stopped.
    fn run<'py>(
        &self,
        py: Python<'py>,
        seed: u64,
        stop: &Stop,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let run = || {
            let watch = Watch {
                stop: &stop.0,
                done_ms: &AtomicU64::new(0),
            };
            let result = self.0.run_one(0, seed, &watch, Captures::default());
            (!watch.stops()).then(|| rmp_serde::to_vec(&result))
        };
        // A panic that passed through Python would end a worker of others' work, too.
        let ended = py.detach(|| catch_unwind(AssertUnwindSafe(run)));
        let ended = ended.map_err(|_| {
            PyRuntimeError::new_err("the lab failed; standard error of the worker says where")
        })?;
        let Some(exact) = ended else { return Ok(None) };
        let exact = exact.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Some(PyBytes::new(py, &exact)))
    }

    /// What such a run gave, as tables.
    fn result(&self, exact: &[u8]) -> PyResult<Outcome> {
        let result = read(exact)?;
        Ok(Outcome::new(self.0.clone(), vec![result], Duration::ZERO))
    }
}

/// What all runs of a plan gave: `exact` by point, in the order of points and seeds.
pub(crate) fn gather(
    plan: &Plan,
    exact: Vec<(usize, Bound<'_, PyBytes>)>,
) -> PyResult<Vec<RunResult>> {
    let results = exact.into_iter().map(|(point, exact)| {
        if point >= plan.points.len() {
            return Err(no_point(point));
        }
        let result = read(exact.as_bytes())?;
        Ok(RunResult { point, ..result })
    });
    results.collect()
}

/// What runs at a point depend on, and the names of the files that they read.
pub(crate) fn identity(plan: &Plan, point: usize) -> PyResult<(String, Vec<String>)> {
    if point >= plan.points.len() {
        return Err(no_point(point));
    }
    Ok(plan.identity(point))
}

/// All files that a plan names, by name.
pub(crate) fn named_files(plan: &Plan) -> PyResult<BTreeMap<String, Cow<'static, [u8]>>> {
    let files = plan.named_files();
    let files = files.map_err(|error| ScenarioError::new_err(error.to_string()))?;
    let files = files.into_iter();
    Ok(files.map(|(name, bytes)| (name, bytes.into())).collect())
}

/// Whether these bytes are what a run with this seed gave.
pub(crate) fn fits(exact: &[u8], seed: u64) -> bool {
    read(exact).is_ok_and(|result| result.seed == seed)
}

/// What [`restore_result`] takes: the scenario in TOML, its title, the files that it names, what runs gave by point,
/// how long they took, s, and on which date.
pub(crate) type Packed<'py> = (
    String,
    String,
    BTreeMap<String, Cow<'static, [u8]>>,
    Vec<(usize, Bound<'py, PyBytes>)>,
    f64,
    String,
);

/// The results of a plan, as bytes and plain values.
pub(crate) fn pack<'py>(
    py: Python<'py>,
    plan: &Plan,
    results: &[RunResult],
    took: Duration,
    date: &str,
) -> PyResult<Packed<'py>> {
    let exact = results.iter().map(|result| {
        let bytes = rmp_serde::to_vec(result);
        let bytes = bytes.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok((result.point, PyBytes::new(py, &bytes)))
    });
    let exact = exact.collect::<PyResult<_>>()?;
    let files = named_files(plan)?;
    Ok((
        plan.text(),
        plan.title.clone(),
        files,
        exact,
        took.as_secs_f64(),
        date.to_owned(),
    ))
}

/// A result that was pickled.
#[pyfunction]
pub(crate) fn restore_result(
    py: Python<'_>,
    text: &str,
    title: String,
    files: BTreeMap<String, Vec<u8>>,
    exact: Vec<(usize, Bound<'_, PyBytes>)>,
    took_s: f64,
    date: String,
) -> PyResult<Outcome> {
    let pool = pool::own()?;
    let files = given(files);
    let read = || Plan::parse_with(text, Path::new(""), files, Overrides::default());
    let plan = py.detach(|| pool.install(read));
    let mut plan = plan.map_err(|error| ScenarioError::new_err(error.to_string()))?;
    plan.title = title;
    let took = Duration::try_from_secs_f64(took_s).unwrap_or_default();
    let results = gather(&plan, exact)?;
    Ok(Outcome::of(Arc::new(plan), results, took, date))
}

fn no_point(point: usize) -> PyErr {
    PyIndexError::new_err(format!("there is no point {point}"))
}

fn read(exact: &[u8]) -> PyResult<RunResult> {
    rmp_serde::from_slice(exact)
        .map_err(|error| PyValueError::new_err(format!("these bytes are no result: {error}")))
}
