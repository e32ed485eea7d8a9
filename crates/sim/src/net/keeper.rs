//! What nodes with a key must not forget from one run to the next: their counters, in a file.
//!
//! Purpose: a run against the kernel uses the same addresses as the one before, often with the same
//! key, and the same counter twice would betray both frames. Place: between [`super::world`], which
//! stores what each node asks for, and [`motet_state::Counters`]. Left out: runs in virtual time
//! alone, whose frames follow from their seed: they keep nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use motet::mac::security::Reservation;
use motet_state::{Counters, Error, Past};

/// The counters of a mesh; copies are the same.
#[derive(Clone, Debug)]
pub struct Keeper(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    counters: Counters,
    /// Where each node began in this run.
    begins: BTreeMap<[u8; 8], Past>,
    /// Tells the user, in one sentence.
    tell: fn(&str),
    /// Whether the last try failed, and the user knows.
    has_failed: bool,
}

impl Keeper {
    /// Keeps counters for these nodes ahead, by one write. `sequence`: the key sequence that they
    /// have at least. `tell`: takes a sentence when keeping fails, and when it works again.
    ///
    /// # Errors
    /// The file system's, and those of the counters.
    pub fn begin(
        mut counters: Counters,
        sequence: u32,
        nodes: impl Iterator<Item = [u8; 8]>,
        tell: fn(&str),
    ) -> Result<Self, Error> {
        let begins: BTreeMap<_, _> = nodes.map(|eui64| (eui64, counters.past(eui64))).collect();
        let ahead = begins.iter().map(|(eui64, past)| {
            let ahead = Past {
                sequence: past.sequence.max(sequence),
                counter: past.counter.saturating_add(AHEAD),
                ..*past
            };
            (*eui64, ahead)
        });
        counters.keep_all(ahead)?;
        Ok(Self(Arc::new(Mutex::new(Kept {
            counters,
            begins,
            tell,
            has_failed: false,
        }))))
    }

    /// Where a node began in this run: what it has used before.
    pub fn begins(&self, eui64: [u8; 8]) -> Past {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.begins.get(&eui64).copied().unwrap_or_default()
    }

    /// The last reservation of a node's frame counters in the runs before.
    pub(super) fn reservation(&self, eui64: [u8; 8]) -> Reservation {
        let Past {
            sequence, counter, ..
        } = self.begins(eui64);
        Reservation { sequence, counter }
    }

    /// Keeps what a node asks for; says whether it is on the disk.
    pub(super) fn keep(&self, eui64: [u8; 8], past: Past) -> bool {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = kept.counters.keep(eui64, past);
        let had_failed = std::mem::replace(&mut kept.has_failed, outcome.is_err());
        match (&outcome, had_failed) {
            (Err(error), false) => (kept.tell)(&format!(
                "{error}; nodes send on with the frame counters that are kept, then nothing, and try again \
                 every 10 s"
            )),
            (Ok(()), true) => (kept.tell)("the frame counters are kept again"),
            _ => {}
        }
        outcome.is_ok()
    }
}

/// One node's numbers of messages of joining, each used once.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    keeper: Option<(Keeper, [u8; 8])>,
    /// The first one that is not kept.
    bound: u32,
}

impl Numbers {
    /// From the first that was not used in a run before.
    pub(super) fn of(keeper: Option<&Keeper>, eui64: [u8; 8]) -> Self {
        Self {
            bound: keeper.map_or(0, |keeper| keeper.begins(eui64).number),
            keeper: keeper.map(|keeper| (keeper.clone(), eui64)),
        }
    }

    /// The first one, of this run.
    pub(super) const fn first(&self) -> u32 {
        self.bound
    }

    /// Whether this number may be used.
    pub(super) fn allows(&mut self, number: u32) -> bool {
        let Some((keeper, eui64)) = self.keeper.as_ref().filter(|_| number >= self.bound) else {
            return true;
        };
        let past = Past {
            number: number.saturating_add(NUMBERS),
            ..keeper.kept(*eui64)
        };
        let is_kept = keeper.keep(*eui64, past);
        if is_kept {
            self.bound = past.number;
        }
        is_kept
    }
}

impl Keeper {
    /// What is on the disk.
    fn kept(&self, eui64: [u8; 8]) -> Past {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.counters.past(eui64)
    }
}

/// Counters kept for each node before it asks: it asks for 8,192 first, and then takes no write of
/// its own.
const AHEAD: u32 = 8_192;

/// Numbers of messages of joining that are kept at one time.
const NUMBERS: u32 = 64;

#[cfg(test)]
#[path = "tests/keeper.rs"]
mod tests;
