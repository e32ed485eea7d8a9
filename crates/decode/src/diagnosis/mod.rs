//! What is wrong in a network, read from a capture of it alone.
//!
//! ```text
//! frame -> stations (nodes, links)   \
//!       -> control (discovery, RPL) > findings, worst first -> report for people, for programs
//!       -> flows (TCP)               /
//! ```
//!
//! Place: behind the decoder, whose frames it reads by the names of their fields. Each finding is
//! a sentence and names frames that show it. Left out: what a sniffer cannot hear; so nothing is
//! said of queues, and a lost frame may be one that only the sniffer missed.

mod connections;
mod control;
mod findings;
mod flows;
mod link;
mod list;
#[cfg(test)]
mod made;
mod overlap;
mod report;
mod rules;
mod seen;
mod sleep;
mod stations;
mod tally;
#[cfg(test)]
mod tests;
mod view;

pub use self::report::Diagnosis;
pub use self::seen::{Seen, SeenFlow, SeenLink};

use self::control::Control;
use self::flows::Flows;
use self::stations::Stations;
use self::view::View;
use crate::model::Frame;

/// Reads frames in the order of a capture, and says at its end what is wrong.
#[derive(Debug, Default)]
pub struct Examiner {
    stations: Stations,
    control: Control,
    flows: Flows,
}

impl Examiner {
    /// One that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes an explained frame.
    pub fn observe(&mut self, frame: &Frame) {
        let view = View(frame);
        let is_repeat = self.stations.observe(view);
        if is_repeat {
            return;
        }
        self.control.observe(view);
        self.flows.observe(view, &self.stations);
    }

    /// What was found, at the end of the capture.
    pub fn conclude(mut self) -> Diagnosis {
        self.stations.finish();
        self.flows.finish(&self.stations);
        Diagnosis::of(&self)
    }
}
