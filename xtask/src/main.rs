//! Developers' commands: `cargo xtask check`, `sizes`, `surface`, `equal`, `verdicts`, `fuzz`,
//! `mutants`, `peers`, `apps`, `interop`, `ble-peers`, `thread`, `web`, `docs` and `release`.
//!
//! `check` is what continuous integration runs, and all it runs. Left out: everything a
//! user of Motet needs, which is the command `motet`.

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod apps;
mod ble_linux;
mod ble_peers;
mod budget;
mod check;
mod chips;
mod composition;
mod debian;
mod deny;
mod determinism;
mod devices;
mod docs;
mod evidence;
mod features;
mod firmware;
mod footprint;
mod foreign;
mod fuzz;
mod image;
mod interop;
mod mutants;
mod oldest;
mod over_text;
mod panics;
mod peers;
mod planted;
mod prose;
mod provenance;
mod python;
mod release;
mod sizes;
mod step;
mod surface;
mod symbols;
mod test;
mod thread;
mod tidy;
mod tools;
mod verdicts;
mod web;
mod whole_nodes;
mod workspace;

use std::path::PathBuf;
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
    /// Formatting, spelling, lints, documentation, tests, builds for devices and their sizes, node
    /// pairs under QEMU, the soak, the Python package, the live page, foreign stacks (TCPlp, lwIP,
    /// bumble, Linux, OpenThread), licences: CONTRIBUTING.md has a row for each step. Every step
    /// runs, whatever the ones before it gave.
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
        /// Print Markdown with revision, date and command
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// Write the snapshot, firmware/sizes.json, anew
        #[arg(long)]
        update: bool,
        /// Print whole nodes instead, ours beside those of other stacks
        #[arg(long, conflicts_with_all = ["json", "markdown", "update"])]
        peers: bool,
    },
    /// Measure pages of docs/evidence again, in full, and write them
    ///
    /// docs/evidence/pages.toml lists them. All of them take hours: name those that a change
    /// concerns.
    #[command(
        after_help = "Example: cargo xtask evidence mesh\nExample: cargo xtask evidence --rewrite"
    )]
    Evidence {
        /// Only these pages
        pages: Vec<String>,
        /// Measure nothing: make pages of experiments from the rows that are there
        #[arg(long)]
        rewrite: bool,
    },
    /// Write the list of the public items of `motet` anew
    ///
    /// The list, crates/stack/public-api.txt, is part of a change that changes what others may
    /// use; `check` compares.
    #[command(after_help = "Example: cargo xtask surface")]
    Surface,
    /// Compare what two builds of the command write: reports and captures, byte for byte
    ///
    /// Ten scenarios, four experiments, and a file over every radio. A change that leaves behaviour
    /// as it is leaves them equal.
    #[command(after_help = "Example: cargo xtask equal /tmp/motet-before")]
    Equal {
        /// The command `motet` from before the change
        before: PathBuf,
    },
    /// Count the criteria that hold in files of `motet reproduce --json`, and where two files agree
    ///
    /// Files of any form and seeds. The status is 1 where less than 95 % of the verdicts hold, or
    /// less than 97 % of two verdicts on one row agree.
    #[command(
        after_help = "Example: cargo xtask verdicts quick-1.jsonl full-1.jsonl full-4001.jsonl"
    )]
    Verdicts {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Fuzz every parser and the stack itself, one target after the other
    ///
    /// Needs a nightly compiler and cargo-fuzz. What the fuzzer finds wrong goes to
    /// fuzz/artifacts; put it into fuzz/corpus, where the tests replay it.
    #[command(after_help = "Example: cargo xtask fuzz --seconds 60 connection")]
    Fuzz {
        /// Only these targets
        targets: Vec<String>,
        /// Time for each target, s
        #[arg(long, default_value_t = 600)]
        seconds: u32,
        /// Do not fuzz, but write the seeds in fuzz/corpus anew
        #[arg(long, conflicts_with = "targets")]
        seeds: bool,
    },
    /// Change the stack line by line, and list the changes that no test notices
    ///
    /// TCP, TCPHC, link security and RPL. Builds once for each change: more than a day for all of
    /// them on two cores. The lists are in target/xtask/mutants.out.
    #[command(after_help = "Example: cargo xtask mutants --shard 0/40")]
    Mutants {
        /// Only these files, globs below the checkout
        files: Vec<String>,
        /// Only the part K of N of the changes, counted from 0
        #[arg(long, value_name = "K/N")]
        shard: Option<String>,
    },
    /// Compare Motet with TCPlp, smoltcp and lwIP: goodput, instructions, memory
    ///
    /// Needs a C compiler and valgrind; ends within 20 minutes.
    #[command(after_help = "Example: cargo xtask peers --quick")]
    Peers {
        /// Another comparison in place of that
        part: Option<peers::Part>,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
        /// Print Markdown with revision, date and command
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// Fewer seeds and shorter runs: a look, not a judgement
        #[arg(long)]
        quick: bool,
    },
    /// Run crates that others wrote for async firmware, unchanged, on motes in the lab
    ///
    /// The first time it builds them, which takes minutes. The sizes of images for devices are
    /// among the checks.
    #[command(after_help = "Example: cargo xtask apps --json")]
    Apps {
        /// Print one JSON object a line, one for each check
        #[arg(long)]
        json: bool,
        /// Print Markdown with revision, date and command
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Let foreign parts judge Motet's packets, and speak with its motes
    ///
    /// Needs a Linux where this user may make private networks; ends within two minutes, rcp within
    /// six, kernel within ten, thread-child within twenty, openthread after OpenThread is built
    /// twice.
    #[command(after_help = "Example: cargo xtask interop linux --json")]
    Interop {
        /// Which part
        peer: interop::Peer,
        /// Leave out what takes half an hour or more: the default
        #[arg(long, conflicts_with = "full")]
        quick: bool,
        /// Run that, too
        #[arg(long)]
        full: bool,
        /// Print one JSON object a line, one for each check
        #[arg(long)]
        json: bool,
        /// Print Markdown with revision, date and command
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Let bumble's host of Bluetooth LE and Linux's judge Motet's
    ///
    /// In each role 100 kB of TCP go each way over bumble's virtual controllers, its own L2CAP and
    /// this machine's kernel; then with a Debian kernel in QEMU, whose Bluetooth, IPv6 and TCP are
    /// all its own. Needs Python, QEMU, and a Debian-like Linux where this user may make private
    /// networks; bumble and the kernel are installed once, into ~/.cache/motet.
    #[command(after_help = "Example: cargo xtask ble-peers --json")]
    BlePeers {
        /// Print one JSON object a line, one for each peer, role and direction
        #[arg(long)]
        json: bool,
        /// Let the mote offer TCPlE to all of them; without it, to bumble alone in a second round
        #[arg(long)]
        tcple: bool,
    },
    /// Put `motet router` beside OpenThread's border router, with three motes behind it
    ///
    /// Needs a C++ compiler, CMake and Ninja, and a Linux where this user may make private
    /// networks. OpenThread is built once, in three to five minutes, into ~/.cache/motet; the
    /// checks take one.
    #[command(after_help = "Example: cargo xtask thread --json")]
    Thread {
        /// Print one JSON object a line, one for each check
        #[arg(long)]
        json: bool,
        /// Print Markdown with revision, date and command
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
    },
    /// Run the commands of README, guides and references as they are written
    ///
    /// One shell and one copy of the project for each page, as a user without rights. Fences marked
    /// `hardware`, `root` or `long` are not run: their options are looked up in `--help`. `check`
    /// leaves out those marked `slow`, too.
    #[command(after_help = "Example: cargo xtask docs README.md docs/security.md")]
    Docs {
        /// Only these pages
        pages: Vec<PathBuf>,
        /// The command `motet` to use, instead of building it
        #[arg(long)]
        motet: Option<PathBuf>,
    },
    /// Build the live page, a folder of static files
    ///
    /// Needs Node 20.19 or later with npm. The first run fetches npm's packages into
    /// web/node_modules.
    #[command(after_help = "Example: cargo xtask web --serve")]
    Web {
        /// Serve the page to browsers on this machine
        #[arg(long)]
        serve: bool,
        /// Print how large the lab is, and how much slower than a program
        #[arg(long)]
        sizes: bool,
    },
    /// Make and check everything that a release publishes
    ///
    /// The packages of all crates, static binaries for x86-64 and aarch64, archives and Debian
    /// packages of them, an image for containers. Needs a checkout without changes; ends within
    /// fifteen minutes.
    #[command(after_help = "Example: cargo xtask release --dry-run")]
    Release {
        /// Publish nothing: this command never does
        #[arg(long)]
        dry_run: bool,
        /// Make and check this part alone
        #[arg(long, value_enum)]
        part: Option<release::PartName>,
        /// Print one JSON object a line, one for each check
        #[arg(long)]
        json: bool,
        /// Print Markdown with revision, date and command
        #[arg(long, conflicts_with_all = ["json", "part"])]
        markdown: bool,
    },
}

/// How figures are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Markdown,
    Json,
}

impl Format {
    const fn of(json: bool, markdown: bool) -> Self {
        match (json, markdown) {
            (true, _) => Self::Json,
            (false, true) => Self::Markdown,
            (false, false) => Self::Table,
        }
    }
}

fn main() -> ExitCode {
    if let Some(status) = symbols::run_as_wrapper() {
        return status;
    }
    step::start_clock();
    match run(&Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all is well.
fn run(command: &Command) -> Result<bool> {
    let workspace = Workspace::locate()?;
    match command {
        Command::Check { steps } => check::run(&workspace, steps),
        Command::Sizes { peers: true, .. } => whole_nodes::run(&workspace),
        Command::Sizes {
            json,
            markdown,
            update,
            peers: false,
        } => sizes::run(&workspace, Format::of(*json, *markdown), *update),
        Command::Peers {
            part: Some(peers::Part::Crowd),
            json,
            markdown,
            quick,
        } => peers::run_crowd(&workspace, Format::of(*json, *markdown), *quick),
        Command::Peers {
            part: None,
            json,
            markdown,
            quick,
        } => peers::run(&workspace, Format::of(*json, *markdown), *quick),
        Command::Apps { json, markdown } => apps::run(&workspace, Format::of(*json, *markdown)),
        Command::Interop {
            peer,
            full,
            json,
            markdown,
            ..
        } => interop::run(&workspace, *peer, *full, Format::of(*json, *markdown)),
        Command::Thread { json, markdown } => thread::run(&workspace, Format::of(*json, *markdown)),
        Command::Release {
            dry_run,
            part: Some(part),
            json,
            ..
        } => release::run_part(&workspace, *part, *dry_run, Format::of(*json, false)),
        Command::Release {
            dry_run,
            part: None,
            json,
            markdown,
        } => release::run(&workspace, *dry_run, Format::of(*json, *markdown)),
        Command::BlePeers { json, tcple } => ble_peers::run(&workspace, *json, *tcple),
        Command::Docs { pages, motet } => docs::run(&workspace, pages, motet.as_deref()),
        Command::Web { serve, sizes } => web::run(&workspace, *serve, *sizes),
        Command::Mutants { files, shard } => mutants::run(&workspace, files, shard.as_deref()),
        Command::Equal { before } => determinism::compare(&workspace, before),
        Command::Evidence { pages, rewrite } => {
            evidence::run(&workspace, pages, *rewrite).map(|()| true)
        }
        Command::Verdicts { files } => verdicts::run(files),
        Command::Surface => surface::update(&workspace),
        Command::Fuzz { seeds: true, .. } => fuzz::write_seeds(&workspace),
        Command::Fuzz {
            targets, seconds, ..
        } => fuzz::run(&workspace, targets, *seconds),
    }
}
