//! All points of a scenario, and running them on all cores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use motet::time::Instant;
use toml::{Table, Value};

use super::defaults::set;
use super::document::{self, Document};
use super::error::ScenarioError;
use super::model::Scenario;
use super::parts;
use super::run::{Captures, Watch, failed};
use super::session::Session;
use super::sources::Files;
use crate::parallel;
use crate::scenario::RunResult;

/// A scenario file, with every point of its sweep checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The title of the plan.
    pub title: String,
    /// The points, the last swept key changing fastest.
    pub points: Vec<Point>,
    /// The seeds of each point.
    pub seeds: Vec<u64>,
    /// The files on disk that it was read from beside the scenario itself: matrices and traces.
    pub files: Vec<PathBuf>,
    document: Document,
}

/// One combination of the swept values.
#[derive(Clone, Debug)]
pub struct Point {
    /// The swept keys with their values here.
    pub values: Vec<(String, Value)>,
    /// The scenario with these values.
    pub scenario: Arc<Scenario>,
}

/// The changes that a command line makes to a file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The first seed.
    pub seed: Option<u64>,
    /// How many seeds, from the first one on.
    pub seeds: Option<u64>,
    /// The seed that draws floor and shadowing.
    pub layout_seed: Option<u64>,
    /// Virtual time of each run, s.
    pub duration_s: Option<f64>,
    /// Keys to sweep over with lists of values, as `[sweep]` has them.
    pub sweep: Table,
}

impl Plan {
    /// Reads a scenario and everything it names.
    ///
    /// # Errors
    /// One sentence with file, key, value and what is allowed.
    pub fn read(file: &Path, overrides: Overrides) -> Result<Self, ScenarioError> {
        Self::read_with(file, Files::new(), overrides)
    }

    /// As [`Self::read`], with files that it names given as bytes; the others lie beside it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_with(
        file: &Path,
        given: Files,
        overrides: Overrides,
    ) -> Result<Self, ScenarioError> {
        let document = Document::read(file)?.with_files(given);
        Self::new(document, overrides).map_err(|error| error.within(file))
    }

    /// Reads a scenario from its text; what it names lies beside `file`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str, file: &Path, overrides: Overrides) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, Files::new(), overrides)
    }

    /// Reads a scenario from its text, with files that it names given as bytes; the others lie
    /// beside `file`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse_with(
        text: &str,
        file: &Path,
        given: Files,
        overrides: Overrides,
    ) -> Result<Self, ScenarioError> {
        Self::of(Document::parse(text, file), file, given, overrides)
    }

    /// Takes a scenario that is a table already, with files as [`Self::parse_with`].
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn of_table(
        table: Table,
        file: &Path,
        given: Files,
        overrides: Overrides,
    ) -> Result<Self, ScenarioError> {
        Self::of(Document::of_table(table, file), file, given, overrides)
    }

    fn of(
        document: Result<Document, ScenarioError>,
        file: &Path,
        given: Files,
        overrides: Overrides,
    ) -> Result<Self, ScenarioError> {
        let plan = document.and_then(|document| Self::new(document.with_files(given), overrides));
        plan.map_err(|error| error.within(file))
    }

    pub(super) fn new(mut document: Document, overrides: Overrides) -> Result<Self, ScenarioError> {
        overrides.apply(&mut document)?;
        document.check()?;
        let Some(count) = points_of(&document) else {
            return Err(ScenarioError::new(format!(
                "[sweep] has more than {POINTS_MAX} points, sweep over fewer values"
            )));
        };
        let plan = Self::with_points(document, (0..count).collect())?;
        parts::check(&plan.document, &plan.points)?;
        Ok(plan)
    }

    /// One point alone of the scenario that [`Self::text`] gave elsewhere, where all points were
    /// checked together; all files that it names are given.
    ///
    /// # Errors
    /// As [`Self::read`], and if there is no such point.
    pub fn parse_point(text: &str, given: Files, number: usize) -> Result<Self, ScenarioError> {
        let document = Document::parse(text, Path::new(""))?.with_files(given);
        match points_of(&document) {
            Some(count) if number < count => Self::with_points(document, vec![number]),
            _ => Err(ScenarioError::new(format!("there is no point {number}"))),
        }
    }

    fn with_points(document: Document, numbers: Vec<usize>) -> Result<Self, ScenarioError> {
        let points = parallel::map(numbers, |number| {
            let values = values_at(&document.sweep, number);
            let scenario = Scenario::resolve(&document, &values)?;
            let scenario = Arc::new(scenario);
            Ok(Point { values, scenario })
        });
        let points = points
            .into_iter()
            .collect::<Result<Vec<Point>, ScenarioError>>()?;
        let Some(first) = points.first() else {
            return Err(ScenarioError::new("[sweep] has no such point"));
        };
        let timing = &first.scenario.timing;
        check_runs(points.len(), timing.seeds)?;
        let title = if timing.name.is_empty() {
            let stem = document.file.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        } else {
            timing.name.clone()
        };
        let seeds = (0..timing.seeds).map(|n| timing.seed.wrapping_add(n));
        Ok(Self {
            title,
            seeds: seeds.collect(),
            files: document.files_on_disk(),
            points,
            document,
        })
    }

    /// The whole scenario in TOML, its sweep and what a command line changed included.
    pub fn text(&self) -> String {
        self.document.text()
    }

    /// The identity of a run at a point, beside its seed and the program: the scenario in TOML with
    /// the values of that point, and the names of the files that it reads.
    pub fn identity(&self, point: usize) -> (String, Vec<String>) {
        let mut table = self.document.table.clone();
        let values = self.points.get(point).map(|point| &point.values[..]);
        for (path, value) in values.unwrap_or_default() {
            set(&mut table, path, value);
        }
        let names = document::names_in(&table);
        for none_of_its_business in ["name", "seeds"] {
            table.remove(none_of_its_business);
        }
        (table.to_string(), names)
    }

    /// All files that it names, by name.
    ///
    /// # Errors
    /// One sentence: one of them cannot be read any more.
    pub fn named_files(&self) -> Result<Vec<(String, Vec<u8>)>, ScenarioError> {
        let files = self.document.files();
        let names = self.document.names().into_iter();
        let read = names.map(|name| {
            let bytes = files.read("a file", &name)?.bytes.into_owned();
            Ok((name, bytes))
        });
        read.collect()
    }

    /// Keeps the content of the files that the plan names: if they change later, runs use what was
    /// read.
    ///
    /// # Errors
    /// As [`Self::named_files`].
    pub fn keep_files(&mut self) -> Result<(), ScenarioError> {
        let files = self.named_files()?.into_iter();
        let given = files.fold(Files::new(), |kept, (name, bytes)| kept.with(name, bytes));
        self.document.keep(given);
        Ok(())
    }

    /// The options of `motet run` that repeat the run with this seed exactly: the first seed draws
    /// the floor, too, so that another first seed alone would be a run on another floor.
    pub fn repeats(&self, seed: u64) -> String {
        let is_said = |path| self.document.get(path).is_some() || self.sweeps(path);
        let is_drawn = DRAWN.into_iter().any(is_said);
        let fixed = self.document.get(LAYOUT_SEED).and_then(Value::as_integer);
        let is_fixed = fixed.is_some_and(|seed| seed >= 0) || self.sweeps(LAYOUT_SEED);
        let mut options = format!("--seed {seed} --seeds 1");
        if let Some(first) = self.seeds.first().filter(|_| is_drawn && !is_fixed) {
            options += &format!(" --layout-seed {first}");
        }
        options
    }

    fn sweeps(&self, path: &str) -> bool {
        self.document.sweep.iter().any(|(swept, _)| swept == path)
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.points.len() * self.seeds.len()
    }

    /// Seconds of virtual time in all.
    pub fn seconds(&self) -> f64 {
        let points = self.points.iter();
        let one_seed: f64 = points.map(|point| point.scenario.timing.duration_s).sum();
        one_seed * self.seeds.len() as f64
    }

    /// Runs everything; the results are in the order of points and seeds, whatever the
    /// number of threads. `captures` are of the first run.
    ///
    /// Runs that `watch` stopped are marked incomplete; those that had not begun are absent.
    pub fn run(&self, watch: &Watch<'_>, captures: Captures) -> Vec<RunResult> {
        let mut captures = Some(captures);
        let jobs: Vec<(usize, u64, Captures)> = (0..self.points.len())
            .flat_map(|point| self.seeds.iter().map(move |seed| (point, *seed)))
            .map(|(point, seed)| (point, seed, captures.take().unwrap_or_default()))
            .collect();
        let results: Vec<Option<RunResult>> = parallel::map(jobs, |(point, seed, captures)| {
            (!watch.stops()).then(|| self.run_one(point, seed, watch, captures))
        });
        results.into_iter().flatten().collect()
    }

    /// Runs one point with one seed; samples are kept of the first seed alone.
    pub fn run_one(
        &self,
        point: usize,
        seed: u64,
        watch: &Watch<'_>,
        captures: Captures,
    ) -> RunResult {
        let scenario = self.points[point].scenario.clone();
        let mut result = run(scenario, seed, watch, captures);
        if seed != self.seeds[0] {
            result.samples = Vec::new();
        }
        result.point = point;
        result
    }
}

impl Document {
    /// Every point of a scenario that a program runs itself, and the full names of the keys that
    /// are swept: each point has values for them.
    ///
    /// # Errors
    /// As [`Plan::read`]; that every key has an effect is for a plan to find.
    pub fn points(text: &str) -> Result<(Vec<String>, Vec<Self>), ScenarioError> {
        let mut document = Self::parse(text, Path::new(""))?;
        document.check()?;
        let count = points_of(&document).unwrap_or_default();
        document.is_made = true;
        let sweep = std::mem::take(&mut document.sweep);
        let point = |number| {
            let mut document = document.clone();
            for (path, value) in values_at(&sweep, number) {
                set(&mut document.table, &path, &value);
            }
            document
        };
        let points = (0..count).map(point).collect();
        let swept = sweep.iter().map(|(path, _)| path.clone());
        Ok((swept.collect(), points))
    }
}

/// How many points there are; none of more than a scenario may have.
fn points_of(document: &Document) -> Option<usize> {
    let mut counts = document.sweep.iter().map(|(_, values)| values.len());
    counts.try_fold(1_usize, |count, values| {
        let count = count.checked_mul(values)?;
        (count <= POINTS_MAX).then_some(count)
    })
}

/// Points and seeds each have a limit of their own; what they make together has one, too.
fn check_runs(points: usize, seeds: u64) -> Result<(), ScenarioError> {
    let runs = (points as u64).saturating_mul(seeds);
    if runs <= RUNS_MAX {
        return Ok(());
    }
    Err(ScenarioError::new(format!(
        "{points} points with {seeds} seeds each are {runs} runs, but a scenario may have {RUNS_MAX}: sweep over fewer \
         values, or take fewer seeds"
    )))
}

/// The values of a sweep at a point; the last key changes fastest.
fn values_at(sweep: &[(String, Vec<Value>)], mut number: usize) -> Vec<(String, Value)> {
    let mut values = Vec::with_capacity(sweep.len());
    for (path, all) in sweep.iter().rev() {
        values.push((path.clone(), all[number % all.len()].clone()));
        number /= all.len();
    }
    values.reverse();
    values
}

/// One run from its beginning to its end.
pub(super) fn run(
    scenario: Arc<Scenario>,
    seed: u64,
    watch: &Watch<'_>,
    captures: Captures,
) -> RunResult {
    match Session::open(scenario, seed, captures, || watch.stops()) {
        Ok(mut session) => {
            session.advance(Instant::from_micros(u64::MAX), watch);
            session.finish()
        }
        Err(error) => failed(seed, error.to_string()),
    }
}

impl Overrides {
    /// Puts them in the place of what the file has; values that the file could not have are refused
    /// as they would be there.
    fn apply(self, document: &mut Document) -> Result<(), ScenarioError> {
        let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let given = [
            ("seed", self.seed.map(integer)),
            ("seeds", self.seeds.map(integer)),
            ("duration_s", self.duration_s.map(Value::Float)),
        ];
        for (key, value) in given {
            let Some(value) = value else { continue };
            let value = document::check_top_value(key, &value)?;
            document.table.insert(key.to_owned(), value);
            document.sweep.retain(|(swept, _)| swept != key);
        }
        if let Some(seed) = self.layout_seed {
            document.set(LAYOUT_SEED, integer(seed))?;
            document.sweep.retain(|(swept, _)| swept != LAYOUT_SEED);
        }
        document.sweep_over(self.sweep)
    }
}

/// The seed of what [`DRAWN`] places.
const LAYOUT_SEED: &str = "topology.seed";

/// The kinds of topology that draw places or shadowing.
const DRAWN: [&str; 2] = ["topology.floor", "topology.positions"];

/// More would rather be a program's work than a scenario's.
const POINTS_MAX: usize = 10_000;

/// As many as one point may have seeds. All results are in memory at the end: those of a run over
/// three hops have about 5 KB.
const RUNS_MAX: u64 = 100_000;
