//! What runs gave: figures, JSON lines, plots, one page to look at.

mod criteria;
mod figures;
mod files;
mod html;
mod lines;
mod map;
mod metrics;
mod page;
mod plot;
mod sweeps;
mod theme;

pub use criteria::{criteria_page, criteria_plots};
pub use files::{is_plot, write_file};
pub use lines::json_lines;
pub use metrics::{Group, METRICS, Metric, Spread, Summary, groups};
pub use page::{page, plots};

/// The version of the keys of JSON objects. It grows when a key goes or changes its meaning,
/// not when one is added.
pub const SCHEMA: u32 = 1;
