//! `motet plan`: how long an update of an unmodified device will take, by runs of the lab.

mod estimate;
mod size;

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use clap::Args as ClapArgs;
use motet_lab::experiments::update::unmodified::Unmodified;

use self::{
    estimate::{Answer, RUNS, Setting, Trials, Tried},
    size::{bytes, period},
};
use crate::{
    error::Error,
    interrupt::Interrupt,
    number::whole,
    output::{self, BOLD, DIM},
    progress::Progress,
};

/// Say how long an update of a device with plain TCP will take, and which setting helps most
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The sender is as ESPHome's: it sends a block over plain TCP, waits for one byte, and gives up after 90 s. The device \
has lwIP with ESP-IDF's settings, the radio of an nRF52840, and is so many hops from a border router like \
OpenThread's. The command runs parts of such an update in the lab, with several seeds, and then each setting that \
may help: the border router's policy relay, shorter polls, longer blocks, and no readings meanwhile.

The range is the mean of the runs with three times their deviation to either side, 5 % at least; a run \
is counted apart where its connection broke, or where a block took longer than the sender waits. Behind each setting's part of the time stands how far it may be off by chance; one \
that may help by chance alone is not called the best. The range holds for the \
lab's air, where neighbours hear each other well; walls that let little pass, and other systems on the channel, \
are what --frame-loss is for.

Examples:
  motet plan --image 900k --hops 3
  motet plan --image 900k --hops 2 --poll 1s --readers 0
  motet plan --image 900k --hops 3 --scenario > update.toml
  motet run update.toml")]
pub(crate) struct Args {
    /// Bytes of the image: 900k has 1,000 in a k, 900Ki 1,024
    #[arg(long, value_name = "SIZE", value_parser = |text: &str| bytes(text, 1_000..=16_000_000))]
    image: u64,

    /// Radio hops from the border router to the device, 1 to 8
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>(1..=8))]
    hops: usize,

    /// How often the device asks its parent for packets, 50ms to 10s; without it is awake
    #[arg(long, value_name = "TIME", value_parser = period)]
    poll: Option<f64>,

    /// Bytes that the sender sends before it waits for an answer; ESPHome has 8Ki
    #[arg(long, value_name = "SIZE", default_value = "8Ki", value_parser = |text: &str| bytes(text, 12..=60_000))]
    blocks: u64,

    /// Other motes that send 64 bytes every ten seconds meanwhile
    #[arg(long, value_name = "N", default_value_t = 12, allow_negative_numbers = true, value_parser = whole::<usize>(0..=100))]
    readers: usize,

    /// Part of the frames that are lost on the air, besides those that collide: in hundredths, at
    /// most 0.3
    #[arg(long, value_name = "FRACTION", default_value = "0.03", value_parser = loss)]
    frame_loss: u64,

    /// Print the scenario of these runs for motet run, and run nothing
    #[arg(long, conflicts_with = "json")]
    scenario: bool,

    /// Print one object for programs
    #[arg(long)]
    json: bool,
}

/// Runs the plan and prints it.
///
/// # Errors
/// A signal, a scenario that cannot be run, or standard output that cannot be written to.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let base = Unmodified {
        block_bytes: args.blocks,
        readers: args.readers,
        poll_s: args.poll,
        frame_loss: args.frame_loss,
        // So that an awake one is compared in the same mesh.
        is_leaf: args.poll.is_some(),
        ..Unmodified::new(args.hops)
    };
    if args.scenario {
        return output::text(&base.document(estimate::SECONDS));
    }
    let settings = Setting::all(&base);
    let trials = run_watched(&settings)?;
    let answer = Answer::of(args.image, &base, &settings, &trials)?;
    match args.json {
        true => output::json(&answer),
        false => show(&answer),
    }
}

/// Runs all trials, in as many threads as there are processors, while this one looks for signals.
fn run_watched(settings: &[Setting]) -> Result<Vec<Trials>, Error> {
    let interrupt = Interrupt::install()?;
    let stop = AtomicBool::new(false);
    let [begun, done] = [(); 2].map(|()| AtomicUsize::new(0));
    let total = settings.len() * RUNS as usize;
    let mut progress = Progress::percentage(total as u64, true);
    // Which setting, by which seed.
    let trial = |place: usize| {
        let seed = place as u64 % RUNS + 1;
        let setting = settings.get(place / RUNS as usize)?;
        Some((place, setting.run(seed, &stop)))
    };
    let work = || {
        let mut own = Vec::new();
        while !stop.load(Ordering::Relaxed)
            && let Some(trial) = trial(begun.fetch_add(1, Ordering::Relaxed))
        {
            own.push(trial);
            done.fetch_add(1, Ordering::Relaxed);
        }
        own
    };
    let mut all = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            if interrupt.has_come() {
                stop.store(true, Ordering::Relaxed);
            }
            progress.update(done.load(Ordering::Relaxed) as u64, || {
                format!("{total} runs")
            });
            thread::sleep(NAP);
        }
        let joined = workers.into_iter().flat_map(|worker| match worker.join() {
            Ok(trials) => trials,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Vec<_>>()
    });
    drop(progress);
    interrupt.check()?;
    all.sort_by_key(|(place, _)| *place);
    let all: Vec<_> = all.into_iter().map(|(_, trial)| trial).collect();
    Ok(all.chunks(RUNS as usize).map(<[_]>::to_vec).collect())
}

fn show(answer: &Answer) -> Result<(), Error> {
    let whole = answer.runs - answer.broken;
    output::line(match answer.seconds {
        Some([low, high]) => {
            let digits = usize::from(high < 20.0);
            format!(
                "{BOLD}{low:.digits$} to {high:.digits$} s{BOLD:#} for {} bytes, by {whole} runs of the lab",
                answer.image
            )
        }
        None => format!(
            "{BOLD}as things are the update hardly gets through{BOLD:#}: {whole} of {} runs did",
            answer.runs
        ),
    })?;
    if answer.broken > 0 {
        output::line(format_args!(
            "{} of {} runs of {} s broke, and are in no range: the update may have to begin anew",
            answer.broken,
            answer.runs,
            estimate::SECONDS
        ))?;
    }
    let longest = answer.block_longest_s;
    let limit = answer.timeout_s;
    output::line(match longest >= limit {
        true => format!(
            "a block may pass the sender's {limit:.0} s: the longest took {longest:.1} s, and a transfer that it \
             ends begins anew"
        ),
        false => format!("the longest block took {longest:.1} s, of the sender's {limit:.0} s"),
    })?;
    if let Some(cost) = answer.poll_costs_s {
        output::line(format_args!(
            "the poll period costs {cost:.0} s: an awake device would take {:.0} s",
            answer.awake_s.unwrap_or_default()
        ))?;
    }
    for tried in &answer.tried {
        show_tried(tried, answer.runs)?;
    }
    let as_good = match answer.as_good.is_empty() {
        true => String::new(),
        false => format!(" ({} may help as much)", answer.as_good.join(", ")),
    };
    output::line(match &answer.best {
        Some(best) => format!("what helps most: {best}{as_good}"),
        None => "none of these settings helps by 2 % or more, beyond chance".to_owned(),
    })
}

fn show_tried(tried: &Tried, runs: u64) -> Result<(), Error> {
    let name = &tried.setting;
    let Some(seconds) = tried.seconds else {
        let why = tried.why.as_deref().unwrap_or_default();
        return output::line(format_args!("{DIM}{name:<28}{DIM:#} {why}"));
    };
    let broken = match tried.broken {
        0 => String::new(),
        broken => format!(", {broken} of {runs} runs broke"),
    };
    let part = match tried.of_now.zip(tried.chance) {
        Some((part, chance)) => format!("  {:>4.0} % ± {:.0}", 100.0 * part, 100.0 * chance),
        None => ", too few runs to compare".to_owned(),
    };
    output::line(format_args!(
        "{DIM}{name:<28}{DIM:#} {seconds:>6.0} s{part}{broken}"
    ))
}

/// Reads a fraction, and gives it in hundredths.
fn loss(text: &str) -> Result<u64, String> {
    let fraction = text.parse::<f64>().ok();
    let fraction = fraction.filter(|fraction| (0.0..=0.3).contains(fraction));
    let hundredths = fraction.map(|fraction| (fraction * 100.0).round() as u64);
    hundredths.ok_or_else(|| "it must be a fraction from 0 to 0.3, such as 0.03 for 3 %".to_owned())
}

const NAP: Duration = Duration::from_millis(50);
