//! The lab: a deterministic simulated 802.15.4 air in which Motet nodes live.
//!
//! Purpose: what a testbed is to a paper. The stack inside is the very crate a device
//! runs; the lab replaces only the radio, the wire and the clock.
//! Data flow: the [`queue::Calendar`] yields an event; it reaches the medium, a radio or a
//! node; the node's actions go back to the radio and, as frames, onto the medium.
//! Left out: wall-clock time and sockets. A caller paces the world and carries packets
//! between it and a kernel.

pub mod ages;
pub mod air;
pub mod app;
pub mod bound;
pub mod bulk;
pub mod capture;
pub mod chain;
pub mod content;
pub mod energy;
pub mod experiments;
pub mod faults;
pub mod files;
pub mod filter;
pub mod gains;
pub mod k7;
pub mod medium;
pub mod messages;
pub mod network;
pub mod noise;
pub mod pacing;
pub mod phy;
pub mod plan;
pub mod power;
pub mod profile;
pub mod queue;
pub mod radio;
pub mod report;
pub mod scenario;
pub mod soak;
pub mod streams;
pub mod topology;
pub mod traffic;
pub mod wire;
pub mod world;

/// Where a run's nodes have their memory; one for each run, and gone with it.
pub use bumpalo::Bump as Arena;
