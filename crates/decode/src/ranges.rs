//! A set of numbers kept as ranges: the bytes of a stream or datagram that have been seen.

/// Disjoint half-open ranges in ascending order, none touching the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    list: Vec<(i64, i64)>,
}

impl Ranges {
    /// Adds `start..end`; returns how many of its numbers were not in the set before.
    pub(super) fn insert(&mut self, start: i64, end: i64) -> u64 {
        if start >= end {
            return 0;
        }
        // Everything that overlaps or touches becomes one range.
        let from = self.list.partition_point(|&(_, right)| right < start);
        let to = self.list.partition_point(|&(left, _)| left <= end);
        let merged = self.list.get(from..to).unwrap_or_default();
        let covered: i64 = merged
            .iter()
            .map(|&(left, right)| (right.min(end) - left.max(start)).max(0))
            .sum();
        let union = merged
            .iter()
            .fold((start, end), |(low, high), &(left, right)| {
                (low.min(left), high.max(right))
            });
        self.list.splice(from..to, [union]);
        // A hostile capture could make a range of every other byte.
        if self.list.len() > RANGES_MAX {
            self.list.remove(0);
        }
        u64::try_from(end - start - covered).unwrap_or(0)
    }

    /// How many numbers are in the set.
    pub(super) fn len(&self) -> u64 {
        self.list
            .iter()
            .map(|&(left, right)| u64::try_from(right - left).unwrap_or(0))
            .sum()
    }

    /// How many numbers between the first and the last are not in the set.
    pub(super) fn missing(&self) -> u64 {
        self.list
            .array_windows::<2>()
            .map(|&[(_, before), (after, _)]| u64::try_from(after - before).unwrap_or(0))
            .sum()
    }

    /// The end of the last range.
    pub(super) fn end(&self) -> Option<i64> {
        self.list.last().map(|&(_, right)| right)
    }

    /// The ranges.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.list.iter().copied()
    }
}

/// Ranges kept of one set; the lowest is forgotten beyond that.
const RANGES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(pieces in prop::collection::vec((0i64..200, 0i64..30), 0..40)) {
            let mut ranges = Ranges::default();
            let mut naive = BTreeSet::new();
            for (start, len) in pieces {
                let before = naive.len();
                naive.extend(start..start + len);
                prop_assert_eq!(ranges.insert(start, start + len), (naive.len() - before) as u64);
                prop_assert_eq!(ranges.len(), naive.len() as u64);
                prop_assert_eq!(ranges.end(), naive.last().map(|last| last + 1));
                let span = naive.last().zip(naive.first()).map_or(0, |(last, first)| last - first + 1);
                prop_assert_eq!(ranges.missing(), span as u64 - naive.len() as u64);
                prop_assert!(ranges.list.array_windows::<2>().all(|[a, b]| a.1 < b.0));
            }
        }
    }
}
