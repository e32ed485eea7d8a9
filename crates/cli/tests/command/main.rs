//! What the command does, seen from outside: its output, its files, its exit status.
//!
//! One binary for all of it, since each links the whole product. A file that is added here is named
//! below. What changes its own process, or has no harness, stays a binary of its own beside this folder.

mod common;

mod apps;
mod attach;
mod bluetooth;
mod captures;
mod decode;
mod determinism;
#[cfg(target_os = "linux")]
#[path = "../../../radio/tests/radio/dongle.rs"]
mod dongle;
mod everything;
#[cfg(target_os = "linux")]
#[path = "../../../spinel/tests/spinel/fake.rs"]
#[expect(dead_code, reason = "the tests of the protocol use the rest")]
mod fake;
mod faults;
mod guard;
mod kernel;
mod keys;
mod matrix;
mod mesh;
mod model;
#[cfg(target_os = "linux")]
mod mote;
mod provenance;
mod reproduce;
mod run;
mod secured;
#[cfg(target_os = "linux")]
mod sniff;
mod soak;
mod state;
mod thread_captures;
mod trace;
mod usage;
