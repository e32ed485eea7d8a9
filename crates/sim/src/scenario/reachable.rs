//! The goodput that the one flow of a run reaches with the best pace and window of a search.
//!
//! Purpose: beside the bound, which no run exceeds and perhaps none comes near, what the same
//! network carries with times that were found by trying. Of the gap between the goodput and the
//! bound it is the part that another pace would close.
//! Method: the same scenario with the same seed, cut to [`TRIAL_S`] behind its warm-up, with one
//! setting changed after another, each time the best kept: the part of the pace that is measured,
//! times by hand for a hop and for retries, the window. The whole run with the best setting then
//! counts, or the run itself where that carried more. The search draws nothing, so that it gives
//! the same each time.
//! Left out: settings of a single node, schedules, and whatever else changes the bound: frames,
//! compression, forwarding, channels, and backoffs.

use std::sync::Arc;

use motet::time::Duration;

use super::model::Scenario;
use super::run::{Captures, Watch};
use super::sweep::{Plan, run};
use crate::parallel;
use crate::scenario::RunResult;

/// What a trial changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Setting {
    pace: Pace,
    /// Buffers of TCP, in parts of the scenario's.
    window_percent: usize,
}

/// How all nodes keep frames apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    /// As the scenario has it.
    Own,
    /// So much of the pace that is measured, %.
    Measured(u8),
    /// Times by hand: the hold rule's for a hop, µs, and the longest wait before a retry, ms.
    ByHand(u64, u64),
}

impl Setting {
    /// As the scenario has it.
    const OWN: Self = Self {
        pace: Pace::Own,
        window_percent: 100,
    };

    /// The scenario with this setting, for no longer than `duration_s`.
    fn of(self, scenario: &Scenario, duration_s: f64) -> Scenario {
        let mut scenario = scenario.clone();
        scenario.timing.duration_s = duration_s;
        for node in &mut scenario.network.nodes {
            match self.pace {
                Pace::Own => {}
                Pace::Measured(percent) => node.pace_percent = percent,
                Pace::ByHand(hold_us, retry_ms) => {
                    node.pace_percent = 0;
                    node.pacing_step = Duration::from_micros(hold_us);
                    // As a scenario may have it: no wait outlasts the frame.
                    let retry = Duration::from_millis(retry_ms);
                    node.mac.retry_delay_max = retry.min(node.mac.frame_age_max);
                }
            }
            node.window_segments = self.window(node.window_segments);
        }
        for stack in &mut scenario.stacks {
            stack.window_segments = self.window(stack.window_segments);
        }
        scenario
    }

    fn window(self, segments: usize) -> usize {
        let scaled = segments * self.window_percent / 100;
        scaled.clamp(1, segments.max(WINDOW_MAX))
    }
}

/// The best setting so far, and its goodput in a trial.
#[derive(Clone, Copy)]
struct Best {
    setting: Setting,
    kbps: f64,
}

/// A search over the settings of one run.
struct Search<'a> {
    scenario: &'a Scenario,
    seed: u64,
    trial_s: f64,
    watch: &'a Watch<'a>,
}

impl Search<'_> {
    /// The goodput of a run with this setting, kb/s; none of a run that failed.
    fn kbps(&self, setting: Setting, duration_s: f64) -> Option<f64> {
        if self.watch.stops() {
            return None;
        }
        let scenario = Arc::new(setting.of(self.scenario, duration_s));
        let result = run(scenario, self.seed, self.watch, Captures::default());
        result.complete.then(|| result.goodput_kbps())
    }

    /// The best of `settings`, or `before` where none is better. Of equal ones the first counts.
    fn best(&self, before: Best, settings: Vec<Setting>) -> Best {
        let tried = parallel::map(settings, |setting| {
            let kbps = self.kbps(setting, self.trial_s)?;
            Some(Best { setting, kbps })
        });
        let better = |best: Best, tried: Best| match tried.kbps > best.kbps {
            true => tried,
            false => best,
        };
        tried.into_iter().flatten().fold(before, better)
    }

    /// The best setting that the trials find.
    fn setting(&self) -> Setting {
        let first = Best {
            setting: Setting::OWN,
            kbps: self.kbps(Setting::OWN, self.trial_s).unwrap_or(0.0),
        };
        let paced = |pace: Pace| Setting {
            pace,
            ..Setting::OWN
        };
        let is_mesh = self.scenario.network.ble.is_none();
        let mut best = first;
        if is_mesh && self.is_measured() {
            let percents = PERCENTS.iter().map(|percent| Pace::Measured(*percent));
            best = self.best(best, percents.map(paced).collect());
        }
        if is_mesh {
            // The bound of nodes that measure their pace is the higher one: their backoffs are
            // shorter.
            let holds = HOLDS_US.iter().map(|hold| Pace::ByHand(*hold, RETRY_MS));
            let by_hand = self.best(Best { kbps: 0.0, ..first }, holds.map(paced).collect());
            let Pace::ByHand(hold_us, _) = by_hand.setting.pace else {
                return best.setting;
            };
            let retries = RETRIES_MS.iter().map(|retry| Pace::ByHand(hold_us, *retry));
            let by_hand = self.best(by_hand, retries.map(paced).collect());
            if by_hand.kbps > best.kbps {
                best = by_hand;
            }
        }
        let pace = best.setting.pace;
        let windows = WINDOWS_PERCENT.iter().map(|percent| Setting {
            pace,
            window_percent: *percent,
        });
        self.best(best, windows.collect()).setting
    }

    fn is_measured(&self) -> bool {
        let mut nodes = self.scenario.network.nodes.iter();
        nodes.any(|node| node.pace_percent > 0)
    }
}

impl Plan {
    /// Searches what each run with a bound can reach, and notes it there. A run that failed has
    /// none, and neither have those that `watch` stopped.
    pub fn search_reachable(&self, results: &mut [RunResult], watch: &Watch<'_>) {
        for result in results {
            let point = self.points.get(result.point);
            let bounded = result.bound_kbps.filter(|_| result.complete).zip(point);
            let Some((bound, point)) = bounded else {
                continue;
            };
            let scenario = &*point.scenario;
            let search = Search {
                scenario,
                seed: result.seed,
                trial_s: trial_s(scenario),
                watch,
            };
            let setting = search.setting();
            let own = result.goodput_kbps();
            let best = match setting {
                Setting::OWN => Some(own),
                _ => search.kbps(setting, scenario.timing.duration_s),
            };
            if watch.stops() {
                return;
            }
            // A longer window holds more when the warm-up ends, which the bound of this run leaves
            // out.
            result.reachable_kbps = Some(best.map_or(own, |best| best.max(own)).min(bound));
        }
    }

    /// Seconds of virtual time that [`Self::search_reachable`] takes, at most.
    pub fn search_seconds(&self, results: &[RunResult]) -> f64 {
        let bounded = results.iter().filter(|run| run.bound_kbps.is_some());
        let scenarios = bounded.filter_map(|run| Some(&self.points.get(run.point)?.scenario));
        let of_one = |scenario: &Arc<Scenario>| {
            trial_s(scenario) * TRIALS_MAX as f64 + scenario.timing.duration_s
        };
        scenarios.map(of_one).sum()
    }
}

/// How long a trial of a scenario is, its warm-up included.
fn trial_s(scenario: &Scenario) -> f64 {
    let timing = &scenario.timing;
    let starts = scenario.flows.iter().map(|flow| flow.start_s);
    let begun = starts.fold(timing.warmup_s, f64::max);
    timing.duration_s.min(begun + TRIAL_S)
}

/// The measured time of a trial, s: some hundred segments over three hops.
const TRIAL_S: f64 = 15.0;

/// Parts of the measured pace that are tried, %.
const PERCENTS: [u8; 6] = [70, 80, 90, 110, 120, 140];

/// Times by hand for a hop that are tried, µs: from none to twice the longest frame.
const HOLDS_US: [u64; 9] = [0, 2_000, 3_000, 3_500, 4_000, 5_000, 6_000, 7_000, 8_000];

/// The longest wait before a retry while times for a hop are tried, ms.
const RETRY_MS: u64 = 5;

/// The waits before a retry that are tried then, ms.
const RETRIES_MS: [u64; 3] = [2, 10, 20];

/// Windows that are tried, in parts of the scenario's, %.
const WINDOWS_PERCENT: [usize; 3] = [75, 150, 200];

/// No window grows beyond this, in segments: the most that a scenario may have.
const WINDOW_MAX: usize = 32;

/// The run as it is, and each setting.
const TRIALS_MAX: usize =
    1 + PERCENTS.len() + HOLDS_US.len() + RETRIES_MS.len() + WINDOWS_PERCENT.len();
