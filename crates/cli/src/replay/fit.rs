//! What the links of a capture lose by themselves, found out by running the scenario.
//!
//! A capture shows how many attempts failed, not why: some met the frame of a node that does not
//! hear the sender, some came while the receiver copied another, and some the link lost. The first
//! two the lab makes by itself. So the scenario is run, its air is read as the capture was, and
//! what the links lose is set by the difference. What no capture shows at all (which radio, whether
//! nodes with a common neighbour hear one another) is tried each way; what comes nearest is kept.
//! A flow's begin makes retries of its own, so that losses follow what comes after it; and chance
//! decides much, so that they are set right by the mean of some runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_decode::{Capture, Decoder, Examiner, Seen};
use motet_lab::capture::{Records, Tape};
use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

use super::guess::{Apart, FRAMES_MIN, Guess, PROFILES, Pairs, Part, pairs};
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
    whole: Pairs,
    /// Of the part that losses follow.
    pairs: Pairs,
    part: Part,
    carried: Carried,
}

impl Shown {
    fn of(seen: &Seen, number: &[usize], part: Part) -> Self {
        Self {
            whole: pairs(seen, number, Part::Whole),
            pairs: pairs(seen, number, part),
            part,
            carried: carried(seen, number),
        }
    }

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
        let flows = flows.sum::<f64>() / self.carried.len().max(1) as f64;
        let all = [lab, self].map(|shown| shown.carried.values().sum::<f64>().max(1.0));
        let all = (all[0] / all[1]).ln().abs();
        let carried = EACH_FLOW * flows + (1.0 - EACH_FLOW) * all;
        sum / f64::max(weight, 1.0)
            + CARRIED_WEIGHT * carried
            + RETRIES_WEIGHT * self.retries_off(lab)
    }

    /// How far the retries of all links are off: in the whole, and in the part that losses follow.
    fn retries_off(&self, lab: &Self) -> f64 {
        let off = |of: fn(&Self) -> &Pairs, unsure: f64| {
            let [there, here] = [lab, self].map(|shown| retry_rate(of(shown)) + unsure);
            (there / here).ln().abs()
        };
        let whole = off(|shown| &shown.whole, BEGIN_UNSURE);
        match self.part {
            Part::Whole => whole,
            Part::Settled => f64::midpoint(whole, off(|shown| &shown.pairs, RETRIES_UNSURE)),
        }
    }
}

/// What comes nearest to the capture, of what was tried.
pub(super) fn fitted(seen: &Seen, name: &str) -> Guess {
    let first = Guess::of(seen);
    if seen.nodes.len() as f64 * seen.duration_s > WORK_MAX {
        return first;
    }
    let all = Vec::from_iter(0..seen.nodes.len());
    let shown = Shown::of(seen, &all, part(seen, &all));
    let wire_loss = wire_loss(seen);
    let mut trials = trials(seen, &first, &shown.pairs, wire_loss);
    // Some guesses are one scenario: a delay that is usual is not written, named or not.
    let mut texts = BTreeSet::new();
    trials.retain(|guess| texts.insert(scenario(seen, name, guess)));
    let set = STARTS * (1 + ROUNDS) + PARTS.len();
    let steps = trials.len() + set + SEVERAL * (1 + AGAIN) * RUNS.len() + SEEDS.len();
    let mut search = Search {
        seen,
        name,
        shown,
        progress: Progress::percentage(steps as u64, true),
        done: 0,
        tried: Vec::new(),
    };
    let mut starts: Vec<Trial> = trials
        .into_iter()
        .filter_map(|guess| search.try_one(guess))
        .collect();
    starts.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    for at in 0..starts.len().min(STARTS) {
        let guess = starts.get(at).map(|start| start.guess.clone());
        let faint = guess.map(|guess| Guess {
            is_faint: true,
            ..guess
        });
        starts.extend(faint.and_then(|guess| search.try_one(guess)));
    }
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
    search.nearest_run().map_or(first, |trial| trial.guess)
}

/// The part of a capture that losses follow: what comes after the first flow's begin, where that is
/// the most.
fn part(seen: &Seen, number: &[usize]) -> Part {
    let frames = [Part::Whole, Part::Settled]
        .map(|part| pairs(seen, number, part).values().map(|pair| pair.0).sum());
    let [whole, settled]: [f64; 2] = frames;
    match settled * 2.0 >= whole {
        true => Part::Settled,
        false => Part::Whole,
    }
}

/// A guess, what the lab makes of it, and how far that is off.
#[derive(Clone)]
struct Trial {
    distance: f64,
    guess: Guess,
    pairs: Pairs,
}

/// How far runs are off in the mean.
fn mean_distance(runs: &[Trial]) -> f64 {
    runs.iter().map(|run| run.distance).sum::<f64>() / runs.len().max(1) as f64
}

/// Frames and attempts of all runs.
fn mean_pairs(runs: &[Trial]) -> Pairs {
    let mut mean = Pairs::new();
    let share = 1.0 / runs.len().max(1) as f64;
    for (pair, (frames, attempts)) in runs.iter().flat_map(|run| &run.pairs) {
        let all = mean.entry(*pair).or_insert((0.0, 0.0));
        *all = (all.0 + share * frames, all.1 + share * attempts);
    }
    mean
}

/// Scenarios that are tried one after the other.
struct Search<'a> {
    seen: &'a Seen,
    name: &'a str,
    shown: Shown,
    progress: Progress,
    done: u64,
    tried: Vec<Trial>,
}

impl Search<'_> {
    /// Runs a guess, unless its scenario cannot run.
    fn try_one(&mut self, guess: Guess) -> Option<Trial> {
        self.progress
            .update(self.done, || "trying what the capture does not say".into());
        self.done += 1;
        let lab = observed(&scenario(self.seen, self.name, &guess), self.shown.part)?;
        // A loss that the capture does not show by itself must make up for much.
        let supposed = if guess.wire_loss > 0.0 { SUPPOSED } else { 0.0 };
        let trial = Trial {
            distance: self.shown.distance(&lab) + supposed,
            guess,
            pairs: lab.pairs,
        };
        self.tried.push(trial.clone());
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
        let nearest = self
            .tried
            .iter()
            .min_by(|one, other| one.distance.total_cmp(&other.distance));
        if let Some(mut guess) = nearest.map(|best| best.guess.clone()) {
            change(&mut guess);
            self.try_one(guess);
        }
    }

    /// Chance decides much: of the nearest guesses the one that is nearest in the mean of some
    /// runs, and of its runs the nearest.
    fn nearest_run(&mut self) -> Option<Trial> {
        let mut nearest = self.tried.clone();
        nearest.sort_by(|one, other| one.distance.total_cmp(&other.distance));
        let mut best: Vec<Trial> = Vec::new();
        for trial in nearest.into_iter().take(SEVERAL) {
            let runs = self.set_by_mean(trial);
            if best.is_empty() || mean_distance(&runs) < mean_distance(&best) {
                best = runs;
            }
            if mean_distance(&best) < NEAR {
                break;
            }
        }
        for seed in SEEDS {
            if best.iter().all(|run| run.distance >= NEAR_RUN) {
                let guess = best.first().map(|run| run.guess.clone());
                best.extend(guess.and_then(|guess| self.try_one(Guess { seed, ..guess })));
            }
        }
        best.into_iter()
            .min_by(|one, other| one.distance.total_cmp(&other.distance))
    }

    /// Sets what the links lose by the mean of some runs; gives these.
    fn set_by_mean(&mut self, trial: Trial) -> Vec<Trial> {
        let mut best = self.run_again(vec![trial]);
        for _ in 0..AGAIN {
            let Some(of) = best.first() else { break };
            let guess = of.guess.nearer(&self.shown.pairs, &mean_pairs(&best));
            if guess == of.guess {
                break;
            }
            let first = self.try_one(guess);
            let runs = self.run_again(first.into_iter().collect());
            if runs.is_empty() || mean_distance(&runs) >= mean_distance(&best) {
                break;
            }
            best = runs;
        }
        best
    }

    /// Adds other runs of the same guess.
    fn run_again(&mut self, mut runs: Vec<Trial>) -> Vec<Trial> {
        if let Some(guess) = runs.first().map(|run| run.guess.clone()) {
            for seed in RUNS {
                runs.extend(self.try_one(Guess {
                    seed,
                    ..guess.clone()
                }));
            }
        }
        runs
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
fn observed(text: &str, part: Part) -> Option<Shown> {
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
    Some(Shown::of(&seen, &numbers, part))
}

/// Retries for each frame below which their number says little: that of a whole capture, to which a
/// flow's begin alone adds some, and that of what follows.
const BEGIN_UNSURE: f64 = 0.03;
const RETRIES_UNSURE: f64 = 0.005;
/// What their number counts for, which is chance, and bytes, of which one is sure.
const RETRIES_WEIGHT: f64 = 0.5;
const CARRIED_WEIGHT: f64 = 2.0;
/// What the bytes of each flow count for beside those of all: which flow wins where they crowd each
/// other out is chance.
const EACH_FLOW: f64 = 0.25;
/// Parts of the wire's loss that are tried at last.
const PARTS: [f64; 2] = [0.3, 0.6];
/// By how much a loss of the wire must bring a scenario nearer.
const SUPPOSED: f64 = 0.05;
/// A distance that chance alone makes, in the mean of some runs; and that of their nearest.
const NEAR: f64 = 0.06;
const NEAR_RUN: f64 = 0.03;
/// How often what the links lose is set anew.
const ROUNDS: usize = 4;
/// From how many guesses.
const STARTS: usize = 4;
/// Of how many guesses several runs are made, which these are beside the first.
const SEVERAL: usize = 3;
const RUNS: [u64; 3] = [2, 3, 4];
/// How often what the links lose is set anew by the mean of these.
const AGAIN: usize = 2;
/// Further runs of the guess that is nearest, as long as none is near.
const SEEDS: [u64; 6] = [5, 6, 7, 8, 9, 10];
/// Nodes times seconds above which no scenario is tried: some minutes of work.
const WORK_MAX: f64 = 20_000.0;
