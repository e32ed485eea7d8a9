//! All points of a scenario, and running them on all cores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use motet::time::Instant;
use toml::{Table, Value};

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
    /// What to call it.
    pub title: String,
    /// The points, the last swept key changing fastest.
    pub points: Vec<Point>,
    /// Seeds of each point.
    pub seeds: Vec<u64>,
    /// What it was read from beside the scenario itself, on disk: matrices and traces.
    pub files: Vec<PathBuf>,
}

/// One combination of the swept values.
#[derive(Clone, Debug)]
pub struct Point {
    /// The swept keys with their values here.
    pub values: Vec<(String, Value)>,
    /// The scenario with these values.
    pub scenario: Arc<Scenario>,
}

/// What a command line changes in a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// The first seed.
    pub seed: Option<u64>,
    /// How many.
    pub seeds: Option<u64>,
    /// Virtual time of each run, s.
    pub duration_s: Option<f64>,
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
        let document = Document::read(file)?.with(given);
        Self::new(document, overrides).map_err(|error| error.within(file))
    }

    /// Reads a scenario from its text; what it names lies beside `file`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(text: &str, file: &Path, overrides: Overrides) -> Result<Self, ScenarioError> {
        Self::parse_with(text, file, Files::new(), overrides)
    }

    /// Reads a scenario from its text, with files that it names given as bytes; the others lie beside
    /// `file`.
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
        let plan = document.and_then(|document| Self::new(document.with(given), overrides));
        plan.map_err(|error| error.within(file))
    }

    pub(super) fn new(mut document: Document, overrides: Overrides) -> Result<Self, ScenarioError> {
        overrides.apply(&mut document)?;
        let count = document
            .sweep
            .iter()
            .try_fold(1_usize, |count, (_, values)| {
                count
                    .checked_mul(values.len())
                    .filter(|count| *count <= POINTS_MAX)
            });
        if count.is_none() {
            return Err(ScenarioError::new(format!(
                "[sweep] has more than {POINTS_MAX} points, sweep over fewer values"
            )));
        }
        let mut points = vec![Vec::new()];
        for (key, values) in &document.sweep {
            points = points
                .iter()
                .flat_map(|point| {
                    values.iter().map(|value| {
                        let mut point: Vec<(String, Value)> = point.clone();
                        point.push((key.clone(), value.clone()));
                        point
                    })
                })
                .collect();
        }
        let points = parallel::map(points, |values| {
            let scenario = Scenario::resolve(&document, &values)?;
            let scenario = Arc::new(scenario);
            Ok(Point { values, scenario })
        });
        let points = points
            .into_iter()
            .collect::<Result<Vec<Point>, ScenarioError>>()?;
        parts::check(&document, &points)?;
        let timing = &points[0].scenario.timing;
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
            files: document.files(),
            points,
        })
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
            if watch.stops() {
                return None;
            }
            let scenario = self.points[point].scenario.clone();
            let mut result = run(scenario, seed, watch, captures);
            if seed != self.seeds[0] {
                result.samples = Vec::new();
            }
            result.point = point;
            Some(result)
        });
        results.into_iter().flatten().collect()
    }
}

/// One run from its beginning to its end.
fn run(scenario: Arc<Scenario>, seed: u64, watch: &Watch<'_>, captures: Captures) -> RunResult {
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
        Ok(())
    }
}

/// More would rather be a program's work than a scenario's.
const POINTS_MAX: usize = 10_000;
