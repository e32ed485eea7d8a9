//! Counts of the work that packets make, for tests: no part of a build without tests.

use std::cell::Cell;

/// How often the node has done each kind of work, for tests.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    /// IPv6 headers that the node has parsed.
    pub(crate) parses: u32,
    /// Packets about which IP has made a decision.
    pub(crate) decisions: u32,
    /// Destinations looked up in the table of routes.
    pub(crate) lookups: u32,
    /// Walks through a table of registrations.
    pub(crate) walks: u32,
}

std::thread_local! {
    static SO_FAR: Cell<Tally> = const { Cell::new(Tally { parses: 0, decisions: 0, lookups: 0, walks: 0 }) };
}

/// Counts something, for the thread's test.
pub(crate) fn count(change: impl FnOnce(&mut Tally)) {
    SO_FAR.with(|so_far| {
        let mut tally = so_far.get();
        change(&mut tally);
        so_far.set(tally);
    });
}

impl Tally {
    /// Adds the work that `work` does.
    pub(crate) fn add<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = SO_FAR.replace(*self);
        let done = work();
        *self = SO_FAR.replace(before);
        done
    }
}
