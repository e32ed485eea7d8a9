//! The lab: a deterministic simulated air, 802.15.4 or Bluetooth LE, in which Motet nodes live.
//!
//! Purpose: it takes the place of a testbed. The stack inside is the very crate a device runs; the
//! lab replaces only the radio, the wire and the clock. Data flow: the [`calendar::Calendar`]
//! yields an event; it reaches the medium, a radio or a node; the node's actions go back to the
//! radio and, as frames, onto the medium. Left out: wall-clock time and sockets. A caller paces the
//! world and carries packets between it and a kernel. Layout: [`air`], [`ble`] and [`apps`] import
//! only the files beside this one; [`net`] puts air and applications together; [`experiments`],
//! [`scenario`] and [`soak`] run networks; [`report`] shows their results.
//! `tests/lab/architecture.rs` checks this order.
//!
//! # Features
//!
//! All are on by default. Without them the lab needs no file system, no threads, and nothing from
//! JavaScript where it runs in a browser.
//!
//! | feature | what it adds |
//! |---|---|
//! | `files` | captures and other files that appear under their name only when whole |
//! | `parallel` | runs on all cores instead of one after the other; the results are the same |
//! | `plots` | plots and pages of results |

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod air;
pub mod apps;
pub mod ble;
pub mod calendar;
pub mod capture;
#[cfg(test)]
mod cases;
pub mod coap;
pub mod experiments;
pub mod files;
pub mod keys;
pub mod net;
mod ordered;
mod parallel;
pub mod report;
pub mod scenario;
pub mod soak;
pub mod stats;
pub mod streams;
pub mod thread;

/// Where a run's nodes have their memory; one for each run, and gone with it.
pub use bumpalo::Bump as Arena;
