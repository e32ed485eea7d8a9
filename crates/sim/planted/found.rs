//! The soak can fail: every planted bug is found within a minute, and the seeds that find it
//! are clean without it. So can the requirements of `combined-all`: each bug of parts that get in
//! one another's way is found by the row of its requirement.
//!
//! A test of the copy of the project that holds the planted bugs; `cargo xtask check planted`
//! makes the copy and runs it there.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use motet::planted::{Bug, plant};
use motet_lab::experiments::everything;
use motet_lab::scenario::Watch;
use motet_lab::soak::{self, Failure, Run};

/// What it found in these runs.
fn soak(runs: &[Run]) -> Vec<Failure> {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    soak::run(runs, &watch).failures
}

/// The first failure in growing stretches of seeds, and how long it took to find.
fn find(bug: Bug) -> Option<(Failure, Duration)> {
    plant(Some(bug));
    let begun = Instant::now();
    let mut seed = 1;
    let found = loop {
        let runs = soak::plan(seed, STRETCH_S);
        let failures = soak(&runs);
        if let Some(first) = failures.first() {
            break Some((first.clone(), begun.elapsed()));
        }
        seed += runs.len() as u64;
        if begun.elapsed() > LIMIT {
            break None;
        }
    };
    plant(None);
    found
}

/// A process has one bug at a time.
static ONE_BUG: Mutex<()> = Mutex::new(());

#[test]
fn every_planted_bug_is_found_within_a_minute_and_only_where_it_is_planted() {
    let _one = ONE_BUG.lock();
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        match find(bug) {
            Some((Failure { seed, what }, took)) => {
                println!(
                    "{bug:?}: seed {seed} after {:.1} s: {what}",
                    took.as_secs_f64()
                );
                let clean = soak(&[Run::of(seed)]);
                assert_eq!(clean, [], "seed {seed} fails without {bug:?} too");
            }
            None => missed.push(bug),
        }
    }
    assert_eq!(missed, [], "not found within {LIMIT:?}");
}

/// What a run with everything on breaks.
fn broken() -> Vec<String> {
    everything::broken_requirements(SEED, SECONDS).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn every_requirement_finds_its_bug() {
    let _one = ONE_BUG.lock();
    assert_eq!(broken(), Vec::<String>::new(), "without a bug");
    let mut missed = Vec::new();
    for (bug, requirement) in Bug::INTERPLAY {
        plant(Some(bug));
        let broken = broken();
        plant(None);
        println!("{bug:?}: {broken:?}");
        let row = format!("requirement {requirement}: ");
        if !broken.iter().any(|what| what.starts_with(&row)) {
            missed.push((bug, requirement));
        }
    }
    assert_eq!(missed, [], "not found by their rows");
}

/// Simulated time between looks at the clock, s.
const STRETCH_S: f64 = 20_000.0;

/// A floor, and how long its network is looked at: until the border router has started again.
const SEED: u64 = 1;
const SECONDS: u64 = 520;

/// Wall-clock time to find one bug.
const LIMIT: Duration = Duration::from_secs(60);
