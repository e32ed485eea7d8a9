//! What runs gave: figures, JSON lines, plots, one page to look at.

mod results;

pub use results::{
    DROPS, FlowResult, LinkResult, METRICS, Metric, NodeCounts, NodeResult, RunResult, STATES,
    Sample, Summary,
};
