//! `motet plan`: how long an update of an unmodified device will take, by runs of the lab.

mod estimate;
mod size;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use clap::Args as ClapArgs;
use motet_lab::experiments::update::unmodified::Unmodified;

use self::{
    estimate::{Answer, Setting, Trials},
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

The range is the mean of the runs with three times their deviation to either side, 5 % at least. It holds for the \
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

/// Runs all trials in a thread of its own, while this one looks for signals.
fn run_watched(settings: &[Setting]) -> Result<Vec<Trials>, Error> {
    let interrupt = Interrupt::install()?;
    let stop = AtomicBool::new(false);
    let done = std::sync::atomic::AtomicU64::new(0);
    let total = settings.iter().map(|setting| setting.runs).sum();
    let mut progress = Progress::percentage(total, true);
    let trials = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let each = settings.iter().map(|setting| setting.run(&stop, &done));
            each.collect::<Vec<Trials>>()
        });
        while !worker.is_finished() {
            if interrupt.has_come() {
                stop.store(true, Ordering::Relaxed);
            }
            progress.update(done.load(Ordering::Relaxed), || format!("{total} runs"));
            thread::sleep(NAP);
        }
        match worker.join() {
            Ok(trials) => trials,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    drop(progress);
    interrupt.check()?;
    Ok(trials)
}

fn show(answer: &Answer) -> Result<(), Error> {
    let [low, high] = answer.seconds;
    output::line(format_args!(
        "{BOLD}{low:.0} to {high:.0} s{BOLD:#} for {} bytes, in {} runs of the lab",
        answer.image, answer.runs
    ))?;
    let longest = answer.block_longest_s;
    let limit = answer.timeout_s;
    output::line(match answer.may_time_out {
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
        output::line(format_args!(
            "{DIM}{:<28}{DIM:#} {:>6.0} s  {:>4.0} %",
            tried.setting,
            tried.seconds,
            100.0 * tried.of_now
        ))?;
    }
    output::line(match &answer.best {
        Some(best) => format!("what helps most: {best}"),
        None => "none of these settings helps by 2 % or more".to_owned(),
    })
}

/// Reads a fraction, and gives it in hundredths.
fn loss(text: &str) -> Result<u64, String> {
    let fraction = text.parse::<f64>().ok();
    let fraction = fraction.filter(|fraction| (0.0..=0.3).contains(fraction));
    let hundredths = fraction.map(|fraction| (fraction * 100.0).round() as u64);
    hundredths.ok_or_else(|| "it must be a fraction from 0 to 0.3, such as 0.03 for 3 %".to_owned())
}

const NAP: Duration = Duration::from_millis(50);
