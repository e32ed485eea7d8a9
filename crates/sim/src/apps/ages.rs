//! How old messages were on arrival: a distribution in bounded memory.
//!
//! Place: part of a [`crate::apps::readings::Tally`]. Ages are counted in buckets no wider than a
//! 128th of what they hold, however many there are; mean and maximum are exact.

use std::collections::BTreeMap;

use motet::time::Duration;
use serde::{Deserialize, Serialize};

/// A histogram of ages.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Ages {
    buckets: BTreeMap<u16, u64>,
    count: u64,
    sum_us: u64,
    max_us: u64,
}

impl Ages {
    /// Counts one age more.
    pub fn count(&mut self, age: Duration) {
        let us = age.as_micros();
        *self.buckets.entry(bucket(us)).or_default() += 1;
        self.count += 1;
        self.sum_us += us;
        self.max_us = self.max_us.max(us);
    }

    /// Counts those of another histogram, too.
    pub fn add(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.count += other.count;
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Their mean; none of none.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum_us.checked_div(self.count)?;
        Some(Duration::from_micros(mean))
    }

    /// The greatest; none of none.
    pub fn max(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_micros(self.max_us))
    }

    /// The least age that `share` of them (0 to 1) do not exceed, within a 256th of itself;
    /// none of none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut so_far = 0;
        let (place, _) = self.buckets.iter().find(|(_, count)| {
            so_far += **count;
            so_far >= rank
        })?;
        Some(Duration::from_micros(middle(*place).min(self.max_us)))
    }
}

/// The bucket of an age: exact below [`STEPS`], then as many to each doubling.
fn bucket(us: u64) -> u16 {
    let shift = us.max(1).ilog2().saturating_sub(STEPS.ilog2());
    // Lossless: at most 58 times 128.
    (u64::from(shift) * STEPS + (us >> shift)) as u16
}

/// The age in the middle of a bucket.
fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket / STEPS).saturating_sub(1);
    let least = (bucket - shift * STEPS) << shift;
    least + ((1 << shift) - 1) / 2
}

const STEPS: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// The 95th percentile of all is not the mean of each one's.
    #[test]
    fn two_histograms_together_are_that_of_both_lists() {
        let mut all = Ages::default();
        let [mut quick, mut slow] = [(); 2].map(|()| Ages::default());
        for n in 0..900 {
            quick.count(Duration::from_millis(100 + n % 10));
            all.count(Duration::from_millis(100 + n % 10));
        }
        for n in 0..100 {
            slow.count(Duration::from_millis(5_000 + n));
            all.count(Duration::from_millis(5_000 + n));
        }
        quick.add(&slow);
        assert_eq!(quick, all);
        assert!(
            quick
                .quantile(0.95)
                .is_some_and(|age| age > Duration::from_secs(4))
        );
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list() {
        let mut ages = Ages::default();
        let mut list: Vec<u64> = (0..5_000_u64).map(|n| n * n * 37 % 9_000_017).collect();
        for us in &list {
            ages.count(Duration::from_micros(*us));
        }
        list.sort_unstable();
        for share in [0.01, 0.5, 0.95, 0.999] {
            let exact = list[(share * 5_000.0_f64).ceil() as usize - 1] as f64;
            let told = ages.quantile(share).unwrap().as_micros() as f64;
            assert!(
                (told - exact).abs() <= exact / 256.0,
                "{share}: {told} for {exact}"
            );
        }
        assert_eq!(ages.max().unwrap().as_micros(), list[4_999]);
        assert_eq!(ages.quantile(1.0), ages.max());
        let mean = list.iter().sum::<u64>() / 5_000;
        assert_eq!(ages.mean().unwrap().as_micros(), mean);
        assert_eq!(Ages::default().quantile(0.5), None);
    }

    #[test]
    fn the_middle_of_a_bucket_is_in_it() {
        let ages = (0..64).flat_map(|shift| [0, 1, 77].map(|more| (1_u64 << shift) + more));
        for us in ages.chain([0, u64::MAX]) {
            assert_eq!(bucket(middle(bucket(us))), bucket(us), "{us}");
        }
    }
}
