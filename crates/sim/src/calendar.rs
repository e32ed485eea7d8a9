//! The calendar: what happens next in virtual time.
//!
//! Purpose: pending events in order of time; events at the same time in the order in which they
//! were scheduled. So a run depends on nothing but its seed.
//! Left out: cancelling. An owner whose plans changed ignores the event when it comes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use motet::time::{Duration, Instant};

/// Events of kind `E` waiting for their instant.
///
/// Events of the next milliseconds are sorted. Later events are only grouped by slices of time, and
/// a slice is sorted when its time comes. Few of the deadlines of thousands of nodes are near, and
/// keeping all of them sorted would move each one many times, through memory outside the cache.
#[derive(Debug)]
pub struct Calendar<E> {
    /// Events before `horizon`.
    near: BinaryHeap<Entry<E>>,
    horizon: Instant,
    /// Events from `horizon` on, by slice of time; no slice is empty.
    far: BTreeMap<u64, Vec<Entry<E>>>,
    /// Memory of slices whose turn has been.
    spare: Vec<Vec<Entry<E>>>,
    len: usize,
    scheduled: u64,
    now: Instant,
}

impl<E> Calendar<E> {
    /// An empty calendar at the origin of time.
    pub fn new() -> Self {
        Self {
            near: BinaryHeap::new(),
            horizon: Instant::ORIGIN,
            far: BTreeMap::new(),
            spare: Vec::new(),
            len: 0,
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
        let entry = Entry { place, event };
        self.scheduled += 1;
        self.len += 1;
        if at < self.horizon {
            self.near.push(entry);
            return;
        }
        let Self { far, spare, .. } = self;
        let slice = far.entry(slice_of(at));
        let slice = slice.or_insert_with(|| spare.pop().unwrap_or_default());
        slice.push(entry);
    }

    /// When the next event is due.
    pub fn next_at(&self) -> Option<Instant> {
        if let Some(next) = self.near.peek() {
            return Some(next.at());
        }
        let (_, slice) = self.far.first_key_value()?;
        slice.iter().map(Entry::at).min()
    }

    /// Takes the next event if it is due at `until` or before, and moves time to it.
    pub fn pop_until(&mut self, until: Instant) -> Option<(Instant, E)> {
        if self.near.is_empty() {
            self.approach();
        }
        if self.near.peek()?.at() > until {
            return None;
        }
        let entry = self.near.pop()?;
        self.len -= 1;
        self.now = entry.at();
        Some((self.now, entry.event))
    }

    /// Brings the next slice into order.
    fn approach(&mut self) {
        let Some((number, slice)) = self.far.pop_first() else {
            return;
        };
        self.horizon = Instant::from_micros((number + 1).saturating_mul(SLICE.as_micros()));
        let before = std::mem::replace(&mut self.near, slice.into());
        self.spare.push(before.into_vec());
    }

    /// Moves time forward to `at`, at most to the next event.
    pub fn advance_to(&mut self, at: Instant) {
        let limit = self.next_at().map_or(at, |next| next.min(at));
        self.now = self.now.max(limit);
    }

    /// The number of events that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is left to happen.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The slice in which an instant is.
fn slice_of(at: Instant) -> u64 {
    at.as_micros() / SLICE.as_micros()
}

/// About as long as a full frame with its ACK: what radios schedule is mostly nearer.
const SLICE: Duration = Duration::from_millis(8);

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
    use motet::random::Rng;

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
    fn far_events_come_in_the_order_of_a_sorted_list() {
        let mut calendar = Calendar::new();
        let mut rng = Rng::from_seed([1, 2]);
        let (mut waiting, mut number) = (Vec::new(), 0);
        for _ in 0..4_000 {
            let span = Duration::from_micros(1 << rng.below(24));
            let at = calendar.now() + rng.uniform(span);
            calendar.schedule(at, number);
            waiting.push((at, number));
            number += 1;
            waiting.sort();
            assert_eq!(calendar.next_at(), Some(waiting[0].0));
            assert_eq!(calendar.len(), waiting.len());
            if rng.below(2) == 0 {
                let until = calendar.now() + Duration::from_micros(1 << rng.below(22));
                let expected = Some(waiting[0]).filter(|(at, _)| *at <= until);
                assert_eq!(calendar.pop_until(until), expected);
                if expected.is_some() {
                    waiting.remove(0);
                }
            }
        }
        while let Some(event) = calendar.pop_until(at(u64::MAX)) {
            assert_eq!(event, waiting.remove(0));
        }
        assert!(waiting.is_empty() && calendar.is_empty());
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
