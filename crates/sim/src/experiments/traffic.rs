//! The traffic of a setting, and its measurement.
//!
//! Purpose: each case of an experiment names its traffic, which runs it. A new kind is a type
//! that implements [`Traffic`], in the file of the experiment that needs it; no other file has
//! to know of it.

use std::fmt;

use super::run::{Failure, Run};
use super::setup::{Segment, Setup};

/// A kind of traffic, with all that makes one of its runs.
pub trait Traffic: fmt::Debug + Send + Sync {
    /// One run in the air of `setup`; `seconds` are those that are measured, unless the traffic
    /// has an end of its own.
    ///
    /// # Errors
    /// [`Failure`], which makes the run void.
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure>;

    /// The full segment, and the radio's bound in a run that measures for `seconds`.
    fn segment(&self, setup: &Setup, seconds: u64) -> Segment {
        setup.segment(seconds)
    }
}

#[cfg(test)]
#[path = "tests/bounds.rs"]
mod tests;
