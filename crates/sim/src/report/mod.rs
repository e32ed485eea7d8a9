//! The results of runs: figures, JSON lines, plots, one page to look at.

mod columns;
mod lines;
mod metrics;
#[cfg(feature = "plots")]
mod pictures;
mod provenance;

pub use columns::{Column, Of, Table, Values, table};
pub use lines::json_lines;
pub use metrics::{Group, METRICS, Metric, Spread, Summary, groups};
#[cfg(feature = "plots")]
pub use pictures::{criteria_page, criteria_plots, escape, is_plot, page, plots};
pub use provenance::{Inputs, Origin, Provenance, date};

/// The version of the keys of JSON objects. It grows when a key goes or changes its meaning,
/// not when one is added.
pub const SCHEMA: u32 = 1;
