//! What the command does, seen from outside: its output, its files, its exit status.
//!
//! One binary for all of it, since each links the whole product. A file that is added here is named
//! below. What changes its own process, or has no harness, stays a binary of its own beside this folder.

mod common;

mod apps;
mod bluetooth;
mod decode;
mod determinism;
mod faults;
mod guard;
mod kernel;
mod keys;
mod matrix;
mod mesh;
mod model;
mod reproduce;
mod run;
mod secured;
mod soak;
mod state;
mod trace;
mod usage;
