//! `motet run SCENARIO.toml`: a scenario in virtual time, on all cores.

mod columns;
mod key_page;
mod origin;
mod remarks;
mod table;

use std::{
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use clap::Args as ClapArgs;
use motet_lab::{
    capture::Records,
    report::{self, Provenance},
    scenario::{self, Captured, Captures, Plan, Point, RunResult, Watch},
};

use crate::{
    capture::{self, is_stdout, is_stream},
    error::Error,
    interrupt::Interrupt,
    json::JsonLines,
    number::{SEEDS, whole},
    output::{self, Out},
    progress::Progress,
    targets::{self, Folder},
};

/// Run a scenario in virtual time: a mesh, its air, its flows
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "\
A scenario says where the nodes are, what radio and settings they have, which flows there \
are, and what to sweep over. Every point of the sweep is run with every seed, on all cores; \
the result depends on neither their number nor the machine.

Examples:
  motet run scenarios/three-hops.toml
  motet run scenarios/retry-delay.toml --seeds 8 --out study
  motet run study/results.jsonl      the same once more
  motet run scenarios/three-hops.toml --json | jq 'select(.record==\"summary\")'
  motet run scenarios/three-hops.toml --pcap - | tshark -r -
  motet run scenarios/three-hops.toml --reachable
  motet run --keys      every key of a scenario, and its default")]
pub(crate) struct Args {
    /// The scenario, or results.jsonl of a run that is to be repeated; - reads standard input
    #[arg(value_name = "SCENARIO.toml", required_unless_present_any = ["keys", "json"])]
    file: Option<PathBuf>,

    /// First seed, instead of the scenario's
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = whole::<u64>(SEEDS))]
    seed: Option<u64>,

    /// Number of seeds, instead of the scenario's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u64>(1..=100_000))]
    seeds: Option<u64>,

    /// Seed that draws the floor and shadowing, instead of the scenario's first seed: with it and
    /// --seed, one run of several seeds is repeated on their floor
    #[arg(long, value_name = "S", allow_negative_numbers = true, value_parser = whole::<u64>(SEEDS))]
    layout_seed: Option<u64>,

    /// Virtual time of each run, instead of the scenario's
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = duration)]
    duration: Option<f64>,

    /// Encrypt and authenticate every frame with the key in this file, in the place of the
    /// scenario's
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    #[command(flatten)]
    json: JsonLines,

    /// Write plots (SVG), report.html and results.jsonl to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write the air of the first run as a capture that Wireshark reads; - is standard output,
    /// the table goes to standard error then
    #[arg(long, value_name = "PATH")]
    pcap: Option<PathBuf>,

    /// Write the border router's wire of the first run as such a capture; - as for --pcap
    #[arg(long, value_name = "PATH")]
    wire_pcap: Option<PathBuf>,

    /// Search for the pace and window with which a lone bulk flow carries most, and show that
    /// goodput, cut at its bound: some twenty short runs for each run that has one
    #[arg(long)]
    reachable: bool,

    /// Overwrite existing files
    #[arg(long)]
    force: bool,

    /// Print every key of a scenario, with its default, and do nothing else
    #[arg(long, exclusive = true)]
    keys: bool,
}

/// Runs the scenario, shows and writes what it gave.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    if args.keys {
        return key_page::print(&scenario::documentation());
    }
    let mut args = args.clone();
    let given = args.file.take();
    let file = given.or_else(|| args.json.give_back(|_| true));
    let Some(file) = &file else {
        return Err(Error::input(
            "run needs <SCENARIO.toml>, see motet run --help",
        ));
    };
    let args = &args;
    let (plan, provenance) = origin::read(args, file)?;
    let folder = prepare(args, file, &plan)?;
    let interrupt = Interrupt::install()?;
    let (failed_captures, failures) = mpsc::channel();
    let begin = |path: &Option<PathBuf>, records| {
        let Some(path) = path else {
            return Ok(None);
        };
        let stops = interrupt.clone();
        let stops = move || stops.has_come();
        let begun = capture::create(path, records, args.force, stops);
        begun.map_err(|error| interrupt.check().err().unwrap_or(error))
    };
    // The radio is no key to sweep over.
    let on_air = |point: &Point| point.scenario.network.air_records();
    let on_air = plan.points.first().map_or(Records::TappedFrames, on_air);
    let captures = Captures {
        air: begin(&args.pcap, on_air)?,
        wire: begin(&args.wire_pcap, Records::Packets)?,
        failed: Some(failed_captures),
    };
    let (results, signal) = run_watched(&plan, captures, args.reachable, &interrupt);
    // The files are kept even when the reader of the table goes away.
    let shown = show(args, &plan, &results);
    let folder = folder.as_ref();
    let written =
        folder.map(|folder| write_folder(folder, &plan, &results, &provenance, args.force));
    let captured = failures.try_iter().filter_map(|(captured, error)| {
        let path = match captured {
            Captured::Air => args.pcap.as_ref(),
            Captured::Wire => args.wire_pcap.as_ref(),
        };
        capture::failure(path.unwrap_or(file), &error).map(Err)
    });
    let ended = [verdict(&plan, &results, signal), shown];
    Error::all(ended.into_iter().chain(written).chain(captured))
}

/// Runs the plan, and searches for what its flows can reach where that is asked for, while this
/// thread looks for signals and shows the progress; also returns the signal that cut it short.
fn run_watched(
    plan: &Plan,
    captures: Captures,
    reachable: bool,
    interrupt: &Interrupt,
) -> (Vec<RunResult>, Option<i32>) {
    let runs = || format!("{} runs", plan.runs());
    let work = |watch: &Watch<'_>| plan.run(watch, captures);
    let (mut results, signal) = watched(plan.seconds(), runs, interrupt, work);
    if !reachable || signal.is_some() {
        return (results, signal);
    }
    let seconds = plan.search_seconds(&results);
    let search = |watch: &Watch<'_>| plan.search_reachable(&mut results, watch);
    let words = || "search for what is reachable".to_owned();
    let ((), signal) = watched(seconds, words, interrupt, search);
    if signal.is_none() && results.iter().all(|run| run.reachable_kbps.is_none()) {
        output::say(
            "nothing was searched for: no run has a bound, which takes one bulk flow alone, without \
             RPL, TCPlE and links that change",
        );
    }
    (results, signal)
}

/// Does the work, of so many seconds of virtual time, in a thread of its own.
fn watched<T: Send>(
    seconds: f64,
    words: impl Fn() -> String,
    interrupt: &Interrupt,
    work: impl FnOnce(&Watch<'_>) -> T + Send,
) -> (T, Option<i32>) {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut progress = Progress::percentage((seconds * 1e3) as u64, true);
    let mut signal = None;
    let done = thread::scope(|scope| {
        let watch = Watch {
            stop: &stop,
            done_ms: &done_ms,
        };
        let worker = scope.spawn(move || work(&watch));
        while !worker.is_finished() {
            if let Some(number) = interrupt.take() {
                signal = Some(number);
                stop.store(true, Ordering::Relaxed);
            }
            progress.update(done_ms.load(Ordering::Relaxed), &words);
            thread::sleep(NAP);
        }
        match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    (done, signal)
}

/// Refuses files that could not be written after all the work; returns the folder for everything,
/// if any.
fn prepare(args: &Args, file: &Path, plan: &Plan) -> Result<Option<Folder>, Error> {
    let folder = args.out.as_deref();
    let folder = folder.map(|folder| Folder::prepare(folder, args.force));
    let folder = folder.transpose()?;
    let ours = folder
        .iter()
        .flat_map(|folder| [PAGE, LINES].map(|name| folder.file(name)));
    let ours: Vec<PathBuf> = ours.collect();
    let named = [&args.pcap, &args.wire_pcap].map(Option::as_deref);
    let named = named.into_iter().chain([args.json.path()]).flatten();
    if named.clone().filter(|path| is_stdout(path)).count() > 1 {
        return Err(Error::input(
            "standard output takes one capture, or the results: name files for the others",
        ));
    }
    let outputs: Vec<&Path> = named
        .filter(|path| !is_stream(path))
        .chain(ours.iter().map(PathBuf::as_path))
        .collect();
    let data = plan.files.iter().map(PathBuf::as_path);
    let inputs: Vec<&Path> = std::iter::once(file).chain(data).collect();
    targets::check(&outputs, &inputs, args.force)?;
    Ok(folder)
}

/// The table, or JSON lines.
fn show(args: &Args, plan: &Plan, results: &[RunResult]) -> Result<(), Error> {
    match args.json.is_on() {
        true => output::text(&report::json_lines(plan, results)),
        false => {
            if let Some(path) = args.json.file() {
                targets::write(
                    path,
                    report::json_lines(plan, results).as_bytes(),
                    args.force,
                )?;
            }
            let captures = [&args.pcap, &args.wire_pcap];
            let has_capture = captures.into_iter().flatten().any(|path| is_stdout(path));
            let out = if has_capture {
                Out::Stderr
            } else {
                Out::Stdout
            };
            table::print(plan, results, out)
        }
    }
}

/// Everything that a folder gets.
fn write_folder(
    folder: &Folder,
    plan: &Plan,
    results: &[RunResult],
    provenance: &Provenance,
    force: bool,
) -> Result<(), Error> {
    let lines = report::json_lines(plan, results);
    let lines = format!("{}\n{lines}", provenance.line(plan));
    targets::write(&folder.file(LINES), lines.as_bytes(), force)?;
    folder.write_plots(report::plots(plan, results))?;
    let page = report::page(plan, results, provenance);
    targets::write(&folder.file(PAGE), page.as_bytes(), force)
}

/// How the command ends: well, or with what went wrong.
fn verdict(plan: &Plan, results: &[RunResult], signal: Option<i32>) -> Result<(), Error> {
    let whole = results.iter().filter(|run| run.complete).count();
    if let Some(signal) = signal {
        return Err(Error::Stopped(
            signal,
            format!("interrupted: {whole} of {} runs are complete", plan.runs()),
        ));
    }
    let troubles: Vec<(u64, String)> = results
        .iter()
        .filter_map(|run| Some((run.seed, run.trouble()?)))
        .collect();
    match &troubles[..] {
        [] => Ok(()),
        [(_, why)] if plan.runs() == 1 => Err(Error::failed(why)),
        [(seed, why), ..] => Err(Error::failed(format!(
            "{} of {} runs failed, the first with seed {seed} (alone: {}): {why}",
            troubles.len(),
            plan.runs(),
            plan.repeats(*seed)
        ))),
    }
}

fn duration(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    seconds
        .filter(|seconds| (0.1..=1e6).contains(seconds))
        .ok_or_else(|| "it must be a number of seconds from 0.1 to 1000000".to_owned())
}

/// How late the end, or a signal, may be noticed.
const NAP: Duration = Duration::from_millis(10);

const PAGE: &str = "report.html";
const LINES: &str = "results.jsonl";

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use motet_lab::scenario::{Overrides, Watch};

    use super::*;

    #[test]
    fn a_failure_names_what_repeats_it() {
        let text = "seed = 4\nseeds = 3\nduration_s = 1\nwarmup_s = 0\n[topology]\nfloor = 6\nfloor_hops = 1\n\
                    [[flow]]\nfrom = 1\n";
        let plan = Plan::parse(text, Path::new("a.toml"), Overrides::default()).unwrap();
        let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        let watch = Watch {
            stop: &stop,
            done_ms: &done_ms,
        };
        let mut results = plan.run(&watch, Captures::default());
        results[1].failure = Some("it broke".to_owned());
        let Err(Error::Failed(sentence)) = verdict(&plan, &results, None) else {
            panic!("a failure")
        };
        assert_eq!(
            sentence,
            "1 of 3 runs failed, the first with seed 5 (alone: --seed 5 --seeds 1 --layout-seed 4): \
             it broke"
        );
    }
}
