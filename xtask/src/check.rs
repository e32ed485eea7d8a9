//! `cargo xtask check`: every step, with its time; the output of those that fail; the sum. Steps
//! that are named run alone, and have their processor time, too.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::Result;

use crate::firmware::{OVER_NODE, OVER_TARGET};
use crate::step::{StepOutcome, essence, run_logged};
use crate::workspace::{Workspace, locked};
use crate::{
    ble_peers, chips, deny, determinism, devices, docs, features, firmware, foreign, oldest, peers,
    planted, prose, python, sizes, surface, symbols, test, thread as openthread, tidy, tools, web,
};

type Step = (&'static str, fn(&Workspace) -> Result<StepOutcome>);

/// Steps that come before all others: what they find missing or wrong costs no minute.
const FIRST: &[Step] = &[
    ("tools", tools::check),
    ("fmt", fmt),
    ("tidy", tidy::check),
    ("typos", prose::check_spelling),
    ("links", prose::check_links),
    ("patches", planted::check_patches),
];

/// Steps that build for this machine, in one target folder, in which one Cargo works at a time.
/// What a change breaks most often stands first.
const HOST: &[Step] = &[
    ("features", features::check),
    ("doc", doc),
    ("surface", surface::check),
    ("wasm", wasm),
    // Clippy judges the workspace in this step's build.
    ("test", test::check),
];

/// Steps that build for other machines, or with other compilers, beside those of [`HOST`].
const ELSEWHERE: &[Step] = &[
    ("firmware-clippy", firmware_clippy),
    ("thumb", thumb),
    ("sizes", sizes::check),
    ("qemu", firmware::check_pair),
    ("qemu-embassy", devices::check_embassy_pair),
    ("oldest", oldest::check),
];

/// Steps that need what the tests have built.
const AFTER_TEST: &[Step] = &[
    ("soak", soak),
    ("peers", peers::check),
    ("python", python::check),
];

/// Steps that need it, too, and for the most part wait for a browser, virtual machines and foreign
/// programs. They run beside those of [`AFTER_TEST`].
const AFTER_TEST_BESIDE: &[Step] = &[
    ("web", web::check),
    ("ble-peers", ble_peers::check),
    ("thread", openthread::check),
    ("docs", docs::check),
    // On a new machine what they need is built meanwhile, out of everything else's way.
    ("licences", deny::check_licences),
    ("advisories", deny::check_advisories),
];

/// What runs only where its name is given: others judge the same, or most of it. `clippy` gives
/// Clippy's verdict without the step `test`, in whose build it is given otherwise. The step `test`
/// tries some of the cases of the lab's longest tests, `long` all of them. `chips` builds dozens of
/// vendors' crates. The page's
/// lab, an optimised build, gives what the command gives, a build for debugging; and the
/// soak's bugs are proven found in `docs/reference/soak.md`.
const NAMED: &[Step] = &[
    ("clippy", clippy),
    ("long", test::check_long),
    ("planted", planted::check),
    ("chips", chips::check),
    ("determinism", determinism::check),
];

fn all_steps() -> Vec<Step> {
    [FIRST, HOST, ELSEWHERE, AFTER_TEST, AFTER_TEST_BESIDE, NAMED].concat()
}

/// The names that `check` takes as arguments.
pub(crate) fn step_names() -> Vec<&'static str> {
    all_steps().into_iter().map(|(name, _)| name).collect()
}

/// Runs the steps named in `only` one after the other, or all, two at a time; gives whether every
/// check held.
pub(crate) fn run(workspace: &Workspace, only: &[String]) -> Result<bool> {
    let start = Instant::now();
    // The step `test` builds this program anew, and `sizes` needs a copy of it later.
    symbols::keep_this_program(workspace)?;
    let sum = match only {
        [] => run_all(workspace),
        _ => {
            let mut steps = all_steps();
            steps.retain(|(name, _)| only.iter().any(|wanted| wanted == name));
            let rows = Rows::default();
            for step in steps {
                let cpu_start = cpu_s();
                let mut row = Row::of(workspace, step);
                row.cpu_s = Some(cpu_s() - cpu_start);
                rows.add(row);
            }
            rows
        }
    };
    let sum = sum.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!(
        "{:.1} s in all, {:.1} s of processor time",
        start.elapsed().as_secs_f32(),
        cpu_s()
    );
    if !sum.flaky.is_empty() {
        println!(
            "FLAKY, failed once and then passed: {}",
            sum.flaky.join(", ")
        );
    }
    println!("{} passed, {} failed", sum.passed, sum.failed);
    Ok(sum.failed == 0)
}

/// Runs every step: after the first ones two at a time, so that one waits while the other computes.
fn run_all(workspace: &Workspace) -> Rows {
    let rows = Rows::default();
    let one_after_the_other = |steps: &[Step]| {
        for step in steps {
            rows.add(Row::of(workspace, *step));
        }
    };
    let in_order = &one_after_the_other;
    thread::scope(|scope| {
        scope.spawn(|| foreign::make_ready(workspace));
        in_order(FIRST);
        let elsewhere = scope.spawn(move || in_order(ELSEWHERE));
        in_order(HOST);
        scope.spawn(move || {
            elsewhere
                .join()
                .unwrap_or_else(|panic| resume_unwind(panic));
            in_order(AFTER_TEST_BESIDE);
        });
        in_order(AFTER_TEST);
    });
    rows
}

/// What the steps gave that have ended.
#[derive(Default)]
struct Rows(Mutex<StepOutcome>);

impl Rows {
    /// Prints a step's row, and adds it to the sum.
    fn add(&self, row: Row) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        row.print();
        sum.passed += row.outcome.passed;
        sum.failed += row.outcome.failed;
        sum.flaky.extend(row.outcome.flaky);
    }
}

/// A step that has ended.
struct Row {
    name: &'static str,
    wall_s: f32,
    /// Where no other step ran beside it.
    cpu_s: Option<f64>,
    outcome: StepOutcome,
}

impl Row {
    /// Runs a step.
    fn of(workspace: &Workspace, (name, step): Step) -> Self {
        let start = Instant::now();
        let outcome = step(workspace)
            .unwrap_or_else(|error| StepOutcome::single(false, "", format!("{error:#}\n")));
        Self {
            name,
            wall_s: start.elapsed().as_secs_f32(),
            cpu_s: None,
            outcome,
        }
    }

    /// One line, and what the step printed where it failed.
    fn print(&self) {
        let outcome = &self.outcome;
        let word = match (outcome.failed, outcome.flaky.is_empty()) {
            (0, true) => "ok",
            (0, false) => "FLAKY",
            _ => "FAILED",
        };
        let cpu = self.cpu_s.map(|seconds| format!("{seconds:>6.1} s"));
        println!(
            "{:<16}{word:<7} {:>6.1} s {}  {}",
            self.name,
            self.wall_s,
            cpu.unwrap_or_default(),
            outcome.note
        );
        if outcome.failed > 0 {
            println!("\n{}", outcome.output.trim_end());
            println!("\n(end of {})\n", self.name);
        }
        if !outcome.flaky.is_empty() {
            println!("{:<16}{}", "", outcome.flaky.join(", "));
        }
        // Whoever reads a log sees each row when its step ends.
        let _ = io::stdout().flush();
    }
}

/// Processor time of all programs that this one has started and seen end, s; 0 where the system has
/// no `/proc`. It says what a step costs, whatever else the machine does.
fn cpu_s() -> f64 {
    // Clock ticks of Linux's interfaces, whatever its own.
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc_pid_stat(5): cutime and cstime are fields 16 and 17; the second, in brackets, may have
    // spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let times = fields.split_whitespace().skip(13).take(2);
    let ticks: f64 = times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_S
}

/// Every workspace is formatted.
fn fmt(workspace: &Workspace) -> Result<StepOutcome> {
    // Without `--all`, which goes through what the other workspaces use of the top one again.
    const ARGUMENTS: [&str; 4] = ["--check", "--", "--color", "never"];
    let here = &mut workspace.cargo("fmt");
    let firmware = &mut workspace.firmware_cargo("fmt");
    let peers = &mut workspace.peers_cargo("fmt");
    let apps = &mut workspace.apps_cargo("fmt");
    let chips = &mut workspace.chips_cargo("fmt");
    let python = &mut workspace.python_cargo("fmt");
    let web = &mut workspace.web_cargo("fmt");
    let mut commands =
        [here, firmware, peers, apps, chips, python, web].map(|command| command.args(ARGUMENTS));
    all(workspace, "fmt", &mut commands)
}

/// Clippy for the workspace with all its targets.
fn clippy(workspace: &Workspace) -> Result<StepOutcome> {
    let mut command = workspace.cargo("clippy");
    command.args(["--workspace", "--all-targets"]);
    command.args(locked()).args(["--", "-D", "warnings"]);
    all(workspace, "clippy", &mut [&mut command])
}

fn firmware_clippy(workspace: &Workspace) -> Result<StepOutcome> {
    let mut over = workspace.firmware_cargo("clippy");
    over.args(["--package", OVER_NODE, "--target", OVER_TARGET, "--release"])
        .args(locked())
        .args(["--", "-D", "warnings"]);
    let mut command = workspace.firmware_cargo("clippy");
    command
        .args(["--workspace", "--exclude", OVER_NODE, "--release"])
        // Without it the image that measures RPL is left out.
        .args(["--features", "minimal-node/relay"])
        .args(locked())
        .args(["--", "-D", "warnings"]);
    all(workspace, "firmware-clippy", &mut [&mut command, &mut over])
}

fn doc(workspace: &Workspace) -> Result<StepOutcome> {
    let mut command = workspace.cargo("doc");
    command
        .args(["--workspace", "--no-deps"])
        .args(locked())
        .env("RUSTDOCFLAGS", "-D warnings");
    all(workspace, "doc", &mut [&mut command])
}

/// The stack and its C interface compile for both kinds of device, without `std`, and the sockets
/// of async firmware, and what updates it, for the larger one. Images for both are built by `sizes`
/// and by the steps that emulate devices.
fn thumb(workspace: &Workspace) -> Result<StepOutcome> {
    let mut sockets = workspace.cargo("check");
    sockets
        // In release, so that it waits for no build for this machine.
        .args(["--package", "motet-embassy", "--package", "motet-update"])
        .arg("--release")
        .args(["--target", "thumbv7em-none-eabihf"])
        .args(locked());
    let mut stack = workspace.cargo("check");
    stack
        .args(["--package", "motet", "--package", "motet-c", "--release"])
        .args(["--target", "thumbv6m-none-eabi"])
        .args(["--target", "thumbv7em-none-eabihf"])
        .args(locked());
    all(workspace, "thumb", &mut [&mut stack, &mut sockets])
}

/// The lab without its features asks nothing of a browser's virtual machine. It is judged as it
/// builds for this machine; the step `web` builds it for WebAssembly.
fn wasm(workspace: &Workspace) -> Result<StepOutcome> {
    const BARE_LAB: [&str; 3] = ["--package", "motet-lab", "--no-default-features"];
    let mut outcome = all(
        workspace,
        "wasm",
        &mut [workspace
            .cargo("clippy")
            .args(BARE_LAB)
            .args(locked())
            .args(["--", "--deny", "warnings"])],
    )?;
    let mut tree = workspace.cargo("tree");
    tree.args(BARE_LAB)
        .args(["--target", "wasm32-unknown-unknown"])
        .args(["--edges", "normal", "--prefix", "none"])
        .args(locked());
    let (good, packages) = run_logged(&mut tree, &workspace.scratch()?.join("wasm-tree.log"))?;
    let foreign = packages.lines().find(|line| {
        ["js-sys ", "web-sys ", "wasm-bindgen "]
            .iter()
            .any(|name| line.starts_with(name))
    });
    if !good || foreign.is_some() {
        outcome.failed += 1;
        outcome.output.push_str(&match foreign {
            Some(package) => format!("motet-lab without features needs {package}\n"),
            None => packages,
        });
    }
    Ok(outcome)
}

/// A minute of random faults, by the build that panics where a number overflows.
fn soak(workspace: &Workspace) -> Result<StepOutcome> {
    let mut clean = Command::new(workspace.debug_motet()?);
    clean.args(["soak", "--seconds", SOAK_SECONDS]);
    all(workspace, "soak", &mut [&mut clean])
}

/// Simulated time of the clean runs: a minute or so.
const SOAK_SECONDS: &str = "200000";

/// One check that holds when every command succeeds; all of them run.
fn all(workspace: &Workspace, name: &str, commands: &mut [&mut Command]) -> Result<StepOutcome> {
    let log = workspace.scratch()?.join(format!("{name}.log"));
    let (mut good, mut output) = (true, String::new());
    for command in commands {
        let (this_good, this_output) = run_logged(command, &log)?;
        good &= this_good;
        output.push_str(&this_output);
    }
    Ok(StepOutcome::single(good, "", essence(&output)))
}
