//! The runs of a plan, and what follows from them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use motet_lab::experiments::update::unmodified::{Measured, Unmodified};
use serde::Serialize;

use crate::error::Error;

/// A setting that is tried: the first one is as things are now.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    name: String,
    update: Unmodified,
    /// How many runs it gets.
    pub(super) runs: u64,
}

/// What the runs of a setting gave.
pub(super) type Trials = Result<Vec<Measured>, String>;

/// The output; times in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Answer {
    pub(super) image: u64,
    hops: usize,
    poll_s: Option<f64>,
    block_bytes: u64,
    readers: usize,
    frame_loss: f64,
    /// Runs of the range.
    pub(super) runs: u64,
    /// The range: the shortest and the longest time.
    pub(super) seconds: [f64; 2],
    pub(super) block_longest_s: f64,
    pub(super) timeout_s: f64,
    /// Whether a block may take longer than the sender waits, or a connection was lost.
    pub(super) may_time_out: bool,
    /// What the poll period costs, and the time of an awake device; none where it is awake.
    pub(super) poll_costs_s: Option<f64>,
    pub(super) awake_s: Option<f64>,
    pub(super) tried: Vec<Tried>,
    /// The setting that helps most.
    pub(super) best: Option<String>,
}

/// A setting that was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Tried {
    pub(super) setting: String,
    pub(super) seconds: f64,
    /// Part of the time as things are now.
    pub(super) of_now: f64,
}

impl Setting {
    /// Things as they are now, and every setting that is worth a try.
    pub(super) fn all(base: &Unmodified) -> Vec<Self> {
        let mut all = vec![Self {
            name: "as it is".to_owned(),
            update: *base,
            runs: RUNS,
        }];
        let mut with = |name: String, update: Unmodified| {
            all.push(Self {
                name,
                update,
                runs: RUNS_TRIED,
            });
        };
        if let Some(poll_s) = base.poll_s {
            with(
                AWAKE.to_owned(),
                Unmodified {
                    poll_s: None,
                    ..*base
                },
            );
            if poll_s > 2.0 * POLL_SHORT_S {
                let poll_s = Some(POLL_SHORT_S);
                with(
                    "a poll each 0.1 s".to_owned(),
                    Unmodified { poll_s, ..*base },
                );
            }
        }
        let relays = true;
        with(
            "router --policy relay".to_owned(),
            Unmodified { relays, ..*base },
        );
        let block_bytes = 4 * base.block_bytes;
        if block_bytes <= BLOCK_BYTES_MAX {
            with(
                format!("blocks of {block_bytes} bytes"),
                Unmodified {
                    block_bytes,
                    ..*base
                },
            );
        }
        if base.readers > 0 {
            with(
                "no readings meanwhile".to_owned(),
                Unmodified {
                    readers: 0,
                    ..*base
                },
            );
        }
        all
    }

    /// Runs it with its seeds, until `stop` is set; counts in `done`.
    pub(super) fn run(&self, stop: &AtomicBool, done: &AtomicU64) -> Trials {
        let mut trials = Vec::new();
        for seed in 1..=self.runs {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            trials.push(self.update.run(SEED + seed, SECONDS, stop)?);
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(trials)
    }
}

impl Answer {
    /// What follows from the trials of all settings.
    ///
    /// # Errors
    /// The scenario as things are now cannot be run, or carries nothing.
    pub(super) fn of(
        image: u64,
        base: &Unmodified,
        settings: &[Setting],
        trials: &[Trials],
    ) -> Result<Self, Error> {
        let Some((Ok(now), others)) = trials.split_first().map(|(now, rest)| (now.as_ref(), rest))
        else {
            let why = trials.first().and_then(|now| now.as_ref().err());
            let why = why.map_or("nothing was run", String::as_str);
            return Err(Error::failed(format!(
                "the update does not get through: {why}"
            )));
        };
        let times: Vec<f64> = times(image, now).collect();
        let (mean, deviation) = mean_and_deviation(&times);
        let half = (DEVIATIONS * deviation).max(mean * HALF_MIN);
        let tried = others.iter().zip(settings.iter().skip(1));
        let tried: Vec<Tried> = tried
            .filter_map(|(trials, setting)| {
                let times: Vec<f64> = self::times(image, trials.as_ref().ok()?).collect();
                let (seconds, _) = mean_and_deviation(&times);
                Some(Tried {
                    setting: setting.name.clone(),
                    seconds,
                    of_now: seconds / mean,
                })
            })
            .collect();
        let awake_s = tried
            .iter()
            .find(|tried| tried.setting == AWAKE)
            .map(|tried| tried.seconds);
        let quickest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let block_longest_s = now
            .iter()
            .map(|one| one.block_longest_s)
            .fold(0.0, f64::max);
        let best = tried.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let best = best.filter(|best| best.of_now <= HELPS);
        Ok(Self {
            image,
            hops: base.hops,
            poll_s: base.poll_s,
            block_bytes: base.block_bytes,
            readers: base.readers,
            frame_loss: base.frame_loss as f64 / 100.0,
            runs: times.len() as u64,
            // No run takes less than half of what the quickest took.
            seconds: [(mean - half).max(0.5 * quickest), mean + half],
            block_longest_s,
            timeout_s: TIMEOUT_S,
            may_time_out: block_longest_s >= TIMEOUT_S || now.iter().any(|one| !one.held),
            poll_costs_s: awake_s.map(|awake| (mean - awake).max(0.0)),
            awake_s,
            best: best.map(|best| best.setting.clone()),
            tried,
        })
    }
}

/// How long the image takes at each run's rate.
fn times(image: u64, trials: &[Measured]) -> impl Iterator<Item = f64> {
    trials.iter().map(move |one| image as f64 / one.bytes_per_s)
}

/// Mean and sample deviation.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

/// Virtual time of a run, s: some hundred blocks over three hops.
pub(super) const SECONDS: u64 = 300;

/// Runs of the range, and of each setting that is tried.
const RUNS: u64 = 6;
const RUNS_TRIED: u64 = 2;

/// Behind it the seeds begin: others than those that a scenario begins with.
const SEED: u64 = 7_000;

/// Deviations to either side of the mean.
const DEVIATIONS: f64 = 3.0;

/// Half of the range, of the mean, at least: six runs may agree by chance.
const HALF_MIN: f64 = 0.05;

/// A setting helps that takes no more than this part of the time.
const HELPS: f64 = 0.98;

/// How long ESPHome waits for an answer, s.
const TIMEOUT_S: f64 = 90.0;

const POLL_SHORT_S: f64 = 0.1;

/// A scenario's longest message.
const BLOCK_BYTES_MAX: u64 = 60_000;

const AWAKE: &str = "an awake device";

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(bytes_per_s: f64, block_longest_s: f64) -> Measured {
        Measured {
            bytes_per_s,
            block_longest_s,
            held: true,
            delivery: None,
            latency_p95_ms: None,
        }
    }

    #[test]
    fn the_range_holds_the_runs_and_the_best_setting_is_named() {
        let base = Unmodified {
            poll_s: Some(1.0),
            ..Unmodified::new(1)
        };
        let settings = Setting::all(&base);
        let trials = settings.iter().map(|setting| {
            let rate = match (setting.update.poll_s, setting.update.relays) {
                (None, _) => 1_000.0,
                (_, true) => 240.0,
                _ => 250.0,
            };
            Ok(vec![measured(rate * 1.1, 9.0), measured(rate * 0.9, 95.0)])
        });
        let trials: Vec<Trials> = trials.collect();
        let answer = Answer::of(100_000, &base, &settings, &trials).unwrap();
        let [low, high] = answer.seconds;
        assert!(low < 363.0 && high > 445.0, "{low} {high}");
        assert!(answer.may_time_out);
        assert_eq!(answer.best.as_deref(), Some(AWAKE));
        assert!(
            answer
                .poll_costs_s
                .is_some_and(|cost| (290.0..310.0).contains(&cost))
        );
        assert_eq!(answer.tried.len(), settings.len() - 1);
    }

    #[test]
    fn what_carries_nothing_is_said() {
        let base = Unmodified::new(1);
        let settings = Setting::all(&base);
        let trials = vec![Err("no block has arrived".to_owned()); settings.len()];
        assert!(Answer::of(1, &base, &settings, &trials).is_err());
    }
}
