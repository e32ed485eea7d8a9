//! `motet-peers`: what `cargo xtask peers` runs.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use motet_peers::compare::{self, Effort};
use motet_peers::count::{self, Load};
use motet_peers::endpoint::Stack;
use motet_peers::{instructions, memory, report};

/// Motet, TCPlp and smoltcp on the same simulated air, and under the same counter
#[derive(Parser)]
#[command(after_help = "Example: motet-peers --quick")]
struct Arguments {
    /// Print one JSON object a line, and nothing else on stdout
    #[arg(long)]
    json: bool,
    /// Fewer seeds and shorter runs: a look, not a judgement
    #[arg(long)]
    quick: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// The load under which callgrind counts
    #[command(hide = true)]
    Count { stack: String, load: String },
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(Part::Count { stack, load }) = &arguments.part {
        let stack = Stack::ALL.into_iter().find(|known| known.name() == stack);
        let load = Load::ALL.into_iter().find(|known| known.name() == load);
        count::run(
            stack.context("no such stack")?,
            load.context("no such load")?,
        );
        return Ok(());
    }
    let effort = if arguments.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    let counts = instructions::measure()?;
    let points = compare::measure(effort)?;
    if arguments.json {
        report::print_json(&points, &counts)
    } else {
        report::print_instructions(&counts);
        report::print_memory(&memory::measure());
        report::print_goodput(&points, effort);
        Ok(())
    }
}
