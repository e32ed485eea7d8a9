//! Networks: nodes on one air, wires to hosts beyond it, and the clock that they share.
//!
//! Place: [`world`] holds nodes, [`network`] builds a world from what it is to be like,
//! [`chain`] is the network of most experiments, and [`run`] lets somebody look while time
//! passes.

pub mod attack;
pub mod bound;
pub mod bounded;
pub mod chain;
mod circulation;
pub mod counter_store;
pub mod dense;
pub mod device;
pub mod estimate;
pub mod fairness;
pub mod faults;
pub mod floor;
pub mod lacks;
pub mod moves;
pub mod network;
pub mod outages;
pub mod outside;
pub mod pacing;
pub mod plan;
pub mod run;
pub mod segments;
pub mod strangers;
pub mod topology;
pub mod wire;
pub mod world;
