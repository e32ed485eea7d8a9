//! `motet soak`: randomized fault runs, each judged, each replayable from its seed.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use clap::Args as ClapArgs;
use motet_lab::{
    scenario::Watch,
    soak::{self, Failure, Report, Run},
};
use serde_json::{Value, json};

use crate::{
    error::Error,
    grid::{Cell, Grid, Head},
    interrupt::Interrupt,
    json::Json,
    number::{SEEDS, whole},
    output::{self, BAD, BOLD, DIM, GOOD, Out},
    progress::Progress,
    provenance,
};

/// Put the stack under random faults, and judge every run
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Each run draws topology, settings, applications and faults from its seed; runs have the seeds \
S, S+1, S+2 … until their times add up to N. Bytes must arrive in order, once and equal, no \
connection may wait without a timer, counters must add up, tables must be empty again in the \
end. A run that fails prints the command that replays it alone.

Examples:
  motet soak
  motet soak --seconds 1000000 --seed 1
  motet soak --json | jq '.transitions[] | select(.seen == 0)'")]
pub(crate) struct Args {
    /// Simulated time of all runs together, seconds
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 50_000, value_parser = whole::<u64>(1..=1_000_000_000))]
    seconds: u64,

    /// Seed of the first run
    #[arg(long, value_name = "S", allow_negative_numbers = true, default_value_t = 1, value_parser = whole::<u64>(SEEDS))]
    seed: u64,

    #[command(flatten)]
    json: Json,

    /// Print Markdown with revision, date and command
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Does all runs, and prints what they saw.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let runs = soak::plan(args.seed, args.seconds as f64);
    let interrupt = Interrupt::install()?;
    let (report, signal) = run_watched(&runs, &interrupt);
    if args.json.is_on() {
        output::json(&summary(args, &runs, &report))?;
    } else if args.markdown {
        print_markdown(args, &runs, &report)?;
    } else {
        print(args, &runs, &report)?;
    }
    if let Some(signal) = signal {
        return Err(Error::Stopped(
            signal,
            format!(
                "interrupted: {} of {} runs are complete",
                report.runs,
                runs.len()
            ),
        ));
    }
    match &report.failures[..] {
        [] => Ok(()),
        [first, ..] => Err(Error::failed(format!(
            "{} of {} runs failed, replay the first with: {}",
            report.failures.len(),
            report.runs,
            replay(first)
        ))),
    }
}

/// Does the runs in a thread of their own, while this thread looks for signals and shows the
/// progress; also returns the signal that cut the runs short.
fn run_watched(runs: &[Run], interrupt: &Interrupt) -> (Report, Option<i32>) {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let total_ms = runs.iter().map(|run| run.span.as_millis()).sum();
    let mut progress = Progress::percentage(total_ms, true);
    let mut signal = None;
    let report = thread::scope(|scope| {
        let watch = Watch {
            stop: &stop,
            done_ms: &done_ms,
        };
        let worker = scope.spawn(move || soak::run(runs, &watch));
        while !worker.is_finished() {
            if let Some(number) = interrupt.take() {
                signal = Some(number);
                stop.store(true, Ordering::Relaxed);
            }
            progress.update(done_ms.load(Ordering::Relaxed), || {
                format!("{} runs", runs.len())
            });
            thread::sleep(NAP);
        }
        match worker.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    (report, signal)
}

/// The command that runs one failed run again, and nothing else.
fn replay(failure: &Failure) -> String {
    format!("motet soak --seed {} --seconds 1", failure.seed)
}

/// The result as JSON, for programs.
fn summary(args: &Args, runs: &[Run], report: &Report) -> Value {
    let failures = report.failures.iter().map(
        |failure| json!({ "seed": failure.seed, "what": failure.what, "replay": replay(failure) }),
    );
    let transitions = report.coverage.transitions().map(|(transition, seen)| {
        json!({
            "from": name(transition.from), "to": name(transition.to),
            "event": transition.event, "seen": seen, "absent": transition.absent,
        })
    });
    let ends = report.coverage.errors();
    let ends = ends.map(|(end, seen)| json!({ "end": end, "seen": seen }));
    let counts = counts(report);
    let counts = counts
        .iter()
        .map(|(what, count)| ((*what).to_owned(), json!(count)));
    json!({
        "seed": args.seed,
        "runs": report.runs,
        "runs_of_networks": report.tally.networks,
        "runs_all_on": report.tally.all_on,
        "complete": report.runs == runs.len() as u64,
        "seconds": report.seconds,
        "failures": failures.collect::<Vec<_>>(),
        "transitions": transitions.collect::<Vec<_>>(),
        "ends": ends.collect::<Vec<_>>(),
        "counts": counts.collect::<serde_json::Map<_, _>>(),
    })
}

/// The result as text, for people.
fn print(args: &Args, runs: &[Run], report: &Report) -> Result<(), Error> {
    let complete = report.runs == runs.len() as u64;
    let mark = if complete { "" } else { ", INCOMPLETE" };
    output::line(format_args!(
        "{BOLD}{} {}{BOLD:#}, seeds {} to {}, {:.0} simulated s{mark}",
        report.runs,
        if report.runs == 1 { "run" } else { "runs" },
        args.seed,
        args.seed + (runs.len() as u64).saturating_sub(1),
        report.seconds,
    ))?;
    let mut table = Grid::new(vec![Head::fixed("").words(), Head::fixed("")]);
    for (what, count) in counts(report) {
        table.push([Cell::styled(what, DIM), count.to_string().into()]);
    }
    table.print(Out::Stdout)?;
    let (legal, seen) = (
        soak::TRANSITIONS
            .iter()
            .filter(|t| t.absent.is_none())
            .count(),
        report
            .coverage
            .transitions()
            .filter(|(_, seen)| *seen > 0)
            .count(),
    );
    output::line(format_args!(
        "{BOLD}{seen} of {legal} transitions of TCP{BOLD:#} (RFC 9293, figure 5)"
    ))?;
    let heads = ["from", "to"].map(|text| Head::fixed(text).words());
    let rest = [Head::fixed("seen"), Head::fixed("event").prose()];
    let mut table = Grid::new(heads.into_iter().chain(rest).collect());
    for (transition, seen) in report.coverage.transitions() {
        let ends = [name(transition.from), name(transition.to)];
        let event = transition.event;
        let (seen, event) = match transition.absent {
            Some(why) => (Cell::styled("none", DIM), format!("{event}: {why}")),
            None if seen == 0 => (Cell::styled("not seen", BAD), event.to_owned()),
            None => (seen.to_string().into(), event.to_owned()),
        };
        let ends = ends.map(Cell::from);
        table.push(ends.into_iter().chain([seen, event.into()]));
    }
    table.print(Out::Stdout)?;
    output::line(format_args!("{BOLD}connections that ended early{BOLD:#}"))?;
    let mut table = Grid::new(vec![Head::fixed("").words(), Head::fixed("")]);
    for (end, seen) in report.coverage.errors() {
        table.push([Cell::styled(end, DIM), seen.to_string().into()]);
    }
    table.print(Out::Stdout)?;
    for failure in report.failures.iter().take(FAILURES_SHOWN) {
        let Failure { seed, what } = failure;
        output::line(format_args!("{BAD}seed {seed}{BAD:#}: {what}"))?;
        output::line(format_args!("  {}", replay(failure)))?;
    }
    match &report.failures[..] {
        [] if complete => output::line(format_args!("{GOOD}clean{GOOD:#}")),
        _ => Ok(()),
    }
}

/// Prints the report as Markdown, for a page of measurements.
fn print_markdown(args: &Args, runs: &[Run], report: &Report) -> Result<(), Error> {
    let Args { seconds, seed, .. } = args;
    let command = format!("motet soak --seconds {seconds} --seed {seed} --markdown");
    let failed = report.failures.len();
    let verdict = match (failed, report.runs == runs.len() as u64) {
        (0, true) => "Every run is clean.".to_owned(),
        (0, false) => format!("**Incomplete**: {} runs were planned.", runs.len()),
        _ => format!("**{failed} runs failed.**"),
    };
    output::line(format_args!(
        "{}\n{} runs, {:.0} simulated s. {verdict}\n\n| what | count |\n|---|---:|",
        provenance::heading("Soak", &command),
        report.runs,
        report.seconds
    ))?;
    for (what, count) in counts(report) {
        output::line(format_args!("| {what} | {count} |"))?;
    }
    output::line(
        "\n## Transitions of TCP (RFC 9293, figure 5)\n\n\
         | from | to | event | seen |\n|---|---|---|---:|",
    )?;
    for (transition, seen) in report.coverage.transitions() {
        let (from, to) = (name(transition.from), name(transition.to));
        let event = provenance::cell(transition.event);
        let seen = match (transition.absent, seen) {
            (Some(why), _) => format!("none: {}", provenance::cell(why)),
            (None, 0) => "**not seen**".to_owned(),
            (None, seen) => seen.to_string(),
        };
        output::line(format_args!("| {from} | {to} | {event} | {seen} |"))?;
    }
    output::line("\n## Connections that ended early\n\n| end | count |\n|---|---:|")?;
    for (end, seen) in report.coverage.errors() {
        output::line(format_args!("| {} | {seen} |", provenance::cell(end)))?;
    }
    if failed > 0 {
        output::line("\n## Failures\n\n| replay | what |\n|---|---|")?;
    }
    for failure in report.failures.iter().take(FAILURES_SHOWN) {
        let what = provenance::cell(&failure.what);
        output::line(format_args!("| `{}` | {what} |", replay(failure)))?;
    }
    Ok(())
}

/// The counts of a soak's events, by name.
fn counts(report: &Report) -> Vec<(&'static str, u64)> {
    let (tally, sessions) = (&report.tally, &report.sessions);
    let (sleep, seals, outsiders) = (&tally.sleep, &tally.seals, &tally.outsiders);
    vec![
        ("runs of networks", tally.networks),
        ("runs with everything on", tally.all_on),
        ("connections, both ends", sessions.sessions),
        ("read to their end", sessions.finished),
        ("gone with their node", sessions.died),
        ("bytes compared", sessions.bytes),
        ("segments", tally.segments),
        ("frames on the air", tally.frames),
        ("packets lost", tally.faults.lost),
        ("packets duplicated", tally.faults.duplicated),
        ("packets delayed", tally.faults.delayed),
        ("packets corrupted", tally.faults.corrupted),
        ("reboots", tally.reboots),
        ("long sleeps", tally.leaps),
        ("ICMPv6 errors", tally.icmp_errors),
        ("wraps of sequence numbers", tally.wraps.sequence),
        ("wraps of timestamps", tally.wraps.timestamp),
        ("wraps of the clock", tally.wraps.clock),
        ("wraps of datagram tags", tally.wraps.tag),
        ("data requests of motes that sleep", sleep.polls),
        ("data requests that failed", sleep.failed),
        ("promises that were not kept", sleep.unanswered),
        (
            "data requests that parents heard, forged ones too",
            sleep.requests,
        ),
        (
            "data requests of strangers without a place",
            sleep.strangers,
        ),
        ("packets kept for motes that sleep", sleep.kept),
        ("of these delivered", sleep.delivered),
        ("of these dropped", sleep.dropped),
        ("frames sealed", seals.sealed),
        ("frames opened", seals.opened),
        ("forged frames refused", seals.forged),
        ("recorded frames refused", seals.replayed),
        ("frames of unproven neighbours", seals.unproven),
        ("frames beyond the strangers' share", seals.rationed),
        ("neighbours that proved themselves", seals.proven),
        ("link keys taken", seals.rotations),
        ("runs with outsiders", outsiders.runs),
        ("frames of attackers", outsiders.frames),
        ("packets of strangers", outsiders.packets),
        ("packets with forged sources refused", outsiders.forged),
        (
            "meshes that formed when attackers had gone",
            outsiders.kept_out,
        ),
        ("children switched off under a flood", outsiders.dead),
        ("motes of the densest floor", outsiders.densest),
        ("events", tally.events),
    ]
}

/// A state as RFC 9293 writes it.
fn name(state: motet::tcp::State) -> &'static str {
    use motet::tcp::State;
    match state {
        State::Closed => "CLOSED",
        State::Listen => "LISTEN",
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
    }
}

/// How late the end, or a signal, may be noticed.
const NAP: Duration = Duration::from_millis(10);

/// Failures that the table shows; JSON has all.
const FAILURES_SHOWN: usize = 10;
