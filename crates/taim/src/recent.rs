//! Notes on pairs of addresses, kept for a while in bounded memory.
//!
//! Purpose: two generations of notes. The younger one becomes the older, and the older is
//! forgotten, when it has its age or is full: so a note lives for one to two spans, and no note
//! costs more than a look into each.

use std::collections::BTreeMap;
use std::mem;

use motet::time::{Duration, Instant};

use crate::segment::Pair;

/// Notes on pairs of addresses, in two generations.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    young: BTreeMap<Pair, T>,
    old: BTreeMap<Pair, T>,
    /// Since when the younger ones are written.
    since: Instant,
    span: Duration,
}

impl<T: Copy> Recent<T> {
    /// None; each is remembered for `span` at the least, unless others crowd it out.
    pub(crate) fn new(span: Duration) -> Self {
        Self {
            young: BTreeMap::new(),
            old: BTreeMap::new(),
            since: Instant::ORIGIN,
            span,
        }
    }

    /// The note on a pair.
    pub(crate) fn get(&mut self, pair: &Pair, now: Instant) -> Option<T> {
        self.turn(now);
        self.young.get(pair).or_else(|| self.old.get(pair)).copied()
    }

    /// Stores a note about a pair, in place of an earlier one.
    pub(crate) fn put(&mut self, pair: Pair, note: T, now: Instant) {
        self.turn(now);
        self.young.insert(pair, note);
    }

    fn turn(&mut self, now: Instant) {
        let age = now.since(self.since);
        if age >= self.span || self.young.len() >= PAIRS_MAX {
            self.old = mem::take(&mut self.young);
            self.since = now;
        }
        if age >= self.span.saturating_mul(2) {
            self.old.clear();
        }
    }
}

/// The most pairs in one generation.
const PAIRS_MAX: usize = 4_096;
