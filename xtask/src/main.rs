//! Developers' commands: `cargo xtask check` and `cargo xtask sizes`.
//!
//! `check` is what continuous integration runs, and all it runs. Left out: everything a
//! user of Motet needs, which is the command `motet`.

mod check;
mod composition;
mod deny;
mod determinism;
mod firmware;
mod image;
mod panics;
mod sizes;
mod step;
mod tools;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// Developers' commands for Motet.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that continuous integration runs
    ///
    /// Formatting, lints, tests, documentation, the thumb builds, the firmware's sizes, the
    /// node pair under QEMU, licences. Every step runs, whatever the ones before it gave.
    #[command(after_help = "Example: cargo xtask check\nExample: cargo xtask check fmt clippy")]
    Check {
        /// Only these steps
        #[arg(value_parser = check::step_names())]
        steps: Vec<String>,
    },
    /// Measure the linked thumbv6m images and compare with the snapshot
    #[command(after_help = "Example: cargo xtask sizes --json")]
    Sizes {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Write the snapshot, firmware/sizes.json, anew
        #[arg(long)]
        update: bool,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn run(command: &Command) -> Result<bool> {
    let workspace = Workspace::locate()?;
    match command {
        Command::Check { steps } => check::run(&workspace, steps),
        Command::Sizes { json, update } => sizes::run(&workspace, *json, *update),
    }
}
