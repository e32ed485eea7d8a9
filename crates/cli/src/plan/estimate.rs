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

    /// Runs of 1,000 bytes a second, but for what an air's seed makes of it.
    fn runs(part_of_time: f64, noise: impl Fn(u64) -> f64) -> Trials {
        let rate =
            |seed| 1_000.0 / part_of_time / (1.0 + 0.05 * ((seed % 3) as f64 - 1.0) + noise(seed));
        (1..=RUNS)
            .map(|seed| Ok(measured(rate(seed), 9.0)))
            .collect()
    }

    fn answer(base: &Unmodified, trials: impl Fn(&Setting) -> Trials) -> Result<Answer, Error> {
        let settings = Setting::all(base);
        let trials: Vec<Trials> = settings.iter().map(trials).collect();
        Answer::of(100_000, base, &settings, &trials)
    }

    fn tried<'a>(answer: &'a Answer, setting: &str) -> &'a Tried {
        let mut tried = answer.tried.iter();
        tried.find(|tried| tried.setting == setting).expect(setting)
    }

    #[test]
    fn the_range_holds_the_runs_and_the_best_setting_is_named() {
        let base = Unmodified {
            poll_s: Some(1.0),
            is_leaf: true,
            ..Unmodified::new(1)
        };
        let settings = Setting::all(&base);
        for setting in &settings {
            assert!(setting.update.is_leaf, "all of one mesh");
        }
        let answer = answer(&base, |setting| match setting.update.poll_s {
            None => runs(0.25, |_| 0.0),
            _ => runs(1.0, |_| 0.0),
        });
        let answer = answer.unwrap();
        let [low, high] = answer.seconds.unwrap();
        assert!(low < 95.0 && high > 105.0, "{low} {high}");
        assert!(!answer.may_time_out);
        assert_eq!(answer.best.as_deref(), Some(AWAKE));
        assert!(answer.as_good.is_empty());
        assert!(
            answer
                .poll_costs_s
                .is_some_and(|cost| (74.0..76.0).contains(&cost))
        );
        assert_eq!(answer.tried.len(), settings.len() - 1);
    }

    #[test]
    fn what_may_be_chance_helps_nobody() {
        let base = Unmodified::new(1);
        // 4 % less in the mean, by one run of the eight.
        let lucky = |seed: u64| if seed == 3 { -0.3 } else { 0.0 };
        let chance = answer(&base, |setting| match setting.update.relays {
            true => runs(1.0, lucky),
            false => runs(1.0, |_| 0.0),
        });
        let chance = chance.unwrap();
        let relay = tried(&chance, RELAY);
        assert!(
            relay.of_now.is_some_and(|part| part < HELPS) && !relay.helps,
            "{relay:?}"
        );
        assert_eq!(chance.best, None);
        // The same seeds make the same difference to both: 3 % less with each is no chance.
        let sure = answer(&base, |setting| match setting.update.relays {
            true => runs(0.97, |_| 0.0),
            false => runs(1.0, |_| 0.0),
        });
        assert_eq!(sure.unwrap().best.as_deref(), Some(RELAY));
        // Of two that help alike, both are named.
        let alike = answer(&base, |setting| {
            let wobble = |sign: f64| {
                move |seed: u64| sign * if seed.is_multiple_of(2) { 0.02 } else { -0.02 }
            };
            match (setting.update.relays, setting.update.readers) {
                (true, _) => runs(0.8, wobble(1.0)),
                (_, 0) => runs(0.802, wobble(-1.0)),
                _ => runs(1.0, |_| 0.0),
            }
        });
        let alike = alike.unwrap();
        assert!(
            alike.best.is_some() && alike.as_good.len() == 1,
            "{alike:?}"
        );
    }

    #[test]
    fn broken_runs_are_said_and_lengthen_no_range() {
        let base = Unmodified::new(1);
        let mut broken = runs(1.0, |_| 0.0);
        broken[2] = Err("no block has arrived".to_owned());
        if let Ok(one) = &mut broken[5] {
            (one.held, one.bytes_per_s) = (false, 1.0);
        }
        let now = answer(&base, |setting| match setting.update.relays {
            true => vec![Err("no block has arrived".to_owned()); RUNS as usize],
            false if setting.name == NOW => broken.clone(),
            false => runs(0.5, |_| 0.0),
        });
        let now = now.unwrap();
        assert_eq!((now.runs, now.broken, now.may_time_out), (RUNS, 2, true));
        assert!(now.seconds.unwrap()[1] < 140.0, "{:?}", now.seconds);
        let relay = tried(&now, RELAY);
        assert_eq!(
            (relay.broken, relay.seconds, relay.helps),
            (RUNS, None, false)
        );
        assert!(relay.why.is_some());
        assert!(now.best.is_some());
        // What breaks more often does not help, however quick it is otherwise.
        let rash = answer(&base, |setting| match setting.name == NOW {
            true => runs(1.0, |_| 0.0),
            false => broken
                .iter()
                .cloned()
                .map(|one| {
                    one.map(|one| Measured {
                        bytes_per_s: 9_000.0,
                        ..one
                    })
                })
                .collect(),
        });
        assert_eq!(rash.unwrap().best, None);
    }

    #[test]
    fn a_setting_with_which_a_block_outlasts_the_sender_helps_nobody() {
        let base = Unmodified::new(1);
        let slow = |setting: &Setting| {
            let longer = setting.update.block_bytes > base.block_bytes;
            let (rate, longest_s) = if longer {
                (1_300.0, 120.0)
            } else {
                (1_000.0, 30.0)
            };
            (1..=RUNS).map(|_| Ok(measured(rate, longest_s))).collect()
        };
        let slow = answer(&base, slow).unwrap();
        assert_eq!(slow.best, None);
        let longer = slow.tried.iter().find(|tried| tried.broken > 0).unwrap();
        assert_eq!(longer.broken, RUNS);
        assert!(longer.why.as_ref().unwrap().contains("120 s"), "{longer:?}");
        assert!(!slow.may_time_out);
    }

    #[test]
    fn where_nothing_gets_through_the_setting_that_does_is_named() {
        let base = Unmodified {
            poll_s: Some(1.0),
            is_leaf: true,
            ..Unmodified::new(1)
        };
        let broken = || vec![Err("no block has arrived".to_owned()); RUNS as usize];
        let now = answer(&base, |setting| match setting.update.poll_s {
            None => runs(0.25, |_| 0.0),
            _ if setting.update.relays => {
                let mut most = runs(0.2, |_| 0.0);
                most[0] = Err("no block has arrived".to_owned());
                most
            }
            _ => broken(),
        });
        let now = now.unwrap();
        assert_eq!(
            (now.broken, now.seconds, now.poll_costs_s),
            (RUNS, None, None)
        );
        assert_eq!(
            now.best.as_deref(),
            Some(AWAKE),
            "the one that breaks least"
        );
        assert!(tried(&now, RELAY).helps);
    }

    #[test]
    fn few_runs_give_no_range_and_prove_nothing() {
        let base = Unmodified::new(1);
        let but = |whole: usize, mut trials: Trials| {
            let broken = Err("no block has arrived".to_owned());
            trials
                .iter_mut()
                .skip(whole)
                .for_each(|trial| *trial = broken.clone());
            trials
        };
        for (whole, has_range, is_compared) in
            [(2, false, false), (3, true, false), (4, true, true)]
        {
            let few = answer(&base, |setting| match setting.update.relays {
                true => but(whole, runs(0.96, |_| 0.0)),
                false => but(whole, runs(1.0, |_| 0.0)),
            });
            let few = few.unwrap();
            assert_eq!(few.seconds.is_some(), has_range, "{whole}");
            assert_eq!(tried(&few, RELAY).helps, is_compared, "{whole}");
        }
    }

    /// One block of the longest kind, and the shorter an update the less even its time.
    #[test]
    fn a_short_update_has_a_wide_range() {
        let (trials, base) = (runs(1.0, |_| 0.0), Unmodified::new(1));
        let settings = [Setting {
            name: NOW.to_owned(),
            update: base,
        }];
        let width = |image| {
            let answer =
                Answer::of(image, &base, &settings, std::slice::from_ref(&trials)).unwrap();
            let [low, high] = answer.seconds.unwrap();
            (high - low) / (high + low)
        };
        assert!(width(1_000_000) < 0.15, "{}", width(1_000_000));
        assert!(width(20_000) > 0.3, "{}", width(20_000));
        let tiny = Answer::of(1_000, &base, &settings, &[trials]).unwrap();
        assert_eq!(tiny.seconds.unwrap()[1], 9.0);
    }

    /// Whole updates by other seeds than a plan's: of several lengths, over several hops, in
    /// several airs.
    ///
    /// `cargo test --release -p motet-cli --lib -- --ignored --nocapture no_plan_has_run`
    #[test]
    #[ignore = "ninety runs of the lab: minutes"]
    fn updates_that_no_plan_has_run_take_as_long_as_it_says() {
        let of = |hops, readers, frame_loss, poll_s: Option<f64>, block_bytes| Unmodified {
            readers,
            frame_loss,
            poll_s,
            is_leaf: poll_s.is_some(),
            block_bytes,
            ..Unmodified::new(hops)
        };
        let updates = [
            (900_000, of(1, 12, 3, None, 8_192)),
            (900_000, of(2, 12, 3, None, 8_192)),
            (900_000, of(3, 12, 3, None, 8_192)),
            (700_000, of(4, 12, 3, None, 8_192)),
            (450_000, of(3, 12, 10, None, 8_192)),
            (900_000, of(3, 0, 3, None, 8_192)),
            (900_000, of(1, 12, 3, Some(0.5), 8_192)),
            (300_000, of(2, 0, 3, Some(1.0), 8_192)),
            (600_000, of(2, 12, 3, None, 32_768)),
            (900_000, of(5, 12, 0, None, 8_192)),
        ];
        let stop = AtomicBool::new(false);
        let (mut inside, mut widest) = (0, 0.0_f64);
        for (number, (image, update)) in (1..).zip(updates) {
            let now = Setting {
                name: NOW.to_owned(),
                update,
            };
            let trials: Trials = (1..=RUNS).map(|seed| now.run(seed, &stop)).collect();
            let answer = Answer::of(image, &update, &[now], &[trials]).unwrap();
            let [low, high] = answer.seconds.unwrap();
            let mean = f64::midpoint(low, high);
            let whole = update.run(100 + number, mean.ceil() as u64, &stop);
            let took = image as f64 / whole.unwrap().bytes_per_s;
            let width = (high - low) / 2.0 / mean;
            println!(
                "{image} bytes, {} hops: {low:.1} to {high:.1} s, took {took:.1}",
                update.hops
            );
            inside += u64::from((low..=high).contains(&took));
            widest = widest.max(width);
        }
        println!(
            "{inside} of 10 inside, the widest range is ± {:.1} %",
            100.0 * widest
        );
        assert!(inside >= 9 && widest <= 0.25, "{inside} {widest}");
    }

    #[test]
    fn what_carries_nothing_is_said() {
        let failed = answer(&Unmodified::new(1), |_| {
            vec![Err("no block has arrived".to_owned()); RUNS as usize]
        });
        assert!(
            failed
                .unwrap_err()
                .to_string()
                .contains("no block has arrived")
        );
    }
}
