//! Runs of scenarios that an experiment writes as text.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet::time::Instant;

use super::run::Failure;
use crate::scenario::{Captures, Document, RunResult, Session, Watch};

/// Opens the run of a scenario with a seed.
///
/// # Errors
/// Why the scenario cannot be run.
pub(super) fn open(text: &str, seed: u64) -> Result<Session, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Topology(error.to_string());
    let points = Document::points(text);
    let (_, mut documents) = points.map_err(|error| wrong(&error))?;
    let document = documents.pop().ok_or(Failure::NotFormed)?;
    let scenario = document.scenario().map_err(|error| wrong(&error))?;
    let session = Session::open(Arc::new(scenario), seed, Captures::default(), || false);
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
