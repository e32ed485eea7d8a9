//! The compressed headers that a run saw.

use std::collections::BTreeMap;

/// Counts of headers and of their bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeaderTally {
    /// Segments sent, by the length of their header on the air, TCP's own where it was plain.
    pub lens: BTreeMap<usize, u64>,
    /// Restored to the very bytes.
    pub exact: u64,
    /// Headers that were restored wrongly.
    pub wrong: u64,
    /// Headers that the decompressor discarded.
    pub refused: u64,
}

impl HeaderTally {
    /// Part of the segments with headers of at most `len` bytes.
    pub fn part_up_to(&self, len: usize) -> f64 {
        let short: u64 = self.lens.range(..=len).map(|(_, count)| count).sum();
        short as f64 / self.sent() as f64
    }

    /// The mean length, bytes.
    pub fn mean(&self) -> f64 {
        let bytes = self.lens.iter().map(|(len, count)| *len as u64 * count);
        bytes.sum::<u64>() as f64 / self.sent() as f64
    }

    fn sent(&self) -> u64 {
        self.lens.values().sum()
    }
}
