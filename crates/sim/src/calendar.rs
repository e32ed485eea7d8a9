//! The calendar: what happens next in virtual time.
//!
//! Purpose: pending events in order of time, and of scheduling among equals, so that a run
//! depends on nothing but its seed.
//! Left out: cancelling. An owner whose plans changed ignores the event when it comes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use motet::time::Instant;

/// Events of kind `E` waiting for their instant.
#[derive(Debug)]
pub struct Calendar<E> {
    heap: BinaryHeap<Entry<E>>,
    scheduled: u64,
    now: Instant,
}

impl<E> Calendar<E> {
    /// An empty calendar at the origin of time.
    pub fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            scheduled: 0,
            now: Instant::ORIGIN,
        }
    }

    /// The instant of the event taken last, or of the last [`Self::advance_to`].
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets `event` happen at `at`; an instant already past counts as now.
    pub fn schedule(&mut self, at: Instant, event: E) {
        let at = at.max(self.now);
        let place = u128::from(at.as_micros()) << 64 | u128::from(self.scheduled);
        self.heap.push(Entry { place, event });
        self.scheduled += 1;
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(Entry::at)
    }

    /// Takes the next event if it is due at `until` or before, and moves time to it.
    pub fn pop_until(&mut self, until: Instant) -> Option<(Instant, E)> {
        if self.next_at()? > until {
            return None;
        }
        let entry = self.heap.pop()?;
        self.now = entry.at();
        Some((self.now, entry.event))
    }

    /// Moves time forward to `at`, at most to the next event.
    pub fn advance_to(&mut self, at: Instant) {
        let limit = self.next_at().map_or(at, |next| next.min(at));
        self.now = self.now.max(limit);
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is left to happen.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self::new()
    }
}

/// An event with its place in the order. Earliest is greatest: the heap is a max-heap.
#[derive(Debug)]
struct Entry<E> {
    /// Microseconds, then how many were scheduled before: one number, since every event is
    /// compared several times.
    place: u128,
    event: E,
}

impl<E> Entry<E> {
    fn at(&self) -> Instant {
        Instant::from_micros((self.place >> 64) as u64)
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.place.cmp(&self.place)
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // The heap asks only this; by way of an `Ordering` it would take twice as long.
    fn le(&self, other: &Self) -> bool {
        self.place >= other.place
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    #[test]
    fn events_come_by_time_and_then_by_order_of_scheduling() {
        let mut calendar = Calendar::new();
        for (us, name) in [(30, "d"), (10, "a"), (20, "b"), (20, "c")] {
            calendar.schedule(at(us), name);
        }
        let order: Vec<_> = std::iter::from_fn(|| calendar.pop_until(at(100))).collect();
        assert_eq!(
            order,
            [(at(10), "a"), (at(20), "b"), (at(20), "c"), (at(30), "d")]
        );
        assert!(calendar.is_empty());
    }

    #[test]
    fn the_past_counts_as_now_and_the_future_stays() {
        let mut calendar = Calendar::new();
        calendar.schedule(at(50), 1);
        assert_eq!(calendar.pop_until(at(49)), None);
        assert_eq!(calendar.pop_until(at(50)), Some((at(50), 1)));
        calendar.schedule(at(10), 2);
        assert_eq!(calendar.next_at(), Some(at(50)));
        calendar.advance_to(at(90));
        assert_eq!(calendar.now(), at(50), "an event due is never jumped over");
    }
}
