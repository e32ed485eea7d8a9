//! The compressor and decompressor against each other.

mod agreed;
mod bounds;
mod breaks;
mod cures;
mod driver;

mod overhear;
mod table;
mod vectors;

use super::config::REUSE_AFTER;
use super::*;
use crate::time::Duration;

impl Tcphc<'_> {
    /// Switches `cures` off, to show the attacks that they are against.
    fn without(&mut self, cures: &[Cure]) {
        for cure in cures {
            self.rules.cures_off |= 1 << *cure as u32;
        }
    }
}
