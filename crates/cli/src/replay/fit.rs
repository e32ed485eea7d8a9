//! What the links of a capture lose by themselves, found out by running the scenario.
//!
//! A capture shows how many attempts failed, not why: some met the frame of a node that does not
//! hear the sender, some came while the receiver copied another, and some the link lost. The first
//! two the lab makes by itself. So the scenario is run, its air is read as the capture was, and
//! what the links lose is set by the difference. What no capture shows at all (which radio, whether
//! nodes with a common neighbour hear one another) is tried each way; what comes nearest is kept.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};

use motet_decode::{Capture, Decoder, Examiner, Seen};
use motet_lab::capture::{Capture as LabCapture, Records};
use motet_lab::scenario::{Captures, Overrides, Plan, Watch};

use super::guess::{FRAMES_MIN, Guess, PROFILES, Pairs, pairs};
use super::text::scenario;
use crate::progress::Progress;

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
    /// and that of bytes by flows.
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
        sum / f64::max(weight, 1.0) + flows.sum::<f64>() / self.carried.len().max(1) as f64
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
    let mut trials = Vec::new();
    for is_open in [false, true] {
        for profile in PROFILES {
            for names_delay in [true, false] {
                if !names_delay && seen.retry_s.is_none() {
                    continue;
                }
                let guess = Guess {
                    is_open,
                    profile,
                    names_delay,
                    ..first.clone()
                };
                trials.extend(guess.lossy(&shown.pairs));
                trials.push(guess);
            }
        }
    }
    let mut progress = Progress::percentage(trials.len() as u64 + ROUNDS, true);
    let mut best: Option<(f64, Guess, Shown)> = None;
    let mut try_one = |guess: Guess, best: &mut Option<(f64, Guess, Shown)>, done: usize| {
        progress.update(done as u64, || {
            "trying what the capture does not say".into()
        });
        let Some(lab) = observed(&scenario(seen, name, &guess)) else {
            return false;
        };
        let distance = shown.distance(&lab);
        let is_nearer = best.as_ref().is_none_or(|(least, ..)| distance < *least);
        if is_nearer {
            *best = Some((distance, guess, lab));
        }
        is_nearer
    };
    let count = trials.len();
    for (guess, done) in trials.into_iter().zip(0..) {
        try_one(guess, &mut best, done);
    }
    for round in 0..ROUNDS as usize {
        let Some(guess) = best
            .as_ref()
            .map(|(_, guess, lab)| guess.nearer(&shown.pairs, &lab.pairs))
        else {
            break;
        };
        if !try_one(guess, &mut best, count + round) {
            break;
        }
    }
    best.map_or(first, |(_, guess, _)| guess)
}

/// What the air of a scenario shows; none where it does not run.
fn observed(text: &str) -> Option<Shown> {
    let plan = Plan::parse(text, Path::new("replay.toml"), Overrides::default()).ok()?;
    let bytes = Memory::default();
    let air = LabCapture::stream(Box::new(bytes.clone()), Records::Frames).ok()?;
    let captures = Captures {
        air: Some(air),
        ..Captures::default()
    };
    let watch = Watch {
        stop: &AtomicBool::new(false),
        done_ms: &AtomicU64::new(0),
    };
    plan.run(&watch, captures);
    let mut capture = Capture::of_bytes(bytes.take()).ok()?;
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

/// A capture in memory.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How often what the links lose is set anew.
const ROUNDS: u64 = 4;
/// Nodes times seconds above which no scenario is tried: some minutes of work.
const WORK_MAX: f64 = 20_000.0;
