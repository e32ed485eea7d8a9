//! Intervals that hold the true value as often as they say, and verdicts by them.

use std::collections::BTreeSet;

use super::super::row::Point;
use super::super::{Effort, all};
use super::*;
use crate::stats::{Interval, mean, median};
use crate::streams::{Purpose, stream};

fn row(value: f64) -> Row {
    Row::new("id", Point::default(), ("goodput", "kb/s"), value)
}

/// The mean of `values`, judged by `criterion` in the form that `is_full` says.
fn judged_in(is_full: bool, values: &[f64], criterion: impl Fn(Row) -> Row) -> Row {
    let rows_of = |sample: &[usize]| {
        let chosen: Vec<f64> = sample.iter().map(|seed| values[*seed]).collect();
        vec![criterion(row(mean(&chosen)))]
    };
    judge(values.len() / 2, is_full, rows_of).remove(0)
}

fn judged(values: &[f64], criterion: impl Fn(Row) -> Row) -> Row {
    judged_in(true, values, criterion)
}

#[test]
fn an_interval_that_straddles_the_limit_fails() {
    // Means of 10.5 and intervals of ± 1.40: a least value of 10 lies within them.
    let values = [10.0, 10.5, 11.0, 11.0, 10.0, 10.5];
    let row = judged(&values, |row| row.at_least(10.0));
    assert_eq!((row.value, row.runs), (10.5, 6));
    assert_eq!(row.pass(), Some(false));
    assert_eq!(row.meets(), Some(true), "the mean alone says nothing");
    assert_eq!(judged(&values, |row| row.at_least(9.0)).pass(), Some(true));
    assert_eq!(judged(&values, |row| row.at_most(11.0)).pass(), Some(false));
    assert_eq!(judged(&values, |row| row.at_most(12.0)).pass(), Some(true));
}

#[test]
fn few_runs_leave_a_verdict_to_the_full_form_where_they_bound_too_loosely() {
    let values = [10.0, 10.5, 11.0, 11.0, 10.0, 10.5];
    let quick = |limit| judged_in(false, &values, |row| row.at_least(limit));
    assert_eq!(quick(9.0).pass(), Some(true));
    assert_eq!(quick(12.0).pass(), Some(false), "no run comes near");
    let open = quick(10.0);
    assert_eq!((open.pass(), open.meets()), (None, None));
    let text = open.criterion.unwrap().text;
    assert_eq!(text, "judged with --full: at least 10");
}

#[test]
fn one_set_that_fails_is_enough() {
    // Each set has an interval of ± 0.14.
    let set = |centre: f64| [-0.05, 0.0, 0.05].map(|off| centre + off);
    let both = |a: f64, b: f64| [set(a), set(b)].concat();
    let holds = |values: &[f64]| judged(values, |row| row.at_least(10.0)).pass();
    assert_eq!(holds(&both(10.5, 10.5)), Some(true));
    assert_eq!(holds(&both(10.5, 9.9)), Some(false), "the second set");
    assert_eq!(holds(&both(9.9, 10.5)), Some(false), "the first set");
    let row = judged(&both(11.0, 9.9), |row| row.at_least(9.5));
    assert_eq!(row.sets.map(|set| set.value), [11.0, 9.9]);
}

#[test]
fn a_single_run_has_no_interval_and_shows_nothing() {
    let row = judged(&[10.0, 10.0], |row| row.at_least(1.0));
    assert_eq!(row.sets.map(|set| set.interval), [None; 2]);
    assert_eq!(row.pass(), Some(false));
    let quick = judged_in(false, &[10.0, 10.0], |row| row.at_least(1.0));
    assert_eq!(quick.pass(), None);
    let same = judged(&[10.0; 4], |row| row.at_least(10.0));
    assert_eq!(same.pass(), Some(true), "runs that do not differ");
}

#[test]
fn a_mean_has_students_interval_and_a_ratio_has_one_too() {
    let values = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0];
    let row = judged(&values, |row| row);
    let student = crate::stats::Stat::of(&values).ci95.unwrap();
    assert!((row.ci95().unwrap() / student - 1.0).abs() < 1e-3);
    // A ratio of two figures that rise and fall together has a narrow interval.
    let twice = |sample: &[usize]| {
        let of = |factor: f64| -> f64 {
            let chosen = sample.iter().map(|seed| factor * values[*seed]);
            mean(&chosen.collect::<Vec<_>>())
        };
        vec![Row::new(
            "id",
            Point::default(),
            ("ratio", "1"),
            of(2.0) / of(1.0),
        )]
    };
    let ratio = judge(3, true, twice).remove(0);
    assert_eq!((ratio.value, ratio.ci95()), (2.0, Some(0.0)));
}

#[test]
fn the_worst_of_all_runs_is_shown_and_never_judged() {
    let worst = |row: Row| row.at_most(12.0).extreme();
    let row = judged(&[10.0, 10.5, 11.0, 11.0, 10.0, 10.5], worst);
    assert_eq!((row.interval, row.pass(), row.meets()), (None, None, None));
    let text = row.criterion.unwrap().text;
    assert_eq!(text, "shown, the worst of all runs: at most 12");
}

/// A distribution, the number of runs in a sample, and the true mean and median.
type Law = fn(&mut dyn FnMut() -> f64) -> f64;

/// A normal variate of two uniform ones (Box and Muller).
fn normal(uniform: &mut dyn FnMut() -> f64) -> f64 {
    let [a, b] = [uniform(), uniform()];
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

fn lognormal(uniform: &mut dyn FnMut() -> f64) -> f64 {
    (0.25 * normal(uniform)).exp()
}

fn exponential(uniform: &mut dyn FnMut() -> f64) -> f64 {
    -(1.0 - uniform()).ln()
}

fn level(uniform: &mut dyn FnMut() -> f64) -> f64 {
    uniform()
}

/// The part of samples of `runs` values whose interval holds `truth`.
fn coverage(
    law: Law,
    runs: usize,
    truth: f64,
    interval: impl Fn(&[f64]) -> Option<Interval>,
) -> f64 {
    let mut rng = stream(7, runs as u32, Purpose::Application);
    let mut uniform = move || f64::from(rng.next_u32()) / 2f64.powi(32);
    let holds = |_: &usize| {
        let values: Vec<f64> = (0..runs).map(|_| law(&mut uniform)).collect();
        let Interval { low, high } = interval(&values).expect("enough runs");
        (low..=high).contains(&truth)
    };
    (0..tries(runs)).filter(holds).count() as f64 / tries(runs) as f64
}

/// Samples of so many runs: fewer where each is large.
fn tries(runs: usize) -> usize {
    if runs <= 40 { 4_000 } else { 1_000 }
}

/// Runs of a set, and of both sets, of every form of every experiment. More than 40 have means and
/// figures that follow from them alone.
fn sizes() -> BTreeSet<usize> {
    let efforts = [Effort::Quick, Effort::Full];
    let budgets = all()
        .into_iter()
        .flat_map(|experiment| efforts.map(|effort| experiment.budget(effort)));
    let runs = budgets.map(|budget| budget.runs as usize);
    runs.flat_map(|runs| [runs, 2 * runs]).collect()
}

#[test]
fn sizes_are_those_of_experiments() {
    let sizes = sizes();
    assert!(sizes.contains(&3) && sizes.contains(&200), "{sizes:?}");
}

#[test]
fn intervals_of_means_hold_the_mean_as_often_as_they_say() {
    let laws: [(Law, f64); 3] = [
        (normal, 0.0),
        (lognormal, (0.25f64.powi(2) / 2.0).exp()),
        (level, 0.5),
    ];
    for (law, truth) in laws {
        for runs in sizes() {
            let part = coverage(law, runs, truth, |values| {
                let places: Vec<usize> = (0..values.len()).collect();
                let rows_of = |sample: &[usize]| {
                    let chosen: Vec<f64> = sample.iter().map(|place| values[*place]).collect();
                    vec![row(mean(&chosen))]
                };
                estimates(&places, &rows_of)[0].interval
            });
            assert!((0.93..=0.97).contains(&part), "{runs} runs: {part}");
        }
    }
}

#[test]
fn intervals_of_medians_hold_the_median_as_often_as_they_say() {
    let laws: [(Law, f64); 4] = [
        (normal, 0.0),
        (lognormal, 1.0),
        (exponential, 2f64.ln()),
        (level, 0.5),
    ];
    for (law, truth) in laws {
        for runs in sizes().into_iter().filter(|runs| (5..=40).contains(runs)) {
            let part = coverage(law, runs, truth, |values| {
                let places: Vec<usize> = (0..values.len()).collect();
                let rows_of = |sample: &[usize]| {
                    let chosen: Vec<f64> = sample.iter().map(|place| values[*place]).collect();
                    vec![row(median(&mut chosen.clone())).median_of(chosen)]
                };
                estimates(&places, &rows_of)[0].interval
            });
            assert!((0.93..=0.97).contains(&part), "{runs} runs: {part}");
        }
    }
}

/// The ends are those of several intervals, so that less than 95 % would be a fault, and a little
/// more is the price of not knowing how near the figures are.
#[test]
fn intervals_of_the_least_hold_it_however_near_the_others_are() {
    for others in [0.0, 0.3, 1.0, 3.0] {
        for runs in sizes().into_iter().filter(|runs| *runs <= 40) {
            // Five figures a run: of one the mean is 0, of the others it is `others`.
            let law = normal;
            let mut rng = stream(11, runs as u32, Purpose::Application);
            let mut uniform = move || f64::from(rng.next_u32()) / 2f64.powi(32);
            let holds = |_: &usize| {
                let mut value = |mean| mean + law(&mut uniform);
                let run = |_| [0.0, others, others, others, others].map(&mut value);
                let values: Vec<[f64; 5]> = (0..runs).map(run).collect();
                let places: Vec<usize> = (0..runs).collect();
                let rows_of = |sample: &[usize]| {
                    let of = |figure: usize| {
                        let chosen: Vec<f64> = sample.iter().map(|p| values[*p][figure]).collect();
                        mean(&chosen)
                    };
                    vec![row(f64::NAN).least_of((0..5).map(of).collect())]
                };
                let Interval { low, high } = estimates(&places, &rows_of)[0].interval.unwrap();
                (low..=high).contains(&0.0)
            };
            let part = (0..tries(runs)).filter(holds).count() as f64 / tries(runs) as f64;
            assert!(
                (0.93..=0.995).contains(&part),
                "{runs} runs, {others}: {part}"
            );
        }
    }
}

#[test]
fn the_greatest_is_the_least_turned_over() {
    let figures = [(1.0, vec![0.9, 1.1, 1.0]), (0.5, vec![0.4, 0.6, 0.5])];
    let negated = figures
        .clone()
        .map(|(value, without)| (-value, without.iter().map(|v| -v).collect()));
    let least = Estimate::least(&negated, 3);
    let greatest = Estimate::greatest(&figures, 3);
    assert_eq!(greatest.value, 1.0);
    let turned = least.interval.map(|Interval { low, high }| Interval {
        low: -high,
        high: -low,
    });
    assert_eq!(greatest.interval, turned);
}

#[test]
fn four_runs_bound_no_median() {
    assert_eq!(Interval::of_median(&[1.0, 2.0, 3.0, 4.0]), None);
    let five = Interval::of_median(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap();
    assert_eq!((five.low, five.high), (1.0, 5.0));
}
