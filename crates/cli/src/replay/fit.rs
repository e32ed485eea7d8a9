//! What the links of a capture lose by themselves, found out by running the scenario.
//!
//! A capture shows how many attempts failed, not why: some met the frame of a node that does not
//! hear the sender, some came while the receiver copied another, and some the link lost. The first
//! two the lab makes by itself. So the scenario is run, its air is read as the capture was, and
//! what the links lose is set by the difference. What no capture shows at all (which radio, whether
//! nodes with a common neighbour hear one another) is tried each way; what comes nearest is kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_decode::{Capture, Decoder, Examiner, Seen};
use motet_lab::capture::{Records, Tape};
use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

use super::guess::{FRAMES_MIN, Guess, PROFILES, Pairs, pairs};
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
    /// that of bytes by flows, and that of all retries.
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
        sum / f64::max(weight, 1.0) + flows + retries
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
    let trials = trials(seen, &first, &shown.pairs, wire_loss);
    let steps = trials.len() as u64 + ROUNDS + (PARTS.len() + SEEDS.len()) as u64;
    let mut search = Search {
        seen,
        name,
        shown,
        progress: Progress::percentage(steps, true),
        done: 0,
        best: None,
    };
    for guess in trials {
        search.try_one(guess);
    }
    for _ in 0..ROUNDS {
        let nearer = search
            .best
            .as_ref()
            .map(|(_, guess, lab)| guess.nearer(&search.shown.pairs, &lab.pairs));
        if !nearer.is_some_and(|guess| search.try_one(guess)) {
            break;
        }
    }
    if let Some(loss) = wire_loss {
        for part in PARTS {
            search.try_another(|guess| guess.wire_loss = part * loss);
        }
    }
    // Chance decides much where flows crowd each other out: of some runs the nearest is kept.
    for seed in SEEDS {
        if search.best.as_ref().is_some_and(|best| best.0 >= NEAR) {
            search.try_another(|guess| guess.seed = seed);
        }
    }
    search.best.map_or(first, |(_, guess, _)| guess)
}

/// Scenarios that are tried one after the other.
struct Search<'a> {
    seen: &'a Seen,
    name: &'a str,
    shown: Shown,
    progress: Progress,
    done: u64,
    /// The nearest: how far it is off, and what it shows.
    best: Option<(f64, Guess, Shown)>,
}

impl Search<'_> {
    /// Runs a guess; whether it is the nearest so far.
    fn try_one(&mut self, guess: Guess) -> bool {
        self.progress
            .update(self.done, || "trying what the capture does not say".into());
        self.done += 1;
        let Some(lab) = observed(&scenario(self.seen, self.name, &guess)) else {
            return false;
        };
        // A loss that the capture does not show by itself must make up for much.
        let supposed = if guess.wire_loss > 0.0 { SUPPOSED } else { 0.0 };
        let distance = self.shown.distance(&lab) + supposed;
        let is_nearer = self
            .best
            .as_ref()
            .is_none_or(|(least, ..)| distance < *least);
        if is_nearer {
            self.best = Some((distance, guess, lab));
        }
        is_nearer
    }

    /// Tries the nearest with a change.
    fn try_another(&mut self, change: impl FnOnce(&mut Guess)) {
        if let Some((_, guess, _)) = &self.best {
            let mut guess = guess.clone();
            change(&mut guess);
            self.try_one(guess);
        }
    }
}

/// The first guesses: each value of what the capture does not say.
fn trials(seen: &Seen, first: &Guess, pairs: &Pairs, wire_loss: Option<f64>) -> Vec<Guess> {
    let mut trials = Vec::new();
    for is_open in [false, true] {
        for profile in PROFILES {
            for names_delay in [true, false] {
                if !names_delay && seen.retry_s.is_none() {
                    continue;
                }
                for wire_loss in [Some(0.0), wire_loss].into_iter().flatten() {
                    let guess = Guess {
                        is_open,
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
const ROUNDS: u64 = 4;
/// Nodes times seconds above which no scenario is tried: some minutes of work.
const WORK_MAX: f64 = 20_000.0;
