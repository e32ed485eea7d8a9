//! Figures with their intervals, over all seeds and over each of two disjoint sets.
//!
//! Purpose: an experiment derives its rows from a sample of seeds. This module computes the rows
//! for all seeds and for either set. It computes them again with each seed left out in turn: the
//! spread of these rows gives the interval of every figure, ratios and differences included (the
//! jackknife). For a plain mean that is Student's interval.
//! Left out: whether a criterion is met; the row knows.
//! Source: Efron and Stein, *The jackknife estimate of variance*, 1981.

use super::row::Row;
use crate::stats::Stat;

/// The rows over `2 * per_set` seeds, each with its interval and with its value over the first
/// and over the second set.
///
/// `rows_of` gives the rows that follow from a sample of seeds, numbered from 0: the same rows
/// in the same order for every sample.
pub(super) fn judge(per_set: usize, rows_of: impl Fn(&[usize]) -> Vec<Row>) -> Vec<Row> {
    let seeds: Vec<usize> = (0..2 * per_set).collect();
    let (first, second) = seeds.split_at(per_set);
    let rows = rows_of(&seeds);
    let [all, first, second] = [&seeds, first, second].map(|sample| stats(sample, &rows_of));
    debug_assert!(rows.len() == first.len() && rows.len() == second.len());
    let sets = first.into_iter().zip(second).map(|(a, b)| [a, b]);
    rows.into_iter()
        .zip(all)
        .zip(sets)
        .map(|((row, all), sets)| row.measured(all, sets))
        .collect()
}

/// The figure of each row over `sample`, with its interval.
fn stats(sample: &[usize], rows_of: &impl Fn(&[usize]) -> Vec<Row>) -> Vec<Stat> {
    let without: Vec<Vec<Row>> = match sample.len() {
        0 | 1 => Vec::new(),
        len => (0..len)
            .map(|place| {
                let [before, after] = [&sample[..place], &sample[place + 1..]];
                rows_of(&[before, after].concat())
            })
            .collect(),
    };
    let stat = |(number, row): (usize, Row)| {
        let values = without.iter().map(|rows| rows[number].value);
        Stat::jackknife(row.value, &values.collect::<Vec<_>>(), sample.len())
    };
    rows_of(sample).into_iter().enumerate().map(stat).collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::Point;
    use super::*;
    use crate::stats::mean;

    fn row(value: f64) -> Row {
        Row::new("id", Point::default(), ("goodput", "kb/s"), value)
    }

    /// The mean of `values` and its ratio to ten, judged by `criterion`.
    fn judged(values: &[f64], criterion: impl Fn(Row) -> Row) -> Row {
        let rows_of = |sample: &[usize]| {
            let chosen: Vec<f64> = sample.iter().map(|seed| values[*seed]).collect();
            vec![criterion(row(mean(&chosen)))]
        };
        judge(values.len() / 2, rows_of).remove(0)
    }

    #[test]
    fn an_interval_that_straddles_the_limit_fails() {
        // Means of 10.5 and intervals of ± 1.24: a least value of 10 lies within them.
        let values = [10.0, 10.5, 11.0, 11.0, 10.0, 10.5];
        let row = judged(&values, |row| row.at_least(10.0));
        assert_eq!((row.value, row.runs), (10.5, 6));
        assert_eq!(row.pass(), Some(false));
        assert_eq!(row.meets(), Some(true), "the mean alone says nothing");
        assert_eq!(judged(&values, |row| row.at_least(9.2)).pass(), Some(true));
        assert_eq!(judged(&values, |row| row.at_most(11.0)).pass(), Some(false));
        assert_eq!(judged(&values, |row| row.at_most(11.8)).pass(), Some(true));
    }

    #[test]
    fn one_set_that_fails_is_enough() {
        // Each set has an interval of ± 0.124.
        let set = |centre: f64| [-0.05, 0.0, 0.05].map(|off| centre + off);
        let both = |a: f64, b: f64| [set(a), set(b)].concat();
        let holds = |values: &[f64]| judged(values, |row| row.at_least(10.0)).pass();
        assert_eq!(holds(&both(10.5, 10.5)), Some(true));
        assert_eq!(holds(&both(10.5, 9.9)), Some(false), "the second set");
        assert_eq!(holds(&both(9.9, 10.5)), Some(false), "the first set");
        let row = judged(&both(11.0, 9.9), |row| row.at_least(9.5));
        assert_eq!(row.sets.map(|set| set.mean), [11.0, 9.9]);
    }

    #[test]
    fn a_single_run_has_no_interval_and_shows_nothing() {
        let row = judged(&[10.0, 10.0], |row| row.at_least(1.0));
        assert_eq!(row.sets.map(|set| set.ci95), [None; 2]);
        assert_eq!(row.pass(), Some(false));
        let same = judged(&[10.0; 4], |row| row.at_least(10.0));
        assert_eq!(same.pass(), Some(true), "runs that do not differ");
    }

    #[test]
    fn a_mean_has_students_interval_and_a_ratio_has_one_too() {
        let values = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0];
        let row = judged(&values, |row| row);
        let student = Stat::of(&values).ci95.unwrap();
        assert!((row.ci95.unwrap() / student - 1.0).abs() < 1e-3);
        // A ratio of two figures that rise and fall together has a narrow interval.
        let twice = |sample: &[usize]| {
            let of = |factor: f64| -> f64 {
                let chosen = sample.iter().map(|seed| factor * values[*seed]);
                mean(&chosen.collect::<Vec<_>>())
            };
            vec![row_of_ratio(of(2.0) / of(1.0))]
        };
        let ratio = judge(3, twice).remove(0);
        assert_eq!((ratio.value, ratio.ci95), (2.0, Some(0.0)));
    }

    fn row_of_ratio(value: f64) -> Row {
        Row::new("id", Point::default(), ("ratio", "1"), value)
    }
}
