//! The runs of a plan, and what follows from them.

use std::sync::atomic::AtomicBool;

use motet_lab::experiments::update::unmodified::{Measured, Unmodified};
use serde::Serialize;

use crate::error::Error;

/// A setting that is tried: the first one is as things are now.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Setting {
    name: String,
    update: Unmodified,
}

/// What each run of a setting gave, in the order of its seeds; why not, in words.
pub(super) type Trials = Vec<Result<Measured, String>>;

/// The output; times in seconds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Answer {
    pub(super) image: u64,
    hops: usize,
    poll_s: Option<f64>,
    block_bytes: u64,
    readers: usize,
    frame_loss: f64,
    /// Runs in all, and runs that did not get through: nothing arrived, the connection broke, or a
    /// block took longer than the sender waits.
    pub(super) runs: u64,
    pub(super) broken: u64,
    /// The range by the other runs; none where there are fewer than [`WHOLE_MIN`].
    pub(super) seconds: Option<[f64; 2]>,
    pub(super) block_longest_s: f64,
    pub(super) timeout_s: f64,
    /// Whether a block may take longer than the sender waits, or a run broke.
    pub(super) may_time_out: bool,
    /// What the poll period costs, and the time of an awake device; none where it is awake.
    pub(super) poll_costs_s: Option<f64>,
    pub(super) awake_s: Option<f64>,
    pub(super) tried: Vec<Tried>,
    /// The setting that helps most.
    pub(super) best: Option<String>,
    /// Those of which these runs do not show that they help less; empty where nothing gets through
    /// as things are.
    pub(super) as_good: Vec<String>,
}

/// A setting that was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct Tried {
    pub(super) setting: String,
    /// The mean of its runs that held; none where each broke.
    pub(super) seconds: Option<f64>,
    /// Part of the time as things are now, by the same seeds.
    pub(super) of_now: Option<f64>,
    /// How far `of_now` may be off by chance.
    pub(super) chance: Option<f64>,
    /// Runs that did not get through, and why the first of them did not.
    pub(super) broken: u64,
    pub(super) why: Option<String>,
    /// Whether it takes less time, by more than chance, and breaks no more often; where each run as
    /// things are broke, whether some of its own held.
    pub(super) helps: bool,
}

impl Setting {
    /// Things as they are now, and every setting that is worth a try.
    pub(super) fn all(base: &Unmodified) -> Vec<Self> {
        let mut all = vec![Self {
            name: NOW.to_owned(),
            update: *base,
        }];
        let mut with = |name: String, update: Unmodified| all.push(Self { name, update });
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
        with(RELAY.to_owned(), Unmodified { relays, ..*base });
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

    /// Runs it with a seed, or until `stop` is set.
    pub(super) fn run(&self, seed: u64, stop: &AtomicBool) -> Result<Measured, String> {
        self.update.run(SEED + seed, SECONDS, stop)
    }
}

impl Answer {
    /// What follows from the trials of all settings.
    ///
    /// # Errors
    /// Every run broke, of each setting.
    pub(super) fn of(
        image: u64,
        base: &Unmodified,
        settings: &[Setting],
        trials: &[Trials],
    ) -> Result<Self, Error> {
        let Some((now, others)) = trials.split_first() else {
            return Err(Error::failed("nothing was run".to_owned()));
        };
        if trials.iter().flatten().all(|trial| !is_whole(trial)) {
            return Err(Error::failed(format!(
                "the update does not get through in any of {} runs, with no setting: {}",
                now.len() * trials.len(),
                why_broken(now).unwrap_or_default()
            )));
        }
        let whole: Vec<f64> = times(image, now).flatten().collect();
        let pairs = others.iter().zip(settings.iter().skip(1));
        let tried: Vec<Tried> = pairs
            .map(|(trials, setting)| Tried::of(image, setting, now, trials))
            .collect();
        let awake_s = tried
            .iter()
            .find(|tried| tried.setting == AWAKE)
            .and_then(|tried| tried.seconds);
        let mean = (!whole.is_empty()).then(|| mean_and_deviation(&whole).0);
        let measured = now.iter().flatten();
        let block_longest_s = measured.map(|one| one.block_longest_s).fold(0.0, f64::max);
        let broken = count_broken(now);
        let [best, as_good] = best_of(image, &tried, others);
        Ok(Self {
            image,
            hops: base.hops,
            poll_s: base.poll_s,
            block_bytes: base.block_bytes,
            readers: base.readers,
            frame_loss: base.frame_loss as f64 / 100.0,
            runs: now.len() as u64,
            broken,
            seconds: range(&whole, block_longest_s),
            block_longest_s,
            timeout_s: TIMEOUT_S,
            may_time_out: block_longest_s >= TIMEOUT_S || broken > 0,
            poll_costs_s: mean
                .zip(awake_s)
                .map(|(mean, awake)| (mean - awake).max(0.0)),
            awake_s,
            best: best.into_iter().next(),
            as_good,
            tried,
        })
    }
}

impl Tried {
    fn of(image: u64, setting: &Setting, now: &Trials, trials: &Trials) -> Self {
        let own: Vec<f64> = times(image, trials).flatten().collect();
        let ratio = paired(image, trials, now);
        let [broken, broken_now] = [trials, now].map(count_broken);
        let nothing_held = broken_now == now.len() as u64;
        let is_shorter = |(mean, chance): (f64, f64)| mean <= HELPS && mean + chance < 1.0;
        Self {
            setting: setting.name.clone(),
            seconds: (!own.is_empty()).then(|| mean_and_deviation(&own).0),
            of_now: ratio.map(|(mean, _)| mean),
            chance: ratio.map(|(_, chance)| chance),
            broken,
            why: why_broken(trials),
            helps: match nothing_held {
                true => !own.is_empty(),
                false => ratio.is_some_and(is_shorter) && broken <= broken_now,
            },
        }
    }
}

/// The setting that helps most, and those of which it is not sure that they help less.
fn best_of(image: u64, tried: &[Tried], trials: &[Trials]) -> [Vec<String>; 2] {
    let helping = || tried.iter().zip(trials).filter(|(tried, _)| tried.helps);
    // Where nothing gets through as things are, what breaks least comes first, then what is
    // quickest.
    let order = |tried: &Tried| match (tried.of_now, tried.seconds) {
        (Some(part), _) => (0, part),
        (None, seconds) => (1 + tried.broken, seconds.unwrap_or(f64::INFINITY)),
    };
    let best = helping().min_by(|(a, _), (b, _)| {
        let [(broken, part), (others_broken, others_part)] = [a, b].map(|tried| order(tried));
        broken
            .cmp(&others_broken)
            .then(part.total_cmp(&others_part))
    });
    let Some((best, most)) = best else {
        return [Vec::new(), Vec::new()];
    };
    if best.of_now.is_none() {
        return [vec![best.setting.clone()], Vec::new()];
    }
    let is_as_good = |trials: &Trials| {
        let ratio = paired(image, trials, most);
        ratio.is_none_or(|(mean, chance)| mean - chance <= 1.0)
    };
    let as_good =
        helping().filter(|(tried, trials)| tried.setting != best.setting && is_as_good(trials));
    let as_good = as_good.map(|(tried, _)| tried.setting.clone());
    [vec![best.setting.clone()], as_good.collect()]
}

/// The range of the time, of runs that held: three deviations to either side of their mean. None
/// where there are fewer than [`WHOLE_MIN`].
fn range(whole: &[f64], block_longest_s: f64) -> Option<[f64; 2]> {
    let quickest = whole.iter().copied().fold(f64::INFINITY, f64::min);
    let (mean, deviation) = mean_and_deviation(whole);
    // The shorter an update, the less chance evens out: the deviation is that of runs of SECONDS.
    let shorter = (SECONDS as f64 / mean).max(1.0).sqrt();
    let half = (DEVIATIONS * deviation * shorter).max(mean * HALF_MIN);
    // No update takes less than half of what the quickest took; and each may meet the longest
    // block.
    let range = [
        (mean - half).max(0.5 * quickest),
        (mean + half).max(block_longest_s),
    ];
    (whole.len() >= WHOLE_MIN).then_some(range)
}

/// The mean part that the first took of the second's time, over seeds with which both held, and how
/// far it may be off by chance; none where there are fewer than [`PAIRS_MIN`] such seeds.
fn paired(image: u64, first: &Trials, second: &Trials) -> Option<(f64, f64)> {
    let pairs = times(image, first).zip(times(image, second));
    let ratios: Vec<f64> = pairs
        .filter_map(|(own, other)| Some(own? / other?))
        .collect();
    let (mean, deviation) = mean_and_deviation(&ratios);
    let chance = CHANCE.get(ratios.len().checked_sub(PAIRS_MIN)?)?;
    Some((mean, chance * deviation / (ratios.len() as f64).sqrt()))
}

/// Runs that did not get through ([`is_whole`]).
fn count_broken(trials: &Trials) -> u64 {
    trials.iter().filter(|trial| !is_whole(trial)).count() as u64
}

/// Why the first of them is broken.
fn why_broken(trials: &Trials) -> Option<String> {
    let broken = trials.iter().find(|trial| !is_whole(trial))?;
    Some(match broken {
        Ok(one) if !one.held => "a connection was lost".to_owned(),
        Ok(one) => format!(
            "a block took {:.0} s, and the sender waits {TIMEOUT_S:.0}",
            one.block_longest_s
        ),
        Err(why) => why.clone(),
    })
}

/// Whether an update got through: its connection held, and no block took longer than the sender
/// waits.
fn is_whole(trial: &Result<Measured, String>) -> bool {
    trial
        .as_ref()
        .is_ok_and(|one| one.held && one.block_longest_s < TIMEOUT_S)
}

/// How long the image takes at each run's rate; none where the run broke.
fn times(image: u64, trials: &Trials) -> impl Iterator<Item = Option<f64>> {
    let whole = trials
        .iter()
        .map(|trial| trial.as_ref().ok().filter(|_| is_whole(trial)));
    whole.map(move |one| one.map(|one| image as f64 / one.bytes_per_s))
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

/// Runs of each setting, all with the same seeds.
pub(super) const RUNS: u64 = 8;

/// Behind it the seeds begin: others than those that a scenario begins with.
const SEED: u64 = 7_000;

/// Deviations to either side of the mean.
const DEVIATIONS: f64 = 3.0;

/// Half of the range, of the mean, at least: eight runs may agree by chance.
const HALF_MIN: f64 = 0.05;

/// Runs that must have held for a range.
const WHOLE_MIN: usize = 3;

/// Seeds with which both of two settings must have held for a comparison.
const PAIRS_MIN: usize = 4;

/// Standard errors that a mean of four to eight ratios is off by chance in one of a hundred cases
/// (Student's distribution with three to seven degrees of freedom): one in twenty for all of the
/// five settings that are compared.
const CHANCE: [f64; 5] = [5.841, 4.604, 4.032, 3.707, 3.499];

/// A setting helps that takes no more than this part of the time.
const HELPS: f64 = 0.98;

/// How long ESPHome waits for an answer, s.
const TIMEOUT_S: f64 = 90.0;

const POLL_SHORT_S: f64 = 0.1;

/// A scenario's longest message.
const BLOCK_BYTES_MAX: u64 = 60_000;

const NOW: &str = "as it is";
const AWAKE: &str = "an awake device";
const RELAY: &str = "router --policy relay";

#[cfg(test)]
mod tests;
