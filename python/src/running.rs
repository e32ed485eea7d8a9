//! A plan, run on all cores while Python's lock is free.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use motet_lab::capture::{Capture, Records};
use motet_lab::report::{self, Of, Provenance};
use motet_lab::scenario::{self, Captures, Overrides, RunResult, Watch};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::pool;
use crate::scenario as given;
use crate::steps::Steps;
use crate::sweep;
use crate::table::{self, Table};
use crate::{REVISION, ScenarioError};

/// A scenario that was read and found right.
#[pyclass(frozen, module = "motet")]
#[derive(Debug)]
pub(crate) struct Plan(Arc<scenario::Plan>);

/// Whether to stop, and how far it is.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) stop: AtomicBool,
    done_ms: AtomicU64,
}

impl Work {
    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch {
            stop: &self.stop,
            done_ms: &self.done_ms,
        }
    }
}

#[pymethods]
impl Plan {
    #[new]
    fn new(
        source: &Bound<'_, PyAny>,
        kind: &str,
        seed: Option<u64>,
        seeds: Option<u64>,
        duration_s: Option<f64>,
        files: BTreeMap<String, Vec<u8>>,
        sweep: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let overrides = Overrides {
            seed,
            seeds,
            duration_s,
            sweep: sweep
                .map(|sweep| given::table("over", sweep))
                .transpose()?
                .unwrap_or_default(),
            ..Overrides::default()
        };
        let plan = given::plan(source, kind, overrides, files)?;
        Ok(Self(Arc::new(plan)))
    }

    fn run(&self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Outcome> {
        let (results, took) = self.complete(py, Captures::default(), progress)?;
        Ok(Outcome::new(self.0.clone(), results, took))
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn points(&self) -> usize {
        self.0.points.len()
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.0.seeds.clone()
    }

    /// The keys that it sweeps over.
    #[getter]
    fn swept(&self) -> Vec<String> {
        let values = self.0.points.first().map_or(&[][..], |point| &point.values);
        values.iter().map(|(key, _)| key.clone()).collect()
    }

    /// The whole scenario in TOML.
    fn text(&self) -> String {
        self.0.text()
    }

    /// What runs at a point depend on: a scenario in TOML, and the files that it names.
    fn identity(&self, point: usize) -> PyResult<(String, Vec<String>)> {
        sweep::identity(&self.0, point)
    }

    /// All files that it names.
    fn named_files(&self) -> PyResult<BTreeMap<String, Cow<'_, [u8]>>> {
        sweep::named_files(&self.0)
    }

    /// Whether these bytes are what a run with this seed gave.
    fn fits(&self, exact: &[u8], seed: u64) -> bool {
        sweep::fits(exact, seed)
    }

    /// All runs together: results bit for bit, by point, in the order of points and seeds.
    fn gather(&self, exact: Vec<(usize, Bound<'_, PyBytes>)>, took_s: f64) -> PyResult<Outcome> {
        let took = Duration::try_from_secs_f64(took_s).unwrap_or_default();
        let results = sweep::gather(&self.0, exact)?;
        Ok(Outcome::new(self.0.clone(), results, took))
    }

    /// The air of its one run, or the border router's wire, as a pcap file.
    fn capture<'py>(
        &self,
        py: Python<'py>,
        wire: bool,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        if self.0.runs() != 1 {
            return Err(ScenarioError::new_err(format!(
                "a capture is of one run, but this scenario has {}: give seeds=1, and no sweep",
                self.0.runs()
            )));
        }
        let kept = Kept::default();
        let records = match wire {
            true => Records::Packets,
            false => self.0.points[0].scenario.network.air_records(),
        };
        let stream = Capture::stream(Box::new(kept.clone()), records);
        let stream = stream.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let captures = match wire {
            true => Captures {
                wire: Some(stream),
                ..Captures::default()
            },
            false => Captures {
                air: Some(stream),
                ..Captures::default()
            },
        };
        let (results, _) = self.complete(py, captures, progress)?;
        if let Some(why) = results.iter().find_map(|run| run.failure.clone()) {
            return Err(ScenarioError::new_err(why));
        }
        let bytes = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(PyBytes::new(py, &bytes))
    }

    fn steps(&self, step: f64, observe: usize, progress: Option<Py<PyAny>>) -> PyResult<Steps> {
        Steps::new(&self.0, step, observe, progress)
    }
}

impl Plan {
    /// Runs all of it; gives the results, and how long they took.
    fn complete(
        &self,
        py: Python<'_>,
        captures: Captures,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Vec<RunResult>, Duration)> {
        let work = Arc::new(Work::default());
        let (tell, told) = mpsc::channel();
        let (plan, shared) = (self.0.clone(), work.clone());
        pool::own()?.spawn(move || {
            let begun = Instant::now();
            let results = plan.run(&shared.watch(), captures);
            // Nobody listens any more: nobody wants them.
            let _ = tell.send((results, begun.elapsed()));
        });
        let total_ms = (self.0.seconds() * 1e3).max(1.0);
        let (_, (results, took)) = wait(py, told, &work, || {
            let done_ms = work.done_ms.load(Ordering::Relaxed) as f64;
            match progress {
                Some(progress) => progress.call1(((done_ms / total_ms).min(1.0),)).map(drop),
                None => Ok(()),
            }
        })?;
        if let Some(progress) = progress {
            progress.call1((1.0,))?;
        }
        Ok((results, took))
    }
}

/// What a capture has written.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits for an answer with Python's lock free, and calls `look` a few times a second; a signal, or what `look`
/// raises, ends the work, and waits until it has ended.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    told: Receiver<T>,
    work: &Work,
    look: impl Fn() -> PyResult<()>,
) -> PyResult<(Receiver<T>, T)> {
    let mut told = told;
    loop {
        let (back, answer) = py.detach(move || {
            let answer = told.recv_timeout(LOOK_EVERY);
            (told, answer)
        });
        told = back;
        match answer {
            Ok(answer) => return Ok((told, answer)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "the lab failed; standard error says where",
                ));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(error) = py.check_signals().and_then(|()| look()) {
            work.stop.store(true, Ordering::Relaxed);
            py.detach(move || drop(told.recv()));
            return Err(error);
        }
    }
}

/// What the runs of a scenario gave.
#[pyclass(frozen, module = "motet", name = "Result")]
#[derive(Debug)]
pub(crate) struct Outcome {
    plan: Arc<scenario::Plan>,
    results: Vec<RunResult>,
    took: Duration,
    /// When it was made, year-month-day.
    date: String,
    /// By [`Of`], once somebody has asked for it.
    tables: [OnceLock<Table>; 6],
}

impl Outcome {
    /// What runs gave that ended today.
    pub(crate) fn new(plan: Arc<scenario::Plan>, results: Vec<RunResult>, took: Duration) -> Self {
        Self::of(plan, results, took, today())
    }

    /// What runs gave on that date.
    pub(crate) fn of(
        plan: Arc<scenario::Plan>,
        results: Vec<RunResult>,
        took: Duration,
        date: String,
    ) -> Self {
        Self {
            plan,
            results,
            took,
            date,
            tables: Default::default(),
        }
    }

    fn table(&self, of: Of) -> PyResult<Table> {
        let place = &self.tables[of as usize];
        if let Some(table) = place.get() {
            return Ok(table.again());
        }
        let table = report::table(&self.plan, &self.results, of);
        let table = Table::of(table, Some(&self.origin()))?;
        Ok(place.get_or_init(|| table).again())
    }

    fn provenance_of(&self) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            revision: Some(REVISION.to_owned()),
            date: self.date.clone(),
            command: "motet.run(scenario)".to_owned(),
            inputs: None,
        }
    }

    /// Where it comes from, in JSON.
    fn origin(&self) -> String {
        self.provenance_of().line(&self.plan)
    }
}

#[pymethods]
impl Outcome {
    /// What the scenario is called.
    #[getter]
    fn title(&self) -> &str {
        &self.plan.title
    }

    /// Whether every run went to its end.
    #[getter]
    fn complete(&self) -> bool {
        self.results.len() == self.plan.runs() && self.results.iter().all(|run| run.complete)
    }

    /// How long the runs took, seconds of the wall clock.
    #[getter]
    fn run_s(&self) -> f64 {
        self.took.as_secs_f64()
    }

    /// Where it comes from: version, revision, date, seeds, and the whole scenario in TOML.
    #[getter]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table::json(py, &self.origin())
    }

    /// A row for each run.
    #[getter]
    fn runs(&self) -> PyResult<Table> {
        self.table(Of::Runs)
    }

    /// A row for each flow of each run.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        self.table(Of::Flows)
    }

    /// A row for each node of each run.
    #[getter]
    fn nodes(&self) -> PyResult<Table> {
        self.table(Of::Nodes)
    }

    /// A row for each link of each run that carried anything.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        self.table(Of::Links)
    }

    /// A row for each flow and moment of the first seed of each point.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        self.table(Of::Samples)
    }

    /// A row for each metric of each point of the sweep.
    #[getter]
    fn summary(&self) -> PyResult<Table> {
        self.table(Of::Summary)
    }

    /// Everything that it is made of again, files included: it may be read on another machine.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, sweep::Packed<'py>)> {
        let restore = py.import("motet._motet")?.getattr("restore_result")?;
        Ok((
            restore,
            sweep::pack(py, &self.plan, &self.results, self.took, &self.date)?,
        ))
    }

    /// The same as ``motet run --json -`` prints.
    fn json_lines(&self) -> String {
        report::json_lines(&self.plan, &self.results)
    }

    /// The page that ``motet run --out`` writes: tables and pictures, in HTML, without other files.
    fn report(&self) -> String {
        report::page(&self.plan, &self.results, &self.provenance_of())
    }

    /// The summary as a table of a notebook.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let title = report::escape(&self.plan.title);
        let table = self.summary()?.html(py)?;
        Ok(format!(
            "<p><b>{title}</b>: {} runs</p>{table}",
            self.results.len()
        ))
    }

    fn __repr__(&self) -> String {
        let (title, runs) = (&self.plan.title, self.results.len());
        let is = match self.complete() {
            true => "complete",
            false => "incomplete",
        };
        format!("<motet.Result of {title:?}: {runs} runs, {is}>")
    }
}

/// The date in UTC, year-month-day.
fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    report::date(since.unwrap_or_default().as_secs() / SECONDS_PER_DAY)
}

const SECONDS_PER_DAY: u64 = 86_400;

/// How late a signal may be noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
