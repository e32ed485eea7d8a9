//! Regressions: floors and foreign nodes that once broke the stack.
//!
//! Purpose: Motet's own experiment. Each kind of trouble has a file, with its settings (`cases`)
//! and its criteria (`rows`). Place: runs draw their floors from the seed. Left out: foreign
//! stacks, which `peers` has.

pub mod chain_traffic;
pub mod daemon;
pub mod joined;
pub mod siblings;
pub mod strangers;

use super::row::Row;
use super::{Budget, Case, Experiment, Results};

/// The experiments, in the order of the command's list.
pub const EXPERIMENTS: [Experiment; 1] = [Experiment {
    id: "combined-outsiders",
    title: "What outsiders bring upon a mesh: dense floors, strangers, floods, children that are off",
    cases,
    rows,
    axis: None,
    budget: [
        Budget {
            runs: 3,
            seconds: 20,
        },
        Budget {
            runs: 10,
            seconds: 240,
        },
    ],
}];

fn cases() -> Vec<Case> {
    let parts = [
        joined::cases(),
        strangers::cases(),
        siblings::cases(),
        chain_traffic::cases(),
    ];
    parts.concat()
}

fn rows(results: &Results<'_>) -> Vec<Row> {
    let parts = [
        joined::rows(results),
        strangers::rows(results),
        siblings::rows(results),
        chain_traffic::rows(results),
    ];
    parts.concat()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
