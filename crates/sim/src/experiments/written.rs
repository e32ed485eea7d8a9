//! Runs of scenarios that an experiment writes as text.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet::time::Instant;

use super::run::Failure;
use crate::scenario::{Captures, Overrides, Plan, RunResult, Session, Watch};

/// Opens the run of a scenario with a seed.
///
/// # Errors
/// Why the scenario cannot be run.
pub(super) fn open(text: &str, seed: u64) -> Result<Session, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Topology(error.to_string());
    // As `motet run` reads it: nodes and hosts have room for all connections of the flows.
    let plan = Plan::parse(text, Path::new(""), Overrides::default());
    let mut points = plan.map_err(|error| wrong(&error))?.points;
    let scenario = points.pop().ok_or(Failure::NotFormed)?.scenario;
    let session = Session::open(scenario, seed, Captures::default(), || false);
    session.map_err(|error| wrong(&error))
}

/// Runs a scenario to its end, or until `stop` is set.
///
/// # Errors
/// As [`open`] and [`close`].
pub(super) fn finish(text: &str, seed: u64, stop: &AtomicBool) -> Result<RunResult, Failure> {
    run(open(text, seed)?, stop)
}

/// Runs what was opened to its end, or until `stop` is set.
///
/// # Errors
/// As [`close`].
pub(super) fn run(mut session: Session, stop: &AtomicBool) -> Result<RunResult, Failure> {
    let done_ms = AtomicU64::new(0);
    let watch = Watch {
        stop,
        done_ms: &done_ms,
    };
    session.advance(Instant::from_micros(u64::MAX), &watch);
    close(session)
}

/// The result of a run that is over.
///
/// # Errors
/// Why the run does not count.
pub(super) fn close(session: Session) -> Result<RunResult, Failure> {
    let result = session.finish();
    match &result.failure {
        Some(why) => Err(Failure::Topology(why.clone())),
        None => Ok(result),
    }
}
