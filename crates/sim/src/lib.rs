//! The lab: a deterministic simulated 802.15.4 air in which Motet nodes live.
//!
//! Purpose: what a testbed is to a paper. The stack inside is the very crate a device
//! runs; the lab replaces only the radio, the wire and the clock.
//! Data flow: the [`calendar::Calendar`] yields an event; it reaches the medium, a radio or a
//! node; the node's actions go back to the radio and, as frames, onto the medium.
//! Left out: wall-clock time and sockets. A caller paces the world and carries packets
//! between it and a kernel.
//! Layout: [`air`] and [`apps`] know nobody but the files beside this one; [`net`] puts both
//! together; [`experiments`], [`scenario`] and [`soak`] run networks; [`report`] shows what came
//! of it. `tests/architecture.rs` holds that order.

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod air;
pub mod apps;
pub mod calendar;
pub mod capture;
pub mod experiments;
pub mod files;
pub mod net;
pub mod report;
pub mod scenario;
pub mod soak;
pub mod stats;
pub mod streams;

/// Where a run's nodes have their memory; one for each run, and gone with it.
pub use bumpalo::Bump as Arena;
