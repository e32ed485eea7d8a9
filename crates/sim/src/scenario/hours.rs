//! How much motes that sleep are awake, hour by hour.

use motet::time::{Duration, Instant};

use super::results::{HourResult, NodeCounts};

/// The counters of such motes when each hour began, the first one at once.
#[derive(Debug, Default)]
pub(super) struct Hours(Vec<Vec<(usize, NodeCounts)>>);

impl Hours {
    /// Whether an hour was noted.
    pub(super) fn has_begun(&self) -> bool {
        !self.0.is_empty()
    }

    /// When the hour under way is over, of those that are counted from `origin`.
    pub(super) fn next_at(&self, origin: Instant) -> Instant {
        origin + HOUR.saturating_mul(self.0.len() as u64)
    }

    /// Another hour begins; `counts`: of each mote that sleeps, by its number.
    pub(super) fn note(&mut self, counts: Vec<(usize, NodeCounts)>) {
        self.0.push(counts);
    }

    /// The hours that were whole.
    pub(super) fn results(&self) -> Vec<HourResult> {
        let hours = self.0.iter().zip(self.0.iter().skip(1)).enumerate();
        let each = hours.flat_map(|(hour, (before, after))| {
            before
                .iter()
                .zip(after)
                .map(move |((node, before), (_, after))| {
                    let used = after.since(before);
                    HourResult {
                        node: *node,
                        hour,
                        radio_duty: used.radio_duty(),
                        cpu_duty: used.cpu_duty(),
                    }
                })
        });
        each.collect()
    }
}

const HOUR: Duration = Duration::from_secs(3_600);
