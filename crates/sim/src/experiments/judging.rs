//! Figures with their intervals, over all seeds and over each of two disjoint sets.
//!
//! Purpose: an experiment derives its rows from a sample of seeds. This module computes the rows
//! for all seeds and for either set. It computes them again with each seed left out in turn: the
//! spread of these rows gives the interval of every smooth figure, ratios and differences included
//! (the jackknife). For a plain mean that is Student's interval. For medians the jackknife is
//! inconsistent: their interval lies between two of the runs. The least and the greatest of all
//! runs have none.
//! Left out: whether a criterion is met; the row knows. The intervals themselves; see `stats`.
//! Source: Efron and Stein, *The jackknife estimate of variance*, 1981; Efron, *The Jackknife, the
//! Bootstrap and Other Resampling Plans*, 1982, section 3.4.

use super::row::{Row, Statistic};
use crate::stats::Estimate;

/// The rows over `2 * per_set` seeds, each with its interval and with its value over the first
/// and over the second set.
///
/// `rows_of` gives the rows that follow from a sample of seeds, numbered from 0: the same rows
/// in the same order for every sample. A criterion that `per_set` runs leave open is deferred
/// unless `is_full`: the full form has more runs.
pub(super) fn judge(
    per_set: usize,
    is_full: bool,
    rows_of: impl Fn(&[usize]) -> Vec<Row>,
) -> Vec<Row> {
    let seeds: Vec<usize> = (0..2 * per_set).collect();
    let (first, second) = seeds.split_at(per_set);
    let rows = rows_of(&seeds);
    let [all, first, second] = [&seeds, first, second].map(|sample| estimates(sample, &rows_of));
    debug_assert!(rows.len() == first.len() && rows.len() == second.len());
    let sets = first.into_iter().zip(second).map(|(a, b)| [a, b]);
    rows.into_iter()
        .zip(all)
        .zip(sets)
        .map(|((row, all), sets)| {
            let row = row.measured(all, sets);
            match is_full {
                true => row,
                false => row.deferred_where_open(),
            }
        })
        .collect()
}

/// The figure of each row over `sample`, with its interval.
fn estimates(sample: &[usize], rows_of: &impl Fn(&[usize]) -> Vec<Row>) -> Vec<Estimate> {
    let without: Vec<Vec<Row>> = match sample.len() {
        0 | 1 => Vec::new(),
        len => (0..len)
            .map(|place| {
                let [before, after] = [&sample[..place], &sample[place + 1..]];
                rows_of(&[before, after].concat())
            })
            .collect(),
    };
    // Each of a row's figures, and the same with each seed left out in turn.
    let apart = |figures: &[f64], number: usize| -> Vec<(f64, Vec<f64>)> {
        let without = |place: usize| {
            let figure = |rows: &Vec<Row>| match rows[number].statistic() {
                Statistic::Least(figures) | Statistic::Greatest(figures) => figures[place],
                Statistic::Smooth | Statistic::Median(_) | Statistic::Unbounded => f64::NAN,
            };
            without.iter().map(figure).collect()
        };
        let figures = figures.iter().enumerate();
        figures
            .map(|(place, figure)| (*figure, without(place)))
            .collect()
    };
    let estimate = |(number, row): (usize, Row)| match row.statistic() {
        Statistic::Smooth => {
            let values = without.iter().map(|rows| rows[number].value);
            Estimate::jackknife(row.value, &values.collect::<Vec<_>>(), sample.len())
        }
        Statistic::Median(values) => Estimate::of_median(values),
        Statistic::Least(figures) => Estimate::least(&apart(figures, number), sample.len()),
        Statistic::Greatest(figures) => Estimate::greatest(&apart(figures, number), sample.len()),
        Statistic::Unbounded => Estimate::unbounded(row.value, sample.len()),
    };
    rows_of(sample)
        .into_iter()
        .enumerate()
        .map(estimate)
        .collect()
}

#[cfg(test)]
#[path = "tests/judging.rs"]
mod tests;
