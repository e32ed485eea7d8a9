//! The frame counters of nodes with a key, kept in a file from one run to the next.
//!
//! Purpose: a run against the kernel uses the same addresses as the one before, often with the same
//! key, and two frames with the same counter would reveal each other's contents. Place: between
//! [`super::world`], which stores each node's reservations, and [`motet_state::Counters`]. Left
//! out: runs purely in virtual time, whose frames follow from their seed; they store nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ordered;
use motet::mac::security::Reservation;
use motet_state::{Counters, Error, Past};

/// The frame counters of a mesh's nodes, in a file. Clones share the file.
#[derive(Clone, Debug)]
pub struct CounterStore(Arc<Mutex<Inner>>);

/// The state that the clones share.
#[derive(Debug)]
struct Inner {
    counters: Counters,
    /// Where each node began in this run.
    at_start: BTreeMap<[u8; 8], Past>,
    /// Tells the user, in one sentence.
    tell: fn(&str),
    /// Whether the last try failed, and the user knows.
    has_failed: bool,
}

impl CounterStore {
    /// Reserves counters for these nodes in advance, by one write. `sequence`: their lowest key
    /// sequence. `tell`: called with a sentence when storing fails, and when it works again.
    ///
    /// # Errors
    /// The file system's, and those of the counters.
    pub fn begin(
        mut counters: Counters,
        sequence: u32,
        nodes: impl Iterator<Item = [u8; 8]>,
        tell: fn(&str),
    ) -> Result<Self, Error> {
        let at_start = ordered::map(nodes.map(|eui64| (eui64, counters.past(eui64))));
        let ahead = at_start.iter().map(|(eui64, past)| {
            let ahead = Past {
                sequence: past.sequence.max(sequence),
                counter: past.counter.saturating_add(AHEAD),
                ..*past
            };
            (*eui64, ahead)
        });
        counters.keep_all(ahead)?;
        Ok(Self(Arc::new(Mutex::new(Inner {
            counters,
            at_start,
            tell,
            has_failed: false,
        }))))
    }

    /// The counters that a node had used before this run, from which it goes on.
    pub fn at_start(&self, eui64: [u8; 8]) -> Past {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.at_start.get(&eui64).copied().unwrap_or_default()
    }

    /// The last reservation of a node's frame counters in the runs before.
    pub(super) fn reservation(&self, eui64: [u8; 8]) -> Reservation {
        let Past {
            sequence, counter, ..
        } = self.at_start(eui64);
        Reservation { sequence, counter }
    }

    /// Stores a node's reservation; returns whether it is on the disk.
    pub(super) fn store(&self, eui64: [u8; 8], past: Past) -> bool {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = inner.counters.keep(eui64, past);
        let had_failed = std::mem::replace(&mut inner.has_failed, outcome.is_err());
        match (&outcome, had_failed) {
            (Err(error), false) => (inner.tell)(&format!(
                "{error}; nodes send on with the frame counters that are kept, then nothing, and try again \
                 every 10 s"
            )),
            (Ok(()), true) => (inner.tell)("the frame counters are kept again"),
            _ => {}
        }
        outcome.is_ok()
    }
}

/// A node's sender sequence numbers of CoJP messages (RFC 8613 §3.2.2), each used once.
#[derive(Debug, Default)]
pub(super) struct SenderNumbers {
    counter_store: Option<(CounterStore, [u8; 8])>,
    /// The first number that is not reserved in the file.
    bound: u32,
}

impl SenderNumbers {
    /// Begins with the first number that no run before has used.
    pub(super) fn new(counter_store: Option<&CounterStore>, eui64: [u8; 8]) -> Self {
        Self {
            bound: counter_store.map_or(0, |store| store.at_start(eui64).number),
            counter_store: counter_store.map(|store| (store.clone(), eui64)),
        }
    }

    /// The first one, of this run.
    pub(super) const fn first(&self) -> u32 {
        self.bound
    }

    /// Whether the message number `number` may be used.
    pub(super) fn allows(&mut self, number: u32) -> bool {
        number < self.bound || self.store(number.saturating_add(NUMBERS))
    }

    /// Reserves the numbers below `bound`; returns whether that is on the disk, if anything keeps
    /// it.
    pub(super) fn store(&mut self, bound: u32) -> bool {
        let Some((store, eui64)) = &self.counter_store else {
            return true;
        };
        let past = Past {
            number: bound,
            ..store.stored(*eui64)
        };
        let is_stored = store.store(*eui64, past);
        if is_stored {
            self.bound = past.number;
        }
        is_stored
    }
}

impl CounterStore {
    /// The counters of a node that are on the disk.
    pub(super) fn stored(&self, eui64: [u8; 8]) -> Past {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.counters.past(eui64)
    }
}

/// Counters reserved for each node before it asks: a node reserves 8,192 at first, which this
/// covers without another write.
const AHEAD: u32 = 8_192;

/// Sequence numbers of CoJP messages that are reserved at one time.
const NUMBERS: u32 = 64;

#[cfg(test)]
#[path = "tests/counter_store.rs"]
mod tests;
