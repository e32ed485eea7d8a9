//! `motet-peers`: what `cargo xtask peers` runs.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use motet_peers::compare::{self, Effort, Role, Selection};
use motet_peers::count::{self, Load};
use motet_peers::crowd::{self, Occupant};
use motet_peers::endpoint::Stack;
use motet_peers::frames;
use motet_peers::{instructions, memory, plain, report, update};
use motet_taim::Policy;

/// Motet, TCPlp, smoltcp and lwIP on the same simulated air, and under the same counter
#[derive(Parser)]
#[command(after_help = "Example: motet-peers --quick")]
struct Arguments {
    /// Print one JSON object a line, and nothing else on stdout
    #[arg(long)]
    json: bool,
    /// Fewer seeds and shorter runs: a look, not a judgement
    #[arg(long)]
    quick: bool,
    /// Only goodput, and only in this role: sender, receiver or both
    #[arg(long, value_parser = role)]
    role: Option<Role>,
    /// Only goodput, and only at this packet loss
    #[arg(long)]
    loss: Option<f64>,
    /// Only goodput, and only with this window, in segments
    #[arg(long)]
    window: Option<usize>,
    /// So many seeds of each point instead
    #[arg(long, value_parser = clap::value_parser!(u64).range(2..=1_000))]
    seeds: Option<u64>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Subcommand)]
enum Part {
    /// The load under which callgrind counts
    #[command(hide = true)]
    Count { stack: String, load: String },
    /// The load under which callgrind counts a frame
    #[command(hide = true)]
    CountFrames { load: String },
    /// Motet against this machine's own kernel
    Kernel,
    /// Only transfers over a pipe, to and from lwIP
    Plain,
    /// Only updates of lwIP devices, without and with the policy relay
    Update,
    /// Only crowds of other stacks, and of Motet's motes beside them, behind the border router
    Crowd(Crowd),
}

#[derive(Args)]
struct Crowd {
    /// Only this scene: star, hidden, late or floor
    #[arg(long)]
    scene: Option<String>,
    /// Only with this radio: hamilton or nrf52840
    #[arg(long)]
    radio: Option<String>,
    /// Only a crowd with these at its motes, in turn: motet (a whole mote), motet-tcp, tcplp,
    /// smoltcp, lwip
    #[arg(long, value_delimiter = ',')]
    motes: Vec<Occupant>,
    /// The border router's policy
    #[arg(long, default_value = "auto")]
    policy: Policy,
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
    match &arguments.part {
        Some(part) => run_part(part, arguments),
        None => compare_all(arguments),
    }
}

/// One part alone.
fn run_part(part: &Part, arguments: &Arguments) -> Result<()> {
    match part {
        Part::Kernel => kernel(),
        Part::Count { stack, load } => {
            let stack = Stack::ALL.into_iter().find(|known| known.name() == stack);
            let load = Load::ALL.into_iter().find(|known| known.name() == load);
            count::run(
                stack.context("no such stack")?,
                load.context("no such load")?,
            );
            Ok(())
        }
        Part::CountFrames { load } => {
            let mut loads = frames::Load::ALL.into_iter();
            let load = loads.find(|known| known.name() == load);
            frames::run(load.context("no such load")?);
            Ok(())
        }
        Part::Plain => {
            let transfers = plain::measure(arguments.seeds.unwrap_or(PLAIN_SEEDS))?;
            report::plain(&transfers, arguments.json)
        }
        Part::Update => {
            let seeds = arguments.seeds.unwrap_or(UPDATE_SEEDS);
            let updates = update::measure(seeds, update::Around::DEFAULT)?;
            report::updates(&updates, arguments.json)
        }
        Part::Crowd(crowd) => measure_crowds(crowd, arguments),
    }
}

fn measure_crowds(crowd: &Crowd, arguments: &Arguments) -> Result<()> {
    let mut effort = if arguments.quick {
        crowd::QUICK
    } else {
        crowd::FULL
    };
    effort.seeds = arguments.seeds.unwrap_or(effort.seeds);
    let selection = crowd::Selection {
        scene: crowd.scene.clone(),
        radio: crowd.radio.clone(),
        occupants: crowd.motes.clone(),
        policy: crowd.policy,
    };
    let rows = crowd::measure(effort, &selection)?;
    report::crowds(&rows, effort, arguments.json)
}

/// The comparison of all stacks, and of what the arguments select.
fn compare_all(arguments: &Arguments) -> Result<()> {
    let mut effort = if arguments.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    effort.seeds = arguments.seeds.unwrap_or(effort.seeds);
    let selection = Selection {
        role: arguments.role,
        loss: arguments.loss,
        window_segments: arguments.window,
    };
    let all = selection == Selection::default();
    // Programs want every row at the end, people what there is.
    let (mut counts, mut frames) = (Vec::new(), Vec::new());
    if all {
        counts = instructions::measure()?;
        frames = instructions::measure_frames()?;
        if !arguments.json {
            report::print_instructions(&counts);
            report::print_frames(&frames);
            report::print_memory(&memory::measure());
            report::print_kernel(&kernel_lines());
        }
    }
    if all {
        report::plain(&plain::measure(PLAIN_SEEDS)?, arguments.json)?;
        let seeds = if arguments.quick {
            UPDATE_SEEDS / 2
        } else {
            UPDATE_SEEDS
        };
        report::updates(
            &update::measure(seeds, update::Around::DEFAULT)?,
            arguments.json,
        )?;
    }
    let points = compare::measure(effort, &selection)?;
    if arguments.json {
        return report::print_json(&points, &counts, &frames);
    }
    report::print_goodput(&points, effort);
    Ok(())
}

/// What the runs against the kernel print, in a process of their own: a private network is
/// entered before any thread starts.
fn kernel_lines() -> String {
    let output = std::env::current_exe()
        .and_then(|program| std::process::Command::new(program).arg("kernel").output());
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("it cannot be run: {error}\n"),
    }
}

#[cfg(target_os = "linux")]
fn kernel() -> Result<()> {
    motet_peers::kernel::run()
}

#[cfg(not(target_os = "linux"))]
fn kernel() -> Result<()> {
    anyhow::bail!("a kernel's TCP is reached on Linux only")
}

fn role(name: &str) -> Result<Role, String> {
    let found = Role::ALL.into_iter().find(|role| role.name() == name);
    found.ok_or_else(|| "a role is sender, receiver or both".to_owned())
}

/// Of each point over the pipe: a transfer there is over in milliseconds.
const PLAIN_SEEDS: u64 = 50;

/// Of each air of an update.
const UPDATE_SEEDS: u64 = 10;
