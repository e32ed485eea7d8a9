//! Soak: random faults against the stack, run after run, each judged, each replayable.
//!
//! Purpose: finds faults that no test was written for. A run draws everything from its seed:
//! topology, settings, applications, faults; it is judged by what must hold whatever happens (bytes
//! in order, once, equal; nothing outstanding without a timer; counters that add up; tables that
//! are empty again in the end), so no expected result has to be written down.
//! Data flow: [`plan`] gives the runs of a range of seeds; [`run`] runs each on any core;
//! [`Report`] adds up their tallies, in the order of seeds.
//! Left out: goodput. `experiments` judges that.

mod content;
mod coverage;
mod dice;
mod everything;
mod frames;
mod lab;
mod lender;
mod mesh;
mod monitor;
mod outsiders;
mod parts;
mod pipe;
mod rest;
mod routing;
mod seals;
mod session;
mod settings;
mod thread;
mod trouble;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use motet::time::Duration;

use crate::net::faults::FaultTally;
use crate::parallel;
use crate::scenario::Watch;
use dice::Dice;

pub use coverage::{Coverage, TRANSITIONS, Transition};
pub use frames::SleepTally;
pub use monitor::Wraps;
pub use outsiders::OutsiderTally;
pub use seals::SealTally;
pub use session::Tally;

/// One run, before it is run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// The seed, from which everything in the run follows.
    pub seed: u64,
    /// The part of the stack under test.
    pub level: Level,
    /// The simulated time with faults.
    pub span: Duration,
}

/// The part of the stack that a run tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Two TCP engines and a hostile pipe.
    Pipe,
    /// A mesh behind a border router, and hosts beyond it.
    Lab,
    /// A Thread router of the lab's, and its children.
    Thread,
}

/// The report on all runs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Runs that came to their end, failed ones included.
    pub runs: u64,
    /// Simulated time in them, s.
    pub seconds: f64,
    /// Runs that failed, by seed.
    pub failures: Vec<Failure>,
    /// The transitions between TCP's states that were seen.
    pub coverage: Coverage,
    /// The counts of the applications' sessions.
    pub sessions: Tally,
    /// The counts of events in the runs.
    pub tally: RunTally,
}

/// A run that broke an invariant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The seed of the run that failed.
    pub seed: u64,
    /// Which invariant was broken, and how.
    pub what: String,
}

/// How much of everything there was.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RunTally {
    /// Events of the simulation so far.
    pub events: u64,
    /// Segments that engines sent.
    pub segments: u64,
    /// Frames on the air that were for one node, each attempt.
    pub frames: u64,
    /// The fates of packets between the ends.
    pub faults: FaultTally,
    /// Connections that were opened actively.
    pub connects: u64,
    /// Things that befell a run.
    pub troubles: u64,
    /// Reboots of nodes.
    pub reboots: u64,
    /// Times that idle nodes slept for hours or weeks.
    pub leaps: u64,
    /// ICMPv6 errors about segments that were lost.
    pub icmp_errors: u64,
    /// Numbers that went through zero.
    pub wraps: Wraps,
    /// The counters of motes that sleep, and of their parents.
    pub sleep: SleepTally,
    /// The counters of nodes with a key.
    pub seals: SealTally,
    /// Counts of what outsiders have done.
    pub outsiders: OutsiderTally,
    /// Runs of a network.
    pub networks: u64,
    /// How many of these had everything on.
    pub all_on: u64,
    /// Calls in a row at one instant.
    pub(crate) late: u64,
}

/// The report on one run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    failure: Option<String>,
    seconds: f64,
    coverage: Coverage,
    sessions: Tally,
    tally: RunTally,
}

/// The runs from `seed` on whose times with faults add up to `seconds`; at least one.
pub fn plan(seed: u64, seconds: f64) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut sum = 0.0;
    while runs.is_empty() || sum < seconds {
        let run = Run::of(seed.wrapping_add(runs.len() as u64));
        sum += run.span.as_micros() as f64 / 1e6;
        runs.push(run);
    }
    runs
}

/// Runs all on all cores; the result depends on neither their number nor the machine. Runs
/// that `watch` keeps from their end, or from their begin, are not in it.
pub fn run(runs: &[Run], watch: &Watch<'_>) -> Report {
    let seen: Vec<Option<Seen>> = parallel::map(runs.iter().collect(), |run| {
        let seen = (!watch.stops()).then(|| run.go());
        watch
            .done_ms
            .fetch_add(run.span.as_millis(), Ordering::Relaxed);
        seen
    });
    let mut report = Report::default();
    for (run, seen) in runs.iter().zip(&seen) {
        if let Some(seen) = seen {
            report.add(run.seed, seen);
        }
    }
    report
}

impl Run {
    /// The run of this seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 0);
        let span = dice.scale_ms(30_000, 600_000);
        // A network costs a thousand times what a pipe does.
        let level = match dice.range(0, 9) {
            // Of a dice of its own, so that all other runs are what they were without it.
            0 if Dice::new(seed, THREAD).chance(0.1) => Level::Thread,
            0 => Level::Lab,
            _ => Level::Pipe,
        };
        Self { seed, level, span }
    }

    fn go(&self) -> Seen {
        let run = || match self.level {
            Level::Pipe => pipe::run(self.seed, self.span),
            Level::Lab => lab::run(self.seed, self.span),
            Level::Thread => thread::run(self.seed, self.span),
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            let what = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|what| (*what).to_owned()));
            Seen {
                failure: Some(format!("panicked: {}", what.unwrap_or_default())),
                ..Seen::default()
            }
        })
    }
}

/// Keeps the dice that say which networks are of Thread apart from others.
const THREAD: u64 = 19;

impl Report {
    fn add(&mut self, seed: u64, seen: &Seen) {
        self.runs += 1;
        self.seconds += seen.seconds;
        if let Some(what) = &seen.failure {
            self.failures.push(Failure {
                seed,
                what: what.clone(),
            });
        }
        self.coverage.add(&seen.coverage);
        self.sessions.add(&seen.sessions);
        self.tally.add(&seen.tally);
    }
}

impl RunTally {
    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.segments += other.segments;
        self.frames += other.frames;
        self.faults.add(&other.faults);
        self.connects += other.connects;
        self.troubles += other.troubles;
        self.reboots += other.reboots;
        self.leaps += other.leaps;
        self.icmp_errors += other.icmp_errors;
        self.wraps.add(&other.wraps);
        self.sleep.add(&other.sleep);
        self.seals.add(&other.seals);
        self.outsiders.add(&other.outsiders);
        self.networks += other.networks;
        self.all_on += other.all_on;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;
    use crate::net::attack::Frames;

    fn soak(runs: &[Run], stop: bool) -> (Report, u64) {
        let (stop, done_ms) = (AtomicBool::new(stop), AtomicU64::new(0));
        let watch = Watch {
            stop: &stop,
            done_ms: &done_ms,
        };
        let report = run(runs, &watch);
        (report, done_ms.into_inner())
    }

    #[test]
    fn runs_are_clean_repeat_themselves_and_see_most_of_tcp() {
        let runs = plan(1, 15_000.0);
        assert!(runs.iter().any(|run| run.level == Level::Lab));
        let (report, done_ms) = soak(&runs, false);
        assert_eq!(report.failures, []);
        assert_eq!(report.runs, runs.len() as u64);
        assert_eq!(
            done_ms,
            runs.iter().map(|run| run.span.as_millis()).sum::<u64>()
        );
        let seen = report.coverage.transitions().filter(|(_, seen)| *seen > 0);
        assert!(seen.count() >= 17, "{:?}", report.coverage);
        let again = soak(&runs, false).0;
        assert_eq!(format!("{report:?}"), format!("{again:?}"));
    }

    #[test]
    fn runs_that_failed_once_are_clean() {
        // Window probes crossed, and neither side took the other's acknowledgments.
        let runs = [702_729].map(Run::of);
        assert_eq!(soak(&runs, false).0.failures, []);
    }

    #[test]
    fn networks_over_bluetooth_le_are_among_the_runs() {
        let runs = plan(1, 400_000.0);
        let labs = runs.iter().filter(|run| run.level == Level::Lab);
        let over_ble = |run: &&Run| {
            let mut dice = Dice::new(run.seed, lab::PURPOSE);
            let (options, _) = mesh::network(&mut dice, run.seed);
            options.ble.is_some() && !options.is_mixed()
        };
        let shortest = labs.filter(over_ble).min_by_key(|run| run.span.as_millis());
        let shortest = *shortest.expect("one in five");
        let report = soak(&[shortest], false).0;
        assert_eq!(report.failures, []);
        assert!(report.sessions.finished > 0, "{report:?}");
    }

    /// Everything on, with an attacker, motes asleep and a key that rotates.
    #[test]
    fn half_of_the_networks_have_everything_on() {
        let runs = plan(1, 400_000.0);
        let labs = runs.iter().filter(|run| run.level == Level::Lab);
        let is_all_on = |run: &&Run| everything::network(run.seed).is_some();
        let share = labs.clone().filter(is_all_on).count() as f64 / labs.clone().count() as f64;
        assert!((0.4..0.6).contains(&share), "{share}");
        let is_attacked = |run: &&Run| {
            everything::network(run.seed).is_some_and(|options| {
                let security = options.security.as_ref();
                options.has_sleepers()
                    && !options.attackers.is_empty()
                    && security.is_some_and(|it| it.rotates_after.is_some())
            })
        };
        let shortest = labs
            .filter(|run| run.span >= Duration::from_secs(60) && is_attacked(run))
            .min_by_key(|run| run.span.as_millis());
        let shortest = *shortest.expect("one in ten or so");
        let report = soak(&[shortest], false).0;
        assert_eq!(report.failures, []);
        assert_eq!((report.tally.networks, report.tally.all_on), (1, 1));
        let (sleep, seals) = (report.tally.sleep, report.tally.seals);
        assert!(sleep.polls > 0 && seals.opened > 0, "{sleep:?} {seals:?}");
        assert!(report.sessions.finished > 0, "{report:?}");
    }

    #[test]
    fn motes_that_sleep_beside_an_attacker_are_among_the_runs() {
        let runs = plan(1, 400_000.0);
        let labs = runs.iter().filter(|run| run.level == Level::Lab);
        let is_attacked = |run: &&Run| {
            let mut dice = Dice::new(run.seed, lab::PURPOSE);
            let (options, _) = mesh::network(&mut dice, run.seed);
            let sleeps = options.nodes.iter().any(|node| node.sleep.is_some());
            sleeps && options.security.is_none() && !options.attackers.is_empty()
        };
        let shortest = labs
            .filter(is_attacked)
            .min_by_key(|run| run.span.as_millis());
        let shortest = *shortest.expect("one in ten or so");
        let report = soak(&[shortest], false).0;
        assert_eq!(report.failures, []);
        let sleep = report.tally.sleep;
        assert!(sleep.polls > 0 && sleep.requests > sleep.polls, "{sleep:?}");
    }

    #[test]
    fn meshes_with_a_key_beside_attackers_are_among_the_runs() {
        let runs = plan(1, 400_000.0);
        let labs = runs.iter().filter(|run| run.level == Level::Lab);
        let replays = |run: &&Run| {
            let mut dice = Dice::new(run.seed, lab::PURPOSE);
            let (options, _) = mesh::network(&mut dice, run.seed);
            let mut attackers = options.attackers.iter();
            options.security.is_some()
                && !options.is_mixed()
                && attackers.any(|attacker| attacker.frames == Frames::Replayed)
        };
        let shortest = labs.filter(replays).min_by_key(|run| run.span.as_millis());
        let shortest = *shortest.expect("one in ten or so");
        let report = soak(&[shortest], false).0;
        assert_eq!(report.failures, []);
        let seals = report.tally.seals;
        assert!(seals.opened > 0 && seals.replayed > 0, "{seals:?}");
    }

    #[test]
    fn networks_of_thread_are_among_the_runs() {
        let runs = plan(1, 400_000.0);
        let of_thread = runs.iter().filter(|run| run.level == Level::Thread);
        let mut of_thread: Vec<_> = of_thread.copied().collect();
        of_thread.sort_by_key(|run| run.span.as_millis());
        of_thread.truncate(3);
        assert_eq!(of_thread.len(), 3, "one in a hundred");
        let report = soak(&of_thread, false).0;
        assert_eq!(report.failures, []);
        let RunTally {
            seals, connects, ..
        } = report.tally;
        assert!(seals.opened > 0 && connects > 0, "{report:?}");
    }

    #[test]
    fn a_run_depends_on_its_seed_alone() {
        let runs = plan(1, 3_000.0);
        let third = *runs.get(2).expect("several runs");
        assert_eq!(plan(third.seed, 1.0), [third]);
        let (alone, _) = soak(&[third], false);
        let (with_others, _) = soak(&runs, false);
        assert!(alone.tally.events < with_others.tally.events);
        assert_eq!(alone.runs, 1);
    }

    #[test]
    fn what_is_stopped_is_not_reported_as_run() {
        let runs = plan(1, 3_000.0);
        assert_eq!(soak(&runs, true).0.runs, 0);
    }
}
