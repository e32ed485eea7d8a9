//! Networks: nodes on one air, wires to hosts beyond it, and the clock that they share.
//!
//! Place: [`world`] runs nodes, [`network`] builds a world from what it is to be like, and
//! [`chain`] is the network of most experiments.

pub mod bound;
pub mod chain;
pub mod faults;
pub mod network;
pub mod pacing;
pub mod plan;
pub mod topology;
pub mod wire;
pub mod world;
