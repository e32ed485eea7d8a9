//! What the links of a capture lose by themselves, found out by running the scenario.
//!
//! A capture shows how many attempts failed, not why: some met the frame of a node that does not
//! hear the sender, some came while the receiver copied another, and some the link lost. The first
//! two the lab makes by itself. So the scenario is run, its air is read as the capture was, and
//! what the links lose is set by the difference. What no capture shows at all (which radio, whether
//! nodes with a common neighbour hear one another) is tried each way; what comes nearest is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_decode::{Capture, Decoder, Examiner, Seen};
use motet_lab::capture::{Records, Tape};
use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

use super::guess::{Apart, FRAMES_MIN, Guess, PROFILES, Pairs, pairs};
use super::text::scenario;
use crate::progress::Progress;

/// Retries for each frame, over all links.
fn retry_rate(pairs: &Pairs) -> f64 {
    let (frames, attempts) = pairs
        .values()
        .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    (attempts - frames) / f64::max(frames, 1.0)
}

/// Bytes of each way between two ends.
type Carried = BTreeMap<(Option<usize>, Option<usize>), f64>;

fn carried(seen: &Seen, number: &[usize]) -> Carried {
    let mut carried = Carried::new();
    let of = |end: Option<usize>| end.and_then(|end| number.get(end).copied());
    for flow in &seen.flows {
        *carried.entry((of(flow.from), of(flow.to))).or_default() += flow.bytes as f64;
    }
    carried
}

/// What is held against the capture.
struct Shown {
    pairs: Pairs,
    carried: Carried,
}

impl Shown {
    /// How far the lab's is off: the mean of logarithms of attempts for each frame, by attempts,
    /// that of bytes, of each flow and of all, and that of all retries.
    fn distance(&self, lab: &Self) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (pair, (frames, attempts)) in &self.pairs {
            if let Some((lab_frames, lab_attempts)) = lab.pairs.get(pair)
                && *frames >= FRAMES_MIN
                && *lab_frames > 0.0
            {
                let ratio = (lab_attempts / lab_frames) / (attempts / frames);
                sum += attempts * ratio.ln().abs();
                weight += attempts;
            }
        }
        let flows = self.carried.iter().map(|(ends, bytes)| {
            let there = lab.carried.get(ends).copied().unwrap_or(0.0);
            (there.max(1.0) / bytes.max(1.0)).ln().abs()
        });
        let retries = [lab, self].map(|shown| retry_rate(&shown.pairs) + RETRIES_UNSURE);
        let retries = RETRIES_WEIGHT * (retries[0] / retries[1]).ln().abs();
        let flows = flows.sum::<f64>() / self.carried.len().max(1) as f64;
        let all = [lab, self].map(|shown| shown.carried.values().sum::<f64>().max(1.0));
        let all = (all[0] / all[1]).ln().abs();
        let carried = EACH_FLOW * flows + (1.0 - EACH_FLOW) * all;
        sum / f64::max(weight, 1.0) + carried + retries
    }
}

/// What comes nearest to the capture, of what was tried.
pub(super) fn fitted(seen: &Seen, name: &str) -> Guess {
    let first = Guess::of(seen);
    if seen.nodes.len() as f64 * seen.duration_s > WORK_MAX {
        return first;
    }
    let all = Vec::from_iter(0..seen.nodes.len());
    let shown = Shown {
        pairs: pairs(seen, &all),
        carried: carried(seen, &all),
    };
    let wire_loss = wire_loss(seen);
    let mut trials = trials(seen, &first, &shown.pairs, wire_loss);
    // Some guesses are one scenario: a delay that is usual is not written, named or not.
    let mut texts = BTreeSet::new();
    trials.retain(|guess| texts.insert(scenario(seen, name, guess)));
    let rounds = STARTS * ROUNDS;
    let steps = (trials.len() + rounds + PARTS.len() + SEEDS.len()) as u64;
    let mut search = Search {
        seen,
        name,
        shown,
        progress: Progress::percentage(steps, true),
        done: 0,
        best: None,
    };
    let mut starts: Vec<Trial> = trials
        .into_iter()
        .filter_map(|guess| search.try_one(guess))
        .collect();
    starts.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    // The nearest before its losses are set right is often not the nearest after that.
    for start in starts.into_iter().take(STARTS) {
        search.set_losses(start);
    }
    if let Some(loss) = wire_loss {
        for part in PARTS {
            search.try_another(|guess| guess.wire_loss = part * loss);
        }
    }
    // Chance decides much where flows crowd each other out: of some runs the nearest is kept.
    for seed in SEEDS {
        if search
            .best
            .as_ref()
            .is_some_and(|best| best.distance >= NEAR)
        {
            search.try_another(|guess| guess.seed = seed);
        }
    }
    search.best.map_or(first, |best| best.guess)
}

/// A guess, what the lab makes of it, and how far that is off.
#[derive(Clone)]
struct Trial {
    distance: f64,
    guess: Guess,
    pairs: Pairs,
}

/// Scenarios that are tried one after the other.
struct Search<'a> {
    seen: &'a Seen,
    name: &'a str,
    shown: Shown,
    progress: Progress,
    done: u64,
    best: Option<Trial>,
}

impl Search<'_> {
    /// Runs a guess, unless its scenario cannot run.
    fn try_one(&mut self, guess: Guess) -> Option<Trial> {
        self.progress
            .update(self.done, || "trying what the capture does not say".into());
        self.done += 1;
        let lab = observed(&scenario(self.seen, self.name, &guess))?;
        // A loss that the capture does not show by itself must make up for much.
        let supposed = if guess.wire_loss > 0.0 { SUPPOSED } else { 0.0 };
        let trial = Trial {
            distance: self.shown.distance(&lab) + supposed,
            guess,
            pairs: lab.pairs,
        };
        let best = self.best.as_ref();
        if best.is_none_or(|best| trial.distance < best.distance) {
            self.best = Some(trial.clone());
        }
        Some(trial)
    }

    /// Sets what the links lose by what is still off, for as long as that brings it nearer.
    fn set_losses(&mut self, mut trial: Trial) {
        for _ in 0..ROUNDS {
            let guess = trial.guess.nearer(&self.shown.pairs, &trial.pairs);
            if guess == trial.guess {
                return;
            }
            match self.try_one(guess) {
                Some(next) if next.distance < trial.distance => trial = next,
                _ => return,
            }
        }
    }

    /// Tries the nearest with a change.
    fn try_another(&mut self, change: impl FnOnce(&mut Guess)) {
        if let Some(best) = &self.best {
            let mut guess = best.guess.clone();
            change(&mut guess);
            self.try_one(guess);
        }
    }
}

/// The first guesses: each value of what the capture does not say.
fn trials(seen: &Seen, first: &Guess, pairs: &Pairs, wire_loss: Option<f64>) -> Vec<Guess> {
    let mut trials = Vec::new();
    for apart in Apart::ALL {
        for profile in PROFILES {
            for names_delay in [true, false] {
                if !names_delay && seen.retry_s.is_none() {
                    continue;
                }
                for wire_loss in [Some(0.0), wire_loss].into_iter().flatten() {
                    let guess = Guess {
                        apart,
                        profile,
                        names_delay,
                        wire_loss,
                        ..first.clone()
                    };
                    trials.extend(guess.lossy(pairs));
                    trials.push(guess);
                }
            }
        }
    }
    trials
}

/// What the wire loses at most: what was sent again though its last hop had taken it. A sniffer
/// that missed how that hop lost a fragment counts too much.
fn wire_loss(seen: &Seen) -> Option<f64> {
    let beyond = seen.flows.iter().filter(|flow| flow.to.is_none());
    let (lost, sent) = beyond.fold((0, 0), |all, flow| {
        (all.0 + flow.lost_beyond, all.1 + flow.segments)
    });
    let loss = lost as f64 / sent.max(1) as f64;
    (lost >= 3 && loss >= 0.02).then_some(loss.min(0.5))
}

/// What the air of a scenario shows; none where it does not run.
fn observed(text: &str) -> Option<Shown> {
    let plan = Plan::parse(text, Path::new("replay.toml"), Overrides::default()).ok()?;
    let tape = Tape::default();
    let captures = Captures {
        air: Some(tape.capture(Records::Frames).ok()?),
        ..Captures::default()
    };
    let watch = Watch {
        stop: &AtomicBool::new(false),
        done_ms: &AtomicU64::new(0),
    };
    plan.run(&watch, captures);
    let mut capture = Capture::of_bytes(tape.take()).ok()?;
    let mut decoder = Decoder::new(&[]);
    let mut examiner = Examiner::new();
    while let Some(Ok(record)) = capture.next_record() {
        examiner.observe(&decoder.decode(&record));
    }
    let seen = examiner.seen();
    // A node of the lab has its number in its address; one that nobody hears is missing.
    let number = |name: &String| {
        let mut parts = name.rsplit(':');
        let mut byte = || usize::from_str_radix(parts.next()?, 16).ok();
        let low = byte()?;
        Some(low + 256 * byte()?)
    };
    let numbers: Vec<usize> = seen.nodes.iter().map(number).collect::<Option<_>>()?;
    Some(Shown {
        pairs: pairs(&seen, &numbers),
        carried: carried(&seen, &numbers),
    })
}

/// Retries for each frame below which their number says little: a flow's begin alone makes some.
const RETRIES_UNSURE: f64 = 0.03;
/// What the bytes of each flow count for beside those of all: which flow wins where they crowd each
/// other out is chance.
const EACH_FLOW: f64 = 0.25;
/// What their number counts for beside bytes, of which one is sure.
const RETRIES_WEIGHT: f64 = 0.5;
/// Parts of that loss that are tried at last.
const PARTS: [f64; 2] = [0.3, 0.6];
/// Runs that are tried of what came nearest.
const SEEDS: [u64; 8] = [2, 3, 4, 5, 6, 7, 8, 9];
/// By how much a loss of the wire must bring a scenario nearer.
const SUPPOSED: f64 = 0.05;
/// A distance that chance alone makes.
const NEAR: f64 = 0.06;
/// How often what the links lose is set anew.
const ROUNDS: usize = 4;
/// From how many guesses.
const STARTS: usize = 4;
/// Nodes times seconds above which no scenario is tried: some minutes of work.
const WORK_MAX: f64 = 20_000.0;
