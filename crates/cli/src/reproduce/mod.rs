//! `motet reproduce`: the published experiments, this stack, beside the papers' figures.
//!
//! ```text
//! lab::experiments -> rows -> table or Markdown (people), JSON lines (programs), plots, a page
//! ```
//!
//! Left out: the experiments themselves, which the lab defines.

mod files;
mod json;
mod markdown;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use motet_lab::experiments::{self, Budget, Effort, Experiment, Report, Unfinished, Watch};

use self::files::Target;
use crate::error::Error;
use crate::grid::{Cell, Grid, Head};
use crate::interrupt::Interrupt;
use crate::json::JsonLines;
use crate::number::whole;
use crate::output::{self, BOLD, Out};

/// Run the published experiments with this stack and hold them against the papers.
///
/// Each row shows a measured value beside the published one and what the radio's own times allow.
/// A criterion is met when the whole 95 % interval meets it on each of two disjoint sets of
/// seeds. A criterion that is not met is shown as a miss; the exit status is 1 only when a run
/// itself failed. Rows marked as fit are those on which a constant of the air was fitted. An
/// identity follows from other rows; a repeat is judged elsewhere. A command that is cut short
/// keeps the rows of the experiments that are over, marked incomplete.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet reproduce --list\n  \
                        motet reproduce tcplp-hops\n  \
                        motet reproduce --full --out results")]
pub(crate) struct Args {
    /// Experiments by ID, in capitals or not; all of them if none is named.
    #[arg(value_name = "ID", value_parser = Ids, hide_possible_values = true)]
    ids: Vec<String>,

    /// Print the IDs and what they show.
    #[arg(long)]
    list: bool,

    /// A minute at most for each experiment, five for those of fairness and of the pace (the
    /// default).
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// As many and as long runs as the criteria need.
    #[arg(long)]
    full: bool,

    /// The first seed; the others of both sets follow it.
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = whole::<u64>(0..=u64::MAX))]
    seed: u64,

    /// Write plots (SVG), report.html and results.jsonl to this folder; the first line of
    /// results.jsonl says command, date and revision, the others are rows.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    json: JsonLines,

    /// Print Markdown with revision, date and command instead of the table.
    #[arg(long)]
    markdown: bool,

    /// Overwrite files that exist.
    #[arg(long)]
    force: bool,
}

/// Takes any word, and names the IDs to shells, which complete them. What is none is refused
/// later, with the nearest one.
#[derive(Clone, Copy, Debug)]
struct Ids;

impl clap::builder::TypedValueParser for Ids {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        clap::builder::StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = clap::builder::PossibleValue>>> {
        let ids = experiments::all()
            .into_iter()
            .map(|experiment| experiment.id);
        Some(Box::new(ids.map(clap::builder::PossibleValue::new)))
    }
}

/// An experiment with its outcome.
pub(crate) struct Done {
    experiment: Experiment,
    report: Report,
}

/// Lists or runs experiments.
///
/// # Errors
/// [`Error::Input`] for an unknown ID or a file in the way, [`Error::Failed`] when a run
/// failed; then the other experiments' rows are printed nevertheless.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let args = &settled(args)?;
    if args.list {
        return list(&args.ids, args.json.is_on());
    }
    let chosen = choose(&args.ids)?;
    let target = Target::prepare(args)?;
    let effort = if args.full {
        Effort::Full
    } else {
        Effort::Quick
    };
    let (mut done, mut failures) = (Vec::new(), Vec::new());
    // The rows are kept even when the reader of the table goes away.
    let mut shown = target.open(args);
    let progress = Progress::new(&chosen, effort, Interrupt::install()?);
    for experiment in &chosen {
        match progress.during(experiment, experiment.budget(effort), args.seed) {
            Ok(report) => {
                let experiment = *experiment;
                let this = Done { experiment, report };
                // Without the bar, which is drawn again below what is printed.
                shown = progress.bar.suspend(|| target.show(&this, args.seed));
                done.push(this);
                if shown.is_err() {
                    break;
                }
            }
            Err(Unfinished::Void(void)) => failures.push(void.to_string()),
            Err(Unfinished::Stopped) => break,
        }
    }
    progress.finish();
    let missing: Vec<&str> = chosen
        .iter()
        .map(|experiment| experiment.id)
        .filter(|id| done.iter().all(|done| done.experiment.id != *id))
        .collect();
    target.close(
        args,
        &done,
        &missing,
        progress.started.elapsed().as_secs_f64(),
    )?;
    shown?;
    match progress.interrupt.take() {
        Some(signal) if !missing.is_empty() => {
            let (done, all) = (done.len(), chosen.len());
            let cut = format!("interrupted: {done} of {all} experiments are complete");
            // The sentence keeps the failures so far: they matter more than what was not reached.
            failures.insert(0, cut);
            Err(Error::Stopped(signal, failures.join("; ")))
        }
        _ if failures.is_empty() => Ok(()),
        _ => Err(Error::failed(format!(
            "{}; repeat it with the same seed, and report it",
            failures.join("; ")
        ))),
    }
}

/// The arguments, with an ID behind `--json` among the IDs.
///
/// # Errors
/// [`Error::Input`] where the word is nearly an ID: as the name of a file it would let all
/// experiments run.
fn settled(args: &Args) -> Result<Args, Error> {
    let mut args = args.clone();
    let all = experiments::all();
    let is_id = |word: &Path| names(&all).any(|id| is_same(&word.to_string_lossy(), id));
    let given_back = args.json.give_back(is_id);
    args.ids.splice(
        0..0,
        given_back.map(|word| word.to_string_lossy().into_owned()),
    );
    let word = args.json.file().and_then(Path::to_str);
    let word = word.filter(|word| !word.contains(['.', '/']));
    let is_near = |word: &&str| names(&all).any(|id| strsim::jaro_winkler(word, id) >= ALIKE);
    let refused = word.filter(is_near).map(|word| unknown(word, &all));
    refused.map_or(Ok(args), Err)
}

/// The command without where its rows go.
fn command(args: &Args) -> String {
    let mut command = "motet reproduce".to_owned();
    for id in &args.ids {
        command = format!("{command} {}", id.to_ascii_lowercase());
    }
    if args.full {
        command += " --full";
    }
    if args.seed != 1 {
        command = format!("{command} --seed {}", args.seed);
    }
    command
}

/// Prints the experiments of these IDs, or all of them.
fn list(ids: &[String], as_json: bool) -> Result<(), Error> {
    let all = experiments::all();
    if let Some(id) = ids
        .iter()
        .find(|id| !names(&all).any(|name| is_same(id, name)))
    {
        return Err(unknown(id, &all));
    }
    let mut grid = Grid::new(vec![Head::fixed("").words(), Head::fixed("").prose()]);
    let is_asked = |id: &str| ids.is_empty() || ids.iter().any(|asked| is_same(asked, id));
    for Experiment { id, title, .. } in all.iter().filter(|all| is_asked(all.id)) {
        if as_json {
            output::json(&serde_json::json!({ "experiment": id, "title": title }))?;
            continue;
        }
        grid.push([Cell::styled(*id, BOLD), Cell::from(*title)]);
    }
    match as_json {
        true => Ok(()),
        false => grid.print(Out::Stdout).map(drop),
    }
}

/// The IDs of all experiments.
fn names(all: &[Experiment]) -> impl Iterator<Item = &'static str> {
    all.iter().map(|experiment| experiment.id)
}

/// The experiments of these IDs, in the order given.
fn choose(ids: &[String]) -> Result<Vec<Experiment>, Error> {
    let all = experiments::all();
    if ids.is_empty() {
        return Ok(all);
    }
    let mut chosen: Vec<Experiment> = Vec::new();
    for id in ids {
        let Some(found) = all.iter().find(|experiment| is_same(id, experiment.id)) else {
            return Err(unknown(id, &all));
        };
        if chosen.iter().all(|experiment| experiment.id != found.id) {
            chosen.push(*found);
        }
    }
    Ok(chosen)
}

/// Whether `asked` means the ID `id`: papers write acronyms in capitals.
fn is_same(asked: &str, id: &str) -> bool {
    asked.eq_ignore_ascii_case(id)
}

/// How alike a word and an ID are, from 0 to 1, where the ID was meant.
const ALIKE: f64 = 0.93;

fn unknown(id: &str, all: &[Experiment]) -> Error {
    let asked = id.to_ascii_lowercase();
    let nearest = names(all)
        .map(|name| (strsim::jaro_winkler(&asked, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = nearest.map_or("", |(_, id)| id);
    Error::input(format!(
        "there is no experiment {id}; the nearest name is {nearest}, and --list shows all"
    ))
}

/// Runs that are over, as a bar on a terminal.
struct Progress {
    started: Instant,
    done: AtomicU64,
    bar: indicatif::ProgressBar,
    interrupt: Interrupt,
}

/// The bar while one experiment runs.
struct During<'a> {
    progress: &'a Progress,
    id: &'static str,
}

impl Watch for During<'_> {
    fn on_run(&self) {
        let Progress {
            started, done, bar, ..
        } = self.progress;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        // Within two seconds no user starts to wonder.
        if started.elapsed().as_secs() >= 2 {
            bar.set_position(done);
            bar.set_message(self.id);
        }
    }

    fn stops(&self) -> bool {
        self.progress.interrupt.check().is_err()
    }
}

impl Progress {
    fn new(chosen: &[Experiment], effort: Effort, interrupt: Interrupt) -> Self {
        let runs = chosen
            .iter()
            .map(|experiment| experiment.runs(effort))
            .sum();
        let target = indicatif::ProgressDrawTarget::stderr_with_hz(5);
        let bar = indicatif::ProgressBar::with_draw_target(Some(runs), target);
        if let Some(style) = crate::progress::style(crate::progress::RUNS) {
            bar.set_style(style);
        }
        Self {
            started: Instant::now(),
            done: AtomicU64::new(0),
            bar,
            interrupt,
        }
    }

    /// Runs one experiment.
    fn during(
        &self,
        experiment: &Experiment,
        budget: Budget,
        seed: u64,
    ) -> Result<Report, Unfinished> {
        let (progress, id) = (self, experiment.id);
        experiment.run(budget, seed, &During { progress, id })
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
