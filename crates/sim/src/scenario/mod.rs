//! Scenarios: the settings of networks, in keys that files, command lines and experiments share.
//!
//! Purpose: what `motet run` runs. A file says where nodes are, what radio and settings they have,
//! which flows there are and what to sweep over; every key is in one table, from which come the
//! error messages, `docs/reference/scenarios.md` and the options of `motet send` and `motet up`
//! too.
//! Data flow: a file is read into a [`Document`], and programs put one together;
//! [`Document::scenario`] makes a network of that, with every default, or returns which keys
//! contradict each other. [`Plan::read`] checks a file and every point of its sweep; [`Plan::run`]
//! runs each point with each seed on all cores; `report` shows the results. [`Session`] is one run
//! that a caller advances and inspects.
//! Left out: features that the lab does not have yet; they have no keys.

mod addition;
mod attacker;
mod battery;
mod bluetooth;
mod bound;
mod defaults;
mod document;
mod documentation;
mod error;
mod fault;
mod flag;
mod flow;
mod hosts;
mod hours;
mod interference;
mod keys;
mod layout;
mod made;
mod model;
mod outcome;
mod pace;
mod parts;
mod pushes;
#[cfg(feature = "firmware")]
mod pushing;
mod radio;
mod reachable;
mod readings;
mod relevance;
mod resolve;
mod results;
mod router;
mod run;
mod security;
mod session;
mod shares;
mod sleep;
mod sources;
mod stack_keys;
mod sweep;
mod tables;
mod testbed;
mod thread;
mod typed;
mod wire;

pub use crate::net::moves::Move;
pub use battery::Battery;
pub use document::Document;
pub use documentation::documentation;
pub use error::{Rule, ScenarioError};
pub use flag::Setting;
pub use model::{
    FaultKind, FaultSettings, FlowEnd, FlowKind, FlowSettings, PushSettings, Scenario, Schedule,
    StackSettings, Timing, Transport,
};
pub use outcome::{Direction, Likeness, Outcome};
pub use results::{
    DROPS, FlowResult, HourResult, LinkResult, NodeCounts, NodeResult, RunResult, STATES, Sample,
    latency_p95_ms_of,
};
pub use run::{Captured, Captures, Watch};
pub use session::{Change, FlowView, NodeView, Session, View};
pub use sources::Files;
pub use sweep::{Overrides, Plan, Point};
pub use wire::WireSettings;

#[cfg(test)]
mod tests;
